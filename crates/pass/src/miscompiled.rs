//! Versions of ptxas that make wrong code of some PTX: what is known of each, and where a module meets it.
//!
//! docs/ptxas-bugs.md has what was compared, and the reports that could not be confirmed. A pattern takes in more than what
//! was seen to come out wrong: ptxas reorders operands before it makes its mistake.

use std::collections::BTreeSet;
use std::fmt;

use warpwright_flow::{Block, Cfg, Function as _, Inst as Place, Liveness, Loops, Value};
use warpwright_ptx::ir::{Body, InstData};
use warpwright_ptx::opcode::{Op, Opcode};
use warpwright_ptx::types::Type;
use warpwright_ptx::{FuncId, Imm, Module, Operand, Reg};

use crate::names::source_name;

/// A mistake of ptxas.
#[derive(Debug)]
pub struct Miscompilation {
    /// A short name.
    pub name: &'static str,
    /// The first version that makes it, `(13, 0)`; `(0, 0)` where no older one is known to be right.
    pub from: (u32, u32),
    /// The first version that does not.
    pub until: (u32, u32),
    /// The architectures, as numbers; none stands for all.
    pub architectures: &'static [u32],
    /// What comes out.
    pub what: &'static str,
    /// Who says so, or how it was found.
    pub source: &'static str,
    pattern: fn(&Module, FuncId) -> bool,
}

/// All that are known by a pattern.
pub static MISCOMPILATIONS: &[Miscompilation] = &[
    Miscompilation {
        name: "three-operand minimum of a negation",
        from: (12, 6),
        until: (13, 4),
        architectures: &[90, 100, 103],
        what: "max(max(a, -b), c) becomes max(a, b, c), so that |b| is taken for b; min likewise",
        source: "triton-lang/triton#11032, pytorch/pytorch#190973; machine code read",
        pattern: negated_extreme,
    },
    Miscompilation {
        name: "predicate of a loop's entry",
        from: (0, 0),
        until: (13, 2),
        architectures: &[],
        what: "a predicate that guards the way into a loop is taken for constant inside",
        source: "generated kernels compared with a GPU, machine code read",
        pattern: entry_predicate,
    },
];

/// A kernel of which this ptxas may make wrong code.
#[derive(Debug, Clone, Copy)]
pub struct Met<'a> {
    /// The kernel's symbol.
    pub kernel: &'a str,
    /// The mistake.
    pub known: &'static Miscompilation,
    /// ptxas's version.
    pub version: (u32, u32),
}

impl fmt::Display for Met<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((major, minor), (until, then)) = (self.version, self.known.until);
        write!(
            f,
            "ptxas {major}.{minor} may make wrong code of `{}`: {} ({}); {until}.{then} is right",
            source_name(self.kernel),
            self.known.what,
            self.known.source
        )
    }
}

/// Where the kernels of a module, or the functions that they call, meet a mistake of this version for this architecture.
pub fn met(module: &Module, version: (u32, u32), sm: u32) -> Vec<Met<'_>> {
    let mut found = Vec::new();
    let mistakes = MISCOMPILATIONS.iter().filter(|known| {
        (known.from..known.until).contains(&version)
            && (known.architectures.is_empty() || known.architectures.contains(&sm))
    });
    for known in mistakes {
        let is_met = |id| (known.pattern)(module, id);
        let functions = module.functions.iter().filter(|(_, f)| f.body.is_some());
        let guilty: BTreeSet<FuncId> = functions
            .map(|(id, _)| id)
            .filter(|&id| is_met(id))
            .collect();
        let kernels = module.kernels().filter(|(id, _)| {
            !guilty.is_empty()
                && crate::reliance::reached(module, *id)
                    .iter()
                    .any(|id| guilty.contains(id))
        });
        found.extend(kernels.map(|(_, function)| Met {
            kernel: &function.name,
            known,
            version,
        }));
    }
    found
}

/// The instructions of a body with their opcodes.
fn each<'a>(
    module: &'a Module,
    body: &'a Body,
) -> impl Iterator<Item = (&'a InstData, &'a Opcode)> {
    body.insts.values().map(|inst| (inst, module.opcode(inst)))
}

