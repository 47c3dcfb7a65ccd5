//! What the checker asks of an instruction set: the meaning of each instruction, as far as it
//! matters for equality.
//!
//! An instruction set translates every instruction into a [`Step`] once. Everything that a step
//! leaves uninterpreted is a function of its [`Step::op`] text and its arguments, so the text must
//! hold whatever decides the result beside them: opcode, modifiers, widths, operand shapes.

use std::fmt;

use smallvec::SmallVec;
use warpwright_flow::{Function, Inst, Queue, Value};

use crate::fold::Fold;

/// A function whose instructions have a meaning.
pub trait Semantics: Function {
    /// What `inst` does.
    fn step(&self, inst: Inst) -> Result<Step, Unsupported>;

    /// Must what an asynchronous operation of this queue reads or writes be left alone from the last
    /// fence on, before the operation, too (`wgmma.fence`)?
    fn needs_fence(&self, _queue: Queue) -> bool {
        false
    }

    /// Is `inst` that fence?
    fn is_fence(&self, _queue: Queue, _inst: Inst) -> bool {
        false
    }

    /// Is `inst` a branch that is taken where its guard holds, and only there?
    fn goes_by_guard(&self, _inst: Inst) -> bool {
        false
    }

    /// Is `inst` a branch that is said to go one way in each warp? Where it does not, anything may happen.
    fn is_said_uniform(&self, _inst: Inst) -> bool {
        false
    }

    /// For a register that holds something well-defined on entry to the function (a register
    /// parameter): a name for it that both versions of the function share.
    fn entry_name(&self, _value: Value) -> Option<Name> {
        None
    }

    /// Does this load leave nothing certain where it read (a last use, after which a cache may drop the line)?
    fn is_last_use(&self, _inst: Inst) -> bool {
        false
    }

    /// All variables that the function can name.
    fn variables(&self) -> Vec<Variable>;

    /// Coordinates of a thread that are read as [`Arg::Sum`]s and [`Arg::Input`]s, and what they make up.
    fn splits(&self) -> Vec<Split> {
        Vec::new()
    }

    /// Is an address of one variable never made from that of another one?
    fn keeps_variables_apart(&self) -> bool {
        false
    }

    /// Memory that this version alone has, whatever the other one calls its own: a stack frame that
    /// holds nothing but spills. Its names must differ from the other version's.
    fn own_memory(&self) -> Vec<Variable> {
        Vec::new()
    }

    /// Where `inst` stands, for people: line and text.
    fn place(&self, inst: Inst) -> String;

    /// The line of `inst` in its source, from 1.
    fn line(&self, inst: Inst) -> u32;
}

/// What both versions mean by the same name. Names of different kinds never meet, however they are spelled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// A parameter of a kernel, by position: the same for all threads.
    Parameter(u32),
    /// A parameter of a device function, by position: each thread has its own.
    Argument(u32),
    /// A result of a device function, by position.
    Result(u32),
    /// A variable of a body: the n-th that has this name.
    Own(String, u32),
    /// A variable that every function of the module may name.
    Module(String),
    /// A function.
    Function(String),
    /// A special register.
    Special(String),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Parameter(index) => write!(f, "param.{index}"),
            Name::Argument(index) => write!(f, "argument.{index}"),
            Name::Result(index) => write!(f, "return.{index}"),
            Name::Own(name, count) => write!(f, "{name}.{count}"),
            Name::Module(name) | Name::Special(name) => f.write_str(name),
            Name::Function(name) => write!(f, "function {name}"),
        }
    }
}

