//! The text of what the register passes decide: a draft ([`warpwright_regs::draft`]) written into its kernel. Loads,
//! stores, base addresses and recomputations are put in, what the draft no longer has goes, and operands that stand
//! for other registers than before get their names.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Function as _, Value};
use warpwright_ptx::spill as text;
use warpwright_ptx::{
    Dims, DirectiveKind, EditError, Edits, FuncId, Inst, Reg, Space, Type, View, repeat,
};
use warpwright_regs::draft::{Draft, Origin, Role};
use warpwright_regs::frame::Frame;
use warpwright_regs::remat::{Hidden, Mask};

use crate::ptx::facts::register;

/// Recomputations that are hidden, each with the name of the register that its source goes through.
pub(crate) type Masks = BTreeMap<warpwright_flow::Inst, (Hidden, String)>;

/// What the text depends on.
pub(crate) struct DraftCode<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) draft: &'a Draft,
    /// Slots in shared memory, and the variable that they lie in.
    pub(crate) shared: Option<(&'a Frame, &'a str)>,
    /// The same in local memory.
    pub(crate) local: Option<(&'a Frame, &'a str)>,
    /// The exact block, if the kernel requires one.
    pub(crate) block: Option<[u32; 3]>,
    /// The name that a register has in the text.
    pub(crate) name: &'a dyn Fn(Value) -> String,
    /// How recomputations are hidden.
    pub(crate) masks: &'a Masks,
}

