//! A function of the elements of two arrays.

use warpwright_fuzzgen::Rng;

use super::{Expected, Family, Inputs, Kernel, Param, Sizes, fast_path};
use crate::code::{Binary, Code, Elem, Mistake};

/// A small expression.
#[derive(Clone, Debug)]
enum Expr {
    In(usize),
    Number(i32),
    Of(Binary, Box<Expr>, Box<Expr>),
}

impl Expr {
    fn random(rng: &mut Rng, depth: usize) -> Expr {
        if depth == 0 {
            return match rng.below(4) {
                0 => Expr::Number(rng.range(1, 5) as i32),
                at => Expr::In(at % 2),
            };
        }
        let op = *rng.pick(&[
            Binary::Add,
            Binary::Mul,
            Binary::Max,
            Binary::Min,
            Binary::Add,
        ]);
        let (a, b) = (rng.below(depth), depth - 1);
        let (a, b) = (Expr::random(rng, a), Expr::random(rng, b));
        Expr::Of(op, Box::new(a), Box::new(b))
    }

    fn write(&self, c: &mut Code, elem: Elem, inputs: &[String; 2], turned: bool) -> String {
        match self {
            Expr::In(at) => inputs[*at].clone(),
            Expr::Number(value) => c.constant(elem, &elem.number(f64::from(*value))),
            Expr::Of(op, a, b) => {
                let a = a.write(c, elem, inputs, turned);
                let b = b.write(c, elem, inputs, turned);
                match turned {
                    true => c.binary(elem, *op, &b, &a),
                    false => c.binary(elem, *op, &a, &b),
                }
            }
        }
    }

    fn value(&self, elem: Elem, inputs: [f64; 2]) -> Expected {
        match self {
            Expr::In(at) => Expected::of(inputs[*at]),
            Expr::Number(value) => Expected::of(f64::from(*value)),
            Expr::Of(op, a, b) => {
                let (a, b) = (a.value(elem, inputs), b.value(elem, inputs));
                combined(elem, *op, a, b)
            }
        }
    }
}

fn combined(elem: Elem, op: Binary, a: Expected, b: Expected) -> Expected {
    let scale = match op {
        Binary::Mul => a.scale * b.scale,
        _ => a.scale + b.scale,
    };
    let value = match elem {
        Elem::S32 => {
            let (x, y) = (a.value as i32, b.value as i32);
            f64::from(match op {
                Binary::Add => x.wrapping_add(y),
                Binary::Mul => x.wrapping_mul(y),
                Binary::Max => x.max(y),
                Binary::Min => x.min(y),
            })
        }
        Elem::F32 => match op {
            Binary::Add => a.value + b.value,
            Binary::Mul => a.value * b.value,
            Binary::Max => a.value.max(b.value),
            Binary::Min => a.value.min(b.value),
        },
    };
    Expected { value, scale }
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Direct,
    GridStride(usize),
    /// So many elements for each thread, side by side or a block apart.
    Coarse(usize, bool),
    Vector(usize),
    /// Through shared memory, where the block's elements are taken the other way round.
    Staged,
}

struct Pointwise {
    elem: Elem,
    expr: Expr,
    way: Way,
    block: usize,
    turned: bool,
}

pub fn make(rng: &mut Rng) -> Box<dyn Family> {
    let way = match rng.below(5) {
        0 => Way::Direct,
        1 => Way::GridStride(rng.range(1, 3)),
        2 => Way::Coarse(rng.range(2, 4), rng.chance(50)),
        3 => Way::Vector(*rng.pick(&[2, 4])),
        _ => Way::Staged,
    };
    Box::new(Pointwise {
        elem: *rng.pick(&[Elem::F32, Elem::F32, Elem::S32]),
        expr: Expr::Of(
            *rng.pick(&[Binary::Add, Binary::Mul]),
            Box::new(Expr::In(0)),
            Box::new(Expr::random(rng, 3)),
        ),
        way,
        block: *rng.pick(&[32, 48, 64, 96]),
        turned: rng.chance(40),
    })
}

/// What a kernel works with.
struct Names {
    inputs: [String; 2],
    out: String,
    n: String,
}

impl Pointwise {
    fn begin(&self, c: &mut Code) -> Names {
        Names {
            inputs: ["x", "z"].map(|name| c.pointer(name)),
            out: c.pointer("y"),
            n: c.size("n"),
        }
    }

    fn compute(&self, c: &mut Code, names: &Names, values: &[String; 2], turned: bool) -> String {
        let value = self.expr.write(c, self.elem, values, turned);
        let value = c.constant(self.elem, &value);
        fast_path(c, self.elem, &names.inputs[0], &value, 0.0);
        value
    }

    /// Element `i`, which there is.
    fn one(&self, c: &mut Code, names: &Names, i: &str, turned: bool) {
        let values = [0, 1].map(|at| c.load(self.elem, &names.inputs[at], i));
        let value = self.compute(c, names, &values, turned);
        c.store(self.elem, &names.out, i, &value);
    }

    fn guarded(&self, c: &mut Code, names: &Names, i: &str) {
        let how = if c.slip(Mistake::Guard) { "le" } else { "lt" };
        let p = c.test(how, i, &names.n);
        c.when(&p, |c| self.one(c, names, i, self.turned));
    }

