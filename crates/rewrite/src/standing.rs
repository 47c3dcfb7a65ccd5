//! What was found of two kernels at one launch of each.

use std::fmt;

use serde::Serialize;
use warpwright_emu::Place;
use warpwright_emu::symbolic::{Clash, Fault, FaultClass, Refusal};
use warpwright_launch::ElemType;

use crate::tested::Memory;

/// How sure it is, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Equal bit for bit, for every input.
    BitForBit,
    /// The same, but for the bits of what is not a number.
    ButNans,
    /// Equal over the reals, for every input: up to rounding.
    UpToRounding,
    /// Equal on the inputs that were tried.
    Tested,
    /// Not the same.
    Refuted,
    /// The first kernel, or a description, is wrong.
    WrongInput,
}

/// What something holds before the first launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Zeros.
    Zero,
    /// What the description says.
    Described,
    /// What the declaration of a constant says that the rewritten kernel has alone.
    Loaded,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// The original.
    First,
    /// The rewritten version.
    Second,
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Which::First => "the original",
            Which::Second => "the rewritten kernel",
        })
    }
}

/// How far rounding may move an element of an output, at the worst.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bounded {
    /// The output.
    pub output: String,
    /// The element for which both bounds together are the largest.
    pub index: usize,
    /// The inputs with the numbers that they may hold.
    pub ranges: Vec<(String, f64, f64)>,
    /// The largest magnitude that it may have over the reals.
    pub magnitude: f64,
    /// Both sides.
    pub sides: [Rounded; 2],
}

/// An element as one side computes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rounded {
    /// It is no further from the value over the reals.
    pub error: f64,
    /// Summands of the longest sum in it.
    pub summands: u32,
    /// Roundings in a row.
    pub depth: u32,
    /// Roundings.
    pub roundings: usize,
}

