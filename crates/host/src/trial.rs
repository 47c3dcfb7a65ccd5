//! A description is tried in the emulator before it is written: what is guessed of it is guessed anew where it faults.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::amount::{Amount, roots_of};
use warpwright_emu::{EmuError, Emulator, FaultKind, Options, Outcome, Program};
use warpwright_launch::{Buffer, Launch, Op, Source, no_files};
use warpwright_ptx::Module;

use crate::draft::{Contents, Draft};
use crate::fit::fitted;
use crate::make::{self, Ground};
use crate::sizes;

/// What all trials may cost together, and warp instructions of one.
#[derive(Clone, Copy)]
pub struct Limits {
    work: u32,
    fuel: u64,
    until: Option<Instant>,
}

impl Limits {
    /// And no later than this another trial begins.
    pub fn until(self, until: Instant) -> Limits {
        Limits {
            until: Some(until),
            ..self
        }
    }
}

/// Of a description that was asked for.
pub const ASKED: Limits = Limits {
    work: WORK,
    fuel: 1 << 24,
    until: None,
};
/// Of one that is only counted: a second or two.
pub const UNASKED: Limits = Limits {
    work: WORK / 4,
    fuel: 1 << 21,
    until: None,
};

/// What is left of them.
struct Left {
    work: Cell<u32>,
    /// Of one trial: less once one did not end, since those behind it are of smaller sizes.
    fuel: Cell<u64>,
    until: Option<Instant>,
    /// The time has kept something from being tried.
    is_late: Cell<bool>,
}

impl Left {
    fn of(limits: Limits, work: u32) -> Left {
        Left {
            work: Cell::new(work),
            fuel: Cell::new(limits.fuel),
            until: limits.until,
            is_late: Cell::new(false),
        }
    }

    fn get(&self) -> u32 {
        if !self.has_time(Duration::ZERO) {
            self.work.set(0);
        }
        self.work.get()
    }

    /// Is there time for what takes so long?
    fn has_time(&self, more: Duration) -> bool {
        let is_late = self
            .until
            .is_some_and(|until| Instant::now() + more > until);
        self.is_late.set(self.is_late.get() || is_late);
        !is_late
    }

    fn spend(&self, work: u32) {
        self.work.set(self.work.get().saturating_sub(work));
    }
}

/// Work of all trials together: one for each, [`LONG`] for one that does not end, and one for so many bytes of buffers.
/// Counted and not timed, so that a slow machine finds what a fast one does.
const WORK: u32 = 256;
const LONG: u32 = 16;
/// Warp instructions of a trial once another one did not end.
const LESS: u64 = 1 << 21;
/// Warp instructions that tell how long more of them take.
const SLICE: u64 = 1 << 20;
/// How often sizes are halved that are tried where others do not run.
const SHIFTS: [u32; 2] = [0, 3];
const LONG_SHIFTS: [u32; 2] = [3, 6];
const BYTES: usize = 16 << 20;
/// Bytes of a buffer that is tried.
const LARGEST: usize = 256 << 20;
/// As much larger a buffer becomes, at most.
const MOST_FACTOR: i64 = 1 << 12;

/// What a trial came to.
pub enum Trial {
    /// The small size runs.
    Runs,
    /// It does, and each element of the outputs becomes zero or stays as it is.
    Zeros,
    /// It does not.
    Faults {
        /// Why, in a line.
        why: String,
        /// Other guesses may help.
        may_help: bool,
        /// It takes too long.
        is_long: bool,
        /// The buffer that an access goes beyond.
        beyond: Option<String>,
    },
    /// The emulator cannot tell.
    Unknown(String),
}

impl Trial {
    fn runs(&self) -> bool {
        matches!(self, Trial::Runs | Trial::Zeros)
    }
}

/// Runs the small size of a description. What a shuffle reads of a lane that takes no part says nothing against a guess.
fn trial(program: &Program, draft: &Draft, left: &Left) -> Trial {
    trial_with(program, draft, left, true)
}

