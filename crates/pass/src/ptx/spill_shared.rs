//! `spill-shared`: keep values in shared memory while the register pressure is high.
//!
//! Goal: fewer registers per thread. Paper: You & Tsai section 2.3, Algorithm 2 and Eq. 3. What is spilled
//! and where it lies is decided in `regs::spill`, with its departures; the text comes from `ptx::spill`;
//! here the two meet.
//!
//! Requires a kernel whose opcodes are all known, and a bound on its blocks. Preserves what each
//! thread computes, bit by bit; ptxas may fuse other operations than before ([`fusion`]). The kernel
//! takes more static shared memory.

use std::collections::BTreeMap;

use warpwright_diag::count;
use warpwright_flow::{Class, Value};
use warpwright_ptx::spill as text;
use warpwright_ptx::view::CLASSES;
use warpwright_ptx::{EditError, Edits, FuncId, View};
use warpwright_regs::draft::{Draft, Role};
use warpwright_regs::frame::Layout;
use warpwright_regs::spill::{Room, Spilled, spill, spilled_registers};

use crate::pass::{Caution, Fuel, Need, Outcome, Pass, Rewritten, Work};
use crate::ptx::draft_code::{DraftCode, Masks, promise};
use crate::ptx::facts::{pressure, register, view};
use crate::ptx::fusion;
use crate::ptx::goal::{Goal, goal};
use crate::ptx::spare::{Bound, bound, declared_bytes, spare_shared};

use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::Site;

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct SpillShared {
    /// 32-bit registers live at most; without it, one step of the occupancy staircase down.
    pub registers: Option<u32>,
    /// How the slots lie.
    pub layout: Layout,
}

crate::words!(Layout: Layout::SlotMajor = "slot-major", Layout::ThreadMajor = "thread-major");
crate::options!(SpillShared: [registers "32-bit registers live at most [default: one step of the staircase down]"];
    [layout: Layout = Layout::SlotMajor, "all threads' words of one slot together, or thread by thread (Eq. 3)"]);

impl Pass for SpillShared {
    const NAME: &'static str = "spill-shared";
    const ABOUT: &'static str =
        "keep values in shared memory while the register pressure is high (You & Tsai)";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn needs(&self) -> &'static [Need] {
        &[Need::BlockSize]
    }

    fn work(&self) -> Work<Self> {
        Work::Ptx(|pass, site, fuel| {
            let now = pressure(&view(site.module, site.kernel)?);
            let goal = goal(site, pass.registers, now)?;
            spill_shared(site, goal, pass.layout, fuel)
        })
    }
}

/// Algorithm 2 on one kernel; as many blocks as the goal is for stay resident.
///
/// # Errors
/// Why the kernel cannot be spilled, or that nothing lowers its pressure.
pub(crate) fn spill_shared(
    site: &Site,
    goal: Goal,
    layout: Layout,
    fuel: &mut Fuel,
) -> Outcome<String> {
    let Site { module, kernel, .. } = *site;
    let function = site.function();
    let view = view(module, kernel)?;
    let bound = bound(function, &site.setting.block)?;
    let before = pressure(&view);
    if before <= goal.registers {
        return Err(Refusal::WithinGoal {
            pressure: before,
            goal: goal.registers,
        });
    }
    let room = Room {
        goal: goal.registers,
        capacity: spare_shared(site, goal.blocks)?,
        threads: bound.threads,
        layout,
        address: address_class(),
        scratch: text::SCRATCH as u32,
        most: fuel.left(),
    };
    let may_spill = |value| text::is_spillable(view.body(), register(value));
    let spilled = spill(&view, &room, may_spill).ok_or_else(|| Refusal::NothingHelps {
        means: format!("spilled to {} bytes of free shared memory", room.capacity),
        pressure: before,
    })?;
    fuel.burn_up_to(spilled.rounds);
    let bytes = declared_bytes(module, function, spilled.frame.bytes());
    let text = write(&view, kernel, &spilled, &bound, bytes)?;
    let missed = match spilled.pressure > goal.registers {
        true => ", which is above the goal",
        false => "",
    };
    let note = format!(
        "{} in {bytes} bytes of shared memory, pressure {before} -> {} registers (goal {}){missed}",
        count(spilled_registers(&spilled.draft).len(), "value"),
        spilled.pressure,
        goal.registers
    );
    let bound = bound.is_new.then_some(Caution::BlockBound {
        threads: bound.threads,
    });
    let cautions = fusion::caution(module).into_iter().chain(bound);
    Ok(Rewritten::new(text).note(note).careful(cautions))
}

/// The class of a shared-memory address.
pub(crate) fn address_class() -> Class {
    let is_word = |name: &str| name == "b32";
    let index = CLASSES.iter().position(|class| is_word(class.name));
    Class(index.unwrap_or_default() as u8)
}

/// Writes the spill code of a draft into the kernel. All registers keep their names.
fn write(
    view: &View<'_>,
    kernel: FuncId,
    spilled: &Spilled,
    bound: &Bound,
    bytes: u64,
) -> Result<String, EditError> {
    let Spilled { draft, frame, .. } = spilled;
    let mut edits = Edits::new(view.module());
    if bound.is_new {
        promise(&mut edits, kernel, bound.threads);
    }
    let area = edits.fresh_name("spill");
    edits.add_shared_variable(kernel, &area, frame.alignment(), bytes)?;
    let names = declare(&mut edits, kernel, draft)?;
    let code = DraftCode {
        view,
        draft,
        shared: Some((frame, &area)),
        local: None,
        block: bound.exact,
        name: &|value| match draft.role(value) {
            Role::Register(of) => view.body().reg_name(register(of)).to_string(),
            _ => names.get(&value).cloned().unwrap_or_default(),
        },
        masks: &Masks::new(),
    };
    code.write(&mut edits, kernel)?;
    edits.apply()
}

/// Declares the base addresses and what computing them takes.
fn declare(
    edits: &mut Edits<'_>,
    kernel: FuncId,
    draft: &Draft,
) -> Result<BTreeMap<Value, String>, EditError> {
    let mut names = BTreeMap::new();
    for value in draft.values() {
        if matches!(draft.role(value), Role::Base(_) | Role::Scratch) {
            let name = edits.fresh_name("%spill");
            edits.add_register(kernel, text::ADDRESS, &name)?;
            names.insert(value, name);
        }
    }
    Ok(names)
}
