//! The 64-bit state of an mbarrier object (PTX ISA, 'Parallel Synchronization and Communication
//! Instructions: mbarrier').
//!
//! The layout is opaque to programs; this one is ours:
//!
//! | bits | field |
//! |---|---|
//! | 0–19 | pending arrivals of the current phase |
//! | 20–39 | arrivals expected in the next phase |
//! | 40–61 | pending transaction bytes, offset by 2^21 |
//! | 62 | parity of the current phase |
//! | 63 | initialised |

/// An unpacked mbarrier object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub pending: u32,
    pub expected: u32,
    pub bytes: i32,
    pub parity: bool,
}

/// Largest number of arrivals, and largest magnitude of the transaction count.
pub(crate) const MAX: u32 = (1 << 20) - 1;

const BYTES_BIAS: i32 = 1 << 21;

impl State {
    /// A fresh object that expects this many arrivals; `None` if the number is not valid.
    pub fn new(count: u64) -> Option<State> {
        let count = u32::try_from(count)
            .ok()
            .filter(|c| (1..=MAX).contains(c))?;
        Some(State {
            pending: count,
            expected: count,
            bytes: 0,
            parity: false,
        })
    }

    /// Reads an object; `None` if it has not been initialised.
    pub fn unpack(word: u64) -> Option<State> {
        (word >> 63 != 0)
            .then_some(State {
                pending: word as u32 & MAX,
                expected: (word >> 20) as u32 & MAX,
                bytes: (word >> 40) as i32 & 0x3f_ffff,
                parity: word >> 62 & 1 != 0,
            })
            .map(|s| State {
                bytes: s.bytes - BYTES_BIAS,
                ..s
            })
    }

    /// The object's bits.
    pub fn pack(self) -> u64 {
        let bytes = (self.bytes + BYTES_BIAS) as u64 & 0x3f_ffff;
        1 << 63
            | (self.parity as u64) << 62
            | bytes << 40
            | (self.expected as u64) << 20
            | self.pending as u64
    }

    /// Arrivals; `false` if more come than are pending.
    pub fn arrive(&mut self, count: u64, drop: bool) -> bool {
        let Some(count) = u32::try_from(count).ok().filter(|&c| c <= self.pending) else {
            return false;
        };
        self.pending -= count;
        if drop {
            self.expected = self.expected.saturating_sub(count);
        }
        self.advance();
        true
    }

    /// `expect_tx`: raises the transaction count; no phase ends by it.
    pub fn expect(&mut self, bytes: i64) -> bool {
        let sum = self.bytes as i64 + bytes;
        if sum.unsigned_abs() > MAX as u64 {
            return false;
        }
        self.bytes = sum as i32;
        true
    }

    /// Changes the transaction count; `false` if it leaves its range.
    pub fn transact(&mut self, bytes: i64) -> bool {
        let fine = self.expect(bytes);
        self.advance();
        fine
    }

    /// A phase completes when neither arrivals nor bytes are pending.
    fn advance(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.pending = self.expected;
            self.parity = !self.parity;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_pack_and_unpack() {
        for state in [
            State {
                pending: 1,
                expected: MAX,
                bytes: -5,
                parity: true,
            },
            State {
                pending: MAX,
                expected: 3,
                bytes: MAX as i32,
                parity: false,
            },
        ] {
            assert_eq!(State::unpack(state.pack()), Some(state));
        }
        assert_eq!(State::unpack(0), None);
        assert!(State::new(0).is_none() && State::new(1 << 20).is_none());
    }

    #[test]
    fn a_phase_waits_for_arrivals_and_bytes() {
        let Some(mut s) = State::new(2) else { panic!() };
        assert!(s.expect(16) && s.arrive(1, false) && s.arrive(1, false));
        assert!(!s.parity);
        assert!(s.transact(-16));
        assert_eq!((s.parity, s.pending), (true, 2));
        assert!(s.arrive(1, true) && !s.arrive(2, false) && s.arrive(1, false));
        assert_eq!((s.parity, s.pending), (false, 1));
    }
}
