//! The occupancy calculator, and the GPUs that are known.

use std::fmt;

use serde::Serialize;
use warpwright_diag::{Problem, count};
use warpwright_pass::launch::{BlockError, possible};
use warpwright_target::{Architecture, Resources, architectures, boards, occupancy, staircase};

use warpwright_report::table::Table;

use crate::Error;

/// How many blocks of a launch fit on a multiprocessor, and what another number of registers would change.
#[derive(Serialize)]
pub struct Occupancy {
    schema: &'static str,
    gpu: String,
    #[serde(skip)]
    most_warps: u32,
    resources: Resources,
    occupancy: warpwright_target::Occupancy,
    staircase: Vec<warpwright_target::Stair>,
}

/// Of a GPU, with registers for a thread, a block and its shared memory in bytes.
///
/// # Errors
/// There is no such GPU, or the block does not run there.
pub fn of(
    name: &str,
    (regs, block): (u32, [u32; 3]),
    (static_smem, dynamic_smem): (u32, u32),
) -> Result<Occupancy, Error> {
    let gpu = crate::gpu(name)?;
    let threads = block
        .iter()
        .try_fold(1u32, |a, &b| a.checked_mul(b))
        .unwrap_or(u32::MAX);
    if let Err(error @ BlockError::TooLong { .. }) = possible(block) {
        return Err(Problem::Input(error.to_string()).into());
    }
    let resources = Resources::new(regs, threads)
        .static_smem(static_smem)
        .dynamic_smem(dynamic_smem);
    let fail = |e: warpwright_target::LaunchError| Problem::Input(e.to_string());
    let found = occupancy(&gpu, &resources).map_err(fail)?;
    let stairs = staircase(&gpu, threads, static_smem, dynamic_smem).map_err(fail)?;
    Ok(Occupancy {
        schema: "warpwright.occupancy/1",
        gpu: gpu.to_string(),
        most_warps: gpu.arch.threads.warps,
        resources,
        occupancy: found,
        staircase: stairs,
    })
}

/// What people see of it.
impl fmt::Display for Occupancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.occupancy;
        let limiters: Vec<&str> = found.limiters.iter().map(|l| l.name()).collect();
        writeln!(
            f,
            "{}: {}, {} of {} warps ({:.1}%), limited by {}\n",
            self.gpu,
            count(found.blocks, "block"),
            found.warps,
            self.most_warps,
            found.percent,
            limiters.join(" and ")
        )?;
        let mut table = Table::new(&["blocks", "warps", "occupancy", "registers up to"]);
        for s in &self.staircase {
            let percent = format!("{:.1}%", s.percent);
            table.row(vec![
                s.blocks.to_string(),
                s.warps.to_string(),
                percent,
                s.regs.to_string(),
            ]);
        }
        write!(f, "{}", table.render(0))?;
        Ok(())
    }
}

/// The GPUs that are known.
#[derive(Serialize)]
pub struct Gpus {
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

/// All that are known.
pub fn gpus() -> Gpus {
    let listed = |name: String, arch: &Architecture| Listed {
        name,
        architecture: format!("sm_{}", arch.sm),
        family: arch.family,
    };
    let all = architectures().map(|arch| listed(format!("sm_{}", arch.sm), arch));
    let boards = boards().map(|board| listed(board.name.into(), board.arch));
    let gpus: Vec<Listed> = all.chain(boards).collect();
    let schema = "warpwright.gpus/1";
    Gpus { schema, gpus }
}

/// A table of them.
impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["name", "architecture", "family"]);
        for gpu in &self.gpus {
            table.row(vec![
                gpu.name.clone(),
                gpu.architecture.clone(),
                gpu.family.into(),
            ]);
        }
        f.write_str(&table.render(0))
    }
}
