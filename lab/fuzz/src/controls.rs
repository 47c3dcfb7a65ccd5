//! Controls of the fuzzer: planted mistakes that the checker must not prove, and rewrites that change nothing,
//! which it must.
//!
//! A run in which the checker proved everything would look as good as one in which all was right. So mistakes
//! of every class are planted in generated kernels, and in what passes make of them. In PTX the emulator is the
//! judge of what is a mistake: other results, or a fault, where the kernel itself has none. In machine code the
//! classes are such that every planted one is a mistake: every cell that a generated kernel stores to is read,
//! and every barrier orders an exchange. Less in a control field than ptxas set there may not be proved either.
//! A mistake that is proved, and a class that was never caught in a long run, fail the run. They are part of every run
//! of `passes`: one class for each kernel, in the kernel or in what a pass made of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use warpwright_check::{CubinOptions, Verdict, check_files, check_modules};
use warpwright_emu::{Options, Results};
use warpwright_flow::{Function as _, Inst};
use warpwright_launch::Guard;
use warpwright_ptx::{Diagnostic, Module};
use warpwright_sass::function::{self, Calls};
use warpwright_sass::{Elf, ElfError};
use warpwright_toolkit::{Ptxas, PtxasJob};

use crate::case::{self, Case};
use crate::equal;
use crate::orders::Seen;

/// The controls of a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Planted in a valid kernel.
    pub planted: u64,
    /// Of these, mistakes for certain.
    pub mistakes: u64,
    /// Mistakes that were not proved.
    pub caught: u64,
}

/// Controls by class, and those that change nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Controls {
    /// Planted mistakes.
    pub classes: BTreeMap<String, Class>,
    /// Rewrites that change nothing.
    pub idle: u64,
    /// Of these, proved.
    pub idle_proved: u64,
}

/// What does not hold of the controls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A mistake is proved.
    #[error("a planted mistake is proved: {class}\n{text}")]
    Proved {
        /// Its class.
        class: &'static str,
        /// The kernel with the mistake.
        text: String,
    },
    /// What is as it was is not proved.
    #[error("the kernel is not proved to be itself: {0}")]
    Idle(String),
    /// The kernel itself.
    #[error(transparent)]
    Before(case::Failure),
    /// Its machine code cannot be read.
    #[error("machine code: {0}")]
    Elf(String),
}

impl From<ElfError> for Failure {
    fn from(error: ElfError) -> Self {
        Failure::Elf(error.to_string())
    }
}

impl Controls {
    /// Adds another part.
    pub fn add(&mut self, other: &Controls) {
        for (name, class) in &other.classes {
            let sum = self.classes.entry(name.clone()).or_default();
            sum.planted += class.planted;
            sum.mistakes += class.mistakes;
            sum.caught += class.caught;
        }
        self.idle += other.idle;
        self.idle_proved += other.idle_proved;
    }

    /// Classes of which mistakes were planted and not all were caught, and those of `wanted` that were never caught.
    pub fn failing<'w>(&self, wanted: impl IntoIterator<Item = &'w str>) -> Vec<String> {
        let missed = self.classes.iter().filter(|(_, c)| c.caught < c.mistakes);
        let mut names: Vec<String> = missed.map(|(name, _)| name.clone()).collect();
        let has = |name: &str| self.classes.get(name).is_some_and(|c| c.caught > 0);
        let never = wanted.into_iter().filter(|name| !has(name));
        names.extend(never.map(str::to_owned));
        if self.idle_proved < self.idle {
            names.push("rewrites that change nothing".to_owned());
        }
        names
    }

    /// The names of all classes in PTX.
    pub fn in_ptx() -> impl Iterator<Item = &'static str> {
        MISTAKES.iter().map(|mistake| mistake.0)
    }

    /// The names of all classes in machine code.
    pub fn in_machine_code() -> impl Iterator<Item = &'static str> {
        SPOILS.iter().map(|spoil| spoil.0)
    }

    fn class(&mut self, name: &str) -> &mut Class {
        self.classes.entry(name.to_owned()).or_default()
    }
}

