//! Two judges of machine code, which share no code: the hazard checker of `sass`, after which control fields are written,
//! and the walk of this crate. Mistakes are planted into control fields, one at a time; what the former reports, the
//! latter must report. And neither says anything of what ptxas wrote.

use warpwright_check::unprotected;
use warpwright_flow::Inst;
use warpwright_sass::control::{Control, SCOREBOARDS};
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::{Elf, hazards};
use warpwright_toolkit::PtxasJob;
use warpwright_toolkit::testing::require_toolkit;

/// Loads and stores of all spaces in a loop, exchanges, a division with its helper, guards, atomics, asynchronous copies.
const BODY: &str = ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)\n.maxntid 128\n{
.reg .b64 %i, %o, %w; .reg .b32 %t, %n, %s, %a, %v, %u, %c; .reg .f32 %f, %g; .reg .f64 %x, %y; .reg .pred %p, %q;
.shared .align 16 .b8 tile[4096];
ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
mul.wide.u32 %w, %t, 16; add.s64 %i, %i, %w; add.s64 %o, %o, %w; mov.u32 %s, tile; mad.lo.u32 %a, %t, 16, %s;
mov.u32 %c, 0; mov.f32 %f, 0f00000000; mov.f64 %y, 0d3FF0000000000000;
again: ld.global.u32 %v, [%i]; ld.global.f32 %g, [%i+4]; st.shared.u32 [%a], %v; bar.sync 0;
ld.shared.u32 %u, [%a]; setp.gt.u32 %q, %u, 9; @%q st.shared.u32 [%a+4], %c; @!%q st.shared.u32 [%a+8], %t;
fma.rn.f32 %f, %g, %g, %f; sqrt.approx.f32 %f, %f; cvt.f64.f32 %x, %f; div.rn.f64 %y, %y, %x; bar.sync 0;
shfl.sync.bfly.b32 %u, %u, 1, 31, 0xffffffff; @%q atom.global.add.u32 %v, [%o+64], %u; add.u32 %c, %c, %v;
st.global.f64 [%o+8], %y; add.s64 %i, %i, 2048; setp.lt.u32 %p, %c, %n; @%p bra again;
st.global.u32 [%o], %c; ret;\n}\n";

const COPIES: &str = ".visible .entry k(.param .u64 in, .param .u64 out)\n.maxntid 64\n{
.reg .b64 %i, %o, %w; .reg .b32 %t, %s, %a, %v, %u;
.shared .align 16 .b8 tile[4096];
ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
mul.wide.u32 %w, %t, 16; add.s64 %i, %i, %w; add.s64 %o, %o, %w; mov.u32 %s, tile; mad.lo.u32 %a, %t, 16, %s;
cp.async.cg.shared.global [%a], [%i], 16; cp.async.commit_group;
cp.async.cg.shared.global [%a+1024], [%i+1024], 16; cp.async.commit_group;
cp.async.wait_group 1; bar.sync 0; ld.shared.u32 %v, [%s+4]; cp.async.wait_group 0; bar.sync 0;
ld.shared.u32 %u, [%s+1028]; add.u32 %v, %v, %u; st.global.u32 [%o], %v; ret;\n}\n";

const ARCHITECTURES: [(u32, &[&str]); 4] = [
    (75, &[BODY]),
    (80, &[BODY]),
    (90, &[BODY, COPIES]),
    (120, &[BODY]),
];

/// Every control field that says less by one wait, one scoreboard or one cycle.
fn mistakes(code: &Code) -> Vec<(Inst, Control)> {
    let mut all = Vec::new();
    for (at, word) in code.instructions().iter().enumerate() {
        let own = word.control();
        let inst = Inst(at as u32);
        let waits = (0..SCOREBOARDS).filter(|board| own.wait_mask >> board & 1 != 0);
        all.extend(waits.map(|board| {
            let wait_mask = own.wait_mask & !(1 << board);
            (inst, Control { wait_mask, ..own })
        }));
        let other = |board: Option<u8>| board.map(|board| (board + 1) % SCOREBOARDS);
        if own.write_barrier.is_some() {
            let (none, other) = (None, other(own.write_barrier));
            all.extend([none, other].map(|write_barrier| {
                (
                    inst,
                    Control {
                        write_barrier,
                        ..own
                    },
                )
            }));
        }
        if own.read_barrier.is_some() {
            let (none, other) = (None, other(own.read_barrier));
            all.extend([none, other].map(|read_barrier| {
                (
                    inst,
                    Control {
                        read_barrier,
                        ..own
                    },
                )
            }));
        }
        if own.stall > 1 {
            all.extend([1, own.stall - 1].map(|stall| (inst, Control { stall, ..own })));
        }
    }
    all
}

fn code(text: &str, sm: u32, ptxas: &warpwright_toolkit::Ptxas) -> Code {
    let text = format!(".version 8.7\n.target sm_{sm}\n.address_size 64\n{text}");
    let built = ptxas.run(&PtxasJob::new(&text, &format!("sm_{sm}")));
    let elf = Elf::parse(&built.expect("ptxas takes it").cubin).expect("a cubin");
    let kernel = elf.kernel("k").expect("the kernel");
    Code::new(&elf, &kernel, Calls::Followed).expect("its code")
}

#[test]
fn what_the_hazard_checker_reports_the_judge_reports() {
    let Some(toolkit) = require_toolkit("what_the_hazard_checker_reports_the_judge_reports") else {
        return;
    };
    let ptxas = toolkit.ptxas().expect("ptxas");
    let (mut planted, mut theirs, mut ours) = (0, 0, 0);
    for (sm, text) in ARCHITECTURES
        .iter()
        .flat_map(|(sm, all)| all.iter().map(|t| (*sm, *t)))
    {
        // The operands of an atomic operation by an address alone are in no table of sm_75.
        let text = match sm {
            75 => text.replacen("@%q atom.global.add.u32 %v, [%o+64], %u;", "", 1),
            _ => text.to_owned(),
        };
        let original = code(&text, sm, &ptxas);
        assert_eq!(hazards::check(&original), Ok(Vec::new()), "sm_{sm}");
        assert_eq!(unprotected(&original, &original), Ok(Vec::new()), "sm_{sm}");
        for (inst, control) in mistakes(&original) {
            let mut new = original.clone();
            new.set_control(inst, control).expect("it fits");
            let reported = hazards::check(&new).expect("it can be checked");
            let judged = unprotected(&original, &new).expect("it can be judged");
            planted += 1;
            theirs += usize::from(!reported.is_empty());
            ours += usize::from(!judged.is_empty());
            let first = reported.first().map(|violation| violation.describe(&new));
            assert!(
                reported.is_empty() || !judged.is_empty(),
                "sm_{sm}, {:#x}: {first:?}",
                inst.0 * 16
            );
        }
    }
    assert!(
        theirs > 200 && ours >= theirs,
        "{theirs} and {ours} of {planted}"
    );
    println!("{planted} planted, reported by the hazard checker {theirs}, by the judge {ours}");
}
