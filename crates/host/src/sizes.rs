//! The numbers of a description's names: the code's own for a GPU, smaller ones for the emulator.

use std::collections::BTreeSet;
use std::rc::Rc;

use warpwright_launch::{Op, Source};
use warpwright_target::SHARED_PER_BLOCK;

use crate::amount::{Amount, Root, roots_of};
use crate::draft::{Contents, Draft, Named};

/// Threads that the emulator runs in a moment, and those that it still may be asked to run.
const FEW: i64 = 1 << 13;
const MANY: i64 = 1 << 18;
/// Elements of all buffers together at the small size.
const ELEMENTS: i64 = 1 << 21;
/// Numbers at the small size that are no part of the grid, at most.
const OTHERS: i64 = 1 << 10;
/// Threads and bytes of the full size where these are guessed.
const FULL_THREADS: i64 = 1 << 24;
const FULL_BYTES: i64 = 2 << 30;

/// How the small size is chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Small {
    /// It is halved that often.
    pub shift: u32,
    /// Sizes are no multiples of the block.
    pub is_ragged: bool,
    /// Scalars are made smaller than they have to be.
    pub is_long: bool,
    /// Sizes that are not the same in the code differ, so that one taken for another is seen.
    pub differ: bool,
    /// It is doubled that often, as far as up to the full one.
    pub grown: u32,
    /// Sizes are those of the full one, and blocks few.
    pub is_full: bool,
}

impl Small {
    /// A cap, made smaller or larger.
    fn scaled(self, cap: i64) -> i64 {
        (cap >> self.shift).max(1).saturating_mul(self.factor())
    }

    fn factor(self) -> i64 {
        1_i64.checked_shl(self.grown).unwrap_or(i64::MAX)
    }
}

/// As much smaller than a whole number of blocks a size is, and the next than that.
const RAGGED: i64 = 27;
const STEP: i64 = 10;

/// Gives each root of a draft a name, in the order of their importance.
pub fn name(draft: &mut Draft) {
    let grid = draft.grid.iter();
    let mut order: Vec<Rc<Root>> = grid.flat_map(|extent| roots_of([extent])).collect();
    let mut shaping: BTreeSet<Rc<Root>> = order.iter().cloned().collect();
    for memory in draft.memory() {
        let counts = memory.count.iter().chain(match memory.count {
            Some(_) => [].iter(),
            None => draft.guessed_count.iter(),
        });
        for count in counts.chain(&memory.rows) {
            count.roots(&mut shaping);
        }
    }
    order.extend(shaping.iter().cloned());
    order.extend(draft.used());
    let mut names: Vec<Named> = Vec::new();
    for root in order {
        if names.iter().any(|named| named.root == root) {
            continue;
        }
        let is_taken = |name: &str| name == "i" || names.iter().any(|named| named.name == name);
        let mut name = root.name.clone();
        for number in 2.. {
            if !is_taken(&name) {
                break;
            }
            name = format!("{}_{number}", root.name);
        }
        let before = draft.names.iter().find(|named| named.root == root);
        names.push(Named {
            name,
            small: before.map_or(1, |b| b.small),
            full: before.map_or(1, |b| b.full),
            source: match root.value {
                Some(_) => draft.sizes_source,
                None => Source::Guessed,
            },
            is_scalar: !shaping.contains(&root),
            root,
        });
    }
    // A description has at least one parameter for its sizes to differ in.
    draft.names = names;
}

fn product(all: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    let mut product = 1_i64;
    for one in all {
        product = product.saturating_mul(one.filter(|n| *n > 0)?);
    }
    Some(product)
}

/// Threads, elements and bytes at one of the sizes; none where something is no size.
fn extent(draft: &Draft, is_small: bool) -> Option<(i64, i64, i64)> {
    let in_range = |n: Option<i64>, most: i64| n.filter(|n| *n <= most);
    let grid = draft.grid.iter().enumerate().map(|(at, extent)| {
        in_range(
            draft.at(extent, is_small),
            if at == 0 { i64::from(i32::MAX) } else { 65535 },
        )
    });
    let blocks = product(grid)?;
    let threads = draft
        .block
        .iter()
        .fold(blocks, |all, n| all.saturating_mul((*n).into()));
    let (mut elements, mut bytes) = (0_i64, 0_i64);
    for memory in draft.memory() {
        let count = match &memory.count {
            Some(count) => draft.at(count, is_small).filter(|n| *n > 0)?,
            None => product(draft.guessed_count.iter().map(|a| draft.at(a, is_small)))?,
        };
        let rows = memory.rows.iter().map(|rows| draft.at(rows, is_small));
        let count = count.saturating_mul(product(rows)?);
        elements = elements.saturating_add(count);
        bytes = bytes.saturating_add(count.saturating_mul(memory.layout.size() as i64));
    }
    let smem = draft.at(&draft.dynamic_smem, is_small)?;
    (0..=i64::from(SHARED_PER_BLOCK))
        .contains(&smem)
        .then_some(())
        .or_else(|| matches!(draft.dynamic_smem, Amount::Number(_)).then_some(()))?;
    Some((threads, elements, bytes))
}

