//! What blocks do, but for the names of their inputs: blocks that do the same make the same terms of other inputs.
//!
//! A launch runs without terms: data are one unknown, all else is known. Of each block is kept which instructions met
//! data in which lanes, the known operands beside them, and every access to memory, places of global memory by the order
//! in which the block first touches them. Two blocks of one digest therefore build the same terms, but that the n-th
//! place of the one stands where the n-th of the other does; so do sets of blocks, with the places of all in one order.
//!
//! What would make that untrue is refused: branches, addresses and atomic operations on data, and places of global
//! memory that one block writes and another one touches.

use rustc_hash::FxHashMap;
use warpwright_launch::Launch;

use crate::lanes::{Lanes, Mask, lanes_of};
use crate::matrix::MatrixOp;
use crate::program::{Atomic, CollectiveOp, Op, Out, Program, Src};
use crate::symbolic::machine::{Aim, FaultClass, Machine, Options, Refusal, Stop};
use crate::symbolic::memory::{Buffer, Word};
use crate::symbolic::term::{Id, Terms, Val};
use crate::symbolic::warp::{Next, Target, Warp};

/// A digest of what blocks do: equal ones are taken for the same, others with a probability of about 2⁻¹²⁰.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Digest([u64; 2]);

impl Digest {
    /// Goes on with a word.
    #[inline(always)]
    pub fn mix(&mut self, word: u64) {
        let fold = |a: u64, b: u64| {
            let wide = u128::from(a) * u128::from(b);
            (wide as u64) ^ (wide >> 64) as u64
        };
        let [x, y] = self.0;
        self.0 = [
            fold(x ^ word, 0xa076_1d64_78bd_642f) ^ y.rotate_left(29),
            fold(y ^ word.rotate_left(32), 0xe703_7ed1_a0b4_28db) ^ x.rotate_left(17),
        ];
    }

    /// Goes on with another digest.
    pub fn join(&mut self, other: Digest) {
        other.0.into_iter().for_each(|word| self.mix(word));
    }
}

/// A place of global memory: 4 bytes, or 8 of a buffer whose elements have as many.
pub type Place = u32;

/// What one block does.
#[derive(Clone, Debug)]
pub struct Footprint {
    /// What, but for the names of places.
    pub digest: Digest,
    /// The places that it touches, in order.
    pub touched: Vec<Place>,
    /// Those that it writes.
    pub written: Vec<Place>,
}

/// The first place of each buffer of a launch.
pub type Bases<'b> = dyn FnMut(&Buffer) -> Option<Place> + 'b;

impl Program {
    /// What the blocks of a launch do, in order. `memory` and `places` are those of [`Program::run_on_terms`]; nothing is
    /// written to it. `bases` gives each buffer places of its own.
    ///
    /// # Errors
    /// [`Stop`]: a fault, or something that is not done here.
    pub fn footprints(
        &self,
        launch: &Launch,
        memory: &mut Vec<Buffer>,
        places: &[usize],
        bases: &mut Bases<'_>,
        options: &Options,
    ) -> Result<Vec<Footprint>, Stop> {
        let mut terms = Terms::default();
        let mut machine = Machine::new(
            self,
            launch,
            (&mut terms, memory),
            places,
            options,
            Aim::Record,
        )?;
        let tracer = Tracer::new(&mut machine, Some(bases));
        // Where a fence or an atomic operation orders blocks, which one comes first may show.
        let tracer = tracer.filter(|_| !self.ordered);
        let tracer = tracer.ok_or_else(|| machine.refuse(Refusal::TooLarge, 0))?;
        machine.tracer = Some(Box::new(tracer));
        let mut found = Vec::new();
        for number in 0..machine.blocks() {
            machine.run_block(number)?;
            let one = machine.tracer.as_mut().and_then(|tracer| tracer.finish());
            found.push(one.ok_or_else(|| machine.refuse(Refusal::Atomic, 0))?);
        }
        Ok(found)
    }

