//! `specialize`: a version of a kernel for the launches that there are.
//!
//! Goal: what a launch states as constants: sizes of blocks, grids and clusters, dynamic shared memory, scalar
//! parameters (whole ones, and members of structures). ptxas folds them, drops what they make dead, and plans for the
//! block (`.reqntid`). Others do so when they compile
//! (AdaptiveCpp, Proteus); here it is done to finished PTX, and proved.
//!
//! Departure: what ptxas folds by itself is left to it. What it does not see is written down: branches that all threads
//! take, or none, because their indices lie in ranges; above all grid-stride loops that turn once or never (`ranges`).
//! Divisions by constants become products, which ptxas 13.5 expands as if the divisor were unknown (`quotients`).
//! Pointers are no numbers that a launch repeats: whoever states them does so by name.
//!
//! Requires a kernel whose opcodes are all known. Preserves what each thread computes, bit by bit, at launches that
//! meet the guard; the guard says all that was stated. With `guarded` both versions stand behind one uniform branch at
//! the kernel's entry, and the result is right for all launches.

mod entry;
mod quotients;
mod ranges;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use warpwright_diag::count;
use warpwright_launch::{Extent, Field, Guard, GuardError, Quantity, Signature};
use warpwright_ptx::opcode::Op;
use warpwright_ptx::{
    Base, Dims, DirectiveKind, Edits, FuncId, Inst, Module, Operand, Part, Reg, Space, SpecialReg,
    Symbol, Type, TypeKind, VarId, View,
};

use crate::options::Argument;
use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::ptx::facts::view;
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::Site;
pub(super) use ranges::bits_of as integer_bits;

/// The pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Specialize {
    /// Threads per block in x, y and z.
    pub block: Option<[u32; 3]>,
    /// Blocks of the grid in x, y and z.
    pub grid: Option<[u32; 3]>,
    /// Blocks of a cluster in x, y and z.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory per block.
    pub smem: Option<u32>,
    /// Values of scalar parameters.
    pub params: Values,
    /// Keep the original behind a branch at the entry, for all other launches.
    pub guarded: bool,
}

crate::options!(Specialize: [];
    [block: Option<[u32; 3]> = None, "threads per block";
     grid: Option<[u32; 3]> = None, "blocks of the grid";
     cluster: Option<[u32; 3]> = None, "blocks of a cluster";
     smem: Option<u32> = None, "bytes of dynamic shared memory per block";
     params: Values = Values::default(), "values of parameters, with `&` between them";
     guarded: bool = false, "keep the original for all other launches, behind a branch at the entry"]);

/// Values of parameters as a guard says them: `n=4096`, `param2+8:4=17`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values(pub Vec<String>);

impl Argument for Values {
    fn wanted() -> String {
        "values as in `n=4096&param2+8:4=17`".into()
    }

    fn parse(text: &str) -> Option<Self> {
        let values = text.split([' ', '&']).filter(|value| !value.is_empty());
        let values: Vec<String> = values.map(str::to_owned).collect();
        (!values.is_empty()).then_some(Values(values))
    }

    fn print(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join("&"))
    }
}

impl Pass for Specialize {
    const NAME: &'static str = "specialize";
    const ABOUT: &'static str = "make constants of what the launch is known to be";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn work(&self) -> Work<Self> {
        Work::Ptx(specialize)
    }
}

impl Specialize {
    /// The version for the launches of a guard, as far as a pass can be told them.
    pub fn of(guard: &Guard) -> Specialize {
        let numbers = guard.conditions().filter_map(|condition| match condition {
            warpwright_launch::Condition::In(Quantity::Param(field), set) => {
                Some((field, set.value()?))
            }
            _ => None,
        });
        let value = |(field, value): (Field, u64)| {
            Guard::always()
                .equal(Quantity::Param(field), value)
                .to_string()
        };
        let smem = guard.value(Quantity::DynamicShared);
        Specialize {
            block: guard.exact(Quantity::Block),
            grid: guard.exact(Quantity::Grid),
            cluster: guard.exact(Quantity::Cluster),
            smem: smem.and_then(|bytes| u32::try_from(bytes).ok()),
            params: Values(numbers.map(value).collect()),
            guarded: false,
        }
    }

