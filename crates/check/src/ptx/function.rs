//! One PTX function, as the checker sees it.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use warpwright_flow::{Class, ClassInfo, Function as _, Inst, Queue, Queues, Transfer, Value};
use warpwright_ptx::opcode::{Control, Op};
use warpwright_ptx::{
    Body, FuncId, Function, FunctionKind, Init, Item, LineIndex, Linkage, Module, Opcode, Operand,
    Reg, Space, Symbol, VarId, Variable as PtxVariable, View,
};

use super::assumed::Assumed;
use super::places::mixes_addresses;
use super::shaped::Shaped;
use super::step;
use crate::known::Known;
use crate::range::Range;
use crate::semantics::{
    Arg, Effect, Name, Semantics, SlotSpace, Spaces, Split, Step, Unsupported, Variable,
};

/// A function with a body, and names for its variables that both versions share.
pub(super) struct PtxFunction<'m> {
    pub(super) view: View<'m>,
    /// The launches that it is looked at for.
    pub(super) assumed: Assumed,
    /// Where its threads are, if another version is launched in another shape.
    pub(super) shaped: Option<Shaped>,
    /// What that makes certain.
    known: Known,
    names: BTreeMap<VarId, Name>,
    /// May something outside the grid end while the function runs, so that memory changes that the grid
    /// itself leaves alone (`griddepcontrol.wait`, here or in what is called)?
    waits_for_grids: bool,
    /// Is the address of a parameter taken? In a device function it is then memory like any other.
    parameter_escapes: bool,
    /// Masks of `used_bytes_mask` pragmas, by the instruction that follows.
    masks: BTreeMap<Inst, String>,
    /// Made when the first line number is asked for.
    lines: OnceCell<LineIndex>,
}

impl<'m> PtxFunction<'m> {
    /// ` (k.cu:12)`, where `.loc` says so.
    fn source_line(&self, inst: Inst) -> Option<String> {
        let inst = warpwright_ptx::Inst::from_u32(inst.as_u32());
        let id = self.module().function(&self.view.function().name)?;
        let (path, line) = self.module().own_line(id, inst)?;
        let file = path.rsplit('/').next().unwrap_or(path);
        Some(format!(" ({file}:{line})"))
    }

    /// The function as it is at launches for which something is assumed: what then always goes one way does so, and what
    /// is then constant is a constant.
    pub(super) fn at_launches(module: &'m Module, id: FuncId, assumed: Assumed) -> Option<Self> {
        let mut function = Self::new(module, id)?;
        if !assumed.is_nothing() && function.view.function().kind == FunctionKind::Entry {
            function.assumed = assumed;
            function.known = Known::of(&function);
        }
        Some(function)
    }

    /// The same beside a version that is launched in another shape.
    pub(super) fn shaped(
        module: &'m Module,
        id: FuncId,
        assumed: Assumed,
        shaped: Shaped,
    ) -> Option<Self> {
        let mut function = Self::new(module, id)?;
        function.shaped = Some(shaped);
        function.assumed = assumed;
        function.known = Known::of(&function);
        Some(function)
    }

    /// What `bytes` bytes of a kernel's parameter can be, if something is assumed.
    pub(super) fn parameter(&self, symbol: Symbol, at: i64, bytes: u32) -> Option<Range> {
        let mut params = self.view.function().params.iter();
        let index = params.position(|param| Symbol::Var(param.var) == symbol)?;
        self.assumed.parameter(index, at, bytes)
    }

    /// What `bytes` bytes of a kernel's parameter are multiples of, as far as it is assumed.
    pub(super) fn alignment(&self, symbol: Symbol, at: i64, bytes: u32) -> u64 {
        let mut params = self.view.function().params.iter();
        let index = params.position(|param| Symbol::Var(param.var) == symbol);
        index.map_or(1, |index| self.assumed.alignment(index, at, bytes))
    }

    /// Is it certain that an instruction is never executed?
    fn is_off(&self, inst: Inst) -> bool {
        self.known.guards.get(&inst) == Some(&false)
    }

