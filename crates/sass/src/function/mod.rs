//! A code section as a [`flow::Function`](Function): the kernel and the helper functions behind it.
//!
//! Instructions are those of the section, in order; values are the registers of all files, by fixed
//! numbers ([`value_of`]). Helpers in the same section (division, square root, `noinline` device
//! functions) are followed, not summarized: a call is a jump to the helper's entry, and the helper's
//! RET goes to the instructions behind all calls to it. So no calling convention is assumed where the
//! callee can be seen; where it cannot (function pointers, other sections), the convention of
//! [`abi`] is.
//!
//! Sources: the flow of branches as nvdisasm's labels and life ranges show it (ptxas 13.0 and 13.5).

pub mod abi;
pub mod compare;
mod hyperblock;
mod occupied;
mod paths;
mod section;
mod trap;

use warpwright_flow::{Class, ClassInfo, Function, Inst, Transfer, Value};

use crate::control::{Control, ControlRange};
use crate::inst::Instruction;
use crate::roles::{File, Role, Roles, Span};

pub use crate::branch::ControlFlow;
pub use hyperblock::Hyperblocks;
pub use occupied::for_each_occupied;
pub(crate) use paths::Paths;
pub use section::CodeError;
pub(crate) use section::paths;

/// How calls inside the section are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Followed into the callee and back: exact, for everything that changes code.
    Followed,
    /// By the calling convention as nvdisasm models it, for comparison with its life ranges.
    AsNvdisasm,
}

/// Where control goes after an instruction, targets resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Flow {
    Next,
    /// To a callee that cannot be seen.
    Call,
    Jump(Inst),
    Branch(Inst),
    Indirect(Vec<Inst>),
    Return,
    Exit,
    /// To a function of the system that ends the program in an error: nobody comes back.
    Trap,
}

impl Flow {
    fn transfer(&self) -> Transfer {
        match self {
            Flow::Next => Transfer::Next,
            Flow::Call => Transfer::Call,
            Flow::Jump(_) => Transfer::Jump,
            Flow::Branch(_) => Transfer::Branch,
            Flow::Indirect(_) => Transfer::Indirect,
            Flow::Return => Transfer::Return,
            Flow::Exit => Transfer::Exit,
            Flow::Trap => Transfer::Trap,
        }
    }

    fn targets(&self) -> &[Inst] {
        match self {
            Flow::Jump(target) | Flow::Branch(target) => std::slice::from_ref(target),
            Flow::Indirect(targets) => targets,
            _ => &[],
        }
    }
}

/// May the instruction do nothing, by its guard or by a second condition?
pub(crate) fn is_conditional(inst: Instruction) -> bool {
    inst.is_predicated() || ControlFlow::has_second_condition(inst)
}

/// One code section.
#[derive(Debug, Clone)]
pub struct Code {
    insts: Vec<Instruction>,
    roles: Vec<Roles>,
    flow: Vec<Flow>,
    /// Instructions whose roles are unknown.
    opaque: Vec<Inst>,
    calls: Calls,
}

/// The files in the order of their values, with the number of registers in each that are not the
/// zero register or the true predicate, and the number of 32-bit general registers one takes.
const FILES: [(File, &str, u32, u32); 5] = [
    (File::Gpr, "R", 255, 1),
    (File::Pred, "P", 7, 0),
    (File::Uniform, "UR", 255, 0),
    (File::UniformPred, "UP", 7, 0),
    (File::Barrier, "B", 16, 0),
];

const CLASSES: [ClassInfo; FILES.len()] = {
    let mut classes = [ClassInfo { name: "", units: 0 }; FILES.len()];
    let mut at = 0;
    while at < FILES.len() {
        classes[at] = ClassInfo {
            name: FILES[at].1,
            units: FILES[at].3,
        };
        at += 1;
    }
    classes
};

/// The value that stands for a register, or `None` for RZ, URZ, PT and UPT.
pub fn value_of(file: File, number: u16) -> Option<Value> {
    let mut first = 0;
    for (known, _, count, _) in FILES {
        if known == file {
            return (u32::from(number) < count).then_some(Value(first + u32::from(number)));
        }
        first += count;
    }
    None
}

/// The register that a value stands for.
pub fn register_of(value: Value) -> Option<(File, u16)> {
    let mut number = value.0;
    for (file, _, count, _) in FILES {
        if number < count {
            return Some((file, number as u16));
        }
        number -= count;
    }
    None
}