/// What came of a description, as `run` says it.
pub fn as_it_runs(
    module: &Module,
    (draft, found): &(Draft, Trial),
    limits: Limits,
) -> Option<Trial> {
    if !found.runs() {
        return None;
    }
    let program = Emulator::new(module, &draft.kernel).ok()?;
    Some(trial_with(
        &program,
        draft,
        &Left::of(limits, limits.work),
        false,
    ))
}

fn trial_with(program: &Program, draft: &Draft, left: &Left, loose_shuffles: bool) -> Trial {
    left.spend(1);
    let impossible = |why: &str| Trial::Faults {
        why: first_line(why),
        may_help: true,
        is_long: false,
        beyond: None,
    };
    let launch = match draft.file().and_then(|file| file.resolve("small", &[])) {
        Ok(launch) => launch,
        Err(e) => return impossible(&e.message),
    };
    let mut inputs = Vec::new();
    for buffer in launch.buffers() {
        if buffer.size() > LARGEST {
            return Trial::Unknown(format!("`{}` is too large", buffer.name));
        }
        left.spend((buffer.size() / BYTES) as u32);
        match buffer.materialize(&no_files) {
            Ok(bytes) => inputs.push(bytes),
            Err(e) => return impossible(&e.to_string()),
        }
    }
    let before = launch.buffers().zip(&inputs);
    let before = before.map(|(buffer, bytes)| match buffer.output {
        true => bytes.clone(),
        false => Vec::new(),
    });
    let before: Vec<Vec<u8>> = before.collect();
    match run((program, loose_shuffles), &launch, inputs, left) {
        Ok(Outcome::Finished(results)) => {
            let tells = |(buffer, (before, after)): (&Buffer, (&Vec<u8>, &Vec<u8>))| {
                let size = buffer.ty.size();
                let mut both = before.chunks(size).zip(after.chunks(size));
                both.any(|(before, after)| before != after && after.iter().any(|byte| *byte != 0))
            };
            let both = launch.buffers().zip(before.iter().zip(&results.buffers));
            let mut outputs = both.filter(|(buffer, _)| buffer.output).peekable();
            match outputs.peek().is_some() && !outputs.any(tells) {
                true => Trial::Zeros,
                false => Trial::Runs,
            }
        }
        Ok(Outcome::Faulted(fault)) if fault.kind == FaultKind::Budget => {
            left.spend(LONG);
            left.fuel.set(left.fuel.get().min(LESS));
            Trial::Faults {
                why: format!("{}: {}", fault.kind.name(), first_line(&fault.message)),
                may_help: true,
                is_long: true,
                beyond: None,
            }
        }
        Ok(Outcome::Faulted(fault)) => Trial::Faults {
            why: format!("{}: {}", fault.kind.name(), first_line(&fault.message)),
            may_help: matches!(
                fault.kind,
                FaultKind::OutOfBounds
                    | FaultKind::Misaligned
                    | FaultKind::Trap
                    | FaultKind::Assertion
                    | FaultKind::BarrierDivergence
            ),
            is_long: false,
            beyond: fault
                .allocation
                .filter(|_| fault.kind == FaultKind::OutOfBounds),
        },
        Err(e) => Trial::Unknown(first_line(&e.to_string())),
    }
}

/// Runs a launch until its fuel is spent, or as much of it as tells that the time is over before.
fn run(
    (program, loose_shuffles): (&Program, bool),
    launch: &Launch,
    inputs: Vec<Vec<u8>>,
    left: &Left,
) -> Result<Outcome, EmuError> {
    let fuel = left.fuel.get();
    let options = |fuel: u64| Options {
        loose_shuffles,
        budget: fuel,
        total: fuel,
        ..Options::default()
    };
    let begun = Instant::now();
    let slice = program.run(launch, inputs.clone(), &options(fuel.min(SLICE)))?;
    let is_long = matches!(&slice, Outcome::Faulted(fault) if fault.kind == FaultKind::Budget);
    let slices = u32::try_from(fuel / SLICE).unwrap_or(u32::MAX);
    if !is_long || slices <= 1 || !left.has_time(begun.elapsed() * slices) {
        return Ok(slice);
    }
    program.run(launch, inputs, &options(fuel))
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    line.trim_start_matches("error: ").to_owned()
}

