//! `maxnreg` and `minnctapersm`: how many registers a thread may have, directly or through resident blocks.
//!
//! Goal: ptxas allocates towards a stair of the occupancy staircase (CRAT, section 4.2). PTX ISA,
//! performance-tuning directives. The directive takes the place of the kernel's own one: two would
//! contradict each other.
//!
//! Requires nothing; `minnctapersm` has an effect only beside a bound on the blocks, and ptxas ignores one that no
//! SM can hold: that is refused. Preserves every instruction.

use warpwright_ptx::{DirectiveKind, Edits, Function};
use warpwright_target::{
    Gpu, REGISTERS_PER_THREAD, THREADS_PER_BLOCK, WARP_SIZE, architectures, registers_of_bound,
};

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::Site;

/// Limit the registers per thread.
#[derive(Debug, Clone, Copy)]
pub struct MaxNReg {
    /// Registers per thread.
    pub registers: u32,
}

crate::options!(MaxNReg: [registers "registers per thread" in 1..=*REGISTERS_PER_THREAD.end()]; []);

impl Pass for MaxNReg {
    const NAME: &'static str = "maxnreg";
    const ABOUT: &'static str = "limit the registers per thread by .maxnreg";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn work(&self) -> Work<Self> {
        Work::Ptx(|pass, site, fuel| set(site, &DirectiveKind::MaxNreg(pass.registers), fuel))
    }
}

/// Ask for resident blocks.
#[derive(Debug, Clone, Copy)]
pub struct MinNCtaPerSm {
    /// Blocks per SM.
    pub blocks: u32,
}

crate::options!(MinNCtaPerSm: [blocks "blocks per SM" in 1..=most_blocks()]; []);

impl Pass for MinNCtaPerSm {
    const NAME: &'static str = "minnctapersm";
    const LABEL: &'static str = "minblocks";
    const ABOUT: &'static str =
        "ask for resident blocks by .minnctapersm, which needs a bound on the block size";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn work(&self) -> Work<Self> {
        Work::Ptx(|pass, site, fuel| {
            fits(pass.blocks, site)?;
            set(site, &DirectiveKind::MinNctaPerSm(pass.blocks), fuel)
        })
    }
}

/// Blocks that an SM of any architecture holds.
fn most_blocks() -> u32 {
    let blocks = architectures().map(|arch| arch.threads.blocks);
    blocks.max().unwrap_or(u32::MAX)
}

/// The threads of a kernel's own bound on its blocks.
fn bound(function: &Function) -> Option<u32> {
    let own = function.req_ntid().or(function.max_ntid())?;
    Some(own.iter().fold(1u32, |all, &n| all.saturating_mul(n)))
}

/// The most blocks of so many threads that an SM holds.
fn most_of(threads: Option<u32>, gpu: &Gpu) -> u32 {
    let limits = gpu.arch.threads;
    let of_threads = threads.map(|threads| limits.warps * WARP_SIZE / threads.max(1));
    of_threads.map_or(limits.blocks, |most| most.min(limits.blocks))
}

/// Does a kernel bound its blocks, or say how many reside at least? The source has `__launch_bounds__` then, which takes no
/// `__maxnreg__` beside it.
pub fn has_bounds(function: &Function) -> bool {
    let bound = function.max_ntid().or(function.req_ntid());
    bound.is_some() || function.min_nctapersm().is_some()
}

/// What no build on a GPU takes from a kernel's own bounds, in words.
pub fn ignored_bounds(function: &Function, gpu: &Gpu) -> Option<String> {
    let Some(threads) = bound(function) else {
        let ignored = "ptxas ignores its .minnctapersm: it has neither .maxntid nor .reqntid";
        return function.min_nctapersm().map(|_| ignored.to_owned());
    };
    if threads > THREADS_PER_BLOCK {
        let more = format!("a block has {THREADS_PER_BLOCK} at most");
        return Some(match registers_of_bound(gpu, threads, 1) {
            Some(left) => format!(
                "its bound of {threads} threads refuses no launch ({more}), and leaves a thread {left} registers"
            ),
            None => format!("ptxas ignores its bound of {threads} threads: {more}"),
        });
    }
    let blocks = function.min_nctapersm()?;
    let most = most_of(Some(threads), gpu);
    (blocks > most).then(|| {
        format!(
            "ptxas ignores the minimum of __launch_bounds__({threads}, {blocks}): \
             an SM holds {most} such blocks"
        )
    })
}

/// ptxas ignores the directive where an SM cannot hold so many blocks, or so many threads in blocks of the bound.
fn fits(blocks: u32, site: &Site) -> Result<(), Refusal> {
    let threads = bound(site.function());
    let most = most_of(threads, site.setting.gpu);
    match blocks > most {
        true => Err(Refusal::NotResident {
            blocks,
            threads,
            most,
        }),
        false => Ok(()),
    }
}

/// Sets the one directive that says how many registers a thread may have.
fn set(site: &Site, wanted: &DirectiveKind, fuel: &mut Fuel) -> Outcome<String> {
    let mut edits = Edits::new(site.module);
    let mut replaced = Vec::new();
    if fuel.burn() {
        let mut own = site
            .function()
            .directives
            .iter()
            .filter(|d| is_limit(&d.kind))
            .inspect(|d| replaced.push(d.kind.to_string()));
        match own.next() {
            Some(first) => edits.replace(first.span, wanted.to_string()),
            None => edits.set_directive(site.kernel, wanted),
        }
        for other in own {
            edits.delete(other.span);
        }
    }
    let rewritten = Rewritten::new(edits.apply()?);
    let wanted = wanted.to_string();
    replaced.retain(|own| *own != wanted);
    Ok(match replaced.is_empty() {
        true => rewritten,
        false => rewritten.note(format!(
            "its own {} goes for {wanted}",
            replaced.join(" and ")
        )),
    })
}

fn is_limit(kind: &DirectiveKind) -> bool {
    use DirectiveKind::{MaxNctaPerSm, MaxNreg, MinNctaPerSm};
    matches!(kind, MaxNreg(_) | MinNctaPerSm(_) | MaxNctaPerSm(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_ptx::Module;
    use warpwright_target::lookup;

    #[test]
    fn a_minimum_without_a_bound_is_ignored() {
        let said = |directives: &str| {
            let text = format!(
                ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {directives} {{ ret; }}\n"
            );
            let module = Module::parse("k.ptx", &text).0;
            let gpu = lookup("h200").expect("a known GPU");
            let (_, function) = module.kernels().next().expect("a kernel");
            ignored_bounds(function, &gpu)
        };
        let ignored = "ptxas ignores its .minnctapersm: it has neither .maxntid nor .reqntid";
        assert_eq!(said(".minnctapersm 4").as_deref(), Some(ignored));
        assert_eq!(said(".maxntid 256 .minnctapersm 4"), None);
        assert_eq!(said(""), None);
    }
}
