//! `allocate`: give values registers up to a limit, and slots beyond it.
//!
//! Goal: a kernel that needs no more registers than a design point of CRAT gives it. Paper: CRAT section
//! 5. The allocation and its departures are in `regs::allocate` and `regs::substacks`; the text of spill
//! code comes from `ptx::spill`; here the kernel is written anew with the names that the allocation
//! gives: `%rN` is register N, `%rdN` the pair 2N and 2N + 1.
//!
//! Requires a kernel whose opcodes are all known, without vector registers, registers of 8 bits or
//! debug information (which names registers). Preserves what each thread computes, bit by bit; ptxas may
//! fuse other operations than before ([`fusion`]). Copies that became `mov` of a register to itself are
//! dropped.

use std::collections::BTreeSet;

use warpwright_flow::{Function as _, Value};
use warpwright_ptx::spill as text;
use warpwright_ptx::{EditError, Edits, FuncId, Module, Type, TypeKind, View};
use warpwright_regs::allocate::{
    Added, AllocateError, Allocation, Limits, allocate as allocate_registers,
};
use warpwright_regs::frame::Layout;
use warpwright_regs::substacks::{Cut, Shared};

use crate::pass::{Caution, Fuel, Outcome, Pass, Rewritten, Work};
use crate::ptx::draft_code::{DraftCode, Masks, promise};
use crate::ptx::facts::{pressure, register, view};
use crate::ptx::fusion;
use crate::ptx::goal::goal;
use crate::ptx::spare::{Bound, bound, declared_bytes, spare_shared};

use crate::ptx::spill_shared::address_class;
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::Site;

/// Where slots may lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SlotSpace {
    /// In shared memory where it is free and saves accesses, the rest in local memory.
    #[default]
    Shared,
    /// In local memory.
    Local,
}

/// The pass: a design point, and how to spill for it.
#[derive(Debug, Clone, Copy)]
pub struct Allocate {
    /// 32-bit registers per thread; without it, one step of the occupancy staircase below the pressure.
    pub registers: Option<u32>,
    /// Blocks that must stay resident on an SM as far as shared memory goes (the point's TLP); without it,
    /// those that reside with so many registers.
    pub blocks: Option<u32>,
    /// Where slots may lie.
    pub space: SlotSpace,
    /// How the spill stack is cut.
    pub cut: Cut,
}

crate::words!(SlotSpace: SlotSpace::Shared = "shared", SlotSpace::Local = "local");
crate::words!(Cut: Cut::Cell = "cell", Cut::Class = "class");
crate::options!(Allocate: [registers "32-bit registers per thread [default: one step of the staircase down]"];
    [blocks: Option<u32> = None, "blocks per SM that stay resident [default: those of so many registers]";
    space: SlotSpace = SlotSpace::Shared, "where slots may lie: in shared memory where it is free, or local only";
    cut: Cut = Cut::Cell, "one sub-stack for each piece of memory, or the paper's classes"]);

impl Allocate {
    /// A point with the default layout and cut.
    pub fn new(registers: u32, blocks: Option<u32>) -> Allocate {
        Allocate {
            registers: Some(registers),
            blocks,
            space: SlotSpace::Shared,
            cut: Cut::Cell,
        }
    }
}

impl Pass for Allocate {
    const NAME: &'static str = "allocate";
    const ABOUT: &'static str = "give values registers up to a limit, and slots beyond it (CRAT)";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn work(&self) -> Work<Self> {
        Work::Ptx(allocate)
    }
}

/// How many times as many registers as a thread can have may be live at once: the interference graph grows with the
/// square of it.
const TIMES_TOO_MANY: u32 = 8;

