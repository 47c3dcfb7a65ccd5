//! What atomic operations take that wait for each other: on one line of the level-2 cache all of a launch come one after
//! the other, whatever resides; on one bank of shared memory those of a warp do. Choices do not go by it, as no build
//! changes it; what bounds a kernel does.

use warpwright_target::Gpu;

/// Cycles between two operations on one line of 128 bytes: 3.5 of a sum (`rd_atomic` as written), 4.1 of eight lines
/// (`histogram` as written), on an H200.
const LINE: f64 = 3.5;
/// Cycles of an SM for a turn over shared memory: 4.5 for an operation of a warp among 256 cells (`histogram` with a table
/// for each block, on an H200), whose fullest bank has 3.5 lanes on average.
const TURN: f64 = 1.3;

/// Operations of a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Atomics {
    /// Blocks of the launch.
    pub blocks: u64,
    /// Operations on the fullest line for each warp of the launch.
    pub line: f64,
    /// Turns over shared memory of a warp.
    pub turns: f64,
}

impl Atomics {
    /// SM cycles for each warp, as the other parts of a prediction are; nothing where the board is not known.
    pub fn cycles(&self, gpu: &Gpu) -> f64 {
        let busiest = gpu.blocks_for_sm(self.blocks).unwrap_or(0);
        // Multiprocessors that are busy all the time, if all blocks take the same.
        let sms = match busiest {
            0 => 0.0,
            most => self.blocks as f64 / most as f64,
        };
        (LINE * self.line * sms).max(TURN * self.turns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_target::lookup;

    #[test]
    fn one_line_is_waited_for_by_all() {
        let gpu = lookup("h200").unwrap();
        let of = |blocks, line, turns| {
            let atomics = Atomics {
                blocks,
                line,
                turns,
            };
            atomics.cycles(&gpu)
        };
        // 132 SMs, two blocks on each: as many cycles for a warp of each SM as all of them have operations.
        assert_eq!(of(264, 1.0, 0.0), 132.0 * LINE);
        // Of few blocks each has an SM of its own.
        assert_eq!(of(4, 1.0, 0.0), 4.0 * LINE);
        assert_eq!(of(4, 0.0, 10.0), 10.0 * TURN);
        assert_eq!(of(0, 1.0, 0.0), 0.0);
    }
}