    pub(super) fn new(module: &'m Module, id: FuncId) -> Option<Self> {
        let view = module.view(id)?;
        let names = names(module, &view);
        let body = view.body();
        let waits_for_grids = body.insts.values().any(|data| {
            let opcode = module.opcode(data);
            opcode.op == Some(Op::Griddepcontrol) || opcode.control() == Control::Call
        });
        let function = view.function();
        let parameter_escapes = function.kind != FunctionKind::Entry
            && body.operands.values().any(|operand| match *operand {
                Operand::Symbol { symbol, .. } => is_parameter(function, symbol),
                _ => false,
            });
        Some(PtxFunction {
            view,
            assumed: Assumed::default(),
            shaped: None,
            known: Known::default(),
            names,
            waits_for_grids,
            parameter_escapes,
            masks: masks(body),
            lines: OnceCell::new(),
        })
    }

    /// Is it the return behind the last instruction, where whatever falls off the end leaves?
    fn is_end(&self, inst: Inst) -> bool {
        inst.as_u32() as usize == self.view.inst_count()
    }

    /// Registers that the caller reads.
    pub(super) fn returned(&self) -> impl Iterator<Item = Value> {
        let returns = self.view.function().returns.iter();
        returns.filter_map(|param| param.reg.map(|reg| Value(reg.as_u32())))
    }

    pub(super) fn module(&self) -> &'m Module {
        self.view.module()
    }

    /// The name of a variable or function.
    pub(super) fn symbol(&self, symbol: Symbol) -> Result<Name, Unsupported> {
        match symbol {
            Symbol::Func(func) => {
                let name = self.module().functions[func].name.to_string();
                Ok(Name::Function(name))
            }
            Symbol::Var(var) => match self.names.get(&var) {
                Some(name) => Ok(name.clone()),
                None => Err(Unsupported(
                    "a variable of another function is used".to_owned(),
                )),
            },
        }
    }

    /// The memories that a plain load reads; `space` holds those of its opcode. None for memory that
    /// nothing changes while the thread runs.
    pub(super) fn reads(&self, opcode: &Opcode, symbol: Option<Symbol>, space: Spaces) -> Spaces {
        let of_parameter = symbol.is_some_and(|at| is_parameter(self.view.function(), at));
        match opcode.space {
            Some(Space::Const) => Spaces::default(),
            Some(Space::Param) if self.parameter_escapes => space.and(Spaces::LOCAL),
            _ if of_parameter => Spaces::default(),
            _ if opcode.has_mod("nc") && !self.waits_for_grids => Spaces::default(),
            _ => space,
        }
    }

    /// Is an access to `bytes` bytes of a variable inside it and aligned, so that it cannot fault?
    pub(super) fn is_inside(
        &self,
        symbol: Symbol,
        space: Option<Space>,
        offset: i64,
        bytes: u32,
    ) -> bool {
        let Symbol::Var(var) = symbol else {
            return false;
        };
        let variable = &self.module().variables[var];
        let is_known = matches!(variable.linkage, Linkage::Local | Linkage::Visible);
        let is_aligned = |at: u64| {
            bytes > 0
                && at.is_multiple_of(bytes.into())
                && variable.alignment().is_multiple_of(bytes)
        };
        space == Some(variable.space)
            && is_known
            && u64::try_from(offset).is_ok_and(|at| {
                is_aligned(at) && at.saturating_add(bytes.into()) <= variable.bytes()
            })
    }
}

/// Loads of which the compiler may leave bytes out are not what their opcode says.
fn masks(body: &Body) -> BTreeMap<Inst, String> {
    let mut masks = BTreeMap::new();
    let mut waiting = String::new();
    for item in &body.items {
        match item {
            Item::Pragma(strings, _) => {
                let telling = strings.iter().filter(|s| s.contains("used_bytes_mask"));
                telling.for_each(|text| waiting += text);
            }
            Item::Inst(inst) if !waiting.is_empty() => {
                masks.insert(Inst(inst.as_u32()), std::mem::take(&mut waiting));
            }
            _ => {}
        }
    }
    masks
}

/// Is it a kernel or function parameter? Results are none.
fn is_parameter(function: &Function, symbol: Symbol) -> bool {
    let mut params = function.params.iter();
    matches!(symbol, Symbol::Var(var) if params.any(|param| param.var == var))
}

/// Parameters go by position; variables of the body by name, those of one name in several scopes
/// by order; those of the module by name.
/// The name of a parameter, by position.
fn parameter(of: FunctionKind, index: u32) -> Name {
    match of {
        FunctionKind::Entry => Name::Parameter(index),
        _ => Name::Argument(index),
    }
}

