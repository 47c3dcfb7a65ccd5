//! How often each key occurs.

use warpwright_fuzzgen::Rng;

use super::{Expected, Family, Inputs, Kernel, Param, Sizes};
use crate::code::{Binary, Code, Elem, Mistake};

#[derive(Clone, Copy, Debug)]
enum Way {
    /// Atomic operations on the result.
    Global,
    /// Counters in shared memory, then added to the result.
    Shared,
}

struct Histogram {
    way: Way,
    block: usize,
    bins: usize,
    /// The original goes through all keys for each counter: no address is made of them.
    searches: bool,
}

pub fn make(rng: &mut Rng) -> Box<dyn Family> {
    Box::new(Histogram {
        way: *rng.pick(&[Way::Global, Way::Shared]),
        block: *rng.pick(&[32, 64]),
        bins: rng.range(3, 40),
        searches: rng.chance(50),
    })
}

const I: Elem = Elem::S32;

struct Names {
    keys: String,
    counts: String,
    n: String,
}

impl Histogram {
    fn begin(&self, c: &mut Code) -> Names {
        Names {
            keys: c.pointer("keys"),
            counts: c.pointer("counts"),
            n: c.size("n"),
        }
    }

    /// Calls what is given for every counter of the block's threads.
    fn bins(&self, c: &mut Code, tid: &str, tail: bool, body: impl FnOnce(&mut Code, &str)) {
        let end = match tail {
            true => self.bins - 1,
            false => self.bins,
        };
        let end = c.integer(end);
        c.repeat((tid, &end, &self.block.to_string()), body);
    }

    fn in_shared(&self, c: &mut Code, names: &Names, (i, tid): (&str, &str)) {
        let counters = c.shared("counters", self.bins);
        if !c.slip(Mistake::Unset) {
            self.bins(c, tid, false, |c, at| {
                let zero = c.integer(0);
                c.put(I, &counters, at, &zero);
            });
        }
        c.barrier_or_slip();
        let p = c.test("lt", i, &names.n);
        let lost = c.slip(Mistake::LostAtomic);
        c.when(&p, |c| {
            let key = c.load(I, &names.keys, i);
            c.count(&counters, &key, lost);
        });
        c.barrier_or_slip();
        let tail = c.slip(Mistake::Tail);
        self.bins(c, tid, tail, |c, at| {
            let count = c.get(I, &counters, at);
            match c.slip(Mistake::LeftOutput) {
                true => c.store(I, &names.counts, at, &count),
                false => c.atomic(I, Binary::Add, &names.counts, at, &count, false),
            }
        });
    }

    fn in_global(&self, c: &mut Code, names: &Names, i: &str) {
        let how = if c.slip(Mistake::Guard) { "le" } else { "lt" };
        let p = c.test(how, i, &names.n);
        let lost = c.slip(Mistake::LostAtomic);
        let by = if c.slip(Mistake::Formula) { 2 } else { 1 };
        c.when(&p, |c| {
            let key = c.load(I, &names.keys, i);
            let one = c.integer(by);
            c.atomic(I, Binary::Add, &names.counts, &key, &one, lost);
        });
    }
}

impl Family for Histogram {
    fn name(&self) -> &'static str {
        "histogram"
    }

    fn params(&self) -> Vec<Param> {
        vec![
            Param::Keys("keys", "n", self.bins as i64),
            Param::Output("counts", I, "bins", true),
            Param::Size("n"),
        ]
    }

    fn tiles(&self) -> Vec<(&'static str, usize)> {
        vec![("n", self.block)]
    }

    fn fixed(&self) -> Vec<(&'static str, i64)> {
        vec![("bins", self.bins as i64)]
    }

    fn writes_all(&self) -> bool {
        self.searches
    }

    fn plain(&self) -> Kernel {
        let mut c = Code::new(None);
        let names = self.begin(&mut c);
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let i = c.mad(&bid, 64, &tid);
        if !self.searches {
            self.in_global(&mut c, &names, &i);
            return Kernel::new(c, ["ceil_div(n, 64)", "1"], [64, 1]);
        }
        let p = c.test("lt", &i, self.bins);
        c.when(&p, |c| {
            let sum = c.integer(0);
            c.repeat(("0", &names.n, "1"), |c, j| {
                let key = c.load(I, &names.keys, j);
                let p = c.test("eq", &key, &i);
                c.when(&p, |c| c.set("add.s32", &sum, &[&sum, "1"]));
            });
            c.store(I, &names.counts, &i, &sum);
        });
        Kernel::new(c, ["1", "1"], [64, 1])
    }

    fn rewrite(&self, planted: Option<usize>) -> Kernel {
        let mut c = Code::new(planted);
        let names = self.begin(&mut c);
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let i = c.mad(&bid, self.block, &tid);
        match self.way {
            Way::Global => self.in_global(&mut c, &names, &i),
            Way::Shared => self.in_shared(&mut c, &names, (&i, &tid)),
        }
        let blocks = match c.slip(Mistake::SecondTile) {
            true => "1".to_owned(),
            false => format!("ceil_div(n, {})", self.block),
        };
        Kernel::new(c, [&blocks, "1"], [self.block, 1])
    }

    fn expected(&self, _sizes: &Sizes, inputs: &Inputs) -> Vec<Expected> {
        let mut counts = vec![0.0; self.bins];
        for &key in &inputs["keys"] {
            counts[key as usize] += 1.0;
        }
        counts.into_iter().map(Expected::of).collect()
    }
}
