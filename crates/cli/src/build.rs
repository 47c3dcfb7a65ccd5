//! nvcc and ptxas as the executor of passes wants them.

use std::sync::Arc;

use warpwright_pass::executor::BuildFailure;
use warpwright_pass::{AssemblerOptions, Builders, SourceFile};
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, NvccJob, PtxasJob};

use crate::args::Cli;
use crate::session;

/// Calls `work` with what the toolkit can build; a toolkit is only looked for when a pass needs it.
pub fn with_builders<T>(cli: &Cli, gpu: &Gpu, work: impl FnOnce(Builders<'_>) -> T) -> T {
    let arch = gpu.target();
    let cache = BuildCache::standard();
    let toolkit = || session::toolkit(cli).map_err(BuildFailure::from);
    let assemble = |text: &str, options: AssemblerOptions| {
        let toolkit = toolkit()?;
        let mut job = PtxasJob::new(text, &arch);
        job.register_usage_level = options.usage_level;
        let build = cache.ptxas(&toolkit.ptxas()?, &job)?;
        Ok::<Arc<[u8]>, BuildFailure>(build.cubin.into())
    };
    let compile = |source: &SourceFile| {
        let toolkit = toolkit()?;
        let folder = tempfile::tempdir()?;
        let name = std::path::Path::new(&source.name);
        let path = folder
            .path()
            .join(name.file_name().unwrap_or(name.as_os_str()));
        std::fs::write(&path, &source.text)?;
        let mut job = NvccJob::new(&path, &arch);
        if let Some(beside) = name.parent().filter(|p| !p.as_os_str().is_empty()) {
            job.extra = vec!["-I".into(), beside.into()];
        }
        Ok::<String, BuildFailure>(cache.nvcc(&toolkit.nvcc()?, &job)?.ptx)
    };
    work(Builders {
        compile: Some(&compile),
        assemble: Some(&assemble),
    })
}
