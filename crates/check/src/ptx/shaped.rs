//! The same threads in blocks of another shape.
//!
//! Two launches have the same threads where these have the same numbers in the grid: along each axis (`ctaid · ntid + tid`), or all
//! in one line. Either numbering takes the threads of one launch one to one to those of the other. A thread's
//! coordinates are written in terms of its number and of coordinates that the two launches do not share: the
//! innermost one is the number less the others times their strides. Versions that compute the same whatever the others are use the number
//! alone. Arithmetic modulo 2^32 shows that by itself; widening takes bounds (`wholes.rs`).
//!
//! Beside its coordinates a thread may be told apart by what it does with its block or warp, and its block by whom it waits for: what
//! does so is not compared. Shapes that leave the threads of each warp together, in the same lanes, keep what a warp does.
//!
//! PTX ISA, 'Special Registers'; CUDA C++ programming guide, 'Thread Hierarchy': threads of a block are numbered with x
//! innermost, and 32 in a row are a warp.

use std::collections::BTreeMap;

use warpwright_flow::{Block, Cfg};
use warpwright_launch::{Condition, Extent, Extents, Guard, Quantity, Shape};
use warpwright_ptx::opcode::{Control, Effect, Op};
use warpwright_ptx::{DirectiveKind, Function, Opcode, Space, SpecialReg};
use warpwright_target::{BLOCK_DIMENSIONS, GRID_DIMENSIONS, THREADS_PER_BLOCK, WARP_SIZE};

use super::function::PtxFunction;
use super::launches::{count, gpu, starts};
use super::surroundings::Surroundings;
use crate::semantics::{Arg, Name, Part, Split, Unsupported};

/// Why two launches are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Incomparable {
    #[error("the block and the grid of the launch must be stated to compare other shapes")]
    Unstated,
    #[error("it is launched with more shared memory")]
    MoreShared,
    #[error("its launch has no such grid")]
    NoGrid,
    #[error("along {axis} it has {after} threads instead of {before}")]
    Threads {
        axis: &'static str,
        before: u64,
        after: u64,
    },
    #[error("no device launches its blocks or its grid")]
    TooLarge,
}

/// A launch, and what it becomes for the rewritten version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launches {
    pub(super) before: Extents,
    pub(super) after: Extents,
}

/// How the threads of a grid are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbering {
    /// Along each axis.
    Axes,
    /// In one line: within their block first, then block after block.
    Line,
}

/// `%tid` or, second, `%ctaid`; and the axis.
type Coordinate = (bool, u8);

const AXES: [&str; 3] = ["x", "y", "z"];

impl Launches {
    /// The launches that a guard and a shape stand for.
    ///
    /// # Errors
    /// Why they are not understood, or have not the same threads.
    pub(super) fn of(assume: &Guard, shape: Shape) -> Result<Launches, Incomparable> {
        let exact = [Quantity::Block, Quantity::Grid].map(|of| assume.exact(of));
        let [Some(block), Some(grid)] = exact else {
            return Err(Incomparable::Unstated);
        };
        if shape.more_smem > 0 {
            return Err(Incomparable::MoreShared);
        }
        let dynamic_smem = 0;
        let before = Extents {
            grid,
            block,
            dynamic_smem,
        };
        let Some(after) = shape.apply(before) else {
            return Err(Incomparable::NoGrid);
        };
        let launches = Launches { before, after };
        let threads =
            |of: Extents, axis: usize| u64::from(of.grid[axis]) * u64::from(of.block[axis]);
        if let Some(axis) = (0..3).find(|&axis| threads(before, axis) != threads(after, axis)) {
            return Err(Incomparable::Threads {
                axis: AXES[axis],
                before: threads(before, axis),
                after: threads(after, axis),
            });
        }
        let fits = |dims: [u32; 3], most: [u32; 3]| (0..3).all(|axis| dims[axis] <= most[axis]);
        let is_launched = fits(after.block, BLOCK_DIMENSIONS)
            && fits(after.grid, GRID_DIMENSIONS)
            && Extent::Size.of(after.block) <= THREADS_PER_BLOCK.into();
        match is_launched {
            true => Ok(launches),
            false => Err(Incomparable::TooLarge),
        }
    }

