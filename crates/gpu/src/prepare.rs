//! From a launch description to a job: initial contents go into files.

use std::path::{Path, PathBuf};

use warpwright_launch::{Arg, ContentsError, Init, Launch};

use crate::fault::{Fault, FaultKind};
use crate::job::{self, Buffer, Job, Param, Shape};

/// Writes a launch's initial contents into `dir` (which must exist) and describes the job.
/// `files` gives the bytes of files that the launch names.
pub fn prepare(
    launch: &Launch,
    dir: &Path,
    files: &dyn Fn(&str) -> Result<Vec<u8>, ContentsError>,
) -> Result<Job, Fault> {
    let mut params = Vec::new();
    // Index in `Launch::args` -> index in `Launch::buffers`.
    let mut numbers = vec![None; launch.args.len()];
    let mut buffers = 0;
    for (index, arg) in launch.args.iter().enumerate() {
        if let Arg::Buffer(_) = arg {
            numbers[index] = Some(buffers);
            buffers += 1;
        }
    }
    for (index, arg) in launch.args.iter().enumerate() {
        params.push(match arg {
            Arg::Scalar(scalar) => Param::Bytes(scalar.bytes.clone()),
            Arg::Buffer(_) => Param::Pointer {
                buffer: numbers[index].unwrap_or(0),
                offset: 0,
            },
            Arg::Alias(alias) => {
                let Some(Some(buffer)) = numbers.get(alias.of) else {
                    let detail = format!("`{}` is an alias of no buffer", alias.name);
                    return Err(Fault::new(FaultKind::Input, detail));
                };
                Param::Pointer {
                    buffer: *buffer,
                    offset: alias.offset as u64,
                }
            }
        });
    }
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
            symbol: number >= buffers,
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
