//! Forms: the rows of the opcode table, and how an opcode is matched against them.

use smallvec::SmallVec;

use super::class::{Control, Effect, Family, LatencyClass, MinTarget, Role, Shape, SpaceSet};
use super::op::Op;
use crate::types::{Space, Type};

/// One row of the table: an opcode pattern, its operands and what it does.
#[derive(Clone, Debug)]
pub struct Form {
    /// Base word.
    pub op: Op,
    /// Modifiers in the order of the ISA document.
    pub slots: Vec<Slot>,
    /// Operands in order.
    pub operands: Vec<OperandSpec>,
    /// How it is executed; `None` for a load, whose state space decides.
    pub class: Option<LatencyClass>,
    /// Effects that hold for all opcodes of the form.
    pub effect: Effect,
    /// Memory read or written through the n-th state space that the opcode names.
    pub reads_space: Option<u8>,
    /// The same for writes.
    pub writes_space: Option<u8>,
    /// Where control goes.
    pub control: Control,
    /// Its family.
    pub family: Family,
    /// PTX ISA version that introduced it.
    pub version: (u8, u8),
    /// Last PTX ISA version that has it, if it was removed.
    pub until: Option<(u8, u8)>,
    /// Oldest target that has it.
    pub target: MinTarget,
    /// Operand text for the test that shows it to ptxas, where the roles do not suffice.
    pub sample: Option<&'static str>,
    /// Heading of its section in the ISA document.
    pub section: &'static str,
    /// Its pattern as written.
    pub pattern: &'static str,
    /// Where it stands: file and line.
    pub place: (&'static str, u32),
}

/// A place for one modifier.
#[derive(Clone, Debug)]
pub struct Slot {
    /// What may stand there.
    pub alternatives: SmallVec<[&'static str; 4]>,
    /// May it be missing?
    pub optional: bool,
}

impl Slot {
    fn accepts(&self, modifier: &str) -> bool {
        self.alternatives.contains(&modifier)
    }

    /// Is it a place for a type? (All alternatives of a slot are of one sort.)
    pub fn is_type(&self) -> bool {
        self.alternatives
            .first()
            .is_some_and(|a| Type::parse(a).is_some())
    }
}

/// What the table says of one operand.
#[derive(Clone, Debug)]
pub struct OperandSpec {
    /// Its name in the ISA document.
    pub name: &'static str,
    /// What is done with it.
    pub role: Role,
    /// Its type.
    pub ty: TypeSpec,
    /// For a destination pair `d|p`: the type of the second part.
    pub pair: Option<TypeSpec>,
    /// When it is there.
    pub presence: Presence,
}

/// When an operand is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Always,
    /// Or not.
    Optional,
    /// Just when the opcode has this modifier.
    With(&'static str),
}

/// The type of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSpec {
    /// Where it comes from.
    pub base: TypeBase,
    /// Twice as wide (`mul.wide`).
    pub double: bool,
    /// The register may be wider than the type (`ld`, `st`, `cvt`).
    pub wider: bool,
    /// Number of elements.
    pub lanes: Lanes,
}

/// Where the type of an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeBase {
    /// Not checked.
    Any,
    /// The n-th type that the opcode names.
    Nth(u8),
    /// Always this one.
    Fixed(Type),
}

/// How many elements an operand has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// One: no braces.
    One,
    /// As many as the opcode's `.v2`, `.v4`, `.v8` says; one without it.
    OfOpcode,
    /// A vector of this length.
    Exactly(u8),
    /// A vector of any length, or a scalar.
    Any,
    /// A scalar of the type, or a vector whose elements together are as wide (`mov`).
    Pack,
    /// The columns `N` of the opcode's matrix shape `.mMnNkK`, divided by this.
    Columns(u8),
    /// The count of the opcode's `.x1`, `.x2`, `.x4` …, times one number over another, rounded up.
    Repeat {
        /// Factor.
        times: u8,
        /// Divisor.
        over: u8,
    },
}

