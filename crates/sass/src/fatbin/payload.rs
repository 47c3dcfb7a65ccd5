//! Payloads of fat binaries, compressed and not.

use std::io::Read;

use super::{Entry, FatbinError};

/// Flags of an entry.
pub(super) const LZ4: u64 = 1 << 13;
pub(super) const ZSTD: u64 = 1 << 15;

/// How a payload is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As it is.
    None,
    /// One block of LZ4 (`--compress-mode=speed`, and all of CUDA 12's).
    Lz4,
    /// One frame of Zstandard (`--compress-mode=size`, and PTX by default).
    Zstd,
    /// These flags are not understood.
    Unknown(u64),
}

impl Compression {
    /// By the flags and the number of compressed bytes.
    pub(super) fn of(flags: u64, compressed: u64) -> Compression {
        match (flags & LZ4 != 0, flags & ZSTD != 0, compressed) {
            (false, false, 0) => Compression::None,
            (true, false, _) => Compression::Lz4,
            (false, true, _) => Compression::Zstd,
            _ => Compression::Unknown(flags),
        }
    }
}

/// The contents of entry `index`.
pub(super) fn unpack(index: usize, entry: &Entry, stored: &[u8]) -> Result<Vec<u8>, FatbinError> {
    let fail = |why: String| FatbinError::Decompression(index, why);
    let bytes = match entry.compression {
        Compression::None => return Ok(stored.to_vec()),
        Compression::Unknown(flags) => return Err(FatbinError::UnknownCompression(index, flags)),
        Compression::Lz4 => {
            let mut bytes = Vec::new();
            let room = bytes.try_reserve_exact(entry.size);
            room.map_err(|e| fail(e.to_string()))?;
            bytes.resize(entry.size, 0);
            let written = lz4_flex::block::decompress_into(stored, &mut bytes);
            bytes.truncate(written.map_err(|e| fail(e.to_string()))?);
            bytes
        }
        Compression::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(stored);
            let decoder = decoder.map_err(|e| fail(e.to_string()))?;
            let mut bytes = Vec::new();
            let mut limited = decoder.take(entry.size as u64 + 1);
            limited
                .read_to_end(&mut bytes)
                .map_err(|e| fail(e.to_string()))?;
            bytes
        }
    };
    match bytes.len() == entry.size {
        true => Ok(bytes),
        false => Err(fail(format!(
            "{} bytes came out, not {}",
            bytes.len(),
            entry.size
        ))),
    }
}

/// One frame of Zstandard.
pub(super) fn pack(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}
