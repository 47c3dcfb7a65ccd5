//! What the model says of builds that `bench/foreign/collect.py` or `tune --keep` measured. `terms` writes one line
//! of JSON for each kernel and build, predictions beside times; `judge` lets the product's rule choose
//! among them and says what that would have cost; `classes` says what each class of change gained inside programs, `search`
//! how much of what `tune --exhaustive` found the search finds.

mod calibration;
mod classes;
mod judge;
mod kept;
mod ranks;
mod records;
mod search;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use warpwright_model::measured::{Figures, Measured, figures};
use warpwright_sass::cubin::{Cubin, Kernel};
use warpwright_target::{Gpu, lookup};

use crate::records::{Record, Row, read};

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
    /// What each class of change gained inside programs, and how the model ranks its builds.
    Classes {
        /// Files of `tune --keep`.
        #[arg(required = true)]
        kept: Vec<PathBuf>,
        /// Kernels with less of their program's GPU time are left out.
        #[arg(long, default_value_t = 0.05)]
        share: f64,
    },
    /// Which share of what an exhaustive search gains the search finds, on the times that were measured.
    Search {
        /// Files of `tune --exhaustive --keep`.
        #[arg(required = true)]
        kept: Vec<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
struct Terms {
    /// `foreign.json` of bench/foreign/collect.py, or a file of `tune --keep`.
    results: PathBuf,
    /// The unpacked `cubins.tar.xz` of the same run; a file of `tune --keep` needs none.
    cubins: Option<PathBuf>,
    /// The GPU of the run.
    #[arg(long, default_value = "h200")]
    gpu: String,
    /// The part of the split that a file of `tune --keep` is.
    #[arg(long, default_value = "kept")]
    split: String,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments {
        Arguments::Terms(terms) => run(terms),
        Arguments::Judge { rows, split, svg } => judge::judge(rows, split, svg.as_deref()),
        Arguments::Classes { kept, share } => classes::show(kept, *share),
        Arguments::Search { kept, json } => search::show(kept, *json),
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
    let path = &arguments.results;
    let rows = match &arguments.cubins {
        Some(cubins) => collected(path, cubins, &lookup(&arguments.gpu)?)?,
        None => kept::rows(path, &arguments.split)?,
    };
    for row in rows {
        println!("{}", serde_json::to_string(&row)?);
    }
    Ok(())
}

/// The rows of a file of `collect.py`.
fn collected(
    path: &Path,
    folder: &Path,
    gpu: &Gpu,
) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let results = read(path)?;
    let mut cubins = Cubins::default();
    let mut all = Vec::new();
    for kernel in hottest(&results.records) {
        let Some(default) = kernel.iter().find(|record| record.build == "default") else {
            continue;
        };
        let mut found = Vec::new();
        for &record in &kernel {
            found.extend(cubins.kernel(folder, record).map(|code| (record, code)));
        }
        all.extend(rows(gpu, default, &found));
    }
    Ok(all)
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

/// The rows of a kernel.
fn rows(gpu: &Gpu, default: &Record, found: &[(&Record, Kernel)]) -> Vec<Row> {
    let builds: Vec<_> = found
        .iter()
        .map(|(record, kernel)| Measured {
            kernel,
            registers: record.registers,
            threads: record.threads(),
            blocks: record.blocks(),
            dynamic_smem: record.dynamic_smem,
        })
        .collect();
    let place = found
        .iter()
        .position(|(record, _)| record.build == default.build);
    let all = figures(gpu, place.unwrap_or(usize::MAX), &builds);
    let row = |(record, figures): (&Record, Figures)| Row {
        program: record.program.clone(),
        split: record.split.clone(),
        kernel: record.kernel.clone(),
        build: record.build.clone(),
        grid: record.grid,
        block: record.block,
        ns: record.least(),
        noise: record.noise(),
        figures,
    };
    let records = found.iter().map(|(record, _)| *record);
    let known = records.zip(all).filter_map(|(r, f)| Some((r, f?)));
    known.map(row).collect()
}