    /// Runs some blocks for their addresses alone: nothing of the memory is read but its extents, which may exceed this
    /// machine's.
    ///
    /// # Errors
    /// [`Stop`]: a fault, or something that is not done here.
    pub fn addresses(
        &self,
        launch: &Launch,
        memory: &mut Vec<Buffer>,
        places: &[usize],
        blocks: &[u32],
        options: &Options,
    ) -> Result<Visited, Stop> {
        let mut terms = Terms::default();
        let mut machine = Machine::new(
            self,
            launch,
            (&mut terms, memory),
            places,
            options,
            Aim::Addresses,
        )?;
        machine.tracer = Tracer::new(&mut machine, None).map(Box::new);
        let (mut done, mut silent) = (0, None);
        for &number in blocks {
            let stores = |m: &Machine<'_>| m.tracer.as_ref().map_or(0, |tracer| tracer.stores);
            let before = stores(&machine);
            match machine.run_block(u64::from(number)) {
                Err(Stop::Refused(Refusal::TooLarge, _)) => break,
                result => result?,
            }
            done += 1;
            silent = silent.or((stores(&machine) == before).then_some(number));
        }
        let tracer = machine.tracer.take();
        let [met, twice] = tracer.map_or([None; 2], |tracer| [tracer.met, tracer.twice]);
        let name = |of: usize| memory.get(of).map(|buffer| buffer.name.clone());
        let named = |(writers, of, byte): Written| Met {
            writers,
            memory: name(of).unwrap_or_default(),
            byte,
        };
        let [met, twice] = [met, twice].map(|found| found.map(named));
        Ok(Visited {
            blocks: done,
            silent,
            met,
            twice,
        })
    }
}

/// A place as the block that last touched it left it.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    /// Number of the block, from 1.
    block: u32,
    /// Its number among those that the block touches.
    number: u32,
    written: bool,
    /// More than one block has touched it.
    shared: bool,
}

/// Blocks that ran for their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visited {
    /// Those that ended within the budget.
    pub blocks: usize,
    /// The first that wrote nothing to global memory, other than by an atomic operation.
    pub silent: Option<u32>,
    /// The first place to which two of them wrote.
    pub met: Option<Met>,
    /// The first place to which two threads of one of them wrote.
    pub twice: Option<Met>,
}

/// A place to which two threads write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// The number of the block of each, and that of the thread in it.
    pub writers: [(u32, u32); 2],
    /// The name of the memory.
    pub memory: String,
    /// The byte in it.
    pub byte: u64,
}

/// Which threads wrote, as in [`Met::writers`], to which byte of which memory.
type Written = ([(u32, u32); 2], usize, u64);

/// Places of which is kept who wrote to them.
const KEPT: usize = 1 << 18;

/// The record of a block.
pub(crate) struct Tracer {
    digest: Digest,
    /// Data, whatever they are.
    pub data: Id,
    block: u32,
    /// First place and bytes of a place, of each memory.
    bases: Vec<(Place, u64)>,
    /// Who touches what counts.
    is_record: bool,
    table: Vec<Touched>,
    touched: Vec<Place>,
    written: Vec<Place>,
    /// What is known of words that the block has written: memory and word.
    known: FxHashMap<(usize, u64), u32>,
    /// A block touches what another one writes.
    clash: bool,
    /// Where addresses alone count: which block and thread wrote to a memory's byte first.
    writers: FxHashMap<(usize, u64), (u32, u32)>,
    /// Stores there, of all blocks.
    stores: u64,
    /// The first that two blocks wrote to, and that two threads of one block did.
    met: Option<Written>,
    twice: Option<Written>,
}

impl Tracer {
    fn new(m: &mut Machine<'_>, mut bases: Option<&mut Bases<'_>>) -> Option<Tracer> {
        let mut all = Vec::new();
        let mut end = 0;
        if let Some(bases) = &mut bases {
            for buffer in m.memory.iter() {
                let bytes = u64::from(buffer.bits / 8).max(4);
                let base = bases(buffer)?;
                let last = u64::from(base) + buffer.len.div_ceil(bytes);
                end = end.max(last);
                all.push((base, bytes));
            }
        }
        u32::try_from(end).ok()?;
        Some(Tracer {
            digest: Digest::default(),
            data: m.terms.input(u32::MAX, 0, 64),
            block: 1,
            bases: all,
            is_record: bases.is_some(),
            table: vec![Touched::default(); end as usize],
            touched: Vec::new(),
            written: Vec::new(),
            known: FxHashMap::default(),
            clash: false,
            writers: FxHashMap::default(),
            stores: 0,
            met: None,
            twice: None,
        })
    }

    /// The block has ended; `None` where it does not stand for itself.
    fn finish(&mut self) -> Option<Footprint> {
        self.block += 1;
        self.known.clear();
        let one = Footprint {
            digest: std::mem::take(&mut self.digest),
            touched: std::mem::take(&mut self.touched),
            written: std::mem::take(&mut self.written),
        };
        (!self.clash).then_some(one)
    }

