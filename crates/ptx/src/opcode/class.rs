//! What an opcode does, in the terms that analyses ask for.

use std::fmt;
use std::ops::BitOr;

use crate::types::Space;

/// An instruction family: a section of the PTX ISA document's chapter 'Instruction Set'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Integer arithmetic.
    Integer,
    /// Extended-precision integer arithmetic (with carry).
    Extended,
    /// Floating point, all precisions.
    Float,
    /// Comparison and selection.
    Compare,
    /// Logic and shifts.
    Logic,
    /// Data movement and conversion.
    Move,
    /// Asynchronous copies, bulk copies and tensor maps.
    Async,
    /// Textures.
    Texture,
    /// Surfaces.
    Surface,
    /// Control flow.
    Control,
    /// Barriers, fences, votes, atomics and other communication between threads.
    Sync,
    /// Warp-level matrix instructions (`wmma`, `mma`, `ldmatrix` …).
    Matrix,
    /// Asynchronous warpgroup-level matrix instructions.
    Wgmma,
    /// Tensor cores of the fifth generation.
    Tcgen05,
    /// Stack manipulation.
    Stack,
    /// Video instructions, scalar and SIMD.
    Video,
    /// Miscellaneous.
    Misc,
}

/// How an operand is written. Where an opcode has several optional operands, their number alone does
/// not tell which are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// A register, a number, a name …
    Plain,
    /// In square brackets.
    Bracketed,
    /// In braces.
    Vector,
}

/// What an instruction does with one of its operands. The parts of a vector `{a, b}` and of a
/// pair `p|q` inherit the role of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Written.
    Def,
    /// Read.
    Use,
    /// Read and written.
    UseDef,
    /// An address in brackets: registers inside are read.
    Address,
    /// A constant.
    Immediate,
    /// A branch target.
    Label,
    /// A `.branchtargets` list.
    BranchTargets,
    /// Part of a `call`. Its place alone does not tell which: see [`crate::Body::call`].
    CallPart,
}

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Control {
    /// To the next instruction.
    #[default]
    Next,
    /// To a label.
    Branch,
    /// To a label from a list.
    IndirectBranch,
    /// Into a function and back.
    Call,
    /// Back to the caller; out of the kernel when executed in one.
    Return,
    /// The thread ends.
    Exit,
    /// The kernel is aborted.
    Trap,
}

/// A set of memories.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SpaceSet(u8);

impl SpaceSet {
    /// Nothing.
    pub const NONE: SpaceSet = SpaceSet(0);
    /// `.const`
    pub const CONST: SpaceSet = SpaceSet(1);
    /// `.global`
    pub const GLOBAL: SpaceSet = SpaceSet(1 << 1);
    /// `.local`
    pub const LOCAL: SpaceSet = SpaceSet(1 << 2);
    /// `.param`
    pub const PARAM: SpaceSet = SpaceSet(1 << 3);
    /// `.shared`, of this block or another one of the cluster.
    pub const SHARED: SpaceSet = SpaceSet(1 << 4);
    /// Textures and surfaces.
    pub const TEXTURE: SpaceSet = SpaceSet(1 << 5);
    /// Tensor memory (`tcgen05`).
    pub const TENSOR: SpaceSet = SpaceSet(1 << 6);
    /// What a generic address may point to.
    pub const GENERIC: SpaceSet = SpaceSet(0b1_1111);
    /// Any memory.
    pub const ALL: SpaceSet = SpaceSet(0b111_1111);

    const NAMES: [(SpaceSet, &str); 7] = [
        (SpaceSet::CONST, "const"),
        (SpaceSet::GLOBAL, "global"),
        (SpaceSet::LOCAL, "local"),
        (SpaceSet::PARAM, "param"),
        (SpaceSet::SHARED, "shared"),
        (SpaceSet::TEXTURE, "texture"),
        (SpaceSet::TENSOR, "tensor"),
    ];

    /// The memories a state space stands for; `None` is generic addressing.
    pub const fn of(space: Option<Space>) -> SpaceSet {
        match space {
            None => SpaceSet::GENERIC,
            Some(Space::Const) => SpaceSet::CONST,
            Some(Space::Global) => SpaceSet::GLOBAL,
            Some(Space::Local) => SpaceSet::LOCAL,
            Some(Space::Param) => SpaceSet::PARAM,
            Some(Space::Shared) => SpaceSet::SHARED,
            Some(Space::Tex) => SpaceSet::TEXTURE,
            Some(Space::Reg | Space::Sreg) => SpaceSet::NONE,
        }
    }

    /// The set of one member of this name, as `Debug` prints it.
    pub(crate) fn parse(name: &str) -> Option<SpaceSet> {
        match name {
            "generic" => Some(SpaceSet::GENERIC),
            _ => Self::NAMES
                .iter()
                .find(|(_, n)| *n == name)
                .map(|&(s, _)| s),
        }
    }