    /// What is assumed of launches once they have the new shape.
    pub(super) fn assumed_after(&self, assume: &Guard) -> Guard {
        let own = Guard::always()
            .block(self.after.block)
            .grid(self.after.grid);
        let is_kept = |condition: &Condition| {
            !matches!(
                condition,
                Condition::In(Quantity::Block(_) | Quantity::Grid(_), _)
            )
        };
        assume.conditions().filter(is_kept).fold(own, Guard::with)
    }

    /// Does each warp keep its threads, in their lanes?
    fn keeps_warps(&self, numbering: Numbering) -> bool {
        let (before, after) = (self.before.block, self.after.block);
        let is_whole = |block| Extent::Size.of(block).is_multiple_of(WARP_SIZE.into());
        before == after
            || match numbering {
                Numbering::Axes => warp(before).is_some() && warp(before) == warp(after),
                Numbering::Line => is_whole(before) && is_whole(after),
            }
    }

    /// What a thread of the original and one of the rewritten version of the same number are told of their place.
    pub(super) fn places(&self, numbering: Numbering) -> [Shaped; 2] {
        let is_kept = |axis: &u8| {
            let axis = usize::from(*axis);
            self.before.block[axis] == self.after.block[axis]
        };
        let axes = || (0..3).filter(|axis| !is_kept(axis));
        let groups: Vec<(String, Vec<Coordinate>)> = match numbering {
            Numbering::Axes => axes()
                .map(|axis| {
                    let name = format!("%thread.{}", AXES[usize::from(axis)]);
                    (name, vec![(false, axis), (true, axis)])
                })
                .collect(),
            Numbering::Line => {
                let all = [false, true]
                    .into_iter()
                    .flat_map(|of| (0..3).map(move |axis| (of, axis)));
                vec![("%thread".to_owned(), all.collect())]
            }
        };
        let keeps_warps = self.keeps_warps(numbering);
        [(self.before, "before"), (self.after, "after")].map(|(extents, version)| {
            let mut shaped = Shaped {
                keeps_warps,
                places: BTreeMap::new(),
                splits: Vec::new(),
            };
            for (name, group) in &groups {
                shaped.number(name, group, extents, version);
            }
            shaped
        })
    }
}

/// The threads that a warp has of a block, along each axis; `None` where not all warps have the same.
fn warp(block: [u32; 3]) -> Option<[u32; 3]> {
    let mut left = WARP_SIZE;
    let mut dims = [1; 3];
    for (dim, n) in dims.iter_mut().zip(block) {
        if n.is_multiple_of(left) {
            *dim = left;
            return Some(dims);
        }
        if !left.is_multiple_of(n) {
            return None;
        }
        *dim = n;
        left /= n;
    }
    None
}

/// A version at its launch, of which another one has another shape.
#[derive(Clone, Debug)]
pub(super) struct Shaped {
    keeps_warps: bool,
    places: BTreeMap<Coordinate, Arg>,
    pub(super) splits: Vec<Split>,
}

impl Shaped {
    /// Coordinates of which a number is made, the innermost first.
    fn number(&mut self, name: &str, group: &[Coordinate], extents: Extents, version: &str) {
        let mut stride = 1;
        let mut open = Vec::new();
        for &(is_block, axis) in group {
            let of = if is_block {
                extents.grid
            } else {
                extents.block
            };
            let below = u64::from(of[usize::from(axis)]);
            if below > 1 {
                open.push(((is_block, axis), below, stride));
            }
            stride *= below;
        }
        let Some((&(innermost, rest, _), others)) = open.split_first() else {
            return;
        };
        let of = |text: String| Name::Special(text);
        let parts: Vec<Part> = others
            .iter()
            .map(|&((is_block, axis), below, factor)| Part {
                name: of(format!(
                    "%{}.{} {version}",
                    if is_block { "ctaid" } else { "tid" },
                    AXES[usize::from(axis)]
                )),
                below,
                factor,
            })
            .collect();
        for (part, other) in parts.iter().zip(others) {
            self.places.insert(other.0, Arg::Input(part.name.clone()));
        }
        let less = parts
            .iter()
            .map(|part| (part.name.clone(), part.factor.wrapping_neg()));
        let sum = [(of(name.to_owned()), 1)].into_iter().chain(less);
        self.places.insert(innermost, Arg::Sum(sum.collect()));
        // Beyond that the number itself wraps around.
        if stride > 1 << 32 {
            return;
        }
        self.splits.push(Split {
            whole: of(name.to_owned()),
            rest,
            parts,
        });
    }

