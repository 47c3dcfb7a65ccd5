//! `warpwright bug`: what a report about FILE needs.

use std::path::PathBuf;

use warpwright::Level;
use warpwright::bug::{Told, choices, option, report};
use warpwright::source::quoted;
use warpwright::source::stencil::of_language;
use warpwright_files::{self as files, Kind, write_atomically};

use super::opt::Progress;
use crate::args::{BugArgs, Cli, version};
use crate::failure::Failure;
use crate::session;

/// Runs the command.
pub fn run(cli: &Cli, args: &BugArgs) -> Result<(), Failure> {
    if let Some(output) = &args.output {
        Kind::Report.fits(output)?;
    }
    let input = files::read(&args.file)?;
    // A slip of the command line is no bug.
    session::named_gpu(args.kernel.gpu.as_deref())?;
    let mut ptx = None;
    let found = match input.level {
        // Of a stencil, its text says all; whether it is understood says the front end.
        Level::Stencil => of_language(&input)
            .map(|_| Vec::new())
            .map_err(Failure::from),
        _ => session::options(&input, &args.kernel, &args.nvcc).and_then(|options| {
            let tools = session::tools(cli, &options.nvcc)?;
            let watch = Progress::new(cli, false);
            Ok(choices(&tools, &input, &options, &mut ptx, &watch)?)
        }),
    };
    let launch = args.kernel.launch.as_ref();
    let told = Told {
        version: version::SHORT,
        devices: &warpwright_gpu::devices().unwrap_or_default(),
        options: options(args),
        found: found.map_err(|failure| (failure.code(), failure.shown())),
        launch: launch.and_then(|launch| files::text(launch).ok()),
        ptx,
    };
    let text = report(&session::tools(cli, &[])?, &input, told)?;
    match &args.output {
        Some(output) => {
            write_atomically(output, text.as_bytes())?;
            println!("wrote {}: read it before you send it", output.display());
        }
        None => crate::terminal::document(&text),
    }
    Ok(())
}

/// What the command line says of the launch and to nvcc; of files only their names.
fn options(args: &BugArgs) -> String {
    let name = |path: &PathBuf| PathBuf::from(path.file_name().unwrap_or_default());
    let mut kernel = args.kernel.clone();
    kernel.launch = kernel.launch.as_ref().map(name);
    kernel.trace = kernel.trace.as_ref().map(name);
    let named = kernel.kernels.iter();
    let mut text: String = named
        .map(|name| format!(" --kernel {}", quoted(name)))
        .collect();
    text += &kernel.again();
    for (number, word) in args.nvcc.iter().enumerate() {
        text += if number == 0 { " -- " } else { " " };
        text += &option(word);
    }
    text
}
