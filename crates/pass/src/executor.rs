//! The executor: every sequence of passes goes through it, and nobody else applies a pass.
//!
//! It verifies what a pass gets and what it gives, times it, counts its rewrites as fuel, and keeps for each
//! pass what has to be proved. What it gives back is a [`Run`], which can be looked at, built and rated;
//! only [`Run::prove`] turns it into something that may be written to a file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use warpwright_check::{Cause, Promises, Reason, Refutation, Verdict};
use warpwright_cudac::File;
use warpwright_cudac::diag::Source as Text;
use warpwright_cudac::replace::Note;
use warpwright_ladder::{CompileError, Fall, Rung as Compared, Tools, read_alone};
use warpwright_launch::{Guard, Shape};
use warpwright_ptx::Module;
use warpwright_stencil::dsl;

use crate::artifact::{Artifact, Invalid, Language, SourceFile};
use crate::budget::Budget;
use crate::hazard::{self, Hazard};
use crate::names::is_named;
use crate::pass::{
    AssemblerOptions, Caution, Fuel, Level, Need, Product, Rewritten, Subject, Version,
};
use crate::proof::{NotProved, Obligation, Rung};
use crate::ptx::facts::uses_dynamic_shared;
use crate::recipe::{Invocation, Recipe};
use crate::refusal::Refusal;
use crate::reliance::{Footprint, Reliance, Takes};
use crate::site::{CubinSite, Setting, Site, Source, SourceSite};

/// An error of whoever builds.
pub type BuildFailure = Box<dyn std::error::Error + Send + Sync>;

/// PTX to machine code.
pub type Assemble<'a> = dyn Fn(&str, AssemblerOptions) -> Result<Arc<[u8]>, BuildFailure> + 'a;

/// CUDA C to PTX.
pub type Compile<'a> = dyn Fn(&SourceFile) -> Result<String, BuildFailure> + 'a;

/// CUDA C to PTX without fused multiplications and additions, as versions are compared.
pub type CompileUnfused<'a> = dyn Fn(&SourceFile) -> Result<String, CompileError> + 'a;

/// A file of CUDA C as the preprocessor sees it; `None`: it cannot be read.
pub type Read<'a> = dyn Fn(&SourceFile) -> Option<File> + 'a;

/// What leads from one level to the next. Input and output are the caller's.
#[derive(Clone, Copy, Default)]
pub struct Builders<'a> {
    /// nvcc, or whatever there is.
    pub compile: Option<&'a Compile<'a>>,
    /// The same for comparisons in the emulator.
    pub compile_unfused: Option<&'a CompileUnfused<'a>>,
    /// What reads CUDA C; without it a text stands for itself.
    pub read: Option<&'a Read<'a>>,
    /// ptxas, or whatever there is.
    pub assemble: Option<&'a Assemble<'a>>,
}

/// The kernel that a recipe is for.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Its name; without one, only passes over whole modules can run.
    pub kernel: Option<&'a str>,
    /// Where it will run.
    pub setting: Setting<'a>,
}

/// Why a recipe has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A pass refuses the kernel.
    #[error("{refusal}")]
    Refused {
        /// The pass.
        pass: Invocation,
        /// Why.
        refusal: Refusal,
    },
    /// The recipe begins on a level above what it is applied to.
    #[error("{pass} works on {wants}, and this is {have}", wants = .pass.level())]
    Level {
        /// The pass.
        pass: Invocation,
        /// What there is.
        have: Level,
    },
    /// A pass wrote what the verifier does not accept: a mistake of ours.
    #[error("{pass} gave something invalid: {invalid}")]
    Invalid {
        /// The pass.
        pass: Invocation,
        /// What is wrong.
        invalid: Invalid,
    },
    /// The rewritten machine code reads or writes registers too early.
    #[error("{pass}: a hazard in the rewritten code: {hazard}")]
    Hazard {
        /// The pass.
        pass: Invocation,
        /// Which.
        hazard: Hazard,
    },
    /// There is nothing that builds the next level.
    #[error("{0} cannot be built here")]
    NoBuilder(Level),
    /// The builder failed.
    #[error("{0}")]
    Build(BuildFailure),
    /// What was built cannot be read.
    #[error("what was built cannot be read: {0}")]
    Built(Invalid),
}

