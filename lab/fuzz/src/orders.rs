//! Other orders of machine code: right ones, which must be proved, and mistakes, which must not.
//!
//! Generated kernels, every other one of those that do little but touch memory ([`traffic`]), are assembled and scheduled.
//! The order is then spoiled: one instruction goes over others that it
//! depends on, by one class of dependence, and all control fields are made anew for the wrong order, so that the hazard
//! checker has nothing to say. Places are found by roles and opcodes alone, without the scheduler's graph. In more
//! classes the order stays, and a control field says less.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use warpwright_check::{CubinOptions, Verdict, answer};
use warpwright_flow::{Function as _, Inst, Transfer, Value};
use warpwright_sass::control::Control;
use warpwright_sass::function::{Calls, Code, value_of};
use warpwright_sass::ir::{Ir, Keep};
use warpwright_sass::isa::decode;
use warpwright_sass::roles::{File, Role};
use warpwright_sass::schedule::{Priority, Scheduler, reorder};
use warpwright_sass::{Elf, hazards};
use warpwright_toolkit::{Ptxas, PtxasJob};

use crate::case;
use crate::controls::{Class, Dice, Plan};
use crate::traffic;

/// What came of the kernels of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// First seed, and how many were done.
    pub seeds: (u64, u64),
    /// What assembled.
    pub assembled_by: Option<String>,
    /// Kernels with an order of ours, by the priority.
    pub scheduled: u64,
    /// Of these, proved.
    pub proved: u64,
    /// Instructions in them, and those that stand elsewhere.
    pub instructions: (u64, u64),
    /// Kernels that were left as they were, by the reason.
    pub refused: BTreeMap<String, u64>,
    /// Why right orders are not proved.
    pub undecided: BTreeMap<String, u64>,
    /// Mistakes by class.
    pub classes: BTreeMap<String, Class>,
    /// Seeds on which a mistake is proved, or something else does not hold, and what; must be empty.
    pub failures: Vec<(u64, String)>,
}

impl Report {
    fn add(&mut self, other: Report) {
        self.scheduled += other.scheduled;
        self.proved += other.proved;
        self.instructions.0 += other.instructions.0;
        self.instructions.1 += other.instructions.1;
        let tables = [
            (&mut self.refused, other.refused),
            (&mut self.undecided, other.undecided),
        ];
        for (own, more) in tables {
            for (reason, count) in more {
                *own.entry(reason).or_default() += count;
            }
        }
        for (name, class) in other.classes {
            let sum = self.classes.entry(name).or_default();
            sum.planted += class.planted;
            sum.mistakes += class.mistakes;
            sum.caught += class.caught;
        }
        self.failures.extend(other.failures);
    }

    /// Classes that were never planted.
    pub fn missing(&self) -> Vec<&'static str> {
        names()
            .filter(|name| !self.classes.contains_key(*name))
            .collect()
    }

    /// Classes of which so many were planted.
    fn full(&self, each: u64) -> BTreeSet<&'static str> {
        let planted = |name: &&str| self.classes.get(*name).map_or(0, |class| class.planted);
        names().filter(|name| planted(name) >= each).collect()
    }
}

/// What an instruction is, read off its words.
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) reads: Vec<Value>,
    pub(crate) writes: Vec<Value>,
    pub(crate) is_certain: bool,
    pub(crate) is_move: bool,
    is_uniform: bool,
    address: Option<(u64, i32, u32)>,
}

impl Seen {
    pub(crate) fn new(code: &Code, inst: Inst) -> Seen {
        let word = code.instructions()[inst.0 as usize];
        let mnemonic = decode(word).mnemonic();
        let name = mnemonic.split('.').next().unwrap_or_default().to_owned();
        let values = |wanted: Role| -> Vec<Value> {
            let spans = code.roles(inst).spans().iter();
            // What a predicate decides may come to the same, as in searches through arrays in registers.
            let spans = spans.filter(|span| span.role == wanted && span.file == File::Gpr);
            let each = |span: &warpwright_sass::roles::Span| {
                let file = span.file;
                span.registers().filter_map(move |n| value_of(file, n))
            };
            spans.flat_map(each).collect()
        };
        let mut spans = code.roles(inst).spans().iter();
        let is_uniform = spans.any(|span| matches!(span.file, File::Uniform | File::UniformPred));
        let offset = ((word.bits() >> 40) as u32 & 0xff_ffff) << 8;
        // The base register of an access, and its uniform one, where it has any.
        let base = (word.bits() >> 24) as u64 & 0xff;
        let address = matches!(&*name, "LDG" | "STG").then_some((
            base,
            offset as i32 >> 8,
            word.access_bytes(),
        ));
        Seen {
            reads: values(Role::Use),
            writes: values(Role::Def),
            is_certain: !code.is_predicated(inst),
            is_move: is_move(&code.inst_text(inst)),
            is_uniform,
            address,
            name,
        }
    }