    /// What it states of launches where parameters go by their places; none where one has a name.
    pub fn by_places(&self) -> Option<Guard> {
        self.guard(&Signature::default()).ok()
    }

    /// What it states of launches.
    ///
    /// # Errors
    /// A parameter that the kernel does not have.
    pub fn guard(&self, signature: &Signature) -> Result<Guard, GuardError> {
        let mut guard = Guard::parse(&self.params.0.join(";"), signature)?;
        let extents = |of: fn(Extent) -> Quantity, dims: Option<[u32; 3]>| {
            let axes = Extent::AXES.into_iter().zip(dims.into_iter().flatten());
            axes.map(move |(axis, n)| (of(axis), n))
        };
        let stated = extents(Quantity::Block, self.block)
            .chain(extents(Quantity::Grid, self.grid))
            .chain(extents(Quantity::Cluster, self.cluster));
        for (quantity, n) in stated {
            guard = guard.equal(quantity, n.into());
        }
        Ok(match self.smem {
            Some(bytes) => guard.equal(Quantity::DynamicShared, bytes.into()),
            None => guard,
        })
    }
}

/// The scalars among a kernel's parameters that it loads, each once, as guards name them.
pub fn loaded(module: &Module, kernel: FuncId) -> Vec<Field> {
    let Some(view) = module.view(kernel) else {
        return Vec::new();
    };
    let mut fields = BTreeSet::new();
    for index in 0..view.body().insts.len() as u32 {
        let lanes = load(&view, Inst::from_u32(index));
        fields.extend(lanes.into_iter().flatten().map(|lane| lane.field));
    }
    fields.into_iter().collect()
}

/// The parameters of a kernel, as guards name them.
pub(crate) fn signature(site: &Site) -> Signature {
    let params = site.function().params.iter();
    Signature::new(params.map(|param| {
        let variable = &site.module.variables[param.var];
        (
            variable.name.to_string(),
            u32::try_from(variable.bytes()).unwrap_or(u32::MAX),
        )
    }))
}

fn specialize(pass: &Specialize, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    let guard = pass
        .guard(&signature(site))
        .map_err(|error| Refusal::Obstacle {
            what: "its parameters",
            detail: error.to_string(),
        })?;
    if guard.is_never() || pass.block.is_some_and(|block| block.contains(&0)) {
        return Err(Refusal::InTheWay("no launch is like that"));
    }
    let made = constants(site, &guard, pass.guarded, fuel)?;
    let (module, _) = Module::parse(&site.module.name, &made.text);
    let here = Site {
        module: &module,
        ..*site
    };
    let (text, decided) = ranges::write(&here, &guard, fuel)?;
    let (module, _) = Module::parse(&site.module.name, &text);
    let here = Site {
        module: &module,
        ..*site
    };
    let (text, divisions) = quotients::write(&here, &guard, fuel)?;
    if made.changes + decided + divisions == 0 && fuel.left() > 0 {
        return Err(Refusal::NothingToDo("use of what is stated"));
    }
    let multiplied = match divisions {
        0 => String::new(),
        n => format!(", {} without dividing", count(n, "division")),
    };
    let note = format!(
        "{} of the launch, {} decided{multiplied}",
        count(made.constants, "constant"),
        count(decided, "branch")
    );
    if !pass.guarded {
        return Ok(Rewritten::new(text).note(note).under(guard));
    }
    let (module, _) = Module::parse(&site.module.name, &text);
    let both = entry::both(
        site,
        &Site {
            module: &module,
            ..*site
        },
        &guard,
    )?;
    Ok(Rewritten::new(both).note(note).in_cases_of(guard))
}

struct Made {
    text: String,
    constants: usize,
    changes: usize,
}

