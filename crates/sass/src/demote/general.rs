//! The general registers of a code section as webs, with what operands ask of them.
//!
//! A value is a web (Chaitin et al. 1981): definitions and uses that must share a register. Tuples (pairs of
//! addresses and doubles, fours of 128-bit accesses) lie in consecutive registers, the first at a multiple of
//! their size; what is read and written through one field lies in one register. R1 is one value that is there
//! from the entry to the end, whatever the kernel does with it: as a stack pointer, or as the thread's index that other
//! passes left there.

use std::collections::BTreeMap;

use warpwright_flow::{
    Cfg, Class, ClassInfo, DefUse, EntityRef, Function, Inst, Liveness, Repetition, Stale,
    Transfer, Value, Webs,
};

use crate::function::{Code, register_of, value_of};
use crate::isa::decode;
use crate::operation::Operation;
use crate::roles::{File, Role, Span, is_usual};
use crate::schedule::graph::is_pure;
use crate::spill::word;
use warpwright_target::Unit;

/// Why the registers of a function stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// An instruction whose registers are not known.
    #[error("instruction {at} is not known")]
    Opaque {
        /// Index of the instruction.
        at: usize,
    },
    /// An instruction whose registers are known from few sightings: a sibling's may differ.
    #[error("what {name} (instruction {at}) reads and writes was seen too rarely to be relied on")]
    Rare {
        /// Index of the instruction.
        at: usize,
        /// Its mnemonic.
        name: &'static str,
    },
    /// Code that is not seen uses registers by a convention.
    #[error("it calls functions that cannot be seen, or is called by them")]
    Calls,
    /// The instruction goes on reading its registers when it is over, or changes how many there are.
    #[error("{name} (instruction {at}) works on registers beyond its own end")]
    Asynchronous {
        /// Index of the instruction.
        at: usize,
        /// Its mnemonic.
        name: &'static str,
    },
    /// R1 is written beside another register, by an instruction that is not the set-up of a stack.
    #[error("instruction {at} writes R1 and more")]
    Stack {
        /// Index of the instruction.
        at: usize,
    },
}

/// What becomes of the contents of registers that nobody has written, where guarded instructions write them first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unset {
    /// They are kept from the entry on, as if somebody read them. That can be proved more often.
    Kept,
    /// Others may use the registers until then.
    Dropped,
}

/// Operations that work on registers while later instructions run, or that give registers away.
const BEYOND: [&str; 8] = [
    "BGMMA",
    "HGMMA",
    "IGMMA",
    "QGMMA",
    "UTCHMMA",
    "USETMAXREG",
    "LDTM",
    "STTM",
];

/// The stack pointer's register.
pub(crate) const STACK: u16 = 1;

/// The registers that one instruction reads and writes, in the order of its operands.
#[derive(Debug, Clone, Default)]
struct Words {
    uses: Vec<Value>,
    defs: Vec<Value>,
    tuples: Vec<(Vec<Value>, u32)>,
    tied: Vec<(Value, Value)>,
}

/// The general registers of a code section.
pub struct General<'c> {
    code: &'c Code,
    words: Vec<Words>,
    /// The register of each value; value 0 is R1.
    registers: Vec<u16>,
    stack_load: Option<usize>,
    uses_stack: bool,
    /// Values in registers of a convention, by value.
    given: Vec<bool>,
    /// Guarded instructions whose results nobody wrote before: what is there if the guard is false is nobody's.
    begins: Vec<bool>,
    cfg: Cfg,
    /// Where a register that is no general one may hold something else than an instruction read.
    stale: Stale,
}