/// An instruction that the checker cannot follow, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Opcode, modifiers and operand shapes.
    pub op: String,
    /// What it computes, where the checker can make use of knowing it.
    pub meaning: Meaning,
    /// Its guard.
    pub guard: Option<Guard>,
    /// What it reads, in operand order, the guard and the address of [`Step::access`] left out.
    pub args: SmallVec<[Arg; 4]>,
    /// What it writes, in order. `None` for a result that goes nowhere.
    pub results: SmallVec<[Option<Value>; 2]>,
    /// What it does beside that.
    pub effect: Effect,
    /// Its address, for [`Effect::Load`] and [`Effect::Store`].
    pub access: Option<Access>,
    /// Is its access surely aligned for all its elements together?
    pub is_aligned: bool,
    /// Does it depend on which threads execute this very instruction together?
    pub is_collective: bool,
    /// Reads the carry flag.
    pub reads_flag: bool,
    /// Writes the carry flag.
    pub writes_flag: bool,
    /// What its first result is as a function of integers; a second one is the other answer.
    pub fold: Option<Fold>,
    /// Results, by number, whose values lie between two numbers.
    pub known: SmallVec<[Option<(u64, u64)>; 2]>,
    /// Its result is a multiple of that, as far as launches say so.
    pub alignment: u64,
    /// Arguments, by number, whose values lie between two numbers.
    pub bounds: SmallVec<[(usize, u64, u64); 1]>,
}

impl Step {
    /// A step that does nothing.
    pub fn new(op: impl Into<String>) -> Step {
        Step {
            op: op.into(),
            meaning: Meaning::Opaque,
            guard: None,
            args: SmallVec::new(),
            results: SmallVec::new(),
            effect: Effect::Pure,
            access: None,
            is_aligned: false,
            is_collective: false,
            reads_flag: false,
            writes_flag: false,
            fold: None,
            known: SmallVec::new(),
            alignment: 1,
            bounds: SmallVec::new(),
        }
    }
}

/// A guard predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The predicate.
    pub value: Value,
    /// Executed if it is false.
    pub negated: bool,
}

/// Something that an instruction reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// A register.
    Value(Value),
    /// The complement of a predicate.
    Not(Value),
    /// The low `bits` of a register of `of` bits.
    Low {
        /// The register.
        value: Value,
        /// Bits read.
        bits: u32,
        /// Bits of the register.
        of: u32,
    },
    /// The same of its sum with a constant.
    Plus {
        /// The register.
        value: Value,
        /// What is added.
        by: i64,
        /// Bits read.
        bits: u32,
        /// Bits of the register, and of the sum.
        of: u32,
    },
    /// A constant, truncated to the width at which it is read.
    Const(u64),
    /// The address of a variable or function, plus a constant in bytes.
    Symbol(Name, i64),
    /// An address in brackets.
    Address(Address),
    /// Something that does not change while the thread runs, and is the same for both versions.
    Input(Name),
    /// The position of the thread in its block, or the size of the block.
    Coordinate(Coordinate),
    /// A number of 32 bits: a sum of inputs, each times a factor.
    Sum(SmallVec<[(Name, u64); 4]>),
}

/// A number that is a rest and a sum of parts, each times a factor, none of which wraps around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The number.
    pub whole: Name,
    /// The rest is below that.
    pub rest: u64,
    /// The parts.
    pub parts: Vec<Part>,
}

/// A part of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: Name,
    /// It is below that.
    pub below: u64,
    /// How often the number has it.
    pub factor: u64,
}

/// Thread index and block size, by dimension (0 for x).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coordinate {
    /// `%tid`: below the block size.
    Thread(u8),
    /// `%ntid`: threads of the block.
    Block(u8),
}

/// A base plus an offset in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    /// The base.
    pub base: Base,
    /// Added to it.
    pub offset: i64,
}

/// What an address starts from.
#[derive(Clone, Debug, PartialEq)]
pub enum Base {
    /// A register of so many bits.
    Value(Value, u32),
    /// A pair of 32-bit registers, the low half first.
    Pair(Value, Value),
    /// A variable.
    Symbol(Name),
    /// An element of a variable, in 32-bit arithmetic: its address plus `index` times `scale`.
    Element {
        /// The variable.
        of: Name,
        /// A register of 32 bits.
        index: Value,
        /// Bytes.
        scale: u32,
    },
}

