//! What keeps its order though nobody waits: units that work in order, operation by operation, as far as ptxas has
//! been seen to rely on it.
//!
//! Which operations may go through one queue says `target`'s table of units; that two of them do, and that the
//! hardware keeps them in order, only code shows in which nothing else protects a register. So what is looked for
//! ([`Orders::looked_for`]) is every dependence that would be a hazard without an order; what is believed is what
//! was found (`warpwright-sassmine hazards`, docs/sass.md). What few kernels rely on is believed from as many
//! cycles on as lay between the two accesses: a sighting far apart may be chance, and says nothing of closer ones.
//!
//! Of two operations that are common in such orders, each by itself, what was seen of the pair is all that is believed:
//! there were occasions. Of others it is believed as far as their units have it.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use warpwright_target::{IssueUnits, TIMED_ARCHITECTURES, UnitOrder, generation, unit_orders};

use crate::roles::Role;

/// What an order is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OrderKind {
    /// A scoreboard of the later one tells that the earlier one has read its sources.
    Read,
    /// A scoreboard of the later one tells that the results of the earlier one have come.
    Result,
    /// The later one may write what the earlier one reads.
    War,
    /// The later one may write what the earlier one writes.
    Waw,
    /// The earlier one has read its sources when a barrier of the block is passed.
    Barrier,
}

const KINDS: [(OrderKind, &str); 5] = [
    (OrderKind::Read, "read"),
    (OrderKind::Result, "result"),
    (OrderKind::War, "war"),
    (OrderKind::Waw, "waw"),
    (OrderKind::Barrier, "barrier"),
];

impl OrderKind {
    /// What a scoreboard of a later instruction tells about an operand of this role.
    pub fn told(role: Role) -> OrderKind {
        match role {
            Role::Def => OrderKind::Result,
            Role::Use => OrderKind::Read,
        }
    }
}

/// Two operations that keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order {
    /// What for.
    pub kind: OrderKind,
    /// The earlier operation (bits 0 to 8 of the opcode).
    pub earlier: u16,
    /// The later one; 0 for a barrier.
    pub later: u16,
}

impl Order {
    fn read(row: &UnitOrder) -> Option<Order> {
        Some(Order {
            kind: KINDS.iter().find(|kind| kind.1 == row.kind)?.0,
            earlier: row.operations[0],
            later: row.operations[1],
        })
    }
}

/// `read 188 184`, as the tables have it.
impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = KINDS.iter().find(|kind| kind.0 == self.kind);
        let Order { earlier, later, .. } = self;
        write!(f, "{} {earlier:03x} {later:03x}", kind.map_or("?", |k| k.1))
    }
}

/// The orders of one architecture.
#[derive(Debug, Clone, Default)]
pub struct Orders {
    units: Option<&'static IssueUnits>,
    known: FxHashMap<Order, Sighted>,
    /// The same for all operations of two units.
    by_unit: FxHashMap<(OrderKind, &'static str, &'static str), Sighted>,
    /// Kernels that relied on an operation as the earlier one, and as the later one.
    kernels: FxHashMap<(OrderKind, u16, bool), u64>,
    /// What is needed, asked beforehand for operations that go through queues, by kind and the places of both.
    asked: Vec<Option<u16>>,
    /// Their places, by operation, and their number.
    places: Vec<Option<u8>>,
    side: usize,
    are_looked_for: bool,
}

/// How often an order was relied on.
#[derive(Debug, Clone, Copy)]
struct Sighted {
    /// Fewest cycles between the accesses.
    cycles: u16,
    kernels: u64,
}

impl Sighted {
    /// So many kernels do not rely on it by chance.
    const TRUSTED: u64 = 5;

    fn needed(self) -> u16 {
        match self.kernels >= Sighted::TRUSTED {
            true => 0,
            false => self.cycles,
        }
    }
}

/// Bits of an operation's number.
const OPERATION_BITS: u32 = 9;

/// Operations that so many kernels rely on are common.
const COMMON: u64 = 20;

/// No time is enough: the order is looked for.
pub(crate) const LOOKED_FOR: u16 = u16::MAX;