/// Has the small size more threads than the emulator may be asked to run?
pub fn has_many_threads(draft: &Draft) -> bool {
    extent(draft, true).is_none_or(|(threads, ..)| threads > MANY)
}

/// A cap in whole blocks.
fn whole(cap: i64, block: &[u32]) -> i64 {
    let widest = block.iter().copied().max().map_or(1, i64::from);
    match cap >= widest && cap % widest != 0 {
        true => cap - cap % widest,
        false => cap,
    }
}

/// The names of which a part of the grid is a quotient that is rounded up: they need not be whole blocks.
fn rounded(draft: &Draft) -> BTreeSet<Rc<Root>> {
    let (mut all, mut others) = (BTreeSet::new(), BTreeSet::new());
    for extent in &draft.grid {
        match extent {
            Amount::Binary(Op::CeilDiv, of, _) => of.roots(&mut all),
            extent => extent.roots(&mut others),
        }
    }
    all.retain(|root| !others.contains(root));
    all
}

/// Numbers at the small size: those of the grid no larger than the first cap, others no larger than the second.
fn cap_small(draft: &mut Draft, cap: i64, others: i64, small: Small) {
    let in_grid = roots_of(&draft.grid);
    let (cap, others) = (whole(cap, &draft.block), whole(others, &draft.block));
    let ragged = match small.is_ragged {
        true => rounded(draft),
        false => BTreeSet::new(),
    };
    for named in &mut draft.names {
        let cap = match in_grid.contains(&named.root) {
            true if ragged.contains(&named.root) && cap > 2 * RAGGED => cap - RAGGED,
            true => cap,
            false => others,
        };
        named.small = match named.root.value {
            Some(value) if named.is_scalar && value < 1 << 16 && !small.is_long => value,
            Some(value) => value.min(cap),
            None => cap.min(named.full),
        };
    }
    if small.differ {
        differ(draft, small);
    }
}

/// Of sizes that the code does not say to be the same, and that are, the smaller becomes smaller.
fn differ(draft: &mut Draft, small: Small) {
    let widest = draft.block.iter().copied().max().map_or(1, i64::from);
    let mut order: Vec<usize> = (0..draft.names.len()).collect();
    order.retain(|&at| !draft.names[at].is_scalar);
    order.sort_by_key(|&at| std::cmp::Reverse(draft.names[at].full));
    for (at, &own) in order.iter().enumerate() {
        let is_same = |named: &Named, of: &Named| {
            named.small == of.small && (named.full != of.full || of.root.value.is_none())
        };
        for _ in 0..order.len() {
            let named = &draft.names[own];
            let mut before = order[..at].iter().map(|&other| &draft.names[other]);
            if !before.any(|other| is_same(other, named)) {
                break;
            }
            let less = match small.is_ragged && named.small % widest != 0 {
                true => named.small - STEP,
                false => whole(named.small / 2, &draft.block),
            };
            if less < widest.min(STEP) {
                break;
            }
            draft.names[own].small = less;
        }
    }
}

/// Chooses all numbers. Those of scalars that nobody knows are `scalar`, if that is given.
pub fn choose(draft: &mut Draft, small: Small, scalar: Option<i64>) {
    choose_full(draft);
    let found = match small.is_full {
        true => None,
        false => fitting_caps(draft, small),
    };
    if found.is_none() {
        fewer_blocks(draft);
    }
    if found.is_none() && !small.is_full {
        shorter_buffers(draft);
    }
    match (small.is_full, found.unwrap_or((OTHERS, OTHERS))) {
        (true, _) => cap_small(draft, i64::MAX, i64::MAX, small),
        (false, (cap, others)) => {
            cap_small(draft, small.scaled(cap), small.scaled(others), small);
            if extent(draft, true).is_none() {
                cap_small(draft, cap, others, small);
            }
        }
    }
    if small.differ {
        turn_twice(draft);
    }
    for named in &mut draft.names {
        if let (true, None, Some(scalar)) = (named.is_scalar, named.root.value, scalar) {
            (named.small, named.full) = (scalar, scalar);
        }
        if found.is_some() {
            continue;
        }
        let is_blocks = draft
            .grid
            .iter()
            .any(|extent| *extent == Amount::Root(named.root.clone()));
        let is_length = named.root.name.ends_with("_length") && named.root.value.is_some();
        if is_length && !small.is_full {
            let length = small.factor().saturating_mul(1 << 16);
            named.small = named.full.min(length);
        }
        if is_blocks && !named.is_scalar {
            named.small = named.small.min(4);
        }
    }
}