/// A load or store, for the rules about memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The address of the first element.
    pub address: Address,
    /// Bytes of one element.
    pub bytes: u32,
    /// Number of consecutive elements. A store's arguments, or a load's results, are one for each.
    pub lanes: u32,
    /// The state space, if spill slots may be in it.
    pub space: SlotSpace,
    /// For a load: how an element becomes a register.
    pub extend: Extend,
}

impl Access {
    /// Loads that one element of a load from these memories is made of: what is twice a word wide is loaded in words.
    /// Memory that nothing changes is read as a whole.
    pub(crate) fn words(&self, spaces: Spaces) -> u32 {
        let is_double = self.bytes == 8 && self.extend == Extend::No;
        if is_double && spaces != Spaces::default() {
            2
        } else {
            1
        }
    }
}

/// Where an access goes, as far as spill slots are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotSpace {
    /// Each thread has its own.
    Local,
    /// The threads of a block share it.
    Shared,
    /// Neither, or generic.
    Other,
}

/// How a loaded element becomes a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extend {
    /// They have the same width.
    No,
    /// Zeros above it, up to so many bits.
    Zero(u32),
    /// Copies of its sign above it, up to so many bits.
    Sign(u32),
}

/// A variable in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name as [`Arg::Symbol`] gives it.
    pub name: Name,
    /// Where it is.
    pub space: SlotSpace,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its alignment in bytes.
    pub align: u32,
    /// What else its declaration says; equal names with other declarations are refused.
    pub declaration: String,
    /// Do its bytes belong to no other variable?
    pub is_apart: bool,
    /// May other functions, or another activation of this one, name it?
    pub is_global: bool,
}

/// The memories that the checker tells apart, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spaces(pub u8);

impl Spaces {
    /// Global memory.
    pub const GLOBAL: Spaces = Spaces(1);
    /// Shared memory.
    pub const SHARED: Spaces = Spaces(1 << 1);
    /// Local memory.
    pub const LOCAL: Spaces = Spaces(1 << 2);
    /// Arguments of calls.
    pub const PARAM: Spaces = Spaces(1 << 3);
    /// Textures, surfaces, tensor memory.
    pub const OTHER: Spaces = Spaces(1 << 4);
    /// No memory: what the threads of a warp do together.
    pub const WARP: Spaces = Spaces(1 << 5);
    /// What a generic address may point to.
    pub const GENERIC: Spaces = Spaces(0b111);

    /// Both sets together.
    pub const fn and(self, other: Spaces) -> Spaces {
        Spaces(self.0 | other.0)
    }
}

/// What an instruction does beside writing its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: its results depend on its arguments alone.
    Pure,
    /// A plain load. It may be moved or repeated as long as no store, barrier or other event comes
    /// between.
    Load {
        /// The memories it may read; empty for memory that does not change while the thread runs.
        spaces: Spaces,
        /// Can it not fault, whatever the program does around it?
        is_safe: bool,
    },
    /// A plain store.
    Store(Spaces),
    /// Exchanges values with other threads of its warp, or reads something that changes by itself:
    /// such instructions keep their order and number, and stay between the same barriers.
    Convergent,
    /// Keeps its order among all that touch these memories, and among nothing else. Unlike an event it always comes to
    /// an end, so that loads may pass it.
    InOrder(Spaces),
    /// All else: barriers, fences, atomics, volatile accesses, calls. Nothing that touches memory
    /// moves across it.
    Ordered,
    /// Leaves the function; its arguments are what the caller sees.
    Leave,
    /// Only decides where control goes, by its arguments and its guard.
    Branch,
}

