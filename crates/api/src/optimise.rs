//! The main job: candidates are built and rated, one is chosen and proved.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use warpwright_driver::build::{Bench, Made, Workshop};
use warpwright_driver::candidate::{Candidate, Rejection, Turns};
use warpwright_driver::estimate::estimate;
use warpwright_driver::explore::{self, Input as Explored, Measurable, Shares, explore, replay};
use warpwright_driver::opt::{
    Chosen, DEFAULT_BUDGET, DEFAULT_MARGIN, KernelOutcome, KernelReport, Known, NAMED, Request,
    failure, finish,
};
use warpwright_driver::{Peers, Proofs};
use warpwright_launch::Launch;
use warpwright_pass::miscompiled;
use warpwright_pass::names::{is_named, selected};
use warpwright_pass::passes::UsageLevel;
use warpwright_pass::ptx::slice::Slices;
use warpwright_pass::{
    Artifact, Block, CarriedOut, Fuel, Invalid, Level as PassLevel, Plan, Recipe, Rung, Scope,
    Setting, Stepped,
};
use warpwright_report::cycles::{CyclesReport, Facts, cycles_of};
use warpwright_report::edit::{Edit, edits_of};
use warpwright_report::explain::{Explanation, lines_of_machine_code};
use warpwright_report::screen::{About, screen};
use warpwright_sass::{Cubin, Kernel};
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, FindOptions, Origin, Toolkit};

use crate::device_code::some_names;
use crate::front::{
    ASSUMED, BEFORE_LINKING, Compile, is_assumed, is_for_linking, kernels_of, module,
    register_limit, target, verified,
};
use crate::own_launch::seen;
use crate::ran::seen_of_machine_code;
use crate::refused::placed;
use crate::trace::Trace;
use crate::{Counted, DeviceCode, Error, Input, Level};

/// What comes out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Emit {
    /// The chosen cubin; of a file with cubins in it, the file with them replaced.
    #[default]
    Cubin,
    /// The annotated PTX.
    Ptx,
}

/// What is asked for. The default asks for nothing in particular: every kernel, for the GPU that the code names.
#[derive(Debug, Clone)]
pub struct Options {
    /// The GPU; without one, what the code is for (sm_90 for CUDA C).
    pub gpu: Option<Gpu>,
    /// Only these kernels: symbols, names in the source, or patterns with `*` and `?`.
    pub kernels: Vec<String>,
    /// Threads per block in x, y, z, where the code does not state it.
    pub block: Option<[u32; 3]>,
    /// The same of single kernels.
    pub blocks: Vec<(String, [u32; 3])>,
    /// Dynamic shared memory in bytes per block.
    pub dynamic_smem: Option<u32>,
    /// What is run to count how often instructions are executed (`explain`).
    pub counted: Vec<Counted>,
    /// No launch is run to count later than this (`explain`).
    pub until: Option<Instant>,
    /// What the file's own program launched each time that it ran ([`crate::ran`]); of a kernel the first run counts.
    pub ran: Vec<Trace>,
    /// Blocks of the launch that counts, where it was seen (a trace); `block` is then that launch's.
    pub grid: Option<u64>,
    /// A launch description, which states both.
    pub launch: Option<Launch>,
    /// Carried out in the place of a choice.
    pub recipe: Option<Recipe>,
    /// Rewrites of the recipe that are made.
    pub fuel: Option<u64>,
    /// Work for each kernel, in seconds as a reference machine takes them: the same result on every machine.
    pub budget: f64,
    /// What comes out.
    pub emit: Emit,
    /// Arguments for nvcc.
    pub nvcc: Vec<String>,
    /// Arguments for ptxas, of PTX.
    pub ptxas: Vec<OsString>,
    /// What another program's ptxas made of this PTX: ours must make the same code of it, so that candidates differ from
    /// it by their recipes alone.
    pub made: Option<Vec<u8>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            gpu: None,
            kernels: Vec::new(),
            block: None,
            blocks: Vec::new(),
            dynamic_smem: None,
            grid: None,
            counted: Vec::new(),
            until: None,
            ran: Vec::new(),
            launch: None,
            recipe: None,
            fuel: None,
            budget: DEFAULT_BUDGET,
            emit: Emit::Cubin,
            nvcc: Vec::new(),
            ptxas: Vec::new(),
            made: None,
        }
    }
}

