//! ptxas's command line, in the spellings that its callers use.
//!
//! As ptxas 13.0 and 13.5 have it: long names behind two dashes and short ones behind one, values behind `=` or
//! as the next word, and digits behind `-O` and `-m` directly. What is not known here is not guessed at: such a
//! call goes to the real ptxas and nothing else happens.

use std::ffi::{OsStr, OsString};

/// What an option means to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The architecture.
    Gpu,
    /// The output file.
    Output,
    /// Says nothing about the code.
    Harmless,
    /// Other code comes out with it; the default is kept as it is, but a winner of that very code may stand in.
    Code,
    /// Other code comes out with it, for a reason of the host's: builds of our own get it too.
    Carried,
    /// What comes out is not a finished kernel, or not one that is to be fast.
    Special(Kept),
}

/// Why a call that is understood goes to the real ptxas alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    /// Code that is linked later.
    #[error("relocatable code (nvcc's -rdc=true or -dc): only finished kernels are changed")]
    Relocatable,
    /// Code for a debugger.
    #[error("a debug build (-G)")]
    Debug,
    /// What nvcc's -G says beside that, alone.
    #[error("a call with --{0}, as debug builds have it, is left alone")]
    AsDebug(&'static str),
    /// nvcc has PTX checked that it keeps as PTX.
    #[error("ptxas only checks this PTX: no code is made for a compute_ architecture")]
    Check,
    /// Another option of that kind.
    #[error("a call with --{0} is left alone")]
    Option(&'static str),
}

/// Long name, short name, does it take a value, what it means.
const OPTIONS: &[(&str, &str, bool, Meaning)] = &[
    ("gpu-name", "arch", true, Meaning::Gpu),
    ("output-file", "o", true, Meaning::Output),
    ("verbose", "v", false, Meaning::Harmless),
    ("machine", "m", true, Meaning::Harmless),
    ("opt-level", "O", true, Meaning::Code),
    ("generate-line-info", "lineinfo", false, Meaning::Harmless),
    (
        "suppress-debug-info",
        "suppress-debug-info",
        false,
        Meaning::Code,
    ),
    ("disable-warnings", "w", false, Meaning::Harmless),
    ("warn-on-spills", "warn-spills", false, Meaning::Harmless),
    (
        "warn-on-local-memory-usage",
        "warn-lmem-usage",
        false,
        Meaning::Harmless,
    ),
    (
        "warn-on-double-precision-use",
        "warn-double-usage",
        false,
        Meaning::Harmless,
    ),
    (
        "suppress-stack-size-warning",
        "suppress-stack-size-warning",
        false,
        Meaning::Harmless,
    ),
    // The real build has passed, and no other one spills more.
    ("warning-as-error", "Werror", false, Meaning::Harmless),
    (
        "suppress-double-demote-warning",
        "suppress-double-demote-warning",
        false,
        Meaning::Harmless,
    ),
    ("split-compile", "split-compile", true, Meaning::Harmless),
    ("jobserver", "jobserver", false, Meaning::Harmless),
    ("maxrregcount", "maxrregcount", true, Meaning::Code),
    ("register-usage-level", "regUsageLevel", true, Meaning::Code),
    ("maxntid", "maxntid", true, Meaning::Code),
    ("minnctapersm", "minnctapersm", true, Meaning::Code),
    ("fmad", "fmad", true, Meaning::Code),
    ("def-load-cache", "dlcm", true, Meaning::Code),
    ("def-store-cache", "dscm", true, Meaning::Code),
    ("force-load-cache", "flcm", true, Meaning::Code),
    ("force-store-cache", "fscm", true, Meaning::Code),
    (
        "allow-expensive-optimizations",
        "allow-expensive-optimizations",
        true,
        Meaning::Code,
    ),
    ("Ofast-compile", "Ofc", true, Meaning::Code),
    (
        "optimize-float-atomics",
        "opt-fp-atomics",
        false,
        Meaning::Code,
    ),
    (
        "disable-optimizer-constants",
        "disable-optimizer-consts",
        false,
        Meaning::Code,
    ),
    ("position-independent-code", "pic", true, Meaning::Code),
    // In no documentation; Triton 3.9 gives it against a bug of ptxas 13.
    (
        "regAllocOptLevel",
        "regAllocOptLevel",
        true,
        Meaning::Carried,
    ),
    (
        "compile-only",
        "c",
        false,
        Meaning::Special(Kept::Relocatable),
    ),
    ("device-debug", "g", false, Meaning::Special(Kept::Debug)),
    // What nvcc's -G says beside it.
    (
        "dont-merge-basicblocks",
        "no-bb-merging",
        false,
        Meaning::Special(Kept::AsDebug("dont-merge-basicblocks")),
    ),
    (
        "return-at-end",
        "ret-end",
        false,
        Meaning::Special(Kept::AsDebug("return-at-end")),
    ),
    ("entry", "e", true, Meaning::Special(Kept::Option("entry"))),
    (
        "extensible-whole-program",
        "ewp",
        false,
        Meaning::Special(Kept::Relocatable),
    ),
    (
        "input-as-string",
        "ias",
        true,
        Meaning::Special(Kept::Option("input-as-string")),
    ),
    (
        "options-file",
        "optf",
        true,
        Meaning::Special(Kept::Option("options-file")),
    ),
    (
        "sanitize",
        "sanitize",
        true,
        Meaning::Special(Kept::Option("sanitize")),
    ),
    (
        "preserve-relocs",
        "preserve-relocs",
        false,
        Meaning::Special(Kept::Option("preserve-relocs")),
    ),
];

/// A call that makes one cubin of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The PTX file.
    pub input: OsString,
    /// The cubin; `elf.o` where none is named.
    pub output: OsString,
    /// The architecture; ptxas has a default.
    pub gpu: Option<String>,
    /// Line numbers are to be kept.
    pub lineinfo: bool,
    /// An option that changes the code and that a build of our own would not get, as it was written.
    pub changed_by: Option<String>,
    /// What builds of our own get as well.
    pub carried: Vec<OsString>,
    /// Why what comes out is no finished kernel that is to be fast.
    pub kept: Option<Kept>,
}

