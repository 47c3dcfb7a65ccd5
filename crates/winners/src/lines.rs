//! The notes that the library writes for the command line: lines of words, the last of which may hold spaces.
//!
//! A process may die at any time, so a line counts only with its line end, and what cannot be read is passed
//! over. Both sides are of one version: they are built together, and the first line says so.

use std::sync::Arc;

use warpwright_launch::{Guard, Shape, Signature};

use crate::class::{LaunchClass, triple};
use crate::fit::Place;
use crate::values::{Taken, digits, from_digits};

/// The first line of a file of notes.
pub const HEAD: &str = concat!("warpwright-notes ", env!("CARGO_PKG_VERSION"));

/// An empty file beside notes of which not all could be written.
pub const CUT: &str = "cut";

/// One note.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// The process: number and command.
    Process(u32, String),
    /// The GPU: architecture (90 for sm_90), driver version, name.
    Gpu(u32, u32, String),
    /// A module was loaded: digest of its cubin, under which it is kept.
    Module(String),
    /// A module that is not kept, and why.
    Unknown(String),
    /// How often a kernel was launched in one way so far.
    Launches(Launches),
    /// A candidate was tried.
    Trial(Trial),
    /// A kernel was not tried: digest, reason.
    Refused(String, String),
    /// A kernel is being replaced: digest, recipe, name.
    Replaced(String, String, String),
    /// What stayed the same over all launches of a class.
    Steady(Steady),
    /// The few kinds of launches of a class.
    Values(ValuesOf),
    /// How long launches took in turns with those of the winner.
    Beside(Beside),
    /// What the first launch of a class was given (without a GPU).
    Arguments(Arguments),
    /// A kernel did not run: number of the launch, why, symbol (without a GPU).
    Uncomputed(u64, String, String),
    /// Up to this launch, counted from 1, nothing rests on what was not computed (without a GPU).
    Exact(u64),
    /// Up to this launch, counted from 1, nothing rests on what GPUs round otherwise; the symbol of the first kernel
    /// with such results (without a GPU).
    Rounded(u64, String),
    /// A kernel did something wrong: number of the launch, symbol, what (without a GPU).
    Fault(u64, String, String),
    /// A function of the runtime that is not answered (without a GPU).
    Unanswered(String),
    /// Why the program was ended (without a GPU).
    Ended(String),
}

/// What stayed the same over all launches of a kernel in one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steady {
    /// Digest of the kernel's module; `-` if it is not known.
    pub module: String,
    /// The class.
    pub class: LaunchClass,
    /// The grid, if it did.
    pub grid: Option<[u32; 3]>,
    /// The bytes of its parameters, in the buffer that the driver makes of them: none for those that changed, and for
    /// those of pointers.
    pub bytes: Vec<Option<u8>>,
    /// Of each parameter its first byte there, and its size.
    pub places: Arc<[Place]>,
    /// Symbol.
    pub kernel: String,
}

impl Steady {
    /// After the first launch, with these bytes: all but pointers.
    pub fn first(
        of: &Launches,
        bytes: &[u8],
        places: Arc<[Place]>,
        is_pointer: impl Fn(u64) -> bool,
    ) -> Steady {
        let mut known: Vec<Option<u8>> = bytes.iter().copied().map(Some).collect();
        for &(at, size) in places.iter() {
            let (at, end) = (at as usize, (at + size) as usize);
            for word in (at..end).step_by(8).take_while(|word| word + 8 <= end) {
                let mut value = [0; 8];
                value.copy_from_slice(&bytes[word..word + 8]);
                if is_pointer(u64::from_le_bytes(value)) {
                    known[word..word + 8].fill(None);
                }
            }
        }
        Steady {
            module: of.module.clone(),
            class: of.class,
            grid: Some(of.grid),
            bytes: known,
            places,
            kernel: of.kernel.clone(),
        }
    }

    /// Another launch.
    pub fn meet(&mut self, grid: [u32; 3], bytes: &[u8]) {
        self.grid = self.grid.filter(|known| *known == grid);
        for (known, byte) in self.bytes.iter_mut().zip(bytes) {
            *known = known.filter(|known| known == byte);
        }
    }