/// Allocates the registers of one kernel.
fn allocate(pass: &Allocate, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    let Site { module, kernel, .. } = *site;
    let view = view(module, kernel)?;
    obstacle(module, &view)?;
    let before = pressure(&view);
    let most = TIMES_TOO_MANY * site.setting.gpu.arch.registers.per_thread;
    if before > most {
        let pressure = before;
        return Err(Refusal::TooManyLive { pressure, most });
    }
    let goal = goal(site, pass.registers, before)?;
    let registers = goal.registers;
    let spare = match pass.space {
        SlotSpace::Shared => shared(site, pass.cut, pass.blocks.unwrap_or(goal.blocks)),
        SlotSpace::Local => Err(Refusal::LocalOnly),
    };
    // Names, slots and what reloads them are one rewrite: a part of them is no allocation. Each copy that is merged
    // away is one more.
    if fuel.left() == 0 {
        return Ok(Rewritten::new(module.source.to_string()));
    }
    let limits = Limits {
        merges: fuel.left() - 1,
        registers,
        shared: spare.as_ref().ok().map(|(shared, _)| shared.clone()),
        address: address_class(),
        scratch: text::SCRATCH as u32,
    };
    let may_spill = |value| text::is_spillable(view.body(), register(value));
    let done = allocate_registers(&view, &limits, may_spill).map_err(|error| {
        let (AllocateError::TooFew(at) | AllocateError::Contradiction(at)) = error;
        Refusal::TooFewRegisters {
            registers,
            at: at.map(|at| view.inst_text(at)),
        }
    })?;
    fuel.burn_up_to(1 + done.merged);
    let bound = spare.as_ref().ok().map(|(_, bound)| bound);
    let bytes = declared_bytes(module, view.function(), done.shared.bytes());
    let text = write(&view, kernel, &done, bound, bytes)?;
    let mut note = format!(
        "pressure {before} -> {} registers (limit {registers})",
        pressure(&done.draft)
    );
    if done.added != Added::default() {
        note.push_str(&format!(
            ", {bytes} bytes of shared and {} of local memory, accesses weighted by loops: {} and {}",
            done.local.bytes(),
            done.added.shared,
            done.added.local
        ));
        if let (Err(why), SlotSpace::Shared) = (&spare, pass.space) {
            note.push_str(&format!("; no shared memory: {why}"));
        }
    }
    let promised = bound.filter(|bound| bound.is_new && !done.shared.is_empty());
    let promised = promised.map(|bound| Caution::BlockBound {
        threads: bound.threads,
    });
    let mut rewritten = Rewritten::new(text).note(note);
    rewritten.cost = done.added.shared + done.added.local + done.added.others;
    Ok(rewritten.careful(fusion::caution(module).into_iter().chain(promised)))
}

/// The shared memory that is spare at the design point.
fn shared(site: &Site, cut: Cut, blocks: u32) -> Result<(Shared, Bound), Refusal> {
    let bound = bound(site.function(), &site.setting.block)?;
    let shared = Shared {
        capacity: spare_shared(site, blocks)?,
        threads: bound.threads,
        layout: Layout::SlotMajor,
        cut,
    };
    Ok((shared, bound))
}

/// What the names of registers mean to others, or registers that are no plain values.
fn obstacle(module: &Module, view: &View<'_>) -> Result<(), Refusal> {
    if module.header.targets.iter().any(|target| target == "debug") {
        return Err(Refusal::DebugInformation);
    }
    for decl in view.body().reg_decls.values() {
        let kind = match decl.ty {
            _ if decl.vector > 1 => "vector",
            ty if ty.kind() == TypeKind::Opaque => "opaque",
            Type::Pred => continue,
            ty if ty.bits() < 16 => "8-bit",
            _ => continue,
        };
        return Err(Refusal::RegisterKind {
            kind,
            name: decl.base.to_string(),
        });
    }
    Ok(())
}

/// The types and name prefixes of the classes of `ptx::view::CLASSES`.
const NAMES: [(Type, &str); 5] = [
    (Type::Pred, "%p"),
    (Type::B16, "%h"),
    (Type::B32, "%r"),
    (Type::B64, "%rd"),
    (Type::B128, "%rq"),
];

