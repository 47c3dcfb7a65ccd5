//! The decoded form of a kernel: what the machine runs.
//!
//! Decoding turns every instruction into one [`Step`], or into a few where an operand needs work
//! of its own (a special register, a negated predicate). Operands are then registers or constants,
//! both in the form of [`Lanes`], and everything that depends on types and modifiers has been
//! folded into a function.

use crate::texture::Geometry;
use smallvec::SmallVec;
use warpwright_ptx::ir::{FuncId, Inst, Part};
use warpwright_ptx::special::SpecialReg;

use crate::fault::Place;
use crate::lanes::{LaneFn, Lanes};
use crate::matrix::MatrixOp;
use crate::memory::image::Image;

/// A decoded kernel with the device functions that it can reach.
pub struct Program {
    pub(crate) name: String,
    pub(crate) functions: Vec<Function>,
    /// The kernel's number in `functions`.
    pub(crate) kernel: usize,
    /// Values of immediates, in all lanes.
    pub(crate) constants: Vec<Lanes>,
    pub(crate) image: Image,
    /// The instruction that each step came from.
    pub(crate) sites: Vec<Site>,
    /// Does the result depend on the order in which blocks run?
    pub(crate) ordered: bool,
    /// Its blocks wait for each other.
    pub(crate) cooperative: bool,
    /// Has it a fence that reaches other blocks, or an access that is one, and a store by which they learn of it?
    pub(crate) fenced: bool,
    /// Does it call `malloc`?
    pub(crate) heap: bool,
    /// Does it read textures, or read or write surfaces?
    pub(crate) textures: bool,
    /// Registers of a thread at entry, where the kernel's directives say them: `setmaxnreg` moves these.
    pub(crate) entry_registers: Option<u32>,
    /// Blocks that its directives take.
    pub(crate) block: BlockOf,
}

/// Threads of a block, as a kernel's directives state them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockOf {
    /// `.reqntid`
    pub required: Option<[u32; 3]>,
    /// `.maxntid`, of which the product counts.
    pub most: Option<[u32; 3]>,
    /// It runs in clusters of several.
    pub clustered: bool,
}

/// An instruction of the source.
pub(crate) struct Site {
    pub func: FuncId,
    pub inst: Inst,
    pub place: Place,
    /// First word of the opcode: `fma`.
    pub opcode: String,
    /// Its results are approximate on the hardware.
    pub approximate: bool,
}

/// A decoded function.
pub(crate) struct Function {
    pub code: Vec<Step>,
    /// Registers of a frame.
    pub regs: usize,
    /// Bytes of `.local` variables per thread, and their places.
    pub local: Layout,
    /// Bytes of `.param` space per thread: formal parameters and those of calls.
    pub param: Layout,
    pub params: Vec<ParamPlace>,
    pub returns: Vec<ParamPlace>,
}

/// Variables of one state space, one after the other with gaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub regions: Vec<Region>,
    pub len: u64,
}

/// The place of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub name: String,
    pub start: u64,
    pub len: u64,
}

impl Layout {
    /// Places a variable behind the others, with at least `gap` bytes between.
    pub fn place(&mut self, name: &str, len: u64, align: u64, gap: u64) -> u64 {
        let end = self.len.saturating_add(gap);
        let start = end
            .checked_next_multiple_of(align.max(1))
            .unwrap_or(u64::MAX);
        self.regions.push(Region {
            name: name.to_owned(),
            start,
            len,
        });
        self.len = start.saturating_add(len);
        start
    }

    /// The variable that holds all of an access.
    #[inline(always)]
    pub fn find(&self, offset: u64, size: u64) -> Option<&Region> {
        let index = self
            .regions
            .partition_point(|r| r.start <= offset)
            .checked_sub(1)?;
        let region = self.regions.get(index)?;
        let end = offset.checked_add(size)?;
        (end <= region.start.saturating_add(region.len)).then_some(region)
    }

    /// The variable that begins at or before an offset: the one that was overrun.
    pub fn nearest(&self, offset: u64) -> Option<&Region> {
        let index = self
            .regions
            .partition_point(|r| r.start <= offset)
            .saturating_sub(1);
        self.regions.get(index)
    }
}

/// Where a formal parameter lives in the callee.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParamPlace {
    Memory { offset: u64, len: u64 },
    Register(u32),
}

