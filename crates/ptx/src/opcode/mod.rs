//! The opcode table: which opcodes there are, what their operands are, what they do.
//!
//! The table is data: one line for each form of an instruction in `table/*.txt`, with the
//! heading of its section in the PTX ISA document. [`Opcode::parse`] matches an opcode text
//! against it once; everything else is a look-up. An opcode with a base word or a modifier that
//! no line accepts is *opaque*: it is kept as text and its semantics are unknown to us.
//!
//! `crates/ptx/src/opcode/table/README.md` tells how to add an instruction.

mod class;
mod expect;
mod form;
mod op;
mod reader;

use std::fmt;

use smallvec::SmallVec;

pub use class::{
    Control, Effect, Family, Features, LatencyClass, MinTarget, Role, Shape, SpaceSet,
};
pub use expect::Expected;
pub use form::{Form, Lanes, OperandSpec, Presence, Slot, TypeBase, TypeSpec};
pub use op::Op;

use crate::types::{Space, Type};
use form::{Plan, columns_of, nth_space, repeat_of, space_of, vector_of};
use reader::Table;

/// The rows of the table, in order.
pub fn table() -> &'static [Form] {
    &Table::builtin().forms
}

/// A full opcode text, such as `ld.global.nc.v4.f32`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opcode {
    /// The text.
    pub text: Box<str>,
    /// The base word; `None` if no instruction begins with it.
    pub op: Option<Op>,
    /// The types that the text names, in order: `[f16, f32]` in `cvt.rn.f16.f32`.
    pub types: SmallVec<[Type; 4]>,
    /// Vector length of `.v2`, `.v4`, `.v8`.
    pub vector: Option<u8>,
    /// The first state space that the text names; `None` is generic addressing.
    pub space: Option<Space>,
    /// The forms that accept it; empty for an opaque opcode.
    forms: SmallVec<[u16; 2]>,
}

impl Opcode {
    /// Takes an opcode text apart and looks it up in the table. Never fails: see
    /// [`Opcode::is_known`].
    pub fn parse(text: &str) -> Opcode {
        let mut parts = text.split('.');
        let op = parts.next().and_then(Op::from_word);
        let mods: SmallVec<[&str; 12]> = parts.collect();
        let accepting = |op| {
            let forms = Table::builtin().forms_of(op);
            forms.filter(|(_, f)| f.matches(&mods)).map(|(id, _)| id)
        };
        Opcode {
            text: text.into(),
            op,
            types: mods.iter().filter_map(|m| Type::parse(m)).collect(),
            vector: mods.iter().find_map(|m| vector_of(m)),
            space: mods.iter().find_map(|m| space_of(m)),
            forms: op.into_iter().flat_map(accepting).collect(),
        }
    }

    /// Does the table know the base word and every modifier? If not, the opcode is opaque.
    pub fn is_known(&self) -> bool {
        !self.forms.is_empty()
    }

    /// The modifiers with types, vector and state spaces among them, in order, without dots.
    pub fn mods(&self) -> impl Iterator<Item = &str> {
        self.text.split('.').skip(1)
    }

    /// Is this modifier (without a dot) in the text?
    pub fn has_mod(&self, modifier: &str) -> bool {
        self.mods().any(|m| m == modifier)
    }

    /// The state spaces that the text names, in order.
    pub fn spaces(&self) -> impl Iterator<Item = Space> {
        self.mods().filter_map(space_of)
    }

    /// The roles of this many operands; `None` if the opcode is opaque, does not take that many,
    /// or if their number alone does not tell them (`mbarrier.try_wait` has two optional operands
    /// of different roles): then [`Opcode::roles_of`] does.
    pub fn roles(&self, operands: usize) -> Option<SmallVec<[Role; 8]>> {
        let mut all = self.all_roles(operands, None);
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }

    /// The roles of operands written like this; `None` if the opcode is opaque or does not take such
    /// operands.
    pub fn roles_of(&self, shapes: &[Shape]) -> Option<SmallVec<[Role; 8]>> {
        let plan = self.plan_of(shapes)?;
        Some(plan.iter().map(|o| o.role).collect())
    }

