//! Which unit executes an operation of machine code, and how that unit treats its registers: does it
//! take a fixed time or tell by scoreboard, does it work in order.
//!
//! The table is `rows/distances/units.txt`, read off the corpus (docs/sass.md): nobody
//! documents these things.

use std::sync::OnceLock;

/// A unit that works in order: once one of its operations is known to be over, so are those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue(u8);

/// How the registers of an operation are treated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueUnit {
    /// The name in the tables of distances.
    pub name: &'static str,
    /// Typical cycles until a late result has come. No proof counts on it.
    pub result_cycles: u16,
    /// Typical cycles until late sources have been read. No proof counts on it.
    pub source_cycles: u16,
    /// Are results delivered and general registers read after an unknown time?
    pub is_late: bool,
    /// Are they so only if the instruction has a write barrier? Newer ptxas gives one to all of them
    /// where a sibling of the architecture has a slower unit.
    pub is_late_if_counted: bool,
    /// Are uniform registers read after an unknown time?
    pub reads_uniform_late: bool,
    /// Where its results come in order.
    pub results: Option<Queue>,
    /// Where its sources are read in order.
    pub sources: Option<Queue>,
    /// Do its predicates come as soon as its sources have been read? So do those of generic atomics,
    /// which say whether the address lies in shared memory.
    pub tells_early: bool,
    /// May it have read its registers when a barrier of the block is passed? What has says [`crate::unit_orders`].
    pub reads_before_barrier: bool,
    /// Have the halves of a pair times of their own?
    pub has_halves: bool,
    /// Do some shapes take longer than others?
    pub has_shapes: bool,
    /// Does it work in groups, which another instruction waits for?
    pub has_groups: bool,
    /// Do the bits of the reuse flags mean something else?
    pub has_other_flags: bool,
}

/// The execution resource that an instruction occupies, which decides how often one can issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Integer add, logic, moves, comparisons, and everything we do not know better.
    Alu,
    /// Single-precision floating point and integer multiply-add.
    Fma,
    /// Packed half precision.
    Half,
    /// Double precision.
    Fp64,
    /// Special functions and conversions.
    Sfu,
    /// Shared-memory loads, stores, atomics, and shuffles.
    Shared,
    /// Global or generic loads.
    GlobalLoad,
    /// Global or generic stores and reductions.
    GlobalStore,
    /// Local-memory loads.
    LocalLoad,
    /// Local-memory stores.
    LocalStore,
    /// Loads from constant banks through the load path.
    Constant,
    /// Texture and surface accesses.
    Texture,
    /// Tensor cores.
    Tensor,
    /// Branches, barriers, exits.
    Control,
}

const RESOURCES: [(&str, Unit); 13] = [
    ("fma", Unit::Fma),
    ("half", Unit::Half),
    ("fp64", Unit::Fp64),
    ("sfu", Unit::Sfu),
    ("shared", Unit::Shared),
    ("global-load", Unit::GlobalLoad),
    ("global-store", Unit::GlobalStore),
    ("local-load", Unit::LocalLoad),
    ("local-store", Unit::LocalStore),
    ("constant", Unit::Constant),
    ("texture", Unit::Texture),
    ("tensor", Unit::Tensor),
    ("control", Unit::Control),
];

impl Unit {
    /// What an operation (bits 0 to 8 of the opcode) occupies.
    pub fn of(operation: u16) -> Unit {
        static TABLE: OnceLock<[Unit; OPERATIONS]> = OnceLock::new();
        let read = || {
            let mut table = [Unit::Alu; OPERATIONS];
            for line in TEXT.lines() {
                // What does not fit the form is found by the test below.
                let _ = Unit::read_line(line, &mut table);
            }
            table
        };
        TABLE.get_or_init(read)[usize::from(operation) % OPERATIONS]
    }

    /// Takes in a line; `None` if it is an `occupies` line and not of the form.
    fn read_line(line: &str, table: &mut [Unit; OPERATIONS]) -> Option<()> {
        let Some(rest) = line.strip_prefix("occupies ") else {
            return Some(());
        };
        let mut words = rest.split_whitespace();
        let name = words.next()?;
        let unit = RESOURCES.iter().find(|known| known.0 == name)?.1;
        for range in words {
            table.get_mut(operations(range)?)?.fill(unit);
        }
        Some(())
    }
}

/// `020-027` or `118`, hexadecimal.
fn operations(range: &str) -> Option<std::ops::RangeInclusive<usize>> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some(number(first)?..=number(last)?)
}

