//! From a launch description to a job: initial contents go into files.

use std::path::{Path, PathBuf};

use warpwright_launch::{ContentsError, Init, Launch};

use crate::fault::{Fault, FaultKind};
use crate::job::{self, Buffer, Job, Param, Pointer, Shape};

/// Writes a launch's initial contents into `dir` (which must exist) and describes the job.
/// `files` gives the bytes of files that the launch names.
pub fn prepare(
    launch: &Launch,
    dir: &Path,
    files: &dyn Fn(&str) -> Result<Vec<u8>, ContentsError>,
) -> Result<Job, Fault> {
    let pointer = |of: &warpwright_launch::Pointer| Pointer {
        at: of.at,
        buffer: of.of,
        offset: of.offset as u64,
    };
    let params = launch.args.iter().map(|arg| Param {
        bytes: arg.bytes.clone(),
        pointers: arg.pointers.iter().map(pointer).collect(),
    });
    let params = params.collect();
    let mut described = Vec::new();
    for (number, buffer) in launch.buffers().enumerate() {
        let file: PathBuf = dir.join(format!("initial-{number}.bin"));
        let bytes = buffer.materialize(files).map_err(|e| {
            Fault::new(
                FaultKind::Input,
                format!("{}:{}: {}", e.path(), e.line(), e.message),
            )
        })?;
        job::write(&file, &bytes)?;
        described.push(Buffer {
            name: buffer.name.clone(),
            bytes: bytes.len(),
            element: buffer.ty.name().to_string(),
            file,
            table: buffer.table,
            symbol: number >= launch.memory.len(),
            output: buffer.output,
            unwritten: buffer.init == Init::Poison,
            align: buffer.align,
            offset: buffer.offset,
            tolerance: buffer.tolerance.map(|t| (t.abs, t.rel)),
        });
    }
    Ok(Job {
        kernel: launch.kernel.clone(),
        shape: Shape {
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            dynamic_smem: launch.dynamic_smem,
        },
        params,
        buffers: described,
        dir: dir.to_path_buf(),
    })
}
