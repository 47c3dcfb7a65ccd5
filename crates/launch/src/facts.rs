//! What is known of a kernel's launches, and who says so.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::guard::{Guard, Quantity};
use crate::launch::Launch;
use crate::values::Field;

/// Where a fact comes from; the later ones are less certain.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The user said so.
    Stated,
    /// A launch description says so.
    Described,
    /// A launch of the running program had it.
    Traced,
    /// The emulator counted it at a launch.
    Counted,
    /// Host code says so.
    Host,
    /// It is likely.
    #[default]
    Guessed,
}

impl Source {
    /// May a version be made for this alone? What is only read or guessed may be wrong, and a version for launches
    /// that do not come is of no use.
    pub fn is_exact(self) -> bool {
        self <= Source::Counted
    }
}

/// A fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known<T> {
    /// What is known.
    pub value: T,
    /// Who says so.
    pub source: Source,
}

/// An allocation that a pointer lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Which one: pointers with the same number share one.
    pub id: usize,
    /// Bytes from the pointer to its end.
    pub bytes: u64,
    /// The pointer is a multiple of it, in bytes: a power of two.
    pub align: u64,
}

/// What is known of a launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Threads per block.
    pub block: Option<Known<[u32; 3]>>,
    /// Blocks of the grid.
    pub grid: Option<Known<[u32; 3]>>,
    /// Blocks of a cluster; ones where there are none.
    pub cluster: Option<Known<[u32; 3]>>,
    /// Bytes of dynamic shared memory per block.
    pub dynamic_smem: Option<Known<u32>>,
    /// Values of scalar parameters, as bits without a sign.
    pub params: BTreeMap<Field, Known<u64>>,
    /// Where pointers lie.
    pub pointers: BTreeMap<Field, Known<Allocation>>,
    /// Mean trip counts of loops, by the line of the header in the text.
    pub trips: BTreeMap<u32, Known<f64>>,
}

/// Which facts a guard is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Parts {
    pub block: bool,
    pub grid: bool,
    pub cluster: bool,
    pub dynamic_smem: bool,
    pub params: bool,
}

impl Parts {
    /// All of them.
    pub const ALL: Parts = Parts {
        block: true,
        grid: true,
        cluster: true,
        dynamic_smem: true,
        params: true,
    };
}

impl Facts {
    /// All that a launch says.
    pub fn of(launch: &Launch, source: Source) -> Facts {
        let mut facts = Facts {
            block: known(launch.block, source),
            grid: known(launch.grid, source),
            cluster: known(launch.cluster.unwrap_or([1; 3]), source),
            dynamic_smem: known(launch.dynamic_smem, source),
            ..Facts::default()
        };
        for index in 0..launch.args.len() {
            facts.add_param(launch, index, source);
        }
        facts
    }

    /// A scalar is one field; a structure's bytes are fields of four, as far as they lie there in whole, the rest
    /// single bytes.
    fn add_param(&mut self, launch: &Launch, index: usize, source: Source) {
        let arg = &launch.args[index];
        let Ok(param) = u16::try_from(index) else {
            return;
        };
        let is_pointer = |at: usize| arg.pointers.iter().any(|p| (p.at..p.at + 8).contains(&at));
        let mut at = 0;
        while at < arg.bytes.len() {
            let field = piece(param, at, arg.bytes.len());
            let value = field.and_then(|field| Some((field, field.of(&arg.bytes)?)));
            if let Some((field, value)) = value.filter(|_| !is_pointer(at)) {
                self.params.insert(field, Known { value, source });
            }
            at += field.map_or(1, Field::bytes);
        }
        for pointer in &arg.pointers {
            let field = u32::try_from(pointer.at).ok();
            let field = field.and_then(|at| Field::new(param, at, 8));
            let buffer = launch.buffers().nth(pointer.of);
            if let (Some(field), Some(buffer)) = (field, buffer) {
                let from = (buffer.offset + pointer.offset) as u64;
                let lowest = from & from.wrapping_neg();
                let allocation = Allocation {
                    id: pointer.of,
                    bytes: buffer.size().saturating_sub(pointer.offset) as u64,
                    align: if from == 0 {
                        buffer.align as u64
                    } else {
                        lowest.min(buffer.align as u64)
                    },
                };
                self.pointers.insert(
                    field,
                    Known {
                        value: allocation,
                        source,
                    },
                );
            }
        }
    }