/// One micro-operation.
pub(crate) struct Step {
    pub guard: Option<Guard>,
    pub op: Op,
    /// Number in [`Program::sites`].
    pub site: u32,
    /// Counts as the instruction (a helper step before it does not).
    pub counted: bool,
    /// Registers read besides the guard, for the check of uninitialised reads.
    pub reads: SmallVec<[u32; 4]>,
    /// Registers written.
    pub writes: SmallVec<[u32; 4]>,
}

impl Step {
    /// Does it do nothing but go elsewhere?
    pub fn leaves(&self) -> bool {
        match self.op {
            Op::Return | Op::Exit => true,
            Op::Branch { .. } => self.guard.is_none(),
            _ => false,
        }
    }
}

/// `@p` or `@!p`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub reg: u32,
    pub negated: bool,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Src {
    Reg(u32),
    Const(u32),
}

pub(crate) enum Op {
    /// Pure functions of registers.
    Alu {
        srcs: SmallVec<[Src; 4]>,
        outs: SmallVec<[Out; 1]>,
    },
    Load(Load),
    Store {
        access: Access,
        srcs: SmallVec<[Src; 4]>,
    },
    Atomic(Atomic),
    /// `atom.b128`: compare-and-swap, or exchange if there is nothing to compare with.
    Atomic128 {
        access: Access,
        dst: [u32; 2],
        compare: Option<[Src; 2]>,
        value: [Src; 2],
    },
    Special {
        dst: u32,
        reg: SpecialReg,
        part: Option<Part>,
    },
    /// The address of a `.local` variable of this frame.
    LocalAddress {
        dst: u32,
        offset: u64,
    },
    Branch {
        target: u32,
    },
    BranchTable {
        targets: Vec<u32>,
        index: Src,
    },
    Call {
        callee: Callee,
        args: Vec<Arg>,
        returns: Vec<Arg>,
    },
    Return,
    Exit,
    Trap,
    /// Fences, prefetches and hints.
    Nop,
    /// Lets other warps run: `nanosleep`.
    Pause,
    SetRegisters(SetRegisters),
    Barrier(Barrier),
    /// Operations of the lanes of a warp together.
    Collective {
        members: Members,
        op: CollectiveOp,
    },
    ActiveMask {
        dst: u32,
    },
    CopyAsync(CopyAsync),
    CommitGroup,
    /// `cp.async.wait_group`: all but this many youngest groups.
    WaitGroup {
        pending: u32,
    },
    Mbarrier {
        address: Access,
        op: MbarrierOp,
    },
    CopyBulk(CopyBulk),
    Texture(TextureOp),
    Surface(SurfaceOp),
}

/// `tex`
pub(crate) struct TextureOp {
    /// The object's number.
    pub object: Src,
    pub geometry: Geometry,
    /// An element of linear memory, by an integer.
    pub by_element: bool,
    /// The layer, if there is one, and a coordinate for each dimension.
    pub coordinates: SmallVec<[Src; 4]>,
    /// It takes floating-point numbers.
    pub floats: bool,
    pub dsts: SmallVec<[Option<u32>; 4]>,
}

/// `suld.b`, and `sust.b` with something to store.
pub(crate) struct SurfaceOp {
    /// The object's number.
    pub object: Src,
    pub geometry: Geometry,
    pub coordinates: SmallVec<[Src; 4]>,
    /// Bytes of an element.
    pub elem: u32,
    pub beyond: Beyond,
    pub dsts: SmallVec<[Option<u32>; 4]>,
    pub srcs: SmallVec<[Src; 4]>,
}

/// What an access beyond a surface does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    Trap,
    /// It goes to the border.
    Clamp,
    /// It reads zeros and writes nothing.
    Zero,
}

/// A result of [`Op::Alu`].
pub(crate) struct Out {
    pub dst: u32,
    pub f: LaneFn,
}

/// State spaces as accesses name them. Constant memory shares the addresses of global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessSpace {
    Generic,
    Global,
    Shared,
    Local,
    Param,
}

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub space: AccessSpace,
    pub base: Src,
    pub offset: i64,
    /// The address register has 32 bits: the sum wraps there.
    pub narrow: bool,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub elem: u32,
    /// Elements.
    pub count: u32,
    /// Required alignment in bytes.
    pub align: u32,
}

impl Access {
    pub fn bytes(&self) -> u64 {
        (self.elem * self.count) as u64
    }

    /// Where it goes from what its base register holds.
    #[inline(always)]
    pub fn address(&self, base: u64) -> u64 {
        let address = base.wrapping_add_signed(self.offset);
        match self.narrow {
            true => address & u64::from(u32::MAX),
            false => address,
        }
    }
}

