//! Does ptxas undo a recomputation? (You & Tsai 2011, section 2.4, problem 1.)
//!
//! Small kernels compute a value, use it, cross a barrier, and compute it again for a second use. The
//! operation is an exponential, which runs on a unit that nothing else here uses, so the loop-weighted
//! profile of the machine code counts it. The table of docs/regs.md is what this test finds: it fails
//! where a ptxas does something else. Run it for another version with WARPWRIGHT_TOOLKIT, and with
//! `--nocapture` to see its table.

use warpwright_sass::Cubin;
use warpwright_sass::Unit;
use warpwright_sass::profile::{Latencies, Profile};
use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{Ptxas, PtxasJob};

const ARCHITECTURES: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];

/// Where the value is computed again.
const PLACES: [(&str, Place); 4] = [
    ("the same block", Place::Here),
    ("another block", Place::Behind),
    ("two places", Place::Twice),
    ("a loop, the value before it", Place::Loop),
];

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Here,
    Behind,
    Twice,
    Loop,
}

/// Writes the source of the recomputation at the n-th place to a register.
type Way = fn(&str, u32) -> String;

/// How the source of the recomputation is written; `n` counts the places.
const WAYS: [(&str, Way); 7] = [
    ("as it stands", |to, _| format!("mov.b32 {to}, %r1;")),
    ("(s + m) - m", |to, _| {
        format!("add.u32 {to}, %r1, %r2; sub.u32 {to}, {to}, %r2;")
    }),
    ("halves, joined again", |to, _| {
        format!("mov.b32 {{%h1, %h2}}, %r1; mov.b32 {to}, {{%h1, %h2}};")
    }),
    ("a volatile store before it", |to, _| {
        format!("st.volatile.global.u32 [%d1+64], %r2; mov.b32 {to}, %r1;")
    }),
    ("xor with one constant, twice", |to, _| xor(to, "7")),
    ("xor with its own constant, twice", |to, n| {
        xor(to, &(n + 1).to_string())
    }),
    ("xor with a changing register, twice", |to, _| {
        xor(to, "%r3")
    }),
];

fn xor(to: &str, mask: &str) -> String {
    format!("xor.b32 {to}, %r1, {mask}; xor.b32 {to}, {to}, {mask};")
}

/// The kernel. `%r1` is the source, `%r2` some other value, `%r3` changes in the loop.
fn kernel(place: Place, way: Way) -> String {
    let again = |n: u32| {
        format!(
            "{} mov.b32 %f2, %q{n}; ex2.approx.ftz.f32 %f3, %f2;\n\
             st.volatile.global.f32 [%d1+{}], %f3; bar.sync 0;\n",
            way(&format!("%q{n}"), n),
            16 + 4 * n
        )
    };
    let second = match place {
        Place::Here => again(0),
        Place::Behind => format!("setp.lt.u32 %p1, %r1, %r2;\n@%p1 bra $END;\n{}", again(0)),
        Place::Twice => again(0) + &again(1),
        Place::Loop => format!(
            "$LOOP:\nbar.sync 0;\n{}add.u32 %r3, %r3, 1;\n\
             ld.volatile.global.u32 %r4, [%d1];\nsetp.lt.u32 %p1, %r3, %r4;\n@%p1 bra $LOOP;\n",
            again(0)
        ),
    };
    format!(
        ".version 8.5\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred %p<2>;\n.reg .b16 %h<3>;\n.reg .b32 %r<5>, %q<2>;\n.reg .f32 %f<4>;\n\
         .reg .b64 %d<2>;\nld.param.u64 %d1, [p];\nld.volatile.global.u32 %r1, [%d1];\n\
         ld.volatile.global.u32 %r2, [%d1+4];\nld.volatile.global.u32 %r3, [%d1+8];\n\
         mov.b32 %f0, %r1;\nex2.approx.ftz.f32 %f1, %f0;\nst.volatile.global.f32 [%d1+12], %f1;\n\
         bar.sync 0;\n{second}$END:\nst.volatile.global.u32 [%d1+32], %r1;\n\
         st.volatile.global.u32 [%d1+36], %r2;\nret;\n}}\n"
    )
}

/// What became of the recomputation, from the exponentials of the machine code by loop weight.
fn outcome(place: Place, exponentials: f64) -> &'static str {
    match (place, exponentials) {
        (_, 1.0) => "undone",
        (Place::Twice, 2.0) => "merged",
        (Place::Loop, 2.0) => "moved out",
        (Place::Twice, 3.0) | (Place::Loop, 11.0) | (_, 2.0) => "kept",
        _ => "?",
    }
}

fn build(ptxas: &Ptxas, arch: &str, place: Place, way: Way) -> &'static str {
    let text = kernel(place, way);
    let build = ptxas.run(&PtxasJob::new(&text, arch));
    let build = build.unwrap_or_else(|e| panic!("{arch}: {e}\n{text}"));
    let cubin = Cubin::parse(&build.cubin).expect("a cubin");
    let kernel = cubin.kernel("k").expect("the kernel");
    let nothing = Latencies {
        global: 0.0,
        local: 0.0,
        shared: 0.0,
        sfu: 0.0,
        fp64: 0.0,
        other: 0.0,
    };
    outcome(
        place,
        Profile::new(&kernel.code, &kernel.targets, &nothing, None).count(Unit::Sfu),
    )
}

/// The table for one ptxas; a cell lists the architectures where they differ.
fn table(ptxas: &Ptxas) -> String {
    let mut out = String::from("| source of the recomputation |");
    for (place, _) in PLACES {
        out += &format!(" {place} |");
    }
    out += "\n|---|---|---|---|---|\n";
    for (name, way) in WAYS {
        out += &format!("| {name} |");
        for (_, place) in PLACES {
            let cells = ARCHITECTURES.map(|arch| build(ptxas, arch, place, way));
            match cells.iter().all(|cell| *cell == cells[0]) {
                true => out += &format!(" {} |", cells[0]),
                false => {
                    let named = ARCHITECTURES.iter().zip(cells);
                    let each: Vec<String> = named.map(|(a, c)| format!("{a} {c}")).collect();
                    out += &format!(" {} |", each.join(", "));
                }
            }
        }
        out += "\n";
    }
    out
}

#[test]
fn the_table_of_the_documentation_holds() {
    let Some(toolkit) = require_toolkit("recomputations and ptxas") else {
        return;
    };
    let ptxas = toolkit.ptxas().expect("ptxas");
    let found = table(&ptxas);
    println!("{found}");
    let documented = include_str!("../../../docs/regs.md");
    assert!(
        documented.contains(&found),
        "this ptxas does something else than docs/regs.md says:\n{found}"
    );
}
