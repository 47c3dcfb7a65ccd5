//! One wrong edit in machine code that is proved: none of these may be.
//!
//! Generated kernels, every other one of those that do little but touch memory ([`traffic`]), are assembled, and the passes
//! over machine code make versions of them. In each version that is proved, and in the original, one edit is planted at a
//! time: a control field says less, a dependence is turned round, a register, predicate, slot or number is another one.
//! Places are found by roles, opcodes and blocks alone, where the edit surely matters; the checker is asked about the
//! original and what the edit left.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use warpwright_flow::{Cfg, Function as _, Inst, Transfer, Value};
use warpwright_sass::function::{Calls, Code, register_of, value_of};
use warpwright_sass::roles::{File, Role, Span};
use warpwright_sass::{Elf, Instruction};

use crate::case::{self, Plan as Sizes};
use crate::controls::{self, Class, Dice, Plan};
use crate::equal::{self, Numbers};
use crate::machine_code::{self, Assembler, Run};
use crate::orders::{
    QUICK, SCOREBOARD_NOT_SET, STALL_TOO_SHORT, Seen, WAIT_LOST, fields, is_written,
};
use crate::traffic;

/// What came of the kernels of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// First seed, and how many were done.
    pub seeds: (u64, u64),
    /// What assembled.
    pub assembled_by: Option<String>,
    /// Versions that were attacked, by the passes that wrote them.
    pub versions: BTreeMap<String, u64>,
    /// Edits by class.
    pub classes: BTreeMap<String, Class>,
    /// Seeds on which an edit is proved, or something else does not hold, and what; must be empty.
    pub failures: Vec<(u64, String)>,
}

impl Report {
    fn add(&mut self, other: Report) {
        for (name, count) in other.versions {
            *self.versions.entry(name).or_default() += count;
        }
        for (name, class) in other.classes {
            let sum = self.classes.entry(name).or_default();
            sum.planted += class.planted;
            sum.mistakes += class.mistakes;
            sum.caught += class.caught;
        }
        self.failures.extend(other.failures);
    }

    /// Edits that were planted.
    pub fn planted(&self) -> u64 {
        self.classes.values().map(|class| class.planted).sum()
    }

    /// Classes that were never planted.
    pub fn missing(&self) -> Vec<&'static str> {
        let names = CLASSES.iter().map(|class| class.0);
        names
            .filter(|name| !self.classes.contains_key(*name))
            .collect()
    }
}

/// What an edit does to the code.
enum Edit {
    /// Other words at some places.
    Words(Vec<(usize, Instruction)>),
    /// One instruction, with its control field, goes to the place of another one.
    Move { from: usize, to: usize },
}

impl Edit {
    fn one(at: usize, word: Instruction) -> Edit {
        Edit::Words(vec![(at, word)])
    }

    fn of(&self, words: &[Instruction]) -> Vec<Instruction> {
        let mut new = words.to_vec();
        match self {
            Edit::Words(all) => all.iter().for_each(|&(at, word)| new[at] = word),
            &Edit::Move { from, to } => {
                let word = new.remove(from);
                new.insert(to, word);
            }
        }
        new
    }
}

/// A version's code, by blocks.
struct View<'c> {
    code: &'c Code,
    words: &'c [Instruction],
    seen: Vec<Seen>,
    /// What something shows: an edit of anything else is right.
    needed: Vec<bool>,
    /// Blocks that are reached.
    blocks: Vec<Range<usize>>,
    /// Where the original's static shared memory ends, in bytes.
    shared: i32,
}

impl<'c> View<'c> {
    fn new(code: &'c Code, shared: i32) -> View<'c> {
        let cfg = Cfg::new(code);
        let words = code.instructions();
        let range = |block| cfg.first_inst(block).0 as usize..cfg.last_inst(block).0 as usize + 1;
        let seen = (0..words.len() as u32).map(|at| Seen::new(code, Inst(at)));
        let seen: Vec<Seen> = seen.collect();
        View {
            code,
            needed: equal::needed(code, &seen),
            seen,
            blocks: cfg.reverse_postorder().iter().map(|&b| range(b)).collect(),
            words,
            shared,
        }
    }

    fn reached(&self) -> impl Iterator<Item = usize> + '_ {
        self.blocks.iter().cloned().flatten()
    }

