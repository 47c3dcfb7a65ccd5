//! A module with one more kernel is what ptxas makes of a text with one more kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use warpwright_sass::Elf;
use warpwright_sass::elf::info::{Attribute, Info};
use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{BuildCache, PtxasJob};
use warpwright_winners::graft::{Addition, GraftError, graft};
use warpwright_winners::ties::Tie;

fn build(name: &str, sm: &str, body: &str) -> Option<Vec<u8>> {
    let toolkit = require_toolkit(name)?;
    let text = format!(".version 8.8\n.target {sm}\n.address_size 64\n{body}");
    let job = PtxasJob::new(&text, sm);
    let built = BuildCache::standard().ptxas(&toolkit.ptxas().expect("ptxas"), &job);
    Some(built.expect("ptxas takes it").cubin.to_vec())
}

/// Variables of every kind, one with the address of another.
const VARIABLES: &str = "
.visible .const .align 4 .f32 weights[8];
.const .align 8 .b8 steps[24] = {1, 2, 3};
.visible .global .align 8 .u64 hits;
.global .align 4 .b8 field[400];
.global .align 4 .f32 first[4] = {0f3F800000, 0f40000000, 0f40400000, 0f40800000};
.visible .global .align 8 .u64 where = hits;
";

/// A kernel with both kinds of variables, shared memory, a slow division (a function in its code) and a table of
/// branches.
fn large(name: &str, factor: u32) -> String {
    format!(
        ".visible .entry {name}(.param .u64 p, .param .u32 n) {{
  .reg .b64 %d<12>; .reg .f64 %e<6>; .reg .f32 %f<6>; .reg .b32 %r<8>; .reg .pred %q;
  .shared .align 4 .b8 tile[512];
  ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 7;
  mul.wide.u32 %d1, %r2, 4; mov.u64 %d2, weights; add.u64 %d2, %d2, %d1; ld.const.f32 %f0, [%d2];
  ld.const.u32 %r3, [steps+8]; mov.u64 %d3, field; add.u64 %d3, %d3, %d1; st.global.u32 [%d3+16], %r3;
  atom.global.add.u64 %d4, [hits], {factor}; ld.global.u64 %d5, [where]; ld.global.f32 %f1, [first+8];
  add.f32 %f2, %f0, %f1; mov.u32 %r4, tile; mul.lo.u32 %r5, %r1, 4; add.u32 %r4, %r4, %r5;
  st.shared.f32 [%r4], %f2; bar.sync 0; ld.shared.f32 %f3, [tile+64]; cvt.f64.f32 %e0, %f3;
  cvt.rn.f64.s64 %e1, %d5; div.rn.f64 %e2, %e0, %e1; st.global.f64 [%d0], %e2; rem.s64 %d6, %d5, %d4;
  st.global.u64 [%d0+8], %d6;
  branches: .branchtargets a, b, c, d;
  add.u32 %r6, %r0, %r1; setp.gt.u32 %q, %r6, 3; @%q bra done; brx.idx %r6, branches;
  a: st.global.u32 [%d0+16], 1; bra done;
  b: st.global.u32 [%d0+24], 3; bra done;
  c: st.global.u32 [%d0+32], 9; bra done;
  d: st.global.u32 [%d0+40], 4;
  done: ret;
}}\n"
    )
}

fn small(name: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 p) {{ .reg .b64 %d; .reg .f32 %f; .reg .b32 %r;
         ld.param.u64 %d, [p]; ld.const.f32 %f, [weights+4]; st.global.f32 [%d], %f;
         ld.global.u32 %r, [field+8]; st.global.u32 [%d+4], %r; ret; }}\n"
    )
}

/// Sections that tell of the others, and what only debuggers read.
fn is_told(name: &str) -> bool {
    let names = [".strtab", ".shstrtab", ".symtab", ".note.nv.tkinfo"];
    names.contains(&name) || name.contains(".debug_frame")
}

