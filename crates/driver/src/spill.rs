//! Goal: fewer registers per thread, by keeping values in shared memory while the register pressure
//! is high.
//!
//! Paper: You & Tsai section 2.3, Algorithm 2 and Eq. 3. What is spilled and where it lies is decided
//! in `regs::spill`, with its departures; the text comes from `ptx::spill`; here the two meet.
//!
//! Requires a kernel whose opcodes are all known, and a bound on its blocks. Preserves what each
//! thread computes, bit by bit; the checker proves it. The kernel takes more static shared memory.

use std::collections::BTreeMap;

use warpwright_flow::{Class, Function as _, Value};
use warpwright_ptx::spill as text;
use warpwright_ptx::view::CLASSES;
use warpwright_ptx::{EditError, Edits, FuncId, Function, Module, Reg, View};
use warpwright_regs::draft::{Draft, Origin, Role};
use warpwright_regs::frame::Layout;
use warpwright_regs::spill::{Room, Spilled, spill};

use crate::rewrite::Site;
use crate::spare::{Bound, bound, declared_bytes, spare_shared};
use crate::spill_code::{SpillCode, inst, promise};

/// What is asked of one kernel.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The desired register usage: 32-bit registers per thread.
    pub goal: u32,
    /// Blocks that must stay resident on an SM as far as shared memory goes.
    pub blocks: u32,
    /// How the slots lie.
    pub layout: Layout,
}

/// A module with one kernel rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The module's text.
    pub text: String,
    /// The kernel's highest register pressure before and after, in 32-bit registers.
    pub pressure: [u32; 2],
    /// Registers of the kernel that were spilled.
    pub values: usize,
    /// Bytes of shared memory that each block takes more.
    pub shared_bytes: u32,
}

/// Algorithm 2 on one kernel. `None`: its pressure is at the goal already.
///
/// # Errors
/// Why the kernel cannot be spilled, or that nothing lowers its pressure.
pub fn spill_shared(site: &Site, request: &Request) -> Result<Option<Rewritten>, String> {
    let Site { module, kernel, .. } = *site;
    let function = &module.functions[kernel];
    let view = view(module, kernel)?;
    let bound = bound(function, &site.setting.block)?;
    let before = pressure(&view);
    if before <= request.goal {
        return Ok(None);
    }
    let room = Room {
        goal: request.goal,
        capacity: spare_shared(site, request.blocks)?,
        threads: bound.threads,
        layout: request.layout,
        address: address_class(),
        scratch: text::SCRATCH as u32,
    };
    let may_spill = |value| text::is_spillable(view.body(), register(value));
    let spilled = spill(&view, &room, may_spill).ok_or_else(|| {
        format!(
            "nothing that could be spilled to {} bytes of free shared memory lowers the pressure of \
             `{}` from {before} registers",
            room.capacity, function.name
        )
    })?;
    let bytes = declared_bytes(module, function, spilled.frame.bytes());
    let text = write(&view, kernel, &spilled, &bound, bytes).map_err(|e| e.to_string())?;
    Ok(Some(Rewritten {
        text,
        pressure: [before, spilled.pressure],
        values: warpwright_regs::spill::spilled_registers(&spilled.draft).len(),
        shared_bytes: bytes as u32,
    }))
}

/// The kernel's view, if all its opcodes are known.
pub(crate) fn view(module: &Module, kernel: FuncId) -> Result<View<'_>, String> {
    let function = &module.functions[kernel];
    let view = module.view(kernel);
    let view = view.ok_or_else(|| format!("`{}` has no body", function.name))?;
    match function.opaque().and_then(|insts| insts.first()) {
        None => Ok(view),
        Some(&inst) => Err(format!(
            "`{}` has an instruction that is not known: {}",
            function.name,
            view.inst_text(warpwright_flow::Inst(inst.as_u32()))
        )),
    }
}

/// The highest register pressure, in 32-bit registers.
pub(crate) fn pressure(func: &impl warpwright_flow::Function) -> u32 {
    let cfg = warpwright_flow::Cfg::new(func);
    let liveness = warpwright_flow::Liveness::new(func, &cfg);
    warpwright_flow::Pressure::new(func, &cfg, &liveness).max()
}

/// The class of a shared-memory address.
pub(crate) fn address_class() -> Class {
    let is_word = |name: &str| name == "b32";
    let index = CLASSES.iter().position(|class| is_word(class.name));
    Class(index.unwrap_or_default() as u8)
}

pub(crate) fn register(value: Value) -> Reg {
    Reg::from_u32(value.0)
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
    let code = SpillCode {
        view,
        draft,
        shared: Some((frame, &area)),
        local: None,
        block: bound.exact,
        name: &|value| match draft.role(value) {
            Role::Register(of) => view.body().reg_name(register(of)).to_string(),
            _ => names.get(&value).cloned().unwrap_or_default(),
        },
    };
    for at in draft.insts() {
        match draft.origin(at) {
            Origin::Own(_) => {}
            Origin::Bases => edits.insert_at_entry(kernel, &code.lines(at))?,
            Origin::Load { before } => edits.insert_before(kernel, inst(before), &code.lines(at)),
            Origin::Store { after } => edits.insert_after(kernel, inst(after), &code.lines(at)),
        }
    }
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

/// What was done, in a sentence.
pub fn describe(function: &Function, rewritten: &Rewritten, goal: u32) -> String {
    let Rewritten {
        pressure: [before, after],
        values,
        shared_bytes,
        ..
    } = rewritten;
    let missed = if *after > goal {
        ", which is above the goal"
    } else {
        ""
    };
    format!(
        "{}: {values} values in {shared_bytes} bytes of shared memory, pressure {before} -> {after} \
         registers (goal {goal}){missed}",
        function.name
    )
}
