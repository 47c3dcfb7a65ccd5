//! `warpwright with -- PROGRAM ARGS`

use warpwright_supervise::program::{become_it, command, inject, outer_mode, whole};

use crate::args::{Cli, WithArgs};
use crate::failure::Failure;

/// Runs the command: becomes the program, with the library in it.
pub fn run(cli: &Cli, args: &WithArgs) -> Result<(), Failure> {
    let mut program = command(&args.program)?;
    // Below `trace` and `tune` those see the program: with its winners, and trials as they are.
    let mode = match outer_mode().as_deref() {
        None => "with",
        Some("try") => "try",
        Some(_) => "trace+with",
    };
    inject(&mut program, mode)?;
    if let Some(folder) = &args.db {
        program.env("WARPWRIGHT_DB", whole(folder));
    }
    if cli.verbose > 0 && std::env::var_os("WARPWRIGHT_LOG").is_none() {
        program.env("WARPWRIGHT_LOG", "/dev/stderr");
    }
    Err(become_it(program).into())
}