impl Options {
    /// The same as the rooms below have it.
    pub fn scope(&self) -> Scope<'_> {
        Scope {
            gpu: self.gpu,
            kernels: &self.kernels,
            block: self.block,
            blocks: &self.blocks,
            seen: &[],
            dynamic_smem: self.dynamic_smem,
            grid: self.grid,
            sizes: &[],
            reassociate: false,
            launch: self.launch.as_ref(),
        }
    }

    fn request<'a>(&'a self, gpu: &'a Gpu, scope: Scope<'a>) -> Request<'a> {
        Request {
            gpu,
            scope,
            peers: Peers::None,
            ptx_only: self.emit == Emit::Ptx,
            margin: DEFAULT_MARGIN,
            budget: self.budget,
            proofs: Proofs::Choice,
            is_searched: false,
        }
    }
}

/// Somebody who looks on while candidates are built, and may know what was measured before.
pub trait Watch: Sync {
    /// The work on a kernel begins: its number from 0, of so many.
    fn begins(&self, _kernel: &str, _number: usize, _of: usize) {}

    /// One more candidate is built and rated.
    fn built(&self, _candidate: &Candidate) {}

    /// The work on a kernel has ended with so many candidates.
    fn ends(&self, _kernel: &str, _candidates: usize) {}

    /// What was measured of a kernel of this PTX on the GPU, by recipe.
    fn measured(&self, _source: &str, _kernel: &str, _gpu: &Gpu, _ptxas: &str) -> Known {
        Known::new()
    }
}

/// Nobody looks on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// The document of `opt`: what was found, kernel by kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `warpwright.opt/1`
    pub schema: &'static str,
    /// The input by name.
    pub input: String,
    /// The target, by name.
    pub gpu: String,
    /// Nobody named it ([`crate::front::is_assumed`]).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gpu_is_assumed: bool,
    /// Version of ptxas; absent if everything was estimated.
    pub ptxas: Option<String>,
    /// Kernel by kernel.
    pub kernels: Vec<KernelReport>,
    /// What would make nvcc build the same of the source, kernel by kernel that has such an edit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<KernelEdits>,
    /// Rewrites from source to source, by the kernels' names in the source, by the caller; none at first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rewrites: Vec<KernelEdits>,
    /// Where it was written, by the caller; nothing at first.
    pub output: Option<String>,
    /// `cubin` or `ptx`, or `file` for a host file with its cubins replaced.
    pub emitted: &'static str,
}

/// What is said of a choice where no build changes what bounds the kernel.
const WAITING: &str = "atomic operations that wait for each other bound it at the launch that was counted: the predicted \
                       gain does not know of them";

/// What would make nvcc build the choice of one kernel.
#[derive(Debug, Clone, Serialize)]
pub struct KernelEdits {
    /// Its symbol, or its name in the source.
    pub kernel: String,
    /// The edits.
    pub edits: Vec<Edit>,
}

impl KernelEdits {
    fn of(report: &KernelReport) -> Option<KernelEdits> {
        let edits = edits_of(report);
        (!edits.is_empty()).then(|| KernelEdits {
            kernel: report.name.clone(),
            edits,
        })
    }
}

impl Report {
    /// As a JSON document (docs/command-line.md).
    ///
    /// # Errors
    /// [`Error::Json`].
    pub fn to_json(&self) -> Result<serde_json::Value, Error> {
        Ok(serde_json::to_value(self)?)
    }

    /// Takes over what bounds a kernel where its instructions were counted ([`Optimizer::explain`]).
    pub fn count(&mut self, explained: &[Explanation]) {
        for kernel in &mut self.kernels {
            let found = explained.iter().find(|e| e.kernel == kernel.name);
            let cycles = found.and_then(|found| found.cycles.clone());
            let accesses = found.and_then(|found| found.accesses.as_ref());
            kernel.wasted = accesses.and_then(|accesses| accesses.wasted.clone());
            kernel.counted = cycles.filter(|cycles| cycles.turns != Turns::Assumed);
            let bound = kernel.counted.as_ref().map(|cycles| &*cycles.bound);
            if bound == Some("atomics") && kernel.chosen != 0 {
                kernel.notes.push(WAITING.to_owned());
            }
        }
    }

    /// As a self-contained HTML page.
    ///
    /// # Errors
    /// [`Error::Json`], [`Error::Page`].
    pub fn page(&self) -> Result<String, Error> {
        Ok(warpwright_report::page(&self.to_json()?)?)
    }

    /// As a screen of text; every candidate with `all`.
    pub fn screen(&self, all: bool) -> String {
        self.screen_above(all, 0, false)
    }