    /// Pairs of instructions of a block, the later one at most [`APART`] behind the earlier one.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let blocks = self.blocks.iter();
        blocks.flat_map(|block| {
            let (start, end) = (block.start, block.end);
            (start..end)
                .flat_map(move |b| (start.max(b.saturating_sub(APART))..b).map(move |a| (a, b)))
        })
    }

    fn goes_on(&self, at: usize) -> bool {
        self.code.transfer(Inst(at as u32)) == Transfer::Next
    }

    fn is_movable(&self, at: usize) -> bool {
        self.goes_on(at) && !self.seen[at].is(&["BSSY", "BSYNC", "NOP"])
    }

    fn spans(&self, at: usize) -> impl Iterator<Item = Span> + '_ {
        self.code.roles(Inst(at as u32)).spans().iter().copied()
    }

    /// Uniform registers in one role.
    fn uniform(&self, at: usize, role: Role) -> Vec<Value> {
        let spans = self.spans(at);
        let spans = spans.filter(|span| span.role == role && span.file == File::Uniform);
        let each = |span: Span| {
            let file = span.file;
            span.registers().filter_map(move |n| value_of(file, n))
        };
        spans.flat_map(each).collect()
    }

    /// Is the result of `at` read in its block, before anything else is written there?
    fn is_shown(&self, at: usize, end: usize) -> bool {
        self.seen[at].writes.iter().any(|value| {
            let touches = |one: &&Seen| one.reads.contains(value) || one.writes.contains(value);
            let next = self.seen[at + 1..end].iter().find(touches);
            next.is_some_and(|next| next.reads.contains(value))
        })
    }

    /// Is a predicate that `at` writes the guard of a move?
    fn chooses_moves(&self, at: usize) -> bool {
        let predicates = |at: usize, role: Role| {
            let spans = self.spans(at);
            let spans = spans.filter(move |span| span.role == role && span.file == File::Pred);
            spans.filter_map(|span| value_of(span.file, span.first))
        };
        let moves = |at: usize| self.seen[at].is_move && !self.seen[at].is_certain;
        predicates(at, Role::Def).any(|written| {
            let is_read = |later: usize| predicates(later, Role::Use).any(|one| one == written);
            let is_written = |later: usize| predicates(later, Role::Def).any(|one| one == written);
            let behind = (at + 1..self.words.len()).take_while(|&later| !is_written(later));
            { behind }.any(|later| moves(later) && is_read(later))
        })
    }

    fn with(&self, at: usize, field: Field, value: u128) -> Instruction {
        self.words[at].with_bits(field.set(self.words[at].bits(), value))
    }
}

/// Lowest bit and width.
#[derive(Clone, Copy)]
struct Field(u32, u32);

impl Field {
    fn mask(self) -> u128 {
        ((1 << self.1) - 1) << self.0
    }

    fn get(self, word: Instruction) -> u128 {
        (word.bits() & self.mask()) >> self.0
    }

    fn set(self, bits: u128, value: u128) -> u128 {
        bits & !self.mask() | (value << self.0) & self.mask()
    }
}

/// Where operands stand is the form's.
const FORM: Field = Field(9, 3);
const FORM_IMMEDIATE: u128 = 4;
const FORMS_CONSTANT: [u128; 2] = [3, 5];
const GUARD: Field = Field(12, 3);
const ALWAYS: u128 = 7;
/// A result's register.
const RESULT: Field = Field(16, 8);
/// The base of an address, and what is added to it.
const BASE: Field = Field(24, 8);
const OFFSET: Field = Field(40, 24);
/// Words of the constant bank; the first ones are the block's extents.
const CONSTANT: Field = Field(40, 14);
const EXTENTS_END: u128 = 4;
/// What is stored.
const DATA: Field = Field(32, 8);
/// A barrier's number.
const BARRIER: Field = Field(54, 4);
/// The field of the control bits that says how long to stall.
const STALL: Field = Field(105, 4);

/// So far apart two instructions are at most.
const APART: usize = 24;
/// Edits of a class in one version.
const PLACES: usize = 2;

