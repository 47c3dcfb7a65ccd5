//! Every build that was measured inside a program, with what is known of it: what `lab/fits` reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warpwright_api::trace::GpuFacts;
use warpwright_driver::build::resources_of;
use warpwright_driver::search::{Axis, Point};
use warpwright_launch::Extents;
use warpwright_model::measured::{Figures, Measured, figures};
use warpwright_pass::{Invocation, Recipe};
use warpwright_sass::{Cubin, Kernel as Code};
use warpwright_target::Gpu;
use warpwright_winners::lines::{Note, ORIGINAL, Outcome};

use crate::Tools;
use crate::candidates::{self, Proposed};
use crate::judge::{nanoseconds, ratios, trials};
use crate::search::Searching;
use crate::target::{Target, Verdict};

/// `schema` of the document.
pub const SCHEMA: &str = "warpwright.builds-in-place/2";

/// Why a text is no such document.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// It is no JSON, or lacks what it must have.
    #[error("no file of `tune --keep`: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version, or another document.
    #[error("its schema is `{0}`, and {SCHEMA} is read: tune the program once more")]
    Schema(String),
}

/// A tuning of a program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Document {
    /// [`SCHEMA`]
    pub schema: String,
    /// As its driver reports it.
    pub gpu: String,
    /// 90 for sm_90.
    pub sm: u32,
    /// Version of the driver's interface, 13000 for CUDA 13.0.
    pub driver: u32,
    /// When (ISO 8601).
    pub date: String,
    /// The hottest first.
    pub kernels: Vec<Kernel>,
}

/// A kernel in a launch class.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kernel {
    /// Digest of its code.
    pub digest: String,
    /// As people write it, unless names are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Part of the program's GPU time.
    pub share: f64,
    /// On streams and in graphs.
    pub launches: u64,
    /// Those of the class that it is about.
    pub among: String,
    /// Of the first launch.
    pub launch: Launch,
    /// Blocks per cluster, if the launch states them.
    pub cluster: Option<[u32; 3]>,
    /// Launched cooperatively?
    pub cooperative: bool,
    /// Blocks per SM as the driver's calculator has it.
    pub resident: Option<u32>,
    /// Of the original.
    pub code: Option<Facts>,
    /// Median nanoseconds of the original at both launches.
    pub ns: [Option<f64>; 2],
    /// Which of the builds won.
    pub winner: Option<usize>,
    /// The winner's time over the original's among the program's other kernels.
    pub in_program: Option<f64>,
    /// What was built.
    pub builds: Vec<Build>,
    /// What the search found, if there was one.
    pub search: Option<Landscape>,
}

/// What a search chose among, and what it found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Landscape {
    /// Was every point tried?
    pub is_exhaustive: bool,
    /// In the order in which their passes are applied.
    pub axes: Vec<Choice>,
    /// How many values of axes were left out.
    pub left_out: BTreeMap<String, usize>,
    /// Points that are known.
    pub points: Vec<Found>,
}

/// An axis of a search.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Choice {
    /// What it is about.
    pub name: String,
    /// The recipe of each value; doing nothing is none of them.
    pub values: Vec<String>,
    /// The axis whose values its own pay with.
    pub wants: Option<String>,
}

/// A point of a search.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Found {
    /// Which value each axis has: 0 for nothing.
    pub at: Vec<usize>,
    /// Time over the original's; none where it cannot be.
    pub ratio: Option<f64>,
    /// Which of the builds it is; none for the original, and where there is none.
    pub build: Option<usize>,
}

/// Geometry of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Bytes per block.
    pub dynamic_smem: u32,
}

/// What is known of machine code without a measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Facts {
    /// Bytes of static shared memory per block.
    pub static_smem: u32,
    /// Bytes that loads and stores at fixed places of the stack move: spills, and what constants index of local arrays.
    pub spill_bytes: u32,
    /// What the model makes of it; none where the board cannot run it.
    #[serde(flatten)]
    pub figures: Option<Figures>,
}

