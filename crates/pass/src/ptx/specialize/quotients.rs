//! Divisions by constants as products.
//!
//! ptxas (13.0, 13.5) expands a division by a constant as it does one by a register: 17 instructions for 32 bits, a call
//! for 64. Compilers that know the divisor multiply instead (Granlund and Montgomery, PLDI 1994): with
//! `factor = ceil(2^p / d)`, `a·factor / 2^p` is the quotient as long as `a·(factor·d - 2^p) < 2^p`, so a bound on `a` may
//! spare what it takes to hold for all numbers. Where there is none, `(a + 1)·floor(2^p / d) / 2^p` serves (Robison, ARITH
//! 2005).
//!
//! Requires a dividend without sign, or one that its index ranges keep positive; of 64 bits, below 2^32. Ranges are those
//! of registers with one definition, so that whoever checks can follow them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use warpwright_launch::Guard;
use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Edits, Inst, Operand, Reg, Type, View};

use super::guard_text;
use super::ranges::{Range, Rules, bits_of};
use crate::pass::Fuel;
use crate::ptx::facts::view;
use crate::refusal::Refusal;
use crate::site::Site;

/// Definitions behind each other that are followed.
const DEPTH: u32 = 16;

/// The kernel with products in the place of divisions, and how many they are.
pub(super) fn write(
    site: &Site,
    guard: &Guard,
    fuel: &mut Fuel,
) -> Result<(String, usize), Refusal> {
    let view = view(site.module, site.kernel)?;
    let values = Values::new(&view, guard);
    let mut edits = Edits::new(site.module);
    let mut changed = 0;
    for index in 0..view.body().insts.len() as u32 {
        let inst = Inst::from_u32(index);
        let Some(division) = Division::of(&values, inst) else {
            continue;
        };
        let names = ["%dq", "%dq", "%dq"].map(|prefix| edits.fresh_name(prefix));
        let Some(lines) = division.lines(&names).filter(|_| fuel.burn()) else {
            continue;
        };
        let types = [Type::B64, Type::B64, Type::B32];
        for (name, ty) in names.iter().zip(types) {
            if lines.iter().any(|line| line.contains(name.as_str())) {
                edits.add_register(site.kernel, ty, name)?;
            }
        }
        edits.replace_by_lines(site.kernel, inst, &lines);
        changed += 1;
    }
    Ok((edits.apply()?, changed))
}

/// Registers with one definition, and where their numbers lie.
struct Values<'a> {
    rules: Rules<'a>,
    /// The only definition of a register that is executed whatever a predicate says.
    definitions: BTreeMap<Reg, Option<Inst>>,
    known: RefCell<BTreeMap<Reg, Option<Range>>>,
}

impl<'a> Values<'a> {
    fn new(view: &'a View<'a>, guard: &'a Guard) -> Self {
        let mut definitions = BTreeMap::new();
        for index in 0..view.body().insts.len() as u32 {
            let inst = Inst::from_u32(index);
            let is_certain = view.body().insts[inst].guard.is_none();
            for reg in view.defs(inst) {
                let only = definitions.entry(reg).or_insert(Some(inst));
                *only = only.filter(|only| is_certain && *only == inst);
            }
        }
        Values {
            rules: Rules { view, guard },
            definitions,
            known: RefCell::default(),
        }
    }

    fn range(&self, reg: Reg, depth: u32) -> Option<Range> {
        if let Some(&known) = self.known.borrow().get(&reg) {
            return known;
        }
        let inst = self.definitions.get(&reg).copied().flatten()?;
        let depth = depth.checked_sub(1)?;
        let read = |of: Reg| self.range(of, depth);
        let view = self.rules.view;
        let operands = view.body().operands(inst);
        let is_first = matches!(operands.first(), Some(Operand::Reg(first)) if *first == reg);
        let is_followed = match view.module().opcode(&view.body().insts[inst]).op? {
            Op::Min | Op::Max | Op::Setp => false,
            Op::Div | Op::Rem => self.constant(operands.get(2)?).is_some(),
            _ => is_first,
        };
        let range = is_followed
            .then(|| self.rules.result(inst, &read))
            .flatten();
        self.known.borrow_mut().insert(reg, range);
        range
    }

    /// The constant that an operand is: a number, or a register that always holds one.
    fn constant(&self, operand: &Operand) -> Option<u64> {
        let ty = match operand {
            Operand::Reg(reg) => self.rules.view.body().reg_type(*reg),
            Operand::Imm(_) => Type::U64,
            _ => return None,
        };
        let read = |reg: Reg| self.range(reg, DEPTH);
        let (low, high) = self.rules.operand(operand, ty, &read)?;
        (low == high).then_some(low)
    }
}

