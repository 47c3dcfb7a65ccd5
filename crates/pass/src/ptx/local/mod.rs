//! Arrays and copies of parameters that a function keeps in local memory of its own (`.local`), and what keeps them there:
//! an index that is not constant, or an address that leaves the function. What only constants index becomes registers.
//!
//! Addresses are followed without regard to order: what holds one somewhere holds one everywhere. What an index is made of
//! (`index`) goes by the definitions that reach it. LLVM, and nvcc with it, puts all of a function's objects into one variable, its frame (`__local_depot0`); constants added to the frame's
//! address tell them apart.

use std::collections::{BTreeMap, BTreeSet};

mod index;

use warpwright_flow::{Cfg, DefUse, Dominators, Liveness, Loops};
use warpwright_ptx::opcode::{Op, Role};
use warpwright_ptx::{
    Base, Body, FuncId, Imm, Inst, Module, Operand, Reg, Space, Symbol, VarId, View,
};

/// What LLVM calls a function's frame, with a number behind it.
const FRAME: &str = "__local_depot";

/// An object in local memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalObject {
    /// The variable that it lies in.
    pub var: VarId,
    /// Where it begins there, in bytes.
    pub start: u64,
    /// Bytes up to the next object or the end of the variable.
    pub bytes: u64,
    /// Bytes of an element, as it is indexed or else accessed.
    pub element: u64,
    /// The loads and stores that lie in it, in program order.
    pub accesses: Vec<Inst>,
    /// The parameter (its index) that it is a copy of.
    pub copy_of: Option<usize>,
    /// Is it only read, beside the stores that copy the parameter?
    pub is_only_read: bool,
    /// Why it cannot lie in registers.
    pub why: Why,
    /// Where only iterations of loops keep it there, whose numbers are constant: the branches that leave these loops or go
    /// back. With all of them unrolled each index is constant.
    pub loops: Vec<Inst>,
    /// Is it the working store of a trigonometric function of CUDA's library?
    pub is_trigonometric: bool,
}

/// Why an object cannot lie in registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// An access has an index that is not constant.
    Indexed {
        /// The access.
        at: Inst,
        /// What its index is made of.
        by: Index,
    },
    /// Its address is handed to a function that is not inlined.
    Passed {
        /// What hands it over.
        at: Inst,
        /// The function, where one is named.
        to: Option<FuncId>,
    },
    /// Its address is used as a value.
    Taken {
        /// The use.
        at: Inst,
    },
}

impl Why {
    /// The instruction that shows it.
    pub fn at(&self) -> Inst {
        match *self {
            Why::Indexed { at, .. } | Why::Passed { at, .. } | Why::Taken { at } => at,
        }
    }
}

/// What an index is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// Constants, and the iterations of loops: what comes next does not depend on data.
    Turns {
        /// The branch that leaves the loop or goes back.
        exit: Inst,
        /// How many iterations there are.
        number: Turns,
    },
    /// Constants, which branches of a loop add to what it was in the iteration before: a stack's pointer.
    Moved {
        /// The branch that leaves the loop or goes back.
        exit: Inst,
    },
    /// Something that is loaded from memory, or computed by other threads.
    Loaded(Inst),
    /// The place of the thread in its launch.
    Thread,
    /// A parameter.
    Parameter,
    /// Constants, along ways that meet: branches and loops decide.
    Computed,
}

/// How many iterations a loop has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turns {
    /// Data or parameters decide.
    Varying,
    /// Nothing shows it.
    Unknown,
    /// A constant number, more than one would unroll.
    Many,
    /// A constant number.
    Constant,
}

/// The objects of a function that cannot lie in registers, by their place. None where an instruction is not known.
pub fn local_objects(module: &Module, id: FuncId) -> Vec<LocalObject> {
    let Some(view) = module.view(id) else {
        return Vec::new();
    };
    let is_there = |&var: &VarId| module.variables[var].space == Space::Local;
    let body = view.body();
    if !body.opaque.is_empty() || !body.vars.iter().any(is_there) {
        return Vec::new();
    }
    let mut walk = Walk::new(&view);
    walk.settle();
    walk.objects()
}

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    Place(Place),
    /// Something else that is made of an address, or those of different objects.
    Mixed,
}

/// An address in local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    var: VarId,
    /// Where its object begins in a frame, and the last place there that it may be instead: a pointer that branches set to
    /// one element or another. `None` for the frame's own address.
    start: Option<(i64, i64)>,
    /// Bytes from there; `None` where they are not constant.
    at: Option<i64>,
}

