//! nvcc and ptxas as the executor of passes wants them.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use warpwright_cudac::diag::Source;
use warpwright_cudac::{File, without_host_code};
use warpwright_driver::build::Workshop;
use warpwright_ladder::CompileError;
use warpwright_pass::executor::BuildFailure;
use warpwright_pass::{AssemblerOptions, Builders, SourceFile};
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, NvccJob};

use super::Tools;
use super::read::read_changed;

/// Calls `work` with what the toolkit can build. Files of CUDA C are named by their paths.
pub fn with_builders<T>(tools: &Tools<'_>, gpu: &Gpu, work: impl FnOnce(Builders<'_>) -> T) -> T {
    let arch = gpu.target();
    let cache = BuildCache::standard();
    let toolkit = || tools.toolkit().map_err(BuildFailure::from);
    let assemble = |text: &str, options: AssemblerOptions| {
        let workshop = Workshop {
            toolkit: toolkit()?,
            cache: &cache,
            arch: &arch,
            lineinfo: false,
            extra: &[],
        };
        Ok::<Arc<[u8]>, BuildFailure>(workshop.assemble(text, options)?.cubin.into())
    };
    let compile = |source: &SourceFile| {
        let toolkit = toolkit()?;
        let name = Path::new(&source.name);
        let mut job = NvccJob::new(name, &arch);
        job.extra = tools.nvcc.iter().map(Into::into).collect();
        job.include_dirs.extend(beside(name));
        let made = cache.nvcc_of_text(&toolkit.nvcc()?, &source.text, &job);
        Ok::<String, BuildFailure>(made?.ptx)
    };
    let host = Host::default();
    let compile_unfused = |source: &SourceFile| {
        let compiler = Compiler {
            tools,
            file: Path::new(&source.name),
            gpu: &arch,
        };
        compiler.ptx(&source.text, &host)
    };
    // A file is read once for all passes that are tried on it.
    let last: RefCell<Option<(String, File)>> = RefCell::new(None);
    let read = |source: &SourceFile| {
        let mut last = last.borrow_mut();
        if last.as_ref().is_none_or(|(text, _)| *text != source.text) {
            let copy = Source::new(&*source.name, &*source.text);
            let file = read_changed(tools, Path::new(&source.name), copy)?;
            *last = Some((source.text.clone(), file));
        }
        last.as_ref().map(|(_, file)| file.clone())
    };
    work(Builders {
        compile: Some(&compile),
        compile_unfused: Some(&compile_unfused),
        read: Some(&read),
        assemble: Some(&assemble),
    })
}

/// The host code of a file, as nvcc sees it.
#[derive(Default)]
struct Host {
    /// Why nvcc refuses the file as it is, once it was asked.
    refused: OnceCell<Option<String>>,
    /// Kernels are compiled without it, and the user knows.
    is_left_out: Cell<bool>,
}

/// The folder of a file's headers, for a text of it that stands elsewhere.
pub fn beside(file: &Path) -> Option<PathBuf> {
    let folder = Path::new(".").join(file.parent()?);
    std::path::absolute(folder).ok()
}

/// nvcc, for texts that come of a file and are compared with it.
struct Compiler<'a> {
    tools: &'a Tools<'a>,
    file: &'a Path,
    gpu: &'a str,
}

impl Compiler<'_> {
    /// PTX without fused multiplications and additions. Where nvcc refuses the file itself, for its host code, kernels
    /// and what was added to them are compiled without it, and the user is told once.
    fn ptx(&self, text: &str, host: &Host) -> Result<String, CompileError> {
        const NEW: &str = "the new text";
        let alone = || {
            let file = File::parse(Source::new(NEW, text)).ok()?;
            let text = without_host_code(&file, |function| function.ends_with("_launch"));
            self.compiled(Some(&text), NEW.as_ref()).ok()
        };
        if host.is_left_out.get()
            && let Some(ptx) = alone()
        {
            return Ok(ptx);
        }
        let result = self.compiled(Some(text), NEW.as_ref());
        let Err(CompileError::Rejected(_)) = &result else {
            return result;
        };
        let own = || match self.compiled(None, self.file) {
            Err(CompileError::Rejected(why)) => Some(why),
            _ => None,
        };
        let refused = host.refused.get_or_init(own);
        let Some(why) = refused else {
            return result;
        };
        let Some(ptx) = alone() else {
            return Err(CompileError::Rejected(format!("nor does the input: {why}")));
        };
        if !host.is_left_out.replace(true) {
            self.tools.watch.tell(&format!(
                "kernels are compared without the file's host code: {why}"
            ));
        }
        Ok(ptx)
    }

    /// A text under a name, or the file that has it.
    fn compiled(&self, text: Option<&str>, name: &Path) -> Result<String, CompileError> {
        let missing = |e: &dyn std::fmt::Display| CompileError::Missing(e.to_string());
        let toolkit = self.tools.toolkit().map_err(|e| missing(&e))?;
        let nvcc = toolkit.nvcc().map_err(|e| missing(&e))?;
        let mut job = NvccJob::new(name, self.gpu);
        job.lineinfo = false;
        job.include_dirs.extend(beside(self.file));
        job.extra = self.tools.nvcc.iter().map(Into::into).collect();
        job.extra.push("-fmad=false".into());
        let made = match text {
            Some(text) => nvcc.text_to_ptx(text, &job),
            None => nvcc.to_ptx(&job),
        };
        match made {
            Ok(output) => Ok(output.ptx),
            Err(e) if e.is_tool_missing() => Err(missing(&e)),
            Err(e) => Err(CompileError::Rejected(e.to_string())),
        }
    }
}
