//! Buffers whose sizes are guessed become as large as the kernel reaches in them.
//!
//! So the kernel runs at small sizes that tell the names apart, with memory to spare, and how far it has gone is compared
//! with the products of the names.

use std::rc::Rc;

use warpwright_emu::{Options, Outcome, Program};
use warpwright_launch::{Launch, no_files};

use crate::amount::{Amount, Root};
use crate::draft::{Draft, Memory};

/// Names that products are made of.
const NAMES: usize = 8;
/// Each of them is as many times what it is at the least, at either run; those of the grid and of loops are tried small,
/// since conditions keep threads in their places, and as they are.
const FACTORS: [[i64; NAMES]; 2] = [[2, 3, 5, 7, 11, 13, 17, 19], [3, 7, 2, 5, 19, 11, 13, 17]];
const LEAST: [i64; 4] = [4, 12, 32, i64::MAX];
/// Factors of a product.
const DEEPEST: u32 = 4;
/// A buffer has as many times the elements of the largest product, up to some bytes.
const SPARE: i64 = 4;
const MOST_BYTES: i64 = 16 << 20;
/// One in so many elements may be of a border.
const BORDER: i64 = 4;
/// Warp instructions of a run.
const FUEL: u64 = 1 << 20;

/// The sizes of buffers of which the draft has none, as products of its names; nothing of one of which the runs do not
/// tell. No more runs where it is late.
pub fn fitted(
    program: &Program,
    draft: &Draft,
    is_late: &dyn Fn() -> bool,
) -> Vec<(String, Amount)> {
    let mut open: Vec<&Memory> = draft.memory().filter(|memory| is_open(memory)).collect();
    let names: Vec<Rc<Root>> = draft.names.iter().map(|n| n.root.clone()).collect();
    let products = products(&names);
    let (mut found, mut all) = (Vec::new(), Vec::new());
    for least in LEAST {
        if open.is_empty() || is_late() {
            break;
        }
        let runs = FACTORS.iter().map(|by| run(program, draft, (by, least)));
        let Some(runs) = runs.collect::<Option<Vec<Run>>>() else {
            continue;
        };
        open.retain(|memory| {
            let is_it = |amount: &&Amount| runs.iter().all(|run| run.reaches(memory, amount));
            let product = products.iter().find(is_it);
            found.extend(product.map(|product| (memory.name.clone(), product.clone())));
            product.is_none()
        });
        all.push(runs);
    }
    // A border may be left out.
    for memory in open {
        let near = all.iter().rev().find_map(|runs| {
            let is_it = |amount: &&Amount| runs.iter().all(|run| run.is_near(memory, amount));
            products.iter().find(is_it)
        });
        found.extend(near.map(|product| (memory.name.clone(), product.clone())));
    }
    found
}

/// Does nobody say how large it is?
fn is_open(memory: &Memory) -> bool {
    memory.rows.is_none() && memory.count.is_none()
}

/// How far a kernel goes at some sizes.
struct Run {
    draft: Draft,
    launch: Launch,
    reach: Vec<u64>,
}

impl Run {
    /// Elements of a buffer up to the last one that the kernel goes to.
    fn reached(&self, memory: &Memory) -> i64 {
        let at = self
            .launch
            .buffers()
            .position(|own| own.name == memory.name);
        let bytes = at.and_then(|at| self.reach.get(at)).copied().unwrap_or(0);
        let reached = bytes.div_ceil(memory.layout.size().max(1) as u64);
        i64::try_from(reached).unwrap_or(i64::MAX)
    }

    /// Does the kernel go as far as to this element of a buffer, and no further?
    fn reaches(&self, memory: &Memory, count: &Amount) -> bool {
        let reached = self.reached(memory);
        reached > 0 && Some(reached) == self.draft.at(count, true)
    }

    /// Does it go nearly so far?
    fn is_near(&self, memory: &Memory, count: &Amount) -> bool {
        let reached = self.reached(memory);
        let count = self.draft.at(count, true).unwrap_or(0);
        (reached..reached.saturating_add(count / BORDER)).contains(&count)
    }
}

/// A run with names that are so many times what they are at the least, and memory to spare.
fn run(program: &Program, draft: &Draft, (by, least): (&[i64; NAMES], i64)) -> Option<Run> {
    let mut draft = draft.clone();
    for (named, by) in draft.names.iter_mut().zip(by) {
        named.small = named.small.min(least).checked_mul(*by)?;
    }
    let all = draft.names.iter().map(|named| named.small);
    let all = all.fold(SPARE, i64::saturating_mul);
    let mut larger = draft.clone();
    for memory in larger.buffers_mut().filter(|memory| is_open(memory)) {
        let most = MOST_BYTES / memory.layout.size().max(1) as i64;
        memory.count = Some(Amount::Number(all.min(most)));
    }
    let launch = larger.file().ok()?.resolve("small", &[]).ok()?;
    let inputs = launch.buffers().map(|buffer| buffer.materialize(&no_files));
    let inputs = inputs.collect::<Result<_, _>>().ok()?;
    let options = Options {
        patterns: true,
        loose_shuffles: true,
        budget: FUEL,
        total: FUEL,
        ..Options::default()
    };
    match program.run(&launch, inputs, &options).ok()? {
        Outcome::Finished(results) => Some(Run {
            draft,
            launch,
            reach: results.reach,
        }),
        Outcome::Faulted(_) => None,
    }
}

/// The products of names, those of few first.
fn products(names: &[Rc<Root>]) -> Vec<Amount> {
    let names = &names[..names.len().min(NAMES)];
    let mut all: Vec<(u32, usize, Amount)> = Vec::new();
    for set in 1_usize..1 << names.len() {
        let of = (0..names.len()).filter(|at| set >> at & 1 == 1);
        let product = of
            .map(|at| Amount::Root(names[at].clone()))
            .reduce(Amount::times);
        let count = set.count_ones();
        let product = product.filter(|_| count <= DEEPEST);
        all.extend(product.map(|product| (count, set, product)));
    }
    all.sort_by_key(|(count, set, _)| (*count, *set));
    all.into_iter().map(|(.., product)| product).collect()
}