impl Held {
    fn or(self, other: Held) -> Held {
        match (self, other) {
            (Held::Nothing, any) | (any, Held::Nothing) => any,
            (Held::Place(a), Held::Place(b)) if a.var == b.var => match (a.start, b.start) {
                (own, other) if own == other => Held::Place(Place {
                    at: a.at.filter(|_| a.at == b.at),
                    ..a
                }),
                (Some((first, last)), Some((begin, end))) => Held::Place(Place {
                    var: a.var,
                    start: Some((first.min(begin), last.max(end))),
                    at: None,
                }),
                _ => Held::Mixed,
            },
            _ => Held::Mixed,
        }
    }

    fn mixed(self) -> Held {
        match self {
            Held::Nothing => Held::Nothing,
            _ => Held::Mixed,
        }
    }
}

struct Walk<'m> {
    module: &'m Module,
    view: &'m View<'m>,
    body: &'m Body,
    held: Vec<Held>,
    /// The instructions that define each register.
    defs: BTreeMap<Reg, Vec<Inst>>,
    def_use: DefUse,
    cfg: Cfg,
    dominators: Dominators,
    loops: Loops,
}

/// A use of an address.
struct Use {
    inst: Inst,
    place: Place,
    /// The register of the address, where there is one.
    base: Option<Reg>,
}