    /// The same above so many lines, with less of what there is room for; beside a page, or without one.
    pub fn screen_above(&self, all: bool, reserved: usize, has_page: bool) -> String {
        let builder = match &self.ptxas {
            Some(version) => format!("ptxas {version}"),
            None if self.emitted != "ptx" => "machine code as it is".into(),
            None => "no ptxas: resources are estimated from the PTX".into(),
        };
        let gpu = match self.gpu_is_assumed {
            true => format!("{}{ASSUMED}", self.gpu),
            false => self.gpu.clone(),
        };
        let about = About {
            input: &self.input,
            gpu: &gpu,
            builder: &builder,
            output: self.output.as_deref(),
            emitted: self.emitted,
            is_machine_code: self.ptxas.is_none() && self.emitted != "ptx",
            is_measured: false,
            has_page,
            all,
            reserved,
        };
        screen(&self.kernels, &about)
    }
}

/// What [`Optimizer::optimise`] gives back.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The result: a cubin, PTX, or the host file.
    pub code: Vec<u8>,
    /// The target.
    pub gpu: Gpu,
    /// What was found, and why it was chosen.
    pub report: Report,
    /// Every candidate with its build; empty where a recipe was named.
    pub explored: Vec<KernelOutcome>,
    /// What the passes said, where the result was not among the candidates as it stands.
    pub carried: Vec<CarriedOut>,
}

impl Outcome {
    /// Where the cycles of a warp go in the default build of each kernel and in the chosen one, as far as the code
    /// can be read; the same one twice if nothing was chosen.
    pub fn cycles(&self) -> Vec<(&str, [Option<CyclesReport>; 2])> {
        let kernels = self.explored.iter();
        let both =
            |e: &KernelOutcome| [0, e.report.chosen].map(|index| cycles(e, index, &self.gpu));
        kernels.map(|e| (&*e.report.name, both(e))).collect()
    }

    /// The same with what the choices change for a warp alone.
    fn explained(mut self) -> Outcome {
        // A recipe that was named explores nothing; else both have the same order.
        let both = self.report.kernels.iter_mut().zip(&self.explored);
        for (report, explored) in both.filter(|(report, _)| report.chosen != 0) {
            let both = [report.chosen, 0].map(|index| cycles(explored, index, &self.gpu));
            report.gained = match both {
                [Some(chosen), Some(default)] => chosen.gained(&default),
                _ => None,
            };
        }
        self
    }
}

/// Where the cycles of a warp go in a build of a kernel.
fn cycles(explored: &KernelOutcome, index: usize, gpu: &Gpu) -> Option<CyclesReport> {
    let (report, built) = (&explored.report, explored.built.get(index)?);
    let setting = Setting {
        block: Block {
            dims: report.block,
            source: report.block_source,
        },
        dynamic_smem: Some(report.dynamic_smem),
        grid: report.grid,
        ..Setting::new(gpu)
    };
    let elf = built.cubin()?.elf();
    let (resources, residency) = (built.candidate.resources()?, built.candidate.residency()?);
    let lines = lines_of_machine_code(elf, &report.name);
    let known = Facts {
        lines: &lines,
        ..Facts::default()
    };
    let found = cycles_of(elf, &report.name, &setting, resources, residency, known);
    found.map(|(cycles, _)| cycles)
}

/// A launch description with the symbol of the kernel that it names, of those of a file.
///
/// # Errors
/// [`Error::LaunchOf`]: it names none of them, or several.
pub fn launch_among(launch: &Launch, file: &str, kernels: &[String]) -> Result<Launch, Error> {
    let which = match selected(&launch.kernel, kernels)[..] {
        [symbol] => {
            let kernel = symbol.to_owned();
            return Ok(Launch {
                kernel,
                ..launch.clone()
            });
        }
        [] => format!(
            "which `{file}` does not have; it has {}",
            some_names(kernels)
        ),
        ref several => {
            let several: Vec<String> = several.iter().map(|&name| name.to_owned()).collect();
            let (count, names) = (several.len(), some_names(&several));
            format!("which are {count} kernels of `{file}`: {names}")
        }
    };
    let kernel = launch.kernel.clone();
    Err(Error::LaunchOf { kernel, which })
}

/// Every kernel that `--block NAME=…` names must be there.
pub(crate) fn blocks_are_known(
    input: &Input,
    options: &Options,
    kernels: &[String],
) -> Result<(), Error> {
    let is_nowhere = |(name, _): &&(String, [u32; 3])| !kernels.iter().any(|of| is_named(name, of));
    match options.blocks.iter().find(is_nowhere) {
        None => Ok(()),
        Some((name, _)) => Err(Error::NoSuchKernel {
            name: input.name.clone(),
            kernel: name.clone(),
            has: some_names(kernels),
        }),
    }
}

/// The tools, and what is built with them.
#[derive(Debug)]
pub struct Optimizer {
    toolkit: Option<Toolkit>,
    cache: BuildCache,
}