    /// What either knows; of two that know the same, the more certain one, and of equals this one.
    #[must_use]
    pub fn or(mut self, other: Facts) -> Facts {
        self.block = better(self.block, other.block);
        self.grid = better(self.grid, other.grid);
        self.cluster = better(self.cluster, other.cluster);
        self.dynamic_smem = better(self.dynamic_smem, other.dynamic_smem);
        merge(&mut self.params, other.params);
        merge(&mut self.pointers, other.pointers);
        merge(&mut self.trips, other.trips);
        self
    }

    /// The facts that a version may be made for alone.
    #[must_use]
    pub fn exact(mut self) -> Facts {
        self.block = self.block.filter(is_exact);
        self.grid = self.grid.filter(is_exact);
        self.cluster = self.cluster.filter(is_exact);
        self.dynamic_smem = self.dynamic_smem.filter(is_exact);
        self.params.retain(|_, known| is_exact(known));
        self.pointers.retain(|_, known| is_exact(known));
        self.trips.retain(|_, known| is_exact(known));
        self
    }

    /// The guard that such launches meet: what is known of the parts, pointers aside.
    pub fn guard(&self, parts: Parts) -> Guard {
        let dims = |known: Option<Known<[u32; 3]>>, wanted: bool| {
            known.filter(|_| wanted).map(|k| k.value)
        };
        let mut guard = Guard::always();
        if let Some(block) = dims(self.block, parts.block) {
            guard = guard.block(block);
        }
        if let Some(grid) = dims(self.grid, parts.grid) {
            guard = guard.grid(grid);
        }
        if let Some(cluster) = dims(self.cluster, parts.cluster) {
            guard = guard.cluster(cluster);
        }
        if let Some(smem) = self.dynamic_smem.filter(|_| parts.dynamic_smem) {
            guard = guard.equal(Quantity::DynamicShared, smem.value.into());
        }
        for (&field, known) in self.params.iter().filter(|_| parts.params) {
            guard = guard.equal(Quantity::Param(field), known.value);
        }
        guard
    }
}

#[allow(clippy::unnecessary_wraps)] // Every field is an option.
fn known<T>(value: T, source: Source) -> Option<Known<T>> {
    Some(Known { value, source })
}

/// The largest field that begins at a byte of a parameter of so many: eight where that is all of it, else four or less.
fn piece(param: u16, at: usize, size: usize) -> Option<Field> {
    let whole = if at == 0 && size == 8 { 8 } else { 4 };
    let sizes = [whole, 4, 2, 1];
    let fitting = sizes
        .into_iter()
        .filter(|&bytes| at + usize::from(bytes) <= size);
    let at = u32::try_from(at).ok()?;
    fitting
        .into_iter()
        .find_map(|bytes| Field::new(param, at, bytes))
}

fn is_exact<T>(known: &Known<T>) -> bool {
    known.source.is_exact()
}

fn better<T>(own: Option<Known<T>>, other: Option<Known<T>>) -> Option<Known<T>> {
    match (own, other) {
        (Some(own), Some(other)) => Some(if other.source < own.source {
            other
        } else {
            own
        }),
        (own, other) => own.or(other),
    }
}

fn merge<K: Ord + Copy, T: Copy>(own: &mut BTreeMap<K, Known<T>>, other: BTreeMap<K, Known<T>>) {
    for (key, known) in other {
        let mine = own.get(&key).copied();
        own.extend(better(mine, Some(known)).map(|best| (key, best)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainty_wins_and_guesses_make_no_guard() {
        let with = |block, source| Facts {
            block: known(block, source),
            ..Facts::default()
        };
        let traced = with([64, 1, 1], Source::Traced);
        let guessed = with([256, 1, 1], Source::Guessed);
        assert_eq!(guessed.clone().or(traced.clone()), traced);
        assert_eq!(traced.clone().or(guessed.clone()), traced);
        assert!(guessed.exact().guard(Parts::ALL).is_always());
        let guard = traced.exact().guard(Parts::ALL);
        assert_eq!(guard.to_string(), "block=64,1,1");
        assert!(Source::Counted.is_exact() && !Source::Host.is_exact());
    }

    #[test]
    fn structures_come_in_pieces() {
        let pieces = |size: usize| {
            let mut at = 0;
            let mut all = Vec::new();
            while at < size {
                let bytes = piece(0, at, size).map_or(1, Field::bytes);
                all.push(bytes);
                at += bytes;
            }
            all
        };
        assert_eq!(pieces(8), [8]);
        assert_eq!(pieces(11), [4, 4, 2, 1]);
        assert_eq!(pieces(2), [2]);
    }
}
