//! The notes that the library writes for the command line: lines of words, the last of which may hold spaces.
//!
//! A process may die at any time, so a line counts only with its line end, and what cannot be read is passed
//! over. Both sides are of one version: they are built together, and the first line says so.

use crate::class::{LaunchClass, triple};

/// The first line of a file of notes.
pub const HEAD: &str = concat!("warpwright-notes ", env!("CARGO_PKG_VERSION"));

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
    /// What the first launch of a class was given (without a GPU).
    Arguments(Arguments),
    /// A kernel did not run: number of the launch, why, symbol (without a GPU).
    Uncomputed(u64, String, String),
    /// Up to this launch, counted from 1, nothing rests on what was not computed (without a GPU).
    Exact(u64),
    /// A kernel did something wrong: number of the launch, symbol, what (without a GPU).
    Fault(u64, String, String),
    /// A function of the runtime that is not answered (without a GPU).
    Unanswered(String),
    /// Why the program was ended (without a GPU).
    Ended(String),
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
    /// Symbol.
    pub kernel: String,
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
        let Arguments {
            number,
            module,
            class,
            kernel,
            ..
        } = self;
        // A dash first: a list may be empty, a word may not.
        format!(
            "arguments {number} {module} {class} -{bytes} -{} {kernel}",
            pointers.join(",")
        )
    }

    fn parse(words: &mut Words<'_>) -> Option<Arguments> {
        let (number, module, class) = (words.number()?, words.next()?.to_owned(), words.class()?);
        let digits = words.next()?.strip_prefix('-')?.as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let pointers = words.next()?.strip_prefix('-')?;
        let pointers = pointers.split(',').filter(|text| !text.is_empty());
        Some(Arguments {
            number,
            module,
            class,
            bytes: digits.chunks(2).map(byte).collect::<Option<_>>()?,
            pointers: pointers.map(Pointer::parse).collect::<Option<_>>()?,
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
    /// Candidate, as the plan names it; `original` for the kernel itself.
    pub candidate: String,
    /// 1 or 2.
    pub set: u32,
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
                };
                format!(
                    "trial {} {} {outcome} {} {}",
                    t.kernel, t.set, t.class, t.candidate
                )
            }
            Note::Refused(kernel, why) => format!("refused {kernel} {why}"),
            // A recipe is one word here; it reads the same without blanks.
            Note::Replaced(kernel, recipe, name) => {
                format!("replaced {kernel} {} {name}", recipe.replace(' ', ""))
            }
            Note::Arguments(arguments) => arguments.line(),
            // The symbol is one word.
            Note::Uncomputed(number, why, kernel) => format!("uncomputed {number} {kernel} {why}"),
            Note::Exact(number) => format!("exact {number}"),
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
                let (kind, value) = (words.next()?, words.next()?);
                let outcome = match kind {
                    "same" => {
                        let times = value.split(',').map(|t| t.parse().ok());
                        Outcome::Same(times.collect::<Option<_>>()?)
                    }
                    "differs" => Outcome::Differs(value.parse().ok()?),
                    "failed" => Outcome::Failed(value.parse().ok()?),
                    _ => return None,
                };
                Note::Trial(Trial {
                    kernel,
                    set,
                    outcome,
                    class: words.class()?,
                    candidate: words.rest(),
                })
            }
            "refused" => Note::Refused(words.next()?.to_owned(), words.rest()),
            "replaced" => {
                let (kernel, recipe) = (words.next()?.to_owned(), words.next()?.to_owned());
                Note::Replaced(kernel, recipe, words.rest())
            }
            "arguments" => Note::Arguments(Arguments::parse(&mut words)?),
            "uncomputed" => {
                let (number, kernel) = (words.number()?, words.next()?.to_owned());
                Note::Uncomputed(number, words.rest(), kernel)
            }
            "exact" => Note::Exact(words.number()?),
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

/// The notes of a file; `None` if it was not written by this version.
pub fn parse(text: &str) -> Option<Vec<Note>> {
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
    /// Which of the class's launches are tried, counted from 0: for the first and the second set of turns.
    pub at: [u64; 2],
    /// Name of the candidate.
    pub candidate: String,
    /// Its cubin: a file name in the plan's folder.
    pub file: String,
    /// The kernel's symbol in it.
    pub symbol: String,
    /// May results differ in their last bits? Then they are all numbers of this kind.
    pub rounds: Option<Numbers>,
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
        let [a, b] = self.at;
        let Planned {
            kernel,
            class,
            candidate,
            file,
            symbol,
            ..
        } = self;
        let how = HOW.iter().find(|(_, rounds)| *rounds == self.rounds);
        let how = how.map_or("try", |(word, _)| word);
        format!("{how} {kernel} {a} {b} {class} {file} {candidate} {symbol}\n")
    }

    fn parse(line: &str) -> Option<Planned> {
        let mut words = Words(line);
        let how = words.next()?;
        Some(Planned {
            rounds: HOW.iter().find(|(word, _)| *word == how)?.1,
            kernel: words.next()?.to_owned(),
            at: [words.number()?, words.number()?],
            class: words.class()?,
            file: words.next()?.to_owned(),
            candidate: words.next()?.to_owned(),
            symbol: words.rest(),
        })
    }
}

/// How a line of a plan begins: results are compared by their bits, or as numbers.
const HOW: [(&str, Option<Numbers>); 3] = [
    ("try", None),
    ("round32", Some(Numbers::Single)),
    ("round64", Some(Numbers::Double)),
];

/// The lines of a plan.
pub fn parse_plan(text: &str) -> Vec<Planned> {
    text.lines().filter_map(Planned::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let arguments = |bytes, pointers| {
            Note::Arguments(Arguments {
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
                candidate: "maxnreg-64+smem".into(),
                set: 2,
                outcome,
            })
        };
        let notes = vec![
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
            at: [1, 5],
            candidate: "maxnreg-64".into(),
            file: "3.cubin".into(),
            symbol: "k".into(),
            rounds: None,
        };
        let loose = Planned {
            rounds: Some(Numbers::Double),
            ..planned.clone()
        };
        assert_eq!(
            parse_plan(&format!("{}try ab\n{}", planned.line(), loose.line())),
            [planned, loose]
        );
    }
}
