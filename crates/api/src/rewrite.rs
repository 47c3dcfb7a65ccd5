//! Does a rewritten kernel, launched in its own way, compute what the original does?

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use warpwright_emu::Emulator;
use warpwright_launch::{ContentsError, Expr, Launch, LaunchFile};
use warpwright_ptx::{Linkage, Module, Space};
use warpwright_rewrite::{
    AtLaunch, Bounded, Look, Options, Paired, PairingError, Side, Standing, Step, Which, Why,
    Witness, addresses, compare, outputs,
};

mod compared;
mod grown;
mod in_place;
mod integers;
mod limits;
mod little;
mod preconditions;
mod smallest;

pub use in_place::InPlace;
pub use limits::{Beyond, Limit};
pub use little::{shown, tells_little};
pub use preconditions::Precondition;
pub use smallest::Smallest;

use crate::optimise::launch_among;
use crate::{CheckOptions, Error, Input, Optimizer};

/// A verdict, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// For every launch.
    Proved,
    /// Bit for bit, for every input, at the launches tried.
    ProvedAtLaunches,
    /// The same, but for the bits of what is not a number.
    EqualButForNans,
    /// Over the reals, for every input, at the launches tried.
    EqualUpToRounding,
    /// On the inputs tried.
    Tested,
    /// Not the same.
    Refuted,
    /// The original, or a description, is wrong.
    WrongInput,
}

impl Word {
    /// All of them.
    pub const ALL: [Word; 7] = [
        Word::Proved,
        Word::ProvedAtLaunches,
        Word::EqualButForNans,
        Word::EqualUpToRounding,
        Word::Tested,
        Word::Refuted,
        Word::WrongInput,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Word::Proved => "proved",
            Word::ProvedAtLaunches => "proved-at-launches",
            Word::EqualButForNans => "equal-but-for-nans",
            Word::EqualUpToRounding => "equal-up-to-rounding",
            Word::Tested => "tested",
            Word::Refuted => "refuted",
            Word::WrongInput => "wrong-input",
        }
    }

    /// What it says, in words.
    pub fn meaning(self) -> &'static str {
        match self {
            Word::Proved => "the same for every launch of both, and shown",
            Word::ProvedAtLaunches => "the same bits for every input at the launches tried",
            Word::EqualButForNans => {
                "the same bits for every input at the launches tried, NaN payloads apart"
            }
            Word::EqualUpToRounding => {
                "the same for every input at the launches tried, up to rounding (NaN, infinities, overflow, underflow and the sign of zeros apart)"
            }
            Word::Tested => "the same on the inputs tried",
            Word::Refuted => "not the same",
            Word::WrongInput => "no judge: the original or a description is wrong",
        }
    }

    fn of(standing: Standing) -> Word {
        match standing {
            Standing::BitForBit => Word::ProvedAtLaunches,
            Standing::ButNans => Word::EqualButForNans,
            Standing::UpToRounding => Word::EqualUpToRounding,
            Standing::Tested => Word::Tested,
            Standing::Refuted => Word::Refuted,
            Standing::WrongInput => Word::WrongInput,
        }
    }
}

/// The bytes of a file: of which side, by which of its descriptions, by what name.
pub type Files<'f> = dyn Fn(usize, usize, &str) -> Result<Vec<u8>, ContentsError> + 'f;

/// What is compared.
pub struct RewriteOptions<'o> {
    /// The launches of the original, in order, and those of the rewritten version.
    pub launches: [Vec<LaunchFile>; 2],
    /// The bytes of a file that description `1` of side `0` names.
    pub files: &'o Files<'o>,
    /// Only this size; else those that both have and that are small enough.
    pub size: Option<String>,
    /// Sizes changed.
    pub set: Vec<(String, i64)>,
    /// Buffers that stand for each other: the original's name, the other one's.
    pub pairs: Vec<(String, String)>,
    /// What launches keep to, as `n % 4 == 0`.
    pub requires: Vec<String>,
    /// Buffers whose contents are as described.
    pub fixed: Vec<String>,
    /// Buffers with the least and the largest number that they hold, for bounds of the error.
    pub ranges: Vec<(String, f64, f64)>,
    /// Only the described sizes: none that is derived from them.
    pub only_described: bool,
    /// Options for nvcc of each.
    pub nvcc: [Vec<String>; 2],
    /// Is told what begins: how many launches have been compared, of how many, and which is next.
    pub watch: &'o (dyn Fn(usize, usize, &str) + Sync),
}

/// The document.
#[derive(Debug, Clone, Serialize)]
pub struct Rewritten {
    /// `warpwright.rewrite/1`
    pub schema: &'static str,
    /// The first input by name.
    pub original: String,
    /// The second one.
    pub rewritten: String,
    /// The worst of what was found.
    pub verdict: Word,
    /// That in words.
    pub meaning: &'static str,
    /// What the verdict leaves out, or takes as given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// Launch by launch.
    pub launches: Vec<LaunchVerdict>,
    /// Sizes that were not tried, or that do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// Up to where addresses are right.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// The smallest launch at which the rewritten kernel is at fault, on plain inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest: Option<Smallest>,
    /// What both do where an output is an input; the verdict is not about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_place: Vec<InPlace>,
    /// Where both agree although they do not at every size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds_where: Option<Precondition>,
    /// What nothing here was tried for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untried: Vec<Reason>,
}

/// What was found at one launch of each.
#[derive(Debug, Clone, Serialize)]
pub struct LaunchVerdict {
    /// The description's size.
    pub size: String,
    /// What was changed of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The verdict.
    pub verdict: Word,
    /// Output elements compared.
    pub elements: usize,
    /// Terms made for both.
    pub terms: usize,
    /// Why.
    pub why: Vec<Reason>,
    /// How far rounding may move outputs that are equal up to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bounded>,
}

/// A reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// In a word.
    pub code: &'static str,
    /// In a sentence.
    pub text: String,
}

/// A size that was not tried, or that does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// A size of the descriptions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub size: String,
    /// What was changed of it, or a parameter that was not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Why not, in a word.
    pub code: &'static str,
    /// In a sentence.
    pub why: String,
}

impl Skipped {
    fn tried(at: &Try, code: &'static str, why: String) -> Skipped {
        Skipped {
            size: at.size.clone(),
            set: at.words(),
            code,
            why,
        }
    }
}

/// A launch of each that is tried.
#[derive(Debug, Clone, PartialEq)]
struct Try {
    size: String,
    set: Vec<(String, i64)>,
    /// Numbers among the arguments that are others.
    numbers: Vec<(String, f64)>,
    /// Integers among them that no size decides.
    integers: Vec<(String, i128)>,
    derived: bool,
    /// So large that an index of 8 or 16 bits wraps.
    wide: bool,
}

