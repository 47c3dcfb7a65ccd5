//! The fewest cycles between dependent instructions, by what they are: the tables of `target`, and
//! what to do about pairs that they do not have.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use warpwright_target::{
    IssueDistance, IssueUnit, IssueUnits, TIMED_ARCHITECTURES, issue_distances, operation_distances,
};

use super::effect::{is_guard, is_packed};
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

/// Behind the kind of a pair with a wait between the two.
const WAIT: &str = "+wait";

/// Stands for all instructions.
const ANY: &str = "any";

/// The lowest bit of the addend's field.
const ADDEND: u8 = 64;

/// Whatever takes an unknown time takes long: all of that is one class where results overtake.
const LATE: Side = Side {
    class: Class("late"),
    port: Port::Any,
};

/// The units of shared and of global memory.
const SHARED: &str = "shared";
const MEMORY: &str = "memory";

/// Integer arithmetic.
const ARITHMETIC: Side = Side {
    class: Class("alu"),
    port: Port::Any,
};

/// What moves predicates into a register: the same pipe, and a result no sooner than arithmetic's.
const PREDICATES: Side = Side {
    class: Class("p2r"),
    port: Port::Any,
};

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
        let (span, class) = (operand.span, operand.timing.class());
        let is_second = number != span.first;
        let is_wide = operand.timing.unit.has_halves && span.file == File::Gpr;
        let (class, port) = match span.role {
            // The same for all instructions.
            _ if is_guard(span) => (Class::CONTROL, Port::Guard),
            Role::Use if is_wide && span.bit == ADDEND && is_second => {
                (Class::WIDE, Port::AddendHigh)
            }
            Role::Use if is_wide && span.bit == ADDEND => (Class::WIDE, Port::AddendLow),
            Role::Def if is_wide && is_second => (class, Port::High),
            Role::Def if is_wide => (class, Port::Low),
            _ => (class, Port::Any),
        };
        Side { class, port }
    }

    fn read(text: &str, units: &'static IssueUnits) -> Option<Side> {
        let dot = text.find('.').unwrap_or(text.len());
        let port = PORTS.iter().find(|port| port.1 == &text[dot..])?.0;
        let class = Class(units.named(&text[..dot])?.name);
        Some(Side { class, port })
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let port = PORTS.iter().find(|port| port.0 == self.port);
        write!(f, "{}{}", self.class.0, port.map_or("", |port| port.1))
    }
}

/// What a distance depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    kind: Kind,
    /// Somebody waits for a scoreboard between the two, or the later one does: ptxas may know that it takes time.
    has_wait: bool,
    file: File,
    earlier: Option<Side>,
    later: Option<Side>,
}

impl Pair {
    /// The pairs that a dependence belongs to, each with its cycles: along paths without a wait for a scoreboard, and
    /// along others where they are shorter. None for registers that nobody waits for.
    pub fn all(dependence: &Dependence) -> impl Iterator<Item = (Pair, u16)> + use<> {
        let Dependence {
            cycles, waitless, ..
        } = *dependence;
        let with_wait = Some(cycles).filter(|&cycles| waitless.is_none_or(|own| cycles < own));
        let pair = Pair::of(dependence);
        let both = [(false, waitless), (true, with_wait)];
        both.into_iter()
            .filter_map(move |(has_wait, cycles)| Some((Pair { has_wait, ..pair? }, cycles?)))
    }

    /// The pair that a dependence belongs to where nothing waits.
    pub(crate) fn of(dependence: &Dependence) -> Option<Pair> {
        if is_packed(&dependence.earlier) || is_packed(&dependence.later) {
            return None;
        }
        let (file, number) = register_of(dependence.value)?;
        let kind = dependence.kind;
        let is_predicate = matches!(file, File::Pred | File::UniformPred);
        let earlier = Side::of(dependence.earlier, number);
        let mut later = Side::of(dependence.later, number);
        if kind != Kind::Raw && dependence.later.timing.is_late {
            later = LATE;
        }
        later = later.as_read(kind, dependence.later.timing.unit);
        Some(Pair {
            kind,
            has_wait: false,
            file: match is_predicate && kind == Kind::War {
                true => File::Pred,
                false => file,
            },
            // All instructions read predicates when they are issued.
            earlier: Some(earlier).filter(|_| kind != Kind::War || !is_predicate),
            later: Some(later),
        })
    }
}