    /// `DIGITS`, two for a byte, `..` for one that is not known.
    fn line(&self) -> String {
        let places = self.places.iter().map(|(at, size)| format!("{at}:{size}"));
        let grid = self.grid.map(|[x, y, z]| format!("{x},{y},{z}"));
        let Steady {
            module,
            class,
            kernel,
            ..
        } = self;
        format!(
            "steady {module} {class} {} -{} -{} {kernel}",
            grid.as_deref().unwrap_or("-"),
            digits(&self.bytes),
            places.collect::<Vec<_>>().join(",")
        )
    }

    fn parse(words: &mut Words<'_>) -> Option<Steady> {
        let (module, class) = (words.next()?.to_owned(), words.class()?);
        let grid = match words.next()? {
            "-" => None,
            grid => Some(triple(grid)?),
        };
        let bytes = from_digits(words.next()?.strip_prefix('-')?)?;
        let places = words.next()?.strip_prefix('-')?;
        let places = places.split(',').filter(|text| !text.is_empty());
        let place = |text: &str| {
            let (at, size) = text.split_once(':')?;
            Some((at.parse().ok()?, size.parse().ok()?))
        };
        Some(Steady {
            module,
            class,
            grid,
            bytes,
            places: places.map(place).collect::<Option<_>>()?,
            kernel: words.rest(),
        })
    }
}

/// What the launches of a kernel in one class were given, where that is little.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuesOf {
    /// Digest of the kernel's module; `-` if it is not known.
    pub module: String,
    /// The class.
    pub class: LaunchClass,
    /// The kinds of launches.
    pub taken: Vec<Taken>,
    /// Symbol.
    pub kernel: String,
}

impl ValuesOf {
    fn line(&self) -> String {
        let taken: Vec<String> = self.taken.iter().map(Taken::text).collect();
        let ValuesOf {
            module,
            class,
            kernel,
            ..
        } = self;
        format!("values {module} {class} -{} {kernel}", taken.join(","))
    }

    fn parse(words: &mut Words<'_>) -> Option<ValuesOf> {
        let (module, class) = (words.next()?.to_owned(), words.class()?);
        let taken = words.next()?.strip_prefix('-')?.split(',');
        let taken = taken.filter(|text| !text.is_empty()).map(Taken::parse);
        Some(ValuesOf {
            module,
            class,
            taken: taken.collect::<Option<_>>()?,
            kernel: words.rest(),
        })
    }
}

/// Launches of a kernel in turns with those of its winner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// Digest of the kernel's module; `-` if it is not known.
    pub module: String,
    /// The class.
    pub class: LaunchClass,
    /// Of the winner: a kernel may have several.
    pub guard: Guard,
    /// Are the times those of whole graphs, over the number of the kernel's nodes in them? Then they come in pairs.
    pub in_graphs: bool,
    /// Times of its own launches in nanoseconds.
    pub own: Vec<u64>,
    /// Times of the winner's.
    pub winner: Vec<u64>,
    /// Symbol.
    pub kernel: String,
}

impl Beside {
    fn line(&self) -> String {
        let list = |times: &[u64]| {
            let times: Vec<String> = times.iter().map(u64::to_string).collect();
            times.join(",")
        };
        let Beside {
            module,
            class,
            guard,
            in_graphs,
            own,
            winner,
            kernel,
        } = self;
        format!(
            "beside {module} {class} {} {} -{} -{} {kernel}",
            one_word(guard),
            how(*in_graphs),
            list(own),
            list(winner)
        )
    }

    fn parse(words: &mut Words<'_>) -> Option<Beside> {
        let list = |text: &str| {
            let times = text.strip_prefix('-')?.split(',').filter(|t| !t.is_empty());
            times.map(|time| time.parse().ok()).collect::<Option<_>>()
        };
        Some(Beside {
            module: words.next()?.to_owned(),
            class: words.class()?,
            guard: words.guard()?,
            in_graphs: words.in_graphs()?,
            own: list(words.next()?)?,
            winner: list(words.next()?)?,
            kernel: words.rest(),
        })
    }
}

