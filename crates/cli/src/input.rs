//! Reading what the user names, and writing results without ever leaving half a file.

use miette::{LabeledSpan, NamedSource, miette};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use warpwright_sass::elf::header::EM_CUDA;

use crate::failure::Failure;

/// What a FILE is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A stencil in the compact language.
    Stencil,
    /// CUDA C.
    Cuda,
    /// PTX text.
    Ptx,
    /// A cubin.
    Cubin,
    /// A file with cubins in it: fat binary, host object, executable, library.
    Fat,
}

/// How a fat binary of its own begins.
const FATBIN: [u8; 4] = [0x50, 0xed, 0x55, 0xba];

/// A file's bytes and level.
#[derive(Debug)]
pub struct Input {
    /// As the user wrote it.
    pub name: String,
    /// What it is.
    pub level: Level,
    /// The contents.
    pub bytes: Vec<u8>,
}

/// Larger files are refused: no compiler makes such PTX, and spans are 32 bits wide.
const LARGEST_INPUT: u64 = 1 << 30;

impl Input {
    /// Reads FILE and detects its level, by content first and by ending where that says nothing.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let fail = |e: std::io::Error| Failure::input(format!("cannot read `{name}`: {e}"));
        let meta = std::fs::metadata(path).map_err(fail)?;
        if meta.is_dir() {
            return Err(Failure::input(format!("`{name}` is a folder")));
        }
        if meta.len() > LARGEST_INPUT {
            return Err(Failure::input(format!("`{name}` is larger than 1 GiB")));
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(fail)?;
        // A device or a pipe does not say how much it holds.
        file.take(LARGEST_INPUT + 1)
            .read_to_end(&mut bytes)
            .map_err(fail)?;
        if bytes.len() as u64 > LARGEST_INPUT {
            return Err(Failure::input(format!("`{name}` is larger than 1 GiB")));
        }
        if bytes.is_empty() {
            return Err(Failure::input(format!("`{name}` is empty")));
        }
        if bytes.starts_with(b"!<arch>\n") {
            return Err(Failure::input(format!(
                "`{name}` is an archive: extract its objects with `ar x` and name one of them"
            )));
        }
        let level = detect(path, &bytes).ok_or_else(|| {
            Failure::input(format!(
                "`{name}` is neither CUDA C (.cu), nor PTX (no `.version` directive), nor a cubin, nor a file \
                 with cubins in it"
            ))
        })?;
        Ok(Input { name, level, bytes })
    }

    /// The contents as text; invalid UTF-8 is an error with its place.
    pub fn text(&self) -> Result<&str, Failure> {
        std::str::from_utf8(&self.bytes).map_err(|e| {
            let at = e.valid_up_to();
            let line = self.bytes[..at].rsplit(|&b| b == b'\n').next();
            if line.is_some_and(|line| line.len() > 200) {
                let text = format!("`{}` is not text: byte {at} is not UTF-8", self.name);
                return Failure::input(text);
            }
            let lossy = String::from_utf8_lossy(&self.bytes[..at]).into_owned();
            let label = LabeledSpan::at(at.saturating_sub(1)..at, "ends here");
            Failure::Input(
                miette!(
                    labels = vec![label],
                    "`{}` is not text: byte {at} is not UTF-8",
                    self.name
                )
                .with_source_code(NamedSource::new(&self.name, lossy)),
            )
        })
    }
}

fn detect(path: &Path, bytes: &[u8]) -> Option<Level> {
    if bytes.starts_with(b"\x7fELF") {
        // Machine 190 is CUDA's; any other is the host's.
        let machine = bytes
            .get(18..20)
            .map(|raw| u16::from_le_bytes([raw[0], raw[1]]));
        return Some(match machine {
            Some(machine) if machine != EM_CUDA => Level::Fat,
            _ => Level::Cubin,
        });
    }
    if bytes.starts_with(&FATBIN) {
        return Some(Level::Fat);
    }
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    match ending {
        "stencil" => return Some(Level::Stencil),
        "cu" | "cuh" => return Some(Level::Cuda),
        "ptx" => return Some(Level::Ptx),
        "cubin" => return Some(Level::Cubin),
        _ => {}
    }
    bytes
        .windows(8)
        .take(1 << 16)
        .any(|w| w == b".version")
        .then_some(Level::Ptx)
}

/// What is to be written, not yet in its place: dropped, it leaves nothing behind.
pub enum Staged {
    /// A file beside the place where it belongs.
    File(tempfile::NamedTempFile, PathBuf),
    /// For a device or pipe, which nothing may take the place of.
    Stream(Vec<u8>, PathBuf),
}

/// Writes a file beside the place where it belongs (behind symbolic links). [`Staged::commit`] puts it there.
pub fn stage(path: &Path, bytes: &[u8]) -> Result<Staged, Failure> {
    let fail = |e: std::io::Error| cannot_write(path, &e);
    if path.is_dir() {
        return Err(Failure::input(format!("`{}` is a folder", path.display())));
    }
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Ok(Staged::Stream(bytes.to_vec(), path));
    }
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let permissions = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(file.path(), permissions).map_err(fail)?;
    }
    Ok(Staged::File(file, path))
}

impl Staged {
    /// Puts the file in its place, whole.
    pub fn commit(self) -> Result<(), Failure> {
        match self {
            Staged::File(file, path) => {
                let placed = file.persist(&path);
                placed.map_err(|e| cannot_write(&path, &e.error))?;
            }
            Staged::Stream(bytes, path) => {
                let stream = std::fs::OpenOptions::new().write(true).open(&path);
                let written = stream.and_then(|mut stream| stream.write_all(&bytes));
                written.map_err(|e| cannot_write(&path, &e))?;
            }
        }
        Ok(())
    }
}

/// The kind of the error says enough; its text names the temporary file.
fn cannot_write(path: &Path, e: &std::io::Error) -> Failure {
    Failure::input(format!("cannot write `{}`: {}", path.display(), e.kind()))
}

/// Writes a file through a temporary one beside it, so that readers see the old or the new
/// contents and an interruption leaves nothing behind.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    stage(path, bytes)?.commit()
}

/// Refuses to write over what was read: a kernel's source is not to be lost to a slip.
pub fn refuse_overwriting(input: &Path, output: &Path) -> Result<(), Failure> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    match (real(input), real(output)) {
        (Some(a), Some(b)) if a == b => Err(Failure::input(format!(
            "`{}` is the input; the result needs a file of its own",
            output.display()
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_by_content_then_ending() {
        let at = |name: &str, bytes: &[u8]| detect(Path::new(name), bytes);
        let elf = |machine: u16| {
            let mut bytes = b"\x7fELF\x02\x01".to_vec();
            bytes.resize(18, 0);
            bytes.extend(machine.to_le_bytes());
            bytes
        };
        assert_eq!(at("a.ptx", &elf(190)), Some(Level::Cubin));
        assert_eq!(at("a.ptx", &elf(62)), Some(Level::Fat));
        assert_eq!(at("a.ptx", b"\x7fELF..."), Some(Level::Cubin));
        assert_eq!(at("a", &[0x50, 0xed, 0x55, 0xba, 1, 0]), Some(Level::Fat));
        assert_eq!(at("a.cu", b"__global__"), Some(Level::Cuda));
        assert_eq!(at("a.stencil", b"function"), Some(Level::Stencil));
        assert_eq!(at("a", b"//\n.version 8.0\n"), Some(Level::Ptx));
        assert_eq!(at("a.txt", b"hello, world"), None);
    }
}
