//! The code at the kernel's entry that puts the thread's linear index into the base register.
//!
//! index = (tid.z · ntid.y + tid.y) · ntid.x + tid.x, from the special registers and from the block
//! sizes that the driver leaves in constant bank 0, as ptxas does for its own spills to shared
//! memory. Dimensions of size 1 are left out where the kernel requires an exact block.
//!
//! Every scoreboard is free at the entry of a kernel: the code uses one and waits for it before it ends.
//! Every register is free, too; but helpers save registers that nobody has set, on paths that no thread
//! takes, and the checker can tell less of such a register if we have written to it.

use super::word::{
    Register, Uniform, add_uniform, block_size, multiply_add, nothing, stack_pointer, thread_index,
};
use crate::control::Control;
use crate::inst::Instruction;

/// What is known about the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Exactly this (`.reqntid`): other launches fail.
    Exact([u32; 3]),
    /// No more threads than this, in any shape.
    AtMost(u32),
}

impl Shape {
    /// Threads for which there must be room.
    pub fn threads(self) -> u32 {
        match self {
            Shape::Exact(block) => block.iter().fold(1, |all, &n| all.saturating_mul(n)),
            Shape::AtMost(threads) => threads,
        }
    }

    /// The dimensions that have more than one thread, the last first.
    fn dimensions(self) -> Vec<u32> {
        let all = (0..3).rev();
        match self {
            Shape::Exact(block) => all.filter(|&d| block[d as usize] > 1).collect(),
            Shape::AtMost(_) => all.collect(),
        }
    }
}

/// Registers that the code may overwrite besides the one for the result.
pub const SCRATCH: usize = 4;

/// The scoreboard.
const BOARD: u8 = 0;
/// Cycles from a multiply-add, or from work on uniform registers, to an instruction of another kind
/// that reads the result: more than any architecture needs.
const SETTLE: u8 = 10;

/// The code that leaves the thread's index in `index`.
pub(super) fn code(
    sm: u32,
    index: Register,
    scratch: [Register; SCRATCH],
    shape: Shape,
) -> Vec<Instruction> {
    let dimensions = shape.dimensions();
    let (outermost, inner) = match dimensions.split_first() {
        Some((&outermost, inner)) => (outermost, inner),
        None => (0, &[][..]),
    };
    let steps: Vec<(u32, &[Register])> = inner.iter().copied().zip(scratch.chunks(2)).collect();
    let mut code = vec![thread_index(sm, index, outermost, fetch())];
    for &(dimension, scratch) in &steps {
        code.push(thread_index(sm, scratch[0], dimension, fetch()));
        code.push(block_size(sm, scratch[1], dimension, fetch()));
    }
    code.push(nothing(sm, wait()));
    for (_, scratch) in steps {
        let sources = [index, scratch[1], scratch[0]];
        code.push(multiply_add(sm, index, sources, settle()));
    }
    code
}

/// The code that leaves the start of a frame of so many bytes in a uniform register.
pub(super) fn frame(sm: u32, register: Uniform, bytes: u32) -> Vec<Instruction> {
    vec![
        stack_pointer(sm, register, settle()),
        add_uniform(sm, register, bytes.wrapping_neg(), settle()),
    ]
}

fn fetch() -> Control {
    Control {
        stall: 2,
        yield_bit: true,
        write_barrier: Some(BOARD),
        ..Control::default()
    }
}

fn wait() -> Control {
    Control {
        stall: 1,
        wait_mask: 1 << BOARD,
        ..Control::default()
    }
}

fn settle() -> Control {
    Control {
        stall: SETTLE,
        ..Control::default()
    }
}