/// A stream of numbers (splitmix64).
pub struct Dice(u64);

impl Dice {
    /// Numbers for a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One below `n`; 0 for 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// A line of PTX to the lines that stand for it; `None` where there is nothing to spoil.
type Mistake = fn(&str, &mut Dice) -> Option<String>;

/// The classes of mistakes in PTX.
pub const MISTAKES: [(&str, Mistake); 16] = [
    ("another source register", other_register),
    ("another immediate", other_immediate),
    ("sources swapped", swapped),
    ("guard inverted", guard_inverted),
    ("guard dropped", guard_dropped),
    ("branch inverted", branch_inverted),
    ("store lost", store_lost),
    ("store elsewhere", |line, _| shifted(line, "st.global")),
    ("slot elsewhere", |line, _| {
        shifted(line, "ld.shared").or_else(|| shifted(line, "st.local"))
    }),
    ("definition lost", definition_lost),
    ("another operation", other_operation),
    ("another sign", other_sign),
    ("another rounding", other_rounding),
    ("barrier lost", |line, _| lost(line, "bar.sync")),
    ("another lane", other_lane),
    ("one round more", one_round_more),
];

/// The instruction of a line, behind its white space and guard: guard, opcode and operands.
fn parts(line: &str) -> Option<(&str, &str, Vec<&str>)> {
    let code = line.trim().strip_suffix(';')?;
    let (guard, code) = match code.strip_prefix('@') {
        Some(_) => code.split_once(' ')?,
        None => ("", code),
    };
    let (opcode, operands) = code.split_once(' ')?;
    let is_instruction = !opcode.starts_with('.') && opcode.contains('.');
    let operands = operands.split(", ").collect();
    is_instruction.then_some((guard, opcode, operands))
}

fn join(guard: &str, opcode: &str, operands: &[&str]) -> String {
    let guard = match guard {
        "" => String::new(),
        guard => format!("{guard} "),
    };
    format!("    {guard}{opcode} {};", operands.join(", "))
}

/// A register's pool and number.
fn register(text: &str) -> Option<(&str, u32)> {
    let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (pool, number) = text.split_at(text.len() - digits);
    (pool.starts_with('%') && digits > 0).then_some(())?;
    Some((pool, number.parse().ok()?))
}

fn is_plain(opcode: &str) -> bool {
    !["st.", "ld.", "bar.", "bra", "red.", "vote.", "shfl."]
        .iter()
        .any(|start| opcode.starts_with(start))
}

fn other_register(line: &str, dice: &mut Dice) -> Option<String> {
    let (guard, opcode, mut operands) = parts(line).filter(|p| is_plain(p.1))?;
    let at = 1 + dice.below(operands.len() - 1);
    let (pool, number) = register(operands.get(at)?)?;
    let new = format!("{pool}{}", if number == 0 { 1 } else { number - 1 });
    operands[at] = &new;
    Some(join(guard, opcode, &operands))
}

fn other_immediate(line: &str, dice: &mut Dice) -> Option<String> {
    let (guard, opcode, mut operands) = parts(line).filter(|p| is_plain(p.1))?;
    let at = 1 + dice.below(operands.len() - 1);
    let value: i64 = operands.get(at)?.parse().ok()?;
    let new = (value ^ 1).to_string();
    operands[at] = &new;
    Some(join(guard, opcode, &operands))
}

fn swapped(line: &str, _: &mut Dice) -> Option<String> {
    let (guard, opcode, mut operands) = parts(line).filter(|p| is_plain(p.1))?;
    let [_, a, b] = operands[..] else { return None };
    let same_pool = register(a)?.0 == register(b)?.0;
    operands.swap(1, 2);
    same_pool.then(|| join(guard, opcode, &operands))
}

fn guard_inverted(line: &str, _: &mut Dice) -> Option<String> {
    let (guard, opcode, operands) = parts(line).filter(|p| !p.0.is_empty())?;
    Some(join(&inverse(guard)?, opcode, &operands))
}

fn inverse(guard: &str) -> Option<String> {
    Some(match guard.strip_prefix("@!") {
        Some(name) => format!("@{name}"),
        None => format!("@!{}", guard.strip_prefix('@')?),
    })
}

fn guard_dropped(line: &str, _: &mut Dice) -> Option<String> {
    let (guard, opcode, operands) = parts(line)?;
    (!guard.is_empty()).then(|| join("", opcode, &operands))
}

fn branch_inverted(line: &str, _: &mut Dice) -> Option<String> {
    let (guard, rest) = line.trim().split_once(" bra ")?;
    // The branch back of a loop would not end.
    let is_back = guard.ends_with("%q");
    (!is_back).then_some(())?;
    Some(format!("    {} bra {rest}", inverse(guard)?))
}

fn store_lost(line: &str, _: &mut Dice) -> Option<String> {
    lost(line, "st.")
}

fn lost(line: &str, opcode: &str) -> Option<String> {
    line.trim().starts_with(opcode).then(String::new)
}

/// The address of an access four bytes on.
fn shifted(line: &str, opcode: &str) -> Option<String> {
    line.trim().starts_with(opcode).then_some(())?;
    let (before, behind) = line.split_once(']')?;
    Some(format!("{before}+8]{behind}"))
}

fn definition_lost(line: &str, _: &mut Dice) -> Option<String> {
    parts(line).filter(|p| is_plain(p.1)).map(|_| String::new())
}

fn other_operation(line: &str, _: &mut Dice) -> Option<String> {
    const OTHER: [(&str, &str); 8] = [
        ("add.", "sub."),
        ("sub.", "add."),
        ("min.", "max."),
        ("max.", "min."),
        ("and.b", "or.b"),
        ("xor.b", "and.b"),
        (".eq.", ".ne."),
        (".lt.", ".le."),
    ];
    let (guard, opcode, operands) = parts(line).filter(|p| is_plain(p.1))?;
    let other = OTHER.iter().find(|(from, _)| opcode.contains(from))?;
    Some(join(
        guard,
        &opcode.replacen(other.0, other.1, 1),
        &operands,
    ))
}

fn other_sign(line: &str, _: &mut Dice) -> Option<String> {
    let (guard, opcode, operands) = parts(line).filter(|p| is_plain(p.1))?;
    let depends = [
        "mul.hi",
        "mul.wide",
        "shr",
        "min",
        "max",
        "setp.l",
        "setp.g",
        "bfe",
        "cvt.s32.s16",
    ];
    let depends = depends.iter().any(|start| opcode.starts_with(start));
    let other = match opcode.contains(".s") {
        true => opcode.replace(".s", ".u"),
        false => opcode.replace(".u", ".s"),
    };
    let is_valid = !other.contains(".ub") && !other.contains(".uat");
    (depends && other != opcode && is_valid).then(|| join(guard, &other, &operands))
}

fn other_rounding(line: &str, _: &mut Dice) -> Option<String> {
    let (guard, opcode, operands) = parts(line).filter(|p| is_plain(p.1))?;
    let is_float =
        [".f32", ".f64"].iter().any(|ty| opcode.ends_with(ty)) && !opcode.contains("rni");
    let new = opcode.replace(".rn.", ".rp.");
    (is_float && new != opcode).then(|| join(guard, &new, &operands))
}

fn other_lane(line: &str, _: &mut Dice) -> Option<String> {
    let (guard, opcode, mut operands) = parts(line).filter(|p| p.1.starts_with("shfl."))?;
    let lane: u32 = operands.get(2)?.parse().ok()?;
    let new = (lane ^ 1).to_string();
    operands[2] = &new;
    Some(join(guard, opcode, &operands))
}

fn one_round_more(line: &str, _: &mut Dice) -> Option<String> {
    let (guard, opcode, mut operands) = parts(line).filter(|p| p.1 == "mov.u32")?;
    let count: u32 = (operands[0].starts_with("%n")).then(|| operands[1].parse().ok())??;
    let new = (count + 1).to_string();
    operands[1] = &new;
    Some(join(guard, opcode, &operands))
}

/// Plants a mistake of every class in `new`, a right version of the kernel of `case`, and asks the checker.
///
/// # Errors
/// A mistake is proved.
pub fn ptx(case: &Case, new: &str, seed: u64, controls: &mut Controls) -> Result<(), Failure> {
    let expected = case::emulate(case, &case::strict()).map_err(Failure::Before)?;
    if new == case.text {
        idle(case, controls)?;
    }
    let right = Right {
        case,
        expected: &expected,
        text: new,
        assume: Guard::always(),
    };
    (0..MISTAKES.len()).try_for_each(|class| right.plant(class, seed, controls))
}

/// The kernel, and the kernel as it is printed from its typed view alone, must be proved to be the kernel.
///
/// # Errors
/// One of them is not.
pub fn idle(case: &Case, controls: &mut Controls) -> Result<(), Failure> {
    let canonical = warpwright_ptx::print::canonical(&case.module);
    let (canonical, _) = Module::parse("canonical.ptx", &canonical);
    for same in [&case.module, &canonical] {
        controls.idle += 1;
        match verdict(&case.module, same, &Guard::always()) {
            Verdict::Proved => controls.idle_proved += 1,
            other => return Err(Failure::Idle(other.to_string())),
        }
    }
    Ok(())
}

/// A right version of a kernel, to be spoiled.
pub struct Right<'c> {
    /// The kernel.
    pub case: &'c Case,
    /// What it leaves behind.
    pub expected: &'c Results,
    /// The version.
    pub text: &'c str,
    /// The launches that it is right for; the kernel's own is one.
    pub assume: Guard,
}

