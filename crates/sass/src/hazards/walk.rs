//! All pairs of register accesses that must keep their order, with the time between them: a fixpoint
//! over the control-flow graph.

use std::collections::BTreeSet;

use warpwright_flow::{Block, Cfg, EntityRef, Function, Inst, Value};

use super::Unchecked;
use super::effect::Effect;
use super::orders::{LOOKED_FOR, Order, OrderKind, Orders};
use super::pending::{Access, NO_PATH, Pending, depends};
use super::timing::{Timing, away, timings};
use super::violation::Cause;
use crate::function::Code;
use crate::roles::{Role, Span};

/// The lowest bit of the first factor of a matrix product.
const FIRST_FACTOR: u8 = 24;
/// Registers that code which is not seen uses stand in no field.
const NO_FIELD: u8 = 255;

/// The order that two accesses of a register must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Read after write.
    Raw,
    /// Write after read.
    War,
    /// Write after write.
    Waw,
}

/// One operand of a dependence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// The instruction.
    pub inst: Inst,
    /// The operand.
    pub span: Span,
    /// How the instruction behaves.
    pub timing: Timing,
}

/// Two accesses of one register of which at least one writes it, not separated by a wait on every
/// path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependence {
    /// What must stay in order.
    pub kind: Kind,
    /// The access that comes first.
    pub earlier: Operand,
    /// The access that must not come too soon.
    pub later: Operand,
    /// The register.
    pub value: Value,
    /// Fewest cycles from issue to issue, waits not counted, up to 255.
    pub cycles: u16,
    /// The same along the paths on which nothing waits for a scoreboard between them, nor the later one itself;
    /// none if there is no such path.
    pub waitless: Option<u16>,
    /// Scoreboards of which each would tell that the earlier one is over, one bit each.
    pub scoreboards: u8,
    /// The order of a unit that keeps them in order; while orders are looked for, the one that would.
    pub order: Option<Order>,
}

impl Dependence {
    /// Does a unit that works in order keep them in order, whatever the time between them?
    pub fn is_in_order(&self) -> bool {
        let (earlier, later) = (self.earlier.timing, self.later.timing);
        self.order.is_some()
            || match self.kind {
                Kind::Raw => self.is_chain(),
                Kind::War => false,
                // The same latency; the shapes of matrix products have their own.
                Kind::Waw => {
                    !earlier.is_late && earlier.class() == later.class() && !earlier.unit.has_shapes
                }
            }
    }

    /// Asynchronous matrix products add to the accumulators of those before them.
    fn is_chain(&self) -> bool {
        let (earlier, later) = (self.earlier, self.later);
        earlier.timing.unit.has_groups
            && earlier.timing.unit == later.timing.unit
            && earlier.span.registers() == later.span.registers()
            && later.span.bit != FIRST_FACTOR
    }

    /// What is missing where the earlier access is over only when a scoreboard says so; `None` where
    /// time is enough.
    pub fn unsettled(&self) -> Option<Cause> {
        self.earlier
            .timing
            .is_late(self.earlier.span)
            .then_some(match self.scoreboards {
                0 => Cause::NoScoreboard,
                scoreboards => Cause::NotAwaited { scoreboards },
            })
    }
}

/// Visits, in program order, the dependences that no wait has settled.
///
/// # Errors
/// The section cannot be checked.
pub fn dependences(code: &Code, visit: impl FnMut(Dependence)) -> Result<(), Unchecked> {
    let sm = code.instructions().first().map_or(0, |inst| inst.sm());
    let orders = Orders::for_sm(sm).ok_or(Unchecked::Architecture(sm))?;
    dependences_with(code, orders, visit)
}

/// The same with other orders of the units.
///
/// # Errors
/// As [`dependences`].
pub fn dependences_with(
    code: &Code,
    orders: &Orders,
    mut visit: impl FnMut(Dependence),
) -> Result<(), Unchecked> {
    let timings = timings(code)?;
    let away = away(code);
    let cfg = Cfg::new(code);
    let insts = (0..code.inst_count()).map(Inst::new);
    let steps = insts
        .zip(&timings)
        .map(|(inst, &timing)| Effect::new(code, inst, timing));
    let steps: Vec<Effect> = steps.collect();
    let at_start = fixpoint(&cfg, &steps, orders);
    for block in cfg.blocks() {
        let mut pending = at_start[block.index()].clone();
        for inst in cfg.insts(block) {
            let step = &steps[inst.index()];
            pending.wait(step, orders);
            visit_pairs(step, &pending, &steps, orders, &mut visit);
            let leaving = away.filter(|_| step.leaves).map(|away| {
                let mut leaving = pending.clone();
                leaving.issue_without_leaving(step, &steps, orders);
                (leaving, away)
            });
            if let Some((leaving, away)) = leaving {
                visit_leaving(inst, &leaving, &steps, away, &mut visit);
            }
            pending.issue(step, &steps, orders);
        }
    }
    Ok(())
}

