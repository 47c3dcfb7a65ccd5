//! What most commands start with: the toolkit, the GPU, the module, the launch description.

use std::path::Path;

use warpwright_launch::{Launch, LaunchFile};
use warpwright_ptx::Module;
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::{BuildCache, FindOptions, NotFound, NvccJob, REMEDY, ToolError, Toolkit};

use crate::args::{Cli, KernelArgs};
use crate::failure::Failure;
use crate::input::{self, Input, Level};

/// The GPU that is assumed for CUDA C when nobody names one.
const DEFAULT_GPU: &str = "sm_90";

impl From<NotFound> for Failure {
    fn from(e: NotFound) -> Self {
        Failure::Missing {
            what: e.to_string(),
            mend: Some(REMEDY.into()),
        }
    }
}

impl From<ToolError> for Failure {
    fn from(e: ToolError) -> Self {
        if e.is_tool_missing() {
            Failure::Missing {
                what: e.to_string(),
                mend: None,
            }
        } else {
            // The tool is there: it refuses this input, or crashes on it.
            Failure::input(e.to_string())
        }
    }
}

/// Finds the toolkit, or fetches it first if the user asked for that.
pub fn toolkit(cli: &Cli) -> Result<Toolkit, Failure> {
    let options = FindOptions {
        explicit_dir: cli.toolkit.clone(),
    };
    match Toolkit::find(&options) {
        Ok(toolkit) => Ok(toolkit),
        Err(NotFound::Anywhere) if cli.fetch_toolkit => {
            crate::commands::toolkit::install(None)?;
            Ok(Toolkit::find(&options)?)
        }
        Err(e) => Err(e.into()),
    }
}

/// Parses and verifies PTX; all errors are shown together.
pub fn parse(name: &str, text: &str) -> Result<Module, Failure> {
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
        text.push_str(&format!("… and {} more errors\n", errors.len() - SHOWN));
    }
    Err(Failure::Rendered(text))
}

/// FILE as a PTX module: CUDA C goes through nvcc (with source lines if wanted), a cubin is refused.
pub fn module(
    cli: &Cli,
    input: &Input,
    gpu: Option<&Gpu>,
    nvcc: &[String],
    lineinfo: bool,
) -> Result<Module, Failure> {
    match input.level {
        Level::Ptx => {
            if !nvcc.is_empty() {
                return Err(Failure::Usage(
                    "arguments after `--` go to nvcc, but FILE is PTX".into(),
                ));
            }
            parse(&input.name, input.text()?)
        }
        Level::Cuda => {
            refuse_ptxas_options(nvcc)?;
            let (stated, nvcc) = architecture(nvcc)?;
            let target = match (gpu, stated) {
                (Some(gpu), Some(stated)) if stated != gpu.target() => {
                    return Err(Failure::Usage(format!(
                        "the arguments of nvcc are for {stated}, but --gpu is {gpu}"
                    )));
                }
                (Some(gpu), _) => gpu.target(),
                (None, stated) => stated.unwrap_or_else(|| DEFAULT_GPU.to_owned()),
            };
            let ptx = compile(cli, &input.path, &target, &nvcc, lineinfo)?;
            parse(&input.name, &ptx)
        }
        Level::Cubin => Err(Failure::input(format!(
            "`{}` is a cubin, but CUDA C or PTX is needed here (`warpwright explain`, `opt`, `sass`, passes over \
             machine code, and `check` of two cubins read them)",
            input.name
        ))),
        Level::Stencil => Err(Failure::input(format!(
            "`{}` is a stencil, but CUDA C or PTX is needed here (`warpwright explain` reads stencils)",
            input.name
        ))),
        Level::Fat => Err(Failure::input(format!(
            "`{}` is a host file or fat binary, which is not read here: extract a cubin with \
             `cuobjdump -xelf all {0}` and name that (`warpwright explain`, `opt`, `sass` and passes over machine \
             code read the cubins in such files as they are)",
            input.name
        ))),
    }
}

/// nvcc makes PTX here, and candidates are assembled with limits of their own: what is meant for ptxas would
/// be dropped without a word.
fn refuse_ptxas_options(nvcc: &[String]) -> Result<(), Failure> {
    let is_for_ptxas = |word: &&String| {
        let name = word.trim_start_matches('-');
        let name = name.split_once('=').map_or(name, |(name, _)| name);
        word.starts_with('-') && ["maxrregcount", "Xptxas", "ptxas-options"].contains(&name)
    };
    match nvcc.iter().find(is_for_ptxas) {
        None => Ok(()),
        Some(word) => Err(Failure::Usage(format!(
            "`{word}` after `--` is for ptxas, but nvcc only makes PTX here: it would have no effect (state \
             register limits in the source with __maxnreg__ or __launch_bounds__, or give a cubin built with it)"
        ))),
    }
}

