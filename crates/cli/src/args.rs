//! The command line's grammar (a contract: scripts rely on it, see docs/command-line.md).

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use warpwright::trace::Trace;
use warpwright_autotune::own_run::BUDGET;
use warpwright_autotune::session::Session;
use warpwright_autotune::space::{Named, Space};
use warpwright_driver::opt::DEFAULT_BUDGET;
use warpwright_launch::Shape;
use warpwright_pass::launch::possible;
use warpwright_pass::names::{is_named, nearest};

use crate::failure::Failure;
use warpwright::source::quoted;
use warpwright_files::Places;

/// Decides what each thread of a CUDA kernel keeps in registers, and writes a faster kernel.
#[derive(Debug, Parser)]
#[command(name = "warpwright", version = version::SHORT, long_version = version::LONG, max_term_width = 100)]
pub struct Cli {
    /// Use the toolkit in this folder (with bin/ptxas in it)
    #[arg(long, global = true, value_name = "DIR")]
    pub toolkit: Option<PathBuf>,
    /// Install NVIDIA's toolkit wheels first if no toolkit is found
    #[arg(long, global = true)]
    pub fetch_toolkit: bool,
    /// Say more on stderr: what ran, how long it took
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print nothing but errors, and the JSON or result that was asked for on stdout
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Resources, occupancy staircase; of CUDA C and PTX register pressure by instruction and source line
    Explain(ExplainArgs),
    /// Propose variants, build, predict, choose, write; no GPU needed
    Opt(OptArgs),
    /// The same, and the shortlist is measured on the local GPU
    Tune(TuneArgs),
    /// Measure the candidates of a file that `tune --jobs` wrote, on this machine's GPU
    Measure(MeasureArgs),
    /// Which kernels a program launches, how, and where its GPU time goes
    Trace(TraceArgs),
    /// Run a program with the winners of the store in place; nothing is compiled or measured
    With(WithArgs),
    /// The store of winners: list, show, remove, export, import
    Db(DbArgs),
    /// Is kernel B a correct version of kernel A? Exit 0 proved, 1 refuted, 5 not decided
    Check(CheckArgs),
    /// Run a kernel in the PTX emulator (or --gpu on the device) and print or save its outputs
    Run(RunArgs),
    /// One pass alone; `--list` names them
    Pass(PassArgs),
    /// Disassemble with control codes; `roundtrip`, `liveness`, `hazards`: check a cubin, exit 0 if it holds
    Sass(SassArgs),
    /// The occupancy calculator
    Occupancy(OccupancyArgs),
    /// Which nvcc, ptxas and nvdisasm are used, and from where; `install` fetches them
    Toolkit(ToolkitArgs),
    /// Build a program with nvcc, and the drop-in for ptxas in ptxas's place
    Nvcc(NvccArgs),
    /// Write the start of a launch description, from the code's own launch or a trace
    Launch(LaunchArgs),
    /// What a report about FILE needs: versions, the choice or the failure, the PTX; no path of this machine
    Bug(BugArgs),
    /// What a word means that the terminal or the page uses, or what a pass does
    ExplainTerm(ExplainTermArgs),
    /// Completions for a shell, on stdout
    Completions(CompletionsArgs),
    /// Write the man pages into a folder
    Man(ManArgs),
    /// Turn result files into the tables and plots of the documentation
    Report(ReportArgs),
    #[command(hide = true)]
    GpuWorker,
    #[command(hide = true)]
    GpuSelftest(SelftestArgs),
}

impl Command {
    /// What it reads and writes.
    pub fn places(&self) -> Places<'_> {
        let mut all = Places::default();
        let kernel = match self {
            Command::Explain(args) => {
                all.reads.push(&args.file);
                all.pages.extend(args.output.report.as_deref());
                Some(&args.kernel)
            }
            Command::Opt(args) => {
                all.reads.push(&args.file);
                all.writes.extend(args.output.as_deref());
                all.pages.extend(args.show.report.as_deref());
                all.folders.extend(args.keep.as_deref());
                all.is_document = args.show.json;
                Some(&args.kernel)
            }
            Command::Tune(args) => {
                all.reads.extend(args.file.as_deref());
                all.reads.extend(args.import.iter().map(PathBuf::as_path));
                all.writes.extend(args.output.as_deref());
                all.writes.extend(args.export.as_deref());
                all.pages.extend(args.show.report.as_deref());
                all.writes.extend(args.report_to.as_deref());
                all.writes.extend(args.keep.as_deref());
                if args.is_for_program() {
                    all.program = &args.words;
                }
                all.folders.extend(args.build_only.as_deref());
                all.folders.extend(args.jobs.as_deref());
                all.is_document = args.show.json;
                Some(&args.kernel)
            }
            Command::Check(args) => {
                all.reads.extend([args.a.as_path(), &args.b]);
                all.pages.extend(args.show.report.as_deref());
                None
            }
            Command::Run(args) => {
                all.reads.push(&args.file);
                all.reads.extend(args.setup.launch.as_deref());
                all.folders.extend(args.save.as_deref());
                None
            }
            Command::Pass(args) => {
                all.reads.extend(args.file.as_deref());
                all.writes.extend(args.output.as_deref());
                Some(&args.kernel)
            }
            Command::Report(args) => {
                all.reads.extend(args.results.iter().map(PathBuf::as_path));
                all.reads.extend(args.goals.as_deref());
                None
            }
            Command::GpuSelftest(args) => {
                all.writes.push(&args.output);
                None
            }
            Command::Measure(args) => {
                all.reads.push(&args.job);
                all.writes.push(&args.output);
                None
            }
            Command::Trace(args) => {
                all.trace = args.output.as_deref();
                all.program = &args.program;
                all.is_document = args.json;
                None
            }
            Command::Db(args) => {
                match &args.action {
                    DbAction::Export { output } => all.writes.push(output),
                    DbAction::Import { file, .. } => all.reads.push(file),
                    _ => {}
                }
                None
            }
            Command::Launch(args) => {
                all.reads.push(&args.file);
                all.reads.extend(args.trace.as_deref());
                match args.folder() {
                    Some(folder) => all.folders.push(folder),
                    None => all.writes.extend(args.output.as_deref()),
                }
                None
            }
            Command::Bug(args) => {
                all.reads.push(&args.file);
                all.writes.extend(args.output.as_deref());
                Some(&args.kernel)
            }
            Command::Man(args) => {
                all.folders.push(&args.folder);
                None
            }
            Command::Nvcc(_)
            | Command::ExplainTerm(_)
            | Command::Completions(_)
            | Command::Sass(_)
            | Command::Occupancy(_)
            | Command::Toolkit(_)
            | Command::With(_)
            | Command::GpuWorker => None,
        };
        all.reads.extend(kernel.and_then(|k| k.launch.as_deref()));
        all.reads.extend(kernel.and_then(|k| k.trace.as_deref()));
        all
    }

    /// Are several kernels looked at, each as it was launched?
    pub fn is_of_all(&self) -> bool {
        matches!(self, Command::Explain(_) | Command::Opt(_))
    }

    /// Which kernel the command is about, if it takes that.
    pub fn kernel_mut(&mut self) -> Option<&mut KernelArgs> {
        match self {
            Command::Explain(args) => Some(&mut args.kernel),
            Command::Opt(args) => Some(&mut args.kernel),
            Command::Tune(args) if !args.is_for_program() => Some(&mut args.kernel),
            Command::Pass(args) => Some(&mut args.kernel),
            Command::Bug(args) => Some(&mut args.kernel),
            _ => None,
        }
    }
}

