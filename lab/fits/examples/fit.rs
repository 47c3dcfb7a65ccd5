//! Fits the static model's free parameters to a result file.
//!
//! `cargo run --release -p warpwright-fits --example fit -- CANDIDATES RESULT.json [HELD-OUT,…]`
//!
//! CANDIDATES is the folder that `bench/build.sh cubins` made, RESULT.json what `bench/gpu.sh` wrote
//! from it. Kernels named in the third argument are left out of the fit and reported apart. A grid
//! search: few parameters, little data, and nothing to get stuck in.

use std::path::Path;

use rayon::prelude::*;
use warpwright_driver::build::Built;
use warpwright_driver::candidate::{Standing, Turns};
use warpwright_driver::choose::choose;
use warpwright_driver::proposal::{Situation, first_round, second_round};
use warpwright_driver::score::predict_one;
use warpwright_driver::{Candidate, Score};
use warpwright_model::Parameters;
use warpwright_pass::{Block, BlockSource, Recipe, Setting};
use warpwright_report::job::Manifest;
use warpwright_report::results::{KernelResult, Suite};
use warpwright_sass::Cubin;
use warpwright_target::{Gpu, lookup, staircase};

struct Kernel {
    result: KernelResult,
    gpu: Gpu,
    built: Vec<Built>,
    proposed: Vec<Recipe>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, root, file, rest @ ..] = &args[..] else {
        return Err("usage: fit CANDIDATES RESULT.json [HELD-OUT,…]".into());
    };
    let suite: Suite = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let held: Vec<&str> = rest
        .first()
        .map(|s| s.split(',').collect())
        .unwrap_or_default();
    let mut kernels = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let folder = entry?.path();
        if let Some(kernel) = load(&folder, &suite)? {
            kernels.push(kernel);
        }
    }
    kernels.sort_by(|a, b| a.result.report.name.cmp(&b.result.report.name));
    let is_held = |k: &&Kernel| held.contains(&k.result.report.name.as_str());
    let (out, fitted): (Vec<&Kernel>, Vec<&Kernel>) = kernels.iter().partition(is_held);

    let (parameters, margin) = search(&fitted);
    println!("{parameters:#?}\nmargin {margin}\n");
    for (what, set) in [("fitted", &fitted), ("held out", &out)] {
        println!("{what}:");
        show(set, &parameters, margin);
    }
    Ok(())
}

fn load(folder: &Path, suite: &Suite) -> Result<Option<Kernel>, Box<dyn std::error::Error>> {
    let Ok(text) = std::fs::read_to_string(folder.join("manifest.json")) else {
        return Ok(None);
    };
    let manifest: Manifest = serde_json::from_str(&text)?;
    let name = &manifest.report.name;
    let Some(result) = suite.kernels.iter().find(|k| k.report.name == *name) else {
        return Ok(None);
    };
    let gpu = lookup(manifest.gpu.split(' ').next().unwrap_or_default())?;
    let mut built = Vec::new();
    for (candidate, file) in result.report.candidates.iter().zip(&manifest.files) {
        // A candidate with the same code as another has no file of its own.
        let twin = candidate.same_code_as().map(|name| format!("{name}.cubin"));
        let path = file
            .as_ref()
            .or(twin.as_ref())
            .map(|f| folder.join(f))
            .filter(|p| p.is_file());
        let kernel = match path {
            Some(path) => Cubin::parse(&std::fs::read(path)?)?.kernel(name).cloned(),
            None => None,
        };
        built.push(Built {
            candidate: candidate.clone(),
            run: None,
            kernel,
            at_launch: None,
        });
    }
    let proposed = proposed(&gpu, result)?;
    Ok(Some(Kernel {
        result: result.clone(),
        gpu,
        built,
        proposed,
    }))
}

/// What `opt` itself would have built.
fn proposed(gpu: &Gpu, result: &KernelResult) -> Result<Vec<Recipe>, Box<dyn std::error::Error>> {
    let report = &result.report;
    let resources = report.candidates[0]
        .resources()
        .cloned()
        .unwrap_or_default();
    let threads = report.block.iter().product();
    let stairs = staircase(gpu, threads, resources.shared_bytes, report.dynamic_smem)?;
    let tops: Vec<u32> = stairs.iter().map(|s| s.regs).collect();
    let situation = Situation {
        natural: resources.registers,
        stairs: &tops,
        promised_block: Some(threads),
        module_options: true,
        shared_spilling: true,
        spill_to_shared: false,
    };
    let first = first_round(&situation);
    let of_first: Vec<Candidate> = report
        .candidates
        .iter()
        .filter(|c| first.contains(&c.recipe))
        .cloned()
        .collect();
    let second = second_round(&situation, &of_first);
    Ok(first.into_iter().chain(second).collect())
}