    fn coarse(&self, c: &mut Code, names: &Names, k: usize, apart: bool) {
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let start = c.mul(&bid, k * self.block);
        let first = match apart {
            true => c.add(&start, &tid),
            false => c.mad(&tid, k, &start),
        };
        let step = match (apart, c.slip(Mistake::Stride)) {
            (true, false) => self.block,
            (true, true) => 2 * self.block,
            (false, false) => 1,
            (false, true) => 2,
        };
        let most = if c.slip(Mistake::LeftOutput) {
            k - 1
        } else {
            k
        };
        for j in 0..most {
            let i = c.add(&first, j * step);
            self.guarded(c, names, &i);
        }
    }

    fn vector(&self, c: &mut Code, names: &Names, w: usize) {
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let thread = c.mad(&bid, self.block, &tid);
        let first = c.mul(&thread, w);
        let behind = c.add(&first, w);
        let whole = match c.slip(Mistake::Guard) {
            true => c.test("lt", &first, &names.n),
            false => c.test("le", &behind, &names.n),
        };
        let lost = c.slip(Mistake::Tail);
        c.either(
            &whole,
            |c| {
                let all = [0, 1].map(|at| c.load_vector(self.elem, &names.inputs[at], &first, w));
                let mut values: Vec<String> = (0..w)
                    .map(|j| {
                        let each = [all[0][j].clone(), all[1][j].clone()];
                        self.compute(c, names, &each, self.turned)
                    })
                    .collect();
                if c.slip(Mistake::Index) {
                    values.swap(0, 1);
                }
                c.store_vector(self.elem, &names.out, &first, &values);
            },
            |c| {
                if lost {
                    return;
                }
                c.repeat((&first, &names.n, "1"), |c, i| {
                    self.one(c, names, i, self.turned);
                });
            },
        );
    }

    fn staged(&self, c: &mut Code, names: &Names) {
        let tile = c.shared("tile", self.block);
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let start = c.mul(&bid, self.block);
        let i = c.add(&start, &tid);
        let p = c.test("lt", &i, &names.n);
        let extra = c.slip(Mistake::ExtraBarrier);
        c.when(&p, |c| {
            let x = c.load(self.elem, &names.inputs[0], &i);
            c.put(self.elem, &tile, &tid, &x);
            if extra {
                c.barrier();
            }
        });
        c.barrier_or_slip();
        let last = if c.slip(Mistake::Index) {
            self.block - 2
        } else {
            self.block - 1
        };
        let last = c.integer(last);
        let other = c.sub(&last, &tid);
        let other = c.most(&other, 0);
        let j = c.add(&start, &other);
        let p = c.test("lt", &j, &names.n);
        c.when(&p, |c| {
            let x = c.get(self.elem, &tile, &other);
            let z = c.load(self.elem, &names.inputs[1], &j);
            let value = self.compute(c, names, &[x, z], self.turned);
            c.store(self.elem, &names.out, &j, &value);
        });
    }

    fn grid_stride(&self, c: &mut Code, names: &Names, blocks: usize) {
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let first = c.mad(&bid, self.block, &tid);
        let step = match c.slip(Mistake::Stride) {
            true => 2 * blocks * self.block,
            false => blocks * self.block,
        };
        if c.slip(Mistake::SecondTile) {
            return self.guarded(c, names, &first);
        }
        c.repeat((&first, &names.n, &step.to_string()), |c, i| {
            self.one(c, names, i, self.turned);
        });
    }
}

impl Family for Pointwise {
    fn name(&self) -> &'static str {
        "pointwise"
    }

    fn params(&self) -> Vec<Param> {
        vec![
            Param::Input("x", self.elem, "n"),
            Param::Input("z", self.elem, "n"),
            Param::Output("y", self.elem, "n", false),
            Param::Size("n"),
        ]
    }

    fn tiles(&self) -> Vec<(&'static str, usize)> {
        let per = match self.way {
            Way::Coarse(k, _) | Way::Vector(k) => k,
            Way::GridStride(blocks) => blocks,
            _ => 1,
        };
        vec![("n", per * self.block)]
    }

    fn plain(&self) -> Kernel {
        let mut c = Code::new(None);
        let names = self.begin(&mut c);
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let i = c.mad(&bid, 64, &tid);
        let p = c.test("lt", &i, &names.n);
        c.when(&p, |c| self.one(c, &names, &i, false));
        Kernel::new(c, ["ceil_div(n, 64)", "1"], [64, 1])
    }

    fn rewrite(&self, planted: Option<usize>) -> Kernel {
        let mut c = Code::new(planted);
        let names = self.begin(&mut c);
        match self.way {
            Way::Direct => {
                let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
                let i = c.mad(&bid, self.block, &tid);
                let i = if c.slip(Mistake::Index) {
                    c.add(&i, 1)
                } else {
                    i
                };
                self.guarded(&mut c, &names, &i);
            }
            Way::GridStride(blocks) => self.grid_stride(&mut c, &names, blocks),
            Way::Coarse(k, apart) => self.coarse(&mut c, &names, k, apart),
            Way::Vector(w) => self.vector(&mut c, &names, w),
            Way::Staged => self.staged(&mut c, &names),
        }
        let grid = match self.way {
            Way::GridStride(blocks) => blocks.to_string(),
            _ => format!("ceil_div(n, {})", self.tiles()[0].1),
        };
        Kernel::new(c, [&grid, "1"], [self.block, 1])
    }

    fn expected(&self, sizes: &Sizes, inputs: &Inputs) -> Vec<Expected> {
        let (x, z) = (&inputs["x"], &inputs["z"]);
        (0..sizes["n"] as usize)
            .map(|i| self.expr.value(self.elem, [x[i], z[i]]))
            .collect()
    }
}
