//! Emulator against hardware: the same kernels with the same inputs on a GPU, bit for bit.

use serde::Serialize;
use std::path::Path;
use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_gpu::{Image, Process, Variant, WorkerCommand, prepare};
use warpwright_launch::{ContentsError, Launch, LaunchFile, compare, no_files};
use warpwright_ptx::Module;
use warpwright_toolkit::{FindOptions, PtxasJob, Toolkit};

use crate::case;

/// Who turns generated PTX into machine code: a ptxas if there is one, else the driver.
///
/// The driver's compiler may be older: that of driver 580 (CUDA 13.0) miscompiles predicates that
/// live across the slow paths of `div` and `sqrt` in a loop, as this comparison found.
enum Assembler {
    Ptxas(Box<Toolkit>),
    Driver,
}

impl Assembler {
    fn find() -> Self {
        match Toolkit::find(&FindOptions::default()) {
            Ok(toolkit) if toolkit.ptxas().is_ok() => Assembler::Ptxas(Box::new(toolkit)),
            _ => Assembler::Driver,
        }
    }

    fn name(&self) -> String {
        match self {
            Assembler::Driver => "the driver's compiler".into(),
            Assembler::Ptxas(toolkit) => {
                let version = toolkit
                    .ptxas()
                    .and_then(|p| p.tool().version().map(ToString::to_string));
                format!(
                    "ptxas {}",
                    version.unwrap_or_else(|_| "of unknown version".into())
                )
            }
        }
    }

    /// The image that the device loads. Contraction is off: the emulator does not fuse either.
    fn assemble(&self, ptx: &str, arch: &str) -> Result<Vec<u8>, String> {
        let Assembler::Ptxas(toolkit) = self else {
            return Ok(ptx.as_bytes().to_vec());
        };
        let mut job = PtxasJob::new(ptx, arch);
        job.extra = vec!["--fmad=false".into()];
        let ptxas = toolkit.ptxas().map_err(|e| e.to_string())?;
        Ok(ptxas.run(&job).map_err(|e| e.to_string())?.cubin)
    }
}

/// What a comparison came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum Agreement {
    /// Every output has the same bits.
    Identical,
    /// The kernel uses approximate instructions, and outputs differ within the tolerance of the
    /// launch description; by at most this.
    Approximate {
        /// Largest relative error of any element.
        max_relative: f64,
        /// The instructions.
        instructions: Vec<String>,
    },
    /// Outputs differ.
    Different {
        /// Buffer and element of the first difference, and both values.
        first: String,
        /// Elements that differ, all buffers together.
        elements: usize,
    },
    /// It did not run on one of them.
    Failed {
        /// Why.
        why: String,
    },
}

/// One compared kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// `seed N` or the example's name.
    pub name: String,
    /// What it came to.
    #[serde(flatten)]
    pub agreement: Agreement,
}

/// The result file.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `warpwright.emulator-vs-hardware/1`
    pub schema: &'static str,
    /// Device name.
    pub gpu: String,
    /// Driver version.
    pub driver: String,
    /// Who assembled the generated kernels.
    pub assembled_by: String,
    /// When, UTC.
    pub date: String,
    /// Kernels compared.
    pub compared: usize,
    /// Of these, bit-identical.
    pub identical: usize,
    /// Of these, with approximate instructions.
    pub approximate: usize,
    /// Of these, different or failed: must be 0.
    pub disagreeing: usize,
    /// Everything that is not plainly identical, and all examples.
    pub details: Vec<Compared>,
}