impl Side {
    /// Loads and stores of shared memory get their operands the way that those of global memory do: where
    /// enough pairs of both were seen, they have the same distances on every architecture.
    fn as_read(self, kind: Kind, unit: &IssueUnit) -> Side {
        let is_guard = self.port == Port::Guard;
        let reads_alike = unit.name == SHARED && unit.sources.is_some() && !is_guard;
        match kind == Kind::Raw && reads_alike {
            true => Side {
                class: Class(MEMORY),
                ..self
            },
            false => self,
        }
    }
}

impl Pair {
    /// Is the later operand a guard that the earlier one writes?
    fn is_guarded(self) -> bool {
        let is_guard = |side: Side| side.port == Port::Guard;
        self.kind == Kind::Raw && self.later.is_some_and(is_guard)
    }

    fn read(row: &IssueDistance, units: &'static IssueUnits) -> Option<Pair> {
        let side = |name| match name {
            ANY => Some(None),
            name => Side::read(name, units).map(Some),
        };
        let (kind, wait) = row.dependence.split_at_checked(3)?;
        let kind = KINDS.iter().find(|k| k.1 == kind)?.0;
        let later = side(row.later)?;
        let unit = later.and_then(|side| units.named(side.class.0));
        Some(Pair {
            kind,
            has_wait: match wait {
                "" => false,
                WAIT => true,
                _ => return None,
            },
            file: FILES.iter().find(|f| f.1 == row.file)?.0,
            earlier: side(row.earlier)?,
            later: later.map(|side| unit.map_or(side, |unit| side.as_read(kind, unit))),
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
        let wait = if self.has_wait { WAIT } else { "" };
        write!(f, "{kind}{wait} {file} {earlier} -> {later}")
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
    /// Kernels that showed it so close.
    pub closest: u64,
}

impl Seen {
    /// A distance that several kernels come down to is the smallest one; one that a single kernel
    /// shows may be chance.
    fn is_trusted(self) -> bool {
        self.closest >= Distances::TRUSTED
    }

    /// Takes in what was seen of other pairs of the same kind, perhaps in the same kernels.
    fn join(&mut self, other: Seen) {
        let closest = match self.cycles.cmp(&other.cycles) {
            Ordering::Less => self.closest,
            Ordering::Equal => self.closest.max(other.closest),
            Ordering::Greater => other.closest,
        };
        *self = Seen {
            cycles: self.cycles.min(other.cycles),
            count: self.count + other.count,
            kernels: self.kernels.max(other.kernels),
            closest,
        };
    }
}

/// The distances of one architecture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Distances {
    pairs: FxHashMap<Pair, Seen>,
    /// All pairs with the same earlier instruction, and with the same kind and file, with waits and without.
    coarse: FxHashMap<(Kind, bool, File, Option<Side>), Seen>,
    /// Cycles until a result can be read, by the unit that makes it, and by the fastest of all.
    latencies: FxHashMap<(File, Option<Side>), u16>,
    /// Behind each class, what the slowest class of others needs that was seen often.
    slowest: FxHashMap<(Kind, File, Option<Side>), u16>,
}

impl Distances {
    /// So many kernels must come down to the smallest distance of a pair.
    pub const TRUSTED: u64 = 10;

    /// The table of architecture `sm`, if there is one.
    pub fn for_sm(sm: u32) -> Option<&'static Distances> {
        static TABLES: [OnceLock<Distances>; TIMED_ARCHITECTURES.len()] =
            [const { OnceLock::new() }; TIMED_ARCHITECTURES.len()];
        let place = TIMED_ARCHITECTURES.iter().position(|&known| known == sm)?;
        let rows = issue_distances(sm)?;
        let units = IssueUnits::for_sm(sm)?;
        Some(TABLES[place].get_or_init(|| {
            let mut distances = Distances::default();
            for row in rows {
                // The test below finds rows that are not understood.
                if let Some(pair) = Pair::read(&row, units) {
                    let seen = Seen {
                        cycles: row.cycles,
                        count: row.count,
                        kernels: row.kernels,
                        closest: row.closest,
                    };
                    distances.add(pair, seen);
                }
            }
            distances.find_slowest();
            distances
        }))
    }

    /// Takes in what was seen of a pair.
    pub fn add(&mut self, pair: Pair, seen: Seen) {
        let known = self.pairs.entry(pair);
        known.and_modify(|known| known.join(seen)).or_insert(seen);
        let is_addend = |side: Side| matches!(side.port, Port::AddendLow | Port::AddendHigh);
        // Addends are read later than other sources: they say nothing about latencies.
        if pair.kind == Kind::Raw
            && !pair.has_wait
            && seen.is_trusted()
            && !pair.later.is_some_and(is_addend)
        {
            for side in [pair.earlier, None] {
                let latency = self.latencies.entry((pair.file, side)).or_insert(u16::MAX);
                *latency = seen.cycles.min(*latency);
            }
        }
        for side in [pair.earlier, None] {
            let place = self
                .coarse
                .entry((pair.kind, pair.has_wait, pair.file, side));
            place.and_modify(|known| known.join(seen)).or_insert(seen);
        }
    }

    fn find_slowest(&mut self) {
        let often = self.pairs.iter();
        let often = often.filter(|(pair, seen)| !pair.has_wait && seen.is_trusted());
        for (pair, seen) in often {
            let place = (pair.kind, pair.file, pair.earlier);
            let slowest = self.slowest.entry(place).or_default();
            *slowest = seen.cycles.max(*slowest);
        }
    }

    /// All pairs, ascending.
    pub fn pairs(&self) -> BTreeMap<Pair, Seen> {
        self.pairs
            .iter()
            .map(|(pair, seen)| (*pair, *seen))
            .collect()
    }

    /// The fewest cycles that correct code leaves. A guard is read long before data: what was seen of it counts,
    /// however rarely, and nothing that was seen of other readers (a device found a guard wrong that came behind its
    /// UISETP as soon as data may; ptxas leaves 11 cycles). Where too few kernels come down to the smallest
    /// distance of the pair, the smallest behind the same class counts; where nothing behind that class was
    /// seen, the smallest of all; and where nothing like it was seen at all, no distance is enough. That sources are
    /// read late is not taken from a single kernel, nor from what is no slower than arithmetic.
    pub fn needed(&self, pair: Pair) -> u16 {
        let own = self.seen(pair);
        match (pair.kind, pair.later) {
            (Kind::War, Some(PREDICATES)) => own.min(self.seen(Pair {
                later: Some(ARITHMETIC),
                ..pair
            })),
            _ => own,
        }
    }

    fn seen(&self, pair: Pair) -> u16 {
        let known = |pair: Pair| {
            let coarse = |side: Option<Side>| {
                let place = (pair.kind, pair.has_wait, pair.file, side);
                let is_chance = |seen: &Seen| pair.kind == Kind::War && seen.kernels < 2;
                let seen = self.coarse.get(&place);
                seen.filter(|seen| side.is_none() || !is_chance(seen))
            };
            let own = self.pairs.get(&pair);
            if pair.is_guarded() && own.is_some() {
                return own.map_or(u16::MAX, |seen| seen.cycles);
            }
            let own = own.filter(|seen| seen.is_trusted());
            let seen = own.or(coarse(pair.earlier)).or(coarse(None));
            seen.map_or(u16::MAX, |seen| seen.cycles)
        };
        let waitless = Pair {
            has_wait: false,
            ..pair
        };
        // A wait takes no less than no time.
        known(pair).min(known(waitless)).min(self.overtaking(pair))
    }

    /// The cycles that are enough where the later instruction takes an unknown time to overwrite a result: what several
    /// kernels come down to behind the earlier one's class.
    pub fn before_late(&self, dependence: &Dependence) -> Option<u16> {
        let pair = Pair::of(dependence).filter(|pair| pair.kind == Kind::Waw)?;
        let seen = self.pairs.get(&pair).filter(|_| pair.later == Some(LATE));
        Some(seen.filter(|seen| seen.is_trusted())?.cycles)
    }

    /// The cycles that are enough whatever the later instruction is: behind the earlier one's class no class of readers
    /// needs more. `None` if no reader of the class was seen often.
    pub fn slowest(&self, dependence: &Dependence) -> Option<u16> {
        let pair = Pair::of(dependence)?;
        let kind = match pair.kind {
            Kind::War => Kind::War,
            Kind::Raw | Kind::Waw => Kind::Raw,
        };
        if pair.is_guarded() && kind == Kind::Raw {
            return self.pairs.get(&pair).map(|seen| seen.cycles);
        }
        let slowest = self.slowest.get(&(kind, pair.file, pair.earlier))?;
        // What everybody can read has been written.
        Some(slowest + u16::from(pair.kind == Kind::Waw))
    }

    /// A result that comes later than another because it takes longer cannot be overwritten by it:
    /// what is enough for a write after write by the latencies of both.
    fn overtaking(&self, pair: Pair) -> u16 {
        let latency = |side| self.latencies.get(&(pair.file, side)).copied();
        let seen = || {
            self.coarse
                .get(&(Kind::Raw, false, pair.file, pair.earlier))
        };
        let earlier = latency(pair.earlier).or_else(|| Some(seen()?.cycles));
        // What takes an unknown time takes longer than plain arithmetic, and nothing is sooner than
        // the soonest.
        let later = match pair.later {
            Some(LATE) => latency(Some(ARITHMETIC)),
            later => latency(later),
        };
        let later = later.or(latency(None));
        match (pair.kind, earlier, later) {
            (Kind::Waw, Some(earlier), Some(later)) => 1.max((earlier + 1).saturating_sub(later)),
            _ => u16::MAX,
        }
    }
}

/// A pair, told apart by operations and operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationPair {
    /// The classes, where nothing waits between the two.
    pub pair: Pair,
    /// Operations of the earlier and of the later instruction (bits 0 to 8 of the opcode); 0 for whatever writes
    /// late.
    pub operations: [u16; 2],
    /// The lowest bit of the field of the operand that is read; of the later one's where both are written.
    pub bit: u8,
}

