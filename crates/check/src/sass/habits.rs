//! What ptxas has been seen to do: `target`'s tables of distances and orders, read for the judge alone.
//!
//! * *Distances.* A result may be read, and a register overwritten, after as many cycles as ptxas often left between the
//!   same two operations; or as most operations of the same two classes come down to; or as the slowest class of
//!   readers needs behind the earlier one's class. Nothing that was seen rarely is enough.
//! * *Orders.* Two operations of one queue keep their order where code of ptxas relies on it.
//!
//! What these numbers mean, and how they were mined, stands in docs/sass.md. What is not in the tables is not enough.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use warpwright_sass::function::register_of;
use warpwright_sass::roles::{File, Role};
use warpwright_target::{
    IssueDistance, IssueUnits, generation, issue_distances, operation_distances, unit_orders,
};

use super::flight::{Dependence, Kind};
use super::timing::{Operand, Timed};

/// So many builds must come down to a smallest distance of two classes.
const TRUSTED: u64 = 10;
/// So many pairs of two operations, and builds that come down to the smallest distance, are often.
const OFTEN: (u64, u64) = (30, 5);
/// So many pairs of operations tell what their classes need.
const MANY: usize = 10;
/// So many kernels do not rely on an order by chance.
const RELIED_ON: u64 = 5;
/// Operations that so many kernels rely on are common: what was seen of two such is all that holds of them.
const COMMON: u64 = 20;

/// The lowest bit of the addend's field.
const ADDEND: u8 = 64;
/// Units, as the tables name them.
const CONTROL: &str = "control";
const WIDE: &str = "wide";
const SHARED: &str = "shared";
const MEMORY: &str = "memory";
/// All that takes an unknown time, as the one that writes second.
const LATE: &str = "late";
const AWAY: &str = "away";
/// Whatever it is.
const ANY: &str = "any";
/// A table's rows for pairs with a wait between the two: here waits take no time.
const WITH_WAIT: &str = "+wait";

/// Operands whose times differ, by their names in the tables.
const GUARD: &str = "guard";
const LOW: &str = "low";
const HIGH: &str = "high";
const ADDEND_LOW: &str = "addlow";
const ADDEND_HIGH: &str = "addhigh";

/// One side of a pair: a unit, and which operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Side(&'static str, &'static str);

impl Side {
    fn of(timed: Option<&Timed>, operand: Operand) -> Side {
        let Some(timed) = timed else {
            return Side(AWAY, "");
        };
        let span = operand.span;
        let is_second = register_of(operand.value).is_some_and(|known| known.1 != span.first);
        let is_wide = timed.unit.has_halves && span.file == File::Gpr;
        match span.role {
            // The same for all instructions.
            _ if operand.is_guard() => Side(CONTROL, GUARD),
            Role::Use if is_wide && span.bit == ADDEND => {
                Side(WIDE, if is_second { ADDEND_HIGH } else { ADDEND_LOW })
            }
            Role::Def if is_wide => Side(timed.unit.name, if is_second { HIGH } else { LOW }),
            _ => Side(timed.unit.name, ""),
        }
    }

    fn read(text: &'static str) -> Option<Side> {
        let (unit, port) = text.split_once('.').unwrap_or((text, ""));
        (unit != ANY).then_some(Side(unit, port))
    }

    /// Loads and stores of shared memory get their operands as those of global memory do.
    fn as_reader(self, units: &IssueUnits) -> Side {
        let reads = || {
            units
                .named(SHARED)
                .is_some_and(|unit| unit.sources.is_some())
        };
        match self {
            Side(SHARED, port) if port != GUARD && reads() => Side(MEMORY, port),
            other => other,
        }
    }
}

/// What a distance depends on: the order that is kept, the file, and both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Classes {
    kind: Kind,
    file: &'static str,
    earlier: Option<Side>,
    later: Option<Side>,
}

impl Classes {
    fn is_guarded(&self) -> bool {
        self.kind == Kind::Raw && self.later.is_some_and(|side| side.1 == GUARD)
    }