impl Request {
    /// The input's name, for the log: its source and its kernels.
    pub fn name(&self) -> String {
        let name = name_of(&self.input);
        match &self.gpu {
            Some(gpu) => format!("{name} for {gpu}"),
            None => name,
        }
    }
}

/// A PTX file's name for the log: its source and its kernels.
fn name_of(file: &OsStr) -> String {
    let ptx = crate::read_regular(file.as_ref());
    let ptx = ptx.and_then(|bytes| String::from_utf8(bytes).ok());
    crate::label::of(&file.to_string_lossy(), ptx.as_deref())
}

/// The name of a call that is not understood: of the first file in it that looks like PTX.
pub fn name_of_call(args: &[OsString]) -> String {
    let file = args
        .iter()
        .find(|word| word.as_encoded_bytes().ends_with(b".ptx"));
    file.map_or_else(|| "a call of ptxas".to_owned(), |file| name_of(file))
}

/// Is this only a question for the version?
pub fn asks_for_version(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "--version" || arg == "-V")
}

/// Why a call is none that is looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotUnderstood {
    /// An option that is not known, or whose value is none.
    #[error("the option {0} is not understood")]
    Option(String),
    /// None, several, or standard input.
    #[error("it has not exactly one input file")]
    Inputs,
    /// A file of options.
    #[error("its input is not among its words, but in a file of options, or a text")]
    Elsewhere,
}

/// Reads a command line.
///
/// # Errors
/// [`NotUnderstood`].
pub fn parse(args: &[OsString]) -> Result<Request, NotUnderstood> {
    let mut request = Request {
        input: OsString::new(),
        output: "elf.o".into(),
        gpu: None,
        lineinfo: false,
        changed_by: None,
        carried: Vec::new(),
        kept: None,
    };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let refusal = || NotUnderstood::Option(word.to_string_lossy().into_owned());
        let Some((name, value)) = option(word) else {
            // A second input, or a lone dash for standard input.
            if !request.input.is_empty() || word == "-" || word.is_empty() {
                return Err(NotUnderstood::Inputs);
            }
            request.input.clone_from(word);
            continue;
        };
        let (long, _, takes_value, meaning) = name.ok_or_else(refusal)?;
        let value = match (takes_value, value) {
            (true, None) => words.next().cloned().ok_or_else(refusal)?,
            (true, Some(value)) => value,
            (false, None) => OsString::new(),
            (false, Some(_)) => return Err(refusal()),
        };
        match meaning {
            Meaning::Gpu => request.gpu = Some(value.into_string().map_err(|_| refusal())?),
            Meaning::Output => request.output = value,
            Meaning::Carried => {
                let mut word = OsString::from(format!("--{long}="));
                word.push(value);
                request.carried.push(word);
            }
            Meaning::Harmless => request.lineinfo |= *long == "generate-line-info",
            Meaning::Special(why) => request.kept = Some(*why),
            Meaning::Code => {
                // The level that is the default anyway.
                let is_default = *long == "opt-level" && value == "3";
                if !is_default {
                    let value = value.to_string_lossy();
                    let separator = if value.is_empty() { "" } else { "=" };
                    request.changed_by = Some(format!("--{long}{separator}{value}"));
                }
            }
        }
    }
    let is_check = |gpu: &String| gpu.starts_with("compute_");
    if request.kept.is_none() && request.gpu.as_ref().is_some_and(is_check) {
        request.kept = Some(Kept::Check);
    }
    match (request.input.is_empty(), request.kept) {
        (true, Some(Kept::Option(_))) => Err(NotUnderstood::Elsewhere),
        (true, _) => Err(NotUnderstood::Inputs),
        (false, _) => Ok(request),
    }
}

