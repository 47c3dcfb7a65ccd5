//! Matrix instructions on the registers of a warp.

use super::access::Trouble;
use super::block::Block;
use super::warp::Warp;
use crate::lanes::{Lanes, Mask, WARP};
use crate::matrix::{MatrixOp, Mma, Tile, wmma_element};
use crate::program::{Access, Src};

impl Warp {
    /// Executes a matrix instruction with all lanes.
    pub fn matrix(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        op: &MatrixOp,
    ) -> Result<(), Box<Trouble>> {
        match op {
            MatrixOp::Mma(mma) => {
                self.mma(block, frame, mma);
                Ok(())
            }
            MatrixOp::Load {
                access,
                dsts,
                transposed,
            } => {
                for (number, &dst) in dsts.iter().enumerate() {
                    let mut rows = [[0u64; 8]; 8];
                    for (row, elements) in rows.iter_mut().enumerate() {
                        // Lane 8i + r has the address of row r of matrix i.
                        let lane = number * 8 + row;
                        for (_, target) in self.targets(block, frame, 1 << lane, access)? {
                            for (col, element) in elements.iter_mut().enumerate() {
                                *element = self.read(block, target, lane, 2 * col as u64, 2)?;
                            }
                        }
                    }
                    let value = Warp::per_lane(Mask::MAX, |lane| pair(&rows, lane, *transposed));
                    self.set(frame, dst, Mask::MAX, &value);
                }
                Ok(())
            }
            MatrixOp::Store {
                access,
                srcs,
                transposed,
            } => {
                for (number, &src) in srcs.iter().enumerate() {
                    let rows = unpack(self.value(block, frame, src), *transposed);
                    for (row, elements) in rows.iter().enumerate() {
                        let lane = number * 8 + row;
                        for (_, target) in self.targets(block, frame, 1 << lane, access)? {
                            for (col, &element) in elements.iter().enumerate() {
                                self.write(block, target, lane, 2 * col as u64, 2, element)?;
                            }
                        }
                    }
                }
                Ok(())
            }
            MatrixOp::Move { dst, src } => {
                let rows = unpack(self.value(block, frame, *src), false);
                let value = Warp::per_lane(Mask::MAX, |lane| pair(&rows, lane, true));
                self.set(frame, *dst, Mask::MAX, &value);
                Ok(())
            }
            MatrixOp::WmmaLoad {
                access,
                stride,
                tile,
                dsts,
            } => self.wmma_load(block, frame, access, *stride, *tile, dsts),
            MatrixOp::WmmaStore {
                access,
                stride,
                tile,
                srcs,
            } => self.wmma_store(block, frame, access, *stride, *tile, srcs),
        }
    }

    fn mma(&mut self, block: &mut Block<'_>, frame: usize, mma: &Mma) {
        block.clock += mma.work();
        let operand = |srcs: &[Src]| -> Vec<Lanes> {
            srcs.iter().map(|&s| *self.value(block, frame, s)).collect()
        };
        let (a, b, c) = (operand(&mma.a), operand(&mma.b), operand(&mma.c));
        let dense = mma.multiply(
            &mma.gather_a(|r, lane| a[r][lane]),
            &mma.gather_b(|r, lane| b[r][lane]),
            &mma.gather_c(|r, lane| c[r][lane]),
        );
        for (r, &dst) in mma.d.iter().enumerate() {
            let value = Warp::per_lane(Mask::MAX, |lane| mma.scatter_d(&dense, lane, r));
            self.set(frame, dst, Mask::MAX, &value);
        }
    }

    fn wmma_load(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        access: &Access,
        stride: Src,
        tile: Tile,
        dsts: &[u32],
    ) -> Result<(), Box<Trouble>> {
        let stride = *self.value(block, frame, stride);
        let (bits, per) = fragment(tile);
        let mut values = vec![[0u64; WARP]; dsts.len()];
        for (lane, &stride) in stride.iter().enumerate() {
            for i in 0..dsts.len() * per {
                let index = wmma_element(tile.rows * tile.cols, dsts.len() * per, lane, i);
                let element = tile_access(access, tile, stride & 0xffff_ffff, index);
                for (_, target) in self.targets(block, frame, 1 << lane, &element)? {
                    let value = self.read(block, target, lane, 0, element.elem)?;
                    values[i / per][lane] |= value << (bits * (i % per));
                }
            }
        }
        for (&dst, value) in dsts.iter().zip(&values) {
            self.set(frame, dst, Mask::MAX, value);
        }
        Ok(())
    }

    fn wmma_store(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        access: &Access,
        stride: Src,
        tile: Tile,
        srcs: &[Src],
    ) -> Result<(), Box<Trouble>> {
        let stride = *self.value(block, frame, stride);
        let (bits, per) = fragment(tile);
        for (lane, &stride) in stride.iter().enumerate() {
            for i in 0..srcs.len() * per {
                let index = wmma_element(tile.rows * tile.cols, srcs.len() * per, lane, i);
                let element = tile_access(access, tile, stride & 0xffff_ffff, index);
                let value = self.value(block, frame, srcs[i / per])[lane] >> (bits * (i % per));
                for (_, target) in self.targets(block, frame, 1 << lane, &element)? {
                    self.write(block, target, lane, 0, element.elem, value)?;
                }
            }
        }
        Ok(())
    }
}

/// Bits of an element, and elements of a register.
fn fragment(tile: Tile) -> (usize, usize) {
    let bits = tile.element.bits();
    (bits, tile.element.register_bits() / bits)
}

/// The access to one element of a tile whose rows (columns) begin `stride` elements apart.
fn tile_access(access: &Access, tile: Tile, stride: u64, index: usize) -> Access {
    let (row, col) = ((index / tile.cols) as u64, (index % tile.cols) as u64);
    let elements = if tile.row_major {
        row * stride + col
    } else {
        col * stride + row
    };
    let bytes = (tile.element.bits() / 8) as u32;
    let offset = access.offset.wrapping_add((elements * bytes as u64) as i64);
    Access {
        offset,
        elem: bytes,
        count: 1,
        align: bytes,
        ..*access
    }
}

/// The two 16-bit elements that a lane holds of an 8×8 matrix.
fn pair(rows: &[[u64; 8]; 8], lane: usize, transposed: bool) -> u64 {
    let (row, col) = (lane / 4, lane % 4 * 2);
    let at = |r: usize, c: usize| if transposed { rows[c][r] } else { rows[r][c] };
    at(row, col) | at(row, col + 1) << 16
}

/// An 8×8 matrix from the pairs that the lanes hold.
fn unpack(values: &Lanes, transposed: bool) -> [[u64; 8]; 8] {
    let mut rows = [[0; 8]; 8];
    for (lane, value) in values.iter().enumerate() {
        let (row, col) = (lane / 4, lane % 4 * 2);
        for j in 0..2 {
            let element = value >> (16 * j) & 0xffff;
            match transposed {
                true => rows[col + j][row] = element,
                false => rows[row][col + j] = element,
            }
        }
    }
    rows
}