/// Numbers at the full size that nobody knows, in the order in which they are tried.
const FULL_CAPS: [i64; 15] = [
    10 << 20,
    1 << 20,
    1 << 18,
    1 << 16,
    1 << 14,
    1 << 12,
    2048,
    1024,
    512,
    256,
    128,
    64,
    32,
    16,
    8,
];

/// The numbers at the full size: those that are known, and of others the largest that fit a GPU.
fn choose_full(draft: &mut Draft) {
    let at_full = |draft: &mut Draft, cap: i64| {
        let cap = whole(cap, &draft.block);
        for named in &mut draft.names {
            let known = named.root.value.or(draft.solved.get(&named.root).copied());
            named.full = known.unwrap_or(cap);
        }
    };
    if draft.names.iter().all(|named| named.root.value.is_some()) {
        at_full(draft, 0);
        return;
    }
    let fits = |draft: &mut Draft, cap: i64| {
        at_full(draft, cap);
        let extent = extent(draft, false);
        extent.is_some_and(|(threads, _, bytes)| threads <= FULL_THREADS && bytes <= FULL_BYTES)
    };
    if !FULL_CAPS.into_iter().any(|cap| fits(draft, cap)) {
        at_full(draft, 1024);
    }
    // What nobody knows may be the length of a buffer: no larger than the shortest, or the full size leaves it.
    let lengths = draft.memory().filter_map(|memory| match &memory.count {
        Some(Amount::Number(_)) => None,
        Some(count) => draft.at(count, false),
        None => product(draft.guessed_count.iter().map(|a| draft.at(a, false))),
    });
    if let Some(shortest) = lengths.filter(|n| *n > 1).min() {
        let open = draft.names.iter_mut().filter(|named| named.is_scalar);
        for named in open.filter(|named| named.root.value.is_none()) {
            named.full = named.full.min(shortest);
        }
    }
}

/// The largest caps of the sizes of the grid and of others with which the emulator runs the small size in a moment.
fn fitting_caps(draft: &mut Draft, small: Small) -> Option<(i64, i64)> {
    let caps: Vec<i64> = (0..=12).rev().map(|power| 1_i64 << power).collect();
    for (most, elements) in [(FEW, ELEMENTS), (MANY, 4 * ELEMENTS)] {
        for &cap in &caps {
            let mut fits = |others: &&i64| {
                cap_small(draft, cap, **others, small);
                extent(draft, true).is_some_and(|(t, e, _)| t <= most && e <= elements)
            };
            let mut others = caps.iter().filter(|others| **others <= OTHERS.max(cap));
            if let Some(others) = others.find(&mut fits) {
                return Some((cap, *others));
            }
        }
    }
    None
}

/// Where loops go by the grid they turn twice at the small size, if they do at the full one.
fn turn_twice(draft: &mut Draft) {
    let in_grid = roots_of(&draft.grid);
    let threads = [true, false].map(|is_small| extent(draft, is_small).map(|(t, ..)| t));
    let (true, [Some(small), Some(full)]) = (draft.strides, threads) else {
        return;
    };
    for at in 0..draft.names.len() {
        let named = &draft.names[at];
        let before = named.small;
        let twice = named.full.min(2 * small + RAGGED);
        let is_turned = named.full > full && before < twice && !in_grid.contains(&named.root);
        if is_turned && !named.is_scalar {
            draft.names[at].small = twice;
            if extent(draft, true).is_none_or(|(_, elements, _)| elements > ELEMENTS) {
                draft.names[at].small = before;
            }
        }
    }
}

