//! The fewest cycles between dependent instructions, by what they are: the tables of `target`, and
//! what to do about pairs that they do not have.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use warpwright_target::issue_distances;

use super::pending::is_guard;
use super::timing::Class;
use super::walk::{Dependence, Kind, Operand};
use crate::function::register_of;
use crate::roles::{File, Role};

/// Which of an instruction's operands, where their times differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// No difference.
    Any,
    /// The guard, or the condition of a branch.
    Guard,
    /// The first half of a wide product.
    Low,
    /// The second half of a wide product.
    High,
    /// The first half of a wide addend.
    AddendLow,
    /// The second half of a wide addend.
    AddendHigh,
}

const PORTS: [(Port, &str); 6] = [
    (Port::Any, ""),
    (Port::Guard, ".guard"),
    (Port::Low, ".low"),
    (Port::High, ".high"),
    (Port::AddendLow, ".addlow"),
    (Port::AddendHigh, ".addhigh"),
];

const KINDS: [(Kind, &str); 3] = [(Kind::Raw, "raw"), (Kind::War, "war"), (Kind::Waw, "waw")];

const FILES: [(File, &str); 4] = [
    (File::Gpr, "R"),
    (File::Pred, "P"),
    (File::Uniform, "UR"),
    (File::UniformPred, "UP"),
];

/// Stands for all instructions.
const ANY: &str = "any";

/// The lowest bit of the addend's field.
const ADDEND: u8 = 64;

/// One side of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Side {
    /// What the instruction is.
    pub class: Class,
    /// Its operand.
    pub port: Port,
}

impl Side {
    fn of(operand: Operand, number: u16) -> Side {
        let (span, class) = (operand.span, operand.timing.class);
        let is_second = number != span.first;
        let is_wide = matches!(class, Class::Wide | Class::High) && span.file == File::Gpr;
        let (class, port) = match span.role {
            // The same for all instructions.
            _ if is_guard(span) => (Class::Control, Port::Guard),
            Role::Use if is_wide && span.bit == ADDEND && is_second => {
                (Class::Wide, Port::AddendHigh)
            }
            Role::Use if is_wide && span.bit == ADDEND => (Class::Wide, Port::AddendLow),
            Role::Def if is_wide && is_second => (class, Port::High),
            Role::Def if is_wide => (class, Port::Low),
            _ => (class, Port::Any),
        };
        Side { class, port }
    }

    fn read(text: &str) -> Option<Side> {
        let dot = text.find('.').unwrap_or(text.len());
        let port = PORTS.iter().find(|port| port.1 == &text[dot..])?.0;
        let class = Class::named(&text[..dot])?;
        Some(Side { class, port })
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let port = PORTS.iter().find(|port| port.0 == self.port);
        write!(f, "{}{}", self.class.name(), port.map_or("", |port| port.1))
    }
}

/// What a distance depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    kind: Kind,
    file: File,
    earlier: Option<Side>,
    later: Option<Side>,
}

impl Pair {
    /// The pair that a dependence belongs to; `None` for registers that nobody waits for.
    pub fn of(dependence: &Dependence) -> Option<Pair> {
        let (file, number) = register_of(dependence.value)?;
        let kind = dependence.kind;
        let is_predicate = matches!(file, File::Pred | File::UniformPred);
        let earlier = Side::of(dependence.earlier, number);
        let later = Side::of(dependence.later, number);
        Some(Pair {
            kind,
            file: match is_predicate && kind == Kind::War {
                true => File::Pred,
                false => file,
            },
            // All instructions read predicates when they are issued.
            earlier: Some(earlier).filter(|_| kind != Kind::War || !is_predicate),
            // Whoever writes later comes late enough once the sources have been read.
            later: Some(later).filter(|_| kind != Kind::War),
        })
    }
}

/// `raw R alu -> fma`, as the tables have it.
impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = KINDS.iter().find(|k| k.0 == self.kind).map_or("?", |k| k.1);
        let file = FILES.iter().find(|k| k.0 == self.file).map_or("?", |k| k.1);
        let name = |side: Option<Side>| side.map_or(ANY.to_owned(), |side| side.to_string());
        let (earlier, later) = (name(self.earlier), name(self.later));
        write!(f, "{kind} {file} {earlier} -> {later}")
    }
}

/// A distance and how often the pair was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Fewest cycles.
    pub cycles: u16,
    /// Pairs seen.
    pub count: u64,
    /// Kernels that showed it.
    pub kernels: u64,
}

/// The distances of one architecture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Distances {
    pairs: BTreeMap<Pair, Seen>,
    /// All pairs with the same earlier instruction, and with the same kind and file.
    coarse: BTreeMap<(Kind, File, Option<Side>), Seen>,
}