impl Right<'_> {
    /// Plants a mistake of one class of [`MISTAKES`], if there is a place for one.
    ///
    /// # Errors
    /// The mistake is proved.
    pub fn plant(&self, class: usize, seed: u64, controls: &mut Controls) -> Result<(), Failure> {
        let (name, mistake) = MISTAKES[class];
        let mut dice = Dice(seed.wrapping_mul(31).wrapping_add(class as u64));
        let Some(text) = spoiled_text(self.text, mistake, &mut dice) else {
            return Ok(());
        };
        let (module, diagnostics) = Module::parse("planted.ptx", &text);
        let is_valid = !diagnostics.iter().any(Diagnostic::is_error);
        if !is_valid || warpwright_ptx::verify::verify(&module).is_err() {
            return Ok(());
        }
        // What is never written may be read where nobody uses it. A loop whose counter is spoiled may not end.
        let options = Options {
            races: true,
            ..Options::default()
        };
        let Case { launch, inputs, .. } = self.case;
        let options = case::no_longer(self.expected, options);
        let found = case::emulate_module(&module, launch, inputs, &options);
        let is_mistake = !found.is_ok_and(|found| found.buffers == self.expected.buffers);
        let counted = controls.class(name);
        counted.planted += 1;
        if !is_mistake {
            return Ok(());
        }
        counted.mistakes += 1;
        if verdict(&self.case.module, &module, &self.assume) == Verdict::Proved {
            return Err(Failure::Proved { class: name, text });
        }
        counted.caught += 1;
        Ok(())
    }
}