/// Are there integers whose values are guessed?
fn has_indices(draft: &Draft) -> bool {
    let is_index = |c: &Contents| matches!(c, Contents::Indices(_) | Contents::Narrow(_));
    draft.memory().any(|memory| is_index(&memory.contents))
}

/// Is it a name that row pointers and the like have?
fn points_to_rows(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts = ["ptr", "off", "row", "start", "begin", "xadj"];
    parts.iter().any(|part| name.contains(part))
}

/// Other contents of the buffers of indices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Indices {
    #[default]
    AsThey,
    /// Narrow ones below [`make::FEW`].
    Few,
    Rows,
    Zeros,
}

/// The size of a buffer: so many times what is guessed of all, or what it is.
#[derive(Clone, Debug)]
enum Count {
    Times(Amount),
    Whole(Amount),
}

/// What is guessed otherwise than at first.
#[derive(Clone, Debug, Default)]
struct Guess {
    /// How the sizes of buffers are guessed.
    level: usize,
    indices: Indices,
    /// Integers that nobody knows and no size is made of.
    scalar: Option<i64>,
    /// How the small size is chosen.
    small: sizes::Small,
    /// Buffers of other sizes.
    counts: BTreeMap<String, Count>,
}

fn with(ground: &Ground<'_>, base: &Draft, guess: &Guess) -> Draft {
    let mut draft = base.clone();
    ground.guess_counts(&mut draft, guess.level);
    let guessed = draft.guessed_count.iter().cloned().reduce(Amount::times);
    let guessed = guessed.unwrap_or(Amount::Number(1));
    for memory in draft.buffers_mut() {
        let is_index = matches!(memory.contents, Contents::Indices(_) | Contents::Narrow(_));
        let is_unknown = memory.count.is_none();
        let mut count = guessed.clone();
        match guess.indices {
            Indices::Few => {
                if let Contents::Narrow(bound) = &mut memory.contents {
                    *bound = make::FEW.min(*bound);
                }
            }
            Indices::Zeros if is_index => memory.contents = Contents::Zeros,
            Indices::Rows if is_index && !memory.is_output && points_to_rows(&memory.name) => {
                memory.contents = Contents::Sorted(Amount::Number(1));
                count = Amount::binary(Op::Add, count, Amount::Number(1));
            }
            _ => {}
        }
        match guess.counts.get(&memory.name) {
            Some(Count::Times(factor)) => count = factor.clone().times(count),
            Some(Count::Whole(whole)) => count = whole.clone(),
            None => {}
        }
        if is_unknown && count != guessed {
            (memory.count, memory.source) = (Some(count), Source::Guessed);
        }
    }
    sizes::name(&mut draft);
    sizes::choose(&mut draft, guess.small, guess.scalar);
    sizes::fill(&mut draft);
    draft
}

/// The buffer that an access goes beyond; what a table of pointers points to is called after it.
fn beyond(result: &Trial) -> Option<&str> {
    match result {
        Trial::Faults { beyond, .. } => {
            let name = beyond.as_deref()?;
            Some(name.strip_suffix(".each").unwrap_or(name))
        }
        _ => None,
    }
}

/// The sizes of a buffer that are tried where an access goes beyond it: a few times as large, what the names say that nobody
/// knows, then numbers.
fn larger(draft: &Draft) -> Vec<Count> {
    let guessed = roots_of(&draft.guessed_count);
    let open = draft.names.iter().filter(|n| n.root.value.is_none());
    let (own, others): (Vec<_>, Vec<_>) = open.partition(|n| guessed.contains(&n.root));
    let root = |n: &crate::draft::Named| Amount::Root(n.root.clone());
    let times = |number: i64| Count::Times(Amount::Number(number));
    let mut all = vec![times(4), times(16)];
    all.extend(others.iter().map(|n| Count::Whole(root(n))));
    let factors = others.iter().chain(&own);
    all.extend(factors.map(|n| Count::Times(root(n))));
    let numbers = (3..).map(|power| 1_i64 << (2 * power));
    all.extend(numbers.take_while(|n| *n <= MOST_FACTOR).map(times));
    all
}

