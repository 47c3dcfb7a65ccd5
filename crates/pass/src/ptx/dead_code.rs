//! `dead-code`: remove instructions of PTX whose results nobody reads.
//!
//! Goal: less register pressure, and less for the passes behind this one to look at; ptxas would drop the
//! same later. Method: liveness (Aho et al., Compilers, section 9.2.5), repeated until nothing is left.
//!
//! Requires a kernel whose opcodes are all known. Preserves what each thread computes; every instruction
//! with an effect, and every load of memory that may change, stays.

use warpwright_diag::count;
use warpwright_flow::{Cfg, Function as _, Inst, Liveness};
use warpwright_ptx::{Edits, Inst as PtxInst, Module};

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::ptx::facts::view;
use crate::refusal::Refusal;
use crate::site::Site;

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct DeadCode {}

crate::options!(DeadCode: []; []);

impl Pass for DeadCode {
    const NAME: &'static str = "dead-code";
    const ABOUT: &'static str = "remove instructions of PTX whose results nobody reads";

    fn work(&self) -> Work<Self> {
        Work::Ptx(remove)
    }
}

fn remove(_: &DeadCode, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    let mut text = site.module.source.to_string();
    let mut removed = 0;
    loop {
        let (module, _) = Module::parse(&site.module.name, &text);
        let here = Site {
            module: &module,
            ..*site
        };
        let mut dead = dead(&here)?;
        dead.truncate(usize::try_from(fuel.burn_up_to(dead.len() as u64)).unwrap_or(0));
        if dead.is_empty() {
            break;
        }
        let mut edits = Edits::new(&module);
        for inst in &dead {
            edits.delete_inst(site.kernel, PtxInst::from_u32(inst.0));
        }
        removed += dead.len();
        text = edits.apply()?;
    }
    match removed {
        0 if fuel.left() > 0 => Err(Refusal::NothingToDo(
            "instruction whose result nobody reads",
        )),
        _ => Ok(Rewritten::new(text).note(format!("{} removed", count(removed, "instruction")))),
    }
}

/// Instructions that compute something and do nothing else, and nobody reads it.
fn dead(site: &Site) -> Result<Vec<Inst>, Refusal> {
    let view = view(site.module, site.kernel)?;
    let cfg = Cfg::new(&view);
    let liveness = Liveness::new(&view, &cfg);
    let is_dead = |&inst: &Inst| {
        let data = &view.body().insts[PtxInst::from_u32(inst.0)];
        let mut writes = false;
        let mut is_read = false;
        let live = liveness.live_after(&view, &cfg, inst);
        view.for_each_def(inst, |value| {
            writes = true;
            is_read |= live.contains(&value);
        });
        site.module.opcode(data).is_pure() && writes && !is_read
    };
    let all = (0..view.inst_count() as u32).map(Inst);
    Ok(all.filter(is_dead).collect())
}