/// Why it stands as it does.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// So many sums of products may be rounded once or twice by ptxas.
    Fusible(u64),
    /// Atomic sums of floating point have no stated order.
    AtomicSums,
    /// The order of blocks could show: both orders were compared.
    BothOrders,
    /// With the last block first terms are others, and whether as functions is not known.
    OrderOpen,
    /// The rewritten kernel does something with addresses that the original does not: a few places were tried.
    Places,
    /// An atomic operation shows which thread of a block came first, and nothing says which does.
    ThreadOrder,
    /// What a kernel prints is not compared.
    Printed(Which),
    /// A variable of the module that the next launch finds otherwise, and in which.
    State(Which, String),
    /// With what its first launch leaves in a variable of the module, the rewritten kernel does something else.
    SecondLaunch {
        /// The variable.
        variable: String,
        /// The output.
        output: String,
        /// The first element that is another one.
        index: usize,
    },
    /// So many groups of blocks, of all, were compared: the others do the same to other elements.
    Alike([usize; 2]),
    /// Lanes that work in step by `volatile` alone.
    Lockstep(Which),
    /// So many elements are equal over the reals, not bit for bit; a wrong one is taken for right with a probability
    /// of at most two to this power.
    Reals {
        /// Elements.
        elements: usize,
        /// Of all.
        of: usize,
        /// Binary logarithm.
        probability: i32,
    },
    /// An output, and its tolerance that is missed on the described inputs.
    Beyond(String, String),
    /// The same over the reals, and on the described inputs further off than rounding is; no tolerance is stated for this
    /// output.
    Far(String),
    /// What a rounded value decides is another one on the described inputs, and no tolerance is stated.
    Apart {
        /// The output.
        output: String,
        /// The element.
        index: usize,
        /// Both values.
        values: [String; 2],
    },
    /// How far both may be off, for inputs in ranges.
    Bounded(Box<Bounded>),
    /// How far both may be off is not known, and why.
    Unbounded {
        /// The output.
        output: String,
        /// The element.
        index: usize,
        /// What stands in the way.
        lack: String,
    },
    /// The described inputs were not run, and why.
    Unheld(String),
    /// The second description alone calls it an output.
    OneSided(String),
    /// All is integers, equal as polynomials; the binary logarithm of the probability that they are not.
    Integers(i32),
    /// So many elements, of all, have other bits where they are NaN.
    Nans {
        /// Elements.
        elements: usize,
        /// Of all.
        of: usize,
    },
    /// Equal over the reals, but something that differs by rounding decides: a comparison, a number cut to a whole one, its
    /// bits.
    Decided {
        /// The output.
        output: String,
        /// The first such element.
        index: usize,
        /// How many.
        elements: usize,
    },
    /// Threads of a block do not all come to one barrier.
    PassedBarrier(Which),
    /// These are read before they are written, and hold what is said of them.
    Begun(Vec<(String, Begun)>),
    /// These buffers hold what the description says: addresses or trip counts are made of them.
    Fixed(Vec<String>),
    /// These do because the user says so.
    Stated(Vec<String>),
    /// Threads of a block end ahead of a barrier at which others wait.
    Exited(Which),
    /// Not done on terms.
    Refused {
        /// By which.
        which: Which,
        /// What.
        refusal: Refusal,
        /// The instruction, with its line.
        place: String,
        /// Buffers whose elements it is about.
        of: Vec<String>,
    },
    /// A kernel does something wrong.
    Faulty {
        /// Which.
        which: Which,
        /// What.
        fault: Box<Fault>,
    },
    /// The emulator says so, on numbers.
    FaultyOnNumbers {
        /// Which.
        which: Which,
        /// In words.
        fault: String,
    },
    /// An element is another function of the inputs.
    Differs {
        /// The output.
        output: String,
        /// The element.
        index: usize,
        /// How many elements differ, as far as terms tell.
        elements: usize,
        /// Both values as terms.
        values: [String; 2],
    },
    /// On these inputs the emulator shows a difference.
    Shown {
        /// The output.
        output: String,
        /// The element.
        index: usize,
        /// How the inputs were filled.
        inputs: String,
        /// Both values.
        values: [String; 2],
        /// What the buffers of both sides hold before their first launches.
        witness: Box<[Memory; 2]>,
    },
    /// On plain inputs it is a number in the original and none in the rewritten kernel.
    Lost {
        /// The output.
        output: String,
        /// The element.
        index: usize,
        /// What the inputs are.
        inputs: String,
        /// Both values.
        values: [String; 2],
        /// What the buffers of both sides hold before their first launches.
        witness: Box<[Memory; 2]>,
    },
    /// Terms differ, and no input that was tried shows it.
    NotShown {
        /// The output.
        output: String,
        /// The element.
        index: usize,
        /// Inputs tried.
        tried: usize,
    },
    /// An output element depends on what nobody has written.
    Unset {
        /// In which.
        which: Which,
        /// The output.
        output: String,
        /// The element.
        index: usize,
        /// On what, in words.
        of: &'static str,
    },
    /// An output element stays as it was.
    Unwritten {
        /// In which.
        which: Which,
        /// The output.
        output: String,
        /// The first element.
        index: usize,
        /// How many.
        elements: usize,
        /// It is an input, and what stands there is another one than the other side leaves.
        is_input: bool,
    },
    /// The rewritten kernel writes what the original leaves as it was.
    Overwritten {
        /// The output.
        output: String,
        /// The first such element.
        index: usize,
        /// How many.
        elements: usize,
    },
    /// A buffer that is no output is written.
    InputWritten {
        /// By which.
        which: Which,
        /// Its name.
        buffer: String,
        /// The first element.
        index: usize,
    },
    /// A buffer that counts has another length on either side.
    Shape {
        /// Its names.
        names: [String; 2],
        /// Bytes.
        bytes: [usize; 2],
    },
    /// What both kernels store in an output is of another type than the description says.
    Type {
        /// The output.
        output: String,
        /// As described.
        described: ElemType,
        /// As stored.
        stored: ElemType,
    },
    /// The launch does not fit the kernel.
    Launch {
        /// Of which.
        which: Which,
        /// In words.
        text: String,
    },
    /// Outputs agree on so many fillings of the inputs.
    Agrees {
        /// Fillings.
        tried: usize,
        /// All of them bit for bit.
        exactly: bool,
    },
}