/// A try with buffers that grow where an access goes beyond them.
fn grown((ground, program, left): On<'_>, base: &Draft, guess: &mut Guess) -> (Draft, Trial) {
    let mut draft = with(ground, base, guess);
    let mut result = at_two_sizes(program, &draft, left);
    let all = larger(&draft);
    let mut tried: BTreeMap<String, usize> = BTreeMap::new();
    // One buffer may hide that another is too small, for a while.
    while let Some(name) = beyond(&result).map(str::to_owned) {
        let is_it = |m: &crate::draft::Memory| m.name == name && m.count.is_none();
        let next = tried.entry(name.clone()).or_default();
        let count = all.get(*next).filter(|_| base.memory().any(is_it));
        let Some(count) = count.filter(|_| left.get() > 0) else {
            break;
        };
        *next += 1;
        guess.counts.insert(name, count.clone());
        draft = with(ground, base, guess);
        result = at_two_sizes(program, &draft, left);
    }
    (draft, result)
}

/// Runs the small size, and another one: what is right at one alone is wrong at the full one. Of the other nothing counts
/// but a buffer, guessed, that is left.
fn at_two_sizes(program: &Program, draft: &Draft, left: &Left) -> Trial {
    let small = trial(program, draft, left);
    if !small.runs() {
        return small;
    }
    let mut other = draft.clone();
    let is_open = |named: &&mut crate::draft::Named| named.root.value.is_none() && named.small > 1;
    let mut is_other = false;
    for named in other.names.iter_mut().filter(is_open) {
        named.small *= if named.is_scalar { 3 } else { 2 };
        is_other = true;
    }
    if !is_other {
        return small;
    }
    let result = trial(program, &other, left);
    let is_guessed = |m: &crate::draft::Memory| {
        beyond(&result) == Some(&m.name) && m.source == Source::Guessed && m.rows.is_none()
    };
    match draft.memory().any(is_guessed) {
        true => result,
        false => small,
    }
}

/// The first guess.
fn first(ground: &Ground<'_>, base: &Draft) -> Draft {
    with(ground, base, &Guess::default())
}

/// The first of some guesses that runs, else the first of all, and why that does not run. `bases`: with other blocks,
/// where these are guessed. Buffers of which nobody knows how large they are first have what the kernel reaches.
pub fn best(
    ground: &Ground<'_>,
    bases: &[Draft],
    module: &Module,
    limits: Limits,
) -> Option<(Draft, Trial)> {
    let program = match Emulator::new(module, ground.symbol) {
        Ok(program) => program,
        Err(e) => {
            let why = first_line(&e.to_string());
            return Some((first(ground, bases.first()?), Trial::Unknown(why)));
        }
    };
    let left = |work: u32| Left::of(limits, work);
    let is_late = || !left(0).has_time(Duration::ZERO);
    if is_late() {
        let why = "no time was left: --budget".to_owned();
        return Some((first(ground, bases.first()?), Trial::Unknown(why)));
    }
    let counts = fitted(&program, &first(ground, bases.first()?), &is_late);
    if !counts.is_empty() {
        let bases: Vec<Draft> = bases.iter().map(|base| fitting(base, &counts)).collect();
        let found = tried((ground, &program, &left(limits.work / 4)), &bases)?;
        if found.1.runs() {
            return Some(found);
        }
    }
    tried((ground, &program, &left(limits.work)), bases)
}

/// A draft with sizes of buffers that the kernel reaches.
fn fitting(base: &Draft, counts: &[(String, Amount)]) -> Draft {
    let mut draft = base.clone();
    for memory in draft.buffers_mut() {
        if let Some((_, count)) = counts.iter().find(|(name, _)| *name == memory.name) {
            (memory.count, memory.source) = (Some(count.clone()), Source::Guessed);
        }
    }
    draft
}

/// What guesses are tried with.
type On<'t> = (&'t Ground<'t>, &'t Program, &'t Left);

