//! Candidates for a kernel of a running program. All that is taken from the pipeline is taken here.

use std::path::Path;

use warpwright_api::Error;
use warpwright_api::front::{parse, target, verified};
use warpwright_api::optimise::{explore_all, versions, workshop};
use warpwright_api::trace::{Launched, Stayed};
use warpwright_driver::build::{Built, Workshop};
use warpwright_driver::candidate::Standing;
use warpwright_driver::opt::{DEFAULT_BUDGET, DEFAULT_MARGIN, Known, Request};
use warpwright_driver::search::Axis;
use warpwright_driver::{Peers, Proofs, proposal};
use warpwright_launch::{Guard, Shape};
use warpwright_pass::artifact::Invalid;
use warpwright_pass::{Artifact, Caution, Recipe, Scope};
use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Module, Type, TypeKind};
use warpwright_sass::Cubin;
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, Toolkit};
use warpwright_winners::LaunchClass;
use warpwright_winners::digest::variables;
use warpwright_winners::graft::{Addition, graft};
use warpwright_winners::identities;
use warpwright_winners::lines::{Likeness, Numbers};
use warpwright_winners::ties::{Bond, bond, tables};

use crate::Watch;

/// As many candidates of a kernel are tried, the best predicted first.
const MOST: usize = 6;
/// Bytes of variables that each version of a search may bring along: a hundred of them are on the device together.
const MOST_MIRRORED: u64 = 4 << 20;

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
    /// What its results must be.
    pub likeness: Likeness,
    /// The launches that it is right for, beside those of its class.
    pub guard: Guard,
    /// What a launch becomes for it.
    pub shape: Shape,
}

#[cfg(test)]
impl Proposed {
    /// One of this name, for all launches.
    pub(crate) fn of_test(name: &str) -> Proposed {
        Proposed {
            name: name.to_owned(),
            recipe: String::new(),
            of: "PTX",
            proof: String::new(),
            cubin: Vec::new(),
            likeness: Likeness::Bytes,
            guard: Guard::always(),
            shape: Shape::SAME,
        }
    }
}

/// What a search chooses among for a kernel, and what is tried first.
pub struct Start {
    /// The best predicted.
    pub proposed: Vec<Proposed>,
    /// The choices; none where there is no PTX.
    pub axes: Vec<Axis>,
    /// Can versions be made while the program waits? Not of kernels with large variables: each version that is made then
    /// brings its own along, and the others are in the module when it is loaded.
    pub is_searched: bool,
}

/// A module that the program loads.
pub struct Code {
    /// Its cubin.
    pub cubin: Vec<u8>,
    /// What that was made of, if it was there for the same architecture.
    pub ptx: Option<String>,
}

impl Code {
    /// The module of a kernel among those that were seen.
    ///
    /// # Errors
    /// [`Error::Unread`].
    pub fn read(modules: &Path, launched: &Launched) -> Result<Code, Error> {
        let module = launched.module.as_deref().unwrap_or_default();
        let path = modules.join(format!("{module}.cubin"));
        Code::at(&path).map_err(|error| Error::Unread {
            name: path.display().to_string(),
            error,
        })
    }

    /// Does its machine code bound the blocks of a kernel?
    pub(crate) fn has_bounds(&self, kernel: &str) -> bool {
        let cubin = Cubin::parse(&self.cubin).ok();
        let found = cubin.as_ref().and_then(|cubin| cubin.kernel(kernel));
        found.is_some_and(|kernel| kernel.max_threads.is_some())
    }

    /// The one with this cubin.
    ///
    /// # Errors
    /// The cubin cannot be read.
    pub fn at(path: &Path) -> std::io::Result<Code> {
        Ok(Code {
            cubin: std::fs::read(path)?,
            ptx: std::fs::read_to_string(path.with_extension("ptx")).ok(),
        })
    }
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
    /// The grid, if all launches have it.
    pub grid: Option<[u32; 3]>,
    /// May blocks have another shape? Clusters divide the grid, cooperative grids are as large as the GPU.
    pub may_be_shaped: bool,
    /// What stayed the same among the parameters.
    pub stayed: Option<&'a Stayed>,
    /// Where.
    pub gpu: &'a Gpu,
    /// May last bits differ (`--fp`)?
    pub may_round: bool,
}

