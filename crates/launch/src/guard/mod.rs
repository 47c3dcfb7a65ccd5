//! Guards: under which conditions a version of a kernel is right and pays.

mod compiled;
mod satisfy;
mod set;
mod text;
mod written;

use std::collections::BTreeMap;

pub use compiled::CompiledGuard;
pub use set::Set;
pub use text::{GuardError, GuardProblem, Named, Signature};
pub use written::{CNames, PtxGuard, PtxNames};

use crate::values::{Field, LaunchValues, ParamBytes};

/// An extent of a block, a grid or a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Extent {
    X,
    Y,
    Z,
    /// The product of the three.
    Size,
}

/// What a condition is about. Its numbers have no sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// Threads per block.
    Block(Extent),
    /// Blocks of the grid.
    Grid(Extent),
    /// Blocks of a cluster.
    Cluster(Extent),
    /// Bytes of dynamic shared memory per block.
    DynamicShared,
    /// A scalar parameter's bits, or a pointer.
    Param(Field),
}

impl Extent {
    /// The three dimensions.
    pub const AXES: [Extent; 3] = [Extent::X, Extent::Y, Extent::Z];

    /// This extent of so many in x, y and z.
    pub fn of(self, dims: [u32; 3]) -> u64 {
        let [x, y, z] = dims.map(u64::from);
        match self {
            Extent::X => x,
            Extent::Y => y,
            Extent::Z => z,
            Extent::Size => x.saturating_mul(y).saturating_mul(z),
        }
    }
}

impl Quantity {
    /// Its value at a launch; `None` where there is no such parameter.
    pub fn of<P: ParamBytes + ?Sized>(self, launch: &LaunchValues<'_, P>) -> Option<u64> {
        Some(match self {
            Quantity::Block(extent) => extent.of(launch.block),
            Quantity::Grid(extent) => extent.of(launch.grid),
            Quantity::Cluster(extent) => extent.of(launch.cluster),
            Quantity::DynamicShared => launch.dynamic_smem.into(),
            Quantity::Param(field) => return launch.params.read(field),
        })
    }

    /// What it can be in any launch.
    fn natural(self) -> Set {
        let (low, high) = match self {
            Quantity::Block(extent) | Quantity::Grid(extent) | Quantity::Cluster(extent) => {
                let is_product = extent == Extent::Size;
                (
                    1,
                    if is_product {
                        u64::MAX
                    } else {
                        u32::MAX.into()
                    },
                )
            }
            Quantity::DynamicShared => (0, u32::MAX.into()),
            Quantity::Param(field) => (0, field.most()),
        };
        Set::new(low, high, 1).unwrap_or(Set::only(0))
    }

    /// Another extent of the same.
    fn along(self, extent: Extent) -> Option<Quantity> {
        match self {
            Quantity::Block(_) => Some(Quantity::Block(extent)),
            Quantity::Grid(_) => Some(Quantity::Grid(extent)),
            Quantity::Cluster(_) => Some(Quantity::Cluster(extent)),
            _ => None,
        }
    }

    /// What follows from others is looked for in this order: products before their factors, parts before wholes.
    fn rank(self) -> (bool, usize, Quantity) {
        match self {
            Quantity::Param(field) => (true, field.bytes(), self),
            Quantity::Block(extent) | Quantity::Grid(extent) | Quantity::Cluster(extent) => {
                (extent != Extent::Size, 0, self)
            }
            Quantity::DynamicShared => (true, 0, self),
        }
    }
}

/// Memory that does not overlap: so many bytes from a pointer, and so many from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Disjoint {
    /// The pointers: fields of eight bytes.
    pub pointers: [Field; 2],
    /// Bytes from each.
    pub bytes: [u64; 2],
}

impl Disjoint {
    /// Does it hold of these addresses?
    fn holds(self, [a, b]: [u64; 2]) -> bool {
        if a <= b && b - a >= self.bytes[0] {
            return true;
        }
        b <= a && a - b >= self.bytes[1]
    }
}

/// One condition of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A number is in a set.
    In(Quantity, Set),
    /// Two pieces of memory do not overlap.
    Disjoint(Disjoint),
}

/// A conjunction of conditions on a launch, in a normal form: at most one set for each quantity, none that follows
/// from the others.
///
/// It prints and parses (`block=256,1,1; grid.x<=65535; smem=0; param2:4=4096`), and is ordered by implication
/// ([`covers`](Guard::covers)). What it says of a launch ([`holds`](Guard::holds)) is what its compiled form says, and
/// its texts in C and PTX.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Guard {
    is_never: bool,
    sets: BTreeMap<Quantity, Set>,
    apart: BTreeMap<[Field; 2], [u64; 2]>,
}

impl Guard {
    /// Holds for every launch.
    pub fn always() -> Guard {
        Guard::default()
    }

    /// Holds for none.
    pub fn never() -> Guard {
        Guard {
            is_never: true,
            ..Guard::default()
        }
    }