/// The architecture that arguments of nvcc name (`-arch=sm_90`, `-gencode arch=compute_90,code=sm_90`), and the
/// other arguments: candidates are built for one.
fn architecture(nvcc: &[String]) -> Result<(Option<String>, Vec<String>), Failure> {
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
        found.push(number.ok_or_else(|| {
            Failure::Usage(format!("`{word}` names no architecture (say --gpu GPU)"))
        })?);
    }
    found.sort_unstable();
    found.dedup();
    match &found[..] {
        [] | [_] => Ok((found.pop(), others)),
        _ => Err(Failure::Usage(format!(
            "the arguments of nvcc are for {}; a candidate is built for one of them (leave them out and say --gpu GPU)",
            found.join(", ")
        ))),
    }
}

/// CUDA C to PTX.
fn compile(
    cli: &Cli,
    source: &Path,
    target: &str,
    nvcc: &[String],
    lineinfo: bool,
) -> Result<String, Failure> {
    let toolkit = toolkit(cli)?;
    let mut job = NvccJob::new(source, target);
    job.lineinfo = lineinfo;
    job.extra = nvcc.iter().map(Into::into).collect();
    match BuildCache::standard().nvcc(&toolkit.nvcc()?, &job) {
        Ok(output) => Ok(output.ptx),
        Err(ToolError::Rejected { log, .. }) => Err(Failure::Rendered(format!(
            "error: nvcc refused `{}`\n\n{}",
            source.display(),
            log.trim_end()
        ))),
        Err(e) => Err(e.into()),
    }
}

/// The GPU that the user named.
pub fn named_gpu(name: Option<&str>) -> Result<Option<Gpu>, Failure> {
    name.map(|n| lookup(n).map_err(|e| Failure::input(e.to_string())))
        .transpose()
}

/// The target of a module: what the user named, else the architecture that the PTX names. The two
/// must fit: code for an older architecture runs on a newer one, unless it names a feature set.
pub fn target(module: &Module, named: Option<Gpu>) -> Result<Gpu, Failure> {
    let Some(stated) = module.header.targets.iter().find(|t| t.starts_with("sm_")) else {
        return Err(Failure::input(format!(
            "`{}` names no sm_NN in .target",
            module.name
        )));
    };
    let own = lookup(stated);
    let Some(mut gpu) = named else {
        return own
            .map_err(|e| Failure::input(format!("`{}`: {e}; name a GPU with --gpu", module.name)));
    };
    let Some(sm) = module.header.sm() else {
        return Ok(gpu);
    };
    let special = !stated.ends_with(|c: char| c.is_ascii_digit());
    if sm > gpu.arch.sm || (special && sm != gpu.arch.sm && stated.ends_with('a')) {
        return Err(Failure::input(format!(
            "`{}` is PTX for {stated}, which does not run on {gpu}",
            module.name
        )));
    }
    if let Ok(own) = own
        && own.arch.sm == gpu.arch.sm
    {
        gpu.variant = own.variant;
    }
    Ok(gpu)
}

/// Reads and resolves a launch description. Without a size name: `full` if there is one, else the
/// only one.
pub fn launch(
    path: &Path,
    size: Option<&str>,
    fallback: &str,
    set: &[String],
) -> Result<Launch, Failure> {
    let input = input::text(path)?;
    let show = |e: warpwright_launch::LaunchError| Failure::input(e.to_string());
    let file = LaunchFile::parse(&input, &path.display().to_string()).map_err(show)?;
    let sizes: Vec<&str> = file.sizes().collect();
    let size = match (size, &sizes[..]) {
        (Some(size), _) => size,
        (None, names) if names.contains(&fallback) => fallback,
        (None, [only]) => only,
        (None, _) => {
            return Err(Failure::input(format!(
                "`{}` has several sizes ({}); choose one with --size",
                path.display(),
                sizes.join(", ")
            )));
        }
    };
    file.resolve(size, &overrides(set)?).map_err(show)
}

fn overrides(set: &[String]) -> Result<Vec<(String, i64)>, Failure> {
    set.iter()
        .map(|pair| {
            let (name, value) = pair.split_once('=')?;
            Some((name.trim().to_string(), value.trim().parse().ok()?))
        })
        .zip(set)
        .map(|(parsed, pair)| {
            parsed.ok_or_else(|| Failure::Usage(format!("--set {pair}: NAME=VALUE is wanted")))
        })
        .collect()
}

/// The nvcc options that a launch description asks for, when the input is CUDA C.
pub fn described_nvcc(input: &Input, launch: Option<&Path>) -> Result<Vec<String>, Failure> {
    let (Level::Cuda, Some(path)) = (input.level, launch) else {
        return Ok(Vec::new());
    };
    let text = input::text(path)?;
    let file = LaunchFile::parse(&text, &path.display().to_string())
        .map_err(|e| Failure::input(e.to_string()))?;
    Ok(file.nvcc().to_vec())
}

/// The launch description of `--launch`, if one was named.
pub fn kernel_launch(args: &KernelArgs) -> Result<Option<Launch>, Failure> {
    let Some(path) = &args.launch else {
        if args.size.is_some() {
            return Err(Failure::Usage("--size needs --launch".into()));
        }
        return Ok(None);
    };
    launch(path, args.size.as_deref(), "full", &[]).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<(Option<String>, Vec<String>), Failure> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        architecture(&words)
    }

    #[test]
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
    }
}