    /// What a special register of 32 bits says of the thread's place, where that is not the same for both versions.
    ///
    /// # Errors
    /// It tells more than the thread's coordinates do.
    pub(super) fn special(
        &self,
        reg: SpecialReg,
        dim: u8,
        is_word: bool,
    ) -> Result<Option<Arg>, Unsupported> {
        use SpecialReg as S;
        match reg {
            S::Tid | S::CtaId if is_word && dim < 3 => {
                Ok(self.places.get(&(reg == S::CtaId, dim)).cloned())
            }
            S::NTid | S::NCtaId if is_word && dim < 3 => Ok(None),
            S::LaneId
            | S::LaneMaskEq
            | S::LaneMaskLe
            | S::LaneMaskLt
            | S::LaneMaskGe
            | S::LaneMaskGt
                if self.keeps_warps =>
            {
                Ok(None)
            }
            S::DynamicSmemSize => Ok(None),
            _ => Err(Unsupported(format!(
                "{reg} is read, and the rewritten version is launched in another shape"
            ))),
        }
    }

    /// May an instruction do the same in another shape, where its operands do?
    ///
    /// # Errors
    /// It may not.
    pub(super) fn permits(&self, opcode: &Opcode) -> Result<(), Unsupported> {
        let no = |what: &str| Err(Unsupported(format!("{}: {what}", opcode.text)));
        if opcode.space == Some(Space::Shared) || opcode.mods().any(|m| m.starts_with("shared")) {
            return no("blocks of another shape share other memory");
        }
        if ["cta", "cluster"].iter().any(|scope| opcode.has_mod(scope)) {
            return no("blocks have other threads");
        }
        let effect = opcode.effect();
        let is_plain =
            !effect.strong && !effect.acquire && !effect.release && !opcode.has_mod("cv");
        let is_permitted = match opcode.op {
            Some(
                Op::Shfl
                | Op::Vote
                | Op::Match
                | Op::Activemask
                | Op::Redux
                | Op::Elect
                | Op::Mma
                | Op::Movmatrix,
            ) => return self.of_a_warp(opcode),
            Some(Op::Bar) if opcode.has_mod("warp") => return self.of_a_warp(opcode),
            Some(Op::Atom | Op::Red) => !effect.acquire && !effect.release && !effect.is_async,
            Some(Op::Ld | Op::Ldu | Op::St) => is_plain && !effect.is_async,
            Some(
                Op::Tex
                | Op::Tld4
                | Op::Txq
                | Op::Suq
                | Op::Sust
                | Op::Prefetch
                | Op::Prefetchu
                | Op::Applypriority
                | Op::Discard
                | Op::Createpolicy,
            ) => is_plain && !effect.is_async,
            _ if opcode.control() == Control::Call => false,
            _ if opcode.control() != Control::Next => true,
            _ => {
                let rest = Effect {
                    carry_in: false,
                    carry_out: false,
                    ..effect
                };
                rest.is_none()
            }
        };
        match is_permitted {
            true => Ok(()),
            false => no("what it does may depend on the shape of the launch"),
        }
    }