impl Try {
    fn new(size: &str, set: Vec<(String, i64)>) -> Try {
        Try {
            size: size.to_owned(),
            set,
            numbers: Vec::new(),
            integers: Vec::new(),
            derived: false,
            wide: false,
        }
    }

    /// `small with n=99`
    fn name(&self) -> String {
        let words = self.words();
        match &words[..] {
            [] => self.size.clone(),
            words => format!("{} with {}", self.size, words.join(", ")),
        }
    }

    fn words(&self) -> Vec<String> {
        let set = self.set.iter();
        let set = set.map(|(name, value)| format!("{name}={value}"));
        let numbers = self.numbers.iter();
        let numbers = numbers.map(|(name, value)| format!("{name}={value}"));
        let integers = self.integers.iter();
        let integers = integers.map(|(name, value)| format!("{name}={value}"));
        set.chain(numbers).chain(integers).collect()
    }

    /// The same with another value of a parameter.
    fn derived(&self, name: &str, value: i64) -> Try {
        let mut at = self.clone();
        at.set.retain(|(other, _)| other != name);
        at.set.push((name.to_owned(), value));
        at.derived = true;
        at
    }

    /// Its numbers in the place of those that a launch has.
    fn give(&self, launch: &mut Launch) {
        for arg in &mut launch.args {
            let Some(ty) = arg.ty else { continue };
            let number = self.numbers.iter().find(|(name, _)| *name == arg.name);
            let number = number.map(|(_, value)| ty.float_bits(*value));
            let integer = self.integers.iter().find(|(name, _)| *name == arg.name);
            let integer = integer.and_then(|(_, value)| ty.int_bits(*value));
            if let Some(bits) = number.or(integer) {
                arg.bytes[..ty.size()].copy_from_slice(&bits.to_le_bytes()[..ty.size()]);
            }
        }
    }
}

/// Threads of a launch that is tried unasked, and bytes of its buffers.
const MOST_WORK: u64 = 1 << 20;
const MOST_BYTES: u64 = 1 << 24;
/// Bytes of the buffers of a launch, at any size: each takes some twenty as terms.
const MOST_ON_TERMS: u64 = 1 << 26;
/// Terms of all launches together, above which no further size is derived.
const MOST_TERMS: usize = 24_000_000;
/// Terms of a described size that is not the smallest one and that nobody asked for.
const MOST_UNASKED: usize = 8_000_000;

impl Optimizer {
    /// Compares two kernels at launches of their own, on terms: for every input.
    ///
    /// # Errors
    /// [`Error`]: one of the two cannot be read or run, or their launches have nothing to do with one another.
    pub fn check_rewrite(
        &self,
        a: &Input,
        b: &Input,
        options: &RewriteOptions<'_>,
    ) -> Result<Rewritten, Error> {
        let modules = [
            self.compared(a, &options.nvcc[0])?,
            self.compared(b, &options.nvcc[1])?,
        ];
        let inputs = [a, b];
        let (mut tries, skipped) = tries(inputs, &modules, options)?;
        let found = Rewritten {
            schema: "warpwright.rewrite/1",
            original: a.name.clone(),
            rewritten: b.name.clone(),
            verdict: Word::Proved,
            meaning: Word::Proved.meaning(),
            conditions: Vec::new(),
            launches: Vec::new(),
            skipped,
            limits: Vec::new(),
            smallest: None,
            in_place: Vec::new(),
            holds_where: None,
            untried: Vec::new(),
        };
        let mut trying = Trying {
            inputs,
            modules: &modules,
            options,
            found,
            terms: 0,
            largest: 0,
            is_same: described_alike(options),
            set: BTreeSet::new(),
            witness: None,
        };
        let mut number = 0;
        while let Some(at) = tries.get(number).cloned() {
            number += 1;
            if number > 1 && trying.found.has_failed() {
                trying.passed(&at);
                continue;
            }
            (options.watch)(number - 1, tries.len(), &at.name());
            trying.at(&at, number > 1 && !is_asked(options))?;
            if number == 1 && are_derived(options) {
                with_largest(options, &mut tries, trying.terms);
            }
        }
        let Trying {
            mut found,
            terms,
            mut largest,
            is_same,
            set,
            witness,
            ..
        } = trying;
        let unasked = Unasked {
            inputs,
            modules: &modules,
            options,
            witness,
        };
        found.holds_where = preconditions::of(&unasked, (&found, &tries));
        found.smallest = smallest::of(&unasked, (&found, &tries));
        if !found.has_failed() {
            let large = found.large(options)?;
            largest = large.into_iter().try_fold(largest, |largest, at| {
                let elements = found.looked(inputs, &modules, options, &at)?;
                Ok::<u64, Error>(largest.max(elements))
            })?;
        }
        let worst = found.launches.iter().map(|l| l.verdict).max();
        found.verdict = worst.unwrap_or(Word::Tested);
        if is_same && found.verdict <= Word::Tested && self.proves(a, b, options) {
            found.prove();
        }
        if !matches!(found.verdict, Word::Proved) && !found.has_failed() {
            found.at_most(options, &tries);
        }
        // Where contents are as described, equal outputs say as much about both as these are worth.
        let first = tries.first().filter(|at| !at.derived);
        if let (Word::Tested, Some(first)) = (found.verdict, first) {
            let little = little::of(inputs, &modules, options, first);
            found.conditions.extend(little);
        }
        found.meaning = found.verdict.meaning();
        if !matches!(found.verdict, Word::Proved) && !found.has_failed() {
            if let Some(smallest) = tries.first().filter(|_| are_derived(options)) {
                (options.watch)(tries.len(), tries.len(), "indices at large sizes");
                let sides = sides(inputs, &modules, options, smallest, Contents::None)?;
                let (limits, elements) = limits::of(inputs, &modules, options, (smallest, sides));
                largest = largest.max(elements);
                found.limit(limits);
                if terms <= MOST_TERMS {
                    found.in_place = in_place::of(inputs, &modules, options, smallest)?;
                }
            }
            found.leave_out(options, &modules, (&set, largest));
        }
        Ok(found)
    }

    /// The outputs that launches leave in the emulator, by name. Of a description with several sizes the first counts.
    ///
    /// # Errors
    /// [`Error`]: the code cannot be read or run, or it is at fault.
    pub fn run_launched(
        &self,
        input: &Input,
        launches: &[LaunchFile],
        nvcc: &[String],
        files: &dyn Fn(&str) -> Result<Vec<u8>, ContentsError>,
    ) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let module = self.compared(input, nvcc)?;
        let kernels: Vec<String> = module.kernels().map(|(_, f)| f.name.to_string()).collect();
        let steps = launches.iter().map(|file| {
            let launch = file.resolve(file.sizes().next().unwrap_or_default(), &[])?;
            let launch = launch_among(&launch, &input.name, &kernels)?;
            step(input, &module, launch, Contents::All, files)
        });
        let side = Side {
            name: input.name.clone(),
            steps: steps.collect::<Result<_, Error>>()?,
        };
        outputs(&side).map_err(|why| Error::NotRun {
            name: input.name.clone(),
            what: why.to_string(),
        })
    }

    /// The proof for every launch, where both are launched alike.
    fn proves(&self, a: &Input, b: &Input, options: &RewriteOptions<'_>) -> bool {
        let kernel = options.launches[0]
            .first()
            .map(|file| file.kernel().to_owned());
        let options = CheckOptions {
            kernel,
            nvcc: options.nvcc[0].clone(),
            ..CheckOptions::default()
        };
        self.check(a, b, &options)
            .is_ok_and(|checked| checked.is_proved())
    }
}

