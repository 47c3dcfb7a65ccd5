//! Schedules a stencil for registers and writes its kernels.
//!
//! ```text
//! schedule_stencil FILE.stencil [--reassociate] [--unroll k=4,j=2] [--size L=64,M=64,N=64]
//!                  [--block X,Y,Z] [--registers N] [--fence N] [--as-written]
//!                  [--split N [--promote]] [--summary | --launch]
//! ```
//! The kernels go to the standard output; `--summary` prints MAXLIVE and times instead,
//! `--launch` the arguments (number of elements of each array) and each kernel's grid.

#[path = "../tests/fission/mod.rs"]
mod fission;

use std::process::ExitCode;
use std::time::Instant;

use fission::{Crossing, split};
use warpwright_stencil::dsl;
use warpwright_stencil::emit::{Generated, Hold, Options, generate};
use warpwright_stencil::evaluate;
use warpwright_stencil::ir::Stencil;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("which file?")?;
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
    let mut stencil = dsl::parse(&text).map_err(|_| format!("{file}: no stencil"))?;
    let mut options = Options::default();
    let mut show = "";
    let mut kernels = 1;
    let mut crossing = Crossing::Recompute;
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{option} needs a value"));
        match option.as_str() {
            "--reassociate" => stencil.reassociate = true,
            "--unroll" => options.factors = factors(&stencil, &value()?)?,
            "--size" => {
                let given = pairs(&value()?)?;
                let size = |name: &String| {
                    let found = given.iter().find(|(n, _)| n == name);
                    found
                        .map(|(_, size)| *size)
                        .ok_or(format!("--size of {name}?"))
                };
                let sizes: Result<_, String> = stencil.parameters.values().map(size).collect();
                options.sizes = Some(sizes?);
            }
            "--block" => {
                let numbers: Vec<u32> =
                    value()?.split(',').filter_map(|n| n.parse().ok()).collect();
                options.block = numbers.try_into().map_err(|_| "--block X,Y,Z")?;
            }
            "--registers" => options.registers = value()?.parse().ok(),
            "--fence" => options.order = Hold::Fence(value()?.parse().map_err(|_| "--fence N")?),
            "--as-written" => options.unscheduled = true,
            "--split" => kernels = value()?.parse().map_err(|_| "--split N")?,
            "--promote" => crossing = Crossing::Promote,
            "--summary" => show = "summary",
            "--launch" => show = "launch",
            other => return Err(format!("unknown option {other}")),
        }
    }
    let start = Instant::now();
    let parts = split(&stencil, kernels, crossing).ok_or("it cannot be split so")?;
    let generated = generate(&parts, &options).map_err(|e| e.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    if show == "launch" {
        return launch(&parts, &options, &generated);
    }
    if show == "summary" {
        for kernel in &generated.kernels {
            let schedule = &kernel.schedule;
            println!(
                "{}: trees {} steps {} atomic {} maxlive {} {:?} {seconds:.2}s",
                kernel.name,
                schedule.trees.len(),
                schedule.steps.len(),
                schedule.atomic,
                schedule.max_live,
                schedule.statistics
            );
        }
        return Ok(());
    }
    print!("{}", generated.text());
    Ok(())
}

fn launch(parts: &[Stencil], options: &Options, generated: &Generated) -> Result<(), String> {
    let stencil = &parts[0];
    let sizes = options.sizes.as_ref().ok_or("--launch needs --size")?;
    for (id, array) in &stencil.arrays {
        let elements = evaluate::elements(&array.name, &array.extents, sizes);
        let elements = elements.map_err(|e| e.to_string())?;
        println!(
            "array {} {elements} {}",
            array.name,
            u8::from(parts.iter().any(|p| p.arrays[id].written))
        );
    }
    for scalar in stencil.scalars.values() {
        println!("scalar {}", scalar.name);
    }
    for size in sizes.values() {
        println!("size {size}");
    }
    for (kernel, entry) in generated.kernels.iter().zip(&generated.sweep.entries) {
        let grid = entry.grid.blocks(sizes).ok_or("nothing to compute")?;
        println!("kernel {} {grid:?} {:?}", kernel.name, entry.block);
    }
    Ok(())
}

fn pairs(text: &str) -> Result<Vec<(String, i64)>, String> {
    let pair = |pair: &str| {
        let (name, number) = pair.split_once('=')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    let all = text
        .split(',')
        .map(|p| pair(p).ok_or(format!("`{p}`: NAME=NUMBER expected")));
    all.collect()
}

fn factors(stencil: &Stencil, text: &str) -> Result<Vec<u32>, String> {
    let given = pairs(text)?;
    let factor = |name: &String| {
        given
            .iter()
            .find(|(n, _)| n == name)
            .map_or(1, |(_, f)| *f as u32)
    };
    Ok(stencil.dims.values().map(|d| factor(&d.name)).collect())
}
