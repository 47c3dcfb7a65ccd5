//! A warp on terms: which lanes run where, and one instruction of them.

use warpwright_ptx::ir::Part;
use warpwright_ptx::special::SpecialReg;

use crate::lanes::{Lanes, Mask, WARP, lanes_of, mask_where};
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, Window, window};
use crate::program::{
    Access, AccessSpace, Atomic, Barrier, BarrierKind, Callee, HostFunction, Load, Op, Out, Src,
    Step,
};
use crate::symbolic::collective::Copies;
use crate::symbolic::fork::{Assumed, Before, put};
use crate::symbolic::form::Form;
use crate::symbolic::machine::{FaultClass, Machine, Note, Refusal, Stop};
use crate::symbolic::memory::{By, Word, read, term_at, write};
use crate::symbolic::term::{Domain, Id, Kind, Mode, Node, Terms, Unset, Val};

/// The condition of an address that is one of two, with something known added perhaps, and the two.
fn choice(m: &mut Machine<'_>, id: Id) -> Option<(Val, [Val; 2])> {
    let known = |m: &Machine<'_>, id: Id| m.terms.bits_of(id);
    let node = m.terms.node(id);
    let (chosen, added) = match node.kind() {
        Kind::Select => (node, 0),
        Kind::IAdd => match (known(m, node.a), known(m, node.b)) {
            (Some(added), None) => (m.terms.node(node.b), added),
            (None, Some(added)) => (m.terms.node(node.a), added),
            _ => return None,
        },
        _ => return None,
    };
    if chosen.kind() != Kind::Select {
        return None;
    }
    let sides = [chosen.b, chosen.c].map(|side| match known(m, side) {
        Some(bits) => Val::Bits(bits.wrapping_add(added)),
        None => m.terms.iadd(Domain::I64, Val::Term(side), Val::Bits(added)),
    });
    Some((Val::Term(chosen.a), sides))
}

/// Nested choices between addresses that are followed.
const CHOICES: u32 = 4;

/// The terms that lanes make of terms, most of the time, where these are looked up as they are; and the lanes.
#[inline(always)]
fn look_ahead(
    terms: &Terms,
    form: &Form,
    sym: Mask,
    (values, syms): (&[&Lanes; 8], &[Mask; 8]),
    count: usize,
) -> ([Node; WARP], Mask) {
    let mut nodes = [Node::new(Kind::Const, 0, 0, 0, 0); WARP];
    if !matches!(count, 2 | 3) || !form.is_ahead() {
        return (nodes, 0);
    }
    let all = syms[..count].iter().fold(sym, |all, sym| all & sym);
    for lane in lanes_of(all) {
        nodes[lane] = form.ahead([0, 1, 2].map(|at| values[at][lane] as Id));
    }
    terms.look_ahead(&nodes, all);
    (nodes, all)
}

/// Lanes that run together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strand {
    pub pc: u32,
    pub mask: Mask,
    pub wait: Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Ready,
    /// Lanes that its member mask names.
    Collective,
    Barrier,
}

/// What follows an instruction.
pub(crate) enum Next {
    Fall,
    Reschedule,
}

pub(crate) struct Warp {
    pub index: usize,
    lanes: Mask,
    pub exited: Mask,
    pub regs: Vec<Lanes>,
    /// Lanes whose value is a term.
    pub sym: Vec<Mask>,
    pub strands: Vec<Strand>,
    pub assumed: Vec<Assumed>,
    pub before: Vec<Before>,
    pub copies: Copies,
    local: Vec<Word>,
    local_len: u64,
    /// Collective instructions executed.
    pub stamp: u32,
    /// By what orders memory between lanes, and by `volatile` alone.
    stated: Meetings,
    in_step: Meetings,
    /// Lanes have gone different ways since all met.
    pub parted: bool,
    /// Since the block last met at a barrier: lanes that have come to each step, and those that have written while others
    /// of the warp were elsewhere.
    came: Vec<Mask>,
    apart: Mask,
}

/// When lanes of a warp last met: stamps behind what they executed together.
#[derive(Default)]
struct Meetings {
    /// All lanes.
    all: u32,
    /// Each two of them.
    pairs: Option<Box<[[u32; 32]; 32]>>,
}

impl Meetings {
    fn meet(&mut self, group: Mask, lanes: Mask, stamp: u32) {
        // With lanes that have exited nobody meets.
        if group == lanes {
            self.all = stamp;
            return;
        }
        let pairs = self.pairs.get_or_insert_with(|| Box::new([[0; 32]; 32]));
        for one in lanes_of(group) {
            for other in lanes_of(group) {
                pairs[one][other] = stamp;
            }
        }
    }

    /// Have two lanes met behind a stamp?
    fn are_behind(&self, earlier: u8, lane: usize, stamp: u32) -> bool {
        let pair = self.pairs.as_ref();
        let pair = pair.is_some_and(|pairs| pairs[usize::from(earlier) % 32][lane] > stamp);
        self.all > stamp || pair
    }
}

/// What orders an access of a lane before another lane's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordered {
    /// What the PTX ISA says.
    Stated,
    /// That both lanes work in step.
    InStep,
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Global(usize, u64),
    Shared(u64),
    Local(u64),
    Param(u64),
    /// Parameters of a call to a function of the runtime.
    Call,
}

impl Target {
    /// So many bytes further on.
    #[inline(always)]
    fn behind(self, bytes: u64) -> Target {
        match self {
            Target::Global(of, at) => Target::Global(of, at + bytes),
            Target::Shared(at) => Target::Shared(at + bytes),
            Target::Local(at) => Target::Local(at + bytes),
            Target::Param(at) => Target::Param(at + bytes),
            Target::Call => Target::Call,
        }
    }
}

/// The memory that another lane's access went to.
struct Near {
    /// Its first address, and its bytes.
    from: u64,
    len: u64,
    /// Bits of an aligned address that are 0.
    low: u64,
    first: Target,
}

impl Near {
    const NOWHERE: Near = Near {
        from: 0,
        len: 0,
        low: 0,
        first: Target::Call,
    };

    fn of(m: &Machine<'_>, address: u64, target: Target, align: u32) -> Near {
        let (offset, len, first) = match target {
            Target::Global(of, offset) => (offset, m.memory[of].len, Target::Global(of, 0)),
            Target::Shared(at) => match m.shared_layout.find(at, 1) {
                Some(region) => (at - region.start, region.len, Target::Shared(region.start)),
                None => return Near::NOWHERE,
            },
            Target::Local(_) | Target::Param(_) | Target::Call => return Near::NOWHERE,
        };
        match align.is_power_of_two() {
            true => Near {
                from: address.wrapping_sub(offset),
                len,
                low: u64::from(align) - 1,
                first,
            },
            false => Near::NOWHERE,
        }
    }