/// A version of a kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Build {
    /// What was done.
    pub recipe: String,
    /// To what: `PTX` or `machine code`.
    pub of: String,
    /// Launches that it is right for.
    pub guard: String,
    /// What a launch becomes for it.
    pub shape: String,
    /// The same of the kernel's first launch.
    pub launch: Launch,
    /// Bytes of its cubin.
    pub bytes: usize,
    /// Of its code.
    pub code: Option<Facts>,
    /// What the program's data said.
    pub outcome: Told,
    /// Median nanoseconds in both sets of turns.
    pub ns: [Option<f64>; 2],
    /// Median over turns of its time over the original's beside it, in both sets.
    pub ratios: [Option<f64>; 2],
}

/// What became of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// Its results are the original's.
    Same,
    /// They are not.
    Differs,
    /// The driver refused it, or it failed.
    Failed,
    /// It is not for the launches that were tried.
    Elsewhere,
    /// There was no time for it.
    NotTried,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// [`NotKept`]
    pub fn parse(text: &str) -> Result<Document, NotKept> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let Head { schema } = serde_json::from_str(text)?;
        match schema == SCHEMA {
            true => Ok(serde_json::from_str(text)?),
            false => Err(NotKept::Schema(schema)),
        }
    }
}

/// The document of a tuning; `names` says whether kernels keep theirs.
pub fn document(
    (targets, notes): (&[Target], &[Note]),
    tools: Tools<'_>,
    facts: &GpuFacts,
    names: bool,
) -> Document {
    Document {
        schema: SCHEMA.to_owned(),
        gpu: facts.name.clone(),
        sm: facts.sm,
        driver: facts.driver,
        date: warpwright_gpu::utc_now(),
        kernels: targets
            .iter()
            .map(|target| kernel(target, notes, tools, names))
            .collect(),
    }
}

fn kernel(target: &Target, notes: &[Note], tools: Tools<'_>, names: bool) -> Kernel {
    let launched = &target.launched;
    let launch = Launch {
        grid: launched.grid,
        block: launched.block,
        dynamic_smem: launched.dynamic_smem,
    };
    let original = candidates::Code::read(tools.modules, launched);
    let mut codes = vec![
        original
            .ok()
            .and_then(|code| of_kernel(&code.cubin, target)),
    ];
    codes.extend(target.proposed.iter().map(|p| of_kernel(&p.cubin, target)));
    let launches = std::iter::once(launch);
    let shaped = target.proposed.iter().map(|p| shaped(p, launch));
    let launches: Vec<Launch> = launches.chain(shaped).collect();
    let mut facts = facts(tools.gpu, &codes, &launches).into_iter();
    let code = facts.next().flatten();
    let (winner, in_program) = match &target.verdict {
        Verdict::Won {
            name, in_program, ..
        } => (
            target.proposed.iter().position(|p| p.name == *name),
            *in_program,
        ),
        Verdict::Stays(_) => (None, None),
    };
    let times = [1, 2].map(|set| (nanoseconds(target, notes, set), ratios(target, notes, set)));
    let builds = target.proposed.iter().zip(launches[1..].iter().zip(facts));
    let builds = builds.map(|(proposed, (launch, code))| Build {
        recipe: proposed.recipe.clone(),
        of: proposed.of.to_owned(),
        guard: proposed.guard.to_string(),
        shape: proposed.shape.to_string(),
        launch: *launch,
        bytes: proposed.cubin.len(),
        code,
        outcome: told(target, notes, &proposed.name),
        ns: [0, 1].map(|set| times[set].0.get(&proposed.name).copied()),
        ratios: [0, 1].map(|set| times[set].1.get(&proposed.name).copied()),
    });
    Kernel {
        search: target.searching.as_ref().map(|s| landscape(target, s)),
        builds: builds.collect(),
        digest: target.digest.clone(),
        name: names.then(|| launched.name.clone()),
        share: launched.share,
        launches: launched.launches + launched.in_graphs,
        among: target.when.among.to_string(),
        launch,
        cluster: launched.cluster,
        cooperative: launched.cooperative,
        resident: launched.resident,
        code,
        ns: [0, 1].map(|set| times[set].0.get(ORIGINAL).copied()),
        winner,
        in_program,
    }
}