impl OperationPair {
    /// The pair of a dependence; `None` for registers that nobody waits for.
    pub fn of(dependence: &Dependence) -> Option<OperationPair> {
        let pair = Pair::of(dependence)?;
        let later = match pair.later {
            Some(LATE) => 0,
            _ => dependence.later.timing.operation,
        };
        Some(OperationPair {
            pair,
            operations: [dependence.earlier.timing.operation, later],
            bit: match dependence.kind {
                Kind::War => dependence.earlier.span.bit,
                _ => dependence.later.span.bit,
            },
        })
    }

    fn parts(self) -> (Pair, [u16; 2], u8) {
        (self.pair, self.operations, self.bit)
    }
}

/// What was asked of dependences: those of a function are alike, and an answer takes several tables.
#[derive(Default)]
pub(crate) struct Asked<T> {
    answers: RefCell<FxHashMap<u64, T>>,
}

impl<T: Copy> Asked<T> {
    /// What `answer` says, asked once for all dependences that are alike to [`Pair`] and [`OperationPair`].
    pub fn answer(&self, dependence: &Dependence, answer: impl FnOnce() -> T) -> T {
        let Some(key) = Asked::<T>::key(dependence) else {
            return answer();
        };
        if let Some(&known) = self.answers.borrow().get(&key) {
            return known;
        }
        let said = answer();
        self.answers.borrow_mut().insert(key, said);
        said
    }

