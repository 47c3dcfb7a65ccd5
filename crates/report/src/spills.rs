//! The tables of bench/results/spills.md: the ways to spill, at the same register limit.

use crate::results::{KernelResult, Suite};
use warpwright_driver::proposal::register_limit;
use warpwright_pass::passes::{MaxNReg, SmemSpilling, SpillToShared};
use warpwright_pass::{Invocation, Recipe};

use crate::suite::{environment, geometric_mean};

/// The ways to spill at one register limit of one kernel. Ratios are times over the default build's.
struct Row<'a> {
    result: &'a KernelResult,
    /// `None`: the default build.
    limit: Option<u32>,
    /// Loads and stores of one pass over the code, in bytes.
    traffic: u32,
    local: f64,
    pragma: Option<f64>,
    whole: Option<f64>,
    /// The fastest partial move, and the blocks beside which it was made.
    part: Option<(f64, u32)>,
    /// No other limit, spilling or not, is faster with slots in local memory.
    is_best: bool,
    /// No other limit that spills is faster.
    is_best_spilling: bool,
}

impl Row<'_> {
    fn moved(&self) -> Option<f64> {
        let part = self.part.map(|part| part.0);
        let both = self.whole.into_iter().chain(part);
        both.min_by(f64::total_cmp)
    }
}

/// Rows of which kind, and which they are.
type Set = (&'static str, fn(&Row) -> bool);

/// The register limit of a recipe that spills to local memory.
fn plain_limit(recipe: &Recipe) -> Option<Option<u32>> {
    match recipe.is_default() {
        true => Some(None),
        false => register_limit(recipe).map(Some),
    }
}

/// The register limit of a recipe, whatever else it does.
fn any_limit(recipe: &Recipe) -> Option<u32> {
    recipe.find().map(|&MaxNReg { registers }| registers)
}

fn rows(result: &KernelResult) -> Vec<Row<'_>> {
    let candidates = result.report.candidates.iter().enumerate();
    let plain = candidates.clone().filter_map(|(at, candidate)| {
        let limit = plain_limit(&candidate.recipe)?;
        let resources = candidate.resources()?;
        let traffic = resources.spill_load_bytes + resources.spill_store_bytes;
        Some((limit, traffic, result.ratio_of(at)?))
    });
    let plain: Vec<(Option<u32>, u32, f64)> = plain.collect();
    let fastest = |spilling: bool| {
        let those = plain.iter().filter(|limit| !spilling || limit.1 > 0);
        those.map(|limit| limit.2).fold(f64::INFINITY, f64::min)
    };
    let spilling = plain.iter().filter(|limit| limit.1 > 0);
    let row = |&(limit, traffic, local): &(Option<u32>, u32, f64)| {
        let here = candidates
            .clone()
            .filter(|(_, c)| plain_limit(&c.recipe).is_none() && any_limit(&c.recipe) == limit);
        let timed =
            here.filter_map(|(at, c)| Some((c.recipe.passes().last()?, result.ratio_of(at)?)));
        let timed: Vec<(&Invocation, f64)> = timed.collect();
        let of = |wanted: Invocation| timed.iter().find(|t| *t.0 == wanted).map(|t| t.1);
        let parts = timed.iter().filter_map(|&(pass, ratio)| {
            let &SpillToShared { blocks } = pass.get()?;
            Some((ratio, blocks?))
        });
        Row {
            result,
            limit,
            traffic,
            local,
            pragma: of(SmemSpilling {}.into()),
            whole: of(SpillToShared { blocks: None }.into()),
            part: parts.min_by(|a, b| a.0.total_cmp(&b.0)),
            is_best: local <= fastest(false),
            is_best_spilling: local <= fastest(true),
        }
    };
    spilling.map(row).collect()
}

fn number(x: Option<f64>) -> String {
    x.map_or_else(|| "–".into(), |x| format!("{x:.3}"))
}

/// The best limit at which each kernel spills, and geometric means over these, over those that are the
/// kernel's best limit of all, and over all limits.
pub fn table(suite: &Suite) -> String {
    let all: Vec<Row> = suite.kernels.iter().flat_map(rows).collect();
    let mut out = format!(
        "{}. Times over the default build's at the limit at which the kernel spills and is fastest with \
         its slots in local memory; ● where no limit without spills is faster either. 'Part': the fastest \
         partial move and the resident blocks that it was made for.\n\n\
         | kernel | limit | bytes | local memory | `enable_smem_spilling` | all moved | part |\n\
         |---|---|--:|--:|--:|--:|--:|\n",
        environment(suite)
    );
    for row in all.iter().filter(|row| row.is_best_spilling) {
        let limit = row.limit.map_or("default".into(), |n| n.to_string());
        let part = row
            .part
            .map(|(ratio, blocks)| format!("{ratio:.3} (x{blocks})"));
        out.push_str(&format!(
            "| {}{} | {limit} | {} | {:.3} | {} | {} | {} |\n",
            row.result.report.name,
            if row.is_best { " ●" } else { "" },
            row.traffic,
            row.local,
            number(row.pragma),
            number(row.whole),
            part.unwrap_or_else(|| "–".into()),
        ));
    }
    out.push_str(
        "\nGeometric means of time over the time of another way at the same limit, with the number of \
         limits that have both:\n\n\
         | | all moved : local | : pragma | part : local | : pragma | better of both : local | : pragma |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
    );
    let sets: [Set; 3] = [
        ("the kernel's best limit, if it spills (●)", |row| {
            row.is_best
        }),
        ("the best limit that spills", |row| row.is_best_spilling),
        ("every limit that spills", |_| true),
    ];
    for (name, is_in) in sets {
        let those: Vec<&Row> = all.iter().filter(|row| is_in(row)).collect();
        let mean = |over: &dyn Fn(&Row) -> Option<f64>| {
            let ratios: Vec<f64> = those.iter().filter_map(|row| over(row)).collect();
            let mean = geometric_mean(ratios.iter().copied());
            mean.map_or_else(
                || "–".into(),
                |mean| format!("{mean:.3} ({})", ratios.len()),
            )
        };
        let part = |row: &Row| row.part.map(|part| part.0);
        out.push_str(&format!(
            "| {name} | {} | {} | {} | {} | {} | {} |\n",
            mean(&|row| Some(row.whole? / row.local)),
            mean(&|row| Some(row.whole? / row.pragma?)),
            mean(&|row| Some(part(row)? / row.local)),
            mean(&|row| Some(part(row)? / row.pragma?)),
            mean(&|row| Some(row.moved()? / row.local)),
            mean(&|row| Some(row.moved()? / row.pragma?)),
        ));
    }
    let builds = suite
        .kernels
        .iter()
        .flat_map(|kernel| &kernel.measurements.variants);
    let (right, wrong): (Vec<_>, Vec<_>) = builds.partition(|build| build.verdict.is_correct());
    out.push_str(&format!(
        "\n{} kernels, {} builds: {} with the results of the default build, bit for bit, {} not.\n",
        suite.kernels.len(),
        right.len() + wrong.len(),
        right.len(),
        wrong.len()
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_pass::passes::MaxNTid;

    #[test]
    fn ways_to_spill_belong_to_their_limit() {
        let limit = Recipe::default().with(MaxNReg { registers: 64 });
        assert_eq!(plain_limit(&Recipe::default()), Some(None));
        assert_eq!(plain_limit(&limit), Some(Some(64)));
        let moved = limit
            .with(MaxNTid { threads: 256 })
            .with(SpillToShared { blocks: None });
        assert_eq!(plain_limit(&moved), None);
        assert_eq!(any_limit(&moved), Some(64));
    }
}