fn landscape(target: &Target, searching: &Searching) -> Landscape {
    let Searching {
        search,
        made,
        left_out,
        ..
    } = searching;
    let axis = |axis: &Axis| Choice {
        name: axis.name.to_owned(),
        values: axis.values.iter().map(|value| recipe(value)).collect(),
        wants: axis.wants.map(str::to_owned),
    };
    let place = |name: &String| target.proposed.iter().position(|p| p.name == *name);
    let found = |(at, ratio): (&Point, Option<f64>)| Found {
        at: at.clone(),
        ratio,
        build: made.get(at).and_then(place),
    };
    let left_out = left_out.iter();
    Landscape {
        is_exhaustive: search.is_exhaustive(),
        axes: search.axes().iter().map(axis).collect(),
        left_out: left_out
            .map(|(name, out)| ((*name).to_owned(), *out))
            .collect(),
        points: search.known().map(found).collect(),
    }
}

/// The recipe of a value.
fn recipe(value: &[Invocation]) -> String {
    let all = value.iter().cloned();
    all.fold(Recipe::default(), |recipe, pass| recipe.with(pass))
        .to_string()
}

/// The kernel in a cubin of it.
fn of_kernel(cubin: &[u8], target: &Target) -> Option<Code> {
    let cubin = Cubin::parse(cubin).ok()?;
    cubin.kernel(&target.launched.kernel).cloned()
}

/// What the first launch becomes for a version; a shape that does not fit leaves it as it is.
fn shaped(proposed: &Proposed, launch: Launch) -> Launch {
    let own = Extents {
        grid: launch.grid,
        block: launch.block,
        dynamic_smem: launch.dynamic_smem,
    };
    let made = proposed.shape.apply(own).unwrap_or(own);
    Launch {
        grid: made.grid,
        block: made.block,
        dynamic_smem: made.dynamic_smem,
    }
}

/// The facts of builds, beside the first, which is the original.
fn facts(gpu: &Gpu, codes: &[Option<Code>], launches: &[Launch]) -> Vec<Option<Facts>> {
    let known: Vec<Measured<'_>> = codes
        .iter()
        .zip(launches)
        .filter_map(|(code, launch)| {
            let kernel = code.as_ref()?;
            Some(Measured {
                kernel,
                registers: kernel.registers,
                threads: launch.block.iter().product(),
                blocks: launch.grid.iter().map(|&n| u64::from(n)).product(),
                dynamic_smem: launch.dynamic_smem,
            })
        })
        .collect();
    // Without the original there is nothing to stand beside.
    let mut all = match codes.first() {
        Some(Some(_)) => figures(gpu, 0, &known),
        _ => vec![None; known.len()],
    }
    .into_iter();
    let facts = |code: &Option<Code>| {
        let resources = resources_of(code.as_ref()?, gpu);
        Some(Facts {
            static_smem: resources.shared_bytes,
            spill_bytes: resources.spill_store_bytes + resources.spill_load_bytes,
            figures: all.next().flatten(),
        })
    };
    codes.iter().map(facts).collect()
}

fn told(target: &Target, notes: &[Note], name: &str) -> Told {
    let trials = trials(target, notes).into_iter();
    let outcomes = trials.filter(|t| t.candidate == name).map(|t| &t.outcome);
    let mut found = Told::NotTried;
    for outcome in outcomes {
        match outcome {
            Outcome::Differs(_) => return Told::Differs,
            Outcome::Failed(_) => return Told::Failed,
            Outcome::Elsewhere if found == Told::NotTried => found = Told::Elsewhere,
            Outcome::Elsewhere => {}
            Outcome::Same(_) => found = Told::Same,
        }
    }
    found
}
