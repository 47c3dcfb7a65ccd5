//! What descriptions say beside the launch: tolerances, outputs, types; and kernels that do not end.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use warpwright_emu::Emulator;
use warpwright_launch::{LaunchFile, no_files};
use warpwright_ptx::Module;
use warpwright_rewrite::{AtLaunch, Options, Paired, PairingError, Side, Standing, Step, compare};

/// `y[i] = f(x[i])`
fn map(instructions: &str) -> String {
    format!(
        ".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)
{{
    .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %d<6>; .reg .f64 %e<2>; .reg .b32 %t<2>; .reg .pred %p;
    ld.param.u64 %d0, [x];
    ld.param.u64 %d1, [y];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    setp.ge.s32 %p, %r4, %r0;
    @%p bra END;
    mul.wide.s32 %d2, %r4, 4;
    add.s64 %d3, %d0, %d2;
    add.s64 %d4, %d1, %d2;
    ld.global.f32 %f0, [%d3];
    {instructions}
    st.global.f32 [%d4], %f1;
END:
    ret;
}}
"
    )
}

const TOML: &str = "kernel = \"k\"
[sizes.small]
n = 100
[launch]
grid = [\"ceil_div(n, 64)\"]
block = [64]
[[args]]
name = \"x\"
type = \"f32\"
shape = [\"n\"]
init = { kind = \"uniform\", low = -1.0, high = 1.0 }
[[args]]
name = \"y\"
type = \"f32\"
shape = [\"n\"]
output = true
[[args]]
name = \"n\"
type = \"u32\"
value = \"n\"
";

fn with(from: &str, to: &str) -> String {
    let text = TOML.replace(from, to);
    assert!(from == to || text != TOML, "{from}");
    text
}

fn side(ptx: &str, toml: &str) -> Side {
    let (module, diagnostics) = Module::parse("k", ptx);
    assert!(!diagnostics.iter().any(|d| d.is_error()), "{diagnostics:?}");
    let file = LaunchFile::parse(toml, "k").unwrap();
    let launch = file.resolve("small", &[]).unwrap();
    let contents = launch.buffers().map(|b| b.materialize(&no_files).unwrap());
    let contents = contents.collect();
    let program = Emulator::new(&module, "k").unwrap();
    let step = Step {
        program,
        launch,
        contents,
    };
    Side {
        name: "k".to_owned(),
        steps: vec![step],
    }
}

/// How they stand, and all that is said.
fn found(kernels: [&str; 2], tomls: [&str; 2]) -> (Standing, String) {
    let (a, b) = (side(kernels[0], tomls[0]), side(kernels[1], tomls[1]));
    let paired = Paired::of(&a, &b, &[]).unwrap();
    let found = compare(&a, &b, &paired, &Options::default());
    let why: Vec<String> = found.why.iter().map(ToString::to_string).collect();
    (found.standing, why.join("; "))
}

/// Equal over the reals is not enough where the described inputs show more than the described tolerance.
#[test]
fn tolerances_are_held_on_the_described_inputs() {
    let copy = map("mov.f32 %f1, %f0;");
    let through = |constant: &str| {
        map(&format!(
            "add.rn.f32 %f2, %f0, {constant}; sub.rn.f32 %f1, %f2, {constant};"
        ))
    };
    let (one, large) = (through("0f3F800000"), through("0f4CBEBC20"));
    let flushed = map(
        "mul.rn.f32 %f2, %f0, 0f00800000; mul.rn.f32 %f2, %f2, 0f2F800000; \
         mul.rn.f32 %f2, %f2, 0f4F800000; mul.rn.f32 %f1, %f2, 0f7E800000;",
    );
    let close = "output = true\ntolerance = { rel = 1e-5, abs = 1e-6 }";
    let close = with("output = true", close);
    let missed = "the tolerance that is described for `y`";
    let apart = "NaN, infinities, overflow, underflow and the sign of zeros apart";
    let far = "further off than rounding is, and no tolerance is described for `y`";
    for (other, toml, standing, said) in [
        (&one, &*close, Standing::UpToRounding, apart),
        (&one, TOML, Standing::UpToRounding, apart),
        (&large, &*close, Standing::Refuted, missed),
        (&large, TOML, Standing::Refuted, far),
        (&flushed, &*close, Standing::Refuted, missed),
    ] {
        let (stands, why) = found([&copy, other], [toml; 2]);
        assert!(
            stands == standing && why.contains(said),
            "{stands:?}: {why}"
        );
    }
}

/// A sum that cancels leaves rounding alone; what is more than that is none, small as it may be beside the largest result.
#[test]
fn rounding_is_measured_on_the_kernels() {
    let cancels =
        map("ex2.approx.f32 %f2, %f0; lg2.approx.f32 %f2, %f2; sub.rn.f32 %f1, %f2, %f0;");
    let twice = map(
        "ex2.approx.f32 %f2, %f0; add.rn.f32 %f2, %f2, %f2; lg2.approx.f32 %f2, %f2; \
         sub.rn.f32 %f2, %f2, %f0; sub.rn.f32 %f1, %f2, 0f3F800000;",
    );
    let (copy, nearly) = (
        map("mov.f32 %f1, %f0;"),
        map("mul.rn.f32 %f1, %f0, 0f3F800347;"),
    );
    for (kernels, standing) in [
        ([&cancels, &twice], Standing::Tested),
        ([&twice, &cancels], Standing::Tested),
        ([&copy, &nearly], Standing::Refuted),
    ] {
        let (stands, why) = found(kernels.map(|kernel| &**kernel), [TOML; 2]);
        assert_eq!(stands, standing, "{why}");
    }
}

/// A store of what stood there shows in no term; another value that stood there does on numbers.
#[test]
fn what_is_left_as_it_was_may_be_right() {
    let toml = with("high = 1.0 }", "high = 1.0 }\noutput = true");
    let stored = |value: &str| map(&format!("{value} st.global.f32 [%d3], %f1;"));
    let through = stored("ex2.approx.f32 %f2, %f0; lg2.approx.f32 %f1, %f2;");
    let same = stored("mov.f32 %f1, %f0;");
    let none = map("add.rn.f32 %f1, %f0, %f0;");
    let twice = stored("add.rn.f32 %f1, %f0, %f0;");
    let leaves = "the rewritten kernel leaves `x[0]` as it was (100 such elements)";
    let kept = "the original leaves `x[0]` as it was (100 such elements)";
    for (kernels, standing, said) in [
        ([&through, &same], Standing::Tested, "none of 9 fillings"),
        ([&same, &through], Standing::Tested, "none of 9 fillings"),
        ([&twice, &none], Standing::Refuted, leaves),
        ([&none, &twice], Standing::WrongInput, kept),
    ] {
        let (stands, why) = found(kernels.map(|kernel| &**kernel), [&toml; 2]);
        assert!(
            stands == standing && why.contains(said),
            "{stands:?}: {why}"
        );
    }
}

/// Inputs that are tried keep to the stated ranges, and what is fixed by statement is said so.
#[test]
fn statements_about_inputs_are_kept_to() {
    let product = map("abs.f32 %f2, %f0; mov.f32 %f1, %f2;");
    let copy = map("mov.f32 %f1, %f0;");
    let stated = |options: Options| {
        let (a, b) = (side(&product, TOML), side(&copy, TOML));
        let paired = Paired::of(&a, &b, &[]).unwrap();
        compare(&a, &b, &paired, &options)
    };
    assert_eq!(stated(Options::default()).standing, Standing::Refuted);
    let ranges = vec![("x".to_owned(), 0.5, 2.0)];
    let found = stated(Options {
        ranges,
        ..Options::default()
    });
    assert_eq!(found.standing, Standing::Tested, "{:?}", found.why);
    let fixed = vec!["x".to_owned()];
    let found = stated(Options {
        fixed,
        ..Options::default()
    });
    let why: Vec<String> = found.why.iter().map(ToString::to_string).collect();
    assert!(
        why.join("; ").contains("for `x` as described (`--fixed`)"),
        "{why:?}"
    );
}

/// How far both may be off is said for the described ranges, or for those that are stated.
#[test]
fn rounding_is_bounded_for_ranges() {
    let twice = map("mul.rn.f32 %f2, %f0, %f0; add.rn.f32 %f1, %f2, %f0;");
    let once = map("fma.rn.f32 %f1, %f0, %f0, %f0;");
    let quotient = map("rcp.rn.f32 %f2, %f0; mul.rn.f32 %f1, %f2, %f0;");
    let one = map("div.rn.f32 %f1, %f0, %f0;");
    let stated = |kernels: [&str; 2], toml: &str, ranges: &[(&str, f64, f64)]| {
        let (a, b) = (side(kernels[0], toml), side(kernels[1], toml));
        let paired = Paired::of(&a, &b, &[]).unwrap();
        let ranges = ranges
            .iter()
            .map(|&(name, low, high)| (name.to_owned(), low, high));
        let options = Options {
            ranges: ranges.collect(),
            ..Options::default()
        };
        compare(&a, &b, &paired, &options)
    };
    let error = |found: &AtLaunch| -> Option<[f64; 2]> {
        let bounded = found.bounds().next()?;
        Some(bounded.sides.each_ref().map(|side| side.error))
    };
    let half = 2f64.powi(-24);
    let found = stated([&twice, &once], TOML, &[]);
    // x² is rounded at 1, the sum at 2; the other sum alone.
    let [a, b] = error(&found).unwrap();
    assert!(
        (a - 3.0 * half).abs() < 1e-3 * half && (b - 2.0 * half).abs() < 1e-3 * half,
        "{a} {b}"
    );
    let wide = stated([&twice, &once], TOML, &[("x", 0.0, 16.0)]);
    let [a, b] = error(&wide).unwrap();
    assert!(
        (a / half - 528.0).abs() < 1.0 && (b / half - 272.0).abs() < 1.0,
        "{a} {b}"
    );
    let unsaid = with("uniform\", low = -1.0, high = 1.0", "bits\"");
    for (kernels, toml, ranges, said) in [
        (
            [&twice, &once],
            &*unsaid,
            &[][..],
            "nothing says which numbers `x` holds",
        ),
        ([&one, &quotient], TOML, &[], "a divisor may be 0"),
        (
            [&twice, &once],
            TOML,
            &[("x", 0.0, 1e30)],
            "a value may leave its format",
        ),
        ([&one, &quotient], TOML, &[("x", 1.0, 2.0)], "`x` in [1, 2]"),
    ] {
        let found = stated(kernels.map(|kernel| &**kernel), toml, ranges);
        let why: Vec<String> = found.why.iter().map(ToString::to_string).collect();
        assert!(why.join("; ").contains(said), "{said}: {why:?}");
    }
}

/// What the original leaves alone is no output because the other description says so.
#[test]
fn an_output_of_one_description_is_no_excuse() {
    let twice = map("add.rn.f32 %f1, %f0, %f0;");
    let spoils = map("add.rn.f32 %f1, %f0, %f0; st.global.f32 [%d3], %f1;");
    let other = with("high = 1.0 }", "high = 1.0 }\noutput = true");
    let (stands, why) = found([&twice, &spoils], [TOML, &other]);
    assert_eq!(stands, Standing::Refuted, "{why}");
    // Both write it: it is compared with nothing.
    let (stands, why) = found([&spoils; 2], [TOML, &other]);
    assert_eq!(stands, Standing::Tested, "{why}");
    assert!(
        why.contains("an output of the other description alone"),
        "{why}"
    );
}

/// The halves of a number in double precision are integers, and described as such.
#[test]
fn parts_of_numbers_may_be_described_as_integers() {
    let half = |operation: &str| {
        map(&format!(
            "cvt.f64.f32 %e0, %f0; {operation}.rn.f64 %e1, %e0, %e0; mov.b64 %d5, %e1; \
             mov.b64 {{%t0, %t1}}, %d5; mov.b32 %f1, %t1;"
        ))
    };
    let toml = with(
        "name = \"y\"\ntype = \"f32\"",
        "name = \"y\"\ntype = \"u32\"",
    );
    let (stands, why) = found([&half("mul"), &half("add")], [&toml; 2]);
    assert_eq!(stands, Standing::Refuted, "{why}");
    let (stands, why) = found([&half("mul"), &half("mul")], [&toml; 2]);
    assert_eq!(stands, Standing::BitForBit, "{why}");
}

/// A loop that nobody in the block ends is given up by name.
#[test]
fn a_kernel_that_waits_for_another_block_ends() {
    let waits = |first: &str| {
        map(&format!(
            "{first} WAIT: atom.global.add.u32 %r5, [%d4], 0; setp.eq.u32 %p, %r5, 7; @!%p bra WAIT;"
        ))
    };
    let (one, other) = (
        waits("mov.f32 %f1, %f0;"),
        waits("add.rn.f32 %f1, %f0, 0f00000000;"),
    );
    let toml = with("output = true", "init = \"zeros\"\noutput = true");
    let (stands, why) = found([&one, &other], [&toml; 2]);
    assert!(stands > Standing::UpToRounding, "{why}");
    assert!(
        why.contains("a loop waits for what another block does"),
        "{why}"
    );
}

/// A bitonic sort of 64 integers, with a way to exchange two and the last stage's length.
fn sort(exchange: &str, most: u32) -> String {
    format!(
        ".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x)
{{
    .reg .b32 %r<20>; .reg .b64 %d<6>; .reg .pred %p<8>;
    .shared .align 4 .b8 s[256];
    ld.param.u64 %d0, [x];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r2, %r1, 64, %r0;
    mul.wide.u32 %d1, %r2, 4;
    add.s64 %d2, %d0, %d1;
    mov.u32 %r3, s;
    shl.b32 %r4, %r0, 2;
    add.u32 %r4, %r4, %r3;
    ld.global.u32 %r5, [%d2];
    st.shared.u32 [%r4], %r5;
    bar.sync 0;
    mov.u32 %r6, 2;
OUTER:
    shr.u32 %r7, %r6, 1;
INNER:
    xor.b32 %r8, %r0, %r7;
    setp.le.u32 %p0, %r8, %r0;
    @%p0 bra SKIP;
    and.b32 %r9, %r0, %r6;
    setp.eq.u32 %p1, %r9, 0;
    shl.b32 %r10, %r8, 2;
    add.u32 %r10, %r10, %r3;
    ld.shared.u32 %r11, [%r4];
    ld.shared.u32 %r12, [%r10];
    {exchange}
SKIP:
    bar.sync 0;
    shr.u32 %r7, %r7, 1;
    setp.ne.u32 %p3, %r7, 0;
    @%p3 bra INNER;
    shl.b32 %r6, %r6, 1;
    setp.le.u32 %p4, %r6, {most};
    @%p4 bra OUTER;
    ld.shared.u32 %r5, [%r4];
    st.global.u32 [%d2], %r5;
    ret;
}}
"
    )
}

/// Chains of selections are as long as the sort, and each stands in the next one twice.
#[test]
fn a_sort_of_selections_ends() {
    let branch = "setp.gt.s32 %p2, %r11, %r12; xor.pred %p2, %p2, %p1; @%p2 bra SKIP; \
         st.shared.u32 [%r4], %r12; st.shared.u32 [%r10], %r11;";
    let extremes = "min.s32 %r13, %r11, %r12; max.s32 %r14, %r11, %r12; selp.u32 %r15, %r13, %r14, %p1; \
         selp.u32 %r16, %r14, %r13, %p1; st.shared.u32 [%r4], %r15; st.shared.u32 [%r10], %r16;";
    let toml = "kernel = \"k\"
[sizes.small]
g = 2
[launch]
grid = [\"g\"]
block = [64]
[[args]]
name = \"x\"
type = \"s32\"
shape = [\"g * 64\"]
init = { kind = \"uniform\", low = -1000, high = 1000, seed = 3 }
output = true
";
    let right = sort(branch, 64);
    let (stands, why) = found([&right, &sort(extremes, 64)], [toml; 2]);
    assert!(stands < Standing::Refuted, "{why}");
    for wrong in [sort(branch, 32), sort(extremes, 32)] {
        let (stands, why) = found([&right, &wrong], [toml; 2]);
        assert_eq!(stands, Standing::Refuted, "{why}");
    }
}

/// Data that the other description names and fills otherwise stand for the original's by statement alone.
#[test]
fn data_are_paired_by_name_contents_or_statement() {
    let twice = map("add.rn.f32 %f1, %f0, %f0;");
    let first = side(&twice, TOML);
    let named = with("\"x\"", "\"u\"");
    let partner = |toml: &str, stated: &[(String, String)]| {
        let paired = Paired::of(&first, &side(&twice, toml), stated);
        paired.map(|paired| paired.partner["u"].clone())
    };
    assert_eq!(partner(&named, &[]).as_deref(), Ok("x"));
    let other = named.replace("low = -1.0", "low = -2.0");
    let unsaid = PairingError::Unsaid("u".to_owned());
    assert_eq!(partner(&other, &[]), Err(unsaid));
    let stated = [("x".to_owned(), "u".to_owned())];
    assert_eq!(partner(&other, &stated).as_deref(), Ok("x"));
}

/// A constant that the rewritten kernel alone has holds what it is loaded with, and the verdict says so; what the original
/// reads, or what nobody has given a value, may be anything.
#[test]
fn constants_of_the_rewritten_kernel_alone_are_as_loaded() {
    let under = |declared: &str, kernel: &str| {
        let entry = ".visible .entry";
        kernel.replace(entry, &format!("{declared}\n{entry}"))
    };
    let literal = map("mul.rn.f32 %f1, %f0, 0f40400000;");
    let read = |space: &str| {
        map(&format!(
            "ld.{space}.f32 %f2, [three]; mul.rn.f32 %f1, %f0, %f2;"
        ))
    };
    let given = ".const .align 4 .f32 three = 0f40400000;";
    let constant = under(given, &read("const"));
    let open = under(".const .align 4 .f32 three;", &read("const"));
    let other = under(&given.replace("4040", "4080"), &read("const"));
    let variable = given.replace(".const", ".visible .global");
    let variable = under(&variable, &read("global"));
    let loaded = "with `three` as loaded at first";
    for (first, second, standing, said) in [
        (&literal, &constant, Standing::BitForBit, loaded),
        (&literal, &other, Standing::Refuted, "another function"),
        (&literal, &open, Standing::Refuted, "another function"),
        (&literal, &variable, Standing::Tested, "another function"),
        (&constant, &literal, Standing::Tested, "another function"),
        (&constant, &constant, Standing::BitForBit, ""),
    ] {
        let (found, why) = found([first, second], [TOML, TOML]);
        assert_eq!(found, standing, "{why}");
        assert!(why.contains(said), "{why}");
        assert_eq!(why.contains(loaded), said == loaded, "{why}");
    }
}
