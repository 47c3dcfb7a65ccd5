//! What each class of change gains inside programs, and how the model ranks its builds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use warpwright_autotune::kept::{Build, Kernel, Told};
use warpwright_pass::Recipe;

use crate::kept::{ratio, read};
use crate::ranks::{correlation, mean};

/// All builds of a kernel.
const ALL: &str = "all";
/// Builds with changes of several classes.
const SEVERAL: &str = "several";

/// The class of a pass.
fn class(pass: &str) -> &'static str {
    match pass {
        "reshape" => "shape",
        "specialize" => "constants",
        "unroll" => "unrolling",
        "vectorize" => "vectors",
        "cache" => "cache hints",
        "maxnreg" | "usage-level" => "registers",
        "promote" => "kept in registers",
        "schedule" => "order",
        "rename" => "name",
        "spill-to-shared" | "smem-spilling" | "demote" => "spills",
        _ => "other",
    }
}

/// The class of a build; of the default recipe, and of one that is not understood, `other`.
fn class_of(build: &Build) -> &'static str {
    let recipe: Recipe = build.recipe.parse().unwrap_or_default();
    let passes = recipe.passes().iter();
    let classes: BTreeSet<&str> = passes.map(|pass| class(pass.name())).collect();
    match classes.into_iter().collect::<Vec<_>>()[..] {
        [] => "other",
        [one] => one,
        _ => SEVERAL,
    }
}

/// What is known of a class.
#[derive(Debug, Default)]
struct Row {
    builds: usize,
    /// Those that were right, or for other launches.
    right: usize,
    /// The original's time over the best build's, by kernel; 1 where none is faster.
    gains: Vec<f64>,
    /// The same of the build that the model likes best.
    chosen: Vec<f64>,
    /// How alike the predicted order is to the measured one, by kernel.
    correlations: Vec<f64>,
}

impl Row {
    fn add(&mut self, builds: &[&Build], original: Option<f64>) {
        self.builds += builds.len();
        let is_wrong = |b: &&&Build| matches!(b.outcome, Told::Differs | Told::Failed);
        self.right += builds.len() - builds.iter().filter(is_wrong).count();
        let times: Vec<f64> = builds.iter().filter_map(|b| ratio(b)).collect();
        self.gains
            .push(1.0 / times.iter().copied().fold(1.0, f64::min));
        let Some(original) = original else { return };
        let known = builds.iter().filter_map(|build| {
            let figures = build.code.as_ref()?.figures.as_ref()?;
            Some((ratio(build)?, figures.cycles / original))
        });
        // Doing nothing comes first, and wins ties.
        let known: Vec<(f64, f64)> = std::iter::once((1.0, 1.0)).chain(known).collect();
        let best = known
            .iter()
            .copied()
            .reduce(|a, b| if b.1 < a.1 { b } else { a });
        self.chosen.extend(best.map(|(time, _)| 1.0 / time));
        let (times, predicted): (Vec<f64>, Vec<f64>) = known.into_iter().unzip();
        self.correlations.extend(correlation(&times, &predicted));
    }

    fn line(&self, name: &str, kernels: usize) -> String {
        let average = match self.correlations.len() {
            0 => "–".to_owned(),
            n => format!(
                "{:.2} of {n}",
                self.correlations.iter().sum::<f64>() / n as f64
            ),
        };
        let least = |gain: f64| self.gains.iter().filter(|&&g| g >= gain).count();
        // Where a class has no build the kernel stays as it is.
        let others = std::iter::repeat_n(1.0, kernels - self.gains.len());
        let all = self.gains.iter().copied().chain(others);
        format!(
            "| {name} | {} | {} | {} | {:.4} | {:.3} | {} | {} | {:.4} | {average} |",
            self.gains.len(),
            self.builds,
            self.builds - self.right,
            mean(all),
            self.gains.iter().copied().fold(1.0, f64::max),
            least(1.02),
            least(1.1),
            mean(self.chosen.iter().copied()),
        )
    }
}

/// The rows of kernels, by class.
fn table(kernels: &[Kernel]) -> BTreeMap<&'static str, Row> {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for kernel in kernels {
        let mut builds: BTreeMap<&str, Vec<&Build>> = BTreeMap::new();
        for build in &kernel.builds {
            builds.entry(ALL).or_default().push(build);
            builds.entry(class_of(build)).or_default().push(build);
        }
        let original = kernel.code.as_ref().and_then(|code| code.figures.as_ref());
        let original = original.map(|figures| figures.cycles);
        for (class, builds) in builds {
            rows.entry(class).or_default().add(&builds, original);
        }
    }
    rows
}