/// What one pass did.
#[derive(Debug, Clone)]
pub struct Step {
    /// The pass.
    pub pass: Invocation,
    /// The kernel; none for a whole module.
    pub kernel: Option<String>,
    /// Rewrites that it made.
    pub rewrites: u64,
    /// Did it change anything?
    pub is_changed: bool,
    /// What it says, a sentence each.
    pub notes: Vec<String>,
    /// What no proof covers.
    pub cautions: Vec<Caution>,
    /// The launches that what it wrote is right for, once they have the shape that earlier passes give them.
    pub guard: Guard,
    /// What they become for it.
    pub shape: Shape,
    /// Instructions that it added, weighted by loops, as far as it counts them.
    pub cost: f64,
    /// What it and the verifier took.
    pub elapsed: Duration,
    /// Bytes of what it was given: a kernel of many is given alone where that can be.
    pub given: usize,
    /// What was compared in the emulator, where no proof is possible.
    pub comparison: Option<Comparison>,
    obligation: Option<Obligation>,
}

/// A rewrite of CUDA C beside the original, in the emulator.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// How far it got.
    pub rung: Compared<Refusal>,
    /// Launches in the file that were rewritten; `None` where there was no program.
    pub launches: Option<usize>,
    /// Uses of the kernel that were left as they are.
    pub left: Vec<Note>,
    /// What host code calls in place of a launch.
    pub launcher: Option<String>,
    /// What it took.
    pub elapsed: Duration,
}

impl Step {
    /// What stands behind it, and what must hold of launches for a proof to be one.
    fn prove(&self) -> Result<(Rung, Promises), NotProved> {
        let nothing = Promises::default();
        let verdict = match (&self.comparison, &self.obligation) {
            (Some(comparison), _) => match &comparison.rung {
                Compared::Agrees(_) => return Ok((Rung::Emulated, nothing)),
                Compared::Unchecked(why) => {
                    Verdict::Undecided(Reason::new(Cause::Unsupported, why))
                }
                Compared::Falls(fall @ (Fall::Differs { .. } | Fall::Fault { .. })) => {
                    Verdict::Refuted(Box::new(Refutation {
                        what: "what it computes in the emulator".to_owned(),
                        original_place: None,
                        rewritten_place: None,
                        path: Vec::new(),
                        original: "what the kernel as written computes".to_owned(),
                        rewritten: fall.to_string(),
                        is_certain: true,
                    }))
                }
                Compared::Falls(fall) => {
                    Verdict::Undecided(Reason::new(Cause::Unsupported, fall.to_string()))
                }
            },
            (None, Some(obligation)) => return obligation.prove(),
            (None, None) => return Ok((Rung::Unchanged, nothing)),
        };
        Err(NotProved {
            pass: self.pass.clone(),
            verdict: Box::new(verdict),
        })
    }
}

/// A recipe that was carried out. Nothing is proved yet.
#[derive(Debug, Clone)]
pub struct Run {
    artifact: Artifact,
    /// What was assembled.
    ptx: Option<Artifact>,
    /// What each pass did.
    pub steps: Vec<Step>,
}

/// What may be written: every pass is proved, or something as good stands behind it.
#[derive(Debug, Clone)]
pub struct Proved {
    artifact: Artifact,
    ptx: Option<Artifact>,
    /// What stands behind each step, and what finding out took.
    pub rungs: Vec<(Rung, Duration)>,
    /// What must hold of launches for the proofs to be ones, though nothing refuses others; each once.
    pub promises: Vec<Promises>,
    /// The launches that it is right for; nothing refuses others.
    pub guard: Guard,
    /// What they become for it.
    pub shape: Shape,
}

