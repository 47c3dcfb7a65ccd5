//! Who can make PTX here: nvcc of each toolkit, clang, Triton, and our own generator.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use warpwright_toolkit::{
    FindOptions, InstallOptions, Invocation, ToolError, Toolkit, cache_dir, install,
};

/// The version of Triton that is installed if there is none. Its wheels are large (about 1 GB unpacked).
pub const TRITON: &str = "3.9.0";

const QUICK: Duration = Duration::from_secs(60);
const INSTALL: Duration = Duration::from_secs(1800);

/// A kind of producer, as named on the command line and in the corpus' folders.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// nvcc of a toolkit series, `nvcc-13.5`.
    Nvcc(String),
    /// LLVM's NVPTX back end behind clang.
    Clang,
    /// Triton's ahead-of-time compiler.
    Triton,
    /// The generator of the fuzzer.
    Fuzzgen,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Nvcc(series) => write!(f, "nvcc-{series}"),
            Kind::Clang => f.write_str("clang"),
            Kind::Triton => f.write_str("triton"),
            Kind::Fuzzgen => f.write_str("fuzzgen"),
        }
    }
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        match text.split_once("nvcc-") {
            Some(("", series)) => Ok(Kind::Nvcc(series.to_owned())),
            _ if text == "clang" => Ok(Kind::Clang),
            _ if text == "triton" => Ok(Kind::Triton),
            _ if text == "fuzzgen" => Ok(Kind::Fuzzgen),
            _ => Err(
                "a producer is `nvcc-13.5`, `nvcc-13.0`, `clang`, `triton` or `fuzzgen`".to_owned(),
            ),
        }
    }
}

/// All producers of the full corpus.
pub fn all() -> Vec<Kind> {
    let nvcc = ["13.5", "13.0"].map(|series| Kind::Nvcc(series.to_owned()));
    nvcc.into_iter()
        .chain([Kind::Clang, Kind::Triton, Kind::Fuzzgen])
        .collect()
}

/// A producer that is there.
#[derive(Debug, Clone)]
pub struct Producer {
    /// Which one.
    pub kind: Kind,
    /// Its version, as it says itself; part of what decides whether a file must be made anew.
    pub version: String,
    /// How to run it.
    pub tool: Tool,
}

/// How a producer is run.
#[derive(Debug, Clone)]
pub enum Tool {
    /// A CUDA toolkit.
    Nvcc(Toolkit),
    /// The clang program.
    Clang(PathBuf),
    /// The Python of an environment with Triton.
    Triton(PathBuf),
    /// Nothing to run.
    Fuzzgen,
}

/// How to look for producers.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Toolkit directories to try for any series.
    pub toolkits: Vec<PathBuf>,
    /// Fetch what is missing and can be fetched (toolkits, Triton).
    pub install: bool,
}

/// Finds a producer, or says why it is missing and what mends that.
///
/// # Errors
/// A sentence for the user.
pub fn find(kind: &Kind, options: &Options) -> Result<Producer, String> {
    match kind {
        Kind::Nvcc(series) => nvcc(series, options),
        Kind::Clang => clang(),
        Kind::Triton => triton(options.install),
        Kind::Fuzzgen => Ok((env!("CARGO_PKG_VERSION").to_owned(), Tool::Fuzzgen)),
    }
    .map(|(version, tool)| Producer {
        kind: kind.clone(),
        version,
        tool,
    })
}

type Found = Result<(String, Tool), String>;

/// The first toolkit of that series among those named, the one in use, and the installed ones.
fn nvcc(series: &str, options: &Options) -> Found {
    let named = options
        .toolkits
        .iter()
        .map(|dir| Some(dir.clone()))
        .chain([None]);
    let named = named.filter_map(|explicit_dir| Toolkit::find(&FindOptions { explicit_dir }).ok());
    for toolkit in named.chain(Toolkit::installed(series).ok()) {
        if let Some(version) = version_of(&toolkit, series) {
            return Ok((version, Tool::Nvcc(toolkit)));
        }
    }
    if options.install {
        let wish = InstallOptions {
            version: Some(series.to_owned()),
            python: None,
        };
        install(&wish, &mut |step| eprintln!("nvcc-{series}: {step:?}"))
            .map_err(|e| e.to_string())?;
        let toolkit = Toolkit::installed(series).map_err(|e| e.to_string())?;
        let version =
            version_of(&toolkit, series).ok_or("the installed nvcc has another version")?;
        return Ok((version, Tool::Nvcc(toolkit)));
    }
    Err(format!(
        "no CUDA {series} toolkit; name one with --toolkit, or give --install to fetch it"
    ))
}

