//! nvdisasm: cubin to text or JSON.

use std::ffi::OsString;
use std::time::Duration;

use crate::diagnostic;
use crate::error::ToolError;
use crate::find::Toolkit;
use crate::life_ranges;
use crate::process::Invocation;
use crate::scratch::Scratch;
use crate::tool::{Tool, ToolKind, patience};

/// Life ranges take up to a hundred times the bytes of the cubin: 1.2 GB in the corpus.
const OUTPUT_LIMIT: u64 = 1 << 32;

/// The disassembler.
#[derive(Debug, Clone, Copy)]
pub struct Nvdisasm<'a> {
    tool: &'a Tool,
}

impl Toolkit {
    /// The disassembler, if there is one.
    ///
    /// # Errors
    /// [`ToolError::Missing`].
    pub fn nvdisasm(&self) -> Result<Nvdisasm<'_>, ToolError> {
        self.tool(ToolKind::Nvdisasm).map(|tool| Nvdisasm { tool })
    }
}

impl<'a> Nvdisasm<'a> {
    /// The program itself.
    pub fn tool(&self) -> &'a Tool {
        self.tool
    }

    /// The text that nvdisasm prints for a cubin with the given options, for example `-c`, `-hex`, or
    /// `-plr -lrm count` (live registers at every instruction).
    ///
    /// # Errors
    /// [`ToolError::Rejected`] when it cannot read the cubin.
    pub fn disassemble(&self, cubin: &[u8], options: &[&str]) -> Result<String, ToolError> {
        let bytes = self.run(cubin, options, patience())?;
        String::from_utf8(bytes).map_err(|_| garbage("its text is not UTF-8"))
    }

    /// What every instruction does to every register (`-plr -lrm narrow`), by section.
    ///
    /// # Errors
    /// [`ToolError::Rejected`] when it cannot read the cubin, [`ToolError::Garbage`] when it prints no life
    /// ranges.
    pub fn life_ranges(&self, cubin: &[u8]) -> Result<Vec<life_ranges::Section>, ToolError> {
        self.life_ranges_within(cubin, patience())
    }

    /// The same with a time limit of the caller's.
    ///
    /// # Errors
    /// As [`Nvdisasm::life_ranges`]; [`ToolError::Timeout`] past the limit.
    pub fn life_ranges_within(
        &self,
        cubin: &[u8],
        limit: Duration,
    ) -> Result<Vec<life_ranges::Section>, ToolError> {
        let bytes = self.run(cubin, &["-c", "-plr", "-lrm", "narrow"], limit)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| garbage("its text is not UTF-8"))?;
        life_ranges::parse(text)
            .ok_or_else(|| garbage("its life ranges are missing or contradict their numbers"))
    }

    /// Opcodes and operands as data (`-json`).
    ///
    /// # Errors
    /// [`ToolError::Rejected`] when it cannot read the cubin, [`ToolError::Garbage`] when what it prints is
    /// not JSON.
    pub fn json(&self, cubin: &[u8]) -> Result<serde_json::Value, ToolError> {
        let bytes = self.run(cubin, &["-json"], patience())?;
        serde_json::from_slice(&bytes)
            .map_err(|e| garbage(&format!("its JSON does not parse: {e}")))
    }

    fn run(&self, cubin: &[u8], options: &[&str], limit: Duration) -> Result<Vec<u8>, ToolError> {
        let scratch = Scratch::new()?;
        let input = scratch.write("in.cubin", cubin)?;
        let name = ToolKind::Nvdisasm.name();
        let options = options.iter().map(OsString::from);
        let mut nvdisasm = Invocation::new(name, &self.tool.path, limit);
        nvdisasm.output_limit = OUTPUT_LIMIT;
        let out = nvdisasm
            .args(options)
            .arg(&input)
            .env("TMPDIR", scratch.dir())
            .run()?;
        if out.status.success() {
            return Ok(out.stdout);
        }
        let log = out.text().replace(&*input.to_string_lossy(), "<cubin>");
        let diagnostics = diagnostic::parse_nvcc(&log);
        let code = out.status.code().unwrap_or(-1);
        Err(ToolError::Rejected {
            tool: name.into(),
            code,
            diagnostics,
            log,
        })
    }
}

fn garbage(reason: &str) -> ToolError {
    ToolError::Garbage {
        tool: ToolKind::Nvdisasm.to_string(),
        reason: reason.to_owned(),
    }
}