/// Which kernel, for which GPU, launched how.
#[derive(Debug, Clone, Args)]
pub struct KernelArgs {
    /// Only this kernel: its symbol, its name in the source, or a pattern with * and ?; may be repeated
    #[arg(long = "kernel", value_name = "NAME")]
    pub kernels: Vec<String>,
    /// The GPU or architecture: h200, a100, sm_90, …
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
    /// Threads per block, of one kernel or of all; may be repeated
    #[arg(long, value_name = "[NAME=]X[,Y[,Z]]", value_parser = parse_stated_block, action = clap::ArgAction::Append)]
    pub block: Vec<StatedBlock>,
    /// Dynamic shared memory per block
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub dynamic_smem: Option<u32>,
    /// The launch description (block size and dynamic shared memory are taken from it)
    #[arg(long, value_name = "TOML")]
    pub launch: Option<PathBuf>,
    /// The named set of sizes of the launch description
    #[arg(long, value_name = "NAME")]
    pub size: Option<String>,
    /// A trace (`warpwright trace -o`), in the place of a launch description
    #[arg(long, value_name = "JSON", conflicts_with = "launch")]
    pub trace: Option<PathBuf>,
    /// The launch that counts; from the trace
    #[arg(skip)]
    pub traced: Option<warpwright_host::Traced>,
    /// The trace that this launch is from
    #[arg(skip)]
    pub traced_in: Option<Arc<Trace>>,
    /// The trace, where it has launches of several kernels
    #[arg(skip)]
    pub seen: Option<Arc<Trace>>,
}

/// `--block`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedBlock {
    /// The kernel; all of them without.
    pub kernel: Option<String>,
    /// Threads in x, y, z.
    pub dims: [u32; 3],
}

impl KernelArgs {
    /// The one kernel that was named, for commands that work on one.
    pub fn one(&self) -> Result<Option<&str>, Failure> {
        match &self.kernels[..] {
            [] => Ok(None),
            [kernel] => Ok(Some(kernel)),
            _ => Err(Failure::Usage("only one --kernel can be named here".into())),
        }
    }

    /// Its options for another command about the same launch, as a shell takes them; `--kernel` is the caller's.
    pub fn again(&self) -> String {
        let mut words: Vec<(&str, String)> = Vec::new();
        words.extend(self.gpu.iter().map(|gpu| ("--gpu", gpu.clone())));
        for block in &self.block {
            let dims = block.dims.map(|n| n.to_string()).join(",");
            words.push((
                "--block",
                match &block.kernel {
                    Some(kernel) => format!("{kernel}={dims}"),
                    None => dims,
                },
            ));
        }
        words.extend(
            self.dynamic_smem
                .map(|bytes| ("--dynamic-smem", bytes.to_string())),
        );
        let path = |path: &PathBuf| path.display().to_string();
        words.extend(self.launch.iter().map(|launch| ("--launch", path(launch))));
        words.extend(self.size.iter().map(|size| ("--size", size.clone())));
        words.extend(self.trace.iter().map(|trace| ("--trace", path(trace))));
        let words = words.iter();
        words
            .map(|(option, value)| format!(" {option} {}", quoted(value)))
            .collect()
    }

    /// Blocks of the traced launch.
    pub fn launched_blocks(&self) -> Option<u64> {
        let (grid, ..) = self.traced?;
        Some(grid.map(u64::from).iter().product())
    }

    /// `--block` for all kernels.
    pub fn block_of_all(&self) -> Option<[u32; 3]> {
        let mut blocks = self.block.iter().rev();
        let all = blocks.find(|block| block.kernel.is_none());
        all.map(|block| block.dims)
    }

    /// What `--block` says of a kernel by its symbol: by name before that of all.
    pub fn block_of(&self, symbol: &str) -> Option<[u32; 3]> {
        let is_it = |block: &&StatedBlock| {
            let name = block.kernel.as_deref();
            name.is_some_and(|name| is_named(name, symbol))
        };
        let own = self.block.iter().rev().find(is_it);
        own.map(|block| block.dims).or_else(|| self.block_of_all())
    }

    /// `--block NAME=X,Y,Z`.
    pub fn blocks(&self) -> Vec<(String, [u32; 3])> {
        let blocks = self.block.iter();
        let named = blocks.filter_map(|block| Some((block.kernel.clone()?, block.dims)));
        named.collect()
    }
}

/// What only concerns stencils.
#[derive(Debug, Clone, Args)]
pub struct StencilArgs {
    /// A size of a stencil or naive kernel; may be repeated [default: for `opt` that of the launch that is
    /// known, else a large one]
    #[arg(long = "grid", value_name = "NAME=N", value_parser = parse_size)]
    pub sizes: Vec<(String, i64)>,
    /// What floating-point sums of a stencil, and results inside a program, permit, whatever the input says
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fp: Option<Floating>,
    /// Take it that a result could not be compared with the input (without nvcc): exit code 0, not 5
    #[arg(long)]
    pub unchecked: bool,
}

/// What may happen to floating-point results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Floating {
    /// Sums may be reordered and products distributed, within the stated tolerance
    Reassociate,
}

/// The file's own program, which runs without a GPU.
#[derive(Debug, Clone, Default, Args)]
pub struct OwnArgs {
    /// Arguments of the file's own program, which is built and runs without a GPU so that its launches are seen; without any,
    /// options that its code names are tried for kernels that it does not launch
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub run_args: Option<String>,
    /// Read the launches in the code; its program is not run
    #[arg(long, conflicts_with = "run_args")]
    pub no_run: bool,
    /// Device memory of its program in MiB [default: 16384]
    #[arg(long, value_name = "MIB", conflicts_with = "no_run")]
    pub run_memory: Option<u64>,
}