impl<'c> General<'c> {
    /// Those of `code`.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn new(code: &'c Code, unset: Unset) -> Result<General<'c>, Refusal> {
        refuse(code)?;
        let cfg = Cfg::new(code);
        let begins = match unset {
            Unset::Kept => vec![false; code.inst_count()],
            Unset::Dropped => begins(code, &cfg),
        };
        let seen = Beginning {
            code,
            begins: &begins,
        };
        let liveness = Liveness::new(&seen, &cfg);
        let def_use = DefUse::new(&seen, &liveness);
        let webs = Webs::new(&seen, &cfg, &liveness, &def_use);
        let mut values: BTreeMap<u32, Value> = BTreeMap::new();
        let mut registers = vec![STACK];
        let mut general = |value: Value, web: Option<warpwright_flow::Web>| -> Option<Value> {
            let (File::Gpr, number) = register_of(value)? else {
                return None;
            };
            if number == STACK {
                return Some(Value(0));
            }
            let web = web?;
            Some(*values.entry(web.0).or_insert_with(|| {
                registers.push(number);
                Value::new(registers.len() - 1)
            }))
        };
        let mut words = Vec::with_capacity(code.inst_count());
        let (mut stack_load, mut uses_stack) = (None, false);
        let mut given = vec![Value(0)];
        for at in 0..code.inst_count() {
            let inst = Inst(at as u32);
            let mut own = Words::default();
            code.for_each_use(inst, |value| {
                let web = webs.before(&cfg, &liveness, inst, value);
                own.uses.extend(general(value, web));
            });
            code.for_each_def(inst, |value| {
                own.defs.extend(general(value, webs.of_def(inst, value)));
            });
            if code.transfer(inst) == Transfer::Trap {
                let named = operands(code, inst).filter(|o| o.span.role == Role::Use);
                let named: usize = named.map(|operand| usize::from(operand.span.count)).sum();
                given.extend(own.uses.iter().skip(named));
                uses_stack = true;
            }
            for operand in operands(code, inst) {
                let list = operand.values(&own.uses, &own.defs);
                uses_stack |=
                    list.contains(&Value(0)) && !word::is_stack_load(code.instructions()[at]);
                if operand.span.count > 1 {
                    own.tuples.push((list.to_vec(), alignment(operand.span)));
                }
                let twin = operands(code, inst).find(|other| {
                    other.span.bit == operand.span.bit && other.span.role != operand.span.role
                });
                if let (Role::Def, Some(twin)) = (operand.span.role, twin) {
                    let read = twin.values(&own.uses, &own.defs).to_vec();
                    own.tied.extend(list.iter().copied().zip(read));
                }
            }
            if own.defs.contains(&Value(0)) {
                if own.defs.len() > 1 {
                    return Err(Refusal::Stack { at });
                }
                match word::is_stack_load(code.instructions()[at]) {
                    true if stack_load.is_none() => stack_load = Some(at),
                    _ => uses_stack = true,
                }
                own.defs.clear();
            }
            words.push(own);
        }
        let mut is_given = vec![false; registers.len()];
        given
            .iter()
            .for_each(|value| is_given[value.index()] = true);
        Ok(General {
            code,
            words,
            registers,
            stack_load,
            uses_stack,
            given: is_given,
            begins,
            cfg,
            stale: Stale::default(),
        })
    }

    /// The instruction that loads the stack pointer into R1, if nothing else uses R1: it may hold something
    /// else then.
    pub fn idle_stack(&self) -> Option<usize> {
        self.stack_load.filter(|_| !self.uses_stack)
    }

    /// Can the instruction be executed once more anywhere, to give the same? It reads nothing that changes:
    /// immediates, the parameters' constant bank, the thread's and the block's index.
    pub fn is_computable(&self, inst: Inst) -> bool {
        let word = self.code.instructions()[inst.index()];
        let reads_nothing = self.code.roles(inst).uses().next().is_none();
        let is_immediate = word
            .loaded_constant()
            .is_some_and(|n| !self.is_return_address(n));
        let is_same = is_immediate || word::is_constant_move(word) || word::is_index(word);
        reads_nothing && !word.is_predicated() && is_same
    }

    fn is_return_address(&self, constant: u32) -> bool {
        let call = (constant as usize / 16).checked_sub(1);
        let call = call.and_then(|call| self.code.instructions().get(call));
        constant.is_multiple_of(16) && call.is_some_and(|call| call.is_call())
    }

    /// Must no load move over it? Control instructions: a thread may wait there, or come there from elsewhere.
    pub fn is_fence(&self, inst: Inst) -> bool {
        let word = self.code.instructions()[inst.index()];
        word.unit() == Unit::Control
    }

    /// Does a register that is no general one hold before `place` what `reader` read?
    fn is_same(&self, register: Value, reader: Inst, place: Inst) -> bool {
        let defs = || {
            let insts = (0..self.code.inst_count()).map(Inst::new);
            insts.filter(|&inst| {
                let mut writes = false;
                let mut visit = |value| writes |= value == register;
                self.code.for_each_def(inst, &mut visit);
                writes
            })
        };
        self.stale
            .is_same(&self.cfg, (register, reader), place, defs)
    }

    /// Does the kernel itself carry a uniform register to `place` from where threads may part or meet, or write it on
    /// the way from there? Others of the warp may have it in between, as far as anybody knows.
    fn is_carried(&self, register: Value, place: Inst) -> bool {
        let block = self.cfg.block_of(place);
        let is_wall = |inst: &Inst| {
            let word = self.code.instructions()[inst.index()];
            let unit = word.unit();
            unit == Unit::Control || unit == Unit::Alu && !is_pure(word)
        };
        let touches = |inst: Inst| {
            let mut found = (false, false);
            self.code
                .for_each_use(inst, |value| found.0 |= value == register);
            self.code
                .for_each_def(inst, |value| found.1 |= value == register);
            found
        };
        let above = (self.cfg.first_inst(block).0..place.0).rev().map(Inst);
        let mut above = above.take_while(|inst| !is_wall(inst)).map(touches);
        let below = (place.0..=self.cfg.last_inst(block).0).map(Inst);
        // What ends the piece still reads in it.
        let mut ended = false;
        let below = below.take_while(|inst| !std::mem::replace(&mut ended, is_wall(inst)));
        let mut below = below.map(touches);
        above.any(|(read, written)| read || written)
            || below
                .find(|&(read, written)| read || written)
                .is_some_and(|found| found.0)
    }

    /// The values of an operand of an instruction, one for each of its registers; none where it writes R1, or is no
    /// general register.
    pub fn values(&self, inst: Inst, span: Span) -> &[Value] {
        let Words { uses, defs, .. } = &self.words[inst.index()];
        let operand = self.operands(inst).find(|operand| operand.span == span);
        operand.map_or(&[], |operand| operand.values(uses, defs))
    }

    /// The operands of an instruction that are general registers.
    pub fn operands(&self, inst: Inst) -> impl Iterator<Item = Operands> + '_ {
        operands(self.code, inst)
    }
}

