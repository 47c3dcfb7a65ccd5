//! `warpwright with -- PROGRAM ARGS`

use super::program::{become_it, command, inject, whole};
use crate::args::{Cli, WithArgs};
use crate::failure::Failure;

/// Runs the command: becomes the program, with the library in it.
pub fn run(cli: &Cli, args: &WithArgs) -> Result<(), Failure> {
    let mut program = command(&args.program)?;
    inject(&mut program, "with")?;
    if let Some(folder) = &args.db {
        program.env("WARPWRIGHT_DB", whole(folder));
    }
    if cli.verbose > 0 && std::env::var_os("WARPWRIGHT_LOG").is_none() {
        program.env("WARPWRIGHT_LOG", "/dev/stderr");
    }
    Err(become_it(program))
}