/// What a launch was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// Number of the launch, counted from 1.
    pub number: u64,
    /// Digest of the kernel's module; `-` if it is not known.
    pub module: String,
    /// The class.
    pub class: LaunchClass,
    /// The bytes of its parameters; none if their sizes are not known.
    pub bytes: Vec<u8>,
    /// What of them points into allocations.
    pub pointers: Vec<Pointer>,
    /// What the variables of its module held.
    pub variables: Vec<Stored>,
    /// Symbol.
    pub kernel: String,
}

/// A variable of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its size in bytes.
    pub size: u64,
    /// SHA-256 of what it held before the launch, unless it is large.
    pub digest: Option<String>,
    /// Symbol.
    pub name: String,
}

/// `16:DIGEST:NAME`
impl Stored {
    fn text(&self) -> String {
        let digest = self.digest.as_deref().unwrap_or_default();
        format!("{}:{digest}:{}", self.size, self.name)
    }

    fn parse(text: &str) -> Option<Stored> {
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next();
        Some(Stored {
            size: next()?.parse().ok()?,
            digest: next().filter(|d| !d.is_empty()).map(str::to_owned),
            name: next()?.to_owned(),
        })
    }
}

/// A pointer among a kernel's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// Where it stands among the parameters, in bytes.
    pub at: u32,
    /// Number of the allocation, counted from 1.
    pub allocation: u64,
    /// The allocation's size in bytes.
    pub size: u64,
    /// Where it points, in bytes from the allocation's begin.
    pub offset: u64,
    /// SHA-256 of what the allocation held before the launch, unless it is large.
    pub digest: Option<String>,
}

/// `8:1:4096:0:DIGEST`
impl Pointer {
    fn text(&self) -> String {
        let digest = self.digest.as_deref().unwrap_or_default();
        let Pointer {
            at,
            allocation,
            size,
            offset,
            ..
        } = self;
        format!("{at}:{allocation}:{size}:{offset}:{digest}")
    }

    fn parse(text: &str) -> Option<Pointer> {
        let mut parts = text.split(':');
        let mut next = || parts.next();
        Some(Pointer {
            at: next()?.parse().ok()?,
            allocation: next()?.parse().ok()?,
            size: next()?.parse().ok()?,
            offset: next()?.parse().ok()?,
            digest: next()
                .filter(|digest| !digest.is_empty())
                .map(str::to_owned),
        })
    }
}

impl Arguments {
    fn line(&self) -> String {
        let bytes: String = self
            .bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let pointers: Vec<String> = self.pointers.iter().map(Pointer::text).collect();
        let variables: Vec<String> = self.variables.iter().map(Stored::text).collect();
        let Arguments {
            number,
            module,
            class,
            kernel,
            ..
        } = self;
        // A dash first: a list may be empty, a word may not.
        format!(
            "arguments {number} {module} {class} -{bytes} -{} -{} {kernel}",
            pointers.join(","),
            variables.join(",")
        )
    }

    fn parse(words: &mut Words<'_>) -> Option<Arguments> {
        let (number, module, class) = (words.number()?, words.next()?.to_owned(), words.class()?);
        let digits = words.next()?.strip_prefix('-')?.as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let pointers = words.next()?.strip_prefix('-')?;
        let pointers = pointers.split(',').filter(|text| !text.is_empty());
        let variables = words.next()?.strip_prefix('-')?;
        let variables = variables.split(',').filter(|text| !text.is_empty());
        Some(Arguments {
            number,
            module,
            class,
            bytes: digits.chunks(2).map(byte).collect::<Option<_>>()?,
            pointers: pointers.map(Pointer::parse).collect::<Option<_>>()?,
            variables: variables.map(Stored::parse).collect::<Option<_>>()?,
            kernel: words.rest(),
        })
    }
}