impl Rewritten {
    /// What to say where a launch is refuted, and none as it is described.
    pub fn made_size_note(&self, options: &RewriteOptions<'_>) -> Option<&'static str> {
        let refuted = self.launches.iter();
        let refuted = refuted.filter(|launch| launch.verdict == Word::Refuted);
        let mut refuted = refuted.peekable();
        let is_made = self.verdict == Word::Refuted
            && !options.only_described
            && options.set.is_empty()
            && refuted.peek().is_some()
            && refuted.all(|launch| !launch.set.is_empty());
        is_made.then_some(
            "note: no described launch was refuted, but one that is made of them: --only-described tries the \
             described ones alone (a tolerance may fit no others)",
        )
    }

    /// What holds for every launch holds at each that was tried, whatever was found there.
    fn prove(&mut self) {
        self.verdict = Word::Proved;
        self.conditions.clear();
        for launch in &mut self.launches {
            launch.verdict = Word::Proved;
            launch.why = vec![Reason {
                code: "checker",
                text: "proved for every launch".to_owned(),
            }];
            launch.bounds.clear();
        }
    }

    /// What the result of a launch leaves out, or takes as given.
    fn conditions(&mut self, result: &AtLaunch) {
        let conditions = result.why.iter().filter(|why| why.is_condition());
        for text in conditions.map(ToString::to_string) {
            if !self.conditions.contains(&text) {
                self.conditions.push(text);
            }
        }
    }

    /// Described sizes that are too large to be tried unasked.
    fn large(&self, options: &RewriteOptions<'_>) -> Result<Vec<Try>, Error> {
        let requires = options.requires.iter().map(|text| Condition::parse(text));
        let requires: Vec<Condition> = requires.collect::<Result<_, _>>()?;
        let large = self.skipped.iter().filter(|skipped| skipped.code == LARGE);
        let tries = large.map(|skipped| Try {
            derived: true,
            ..Try::new(&skipped.size, common(options, &skipped.size))
        });
        let holds = |at: &Try| requires.iter().all(|r| r.holds(&parameters(options, at)));
        Ok(tries.filter(holds).collect())
    }

    /// Looks at the addresses of a large size: what is wrong with them counts. Gives the elements of its largest buffer,
    /// or 0 where it was not looked at.
    fn looked(
        &mut self,
        inputs: [&Input; 2],
        modules: &[Module; 2],
        options: &RewriteOptions<'_>,
        at: &Try,
    ) -> Result<u64, Error> {
        let sides = sides(inputs, modules, options, at, Contents::None)?;
        let mut blocks = Vec::new();
        for (side, which) in sides.iter().zip([Which::First, Which::Second]) {
            match addresses(side, which, Look::THOROUGH) {
                Ok(Some(looked)) => blocks.push(looked),
                Ok(None) => return Ok(0),
                Err(why) if which == Which::First => {
                    self.say_of(at, &format!("the original does not run there: {why}"));
                    return Ok(0);
                }
                Err(why) => {
                    self.skipped
                        .retain(|s| s.size != at.size || s.code != LARGE);
                    self.launches.push(LaunchVerdict {
                        size: at.size.clone(),
                        set: at.words(),
                        verdict: Word::Refuted,
                        elements: 0,
                        terms: 0,
                        why: vec![reason(&why)],
                        bounds: Vec::new(),
                    });
                    return Ok(0);
                }
            }
        }
        if blocks.iter().any(|looked| looked.blocks == 0) {
            return Ok(0);
        }
        let of: Vec<String> = blocks
            .iter()
            .map(|looked| format!("{} of {}", looked.blocks, looked.of))
            .collect();
        let text = format!(
            "its addresses were looked at, in {} blocks, and not whether all together write every element",
            of.join(" and ")
        );
        self.say_of(at, &text);
        let steps = sides.iter().flat_map(|side| &side.steps);
        let lengths = steps.flat_map(|step| step.launch.buffers().map(|buffer| buffer.len as u64));
        Ok(lengths.max().unwrap_or(0))
    }

    /// Lowers the verdict to what was seen, and says at which numbers.
    fn at_most(&mut self, options: &RewriteOptions<'_>, tries: &[Try]) {
        let launches = &self.launches;
        let is_tried = |at: &&Try| {
            let mut all = launches.iter();
            all.any(|launch| launch.size == at.size && launch.set == at.words())
        };
        let tried: Vec<&Try> = tries.iter().filter(is_tried).collect();
        let required = options.requires.iter();
        self.conditions
            .extend(required.map(|text| format!("where {text}")));
        self.conditions.extend(integers::stated(options, &tried));
        self.untried.extend(other_sizes(options, &tried));
        let lone = grown::alone(options, (&scales(options).0, &tried));
        if let Some(lone) = lone.filter(|_| are_derived(options)) {
            self.verdict = self.verdict.max(Word::Tested);
            self.conditions.push(lone);
        }
    }

    /// Says what nothing was tried for; `largest`: elements of the largest buffer that was looked at.
    fn leave_out(
        &mut self,
        options: &RewriteOptions<'_>,
        modules: &[Module; 2],
        (set, largest): (&BTreeSet<String>, u64),
    ) {
        self.untried.extend(unchanged(options));
        self.untried.extend(constants(options));
        self.untried.extend(other_numbers(options));
        self.untried.extend(variables(modules, set));
        self.untried.extend(older_devices(modules));
        self.untried.push(Reason {
            code: "index-overflow",
            text: format!(
                "indices at larger sizes: the largest buffer of which blocks were looked at has {largest} elements"
            ),
        });
    }

    /// Where an index of the rewritten kernel alone is wrong belongs to the verdict.
    fn limit(&mut self, limits: Vec<Limit>) {
        let is_theirs = |limit: &&Limit| {
            let beyond = limit.beyond.as_ref();
            beyond.is_some_and(|beyond| beyond.which == Which::Second)
        };
        let theirs = limits.iter().filter(is_theirs);
        let wrong = theirs.filter_map(|limit| {
            let value = limit.beyond.as_ref()?.value;
            Some(format!("but an index is wrong at {} = {value}", limit.name))
        });
        self.conditions.extend(wrong);
        self.limits = limits;
    }

    fn say_of(&mut self, at: &Try, text: &str) {
        let same = self
            .skipped
            .iter_mut()
            .find(|s| s.size == at.size && s.code == LARGE);
        if let Some(skipped) = same {
            skipped.why += &format!("; {text}");
        }
    }

    /// Is anything refuted, or wrong?
    fn has_failed(&self) -> bool {
        self.launches
            .iter()
            .any(|launch| launch.verdict > Word::Tested)
    }
}

/// Sizes as they are tried, one after the other.
struct Trying<'t> {
    inputs: [&'t Input; 2],
    modules: &'t [Module; 2],
    options: &'t RewriteOptions<'t>,
    found: Rewritten,
    terms: usize,
    largest: u64,
    /// Both are launched alike at all that was tried.
    is_same: bool,
    /// Variables that descriptions set.
    set: BTreeSet<String>,
    /// What showed that the rewritten kernel is wrong.
    witness: Option<Witness>,
}

impl Trying<'_> {
    /// What is found at a size. What takes too much counts only where somebody asked for it.
    fn at(&mut self, at: &Try, is_capped: bool) -> Result<(), Error> {
        let options = self.options;
        let left = MOST_TERMS.saturating_sub(self.terms);
        if is_capped && left == 0 {
            self.skipped(at, MANY, MANY_TERMS);
            return Ok(());
        }
        let sides = match sides(self.inputs, self.modules, options, at, Contents::All) {
            Ok(sides) => sides,
            Err(error) if at.derived => {
                self.skipped(at, "description", &error.to_string());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let steps = sides.iter().flat_map(|side| &side.steps);
        let symbols = steps.clone().flat_map(|step| &step.launch.symbols);
        self.set.extend(symbols.map(|symbol| symbol.name.clone()));
        let lengths = steps.flat_map(|step| step.launch.buffers().map(|buffer| buffer.len as u64));
        let largest = lengths.fold(self.largest, u64::max);
        let paired = Paired::of(&sides[0], &sides[1], &options.pairs)?;
        are_buffers(&sides, &options.ranges)?;
        are_fixed(options, &sides)?;
        self.is_same &= launched_alike(&sides, &paired);
        let mut how = on_terms(options);
        how.is_capped = is_capped;
        how.extremes = !at.derived;
        match (is_capped, at.derived) {
            (true, true) => how.machine.terms = left,
            (true, false) => how.machine.terms = left.min(MOST_UNASKED),
            (false, _) => {}
        }
        if at.wide {
            how.is_capped = true;
            how.machine.budget = MOST_WIDE;
        }
        let result = compare(&sides[0], &sides[1], &paired, &how);
        self.terms += result.terms;
        if how.is_capped && result.why.iter().any(Why::is_too_large) {
            let why = if at.wide { WIDE } else { MANY_TERMS };
            self.skipped(at, MANY, why);
            return Ok(());
        }
        self.largest = largest;
        if at.derived && result.standing == Standing::WrongInput {
            let why = result.why.last().map(ToString::to_string);
            self.skipped(at, "original", &why.unwrap_or_default());
            return Ok(());
        }
        if self.witness.is_none() {
            self.witness = Witness::of(&result);
        }
        self.found.conditions(&result);
        self.found.launches.push(verdict(at, &result));
        Ok(())
    }

    fn skipped(&mut self, at: &Try, code: &'static str, why: &str) {
        let skipped = Skipped::tried(at, code, why.to_owned());
        self.found.skipped.push(skipped);
    }

    /// A described size is left out where a smaller one has failed.
    fn passed(&mut self, at: &Try) {
        if !at.derived {
            self.skipped(at, "failed", "what is wrong shows at a smaller size");
        }
    }
}

/// The word for sizes that take more than is left.
const MANY: &str = "many-terms";
const MANY_TERMS: &str = "so many terms were made that no further size is tried";

/// Warp instructions of a launch that is tried for its indices alone.
const MOST_WIDE: u64 = 1 << 23;
const WIDE: &str = "it takes more instructions than are tried for indices of 16 bits";

/// Was a size named?
fn is_asked(options: &RewriteOptions<'_>) -> bool {
    options.only_described || options.size.is_some()
}

/// The launches at which parameters are as large as they are described, and those at which indices of few bits wrap,
/// behind all that nobody has described.
fn with_largest(options: &RewriteOptions<'_>, tries: &mut Vec<Try>, terms: usize) {
    let Some(smallest) = tries.first().cloned() else {
        return;
    };
    let requires = options.requires.iter();
    let requires = requires.filter_map(|text| Condition::parse(text).ok());
    let requires: Vec<Condition> = requires.collect();
    let holds = |at: &Try| requires.iter().all(|r| r.holds(&parameters(options, at)));
    for name in scales(options).0 {
        let largest = grown::largest(options, &smallest, terms, name);
        let wide = grown::wide(options, &smallest, terms, name).map(|at| kept_to(at, name, &holds));
        for at in largest.into_iter().chain(wide.flatten()) {
            let is_known = tries.iter().any(|own| own.set == at.set);
            if !is_known && holds(&at) {
                let behind = tries.iter().rposition(|own| own.derived).unwrap_or(0);
                tries.insert(behind + 1, at);
            }
        }
    }
}

/// The launch with the next value of a parameter that keeps to what is required.
fn kept_to(at: Try, name: &str, holds: &dyn Fn(&Try) -> bool) -> Option<Try> {
    let value = at.set.iter().find(|(own, _)| own == name)?.1;
    let mut tries = (value..value + NEAR).map(|value| at.derived(name, value));
    tries.find(|at| holds(at))
}

/// The word for a size that is not tried unasked.
const LARGE: &str = "large";

fn reason(why: &Why) -> Reason {
    Reason {
        code: why.code(),
        text: why.to_string(),
    }
}

fn verdict(at: &Try, result: &AtLaunch) -> LaunchVerdict {
    LaunchVerdict {
        size: at.size.clone(),
        set: at.words(),
        verdict: Word::of(result.standing),
        elements: result.elements,
        terms: result.terms,
        why: result.why.iter().map(reason).collect(),
        bounds: result.bounds().cloned().collect(),
    }
}

fn one([a, b]: &[Side; 2], paired: &Paired, options: &RewriteOptions<'_>) -> AtLaunch {
    compare(a, b, paired, &on_terms(options))
}

/// How both sides are compared at a launch.
fn on_terms(options: &RewriteOptions<'_>) -> Options {
    let files = options.launches.iter().flatten();
    let numbers: Vec<&str> = files
        .flat_map(|file| [file.numbers(), file.integers()].concat())
        .collect();
    let mut fixed = options.fixed.clone();
    fixed.retain(|name| !numbers.contains(&name.as_str()));
    Options {
        fixed,
        ranges: options.ranges.clone(),
        extremes: true,
        ..Options::default()
    }
}

/// Both sides at a size, and how they stand there.
type Found = ([Side; 2], Paired, AtLaunch);

/// Sizes that nobody asked for, where something is refuted.
struct Unasked<'u> {
    inputs: [&'u Input; 2],
    modules: &'u [Module; 2],
    options: &'u RewriteOptions<'u>,
    /// The inputs that showed it.
    witness: Option<Witness>,
}

impl Unasked<'_> {
    /// What is found at a size, the inputs that refuted another one among those tried, and others within these ranges, too;
    /// `None` where it does not fit a description or what is required, or is too large.
    fn at(&self, at: &Try, ranges: &[(String, f64, f64)]) -> Option<Found> {
        let options = self.options;
        let values = parameters(options, at);
        let requires = options.requires.iter();
        let mut requires = requires.filter_map(|text| Condition::parse(text).ok());
        if !requires.all(|condition| condition.holds(&values))
            || work(&resolved(options, at).ok()?) > MOST_WORK
        {
            return None;
        }
        let sides = sides(self.inputs, self.modules, options, at, Contents::All).ok()?;
        let paired = Paired::of(&sides[0], &sides[1], &options.pairs).ok()?;
        let mut how = on_terms(options);
        how.ranges.extend_from_slice(ranges);
        let mut result = compare(&sides[0], &sides[1], &paired, &how);
        if let Some(witness) = self
            .witness
            .as_ref()
            .filter(|_| result.standing == Standing::Tested)
        {
            let [a, b] = &sides;
            witness.tried(a, b, &paired, &mut result);
        }
        Some((sides, paired, result))
    }
}

/// What has a range must be a buffer of either side.
fn are_buffers(sides: &[Side; 2], ranges: &[(String, f64, f64)]) -> Result<(), Error> {
    let steps = sides.iter().flat_map(|side| &side.steps);
    let buffers = steps.flat_map(|step| step.launch.buffers());
    let known: BTreeSet<&String> = buffers.map(|buffer| &buffer.name).collect();
    match ranges.iter().find(|(name, ..)| !known.contains(name)) {
        Some((name, ..)) => Err(PairingError::Unknown(name.clone()).into()),
        None => Ok(()),
    }
}

/// What is fixed must be a buffer or a number among the arguments of either side.
fn are_fixed(options: &RewriteOptions<'_>, sides: &[Side; 2]) -> Result<(), Error> {
    let files = options.launches.iter().flatten();
    let numbers =
        files.flat_map(|file| [file.numbers(), file.integers(), file.constants()].concat());
    let steps = sides.iter().flat_map(|side| &side.steps);
    let buffers = steps.flat_map(|step| step.launch.buffers());
    let known: BTreeSet<&str> = numbers.chain(buffers.map(|buffer| &*buffer.name)).collect();
    match options.fixed.iter().find(|name| !known.contains(&***name)) {
        Some(name) => Err(Error::NotFixed {
            name: name.clone(),
            known: known.into_iter().map(str::to_owned).collect(),
        }),
        None => Ok(()),
    }
}

/// Are the launches of both sides the same at every size, tried or not?
fn described_alike(options: &RewriteOptions<'_>) -> bool {
    match &options.launches {
        [first, second] if first.len() == 1 && second.len() == 1 => {
            first[0].launches_alike(&second[0])
        }
        _ => false,
    }
}

/// Is the launch of both sides the same here, with the same memory in the same places?
fn launched_alike([a, b]: &[Side; 2], paired: &Paired) -> bool {
    let ([x], [y]) = (&a.steps[..], &b.steps[..]) else {
        return false;
    };
    let (l, m) = (&x.launch, &y.launch);
    let shape = |l: &Launch| (l.grid, l.block, l.cluster, l.dynamic_smem, l.kernel.clone());
    let buffers = l.buffers().zip(m.buffers());
    let mut same = buffers.zip(x.contents.iter().zip(&y.contents));
    shape(l) == shape(m)
        && l.args.len() == m.args.len()
        && l.buffers().count() == m.buffers().count()
        && l.args
            .iter()
            .zip(&m.args)
            .all(|(p, q)| p.bytes == q.bytes && p.pointers == q.pointers)
        && same.all(|((p, q), held)| paired.is_same((p, held.0), (q, held.1)))
}

/// Devices on which the original runs and the rewritten kernel does not.
fn older_devices(modules: &[Module; 2]) -> Option<Reason> {
    let [first, second] = modules.each_ref().map(|module| {
        let target = module.header.targets.first()?;
        let digits = target.chars().filter(char::is_ascii_digit);
        let number: u32 = digits.collect::<String>().parse().ok()?;
        Some((number, target.to_string()))
    });
    let ((old, _), (new, target)) = (first?, second?);
    (new > old).then(|| Reason {
        code: "older-devices",
        text: format!("devices older than `{target}`, which the rewritten kernel is for"),
    })
}

/// Variables of a module that the host may set, and that no description does.
fn variables(modules: &[Module; 2], set: &BTreeSet<String>) -> Option<Reason> {
    let mut names = BTreeSet::new();
    for variable in modules.iter().flat_map(|module| module.variables.values()) {
        let is_visible = variable.linkage == Linkage::Visible;
        let is_open = match variable.space {
            Space::Const => true,
            Space::Global => is_visible,
            _ => false,
        };
        let name = &*variable.name;
        if is_open && variable.owner.is_none() && !set.contains(name) {
            names.insert(format!("`{name}`"));
        }
    }
    let names: Vec<String> = names.into_iter().collect();
    (!names.is_empty()).then(|| Reason {
        code: "variables",
        text: format!(
            "other contents of {}: a host may set such a variable, and no description does (`[[symbols]]`)",
            names.join(", ")
        ),
    })
}

/// Numbers that had few values, and where buffers lie.
fn other_numbers(options: &RewriteOptions<'_>) -> Vec<Reason> {
    let names: BTreeSet<&str> = number_names(options).into_iter().collect();
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    let values = (!names.is_empty()).then(|| Reason {
        code: "other-numbers",
        text: format!("other values of {} than those tried", names.join(", ")),
    });
    let overlap = Reason {
        code: "overlap",
        text:
            "buffers that share memory, but for an output that is an input: each was one of its own"
                .to_owned(),
    };
    let alignment = Reason {
        code: "alignment",
        text: "other alignments of buffers than the described ones (256 bytes unless `align` or `offset` says another)"
            .to_owned(),
    };
    values.into_iter().chain([alignment, overlap]).collect()
}

/// Values of sizes beside those that were tried: what code does there alone is not seen.
fn other_sizes(options: &RewriteOptions<'_>, tried: &[&Try]) -> Option<Reason> {
    let names = scales(options).0.into_iter();
    let largest = names.filter_map(|name| {
        let values = tried
            .iter()
            .map(|at| parameters(options, at).get(name).copied());
        Some(format!(
            "`{name}` (the largest tried: {})",
            values.flatten().max()?
        ))
    });
    let largest: Vec<String> = largest.collect();
    (unchanged(options).is_none() && !largest.is_empty()).then(|| Reason {
        code: "other-sizes",
        text: format!(
            "other values of {}, and what code does at them alone",
            largest.join(", ")
        ),
    })
}

/// Sizes that are not tried because one was named or set.
fn unchanged(options: &RewriteOptions<'_>) -> Option<Reason> {
    if are_derived(options) || options.only_described {
        return None;
    }
    let option = match options.set.is_empty() {
        true => "--size",
        false => "--set",
    };
    let names: Vec<String> = scales(options).0.iter().map(|n| format!("`{n}`")).collect();
    (!names.is_empty()).then(|| Reason {
        code: "other-sizes",
        text: format!(
            "other values of {}: with {option} none are made of the described ones",
            names.join(", ")
        ),
    })
}

/// Numbers of a description that stay as they are.
fn constants(options: &RewriteOptions<'_>) -> Option<Reason> {
    let files = options.launches.iter().flatten();
    let names: BTreeSet<&str> = files.flat_map(LaunchFile::constants).collect();
    let names: Vec<String> = names
        .into_iter()
        .filter(|name| !options.fixed.iter().any(|fixed| fixed == name))
        .map(|name| format!("`{name}`"))
        .collect();
    (!names.is_empty()).then(|| Reason {
        code: "other-numbers",
        text: format!(
            "other values of {} than those tried: no size decides them (a size may)",
            names.join(", ")
        ),
    })
}

/// What buffers hold counts, or only where they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    All,
    None,
}

