//! What the checker reports, and how it says it.

use warpwright_flow::{Function, Inst, Value};

use super::offset;
use super::reuse::ReuseFault;
use super::waits::GROUPS;
use super::walk::{Dependence, Kind};
use crate::function::Code;
use crate::text;

/// Something wrong with the control field of an instruction, or of one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where it shows.
    pub inst: Inst,
    /// What it is.
    pub hazard: Hazard,
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hazard {
    /// An access comes before an earlier one is over.
    Order {
        /// What must stay in order.
        kind: Kind,
        /// The first register concerned.
        register: Value,
        /// The instruction that comes first.
        earlier: Inst,
        /// Why it is not sure to be over.
        cause: Cause,
    },
    /// A reuse flag where none may be.
    Reuse {
        /// The source, from 0.
        slot: u8,
        /// Why not.
        fault: ReuseFault,
    },
    /// A scoreboard that a warp does not have.
    NoSuchScoreboard {
        /// Its number.
        scoreboard: u8,
    },
}

/// Why an access is not sure to be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Too few cycles on the shortest path.
    TooSoon {
        /// Cycles from issue to issue.
        cycles: u16,
        /// Cycles that are needed; 65,535 where no distance is known.
        needed: u16,
    },
    /// It counts on scoreboards, one bit each, and there is a path without a wait for any of them.
    NotAwaited {
        /// One bit each.
        scoreboards: u8,
    },
    /// It takes an unknown time and tells nobody when it is over.
    NoScoreboard,
}

impl Violation {
    /// A pair that is not in order.
    pub fn order(dependence: &Dependence, cause: Cause) -> Violation {
        Violation {
            inst: dependence.later.inst,
            hazard: Hazard::Order {
                kind: dependence.kind,
                register: dependence.value,
                earlier: dependence.earlier.inst,
                cause,
            },
        }
    }

    /// The same pair of instructions and the same kind of hazard?
    pub(super) fn is_about_the_same(&self, other: &Violation) -> bool {
        let key = |violation: &Violation| match violation.hazard {
            Hazard::Order { kind, earlier, .. } => Some((violation.inst, kind, earlier)),
            _ => None,
        };
        key(self).is_some() && key(self) == key(other)
    }

    /// The byte offset of the instruction where it shows.
    pub fn offset(&self) -> u64 {
        u64::from(offset(self.inst))
    }

    /// One line for a reader, with the instructions' texts.
    pub fn describe(&self, code: &Code) -> String {
        let line = |inst: Inst| {
            let at = u64::from(offset(inst));
            let text = text::instruction(code.instructions()[inst.0 as usize], at);
            format!("{at:#06x} `{text}`")
        };
        let here = line(self.inst);
        match self.hazard {
            Hazard::Order {
                kind,
                register,
                earlier,
                cause,
            } => {
                let leaves = code.leaves(self.inst);
                let (does, did) = match kind {
                    Kind::Raw if leaves => ("leads to code that may read", "writes"),
                    Kind::War if leaves => ("leads to code that may write", "reads"),
                    Kind::Raw => ("reads", "writes"),
                    Kind::War => ("writes", "reads"),
                    Kind::Waw => ("writes", "writes"),
                };
                let register = code.value_name(register);
                let earlier = line(earlier);
                format!("{here} {does} {register}, which {earlier} {did}: {cause}")
            }
            Hazard::Reuse { slot, fault } => {
                format!("{here} flags source {slot} for reuse, but {fault}")
            }
            Hazard::NoSuchScoreboard { scoreboard } => {
                format!("{here} names scoreboard {scoreboard}: there are six")
            }
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Cause::TooSoon {
                needed: u16::MAX, ..
            } => {
                write!(f, "how long that takes is not known")
            }
            Cause::TooSoon { cycles, needed } => {
                write!(f, "{cycles} cycles apart, {needed} are needed")
            }
            Cause::NotAwaited { scoreboards } => {
                let names = (0..8).filter(|b| scoreboards >> b & 1 != 0);
                let name = |b: u8| match 1 << b {
                    GROUPS => "gsb0".to_owned(),
                    _ => b.to_string(),
                };
                let names: Vec<String> = names.map(name).collect();
                write!(f, "nothing waits for scoreboard {}", names.join(" or "))
            }
            Cause::NoScoreboard => write!(f, "no scoreboard tells when that is over"),
        }
    }
}