/// How results are shown.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    pub json: bool,
    /// Write a self-contained HTML page
    #[arg(long, value_name = "HTML")]
    pub report: Option<PathBuf>,
}

/// `warpwright explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A .cu, .ptx, .cubin or .stencil file, or a host file with cubins in it; `-`: stdin
    pub file: PathBuf,
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub own: OwnArgs,
    /// Seconds that it takes: its own program is ended after three quarters, and no launch is run to count when they are over
    #[arg(long, value_name = "SECONDS", default_value_t = BUDGET, value_parser = parse_seconds)]
    pub budget: f64,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Arguments for nvcc
    #[arg(last = true)]
    pub nvcc: Vec<String>,
}

/// What people sweep by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SweptPeers {
    /// Nothing
    None,
    /// Some ten register limits, the launch bounds of one block more and of twice as many
    Usual,
    /// Every eighth register limit, every launch bound
    All,
    /// Nothing but spilling: at each register limit that makes ptxas spill, in local and in shared memory
    Spills,
}

/// What `opt` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// The chosen cubin
    Cubin,
    /// The annotated PTX
    Ptx,
}

/// `warpwright opt`
#[derive(Debug, Clone, Args)]
pub struct OptArgs {
    /// A .cu, .ptx, .cubin or .stencil file, or a host file with cubins in it, which are replaced; `-`: CUDA C,
    /// PTX or a cubin on stdin
    pub file: PathBuf,
    /// Where the chosen kernel goes (`-`: stdout); for OUT.cu, a stencil goes from source to source. Without it
    /// nothing is written
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Show every candidate
    #[arg(long)]
    pub all: bool,
    /// What to write [default: by the ending of OUT, else cubin]
    #[arg(long, value_enum)]
    pub emit: Option<Emit>,
    /// Keep every candidate's cubin in this folder
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Decide from the static model alone, whatever the database of measurements knows
    #[arg(long)]
    pub no_database: bool,
    /// Carry out this recipe instead of choosing one: `reduce(98); maxnreg(128)`
    #[arg(long, value_name = "TEXT")]
    pub recipe: Option<String>,
    /// Work per kernel, in seconds as a reference machine takes them: the same result on every machine; seconds in which its
    /// launch is looked for (its own program has at least 30)
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_BUDGET, value_parser = parse_seconds, conflicts_with = "recipe")]
    pub budget: f64,
    /// Stop after the N-th rewrite of the recipe, to find the guilty one
    #[arg(long, value_name = "N", requires = "recipe")]
    pub fuel: Option<u64>,
    #[command(flatten)]
    pub stencil: StencilArgs,
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub own: OwnArgs,
    #[command(flatten)]
    pub show: OutputArgs,
    /// Arguments for nvcc
    #[arg(last = true)]
    pub nvcc: Vec<String>,
}

/// `warpwright tune`
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// A .cu, .ptx or .stencil file
    pub file: Option<PathBuf>,
    /// Where the chosen cubin goes; for OUT.cu, a stencil goes from source to source
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// What people sweep by hand, to be measured too [default: all with --exhaustive, else none]
    #[arg(long, value_enum)]
    pub peers: Option<SweptPeers>,
    /// Show every candidate
    #[arg(long)]
    pub all: bool,
    /// Measure every candidate to the end, and the exhaustive sweep of register limits; of a program's kernels, for measuring
    /// what the search finds, every point of its space, however long that takes
    #[arg(long)]
    pub exhaustive: bool,
    /// For a program's exhaustive search: at most N points a kernel; the longest axes lose their last values
    #[arg(long, value_name = "N", default_value_t = 4096, requires = "exhaustive", value_parser = clap::value_parser!(u64).range(2..))]
    pub points: u64,
    /// The same: only these axes, and the first N values of each [default: all]
    #[arg(
        long,
        value_name = "AXIS[=N]",
        requires = "exhaustive",
        value_delimiter = ','
    )]
    pub space: Vec<Named>,
    /// Seconds of measuring per kernel
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0, value_parser = parse_seconds)]
    pub budget: f64,
    /// Build the candidates into DIR and stop (for a GPU machine without a toolkit); from source to source with -o OUT.cu,
    /// which --measure-only writes into DIR
    #[arg(long, value_name = "DIR", conflicts_with = "measure_only")]
    pub build_only: Option<PathBuf>,
    /// Measure what `--build-only DIR` built, and write DIR/result.json (or --output)
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    pub measure_only: Option<PathBuf>,
    /// Build the candidates, write them as files for `measure` into DIR and stop
    #[arg(long, value_name = "DIR", conflicts_with_all = ["measure_only", "build_only", "output"])]
    pub jobs: Option<PathBuf>,
    /// Candidates in a file of --jobs, beside the default build
    #[arg(long, value_name = "N", default_value_t = 8, requires = "jobs", value_parser = clap::value_parser!(u32).range(1..))]
    pub per_job: u32,
    /// Measure again, even what the database already knows
    #[arg(long)]
    pub fresh: bool,
    #[command(flatten)]
    pub stencil: StencilArgs,
    /// Write the database of measurements as JSON, and stop
    #[arg(long, value_name = "JSON", conflicts_with = "file")]
    pub export: Option<PathBuf>,
    /// Add the measurements of files (of --export or `measure`) to the database, and stop
    #[arg(long, value_name = "JSON", conflicts_with = "file", num_args = 1..)]
    pub import: Vec<PathBuf>,
    /// The store of winners, for a program [default: WARPWRIGHT_DB, else the user's]
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,
    /// Write what became of a program's kernels as JSON, and no table
    #[arg(long, value_name = "JSON")]
    pub report_to: Option<PathBuf>,
    /// Write every build of a program's kernels that was measured, with what is known of it
    #[arg(long, value_name = "JSON")]
    pub keep: Option<PathBuf>,
    /// No names of kernels in the file of --keep
    #[arg(long, requires = "keep")]
    pub without_names: bool,
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub own: OwnArgs,
    #[command(flatten)]
    pub show: OutputArgs,
    /// Arguments for nvcc; without FILE, a program and its arguments: its hot kernels are tuned inside it
    #[arg(last = true)]
    pub words: Vec<OsString>,
}

