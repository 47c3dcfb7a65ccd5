//! `warpwright tune`: build the candidates, measure them on the local GPU, keep the fastest.

use std::path::{Path, PathBuf};

use warpwright::optimise::{launch_among, ptxas_version, workshop};
use warpwright::source::naive::wanted;
use warpwright_diag::count as counted;
use warpwright_driver::database::{Database, Key, hash, kernel_hash};
use warpwright_driver::opt::{DEFAULT_BUDGET, DEFAULT_MARGIN, Known, Request, known};
use warpwright_driver::tune::{merge, recall};
use warpwright_driver::{KernelReport, Peers, Proofs};
use warpwright_gpu::{Fault, FaultKind, devices};
use warpwright_pass::Scope;
use warpwright_report::job::{MANIFEST_FILE, MANIFEST_SCHEMA, Manifest, Packed, manifest};
use warpwright_report::results::{KernelResult, SUITE_SCHEMA, Suite};
use warpwright_report::screen::{About, screen};
use warpwright_toolkit::{BuildCache, NO_CACHE, cache_dir};

use super::measure::{measure_all, measure_one};
use super::opt::explore_all;
use super::print_json;
use crate::args::{Cli, SweptPeers, TuneArgs};
use crate::failure::Failure;
use crate::input::{
    self, Input, Kind, Level, contents, file_name, make_folder, text as read, write_atomically,
    write_into,
};
use crate::session;
use warpwright_report::table::Table;

/// How many times `opt`'s work goes into candidates that will be measured.
const BUDGET_OF_TUNE: f64 = 15.0;

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault.kind {
            FaultKind::Missing => Failure::Missing {
                what: fault.to_string(),
                mend: None,
            },
            FaultKind::Input => Failure::input(fault.to_string()),
            FaultKind::IllegalAddress | FaultKind::MisalignedAddress
                if fault.variant.as_deref() == Some("default") =>
            {
                Failure::input(format!(
                    "{fault}\nthe code as it is faults at this launch: are the sizes of the launch description right? \
                     `warpwright run` says where, in the emulator"
                ))
            }
            _ => Failure::Missing {
                what: fault.to_string(),
                mend: None,
            },
        }
    }
}

/// Other launches are stated: nothing is seen of them where a program would run without a GPU.
fn refuse_own(args: &TuneArgs) -> Result<(), Failure> {
    match args.own.no_run || args.own.run_args.is_some() {
        true => Err(Failure::Usage(
            "--run-args and --no-run are for OUT.cu: elsewhere --launch says what is measured"
                .into(),
        )),
        false => Ok(()),
    }
}

