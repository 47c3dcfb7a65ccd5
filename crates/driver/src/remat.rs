//! The pass `remat`: You & Tsai's Algorithm 1 ([`warpwright_regs::remat`]), written down in PTX.
//!
//! Requires a kernel whose opcodes are all known. Every recomputed value gets a register of its own;
//! what is not touched stays byte-identical.

use std::collections::BTreeMap;

use warpwright_flow::{Function as _, Value};
use warpwright_ptx::edit::{EditError, Edits};
use warpwright_ptx::{FuncId, Inst as PtxInst, Module, Reg, Type, View, repeat};
use warpwright_regs::remat::{Hidden, Mask, Rules, Step, rematerialize};

use crate::context::{Context, Output, PassError, request};
use crate::spill;
use crate::spill_pass::each_kernel;
use crate::step::step;

/// What Algorithm 1 made of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewritten {
    /// The text of the whole module.
    pub text: String,
    /// The highest pressure before and now, in 32-bit registers, without what hiding takes.
    pub pressure: [u32; 2],
    /// Recomputations inserted.
    pub copies: usize,
    /// Definitions that nobody needed any more.
    pub deleted: usize,
    /// What that costs, loop-weighted, in simple instructions.
    pub cost: f64,
}

/// Lowers the register pressure of one kernel towards `goal` 32-bit registers by recomputing values.
/// Where nothing can be done, the text stays as it is.
///
/// # Errors
/// A kernel that has no body or an unknown instruction, by name.
pub fn recompute(
    module: &Module,
    kernel: FuncId,
    goal: u32,
    rules: Rules,
) -> Result<Rewritten, String> {
    let view = spill::view(module, kernel)?;
    let result = rematerialize(&view, goal, rules);
    let steps = result.rewrite.steps();
    let fresh: BTreeMap<Value, Value> = result.rewrite.fresh().collect();
    let text = Writer::new(&view, kernel, fresh).write(steps);
    let copies = steps.iter().filter(|step| step.is_copy).count();
    Ok(Rewritten {
        text: text.map_err(|e| e.to_string())?,
        pressure: [result.before, result.pressure],
        copies,
        deleted: view.inst_count() + copies - steps.len(),
        cost: result.cost,
    })
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

    fn write(mut self, steps: &[Step]) -> Result<String, EditError> {
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
    fn write_group(&mut self, inst: PtxInst, group: &[Step]) -> Result<(), EditError> {
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

    fn write_copy(&mut self, copy: &Step, lines: &mut Vec<String>) -> Result<(), EditError> {
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

fn register(value: Value) -> Reg {
    Reg::from_u32(value.0)
}

/// Options of the pass.
pub const OPTIONS: &[(&str, &str)] = &[(
    "rules",
    "`paper` for You & Tsai's conditions alone, else what goes beyond them, too",
)];

/// The pass. `--regs` is the goal; without it, the next stair of the occupancy staircase below the
/// pressure: the paper's desired register usage (Eq. 2) for one more block.
pub fn pass(module: &Module, context: &Context) -> Result<Output, PassError> {
    let rules = match context.option("rules") {
        None | Some("full") => Rules::Full,
        Some("paper") => Rules::Paper,
        Some(other) => return Err(request(format!("rules={other}: `paper` or `full`"))),
    };
    each_kernel(module, context, |site| {
        let view = spill::view(site.module, site.kernel)?;
        let goal = step(site, context.regs, spill::pressure(&view))?.registers;
        let rewritten = recompute(site.module, site.kernel, goal, rules)?;
        let said = describe(&rewritten, goal);
        match rewritten.copies {
            0 => Err(said),
            _ => Ok((rewritten.text, format!("{}: {said}", view.function().name))),
        }
    })
}

/// What was done, in a sentence.
pub fn describe(rewritten: &Rewritten, goal: u32) -> String {
    let [before, now] = rewritten.pressure;
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match rewritten.copies {
        0 if before <= goal => {
            format!("its pressure of {before} registers is within the goal of {goal}")
        }
        0 => format!("nothing that could be recomputed lowers its pressure of {before} registers"),
        copies => format!(
            "goal {goal}; {before} -> {now} registers live at most; {}, {} deleted, cost {}",
            plural(copies, "recomputation"),
            plural(rewritten.deleted, "definition"),
            rewritten.cost
        ),
    }
}
