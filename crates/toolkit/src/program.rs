//! Host programs with CUDA kernels in them: compiled unit by unit, linked, and run.
//!
//! For what a cubin cannot show: several kernels with their own launch code, in one process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diagnostic;
use crate::error::ToolError;
use crate::nvcc::Nvcc;
use crate::process::{Invocation, Output};
use crate::ptxas::check_gpu;
use crate::scratch::Scratch;
use crate::tool::ToolKind;

/// A folder in which a program is made; it disappears with the value.
pub struct Program<'a> {
    nvcc: Nvcc<'a>,
    gpu: String,
    scratch: Scratch,
    timeout: Duration,
}

impl<'a> Nvcc<'a> {
    /// Begins a program for `gpu` (`sm_90`, …). Each step may take `timeout`.
    ///
    /// # Errors
    /// The name is no GPU's, or no folder can be made.
    pub fn program(self, gpu: &str, timeout: Duration) -> Result<Program<'a>, ToolError> {
        check_gpu(gpu)?;
        Ok(Program {
            nvcc: self,
            gpu: gpu.to_owned(),
            scratch: Scratch::new()?,
            timeout,
        })
    }
}

impl Program<'_> {
    /// Compiles one unit: `name` without an ending, and its text. Units may be compiled at once by
    /// several threads.
    ///
    /// # Errors
    /// [`ToolError::Rejected`] with what nvcc says.
    pub fn compile(&self, name: &str, text: &str) -> Result<PathBuf, ToolError> {
        let source = self.scratch.write(&format!("{name}.cu"), text.as_bytes())?;
        let object = self.scratch.path(&format!("{name}.o"));
        let call = self.nvcc().arg("-O3").arg("-c").arg(&source);
        accepted(call.arg("-o").arg(&object).run()?)?;
        Ok(object)
    }

    /// Links the objects to a program ([`run_program`]).
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn link(&self, objects: &[PathBuf], program: &Path) -> Result<(), ToolError> {
        let call = self.nvcc().args(objects).arg("-o");
        accepted(call.arg(program).run()?).map(drop)
    }

    /// Links objects with the shared runtime, with more arguments for nvcc.
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn link_shared(
        &self,
        objects: &[PathBuf],
        more: &[OsString],
        program: &Path,
    ) -> Result<(), ToolError> {
        let call = self.nvcc().args(["-cudart", "shared"]).args(objects);
        accepted(call.args(more).arg("-o").arg(program).run()?).map(drop)
    }

    /// Compiles and links a program of its own, with more arguments for nvcc; where it is.
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn executable(
        &self,
        name: &str,
        text: &str,
        more: &[OsString],
    ) -> Result<PathBuf, ToolError> {
        let source = self.scratch.write(&format!("{name}.cu"), text.as_bytes())?;
        let path = self.scratch.path(name);
        let call = self.nvcc().arg("-O3").args(more).arg(&source);
        accepted(call.arg("-o").arg(&path).run()?)?;
        Ok(path)
    }

    /// A file in its folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, ToolError> {
        self.scratch.write(name, bytes)
    }

    fn nvcc(&self) -> Invocation {
        let tool = &self.nvcc.tool().path;
        Invocation::new(ToolKind::Nvcc.name(), tool, self.timeout)
            .args(["-arch", &self.gpu])
            .env("TMPDIR", self.scratch.dir())
    }
}

/// Runs a program that was made here. Its status is the caller's to look at.
///
/// # Errors
/// It cannot be started, or does not end in time.
pub fn run_program(
    program: &Path,
    arguments: &[String],
    timeout: Duration,
) -> Result<Output, ToolError> {
    Invocation::new("the measuring program", program, timeout)
        .args(arguments)
        .run()
}

fn accepted(out: Output) -> Result<Output, ToolError> {
    if out.status.success() {
        return Ok(out);
    }
    let log = out.text();
    Err(ToolError::Rejected {
        tool: ToolKind::Nvcc.to_string(),
        code: out.status.code().unwrap_or(-1),
        diagnostics: diagnostic::parse_nvcc(&log),
        log,
    })
}
