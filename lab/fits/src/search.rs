//! Which share of an exhaustive search's gain the search finds: the search of the product is replayed on the times of
//! every point, as `tune --exhaustive --keep` has them. Both see the same times of the first launch, so the share says how
//! well the search goes about the space, not how well a launch is timed; what the space lacks counts for neither.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;
use warpwright_autotune::kept::{Choice, Found, Landscape};
use warpwright_autotune::search::BATCH;
use warpwright_driver::proposal::AXES;
use warpwright_driver::search::{Axis, replay};
use warpwright_pass::Recipe;

use crate::kept::read;

/// Versions after which the share is told.
const AFTER: [usize; 5] = [10, 20, 40, 80, 160];
/// Kernels whose best point takes more than this of their time have no gain to find.
const NOTHING: f64 = 0.995;

type Failed = Box<dyn std::error::Error>;

/// A kernel's search.
#[derive(Debug, Serialize)]
struct Row {
    file: String,
    kernel: String,
    /// Points, those that can be, and those of code of their own.
    points: usize,
    possible: usize,
    versions: usize,
    left_out: BTreeMap<String, usize>,
    /// The least time over the original's of all points.
    exhaustive: f64,
    /// The same of those that the search asks for.
    search: f64,
    /// Versions that the search has timed.
    timed: usize,
    /// The share of the logarithm of the gain; none where there is none.
    share: Option<f64>,
    /// The same after so many timed versions.
    after: BTreeMap<usize, f64>,
}

fn axis(choice: &Choice) -> Result<Axis, Failed> {
    let known = |name: &str| {
        let found = AXES.into_iter().find(|axis| *axis == name);
        found.ok_or_else(|| format!("there is no axis `{name}` any more"))
    };
    let values = choice.values.iter().map(|text| {
        let recipe: Recipe = text.parse()?;
        Ok::<_, Failed>(recipe.passes().to_vec())
    });
    Ok(Axis {
        name: known(&choice.name)?,
        values: values.collect::<Result<_, _>>()?,
        wants: choice.wants.as_deref().map(known).transpose()?,
    })
}

/// The search replayed on a landscape.
fn row(file: &str, kernel: &str, landscape: &Landscape) -> Result<Row, Failed> {
    let points: BTreeMap<&[usize], &Found> =
        landscape.points.iter().map(|p| (&p.at[..], p)).collect();
    let axes: Vec<Axis> = landscape.axes.iter().map(axis).collect::<Result<_, _>>()?;
    let all = warpwright_driver::search::points(&axes);
    if !landscape.is_exhaustive || all != points.len() as u64 {
        let known = points.len();
        return Err(format!(
            "`{file}`, {kernel}: {known} of {all} points are known: tune it with --exhaustive"
        )
        .into());
    }
    let steps = replay(axes, BATCH, |at| points.get(at)?.ratio);
    let best = points.values().filter_map(|found| found.ratio);
    let exhaustive = best.fold(1.0, f64::min);
    let share = |best: f64| best.ln() / exhaustive.ln();
    let (mut timed, mut after) = (BTreeSet::new(), BTreeMap::new());
    for step in &steps {
        let build = points.get(&step.point[..]).and_then(|found| found.build);
        if build.is_some_and(|build| timed.insert(build)) && AFTER.contains(&timed.len()) {
            after.insert(timed.len(), share(step.best));
        }
    }
    let search = steps.last().map_or(1.0, |step| step.best);
    // A search that has ended finds no more.
    let missing = AFTER.into_iter().filter(|count| *count > timed.len());
    after.extend(missing.map(|count| (count, share(search))));
    let has_gain = exhaustive < NOTHING;
    if !has_gain {
        after.clear();
    }
    let builds: BTreeSet<usize> = points.values().filter_map(|found| found.build).collect();
    Ok(Row {
        file: file.to_owned(),
        kernel: kernel.to_owned(),
        points: points.len(),
        possible: points
            .values()
            .filter(|found| found.ratio.is_some())
            .count(),
        versions: builds.len(),
        left_out: landscape.left_out.clone(),
        exhaustive,
        search,
        timed: timed.len(),
        share: has_gain.then(|| share(search)),
        after,
    })
}

/// What all rows have found of what they could.
#[derive(Debug, Serialize)]
struct Summary {
    /// Kernels with a gain to find.
    kernels: usize,
    /// Of the sum of all logarithms of gains.
    share: Option<f64>,
    /// By kernel.
    mean: Option<f64>,
    /// The mean after so many timed versions.
    after: BTreeMap<usize, f64>,
}

fn summary(rows: &[Row]) -> Summary {
    let told: Vec<&Row> = rows.iter().filter(|row| row.share.is_some()).collect();
    let count = told.len();
    let mean = |of: &dyn Fn(&Row) -> f64| {
        let sum: f64 = told.iter().map(|row| of(row)).sum();
        (count > 0).then(|| sum / count as f64)
    };
    let found = mean(&|row| row.search.ln());
    let after = AFTER.into_iter().filter_map(|versions| {
        let share = mean(&|row| row.after.get(&versions).copied().unwrap_or(0.0))?;
        Some((versions, share))
    });
    Summary {
        kernels: count,
        share: found
            .zip(mean(&|row| row.exhaustive.ln()))
            .map(|(found, all)| found / all),
        mean: mean(&|row| row.share.unwrap_or(0.0)),
        after: after.collect(),
    }
}