impl TuneArgs {
    /// Is a program to be tuned, not a file?
    pub fn is_for_program(&self) -> bool {
        let asks = self.measure_only.is_some() || self.export.is_some() || !self.import.is_empty();
        self.file.is_none() && !self.words.is_empty() && !asks
    }

    /// The space of an exhaustive search inside a program.
    pub fn space(&self) -> Option<Space> {
        self.exhaustive.then(|| Space {
            axes: self.space.clone(),
            most: self.points,
        })
    }

    /// How it measures.
    pub fn session(&self) -> Session {
        Session {
            budget: self.budget,
            exhaustive: self.exhaustive,
            fresh: self.fresh,
        }
    }

    /// Arguments for nvcc.
    ///
    /// # Errors
    /// One is no text.
    pub fn nvcc(&self) -> Result<Vec<String>, Failure> {
        let text = |word: &OsString| {
            let odd = || Failure::Usage(format!("`{}` is no text", word.to_string_lossy()));
            word.to_str().map(str::to_owned).ok_or_else(odd)
        };
        self.words.iter().map(text).collect()
    }
}

/// `warpwright measure`
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// A file of candidates (`tune --jobs`)
    pub job: PathBuf,
    /// Where the measurements go, for `tune --import`
    #[arg(short, long, value_name = "RESULT")]
    pub output: PathBuf,
    /// Seconds of measuring
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0, value_parser = parse_seconds)]
    pub budget: f64,
    /// The driver's number of the GPU, from zero
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,
}

/// `warpwright trace`
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Keep the trace, for --trace of other commands; its modules go to FILE.modules
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Rows of the table
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub rows: usize,
    /// Print one JSON document on stdout, after what the program prints there
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub without: NoGpuArgs,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// `warpwright trace --no-gpu`
#[derive(Debug, Clone, Args)]
pub struct NoGpuArgs {
    /// Run on a stand-in for CUDA: kernels in the emulator, for the launches alone (programs built with -cudart shared)
    #[arg(long)]
    pub no_gpu: bool,
    /// The GPU that is stood in for
    #[arg(long, value_name = "GPU", requires = "no_gpu", default_value = "h200")]
    pub gpu: String,
    /// Work of all kernels, in seconds as a reference machine takes them; then launches are recorded alone
    #[arg(long, value_name = "SECONDS", requires = "no_gpu", default_value_t = 30.0, value_parser = parse_seconds)]
    pub budget: f64,
    /// Device memory in MiB
    #[arg(
        long,
        value_name = "MIB",
        requires = "no_gpu",
        default_value_t = 16_384
    )]
    pub memory: u64,
}

/// `warpwright with`
#[derive(Debug, Args)]
pub struct WithArgs {
    /// The store of winners [default: WARPWRIGHT_DB, else the user's]
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// `warpwright db`
#[derive(Debug, Args)]
pub struct DbArgs {
    /// The store of winners [default: WARPWRIGHT_DB, else the user's]
    #[arg(long, global = true, value_name = "DIR")]
    pub db: Option<PathBuf>,
    /// What to do
    #[command(subcommand)]
    pub action: DbAction,
}

/// What to do with the store. KERNEL is the start of a digest, or a symbol.
#[derive(Debug, Subcommand)]
pub enum DbAction {
    /// All winners
    List {
        /// Print one JSON document on stdout and nothing else there
        #[arg(long)]
        json: bool,
    },
    /// All that is known of a kernel's winners
    Show {
        /// Which
        kernel: String,
        /// Print one JSON document on stdout and nothing else there
        #[arg(long)]
        json: bool,
    },
    /// Delete a kernel's winners
    Remove {
        /// Which
        kernel: String,
    },
    /// Prove winners from elsewhere against a program's own modules: it runs once
    Verify {
        /// The program and its arguments
        #[arg(last = true, required = true, value_name = "PROGRAM")]
        program: Vec<OsString>,
    },
    /// Write all winners that are used here into one file
    Export {
        /// Where to
        output: PathBuf,
    },
    /// Add the winners of an exported file; they are used once they are proved here (`verify`, `tune`)
    Import {
        /// The file
        file: PathBuf,
        /// Use them as they are: whoever made the file decides what programs run
        #[arg(long)]
        trust: bool,
    },
}

/// How a kernel is run, for `run` and `check`.
#[derive(Debug, Clone, Args)]
pub struct RunSetup {
    /// Only this kernel of the module
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// The launch description: grid, block and arguments
    #[arg(long, value_name = "TOML")]
    pub launch: Option<PathBuf>,
    /// The named set of sizes of the launch description
    #[arg(long, value_name = "NAME")]
    pub size: Option<String>,
    /// Change a size of the launch description
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Run on the local GPU (its number after `=`) instead of the emulator
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub gpu: Option<u32>,
}

/// `warpwright check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The original (.cu, .ptx or .cubin, or a host file with cubins in it; `-`: stdin)
    pub a: PathBuf,
    /// The rewritten version (of the same kind; `-`: stdin)
    pub b: PathBuf,
    /// Run both in the emulator on the launch description and compare the outputs
    #[arg(long)]
    pub run: bool,
    /// With --run: stop a version that has executed this many warp instructions [default: the original 16 Gi, the
    /// rewritten one a thousand times what the original takes]
    #[arg(long, value_name = "N", requires = "run")]
    pub fuel: Option<u64>,
    /// Threads per block, where the kernel does not state it
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_block)]
    pub block: Option<[u32; 3]>,
    /// The most dynamic shared memory of a launch in bytes per block, for cubins
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub dynamic_smem: Option<u32>,
    /// What every launch meets, such as `block=256,1,1; n=4096` (docs/launch.md)
    #[arg(long, value_name = "GUARD", conflicts_with_all = ["run", "gpu"])]
    pub assume: Option<String>,
    /// What these launches become for the rewritten version, such as `block=64,1,1`
    #[arg(long, value_name = "SHAPE", requires = "assume")]
    pub shape: Option<Shape>,
    #[command(flatten)]
    pub setup: RunSetup,
    #[command(flatten)]
    pub rewrite: RewriteArgs,
    #[command(flatten)]
    pub show: OutputArgs,
    /// Arguments for nvcc
    #[arg(last = true)]
    pub nvcc: Vec<String>,
}

