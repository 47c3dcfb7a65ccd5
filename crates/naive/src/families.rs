//! The families of kernels beside tiles: which of them fit a kernel, and how long each should take.
//!
//! They are bound by memory, or wait for it. Their predicted time is what moving their bytes takes, at the speed of a
//! copy or at what the loads that are under way at once allow (Little's law), and the waves of blocks that each wait for
//! their loads one after the other. The constants were chosen by looking at 22 of the kernels in examples/naive on an
//! H200 (`bench/naive_model.py` compares).

use std::collections::BTreeMap;

use warpwright_cudac::Scalar;
use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_target::{Behaviour, Gpu, Rates, Resources, joined, occupancy};

use crate::across::Across;
use crate::emit::{self, expected, expected_ends, value};
use crate::fours::Fours;
use crate::ir::{Kernel, Statement, Value};
use crate::prefix::Prefix;
use crate::schedule::Schedule;
use crate::search::{self, Prediction, Way};
use crate::team::{Lanes, Team};
use crate::totals::{self, Totals, Wait};

/// The predicted time of the kernel as written.
pub fn written(kernel: &Kernel, gpu: &Gpu) -> Option<f64> {
    let plain = search::predict(kernel, &Schedule::identity(kernel.dims.len()), gpu)?.ms;
    if !kernel.loops.is_empty() {
        return Some(plain);
    }
    let board = gpu.board.or_else(|| gpu.typical_board())?;
    let (sms, mhz) = (
        f64::from(board.sms?.value),
        f64::from(board.clock_mhz?.value),
    );
    let sizes = expected(kernel);
    let ends = expected_ends(kernel, &sizes);
    let points: f64 = ends.iter().map(|e| *e as f64).product();
    let changes = counted(kernel, &sizes, &ends).unwrap_or_default();
    let changes = changes.iter().map(|c| {
        let alike = if c.apart { 1.0 } else { c.together };
        // Lanes have one cell each of what the data choose from.
        let line = if c.table > 0.0 {
            c.cells.min(32.0)
        } else {
            1.0
        };
        (points / c.cells / alike * line, points / c.together)
    });
    let atomics = in_memory(changes, sms, mhz);
    let threads = f64::from(32 * gpu.arch.threads.warps);
    Some(plain.max(arriving(kernel, gpu, 1.0, threads)?).max(atomics))
}

/// Milliseconds in which the loads and stores of a kernel without loops come and go, with so many points of a thread at
/// once and threads on an SM.
///
/// A thread that computes one element of a long array has few bytes under way, so that an SM full of threads waits for
/// memory (Little's law). That is looked at here, and not in [`search`]'s own model, which is about loops.
pub fn arriving(kernel: &Kernel, gpu: &Gpu, points: f64, threads: f64) -> Option<f64> {
    let board = gpu.board.or_else(|| gpu.typical_board())?;
    let sms = f64::from(board.sms?.value);
    let mhz = f64::from(board.clock_mhz?.value);
    let ends = expected_ends(kernel, &expected(kernel));
    let all: f64 = ends.iter().map(|e| *e as f64).product();
    let bytes = moved(kernel, &|_| 1.0, all, &|_| 1.0);
    let own = |access: &crate::ir::Access| f64::from(kernel.arrays[access.array].bytes);
    let loads: f64 = kernel
        .accesses
        .iter()
        .filter(|a| !kernel.arrays[a.array].stored)
        .map(own)
        .sum();
    let stores: f64 = kernel.accesses.iter().map(own).sum();
    let places = |access: &&crate::ir::Access| {
        let symbols = access.affine().map(Poly::symbols).unwrap_or_default();
        kernel.dims.iter().all(|d| symbols.contains(&d.symbol))
    };
    // What neighbouring rows or columns share comes from the caches.
    let alone = kernel
        .accesses
        .iter()
        .filter(places)
        .filter(|a| !kernel.arrays[a.array].stored)
        .map(own)
        .sum::<f64>();
    let under_way = match (alone > 0.0, loads > 0.0) {
        (true, _) => alone,
        _ => stores - loads,
    };
    let little = sms * threads * points * under_way.max(1.0) / ARRIVAL * mhz * 1e3;
    Some(bytes / little + LAUNCH[0] / 1e3)
}

