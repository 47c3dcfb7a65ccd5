//! cuobjdump: what a fat binary (an object file, an executable, a shared library) holds for the device.

use std::path::Path;

use crate::diagnostic;
use crate::dirs::read_regular;
use crate::error::ToolError;
use crate::find::Toolkit;
use crate::process::{Invocation, Output};
use crate::scratch::Scratch;
use crate::tool::{Tool, ToolKind, patience};

/// A cubin or PTX module taken out of a fat binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedFile {
    /// The name that cuobjdump gives it, such as `a.1.sm_90.cubin`.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// The lister and extractor of fat binaries.
#[derive(Debug, Clone, Copy)]
pub struct Cuobjdump<'a> {
    tool: &'a Tool,
}

impl Toolkit {
    /// The extractor, if there is one.
    ///
    /// # Errors
    /// [`ToolError::Missing`].
    pub fn cuobjdump(&self) -> Result<Cuobjdump<'_>, ToolError> {
        self.tool(ToolKind::Cuobjdump)
            .map(|tool| Cuobjdump { tool })
    }
}

impl<'a> Cuobjdump<'a> {
    /// The program itself.
    pub fn tool(&self) -> &'a Tool {
        self.tool
    }

    /// Names of the cubins in a file; none is no error.
    ///
    /// # Errors
    /// [`ToolError::Rejected`] when the file is not one that can hold device code.
    pub fn list_elf(&self, file: &Path) -> Result<Vec<String>, ToolError> {
        self.list(file, "-lelf", "ELF file")
    }

    /// Names of the PTX modules in a file; none is no error.
    ///
    /// # Errors
    /// As [`Cuobjdump::list_elf`].
    pub fn list_ptx(&self, file: &Path) -> Result<Vec<String>, ToolError> {
        self.list(file, "-lptx", "PTX file")
    }

    /// All cubins of a file, sorted by name.
    ///
    /// # Errors
    /// As [`Cuobjdump::list_elf`].
    pub fn extract_elf(&self, file: &Path) -> Result<Vec<EmbeddedFile>, ToolError> {
        self.extract(file, "-xelf")
    }

    /// All PTX modules of a file, sorted by name.
    ///
    /// # Errors
    /// As [`Cuobjdump::list_elf`].
    pub fn extract_ptx(&self, file: &Path) -> Result<Vec<EmbeddedFile>, ToolError> {
        self.extract(file, "-xptx")
    }

    /// Lines of the form `ELF file    1: NAME`.
    fn list(&self, file: &Path, option: &str, label: &str) -> Result<Vec<String>, ToolError> {
        let scratch = Scratch::new()?;
        let text = self.run(file, &[option], &scratch)?.text();
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix(label)?.split_once(": "));
        Ok(lines.map(|(_, name)| name.trim().to_owned()).collect())
    }

    /// cuobjdump writes the files into its working directory.
    fn extract(&self, file: &Path, option: &str) -> Result<Vec<EmbeddedFile>, ToolError> {
        let scratch = Scratch::new()?;
        self.run(file, &[option, "all"], &scratch)?;
        let mut files = Vec::new();
        let failed = |e| ToolError::io(scratch.dir(), e);
        for entry in std::fs::read_dir(scratch.dir()).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let bytes = read_regular(&entry.path()).map_err(failed)?;
            files.push(EmbeddedFile { name, bytes });
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    fn run(&self, file: &Path, options: &[&str], scratch: &Scratch) -> Result<Output, ToolError> {
        let name = ToolKind::Cuobjdump.name();
        let file = std::path::absolute(file).map_err(|e| ToolError::io(file, e))?;
        let mut call = Invocation::new(name, &self.tool.path, patience())
            .args(options)
            .arg(&file);
        call.directory = Some(scratch.dir().to_path_buf());
        let out = call.run()?;
        let log = out.text();
        let diagnostics = diagnostic::parse_nvcc(&log);
        if out.status.success() || log.contains("does not contain device code") {
            return Ok(out);
        }
        let code = out.status.code().unwrap_or(-1);
        Err(ToolError::Rejected {
            tool: name.into(),
            code,
            diagnostics,
            log,
        })
    }
}
