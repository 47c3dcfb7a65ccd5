//! The checker's work grows with the code, not with its square: counted in steps, not in time.

use std::fmt::Write as _;

use warpwright_check::{CubinOptions, answer};
use warpwright_sass::Elf;
use warpwright_toolkit::PtxasJob;
use warpwright_toolkit::testing::require_toolkit;

/// Registers of each phase, and phases that have registers of their own.
const WIDTH: usize = 8;
const SETS: usize = 12;

/// A loop over phases that only some threads run, with values that they carry from one round to the next and
/// that nothing sets before: with 32 registers nearly all of them are spilled.
fn module(phases: usize) -> String {
    let mut text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry phases(.param .u64 data, .param .u32 rounds)\n.maxntid 64\n.maxnreg 32\n{{\n\
         .reg .f32 %f<{}>;\n.reg .b64 %d;\n.reg .b32 %n, %k;\n.reg .pred %p;\n\
         ld.param.u64 %d, [data];\nld.param.u32 %n, [rounds];\nagain:\n\
         ld.volatile.global.u32 %k, [%d];\n",
        SETS * WIDTH
    );
    for phase in 0..phases {
        let first = phase % SETS * WIDTH;
        let other = (phase + 1) % SETS * WIDTH;
        let _ = writeln!(text, "setp.ne.u32 %p, %k, {phase};\n@%p bra use{phase};");
        for i in 0..WIDTH {
            let _ = writeln!(
                text,
                "ld.global.f32 %f{}, [%d+{}];",
                first + i,
                4 * (first + i)
            );
        }
        let _ = writeln!(
            text,
            "use{phase}:\nsetp.gt.u32 %p, %k, {phase};\n@%p bra next{phase};"
        );
        for i in 0..WIDTH {
            let (a, b) = (first + i, other + i);
            let _ = writeln!(text, "fma.rn.f32 %f{a}, %f{b}, %f{a}, %f{b};");
        }
        let _ = writeln!(text, "next{phase}:");
    }
    text.push_str("sub.u32 %n, %n, 1;\nsetp.ne.u32 %p, %n, 0;\n@%p bra again;\n");
    for i in 0..SETS * WIDTH {
        let _ = writeln!(text, "st.global.f32 [%d+{}], %f{i};", 4 * i);
    }
    text + "ret;\n}\n"
}

/// Instructions, and the steps for a proof and for a version in which one operand of the first addition
/// is another register.
fn steps(phases: usize) -> Option<(u64, [u64; 2])> {
    let toolkit = require_toolkit("the_work_grows_with_the_code")?;
    let text = module(phases);
    let built = toolkit.ptxas().ok()?.run(&PtxasJob::new(&text, "sm_90"));
    let elf = Elf::parse(&built.expect("ptxas takes it").cubin).expect("a cubin");
    let kernel = elf.kernel("phases").expect("the kernel");
    let code = elf.instructions(&kernel).expect("its code");
    let mut same = elf.clone();
    same.set_registers("phases", 34)
        .expect("it states registers");
    let mut other = same.clone();
    let mut changed = code.clone();
    let fma = code.iter().position(|inst| inst.bits() & 0xfff == 0x223);
    let fma = &mut changed[fma.expect("an FFMA")];
    *fma = fma.with_bits(fma.bits() ^ 1 << 24);
    other.set_instructions("phases", &changed).expect("as many");
    let check = |new| answer(&elf, new, "phases", &CubinOptions::default());
    let (proof, wrong) = (check(&same), check(&other));
    assert!(proof.verdict.is_proved(), "{}", proof.verdict);
    assert!(!wrong.verdict.is_proved());
    Some((code.len() as u64, [proof.work, wrong.work]))
}

#[test]
fn the_work_grows_with_the_code() {
    let (Some((small, few)), Some((large, many))) = (steps(12), steps(48)) else {
        return;
    };
    let grown = large as f64 / small as f64;
    for (few, many) in few.iter().zip(many) {
        let factor = many as f64 / *few as f64;
        println!("{grown:.1} times the code, {factor:.1} times the work ({few} to {many} steps)");
        assert!(
            factor < 1.5 * grown,
            "{few} to {many} for {grown:.1} times the code"
        );
    }
}
