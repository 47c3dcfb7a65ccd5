//! One launch of a kernel in the PTX emulator, for the ladders of the source compilers: races in shared memory and
//! accesses outside of arrays are faults.

use std::fmt::Write as _;

use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_launch::LaunchFile;
use warpwright_ptx::Module;

/// A launch.
pub struct Launched<'a> {
    /// Its symbol.
    pub kernel: &'a str,
    /// Blocks.
    pub grid: [u64; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Bytes by which every array misses a multiple of 256.
    pub offset: usize,
}

/// What a kernel is passed.
#[derive(Clone)]
pub enum Argument {
    /// The type of its elements, in the words of launch descriptions, and its bytes.
    Array(&'static str, Vec<u8>),
    /// A type and a value, in the same words.
    Value(String, String),
    /// A pointer that is not used.
    Unused,
}

/// Runs it; what the arrays hold then, in their order.
pub fn run(
    module: &Module,
    launched: &Launched<'_>,
    arguments: Vec<Argument>,
) -> Result<Vec<Vec<u8>>, String> {
    let mut text = format!(
        "kernel = \"{}\"\n[sizes.trial]\nq = 1\n[launch]\ngrid = {:?}\nblock = {:?}\ndynamic_smem = {}\n",
        launched.kernel, launched.grid, launched.block, launched.shared
    );
    let mut inputs = Vec::new();
    let mut is_array = Vec::new();
    for (number, argument) in arguments.into_iter().enumerate() {
        let _ = writeln!(text, "[[args]]\nname = \"a{number}\"");
        match argument {
            Argument::Array(ty, bytes) => {
                let size = bytes_of(ty);
                let _ = writeln!(
                    text,
                    "type = \"{ty}\"\nshape = [{}]\noutput = true\ninit = \"zeros\"\noffset = {}",
                    bytes.len() / size,
                    launched.offset
                );
                inputs.push(bytes);
                is_array.push(true);
            }
            Argument::Unused => {
                let _ = writeln!(text, "type = \"u8\"\nshape = [64]\ninit = \"zeros\"");
                inputs.push(vec![0; 64]);
                is_array.push(false);
            }
            Argument::Value(ty, value) => {
                let _ = writeln!(text, "type = \"{ty}\"\nvalue = {value}");
            }
        }
    }
    let file = LaunchFile::parse(&text, "trial.toml").map_err(|e| e.to_string())?;
    let launch = file.resolve("trial", &[]).map_err(|e| e.to_string())?;
    let emulator = Emulator::new(module, launched.kernel).map_err(|e| e.to_string())?;
    let options = Options {
        races: true,
        ..Options::default()
    };
    let outcome = emulator
        .run(&launch, inputs, &options)
        .map_err(|e| e.to_string())?;
    let results = match outcome {
        Outcome::Finished(results) => results,
        Outcome::Faulted(fault) => return Err(fault.to_string()),
    };
    let buffers = results.buffers.into_iter().zip(is_array);
    Ok(buffers
        .filter(|(_, is)| *is)
        .map(|(bytes, _)| bytes)
        .collect())
}

fn bytes_of(ty: &str) -> usize {
    let bits: usize = ty
        .trim_start_matches(|c: char| c.is_alphabetic())
        .parse()
        .unwrap_or(8);
    bits / 8
}

/// The symbol of a kernel with this name, mangled or not.
pub fn symbol(module: &Module, name: &str) -> Option<String> {
    let mangled = format!("{}{name}", name.len());
    let is = |symbol: &str| {
        symbol == name
            || symbol.strip_prefix("_Z").is_some_and(|rest| {
                let at = rest.find(&mangled);
                at.is_some_and(|at| !rest[..at].ends_with(|c: char| c.is_ascii_digit()))
            })
    };
    let mut kernels = module.kernels().map(|(_, f)| f.name.to_string());
    kernels.find(|symbol| is(symbol))
}