/// Both sides at one size.
fn sides(
    inputs: [&Input; 2],
    modules: &[Module; 2],
    options: &RewriteOptions<'_>,
    at: &Try,
    wanted: Contents,
) -> Result<[Side; 2], Error> {
    let side = |which: usize| {
        let (input, module) = (inputs[which], &modules[which]);
        let kernels: Vec<String> = module.kernels().map(|(_, f)| f.name.to_string()).collect();
        let files = options.launches[which].iter().enumerate();
        let steps = files.map(|(number, file)| {
            let launch = file.resolve(&at.size, &known(file, at))?;
            let mut launch = launch_among(&launch, &input.name, &kernels)?;
            at.give(&mut launch);
            let bytes: u64 = launch.buffers().map(|buffer| buffer.size() as u64).sum();
            if wanted == Contents::All && bytes > MOST_ON_TERMS {
                return Err(Error::NotRun {
                    name: input.name.clone(),
                    what: format!(
                        "its buffers hold {} MiB at size `{}`, and terms are for {}: name a smaller size (--size, --set)",
                        bytes >> 20,
                        at.size,
                        MOST_ON_TERMS >> 20
                    ),
                });
            }
            step(input, module, launch, wanted, &|name| {
                (options.files)(which, number, name)
            })
        });
        Ok::<Side, Error>(Side {
            name: input.name.clone(),
            steps: steps.collect::<Result<_, Error>>()?,
        })
    };
    Ok([side(0)?, side(1)?])
}

