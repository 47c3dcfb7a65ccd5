//! `warpwright measure`: a file of candidates in, a file of measurements out; and the sessions of `tune`.
//!
//! A job needs neither toolkit nor network nor a shared folder, so that whatever spreads work over hosts (an
//! array of Slurm, `scripts/spread.py` with Dask) runs it as it is; it writes its RESULT and nothing else. What comes
//! out goes into a database by `tune --import`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use warpwright_driver::database::{Entry, Export};
use warpwright_gpu::{
    Budget, DeviceInfo, Fault, Process, Progress, State, WorkerCommand, devices,
    fleet::{measure_split, spread},
    measure, prepare,
};
use warpwright_launch::{ContentsError, LaunchFile};
use warpwright_report::job::{BASELINE, MANIFEST_FILE, Packed, entries};
use warpwright_report::results::KernelResult;
use warpwright_supervise::signals;

use super::tune::{database, load_manifest};
use crate::args::MeasureArgs;
use crate::failure::Failure;
use warpwright_files::{file_name, text, write_atomically, write_into};
use crate::progress;

/// Where a measuring session can be resumed from, within the folder of candidates.
const STATE_FILE: &str = "state.json";

/// How a session measures.
#[derive(Debug, Clone, Copy)]
pub struct SessionArgs {
    /// Seconds a kernel.
    pub budget: f64,
    /// Nobody is dropped on the way.
    pub exhaustive: bool,
    /// Nothing is resumed.
    pub fresh: bool,
}

/// Runs the command.
pub fn run(args: &MeasureArgs) -> Result<(), Failure> {
    let bad = |e: String| Failure::input(format!("`{}`: {e}", args.job.display()));
    let packed: Packed = serde_json::from_str(&text(&args.job)?)
        .map_err(|e| bad(format!("is no file of candidates (`tune --jobs`): {e}")))?;
    let (manifest, files) = packed.open().map_err(|e| bad(e.to_string()))?;
    let folder = tempfile::tempdir().map_err(|e| Failure::input(e.to_string()))?;
    for (name, bytes) in &files {
        if file_name(name) != *name {
            return Err(bad(format!("`{name}` is no name of a file")));
        }
        write_into(folder.path(), name, bytes)?;
    }
    let manifest_text = serde_json::to_string(&manifest).map_err(|e| bad(e.to_string()))?;
    write_into(folder.path(), MANIFEST_FILE, manifest_text.as_bytes())?;
    let session = SessionArgs {
        budget: args.budget,
        exhaustive: true,
        fresh: true,
    };
    let mut devices = devices()?.into_iter();
    let device = devices
        .nth(args.device as usize)
        .ok_or_else(|| Failure::input(format!("there is no device {}", args.device)))?;
    let (result, found) = measure_folder(folder.path(), &session, On::One(&mut worker(&device)?))?;
    // A part of a job would look like all of it.
    if result.measurements.interrupted {
        return Err(bad("interrupted; nothing was written".to_owned()));
    }
    let document = serde_json::to_string(&Export::new(found)).map_err(|e| bad(e.to_string()))?;
    Ok(write_atomically(&args.output, document.as_bytes())?)
}

/// Measures the candidates of folders: several folders side by side, one to a device; one folder's candidates on
/// all devices. In the order of the folders.
pub fn measure_all(
    folders: &[PathBuf],
    session: &SessionArgs,
) -> Result<Vec<Result<KernelResult, Failure>>, Failure> {
    let devices = devices()?;
    if folders.len() < 2 || devices.len() < 2 {
        return Ok(folders
            .iter()
            .map(|folder| {
                eprintln!("measuring {}", folder.display());
                measure_one(folder, session)
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
        eprintln!("measuring {}", folder.display());
        (index, measure_and_store(folder, session, On::One(worker)))
    });
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Measures the candidates of one folder on all devices.
pub fn measure_one(folder: &Path, session: &SessionArgs) -> Result<KernelResult, Failure> {
    let mut workers = devices()?
        .iter()
        .map(worker)
        .collect::<Result<Vec<_>, _>>()?;
    match &mut workers[..] {
        [worker] => measure_and_store(folder, session, On::One(worker)),
        _ => measure_and_store(folder, session, On::All(workers)),
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
    session: &SessionArgs,
    on: On,
) -> Result<KernelResult, Failure> {
    let (result, found) = measure_folder(folder, session, on)?;
    let stored = database().and_then(|db| {
        let mut found = found.iter();
        let put = found.try_for_each(|entry| db.put(entry));
        put.map_err(|e| Failure::input(e.to_string()))
    });
    if let Err(failure) = stored {
        complain!("warning: the measurements were not stored: {failure:?}");
    }
    Ok(result)
}

/// Measures the candidates of a folder, and writes nothing outside of it.
fn measure_folder(
    folder: &Path,
    session: &SessionArgs,
    on: On,
) -> Result<(KernelResult, Vec<Entry>), Failure> {
    let manifest = load_manifest(folder)?;
    let file = LaunchFile::parse(&manifest.launch, &manifest.input)
        .map_err(|e| Failure::input(e.to_string()))?;
    let mut launch = file
        .resolve(&manifest.size, &[])
        .map_err(|e| Failure::input(e.to_string()))?;
    // The description may have its name in the source.
    launch.kernel.clone_from(&manifest.report.name);
    let scratch = tempfile::tempdir().map_err(|e| Failure::input(e.to_string()))?;
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
    let bar = progress::bar(None, &manifest.report.name);
    let step = |news: &Progress<'_>| {
        follow(news, &bar, folder);
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
    bar.finish_and_clear();
    if !measurements.interrupted {
        let _ = std::fs::remove_file(folder.join(STATE_FILE));
    }
    let found = entries(&manifest, &measurements);
    if measurements.interrupted && !session.fresh {
        eprintln!("interrupted; the same command goes on from here");
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
fn follow(news: &Progress<'_>, bar: &crate::progress::Bar, folder: &Path) {
    match news {
        Progress::Checked { id, done, of, .. } => {
            bar.set_message(format!("checked {id} ({done} of {of})"));
        }
        Progress::Timed {
            alive,
            best,
            ratio,
            spent,
            budget,
        } => bar.set_message(format!(
            "{alive} left, best so far {best} at {ratio:.3} ({spent:.0} of {budget:.0} s)"
        )),
        Progress::Excluded { id, verdict } => bar.println(&format!("{id} is out: {verdict}")),
        Progress::Checkpoint(state) => {
            if let Ok(text) = serde_json::to_string(state) {
                let _ = write_atomically(&folder.join(STATE_FILE), text.as_bytes());
            }
        }
    }
}