impl DraftCode<'_> {
    /// Writes the draft into the kernel.
    pub(crate) fn write(&self, edits: &mut Edits<'_>, kernel: FuncId) -> Result<(), EditError> {
        // Code that was placed next to an instruction that is gone takes its place.
        let mut instead = self.missing();
        for at in self.draft.insts() {
            let lines = self.lines(at);
            match self.draft.origin(at) {
                Origin::Own(own) => self.rename(edits, kernel, at, inst(own)),
                Origin::Bases => edits.insert_at_entry(kernel, &lines)?,
                Origin::Load { before: own }
                | Origin::Store { after: own }
                | Origin::Copy { before: own, .. }
                    if instead.contains_key(&own) =>
                {
                    instead.entry(own).or_default().extend(lines);
                }
                Origin::Load { before } | Origin::Copy { before, .. } => {
                    edits.insert_before(kernel, inst(before), &lines);
                }
                Origin::Store { after } => edits.insert_after(kernel, inst(after), &lines),
            }
        }
        for (own, lines) in instead {
            edits.replace_by_lines(kernel, inst(own), &lines);
        }
        Ok(())
    }

    /// The kernel's own instructions that the draft no longer has.
    fn missing(&self) -> BTreeMap<warpwright_flow::Inst, Vec<String>> {
        let origins = self.draft.insts().map(|at| self.draft.origin(at));
        let kept: BTreeSet<_> = origins
            .filter_map(|origin| match origin {
                Origin::Own(own) => Some(own),
                _ => None,
            })
            .collect();
        let all = (0..self.view.inst_count() as u32).map(warpwright_flow::Inst);
        let gone = all.filter(|own| !kept.contains(own));
        gone.map(|own| (own, Vec::new())).collect()
    }

    /// Gives an instruction of the kernel's own the names of what it reads and writes now.
    fn rename(&self, edits: &mut Edits<'_>, kernel: FuncId, at: warpwright_flow::Inst, own: Inst) {
        let old = self.view.uses(own).into_iter().chain(self.view.defs(own));
        let new = self.draft.uses(at).iter().chain(self.draft.defs(at));
        let pairs: BTreeMap<Reg, Value> = old.zip(new).map(|(old, &new)| (old, new)).collect();
        for (old, new) in pairs {
            let name = (self.name)(new);
            if name != self.view.body().reg_name(old).to_string() {
                edits.rename_in(kernel, own, old, &name);
            }
        }
    }

    /// The lines of an instruction that the draft added.
    fn lines(&self, at: warpwright_flow::Inst) -> Vec<String> {
        match self.draft.origin(at) {
            Origin::Own(_) => Vec::new(),
            Origin::Bases => self.bases(at).unwrap_or_default(),
            Origin::Load { .. } | Origin::Store { .. } => self.access(at).into_iter().collect(),
            Origin::Copy { of, .. } => self.copy(at, inst(of)),
        }
    }

    /// An instruction once more, behind `(source xor mask) xor mask` if it is hidden.
    fn copy(&self, at: warpwright_flow::Inst, of: Inst) -> Vec<String> {
        let mut lines = Vec::new();
        let mask = self.masks.get(&at);
        if let Some((hidden, name)) = mask {
            let source = (self.name)(hidden.source);
            let mask = match hidden.mask {
                Mask::Constant(number) => number.to_string(),
                Mask::Value(value) => (self.name)(value),
            };
            let bits = type_of(self.view, self.draft, hidden.source).map_or(32, |ty| ty.bits());
            lines.push(format!("xor.b{bits} {name}, {source}, {mask};"));
            lines.push(format!("xor.b{bits} {name}, {name}, {mask};"));
        }
        let named = |value: Value| match mask {
            Some((hidden, name)) if hidden.source == value => name.clone(),
            _ => (self.name)(value),
        };
        let pairs = |old: &[Reg], new: &[Value]| {
            let new = new.iter().map(|&value| named(value));
            let mut pairs: Vec<(Reg, String)> = old.iter().copied().zip(new).collect();
            pairs.sort();
            pairs.dedup();
            pairs
        };
        let reads = pairs(&self.view.uses(of), self.draft.uses(at));
        let writes = pairs(&self.view.defs(of), self.draft.defs(at));
        lines.push(repeat::renamed(self.view, of, &reads, &writes));
        lines
    }

    fn bases(&self, at: warpwright_flow::Inst) -> Option<Vec<String>> {
        let (frame, area) = self.shared?;
        let mut scratch = Vec::new();
        let mut bases = Vec::new();
        for &value in self.draft.defs(at) {
            match self.draft.role(value) {
                Role::Base(size) => bases.push(((self.name)(value), frame.stride(size))),
                _ => scratch.push((self.name)(value)),
            }
        }
        let scratch = [&**scratch.first()?, &**scratch.get(1)?];
        let named = bases.iter().map(|(name, stride)| (&**name, *stride));
        let bases: Vec<(&str, u32)> = named.collect();
        Some(text::bases(area, self.block, scratch, &bases))
    }

    fn access(&self, at: warpwright_flow::Inst) -> Option<String> {
        let all = || {
            self.draft
                .defs(at)
                .iter()
                .chain(self.draft.uses(at))
                .copied()
        };
        let find = |is_it: fn(Role) -> bool| all().find(|&value| is_it(self.draft.role(value)));
        let value = find(|role| matches!(role, Role::Register(_)))?;
        let slot = find(|role| matches!(role, Role::Slot(_)))?;
        let within = |place: Option<(&Frame, &str)>| {
            let (frame, area) = place?;
            Some((frame.offset(frame.cell(slot)?), area.to_owned()))
        };
        let (space, offset, base) = match within(self.shared) {
            Some((offset, _)) => {
                let base = find(|role| matches!(role, Role::Base(_)))?;
                (Space::Shared, offset, (self.name)(base))
            }
            None => within(self.local).map(|(offset, area)| (Space::Local, offset, area))?,
        };
        let bits = type_of(self.view, self.draft, value)?.bits();
        let name = (self.name)(value);
        Some(match self.draft.origin(at) {
            Origin::Load { .. } => text::load(space, bits, &name, &base, offset),
            _ => text::store(space, bits, &name, &base, offset),
        })
    }
}

/// The type of the register that a value of a draft stands for, if it stands for one.
pub(crate) fn type_of(view: &View<'_>, draft: &Draft, value: Value) -> Option<Type> {
    match draft.role(value) {
        Role::Register(of) => Some(view.body().reg_type(register(of))),
        Role::Slot(_) | Role::Base(_) | Role::Scratch => None,
    }
}

/// Promises that no block is larger.
pub(crate) fn promise(edits: &mut Edits<'_>, kernel: FuncId, threads: u32) {
    let dims = Dims([threads, 1, 1].into_iter().collect());
    edits.set_directive(kernel, &DirectiveKind::MaxNtid(dims));
}

/// The kernel's instruction of this number.
fn inst(of: warpwright_flow::Inst) -> Inst {
    Inst::from_u32(of.0)
}
