//! `reshape`: the same threads in blocks of another shape.
//!
//! Goal: blocks are chosen once, for one GPU and one compiler. Smaller ones let registers round to less, larger ones
//! fill lines and SMs, others follow what neighbouring threads read (Yang et al., PLDI 2010, merge blocks in the source). A kernel
//! whose threads use `tid`, `ctaid`, `ntid` and `nctaid` only as their number in the grid runs in blocks of any shape with the same
//! threads in all.
//!
//! Departure: instructions stay as they are. The launch changes, and the kernel's head states its block (`.reqntid`), so that no
//! other one is launched. What a thread makes of its coordinates is followed at both launches (`map`).
//!
//! Requires the launch's block and grid, extents that the new block divides, and a kernel that does nothing with its block: no
//! shared memory, no barrier, no atomics that a block waits by. What a warp does together is kept by shapes that leave its threads
//! together. Preserves what each thread computes; the order of atomics is another one.

mod map;

use warpwright_diag::count;
use warpwright_flow::{Cfg, Function as _};
use warpwright_launch::{Extent, Extents, Guard, Shape};
use warpwright_ptx::opcode::{Control, Op};
use warpwright_ptx::{Dims, DirectiveKind, Edits, Inst, Opcode, Space, Type, TypeKind, View};
use warpwright_target::{GRID_DIMENSIONS, Resources, THREADS_PER_BLOCK, WARP_SIZE, occupancy};

use crate::launch::possible;
use crate::pass::{Caution, Fuel, Need, Outcome, Pass, Rewritten, Work};
use crate::ptx::facts::view;
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::Site;
use map::{Map, Numbering, is_pure};

/// The pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reshape {
    /// Threads per block in x, y and z.
    pub block: [u32; 3],
    /// Those of the launch; without it, what is known of the launch counts.
    pub from: Option<[u32; 3]>,
    /// Its blocks; the same.
    pub grid: Option<[u32; 3]>,
}

crate::options!(Reshape: [block "threads per block"];
    [from: Option<[u32; 3]> = None, "threads per block of the launch as it is";
     grid: Option<[u32; 3]> = None, "blocks of its grid"]);

impl Pass for Reshape {
    const NAME: &'static str = "reshape";
    const ABOUT: &'static str = "launch the same threads in blocks of another shape";
    const FOOTPRINT: Footprint = Footprint::FewerBlocks;

    fn needs(&self) -> &'static [Need] {
        match self.from {
            Some(_) => &[],
            None => &[Need::BlockSize],
        }
    }

    fn work(&self) -> Work<Self> {
        Work::Ptx(reshape)
    }
}

fn reshape(pass: &Reshape, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    let from = launched(pass, site)?;
    let to = shaped(from, pass.block)?;
    let view = view(site.module, site.kernel)?;
    let insts = insts(&view);
    permitted(&view, &insts, [from, to])?;
    fits(site, [from, to])?;
    if !fuel.burn() {
        return Ok(Rewritten::new(site.module.source.to_string()));
    }
    let guard = Guard::always().block(from.block).grid(from.grid);
    let shape = Shape {
        block: Some(to.block),
        more_smem: 0,
    };
    let [x, y, z] = to.grid;
    let note = format!(
        "{} of the same threads, a grid of {x},{y},{z}",
        count(Extent::Size.of(to.grid), "block")
    );
    let rounds = insts.iter().any(|&inst| rounds(opcode(&view, inst)));
    Ok(Rewritten::new(directives(site, [from, to])?)
        .note(note)
        .careful(rounds.then_some(Caution::Reordered))
        .under(guard)
        .shaped(shape))
}

/// Blocks in which a kernel may run at its launch, those nearest to the launch's own first; none where its launch is not known.
pub fn shapes(site: &Site) -> Vec<[u32; 3]> {
    let unknown = Reshape {
        block: [1; 3],
        from: None,
        grid: None,
    };
    let (Ok(from), Ok(view)) = (launched(&unknown, site), view(site.module, site.kernel)) else {
        return Vec::new();
    };
    let insts = insts(&view);
    let is_right = |block: &[u32; 3]| {
        let to = shaped(from, *block);
        to.is_ok_and(|to| {
            permitted(&view, &insts, [from, to]).is_ok() && fits(site, [from, to]).is_ok()
        })
    };
    let mut all: Vec<[u32; 3]> = candidates(from).into_iter().filter(is_right).collect();
    let far = |a: u32, b: u32| (f64::from(a).log2() - f64::from(b).log2()).abs();
    let distance = |block: &[u32; 3]| {
        let threads = |dims: [u32; 3]| Extent::Size.of(dims) as u32;
        let sides = (0..3).map(|axis| far(block[axis], from.block[axis]));
        (
            far(threads(*block), threads(from.block)),
            sides.sum::<f64>(),
        )
    };
    all.sort_by(|a, b| {
        distance(a)
            .partial_cmp(&distance(b))
            .unwrap_or(a.cmp(b))
            .then(a.cmp(b))
    });
    all
}