/// Finds the edits of a class.
type Find = fn(&View<'_>) -> Vec<(usize, Edit)>;

/// The classes.
const CLASSES: [(&str, Find); 18] = [
    (STALL_TOO_SHORT, |view| of_fields(view, STALL_TOO_SHORT)),
    (WAIT_LOST, |view| of_fields(view, WAIT_LOST)),
    (SCOREBOARD_NOT_SET, |view| {
        of_fields(view, SCOREBOARD_NOT_SET)
    }),
    ("a wait too early to see its scoreboard", early_waits),
    ("a read scoreboard not set", read_scoreboards),
    ("a reader before its writer", |view| {
        moved(view, reads_result)
    }),
    ("a writer before a reader", |view| moved(view, overwrites)),
    ("another barrier", barriers),
    ("a uniform register written behind its reader", late_uniform),
    ("another uniform register", |view| {
        registers(view, File::Uniform)
    }),
    ("another register is stored", stored),
    ("a result over another value", clobbered),
    ("two slots become one", overlapping),
    ("another slot", slots),
    ("a guard negated", guards),
    ("another comparison", comparisons),
    ("another immediate", immediates),
    ("another constant", constants),
];

fn of_fields(view: &View<'_>, class: &str) -> Vec<(usize, Edit)> {
    let all = view.blocks.iter();
    let all = all.flat_map(|block| fields(view.code, block.clone()));
    let all = all.filter(|found| found.0 == class);
    all.filter_map(|(_, at, control)| {
        let word = view.words[at].with_control(control).ok()?;
        Some((at, Edit::one(at, word)))
    })
    .collect()
}

/// The wait goes right behind what sets the scoreboard, one cycle later: that sees nothing of it.
fn early_waits(view: &View<'_>) -> Vec<(usize, Edit)> {
    let mut found = Vec::new();
    for block in &view.blocks {
        let lost = fields(view.code, block.clone());
        let lost = lost.into_iter().filter(|one| one.0 == WAIT_LOST);
        for (_, at, control) in lost {
            let was = view.words[at].control().wait_mask;
            let board = was & !control.wait_mask;
            let sets = |&at: &usize| {
                let set = view.words[at].control().write_barrier;
                set.is_some_and(|set| 1 << set == board)
            };
            let setter = (block.start..at).rev().find(sets);
            let Some(setter) = setter.filter(|setter| setter + 1 < at) else {
                continue;
            };
            let mut next = view.words[setter + 1].control();
            next.wait_mask |= board;
            let words = [
                (at, view.words[at].with_control(control)),
                (setter + 1, view.words[setter + 1].with_control(next)),
            ];
            let words = words
                .into_iter()
                .filter_map(|(at, word)| Some((at, word.ok()?)));
            let mut words: Vec<_> = words.collect();
            words.push((setter, view.with(setter, STALL, 1)));
            found.push((at, Edit::Words(words)));
        }
    }
    found
}

/// What reads late tells nobody when it has read, and what overwrites its source waits for nothing else. Nor does anything
/// behind it tell by the same scoreboard, which would speak for both.
fn read_scoreboards(view: &View<'_>) -> Vec<(usize, Edit)> {
    let mut found = Vec::new();
    for (a, b) in view.pairs() {
        let mut control = view.words[a].control();
        let Some(board) = control.read_barrier else {
            continue;
        };
        let overwrites = |value: &Value| {
            view.seen[b].writes.contains(value) && !is_written(&view.seen, a, b, *value)
        };
        let between = view.words[a + 1..=b].iter().map(|word| word.control());
        let waits = between.clone().fold(0, |all, one| all | one.wait_mask);
        let is_last = !between
            .clone()
            .any(|one| [one.read_barrier, one.write_barrier].contains(&Some(board)));
        let is_only = control.write_barrier.is_none() && waits == 1 << board && is_last;
        if is_only && view.seen[b].is(QUICK) && view.seen[a].reads.iter().any(overwrites) {
            control.read_barrier = None;
            let word = view.words[a].with_control(control);
            found.extend(word.ok().map(|word| (a, Edit::one(a, word))));
        }
    }
    found
}

/// May the second of two instructions of a block not go before the first?
type Depends = fn(&View<'_>, usize, usize) -> bool;

fn moved(view: &View<'_>, depends: Depends) -> Vec<(usize, Edit)> {
    let pairs = view.pairs();
    let pairs = pairs.filter(|&(a, b)| view.is_movable(a) && view.is_movable(b));
    let pairs = pairs.filter(|&(a, b)| depends(view, a, b));
    pairs
        .map(|(a, b)| (b, Edit::Move { from: b, to: a }))
        .collect()
}

/// What comes out of a slot may stand in the register already.
fn reads_result(view: &View<'_>, a: usize, b: usize) -> bool {
    let [writer, reader] = [a, b].map(|at| &view.seen[at]);
    if writer.is(&["LDL", "LDS"]) {
        return false;
    }
    let reads =
        |value: &Value| reader.reads.contains(value) && !is_written(&view.seen, a, b, *value);
    writer.is_certain && reader.is_certain_store() && writer.writes.iter().any(reads)
}

fn overwrites(view: &View<'_>, a: usize, b: usize) -> bool {
    let [reader, writer] = [a, b].map(|at| &view.seen[at]);
    let writes =
        |value: &Value| writer.writes.contains(value) && !is_written(&view.seen, a, b, *value);
    writer.is_certain && reader.is_certain_store() && reader.reads.iter().any(writes)
}

/// The kernel has as many barriers as it says.
fn barriers(view: &View<'_>) -> Vec<(usize, Edit)> {
    let all = view.reached().filter(|&at| view.seen[at].is(&["BAR"]));
    let all = all.filter(|&at| FORM.get(view.words[at]) == FORMS_CONSTANT[1]);
    all.map(|at| {
        let other = BARRIER.get(view.words[at]) ^ 1;
        (at, Edit::one(at, view.with(at, BARRIER, other)))
    })
    .collect()
}

/// The register has no other writer, so the reader finds nothing in it.
fn late_uniform(view: &View<'_>) -> Vec<(usize, Edit)> {
    let mut writers: BTreeMap<Value, usize> = BTreeMap::new();
    for at in 0..view.words.len() {
        for value in view.uniform(at, Role::Def) {
            *writers.entry(value).or_default() += 1;
        }
    }
    let reads = |a: usize, b: usize| {
        let written = view.uniform(a, Role::Def);
        let read = view.uniform(b, Role::Use);
        let is_one = |value: &Value| writers.get(value) == Some(&1) && read.contains(value);
        view.seen[b].is(&["LDG", "STG"]) && written.iter().any(is_one)
    };
    let pairs = view.pairs();
    let pairs = pairs.filter(|&(a, b)| view.is_movable(a) && view.is_movable(b) && reads(a, b));
    pairs
        .map(|(a, b)| (a, Edit::Move { from: a, to: b }))
        .collect()
}

/// What names registers of a file as sources of an access names others.
fn registers(view: &View<'_>, file: File) -> Vec<(usize, Edit)> {
    let accesses = view
        .reached()
        .filter(|&at| view.seen[at].is(&["LDG", "STG"]));
    let each = |at: usize| {
        let spans = view.spans(at).filter(move |span| {
            span.role == Role::Use && span.file == file && span.count.is_power_of_two()
        });
        spans.map(move |span| {
            // Uniform registers have six bits on every architecture.
            let field = Field(u32::from(span.bit), 6);
            let other = u128::from(span.first ^ span.count) & 0x3f;
            (at, Edit::one(at, view.with(at, field, other)))
        })
    };
    accesses.flat_map(each).collect()
}

/// The other register holds another value.
fn stored(view: &View<'_>) -> Vec<(usize, Edit)> {
    let mut found = Vec::new();
    for block in &view.blocks {
        let mut numbers = Numbers::default();
        for at in block.clone() {
            let stores = view.seen[at].is_certain_store();
            let data = view.spans(at).find(|span| {
                span.role == Role::Use && span.file == File::Gpr && u32::from(span.bit) == DATA.0
            });
            if let Some(data) = data.filter(|_| stores) {
                let other = data.first ^ data.count.next_power_of_two();
                if !numbers.are_same(data.first, other, data.count) {
                    let word = view.with(at, DATA, other.into());
                    found.push((at, Edit::one(at, word)));
                }
            }
            numbers.pass(view.code, Inst(at as u32));
        }
    }
    found
}

/// A result comes into a register whose value is stored later on. A move onto its own source changes nothing there.
fn clobbered(view: &View<'_>) -> Vec<(usize, Edit)> {
    let mut found = Vec::new();
    for (a, b) in view.pairs() {
        let [own, store] = [a, b].map(|at| &view.seen[at]);
        if !own.is(QUICK) || !own.is_certain || own.writes.len() != 1 || !store.is_certain_store() {
            continue;
        }
        let is_other = |value: &&Value| {
            let is_own = own.writes.contains(value) || own.is_move && own.reads.contains(value);
            !is_own && !is_written(&view.seen, a, b, **value)
        };
        for value in store.reads.iter().filter(is_other) {
            let number = register_of(*value).map(|register| u128::from(register.1));
            let edit = number.map(|number| Edit::one(a, view.with(a, RESULT, number)));
            found.extend(edit.map(|edit| (a, edit)));
        }
    }
    found
}

/// An access to a slot.
struct Slot {
    is_store: bool,
    /// The instruction and the base of its address.
    kind: (bool, u128),
    offset: i32,
    bytes: i32,
    data: u128,
}

impl Slot {
    fn of(view: &View<'_>, at: usize) -> Option<Slot> {
        let (seen, word) = (&view.seen[at], view.words[at]);
        let is_store = seen.is(&["STL", "STS"]);
        let is_local = seen.is(&["STL", "LDL"]);
        if !is_store && !is_local && !seen.is(&["LDS"]) || !seen.is_certain {
            return None;
        }
        let offset = ((OFFSET.get(word) as u32) << 8) as i32 >> 8;
        let data = if is_store { DATA } else { RESULT };
        (is_local || offset >= view.shared).then_some(Slot {
            is_store,
            kind: (is_local, BASE.get(word)),
            offset,
            bytes: word.access_bytes() as i32,
            data: data.get(word),
        })
    }

    fn meets(&self, other: &Slot) -> bool {
        self.kind == other.kind
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }
}

/// A slot becomes another one whose value is stored while the first one waits.
fn overlapping(view: &View<'_>) -> Vec<(usize, Edit)> {
    let mut found = Vec::new();
    for block in &view.blocks {
        let slots = block
            .clone()
            .filter_map(|at| Some((at, Slot::of(view, at)?)));
        let slots: Vec<(usize, Slot)> = slots.collect();
        for (place, (at, load)) in slots.iter().enumerate() {
            if load.is_store || !view.is_shown(*at, block.end) {
                continue;
            }
            let before = &slots[..place];
            let own = before
                .iter()
                .rposition(|(_, one)| one.is_store && one.meets(load));
            let Some(own) = own.filter(|&own| before[own].1.offset == load.offset) else {
                continue;
            };
            let (from, store) = &before[own];
            let other = before[own + 1..].iter().find(|(_, other)| {
                other.is_store
                    && other.kind == load.kind
                    && [other.bytes, store.bytes] == [load.bytes; 2]
                    && other.data != store.data
            });
            if let Some((_, other)) = other {
                let offset = other.offset as u32 as u128;
                let words = [*from, *at].map(|at| (at, view.with(at, OFFSET, offset)));
                found.push((*at, Edit::Words(words.to_vec())));
            }
        }
    }
    found
}

fn slots(view: &View<'_>) -> Vec<(usize, Edit)> {
    let mut found = Vec::new();
    for block in &view.blocks {
        for at in block.clone() {
            let Some(slot) = Slot::of(view, at) else {
                continue;
            };
            if !slot.is_store && view.is_shown(at, block.end) {
                let other = OFFSET.get(view.words[at]) ^ slot.bytes as u128;
                found.push((at, Edit::one(at, view.with(at, OFFSET, other))));
            }
        }
    }
    found
}

fn guards(view: &View<'_>) -> Vec<(usize, Edit)> {
    let all = view
        .reached()
        .filter(|&at| view.seen[at].is(&["STG", "STS", "BRA", "ATOMG", "REDG"]));
    let all = all.filter(|&at| GUARD.get(view.words[at]) != ALWAYS);
    all.map(|at| {
        let bits = view.words[at].bits() ^ 1 << (GUARD.0 + GUARD.1);
        (at, Edit::one(at, view.words[at].with_bits(bits)))
    })
    .collect()
}

/// Equality and order become something else: less becomes less or equal. Moves under guards search through an array in
/// registers, whose elements may be the same.
fn comparisons(view: &View<'_>) -> Vec<(usize, Edit)> {
    let all = view.reached().filter(|&at| view.seen[at].is(&["ISETP"]));
    let all = all.filter(|&at| !view.chooses_moves(at));
    all.map(|at| {
        let bits = view.words[at].bits() ^ 1 << 77;
        (at, Edit::one(at, view.words[at].with_bits(bits)))
    })
    .collect()
}

fn immediates(view: &View<'_>) -> Vec<(usize, Edit)> {
    let all = view
        .reached()
        .filter(|&at| view.goes_on(at) && view.seen[at].is(QUICK));
    let all = all.filter(|&at| FORM.get(view.words[at]) == FORM_IMMEDIATE);
    all.map(|at| {
        let bits = view.words[at].bits() ^ 1 << 33;
        (at, Edit::one(at, view.words[at].with_bits(bits)))
    })
    .collect()
}

/// The next but one word of the constant bank. Nobody may read the stack pointer; a block that is a line multiplies its
/// extents by nought.
fn constants(view: &View<'_>) -> Vec<(usize, Edit)> {
    let is_constant = |&at: &usize| {
        let is_operand = FORMS_CONSTANT.contains(&FORM.get(view.words[at]));
        let is_load = view.seen[at].is(&["LDC", "ULDC"]);
        is_load || is_operand && view.seen[at].is(QUICK)
    };
    let writes_stack = |at: usize| {
        let mut registers = view.seen[at].writes.iter().copied().filter_map(register_of);
        registers.any(|register| register == (File::Gpr, 1))
    };
    let all = view
        .reached()
        .filter(is_constant)
        .filter(|&at| !writes_stack(at) && CONSTANT.get(view.words[at]) >= EXTENTS_END);
    all.map(|at| {
        let bits = view.words[at].bits() ^ 1 << 41;
        (at, Edit::one(at, view.words[at].with_bits(bits)))
    })
    .collect()
}

/// The kernels of a plan.
pub fn run(plan: Plan, assembler: &Assembler) -> Report {
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
                    let mut report = Report::default();
                    if let Err(why) = kernel(seed, assembler, &mut report) {
                        report.failures.push((seed, why));
                    }
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    sum.seeds.1 += 1;
                    sum.add(report);
                }
            });
        }
    });
    let mut report = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.seeds.0 = plan.from;
    report.failures.sort();
    report.assembled_by = assembler.version().ok();
    report
}

