//! `naive FILE.cu [threads=16x16 points=8x8 run=4x4 lanes=8 stage=16x4 buffers=2 turn order=8 resident=2 fixed]`: prints
//! the file with its first naive kernel tuned by this schedule.

use warpwright_cudac::File;
use warpwright_cudac::diag::{Source, render_all};
use warpwright_naive::emit::{cost, generate};
use warpwright_naive::recognise::recognise;
use warpwright_naive::replace::replaced;
use warpwright_naive::schedule::{Schedule, Stage};
use warpwright_naive::search::{predict, ranked};

fn pair(text: &str) -> [u32; 2] {
    let (a, b) = text.split_once('x').unwrap_or((text, "1"));
    [a, b].map(|n| n.parse().unwrap_or(1))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("a file is wanted")?;
    let text = std::fs::read_to_string(&path)?;
    let source = Source::new(&*path, text);
    let file = File::parse(source.clone()).map_err(|d| d.message)?;
    let header = file.kernels.first().ok_or("no kernel")?;
    let kernel = match recognise(&file, header) {
        Ok(kernel) => kernel,
        Err(problem) => {
            eprintln!("{}", render_all(&[problem], &source));
            std::process::exit(1);
        }
    };
    let mut schedule = Schedule::identity(kernel.dims.len());
    let mut stage = Stage {
        turns: 16,
        unroll: 4,
        buffers: 1,
        turn: false,
    };
    let mut staged = false;
    let mut pass = None;
    for argument in arguments {
        let (word, value) = argument.split_once('=').unwrap_or((&argument, ""));
        match word {
            "threads" => schedule.threads = pair(value),
            "points" => schedule.points = pair(value),
            "run" => schedule.run = pair(value),
            "lanes" => schedule.lanes = value.parse()?,
            "stage" => {
                [stage.turns, stage.unroll] = pair(value);
                staged = true;
            }
            "buffers" => stage.buffers = value.parse()?,
            "turn" => stage.turn = true,
            "order" => schedule.order = value.parse()?,
            "resident" => schedule.resident = value.parse()?,
            "fixed" => schedule.specialise = true,
            "pass" => pass = warpwright_pass::source::naive::way(&value.parse()?),
            _ => return Err(format!("`{word}`?").into()),
        }
    }
    schedule.stage = staged.then_some(stage);
    if let Some(which) = std::env::var_os("NAIVE_PREDICT") {
        let gpu = warpwright_target::lookup("h200")?;
        if which != "all" {
            println!(
                "{schedule:?}: {:?} {:?}",
                predict(&kernel, &schedule, &gpu),
                cost(&kernel, &schedule)
            );
        } else {
            for (of, predicted) in ranked(&kernel, &gpu).iter().take(12) {
                println!(
                    "{:.4} {} {}",
                    predicted.ms,
                    predicted.bound,
                    warpwright_pass::Invocation::from(of.clone())
                );
            }
        }
        return Ok(());
    }
    let generated = match pass {
        Some(way) => way.kernels(&kernel, 200 << 10)?,
        None => generate(&kernel, &schedule, 200 << 10)?,
    };
    let (result, _) = replaced(&file, header, &kernel, &generated)?;
    print!("{}", result.text);
    Ok(())
}
