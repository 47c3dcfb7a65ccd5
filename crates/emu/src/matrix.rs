//! Matrix operations of a warp: shapes, element types and which lane holds which element.
//!
//! Fragment layouts of `mma` are those of the PTX ISA ('Matrix Fragments for mma.m16n8k…'); the
//! whole family follows one rule, see [`a_element`]. The layouts of `wmma` are not documented;
//! [`wmma_element`] is ours, and programs cannot rely on more than its consistency.

use warpwright_ptx::Type;

use crate::arith::Round;
use crate::arith::narrow::{Bf16, F16};
use crate::arith::soft::{self, Value};
use crate::arith::{Lane, float::Real};
use crate::lanes::WARP;
use crate::program::{Access, Src};

/// A matrix operation.
pub(crate) enum MatrixOp {
    Mma(Box<Mma>),
    /// `ldmatrix`: 8×8 matrices of 16-bit elements; one destination each.
    Load {
        access: Access,
        dsts: Vec<u32>,
        transposed: bool,
    },
    /// `stmatrix`
    Store {
        access: Access,
        srcs: Vec<Src>,
        transposed: bool,
    },
    /// `movmatrix`: the transpose.
    Move {
        dst: u32,
        src: Src,
    },
    /// `wmma.load`
    WmmaLoad {
        access: Access,
        stride: Src,
        tile: Tile,
        dsts: Vec<u32>,
    },
    /// `wmma.store`
    WmmaStore {
        access: Access,
        stride: Src,
        tile: Tile,
        srcs: Vec<Src>,
    },
}

/// `D = A * B + C`.
pub(crate) struct Mma {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a_type: Element,
    pub b_type: Element,
    pub c_type: Element,
    pub d_type: Element,
    pub a: Vec<Src>,
    pub b: Vec<Src>,
    pub c: Vec<Src>,
    pub d: Vec<u32>,
    /// `.satfinite` on integers.
    pub saturate: bool,
    /// `.xor.popc` instead of `.and.popc`, for one-bit elements.
    pub xor: bool,
    /// Fragments are those of `wmma`.
    pub wmma: bool,
}

impl Mma {
    /// What it costs beside one instruction, in warp instructions: as many products take as long.
    pub fn work(&self) -> u64 {
        const PRODUCTS: usize = 8;
        (self.m * self.n * self.k / PRODUCTS) as u64
    }
}

/// A matrix in memory, as `wmma.load` and `wmma.store` see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile {
    pub rows: usize,
    pub cols: usize,
    pub element: Element,
    /// Consecutive elements are in a row.
    pub row_major: bool,
}

/// Element types of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Bit,
    Int { bits: u32, signed: bool },
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    E4m3,
    E5m2,
}

impl Element {
    pub fn of(ty: Type) -> Option<Element> {
        Some(match ty {
            Type::B1 => Element::Bit,
            Type::U4 => Element::Int {
                bits: 4,
                signed: false,
            },
            Type::S4 => Element::Int {
                bits: 4,
                signed: true,
            },
            Type::U8 => Element::Int {
                bits: 8,
                signed: false,
            },
            Type::S8 => Element::Int {
                bits: 8,
                signed: true,
            },
            Type::S32 => Element::Int {
                bits: 32,
                signed: true,
            },
            Type::F16 => Element::F16,
            Type::Bf16 => Element::Bf16,
            Type::Tf32 => Element::Tf32,
            Type::F32 => Element::F32,
            Type::F64 => Element::F64,
            Type::E4m3 => Element::E4m3,
            Type::E5m2 => Element::E5m2,
            _ => return None,
        })
    }

    /// Bits of one element in a register.
    pub fn bits(self) -> usize {
        match self {
            Element::Bit => 1,
            Element::Int { bits, .. } => bits as usize,
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 | Element::F32 => 32,
            Element::F64 => 64,
            Element::E4m3 | Element::E5m2 => 8,
        }
    }

    pub fn is_int(self) -> bool {
        matches!(self, Element::Bit | Element::Int { .. })
    }

    /// Bits of the registers that hold fragments of it.
    pub fn register_bits(self) -> usize {
        self.bits().max(32)
    }

    /// The exact value of an element.
    pub fn value(self, bits: u64) -> f64 {
        match self {
            Element::Bit => (bits & 1) as f64,
            Element::Int { .. } => self.integer(bits) as f64,
            Element::F16 => F16::from_lane(bits).to_f64(),
            Element::Bf16 => Bf16::from_lane(bits).to_f64(),
            Element::Tf32 => f32::from_bits(bits as u32 & !0x1fff) as f64,
            Element::F32 => f32::from_bits(bits as u32) as f64,
            Element::F64 => f64::from_bits(bits),
            Element::E4m3 => small(soft::E4M3, bits),
            Element::E5m2 => small(soft::E5M2, bits),
        }
    }

    /// The integer value of an element.
    pub fn integer(self, bits: u64) -> i64 {
        match self {
            Element::Int {
                bits: width,
                signed: true,
            } => (bits << (64 - width)) as i64 >> (64 - width),
            Element::Int { bits: width, .. } => (bits & ((1 << width) - 1)) as i64,
            _ => bits as i64,
        }
    }

