//! Every example at its small size, and every naive kernel at an odd and a tiny one, against its host
//! reference, with all checks on.

use libtest_mimic::{Arguments, Failed, Trial};
use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_launch::compare;
use warpwright_toolkit::Toolkit;

mod common;

fn main() {
    let arguments = Arguments::from_args();
    let toolkit = common::toolkit();
    if let Err(reason) = &toolkit {
        eprintln!("SKIPPED: the examples need nvcc: {reason}");
    }
    let toolkit: Option<&'static Toolkit> = toolkit.ok().map(|t| &*Box::leak(Box::new(t)));
    let examples = warpwright_references::names().map(|name| (name, name, &["small"][..]));
    let naive = warpwright_references::naive().map(|name| (name, "naive", &["small", "tiny"][..]));
    let trials = examples.chain(naive).map(|(name, folder, sizes)| {
        let run = move || match toolkit {
            Some(toolkit) => sizes
                .iter()
                .try_for_each(|size| check(toolkit, folder, name, size).map_err(Failed::from)),
            None => Ok(()),
        };
        Trial::test(name, run).with_ignored_flag(toolkit.is_none())
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn check(toolkit: &Toolkit, folder: &str, name: &str, size: &str) -> Result<(), String> {
    let example = common::example(toolkit, folder, name, size)?;
    let program =
        Emulator::new(&example.module, &example.launch.kernel).map_err(|e| e.to_string())?;
    let options = Options {
        uninitialised: true,
        races: true,
        ..Options::default()
    };
    let outcome = program
        .run(&example.launch, example.inputs.clone(), &options)
        .map_err(|e| e.to_string())?;
    let results = match outcome {
        Outcome::Finished(results) => results,
        Outcome::Faulted(fault) => return Err(fault.to_string()),
    };
    let expected = warpwright_references::reference(name, &example.launch, &example.inputs)
        .ok_or("the reference does not know this launch")?;
    let mut compared = 0;
    for (name, bytes) in expected {
        let buffers = || example.launch.buffers();
        let index = buffers()
            .position(|b| b.name == name)
            .ok_or("an unknown output")?;
        let buffer = buffers().nth(index).ok_or("an unknown output")?;
        let comparison = compare(&results.buffers[index], &bytes, buffer.ty, buffer.tolerance);
        if !comparison.within() {
            return Err(format!("`{name}` at size {size}: {comparison}"));
        }
        compared += comparison.len;
    }
    if compared == 0 {
        return Err("no output was compared".into());
    }
    // The checks change nothing, and neither does a second run.
    let again = program.run(&example.launch, example.inputs, &Options::default());
    match again.map_err(|e| e.to_string())? {
        Outcome::Finished(plain) if plain.buffers == results.buffers => Ok(()),
        Outcome::Finished(_) => Err("a second run gives other outputs".into()),
        Outcome::Faulted(fault) => Err(fault.to_string()),
    }
}
