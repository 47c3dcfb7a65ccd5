//! Random rewrites of PTX kernels: spills, which are right, and damage, which seldom is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use warpwright_fuzzgen::Rng;
use warpwright_ptx::opcode::Role;
use warpwright_ptx::{Base, Inst, Module, Operand, Reg, Span, Type, View};

/// A change of a text: this span becomes that text.
type Edit = (Span, String);

fn apply(source: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let mut out = String::new();
    let mut at = 0;
    for (span, text) in edits {
        out += &source[at..span.start as usize];
        out += &text;
        at = span.end as usize;
    }
    out + &source[at..]
}

fn view(module: &Module) -> View<'_> {
    let (id, _) = module.kernels().next().expect("a kernel");
    module.view(id).expect("a body")
}

/// Registers that a load and a store can name.
fn spillable(view: &View<'_>, reg: Reg) -> Option<(&'static str, u32)> {
    match view.body().reg_type(reg) {
        Type::Pred => None,
        ty => match ty.bits() {
            16 => Some((".b16", 2)),
            32 => Some((".b32", 4)),
            64 => Some((".b64", 8)),
            _ => None,
        },
    }
}

/// Spills `count` random registers around each of their uses and definitions, to local or shared
/// memory, in blocks of `block` threads in one dimension.
pub fn spill(module: &Module, rng: &mut Rng, count: usize, block: u32) -> String {
    let view = view(module);
    let body = view.body();
    let candidates: Vec<Reg> = body
        .regs
        .keys()
        .filter(|&reg| spillable(&view, reg).is_some())
        .collect();
    let is_shared = rng.chance(50);
    let mut slots: BTreeMap<Reg, u32> = BTreeMap::new();
    for _ in 0..count {
        let next = slots.len() as u32;
        slots.entry(*rng.pick(&candidates)).or_insert(next);
    }
    let address = |slot: u32| match is_shared {
        true => format!("[%zb+{}]", slot * block * 8),
        false => format!("[zspill+{}]", slot * 8),
    };
    let space = if is_shared { "shared" } else { "local" };
    let mut temporaries: Vec<(Reg, String)> = Vec::new();
    let mut edits: Vec<Edit> = Vec::new();
    for inst in body.insts.keys() {
        let data = body.insts[inst];
        let (mut before, mut after) = (String::new(), String::new());
        let guard = data.guard.map_or(String::new(), |guard| {
            let sign = if guard.negated { "!" } else { "" };
            format!("@{sign}{} ", body.reg_name(guard.reg))
        });
        for (operand, role) in operands(module, &view, inst) {
            for (span, reg) in registers(&view, operand) {
                let Some((slot, (ty, _))) = slots.get(&reg).zip(spillable(&view, reg)) else {
                    continue;
                };
                let name = format!("%z{}", temporaries.len());
                temporaries.push((reg, name.clone()));
                let place = address(*slot);
                let text = match role {
                    Role::Def => &mut after,
                    _ => &mut before,
                };
                let _ = match role {
                    Role::Def => write!(text, " {guard}st.{space}{ty} {place}, {name};"),
                    _ => write!(text, "ld.{space}{ty} {name}, {place}; "),
                };
                edits.push((span, name));
            }
        }
        edits.push((Span::new(data.span.start, data.span.start), before));
        edits.push((Span::new(data.span.end, data.span.end), after));
    }
    let mut declarations = String::from("\n.reg .b32 %zt, %zb;");
    for (reg, name) in &temporaries {
        let _ = write!(declarations, " .reg {} {name};", body.reg_type(*reg));
    }
    let bytes = slots.len() as u32 * 8 * if is_shared { block } else { 1 };
    let _ = writeln!(
        declarations,
        "\n.{space} .align 8 .b8 zspill[{}];",
        bytes.max(8)
    );
    if is_shared {
        declarations += "mov.u32 %zt, %tid.x; mov.u32 %zb, zspill; mad.lo.s32 %zb, %zt, 8, %zb;\n";
    }
    // After the declarations of the body, which come first.
    let first = body
        .insts
        .values()
        .next()
        .expect("an instruction")
        .span
        .start;
    edits.push((Span::new(first, first), declarations));
    // Stable sorting keeps the declarations last at that place; they must come first.
    let last = edits.len() - 1;
    edits.swap(0, last);
    apply(&module.source, edits)
}

fn operands(
    module: &Module,
    view: &View<'_>,
    inst: Inst,
) -> Vec<(warpwright_ptx::OperandId, Role)> {
    let data = view.body().insts[inst];
    let ids = data.operands.ids();
    let roles = module
        .opcode(&data)
        .roles(data.operands.len as usize)
        .unwrap_or_default();
    ids.zip(roles).collect()
}

/// The registers named in an operand, with their places.
fn registers(view: &View<'_>, operand: warpwright_ptx::OperandId) -> Vec<(Span, Reg)> {
    let body = view.body();
    let span = body.operand_span(operand);
    match body.operands[operand] {
        Operand::Reg(reg) => vec![(span, reg)],
        Operand::Mem(address) => match address.base {
            Base::Reg(reg) => {
                let name = body.reg_name(reg).to_string();
                let text = span.text(&view.module().source);
                let at = span.start + text.find(&name).expect("its base") as u32;
                vec![(Span::new(at, at + name.len() as u32), reg)]
            }
            _ => Vec::new(),
        },
        Operand::Vector(list) | Operand::Pair(list) => {
            list.ids().flat_map(|part| registers(view, part)).collect()
        }
        _ => Vec::new(),
    }
}

/// One random change that a buggy pass might make; `None` if it finds nothing to change.
pub fn damage(module: &Module, rng: &mut Rng) -> Option<String> {
    let view = view(module);
    let body = view.body();
    let insts: Vec<Inst> = body.insts.keys().collect();
    let inst = *rng.pick(&insts);
    let data = body.insts[inst];
    let named: Vec<(Span, Reg)> = operands(module, &view, inst)
        .into_iter()
        .flat_map(|(operand, _)| registers(&view, operand))
        .collect();
    let edits = match rng.below(5) {
        // Another register of its type.
        0 if !named.is_empty() => {
            let (span, reg) = *rng.pick(&named);
            let same: Vec<Reg> = body
                .regs
                .keys()
                .filter(|&other| other != reg && body.reg_type(other) == body.reg_type(reg))
                .collect();
            if same.is_empty() {
                return None;
            }
            vec![(span, body.reg_name(*rng.pick(&same)).to_string())]
        }
        // Two operands change places.
        1 if named.len() > 1 => {
            let (first, second) = (*rng.pick(&named), *rng.pick(&named));
            if first.1 == second.1 {
                return None;
            }
            let text = |span: Span| module.text(span).to_owned();
            vec![(first.0, text(second.0)), (second.0, text(first.0))]
        }
        // It is gone, or stands behind the next one.
        2 => vec![(data.span, String::new())],
        3 => {
            let next = body.insts.get(Inst::from_u32(inst.as_u32() + 1))?;
            let (first, second) = (module.text(data.span), module.text(next.span));
            vec![
                (data.span, second.to_owned()),
                (next.span, first.to_owned()),
            ]
        }
        // Another immediate.
        _ => {
            let ids = data.operands.ids();
            let constants = ids.filter(|&id| matches!(body.operands[id], Operand::Imm(_)));
            let span = body.operand_span(constants.last()?);
            let value: i64 = module.text(span).parse().ok()?;
            vec![(span, (value ^ 1).to_string())]
        }
    };
    Some(apply(&module.source, edits))
}
