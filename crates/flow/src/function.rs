//! The trait through which an instruction set shows one function to the analyses.
//!
//! Instructions lie flat in program order, values (registers) are dense numbers, and operands are
//! visited through closures: no allocation, static dispatch. An implementation is a thin view over
//! the instruction set's own data; it must answer the same for the same index every time.

use cranelift_entity::entity_impl;

/// An instruction: its index in program order, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inst(pub u32);
entity_impl!(Inst, "i");

/// A register: a virtual register in PTX; one 32-bit general, predicate or uniform register in
/// SASS. Dense, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u32);
entity_impl!(Value, "v");

/// A register class: an index into [`Function::classes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub u8);

/// What all values of one class have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassInfo {
    /// The instruction set's name for it: `b32`, `b64`, `pred`, `R`, `UR`, …
    pub name: &'static str,
    /// 32-bit general registers that one value takes: 0 for predicates and uniform registers,
    /// 1 for anything up to 32 bits, 2 for 64 bits, 4 for 128 bits.
    pub units: u32,
}

/// Where control goes after an instruction.
///
/// Whatever the kind, an instruction for which [`Function::is_predicated`] holds may also go on to
/// the next instruction, because its guard may be false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// To the next instruction.
    Next,
    /// Into another function, and back to the next instruction.
    Call,
    /// To its single target. With a guard it is a conditional branch.
    Jump,
    /// To its single target or to the next instruction, by a condition that is an operand and no
    /// guard.
    Branch,
    /// To any of its targets (`brx.idx`, `BRX`).
    Indirect,
    /// Out of this function, to its caller. What the caller reads counts as used here.
    Return,
    /// The thread ends.
    Exit,
    /// The thread ends in an error. The values it saw matter to nobody.
    Trap,
}

/// A queue of asynchronous operations whose completion a later instruction awaits: `wgmma` groups
/// in PTX, one of the six dependency barriers in SASS. At most 32 of them, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Queue(pub u8);

/// A set of [`Queue`]s: bit `q` stands for `Queue(q)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues(pub u32);

impl Queues {
    /// No queue.
    pub const NONE: Queues = Queues(0);

    /// Is `queue` in the set?
    pub fn contains(self, queue: Queue) -> bool {
        self.0.checked_shr(u32::from(queue.0)).unwrap_or(0) & 1 != 0
    }
}

/// Can an instruction be executed once more, at another place where its operands hold the same
/// values, to give the same results?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// No, or nobody knows: it has effects, depends on other threads or on memory that may change.
    Never,
    /// Yes, but it takes hundreds of cycles (a division, a global load): the 'long instruction' of
    /// You & Tsai 2011, section 2.2.
    Long,
    /// Yes, at this price in simple instructions.
    Cheap(u32),
}

/// One function, as the analyses see it.
///
/// Execution starts at instruction 0. Control that falls off the last instruction leaves the
/// function as a [`Transfer::Return`] does.
pub trait Function {
    /// Number of instructions; valid [`Inst`]s are below it.
    fn inst_count(&self) -> usize;

    /// Number of values; valid [`Value`]s are below it.
    fn value_count(&self) -> usize;

    /// The register classes; [`Class`] is an index into this table.
    fn classes(&self) -> &[ClassInfo];

    /// The class of a value.
    fn class(&self, value: Value) -> Class;

    /// Visits every value that `inst` reads, its guard predicate and address registers included,
    /// in operand order. A value may be visited more than once.
    fn for_each_use(&self, inst: Inst, visit: impl FnMut(Value));

    /// Visits every value that `inst` writes, in operand order.
    fn for_each_def(&self, inst: Inst, visit: impl FnMut(Value));

    /// May `inst` be skipped because of a guard? Then its definitions do not kill, and control may
    /// go on to the next instruction whatever its [`Transfer`]. A guard that is always true is
    /// none.
    fn is_predicated(&self, inst: Inst) -> bool;

    /// Where control goes after `inst`.
    fn transfer(&self, inst: Inst) -> Transfer;

    /// Visits the targets of a [`Transfer::Jump`], [`Transfer::Branch`] or
    /// [`Transfer::Indirect`], in the order of the instruction's table; no others have any.
    ///
    /// A target equal to [`Function::inst_count`] is a label after the last instruction: control
    /// that goes there returns.
    fn for_each_target(&self, inst: Inst, visit: impl FnMut(Inst));

    /// Visits the values that the hardware may still read or write after `inst` has issued (the
    /// register operands of `wgmma`, a SASS store's data under a read barrier), with the queue
    /// that tells when it is over. They count as live until then. Most instructions hold none.
    fn for_each_held(&self, _inst: Inst, _visit: impl FnMut(Queue, Value)) {}

    /// The queues that are empty, for certain, before `inst` writes anything: all that was held
    /// under them is released.
    fn waits(&self, _inst: Inst) -> Queues {
        Queues::NONE
    }

    /// If all that `inst` does is to copy one value to another of the same class, without a guard:
    /// (the one written, the one read). No instruction has to answer.
    fn copy_of(&self, _inst: Inst) -> Option<(Value, Value)> {
        None
    }

    /// Visits the operands of `inst` that take several values at once (a register pair, the four
    /// registers of a 128-bit load): the values lie in consecutive registers in this order, the
    /// first at a multiple of the number given, a power of two. Operands of one value have none.
    fn for_each_tuple(&self, _inst: Inst, _visit: impl FnMut(&[Value], u32)) {}

    /// Visits the operands of `inst` that are read and written at one place (accumulators): the
    /// value written and the value read must lie in one register.
    fn for_each_tied(&self, _inst: Inst, _visit: impl FnMut(Value, Value)) {}

    /// The register that a value must lie in, if the instruction set or a calling convention says
    /// so (the stack pointer, arguments of a call).
    fn fixed(&self, _value: Value) -> Option<u32> {
        None
    }

    /// The register that a value has, in code that has registers. Values of virtual registers have none.
    fn register(&self, _value: Value) -> Option<u32> {
        None
    }

    /// Can `inst` be executed once more elsewhere? Only asked of unguarded instructions that write
    /// something.
    fn repetition(&self, _inst: Inst) -> Repetition {
        Repetition::Never
    }

    /// May a copy of `inst` stand right before `place`, as far as all goes that is no value here? (In PTX a register
    /// or variable of an inner scope is unknown outside; in SASS predicates and uniform registers change.)
    fn can_stand_before(&self, _inst: Inst, _place: Inst) -> bool {
        true
    }

    /// The name of a value as the instruction set prints it (`%rd12`, `R7`).
    fn value_name(&self, value: Value) -> String;

    /// The text of an instruction on one line, for reports.
    fn inst_text(&self, inst: Inst) -> String;

    /// 32-bit general registers that a value takes; see [`ClassInfo::units`].
    fn units(&self, value: Value) -> u32 {
        self.classes()
            .get(usize::from(self.class(value).0))
            .map_or(0, |class| class.units)
    }
}
