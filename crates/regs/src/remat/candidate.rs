//! Which values could be recomputed, best first (You & Tsai, Algorithm 1: conditions 1, 2 and 4 and
//! the selection rule; condition 3 is about places: [`super::place`]).

use std::cmp::Ordering;

use warpwright_flow::{Function, Inst, PressureRegion, Value, Web};

use super::Rules;
use super::facts::{Facts, price, written};

/// A value that lives through a region of high pressure and could be recomputed behind it.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) value: Value,
    pub(crate) web: Web,
    pub(crate) def: Inst,
    /// Instructions of the regions through which it lives without being accessed.
    pub(crate) crossed: Vec<Inst>,
    /// Regions of which it crosses every instruction.
    covered: usize,
    /// Length of the register's live range, in instructions.
    length: u32,
    /// A guess at what recomputing it costs, loop-weighted, in simple instructions.
    cost: f64,
}

/// The candidates for lowering the pressure in `regions`, best first.
pub(crate) fn find(
    func: &impl Function,
    facts: &Facts,
    regions: &[PressureRegion],
    rules: Rules,
) -> Vec<Candidate> {
    let insts = (0..func.inst_count() as u32).map(Inst);
    let mut found: Vec<Candidate> = insts
        .filter_map(|def| candidate(func, facts, regions, def))
        .filter(|candidate| candidate.covered > 0 || rules == Rules::Full)
        .collect();
    match rules {
        Rules::Paper => found.sort_by(by_coverage_and_length),
        Rules::Full => found.sort_by(by_coverage_and_cost),
    }
    found
}

fn candidate(
    func: &impl Function,
    facts: &Facts,
    regions: &[PressureRegion],
    def: Inst,
) -> Option<Candidate> {
    let price = price(func, def)?;
    let value = written(func, def).filter(|&value| func.units(value) > 0)?;
    let web = facts.webs.of_def(def, value)?;
    facts.only_def(web)?;
    let mut crossed = Vec::new();
    let mut covered = 0;
    for region in regions {
        let before = crossed.len();
        let all = (region.first.0..=region.last.0).map(Inst);
        let through = all.filter(|&inst| {
            let there = || facts.webs.before(&facts.cfg, &facts.liveness, inst, value);
            facts.crosses(value, inst) && there() == Some(web)
        });
        crossed.extend(through);
        let size = region.last.0 - region.first.0 + 1;
        covered += usize::from(crossed.len() - before == size as usize);
    }
    if crossed.is_empty() {
        return None;
    }
    let uses = facts.uses_of(web).into_iter();
    Some(Candidate {
        value,
        web,
        def,
        crossed,
        covered,
        length: facts.ranges.length(value),
        cost: f64::from(price) * uses.map(|inst| facts.weight(inst)).sum::<f64>(),
    })
}

/// The paper's rule: the most regions, then the longest live range.
fn by_coverage_and_length(a: &Candidate, b: &Candidate) -> Ordering {
    let key = |c: &Candidate| (c.covered, c.length);
    key(b).cmp(&key(a)).then(a.def.cmp(&b.def))
}

/// What frees most comes first, then what costs least, then the longest live range.
fn by_coverage_and_cost(a: &Candidate, b: &Candidate) -> Ordering {
    let key = |c: &Candidate| (c.covered, c.crossed.len());
    key(b)
        .cmp(&key(a))
        .then(a.cost.total_cmp(&b.cost))
        .then(b.length.cmp(&a.length))
        .then(a.def.cmp(&b.def))
}