    /// Something that happens at a step.
    #[inline(always)]
    pub fn at(&mut self, pc: u32, what: u32) {
        self.digest.mix(u64::from(pc) | u64::from(what) << 32);
    }

    /// An operand: which lanes are data, and what is known in the others.
    #[inline(always)]
    pub fn operand(&mut self, lanes: Mask, values: &Lanes, sym: Mask) {
        self.digest.mix(u64::from(sym & lanes));
        for lane in lanes_of(lanes & !sym) {
            self.digest.mix(values[lane]);
        }
    }

    /// Result number `at` of an instruction in the lanes in which data meet it; constants are those of the step.
    #[inline(always)]
    pub fn operation<'v>(
        &mut self,
        (pc, at): (u32, usize),
        lanes: Mask,
        operands: impl Iterator<Item = ((&'v Src, &'v Lanes), Mask)>,
    ) {
        self.at(pc, at as u32);
        self.digest.mix(u64::from(lanes));
        for ((src, values), sym) in operands {
            if let Src::Reg(_) = src {
                self.operand(lanes, values, sym);
            }
        }
    }

    /// A place is touched; its number.
    fn touch(&mut self, place: Place, write: bool) -> Touched {
        let next = self.touched.len() as u32;
        let Some(known) = self.table.get_mut(place as usize) else {
            self.clash = true;
            return Touched::default();
        };
        let is_foreign = known.block != self.block;
        if is_foreign {
            let shared = known.block != 0;
            self.clash |= shared && (known.written || write);
            *known = Touched {
                block: self.block,
                number: next,
                written: false,
                shared,
            };
            self.touched.push(place);
        }
        if write && !known.written {
            self.clash |= known.shared;
            known.written = true;
            self.written.push(place);
        }
        *known
    }

    /// An access to global memory; is what stands there the block's own?
    fn access(
        &mut self,
        buffer: &Buffer,
        of: usize,
        (offset, size): (u64, u32),
        write: bool,
    ) -> bool {
        if !self.is_record {
            return true;
        }
        let (base, bytes) = self.bases[of];
        let (first, last) = (offset / bytes, (offset + u64::from(size) - 1) / bytes);
        let mut own = false;
        for unit in first..=last {
            if write {
                self.overwritten(buffer, base + unit as u32, (unit * bytes, bytes));
            }
            let touched = self.touch(base + unit as u32, write);
            own |= touched.written;
            let within = (offset % bytes) << 8 | u64::from(size) << 16 | u64::from(write);
            self.digest.mix(u64::from(touched.number) << 32 | within);
        }
        self.digest.mix(of as u64);
        own
    }

    /// What stood at a place before the block writes to it for the first time: the other side may leave it there, and so
    /// does a write to a part of it.
    fn overwritten(&mut self, buffer: &Buffer, place: Place, (offset, bytes): (u64, u64)) {
        let known = self.table.get(place as usize);
        if known.is_some_and(|known| known.block == self.block && known.written) {
            return;
        }
        for at in offset / 4..(offset + bytes).div_ceil(4) {
            match buffer.word(at as usize) {
                Some(Word::Bits(bits)) => self.digest.mix(u64::from(bits) << 1 | 1),
                _ => self.digest.mix(2),
            }
        }
    }

    /// Known bits at a place of global memory.
    fn read(&mut self, buffer: &Buffer, of: usize, (offset, size): (u64, u32)) -> Option<u64> {
        let own = self.access(buffer, of, (offset, size), false);
        let known = &self.known;
        let word = |at: u64| match (own, buffer.word(at as usize)) {
            (true, _) => known.get(&(of, at)).copied(),
            (false, Some(Word::Bits(bits))) => Some(bits),
            _ => None,
        };
        bits(word, offset, size)
    }

    fn write(&mut self, buffer: &Buffer, of: usize, (offset, size): (u64, u32), value: Val) {
        self.access(buffer, of, (offset, size), true);
        self.value(value);
        for at in offset / 4..(offset + u64::from(size)).div_ceil(4) {
            match (value, size) {
                (Val::Bits(bits), 4 | 8) if self.is_record => {
                    let part = (bits >> (32 * (at - offset / 4))) as u32;
                    self.known.insert((of, at), part);
                }
                _ => {
                    self.known.remove(&(of, at));
                }
            }
        }
    }

    /// A thread of a block writes where addresses alone count.
    fn wrote(&mut self, own: (u32, u32), of: usize, offset: u64) {
        self.stores += 1;
        if self.is_record || self.writers.len() >= KEPT {
            return;
        }
        let first = *self.writers.entry((of, offset)).or_insert(own);
        if first != own {
            let place = match first.0 == own.0 {
                true => &mut self.twice,
                false => &mut self.met,
            };
            place.get_or_insert(([first, own], of, offset));
        }
    }

    fn value(&mut self, value: Val) {
        match value {
            Val::Bits(bits) => {
                self.digest.mix(1);
                self.digest.mix(bits);
            }
            Val::Term(_) => self.digest.mix(2),
        }
    }
}