impl Optimizer {
    /// With the toolkit that `WARPWRIGHT_TOOLKIT`, `CUDA_HOME`, `CUDA_PATH`, `PATH` or the cache lead to.
    ///
    /// # Errors
    /// [`Error::Toolkit`]; without one, [`Optimizer::without_toolkit`] does what can be done.
    pub fn new() -> Result<Optimizer, Error> {
        let toolkit = Toolkit::find(&FindOptions { explicit_dir: None })?;
        Ok(Optimizer::with(Some(toolkit)))
    }

    /// With no tools: machine code is optimised as it is, and of PTX the resources are estimated.
    pub fn without_toolkit() -> Optimizer {
        Optimizer::with(None)
    }

    /// With this ptxas, whatever its name; `None` if the file is no program.
    pub fn with_ptxas(file: &Path) -> Option<Optimizer> {
        let toolkit = Toolkit::with_ptxas(file, Origin::RealPtxas)?;
        Some(Optimizer::with(Some(toolkit)))
    }

    /// With this toolkit.
    pub fn with(toolkit: Option<Toolkit>) -> Optimizer {
        Optimizer {
            toolkit,
            cache: BuildCache::standard(),
        }
    }

    /// Its toolkit.
    pub(crate) fn toolkit(&self) -> Option<&Toolkit> {
        self.toolkit.as_ref()
    }

    /// ptxas, where there is one.
    pub(crate) fn assembler(&self) -> Option<&Toolkit> {
        self.toolkit().filter(|toolkit| toolkit.ptxas().is_ok())
    }

    /// Another ptxas, where the one that was found may make wrong code of a module ([`miscompiled`]) and the cache has one
    /// that is known to be right; and what that means. A ptxas that the user named stays.
    fn right_assembler(&self, artifact: &Artifact, gpu: &Gpu) -> Option<(Toolkit, String)> {
        let module = artifact.as_module()?;
        let version = |toolkit: &Toolkit| {
            let version = toolkit.ptxas().ok()?.tool().version().ok()?;
            Some((version.major, version.minor))
        };
        let found = self.assembler().filter(|toolkit| !toolkit.is_named())?;
        let met = miscompiled::met(module, version(found)?, gpu.arch.sm);
        let first = met.first()?;
        let is_right = |toolkit: &Toolkit| {
            version(toolkit).is_some_and(|v| miscompiled::met(module, v, gpu.arch.sm).is_empty())
        };
        let other = Toolkit::cached().into_iter().find(is_right)?;
        let note = format!("built by ptxas {} instead: {first}", ptxas_version(&other)?);
        Some((other, note))
    }

    pub(crate) fn cache(&self) -> &BuildCache {
        &self.cache
    }

    /// Chooses for each kernel, proves the choice and carries it out.
    ///
    /// ```
    /// use warpwright_api::{Emit, Input, Options, Optimizer, gpu};
    ///
    /// let ptx = ".version 8.5\n.target sm_90\n.address_size 64\n\
    ///     .visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<2>;\n.reg .b64 %d;\n\
    ///     ld.param.u64 %d, [p];\nmov.u32 %r1, %tid.x;\nst.global.u32 [%d], %r1;\nret;\n}\n";
    /// let input = Input::new("k.ptx", ptx)?;
    /// let options = Options {
    ///     gpu: Some(gpu("h200")?),
    ///     block: Some([256, 1, 1]),
    ///     emit: Emit::Ptx,
    ///     ..Options::default()
    /// };
    /// let outcome = Optimizer::without_toolkit().optimise(&input, &options)?;
    /// assert!(outcome.code.starts_with(b"// warpwright: k: default"));
    /// assert_eq!(outcome.report.kernels[0].chosen, 0);
    /// # Ok::<(), warpwright_api::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error`]: of a failure, nothing is given out.
    pub fn optimise(&self, input: &Input, options: &Options) -> Result<Outcome, Error> {
        self.optimise_watched(input, options, &Unwatched)
    }

    /// The same while somebody looks on.
    ///
    /// # Errors
    /// As [`Optimizer::optimise`].
    pub fn optimise_watched(
        &self,
        input: &Input,
        options: &Options,
        watch: &dyn Watch,
    ) -> Result<Outcome, Error> {
        let outcome = match input.level {
            Level::Cubin | Level::Fat => machine_code(input, options, watch),
            Level::Cuda | Level::Ptx | Level::Stencil => self.module(input, options, watch),
        };
        Ok(outcome?.explained())
    }