/// Powers of two along the axes that the threads lie along, from a warp to the largest block.
fn candidates(from: Extents) -> Vec<[u32; 3]> {
    let sides = |axis: usize| {
        let is_open = u64::from(from.block[axis]) * u64::from(from.grid[axis]) > 1;
        let most = if is_open { u32::BITS } else { 1 };
        (0..most)
            .map(|power| 1u32 << power)
            .take_while(|&n| n <= THREADS_PER_BLOCK)
    };
    let mut all = Vec::new();
    for z in sides(2) {
        for y in sides(1) {
            all.extend(
                sides(0)
                    .map(|x| [x, y, z])
                    .filter(|&block| possible(block).is_ok()),
            );
        }
    }
    all.retain(|block| Extent::Size.of(*block) >= WARP_SIZE.into());
    all
}

/// The launch as it is.
fn launched(pass: &Reshape, site: &Site) -> Result<Extents, Refusal> {
    let setting = &site.setting;
    let block = pass.from.unwrap_or(setting.block.dims);
    let grid = pass.grid.or(setting.grid_dims);
    let stated = setting.block.stated().or(site.function().req_ntid());
    if stated.is_some_and(|own| own != block) {
        return Err(Refusal::InTheWay("launches have another block than `from`"));
    }
    Ok(Extents {
        grid: grid.ok_or(Refusal::InTheWay(
            "the grid of its launch is not known: name it with `grid`, or describe the launch",
        ))?,
        block,
        dynamic_smem: 0,
    })
}

/// What the launch becomes.
fn shaped(from: Extents, block: [u32; 3]) -> Result<Extents, Refusal> {
    let possible = possible(block).and_then(|()| possible(from.block));
    possible.map_err(|error| Refusal::obstacle("the block", error))?;
    if block == from.block {
        return Err(Refusal::NothingToDo("other block"));
    }
    let shape = Shape {
        block: Some(block),
        more_smem: 0,
    };
    let to = shape
        .apply(from)
        .ok_or(Refusal::InTheWay("no launch is like that"))?;
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        let threads = u64::from(from.block[axis]) * u64::from(from.grid[axis]);
        if u64::from(to.block[axis]) * u64::from(to.grid[axis]) != threads {
            let detail = format!("{threads} in {name}");
            return Err(Refusal::obstacle(
                "blocks of that shape do not divide its threads",
                detail,
            ));
        }
        if to.grid[axis] > GRID_DIMENSIONS[axis] {
            return Err(Refusal::InTheWay("no device has so large a grid"));
        }
    }
    Ok(to)
}

/// The instructions that control comes to.
fn insts(view: &View<'_>) -> Vec<Inst> {
    let cfg = Cfg::new(view);
    let blocks = cfg.reverse_postorder().iter();
    let all = blocks.flat_map(|&block| cfg.insts(block));
    all.map(|inst| Inst::from_u32(inst.as_u32()))
        .filter(|inst| (inst.as_u32() as usize) < view.body().insts.len())
        .collect()
}

fn opcode<'m>(view: &View<'m>, inst: Inst) -> &'m Opcode {
    view.module().opcode(&view.body().insts[inst])
}

/// Do all threads do the same at both launches?
fn permitted(view: &View<'_>, insts: &[Inst], launches: [Extents; 2]) -> Result<(), Refusal> {
    let is_cluster = view.function().directives.iter().any(|directive| {
        matches!(
            directive.kind,
            DirectiveKind::ReqNctaPerCluster(_)
                | DirectiveKind::ExplicitCluster
                | DirectiveKind::MaxClusterRank(_)
                | DirectiveKind::BlocksAreClusters
        )
    });
    if is_cluster {
        return Err(Refusal::InTheWay("its blocks are in clusters"));
    }
    let text = |inst: Inst| view.inst_text(warpwright_flow::Inst(inst.as_u32()));
    let by = [Numbering::Axes, Numbering::Line].map(|numbering| {
        let keeps_warps = keeps_warps(numbering, launches.map(|launch| launch.block));
        let mut bound = insts.iter().filter(|&&inst| {
            !(does_its_own(opcode(view, inst)) || keeps_warps && is_of_a_warp(opcode(view, inst)))
        });
        if let Some(&inst) = bound.next() {
            let what = match is_of_a_warp(opcode(view, inst)) {
                true => "the shape cuts warps, whose threads work together",
                false => "it does something with its block",
            };
            return Err(Refusal::obstacle(what, text(inst)));
        }
        let map = Map {
            launches,
            numbering,
            keeps_warps,
        };
        map.holds(view, insts).map_err(|(inst, reg)| {
            let detail = format!("{reg} in `{}`", text(inst));
            Refusal::obstacle("it uses more than its threads' numbers", detail)
        })
    });
    let [by_axes, in_line] = by;
    by_axes.or_else(|refusal| in_line.map_err(|_| refusal))
}

