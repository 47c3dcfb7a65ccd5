//! The control field of an instruction: what ptxas tells the hardware about scheduling.
//!
//! Positions as docs/facts.md and the perturbed instructions of docs/sass.md show them:
//! stall 105 to 108, yield 109, write barrier 110 to 112, read barrier 113 to 115, wait mask 116 to
//! 121, operand reuse 122 to 125. Bits 126 and 127 belong to nobody and are kept. The field lies at
//! the same place on every architecture from sm_75 on.

use crate::inst::Instruction;
use std::fmt;

/// Scoreboards that a warp has.
pub const SCOREBOARDS: u8 = 6;

const SHIFT: u32 = 105;
const MASK: u128 = (1 << 21) - 1;
/// The value of a barrier field that means "none".
const NO_BARRIER: u8 = 7;

/// The control field of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Control {
    /// Cycles before this warp may issue its next instruction, 0 to 15.
    pub stall: u8,
    /// The yield bit as it is stored: clear, the scheduler may go on with another warp. nvdisasm prints
    /// no operand reuse then.
    pub yield_bit: bool,
    /// Scoreboard that is released when the result arrives, 0 to 5 (6 exists in the encoding only).
    pub write_barrier: Option<u8>,
    /// Scoreboard that is released when the sources have been read, 0 to 5.
    pub read_barrier: Option<u8>,
    /// Scoreboards to wait for before issue, bit 0 for the first, six bits.
    pub wait_mask: u8,
    /// Source operands whose register the operand cache keeps, bit 0 for the first, four bits.
    pub reuse: u8,
}

/// A value that does not fit its place in the control field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} {value} does not fit the control field")]
pub struct ControlRange {
    /// The part of the field.
    pub field: &'static str,
    /// What was to be stored.
    pub value: u8,
}

impl Control {
    fn unpack(bits: u128) -> Self {
        let field = |at: u32, width: u32| (bits >> (SHIFT + at)) as u8 & ((1 << width) - 1);
        let barrier = |at| Some(field(at, 3)).filter(|&b| b != NO_BARRIER);
        Control {
            stall: field(0, 4),
            yield_bit: field(4, 1) != 0,
            write_barrier: barrier(5),
            read_barrier: barrier(8),
            wait_mask: field(11, 6),
            reuse: field(17, 4),
        }
    }

    fn pack(self) -> Result<u128, ControlRange> {
        let fits = |field, value: u8, limit: u8| {
            (value < limit)
                .then_some(u128::from(value))
                .ok_or(ControlRange { field, value })
        };
        let barrier = |field, barrier: Option<u8>| match barrier {
            None => Ok(u128::from(NO_BARRIER)),
            Some(b) => fits(field, b, NO_BARRIER),
        };
        Ok(fits("stall", self.stall, 16)?
            | u128::from(self.yield_bit) << 4
            | barrier("write barrier", self.write_barrier)? << 5
            | barrier("read barrier", self.read_barrier)? << 8
            | fits("wait mask", self.wait_mask, 64)? << 11
            | fits("reuse", self.reuse, 16)? << 17)
    }
}

impl Instruction {
    /// The control field.
    pub fn control(self) -> Control {
        Control::unpack(self.bits())
    }

    /// The same instruction with another control field.
    ///
    /// # Errors
    /// A value is too large for its place.
    pub fn with_control(self, control: Control) -> Result<Self, ControlRange> {
        let rest = self.bits() & !(MASK << SHIFT);
        Ok(self.with_bits(rest | control.pack()? << SHIFT))
    }
}

