//! `maxnreg` and `minnctapersm`: how many registers a thread may have, directly or through resident blocks.
//!
//! Goal: ptxas allocates towards a stair of the occupancy staircase (CRAT, section 4.2). PTX ISA,
//! performance-tuning directives. The directive takes the place of the kernel's own one: two would
//! contradict each other.
//!
//! Requires nothing; `minnctapersm` has an effect only beside a bound on the blocks. Preserves every
//! instruction.

use warpwright_ptx::{DirectiveKind, Edits};

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::site::Site;

/// Limit the registers per thread.
#[derive(Debug, Clone, Copy)]
pub struct MaxNReg {
    /// Registers per thread.
    pub registers: u32,
}

crate::options!(MaxNReg: [registers "registers per thread"]; []);

impl Pass for MaxNReg {
    const NAME: &'static str = "maxnreg";
    const ABOUT: &'static str = "limit the registers per thread by .maxnreg";

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

crate::options!(MinNCtaPerSm: [blocks "blocks per SM"]; []);

impl Pass for MinNCtaPerSm {
    const NAME: &'static str = "minnctapersm";
    const LABEL: &'static str = "minblocks";
    const ABOUT: &'static str =
        "ask for resident blocks by .minnctapersm, which needs a bound on the block size";

    fn work(&self) -> Work<Self> {
        Work::Ptx(|pass, site, fuel| set(site, &DirectiveKind::MinNctaPerSm(pass.blocks), fuel))
    }
}

/// Sets the one directive that says how many registers a thread may have.
fn set(site: &Site, wanted: &DirectiveKind, fuel: &mut Fuel) -> Outcome<String> {
    let mut edits = Edits::new(site.module);
    if fuel.burn() {
        let mut own = site
            .function()
            .directives
            .iter()
            .filter(|d| is_limit(&d.kind));
        match own.next() {
            Some(first) => edits.replace(first.span, wanted.to_string()),
            None => edits.set_directive(site.kernel, wanted),
        }
        for other in own {
            edits.delete(other.span);
        }
    }
    Ok(Rewritten::new(edits.apply()?))
}

fn is_limit(kind: &DirectiveKind) -> bool {
    use DirectiveKind::{MaxNctaPerSm, MaxNreg, MinNctaPerSm};
    matches!(kind, MaxNreg(_) | MinNctaPerSm(_) | MaxNctaPerSm(_))
}
