//! Instructions of several lanes on terms: votes, shuffles, reductions, matrix products, asynchronous copies.

use rustc_hash::FxHashMap;

use crate::lanes::{Lanes, Mask, WARP, lanes_of, mask_where};
use crate::matrix::{Element, MatrixOp, Mma, Tile, a_element, b_element, c_element, wmma_element};
use crate::program::{
    Access, BarrierKind, CollectiveOp, CopyAsync, Members, Op, Reduce, ShuffleMode, Src, Vote,
};
use crate::symbolic::fork::put;
use crate::symbolic::machine::{FaultClass, Machine, Note, Refusal, Stop};
use crate::symbolic::memory::By;
use crate::symbolic::term::{Domain, Kind, Mode, Node, Val};
use crate::symbolic::warp::{Next, Strand, Target, Wait, Warp};

/// Copies that `cp.async` has begun: lane, destination, words, and the group of each that is committed.
#[derive(Default)]
pub(crate) struct Copies {
    begun: Vec<Begun>,
    /// Groups that each lane has committed.
    committed: [u32; 32],
}

struct Begun {
    lane: usize,
    /// Where it comes from, and how many bytes.
    from: Option<(Target, u64)>,
    to: u64,
    words: Vec<Val>,
    group: u32,
}

impl Copies {
    pub fn commit(&mut self, mask: Mask) {
        lanes_of(mask).for_each(|lane| self.committed[lane] += 1);
    }
}

impl Warp {
    pub fn collective(
        &mut self,
        m: &mut Machine<'_>,
        current: usize,
        (pc, mask): (u32, Mask),
        members: Members,
        op: &CollectiveOp,
    ) -> Result<Next, Stop> {
        if !self.assumed.is_empty() {
            let predicate = self.assumption();
            return Err(m.refuse(Refusal::Collective(predicate), pc));
        }
        let masks = match members {
            Members::Mask(src) => self.known(m, src, mask, pc, Refusal::Operand)?,
            Members::All => [u64::from(self.all()); WARP],
            Members::Present => {
                self.together(m, pc, mask)?;
                [u64::from(mask); WARP]
            }
        };
        let (mut left, mut waiting) = (mask, 0);
        while left != 0 {
            let first = left.trailing_zeros() as usize;
            let wanted = masks[first] as Mask;
            let group = left & mask_where(|lane| masks[lane] as Mask == wanted);
            left &= !group;
            if let Some(lane) = lanes_of(group & !wanted).next() {
                return Err(m.fault(FaultClass::WarpDivergence, self, (pc, lane), None));
            }
            if wanted & self.live() & !group == 0 {
                self.perform(m, (pc, group), wanted, op)?;
                self.parted &= group != self.live();
                // What lanes hand on to one another orders no memory.
                if matches!(op, CollectiveOp::WarpBarrier) {
                    self.synchronise(group);
                }
            } else {
                waiting |= group;
            }
        }
        if waiting == 0 {
            return Ok(Next::Fall);
        }
        let strand = self.strands[current];
        self.strands[current].mask &= !waiting;
        self.strands[current].pc = pc + 1;
        self.strands.push(Strand {
            pc,
            mask: waiting,
            wait: Wait::Collective,
        });
        self.drop_empty();
        // `bar.warp.sync` may be met at another place.
        if matches!(op, CollectiveOp::WarpBarrier) {
            self.meet_elsewhere(m, strand.pc)?;
        }
        Ok(Next::Reschedule)
    }

