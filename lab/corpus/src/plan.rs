//! What is compiled with what: one job for each output file.

use std::path::{Path, PathBuf};

use warpwright_fuzzgen::{Config, generate, print};

use crate::Error;
use crate::directives::Directives;
use crate::producers::{Kind, Producer, Tool};
use crate::wrappers;

/// Where the sources are.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The folder of this crate: `cuda`, `clang` and `triton` are in it.
    pub corpus: PathBuf,
    /// The folder of the examples: `NAME/NAME.cu`.
    pub examples: PathBuf,
}

impl Sources {
    /// Those of the repository that this program was built from.
    pub fn of_repository() -> Sources {
        let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let examples = corpus.join("../../examples");
        Sources { corpus, examples }
    }
}

/// One compilation; all but Triton's make one file.
#[derive(Debug, Clone)]
pub struct Job {
    /// Index of the producer.
    pub producer: usize,
    /// `sm_90`, …
    pub gpu: String,
    /// Path below the producer's folder, without `.ptx`: `sm_90/NAME` or `sm_90/NAME.VARIANT`. For Triton
    /// the folder that it fills.
    pub output: String,
    /// What is compiled.
    pub input: Input,
    /// Flags after the producer's own.
    pub flags: Vec<String>,
}

/// How much is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// Everything.
    #[default]
    Full,
    /// Large sources and the examples for their lowest architecture alone, and not the wrappers of PTX
    /// instructions: for the SASS corpus, where ptxas makes the code of later architectures from that.
    Lean,
    /// One architecture and the sources that ask for it: for the tests.
    Sample,
}

/// What a job compiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// CUDA C++ in a file.
    Cuda(PathBuf),
    /// CUDA C++ made here.
    Generated(String),
    /// OpenCL C in a file.
    OpenCl(PathBuf),
    /// The script that writes all of Triton's kernels.
    Triton(PathBuf),
    /// PTX made here.
    Ptx(String),
}

const NVCC_GPUS: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];
/// clang 19 ends at sm_90.
const CLANG_GPUS: [&str; 3] = ["sm_75", "sm_80", "sm_90"];
/// Triton 3.9 begins at sm_80.
const TRITON_GPUS: [&str; 3] = ["sm_80", "sm_90", "sm_100"];
/// Architectures with instructions of their own.
const WRAPPER_GPUS: [&str; 3] = ["sm_90", "sm_100a", "sm_120a"];
/// Files of generated kernels, and kernels in each.
const GENERATED: (u64, u64) = (12, 20);

/// The jobs of the given producers, in a fixed order.
///
/// # Errors
/// A source that cannot be read, or has a wrong directive.
pub fn plan(producers: &[Producer], sources: &Sources, extent: Extent) -> Result<Vec<Job>, Error> {
    let mut jobs = Vec::new();
    for (index, producer) in producers.iter().enumerate() {
        let mut planner = Planner {
            producer: index,
            extent,
            jobs: &mut jobs,
        };
        match &producer.kind {
            Kind::Nvcc(_) => {
                planner.files(&sources.corpus.join("cuda"), "cu", "", &NVCC_GPUS)?;
                planner.examples(&sources.examples)?;
                if extent == Extent::Full {
                    planner.wrappers(producer)?;
                }
            }
            Kind::Clang => {
                planner.files(&sources.corpus.join("clang"), "cu", "", &CLANG_GPUS)?;
                planner.files(&sources.corpus.join("clang"), "cl", "opencl_", &CLANG_GPUS)?;
            }
            Kind::Triton => planner.triton(&sources.corpus.join("triton/kernels.py")),
            Kind::Fuzzgen => planner.generated(),
        }
    }
    Ok(jobs)
}

struct Planner<'a> {
    producer: usize,
    extent: Extent,
    jobs: &'a mut Vec<Job>,
}

