//! ptxas: PTX to cubin, with the resources that each kernel needs.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::cubin;
use crate::diagnostic::{self, Diagnostic};
use crate::error::ToolError;
use crate::find::Toolkit;
use crate::process::Invocation;
use crate::resources::{self, ModuleResources};
use crate::scratch::Scratch;
use crate::tool::{Tool, ToolKind, patience};

/// One module to assemble. Start from [`PtxasJob::new`] and set what differs.
#[derive(Debug, Clone)]
pub struct PtxasJob<'a> {
    /// The module's text.
    pub ptx: &'a str,
    /// `sm_90`, `sm_90a`, …
    pub gpu: &'a str,
    /// Most 32-bit registers per thread. ptxas silently ignores it for kernels with `.maxntid`.
    pub maxrregcount: Option<u32>,
    /// 0 to 10; ptxas's default is 5.
    pub register_usage_level: Option<u8>,
    /// 0 to 3; ptxas's default is 3.
    pub opt_level: Option<u8>,
    /// Carry the line numbers of `.loc` into the cubin.
    pub lineinfo: bool,
    /// Stands behind the names of the kernels while ptxas works: what follows from a name is undocumented. A module whose
    /// kernels are used by their names is built as it is.
    pub suffix: Option<&'static str>,
    /// Further arguments, as given.
    pub extra: Vec<OsString>,
    /// After this, ptxas is stopped.
    pub timeout: Duration,
}

impl<'a> PtxasJob<'a> {
    /// Default options, [`patience`] at most.
    pub fn new(ptx: &'a str, gpu: &'a str) -> Self {
        PtxasJob {
            ptx,
            gpu,
            maxrregcount: None,
            register_usage_level: None,
            opt_level: None,
            lineinfo: false,
            suffix: None,
            extra: Vec::new(),
            timeout: patience(),
        }
    }

    /// The arguments but for the two files: what decides the result, together with the text and the
    /// version of ptxas.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["-v".into(), "--gpu-name".into(), self.gpu.into()];
        let mut pair = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                args.extend([OsString::from(name), value.into()]);
            }
        };
        pair("--maxrregcount", self.maxrregcount.map(|n| n.to_string()));
        pair(
            "--register-usage-level",
            self.register_usage_level.map(|n| n.to_string()),
        );
        pair("--opt-level", self.opt_level.map(|n| n.to_string()));
        if self.lineinfo {
            args.push("--generate-line-info".into());
        }
        args.extend(self.extra.iter().cloned());
        args
    }

    /// The kernels that the cubin must hold.
    pub(crate) fn wanted(&self) -> Vec<&'a str> {
        let names_some = |arg: &OsString| {
            let arg = arg.to_string_lossy();
            arg == "-e" || arg.starts_with("--entry") || arg.starts_with("-e=")
        };
        match self.extra.iter().any(names_some) {
            true => Vec::new(),
            false => cubin::entries(self.ptx),
        }
    }
}

/// What a successful run made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The ELF file for the device.
    #[serde(skip)]
    pub cubin: Vec<u8>,
    /// What `-v` printed, function by function.
    pub resources: ModuleResources,
    /// Everything printed, less the compile times, which differ from run to run.
    pub log: String,
    /// How long the tool ran; for a build from the cache, how long it ran then.
    pub elapsed: Duration,
    /// Whether it came from a [`crate::BuildCache`].
    #[serde(skip)]
    pub cached: bool,
}

impl Build {
    /// Checks a finished run's file and parses its report.
    pub(crate) fn new(
        tool: &str,
        cubin: Vec<u8>,
        printed: &str,
        elapsed: Duration,
    ) -> Result<Build, ToolError> {
        let garbage = |reason| ToolError::Garbage {
            tool: tool.to_owned(),
            reason,
        };
        cubin::functions(&cubin).map_err(|torn| garbage(torn.to_string()))?;
        let lines = printed
            .lines()
            .filter(|line| !line.contains("info    : Compile time = "));
        let log = lines.fold(String::new(), |log, line| log + line + "\n");
        Ok(Build {
            cubin,
            resources: resources::parse(printed),
            log,
            elapsed,
            cached: false,
        })
    }