/// What may be going on at the start of each block. Accesses only join and ages only fall, so it ends.
fn fixpoint(cfg: &Cfg, steps: &[Effect], orders: &Orders) -> Vec<Pending> {
    let mut at_start = vec![Pending::default(); cfg.block_count()];
    // Functions that only code outside calls are not reachable here.
    let others = cfg.blocks().filter(|&block| !cfg.is_reachable(block));
    let order: Vec<Block> = cfg
        .reverse_postorder()
        .iter()
        .copied()
        .chain(others)
        .collect();
    let mut number_of = vec![0; order.len()];
    for (number, block) in order.iter().enumerate() {
        number_of[block.index()] = number as u32;
    }
    let mut work: BTreeSet<u32> = (0..order.len() as u32).collect();
    while let Some(number) = work.pop_first() {
        let block = order[number as usize];
        let mut pending = at_start[block.index()].clone();
        for inst in cfg.insts(block) {
            pending.wait(&steps[inst.index()], orders);
            pending.issue(&steps[inst.index()], steps, orders);
        }
        for &next in cfg.succs(block) {
            if at_start[next.index()].join(&pending) {
                work.insert(number_of[next.index()]);
            }
        }
    }
    at_start
}

pub(crate) fn visit_pairs(
    step: &Effect,
    pending: &Pending,
    steps: &[Effect],
    orders: &Orders,
    visit: &mut impl FnMut(Dependence),
) {
    for &(value, span) in &step.operands {
        let own = pending.of(value, steps);
        for access in own.filter(|access| depends(access, step, span)) {
            let earlier = steps[access.inst.index()].timing;
            let kind = match (access.span.role, span.role) {
                (Role::Use, _) => Kind::War,
                (Role::Def, Role::Use) => Kind::Raw,
                (Role::Def, Role::Def) => Kind::Waw,
            };
            visit(Dependence {
                kind,
                earlier: Operand {
                    inst: access.inst,
                    span: access.span,
                    timing: earlier,
                },
                later: Operand {
                    inst: step.inst,
                    span,
                    timing: step.timing,
                },
                value,
                cycles: access.age,
                waitless: waitless(&access),
                scoreboards: access.scoreboards,
                order: order(&access, kind, [earlier, step.timing], orders),
            });
        }
    }
}

fn waitless(access: &Access) -> Option<u16> {
    Some(access.waitless).filter(|&cycles| cycles != NO_PATH)
}

/// The order of a unit that keeps a late access before the next one.
fn order(
    access: &Access,
    kind: Kind,
    [earlier, later]: [Timing; 2],
    orders: &Orders,
) -> Option<Order> {
    let queue = earlier.queue(access.span.role);
    let order = |kind| Order {
        kind,
        earlier: earlier.operation,
        later: later.operation,
    };
    let own = match kind {
        _ if !access.is_late || queue.is_none() => None,
        Kind::Raw => None,
        // It writes what it has read before.
        Kind::War => Some(OrderKind::War).filter(|_| queue == later.unit.sources),
        Kind::Waw => Some(OrderKind::Waw).filter(|_| queue == later.unit.results),
    };
    let holds = |order: Order| {
        if earlier.unit.has_groups {
            return Some(order);
        }
        let needed = orders.needed(order)?;
        (needed == LOOKED_FOR || access.age >= needed).then_some(order)
    };
    // Of what is over by an order nothing is left but while orders are looked for.
    let found = access.order.filter(|order| order.1 == LOOKED_FOR);
    let found = found.map(|order| order.0);
    let told = found.filter(|order| order.kind != OrderKind::Barrier);
    told.or(own.map(order).and_then(holds)).or(found)
}

/// Code that is not seen may use any register at once.
pub(crate) fn visit_leaving(
    inst: Inst,
    pending: &Pending,
    steps: &[Effect],
    away: Timing,
    visit: &mut impl FnMut(Dependence),
) {
    for access in pending.all(steps) {
        visit(Dependence {
            kind: match access.span.role {
                Role::Use => Kind::War,
                Role::Def => Kind::Raw,
            },
            earlier: Operand {
                inst: access.inst,
                span: access.span,
                timing: steps[access.inst.index()].timing,
            },
            later: Operand {
                inst,
                span: Span {
                    bit: NO_FIELD,
                    ..access.span
                },
                timing: away,
            },
            value: access.value,
            cycles: access.age,
            waitless: waitless(&access),
            scoreboards: access.scoreboards,
            order: access
                .order
                .filter(|order| order.1 == LOOKED_FOR)
                .map(|order| order.0),
        });
    }
}