/// The ways of the families that fit a kernel.
pub(crate) fn fitting(kernel: &Kernel, gpu: &Gpu) -> Vec<Way> {
    let two = kernel.dims.len() > 1;
    let mut all = Vec::new();
    let board = gpu.board.or_else(|| gpu.typical_board());
    let sms = board.and_then(|b| b.sms).map_or(0, |sms| sms.value);
    let loops = kernel.body.iter();
    let loops = loops.filter(|s| matches!(s, Statement::Loop(..))).count();
    for threads in [128, 256, 512, 1024] {
        // As many blocks as there is room for.
        let full = sms * (32 * gpu.arch.threads.warps / threads);
        for unroll in [4, 8, 2, 1] {
            let warps = Lanes::Turns {
                points: threads / 32,
            };
            for lanes in [Lanes::Turns { points: 1 }, warps, Lanes::Points] {
                for blocks in [0, full / 2, full, 2 * full] {
                    let team = Team {
                        threads,
                        lanes,
                        unroll,
                        blocks,
                        apart: false,
                        early: true,
                        resident: 0,
                    };
                    all.push(Way::Team(team));
                    // Room for fewer blocks, so that all turns that are written out have registers.
                    // What a second loop reads has come with the first one.
                    let wanted = match loops {
                        1 => wanted(kernel, &team, true),
                        _ => 0,
                    };
                    let resident = (gpu.arch.registers.per_sm / threads)
                        .checked_div(wanted.next_multiple_of(8))
                        .unwrap_or(0);
                    if wanted > COMPILER && resident > 0 {
                        all.push(Way::Team(Team {
                            apart: true,
                            resident,
                            ..team
                        }));
                    }
                }
            }
        }
    }
    for (side, rows) in [(32, 8), (32, 16), (64, 8), (64, 16)] {
        all.push(Way::Across(Across { side, rows }));
    }
    for threads in [128, 256, 64] {
        for rows in if two { &[1, 2, 4, 8][..] } else { &[1] } {
            all.push(Way::Fours(Fours {
                threads,
                rows: *rows,
            }));
        }
    }
    for (threads, points) in [(256, 4), (512, 4), (1024, 4)] {
        all.push(Way::Prefix(Prefix { threads, points }));
    }
    for threads in [128, 256, 512] {
        for points in [4, 8, 16, 32, 64] {
            all.push(Way::Totals(Totals { threads, points }));
        }
    }
    all.retain(|way| {
        // A team that does not divide its turns among blocks is there without asking for it.
        way.generate(kernel, 0).is_some_and(|generated| match way {
            Way::Team(team) => {
                team.blocks == 0 || generated.entries.iter().any(|e| e.parts.is_some())
            }
            _ => true,
        })
    });
    all
}

/// Registers that the compiler takes for a team without being asked for room: turns that are written out then share
/// what is left beside `BASE`, and their loads wait for each other (seen in the machine code of `rd`, `tmv`, `mv`).
const COMPILER: u32 = 32;
/// Registers of a team beside what it has loaded.
const BASE: u32 = 16;

/// Registers in which a team can load all turns that are written out together.
fn wanted(kernel: &Kernel, team: &Team, is_wide: bool) -> u32 {
    BASE + team.unroll * loaded(kernel, team, is_wide)
}

/// Registers for what a thread loads in a turn.
fn loaded(kernel: &Kernel, team: &Team, is_wide: bool) -> u32 {
    let mut loops: BTreeMap<usize, u32> = BTreeMap::new();
    for (at, access) in kernel.accesses.iter().enumerate() {
        let Some(number) = outer(kernel, at) else {
            continue;
        };
        let lane = match team.lanes {
            Lanes::Turns { .. } => Symbol::Loop(number),
            Lanes::Points => kernel.dims[0].symbol,
        };
        let index = access.affine();
        let is_near = index
            .and_then(|i| i.coefficient(lane))
            .is_some_and(|c| c.as_constant().is_some_and(|c| (1..=4).contains(&c)));
        let words = kernel.arrays[access.array].bytes.div_ceil(4);
        *loops.entry(number).or_default() += if is_wide && is_near { 4 } else { words };
    }
    loops.into_values().max().unwrap_or(1)
}

