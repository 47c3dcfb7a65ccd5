//! The candidates of one kernel, built into a folder for a session that measures them: here, on another machine, or on many.

use std::path::{Path, PathBuf};

use warpwright_api::front::{target, verified};
use warpwright_api::optimise::{explore_input, launch_among, ptxas_version, workshop};
use warpwright_api::source::Tools;
use warpwright_api::{Error, Input, Options};
use warpwright_diag::Problem;
use warpwright_driver::database::{Key, hash, kernel_hash};
use warpwright_driver::opt::{DEFAULT_BUDGET, DEFAULT_MARGIN, Known, Request, known};
use warpwright_driver::tune::{merge, recall};
use warpwright_driver::{KernelReport, Peers, Proofs};
use warpwright_files::{contents, file_name, make_folder, write_atomically, write_into};
use warpwright_gpu::{Fault, FaultKind, devices};
use warpwright_pass::Scope;
use warpwright_report::job::{MANIFEST_FILE, Packed, manifest};
use warpwright_report::results::KernelResult;
use warpwright_report::table::Table;
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::{BuildCache, cache_dir};

use crate::session::{database, load_manifest};
use crate::{Watch, last_part};

/// How many times `opt`'s work goes into candidates that will be measured.
const BUDGET_OF_TUNE: f64 = 15.0;

/// A kernel whose candidates are built, and how it is launched.
pub struct Job<'a> {
    /// Its file.
    pub input: &'a Input,
    /// What is stated; its launch is the one that is measured.
    pub options: &'a Options,
    /// The text of the launch description.
    pub launch: &'a str,
    /// What people sweep by hand, to be measured too.
    pub peers: Peers,
}

/// Builds the candidates into `folder`, with their manifest. Without a launch there is nothing to measure.
///
/// # Errors
/// The file or its launch is wrong, or there is no toolkit.
pub fn build(
    tools: &Tools<'_>,
    job: &Job<'_>,
    folder: &Path,
    watch: &dyn Watch,
) -> Result<(), Error> {
    let Job { input, options, .. } = *job;
    let Some(launch) = &options.launch else {
        return Err(Problem::Usage("--launch L.toml is wanted".into()).into());
    };
    let named = options.gpu.or_else(local_gpu);
    let module = tools.module(input, named.as_ref(), false)?;
    let gpu = target(&module, named)?;
    let kernels = module.kernels().map(|(_, kernel)| kernel.name.to_string());
    let launch = launch_among(launch, &input.name, &kernels.collect::<Vec<_>>())?;
    let toolkit = tools.toolkit()?;
    let cache = BuildCache::standard();
    let arch = gpu.target();
    let source = module.source.clone();
    let artifact = verified(module)?;
    let request = Request {
        gpu: &gpu,
        scope: Scope {
            gpu: Some(gpu),
            kernels: std::slice::from_ref(&launch.kernel),
            launch: Some(&launch),
            ..options.scope()
        },
        peers: job.peers,
        ptx_only: false,
        margin: DEFAULT_MARGIN,
        // Everything that is measured is proved first.
        budget: DEFAULT_BUDGET * BUDGET_OF_TUNE,
        proofs: Proofs::All,
        is_searched: false,
    };
    let outcomes = explore_input(
        Some((input, (toolkit, &cache))),
        Some(&workshop(toolkit, &cache, &arch, &artifact)),
        &artifact,
        &request,
        &|_| Known::new(),
        &*watch.building(),
    )?;
    let ptxas = ptxas_version(toolkit).unwrap_or_default();
    make_folder(folder)?;
    for outcome in &outcomes {
        let content = kernel_hash(&source, &outcome.report.name);
        let (manifest, files) = manifest(
            outcome,
            &last_part(Path::new(&input.name)),
            &gpu.to_string(),
            &ptxas,
            content,
            (job.launch, launch.size.as_str()),
        );
        for (name, bytes) in files {
            write_into(folder, &name, bytes)?;
        }
        let text = serde_json::to_string_pretty(&manifest)
            .map_err(|e| Problem::Internal(e.to_string()))?;
        write_atomically(&folder.join(MANIFEST_FILE), text.as_bytes())?;
    }
    Ok(())
}

fn local_gpu() -> Option<Gpu> {
    let device = devices().ok()?.into_iter().next()?;
    lookup(&device.name).or(lookup(&device.arch)).ok()
}

/// Is there a device to measure on?
///
/// # Errors
/// What can be done where there is none.
pub fn check_device() -> Result<(), Error> {
    let missing = |fault: Fault| match fault.kind {
        FaultKind::Input => Error::from(fault),
        _ => Error::from(Problem::Missing {
            what: format!(
                "{fault}\n`warpwright opt` chooses without a GPU (`trace --no-gpu` runs a program's kernels in the emulator); \
                 `tune --jobs DIR` packs the candidates for a machine that has one"
            ),
            mend: None,
        }),
    };
    match devices().map_err(missing)?.is_empty() {
        true => Err(missing(Fault::new(
            FaultKind::Missing,
            "no device to measure on",
        ))),
        false => Ok(()),
    }
}