    /// The element nearest to a number.
    pub fn round(self, x: f64) -> u64 {
        match self {
            Element::F16 => F16::from_f64(x).canonical().to_lane(),
            Element::Bf16 => Bf16::from_f64(x).canonical().to_lane(),
            Element::F64 => x.canonical().to_lane(),
            _ => (x as f32).canonical().to_lane(),
        }
    }
}

fn small(format: soft::Format, bits: u64) -> f64 {
    let value: Value = format.unpack(bits & 0xff);
    f64::from_bits(soft::F64.pack(Round::NearestEven, value))
}

/// Row and column of an element of the A fragment: element `j` of register `r` of a lane.
///
/// Four lanes share a row; a register holds `e` neighbours of it. Odd registers belong to the
/// lower eight rows, each further pair of registers to the next `4e` columns. (Matrices of eight
/// rows have no odd registers.)
pub(crate) fn a_element(m: usize, e: usize, lane: usize, r: usize, j: usize) -> (usize, usize) {
    let halves = m / 8;
    (
        lane / 4 + 8 * (r % halves),
        lane % 4 * e + j + 4 * e * (r / halves),
    )
}

/// Row and column of an element of the B fragment.
pub(crate) fn b_element(e: usize, lane: usize, r: usize, j: usize) -> (usize, usize) {
    (lane % 4 * e + j + 4 * e * r, lane / 4)
}

/// Row and column of element `i` of a lane's C or D fragment.
pub(crate) fn c_element(lane: usize, i: usize) -> (usize, usize) {
    (lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2)
}

/// Which element of a matrix of `total` elements a lane's fragment of `count` holds at `i`. Where
/// fragments have room for more than the matrix, elements are held twice.
pub(crate) fn wmma_element(total: usize, count: usize, lane: usize, i: usize) -> usize {
    (lane * count + i) % total
}

/// A matrix gathered from or for fragments: the elements' bits, row by row.
pub(crate) struct Dense {
    pub cols: usize,
    pub bits: Vec<u64>,
}

impl Dense {
    pub fn new(rows: usize, cols: usize) -> Self {
        Dense {
            cols,
            bits: vec![0; rows * cols],
        }
    }

    pub fn get(&self, (row, col): (usize, usize)) -> u64 {
        self.bits.get(row * self.cols + col).copied().unwrap_or(0)
    }

    pub fn set(&mut self, (row, col): (usize, usize), bits: u64) {
        if let Some(place) = self.bits.get_mut(row * self.cols + col) {
            *place = bits;
        }
    }
}

impl Mma {
    /// Elements that each lane holds of C and D.
    fn accumulators(&self) -> usize {
        self.m * self.n / WARP
    }

    /// Checks that operands have as many registers as the shape needs.
    pub fn is_consistent(&self) -> bool {
        let count = |elements: usize, ty: Element| {
            (elements * ty.bits()).div_ceil(WARP * ty.register_bits())
        };
        if self.wmma {
            return true;
        }
        self.m.is_multiple_of(8)
            && self.m / 8 <= 2
            && self.n == 8
            && self.a.len() == count(self.m * self.k, self.a_type)
            && self.b.len() == count(self.k * self.n, self.b_type)
            && self.c.len() == count(self.m * self.n, self.c_type)
            && self.d.len() == count(self.m * self.n, self.d_type)
    }

    /// All elements of an operand, by `read(register, lane)`.
    pub fn gather_a(&self, read: impl Fn(usize, usize) -> u64) -> Dense {
        let mut dense = Dense::new(self.m, self.k);
        self.gather(self.a.len(), self.a_type, &read, |lane, r, j, e, bits| {
            let at = match self.wmma {
                true => self.wmma_at(self.m, self.k, self.a.len() * e, lane, r * e + j),
                false => a_element(self.m, e, lane, r, j),
            };
            dense.set(at, bits);
        });
        dense
    }

    pub fn gather_b(&self, read: impl Fn(usize, usize) -> u64) -> Dense {
        let mut dense = Dense::new(self.k, self.n);
        self.gather(self.b.len(), self.b_type, &read, |lane, r, j, e, bits| {
            let at = match self.wmma {
                true => self.wmma_at(self.k, self.n, self.b.len() * e, lane, r * e + j),
                false => b_element(e, lane, r, j),
            };
            dense.set(at, bits);
        });
        dense
    }

    pub fn gather_c(&self, read: impl Fn(usize, usize) -> u64) -> Dense {
        let mut dense = Dense::new(self.m, self.n);
        self.gather(self.c.len(), self.c_type, &read, |lane, r, j, e, bits| {
            dense.set(self.c_at(lane, r * e + j), bits);
        });
        dense
    }

    fn c_at(&self, lane: usize, i: usize) -> (usize, usize) {
        match self.wmma {
            true => self.wmma_at(self.m, self.n, self.accumulators(), lane, i),
            false => c_element(lane, i),
        }
    }

    fn wmma_at(
        &self,
        rows: usize,
        cols: usize,
        count: usize,
        lane: usize,
        i: usize,
    ) -> (usize, usize) {
        let index = wmma_element(rows * cols, count, lane, i);
        (index / cols, index % cols)
    }