/// A cubin as text: names in the place of numbers, in an order that does not depend on them.
/// The kernel `added` is called EXTRA.
fn described(cubin: &[u8], added: &str) -> BTreeSet<String> {
    let mut elf = Elf::parse(cubin).expect("a cubin");
    let mut symbols = elf.symbols().expect("symbols");
    for symbol in &mut symbols {
        // A function in the kernel's code.
        if symbol.name.starts_with("$__internal") {
            symbol.name = symbol
                .name
                .trim_end_matches(&format!(".{added}"))
                .to_owned();
        }
        symbol.name = symbol.name.replace(added, "EXTRA");
    }
    for section in &mut elf.sections {
        section.name = section.name.replace(added, "EXTRA");
    }
    let elf = elf;
    let section = |index: usize| elf.sections.get(index).map_or("-", |s| &s.name);
    let short = |name: &str| {
        // They are numbered by module.
        match name.strip_prefix("$__internal_") {
            Some(rest) => rest
                .split_once('_')
                .map_or(rest, |(_, rest)| rest)
                .to_owned(),
            None => name.to_owned(),
        }
    };
    let symbol = |index: u32| match symbols.get(index as usize) {
        Some(s) if s.name.is_empty() => format!("section {}", section(usize::from(s.section))),
        Some(s) => format!("{} in {}", short(&s.name), section(usize::from(s.section))),
        None => format!("{index:#x}"),
    };
    let mut all = BTreeSet::new();
    for s in &symbols {
        all.insert(format!(
            "symbol {} {:#x} {:#x} {} {} {}",
            short(&s.name),
            s.info,
            s.other,
            section(usize::from(s.section)),
            s.value,
            s.size
        ));
    }
    for (index, s) in elf.sections.iter().enumerate() {
        if is_told(&s.name) {
            continue;
        }
        let info = match () {
            () if s.name.starts_with(".text.") => {
                format!("{} {}", symbol(s.info & 0xff_ffff), s.info >> 24)
            }
            () if s.name.starts_with(".rel") || s.flags & 0x40 != 0 => {
                section(s.info as usize).to_owned()
            }
            () => s.info.to_string(),
        };
        let link = section(s.link as usize);
        all.insert(format!(
            "section {} {:#x} {:#x} {link} ({info}) {} {} {}",
            s.name,
            s.kind,
            s.flags,
            s.align,
            s.entry_size,
            s.size()
        ));
        if s.is_relocations() {
            for r in elf.relocations(index).expect("relocations") {
                all.insert(format!(
                    "{}: {} {} {} {:?}",
                    s.name,
                    r.offset,
                    r.kind,
                    symbol(r.symbol),
                    r.addend
                ));
            }
        } else if s.name.starts_with(".nv.info") {
            for mut record in Info::parse(&s.data).expect("records").records {
                let mut about = String::new();
                if s.name == ".nv.info" || record.attribute == Attribute::PARAM_CBANK {
                    about = record.words().first().map_or(String::new(), |&w| symbol(w));
                    record.set_word(0, 0);
                }
                all.insert(format!(
                    "{}: {} {about} {:?}",
                    s.name, record.attribute, record.value
                ));
            }
        } else if s.name == ".nv.callgraph" {
            for pair in s.data.chunks_exact(8) {
                let word =
                    |at: usize| u32::from_le_bytes(pair[at..at + 4].try_into().expect("four"));
                all.insert(format!("{} calls {}", symbol(word(0)), symbol(word(4))));
            }
        } else {
            all.insert(format!("{} holds {:?}", s.name, s.data));
        }
    }
    all.extend(segments(cubin, &elf));
    all
}

/// What each program header loads, by the names of sections, and whether its memory is that of the contents.
fn segments(cubin: &[u8], elf: &Elf) -> Vec<String> {
    let long =
        |at: usize| u64::from_le_bytes(cubin[at..at + 8].try_into().expect("eight")) as usize;
    let half = |at: usize| {
        usize::from(u16::from_le_bytes(
            cubin[at..at + 2].try_into().expect("two"),
        ))
    };
    let (table, count, sections) = (long(32), half(56), long(40));
    let header = |number: usize| {
        let at = table + number * 56;
        let (offset, file, memory) = (long(at + 8), long(at + 32), long(at + 40));
        let inside = elf.sections.iter().enumerate().filter(|(index, s)| {
            let start = long(sections + index * 64 + 24);
            s.has_contents()
                && !s.data.is_empty()
                && start >= offset
                && start + s.data.len() <= offset + file
        });
        let mut names: Vec<&str> = inside.map(|(_, s)| &*s.name).collect();
        names.sort_unstable();
        // Padding depends on the order.
        let beyond = (memory - file).next_multiple_of(64);
        format!(
            "segment {:#x} {:#x} {names:?} {beyond}",
            long(at) as u32,
            long(at) >> 32
        )
    };
    (0..count).map(header).collect()
}

#[test]
fn a_grafted_module_is_what_ptxas_makes_of_its_kernels() {
    let test = "a_grafted_module_is_what_ptxas_makes_of_its_kernels";
    for sm in ["sm_75", "sm_80", "sm_86", "sm_90"] {
        let text = |kernels: &[String]| format!("{VARIABLES}{}", kernels.concat());
        let [first, last] = [large("big", 1), small("little")];
        let Some(module) = build(test, sm, &text(&[first.clone(), last.clone()])) else {
            return;
        };
        for (name, kernel, new) in [
            ("big.extra", "big", large("big", 2)),
            ("little.extra", "little", small("little")),
            // Another kernel's code: with shared memory, tables and functions that the kernel itself has not.
            ("little.extra", "little", large("little", 3)),
        ] {
            let winner = build(test, sm, &text(std::slice::from_ref(&new))).expect("a toolkit");
            let addition = Addition {
                kernel,
                name,
                cubin: &winner,
                symbol: kernel,
            };
            let grafted =
                graft(&module, &[addition]).unwrap_or_else(|e| panic!("{sm} {name}: {e}"));
            let named = new.replace(&format!(".entry {kernel}("), ".entry EXTRA(");
            let whole =
                build(test, sm, &text(&[first.clone(), last.clone(), named])).expect("a toolkit");
            let (own, ptxas) = (described(&grafted, name), described(&whole, "EXTRA"));
            let missing: Vec<_> = ptxas.difference(&own).collect();
            let added: Vec<_> = own.difference(&ptxas).collect();
            assert_eq!((missing, added), (vec![], vec![]), "{sm} {name}");
            reads(&grafted);
        }
    }
}

