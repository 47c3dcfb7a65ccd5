//! Initial contents of buffers.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::element::ElemType;
use crate::expr::{Expr, ExprError};
use crate::generate::Generator;
use crate::launch::Buffer;
use crate::npy::{NpyError, read_npy};

/// What a buffer holds before the launch. Element `i` is a function of `i` alone (see
/// [`Generator`] for the random ones).
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// All bits zero.
    Zeros,
    /// A NaN, or 0xA5 in every byte: shows elements that were never written.
    Poison,
    /// The same bits everywhere.
    Fill(u64),
    /// `start + i * step`, wrapping.
    IotaInt {
        /// Element 0.
        start: i128,
        /// Difference of neighbours.
        step: i128,
    },
    /// `start + i * step` in f64, then rounded.
    IotaFloat {
        /// Element 0.
        start: f64,
        /// Difference of neighbours.
        step: f64,
    },
    /// Integers, uniform in `low..=high`.
    UniformInt {
        /// Smallest value.
        low: i128,
        /// Largest value.
        high: i128,
        /// Seed.
        seed: u64,
    },
    /// `low + u * (high - low)` in f64 for a uniform `u` in [0, 1), then rounded.
    UniformFloat {
        /// `low` and `high` for all, or for each index of the first dimension.
        ranges: Vec<(f64, f64)>,
        /// Seed.
        seed: u64,
    },
    /// `mean + deviation * z` in f64 for an approximately normal `z`, then rounded.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        deviation: f64,
        /// Seed.
        seed: u64,
    },
    /// Random bits.
    Bits {
        /// Seed.
        seed: u64,
    },
    /// A permutation of 0..len.
    Permutation {
        /// Seed.
        seed: u64,
    },
    /// Integers that never decrease along the last dimension, exactly from `low` to `high`.
    SortedInt {
        /// First value of each row.
        low: i128,
        /// Last value of each row.
        high: i128,
        /// Seed.
        seed: u64,
    },
    /// Floats that never decrease along the last dimension, exactly from `low` to `high`.
    SortedFloat {
        /// First value of each row.
        low: f64,
        /// Last value of each row.
        high: f64,
        /// Seed.
        seed: u64,
    },
    /// These elements, over and over.
    Values(Vec<u64>),
    /// The expression's value, with the flat index as `i`; floats get a uniform random number
    /// between `-noise` and `noise` on top.
    Expr {
        /// The expression.
        expr: Expr,
        /// The launch's parameters.
        params: BTreeMap<String, i64>,
        /// Half-width of the noise.
        noise: f64,
        /// Seed of the noise.
        seed: u64,
    },
    /// The contents of a file.
    File {
        /// Path relative to the description.
        path: String,
        /// Its format, from its extension.
        format: FileFormat,
    },
}

/// Format of a file with initial contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// NumPy's; type and number of elements must agree.
    Npy,
    /// The elements' bytes, little endian.
    Raw,
}

/// Why initial contents cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// The file cannot be read.
    #[error("`{path}`: {why}")]
    Read {
        /// Its path.
        path: String,
        /// Why not.
        why: std::io::Error,
    },
    /// What the reader says.
    #[error(transparent)]
    Reader(Box<dyn std::error::Error + Send + Sync>),
    /// The description is away from its files.
    #[error("`{0}`: files are not carried along")]
    NotCarried(String),
    /// There are no files at all; see [`no_files`].
    #[error("cannot read `{0}`: no files here")]
    NoFiles(String),
    /// The expression has no value for some element.
    #[error(transparent)]
    Expression(#[from] ExprError),
    /// The value of the expression is none of the type.
    #[error("element {index} is {value}: no {ty}")]
    Element {
        /// The element's index.
        index: u64,
        /// The expression's value.
        value: i128,
        /// The type.
        ty: ElemType,
    },
    /// The file is no array.
    #[error("`{path}`: {why}")]
    Npy {
        /// Its path.
        path: String,
        /// Why not.
        why: NpyError,
    },
    /// The file has elements of another type.
    #[error("`{path}` holds {found} elements, not {expected}")]
    Type {
        /// Its path.
        path: String,
        /// The type in the file.
        found: ElemType,
        /// The buffer's.
        expected: ElemType,
    },
    /// The file has another size.
    #[error("`{path}` holds {found} bytes of elements, not {expected}")]
    Size {
        /// Its path.
        path: String,
        /// Bytes in the file.
        found: usize,
        /// Bytes of the buffer.
        expected: usize,
    },
}

