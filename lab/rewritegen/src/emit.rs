//! Pairs with their verdicts and inputs as files, for a machine with a device: `bench/rewrites_device.py` runs them.
//!
//! `pairs.json` names the rest: two texts of PTX for each pair, and places in `data.bin`, in which all words have 4 bytes.

use std::path::Path;

use serde::Serialize;
use warpwright_fuzzgen::Rng;
use warpwright_launch::Launch;
use warpwright_rewrite::{AtLaunch, Standing};

use crate::check::{FILLINGS, Finding, Pair};
use crate::code::{Elem, Mistake};
use crate::family::Sizes;

/// Bytes of `data.bin` from a place on.
#[derive(Clone, Copy, Debug, Serialize)]
struct Range {
    at: usize,
    bytes: usize,
}

/// What a launch begins with, and what it must leave.
#[derive(Debug, Serialize)]
struct Contents {
    /// Contents of the buffers, of each side.
    sides: [Vec<Range>; 2],
    /// The output's elements as the host has them, and the magnitudes that rounding is relative to.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<[Range; 2]>,
}

/// An argument: the index of a buffer, or a value of 4 bytes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Argument {
    Buffer(usize),
    Value(u32),
}

#[derive(Debug, Serialize)]
struct Kernel {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_smem: u32,
    args: Vec<Argument>,
}

#[derive(Debug, Serialize)]
struct AtSizes {
    sizes: Sizes,
    verdict: Standing,
    why: Vec<&'static str>,
    kernels: [Kernel; 2],
    /// The buffer that counts.
    output: usize,
    elem: Elem,
    inputs: Vec<Contents>,
    /// Inputs on which the verdict says that the two differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<Contents>,
}

#[derive(Debug, Serialize)]
struct Emitted {
    pair: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mistake: Option<Mistake>,
    files: [String; 2],
    launches: Vec<AtSizes>,
}

#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    /// The name of every kernel.
    kernel: &'static str,
    seed: u64,
    pairs: Vec<Emitted>,
}

/// Why nothing is written.
#[derive(Debug)]
pub enum EmitError {
    /// A file.
    Write(std::io::Error),
    /// A verdict that is wrong already.
    Wrong(Box<Finding>),
}

impl From<std::io::Error> for EmitError {
    fn from(error: std::io::Error) -> EmitError {
        EmitError::Write(error)
    }
}

impl From<Finding> for EmitError {
    fn from(finding: Finding) -> EmitError {
        EmitError::Wrong(Box::new(finding))
    }
}

/// Writes so many pairs, half of them with a mistake, in the order of their numbers.
///
/// # Errors
/// [`EmitError`].
pub fn emit(seed: u64, count: usize, folder: &Path) -> Result<(), EmitError> {
    std::fs::create_dir_all(folder)?;
    let mut data = Vec::new();
    let mut left = [count / 2, count - count / 2];
    let mut document = Document {
        schema: "warpwright.rewritegen/1",
        kernel: crate::code::NAME,
        seed,
        pairs: Vec::new(),
    };
    for number in 0.. {
        if left == [0, 0] {
            break;
        }
        let pair = Pair::random(seed, number)?;
        let of_kind = &mut left[usize::from(pair.mistake.is_some())];
        if *of_kind == 0 {
            continue;
        }
        *of_kind -= 1;
        let files = ["a", "b"].map(|side| format!("{number}.{side}.ptx"));
        for (file, text) in files.iter().zip(pair.texts()) {
            std::fs::write(folder.join(file), text)?;
        }
        let sizes = pair.random_sizes(&mut Rng::new(seed ^ number.rotate_left(32)));
        let launches = sizes.iter().map(|sizes| at(&pair, sizes, &mut data));
        document.pairs.push(Emitted {
            pair: pair.name().to_owned(),
            mistake: pair.mistake.map(|(_, mistake)| mistake),
            files,
            launches: launches.collect::<Result<_, Finding>>()?,
        });
    }
    std::fs::write(folder.join("data.bin"), data)?;
    let text = serde_json::to_vec(&document).map_err(std::io::Error::from)?;
    Ok(std::fs::write(folder.join("pairs.json"), text)?)
}

fn at(pair: &Pair, sizes: &Sizes, data: &mut Vec<u8>) -> Result<AtSizes, Finding> {
    let (found, _) = pair.at(sizes)?;
    let launches = pair.launches(sizes)?;
    let inputs = (0..FILLINGS).map(|filling| {
        let (bytes, expected) = pair.given(sizes, &launches[0], filling);
        let buffers: Vec<Range> = bytes.iter().map(|bytes| put(data, bytes)).collect();
        let values: Vec<f64> = expected.iter().map(|e| e.value).collect();
        let scales: Vec<f64> = expected.iter().map(|e| e.scale).collect();
        Contents {
            sides: [buffers.clone(), buffers],
            expected: Some([
                put(data, &crate::check::bits(pair.output(), &values)),
                put(data, &crate::check::bits(Elem::F32, &scales)),
            ]),
        }
    });
    let inputs = inputs.collect();
    let output = launches[0].buffers().position(|buffer| buffer.output);
    Ok(AtSizes {
        sizes: sizes.clone(),
        verdict: found.standing,
        why: found.why.iter().map(|why| why.code()).collect(),
        output: output.unwrap_or(0),
        elem: pair.output(),
        inputs,
        witness: witness(&found, &launches, data),
        kernels: launches.map(|launch| kernel(&launch)),
    })
}

fn witness(found: &AtLaunch, launches: &[Launch; 2], data: &mut Vec<u8>) -> Option<Contents> {
    let memories = found.witness()?;
    let mut side = |at: usize| -> Vec<Range> {
        let buffers = launches[at].buffers();
        let bytes = buffers.map(|buffer| memories[at].get(&buffer.name).map_or(&[][..], |b| b));
        bytes.map(|bytes| put(data, bytes)).collect()
    };
    Some(Contents {
        sides: [side(0), side(1)],
        expected: None,
    })
}

fn kernel(launch: &Launch) -> Kernel {
    let args = launch.args.iter().map(|arg| match arg.pointers.first() {
        Some(pointer) => Argument::Buffer(pointer.of),
        None => Argument::Value(u32::from_le_bytes(
            *arg.bytes.first_chunk().unwrap_or(&[0; 4]),
        )),
    });
    Kernel {
        grid: launch.grid,
        block: launch.block,
        dynamic_smem: launch.dynamic_smem,
        args: args.collect(),
    }
}

fn put(data: &mut Vec<u8>, bytes: &[u8]) -> Range {
    let at = data.len();
    data.extend_from_slice(bytes);
    Range {
        at,
        bytes: bytes.len(),
    }
}