/// Writes what is stated in the place of special registers and loads of parameters.
fn constants(
    site: &Site,
    guard: &Guard,
    is_guarded: bool,
    fuel: &mut Fuel,
) -> Result<Made, Refusal> {
    let view = view(site.module, site.kernel)?;
    let mut edits = Edits::new(site.module);
    let mut constants = 0;
    for index in 0..view.body().insts.len() as u32 {
        let inst = Inst::from_u32(index);
        let lines = parameter(&view, guard, inst).or_else(|| special(&view, guard, inst));
        if let Some(lines) = lines.filter(|_| fuel.burn()) {
            edits.replace_by_lines(site.kernel, inst, &lines);
            constants += 1;
        }
    }
    let is_required = !is_guarded && require(site, guard, &mut edits, fuel)?;
    Ok(Made {
        text: edits.apply()?,
        constants,
        changes: constants + usize::from(is_required),
    })
}

/// States the block in the kernel's head, in the place of a bound that takes it.
fn require(
    site: &Site,
    guard: &Guard,
    edits: &mut Edits<'_>,
    fuel: &mut Fuel,
) -> Result<bool, Refusal> {
    let Some(block) = guard.exact(Quantity::Block) else {
        return Ok(false);
    };
    let threads = |dims: [u32; 3]| Extent::Size.of(dims);
    let function = site.function();
    if let Some(own) = function.req_ntid() {
        let is_same = own == block;
        return if is_same {
            Ok(false)
        } else {
            Err(other_block(own))
        };
    }
    if let Some(most) = function
        .max_ntid()
        .filter(|most| threads(*most) < threads(block))
    {
        return Err(other_block(most));
    }
    crate::launch::possible(block).map_err(|error| Refusal::Obstacle {
        what: "the block",
        detail: error.to_string(),
    })?;
    if !fuel.burn() {
        return Ok(false);
    }
    let required = DirectiveKind::ReqNtid(Dims(block.into_iter().collect()));
    let mut bounds = function.directives.iter();
    match bounds.find(|directive| matches!(directive.kind, DirectiveKind::MaxNtid(_))) {
        Some(bound) => edits.replace(bound.span, required.to_string()),
        None => edits.set_directive(site.kernel, &required),
    }
    Ok(true)
}

fn other_block([x, y, z]: [u32; 3]) -> Refusal {
    Refusal::Obstacle {
        what: "the kernel asks for other blocks",
        detail: format!("{x},{y},{z}"),
    }
}

/// `@p ` as it is written before an instruction.
pub(super) fn guard_text(view: &View<'_>, inst: Inst) -> String {
    let data = &view.body().insts[inst];
    let head = warpwright_ptx::Span::new(data.span.start, data.opcode_span.start);
    view.module().text(head).to_owned()
}

/// What one register of a load from a parameter gets.
struct Lane {
    reg: Reg,
    ty: Type,
    var: VarId,
    field: Field,
}

/// The lanes of a load of a scalar parameter, or of several.
fn load(view: &View<'_>, inst: Inst) -> Option<Vec<Lane>> {
    let (module, body) = (view.module(), view.body());
    let opcode = module.opcode(&body.insts[inst]);
    let ty = *opcode.types.first()?;
    let [to, Operand::Mem(address)] = *body.operands(inst) else {
        return None;
    };
    let Base::Symbol(Symbol::Var(var)) = address.base else {
        return None;
    };
    let is_load = opcode.op == Some(Op::Ld) && opcode.space == Some(Space::Param);
    let mut params = view.function().params.iter();
    let param = u16::try_from(params.position(|param| param.var == var)?).ok()?;
    if !is_load || opcode.has_mod("volatile") {
        return None;
    }
    let targets: Vec<Operand> = match to {
        Operand::Vector(list) => body.list(list).to_vec(),
        one => vec![one],
    };
    let lane = |(lane, target): (usize, Operand)| {
        let Operand::Reg(reg) = target else {
            return None;
        };
        let at = address.offset + i64::try_from(lane).ok()? * i64::from(ty.bytes());
        let (at, bytes) = (u32::try_from(at).ok()?, u8::try_from(ty.bytes()).ok()?);
        Some(Lane {
            reg,
            ty,
            var,
            field: Field::new(param, at, bytes)?,
        })
    };
    targets.into_iter().enumerate().map(lane).collect()
}

