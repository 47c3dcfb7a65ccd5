//! Refutation by execution: a launch on which two versions of a kernel come to different results in the
//! emulator. A symbolic difference alone may be one of form.

use std::fmt::{self, Write as _};

use serde::Serialize;
use warpwright_check::{Options as CheckOptions, Refutation, Verdict};
use warpwright_diag::count;
use warpwright_emu::{Emulator, FaultKind, Options, Outcome};
use warpwright_launch::{LaunchFile, no_files};
use warpwright_ptx::{FuncId, Module, Type, TypeKind};

/// Warp instructions of one run.
const BUDGET: u64 = 1 << 18;

/// Words in the buffer that each pointer gets.
const WORDS: u32 = 2048;

/// A launch that tells two versions of a kernel apart in the emulator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// The kernel that is launched.
    pub kernel: String,
    /// Blocks, in one dimension.
    pub blocks: u32,
    /// Threads per block.
    pub block: [u32; 3],
    /// What the first parameter is that is a number; one that is a float is a half more.
    pub number: u32,
    /// So much more is each next number.
    #[serde(skip_serializing_if = "is_none")]
    pub step: i32,
    /// What happens.
    #[serde(flatten)]
    pub happens: Happens,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Serde hands it so.
fn is_none(step: &i32) -> bool {
    *step == 0
}

/// What a [`Witness`] shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Happens {
    /// The new version is at fault, and the original is not.
    Fault {
        /// The kind of the fault.
        fault: String,
    },
    /// A word of memory is another one.
    Word {
        /// The parameter that points to the buffer.
        parameter: String,
        /// The first 32-bit word that differs.
        word: usize,
        /// What the original leaves there.
        was: u32,
        /// What the new version does.
        is: u32,
        /// Every word that differs is a NaN of single precision in one of the two.
        #[serde(skip_serializing_if = "is_false")]
        nans_alone: bool,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Serde hands it so.
fn is_false(value: &bool) -> bool {
    !*value
}

impl Witness {
    /// `param_0` of nvcc's `_Z1kPf_param_0`.
    fn short<'p>(&self, parameter: &'p str) -> &'p str {
        let rest = parameter.strip_prefix(&*self.kernel);
        rest.and_then(|rest| rest.strip_prefix('_'))
            .unwrap_or(parameter)
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.block.iter().product::<u32>();
        write!(
            f,
            "launched with {} of {} and {} ",
            count(self.blocks, "block"),
            count(threads, "thread"),
            self.number
        )?;
        match self.step {
            0 => f.write_str("for every number, ")?,
            step => write!(f, "for the first number, {step:+} for each next one, ")?,
        }
        match &self.happens {
            Happens::Fault { fault } => write!(f, "the emulator says: {fault}"),
            Happens::Word {
                parameter,
                word,
                was,
                is,
                nans_alone,
            } => {
                let parameter = self.short(parameter);
                write!(
                    f,
                    "word {word} behind the pointer `{parameter}` is {is:#010x} in the emulator, not {was:#010x}"
                )?;
                match nans_alone {
                    true => f.write_str(
                        "; all that differs on that launch is NaN in one of the two, as single precision",
                    ),
                    false => Ok(()),
                }
            }
        }
    }
}

/// Looks for a launch that tells the versions apart wherever the checker found a symbolic difference,
/// and says 'refuted' where there is one.
pub fn refute(
    original: &Module,
    new: &Module,
    verdicts: Vec<(String, Verdict)>,
    options: &CheckOptions,
) -> Vec<(String, Verdict, Option<Witness>)> {
    let decided = verdicts.into_iter().map(|(name, verdict)| {
        let Verdict::Differs(found) = verdict else {
            return (name, verdict, None);
        };
        // One launch does not run both shapes.
        let is_comparable = options.shape.is_same();
        let witness = is_comparable.then(|| witness_of(original, new, &name, options));
        let witness = witness.flatten();
        let verdict = match &witness {
            Some(witness) => Verdict::Refuted(Box::new(Refutation {
                what: format!("{}; {witness}", found.what),
                ..*found
            })),
            None => Verdict::Differs(found),
        };
        (name, verdict, witness)
    });
    decided.collect()
}