/// A text with one line spoiled.
fn spoiled_text(text: &str, mistake: Mistake, dice: &mut Dice) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let spoiled = lines.iter().enumerate();
    let spoiled = spoiled.filter_map(|(i, line)| Some((i, mistake(line, dice)?)));
    let places: Vec<(usize, String)> = spoiled.collect();
    let (at, line) = places.get(dice.below(places.len()))?;
    lines[*at] = line;
    Some(lines.join("\n") + "\n")
}

fn verdict(original: &Module, new: &Module, assume: &Guard) -> Verdict {
    let options = warpwright_check::Options {
        assume: assume.clone(),
        ..Default::default()
    };
    let answers = check_modules(original, new, &options);
    let mut verdicts = answers.into_iter().map(|(_, verdict)| verdict);
    verdicts
        .find(|verdict| *verdict != Verdict::Proved)
        .unwrap_or(Verdict::Proved)
}

/// An instruction to another one; `None` where there is nothing to spoil.
type Spoil = fn(u128) -> Option<u128>;

/// Bits 0 to 11: the opcode, with the form of its operands (sm_75 and later).
fn opcode(bits: u128) -> u128 {
    bits & 0xfff
}

/// The guard that never holds.
fn never(bits: u128) -> u128 {
    bits & !(0xf << 12) | (0xf << 12)
}