/// Launches of one kernel in one class.
#[derive(Debug, Clone, PartialEq)]
pub struct Launches {
    /// Digest of the kernel's module; `-` if it is not known.
    pub module: String,
    /// The class.
    pub class: LaunchClass,
    /// Grid of the first launch.
    pub grid: [u32; 3],
    /// Launches on streams.
    pub count: u64,
    /// Launches within graphs.
    pub in_graphs: u64,
    /// Launches whose time is known.
    pub timed: u64,
    /// Their time.
    pub total_ns: u64,
    /// Time of graph launches, divided among their kernels.
    pub graph_ns: u64,
    /// Was it launched cooperatively?
    pub cooperative: bool,
    /// Blocks per SM as the driver's calculator has it for this launch; 0 if it is not known.
    pub resident: u32,
    /// Symbol.
    pub kernel: String,
}

/// What came of one candidate in one set of turns.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Digest of the kernel.
    pub kernel: String,
    /// The class.
    pub class: LaunchClass,
    /// Which of its launches were tried.
    pub among: Guard,
    /// Candidate, as the plan names it; `original` for the kernel itself.
    pub candidate: String,
    /// 1 or 2: at which of the two launches.
    pub set: u32,
    /// Which turns there, counted from 0: candidates of the same turns were timed beside each other.
    pub round: u32,
    /// What was found.
    pub outcome: Outcome,
}

/// What a candidate did.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The same bytes in all memory; times in nanoseconds.
    Same(Vec<u64>),
    /// Other bytes: how many.
    Differs(u64),
    /// The driver refused it, or it failed: the driver's number.
    Failed(u32),
    /// It is not for launches like this one.
    Elsewhere,
}

impl Note {
    /// The line, with its end.
    pub fn line(&self) -> String {
        let text = match self {
            Note::Process(id, command) => format!("process {id} {command}"),
            Note::Gpu(sm, driver, name) => format!("gpu {sm} {driver} {name}"),
            Note::Module(digest) => format!("module {digest}"),
            Note::Unknown(why) => format!("unknown {why}"),
            Note::Launches(l) => {
                let [x, y, z] = l.grid;
                format!(
                    "launches {} {x},{y},{z} {} {} {} {} {} {} {} {} {}",
                    l.module,
                    l.count,
                    l.in_graphs,
                    l.timed,
                    l.total_ns,
                    l.graph_ns,
                    u8::from(l.cooperative),
                    l.resident,
                    l.class,
                    l.kernel
                )
            }
            Note::Trial(t) => {
                let outcome = match &t.outcome {
                    Outcome::Same(times) => {
                        let times: Vec<String> = times.iter().map(u64::to_string).collect();
                        format!("same {}", times.join(","))
                    }
                    Outcome::Differs(bytes) => format!("differs {bytes}"),
                    Outcome::Failed(code) => format!("failed {code}"),
                    Outcome::Elsewhere => "elsewhere -".to_owned(),
                };
                format!(
                    "trial {} {} {} {outcome} {} {} {}",
                    t.kernel,
                    t.set,
                    t.round,
                    t.class,
                    one_word(&t.among),
                    t.candidate
                )
            }
            Note::Refused(kernel, why) => format!("refused {kernel} {why}"),
            // A recipe is one word here; it reads the same without blanks.
            Note::Replaced(kernel, recipe, name) => {
                format!("replaced {kernel} {} {name}", recipe.replace(' ', ""))
            }
            Note::Steady(steady) => steady.line(),
            Note::Values(values) => values.line(),
            Note::Beside(beside) => beside.line(),
            Note::Arguments(arguments) => arguments.line(),
            // The symbol is one word.
            Note::Uncomputed(number, why, kernel) => format!("uncomputed {number} {kernel} {why}"),
            Note::Exact(number) => format!("exact {number}"),
            Note::Rounded(number, kernel) => format!("rounded {number} {kernel}"),
            Note::Fault(number, kernel, what) => format!("fault {number} {kernel} {what}"),
            Note::Unanswered(name) => format!("unanswered {name}"),
            Note::Ended(why) => format!("ended {why}"),
        };
        format!("{}\n", text.replace(['\n', '\r'], " "))
    }