/// How `check` compares a rewritten kernel that is launched in another way.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Rewritten kernels")]
pub struct RewriteArgs {
    /// A launch of the original (repeatable: launches in order)
    #[arg(long, value_name = "TOML", conflicts_with_all = ["run", "launch", "gpu"])]
    pub launch_a: Vec<PathBuf>,
    /// A launch of the rewritten version (repeatable)
    #[arg(long, value_name = "TOML", conflicts_with_all = ["run", "launch", "gpu"])]
    pub launch_b: Vec<PathBuf>,
    /// Buffers that stand for each other where their names differ
    #[arg(long, value_name = "A=B")]
    pub pair: Vec<String>,
    /// What launches keep to: `n % 4 == 0`
    #[arg(long, value_name = "CONDITION")]
    pub require: Vec<String>,
    /// A buffer, or a number among the arguments, that is what the description says and nothing else
    #[arg(long, value_name = "NAME")]
    pub fixed: Vec<String>,
    /// The numbers that a buffer holds, for bounds of the error and inputs that are tried [default: those of its description]
    #[arg(long, value_name = "NAME=LOW..HIGH", allow_hyphen_values = true)]
    pub range: Vec<String>,
    /// Only the described sizes, no odd or tiny ones made of them
    #[arg(long)]
    pub only_described: bool,
    /// The verdict that is good enough: proved, proved-at-launches, equal-but-for-nans, equal-up-to-rounding or tested
    /// [default: proved-at-launches]
    #[arg(long, value_name = "WORD")]
    pub accept: Option<String>,
}

impl RewriteArgs {
    /// Is a launch of either stated?
    pub fn is_given(&self) -> bool {
        !self.launch_a.is_empty() || !self.launch_b.is_empty()
    }
}

/// `warpwright run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A .cu or .ptx file (with --gpu also .cubin); `-`: stdin
    pub file: PathBuf,
    #[command(flatten)]
    pub setup: RunSetup,
    /// Save every buffer after the run as NAME.npy in this folder
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Report reads of registers, local and shared memory that were never written
    #[arg(long)]
    pub uninit: bool,
    /// Report shared-memory races
    #[arg(long)]
    pub races: bool,
    /// Count sectors of global memory and passes over shared memory (coalescing, bank conflicts)
    #[arg(long, conflicts_with = "gpu")]
    pub accesses: bool,
    /// Stop once the launch has executed this many warp instructions [default: 16 Gi, a block 1 Gi]
    #[arg(long, value_name = "N")]
    pub fuel: Option<u64>,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    pub json: bool,
    /// Arguments for nvcc
    #[arg(last = true)]
    pub nvcc: Vec<String>,
}

/// `warpwright pass`
#[derive(Debug, Args)]
pub struct PassArgs {
    /// The pass, or a recipe of several: `reduce(98); maxnreg(128)`
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// A .cu or .ptx file; for passes over machine code a .cubin, or a host file with cubins in it
    #[arg(required_unless_present = "list")]
    pub file: Option<PathBuf>,
    /// Where the result goes [default: stdout]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// List the passes
    #[arg(long)]
    pub list: bool,
    /// The goal in registers per thread, for passes that lower register pressure
    #[arg(long, value_name = "R")]
    pub regs: Option<u32>,
    /// Stop after the N-th rewrite, to find the guilty one
    #[arg(long, value_name = "N")]
    pub fuel: Option<u64>,
    /// Write the result even if it is not proved
    #[arg(long)]
    pub unproved: bool,
    /// An option of the pass (`pass --list` names them); may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub set: Vec<(String, String)>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Arguments for nvcc
    #[arg(last = true)]
    pub nvcc: Vec<String>,
}

/// `warpwright sass`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SassArgs {
    /// Without one, the machine code is printed
    #[command(subcommand)]
    pub action: Option<SassAction>,
    #[command(flatten)]
    pub input: SassInput,
    /// Print all that the file holds, not only the code: the text assembles to the same file
    #[arg(long, conflicts_with_all = ["kernel", "json"])]
    pub whole: bool,
}

/// What `sass` checks, and the way back from text.
#[derive(Debug, Subcommand)]
pub enum SassAction {
    /// Is the file read and written without loss: container, instructions, text form?
    Roundtrip(SassInput),
    /// Does liveness agree with nvdisasm's life ranges at every instruction?
    Liveness(SassInput),
    /// Is every register access protected by stall counts and scoreboards?
    Hazards(SassInput),
    /// Make a cubin of the text that `sass --whole` prints
    Assemble(AssembleArgs),
}

/// `warpwright sass assemble`
#[derive(Debug, Clone, Args)]
pub struct AssembleArgs {
    /// The text
    pub file: PathBuf,
    /// Where the cubin goes
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
}

/// The file that `sass` looks at.
#[derive(Debug, Clone, Args)]
pub struct SassInput {
    /// A .cubin file, or a host file with cubins in it; a .cu or .ptx file is compiled first
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// Only this function
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// The GPU or architecture to compile for, or whose cubins to take
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    pub json: bool,
    /// Arguments for nvcc
    #[arg(last = true)]
    pub nvcc: Vec<String>,
}

/// `warpwright occupancy`
#[derive(Debug, Args)]
pub struct OccupancyArgs {
    /// The GPU or architecture
    #[arg(long, value_name = "GPU", required_unless_present = "list")]
    pub gpu: Option<String>,
    /// Registers per thread
    #[arg(long, value_name = "R", required_unless_present = "list")]
    pub regs: Option<u32>,
    /// Threads per block
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_block, required_unless_present = "list")]
    pub block: Option<[u32; 3]>,
    /// Static shared memory per block in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = parse_bytes)]
    pub smem: u32,
    /// Dynamic shared memory per block in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = parse_bytes)]
    pub dynamic_smem: u32,
    /// List the GPUs and architectures
    #[arg(long)]
    pub list: bool,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    pub json: bool,
}

/// `warpwright toolkit`
#[derive(Debug, Args)]
pub struct ToolkitArgs {
    /// `install` fetches NVIDIA's wheels into Warpwright's cache
    #[command(subcommand)]
    pub action: Option<ToolkitAction>,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    pub json: bool,
}

/// `warpwright toolkit install`
#[derive(Debug, Subcommand)]
pub enum ToolkitAction {
    /// Fetch NVIDIA's own wheels into Warpwright's cache
    Install {
        /// Toolkit version
        #[arg(long, value_name = "VERSION")]
        version: Option<String>,
    },
}

/// What the drop-in for ptxas may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DropinPolicy {
    /// Nothing
    Off,
    /// Winners of the database
    Recorded,
    /// What the static model promises, without the launch
    Safe,
}