    fn module(
        &self,
        input: &Input,
        options: &Options,
        watch: &dyn Watch,
    ) -> Result<Outcome, Error> {
        let compile = Compile {
            gpu: options.gpu.as_ref(),
            nvcc: &options.nvcc,
            lineinfo: false,
            takes_limit: true,
        };
        let module = module(self.toolkit(), input, &compile)?;
        let gpu = target(&module, options.gpu)?;
        let kernels = kernels_of(&module, input)?;
        blocks_are_known(input, options, &kernels)?;
        let seen = seen(input, &module, options);
        let artifact = verified(module)?;
        let mut scope = options.scope();
        let launch = options.launch.as_ref();
        let launch = launch.map(|launch| launch_among(launch, &input.name, &kernels));
        let launch = launch.transpose()?;
        scope.launch = launch.as_ref();
        scope.gpu = Some(gpu);
        scope.seen = &seen;
        let request = options.request(&gpu, scope);
        let arch = gpu.target();
        // What somebody else's ptxas has made is compared with its own.
        let right = match options.made {
            None => self.right_assembler(&artifact, &gpu),
            Some(_) => None,
        };
        let right = right.as_ref();
        let assembler = right.map(|right| &right.0).or(self.assembler());
        let limit = register_limit(&options.nvcc);
        let extra: Vec<OsString> = options.ptxas.iter().cloned().chain(limit).collect();
        let workshop = assembler.map(|toolkit| Workshop {
            extra: &extra,
            ..workshop(toolkit, &self.cache, &arch, &artifact)
        });
        match (&workshop, &options.recipe) {
            (None, _) if options.emit == Emit::Cubin => return Err(Error::NoPtxas),
            (None, Some(recipe)) => return Err(Error::RecipeWithoutPtxas(recipe.to_string())),
            _ => {}
        }
        if let Some(made) = &options.made {
            let ours = untouched(workshop.as_ref(), &artifact, &request)?;
            let ours = ours.0.unproved().as_cubin();
            let ours = ours.ok_or(Error::Internal("ptxas made no cubin"))?;
            let made = Cubin::parse(made).map_err(|error| Error::Cubin {
                name: kernels.first().cloned().unwrap_or_default(),
                error,
            })?;
            for name in &kernels {
                let code =
                    |kernel: &Kernel| (kernel.code.clone(), kernel.registers, kernel.shared_bytes);
                let [one, other] = [ours.view(), &made].map(|cubin| cubin.kernel(name).map(code));
                if one.is_none() || one != other {
                    return Err(Error::OtherCode(name.clone()));
                }
            }
        }
        let mut one = match &workshop {
            Some(workshop) => {
                let one = one(Some(workshop), &artifact, options, &request, watch);
                one.map_err(|error| {
                    let tools = assembler.map(|toolkit| (toolkit, &self.cache));
                    let ptx = artifact.as_module().map_or("", |module| &module.source);
                    let recipe = options.recipe.clone().unwrap_or_default();
                    placed(error, tools, (input, ptx, &arch), &recipe.to_string())
                })?
            }
            None => estimated(&artifact, &request)?,
        };
        if let (Some((_, note)), Some(first)) = (right, one.reports.first_mut()) {
            first.notes.push(note.clone());
        }
        if is_for_linking(&options.nvcc) {
            let reports = one.reports.iter_mut();
            reports.for_each(|report| report.notes.push(BEFORE_LINKING.to_owned()));
        }
        let code = match options.emit {
            Emit::Ptx => annotated(&String::from_utf8_lossy(&one.code), &one.reports).into_bytes(),
            Emit::Cubin => one.code,
        };
        Ok(Outcome {
            code,
            gpu,
            report: Report {
                schema: "warpwright.opt/1",
                input: input.name.clone(),
                gpu: gpu.to_string(),
                gpu_is_assumed: is_assumed(input, options.gpu.as_ref(), &options.nvcc),
                ptxas: assembler.and_then(ptxas_version),
                edits: one.reports.iter().filter_map(KernelEdits::of).collect(),
                rewrites: Vec::new(),
                kernels: one.reports,
                output: None,
                emitted: match options.emit {
                    Emit::Ptx => "ptx",
                    Emit::Cubin => "cubin",
                },
            },
            explored: one.explored,
            carried: one.carried.into_iter().collect(),
        })
    }
}