    fn parse(line: &str) -> Option<Note> {
        let mut words = Words(line);
        Some(match words.next()? {
            "process" => Note::Process(words.number()?, words.rest()),
            "gpu" => Note::Gpu(words.number()?, words.number()?, words.rest()),
            "module" => Note::Module(words.next()?.to_owned()),
            "unknown" => Note::Unknown(words.rest()),
            "launches" => Note::Launches(Launches {
                module: words.next()?.to_owned(),
                grid: triple(words.next()?)?,
                count: words.number()?,
                in_graphs: words.number()?,
                timed: words.number()?,
                total_ns: words.number()?,
                graph_ns: words.number()?,
                cooperative: words.number::<u8>()? == 1,
                resident: words.number()?,
                class: words.class()?,
                kernel: words.rest(),
            }),
            "trial" => {
                let (kernel, set) = (words.next()?.to_owned(), words.number()?);
                let round = words.number()?;
                let (kind, value) = (words.next()?, words.next()?);
                let outcome = match kind {
                    "same" => {
                        let times = value.split(',').map(|t| t.parse().ok());
                        Outcome::Same(times.collect::<Option<_>>()?)
                    }
                    "differs" => Outcome::Differs(value.parse().ok()?),
                    "failed" => Outcome::Failed(value.parse().ok()?),
                    "elsewhere" => Outcome::Elsewhere,
                    _ => return None,
                };
                Note::Trial(Trial {
                    kernel,
                    set,
                    round,
                    outcome,
                    class: words.class()?,
                    among: words.guard()?,
                    candidate: words.rest(),
                })
            }
            "refused" => Note::Refused(words.next()?.to_owned(), words.rest()),
            "replaced" => {
                let (kernel, recipe) = (words.next()?.to_owned(), words.next()?.to_owned());
                Note::Replaced(kernel, recipe, words.rest())
            }
            "steady" => Note::Steady(Steady::parse(&mut words)?),
            "values" => Note::Values(ValuesOf::parse(&mut words)?),
            "beside" => Note::Beside(Beside::parse(&mut words)?),
            "arguments" => Note::Arguments(Arguments::parse(&mut words)?),
            "uncomputed" => {
                let (number, kernel) = (words.number()?, words.next()?.to_owned());
                Note::Uncomputed(number, words.rest(), kernel)
            }
            "exact" => Note::Exact(words.number()?),
            "rounded" => Note::Rounded(words.number()?, words.rest()),
            "fault" => {
                let (number, kernel) = (words.number()?, words.next()?.to_owned());
                Note::Fault(number, kernel, words.rest())
            }
            "unanswered" => Note::Unanswered(words.rest()),
            "ended" => Note::Ended(words.rest()),
            _ => return None,
        })
    }
}

/// The notes of a file; `None` if it was not written by this version. A disk that is full cuts it anywhere.
pub fn parse(text: &str) -> Option<Vec<Note>> {
    if !text.contains('\n') && HEAD.starts_with(text) {
        return Some(Vec::new());
    }
    let rest = text.strip_prefix(HEAD)?.strip_prefix('\n')?;
    let whole = rest.rfind('\n').map_or("", |end| &rest[..end]);
    Some(whole.lines().filter_map(Note::parse).collect())
}

struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (word, rest) = self.0.split_once(' ').unwrap_or((self.0, ""));
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    fn number<N: std::str::FromStr>(&mut self) -> Option<N> {
        self.next()?.parse().ok()
    }

    /// A class is seven words.
    fn class(&mut self) -> Option<LaunchClass> {
        let words: Vec<&str> = (0..7).map(|_| self.next()).collect::<Option<_>>()?;
        words.join(" ").parse().ok()
    }

    /// What [`one_word`] wrote of one.
    fn guard(&mut self) -> Option<Guard> {
        let text = self.next()?.strip_prefix('-')?;
        Guard::parse(text, &Signature::default()).ok()
    }

    /// What [`how`] wrote.
    fn in_graphs(&mut self) -> Option<bool> {
        let word = self.next()?;
        [false, true].into_iter().find(|&it| how(it) == word)
    }

    fn rest(&mut self) -> String {
        std::mem::take(&mut self.0).to_owned()
    }
}

