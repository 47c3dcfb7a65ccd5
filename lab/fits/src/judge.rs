//! The choice of `driver` on measured builds, beside what others would have chosen.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use warpwright_driver::choose::choose;
use warpwright_driver::proposal::{is_rewritten, register_limit, spills_elsewhere};
use warpwright_driver::{Candidate, Residency, Resources, Score};
use warpwright_model::correction::{Correction, Judgement};
use warpwright_model::features::{COUNT, crowds_memory, pays_for_spills};
use warpwright_pass::{Level, Recipe};

use crate::calibration;
use crate::ranks::{correlation, mean};
use crate::records::Row;

/// Shorter kernels are left out: what they take is mostly their launch.
const SHORTEST: f64 = 4_000.0;

/// What a change must promise to save.
pub const MARGIN: f64 = 0.05;

/// Between the recipe of a build of `tune --keep` and what it is of.
pub const OF: &str = " of the ";

impl Row {
    /// The recipe of a build that was made inside a program.
    fn own_recipe(&self) -> Option<Recipe> {
        self.build.rsplit_once(OF)?.0.parse().ok()
    }

    /// Are its spills elsewhere than in local memory?
    fn spills_elsewhere(&self) -> bool {
        let own = self.own_recipe();
        own.map_or(self.build.starts_with("smem"), |r| spills_elsewhere(&r))
    }

    /// Is it the default, or that with another limit?
    fn is_limit(&self) -> bool {
        let is_named = self.build == "default" || self.build.starts_with("maxr");
        is_named
            || self
                .own_recipe()
                .is_some_and(|r| register_limit(&r).is_some())
    }

    /// As `driver` has it.
    fn is_trade(&self) -> bool {
        let features: Result<&[f64; COUNT], _> = self.figures.features.as_slice().try_into();
        features.is_ok_and(|features| {
            self.spills_elsewhere() && pays_for_spills(features) || crowds_memory(features)
        })
    }

    /// As `driver` has it: of what our own passes make, the fit has seen too little.
    fn judgement(&self) -> Option<Judgement> {
        let is_seen = |r: &Recipe| !is_rewritten(r) && r.at(Level::MachineCode).next().is_none();
        if self.own_recipe().is_some_and(|recipe| !is_seen(&recipe)) {
            return None;
        }
        let features: &[f64; COUNT] = self.figures.features.as_slice().try_into().ok()?;
        Some(Correction::fitted()?.judge(features))
    }
}

/// A kernel with all its builds, the default first.
pub struct Kernel(Vec<Row>);

impl Kernel {
    fn over(&self, index: usize) -> f64 {
        self.0[index].ns / self.0[0].ns
    }

    fn first_least(&self, compare: impl Fn(&Row, &Row) -> Ordering) -> usize {
        let rows = self.0.iter().enumerate();
        rows.min_by(|a, b| compare(a.1, b.1).then(a.0.cmp(&b.0)))
            .map_or(0, |(index, _)| index)
    }

    /// What each rule chooses, by its name.
    fn rules(&self) -> Result<Vec<(&'static str, usize)>, Box<dyn std::error::Error>> {
        let default = &self.0[0];
        let candidates: Result<Vec<Candidate>, _> =
            self.0.iter().map(|row| candidate(row, default)).collect();
        let time = |row: &Row| {
            if row.is_limit() {
                row.ns
            } else {
                f64::INFINITY
            }
        };
        let alone =
            |row: &Row| row.figures.cycles_of_full_grid / default.figures.cycles_of_full_grid;
        let of_first_release = self.first_least(|a, b| alone(a).total_cmp(&alone(b)));
        let of_first_release = match alone(&self.0[of_first_release]) < 1.0 - MARGIN {
            true => of_first_release,
            false => 0,
        };
        let regdem = |row: &Row| row.figures.lone / f64::from(row.figures.warps.max(1));
        let by_tpsc = |a: &Row, b: &Row| {
            let first = a.figures.tpsc[0].total_cmp(&b.figures.tpsc[0]);
            first.then(a.figures.tpsc[1].total_cmp(&b.figures.tpsc[1]))
        };
        Ok(vec![
            ("the choice", choose(&candidates?, MARGIN).index),
            ("first release", of_first_release),
            (
                "RegDem",
                self.first_least(|a, b| regdem(a).total_cmp(&regdem(b))),
            ),
            ("TPSC", self.first_least(by_tpsc)),
            (
                "highest occupancy",
                self.first_least(|a, b| b.figures.warps.cmp(&a.figures.warps)),
            ),
            (
                "fewest spills",
                self.first_least(|a, b| a.figures.local_bytes.total_cmp(&b.figures.local_bytes)),
            ),
            (
                "best limit, measured",
                self.first_least(|a, b| time(a).total_cmp(&time(b))),
            ),
            (
                "best build, measured",
                self.first_least(|a, b| a.ns.total_cmp(&b.ns)),
            ),
        ])
    }

