//! Which of a kernel's pointers an address was made from.

use std::collections::{BTreeSet, HashSet};

use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Address, Base, Inst, Operand, Reg, Space, Symbol, View};

use super::location::Access;

/// Parameters, by name and offset.
type Parameters = HashSet<(Symbol, i64)>;

/// The pointers of a kernel by their parameters, as far as the text shows them.
pub(super) struct Pointers<'v> {
    view: &'v View<'v>,
}

impl<'v> Pointers<'v> {
    pub(super) fn new(view: &'v View<'v>) -> Pointers<'v> {
        Pointers { view }
    }

    /// Do the loads go by other pointers than the stores, each of them by known ones?
    pub(super) fn are_apart(&self, accesses: &[Access]) -> bool {
        let place = |access: &Access| (access.base, access.offset);
        let stored: BTreeSet<(Reg, i64)> = accesses
            .iter()
            .filter(|access| !access.is_load)
            .map(place)
            .collect();
        let loads = accesses
            .iter()
            .map(place)
            .filter(|place| !stored.contains(place));
        let loads: Vec<Parameters> = loads.map(|(base, _)| self.pointers(base)).collect();
        stored.iter().all(|(base, _)| {
            let store = self.pointers(*base);
            let is_apart = |load: &Parameters| !load.is_empty() && load.is_disjoint(&store);
            !store.is_empty() && loads.iter().all(is_apart)
        })
    }

    /// The parameters that a register of 64 bits comes from: those whose space is named on the way, or else all.
    fn pointers(&self, base: Reg) -> Parameters {
        let body = self.view.body();
        let (mut seen, mut open) = (BTreeSet::from([base]), vec![(base, false)]);
        let (mut named, mut all) = (Parameters::new(), Parameters::new());
        while let Some((reg, is_named)) = open.pop() {
            for inst in body
                .insts
                .keys()
                .filter(|&inst| self.view.defs(inst).contains(&reg))
            {
                if let Some(parameter) = self.parameter(inst) {
                    if is_named {
                        named.insert(parameter);
                    }
                    all.insert(parameter);
                }
                let opcode = self.view.module().opcode(&body.insts[inst]);
                let is_named = is_named || opcode.op == Some(Op::Cvta);
                let wide = self.view.uses(inst).into_iter();
                let wide = wide.filter(|&reg| body.reg_type(reg).bits() == 64);
                open.extend(
                    wide.filter(|&reg| seen.insert(reg))
                        .map(|reg| (reg, is_named)),
                );
            }
        }
        if named.is_empty() { all } else { named }
    }

    /// The parameter that an instruction loads.
    fn parameter(&self, inst: Inst) -> Option<(Symbol, i64)> {
        let body = self.view.body();
        let opcode = self.view.module().opcode(&body.insts[inst]);
        if opcode.op != Some(Op::Ld) || !matches!(opcode.space, Some(Space::Param)) {
            return None;
        }
        match body.operands(inst) {
            &[
                _,
                Operand::Mem(Address {
                    base: Base::Symbol(symbol),
                    offset,
                    ..
                }),
            ] => Some((symbol, offset)),
            _ => None,
        }
    }
}
