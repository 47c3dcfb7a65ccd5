//! A function as the analyses see it: definitions, uses and control flow of every instruction.
//!
//! What an operand is (written, read, an address) comes from the opcode table. A [`View`] looks
//! it up once for each distinct opcode and operand count, and lists the registers of every instruction
//! once: the analyses ask for them again and again.
//!
//! An instruction that the table does not know, or that has an operand count it does not take,
//! may read every register it names and may write those of its first operand; its definitions do
//! not kill.

use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;
use warpwright_flow as flow;
use warpwright_flow::{Class, ClassInfo, Queue, Queues, Repetition, Transfer, Value};

use crate::ir::{
    Base, Body, FuncId, Function, FunctionKind, Inst, Label, Module, OpcodeId, Operand,
    OperandList, Reg,
};
use crate::opcode::{Control, Op, Role, Shape};
use crate::print::inst_text;
use crate::repeat;
use crate::types::Type;

/// `wgmma`: operands are read and written up to `wgmma.wait_group 0`.
const WGMMA: Queue = Queue(0);
/// `tcgen05.ld`: results arrive up to `tcgen05.wait::ld`.
const TCGEN05_LD: Queue = Queue(1);
/// `tcgen05.st`: sources are read up to `tcgen05.wait::st`.
const TCGEN05_ST: Queue = Queue(2);

/// The register classes of PTX. Narrow types take a whole 32-bit register each.
pub const CLASSES: [ClassInfo; 6] = [
    ClassInfo {
        name: "pred",
        units: 0,
    },
    ClassInfo {
        name: "b16",
        units: 1,
    },
    ClassInfo {
        name: "b32",
        units: 1,
    },
    ClassInfo {
        name: "b64",
        units: 2,
    },
    ClassInfo {
        name: "b128",
        units: 4,
    },
    ClassInfo {
        name: "b256",
        units: 8,
    },
];

/// The class of a register of `vector` elements of type `ty`.
fn class_of(ty: Type, vector: u8) -> Class {
    Class(match ty.bits() * u32::from(vector.max(1)) {
        _ if ty == Type::Pred => 0,
        ..=16 => 1,
        17..=32 => 2,
        33..=64 => 3,
        65..=128 => 4,
        _ => 5,
    })
}

/// How an instruction deals with one register that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Access {
    reads: bool,
    writes: bool,
}

const READ: Access = Access {
    reads: true,
    writes: false,
};
const WRITE: Access = Access {
    reads: false,
    writes: true,
};
const BOTH: Access = Access {
    reads: true,
    writes: true,
};

/// What is known of an opcode with a certain number of operands.
#[derive(Clone, Debug)]
struct Plan {
    count: u32,
    /// How they are written, where their number alone does not tell their roles.
    shapes: Option<SmallVec<[Shape; 8]>>,
    /// One for each operand; `None` if the table does not know.
    accesses: Option<SmallVec<[Access; 8]>>,
    control: Control,
    is_call: bool,
    /// All registers stay in use until this queue is waited for.
    held: Option<Queue>,
    waits: Option<Queue>,
}

/// A defined function with its opcodes looked up.
#[derive(Clone, Debug)]
pub struct View<'m> {
    module: &'m Module,
    function: &'m Function,
    body: &'m Body,
    plans: Vec<Plan>,
    /// The plan of each instruction.
    plan_of: Vec<u32>,
    /// What each instruction does to the registers that it names, one instruction behind the other.
    accesses: Vec<(Reg, Access)>,
    /// Where those of each instruction end.
    ends: Vec<u32>,
}

impl Module {
    /// A view of a function for analyses; `None` if it has no body.
    pub fn view(&self, func: FuncId) -> Option<View<'_>> {
        let function = self.functions.get(func)?;
        let body = function.body.as_ref()?;
        let mut view = View {
            module: self,
            function,
            body,
            plans: Vec::new(),
            plan_of: Vec::with_capacity(body.insts.len()),
            accesses: Vec::with_capacity(3 * body.insts.len()),
            ends: Vec::with_capacity(body.insts.len()),
        };
        // Nearly always one plan for each opcode.
        let mut by_opcode: SecondaryMap<OpcodeId, SmallVec<[u32; 1]>> = SecondaryMap::new();
        for inst in body.insts.values() {
            let operands = body.list(inst.operands);
            let known = &mut by_opcode[inst.opcode];
            let fits = |&&at: &&u32| view.plans[at as usize].fits(operands);
            let at = match known.iter().find(fits) {
                Some(&at) => at,
                None => {
                    let at = view.plans.len() as u32;
                    view.plans.push(plan(self, inst.opcode, operands));
                    known.push(at);
                    at
                }
            };
            view.plan_of.push(at);
        }
        for inst in body.insts.keys() {
            let mut accesses = std::mem::take(&mut view.accesses);
            view.list(inst, &mut |reg, access| accesses.push((reg, access)));
            view.accesses = accesses;
            view.ends.push(view.accesses.len() as u32);
        }
        Some(view)
    }
}

