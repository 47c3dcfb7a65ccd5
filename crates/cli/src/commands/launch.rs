//! `warpwright launch`: the start of a launch description, from the code's own launch or from a trace. What is guessed
//! says so.

use std::path::Path;
use std::time::Instant;

use warpwright::own_launch::own_headers;
use warpwright::source::read::read;
use warpwright::{Input, Level};
use warpwright_autotune::draft::{Job, Made, is_free, said};
use warpwright_autotune::own_run::{self, FOR_RUN, until};
use warpwright_files::{self as files, make_folder, write_atomically};
use warpwright_host::{Code, Trial};
use warpwright_pass::names::{base_name, selected, source_name};

use super::inplace::document;
use super::inplace::watch::Told;
use crate::args::{Cli, LaunchArgs};
use crate::failure::Failure;
use crate::{progress, session};

/// Runs the command.
pub fn run(cli: &Cli, args: &LaunchArgs) -> Result<(), Failure> {
    let until = until(args.budget);
    let input = files::read(&args.file)?;
    if input.level != Level::Cuda {
        return Err(Failure::input(format!(
            "`{}` is no CUDA C: the names and types of parameters stand in the source alone",
            input.name
        )));
    }
    let tools = session::tools(cli, &args.nvcc)?;
    let compile = || {
        let file = read(&tools, &input, None)?;
        let module = tools.module(&input, None, true)?;
        Ok::<_, Failure>((file, module))
    };
    let (file, module) = progress::waiting(progress::COMPILING, compile)?;
    // What compiling took is gone.
    let left = until
        .saturating_duration_since(Instant::now())
        .as_secs_f64();
    let wanted = args.own.wanted(&args.nvcc, (left * FOR_RUN, None));
    let run = || own_run::run(&tools, &input, wanted, &Told(cli));
    let ran = match (&args.trace, args.block) {
        (None, None) => progress::waiting(own_run::DOING, run),
        _ => None,
    };
    let text = input.text()?;
    let read = (&file, text, own_headers(&input.path, text, &args.nvcc));
    let trace = args.trace.as_deref().map(document::read).transpose()?;
    let name = args.trace.as_ref().map(|path| path.display().to_string());
    let job = Job {
        code: Code::new(read, (&module, &args.nvcc), session::target(&module, None)?),
        module: &module,
        file: &args.file,
        nvcc: &args.nvcc,
        block: args.block,
        dynamic_smem: args.dynamic_smem,
        ran: ran.as_ref(),
        trace: name.as_deref().zip(trace.as_ref()),
        until,
    };
    if let Some(folder) = args.folder() {
        return into_folder(&input, (&job, args), folder);
    }
    if let Some(output) = &args.output {
        is_free(output, args.force)?;
    }
    let made = describe(&job, args.kernel.as_deref(), args.output.as_deref(), until)?;
    match &args.output {
        Some(output) => write(&made, output)?,
        None => {
            if let Trial::Faults { .. } = made.trial {
                eprintln!("warning: {}", said(&made.trial));
            }
            crate::terminal::document(&made.text);
        }
    }
    ended(&made)
}

/// The description of a kernel, while somebody waits.
fn describe(
    job: &Job<'_>,
    wanted: Option<&str>,
    output: Option<&Path>,
    until: Instant,
) -> Result<Made, Failure> {
    let symbol = &job.code.kernel(wanted)?.symbol;
    let what = format!("{}: trying its launch in the emulator", source_name(symbol));
    Ok(progress::waiting(&what, || {
        job.describe(wanted, output, until)
    })?)
}

/// A description of each kernel that is wanted, in a folder, by the kernel's name.
fn into_folder(
    input: &Input,
    (job, args): (&Job<'_>, &LaunchArgs),
    folder: &Path,
) -> Result<(), Failure> {
    let symbols = job.code.symbols();
    let wanted: Vec<&str> = match args.kernel.as_deref() {
        Some(wanted) => selected(wanted, symbols),
        None => symbols.iter().map(String::as_str).collect(),
    };
    if let ([], Some(wanted)) = (&wanted[..], args.kernel.as_deref()) {
        job.code.kernel(Some(wanted))?;
    }
    let mut names: Vec<String> = Vec::new();
    let mut made_some = false;
    let mut worst = Ok(());
    let is_new = !folder.exists();
    make_folder(folder)?;
    let count = wanted.len();
    for (at, symbol) in wanted.into_iter().enumerate() {
        let base = base_name(symbol);
        let same = names.iter().filter(|name| **name == base).count();
        names.push(base.clone());
        let output = folder.join(match same {
            0 => format!("{base}.toml"),
            same => format!("{base}_{}.toml", same + 1),
        });
        let made = is_free(&output, args.force)
            .map_err(Failure::from)
            .and_then(|()| describe(job, Some(symbol), Some(&output), job.share(count - at)));
        match made {
            Ok(made) => {
                write(&made, &output)?;
                made_some = true;
                if worst.is_ok() {
                    worst = ended(&made);
                }
            }
            Err(failure) => {
                println!("left out {}: {}", source_name(symbol), failure.shown());
                worst = Err(Failure::Quiet(failure.code()));
            }
        }
    }
    if is_new && !made_some {
        // Only an empty one goes.
        let _ = std::fs::remove_dir(folder);
    }
    match names.is_empty() {
        true => Err(Failure::input(format!("`{}` has no kernel", input.name))),
        false => worst,
    }
}

/// Writes a description and says so.
fn write(made: &Made, output: &Path) -> Result<(), Failure> {
    write_atomically(output, made.text.as_bytes())?;
    if output == Path::new("-") {
        return Ok(());
    }
    println!("wrote {}: {}", output.display(), said(&made.trial));
    if let Some(said) = &made.launched {
        println!("  {said}");
    }
    Ok(())
}

/// Nobody is to take for good what faults.
fn ended(made: &Made) -> Result<(), Failure> {
    match made.trial {
        Trial::Faults { is_long: false, .. } => Err(Failure::Quiet(FAULTS)),
        _ => Ok(()),
    }
}

/// The exit code where something was written that is not decided to be right.
const FAULTS: u8 = 5;
