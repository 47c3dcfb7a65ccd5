//! From an input to a module: nvcc for CUDA C, then the parser and the verifier.

use std::ffi::OsString;

use warpwright_diag::count;
use warpwright_pass::Artifact;
use warpwright_ptx::Module;
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::{BuildCache, NvccJob, ToolError, Toolkit};

use crate::{Error, Input, Level};

/// The architecture that is assumed for CUDA C when nobody names one.
pub const DEFAULT_GPU: &str = "sm_90";

/// What is said behind a GPU that is assumed.
pub const ASSUMED: &str = " (assumed: no --gpu)";

/// Is what CUDA C is compiled for assumed, because neither a GPU nor nvcc's `-arch` names it?
pub fn is_assumed(input: &Input, gpu: Option<&Gpu>, nvcc: &[String]) -> bool {
    let is_stated = || architecture(None, nvcc).is_ok_and(|(stated, _)| stated.is_some());
    input.level == Level::Cuda && gpu.is_none() && !is_stated()
}

/// Parses and verifies PTX; all errors are shown together.
///
/// # Errors
/// [`Error::Ptx`].
pub fn parse(name: &str, text: &str) -> Result<Module, Error> {
    let (module, mut diagnostics) = Module::parse(name, text);
    if !diagnostics.iter().any(|d| d.is_error()) {
        match warpwright_ptx::verify::verify(&module).map(|_| ()) {
            Ok(()) => return Ok(module),
            Err(found) => diagnostics = found,
        }
    }
    let errors: Vec<_> = diagnostics.iter().filter(|d| d.is_error()).collect();
    const SHOWN: usize = 10;
    let mut text: String = errors
        .iter()
        .take(SHOWN)
        .map(|d| d.render(&module))
        .collect();
    if errors.len() > SHOWN {
        let more = count(errors.len() - SHOWN, "more error");
        text.push_str(&format!("… and {more}\n"));
    }
    Err(Error::Ptx(text))
}

/// A module that was verified when it was read.
///
/// # Errors
/// [`Error::Ptx`].
pub fn verified(module: Module) -> Result<Artifact, Error> {
    Artifact::ptx(module).map_err(|error| Error::Ptx(error.render()))
}

/// The kernels of an input, of which there is one at least.
///
/// # Errors
/// [`Error::NoKernel`].
pub(crate) fn kernels_of(module: &Module, input: &Input) -> Result<Vec<String>, Error> {
    let names = module.kernels().map(|(_, f)| f.name.to_string());
    let names: Vec<String> = names.collect();
    match names.is_empty() {
        true => Err(Error::NoKernel(input.name.clone())),
        false => Ok(names),
    }
}

/// What nvcc is told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compile<'a> {
    /// The GPU that was named.
    pub gpu: Option<&'a Gpu>,
    /// Arguments, as given.
    pub nvcc: &'a [String],
    /// Keep source lines?
    pub lineinfo: bool,
    /// Is what ptxas makes of it next made under nvcc's register limit ([`register_limit`])?
    pub takes_limit: bool,
}

/// The input as a PTX module: CUDA C goes through nvcc, a cubin is refused.
///
/// # Errors
/// [`Error::NotSource`], [`Error::Ptx`], [`Error::Nvcc`], [`Error::Toolkit`], and those about the arguments of nvcc.
pub fn module(
    toolkit: Option<&Toolkit>,
    input: &Input,
    how: &Compile<'_>,
) -> Result<Module, Error> {
    let refused = |found, hint: String| {
        Err(Error::NotSource {
            name: input.name.clone(),
            found,
            hint,
        })
    };
    match input.level {
        Level::Ptx if !how.nvcc.is_empty() => Err(Error::NvccOfPtx),
        Level::Ptx => parse(&input.name, input.text()?),
        Level::Cuda => {
            let ptx = compile(toolkit, input, how)?;
            parse(&input.name, &ptx)
        }
        Level::Cubin => refused(
            "a cubin",
            " (`warpwright explain`, `opt`, `sass`, passes over machine code, and `check` of two cubins read them)"
                .into(),
        ),
        Level::Stencil => refused("a stencil", " (`warpwright explain` reads stencils)".into()),
        Level::Fat => refused(
            "a host file or fat binary",
            format!(
                ": extract a cubin with `cuobjdump -xelf all {}` and name that (`warpwright explain`, `opt`, `sass` \
                 and passes over machine code read the cubins in such files as they are)",
                input.name
            ),
        ),
    }
}