impl Plan {
    fn fits(&self, operands: &[Operand]) -> bool {
        let alike = |shapes: &SmallVec<[Shape; 8]>| {
            shapes
                .iter()
                .copied()
                .eq(operands.iter().map(Operand::shape))
        };
        self.count as usize == operands.len() && self.shapes.as_ref().is_none_or(alike)
    }
}

fn plan(module: &Module, id: OpcodeId, operands: &[Operand]) -> Plan {
    let opcode = &module.opcodes[id];
    let mut roles = opcode.roles(operands.len());
    let mut shapes = None;
    if roles.is_none() {
        let written: SmallVec<[Shape; 8]> = operands.iter().map(Operand::shape).collect();
        roles = opcode.roles_of(&written);
        shapes = Some(written);
    }
    let accesses = roles.map(|roles| roles.iter().map(|&role| access(role)).collect());
    let text = &*opcode.text;
    let held = match opcode.op {
        Some(Op::Wgmma) if opcode.has_mod("mma_async") => Some(WGMMA),
        _ if text.starts_with("tcgen05.ld") => Some(TCGEN05_LD),
        _ if text.starts_with("tcgen05.st") => Some(TCGEN05_ST),
        _ => None,
    };
    let waits = match opcode.op {
        Some(Op::Wgmma) if opcode.has_mod("wait_group") => Some(WGMMA),
        _ if text.starts_with("tcgen05.wait::ld") => Some(TCGEN05_LD),
        _ if text.starts_with("tcgen05.wait::st") => Some(TCGEN05_ST),
        _ => None,
    };
    let is_call = opcode.op == Some(Op::Call);
    Plan {
        count: operands.len() as u32,
        shapes,
        accesses,
        control: opcode.control(),
        is_call,
        held,
        waits,
    }
}

fn access(role: Role) -> Access {
    match role {
        Role::Def => WRITE,
        Role::UseDef => BOTH,
        Role::Use
        | Role::Address
        | Role::Immediate
        | Role::Label
        | Role::BranchTargets
        | Role::CallPart => READ,
    }
}

