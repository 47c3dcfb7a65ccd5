//! What a pass is: a name, what it does in a sentence, typed options, what it must be told, and one
//! function that rewrites one kernel at one level.
//!
//! A pass is one file that implements [`Pass`] and one line in the [registry](crate::passes::PASSES). The
//! [executor](crate::executor) alone applies it.

use std::any::Any;
use std::fmt;

use serde::{Deserialize, Serialize};
use warpwright_cudac::replace::Note;
use warpwright_ladder::{Rung, Tools};
use warpwright_launch::{Guard, Shape};
use warpwright_ptx::Module;

use crate::options::{ArgumentError, Arguments, Options, Parameter, Written};
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::{CubinSite, Site, SourceSite};

/// What a pass works on. A recipe goes through the levels in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// CUDA C.
    Source,
    /// PTX.
    Ptx,
    /// The step from PTX to machine code: what ptxas is told.
    Assembler,
    /// A finished cubin.
    MachineCode,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Source => "CUDA C",
            Level::Ptx => "PTX",
            Level::Assembler => "ptxas option",
            Level::MachineCode => "machine code",
        })
    }
}

/// A fact about launches that a pass cannot work without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Threads per block.
    BlockSize,
    /// Dynamic shared memory per block, where the kernel may have any.
    DynamicShared,
}

/// What a pass may change that no proof covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caution {
    /// ptxas may fuse other multiplications and additions than before: the last bits may differ.
    Fusion,
    /// Sums are in another order, as the input permits.
    Reordered,
    /// What the pass relies on has not been run on this architecture.
    Untried {
        /// The architecture's number.
        sm: u32,
    },
    /// Launches with larger blocks fail.
    BlockBound {
        /// Threads per block.
        threads: u32,
    },
    /// Launches with more dynamic shared memory would overwrite what the pass keeps behind it, and nothing
    /// notices.
    DynamicSharedBound {
        /// Bytes per block.
        bytes: u32,
    },
}

impl Caution {
    /// May such a build be chosen only once a measurement has compared its outputs?
    pub fn wants_measurement(self) -> bool {
        matches!(self, Caution::Fusion | Caution::Untried { .. })
    }
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caution::Fusion => f.write_str(
                "ptxas may fuse other multiplications and additions than before; chosen only where `tune` has \
                 compared the outputs (or compile with -fmad=false)",
            ),
            Caution::Reordered => f.write_str(
                "sums are in another order, as its pragma or its atomics permit: within 1e-5 (float) or 1e-13 (double) of the \
                 largest value",
            ),
            Caution::Untried { sm } => write!(
                f,
                "such code has not run on sm_{sm} yet: it is chosen only once measured"
            ),
            Caution::BlockBound { threads } => write!(
                f,
                "it promises blocks of at most {threads} threads; a larger launch fails"
            ),
            Caution::DynamicSharedBound { bytes } => write!(
                f,
                "it holds for launches with at most {bytes} bytes of dynamic shared memory; more would overwrite \
                 the slots, and nothing notices"
            ),
        }
    }
}

/// How many rewrites may still be made. A miscompilation is bisected with it: the rewrite that makes
/// the difference is found without knowing the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fuel {
    left: u64,
    used: u64,
}

impl Default for Fuel {
    fn default() -> Self {
        Fuel::limited(u64::MAX)
    }
}

impl Fuel {
    /// At most so many rewrites.
    pub fn limited(rewrites: u64) -> Fuel {
        Fuel {
            left: rewrites,
            used: 0,
        }
    }

    /// May one more rewrite be made? It is counted if so.
    pub fn burn(&mut self) -> bool {
        self.burn_up_to(1) == 1
    }

    /// How many of `wanted` rewrites may be made; they are counted.
    pub fn burn_up_to(&mut self, wanted: u64) -> u64 {
        let given = wanted.min(self.left);
        self.left -= given;
        self.used += given;
        given
    }

    /// Rewrites that may still be made.
    pub fn left(self) -> u64 {
        self.left
    }

    /// Rewrites so far.
    pub fn used(self) -> u64 {
        self.used
    }
}