/// A candidate that the library is to try, as a line of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Digest of the kernel.
    pub kernel: String,
    /// The class.
    pub class: LaunchClass,
    /// When it is tried.
    pub when: Occasion,
    /// Name of the candidate.
    pub candidate: String,
    /// Its cubin: a file name in the plan's folder.
    pub file: String,
    /// The kernel's symbol in it.
    pub symbol: String,
    /// What its results must be.
    pub likeness: Likeness,
    /// The launches that it is right for, beside those of the class.
    pub guard: Guard,
    /// What a launch becomes for it.
    pub shape: Shape,
}

/// Stands for the candidate while the kernel itself runs.
pub const ORIGINAL: &str = "original";

/// The same while a kernel of a graph runs outside of it.
pub const IN_GRAPH: &str = "in-graph";

/// Which launches of a class are tried, and what is known of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occasion {
    /// Those of the class that count; a kernel may be tried for several.
    pub among: Guard,
    /// For the first and the second set of turns, counted from 0.
    pub at: [u64; 2],
    /// What a launch takes in the program, in nanoseconds; 0: not known.
    pub own_ns: u64,
    /// Are they nodes of graphs, and not launches of their own?
    pub in_graphs: bool,
}

/// Launches that a search has time for, where they take long.
const LONG_LAUNCHES: f64 = 12.0;
/// What a search may take of such launches, over the budget of a kernel.
const LONG_BUDGETS: f64 = 3.0;

/// Seconds that the search for a kernel may take whose launch takes `launch` seconds: the budget, and more where that is too
/// little for [`LONG_LAUNCHES`].
pub fn allowance(budget: f64, launch: f64) -> f64 {
    budget.max((launch * LONG_LAUNCHES).min(budget * LONG_BUDGETS))
}

/// Nodes of graphs, or launches of their own.
fn how(in_graphs: bool) -> &'static str {
    if in_graphs { "graphs" } else { "launches" }
}

impl Occasion {
    fn words(&self) -> String {
        let [a, b] = self.at;
        let (how, among) = (how(self.in_graphs), one_word(&self.among));
        format!("{a} {b} {} {how} {among}", self.own_ns)
    }

    fn parse(words: &mut Words<'_>) -> Option<Occasion> {
        Some(Occasion {
            at: [words.number()?, words.number()?],
            own_ns: words.number()?,
            in_graphs: words.in_graphs()?,
            among: words.guard()?,
        })
    }
}

/// What the results of a candidate must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// The original's bytes.
    Bytes,
    /// Numbers that differ from the original's in their last bits at most.
    Rounded(Numbers),
    /// Sums that threads add up in no fixed order, so that two runs of the original differ: within what its own runs span.
    /// For versions that are proved to add the same.
    Spread(Numbers),
}

/// Floating-point numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
}

impl Planned {
    /// The line, with its end.
    pub fn line(&self) -> String {
        let when = self.when.words();
        let Planned {
            kernel,
            class,
            candidate,
            file,
            symbol,
            ..
        } = self;
        let how = HOW.iter().find(|(_, likeness)| *likeness == self.likeness);
        let how = how.map_or("try", |(word, _)| word);
        let (guard, shape) = (one_word(&self.guard), one_word(&self.shape));
        format!("{how} {kernel} {when} {class} {file} {candidate} {guard} {shape} {symbol}\n")
    }

    fn parse(line: &str) -> Option<Planned> {
        let mut words = Words(line);
        let how = words.next()?;
        Some(Planned {
            likeness: HOW.iter().find(|(word, _)| *word == how)?.1,
            kernel: words.next()?.to_owned(),
            when: Occasion::parse(&mut words)?,
            class: words.class()?,
            file: words.next()?.to_owned(),
            candidate: words.next()?.to_owned(),
            guard: words.guard()?,
            shape: words.next()?.strip_prefix('-')?.parse().ok()?,
            symbol: words.rest(),
        })
    }
}

