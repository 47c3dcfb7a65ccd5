//! Which of a kernel's pointers an address was made from.

use std::collections::{BTreeSet, HashMap, HashSet};

use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Address, Base, Inst, Operand, Reg, Space, Symbol, View};

use super::location::Access;

/// Parameters, by name and offset.
type Parameters = HashSet<(Symbol, i64)>;

/// The pointers of a kernel by their parameters, as far as the text shows them.
pub(super) struct Pointers<'v> {
    view: &'v View<'v>,
    /// What sets registers of 64 bits.
    sets: HashMap<Reg, Vec<Inst>>,
}

impl<'v> Pointers<'v> {
    pub(super) fn new(view: &'v View<'v>) -> Pointers<'v> {
        let body = view.body();
        let mut sets: HashMap<Reg, Vec<Inst>> = HashMap::new();
        for inst in body.insts.keys() {
            for reg in view.defs(inst) {
                if body.reg_type(reg).bits() == 64 {
                    sets.entry(reg).or_default().push(inst);
                }
            }
        }
        Pointers { view, sets }
    }

    /// Do the loads go by other pointers than the stores, each of them by known ones?
    pub(super) fn are_apart(&self, accesses: &[Access]) -> bool {
        let place = |access: &Access| (access.base, access.offset);
        let of = |is_load: bool| {
            accesses
                .iter()
                .filter(move |access| access.is_load == is_load)
        };
        let stored: BTreeSet<(Reg, i64)> = of(false).map(place).collect();
        let loaded: BTreeSet<Reg> = of(true)
            .map(place)
            .filter(|place| !stored.contains(place))
            .map(|(base, _)| base)
            .collect();
        let stores: BTreeSet<Reg> = stored.iter().map(|(base, _)| *base).collect();
        let [stores, loads] = [stores, loaded].map(|bases| {
            let each = bases.into_iter().map(|base| self.pointers(base));
            each.collect::<Vec<Parameters>>()
        });
        let mut all = stores.iter().chain(&loads);
        all.all(|pointers| !pointers.is_empty())
            && stores
                .iter()
                .all(|store| loads.iter().all(|load| load.is_disjoint(store)))
    }

    /// The parameters that a register of 64 bits comes from: those whose space is named on the way, or else all.
    fn pointers(&self, base: Reg) -> Parameters {
        let body = self.view.body();
        let (mut seen, mut open) = (BTreeSet::from([base]), vec![(base, false)]);
        let (mut named, mut all) = (Parameters::new(), Parameters::new());
        while let Some((reg, is_named)) = open.pop() {
            for &inst in self.sets.get(&reg).into_iter().flatten() {
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