/// Prints the rows of files, and what they come to.
///
/// # Errors
/// One cannot be read, or does not know every point.
pub fn show(paths: &[PathBuf], json: bool) -> Result<(), Failed> {
    let mut rows = Vec::new();
    for path in paths {
        let file = path.display().to_string();
        for kernel in read(path)?.kernels {
            let name = kernel.name.as_ref().unwrap_or(&kernel.digest);
            if let Some(landscape) = &kernel.search {
                rows.push(row(&file, name, landscape)?);
            }
        }
    }
    let summary = summary(&rows);
    if json {
        println!(
            "{}",
            serde_json::to_string_pretty(
                &serde_json::json!({"summary": summary, "kernels": rows})
            )?
        );
        return Ok(());
    }
    let percent =
        |share: Option<f64>| share.map_or("–".to_owned(), |s| format!("{:.1}%", s * 100.0));
    println!(
        "| kernel | points | versions | exhaustive | search | timed | share | after {} |",
        AFTER.map(|n| n.to_string()).join(", ")
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    for row in &rows {
        let after: Vec<String> = row
            .after
            .values()
            .map(|share| percent(Some(*share)))
            .collect();
        println!(
            "| {} | {} | {} | {:.3} | {:.3} | {} | {} | {} |",
            row.kernel,
            row.points,
            row.versions,
            1.0 / row.exhaustive,
            1.0 / row.search,
            row.timed,
            percent(row.share),
            after.join(", ")
        );
        if !row.left_out.is_empty() {
            let out = row
                .left_out
                .iter()
                .map(|(axis, out)| format!("{out} of {axis}"));
            println!(
                "values left out of {}: {}",
                row.kernel,
                out.collect::<Vec<_>>().join(", ")
            );
        }
    }
    println!(
        "{} kernels with a gain: {} of the gain of all together, {} by kernel",
        summary.kernels,
        percent(summary.share),
        percent(summary.mean)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A landscape of three axes, whose last value of each can be together with none of the others.
    fn landscape(time: impl Fn(&[usize]) -> Option<f64>) -> Landscape {
        let axis = |name: &str, values: &[&str]| Choice {
            name: name.to_owned(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
            wants: (name == "unroll").then(|| "registers".to_owned()),
        };
        let axes = vec![
            axis("promote", &["promote"]),
            axis("unroll", &["unroll(4)", "unroll(8)"]),
            axis(
                "registers",
                &["maxnreg(32)", "maxnreg(64)", "usage-level(0)"],
            ),
        ];
        let mut points = Vec::new();
        for number in 0..24 {
            let at = vec![number % 2, number / 2 % 3, number / 6];
            let ratio = time(&at);
            // Without unrolling nothing is there to be promoted: the same code.
            let build = match at[1] {
                0 => number - number % 2,
                _ => number,
            };
            let build = ratio.map(|_| build).filter(|_| number > 1);
            points.push(Found { at, ratio, build });
        }
        Landscape {
            is_exhaustive: true,
            axes,
            left_out: BTreeMap::new(),
            points,
        }
    }

    #[test]
    fn the_share_is_that_of_the_search_of_the_product() {
        // Unrolling by 8 pays with 64 registers alone; with 32 it cannot be.
        let time = |at: &[usize]| match (at[1], at[2]) {
            (2, 1) => None,
            (2, 2) => Some(0.5),
            (2, _) => Some(1.2),
            (_, 1) => Some(0.9),
            _ => Some(1.0),
        };
        let row = row("f", "k", &landscape(time)).expect("a row");
        assert_eq!((row.points, row.possible), (24, 22));
        assert_eq!((row.exhaustive, row.search), (0.5, 0.5));
        assert_eq!(row.share, Some(1.0));
        assert!(row.timed < row.versions, "{row:?}");
        assert_eq!(row.after[&160], 1.0);
        let all = summary(&[row]);
        assert_eq!(
            (all.kernels, all.share, all.mean),
            (1, Some(1.0), Some(1.0))
        );
    }

    #[test]
    fn what_a_search_does_not_find_is_missing_in_the_share() {
        // Three values that lose alone, and by pairs, beyond what is looked at again.
        let time = |at: &[usize]| match at {
            [1, 1, 3] => Some(0.5),
            [0, 0, 0] => Some(1.0),
            [0, 0, 1] => Some(0.8),
            _ => Some(1.5),
        };
        let row = row("f", "k", &landscape(time)).expect("a row");
        assert_eq!((row.exhaustive, row.search), (0.5, 0.8));
        let share = row.share.expect("a gain");
        assert!((share - 0.8f64.ln() / 0.5f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn without_a_gain_there_is_no_share() {
        let row = row("f", "k", &landscape(|_| Some(1.0))).expect("a row");
        assert_eq!((row.share, row.after.len()), (None, 0));
        assert_eq!(summary(&[row]).mean, None);
    }

    #[test]
    fn a_search_that_did_not_try_every_point_is_no_measure() {
        let mut some = landscape(|_| Some(1.0));
        some.points.pop();
        let why = row("f", "k", &some)
            .expect_err("one is missing")
            .to_string();
        assert!(why.contains("23 of 24 points"), "{why}");
        some = landscape(|_| Some(1.0));
        some.is_exhaustive = false;
        assert!(row("f", "k", &some).is_err());
    }
}
