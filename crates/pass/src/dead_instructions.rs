//! `dead-instructions`: remove instructions of machine code whose results nobody reads.
//!
//! Goal: fewer issue slots. Edits of machine code (moved spills, and what comes) leave computations behind
//! that ptxas never sees. Method: liveness (Aho et al., Compilers, section 9.2.5), repeated until nothing is left.
//!
//! What the control field of a removed instruction did is done by its neighbours: the instruction before it
//! stalls for both, the one behind it waits for both; the operand cache of the former is given up. Where the
//! neighbours cannot (a block begins or ends there, the stall would be too long) the instruction stays. So does one
//! that sets a scoreboard: a unit finishes in order, and ptxas lets what stands before on the same unit rely on it.
//!
//! Requires that the control flow and all registers are known. Preserves every instruction with an effect,
//! all memory accesses, and the register count.

use warpwright_diag::count;
use warpwright_flow::{Cfg, Function as _, Inst, Liveness};
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::isa::decode;
use warpwright_sass::{Edit, Elf};

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::refusal::Refusal;
use crate::site::CubinSite;

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct DeadInstructions {}

crate::options!(DeadInstructions: []; []);

impl Pass for DeadInstructions {
    const NAME: &'static str = "dead-instructions";
    const ABOUT: &'static str = "remove instructions of machine code whose results nobody reads";

    fn work(&self) -> Work<Self> {
        Work::MachineCode(remove)
    }
}

/// Operations that compute a result from their operands and do nothing else.
const ARITHMETIC: [&str; 31] = [
    "DADD", "DFMA", "DMUL", "DSETP", "F2F", "F2I", "FADD", "FFMA", "FMNMX", "FMUL", "FSEL",
    "FSETP", "HADD2", "HFMA2", "HMUL2", "I2F", "IADD3", "IMAD", "IMNMX", "ISETP", "LEA", "LOP3",
    "MOV", "MUFU", "PLOP3", "POPC", "PRMT", "SEL", "SHF", "VIADD", "VIMNMX",
];

/// A longer stall has another meaning together with the yield bit (docs/sass.md).
const MOST_STALL: u8 = 11;

fn remove(_: &DeadInstructions, site: &CubinSite, fuel: &mut Fuel) -> Outcome<Vec<u8>> {
    let mut elf = site.cubin.elf().clone();
    let mut removed = 0;
    loop {
        let (edit, count) = round(&elf, site.kernel, fuel)?;
        if count == 0 {
            break;
        }
        removed += count;
        edit.apply(&mut elf, site.kernel)?;
    }
    match removed {
        0 if fuel.left() > 0 => Err(Refusal::NothingToDo(
            "instruction whose result nobody reads and that can go",
        )),
        _ => {
            Ok(Rewritten::new(elf.write()?)
                .note(format!("{} removed", count(removed, "instruction"))))
        }
    }
}

/// The removals that do not touch each other, and how many they are.
fn round(elf: &Elf, kernel: &str, fuel: &mut Fuel) -> Result<(Edit, usize), Refusal> {
    let sections = elf.kernel(kernel)?;
    let code = Code::new(elf, &sections, Calls::Followed)?;
    if let Some(&inst) = code.opaque().first() {
        return Err(Refusal::UnknownInstruction(code.inst_text(inst)));
    }
    let mut all = (0..code.instructions().len() as u32).map(Inst);
    if let Some(rare) = all.find(|inst| code.roles(*inst).is_rare()) {
        let what = "an instruction's registers were seen too rarely to be relied on";
        return Err(Refusal::obstacle(what, code.inst_text(rare)));
    }
    let cfg = Cfg::new(&code);
    let liveness = Liveness::new(&code, &cfg);
    let insts = code.instructions();
    let mut edit = Edit::new();
    let mut count = 0;
    // The first instruction that no removal of this round has touched.
    let mut free = 0;
    for at in 1..insts.len().saturating_sub(1) {
        let inst = Inst(at as u32);
        let block = cfg.block_of(inst);
        let is_inside = [at - 1, at + 1].map(|n| cfg.block_of(Inst(n as u32)) == block);
        let is_free = at > free && is_inside == [true, true];
        if !is_free || !is_dead(&code, &cfg, &liveness, inst) || is_kept_for(&code, &cfg, inst) {
            continue;
        }
        let [mut before, own, mut behind] = [at - 1, at, at + 1].map(|n| insts[n].control());
        if own.write_barrier.is_some() || own.read_barrier.is_some() {
            continue;
        }
        if before.stall + own.stall > MOST_STALL || !fuel.burn() {
            continue;
        }
        before.stall += own.stall;
        before.reuse = 0;
        behind.wait_mask |= own.wait_mask;
        let controlled = |n: usize, control| {
            let changed = insts[n].with_control(control);
            changed.map_err(|error| Refusal::obstacle("a control field", error))
        };
        edit.replace(at - 1, controlled(at - 1, before)?);
        edit.replace(at + 1, controlled(at + 1, behind)?);
        edit.delete(at);
        free = at + 2;
        count += 1;
    }
    Ok((edit, count))
}

/// Does an instruction that is not the one before it keep an operand for this one? Without it the next load may write what
/// is kept (`filetests/sass/pass/dead-instructions-operand-kept.sass`).
fn is_kept_for(code: &Code, cfg: &Cfg, inst: Inst) -> bool {
    let first = cfg.first_inst(cfg.block_of(inst)).0;
    let reads = |at: u32, value| {
        let mut reads = false;
        code.for_each_use(Inst(at), |used| reads |= used == value);
        reads
    };
    let mut is_kept = false;
    code.for_each_use(inst, |value| {
        let reader = (first..inst.0).rev().find(|&at| reads(at, value));
        is_kept |= reader.is_some_and(|at| {
            at + 1 < inst.0 && code.instructions()[at as usize].control().reuse != 0
        });
    });
    is_kept
}

/// Does it compute something, do nothing else, and nobody reads it?
fn is_dead(code: &Code, cfg: &Cfg, liveness: &Liveness, inst: Inst) -> bool {
    let mnemonic = decode(code.instructions()[inst.0 as usize]).mnemonic();
    let operation = mnemonic.split('.').next().unwrap_or_default();
    let live = liveness.live_after(code, cfg, inst);
    let mut writes = false;
    let mut is_read = false;
    code.for_each_def(inst, |value| {
        writes = true;
        is_read |= live.contains(&value);
    });
    ARITHMETIC.contains(&operation) && writes && !is_read
}