/// Runs the command.
pub fn run(cli: &Cli, args: &TuneArgs) -> Result<(), Failure> {
    if let Some(path) = &args.export {
        let json = database()?
            .export()
            .map_err(|e| Failure::input(e.to_string()))?;
        return write_atomically(path, json.as_bytes());
    }
    if !args.import.is_empty() {
        return import(&args.import);
    }
    if let Some(root) = &args.measure_only {
        return measure_only(cli, args, root);
    }
    if args.is_for_program() {
        refuse_own(args)?;
        return super::inplace::tune::run(cli, args);
    }
    let Some(file) = &args.file else {
        return Err(Failure::Usage(
            "FILE is wanted (or `-- PROGRAM`, --measure-only, --export, --import)".into(),
        ));
    };
    let is_measured = args.build_only.is_none() && args.jobs.is_none();
    if !is_measured && (args.show.json || args.show.report.is_some()) {
        let what =
            "--json and --report show what was measured: with --build-only and --jobs nothing is";
        return Err(Failure::Usage(what.into()));
    }
    let input = input::read(file)?;
    if super::stencil_opt::is_wanted(&input, args.output.as_deref()) {
        let kernel = args.kernel.one()?;
        let (found, _) = wanted(&session::tools(cli, &args.nvcc()?)?, kernel, &input)?;
        if !found.is_empty() {
            if args.build_only.is_some() {
                let what = "--build-only is for builds and for stencils, not yet for naive kernels";
                return Err(Failure::Usage(what.into()));
            }
            super::naive_opt::refuse_reassociate(&args.stencil)?;
            return super::naive_tune::run(cli, args, &input, found);
        }
        return super::stencil_tune::run(cli, args, input);
    }
    refuse_own(args)?;
    if let Some(folder) = &args.build_only {
        if args.output.is_some() {
            let what = "of --build-only, only a stencil's OUT.cu has an effect";
            return Err(Failure::Usage(what.into()));
        }
        build(cli, args, &input, folder)?;
        eprintln!("candidates are in {}", folder.display());
        return Ok(());
    }
    if let Some(folder) = &args.jobs {
        return pack(cli, args, &input, folder);
    }
    if let Some(output) = &args.output {
        Kind::Cubin.fits(output)?;
    }
    if devices().map_err(without_gpu)?.is_empty() {
        let what = "no device to measure on";
        return Err(without_gpu(Fault::new(FaultKind::Missing, what)));
    }
    let folder = work_folder(args, file)?;
    build(cli, args, &input, &folder)?;
    let gpu = load_manifest(&folder)?.gpu;
    let report = match from_database(args, &folder)? {
        Some(report) => {
            eprintln!("every candidate was measured before; --fresh measures again");
            report
        }
        None => chosen_report(&measure_one(&folder, &args.session())?),
    };
    let chosen = report.candidates[report.chosen].name();
    let cubin = std::fs::read(folder.join(format!("{chosen}.cubin")))
        .map_err(|e| Failure::Internal(format!("the chosen cubin is gone: {e}")))?;
    if let Some(output) = &args.output {
        write_atomically(output, &cubin)?;
    }
    let name = args
        .output
        .as_ref()
        .map(|output| output.display().to_string());
    let document = serde_json::json!({
        "schema": "warpwright.tune/1",
        "input": input.name,
        "gpu": gpu,
        "output": name,
        "kernels": [&report],
    });
    super::write_page(args.show.report.as_deref(), &document)?;
    if args.show.json {
        return print_json(&document);
    }
    let text = screen(
        &[report],
        &About {
            input: &input.name,
            gpu: &gpu,
            builder: "measured here",
            output: name.as_deref(),
            emitted: "cubin",
            is_machine_code: matches!(input.level, Level::Cubin | Level::Fat),
            is_measured: true,
            has_page: args.show.report.is_some(),
            all: args.all,
            reserved: 0,
        },
    );
    print!("{text}");
    Ok(())
}