impl Planner<'_> {
    fn push(&mut self, gpu: &str, name: &str, input: Input, flags: Vec<String>) {
        let output = format!("{gpu}/{name}");
        let (producer, gpu) = (self.producer, gpu.to_owned());
        self.jobs.push(Job {
            producer,
            gpu,
            output,
            input,
            flags,
        });
    }

    /// In the sample, sm_90 where there is a choice; in the lean corpus the lowest one for what is `heavy`.
    fn gpus<'g>(&self, gpus: Vec<&'g str>, heavy: bool) -> Vec<&'g str> {
        let one = |at: usize| gpus.iter().copied().skip(at).take(1).collect();
        match self.extent {
            Extent::Sample => one(gpus.iter().position(|gpu| *gpu == "sm_90").unwrap_or(0)),
            Extent::Lean if heavy => one(0),
            _ => gpus,
        }
    }

    /// Sources of one folder, each with its variants.
    fn files(
        &mut self,
        dir: &Path,
        ending: &str,
        prefix: &str,
        usual: &[&str],
    ) -> Result<(), Error> {
        for path in crate::files_below(dir, ending)? {
            let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
            let directives = Directives::parse(&path.to_string_lossy(), &text)?;
            if self.extent == Extent::Sample && !directives.sample {
                continue;
            }
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{prefix}{stem}");
            for gpu in self.gpus(directives.gpus(usual), directives.heavy) {
                let input = || match ending {
                    "cl" => Input::OpenCl(path.clone()),
                    _ => Input::Cuda(path.clone()),
                };
                self.push(gpu, &name, input(), directives.flags.clone());
                for (variant, more) in &directives.variants {
                    let flags = directives.flags.iter().chain(more).cloned().collect();
                    self.push(gpu, &format!("{name}.{variant}"), input(), flags);
                }
            }
        }
        Ok(())
    }

    /// The examples, compiled as `opt` compiles them: `NAME/NAME.cu`.
    fn examples(&mut self, dir: &Path) -> Result<(), Error> {
        let all = crate::files_below(dir, "cu")?;
        let examples = all
            .into_iter()
            .filter(|path| path.parent().and_then(Path::parent) == Some(dir))
            .filter(|path| path.parent().and_then(Path::file_name) == path.file_stem());
        for path in examples {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            for gpu in self.gpus(NVCC_GPUS.to_vec(), true) {
                let flags = vec!["-lineinfo".to_owned()];
                self.push(
                    gpu,
                    &format!("example_{stem}"),
                    Input::Cuda(path.clone()),
                    flags,
                );
            }
        }
        Ok(())
    }

    /// Every overload of libcu++'s wrappers of PTX instructions.
    fn wrappers(&mut self, producer: &Producer) -> Result<(), Error> {
        let (Tool::Nvcc(toolkit), Kind::Nvcc(series)) = (&producer.tool, &producer.kind) else {
            return Ok(());
        };
        let Ok(nvcc) = toolkit.nvcc() else {
            return Ok(());
        };
        let root = nvcc
            .tool()
            .path
            .parent()
            .and_then(Path::parent)
            .unwrap_or(Path::new("/"));
        let dir = root.join("include/cccl/cuda/__ptx/instructions/generated");
        let mut headers = Vec::new();
        for path in crate::files_below(&dir, "h")? {
            let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            headers.push((stem.into_owned(), text));
        }
        // CUDA 13.x brings PTX 9.x.
        let minor = series
            .split_once('.')
            .and_then(|(_, minor)| minor.parse::<u32>().ok());
        let isa = 90 + minor.unwrap_or(0);
        for gpu in WRAPPER_GPUS {
            let number = gpu.strip_prefix("sm_").unwrap_or(gpu);
            let (text, skipped) = wrappers::source(&headers, number, isa);
            if skipped > 0 {
                eprintln!(
                    "{}: {skipped} overloads of libcu++ are not understood",
                    producer.kind
                );
            }
            let flags = vec!["-std=c++17".to_owned()];
            self.push(gpu, "libcudacxx_ptx", Input::Generated(text), flags);
        }
        Ok(())
    }

    fn triton(&mut self, script: &Path) {
        for gpu in self.gpus(TRITON_GPUS.to_vec(), true) {
            self.jobs.push(Job {
                producer: self.producer,
                gpu: gpu.to_owned(),
                output: gpu.to_owned(),
                input: Input::Triton(script.to_path_buf()),
                flags: Vec::new(),
            });
        }
    }

    /// Kernels of the generator that the fuzzer uses.
    fn generated(&mut self) {
        let (files, kernels) = GENERATED;
        for file in 0..files {
            let config = Config {
                statements: 20 + 20 * file as usize,
                registers: 8 + 8 * file as usize,
                approximate: file % 2 == 1,
                ..Config::default()
            };
            let seeds = file * kernels..(file + 1) * kernels;
            let text = one_module(seeds.map(|seed| print(&generate(seed, &config))));
            let name = format!("generated_{file:02}");
            self.push("sm_75", &name, Input::Ptx(text), Vec::new());
        }
    }
}

/// Generated modules of one kernel each as one module: the header of the first, and every kernel under a
/// name of its own.
fn one_module(modules: impl Iterator<Item = String>) -> String {
    const KERNEL: &str = ".visible .entry fuzz(";
    let mut whole = String::new();
    for (number, module) in modules.enumerate() {
        let (header, body) = module.split_once(KERNEL).unwrap_or((&module, ""));
        if number == 0 {
            whole.push_str(header);
        }
        whole.push_str(&format!(".visible .entry fuzz_{number}("));
        whole.push_str(body);
        whole.push('\n');
    }
    whole
}
