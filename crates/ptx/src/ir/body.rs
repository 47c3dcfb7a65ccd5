//! Function bodies: registers, instructions, labels, scopes and the rest of their statements.

use std::fmt;

use cranelift_entity::PrimaryMap;
use cranelift_entity::packed_option::PackedOption;

use super::*;
use crate::Span;
use crate::types::Type;

/// The body of a function.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Registers of all scopes, in order of declaration.
    pub regs: PrimaryMap<Reg, RegData>,
    /// Register declarations.
    pub reg_decls: PrimaryMap<RegDeclId, RegDecl>,
    /// Variables declared in the body (not the parameters), in order.
    pub vars: Vec<VarId>,
    /// Instructions in program order.
    pub insts: PrimaryMap<Inst, InstData>,
    /// Labels in order of their place.
    pub labels: PrimaryMap<Label, LabelData>,
    /// Scopes; scope 0 is the body.
    pub scopes: PrimaryMap<Scope, ScopeData>,
    /// Operand arena: an instruction's operands are consecutive, and so are those of a list.
    pub operands: PrimaryMap<OperandId, Operand>,
    /// Where each operand stands in the source.
    pub operand_spans: PrimaryMap<OperandId, Span>,
    /// `.branchtargets` lists.
    pub branch_tables: PrimaryMap<BranchTable, BranchTableData>,
    /// `.calltargets` lists.
    pub call_tables: PrimaryMap<CallTable, CallTableData>,
    /// `.callprototype`s.
    pub prototypes: PrimaryMap<Prototype, PrototypeData>,
    /// `.loc` directives.
    pub locs: PrimaryMap<LocId, Loc>,
    /// All statements in program order.
    pub items: Vec<Item>,
    /// Instructions of unknown opcode, in order.
    pub opaque: Vec<Inst>,
    /// From `{` to `}`.
    pub span: Span,
}

impl Body {
    /// The operands of a list.
    pub fn list(&self, list: OperandList) -> &[Operand] {
        self.operands
            .as_values_slice()
            .get(list.range())
            .unwrap_or(&[])
    }

    /// The top-level operands of an instruction, in source order.
    pub fn operands(&self, inst: Inst) -> &[Operand] {
        self.list(self.insts[inst].operands)
    }

    /// The source line information that holds for an instruction.
    pub fn loc(&self, inst: Inst) -> Option<&Loc> {
        self.insts[inst].loc.expand().map(|id| &self.locs[id])
    }

    /// The file and the line of an instruction, of inlined code those of the innermost call that stands in a file of which
    /// `is_own` holds, or of the code itself if none does. Line 0 is none.
    pub fn own_line(&self, inst: Inst, is_own: impl Fn(u32) -> bool) -> Option<(u32, u32)> {
        let mut id = self.insts[inst].loc.expand()?;
        let mut loc = &self.locs[id];
        let here = (loc.file, loc.line);
        // A call in inlined code is inlined itself, which the directive in front of it says.
        for _ in 0..DEEPEST_INLINING {
            if is_own(loc.file) {
                return Some((loc.file, loc.line)).filter(|(_, line)| *line > 0);
            }
            let Some(call) = &loc.inlined else { break };
            if is_own(call.file) {
                return Some((call.file, call.line)).filter(|(_, line)| *line > 0);
            }
            let place = (call.file, call.line, call.column);
            // The nearest in front: they stand in the order of the text.
            let mut outer = (0..id.as_u32()).rev().map(LocId::from_u32);
            let is_there = |other: &LocId| {
                let other = &self.locs[*other];
                (other.file, other.line, other.column) == place
            };
            let Some(found) = outer.find(is_there) else {
                break;
            };
            (id, loc) = (found, &self.locs[found]);
        }
        Some(here).filter(|(_, line)| *line > 0)
    }

    /// The name of a register; use with `{}` (no allocation).
    pub fn reg_name(&self, reg: Reg) -> RegName<'_> {
        let data = &self.regs[reg];
        RegName {
            base: &self.reg_decls[data.decl].base,
            index: data.index(),
        }
    }

    /// The type of a register.
    pub fn reg_type(&self, reg: Reg) -> Type {
        self.regs[reg].ty
    }

    /// Where an operand stands in the source.
    pub fn operand_span(&self, operand: OperandId) -> Span {
        self.operand_spans[operand]
    }

    /// The parts of a `call`: `None` if the operands do not have that shape.
    pub fn call(&self, inst: Inst) -> Option<Call<'_>> {
        let mut operands = self.operands(inst).iter().peekable();
        let list = |operands: &mut std::iter::Peekable<std::slice::Iter<'_, Operand>>| {
            let Some(Operand::List(list)) = operands.peek() else {
                return &[][..];
            };
            operands.next();
            self.list(*list)
        };
        let returns = list(&mut operands);
        let target = operands.next()?;
        let args = list(&mut operands);
        let table = operands.next();
        Some(Call {
            returns,
            target,
            args,
            table,
        })
    }
}

/// The parts of a `call` instruction.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Return arguments: registers or `.param` variables.
    pub returns: &'a [Operand],
    /// What is called: a function symbol or, for an indirect call, a register.
    pub target: &'a Operand,
    /// Arguments: registers, immediates or `.param` variables.
    pub args: &'a [Operand],
    /// `.calltargets` list or `.callprototype` of an indirect call.
    pub table: Option<&'a Operand>,
}

