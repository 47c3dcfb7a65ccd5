//! The table of bench/results/stencils.md: the fastest version of each family, all of one run, beside the floors of
//! bench/stencils/goals.json.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::results::{StencilResult, StencilVersion};
use serde::{Deserialize, Serialize};
use warpwright_stencil::versions::Family;

use crate::suite::geometric_mean;

/// The schema of a result file.
pub const SCHEMA: &str = "warpwright.stencils/1";

/// A result file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: String,
    /// Stencil by stencil.
    pub stencils: Vec<StencilResult>,
}

/// What no version can be faster than: milliseconds per sweep on the GPU of the goals.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Goal {
    /// Compulsory traffic at the measured copy rate.
    pub traffic_floor: f64,
    /// Arithmetic at the peak rate of fused operations, at least.
    pub arithmetic_floor: f64,
}

impl Goal {
    fn floor(&self) -> f64 {
        self.traffic_floor.max(self.arithmetic_floor)
    }
}

/// The goals by the stencil's file name without its ending.
pub type Goals = BTreeMap<String, Goal>;

/// The table, in Markdown.
pub fn table(results: &Results, goals: &Goals) -> String {
    let Some(first) = results.stencils.first() else {
        return String::new();
    };
    let mut text = format!(
        "{}, driver {}, nvcc {}, {}. Milliseconds per sweep, the median of turns in one process; all \
         versions were within {:.0e} of the host's results at odd sizes.\n\n\
         | stencil | original | unrolled | reordered | streamed | fastest | best of the first three | speed-up | floor | of the floor |\n\
         |---|--:|--:|--:|--:|---|--:|--:|--:|--:|\n",
        first.gpu,
        first.driver,
        first.nvcc,
        first.date.get(..10).unwrap_or_default(),
        worst_distance(results),
    );
    let (mut gains, mut own_gains) = (Vec::new(), Vec::new());
    for stencil in &results.stencils {
        let families = [
            Family::Original,
            Family::Unrolled,
            Family::Reordered,
            Family::Streamed,
        ];
        let times = families.map(|family| fastest(stencil, family).and_then(|v| v.ms));
        let cells: Vec<String> = times.iter().map(|ms| number(*ms)).collect();
        let Some(chosen) = stencil.chosen.and_then(|at| stencil.versions.get(at)) else {
            continue;
        };
        let ms = chosen.ms.unwrap_or(f64::NAN);
        let goal = goals.get(name(stencil));
        // As written, unrolled, in the paper's order.
        let before = times[..3].iter().flatten().copied().reduce(f64::min);
        gains.extend(before.map(|before| before / ms));
        own_gains.extend(times[0].map(|original| original / ms));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            name(stencil),
            cells.join(" | "),
            chosen.plan,
            number(before),
            before.map_or("–".into(), |before| format!("{:.2}", before / ms)),
            goal.map_or("– | –".into(), |g| format!(
                "{:.2} | {:.0}%",
                g.floor(),
                100.0 * g.floor() / ms
            )),
        );
    }
    let _ = write!(
        text,
        "\nGeometric means: {:.2} times as fast as the best of the first three, {:.2} times as fast as \
         the original, all in the same run.\n",
        geometric_mean(gains).unwrap_or(f64::NAN),
        geometric_mean(own_gains).unwrap_or(f64::NAN)
    );
    text
}

/// The input's file name without folder and ending.
fn name(stencil: &StencilResult) -> &str {
    let file = stencil.input.rsplit('/').next().unwrap_or(&stencil.input);
    file.split('.').next().unwrap_or(file)
}

fn fastest(stencil: &StencilResult, family: Family) -> Option<&StencilVersion> {
    let of = stencil
        .versions
        .iter()
        .filter(|v| v.family == family && v.ms.is_some());
    of.min_by(|a, b| {
        let key = |v: &StencilVersion| v.ms.unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b))
    })
}

fn worst_distance(results: &Results) -> f64 {
    let versions = results.stencils.iter().flat_map(|s| &s.versions);
    let good = versions.filter(|v| v.rejected.is_none());
    good.filter_map(|v| v.reference_distance)
        .fold(0.0, f64::max)
}

fn number(ms: Option<f64>) -> String {
    ms.map_or("–".into(), |ms| format!("{ms:.3}"))
}
