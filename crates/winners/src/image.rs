//! Module images: what a program hands to the driver, and which cubin of it the driver takes.

use warpwright_sass::fatbin::{Fatbin, Kind};
use warpwright_sass::{Elf, elf::ElfError};
use warpwright_target::runs_on;

/// Why it is not known which code the driver takes from an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// PTX that the driver compiles.
    #[error("it is PTX, which the driver compiles itself")]
    Ptx,
    /// No cubin for the device.
    #[error(
        "there is no machine code for sm_{0} in it (nvcc -arch=sm_{0} makes it, CMAKE_CUDA_ARCHITECTURES={0})"
    )]
    NoCubin(u32),
    /// Several cubins for the device.
    #[error("it has several cubins for sm_{0}")]
    Several(u32),
    /// Neither a cubin, nor a fat binary, nor PTX.
    #[error("it is of an unknown kind")]
    Unknown,
    /// A fat binary that cannot be read.
    #[error("{0}")]
    Fatbin(#[from] warpwright_sass::fatbin::FatbinError),
}

/// The code of an image for one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The cubin that the driver takes.
    pub cubin: Vec<u8>,
    /// The PTX beside it for the same architecture, if the image has exactly one.
    pub ptx: Option<String>,
}

/// What the driver takes from an image (cubin or fat binary) on a device of architecture `sm` (90 for sm_90):
/// machine code of the same generation, the latest that is not later than the device's.
///
/// # Errors
/// The driver would compile PTX, or the choice is not known.
pub fn code(image: &[u8], sm: u32) -> Result<Code, ImageError> {
    if image.starts_with(b"\x7fELF") {
        let cubin = image.to_vec();
        return Ok(Code { cubin, ptx: None });
    }
    if is_ptx(image) {
        return Err(ImageError::Ptx);
    }
    if !image.starts_with(&CONTAINER) {
        return Err(ImageError::Unknown);
    }
    let fat = Fatbin::parse(image)?;
    let entries = fat.entries().iter();
    let cubins = entries.filter(|e| e.kind == Kind::Cubin && runs_on(e.sm, sm));
    let best = cubins.map(|e| e.sm).max();
    let best = best.ok_or(ImageError::NoCubin(sm))?;
    let [cubin] = of(&fat, Kind::Cubin, best)[..] else {
        return Err(ImageError::Several(best));
    };
    let ptx = ptx_of(&fat, best).map(|ptx| ptx.text);
    Ok(Code {
        cubin: fat.contents(cubin)?,
        ptx,
    })
}

/// PTX that the driver compiles, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptx {
    /// The text.
    pub text: String,
    /// Most registers of a thread (`-maxrregcount`).
    pub registers: Option<u32>,
}

/// The PTX that the driver compiles for a device of architecture `sm` where [`code`] finds none: that of the latest
/// architecture. None if there is none, or several, or it has options that are not understood.
pub fn ptx(image: &[u8], sm: u32) -> Option<Ptx> {
    if is_ptx(image) {
        return Some(Ptx {
            text: text(image.to_vec())?,
            registers: None,
        });
    }
    let fat = Fatbin::parse(image).ok()?;
    let entries = fat.entries().iter();
    let known = entries.filter(|e| e.kind == Kind::Ptx && e.sm <= sm);
    ptx_of(&fat, known.map(|e| e.sm).max()?)
}

/// The PTX of code that was linked from these images for a device of architecture `sm`: that of the one image with
/// kernels. None where several have some: each is a module of its own.
pub fn linked_ptx(parts: &[&[u8]], sm: u32) -> Option<String> {
    let texts = parts.iter().filter_map(|part| ptx(part, sm));
    let mut with_kernels =
        texts.filter(|ptx| ptx.registers.is_none() && ptx.text.contains(".entry"));
    let first = with_kernels.next()?;
    with_kernels.next().is_none().then_some(first.text)
}

/// The entries of a kind for an architecture.
fn of(fat: &Fatbin, kind: Kind, sm: u32) -> Vec<usize> {
    let entries = fat.entries().iter().enumerate();
    let own = entries.filter(|(_, e)| e.kind == kind && e.sm == sm);
    own.map(|(at, _)| at).collect()
}