/// A launch ends when the last SM does, and they do not get equal shares of memory: the part of a block's share that is
/// lost. Blocks that come one after the other even it out.
const SHARE: f64 = 0.06;
/// Cycles in which a block of 1,024 threads that has ended leaves its place on the SM empty: until its last warp is there,
/// and the next block has begun. It grows with the place, and with the warps that are waited for.
const PLACE: f64 = 1600.0;
/// Cycles of a thread of the second kernel for each value of a point.
const PART: f64 = 50.0;

/// Lanes whose accesses move more than so many times their own bytes are far apart.
const FAR: f64 = 2.0;

/// Cycles until a load arrives.
const ARRIVAL: f64 = Behaviour::FAMILIES.arrival;
/// Cycles in which a block's threads bring their values together.
const COMBINE: f64 = 250.0;
/// Microseconds of a launch, and of a second one behind it.
const LAUNCH: [f64; 2] = [3.0, 1.5];
/// The part of a copy's speed that a kernel's loads reach.
const SPEED: f64 = 0.95;
/// The same where a block waits for its loads before it stores; and where it loads more, and waits again.
const SQUARE: [f64; 2] = [0.9, 0.74];

/// Cycles of an SM for an atomic operation of a warp on shared memory, where the data choose among many cells (`histogram`).
const SHARED_ATOMIC: f64 = 4.5;
/// Bytes per clock and SM that go to the level-2 cache, of which an atomic operation takes a sector.
const CACHE_BYTES: f64 = Behaviour::FAMILIES.cache_bytes;

/// Cycles between two atomic operations on one line of 128 bytes: 3.5 for the sum of `rd_atomic` as written, 4.1 for the 8
/// lines of `histogram` as written.
const LINE: f64 = 3.5;

/// An atomic operation: what its cells are.
struct Counted {
    /// Cells of a table that the data choose from; 0: places do.
    table: f64,
    /// Cells.
    cells: f64,
    /// Lanes of a warp whose operations the compiler or the memory makes one.
    together: f64,
    /// Neighbours have neighbouring cells.
    apart: bool,
}

impl Counted {
    /// Changes of a block.
    fn threads(&self, threads: f64) -> f64 {
        if self.apart { threads / 8.0 } else { 1.0 }
    }
}

/// The atomic operations of a kernel; none where how many cells there are is not known.
fn counted(kernel: &Kernel, sizes: &[i64], ends: &[i64]) -> Option<Vec<Counted>> {
    let (counts, _) = totals::counts(kernel).ok()?;
    let of = |count: &totals::Count| {
        Some(match &count.wait {
            Wait::Table { below, .. } => {
                let cells = value(below, sizes, ends)?.max(1) as f64;
                Counted {
                    table: cells,
                    cells,
                    together: 1.0,
                    apart: false,
                }
            }
            Wait::Register { is_shared } => {
                let places = totals::places(kernel, count.access);
                let dims = kernel.dims.iter().zip(ends);
                let own = dims.filter(|(d, _)| places.contains(&d.symbol));
                let array = &kernel.arrays[kernel.accesses[count.access].array];
                let whole = matches!(array.scalar, Some(Scalar::Integer(..)));
                Counted {
                    table: 0.0,
                    cells: own.map(|(_, end)| *end as f64).product(),
                    together: match (is_shared, whole) {
                        (true, true) => 32.0,
                        (true, false) => 1.0,
                        (false, _) => 8.0,
                    },
                    apart: !is_shared,
                }
            }
        })
    };
    counts.iter().map(of).collect()
}