    /// Has it no member?
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Is `other` contained in it?
    pub const fn contains(self, other: SpaceSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// Do they share a member?
    pub const fn overlaps(self, other: SpaceSet) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for SpaceSet {
    type Output = SpaceSet;

    fn bitor(self, other: SpaceSet) -> SpaceSet {
        SpaceSet(self.0 | other.0)
    }
}

impl fmt::Debug for SpaceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = Self::NAMES.iter().filter(|(s, _)| self.contains(*s));
        f.debug_set()
            .entries(members.map(|(_, name)| name))
            .finish()
    }
}

/// Effects beyond the result registers. All empty or false: the instruction has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Memories that it may read.
    pub reads: SpaceSet,
    /// Memories that it may write.
    pub writes: SpaceSet,
    /// Reads and writes in one step that no other thread sees divided.
    pub atomic: bool,
    /// A strong access (`.volatile`, `.mmio`, `.relaxed`, `.acquire`, `.release`): other threads
    /// may watch it, so it may not be removed, repeated, widened or moved over another one.
    pub strong: bool,
    /// Later memory accesses of this thread may not move before it (`.acquire`, waits).
    pub acquire: bool,
    /// Earlier memory accesses of this thread may not move after it (`.release`, arrivals).
    pub release: bool,
    /// It reads or writes after the instruction itself has been passed: its memory *and its
    /// input registers* (`wgmma`) stay in use up to a matching wait.
    pub is_async: bool,
    /// Waits for other threads, or is counted by them.
    pub barrier: bool,
    /// Orders memory accesses without touching memory itself.
    pub fence: bool,
    /// Its result depends on which threads execute it together (shuffles, votes, matrix
    /// instructions …): it may not be moved into or out of divergent code.
    pub convergent: bool,
    /// Reads the carry flag `CC.CF`.
    pub carry_in: bool,
    /// Writes the carry flag `CC.CF`.
    pub carry_out: bool,
    /// Something else that makes it more than a function of its operands: changes machine state
    /// (`setmaxnreg`), reads it (`activemask`), takes time on purpose (`nanosleep`).
    pub other: bool,
}

impl Effect {
    /// No effect at all.
    pub fn is_none(&self) -> bool {
        *self == Effect::default()
    }

    /// Does it touch memory?
    pub const fn accesses_memory(&self) -> bool {
        !self.reads.is_empty() || !self.writes.is_empty()
    }
}

/// How an instruction is executed, for cost models. No cycle counts here: they belong to the
/// architecture tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LatencyClass {
    /// Simple integer, logic, moves, comparisons.
    Alu,
    /// Integer multiplication and multiply-add.
    IntMul,
    /// Half precision arithmetic.
    Fp16,
    /// Single precision arithmetic.
    Fp32,
    /// Double precision arithmetic.
    Fp64,
    /// Special function unit: approximate reciprocal, roots, exponentials, sines.
    Sfu,
    /// Division, remainder and IEEE-exact roots: a long sequence of instructions.
    Division,
    /// Type conversion.
    Conversion,
    /// Shuffles, votes and other exchange within a warp.
    Warp,
    /// Load from shared memory.
    SharedLoad,
    /// Load from global (or generic) memory.
    GlobalLoad,
    /// Load from local memory.
    LocalLoad,
    /// Load from constant memory.
    ConstLoad,
    /// Load of a parameter.
    ParamLoad,
    /// Any store; its latency is seldom seen.
    Store,
    /// Atomic operation, with or without result.
    Atomic,
    /// Start of an asynchronous copy, or a prefetch.
    AsyncCopy,
    /// Tensor core.
    Tensor,
    /// Texture and surface access.
    Texture,
    /// Branches, calls, exits.
    Control,
    /// Barriers, fences and waits.
    Barrier,
    /// Video instructions, emulated on current parts.
    Video,
    /// Rare instructions.
    Misc,
}

impl LatencyClass {
    /// Does it take hundreds of cycles? That is the 'long instruction' of condition 1 in You &
    /// Tsai 2011, section 2.2: global memory operations and divisions; textures, atomics and
    /// spilled values are of the same kind today.
    pub const fn is_long(self) -> bool {
        matches!(
            self,
            LatencyClass::Division
                | LatencyClass::GlobalLoad
                | LatencyClass::LocalLoad
                | LatencyClass::Atomic
                | LatencyClass::AsyncCopy
                | LatencyClass::Tensor
                | LatencyClass::Texture
                | LatencyClass::Barrier
        )
    }
}

/// The oldest target that has an instruction, such as `sm_90` or `sm_100a`. Ordered by number,
/// then from the plain target to the most special one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MinTarget {
    /// The number: 90 for `sm_90a`.
    pub sm: u16,
    /// Which features of it.
    pub features: Features,
}

/// The suffix of a target's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Features {
    /// None: features that all later targets keep.
    #[default]
    Plain,
    /// `f`: features of a family of targets.
    Family,
    /// `a`: features of this target alone.
    Architecture,
}

impl Features {
    /// The suffix in a target's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Features::Plain => "",
            Features::Family => "f",
            Features::Architecture => "a",
        }
    }
}

impl fmt::Display for MinTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.sm, self.features.suffix())
    }
}