/// What a pass made of one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewritten<T> {
    /// The new text or cubin, whole.
    pub content: T,
    /// What was done, a sentence each.
    pub notes: Vec<String>,
    /// What no proof covers.
    pub cautions: Vec<Caution>,
    /// Instructions that were added, weighted by loops, as far as the pass counts them.
    pub cost: f64,
    /// The launches that it is right for.
    pub guard: Guard,
    /// Launches that the proof looks at apart from all others.
    pub cases: Guard,
    /// What launches become for it.
    pub shape: Shape,
}

impl<T> Rewritten<T> {
    /// New content without remarks.
    pub fn new(content: T) -> Self {
        Rewritten {
            content,
            notes: Vec::new(),
            cautions: Vec::new(),
            cost: 0.0,
            guard: Guard::always(),
            cases: Guard::always(),
            shape: Shape::SAME,
        }
    }

    /// The same with other content.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Rewritten<U> {
        Rewritten {
            content: of(self.content),
            notes: self.notes,
            cautions: self.cautions,
            cost: self.cost,
            guard: self.guard,
            cases: self.cases,
            shape: self.shape,
        }
    }

    /// The same, right for the launches of a guard alone.
    #[must_use]
    pub fn under(mut self, guard: Guard) -> Self {
        self.guard = guard;
        self
    }

    /// The same, to be launched in another shape: its guard says block and grid exactly.
    #[must_use]
    pub fn shaped(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// The same, which goes another way at launches of a guard than at others: it is proved for either.
    #[must_use]
    pub fn in_cases_of(mut self, cases: Guard) -> Self {
        self.cases = cases;
        self
    }

    /// The same with a sentence about it.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The same with cautions.
    #[must_use]
    pub fn careful(mut self, cautions: impl IntoIterator<Item = Caution>) -> Self {
        self.cautions.extend(cautions);
        self
    }
}

/// What a rewriting function gives back.
pub type Outcome<T> = Result<Rewritten<T>, Refusal>;

/// What ptxas is told beside the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AssemblerOptions {
    /// `--register-usage-level`.
    pub usage_level: Option<u8>,
    /// Stands behind the names of the kernels while ptxas works.
    pub suffix: Option<&'static str>,
}