/// What an instruction computes. Integer arithmetic is modulo 2^bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A function of [`Step::op`] and the arguments.
    Opaque,
    /// Its argument.
    Copy,
    /// a + b
    Add(u32),
    /// a - b
    Sub(u32),
    /// a · b, low half
    Mul(u32),
    /// a · b + c, low half
    MulAdd(u32),
    /// a · b of so many bits each, at twice the width.
    MulWide {
        /// Bits of a factor.
        bits: u32,
        /// Are the factors signed?
        signed: bool,
    },
    /// a · b, high half
    MulHigh {
        /// Bits of a factor.
        bits: u32,
        /// Are the factors signed?
        signed: bool,
    },
    /// a · b at twice the width, + c.
    MulAddWide {
        /// Bits of a factor.
        bits: u32,
        /// Are the factors signed?
        signed: bool,
    },
    /// A function of each bit of arguments of so many bits: bit i of the table is what it gives where the bits of
    /// the arguments, the first one lowest, are i.
    Logic {
        /// Bits of each argument.
        bits: u32,
        /// The table.
        table: u8,
    },
    /// Bytes of the first two arguments, of 32 bits each, one for each four bits of this number, of which the highest one
    /// takes copies of the byte's sign in its place.
    Permute(u16),
    /// a without its low b bits, or 0 from b = bits on, zeros coming in from the left.
    Shr(u32),
    /// The same with copies of the sign coming in.
    ShrSigned(u32),
    /// One word of two, of which the first is the low one, shifted.
    Funnel {
        /// The high word of both shifted to the left, or else the low one shifted to the right.
        left: bool,
        /// By the distance modulo 32, or else by 32 at most.
        wrap: bool,
    },
    /// Bits of the first argument, the second one and so many, as the third says.
    Field {
        /// Bits of the first argument.
        bits: u32,
        /// Do copies of its highest bit stand above it?
        signed: bool,
    },
    /// The second argument of so many bits with the low bits of the first one in it, from the third on, so many as the
    /// fourth says.
    Insert(u32),
    /// The lesser or the greater of two integers.
    Extreme {
        /// Their bits.
        bits: u32,
        /// Are they signed?
        signed: bool,
        /// The greater one?
        most: bool,
    },
    /// a · 2^b, or 0 from b = bits on.
    Shl(u32),
    /// Zeros above the low `from` bits.
    ZeroExtend {
        /// Bits of the argument.
        from: u32,
        /// Bits of the result.
        to: u32,
    },
    /// Copies of the sign above the low `from` bits.
    SignExtend {
        /// Bits of the argument.
        from: u32,
        /// Bits of the result.
        to: u32,
    },
    /// The low `to` bits of an argument of `from` bits.
    Truncate {
        /// Bits of the argument.
        from: u32,
        /// Bits of the result.
        to: u32,
    },
    /// Its argument taken apart, low part first, into results of so many bits.
    Unpack(u32),
    /// Its arguments of so many bits each put together, low part first.
    Pack(u32),
    /// The first argument if the third (a predicate) holds, else the second.
    Select,
    /// Are two integers of so many bits equal?
    Equal(u32),
    /// Do two integers of so many bits differ?
    Differ(u32),
    /// The complement of a predicate.
    Not,
    /// Is one integer less than another one?
    Less {
        /// Their bits.
        bits: u32,
        /// Are they signed?
        signed: bool,
        /// In what order, and which answer?
        form: Form,
    },
    /// A comparison that is a function of [`Step::op`] and the arguments.
    Relation(Form),
    /// A function of [`Step::op`] and the arguments, of which the first two may change places.
    Commutative,
    /// A sum that may be fused with a product that is added. Of two products the order decides which one is fused
    /// (ptxas fuses the first one), so its arguments may change places unless both may be products.
    FusibleSum,
    /// a + b + flag
    AddCarry(u32),
    /// a + ~b + flag
    SubCarry(u32),
    /// The greater of a and 0 - a, with signs.
    Absolute(u32),
    /// 0 - a
    Negate(u32),
    /// a / b.
    Divide {
        /// Bits of a number.
        bits: u32,
        /// Are they signed?
        signed: bool,
    },
    /// The remainder of that.
    Remainder {
        /// Bits of a number.
        bits: u32,
        /// Are they signed?
        signed: bool,
    },
}

/// How a comparison is written in terms of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The operands change places.
    pub swapped: bool,
    /// The answer is the other one.
    pub negated: bool,
    /// The order of the operands does not matter.
    pub symmetric: bool,
}
