//! Each row of a table to one number: a sum, an extreme, a sum of squares.

use warpwright_fuzzgen::Rng;

use super::{
    Collect, Expected, Family, Inputs, Kernel, Param, Reduction, Sizes, fast_path, threads,
};
use crate::code::{Binary, Code, Elem, Mistake};

#[derive(Clone, Copy, Debug)]
enum Way {
    /// A block for each row, so many sums for each thread.
    Block(Collect, usize),
    /// A block for each row that loads so many elements at once.
    Vector(Collect, usize),
    /// A warp for each row, so many rows for each block.
    Warp(usize),
    /// Blocks for each piece of a row, together by atomic operations.
    Atomic(Collect),
}

struct Rows {
    elem: Elem,
    op: Binary,
    squares: bool,
    way: Way,
    threads: usize,
}

pub fn make(rng: &mut Rng) -> Box<dyn Family> {
    let elem = *rng.pick(&[Elem::F32, Elem::F32, Elem::S32]);
    let way = match rng.below(5) {
        0 | 1 => Way::Block(Collect::any(rng), rng.range(1, 3)),
        2 => Way::Vector(Collect::any(rng), *rng.pick(&[2, 4])),
        3 => Way::Warp(rng.range(1, 3)),
        _ => Way::Atomic(Collect::any(rng)),
    };
    let op = match (way, elem) {
        (Way::Atomic(_), Elem::F32) => Binary::Add,
        (Way::Atomic(_), Elem::S32) => Binary::Add,
        _ => *rng.pick(&[Binary::Add, Binary::Add, Binary::Max, Binary::Min]),
    };
    Box::new(Rows {
        elem,
        op,
        squares: op == Binary::Add && rng.chance(40),
        way,
        threads: threads(rng),
    })
}

struct Names {
    x: String,
    out: String,
    rows: String,
    n: String,
}

impl Rows {
    fn begin(&self, c: &mut Code) -> Names {
        Names {
            x: c.pointer("x"),
            out: c.pointer("out"),
            rows: c.size("rows"),
            n: c.size("n"),
        }
    }

    fn join(&self, c: &mut Code, sum: &str, x: &str) {
        match self.squares {
            true => c.accumulate(self.elem, sum, x, x),
            false => c.fold(self.elem, self.op, sum, x),
        }
    }

    fn start(&self, c: &mut Code) -> String {
        if c.slip(Mistake::Unset) {
            return c.register(self.elem);
        }
        let literal = match c.slip(Mistake::Identity) {
            true => self.op.wrong_identity(self.elem),
            false => self.op.identity(self.elem),
        };
        c.constant(self.elem, &literal)
    }

    /// The part of a row that a thread does: every `step`-th element from `first` on to `end`.
    fn strided(
        &self,
        c: &mut Code,
        names: &Names,
        base: &str,
        (first, end, step): (&str, &str, usize),
    ) -> String {
        let sum = self.start(c);
        let step = match c.slip(Mistake::Stride) {
            true => step + 1,
            false => step,
        };
        if c.slip(Mistake::SecondTile) {
            let p = c.test("lt", first, end);
            c.when(&p, |c| {
                let at = c.add(base, first);
                let x = c.load(self.elem, &names.x, &at);
                self.join(c, &sum, &x);
            });
            return sum;
        }
        let end = match c.slip(Mistake::Guard) {
            true => c.add(end, 1),
            false => end.to_owned(),
        };
        c.repeat((first, &end, &step.to_string()), |c, i| {
            let at = c.add(base, i);
            let x = c.load(self.elem, &names.x, &at);
            self.join(c, &sum, &x);
        });
        sum
    }