    #[inline(always)]
    fn find(&self, address: u64, bytes: u64) -> Option<Target> {
        let offset = address.wrapping_sub(self.from);
        let inside = offset < self.len && bytes <= self.len - offset;
        (inside && address & self.low == 0).then(|| self.first.behind(offset))
    }
}

impl Warp {
    pub fn new(m: &Machine<'_>, index: usize, lanes: Mask) -> Warp {
        let function = &m.program.functions[m.program.kernel];
        let local = function.local.len;
        Warp {
            index,
            lanes,
            exited: 0,
            regs: m.unset.iter().map(|&id| [u64::from(id); WARP]).collect(),
            sym: vec![Mask::MAX; m.unset.len()],
            strands: vec![Strand {
                pc: 0,
                mask: lanes,
                wait: Wait::Ready,
            }],
            assumed: Vec::new(),
            before: Vec::new(),
            copies: Copies::default(),
            local: vec![Word::Unset; WARP * local.div_ceil(4) as usize],
            local_len: local,
            stamp: 0,
            stated: Meetings::default(),
            in_step: Meetings::default(),
            parted: false,
            came: vec![0; function.code.len()],
            apart: 0,
        }
    }

    pub fn live(&self) -> Mask {
        self.lanes & !self.exited
    }

    /// All lanes that exist.
    pub fn all(&self) -> Mask {
        self.lanes
    }

    // ---- scheduling

    pub fn run(&mut self, m: &mut Machine<'_>) -> Result<(), Stop> {
        m.traced(u32::MAX - 1, self.index as u32);
        m.awake();
        while let Some(current) = self.pick(None) {
            let limit = self.meeting_point(current);
            self.run_strand(m, current, limit)?;
        }
        Ok(())
    }

    /// Joins strands at one place and chooses the one with the smallest program counter.
    pub fn pick(&mut self, except: Option<u32>) -> Option<usize> {
        let mut at = 0;
        while at < self.strands.len() {
            let this = self.strands[at];
            let other = self.strands[at + 1..].iter().position(|s| {
                s.pc == this.pc && (s.wait == Wait::Barrier) == (this.wait == Wait::Barrier)
            });
            match other {
                Some(other) => {
                    let other = self.strands.remove(at + 1 + other);
                    self.strands[at].mask |= other.mask;
                    if this.wait == Wait::Collective {
                        self.strands[at].wait = Wait::Ready;
                    }
                }
                None => at += 1,
            }
        }
        let ready = self.strands.iter().enumerate();
        let ready = ready.filter(|(_, s)| s.wait == Wait::Ready && Some(s.pc) != except);
        ready.min_by_key(|(_, s)| s.pc).map(|(at, _)| at)
    }

    pub fn meeting_point(&self, current: usize) -> u32 {
        let pc = self.strands[current].pc;
        let others = self.strands.iter().enumerate();
        let others =
            others.filter(|&(at, s)| at != current && s.pc > pc && s.wait != Wait::Barrier);
        others.map(|(_, s)| s.pc).min().unwrap_or(u32::MAX)
    }

    pub fn run_strand(
        &mut self,
        m: &mut Machine<'_>,
        current: usize,
        limit: u32,
    ) -> Result<(), Stop> {
        loop {
            let pc = self.strands[current].pc;
            match self.step(m, current)? {
                Next::Fall => {
                    self.strands[current].pc = pc + 1;
                    if pc + 1 >= limit {
                        return Ok(());
                    }
                }
                Next::Reschedule => return Ok(()),
            }
        }
    }

    /// Lanes that exit.
    fn exit(&mut self, m: &mut Machine<'_>, current: usize, mask: Mask) -> Result<(), Stop> {
        self.deliver(m, self.strands[current].pc, mask, u32::MAX)?;
        self.exited |= mask;
        self.strands[current].mask &= !mask;
        self.strands[current].pc += 1;
        self.drop_empty();
        // Who waited for them tries again.
        for strand in &mut self.strands {
            if strand.wait == Wait::Collective {
                strand.wait = Wait::Ready;
            }
        }
        Ok(())
    }

    /// The block has met at a barrier.
    pub fn met_at_barrier(&mut self) {
        self.parted = false;
        self.came.fill(0);
        self.apart = 0;
    }

    /// Has it lanes that have passed a barrier by rather than exited ahead of it? So it is if they have come to where the
    /// threads behind the barrier come to, or have written while others of their warp waited.
    pub fn passed_by(&self, behind: &[bool]) -> bool {
        let waits = self.live() != 0;
        let mut came = self.came.iter().zip(behind);
        self.exited != 0
            && (waits && self.apart & self.exited != 0
                || came.any(|(lanes, behind)| *behind && lanes & self.exited != 0))
    }

    /// Lanes come to a step.
    fn comes(&mut self, m: &mut Machine<'_>, pc: u32, mask: Mask, step: &Step) -> Result<(), Stop> {
        if step.leaves() {
            return Ok(());
        }
        self.came[pc as usize] |= mask;
        if self.strands.len() == 1 {
            return Ok(());
        }
        if matches!(step.op, Op::Store { .. } | Op::Atomic(_)) {
            self.apart |= mask;
        }
        let waiting = self.strands.iter().filter(|s| s.wait == Wait::Barrier);
        for at in waiting.map(|s| s.pc) {
            if m.strays(at)[pc as usize] {
                let lane = mask.trailing_zeros() as usize;
                return Err(m.fault(FaultClass::BarrierDivergence, self, (at, lane), None));
            }
        }
        Ok(())
    }

    pub fn drop_empty(&mut self) {
        self.strands.retain(|s| s.mask != 0);
    }

    /// All these lanes have executed an instruction together.
    pub fn synchronise(&mut self, group: Mask) {
        self.stamp += 1;
        self.parted &= group != self.live();
        self.stated.meet(group, self.lanes, self.stamp);
    }

    /// What orders another lane's access, made at a stamp, before one of this lane?
    pub fn order(&self, earlier: u8, lane: usize, stamp: u32) -> Option<Ordered> {
        let is_behind = |meetings: &Meetings| meetings.are_behind(earlier, lane, stamp);
        match () {
            () if is_behind(&self.stated) => Some(Ordered::Stated),
            () if is_behind(&self.in_step) => Some(Ordered::InStep),
            () => None,
        }
    }

    // ---- registers

