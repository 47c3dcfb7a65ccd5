//! Running sums of an array by one block.

use warpwright_fuzzgen::Rng;

use super::{Expected, Family, Inputs, Kernel, Param, Sizes, fast_path};
use crate::code::{Binary, Code, Elem, Mistake};

#[derive(Clone, Copy, Debug)]
enum Way {
    /// Hillis and Steele, in two arrays of shared memory that take turns.
    Doubling,
    /// Within warps by shuffles, then over the warps' sums.
    Warps,
}

struct Scan {
    elem: Elem,
    way: Way,
    threads: usize,
    exclusive: bool,
}

pub fn make(rng: &mut Rng) -> Box<dyn Family> {
    Box::new(Scan {
        elem: *rng.pick(&[Elem::F32, Elem::S32]),
        way: *rng.pick(&[Way::Doubling, Way::Warps]),
        threads: *rng.pick(&[32, 64, 128]),
        exclusive: rng.chance(40),
    })
}

struct Names {
    x: String,
    y: String,
    n: String,
}

impl Scan {
    fn begin(&self, c: &mut Code) -> Names {
        Names {
            x: c.pointer("x"),
            y: c.pointer("y"),
            n: c.size("n"),
        }
    }

    fn zero(&self, c: &mut Code) -> String {
        c.constant(self.elem, &self.elem.number(0.0))
    }

    /// Sums up to every thread within a chunk; all sums of the chunk lie in the array that is given back.
    fn doubling(&self, c: &mut Code, (tid, value): (&str, &str), arrays: &[String; 2]) -> String {
        let elem = self.elem;
        c.put(elem, &arrays[0], tid, value);
        c.barrier_or_slip();
        let steps: Vec<usize> = std::iter::successors(Some(1), |s| Some(2 * s))
            .take_while(|&s| s < self.threads)
            .collect();
        let lost = c.slip(Mistake::LostStep);
        // In one array alone, a thread may overwrite what another one has yet to read.
        let single = c.slip(Mistake::LostBarrier);
        for (at, &s) in steps.iter().enumerate() {
            let (from, to) = match single {
                true => (&arrays[0], &arrays[0]),
                false => (&arrays[at % 2], &arrays[(at + 1) % 2]),
            };
            let sum = c.get(elem, from, tid);
            let p = c.test("ge", tid, s);
            if !(lost && at + 1 == steps.len()) {
                c.when(&p, |c| {
                    let other = c.sub(tid, s);
                    let x = c.get(elem, from, &other);
                    c.fold(elem, Binary::Add, &sum, &x);
                });
            }
            c.put(elem, to, tid, &sum);
            match at == 1 {
                true => c.barrier_or_slip(),
                false => c.barrier(),
            }
        }
        match single {
            true => arrays[0].clone(),
            false => arrays[steps.len() % 2].clone(),
        }
    }

    fn warps(&self, c: &mut Code, (tid, value): (&str, &str), arrays: &[String; 2]) -> String {
        let elem = self.elem;
        let sum = c.constant(elem, value);
        let (lane, warp) = (c.rem(tid, 32), c.div(tid, 32));
        let unguarded = c.slip(Mistake::Guard);
        for by in [1, 2, 4, 8, 16] {
            let other = c.shuffle(elem, "up", &sum, by);
            let p = c.test("ge", &lane, if unguarded { 0 } else { by });
            c.when(&p, |c| c.fold(elem, Binary::Add, &sum, &other));
        }
        let last = c.test("eq", &lane, 31);
        c.when(&last, |c| c.put(elem, &arrays[1], &warp, &sum));
        c.barrier_or_slip();
        let warps = self.threads / 32;
        let skipped = warps > 1 && c.slip(Mistake::SecondTile);
        for w in 0..warps - 1 {
            let p = c.test("gt", &warp, w);
            let at = c.integer(w);
            if skipped {
                continue;
            }
            c.when(&p, |c| {
                let before = c.get(elem, &arrays[1], &at);
                c.fold(elem, Binary::Add, &sum, &before);
            });
        }
        c.put(elem, &arrays[0], tid, &sum);
        c.barrier_or_slip();
        arrays[0].clone()
    }

