//! Each row of a table normalised: a softmax, or a layer norm.

use warpwright_fuzzgen::Rng;

use super::{
    Collect, Expected, Family, Inputs, Kernel, Param, Reduction, Sizes, fast_path, threads,
};
use crate::code::{Binary, Code, Elem, Mistake};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A softmax in three passes of a block.
    Passes,
    /// A softmax of a warp that finds the maximum and the sum in one pass.
    Online,
    /// A layer norm in two passes of a block.
    TwoPass,
    /// A layer norm from the sum of squares.
    Squares,
}

struct Normal {
    way: Way,
    collect: Collect,
    threads: usize,
}

pub fn make(rng: &mut Rng) -> Box<dyn Family> {
    let way = *rng.pick(&[Way::Passes, Way::Online, Way::TwoPass, Way::Squares]);
    Box::new(Normal {
        way,
        collect: Collect::any(rng),
        threads: if way == Way::Online { 32 } else { threads(rng) },
    })
}

const F: Elem = Elem::F32;
const EPSILON: f64 = 1e-5;

struct Names {
    x: String,
    y: String,
    rows: String,
    n: String,
}

fn begin(c: &mut Code) -> Names {
    Names {
        x: c.pointer("x"),
        y: c.pointer("y"),
        rows: c.size("rows"),
        n: c.size("n"),
    }
}

/// `exp(a - b)`
fn exp_of_difference(c: &mut Code, a: &str, b: &str) -> String {
    let d = c.single("sub.rn.f32", &[a, b]);
    let log2e = F.number(std::f64::consts::LOG2_E);
    let d = c.single("mul.rn.f32", &[&d, &log2e]);
    c.single("ex2.approx.f32", &[&d])
}

/// Every `step`-th element of a row from `first` on.
struct Walk<'a> {
    names: &'a Names,
    base: &'a str,
    first: &'a str,
    step: usize,
}

impl Walk<'_> {
    fn each(&self, c: &mut Code, body: impl FnOnce(&mut Code, &str, &str)) {
        let step = match c.slip(Mistake::Stride) {
            true => self.step + 1,
            false => self.step,
        };
        let end = match c.slip(Mistake::Guard) {
            true => c.add(&self.names.n, 1),
            false => self.names.n.clone(),
        };
        c.repeat((self.first, &end, &step.to_string()), |c, i| {
            let at = c.add(self.base, i);
            let x = c.load(F, &self.names.x, &at);
            body(c, &at, &x);
        });
    }

    fn store(&self, c: &mut Code, at: &str, value: &str) {
        let value = c.constant(F, value);
        fast_path(c, F, &self.names.x, &value, -1.0);
        if c.slip(Mistake::LeftOutput) {
            let p = c.test("ne", at, 0);
            return c.when(&p, |c| c.store(F, &self.names.y, at, &value));
        }
        c.store(F, &self.names.y, at, &value);
    }
}

fn start(c: &mut Code, op: Binary) -> String {
    if c.slip(Mistake::Unset) {
        return c.register(F);
    }
    let literal = match c.slip(Mistake::Identity) {
        true => op.wrong_identity(F),
        false => op.identity(F),
    };
    c.constant(F, &literal)
}

impl Normal {
    fn is_softmax(&self) -> bool {
        matches!(self.way, Way::Passes | Way::Online)
    }

    fn together(
        &self,
        c: &mut Code,
        op: Binary,
        (tid, scratch): (&str, &str),
        value: &str,
    ) -> String {
        if self.threads == 1 {
            return value.to_owned();
        }
        let reduction = Reduction {
            elem: F,
            op,
            collect: self.collect,
            threads: self.threads,
            tid,
            scratch,
        };
        let all = reduction.of(c, value);
        c.constant(F, &all)
    }

    /// Before the scratch memory is used again. Shuffles keep the lanes of one warp together.
    fn between(&self, c: &mut Code) {
        match self.threads {
            1 => {}
            32 => c.barrier(),
            _ => c.barrier_or_slip(),
        }
    }

    fn softmax(&self, c: &mut Code, walk: &Walk<'_>, within: (&str, &str)) {
        // A softmax is the same over the reals whatever is taken for the maximum: no mistake shows there.
        let max = c.without_slips(|c| {
            let max = start(c, Binary::Max);
            walk.each(c, |c, _, x| c.fold(F, Binary::Max, &max, x));
            self.together(c, Binary::Max, within, &max)
        });
        self.between(c);
        let sum = start(c, Binary::Add);
        walk.each(c, |c, _, x| {
            let e = exp_of_difference(c, x, &max);
            c.fold(F, Binary::Add, &sum, &e);
        });
        let sum = self.together(c, Binary::Add, within, &sum);
        walk.each(c, |c, at, x| {
            let e = exp_of_difference(c, x, &max);
            let y = c.single("div.rn.f32", &[&e, &sum]);
            walk.store(c, at, &y);
        });
    }