/// The cubins of a file, each by itself, put back where they stood.
fn machine_code(input: &Input, options: &Options, watch: &dyn Watch) -> Result<Outcome, Error> {
    if options.emit == Emit::Ptx || !options.nvcc.is_empty() {
        return Err(Error::MachineCode);
    }
    let mut scope = options.scope();
    let code = DeviceCode::of(input, scope.gpu.as_ref())?;
    blocks_are_known(input, options, &code.functions())?;
    let launch = options.launch.as_ref();
    let launch = launch.map(|launch| launch_among(launch, &input.name, &code.functions()));
    let launch = launch.transpose()?;
    scope.launch = launch.as_ref();
    let seen = seen_of_machine_code(&options.ran, &code.functions());
    scope.seen = &seen;
    let code = code.with_kernels(scope.kernels)?;
    let is_alone = code.cubins.len() == 1;
    let mut edited = Vec::new();
    let (mut kernels, mut explored, mut carried) = (Vec::new(), Vec::new(), Vec::new());
    let mut gpu = None;
    for found in &code.cubins {
        // nvcc links stubs without kernels into programs and libraries.
        if !is_alone && !found.has_kernels() {
            edited.push(found.bytes.clone());
            continue;
        }
        let here = found.named(scope.kernels);
        let scope = Scope {
            kernels: &here,
            ..scope
        };
        let artifact = Artifact::cubin(found.bytes.clone()).map_err(|invalid| match invalid {
            Invalid::Elf(error) => Error::Cubin {
                name: input.name.clone(),
                error,
            },
            Invalid::Ptx { .. } => Error::Internal("a cubin that is PTX"),
        })?;
        let target = scope.gpu(&artifact)?;
        let request = options.request(&target, scope);
        let one = one(None, &artifact, options, &request, watch)?;
        edited.push(one.code);
        kernels.extend(one.reports);
        explored.extend(one.explored);
        carried.extend(one.carried);
        gpu = Some(target);
    }
    let gpu = gpu.ok_or_else(|| Error::NoKernel(input.name.clone()))?;
    Ok(Outcome {
        code: code.replaced(&edited)?,
        gpu,
        report: Report {
            schema: "warpwright.opt/1",
            input: input.name.clone(),
            gpu: gpu.to_string(),
            gpu_is_assumed: false,
            ptxas: None,
            edits: Vec::new(),
            rewrites: Vec::new(),
            kernels,
            output: None,
            emitted: match input.level {
                Level::Fat => "file",
                _ => "cubin",
            },
        },
        explored,
        carried,
    })
}

/// What became of one module or cubin.
struct One {
    code: Vec<u8>,
    reports: Vec<KernelReport>,
    explored: Vec<KernelOutcome>,
    carried: Option<CarriedOut>,
}

/// Chooses for each kernel, or takes the recipe that was named.
fn one(
    workshop: Option<&Workshop<'_>>,
    artifact: &Artifact,
    options: &Options,
    request: &Request<'_>,
    watch: &dyn Watch,
) -> Result<One, Error> {
    let until = match request.ptx_only {
        true => PassLevel::Ptx,
        false => PassLevel::MachineCode,
    };
    if let Some(recipe) = &options.recipe {
        return replayed(workshop, artifact, recipe, options, (request, until));
    }
    let ptxas = workshop.and_then(|workshop| ptxas_version(workshop.toolkit));
    let known = |kernel: &str| match (artifact.as_module(), &ptxas) {
        (Some(module), Some(ptxas)) => watch.measured(&module.source, kernel, request.gpu, ptxas),
        _ => Known::new(),
    };
    let explored = explore_all(workshop, artifact, request, &known, watch)?;
    let reports: Vec<KernelReport> = explored.iter().map(|o| o.report.clone()).collect();
    if let Some(code) = already(&explored, artifact, until) {
        return Ok(One {
            code,
            reports,
            explored,
            carried: None,
        });
    }
    let chosen: Vec<Chosen> = reports.iter().map(Chosen::of).collect();
    let all = finish(
        workshop,
        artifact,
        &chosen,
        request,
        (until, Fuel::default()),
    )?;
    Ok(One {
        code: all.artifact.bytes().to_vec(),
        reports,
        explored,
        carried: Some(all),
    })
}

/// What was done to a kernel, pass by pass.
fn steps<'a>(all: &'a CarriedOut, kernel: &'a str) -> impl Iterator<Item = &'a Stepped> {
    let of_kernel = all
        .kernels
        .iter()
        .filter(move |done| done.kernel.as_deref().is_none_or(|name| name == kernel));
    of_kernel.flat_map(|done| &done.steps)
}

/// What the passes have to say of a kernel.
fn said(all: &CarriedOut, kernel: &str) -> Vec<String> {
    let notes = steps(all, kernel).flat_map(|stepped| &stepped.step.notes);
    notes.cloned().collect()
}

/// What stands behind a kernel's result: the weakest of its passes; none where one is not proved.
fn behind(all: &CarriedOut, kernel: &str) -> Option<Rung> {
    let rungs = steps(all, kernel).map(|stepped| stepped.rung.as_ref().ok().copied());
    rungs.collect::<Option<Vec<Rung>>>()?.into_iter().max()
}

