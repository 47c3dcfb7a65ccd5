//! Every build that was measured inside a program, with what is known of its kernel: what fits read.

use serde::Serialize;
use warpwright_winners::lines::{Note, Outcome};

use warpwright_api::trace::GpuFacts;

use crate::judge::{ratios, trials};
use crate::target::Target;

/// What `lab/fits` reads.
#[derive(Serialize)]
pub struct Document {
    schema: &'static str,
    gpu: String,
    driver: u32,
    date: String,
    kernels: Vec<Kernel>,
}

/// A kernel in a launch class.
#[derive(Serialize)]
struct Kernel {
    /// Digest of its code.
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Part of the program's GPU time.
    share: f64,
    launches: u64,
    block: [u32; 3],
    /// Of the first launch.
    grid: [u32; 3],
    /// Bytes a block.
    dynamic_smem: u32,
    static_smem: Option<u32>,
    /// A thread.
    registers: Option<u32>,
    spill_bytes: Option<u32>,
    /// Blocks per SM.
    resident: Option<u32>,
    builds: Vec<Build>,
}

/// A version of it.
#[derive(Serialize)]
struct Build {
    recipe: String,
    /// What the recipe is applied to.
    of: &'static str,
    guard: String,
    shape: String,
    /// Bytes of its cubin.
    bytes: usize,
    /// What the program's data said: `same`, `differs`, `failed`, `elsewhere` or `not tried`.
    outcome: &'static str,
    /// Time over the original's in both sets of turns.
    ratios: [Option<f64>; 2],
}

/// The document of a tuning; `names` says whether kernels keep theirs.
pub fn document((targets, notes): (&[Target], &[Note]), gpu: &GpuFacts, names: bool) -> Document {
    Document {
        schema: "warpwright.builds-in-place/1",
        gpu: gpu.name.clone(),
        driver: gpu.driver,
        date: warpwright_gpu::utc_now(),
        kernels: targets.iter().map(|t| kernel(t, notes, names)).collect(),
    }
}

fn kernel(target: &Target, notes: &[Note], names: bool) -> Kernel {
    let sets = [1, 2].map(|set| ratios(target, notes, set));
    let trials = trials(target, notes);
    let builds = target.proposed.iter().map(|proposed| {
        let mut own = trials.iter().filter(|t| t.candidate == proposed.name);
        let bad = own.clone().find_map(|t| bad(&t.outcome));
        let any = own.next().map(|t| match t.outcome {
            Outcome::Elsewhere => "elsewhere",
            _ => "same",
        });
        Build {
            recipe: proposed.recipe.clone(),
            of: proposed.of,
            guard: proposed.guard.to_string(),
            shape: proposed.shape.to_string(),
            bytes: proposed.cubin.len(),
            outcome: bad.or(any).unwrap_or("not tried"),
            ratios: [0, 1].map(|set| sets[set].get(&proposed.name).copied()),
        }
    });
    let launched = &target.launched;
    Kernel {
        digest: target.digest.clone(),
        name: names.then(|| launched.name.clone()),
        share: launched.share,
        launches: launched.launches + launched.in_graphs,
        block: launched.block,
        grid: launched.grid,
        dynamic_smem: launched.dynamic_smem,
        static_smem: launched.static_smem,
        registers: launched.registers,
        spill_bytes: launched.spill_bytes,
        resident: launched.resident,
        builds: builds.collect(),
    }
}

fn bad(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Differs(_) => Some("differs"),
        Outcome::Failed(_) => Some("failed"),
        Outcome::Same(_) | Outcome::Elsewhere => None,
    }
}