/// Known bits among words.
fn bits(word: impl Fn(u64) -> Option<u32>, offset: u64, size: u32) -> Option<u64> {
    let at = offset / 4;
    match size {
        4 => word(at).map(u64::from),
        8 => Some(u64::from(word(at)?) | u64::from(word(at + 1)?) << 32),
        _ => {
            let whole = u64::from(word(at)?) >> (8 * (offset & 3));
            Some(whole & (u64::MAX >> (64 - 8 * size)))
        }
    }
}

/// Writes known bits, or data, among words of shared or local memory.
fn put(words: &mut [Word], (offset, size): (u64, u32), value: Val, data: Id) {
    let end = (offset + u64::from(size)).div_ceil(4) as usize;
    for at in (offset / 4) as usize..end {
        let Some(word) = words.get_mut(at) else {
            continue;
        };
        let shift = 8 * (offset & 3) as u32;
        *word = match (value, size, *word) {
            (Val::Bits(bits), 4 | 8, _) => {
                Word::Bits((bits >> (32 * (at as u64 - offset / 4))) as u32)
            }
            (Val::Bits(bits), _, Word::Bits(old)) => {
                let mask = (u32::MAX >> (32 - 8 * size)) << shift;
                Word::Bits(old & !mask | (bits as u32) << shift & mask)
            }
            _ => Word::Term(data),
        };
    }
}

fn in_words(words: &[Word], offset: u64, size: u32) -> Option<u64> {
    let word = |at: u64| match words.get(at as usize) {
        Some(&Word::Bits(bits)) => Some(bits),
        _ => None,
    };
    bits(word, offset, size)
}

impl Warp {
    /// [`Warp::read`] for a record.
    pub fn traced_read(
        &mut self,
        m: &mut Machine<'_>,
        lane: usize,
        target: Target,
        size: u32,
    ) -> Val {
        if let Target::Param(offset) = target {
            return m.parameter(offset, size);
        }
        let Some(tracer) = &mut m.tracer else {
            return Val::Bits(0);
        };
        let known = match target {
            Target::Global(of, offset) => tracer.read(&m.memory[of], of, (offset, size)),
            Target::Shared(offset) => {
                tracer.digest.mix(offset << 8 | u64::from(size));
                in_words(&m.shared, offset, size)
            }
            Target::Local(offset) => {
                tracer.digest.mix(offset << 8 | u64::from(size));
                in_words(self.local_words(lane), offset, size)
            }
            Target::Param(_) | Target::Call => Some(0),
        };
        known.map_or(Val::Term(tracer.data), Val::Bits)
    }

    /// [`Warp::write`] for a record.
    pub fn traced_write(
        &mut self,
        m: &mut Machine<'_>,
        (pc, lane): (u32, usize),
        target: Target,
        size: u32,
        value: Val,
    ) -> Result<(), Stop> {
        if let Target::Param(_) = target {
            return Err(m.fault(FaultClass::ReadOnly, self, (pc, lane), None));
        }
        if let Target::Global(of, _) = target
            && m.memory[of].constant
        {
            return Err(m.fault(FaultClass::ReadOnly, self, (pc, lane), None));
        }
        let thread = self.index * crate::lanes::WARP + lane;
        let own = (m.block_number(), thread as u32);
        let Some(tracer) = &mut m.tracer else {
            return Ok(());
        };
        match target {
            Target::Global(of, offset) => {
                tracer.wrote(own, of, offset);
                tracer.write(&m.memory[of], of, (offset, size), value);
            }
            Target::Shared(offset) => {
                tracer.digest.mix(offset << 8 | u64::from(size));
                tracer.value(value);
                put(&mut m.shared, (offset, size), value, tracer.data);
            }
            Target::Local(offset) => {
                tracer.digest.mix(offset << 8 | u64::from(size));
                tracer.value(value);
                put(self.local_words(lane), (offset, size), value, tracer.data);
            }
            Target::Param(_) | Target::Call => {}
        }
        Ok(())
    }

