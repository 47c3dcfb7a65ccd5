//! What the model says of the builds that `bench/foreign/collect.py` measured. `terms` writes one line
//! of JSON for each kernel and build, predictions beside times; `judge` lets the product's rule choose
//! among them and says what that would have cost.

mod calibration;
mod judge;
mod records;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;
use warpwright_model::features::{Build, Terms as ModelTerms, features};
use warpwright_model::{Case, Parameters, grid_warps, inserted, predict, profile, tpsc};
use warpwright_sass::Profile;
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
        rows: Vec<PathBuf>,
        /// Parts of the split.
        #[arg(long, default_value = "fit,validation", value_delimiter = ',')]
        split: Vec<String>,
        /// Where to draw how well the probabilities hold.
        #[arg(long)]
        svg: Option<PathBuf>,
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
    registers: u32,
    /// Resident blocks and warps per SM that the resources allow.
    blocks: u32,
    warps: u32,
    /// Warps per SM that the grid brings, at most.
    grid_warps: Option<u32>,
    local_bytes: f64,
    /// Cycles of a warp alone, loops weighted.
    lone: f64,
    /// CRAT's measure, and its share of parallelism, which decides among equals.
    tpsc: [f64; 2],
    cycles: f64,
    /// The same without the grid.
    cycles_of_full_grid: f64,
    /// In five digits.
    features: Vec<f64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments {
        Arguments::Terms(terms) => run(terms),
        Arguments::Judge { rows, split, svg } => judge::judge(rows, split, svg.as_deref()),
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
        let mut found = Vec::new();
        for record in &kernel {
            if let Some(code) = cubins.kernel(&arguments.cubins, record) {
                found.push((*record, code));
            }
        }
        if !found
            .iter()
            .any(|(record, _)| record.build == default.build)
        {
            continue;
        }
        for row in rows(&gpu, default, &found) {
            println!("{}", serde_json::to_string(&row)?);
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
        let path = match &record.file {
            Some(file) => {
                let by_kernel = root.join(&record.kernel).join(format!("{file}.cubin"));
                let by_program = root.join(&record.program).join(format!("{file}.cubin"));
                if by_kernel.exists() {
                    by_kernel
                } else {
                    by_program
                }
            }
            None => root
                .join(&record.program)
                .join(format!("{}.cubins", record.build)),
        };
        let kernels = self.0.entry(path.clone()).or_insert_with(|| {
            let files = match std::fs::read_dir(&path) {
                Ok(folder) => folder.flatten().map(|entry| entry.path()).collect(),
                Err(_) => vec![path],
            };
            let mut kernels = Vec::new();
            for file in files {
                let bytes = std::fs::read(file).unwrap_or_default();
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

fn case<'a>(gpu: &'a Gpu, kernel: &'a Kernel, record: &Record) -> Option<Case<'a>> {
    let (blocks, warps) = resident(gpu, kernel, record)?;
    let per_block = kernel.shared_bytes + record.dynamic_smem;
    Some(Case {
        gpu,
        code: &kernel.code,
        targets: &kernel.targets,
        warps,
        grid_warps: grid_warps(gpu, record.blocks(), record.threads()),
        frame_bytes: kernel.frame_bytes,
        shared_per_sm: per_block.saturating_mul(blocks),
        global_bytes: None,
        counts: None,
    })
}

/// The number in five significant digits: a file of them stays small.
fn five_digits(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// The rows of a kernel.
fn rows<'a>(gpu: &Gpu, default: &Record, found: &[(&'a Record, Kernel)]) -> Vec<Row<'a>> {
    let parameters = Parameters::default();
    let parts: Vec<_> = found
        .iter()
        .filter_map(|(record, kernel)| {
            let case = case(gpu, kernel, record)?;
            let (blocks, _) = resident(gpu, kernel, record)?;
            let build = Build {
                case,
                registers: record.registers,
                threads: record.threads(),
                blocks,
                grid: Some(record.blocks()),
            };
            Some((*record, build, profile(&case, &parameters)))
        })
        .collect();
    let spilled = |p: &Profile| p.local_load_bytes + p.local_store_bytes;
    let (Some((_, first, of_first)), Some((.., least))) = (
        parts
            .iter()
            .find(|(record, ..)| record.build == default.build),
        parts
            .iter()
            .min_by(|a, b| spilled(&a.2).total_cmp(&spilled(&b.2))),
    ) else {
        return Vec::new();
    };
    let of_default = ModelTerms::new(first, &parameters);
    let global_bytes = Some(of_first.global_bytes);
    parts
        .iter()
        .map(|(record, build, profile)| {
            let case = Case {
                global_bytes,
                ..build.case
            };
            let full = Case {
                grid_warps: None,
                ..case
            };
            let promised = |case: &Case, default: &Case| {
                let cycles = |case| predict(case, &parameters).cycles;
                cycles(case) / cycles(default)
            };
            let measure = tpsc(gpu, build.blocks, build.threads, &inserted(profile, least));
            Row {
                program: &record.program,
                split: &record.split,
                kernel: &record.kernel,
                build: &record.build,
                grid: record.grid,
                block: record.block,
                ns: record.least(),
                noise: record.noise(),
                registers: record.registers,
                blocks: build.blocks,
                warps: case.warps,
                grid_warps: case.grid_warps,
                local_bytes: spilled(profile),
                lone: profile.warp_cycles,
                tpsc: [measure.value(), measure.tlp_gain],
                cycles: predict(&case, &parameters).cycles,
                cycles_of_full_grid: predict(&full, &parameters).cycles,
                features: features(
                    &of_default,
                    &ModelTerms::new(build, &parameters),
                    promised(&case, &first.case),
                )
                .map(five_digits)
                .to_vec(),
            }
        })
        .collect()
}