fn refuse(code: &Code) -> Result<(), Refusal> {
    if let Some(inst) = code.opaque().first() {
        return Err(Refusal::Opaque { at: inst.index() });
    }
    if code.has_unknown_calls() {
        return Err(Refusal::Calls);
    }
    for at in 0..code.inst_count() {
        let name = || decode(code.instructions()[at]).mnemonic();
        if code.instructions()[at].operation() == Operation::NOP {
            continue;
        }
        if BEYOND.contains(&name()) {
            return Err(Refusal::Asynchronous { at, name: name() });
        }
        if code.roles(Inst(at as u32)).is_rare() && !is_usual(code.instructions()[at]) {
            return Err(Refusal::Rare { at, name: name() });
        }
    }
    Ok(())
}

/// What the first register of a tuple is a multiple of, as far as it is one.
fn alignment(span: Span) -> u32 {
    let wanted = u32::from(span.count).next_power_of_two().min(4);
    match u32::from(span.first) {
        0 => wanted,
        first => wanted.min(1 << first.trailing_zeros()),
    }
}

/// An operand of general registers, and where its values stand among what the instruction reads or writes.
#[derive(Debug, Clone, Copy)]
pub struct Operands {
    /// The operand.
    pub span: Span,
    first: usize,
}

impl Operands {
    /// The values of the operand, given those of the instruction in the same order.
    pub fn values<'v>(&self, uses: &'v [Value], defs: &'v [Value]) -> &'v [Value] {
        let all = match self.span.role {
            Role::Use => uses,
            Role::Def => defs,
        };
        all.get(self.first..self.first + usize::from(self.span.count))
            .unwrap_or_default()
    }
}

