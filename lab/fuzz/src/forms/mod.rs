//! Every form that the emulator runs, on a device: special and random operands, bit for bit.
//!
//! [`prepare`] writes a folder: kernels of many forms each (as PTX and as machine code), the table of operands, and
//! `forms.json` with a digest of what the emulator computes for each form. `bench/forms.py` runs it where the device
//! is, with nothing but Python and the driver, and brings back the raw results of the forms that differ; [`compare`]
//! says how. Forms that need a newer device, or that no kernel here has, are listed with the reason.

mod choose;
mod compare;
mod sequences;
mod snippet;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use warpwright_emu::{DecodeError, Emulator, Options, Outcome};
use warpwright_launch::{Launch, LaunchFile};
use warpwright_ptx::opcode::{Form, table};
use warpwright_ptx::{LineIndex, Module};
use warpwright_toolkit::{Ptxas, PtxasJob, ToolError};

pub use compare::{Comparison, Difference, compare};
use snippet::{MEMORY, Snippet, Way};
use values::THREADS;

/// Most forms in one kernel.
const PER_KERNEL: usize = 120;

/// Candidates that the emulator sees at once.
const PER_TRIAL: usize = 500;

/// The PTX version of the kernels; a form that is newer has its own.
const VERSION: (u8, u8) = (9, 0);

/// `forms.json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// `warpwright.forms/1`
    pub schema: String,
    /// Threads of a launch.
    pub threads: usize,
    /// Bytes of memory of each thread.
    pub memory: usize,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// Lines of the opcode table that are not run, and why.
    pub excluded: Vec<(String, String)>,
    /// What the emulator runs into a fault, and which.
    pub faults: Vec<(String, String)>,
}

/// One kernel.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kernel {
    /// `NAME.ptx` and `NAME.cubin` hold it.
    pub name: String,
    /// Words of output per thread.
    pub words: usize,
    /// What it runs.
    pub forms: Vec<Entry>,
}

/// One form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// The instruction, or the sequence's name in a comment.
    pub text: String,
    /// Its first word of output.
    pub at: usize,
    /// Words of output.
    pub words: usize,
    /// The first half of the SHA-256 of its output.
    pub digest: String,
    /// Hardware only approximates it.
    pub approximate: bool,
    /// Its operands: name, sort and place in the table.
    pub operands: Vec<(String, String, usize)>,
}

struct Candidate {
    version: (u8, u8),
    snippet: Snippet,
}

/// Writes the campaign into a folder.
///
/// # Errors
/// A tool is missing, a file cannot be written, or the emulator fails.
pub fn prepare(ptxas: Ptxas<'_>, folder: &Path) -> Result<Manifest, String> {
    let mut excluded = Vec::new();
    let mut candidates = Vec::new();
    for form in table() {
        match choose::excluded(form) {
            Some(why) => excluded.push((form.pattern.to_owned(), why.to_owned())),
            None => candidates.extend(candidates_of(form)),
        }
    }
    candidates.extend(sequences::all().into_iter().map(|snippet| Candidate {
        version: VERSION,
        snippet,
    }));
    let mut by_version: BTreeMap<(u8, u8), Vec<Candidate>> = BTreeMap::new();
    for candidate in candidates {
        by_version
            .entry(candidate.version)
            .or_default()
            .push(candidate);
    }
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let operands = values::table();
    let mut chunks: Vec<((u8, u8), Vec<&Snippet>)> = Vec::new();
    for (&version, candidates) in &by_version {
        let snippets: Vec<&Snippet> = candidates.iter().map(|c| &c.snippet).collect();
        let supported: Vec<_> = snippets
            .par_chunks(PER_TRIAL)
            .flat_map(supported(version))
            .collect();
        chunks.extend(
            supported
                .chunks(PER_KERNEL)
                .map(|chunk| (version, chunk.to_vec())),
        );
    }
    eprintln!("{} kernels to build", chunks.len());
    let built: Vec<_> = chunks
        .par_iter()
        .enumerate()
        .map(|(number, (version, snippets))| {
            build(
                ptxas,
                folder,
                &format!("k{number:03}"),
                *version,
                snippets,
                &operands,
            )
        })
        .collect();
    let mut manifest = Manifest {
        schema: "warpwright.forms/1".into(),
        threads: THREADS,
        memory: MEMORY,
        kernels: Vec::new(),
        excluded,
        faults: Vec::new(),
    };
    for one in built {
        let (kernel, faults) = one?;
        manifest.kernels.extend(kernel);
        manifest.faults.extend(faults);
    }
    write(folder, "operands.bin", &operands)?;
    let text = serde_json::to_string(&manifest).map_err(|e| e.to_string())?;
    write(folder, "forms.json", text.as_bytes())?;
    Ok(manifest)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), String> {
    let path = folder.join(name);
    std::fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))
}