/// What was found at one launch of each.
#[derive(Clone, Debug)]
pub struct AtLaunch {
    /// How sure.
    pub standing: Standing,
    /// Why.
    pub why: Vec<Why>,
    /// Output elements compared.
    pub elements: usize,
    /// Terms made for both.
    pub terms: usize,
}

impl AtLaunch {
    /// How far rounding may move each output, where that is known.
    pub fn bounds(&self) -> impl Iterator<Item = &Bounded> {
        self.why.iter().filter_map(|why| match why {
            Why::Bounded(bounded) => Some(&**bounded),
            _ => None,
        })
    }

    /// What the buffers of both sides hold before launches that show a difference.
    pub fn witness(&self) -> Option<&[Memory; 2]> {
        self.why.iter().find_map(|why| match why {
            Why::Shown { witness, .. } | Why::Lost { witness, .. } => Some(&**witness),
            _ => None,
        })
    }
}

impl Why {
    /// Is the verdict no more than what it says with this?
    pub fn is_condition(&self) -> bool {
        matches!(self, Why::Begun(_) | Why::Lost { .. })
    }

    /// Does it take more terms or instructions than are permitted?
    pub fn is_too_large(&self) -> bool {
        let Why::Refused { refusal, .. } = self else {
            return false;
        };
        *refusal == Refusal::TooLarge
    }

    /// A word for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Why::Fusible(_) => "fusible",
            Why::AtomicSums => "atomic-sums",
            Why::BothOrders => "both-orders",
            Why::OrderOpen => "order-open",
            Why::Places => "places",
            Why::ThreadOrder => "thread-order",
            Why::Printed(_) => "printed",
            Why::State(..) => "state",
            Why::SecondLaunch { .. } => "second-launch",
            Why::Alike(_) => "alike",
            Why::Lockstep(_) => "lockstep",
            Why::Reals { .. } => "reals",
            Why::Beyond(..) => "beyond-tolerance",
            Why::Far(_) => "far",
            Why::Apart { .. } => "apart",
            Why::Bounded(_) => "bounded",
            Why::Unbounded { .. } => "unbounded",
            Why::Unheld(_) => "not-run",
            Why::OneSided(_) => "one-sided",
            Why::Integers(_) => "integers",
            Why::Begun(_) => "begun",
            Why::Nans { .. } => "nans-apart",
            Why::Decided { .. } => "rounding-decides",
            Why::PassedBarrier(_) => "passed-barrier",
            Why::Fixed(_) | Why::Stated(_) => "fixed-inputs",
            Why::Exited(_) => "exited-threads",
            Why::Refused { refusal, .. } => refusal_code(refusal),
            Why::Faulty { fault, .. } => class_code(fault.class),
            Why::FaultyOnNumbers { .. } => "fault",
            Why::Differs { .. } => "differs",
            Why::Shown { .. } => "shown",
            Why::Lost { .. } => "not-finite",
            Why::NotShown { .. } => "not-shown",
            Why::Unset { .. } => "unset",
            Why::Unwritten { .. } => "unwritten",
            Why::Overwritten { .. } => "overwritten",
            Why::InputWritten { .. } => "input-written",
            Why::Shape { .. } => "shape",
            Why::Type { .. } => "type",
            Why::Launch { .. } => "launch",
            Why::Agrees { .. } => "agrees",
        }
    }
}

fn refusal_code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Address(_) => "address-of-data",
        Refusal::Loop(_) => "loop-of-data",
        Refusal::Collective(_) => "collective-under-data",
        Refusal::ConditionalAccess => "conditional-access",
        Refusal::ConditionalRace => "conditional-race",
        Refusal::Operand(_) => "operand-of-data",
        Refusal::Atomic => "atomic-of-data",
        Refusal::Call => "call",
        Refusal::PartialBarrier => "partial-barrier",
        Refusal::Together => "lanes-together",
        Refusal::Clock => "clock",
        Refusal::Waiting => "waiting",
        Refusal::Instruction => "instruction",
        Refusal::TooLarge => "too-large",
    }
}

