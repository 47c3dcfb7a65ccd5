//! Whole modules: what stands around the instructions counts, too. Nothing here may be proved.

use warpwright_check::{Options, Verdict, check_modules};
use warpwright_ptx::Module;

const HEADER: &str = ".version 8.6\n.target sm_90\n.address_size 64\n";

/// A kernel with `head` after its parameters and `body` in it.
fn kernel(head: &str, body: &str) -> String {
    format!(
        ".visible .entry k(.param .u64 p, .param .u32 n)\n{head}\n{{
	.reg .pred %p<4>;
	.reg .b32 %r<9>;
	.reg .b64 %d;
	ld.param.u64 %d, [p];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	setp.lt.u32 %p1, %r2, %r1;
	setp.gt.u32 %p2, %r2, 7;
{body}
	ret;
}}
"
    )
}

fn parse(text: &str) -> Module {
    let text = format!("{HEADER}{text}");
    let (module, diagnostics) = Module::parse("test.ptx", &text);
    let error = diagnostics.iter().find(|diagnostic| diagnostic.is_error());
    assert!(error.is_none(), "{error:?}\n{text}");
    module
}

fn check(original: &str, rewritten: &str, options: &Options) -> Vec<(String, Verdict)> {
    check_modules(&parse(original), &parse(rewritten), options)
}

/// The words of all verdicts; a module is proved if all are.
#[track_caller]
fn unclear(original: &str, rewritten: &str) {
    let verdicts = check(original, rewritten, &Options::default());
    let words: Vec<&str> = verdicts.iter().map(|(_, verdict)| verdict.word()).collect();
    assert!(words.contains(&"undecided"), "{verdicts:?}");
}

const STORE: &str = "\tst.global.u32 [%d], %r1;";

#[test]
fn the_same_module_is_proved() {
    let verdicts = check(&kernel("", STORE), &kernel("", STORE), &Options::default());
    assert!(verdicts.iter().all(|(_, verdict)| verdict.is_proved()));
}

#[test]
fn launches_that_only_the_original_takes() {
    for (before, after) in [
        ("", ".maxntid 32"),
        (".maxntid 256", ".maxntid 8, 8"),
        ("", ".reqntid 32"),
        (".reqntid 64", ".reqntid 8, 8"),
        (".maxntid 64", ".reqntid 64"),
        (".reqntid 64", ".maxntid 32"),
    ] {
        unclear(&kernel(before, STORE), &kernel(after, STORE));
    }
    for (before, after) in [
        ("", ".maxntid 1024"),
        (".reqntid 64", ""),
        (".reqntid 8, 8", ".maxntid 64"),
        (".maxntid 64", ".maxntid 128"),
    ] {
        let pair = (kernel(before, STORE), kernel(after, STORE));
        let verdicts = check(&pair.0, &pair.1, &Options::default());
        assert!(verdicts[0].1.is_proved(), "{before} {after}: {verdicts:?}");
    }
}

#[test]
fn a_bound_that_fits_the_block_is_proved() {
    let block = Some([64, 1, 1]);
    let verdict = |head: &str| {
        let pair = (kernel("", STORE), kernel(head, STORE));
        check(
            &pair.0,
            &pair.1,
            &Options {
                block,
                ..Options::default()
            },
        )[0]
        .1
        .word()
    };
    assert_eq!(verdict(".maxntid 64"), "proved");
    assert_eq!(verdict(".maxntid 63"), "undecided");
}

/// Of several kernels one may not take the block that was named: it is compared at the blocks that it takes.
#[test]
fn a_block_that_the_original_refuses_says_nothing() {
    let block = Some([64, 1, 1]);
    let verdict = |before: &str, after: &str| {
        let pair = (kernel(before, STORE), kernel(after, STORE));
        check(
            &pair.0,
            &pair.1,
            &Options {
                block,
                ..Options::default()
            },
        )[0]
        .1
        .word()
    };
    for head in [".reqntid 8, 8", ".reqntid 32", ".maxntid 32"] {
        assert_eq!(verdict(head, head), "proved", "{head}");
    }
    assert_eq!(verdict(".maxntid 32", ".maxntid 16"), "undecided");
    assert_eq!(verdict(".reqntid 8, 8", ".reqntid 64"), "undecided");
    assert_eq!(verdict(".reqntid 128", ".maxntid 64"), "undecided");
}

#[test]
fn other_clusters() {
    for (before, after) in [
        (".reqnctapercluster 2", ""),
        (".reqnctapercluster 2", ".reqnctapercluster 4"),
        (".maxclusterrank 8", ""),
    ] {
        unclear(&kernel(before, STORE), &kernel(after, STORE));
    }
}

#[test]
fn names_that_are_lost() {
    let hidden = kernel("", STORE).replace(".visible ", "");
    unclear(&kernel("", STORE), &hidden);
    let exported = format!(".visible .global .u32 knob = 1;\n{}", kernel("", STORE));
    unclear(&exported, &kernel("", STORE));
}

const CALL: &str = "\t{ .param .b32 i; .param .b32 o; st.param.b32 [i], %r1;
	call.uni (o), f, (i); ld.param.b32 %r3, [o]; }
	st.global.u32 [%d], %r3;";

fn function(linkage: &str, name: &str, add: u32) -> String {
    format!(
        "{linkage} .func (.param .b32 o) {name}(.param .b32 i)
{{ .reg .b32 %a; ld.param.b32 %a, [i]; add.u32 %a, %a, {add}; st.param.b32 [o], %a; ret; }}\n"
    )
}