    /// Does it hold for every launch?
    pub fn is_always(&self) -> bool {
        *self == Guard::default()
    }

    /// Does it hold for none? Such as its parts show; `false` proves nothing.
    pub fn is_never(&self) -> bool {
        self.is_never
    }

    /// The same with one more condition.
    #[must_use]
    pub fn with(mut self, condition: Condition) -> Guard {
        match condition {
            Condition::In(quantity, set) => self.restrict(quantity, Some(set)),
            Condition::Disjoint(disjoint) => self.separate(disjoint),
        }
        self.normal()
    }

    /// The same where a quantity has one value.
    #[must_use]
    pub fn equal(self, quantity: Quantity, value: u64) -> Guard {
        self.with(Condition::In(quantity, Set::only(value)))
    }

    /// The same where a quantity is in a range, and a multiple of `step`.
    #[must_use]
    pub fn within(self, quantity: Quantity, low: u64, high: u64, step: u64) -> Guard {
        match Set::new(low, high, step) {
            Some(set) => self.with(Condition::In(quantity, set)),
            None => Guard::never(),
        }
    }

    /// The same where a quantity is at most so much.
    #[must_use]
    pub fn at_most(self, quantity: Quantity, most: u64) -> Guard {
        self.within(quantity, 0, most, 1)
    }

    /// The same where a quantity is a multiple of `step`.
    #[must_use]
    pub fn multiple(self, quantity: Quantity, step: u64) -> Guard {
        self.within(quantity, 0, u64::MAX, step)
    }

    /// The same with this block.
    #[must_use]
    pub fn block(self, dims: [u32; 3]) -> Guard {
        self.dims(Quantity::Block, dims)
    }

    /// The same with this grid.
    #[must_use]
    pub fn grid(self, dims: [u32; 3]) -> Guard {
        self.dims(Quantity::Grid, dims)
    }

    /// The same with this cluster.
    #[must_use]
    pub fn cluster(self, dims: [u32; 3]) -> Guard {
        self.dims(Quantity::Cluster, dims)
    }

    fn dims(self, of: fn(Extent) -> Quantity, dims: [u32; 3]) -> Guard {
        let axes = Extent::AXES.into_iter().zip(dims);
        axes.fold(self, |guard, (axis, n)| guard.equal(of(axis), n.into()))
    }

    /// Both.
    #[must_use]
    pub fn and(&self, other: &Guard) -> Guard {
        let mut both = self.clone();
        both.is_never |= other.is_never;
        for condition in other.conditions() {
            match condition {
                Condition::In(quantity, set) => both.restrict(quantity, Some(set)),
                Condition::Disjoint(disjoint) => both.separate(disjoint),
            }
        }
        both.normal()
    }

    /// The conditions: numbers in the order of [`Quantity`], then memory.
    pub fn conditions(&self) -> impl Iterator<Item = Condition> {
        let numbers = (self.sets.iter()).map(|(&quantity, &set)| Condition::In(quantity, set));
        let apart = self.apart.iter();
        let memory =
            apart.map(|(&pointers, &bytes)| Condition::Disjoint(Disjoint { pointers, bytes }));
        numbers.chain(memory)
    }

    /// What a quantity can be where the guard holds.
    pub fn known(&self, quantity: Quantity) -> Set {
        let derived = self.derived(quantity);
        let direct = self.sets.get(&quantity).copied().unwrap_or(derived);
        derived.and(direct).unwrap_or(direct)
    }

    /// The one value that a quantity has where the guard holds.
    pub fn value(&self, quantity: Quantity) -> Option<u64> {
        self.known(quantity).value()
    }

    /// The value of all three dimensions.
    pub fn exact(&self, of: fn(Extent) -> Quantity) -> Option<[u32; 3]> {
        let value = |axis| u32::try_from(self.value(of(axis))?).ok();
        Some([value(Extent::X)?, value(Extent::Y)?, value(Extent::Z)?])
    }

    /// Does it hold for a launch? Not where it asks for parameters that are not there.
    pub fn holds<P: ParamBytes + ?Sized>(&self, launch: &LaunchValues<'_, P>) -> bool {
        let holds = |condition: Condition| match condition {
            Condition::In(quantity, set) => quantity.of(launch).is_some_and(|n| set.has(n)),
            Condition::Disjoint(disjoint) => {
                let read = |which: usize| launch.params.read(disjoint.pointers[which]);
                let addresses = read(0).zip(read(1));
                addresses.is_some_and(|(a, b)| disjoint.holds([a, b]))
            }
        };
        !self.is_never && self.conditions().all(holds)
    }

    /// Does it hold wherever the other holds? `true` is certain; `false` means that it was not seen.
    pub fn covers(&self, other: &Guard) -> bool {
        if self.is_never || other.is_never {
            return other.is_never;
        }
        self.conditions().all(|condition| match condition {
            Condition::In(quantity, set) => other.known(quantity).is_in(set),
            Condition::Disjoint(disjoint) => {
                let known = other.apart.get(&disjoint.pointers);
                known.is_some_and(|bytes| (0..2).all(|i| bytes[i] >= disjoint.bytes[i]))
            }
        })
    }