    /// A row of the tables; `None` for one with a wait.
    fn read(row: &IssueDistance, units: &IssueUnits) -> Option<Classes> {
        let kind = match row.dependence {
            "raw" => Kind::Raw,
            "war" => Kind::War,
            "waw" => Kind::Waw,
            _ => return None,
        };
        let later = Side::read(row.later).map(|side| match kind {
            Kind::Raw => side.as_reader(units),
            _ => side,
        });
        Some(Classes {
            kind,
            file: row.file,
            earlier: Side::read(row.earlier),
            later,
        })
    }
}

fn file_name(file: File) -> &'static str {
    match file {
        File::Gpr => "R",
        File::Pred => "P",
        File::Uniform => "UR",
        File::UniformPred => "UP",
        File::Barrier => "B",
    }
}

/// How close pairs were seen, and how often.
#[derive(Clone, Copy, Debug)]
struct Seen {
    cycles: u16,
    count: u64,
    closest: u64,
}

impl Seen {
    fn of(row: &IssueDistance) -> Seen {
        Seen {
            cycles: row.cycles,
            count: row.count,
            closest: row.closest,
        }
    }

    /// With what was seen of others, perhaps in the same builds.
    fn join(&mut self, other: Seen) {
        let closest = match self.cycles.cmp(&other.cycles) {
            std::cmp::Ordering::Less => self.closest,
            std::cmp::Ordering::Equal => self.closest.max(other.closest),
            std::cmp::Ordering::Greater => other.closest,
        };
        *self = Seen {
            cycles: self.cycles.min(other.cycles),
            count: self.count + other.count,
            closest,
        };
    }

    fn is_often(self) -> bool {
        (self.count, self.closest) >= OFTEN && self.closest >= OFTEN.1
    }
}

/// What one of two operations may count on, if the other works in the same queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum OrderKind {
    /// A scoreboard of the later one tells that the earlier one has read its sources.
    Read,
    /// A scoreboard of the later one tells that the earlier one's results have come.
    Result,
    /// The later one may write what the earlier one reads.
    War,
    /// The later one may write what the earlier one writes.
    Waw,
    /// When a barrier of the block is passed, the earlier one has read its sources.
    Barrier,
}

impl OrderKind {
    fn read(name: &str) -> Option<OrderKind> {
        Some(match name {
            "read" => OrderKind::Read,
            "result" => OrderKind::Result,
            "war" => OrderKind::War,
            "waw" => OrderKind::Waw,
            "barrier" => OrderKind::Barrier,
            _ => return None,
        })
    }

    /// What a later scoreboard tells of an operand.
    pub(super) fn told(role: Role) -> OrderKind {
        match role {
            Role::Def => OrderKind::Result,
            Role::Use => OrderKind::Read,
        }
    }
}

/// The earlier operation and the later one (0 for a barrier).
type Order = (OrderKind, u16, u16);

/// Kernels that relied on an order, and the fewest cycles between the two.
#[derive(Clone, Copy, Debug, Default)]
struct Relied {
    cycles: u16,
    kernels: u64,
}

impl Relied {
    fn join(&mut self, other: Relied) {
        self.cycles = match self.kernels {
            0 => other.cycles,
            _ => self.cycles.min(other.cycles),
        };
        self.kernels += other.kernels;
    }

    /// Few sightings say nothing of closer ones.
    fn needs(self) -> u16 {
        match self.kernels >= RELIED_ON {
            true => 0,
            false => self.cycles,
        }
    }
}

/// The tables of one architecture.
pub(super) struct Habits {
    units: &'static IssueUnits,
    /// By classes, where no wait stands between the two.
    classes: FxHashMap<Classes, Seen>,
    /// Behind each class what the slowest class of others needs that was seen often.
    slowest: FxHashMap<(Kind, &'static str, Option<Side>), u16>,
    /// By operations and the field of the operand.
    operations: FxHashMap<(Classes, [u16; 2], u8), Seen>,
    /// What most operations of two classes come down to.
    most: FxHashMap<Classes, u16>,
    orders: FxHashMap<Order, Relied>,
    orders_of_units: FxHashMap<(OrderKind, &'static str, &'static str), Relied>,
    /// Kernels that relied on an operation as the earlier one, and as the later one.
    relying: FxHashMap<(OrderKind, u16, bool), u64>,
    known: RefCell<FxHashMap<Order, Option<u16>>>,
}

impl Habits {
    /// Of architecture `sm`, one for all functions of a thread.
    pub(super) fn for_sm(sm: u32) -> Option<Rc<Habits>> {
        thread_local! {
            static KNOWN: RefCell<FxHashMap<u32, Rc<Habits>>> = RefCell::default();
        }
        if let Some(known) = KNOWN.with_borrow(|known| known.get(&sm).cloned()) {
            return Some(known);
        }
        let habits = Rc::new(Habits::read(sm)?);
        KNOWN.with_borrow_mut(|known| known.insert(sm, habits.clone()));
        Some(habits)
    }