impl DropinPolicy {
    /// As the environment has it.
    pub fn name(self) -> &'static str {
        match self {
            DropinPolicy::Off => "off",
            DropinPolicy::Recorded => "recorded",
            DropinPolicy::Safe => "safe",
        }
    }
}

/// `warpwright nvcc`
#[derive(Debug, Args)]
pub struct NvccArgs {
    /// What may take the place of ptxas's output [default: as WARPWRIGHT_PTXAS says, else recorded]
    #[arg(long, value_enum)]
    pub policy: Option<DropinPolicy>,
    /// Print the folder with an nvcc that uses the drop-in, for other build systems, and stop
    #[arg(long)]
    pub folder: bool,
    /// nvcc's arguments
    #[arg(last = true)]
    pub nvcc: Vec<std::ffi::OsString>,
}

/// `warpwright report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Result files written by the benchmark suite, of which one table is printed
    #[arg(required_unless_present = "plan", conflicts_with = "plan")]
    pub results: Vec<PathBuf>,
    /// The table: suite, summary, agreement (of two runs), crat, one-block-more, spills, stencils, figure (SVG)
    #[arg(long, value_name = "KIND", default_value = "suite")]
    pub table: String,
    /// Times and floors of stencils from elsewhere, for `--table stencils`
    #[arg(long, value_name = "JSON")]
    pub goals: Option<PathBuf>,
    /// Rewrite all tables of the documentation that this file lists (bench/tables.json)
    #[arg(long, value_name = "JSON")]
    pub plan: Option<PathBuf>,
}

/// `warpwright launch`
#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// A .cu file; `-`: stdin
    pub file: PathBuf,
    /// The kernel: its symbol, its name in the source, or a pattern with * and ?
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Threads per block [default: as the code launches it, if that is a number]
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_block)]
    pub block: Option<[u32; 3]>,
    /// Dynamic shared memory per block
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub dynamic_smem: Option<u32>,
    /// A trace (`warpwright trace -o`) that saw the kernel: grid, block and dynamic shared memory are taken from it
    #[arg(long, value_name = "JSON")]
    pub trace: Option<PathBuf>,
    /// Where the description goes; a folder has one of each kernel [default: stdout]
    #[arg(short, long, value_name = "TOML")]
    pub output: Option<PathBuf>,
    /// Overwrite a file that `launch` has not written
    #[arg(long, requires = "output")]
    pub force: bool,
    #[command(flatten)]
    pub own: OwnArgs,
    /// Seconds that it takes: its own program is ended after three quarters, and no guess is tried when they are over
    #[arg(long, value_name = "SECONDS", default_value_t = BUDGET, value_parser = parse_seconds)]
    pub budget: f64,
    /// Arguments for nvcc
    #[arg(last = true)]
    pub nvcc: Vec<String>,
}

impl LaunchArgs {
    /// The folder that descriptions go to, if they do.
    pub fn folder(&self) -> Option<&Path> {
        let output = self.output.as_deref()?;
        let is_folder = output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/");
        is_folder.then_some(output)
    }
}

/// `warpwright bug`
#[derive(Debug, Args)]
pub struct BugArgs {
    /// The file that went wrong
    pub file: PathBuf,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Where the report goes [default: stdout]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Arguments for nvcc
    #[arg(last = true)]
    pub nvcc: Vec<String>,
}

/// `warpwright explain-term`
#[derive(Debug, Args)]
pub struct ExplainTermArgs {
    /// The word; without one, all words are listed
    pub word: Vec<String>,
}

/// `warpwright completions`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `warpwright man`
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder
    pub folder: PathBuf,
}

/// `warpwright gpu-selftest`
#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// Where the result goes
    pub output: PathBuf,
}

/// Seconds that nobody waits: more are as many.
const LONGEST_BUDGET: f64 = 1e6;

/// Seconds, more than none.
fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if f64::is_finite(seconds) && seconds > 0.0 => Ok(seconds.min(LONGEST_BUDGET)),
        _ => Err(format!("`{text}` is no number of seconds")),
    }
}

/// `NAME=N`: a size of a stencil.
fn parse_size(text: &str) -> Result<(String, i64), String> {
    let (name, number) = parse_setting(text)?;
    match number.parse() {
        Ok(size @ 1..=1_000_000_000) => Ok((name, size)),
        _ => Err(format!("`{number}` is no size")),
    }
}

/// `NAME=VALUE`.
fn parse_setting(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=');
    let (name, value) = pair.ok_or("NAME=VALUE is wanted")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// `X[,Y[,Z]]`, or the same behind `NAME=`. A name may have commas and equal signs (`k<a, b>`).
fn parse_stated_block(text: &str) -> Result<StatedBlock, String> {
    let (kernel, dims) = match text.rsplit_once('=') {
        Some((kernel, dims)) => (Some(kernel.trim().to_owned()), dims),
        None => (None, text),
    };
    let dims = parse_block(dims)?;
    Ok(StatedBlock { kernel, dims })
}

/// The command that these words name, as it is written before `--help`.
pub fn command_of(words: &[String]) -> String {
    let mut found = vec!["warpwright"];
    let mut command = &<Cli as clap::CommandFactory>::command();
    for word in words.iter().take_while(|word| *word != "--") {
        if let Some(sub) = command.find_subcommand(word) {
            found.push(word);
            command = sub;
        }
    }
    found.join(" ")
}

/// Does the command line ask for a JSON document? Known before it is parsed, for errors in it.
pub fn wants_json(words: &[String]) -> bool {
    let own = words.iter().take_while(|word| *word != "--");
    own.into_iter().any(|word| word == "--json")
}

/// Other tools' words for what a command here does.
const OTHER_WORDS: [(&str, &[&str]); 9] = [
    ("opt", &["build", "compile", "ptxas", "tile"]),
    ("tune", &["autotune", "sweep", "search"]),
    ("trace", &["profile", "nsys", "ncu", "record"]),
    (
        "explain",
        &["analyze", "analyse", "inspect", "why", "stats"],
    ),
    ("check", &["verify", "validate", "compare", "diff", "prove"]),
    ("run", &["emulate", "emulator", "simulate", "exec"]),
    (
        "sass",
        &["disassemble", "disasm", "nvdisasm", "cuobjdump", "assemble"],
    ),
    ("pass", &["passes", "apply", "transform"]),
    ("explain-term", &["term", "glossary", "define", "word"]),
];

/// A command that does not exist names the one that is meant, also where no letters say so.
pub fn with_suggestion(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    if error.get(ContextKind::SuggestedSubcommand).is_none() {
        let word = word.to_lowercase();
        let known = OTHER_WORDS
            .iter()
            .find(|(_, words)| words.contains(&&*word));
        let near = || {
            let commands = <Cli as clap::CommandFactory>::command();
            let shown = commands.get_subcommands().filter(|c| !c.is_hide_set());
            let mut names = shown.map(|c| c.get_name().to_owned());
            names.find(|name| word.len() > 2 && (word.contains(&**name) || name.contains(&*word)))
        };
        if let Some(command) = known
            .map(|(command, _)| (*command).to_owned())
            .or_else(near)
        {
            let command = ContextValue::Strings(vec![command]);
            error.insert(ContextKind::SuggestedSubcommand, command);
        }
    }
    error
}

/// The same with the option that a mistyped one may be; that it could be handed to nvcc helps nobody.
pub fn with_option(mut error: clap::Error, words: &[String]) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let wrong = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(wrong)) if error.kind() == ErrorKind::UnknownArgument => {
            wrong.clone()
        }
        _ => return error,
    };
    let Some(command) = subcommand(words) else {
        return error;
    };
    error.remove(ContextKind::Suggested);
    if stands_in_front(&wrong, (&command, words)) {
        error.remove(ContextKind::SuggestedArg);
        let tip = format!(
            "`{wrong}` is an option of `{}` and goes behind it",
            command_of(words)
        );
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
        return error;
    }
    if error.get(ContextKind::SuggestedArg).is_none() {
        let names = command.get_arguments().filter_map(|a| a.get_long());
        let names: Vec<String> = names.map(|name| format!("--{name}")).collect();
        let found = nearest(&wrong, names.iter().map(String::as_str));
        if let [first, ..] = found[..] {
            let first = ContextValue::String(first.to_owned());
            error.insert(ContextKind::SuggestedArg, first);
        }
    }
    error
}