/// Compares `seeds` of the generator and every example of a folder made by `prepare-examples`.
pub fn run(
    seeds: std::ops::Range<u64>,
    examples: Option<&Path>,
    tell: &mut dyn FnMut(&Compared),
) -> Result<Report, String> {
    let command = WorkerCommand::this_program(0).map_err(|e| e.to_string())?;
    let mut backend = Process::new(command);
    let device = warpwright_gpu::devices()
        .map_err(|e| e.to_string())?
        .into_iter()
        .next()
        .ok_or("there is no GPU")?;
    let assembler = Assembler::find();
    let mut all = Vec::new();
    for seed in seeds {
        let name = format!("seed {seed}");
        let agreement = match case::prepare(&case::program(seed, false)) {
            Ok(case) => match assembler.assemble(&case.text, &device.arch) {
                Ok(image) => {
                    compare_one(&mut backend, &case.module, &case.launch, case.inputs, image)
                }
                Err(why) => Agreement::Failed { why },
            },
            Err(e) => Agreement::Failed { why: e.to_string() },
        };
        all.push((Compared { name, agreement }, false));
        tell(&all[all.len() - 1].0);
    }
    if let Some(folder) = examples {
        for name in example_names(folder)? {
            let agreement = compare_example(&mut backend, folder, &name)
                .unwrap_or_else(|why| Agreement::Failed { why });
            all.push((Compared { name, agreement }, true));
            tell(&all[all.len() - 1].0);
        }
    }
    let count = |f: fn(&Agreement) -> bool| all.iter().filter(|(c, _)| f(&c.agreement)).count();
    Ok(Report {
        schema: "warpwright.emulator-vs-hardware/1",
        gpu: device.name,
        driver: device.driver.unwrap_or_default(),
        assembled_by: assembler.name(),
        date: warpwright_gpu::utc_now(),
        compared: all.len(),
        identical: count(|a| *a == Agreement::Identical),
        approximate: count(|a| matches!(a, Agreement::Approximate { .. })),
        disagreeing: count(|a| matches!(a, Agreement::Different { .. } | Agreement::Failed { .. })),
        details: all
            .into_iter()
            .filter(|(c, example)| *example || c.agreement != Agreement::Identical)
            .map(|(c, _)| c)
            .collect(),
    })
}

/// Shrinks the kernel of a seed while emulator and hardware disagree on it; the PTX of the smallest
/// one, with its launch and the disagreement in comments. `None` if they agree.
pub fn shrink(seed: u64, budget: usize) -> Result<Option<String>, String> {
    let command = WorkerCommand::this_program(0).map_err(|e| e.to_string())?;
    let mut backend = Process::new(command);
    let device = warpwright_gpu::devices().map_err(|e| e.to_string())?;
    let arch = device
        .first()
        .map(|d| d.arch.clone())
        .ok_or("there is no GPU")?;
    let assembler = Assembler::find();
    let mut disagreement = |program: &warpwright_fuzzgen::Program| {
        let case = case::prepare(program).ok()?;
        let image = assembler.assemble(&case.text, &arch).ok()?;
        let found = compare_one(&mut backend, &case.module, &case.launch, case.inputs, image);
        matches!(found, Agreement::Different { .. }).then_some(found)
    };
    let program = case::program(seed, false);
    if disagreement(&program).is_none() {
        return Ok(None);
    }
    let small = warpwright_fuzzgen::reduce(&program, budget, |p| disagreement(p).is_some());
    let mut out = format!("// {:?}\n// launch:\n", disagreement(&small));
    for line in warpwright_fuzzgen::launch_toml(&small).lines() {
        out.push_str(&format!("//   {line}\n"));
    }
    Ok(Some(out + &warpwright_fuzzgen::print(&small)))
}

