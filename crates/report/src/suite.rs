//! Result files of the benchmark suite as Markdown tables and figures.
//!
//! All figures are ratios within one run: time of a variant over the time of nvcc's default build
//! of the same kernel, less is faster. Geometric means are over the kernels that have the figure.

use crate::results::{KernelResult, Suite};
use warpwright_driver::proposal::is_rewritten;
use warpwright_pass::Recipe;
use warpwright_pass::passes::{MaxNReg, MaxNTid, MinNCtaPerSm, SmemSpilling};

use crate::svg::{Series, bars};
use crate::tables::{Decided, Seen, is_fitted};

/// What people can do today, as sets of recipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The exhaustive sweep of register limits (`-maxrregcount`).
    Sweep,
    /// `__launch_bounds__` with each minimum number of blocks.
    LaunchBounds,
    /// `enable_smem_spilling` at each limit.
    SharedSpilling,
}

impl Peer {
    fn owns(self, recipe: &Recipe) -> bool {
        if is_rewritten(recipe) || !recipe.fits_ptx() {
            return false; // Nobody does that by hand.
        }
        let shared = recipe.find::<SmemSpilling>().is_some();
        let bounds = recipe.find::<MaxNTid>().is_some() || recipe.find::<MinNCtaPerSm>().is_some();
        let limit = recipe.find::<MaxNReg>().is_some();
        match self {
            Peer::Sweep => limit && !bounds && !shared,
            Peer::LaunchBounds => bounds && !shared && !limit,
            Peer::SharedSpilling => shared,
        }
    }

    /// The best median that this peer reaches on a kernel, noise or not, as `opt`'s choice counts by its median; `None` if
    /// it has no variant there. The default build is always open to people, so the ratio is at most 1.
    pub fn best(self, result: &KernelResult) -> Option<f64> {
        let owned = || {
            let candidates = result.report.candidates.iter().enumerate();
            candidates.filter(|(_, c)| self.owns(&c.recipe) && c.rejected().is_none())
        };
        owned().next()?;
        let medians = owned().filter_map(|(i, _)| result.ratio_of(i));
        Some(medians.fold(1.0, f64::min))
    }
}

/// The best median of all that ptxas makes when told by directives and options alone, noise or not; at
/// most 1.
fn best_of_ptxas(result: &KernelResult) -> f64 {
    let by_ptxas = |r: &Recipe| r.fits_ptx() && !is_rewritten(r);
    let candidates = result.report.candidates.iter().enumerate();
    let plain = candidates.filter(|(_, c)| by_ptxas(&c.recipe) && c.rejected().is_none());
    plain
        .filter_map(|(i, _)| result.ratio_of(i))
        .fold(1.0, f64::min)
}

/// Geometric mean; `None` of nothing.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values
        .into_iter()
        .fold((0.0, 0u32), |(sum, n), value| (sum + value.ln(), n + 1));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

struct Row<'a> {
    result: &'a KernelResult,
    choice: Option<f64>,
    best: Option<f64>,
    sweep: Option<f64>,
    bounds: Option<f64>,
    shared: Option<f64>,
    regret: Option<f64>,
}

fn rows(suite: &Suite) -> Vec<Row<'_>> {
    suite
        .kernels
        .iter()
        .map(|result| Row {
            result,
            choice: result.ratio_of(result.report.chosen),
            best: result.best_ratio(),
            sweep: Peer::Sweep.best(result),
            bounds: Peer::LaunchBounds.best(result),
            shared: Peer::SharedSpilling.best(result),
            regret: result.regret(),
        })
        .collect()
}

/// Where a suite was measured, in a sentence.
pub fn environment(suite: &Suite) -> String {
    let Some(first) = suite.kernels.first() else {
        return "nothing was measured".into();
    };
    let environment = &first.measurements.environment;
    let device = &environment.device;
    format!(
        "{}, driver {}, candidates built by ptxas {}, {}",
        device.name,
        device.driver.as_deref().unwrap_or("unknown"),
        suite.ptxas,
        environment.date.get(..10).unwrap_or(&environment.date)
    )
}