/// Is an option that was not understood one of the command, which stands behind it?
fn stands_in_front(option: &str, (command, words): (&clap::Command, &[String])) -> bool {
    let is_it = |argument: &clap::Arg| {
        let long = argument.get_long().map(|name| format!("--{name}"));
        let short = argument.get_short().map(|name| format!("-{name}"));
        [long, short]
            .into_iter()
            .flatten()
            .any(|name| name == option)
    };
    let place = |is_it: &dyn Fn(&str) -> bool| words.iter().position(|word| is_it(word));
    let own = place(&|word| word == option || word.split('=').next() == Some(option));
    command.get_arguments().any(is_it) && own < place(&|word| word == command.get_name())
}

/// The command of a command line.
fn subcommand(words: &[String]) -> Option<clap::Command> {
    let mut found = <Cli as clap::CommandFactory>::command();
    for name in command_of(words).split(' ').skip(1) {
        found = found.find_subcommand(name)?.clone();
    }
    Some(found)
}

/// Long options that people give nvcc; short ones begin with a single dash.
const OF_NVCC: [&str; 12] = [
    "--compiler-options",
    "--define-macro",
    "--expt-extended-lambda",
    "--expt-relaxed-constexpr",
    "--extended-lambda",
    "--generate-code",
    "--gpu-architecture",
    "--include-path",
    "--maxrregcount",
    "--ptxas-options",
    "--std",
    "--use_fast_math",
];

/// Where options of nvcc go, if the word that was not understood looks like one and the command takes them.
pub fn option_of_nvcc(error: &clap::Error, words: &[String]) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let looks_so = |word: &&String| {
        let name = word.split_once('=').map_or(&***word, |(name, _)| name);
        // Of `-arch`, only `-a` was looked at.
        let is_short = word.starts_with('-') && !word.starts_with("--") && word.len() > 2;
        word.starts_with(&**wrong)
            && (is_short || ["-I", "-D", "-G", "-U"].contains(&name) || OF_NVCC.contains(&name))
    };
    let mut own = words.iter().take_while(|word| *word != "--");
    let word = own.find(looks_so)?;
    let command = command_of(words);
    if word.parse::<f64>().is_ok() {
        return Some(format!(
            "no option of `{command}` takes a number below zero, as {word} is"
        ));
    }
    let found = subcommand(words)?;
    let mut arguments = found.get_arguments();
    arguments.any(|argument| argument.get_id() == "nvcc").then(|| {
        format!(
            "`{word}` is no option of `{command}`; options of nvcc go behind `--`, at the end: -- {}",
            quoted(word)
        )
    })
}

/// What `-V` and `--version` print.
pub mod version {
    /// Number and commit.
    pub const SHORT: &str = concat!(
        env!("CARGO_PKG_VERSION"),
        " (",
        env!("WARPWRIGHT_COMMIT"),
        ")"
    );
    /// The same, and what it works with.
    pub const LONG: &str = concat!(
        env!("CARGO_PKG_VERSION"),
        " (",
        env!("WARPWRIGHT_COMMIT"),
        ")\ntested with CUDA toolkits 13.0 and 13.5; machine code of sm_75 to sm_120\n",
        "`warpwright toolkit` says which tools are used here"
    );
}

/// The digits of a number that begins with 0x.
fn hexadecimal(text: &str) -> Option<&str> {
    let text = text.trim();
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// A whole number, decimal or with 0x in front.
fn number(text: &str) -> Option<u32> {
    match hexadecimal(text) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    }
}

/// Bytes: a whole number, with K or M behind it 1024 times as many or 1024² times.
fn parse_bytes(text: &str) -> Result<u32, String> {
    let units = [("K", 1 << 10), ("M", 1 << 20)];
    let plain = text.trim();
    let plain = plain
        .strip_suffix("iB")
        .or(plain.strip_suffix('B'))
        .unwrap_or(plain);
    let unit = |(name, unit): (&str, u32)| {
        let less = plain.strip_suffix(name);
        let less = less.or_else(|| plain.strip_suffix(&*name.to_lowercase()))?;
        Some((less, unit))
    };
    let found = match hexadecimal(text) {
        Some(_) => None,
        None => units.into_iter().find_map(unit),
    };
    let (digits, unit) = found.unwrap_or((text, 1));
    let bytes = number(digits).and_then(|n| n.checked_mul(unit));
    bytes.ok_or_else(|| format!("`{text}` is no number of bytes, as in 32768 or 32K"))
}