impl ContentsError {
    /// A file that cannot be read.
    pub fn read(path: &str, why: std::io::Error) -> ContentsError {
        let path = path.to_owned();
        ContentsError::Read { path, why }
    }
}

/// For [`Buffer::materialize`] when no file can be read.
///
/// # Errors
/// Always.
pub fn no_files(path: &str) -> Result<Vec<u8>, ContentsError> {
    Err(ContentsError::NoFiles(path.to_owned()))
}

impl Init {
    /// Writes all elements of `buffer` into `out` (of the right length, all zero or not).
    pub(crate) fn write(
        &self,
        buffer: &Buffer,
        out: &mut [u8],
        files: &dyn Fn(&str) -> Result<Vec<u8>, ContentsError>,
    ) -> Result<(), ContentsError> {
        let ty = buffer.ty;
        let generator = |seed| Generator::new(&buffer.name, seed);
        let count = buffer.len as u64;
        let row = buffer.shape.last().copied().unwrap_or(1).max(1);
        let int = move |value: i128| value as u64;
        let float = move |value: f64| ty.float_bits(value);
        match *self {
            Init::Zeros => out.fill(0),
            Init::Poison => each(ty, out, |_| ty.poison()),
            Init::Fill(bits) => each(ty, out, |_| bits),
            Init::IotaInt { start, step } => {
                each(ty, out, |i| {
                    int(start.wrapping_add(step.wrapping_mul(i.into())))
                });
            }
            Init::IotaFloat { start, step } => each(ty, out, |i| float(start + i as f64 * step)),
            Init::UniformInt { low, high, seed } => {
                let (g, span) = (generator(seed), (high - low) as u64);
                // All 2^64 values of a type: the count does not fit, the word itself does.
                let draw = move |i| span.checked_add(1).map_or(g.word(i), |n| g.below(i, n));
                each(ty, out, |i| int(low + i128::from(draw(i))));
            }
            Init::UniformFloat { ref ranges, seed } => {
                let g = generator(seed);
                let part = (buffer.len / ranges.len().max(1)).max(1);
                let parts = out.chunks_mut(part * ty.size()).zip(ranges);
                for (first, (out, &(low, high))) in (0..).step_by(part).zip(parts) {
                    each(ty, out, |i| float(low + g.unit(first + i) * (high - low)));
                }
            }
            Init::Normal {
                mean,
                deviation,
                seed,
            } => {
                let g = generator(seed);
                each(ty, out, |i| float(mean + deviation * g.normal(i)));
            }
            Init::Bits { seed } => {
                let g = generator(seed);
                each(ty, out, |i| g.word(i));
            }
            Init::Permutation { seed } => {
                let g = generator(seed);
                each(ty, out, |i| g.permute(i, count));
            }
            Init::SortedInt { low, high, seed } => {
                let (g, span) = (generator(seed), (high - low) as u64);
                each(ty, out, |i| {
                    int(low + i128::from(sorted_int(g, i, row, span)))
                });
            }
            Init::SortedFloat { low, high, seed } => {
                let g = generator(seed);
                each(ty, out, |i| float(sorted_float(g, i, row, low, high)));
            }
            Init::Values(ref values) => {
                let n = values.len().max(1) as u64;
                each(ty, out, |i| {
                    values.get((i % n) as usize).copied().unwrap_or(0)
                });
            }
            Init::Expr {
                ref expr,
                ref params,
                noise,
                seed,
            } => {
                let g = generator(seed);
                let noise = |i| noise * (2.0 * g.unit(i) - 1.0);
                write_expr(expr, params, &noise, ty, out)?;
            }
            Init::File { ref path, format } => {
                let file = files(path)?;
                out.copy_from_slice(&file_contents(path, format, &file, ty, out.len())?);
            }
        }
        Ok(())
    }
}