/// A kernel whose best version is searched for while the program waits at a launch, as a line of the plan. The library
/// writes it into a file [`ask_file`] when it has timed all that it was told, and reads more candidates from
/// [`answer_file`]; none end the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searched {
    /// Digest of the kernel.
    pub kernel: String,
    /// The class.
    pub class: LaunchClass,
    /// When candidates are tried: the program waits at the first.
    pub when: Occasion,
    /// The kernel's symbol.
    pub symbol: String,
}

impl Searched {
    /// The line, with its end.
    pub fn line(&self) -> String {
        let Searched {
            kernel,
            class,
            when,
            symbol,
        } = self;
        format!("search {kernel} {} {class} {symbol}\n", when.words())
    }

    fn parse(line: &str) -> Option<Searched> {
        let mut words = Words(line);
        (words.next()? == "search").then_some(())?;
        Some(Searched {
            kernel: words.next()?.to_owned(),
            when: Occasion::parse(&mut words)?,
            class: words.class()?,
            symbol: words.rest(),
        })
    }
}

/// The searches among the lines of a plan, or of a question.
pub fn parse_searches(text: &str) -> Vec<Searched> {
    text.lines().filter_map(Searched::parse).collect()
}

/// Before the number of a process and that of its question, counted from 0.
const ASK: &str = "ask-";