fn version_of(toolkit: &Toolkit, series: &str) -> Option<String> {
    let version = toolkit.nvcc().ok()?.tool().version().ok()?.clone();
    (format!("{}.{}", version.major, version.minor) == series).then_some(version.to_string())
}

/// The first program of the usual names that knows the NVPTX target.
fn clang() -> Found {
    let names = ["clang-19", "clang-20", "clang-21", "clang-18", "clang"];
    for name in names.map(PathBuf::from) {
        let targets = output(&name, &["--print-targets"]).unwrap_or_default();
        if targets.contains("nvptx64")
            && let Ok(version) = output(&name, &["--version"])
        {
            let first = version.lines().next().unwrap_or_default();
            let number = first
                .split("version ")
                .nth(1)
                .and_then(|v| v.split(' ').next());
            // The sample is for sm_90, which LLVM knows from release 16 on.
            let release = number.and_then(|number| number.split('.').next()?.parse::<u32>().ok());
            if release.is_none_or(|release| release >= 16) {
                return Ok((number.unwrap_or(first).to_owned(), Tool::Clang(name)));
            }
        }
    }
    Err(
        "no clang with the NVPTX target for sm_90; install one (Debian and Ubuntu: apt install clang-19)"
            .into(),
    )
}

/// Triton in a private environment in Warpwright's cache, or in the Python in use.
fn triton(may_install: bool) -> Found {
    let venv = cache_dir().map(|dir| dir.join("corpus").join(format!("triton-{TRITON}")));
    let private = venv.as_deref().map(|venv| venv.join("bin").join("python"));
    let ask = "import triton; print(triton.__version__)";
    let candidates = private
        .clone()
        .into_iter()
        .chain([PathBuf::from("python3")]);
    for python in candidates {
        if let Ok(version) = output(&python, &["-c", ask]) {
            return Ok((version.trim().to_owned(), Tool::Triton(python)));
        }
    }
    let (Some(venv), Some(python)) = (venv, private) else {
        return Err("no cache directory to install Triton into".into());
    };
    if !may_install {
        return Err("no Triton; give --install to fetch it (about 1 GB)".into());
    }
    eprintln!("triton: installing {TRITON}");
    let _ = std::fs::remove_dir_all(&venv);
    let dir = venv.to_string_lossy().into_owned();
    let run = |program: &Path, args: &[&str]| run(program, args, INSTALL);
    run(Path::new("python3"), &["-m", "venv", &dir])?;
    let package = format!("triton=={TRITON}");
    run(
        &python,
        &[
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--no-cache-dir",
            &package,
        ],
    )?;
    let version = output(&python, &["-c", ask])?;
    Ok((version.trim().to_owned(), Tool::Triton(python)))
}

fn output(program: &Path, args: &[&str]) -> Result<String, String> {
    run(program, args, QUICK)
}

/// Standard output of a program that must succeed.
pub(crate) fn run(program: &Path, args: &[&str], limit: Duration) -> Result<String, String> {
    let call = Invocation::new(program.to_string_lossy(), program, limit).args(args);
    let out = call.run().map_err(|e: ToolError| e.to_string())?;
    if !out.status.success() {
        let text = out.text();
        let last = text
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or("it said nothing");
        return Err(format!("{} failed: {last}", program.display()));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for kind in all() {
            assert_eq!(kind.to_string().parse::<Kind>(), Ok(kind));
        }
        for text in ["", "nvcc", "xnvcc-1", "Clang"] {
            assert!(text.parse::<Kind>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_missing_toolkit_is_said() {
        let kind = Kind::Nvcc("1.0".to_owned());
        let error = find(&kind, &Options::default()).unwrap_err();
        assert!(
            error.contains("no CUDA 1.0 toolkit") && error.contains("--install"),
            "{error}"
        );
    }
}