/// The first operand, if it is a register, and the registers among the others.
fn registers(body: &Body, inst: &InstData) -> Option<(Reg, Vec<Reg>)> {
    let (first, others) = body.list(inst.operands).split_first()?;
    let register = |operand: &Operand| match operand {
        Operand::Reg(reg) => Some(*reg),
        _ => None,
    };
    Some((
        register(first)?,
        others.iter().filter_map(register).collect(),
    ))
}

/// A signed minimum or maximum with a negation among its operands, whose result goes into another one. Minimum and
/// maximum may be spelt as a comparison and a selection, the negation as a difference from 0 or a product with -1.
fn negated_extreme(module: &Module, id: FuncId) -> bool {
    let Some(body) = &module.functions[id].body else {
        return false;
    };
    let copies = |mut set: BTreeSet<Reg>| {
        loop {
            let before = set.len();
            let moves = each(module, body).filter(|(_, opcode)| opcode.op == Some(Op::Mov));
            let moved = moves.filter_map(|(inst, _)| registers(body, inst));
            let new = moved.filter(|(_, from)| from.iter().any(|reg| set.contains(reg)));
            let new: Vec<Reg> = new.map(|(to, _)| to).collect();
            set.extend(new);
            if set.len() == before {
                return set;
            }
        }
    };
    let negations = each(module, body).filter(|(inst, opcode)| is_negation(body, inst, opcode));
    let negated = negations.filter_map(|(inst, _)| Some(registers(body, inst)?.0));
    let negated: BTreeSet<Reg> = copies(negated.collect());
    if negated.is_empty() {
        return false;
    }
    let extremes: Vec<(Reg, Vec<Reg>)> = each(module, body)
        .filter(|(_, opcode)| is_extreme(opcode))
        .filter_map(|(inst, _)| registers(body, inst))
        .collect();
    let inner = extremes
        .iter()
        .filter(|(_, from)| from.iter().any(|reg| negated.contains(reg)));
    let inner: BTreeSet<Reg> = copies(inner.map(|(to, _)| *to).collect());
    extremes
        .iter()
        .any(|(_, from)| from.iter().any(|reg| inner.contains(reg)))
}

fn is_negation(body: &Body, inst: &InstData, opcode: &Opcode) -> bool {
    let is = |operand: Option<&Operand>, wanted: i64| matches!(operand, Some(Operand::Imm(Imm::Int { value, .. })) if *value == wanted);
    let operands = body.list(inst.operands);
    match opcode.op {
        Some(Op::Neg) => is_signed(opcode),
        Some(Op::Sub) => is(operands.get(1), 0),
        Some(Op::Mul | Op::Mad) => is(operands.get(1), -1) || is(operands.get(2), -1),
        _ => false,
    }
}

fn is_signed(opcode: &Opcode) -> bool {
    let narrow = [Type::S16, Type::S32];
    opcode.types.iter().any(|ty| narrow.contains(ty)) || opcode.has_mod("s16x2")
}

/// A selection counts as well: with a comparison before it, it is a minimum or a maximum.
fn is_extreme(opcode: &Opcode) -> bool {
    match opcode.op {
        Some(Op::Max | Op::Min) => is_signed(opcode),
        Some(Op::Selp) => {
            let wide = [Type::F32, Type::F64, Type::B64, Type::S64, Type::U64];
            !opcode.types.iter().any(|ty| wide.contains(ty))
        }
        _ => false,
    }
}

/// A loop that reads a predicate before it writes it, behind a branch by that predicate that leads around it.
fn entry_predicate(module: &Module, id: FuncId) -> bool {
    let Some(view) = module.view(id) else {
        return false;
    };
    let cfg = Cfg::new(&view);
    let loops = Loops::new(&cfg);
    if loops.is_empty() {
        return false;
    }
    let liveness = Liveness::new(&view, &cfg);
    loops.iter().any(|of| {
        let inside = loops.blocks(of);
        let header = loops.header(of);
        let written = |value: Value| {
            let insts = inside.iter().flat_map(|&block| cfg.insts(block));
            let mut is_written = false;
            for inst in insts {
                view.for_each_def(inst, |def| is_written |= def == value);
            }
            is_written
        };
        let guards = guards_of(&view, &cfg, (header, inside));
        let live = liveness.live_in(header);
        guards
            .iter()
            .any(|value| live.contains(value) && written(*value))
    })
}