/// A proof that was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The checker does not prove it.
    #[error(transparent)]
    NotProved(#[from] NotProved),
    /// The budget does not suffice to try.
    #[error("the proof was not tried: it takes more work than the budget has left")]
    OverBudget,
}

impl Run {
    /// The result, to be looked at: built further, predicted, measured.
    pub fn unproved(&self) -> &Artifact {
        &self.artifact
    }

    /// The PTX that the result was assembled from, if it was.
    pub fn ptx(&self) -> Option<&Artifact> {
        self.ptx.as_ref()
    }

    /// What the proofs take, in nominal microseconds.
    pub fn work(&self) -> u64 {
        let obligations = self
            .steps
            .iter()
            .filter_map(|step| step.obligation.as_ref());
        obligations.map(Obligation::work).sum()
    }

    /// All cautions, each once.
    pub fn cautions(&self) -> Vec<Caution> {
        let all = self.steps.iter().flat_map(|step| &step.cautions);
        let mut all: Vec<Caution> = all.copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The launches that the result is right for.
    pub fn guard(&self) -> Guard {
        self.launches().0
    }

    /// What they become for it: at most one pass shapes them.
    pub fn shape(&self) -> Shape {
        self.launches().1
    }

    fn launches(&self) -> (Guard, Shape) {
        launches(&self.steps)
    }

    /// Proves every step if the budget suffices.
    ///
    /// # Errors
    /// [`ProofError`].
    pub fn prove_within(&self, budget: &mut Budget) -> Result<Proved, ProofError> {
        match budget.spend(self.work()) {
            true => Ok(self.prove()?),
            false => Err(ProofError::OverBudget),
        }
    }

    /// Proves every step.
    ///
    /// # Errors
    /// [`NotProved`].
    pub fn prove(&self) -> Result<Proved, NotProved> {
        let mut promises = Vec::new();
        let prove = |step: &Step| {
            let start = Instant::now();
            let (rung, promised) = step.prove()?;
            if !promised.is_empty() && !promises.contains(&promised) {
                promises.push(promised);
            }
            Ok((rung, start.elapsed()))
        };
        let rungs: Result<Vec<_>, NotProved> = self.steps.iter().map(prove).collect();
        let (guard, shape) = self.launches();
        Ok(Proved {
            artifact: self.artifact.clone(),
            ptx: self.ptx.clone(),
            rungs: rungs?,
            promises,
            guard,
            shape,
        })
    }

    /// Proves the last step.
    ///
    /// # Errors
    /// [`NotProved`].
    pub fn prove_last(&self) -> Result<(Rung, Promises), NotProved> {
        let nothing = (Rung::Unchanged, Promises::default());
        self.steps.last().map_or(Ok(nothing), Step::prove)
    }
}

impl Proved {
    /// The result.
    pub fn artifact(&self) -> &Artifact {
        &self.artifact
    }

    /// The PTX that the result was assembled from, if it was.
    pub fn ptx(&self) -> Option<&Artifact> {
        self.ptx.as_ref()
    }
}

/// The launches that what steps left is right for, and what they become for it.
pub(crate) fn launches<'s>(steps: impl IntoIterator<Item = &'s Step>) -> (Guard, Shape) {
    let start = (Guard::always(), Shape::SAME);
    steps.into_iter().fold(start, |(guard, shape), step| {
        let guard = shape.also(&guard, &step.guard);
        (guard, if shape.is_same() { step.shape } else { shape })
    })
}

/// Runs recipes.
#[derive(Clone, Copy, Default)]
pub struct Executor<'a> {
    /// What builds.
    pub builders: Builders<'a>,
    /// What may be rewritten; it is used up across runs.
    pub fuel: Fuel,
}

