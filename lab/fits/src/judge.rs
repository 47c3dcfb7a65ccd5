//! The choice of `driver` on measured builds.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use warpwright_driver::choose::choose;
use warpwright_driver::{Candidate, Residency, Resources, Score};
use warpwright_pass::Recipe;

/// Shorter kernels are left out: what they take is mostly their launch.
const SHORTEST: f64 = 4_000.0;

/// What a change must promise to save.
const MARGIN: f64 = 0.05;

#[derive(Deserialize)]
struct Row {
    program: String,
    split: String,
    kernel: String,
    build: String,
    ns: f64,
    registers: u32,
    warps: u32,
    grid_warps: Option<u32>,
    local_bytes: f64,
    cycles: f64,
    cycles_of_full_grid: f64,
}

/// Prints a line for each part of the split: kernels, time of the choice over the default's, slower ones.
pub fn judge(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut kernels: BTreeMap<(String, String), Vec<Row>> = BTreeMap::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let row: Row = serde_json::from_str(line)?;
        let key = (row.program.clone(), row.kernel.clone());
        kernels.entry(key).or_default().push(row);
    }
    println!("split       rule     kernels  time   slower by 2%  by 5%  most");
    for split in ["fit", "validation", "held-out"] {
        let mut of_rule = BTreeMap::<&str, Vec<f64>>::new();
        for rows in kernels.values_mut() {
            rows.sort_by_key(|row| row.build != "default");
            let default = &rows[0];
            if default.build != "default" || default.split != split || default.ns < SHORTEST {
                continue;
            }
            let over = |row: &Row| row.ns / default.ns;
            let least = rows.iter().map(over).fold(1.0, f64::min);
            of_rule.entry("best").or_default().push(least);
            let margin_alone = by_margin_alone(rows);
            of_rule
                .entry("before")
                .or_default()
                .push(over(margin_alone));
            let candidates: Result<Vec<Candidate>, _> =
                rows.iter().map(|row| candidate(row, default)).collect();
            let chosen = &rows[choose(&candidates?, MARGIN).index];
            of_rule.entry("now").or_default().push(over(chosen));
        }
        for (rule, times) in of_rule {
            let mean = (times.iter().map(|t| t.ln()).sum::<f64>() / times.len() as f64).exp();
            let slower = |by: f64| times.iter().filter(|&&t| t > by).count();
            let most = times.iter().copied().fold(0.0, f64::max);
            let (two, five) = (slower(1.02), slower(1.05));
            println!(
                "{split:<11} {rule:<8} {:>7}  {mean:.3}  {two:>12}  {five:>5}  {most:.3}",
                times.len()
            );
        }
    }
    Ok(())
}

/// The rule of the first release: full grids, one margin.
fn by_margin_alone(rows: &[Row]) -> &Row {
    let default = &rows[0];
    let of = |row: &Row| row.cycles_of_full_grid / default.cycles_of_full_grid;
    let best = rows.iter().min_by(|a, b| of(a).total_cmp(&of(b)));
    best.filter(|row| of(row) < 1.0 - MARGIN).unwrap_or(default)
}

fn candidate(row: &Row, default: &Row) -> Result<Candidate, Box<dyn std::error::Error>> {
    let recipe: Recipe = match row.build.rsplit_once('-') {
        Some(("maxrregcount", registers)) => format!("maxnreg({registers})").parse()?,
        Some(("level", level)) => format!("usage-level({level})").parse()?,
        _ => Recipe::default(),
    };
    let resources = Resources {
        registers: row.registers,
        spill_load_bytes: row.local_bytes as u32,
        ..Resources::default()
    };
    let mut candidate = Candidate::built(recipe, resources);
    if let Some(figures) = candidate.figures_mut() {
        figures.residency = Some(Residency {
            blocks: 1,
            warps: row.warps,
            percent: 0.0,
            limiters: Vec::new(),
        });
        figures.score = Some(Score {
            relative_time: row.cycles / default.cycles,
            bound: String::new(),
            contention: 1.0,
            active_warps: row.grid_warps.map_or(row.warps, |grid| grid.min(row.warps)),
            tpsc: None,
        });
    }
    Ok(candidate)
}