/// CUDA C to PTX.
fn compile(toolkit: Option<&Toolkit>, input: &Input, how: &Compile<'_>) -> Result<String, Error> {
    refuse_options(how.nvcc)?;
    if let (Some(_), false) = (register_limit(how.nvcc), how.takes_limit) {
        return Err(Error::ForPtxas(format!("-{LIMIT}")));
    }
    let (stated, nvcc) = architecture(how.gpu, how.nvcc)?;
    let named = how.gpu.map(Gpu::target);
    let target = stated.or(named);
    let target = target.unwrap_or_else(|| DEFAULT_GPU.to_owned());
    let toolkit = toolkit.ok_or(warpwright_toolkit::NotFound::Anywhere)?;
    let mut job = NvccJob::new(&input.path, &target);
    job.lineinfo = how.lineinfo;
    job.extra = nvcc.iter().map(Into::into).collect();
    let stands_alone = input.path.as_os_str().is_empty();
    let nvcc = toolkit.nvcc()?;
    let text = if stands_alone { input.text()? } else { "" };
    let built = std::thread::scope(|scope| {
        // The build cache asks for the digest of ptxas next; the first time it takes as long as a small build.
        scope.spawn(|| toolkit.ptxas().map(|ptxas| ptxas.tool().digest().is_ok()));
        match stands_alone {
            true => nvcc.text_to_ptx(text, &job),
            false => BuildCache::standard().nvcc(&nvcc, &job),
        }
    });
    match built {
        Ok(output) => Ok(output.ptx),
        Err(ToolError::Rejected { log, .. }) if log.contains("Unsupported gpu architecture") => {
            Err(Error::NotBuilt(target))
        }
        Err(ToolError::Rejected { log, .. }) => Err(Error::Nvcc {
            name: input.name.clone(),
            log: advised(log.trim_end()),
        }),
        Err(e) => Err(e.into()),
    }
}

/// What nvcc says, and what to do about a header that is not found.
fn advised(log: &str) -> String {
    let is_missing = |line: &str| {
        line.contains("fatal error: ") && line.ends_with(": No such file or directory")
    };
    match log.lines().any(is_missing) {
        true => {
            format!("{log}\n\nnote: folders of headers go to nvcc: `-- -I FOLDER` at the end")
        }
        false => log.to_owned(),
    }
}

/// Options that ptxas is to have.
const FOR_PTXAS: [&str; 2] = ["Xptxas", "ptxas-options"];
/// The option of nvcc and of ptxas that limits the registers of kernels without bounds of their own.
const LIMIT: &str = "maxrregcount";
/// Options that say what nvcc writes and where, without those that only name a step (`-c`).
const FOR_OUTPUT: [&str; 19] = [
    "o",
    "output-file",
    "odir",
    "output-directory",
    "cubin",
    "ptx",
    "fatbin",
    "optix-ir",
    "E",
    "preprocess",
    "M",
    "generate-dependencies",
    "MM",
    "MD",
    "MMD",
    "MF",
    "lib",
    "run",
    "link",
];

/// What nvcc would tell ptxas of registers (`-maxrregcount 32`): the build that is there is made with it.
pub fn register_limit(nvcc: &[String]) -> Option<OsString> {
    let mut words = nvcc.iter();
    let mut last = None;
    while let Some(word) = words.next() {
        let name = word.trim_start_matches('-');
        let value = match name.split_once('=') {
            Some((LIMIT, value)) => Some(value),
            None if name == LIMIT && word.starts_with('-') => words.next().map(String::as_str),
            _ => continue,
        };
        last = value.map(|value| format!("--{LIMIT}={value}").into());
    }
    last
}

/// What holds of the numbers of a file alone that is linked with others on the device (`-rdc=true`, `-dc`).
pub const BEFORE_LINKING: &str = "registers and stack are those of this file alone, before device linking (-rdc=true): \
     nvlink settles what calls take; `warpwright explain` of the linked program has these";