fn kernel(seed: u64, assembler: &Assembler, report: &mut Report) -> Result<(), String> {
    let case = match seed % 2 {
        0 => case::of_text(traffic::kernel(seed), &traffic::launch_toml()),
        _ => case::prepare(&machine_code::program(Sizes::Sizes, seed / 2)),
    };
    let case = case.map_err(|e| e.to_string())?;
    // Limits and options of passes take turns, too.
    let versions = machine_code::versions(case, seed.wrapping_mul(8), assembler);
    let versions = versions.map_err(|e| e.to_string())?;
    let original = controls::Code {
        cubin: versions.original.bytes(),
        block: versions.launch.block,
    };
    let mut dice = Dice::new(seed);
    for (run, new) in &versions.proved {
        let name = match run.recipe.passes() {
            [] => "as assembled".to_owned(),
            passes => passes.iter().map(|pass| pass.name()).collect(),
        };
        *report.versions.entry(name).or_default() += 1;
        version(&original, (run, new.bytes()), &mut dice, report)?;
    }
    Ok(())
}

/// Plants edits of every class in a version.
fn version(
    original: &controls::Code<'_>,
    (run, new): (&Run, &[u8]),
    dice: &mut Dice,
    report: &mut Report,
) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let [before, elf] = [original.cubin, new].map(Elf::parse);
    let (before, elf) = (before.map_err(|e| text(&e))?, elf.map_err(|e| text(&e))?);
    for sections in elf.kernels().map_err(|e| text(&e))? {
        let old = before.kernel(&sections.name).map_err(|e| text(&e))?;
        let shared = before.shared_bytes(&old) as i32;
        let code = Code::new(&elf, &sections, Calls::Followed).map_err(|e| text(&e))?;
        let view = View::new(&code, shared);
        for (name, find) in CLASSES {
            let mut edits = find(&view);
            edits.retain(|(at, _)| view.needed[*at]);
            for _ in 0..PLACES.min(edits.len()) {
                let (at, edit) = edits.swap_remove(dice.below(edits.len()));
                let words = edit.of(view.words);
                if words == view.words {
                    continue;
                }
                let mut spoiled = elf.clone();
                spoiled.set_code(&sections, &words).map_err(|e| text(&e))?;
                let bytes = spoiled.write().map_err(|e| text(&e))?;
                let class = report.classes.entry(name.to_owned()).or_default();
                class.planted += 1;
                class.mistakes += 1;
                match original.open(&bytes).map_err(|e| text(&e))? {
                    Some(_) => class.caught += 1,
                    None => {
                        let place = code.inst_text(Inst(at as u32));
                        let failure = format!("proved: {name} at {:#x} {place} ({run})", 16 * at);
                        return Err(failure);
                    }
                }
            }
        }
    }
    Ok(())
}