/// The one PTX for an architecture. Options other than those that [`registers`] knows, such as `--fmad false`, may round
/// differently.
fn ptx_of(fat: &Fatbin, sm: u32) -> Option<Ptx> {
    let [at] = of(fat, Kind::Ptx, sm)[..] else {
        return None;
    };
    Some(Ptx {
        registers: registers(&fat.options(at)?)?,
        text: fat.contents(at).ok().and_then(text)?,
    })
}

/// The register limit among options of ptxas that change nothing else; none if one of them may.
fn registers(options: &str) -> Option<Option<u32>> {
    let mut most = None;
    for option in options.split_whitespace() {
        match option.strip_prefix("-maxrregcount=") {
            Some(number) => most = Some(number.parse().ok()?),
            None if [
                "--generate-line-info",
                "-lineinfo",
                "-v",
                "--compile-only",
                "-c",
            ]
            .contains(&option) => {}
            None => return None,
        }
    }
    Some(most)
}

/// How the container of a fat binary begins.
pub const CONTAINER: [u8; 4] = 0xba55_ed50u32.to_le_bytes();

fn is_ptx(image: &[u8]) -> bool {
    image.trim_ascii_start().starts_with(b".version") || image.trim_ascii_start().starts_with(b"//")
}

/// PTX in fat binaries ends in zeros.
fn text(mut bytes: Vec<u8>) -> Option<String> {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    String::from_utf8(bytes).ok()
}

/// Bytes of a cubin in memory whose first 64 (its ELF header) are given: the end of its last table or section.
///
/// # Errors
/// It is not a 64-bit little-endian ELF file.
pub fn header_extent(header: &[u8; 64]) -> Result<Extent, ElfError> {
    let half = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let long = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&header[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let is_elf = header.starts_with(b"\x7fELF\x02\x01");
    let (sections, size, count) = (long(40), half(58), half(60));
    let (segments, segment_size, segment_count) = (long(32), half(54), half(56));
    let small = sections < 1 << 32 && segments < 1 << 32;
    if !is_elf || !small || size != 64 {
        return Err(ElfError::NotElf("no ELF header of the usual kind".into()));
    }
    Ok(Extent {
        sections,
        count,
        end: (sections + size * count).max(segments + segment_size * segment_count),
    })
}

/// Where the tables of an ELF file stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the section headers (64 bytes each).
    pub sections: u64,
    /// Their number.
    pub count: u64,
    /// End of the tables; sections may reach beyond it.
    pub end: u64,
}

impl Extent {
    /// The end of the file, with the section headers at hand (`count` times 64 bytes).
    pub fn end_of_file(&self, headers: &[u8]) -> u64 {
        const NOBITS: [u32; 4] = [8, 0x7000_0007, 0x7000_000a, 0x7000_0015];
        let ends = headers.chunks_exact(64).filter_map(|header| {
            let kind = u32::from_le_bytes(header[4..8].try_into().ok()?);
            let offset = u64::from_le_bytes(header[24..32].try_into().ok()?);
            let size = u64::from_le_bytes(header[32..40].try_into().ok()?);
            (!NOBITS.contains(&kind)).then(|| offset.saturating_add(size))
        });
        ends.fold(self.end, u64::max)
    }
}

/// Is this the whole of a cubin that can be read?
pub fn is_cubin(bytes: &[u8]) -> bool {
    Elf::parse(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_told_apart() {
        assert_eq!(code(b"  .version 9.0", 90), Err(ImageError::Ptx));
        assert_eq!(code(b"// by hand\n.version 9.0", 90), Err(ImageError::Ptx));
        assert_eq!(code(b"hello", 90), Err(ImageError::Unknown));
        assert_eq!(code(b"", 90), Err(ImageError::Unknown));
        assert!(code(&CONTAINER, 90).is_err());
        assert_eq!(code(b"\x7fELF", 90).unwrap().cubin, b"\x7fELF");
    }

    #[test]
    fn options_that_change_results_are_not_taken() {
        assert_eq!(registers(""), Some(None));
        assert_eq!(
            registers("--generate-line-info -maxrregcount=32"),
            Some(Some(32))
        );
        for other in ["-O1  --fmad false", "--fmad=false", "-maxrregcount=x", "-G"] {
            assert_eq!(registers(other), None, "{other}");
        }
    }

    #[test]
    fn damaged_headers_are_refused() {
        assert!(header_extent(&[0; 64]).is_err());
        let mut header = [0xff; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert!(header_extent(&header).is_err());
    }
}