    /// All that tells dependences apart: units are known by operations, roles by the kind, and code that is not seen
    /// by the field that there is not.
    fn key(dependence: &Dependence) -> Option<u64> {
        let (file, number) = register_of(dependence.value)?;
        let sides = [dependence.earlier, dependence.later].map(|side| {
            let is_second = u64::from(number != side.span.first);
            let late = u64::from(side.timing.is_late);
            u64::from(side.timing.operation) << 10
                | u64::from(side.span.bit) << 2
                | is_second << 1
                | late
        });
        Some(sides[0] << 32 | sides[1] << 6 | (file as u64) << 3 | dependence.kind as u64)
    }
}

/// As the tables have it.
impl std::fmt::Display for OperationPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [earlier, later] = self.operations;
        write!(f, "{} {earlier:03x} {later:03x} {}", self.pair, self.bit)
    }
}

/// The distances that new code keeps: by operation, as close as ptxas comes and no closer.
///
/// [`Distances`] says what is surely a mistake; two operations of one class may differ, and a smallest distance of
/// the class says little about one that was seen far away alone. So here a read after write that was never seen
/// takes as long as the slowest class of readers does, and a write after write longer than the fastest reader. What was
/// seen rarely comes no closer than its two classes ever did.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    seen: FxHashMap<(Pair, [u16; 2], u8), Seen>,
    /// What holds behind a class, and behind any, where the operations were not seen together.
    unseen: FxHashMap<(Kind, File, Option<Side>), u16>,
    /// What most operations of two classes come down to, where many were seen often.
    of_classes: FxHashMap<Pair, u16>,
    /// The closest that two classes ever came, however rarely.
    closest: FxHashMap<Pair, u16>,
}

