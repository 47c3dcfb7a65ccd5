//! What goes in: bytes with a name, and what they are.

use std::path::{Path, PathBuf};

use warpwright_sass::Cubin;
use warpwright_sass::elf::header::EM_CUDA;

use crate::Error;

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A stencil in the compact language.
    Stencil,
    /// CUDA C.
    Cuda,
    /// PTX text.
    Ptx,
    /// A cubin, or the text of one (.sass), which is assembled as it is read.
    Cubin,
    /// A file with cubins in it: fat binary, host object, executable, library.
    Fat,
}

/// Longer lines are not shown, in bytes.
const LONGEST_LINE: usize = 200;

/// How a fat binary of its own begins.
const FATBIN: [u8; 4] = [0x50, 0xed, 0x55, 0xba];

/// Bytes, what they are called and what they are.
#[derive(Debug, Clone)]
pub struct Input {
    /// For people: a name need not be text.
    pub name: String,
    /// Where it is, for nvcc and what is included; empty for what stands in no file.
    pub path: PathBuf,
    /// What it is.
    pub level: Level,
    /// The contents.
    pub bytes: Vec<u8>,
    /// Was it CUDA C in Latin-1? The contents are UTF-8 all the same.
    pub recoded: bool,
}

impl Input {
    /// Bytes under a name. What they are is found by content first, and by the name's ending where that says nothing.
    ///
    /// ```
    /// use warpwright_api::{Input, Level};
    ///
    /// let ptx = ".version 8.5\n.target sm_90\n.address_size 64\n";
    /// assert_eq!(Input::new("kernel", ptx)?.level, Level::Ptx);
    /// assert!(Input::new("notes.txt", "hello").is_err());
    /// # Ok::<(), warpwright_api::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Archive`], [`Error::Unknown`]; for CUDA C and `.sass` [`Error::NotText`], for that [`Error::Sass`].
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Result<Input, Error> {
        let (name, bytes) = (name.into(), bytes.into());
        let path = PathBuf::from(&name);
        let found = Input::of_file(name, &path, bytes)?;
        Ok(Input {
            path: PathBuf::new(),
            ..found
        })
    }

    /// The contents of a file; `name` is how it is spoken of.
    ///
    /// # Errors
    /// As [`Input::new`].
    pub fn of_file(name: String, path: &Path, bytes: Vec<u8>) -> Result<Input, Error> {
        if bytes.is_empty() {
            return Err(Error::Empty(name));
        }
        if bytes.starts_with(b"!<arch>\n") {
            return Err(Error::Archive(name));
        }
        let path = path.to_owned();
        if path.extension().is_some_and(|ending| ending == "sass") {
            let bytes = assembled(&name, &bytes)?;
            return Ok(Input {
                name,
                path,
                level: Level::Cubin,
                bytes,
                recoded: false,
            });
        }
        let Some(level) = detect(&path, &bytes) else {
            return Err(Error::Unknown(name));
        };
        let (bytes, recoded) = match level {
            Level::Cuda => in_utf8(bytes),
            _ => (bytes, false),
        };
        if level == Level::Cuda {
            text(&name, &bytes)?;
        }
        Ok(Input {
            name,
            path,
            level,
            bytes,
            recoded,
        })
    }

    /// Can the contents be taken apart as a cubin?
    ///
    /// # Errors
    /// [`Error::Cubin`].
    pub fn check_cubin(&self) -> Result<(), Error> {
        let parsed = Cubin::parse(&self.bytes).map(drop);
        parsed.map_err(|error| Error::Cubin {
            name: self.name.clone(),
            error,
        })
    }

    /// The contents as text.
    ///
    /// # Errors
    /// [`Error::NotText`].
    pub fn text(&self) -> Result<&str, Error> {
        text(&self.name, &self.bytes)
    }
}

/// A source as UTF-8, and whether it was none. Then it is Latin-1 if it is text at all: comments and messages in people's own
/// languages, which mean nothing to a compiler.
pub(crate) fn in_utf8(bytes: Vec<u8>) -> (Vec<u8>, bool) {
    let is_utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    // Spaces apart, text has no control characters.
    let is_data =
        |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t'..=b'\r' | 0x1a | 0x1b);
    match std::str::from_utf8(&bytes).is_ok() || is_utf16 || bytes.iter().any(is_data) {
        true => (bytes, false),
        false => {
            let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
            (text.into_bytes(), true)
        }
    }
}

fn text<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, Error> {
    std::str::from_utf8(bytes).map_err(|e| {
        let at = e.valid_up_to();
        let line = bytes[..at].rsplit(|&b| b == b'\n').next();
        let is_long = line.is_some_and(|line| line.len() > LONGEST_LINE);
        let before = match is_long {
            true => String::new(),
            false => String::from_utf8_lossy(&bytes[..at]).into_owned(),
        };
        // Labels count bytes.
        let is_shown = |c: char| !c.is_ascii_control() || c == '\n' || c == '\t';
        Error::NotText {
            name: name.to_owned(),
            at,
            before: before.replace(|c| !is_shown(c), "?"),
        }
    })
}

/// The cubin of a text in the form of `warpwright sass --whole`.
fn assembled(name: &str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let text = text(name, bytes)?;
    warpwright_sass::text::assemble(text).map_err(|error| Error::Sass {
        name: name.to_owned(),
        text: text.to_owned(),
        error: Box::new(error),
    })
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
        // CUDA C++ under the ending of C++: nvcc is told (-x cu).
        "c" | "cc" | "cpp" | "cxx" | "h" | "hpp" if holds(bytes, b"__global__") => {
            return Some(Level::Cuda);
        }
        _ => {}
    }
    let head = &bytes[..bytes.len().min(1 << 16)];
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_start);
    let is_ptx = lines.any(|line| line.starts_with(b".version"));
    // Without an ending, as from a pipe, the contents say it.
    match path.extension().is_none() && holds(bytes, b"__global__") && !is_ptx {
        true => Some(Level::Cuda),
        false => holds(head, b".version").then_some(Level::Ptx),
    }
}

fn holds(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|at| at == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_text() {
        let of = |bytes: &[u8]| Input::new("k.cu", bytes);
        assert!(matches!(
            of(b"\x7fEL\x01\xff\xfe"),
            Err(Error::NotText { at: 4, .. })
        ));
        assert!(matches!(
            of(b"a\xe4b\x05"),
            Err(Error::NotText { at: 1, .. })
        ));
        assert!(of(b"// gr\xfc\xdfe\r\n\t\x0c").is_ok_and(|input| input.recoded));
    }

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
        for name in ["a.cuh", "a.cpp", "a.hpp"] {
            assert_eq!(at(name, b"__global__"), Some(Level::Cuda));
        }
        assert_eq!(at("a.cpp", b"int main() {}"), None);
        assert_eq!(at("a.stencil", b"function"), Some(Level::Stencil));
        assert_eq!(at("a", b"//\n.version 8.0\n"), Some(Level::Ptx));
        assert_eq!(at("a", b"__global__ void k() {}"), Some(Level::Cuda));
        assert_eq!(at("a.txt", b"__global__ void k() {}"), None);
        assert_eq!(at("a.txt", b"hello, world"), None);
    }
}
