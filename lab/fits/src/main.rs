//! What the model says of the builds that `bench/foreign/collect.py` measured. `terms` writes one line
//! of JSON for each kernel and build, predictions beside times; `judge` lets the product's rule choose
//! among them and says what that would have cost.

mod judge;
mod records;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;
use warpwright_model::{Case, Parameters, Prediction, grid_warps, predict, profile};
use warpwright_sass::Unit;
use warpwright_sass::cubin::{Cubin, Kernel};
use warpwright_target::{Gpu, Resources, lookup, occupancy};

use crate::records::{Record, read};

#[derive(Parser)]
#[command(about = "What the model says of measured builds")]
enum Arguments {
    /// The model's terms beside the times, a line for each kernel and build.
    Terms(Terms),
    /// What the choice would have cost, by part of the split.
    Judge {
        /// What `terms` wrote.
        rows: PathBuf,
    },
}

#[derive(clap::Args)]
struct Terms {
    /// `foreign.json` of bench/foreign/collect.py.
    results: PathBuf,
    /// The unpacked `cubins.tar.xz` of the same run.
    cubins: PathBuf,
    /// The GPU of the run.
    #[arg(long, default_value = "h200")]
    gpu: String,
}

/// One build of one kernel, as measured and as predicted.
#[derive(Serialize)]
struct Row<'a> {
    program: &'a str,
    split: &'a str,
    kernel: &'a str,
    build: &'a str,
    grid: [u32; 3],
    block: [u32; 3],
    /// Least of the runs' medians, nanoseconds.
    ns: f64,
    /// Largest of the medians over the least.
    noise: f64,
    total_ns: f64,
    registers: u32,
    frame_bytes: u32,
    /// Resident warps per SM that the resources allow.
    warps: u32,
    /// Warps per SM that the grid brings, at most.
    grid_warps: Option<u32>,
    instructions: usize,
    local_bytes: f64,
    issue: f64,
    latency: f64,
    traffic: f64,
    cycles: f64,
    /// The same without the grid.
    cycles_of_full_grid: f64,
    global_loads: f64,
    total: f64,
    loop_depth: u32,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments {
        Arguments::Terms(terms) => run(terms),
        Arguments::Judge { rows } => judge::judge(rows),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Terms) -> Result<(), Box<dyn std::error::Error>> {
    let gpu = lookup(&arguments.gpu)?;
    let results = read(&arguments.results)?;
    let mut cubins = Cubins::default();
    for kernel in hottest(&results.records) {
        let Some(default) = kernel.iter().find(|record| record.build == "default") else {
            continue;
        };
        let bytes = |record: &Record| -> Option<Prediction> {
            let kernel = cubins.kernel(&arguments.cubins, record)?;
            Some(predict(
                &case(&gpu, &kernel, record, None)?,
                &Parameters::default(),
            ))
        };
        let mut bytes = bytes;
        let Some(global) = bytes(default).map(|p| p.global_bytes) else {
            continue;
        };
        for record in &kernel {
            let Some(found) = cubins.kernel(&arguments.cubins, record) else {
                continue;
            };
            if let Some(row) = row(&gpu, &found, record, global) {
                println!("{}", serde_json::to_string(&row)?);
            }
        }
    }
    Ok(())
}

/// For each kernel all builds of the geometry that takes most time.
fn hottest(records: &[Record]) -> Vec<Vec<&Record>> {
    let mut geometries: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
    for record in records {
        let key = (
            &record.program,
            &record.kernel,
            record.grid,
            record.block,
            record.dynamic_smem,
        );
        geometries.entry(key).or_default().push(record);
    }
    let mut hottest: BTreeMap<_, (f64, Vec<&Record>)> = BTreeMap::new();
    for (key, list) in geometries {
        let default = list.iter().find(|record| record.build == "default");
        let time = default.map_or(0.0, |record| record.total());
        let best = hottest.entry((key.0, key.1)).or_insert((-1.0, Vec::new()));
        if time > best.0 {
            *best = (time, list);
        }
    }
    hottest.into_values().map(|(_, list)| list).collect()
}

/// Cubins that were read already.
#[derive(Default)]
struct Cubins(BTreeMap<PathBuf, Vec<Kernel>>);

impl Cubins {
    fn kernel(&mut self, root: &Path, record: &Record) -> Option<Kernel> {
        let folder = root
            .join(&record.program)
            .join(format!("{}.cubins", record.build));
        let kernels = self.0.entry(folder.clone()).or_insert_with(|| {
            let mut kernels = Vec::new();
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                if let Ok(cubin) = Cubin::parse(&bytes) {
                    kernels.extend(cubin.kernels);
                }
            }
            kernels
        });
        kernels.iter().find(|k| k.name == record.kernel).cloned()
    }
}

fn resident(gpu: &Gpu, kernel: &Kernel, record: &Record) -> Option<(u32, u32)> {
    let need = Resources {
        regs: record.registers,
        block_threads: record.threads(),
        static_smem: kernel
            .shared_bytes
            .saturating_sub(gpu.arch.first_shared_address()),
        dynamic_smem: record.dynamic_smem,
        barriers: 0,
    };
    let found = occupancy(gpu, &need).ok()?;
    Some((found.blocks, found.warps))
}

fn case<'a>(
    gpu: &'a Gpu,
    kernel: &'a Kernel,
    record: &Record,
    global_bytes: Option<f64>,
) -> Option<Case<'a>> {
    let (blocks, warps) = resident(gpu, kernel, record)?;
    let per_block = kernel.shared_bytes + record.dynamic_smem;
    Some(Case {
        gpu,
        code: &kernel.code,
        warps,
        grid_warps: grid_warps(
            gpu,
            record.grid.iter().map(|&n| u64::from(n)).product(),
            record.threads(),
        ),
        frame_bytes: kernel.frame_bytes,
        shared_per_sm: per_block.saturating_mul(blocks),
        global_bytes,
    })
}

fn row<'a>(gpu: &Gpu, kernel: &Kernel, record: &'a Record, global: f64) -> Option<Row<'a>> {
    let parameters = Parameters::default();
    let case = case(gpu, kernel, record, Some(global))?;
    let found = predict(&case, &parameters);
    let full = Case {
        grid_warps: None,
        ..case
    };
    let full = predict(&full, &parameters);
    let profile = profile(&case, &parameters);
    let loads = profile.issued.get(&Unit::GlobalLoad).copied();
    Some(Row {
        program: &record.program,
        split: &record.split,
        kernel: &record.kernel,
        build: &record.build,
        grid: record.grid,
        block: record.block,
        ns: record.least(),
        noise: record.noise(),
        total_ns: record.total(),
        registers: record.registers,
        frame_bytes: case.frame_bytes,
        warps: case.warps,
        grid_warps: case.grid_warps,
        instructions: profile.static_instructions,
        local_bytes: profile.local_load_bytes + profile.local_store_bytes,
        issue: found.issue,
        latency: found.latency,
        traffic: found.traffic,
        cycles: found.cycles,
        cycles_of_full_grid: full.cycles,
        global_loads: loads.unwrap_or(0.0),
        total: profile.total(),
        loop_depth: profile.loop_depth,
    })
}