/// Names of allocated registers.
struct Names {
    /// By class: a prefix that no other name begins with.
    prefix: Vec<String>,
    /// By class: how many numbers are in use.
    count: Vec<u32>,
}

impl Names {
    fn new(view: &View<'_>, done: &Allocation) -> Names {
        let mut names = Names {
            prefix: NAMES
                .iter()
                .map(|(_, prefix)| free_prefix(view, prefix))
                .collect(),
            count: vec![0; NAMES.len()],
        };
        for at in done.draft.insts() {
            for &value in done.draft.defs(at).iter().chain(done.draft.uses(at)) {
                if let Some((class, number)) = number(done, value) {
                    names.count[class] = names.count[class].max(number + 1);
                }
            }
        }
        names
    }

    fn of(&self, done: &Allocation, value: Value) -> String {
        match number(done, value) {
            Some((class, number)) => format!("{}{number}", self.prefix[class]),
            None => String::new(),
        }
    }

    fn declare(&self, edits: &mut Edits<'_>, kernel: FuncId) -> Result<(), EditError> {
        for ((&(ty, _), prefix), &count) in NAMES.iter().zip(&self.prefix).zip(&self.count) {
            if count > 0 {
                edits.add_registers(kernel, ty, prefix, count)?;
            }
        }
        Ok(())
    }
}

/// A value's class and its number among the registers of that class.
fn number(done: &Allocation, value: Value) -> Option<(usize, u32)> {
    let first = done.register.get(value.0 as usize).copied().flatten()?;
    let class = usize::from(done.draft.class(value).0);
    Some((class, first / done.draft.units(value).max(1)))
}

/// `prefix`, made longer until no variable, function or label begins with it.
fn free_prefix(view: &View<'_>, prefix: &str) -> String {
    let (module, body) = (view.module(), view.body());
    let variables = module.variables.values().map(|v| &*v.name);
    let functions = module.functions.values().map(|f| &*f.name);
    let labels = body.labels.values().map(|l| &*l.name);
    let taken: Vec<&str> = variables.chain(functions).chain(labels).collect();
    let mut prefix = prefix.to_owned();
    while taken.iter().any(|name| name.starts_with(&prefix)) {
        prefix.push('_');
    }
    prefix
}

fn write(
    view: &View<'_>,
    kernel: FuncId,
    done: &Allocation,
    bound: Option<&Bound>,
    bytes: u64,
) -> Result<String, EditError> {
    let mut edits = Edits::new(view.module());
    let [shared, local] = [edits.fresh_name("spill"), edits.fresh_name("stack")];
    if let Some(bound) = bound.filter(|_| !done.shared.is_empty()) {
        if bound.is_new {
            promise(&mut edits, kernel, bound.threads);
        }
        edits.add_shared_variable(kernel, &shared, done.shared.alignment(), bytes)?;
    }
    if !done.local.is_empty() {
        let (align, bytes) = (done.local.alignment(), done.local.bytes());
        edits.add_declaration(
            kernel,
            &format!(".local .align {align} .b8 {local}[{bytes}];"),
        )?;
    }
    let names = Names::new(view, done);
    delete_declarations(&mut edits, view);
    names.declare(&mut edits, kernel)?;
    let code = DraftCode {
        view,
        draft: &done.draft,
        shared: Some((&done.shared, &shared)),
        local: Some((&done.local, &local)),
        block: bound.and_then(|bound| bound.exact),
        name: &|value| names.of(done, value),
        masks: &Masks::new(),
    };
    code.write(&mut edits, kernel)?;
    edits.apply()
}

fn delete_declarations(edits: &mut Edits<'_>, view: &View<'_>) {
    let decls = view.body().reg_decls.values();
    let spans: BTreeSet<_> = decls.map(|decl| (decl.span.start, decl.span.end)).collect();
    for (start, end) in spans {
        edits.delete(warpwright_ptx::Span::new(start, end));
    }
}