fn scored(kernel: &Kernel, parameters: &Parameters) -> Vec<Candidate> {
    let report = &kernel.result.report;
    let setting = Setting {
        block: Block {
            dims: report.block,
            source: BlockSource::Launch,
        },
        dynamic_smem: Some(report.dynamic_smem),
        ..Setting::new(&kernel.gpu)
    };
    let one = |b: &Built, bytes| predict_one(&setting, b, bytes, parameters);
    let default = one(&kernel.built[0], None);
    kernel
        .built
        .iter()
        .map(|b| {
            let prediction = default.and_then(|d| Some((one(b, Some(d.global_bytes))?, d)));
            let score = prediction.map(|(p, d)| Score {
                relative_time: p.cycles / d.cycles,
                bound: p.bound().name().into(),
                turns: Turns::None,
                contention: 1.0,
                active_warps: 0,
                is_trade: false,
                judgement: None,
                tpsc: None,
            });
            // Only what `opt` itself proposes takes part; the peers are measured for comparison.
            let score = score.filter(|_| kernel.proposed.contains(&b.candidate.recipe));
            let mut candidate = b.candidate.clone();
            if let Some(figures) = candidate.figures_mut() {
                figures.score = score;
                figures.measured = None;
                if let Standing::SameCode(_) = figures.standing {
                    figures.standing = Standing::Open;
                }
            }
            candidate
        })
        .collect()
}

/// Measured time of the choice over the default's, and over the best candidate's.
fn outcome(kernel: &Kernel, parameters: &Parameters, margin: f64) -> (usize, f64, f64) {
    let index = choose(&scored(kernel, parameters), margin).index;
    let ratio = kernel.result.ratio_of(index).unwrap_or(1.0);
    (
        index,
        ratio,
        ratio / kernel.result.best_ratio().unwrap_or(1.0),
    )
}

/// The mean log time of the choices; losing more than 1% to the default counts ten times over.
fn cost(kernels: &[&Kernel], parameters: &Parameters, margin: f64) -> f64 {
    let one = |k: &&Kernel| {
        let (_, ratio, _) = outcome(k, parameters, margin);
        let loss = (ratio - 1.01).max(0.0);
        ratio.ln() + 10.0 * loss
    };
    kernels.iter().map(one).sum::<f64>() / kernels.len().max(1) as f64
}

fn search(kernels: &[&Kernel]) -> (Parameters, f64) {
    let mut grid = Vec::new();
    for norm in [1.5, 2.0, 3.0, 4.0, 6.0, 10.0] {
        for dram_share in [0.0, 0.25, 0.5, 1.0] {
            for traffic_share in [0.25, 0.5, 0.75, 1.0] {
                for store_through in [0.0, 0.5, 1.0] {
                    for l2_factor in [1.0, 2.0, 4.0] {
                        let parameters = Parameters {
                            norm,
                            dram_share,
                            traffic_share,
                            store_through,
                            l2_factor,
                        };
                        grid.extend([0.03, 0.05, 0.08, 0.12].map(|margin| (parameters, margin)));
                    }
                }
            }
        }
    }
    let mut ranked: Vec<(f64, (Parameters, f64))> = grid
        .into_par_iter()
        .map(|(p, m)| (cost(kernels, &p, m), (p, m)))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Many points are equally good: the middle of the best ones is less of an accident.
    let best = ranked[0].0;
    let good: Vec<_> = ranked.iter().filter(|r| r.0 <= best + 5e-4).collect();
    println!(
        "best cost {best:.4}, {} of {} points within 0.0005",
        good.len(),
        ranked.len()
    );
    for r in good.iter().take(12) {
        println!("  {:.4} {:?} margin {}", r.0, r.1.0, r.1.1);
    }
    ranked[0].1
}

fn show(kernels: &[&Kernel], parameters: &Parameters, margin: f64) {
    let mut sums = (0.0, 0.0);
    for kernel in kernels {
        let (index, ratio, regret) = outcome(kernel, parameters, margin);
        sums = (sums.0 + ratio.ln(), sums.1 + regret.ln());
        println!(
            "  {:20} {:32} {ratio:.3} regret {regret:.3} (best {})",
            kernel.result.report.name,
            kernel.built[index].candidate.name(),
            kernel.result.measurements.chosen
        );
    }
    let n = kernels.len().max(1) as f64;
    println!(
        "  geometric means: {:.4}, regret {:.4}",
        (sums.0 / n).exp(),
        (sums.1 / n).exp()
    );
}