#[test]
fn functions_that_the_linker_or_an_alias_chooses() {
    let calls = kernel("", CALL);
    let declared = ".extern .func (.param .b32 o) f(.param .b32 i);\n";
    unclear(
        &(declared.to_owned() + &calls),
        &(function("", "f", 1) + &calls),
    );
    unclear(
        &(function(".weak", "f", 1) + &calls),
        &(function("", "f", 1) + &calls),
    );
    let both = function("", "one", 1)
        + &function("", "two", 2)
        + ".func (.param .b32 o) f(.param .b32 i);\n";
    unclear(
        &format!("{both}.alias f, one;\n{calls}"),
        &format!("{both}.alias f, two;\n{calls}"),
    );
}

#[test]
fn a_slot_in_shared_memory_that_another_activation_uses() {
    let recursive = |declaration: &str, before: &str, after: &str| {
        format!(
            ".func (.reg .u32 o) f(.reg .u32 i) {{
	.reg .b32 %a, %b, %c, %t;
	.reg .pred %p;
	{declaration}
	setp.eq.u32 %p, i, 0;
	@%p bra END;
	sub.u32 %a, i, 1;
	{before}
	call (%b), f, (%a);
	{after}
	add.u32 o, %b, %c;
	ret;
END:
	mov.u32 o, 0;
	ret;
}}
"
        )
    };
    let original = recursive("", "mov.u32 %c, i;", "");
    let shared = recursive(
        ".shared .align 4 .b8 spill[256];",
        "mov.u32 %t, %tid.x; shl.b32 %t, %t, 2; mov.u32 %c, spill; add.u32 %t, %t, %c;
	st.shared.u32 [%t], i;",
        "ld.shared.u32 %c, [%t];",
    );
    let local = recursive(
        ".local .align 4 .b8 spill[4];",
        "st.local.u32 [spill], i;",
        "ld.local.u32 %c, [spill];",
    );
    let block = Some([64, 1, 1]);
    let word = |text: &str| {
        check(
            &original,
            text,
            &Options {
                block,
                ..Options::default()
            },
        )[0]
        .1
        .word()
    };
    assert_eq!(word(&shared), "undecided");
    assert_eq!(word(&local), "proved");
}

/// `event` before a branch, and on both of its ways: as threads part there, each part then meets
/// another instruction.
#[test]
fn what_a_warp_does_together_moved_over_a_branch() {
    for event in ["bar.sync 0;", "activemask.b32 %r3;"] {
        let rest = "	st.global.u32 [%d], %r4;
	add.u32 %r4, %r4, 1;
	setp.lt.u32 %p3, %r4, %r1;
	@%p3 bra LOOP;";
        let start = "	mov.u32 %r3, 0;\n	mov.u32 %r4, 0;\n	@%p2 bra END;";
        let end = "END:\n	st.global.u32 [%d+4], %r3;";
        let original = format!("{start}\n{event}\n@%p1 bra END;\nLOOP:\n{rest}\n{end}");
        let rewritten = format!(
            "{start}\n@%p1 bra OTHER;\n{event}\nLOOP:\n{rest}\nbra END;\nOTHER:\n{event}\n{end}"
        );
        unclear(&kernel("", &original), &kernel("", &rewritten));
    }
}

#[test]
fn a_barrier_copied_into_both_ends() {
    let original = "	mov.u32 %r3, 1;
	@%p1 bra END;
	mov.u32 %r3, 2;
END:
	st.global.u32 [%d], %r1;
	bar.sync 0;
	ret;";
    let rewritten = "	mov.u32 %r3, 1;
	@%p1 bra END;
	mov.u32 %r3, 2;
	st.global.u32 [%d], %r1;
	bar.sync 0;
	ret;
END:
	st.global.u32 [%d], %r1;
	bar.sync 0;
	ret;";
    unclear(&kernel("", original), &kernel("", rewritten));
}

/// A loop of a device function unrolled behind a decision by its argument, of which each thread has its own: some threads
/// would meet in one copy and the others in the other one.
#[test]
fn copies_of_what_a_warp_does_by_an_argument() {
    let reduce = "	redux.sync.add.u32 %r4, %r2, -1;
	add.u32 %r2, %r2, %r4;
	add.u32 %r1, %r1, 1;
	setp.lt.u32 %p1, %r1, 4;";
    let once = format!("LOOP:\n{reduce}\n	@%p1 bra LOOP;");
    let twice = format!(
        "LOOP:\n{reduce}\n	@!%p1 bra END;\n	@%p2 bra LOOP;\n{reduce}\n	@%p1 bra LOOP;\nEND:"
    );
    let registers = "	.reg .pred %p<3>;\n	.reg .b32 %r<6>;\n	mov.u32 %r1, 0;";
    let test = "	setp.eq.u32 %p2, %r5, 0;";
    let by_register = |body: &str| {
        format!(
            ".func (.reg .b32 %y) f(.reg .b32 %n, .reg .b32 %x)\n{{\n{registers}
	mov.u32 %r2, %x;\n	mov.u32 %r5, %n;\n{test}\n{body}\n	mov.u32 %y, %r2;\n	ret;\n}}\n"
        )
    };
    let by_parameter = |body: &str| {
        format!(
            ".func (.param .b32 y) f(.param .b32 n, .param .b32 x)\n{{\n{registers}
	ld.param.u32 %r2, [x];\n	ld.param.u32 %r5, [n];\n{test}\n{body}\n	st.param.u32 [y], %r2;\n	ret;\n}}\n"
        )
    };
    unclear(&by_register(&once), &by_register(&twice));
    unclear(&by_parameter(&once), &by_parameter(&twice));
}