fn names(module: &Module, view: &View<'_>) -> BTreeMap<VarId, Name> {
    let function = view.function();
    let mut names = BTreeMap::new();
    for (id, variable) in &module.variables {
        if variable.owner.is_none() {
            names.insert(id, Name::Module(variable.name.to_string()));
        }
    }
    for (index, param) in (0..).zip(&function.params) {
        names.insert(param.var, parameter(function.kind, index));
    }
    for (index, param) in (0..).zip(&function.returns) {
        names.insert(param.var, Name::Result(index));
    }
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for &var in &view.body().vars {
        let name = &*module.variables[var].name;
        let count = seen.entry(name).or_insert(0);
        names.insert(var, Name::Own(name.to_owned(), *count));
        *count += 1;
    }
    names
}

fn slot_space(space: Space) -> SlotSpace {
    match space {
        Space::Local => SlotSpace::Local,
        Space::Shared => SlotSpace::Shared,
        _ => SlotSpace::Other,
    }
}

/// What a declaration says, apart from its name.
fn declaration(module: &Module, variable: &PtxVariable) -> String {
    let init = match &variable.init {
        None => "",
        Some(Init::Data(data)) => module.text(data.span),
        Some(Init::Opaque(span)) => module.text(*span),
    };
    format!(
        "{} {} v{} {:?} {} {:?} {init}",
        variable.linkage.text(),
        variable.ty,
        variable.vector,
        variable.dims,
        variable.space,
        variable.attributes,
    )
}

impl warpwright_flow::Function for PtxFunction<'_> {
    /// With a return at the end, which need not be written.
    fn inst_count(&self) -> usize {
        self.view.inst_count() + 1
    }

    fn value_count(&self) -> usize {
        self.view.value_count()
    }

    fn classes(&self) -> &[ClassInfo] {
        self.view.classes()
    }

    fn class(&self, value: Value) -> Class {
        self.view.class(value)
    }

    fn for_each_use(&self, inst: Inst, visit: impl FnMut(Value)) {
        match self.is_end(inst) {
            true => self.returned().for_each(visit),
            false if self.is_off(inst) => {}
            false => self.view.for_each_use(inst, visit),
        }
    }

    fn for_each_def(&self, inst: Inst, visit: impl FnMut(Value)) {
        if !self.is_end(inst) && !self.is_off(inst) {
            self.view.for_each_def(inst, visit);
        }
    }

    fn is_predicated(&self, inst: Inst) -> bool {
        !self.is_end(inst)
            && self.view.is_predicated(inst)
            && !self.known.guards.contains_key(&inst)
    }

    fn transfer(&self, inst: Inst) -> Transfer {
        match self.is_end(inst) {
            true => Transfer::Return,
            false if self.is_off(inst) => Transfer::Next,
            false => self.view.transfer(inst),
        }
    }

    fn for_each_target(&self, inst: Inst, visit: impl FnMut(Inst)) {
        if !self.is_end(inst) && !self.is_off(inst) {
            self.view.for_each_target(inst, visit);
        }
    }

    /// Fragments only: descriptors and predicates are read when the instruction issues.
    fn for_each_held(&self, inst: Inst, mut visit: impl FnMut(Queue, Value)) {
        if self.is_end(inst) || self.is_off(inst) {
            return;
        }
        let body = self.view.body();
        self.view.for_each_held(inst, |queue, value| {
            if body.reg_type(Reg::from_u32(value.as_u32())).bits() == 32 {
                visit(queue, value);
            }
        });
    }

    fn waits(&self, inst: Inst) -> Queues {
        match self.is_end(inst) || self.is_off(inst) {
            true => Queues::NONE,
            false => self.view.waits(inst),
        }
    }

    fn value_name(&self, value: Value) -> String {
        self.view.value_name(value)
    }

    fn inst_text(&self, inst: Inst) -> String {
        match self.is_end(inst) {
            true => "the end".to_owned(),
            false => self.view.inst_text(inst),
        }
    }
}