    fn read(sm: u32) -> Option<Habits> {
        let mut habits = Habits {
            units: IssueUnits::for_sm(sm)?,
            classes: FxHashMap::default(),
            slowest: FxHashMap::default(),
            operations: FxHashMap::default(),
            most: FxHashMap::default(),
            orders: FxHashMap::default(),
            orders_of_units: FxHashMap::default(),
            relying: FxHashMap::default(),
            known: RefCell::default(),
        };
        habits.read_distances(sm)?;
        habits.read_operations(sm);
        habits.read_orders(sm);
        Some(habits)
    }

    fn read_distances(&mut self, sm: u32) -> Option<()> {
        for row in issue_distances(sm)?.filter(|row| !row.dependence.ends_with(WITH_WAIT)) {
            if let Some(classes) = Classes::read(&row, self.units) {
                let known = self.classes.entry(classes);
                let seen = Seen::of(&row);
                known.and_modify(|all| all.join(seen)).or_insert(seen);
            }
        }
        for (classes, seen) in self.classes.iter().filter(|row| row.1.closest >= TRUSTED) {
            let place = (classes.kind, classes.file, classes.earlier);
            let slowest = self.slowest.entry(place).or_default();
            *slowest = seen.cycles.max(*slowest);
        }
        Some(())
    }

    fn read_operations(&mut self, sm: u32) {
        for row in operation_distances(sm).into_iter().flatten() {
            if let Some(classes) = Classes::read(&row.pair, self.units) {
                let key = (classes, row.operations, row.bit);
                self.operations.insert(key, Seen::of(&row.pair));
            }
        }
        let mut all: FxHashMap<Classes, Vec<u16>> = FxHashMap::default();
        for ((classes, ..), seen) in self.operations.iter().filter(|row| row.1.is_often()) {
            all.entry(*classes).or_default().push(seen.cycles);
        }
        for (classes, mut cycles) in all.into_iter().filter(|(_, all)| all.len() >= MANY) {
            cycles.sort_unstable();
            self.most.insert(classes, cycles[cycles.len() / 2]);
        }
    }

    fn read_orders(&mut self, sm: u32) {
        let rows = generation(sm).iter().filter_map(|&sm| unit_orders(sm));
        for row in rows.flatten() {
            let Some(kind) = OrderKind::read(row.kind) else {
                continue;
            };
            let [earlier, later] = row.operations;
            let relied = Relied {
                cycles: row.cycles,
                kernels: row.kernels,
            };
            let order = (kind, earlier, later);
            self.orders.entry(order).or_default().join(relied);
            if let Some(place) = self.of_units(order) {
                self.orders_of_units.entry(place).or_default().join(relied);
            }
            for (operation, is_later) in [(earlier, false), (later, true)] {
                let all = self.relying.entry((kind, operation, is_later));
                *all.or_default() += row.kernels;
            }
        }
    }

    fn of_units(
        &self,
        (kind, earlier, later): Order,
    ) -> Option<(OrderKind, &'static str, &'static str)> {
        let name = |operation| self.units.of(operation).map(|unit| unit.name);
        let later = match kind {
            OrderKind::Barrier => "",
            _ => name(later)?,
        };
        Some((kind, name(earlier)?, later))
    }