    #[inline(always)]
    pub fn get<'a>(&'a self, m: &Machine<'a>, src: Src) -> (&'a Lanes, Mask) {
        match src {
            Src::Reg(reg) => (&self.regs[reg as usize], self.sym[reg as usize]),
            Src::Const(at) => (&m.program.constants[at as usize], 0),
        }
    }

    /// A lane of an operand.
    #[inline(always)]
    pub fn lane(&self, m: &Machine<'_>, src: Src, lane: usize) -> Val {
        match src {
            Src::Reg(reg) => match self.sym[reg as usize] >> lane & 1 {
                0 => Val::Bits(self.regs[reg as usize][lane]),
                _ => Val::Term(self.regs[reg as usize][lane] as Id),
            },
            Src::Const(at) => Val::Bits(m.program.constants[at as usize][lane]),
        }
    }

    /// Sets the lanes of a mask; of `sym` those count that the mask has.
    #[inline(always)]
    pub fn set(&mut self, reg: u32, mask: Mask, values: &Lanes, sym: Mask) {
        let at = reg as usize;
        if let Some(before) = self.before.last_mut() {
            before.save(reg, &self.regs[at], self.sym[at]);
        }
        if mask == Mask::MAX {
            self.regs[at] = *values;
        } else {
            for lane in lanes_of(mask) {
                self.regs[at][lane] = values[lane];
            }
        }
        self.sym[at] = self.sym[at] & !mask | sym & mask;
    }

    pub fn set_lane(&mut self, reg: u32, lane: usize, value: Val) {
        let (mut values, mut sym) = ([0; WARP], 0);
        put(&mut values, &mut sym, lane, value);
        self.set(reg, 1 << lane, &values, sym);
    }

    /// Known bits of an operand in all lanes of a mask.
    pub fn known(
        &self,
        m: &Machine<'_>,
        src: Src,
        mask: Mask,
        pc: u32,
        refusal: impl Fn(Id) -> Refusal,
    ) -> Result<Lanes, Stop> {
        let (values, sym) = self.get(m, src);
        match lanes_of(sym & mask).next() {
            Some(lane) => Err(m.refuse(refusal(values[lane] as Id), pc)),
            None => Ok(*values),
        }
    }

    // ---- one instruction

    fn step(&mut self, m: &mut Machine<'_>, current: usize) -> Result<Next, Stop> {
        let program = m.program;
        let code = &program.functions[program.kernel].code;
        let Strand { pc, mask, .. } = self.strands[current];
        let Some(step) = code.get(pc as usize) else {
            self.exit(m, current, mask)?;
            return Ok(Next::Reschedule);
        };
        m.spend(pc)?;
        self.comes(m, pc, mask, step)?;
        let Some(guard) = step.guard else {
            return self.execute(m, current, (pc, mask), &step.op);
        };
        let (values, sym) = (self.regs[guard.reg as usize], self.sym[guard.reg as usize]);
        let flip = u64::from(guard.negated);
        let mut holds = mask & !sym & mask_where(|lane| (values[lane] ^ flip) & 1 != 0);
        let mut open = mask & sym;
        for lane in lanes_of(open) {
            if let Some(known) = self.decided(m, lane, values[lane] as Id) {
                open &= !(1 << lane);
                holds |= Mask::from(known != guard.negated) << lane;
            }
        }
        if open != 0 && m.tracer.is_some() {
            return self.step_traced(m, current, (pc, holds, open), &step.op);
        }
        if open == 0 {
            return match holds {
                0 => Ok(Next::Fall),
                _ => self.execute(m, current, (pc, holds), &step.op),
            };
        }
        let end = code.len() as u32;
        let by = (guard.reg, guard.negated);
        match &step.op {
            Op::Branch { target } => self.parted(m, current, (holds, open), by, *target),
            Op::Return | Op::Exit => self.parted(m, current, (holds, open), by, end),
            Op::Alu { .. } | Op::Load(_) | Op::Store { .. } | Op::Atomic(_) | Op::Nop => {
                if holds != 0 {
                    self.execute(m, current, (pc, holds), &step.op)?;
                }
                self.guarded(m, open, by, |warp, m| {
                    warp.execute(m, current, (pc, open), &step.op).map(|_| ())
                })?;
                Ok(Next::Fall)
            }
            _ => {
                let first = values[open.trailing_zeros() as usize] as Id;
                Err(m.refuse(Refusal::Collective(first), pc))
            }
        }
    }

    /// A branch that some lanes take, and of which others do not know.
    fn parted(
        &mut self,
        m: &mut Machine<'_>,
        current: usize,
        (holds, open): (Mask, Mask),
        by: (u32, bool),
        target: u32,
    ) -> Result<Next, Stop> {
        let Strand { pc, mask, .. } = self.strands[current];
        let values = self.regs[by.0 as usize];
        let first = values[open.trailing_zeros() as usize];
        let is_one = open == mask && lanes_of(open).all(|lane| values[lane] == first);
        m.one_way(pc, is_one)?;
        let meet = self.fork(m, open, by, (pc, target))?;
        let ready = |pc, mask| Strand {
            pc,
            mask,
            wait: Wait::Ready,
        };
        self.strands.remove(current);
        self.strands.push(ready(target, holds));
        self.strands.push(ready(pc + 1, mask & !holds & !open));
        let end = m.program.functions[m.program.kernel].code.len() as u32;
        match meet < end {
            true => self.strands.push(ready(meet, open)),
            false => self.exited |= open,
        }
        self.drop_empty();
        Ok(Next::Reschedule)
    }

    pub fn execute(
        &mut self,
        m: &mut Machine<'_>,
        current: usize,
        (pc, mask): (u32, Mask),
        op: &Op,
    ) -> Result<Next, Stop> {
        match op {
            Op::Alu { srcs, outs } => self.alu(m, pc, mask, srcs, outs),
            Op::Load(load) => self.load(m, pc, mask, load)?,
            Op::Store { access, srcs } => self.store(m, pc, mask, access, srcs)?,
            Op::Atomic(atomic) => self.atomic(m, pc, mask, atomic)?,
            Op::Special { dst, reg, part } => {
                let values = self.special(m, pc, *reg, *part)?;
                self.set(*dst, mask, &values, 0);
            }
            Op::LocalAddress { dst, offset } => self.set(*dst, mask, &[*offset; WARP], 0),
            Op::Branch { target } => {
                m.one_way(pc, self.strands[current].mask == mask)?;
                return Ok(self.branch(current, mask, *target));
            }
            Op::BranchTable { targets, index } => {
                return self.table(m, current, (pc, mask), targets, *index);
            }
            Op::Return | Op::Exit => {
                self.exit(m, current, mask)?;
                return Ok(Next::Reschedule);
            }
            Op::Trap => return Err(self.at_fault(m, FaultClass::Trap, pc, mask)),
            Op::Nop | Op::Pause => {}
            Op::Call {
                callee: Callee::Host(HostFunction::Printf),
                ..
            } => {
                m.report.notes.insert(Note::Printed);
            }
            Op::Call {
                callee: Callee::Host(HostFunction::AssertFail),
                ..
            } => return Err(self.at_fault(m, FaultClass::Assertion, pc, mask)),
            Op::Call { .. } => return Err(m.refuse(Refusal::Call, pc)),
            Op::Barrier(barrier) => return self.barrier(m, current, (pc, mask), barrier),
            Op::Collective { members, op } => {
                return self.collective(m, current, (pc, mask), *members, op);
            }
            Op::ActiveMask { dst } => {
                self.together(m, pc, mask)?;
                self.set(*dst, mask, &[u64::from(mask); WARP], 0);
            }
            Op::CopyAsync(copy) => self.copy_async(m, pc, mask, copy)?,
            Op::CommitGroup => self.copies.commit(mask),
            Op::WaitGroup { pending } => self.deliver(m, pc, mask, *pending)?,
            Op::SetRegisters(_)
            | Op::Atomic128 { .. }
            | Op::Mbarrier { .. }
            | Op::CopyBulk(_)
            | Op::Texture(_)
            | Op::Surface(_) => {
                return Err(m.refuse(Refusal::Instruction, pc));
            }
        }
        Ok(Next::Fall)
    }

    /// A fault; where data alone lead there it cannot be told whether they do.
    fn at_fault(&self, m: &Machine<'_>, class: FaultClass, pc: u32, mask: Mask) -> Stop {
        let lane = mask.trailing_zeros() as usize;
        match self.is_assumed(lane) {
            true => m.refuse(Refusal::ConditionalAccess, pc),
            false => m.fault(class, self, (pc, lane), None),
        }
    }

    /// Which lanes run together is known where all do, and none has gone another way since all met.
    pub fn together(&self, m: &Machine<'_>, pc: u32, mask: Mask) -> Result<(), Stop> {
        match self.parted || mask != self.live() || !self.assumed.is_empty() {
            true => Err(m.refuse(Refusal::Together, pc)),
            false => Ok(()),
        }
    }

    fn is_assumed(&self, lane: usize) -> bool {
        self.assumed.iter().any(|a| a.mask >> lane & 1 != 0)
    }

    #[inline(always)]
    fn alu(&mut self, m: &mut Machine<'_>, pc: u32, mask: Mask, srcs: &[Src], outs: &[Out]) {
        const NONE: Lanes = [0; WARP];
        if let [out] = outs {
            let (values, sym) = self.result(m, (pc, 0), mask, srcs, out);
            self.set(out.dst, mask, &values, sym);
            return;
        }
        // A destination may be a source of the next result: all of them first.
        let mut results = [(NONE, 0); 4];
        for (at, (out, result)) in outs.iter().zip(&mut results).enumerate() {
            *result = self.result(m, (pc, at), mask, srcs, out);
        }
        for (out, (values, sym)) in outs.iter().zip(&results) {
            self.set(out.dst, mask, values, *sym);
        }
    }

    /// Result number `at` of an instruction: the lanes' values, and which of them are terms.
    #[inline(always)]
    fn result(
        &self,
        m: &mut Machine<'_>,
        (pc, at): (u32, usize),
        mask: Mask,
        srcs: &[Src],
        out: &Out,
    ) -> (Lanes, Mask) {
        const NONE: &Lanes = &[0; WARP];
        let program = m.program;
        let mut values = [NONE; 8];
        let mut syms = [0; 8];
        for ((value, sym), &src) in values.iter_mut().zip(&mut syms).zip(srcs) {
            (*value, *sym) = match src {
                Src::Reg(reg) => (&self.regs[reg as usize], self.sym[reg as usize]),
                Src::Const(at) => (&program.constants[at as usize], 0),
            };
        }
        let count = srcs.len().min(8);
        let sym = mask & syms.iter().fold(0, |all, sym| all | sym);
        let mut result = *NONE;
        let mut terms = 0;
        if mask & !sym != 0 {
            (out.f)(&values[..count], &mut result, mask & !sym);
        }
        let Some(form) = m.forms[pc as usize].get(at) else {
            return (result, 0);
        };
        if let Some(tracer) = &mut m.tracer
            && sym != 0
        {
            let all = srcs.iter().zip(values).zip(syms);
            tracer.operation((pc, at), sym, all);
            lanes_of(sym).for_each(|lane| result[lane] = u64::from(tracer.data));
            return (result, sym);
        }
        let (ahead, mut all) = look_ahead(m.terms, form, sym, (&values, &syms), count);
        if !self.assumed.is_empty() {
            all = 0;
        }
        let mut x = [Val::Bits(0); 8];
        for lane in lanes_of(sym) {
            if all >> lane & 1 != 0
                && let Some(id) = form.made_ahead(m.terms, &ahead[lane])
            {
                result[lane] = u64::from(id);
                terms |= 1 << lane;
                continue;
            }
            for at in 0..count {
                x[at] = match syms[at] >> lane & 1 {
                    0 => Val::Bits(values[at][lane]),
                    _ => self.simplified(m, lane, Val::Term(values[at][lane] as Id)),
                };
            }
            let value = form.build(m.terms, &x[..count]);
            put(&mut result, &mut terms, lane, value);
        }
        (result, terms)
    }

    fn branch(&mut self, current: usize, mask: Mask, target: u32) -> Next {
        let strand = self.strands[current];
        let rest = strand.mask & !mask;
        self.parted |= rest != 0;
        self.strands[current].pc = target;
        self.strands[current].mask = mask;
        if rest != 0 {
            self.strands.push(Strand {
                pc: strand.pc + 1,
                mask: rest,
                wait: Wait::Ready,
            });
        }
        Next::Reschedule
    }

    fn table(
        &mut self,
        m: &mut Machine<'_>,
        current: usize,
        (pc, mask): (u32, Mask),
        targets: &[u32],
        index: Src,
    ) -> Result<Next, Stop> {
        let indices = self.known(m, index, mask, pc, Refusal::Operand)?;
        self.parted = true;
        let strand = self.strands[current];
        let rest = strand.mask & !mask;
        self.strands[current].mask = 0;
        for lane in lanes_of(mask) {
            let target = targets.get(indices[lane] as u32 as usize);
            let Some(&target) = target else {
                return Err(m.fault(FaultClass::OutOfBounds, self, (pc, lane), None));
            };
            self.strands.push(Strand {
                pc: target,
                mask: 1 << lane,
                wait: Wait::Ready,
            });
        }
        self.strands.push(Strand {
            pc: pc + 1,
            mask: rest,
            wait: Wait::Ready,
        });
        self.drop_empty();
        Ok(Next::Reschedule)
    }

    fn barrier(
        &mut self,
        m: &mut Machine<'_>,
        current: usize,
        (pc, mask): (u32, Mask),
        barrier: &Barrier,
    ) -> Result<Next, Stop> {
        if !self.assumed.is_empty() {
            let predicate = self.assumption();
            return Err(m.refuse(Refusal::Collective(predicate), pc));
        }
        let threads = u64::from(m.grid.threads()).next_multiple_of(WARP as u64);
        let id = self.known(m, barrier.id, mask, pc, Refusal::Operand)?;
        let counts = match barrier.count {
            Some(count) => self.known(m, count, mask, pc, Refusal::Operand)?,
            None => [threads; WARP],
        };
        let partial = lanes_of(mask).any(|lane| id[lane] != 0 || counts[lane] != threads);
        if partial || barrier.kind == BarrierKind::Arrive {
            return Err(m.refuse(Refusal::PartialBarrier, pc));
        }
        let strand = &mut self.strands[current];
        let rest = strand.mask & !mask;
        (strand.mask, strand.wait) = (mask, Wait::Barrier);
        if rest != 0 {
            self.strands.push(Strand {
                pc: pc + 1,
                mask: rest,
                wait: Wait::Ready,
            });
        }
        Ok(Next::Reschedule)
    }

    /// The innermost predicate that is assumed.
    pub fn assumption(&self) -> Id {
        self.assumed.last().map_or(0, |assumed| {
            assumed.predicates[assumed.mask.trailing_zeros() as usize % 32]
        })
    }

    fn special(
        &self,
        m: &Machine<'_>,
        pc: u32,
        reg: SpecialReg,
        part: Option<Part>,
    ) -> Result<Lanes, Stop> {
        let axis = match part {
            Some(Part::Y) => 1,
            Some(Part::Z) => 2,
            Some(Part::W) => 3,
            _ => 0,
        };
        let place = |v: [u32; 3]| v.get(axis).map_or(0, |&n| u64::from(n));
        let extent = |v: [u32; 3]| v.get(axis).map_or(1, |&n| u64::from(n));
        let each = |f: &dyn Fn(usize) -> u64| -> Lanes { std::array::from_fn(f) };
        let low = |bits: u64| bits & u64::from(u32::MAX);
        Ok(match reg {
            SpecialReg::Tid => each(&|lane| place(m.grid.thread(self.index, lane))),
            SpecialReg::LaneId => each(&|lane| lane as u64),
            SpecialReg::LaneMaskEq => each(&|lane| 1 << lane),
            SpecialReg::LaneMaskLt => each(&|lane| (1 << lane) - 1),
            SpecialReg::LaneMaskLe => each(&|lane| (2 << lane) - 1),
            SpecialReg::LaneMaskGt => each(&|lane| low(!((2 << lane) - 1))),
            SpecialReg::LaneMaskGe => each(&|lane| low(!((1 << lane) - 1))),
            SpecialReg::NTid => [extent(m.grid.block); WARP],
            SpecialReg::CtaId | SpecialReg::ClusterId => [place(m.index); WARP],
            SpecialReg::NCtaId | SpecialReg::NClusterId => [extent(m.grid.grid); WARP],
            SpecialReg::ClusterNCtaId | SpecialReg::ClusterNCtaRank => [1; WARP],
            SpecialReg::ClusterCtaId | SpecialReg::ClusterCtaRank => [0; WARP],
            SpecialReg::DynamicSmemSize => [u64::from(m.grid.dynamic_smem); WARP],
            SpecialReg::TotalSmemSize => {
                [m.shared_layout.regions.iter().map(|r| r.len).sum(); WARP]
            }
            _ => return Err(m.refuse(Refusal::Clock, pc)),
        })
    }

    // ---- memory

    /// Where a lane's access goes.
    pub fn target(
        &self,
        m: &Machine<'_>,
        (pc, lane): (u32, usize),
        access: &Access,
    ) -> Result<Target, Stop> {
        match self.base(m, lane, access) {
            Val::Bits(base) => self.target_at(m, (pc, lane), access, base),
            Val::Term(id) => Err(m.refuse(Refusal::Address(id), pc)),
        }
    }

    /// The address that a lane's access is based on.
    #[inline(always)]
    fn base(&self, m: &Machine<'_>, lane: usize, access: &Access) -> Val {
        match self.lane(m, access.base, lane) {
            Val::Term(id) => self.simplified(m, lane, Val::Term(id)),
            base => base,
        }
    }

    fn target_at(
        &self,
        m: &Machine<'_>,
        (pc, lane): (u32, usize),
        access: &Access,
        base: u64,
    ) -> Result<Target, Stop> {
        let address = access.address(base);
        let wrong = |class, memory| match self.is_assumed(lane) {
            true => m.refuse(Refusal::ConditionalAccess, pc),
            false => m.fault(class, self, (pc, lane), memory),
        };
        if !address.is_multiple_of(u64::from(access.align.max(1))) {
            return Err(wrong(FaultClass::Misaligned, None));
        }
        let bytes = access.bytes();
        let (space, at) = match access.space {
            AccessSpace::Generic => match window(address) {
                Window::Shared(at) => (AccessSpace::Shared, at),
                Window::Local(at) => (AccessSpace::Local, at),
                Window::Param(at) => (AccessSpace::Param, PARAM_WINDOW + at),
                Window::Global => (AccessSpace::Global, address),
            },
            AccessSpace::Local if address >= LOCAL_WINDOW => {
                (AccessSpace::Local, address - LOCAL_WINDOW)
            }
            space => (space, address),
        };
        match space {
            AccessSpace::Shared => match m.shared_layout.find(at, bytes) {
                Some(_) => Ok(Target::Shared(at)),
                None => {
                    let near = m.shared_layout.nearest(at);
                    let near = near.map(|r| (r.name.clone(), at.wrapping_sub(r.start) as i64));
                    Err(wrong(FaultClass::OutOfBounds, near))
                }
            },
            AccessSpace::Local => {
                let layout = &m.program.functions[m.program.kernel].local;
                match layout.find(at, bytes) {
                    Some(_) => Ok(Target::Local(at)),
                    None => Err(wrong(
                        FaultClass::OutOfBounds,
                        Some(("local memory".to_owned(), at as i64)),
                    )),
                }
            }
            AccessSpace::Param if at >= PARAM_WINDOW => Ok(Target::Param(at - PARAM_WINDOW)),
            AccessSpace::Param => Ok(Target::Call),
            _ => match m.find(at, bytes) {
                Some((index, offset, true)) => Ok(Target::Global(index, offset)),
                Some((index, offset, false)) => {
                    let name = m.memory.get(index).map(|b| b.name.clone());
                    let memory = name.map(|name| (name, offset as i64));
                    Err(wrong(FaultClass::OutOfBounds, memory))
                }
                None => Err(wrong(FaultClass::OutOfBounds, None)),
            },
        }
    }

    /// As [`target_at`](Self::target_at), where another lane's access went near it.
    #[inline(always)]
    fn target_near(
        &self,
        m: &Machine<'_>,
        at: (u32, usize),
        (access, base): (&Access, u64),
        near: &mut Near,
    ) -> Result<Target, Stop> {
        let address = access.address(base);
        if let Some(target) = near.find(address, access.bytes()) {
            return Ok(target);
        }
        let target = self.target_at(m, at, access, base)?;
        *near = Near::of(m, address, target, access.align);
        Ok(target)
    }

    /// Reads one element.
    #[inline(always)]
    pub fn read(
        &mut self,
        m: &mut Machine<'_>,
        (pc, lane): (u32, usize),
        target: Target,
        (at, size): (u64, u32),
    ) -> Val {
        if m.tracer.is_some() {
            return self.traced_read(m, lane, target.behind(at), size);
        }
        match target {
            Target::Global(of, offset) => {
                let offset = offset + at;
                let by = m.read_by(pc);
                m.note(self, (pc, lane), (Some(of), offset, size), None, by);
                m.memory[of].read(m.terms, offset, size)
            }
            Target::Shared(offset) => {
                let offset = offset + at;
                let by = m.read_by(pc);
                m.note(self, (pc, lane), (None, offset, size), None, by);
                m.shared_at(offset, size)
            }
            Target::Local(offset) => {
                let own = self.local_words(lane);
                let fresh =
                    |terms: &mut Terms, word: u32, _| Val::Term(terms.unset(Unset::Local, word));
                read(own, m.terms, offset + at, size, fresh)
            }
            Target::Param(offset) => m.parameter(offset + at, size),
            Target::Call => Val::Bits(0),
        }
    }

    /// A lane's own memory.
    pub fn local_words(&mut self, lane: usize) -> &mut [Word] {
        let words = self.local_len.div_ceil(4) as usize;
        &mut self.local[lane * words..(lane + 1) * words]
    }

    /// Writes one element, as a selection where something is assumed.
    pub fn write(
        &mut self,
        m: &mut Machine<'_>,
        (pc, lane): (u32, usize),
        target: Target,
        (at, size): (u64, u32),
        value: Val,
    ) -> Result<(), Stop> {
        if m.tracer.is_some() {
            return self.traced_write(m, (pc, lane), target.behind(at), size, value);
        }
        let value = match self.is_assumed(lane) && target != Target::Call {
            true => {
                let old = self.peek(m, lane, target, (at, size));
                self.stored(m, lane, value, old)
            }
            false => value,
        };
        match target {
            Target::Global(of, offset) => {
                let offset = offset + at;
                if m.memory[of].constant {
                    return Err(m.fault(FaultClass::ReadOnly, self, (pc, lane), None));
                }
                m.written(of, pc)?;
                let place = (Some(of), offset, size);
                m.note(self, (pc, lane), place, Some(Some(value)), By::Plain);
                m.memory[of].write(m.terms, offset, size, value);
            }
            Target::Shared(offset) => {
                let place = (None, offset + at, size);
                m.note(self, (pc, lane), place, Some(Some(value)), By::Plain);
                m.put_shared(offset + at, size, value);
            }
            Target::Local(offset) => {
                let own = self.local_words(lane);
                fill_word(own, m.terms, offset + at, size, Unset::Local);
                write(own, m.terms, offset + at, size, value);
            }
            Target::Param(_) => {
                return Err(m.fault(FaultClass::ReadOnly, self, (pc, lane), None));
            }
            Target::Call => {}
        }
        Ok(())
    }

    /// What stands at a place, without a note in the log.
    fn peek(
        &mut self,
        m: &mut Machine<'_>,
        lane: usize,
        target: Target,
        (at, size): (u64, u32),
    ) -> Val {
        match target {
            Target::Global(of, offset) => m.memory[of].read(m.terms, offset + at, size),
            Target::Shared(offset) => m.shared_at(offset + at, size),
            other => self.read(m, (0, lane), other, (at, size)),
        }
    }

    /// Reads an element at one of a few known addresses, chosen by data. Of memory that is never written both may be read;
    /// elsewhere a thread that reads what it does not look at would race.
    fn chosen(
        &mut self,
        m: &mut Machine<'_>,
        (pc, lane): (u32, usize),
        access: &Access,
        (address, place): (Val, (u64, u32)),
        depth: u32,
    ) -> Result<Val, Stop> {
        let id = match address {
            Val::Bits(base) => {
                let target = self.target_at(m, (pc, lane), access, base)?;
                return Ok(self.read(m, (pc, lane), target, place));
            }
            Val::Term(id) => id,
        };
        let choice = choice(m, id).filter(|_| depth > 0);
        let (condition, sides) = choice.ok_or_else(|| m.refuse(Refusal::Address(id), pc))?;
        let mut values = [Val::Bits(0); 2];
        for (value, side) in values.iter_mut().zip(sides) {
            if let Val::Bits(base) = side {
                let target = self.target_at(m, (pc, lane), access, base);
                let is_read_only = match target {
                    Ok(Target::Global(of, _)) => !m.memory[of].logged,
                    _ => false,
                };
                if !is_read_only {
                    return Err(m.refuse(Refusal::Address(id), pc));
                }
            }
            *value = self.chosen(m, (pc, lane), access, (side, place), depth - 1)?;
            // What nobody has written would stand in the result, though it may never be looked at.
            if matches!(*value, Val::Term(id) if m.terms.node(id).kind() == Kind::Unset) {
                return Err(m.refuse(Refusal::Address(id), pc));
            }
        }
        Ok(m.terms.select(condition, values[0], values[1]))
    }

    fn load(&mut self, m: &mut Machine<'_>, pc: u32, mask: Mask, load: &Load) -> Result<(), Stop> {
        let access = &load.access;
        m.traced(pc, mask);
        if m.is_uniform(pc) {
            let mut bases = lanes_of(mask).map(|lane| self.base(m, lane, access));
            let first = bases.next();
            m.one_way(pc, bases.all(|base| Some(base) == first))?;
        }
        match load.dsts.len() {
            1 => {
                let results = self.loaded::<1>(m, (pc, mask), load)?;
                self.set_all(load, mask, &results);
            }
            _ => {
                let results = self.loaded::<8>(m, (pc, mask), load)?;
                self.set_all(load, mask, &results);
            }
        }
        self.in_step(m, pc, mask, access);
        Ok(())
    }

    fn set_all(&mut self, load: &Load, mask: Mask, results: &[(Lanes, Mask)]) {
        for (dst, (values, sym)) in load.dsts.iter().zip(results) {
            if let Some(dst) = dst {
                self.set(*dst, mask, values, *sym);
            }
        }
    }

    /// What each destination of a load gets.
    #[inline(always)]
    fn loaded<const COUNT: usize>(
        &mut self,
        m: &mut Machine<'_>,
        (pc, mask): (u32, Mask),
        load: &Load,
    ) -> Result<[(Lanes, Mask); COUNT], Stop> {
        let access = &load.access;
        let mut results = [([0; WARP], 0); COUNT];
        let mut near = Near::NOWHERE;
        for lane in lanes_of(mask) {
            let base = self.base(m, lane, access);
            let target = match base {
                Val::Bits(base) => {
                    Some(self.target_near(m, (pc, lane), (access, base), &mut near)?)
                }
                Val::Term(_) => None,
            };
            for (at, (dst, (values, sym))) in load.dsts.iter().zip(&mut results).enumerate() {
                if dst.is_none() {
                    continue;
                }
                let place = (at as u64 * u64::from(access.elem), access.elem);
                let value = match target {
                    Some(target) => self.read(m, (pc, lane), target, place),
                    None => self.chosen(m, (pc, lane), access, (base, place), CHOICES)?,
                };
                let value = self.simplified(m, lane, value);
                let value = match load.signed {
                    true => {
                        let to = 64 - load.mask.leading_zeros();
                        m.terms
                            .sext(value, 8 * access.elem, to.max(8 * access.elem))
                    }
                    false => value,
                };
                put(values, sym, lane, value);
            }
        }
        Ok(results)
    }

    fn store(
        &mut self,
        m: &mut Machine<'_>,
        pc: u32,
        mask: Mask,
        access: &Access,
        srcs: &[Src],
    ) -> Result<(), Stop> {
        m.traced(pc, mask);
        let mut near = Near::NOWHERE;
        for lane in lanes_of(mask) {
            match self.base(m, lane, access) {
                Val::Bits(base) => {
                    let target = self.target_near(m, (pc, lane), (access, base), &mut near)?;
                    self.store_at(m, (pc, lane), (access, target), srcs)?;
                }
                base => self.store_lane(m, (pc, lane), (access, base), srcs, CHOICES)?,
            }
        }
        self.in_step(m, pc, mask, access);
        Ok(())
    }

    /// A lane's store; at one of a few places that data choose it is made to each, under its condition.
    fn store_lane(
        &mut self,
        m: &mut Machine<'_>,
        (pc, lane): (u32, usize),
        (access, base): (&Access, Val),
        srcs: &[Src],
        depth: u32,
    ) -> Result<(), Stop> {
        let id = match base {
            Val::Bits(base) => {
                let target = self.target_at(m, (pc, lane), access, base)?;
                return self.store_at(m, (pc, lane), (access, target), srcs);
            }
            Val::Term(id) => id,
        };
        let followed = depth > 0 && m.tracer.is_none();
        let choice = choice(m, id).filter(|_| followed);
        let Some((Val::Term(predicate), sides)) = choice else {
            return Err(m.refuse(Refusal::Address(id), pc));
        };
        for (side, holds) in sides.into_iter().zip([1 << lane, 0]) {
            if let Some(known) = self.decided(m, lane, predicate)
                && known != (holds != 0)
            {
                continue;
            }
            self.assumed.push(Assumed {
                mask: 1 << lane,
                predicates: [predicate; WARP],
                holds,
            });
            let stored = self.store_lane(m, (pc, lane), (access, side), srcs, depth - 1);
            self.assumed.pop();
            stored?;
        }
        Ok(())
    }

    fn store_at(
        &mut self,
        m: &mut Machine<'_>,
        (pc, lane): (u32, usize),
        (access, target): (&Access, Target),
        srcs: &[Src],
    ) -> Result<(), Stop> {
        for (at, &src) in srcs.iter().enumerate() {
            let value = self.lane(m, src, lane);
            let value = self.simplified(m, lane, value);
            let value = m.terms.extract(value, 0, 8 * access.elem);
            let place = (at as u64 * u64::from(access.elem), access.elem);
            self.write(m, (pc, lane), target, place, value)?;
        }
        Ok(())
    }

    /// Lanes of a warp that talk through `volatile` memory work in step, if nothing else orders what they do.
    fn in_step(&mut self, m: &Machine<'_>, pc: u32, mask: Mask, access: &Access) {
        let shared = matches!(access.space, AccessSpace::Shared | AccessSpace::Generic);
        if shared && m.volatile.get(pc as usize) == Some(&true) {
            self.stamp += 1;
            self.in_step.meet(mask, self.lanes, self.stamp);
        }
    }

    fn atomic(
        &mut self,
        m: &mut Machine<'_>,
        pc: u32,
        mask: Mask,
        atomic: &Atomic,
    ) -> Result<(), Stop> {
        if m.tracer.is_some() {
            return self.traced_atomic(m, (pc, mask), atomic);
        }
        let kind = AtomicKind::of(&m.place(pc).instruction);
        let mut dsts = atomic.dsts.iter().flatten();
        let is_observed = dsts.any(|&dst| m.flow().is_live(pc + 1, dst));
        let by = match is_observed {
            true => By::Showing,
            false => kind.by(),
        };
        for lane in lanes_of(mask) {
            let target = self.target(m, (pc, lane), &atomic.access)?;
            for (at, &src) in atomic.value.iter().enumerate() {
                let size = atomic.access.elem;
                let place = (at as u64 * u64::from(size), size);
                let old = self.peek(m, lane, target, place);
                let old = self.simplified(m, lane, old);
                let value = self.lane(m, src, lane);
                let value = m.terms.extract(value, 0, 8 * size);
                let second = atomic.second.map(|s| self.lane(m, s, lane));
                let f = match (&atomic.f_global, target) {
                    (Some(f), Target::Global(..)) => f,
                    _ => &atomic.f,
                };
                let new = match (old, value, second) {
                    (Val::Bits(old), Val::Bits(value), None | Some(Val::Bits(_))) => {
                        let second = match second {
                            Some(Val::Bits(bits)) => bits,
                            _ => 0,
                        };
                        Val::Bits(f(old, value, second))
                    }
                    _ => {
                        let new = kind.new_value(m, (old, value), second);
                        new.ok_or_else(|| m.refuse(Refusal::Atomic, pc))?
                    }
                };
                if kind.is_float_sum() {
                    m.report.notes.insert(Note::AtomicSum);
                }
                let new = match self.is_assumed(lane) {
                    true => self.stored(m, lane, new, old),
                    false => new,
                };
                match target {
                    Target::Global(of, offset) => {
                        let offset = offset + place.0;
                        m.written(of, pc)?;
                        if by == By::Showing && m.blocks() > 1 {
                            m.report.notes.insert(Note::OrderShown);
                        }
                        m.note(self, (pc, lane), (Some(of), offset, size), Some(None), by);
                        m.memory[of].write(m.terms, offset, size, new);
                    }
                    Target::Shared(offset) => {
                        let offset = offset + place.0;
                        m.note(self, (pc, lane), (None, offset, size), Some(None), by);
                        m.put_shared(offset, size, new);
                    }
                    _ => return Err(m.refuse(Refusal::Instruction, pc)),
                }
                if let Some(Some(dst)) = atomic.dsts.get(at) {
                    self.set_lane(*dst, lane, old);
                }
            }
        }
        Ok(())
    }
}

