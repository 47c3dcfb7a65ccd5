//! The tables of bench/results/registers.md: what CRAT and You & Tsai bring on a measured suite, beside what the
//! papers claim.

use crate::results::{KernelResult, Suite};
use warpwright_driver::crat::choice;
use warpwright_driver::proposal::{is_throttle_only, register_limit};
use warpwright_pass::Recipe;
use warpwright_pass::passes::Reduce;

use crate::suite::{environment, geometric_mean};

/// A kernel under CRAT's eyes. Ratios are times over the default build's.
struct Row<'a> {
    result: &'a KernelResult,
    /// Resident blocks of the default build.
    max_tlp: u32,
    /// The fastest number of blocks at unchanged code, and its ratio.
    profiled: (u32, f64),
    /// The static estimate, and its ratio.
    estimated: (u32, Option<f64>),
    /// TPSC's choice below the profiled OptTLP.
    crat_profiled: Option<usize>,
    /// TPSC's choice below the estimated OptTLP.
    crat_static: Option<usize>,
}

fn blocks(result: &KernelResult, index: usize) -> Option<u32> {
    let candidate = result.report.candidates.get(index)?;
    Some(candidate.residency()?.blocks)
}

fn row(result: &KernelResult) -> Option<Row<'_>> {
    let report = &result.report;
    let crat = report.crat.as_ref()?;
    let max_tlp = blocks(result, 0)?;
    let unchanged: Vec<(u32, usize, f64)> = report
        .candidates
        .iter()
        .enumerate()
        .filter(|(i, c)| is_throttle_only(&c.recipe) && (*i == 0 || result.is_faster(*i)))
        .filter_map(|(i, _)| Some((blocks(result, i)?, i, result.ratio_of(i)?)))
        .collect();
    let fastest = unchanged.iter().min_by(|a, b| a.2.total_cmp(&b.2))?;
    let estimate = crat.usage.opt_tlp.as_ref()?.blocks.min(max_tlp);
    // Not every number of blocks can be reached: the nearest one that was built.
    let at_estimate = (0..report.candidates.len())
        .filter(|&i| is_throttle_only(&report.candidates[i].recipe))
        .filter_map(|i| Some((blocks(result, i)?.abs_diff(estimate), i)))
        .min()
        .map(|(_, i)| i);
    Some(Row {
        result,
        max_tlp,
        profiled: (fastest.0, fastest.2),
        estimated: (estimate, at_estimate.and_then(|c| result.ratio_of(c))),
        crat_profiled: choice(&report.candidates, fastest.0),
        crat_static: crat.choice,
    })
}

impl Row<'_> {
    fn ratio(&self, index: Option<usize>) -> Option<f64> {
        self.result.ratio_of(index?)
    }

    /// Speed-up of a choice over the profiled OptTLP.
    fn speedup(&self, index: Option<usize>) -> Option<f64> {
        Some(self.profiled.1 / self.ratio(index)?)
    }

    fn name(&self, index: Option<usize>) -> String {
        let candidate = index.and_then(|i| self.result.report.candidates.get(i));
        candidate.map_or_else(|| "–".into(), |c| c.name())
    }

    /// Does anything that was measured make a difference to this kernel?
    fn is_sensitive(&self) -> bool {
        self.profiled.0 < self.max_tlp || self.result.best_ratio().is_some_and(|r| r < 0.98)
    }
}

fn number(x: Option<f64>) -> String {
    x.map_or_else(|| "–".into(), |x| format!("{x:.3}"))
}

/// CRAT against OptTLP alone, and the regret of each way to choose.
pub fn table(suite: &Suite) -> String {
    let rows: Vec<Row> = suite.kernels.iter().filter_map(row).collect();
    let mut out = format!(
        "{}. Times over the default build's, less is faster; speed-ups over OptTLP found by \
         measuring, more is faster.\n\n\
         | kernel | MaxTLP | OptTLP measured | its time | OptTLP estimated | its time | CRAT \
         (measured OptTLP) | its time | speed-up | CRAT (static) | its time | speed-up | `opt` | its time |\n\
         |---|--:|--:|--:|--:|--:|---|--:|--:|---|--:|--:|---|--:|\n",
        environment(suite)
    );
    for row in &rows {
        let report = &row.result.report;
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            report.name,
            row.max_tlp,
            row.profiled.0,
            number(Some(row.profiled.1)),
            row.estimated.0,
            number(row.estimated.1),
            row.name(row.crat_profiled),
            number(row.ratio(row.crat_profiled)),
            number(row.speedup(row.crat_profiled)),
            row.name(row.crat_static),
            number(row.ratio(row.crat_static)),
            number(row.speedup(row.crat_static)),
            row.name(Some(report.chosen)),
            number(row.ratio(Some(report.chosen))),
        ));
    }
    out.push_str(&claims(&rows));
    out.push_str(&regrets(&rows));
    out
}

