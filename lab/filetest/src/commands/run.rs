//! `run`: executes a kernel in the emulator and prints its outputs, or the fault.
//!
//! The launch stands in the header:
//!
//! ```text
//! // test: run [--uninit] [--races] [--budget N]
//! // launch: grid=2,1 block=64 smem=128 kernel=k
//! // arg: out u32 x64            a buffer of 64 elements, poisoned, printed after the run
//! // arg: in f32 = 1.5 -2 0.25   a buffer of these elements
//! // arg: inout u32 = 1 2 3      both
//! // arg: value s32 = 7          a parameter by value
//! // arg: alias arg0 4           a pointer so many bytes into an earlier buffer
//! ```
//!
//! What `launch` leaves out is 1 (0 for `smem`), the kernel the module's only one. Elements may be
//! expressions as in launch descriptions (`0xff`). Buffers are called `arg0`, `arg1` … by their
//! place among the parameters.

use std::fmt::Write as _;

use warpwright_emu::{DecodeError, Emulator, Options, Outcome};
use warpwright_launch::{Buffer, ElemType, Launch, LaunchFile, no_files};
use warpwright_ptx::Module;

use crate::case::Case;
use crate::harness::Command;

/// The command of this file.
pub const COMMANDS: &[Command] = &[Command {
    name: "run",
    about: "execute a kernel in the emulator and print its outputs, or the fault",
    run,
}];

fn run(case: &Case, args: &[String]) -> Result<String, String> {
    let source = case.without_blocks();
    let (module, diagnostics) = Module::parse(&case.file_name(), &source);
    if let Some(error) = diagnostics.iter().find(|d| d.is_error()) {
        return Err(error.render(&module));
    }
    let launch = launch(&source, &module)?;
    let program = match Emulator::new(&module, &launch.kernel) {
        Ok(program) => program,
        Err(DecodeError::Unsupported(list)) => {
            let lines = list.iter().map(|u| format!("unsupported: {u}\n"));
            return Ok(lines.collect());
        }
        Err(error) => return Err(error.to_string()),
    };
    let inputs = launch.buffers().map(|b| b.materialize(&no_files));
    let inputs = inputs
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| e.to_string())?;
    let outcome = program
        .run(&launch, inputs, &options(args)?)
        .map_err(|e| e.to_string())?;
    Ok(print(&launch, &outcome))
}

fn options(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        budget: 1 << 20,
        ..Options::default()
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--uninit" => options.uninitialised = true,
            "--races" => options.races = true,
            "--budget" => {
                let number = args.next().and_then(|n| n.parse().ok());
                options.budget = number.ok_or("--budget without a number")?;
            }
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(options)
}

/// The launch that a file's header describes.
///
/// # Errors
/// A line that is not of the form above, or a launch that no kernel can have.
pub fn launch(source: &str, module: &Module) -> Result<Launch, String> {
    let only = module.kernels().next().map(|(_, f)| f.name.to_string());
    let mut kernel = only.ok_or("no kernel")?;
    let (mut grid, mut block, mut smem) = ("1".to_owned(), "1".to_owned(), "0".to_owned());
    let mut args = String::new();
    let mut count = 0;
    for line in source.lines().filter_map(|l| l.strip_prefix("// ")) {
        if let Some(text) = line.strip_prefix("launch: ") {
            for (key, value) in text.split_whitespace().filter_map(|w| w.split_once('=')) {
                match key {
                    "grid" => grid = value.to_owned(),
                    "block" => block = value.to_owned(),
                    "smem" => smem = value.to_owned(),
                    "kernel" => kernel = value.to_owned(),
                    _ => return Err(format!("unknown key `{key}` in a launch")),
                }
            }
        }
        if let Some(text) = line.strip_prefix("arg: ") {
            args.push_str(&argument(count, text)?);
            count += 1;
        }
    }
    let text = format!(
        "kernel = \"{kernel}\"\n[sizes.test]\n\
         [launch]\ngrid = [{grid}]\nblock = [{block}]\ndynamic_smem = {smem}\n{args}"
    );
    let file = LaunchFile::parse(&text, "header").map_err(|e| e.to_string())?;
    file.resolve("test", &[]).map_err(|e| e.to_string())
}