    fn of_a_warp(&self, opcode: &Opcode) -> Result<(), Unsupported> {
        match self.keeps_warps {
            true => Ok(()),
            false => Err(Unsupported(format!(
                "{}: the new blocks put other threads into a warp",
                opcode.text
            ))),
        }
    }
}

/// Why the rewritten kernel does not take the launch that is made for it.
pub(super) fn refused(
    around: &Surroundings<'_>,
    original: &Function,
    new: &Function,
    launches: &Launches,
) -> Option<String> {
    let text = |directive: &str| format!("its {directive} refuses the launch that is made for it");
    let block = launches.after.block;
    if new.req_ntid().is_some_and(|own| own != block) {
        return Some(text(".reqntid"));
    }
    if new
        .max_ntid()
        .is_some_and(|most| count(most) < count(block))
    {
        return Some(text(".maxntid"));
    }
    let Some(gpu) = gpu(around) else {
        return Some("how many registers its blocks find is not known".to_owned());
    };
    let found =
        starts(&gpu, new, count(block)) || !starts(&gpu, original, count(launches.before.block));
    (!found).then(|| text("need of registers"))
}

/// What ties a kernel to its launch beside its instructions.
pub(super) fn tied(function: &PtxFunction<'_>) -> Option<String> {
    let clusters = function.view.function().directives.iter().any(|directive| {
        matches!(
            directive.kind,
            DirectiveKind::ReqNctaPerCluster(_)
                | DirectiveKind::ExplicitCluster
                | DirectiveKind::MaxClusterRank(_)
                | DirectiveKind::BlocksAreClusters
        )
    });
    match clusters {
        true => Some("its blocks are in clusters".to_owned()),
        false => waits(function),
    }
}

/// May blocks wait for each other? Others reside together then. Waiting takes a loop that hears something.
fn waits(function: &PtxFunction<'_>) -> Option<String> {
    let cfg = Cfg::new(&function.view);
    let body = function.view.body();
    let hears = |block: Block| {
        let mut insts = cfg.insts(block);
        insts.any(|inst| {
            let inst = warpwright_ptx::Inst::from_u32(inst.as_u32());
            let data = body.insts.get(inst);
            data.is_some_and(|data| function.module().opcode(data).op == Some(Op::Atom))
        })
    };
    let mut all = cfg.reverse_postorder().iter();
    let found = all.any(|&block| hears(block) && is_repeated(&cfg, block));
    found.then(|| "blocks may wait for each other by an atomic operation in a loop".to_owned())
}

fn is_repeated(cfg: &Cfg, block: Block) -> bool {
    let mut seen = vec![false; cfg.block_count()];
    let mut work = cfg.succs(block).to_vec();
    while let Some(next) = work.pop() {
        if next == block {
            return true;
        }
        if !std::mem::replace(&mut seen[next.as_u32() as usize], true) {
            work.extend_from_slice(cfg.succs(next));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_of_blocks() {
        assert_eq!(warp([64, 3, 1]), Some([32, 1, 1]));
        assert_eq!(warp([16, 4, 1]), Some([16, 2, 1]));
        assert_eq!(warp([8, 8, 3]), Some([8, 4, 1]));
        assert_eq!(warp([4, 4, 4]), Some([4, 4, 2]));
        assert_eq!(warp([48, 2, 1]), None);
        assert_eq!(warp([16, 1, 1]), None);
        assert_eq!(warp([1, 32, 1]), Some([1, 32, 1]));
    }

    #[test]
    fn launches_have_the_same_threads() {
        let of = |guard: &str, shape: &str| {
            Launches::of(&guard.parse().unwrap(), shape.parse().unwrap())
        };
        assert!(of("block=256,1,1; grid=3,1,1", "block=64,1,1").is_ok());
        assert!(of("block=256,1,1; grid=3,1,1", "block=512,1,1").is_err());
        assert!(of("block=256,1,1", "block=64,1,1").is_err());
        assert!(of("block=32,32,1; grid=1,65535,1", "block=1024,1,1").is_err());
        assert!(of("block=4,4,64; grid=1,1,2", "block=4,2,128").is_err());
    }
}