const STG: u128 = 0x986;
const S2R: u128 = 0x919;
const BAR: u128 = 0xb1d;
const TID_X: u128 = 0x21;

/// The classes of mistakes in machine code: each is one wherever it is planted.
pub const SPOILS: [(&str, Spoil); 7] = [
    ("machine code: store lost", |bits| {
        (opcode(bits) == STG).then(|| never(bits))
    }),
    ("machine code: store elsewhere", |bits| {
        // Bits 40 to 63: a constant added to the address.
        (opcode(bits) == STG).then_some(bits ^ (8 << 40))
    }),
    ("machine code: another thread", |bits| {
        // Bits 72 to 79: the special register.
        let is_index = opcode(bits) == S2R && (bits >> 72) & 0xff == TID_X;
        is_index.then_some(bits ^ (3 << 72))
    }),
    ("machine code: barrier lost", |bits| {
        (opcode(bits) == BAR).then(|| never(bits))
    }),
    // Control fields: less than ptxas's own is never proved (docs/checker.md, 'The schedule').
    ("machine code: a shorter stall", |bits| {
        (field(bits, STALL) > 1).then(|| bits - (1 << STALL.0))
    }),
    ("machine code: a wait lost", |bits| {
        let waits = field(bits, WAITS);
        (waits != 0).then(|| bits ^ ((waits & waits.wrapping_neg()) << WAITS.0))
    }),
    ("machine code: a scoreboard not set", |bits| {
        let sets = field(bits, WRITE_SCOREBOARD) != 7;
        sets.then_some(bits | 7 << WRITE_SCOREBOARD.0)
    }),
];

/// The first so many of them change what is stored.
pub const IN_STORES: usize = 2;

/// The first so many of them change what is computed, in whatever a pass makes of a kernel, too.
pub const IN_VALUES: usize = 4;

/// The checker's words for code outside its model, of which only the very same bytes are proved.
const OUTSIDE: [&str; 2] = [
    "an instruction that is not known",
    "the stack pointer is used for more than spill code",
];

/// Fields of the control bits: the lowest bit, and how many.
const STALL: (u32, u32) = (105, 4);
const WRITE_SCOREBOARD: (u32, u32) = (110, 3);
const WAITS: (u32, u32) = (116, 6);

fn field(bits: u128, (at, width): (u32, u32)) -> u128 {
    (bits >> at) & ((1 << width) - 1)
}

/// A kernel's machine code, for blocks of a known size.
pub struct Code<'c> {
    /// The file.
    pub cubin: &'c [u8],
    /// Threads.
    pub block: [u32; 3],
}

