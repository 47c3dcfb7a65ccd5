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
        true => {
            kept & !bits::DISTANCE
                .iter()
                .fold(0, |all, field| all | field.mask())
        }
        false => kept,
    }
}