    /// An atomic operation, where addresses alone count.
    pub fn traced_atomic(
        &mut self,
        m: &mut Machine<'_>,
        (pc, mask): (u32, Mask),
        atomic: &Atomic,
    ) -> Result<(), Stop> {
        let Some(tracer) = m.tracer.as_ref().filter(|tracer| !tracer.is_record) else {
            return Err(m.refuse(Refusal::Atomic, pc));
        };
        let data = [u64::from(tracer.data); crate::lanes::WARP];
        for lane in lanes_of(mask) {
            self.target(m, (pc, lane), &atomic.access)?;
        }
        let dsts = atomic.dsts.iter().flatten();
        dsts.for_each(|&dst| self.set(dst, mask, &data, mask));
        Ok(())
    }

    /// A step for lanes whose guard is known to hold, and others whose guard is data.
    pub fn step_traced(
        &mut self,
        m: &mut Machine<'_>,
        current: usize,
        (pc, holds, open): (u32, Mask, Mask),
        op: &Op,
    ) -> Result<Next, Stop> {
        match op {
            Op::Alu { srcs, outs } => {
                if holds != 0 {
                    self.execute(m, current, (pc, holds), op)?;
                }
                self.traced_guard(m, (pc, open), srcs, outs);
            }
            Op::Nop => {}
            _ => return Err(m.refuse(Refusal::Instruction, pc)),
        }
        Ok(Next::Fall)
    }

    /// An instruction for lanes whose guard is data: its results are.
    fn traced_guard(
        &mut self,
        m: &mut Machine<'_>,
        (pc, open): (u32, Mask),
        srcs: &[Src],
        outs: &[Out],
    ) {
        let Some(tracer) = &mut m.tracer else { return };
        tracer.at(pc, open);
        let read = srcs.iter().filter_map(|src| match src {
            Src::Reg(reg) => Some(*reg),
            Src::Const(_) => None,
        });
        for reg in read.chain(outs.iter().map(|out| out.dst)) {
            let at = reg as usize;
            tracer.operand(open, &self.regs[at], self.sym[at]);
        }
        let data = [u64::from(tracer.data); crate::lanes::WARP];
        for out in outs {
            self.set(out.dst, open, &data, open);
        }
    }

    /// What a collective operation finds in its operands; where it is a matrix product, its results are data.
    pub fn traced_operation(
        &mut self,
        m: &mut Machine<'_>,
        (pc, group): (u32, Mask),
        op: &CollectiveOp,
    ) -> bool {
        let product = match op {
            CollectiveOp::Matrix(MatrixOp::Mma(mma)) if group == Mask::MAX => Some(mma),
            _ => None,
        };
        let srcs = match op {
            CollectiveOp::Vote { src, .. }
            | CollectiveOp::Redux { src, .. }
            | CollectiveOp::Matrix(MatrixOp::Move { src, .. }) => vec![*src],
            CollectiveOp::Shuffle { src, b, c, .. } => vec![*src, *b, *c],
            CollectiveOp::Matrix(MatrixOp::Store { srcs, .. }) => srcs.clone(),
            CollectiveOp::Matrix(MatrixOp::WmmaStore { srcs, .. }) => srcs.clone(),
            _ => Vec::new(),
        };
        let parts = product.iter().flat_map(|mma| [&mma.a, &mma.b, &mma.c]);
        let srcs: Vec<Src> = srcs.into_iter().chain(parts.flatten().copied()).collect();
        self.traced_operands(m, (pc, group), &srcs);
        let (Some(mma), Some(tracer)) = (product, &m.tracer) else {
            return false;
        };
        let data = [u64::from(tracer.data); crate::lanes::WARP];
        for &dst in &mma.d {
            self.set(dst, group, &data, group);
        }
        true
    }

    /// Operands of something that lanes do together.
    pub fn traced_operands(&self, m: &mut Machine<'_>, (pc, group): (u32, Mask), srcs: &[Src]) {
        let Some(tracer) = &mut m.tracer else { return };
        tracer.at(pc, group);
        for src in srcs {
            if let Src::Reg(reg) = src {
                let at = *reg as usize;
                tracer.operand(group, &self.regs[at], self.sym[at]);
            }
        }
    }
}
