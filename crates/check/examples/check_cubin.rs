//! Checks two cubins against each other, kernel by kernel:
//! `cargo run --release -p warpwright-check --example check_cubin -- ORIGINAL NEW [X,Y,Z [DYNAMIC_SMEM]]`

use std::process::ExitCode;
use std::time::Instant;

use warpwright_check::{CubinOptions, check_cubins};
use warpwright_sass::Elf;

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
    let dynamic_smem = rest.get(1).and_then(|text| text.parse().ok());
    let (Some(original), Some(new)) = (read(original), read(new)) else {
        return ExitCode::FAILURE;
    };
    let options = CubinOptions {
        block,
        dynamic_smem,
    };
    let start = Instant::now();
    let Ok(verdicts) = check_cubins(&original, &new, &options) else {
        return ExitCode::FAILURE;
    };
    for (name, answer) in &verdicts {
        println!("{name}: {} {}", answer.verdict, answer.promises);
    }
    println!("{:.2} s", start.elapsed().as_secs_f64());
    match verdicts
        .iter()
        .all(|(_, answer)| answer.verdict.is_proved())
    {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn read(path: &str) -> Option<Elf> {
    let bytes = std::fs::read(path)
        .inspect_err(|error| println!("{path}: {error}"))
        .ok()?;
    let elf = Elf::parse(&bytes);
    elf.inspect_err(|error| println!("{path}: {error}")).ok()
}