impl Machine<'_> {
    /// Where lanes are said to do the same and do not, anything may happen.
    fn one_way(&self, pc: u32, is_one: bool) -> Result<(), Stop> {
        match is_one || !self.is_uniform(pc) {
            true => Ok(()),
            false => Err(self.refuse(Refusal::Together, pc)),
        }
    }

    fn is_uniform(&self, pc: u32) -> bool {
        self.uniform.get(pc as usize) == Some(&true)
    }

    /// What a parameter holds.
    pub fn parameter(&self, offset: u64, size: u32) -> Val {
        let from = offset as usize;
        let bytes = self.params.get(from..from + size as usize).unwrap_or(&[]);
        let word = bytes.iter().rev();
        Val::Bits(word.fold(0, |all, &byte| all << 8 | u64::from(byte)))
    }

    /// What stands in shared memory.
    #[inline(always)]
    pub fn shared_at(&mut self, offset: u64, size: u32) -> Val {
        match term_at(&self.shared, offset, size) {
            Some(id) => Val::Term(id),
            None => self.shared_otherwise(offset, size),
        }
    }

    fn shared_otherwise(&mut self, offset: u64, size: u32) -> Val {
        let fresh = |terms: &mut Terms, word: u32, _| Val::Term(terms.unset(Unset::Shared, word));
        read(&mut self.shared, self.terms, offset, size, fresh)
    }

    pub fn put_shared(&mut self, offset: u64, size: u32, value: Val) {
        fill_word(&mut self.shared, self.terms, offset, size, Unset::Shared);
        write(&mut self.shared, self.terms, offset, size, value);
    }
}