/// What a kernel's result holds for: what its passes promise about launches, and what its proof takes for granted.
fn rests_on(all: &CarriedOut, kernel: &str) -> Vec<String> {
    let notes = steps(all, kernel).flat_map(|stepped| {
        let cautions = stepped.step.cautions.iter().map(ToString::to_string);
        let promises =
            (!stepped.promises.is_empty()).then(|| warpwright_pass::rests_on(&stepped.promises));
        cautions.chain(promises)
    });
    notes.collect()
}

/// Without ptxas: estimated directives in the PTX.
fn estimated(artifact: &Artifact, request: &Request<'_>) -> Result<One, Error> {
    let reports = estimate(artifact, request)?;
    let chosen: Vec<Chosen> = reports.iter().map(Chosen::of).collect();
    let until = (PassLevel::Ptx, Fuel::default());
    let all = finish(None, artifact, &chosen, request, until)?;
    Ok(One {
        code: all.artifact.bytes().to_vec(),
        reports,
        explored: Vec::new(),
        carried: None,
    })
}

/// ptxas for the candidates of an input.
pub fn workshop<'a>(
    toolkit: &'a Toolkit,
    cache: &'a BuildCache,
    arch: &'a str,
    input: &Artifact,
) -> Workshop<'a> {
    Workshop {
        toolkit,
        cache,
        arch,
        lineinfo: input
            .as_module()
            .is_some_and(|module| !module.files.is_empty()),
        extra: &[],
    }
}

/// The version of ptxas, for the record.
pub fn ptxas_version(toolkit: &Toolkit) -> Option<String> {
    let ptxas = toolkit.ptxas().ok()?;
    ptxas.tool().version().ok().map(ToString::to_string)
}

/// Explores every kernel that the request is about. `known` gives what was measured of a kernel.
///
/// # Errors
/// [`Error::Scope`], [`Error::Opt`].
pub fn explore_all(
    workshop: Option<&Workshop<'_>>,
    artifact: &Artifact,
    request: &Request<'_>,
    known: &dyn Fn(&str) -> Known,
    watch: &dyn Watch,
) -> Result<Vec<KernelOutcome>, Error> {
    let kernels = request.scope.kernels(artifact)?;
    with_default(workshop, artifact, request, |explored| {
        let mut outcomes = Vec::new();
        let mut shares = Shares::new(request.budget, kernels.len());
        for (number, kernel) in kernels.iter().enumerate() {
            watch.begins(kernel, number, kernels.len());
            let built = |candidate: &Candidate| watch.built(candidate);
            let outcome = explore(explored, kernel, (&known(kernel), shares.next()), &built)?;
            shares.taken(outcome.work);
            watch.ends(kernel, outcome.built.len());
            outcomes.push(outcome);
        }
        Ok(outcomes)
    })
}

/// The same of an input that the tools made into PTX.
///
/// # Errors
/// The same; where ptxas refuses what becomes of it, with the place in the input.
pub fn explore_input(
    of: Option<(&Input, (&Toolkit, &BuildCache))>,
    workshop: Option<&Workshop<'_>>,
    artifact: &Artifact,
    request: &Request<'_>,
    known: &dyn Fn(&str) -> Known,
    watch: &dyn Watch,
) -> Result<Vec<KernelOutcome>, Error> {
    let outcomes = explore_all(workshop, artifact, request, known, watch);
    outcomes.map_err(|error| match (of, artifact.as_module()) {
        (Some((input, tools)), Some(module)) => {
            let text = (input, &*module.source, &*request.gpu.target());
            placed(error, Some(tools), text, "")
        }
        _ => error,
    })
}

/// What each recipe makes of a kernel, proved, for where something tests guards at each launch; or why there is nothing.
///
/// # Errors
/// [`Error::Scope`], [`Error::Opt`].
pub fn versions(
    workshop: Option<&Workshop<'_>>,
    artifact: &Artifact,
    request: &Request<'_>,
    kernel: &str,
    recipes: Vec<Recipe>,
) -> Result<Vec<Result<Measurable, Rejection>>, Error> {
    with_default(workshop, artifact, request, |explored| {
        Ok(explore::versions(explored, kernel, recipes)?)
    })
}