/// The predicates of branches that decide whether a loop is entered, up to the next block with several ways in.
fn guards_of(
    view: &warpwright_ptx::View<'_>,
    cfg: &Cfg,
    (header, inside): (Block, &[Block]),
) -> Vec<Value> {
    let mut found = Vec::new();
    let outside = cfg
        .preds(header)
        .iter()
        .filter(|block| !inside.contains(block));
    for &entry in outside {
        let mut block = Some(entry);
        let mut seen = BTreeSet::new();
        while let Some(at) = block.filter(|&at| seen.insert(at)) {
            let last: Place = cfg.last_inst(at);
            if cfg.succs(at).len() > 1 && view.is_predicated(last) {
                view.for_each_use(last, |value| found.push(value));
            }
            block = match cfg.preds(at) {
                [one] => Some(*one),
                _ => None,
            };
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(body: &str, version: (u32, u32), sm: u32) -> Vec<&'static str> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .b32 %r<9>;\n.reg .b16 %h<5>;\n.reg .pred %p<4>;\n{body}\nret;\n}}\n"
        );
        let (module, diagnostics) = Module::parse("k.ptx", &text);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        met(&module, version, sm)
            .iter()
            .map(|met| met.known.name)
            .collect()
    }

    const ABS: &str = "neg.s32 %r2, %r1;\nmax.s32 %r3, %r1, %r2;\nmax.s32 %r4, %r3, %r5;";

    #[test]
    fn the_versions_and_architectures_that_were_compared() {
        let seen = |version, sm| !names(ABS, version, sm).is_empty();
        for version in [(12, 6), (12, 9), (13, 0), (13, 3)] {
            assert!(seen(version, 90) && seen(version, 100) && seen(version, 103));
            assert!(!seen(version, 80) && !seen(version, 120));
        }
        assert!(!seen((12, 5), 90) && !seen((13, 4), 90) && !seen((13, 5), 90));
    }

    #[test]
    fn other_spellings() {
        for body in [
            "sub.s32 %r2, 0, %r1;\nmin.s32 %r3, %r1, %r2;\nmin.s32 %r4, %r5, %r3;",
            "mul.lo.s32 %r2, %r1, -1;\nmax.s32 %r3, %r6, %r2;\nmax.s32 %r4, %r3, %r5;",
            "neg.s32 %r2, %r1;\nmov.u32 %r6, %r2;\nmax.s32 %r3, %r1, %r6;\nmov.b32 %r7, %r3;\nmax.s32 %r4, %r7, %r5;",
            "neg.s16 %h2, %h1;\nmax.s16 %h3, %h1, %h2;\nmax.s16 %h4, %h3, %h0;",
            "neg.s32 %r2, %r1;\nsetp.gt.s32 %p1, %r1, %r2;\nselp.b32 %r3, %r1, %r2, %p1;\nmax.s32 %r4, %r3, %r5;",
        ] {
            assert_eq!(names(body, (13, 0), 90).len(), 1, "{body}");
        }
        for body in [
            "abs.s32 %r2, %r1;\nmax.s32 %r3, %r2, %r5;",
            "neg.s32 %r2, %r1;\nmax.s32 %r3, %r1, %r2;",
            "neg.s32 %r2, %r1;\nmax.u32 %r3, %r1, %r2;\nmax.u32 %r4, %r3, %r5;",
        ] {
            assert!(names(body, (13, 0), 90).is_empty(), "{body}");
        }
    }

    #[test]
    fn a_predicate_that_guards_a_loop_and_is_read_in_it() {
        let body = "@!%p1 bra L1;\nbra L2;\nL1:\n@%p2 bra L2;\nLOOP:\n@!%p2 add.s32 %r1, %r1, 1;\n\
                    setp.eq.u32 %p2, %r1, %r2;\n@%p3 bra LOOP;\nL2:";
        assert_eq!(names(body, (13, 1), 80).len(), 1);
        assert!(names(body, (13, 2), 80).is_empty());
        let own = body.replace("@!%p2 add", "add");
        assert!(names(&own, (13, 1), 80).is_empty(), "it is written first");
    }
}
