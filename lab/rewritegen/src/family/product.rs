//! A matrix product.

use warpwright_fuzzgen::Rng;

use super::stencil::wrapped;
use super::{Expected, Family, Inputs, Kernel, Param, Sizes, fast_path};
use crate::code::{Code, Elem, Mistake};

struct Product {
    elem: Elem,
    tile: usize,
    /// Rows of the tile that a thread computes.
    each: usize,
    padded: bool,
}

pub fn make(rng: &mut Rng) -> Box<dyn Family> {
    let tile = *rng.pick(&[4, 8, 8]);
    Box::new(Product {
        elem: *rng.pick(&[Elem::F32, Elem::F32, Elem::S32]),
        tile,
        each: *rng.pick(&[1, 2, tile / 2]),
        padded: rng.chance(30),
    })
}

struct Names {
    a: String,
    b: String,
    out: String,
    m: String,
    n: String,
    k: String,
}

/// Where a thread stands.
struct Place {
    /// In the tile.
    x: String,
    y: String,
    /// Column of the result, and row of the first of its elements.
    column: String,
    row: String,
}

impl Product {
    fn begin(&self, c: &mut Code) -> Names {
        Names {
            a: c.pointer("a"),
            b: c.pointer("b"),
            out: c.pointer("c"),
            m: c.size("m"),
            n: c.size("n"),
            k: c.size("k"),
        }
    }

    fn lines(&self) -> usize {
        self.tile / self.each
    }

    /// An element of a matrix into a tile, or 0 beyond the matrix.
    fn stage(
        &self,
        c: &mut Code,
        (matrix, tile, at): (&str, &str, &str),
        (row, rows): (&str, &str),
        (column, columns): (&str, &str),
    ) {
        // What nobody has set, times zero: of integers that is zero.
        let lost = self.elem == Elem::F32 && c.slip(Mistake::Unset);
        let unguarded = c.slip(Mistake::Guard);
        let (p, q) = (c.test("lt", row, rows), c.test("lt", column, columns));
        let inside = if unguarded { p } else { c.both(&p, &q) };
        let i = c.mad(row, columns, column);
        let zero = c.constant(self.elem, &self.elem.number(0.0));
        c.either(
            &inside,
            |c| {
                let value = c.load(self.elem, matrix, &i);
                c.put(self.elem, tile, at, &value);
            },
            |c| {
                if !lost {
                    c.put(self.elem, tile, at, &zero);
                }
            },
        );
    }

    fn body(&self, c: &mut Code, names: &Names, place: &Place) {
        let (t, width) = (self.tile, self.tile + usize::from(self.padded));
        let tiles = [c.shared("tile_a", t * width), c.shared("tile_b", t * width)];
        let lines = self.lines();
        let unset = c.slip(Mistake::Unset);
        let sums: Vec<String> = (0..self.each)
            .map(|_| match unset {
                true => c.register(self.elem),
                false => c.constant(self.elem, &self.elem.number(0.0)),
            })
            .collect();
        let end = match (c.slip(Mistake::Tail), c.slip(Mistake::SecondTile)) {
            (true, _) => {
                let left = c.rem(&names.k, t);
                c.sub(&names.k, &left)
            }
            (_, true) => c.least(&names.k, t),
            _ => names.k.clone(),
        };
        let forgotten = c.slip(Mistake::Stride);
        c.repeat(("0", &end, &t.to_string()), |c, start| {
            let first = if forgotten {
                c.integer(0)
            } else {
                start.to_owned()
            };
            for j in 0..self.each {
                let y = c.add(&place.y, j * lines);
                let at = c.mad(&y, width, &place.x);
                let row = c.add(&place.row, j * lines);
                let column = c.add(&first, &place.x);
                self.stage(
                    c,
                    (&names.a, &tiles[0], &at),
                    (&row, &names.m),
                    (&column, &names.k),
                );
                let row = c.add(&first, &y);
                self.stage(
                    c,
                    (&names.b, &tiles[1], &at),
                    (&row, &names.k),
                    (&place.column, &names.n),
                );
            }
            c.barrier_or_slip();
            let swapped = c.slip(Mistake::Index);
            for l in 0..t {
                let at = match swapped {
                    true => c.mad(&place.x, width, l),
                    false => c.add(&place.x, l * width),
                };
                let b = c.get(self.elem, &tiles[1], &at);
                for (j, sum) in sums.iter().enumerate() {
                    let y = c.add(&place.y, j * lines);
                    let at = c.mad(&y, width, l);
                    let a = c.get(self.elem, &tiles[0], &at);
                    c.accumulate(self.elem, sum, &a, &b);
                }
            }
            c.barrier_or_slip();
        });
        self.finish(c, names, place, &sums);
    }