/// Those of the changed sizes that a description has.
fn known(file: &LaunchFile, at: &Try) -> Vec<(String, i64)> {
    let has = |name: &str| file.parameters(&at.size).any(|(own, _)| own == name);
    at.set
        .iter()
        .filter(|(name, _)| has(name))
        .cloned()
        .collect()
}

fn step(
    input: &Input,
    module: &Module,
    launch: Launch,
    wanted: Contents,
    files: &dyn Fn(&str) -> Result<Vec<u8>, ContentsError>,
) -> Result<Step, Error> {
    let program = Emulator::new(module, &launch.kernel).map_err(|error| Error::NotRun {
        name: input.name.clone(),
        what: error.to_string(),
    })?;
    let held = launch.buffers().filter(|_| wanted == Contents::All);
    let contents = held.map(|buffer| buffer.materialize(files));
    let contents = contents.collect::<Result<_, _>>()?;
    Ok(Step {
        program,
        launch,
        contents,
    })
}

// ---- sizes

/// The launches that are tried: the described ones, then odd and tiny ones made of the smallest; and what is not.
fn tries(
    inputs: [&Input; 2],
    modules: &[Module; 2],
    options: &RewriteOptions<'_>,
) -> Result<(Vec<Try>, Vec<Skipped>), Error> {
    let requires = options.requires.iter().map(|text| Condition::parse(text));
    let requires: Vec<Condition> = requires.collect::<Result<_, _>>()?;
    are_sizes(options, &requires)?;
    let (mut described, mut skipped) = described(options)?;
    described = described
        .into_iter()
        .filter_map(|at| required(options, at, &requires))
        .collect();
    let Some(smallest) = described.first().cloned() else {
        return Err(Error::NoCommonSize("what is required holds".to_owned()));
    };
    if !are_derived(options) {
        return Ok((described, skipped));
    }
    let (scales, alone) = scales(options);
    for (name, whose) in alone {
        skipped.push(Skipped {
            size: String::new(),
            set: vec![name.to_owned()],
            code: "one-side",
            why: format!("it is not varied, since only {whose} has it: name it alike in both"),
        });
    }
    let mut made = Vec::new();
    let values = parameters(options, &smallest);
    let tiles = tiles(options, &smallest);
    for name in scales {
        let Some(&value) = values.get(name) else {
            continue;
        };
        let others = derived(value, &tiles).into_iter();
        let others = others.chain(grown::blocks(options, &smallest, name));
        let compared = compared::values(inputs, modules, options, (&smallest, name));
        for other in others.chain(compared) {
            let at = smallest.derived(name, other);
            let holds = requires.iter().all(|r| r.holds(&parameters(options, &at)));
            if holds && other != value && !described.contains(&at) && !made.contains(&at) {
                made.push(at);
            }
        }
    }
    let (made, large) = in_order(options, &smallest, made);
    skipped.extend(large);
    let numbers = numbers(options);
    let other = (!numbers.is_empty()).then(|| Try {
        numbers,
        derived: true,
        ..smallest.clone()
    });
    let integers = integers::tries(options, &smallest);
    // What was described larger comes last: it takes the longest, and is wrong where a smaller one is.
    let larger = described.split_off(1);
    let all = described.into_iter().chain(made).chain(other);
    Ok((all.chain(integers).chain(larger).collect(), skipped))
}

