//! A description is tried in the emulator before it is written: what is guessed of it is guessed anew where it faults.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::code::{Amount, Op};
use warpwright_emu::{Emulator, FaultKind, Options, Outcome, Program};
use warpwright_launch::{Buffer, Source, no_files};
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
    fuel: u64,
    until: Option<Instant>,
}

impl Left {
    fn of(limits: Limits, work: u32) -> Left {
        Left {
            work: Cell::new(work),
            fuel: limits.fuel,
            until: limits.until,
        }
    }

    fn get(&self) -> u32 {
        let is_over = self.until.is_some_and(|until| Instant::now() > until);
        if is_over {
            self.work.set(0);
        }
        self.work.get()
    }

    fn spend(&self, work: u32) {
        self.work.set(self.work.get().saturating_sub(work));
    }
}

/// Work of all trials together: one for each, [`LONG`] for one that does not end, and one for so many bytes of buffers.
/// Counted and not timed, so that a slow machine finds what a fast one does.
const WORK: u32 = 256;
const LONG: u32 = 16;
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
    let options = Options {
        loose_shuffles,
        budget: left.fuel,
        total: left.fuel,
        ..Options::default()
    };
    let before = launch.buffers().zip(&inputs);
    let before = before.map(|(buffer, bytes)| match buffer.output {
        true => bytes.clone(),
        false => Vec::new(),
    });
    let before: Vec<Vec<u8>> = before.collect();
    match program.run(&launch, inputs, &options) {
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
    if guess.small.is_long {
        sizes::name_scalars(&mut draft);
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
    let (mut guessed, mut fixed) = (BTreeSet::new(), BTreeSet::new());
    for amount in &draft.guessed_count {
        amount.roots(&mut guessed, &mut fixed);
    }
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
fn grown(
    (ground, program, left): (&Ground<'_>, &Program, &Left),
    base: &Draft,
    guess: &mut Guess,
) -> (Draft, Trial) {
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
    let counts = fitted(&program, &first(ground, bases.first()?));
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

/// The first of some guesses that runs, else the first of all.
fn tried(
    (ground, program, left): (&Ground<'_>, &Program, &Left),
    bases: &[Draft],
) -> Option<(Draft, Trial)> {
    let base = bases.first()?;
    let mut guess = Guess::default();
    let mut first = first(ground, base);
    // Sizes that are no whole blocks try the borders, and such that differ what is taken for another; not all code takes
    // them.
    for is_ragged in [true, false] {
        (guess.small.is_ragged, guess.small.differ) = (is_ragged, true);
        let harder = with(ground, base, &guess);
        let mut both = harder.names.iter().zip(&first.names);
        if both.any(|(a, b)| a.small != b.small)
            && let result = at_two_sizes(program, &harder, left)
            && result.runs()
        {
            return Some((harder, result));
        }
    }
    (guess.small.is_ragged, guess.small.differ) = (false, false);
    // What runs at its small size alone is better than nothing.
    let if_it_runs = |draft: Draft, result: Trial| match trial(program, &draft, left) {
        small if small.runs() => (draft, small),
        _ => (draft, result),
    };
    let mut result = at_two_sizes(program, &first, left);
    guess.small.is_long = matches!(result, Trial::Faults { is_long: true, .. });
    if guess.small.is_long {
        // Counts of loops are made small as well, once they are known to matter.
        first = with(ground, base, &guess);
        result = at_two_sizes(program, &first, left);
    }
    if !matches!(result, Trial::Faults { may_help: true, .. }) {
        return Some((first, result));
    }
    let guesses_sizes = base.memory().any(|memory| memory.count.is_none());
    let is_open = |named: &crate::draft::Named| named.is_scalar && named.root.value.is_none();
    let levels = if guesses_sizes { 0..4 } else { 0..1 };
    let all_indices: &[Indices] = match has_indices(&first) {
        true => &[Indices::AsThey, Indices::Few, Indices::Rows, Indices::Zeros],
        false => &[Indices::AsThey],
    };
    let scalars: &[Option<i64>] = match first.names.iter().any(is_open) {
        true => &[None, Some(1), Some(0)],
        false => &[None],
    };
    let shifts = match result {
        Trial::Faults { is_long: true, .. } => [3, 6],
        _ => [0, 3],
    };
    for shift in shifts {
        for base in bases {
            for level in levels.clone() {
                for &scalar in scalars {
                    for &indices in all_indices {
                        if left.get() == 0 {
                            return Some(if_it_runs(first, result));
                        }
                        (guess.level, guess.indices) = (level, indices);
                        (guess.scalar, guess.small.shift) = (scalar, shift);
                        guess.counts.clear();
                        let tried = grown((ground, program, left), base, &mut guess);
                        if tried.1.runs() {
                            return Some(tried);
                        }
                    }
                }
            }
        }
    }
    Some(if_it_runs(first, result))
}