/// A statement of a body, in program order.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An instruction.
    Inst(Inst),
    /// A label.
    Label(Label),
    /// A register declaration.
    Regs(RegDeclId),
    /// A variable declaration.
    Var(VarId),
    /// The `{` of a nested scope.
    Open(Scope),
    /// The `}` of a nested scope.
    Close(Scope),
    /// `.loc`
    Loc(LocId),
    /// `.pragma` with its strings.
    Pragma(Vec<String>, Span),
    /// `.branchtargets`
    BranchTable(BranchTable),
    /// `.calltargets`
    CallTable(CallTable),
    /// `.callprototype`
    Prototype(Prototype),
    /// A directive that this front end does not know, or `.section`/`.file` inside a body.
    Unknown(Span),
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegData {
    /// Its type.
    pub ty: Type,
    /// The declaration.
    pub decl: RegDeclId,
    /// Number in a range `%r<n>`, or `u32::MAX` for a single register.
    number: u32,
}

impl RegData {
    /// A register of a declaration: `index` in a range, `None` for a single one.
    pub fn new(ty: Type, decl: RegDeclId, index: Option<u32>) -> Self {
        RegData {
            ty,
            decl,
            number: index.unwrap_or(u32::MAX),
        }
    }

    /// Number in a range `%r<n>`; `None` for a single register.
    pub fn index(&self) -> Option<u32> {
        (self.number != u32::MAX).then_some(self.number)
    }
}

/// A register declaration: one declarator of a `.reg` statement (or a register parameter).
#[derive(Clone, Debug, PartialEq)]
pub struct RegDecl {
    /// Name, or prefix of a range.
    pub base: Name,
    /// `Some(n)` for a range `base<n>`.
    pub count: Option<u32>,
    /// Element type.
    pub ty: Type,
    /// Vector length: 1, 2 or 4 (`.reg .v4 .f32 v`).
    pub vector: u8,
    /// The scope that it belongs to.
    pub scope: Scope,
    /// The whole `.reg` statement.
    pub span: Span,
    /// The name (without `<n>`).
    pub name_span: Span,
}

/// A register's name, shown with `{}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegName<'a> {
    /// Name, or prefix of a range.
    pub base: &'a str,
    /// Number in a range.
    pub index: Option<u32>,
}

impl fmt::Display for RegName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base)?;
        match self.index {
            Some(n) => write!(f, "{n}"),
            None => Ok(()),
        }
    }
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstData {
    /// Its full opcode.
    pub opcode: OpcodeId,
    /// Its guard `@p` or `@!p`.
    pub guard: Option<Guard>,
    /// Its operands.
    pub operands: OperandList,
    /// From the guard to the `;`.
    pub span: Span,
    /// The opcode's text.
    pub opcode_span: Span,
    /// The `.loc` that holds for it.
    pub loc: PackedOption<LocId>,
    /// The scope that it stands in.
    pub scope: Scope,
}

/// A guard predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The predicate register.
    pub reg: Reg,
    /// `@!p`
    pub negated: bool,
}

/// A label.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelData {
    /// Its name.
    pub name: Name,
    /// The instruction that it stands before; one past the last for a label at the end.
    pub at: Inst,
    /// The scope that it belongs to.
    pub scope: Scope,
    /// The label with its colon.
    pub span: Span,
}

/// A `{ … }` scope.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeData {
    /// The scope around it; `None` for the body.
    pub parent: Option<Scope>,
    /// From `{` to `}`.
    pub span: Span,
    /// The `}`; empty if there is none (an error was reported).
    pub close: Span,
}

/// A `.branchtargets` list.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchTableData {
    /// Its label.
    pub name: Name,
    /// Targets in order; `None` for a name that is not declared.
    pub targets: Vec<Option<Label>>,
    /// The statement with its label.
    pub span: Span,
}

/// A `.calltargets` list.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTableData {
    /// Its label.
    pub name: Name,
    /// Functions in order; `None` for a name that is not declared.
    pub targets: Vec<Option<FuncId>>,
    /// The statement with its label.
    pub span: Span,
}

/// A `.callprototype`: the signature of an indirect call.
#[derive(Clone, Debug, PartialEq)]
pub struct PrototypeData {
    /// Its label.
    pub name: Name,
    /// Return parameters.
    pub returns: Vec<VarId>,
    /// Parameters.
    pub params: Vec<VarId>,
    /// `.noreturn`, `.abi_preserve` ….
    pub directives: Vec<Directive>,
    /// The statement with its label.
    pub span: Span,
}

/// Calls in inlined code in inlined code, so many at most.
const DEEPEST_INLINING: usize = 16;

/// A `.loc` directive: the source line of the instructions that follow.
#[derive(Clone, Debug, PartialEq)]
pub struct Loc {
    /// `.file` index.
    pub file: u32,
    /// Line, from 1 (0 when the producer gives none).
    pub line: u32,
    /// Column.
    pub column: u32,
    /// Where the code was inlined.
    pub inlined: Option<Inlined>,
    /// The directive.
    pub span: Span,
}

/// The call site of inlined code.
#[derive(Clone, Debug, PartialEq)]
pub struct Inlined {
    /// Label (usually in `.debug_str`) of the inlined function's name, as written.
    pub function_name: Name,
    /// Bytes added to that label.
    pub name_offset: u64,
    /// `.file` index of the call site.
    pub file: u32,
    /// Line of the call site.
    pub line: u32,
    /// Column of the call site.
    pub column: u32,
}
