//! Checks two PTX files against each other, function by function:
//! `cargo run -p warpwright-check --example check_ptx -- ORIGINAL REWRITTEN [X,Y,Z]`

use std::process::ExitCode;

use warpwright_check::{Options, check_modules};
use warpwright_ptx::Module;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [original, new, rest @ ..] = args.as_slice() else {
        println!("two files are needed");
        return ExitCode::from(2);
    };
    let block = rest.first().map(|text| {
        let mut sizes = text.split(',').map(|size| size.parse().unwrap_or(1));
        [0; 3].map(|_: u32| sizes.next().unwrap_or(1))
    });
    let (Some(original), Some(new)) = (read(original), read(new)) else {
        return ExitCode::FAILURE;
    };
    let verdicts = check_modules(
        &original,
        &new,
        &Options {
            block,
            ..Options::default()
        },
    );
    for (name, verdict) in &verdicts {
        println!("{name}: {verdict}");
    }
    match verdicts.iter().all(|(_, verdict)| verdict.is_proved()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn read(path: &str) -> Option<Module> {
    let bytes = std::fs::read(path)
        .inspect_err(|error| println!("{path}: {error}"))
        .ok()?;
    let (module, diagnostics) = Module::parse_bytes(path, &bytes);
    for diagnostic in diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.is_error())
    {
        println!("{}", diagnostic.render(&module));
    }
    diagnostics
        .iter()
        .all(|diagnostic| !diagnostic.is_error())
        .then_some(module)
}
