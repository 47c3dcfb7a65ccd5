//! A transposition, perhaps scaled.

use warpwright_fuzzgen::Rng;

use super::{Expected, Family, Inputs, Kernel, Param, Sizes, fast_path};
use crate::code::{Binary, Code, Elem, Mistake};

struct Transpose {
    elem: Elem,
    tile: usize,
    lines: usize,
    padded: bool,
    scaled: bool,
}

pub fn make(rng: &mut Rng) -> Box<dyn Family> {
    let tile = *rng.pick(&[8, 16, 16]);
    Box::new(Transpose {
        elem: *rng.pick(&[Elem::F32, Elem::S32]),
        tile,
        lines: *rng.pick(&[tile, tile / 2, tile / 4]),
        padded: rng.chance(60),
        scaled: rng.chance(30),
    })
}

struct Names {
    x: String,
    y: String,
    m: String,
    n: String,
}

impl Transpose {
    fn begin(&self, c: &mut Code) -> Names {
        Names {
            x: c.pointer("x"),
            y: c.pointer("y"),
            m: c.size("m"),
            n: c.size("n"),
        }
    }

    fn scale(&self, c: &mut Code, value: &str) -> String {
        if !self.scaled {
            return value.to_owned();
        }
        let factor = if c.slip(Mistake::Formula) { 4.0 } else { 3.0 };
        let factor = c.constant(self.elem, &self.elem.number(factor));
        c.binary(self.elem, Binary::Mul, value, &factor)
    }

    fn load(&self, c: &mut Code, names: &Names, tile: &str, [bx, by, x, y]: [&str; 4]) {
        let width = self.width();
        let column = c.mad(bx, self.tile, x);
        let missing = self.lines < self.tile && c.slip(Mistake::SecondTile);
        let most = if missing { self.lines } else { self.tile };
        for j in (0..most).step_by(self.lines) {
            let line = c.add(y, j);
            let row = c.mad(by, self.tile, &line);
            let wrong = c.slip(Mistake::Guard);
            let (p, q) = (
                c.test("lt", &row, &names.m),
                c.test("lt", &column, &names.n),
            );
            let inside = if wrong { p } else { c.both(&p, &q) };
            c.when(&inside, |c| {
                let i = c.mad(&row, &names.n, &column);
                let value = c.load(self.elem, &names.x, &i);
                let at = c.mad(&line, width, x);
                c.put(self.elem, tile, &at, &value);
            });
        }
    }

    fn width(&self) -> usize {
        self.tile + usize::from(self.padded)
    }

    fn store(&self, c: &mut Code, names: &Names, tile: &str, [bx, by, x, y]: [&str; 4]) {
        let width = self.width();
        // A tile's column is a row of the result.
        let column = c.mad(by, self.tile, x);
        for j in (0..self.tile).step_by(self.lines) {
            let line = c.add(y, j);
            let row = c.mad(bx, self.tile, &line);
            let (rows, columns) = match c.slip(Mistake::Guard) {
                true => (&names.m, &names.n),
                false => (&names.n, &names.m),
            };
            let (p, q) = (c.test("lt", &row, rows), c.test("lt", &column, columns));
            let inside = c.both(&p, &q);
            let left = j > 0 && c.slip(Mistake::LeftOutput);
            c.when(&inside, |c| {
                let at = match c.slip(Mistake::Index) {
                    true => c.mad(&line, width, x),
                    false => c.mad(x, width, &line),
                };
                let value = c.get(self.elem, tile, &at);
                let value = self.scale(c, &value);
                let value = c.constant(self.elem, &value);
                fast_path(c, self.elem, &names.x, &value, 0.0);
                let pitch = match c.slip(Mistake::Stride) {
                    true => &names.n,
                    false => &names.m,
                };
                let i = c.mad(&row, pitch, &column);
                if !left {
                    c.store(self.elem, &names.y, &i, &value);
                }
            });
        }
    }
}

impl Family for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn params(&self) -> Vec<Param> {
        vec![
            Param::Input("x", self.elem, "m, n"),
            Param::Output("y", self.elem, "n, m", false),
            Param::Size("m"),
            Param::Size("n"),
        ]
    }

    fn tiles(&self) -> Vec<(&'static str, usize)> {
        vec![("m", self.tile), ("n", self.tile)]
    }

    fn plain(&self) -> Kernel {
        let mut c = Code::new(None);
        let names = self.begin(&mut c);
        let (bid, tid) = (c.special("ctaid.x"), c.special("tid.x"));
        let i = c.mad(&bid, 64, &tid);
        let all = c.mul(&names.m, &names.n);
        let p = c.test("lt", &i, &all);
        c.when(&p, |c| {
            let (row, column) = (c.div(&i, &names.n), c.rem(&i, &names.n));
            let value = c.load(self.elem, &names.x, &i);
            let value = self.scale(c, &value);
            let to = c.mad(&column, &names.m, &row);
            c.store(self.elem, &names.y, &to, &value);
        });
        Kernel::new(c, ["ceil_div(m * n, 64)", "1"], [64, 1])
    }

    fn rewrite(&self, planted: Option<usize>) -> Kernel {
        let mut c = Code::new(planted);
        let names = self.begin(&mut c);
        let tile = c.shared("tile", self.tile * self.width());
        let at = ["ctaid.x", "ctaid.y", "tid.x", "tid.y"].map(|name| c.special(name));
        let at = [0, 1, 2, 3].map(|i| at[i].as_str());
        self.load(&mut c, &names, &tile, at);
        c.barrier_or_slip();
        self.store(&mut c, &names, &tile, at);
        let grid = ["n", "m"].map(|name| format!("ceil_div({name}, {})", self.tile));
        Kernel::new(c, [&grid[0], &grid[1]], [self.tile, self.lines])
    }

    fn expected(&self, sizes: &Sizes, inputs: &Inputs) -> Vec<Expected> {
        let (m, n) = (sizes["m"] as usize, sizes["n"] as usize);
        let x = &inputs["x"];
        let value = |x: f64| match (self.scaled, self.elem) {
            (false, _) => x,
            (true, Elem::F32) => 3.0 * x,
            (true, Elem::S32) => f64::from((x as i32).wrapping_mul(3)),
        };
        (0..m * n)
            .map(|at| Expected::of(value(x[at % m * n + at / m])))
            .collect()
    }
}