/// NVIDIA's disassembler takes it.
fn reads(cubin: &[u8]) {
    let toolkit = require_toolkit("nvdisasm").expect("a toolkit");
    let file = tempfile::NamedTempFile::new().expect("file");
    std::fs::write(file.path(), cubin).expect("written");
    let tool = toolkit.nvdisasm().expect("nvdisasm").tool().path.clone();
    let output = Command::new(tool)
        .arg("-c")
        .arg(file.path())
        .output()
        .expect("starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Another order of variables among the addresses: the places in the code follow.
#[test]
fn addresses_are_found_by_name() {
    let test = "addresses_are_found_by_name";
    let little = small("little");
    let text = |first: &str| format!("{first}{VARIABLES}{little}");
    let Some(module) = build(test, "sm_90", &text("")) else {
        return;
    };
    let alone = build(test, "sm_90", &text(".global .u32 another;\n")).expect("a toolkit");
    let addition = |name| Addition {
        kernel: "little",
        name,
        cubin: &alone,
        symbol: "little",
    };
    let grafted = graft(&module, &[addition("little.1"), addition("little.2")]).expect("they fit");
    let code = |cubin: &[u8], name: &str| {
        let elf = Elf::parse(cubin).expect("a cubin");
        elf.section(&format!(".text.{name}"))
            .expect("code")
            .data
            .clone()
    };
    assert_ne!(
        code(&module, "little"),
        code(&alone, "little"),
        "the orders are the same"
    );
    for name in ["little.1", "little.2"] {
        assert_eq!(code(&grafted, name), code(&module, "little"));
    }
    let twice = graft(&module, &[addition("little.1"), addition("little.1")]);
    assert_eq!(twice, Err(GraftError::Name("little.1".into())));
}

#[test]
fn other_variables_are_refused() {
    let test = "other_variables_are_refused";
    let text = |variables: &str| format!("{variables}{}", large("k", 1));
    let Some(module) = build(test, "sm_90", &text(VARIABLES)) else {
        return;
    };
    let tried = |variables: &str, sm: &str| {
        let cubin = build(test, sm, &text(variables)).expect("a toolkit");
        let addition = Addition {
            kernel: "k",
            name: "k.1",
            cubin: &cubin,
            symbol: "k",
        };
        graft(&module, &[addition]).map(drop)
    };
    assert_eq!(tried(VARIABLES, "sm_90"), Ok(()));
    assert_eq!(tried(VARIABLES, "sm_80"), Err(GraftError::Target));
    let changed: BTreeMap<&str, &str> = [
        ("steps[24] = {1, 2, 3}", "steps[24] = {1, 2, 4}"),
        ("weights[8]", "weights[9]"),
        (
            ".const .align 8 .b8 steps",
            ".const .align 4 .u32 more;\n.const .align 8 .b8 steps",
        ),
    ]
    .into();
    for (from, to) in changed {
        assert_eq!(
            tried(&VARIABLES.replace(from, to), "sm_90"),
            Err(GraftError::Constants),
            "{to}"
        );
    }
    let sizes = VARIABLES.replace("field[400]", "field[404]");
    assert_eq!(
        tried(&sizes, "sm_90"),
        Err(GraftError::Variable("field".into()))
    );
    let managed = VARIABLES.replace(
        ".visible .global .align 8 .u64 hits",
        ".visible .global .attribute(.managed) .align 8 .u64 hits",
    );
    let managed = tried(&managed, "sm_90");
    assert_eq!(managed, Err(GraftError::Tie(Tie::Managed("hits".into()))));
}

#[test]
fn cubins_with_a_second_copy_of_the_program_are_refused() {
    let test = "cubins_with_a_second_copy_of_the_program_are_refused";
    let Some(module) = build(test, "sm_100", &format!("{VARIABLES}{}", small("k"))) else {
        return;
    };
    let addition = Addition {
        kernel: "k",
        name: "k.1",
        cubin: &module,
        symbol: "k",
    };
    assert!(matches!(
        graft(&module, &[addition]),
        Err(GraftError::Copy(_))
    ));
}