impl Kept {
    /// So many pairs, and so many builds that come down to the smallest distance, are often.
    const OFTEN: (u64, u64) = (30, 5);
    /// So many pairs of operations are many.
    const MANY: usize = 10;
    /// ptxas leaves so many cycles more between two writers than between a writer and its fastest reader: 2 in
    /// all pairs that were seen often.
    const AFTER_READERS: u16 = 4;

    /// The table of architecture `sm`, if there is one.
    pub fn for_sm(sm: u32) -> Option<&'static Kept> {
        static TABLES: [OnceLock<Option<Kept>>; TIMED_ARCHITECTURES.len()] =
            [const { OnceLock::new() }; TIMED_ARCHITECTURES.len()];
        let place = TIMED_ARCHITECTURES.iter().position(|&known| known == sm)?;
        TABLES[place].get_or_init(|| Kept::read(sm)).as_ref()
    }

    fn read(sm: u32) -> Option<Kept> {
        let units = IssueUnits::for_sm(sm)?;
        let mut kept = Kept::default();
        let mut by_class: BTreeMap<Pair, Seen> = BTreeMap::new();
        for row in operation_distances(sm)? {
            // The test below finds rows that are not understood.
            let Some(pair) = Pair::read(&row.pair, units) else {
                continue;
            };
            let seen = Seen {
                cycles: row.pair.cycles,
                count: row.pair.count,
                kernels: row.pair.kernels,
                closest: row.pair.closest,
            };
            let all = by_class.entry(pair);
            all.and_modify(|all| all.join(seen)).or_insert(seen);
            kept.seen.insert((pair, row.operations, row.bit), seen);
        }
        kept.of_classes = Kept::most_of_classes(&kept.seen);
        let closest = by_class.iter().map(|(pair, seen)| (*pair, seen.cycles));
        kept.closest = closest.collect();
        let often = by_class
            .into_iter()
            .filter(|(_, seen)| Kept::is_often(*seen));
        for (pair, seen) in often {
            for side in [pair.earlier, None] {
                let mut bound = |kind, cycles: u16, longer: bool| {
                    let known = kept.unseen.entry((kind, pair.file, side)).or_insert(cycles);
                    *known = match longer {
                        true => cycles.max(*known),
                        false => cycles.min(*known),
                    };
                };
                match pair.kind {
                    Kind::Raw => {
                        bound(Kind::Raw, seen.cycles, true);
                        bound(Kind::Waw, seen.cycles + Kept::AFTER_READERS, side.is_none());
                    }
                    Kind::War => bound(Kind::War, seen.cycles, true),
                    Kind::Waw => {}
                }
            }
        }
        Some(kept)
    }

    fn is_often(seen: Seen) -> bool {
        (seen.count, seen.closest) >= Kept::OFTEN && seen.closest >= Kept::OFTEN.1
    }

    /// The fewest cycles that ptxas was often seen to leave between two instructions with these operations.
    pub fn often(&self, dependence: &Dependence) -> Option<u16> {
        let seen = self
            .seen
            .get(&OperationPair::of(dependence)?.parts())
            .copied();
        Some(seen.filter(|&seen| Kept::is_often(seen))?.cycles)
    }

    /// The cycles that most pairs of operations of the same two classes come down to, if many of them were seen
    /// often: those that do not were seen farther apart by chance.
    pub fn of_classes(&self, dependence: &Dependence) -> Option<u16> {
        self.of_classes.get(&Pair::of(dependence)?).copied()
    }

    fn most_of_classes(seen: &FxHashMap<(Pair, [u16; 2], u8), Seen>) -> FxHashMap<Pair, u16> {
        let mut all: FxHashMap<Pair, Vec<u16>> = FxHashMap::default();
        for ((pair, ..), seen) in seen.iter().filter(|(_, seen)| Kept::is_often(**seen)) {
            all.entry(*pair).or_default().push(seen.cycles);
        }
        all.retain(|_, cycles| cycles.len() >= Kept::MANY);
        let most = |mut cycles: Vec<u16>| {
            cycles.sort_unstable();
            cycles[cycles.len() / 2]
        };
        all.into_iter()
            .map(|(pair, cycles)| (pair, most(cycles)))
            .collect()
    }

    /// The cycles between two instructions; `None` if nothing like them was seen.
    pub fn cycles(&self, dependence: &Dependence) -> Option<u16> {
        let (pair, operations, bit) = OperationPair::of(dependence)?.parts();
        let unseen = |side| self.unseen.get(&(pair.kind, pair.file, side)).copied();
        let unseen = unseen(pair.earlier).or(unseen(None));
        let closest = self.closest.get(&pair).copied();
        if pair.is_guarded() && closest.is_none() {
            return None;
        }
        let alike = closest.max(unseen);
        match self.seen.get(&(pair, operations, bit)) {
            Some(seen) if Kept::is_often(*seen) => Some(seen.cycles),
            Some(seen) => Some(alike.map_or(seen.cycles, |alike| seen.cycles.min(alike))),
            None => alike,
        }
    }
}