/// What can be done where there is nothing to measure on.
fn without_gpu(fault: Fault) -> Failure {
    match Failure::from(fault) {
        Failure::Missing { what, mend } => Failure::Missing {
            what: format!(
                "{what}
`warpwright opt` chooses without a GPU (`trace --no-gpu` runs a program's kernels in the emulator); `tune --jobs DIR` packs the candidates for a machine that has one"
            ),
            mend,
        },
        other => other,
    }
}

/// Adds what `--export` and `measure` wrote to the database; a file that does not fit adds nothing.
fn import(files: &[PathBuf]) -> Result<(), Failure> {
    let mut database = database()?;
    let mut count = 0;
    for path in files {
        count += database
            .import(&read(path)?)
            .map_err(|e| Failure::input(format!("{}: {e}", path.display())))?;
    }
    eprintln!("{} imported", counted(count, "measurement"));
    Ok(())
}

/// Builds the candidates and deals them out to files that `measure` takes, one after the other.
fn pack(cli: &Cli, args: &TuneArgs, input: &Input, folder: &Path) -> Result<(), Failure> {
    make_folder(folder)?;
    let built = tempfile::tempdir().map_err(|e| Failure::input(e.to_string()))?;
    build(cli, args, input, built.path())?;
    let manifest = load_manifest(built.path())?;
    let name = file_name(&manifest.report.name);
    for (index, share) in manifest.shares(args.per_job).into_iter().enumerate() {
        let job = Packed::new(share, |file| contents(&built.path().join(file)))?;
        let text = serde_json::to_string(&job).map_err(|e| Failure::Internal(e.to_string()))?;
        let path = folder.join(format!("{name}-{index:03}.job"));
        write_atomically(&path, text.as_bytes())?;
        println!("{}", path.display());
    }
    Ok(())
}

/// The report of a kernel whose candidates were all measured before on this GPU with this driver.
fn from_database(args: &TuneArgs, folder: &Path) -> Result<Option<KernelReport>, Failure> {
    if args.fresh {
        return Ok(None);
    }
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

/// The user's database of measurements.
pub fn database() -> Result<Database, Failure> {
    let Some(folder) = cache_dir() else {
        return Err(Failure::Missing {
            what: "there is no cache folder for the database (HOME is not set)".into(),
            mend: Some(NO_CACHE.into()),
        });
    };
    make_folder(&folder)?;
    Database::open(&folder.join("measurements.sqlite")).map_err(|e| Failure::input(e.to_string()))
}

/// A folder that the same request finds again, so that an interrupted run can be resumed.
fn work_folder(args: &TuneArgs, file: &Path) -> Result<PathBuf, Failure> {
    let Some(cache) = cache_dir() else {
        return Err(Failure::input("there is no cache folder (HOME is not set)"));
    };
    let source = contents(file)?;
    let peers = wanted_peers(args);
    let request = format!("{:?} {:?} {peers:?}", args.kernel, args.words);
    let name = hash(&[&source, request.as_bytes()]);
    Ok(cache.join("tune").join(&name[..16]))
}

/// Builds the candidates of one kernel into `folder`, with their manifest.
fn build(cli: &Cli, args: &TuneArgs, input: &Input, folder: &Path) -> Result<(), Failure> {
    let Some(launch_path) = &args.kernel.launch else {
        return Err(Failure::Usage(
            "--launch L.toml is wanted: it says how to run the kernel (`warpwright launch X.cu` writes the start of one)".into(),
        ));
    };
    let launch = session::kernel_launch(&args.kernel)?
        .ok_or_else(|| Failure::Usage("--launch L.toml is wanted".into()))?;
    let launch_text = read(launch_path)?;
    let named = session::named_gpu(args.kernel.gpu.as_deref())?;
    let named = match named {
        Some(gpu) => Some(gpu),
        None => local_gpu(),
    };
    let nvcc = session::nvcc(input, Some(launch_path), &args.nvcc()?)?;
    let module = session::module(cli, input, named.as_ref(), &nvcc, false)?;
    let gpu = session::target(&module, named)?;
    let launch = launch_among(&launch, &input.name, &super::run::kernels(&module))?;
    let toolkit = session::toolkit(cli)?;
    let cache = BuildCache::standard();
    let arch = gpu.target();
    let source = module.source.clone();
    let artifact = session::verified(module)?;
    let workshop = workshop(&toolkit, &cache, &arch, &artifact);
    let blocks = args.kernel.blocks();
    let request = Request {
        gpu: &gpu,
        scope: Scope {
            gpu: Some(gpu),
            kernels: std::slice::from_ref(&launch.kernel),
            block: args.kernel.block_of_all(),
            blocks: &blocks,
            seen: &[],
            dynamic_smem: args.kernel.dynamic_smem,
            grid: args.kernel.launched_blocks(),
            sizes: &[],
            reassociate: false,
            launch: Some(&launch),
        },
        peers: wanted_peers(args),
        ptx_only: false,
        margin: DEFAULT_MARGIN,
        // Everything that is measured is proved first.
        budget: DEFAULT_BUDGET * BUDGET_OF_TUNE,
        proofs: Proofs::All,
        is_searched: false,
    };
    let outcomes = explore_all(
        cli,
        Some((input, (&toolkit, &cache))),
        Some(&workshop),
        &artifact,
        &request,
        &|_| Known::new(),
    )?;
    let ptxas = ptxas_version(&toolkit).unwrap_or_default();
    make_folder(folder)?;
    for outcome in &outcomes {
        let content = kernel_hash(&source, &outcome.report.name);
        let launch = (launch_text.as_str(), launch.size.as_str());
        let (manifest, files) = manifest(
            outcome,
            &last_part(Path::new(&input.name)),
            &gpu.to_string(),
            &ptxas,
            content,
            launch,
        );
        for (name, bytes) in files {
            write_into(folder, &name, bytes)?;
        }
        let text = serde_json::to_string_pretty(&manifest)
            .map_err(|e| Failure::Internal(e.to_string()))?;
        write_atomically(&folder.join(MANIFEST_FILE), text.as_bytes())?;
    }
    Ok(())
}

/// `--peers`, or all of them for `--exhaustive`.
fn wanted_peers(args: &TuneArgs) -> Peers {
    match (args.peers, args.exhaustive) {
        (Some(SweptPeers::None), _) | (None, false) => Peers::None,
        (Some(SweptPeers::Spills), _) => Peers::Spills,
        (Some(SweptPeers::Usual), _) => Peers::Usual,
        (Some(SweptPeers::All), _) | (None, true) => Peers::All,
    }
}

/// The name without its folder: result files travel.
pub fn last_part(file: &Path) -> String {
    file.file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn local_gpu() -> Option<warpwright_target::Gpu> {
    let device = devices().ok()?.into_iter().next()?;
    warpwright_target::lookup(&device.name)
        .or(warpwright_target::lookup(&device.arch))
        .ok()
}

/// Measures every folder of candidates below `root` and writes one result file.
fn measure_only(cli: &Cli, args: &TuneArgs, root: &Path) -> Result<(), Failure> {
    let output = args.output.clone();
    let output = output.unwrap_or_else(|| root.join("result.json"));
    let stencils = folders_with(root, super::stencil_tune::is_built)?;
    if !stencils.is_empty() {
        return super::stencil_tune::measure_only(cli, args, &stencils, &output);
    }
    let mut results = Vec::new();
    let mut failures = Vec::new();
    let mut ptxas = String::new();
    let folders = candidate_folders(root)?;
    for (folder, outcome) in folders.iter().zip(measure_all(&folders, &args.session())?) {
        match outcome {
            Ok(result) => {
                ptxas = load_manifest(folder)?.ptxas;
                results.push(result);
            }
            Err(failure) => {
                let name = folder.file_name().map(|n| n.to_string_lossy().into_owned());
                complain!("{}: {failure:?}", folder.display());
                failures.push((name.unwrap_or_default(), format!("{failure:?}")));
            }
        }
    }
    let suite = Suite {
        schema: SUITE_SCHEMA.into(),
        warpwright: env!("CARGO_PKG_VERSION").into(),
        ptxas,
        kernels: results,
        failures,
    };
    let text = serde_json::to_string(&suite).map_err(|e| Failure::Internal(e.to_string()))?;
    write_atomically(&output, text.as_bytes())?;
    show(args, &suite.kernels)?;
    eprintln!("wrote {}", output.display());
    Ok(())
}

/// `root` itself if it is one, else its sub-folders that are, by name.
fn folders_with(root: &Path, is_one: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, Failure> {
    if is_one(root) {
        return Ok(vec![root.to_path_buf()]);
    }
    let listing = std::fs::read_dir(root)
        .map_err(|e| Failure::input(format!("cannot read `{}`: {e}", root.display())))?;
    let mut folders: Vec<PathBuf> = listing
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_one(path))
        .collect();
    folders.sort();
    Ok(folders)
}

/// The folders of candidates below `root`.
fn candidate_folders(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let folders = folders_with(root, |path| path.join(MANIFEST_FILE).is_file())?;
    if folders.is_empty() {
        return Err(Failure::input(format!(
            "`{}` holds no candidates (no {MANIFEST_FILE}); `tune --build-only` makes them",
            root.display()
        )));
    }
    Ok(folders)
}

pub fn load_manifest(folder: &Path) -> Result<Manifest, Failure> {
    let path = folder.join(MANIFEST_FILE);
    let bad = |e: String| Failure::input(format!("`{}`: {e}", path.display()));
    let manifest: Manifest = serde_json::from_str(&read(&path)?).map_err(|e| bad(e.to_string()))?;
    if manifest.schema != MANIFEST_SCHEMA {
        return Err(bad(format!(
            "schema `{}`, wanted `{MANIFEST_SCHEMA}`",
            manifest.schema
        )));
    }
    manifest.check().map_err(|e| bad(e.to_string()))?;
    Ok(manifest)
}

/// The report with the measurements in it and the choice that follows from them.
fn chosen_report(result: &KernelResult) -> warpwright_driver::KernelReport {
    let mut report = result.report.clone();
    merge(&mut report, &result.measurements);
    report
}

fn show(args: &TuneArgs, results: &[KernelResult]) -> Result<(), Failure> {
    if args.show.json {
        let reports: Vec<_> = results.iter().map(chosen_report).collect();
        return print_json(
            &serde_json::json!({ "schema": "warpwright.tune/1", "kernels": reports }),
        );
    }
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
    print!("{}", table.render(0));
    Ok(())
}