    /// Several sums for each thread, and what is left over.
    fn unrolled(&self, c: &mut Code, names: &Names, base: &str, tid: &str, sums: usize) -> String {
        if sums == 1 {
            return self.strided(c, names, base, (tid, &names.n, self.threads));
        }
        let all: Vec<String> = (0..sums).map(|_| self.start(c)).collect();
        let tile = sums * self.threads;
        let whole = c.rem(&names.n, tile);
        let whole = c.sub(&names.n, &whole);
        c.repeat((tid, &whole, &tile.to_string()), |c, i| {
            for (at, sum) in all.iter().enumerate() {
                let i = c.add(i, at * self.threads);
                let place = c.add(base, &i);
                let x = c.load(self.elem, &names.x, &place);
                self.join(c, sum, &x);
            }
        });
        if !c.slip(Mistake::Tail) {
            let first = c.add(&whole, tid);
            c.repeat((&first, &names.n, &self.threads.to_string()), |c, i| {
                let at = c.add(base, i);
                let x = c.load(self.elem, &names.x, &at);
                self.join(c, &all[0], &x);
            });
        }
        for sum in &all[1..] {
            c.fold(self.elem, self.op, &all[0], sum);
        }
        all[0].clone()
    }

    fn vectors(&self, c: &mut Code, names: &Names, base: &str, tid: &str, w: usize) -> String {
        let sum = self.start(c);
        // Rows of other lengths begin at other alignments: then one after the other.
        let left = c.rem(&names.n, w);
        let aligned = match c.slip(Mistake::Tail) {
            true => c.test("ge", &left, 0),
            false => c.test("eq", &left, 0),
        };
        let first = c.mul(tid, w);
        c.either(
            &aligned,
            |c| {
                let step = (w * self.threads).to_string();
                c.repeat((&first, &names.n, &step), |c, i| {
                    let at = c.add(base, i);
                    let values = c.load_vector(self.elem, &names.x, &at, w);
                    let used = if c.slip(Mistake::LostStep) { w - 1 } else { w };
                    for x in &values[..used] {
                        self.join(c, &sum, x);
                    }
                });
            },
            |c| {
                c.repeat((tid, &names.n, &self.threads.to_string()), |c, i| {
                    let at = c.add(base, i);
                    let x = c.load(self.elem, &names.x, &at);
                    self.join(c, &sum, &x);
                });
            },
        );
        sum
    }

    fn finish(&self, c: &mut Code, names: &Names, (thread, row): (&str, &str), value: &str) {
        let p = c.test("eq", thread, 0);
        fast_path(c, self.elem, &names.x, value, 7.0);
        if c.slip(Mistake::LeftOutput) {
            let later = c.test("gt", row, 0);
            return c.when(&later, |c| {
                c.when(&p, |c| c.store(self.elem, &names.out, row, value));
            });
        }
        c.when(&p, |c| c.store(self.elem, &names.out, row, value));
    }

    fn block(&self, c: &mut Code, names: &Names, collect: Collect) {
        let scratch = c.shared("scratch", self.threads);
        let (row, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let base = match c.slip(Mistake::Index) {
            true => c.mul(&row, &names.rows),
            false => c.mul(&row, &names.n),
        };
        let mine = match self.way {
            Way::Vector(_, w) => self.vectors(c, names, &base, &tid, w),
            Way::Block(_, sums) => self.unrolled(c, names, &base, &tid, sums),
            _ => self.strided(c, names, &base, (&tid, &names.n, self.threads)),
        };
        let all = self.reduction(collect, &tid, &scratch).of(c, &mine);
        self.finish(c, names, (&tid, &row), &all);
    }

    fn reduction<'a>(&self, collect: Collect, tid: &'a str, scratch: &'a str) -> Reduction<'a> {
        Reduction {
            elem: self.elem,
            op: self.op,
            collect,
            threads: self.threads,
            tid,
            scratch,
        }
    }

    fn warp(&self, c: &mut Code, names: &Names, warps: usize) {
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let (warp, lane) = (c.div(&tid, 32), c.rem(&tid, 32));
        let row = c.mad(&bid, warps, &warp);
        // Of one warp a block has every row that the grid has.
        let wrong = warps > 1 && c.slip(Mistake::Guard);
        let p = c.test(if wrong { "le" } else { "lt" }, &row, &names.rows);
        c.when(&p, |c| {
            let base = c.mul(&row, &names.n);
            let mine = self.strided(c, names, &base, (&lane, &names.n, 32));
            self.reduction(Collect::Down, &tid, "").in_warp(c, &mine);
            self.finish(c, names, (&lane, &row), &mine);
        });
    }

    /// A block for each piece of `2 * threads` elements.
    fn pieces(&self, c: &mut Code, names: &Names, collect: Collect) {
        let scratch = c.shared("scratch", self.threads);
        let (piece, row, tid) = (
            c.special("ctaid.x"),
            c.special("ctaid.y"),
            c.special("tid.x"),
        );
        let base = c.mul(&row, &names.n);
        let first = c.mad(&piece, 2 * self.threads, &tid);
        let end = c.mad(&piece, 2 * self.threads, 2 * self.threads);
        let end = match c.slip(Mistake::Tail) {
            true => end,
            false => c.least(&end, &names.n),
        };
        let mine = self.strided(c, names, &base, (&first, &end, self.threads));
        let all = self.reduction(collect, &tid, &scratch).of(c, &mine);
        let p = c.test("eq", &tid, 0);
        let lost = c.slip(Mistake::LostAtomic);
        let over = c.slip(Mistake::LeftOutput);
        c.when(&p, |c| match over {
            true => c.store(self.elem, &names.out, &row, &all),
            false => c.atomic(self.elem, self.op, &names.out, &row, &all, lost),
        });
    }
}

impl Family for Rows {
    fn name(&self) -> &'static str {
        "rows"
    }