/// Milliseconds of operations in the level-2 cache: changes of one line, which come one after the other, and all of them.
fn in_memory(all: impl Iterator<Item = (f64, f64)>, sms: f64, mhz: f64) -> f64 {
    let (mut longest, mut sum) = (0.0f64, 0.0);
    for (alike, changes) in all {
        longest = longest.max(alike);
        sum += changes;
    }
    (longest * LINE).max(sum * 32.0 / CACHE_BYTES / sms) / (mhz * 1e3)
}

/// The predicted time of a way of a family.
pub(crate) fn predict(kernel: &Kernel, way: &Way, gpu: &Gpu) -> Option<Prediction> {
    let Rates {
        sms,
        mhz,
        gb_s,
        issued,
        ..
    } = Rates::of(gpu).ok()?;
    let copy = gb_s * 1e6;
    let generated = way.generate(kernel, 0)?;
    let sizes = expected(kernel);
    let ends = expected_ends(kernel, &sizes);
    let at = |poly: &Poly| value(poly, &sizes, &ends);
    // The entry that the expected launch gets.
    let holds = |c: &emit::Condition| c.holds(&sizes, &ends);
    let entry = generated
        .entries
        .iter()
        .find(|e| e.conditions.iter().all(holds))?;
    let points: f64 = ends.iter().map(|e| *e as f64).product();
    let mut blocks: f64 = ends
        .iter()
        .zip(entry.tile)
        .map(|(end, tile)| (*end as f64 / f64::from(tile)).ceil())
        .product();
    let turns = |number: usize| {
        let of = &kernel.loops[number];
        let span = of
            .high
            .plus(&of.low, -1)
            .and_then(|s| crate::bounds::largest(kernel, &s));
        span.and_then(|s| at(&s)).unwrap_or(1).max(1) as f64
    };
    let lane = |access: usize| match way {
        Way::Team(team) if matches!(team.lanes, Lanes::Turns { .. }) => {
            outer(kernel, access).map(Symbol::Loop)
        }
        Way::Across(_) | Way::Tiles(_) => None,
        Way::Totals(_) | Way::Team(_) | Way::Fours(_) | Way::Prefix(_) => {
            Some(kernel.dims[0].symbol)
        }
    };
    let waste = |access: usize| lane(access).map_or(1.0, |lane| apart(kernel, access, lane));
    // Where neighbours are far apart a thread of four reads as many sectors, and nobody has measured more.
    let is_apart = |access: usize| {
        let of = &kernel.accesses[access];
        !kernel.arrays[of.array].stored && waste(access) > FAR
    };
    if matches!(way, Way::Fours(_)) && (0..kernel.accesses.len()).any(is_apart) {
        return None;
    }
    let bytes = moved(kernel, &turns, points, &waste);
    let wide = entry.is_wide || matches!(way, Way::Fours(_));
    let each = if wide { 16.0 } else { 4.0 };
    let mut launches = LAUNCH[0];
    let mut threads = f64::from(entry.threads);
    let mut registers = COMPILER;
    // Cycles of a block from its first load to its end, and the bytes that a thread has under way.
    let (path, under_way) = match way {
        Way::Team(team) => {
            let size = f64::from(team.size()) * if wide { 4.0 } else { 1.0 };
            if let Some(parts) = &entry.parts {
                let across = (ends[0] as f64 / f64::from(parts.tile)).ceil();
                let most = at(&parts.turns)? as f64 / parts.least as f64;
                let count = (parts.blocks as f64 / across).floor().min(most).max(1.0);
                if count < 2.0 {
                    return None;
                }
                blocks = across * count;
                threads = f64::from(parts.threads);
                let second = count / 256.0 * PART;
                launches += LAUNCH[1] + second / mhz;
            }
            let room = gpu.arch.registers.per_sm / team.threads;
            if let Some(room) = room.checked_div(team.resident) {
                registers = room.min(wanted(kernel, team, wide)).max(COMPILER);
            }
            let left = f64::from(registers - BASE) / f64::from(loaded(kernel, team, wide));
            let unroll = f64::from(team.unroll).min(left).max(1.0);
            let mut path = COMBINE;
            for statement in &kernel.body {
                if let Statement::Loop(number, _) = statement {
                    let own = turns(*number) * ends_in(blocks, points, entry) / size;
                    path += (own / unroll).ceil().max(1.0) * ARRIVAL + COMBINE;
                }
            }
            (path, each * unroll)
        }
        Way::Across(across) => {
            let own = f64::from(across.side * across.side) / threads;
            (2.0 * ARRIVAL + COMBINE, 4.0 * own.min(8.0))
        }
        Way::Fours(fours) => (ARRIVAL + COMBINE, 16.0 * f64::from(fours.rows).min(4.0)),
        Way::Prefix(prefix) => {
            // The last block adds up everything in front of it.
            let own = points / threads / 4.0;
            let again = points * points / (2.0 * threads * f64::from(prefix.points)) * 4.0;
            let ms = again / copy + own * ARRIVAL / 4.0 / (mhz * 1e3);
            return Some(Prediction {
                ms: ms + LAUNCH[0] / 1e3,
                bound: "latency",
            });
        }
        Way::Totals(of) => {
            let turns = f64::from(of.points);
            let cells: f64 = counted(kernel, &sizes, &ends)?
                .iter()
                .map(|c| c.table)
                .sum();
            let tables = cells / threads * 2.0 * SHARED_ATOMIC;
            // What is read is loaded for four turns together.
            let batch = if wide && turns >= 4.0 { 4.0 } else { 1.0 };
            let elements = if wide { 4.0 } else { 1.0 };
            let read = kernel.arrays.iter().filter(|a| !a.stored);
            let read: f64 = read.map(|a| f64::from(a.bytes) * elements).sum();
            (turns / batch * ARRIVAL + COMBINE + tables, read * batch)
        }
        Way::Tiles(_) => return None,
    };
    let of = Resources::new(registers, (threads as u32).max(32)).static_smem(0);
    let resident = f64::from(occupancy(gpu, &of).ok()?.blocks).max(1.0);
    let together = resident.min((blocks / sms).ceil());
    // Rows that are read again come from memory, where those under way together are more than the cache holds.
    let l2_kib = gpu.typical_board().and_then(|board| board.l2_kib);
    let cache = l2_kib.map_or(0.0, |kib| f64::from(kib.value) * 1024.0);
    let under_way_points = sms * together * f64::from(entry.tile[0]);
    let bytes = match way {
        Way::Team(_) if bytes / points * under_way_points > 0.7 * cache => {
            bytes + again(kernel, &sizes, &ends)
        }
        _ => bytes,
    };
    let waves = (blocks / (sms * together)).max(1.0);
    let busy = sms * together * threads;
    let little = busy.min(blocks * threads) * under_way / ARRIVAL * mhz * 1e3;
    let reads = kernel.arrays.iter().filter(|a| !a.stored).count();
    let limit = match way {
        Way::Across(_) => copy * SQUARE[usize::from(reads > 1)],
        // Long rows, nothing to wait for.
        Way::Fours(_) => copy,
        _ => copy * SPEED,
    };
    let rounds = blocks / (sms * resident);
    let uneven = match way {
        Way::Across(_) => 1.0,
        _ => 1.0 + SHARE / rounds.max(1.0),
    };
    let move_ms = (bytes / limit * uneven).max(bytes / little);
    let wait_ms = waves * path / (mhz * 1e3);
    let issue_ms = operations(kernel, &turns, points) / 32.0 / issued / sms / (mhz * 1e3);
    let (mut here_ms, mut there_ms, mut ending) = (0.0, 0.0, 0.0);
    if let Way::Totals(_) = way {
        let all = counted(kernel, &sizes, &ends)?;
        let tables = all.iter().filter(|c| c.table > 0.0).count() as f64;
        here_ms = tables * points / 32.0 / sms * SHARED_ATOMIC / (mhz * 1e3);
        let again = |c: &Counted| {
            let changes = blocks * c.table.max(c.threads(threads));
            (changes / c.cells, changes)
        };
        there_ms = in_memory(all.iter().map(again), sms, mhz);
        // A block that adds up a table does nothing else meanwhile (`histogram`: with eight times the blocks 1.6 times the
        // time); single sums come one by one, while others read.
        if tables > 0.0 {
            ending = std::mem::take(&mut there_ms);
        }
    }
    let all = [move_ms, wait_ms, issue_ms, here_ms, there_ms].map(|t| (t, ()));
    let (ms, _) = joined(&all, Behaviour::FAMILIES.power);
    let bound = match move_ms >= wait_ms.max(issue_ms).max(here_ms).max(there_ms) {
        true => "memory",
        false if here_ms.max(there_ms) >= wait_ms.max(issue_ms) => "atomics",
        false if wait_ms >= issue_ms => "latency",
        false => "issue",
    };
    // What a block brings together at its end keeps its place.
    let places = match way {
        Way::Team(_) | Way::Totals(_) => {
            (rounds - 1.0).max(0.0) * PLACE * (threads / 1024.0).powi(2) / (mhz * 1e3)
        }
        _ => 0.0,
    };
    let begun = blocks * search::BLOCK / (mhz * 1e3);
    Some(Prediction {
        ms: (ms + ending + places).max(begun) + launches / 1e3,
        bound,
    })
}