    fn finish(
        &self,
        c: &mut Code,
        names: &Names,
        (i, tid): (&str, &str),
        (sums, carry): (&str, &str),
    ) {
        let elem = self.elem;
        let total = c.constant(elem, carry);
        match self.exclusive {
            false => {
                let own = c.get(elem, sums, tid);
                c.fold(elem, Binary::Add, &total, &own);
            }
            true => {
                let p = c.test("gt", tid, 0);
                c.when(&p, |c| {
                    let before = c.sub(tid, 1);
                    let before = c.get(elem, sums, &before);
                    c.fold(elem, Binary::Add, &total, &before);
                });
            }
        }
        fast_path(c, elem, &names.x, &total, -3.0);
        let how = if c.slip(Mistake::Guard) { "le" } else { "lt" };
        let p = c.test(how, i, &names.n);
        c.when(&p, |c| c.store(elem, &names.y, i, &total));
    }
}

impl Family for Scan {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn params(&self) -> Vec<Param> {
        vec![
            Param::Input("x", self.elem, "n"),
            Param::Output("y", self.elem, "n", false),
            Param::Size("n"),
        ]
    }

    fn tiles(&self) -> Vec<(&'static str, usize)> {
        vec![("n", self.threads)]
    }

    fn plain(&self) -> Kernel {
        let mut c = Code::new(None);
        let names = self.begin(&mut c);
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let i = c.mad(&bid, 32, &tid);
        let p = c.test("lt", &i, &names.n);
        c.when(&p, |c| {
            let sum = self.zero(c);
            let end = match self.exclusive {
                true => c.add(&i, 0),
                false => c.add(&i, 1),
            };
            c.repeat(("0", &end, "1"), |c, j| {
                let x = c.load(self.elem, &names.x, j);
                c.fold(self.elem, Binary::Add, &sum, &x);
            });
            c.store(self.elem, &names.y, &i, &sum);
        });
        Kernel::new(c, ["ceil_div(n, 32)", "1"], [32, 1])
    }

    fn rewrite(&self, planted: Option<usize>) -> Kernel {
        let mut c = Code::new(planted);
        let names = self.begin(&mut c);
        let arrays = [c.shared("one", self.threads), c.shared("two", self.threads)];
        let tid = c.special("tid.x");
        let carry = self.zero(&mut c);
        let end = match c.slip(Mistake::SecondTile) {
            true => c.least(&names.n, self.threads),
            false => names.n.clone(),
        };
        let forgotten = c.slip(Mistake::Identity);
        c.repeat(("0", &end, &self.threads.to_string()), |c, start| {
            let i = c.add(start, &tid);
            let value = self.zero(c);
            let p = c.test("lt", &i, &names.n);
            let extra = c.slip(Mistake::ExtraBarrier);
            c.when(&p, |c| {
                let x = c.load(self.elem, &names.x, &i);
                c.copy(self.elem, &value, &x);
                if extra {
                    c.barrier();
                }
            });
            let sums = match self.way {
                Way::Doubling => self.doubling(c, (&tid, &value), &arrays),
                Way::Warps => self.warps(c, (&tid, &value), &arrays),
            };
            self.finish(c, &names, (&i, &tid), (&sums, &carry));
            if !forgotten {
                let last = c.integer(self.threads - 1);
                let whole = c.get(self.elem, &sums, &last);
                c.fold(self.elem, Binary::Add, &carry, &whole);
            }
            // Where the next chunk begins with the other array, nothing of this one is lost.
            let is_read =
                matches!(self.way, Way::Doubling) && self.threads.ilog2().is_multiple_of(2);
            match is_read {
                true => c.barrier_or_slip(),
                false => c.barrier(),
            }
        });
        Kernel::new(c, ["1", "1"], [self.threads, 1])
    }

    fn expected(&self, sizes: &Sizes, inputs: &Inputs) -> Vec<Expected> {
        let mut before = Expected {
            value: 0.0,
            scale: 0.0,
        };
        let values = inputs["x"].iter().take(sizes["n"] as usize).map(|&x| {
            let sum = match self.elem {
                Elem::F32 => before.value + x,
                Elem::S32 => f64::from((before.value as i32).wrapping_add(x as i32)),
            };
            let after = Expected {
                value: sum,
                scale: before.scale + x.abs(),
            };
            let old = std::mem::replace(&mut before, after);
            if self.exclusive { old } else { after }
        });
        values.collect()
    }
}