/// The first of some guesses that runs, else the first of all.
fn tried(on: On<'_>, bases: &[Draft]) -> Option<(Draft, Trial)> {
    let (ground, program, left) = on;
    let base = bases.first()?;
    let mut first = first(ground, base);
    if let Some(found) = at_borders(on, base, &first) {
        return Some(found);
    }
    let mut guess = Guess::default();
    let mut result = at_two_sizes(program, &first, left);
    let mut shifts = &SHIFTS[..];
    if is_long(&result) {
        // Counts of loops are made small as well, once they are known to matter.
        guess.small.is_long = true;
        first = with(ground, base, &guess);
        result = at_two_sizes(program, &first, left);
    }
    if is_long(&result) {
        let [larger, most] = LONG_SHIFTS;
        let is_smaller = |shift: &u32| {
            let mut guess = guess.clone();
            guess.small.shift = *shift;
            is_smaller(&with(ground, base, &guess), &first)
        };
        // A size may have to be a block's at the least.
        let smallest = (larger..=most).rev().find(is_smaller).unwrap_or(most);
        let mut at_shift = |shift: u32| {
            guess.small.shift = shift;
            let draft = with(ground, base, &guess);
            let result = at_two_sizes(program, &draft, left);
            (draft, result)
        };
        let (draft, at_smallest) = at_shift(smallest);
        if at_smallest.runs() {
            let found = at_shift(larger);
            return Some(if found.1.runs() {
                found
            } else {
                (draft, at_smallest)
            });
        }
        // Where the smallest one does not end either it is no matter of sizes.
        shifts = match is_long(&at_smallest) {
            true => &LONG_SHIFTS[1..],
            false => &LONG_SHIFTS,
        };
        result = told(result, (&first, &draft, &at_smallest), left);
    }
    if !matches!(result, Trial::Faults { may_help: true, .. }) {
        return Some((first, result));
    }
    let larger = || at_larger_sizes(on, base, (&first, &guess));
    let runs = |found: &Option<(Draft, Trial)>| found.as_ref().is_some_and(|(_, t)| t.runs());
    // Memory that was seen is large enough for sizes that were: what is wrong are smaller ones.
    let is_known = is_beyond_known(base, &result);
    let at_larger = is_known.then(larger).flatten();
    if runs(&at_larger) {
        return at_larger;
    }
    let found = by_other_guesses(on, (bases, shifts), &first, guess.clone());
    if found.is_some() {
        return found;
    }
    let at_larger = match is_known {
        true => at_larger,
        false => larger(),
    };
    if runs(&at_larger) {
        return at_larger;
    }
    // What runs at its small size alone is better than nothing, and so is what takes long.
    let small = trial(program, &first, left);
    match small.runs() {
        true => Some((first, small)),
        false => Some(at_larger.unwrap_or((first, result))),
    }
}

/// Does an access go beyond memory whose size is known?
fn is_beyond_known(base: &Draft, result: &Trial) -> bool {
    let is_known = |m: &crate::draft::Memory| m.count.is_some() && m.source != Source::Guessed;
    beyond(result).is_some_and(|name| base.memory().any(|m| m.name == name && is_known(m)))
}

/// A kernel's own constants may ask for more than the small size has: the first size that runs of those that grow up to
/// the full one; where one takes long, the full one with few blocks. What takes long with these as well does not fault.
fn at_larger_sizes(
    (ground, program, left): On<'_>,
    base: &Draft,
    (first, guess): (&Draft, &Guess),
) -> Option<(Draft, Trial)> {
    let mut guess = guess.clone();
    let mut before = first.clone();
    loop {
        guess.small.grown += 1;
        let draft = with(ground, base, &guess);
        if left.get() == 0 || !is_smaller(&before, &draft) {
            return None;
        }
        if sizes::has_many_threads(&draft) {
            break;
        }
        let result = at_two_sizes(program, &draft, left);
        match &result {
            found if found.runs() => return Some((draft, result)),
            Trial::Faults { is_long: true, .. } => break,
            Trial::Faults { may_help: true, .. } => before = draft,
            _ => return None,
        }
    }
    guess.small.is_full = true;
    let draft = with(ground, base, &guess);
    match at_two_sizes(program, &draft, left) {
        found if found.runs() => Some((draft, found)),
        found if is_long(&found) => {
            let smaller = Trial::Unknown("the kernel's constants ask for more".to_owned());
            let found = told(found, (&draft, first, &smaller), left);
            Some((draft, found))
        }
        _ => None,
    }
}