/// A rewrite of CUDA C that the executor compares with the original in the emulator before it takes its text.
pub trait Emulated {
    /// The comparison. What no launch shows is taken out of the rewrite.
    fn climb(&mut self, tools: Tools<'_>) -> Rung<Refusal>;

    /// The file with it.
    ///
    /// # Errors
    /// The kernel cannot be replaced.
    fn replaced(&self) -> Result<Replaced, Refusal>;
}

/// A file of CUDA C with a rewrite in it.
#[derive(Debug, Clone)]
pub struct Replaced {
    /// Its text.
    pub text: String,
    /// Launches that were rewritten; `None` where there was no program.
    pub launches: Option<usize>,
    /// Uses of the kernel that were left as they are.
    pub left: Vec<Note>,
    /// What host code calls in place of a launch, where launches can be rewritten.
    pub launcher: Option<String>,
}

/// A rewrite that is to be compared; none without fuel.
pub type Version = Option<Box<dyn Emulated>>;

/// The function that does the work, by level.
pub enum Work<P> {
    /// Rewrites a kernel of CUDA C.
    Source(fn(&P, &SourceSite<'_>, &mut Fuel) -> Outcome<String>),
    /// The same where no proof is possible.
    Emulated(fn(&P, &SourceSite<'_>, &mut Fuel) -> Outcome<Version>),
    /// Prints a whole PTX module anew, meaning the same.
    Module(fn(&P, &Module) -> Outcome<String>),
    /// Rewrites a kernel of a PTX module.
    Ptx(fn(&P, &Site<'_>, &mut Fuel) -> Outcome<String>),
    /// Sets an option of ptxas.
    Assembler(fn(&P, &mut AssemblerOptions)),
    /// Rewrites a kernel of a cubin.
    MachineCode(fn(&P, &CubinSite<'_>, &mut Fuel) -> Outcome<Vec<u8>>),
}

/// What a pass does to control fields of machine code. Where it makes some of its own, the results count as proved
/// only on an architecture where such code ran right: the checker's rules for them are the tables that they were made
/// from, and devices have found such code wrong (docs/scheduling.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// What ptxas wrote stays, or gets stricter.
    Kept,
    /// Its own for what it adds and renames.
    Mended,
    /// Its own for all instructions, perhaps in another order.
    Anew,
}

/// A pass with its options.
pub trait Pass: Options + fmt::Debug + Send + Sync + 'static {
    /// Its name in recipes and on the command line.
    const NAME: &'static str;
    /// A shorter name for tables and files.
    const LABEL: &'static str = Self::NAME;
    /// What it does, in a sentence.
    const ABOUT: &'static str;

    /// What it does to control fields of machine code.
    const TIMING: Timing = Timing::Kept;

    /// What it does to launches, whatever the instructions.
    const FOOTPRINT: Footprint = Footprint::Instructions;

    /// What it must be told about launches.
    fn needs(&self) -> &'static [Need] {
        &[]
    }

    /// The function that does it.
    fn work(&self) -> Work<Self>;
}

/// What a pass is applied to.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// A kernel of a source file.
    Source(&'a SourceSite<'a>),
    /// A kernel of a PTX module, or none: the module as a whole.
    Ptx(&'a Module, Option<&'a Site<'a>>),
    /// A kernel of a cubin.
    MachineCode(&'a CubinSite<'a>),
}

/// What came of it.
pub(crate) enum Product {
    Text(Rewritten<String>),
    Emulated(Rewritten<Version>),
    Cubin(Rewritten<Vec<u8>>),
}

/// A pass without its type.
pub(crate) trait Erased: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn label(&self) -> &'static str;
    fn level(&self) -> Level;
    fn is_whole_module(&self) -> bool;
    fn timing(&self) -> Timing;
    fn footprint(&self) -> Footprint;
    fn needs(&self) -> &'static [Need];
    fn written(&self) -> Written;
    fn configure(&self, options: &mut AssemblerOptions);
    fn apply(&self, subject: Subject<'_>, fuel: &mut Fuel) -> Result<Product, Refusal>;
    fn as_any(&self) -> &dyn Any;
}

impl<P: Pass> Erased for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn label(&self) -> &'static str {
        P::LABEL
    }

    fn level(&self) -> Level {
        match self.work() {
            Work::Source(_) | Work::Emulated(_) => Level::Source,
            Work::Module(_) | Work::Ptx(_) => Level::Ptx,
            Work::Assembler(_) => Level::Assembler,
            Work::MachineCode(_) => Level::MachineCode,
        }
    }

    fn is_whole_module(&self) -> bool {
        matches!(self.work(), Work::Module(_))
    }

    fn timing(&self) -> Timing {
        P::TIMING
    }

    fn footprint(&self) -> Footprint {
        P::FOOTPRINT
    }

    fn needs(&self) -> &'static [Need] {
        Pass::needs(self)
    }

    fn written(&self) -> Written {
        let mut written = Written::default();
        self.write(&mut written);
        written
    }

    fn configure(&self, options: &mut AssemblerOptions) {
        if let Work::Assembler(set) = self.work() {
            set(self, options);
        }
    }

    fn apply(&self, subject: Subject<'_>, fuel: &mut Fuel) -> Result<Product, Refusal> {
        match (self.work(), subject) {
            (Work::Source(work), Subject::Source(site)) => {
                Ok(Product::Text(work(self, site, fuel)?))
            }
            (Work::Emulated(work), Subject::Source(site)) => {
                Ok(Product::Emulated(work(self, site, fuel)?))
            }
            (Work::Module(work), Subject::Ptx(module, _)) => Ok(Product::Text(work(self, module)?)),
            (Work::Ptx(work), Subject::Ptx(_, Some(site))) => {
                Ok(Product::Text(work(self, site, fuel)?))
            }
            (Work::MachineCode(work), Subject::MachineCode(site)) => {
                Ok(Product::Cubin(work(self, site, fuel)?))
            }
            _ => Err(Refusal::WrongLevel {
                wants: Erased::level(self),
            }),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What the registry knows of a pass.
pub struct Registered {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Its options.
    pub parameters: fn() -> Vec<Parameter>,
    pub(crate) read: fn(&mut Arguments) -> Result<Box<dyn Erased>, ArgumentError>,
}

impl Registered {
    /// The entry of a pass.
    pub const fn of<P: Pass>() -> Registered {
        Registered {
            name: P::NAME,
            about: P::ABOUT,
            parameters: P::parameters,
            read: |arguments| Ok(Box::new(P::read(arguments)?)),
        }
    }
}
