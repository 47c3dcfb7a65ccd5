//! One instruction on terms.

use smallvec::SmallVec;
use warpwright_flow::{Inst, Transfer, Value};

use crate::fold::{IntOp, field_place};
use crate::machine::{Accessed, Loaded, Machine, Observable, REWRITTEN};
use crate::memory::{self, Extent};
use crate::semantics::{Access, Address, Arg, Base, Effect, Meaning, Semantics, Spaces, Step};
use crate::state::{CALLER, CONVERGENCE, MEMORIES};
use crate::term::{Args, Head, Side, Sym, Term, truncate};

/// Where an instruction's results come from.
pub(crate) enum Results {
    None,
    Terms(SmallVec<[Term; 4]>),
    Operation(Sym, Args),
    Event(Term),
}

/// Bytes of the widest element that is never put together of others.
const WORD: u32 = 4;

/// The numbers of these memories.
fn members(spaces: Spaces) -> impl Iterator<Item = usize> {
    (0..5).filter(move |memory| spaces.0 & 1 << memory != 0)
}

impl<S: Semantics> Machine<'_, S> {
    pub(crate) fn guard(&mut self, side: usize, step: &Step) -> Term {
        let Some(guard) = step.guard else {
            return self.truth;
        };
        let term = self.read(side, guard.value);
        if guard.negated {
            self.terms.not(term)
        } else {
            term
        }
    }

    pub(crate) fn arg(&mut self, side: usize, arg: &Arg, guard: Term) -> Term {
        let term = match *arg {
            Arg::Value(value) => self.read(side, value),
            Arg::Not(value) => {
                let term = self.read(side, value);
                self.terms.not(term)
            }
            Arg::Low { value, bits, of } => {
                let term = self.read(side, value);
                let term = self.terms.assume(guard, term);
                self.terms.extract(0, bits, of, term)
            }
            Arg::Plus {
                value,
                by,
                bits,
                of,
            } => {
                let term = self.read(side, value);
                let term = self.terms.assume(guard, term);
                let sum = self.terms.add_const(of, term, by);
                self.terms.extract(0, bits, of, sum)
            }
            Arg::Const(bits) => self.terms.constant(bits),
            Arg::Symbol(ref name, offset) => {
                let symbol = self.terms.symbol(name);
                self.terms.add_const(64, symbol, offset)
            }
            Arg::Address(ref address) => self.address(side, address, guard),
            Arg::Input(ref name) => self.terms.input(name),
            Arg::Coordinate(coordinate) => self.terms.leaf(Head::Coordinate(coordinate)),
            Arg::Sum(ref parts) => parts.iter().fold(self.terms.zero(), |sum, (name, factor)| {
                let part = self.terms.input(name);
                let factor = self.terms.constant(truncate(*factor, 32));
                let part = self.terms.mul(32, part, factor);
                self.terms.add(32, sum, part)
            }),
        };
        self.terms.assume(guard, term)
    }

    fn address(&mut self, side: usize, address: &Address, guard: Term) -> Term {
        let (base, bits) = match address.base {
            Base::Value(value, bits) => {
                let term = self.read(side, value);
                (self.terms.assume(guard, term), bits)
            }
            Base::Pair(low, high) => {
                let halves = [low, high].map(|half| {
                    let half = self.read(side, half);
                    self.terms.assume(guard, half)
                });
                (self.terms.concat(32, &halves), 64)
            }
            Base::Symbol(ref name) => (self.terms.symbol(name), 64),
            Base::Element {
                ref of,
                index,
                scale,
            } => {
                let index = self.read(side, index);
                let index = self.terms.assume(guard, index);
                let scale = self.terms.constant(u64::from(scale));
                let distance = self.terms.mul(32, index, scale);
                let start = self.terms.symbol(of);
                (self.terms.add(32, start, distance), 32)
            }
        };
        self.terms.add_const(bits, base, address.offset)
    }

    pub(crate) fn execute(&mut self, side: usize, inst: Inst, step: &Step, op: Sym) {
        let guard = self.guard(side, step);
        let mut args: Args = step
            .args
            .iter()
            .map(|arg| self.arg(side, arg, guard))
            .collect();
        for &(index, low, high) in &step.bounds {
            self.terms.bound(args[index], low, high);
        }
        if step.reads_flag {
            args.push(self.terms.assume(guard, self.flags[side]));
        }
        let results = match step.effect {
            Effect::Pure => self.compute(step, op, &args),
            Effect::Load { spaces, is_safe } => {
                self.load(side, inst, step, op, &args, guard, spaces, is_safe)
            }
            Effect::Store(spaces) => self.store(side, inst, step, op, &args, guard, spaces),
            Effect::Convergent => self.event(side, inst, op, guard, &args, 1 << CONVERGENCE),
            Effect::InOrder(spaces) => self.in_order(side, inst, op, guard, &args, spaces.0),
            Effect::Ordered => {
                let all = ((1 << MEMORIES) - 1) & !(1 << CALLER);
                let event = self.event(side, inst, op, guard, &args, all);
                if self.functions[side].func.transfer(inst) == Transfer::Call {
                    self.lose_flag(side, guard, &event);
                    if side == REWRITTEN {
                        self.lose_slots();
                    }
                }
                event
            }
            Effect::Leave => self.event(side, inst, op, guard, &args, 1 << CALLER),
            Effect::Branch => Results::None,
        };
        for (index, value) in step.results.iter().enumerate() {
            if let Some(value) = value {
                let term = match step.known.get(index) {
                    Some(&Some((known, high))) if known == high => self.terms.constant(known),
                    Some(&Some((low, high))) => {
                        let term = self.result(&results, index);
                        self.terms.bound(term, low, high);
                        term
                    }
                    _ => self.result(&results, index),
                };
                if step.alignment > 1 {
                    self.terms.align(term, step.alignment);
                }
                self.write(side, *value, term, guard);
            }
        }
        if step.writes_flag {
            let flag = self.flag_after(step.meaning, op, args);
            self.flags[side] = self.terms.select(guard, flag, self.flags[side]);
        }
    }

    /// The carry flag. A difference adds the complement, so it sets the flag where nothing is borrowed (an H100 does so,
    /// against the ISA's text); so does the sum with a constant `c` where `a >= -c`.
    fn flag_after(&mut self, meaning: Meaning, op: Sym, mut args: Args) -> Term {
        let terms = &mut self.terms;
        let is_sum = matches!(
            meaning,
            Meaning::Add(_) | Meaning::MulAdd(_) | Meaning::AddCarry(_) | Meaning::Commutative
        );
        if is_sum {
            terms.in_order(&mut args);
        }
        let (bits, a, least) = match (meaning, args.as_slice()) {
            (Meaning::Sub(bits), &[a, b]) => (bits, a, b),
            (Meaning::Add(bits), &[a, b]) => match terms.as_const(b) {
                Some(0) => return terms.constant(0),
                Some(_) => {
                    let zero = terms.constant(0);
                    (bits, a, terms.sub(bits, zero, b))
                }
                None => return terms.make(Head::Op(op, u8::MAX), args),
            },
            _ => return terms.make(Head::Op(op, u8::MAX), args),
        };
        let is_below = terms.less(bits, false, a, least);
        terms.not(is_below)
    }

    fn result(&mut self, results: &Results, index: usize) -> Term {
        let n = index as u8;
        match results {
            Results::Terms(terms) if index < terms.len() => terms[index],
            Results::Operation(op, args) => self.terms.make(Head::Op(*op, n), args.iter().copied()),
            Results::Event(event) => self.terms.make(Head::Result(n), [*event]),
            // An instruction set that promises results it does not give: equal to nothing.
            _ => self.terms.leaf(Head::Unknown(
                self.node,
                Side::Original,
                Value(index as u32),
            )),
        }
    }

    /// An operation on constants.
    fn fold(&mut self, step: &Step, args: &Args) -> Option<Results> {
        let values: Option<SmallVec<[u64; 4]>> =
            args.iter().map(|&arg| self.terms.as_const(arg)).collect();
        let value = step.fold?.value(&values?)?;
        let first = self.terms.constant(value);
        let other = self.terms.constant(value & 1 ^ 1);
        let count = step.results.len().min(2);
        Some(Results::Terms(SmallVec::from_slice(
            &[first, other][..count],
        )))
    }

    /// A comparison of integers that takes another predicate along is what the two are together.
    fn joined(&mut self, step: &Step, args: &Args) -> Option<Term> {
        let (fold, &[a, b, other]) = (step.fold?, args.as_slice()) else {
            return None;
        };
        let (by, word) = match fold.op {
            IntOp::CompareAnd(by) => (by, "and.pred"),
            IntOp::CompareOr(by) => (by, "or.pred"),
            _ => return None,
        };
        let terms = &mut self.terms;
        let own = terms.compared(by, (fold.bits, fold.signed), [a, b]);
        let mut both = [own, other];
        terms.in_order(&mut both);
        let op = terms.sym(word);
        Some(terms.make(Head::Op(op, 0), both))
    }

    fn compute(&mut self, step: &Step, op: Sym, args: &Args) -> Results {
        if let Some(constant) = self.fold(step, args) {
            return constant;
        }
        if let Some(joined) = self.joined(step, args) {
            return Results::Terms(SmallVec::from_slice(&[joined]));
        }
        let terms = &mut self.terms;
        let term = match (step.meaning, args.as_slice()) {
            (Meaning::Copy, &[a]) => a,
            (Meaning::Add(bits), &[a, b]) => terms.add(bits, a, b),
            (Meaning::Sub(bits), &[a, b]) => terms.sub(bits, a, b),
            (Meaning::Mul(bits), &[a, b]) => terms.mul(bits, a, b),
            // The table itself may stand behind them.
            (Meaning::Logic { bits, table }, args) => {
                terms.logic(bits, table.into(), &args[..args.len().min(3)])
            }
            (Meaning::Permute(order), &[a, b, _]) => {
                let bytes: Vec<_> = (0..4)
                    .map(|at| {
                        let number = u32::from(order >> (4 * at) & 0xf);
                        let from = if number & 7 < 4 { a } else { b };
                        let byte = terms.extract(8 * (number & 3), 8, 32, from);
                        match number & 8 {
                            0 => (8, byte),
                            _ => {
                                let sign = terms.extract(7, 1, 8, byte);
                                (8, terms.sign_extend(1, 8, sign))
                            }
                        }
                    })
                    .collect();
                terms.join_pieces(&bytes)
            }
            (Meaning::Shr(bits), &[a, b]) => match terms.as_const(b) {
                Some(by) => {
                    let quotient = terms.quotient_of_bits(bits, a, by);
                    quotient.unwrap_or_else(|| terms.shift_right(bits, a, by))
                }
                None => terms.make(Head::Op(op, 0), [a, b]),
            },
            (Meaning::ShrSigned(bits), &[a, b]) => match terms.as_const(b) {
                Some(by) => {
                    let at = by.min(u64::from(bits) - 1) as u32;
                    terms.field(bits, true, a, at, bits)
                }
                None => terms.make(Head::Op(op, 0), [a, b]),
            },
            (Meaning::Funnel { left, wrap }, &[a, b, by]) => match terms.as_const(by) {
                Some(by) => {
                    let by = if wrap {
                        by as u32 % 32
                    } else {
                        by.min(32) as u32
                    };
                    let both = terms.concat(32, &[a, b]);
                    terms.extract(if left { 32 - by } else { by }, 32, 64, both)
                }
                None if wrap => {
                    let by = terms.extract(0, 5, 32, by);
                    terms.make(Head::Op(op, 0), [a, b, by])
                }
                None => terms.make(Head::Op(op, 0), [a, b, by]),
            },
            (Meaning::Field { bits, signed }, &[a, at, count]) => {
                match field_place(bits, terms.as_const(at), terms.as_const(count)) {
                    Some((at, count)) => terms.field(bits, signed, a, at, count),
                    None => terms.make(Head::Op(op, 0), [a, at, count]),
                }
            }
            (Meaning::Insert(bits), &[a, b, at, count]) => {
                match field_place(bits, terms.as_const(at), terms.as_const(count)) {
                    Some((at, count)) => terms.insert(bits, a, b, at, count),
                    None => terms.make(Head::Op(op, 0), [a, b, at, count]),
                }
            }
            (Meaning::Extreme { bits, signed, most }, &[a, b]) => {
                terms.extreme(bits, signed, most, a, b)
            }
            (Meaning::Absolute(bits), &[a]) => {
                let zero = terms.constant(0);
                let negative = terms.sub(bits, zero, a);
                terms.extreme(bits, true, true, a, negative)
            }
            (Meaning::MulAdd(bits), &[a, b, c]) => {
                let product = terms.mul(bits, a, b);
                terms.add(bits, product, c)
            }
            (Meaning::MulWide { bits, signed }, &[a, b]) => {
                let product = terms.mul_wide(bits, signed, a, b);
                if bits == 32 && !signed {
                    terms.computed_by(product, [a, b], None);
                }
                product
            }
            (Meaning::MulHigh { bits, signed }, &[a, b]) => {
                let product = terms.mul_wide(bits, signed, a, b);
                if bits == 32 && !signed {
                    terms.computed_by(product, [a, b], None);
                }
                terms.extract(bits, bits, 2 * bits, product)
            }
            (Meaning::MulAddWide { bits, signed }, &[a, b, c]) => {
                let product = terms.mul_wide(bits, signed, a, b);
                let sum = terms.add(2 * bits, product, c);
                if bits == 32 && !signed {
                    terms.computed_by(sum, [a, b], Some(c));
                }
                sum
            }
            (Meaning::Shl(bits), &[a, b]) => terms.shl(op, bits, a, b),
            (Meaning::ZeroExtend { from, to }, &[a]) => terms.zero_extend(from, to, a),
            (Meaning::SignExtend { from, to }, &[a]) => terms.sign_extend(from, to, a),
            (Meaning::Truncate { from, to }, &[a]) => terms.extract(0, to, from, a),
            (Meaning::Unpack(bits), &[a]) => {
                let of = bits * step.results.len() as u32;
                let parts = 0..step.results.len() as u32;
                return Results::Terms(
                    parts
                        .map(|part| terms.extract(part * bits, bits, of, a))
                        .collect(),
                );
            }
            (Meaning::Pack(bits), parts) if !parts.is_empty() => terms.concat(bits, parts),
            (Meaning::Select, &[a, b, condition]) => terms.select(condition, a, b),
            (Meaning::Equal(bits), &[a, b]) => terms.equal(bits, a, b),
            (Meaning::Differ(bits), &[a, b]) => {
                let equal = terms.equal(bits, a, b);
                terms.not(equal)
            }
            (Meaning::Not, &[a]) => terms.not(a),
            (Meaning::Less { bits, signed, form }, &[a, b]) => {
                let (a, b) = if form.swapped { (b, a) } else { (a, b) };
                let less = terms.less(bits, signed, a, b);
                let answer = if form.negated { terms.not(less) } else { less };
                let other = terms.not(answer);
                return Results::Terms(SmallVec::from_slice(&[answer, other]));
            }
            (Meaning::Relation(form), &[a, b]) => {
                let mut args = Args::from_slice(&[a, b]);
                if form.swapped {
                    args.reverse();
                }
                if form.symmetric {
                    terms.in_order(&mut args);
                }
                let relation = terms.make(Head::Op(op, 0), args);
                let answer = if form.negated {
                    terms.not(relation)
                } else {
                    relation
                };
                let other = terms.not(answer);
                return Results::Terms(SmallVec::from_slice(&[answer, other]));
            }
            (Meaning::AddCarry(bits) | Meaning::SubCarry(bits), &[a, b, flag])
                if terms.as_const(a).is_some() && terms.as_const(b).is_some() =>
            {
                let subtracts = matches!(step.meaning, Meaning::SubCarry(_));
                let sum = match subtracts {
                    true => terms.sub(bits, a, b),
                    false => terms.add(bits, a, b),
                };
                let other = terms.add_const(bits, sum, if subtracts { -1 } else { 1 });
                match subtracts {
                    true => terms.select(flag, sum, other),
                    false => terms.select(flag, other, sum),
                }
            }
            (Meaning::Commutative | Meaning::AddCarry(_), args) => {
                let mut args = Args::from_slice(args);
                terms.in_order(&mut args);
                return Results::Operation(op, args);
            }
            (Meaning::FusibleSum, args) => {
                let mut args = Args::from_slice(args);
                if args.iter().any(|&arg| terms.is_no_product(arg)) {
                    terms.in_order(&mut args);
                }
                return Results::Operation(op, args);
            }
            (Meaning::Negate(bits), &[a]) => {
                let zero = terms.constant(0);
                terms.sub(bits, zero, a)
            }
            (Meaning::Divide { bits, signed }, &[a, b])
                if let Some(d) = terms.divisor(bits, signed, a, b) =>
            {
                terms.divide(bits, a, d)
            }
            (Meaning::Remainder { bits, signed }, &[a, b])
                if let Some(d) = terms.divisor(bits, signed, a, b) =>
            {
                terms.remainder(bits, a, d)
            }
            (Meaning::Divide { bits, signed: true }, &[a, b])
                if let Some(d) = terms.positive(bits, b) =>
            {
                terms.divide_signed(bits, a, d)
            }
            (Meaning::Remainder { bits, signed: true }, &[a, b])
                if let Some(d) = terms.positive(bits, b) =>
            {
                let quotient = terms.divide_signed(bits, a, d);
                let whole = terms.mul(bits, quotient, b);
                terms.sub(bits, a, whole)
            }
            _ => return Results::Operation(op, args.clone()),
        };
        Results::Terms(SmallVec::from_slice(&[term]))
    }

    /// The carry flag is not preserved across calls (PTX ISA, 'Extended-Precision Integer Arithmetic').
    fn lose_flag(&mut self, side: usize, guard: Term, call: &Results) {
        if let Results::Event(event) = *call {
            let lost = self.terms.make(Head::Result(u8::MAX), [event]);
            self.flags[side] = self.terms.select(guard, lost, self.flags[side]);
        }
    }

    /// Something of which a thread may not come back, in order among all that touch these memories.
    fn event(
        &mut self,
        side: usize,
        inst: Inst,
        op: Sym,
        guard: Term,
        args: &Args,
        memories: u8,
    ) -> Results {
        self.log.events[side] += 1;
        self.in_order(side, inst, op, guard, args, memories)
    }

    /// Something that keeps its order among all that touch these memories.
    fn in_order(
        &mut self,
        side: usize,
        inst: Inst,
        op: Sym,
        guard: Term,
        args: &Args,
        memories: u8,
    ) -> Results {
        let mut content = Args::from_slice(&[guard]);
        content.extend_from_slice(args);
        self.log.observables[side].push(Observable {
            inst,
            memories,
            op,
            content: content.clone(),
            is_store: false,
        });
        let touched = (0..MEMORIES).filter(|memory| memories & 1 << memory != 0);
        content.extend(touched.clone().map(|memory| self.memories[side][memory]));
        let event = self.terms.make(Head::Event(op), content);
        for memory in touched {
            self.memories[side][memory] = self.terms.make(Head::After(memory as u8), [event]);
        }
        Results::Event(event)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one instruction")]
    fn load(
        &mut self,
        side: usize,
        inst: Inst,
        step: &Step,
        op: Sym,
        args: &Args,
        guard: Term,
        spaces: Spaces,
        is_safe: bool,
    ) -> Results {
        let Some(access) = &step.access else {
            let content = self.seen(side, args, None, spaces);
            self.loaded(side, inst, op, &content, guard, is_safe);
            return Results::Operation(op, content);
        };
        let address = self.address(side, &access.address, guard);
        if self.terms.is_private(address) {
            return self.load_slots(side, inst, access, address, guard);
        }
        self.accessed(side, inst, step, access, address, guard);
        let halves = access.words(spaces);
        let word = Access {
            bytes: access.bytes / halves,
            lanes: access.lanes * halves,
            ..access.clone()
        };
        let mut words = SmallVec::<[Term; 8]>::new();
        for lane in 0..word.lanes {
            let address = self.element(&word, address, lane);
            let extent = self.extent(&word, address, spaces);
            let mut content = args.clone();
            content.insert(0, address);
            let content = self.seen(side, &content, extent, spaces);
            words.push(self.loaded(side, inst, op, &content, guard, is_safe));
        }
        let lanes = words.chunks_exact(halves as usize);
        Results::Terms(lanes.map(|parts| self.terms.concat(32, parts)).collect())
    }

    /// A load's arguments and the memories that it sees.
    fn seen(&self, side: usize, args: &Args, extent: Option<Extent>, spaces: Spaces) -> Args {
        let now = members(spaces).map(|memory| self.memories[side][memory]);
        let seen = now.map(|now| memory::version(&self.terms, &self.extents, now, extent));
        args.iter().copied().chain(seen).collect()
    }

    fn loaded(
        &mut self,
        side: usize,
        inst: Inst,
        op: Sym,
        content: &Args,
        guard: Term,
        is_safe: bool,
    ) -> Term {
        let term = self.terms.make(Head::Op(op, 0), content.iter().copied());
        self.log.loads[side].push(Loaded {
            inst,
            term,
            guard,
            is_safe,
            after: self.log.events[side],
        });
        term
    }

    fn accessed(
        &mut self,
        side: usize,
        inst: Inst,
        step: &Step,
        access: &Access,
        address: Term,
        guard: Term,
    ) {
        let bytes = access.bytes * access.lanes;
        let is_wide = access.lanes > 1 || bytes > WORD;
        self.log.accesses[side].push(Accessed {
            inst,
            address,
            bytes,
            guard,
            is_wide: is_wide
                && !step.is_aligned
                && self.terms.alignment(address) < u64::from(bytes),
            after: self.log.events[side],
        });
    }

    /// The address of an element of a vector.
    fn element(&mut self, access: &Access, address: Term, lane: u32) -> Term {
        let bits = match access.address.base {
            Base::Value(_, bits) => bits,
            Base::Pair(..) | Base::Symbol(_) => 64,
            Base::Element { .. } => 32,
        };
        let distance = i64::from(lane * access.bytes);
        self.terms.add_const(bits, address, distance)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one instruction")]
    fn store(
        &mut self,
        side: usize,
        inst: Inst,
        step: &Step,
        op: Sym,
        args: &Args,
        guard: Term,
        spaces: Spaces,
    ) -> Results {
        let Some(access) = &step.access else {
            let mut content = Args::from_slice(&[guard]);
            content.extend_from_slice(args);
            self.stored(side, inst, op, &content, None, spaces);
            return Results::None;
        };
        let address = self.address(side, &access.address, guard);
        if self.terms.is_private(address) {
            self.store_slots(side, inst, access, address, args, guard);
            return Results::None;
        }
        self.accessed(side, inst, step, access, address, guard);
        // Behind the values there may be a policy for the cache, the same for all.
        let (values, rest) = args.split_at((access.lanes as usize).min(args.len()));
        for (lane, &value) in values.iter().enumerate() {
            let address = self.element(access, address, lane as u32);
            let extent = self.extent(access, address, spaces);
            let mut content = Args::from_slice(&[guard, address, value]);
            content.extend_from_slice(rest);
            self.stored(side, inst, op, &content, extent, spaces);
        }
        Results::None
    }

    fn stored(
        &mut self,
        side: usize,
        inst: Inst,
        op: Sym,
        content: &Args,
        extent: Option<Extent>,
        spaces: Spaces,
    ) {
        let memories = spaces.0;
        self.log.observables[side].push(Observable {
            inst,
            memories,
            op,
            content: content.clone(),
            is_store: true,
        });
        for memory in members(spaces) {
            let now = self.memories[side][memory];
            self.memories[side][memory] =
                memory::store(&mut self.terms, &mut self.extents, now, op, content, extent);
        }
    }

    /// The bytes that an element of an access to a single state space touches.
    fn extent(&self, access: &Access, address: Term, spaces: Spaces) -> Option<Extent> {
        (spaces.0.count_ones() == 1).then(|| Extent::new(&self.terms, address, access.bytes))
    }
}
