//! Sessions that measure the candidates in folders: on one device or all of them, resumed where they were interrupted, and
//! entered into the user's database.
//!
//! A packed job needs neither toolkit nor network nor a shared folder, so that whatever spreads work over hosts (an array of
//! Slurm, `scripts/spread.py` with Dask) runs it as it is.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use warpwright_api::Error;
use warpwright_diag::Problem;
use warpwright_driver::database::{Database, Entry, Export};
use warpwright_files::{file_name, make_folder, text, write_atomically, write_into};
use warpwright_gpu::{
    Budget, DeviceInfo, Fault, Process, Progress, State, WorkerCommand, devices,
    fleet::{measure_split, spread},
    measure, prepare,
};
use warpwright_launch::{ContentsError, LaunchFile};
use warpwright_report::job::{BASELINE, MANIFEST_FILE, MANIFEST_SCHEMA, Manifest, Packed, entries};
use warpwright_report::results::KernelResult;
use warpwright_supervise::signals;
use warpwright_toolkit::{NO_CACHE, cache_dir};

use crate::{Bar, Watch};

/// Where a measuring session can be resumed from, within the folder of candidates.
const STATE_FILE: &str = "state.json";

/// How a session measures.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// Seconds a kernel.
    pub budget: f64,
    /// Nobody is dropped on the way.
    pub exhaustive: bool,
    /// Nothing is resumed.
    pub fresh: bool,
}

/// Measures a packed job on one of the devices; the measurements, for the database. `name` is its file.
///
/// # Errors
/// It is none, there is no such device, or somebody interrupts it.
pub fn measure_job(
    (name, text): (&str, &str),
    (budget, ordinal): (f64, u32),
    watch: &dyn Watch,
) -> Result<Export, Error> {
    let bad = |e: String| Problem::Input(format!("`{name}`: {e}"));
    let packed: Packed = serde_json::from_str(text)
        .map_err(|e| bad(format!("is no file of candidates (`tune --jobs`): {e}")))?;
    let (manifest, files) = packed.open().map_err(|e| bad(e.to_string()))?;
    let folder = tempfile::tempdir().map_err(|e| Problem::Input(e.to_string()))?;
    for (name, bytes) in &files {
        if file_name(name) != *name {
            return Err(bad(format!("`{name}` is no name of a file")).into());
        }
        write_into(folder.path(), name, bytes)?;
    }
    let manifest = serde_json::to_string(&manifest).map_err(|e| bad(e.to_string()))?;
    write_into(folder.path(), MANIFEST_FILE, manifest.as_bytes())?;
    let session = Session {
        budget,
        exhaustive: true,
        fresh: true,
    };
    let mut devices = devices()?.into_iter();
    let device = devices
        .nth(ordinal as usize)
        .ok_or_else(|| Problem::Input(format!("there is no device {ordinal}")))?;
    let on = On::One(&mut worker(&device)?);
    let (result, found) = measure_folder(folder.path(), &session, on, watch)?;
    // A part of a job would look like all of it.
    match result.measurements.interrupted {
        true => Err(bad("interrupted; nothing was written".to_owned()))?,
        false => Ok(Export::new(found)),
    }
}