fn operands(code: &Code, inst: Inst) -> impl Iterator<Item = Operands> + '_ {
    let mut seen = [0, 0];
    let spans = code.roles(inst).spans().iter().copied();
    spans
        .filter(|span| span.file == File::Gpr)
        .map(move |span| {
            let seen = &mut seen[usize::from(span.role == Role::Def)];
            let first = *seen;
            *seen += usize::from(span.count);
            Operands { span, first }
        })
}

/// The guarded instructions that write general registers of which none was written on any way to them. The guard
/// lets them keep what was there; but that is nobody's value.
fn begins(code: &Code, cfg: &Cfg) -> Vec<bool> {
    let general = |inst: Inst| {
        let defs = code
            .roles(inst)
            .defs()
            .filter(|span| span.file == File::Gpr);
        defs.fold([0u64; 4], |mut all, span| {
            for number in span.registers() {
                all[usize::from(number / 64)] |= 1 << (number % 64);
            }
            all
        })
    };
    let mut at_start = vec![[0u64; 4]; cfg.block_count()];
    let mut begins = vec![false; code.inst_count()];
    let mut changed = true;
    while changed {
        changed = false;
        for &block in cfg.reverse_postorder() {
            let mut written = at_start[block.index()];
            for inst in cfg.insts(block) {
                let own = general(inst);
                let is_new = own
                    .iter()
                    .zip(written)
                    .all(|(own, written)| own & written == 0);
                let writes = own != [0; 4];
                begins[inst.index()] = writes
                    && is_new
                    && code.is_predicated(inst)
                    && code.transfer(inst) == Transfer::Next;
                for (written, own) in written.iter_mut().zip(own) {
                    *written |= own;
                }
            }
            for &next in cfg.succs(block) {
                let old = at_start[next.index()];
                for (known, written) in at_start[next.index()].iter_mut().zip(written) {
                    *known |= written;
                }
                changed |= at_start[next.index()] != old;
            }
        }
    }
    begins
}

/// The code with unguarded beginnings.
struct Beginning<'c> {
    code: &'c Code,
    begins: &'c [bool],
}

impl Function for Beginning<'_> {
    fn inst_count(&self) -> usize {
        self.code.inst_count()
    }

    fn value_count(&self) -> usize {
        self.code.value_count()
    }

    fn classes(&self) -> &[ClassInfo] {
        self.code.classes()
    }

    fn class(&self, value: Value) -> Class {
        self.code.class(value)
    }

    fn for_each_use(&self, inst: Inst, visit: impl FnMut(Value)) {
        self.code.for_each_use(inst, visit);
    }

    fn for_each_def(&self, inst: Inst, visit: impl FnMut(Value)) {
        self.code.for_each_def(inst, visit);
    }

    fn is_predicated(&self, inst: Inst) -> bool {
        self.code.is_predicated(inst) && !self.begins[inst.index()]
    }

    fn transfer(&self, inst: Inst) -> Transfer {
        self.code.transfer(inst)
    }

    fn for_each_target(&self, inst: Inst, visit: impl FnMut(Inst)) {
        self.code.for_each_target(inst, visit);
    }

    fn value_name(&self, value: Value) -> String {
        self.code.value_name(value)
    }

    fn inst_text(&self, inst: Inst) -> String {
        self.code.inst_text(inst)
    }
}

