//! Commands of the checker.

use warpwright_check::{Options, Verdict, check_functions};
use warpwright_ptx::{Diagnostic, FuncId, Module};

use crate::case::Case;
use crate::harness::Command;

/// The commands.
pub const COMMANDS: &[Command] = &[Command {
    name: "check",
    about: "is kernel `rewritten` a correct version of kernel `original`, for blocks of X,Y,Z \
            threads? The file's name begins with `right`, `wrong` or `unclear`",
    run: check,
}];

fn check(case: &Case, args: &[String]) -> Result<String, String> {
    let (module, diagnostics) = Module::parse(&case.file_name(), &case.source);
    if let Some(error) = diagnostics.iter().find(|diagnostic| diagnostic.is_error()) {
        return Err(Diagnostic::render(error, &module));
    }
    let block = args.first().map(|text| block(text)).transpose()?;
    let verdict = check_functions(
        (&module, kernel(&module, "original")?),
        (&module, kernel(&module, "rewritten")?),
        &Options { block },
    );
    expected(case, &verdict)?;
    Ok(verdict.to_string())
}

/// Does the file's name expect this verdict? Blessing must not turn a wrong rewrite into a right one.
fn expected(case: &Case, verdict: &Verdict) -> Result<(), String> {
    let expected = match case.file_name().split('-').next() {
        Some("right") => "proved",
        Some("wrong") => "refuted",
        Some("unclear") => "undecided",
        _ => return Err("the file's name begins with neither right, wrong nor unclear".to_owned()),
    };
    match verdict.word() == expected {
        true => Ok(()),
        false => Err(format!("it should be {expected}, but is {verdict}")),
    }
}

fn kernel(module: &Module, name: &str) -> Result<FuncId, String> {
    module
        .function(name)
        .ok_or_else(|| format!("there is no kernel `{name}`"))
}

/// `64` or `16,4` or `8,4,2`; what is missing is 1.
pub(super) fn block(text: &str) -> Result<[u32; 3], String> {
    let mut block = [1; 3];
    for (size, word) in block.iter_mut().zip(text.split(',')) {
        *size = word
            .parse()
            .map_err(|error| format!("block `{text}`: {error}"))?;
    }
    Ok(block)
}