impl Distances {
    /// A pair that fewer kernels showed is not trusted to have shown its smallest distance.
    pub const TRUSTED: u64 = 20;

    /// The table of architecture `sm`, if there is one.
    pub fn for_sm(sm: u32) -> Option<&'static Distances> {
        static SM_90: OnceLock<Distances> = OnceLock::new();
        let rows = issue_distances(sm).filter(|_| sm == 90)?;
        Some(SM_90.get_or_init(|| {
            let mut distances = Distances::default();
            let side = |name| match name {
                ANY => Some(None),
                name => Side::read(name).map(Some),
            };
            for row in rows {
                let pair = || {
                    Some(Pair {
                        kind: KINDS.iter().find(|k| k.1 == row.dependence)?.0,
                        file: FILES.iter().find(|f| f.1 == row.file)?.0,
                        earlier: side(row.earlier)?,
                        later: side(row.later)?,
                    })
                };
                let seen = Seen {
                    cycles: row.cycles,
                    count: row.count,
                    kernels: row.kernels,
                };
                if let Some(pair) = pair() {
                    distances.add(pair, seen);
                }
            }
            distances
        }))
    }

    /// Takes in what was seen of a pair.
    pub fn add(&mut self, pair: Pair, seen: Seen) {
        self.pairs.insert(pair, seen);
        for side in [pair.earlier, None] {
            let place = self.coarse.entry((pair.kind, pair.file, side));
            let place = place.or_insert(seen);
            place.cycles = place.cycles.min(seen.cycles);
            // At least so many: the pairs' kernels may be the same ones.
            place.kernels = place.kernels.max(seen.kernels);
        }
    }

    /// All pairs.
    pub fn pairs(&self) -> &BTreeMap<Pair, Seen> {
        &self.pairs
    }

    /// The fewest cycles that correct code leaves. Where too few kernels showed the pair, the
    /// smallest distance behind the same class counts, then the smallest of all; where nothing like
    /// it was seen at all, no distance is enough.
    pub fn needed(&self, pair: Pair) -> u16 {
        let coarse = |side| self.coarse.get(&(pair.kind, pair.file, side));
        let own = self.pairs.get(&pair);
        let levels = [own, coarse(pair.earlier), coarse(None)];
        let seen = levels.into_iter().flatten();
        let trusted = seen.clone().find(|seen| seen.kernels >= Self::TRUSTED);
        let smallest = seen.map(|seen| seen.cycles).min();
        let needed = trusted.map(|seen| seen.cycles).or(smallest);
        needed.map_or(u16::MAX, |needed| needed.min(self.overtaking(pair)))
    }

    /// A result that comes later than another because it takes longer cannot be overwritten by it:
    /// what is enough for a write after write by the latencies of both.
    fn overtaking(&self, pair: Pair) -> u16 {
        let latency = |side: Option<Side>| {
            let seen = self.coarse.get(&(Kind::Raw, pair.file, side));
            seen.filter(|seen| side.is_some() && seen.kernels >= Self::TRUSTED)
        };
        match (pair.kind, latency(pair.earlier), latency(pair.later)) {
            (Kind::Waw, Some(earlier), Some(later)) => {
                1.max((earlier.cycles + 1).saturating_sub(later.cycles))
            }
            _ => u16::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_understood() {
        let table = Distances::for_sm(90).map_or(0, |table| table.pairs.len());
        assert_eq!(Some(table), issue_distances(90).map(Iterator::count));
        assert!(table > 100);
    }

    #[test]
    fn a_rare_pair_takes_the_smallest_distance_behind_its_class() {
        let side = |class| Side {
            class,
            port: Port::Any,
        };
        let pair = |later| Pair {
            kind: Kind::Raw,
            file: File::Gpr,
            earlier: Some(side(Class::Alu)),
            later: Some(side(later)),
        };
        let mut distances = Distances::default();
        let seen = |cycles, kernels| Seen {
            cycles,
            count: kernels,
            kernels,
        };
        distances.add(pair(Class::Fma), seen(5, 1000));
        distances.add(pair(Class::Double), seen(6, 1000));
        distances.add(pair(Class::Texture), seen(17, 3));
        assert_eq!(distances.needed(pair(Class::Double)), 6);
        assert_eq!(distances.needed(pair(Class::Texture)), 5);
        assert_eq!(distances.needed(pair(Class::Vote)), 5);
        let other = Pair {
            kind: Kind::Waw,
            ..pair(Class::Fma)
        };
        assert_eq!(distances.needed(other), u16::MAX);
    }
}