/// Writes the low bytes of `bits(i)` as element `i`, for all elements, on all cores.
fn each(ty: ElemType, out: &mut [u8], bits: impl Fn(u64) -> u64 + Sync) {
    match ty.size() {
        1 => each_sized::<1>(out, bits),
        2 => each_sized::<2>(out, bits),
        4 => each_sized::<4>(out, bits),
        _ => each_sized::<8>(out, bits),
    }
}

fn each_sized<const SIZE: usize>(out: &mut [u8], bits: impl Fn(u64) -> u64 + Sync) {
    const CHUNK: usize = 1 << 16;
    out.par_chunks_mut(CHUNK * SIZE)
        .enumerate()
        .for_each(|(chunk, out)| {
            let first = (chunk * CHUNK) as u64;
            let (elements, _) = out.as_chunks_mut::<SIZE>();
            for (i, element) in (first..).zip(elements) {
                let word = bits(i).to_le_bytes();
                for (to, from) in element.iter_mut().zip(word) {
                    *to = from;
                }
            }
        });
}

/// Element `i % row` of a sorted row from 0 to `span`: element k lies between `k / (row - 1)` and
/// `(k + 1) / (row - 1)` of the way, so rows can be made at any index.
fn sorted_int(g: Generator, i: u64, row: u64, span: u64) -> u64 {
    let k = i % row;
    match row - 1 {
        0 => 0,
        last if k == last => span,
        _ if k == 0 => 0,
        last => {
            let base = u128::from(span) * u128::from(k) / u128::from(last);
            base as u64 + g.below(i, span / last + 1)
        }
    }
}

fn sorted_float(g: Generator, i: u64, row: u64, low: f64, high: f64) -> f64 {
    let k = i % row;
    match row - 1 {
        0 => low,
        _ if k == 0 => low,
        last if k == last => high,
        last => low + (k as f64 + g.unit(i)) / last as f64 * (high - low),
    }
}

/// Evaluates an expression for every element; slower than the other kinds, and still parallel.
fn write_expr(
    expr: &Expr,
    params: &BTreeMap<String, i64>,
    noise: &(dyn Fn(u64) -> f64 + Sync),
    ty: ElemType,
    out: &mut [u8],
) -> Result<(), ContentsError> {
    const CHUNK: usize = 1 << 12;
    out.par_chunks_mut(CHUNK * ty.size())
        .enumerate()
        .try_for_each(|(chunk, out)| {
            for (at, element) in out.chunks_exact_mut(ty.size()).enumerate() {
                let i = (chunk * CHUNK + at) as u64;
                let lookup = |name: &str| match name {
                    "i" => Some(i.into()),
                    _ => params.get(name).map(|&v| v.into()),
                };
                let bits = if ty.is_float() {
                    let value = expr.eval_float(&lookup)?;
                    ty.float_bits(value + noise(i))
                } else {
                    let value = expr.eval_int(&lookup)?;
                    ty.int_bits(value).ok_or(ContentsError::Element {
                        index: i,
                        value,
                        ty,
                    })?
                };
                element.copy_from_slice(bits.to_le_bytes().get(..ty.size()).unwrap_or(&[]));
            }
            Ok(())
        })
}

/// The elements of a file, checked against the buffer's type and size.
fn file_contents(
    path: &str,
    format: FileFormat,
    file: &[u8],
    ty: ElemType,
    size: usize,
) -> Result<Vec<u8>, ContentsError> {
    let data = match format {
        FileFormat::Raw => file.to_vec(),
        FileFormat::Npy => {
            let path = || path.to_owned();
            let array = read_npy(file).map_err(|why| ContentsError::Npy { path: path(), why })?;
            // NumPy has no bfloat16: such arrays travel as 16-bit words.
            let expected = if ty == ElemType::Bf16 {
                ElemType::U16
            } else {
                ty
            };
            if array.ty != expected {
                return Err(ContentsError::Type {
                    path: path(),
                    found: array.ty,
                    expected,
                });
            }
            array.data
        }
    };
    if data.len() != size {
        return Err(ContentsError::Size {
            path: path.to_owned(),
            found: data.len(),
            expected: size,
        });
    }
    Ok(data)
}
