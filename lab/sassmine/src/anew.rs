//! Cubins whose control fields are ours, all of them or a part: what `bench/control-fields.sh` measures.

use std::fmt::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use warpwright_flow::Inst;
use warpwright_sass::control::Control;
use warpwright_sass::elf::Elf;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::issue::Old;
use warpwright_sass::{hazards, issue};

use crate::{Error, code};

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

/// From where to where.
#[derive(clap::Args)]
pub struct Options {
    /// The cubin.
    input: PathBuf,
    /// The cubin with other control fields.
    output: PathBuf,
    /// What stays.
    #[arg(long, default_value = "nothing")]
    keep: Keep,
}

/// Writes the cubin; says of each function how many cycles its stall counts add up to, before and after, and how
/// many findings the hazard checker has.
pub fn run(options: &Options) -> Result<String, Error> {
    let cubin = code::read(&options.input)?;
    let bad = |error: String| Error::Input(options.input.clone(), error);
    let mut elf = Elf::parse(&cubin.bytes).map_err(|error| bad(error.to_string()))?;
    let mut out = String::new();
    for kernel in elf.kernels().map_err(|error| bad(error.to_string()))? {
        let old = Code::new(&elf, &kernel, Calls::Followed).map_err(|e| bad(e.to_string()))?;
        let mut new = old.clone();
        issue::assign(&mut new, &Old::default()).map_err(|error| bad(error.to_string()))?;
        for at in 0..old.instructions().len() {
            let [was, is] = [&old, &new].map(|code| code.instructions()[at].control());
            new.set_control(Inst(at as u32), mixed(options.keep, was, is))
                .map_err(|error| bad(error.to_string()))?;
        }
        let findings = hazards::check(&new).map_err(|error| bad(error.to_string()))?;
        let stalls = [&old, &new].map(|code| {
            let stalls = code
                .instructions()
                .iter()
                .map(|inst| u64::from(inst.control().stall));
            stalls.sum::<u64>()
        });
        elf.set_code(&kernel, new.instructions())
            .map_err(|error| bad(error.to_string()))?;
        let _ = writeln!(
            out,
            "{}: stalls {} -> {}, {} findings",
            kernel.name,
            stalls[0],
            stalls[1],
            findings.len()
        );
    }
    let bytes = elf.write().map_err(|error| bad(error.to_string()))?;
    std::fs::write(&options.output, bytes)
        .map_err(|error| Error::File(options.output.clone(), error))?;
    Ok(out.trim_end().to_owned())
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