pub(crate) struct Load {
    pub access: Access,
    /// One for each element; `None` for a sink.
    pub dsts: SmallVec<[Option<u32>; 4]>,
    /// Extends the element's sign.
    pub signed: bool,
    /// Bits of the destination registers that exist.
    pub mask: u64,
}

/// Old value, first and second operand to new value.
pub(crate) type AtomicFn = Box<dyn Fn(u64, u64, u64) -> u64 + Send + Sync>;

pub(crate) struct Atomic {
    pub access: Access,
    pub f: AtomicFn,
    /// The function in global memory, where that differs.
    pub f_global: Option<AtomicFn>,
    /// Destinations by element; empty for `red`.
    pub dsts: SmallVec<[Option<u32>; 4]>,
    /// First operand by element.
    pub value: SmallVec<[Src; 4]>,
    /// Second operand (`cas`).
    pub second: Option<Src>,
    /// ptxas makes one operation of those of a warp at one address.
    pub combines: bool,
}

pub(crate) enum Callee {
    Function(usize),
    /// The function whose address a register holds.
    Indirect(Src),
    Host(HostFunction),
}

/// Functions that the driver or runtime provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostFunction {
    Printf,
    Malloc,
    Free,
    AssertFail,
}

/// An actual argument or result of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    /// A `.param` variable of the caller.
    Memory {
        offset: u64,
        len: u64,
    },
    Value(Src),
}

/// `setmaxnreg`
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetRegisters {
    /// Registers of a thread afterwards.
    pub count: u32,
    /// `.inc`, which waits for them; else `.dec`.
    pub grows: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Barrier {
    pub kind: BarrierKind,
    pub id: Src,
    /// Expected number of threads; `None`: all.
    pub count: Option<Src>,
    /// All threads of a warp must execute the same instruction.
    pub aligned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    Sync,
    Arrive,
    Reduce { op: Reduce, dst: u32, src: Src },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduce {
    Popc,
    And,
    Or,
}

/// The lanes that take part in a collective operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Members {
    /// A member mask.
    Mask(Src),
    /// The whole warp: `.aligned` instructions.
    All,
    /// Whoever executes it: instructions without `.sync`.
    Present,
}

pub(crate) enum CollectiveOp {
    WarpBarrier,
    Vote {
        kind: Vote,
        dst: u32,
        src: Src,
    },
    Shuffle {
        mode: ShuffleMode,
        dst: Option<u32>,
        pred: Option<u32>,
        src: Src,
        b: Src,
        c: Src,
    },
    MatchAny {
        dst: u32,
        src: Src,
        wide: bool,
    },
    MatchAll {
        dst: u32,
        pred: Option<u32>,
        src: Src,
        wide: bool,
    },
    Redux {
        dst: u32,
        src: Src,
        f: ReduxFn,
    },
    Elect {
        dst: Option<u32>,
        pred: u32,
    },
    Matrix(MatrixOp),
}

/// Combines two lanes of a `redux`.
pub(crate) type ReduxFn = Box<dyn Fn(u64, u64) -> u64 + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

/// `cp.async`: global to shared memory.
pub(crate) struct CopyAsync {
    pub dst: Access,
    pub src: Access,
    /// Bytes really read; the rest is zero.
    pub src_size: Option<Src>,
    /// Predicate: if set, nothing is read.
    pub ignore: Option<Src>,
}

pub(crate) enum MbarrierOp {
    Init {
        count: Src,
    },
    Invalidate,
    /// `arrive`, `arrive_drop` and their `expect_tx` forms. `state` takes the token.
    Arrive {
        count: Option<Src>,
        expect: Option<Src>,
        drop: bool,
        state: Option<u32>,
    },
    ExpectTx {
        bytes: Src,
    },
    CompleteTx {
        bytes: Src,
    },
    /// `cp.async.mbarrier.arrive`
    CopyArrive {
        no_increment: bool,
    },
    /// `test_wait` and `try_wait` by a token or by parity.
    Test {
        dst: u32,
        token: Src,
        parity: bool,
    },
    PendingCount {
        dst: u32,
        state: Src,
    },
}

/// `cp.async.bulk` of a linear piece of memory.
pub(crate) struct CopyBulk {
    pub dst: Access,
    pub src: Access,
    pub size: Src,
    /// The mbarrier that counts the bytes.
    pub mbarrier: Option<Access>,
}
