//! CUDA C: what is recognised in the first kernel of a file, and the kernels that a way to compute its points becomes.
//!
//! ```text
//! // test: accesses
//! // test: naive WAY
//! // test: pass RECIPE
//! ```
//!
//! WAY is what `warpwright opt` prints: `tiles(16x16, points=8x8, stage=16x4)`. Whether what is made computes the same is
//! said by the tests of `warpwright-naive`, and by `pass`, in the emulator.

use std::fmt::Write as _;
use std::path::Path;

use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::diag::{Diagnostic, Source, render_all};
use warpwright_cudac::{File, Header};
use warpwright_ladder::CompileError;
use warpwright_naive::emit::{Condition, Entry};
use warpwright_naive::explain;
use warpwright_naive::ir::Kernel;
use warpwright_naive::recognise::{is_marked, recognise};
use warpwright_pass::source::naive::way;
use warpwright_pass::{Artifact, Builders, Invocation, Language, SourceFile};
use warpwright_toolkit::{FindOptions, NvccJob, ToolError, Toolkit};

use super::pass::carried_out;
use crate::case::Case;
use crate::harness::Command;

/// The commands.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "accesses",
        about: "how the threads of a warp touch each operand, or why the kernel is not naive",
        run: accesses,
    },
    Command {
        name: "pass",
        about: "what passes over CUDA C say, each compared in the emulator",
        run: pass,
    },
    Command {
        name: "naive",
        about: "what is done to a naive kernel, and the kernels that come of it",
        run: naive,
    },
];

/// Bytes of shared memory that a block may have.
const SHARED: u32 = 227 << 10;

/// A pass is compared with the file as written, in the emulator, or it fails.
fn pass(case: &Case, args: &[String]) -> Result<String, String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    let compile = |file: &SourceFile| {
        let missing = |e: ToolError| CompileError::Missing(e.to_string());
        let mut job = NvccJob::new(Path::new(""), "sm_90");
        job.extra.push("-fmad=false".into());
        let made = toolkit.nvcc().map_err(missing)?;
        let made = made.text_to_ptx(&file.text, &job);
        made.map(|output| output.ptx)
            .map_err(|e| CompileError::Rejected(e.to_string()))
    };
    let builders = Builders {
        compile_unfused: Some(&compile),
        ..Builders::default()
    };
    let input = Artifact::source(SourceFile {
        name: case.file_name().to_string(),
        text: case.without_blocks(),
        language: Language::Cuda,
    });
    let mut args = args.to_vec();
    args.extend(["--gpu", "sm_90"].map(str::to_owned));
    let (mut out, all) = carried_out(&input, builders, &args)?;
    for stepped in all.kernels.iter().flat_map(|done| &done.steps) {
        let rung = stepped.rung.as_ref().map_err(ToString::to_string)?;
        let _ = writeln!(out, "{}: {rung}", stepped.step.pass);
    }
    Ok(out)
}

fn accesses(case: &Case, _: &[String]) -> Result<String, String> {
    Ok(match kernel(case)? {
        Ok(kernel) => explain::accesses(&kernel).join("\n"),
        Err(refusal) => refusal,
    })
}

fn naive(case: &Case, args: &[String]) -> Result<String, String> {
    let text = args.join(" ");
    let pass: Invocation = text
        .parse()
        .map_err(|e: warpwright_pass::RecipeError| format!("{text}: {e}"))?;
    let way = way(&pass).ok_or("a way to compute the points of a naive kernel is wanted")?;
    let kernel = kernel(case)??;
    let generated = match way.kernels(&kernel, SHARED) {
        Ok(generated) => generated,
        Err(unfit) => return Ok(unfit.to_string()),
    };
    let mut out = String::new();
    for note in &generated.notes {
        let _ = writeln!(out, "{note}");
    }
    for entry in &generated.entries {
        let _ = writeln!(out, "\n{}", head(&kernel, entry));
        if let Some(parts) = &entry.parts {
            let _ = writeln!(out, "{}\nand then:", parts.body.trim_end());
        }
        let _ = writeln!(out, "{}", entry.body.trim_end());
    }
    Ok(out)
}

/// What is launched, and where.
fn head(kernel: &Kernel, entry: &Entry) -> String {
    let [x, y, z] = entry.tile;
    let name = &kernel.name;
    let number = |poly: &Poly| {
        poly.text(|symbol| match symbol {
            Symbol::Unknown(dim) => format!("{}_end", kernel.dims[dim].name),
            symbol => explain::name_of(kernel, symbol),
        })
    };
    let conditions: Vec<String> = entry
        .conditions
        .iter()
        .map(|condition| match condition {
            Condition::Multiple(poly, by) => format!("{} is a multiple of {by}", number(poly)),
            Condition::Most(poly, most) => format!("{} is {most} at most", number(poly)),
            Condition::Aligned(array, bytes) => {
                format!(
                    "{} lies at a multiple of {bytes}",
                    kernel.arrays[*array].name
                )
            }
            Condition::Is(size, value) => format!("{} is {value}", kernel.size_name(*size)),
        })
        .collect();
    let when = match conditions.is_empty() {
        true => String::new(),
        false => format!(" where {}", conditions.join(", ")),
    };
    format!(
        "{name}{}: {} threads for {x} x {y} x {z} points{when}",
        entry.suffix, entry.threads
    )
}

/// The first kernel of the file, or the rendered reason why it is not naive.
fn kernel(case: &Case) -> Result<Result<Kernel, String>, String> {
    let source = Source::new(&*case.file_name(), case.without_blocks());
    let render = |problem: Diagnostic| render_all(&[problem], &source);
    let file = File::parse(source.clone()).map_err(&render)?;
    let header: &Header = file.kernels.first().ok_or("there is no kernel")?;
    let found = is_marked(&file, header).and_then(|_| recognise(&file, header));
    Ok(found.map_err(render))
}