/// Bytes of arrays that loops after the first one read again.
fn again(kernel: &Kernel, sizes: &[i64], ends: &[i64]) -> f64 {
    let mut loops = vec![0.0f64; kernel.arrays.len()];
    for statement in &kernel.body {
        let mut seen = vec![false; kernel.arrays.len()];
        if let Statement::Loop(number, _) = statement {
            for (at, access) in kernel.accesses.iter().enumerate() {
                let moves = access
                    .affine()
                    .is_some_and(|p| p.symbols().contains(&kernel.dims[0].symbol));
                seen[access.array] |= moves && outer(kernel, at) == Some(*number);
            }
        }
        for (count, seen) in loops.iter_mut().zip(seen) {
            *count += f64::from(u8::from(seen));
        }
    }
    let extents = emit::extents(kernel);
    let length = |at: usize| {
        let highs = extents[at].as_ref().map(|(_, highs)| highs);
        let of = highs.and_then(|h| h.iter().filter_map(|h| value(h, sizes, ends)).max());
        of.map_or(0.0, |l| l as f64 + 1.0)
    };
    let each = kernel.arrays.iter().enumerate();
    each.map(|(at, array)| {
        let own = f64::from(array.bytes);
        (loops[at] - 1.0).max(0.0) * own * length(at)
    })
    .sum()
}

