//! The front end's promises, checked on one file after another.
//!
//! For every file: it parses without a diagnostic; printing gives back its bytes; every token belongs to one
//! statement of the typed view; the canonical print, parsed again, is the same view; the verifier accepts it;
//! every opcode is known; and every `.entry` that a plain reading of the text finds is a kernel of the module.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use warpwright_ptx::{FunctionKind, Module, check, print, verify};

use crate::Error;

/// What one file, or all files of a producer, came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Files.
    pub files: u64,
    /// Kernels with a body.
    pub kernels: u64,
    /// Device functions with a body.
    pub functions: u64,
    /// Instructions.
    pub instructions: u64,
    /// Bytes of text.
    pub bytes: u64,
    /// Opcodes that the table does not know, with modifiers, and how often they stand in the text.
    pub unknown: BTreeMap<String, u64>,
    /// Files that break a promise, with the first one broken.
    pub failures: Vec<(PathBuf, String)>,
}

impl Tally {
    /// Adds another one.
    pub fn add(&mut self, other: &Tally) {
        self.files += other.files;
        self.kernels += other.kernels;
        self.functions += other.functions;
        self.instructions += other.instructions;
        self.bytes += other.bytes;
        for (opcode, count) in &other.unknown {
            *self.unknown.entry(opcode.clone()).or_default() += count;
        }
        self.failures.extend(other.failures.iter().cloned());
    }

    /// Nothing wrong and nothing unknown.
    pub fn is_good(&self) -> bool {
        self.failures.is_empty() && self.unknown.is_empty()
    }
}

/// Checks all `.ptx` files below a directory; the result is by producer, the first part of a file's path.
///
/// # Errors
/// A file cannot be read, or there is none.
pub fn check_dir(dir: &Path) -> Result<BTreeMap<String, Tally>, Error> {
    let files = crate::files_below(dir, "ptx")?;
    if files.is_empty() {
        return Err(Error::Empty(dir.to_path_buf()));
    }
    let tallies = files.par_iter().map(|path| {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        let name = path.strip_prefix(dir).unwrap_or(path);
        Ok((name, check_text(name, &bytes)))
    });
    let mut all = BTreeMap::<String, Tally>::new();
    for (name, tally) in tallies.collect::<Result<Vec<_>, Error>>()? {
        let first = name
            .components()
            .next()
            .filter(|_| name.components().count() > 1);
        let producer = first.map_or(".".into(), |c| c.as_os_str().to_string_lossy().into_owned());
        all.entry(producer).or_default().add(&tally);
    }
    Ok(all)
}

/// Checks one file's contents.
pub fn check_text(name: &Path, bytes: &[u8]) -> Tally {
    let (module, diagnostics) = Module::parse_bytes(&name.to_string_lossy(), bytes);
    let mut tally = Tally {
        files: 1,
        bytes: bytes.len() as u64,
        ..Tally::default()
    };
    for function in module.functions.values() {
        let Some(body) = &function.body else { continue };
        match function.kind {
            FunctionKind::Entry => tally.kernels += 1,
            _ => tally.functions += 1,
        }
        tally.instructions += body.insts.len() as u64;
        for inst in &body.opaque {
            let opcode = module.opcode(&body.insts[*inst]).to_string();
            *tally.unknown.entry(opcode).or_default() += 1;
        }
    }
    let broken = diagnostics.first().map(|d| d.one_line(&module));
    let broken = broken.or_else(|| broken_promise(&module, bytes, tally.kernels));
    tally
        .failures
        .extend(broken.map(|reason| (name.to_path_buf(), reason)));
    tally
}

