//! How often the checker leaves undecided what our own passes make of the examples, by pass and by reason: the
//! candidates of `opt`, each proved, not only those that are about to be chosen.
//!
//! Every pass over PTX with goals of 75 and 50 per cent of the kernel's pressure, and every pass over machine code
//! on builds with 255, 64 and 40 registers at most.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use warpwright_launch::{Launch, LaunchFile};
use warpwright_pass::options::Arguments;
use warpwright_pass::{Artifact, Invocation, Level, Recipe, Scope};
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::{NvccJob, PtxasJob, Toolkit};

use crate::passes;
use crate::proved::{self, pressure};
use crate::totals::Counts;

/// The schema of a result.
pub const SCHEMA: &str = "warpwright.proofs/1";

/// Registers of the builds that passes over machine code get.
const LIMITS: [u32; 3] = [255, 64, 40];
/// Goals of the passes over PTX, in per cent of the pressure.
const GOALS: [u32; 2] = [75, 50];
/// Launches of the examples have no more dynamic shared memory than their files say; blocks are theirs, too.
pub(crate) const GPU: &str = "h200";

/// What the checker says of the passes' results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// What compiled and assembled.
    pub toolkit: String,
    /// Kernels.
    pub kernels: Vec<String>,
    /// Kernels that could not be built, and why.
    pub unusable: BTreeMap<String, String>,
    /// Pass by pass.
    pub passes: BTreeMap<String, Counts>,
    /// Every result that is not proved: kernel, pass, reason.
    pub open: Vec<[String; 3]>,
}

/// Every example in a folder, or those of these names.
///
/// # Errors
/// There is no such folder, or no toolkit.
pub fn run(folder: &Path, names: &[String], toolkit: &Toolkit) -> Result<Report, String> {
    let gpu = lookup(GPU).map_err(|e| e.to_string())?;
    let version = toolkit.ptxas().map_err(|e| e.to_string())?;
    let version = version.tool().version().map_err(|e| e.to_string())?;
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        toolkit: version.to_string(),
        ..Report::default()
    };
    for (name, folder) in examples(folder, names)? {
        match Example::new(&folder, &name, "small", toolkit) {
            Ok(example) => {
                report.kernels.push(name.clone());
                let mut of = One {
                    report: &mut report,
                    name: &name,
                    example: &example,
                    gpu,
                };
                of.run(toolkit);
            }
            Err(why) => {
                report.unusable.insert(name, why);
            }
        }
    }
    Ok(report)
}

/// The examples in a folder, or those of these names: name and folder, by name.
pub(crate) fn examples(folder: &Path, names: &[String]) -> Result<Vec<(String, PathBuf)>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let folders = entries.filter_map(|e| Some(e.ok()?.path()));
    let named = folders.filter_map(|folder| {
        let name = folder.file_name()?.to_string_lossy().into_owned();
        let is_meant = names.is_empty() || names.contains(&name);
        let is_there = folder.join(format!("{name}.toml")).is_file();
        (is_meant && is_there).then_some((name, folder))
    });
    let mut all: Vec<_> = named.collect();
    all.sort();
    Ok(all)
}

/// An example as PTX.
pub(crate) struct Example {
    pub(crate) ptx: Artifact,
    pub(crate) launch: Launch,
}

impl Example {
    /// The example of this name, with the launch of a size.
    pub(crate) fn new(
        folder: &Path,
        name: &str,
        size: &str,
        toolkit: &Toolkit,
    ) -> Result<Example, String> {
        let file = folder.join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&file).map_err(|e| e.to_string())?;
        let file = LaunchFile::parse(&text, &file.display().to_string());
        let file = file.map_err(|e| e.to_string())?;
        let launch = file.resolve(size, &[]).map_err(|e| e.to_string())?;
        let source = folder.join(file.source().ok_or("no source")?);
        let mut job = NvccJob::new(&source, "sm_90");
        job.extra = file.nvcc().iter().map(Into::into).collect();
        let nvcc = toolkit.nvcc().map_err(|e| e.to_string())?;
        let ptx = nvcc.to_ptx(&job).map_err(|e| e.to_string())?.ptx;
        let (module, _) = warpwright_ptx::Module::parse("example.ptx", &ptx);
        let ptx = Artifact::ptx(module).map_err(|e| e.render())?;
        Ok(Example { ptx, launch })
    }

    /// Its machine code, with so many registers at most.
    pub(crate) fn cubin(&self, limit: Option<u32>, toolkit: &Toolkit) -> Result<Artifact, String> {
        let text = String::from_utf8_lossy(self.ptx.bytes());
        let mut job = PtxasJob::new(&text, "sm_90");
        job.maxrregcount = limit;
        let ptxas = toolkit.ptxas().map_err(|e| e.to_string())?;
        let build = ptxas.run(&job).map_err(|e| e.to_string())?;
        Artifact::cubin(build.cubin).map_err(|e| e.to_string())
    }
}

/// All passes on one example.
struct One<'r> {
    report: &'r mut Report,
    name: &'r str,
    example: &'r Example,
    gpu: Gpu,
}

impl One<'_> {
    fn run(&mut self, toolkit: &Toolkit) {
        let example = self.example;
        let kernel = example.ptx.as_module().and_then(|module| {
            let kernel = module.function(&example.launch.kernel)?;
            Some(pressure(module, kernel))
        });
        for (pass, percent) in passes::PASSES
            .iter()
            .flat_map(|pass| GOALS.map(|goal| (pass, goal)))
        {
            let mut arguments = Arguments::default();
            let goal = kernel.unwrap_or(0) * percent / 100;
            arguments.set("registers", goal.max(8).to_string());
            self.one(&example.ptx, Invocation::new(pass, arguments).ok());
        }
        for limit in LIMITS {
            let Ok(cubin) = example.cubin(Some(limit), toolkit) else {
                continue;
            };
            for pass in warpwright_pass::passes::PASSES {
                let mut arguments = Arguments::default();
                if pass.name == "throttle" {
                    arguments.set("blocks", "2".to_owned());
                }
                let pass = Invocation::new(pass.name, arguments).ok();
                self.one(&cubin, pass.filter(|p| p.level() == Level::MachineCode));
            }
        }
    }

    fn one(&mut self, input: &Artifact, pass: Option<Invocation>) {
        let Some(pass) = pass else { return };
        let kernels = [self.example.launch.kernel.clone()];
        let scope = Scope {
            gpu: Some(self.gpu),
            kernels: &kernels,
            launch: Some(&self.example.launch),
            ..Scope::default()
        };
        let name = pass.name().to_owned();
        let counts = self.report.passes.entry(name.clone()).or_default();
        let text = pass.to_string();
        let recipe = Recipe::default().with(pass);
        let why = match proved::apply(&recipe, input, &scope) {
            Ok(applied) => {
                counts.count(&applied);
                return;
            }
            Err(proved::Failure::NotProved(open)) => {
                counts.count_undecided(&open.verdict);
                open.verdict.to_string()
            }
            Err(other) => other.to_string(),
        };
        let why = why.lines().next().unwrap_or_default().to_owned();
        self.report.open.push([self.name.to_owned(), text, why]);
    }
}