fn candidates_of(form: &'static Form) -> Vec<Candidate> {
    let version = form.version.max(VERSION);
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    let both = [false, true];
    for opcode in choose::opcodes(form) {
        for optional in both.iter().filter(|&&o| !o || choose::has_optional(form)) {
            for pair in both {
                for wide in both {
                    let way = Way {
                        optional: *optional,
                        pair,
                        wide,
                    };
                    let Some(snippet) = Snippet::new(form, &opcode, way) else {
                        continue;
                    };
                    let mut text = String::new();
                    snippet.print(0, &mut text);
                    if seen.insert(text) {
                        all.push(Candidate { version, snippet });
                    }
                }
            }
        }
    }
    all
}

/// Lines before the first piece of a kernel.
fn head(version: (u8, u8)) -> u32 {
    snippet::kernel(version, &[]).lines().count() as u32 - 2
}

/// Lines at which the pieces of a kernel end.
fn ends(version: (u8, u8), snippets: &[&Snippet]) -> Vec<u32> {
    let mut line = head(version);
    snippets
        .iter()
        .map(|snippet| {
            let mut text = String::new();
            snippet.print(0, &mut text);
            line += text.lines().count() as u32;
            line
        })
        .collect()
}

/// The pieces that the front end and the emulator take.
fn supported<'a>(version: (u8, u8)) -> impl Fn(&[&'a Snippet]) -> Vec<&'a Snippet> {
    move |snippets| {
        let mut left = snippets.to_vec();
        while !left.is_empty() {
            let lines = unsupported(&snippet::kernel(version, &left));
            if !remove(&mut left, version, &lines) {
                break;
            }
        }
        left
    }
}

/// Takes out the pieces in which these lines stand; false if there are none.
fn remove(snippets: &mut Vec<&Snippet>, version: (u8, u8), lines: &[u32]) -> bool {
    let ends = ends(version, snippets);
    let begin = head(version);
    let inside = lines.iter().filter(|&&line| line > begin);
    let bad: BTreeSet<usize> = inside
        .map(|&line| ends.partition_point(|&end| end < line))
        .collect();
    let before = snippets.len();
    let mut number = 0;
    snippets.retain(|_| {
        number += 1;
        !bad.contains(&(number - 1))
    });
    snippets.len() < before
}

/// The lines that the front end refuses, or else those that the emulator does not support.
fn unsupported(text: &str) -> Vec<u32> {
    let (module, diagnostics) = Module::parse("forms.ptx", text);
    let lines = LineIndex::new(&module.source);
    let errors = diagnostics.iter().filter(|d| d.is_error());
    let places = errors.filter_map(|d| d.labels.first());
    let refused: Vec<u32> = places
        .map(|(span, _)| lines.line_col(&module.source, span.start).line)
        .collect();
    if !refused.is_empty() {
        return refused;
    }
    match Emulator::new(&module, "k") {
        Err(DecodeError::Unsupported(all)) => all.iter().map(|u| u.place.ptx_line).collect(),
        _ => Vec::new(),
    }
}

/// How a kernel with so many words of output is launched.
fn launch(words: usize, operands: usize) -> Result<Launch, String> {
    let text = format!(
        "kernel = \"k\"\n[sizes.all]\n[launch]\ngrid = [{}]\nblock = [128]\n\
         [[args]]\nname = \"in\"\ntype = \"u8\"\nshape = [{operands}]\ninit = \"zeros\"\n\
         [[args]]\nname = \"out\"\ntype = \"u64\"\nshape = [{}]\noutput = true\n\
         [[args]]\nname = \"mem\"\ntype = \"u8\"\nshape = [{}]\ninit = \"zeros\"\n\
         [[args]]\nname = \"v\"\ntype = \"u64\"\nvalue = {PARAMETER}\n",
        THREADS / 128,
        THREADS * words,
        THREADS * MEMORY,
    );
    let file = LaunchFile::parse(&text, "forms").map_err(|e| e.to_string())?;
    file.resolve("all", &[]).map_err(|e| e.to_string())
}