    /// Does the cubin hold every kernel of the module that it was made of, and the report say what each
    /// needs? With `--entry` ptxas compiles fewer: [`PtxasJob::wanted`].
    ///
    /// # Errors
    /// The cubin lacks one, or is not whole.
    pub(crate) fn holds(&self, kernels: &[&str]) -> Result<bool, ToolError> {
        let garbage = |reason| ToolError::Garbage {
            tool: ToolKind::Ptxas.to_string(),
            reason,
        };
        let functions = cubin::functions(&self.cubin).map_err(|torn| garbage(torn.to_string()))?;
        if let Some(missing) = kernels.iter().find(|name| !functions.contains(**name)) {
            return Err(garbage(format!("its cubin has no kernel `{missing}`")));
        }
        let is_told = |name: &str| {
            let found = self.resources.kernel(name);
            found.is_some_and(|kernel| kernel.registers.is_some())
        };
        Ok(kernels.iter().copied().all(is_told))
    }

    /// Warnings and notes, without the resource report.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.resources.messages
    }
}

/// Architecture names as the tools take them: `sm_90`, `sm_90a`, `compute_80`, …
pub(crate) fn check_gpu(gpu: &str) -> Result<(), ToolError> {
    let number = gpu
        .strip_prefix("sm_")
        .or_else(|| gpu.strip_prefix("compute_"));
    let good = number.is_some_and(|n| {
        n.starts_with(|c: char| c.is_ascii_digit()) && n.chars().all(|c| c.is_ascii_alphanumeric())
    });
    if good {
        Ok(())
    } else {
        Err(ToolError::BadRequest(format!(
            "`{gpu}` is no GPU architecture"
        )))
    }
}

/// The assembler.
#[derive(Debug, Clone, Copy)]
pub struct Ptxas<'a> {
    tool: &'a Tool,
}

impl Toolkit {
    /// The assembler, if there is one.
    ///
    /// # Errors
    /// [`ToolError::Missing`].
    pub fn ptxas(&self) -> Result<Ptxas<'_>, ToolError> {
        self.tool(ToolKind::Ptxas).map(|tool| Ptxas { tool })
    }
}

impl<'a> Ptxas<'a> {
    /// The program itself.
    pub fn tool(&self) -> &'a Tool {
        self.tool
    }

    /// Assembles one module.
    ///
    /// # Errors
    /// [`ToolError::Rejected`] with the lines of the module that ptxas refuses; see [`ToolError`] for what
    /// else can happen to a program.
    pub fn run(&self, job: &PtxasJob) -> Result<Build, ToolError> {
        check_gpu(job.gpu)?;
        let scratch = Scratch::new()?;
        let input = scratch.write("in.ptx", job.ptx.as_bytes())?;
        let output = scratch.path("out.cubin");
        let name = ToolKind::Ptxas.name();
        let call = Invocation::new(name, &self.tool.path, job.timeout)
            .args(job.arguments())
            .arg(&input)
            .arg("-o")
            .arg(&output)
            .env("TMPDIR", scratch.dir());
        let start = Instant::now();
        let out = call.run()?;
        let elapsed = start.elapsed();
        // The private file name says nothing to the reader: the text came from the caller.
        let printed = out.text().replace(&*input.to_string_lossy(), "<ptx>");
        if !out.status.success() {
            let code = out.status.code().unwrap_or(-1);
            let mut diagnostics = diagnostic::parse_ptxas(&printed);
            diagnostics.iter_mut().for_each(|d| d.file = None);
            return Err(ToolError::Rejected {
                tool: name.into(),
                code,
                diagnostics,
                log: printed,
            });
        }
        let mut build = Build::new(name, scratch.read_if_there(&output)?, &printed, elapsed)?;
        build.holds(&job.wanted())?;
        build
            .resources
            .messages
            .iter_mut()
            .for_each(|d| d.file = None);
        Ok(build)
    }
}
