//! Where control fields protect less than ptxas ever does: what the hazard checker says of cubins, as they are or
//! with control fields of ours.

use std::fmt::Write;
use std::path::PathBuf;

use warpwright_sass::elf::Elf;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::hazards;
use warpwright_sass::issue::{self, Old};

use crate::{Error, code};

/// What is looked at.
#[derive(clap::Args)]
pub struct Options {
    /// Folders or files.
    #[arg(required = true)]
    cubins: Vec<PathBuf>,
    /// Give all instructions control fields of ours first.
    #[arg(long)]
    anew: bool,
    /// How many findings of a function are shown.
    #[arg(long, default_value_t = 3)]
    shown: usize,
}

/// One line per function, and its first findings.
pub fn run(options: &Options) -> Result<String, Error> {
    let mut out = String::new();
    let (mut clean, mut found, mut refused) = (0, 0, 0);
    for path in code::find_all(&options.cubins)? {
        let cubin = code::read(&path)?;
        let bad = |error: String| Error::Input(path.clone(), error);
        let elf = Elf::parse(&cubin.bytes).map_err(|error| bad(error.to_string()))?;
        for kernel in elf.kernels().map_err(|error| bad(error.to_string()))? {
            let name = format!("{}: {}", path.display(), kernel.name);
            let code = Code::new(&elf, &kernel, Calls::Followed).map_err(|e| e.to_string());
            let code = code.and_then(|mut code| {
                if options.anew {
                    issue::assign(&mut code, &Old::default()).map_err(|error| error.to_string())?;
                }
                Ok(code)
            });
            let checked = code.and_then(|code| {
                let violations = hazards::check(&code).map_err(|error| error.to_string())?;
                Ok((code, violations))
            });
            match checked {
                Err(error) => {
                    refused += 1;
                    let _ = writeln!(out, "{name}: not checked: {error}");
                }
                Ok((_, violations)) if violations.is_empty() => {
                    clean += 1;
                    let _ = writeln!(out, "{name}: nothing found");
                }
                Ok((code, violations)) => {
                    found += 1;
                    let _ = writeln!(out, "{name}: {} findings", violations.len());
                    for violation in violations.iter().take(options.shown) {
                        let _ = writeln!(out, "  {}", violation.describe(&code));
                    }
                }
            }
        }
    }
    let _ = write!(
        out,
        "{clean} functions without a finding, {found} with, {refused} not checked"
    );
    Ok(out)
}
