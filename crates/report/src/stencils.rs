//! The table of bench/results/stencils.md: the fastest version of each family, all of one run, beside the floors of
//! bench/stencils/goals.json.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::results::{StencilResult, StencilVersion};
use serde::{Deserialize, Serialize};
use warpwright_stencil::ir::{Dim, Extent, Stencil};
use warpwright_stencil::statistics::statistics;
use warpwright_stencil::versions::Family;

use crate::suite::geometric_mean;
use crate::table::Table;

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

/// The numbers of one stencil: the columns of Table 1 of Rawat et al. (PPoPP 2018).
#[derive(Serialize)]
pub struct Explained {
    stencil: String,
    points: Vec<String>,
    unroll: u64,
    order: i64,
    flops_per_point: u64,
    arrays: usize,
    accessed_per_thread: u64,
    unique_per_thread: u64,
    reassociate: bool,
}

/// The numbers of a stencil.
pub fn explained(stencil: &Stencil) -> Explained {
    let s = statistics(stencil);
    Explained {
        stencil: stencil.name.clone(),
        points: stencil.dims.values().map(|d| points(stencil, d)).collect(),
        unroll: s.unroll,
        order: s.order,
        flops_per_point: s.flops,
        arrays: s.arrays,
        accessed_per_thread: s.accessed,
        unique_per_thread: s.unique,
        reassociate: stencil.reassociate,
    }
}

/// `2 <= j < N-2`
fn points(stencil: &Stencil, dim: &Dim) -> String {
    let Extent { parameter, add } = dim.extent;
    let end = add - dim.high;
    let end = match parameter.map(|p| &stencil.parameters[p]) {
        None => end.to_string(),
        Some(size) if end == 0 => size.clone(),
        Some(size) => format!("{size}{end:+}"),
    };
    format!("{} <= {} < {end}", dim.low, dim.name)
}

/// Their table.
pub fn explained_table(stencils: &[Explained]) -> String {
    let mut table = Table::new(&["stencil", "UF", "k", "F", "R", "A", "U", "points"]);
    for s in stencils {
        table.row(vec![
            s.stencil.clone(),
            s.unroll.to_string(),
            s.order.to_string(),
            s.flops_per_point.to_string(),
            s.arrays.to_string(),
            s.accessed_per_thread.to_string(),
            s.unique_per_thread.to_string(),
            s.points.join(", "),
        ]);
    }
    format!(
        "{}\n\n  UF: points per thread, k: order, F: FLOPs per point, R: arrays,\n  \
         A: array elements and scalar parameters accessed per thread, U: unique ones\n",
        table.render(2).trim_end()
    )
}

/// A family by name.
pub fn family(family: Family) -> &'static str {
    match family {
        Family::Original => "original",
        Family::Unrolled => "unrolled",
        Family::Reordered => "reordered",
        Family::Streamed => "streamed",
    }
}

/// `, M=512, N=512`
pub fn size_text(sizes: &[(String, i64)]) -> String {
    let sizes = sizes.iter().map(|(name, n)| format!(", {name}={n}"));
    sizes.collect()
}

/// What `tune` measured, the fastest first.
impl fmt::Display for StencilResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "stencil {} on {}{}\n",
            self.stencil,
            self.gpu,
            size_text(&self.sizes)
        )?;
        let mut order: Vec<&StencilVersion> = self.versions.iter().collect();
        order.sort_by(|a, b| {
            let key = |v: &StencilVersion| v.ms.unwrap_or(f64::INFINITY);
            key(a).total_cmp(&key(b))
        });
        let mut table = Table::new(&["family", "plan", "ms", "predicted", "from the host", "note"]);
        for version in order {
            let number = |value: Option<f64>| value.map_or("–".into(), |ms| format!("{ms:.3}"));
            let apart = version.reference_distance;
            table.row(vec![
                family(version.family).into(),
                version.plan.clone(),
                number(version.ms),
                number(version.predicted_ms),
                apart.map_or("–".into(), |apart| format!("{apart:.0e}")),
                version.rejected.clone().unwrap_or_default(),
            ]);
        }
        write!(f, "{}", table.render_within(2))?;
        Ok(())
    }
}