impl Code<'_> {
    /// Why `new` is not proved to be a version of it, if it is not.
    pub(crate) fn open(&self, new: &[u8]) -> Result<Option<String>, Failure> {
        let verdict = self.verdict(new)?;
        Ok((!verdict.is_proved()).then(|| verdict.to_string()))
    }

    /// What the checker says of `new`: of several functions, the first verdict that is no proof.
    pub(crate) fn verdict(&self, new: &[u8]) -> Result<Verdict, ElfError> {
        let options = CubinOptions {
            block: Some(self.block),
            dynamic_smem: Some(0),
        };
        let answers = check_files(self.cubin, new, &options)?;
        let mut verdicts = answers.into_iter().map(|(_, answer)| answer.verdict);
        Ok(verdicts
            .find(|verdict| !verdict.is_proved())
            .unwrap_or(Verdict::Proved))
    }

    /// The code itself, and one in which an instruction stalls longer, must be proved; the latter where the checker
    /// has a model of the code.
    ///
    /// # Errors
    /// One of them is not.
    pub fn idle(&self, seed: u64, controls: &mut Controls) -> Result<(), Failure> {
        let longer = |bits: u128| {
            let stalls = (1..11).contains(&field(bits, STALL));
            stalls.then_some(bits + (1 << STALL.0))
        };
        let longer = spoil(self.cubin, longer, &mut Dice(seed))?;
        for (same, is_longer) in [(self.cubin, false)]
            .into_iter()
            .chain(longer.iter().map(|longer| (longer.as_slice(), true)))
        {
            let open = self.open(same)?;
            let is_outside = |why: &String| OUTSIDE.iter().any(|reason| why.contains(reason));
            if is_longer && open.as_ref().is_some_and(is_outside) {
                continue;
            }
            controls.idle += 1;
            match open {
                None => controls.idle_proved += 1,
                Some(why) => return Err(Failure::Idle(why)),
            }
        }
        Ok(())
    }

    /// Plants a mistake of one class of [`SPOILS`] in `new`, a right version of it, if it has a place for one.
    ///
    /// # Errors
    /// The mistake is proved, or the file cannot be read.
    pub fn plant(
        &self,
        new: &[u8],
        class: usize,
        seed: u64,
        controls: &mut Controls,
    ) -> Result<(), Failure> {
        let (class, mistake) = SPOILS[class];
        let mut dice = Dice(seed.wrapping_mul(37).wrapping_add(class.len() as u64));
        let Some(spoiled) = spoil(new, mistake, &mut dice)? else {
            return Ok(());
        };
        let counted = controls.class(class);
        counted.planted += 1;
        counted.mistakes += 1;
        if self.open(&spoiled)?.is_none() {
            let text = format!("seed {seed}");
            return Err(Failure::Proved { class, text });
        }
        counted.caught += 1;
        Ok(())
    }
}

/// The file with one instruction spoiled whose result is needed; `None` where there is nothing to spoil.
fn spoil(
    cubin: &[u8],
    spoil: impl Fn(u128) -> Option<u128>,
    dice: &mut Dice,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut new = Elf::parse(cubin)?;
    let needed = needed(&new)?;
    let code = new.sections.iter_mut();
    let code = code.filter(|s| s.name.starts_with(".text."));
    let mut places: Vec<(&mut [u8], u128)> = Vec::new();
    for section in code {
        let needed = needed.get(section.name.trim_start_matches(".text."));
        for (at, word) in section.data.chunks_exact_mut(16).enumerate() {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(word);
            let is_needed = needed.and_then(|needed| needed.get(at)) != Some(&false);
            let bits = u128::from_le_bytes(bytes);
            // A control field counts wherever it stands.
            let is_seen = |&spoiled: &u128| is_needed || (bits ^ spoiled) % (1 << STALL.0) == 0;
            if let Some(spoiled) = spoil(bits).filter(is_seen) {
                places.push((word, spoiled));
            }
        }
    }
    let chosen = dice.below(places.len());
    let Some((word, spoiled)) = places.get_mut(chosen) else {
        return Ok(None);
    };
    word.copy_from_slice(&spoiled.to_le_bytes());
    Ok(Some(new.write()?))
}

/// By kernel, which of its instructions do something that is seen: what another one does instead is no mistake.
fn needed(elf: &Elf) -> Result<BTreeMap<String, Vec<bool>>, ElfError> {
    let mut all = BTreeMap::new();
    for sections in elf.kernels()? {
        let Ok(code) = function::Code::new(elf, &sections, Calls::Followed) else {
            continue;
        };
        let insts = 0..code.inst_count() as u32;
        let seen: Vec<Seen> = insts.map(|at| Seen::new(&code, Inst(at))).collect();
        all.insert(sections.name.clone(), equal::needed(&code, &seen));
    }
    Ok(all)
}

/// The same in a kernel's machine code.
///
/// # Errors
/// A mistake is proved, or the file cannot be read.
pub fn machine_code(code: &Code<'_>, seed: u64, controls: &mut Controls) -> Result<(), Failure> {
    code.idle(seed, controls)?;
    for class in 0..SPOILS.len() {
        code.plant(code.cubin, class, seed, controls)?;
    }
    Ok(())
}