/// The units of one architecture.
#[derive(Debug)]
pub struct IssueUnits {
    units: Vec<IssueUnit>,
    /// By operation.
    places: Vec<Option<u8>>,
    /// Operations that a port takes otherwise than the rest of their unit, by name; numbered behind the units.
    ports: Vec<&'static str>,
    /// By operation.
    port_of: Vec<Option<u8>>,
    /// By port: ports behind which it may not follow at once, and after how many cycles it may.
    gaps: Vec<Vec<(u8, u8)>>,
    /// By operation: fewest cycles to the next instruction.
    least: Vec<u8>,
}

const TEXT: &str = include_str!("rows/distances/units.txt");
/// The architectures whose machine code was looked at for units and distances.
pub const TIMED_ARCHITECTURES: [u32; 7] = [75, 80, 86, 89, 90, 100, 120];
/// Operations have nine bits.
const OPERATIONS: usize = 1 << 9;

impl IssueUnits {
    /// The units of architecture `sm`, if anything is known of it.
    pub fn for_sm(sm: u32) -> Option<&'static IssueUnits> {
        static TABLES: [OnceLock<IssueUnits>; TIMED_ARCHITECTURES.len()] =
            [const { OnceLock::new() }; _];
        let place = TIMED_ARCHITECTURES.iter().position(|&known| known == sm)?;
        Some(TABLES[place].get_or_init(|| IssueUnits::read(sm)))
    }

    /// The unit that executes an operation (bits 0 to 8 of the opcode), if the corpus has shown it.
    pub fn of(&self, operation: u16) -> Option<&IssueUnit> {
        let place = *self.places.get(usize::from(operation))?;
        self.units.get(usize::from(place?))
    }

    /// How many ports there are: instructions are issued to one each.
    pub fn port_count(&self) -> usize {
        self.gaps.len()
    }

    /// The port of an operation (bits 0 to 8 of the opcode): that of its unit, or one of its own.
    pub fn port(&self, operation: u16) -> Option<u8> {
        let own = self.port_of.get(usize::from(operation)).copied().flatten();
        own.or_else(|| self.places.get(usize::from(operation)).copied().flatten())
    }

    /// The ports behind which ptxas lets an operation of this one follow only after some cycles, and the cycles.
    pub fn gaps_before(&self, port: u8) -> &[(u8, u8)] {
        self.gaps.get(usize::from(port)).map_or(&[], Vec::as_slice)
    }

    /// The shortest stall that ptxas gives an operation (bits 0 to 8 of the opcode).
    pub fn least_stall(&self, operation: u16) -> u8 {
        self.least.get(usize::from(operation)).copied().unwrap_or(1)
    }

    /// The unit of that name.
    pub fn named(&self, name: &str) -> Option<&IssueUnit> {
        self.units.iter().find(|unit| unit.name == name)
    }

    fn port_named(&self, name: &str) -> Option<u8> {
        let unit = self.units.iter().position(|unit| unit.name == name);
        let port = || Some(self.units.len() + self.ports.iter().position(|&port| port == name)?);
        Some(unit.or_else(port)? as u8)
    }

    fn read(sm: u32) -> IssueUnits {
        let mut table = IssueUnits {
            units: Vec::new(),
            places: vec![None; OPERATIONS],
            ports: Vec::new(),
            port_of: vec![None; OPERATIONS],
            gaps: Vec::new(),
            least: vec![1; OPERATIONS],
        };
        let mut queues = Vec::new();
        for line in TEXT.lines() {
            // What does not fit the form is found by the test below.
            let _ = table.read_line(line, sm, &mut queues);
        }
        table
    }

    /// Takes in a line; `None` if it is not of the form.
    fn read_line(
        &mut self,
        line: &'static str,
        sm: u32,
        queues: &mut Vec<&'static str>,
    ) -> Option<()> {
        let (line, only) = line.split_once('@').unwrap_or((line, ""));
        let mut words = line.split_whitespace();
        let Some(kind) = words.next().filter(|word| !word.starts_with('#')) else {
            return Some(());
        };
        let only: Option<Vec<u32>> = only
            .split_terminator(',')
            .map(|number| number.trim().parse().ok())
            .collect();
        let only = only?;
        let concerns = only.is_empty() || only.contains(&sm);
        match kind {
            "unit" => {
                let unit = unit(words.next()?, words, queues)?;
                if concerns && self.named(unit.name).is_none() {
                    self.units.push(unit);
                }
            }
            "operation" => {
                let range = operations(words.next()?)?;
                let name = words.next()?;
                let place = self.units.iter().position(|unit| unit.name == name)?;
                let places = self.places.get_mut(range)?;
                for free in places.iter_mut().filter(|p| concerns && p.is_none()) {
                    *free = Some(place as u8);
                }
            }
            "port" => {
                let range = operations(words.next()?)?;
                let name = words.next()?;
                let port = self.units.len() + self.ports.len();
                self.ports.push(name);
                self.port_of.get_mut(range)?.fill(Some(port as u8));
            }
            "gap" => {
                self.gaps
                    .resize(self.units.len() + self.ports.len(), Vec::new());
                let (cycles, earlier) = (words.next()?.parse().ok()?, words.next()?);
                for later in words {
                    let (earlier, later) = (self.port_named(earlier)?, self.port_named(later)?);
                    let gaps = self.gaps.get_mut(usize::from(later))?;
                    if concerns && gaps.iter().all(|gap| gap.0 != earlier) {
                        gaps.push((earlier, cycles));
                    }
                }
            }
            "least" => {
                let cycles = words.next()?.parse().ok()?;
                for range in words {
                    let range = self.least.get_mut(operations(range)?)?;
                    range
                        .iter_mut()
                        .filter(|_| concerns)
                        .for_each(|least| *least = cycles);
                }
            }
            "occupies" => {}
            _ => return None,
        }
        Some(())
    }
}