    /// Does it show what it reads? ptxas leaves instructions whose results nobody reads.
    pub(crate) fn is_certain_store(&self) -> bool {
        self.is_certain && self.is(&["STG", "STS"])
    }

    pub(crate) fn is(&self, names: &[&str]) -> bool {
        names.contains(&&*self.name)
    }

    /// The same bytes for certain, if the base register has not changed in between.
    fn meets(&self, other: &Seen) -> bool {
        match (self.address, other.address) {
            (Some((base, at, bytes)), Some((other, to, more))) => {
                base == other && at < to + more as i32 && to < at + bytes as i32
            }
            _ => false,
        }
    }
}

/// MOV, and the multiply-add of nought that ptxas uses for it; `IMAD.MOV.U32 R2, RZ, RZ, -R3` is none.
fn is_move(text: &str) -> bool {
    text.contains("MOV") && !text.contains(", -")
}

const FENCES: &[&str] = &[
    "BAR", "MEMBAR", "NOP", "WARPSYNC", "ATOMG", "ATOMS", "ATOM", "RED",
];
const ACCESSES: &[&str] = &["LDG", "STG", "LDS", "STS"];
/// Their results come after some cycles, four at least on every architecture.
pub(crate) const QUICK: &[&str] = &["FADD", "FFMA", "FMUL", "IADD3", "IMAD", "LOP3", "SHF"];
const TOGETHER: &[&str] = &["SHFL", "VOTE", "MATCH", "REDUX", "HMMA"];

/// May the second of two instructions of a block, some others between them, not go before the first?
type Depends = fn(&[Seen], usize, usize) -> bool;

/// Classes of orders that are wrong.
const ORDERS: [(&str, Depends); 11] = [
    ("a reader before its writer", |seen, a, b| {
        let written = |value| seen[b].reads.contains(value) && !is_written(seen, a, b, *value);
        seen[a].is_certain && seen[b].is_certain_store() && seen[a].writes.iter().any(written)
    }),
    ("a writer before a reader", |seen, a, b| {
        let read = |value| seen[b].writes.contains(value) && !is_written(seen, a, b, *value);
        seen[b].is_certain && seen[a].is_certain_store() && seen[a].reads.iter().any(read)
    }),
    ("a writer before a writer", |seen, a, b| {
        let written = |value| {
            let next = seen[b + 1..]
                .iter()
                .find(|one| one.reads.contains(value) || one.writes.contains(value));
            let is_stored =
                next.is_some_and(|one| one.is_certain_store() && one.reads.contains(value));
            seen[b].writes.contains(value) && !seen[b].reads.contains(value) && is_stored
        };
        let is_certain = [a, b].iter().all(|&at| seen[at].is_certain);
        is_certain && seen[a].writes.iter().any(written)
    }),
    ("a load before the store of its bytes", |seen, a, b| {
        seen[a].is(&["STG"]) && seen[b].is(&["LDG"]) && seen[a].meets(&seen[b])
    }),
    ("a load before a store that may meet it", |seen, a, b| {
        seen[a].is(&["STG"]) && seen[b].is(&["LDG"]) && other_base(seen, a, b)
    }),
    ("a store before a load", |seen, a, b| {
        seen[a].is(&["LDG"])
            && seen[b].is(&["STG"])
            && (seen[a].meets(&seen[b]) || other_base(seen, a, b))
    }),
    ("a store before a store", |seen, a, b| {
        seen[a].is(&["STG"])
            && seen[b].is(&["STG"])
            && (seen[a].meets(&seen[b]) || other_base(seen, a, b))
    }),
    ("an access before a fence", |seen, a, b| {
        seen[a].is(FENCES) && seen[b].is(ACCESSES)
    }),
    ("a fence before an access", |seen, a, b| {
        seen[a].is(ACCESSES) && seen[b].is(FENCES)
    }),
    ("accesses to shared memory", |seen, a, b| {
        let both = [a, b].map(|at| seen[at].is(&["LDS", "STS"]));
        let stores = [a, b].map(|at| seen[at].is(&["STS"]));
        // The same store twice is the same in either order.
        let is_twice = stores == [true; 2] && seen[a].reads == seen[b].reads;
        both == [true; 2] && stores != [false; 2] && !is_twice
    }),
    ("what threads do together", |seen, a, b| {
        seen[a].is(TOGETHER) && seen[b].is(TOGETHER) && seen[a].name != seen[b].name
            || seen[a].is(FENCES) && seen[b].is(TOGETHER)
            || seen[a].is(&["BAR", "WARPSYNC", "NOP"]) && seen[b].is_uniform
    }),
];