/// Sizes that nobody has described, the larger ones by what they take; and those that are too large.
fn in_order(
    options: &RewriteOptions<'_>,
    smallest: &Try,
    made: Vec<Try>,
) -> (Vec<Try>, Vec<Skipped>) {
    let takes = |at: &Try| resolved(options, at).map_or(0, |launches| work(&launches));
    let usual = 2 * takes(smallest);
    let mut made: Vec<(u64, Try)> = made
        .into_iter()
        .map(|at| (takes(&at).max(usual), at))
        .collect();
    made.sort_by_key(|(takes, _)| *takes);
    let most = MOST_WORK.max(usual);
    let small = made.partition_point(|(takes, _)| *takes <= most);
    let large = made.split_off(small).into_iter().map(|(_, at)| {
        let why = "it is large: more threads or bytes than are tried unasked".to_owned();
        Skipped::tried(&at, "derived-large", why)
    });
    let large = large.collect();
    (made.into_iter().map(|(_, at)| at).collect(), large)
}

/// How much larger a size becomes to keep to what is required.
const NEAR: i64 = 64;

/// A launch that keeps to what is required: as described, or with a size that is a little larger, else smaller; none where
/// these do not help, or are set.
fn required(options: &RewriteOptions<'_>, at: Try, requires: &[Condition]) -> Option<Try> {
    requires.iter().try_fold(at, |at, required| {
        let own = parameters(options, &at);
        if required.holds(&own) {
            return Some(at);
        }
        let is_set = |name: &str| options.set.iter().any(|(set, _)| set == name);
        let names = required.left.names().into_iter();
        let names = names.chain(required.right.names());
        let known = names.filter(|name| !is_set(name));
        let known = known.filter_map(|name| Some((name, own.get(name).copied()?)));
        let known: Vec<(&str, i64)> = known.collect();
        let larger = known.iter().flat_map(|&(name, value)| {
            (value..=value.saturating_add(NEAR)).map(move |value| (name, value))
        });
        let smaller = known
            .iter()
            .flat_map(|&(name, value)| (1..value).rev().map(move |value| (name, value)));
        larger.chain(smaller).find_map(|(name, value)| {
            let mut other = at.derived(name, value);
            other.derived = at.derived;
            required
                .holds(&parameters(options, &other))
                .then_some(other)
        })
    })
}

