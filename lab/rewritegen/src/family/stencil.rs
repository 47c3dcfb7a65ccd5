//! A weighted sum of neighbours in one dimension.

use warpwright_fuzzgen::Rng;

use super::{Expected, Family, Inputs, Kernel, Param, Sizes, fast_path};
use crate::code::{Code, Elem, Mistake};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Border {
    /// Zeros beyond the ends.
    Zero,
    /// The first and last element beyond the ends.
    Clamp,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    /// A tile with its halo in shared memory.
    Tile,
    /// So many outputs for each thread, neighbours in registers.
    Window(usize),
}

struct Stencil {
    elem: Elem,
    radius: usize,
    weights: Vec<i32>,
    border: Border,
    way: Way,
    block: usize,
}

pub fn make(rng: &mut Rng) -> Box<dyn Family> {
    let radius = rng.range(1, 3);
    Box::new(Stencil {
        elem: *rng.pick(&[Elem::F32, Elem::S32]),
        radius,
        weights: (0..=2 * radius).map(|_| rng.range(1, 5) as i32).collect(),
        border: *rng.pick(&[Border::Zero, Border::Clamp]),
        way: match rng.chance(60) {
            true => Way::Tile,
            false => Way::Window(rng.range(2, 3)),
        },
        block: *rng.pick(&[32, 40, 64]),
    })
}

struct Names {
    x: String,
    y: String,
    n: String,
}

impl Stencil {
    fn begin(&self, c: &mut Code) -> Names {
        Names {
            x: c.pointer("x"),
            y: c.pointer("y"),
            n: c.size("n"),
        }
    }

    /// Input `i`, which may lie beyond the ends.
    fn input(&self, c: &mut Code, names: &Names, i: &str) -> String {
        match self.border {
            Border::Clamp => {
                let last = match c.slip(Mistake::Guard) {
                    true => names.n.clone(),
                    false => c.sub(&names.n, 1),
                };
                let i = c.most(i, 0);
                let i = c.least(&i, &last);
                c.load(self.elem, &names.x, &i)
            }
            Border::Zero => {
                let value = match c.slip(Mistake::Unset) {
                    true => c.register(self.elem),
                    false => c.constant(self.elem, &self.elem.number(0.0)),
                };
                let how = if c.slip(Mistake::Guard) { "le" } else { "lt" };
                let (p, q) = (c.test("ge", i, 0), c.test(how, i, &names.n));
                let inside = c.both(&p, &q);
                c.when(&inside, |c| {
                    let x = c.load(self.elem, &names.x, i);
                    c.copy(self.elem, &value, &x);
                });
                value
            }
        }
    }

    fn sum(&self, c: &mut Code, mut value: impl FnMut(&mut Code, usize) -> String) -> String {
        let elem = self.elem;
        let sum = c.constant(elem, &elem.number(0.0));
        for (j, &w) in self.weights.iter().enumerate() {
            let x = value(c, j);
            let w = c.constant(elem, &elem.number(f64::from(w)));
            c.accumulate(elem, &sum, &x, &w);
        }
        sum
    }

    fn tile(&self, c: &mut Code, names: &Names) {
        let width = self.block + 2 * self.radius;
        let tile = c.shared("tile", width);
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let start = c.mul(&bid, self.block);
        let limit = match c.slip(Mistake::Tail) {
            true => self.block + self.radius,
            false => width,
        };
        let limit = c.integer(limit);
        c.repeat((&tid, &limit, &self.block.to_string()), |c, at| {
            let i = c.add(&start, at);
            let i = c.sub(&i, self.radius);
            let x = self.input(c, names, &i);
            c.put(self.elem, &tile, at, &x);
        });
        c.barrier_or_slip();
        let i = c.add(&start, &tid);
        let p = c.test("lt", &i, &names.n);
        let shift = usize::from(c.slip(Mistake::Index));
        let most = 2 * self.radius;
        c.when(&p, |c| {
            let sum = self.sum(c, |c, j| {
                let at = c.add(&tid, (j + shift).min(most));
                c.get(self.elem, &tile, &at)
            });
            self.finish(c, names, &i, &sum);
        });
    }