/// Is the code for device linking, by the arguments of nvcc?
pub fn is_for_linking(nvcc: &[String]) -> bool {
    const SWITCHES: [&str; 2] = ["dc", "device-c"];
    const VALUED: [&str; 2] = ["rdc", "relocatable-device-code"];
    let mut words = nvcc.iter().peekable();
    let mut found = false;
    while let Some(word) = words.next() {
        let Some(name) = word.strip_prefix("--").or(word.strip_prefix('-')) else {
            continue;
        };
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None if VALUED.contains(&name) => (name, words.next().map(String::as_str)),
            None => (name, None),
        };
        found = match VALUED.contains(&name) {
            true => value == Some("true"),
            false => found || SWITCHES.contains(&name),
        };
    }
    found
}

/// nvcc makes PTX here, and candidates are assembled with limits of their own: what is meant for ptxas, and what
/// names another output, would be dropped without a word.
///
/// # Errors
/// [`Error::ForPtxas`], [`Error::ForOutput`].
pub fn refuse_options(nvcc: &[String]) -> Result<(), Error> {
    let mut words = nvcc.iter();
    while let Some(word) = words.next() {
        let name = word.trim_start_matches('-');
        let (name, has_value) = match name.split_once('=') {
            Some((name, _)) => (name, true),
            None => (name, false),
        };
        if !word.starts_with('-') {
            continue;
        }
        if FOR_PTXAS.contains(&name) {
            return Err(Error::ForPtxas(word.clone()));
        }
        if FOR_OUTPUT.contains(&name) {
            return Err(Error::ForOutput(word.clone()));
        }
        // What another tool gets is its own.
        if name.starts_with('X') && !has_value {
            words.next();
        }
    }
    Ok(())
}

/// Is code for an architecture what a GPU was named for? A board runs that of its features, too (`sm_90a`).
fn is_of(stated: &str, gpu: &Gpu) -> bool {
    let is_same = || lookup(stated).is_ok_and(|own| own.arch.sm == gpu.arch.sm);
    stated == gpu.target() || (gpu.board.is_some() && is_same())
}

/// The architecture that arguments of nvcc name (`-arch=sm_90`, `-gencode arch=compute_90,code=sm_90`), and the
/// other arguments: candidates are built for one, which is that of the GPU that was named.
///
/// # Errors
/// [`Error::NoArchitecture`], [`Error::Architectures`], [`Error::OtherArchitecture`].
pub fn architecture(
    gpu: Option<&Gpu>,
    nvcc: &[String],
) -> Result<(Option<String>, Vec<String>), Error> {
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let mut words = nvcc.iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&**word, None),
        };
        if !["-arch", "--gpu-architecture", "-gencode", "--generate-code"].contains(&name) {
            others.push(word.clone());
            continue;
        }
        let value = value.or_else(|| words.next().map(String::as_str));
        let number = value.and_then(|value| {
            let at = value.find("compute_").map(|at| at + "compute_".len());
            let at = at.or_else(|| value.find("sm_").map(|at| at + "sm_".len()))?;
            let rest = &value[at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
            Some(format!("sm_{}", &rest[..end.unwrap_or(rest.len())]))
        });
        found.push(number.ok_or_else(|| Error::NoArchitecture(word.clone()))?);
    }
    found.sort_unstable();
    found.dedup();
    match (&found[..], gpu) {
        ([stated], Some(gpu)) if !is_of(stated, gpu) => Err(Error::OtherArchitecture {
            stated: stated.clone(),
            gpu: gpu.to_string(),
        }),
        ([] | [_], _) => Ok((found.pop(), others)),
        _ => Err(Error::Architectures(found.join(", "))),
    }
}

