//! `warpwright bug`: what a report about FILE needs (versions, the choice or the failure, the kernel's PTX), without a
//! path of this machine in it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use warpwright::DeviceCode;
use warpwright::optimise::{ptxas_version, workshop};
use warpwright_driver::opt::{DEFAULT_BUDGET, DEFAULT_MARGIN, Request};
use warpwright_driver::{KernelReport, Peers, Proofs};
use warpwright_pass::Artifact;
use warpwright_pass::ptx::slice::slice;
use warpwright_toolkit::{BuildCache, Toolkit};

use super::opt::explore_all;
use super::quoted;
use crate::args::{BugArgs, Cli, version};
use crate::failure::Failure;
use crate::input::{self, Input, Level, write_atomically};
use crate::session;

/// Runs the command.
pub fn run(cli: &Cli, args: &BugArgs) -> Result<(), Failure> {
    let input = input::read(&args.file)?;
    let mut ptx = None;
    let found = match input.level {
        // Of a stencil, its text says all; whether it is understood says the front end.
        Level::Stencil => super::stencil::of_language(&input).map(|_| Vec::new()),
        _ => choices(cli, args, &input, &mut ptx),
    };
    let mut text = heading(cli, &input);
    let _ = writeln!(text, "- options:{}", options(args));
    match found {
        Ok(reports) if reports.is_empty() => {}
        Ok(reports) => {
            text += "\n## The choice\n\n";
            for report in &reports {
                let _ = writeln!(
                    text,
                    "- `{}`, block {:?} ({}): `{}`; {}",
                    report.name,
                    report.block,
                    report.block_source,
                    report.candidates[report.chosen].recipe,
                    report.reason
                );
            }
        }
        Err(failure) => {
            let _ = writeln!(
                text,
                "\n## The failure\n\nexit code {}\n\n```\n{}\n```",
                failure.code(),
                failure.to_string().trim_end()
            );
        }
    }
    match ptx {
        Some(ptx) => {
            let _ = writeln!(text, "\n## PTX\n\n```\n{}\n```", ptx.trim_end());
        }
        None if input.level == Level::Stencil => {
            let source = input.text()?.trim_end();
            let _ = writeln!(text, "\n## The stencil\n\n```\n{source}\n```");
        }
        None => text += "\nThere is no PTX to show; please attach the file if you may.\n",
    }
    let text = without_places(&text, &args.file);
    match &args.output {
        Some(output) => {
            write_atomically(output, text.as_bytes())?;
            println!("wrote {}: read it before you send it", output.display());
        }
        None => crate::terminal::document(&text),
    }
    Ok(())
}

/// What the command line says of the launch and to nvcc; of files only their names.
fn options(args: &BugArgs) -> String {
    let name = |path: &PathBuf| PathBuf::from(path.file_name().unwrap_or_default());
    let mut kernel = args.kernel.clone();
    kernel.launch = kernel.launch.as_ref().map(name);
    kernel.trace = kernel.trace.as_ref().map(name);
    let named = kernel.kernels.iter();
    let mut text: String = named
        .map(|name| format!(" --kernel {}", quoted(name)))
        .collect();
    text += &kernel.again();
    for (number, word) in args.nvcc.iter().enumerate() {
        text += if number == 0 { " -- " } else { " " };
        text += &match word.rsplit_once('/') {
            Some((_, name)) => format!("…/{}", quoted(name)),
            None => quoted(word),
        };
    }
    text
}

