//! Commands of the checker.

use warpwright_check::{Options, check_functions, check_modules, signature};
use warpwright_launch::{Guard, NoShape};
use warpwright_ptx::{Diagnostic, FuncId, Module};

use crate::case::Case;
use crate::harness::Command;

/// The commands.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "check",
        about: "is kernel `rewritten` a correct version of kernel `original`, for blocks of X,Y,Z \
                threads, and so many bytes of dynamic shared memory, at launches that meet `assume:GUARD`, the second one in `shape:SHAPE`? The file's name begins with `right`, `wrong` or `unclear`",
        run: check,
    },
    Command {
        name: "check-modules",
        about: "the same for two modules: the second one begins behind the line `// rewritten`",
        run: modules,
    },
];

fn check(case: &Case, args: &[String]) -> Result<String, String> {
    let module = parse(&case.file_name(), &case.source)?;
    let original = kernel(&module, "original")?;
    let verdict = check_functions(
        (&module, original),
        (&module, kernel(&module, "rewritten")?),
        &options(args, (&module, original))?,
    );
    expected(case, verdict.word()).map(|()| verdict.to_string())
}

/// The line between two modules of one file.
const SECOND: &str = "\n// rewritten\n";

fn modules(case: &Case, args: &[String]) -> Result<String, String> {
    let (first, second) = case
        .source
        .split_once(SECOND)
        .ok_or("there is no line `// rewritten`")?;
    let original = parse("original.ptx", first)?;
    let new = parse("rewritten.ptx", second)?;
    let first = original.kernels().next().map(|(id, _)| id);
    let first = first.ok_or("there is no kernel")?;
    let verdicts = check_modules(&original, &new, &options(args, (&original, first))?);
    let worst = ["refuted", "undecided"]
        .into_iter()
        .find(|word| verdicts.iter().any(|(_, verdict)| verdict.word() == *word));
    expected(case, worst.unwrap_or("proved"))?;
    let lines: Vec<String> = verdicts
        .iter()
        .map(|(name, verdict)| format!("{name}: {verdict}"))
        .collect();
    Ok(lines.join("\n"))
}

fn parse(name: &str, source: &str) -> Result<Module, String> {
    let (module, diagnostics) = Module::parse(name, source);
    match diagnostics.iter().find(|diagnostic| diagnostic.is_error()) {
        Some(error) => Err(Diagnostic::render(error, &module)),
        None => Ok(module),
    }
}

fn options(args: &[String], (module, kernel): (&Module, FuncId)) -> Result<Options, String> {
    let mut options = Options::default();
    for word in args {
        if let Some(shape) = word.strip_prefix("shape:") {
            options.shape = shape.parse().map_err(|error: NoShape| error.to_string())?;
            continue;
        }
        match word.strip_prefix("assume:") {
            Some(guard) => {
                let guard = Guard::parse(guard, &signature(module, kernel));
                options.assume = guard.map_err(|error| error.to_string())?;
            }
            None if options.block.is_none() => options.block = Some(block(word)?),
            None => {
                let bytes = word.parse();
                options.dynamic_smem =
                    Some(bytes.map_err(|_| "dynamic shared memory is a number of bytes")?);
            }
        }
    }
    Ok(options)
}

/// Blessing must not turn a wrong rewrite into a right one.
fn expected(case: &Case, word: &str) -> Result<(), String> {
    let fits = match case.file_name().split('-').next() {
        Some("right") => word == "proved",
        Some("wrong") => word != "proved",
        Some("unclear") => word == "undecided",
        _ => return Err("the file's name begins with neither right, wrong nor unclear".to_owned()),
    };
    match fits {
        true => Ok(()),
        false => Err(format!("it is {word}")),
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