/// The first promise that does not hold for a module that parsed.
fn broken_promise(module: &Module, bytes: &[u8], kernels: u64) -> Option<String> {
    match module.print() {
        Err(error) => return Some(format!("printing: {error}")),
        Ok(text) if text.as_bytes() != bytes => return Some(first_difference(bytes, &text)),
        Ok(_) => {}
    }
    if let Err(error) = check::coverage(module) {
        return Some(format!("coverage: {error}"));
    }
    let (again, diagnostics) = Module::parse("canonical", &print::canonical(module));
    if let Some(diagnostic) = diagnostics.first() {
        return Some(format!("canonical print: {}", diagnostic.one_line(&again)));
    }
    if let Err(error) = check::same(module, &again) {
        return Some(format!("canonical print: {error}"));
    }
    if let Some(diagnostic) = verify::diagnose(module).iter().find(|d| d.is_error()) {
        return Some(format!("verifier: {}", diagnostic.one_line(module)));
    }
    let entries = entries_with_body(bytes);
    (entries != kernels).then(|| format!("the text has {entries} kernels, the module {kernels}"))
}

fn first_difference(bytes: &[u8], text: &str) -> String {
    let at = bytes
        .iter()
        .zip(text.as_bytes())
        .take_while(|(a, b)| a == b)
        .count();
    format!("printing differs from byte {at} on")
}

/// Kernels that a plain reading of the text finds, without any of the front end: `.entry` outside of
/// comments and strings, followed by `{` before the next `;`.
pub fn entries_with_body(bytes: &[u8]) -> u64 {
    let (mut count, mut open, mut at) = (0, false, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let skip = |end: &[u8]| {
            let found = rest[1..].windows(end.len()).position(|w| w == end);
            found.map_or(rest.len(), |n| 1 + n + end.len())
        };
        at += match rest[0] {
            b'/' if rest.starts_with(b"//") => skip(b"\n"),
            b'/' if rest.starts_with(b"/*") => skip(b"*/"),
            b'"' => skip(b"\""),
            b'.' if rest.starts_with(b".entry") => {
                open = true;
                6
            }
            b'{' if open => {
                (count, open) = (count + 1, false);
                1
            }
            b';' => {
                open = false;
                1
            }
            _ => 1,
        };
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\n// .entry no {\n\
        .visible .entry k(.param .u64 p)\n{\n\t.reg .b64 %rd<2>;\n\tld.param.u64 \t%rd1, [p];\n\tret;\n}\n";

    fn tally(text: &str) -> Tally {
        check_text(Path::new("t.ptx"), text.as_bytes())
    }

    #[test]
    fn a_good_file() {
        let found = tally(GOOD);
        assert_eq!(found.failures, []);
        assert_eq!((found.files, found.kernels, found.instructions), (1, 1, 2));
        assert_eq!(found.bytes, GOOD.len() as u64);
    }

    #[test]
    fn unknown_opcodes_are_counted_with_their_modifiers() {
        let text = GOOD.replace("\tret;", "\tfrob.u32 %rd1;\n\tfrob.u32 %rd1;\n\tret;");
        let found = tally(&text);
        assert_eq!(found.unknown.get("frob.u32"), Some(&2));
        assert!(!found.is_good());
    }

    #[test]
    fn syntax_and_verifier_errors_are_failures() {
        for (from, to) in [
            ("ret;", "ret"),
            ("[p]", "[q]"),
            (".u64 \t", ".u64.u64 \t"),
            ("}", ""),
        ] {
            let found = tally(&GOOD.replace(from, to));
            assert!(!found.is_good(), "{from} -> {to}");
        }
        let pred = GOOD.replace("\tret;", "\tadd.s32 %rd1, %rd1, 1;\n\tret;");
        let [(_, reason)] = &tally(&pred).failures[..] else {
            panic!()
        };
        assert!(reason.starts_with("verifier: "), "{reason}");
    }

    #[test]
    fn junk_is_a_failure_and_no_panic() {
        for bytes in [&b""[..], b"\x7fELF", &[0xff; 64], b".entry", b"/*", b"\""] {
            assert!(!check_text(Path::new("j"), bytes).is_good() || bytes.is_empty());
        }
    }

    #[test]
    fn kernels_in_plain_text() {
        let count = |text: &str| entries_with_body(text.as_bytes());
        assert_eq!(count(GOOD), 1);
        assert_eq!(count(".entry a(); .entry b() {} .func f() {}"), 1);
        assert_eq!(
            count("/* .entry a() {} */ \".entry {\" // .entry {\n.entry c {"),
            1
        );
        assert_eq!(count(".entry"), 0);
    }
}