    /// The rank correlation of predicted and measured times.
    fn correlation(&self, predicted: impl Fn(&Row) -> f64) -> Option<f64> {
        let times: Vec<f64> = self.0.iter().map(|row| row.ns).collect();
        let predicted: Vec<f64> = self.0.iter().map(predicted).collect();
        correlation(&times, &predicted)
    }
}

/// Reads the rows; of a kernel that stands in several files the one with the most builds counts.
fn read(paths: &[PathBuf]) -> Result<Vec<Kernel>, Box<dyn std::error::Error>> {
    let mut kernels: BTreeMap<(String, String), Vec<Row>> = BTreeMap::new();
    for path in paths {
        let mut of_file: BTreeMap<(String, String), Vec<Row>> = BTreeMap::new();
        for line in std::fs::read_to_string(path)?.lines() {
            let row: Row = serde_json::from_str(line)?;
            let key = (row.program.clone(), row.kernel.clone());
            of_file.entry(key).or_default().push(row);
        }
        for (key, mut rows) in of_file {
            rows.sort_by_key(|row| row.build != "default");
            let is_judged = rows[0].build == "default" && rows[0].ns >= SHORTEST;
            let known = kernels.get(&key).map_or(0, Vec::len);
            if is_judged && rows.len() > known {
                kernels.insert(key, rows);
            }
        }
    }
    Ok(kernels.into_values().map(Kernel).collect())
}

/// Prints what each rule's choices would have cost, by part of the split; the worst choices; and draws the calibration.
pub fn judge(
    paths: &[PathBuf],
    shown: &[String],
    svg: Option<&Path>,
) -> Result<(), Box<dyn std::error::Error>> {
    let kernels = read(paths)?;
    let is_foreign = |kernel: &&Kernel| !kernel.0[0].program.starts_with("made/");
    let mut points = Vec::new();
    for split in shown {
        let of_split = || kernels.iter().filter(|k| k.0[0].split == *split);
        points.extend(of_split().flat_map(calibration_points));
        show(split, &of_split().collect::<Vec<_>>())?;
        let foreign: Vec<_> = of_split().filter(is_foreign).collect();
        show(&format!("{split}, foreign programs alone"), &foreign)?;
    }
    misses(&kernels, shown)?;
    if let Some(path) = svg {
        std::fs::write(path, calibration::svg(&points))?;
    }
    Ok(())
}

fn show(title: &str, kernels: &[&Kernel]) -> Result<(), Box<dyn std::error::Error>> {
    let builds: usize = kernels.iter().map(|k| k.0.len()).sum();
    let programs: BTreeSet<_> = kernels.iter().map(|k| &k.0[0].program).collect();
    let (count, programs) = (kernels.len(), programs.len());
    println!("{title}: {count} kernels of {programs} programs, {builds} builds");
    println!("| rule | time | regret | slower by 2% | by 5% | most |");
    println!("|---|--:|--:|--:|--:|--:|");
    type Outcomes<'a> = (&'a str, Vec<(f64, f64)>);
    let mut of_rule: BTreeMap<usize, Outcomes> = BTreeMap::new();
    for kernel in kernels {
        let rules = kernel.rules()?;
        let best = rules.last().map_or(1.0, |&(_, index)| kernel.over(index));
        for (place, (name, index)) in rules.into_iter().enumerate() {
            let times = &mut of_rule.entry(place).or_insert((name, Vec::new())).1;
            times.push((kernel.over(index), kernel.over(index) / best));
        }
    }
    for (name, times) in of_rule.values() {
        let slower = |by: f64| times.iter().filter(|&&(time, _)| time > by).count();
        println!(
            "| {name} | {:.3} | {:.3} | {} | {} | {:.3} |",
            mean(times.iter().map(|t| t.0)),
            mean(times.iter().map(|t| t.1)),
            slower(1.02),
            slower(1.05),
            times.iter().map(|t| t.0).fold(0.0, f64::max)
        );
    }
    let average = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let by_cycles: Vec<f64> = kernels
        .iter()
        .filter_map(|k| k.correlation(|row| row.figures.cycles))
        .collect();
    let expected =
        |row: &Row| f64::from(row.judgement().map_or(1.0, |judgement| judgement.expected));
    let by_trees: Vec<f64> = kernels
        .iter()
        .filter_map(|k| k.correlation(expected))
        .collect();
    println!(
        "rank correlation, mean over {} kernels: stall model {:.3}, learned correction {:.3}\n",
        by_cycles.len(),
        average(by_cycles),
        average(by_trees)
    );
    Ok(())
}

