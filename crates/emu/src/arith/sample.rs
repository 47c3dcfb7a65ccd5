//! Operands for tests: random bits mixed with the edges of all formats. Seeded, so that a failure
//! repeats.

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Sample(u64);

const EDGES: [u64; 26] = [
    0,
    1,
    2,
    0x8000_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0x7f80_0000,
    0x7f7f_ffff,
    0x007f_ffff,
    0x0080_0000,
    0x3f80_0000,
    0x8000_0000,
    0x7c00,
    0x7bff,
    0x0400,
    0x03ff,
    0x3c00,
    0x7f80,
    0x7f7f,
    0x0080,
    0x007f,
    0xffff_ffff,
    u64::MAX,
];

impl Sample {
    pub fn new(seed: u64) -> Self {
        Sample(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Random bits, or a neighbour of an edge.
    pub fn operand(&mut self) -> u64 {
        match self.bits() % 3 {
            0 => {
                let edge = EDGES[(self.bits() % EDGES.len() as u64) as usize];
                edge.wrapping_add(self.bits() % 5).wrapping_sub(2)
            }
            _ => self.bits(),
        }
    }

    /// An operand near another in magnitude, with either sign: sums of the two cancel.
    pub fn near(&mut self, a: u64) -> u64 {
        let step = (self.bits() % 11) << (self.bits() % 60);
        let signs = match self.bits() & 1 {
            0 => 0,
            _ => 1 << 63 | 1 << 31 | 1 << 15,
        };
        a.wrapping_add(step) ^ signs
    }
}