/// A division by a constant, or its remainder.
struct Division {
    /// `@p ` before it, if it has a guard.
    prefix: String,
    /// The register of the result, and of what is divided.
    to: String,
    of: String,
    bits: u32,
    is_remainder: bool,
    by: u64,
    /// No dividend is larger.
    most: u64,
}

impl Division {
    fn of(values: &Values<'_>, inst: Inst) -> Option<Division> {
        let view = values.rules.view;
        let body = view.body();
        let opcode = view.module().opcode(&body.insts[inst]);
        let [Operand::Reg(to), Operand::Reg(of), by] = body.operands(inst) else {
            return None;
        };
        let ty = *opcode
            .types
            .first()
            .filter(|_| opcode.mods().count() == 1)?;
        let bits = bits_of(ty).filter(|bits| matches!(bits, 32 | 64))?;
        let fits = |reg: Reg| bits_of(body.reg_type(reg)) == Some(bits);
        let by = values
            .constant(by)
            .filter(|&by| by > 1 && fits(*to) && fits(*of))?;
        let most = values.range(*of, DEPTH).map(|range| range.1);
        let any = match ty {
            Type::U32 => Some(u64::from(u32::MAX)),
            Type::U64 if by.is_power_of_two() => Some(u64::MAX),
            _ => None,
        };
        Some(Division {
            prefix: guard_text(view, inst),
            to: body.reg_name(*to).to_string(),
            of: body.reg_name(*of).to_string(),
            bits,
            is_remainder: match opcode.op? {
                Op::Div => false,
                Op::Rem => true,
                _ => return None,
            },
            by,
            most: most.or(any)?,
        })
    }

    /// The instructions in its place, with two new registers of 64 bits and one of 32.
    fn lines(&self, [product, shifted, low]: &[String; 3]) -> Option<Vec<String>> {
        let Division {
            prefix,
            to,
            of,
            bits,
            by,
            ..
        } = self;
        if self.most < *by {
            return Some(vec![match self.is_remainder {
                true => format!("{prefix}mov.b{bits} {to}, {of};"),
                false => format!("{prefix}mov.b{bits} {to}, 0;"),
            }]);
        }
        if by.is_power_of_two() {
            return Some(vec![match self.is_remainder {
                true => format!("{prefix}and.b{bits} {to}, {of}, {};", by - 1),
                false => format!("{prefix}shr.u{bits} {to}, {of}, {};", by.trailing_zeros()),
            }]);
        }
        let Scaled {
            factor,
            plus,
            shift,
        } = Scaled::of(*by, self.most)?;
        let mut lines = Vec::new();
        let word = match bits {
            32 => of,
            _ => {
                lines.push(format!("cvt.u32.u64 {low}, {of};"));
                low
            }
        };
        lines.push(match plus {
            0 => format!("mul.wide.u32 {product}, {word}, {factor};"),
            _ => format!("mad.wide.u32 {product}, {word}, {factor}, {plus};"),
        });
        lines.push(format!("shr.u64 {shifted}, {product}, {shift};"));
        let negative = -i64::try_from(*by).ok()?;
        if *bits == 32 && self.is_remainder {
            lines.push(format!("cvt.u32.u64 {low}, {shifted};"));
        }
        lines.push(match (bits, self.is_remainder) {
            (32, false) => format!("{prefix}cvt.u32.u64 {to}, {shifted};"),
            (32, true) => format!("{prefix}mad.lo.s32 {to}, {low}, {negative}, {of};"),
            (_, false) => format!("{prefix}mov.b64 {to}, {shifted};"),
            (_, true) => format!("{prefix}mad.lo.s64 {to}, {shifted}, {negative}, {of};"),
        });
        Some(lines)
    }
}

/// `(a·factor + plus) >> shift`
struct Scaled {
    factor: u64,
    plus: u64,
    shift: u32,
}

impl Scaled {
    /// What is a / d for all numbers up to `most`, of 32 bits.
    fn of(d: u64, most: u64) -> Option<Scaled> {
        let fits = |number: u64| number <= u64::from(u32::MAX);
        if !fits(most) {
            return None;
        }
        let (d, most) = (u128::from(d), u128::from(most));
        for shift in 32..64 {
            let scale = 1u128 << shift;
            let factor = scale.div_ceil(d);
            let is_exact = most * (factor * d - scale) < scale;
            if let (Ok(factor), true) = (u64::try_from(factor), is_exact)
                && fits(factor)
            {
                return Some(Scaled {
                    factor,
                    plus: 0,
                    shift,
                });
            }
        }
        let shift = 32 + d.ilog2();
        let factor = u64::try_from((1u128 << shift) / d).ok()?;
        fits(factor).then_some(Scaled {
            factor,
            plus: factor,
            shift,
        })
    }
}
