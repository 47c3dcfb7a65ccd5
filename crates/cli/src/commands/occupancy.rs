//! `warpwright occupancy`: the calculator.

use serde::Serialize;
use warpwright_diag::count;
use warpwright_pass::launch::{BlockError, possible};
use warpwright_target::{
    Architecture, Resources, architectures, boards, lookup, occupancy, staircase,
};

use super::print_json;
use crate::args::OccupancyArgs;
use crate::failure::Failure;
use warpwright_report::table::Table;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    gpu: String,
    resources: Resources,
    occupancy: warpwright_target::Occupancy,
    staircase: Vec<warpwright_target::Stair>,
}

/// Runs the command.
pub fn run(args: &OccupancyArgs) -> Result<(), Failure> {
    if args.list {
        return list(args.json);
    }
    let (Some(name), Some(regs), Some(block)) = (&args.gpu, args.regs, args.block) else {
        return Err(Failure::Usage(
            "--gpu, --regs and --block are wanted".into(),
        ));
    };
    let gpu = lookup(name).map_err(|e| Failure::input(e.to_string()))?;
    let threads = block
        .iter()
        .try_fold(1u32, |a, &b| a.checked_mul(b))
        .unwrap_or(u32::MAX);
    if let Err(error @ BlockError::TooLong { .. }) = possible(block) {
        return Err(Failure::input(error.to_string()));
    }
    let resources = Resources::new(regs, threads)
        .static_smem(args.smem)
        .dynamic_smem(args.dynamic_smem);
    let fail = |e: warpwright_target::LaunchError| Failure::input(e.to_string());
    let found = occupancy(&gpu, &resources).map_err(fail)?;
    let stairs = staircase(&gpu, threads, args.smem, args.dynamic_smem).map_err(fail)?;
    if args.json {
        return print_json(&Document {
            schema: "warpwright.occupancy/1",
            gpu: gpu.to_string(),
            resources,
            occupancy: found,
            staircase: stairs,
        });
    }
    let limiters: Vec<&str> = found.limiters.iter().map(|l| l.name()).collect();
    println!(
        "{gpu}: {}, {} of {} warps ({:.1}%), limited by {}\n",
        count(found.blocks, "block"),
        found.warps,
        gpu.arch.threads.warps,
        found.percent,
        limiters.join(" and ")
    );
    let mut table = Table::new(&["blocks", "warps", "occupancy", "registers up to"]);
    for s in stairs {
        let percent = format!("{:.1}%", s.percent);
        table.row(vec![
            s.blocks.to_string(),
            s.warps.to_string(),
            percent,
            s.regs.to_string(),
        ]);
    }
    print!("{}", table.render(0));
    Ok(())
}

/// The JSON document of the list.
#[derive(Serialize)]
struct List {
    schema: &'static str,
    gpus: Vec<Listed>,
}

/// A name that `--gpu` takes.
#[derive(Serialize)]
struct Listed {
    name: String,
    architecture: String,
    family: &'static str,
}

fn list(as_json: bool) -> Result<(), Failure> {
    let listed = |name: String, arch: &Architecture| Listed {
        name,
        architecture: format!("sm_{}", arch.sm),
        family: arch.family,
    };
    let all = architectures().map(|arch| listed(format!("sm_{}", arch.sm), arch));
    let boards = boards().map(|board| listed(board.name.into(), board.arch));
    let gpus: Vec<Listed> = all.chain(boards).collect();
    if as_json {
        let schema = "warpwright.gpus/1";
        return print_json(&List { schema, gpus });
    }
    let mut table = Table::new(&["name", "architecture", "family"]);
    for gpu in gpus {
        table.row(vec![gpu.name, gpu.architecture, gpu.family.into()]);
    }
    print!("{}", table.render(0));
    Ok(())
}
