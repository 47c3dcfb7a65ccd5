//! `remat`: recompute values instead of keeping them in registers.
//!
//! Goal: fewer live registers. Paper: You & Tsai 2011, section 2.2, Algorithm 1; what is recomputed and
//! where is decided in [`warpwright_regs::remat`], with its departures; here it is written down in PTX.
//!
//! Requires a kernel whose opcodes are all known. Every recomputed value gets a register of its own;
//! what is not touched stays byte-identical. Preserves what each thread computes, bit by bit; ptxas may
//! fuse other operations than before ([`fusion`]).

use std::collections::BTreeMap;

use warpwright_flow::{Function as _, Inst, Value};
use warpwright_ptx::edit::{EditError, Edits};
use warpwright_ptx::{FuncId, View};
use warpwright_regs::draft::{Draft, Origin, Role};
use warpwright_regs::remat::{Rematerialized, Rules, rematerialize};

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::ptx::draft_code::{DraftCode, Masks, type_of};
use crate::ptx::facts::{pressure, register, view};
use crate::ptx::fusion;
use crate::ptx::goal::goal;
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::Site;

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct Remat {
    /// 32-bit registers live at most; without it, the next step of the occupancy staircase below the
    /// pressure: the paper's desired register usage (Eq. 2) for one more block.
    pub registers: Option<u32>,
    /// Which rules apply.
    pub rules: Rules,
}

crate::words!(Rules: Rules::Full = "full", Rules::Paper = "paper");
crate::options!(Remat: [registers "32-bit registers live at most [default: one step of the staircase down]"];
    [rules: Rules = Rules::Full, "`paper` for You & Tsai's conditions alone, `full` for what goes beyond them, too"]);

impl Pass for Remat {
    const NAME: &'static str = "remat";
    const ABOUT: &'static str =
        "recompute values instead of keeping them in registers (You & Tsai)";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn work(&self) -> Work<Self> {
        Work::Ptx(|pass, site, fuel| {
            let now = pressure(&view(site.module, site.kernel)?);
            let goal = goal(site, pass.registers, now)?.registers;
            recompute(site, goal, pass.rules, fuel)
        })
    }
}

/// Lowers the register pressure of one kernel towards `goal` 32-bit registers by recomputing values.
///
/// # Errors
/// [`Refusal::WithinGoal`], [`Refusal::NothingHelps`], or what [`view`] says.
pub(crate) fn recompute(site: &Site, goal: u32, rules: Rules, fuel: &mut Fuel) -> Outcome<String> {
    let view = view(site.module, site.kernel)?;
    let result = rematerialize(&view, goal, rules, fuel.left());
    fuel.burn_up_to(result.rounds);
    let copies = copies(&result.draft).count();
    match copies {
        0 if result.before <= goal => {
            return Err(Refusal::WithinGoal {
                pressure: result.before,
                goal,
            });
        }
        0 => {
            return Err(Refusal::NothingHelps {
                means: "recomputed".into(),
                pressure: result.before,
            });
        }
        _ => {}
    }
    let deleted = view.inst_count() + copies - result.draft.inst_count();
    let text = write(&view, site.kernel, &result)?;
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let missed = match result.pressure > goal {
        true => ", which is above the goal",
        false => "",
    };
    let note = format!(
        "goal {goal}; {} -> {} registers live at most{missed}; {}, {} deleted, cost {}",
        result.before,
        result.pressure,
        plural(copies, "recomputation"),
        plural(deleted, "definition"),
        result.cost
    );
    let mut rewritten = Rewritten::new(text).note(note);
    rewritten.cost = result.cost;
    Ok(rewritten.careful(fusion::caution(site.module)))
}

/// Writes a draft with recomputations into its kernel: what they write, and what hides them, gets registers of its
/// own.
fn write(view: &View<'_>, kernel: FuncId, done: &Rematerialized) -> Result<String, EditError> {
    let draft = &done.draft;
    let mut edits = Edits::new(view.module());
    let declare = |edits: &mut Edits<'_>, like: Value| -> Result<String, EditError> {
        let name = edits.fresh_name("%remat");
        if let Some(ty) = type_of(view, draft, like) {
            edits.add_register(kernel, ty, &name)?;
        }
        Ok(name)
    };
    let mut names = BTreeMap::new();
    for at in copies(draft) {
        for &value in draft.defs(at) {
            names.insert(value, declare(&mut edits, value)?);
        }
    }
    let mut masks = Masks::new();
    for (&at, &hidden) in &done.hidden {
        masks.insert(at, (hidden, declare(&mut edits, hidden.source)?));
    }
    let name = |value| match (names.get(&value), draft.role(value)) {
        (Some(name), _) => name.clone(),
        (None, Role::Register(of)) => view.body().reg_name(register(of)).to_string(),
        (None, _) => String::new(),
    };
    let code = DraftCode {
        view,
        draft,
        shared: None,
        local: None,
        block: None,
        name: &name,
        masks: &masks,
    };
    code.write(&mut edits, kernel)?;
    edits.apply()
}

fn copies(draft: &Draft) -> impl Iterator<Item = Inst> + '_ {
    let is_copy = |&at: &Inst| matches!(draft.origin(at), Origin::Copy { .. });
    draft.insts().filter(is_copy)
}