/// Predicted probability of a loss, and whether it was one, of the builds that promise enough.
fn calibration_points(kernel: &Kernel) -> Vec<(f64, bool)> {
    let rows = kernel.0.iter().enumerate().skip(1);
    let promising =
        rows.filter(|(_, row)| row.figures.cycles / kernel.0[0].figures.cycles < 1.0 - MARGIN);
    promising
        .filter_map(|(index, row)| {
            Some((f64::from(row.judgement()?.risk), kernel.over(index) > 1.02))
        })
        .collect()
}

/// The ten choices that cost most beside the best build.
fn misses(kernels: &[Kernel], shown: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let mut found = Vec::new();
    for kernel in kernels.iter().filter(|k| shown.contains(&k.0[0].split)) {
        let rules = kernel.rules()?;
        let (chosen, best) = (rules[0].1, rules[rules.len() - 1].1);
        found.push((
            kernel.over(chosen) / kernel.over(best),
            kernel,
            chosen,
            best,
        ));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (regret, kernel, chosen, best) in found.iter().take(10) {
        let line = |index: usize| {
            let row = &kernel.0[index];
            let promised = row.figures.cycles / kernel.0[0].figures.cycles;
            let risk = row.judgement().map_or(1.0, |judgement| judgement.risk);
            let (build, registers, warps) = (&row.build, row.figures.registers, row.figures.warps);
            let over = kernel.over(index);
            format!(
                "{build} ({registers} registers, {warps} warps, {over:.3}, promised {promised:.2}, risk {risk:.2})"
            )
        };
        let default = &kernel.0[0];
        println!(
            "{regret:.3} {} {}, {:.0} µs, {:?} warps of the grid: {} instead of {}; default {} registers",
            default.program,
            default.kernel,
            default.ns / 1000.0,
            default.figures.grid_warps.unwrap_or(0),
            line(*chosen),
            line(*best),
            default.figures.registers
        );
    }
    Ok(())
}

fn candidate(row: &Row, default: &Row) -> Result<Candidate, Box<dyn std::error::Error>> {
    let recipe: Recipe = match row.build.rsplit_once('-') {
        _ if row.build == "default" => Recipe::default(),
        _ if row.build.contains(OF) => row.own_recipe().ok_or("no recipe")?,
        Some(("level", level)) => format!("usage-level({level})").parse()?,
        // Only what is rewritten and what is throttled is judged otherwise; of what ptxas itself makes the limit
        // stands for all.
        _ => format!("maxnreg({})", row.figures.registers.max(1)).parse()?,
    };
    let resources = Resources {
        registers: row.figures.registers,
        spill_load_bytes: row.figures.local_bytes as u32,
        ..Resources::default()
    };
    let mut candidate = Candidate::built(recipe, resources);
    if let Some(figures) = candidate.figures_mut() {
        figures.residency = Some(Residency {
            blocks: row.figures.blocks,
            warps: row.figures.warps,
            percent: 0.0,
            limiters: Vec::new(),
        });
        figures.score = Some(Score {
            relative_time: row.figures.cycles / default.figures.cycles,
            bound: String::new(),
            turns: warpwright_driver::candidate::Turns::None,
            contention: 1.0,
            active_warps: row
                .figures
                .grid_warps
                .map_or(row.figures.warps, |grid| grid.min(row.figures.warps)),
            is_trade: row.is_trade(),
            judgement: row.judgement(),
            tpsc: None,
        });
    }
    Ok(candidate)
}