/// Measures the candidates of folders: several folders side by side, one to a device; one folder's candidates on
/// all devices. In the order of the folders.
///
/// # Errors
/// There is no device; those of a folder stand in its place.
pub fn measure_all(
    folders: &[PathBuf],
    session: &Session,
    watch: &dyn Watch,
) -> Result<Vec<Result<KernelResult, Error>>, Error> {
    let devices = devices()?;
    if folders.len() < 2 || devices.len() < 2 {
        return Ok(folders
            .iter()
            .map(|folder| {
                watch.tell(&format!("measuring {}", folder.display()));
                measure_one(folder, session, watch)
            })
            .collect());
    }
    let workers = devices.iter().map(worker).collect::<Result<Vec<_>, _>>()?;
    // The most work first: at the end no device waits long for the others.
    let work =
        |folder: &Path| load_manifest(folder).map_or(0, |m| m.files.iter().flatten().count());
    let mut order: Vec<(usize, &PathBuf)> = folders.iter().enumerate().collect();
    order.sort_by_cached_key(|(_, folder)| std::cmp::Reverse(work(folder)));
    let mut results = spread(workers, order, |worker, (index, folder)| {
        watch.tell(&format!("measuring {}", folder.display()));
        (
            index,
            measure_and_store(folder, session, watch, On::One(worker)),
        )
    });
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Measures the candidates of one folder on all devices.
///
/// # Errors
/// There is no device, the folder holds no job, or nothing of it can be measured.
pub fn measure_one(
    folder: &Path,
    session: &Session,
    watch: &dyn Watch,
) -> Result<KernelResult, Error> {
    let mut workers = devices()?
        .iter()
        .map(worker)
        .collect::<Result<Vec<_>, _>>()?;
    match &mut workers[..] {
        [worker] => measure_and_store(folder, session, watch, On::One(worker)),
        _ => measure_and_store(folder, session, watch, On::All(workers)),
    }
}

fn worker(device: &DeviceInfo) -> Result<Process, Fault> {
    Ok(Process::new(WorkerCommand::this_program(device.ordinal)?))
}

/// Where candidates are measured.
enum On<'a> {
    One(&'a mut Process),
    All(Vec<Process>),
}

/// Measures, and enters what was found into the user's database; measuring goes on without one, too.
fn measure_and_store(
    folder: &Path,
    session: &Session,
    watch: &dyn Watch,
    on: On,
) -> Result<KernelResult, Error> {
    let (result, found) = measure_folder(folder, session, on, watch)?;
    let stored = database().and_then(|db| {
        let mut found = found.iter();
        let put = found.try_for_each(|entry| db.put(entry));
        put.map_err(|e| Problem::Input(e.to_string()).into())
    });
    if let Err(error) = stored {
        watch.unstored(error);
    }
    Ok(result)
}

/// Measures the candidates of a folder, and writes nothing outside of it.
fn measure_folder(
    folder: &Path,
    session: &Session,
    on: On,
    watch: &dyn Watch,
) -> Result<(KernelResult, Vec<Entry>), Error> {
    let manifest = load_manifest(folder)?;
    let file = LaunchFile::parse(&manifest.launch, &manifest.input)
        .map_err(|e| Problem::Input(e.to_string()))?;
    let mut launch = file
        .resolve(&manifest.size, &[])
        .map_err(|e| Problem::Input(e.to_string()))?;
    // The description may have its name in the source.
    launch.kernel.clone_from(&manifest.report.name);
    let scratch = tempfile::tempdir().map_err(|e| Problem::Input(e.to_string()))?;
    let files = |name: &str| Err(ContentsError::NotCarried(name.to_owned()));
    let job = prepare(&launch, scratch.path(), &files)?;
    let variants = manifest.variants(|name| folder.join(name));
    let budget = Budget {
        seconds: session.budget,
        exhaustive: session.exhaustive,
        ..Budget::default()
    };
    // What was measured so far is kept.
    signals::be_patient();
    let bar = watch.bar(None, &manifest.report.name);
    let step = |news: &Progress<'_>| {
        follow(news, &*bar, folder);
        match signals::asked_to_end() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let measurements = match on {
        // Only a session on one device can be resumed.
        On::One(backend) => {
            let resume = if session.fresh {
                None
            } else {
                load_state(folder)
            };
            measure(
                backend,
                &job,
                &variants,
                BASELINE,
                &budget,
                resume,
                &mut |n| step(n),
            )?
        }
        On::All(backends) => {
            measure_split(backends, &job, &variants, BASELINE, &budget, &|_, n| {
                step(n)
            })?
        }
    };
    drop(bar);
    if !measurements.interrupted {
        let _ = std::fs::remove_file(folder.join(STATE_FILE));
    }
    let found = entries(&manifest, &measurements);
    if measurements.interrupted && !session.fresh {
        watch.tell("interrupted; the same command goes on from here");
    }
    let result = KernelResult {
        input: manifest.input,
        report: manifest.report,
        measurements,
    };
    Ok((result, found))
}

fn load_state(folder: &Path) -> Option<State> {
    serde_json::from_str(&std::fs::read_to_string(folder.join(STATE_FILE)).ok()?).ok()
}

/// Shows news and stores checkpoints. A checkpoint that cannot be written costs only the resuming.
fn follow(news: &Progress<'_>, bar: &dyn Bar, folder: &Path) {
    match news {
        Progress::Checked { id, done, of, .. } => {
            bar.say(&format!("checked {id} ({done} of {of})"));
        }
        Progress::Timed {
            alive,
            best,
            ratio,
            spent,
            budget,
        } => bar.say(&format!(
            "{alive} left, best so far {best} at {ratio:.3} ({spent:.0} of {budget:.0} s)"
        )),
        Progress::Excluded { id, verdict } => bar.note(&format!("{id} is out: {verdict}")),
        Progress::Checkpoint(state) => {
            if let Ok(text) = serde_json::to_string(state) {
                let _ = write_atomically(&folder.join(STATE_FILE), text.as_bytes());
            }
        }
    }
}

/// The user's database of measurements.
///
/// # Errors
/// There is no place for it, or it cannot be opened.
pub fn database() -> Result<Database, Error> {
    let Some(folder) = cache_dir() else {
        return Err(Problem::Missing {
            what: "there is no cache folder for the database (HOME is not set)".into(),
            mend: Some(NO_CACHE.into()),
        }
        .into());
    };
    make_folder(&folder)?;
    let database = Database::open(&folder.join("measurements.sqlite"));
    Ok(database.map_err(|e| Problem::Input(e.to_string()))?)
}

/// The manifest of a folder of candidates.
///
/// # Errors
/// There is none of this version, or its parts do not fit together.
pub fn load_manifest(folder: &Path) -> Result<Manifest, Error> {
    let path = folder.join(MANIFEST_FILE);
    let bad = |e: String| Problem::Input(format!("`{}`: {e}", path.display()));
    let manifest: Manifest = serde_json::from_str(&text(&path)?).map_err(|e| bad(e.to_string()))?;
    if manifest.schema != MANIFEST_SCHEMA {
        return Err(bad(format!(
            "schema `{}`, wanted `{MANIFEST_SCHEMA}`",
            manifest.schema
        ))
        .into());
    }
    manifest.check().map_err(|e| bad(e.to_string()))?;
    Ok(manifest)
}