/// How close instructions may come on one architecture, for whoever writes control fields.
pub(crate) struct Close {
    kept: &'static Kept,
    distances: &'static Distances,
    cycles: Asked<Option<u16>>,
    is_known: Asked<bool>,
}

impl Close {
    /// For architecture `sm`, if distances by operation are known there: one for all functions of a thread.
    pub fn for_sm(sm: u32) -> Option<Rc<Close>> {
        thread_local! {
            static KNOWN: RefCell<FxHashMap<u32, Rc<Close>>> = RefCell::default();
        }
        let (kept, distances) = (Kept::for_sm(sm)?, Distances::for_sm(sm)?);
        let close = || {
            Rc::new(Close {
                kept,
                distances,
                cycles: Asked::default(),
                is_known: Asked::default(),
            })
        };
        Some(KNOWN.with_borrow_mut(|known| known.entry(sm).or_insert_with(close).clone()))
    }

    /// As close as ptxas comes; where it was not seen to do so often, as far as it keeps what is like it. Never closer
    /// than the checker demands: MOVM was often seen to follow one shape of HMMA closer than others may. `None` where
    /// nothing alike was seen.
    pub fn cycles(&self, dependence: &Dependence) -> Option<u16> {
        self.cycles.answer(dependence, || self.find(dependence))
    }

