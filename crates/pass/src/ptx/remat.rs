//! `remat`: recompute values instead of keeping them in registers.
//!
//! Goal: fewer live registers. Paper: You & Tsai 2011, section 2.2, Algorithm 1; what is recomputed and
//! where is decided in [`warpwright_regs::remat`], with its departures; here it is written down in PTX.
//!
//! Requires a kernel whose opcodes are all known. Every recomputed value gets a register of its own;
//! what is not touched stays byte-identical. Preserves what each thread computes, bit by bit; ptxas may
//! fuse other operations than before ([`fusion`]).

use std::collections::BTreeMap;

use warpwright_flow::{Function as _, Value};
use warpwright_ptx::edit::{EditError, Edits};
use warpwright_ptx::{FuncId, Inst as PtxInst, Reg, Type, View, repeat};
use warpwright_regs::remat::{Hidden, Instance, Mask, Rules, rematerialize};

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::ptx::facts::{pressure, register, view};
use crate::ptx::fusion;
use crate::ptx::goal::goal;
use crate::refusal::Refusal;
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
    let steps = result.rewrite.steps();
    let copies = steps.iter().filter(|step| step.is_copy).count();
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
    let deleted = view.inst_count() + copies - steps.len();
    let fresh: BTreeMap<Value, Value> = result.rewrite.fresh().collect();
    let text = Writer::new(&view, site.kernel, fresh).write(steps)?;
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let note = format!(
        "goal {goal}; {} -> {} registers live at most; {}, {} deleted, cost {}",
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

/// Writes the steps of a plan into a kernel.
struct Writer<'a, 'm> {
    view: &'a View<'m>,
    kernel: FuncId,
    edits: Edits<'m>,
    /// The register that each fresh value repeats.
    fresh: BTreeMap<Value, Value>,
    /// The names of the fresh values in use.
    names: BTreeMap<Value, String>,
}

impl<'a, 'm> Writer<'a, 'm> {
    fn new(view: &'a View<'m>, kernel: FuncId, fresh: BTreeMap<Value, Value>) -> Self {
        Writer {
            edits: Edits::new(view.module()),
            names: BTreeMap::new(),
            view,
            kernel,
            fresh,
        }
    }

    fn write(mut self, steps: &[Instance]) -> Result<String, EditError> {
        for &(_, value) in steps.iter().flat_map(|step| &step.writes) {
            let name = self.declare(value)?;
            self.names.insert(value, name);
        }
        let mut rest = steps;
        for index in 0..self.view.inst_count() as u32 {
            let (group, after) = rest.split_at(rest.partition_point(|s| s.anchor.0 == index));
            rest = after;
            self.write_group(PtxInst::from_u32(index), group)?;
        }
        self.edits.apply()
    }

    /// The copies in front of an instruction, and the instruction itself if it is still there.
    fn write_group(&mut self, inst: PtxInst, group: &[Instance]) -> Result<(), EditError> {
        let mut lines = Vec::new();
        for copy in group.iter().filter(|step| step.is_copy) {
            self.write_copy(copy, &mut lines)?;
        }
        let Some(original) = group.iter().find(|step| !step.is_copy) else {
            self.edits.replace_by_lines(self.kernel, inst, &lines);
            return Ok(());
        };
        self.edits.insert_before(self.kernel, inst, &lines);
        for &(from, to) in &original.reads {
            let name = self.name(to);
            self.edits
                .rename_in(self.kernel, inst, register(from), &name);
        }
        Ok(())
    }

    fn write_copy(&mut self, copy: &Instance, lines: &mut Vec<String>) -> Result<(), EditError> {
        let of = PtxInst::from_u32(copy.of.0);
        let hidden = match copy.hidden {
            Some(hidden) => Some((hidden.source, self.hide(hidden, lines)?)),
            None => None,
        };
        let mut reads = Vec::new();
        for reg in self.view.uses(of) {
            let value = copy.read(Value(reg.as_u32()));
            reads.push(match &hidden {
                Some((source, name)) if *source == value => (reg, name.clone()),
                _ => (reg, self.name(value)),
            });
        }
        reads.sort();
        reads.dedup();
        let named = |&(from, to): &(Value, Value)| (register(from), self.name(to));
        let writes: Vec<(Reg, String)> = copy.writes.iter().map(named).collect();
        lines.push(repeat::renamed(self.view, of, &reads, &writes));
        Ok(())
    }

    /// Writes `(source xor mask) xor mask` to a new register; its name.
    fn hide(&mut self, hidden: Hidden, lines: &mut Vec<String>) -> Result<String, EditError> {
        let source = self.name(hidden.source);
        let mask = match hidden.mask {
            Mask::Constant(number) => number.to_string(),
            Mask::Value(value) => self.name(value),
        };
        let bits = self.type_of(hidden.source).bits();
        let name = self.declare(hidden.source)?;
        lines.push(format!("xor.b{bits} {name}, {source}, {mask};"));
        lines.push(format!("xor.b{bits} {name}, {name}, {mask};"));
        Ok(name)
    }

    /// Declares a register of the type of a value; its name.
    fn declare(&mut self, like: Value) -> Result<String, EditError> {
        let name = self.edits.fresh_name("%remat");
        let ty = self.type_of(like);
        self.edits.add_register(self.kernel, ty, &name)?;
        Ok(name)
    }

    fn type_of(&self, value: Value) -> Type {
        let origin = self.fresh.get(&value).copied().unwrap_or(value);
        self.view.body().reg_type(register(origin))
    }

    fn name(&self, value: Value) -> String {
        match self.names.get(&value) {
            Some(name) => name.clone(),
            None => self.view.body().reg_name(register(value)).to_string(),
        }
    }
}