impl Code {
    /// The instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.insts
    }

    /// What an instruction reads and writes by its operands; nothing for an opaque one. Calls and
    /// returns may touch more: see [`Function::for_each_use`].
    pub fn roles(&self, inst: Inst) -> &Roles {
        &self.roles[inst.0 as usize]
    }

    /// Replaces the control field of one instruction, which changes neither roles nor flow.
    ///
    /// # Errors
    /// A value is too large for its place.
    pub fn set_control(&mut self, inst: Inst, control: Control) -> Result<(), ControlRange> {
        let place = &mut self.insts[inst.0 as usize];
        *place = place.with_control(control)?;
        Ok(())
    }

    /// The instructions whose roles are unknown. With any of them the function may be inspected, not
    /// transformed.
    pub fn opaque(&self) -> &[Inst] {
        &self.opaque
    }

    /// Does it call code that cannot be seen, or may it be called from there?
    pub fn has_unknown_calls(&self) -> bool {
        let unknown = |flow: &Flow| matches!(flow, Flow::Call | Flow::Return);
        self.flow.iter().any(unknown)
    }

    /// Does control go to code that is not seen?
    pub fn leaves(&self, inst: Inst) -> bool {
        let flow = &self.flow[inst.0 as usize];
        matches!(flow, Flow::Call | Flow::Return | Flow::Trap)
    }

    fn visit(&self, inst: Inst, role: Role, visit: &mut impl FnMut(Value)) {
        let spans = self.roles(inst).spans().iter();
        for span in spans.filter(|span| span.role == role) {
            visit_span(*span, visit);
        }
        let (convention, flow) = (self.calls, &self.flow[inst.0 as usize]);
        let spans = match (role, flow) {
            (Role::Use, Flow::Call) => abi::call_uses(convention),
            (Role::Def, Flow::Call) => &abi::CALL_DEFS,
            (Role::Use, Flow::Return) => abi::return_uses(convention),
            // The stack pointer is kept to the end, in endless loops as well; nvdisasm counts it, too.
            (Role::Use, Flow::Exit) => &abi::STACK,
            (Role::Use, Flow::Trap) => &abi::ASSERT_USES,
            (Role::Use, Flow::Jump(target)) if *target == inst => &abi::STACK,
            _ => &[],
        };
        for span in spans {
            visit_span(*span, visit);
        }
    }
}

fn visit_span(span: Span, visit: &mut impl FnMut(Value)) {
    for number in span.registers() {
        if let Some(value) = value_of(span.file, number) {
            visit(value);
        }
    }
}

impl Function for Code {
    fn inst_count(&self) -> usize {
        self.insts.len()
    }

    fn value_count(&self) -> usize {
        FILES.iter().map(|file| file.2 as usize).sum()
    }

    fn classes(&self) -> &[ClassInfo] {
        &CLASSES
    }

    fn class(&self, value: Value) -> Class {
        let file = register_of(value).map_or(File::Gpr, |register| register.0);
        let place = FILES.iter().position(|known| known.0 == file);
        Class(place.unwrap_or(0) as u8)
    }

    fn for_each_use(&self, inst: Inst, mut visit: impl FnMut(Value)) {
        self.visit(inst, Role::Use, &mut visit);
    }

    fn for_each_def(&self, inst: Inst, mut visit: impl FnMut(Value)) {
        self.visit(inst, Role::Def, &mut visit);
    }

    fn is_predicated(&self, inst: Inst) -> bool {
        is_conditional(self.insts[inst.0 as usize])
    }

    fn transfer(&self, inst: Inst) -> Transfer {
        self.flow[inst.0 as usize].transfer()
    }

    fn for_each_target(&self, inst: Inst, visit: impl FnMut(Inst)) {
        let targets = self.flow[inst.0 as usize].targets();
        targets.iter().copied().for_each(visit);
    }

    fn value_name(&self, value: Value) -> String {
        let (file, number) = register_of(value).unwrap_or((File::Gpr, 255));
        let name = FILES.iter().find(|known| known.0 == file);
        format!("{}{number}", name.map_or("?", |known| known.1))
    }

    fn inst_text(&self, inst: Inst) -> String {
        let at = u64::from(inst.0) * 16;
        let text = crate::text::instruction(self.insts[inst.0 as usize], at);
        format!("{at:#06x}: {text}")
    }
}