pub(crate) fn is_written(seen: &[Seen], a: usize, b: usize, value: Value) -> bool {
    seen[a + 1..b].iter().any(|one| one.writes.contains(&value))
}

fn other_base(seen: &[Seen], a: usize, b: usize) -> bool {
    let base = |at: usize| seen[at].address.map(|address: (u64, i32, u32)| address.0);
    base(a) != base(b)
}

/// Classes of control fields that are wrong.
pub(crate) const WAIT_LOST: &str = "a wait lost";
pub(crate) const SCOREBOARD_NOT_SET: &str = "a scoreboard not set";
pub(crate) const STALL_TOO_SHORT: &str = "a stall too short";

/// All classes.
fn names() -> impl Iterator<Item = &'static str> {
    let fields = [WAIT_LOST, SCOREBOARD_NOT_SET, STALL_TOO_SHORT];
    ORDERS.iter().map(|order| order.0).chain(fields)
}

/// Mistakes of a class in one kernel.
const PLACES: usize = 4;
/// So far apart two instructions are at most.
const APART: usize = 24;
/// Registers per thread, taking turns; none is no limit.
const LIMITS: [Option<u32>; 3] = [None, Some(32), Some(40)];

/// What stays of control fields, taking turns.
const KEEPS: [Keep; 3] = [Keep::Blocks, Keep::Scoreboards, Keep::Nothing];