impl<'a> Executor<'a> {
    /// An executor with builders and no limit of rewrites.
    pub fn new(builders: Builders<'a>) -> Self {
        Executor {
            builders,
            fuel: Fuel::default(),
        }
    }

    /// Carries out a recipe for one kernel of an artifact. The result is at the level of the last pass or, if
    /// that is further down, at `until`.
    ///
    /// # Errors
    /// [`RunError`]: the first pass that has no result ends the run.
    pub fn run(
        &mut self,
        start: &Artifact,
        target: &Target<'_>,
        recipe: &Recipe,
        until: Level,
    ) -> Result<Run, RunError> {
        let run = Run {
            artifact: start.clone(),
            ptx: None,
            steps: Vec::new(),
        };
        self.resume(run, target, recipe, until)
    }

    /// Goes on with a run that has carried out the first passes of `recipe` and was not built yet.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn resume(
        &mut self,
        mut run: Run,
        target: &Target<'_>,
        recipe: &Recipe,
        until: Level,
    ) -> Result<Run, RunError> {
        let options = recipe.assembler();
        for pass in &recipe.passes()[run.steps.len().min(recipe.passes().len())..] {
            let wanted = match pass.level() {
                Level::Assembler => Level::MachineCode,
                level => level,
            };
            if run.artifact.level() > wanted
                || (pass.level() == Level::Assembler && run.artifact.level() > Level::Ptx)
            {
                return Err(RunError::Level {
                    pass: pass.clone(),
                    have: run.artifact.level(),
                });
            }
            if pass.level() == Level::Assembler {
                self.lower(&mut run, Level::Ptx, options)?;
                permits_all(&run.artifact, pass)?;
                continue;
            }
            self.lower(&mut run, wanted, options)?;
            let step = self.apply(&mut run, target, pass)?;
            run.steps.push(step);
        }
        self.lower(&mut run, until, options)?;
        Ok(run)
    }

    /// Builds down to a level.
    fn lower(
        &self,
        run: &mut Run,
        wanted: Level,
        options: AssemblerOptions,
    ) -> Result<(), RunError> {
        if let (Some(source), true) = (run.artifact.as_source(), wanted > Level::Source) {
            let is_cuda = source.language == Language::Cuda;
            let compile = self.builders.compile.filter(|_| is_cuda);
            let compile = compile.ok_or(RunError::NoBuilder(Level::Ptx))?;
            let text = compile(source).map_err(RunError::Build)?;
            run.artifact = Artifact::parse(&source.name, &text).map_err(RunError::Built)?;
        }
        if let (Some(module), true) = (run.artifact.as_module(), wanted > Level::Ptx) {
            let assemble = self.builders.assemble;
            let assemble = assemble.ok_or(RunError::NoBuilder(Level::MachineCode))?;
            let cubin = assemble(&module.source, options).map_err(RunError::Build)?;
            let built = Artifact::cubin(cubin).map_err(RunError::Built)?;
            run.ptx = Some(std::mem::replace(&mut run.artifact, built));
        }
        Ok(())
    }

    /// Applies one pass and verifies what it wrote.
    fn apply(
        &mut self,
        run: &mut Run,
        target: &Target<'_>,
        pass: &Invocation,
    ) -> Result<Step, RunError> {
        let (launches, shaped) = run.launches();
        let target = &Target {
            setting: target.setting.shaped(&launches, shaped),
            ..*target
        };
        let artifact = &mut run.artifact;
        let start = Instant::now();
        let used = self.fuel.used();
        let refused = |refusal| RunError::Refused {
            pass: pass.clone(),
            refusal,
        };
        if !pass.pass.is_whole_module() {
            meet(pass.needs(), artifact, target).map_err(refused)?;
        }
        let reliance = match (target.kernel, pass.pass.footprint(), artifact.level()) {
            (Some(kernel), Footprint::Registers | Footprint::FewerBlocks, _)
            | (Some(kernel), _, Level::MachineCode) => Reliance::of(artifact, kernel),
            _ => Reliance::default(),
        };
        reliance.permits(pass.pass.footprint()).map_err(refused)?;
        let product = self.product(artifact, target, pass).map_err(refused)?;
        let mut comparison = None;
        let product = match (product, artifact.as_source()) {
            (Product::Emulated(new), Some(file)) => {
                let text = self.compared(file, new, &mut comparison);
                Product::Text(text.map_err(refused)?)
            }
            (product, _) => product,
        };
        let Rewritten {
            content: new,
            mut notes,
            cautions,
            cost,
            guard,
            cases,
            shape,
        } = match product {
            Product::Text(new) => new.map(|text| parse(artifact, &text)),
            // It comes of CUDA C alone.
            Product::Emulated(_) => return Err(refused(Refusal::NoBody)),
            Product::Cubin(new) => new.map(|bytes| match *bytes == *artifact.bytes() {
                true => Ok(artifact.clone()),
                false => Artifact::cubin(bytes),
            }),
        };
        if !shape.is_same() && !shaped.is_same() {
            return Err(refused(Refusal::ShapedBefore(shaped)));
        }
        if !shape.is_same() {
            notes.push(format!("to be launched in the shape {shape}"));
        }
        if !guard.is_always() {
            notes.push(format!(
                "right at launches of {guard} alone; at others it computes something else, and nothing refuses them"
            ));
        }
        let new = new.map_err(|invalid| RunError::Invalid {
            pass: pass.clone(),
            invalid,
        })?;
        let is_changed = new.bytes() != artifact.bytes();
        if let (Some(kernel), false) = (target.kernel, reliance.is_nothing())
            && let [Some(before), Some(after)] =
                [&*artifact, &new].map(|a| takes(a, kernel, target))
        {
            reliance.keeps(before, after).map_err(refused)?;
        }
        if let (Some(kernel), true) = (target.kernel, is_changed) {
            without_hazards([artifact, &new], kernel, pass)?;
        }
        let kernel = target.kernel.filter(|_| !pass.pass.is_whole_module());
        let obligation = match (is_changed, artifact.level()) {
            (false, _) => None,
            (true, Level::Source) if comparison.is_some() => None,
            (true, Level::Source) => Some(self.as_ptx(pass, [artifact, &new], target)?),
            (true, _) => Some(
                Obligation::new(pass, artifact, &new, kernel, &target.setting)
                    .under(&guard, &cases)
                    .shaped(shape),
            ),
        };
        let step = Step {
            pass: pass.clone(),
            kernel: kernel.map(str::to_owned),
            rewrites: self.fuel.used() - used,
            is_changed,
            notes,
            cautions,
            guard,
            shape,
            cost,
            elapsed: start
                .elapsed()
                .saturating_sub(comparison.as_ref().map_or(Duration::ZERO, |c| c.elapsed)),
            given: artifact.bytes().len(),
            comparison,
            obligation,
        };
        *artifact = new;
        Ok(step)
    }

    /// Compares a rewrite of CUDA C with the original, and takes the text of what is left of it.
    fn compared(
        &self,
        file: &SourceFile,
        new: Rewritten<Version>,
        comparison: &mut Option<Comparison>,
    ) -> Result<Rewritten<String>, Refusal> {
        let Rewritten {
            content,
            notes,
            cautions,
            cost,
            guard,
            cases,
            shape,
        } = new;
        let mut text = file.text.clone();
        if let Some(mut rewrite) = content {
            let start = Instant::now();
            let copy = |text: &str| SourceFile {
                name: file.name.clone(),
                text: text.to_owned(),
                language: Language::Cuda,
            };
            let compile = |text: &str| {
                let missing = || CompileError::Missing("there is no compiler".to_owned());
                let compile = self.builders.compile_unfused.ok_or_else(missing)?;
                compile(&copy(text))
            };
            let read = |source: Text| match self.builders.read {
                Some(read) => read(&copy(&source.text)),
                None => read_alone(source),
            };
            let rung = rewrite.climb(Tools {
                compile: &compile,
                read: &read,
            });
            let elapsed = start.elapsed();
            let replaced = rewrite.replaced()?;
            text = replaced.text;
            *comparison = Some(Comparison {
                rung,
                launches: replaced.launches,
                left: replaced.left,
                launcher: replaced.launcher,
                elapsed,
            });
        }
        Ok(Rewritten {
            content: text,
            notes,
            cautions,
            cost,
            guard,
            cases,
            shape,
        })
    }

    /// CUDA C is proved as the PTX that the compiler makes of it, every function of the file.
    fn as_ptx(
        &self,
        pass: &Invocation,
        versions: [&Artifact; 2],
        target: &Target<'_>,
    ) -> Result<Obligation, RunError> {
        let [before, after] = versions.map(|artifact| {
            let mut run = Run {
                artifact: artifact.clone(),
                ptx: None,
                steps: Vec::new(),
            };
            self.lower(&mut run, Level::Ptx, AssemblerOptions::default())?;
            Ok(run.artifact)
        });
        let before = before?;
        let own = |name: &str| target.kernel.is_none_or(|kernel| is_named(kernel, name));
        let names = before.as_module().into_iter().flat_map(Module::kernels);
        for (_, function) in names.filter(|(_, function)| own(&function.name)) {
            permits(&before, &function.name, pass)?;
        }
        Ok(Obligation::new(
            pass,
            &before,
            &after?,
            None,
            &target.setting,
        ))
    }

    fn read(builders: &Builders<'_>, file: &SourceFile) -> Option<Source> {
        Some(match (file.language, builders.read) {
            (Language::Stencil, _) => Source::Stencil(dsl::parse(&file.text).ok()?),
            (Language::Cuda, Some(read)) => Source::Cuda(read(file)?),
            (Language::Cuda, None) => {
                Source::Cuda(read_alone(Text::new(&*file.name, &*file.text))?)
            }
        })
    }

    fn product(
        &mut self,
        artifact: &Artifact,
        target: &Target<'_>,
        pass: &Invocation,
    ) -> Result<Product, Refusal> {
        let setting = target.setting;
        let fuel = &mut self.fuel;
        if let Some(module) = artifact.as_module() {
            if pass.pass.is_whole_module() {
                return pass.pass.apply(Subject::Ptx(module, None), fuel);
            }
            let site = Site {
                module,
                kernel: kernel(module, target.kernel).ok_or(Refusal::NoBody)?,
                setting,
            };
            return pass.pass.apply(Subject::Ptx(module, Some(&site)), fuel);
        }
        let kernel = target.kernel.ok_or(Refusal::NoBody)?;
        if let Some(cubin) = artifact.as_cubin() {
            let site = CubinSite {
                cubin,
                kernel,
                setting,
            };
            return pass.pass.apply(Subject::MachineCode(&site), fuel);
        }
        let file = artifact.as_source().ok_or(Refusal::NoBody)?;
        let source = Self::read(&self.builders, file);
        let site = SourceSite {
            source: &source.ok_or(Refusal::InTheWay("the file cannot be read"))?,
            kernel,
            setting,
        };
        pass.pass.apply(Subject::Source(&site), fuel)
    }
}