type Known = &'static (&'static str, &'static str, bool, Meaning);

/// The option that a word names (`None` in it: an unknown one) and the value within the word.
fn option(word: &OsStr) -> Option<(Option<Known>, Option<OsString>)> {
    let bytes = word.as_encoded_bytes();
    if bytes.len() < 2 || bytes[0] != b'-' {
        return None;
    }
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(OsString::from(value))),
        None => (text.clone(), None),
    };
    // A value that is no text would be changed by reading it so.
    if word.to_str().is_none() {
        return Some((None, None));
    }
    let known = match name.strip_prefix("--") {
        Some(long) => OPTIONS.iter().find(|o| o.0 == long),
        None => OPTIONS.iter().find(|o| o.1 == &name[1..]),
    };
    if known.is_some() {
        return Some((known, value));
    }
    // -O3, -m64
    let glued = OPTIONS.iter().find(|o| {
        let digits = name.strip_prefix('-').and_then(|n| n.strip_prefix(o.1));
        ["O", "m"].contains(&o.1)
            && digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
    });
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    Some((glued, glued.map(|_| OsString::from(digits))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Request, NotUnderstood> {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        parse(&words)
    }

    #[test]
    fn the_spellings_of_the_hosts() {
        for line in [
            // nvcc
            "-arch=sm_90 -m64 in.ptx -o out.cubin",
            "-arch=sm_90 -m64 --generate-line-info in.ptx -o out.cubin",
            // clang
            "-m64 -O3 --gpu-name sm_90 --output-file out.cubin in.ptx",
            // Triton
            "-lineinfo -v --gpu-name=sm_90 in.ptx -o out.cubin",
            "-lineinfo -v --regAllocOptLevel=2 --gpu-name=sm_90 in.ptx -o out.cubin",
            // XLA
            "in.ptx -o out.cubin -arch=sm_90 --warn-on-spills -v",
            // nvcc -Werror all-warnings
            "-arch=sm_90 -m64 --warning-as-error in.ptx -o out.cubin",
            // CUDA.jl
            "--verbose --gpu-name sm_90 --output-file out.cubin in.ptx",
        ] {
            let found = read(line).expect(line);
            assert_eq!(
                (found.input.as_os_str(), found.output.as_os_str()),
                ("in.ptx".as_ref(), "out.cubin".as_ref())
            );
            assert_eq!(found.gpu.as_deref(), Some("sm_90"));
            assert!(found.changed_by.is_none() && found.kept.is_none(), "{line}");
            assert_eq!(found.lineinfo, line.contains("line"), "{line}");
            let carried = line.contains("regAlloc").then_some("--regAllocOptLevel=2");
            assert!(found.carried.iter().eq(carried), "{line}");
        }
    }

    #[test]
    fn what_changes_the_code_or_is_no_kernel() {
        for line in [
            "-O0",
            "-O 1",
            "--opt-level=2",
            "--maxrregcount 32",
            // TVM, by way of nvcc
            "-arch=sm_90 -m64 --register-usage-level=10",
            "-fmad=false",
            "-dlcm ca",
        ] {
            let found = read(&format!("{line} in.ptx -o out.cubin")).expect(line);
            assert!(found.changed_by.is_some() && found.kept.is_none(), "{line}");
        }
        let found = read("-O 1 in.ptx").expect("a call");
        assert_eq!(found.changed_by.as_deref(), Some("--opt-level=1"));
        for line in [
            "-c",
            "--compile-only",
            "-g --dont-merge-basicblocks --return-at-end",
            "-e k",
            "-ewp",
            "--gpu-name compute_90",
        ] {
            let found = read(&format!("{line} in.ptx -o out.cubin")).expect(line);
            assert!(found.kept.is_some(), "{line}");
        }
        assert_eq!(read("in.ptx").expect("an input").output, "elf.o");
    }

    #[test]
    fn what_is_not_known_is_not_guessed_at() {
        for (line, why) in [
            (
                "--new-option in.ptx",
                "the option --new-option is not understood",
            ),
            ("-x in.ptx", "the option -x is not understood"),
            (
                "--verbose=1 in.ptx",
                "the option --verbose=1 is not understood",
            ),
            ("-o", "the option -o is not understood"),
            ("a.ptx b.ptx", "it has not exactly one input file"),
            ("-", "it has not exactly one input file"),
            ("-o out", "it has not exactly one input file"),
            ("", "it has not exactly one input file"),
            (
                "-optf words.rsp",
                "its input is not among its words, but in a file of options, or a text",
            ),
        ] {
            let found = read(line).map_err(|e| e.to_string());
            assert_eq!(found, Err(why.to_owned()), "{line}");
        }
    }
}