    fn finish(&self, c: &mut Code, names: &Names, place: &Place, sums: &[String]) {
        let left = self.each > 1 && c.slip(Mistake::LeftOutput);
        let used = if left { self.each - 1 } else { self.each };
        for (j, sum) in sums[..used].iter().enumerate() {
            fast_path(c, self.elem, &names.a, sum, 3.0);
            let row = c.add(&place.row, j * self.lines());
            let p = c.test("lt", &row, &names.m);
            let how = if c.slip(Mistake::Guard) { "le" } else { "lt" };
            let q = c.test(how, &place.column, &names.n);
            let inside = c.both(&p, &q);
            c.when(&inside, |c| {
                let i = c.mad(&row, &names.n, &place.column);
                c.store(self.elem, &names.out, &i, sum);
            });
        }
    }
}

impl Family for Product {
    fn name(&self) -> &'static str {
        "product"
    }

    fn params(&self) -> Vec<Param> {
        vec![
            Param::Input("a", self.elem, "m, k"),
            Param::Input("b", self.elem, "k, n"),
            Param::Output("c", self.elem, "m, n", false),
            Param::Size("m"),
            Param::Size("n"),
            Param::Size("k"),
        ]
    }

    fn tiles(&self) -> Vec<(&'static str, usize)> {
        vec![("m", self.tile), ("n", self.tile), ("k", self.tile)]
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
            let sum = c.constant(self.elem, &self.elem.number(0.0));
            c.repeat(("0", &names.k, "1"), |c, l| {
                let at = c.mad(&row, &names.k, l);
                let a = c.load(self.elem, &names.a, &at);
                let at = c.mad(l, &names.n, &column);
                let b = c.load(self.elem, &names.b, &at);
                c.accumulate(self.elem, &sum, &a, &b);
            });
            c.store(self.elem, &names.out, &i, &sum);
        });
        Kernel::new(c, ["ceil_div(m * n, 64)", "1"], [64, 1])
    }

    fn rewrite(&self, planted: Option<usize>) -> Kernel {
        let mut c = Code::new(planted);
        let names = self.begin(&mut c);
        let (bx, by) = (c.special("ctaid.x"), c.special("ctaid.y"));
        let (x, y) = (c.special("tid.x"), c.special("tid.y"));
        let place = Place {
            column: c.mad(&bx, self.tile, &x),
            row: c.mad(&by, self.tile, &y),
            x,
            y,
        };
        self.body(&mut c, &names, &place);
        let grid = ["n", "m"].map(|name| format!("ceil_div({name}, {})", self.tile));
        Kernel::new(c, [&grid[0], &grid[1]], [self.tile, self.lines()])
    }

    fn expected(&self, sizes: &Sizes, inputs: &Inputs) -> Vec<Expected> {
        let [m, n, k] = ["m", "n", "k"].map(|name| sizes[name] as usize);
        let (a, b) = (&inputs["a"], &inputs["b"]);
        let part = |i: usize, l: usize| a[i / n * k + l] * b[l * n + i % n];
        let sums = (0..m * n).map(|i| Expected {
            value: match self.elem {
                Elem::F32 => (0..k).map(|l| part(i, l)).sum(),
                // Products of large integers are no whole numbers in a double.
                Elem::S32 => (0..k).fold(0.0, |sum, l| {
                    wrapped(
                        self.elem,
                        sum + wrapped_product(a[i / n * k + l], b[l * n + i % n]),
                    )
                }),
            },
            scale: (0..k).map(|l| part(i, l).abs()).sum(),
        });
        sums.collect()
    }
}

fn wrapped_product(a: f64, b: f64) -> f64 {
    f64::from((a as i32).wrapping_mul(b as i32))
}