fn kernel(module: &Module, name: Option<&str>) -> Option<warpwright_ptx::FuncId> {
    let mut kernels = module.kernels();
    let found = kernels.find(|(_, f)| Some(&*f.name) == name);
    found.map(|(id, _)| id)
}

/// The text that a pass wrote, on the level of what it was given.
fn parse(before: &Artifact, text: &str) -> Result<Artifact, Invalid> {
    match (before.as_module(), before.as_source()) {
        (Some(module), _) if *module.source == *text => Ok(before.clone()),
        (Some(module), _) => Artifact::parse(&module.name, text),
        (None, Some(source)) if source.text == text => Ok(before.clone()),
        (None, source) => Ok(Artifact::source(SourceFile {
            name: source.map_or_else(String::new, |source| source.name.clone()),
            text: text.to_owned(),
            language: Language::Cuda,
        })),
    }
}

/// May the pass do to the launches of this kernel what it does?
fn permits(artifact: &Artifact, kernel: &str, pass: &Invocation) -> Result<(), RunError> {
    let permitted = Reliance::of(artifact, kernel).permits(pass.pass.footprint());
    permitted.map_err(|refusal| RunError::Refused {
        pass: pass.clone(),
        refusal,
    })
}

/// The same of an option of ptxas, which holds for all kernels of a module.
fn permits_all(artifact: &Artifact, pass: &Invocation) -> Result<(), RunError> {
    let mut kernels = artifact.as_module().into_iter().flat_map(Module::kernels);
    kernels.try_for_each(|(_, function)| permits(artifact, &function.name, pass))
}

