//! Names for places in the code that both versions share, however the code around them moved: the
//! instruction that stands there without its registers, and which of those that look the same it is.

use std::cell::OnceCell;
use std::collections::HashMap;

use warpwright_sass::Instruction;
use warpwright_sass::roles::Table;

use super::bits;

pub(super) struct Places<'c> {
    insts: &'c [Instruction],
    table: &'static Table,
    names: OnceCell<Vec<(u128, u32)>>,
}

impl<'c> Places<'c> {
    pub(super) fn new(insts: &'c [Instruction], table: &'static Table) -> Places<'c> {
        Places {
            insts,
            table,
            names: OnceCell::new(),
        }
    }

    /// A name for what stands at this offset in bytes.
    pub(super) fn name(&self, offset: u64) -> String {
        let at = usize::try_from(offset / 16)
            .ok()
            .filter(|_| offset.is_multiple_of(16));
        let names = self.names.get_or_init(|| self.find_names());
        match at.and_then(|at| names.get(at)) {
            Some((shape, nth)) => format!("{shape:x} {nth}"),
            None if at == Some(self.insts.len()) => "the end".to_owned(),
            None => format!("byte {offset}"),
        }
    }

    /// A name for what stands right behind a control instruction, which is there however many equal
    /// instructions came or went: which one of how many.
    pub(super) fn behind_control(&self, offset: u64) -> Option<String> {
        let at = usize::try_from(offset / 16).ok()?;
        let before = self.insts.get(..at)?;
        let last = before.last().filter(|_| offset.is_multiple_of(16))?;
        let count = |insts: &[Instruction]| insts.iter().filter(|&&i| bits::is_control(i)).count();
        let (number, all) = (count(before), count(self.insts));
        bits::is_control(*last).then(|| format!("behind control instruction {number} of {all}"))
    }

    fn find_names(&self) -> Vec<(u128, u32)> {
        let mut seen: HashMap<u128, u32> = HashMap::new();
        let shapes = self.insts.iter().map(|&inst| shape(inst, self.table));
        shapes
            .map(|shape| {
                let nth = seen.entry(shape).or_default();
                *nth += 1;
                (shape, *nth)
            })
            .collect()
    }
}

/// The bits of an instruction that are no registers, no scheduling and no distances.
pub(super) fn shape(inst: Instruction, table: &Table) -> u128 {
    let mut kept = inst.bits() & !(bits::CONTROL.mask() | bits::GUARD.mask());
    for span in table.roles(inst).unwrap_or_default().spans() {
        let field = table.field((*span).into());
        kept &= !(((1u128 << field.1) - 1) << field.0);
    }
    match bits::is_control(inst) {
        true => kept & !bits::distance_bits(inst),
        false => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRANCH: u128 = 0x947;
    const NOTHING: u128 = 0x918;

    /// The names of the place behind the branch.
    fn names(before: usize, branches: usize) -> (String, Option<String>) {
        let table = Table::for_sm(90).expect("a table of sm_90");
        let mut bits = vec![NOTHING; before];
        bits.extend(vec![BRANCH; branches]);
        bits.push(NOTHING);
        let insts: Vec<_> = bits
            .into_iter()
            .map(|bits| Instruction::new(90, bits))
            .collect();
        let places = Places::new(&insts, table);
        let at = 16 * (before + branches) as u64;
        (places.name(at), places.behind_control(at))
    }

    #[test]
    fn equal_instructions_before_a_function_do_not_move_it() {
        let ((name, behind), (moved, still)) = (names(2, 1), names(3, 1));
        assert_ne!(name, moved);
        assert!(behind.is_some());
        assert_eq!(behind, still);
        assert_ne!(behind, names(2, 2).1, "another branch came");
        assert_eq!(names(2, 0).1, None);
    }
}