/// Works with the untouched build of an input, which is made once and not for every kernel.
fn with_default<T>(
    workshop: Option<&Workshop<'_>>,
    artifact: &Artifact,
    request: &Request<'_>,
    work: impl FnOnce(&Explored<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let default = untouched(workshop, artifact, request)?;
    let slices = artifact.as_module().and_then(Slices::new);
    work(&Explored {
        workshop,
        artifact,
        slices: slices.as_ref(),
        default: &default,
        request,
    })
}

/// The untouched build of an input.
fn untouched(
    workshop: Option<&Workshop<'_>>,
    artifact: &Artifact,
    request: &Request<'_>,
) -> Result<Made, Error> {
    let kernels = request.scope.kernels(artifact)?;
    let kernel = kernels.first().map_or("", |name| name);
    let bench = Bench {
        workshop,
        start: artifact,
        kernel,
        setting: request.scope.setting(artifact, kernel, request.gpu)?,
        fuel: Fuel::default(),
    };
    let made = bench.run(None, &Recipe::default(), PassLevel::MachineCode);
    Ok(made.map_err(failure)?)
}

/// The result of the exploration itself, where there is but one kernel: it was built from the whole input.
fn already(outcomes: &[KernelOutcome], input: &Artifact, until: PassLevel) -> Option<Vec<u8>> {
    let [outcome] = outcomes else { return None };
    let kernels = Scope::default().kernels(input).ok()?;
    let proved = outcome.proved.as_ref().filter(|_| kernels.len() == 1)?;
    let artifact = match until {
        PassLevel::Ptx => proved.ptx()?,
        _ => proved.artifact(),
    };
    Some(artifact.bytes().to_vec())
}

/// The recipe that was named, for each kernel: carried out, then reported.
fn replayed(
    workshop: Option<&Workshop<'_>>,
    artifact: &Artifact,
    recipe: &Recipe,
    options: &Options,
    (request, until): (&Request<'_>, PassLevel),
) -> Result<One, Error> {
    let kernels = request.scope.kernels(artifact)?;
    let chosen = kernels.iter().map(|kernel| Chosen {
        plan: Plan {
            kernel: Some(kernel.clone()),
            recipe: recipe.clone(),
        },
        registers: None,
    });
    let chosen: Vec<Chosen> = chosen.collect();
    let fuel = options.fuel.map_or_else(Fuel::default, Fuel::limited);
    let all = finish(workshop, artifact, &chosen, request, (until, fuel))?;
    let reports = with_default(workshop, artifact, request, |input| {
        let report = |kernel: &String| {
            let mut report = match options.fuel {
                None => replay(input, kernel, recipe)?,
                // What a part of the recipe makes is not rated.
                Some(_) => unrated(request, artifact, kernel, recipe)?,
            };
            report.notes = said(&all, kernel);
            report.promises = rests_on(&all, kernel);
            if let Some(rung) = behind(&all, kernel) {
                report.candidates[report.chosen].prove(rung);
            }
            Ok(report)
        };
        kernels
            .iter()
            .map(report)
            .collect::<Result<Vec<KernelReport>, Error>>()
    })?;
    Ok(One {
        code: all.artifact.bytes().to_vec(),
        reports,
        explored: Vec::new(),
        carried: Some(all),
    })
}

/// A report of a recipe alone.
fn unrated(
    request: &Request<'_>,
    input: &Artifact,
    kernel: &str,
    recipe: &Recipe,
) -> Result<KernelReport, Error> {
    let setting = request.scope.setting(input, kernel, request.gpu)?;
    Ok(KernelReport {
        name: kernel.to_owned(),
        block: setting.block.dims,
        block_source: setting.block.source,
        has_bounds: false,
        dynamic_smem: setting.dynamic(),
        grid: setting.grid,
        idle_sms: setting.idle_sms(),
        guessed: setting.guessed.to_owned(),
        recipe_text: recipe.to_string(),
        candidates: vec![Candidate::named(recipe.clone())],
        chosen: 0,
        reason: NAMED.into(),
        notes: Vec::new(),
        promises: Vec::new(),
        gained: None,
        wasted: None,
        counted: None,
        crat: None,
    })
}

/// PTX with a comment that says what was decided, and what ptxas must be told beside it.
fn annotated(text: &str, reports: &[KernelReport]) -> String {
    let mut head = String::new();
    for report in reports {
        let chosen = &report.candidates[report.chosen];
        head.push_str(&format!(
            "// warpwright: {}: {} ({})\n",
            report.name, chosen.recipe, report.reason
        ));
        if let Some(UsageLevel { level }) = chosen.recipe.find() {
            head.push_str(&format!(
                "// warpwright: assemble with --register-usage-level {level}\n"
            ));
        }
    }
    head + text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_carried_out_or_refused() {
        let ptx = ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";
        let input = Input::new("k.ptx", ptx).expect("it is PTX");
        let options = Options {
            emit: Emit::Ptx,
            recipe: Some("maxnreg(32)".parse().expect("a recipe")),
            ..Options::default()
        };
        let found = Optimizer::without_toolkit().optimise(&input, &options);
        assert!(
            matches!(&found, Err(Error::RecipeWithoutPtxas(recipe)) if recipe == "maxnreg(32)"),
            "{found:?}"
        );
    }
}