/// One argument as a table of a launch description.
fn argument(number: usize, text: &str) -> Result<String, String> {
    let (head, values) = match text.split_once('=') {
        Some((head, values)) => (head, Some(values)),
        None => (text, None),
    };
    let head: Vec<&str> = head.split_whitespace().collect();
    let values: Option<Vec<String>> =
        values.map(|v| v.split_whitespace().map(|w| format!("\"{w}\"")).collect());
    let mut out = String::new();
    let table = |ty: &str| format!("[[args]]\nname = \"arg{number}\"\ntype = \"{ty}\"\n");
    match (&head[..], values) {
        (["value", ty], Some(values)) => {
            let value = match &values[..] {
                [one] => one.clone(),
                all => format!("[{}]", all.join(", ")),
            };
            let _: std::fmt::Result = writeln!(out, "{}value = {value}", table(ty));
        }
        ([kind @ ("in" | "inout"), ty], Some(values)) => {
            let _: std::fmt::Result = writeln!(
                out,
                "{}shape = [{}]\ninit = {{ kind = \"values\", values = [{}] }}\noutput = {}",
                table(ty),
                values.len(),
                values.join(", "),
                *kind == "inout"
            );
        }
        (["out", ty, len], None) => {
            let len = len.strip_prefix('x').ok_or("a length begins with x")?;
            let _: std::fmt::Result = writeln!(out, "{}shape = [{len}]\noutput = true", table(ty));
        }
        (["alias", of, offset], None) => {
            let name = format!("[[args]]\nname = \"arg{number}\"\n");
            let _: std::fmt::Result = writeln!(out, "{name}alias = \"{of}\"\noffset = {offset}");
        }
        _ => {
            return Err(format!(
                "`// arg: {text}` has another form than the harness knows"
            ));
        }
    }
    Ok(out)
}

/// Outputs, what was printed and what is approximate; or the fault.
fn print(launch: &Launch, outcome: &Outcome) -> String {
    let results = match outcome {
        Outcome::Finished(results) => results,
        Outcome::Faulted(fault) => return format!("fault: {fault}\n"),
    };
    let mut out = String::new();
    for (buffer, bytes) in launch
        .buffers()
        .zip(&results.buffers)
        .filter(|(b, _)| b.output)
    {
        let _: std::fmt::Result = writeln!(
            out,
            "{} {}: {}",
            buffer.name,
            buffer.ty.name(),
            elements(buffer, bytes)
        );
    }
    for line in results.printed.lines() {
        let _: std::fmt::Result = writeln!(out, "printed: {line}");
    }
    for approximation in &results.approximate {
        let _: std::fmt::Result = writeln!(out, "approximate: {}", approximation.place.instruction);
    }
    out
}

/// The elements of a buffer; runs of equal ones as `value xN`.
fn elements(buffer: &Buffer, bytes: &[u8]) -> String {
    let size = buffer.ty.size();
    let words: Vec<u64> = bytes
        .chunks_exact(size)
        .map(|chunk| buffer.ty.read(chunk))
        .collect();
    let mut texts: Vec<String> = Vec::new();
    for run in words.chunk_by(|a, b| a == b) {
        let value = element(buffer.ty, run[0]);
        match run.len() {
            1 => texts.push(value),
            n => texts.push(format!("{value} x{n}")),
        }
    }
    texts.join(" ")
}

/// One element: floating-point numbers so that they read back exactly, NaNs by their bits.
fn element(ty: ElemType, bits: u64) -> String {
    if !ty.is_float() {
        return ty.to_int(bits).to_string();
    }
    let value = ty.to_f64(bits);
    match (value.is_nan(), ty) {
        (true, _) => format!("nan:{bits:#x}"),
        (_, ElemType::F64) => format!("{value:?}"),
        _ => format!("{:?}", value as f32),
    }
}