fn unit(
    name: &'static str,
    words: impl Iterator<Item = &'static str>,
    queues: &mut Vec<&'static str>,
) -> Option<IssueUnit> {
    let mut unit = IssueUnit {
        name,
        result_cycles: 0,
        source_cycles: 0,
        is_late: false,
        is_late_if_counted: false,
        reads_uniform_late: false,
        results: None,
        sources: None,
        tells_early: false,
        reads_before_barrier: false,
        has_halves: false,
        has_shapes: false,
        has_groups: false,
        has_other_flags: false,
    };
    let mut queue = |name| {
        let known = queues.iter().position(|&known| known == name);
        let place = known.unwrap_or_else(|| {
            queues.push(name);
            queues.len() - 1
        });
        Some(Queue(place as u8))
    };
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("late", "") => unit.is_late = true,
            ("late-if-counted", "") => unit.is_late_if_counted = true,
            ("before-barrier", "") => unit.reads_before_barrier = true,
            ("late-uniform", "") => unit.reads_uniform_late = true,
            ("early-predicates", "") => unit.tells_early = true,
            ("halves", "") => unit.has_halves = true,
            ("shapes", "") => unit.has_shapes = true,
            ("groups", "") => unit.has_groups = true,
            ("other-flags", "") => unit.has_other_flags = true,
            ("result-cycles", number) => unit.result_cycles = number.parse().ok()?,
            ("source-cycles", number) => unit.source_cycles = number.parse().ok()?,
            ("results", name) if !name.is_empty() => unit.results = queue(name),
            ("sources", name) if !name.is_empty() => unit.sources = queue(name),
            _ => return None,
        }
    }
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for sm in TIMED_ARCHITECTURES {
            let mut queues = Vec::new();
            let mut table = IssueUnits {
                units: Vec::new(),
                places: vec![None; OPERATIONS],
                ports: Vec::new(),
                port_of: vec![None; OPERATIONS],
                gaps: Vec::new(),
                least: vec![1; OPERATIONS],
            };
            for line in TEXT.lines() {
                assert_eq!(
                    table.read_line(line, sm, &mut queues),
                    Some(()),
                    "sm_{sm}: {line}"
                );
            }
        }
        let mut table = [Unit::Alu; OPERATIONS];
        for line in TEXT.lines() {
            assert_eq!(Unit::read_line(line, &mut table), Some(()), "{line}");
        }
        assert_eq!(
            (Unit::of(0x183), Unit::of(0x02a)),
            (Unit::LocalLoad, Unit::Fp64)
        );
        assert_eq!((Unit::of(0x022), Unit::of(0x1ff)), (Unit::Alu, Unit::Alu));
    }

    #[test]
    fn the_first_line_that_fits_an_architecture_counts() {
        let is_late = |sm, operation| Some(IssueUnits::for_sm(sm)?.of(operation)?.is_late);
        assert_eq!(is_late(90, 0x2b), Some(false));
        assert_eq!(is_late(80, 0x2b), Some(true));
        assert_eq!(is_late(80, 0x1ff), None);
        assert!(IssueUnits::for_sm(70).is_none());
    }
}
