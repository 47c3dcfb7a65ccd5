//! How threads and loops reach the points: what the kernels of tutorials do beside one thread for each point.

use std::fmt::Write as _;

use warpwright_fuzzgen::Rng;

use crate::generate::{Style, Writer, nest};

/// How the points are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// A thread for each point, or loops over all of a dimension.
    Plain,
    /// Loops in steps of the grid along every dimension.
    GridStride,
    /// A block for each plane: `blockIdx.z` alone.
    Plane,
    /// A running index along the first dimension, with or without a queue of registers.
    March {
        /// The own column of the first input is kept in registers.
        queue: bool,
    },
    /// The first input through shared memory.
    Tile {
        /// Threads along x and y that compute.
        block: [i64; 2],
        /// A thread for each cell of the tile, those of the halo compute nothing.
        wide: bool,
    },
}

impl Walk {
    /// One for so many dimensions.
    pub(crate) fn random(rng: &mut Rng, dims: usize) -> Walk {
        match (rng.below(12), dims) {
            (0, _) => Walk::GridStride,
            (1 | 2, 3) => Walk::Plane,
            (3 | 4, 2 | 3) => Walk::March {
                queue: rng.chance(60),
            },
            (1..=3, 1) => Walk::Tile {
                block: [*rng.pick(&[32, 64, 96]), 1],
                wide: rng.chance(40),
            },
            (5 | 6, 2) => Walk::Tile {
                block: *rng.pick(&[[32, 4], [16, 8], [16, 16], [8, 8]]),
                wide: rng.chance(40),
            },
            _ => Walk::Plain,
        }
    }

    /// The tile's name for an element of the first input, or the register that holds it.
    pub(crate) fn kept(&self, writer: &Writer<'_>, offsets: &[i64]) -> Option<String> {
        match self {
            Walk::March { queue: true } if offsets[1..].iter().all(|o| *o == 0) => {
                Some(format!("q{}", offsets[0] - writer.dims[0].offsets[0]))
            }
            Walk::Tile { wide, .. } => {
                let axes = ["x", "y"];
                let places = writer.dims.iter().zip(offsets).enumerate();
                let places = places.map(|(at, (dim, offset))| {
                    let axis = axes[writer.dims.len() - 1 - at];
                    let own = if *wide { 0 } else { halo(dim.offsets)[0] };
                    format!("[threadIdx.{axis} + {}]", own + offset)
                });
                Some("tile".to_owned() + &places.collect::<String>())
            }
            _ => None,
        }
    }
}

/// Cells of a tile before and behind the own ones.
fn halo([low, high]: [i64; 2]) -> [i64; 2] {
    [(-low).max(0), high.max(0)]
}

fn name_of(axis: char) -> usize {
    usize::from(axis == 'y') + 2 * usize::from(axis == 'z')
}