    fn online(&self, c: &mut Code, walk: &Walk<'_>) {
        let least = F.number(f64::from(f32::MIN));
        let max = c.constant(F, &least);
        let sum = c.constant(F, &F.number(0.0));
        // What is left of a sum under another maximum.
        let rescale = |c: &mut Code, sum: &str, old: &str, new: &str| {
            if c.slip(Mistake::Formula) {
                return sum.to_owned();
            }
            let e = exp_of_difference(c, old, new);
            c.single("mul.rn.f32", &[sum, &e])
        };
        walk.each(c, |c, _, x| {
            let new = c.binary(F, Binary::Max, &max, x);
            let kept = rescale(c, &sum, &max, &new);
            let e = exp_of_difference(c, x, &new);
            c.set("add.rn.f32", &sum, &[&kept, &e]);
            c.copy(F, &max, &new);
        });
        let lost = c.slip(Mistake::LostStep);
        for by in [16, 8, 4, 2, 1] {
            if lost && by == 4 {
                continue;
            }
            let (m, s) = (
                c.shuffle(F, "bfly", &max, by),
                c.shuffle(F, "bfly", &sum, by),
            );
            let new = c.binary(F, Binary::Max, &max, &m);
            let (mine, theirs) = (rescale(c, &sum, &max, &new), rescale(c, &s, &m, &new));
            c.set("add.rn.f32", &sum, &[&mine, &theirs]);
            c.copy(F, &max, &new);
        }
        walk.each(c, |c, at, x| {
            let e = exp_of_difference(c, x, &max);
            let y = c.single("div.rn.f32", &[&e, &sum]);
            walk.store(c, at, &y);
        });
    }

    fn norm(&self, c: &mut Code, walk: &Walk<'_>, within: (&str, &str)) {
        let squares = self.way == Way::Squares && self.threads > 1;
        let count = match c.slip(Mistake::Formula) {
            true => c.integer(self.threads),
            false => walk.names.n.clone(),
        };
        let count = c.single_of(&count);
        let sum = start(c, Binary::Add);
        walk.each(c, |c, _, x| c.fold(F, Binary::Add, &sum, x));
        let sum = self.together(c, Binary::Add, within, &sum);
        let mean = c.single("div.rn.f32", &[&sum, &count]);
        self.between(c);
        let spread = start(c, Binary::Add);
        walk.each(c, |c, _, x| {
            let d = match squares {
                true => x.to_owned(),
                false => c.single("sub.rn.f32", &[x, &mean]),
            };
            c.accumulate(F, &spread, &d, &d);
        });
        let spread = self.together(c, Binary::Add, within, &spread);
        let mut variance = c.single("div.rn.f32", &[&spread, &count]);
        if squares {
            let square = c.single("mul.rn.f32", &[&mean, &mean]);
            variance = c.single("sub.rn.f32", &[&variance, &square]);
        }
        let epsilon = if c.slip(Mistake::Formula) {
            1e-3
        } else {
            EPSILON
        };
        let under = c.single("add.rn.f32", &[&variance, &F.number(epsilon)]);
        let root = c.single("rsqrt.approx.f32", &[&under]);
        walk.each(c, |c, at, x| {
            let d = c.single("sub.rn.f32", &[x, &mean]);
            let y = c.single("mul.rn.f32", &[&d, &root]);
            walk.store(c, at, &y);
        });
    }

    fn write(&self, c: &mut Code, walk: &Walk<'_>, within: (&str, &str)) {
        match self.is_softmax() {
            true => self.softmax(c, walk, within),
            false => self.norm(c, walk, within),
        }
    }
}

impl Family for Normal {
    fn name(&self) -> &'static str {
        if self.is_softmax() {
            "softmax"
        } else {
            "layer-norm"
        }
    }

    fn params(&self) -> Vec<Param> {
        vec![
            Param::Input("x", F, "rows, n"),
            Param::Output("y", F, "rows, n", false),
            Param::Size("rows"),
            Param::Size("n"),
        ]
    }

    fn tiles(&self) -> Vec<(&'static str, usize)> {
        vec![("rows", 2), ("n", self.threads)]
    }

    fn plain(&self) -> Kernel {
        let mut c = Code::new(None);
        let names = begin(&mut c);
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let row = c.mad(&bid, 32, &tid);
        let p = c.test("lt", &row, &names.rows);
        let one = Normal {
            threads: 1,
            ..*self
        };
        c.when(&p, |c| {
            let base = c.mul(&row, &names.n);
            let first = c.integer(0);
            let walk = Walk {
                names: &names,
                base: &base,
                first: &first,
                step: 1,
            };
            one.write(c, &walk, (&tid, ""));
        });
        Kernel::new(c, ["ceil_div(rows, 32)", "1"], [32, 1])
    }

    fn rewrite(&self, planted: Option<usize>) -> Kernel {
        let mut c = Code::new(planted);
        let names = begin(&mut c);
        let (row, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let base = match c.slip(Mistake::Index) {
            true => c.mul(&row, &names.rows),
            false => c.mul(&row, &names.n),
        };
        let walk = Walk {
            names: &names,
            base: &base,
            first: &tid,
            step: self.threads,
        };
        if self.way == Way::Online {
            self.online(&mut c, &walk);
        } else {
            let scratch = c.shared("scratch", self.threads);
            self.write(&mut c, &walk, (&tid, &scratch));
        }
        Kernel::new(c, ["rows", "1"], [self.threads, 1])
    }

    fn expected(&self, sizes: &Sizes, inputs: &Inputs) -> Vec<Expected> {
        let n = sizes["n"] as usize;
        let rows = inputs["x"].chunks(n.max(1));
        rows.flat_map(|row| match self.is_softmax() {
            true => softmax_of(row),
            false => norm_of(row),
        })
        .collect()
    }
}

fn softmax_of(row: &[f64]) -> Vec<Expected> {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - max).exp()).sum();
    let value = |x: &f64| (x - max).exp() / sum;
    row.iter()
        .map(|x| Expected {
            value: value(x),
            scale: 1.0,
        })
        .collect()
}

fn norm_of(row: &[f64]) -> Vec<Expected> {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    let root = 1.0 / (variance + EPSILON).sqrt();
    let most = row.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    // The sum of squares cancels: what is lost of the variance is relative to the largest square.
    let lost = most * most / (variance + EPSILON);
    row.iter()
        .map(|x| Expected {
            value: (x - mean) * root,
            scale: (1.0 + most * root) * (1.0 + lost),
        })
        .collect()
}