fn parse_block(text: &str) -> Result<[u32; 3], String> {
    let mut block = [1u32; 3];
    // `x` stands between dimensions, unless it begins a number.
    let commas: Vec<&str> = text.split(',').collect();
    let parts: Vec<&str> = match commas.iter().any(|part| hexadecimal(part).is_some()) {
        true => commas,
        false => text.split([',', 'x']).collect(),
    };
    if parts.len() > 3 {
        return Err("at most three dimensions: X[,Y[,Z]]".into());
    }
    for (slot, part) in block.iter_mut().zip(&parts) {
        *slot = number(part).ok_or_else(|| {
            format!("`{part}` is no whole number: X[,Y[,Z]] is wanted, as in 32,8")
        })?;
        if *slot == 0 {
            return Err("a block dimension is at least 1".into());
        }
    }
    possible(block).map_err(|why| why.to_string())?;
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn seconds() {
        assert_eq!(parse_seconds("0.5"), Ok(0.5));
        assert_eq!(parse_seconds("1e99"), Ok(LONGEST_BUDGET));
        for none in ["0", "-1", "nan", "inf", ""] {
            assert!(parse_seconds(none).is_err(), "{none}");
        }
    }

    #[test]
    fn blocks() {
        assert_eq!(parse_block("256"), Ok([256, 1, 1]));
        assert_eq!(parse_block("16,8"), Ok([16, 8, 1]));
        assert!(parse_block("0").is_err() && parse_block("2048").is_err());
        assert!(parse_block("1,1,128").is_err() && parse_block("32,32,2").is_err());
        assert!(parse_block("1,2,3,4").is_err());
        assert!(parse_block("x").is_err());
        assert_eq!(parse_block("16x8"), Ok([16, 8, 1]));
        assert_eq!(parse_block("0x100"), Ok([256, 1, 1]));
        assert_eq!(parse_block("0x20,4"), Ok([32, 4, 1]));
        assert!(parse_block("0xg").is_err() && parse_block("0x10x4").is_err());
        let stated = parse_stated_block("k<int, 2>=16,8").unwrap();
        assert_eq!(stated.kernel.as_deref(), Some("k<int, 2>"));
        assert_eq!(stated.dims, [16, 8, 1]);
        assert_eq!(parse_stated_block("64").unwrap().kernel, None);
        assert!(parse_stated_block("k=").is_err());
    }

    #[test]
    fn bytes() {
        assert_eq!(parse_bytes("32768"), Ok(32_768));
        for text in ["32K", "32k", "32KB", "32KiB", "0x8000"] {
            assert_eq!(parse_bytes(text), Ok(32_768), "{text}");
        }
        assert_eq!(parse_bytes("1M"), Ok(1 << 20));
        for wrong in ["", "K", "-1", "32G", "5000M", "1.5K", "0xK"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_of_a_command_go_behind_it() {
        let said = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let all = std::iter::once("warpwright".to_owned()).chain(words.iter().cloned());
            with_option(Cli::try_parse_from(all).unwrap_err(), &words).to_string()
        };
        for (line, option, command) in [
            ("--json trace -- X", "--json", "warpwright trace"),
            ("--gpu=h200 explain k.cu", "--gpu", "warpwright explain"),
            ("db --json list", "--json", "warpwright db list"),
            ("-o k.cubin opt k.cu", "-o", "warpwright opt"),
        ] {
            let said = said(line);
            let tip = format!("`{option}` is an option of `{command}` and goes behind it");
            assert!(said.contains(&tip), "{line}: {said}");
            assert!(!said.contains("similar argument"), "{line}: {said}");
        }
        assert!(said("trace --jsom -- X").contains("'--json'"));
    }

    #[test]
    fn options_of_nvcc_go_behind_two_dashes() {
        let said = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let all = std::iter::once("warpwright".to_owned()).chain(words.iter().cloned());
            option_of_nvcc(&Cli::try_parse_from(all).unwrap_err(), &words)
        };
        for (line, word) in [
            ("explain k.cu --gpu h200 -arch=sm_80", "-arch=sm_80"),
            ("opt k.cu -O3", "-O3"),
            ("opt k.cu -Iinclude -o k.cubin", "-Iinclude"),
            ("explain k.cu --use_fast_math", "--use_fast_math"),
            ("nvcc -arch=sm_90 k.cu", "-arch=sm_90"),
        ] {
            let said = said(line).unwrap();
            assert!(said.contains(&format!("-- {word}")), "{line}: {said}");
        }
        for line in [
            "opt k.cu --glock 4",
            "occupancy -arch=sm_80",
            "opt k.cu --x -- -O3",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    #[test]
    fn a_command_of_another_tool_names_ours() {
        let said = |word: &str| {
            let error = Cli::try_parse_from(["warpwright", word, "k.cu"]).unwrap_err();
            with_suggestion(error).to_string()
        };
        for (word, ours) in [
            ("profile", "'trace'"),
            ("Verify", "'check'"),
            ("disasm", "'sass'"),
            ("optimize", "'opt'"),
            ("topts", "'opt'"),
        ] {
            assert!(said(word).contains(ours), "{word}: {}", said(word));
        }
        assert!(!said("xyzzy").contains("tip"));
        let commands = <Cli as clap::CommandFactory>::command();
        for (command, _) in OTHER_WORDS {
            assert!(commands.find_subcommand(command).is_some(), "{command}");
        }
    }

    /// Command lines in the code blocks of a page; those with brackets or dots are forms and no commands.
    fn commands(page: &str) -> Vec<String> {
        let blocks = page.split("```").skip(1).step_by(2);
        let lines = blocks.flat_map(str::lines).filter_map(|line| {
            let cargo = line.strip_prefix("cargo run --release -p warpwright -- ");
            let own = line.strip_prefix("warpwright ").or(cargo)?;
            // Two blanks: a row of a table.
            let is_form = own.contains(['[', '…', '|', '"']) || own.starts_with(' ');
            let own = own.split("    ").next()?.split(" #").next()?;
            (!is_form).then(|| own.trim().to_owned())
        });
        lines.collect()
    }

    #[test]
    fn the_command_lines_of_the_documentation_are_understood() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut pages = vec![root.join("README.md")];
        let docs = std::fs::read_dir(root.join("docs")).unwrap();
        pages.extend(docs.map(|entry| entry.unwrap().path()));
        let mut all = 0;
        for page in pages
            .iter()
            .filter(|page| page.extension().is_some_and(|e| e == "md"))
        {
            let text = std::fs::read_to_string(page).unwrap();
            for command in commands(&text) {
                let words = ["warpwright"].into_iter().chain(command.split_whitespace());
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{}: warpwright {command}: {error}", page.display());
                }
                all += 1;
            }
        }
        assert!(all > 8, "{all} command lines were found");
    }
}