impl Writer<'_> {
    /// The body of a kernel that is not plain.
    pub(crate) fn walked(&mut self, text: &mut String, walk: &Walk) {
        match walk {
            Walk::Plain => {}
            Walk::GridStride => self.grid_stride(text),
            Walk::Plane => self.planes(text),
            Walk::March { queue } => self.march(text, *queue),
            Walk::Tile { block, wide } => self.tile(text, *block, *wide),
        }
    }

    fn place(&mut self, axis: char, block: Option<i64>) -> String {
        let size = block.map_or_else(|| format!("blockDim.{axis}"), |n| n.to_string());
        match self.rng.below(2) {
            0 => format!("blockIdx.{axis} * {size} + threadIdx.{axis}"),
            _ => format!("threadIdx.{axis} + {size} * blockIdx.{axis}"),
        }
    }

    /// The linear index of the point, where accesses are written from it.
    fn base(&self, first: Option<i64>) -> Option<String> {
        let parts = self.dims.iter().enumerate().map(|(at, d)| match first {
            Some(number) if at == 0 => number.to_string(),
            _ => d.iterator.to_owned(),
        });
        let parts: Vec<String> = parts.collect();
        (self.style == Style::Base).then(|| self.linear(&parts, 0))
    }

    fn inner(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(
            self.base(None)
                .map(|index| format!("const int at = {index};")),
        );
        lines.extend(self.statements());
        lines
    }

    fn grid_stride(&mut self, text: &mut String) {
        let (mut heads, mut tests) = (Vec::new(), Vec::new());
        for at in 0..self.dims.len() {
            let axis = ['z', 'y', 'x'][3 - self.dims.len() + at];
            let place = self.place(axis, None);
            let (name, low) = (self.dims[at].iterator, self.dims[at].margins[0]);
            let from = match self.rng.chance(60) || low == 0 {
                true if low == 0 => place,
                true => format!("{place} + {low}"),
                false => {
                    tests.push(format!("{name} >= {low}"));
                    place
                }
            };
            self.dims[at].shifted = true;
            let to = self.upper(at);
            let to = if to.starts_with(name) {
                to
            } else {
                let high = self.dims[at].margins[1];
                format!("{name} < {} - {high}", self.dims[at].size)
            };
            let step = match self.rng.below(2) {
                0 => format!("blockDim.{axis} * gridDim.{axis}"),
                _ => format!("gridDim.{axis} * blockDim.{axis}"),
            };
            heads.push(format!("for (int {name} = {from}; {to}; {name} += {step})"));
        }
        if !tests.is_empty() {
            heads.push(format!("if ({})", tests.join(" && ")));
        }
        let inner = self.inner();
        nest(text, &heads, &inner);
    }

    fn planes(&mut self, text: &mut String) {
        let mut tests = Vec::new();
        for at in 0..self.dims.len() {
            let axis = ['z', 'y', 'x'][at];
            let place = match at {
                0 => "blockIdx.z".to_owned(),
                _ => self.place(axis, None),
            };
            let (name, low) = (self.dims[at].iterator, self.dims[at].margins[0]);
            let shifted = low > 0 && self.rng.chance(60);
            let shift = if shifted {
                format!(" + {low}")
            } else {
                String::new()
            };
            let _ = writeln!(text, "    const int {name} = {place}{shift};");
            self.dims[at].shifted = shifted;
            tests.extend(self.lower(at));
            if at > 0 || self.rng.chance(70) {
                tests.push(self.upper(at));
            }
        }
        let inner = self.inner();
        nest(text, &[format!("if ({})", tests.join(" && "))], &inner);
    }

    fn march(&mut self, text: &mut String, queue: bool) {
        let mut tests = Vec::new();
        for at in 1..self.dims.len() {
            let axis = ['y', 'x'][at + 2 - self.dims.len()];
            let axis = if self.dims.len() == 2 { 'x' } else { axis };
            let place = self.place(axis, None);
            let (name, low) = (self.dims[at].iterator, self.dims[at].margins[0]);
            self.dims[at].shifted = low > 0 && self.rng.chance(30);
            let shift = match self.dims[at].shifted {
                true => format!(" + {low}"),
                false => String::new(),
            };
            let _ = writeln!(text, "    int {name} = {place}{shift};");
            tests.extend(self.lower(at));
            tests.push(self.upper(at));
        }
        let element = self.element();
        let plane: Vec<String> = (1..self.dims.len()).map(|n| self.length(n)).collect();
        let plane = plane.join(" * ");
        let (iterator, size) = (self.dims[0].iterator, self.dims[0].size.clone());
        let ([from, to], [low, high]) = (self.dims[0].offsets, self.dims[0].margins);
        let start = self.base(Some(low)).unwrap_or_default();
        let mut before = vec![format!("int at = {start};")];
        let input = self.inputs[0].clone();
        let read = |at: i64| format!("{input}[at + {at} * {plane}]").replace("+ -", "- ");
        let last = to - from;
        if queue {
            for at in 0..last {
                before.push(format!("{element} q{at} = {};", read(from + at)));
            }
        }
        let mut inner = Vec::new();
        if queue {
            inner.push(format!("const {element} q{last} = {};", read(to)));
        }
        inner.extend(self.statements());
        if queue {
            inner.extend((0..last).map(|at| format!("q{at} = q{};", at + 1)));
        }
        inner.push(format!("at += {plane};"));
        let head =
            format!("for (int {iterator} = {low}; {iterator} < {size} - {high}; ++{iterator})");
        let mut body = String::new();
        nest(&mut body, &[], &before);
        nest(&mut body, &[head], &inner);
        match self.rng.chance(50) {
            true => {
                let _ = writeln!(text, "    if (!({})) return;\n{body}", tests.join(" && "));
            }
            false => {
                let _ = writeln!(text, "    if ({}) {{\n{body}    }}", tests.join(" && "));
            }
        }
    }

    fn tile(&mut self, text: &mut String, block: [i64; 2], wide: bool) {
        let element = self.element();
        let dims = self.dims.len();
        let axes: Vec<char> = ['y', 'x'][2 - dims..].to_vec();
        let halos: Vec<[i64; 2]> = self.dims.iter().map(|d| halo(d.offsets)).collect();
        let sizes: Vec<i64> = axes.iter().map(|a| block[name_of(*a)]).collect();
        let full: Vec<i64> = (0..dims)
            .map(|d| sizes[d] + halos[d][0] + halos[d][1])
            .collect();
        let mut lengths = full.clone();
        if self.rng.chance(20) {
            lengths[dims - 1] += 1;
        }
        let lengths: String = lengths.iter().map(|n| format!("[{n}]")).collect();
        let _ = writeln!(text, "    __shared__ {element} tile{lengths};");
        // Cells outside of the grid are filled with a number, which counts where nothing else is read there.
        let filled = self.rng.chance(40).then(|| match self.rng.chance(70) {
            true => "0".to_owned(),
            false => self.literal(),
        });
        if filled.is_some() && self.inputs.len() == 1 && self.coefficients.is_empty() {
            for dim in &mut self.dims {
                dim.margins = [0, 0];
            }
        }
        let mut tests = Vec::new();
        for at in 0..dims {
            let name = self.dims[at].iterator;
            if wide {
                let (axis, size, before) = (axes[at], sizes[at], halos[at][0]);
                let _ = writeln!(
                    text,
                    "    const int {name} = (int)blockIdx.{axis} * {size} + (int)threadIdx.{axis} - {before};"
                );
                if before > 0 || self.rng.chance(20) {
                    tests.push(format!("threadIdx.{axis} >= {before}"));
                }
                tests.push(format!("threadIdx.{axis} < {}", before + size));
                self.dims[at].shifted = false;
                tests.extend(self.lower(at));
                tests.push(self.upper(at));
                continue;
            }
            let number = self.rng.chance(70).then_some(sizes[at]);
            let place = self.place(axes[at], number);
            let _ = writeln!(text, "    const int {name} = {place};");
            self.dims[at].shifted = false;
            tests.extend(self.lower(at));
            tests.push(self.upper(at));
        }
        // Cells, by loops or by number.
        let cells = ["r", "s"][2 - dims..].to_vec();
        let mut inner = Vec::new();
        let mut exists = Vec::new();
        let mut global = Vec::new();
        for at in 0..dims {
            let (cell, axis, size) = (cells[at], axes[at], self.dims[at].size.clone());
            let own = format!("g{cell}");
            inner.push(match wide {
                true => format!("const int {own} = {};", self.dims[at].iterator),
                false => format!(
                    "const int {own} = (int)blockIdx.{axis} * {} + {cell} - {};",
                    sizes[at], halos[at][0]
                ),
            });
            exists.push(format!("{own} >= 0 && {own} < {size}"));
            global.push(own);
        }
        let target = |at: usize| match wide {
            true => format!("[threadIdx.{}]", axes[at]),
            false => format!("[{}]", cells[at]),
        };
        let target: String = (0..dims).map(target).collect();
        let source = self.linear(&global, 0);
        let input = self.inputs[0].clone();
        let exists = exists.join(" && ");
        inner.push(match filled {
            None => format!("if ({exists}) tile{target} = {input}[{source}];"),
            Some(number) if self.rng.chance(50) => {
                format!("tile{target} = ({exists}) ? {input}[{source}] : {number};")
            }
            Some(number) => format!(
                "if ({exists}) tile{target} = {input}[{source}]; else tile{target} = {number};"
            ),
        });
        let mut heads = Vec::new();
        if wide {
            // Each thread has its cell.
            inner = vec![inner.join(" ")];
        } else if dims == 2 && self.rng.chance(50) {
            heads.push(format!(
                "for (int t = threadIdx.y * {0} + threadIdx.x; t < {1}; t += {2})",
                block[0],
                full[0] * full[1],
                block[0] * block[1]
            ));
            inner.insert(0, format!("const int r = t / {0}, s = t % {0};", full[1]));
        } else {
            for at in 0..dims {
                let (cell, axis) = (cells[at], axes[at]);
                heads.push(format!(
                    "for (int {cell} = threadIdx.{axis}; {cell} < {}; {cell} += {})",
                    full[at], sizes[at]
                ));
            }
        }
        nest(text, &heads, &inner);
        let _ = writeln!(text, "    __syncthreads();");
        let inner = self.inner();
        nest(text, &[format!("if ({})", tests.join(" && "))], &inner);
    }
}