/// The controls of many kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// First seed, and how many were done.
    pub seeds: (u64, u64),
    /// What assembled, if anything did.
    pub assembled_by: Option<String>,
    /// Kernels that were assembled.
    pub assembled: u64,
    /// What came of them.
    pub controls: Controls,
    /// Seeds on which something does not hold, and what; must be empty.
    pub failures: Vec<(u64, String)>,
}

/// Which kernels.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// First seed.
    pub from: u64,
    /// Kernels at most.
    pub count: u64,
    /// No kernel is begun after so many seconds.
    pub seconds: u64,
    /// Threads.
    pub jobs: usize,
}

/// The controls of the kernels of a plan; with `ptxas`, those of their machine code, too, with 32 registers.
pub fn run(plan: Plan, ptxas: Option<&Ptxas<'_>>) -> Report {
    let until = Instant::now() + Duration::from_secs(plan.seconds);
    let next = AtomicU64::new(plan.from);
    let sum = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.max(1) {
            scope.spawn(|| {
                while Instant::now() < until {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= plan.from + plan.count {
                        break;
                    }
                    let mut controls = Controls::default();
                    let done = one(seed, ptxas, &mut controls);
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    sum.seeds.1 += 1;
                    sum.assembled += u64::from(ptxas.is_some());
                    sum.controls.add(&controls);
                    sum.failures
                        .extend(done.err().map(|e| (seed, e.to_string())));
                }
            });
        }
    });
    let mut report = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.seeds.0 = plan.from;
    report.failures.sort();
    let version = ptxas.and_then(|ptxas| ptxas.tool().version().ok());
    report.assembled_by = version.map(|version| format!("ptxas {version}"));
    report
}

fn one(seed: u64, ptxas: Option<&Ptxas<'_>>, controls: &mut Controls) -> Result<(), Failure> {
    let program = case::program(seed, false);
    let case = case::prepare(&program).map_err(Failure::Before)?;
    ptx(&case, &case.text, seed, controls)?;
    let Some(ptxas) = ptxas else { return Ok(()) };
    let mut job = PtxasJob::new(&case.text, "sm_90");
    job.maxrregcount = Some(32);
    let build = ptxas.run(&job).map_err(|e| Failure::Elf(e.to_string()))?;
    let block = [program.block as u32, 1, 1];
    let code = Code {
        cubin: &build.cubin,
        block,
    };
    machine_code(&code, seed, controls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_planted_and_caught() {
        let mut controls = Controls::default();
        for seed in 0..12 {
            let case = case::prepare(&case::program(seed, false)).unwrap();
            ptx(&case, &case.text, seed, &mut controls).unwrap();
        }
        let failing = controls.failing(Controls::in_ptx());
        assert_eq!(failing, Vec::<String>::new(), "{controls:?}");
    }

    /// A place of the thread that nobody looks at is none for a mistake.
    #[test]
    fn what_nobody_reads_is_not_spoiled() {
        let code = |read: &str| {
            let text = format!(
                ".sm 75\n.function k\n.parameters 0x160 8\n\
                 B------:R-:W0:-:S01:U---- S2R {read}, SR_TID.X\n\
                 B------:R-:W-:-:S04:U---- MOV R2, c[0x0][0x160]\n\
                 B------:R-:W-:-:S04:U---- MOV R3, c[0x0][0x164]\n\
                 B0-----:R-:W-:-:S04:U---- STG.E.SYS [R2], R5\n\
                 B------:R-:W-:-:S04:U---- EXIT\n"
            );
            warpwright_sass::text::assemble(&text).unwrap()
        };
        let (name, mistake) = SPOILS[2];
        assert!(name.ends_with("another thread"));
        let planted = |read| spoil(&code(read), mistake, &mut Dice(1)).unwrap();
        assert!(planted("R5").is_some());
        assert_eq!(planted("R7"), None);
    }
}