const CLASSES: [ClassInfo; 1] = [ClassInfo {
    name: "R",
    units: 1,
}];

impl Function for General<'_> {
    fn inst_count(&self) -> usize {
        self.words.len()
    }

    fn value_count(&self) -> usize {
        self.registers.len()
    }

    fn classes(&self) -> &[ClassInfo] {
        &CLASSES
    }

    fn class(&self, _: Value) -> Class {
        Class(0)
    }

    fn for_each_use(&self, inst: Inst, visit: impl FnMut(Value)) {
        self.words[inst.index()]
            .uses
            .iter()
            .copied()
            .for_each(visit);
    }

    fn for_each_def(&self, inst: Inst, visit: impl FnMut(Value)) {
        self.words[inst.index()]
            .defs
            .iter()
            .copied()
            .for_each(visit);
    }

    fn is_predicated(&self, inst: Inst) -> bool {
        self.code.is_predicated(inst) && !self.begins[inst.index()]
    }

    fn transfer(&self, inst: Inst) -> Transfer {
        self.code.transfer(inst)
    }

    fn for_each_target(&self, inst: Inst, visit: impl FnMut(Inst)) {
        self.code.for_each_target(inst, visit);
    }

    fn for_each_tuple(&self, inst: Inst, mut visit: impl FnMut(&[Value], u32)) {
        for (values, align) in &self.words[inst.index()].tuples {
            visit(values, *align);
        }
    }

    fn for_each_tied(&self, inst: Inst, mut visit: impl FnMut(Value, Value)) {
        for &(def, used) in &self.words[inst.index()].tied {
            visit(def, used);
        }
    }

    fn fixed(&self, value: Value) -> Option<u32> {
        self.given[value.index()].then(|| self.registers[value.index()].into())
    }

    fn register(&self, value: Value) -> Option<u32> {
        Some(self.registers[value.index()].into())
    }

    /// By the share of the issue slots or of its unit's throughput that it takes, roughly.
    fn repetition(&self, inst: Inst) -> Repetition {
        let word = self.code.instructions()[inst.index()];
        let mut defs = self.code.roles(inst).defs();
        let is_known = is_pure(word) && !self.code.roles(inst).is_rare();
        let is_plain = !word.is_predicated() && self.code.transfer(inst) == Transfer::Next;
        let is_address = word
            .loaded_constant()
            .is_some_and(|n| self.is_return_address(n));
        if !is_known || !is_plain || is_address || defs.any(|span| span.file != File::Gpr) {
            return Repetition::Never;
        }
        match word.unit() {
            _ if self.is_computable(inst) => Repetition::Cheap(1),
            Unit::Alu | Unit::Fma | Unit::Half => Repetition::Cheap(1),
            Unit::Constant => Repetition::Cheap(2),
            Unit::Fp64 | Unit::Sfu => Repetition::Cheap(4),
            _ => Repetition::Never,
        }
    }

    /// Do the predicates and uniform registers that it reads hold the same there?
    fn can_stand_before(&self, inst: Inst, place: Inst) -> bool {
        let mut hidden = self
            .code
            .roles(inst)
            .uses()
            .filter(|span| span.file != File::Gpr);
        hidden.all(|span| {
            let is_uniform = span.file != File::Pred;
            let mut registers = span.registers().map(|number| value_of(span.file, number));
            registers.all(|register| {
                register.is_some_and(|register| {
                    self.is_same(register, inst, place)
                        && (!is_uniform || self.is_carried(register, place))
                })
            })
        })
    }

    fn value_name(&self, value: Value) -> String {
        format!("R{}", self.registers[value.index()])
    }

    fn inst_text(&self, inst: Inst) -> String {
        self.code.inst_text(inst)
    }
}