    /// The fewest cycles between two operations from which on the later one speaks for the earlier one; `None` if
    /// nothing relies on that.
    pub(super) fn order(&self, kind: OrderKind, earlier: u16, later: u16) -> Option<u16> {
        let order = (kind, earlier, later);
        if let Some(&known) = self.known.borrow().get(&order) {
            return known;
        }
        let own = self.orders.get(&order).map(|relied| relied.needs());
        let is_common = |place| self.relying.get(&place).is_some_and(|&all| all >= COMMON);
        let needs = match is_common((kind, earlier, false)) && is_common((kind, later, true)) {
            true => own,
            false => {
                let of_units = self
                    .of_units(order)
                    .and_then(|place| self.orders_of_units.get(&place));
                own.into_iter()
                    .chain(of_units.map(|relied| relied.needs()))
                    .min()
            }
        };
        self.known.borrow_mut().insert(order, needs);
        needs
    }

    /// The classes of a dependence; `None` for what is in no table.
    fn classes(&self, dependence: &Dependence, timed: &[Timed]) -> Option<Classes> {
        let sides = [dependence.earlier, dependence.later].map(|one| one.timed(timed));
        let operands = [dependence.earlier.operand, dependence.later.operand];
        let is_packed =
            |at: usize| sides[at].is_some_and(|one| operands[at].is_packed(one.operation));
        if is_packed(0) || is_packed(1) {
            return None;
        }
        let kind = dependence.kind;
        let file = register_of(operands[0].value)?.0;
        let is_predicate = matches!(file, File::Pred | File::UniformPred);
        let is_late = sides[1].is_some_and(Timed::takes_unknown_time);
        let later = match kind {
            Kind::War | Kind::Waw if is_late => Side(LATE, ""),
            Kind::Raw => Side::of(sides[1], operands[1]).as_reader(self.units),
            _ => Side::of(sides[1], operands[1]),
        };
        let reads_predicate = kind == Kind::War && is_predicate;
        Some(Classes {
            kind,
            file: file_name(if reads_predicate { File::Pred } else { file }),
            // All instructions read predicates when they are issued.
            earlier: Some(Side::of(sides[0], operands[0])).filter(|_| !reads_predicate),
            later: Some(later),
        })
    }

    /// The fewest cycles that are enough for a dependence, whatever the code around it.
    pub(super) fn enough(&self, dependence: &Dependence, timed: &[Timed]) -> Option<u16> {
        let classes = self.classes(dependence, timed)?;
        let of_classes = || {
            [
                self.most(&classes),
                self.slowest(&classes),
                self.before_late(&classes),
            ]
        };
        let often = self.often(&classes, dependence, timed);
        [often].into_iter().chain(of_classes()).flatten().min()
    }

    fn often(&self, classes: &Classes, dependence: &Dependence, timed: &[Timed]) -> Option<u16> {
        let [earlier, later] = [dependence.earlier, dependence.later];
        let operation = |one: Option<&Timed>| one.map_or(0, |one| one.operation);
        let second = match classes.later {
            Some(Side(LATE, _)) => 0,
            _ => operation(later.timed(timed)),
        };
        let read = match dependence.kind {
            Kind::War => earlier.operand,
            Kind::Raw | Kind::Waw => later.operand,
        };
        let key = (
            *classes,
            [operation(earlier.timed(timed)), second],
            read.span.bit,
        );
        let seen = self.operations.get(&key).filter(|seen| seen.is_often());
        seen.map(|seen| seen.cycles)
    }

    fn most(&self, classes: &Classes) -> Option<u16> {
        self.most.get(classes).copied()
    }

    /// A guard is read long before data: nothing that was seen of other readers says anything of it.
    fn slowest(&self, classes: &Classes) -> Option<u16> {
        if classes.is_guarded() {
            return self.classes.get(classes).map(|seen| seen.cycles);
        }
        let kind = match classes.kind {
            Kind::War => Kind::War,
            Kind::Raw | Kind::Waw => Kind::Raw,
        };
        let slowest = self.slowest.get(&(kind, classes.file, classes.earlier))?;
        // What everybody can read has been written.
        Some(slowest + u16::from(classes.kind == Kind::Waw))
    }

    /// What takes an unknown time overwrites alike.
    fn before_late(&self, classes: &Classes) -> Option<u16> {
        let is_late = classes.kind == Kind::Waw && classes.later == Some(Side(LATE, ""));
        let seen = self
            .classes
            .get(classes)
            .filter(|seen| is_late && seen.closest >= TRUSTED);
        seen.map(|seen| seen.cycles)
    }
}