impl<'m> View<'m> {
    /// The module.
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// The function.
    pub fn function(&self) -> &'m Function {
        self.function
    }

    /// Its body.
    pub fn body(&self) -> &'m Body {
        self.body
    }

    /// Registers that an instruction writes, in operand order. With a guard it may leave them as
    /// they were.
    pub fn defs(&self, inst: Inst) -> SmallVec<[Reg; 4]> {
        let mut regs = SmallVec::new();
        self.visit(inst, &mut |reg, access| {
            if access.writes {
                regs.push(reg);
            }
        });
        regs
    }

    /// Registers that an instruction reads: its guard, its address registers and its sources, in
    /// operand order. One that is read twice is there twice.
    pub fn uses(&self, inst: Inst) -> SmallVec<[Reg; 8]> {
        let mut regs = SmallVec::new();
        self.visit(inst, &mut |reg, access| {
            if access.reads {
                regs.push(reg);
            }
        });
        regs
    }

    /// The labels that an instruction may jump to, in order.
    pub fn targets(&self, inst: Inst) -> SmallVec<[Label; 2]> {
        let mut labels = SmallVec::new();
        for operand in self.body.operands(inst) {
            match *operand {
                Operand::Label(label) => labels.push(label),
                Operand::BranchTable(table) => {
                    let targets = &self.body.branch_tables[table].targets;
                    labels.extend(targets.iter().flatten().copied());
                }
                _ => {}
            }
        }
        labels
    }

    /// Is a top-level operand of an instruction read, and is it written? (Registers in an address
    /// are read, whatever the operand is.)
    pub(crate) fn operand_access(&self, inst: Inst, index: usize) -> (bool, bool) {
        let accesses = self.plan(inst).accesses.as_ref();
        let access = accesses.and_then(|list| list.get(index)).copied();
        access.map_or((true, true), |access| (access.reads, access.writes))
    }

    fn plan(&self, inst: Inst) -> &Plan {
        &self.plans[self.plan_of[inst.index()] as usize]
    }

    /// Visits each register that an instruction names, with what it does to it.
    #[inline]
    fn visit(&self, inst: Inst, visit: &mut impl FnMut(Reg, Access)) {
        let at = inst.index();
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        for &(reg, access) in &self.accesses[start as usize..self.ends[at] as usize] {
            visit(reg, access);
        }
    }

    /// The same from the operands.
    fn list(&self, inst: Inst, visit: &mut impl FnMut(Reg, Access)) {
        let data = &self.body.insts[inst];
        if let Some(guard) = data.guard {
            visit(guard.reg, READ);
        }
        let plan = self.plan(inst);
        if plan.is_call {
            return self.list_call(inst, visit);
        }
        for (i, operand) in self.body.list(data.operands).iter().enumerate() {
            let access = match &plan.accesses {
                Some(accesses) => accesses.get(i).copied().unwrap_or(READ),
                None if i == 0 => BOTH,
                None => READ,
            };
            self.list_operand(operand, access, visit);
        }
        if plan.control == Control::Return {
            // A register result is read by the caller.
            for reg in self.function.returns.iter().filter_map(|param| param.reg) {
                visit(reg, READ);
            }
        }
    }

    fn list_call(&self, inst: Inst, visit: &mut impl FnMut(Reg, Access)) {
        let Some(call) = self.body.call(inst) else {
            return;
        };
        for operand in call.returns {
            self.list_operand(operand, WRITE, visit);
        }
        self.list_operand(call.target, READ, visit);
        for operand in call.args {
            self.list_operand(operand, READ, visit);
        }
    }

    fn list_operand(&self, operand: &Operand, access: Access, visit: &mut impl FnMut(Reg, Access)) {
        match *operand {
            Operand::Reg(reg) => visit(reg, access),
            Operand::Not(reg) | Operand::Neg(reg) | Operand::Sum { reg, .. } => visit(reg, READ),
            // The rest of the register stays as it is.
            Operand::Select { reg, .. } => visit(reg, if access.writes { BOTH } else { READ }),
            Operand::Mem(address) => {
                if let Base::Reg(reg) = address.base {
                    visit(reg, READ);
                }
            }
            Operand::MemTuple(list) => self.list_elements(list, READ, visit),
            Operand::Vector(list) | Operand::Pair(list) | Operand::List(list) => {
                self.list_elements(list, access, visit);
            }
            _ => {}
        }
    }

    fn list_elements(
        &self,
        list: OperandList,
        access: Access,
        visit: &mut impl FnMut(Reg, Access),
    ) {
        // Nesting is bounded by the parser.
        for operand in self.body.list(list) {
            self.list_operand(operand, access, visit);
        }
    }
}

fn value(reg: Reg) -> Value {
    Value(reg.as_u32())
}

fn ptx(inst: flow::Inst) -> Inst {
    Inst::from_u32(inst.0)
}