/// The fixed column of the text form: `B012345:R0:W1:Y:S04:U0123`, a hyphen for what is unset, `Y` where the
/// yield bit is clear.
impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |f: &mut fmt::Formatter<'_>, mask: u8, count: u8| {
            (0..count).try_for_each(|i| match mask >> i & 1 {
                0 => f.write_str("-"),
                _ => write!(f, "{i}"),
            })
        };
        let barrier = |f: &mut fmt::Formatter<'_>, name: &str, barrier: Option<u8>| match barrier {
            None => write!(f, ":{name}-"),
            Some(b) => write!(f, ":{name}{b}"),
        };
        f.write_str("B")?;
        set(f, self.wait_mask, SCOREBOARDS)?;
        barrier(f, "R", self.read_barrier)?;
        barrier(f, "W", self.write_barrier)?;
        f.write_str(if self.yield_bit { ":-" } else { ":Y" })?;
        write!(f, ":S{:02}:U", self.stall)?;
        set(f, self.reuse, 4)
    }
}

/// The text is no control column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a control column (it looks like B-1----:R-:W0:-:S04:U----)")]
pub struct ControlSyntax;

impl std::str::FromStr for Control {
    type Err = ControlSyntax;

    fn from_str(text: &str) -> Result<Self, ControlSyntax> {
        let parts: Vec<&str> = text.split(':').collect();
        let [waits, read, write, yields, stall, reuse] = parts[..] else {
            return Err(ControlSyntax);
        };
        let control = Control {
            stall: part(stall, "S")?.parse().map_err(|_| ControlSyntax)?,
            yield_bit: match yields {
                "Y" => false,
                "-" => true,
                _ => return Err(ControlSyntax),
            },
            write_barrier: parse_barrier(part(write, "W")?)?,
            read_barrier: parse_barrier(part(read, "R")?)?,
            wait_mask: parse_set(part(waits, "B")?, SCOREBOARDS)?,
            reuse: parse_set(part(reuse, "U")?, 4)?,
        };
        control.pack().map_err(|_| ControlSyntax)?;
        Ok(control)
    }
}

fn part<'a>(text: &'a str, name: &str) -> Result<&'a str, ControlSyntax> {
    text.strip_prefix(name).ok_or(ControlSyntax)
}

fn parse_barrier(text: &str) -> Result<Option<u8>, ControlSyntax> {
    match text.as_bytes() {
        b"-" => Ok(None),
        [digit @ b'0'..=b'6'] => Ok(Some(digit - b'0')),
        _ => Err(ControlSyntax),
    }
}

fn parse_set(text: &str, count: u8) -> Result<u8, ControlSyntax> {
    if text.len() != usize::from(count) {
        return Err(ControlSyntax);
    }
    let mut mask = 0;
    for (i, byte) in (0..count).zip(text.bytes()) {
        match byte {
            b'-' => {}
            digit if digit == b'0' + i => mask |= 1 << i,
            _ => return Err(ControlSyntax),
        }
    }
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives_set_and_get() {
        // All 2^21 values of the field over a word whose other bits are set.
        for value in 0..1u128 << 21 {
            let bits = !(MASK << SHIFT) | value << SHIFT;
            let inst = Instruction::new(90, bits);
            let control = inst.control();
            let blank = Instruction::new(90, !(MASK << SHIFT));
            assert_eq!(blank.with_control(control).map(Instruction::bits), Ok(bits));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let inst = Instruction::new(90, 0);
        let refused = |c: Control| inst.with_control(c).is_err();
        let control = Control::default();
        assert!(refused(Control {
            stall: 16,
            ..control
        }));
        assert!(refused(Control {
            wait_mask: 64,
            ..control
        }));
        assert!(refused(Control {
            reuse: 16,
            ..control
        }));
        assert!(refused(Control {
            read_barrier: Some(7),
            ..control
        }));
    }

    #[test]
    fn the_column_parses_back() {
        let control = Control {
            stall: 4,
            yield_bit: false,
            write_barrier: Some(0),
            read_barrier: None,
            wait_mask: 0b10_0010,
            reuse: 0b101,
        };
        let text = control.to_string();
        assert_eq!(text, "B-1---5:R-:W0:Y:S04:U0-2-");
        assert_eq!(text.parse(), Ok(control));
        for wrong in ["", "B-1---5:R-:W0:Y:S16:U0-2-", "B11---5:R-:W0:Y:S04:U0-2-"] {
            assert_eq!(wrong.parse::<Control>(), Err(ControlSyntax));
        }
    }
}