/// Are sizes tried that nobody has described?
fn are_derived(options: &RewriteOptions<'_>) -> bool {
    !options.only_described && options.size.is_none() && options.set.is_empty()
}

/// What is required or set must be a size that some description has.
fn are_sizes(options: &RewriteOptions<'_>, requires: &[Condition]) -> Result<(), Error> {
    let files = options.launches.iter().flatten();
    let sizes = files.flat_map(|file| file.sizes().flat_map(|size| file.parameters(size)));
    let known: BTreeSet<&str> = sizes.map(|(name, _)| name).collect();
    let required = requires.iter().flat_map(|condition| {
        let names = condition.left.names().into_iter();
        let names = names.chain(condition.right.names());
        names.map(|name| (format!("--require '{}'", condition.text), name))
    });
    let set = options.set.iter();
    let set = set.map(|(name, value)| (format!("--set {name}={value}"), &**name));
    match required.chain(set).find(|(_, name)| !known.contains(name)) {
        None => Ok(()),
        Some((option, name)) => Err(Error::NoSize {
            option,
            name: name.to_owned(),
            known: known.into_iter().map(str::to_owned).collect(),
        }),
    }
}

/// The floating-point numbers among the arguments of both sides.
fn number_names<'o>(options: &'o RewriteOptions<'_>) -> Vec<&'o str> {
    let files = options.launches.iter().flatten();
    files.flat_map(LaunchFile::numbers).collect()
}

/// Other values for the floating-point numbers among the arguments: a version that does without one is found by any.
fn numbers(options: &RewriteOptions<'_>) -> Vec<(String, f64)> {
    let mut names = number_names(options);
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !options.fixed.iter().any(|fixed| fixed == name));
    let values = (0..).map(|at| 0.731_689_3 + 0.061_7 * f64::from(at));
    names.into_iter().map(str::to_owned).zip(values).collect()
}

/// Extents of the rewritten kernel's blocks: tiles are as large, most of the time.
fn tiles(options: &RewriteOptions<'_>, at: &Try) -> Vec<i64> {
    let launches = options.launches[1]
        .iter()
        .filter_map(|file| file.resolve(&at.size, &known(file, at)).ok());
    let extents = launches.flat_map(|launch| launch.block);
    let mut tiles: Vec<i64> = extents.filter(|&n| n > 1).map(i64::from).collect();
    tiles.sort_unstable();
    tiles.dedup();
    tiles
}

/// Other values of a size: one, a prime, one more and one less, a few of its kind, whole warps, and what is one less than
/// a tile, two, and one more.
fn derived(value: i64, tiles: &[i64]) -> Vec<i64> {
    let mut all = vec![value - 1, value + 1, 1, 37, value / 2, 96];
    let of = |tile: &i64| [tile - 1, 2 * tile, 2 * tile + 1];
    all.extend(tiles.iter().flat_map(of));
    all.retain(|&other| other >= 1 && other != value);
    let mut seen = Vec::new();
    all.retain(|&other| {
        let is_new = !seen.contains(&other);
        seen.push(other);
        is_new
    });
    all
}

/// A description, in words.
const WHOSE: [&str; 2] = ["the original's description", "the other description"];

/// Parameters that grow the launches of both sides, and those that shapes depend on; and those of one side alone.
fn scales<'o>(options: &'o RewriteOptions<'_>) -> (Vec<&'o str>, Vec<(&'o str, &'static str)>) {
    let [first, second] = &options.launches;
    let in_blocks = |name: &&str| second.iter().any(|file| file.is_of_blocks(name));
    let extents = first.iter().flat_map(LaunchFile::extents);
    let grown = first.iter().flat_map(LaunchFile::scales);
    let all: BTreeSet<&str> = grown
        .chain(extents.filter(|name| !in_blocks(name)))
        .collect();
    // Of the second side it must be a parameter at least: a grid of one block does not grow.
    let has = |file: &LaunchFile, name: &str| {
        let mut sizes = file.sizes();
        sizes.any(|size| file.parameters(size).any(|(own, _)| own == name))
    };
    let is_of = |files: &[LaunchFile], name: &str| files.iter().any(|file| has(file, name));
    let (both, alone): (Vec<&str>, Vec<&str>) = all
        .into_iter()
        .partition(|name| second.iter().all(|file| has(file, name)));
    let theirs = second.iter().flat_map(LaunchFile::extents);
    let theirs: BTreeSet<&str> = theirs.filter(|name| !is_of(first, name)).collect();
    let alone = alone.into_iter().map(|name| (name, WHOSE[0]));
    let alone = alone.chain(theirs.into_iter().map(|name| (name, WHOSE[1])));
    (both, alone.collect())
}

fn parameters(options: &RewriteOptions<'_>, at: &Try) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    for file in options.launches.iter().flatten() {
        for (name, value) in file.parameters(&at.size) {
            all.entry(name.to_owned()).or_insert(value);
        }
    }
    all.extend(at.set.iter().cloned());
    all
}

