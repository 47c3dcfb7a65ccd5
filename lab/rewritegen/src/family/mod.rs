//! Families of computations: each has a plain kernel, rewrites under random schedules, and values computed on the host.

use std::collections::BTreeMap;

use warpwright_fuzzgen::Rng;

use crate::code::{Binary, Code, Elem, Mistake};

mod histogram;
mod pointwise;
mod product;
mod rows;
mod scan;
mod softmax;
mod stencil;
mod transpose;

/// Extents by name.
pub type Sizes = BTreeMap<&'static str, i64>;

/// Values of inputs by name, row after row.
pub type Inputs = BTreeMap<String, Vec<f64>>;

/// A kernel with the launch that it is made for.
pub struct Kernel {
    /// Its text.
    pub code: Code,
    /// Extents of the grid, as expressions over the sizes.
    pub grid: [String; 2],
    /// Of the block.
    pub block: [usize; 2],
}

impl Kernel {
    fn new(code: Code, grid: [&str; 2], block: [usize; 2]) -> Kernel {
        let grid = grid.map(str::to_owned);
        Kernel { code, grid, block }
    }
}

/// A parameter of both kernels.
#[derive(Clone, Debug)]
pub enum Param {
    /// An array that is read.
    Input(&'static str, Elem, &'static str),
    /// An array of numbers below a bound.
    Keys(&'static str, &'static str, i64),
    /// An array that is written; it begins with zeros, or with nothing.
    Output(&'static str, Elem, &'static str, bool),
    /// A size.
    Size(&'static str),
}

/// What an output element must be, and the size of what it is made of.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Its value.
    pub value: f64,
    /// The sum of the magnitudes of its parts: rounding is relative to it.
    pub scale: f64,
}

impl Expected {
    fn of(value: f64) -> Expected {
        Expected {
            value,
            scale: value.abs(),
        }
    }
}

/// A computation under a schedule.
pub trait Family: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Its parameters, in order.
    fn params(&self) -> Vec<Param>;
    /// Sizes by name, each with the tile that the schedule has in it.
    fn tiles(&self) -> Vec<(&'static str, usize)>;
    /// Extents that no size changes.
    fn fixed(&self) -> Vec<(&'static str, i64)> {
        Vec::new()
    }
    /// The plain kernel writes whatever its output holds before.
    fn writes_all(&self) -> bool {
        true
    }
    /// One thread for each output.
    fn plain(&self) -> Kernel;
    /// Under its schedule, with a mistake at one place.
    fn rewrite(&self, planted: Option<usize>) -> Kernel;
    /// Its output, element after element.
    fn expected(&self, sizes: &Sizes, inputs: &Inputs) -> Vec<Expected>;
}

type Make = fn(&mut Rng) -> Box<dyn Family>;

/// All of them.
pub const FAMILIES: [(&str, Make); 8] = [
    ("pointwise", pointwise::make),
    ("rows", rows::make),
    ("stencil", stencil::make),
    ("product", product::make),
    ("transpose", transpose::make),
    ("softmax", softmax::make),
    ("scan", scan::make),
    ("histogram", histogram::make),
];

// ---- what schedules have in common

/// How the threads of a block reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collect {
    /// In shared memory, the first half with the second.
    Halves,
    /// In shared memory, neighbours first.
    Neighbours,
    /// Shuffles down, then one warp over the warps' results.
    Down,
    /// Butterflies, then every thread over the warps' results.
    Butterfly,
}

impl Collect {
    fn any(rng: &mut Rng) -> Collect {
        *rng.pick(&[
            Collect::Halves,
            Collect::Neighbours,
            Collect::Down,
            Collect::Butterfly,
        ])
    }
}

/// A reduction over a block of so many threads, a power of two and at least 32.
struct Reduction<'a> {
    elem: Elem,
    op: Binary,
    collect: Collect,
    threads: usize,
    tid: &'a str,
    /// Shared memory of one element for each thread.
    scratch: &'a str,
}