impl<'m> Walk<'m> {
    fn new(view: &'m View<'m>) -> Walk<'m> {
        let body = view.body();
        let mut defs: BTreeMap<Reg, Vec<Inst>> = BTreeMap::new();
        for inst in body.insts.keys() {
            for reg in view.defs(inst) {
                defs.entry(reg).or_default().push(inst);
            }
        }
        let cfg = Cfg::new(view);
        let loops = Loops::new(&cfg);
        let def_use = DefUse::new(view, &Liveness::new(view, &cfg));
        Walk {
            module: view.module(),
            view,
            body,
            held: vec![Held::Nothing; body.regs.len()],
            defs,
            def_use,
            dominators: Dominators::new(&cfg),
            cfg,
            loops,
        }
    }

    fn settle(&mut self) {
        loop {
            let mut changed = false;
            for inst in self.body.insts.keys() {
                let opcode = self.module.opcode(&self.body.insts[inst]);
                if !opcode.is_pure() {
                    continue;
                }
                let result = self.result(opcode.op, inst);
                for reg in self.view.defs(inst) {
                    let old = &mut self.held[reg.as_u32() as usize];
                    let now = old.or(result);
                    changed |= now != *old;
                    *old = now;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// What the result of a pure instruction holds.
    fn result(&self, op: Option<Op>, inst: Inst) -> Held {
        let operands = self.body.operands(inst);
        let Some((_, sources)) = operands.split_first() else {
            return Held::Nothing;
        };
        match (op, sources) {
            (Some(Op::Mov | Op::Cvta), [source]) => self.operand(source),
            (Some(Op::Add), [a, b]) => self.sum(a, b, 1),
            (Some(Op::Sub), [a, b]) => self.sum(a, b, -1),
            (Some(Op::Mad), [a, b, c]) => match self.operand(a).or(self.operand(b)) {
                Held::Nothing => self.moved(self.operand(c), None),
                _ => Held::Mixed,
            },
            (Some(Op::Selp), [a, b, _]) => self.operand(a).or(self.operand(b)),
            _ => {
                let all = sources.iter().map(|source| self.operand(source));
                all.fold(Held::Nothing, Held::or).mixed()
            }
        }
    }

    fn sum(&self, a: &Operand, b: &Operand, sign: i64) -> Held {
        let constant = |operand: &Operand| match operand {
            Operand::Imm(Imm::Int { value, .. }) => Some(sign.wrapping_mul(*value)),
            _ => None,
        };
        match (self.operand(a), self.operand(b)) {
            (held, Held::Nothing) => self.moved(held, constant(b)),
            (Held::Nothing, held) if sign > 0 => self.moved(held, constant(a)),
            _ => Held::Mixed,
        }
    }

    /// An address so many bytes further.
    fn moved(&self, held: Held, by: Option<i64>) -> Held {
        let Held::Place(place) = held else {
            return held;
        };
        let far = place.at.zip(by).map(|(at, by)| at.wrapping_add(by));
        Held::Place(match (self.is_frame(place.var), place.start, far) {
            (true, None, Some(start)) => Place {
                start: Some((start, start)),
                at: Some(0),
                ..place
            },
            _ => Place { at: far, ..place },
        })
    }

    fn is_frame(&self, var: VarId) -> bool {
        self.module.variables[var].name.starts_with(FRAME)
    }

    fn operand(&self, operand: &Operand) -> Held {
        match *operand {
            Operand::Reg(reg) => self.held[reg.as_u32() as usize],
            Operand::Symbol {
                symbol: Symbol::Var(var),
                offset,
            } if self.body.vars.contains(&var)
                && self.module.variables[var].space == Space::Local =>
            {
                Held::Place(Place {
                    var,
                    start: None,
                    at: Some(offset),
                })
            }
            Operand::Mem(address) => {
                let base = match address.base {
                    Base::Reg(reg) => self.held[reg.as_u32() as usize],
                    Base::Symbol(symbol) => self.operand(&Operand::Symbol { symbol, offset: 0 }),
                    _ => Held::Nothing,
                };
                match base {
                    Held::Place(place) => Held::Place(Place {
                        at: place.at.map(|at| at.wrapping_add(address.offset)),
                        ..place
                    }),
                    other => other,
                }
            }
            Operand::Not(reg)
            | Operand::Neg(reg)
            | Operand::Sum { reg, .. }
            | Operand::Select { reg, .. } => self.held[reg.as_u32() as usize].mixed(),
            Operand::Vector(list)
            | Operand::Pair(list)
            | Operand::MemTuple(list)
            | Operand::List(list) => {
                let parts = self.body.list(list).iter().map(|part| self.operand(part));
                parts.fold(Held::Nothing, Held::or)
            }
            _ => Held::Nothing,
        }
    }

    /// Accesses, and the uses of addresses as values.
    fn uses(&self) -> (Vec<Use>, Vec<Use>) {
        let (mut accesses, mut values) = (Vec::new(), Vec::new());
        for inst in self.body.insts.keys() {
            let opcode = self.module.opcode(&self.body.insts[inst]);
            if opcode.is_pure() {
                continue;
            }
            let operands = self.body.operands(inst);
            let roles = opcode.roles(operands.len()).unwrap_or_default();
            for (index, operand) in operands.iter().enumerate() {
                let Held::Place(place) = self.operand(operand) else {
                    continue;
                };
                let (is_address, base) = match operand {
                    Operand::Mem(address) => match address.base {
                        Base::Reg(reg) => (true, Some(reg)),
                        _ => (true, None),
                    },
                    _ => (roles.get(index) == Some(&Role::Address), None),
                };
                let found = Use { inst, place, base };
                match is_address {
                    true => accesses.push(found),
                    false if roles.get(index) == Some(&Role::Def) => {}
                    false => values.push(found),
                }
            }
        }
        (accesses, values)
    }

    fn objects(&self) -> Vec<LocalObject> {
        let (accesses, values) = self.uses();
        let mut starts: BTreeMap<VarId, BTreeSet<i64>> = BTreeMap::new();
        for found in accesses.iter().chain(&values) {
            let starts = starts.entry(found.place.var).or_default();
            let own = found.place.start.map(|(first, _)| first);
            starts.extend([Some(0), own].into_iter().flatten());
        }
        // What one pointer may point to is one object.
        for Place { var, start, .. } in accesses.iter().chain(&values).map(|found| found.place) {
            if let (Some(starts), Some((first, last))) = (starts.get_mut(&var), start) {
                starts.retain(|&other| other <= first || other > last);
            }
        }
        let mut objects = Vec::new();
        for (var, starts) in starts {
            let size = i64::try_from(self.module.variables[var].bytes()).unwrap_or(i64::MAX);
            let starts: Vec<i64> = starts
                .into_iter()
                .filter(|s| (0..size).contains(s))
                .collect();
            for (at, &start) in starts.iter().enumerate() {
                let end = starts.get(at + 1).copied().unwrap_or(size);
                let is_here = |found: &&Use| {
                    let place = found.place;
                    let first = match place.start {
                        Some((own, _)) => own,
                        // The frame's own address, and a constant.
                        None => place.at.unwrap_or(0),
                    };
                    place.var == var && (start..end).contains(&first)
                };
                let accesses: Vec<&Use> = accesses.iter().filter(is_here).collect();
                let value = values.iter().find(is_here);
                objects.extend(self.object((var, start, end), &accesses, value));
            }
        }
        objects
    }

    fn object(
        &self,
        (var, start, end): (VarId, i64, i64),
        accesses: &[&Use],
        value: Option<&Use>,
    ) -> Option<LocalObject> {
        let indexed = accesses.iter().filter(|found| found.place.at.is_none());
        let indexed: Vec<(Why, BTreeSet<Inst>)> = indexed
            .filter_map(|found| {
                let (by, loops) = self.index(found)?;
                Some((Why::Indexed { at: found.inst, by }, loops))
            })
            .collect();
        // A loop's iterations are what can be changed most easily: other reasons are told first.
        let rank = |why: &Why| match why {
            Why::Indexed { by, .. } => match by {
                Index::Loaded(_) => 0,
                Index::Thread | Index::Parameter => 1,
                Index::Computed => 2,
                Index::Moved { .. } => 3,
                Index::Turns { number, .. } => 4 + *number as u8,
            },
            _ => u8::MAX,
        };
        let value = value.map(|found| self.left(found));
        let first = indexed.iter().min_by_key(|(why, _)| rank(why));
        let why = value.or_else(|| first.map(|(why, _)| why.clone()))?;
        let is_constant = |why: &Why| {
            let constant = Turns::Constant;
            matches!(why, Why::Indexed { by: Index::Turns { number, .. }, .. } if *number == constant)
        };
        let loops: BTreeSet<Inst> = match is_constant(&why) {
            true => indexed.into_iter().flat_map(|(_, loops)| loops).collect(),
            false => BTreeSet::new(),
        };
        let at = match why {
            Why::Indexed { at, .. } => Some(at),
            _ => accesses.first().map(|found| found.inst),
        };
        let (copies, copy_of) = self.copied(accesses, start);
        let is_store = |found: &&&Use| self.op(found.inst) != Some(Op::Ld);
        Some(LocalObject {
            var,
            start: start.unsigned_abs(),
            bytes: (end - start).unsigned_abs(),
            element: at.map_or(1, |at| self.bytes(at)),
            accesses: accesses.iter().map(|found| found.inst).collect(),
            copy_of,
            is_only_read: matches!(why, Why::Indexed { .. })
                && accesses.iter().filter(is_store).count() == copies,
            why,
            loops: loops.into_iter().collect(),
            is_trigonometric: self.is_trigonometric(accesses),
        })
    }

    fn op(&self, inst: Inst) -> Option<Op> {
        self.module.opcode(&self.body.insts[inst]).op
    }

    /// Bytes of one element of an access.
    fn bytes(&self, inst: Inst) -> u64 {
        let opcode = self.module.opcode(&self.body.insts[inst]);
        opcode
            .types
            .first()
            .map_or(1, |ty| u64::from(ty.bytes()))
            .max(1)
    }

    /// How an address is used as a value.
    fn left(&self, found: &Use) -> Why {
        let at = found.inst;
        let opcode = self.module.opcode(&self.body.insts[at]);
        let is_argument = opcode.op == Some(Op::St) && opcode.space == Some(Space::Param);
        if !is_argument {
            return Why::Taken { at };
        }
        let mut behind = (at.as_u32()..self.body.insts.len() as u32).map(Inst::from_u32);
        let call = behind.find(|&inst| self.op(inst) == Some(Op::Call));
        let target = call
            .and_then(|call| self.body.call(call))
            .map(|call| call.target);
        let to = match target {
            Some(Operand::Symbol {
                symbol: Symbol::Func(id),
                ..
            }) => Some(*id),
            _ => None,
        };
        Why::Passed { at, to }
    }

    /// Stores of what is loaded from the same place of one parameter, and which that is.
    fn copied(&self, accesses: &[&Use], start: i64) -> (usize, Option<usize>) {
        let mut of = None;
        let mut count = 0;
        for found in accesses {
            let own = found.place.start.map_or(0, |(first, _)| first - start);
            let Some(at) = found
                .place
                .at
                .map(|at| at.wrapping_add(own))
                .filter(|_| self.op(found.inst) == Some(Op::St))
            else {
                continue;
            };
            let Some((param, offset)) = self.stored_parameter(found.inst) else {
                continue;
            };
            if offset == at && *of.get_or_insert(param) == param {
                count += 1;
            }
        }
        let params = &self.view.function().params;
        // Two words at least, or all of it: one may be an element that is given a first value.
        let is_whole =
            of.is_some_and(|var: VarId| count >= 2 || self.module.variables[var].bytes() == 4);
        let index = of.and_then(|var| params.iter().position(|param| param.var == var));
        match is_whole {
            true => (count, index),
            false => (0, None),
        }
    }

    /// The parameter that the first value of a store is loaded from, and where.
    fn stored_parameter(&self, store: Inst) -> Option<(VarId, i64)> {
        let value = match self.body.operands(store).get(1)? {
            Operand::Reg(reg) => *reg,
            Operand::Vector(list) => match self.body.list(*list).first()? {
                Operand::Reg(reg) => *reg,
                _ => return None,
            },
            _ => return None,
        };
        let [load] = self.defs.get(&value)?[..] else {
            return None;
        };
        let opcode = self.module.opcode(&self.body.insts[load]);
        if opcode.op != Some(Op::Ld) || opcode.space != Some(Space::Param) {
            return None;
        }
        let operands = self.body.operands(load);
        // Only the first of a vector lies where the load begins.
        let is_first = match operands.first()? {
            Operand::Reg(reg) => *reg == value,
            Operand::Vector(list) => self.body.list(*list).first() == Some(&Operand::Reg(value)),
            _ => false,
        };
        match operands.get(1)? {
            Operand::Mem(address) if is_first => match address.base {
                Base::Symbol(Symbol::Var(var)) => Some((var, address.offset)),
                _ => None,
            },
            _ => None,
        }
    }
}