    fn gather(
        &self,
        registers: usize,
        ty: Element,
        read: &impl Fn(usize, usize) -> u64,
        mut put: impl FnMut(usize, usize, usize, usize, u64),
    ) {
        let (bits, per) = (ty.bits(), ty.register_bits() / ty.bits());
        let mask = u64::MAX >> (64 - bits);
        for lane in 0..WARP {
            for r in 0..registers {
                for j in 0..per {
                    put(lane, r, j, per, read(r, lane) >> (bits * j) & mask);
                }
            }
        }
    }

    /// The bits of register `r` of a lane's D fragment.
    pub fn scatter_d(&self, dense: &Dense, lane: usize, r: usize) -> u64 {
        let (bits, per) = (
            self.d_type.bits(),
            self.d_type.register_bits() / self.d_type.bits(),
        );
        (0..per).fold(0, |word, j| {
            word | dense.get(self.c_at(lane, r * per + j)) << (bits * j)
        })
    }

    /// Multiplies. Floating-point sums are exact to a double and rounded once, which is closer
    /// than the hardware's own accumulation; integer sums are exact.
    pub fn multiply(&self, a: &Dense, b: &Dense, c: &Dense) -> Dense {
        let mut d = Dense::new(self.m, self.n);
        for row in 0..self.m {
            for col in 0..self.n {
                let pairs = (0..self.k).map(|i| (a.get((row, i)), b.get((i, col))));
                let start = c.get((row, col));
                let bits = match self.a_type {
                    Element::Bit => {
                        let joined = |(x, y): (u64, u64)| if self.xor { x ^ y } else { x & y };
                        let ones: u64 = pairs.map(joined).sum();
                        (start as u32).wrapping_add(ones as u32) as u64
                    }
                    Element::Int { .. } => {
                        let products =
                            pairs.map(|(x, y)| self.a_type.integer(x) * self.b_type.integer(y));
                        let sum = products.sum::<i64>() + start as i32 as i64;
                        let sum = match self.saturate {
                            true => sum.clamp(i32::MIN as i64, i32::MAX as i64),
                            false => sum,
                        };
                        sum as u32 as u64
                    }
                    Element::F64 => {
                        let fma =
                            |sum: f64, (x, y)| f64::from_bits(x).mul_add(f64::from_bits(y), sum);
                        self.d_type.round(pairs.fold(f64::from_bits(start), fma))
                    }
                    _ => {
                        let products =
                            pairs.map(|(x, y)| self.a_type.value(x) * self.b_type.value(y));
                        self.d_type
                            .round(products.sum::<f64>() + self.c_type.value(start))
                    }
                };
                d.set((row, col), bits);
            }
        }
        d
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every element of a matrix is held exactly once.
    fn is_bijection(rows: usize, cols: usize, at: impl Iterator<Item = (usize, usize)>) {
        let all: Vec<_> = at.collect();
        let distinct: BTreeSet<_> = all.iter().copied().collect();
        assert_eq!((all.len(), distinct.len()), (rows * cols, rows * cols));
        assert!(distinct.iter().all(|&(r, c)| r < rows && c < cols));
    }

    #[test]
    fn fragments_cover_their_matrices() {
        for (m, k, bits) in [
            (16, 16, 16),
            (16, 8, 16),
            (16, 8, 32),
            (16, 4, 32),
            (16, 32, 8),
            (16, 16, 8),
            (8, 16, 8),
            (16, 64, 4),
            (8, 32, 4),
            (8, 128, 1),
            (8, 4, 64),
            (16, 16, 64),
        ] {
            let e = usize::max(32, bits) / bits;
            let lanes = || (0..WARP).flat_map(move |l| (0..e).map(move |j| (l, j)));
            let (a, b) = (m * k / WARP / e, k * 8 / WARP / e);
            is_bijection(
                m,
                k,
                lanes().flat_map(|(l, j)| (0..a).map(move |r| a_element(m, e, l, r, j))),
            );
            is_bijection(
                k,
                8,
                lanes().flat_map(|(l, j)| (0..b).map(move |r| b_element(e, l, r, j))),
            );
            is_bijection(
                m,
                8,
                (0..WARP).flat_map(|l| (0..m / 4).map(move |i| c_element(l, i))),
            );
        }
    }

    /// Places that the ISA's tables state.
    #[test]
    fn places_from_the_isa_tables() {
        // m16n8k16, .f16: a2 (register 1) is in the lower half, a4 (register 2) eight columns on.
        assert_eq!(a_element(16, 2, 5, 1, 0), (9, 2));
        assert_eq!(a_element(16, 2, 5, 2, 1), (1, 11));
        assert_eq!(b_element(2, 5, 1, 0), (10, 1));
        assert_eq!(c_element(5, 3), (9, 3));
        // m16n8k32, .s8: a8 (register 2) is 16 columns on.
        assert_eq!(a_element(16, 4, 6, 2, 3), (1, 27));
        // m8n8k4, .f64
        assert_eq!(a_element(8, 1, 7, 0, 0), (1, 3));
    }
}