/// The kernels of a plan, until `each` mistakes of every class are planted.
pub fn run(plan: Plan, each: u64, ptxas: &Ptxas<'_>) -> Report {
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
                    let full = sum
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .full(each);
                    if full.len() == names().count() {
                        break;
                    }
                    let mut report = Report::default();
                    if let Err(why) = one(seed, ptxas, &full, &mut report) {
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
    let version = ptxas.tool().version().ok();
    report.assembled_by = version.map(|version| format!("ptxas {version}"));
    report
}

fn one(
    seed: u64,
    ptxas: &Ptxas<'_>,
    full: &BTreeSet<&str>,
    report: &mut Report,
) -> Result<(), String> {
    let (text, block) = match seed % 2 {
        0 => (traffic::kernel(seed), traffic::BLOCK),
        _ => {
            let program = case::program(seed, seed % 4 == 3);
            let case = case::prepare(&program).map_err(|e| e.to_string())?;
            (case.text, program.block as u32)
        }
    };
    let mut job = PtxasJob::new(&text, "sm_90");
    job.maxrregcount = LIMITS[(seed % LIMITS.len() as u64) as usize];
    let build = ptxas.run(&job).map_err(|e| e.to_string())?;
    kernel(&build.cubin, [block, 1, 1], (seed, full), report)
}

/// A kernel and its code.
struct Kernel {
    elf: Elf,
    name: String,
    code: Code,
    options: CubinOptions,
    keep: Keep,
}

impl Kernel {
    /// The code of `ir`, with control fields for it.
    fn emit(&self, ir: &Ir) -> Result<Elf, String> {
        let mut new = self.elf.clone();
        ir.emit(&mut new, self.keep).map_err(|e| e.to_string())?;
        Ok(new)
    }

    fn verdict(&self, new: &Elf) -> Verdict {
        answer(&self.elf, new, &self.name, &self.options).verdict
    }
}

/// A cubin, all its kernels, and mistakes of all classes but those that are `full`.
fn kernel(
    cubin: &[u8],
    block: [u32; 3],
    (seed, full): (u64, &BTreeSet<&str>),
    report: &mut Report,
) -> Result<(), String> {
    let elf = Elf::parse(cubin).map_err(|e| e.to_string())?;
    for sections in elf.kernels().map_err(|e| e.to_string())? {
        let code = Code::new(&elf, &sections, Calls::Followed).map_err(|e| e.to_string())?;
        let kernel = Kernel {
            name: sections.name.clone(),
            elf: elf.clone(),
            code,
            options: CubinOptions {
                block: Some(block),
                dynamic_smem: Some(0),
            },
            keep: KEEPS[(seed % KEEPS.len() as u64) as usize],
        };
        let mut scheduled = Vec::new();
        for priority in [Priority::Height, Priority::Place] {
            match right(&kernel, priority, report)? {
                Some(ir) => scheduled.push(ir),
                None => return Ok(()),
            }
        }
        let mut dice = Dice::new(seed);
        for ir in &scheduled {
            wrong_orders(&kernel, (ir, full), &mut dice, report)?;
        }
        wrong_fields(&kernel, (&scheduled[0], full), &mut dice, report)?;
    }
    Ok(())
}

fn count(table: &mut BTreeMap<String, u64>, reason: &str) {
    // Places and names differ from kernel to kernel.
    let words = reason
        .split_whitespace()
        .take_while(|&word| word != "original");
    let words = words.map(
        |word| match word.starts_with(|c: char| c.is_ascii_digit()) {
            true => "…",
            false => word,
        },
    );
    let text: Vec<&str> = words.take(16).collect();
    *table.entry(text.join(" ")).or_default() += 1;
}

/// Schedules it; none if that is refused, or not proved.
fn right(kernel: &Kernel, priority: Priority, report: &mut Report) -> Result<Option<Ir>, String> {
    let scheduler = match Scheduler::new(&kernel.code) {
        Ok(scheduler) => scheduler,
        Err(why) => {
            count(&mut report.refused, &why.to_string());
            return Ok(None);
        }
    };
    let mut ir = Ir::new(&kernel.elf, &kernel.name).map_err(|e| e.to_string())?;
    let mut moved = 0;
    for block in 0..ir.blocks.len() {
        let (estimate, order) = scheduler.block(&kernel.code, &ir.blocks[block], priority);
        if let Some(order) = order {
            reorder(&mut ir, block, &order);
            moved += u64::from(estimate.moved);
        }
    }
    let new = match kernel.emit(&ir) {
        Ok(new) => new,
        Err(why) => {
            count(&mut report.refused, &why);
            return Ok(None);
        }
    };
    let sections = new.kernel(&kernel.name).map_err(|e| e.to_string())?;
    let code = Code::new(&new, &sections, Calls::Followed).map_err(|e| e.to_string())?;
    let found = hazards::check(&code).map_err(|e| e.to_string())?;
    if let Some(first) = found.first() {
        return Err(format!("a hazard: {}", first.describe(&code)));
    }
    report.scheduled += 1;
    report.instructions.0 += code.instructions().len() as u64;
    report.instructions.1 += moved;
    match kernel.verdict(&new) {
        Verdict::Proved => {
            report.proved += 1;
            Ok(Some(ir))
        }
        other => {
            count(&mut report.undecided, &other.to_string());
            Ok(None)
        }
    }
}

fn wrong_orders(
    kernel: &Kernel,
    (ir, full): (&Ir, &BTreeSet<&str>),
    dice: &mut Dice,
    report: &mut Report,
) -> Result<(), String> {
    let blocks: Vec<Vec<Seen>> = ir
        .blocks
        .iter()
        .map(|block| {
            let places = block.iter().filter_map(|op| op.origin());
            places
                .map(|at| Seen::new(&kernel.code, Inst(at as u32)))
                .collect()
        })
        .collect();
    let is_next = |block: usize, at: usize| {
        let origin = ir.blocks[block][at].origin();
        origin.is_some_and(|at| kernel.code.transfer(Inst(at as u32)) == Transfer::Next)
    };
    for (name, depends) in ORDERS.into_iter().filter(|order| !full.contains(order.0)) {
        let mut places = Vec::new();
        for (number, seen) in blocks.iter().enumerate() {
            for b in 1..seen.len() {
                let first = b.saturating_sub(APART);
                let found = (first..b).rev().find(|&a| depends(seen, a, b));
                let found = found.filter(|&a| is_next(number, a) && is_next(number, b));
                places.extend(found.map(|a| (number, a, b)));
            }
        }
        for _ in 0..PLACES.min(places.len()) {
            let (block, a, b) = places.swap_remove(dice.below(places.len()));
            let mut wrong = ir.clone();
            wrong.blocks[block][a..=b].rotate_right(1);
            // Some orders cannot be written: distances that no stall count makes.
            let Ok(new) = kernel.emit(&wrong) else {
                continue;
            };
            let what = || {
                format!(
                    "block {block}: {} over {}",
                    ir_text(kernel, ir, block, b),
                    ir_text(kernel, ir, block, a)
                )
            };
            planted(kernel, name, &new, what, report)?;
        }
    }
    Ok(())
}

fn ir_text(kernel: &Kernel, ir: &Ir, block: usize, at: usize) -> String {
    let origin = ir.blocks[block][at].origin().unwrap_or(0);
    format!(
        "{:#x} {}",
        16 * origin,
        kernel.code.inst_text(Inst(origin as u32))
    )
}

/// Control fields that say less where they surely matter within their block: waits of instructions that read what was
/// loaded there and what nobody has waited for since, the scoreboards of those loads, and the stall before an instruction
/// that reads the last one's result. By class, the instructions with such a field.
pub(crate) fn fields(code: &Code, block: Range<usize>) -> Vec<(&'static str, usize, Control)> {
    let words = code.instructions();
    let start = block.start;
    let seen: Vec<Seen> = block.map(|at| Seen::new(code, Inst(at as u32))).collect();
    let mut found = Vec::new();
    for at in 0..seen.len() {
        let is_read = |setter: usize| {
            let mut written = seen[setter].writes.iter();
            written.any(|value| {
                seen[at].reads.contains(value) && !is_written(&seen, setter, at, *value)
            })
        };
        let waits = words[start + at].control().wait_mask;
        let follows = at > 0 && seen[at - 1].is(QUICK) && seen[at - 1].is_certain;
        if follows && waits == 0 && is_read(at - 1) {
            let mut control = words[start + at - 1].control();
            control.stall = 1;
            found.push((STALL_TOO_SHORT, start + at - 1, control));
        }
        for board in (0..6u8).filter(|board| waits >> board & 1 != 0) {
            let sets =
                |&earlier: &usize| words[start + earlier].control().write_barrier == Some(board);
            let Some(setter) = (0..at).rev().find(sets) else {
                continue;
            };
            // What comes later through the same queue may tell of it, too.
            let others = words[start + setter + 1..start + at].iter();
            let others = others.fold(waits & !(1 << board), |all, inst| {
                all | inst.control().wait_mask
            });
            if others == 0 && is_read(setter) {
                let mut control = words[start + at].control();
                control.wait_mask &= !(1 << board);
                found.push((WAIT_LOST, start + at, control));
                let mut control = words[start + setter].control();
                control.write_barrier = None;
                found.push((SCOREBOARD_NOT_SET, start + setter, control));
            }
        }
    }
    found
}

fn wrong_fields(
    kernel: &Kernel,
    (ir, full): (&Ir, &BTreeSet<&str>),
    dice: &mut Dice,
    report: &mut Report,
) -> Result<(), String> {
    let new = kernel.emit(ir)?;
    let sections = new.kernel(&kernel.name).map_err(|e| e.to_string())?;
    let code = Code::new(&new, &sections, Calls::Followed).map_err(|e| e.to_string())?;
    let words = code.instructions();
    let mut places: BTreeMap<&str, Vec<(usize, Control)>> = BTreeMap::new();
    let mut start = 0;
    for block in &ir.blocks {
        for (name, at, control) in fields(&code, start..start + block.len()) {
            places.entry(name).or_default().push((at, control));
        }
        start += block.len();
    }
    for (name, mut places) in places.into_iter().filter(|class| !full.contains(class.0)) {
        for _ in 0..PLACES.min(places.len()) {
            let (at, control) = places.swap_remove(dice.below(places.len()));
            let mut wrong = words.to_vec();
            wrong[at] = words[at].with_control(control).map_err(|e| e.to_string())?;
            let mut spoiled = new.clone();
            spoiled
                .set_code(&sections, &wrong)
                .map_err(|e| e.to_string())?;
            let what = || format!("{:#x} {}", 16 * at, code.inst_text(Inst(at as u32)));
            planted(kernel, name, &spoiled, what, report)?;
        }
    }
    Ok(())
}

fn planted(
    kernel: &Kernel,
    name: &str,
    new: &Elf,
    what: impl Fn() -> String,
    report: &mut Report,
) -> Result<(), String> {
    let class = report.classes.entry(name.to_owned()).or_default();
    class.planted += 1;
    class.mistakes += 1;
    if kernel.verdict(new) == Verdict::Proved {
        return Err(format!("a planted mistake is proved: {name}: {}", what()));
    }
    class.caught += 1;
    Ok(())
}
