//! Video instructions.

use warpwright_ptx::Type;
use warpwright_ptx::ir::Operand;

use super::operands::{Decoder, part_bits};
use super::words::{Reason, Words};
use crate::arith::compare::Compare;
use crate::arith::video::{Mad, Operation, Scalar, Second, Select, Simd};
use crate::lanes::variadic;

impl Decoder<'_> {
    pub(super) fn video(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        let lanes = match words.name.as_bytes().last() {
            Some(b'2') => 2,
            Some(b'4') => 4,
            _ => 1,
        };
        let base = words.name.trim_end_matches(['2', '4']);
        if base == "vmad" {
            return self.video_mad(words, operands);
        }
        let is_set = base == "vset";
        // `vset` has no destination type: `.min` and `.max` compare as the first operand is signed.
        let first = signed(words.ty()?)?;
        let a_signed = if is_set { first } else { signed(words.ty()?)? };
        let (d_signed, b_signed) = (first, signed(words.ty()?)?);
        let sat = words.take("sat");
        let wrap = words.take("wrap");
        words.take("clamp");
        let operation = match base {
            "vadd" => Operation::Add,
            "vsub" => Operation::Sub,
            "vabsdiff" => Operation::AbsDiff,
            "vmin" => Operation::Min,
            "vmax" => Operation::Max,
            "vavrg" => Operation::Average,
            "vshl" => Operation::Shl { wrap },
            "vshr" => Operation::Shr { wrap },
            _ => Operation::Set(
                words
                    .find(Compare::parse)
                    .ok_or("a comparison of this name")?,
            ),
        };
        if lanes > 1 {
            // Selections of bytes from two registers need a form of operand of their own.
            if operands
                .iter()
                .any(|o| matches!(o, Operand::Select { .. } | Operand::Unresolved))
            {
                return Err("a selection of lanes".into());
            }
            let order = |first: u8| [first, first + 1, first + 2, first + 3];
            let simd = Simd {
                operation,
                lanes,
                d_signed,
                a: (order(0), a_signed),
                b: (order(lanes as u8), b_signed),
                sat,
                mask: 0b1111,
                accumulate: words.take("add"),
            };
            let f = variadic(move |x| simd.apply(x[0] as u32, x[1] as u32, x[2] as u32) as u64);
            return self.pure(operands, Type::B32, f);
        }
        let [d, a, b, rest @ ..] = operands else {
            return Err("too few operands".into());
        };
        let (a, a_part, _) = part(a)?;
        let (b, b_part, _) = part(b)?;
        let second = match (words.next(), d) {
            (Some("add"), _) => Second::Add,
            (Some("min"), _) => Second::Min,
            (Some("max"), _) => Second::Max,
            (None, Operand::Select { .. }) => Second::Merge(part(d)?.1),
            (None, _) => Second::None,
            (Some(other), _) => return Err(format!("a secondary operation .{other}")),
        };
        let (d, ..) = part(d)?;
        let scalar = Scalar {
            operation,
            d_signed,
            a: (a_part, a_signed),
            b: (b_part, b_signed),
            sat,
            second,
        };
        let mut sources = vec![a, b];
        sources.extend(rest.iter().copied());
        let srcs = self.srcs(&sources, Type::B32)?;
        let f = variadic(move |x| scalar.apply(x[0] as u32, x[1] as u32, x[2] as u32) as u64);
        self.alu(&d, srcs, f)
    }

    fn video_mad(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        signed(words.ty()?)?;
        let (a_signed, b_signed) = (signed(words.ty()?)?, signed(words.ty()?)?);
        let [d, a, b, c] = operands else {
            return Err("too few operands".into());
        };
        let (a, a_part, a_neg) = part(a)?;
        let (b, b_part, b_neg) = part(b)?;
        let (c, _, c_neg) = part(c)?;
        let mad = Mad {
            a: (a_part, a_signed),
            b: (b_part, b_signed),
            negate_product: a_neg != b_neg,
            negate_c: c_neg,
            plus_one: words.take("po"),
            sat: words.take("sat"),
            scale: match (words.take("shr7"), words.take("shr15")) {
                (true, _) => 7,
                (_, true) => 15,
                _ => 0,
            },
        };
        let srcs = self.srcs(&[a, b, c], Type::B32)?;
        let f = variadic(move |x| mad.apply(x[0] as u32, x[1] as u32, x[2] as u32) as u64);
        self.alu(d, srcs, f)
    }
}

fn signed(ty: Type) -> Result<bool, Reason> {
    match ty {
        Type::S32 => Ok(true),
        Type::U32 => Ok(false),
        _ => Err(format!("type {ty}")),
    }
}

/// The register of an operand, its part and whether it is negated.
fn part(operand: &Operand) -> Result<(Operand, Select, bool), Reason> {
    match *operand {
        Operand::Select { reg, part, negated } => {
            let (at, bits) = part_bits(part).ok_or("a vector register")?;
            Ok((Operand::Reg(reg), Select { at, bits }, negated))
        }
        Operand::Neg(reg) => Ok((Operand::Reg(reg), Select::WORD, true)),
        other => Ok((other, Select::WORD, false)),
    }
}
