//! `maxntid`: promise ptxas a block size.
//!
//! Goal: ptxas plans for the blocks that there are, not for 1,024 threads (PTX ISA, `.maxntid`). A launch
//! with larger blocks fails. A bound that the kernel has already is kept if it is wide enough: a launch
//! may rely on it.
//!
//! Requires nothing; refused where the kernel allows fewer threads. Preserves every instruction.

use warpwright_ptx::{Dims, DirectiveKind, Edits};
use warpwright_target::THREADS_PER_BLOCK;

use crate::pass::{Caution, Fuel, Outcome, Pass, Rewritten, Work};
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::Site;

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct MaxNTid {
    /// Threads per block.
    pub threads: u32,
}

crate::options!(MaxNTid: [threads "threads per block" in 1..=THREADS_PER_BLOCK]; []);

impl Pass for MaxNTid {
    const NAME: &'static str = "maxntid";
    const ABOUT: &'static str = "promise a block size by .maxntid; larger launches fail";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn work(&self) -> Work<Self> {
        Work::Ptx(promise)
    }
}

fn promise(pass: &MaxNTid, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    let function = site.function();
    let own = function.req_ntid().or(function.max_ntid());
    let own = own.map(|d| d.iter().fold(1u32, |all, &n| all.saturating_mul(n)));
    let unchanged = || Ok(Rewritten::new(site.module.source.to_string()));
    match own {
        Some(own) if own < pass.threads => Err(Refusal::BlockBound {
            own,
            wanted: pass.threads,
        }),
        // What is wider stays, and that is said: the promise was not written.
        Some(own) if own > pass.threads => Ok(unchanged()?.note(format!(
            "its own bound of {own} threads stays, not maxntid({}): a launch may rely on it",
            pass.threads
        ))),
        Some(_) => unchanged(),
        None if !fuel.burn() => unchanged(),
        None => {
            let mut edits = Edits::new(site.module);
            let dims = Dims([pass.threads, 1, 1].into_iter().collect());
            edits.set_directive(site.kernel, &DirectiveKind::MaxNtid(dims));
            let caution = Caution::BlockBound {
                threads: pass.threads,
            };
            Ok(Rewritten::new(edits.apply()?).careful([caution]))
        }
    }
}