/// A folder that the same request for a file finds again, so that an interrupted session can be resumed.
///
/// # Errors
/// There is no cache, or the file cannot be read.
pub fn work_folder(file: &Path, request: &str) -> Result<PathBuf, Error> {
    let cache = cache_dir()
        .ok_or_else(|| Problem::Input("there is no cache folder (HOME is not set)".to_owned()))?;
    let name = hash(&[&contents(file)?, request.as_bytes()]);
    Ok(cache.join("tune").join(&name[..16]))
}

/// Builds the candidates and deals them out to files in `folder`, `per_job` to each; the files.
///
/// # Errors
/// As of [`build`].
pub fn pack(
    tools: &Tools<'_>,
    job: &Job<'_>,
    (folder, per_job): (&Path, u32),
    watch: &dyn Watch,
) -> Result<Vec<PathBuf>, Error> {
    make_folder(folder)?;
    let built = tempfile::tempdir().map_err(|e| Problem::Input(e.to_string()))?;
    build(tools, job, built.path(), watch)?;
    let manifest = load_manifest(built.path())?;
    let name = file_name(&manifest.report.name);
    let mut paths = Vec::new();
    for (index, share) in manifest.shares(per_job).into_iter().enumerate() {
        let job = Packed::new(share, |file| contents(&built.path().join(file)))?;
        let text = serde_json::to_string(&job).map_err(|e| Problem::Internal(e.to_string()))?;
        let path = folder.join(format!("{name}-{index:03}.job"));
        write_atomically(&path, text.as_bytes())?;
        paths.push(path);
    }
    Ok(paths)
}

/// The report of a kernel whose candidates were all measured before on this GPU with this driver.
///
/// # Errors
/// There is no manifest, or no driver.
pub fn from_database(folder: &Path) -> Result<Option<KernelReport>, Error> {
    let manifest = load_manifest(folder)?;
    let device = devices()?.into_iter().next();
    let (Some(device), Ok(database)) = (device, database()) else {
        return Ok(None);
    };
    let key = Key {
        kernel: manifest.kernel_hash.clone(),
        launch: manifest.launch_hash(),
        gpu: device.name,
        driver: device.driver.unwrap_or_default(),
        toolkit: manifest.ptxas.clone(),
    };
    let mut found = Vec::new();
    for (candidate, file) in manifest.report.candidates.iter().zip(&manifest.files) {
        if file.is_some() {
            match database.get(&key, &candidate.recipe) {
                Ok(Some(entry)) => found.push(entry),
                _ => return Ok(None),
            }
        }
    }
    let mut report = manifest.report;
    recall(&mut report, &known(&found));
    Ok(Some(report))
}

/// The report with the measurements in it and the choice that follows from them.
pub fn chosen_report(result: &KernelResult) -> KernelReport {
    let mut report = result.report.clone();
    merge(&mut report, &result.measurements);
    report
}

/// `root` itself if it is one, else its sub-folders that are, by name.
///
/// # Errors
/// It cannot be read.
pub fn folders_with(root: &Path, is_one: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, Problem> {
    if is_one(root) {
        return Ok(vec![root.to_path_buf()]);
    }
    let listing = std::fs::read_dir(root)
        .map_err(|e| Problem::Input(format!("cannot read `{}`: {e}", root.display())))?;
    let mut folders: Vec<PathBuf> = listing
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_one(path))
        .collect();
    folders.sort();
    Ok(folders)
}

/// The folders of candidates below `root`.
///
/// # Errors
/// There is none.
pub fn candidate_folders(root: &Path) -> Result<Vec<PathBuf>, Problem> {
    let folders = folders_with(root, |path| path.join(MANIFEST_FILE).is_file())?;
    if folders.is_empty() {
        return Err(Problem::Input(format!(
            "`{}` holds no candidates (no {MANIFEST_FILE}); `tune --build-only` makes them",
            root.display()
        )));
    }
    Ok(folders)
}

/// What became of each kernel, and how good the choice without a measurement was.
pub fn measured_table(results: &[KernelResult]) -> String {
    let mut table = Table::new(&[
        "kernel",
        "default µs",
        "best",
        "ratio",
        "static choice",
        "ratio",
        "regret",
    ]);
    for result in results {
        let report = chosen_report(result);
        let default = report.candidates[0]
            .measured()
            .map_or(f64::NAN, |m| m.median_ns);
        let number = |x: Option<f64>| x.map_or_else(|| "–".into(), |x| format!("{x:.3}"));
        table.row(vec![
            report.name.clone(),
            format!("{:.1}", default / 1000.0),
            report.candidates[report.chosen].recipe.to_string(),
            number(Some(result.measurements.chosen_ratio())),
            result.report.candidates[result.report.chosen]
                .recipe
                .to_string(),
            number(result.ratio_of(result.report.chosen)),
            number(result.regret()),
        ]);
    }
    table.render(0)
}
