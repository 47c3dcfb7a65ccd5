//! Candidates for a kernel of a running program. All that is taken from the pipeline is taken here.

use warpwright::optimise::workshop;
use warpwright_driver::build::Built;
use warpwright_driver::candidate::Standing;
use warpwright_driver::opt::{DEFAULT_BUDGET, DEFAULT_MARGIN, Known, Request};
use warpwright_driver::{Peers, Proofs};
use warpwright_pass::{Artifact, Caution, Recipe, Scope};
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, Toolkit};
use warpwright_winners::LaunchClass;
use warpwright_winners::graft::{Addition, graft};
use warpwright_winners::identities;
use warpwright_winners::lines::Numbers;
use warpwright_winners::ties::{Bond, bond, tables};

use crate::args::Cli;
use crate::commands::opt::explore_all;
use crate::failure::Failure;
use crate::session::{parse, target, verified};

/// As many candidates of a kernel are tried, the best predicted first.
const MOST: usize = 6;

/// A version of a kernel that may stand in its place.
pub struct Proposed {
    /// A name without blanks, for the library and its notes.
    pub name: String,
    /// Its recipe.
    pub recipe: String,
    /// What the recipe is applied to: `PTX` or `machine code`.
    pub of: &'static str,
    /// How it is known to compute the same.
    pub proof: String,
    /// Its code.
    pub cubin: Vec<u8>,
    /// The proof leaves the last bits of its results open, and they are numbers of this kind.
    pub rounds: Option<Numbers>,
}

/// The kernel that candidates are wanted for.
pub struct Wanted<'a> {
    /// The module's cubin.
    pub cubin: &'a [u8],
    /// The PTX that it was made of, if there is some.
    pub ptx: Option<&'a str>,
    /// The kernel's symbol.
    pub kernel: &'a String,
    /// Digest of its code.
    pub digest: &'a str,
    /// How it is launched.
    pub class: LaunchClass,
    /// Blocks of the launch.
    pub blocks: u64,
    /// Where.
    pub gpu: &'a Gpu,
}

