//! `naive FILE.cu [threads=16x16 points=8x8 run=4x4 lanes=8 stage=16x4 buffers=2 turn order=8 resident=2 fixed]`, or
//! `naive FILE.cu pass=INVOCATION`: prints the file with its first naive kernel tuned so. `best=N`: prints the N ways that
//! are predicted to be the fastest on an H200, with milliseconds. `predict`: the same for the ways of standard input.

use warpwright_cudac::File;
use warpwright_cudac::diag::{Source, render_all};
use warpwright_naive::emit::{cost, generate};
use warpwright_naive::recognise::recognise;
use warpwright_naive::replace::replaced;
use warpwright_naive::schedule::{Schedule, Stage};
use warpwright_naive::search::{Way, predicted, ranked};

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
    let (mut best, mut is_asked) = (None, false);
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
            "best" => best = Some(value.parse()?),
            "predict" => is_asked = true,
            "fixed" => schedule.specialise = true,
            "pass" => pass = warpwright_pass::source::naive::way(&value.parse()?),
            _ => return Err(format!("`{word}`?").into()),
        }
    }
    schedule.stage = staged.then_some(stage);
    let gpu = warpwright_target::lookup("h200")?;
    if let Some(count) = best {
        for (way, predicted) in ranked(&kernel, &gpu).into_iter().take(count) {
            let way = warpwright_pass::Invocation::from(way);
            println!("{:.5} {} {way}", predicted.ms, predicted.bound);
        }
        return Ok(());
    }
    if is_asked {
        for line in std::io::stdin().lines() {
            let way = warpwright_pass::source::naive::way(&line?.parse()?).ok_or("no way")?;
            let cost = match &way {
                Way::Tiles(of) => cost(&kernel, of),
                _ => None,
            };
            match predicted(&kernel, &way, &gpu) {
                Some(of) => println!("{:.5} {} {cost:?}", of.ms, of.bound),
                None => println!("-"),
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