/// The table of a suite: one row per kernel, geometric means below. Kernels that no fit was made on are
/// marked with †.
pub fn table(suite: &Suite, decisions: &[Decided]) -> String {
    let rows = rows(suite);
    let number = |x: Option<f64>| x.map_or_else(|| "–".into(), |x| format!("{x:.3}"));
    let mut out = format!("{}.\n\n", environment(suite));
    out.push_str(
        "| kernel | regs | default µs | `opt` (static) | choice | `tune` | best recipe | \
         `-maxrregcount` sweep | launch bounds | smem pragma | regret of `opt` |\n\
         |---|--:|--:|--:|---|--:|---|--:|--:|--:|--:|\n",
    );
    for row in &rows {
        let report = &row.result.report;
        let default = row
            .result
            .measurements
            .get(&row.result.measurements.baseline);
        let microseconds = default.and_then(|d| d.time_ns).map(|t| t.median / 1000.0);
        let mark = match is_fitted(decisions, &report.name) {
            true => "",
            false => " †",
        };
        out.push_str(&format!(
            "| {}{mark} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            report.name,
            report.candidates[0].resources().map_or(0, |r| r.registers),
            microseconds.map_or_else(|| "–".into(), |t| format!("{t:.1}")),
            number(row.choice),
            report.candidates[report.chosen].name(),
            number(row.best),
            row.result.measurements.chosen,
            number(row.sweep),
            number(row.bounds),
            number(row.shared),
            number(row.regret),
        ));
    }
    let mean = |f: fn(&Row) -> Option<f64>| number(geometric_mean(rows.iter().filter_map(f)));
    out.push_str(&format!(
        "| **geometric mean** | | | **{}** | | **{}** | | {} | {} | {} | **{}** |\n",
        mean(|r| r.choice),
        mean(|r| r.best),
        mean(|r| r.sweep),
        mean(|r| r.bounds),
        mean(|r| r.shared),
        mean(|r| r.regret)
    ));
    for (name, why) in &suite.failures {
        out.push_str(&format!("\n{name} could not be measured: {why}\n"));
    }
    out
}

/// A column of the table.
type Figure = fn(&Row) -> Option<f64>;

/// The geometric means of a suite as a small table, for the front page, and which kernels had a part in
/// which decision.
pub fn summary(suite: &Suite, decisions: &[Decided]) -> String {
    let rows = rows(suite);
    let name = |r: &Row| r.result.report.name.clone();
    // Which kernels stand in a column: all, those that a decision did not see, those that none saw.
    let mut columns: Vec<(String, Vec<&Row>)> = vec![("all".into(), rows.iter().collect())];
    for decision in decisions {
        if let (Some(short), Seen::Some(seen)) = (&decision.short, &decision.kernels) {
            let left = rows.iter().filter(|r| !seen.contains(&name(r)));
            columns.push((format!("without {short}"), left.collect()));
        }
    }
    if !decisions.is_empty() {
        let left = rows.iter().filter(|r| !is_fitted(decisions, &name(r)));
        columns.push(("no parameter fitted on them".into(), left.collect()));
    }
    let means = |f: Figure| -> Vec<String> {
        let mean = |rows: &Vec<&Row>| geometric_mean(rows.iter().filter_map(|r| f(r)));
        let means = columns.iter().map(|(_, rows)| mean(rows));
        means
            .map(|x| x.map_or_else(|| "–".into(), |x| format!("{x:.3}")))
            .collect()
    };
    let slowest = |f: Figure| rows.iter().filter_map(f).fold(1.0f64, f64::max);
    let heads: Vec<String> = columns
        .iter()
        .map(|(head, rows)| format!("{head} ({})", rows.len()))
        .collect();
    let mut out = format!(
        "{} kernels, {}. Time over the time of nvcc's default build, geometric mean, less is \
         faster:\n\n| | {} | slowest kernel |\n|---|{}--:|\n",
        rows.len(),
        environment(suite),
        heads.join(" | "),
        "--:|".repeat(columns.len()),
    );
    let lines: [(&str, Figure); 6] = [
        ("`warpwright opt` (no GPU, no measurement)", |r| r.choice),
        ("`warpwright tune` (what is faster beyond the noise)", |r| {
            r.best
        }),
        ("`-maxrregcount` sweep, best median", |r| r.sweep),
        ("`__launch_bounds__` minima, best median", |r| r.bounds),
        ("`enable_smem_spilling`, best median", |r| {
            r.shared.or(Some(1.0))
        }),
        (
            "the best of ptxas, whatever its options, best median",
            |r| Some(best_of_ptxas(r.result)),
        ),
    ];
    for (name, f) in lines {
        let means = means(f).join(" | ");
        out.push_str(&format!("| {name} | {means} | {:.3} |\n", slowest(f)));
    }
    out.push_str(&format!(
        "| regret of `opt` (its choice over the best measured one) | {} | {:.3} |\n",
        means(|r| r.regret).join(" | "),
        slowest(|r| r.regret)
    ));
    out.push_str(&provenance(suite, decisions));
    out
}