/// Candidates from the PTX, if there is some and a toolkit to build them with, and from the machine code. Only
/// those that are proved and share with their module what the original shares with its own.
pub fn propose(
    cli: &Cli,
    wanted: &Wanted<'_>,
    toolkit: Option<&Toolkit>,
) -> Result<Vec<Proposed>, Failure> {
    let mut found: Vec<(f64, Proposed)> = Vec::new();
    let from_ptx = wanted
        .ptx
        .zip(toolkit)
        .map(|(ptx, toolkit)| from_ptx(cli, wanted, ptx, toolkit));
    let from_code = from_machine_code(cli, wanted);
    for (what, built) in [("PTX", from_ptx), ("machine code", Some(from_code))] {
        match built {
            Some(Ok(built)) => take(&built, wanted, what, &mut found),
            Some(Err(failure)) if cli.verbose > 0 => {
                complain!("{}: no candidates from {what}", wanted.kernel);
                let _ = failure.report(false);
            }
            _ => {}
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.truncate(MOST);
    Ok(found.into_iter().map(|(_, proposed)| proposed).collect())
}

fn request<'a>(wanted: &Wanted<'a>, gpu: &'a Gpu) -> Request<'a> {
    Request {
        gpu,
        scope: Scope {
            gpu: Some(*gpu),
            kernels: std::slice::from_ref(wanted.kernel),
            block: Some(wanted.class.block),
            blocks: &[],
            seen: &[],
            dynamic_smem: Some(wanted.class.dynamic_smem),
            grid: Some(wanted.blocks),
            sizes: &[],
            reassociate: false,
            launch: None,
        },
        peers: Peers::None,
        ptx_only: false,
        margin: DEFAULT_MARGIN,
        budget: DEFAULT_BUDGET,
        proofs: Proofs::All,
    }
}

fn from_ptx(
    cli: &Cli,
    wanted: &Wanted<'_>,
    ptx: &str,
    toolkit: &Toolkit,
) -> Result<Vec<Built>, Failure> {
    let module = parse(wanted.kernel, ptx)?;
    let gpu = target(&module, Some(*wanted.gpu))?;
    let artifact = verified(module)?;
    let (arch, cache) = (gpu.target(), BuildCache::standard());
    let workshop = workshop(toolkit, &cache, &arch, &artifact);
    let request = request(wanted, &gpu);
    let outcomes = explore_all(cli, None, Some(&workshop), &artifact, &request, &|_| {
        Known::new()
    })?;
    Ok(outcomes
        .into_iter()
        .flat_map(|outcome| outcome.built)
        .collect())
}

fn from_machine_code(cli: &Cli, wanted: &Wanted<'_>) -> Result<Vec<Built>, Failure> {
    let artifact = Artifact::cubin(wanted.cubin.to_vec());
    let artifact = artifact.map_err(|error| Failure::input(error.to_string()))?;
    let request = request(wanted, wanted.gpu);
    let outcomes = explore_all(cli, None, None, &artifact, &request, &|_| Known::new())?;
    Ok(outcomes
        .into_iter()
        .flat_map(|outcome| outcome.built)
        .collect())
}

/// May a candidate stand in the original's place? One that uses variables must fit into the original's module; another
/// one brings the tables along that the original reads.
fn fits(cubin: &[u8], wanted: &Wanted<'_>) -> bool {
    let kernel = wanted.kernel;
    match (bond(wanted.cubin, kernel), bond(cubin, kernel)) {
        (Ok(Bond::None), Ok(Bond::None)) => reads_the_same(cubin, wanted),
        (Ok(Bond::Variables), Ok(_)) => {
            let name = format!("{kernel}.candidate");
            let addition = Addition {
                kernel,
                name: &name,
                cubin,
                symbol: kernel,
            };
            graft(wanted.cubin, &[addition]).is_ok()
        }
        _ => false,
    }
}

/// The tables of the mathematical library that a candidate brings along are those that the original reads.
fn reads_the_same(cubin: &[u8], wanted: &Wanted<'_>) -> bool {
    let (own, original) = (
        tables(cubin, wanted.kernel),
        tables(wanted.cubin, wanted.kernel),
    );
    matches!((own, original), (Ok(own), Ok(original)) if own.iter().all(|table| original.get(table.0) == Some(table.1)))
}

/// What a module computes with, if that is of one kind.
fn numbers(ptx: &str) -> Option<Numbers> {
    match (ptx.contains(".f32"), ptx.contains(".f64")) {
        (true, false) => Some(Numbers::Single),
        (false, true) => Some(Numbers::Double),
        _ => None,
    }
}

fn take(
    built: &[Built],
    wanted: &Wanted<'_>,
    what: &'static str,
    found: &mut Vec<(f64, Proposed)>,
) {
    for b in built {
        let (Some(figures), Some(cubin)) = (b.candidate.figures(), b.cubin()) else {
            continue;
        };
        let proof = match &figures.standing {
            Standing::Proved(rung) => format!("{what}: {rung}"),
            // Proved as well; what remains open, the program's own data decides.
            Standing::UntilMeasured(caution) => {
                format!("{what}, proved; measured, since {caution}")
            }
            // Nothing to prove: the build's limits are left out.
            Standing::Open if b.candidate.recipe == Recipe::default() => {
                format!("{what}, unchanged; assembled by ptxas")
            }
            Standing::Open | Standing::SameCode(_) | Standing::Rejected(_) => continue,
        };
        let identity = identities(cubin).unwrap_or_default();
        let own = identity.iter().find(|k| k.name == *wanted.kernel);
        let is_new = own.is_some_and(|k| k.digest != wanted.digest);
        let is_known = found.iter().any(|(_, other)| other.cubin == cubin);
        if !is_new || is_known || !fits(cubin, wanted) {
            continue;
        }
        let recipe = b.candidate.recipe.to_string();
        let label = b.candidate.name().replace(char::is_whitespace, "-");
        let name = format!("{}-{label}", what.replace(' ', "-"));
        let fused = matches!(figures.standing, Standing::UntilMeasured(Caution::Fusion));
        let rounds = wanted.ptx.filter(|_| fused).and_then(numbers);
        let proposed = Proposed {
            name,
            recipe,
            of: what,
            proof,
            cubin: cubin.to_vec(),
            rounds,
        };
        let time = figures
            .score
            .as_ref()
            .map_or(1.0, |score| score.relative_time);
        found.push((time, proposed));
    }
}