    /// Guards of which one holds wherever this one does not. `None` where a condition has no such opposite.
    pub fn complement(&self) -> Option<Vec<Guard>> {
        if self.is_never {
            return Some(vec![Guard::always()]);
        }
        let mut others = Vec::new();
        for condition in self.conditions() {
            let Condition::In(quantity, set) = condition else {
                return None;
            };
            if set.step() > 1 {
                return None;
            }
            let natural = quantity.natural();
            let below = set
                .low()
                .checked_sub(1)
                .and_then(|high| Set::new(natural.low(), high, 1));
            let above = set
                .high()
                .checked_add(1)
                .and_then(|low| Set::new(low, natural.high(), 1));
            let sides = below.into_iter().chain(above);
            others.extend(sides.map(|side| Guard::always().with(Condition::In(quantity, side))));
        }
        Some(others)
    }

    fn restrict(&mut self, quantity: Quantity, set: Option<Set>) {
        let before = self.sets.get(&quantity).copied();
        let before = before.unwrap_or(quantity.natural());
        match set.and_then(|set| before.and(set)) {
            Some(both) => drop(self.sets.insert(quantity, both)),
            None => self.is_never = true,
        }
    }

    /// Keeps memory apart; what overlaps itself never is.
    fn separate(&mut self, disjoint: Disjoint) {
        let Disjoint {
            mut pointers,
            mut bytes,
        } = disjoint;
        if pointers[0] > pointers[1] {
            pointers.reverse();
            bytes.reverse();
        }
        if pointers[0] == pointers[1] {
            self.is_never |= bytes[0] > 0 && bytes[1] > 0;
            return;
        }
        let known = self.apart.entry(pointers).or_insert([0; 2]);
        *known = [known[0].max(bytes[0]), known[1].max(bytes[1])];
    }

    /// Without what follows from the rest, or never.
    fn normal(mut self) -> Guard {
        let mut all: Vec<Quantity> = self.sets.keys().copied().collect();
        all.sort_by_key(|quantity| quantity.rank());
        for quantity in all {
            let (Some(&set), derived) = (self.sets.get(&quantity), self.derived(quantity)) else {
                continue;
            };
            self.is_never |= derived.and(set).is_none();
            match set.beyond(derived, quantity.natural()) {
                Some(rest) => self.sets.insert(quantity, rest),
                None => self.sets.remove(&quantity),
            };
        }
        if self.is_never { Guard::never() } else { self }
    }

    /// What other quantities say of one.
    fn derived(&self, quantity: Quantity) -> Set {
        let natural = quantity.natural();
        let more = match quantity {
            Quantity::Block(extent) | Quantity::Grid(extent) | Quantity::Cluster(extent) => {
                self.by_extents(quantity, extent)
            }
            Quantity::Param(field) => self.by_bits(field),
            Quantity::DynamicShared => None,
        };
        more.and_then(|more| natural.and(more)).unwrap_or(natural)
    }

    /// The stated set.
    fn stated(&self, quantity: Quantity) -> Set {
        let stated = self.sets.get(&quantity).copied();
        stated.unwrap_or(quantity.natural())
    }

    /// A product of its factors, and a factor of the product.
    fn by_extents(&self, quantity: Quantity, extent: Extent) -> Option<Set> {
        let others: Vec<Set> = Extent::AXES
            .into_iter()
            .filter(|&axis| axis != extent)
            .map(|axis| Some(self.stated(quantity.along(axis)?)))
            .collect::<Option<_>>()?;
        let product = |of: fn(Set) -> u64| {
            others
                .iter()
                .map(|&set| of(set))
                .fold(1, u64::saturating_mul)
        };
        let (low, high) = (product(Set::low), product(Set::high));
        if extent == Extent::Size {
            let step = others
                .iter()
                .try_fold(1u64, |all, set| all.checked_mul(set.divisor()));
            return Set::new(low, high, step.unwrap_or(1));
        }
        let size = self.stated(quantity.along(Extent::Size)?);
        Set::new(size.low().div_ceil(high), size.high() / low, 1)
    }

    /// A field of one around it, or of its halves.
    fn by_bits(&self, field: Field) -> Option<Set> {
        let around = self.sets.iter().find_map(|(&quantity, set)| {
            let Quantity::Param(whole) = quantity else {
                return None;
            };
            let shift = whole.shift_of(field).filter(|_| whole != field)?;
            Some(set.value()? >> shift & field.most())
        });
        around.or_else(|| self.bits(field)).map(Set::only)
    }

    /// The value that its halves make.
    fn bits(&self, field: Field) -> Option<u64> {
        let [low, high] = field.halves()?;
        let value = |part: Field| {
            let stated = self.sets.get(&Quantity::Param(part));
            stated
                .and_then(|set| set.value())
                .or_else(|| self.bits(part))
        };
        Some(value(high)? << (8 * low.bytes()) | value(low)?)
    }
}