    /// Lanes that wait at warp barriers at different places release one another.
    fn meet_elsewhere(&mut self, m: &Machine<'_>, _pc: u32) -> Result<(), Stop> {
        let code = &m.program.functions[m.program.kernel].code;
        let is_barrier = |s: &Strand| {
            let op = code.get(s.pc as usize).map(|step| &step.op);
            s.wait == Wait::Collective
                && matches!(
                    op,
                    Some(Op::Collective {
                        op: CollectiveOp::WarpBarrier,
                        ..
                    })
                )
        };
        let here = self.strands.iter().filter(|s| is_barrier(s));
        let here = here.fold(0, |all, s| all | s.mask);
        if here != self.live() || self.strands.len() < 2 {
            return Ok(());
        }
        // All lanes stand at some warp barrier: each names all lanes, or nobody would be released.
        self.synchronise(here);
        for strand in &mut self.strands {
            strand.wait = Wait::Ready;
            strand.pc += 1;
        }
        Ok(())
    }

    fn perform(
        &mut self,
        m: &mut Machine<'_>,
        (pc, group): (u32, Mask),
        members: Mask,
        op: &CollectiveOp,
    ) -> Result<(), Stop> {
        if m.tracer.is_some() && self.traced_operation(m, (pc, group), op) {
            return Ok(());
        }
        match op {
            CollectiveOp::WarpBarrier => {}
            CollectiveOp::Vote { kind, dst, src } => {
                self.vote(m, (pc, group), *kind, (*dst, *src))?
            }
            CollectiveOp::Shuffle {
                mode,
                dst,
                pred,
                src,
                b,
                c,
            } => {
                let (values, sym, valid) =
                    self.shuffle(m, (pc, group), members, *mode, [*src, *b, *c])?;
                if let Some(dst) = dst {
                    self.set(*dst, group, &values, sym);
                }
                if let Some(pred) = pred {
                    self.set(*pred, group, &valid, 0);
                }
            }
            CollectiveOp::Redux { dst, src, f } => {
                let (values, sym) = self.get(m, *src);
                let known = lanes_of(group).map(|lane| values[lane]).reduce(f);
                let result = match (sym & group, known) {
                    (0, Some(bits)) => Val::Bits(bits),
                    _ => self.redux(m, (pc, group), *src)?,
                };
                lanes_of(group).for_each(|lane| self.set_lane(*dst, lane, result));
            }
            CollectiveOp::Elect { .. } if group.count_ones() > 1 => {
                return Err(m.refuse(Refusal::Together, pc));
            }
            CollectiveOp::Elect { dst, pred } => {
                let leader = group.trailing_zeros() as usize;
                if let Some(dst) = dst {
                    self.set(*dst, group, &[leader as u64; WARP], 0);
                }
                let is: Lanes = std::array::from_fn(|lane| u64::from(lane == leader));
                self.set(*pred, group, &is, 0);
            }
            CollectiveOp::MatchAny { dst, src, .. } => {
                let values = self.known(m, *src, group, pc, Refusal::Operand)?;
                let same: Lanes = std::array::from_fn(|lane| {
                    u64::from(group & mask_where(|other| values[other] == values[lane]))
                });
                self.set(*dst, group, &same, 0);
            }
            CollectiveOp::MatchAll { dst, pred, src, .. } => {
                let values = self.known(m, *src, group, pc, Refusal::Operand)?;
                let first = values[group.trailing_zeros() as usize];
                let all = lanes_of(group).all(|lane| values[lane] == first);
                let mask = if all { u64::from(group) } else { 0 };
                self.set(*dst, group, &[mask; WARP], 0);
                if let Some(pred) = pred {
                    self.set(*pred, group, &[u64::from(all); WARP], 0);
                }
            }
            CollectiveOp::Matrix(matrix) => {
                if group != Mask::MAX {
                    let lane = group.trailing_zeros() as usize;
                    return Err(m.fault(FaultClass::WarpDivergence, self, (pc, lane), None));
                }
                self.matrix(m, pc, matrix)?;
            }
        }
        Ok(())
    }