/// What a kernel of a cubin takes, and how many of its blocks reside where their size is known.
fn takes(artifact: &Artifact, kernel: &str, target: &Target<'_>) -> Option<Takes> {
    let kernel = artifact.as_cubin()?.kernel(kernel)?;
    Some(Takes::of(kernel, &target.setting))
}

/// Is everything stated that the pass needs to know?
fn meet(needs: &[Need], artifact: &Artifact, target: &Target<'_>) -> Result<(), Refusal> {
    let setting = &target.setting;
    for &need in needs {
        let is_met = match need {
            Need::BlockSize => setting.block.is_given() || is_bounded(artifact, target.kernel),
            Need::DynamicShared => {
                setting.dynamic_smem.is_some() || !may_have_dynamic(artifact, target.kernel)
            }
        };
        if !is_met {
            return Err(Refusal::NotStated(need));
        }
    }
    Ok(())
}

/// Does the kernel bound its blocks itself? Then that is what passes go by, however large the launches are that were seen.
fn is_bounded(artifact: &Artifact, name: Option<&str>) -> bool {
    if let Some(module) = artifact.as_module() {
        let function = kernel(module, name).map(|id| &module.functions[id]);
        return function.is_some_and(|f| f.req_ntid().or(f.max_ntid()).is_some());
    }
    let kernel = artifact.as_cubin().and_then(|cubin| cubin.kernel(name?));
    kernel.is_some_and(|kernel| kernel.max_threads.is_some())
}