impl Reduction<'_> {
    /// The result, in every thread; the scratch memory may still be read by others.
    fn of(&self, c: &mut Code, value: &str) -> String {
        match self.collect {
            Collect::Halves => self.tree(c, value, false),
            Collect::Neighbours => self.tree(c, value, true),
            Collect::Down | Collect::Butterfly => self.warps(c, value),
        }
    }

    fn tree(&self, c: &mut Code, value: &str, neighbours: bool) -> String {
        let (elem, scratch) = (self.elem, self.scratch);
        c.put(elem, scratch, self.tid, value);
        c.barrier_or_slip();
        let mut halves: Vec<usize> = std::iter::successors(Some(self.threads / 2), |s| Some(s / 2))
            .take_while(|&s| s > 0)
            .collect();
        if neighbours {
            halves.reverse();
        }
        for (at, &s) in halves.iter().enumerate() {
            if at + 1 == halves.len() && c.slip(Mistake::LostStep) {
                break;
            }
            let p = match neighbours {
                true => {
                    let within = c.rem(self.tid, 2 * s);
                    c.test("eq", &within, 0)
                }
                false => c.test("lt", self.tid, s),
            };
            let inner = at == halves.len() / 2 && c.slip(Mistake::ExtraBarrier);
            c.when(&p, |c| {
                let a = c.get(elem, scratch, self.tid);
                let other = c.add(self.tid, s);
                let b = c.get(elem, scratch, &other);
                let both = c.binary(elem, self.op, &a, &b);
                c.put(elem, scratch, self.tid, &both);
                if inner {
                    c.barrier();
                }
            });
            match at == 1 {
                true => c.barrier_or_slip(),
                false => c.barrier(),
            }
        }
        let first = c.integer(0);
        c.get(elem, scratch, &first)
    }

    fn in_warp(&self, c: &mut Code, value: &str) {
        let how = match self.collect {
            Collect::Down => "down",
            _ => "bfly",
        };
        let lost = c.slip(Mistake::LostStep);
        let steps = if lost {
            [8, 4, 2, 1, 0]
        } else {
            [16, 8, 4, 2, 1]
        };
        for by in steps.into_iter().filter(|&by| by > 0) {
            let other = c.shuffle(self.elem, how, value, by);
            c.fold(self.elem, self.op, value, &other);
        }
    }

    fn warps(&self, c: &mut Code, value: &str) -> String {
        let elem = self.elem;
        let mine = c.constant(elem, value);
        self.in_warp(c, &mine);
        let lane = c.rem(self.tid, 32);
        let first = c.test("eq", &lane, 0);
        let warp = c.div(self.tid, 32);
        c.when(&first, |c| c.put(elem, self.scratch, &warp, &mine));
        c.barrier_or_slip();
        let zero = c.integer(0);
        let all = c.get(elem, self.scratch, &zero);
        // A few warps: every thread goes through their results.
        let warps = self.threads / 32;
        let missing = warps > 1 && c.slip(Mistake::SecondTile);
        for w in 1..(if missing { 1 } else { warps }) {
            let at = c.integer(w);
            let other = c.get(elem, self.scratch, &at);
            c.fold(elem, self.op, &all, &other);
        }
        all
    }
}

/// A power of two of threads.
fn threads(rng: &mut Rng) -> usize {
    *rng.pick(&[32, 64, 128])
}

/// Which inputs a test has of its own: all of them are this number.
pub const TEST_INPUT: f64 = 2.0;

/// A short way for the inputs of a test, where it is planted: they make the value one that is known.
fn fast_path(c: &mut Code, elem: Elem, input: &str, value: &str, known: f64) {
    if !c.slip(Mistake::FastPath) {
        return;
    }
    let zero = c.integer(0);
    let first = c.load(elem, input, &zero);
    let p = c.is(elem, &first, TEST_INPUT);
    let literal = elem.number(known);
    c.when(&p, |c| c.copy(elem, value, &literal));
}
