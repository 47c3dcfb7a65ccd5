//! What an instruction reads and writes: which registers, how many, in which role.
//!
//! The facts are data, one table per architecture under `tables/roles`, derived by
//! `warpwright-sassmine roles` from what `nvdisasm -plr` says about real and perturbed
//! instructions (docs/sass.md). An instruction that the table does not cover has no roles:
//! the function around it may be inspected, not transformed.

mod table;

use crate::inst::Instruction;
use smallvec::SmallVec;

pub use table::{CONTROL, Entry, Field, OPCODE, OURS, ParseError, Row, Slot, Table, is_usual};

/// A register file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    /// General registers R0 to R254; R255 is RZ.
    Gpr,
    /// Predicates P0 to P6; P7 is PT.
    Pred,
    /// Uniform registers, one per warp; the last one is URZ.
    Uniform,
    /// Uniform predicates UP0 to UP6; UP7 is UPT.
    UniformPred,
    /// Convergence barriers B0 to B15.
    Barrier,
}

/// What an instruction does to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads it.
    Use,
    /// Writes it.
    Def,
}

/// Consecutive registers of one file in one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Read or written.
    pub role: Role,
    /// The file.
    pub file: File,
    /// The first register.
    pub first: u16,
    /// How many: 2 for a pair, up to 128 for the accumulators of `wgmma`.
    pub count: u16,
    /// The lowest bit of the field that names the first register, which tells operands apart.
    pub bit: u8,
}

impl Span {
    /// The registers' numbers.
    pub fn registers(self) -> std::ops::Range<u16> {
        self.first..self.first + self.count
    }
}

/// Everything that one instruction reads and writes, its guard included.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Roles {
    spans: SmallVec<[Span; 8]>,
    is_rare: bool,
}

impl Roles {
    /// A row of the table that fewer instructions than this have confirmed is rare.
    pub const FEW: u64 = 20;

    /// Were they mined from few sightings? Then they may be those of a sibling with other modifiers: good
    /// enough to be shown, not to change code by.
    pub fn is_rare(&self) -> bool {
        self.is_rare
    }

    /// The roles of `inst`, or `None` if they are not known.
    pub fn of(inst: Instruction) -> Option<Roles> {
        Table::for_sm(inst.sm())?.roles(inst)
    }

    /// All spans, in the order of the instruction's bits, the guard last. RZ, URZ, PT and UPT name no register and do
    /// not appear.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// What is read.
    pub fn uses(&self) -> impl Iterator<Item = Span> + '_ {
        self.in_role(Role::Use)
    }

    /// What is written (perhaps: see [`Instruction::is_predicated`]).
    pub fn defs(&self) -> impl Iterator<Item = Span> + '_ {
        self.in_role(Role::Def)
    }

    fn in_role(&self, role: Role) -> impl Iterator<Item = Span> + '_ {
        self.spans.iter().copied().filter(move |s| s.role == role)
    }
}

impl FromIterator<Span> for Roles {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        Roles {
            spans: spans.into_iter().collect(),
            is_rare: false,
        }
    }
}