    fn vote(
        &mut self,
        m: &mut Machine<'_>,
        (pc, group): (u32, Mask),
        kind: Vote,
        (dst, src): (u32, Src),
    ) -> Result<(), Stop> {
        let all: Vec<Val> = lanes_of(group)
            .map(|lane| self.lane(m, src, lane))
            .collect();
        let fold = |m: &mut Machine<'_>, all: &[Val], and: bool| {
            let mut result = Val::Bits(u64::from(and));
            for &value in all {
                result = match and {
                    true => m.terms.and(result, value),
                    false => m.terms.or(result, value),
                };
            }
            result
        };
        let result = match kind {
            Vote::All => fold(m, &all, true),
            Vote::Any => fold(m, &all, false),
            Vote::Uniform => {
                let (every, any) = (fold(m, &all, true), fold(m, &all, false));
                let none = m.terms.not(any);
                m.terms.or(every, none)
            }
            Vote::Ballot => {
                let values = self.known(m, src, group, pc, Refusal::Operand)?;
                Val::Bits(u64::from(group & mask_where(|lane| values[lane] & 1 != 0)))
            }
        };
        let (mut values, mut sym) = ([0; WARP], 0);
        lanes_of(group).for_each(|lane| put(&mut values, &mut sym, lane, result));
        self.set(dst, group, &values, sym);
        Ok(())
    }

    /// `redux` of terms, by the instruction's name.
    fn redux(
        &mut self,
        m: &mut Machine<'_>,
        (pc, group): (u32, Mask),
        src: Src,
    ) -> Result<Val, Stop> {
        let text = m.place(pc).instruction;
        let opcode = super::form::opcode(&text).to_owned();
        let has = |word: &str| opcode.split('.').any(|w| w == word);
        let signed = if has("s32") { Mode::OTHER } else { 0 };
        let mode = match has("f32") {
            true => Mode::new(Domain::F32, if has("NaN") { Mode::NAN } else { 0 }),
            false => Mode::new(Domain::I32, signed),
        };
        let mut all = lanes_of(group)
            .map(|lane| self.lane(m, src, lane))
            .collect::<Vec<_>>()
            .into_iter();
        let mut result = all.next().unwrap_or(Val::Bits(0));
        for value in all {
            result = match () {
                () if has("add") => match (result, value) {
                    (Val::Bits(a), Val::Bits(b)) => {
                        Val::Bits((a as u32).wrapping_add(b as u32).into())
                    }
                    _ => m.terms.iadd(Domain::I32, result, value),
                },
                () if (has("min") || has("max")) && !has("abs") => {
                    m.terms.extreme(has("max"), mode, result, value)
                }
                () => return Err(m.refuse(Refusal::Instruction, pc)),
            };
        }
        Ok(result)
    }

    fn shuffle(
        &mut self,
        m: &mut Machine<'_>,
        (pc, group): (u32, Mask),
        _members: Mask,
        mode: ShuffleMode,
        [src, b, c]: [Src; 3],
    ) -> Result<(Lanes, Mask, Lanes), Stop> {
        let b = self.known(m, b, group, pc, Refusal::Operand)?;
        let c = self.known(m, c, group, pc, Refusal::Operand)?;
        let (mut values, mut sym, mut valid) = ([0; WARP], 0, [0; WARP]);
        for lane in lanes_of(group) {
            let distance = (b[lane] & 0x1f) as usize;
            let (clamp, segment) = ((c[lane] & 0x1f) as usize, (c[lane] >> 8 & 0x1f) as usize);
            let last = lane & segment | clamp & !segment;
            let (from, inside) = match mode {
                ShuffleMode::Up => (
                    lane.wrapping_sub(distance),
                    lane as isize - distance as isize >= last as isize,
                ),
                ShuffleMode::Down => (lane + distance, lane + distance <= last),
                ShuffleMode::Butterfly => (lane ^ distance, lane ^ distance <= last),
                ShuffleMode::Index => {
                    let from = lane & segment | distance & !segment;
                    (from, from <= last)
                }
            };
            let from = if inside { from } else { lane };
            // Not defined (PTX ISA, 'shfl.sync'), which harms nobody who does not use it.
            let value = match group >> from & 1 {
                0 => m.undefined(),
                _ => {
                    let value = self.lane(m, src, from);
                    m.terms.extract(value, 0, 32)
                }
            };
            put(&mut values, &mut sym, lane, value);
            valid[lane] = u64::from(inside);
        }
        Ok((values, sym, valid))
    }

    // ---- asynchronous copies

    pub fn copy_async(
        &mut self,
        m: &mut Machine<'_>,
        pc: u32,
        mask: Mask,
        copy: &CopyAsync,
    ) -> Result<(), Stop> {
        m.traced(pc, mask);
        let total = copy.dst.bytes();
        let zeros = [0; WARP];
        let ignored = match copy.ignore {
            Some(p) => self.known(m, p, mask, pc, Refusal::Operand)?,
            None => zeros,
        };
        let sizes = match copy.src_size {
            Some(size) => self.known(m, size, mask, pc, Refusal::Operand)?,
            None => [total; WARP],
        };
        for lane in lanes_of(mask) {
            let target = self.target(m, (pc, lane), &copy.dst)?;
            let Target::Shared(to) = target else {
                return Err(m.fault(FaultClass::OutOfBounds, self, (pc, lane), None));
            };
            let size = if ignored[lane] & 1 != 0 {
                0
            } else {
                sizes[lane] & 0xffff_ffff
            };
            let mut words = vec![Val::Bits(0); total as usize / 4];
            let mut source_at = None;
            if size > 0 {
                if size % 4 != 0 || size > total {
                    return Err(m.refuse(Refusal::Instruction, pc));
                }
                let source = Access {
                    elem: 4,
                    count: size as u32 / 4,
                    ..copy.src
                };
                let from = self.target(m, (pc, lane), &source)?;
                source_at = Some((from, size));
                for (at, word) in words.iter_mut().enumerate().take(size as usize / 4) {
                    *word = self.read(m, (pc, lane), from, (4 * at as u64, 4));
                }
            }
            let group = self.copies.committed[lane];
            let begun = Begun {
                lane,
                from: source_at,
                to,
                words,
                group,
            };
            // It may be done at once, or only when it is waited for.
            self.noted(m, (pc, lane), &begun);
            m.copy_is_under_way(&begun, true);
            self.copies.begun.push(begun);
        }
        Ok(())
    }

    /// A copy touches what it reads and writes.
    fn noted(&self, m: &mut Machine<'_>, at: (u32, usize), copy: &Begun) {
        if m.tracer.is_some() {
            return;
        }
        let bytes = 4 * copy.words.len() as u32;
        m.note(self, at, (None, copy.to, bytes), Some(None), By::Plain);
        if let Some((Target::Global(of, offset), bytes)) = copy.from {
            m.note(self, at, (Some(of), offset, bytes as u32), None, By::Plain);
        }
    }

    /// Ends the copies of lanes but for so many youngest groups.
    pub fn deliver(
        &mut self,
        m: &mut Machine<'_>,
        pc: u32,
        mask: Mask,
        pending: u32,
    ) -> Result<(), Stop> {
        if self.copies.begun.is_empty() {
            return Ok(());
        }
        let committed = self.copies.committed;
        // `wait_all` and the end wait for what is in no group yet, too.
        let done = |copy: &Begun| {
            let old = committed[copy.lane].saturating_sub(pending);
            mask >> copy.lane & 1 != 0 && (pending == u32::MAX || copy.group < old)
        };
        let begun = std::mem::take(&mut self.copies.begun);
        let (ready, left): (Vec<Begun>, Vec<Begun>) = begun.into_iter().partition(done);
        self.copies.begun = left;
        for copy in ready {
            m.copy_is_under_way(&copy, false);
            self.noted(m, (pc, copy.lane), &copy);
            for (at, word) in copy.words.into_iter().enumerate() {
                let target = Target::Shared(copy.to);
                self.write(m, (pc, copy.lane), target, (4 * at as u64, 4), word)?;
            }
        }
        Ok(())
    }

    // ---- matrices

    fn matrix(&mut self, m: &mut Machine<'_>, pc: u32, op: &MatrixOp) -> Result<(), Stop> {
        match op {
            MatrixOp::Mma(mma) => self.mma(m, pc, mma),
            MatrixOp::Load {
                access,
                dsts,
                transposed,
            } => {
                for (number, &dst) in dsts.iter().enumerate() {
                    let mut rows = [[Val::Bits(0); 8]; 8];
                    for (row, elements) in rows.iter_mut().enumerate() {
                        let lane = number * 8 + row;
                        let target = self.target(m, (pc, lane), access)?;
                        for (col, element) in elements.iter_mut().enumerate() {
                            *element = self.read(m, (pc, lane), target, (2 * col as u64, 2));
                        }
                    }
                    self.set_pairs(m, dst, &rows, *transposed);
                }
                Ok(())
            }
            MatrixOp::Store {
                access,
                srcs,
                transposed,
            } => {
                for (number, &src) in srcs.iter().enumerate() {
                    let rows = self.pairs_of(m, src, *transposed);
                    for (row, elements) in rows.iter().enumerate() {
                        let lane = number * 8 + row;
                        let target = self.target(m, (pc, lane), access)?;
                        for (col, &element) in elements.iter().enumerate() {
                            self.write(m, (pc, lane), target, (2 * col as u64, 2), element)?;
                        }
                    }
                }
                Ok(())
            }
            MatrixOp::Move { dst, src } => {
                let rows = self.pairs_of(m, *src, false);
                self.set_pairs(m, *dst, &rows, true);
                Ok(())
            }
            MatrixOp::WmmaLoad {
                access,
                stride,
                tile,
                dsts,
            } => {
                let stride = self.known(m, *stride, Mask::MAX, pc, Refusal::Operand)?;
                let bits = tile.element.bits() as u32;
                let per = tile.element.register_bits() / tile.element.bits();
                for (lane, &stride) in stride.iter().enumerate() {
                    for (r, &dst) in dsts.iter().enumerate() {
                        let mut all = Val::Bits(0);
                        for j in 0..per {
                            let count = dsts.len() * per;
                            let total = tile.rows * tile.cols;
                            let index = fragment(m, total, (count, lane, r * per + j));
                            let element = tile_access(access, *tile, stride, index);
                            let target = self.target(m, (pc, lane), &element)?;
                            let part = self.read(m, (pc, lane), target, (0, element.elem));
                            all = join(m, all, j as u32 * bits, part, bits);
                        }
                        self.set_lane(dst, lane, all);
                    }
                }
                Ok(())
            }
            MatrixOp::WmmaStore {
                access,
                stride,
                tile,
                srcs,
            } => {
                let stride = self.known(m, *stride, Mask::MAX, pc, Refusal::Operand)?;
                let bits = tile.element.bits() as u32;
                let per = tile.element.register_bits() / tile.element.bits();
                for (lane, &stride) in stride.iter().enumerate() {
                    for i in 0..srcs.len() * per {
                        let total = tile.rows * tile.cols;
                        let index = fragment(m, total, (srcs.len() * per, lane, i));
                        let element = tile_access(access, *tile, stride, index);
                        let all = self.lane(m, srcs[i / per], lane);
                        let part = m.terms.extract(all, (i % per) as u32 * bits, bits);
                        let target = self.target(m, (pc, lane), &element)?;
                        self.write(m, (pc, lane), target, (0, element.elem), part)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// The 16-bit elements that lanes hold of an 8×8 matrix.
    fn set_pairs(&mut self, m: &mut Machine<'_>, dst: u32, rows: &[[Val; 8]; 8], transposed: bool) {
        for lane in 0..WARP {
            let (row, col) = (lane / 4, lane % 4 * 2);
            let at = |r: usize, c: usize| if transposed { rows[c][r] } else { rows[r][c] };
            let value = m.terms.concat(at(row, col), 16, at(row, col + 1), 32);
            self.set_lane(dst, lane, value);
        }
    }

    fn pairs_of(&mut self, m: &mut Machine<'_>, src: Src, transposed: bool) -> [[Val; 8]; 8] {
        let mut rows = [[Val::Bits(0); 8]; 8];
        for lane in 0..WARP {
            let (row, col) = (lane / 4, lane % 4 * 2);
            let value = self.lane(m, src, lane);
            for j in 0..2 {
                let element = m.terms.extract(value, 16 * j as u32, 16);
                match transposed {
                    true => rows[col + j][row] = element,
                    false => rows[row][col + j] = element,
                }
            }
        }
        rows
    }

    /// A matrix product as sums of products, in an order that nobody states.
    fn mma(&mut self, m: &mut Machine<'_>, pc: u32, mma: &Mma) -> Result<(), Stop> {
        if mma.saturate || mma.a_type == Element::Bit {
            return Err(m.refuse(Refusal::Instruction, pc));
        }
        let options = m.options;
        let at = |rows: usize, cols: usize, count: usize, lane: usize, i: usize| {
            let index = held(options.reversed, rows * cols, (count, lane, i));
            (index / cols, index % cols)
        };
        let per = |ty: Element| ty.register_bits() / ty.bits();
        let (a_per, b_per, c_per) = (per(mma.a_type), per(mma.b_type), per(mma.c_type));
        let a = self.dense(
            m,
            (&mma.a, mma.a_type),
            (mma.m, mma.k),
            |lane, r, j| match mma.wmma {
                true => at(mma.m, mma.k, mma.a.len() * a_per, lane, r * a_per + j),
                false => a_element(mma.m, a_per, lane, r, j),
            },
        );
        let b = self.dense(
            m,
            (&mma.b, mma.b_type),
            (mma.k, mma.n),
            |lane, r, j| match mma.wmma {
                true => at(mma.k, mma.n, mma.b.len() * b_per, lane, r * b_per + j),
                false => b_element(b_per, lane, r, j),
            },
        );
        let held = mma.m * mma.n / WARP;
        let place = |lane: usize, i: usize| match mma.wmma {
            true => at(mma.m, mma.n, held, lane, i),
            false => c_element(lane, i),
        };
        let c = self.dense(m, (&mma.c, mma.c_type), (mma.m, mma.n), |lane, r, j| {
            place(lane, r * c_per + j)
        });
        let mut d = vec![Val::Bits(0); mma.m * mma.n];
        for row in 0..mma.m {
            for col in 0..mma.n {
                let pairs: Vec<(Val, Val)> = (0..mma.k)
                    .map(|k| (a[row * mma.k + k], b[k * mma.n + col]))
                    .collect();
                d[row * mma.n + col] = dot(m, mma, &pairs, c[row * mma.n + col]);
            }
        }
        let (bits, d_per) = (mma.d_type.bits() as u32, per(mma.d_type));
        for lane in 0..WARP {
            for (r, &dst) in mma.d.iter().enumerate() {
                let mut all = Val::Bits(0);
                for j in 0..d_per {
                    let (row, col) = place(lane, r * d_per + j);
                    all = join(m, all, j as u32 * bits, d[row * mma.n + col], bits);
                }
                self.set_lane(dst, lane, all);
            }
        }
        Ok(())
    }

    /// All elements of an operand, row by row.
    fn dense(
        &mut self,
        m: &mut Machine<'_>,
        (srcs, ty): (&[Src], Element),
        (rows, cols): (usize, usize),
        place: impl Fn(usize, usize, usize) -> (usize, usize),
    ) -> Vec<Val> {
        let (bits, per) = (ty.bits(), ty.register_bits() / ty.bits());
        let mut all = vec![Val::Bits(0); rows * cols];
        for lane in 0..WARP {
            for (r, &src) in srcs.iter().enumerate() {
                for j in 0..per {
                    let value = self.lane(m, src, lane);
                    let part = m.terms.extract(value, (bits * j) as u32, bits as u32);
                    let (row, col) = place(lane, r, j);
                    if let Some(at) = all.get_mut(row * cols + col) {
                        *at = part;
                    }
                }
            }
        }
        all
    }
}

fn join(m: &mut Machine<'_>, low: Val, at: u32, part: Val, bits: u32) -> Val {
    match at {
        0 => m.terms.extract(part, 0, bits),
        _ => m.terms.concat(low, at, part, at + bits),
    }
}

/// An element of a product: exact products, summed.
fn dot(m: &mut Machine<'_>, mma: &Mma, pairs: &[(Val, Val)], start: Val) -> Val {
    if let Element::Int { bits, signed } = mma.a_type {
        let mut sum = start;
        let widen = |m: &mut Machine<'_>, v: Val, signed: bool| match signed {
            true => m.terms.sext(v, bits, 32),
            false => m.terms.extract(v, 0, bits),
        };
        let other = matches!(mma.b_type, Element::Int { signed: true, .. });
        for &(x, y) in pairs {
            let (x, y) = (widen(m, x, signed), widen(m, y, other));
            let product = match (x, y) {
                (Val::Bits(x), Val::Bits(y)) => {
                    Val::Bits(u64::from((x as u32).wrapping_mul(y as u32)))
                }
                _ => m.terms.imul(Domain::I32, x, y),
            };
            sum = match (sum, product) {
                (Val::Bits(a), Val::Bits(b)) => {
                    Val::Bits(u64::from((a as u32).wrapping_add(b as u32)))
                }
                _ => m.terms.iadd(Domain::I32, sum, product),
            };
        }
        return sum;
    }
    let wide = match mma.a_type {
        Element::F64 => Domain::F64,
        _ => Domain::F32,
    };
    let of = if mma.wmma { Mode::WMMA } else { 0 };
    let mut flags = Mode::MATRIX | Mode::FIRST | of;
    let mut sum = widened(m, start, mma.c_type);
    for &(x, y) in pairs {
        let (x, y) = (widened(m, x, mma.a_type), widened(m, y, mma.b_type));
        sum = m.terms.ffma(Mode::new(wide, flags), x, y, sum);
        flags = Mode::MATRIX;
    }
    let to = format(mma.d_type);
    if to == wide {
        sum
    } else {
        converted(m, sum, wide, to, Mode::MATRIX)
    }
}

fn format(ty: Element) -> Domain {
    match ty {
        Element::F16 => Domain::F16,
        Element::Bf16 => Domain::Bf16,
        Element::F64 => Domain::F64,
        _ => Domain::F32,
    }
}

/// An element in the format of the sums. `tf32` drops bits: a function of its own.
fn widened(m: &mut Machine<'_>, value: Val, ty: Element) -> Val {
    match ty {
        Element::F16 | Element::Bf16 => converted(m, value, format(ty), Domain::F32, 0),
        Element::Tf32 | Element::E4m3 | Element::E5m2 => {
            let name = format!("element {ty:?}");
            let number = m.terms.function(&name, Domain::F32);
            m.terms.apply(number, &[value])
        }
        _ => value,
    }
}

fn converted(m: &mut Machine<'_>, value: Val, from: Domain, to: Domain, flags: u32) -> Val {
    let a = m.terms.term(value);
    let mode = Mode::new(to, flags);
    Val::Term(
        m.terms
            .intern(Node::new(Kind::FCvt, mode.0, a, from as u32, 0)),
    )
}

/// One more of something, or one fewer.
fn count<K: Eq + std::hash::Hash>(all: &mut FxHashMap<K, u32>, key: K, more: bool) {
    if more {
        *all.entry(key).or_insert(0) += 1;
    } else if let Some(known) = all.get_mut(&key) {
        *known -= 1;
        if *known == 0 {
            all.remove(&key);
        }
    }
}

/// Which element of a fragment a lane has is not stated: the other way round it is another one.
fn fragment(m: &mut Machine<'_>, total: usize, place: (usize, usize, usize)) -> usize {
    m.report.notes.insert(Note::Fragments);
    held(m.options.reversed, total, place)
}

fn held(turned: bool, total: usize, (count, lane, i): (usize, usize, usize)) -> usize {
    match turned {
        true => wmma_element(total, count, WARP - 1 - lane, count - 1 - i),
        false => wmma_element(total, count, lane, i),
    }
}

/// The access to one element of a tile.
fn tile_access(access: &Access, tile: Tile, stride: u64, index: usize) -> Access {
    let (row, col) = ((index / tile.cols) as u64, (index % tile.cols) as u64);
    let stride = stride & 0xffff_ffff;
    let elements = match tile.row_major {
        true => row * stride + col,
        false => col * stride + row,
    };
    let bytes = (tile.element.bits() / 8) as u32;
    Access {
        offset: access
            .offset
            .wrapping_add((elements * u64::from(bytes)) as i64),
        elem: bytes,
        count: 1,
        align: bytes,
        ..*access
    }
}

impl Machine<'_> {
    /// A copy begins, or is waited for.
    fn copy_is_under_way(&mut self, copy: &Begun, begins: bool) {
        if self.tracer.is_some() {
            return;
        }
        let to = copy.to / 4;
        for word in to..to + copy.words.len() as u64 {
            count(&mut self.arriving, word, begins);
        }
        if let Some((Target::Global(of, offset), bytes)) = copy.from {
            for word in offset / 4..(offset + bytes).div_ceil(4) {
                count(&mut self.leaving, (of, word), begins);
            }
        }
    }

    /// `bar.red`: what all threads that wait bring, joined, goes to each.
    pub fn reduce_at_barrier(&mut self, warps: &mut [Warp]) -> Result<(), Stop> {
        let program = self.program;
        let code = &program.functions[program.kernel].code;
        let waiting = |warp: &Warp| warp.strands.first().copied();
        let first = warps.iter().find_map(waiting);
        let Some(step) = first.and_then(|s| code.get(s.pc as usize)) else {
            return Ok(());
        };
        let Op::Barrier(barrier) = &step.op else {
            return Ok(());
        };
        let BarrierKind::Reduce { op, dst, src } = barrier.kind else {
            return Ok(());
        };
        let pc = first.map_or(0, |s| s.pc);
        let mut count = 0;
        let mut joined = Val::Bits(u64::from(op == Reduce::And));
        for warp in warps.iter() {
            let Some(strand) = waiting(warp) else {
                continue;
            };
            if strand.pc != pc {
                return Err(self.refuse(Refusal::PartialBarrier, pc));
            }
            warp.traced_operands(self, (pc, strand.mask), &[src]);
            for lane in lanes_of(strand.mask) {
                let value = warp.lane(self, src, lane);
                match (op, value) {
                    (Reduce::And, value) => joined = self.terms.and(joined, value),
                    (Reduce::Or, value) => joined = self.terms.or(joined, value),
                    (Reduce::Popc, Val::Bits(bits)) => count += bits & 1,
                    (Reduce::Popc, Val::Term(id)) => {
                        return Err(self.refuse(Refusal::Operand(id), pc));
                    }
                }
            }
        }
        let result = match op {
            Reduce::Popc => Val::Bits(count),
            _ => joined,
        };
        for warp in warps {
            let Some(strand) = waiting(warp) else {
                continue;
            };
            lanes_of(strand.mask).for_each(|lane| warp.set_lane(dst, lane, result));
        }
        Ok(())
    }
}
