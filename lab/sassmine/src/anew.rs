//! Cubins whose control fields are ours, all of them or a part: what `bench/control-fields.sh` measures.

use clap::ValueEnum;
use warpwright_flow::Inst;
use warpwright_sass::control::Control;
use warpwright_sass::issue::Old;
use warpwright_sass::{hazards, issue};

use crate::Error;
use crate::code::Files;

/// What stays as ptxas wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Keep {
    /// Nothing.
    Nothing,
    /// Stall counts and yield bits.
    Stalls,
    /// Scoreboards and waits.
    Scoreboards,
    /// Reuse flags are left out, the rest is ours.
    NoReuse,
}

/// What is written.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    files: Files,
    /// What stays.
    #[arg(long, default_value = "nothing")]
    keep: Keep,
}

/// Writes the cubin; says of each function how many cycles its stall counts add up to, before and after, and how
/// many findings the hazard checker has.
pub fn run(options: &Options) -> Result<String, Error> {
    options.files.rewrite(|code| {
        let old = code.clone();
        issue::assign(code, &Old::default()).map_err(|error| error.to_string())?;
        for at in 0..old.instructions().len() {
            let [was, is] = [&old, code].map(|code| code.instructions()[at].control());
            code.set_control(Inst(at as u32), mixed(options.keep, was, is))
                .map_err(|error| error.to_string())?;
        }
        let findings = hazards::check(code).map_err(|error| error.to_string())?;
        let [before, after] = [&old, code].map(|code| {
            let stalls = code.instructions().iter();
            let stalls = stalls.map(|inst| u64::from(inst.control().stall));
            stalls.sum::<u64>()
        });
        let findings = findings.len();
        Ok(format!("stalls {before} -> {after}, {findings} findings"))
    })
}

fn mixed(keep: Keep, was: Control, is: Control) -> Control {
    match keep {
        Keep::Nothing => is,
        Keep::Stalls => Control {
            stall: was.stall,
            yield_bit: was.yield_bit,
            reuse: was.reuse,
            ..is
        },
        Keep::Scoreboards => Control {
            write_barrier: was.write_barrier,
            read_barrier: was.read_barrier,
            wait_mask: was.wait_mask,
            ..is
        },
        Keep::NoReuse => Control { reuse: 0, ..is },
    }
}