    /// What registers may stand for each of these operands; see [`Opcode::roles_of`].
    pub fn expected_of(&self, shapes: &[Shape]) -> Option<SmallVec<[Expected; 8]>> {
        let plan = self.plan_of(shapes)?;
        Some(plan.iter().map(|o| self.expected(o)).collect())
    }

    /// The assignment in which the fewest scalars stand for vectors and the other way round
    /// (`tcgen05.mma` has an optional vector before, and an optional number after, a predicate).
    fn plan_of(&self, shapes: &[Shape]) -> Option<Plan<'static>> {
        let odd = |plan: &Plan| {
            let pairs = plan.iter().zip(shapes);
            let is_vector = |o: &OperandSpec| self.resolve_lanes(o.ty.lanes) != Lanes::One;
            pairs
                .filter(|(o, shape)| is_vector(o) != (**shape == Shape::Vector))
                .count()
        };
        self.plans(shapes.len(), Some(shapes)).min_by_key(odd)
    }

    /// The types that registers may have as operand `index` of `operands`; `None` if there is no
    /// such operand.
    pub fn operand_type(&self, index: usize, operands: usize) -> Option<Expected> {
        let plan = self.plan(operands, None)?;
        Some(self.expected(plan.get(index)?))
    }

    /// What an operand of one of its forms may be.
    pub fn expected(&self, spec: &OperandSpec) -> Expected {
        Expected {
            ty: self.resolve(spec.ty),
            wider: spec.ty.wider,
            lanes: self.resolve_lanes(spec.ty.lanes),
            second: spec.pair.and_then(|pair| self.resolve(pair)),
        }
    }

    /// Its effects beyond the result registers. An opaque opcode may do anything.
    pub fn effect(&self) -> Effect {
        let Some(form) = self.form() else {
            return Effect {
                reads: SpaceSet::ALL,
                writes: SpaceSet::ALL,
                strong: true,
                acquire: true,
                release: true,
                convergent: true,
                other: true,
                ..Effect::default()
            };
        };
        let mut effect = form.effect;
        if let Some(n) = form.reads_space {
            effect.reads = effect.reads | nth_space(self.spaces(), n);
        }
        if let Some(n) = form.writes_space {
            effect.writes = effect.writes | nth_space(self.spaces(), n);
        }
        for modifier in self.mods() {
            match modifier {
                "volatile" | "mmio" | "relaxed" => effect.strong = true,
                "acquire" => effect.acquire = true,
                "release" => effect.release = true,
                "acq_rel" | "sc" => {
                    effect.acquire = true;
                    effect.release = true;
                }
                "cc" => effect.carry_out = true,
                _ => {}
            }
        }
        effect.strong |= effect.accesses_memory() && (effect.acquire || effect.release);
        effect
    }

    /// Where control goes after it; [`Control::Next`] for an opaque opcode.
    pub fn control(&self) -> Control {
        self.form().map_or(Control::Next, |f| f.control)
    }

    /// Its family; `None` for an opaque opcode.
    pub fn family(&self) -> Option<Family> {
        self.form().map(|f| f.family)
    }

    /// Does its result depend on its register operands alone? Then it may be recomputed,
    /// repeated or moved. (Special registers such as `%clock` are operands: look at them too.)
    pub fn is_pure(&self) -> bool {
        self.is_known() && self.control() == Control::Next && self.effect().is_none()
    }

    /// Is it a load of memory that nobody writes while the kernel runs: constants, parameters,
    /// the non-coherent path (`ld.global.nc`, `ldu`)? Around a call `.param` is an ordinary
    /// variable: look at the address too.
    pub fn is_invariant_load(&self) -> bool {
        let effect = self.effect();
        let constant = self.op == Some(Op::Ld)
            && (matches!(self.space, Some(Space::Const)) || self.has_mod("nc"));
        let parameter = self.op == Some(Op::Ld) && matches!(self.space, Some(Space::Param));
        let quiet = !effect.strong && effect.writes.is_empty();
        self.is_known() && quiet && (constant || parameter || self.op == Some(Op::Ldu))
    }

    /// How it is executed; [`LatencyClass::Misc`] for an opaque opcode.
    pub fn latency_class(&self) -> LatencyClass {
        let Some(form) = self.form() else {
            return LatencyClass::Misc;
        };
        form.class.unwrap_or(match self.space {
            Some(Space::Shared) => LatencyClass::SharedLoad,
            Some(Space::Local) => LatencyClass::LocalLoad,
            Some(Space::Const) => LatencyClass::ConstLoad,
            Some(Space::Param) => LatencyClass::ParamLoad,
            _ => LatencyClass::GlobalLoad,
        })
    }

    /// Is it a 'long instruction' (see [`LatencyClass::is_long`])?
    pub fn is_long(&self) -> bool {
        self.latency_class().is_long()
    }

    /// PTX ISA version (major, minor) that introduced the form; single modifiers may be younger.
    pub fn min_version(&self) -> Option<(u8, u8)> {
        self.all_forms().map(|f| f.version).min()
    }

    /// Oldest target with the form; single modifiers may need more.
    pub fn min_target(&self) -> Option<MinTarget> {
        self.all_forms().map(|f| f.target).min()
    }

    /// Heading of the section of the PTX ISA document that describes it.
    pub fn section(&self) -> Option<&'static str> {
        self.form().map(|f| f.section)
    }

    fn all_forms(&self) -> impl Iterator<Item = &'static Form> {
        let table = Table::builtin();
        let forms = self.forms.iter();
        forms.filter_map(|&id| table.forms.get(usize::from(id)))
    }

    fn form(&self) -> Option<&'static Form> {
        self.all_forms().next()
    }

    fn plans<'a>(
        &'a self,
        count: usize,
        shapes: Option<&'a [Shape]>,
    ) -> impl Iterator<Item = Plan<'static>> + 'a {
        let forms = self.all_forms();
        forms.flat_map(move |f| f.plans(count, shapes, |m| self.has_mod(m)))
    }

    fn plan(&self, count: usize, shapes: Option<&[Shape]>) -> Option<Plan<'static>> {
        self.plans(count, shapes).next()
    }

    fn all_roles<'a>(
        &'a self,
        count: usize,
        shapes: Option<&'a [Shape]>,
    ) -> impl Iterator<Item = SmallVec<[Role; 8]>> + 'a {
        let plans = self.plans(count, shapes);
        plans.map(|plan| plan.iter().map(|o| o.role).collect())
    }

    /// Replaces what depends on the opcode by a number.
    fn resolve_lanes(&self, lanes: Lanes) -> Lanes {
        let count = match lanes {
            Lanes::OfOpcode => match self.vector {
                Some(n) => Some(n),
                None => return Lanes::One,
            },
            Lanes::Columns(divisor) => {
                let columns = self.mods().find_map(columns_of);
                columns.map(|n| (n / u16::from(divisor.max(1))) as u8)
            }
            Lanes::Repeat { times, over } => {
                let count = self.mods().find_map(repeat_of);
                count.and_then(|n| Some(n.checked_mul(times)?.div_ceil(over.max(1))))
            }
            Lanes::One | Lanes::Exactly(_) | Lanes::Any | Lanes::Pack => return lanes,
        };
        count.map_or(Lanes::Any, Lanes::Exactly)
    }

    fn resolve(&self, spec: TypeSpec) -> Option<Type> {
        let ty = match spec.base {
            TypeBase::Any => None,
            TypeBase::Fixed(ty) => Some(ty),
            TypeBase::Nth(n) => self.types.get(usize::from(n)).copied(),
        }?;
        if spec.double { double(ty) } else { Some(ty) }
    }
}

/// The integer type of twice the width.
fn double(ty: Type) -> Option<Type> {
    match ty {
        Type::U16 => Some(Type::U32),
        Type::S16 => Some(Type::S32),
        Type::U32 => Some(Type::U64),
        Type::S32 => Some(Type::S64),
        Type::U64 | Type::S64 | Type::B64 => Some(Type::B128),
        _ => None,
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