/// A write of a part of a word keeps the rest of it, which must have a name then.
fn fill_word(words: &mut [Word], terms: &mut Terms, offset: u64, size: u32, place: Unset) {
    let at = (offset >> 2) as usize;
    if size < 4
        && let Some(word @ Word::Unset) = words.get_mut(at)
    {
        *word = Word::Term(terms.unset(place, at as u32));
    }
}

/// An atomic operation on terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtomicKind {
    FloatAdd(Domain),
    Add(Domain),
    Extreme {
        larger: bool,
        domain: Domain,
        signed: bool,
    },
    Exchange,
    CompareAndSwap,
    Other,
}

impl AtomicKind {
    fn of(text: &str) -> AtomicKind {
        let opcode = super::form::opcode(text);
        let has = |word: &str| opcode.split('.').any(|w| w == word);
        let types = [
            ("f32", Domain::F32),
            ("f64", Domain::F64),
            ("f16", Domain::F16),
            ("bf16", Domain::Bf16),
        ];
        let float = types.iter().find(|(name, _)| has(name)).map(|t| t.1);
        let wide = ["u64", "s64", "b64"].iter().any(|name| has(name));
        let domain = if wide { Domain::I64 } else { Domain::I32 };
        let signed = has("s32") || has("s64");
        match float {
            _ if has("f16x2") || has("bf16x2") => AtomicKind::Other,
            _ if has("exch") => AtomicKind::Exchange,
            _ if has("cas") => AtomicKind::CompareAndSwap,
            Some(domain) if has("add") => AtomicKind::FloatAdd(domain),
            None if has("add") => AtomicKind::Add(domain),
            None if has("min") || has("max") => AtomicKind::Extreme {
                larger: has("max"),
                domain,
                signed,
            },
            _ => AtomicKind::Other,
        }
    }