/// The parameter that a load reads one element of.
pub(super) fn loaded_field(view: &View<'_>, inst: Inst) -> Option<Field> {
    match load(view, inst)?.as_slice() {
        [lane] => Some(lane.field),
        _ => None,
    }
}

/// A load of a scalar parameter, or of several, as moves of what is known.
fn parameter(view: &View<'_>, guard: &Guard, inst: Inst) -> Option<Vec<String>> {
    let (module, body) = (view.module(), view.body());
    let prefix = guard_text(view, inst);
    let mut lines = Vec::new();
    let mut is_known = false;
    for Lane {
        reg,
        ty,
        var,
        field,
    } in load(view, inst)?
    {
        let (name, at) = (body.reg_name(reg), field.at());
        let line = match guard.value(Quantity::Param(field)) {
            Some(value) => {
                is_known = true;
                format!(
                    "{prefix}{}",
                    constant(
                        body.reg_type(reg),
                        &name.to_string(),
                        extended(value, ty, body.reg_type(reg))
                    )?
                )
            }
            None => format!(
                "{prefix}ld.param{ty} {name}, [{}+{at}];",
                module.variables[var].name
            ),
        };
        lines.push(line);
    }
    is_known.then_some(lines)
}

/// An element as a register of a wider type holds it.
fn extended(value: u64, from: Type, to: Type) -> u64 {
    let (from_bits, to_bits) = (from.bits(), to.bits());
    if from.kind() != TypeKind::Signed || to_bits <= from_bits {
        return value;
    }
    let shift = 64 - from_bits;
    let wide = ((value << shift) as i64 >> shift) as u64;
    wide & (u64::MAX >> (64 - to_bits))
}

/// A move of bits into a register of that type.
fn constant(ty: Type, name: &str, value: u64) -> Option<String> {
    Some(match ty {
        Type::F32 => format!("mov.f32 {name}, 0f{value:08X};"),
        Type::F64 => format!("mov.f64 {name}, 0d{value:016X};"),
        _ if matches!(ty.bits(), 16 | 32 | 64) => {
            let mut text = format!("mov.b{} {name}, ", ty.bits());
            // Writing to a string does not fail.
            let _: std::fmt::Result = write!(text, "{value};");
            text
        }
        _ => return None,
    })
}

/// A move of a special register that has one value.
fn special(view: &View<'_>, guard: &Guard, inst: Inst) -> Option<Vec<String>> {
    let (module, body) = (view.module(), view.body());
    let opcode = module.opcode(&body.insts[inst]);
    let [Operand::Reg(to), Operand::Special { reg, part }] = *body.operands(inst) else {
        return None;
    };
    let is_move = opcode.op == Some(Op::Mov) && body.reg_type(to).bits() == 32;
    let value = value_of(guard, reg, part).filter(|_| is_move)?;
    let name = body.reg_name(to).to_string();
    Some(vec![format!(
        "{}{}",
        guard_text(view, inst),
        constant(body.reg_type(to), &name, value)?
    )])
}

/// The one value of a special register.
fn value_of(guard: &Guard, reg: SpecialReg, part: Option<Part>) -> Option<u64> {
    use SpecialReg as S;
    let (of, is_index): (fn(Extent) -> Quantity, bool) = match reg {
        S::NTid => (Quantity::Block, false),
        S::NCtaId => (Quantity::Grid, false),
        S::ClusterNCtaId => (Quantity::Cluster, false),
        S::Tid => (Quantity::Block, true),
        S::CtaId => (Quantity::Grid, true),
        S::ClusterCtaId => (Quantity::Cluster, true),
        S::DynamicSmemSize => return guard.value(Quantity::DynamicShared),
        _ => return None,
    };
    let size = guard.value(of(axis(part)?))?;
    match is_index {
        // Below an extent of one.
        true => (size == 1).then_some(0),
        false => Some(size),
    }
}

fn axis(part: Option<Part>) -> Option<Extent> {
    match part? {
        Part::X => Some(Extent::X),
        Part::Y => Some(Extent::Y),
        Part::Z => Some(Extent::Z),
        _ => None,
    }
}