/// Does each warp keep its threads in their lanes? Of a block they are 32 in a row, x innermost.
fn keeps_warps(numbering: Numbering, [from, to]: [[u32; 3]; 2]) -> bool {
    let whole = |block: [u32; 3]| Extent::Size.of(block).is_multiple_of(WARP_SIZE.into());
    // The part of a block that its warps are.
    let part = |block: [u32; 3]| {
        let mut dims = [1; 3];
        let mut left = WARP_SIZE;
        for axis in 0..3 {
            let own = block[axis].min(left);
            if !block[axis].is_multiple_of(own) || !left.is_multiple_of(own) {
                return None;
            }
            dims[axis] = own;
            left /= own;
        }
        (left == 1).then_some(dims)
    };
    match numbering {
        _ if from == to => true,
        Numbering::Line => whole(from) && whole(to),
        Numbering::Axes => part(from).is_some() && part(from) == part(to),
    }
}

fn is_of_a_warp(opcode: &Opcode) -> bool {
    match opcode.op {
        Some(
            Op::Shfl
            | Op::Vote
            | Op::Match
            | Op::Activemask
            | Op::Redux
            | Op::Elect
            | Op::Mma
            | Op::Movmatrix,
        ) => true,
        Some(Op::Bar) => opcode.has_mod("warp"),
        _ => false,
    }
}

/// Does an instruction the same whatever other threads are in its block and warp?
fn does_its_own(opcode: &Opcode) -> bool {
    let effect = opcode.effect();
    let scopes = ["cta", "cluster"];
    if opcode.space == Some(Space::Shared)
        || opcode
            .mods()
            .any(|name| scopes.contains(&name) || name.starts_with("shared"))
    {
        return false;
    }
    let orders = effect.acquire || effect.release || effect.is_async;
    match opcode.op {
        Some(Op::Atom | Op::Red) => !orders,
        Some(
            Op::Ld
            | Op::Ldu
            | Op::St
            | Op::Tex
            | Op::Tld4
            | Op::Txq
            | Op::Suq
            | Op::Sust
            | Op::Prefetch
            | Op::Prefetchu
            | Op::Applypriority
            | Op::Discard
            | Op::Createpolicy,
        ) => !orders && !effect.strong && !opcode.has_mod("cv"),
        _ if opcode.control() == Control::Call || is_of_a_warp(opcode) => false,
        _ => opcode.control() != Control::Next || is_pure(opcode),
    }
}

/// Does it round sums that other threads add to?
fn rounds(opcode: &Opcode) -> bool {
    let is_float = |ty: &Type| ty.kind() == TypeKind::Float;
    matches!(opcode.op, Some(Op::Atom | Op::Red))
        && opcode.has_mod("add")
        && opcode.types.iter().any(is_float)
}

/// Do blocks of the new shape find their registers? A limit is the kernel's own.
fn fits(site: &Site, [_, to]: [Extents; 2]) -> Result<(), Refusal> {
    let Some(limit) = site.function().max_nreg() else {
        return Ok(());
    };
    let threads = u32::try_from(Extent::Size.of(to.block)).unwrap_or(u32::MAX);
    occupancy(site.setting.gpu, &Resources::new(limit, threads))?;
    Ok(())
}

/// The text whose head states the new block.
fn directives(site: &Site, [from, to]: [Extents; 2]) -> Result<String, Refusal> {
    let function = site.function();
    let mut edits = Edits::new(site.module);
    let required = DirectiveKind::ReqNtid(Dims(to.block.into_iter().collect()));
    let mut bounds = function.directives.iter();
    let bound = bounds.find(|directive| {
        matches!(
            directive.kind,
            DirectiveKind::MaxNtid(_) | DirectiveKind::ReqNtid(_)
        )
    });
    match bound {
        Some(bound) => edits.replace(bound.span, required.to_string()),
        None => edits.set_directive(site.kernel, &required),
    }
    let threads = [from, to].map(|launch| Extent::Size.of(launch.block));
    for directive in &function.directives {
        let made: fn(u32) -> DirectiveKind = match directive.kind {
            DirectiveKind::MinNctaPerSm(_) => DirectiveKind::MinNctaPerSm,
            DirectiveKind::MaxNctaPerSm(_) => DirectiveKind::MaxNctaPerSm,
            _ => continue,
        };
        let (DirectiveKind::MinNctaPerSm(blocks) | DirectiveKind::MaxNctaPerSm(blocks)) =
            directive.kind
        else {
            continue;
        };
        // As many threads, if so many blocks can reside.
        let most = site.setting.gpu.arch.threads.blocks;
        let blocks = u64::from(blocks) * threads[0] / threads[1];
        match u32::try_from(blocks).unwrap_or(most).min(most) {
            0 => edits.delete(directive.span),
            blocks => edits.replace(directive.span, made(blocks).to_string()),
        }
    }
    Ok(edits.apply()?)
}