/// The value of the fourth parameter.
const PARAMETER: u64 = 0x0123_4567_89ab_cdef;

/// What the emulator gives for a kernel.
struct Emulated {
    output: Vec<u8>,
    /// Lines of what hardware only approximates.
    approximate: Vec<u32>,
}

/// Where a kernel faults, and how.
struct Stopped {
    line: u32,
    why: String,
}

fn emulate(text: &str, words: usize, operands: &[u8]) -> Result<Result<Emulated, Stopped>, String> {
    let (module, _) = Module::parse("forms.ptx", text);
    let program = Emulator::new(&module, "k").map_err(|e| e.to_string())?;
    let inputs = vec![
        operands.to_vec(),
        vec![0; THREADS * words * 8],
        vec![0; THREADS * MEMORY],
    ];
    let launch = launch(words, operands.len())?;
    match program.run(&launch, inputs, &Options::default()) {
        Ok(Outcome::Finished(mut results)) => Ok(Ok(Emulated {
            output: std::mem::take(&mut results.buffers[1]),
            approximate: results
                .approximate
                .iter()
                .map(|a| a.place.ptx_line)
                .collect(),
        })),
        Ok(Outcome::Faulted(fault)) => Ok(Err(Stopped {
            line: fault.place.ptx_line,
            why: fault.to_string(),
        })),
        Err(error) => Err(error.to_string()),
    }
}

type Built = (Option<Kernel>, Vec<(String, String)>);

/// A kernel of the pieces that ptxas takes and the emulator runs.
fn build(
    ptxas: Ptxas<'_>,
    folder: &Path,
    name: &str,
    version: (u8, u8),
    snippets: &[&Snippet],
    operands: &[u8],
) -> Result<Built, String> {
    let mut left = snippets.to_vec();
    let mut faults = Vec::new();
    while !left.is_empty() {
        let text = snippet::kernel(version, &left);
        let assembled = match assemble(ptxas, &text) {
            Err(Broken::Crash) => {
                let piece = left.remove(crashing(ptxas, version, &left));
                faults.push((piece.text.clone(), "ptxas crashes".into()));
                continue;
            }
            Err(Broken::Other(why)) => return Err(why),
            Ok(assembled) => assembled,
        };
        let cubin = match assembled {
            Ok(cubin) => cubin,
            Err(lines) if remove(&mut left, version, &lines) => continue,
            Err(lines) => return Err(format!("{name}: ptxas refuses line {lines:?}")),
        };
        let words = left.iter().map(|s| s.words).sum::<usize>().max(1);
        match emulate(&text, words, operands)? {
            Ok(Emulated {
                output,
                approximate,
            }) => {
                write(folder, &format!("{name}.ptx"), text.as_bytes())?;
                write(folder, &format!("{name}.cubin"), &cubin)?;
                let ends = ends(version, &left);
                let forms = entries(&left, &ends, &approximate, &output);
                let name = name.to_owned();
                return Ok((Some(Kernel { name, words, forms }), faults));
            }
            Err(Stopped { line, why }) => {
                let ends = ends(version, &left);
                let number = ends.partition_point(|&end| end < line);
                let piece = left.get(number).ok_or_else(|| format!("{name}: {why}"))?;
                faults.push((piece.text.clone(), why));
                left.remove(number);
            }
        }
    }
    Ok((None, faults))
}

/// Why ptxas says nothing of use.
enum Broken {
    Crash,
    Other(String),
}

/// The machine code, or the lines that ptxas refuses.
fn assemble(ptxas: Ptxas<'_>, text: &str) -> Result<Result<Vec<u8>, Vec<u32>>, Broken> {
    let mut job = PtxasJob::new(text, "sm_90a");
    job.extra = vec!["--fmad=false".into()];
    match ptxas.run(&job) {
        Ok(build) => Ok(Ok(build.cubin)),
        Err(ToolError::Rejected { diagnostics, .. }) => {
            let lines: Vec<u32> = diagnostics.iter().filter_map(|d| d.line).collect();
            if lines.is_empty() {
                Err(Broken::Crash)
            } else {
                Ok(Err(lines))
            }
        }
        // An internal error names no line.
        Err(ToolError::Signal { .. }) => Err(Broken::Crash),
        Err(error) => Err(Broken::Other(error.to_string())),
    }
}

