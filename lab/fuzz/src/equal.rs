//! Edits that change nothing: what nobody needs, and registers that hold the same.
//!
//! An edit of machine code is wrong only if something shows it. ptxas leaves results that nobody reads, and it copies
//! one value into many registers.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Block, Cfg, EntityRef as _, Function as _, Inst, Transfer, Value};
use warpwright_sass::function::{Code, value_of};
use warpwright_sass::roles::{File, Role, Span};

use crate::orders::{QUICK, Seen};

/// Which instructions do something that is seen, or write what such a one reads, perhaps through others.
pub(crate) fn needed(code: &Code, seen: &[Seen]) -> Vec<bool> {
    let cfg = Cfg::new(code);
    let mut needed = vec![false; code.inst_count()];
    let mut at_start: Vec<BTreeSet<Value>> = vec![BTreeSet::new(); cfg.block_count()];
    let mut work: BTreeSet<Block> = cfg.blocks().collect();
    while let Some(block) = work.pop_last() {
        let behind = cfg.succs(block).iter();
        let mut live: BTreeSet<Value> = behind.flat_map(|b| at_start[b.index()].clone()).collect();
        let all: Vec<Inst> = cfg.insts(block).collect();
        for &inst in all.iter().rev() {
            needed[inst.index()] = pass(code, &seen[inst.index()], inst, &mut live);
        }
        if live != at_start[block.index()] {
            at_start[block.index()] = live;
            work.extend(cfg.preds(block));
        }
    }
    needed
}

/// Goes back over an instruction; is it needed?
fn pass(code: &Code, seen: &Seen, inst: Inst, live: &mut BTreeSet<Value>) -> bool {
    let mut written = Vec::new();
    code.for_each_def(inst, |value| written.push(value));
    let is_event = seen.is(&["ATOM", "ATOMG", "ATOMS", "RED", "REDG"]);
    let is_needed = is_event
        || written.is_empty()
        || code.transfer(inst) != Transfer::Next
        || written.iter().any(|value| live.contains(value));
    if is_needed {
        if !code.is_predicated(inst) {
            written.iter().for_each(|value| _ = live.remove(value));
        }
        code.for_each_use(inst, |value| _ = live.insert(value));
    }
    is_needed
}

/// Numbers of what registers hold in a block: the same number, the same value.
#[derive(Default)]
pub(crate) struct Numbers {
    by_register: BTreeMap<Value, usize>,
    known: BTreeMap<(u128, Vec<usize>), usize>,
    next: usize,
}

impl Numbers {
    /// Do as many registers from `first` on hold the same as those from `other` on?
    pub(crate) fn are_same(&mut self, first: u16, other: u16, count: u16) -> bool {
        (0..count).all(|n| {
            let [a, b] = [first, other].map(|one| value_of(File::Gpr, one + n));
            a.map(|value| self.of(value)) == b.map(|value| self.of(value))
        })
    }

    fn new_number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn of(&mut self, value: Value) -> usize {
        if let Some(&known) = self.by_register.get(&value) {
            return known;
        }
        let number = self.new_number();
        *self.by_register.entry(value).or_insert(number)
    }

    /// Goes over an instruction.
    pub(crate) fn pass(&mut self, code: &Code, inst: Inst) {
        let spans = code.roles(inst).spans();
        let registers = |span: &Span| {
            let file = span.file;
            let all: Vec<Value> = span.registers().filter_map(|n| value_of(file, n)).collect();
            all
        };
        let of_role = |role: Role| spans.iter().filter(move |span| span.role == role);
        let read: Vec<Value> = of_role(Role::Use).flat_map(registers).collect();
        let read: Vec<usize> = read.into_iter().map(|value| self.of(value)).collect();
        let written: Vec<Value> = of_role(Role::Def).flat_map(registers).collect();
        let seen = Seen::new(code, inst);
        let is_alone = written.len() == 1 && !code.is_predicated(inst);
        let number = match &read[..] {
            _ if !is_alone || !seen.is_move && !seen.is(QUICK) => None,
            &[source] if seen.is_move => Some(source),
            _ => {
                let key = (shape(code, inst), read.clone());
                let new = self.next + 1;
                let number = *self.known.entry(key).or_insert(new);
                self.next = self.next.max(number);
                Some(number)
            }
        };
        for value in written {
            let number = number.unwrap_or_else(|| self.new_number());
            self.by_register.insert(value, number);
        }
    }
}

/// The instruction without its registers and its control field.
fn shape(code: &Code, inst: Inst) -> u128 {
    const BELOW_CONTROL: u128 = (1 << 105) - 1;
    let bits = code.instructions()[inst.index()].bits() & BELOW_CONTROL;
    code.roles(inst).spans().iter().fold(bits, |bits, span| {
        let width = match span.file {
            File::Gpr => 8,
            File::Uniform => 6,
            File::Pred | File::UniformPred => 3,
            File::Barrier => 4,
        };
        bits & !(((1 << width) - 1) << span.bit)
    })
}
