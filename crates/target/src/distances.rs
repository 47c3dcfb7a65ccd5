//! How many cycles lie between dependent instructions of machine code: the smallest distances that
//! ptxas leaves, which are enough.
//!
//! The tables under `rows/distances` are written by `warpwright-sassmine hazards`
//! (docs/sass.md): measured on compiled code, not on a device. One line per pair of classes,
//!
//! ```text
//! raw R alu -> fma 5 12345 321 120
//! ```
//!
//! the dependence (read after write, write after read, write after write), the register file, the
//! classes of the earlier and the later instruction with the operand where it matters, the fewest
//! cycles from issue to issue, the number of pairs seen, the number of kernels that had them, and the
//! number of kernels that had them that close. `raw+wait` is the same where an instruction between the two, or
//! the later one itself, waits for a scoreboard: ptxas may leave less then.

/// The fewest cycles between two dependent instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssueDistance {
    /// `raw`, `war` or `waw`.
    pub dependence: &'static str,
    /// The register file: `R`, `P`, `UR`, `UP`.
    pub file: &'static str,
    /// Class of the earlier instruction.
    pub earlier: &'static str,
    /// Class of the later instruction.
    pub later: &'static str,
    /// Cycles from issue to issue.
    pub cycles: u16,
    /// Pairs seen.
    pub count: u64,
    /// Kernels that had them.
    pub kernels: u64,
    /// Kernels that had them that close.
    pub closest: u64,
}

/// The fewest cycles that ptxas leaves from a barrier of the block to the next instruction that takes an unknown time,
/// or a fence; `None` where nobody looked. Read off ptxas 13.5.37's code of fourteen examples for each architecture, and for sm_90
/// of 687 builds of all (1,033 barriers, 611 of them that close).
pub fn cycles_behind_barrier(sm: u32) -> Option<u16> {
    match sm {
        75 => Some(5),
        80 | 86 | 89 | 90 | 100 | 120 => Some(6),
        _ => None,
    }
}

/// The fewest cycles that ptxas leaves from a barrier of the block to the next one; `None` where nobody looked. Read off
/// ptxas 13.5.37's code of pairs of `bar.sync` and `bar.arrive`, with nothing or `bar.warp.sync` between.
pub fn cycles_between_barriers(sm: u32) -> Option<u16> {
    match sm {
        75 => Some(5),
        80 | 86 | 89 => Some(6),
        90 | 100 | 120 => Some(8),
        _ => None,
    }
}

const TABLES: [(u32, &str); 7] = [
    (75, include_str!("rows/distances/sm_75.txt")),
    (80, include_str!("rows/distances/sm_80.txt")),
    (86, include_str!("rows/distances/sm_86.txt")),
    (89, include_str!("rows/distances/sm_89.txt")),
    (90, include_str!("rows/distances/sm_90.txt")),
    (100, include_str!("rows/distances/sm_100.txt")),
    (120, include_str!("rows/distances/sm_120.txt")),
];

/// The table of architecture `sm`, in its order; `None` if there is none.
pub fn issue_distances(sm: u32) -> Option<impl Iterator<Item = IssueDistance>> {
    let text = TABLES.iter().find(|table| table.0 == sm)?.1;
    Some(text.lines().filter_map(read))
}

/// The same, told apart by operation and operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationDistance {
    /// The classes, with what was seen of these operations.
    pub pair: IssueDistance,
    /// Operations of the earlier and of the later instruction (bits 0 to 8); 0 for whatever writes after an unknown
    /// time.
    pub operations: [u16; 2],
    /// The lowest bit of the field of the operand that is read, or of the later one.
    pub bit: u8,
}

const BY_OPERATION: [(u32, &str); 1] = [(90, include_str!("rows/distances/operations_sm_90.txt"))];

/// The table of architecture `sm` by operation, in its order; `None` if there is none.
pub fn operation_distances(sm: u32) -> Option<impl Iterator<Item = OperationDistance>> {
    let text = BY_OPERATION.iter().find(|table| table.0 == sm)?.1;
    Some(text.lines().filter_map(read_operation))
}