/// A grid that no name makes smaller gets names of its own: with fewer blocks, the same buffers are large enough.
fn fewer_blocks(draft: &mut Draft) {
    let many = draft.grid.len() > 1;
    for at in 0..draft.grid.len() {
        let extent = draft.grid[at].clone();
        let Some(full) = draft.at(&extent, false).filter(|n| *n > 4) else {
            continue;
        };
        let name = match many {
            true => format!("blocks_{}", ["x", "y", "z"][at.min(2)]),
            false => "blocks".to_owned(),
        };
        draft.grid[at] = Root::amount(&name, Some(full));
    }
    let before: Vec<(Rc<Root>, i64)> = draft
        .names
        .iter()
        .map(|n| (n.root.clone(), n.full))
        .collect();
    name(draft);
    for named in &mut draft.names {
        let own = before
            .iter()
            .find(|(root, _)| *root == named.root)
            .map(|(_, full)| *full);
        named.full = own.or(named.root.value).unwrap_or(1);
        named.small = named.full.min(4);
        // The number is the grid's own.
        if own.is_none() {
            named.source = draft.grid_source;
        }
    }
}

/// A long buffer that no name makes shorter gets one.
fn shorter_buffers(draft: &mut Draft) {
    let mut added = Vec::new();
    for memory in draft.buffers_mut() {
        if let Some(Amount::Number(count)) = memory.count
            && count > ELEMENTS
        {
            let root = Root::amount(&format!("{}_length", memory.name), Some(count));
            added.push((root.clone(), memory.source));
            memory.count = Some(root);
        }
    }
    let before = draft.names.clone();
    name(draft);
    for named in &mut draft.names {
        if let Some(old) = before.iter().find(|old| old.root == named.root) {
            (named.small, named.full, named.source) = (old.small, old.full, old.source);
        }
        let new = added
            .iter()
            .find(|(root, _)| *root == Amount::Root(named.root.clone()));
        if let (Some((_, source)), Some(full)) = (new, named.root.value) {
            (named.small, named.full, named.source) = (full.min(1 << 16), full, *source);
        }
    }
}

/// Contents of buffers of indices: below the smallest buffer that they may point into; row pointers go up to the number
/// of entries.
pub fn fill(draft: &mut Draft) {
    let count = |memory: &crate::draft::Memory| match &memory.count {
        Some(count) => Some(count.clone()),
        None => draft.guessed_count.iter().cloned().reduce(Amount::times),
    };
    let counts: Vec<(String, bool, Amount, i64)> = draft
        .memory()
        .filter_map(|memory| {
            let count = count(memory)?;
            // Those that are the same at the small size differ at the full one.
            let number = draft.at(&count, false)?;
            let is_index = matches!(memory.contents, Contents::Indices(_) | Contents::Sorted(_));
            Some((memory.name.clone(), is_index, count, number))
        })
        .collect();
    let is_rows = |count: &Amount| {
        let is_one_more =
            |a: &Amount| matches!(a, Amount::Binary(Op::Add, _, one) if **one == Amount::Number(1));
        is_one_more(count)
    };
    for memory in draft.buffers_mut() {
        if !matches!(memory.contents, Contents::Indices(_) | Contents::Sorted(_)) {
            continue;
        }
        let others = || {
            counts
                .iter()
                .filter(|(name, _, _, n)| *name != memory.name && *n > 1)
        };
        let smallest = others()
            .min_by_key(|(.., n)| *n)
            .map(|(_, _, count, _)| count.clone());
        let entries = others().find(|(_, is_index, count, _)| *is_index && !is_rows(count));
        let entries = entries.map(|(_, _, count, _)| count.clone());
        let own = counts
            .iter()
            .find(|(name, ..)| *name == memory.name)
            .map(|(_, _, count, _)| count.clone());
        let is_row = memory.count.as_ref().is_some_and(is_rows) && !memory.is_output;
        memory.contents = match is_row || matches!(memory.contents, Contents::Sorted(_)) {
            true => Contents::Sorted(entries.or(smallest).or(own).unwrap_or(Amount::Number(1))),
            false => {
                let smaller = match (&smallest, &own) {
                    (Some(a), Some(b)) if draft_number(&counts, a) > draft_number(&counts, b) => {
                        own.clone()
                    }
                    _ => smallest.clone(),
                };
                Contents::Indices(smaller.or(own).unwrap_or(Amount::Number(1)))
            }
        };
    }
}

fn draft_number(counts: &[(String, bool, Amount, i64)], amount: &Amount) -> i64 {
    counts
        .iter()
        .find(|(_, _, count, _)| count == amount)
        .map_or(1, |(.., n)| *n)
}