fn class_code(class: FaultClass) -> &'static str {
    match class {
        FaultClass::OutOfBounds => "out-of-bounds",
        FaultClass::Misaligned => "misaligned",
        FaultClass::ReadOnly => "read-only",
        FaultClass::Race(_) => "race",
        FaultClass::BarrierDivergence => "barrier-divergence",
        FaultClass::WarpDivergence => "warp-divergence",
        FaultClass::Trap => "trap",
        FaultClass::Assertion => "assertion",
    }
}

fn refusal_text(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Address(_) => "an address is made of data",
        Refusal::Loop(_) => "a loop's trip count is made of data",
        Refusal::Collective(_) => {
            "a barrier or an operation of the warp stands on one side of a branch on data"
        }
        Refusal::ConditionalAccess => "where data let it, an access leaves its allocation",
        Refusal::ConditionalRace => "where data let both, two threads meet at one place",
        Refusal::Operand(_) => "a member mask, an index or a size is made of data",
        Refusal::Atomic => "an atomic operation on data whose order would show",
        Refusal::Call => "a call of a function that is not inlined",
        Refusal::PartialBarrier => "a barrier for some of the threads",
        Refusal::Together => "which lanes of a warp run together, or are elected, is not stated",
        Refusal::Clock => "a clock or the number of an SM or of a warp is read",
        Refusal::Waiting => "a loop waits for what another block does",
        Refusal::Instruction => "an instruction that terms do not have",
        Refusal::TooLarge => "more terms or instructions than are permitted",
    }
}

fn fault_text(fault: &Fault) -> String {
    let what = match fault.class {
        FaultClass::OutOfBounds => "reads or writes outside of its memory",
        FaultClass::Misaligned => "uses a misaligned address",
        FaultClass::ReadOnly => "writes to memory that cannot be written",
        FaultClass::Race(Clash::ReadAfterWrite) => {
            "has a race: a thread reads what another one writes"
        }
        FaultClass::Race(Clash::WriteAfterRead) => {
            "has a race: a thread overwrites what another one reads"
        }
        FaultClass::Race(Clash::WriteAfterWrite) => {
            "has a race: two threads write different values"
        }
        FaultClass::Race(Clash::Constant) => {
            "writes to what it reads by `ld.global.nc`, as memory that nothing writes (`const … __restrict__`, `__ldg`)"
        }
        FaultClass::BarrierDivergence => "has threads that do not meet at a barrier",
        FaultClass::WarpDivergence => "waits for lanes that do not come",
        FaultClass::Trap => "executes `trap`",
        FaultClass::Assertion => "fails an assertion",
    };
    let named = |[x, y, z]: [u32; 3], [bx, by, bz]: [u32; 3]| {
        format!("thread ({x}, {y}, {z}) of block ({bx}, {by}, {bz})")
    };
    let mut text = format!("{what}, {}", named(fault.thread, fault.block));
    if let Some((name, at)) = &fault.memory {
        text += &format!(", byte {at} of `{}`", variable(name));
    }
    let is_constant = fault.class == FaultClass::Race(Clash::Constant);
    if let Some((block, thread)) = fault.other.filter(|_| !is_constant) {
        text += &format!(", with {}", named(thread, block));
    }
    text + &format!(", at {}", at(&fault.place))
}

/// The line of the source, or else of the PTX, and the instruction there.
pub(crate) fn at(place: &Place) -> String {
    let line = match &place.source {
        Some((file, line)) => {
            let name = file.rsplit('/').next().unwrap_or(file);
            format!("{name}:{line}")
        }
        None => format!("line {} of its PTX", place.ptx_line),
    };
    format!("{line}: {}", place.instruction.trim_end_matches(';'))
}

/// A variable of a function as the source has it: `tile` of `_ZZ4gemmPfE4tile`.
fn variable(symbol: &str) -> &str {
    let ends = symbol.rmatch_indices('E').map(|(at, _)| &symbol[at + 1..]);
    let name = |end: &'_ str| -> Option<usize> {
        let name = end.trim_start_matches(|c: char| c.is_ascii_digit());
        let length: usize = end[..end.len() - name.len()].parse().ok()?;
        (length == name.len()).then_some(length)
    };
    let mut names = ends.filter_map(name);
    match symbol.starts_with("_ZZ").then(|| names.next()).flatten() {
        Some(length) => &symbol[symbol.len() - length..],
        None => symbol,
    }
}