/// May the kernel have dynamic shared memory? A cubin does not tell static from dynamic.
fn may_have_dynamic(artifact: &Artifact, name: Option<&str>) -> bool {
    if let Some(module) = artifact.as_module() {
        return kernel(module, name)
            .is_none_or(|id| uses_dynamic_shared(module, &module.functions[id]));
    }
    let kernel = artifact.as_cubin().and_then(|cubin| cubin.kernel(name?));
    kernel.is_none_or(|kernel| kernel.touches_shared())
}

/// Machine code must be free of hazards before a pass rewrites it, and behind: moved accesses keep their control
/// fields, and there may be new code.
fn without_hazards(
    [before, after]: [&Artifact; 2],
    kernel: &str,
    pass: &Invocation,
) -> Result<(), RunError> {
    let ([Some(before), Some(after)], pass) =
        ([before, after].map(Artifact::as_cubin), pass.clone())
    else {
        return Ok(());
    };
    if hazard::is_same_code(before, after, kernel) {
        return Ok(());
    }
    if let Err(hazard) = hazard::check(before, kernel) {
        let refusal = Refusal::Hazard(hazard);
        return Err(RunError::Refused { pass, refusal });
    }
    hazard::check(after, kernel).map_err(|hazard| RunError::Hazard { pass, hazard })
}
