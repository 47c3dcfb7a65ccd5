//! Refutation by execution: a launch on which two versions of a kernel come to different results in the
//! emulator. A symbolic difference alone may be one of form.

use std::fmt::Write as _;

use warpwright_check::{Options as CheckOptions, Refutation, Verdict};
use warpwright_emu::{Emulator, FaultKind, Options, Outcome};
use warpwright_launch::{LaunchFile, no_files};
use warpwright_ptx::{FuncId, Module, Type, TypeKind};

/// Warp instructions of one run.
const BUDGET: u64 = 1 << 18;

/// Words in the buffer that each pointer gets.
const WORDS: u32 = 2048;

/// Looks for a launch that tells the versions apart wherever the checker found a symbolic difference,
/// and says 'refuted' where there is one.
pub fn refute(
    original: &Module,
    new: &Module,
    verdicts: Vec<(String, Verdict)>,
    options: &CheckOptions,
) -> Vec<(String, Verdict)> {
    let decided = verdicts.into_iter().map(|(name, verdict)| {
        let verdict = match verdict {
            Verdict::Differs(found) => match witness_of(original, new, &name, options) {
                Some(what) => Verdict::Refuted(Box::new(Refutation { what, ..*found })),
                None => Verdict::Differs(found),
            },
            verdict => verdict,
        };
        (name, verdict)
    });
    decided.collect()
}

/// A kernel shows its own difference, a function that of some kernel.
fn witness_of(
    original: &Module,
    new: &Module,
    name: &str,
    options: &CheckOptions,
) -> Option<String> {
    let kernels: Vec<&str> = original
        .kernels()
        .map(|(_, kernel)| &*kernel.name)
        .collect();
    match kernels.contains(&name) {
        true => witness(original, new, name, options),
        false => kernels
            .iter()
            .find_map(|kernel| witness(original, new, kernel, options)),
    }
}

/// What happens in the emulator on a launch that the original survives.
fn witness(
    original: &Module,
    new: &Module,
    kernel: &str,
    options: &CheckOptions,
) -> Option<String> {
    let id = original.function(kernel)?;
    // One thread alone has no races.
    for (n, seed, is_alone) in [
        (40, 1, false),
        (5, 2, false),
        (1, 3, false),
        (0, 4, false),
        (40, 5, true),
    ] {
        let launch = launch(original, id, options, (n, seed), is_alone)?;
        let Run::Finished(before) = run(original, &launch) else {
            continue;
        };
        let input = format!("with n = {n} for every number");
        match run(new, &launch) {
            Run::Faulted(fault) => return Some(format!("{input}, the emulator says: {fault}")),
            Run::Finished(after) => {
                let mut pairs = before.iter().zip(&after).enumerate();
                if let Some((buffer, (a, b))) = pairs.find(|(_, (a, b))| a != b) {
                    let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(0);
                    return Some(format!(
                        "{input}, byte {at} of buffer {buffer} differs in the emulator"
                    ));
                }
            }
            Run::Nothing => {}
        }
    }
    None
}

enum Run {
    Finished(Vec<Vec<u8>>),
    Faulted(String),
    /// It says nothing about the kernel.
    Nothing,
}

/// A launch as text: a buffer for each pointer, and a number for everything else.
fn launch(
    module: &Module,
    id: FuncId,
    options: &CheckOptions,
    (n, seed): (u32, u32),
    is_alone: bool,
) -> Option<String> {
    let function = module.functions.get(id)?;
    let block = options.block.or(function.req_ntid());
    let [x, y, z] = block.unwrap_or(match function.max_ntid() {
        _ if is_alone => [1, 1, 1],
        Some([x, y, z]) => [x.min(64), y, z],
        None => [64, 1, 1],
    });
    let blocks = if is_alone { 1 } else { 2 };
    let mut text = format!(
        "kernel = \"{}\"\n[sizes.small]\n[launch]\ngrid = [{blocks}]\nblock = [{x}, {y}, {z}]\n",
        function.name
    );
    for (index, param) in function.params.iter().enumerate() {
        let variable = &module.variables[param.var];
        if !variable.dims.is_empty() || variable.vector > 1 {
            return None;
        }
        write!(text, "[[args]]\nname = \"p{index}\"\n").ok()?;
        let (ty, bits) = (variable.ty, variable.ty.bits());
        match (ty.kind(), ty) {
            (TypeKind::Float, Type::F32 | Type::F64) => {
                write!(text, "type = \"f{bits}\"\nvalue = {n}.5\n").ok()?;
            }
            (_, Type::U64 | Type::B64 | Type::S64) => write!(
                text,
                "type = \"s32\"\nshape = [{WORDS}]\noutput = true\n\
                 init = {{ kind = \"uniform\", low = -100, high = 300, seed = {} }}\n",
                seed * 100 + index as u32
            )
            .ok()?,
            (TypeKind::Unsigned | TypeKind::Signed | TypeKind::Bits, _) if bits <= 32 => {
                write!(text, "type = \"u{bits}\"\nvalue = {n}\n").ok()?;
            }
            _ => return None,
        }
    }
    Some(text)
}

fn run(module: &Module, launch: &str) -> Run {
    let launch = LaunchFile::parse(launch, "launch.toml");
    let Ok(launch) = launch.and_then(|file| file.resolve("small", &[])) else {
        return Run::Nothing;
    };
    let inputs: Result<Vec<_>, _> = launch.buffers().map(|b| b.materialize(&no_files)).collect();
    let (Ok(inputs), Ok(program)) = (inputs, Emulator::new(module, &launch.kernel)) else {
        return Run::Nothing;
    };
    let options = Options {
        races: true,
        uninitialised: true,
        budget: BUDGET,
        heap: 0,
        ..Options::default()
    };
    match program.run(&launch, inputs, &options) {
        Ok(Outcome::Finished(results)) if results.approximate.is_empty() => {
            Run::Finished(results.buffers)
        }
        Ok(Outcome::Faulted(fault)) if fault.kind != FaultKind::Budget => {
            Run::Faulted(fault.kind.name().to_owned())
        }
        _ => Run::Nothing,
    }
}
