//! The `warpwright` command: arguments, progress, exit codes; no decisions.
//!
//! * [`args`]: the grammar. [`commands`]: one file per command.
//! * [`session`]: what most commands start with (toolkit, GPU, module, launch).
//! * [`failure`], [`progress`], [`terminal`]: exit codes and what people see. [`threads`]: room on the stack.

#[macro_use]
mod terminal;

mod args;
mod commands;
mod failure;
mod progress;
mod session;
mod threads;

use clap::Parser;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use args::{Cli, Command};
use failure::Failure;
use warpwright_supervise::{beside, signals};

/// Where the last panic began, for the report of it.
static PANICKED: Mutex<Option<String>> = Mutex::new(None);

/// Bytes beyond which what clap says of a wrong word quotes too much of it.
const LONGEST_USAGE: usize = 8_000;

fn main() -> ExitCode {
    threads::with_room(command)
}

fn command() -> ExitCode {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // A worker speaks its own protocol on stdin and stdout, and its process may die: keep it bare.
    if words
        .first()
        .is_some_and(|w| w == warpwright_gpu::WORKER_ARGUMENT)
    {
        return ExitCode::from(warpwright_gpu::worker_main(&words[1..]));
    }
    let wants_json = args::wants_json(&words);
    let _ = failure::COMMAND.set(args::command_of(&words));
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(text) = args::option_of_nvcc(&error, &words) {
                return Failure::Usage(text).report(wants_json);
            }
            let error = args::with_option(args::with_suggestion(error), &words);
            if error.use_stderr() && (wants_json || error.to_string().len() > LONGEST_USAGE) {
                let text = error.to_string();
                let message = text.strip_prefix("error: ").unwrap_or(&text);
                return Failure::Usage(message.to_owned()).report(wants_json);
            }
            let shown = error.print().and_then(|()| std::io::stdout().flush());
            return match shown {
                // Who has seen enough of a page closes the pipe.
                Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                    Failure::input(format!("standard output: {e}")).report(wants_json)
                }
                _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
            };
        }
    };
    if cli.quiet {
        terminal::be_quiet();
    }
    beside::tell_with(|line| complain!("{line}"));
    warpwright_files::write_stdout_with(terminal::bytes);
    // A panic is our own mistake: it is reported as such, not as a Rust backtrace.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map(|l| format!("{}:{}", l.file(), l.line()));
        *PANICKED.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
    // These become the program.
    if !matches!(cli.command, Command::With(_) | Command::Nvcc(_)) {
        signals::begin();
    }
    if !matches!(cli.command, Command::With(_) | Command::Db(_)) {
        warpwright_supervise::threads::settle();
    }
    let all = || run(&mut cli).and_then(|()| terminal::is_whole());
    let done = std::panic::catch_unwind(AssertUnwindSafe(all));
    signals::wait_for_end();
    let code = match done {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(wants_json),
        Err(panic) => {
            let place = PANICKED.lock().unwrap_or_else(PoisonError::into_inner);
            let place = place.clone().unwrap_or_default();
            let text = panic_text(&*panic);
            let failure = Failure::Internal(format!("{text} ({place})"));
            let ended = commands::inplace::end::ended_anyhow(Err(failure));
            ended.map_or_else(|failure| failure.report(wants_json), |()| ExitCode::SUCCESS)
        }
    };
    signals::leave();
    code
}

fn run(cli: &mut Cli) -> Result<(), Failure> {
    cli.command.places().check()?;
    let is_of_all = cli.command.is_of_all();
    if let Some(kernel) = cli.command.kernel_mut() {
        *kernel = commands::inplace::document::apply(kernel, is_of_all)?;
    }
    let cli = &*cli;
    match &cli.command {
        Command::Check(args) => commands::check::run(cli, args),
        Command::Explain(args) => commands::explain::run(cli, args),
        Command::Opt(args) => commands::opt::run(cli, args),
        Command::Occupancy(args) => commands::occupancy::run(args),
        Command::Toolkit(args) => commands::toolkit::run(cli, args),
        Command::Nvcc(args) => commands::nvcc::run(cli, args),
        Command::Report(args) => commands::report::run(args),
        Command::Launch(args) => commands::launch::run(cli, args),
        Command::Bug(args) => commands::bug::run(cli, args),
        Command::ExplainTerm(args) => commands::words::explain_term(args),
        Command::Completions(args) => commands::words::completions(args),
        Command::Man(args) => commands::words::man(args),
        Command::Pass(args) => commands::pass::run(cli, args),
        Command::Run(args) => commands::run::run(cli, args),
        Command::Sass(args) => commands::sass::run(cli, args),
        Command::GpuSelftest(args) => commands::selftest::run(args),
        Command::Tune(args) => commands::tune::run(cli, args),
        Command::Measure(args) => commands::measure::run(cli, args),
        Command::Trace(args) => commands::inplace::trace::run(cli, args),
        Command::With(args) => commands::inplace::with::run(cli, args),
        Command::Db(args) => commands::inplace::db::run(cli, args),
        // `main` hands the worker its arguments before they are parsed.
        Command::GpuWorker => Err(Failure::Internal("the worker was not started".into())),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string()))
        .unwrap_or_else(|| "a panic without a message".into())
}