/// The part of a point's turns that one block does.
fn ends_in(blocks: f64, points: f64, entry: &emit::Entry) -> f64 {
    match &entry.parts {
        Some(parts) => ((points / f64::from(parts.tile)).ceil() / blocks).min(1.0),
        None => 1.0,
    }
}

/// The loop at the top of the kernel in which an access stands.
fn outer(kernel: &Kernel, access: usize) -> Option<usize> {
    let mut found = None;
    for statement in &kernel.body {
        if let Statement::Loop(number, _) = statement {
            statement.walk(&mut |s| {
                let mut loads = false;
                if let Some(value) = s.value() {
                    value.walk(false, &mut |v, _| loads |= *v == Value::Load(access));
                }
                let stores = matches!(s, Statement::Store { access: own, .. } if *own == access);
                if loads || stores {
                    found = Some(*number);
                }
            });
        }
    }
    found
}

/// How many times the bytes of an access are moved, because neighbouring lanes are apart: memory gives 32 bytes at least.
fn apart(kernel: &Kernel, access: usize, lane: Symbol) -> f64 {
    let of = &kernel.accesses[access];
    let bytes = f64::from(kernel.arrays[of.array].bytes.max(1));
    let step = of.affine().and_then(|index| index.coefficient(lane));
    match step.map(|step| step.as_constant()) {
        // Up to four elements apart, others of the kernel lie between them.
        Some(Some(step)) if step.abs() <= 4 => 1.0,
        Some(Some(step)) => (step.abs() as f64 * bytes).min(32.0) / bytes,
        Some(None) => 32.0 / bytes,
        None => 1.0,
    }
}