impl fmt::Display for Bounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.sides;
        let ranges = self.ranges.iter();
        let ranges: Vec<String> = ranges
            .map(|(name, low, high)| format!("`{name}` in [{low}, {high}]"))
            .collect();
        if !ranges.is_empty() {
            write!(f, "with {}, ", ranges.join(", "))?;
        }
        write!(
            f,
            "`{}` is at most {:.1e} off in the original ({a}), {:.1e} in the rewritten kernel ({b}), at values up to {:.2e}",
            self.output, a.error, b.error, self.magnitude
        )
    }
}

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rounded {
            summands, depth, ..
        } = self;
        match summands {
            0..=1 => write!(f, "depth {depth}"),
            _ => write!(f, "sums of {summands}, depth {depth}"),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Fusible(count) => write!(
                f,
                "the same PTX values; ptxas may round {count} sums of products once or twice in either (`--fmad=false` keeps the bits)"
            ),
            Why::AtomicSums => f.write_str("atomic sums of floating point have no stated order"),
            Why::BothOrders => f.write_str(
                "the order of blocks could show: the result is the same with the first block first and last",
            ),
            Why::OrderOpen => f.write_str(
                "with the last block first the terms are others: whether they are other functions is not known",
            ),
            Why::Places => f.write_str(
                "the two do different things with addresses: only a few places of buffers and variables were tried",
            ),
            Why::ThreadOrder => f.write_str(
                "an atomic operation shows which thread of a block came first, which nothing says",
            ),
            Why::Printed(which) => write!(f, "{which} prints, and what is printed is not compared"),
            Why::State(which, name) => write!(
                f,
                "{which} leaves {name} otherwise than it was loaded and than the other does: only the first launch was looked at"
            ),
            Why::SecondLaunch { variable, output, index } => write!(
                f,
                "launched once more, the rewritten kernel leaves something else in `{output}[{index}]`: its first launch leaves {variable} otherwise than it found it"
            ),
            Why::Alike([groups, all]) => write!(
                f,
                "{groups} of {all} groups of blocks were compared: the others do the same to other elements"
            ),
            Why::Lockstep(which) => write!(
                f,
                "{which} relies on the lanes of a warp working in step (`volatile` without `__syncwarp`)"
            ),
            Why::Reals { elements, of, probability } => write!(
                f,
                "{elements} of {of} elements are the same over the reals (sums in another order and the like), decided at random points of a prime field: wrong with a probability below 2^{probability}; NaN, infinities, overflow, underflow and the sign of zeros apart"
            ),
            Why::Beyond(output, tolerance) => write!(
                f,
                "the same over the reals; the tolerance that is described for `{output}` ({tolerance}) is missed"
            ),
            Why::Far(output) => write!(
                f,
                "the same over the reals; further off than rounding is, and no tolerance is described for `{output}`"
            ),
            Why::Apart { output, index, values: [a, b] } => write!(
                f,
                "with the inputs as described, `{output}[{index}]` is {b} in place of {a}: a rounded value decides, and no tolerance is described"
            ),
            Why::Bounded(bounded) => write!(f, "{bounded}"),
            Why::Unbounded { output, index, lack } => {
                write!(f, "no bound of the error of `{output}[{index}]`: {lack}")
            }
            Why::Unheld(why) => write!(f, "how far off results are was not seen: {why}"),
            Why::OneSided(name) => write!(
                f,
                "`{name}` is an output of the other description alone, and was compared with nothing"
            ),
            Why::Integers(probability) => write!(
                f,
                "the same integers in another order, decided at random points of a prime field: wrong with a probability below 2^{probability}"
            ),
            Why::Nans { elements, of } => write!(
                f,
                "{elements} of {of} elements have the same bits where they are numbers; where they are NaN, sign and payload may be others"
            ),
            Why::Decided { output, index, elements } => write!(
                f,
                "what a rounded value decides (a comparison, a whole number, bits) makes `{output}[{index}]` ({}): the same over the reals, and where roundings differ maybe far off",
                such(*elements)
            ),
            Why::PassedBarrier(which) => write!(
                f,
                "in {which} not all threads of a block come to one barrier, as CUDA C wants: some pass by, or wait at another one"
            ),
            Why::Begun(all) => {
                let of = |how| {
                    let all = all.iter().filter(move |(_, own)| *own == how);
                    quoted(&all.map(|(name, _)| name.clone()).collect::<Vec<String>>())
                };
                let parts = [
                    (of(Begun::Zero), "zero"),
                    (of(Begun::Described), "as described"),
                    (of(Begun::Loaded), "as loaded"),
                ];
                let parts = parts.into_iter();
                let parts = parts.filter(|(names, _)| !names.is_empty());
                let parts: Vec<String> = parts.map(|(names, how)| format!("{names} {how}")).collect();
                write!(f, "with {} at first", parts.join(" and "))
            }
            Why::Fixed(names) => write!(
                f,
                "for {} as described: addresses or trip counts are made of it",
                quoted(names)
            ),
            Why::Stated(names) => write!(f, "for {} as described (`--fixed`)", quoted(names)),
            Why::Exited(which) => write!(
                f,
                "in {which} threads of a block end ahead of a barrier at which others wait: no fault in PTX, and CUDA C wants all of them there (`__syncthreads` in a branch or behind a `return`)"
            ),
            Why::Refused { which, refusal, place, of } => {
                write!(f, "not decided for every input: in {which}, {}", refusal_text(refusal))?;
                if !of.is_empty() {
                    write!(f, " ({})", quoted(of))?;
                }
                write!(f, ", at {place}")
            }
            Why::Faulty { which, fault } => write!(f, "{which} {}", fault_text(fault)),
            Why::FaultyOnNumbers { which, fault } => write!(f, "{which} is at fault: {fault}"),
            Why::Differs { output, index, elements, values: [a, b] } => write!(
                f,
                "`{output}[{index}]` is another function of the inputs ({}): {b} in place of {a}",
                such(*elements)
            ),
            Why::Shown { output, index, inputs, values: [a, b], .. } => {
                write!(f, "with {inputs}, `{output}[{index}]` is {b} in place of {a}")
            }
            Why::Lost { output, index, inputs, values: [a, b], .. } => {
                write!(f, "but with {inputs} `{output}[{index}]` is {b} in place of {a}")
            }
            Why::NotShown { output, index, tried } => write!(
                f,
                "`{output}[{index}]` is another function as far as terms tell, but none of {tried} fillings of the inputs shows a difference beyond rounding and tolerance"
            ),
            Why::Unset { which, output, index, of } => {
                write!(f, "in {which}, `{output}[{index}]` depends on {of}")
            }
            Why::Unwritten { which, output, index, elements, is_input } => {
                let leaves = match is_input {
                    true => "leaves",
                    false => "does not write",
                };
                write!(f, "{which} {leaves} `{output}[{index}]`")?;
                if *is_input {
                    f.write_str(" as it was")?;
                }
                write!(f, " ({})", such(*elements))
            }
            Why::Overwritten { output, index, elements } => write!(
                f,
                "the rewritten kernel writes `{output}[{index}]`, which the original leaves as it was ({})",
                such(*elements)
            ),
            Why::InputWritten { which, buffer, index } => {
                write!(f, "{which} writes `{buffer}[{index}]`, which is no output")
            }
            Why::Shape { names: [x, y], bytes: [a, b] } => {
                write!(f, "the descriptions disagree: `{x}` has {a} bytes in the original's")?;
                match x == y {
                    true => write!(f, " and {b} in the other"),
                    false => write!(f, ", and `{y}`, which stands for it, {b} in the other"),
                }
            }
            Why::Type { output, described, stored } => write!(
                f,
                "the description says that `{output}` is of type {described}, and both kernels store {stored}"
            ),
            Why::Launch { which, text } => write!(f, "the launch of {which}: {text}"),
            Why::Agrees { tried, exactly } => {
                let how = if *exactly { "bit for bit" } else { "within rounding" };
                write!(f, "the outputs agree {how} on {tried} fillings of the inputs")
            }
        }
    }
}

/// `3 such elements`
fn such(elements: usize) -> String {
    let plural = if elements == 1 { "" } else { "s" };
    format!("{elements} such element{plural}")
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