/// The described sizes that both have and that are small enough, the smallest first; and the others.
fn described(options: &RewriteOptions<'_>) -> Result<(Vec<Try>, Vec<Skipped>), Error> {
    let mut files = options.launches.iter().flatten();
    let sizes: BTreeSet<&str> = files.clone().flat_map(LaunchFile::sizes).collect();
    if files.next().is_none() {
        return Err(Error::NoCommonSize("anything is launched".to_owned()));
    }
    if let Some(name) = options
        .size
        .as_ref()
        .filter(|name| !sizes.contains(&***name))
    {
        return Err(Error::NoSize {
            option: format!("--size {name}"),
            name: name.clone(),
            known: sizes.into_iter().map(str::to_owned).collect(),
        });
    }
    let mut all: Vec<(u64, Try)> = Vec::new();
    let mut skipped = Vec::new();
    let is_wanted = |size: &&str| options.size.as_ref().is_none_or(|wanted| wanted == size);
    for size in sizes.into_iter().filter(is_wanted) {
        let at = Try::new(size, common(options, size));
        if let Some(which) = without(options, size) {
            let why = format!("{} has no such size", WHOSE[which]);
            skipped.push(Skipped::tried(&at, "one-side", why));
            continue;
        }
        // Two sizes that are the same are tried once.
        let same = |(_, other): &(u64, Try)| numbers_of(options, other) == numbers_of(options, &at);
        if !all.iter().any(same) {
            all.push((work(&resolved(options, &at)?), at));
        }
    }
    all.sort_by_key(|(work, _)| *work);
    let small = all
        .iter()
        .filter(|(work, _)| *work <= MOST_WORK)
        .count()
        .max(1);
    for (_, at) in all.drain(small.min(all.len())..) {
        let launches = resolved(options, &at)?;
        let bytes = |launch: &Launch| launch.buffers().map(|b| b.size() as u64).sum::<u64>();
        let why = match launches.iter().map(bytes).max() {
            Some(bytes) if bytes > MOST_ON_TERMS => format!(
                "its buffers hold {} MiB, and terms are for {}",
                bytes >> 20,
                MOST_ON_TERMS >> 20
            ),
            _ => format!(
                "it is large, and nobody asked for it: `--size {}` tries it",
                at.size
            ),
        };
        skipped.push(Skipped::tried(&at, LARGE, why));
    }
    let all: Vec<Try> = all.into_iter().map(|(_, at)| at).collect();
    match all.is_empty() {
        true => Err(Error::NoCommonSize("both are launched".to_owned())),
        false => Ok((all, skipped)),
    }
}

/// The launches of both sides at a size.
fn resolved(options: &RewriteOptions<'_>, at: &Try) -> Result<Vec<Launch>, Error> {
    let files = options.launches.iter().flatten();
    let launches = files.map(|file| file.resolve(&at.size, &known(file, at)));
    Ok(launches.collect::<Result<_, _>>()?)
}

/// What the parameters of each description are at a size.
fn numbers_of(options: &RewriteOptions<'_>, at: &Try) -> Vec<BTreeMap<String, i64>> {
    let files = options.launches.iter().flatten();
    let of = |file: &LaunchFile| {
        let own = file.parameters(&at.size);
        let own = own.map(|(name, value)| (name.to_owned(), value));
        own.chain(known(file, at)).collect()
    };
    files.map(of).collect()
}

/// What is set at a size: what is asked for, and where both descriptions have shapes of a parameter and other numbers for
/// it, those of the one with less to do, since buffers are of one size in both.
fn common(options: &RewriteOptions<'_>, size: &str) -> Vec<(String, i64)> {
    let side = |files: &[LaunchFile]| {
        let mut all = BTreeMap::new();
        for file in files {
            let extents = file.extents();
            let own = file
                .parameters(size)
                .filter(|(name, _)| extents.contains(name));
            own.for_each(|(name, value)| {
                all.entry(name.to_owned()).or_insert(value);
            });
        }
        all
    };
    let [a, b] = options.launches.each_ref().map(|files| side(files));
    let is_set = |name: &String| options.set.iter().any(|(set, _)| set == name);
    let differ: Vec<&String> = a
        .iter()
        .filter(|(name, value)| b.get(*name).is_some_and(|other| other != *value) && !is_set(name))
        .map(|(name, _)| name)
        .collect();
    let with = |values: &BTreeMap<String, i64>| {
        let own = differ.iter().map(|&name| (name.clone(), values[name]));
        options.set.iter().cloned().chain(own).collect()
    };
    let work = |set: &Vec<(String, i64)>| {
        let at = Try::new(size, set.clone());
        resolved(options, &at).map_or(u64::MAX, |launches| work(&launches))
    };
    match differ.is_empty() {
        true => options.set.clone(),
        false => [with(&a), with(&b)]
            .into_iter()
            .min_by_key(work)
            .unwrap_or_default(),
    }
}

/// The side that has a description without this size.
fn without(options: &RewriteOptions<'_>, size: &str) -> Option<usize> {
    let has = |file: &LaunchFile| file.sizes().any(|own| own == size);
    let mut sides = options.launches.iter();
    sides.position(|files| !files.iter().all(has))
}

/// Threads of some launches, and what their buffers take in the same measure.
fn work(launches: &[Launch]) -> u64 {
    let one = |launch: &Launch| {
        let threads = launch
            .grid_blocks()
            .saturating_mul(launch.block_threads().into());
        let bytes: u64 = launch.buffers().map(|b| b.size() as u64).sum();
        threads.saturating_add(bytes / (MOST_BYTES / MOST_WORK))
    };
    launches.iter().map(one).fold(0, u64::saturating_add)
}

/// `n % 4 == 0`
struct Condition {
    text: String,
    left: Expr,
    order: &'static str,
    right: Expr,
}

impl Condition {
    fn parse(text: &str) -> Result<Condition, Error> {
        let wrong = || Error::Condition(text.to_owned());
        let orders = ["==", "!=", "<=", ">=", "<", ">"];
        let found = orders
            .into_iter()
            .find_map(|order| Some((order, text.split_once(order)?)));
        let (order, (left, right)) = found.ok_or_else(wrong)?;
        let side = |text: &str| Expr::parse(text.trim()).map_err(|_| wrong());
        Ok(Condition {
            text: text.to_owned(),
            left: side(left)?,
            order,
            right: side(right)?,
        })
    }

    fn holds(&self, values: &BTreeMap<String, i64>) -> bool {
        let lookup = |name: &str| values.get(name).map(|&value| i128::from(value));
        let (Ok(x), Ok(y)) = (self.left.eval_int(&lookup), self.right.eval_int(&lookup)) else {
            return false;
        };
        match self.order {
            "==" => x == y,
            "!=" => x != y,
            "<=" => x <= y,
            ">=" => x >= y,
            "<" => x < y,
            _ => x > y,
        }
    }
}