/// Bytes that go to and from memory: each array once, as far as it is touched, and more where lanes are apart.
fn moved(
    kernel: &Kernel,
    turns: &impl Fn(usize) -> f64,
    points: f64,
    waste: &impl Fn(usize) -> f64,
) -> f64 {
    let mut all = vec![(0.0f64, 0.0f64, 1.0f64); kernel.arrays.len()];
    let ends = |symbols: &[Symbol]| {
        // An access touches as many elements as its places and counters have values.
        let mut count = 1.0;
        for symbol in symbols {
            count *= match symbol {
                Symbol::Loop(number) => turns(*number),
                _ => 1.0,
            };
        }
        count
    };
    let sizes = expected(kernel);
    let dims = expected_ends(kernel, &sizes);
    for (number, access) in kernel.accesses.iter().enumerate() {
        let symbols = access.affine().map(Poly::symbols).unwrap_or_default();
        let mut count = ends(&symbols);
        for (dim, end) in kernel.dims.iter().zip(&dims) {
            if symbols.contains(&dim.symbol) {
                count *= *end as f64;
            }
        }
        if access.affine().is_none() {
            count = points;
        }
        let mut stored = false;
        kernel.body.iter().for_each(|s| {
            s.walk(&mut |s| {
                stored |= matches!(s, Statement::Store { access, .. } if *access == number)
            });
        });
        let of = &mut all[access.array];
        of.2 = of.2.max(waste(number));
        match stored {
            true => of.1 = of.1.max(count),
            false => of.0 += count,
        }
    }
    let mut bytes = 0.0;
    for ((loads, stores, waste), array) in all.iter().zip(&kernel.arrays) {
        let own = f64::from(array.bytes.max(1));
        // Several loads that fit together into what the largest index spans are one pass over it.
        let span = emit::extents(kernel);
        let at = kernel.arrays.iter().position(|a| a == array);
        let length = at
            .and_then(|at| span[at].as_ref())
            .and_then(|(_, highs)| highs.iter().filter_map(|h| value(h, &sizes, &dims)).max());
        let length = length.map_or(f64::INFINITY, |l| l as f64 + 1.0);
        bytes += own * waste * (loads.min(length) + stores.min(length));
    }
    bytes
}

/// Operations of all threads together.
fn operations(kernel: &Kernel, turns: &impl Fn(usize) -> f64, points: f64) -> f64 {
    fn of_value(value: &Value) -> f64 {
        let mut count = 0.0;
        value.walk(false, &mut |v, _| {
            count += match v {
                Value::Call(name, _) if ["fmaxf", "fminf", "fabsf"].contains(&name.as_str()) => 1.0,
                Value::Call(..) => 16.0,
                Value::Binary(op, ..) if op == "/" => 10.0,
                Value::Binary(..) | Value::Select(..) | Value::Unary(..) => 1.0,
                Value::Load(_) => 0.5,
                _ => 0.0,
            };
        });
        count
    }
    fn of(all: &[Statement], turns: &impl Fn(usize) -> f64) -> f64 {
        let mut count = 0.0;
        for statement in all {
            count += match statement {
                Statement::Loop(number, body) => turns(*number) * (of(body, turns) + 0.5),
                Statement::While(cond, body) => {
                    emit::UNKNOWN_TURNS * (of_value(cond) + of(body, turns))
                }
                Statement::If(cond, then, otherwise) => {
                    of_value(cond) + of(then, turns) + of(otherwise, turns)
                }
                s => s.value().map_or(0.0, of_value) + 1.0,
            };
        }
        count
    }
    points * of(&kernel.body, turns)
}