/// Which decisions were made by looking at kernels of the suite.
fn provenance(suite: &Suite, decisions: &[Decided]) -> String {
    let of = |kernels: &Seen| match kernels {
        Seen::Some(kernels) => format!("{} of them", kernels.len()),
        Seen::All(_) => format!("all {}", suite.kernels.len()),
    };
    let made = decisions.iter();
    let made: Vec<String> = made
        .map(|d| format!("{} (on {})", d.what, of(&d.kernels)))
        .collect();
    if made.is_empty() {
        return String::new();
    }
    let strictly = match decisions.iter().any(|d| matches!(d.kernels, Seen::All(_))) {
        true => " Something was chosen on every one of them, so none is held out.",
        false => "",
    };
    format!(
        "\nDecided by looking at these kernels: {}.{strictly}\n",
        made.join("; ")
    )
}

/// Do two runs agree within their stated intervals? A Markdown paragraph, and a line for each
/// variant whose two intervals of the ratio to the default do not meet. The noise that each run
/// measured on its second copy of the default widens the intervals.
pub fn agreement(first: &Suite, second: &Suite) -> String {
    let mut compared = 0;
    let mut apart = Vec::new();
    for a in &first.kernels {
        let twin = second
            .kernels
            .iter()
            .find(|b| b.report.name == a.report.name);
        let Some(b) = twin else { continue };
        let noise = a.measurements.noise.max(b.measurements.noise);
        for variant in &a.measurements.variants {
            let other = b.measurements.get(&variant.id).and_then(|v| v.ratio);
            let (Some(x), Some(y)) = (variant.ratio, other) else {
                continue;
            };
            compared += 1;
            if x.low > y.high + noise || y.low > x.high + noise {
                apart.push(format!(
                    "- {} {}: {:.4} to {:.4} against {:.4} to {:.4}",
                    a.report.name, variant.id, x.low, x.high, y.low, y.high
                ));
            }
        }
    }
    let agreeing = compared - apart.len();
    let mut out = format!(
        "Two runs: {}; {}. Of {compared} variants measured in both, the intervals of {agreeing} \
         meet.\n",
        environment(first),
        environment(second)
    );
    for line in apart {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// The figure of a suite: speed-up over the default build, per kernel.
pub fn figure(suite: &Suite) -> String {
    let series = [
        Series {
            name: "opt (static)",
            colour: "#2a6fa8",
        },
        Series {
            name: "tune",
            colour: "#3a9a4b",
        },
        Series {
            name: "maxrregcount sweep",
            colour: "#d9822b",
        },
    ];
    let data: Vec<(String, Vec<Option<f64>>)> = rows(suite)
        .iter()
        .map(|r| {
            let speedup = |x: Option<f64>| x.map(|x| 1.0 / x);
            (
                r.result.report.name.clone(),
                vec![speedup(r.choice), speedup(r.best), speedup(r.sweep)],
            )
        })
        .collect();
    bars(
        &format!(
            "Speed-up over nvcc's default build ({})",
            environment(suite)
        ),
        &series,
        &data,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_geometric() {
        assert_eq!(geometric_mean([]), None);
        assert!((geometric_mean([0.5, 2.0]).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn peers_are_told_apart() {
        let limit = Recipe::default().with(MaxNReg { registers: 64 });
        let bound = Recipe::default().with(MaxNTid { threads: 256 });
        let spill = limit.with(MaxNTid { threads: 256 }).with(SmemSpilling {});
        let owners =
            |r: &Recipe| [Peer::Sweep, Peer::LaunchBounds, Peer::SharedSpilling].map(|p| p.owns(r));
        assert_eq!(owners(&limit), [true, false, false]);
        assert_eq!(owners(&bound), [false, true, false]);
        assert_eq!(owners(&spill), [false, false, true]);
        assert_eq!(owners(&Recipe::default()), [false, false, false]);
        let ours = limit.with(warpwright_pass::passes::Reduce {
            registers: Some(64),
        });
        assert_eq!(owners(&ours), [false, false, false]);
    }
}
