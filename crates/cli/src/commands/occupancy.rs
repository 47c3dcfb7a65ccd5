//! `warpwright occupancy`: the calculator.

use warpwright::occupancy;

use super::print_json;
use crate::args::OccupancyArgs;
use crate::failure::Failure;

/// Runs the command.
pub fn run(args: &OccupancyArgs) -> Result<(), Failure> {
    if args.list {
        return shown(&occupancy::gpus(), args.json);
    }
    let (Some(name), Some(regs), Some(block)) = (&args.gpu, args.regs, args.block) else {
        return Err(Failure::Usage(
            "--gpu, --regs and --block are wanted".into(),
        ));
    };
    let shared = (args.smem, args.dynamic_smem);
    shown(&occupancy::of(name, (regs, block), shared)?, args.json)
}

fn shown(
    document: &(impl serde::Serialize + std::fmt::Display),
    json: bool,
) -> Result<(), Failure> {
    match json {
        true => print_json(document)?,
        false => print!("{document}"),
    }
    Ok(())
}