impl Orders {
    /// The orders of architecture `sm`, if anything is known of it.
    pub fn for_sm(sm: u32) -> Option<&'static Orders> {
        static TABLES: [OnceLock<Orders>; TIMED_ARCHITECTURES.len()] =
            [const { OnceLock::new() }; _];
        let place = TIMED_ARCHITECTURES.iter().position(|&known| known == sm)?;
        let rows = generation(sm).iter().filter_map(|&sm| unit_orders(sm));
        let rows = rows.flatten();
        // The test below finds rows that are not understood.
        let rows = rows.filter_map(|row| Some((Order::read(&row)?, row.cycles, row.kernels)));
        let units = IssueUnits::for_sm(sm)?;
        Some(TABLES[place].get_or_init(|| Orders::new(units, rows)))
    }

    /// From orders, each with the fewest cycles and the number of kernels that had it.
    pub fn new(
        units: &'static IssueUnits,
        rows: impl IntoIterator<Item = (Order, u16, u64)>,
    ) -> Orders {
        let mut orders = Orders {
            units: Some(units),
            ..Orders::default()
        };
        for (order, cycles, kernels) in rows {
            let own = Sighted { cycles, kernels };
            let join = |all: &mut Sighted| {
                all.cycles = cycles.min(all.cycles);
                all.kernels += kernels;
            };
            let known = orders.known.entry(order);
            known.and_modify(join).or_insert(own);
            if let Some(place) = orders.of_units(order) {
                let all = orders.by_unit.entry(place);
                all.and_modify(join).or_insert(own);
            }
            for (operation, is_later) in [(order.earlier, false), (order.later, true)] {
                let place = (order.kind, operation, is_later);
                *orders.kernels.entry(place).or_default() += kernels;
            }
        }
        orders.ask(units);
        orders
    }

    fn ask(&mut self, units: &'static IssueUnits) {
        let operations = 0..1 << OPERATION_BITS;
        let has_queue = |operation: &u16| {
            let unit = units.of(*operation);
            unit.is_some_and(|unit| unit.sources.is_some() || unit.results.is_some())
        };
        let operations: Vec<u16> = operations.filter(has_queue).collect();
        self.side = operations.len();
        self.places = vec![None; 1 << OPERATION_BITS];
        for (place, &operation) in operations.iter().enumerate() {
            self.places[usize::from(operation)] = u8::try_from(place).ok();
        }
        let mut asked = Vec::with_capacity(KINDS.len() * operations.len() * operations.len());
        for (kind, _) in KINDS {
            for &earlier in &operations {
                let order = |&later: &u16| Order {
                    kind,
                    earlier,
                    later,
                };
                let needed = operations.iter().map(order);
                asked.extend(needed.map(|order| self.find(order)));
            }
        }
        self.asked = asked;
    }

    fn of_units(&self, order: Order) -> Option<(OrderKind, &'static str, &'static str)> {
        let name = |operation| self.units?.of(operation).map(|unit| unit.name);
        let later = match order.kind {
            OrderKind::Barrier => "",
            _ => name(order.later)?,
        };
        Some((order.kind, name(order.earlier)?, later))
    }

    /// None is believed; a dependence says which one would keep it.
    pub fn looked_for() -> Orders {
        Orders {
            are_looked_for: true,
            ..Orders::default()
        }
    }

    /// The fewest cycles between two accesses that the order keeps; none if it is not known.
    pub fn needed(&self, order: Order) -> Option<u16> {
        if self.are_looked_for {
            return Some(LOOKED_FOR);
        }
        let place = |operation: u16| self.places.get(usize::from(operation)).copied().flatten();
        let Some((earlier, later)) = place(order.earlier).zip(place(order.later)) else {
            return self.find(order);
        };
        let row = order.kind as usize * self.side + usize::from(earlier);
        self.asked[row * self.side + usize::from(later)]
    }

    fn find(&self, order: Order) -> Option<u16> {
        let known = self.known.get(&order).copied().map(Sighted::needed);
        let sides = [(order.earlier, false), (order.later, true)];
        let is_common = |(operation, is_later)| {
            let kernels = self.kernels.get(&(order.kind, operation, is_later));
            kernels.is_some_and(|&kernels| kernels >= COMMON)
        };
        if sides.into_iter().all(is_common) {
            return known;
        }
        let of_units = || {
            let sighted = self.by_unit.get(&self.of_units(order)?)?;
            Some(sighted.needed())
        };
        known.into_iter().chain(of_units()).min()
    }

    /// Does a dependence say what would keep it?
    pub fn are_looked_for(&self) -> bool {
        self.are_looked_for
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_understood() {
        for sm in TIMED_ARCHITECTURES {
            let rows: Vec<_> = unit_orders(sm).into_iter().flatten().collect();
            assert!(rows.len() > 10, "sm_{sm}");
            assert!(rows.iter().all(|row| Order::read(row).is_some()), "sm_{sm}");
        }
    }
}