/// A piece with which ptxas crashes, found by halving.
fn crashing(ptxas: Ptxas<'_>, version: (u8, u8), snippets: &[&Snippet]) -> usize {
    let (mut begin, mut end) = (0, snippets.len());
    while end - begin > 1 {
        let middle = (begin + end) / 2;
        let text = snippet::kernel(version, &snippets[begin..middle]);
        match assemble(ptxas, &text) {
            Err(Broken::Crash) => end = middle,
            _ => begin = middle,
        }
    }
    begin
}

fn entries(snippets: &[&Snippet], ends: &[u32], approximate: &[u32], output: &[u8]) -> Vec<Entry> {
    let numbers: BTreeSet<usize> = approximate
        .iter()
        .map(|&line| ends.partition_point(|&end| end < line))
        .collect();
    let mut at = 0;
    let entry = |(number, snippet): (usize, &&Snippet)| {
        let begin = at;
        at += snippet.words;
        let operand = |(name, sort, place): &(String, values::Sort, usize)| {
            (name.clone(), format!("{sort:?}"), *place)
        };
        Entry {
            text: snippet.text.clone(),
            at: begin,
            words: snippet.words,
            digest: digest(&output[begin * THREADS * 8..at * THREADS * 8]),
            approximate: numbers.contains(&number),
            operands: snippet.operands.iter().map(operand).collect(),
        }
    };
    snippets.iter().enumerate().map(entry).collect()
}

/// The first half of the SHA-256, in hexadecimal digits.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)[..16]
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the emulator gives for one opcode, the first word of each thread.
    fn results(text: &str) -> Vec<u64> {
        let opcode = warpwright_ptx::Opcode::parse(text);
        let form = table().iter().find(|f| {
            let mods: Vec<&str> = opcode.mods().collect();
            Some(f.op) == opcode.op && f.matches(&mods)
        });
        let snippet =
            Snippet::new(form.expect("a known form"), text, Way::default()).expect("a piece");
        let text = snippet::kernel(VERSION, &[&snippet]);
        assert!(unsupported(&text).is_empty(), "{text}");
        let output = emulate(&text, snippet.words, &values::table())
            .expect("runs")
            .ok()
            .expect("no fault")
            .output;
        output
            .chunks_exact(8)
            .take(THREADS)
            .map(|c| u64::from_le_bytes(c.try_into().expect("eight")))
            .collect()
    }

    #[test]
    fn operands_are_those_of_the_table_and_results_come_out() {
        let table = values::table();
        let word = |place, thread| values::read(&table, values::Sort::Bits, place, thread);
        let sums = results("add.u32");
        let differences = results("sub.u64");
        for thread in 0..THREADS {
            let (a, b) = (word(0, thread), word(1, thread));
            assert_eq!(sums[thread], u64::from((a as u32).wrapping_add(b as u32)));
            assert_eq!(differences[thread], a.wrapping_sub(b));
        }
        assert!((0..THREADS).filter(|&t| word(0, t) == word(1, t)).count() >= 64);
    }

    #[test]
    fn a_flag_is_set_before_it_is_read() {
        let table = values::table();
        let word = |place, thread| values::read(&table, values::Sort::Bits, place, thread) as u32;
        for (thread, sum) in results("addc.u32").into_iter().enumerate() {
            let carry = word(0, thread).checked_add(word(1, thread)).is_none();
            let expected = word(2, thread)
                .wrapping_add(word(3, thread))
                .wrapping_add(carry.into());
            assert_eq!(sum, u64::from(expected));
        }
    }

    #[test]
    fn sequences_run_without_a_fault() {
        let all = sequences::all();
        let pieces: Vec<&Snippet> = all.iter().collect();
        let text = snippet::kernel(VERSION, &pieces);
        assert!(unsupported(&text).is_empty());
        let words = pieces.iter().map(|piece| piece.words).sum();
        let run = emulate(&text, words, &values::table()).expect("runs");
        assert_eq!(run.err().map(|fault| fault.why), None);
    }
}
