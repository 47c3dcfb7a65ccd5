//! What can go wrong, and whose fault it is.

use warpwright_cudac::diag::render_all;
use warpwright_diag::Problem;
use warpwright_driver::OptError;
use warpwright_driver::opt;
use warpwright_emu::{DecodeError, EmuError};
use warpwright_gpu::FaultKind;
use warpwright_launch::{GuardError, LaunchError};
use warpwright_pass::{CarryError, RecipeError, RunError, ScopeError};
use warpwright_report::ReportError;
use warpwright_rewrite::PairingError;
use warpwright_sass::ElfError;
use warpwright_sass::fatbin::FatbinError;
use warpwright_sass::text::TextError;
use warpwright_target::UnknownGpu;
use warpwright_toolkit::{NO_CACHE, NotFound, REMEDY, ToolError};
use warpwright_winners::StoreError;

use crate::RefusedPtx;
use crate::device_code::some_names;

/// Whose fault an [`Error`] is; the command line makes its exit codes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The input is wrong.
    Input,
    /// What was asked for contradicts itself or the kind of the input.
    Usage,
    /// A tool is missing.
    Missing,
    /// A mistake of ours.
    Internal,
    /// Nothing is proved, so nothing is given out.
    Undecided,
}

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No bytes.
    #[error("`{0}` is empty")]
    Empty(String),
    /// An archive (`.a`).
    #[error("`{0}` is an archive: extract its objects with `ar x` and name one of them")]
    Archive(String),
    /// Of no kind that is known.
    #[error(
        "`{0}` is neither CUDA C (.cu, or __global__ in C++ or in a file without an ending), nor PTX (no `.version` directive), nor a cubin or the text of one (.sass), \
         nor a file with cubins in it"
    )]
    Unknown(String),
    /// Text is wanted, and it is none.
    #[error("`{name}` is not text: byte {at} is not UTF-8")]
    NotText {
        /// Of the input.
        name: String,
        /// The first byte that is none.
        at: usize,
        /// What stands before it, a byte for a byte; empty where its line is too long to show.
        before: String,
    },
    /// The text of a cubin that does not assemble.
    #[error("`{name}`: {error}")]
    Sass {
        /// Of the input.
        name: String,
        /// All of it.
        text: String,
        /// Where and why.
        error: Box<TextError>,
    },
    /// PTX that does not parse or verify: the diagnostics with their places, as text.
    #[error("{0}")]
    Ptx(String),
    /// CUDA C or a stencil that is not understood: the diagnostics with their places, as text.
    #[error("{0}")]
    Source(String),
    /// A rewrite from source to source that cannot be as it is asked for.
    #[error("{0}")]
    Rewrite(String),
    /// nvcc does not take it.
    #[error("error: nvcc refused `{name}`\n\n{log}")]
    Nvcc {
        /// Of the input.
        name: String,
        /// What nvcc says.
        log: String,
    },
    /// CUDA C or PTX is needed.
    #[error("`{name}` is {found}, but CUDA C or PTX is needed here{hint}")]
    NotSource {
        /// Of the input.
        name: String,
        /// `a cubin`, ….
        found: &'static str,
        /// What takes it.
        hint: String,
    },
    /// Options for nvcc beside an input that it does not compile.
    #[error("arguments after `--` go to nvcc, but FILE is PTX")]
    NvccOfPtx,
    /// An option of nvcc that is meant for ptxas.
    #[error(
        "`{0}` after `--` is for ptxas, but nvcc only makes PTX here: it would have no effect (state register limits \
         in the source with __maxnreg__ or __launch_bounds__, or give a cubin built with it)"
    )]
    ForPtxas(String),
    /// An option of nvcc about what it writes.
    #[error(
        "`{0}` after `--` says what nvcc writes, but nvcc only makes PTX here: it would have no effect (what is \
         written here says -o in front of `--`)"
    )]
    ForOutput(String),
    /// An architecture that this nvcc does not know.
    #[error(
        "`{0}` is not supported: the nvcc that is used builds no code for it (`warpwright toolkit` says which)"
    )]
    NotBuilt(String),
    /// An option of nvcc about the architecture that names none.
    #[error("`{0}` names no architecture (say --gpu GPU)")]
    NoArchitecture(String),
    /// Options of nvcc for several architectures.
    #[error(
        "the arguments of nvcc are for {0}; a candidate is built for one of them (leave them out and say --gpu GPU)"
    )]
    Architectures(String),
    /// Options of nvcc for another architecture than the GPU's.
    #[error("the arguments of nvcc are for {stated}, but --gpu is {gpu}")]
    OtherArchitecture {
        /// What they say.
        stated: String,
        /// What was named.
        gpu: String,
    },
    /// Another ptxas, or other options.
    #[error(
        "kernel `{0}` becomes other code here than was given with it: ptxas or its options differ"
    )]
    OtherCode(String),
    /// PTX or options for nvcc, of machine code.
    #[error("FILE is machine code: there is no PTX to write and nothing for nvcc to do")]
    MachineCode,
    /// A GPU that is not known.
    #[error(transparent)]
    Gpu(#[from] UnknownGpu),
    /// PTX without an architecture.
    #[error("`{0}` names no sm_NN in .target")]
    NoTarget(String),
    /// PTX for an architecture that is not known.
    #[error("`{name}`: {error}; name a GPU with --gpu")]
    UnknownTarget {
        /// Of the input.
        name: String,
        /// The nearest ones.
        error: UnknownGpu,
    },
    /// PTX that does not run there.
    #[error("`{name}` is PTX for {stated}, which does not run on {gpu}")]
    DoesNotRun {
        /// Of the input.
        name: String,
        /// Its `.target`.
        stated: String,
        /// What was named.
        gpu: String,
    },
    /// A cubin that does not run there.
    #[error("a cubin for {own} does not run on {gpu}")]
    CubinDoesNotRun {
        /// What it is for.
        own: String,
        /// What was named.
        gpu: String,
    },
    /// A cubin that cannot be taken apart.
    #[error("`{name}`: {error}")]
    Cubin {
        /// Of the input.
        name: String,
        /// Why.
        error: ElfError,
    },
    /// A fat binary or host file that cannot be taken apart or put together.
    #[error("`{name}`: {error}")]
    Fatbin {
        /// Of the input.
        name: String,
        /// Why.
        error: FatbinError,
    },
    /// The cubins in a file do not grow where they stand.
    #[error("`{name}`: {error}; nothing is written")]
    NotReplaced {
        /// Of the input.
        name: String,
        /// Why.
        error: FatbinError,
    },
    /// A file without cubins.
    #[error(
        "`{0}` holds no cubin, only PTX or intermediate code: build it for an architecture, as with nvcc's -arch=sm_90"
    )]
    NoCubin(String),
    /// Cubins of other architectures.
    #[error("`{name}` holds cubins for {found}, none for sm_{wanted}")]
    NoCubinFor {
        /// Of the input.
        name: String,
        /// What there is.
        found: String,
        /// What was named.
        wanted: u32,
    },
    /// Cubins of several architectures.
    #[error("`{name}` holds cubins for {found}; choose with --gpu")]
    WhichCubin {
        /// Of the input.
        name: String,
        /// What there is.
        found: String,
    },
    /// No function of that name.
    #[error("`{name}` has no function `{function}`; it has {has}")]
    NoFunction {
        /// Of the input.
        name: String,
        /// What was named.
        function: String,
        /// The first few that there are.
        has: String,
    },
    /// No kernel at all.
    #[error("`{0}` has no kernel (a template is none before the code names an instance)")]
    NoKernel(String),
    /// No kernel of that name.
    #[error("`{name}` has no kernel `{kernel}`; it has {has}")]
    NoSuchKernel {
        /// Of the input.
        name: String,
        /// What was named.
        kernel: String,
        /// The first few that there are.
        has: String,
    },
    /// A launch description of a kernel that is not the only one of its name.
    #[error("the launch description is for `{kernel}`, {which}")]
    LaunchOf {
        /// What it names.
        kernel: String,
        /// What is wrong with that.
        which: String,
    },
    /// A kernel that the emulator does not take, or a launch of it that does not fit.
    #[error("`{name}`: {what}")]
    NotRun {
        /// Of the input.
        name: String,
        /// Why.
        what: String,
    },
    /// Two sides whose buffers have no partners.
    #[error(transparent)]
    Pairing(#[from] PairingError),
    /// A description that has no launch at the size, or whose contents cannot be had.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A precondition that is none.
    #[error("`{0}` is no condition on sizes: say `n % 4 == 0`, `n >= 32`")]
    Condition(String),
    /// An option about a size that no description has.
    #[error("{option}: no description has a size `{name}` (they have {})", .known.join(", "))]
    NoSize {
        /// As it was stated.
        option: String,
        /// The name.
        name: String,
        /// What the sizes are called.
        known: Vec<String>,
    },
    /// `--fixed` of what no launch has.
    #[error("--fixed {name}: no launch has such a buffer or number (they have {})", .known.join(", "))]
    NotFixed {
        /// The name.
        name: String,
        /// What may be fixed.
        known: Vec<String>,
    },
    /// No size at which both are launched.
    #[error("the two descriptions have no size in common at which {0}")]
    NoCommonSize(String),
    /// Two inputs of different kinds.
    #[error(
        "`{a}` and `{b}` are of different kinds: two cubins are compared, or two of CUDA C and PTX (a cubin with its source: \
         build the source without Warpwright, and compare the two cubins; `opt` proves its own steps before it writes)"
    )]
    Kinds {
        /// The first.
        a: String,
        /// The second.
        b: String,
    },
    /// Two programs, objects or fat binaries that are no versions of each other.
    #[error("`{a}` and `{b}` do not hold code for the same GPUs in the same order: {found}")]
    OtherEntries {
        /// The first.
        a: String,
        /// The second.
        b: String,
        /// What they hold.
        found: String,
    },
    /// Two cubins, one of which cannot be read.
    #[error("`{a}` or `{b}`: {error}")]
    Unreadable {
        /// The first.
        a: String,
        /// The second.
        b: String,
        /// Why.
        error: ElfError,
    },
    /// Nothing to check.
    #[error("`{name}` has no {what} that could be checked")]
    NothingToCheck {
        /// Of the input.
        name: String,
        /// `function` or `kernel`.
        what: &'static str,
    },
    /// What is to be assumed of launches cannot be read.
    #[error("`{text}`: {error} (at `{}`)", .text.get(.error.span.clone()).unwrap_or_default())]
    Assume {
        /// What was written.
        text: String,
        /// What is wrong.
        error: GuardError,
    },
    /// Something that is assumed is not understood of machine code.
    #[error(
        "of machine code only an exact block and dynamic shared memory can be assumed, not `{0}`"
    )]
    AssumeOfMachineCode(String),
    /// Two files without a kernel of the same name.
    #[error(
        "`{a}` and `{b}` have no kernel in common: the first has {of_a}, the second {of_b}; with --launch-a and --launch-b names may differ"
    )]
    NothingInCommon {
        /// The first.
        a: String,
        /// The second.
        b: String,
        /// Kernels of the first.
        of_a: String,
        /// Kernels of the second.
        of_b: String,
    },
    /// What was stated contradicts the input.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// No toolkit.
    #[error(transparent)]
    Toolkit(#[from] NotFound),
    /// A toolkit without ptxas, or none.
    #[error("there is no ptxas to build a cubin with (`--emit ptx` works without)")]
    NoPtxas,
    /// A recipe without ptxas.
    #[error(
        "`{0}` is carried out with ptxas, and there is none (`warpwright pass` does the passes over PTX without)"
    )]
    RecipeWithoutPtxas(String),
    /// ptxas refuses PTX.
    #[error("{0}")]
    Ptxas(Box<RefusedPtx>),
    /// A tool failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The optimiser stopped.
    #[error("{}", said(.0))]
    Opt(#[from] OptError),
    /// No trace.
    #[error("`{name}` is no trace: {error}")]
    NoTrace {
        /// Of the file.
        name: String,
        /// Why.
        error: serde_json::Error,
    },
    /// A trace of another version.
    #[error(
        "`{name}` has the schema {schema}, this version reads {}",
        crate::trace::SCHEMA
    )]
    TraceSchema {
        /// Of the file.
        name: String,
        /// Its schema.
        schema: String,
    },
    /// A folder or file of notes that cannot be read.
    #[error("`{name}`: {error}")]
    Unread {
        /// The folder.
        name: String,
        /// Why.
        error: std::io::Error,
    },
    /// Notes of another version.
    #[error("the library is not of this version of Warpwright ({0} notes in another way)")]
    Notes(String),
    /// The store of winners.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A page could not be made.
    #[error(transparent)]
    Page(#[from] ReportError),
    /// A document that is none.
    #[error("a report that is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A mistake of ours.
    #[error("{0}")]
    Internal(&'static str),
    /// A recipe that is none.
    #[error("{}", of_recipe(.0))]
    Recipe(#[from] RecipeError),
    /// The emulator does not take a kernel.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The emulator does not take a launch, or is wrong itself.
    #[error(transparent)]
    Emulator(#[from] EmuError),
    /// A program that faults when it is run: what it did, as text.
    #[error("{0}")]
    Faulted(String),
    /// A GPU, or what ran there.
    #[error("{}", on_device(.0))]
    Device(#[from] warpwright_gpu::Fault),
    /// What is said in words already.
    #[error(transparent)]
    Said(#[from] Problem),
}

/// Did the code as it is fault, at the launch that was stated?
fn is_of_launch(fault: &warpwright_gpu::Fault) -> bool {
    let is_address = matches!(
        fault.kind,
        FaultKind::IllegalAddress | FaultKind::MisalignedAddress
    );
    is_address && fault.variant.as_deref() == Some("default")
}

fn on_device(fault: &warpwright_gpu::Fault) -> String {
    match is_of_launch(fault) {
        true => format!(
            "{fault}\nthe code as it is faults at this launch: are the sizes of the launch description right? \
             `warpwright run` says where, in the emulator"
        ),
        false => fault.to_string(),
    }
}

fn of_recipe(error: &RecipeError) -> String {
    match error {
        RecipeError::NoPass(_) => format!("{error}; `pass --list` names them"),
        _ => error.to_string(),
    }
}

fn said(error: &OptError) -> String {
    match error {
        OptError::NotProved { .. } => format!("{error}\nnothing is written"),
        _ => error.to_string(),
    }
}

impl Error {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Error::NvccOfPtx
            | Error::ForPtxas(_)
            | Error::ForOutput(_)
            | Error::NoArchitecture(_)
            | Error::Architectures(_)
            | Error::OtherArchitecture { .. }
            | Error::MachineCode
            | Error::Recipe(_) => Fault::Usage,
            Error::Toolkit(_) | Error::NoPtxas | Error::RecipeWithoutPtxas(_) => Fault::Missing,
            Error::Tool(error) => of_tool(error),
            Error::Opt(error) => of_opt(error),
            Error::Device(fault) if fault.kind == FaultKind::Input || is_of_launch(fault) => {
                Fault::Input
            }
            Error::Device(_) => Fault::Missing,
            Error::Said(problem) => match problem {
                Problem::Input(_) => Fault::Input,
                Problem::Usage(_) => Fault::Usage,
                Problem::Missing { .. } => Fault::Missing,
                Problem::Internal(_) => Fault::Internal,
                Problem::Undecided(_) => Fault::Undecided,
            },
            Error::Page(_)
            | Error::Json(_)
            | Error::Internal(_)
            | Error::Emulator(EmuError::Internal(_)) => Fault::Internal,
            _ => Fault::Input,
        }
    }

    /// The tool that failed, if one did.
    pub(crate) fn of_a_tool(&self) -> Option<&ToolError> {
        match self {
            Error::Tool(error) | Error::Opt(OptError::Tool(error)) => Some(error),
            _ => None,
        }
    }

    /// The command that mends it, if one does.
    pub fn mend(&self) -> Option<&str> {
        if let Error::Said(Problem::Missing { mend, .. }) = self {
            return mend.as_deref();
        }
        if let Error::Toolkit(NotFound::NoCache) = self {
            return Some(NO_CACHE);
        }
        let is_without = matches!(
            self,
            Error::Toolkit(_) | Error::NoPtxas | Error::RecipeWithoutPtxas(_)
        );
        is_without.then_some(REMEDY)
    }
}

/// The tool is there: it refuses this input, or crashes on it.
fn of_tool(error: &ToolError) -> Fault {
    match error.is_tool_missing() {
        true => Fault::Missing,
        false => Fault::Input,
    }
}

fn of_opt(error: &OptError) -> Fault {
    match error {
        OptError::Tool(error) => of_tool(error),
        OptError::NotProved { .. } | OptError::Run(RunError::Hazard { .. }) => Fault::Undecided,
        OptError::Run(RunError::Level { .. } | RunError::NoBuilder(_) | RunError::Build(_)) => {
            Fault::Input
        }
        OptError::Run(_) | OptError::Registers { .. } => Fault::Internal,
        _ => Fault::Input,
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Build(failure) => match failure.downcast::<NotFound>() {
                Ok(missing) => Error::Toolkit(*missing),
                Err(failure) => opt::failure(RunError::Build(failure)).into(),
            },
            error => opt::failure(error).into(),
        }
    }
}

impl From<CarryError> for Error {
    fn from(error: CarryError) -> Self {
        match error {
            CarryError::Scope(error) => error.into(),
            CarryError::NotProved { .. } => Problem::Undecided(format!(
                "{error}\nnothing is written (--unproved writes it all the same)"
            ))
            .into(),
            CarryError::Run { error, .. } => match *error {
                RunError::Refused { pass, refusal } => {
                    Problem::Input(format!("{pass}: {refusal}")).into()
                }
                error @ (RunError::Level { .. } | RunError::NoBuilder(_)) => {
                    Problem::Input(error.to_string()).into()
                }
                error @ RunError::Build(_) => error.into(),
                error @ RunError::Hazard { .. } => Problem::Undecided(error.to_string()).into(),
                error @ (RunError::Invalid { .. } | RunError::Built(_)) => {
                    Problem::Internal(error.to_string()).into()
                }
            },
        }
    }
}

impl From<warpwright_host::Error> for Error {
    fn from(error: warpwright_host::Error) -> Self {
        use warpwright_host::Error as Host;
        match &error {
            Host::Syntax(problem, source) => {
                Error::Source(render_all(std::slice::from_ref(&**problem), source))
            }
            Host::NotOne { file, all, .. } if all.is_empty() => Error::NoKernel(file.clone()),
            Host::NotOne {
                file,
                wanted,
                found,
                all,
            } => Problem::Input(match (wanted, found.len()) {
                (Some(wanted), 0) => {
                    format!(
                        "`{file}` has no kernel `{wanted}`; it has {}",
                        some_names(all)
                    )
                }
                (Some(wanted), count) => {
                    format!("`{wanted}` names {count} kernels: {}", some_names(found))
                }
                (None, _) => format!(
                    "name one kernel with --kernel, or a folder for all with -o FOLDER/: {}",
                    some_names(all)
                ),
            })
            .into(),
            Host::NoDraft => Problem::Internal(error.to_string()).into(),
            _ => Problem::Input(error.to_string()).into(),
        }
    }
}