/// Versions, machine and input.
fn heading(cli: &Cli, input: &Input) -> String {
    let level = match input.level {
        Level::Stencil => "a stencil",
        Level::Cuda => "CUDA C",
        Level::Ptx => "PTX",
        Level::Cubin => "a cubin",
        Level::Fat => "a file with cubins in it",
    };
    let digest = warpwright_driver::database::hash(&[&input.bytes]);
    let ptxas = session::toolkit(cli).ok();
    let ptxas = ptxas.as_ref().and_then(ptxas_version);
    format!(
        "# A report about Warpwright\n\n\
         - warpwright {}\n- ptxas {}\n- {} {}\n- {level}, {} bytes, digest {digest}\n",
        version::SHORT,
        ptxas.as_deref().unwrap_or("not found"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        input.bytes.len(),
    )
}

/// What `opt` chooses. The PTX is left behind whatever happens after it is known.
fn choices(
    cli: &Cli,
    args: &BugArgs,
    input: &Input,
    ptx: &mut Option<String>,
) -> Result<Vec<KernelReport>, Failure> {
    let options = session::options(input, &args.kernel, &args.nvcc)?;
    let mut scope = options.scope();
    let is_code = matches!(input.level, Level::Cubin | Level::Fat);
    let artifact = match is_code {
        true => {
            let code = DeviceCode::of(input, scope.gpu.as_ref())?.with_kernels(scope.kernels)?;
            let cubin = code.cubins.iter().find(|cubin| cubin.has_kernels());
            let cubin = cubin.ok_or_else(|| Failure::input("it has no kernel"))?;
            let artifact = Artifact::cubin(cubin.bytes.clone());
            artifact.map_err(|error| Failure::input(error.to_string()))?
        }
        false => {
            if input.level == Level::Ptx {
                *ptx = Some(input.text()?.to_owned());
            }
            let module = session::module(cli, input, scope.gpu.as_ref(), &options.nvcc, false)?;
            *ptx = Some(module.source.to_string());
            scope.gpu = Some(session::target(&module, scope.gpu)?);
            session::verified(module)?
        }
    };
    let kernels = scope.kernels(&artifact)?;
    if let (Some(module), [kernel]) = (artifact.as_module(), &kernels[..])
        && let Some(alone) = slice(module, kernel)
    {
        *ptx = Some(alone.source.to_string());
    }
    let gpu = scope.gpu(&artifact)?;
    let toolkit: Option<Toolkit> = session::toolkit(cli).ok().filter(|t| t.ptxas().is_ok());
    let cache = BuildCache::standard();
    let arch = gpu.target();
    let shop = toolkit
        .as_ref()
        .filter(|_| !is_code)
        .map(|toolkit| workshop(toolkit, &cache, &arch, &artifact));
    let request = Request {
        gpu: &gpu,
        scope,
        peers: Peers::None,
        ptx_only: false,
        margin: DEFAULT_MARGIN,
        budget: DEFAULT_BUDGET,
        proofs: Proofs::Choice,
    };
    let outcomes = explore_all(cli, shop.as_ref(), &artifact, &request, &|_| {
        Default::default()
    })?;
    Ok(outcomes.into_iter().map(|outcome| outcome.report).collect())
}

/// The text without folders of this machine: that of FILE, the current one, the home, and those in `.file` lines.
fn without_places(text: &str, file: &Path) -> String {
    let real = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folders = [
        file.parent().map(Path::to_path_buf),
        real.parent().map(Path::to_path_buf),
        std::env::current_dir().ok(),
        std::env::var_os("HOME").map(Into::into),
    ];
    let mut folders: Vec<String> = folders
        .into_iter()
        .flatten()
        .map(|folder| folder.display().to_string())
        .filter(|folder| folder.len() > 1)
        .collect();
    // The longest first: a folder within another one goes whole.
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
    let mut text = text.to_owned();
    for folder in folders {
        text = text.replace(&format!("{folder}/"), "");
        text = text.replace(&folder, "…");
    }
    let lines = text
        .lines()
        .map(|line| match line.trim_start().starts_with(".file") {
            true => match (line.find('"'), line.rfind('/')) {
                (Some(quote), Some(slash)) if slash > quote => {
                    format!("{}{}", &line[..=quote], &line[slash + 1..])
                }
                _ => line.to_owned(),
            },
            false => line.to_owned(),
        });
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::without_places;

    #[test]
    fn no_folder_of_this_machine_is_told() {
        let here = std::env::current_dir().unwrap();
        let here = here.display();
        let text = format!(
            "at {here}/a/k.ptx:3\n\t.file 1 \"/somewhere/else/k.cu\"\n.file\t2 \"k.h\", 1, 2\nld.f32 %f1, [%rd1];\n"
        );
        let told = without_places(&text, std::path::Path::new("a/k.ptx"));
        assert!(
            !told.contains(&here.to_string()) && !told.contains("somewhere"),
            "{told}"
        );
        assert!(
            told.contains("k.ptx:3") && told.contains(".file 1 \"k.cu\""),
            "{told}"
        );
        assert!(told.contains("\"k.h\", 1, 2") && told.contains("ld.f32 %f1, [%rd1];"));
    }
}