/// Is the small size of a draft smaller than that of another?
fn is_smaller(draft: &Draft, than: &Draft) -> bool {
    let mut both = draft.names.iter().zip(&than.names);
    both.any(|(own, other)| own.small < other.small)
}

fn is_long(result: &Trial) -> bool {
    matches!(result, Trial::Faults { is_long: true, .. })
}

/// Sizes that are no whole blocks try the borders, and such that differ what is taken for another; not all code takes them.
fn at_borders(
    (ground, program, left): On<'_>,
    base: &Draft,
    first: &Draft,
) -> Option<(Draft, Trial)> {
    let mut guess = Guess::default();
    for is_ragged in [true, false] {
        (guess.small.is_ragged, guess.small.differ) = (is_ragged, true);
        let harder = with(ground, base, &guess);
        let mut both = harder.names.iter().zip(&first.names);
        if both.all(|(a, b)| a.small == b.small) {
            continue;
        }
        let result = at_two_sizes(program, &harder, left);
        if result.runs() {
            return Some((harder, result));
        }
        // Sizes that hardly differ take as long.
        if is_long(&result) {
            return None;
        }
    }
    None
}

/// A trial that did not end, with what is known of it: of the draft, the one of the smallest sizes, and its trial.
fn told(result: Trial, (draft, other, smallest): (&Draft, &Draft, &Trial), left: &Left) -> Trial {
    let Trial::Faults {
        may_help, beyond, ..
    } = result
    else {
        return result;
    };
    let is_smaller = is_smaller(other, draft);
    let small = "its small size takes longer than it is tried in the emulator";
    let why = match smallest {
        _ if left.is_late.get() => format!("{small}, and the time was over before others were"),
        Trial::Faults { is_long: true, .. } if is_smaller => {
            format!(
                "{small}, and so does a smaller one: with what its buffers begin with, a loop may have no end"
            )
        }
        Trial::Faults {
            is_long: false,
            why,
            ..
        }
        | Trial::Unknown(why) => {
            format!("{small}, and a smaller one does not run: {why}")
        }
        _ => format!("{small}, and no smaller one is known"),
    };
    Trial::Faults {
        why,
        may_help,
        is_long: true,
        beyond,
    }
}

/// The first of other guesses that runs.
fn by_other_guesses(
    on: On<'_>,
    (bases, shifts): (&[Draft], &[u32]),
    first: &Draft,
    mut guess: Guess,
) -> Option<(Draft, Trial)> {
    let left = on.2;
    let mut memory = bases.iter().take(1).flat_map(Draft::memory);
    let guesses_sizes = memory.any(|memory| memory.count.is_none());
    let is_open = |named: &crate::draft::Named| named.is_scalar && named.root.value.is_none();
    let levels = if guesses_sizes { 0..4 } else { 0..1 };
    let all_indices: &[Indices] = match has_indices(first) {
        true => &[Indices::AsThey, Indices::Few, Indices::Rows, Indices::Zeros],
        false => &[Indices::AsThey],
    };
    let scalars: &[Option<i64>] = match first.names.iter().any(is_open) {
        true => &[None, Some(1), Some(0)],
        false => &[None],
    };
    for &shift in shifts {
        for base in bases {
            for level in levels.clone() {
                for &scalar in scalars {
                    for &indices in all_indices {
                        if left.get() == 0 {
                            return None;
                        }
                        (guess.level, guess.indices) = (level, indices);
                        (guess.scalar, guess.small.shift) = (scalar, shift);
                        guess.counts.clear();
                        let tried = grown(on, base, &mut guess);
                        if tried.1.runs() {
                            return Some(tried);
                        }
                    }
                }
            }
        }
    }
    None
}