/// A way to choose a candidate.
type Way = fn(&Row) -> Option<usize>;

const WAYS: [(&str, Way); 3] = [
    ("CRAT, OptTLP measured", |r| r.crat_profiled),
    ("CRAT, static", |r| r.crat_static),
    ("`opt`: the stall model", |r| Some(r.result.report.chosen)),
];

/// Geometric means beside the paper's.
fn claims(rows: &[Row]) -> String {
    let mut out = "\n| speed-up over OptTLP alone | all kernels | resource-sensitive ones | the \
                   paper (Fermi, simulated, resource-sensitive ones) |\n|---|--:|--:|--:|\n"
        .to_string();
    for ((name, way), paper) in WAYS.into_iter().zip(["1.25", "1.22", "–"]) {
        let mean = |rows: Vec<&Row>| {
            number(geometric_mean(
                rows.iter().filter_map(|r| r.speedup(way(r))),
            ))
        };
        out.push_str(&format!(
            "| {name} | {} | {} | {paper} |\n",
            mean(rows.iter().collect()),
            mean(rows.iter().filter(|r| r.is_sensitive()).collect()),
        ));
    }
    let sensitive = rows.iter().filter(|r| r.is_sensitive()).count();
    out.push_str(&format!(
        "\n{sensitive} of {} kernels are resource-sensitive: some measured candidate is faster than \
         the default by 2%, or fewer blocks are.\n",
        rows.len()
    ));
    out
}

/// Time of each way's choice over the best measured candidate's.
fn regrets(rows: &[Row]) -> String {
    let regret = |row: &Row, way: Way| {
        let best = row.result.best_ratio()?;
        Some((row.ratio(way(row))? / best).max(1.0))
    };
    let mut out =
        "\n| regret (choice over best measured) | mean | worst |\n|---|--:|--:|\n".to_string();
    for (name, way) in WAYS {
        let all: Vec<f64> = rows.iter().filter_map(|r| regret(r, way)).collect();
        let worst = all.iter().copied().reduce(f64::max);
        out.push_str(&format!(
            "| {name} | {} | {} |\n",
            number(geometric_mean(all)),
            number(worst)
        ));
    }
    out
}

/// You & Tsai against the default build on the kernels that saving registers gives one block more,
/// and ptxas's own way to the same number of registers.
pub fn one_block_more(suite: &Suite) -> String {
    let mut out = format!(
        "{}. Times over the default build's, less is faster.\n\n\
         | kernel | registers | blocks | You & Tsai | registers | blocks | its time | ptxas at the \
         same limit |\n|---|--:|--:|---|--:|--:|--:|--:|\n",
        environment(suite)
    );
    let mut ratios = Vec::new();
    for result in &suite.kernels {
        let Some((index, ratio)) = first_step(result) else {
            continue;
        };
        ratios.push((ratio, same_limit(result, index)));
        let report = &result.report;
        let facts = |i: usize| {
            let registers = report.candidates[i].resources().map(|r| r.registers);
            (registers.unwrap_or(0), blocks(result, i).unwrap_or(0))
        };
        let ((before, of), (after, now)) = (facts(0), facts(index));
        out.push_str(&format!(
            "| {} | {before} | {of} | {} | {after} | {now} | {} | {} |\n",
            report.name,
            report.candidates[index].name(),
            number(Some(ratio)),
            number(same_limit(result, index)),
        ));
    }
    let mean = geometric_mean(ratios.iter().map(|r| r.0));
    let of_ptxas = geometric_mean(ratios.iter().filter_map(|r| r.1));
    out.push_str(&format!(
        "| **geometric mean** | | | | | | **{}** | {} |\n\nThe paper: 14.8% less time on average \
         (GTX 280, 0.852).\n",
        number(mean),
        number(of_ptxas)
    ));
    out
}

/// The fastest candidate of You & Tsai's with exactly one block more than the default.
fn first_step(result: &KernelResult) -> Option<(usize, f64)> {
    let wanted = blocks(result, 0)? + 1;
    let is_theirs = |recipe: &Recipe| recipe.find::<Reduce>().is_some();
    let candidates = result.report.candidates.iter().enumerate();
    candidates
        .filter(|(i, c)| is_theirs(&c.recipe) && blocks(result, *i) == Some(wanted))
        .filter_map(|(i, _)| Some((i, result.ratio_of(i)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The ratio of ptxas's own build with as many blocks: a register limit and nothing else.
fn same_limit(result: &KernelResult, index: usize) -> Option<f64> {
    let wanted = blocks(result, index);
    let candidates = result.report.candidates.iter().enumerate();
    let ratios = candidates
        .filter(|(_, c)| register_limit(&c.recipe).is_some())
        .filter(|(i, _)| blocks(result, *i) == wanted)
        .filter_map(|(i, _)| result.ratio_of(i));
    ratios.reduce(f64::min)
}
