//! What can go wrong between Warpwright and NVIDIA's tools.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diagnostic::{Diagnostic, first_error, parse_nvcc};
use crate::tool::ToolKind;

/// The command that mends a missing toolkit.
pub const REMEDY: &str = "warpwright toolkit install";

/// What mends a cache without a place.
pub const NO_CACHE: &str = "set HOME, XDG_CACHE_HOME or WARPWRIGHT_CACHE";

/// No toolkit was found, or not the one that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// None of the tools is in any of the places that are searched.
    #[error(
        "no CUDA toolkit found (searched WARPWRIGHT_TOOLKIT, CUDA_HOME, CUDA_PATH, PATH and Warpwright's cache); run `{REMEDY}`"
    )]
    Anywhere,
    /// The same, and one that was installed is not seen: the environment says no place for the cache.
    #[error(
        "no CUDA toolkit found (searched WARPWRIGHT_TOOLKIT, CUDA_HOME, CUDA_PATH and PATH), and Warpwright's cache has no place; {NO_CACHE}"
    )]
    NoCache,
    /// A toolkit of this series is not in the cache.
    #[error("no CUDA {series} toolkit is installed; run `{REMEDY} --version {series}`")]
    Series {
        /// What was asked for.
        series: String,
    },
    /// A toolkit was named, but there is none of the tools in it.
    #[error("{origin} names `{}`, which holds no CUDA toolkit (no bin/nvcc, bin/ptxas, …); correct it, or drop it and run `{REMEDY}`", .dir.display())]
    Named {
        /// What named it: `--toolkit` or `WARPWRIGHT_TOOLKIT`.
        origin: &'static str,
        /// The directory as it was given.
        dir: PathBuf,
    },
}

/// A tool could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The toolkit in use lacks the tool.
    #[error("{tool} is missing: {}", missing_reason(.named))]
    Missing {
        /// The tool that was asked for.
        tool: ToolKind,
        /// The explicitly named toolkit that lacks it, if one was named.
        named: Option<PathBuf>,
    },
    /// The program exists but cannot be started.
    #[error("cannot start {tool} (`{}`): {source}", .path.display())]
    Spawn {
        /// Name of the program.
        tool: String,
        /// Its path.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The tool ran and refused its input.
    #[error("{tool} refused its input (exit code {code}): {}", first_error(.diagnostics, .log))]
    Rejected {
        /// Name of the tool.
        tool: String,
        /// Its exit code.
        code: i32,
        /// What it said, parsed.
        diagnostics: Vec<Diagnostic>,
        /// What it said, as printed.
        log: String,
    },
    /// The tool was ended by a signal: it crashed, or somebody killed it.
    #[error("{tool} was ended by signal {signal}")]
    Signal {
        /// Name of the tool.
        tool: String,
        /// Signal number.
        signal: i32,
        /// What it had printed on standard error.
        log: String,
    },
    /// The tool did not end in time and was killed.
    #[error("{tool} did not end within {:.1} s and was stopped", .limit.as_secs_f64())]
    Timeout {
        /// Name of the tool.
        tool: String,
        /// The limit that it ran under.
        limit: Duration,
    },
    /// The tool claims success, but what it left is not what it should be.
    #[error("{tool} reports success, but {reason}")]
    Garbage {
        /// Name of the tool.
        tool: String,
        /// What is wrong with its output.
        reason: String,
    },
    /// The request itself makes no sense (for example an architecture with a space in it).
    #[error("{0}")]
    BadRequest(String),
    /// [`crate::cancel_all`] was called.
    #[error("{tool} was cancelled")]
    Cancelled {
        /// Name of the tool.
        tool: String,
    },
    /// A file could not be read or written.
    #[error("`{}`: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl ToolError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        ToolError::Io {
            path: path.to_path_buf(),
            source,
        }
    }

    /// The error with `original` wherever the tool named `copy`.
    pub(crate) fn with_path(self, copy: &Path, original: &Path) -> Self {
        match self {
            ToolError::Rejected {
                tool, code, log, ..
            } => {
                let [copy, original] = [copy, original].map(|p| p.to_string_lossy());
                let log = log.replace(&*copy, &original);
                let diagnostics = parse_nvcc(&log);
                ToolError::Rejected {
                    tool,
                    code,
                    diagnostics,
                    log,
                }
            }
            error => error,
        }
    }

    /// Whether the input is at fault (exit code 1), and not the tool or the machine.
    pub fn is_input_error(&self) -> bool {
        matches!(self, ToolError::Rejected { .. } | ToolError::BadRequest(_))
    }

    /// Whether a tool is missing or unusable (exit code 3).
    pub fn is_tool_missing(&self) -> bool {
        matches!(self, ToolError::Missing { .. } | ToolError::Spawn { .. })
    }
}

fn missing_reason(named: &Option<PathBuf>) -> String {
    match named {
        Some(dir) => format!(
            "the toolkit named explicitly, `{}`, does not hold it; name another, or none and run `{REMEDY}`",
            dir.display()
        ),
        None => format!("run `{REMEDY}`"),
    }
}