/// Is it the name of a file that asks for more candidates? Not while that is being written.
pub fn is_ask(name: &str) -> bool {
    let numbers = name.strip_prefix(ASK).and_then(|rest| rest.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// The file with a question.
pub fn ask_file(process: u32, number: u32) -> String {
    format!("{ASK}{process}-{number}")
}

/// The file with the answer to a question; where it ends by itself the search does.
pub fn answer_file(ask: &str) -> String {
    ask.replacen(ASK, "answer-", 1)
}

/// As one word: blanks mean nothing in it, and a dash stands first, since it may be empty.
fn one_word(of: &impl std::fmt::Display) -> String {
    format!("-{}", of.to_string().replace(' ', ""))
}

/// How a line of a plan begins: results are compared by their bits, or as numbers.
const HOW: [(&str, Likeness); 5] = [
    ("try", Likeness::Bytes),
    ("round32", Likeness::Rounded(Numbers::Single)),
    ("round64", Likeness::Rounded(Numbers::Double)),
    ("spread32", Likeness::Spread(Numbers::Single)),
    ("spread64", Likeness::Spread(Numbers::Double)),
];

/// The lines of a plan.
pub fn parse_plan(text: &str) -> Vec<Planned> {
    text.lines().filter_map(Planned::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Values;
    use warpwright_launch::Quantity;

    #[test]
    fn heads_that_are_cut_are_no_notes() {
        for end in 0..=HEAD.len() {
            assert_eq!(parse(&HEAD[..end]), Some(Vec::new()));
        }
        assert_eq!(parse("warpwright-notes another\n"), None);
        assert_eq!(parse("another"), None);
    }

    #[test]
    fn notes_come_back() {
        let class = LaunchClass::new([9, 9, 1], [32, 2, 1], 7, [2, 1, 1]).unwrap();
        let pointer = |digest| Pointer {
            at: 8,
            allocation: 2,
            size: 4096,
            offset: 16,
            digest,
        };
        let stored = Stored {
            size: 16,
            digest: Some("ab".into()),
            name: "table".into(),
        };
        let arguments = |bytes, pointers: Vec<Pointer>| {
            Note::Arguments(Arguments {
                variables: pointers.iter().map(|_| stored.clone()).collect(),
                number: 9,
                module: "cd".into(),
                class,
                bytes,
                pointers,
                kernel: "k".into(),
            })
        };
        let trial = |outcome| {
            Note::Trial(Trial {
                kernel: "ab".into(),
                class,
                among: Guard::always().equal(Quantity::DynamicShared, 7),
                candidate: "maxnreg-64+smem".into(),
                set: 2,
                round: 7,
                outcome,
            })
        };
        let steady = |grid, bytes: Vec<Option<u8>>| {
            Note::Steady(Steady {
                module: "cd".into(),
                class,
                grid,
                places: vec![(0, 8); bytes.len() / 8].into(),
                bytes,
                kernel: "k".into(),
            })
        };
        let mut values = Values::default();
        values.add([9, 9, 1], &[Some(1), None, None, None]);
        values.add([9, 8, 1], &[Some(1), None, None, None]);
        let notes = vec![
            steady(None, Vec::new()),
            steady(Some([9, 9, 1]), [[None; 8], [Some(17); 8]].concat()),
            trial(Outcome::Elsewhere),
            Note::Values(ValuesOf {
                module: "cd".into(),
                class,
                taken: values.taken().to_vec(),
                kernel: "k".into(),
            }),
            Note::Beside(Beside {
                module: "cd".into(),
                class,
                guard: class.guard(),
                in_graphs: true,
                own: vec![7, 9],
                winner: Vec::new(),
                kernel: "k".into(),
            }),
            Note::Process(7, "python train.py".into()),
            Note::Gpu(90, 13000, "NVIDIA H200".into()),
            Note::Module("cd".into()),
            Note::Unknown("it is PTX".into()),
            Note::Launches(Launches {
                module: "cd".into(),
                class,
                grid: [9, 9, 1],
                count: 4,
                in_graphs: 1,
                timed: 3,
                total_ns: 5000,
                graph_ns: 10,
                cooperative: true,
                resident: 3,
                kernel: "void f<int, 3>(int *)".into(),
            }),
            trial(Outcome::Same(vec![5, 6])),
            trial(Outcome::Differs(3)),
            trial(Outcome::Failed(700)),
            Note::Refused("ab".into(), "no memory".into()),
            Note::Replaced("ab".into(), "maxnreg(64);compact".into(), "k".into()),
            arguments(
                vec![7, 255],
                vec![pointer(None), pointer(Some("ef".into()))],
            ),
            arguments(Vec::new(), Vec::new()),
            Note::Uncomputed(3, "it has no PTX".into(), "k".into()),
            Note::Exact(4),
            Note::Rounded(3, "_Z4softPf".into()),
            Note::Fault(5, "k".into(), "8 bytes at a null pointer".into()),
            Note::Unanswered("cudaGLGetDevices".into()),
            Note::Ended("it waited".into()),
        ];
        let text: String = notes.iter().map(Note::line).collect();
        assert_eq!(parse(&format!("{HEAD}\n{text}trial ab")), Some(notes));
        assert_eq!(parse("warpwright-notes 0.0\nmodule x\n"), None);
    }

    #[test]
    fn plans_come_back() {
        let class = LaunchClass::new([9, 9, 1], [32, 2, 1], 7, [0; 3]).unwrap();
        let planned = Planned {
            kernel: "ab".into(),
            class,
            when: Occasion {
                at: [1, 5],
                own_ns: 1 << 40,
                in_graphs: true,
                among: Guard::always().equal(Quantity::DynamicShared, 7),
            },
            candidate: "maxnreg-64".into(),
            file: "3.cubin".into(),
            symbol: "k".into(),
            likeness: Likeness::Bytes,
            guard: Guard::always(),
            shape: Shape::SAME,
        };
        let loose = Planned {
            likeness: Likeness::Spread(Numbers::Double),
            guard: Guard::parse("grid=9,9,1; param2+4:4=17", &Signature::default()).unwrap(),
            shape: "block=64,1,1".parse().unwrap(),
            ..planned.clone()
        };
        let search = Searched {
            kernel: "ab".into(),
            class,
            when: Occasion::default(),
            symbol: "k".into(),
        };
        let text = format!(
            "{}try ab\n{}{}",
            planned.line(),
            search.line(),
            loose.line()
        );
        assert_eq!(parse_plan(&text), [planned, loose]);
        assert_eq!(parse_searches(&text), [search]);
    }
}
