//! Every example through the register passes, one step of the staircase down: verified, proved, and
//! the same in the emulator at its small size.
//!
//! The normal tests take a few examples; `WARPWRIGHT_PASS_EXAMPLES=all` takes them all.

use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use warpwright_fuzz::assignment;
use warpwright_fuzz::case::{self, Case};
use warpwright_fuzz::passes::PASSES;
use warpwright_fuzz::proved::{Applied, apply, pressure};
use warpwright_launch::{ContentsError, LaunchFile};
use warpwright_pass::{Artifact, Recipe, Scope};
use warpwright_ptx::Module;
use warpwright_target::lookup;
use warpwright_toolkit::{FindOptions, NvccJob, Toolkit};

/// Loops, predicates, static shared memory, 64-bit values; each takes seconds.
const QUICK: &[&str] = &["heston", "hlld", "two_stream"];

fn main() {
    let arguments = Arguments::from_args();
    let toolkit = toolkit();
    if let Err(reason) = &toolkit {
        eprintln!("SKIPPED: the examples need nvcc: {reason}");
    }
    let toolkit: Option<&'static Toolkit> = toolkit.ok().map(|t| &*Box::leak(Box::new(t)));
    let all = std::env::var("WARPWRIGHT_PASS_EXAMPLES").is_ok_and(|value| value == "all");
    let names = warpwright_references::names().filter(|name| all || QUICK.contains(name));
    let trials = names.map(|name| {
        let run = move || match toolkit {
            Some(toolkit) => check(toolkit, name).map_err(Failed::from),
            None => Ok(()),
        };
        Trial::test(name, run).with_ignored_flag(toolkit.is_none())
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

/// The CUDA toolkit, or why there is none.
fn toolkit() -> Result<Toolkit, String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    toolkit.nvcc().map_err(|e| e.to_string())?;
    Ok(toolkit)
}

/// All passes on one example. A note of a pass that changes nothing is printed.
fn check(toolkit: &Toolkit, name: &str) -> Result<(), String> {
    let mut case = example(toolkit, name)?;
    let artifact = Artifact::ptx(case.module.clone()).map_err(|e| e.render())?;
    let module = artifact.as_module().ok_or("no module")?;
    let kernel = module.function(&case.launch.kernel).ok_or("no kernel")?;
    let run = |case: &Case| case::emulate(case, &case::strict()).map_err(|e| e.to_string());
    let expected = run(&case)?.buffers;
    for pass in PASSES {
        let scope = Scope {
            gpu: lookup("h200").ok(),
            kernels: std::slice::from_ref(&case.launch.kernel),
            launch: Some(&case.launch),
            ..Scope::default()
        };
        let recipe: Recipe = pass.parse().map_err(|e| format!("{pass}: {e}"))?;
        match apply(&recipe, &artifact, &scope).map_err(|e| format!("{pass}: {e}"))? {
            Applied::Changed(new) => {
                case.module = new.artifact.as_module().ok_or("no module")?.clone()
            }
            Applied::Unchanged => {
                println!("{name}: {pass}: nothing to do");
                continue;
            }
            Applied::Refused(why) => {
                println!("{name}: {pass}: {why}");
                continue;
            }
        }
        let (before, after) = (pressure(module, kernel), pressure(&case.module, kernel));
        println!("{name}: {pass}: {before} -> {after}");
        if run(&case)?.buffers != expected {
            return Err(format!("{pass} computes something else"));
        }
        if pass == "allocate" {
            assignment::check(&case.module, kernel, before).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

fn example(toolkit: &Toolkit, name: &str) -> Result<Case, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    let path = folder.join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
    let file = LaunchFile::parse(&text, &path.display().to_string()).map_err(|e| e.to_string())?;
    let launch = file.resolve("small", &[]).map_err(|e| e.to_string())?;
    let files =
        |name: &str| std::fs::read(folder.join(name)).map_err(|why| ContentsError::read(name, why));
    let inputs = launch.buffers().map(|b| b.materialize(&files));
    let inputs = inputs
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    let source = folder.join(file.source().ok_or("no source")?);
    let mut job = NvccJob::new(&source, "sm_90");
    job.extra = file.nvcc().iter().map(Into::into).collect();
    let nvcc = toolkit.nvcc().map_err(|e| e.to_string())?;
    let ptx = nvcc.to_ptx(&job).map_err(|e| e.to_string())?.ptx;
    let (module, diagnostics) = Module::parse(name, &ptx);
    match diagnostics.iter().find(|d| d.is_error()) {
        Some(error) => Err(error.render(&module)),
        None => Ok(Case {
            text: ptx,
            module,
            launch,
            inputs,
        }),
    }
}