    fn params(&self) -> Vec<Param> {
        let zeros = matches!(self.way, Way::Atomic(_));
        vec![
            Param::Input("x", self.elem, "rows, n"),
            Param::Output("out", self.elem, "rows", zeros),
            Param::Size("rows"),
            Param::Size("n"),
        ]
    }

    fn tiles(&self) -> Vec<(&'static str, usize)> {
        let (rows, n) = match self.way {
            Way::Block(_, sums) => (2, sums * self.threads),
            Way::Vector(_, w) => (2, w * self.threads),
            Way::Warp(warps) => (warps, 32),
            Way::Atomic(_) => (2, 2 * self.threads),
        };
        vec![("rows", rows), ("n", n)]
    }

    fn plain(&self) -> Kernel {
        let mut c = Code::new(None);
        let names = self.begin(&mut c);
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let row = c.mad(&bid, 32, &tid);
        let p = c.test("lt", &row, &names.rows);
        c.when(&p, |c| {
            let base = c.mul(&row, &names.n);
            let zero = c.integer(0);
            let sum = self.strided(c, &names, &base, (&zero, &names.n, 1));
            c.store(self.elem, &names.out, &row, &sum);
        });
        Kernel::new(c, ["ceil_div(rows, 32)", "1"], [32, 1])
    }

    fn rewrite(&self, planted: Option<usize>) -> Kernel {
        let mut c = Code::new(planted);
        let names = self.begin(&mut c);
        match self.way {
            Way::Block(collect, _) | Way::Vector(collect, _) => {
                self.block(&mut c, &names, collect);
                Kernel::new(c, ["rows", "1"], [self.threads, 1])
            }
            Way::Warp(warps) => {
                self.warp(&mut c, &names, warps);
                Kernel::new(
                    c,
                    [&format!("ceil_div(rows, {warps})"), "1"],
                    [32 * warps, 1],
                )
            }
            Way::Atomic(collect) => {
                self.pieces(&mut c, &names, collect);
                let grid = format!("ceil_div(n, {})", 2 * self.threads);
                Kernel::new(c, [&grid, "rows"], [self.threads, 1])
            }
        }
    }

    fn expected(&self, sizes: &Sizes, inputs: &Inputs) -> Vec<Expected> {
        let n = sizes["n"] as usize;
        let rows = inputs["x"].chunks(n.max(1));
        rows.map(|row| self.reduced(row)).collect()
    }
}

impl Rows {
    fn reduced(&self, row: &[f64]) -> Expected {
        let power = |x: f64| if self.squares { x * x } else { x };
        let value = match (self.op, self.elem) {
            (Binary::Max, _) => row.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            (Binary::Min, _) => row.iter().copied().fold(f64::INFINITY, f64::min),
            (_, Elem::F32) => row.iter().map(|&x| power(x)).sum(),
            (_, Elem::S32) => f64::from(row.iter().fold(0i32, |sum, &x| {
                let x = x as i32;
                sum.wrapping_add(if self.squares { x.wrapping_mul(x) } else { x })
            })),
        };
        let scale = match self.op {
            Binary::Add => row.iter().map(|&x| power(x).abs()).sum(),
            _ => value.abs(),
        };
        Expected { value, scale }
    }
}
