//! The examples of the repository, compiled for the emulator.

use std::path::{Path, PathBuf};

use warpwright_launch::{ContentsError, Launch, LaunchFile};
use warpwright_ptx::Module;
use warpwright_toolkit::{FindOptions, NvccJob, Toolkit};

/// An example at one of its sizes.
pub struct Example {
    pub launch: Launch,
    pub inputs: Vec<Vec<u8>>,
    pub module: Module,
}

/// The folder of all examples.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The CUDA toolkit, or why there is none.
pub fn toolkit() -> Result<Toolkit, String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    toolkit.nvcc().map_err(|e| e.to_string())?;
    Ok(toolkit)
}

/// Compiles the example `name` of the folder `within` to PTX and makes its inputs.
pub fn example(toolkit: &Toolkit, within: &str, name: &str, size: &str) -> Result<Example, String> {
    let folder = folder().join(within);
    let path = folder.join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
    let file = LaunchFile::parse(&text, &path.display().to_string()).map_err(|e| e.to_string())?;
    let launch = file.resolve(size, &[]).map_err(|e| e.to_string())?;
    let files =
        |name: &str| std::fs::read(folder.join(name)).map_err(|why| ContentsError::read(name, why));
    let inputs: Result<Vec<_>, _> = launch.buffers().map(|b| b.materialize(&files)).collect();
    let source = folder.join(file.source().ok_or("no source")?);
    let mut job = NvccJob::new(&source, "sm_90");
    job.extra = file.nvcc().iter().map(Into::into).collect();
    let nvcc = toolkit.nvcc().map_err(|e| e.to_string())?;
    let ptx = nvcc.to_ptx(&job).map_err(|e| e.to_string())?.ptx;
    let (module, diagnostics) = Module::parse(name, &ptx);
    match diagnostics.iter().find(|d| d.is_error()) {
        Some(error) => Err(error.render(&module)),
        None => Ok(Example {
            launch,
            inputs: inputs.map_err(|e| e.to_string())?,
            module,
        }),
    }
}