impl Form {
    /// Is this sequence of modifiers one of the form's?
    ///
    /// Every modifier must be used up by a slot and every required slot be filled. As in ptxas,
    /// the order of modifiers does not matter otherwise; types keep theirs, and so do modifiers
    /// that fit several slots.
    pub fn matches(&self, modifiers: &[&str]) -> bool {
        let mut free: SmallVec<[&str; 12]> = modifiers.iter().copied().collect();
        for slot in &self.slots {
            let found = if slot.is_type() {
                let first_type = free.iter().position(|m| Type::parse(m).is_some());
                first_type.filter(|&i| free.get(i).is_some_and(|m| slot.accepts(m)))
            } else {
                free.iter().position(|m| slot.accepts(m))
            };
            match found {
                Some(i) => {
                    free.remove(i);
                }
                None if slot.optional => {}
                None => return false,
            }
        }
        free.is_empty()
    }

    /// The specifications of `count` operands: every way to assign them, the one with the
    /// leftmost optional operands first. Empty if that number does not fit.
    ///
    /// `shapes` tells how the operands are written, if that is known: which stand in square brackets
    /// decides which of several optional operands are there.
    pub fn plans(
        &self,
        count: usize,
        shapes: Option<&[Shape]>,
        has: impl Fn(&str) -> bool,
    ) -> SmallVec<[Plan<'_>; 1]> {
        let is_present = |o: &&OperandSpec| match o.presence {
            Presence::With(m) => has(m),
            _ => true,
        };
        let specs: Plan = self.operands.iter().filter(is_present).collect();
        let mut plans = SmallVec::new();
        let mut fill = Fill {
            count,
            shapes,
            plan: Plan::new(),
            plans: &mut plans,
        };
        fill.rest(&specs);
        plans
    }
}

/// The specifications of an instruction's operands, in order.
pub type Plan<'a> = SmallVec<[&'a OperandSpec; 8]>;

/// Assigns operands to specifications in every way.
struct Fill<'a, 'b> {
    count: usize,
    shapes: Option<&'b [Shape]>,
    plan: Plan<'a>,
    plans: &'b mut SmallVec<[Plan<'a>; 1]>,
}

impl<'a> Fill<'a, '_> {
    fn rest(&mut self, specs: &[&'a OperandSpec]) {
        let Some((&spec, rest)) = specs.split_first() else {
            if self.plan.len() == self.count {
                self.plans.push(self.plan.clone());
            }
            return;
        };
        let shape = self.shapes.and_then(|s| s.get(self.plan.len()).copied());
        let fits = shape.is_none_or(|s| spec.may_stand(s == Shape::Bracketed));
        if self.plan.len() < self.count && fits {
            self.plan.push(spec);
            self.rest(rest);
            self.plan.pop();
        }
        if spec.presence == Presence::Optional {
            self.rest(rest);
        }
    }
}

impl OperandSpec {
    /// May it stand in square brackets, or without?
    fn may_stand(&self, in_brackets: bool) -> bool {
        let untyped = self.role == Role::Use && self.ty.base == TypeBase::Any;
        match in_brackets {
            true => self.role == Role::Address || untyped,
            false => self.role != Role::Address,
        }
    }
}

/// The state space that a modifier names.
pub(crate) fn space_of(modifier: &str) -> Option<Space> {
    match modifier {
        "const" => Some(Space::Const),
        "global" => Some(Space::Global),
        "local" => Some(Space::Local),
        "param" | "param::entry" | "param::func" => Some(Space::Param),
        "shared" | "shared::cta" | "shared::cluster" => Some(Space::Shared),
        "tex" => Some(Space::Tex),
        _ => None,
    }
}

/// The vector length that a modifier names.
pub(crate) fn vector_of(modifier: &str) -> Option<u8> {
    match modifier {
        "v2" => Some(2),
        "v4" => Some(4),
        "v8" => Some(8),
        _ => None,
    }
}

/// The columns of a matrix shape: 256 for `m64n256k16`.
pub(crate) fn columns_of(modifier: &str) -> Option<u16> {
    let (_, rest) = modifier.strip_prefix('m')?.split_once('n')?;
    rest.split_once('k')?.0.parse().ok()
}

/// The number of a repetition: 4 for `x4`.
pub(crate) fn repeat_of(modifier: &str) -> Option<u8> {
    modifier.strip_prefix('x')?.parse().ok()
}

/// The memories behind the `n`-th of these state spaces; generic when there are fewer.
pub(crate) fn nth_space(mut spaces: impl Iterator<Item = Space>, n: u8) -> SpaceSet {
    SpaceSet::of(spaces.nth(usize::from(n)))
}