/// The target of a module: what the user named, else the architecture that the PTX names. The two
/// must fit: code for an older architecture runs on a newer one, unless it names a feature set.
///
/// # Errors
/// [`Error::NoTarget`], [`Error::UnknownTarget`], [`Error::DoesNotRun`].
pub fn target(module: &Module, named: Option<Gpu>) -> Result<Gpu, Error> {
    let Some(stated) = module.header.targets.iter().find(|t| t.starts_with("sm_")) else {
        return Err(Error::NoTarget(module.name.to_string()));
    };
    let own = lookup(stated);
    let Some(mut gpu) = named else {
        return own.map_err(|error| Error::UnknownTarget {
            name: module.name.to_string(),
            error,
        });
    };
    let Some(sm) = module.header.sm() else {
        return Ok(gpu);
    };
    let special = !stated.ends_with(|c: char| c.is_ascii_digit());
    if sm > gpu.arch.sm || (special && sm != gpu.arch.sm && stated.ends_with('a')) {
        return Err(Error::DoesNotRun {
            name: module.name.to_string(),
            stated: stated.to_string(),
            gpu: gpu.to_string(),
        });
    }
    if let Ok(own) = own
        && own.arch.sm == gpu.arch.sm
    {
        gpu.variant = own.variant;
    }
    Ok(gpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<(Option<String>, Vec<String>), Error> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        architecture(None, &words)
    }

    #[test]
    fn code_for_device_linking_is_told_by_the_arguments() {
        let of = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            is_for_linking(&words)
        };
        for yes in [
            "-rdc=true",
            "-O3 -rdc true",
            "-dc",
            "--relocatable-device-code=true -I.",
        ] {
            assert!(of(yes), "{yes}");
        }
        for no in [
            "-rdc=false",
            "-rdc=true -rdc=false",
            "-Drdc=true",
            "-I dc",
            "rdc=true",
        ] {
            assert!(!of(no), "{no}");
        }
    }

    #[test]
    fn what_nvcc_would_write_or_hand_on_is_refused() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            refuse_options(&words)
        };
        for words in [&["-o", "x.o"][..], &["-I.", "-cubin"], &["--output-file=x"]] {
            assert!(matches!(of(words), Err(Error::ForOutput(_))), "{words:?}");
        }
        assert!(matches!(of(&["-Xptxas", "-v"]), Err(Error::ForPtxas(_))));
        let limit = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            register_limit(&words)
        };
        for words in [&["-maxrregcount=32"][..], &["-O3", "--maxrregcount", "32"]] {
            assert_eq!(limit(words), Some("--maxrregcount=32".into()), "{words:?}");
        }
        assert_eq!(limit(&["-Dmaxrregcount=3", "maxrregcount"]), None);
        for words in [&["-O3", "-c", "-Iptx"][..], &["-Xcompiler", "-o", "-DE"]] {
            assert!(of(words).is_ok(), "{words:?}");
        }
    }

    #[test]
    #[allow(clippy::unwrap_used)]
    fn one_architecture_is_taken_from_the_arguments_of_nvcc() {
        for words in [
            &["-gencode", "arch=compute_80,code=sm_80", "-I."][..],
            &["-gencode=arch=compute_80,code=[sm_80,compute_80]", "-I."],
            &[
                "-arch=sm_80",
                "-gencode",
                "arch=compute_80,code=sm_80",
                "-I.",
            ],
            &["--gpu-architecture", "compute_80", "-I."],
        ] {
            let (arch, others) = of(words).unwrap();
            assert_eq!(arch.as_deref(), Some("sm_80"), "{words:?}");
            assert_eq!(others, ["-I."]);
        }
        assert_eq!(of(&["-arch=sm_90a"]).unwrap().0.as_deref(), Some("sm_90a"));
        assert_eq!(of(&["-O3"]).unwrap().0, None);
        assert!(of(&["-arch=native"]).is_err() && of(&["-gencode"]).is_err());
        assert!(of(&["-arch=sm_80", "-arch=sm_90"]).is_err());
        let h200 = lookup("h200").unwrap();
        let of = |word: &str| architecture(Some(&h200), &[word.to_owned()]);
        assert!(of("-arch=sm_90").is_ok());
        assert_eq!(of("-arch=sm_90a").unwrap().0.as_deref(), Some("sm_90a"));
        let base = lookup("sm_90").unwrap();
        let mixed = architecture(Some(&base), &["-arch=sm_90a".to_owned()]);
        assert!(matches!(mixed, Err(Error::OtherArchitecture { .. })));
        assert!(matches!(
            of("-arch=sm_80"),
            Err(Error::OtherArchitecture { .. })
        ));
    }
}