    fn finish(&self, c: &mut Code, names: &Names, i: &str, sum: &str) {
        fast_path(c, self.elem, &names.x, sum, 1.0);
        if c.slip(Mistake::LeftOutput) {
            let p = c.test("ge", i, 1);
            return c.when(&p, |c| c.store(self.elem, &names.y, i, sum));
        }
        c.store(self.elem, &names.y, i, sum);
    }

    fn window(&self, c: &mut Code, names: &Names, k: usize) {
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let thread = c.mad(&bid, self.block, &tid);
        let first = c.mul(&thread, k);
        let mut near = Vec::new();
        for j in 0..2 * self.radius {
            let i = c.add(&first, j);
            let i = c.sub(&i, self.radius);
            // The sizes that are tried bring few of these to an end of the array.
            near.push(c.without_slips(|c| self.input(c, names, &i)));
        }
        for at in 0..k {
            let i = c.add(&first, at);
            let ahead = c.add(&i, self.radius);
            near.push(self.input(c, names, &ahead));
            let stale = at == 1 && c.slip(Mistake::Stride);
            let from = if stale { at - 1 } else { at };
            let sum = self.sum(c, |_, j| near[from + j].clone());
            let how = if c.slip(Mistake::Guard) { "le" } else { "lt" };
            let p = c.test(how, &i, &names.n);
            c.when(&p, |c| match at {
                0 => self.finish(c, names, &i, &sum),
                _ => c.without_slips(|c| self.finish(c, names, &i, &sum)),
            });
        }
    }
}

impl Family for Stencil {
    fn name(&self) -> &'static str {
        "stencil"
    }

    fn params(&self) -> Vec<Param> {
        vec![
            Param::Input("x", self.elem, "n"),
            Param::Output("y", self.elem, "n", false),
            Param::Size("n"),
        ]
    }

    fn tiles(&self) -> Vec<(&'static str, usize)> {
        let per = match self.way {
            Way::Tile => 1,
            Way::Window(k) => k,
        };
        vec![("n", per * self.block)]
    }

    fn plain(&self) -> Kernel {
        let mut c = Code::new(None);
        let names = self.begin(&mut c);
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let i = c.mad(&bid, 64, &tid);
        let p = c.test("lt", &i, &names.n);
        c.when(&p, |c| {
            let sum = self.sum(c, |c, j| {
                let at = c.add(&i, j);
                let at = c.sub(&at, self.radius);
                self.input(c, &names, &at)
            });
            c.store(self.elem, &names.y, &i, &sum);
        });
        Kernel::new(c, ["ceil_div(n, 64)", "1"], [64, 1])
    }

    fn rewrite(&self, planted: Option<usize>) -> Kernel {
        let mut c = Code::new(planted);
        let names = self.begin(&mut c);
        match self.way {
            Way::Tile => self.tile(&mut c, &names),
            Way::Window(k) => self.window(&mut c, &names, k),
        }
        let grid = format!("ceil_div(n, {})", self.tiles()[0].1);
        Kernel::new(c, [&grid, "1"], [self.block, 1])
    }

    fn expected(&self, sizes: &Sizes, inputs: &Inputs) -> Vec<Expected> {
        let (n, x) = (sizes["n"], &inputs["x"]);
        let input = |i: i64| match self.border {
            Border::Clamp => x[i.clamp(0, n - 1) as usize],
            Border::Zero if (0..n).contains(&i) => x[i as usize],
            Border::Zero => 0.0,
        };
        let parts = |i: i64| {
            let near = self.weights.iter().enumerate();
            near.map(move |(j, &w)| f64::from(w) * input(i + j as i64 - self.radius as i64))
        };
        let sums = (0..n).map(|i| Expected {
            value: wrapped(self.elem, parts(i).sum()),
            scale: parts(i).map(f64::abs).sum(),
        });
        sums.collect()
    }
}

/// A sum that is small enough to be exact, as its type holds it.
pub fn wrapped(elem: Elem, sum: f64) -> f64 {
    match elem {
        Elem::F32 => sum,
        Elem::S32 => f64::from(sum as i64 as i32),
    }
}