/// Two operations that keep their order without a wait between them: ptxas has relied on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitOrder {
    /// What for: `read`, `result`, `war`, `waw`, `barrier` (docs/sass.md).
    pub kind: &'static str,
    /// The earlier operation and the later one (bits 0 to 8 of the opcode); 0 for a barrier.
    pub operations: [u16; 2],
    /// Fewest cycles between the two accesses, waits not counted.
    pub cycles: u16,
    /// Pairs of registers that nothing else protects.
    pub count: u64,
    /// Kernels that had them.
    pub kernels: u64,
}

const ORDERS: [(u32, &str); 7] = [
    (75, include_str!("rows/distances/orders_sm_75.txt")),
    (80, include_str!("rows/distances/orders_sm_80.txt")),
    (86, include_str!("rows/distances/orders_sm_86.txt")),
    (89, include_str!("rows/distances/orders_sm_89.txt")),
    (90, include_str!("rows/distances/orders_sm_90.txt")),
    (100, include_str!("rows/distances/orders_sm_100.txt")),
    (120, include_str!("rows/distances/orders_sm_120.txt")),
];

/// The orders of architecture `sm`; `None` if there is no table.
pub fn unit_orders(sm: u32) -> Option<impl Iterator<Item = UnitOrder>> {
    let text = ORDERS.iter().find(|table| table.0 == sm)?.1;
    Some(text.lines().filter_map(read_order))
}

/// The architectures whose multiprocessors take instructions like those of `sm`, so that orders seen on one hold for
/// all: itself, and the rest of its generation.
pub fn generation(sm: u32) -> &'static [u32] {
    const GENERATIONS: [&[u32]; 5] = [&[75], &[80, 86, 89], &[90], &[100], &[120]];
    let own = GENERATIONS.iter().find(|all| all.contains(&sm));
    own.copied().unwrap_or_default()
}

fn read_order(line: &'static str) -> Option<UnitOrder> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [kind, first, second, cycles, count, kernels] = words[..] else {
        return None;
    };
    let operation = |text| u16::from_str_radix(text, 16).ok();
    Some(UnitOrder {
        kind,
        operations: [operation(first)?, operation(second)?],
        cycles: cycles.parse().ok()?,
        count: count.parse().ok()?,
        kernels: kernels.parse().ok()?,
    })
}

fn read_operation(line: &'static str) -> Option<OperationDistance> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [
        dependence,
        file,
        earlier,
        "->",
        later,
        first,
        second,
        bit,
        cycles,
        count,
        kernels,
        closest,
    ] = words[..]
    else {
        return None;
    };
    let operation = |text| u16::from_str_radix(text, 16).ok();
    Some(OperationDistance {
        pair: IssueDistance {
            dependence,
            file,
            earlier,
            later,
            cycles: cycles.parse().ok()?,
            count: count.parse().ok()?,
            kernels: kernels.parse().ok()?,
            closest: closest.parse().ok()?,
        },
        operations: [operation(first)?, operation(second)?],
        bit: bit.parse().ok()?,
    })
}

fn read(line: &'static str) -> Option<IssueDistance> {
    let mut words = line.split_whitespace();
    let mut word = || words.next();
    let (dependence, file, earlier) = (word()?, word()?, word()?);
    let later = word().filter(|&arrow| arrow == "->").and_then(|_| word())?;
    Some(IssueDistance {
        dependence,
        file,
        earlier,
        later,
        cycles: word()?.parse().ok()?,
        count: word()?.parse().ok()?,
        kernels: word()?.parse().ok()?,
        closest: word()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_read() {
        for (sm, text) in TABLES {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let rows = issue_distances(sm).into_iter().flatten();
            assert_eq!(lines.count(), rows.count(), "sm_{sm}");
        }
        for (sm, text) in ORDERS {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let rows = unit_orders(sm).into_iter().flatten();
            assert_eq!(lines.count(), rows.count(), "sm_{sm}");
        }
        for (sm, text) in BY_OPERATION {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let rows = operation_distances(sm).into_iter().flatten();
            assert_eq!(lines.count(), rows.count(), "sm_{sm}");
        }
    }
}