/// Candidates from the PTX, if there is some and a toolkit to build them with, and from the machine code. Only
/// those that are proved and share with their module what the original shares with its own.
pub fn propose(watch: &dyn Watch, wanted: &Wanted<'_>, toolkit: Option<&Toolkit>) -> Start {
    let mut axes = Vec::new();
    let mut found: Vec<(f64, Proposed)> = Vec::new();
    let module = wanted.ptx.and_then(|ptx| parse(wanted.kernel, ptx).ok());
    let from_ptx = wanted
        .ptx
        .zip(toolkit)
        .map(|(ptx, toolkit)| from_ptx(watch, wanted, ptx, toolkit));
    let from_code = from_machine_code(watch, wanted);
    for (what, built) in [("PTX", from_ptx), ("machine code", Some(from_code))] {
        match built {
            Some(Ok(built)) => {
                if what == "PTX" {
                    axes = choices(wanted, module.as_ref(), &built);
                }
                take(&built, (wanted, module.as_ref()), what, &mut found);
            }
            Some(Err(error)) => watch.refused(wanted.kernel, what, error),
            None => {}
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.truncate(MOST);
    Start {
        proposed: found.into_iter().map(|(_, proposed)| proposed).collect(),
        is_searched: toolkit.is_some() && !axes.is_empty() && is_searchable(wanted),
        axes,
    }
}

/// See [`Start::is_searched`].
fn is_searchable(wanted: &Wanted<'_>) -> bool {
    match bond(wanted.cubin, wanted.kernel) {
        Ok(Bond::None) => true,
        Ok(Bond::Variables) => {
            let all = variables(wanted.cubin).unwrap_or_default();
            all.iter().map(|variable| variable.bytes).sum::<u64>() <= MOST_MIRRORED
        }
        Err(_) => false,
    }
}

/// What recipes for a kernel are made of, by what is known of its launches and of the builds so far.
fn choices(wanted: &Wanted<'_>, module: Option<&Module>, built: &[Built]) -> Vec<Axis> {
    let candidates: Vec<_> = built.iter().map(|b| b.candidate.clone()).collect();
    let constants = module.map_or_else(Vec::new, |module| constants(wanted, module));
    let facts = proposal::Choices {
        constants: &constants,
        launch: wanted
            .grid
            .filter(|_| wanted.may_be_shaped)
            .map(|grid| [wanted.class.block, grid]),
        // A version stands for this kernel alone, whatever becomes of the others of its module.
        module_options: module.is_some(),
        sm: wanted.gpu.arch.sm,
    };
    proposal::axes(&facts, &candidates)
}

/// What is the same at all launches of the class, as guards: all of it, and the extents alone.
fn constants(wanted: &Wanted<'_>, module: &Module) -> Vec<Guard> {
    let mut extents = Guard::always().block(wanted.class.block);
    if let Some(grid) = wanted.grid {
        extents = extents.grid(grid);
    }
    let kernel = module.function(wanted.kernel);
    let numbers =
        (wanted.stayed.zip(kernel)).map(|(stayed, kernel)| stayed.numbers(module, kernel));
    // Without extents they go with other shapes.
    let numbers = numbers.unwrap_or_default();
    let all = numbers.conditions().fold(extents.clone(), Guard::with);
    match all == extents {
        true => vec![extents],
        false => vec![all, extents, numbers],
    }
}

/// Makes versions for a search; `None` for each that cannot be, or cannot stand in the original's place.
///
/// # Errors
/// The PTX is not understood, is for another GPU, or ptxas does not take it.
pub fn make(
    wanted: &Wanted<'_>,
    toolkit: &Toolkit,
    recipes: Vec<Recipe>,
) -> Result<Vec<Option<Proposed>>, Error> {
    let Some(ptx) = wanted.ptx else {
        return Ok(recipes.iter().map(|_| None).collect());
    };
    let (made, sums) = with_ptx(wanted, ptx, toolkit, |workshop, artifact, request| {
        let made = versions(Some(workshop), artifact, request, wanted.kernel, recipes)?;
        Ok((made, artifact.as_module().and_then(sums)))
    })?;
    let proposed = made.into_iter().map(|made| {
        let made = made.ok()?;
        let version = made.version;
        let of = "PTX";
        let proof = match made.caution {
            Some(caution) => format!("{of}, proved; measured, since {caution}"),
            None => format!("{of}: {}", version.rung),
        };
        let fused = matches!(made.caution, Some(Caution::Fusion));
        let proposed = Proposed {
            name: String::new(),
            recipe: version.recipe,
            of,
            proof,
            cubin: version.code.to_vec(),
            likeness: likeness(ptx, sums, fused, wanted.may_round),
            guard: version.guard,
            shape: version.shape,
        };
        fits(&proposed.cubin, wanted).then_some(proposed)
    });
    Ok(proposed.collect())
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
        is_searched: true,
    }
}

/// Does work with the PTX of a kernel, and what builds it.
fn with_ptx<T>(
    wanted: &Wanted<'_>,
    ptx: &str,
    toolkit: &Toolkit,
    work: impl FnOnce(&Workshop<'_>, &Artifact, &Request<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let module = parse(wanted.kernel, ptx)?;
    let gpu = target(&module, Some(*wanted.gpu))?;
    let artifact = verified(module)?;
    let (arch, cache) = (gpu.target(), BuildCache::standard());
    let workshop = workshop(toolkit, &cache, &arch, &artifact);
    work(&workshop, &artifact, &request(wanted, &gpu))
}

fn from_ptx(
    watch: &dyn Watch,
    wanted: &Wanted<'_>,
    ptx: &str,
    toolkit: &Toolkit,
) -> Result<Vec<Built>, Error> {
    with_ptx(wanted, ptx, toolkit, |workshop, artifact, request| {
        explored(watch, Some(workshop), artifact, request)
    })
}

fn from_machine_code(watch: &dyn Watch, wanted: &Wanted<'_>) -> Result<Vec<Built>, Error> {
    let artifact = Artifact::cubin(wanted.cubin.to_vec());
    let artifact = artifact.map_err(|error| match error {
        Invalid::Elf(error) => Error::Cubin {
            name: wanted.kernel.clone(),
            error,
        },
        Invalid::Ptx { .. } => Error::Internal("a cubin that is PTX"),
    })?;
    explored(watch, None, &artifact, &request(wanted, wanted.gpu))
}

/// All builds of an exploration.
fn explored(
    watch: &dyn Watch,
    workshop: Option<&Workshop<'_>>,
    artifact: &Artifact,
    request: &Request<'_>,
) -> Result<Vec<Built>, Error> {
    let none = |_: &str| Known::new();
    let outcomes = explore_all(workshop, artifact, request, &none, &*watch.building())?;
    Ok(outcomes
        .into_iter()
        .flat_map(|outcome| outcome.built)
        .collect())
}

/// Is it the code that the program has already, launched as it is?
pub fn is_original(proposed: &Proposed, digest: &str) -> bool {
    let all = identities(&proposed.cubin).unwrap_or_default();
    proposed.shape.is_same() && all.iter().any(|kernel| kernel.digest == digest)
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

/// What is asked of the results of a version of PTX. `sums` are the numbers that threads add up in no fixed order.
fn likeness(ptx: &str, sums: Option<Numbers>, fused: bool, may_round: bool) -> Likeness {
    match (fused, may_round) {
        (true, true) => numbers(ptx).map_or(Likeness::Bytes, Likeness::Rounded),
        (true, false) => Likeness::Bytes,
        (false, _) => sums.map_or(Likeness::Bytes, Likeness::Spread),
    }
}

/// The numbers that atomic additions of a module are about, if they are of one kind.
fn sums(module: &Module) -> Option<Numbers> {
    let bodies = module.functions.values().filter_map(|f| f.body.as_ref());
    let all = bodies.flat_map(|body| body.insts.values());
    let mut kinds = all
        .map(|inst| module.opcode(inst))
        .filter(|opcode| matches!(opcode.op, Some(Op::Atom | Op::Red)) && opcode.has_mod("add"))
        .filter_map(|opcode| opcode.types.iter().find(|ty| ty.kind() == TypeKind::Float))
        .map(|ty| match ty {
            Type::F32 => Some(Numbers::Single),
            Type::F64 => Some(Numbers::Double),
            _ => None,
        });
    let first = kinds.next()??;
    kinds.all(|kind| kind == Some(first)).then_some(first)
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
    (wanted, module): (&Wanted<'_>, Option<&Module>),
    what: &'static str,
    found: &mut Vec<(f64, Proposed)>,
) {
    let sums = module.and_then(sums);
    for b in built {
        let (Some(figures), Some(cubin)) = (
            b.candidate.figures(),
            b.cubin().map(|cubin| &**cubin.bytes()),
        ) else {
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
        let likeness = match wanted.ptx {
            Some(ptx) => likeness(ptx, sums, fused, wanted.may_round),
            None => Likeness::Bytes,
        };
        let proposed = Proposed {
            name,
            recipe,
            of: what,
            proof,
            cubin: cubin.to_vec(),
            likeness,
            guard: Guard::always(),
            shape: Shape::SAME,
        };
        let time = figures
            .score
            .as_ref()
            .map_or(1.0, |score| score.relative_time);
        found.push((time, proposed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_may_differ_only_where_it_is_asked_for_or_no_order_is_fixed() {
        let single = Some(Numbers::Single);
        let of =
            |sums, fused, may_round| likeness("add.f32 %f1, %f2, %f3;", sums, fused, may_round);
        assert_eq!(of(None, false, true), Likeness::Bytes);
        assert_eq!(of(None, true, false), Likeness::Bytes);
        assert_eq!(of(None, true, true), Likeness::Rounded(Numbers::Single));
        assert_eq!(of(single, false, false), Likeness::Spread(Numbers::Single));
        // A proof that leaves the last bits open says nothing of sums.
        assert_eq!(of(single, true, false), Likeness::Bytes);
    }

    #[test]
    fn sums_in_no_fixed_order_are_atomic_additions_of_one_kind() {
        let of = |body: &str| {
            let text = format!(
                ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {{
                 .reg .b64 %d; .reg .f32 %f<2>; .reg .f64 %g<2>; .reg .b32 %r<2>;
                 ld.param.u64 %d, [p]; {body} ret; }}\n"
            );
            let (module, problems) = Module::parse("k", &text);
            assert!(problems.is_empty(), "{problems:?}");
            sums(&module)
        };
        let single = "red.global.add.f32 [%d], %f0;";
        let double = "atom.global.add.f64 %g0, [%d], %g1;";
        assert_eq!(of(single), Some(Numbers::Single));
        assert_eq!(of(double), Some(Numbers::Double));
        assert_eq!(of(&format!("{single} {double}")), None);
        assert_eq!(of("atom.global.add.u32 %r0, [%d], %r1;"), None);
        assert_eq!(of(""), None);
    }
}