/// A kernel shows its own difference, a function that of some kernel.
fn witness_of(
    original: &Module,
    new: &Module,
    name: &str,
    options: &CheckOptions,
) -> Option<Witness> {
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
) -> Option<Witness> {
    // The launches below are made up, and meet no guard.
    let id = original
        .function(kernel)
        .filter(|_| options.assume.is_always())?;
    // One thread alone has no races. Of numbers that are all one none is seen to stand for another.
    for (n, step, seed, is_alone) in [
        (40, 0, 1, false),
        (5, 0, 2, false),
        (1, 0, 3, false),
        (0, 0, 4, false),
        (40, 0, 5, true),
        (9, 4, 6, false),
        (21, -5, 7, false),
    ] {
        let (blocks, block) = shape(original, id, options, is_alone);
        let launch = launch(original, id, (blocks, block), (n, step, seed))?;
        let Run::Finished(before) = run(original, &launch) else {
            continue;
        };
        let happens = match run(new, &launch) {
            Run::Faulted(fault) => Some(Happens::Fault { fault }),
            Run::Finished(after) => differs(original, id, &before, &after),
            Run::Nothing => None,
        };
        if let Some(happens) = happens {
            return Some(Witness {
                kernel: kernel.to_owned(),
                blocks,
                block,
                number: n,
                step,
                happens,
            });
        }
    }
    None
}

/// The first word that differs, of the buffers in the order of their parameters.
fn differs(module: &Module, id: FuncId, before: &[Vec<u8>], after: &[Vec<u8>]) -> Option<Happens> {
    let params = module.functions[id].params.iter();
    let variables = params.map(|param| &module.variables[param.var]);
    let pointers = variables.filter(|variable| is_pointer(variable.ty));
    let pairs = || {
        before
            .iter()
            .zip(after)
            .map(|(x, y)| words(x).zip(words(y)))
    };
    let mut differ = pairs().flatten().filter(|(x, y)| x != y);
    let is_nan = |word: u32| f32::from_bits(word).is_nan();
    let nans_alone = has_floats(module, id) && differ.all(|(x, y)| is_nan(x) || is_nan(y));
    let mut buffers = pointers.zip(pairs());
    buffers.find_map(|(variable, pairs)| {
        let (word, (was, is)) = pairs.enumerate().find(|(_, (x, y))| x != y)?;
        Some(Happens::Word {
            parameter: variable.name.to_string(),
            word,
            was,
            is,
            nans_alone,
        })
    })
}

/// Does a function say of anything that it is of single precision? Else its words are integers.
fn has_floats(module: &Module, id: FuncId) -> bool {
    let body = module.functions[id].body.iter();
    let mut all = body.flat_map(|body| body.insts.values());
    all.any(|inst| module.opcode(inst).types.contains(&Type::F32))
}

/// 32-bit words of memory.
fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word))
}

enum Run {
    Finished(Vec<Vec<u8>>),
    Faulted(String),
    /// It says nothing about the kernel.
    Nothing,
}

/// Blocks, and threads per block.
fn shape(module: &Module, id: FuncId, options: &CheckOptions, is_alone: bool) -> (u32, [u32; 3]) {
    let function = &module.functions[id];
    let block = options.block.or(function.req_ntid());
    let block = block.unwrap_or(match function.max_ntid() {
        _ if is_alone => [1, 1, 1],
        Some([x, y, z]) => [x.min(64), y, z],
        None => [64, 1, 1],
    });
    (if is_alone { 1 } else { 2 }, block)
}

/// Does a parameter get a buffer?
fn is_pointer(ty: Type) -> bool {
    matches!(ty, Type::U64 | Type::B64 | Type::S64)
}

/// A launch as text: a buffer for each pointer, and a number for everything else.
fn launch(
    module: &Module,
    id: FuncId,
    (blocks, [x, y, z]): (u32, [u32; 3]),
    (first, step, seed): (u32, i32, u32),
) -> Option<String> {
    let function = module.functions.get(id)?;
    let mut next = first;
    let mut number = || {
        let after = next.saturating_add_signed(step);
        std::mem::replace(&mut next, after)
    };
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
                write!(text, "type = \"f{bits}\"\nvalue = {}.5\n", number()).ok()?;
            }
            _ if is_pointer(ty) => write!(
                text,
                "type = \"s32\"\nshape = [{WORDS}]\noutput = true\n\
                 init = {{ kind = \"uniform\", low = -100, high = 300, seed = {} }}\n",
                seed * 100 + index as u32
            )
            .ok()?,
            (TypeKind::Unsigned | TypeKind::Signed | TypeKind::Bits, _) if bits <= 32 => {
                write!(text, "type = \"u{bits}\"\nvalue = {}\n", number()).ok()?;
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
