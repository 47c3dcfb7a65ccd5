//! NumPy's `.npy` format, as much as buffers need: little-endian numbers in C order.
//!
//! Source: NumPy's NEP 1, format versions 1.0 to 3.0.

use crate::element::ElemType;

/// An array from or for an `.npy` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Npy {
    /// Type of the elements.
    pub ty: ElemType,
    /// Extents, slowest varying first; empty for a single number.
    pub shape: Vec<u64>,
    /// The elements, little endian.
    pub data: Vec<u8>,
}

/// Why some bytes are no array that we can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum NpyError {
    #[error("not an .npy file")]
    NotNpy,
    #[error("the header is damaged: {0}")]
    Header(String),
    #[error("element type `{0}` is not supported")]
    Type(String),
    #[error("Fortran order is not supported")]
    FortranOrder,
    #[error("{actual} bytes of elements where the shape asks for {expected}")]
    Length { expected: u64, actual: u64 },
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// NumPy's `descr` of each type; bfloat16 has none and goes as 16-bit words.
const DESCR: [(&str, ElemType); 11] = [
    ("|u1", ElemType::U8),
    ("<u2", ElemType::U16),
    ("<u4", ElemType::U32),
    ("<u8", ElemType::U64),
    ("|i1", ElemType::S8),
    ("<i2", ElemType::S16),
    ("<i4", ElemType::S32),
    ("<i8", ElemType::S64),
    ("<f2", ElemType::F16),
    ("<f4", ElemType::F32),
    ("<f8", ElemType::F64),
];

/// The file of an array, format version 1.0. The caller answers for `data`'s length.
pub fn write_npy(ty: ElemType, shape: &[u64], data: &[u8]) -> Vec<u8> {
    let ty = if ty == ElemType::Bf16 {
        ElemType::U16
    } else {
        ty
    };
    let descr = DESCR.iter().find(|d| d.1 == ty).map_or("<u2", |d| d.0);
    let mut extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    if shape.len() > 1 {
        extents.truncate(extents.len() - 2);
    }
    let extents = extents.trim_end();
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    // Magic, version and length take 10 bytes; the elements start at a multiple of 64.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.extend(std::iter::repeat_n(' ', padded - 1 - header.len()));
    header.push('\n');
    let mut file = MAGIC.to_vec();
    file.extend([1, 0]);
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// Reads an `.npy` file.
///
/// # Errors
/// [`NpyError`]: no such file, a type that buffers do not have, columns first, or another length than its shape.
pub fn read_npy(file: &[u8]) -> Result<Npy, NpyError> {
    let rest = file.strip_prefix(MAGIC).ok_or(NpyError::NotNpy)?;
    let (header_start, length) = match *rest {
        [1, _, a, b, ..] => (4, u64::from(u16::from_le_bytes([a, b]))),
        [2 | 3, _, a, b, c, d, ..] => (6, u64::from(u32::from_le_bytes([a, b, c, d]))),
        _ => return Err(NpyError::NotNpy),
    };
    let data_start = usize::try_from(length)
        .unwrap_or(usize::MAX)
        .saturating_add(header_start);
    let cut = || NpyError::Header("it is cut off".to_owned());
    let header = rest.get(header_start..data_start).ok_or_else(cut)?;
    let header = std::str::from_utf8(header).map_err(|e| NpyError::Header(e.to_string()))?;
    let descr = entry(header, "descr")?.trim_matches(['\'', '"']);
    let known = DESCR
        .iter()
        .find(|d| d.0.trim_start_matches('|') == descr.trim_start_matches('|'));
    let ty = known.ok_or_else(|| NpyError::Type(descr.to_owned()))?.1;
    if entry(header, "fortran_order")? != "False" {
        return Err(NpyError::FortranOrder);
    }
    let shape = parse_shape(entry(header, "shape")?)?;
    let data = rest.get(data_start..).unwrap_or(&[]).to_vec();
    let expected = shape
        .iter()
        .try_fold(ty.size() as u64, |n, &extent| n.checked_mul(extent));
    let expected = expected.ok_or_else(|| NpyError::Header("the shape overflows".to_owned()))?;
    let actual = data.len() as u64;
    if actual != expected {
        return Err(NpyError::Length { expected, actual });
    }
    Ok(Npy { ty, shape, data })
}

/// The text of one value of the header's dictionary.
fn entry<'a>(header: &'a str, key: &str) -> Result<&'a str, NpyError> {
    let missing = || NpyError::Header(format!("there is no `{key}`"));
    let quoted = format!("'{key}'");
    let after = header.split_once(&quoted).ok_or_else(missing)?.1;
    let value = after
        .trim_start()
        .strip_prefix(':')
        .ok_or_else(missing)?
        .trim_start();
    let end = if value.starts_with('(') {
        value.find(')').map(|at| at + 1)
    } else {
        value.find([',', '}'])
    };
    Ok(value.get(..end.ok_or_else(missing)?).unwrap_or("").trim())
}

fn parse_shape(text: &str) -> Result<Vec<u64>, NpyError> {
    let extents = text.trim_matches(['(', ')']).split(',').map(str::trim);
    extents
        .filter(|extent| !extent.is_empty())
        .map(|extent| {
            extent
                .parse()
                .map_err(|_| NpyError::Header(format!("shape `{text}`")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for (shape, elements) in [(vec![], 1), (vec![5], 5), (vec![2, 3], 6), (vec![4, 0], 0)] {
            for (_, ty) in DESCR {
                let data: Vec<u8> = (0..elements * ty.size()).map(|b| b as u8).collect();
                let file = write_npy(ty, &shape, &data);
                assert_eq!((file.len() - data.len()) % 64, 0);
                let expected = Npy {
                    ty,
                    shape: shape.clone(),
                    data,
                };
                assert_eq!(read_npy(&file), Ok(expected));
            }
        }
    }

    #[test]
    fn the_header_is_numpys() {
        let file = write_npy(ElemType::F32, &[3], &[0; 12]);
        let text = String::from_utf8_lossy(&file[10..]);
        assert!(text.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"));
        let file = write_npy(ElemType::S8, &[3, 4], &[0; 12]);
        assert!(
            String::from_utf8_lossy(&file)
                .contains("'|i1', 'fortran_order': False, 'shape': (3, 4), }")
        );
    }

    #[test]
    fn damaged_files_are_errors() {
        let good = write_npy(ElemType::F32, &[3], &[0; 12]);
        for cut in 0..good.len() {
            assert!(read_npy(&good[..cut]).is_err(), "{cut}");
        }
        let swap = |from: &str, to: &str| {
            let at = good
                .windows(from.len())
                .position(|w| w == from.as_bytes())
                .unwrap();
            let mut bad = good.clone();
            bad[at..at + to.len()].copy_from_slice(to.as_bytes());
            read_npy(&bad).unwrap_err()
        };
        assert_eq!(swap("<f4", ">f4"), NpyError::Type(">f4".to_owned()));
        assert_eq!(swap("False", "True "), NpyError::FortranOrder);
        assert_eq!(
            swap("(3,)", "(4,)"),
            NpyError::Length {
                expected: 16,
                actual: 12
            }
        );
    }
}