    /// Does what was seen often say how many cycles are enough?
    pub fn is_known(&self, dependence: &Dependence) -> bool {
        let answer = || {
            let often = self.kept.often(dependence);
            often.or_else(|| self.alike(dependence)).is_some()
        };
        self.is_known.answer(dependence, answer)
    }

    /// What is enough between instructions of the same classes.
    fn alike(&self, dependence: &Dependence) -> Option<u16> {
        let alike = [
            self.kept.of_classes(dependence),
            self.distances.slowest(dependence),
            self.distances.before_late(dependence),
        ];
        alike.into_iter().flatten().min()
    }

    fn find(&self, dependence: &Dependence) -> Option<u16> {
        let demanded = Pair::of(dependence).map(|pair| self.distances.needed(pair));
        let close = self.kept.cycles(dependence).max(demanded);
        if self.kept.often(dependence).is_some() {
            return close;
        }
        close.into_iter().chain(self.alike(dependence)).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_understood() {
        for sm in TIMED_ARCHITECTURES {
            let (Some(rows), Some(units)) = (issue_distances(sm), IssueUnits::for_sm(sm)) else {
                continue;
            };
            let pairs: Vec<_> = rows.map(|row| Pair::read(&row, units)).collect();
            assert!(pairs.iter().all(Option::is_some), "sm_{sm}");
            assert!(pairs.len() > 100, "sm_{sm}");
            let rows = operation_distances(sm).into_iter().flatten();
            let pairs: Vec<_> = rows.map(|row| Pair::read(&row.pair, units)).collect();
            assert!(pairs.iter().all(Option::is_some), "sm_{sm}");
        }
    }

    #[test]
    fn a_rare_pair_takes_the_smallest_distance_behind_its_class() {
        let side = |class| Side {
            class,
            port: Port::Any,
        };
        let pair = |later| Pair {
            kind: Kind::Raw,
            has_wait: false,
            file: File::Gpr,
            earlier: Some(side(Class("alu"))),
            later: Some(side(later)),
        };
        let mut distances = Distances::default();
        let seen = |cycles, kernels| Seen {
            cycles,
            count: kernels,
            kernels,
            closest: kernels,
        };
        distances.add(pair(Class("fma")), seen(5, 1000));
        distances.add(pair(Class("double")), seen(6, 1000));
        distances.add(pair(Class("texture")), seen(17, 3));
        assert_eq!(distances.needed(pair(Class("double"))), 6);
        assert_eq!(distances.needed(pair(Class("texture"))), 5);
        assert_eq!(distances.needed(pair(Class("vote"))), 5);
        let other = Pair {
            kind: Kind::War,
            ..pair(Class("fma"))
        };
        assert_eq!(distances.needed(other), u16::MAX);
        // A wait takes no less than no time.
        let behind_a_wait = Pair {
            has_wait: true,
            ..pair(Class("fma"))
        };
        assert_eq!(distances.needed(behind_a_wait), 5);
        // What one kernel shows of a reader is chance; what several show is not.
        let reader = |class| Pair {
            kind: Kind::War,
            earlier: Some(side(Class(class))),
            ..pair(Class("fma"))
        };
        distances.add(reader("fma"), seen(1, 1000));
        distances.add(reader("shared"), seen(4, 1));
        distances.add(reader("control"), seen(5, 3));
        assert_eq!(distances.needed(reader("shared")), 1);
        assert_eq!(distances.needed(reader("control")), 5);
        // Predicates come into a register no sooner than sums do.
        let overwritten = |class| Pair {
            later: Some(side(Class(class))),
            ..reader("wide")
        };
        distances.add(overwritten("alu"), seen(1, 1000));
        distances.add(overwritten("p2r"), seen(11, 18));
        distances.add(overwritten("fma"), seen(4, 300));
        assert_eq!(distances.needed(overwritten("p2r")), 1);
        assert_eq!(distances.needed(overwritten("fma")), 4);
        distances.add(behind_a_wait, seen(2, 1000));
        assert_eq!(distances.needed(behind_a_wait), 2);
        assert_eq!(distances.needed(pair(Class("fma"))), 5);
    }
}
