//! The choices that make a kernel out of a naive one.

/// How the points of a kernel are computed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Schedule {
    /// Threads of a block along x and y.
    pub threads: [u32; 2],
    /// Points of a thread along x and y (thread merge, section 3.5.2 of the paper).
    pub points: [u32; 2],
    /// How many of them are neighbours; the next ones are a block's threads further.
    pub run: [u32; 2],
    /// Lanes of a warp along x; 0: as many as there are threads.
    pub lanes: u32,
    /// A loop in parts, whose operands wait in shared memory (section 3.3).
    pub stage: Option<Stage>,
    /// Rows of blocks that are computed together, so that their operands stay in the L2 cache; 0: as launched.
    pub order: u32,
    /// Blocks that an SM must have room for, whatever registers that leaves; 0: the compiler's own choice.
    pub resident: u32,
    /// Tiles lie along x and z, where operands are the same for all planes; y is what z was.
    pub planes: bool,
    /// The sizes that the pragma expects are constants in a kernel of their own.
    pub specialise: bool,
}

/// Shared memory for the operands of a part of a loop.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stage {
    /// Turns of the loop in a part.
    pub turns: u32,
    /// Turns that are written out one after the other.
    pub unroll: u32,
    /// Parts that are there at once: 1 waits for each copy, more copy ahead (section 3.6, with `cp.async`).
    pub buffers: u32,
    /// Rows along the loop are turned while they are copied, so that points are neighbours.
    pub turn: bool,
}

impl Schedule {
    /// Is nothing but the block another?
    pub fn is_block_alone(&self) -> bool {
        let own = Schedule {
            threads: self.threads,
            ..Schedule::identity(1)
        };
        *self == own
    }

    /// A thread for a point, as the kernel is written.
    pub fn identity(dims: usize) -> Schedule {
        Schedule {
            threads: if dims > 1 { [32, 8] } else { [256, 1] },
            points: [1, 1],
            run: [1, 1],
            lanes: 0,
            stage: None,
            order: 0,
            resident: 0,
            planes: false,
            specialise: false,
        }
    }

    /// Points of a block along x and y.
    pub fn tile(&self) -> [u32; 2] {
        [0, 1].map(|a| self.threads[a] * self.points[a])
    }

    /// Threads of a block.
    pub fn block(&self) -> u32 {
        self.threads[0].saturating_mul(self.threads[1])
    }
}