    /// What is shown of the order of operations of the kind whose old values nobody looks at. Those of another width carry
    /// into bits that the others do not see.
    fn by(self) -> By {
        match self {
            AtomicKind::FloatAdd(domain) => By::Commuting(domain as u8),
            AtomicKind::Add(domain) => By::Commuting(16 + 8 * domain as u8),
            AtomicKind::Extreme {
                larger,
                domain,
                signed,
            } => By::Commuting(17 + 8 * domain as u8 + 2 * u8::from(larger) + u8::from(signed)),
            AtomicKind::Exchange | AtomicKind::CompareAndSwap | AtomicKind::Other => By::Showing,
        }
    }

    fn is_float_sum(self) -> bool {
        matches!(self, AtomicKind::FloatAdd(_))
    }

    fn new_value(
        self,
        m: &mut Machine<'_>,
        (old, value): (Val, Val),
        second: Option<Val>,
    ) -> Option<Val> {
        Some(match self {
            // The order of sums is not stated: no term of a plain sum is the same.
            AtomicKind::FloatAdd(domain) => {
                m.terms.fadd(Mode::new(domain, Mode::MATRIX), old, value)
            }
            AtomicKind::Add(domain) => m.terms.iadd(domain, old, value),
            AtomicKind::Extreme {
                larger,
                domain,
                signed,
            } => {
                let mode = Mode::new(domain, if signed { Mode::OTHER } else { 0 });
                m.terms.extreme(larger, mode, old, value)
            }
            AtomicKind::Exchange => value,
            AtomicKind::CompareAndSwap if old == value => second?,
            AtomicKind::CompareAndSwap | AtomicKind::Other => return None,
        })
    }
}