impl Semantics for PtxFunction<'_> {
    fn splits(&self) -> Vec<Split> {
        self.shaped
            .as_ref()
            .map_or_else(Vec::new, |shaped| shaped.splits.clone())
    }

    fn step(&self, inst: Inst) -> Result<Step, Unsupported> {
        if self.is_end(inst) {
            let mut step = Step::new("ret");
            step.effect = Effect::Leave;
            step.args.extend(self.returned().map(Arg::Value));
            return Ok(step);
        }
        let mut step = step::step(self, warpwright_ptx::Inst::from_u32(inst.as_u32()))?;
        match self.known.guards.get(&inst) {
            Some(false) => return Ok(Step::new("nothing")),
            Some(true) => step.guard = None,
            None => {}
        }
        if let Some(values) = self.known.values.get(&inst) {
            step.known.clone_from(values);
        }
        if let Some(mask) = self.masks.get(&inst) {
            step.op += mask;
        }
        Ok(step)
    }

    fn needs_fence(&self, queue: Queue) -> bool {
        // The view's queue of `wgmma`; those of `tcgen05` need none.
        queue == Queue(0)
    }

    fn is_fence(&self, _queue: Queue, inst: Inst) -> bool {
        if self.is_end(inst) {
            return false;
        }
        let data = self.view.body().insts[warpwright_ptx::Inst::from_u32(inst.as_u32())];
        let opcode = self.module().opcode(&data);
        opcode.op == Some(Op::Wgmma) && opcode.has_mod("fence")
    }

    fn goes_by_guard(&self, inst: Inst) -> bool {
        let is_way = matches!(
            self.transfer(inst),
            Transfer::Jump | Transfer::Return | Transfer::Exit
        );
        is_way && self.is_predicated(inst)
    }

    fn is_said_uniform(&self, inst: Inst) -> bool {
        if self.is_end(inst) || self.known.guards.contains_key(&inst) {
            return false;
        }
        let data = self.view.body().insts[warpwright_ptx::Inst::from_u32(inst.as_u32())];
        let opcode = self.module().opcode(&data);
        let control = opcode.control();
        let chooses = control == Control::IndirectBranch
            || data.guard.is_some() && matches!(control, Control::Branch | Control::Return);
        chooses && opcode.has_mod("uni")
    }

    fn entry_name(&self, value: Value) -> Option<Name> {
        let reg = Reg::from_u32(value.as_u32());
        let mut params = (0..).zip(&self.view.function().params);
        let (index, _) = params.find(|(_, param)| param.reg == Some(reg))?;
        Some(parameter(self.view.function().kind, index))
    }

    fn keeps_variables_apart(&self) -> bool {
        let function = self.view.function();
        function.kind == FunctionKind::Entry && !mixes_addresses(&self.view)
    }

    fn variables(&self) -> Vec<Variable> {
        let module = self.module();
        let function = self.view.function();
        let named = self.names.iter().filter(|(id, _)| {
            let all = function.params.iter().chain(&function.returns);
            !all.into_iter().any(|param| param.var == **id)
        });
        let variables = named.map(|(&id, name)| {
            let variable = &module.variables[id];
            Variable {
                name: name.clone(),
                space: match variable.linkage {
                    // Somebody else may define it: never a place of the rewrite's own.
                    Linkage::Extern | Linkage::Weak | Linkage::Common => SlotSpace::Other,
                    _ => slot_space(variable.space),
                },
                bytes: variable.bytes(),
                align: variable.alignment(),
                declaration: declaration(module, variable),
                // Arrays without a size begin at one address.
                is_apart: matches!(variable.linkage, Linkage::Local | Linkage::Visible)
                    && variable.bytes() > 0,
                // A device function that is called again uses the same shared memory.
                is_global: variable.owner.is_none()
                    || (variable.space == Space::Shared && function.kind != FunctionKind::Entry),
            }
        });
        variables.collect()
    }

    fn place(&self, inst: Inst) -> String {
        let (name, line) = (&self.module().name, self.line(inst));
        let source = match self.is_end(inst) {
            true => String::new(),
            false => self.source_line(inst).unwrap_or_default(),
        };
        format!("{name}:{line}{source}: {}", self.inst_text(inst))
    }

    fn line(&self, inst: Inst) -> u32 {
        let body = self.view.body();
        let data = body
            .insts
            .get(warpwright_ptx::Inst::from_u32(inst.as_u32()));
        let at = data.map_or(body.span.end, |data| data.span.start);
        let source = &self.module().source;
        let lines = self.lines.get_or_init(|| LineIndex::new(source));
        lines.line_col(source, at).line
    }
}