/// Examples of a folder: NAME.ptx, NAME.cubin and NAME.toml.
fn example_names(folder: &Path) -> Result<Vec<String>, String> {
    let listing = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> = listing
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn compare_example(backend: &mut Process, folder: &Path, name: &str) -> Result<Agreement, String> {
    let read = |ending: &str| {
        let path = folder.join(format!("{name}.{ending}"));
        std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let text = String::from_utf8(read("ptx")?).map_err(|e| e.to_string())?;
    let toml = String::from_utf8(read("toml")?).map_err(|e| e.to_string())?;
    let launch = LaunchFile::parse(&toml, name)
        .and_then(|file| file.resolve("small", &[]))
        .map_err(|e| e.to_string())?;
    let (module, diagnostics) = Module::parse(name, &text);
    if let Some(error) = diagnostics.iter().find(|d| d.is_error()) {
        return Err(error.one_line(&module));
    }
    let inputs = launch
        .buffers()
        .map(|b| b.materialize(&no_files))
        .collect::<Result<_, _>>();
    let inputs = inputs.map_err(|e| e.to_string())?;
    Ok(compare_one(
        backend,
        &module,
        &launch,
        inputs,
        read("cubin")?,
    ))
}

fn compare_one(
    backend: &mut Process,
    module: &Module,
    launch: &Launch,
    inputs: Vec<Vec<u8>>,
    image: Vec<u8>,
) -> Agreement {
    let emulated = match Emulator::new(module, &launch.kernel) {
        Ok(program) => program.run(launch, inputs, &Options::default()),
        Err(e) => return Agreement::Failed { why: e.to_string() },
    };
    let emulated = match emulated {
        Ok(Outcome::Finished(results)) => results,
        Ok(Outcome::Faulted(fault)) => {
            return Agreement::Failed {
                why: format!("emulator: {fault}"),
            };
        }
        Err(e) => return Agreement::Failed { why: e.to_string() },
    };
    let measured = match on_device(backend, launch, image) {
        Ok(outputs) => outputs,
        Err(why) => return Agreement::Failed { why },
    };
    let approximate = emulated
        .approximate
        .iter()
        .map(|a| a.place.instruction.clone())
        .collect();
    judge(launch, &emulated.buffers, &measured, approximate)
}

fn judge(
    launch: &Launch,
    emulated: &[Vec<u8>],
    measured: &[Option<Vec<u8>>],
    instructions: Vec<String>,
) -> Agreement {
    let mut elements = 0;
    let mut first = None;
    let mut max_relative: f64 = 0.0;
    let mut tolerable = true;
    for ((buffer, ours), theirs) in launch.buffers().zip(emulated).zip(measured) {
        let Some(theirs) = theirs.as_ref().filter(|t| *t != ours) else {
            continue;
        };
        let size = buffer.ty.size();
        let pairs = || {
            ours.chunks_exact(size)
                .zip(theirs.chunks_exact(size))
                .enumerate()
        };
        elements += pairs().filter(|(_, (a, b))| a != b).count();
        if let Some((i, (a, b))) = pairs().find(|(_, (a, b))| a != b)
            && first.is_none()
        {
            first = Some(format!(
                "{}[{i}]: emulator {:#x}, hardware {:#x}",
                buffer.name,
                buffer.ty.read(a),
                buffer.ty.read(b)
            ));
        }
        let found = compare(theirs, ours, buffer.ty, buffer.tolerance);
        max_relative = max_relative.max(found.max_rel);
        tolerable &= found.first_mismatch.is_none();
    }
    match first {
        None => Agreement::Identical,
        Some(_) if !instructions.is_empty() && tolerable => Agreement::Approximate {
            max_relative,
            instructions,
        },
        Some(first) => Agreement::Different { first, elements },
    }
}

/// The outputs after one run on the device; `None` for buffers that are no outputs.
pub(crate) fn on_device(
    backend: &mut Process,
    launch: &Launch,
    image: Vec<u8>,
) -> Result<Vec<Option<Vec<u8>>>, String> {
    let scratch = tempfile::tempdir().map_err(|e| e.to_string())?;
    let files = |name: &str| Err(ContentsError::NotCarried(name.to_owned()));
    let job = prepare(launch, scratch.path(), &files).map_err(|e| e.to_string())?;
    let variant = Variant::new("kernel", Image::Bytes(image));
    let run = warpwright_gpu::run(backend, &job, &variant, 20.0).map_err(|e| e.to_string())?;
    if !run.verdict.is_correct() {
        return Err(run.verdict.to_string());
    }
    let mut outputs = run.outputs.into_iter();
    Ok(launch
        .buffers()
        .map(|buffer| {
            buffer
                .output
                .then(|| outputs.next().map(|o| o.1).unwrap_or_default())
        })
        .collect())
}