impl flow::Function for View<'_> {
    fn inst_count(&self) -> usize {
        self.body.insts.len()
    }

    fn value_count(&self) -> usize {
        self.body.regs.len()
    }

    fn classes(&self) -> &[ClassInfo] {
        &CLASSES
    }

    fn class(&self, value: Value) -> Class {
        let reg = self.body.regs[Reg::new(value.0 as usize)];
        class_of(reg.ty, self.body.reg_decls[reg.decl].vector)
    }

    fn for_each_use(&self, inst: flow::Inst, mut visit: impl FnMut(Value)) {
        self.visit(ptx(inst), &mut |reg, access| {
            if access.reads {
                visit(value(reg));
            }
        });
    }

    fn for_each_def(&self, inst: flow::Inst, mut visit: impl FnMut(Value)) {
        self.visit(ptx(inst), &mut |reg, access| {
            if access.writes {
                visit(value(reg));
            }
        });
    }

    fn is_predicated(&self, inst: flow::Inst) -> bool {
        self.body.insts[ptx(inst)].guard.is_some()
    }

    fn transfer(&self, inst: flow::Inst) -> Transfer {
        match self.plan(ptx(inst)).control {
            Control::Next => Transfer::Next,
            Control::Branch => Transfer::Jump,
            Control::IndirectBranch => Transfer::Indirect,
            Control::Call => Transfer::Call,
            Control::Return if self.function.kind == FunctionKind::Entry => Transfer::Exit,
            Control::Return => Transfer::Return,
            Control::Exit => Transfer::Exit,
            Control::Trap => Transfer::Trap,
        }
    }

    fn for_each_target(&self, inst: flow::Inst, mut visit: impl FnMut(flow::Inst)) {
        for label in self.targets(ptx(inst)) {
            visit(flow::Inst(self.body.labels[label].at.as_u32()));
        }
    }

    fn for_each_held(&self, inst: flow::Inst, mut visit: impl FnMut(Queue, Value)) {
        let Some(queue) = self.plan(ptx(inst)).held else {
            return;
        };
        self.visit(ptx(inst), &mut |reg, _| visit(queue, value(reg)));
    }

    fn waits(&self, inst: flow::Inst) -> Queues {
        let Some(queue) = self.plan(ptx(inst)).waits else {
            return Queues::NONE;
        };
        // `wgmma.wait_group N` leaves the last N groups running.
        let all = match self.body.operands(ptx(inst)).first() {
            Some(Operand::Imm(count)) => count.bits() == 0,
            Some(_) => false,
            None => true,
        };
        if all {
            Queues(1 << queue.0)
        } else {
            Queues::NONE
        }
    }

    fn copy_of(&self, inst: flow::Inst) -> Option<(Value, Value)> {
        let data = &self.body.insts[ptx(inst)];
        let is_move = self.module.opcode(data).op == Some(Op::Mov) && data.guard.is_none();
        let (true, [Operand::Reg(to), Operand::Reg(from)]) =
            (is_move, self.body.operands(ptx(inst)))
        else {
            return None;
        };
        let (to, from) = (value(*to), value(*from));
        (self.class(to) == self.class(from)).then_some((to, from))
    }

    fn repetition(&self, inst: flow::Inst) -> Repetition {
        repeat::repetition(self, ptx(inst))
    }

    fn can_stand_before(&self, inst: flow::Inst, place: flow::Inst) -> bool {
        repeat::can_stand_before(self, ptx(inst), ptx(place))
    }

    fn value_name(&self, value: Value) -> String {
        self.body.reg_name(Reg::new(value.0 as usize)).to_string()
    }

    fn inst_text(&self, inst: flow::Inst) -> String {
        inst_text(self.module, self.body, ptx(inst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_flow::Function as _;

    fn with_view(lines: &str, test: impl FnOnce(&View<'_>)) {
        let source = format!(
            ".version 8.0\n.target sm_90a\n.entry k(.param .u64 p)\n{{\n.reg .pred %p<4>;\n\
             .reg .b16 %h<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<4>;\n.reg .b128 %q;\n\
             {lines}\n}}\n"
        );
        let (module, diagnostics) = Module::parse("k.ptx", &source);
        assert_eq!(diagnostics, []);
        test(&module.view(FuncId::from_u32(0)).unwrap());
    }

    fn names(view: &View<'_>, regs: &[Reg]) -> String {
        let names = regs.iter().map(|&r| view.body().reg_name(r).to_string());
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn guards_are_read_and_results_are_written() {
        with_view("@!%p1 add.s32 %r1, %r2, 5;", |view| {
            let inst = Inst::from_u32(0);
            assert_eq!(names(view, &view.defs(inst)), "%r1");
            assert_eq!(names(view, &view.uses(inst)), "%p1 %r2");
            assert!(view.is_predicated(flow::Inst(0)));
            assert_eq!(view.inst_text(flow::Inst(0)), "@!%p1 add.s32 %r1, %r2, 5");
        });
    }

    #[test]
    fn an_unknown_opcode_may_read_all_and_write_its_first_operand() {
        with_view("frobnicate.x {%r1, %r2}, [%d1+8], %r3;", |view| {
            let inst = Inst::from_u32(0);
            assert_eq!(names(view, &view.defs(inst)), "%r1 %r2");
            assert_eq!(names(view, &view.uses(inst)), "%r1 %r2 %d1 %r3");
            assert_eq!(view.function().opaque(), Some(&[inst][..]));
        });
    }

    #[test]
    fn classes_have_the_width_of_their_registers() {
        with_view("frobnicate.x %q, %d1, %r1, %h1, %p1, %r0;", |view| {
            let units = |v| view.units(Value(v));
            assert_eq!([0, 1, 2, 4, 5].map(units), [0, 1, 1, 2, 4]);
            assert_eq!(view.value_name(Value(3)), "%r1");
        });
    }

    #[test]
    fn registers_of_ranges_exist_where_they_are_used() {
        let lines = ".reg .b32 %z<16777216>;\nmov.b32 %z16777215, %r1;\n\
            mov.b32 %z7, %z16777215;\nmov.b32 %r0, %z7;";
        with_view(lines, |view| {
            // In the order of their declarations, not of their uses.
            let names: Vec<String> = (0..view.value_count() as u32)
                .map(|v| view.value_name(Value(v)).to_string())
                .collect();
            assert_eq!(names, ["%r0", "%r1", "%q", "%z7", "%z16777215"]);
        });
    }
}