/// Prints the table of files.
///
/// # Errors
/// One cannot be read.
pub fn show(paths: &[PathBuf], share: f64) -> Result<(), Box<dyn std::error::Error>> {
    let mut kernels: Vec<Kernel> = Vec::new();
    for path in paths {
        kernels.extend(read(path)?.kernels);
    }
    kernels.retain(|kernel| kernel.share >= share && !kernel.builds.is_empty());
    let count = kernels.len();
    println!(
        "{count} kernels of {} tunings. `mean` is over all of them, `by the model` what the build gains that it likes best, \
         `order` the rank correlation of predicted and measured times, mean over kernels.\n",
        paths.len()
    );
    println!(
        "| class | kernels | builds | wrong | mean | best | from 2% | from 10% | by the model | order |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (name, row) in table(&kernels) {
        println!("{}", row.line(name, count));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_autotune::kept::{Document, NotKept};

    /// A kernel of 100 cycles with builds: recipe, cycles, outcome, times over the original's.
    fn kernel(builds: &[(&str, f64, &str, [Option<f64>; 2])]) -> Kernel {
        let code = |cycles: f64| {
            serde_json::json!({
                "static_smem": 0, "spill_bytes": 0, "registers": 32, "blocks": 8, "warps": 64, "grid_warps": null,
                "local_bytes": 0.0, "lone": 1.0, "tpsc": [0.0, 0.0], "cycles": cycles, "cycles_of_full_grid": cycles,
                "features": []
            })
        };
        let launch = serde_json::json!({"grid": [9, 1, 1], "block": [64, 1, 1], "dynamic_smem": 0});
        let build = |&(recipe, cycles, outcome, ratios): &(&str, f64, &str, [Option<f64>; 2])| {
            serde_json::json!({
                "recipe": recipe, "of": "PTX", "guard": "always", "shape": "same", "launch": launch, "bytes": 1,
                "code": code(cycles), "outcome": outcome, "ns": ratios, "ratios": ratios
            })
        };
        let all: Vec<_> = builds.iter().map(build).collect();
        let kernel = serde_json::json!({
            "digest": "d", "share": 1.0, "launches": 1, "among": "always", "launch": launch, "cluster": null, "cooperative": false,
            "resident": null, "code": code(100.0), "ns": [1000.0, 1000.0], "winner": null, "in_program": null,
            "builds": all, "search": null
        });
        serde_json::from_value(kernel).expect("a kernel")
    }

    #[test]
    fn each_class_is_summed_up_by_itself() {
        let same = |first, second| ("same", [Some(first), second]);
        let build = |recipe, cycles, (outcome, ratios)| (recipe, cycles, outcome, ratios);
        let kernels = [
            kernel(&[
                build("maxnreg(32)", 90.0, same(0.9, Some(0.8))),
                build("maxnreg(64)", 80.0, same(1.1, None)),
                build("maxnreg(40)", 95.0, ("differs", [Some(0.1), None])),
                build("maxnreg(48)", 105.0, same(1.2, None)),
                build("unroll(4); maxnreg(64)", 50.0, same(0.5, None)),
            ]),
            kernel(&[build("unroll(4)", 99.0, ("not-tried", [None, None]))]),
        ];
        let rows = table(&kernels);
        let names: Vec<&str> = rows.keys().copied().collect();
        assert_eq!(names, [ALL, "registers", SEVERAL, "unrolling"]);
        let registers = &rows["registers"];
        assert_eq!((registers.builds, registers.right), (4, 3));
        assert_eq!(registers.gains, [1.0 / 0.8]);
        // The model likes 64 registers best, which are slower.
        assert_eq!(registers.chosen, [1.0 / 1.1]);
        // As it has them: 80, 90, 100, 105; measured: 1.1, 0.8, 1, 1.2.
        assert_eq!(registers.correlations, [0.4]);
        assert_eq!(rows[ALL].gains, [2.0, 1.0]);
        assert_eq!(rows["unrolling"].gains, [1.0]);
        let line = registers.line("registers", 2);
        let expected = "| registers | 1 | 4 | 1 | 1.1180 | 1.250 | 1 | 1 | 0.9091 | 0.40 of 1 |";
        assert_eq!(line, expected);
    }

    #[test]
    fn other_versions_are_refused_by_name() {
        let text = r#"{"schema": "warpwright.builds-in-place/1", "gpu": "x"}"#;
        let why = Document::parse(text).expect_err("an older one");
        assert!(matches!(&why, NotKept::Schema(schema) if schema.ends_with("/1")));
        assert!(
            why.to_string().contains("tune the program once more"),
            "{why}"
        );
        assert!(matches!(Document::parse("{}"), Err(NotKept::Json(_))));
    }
}
