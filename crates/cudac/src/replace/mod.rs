//! A file of CUDA C in which a kernel is launched in another way.
//!
//! The kernel keeps its name, its parameters and its text, to the byte, and so does the rest of the file. Behind the
//! kernel stands what a source compiler generated, with a function `NAME_launch`, and every
//! `NAME<<<g, b, s, st>>>(…)` becomes `NAME_launch(g, b, s, st, …)`. A launch that is not found here, or that stands in
//! another file, launches the kernel as written: no call can mean something else than before.

mod launches;
mod words;

use std::collections::BTreeSet;

use crate::{File, Header};
use launches::Launch;
pub use words::{Token, tokens, words};

/// A file written anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Its text.
    pub text: String,
    /// Launches that were rewritten.
    pub launches: usize,
    /// Uses of the kernel that were left as they are.
    pub notes: Vec<Note>,
}

/// A use of the kernel that was left as it is: it gets the kernel as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its line in the input, from 1.
    pub line: usize,
    /// What it is.
    pub what: Use,
}

/// Why a use was left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A launch in front of the kernel's definition, where `NAME_launch` is not known yet.
    BeforeDefinition,
    /// A launch in the body of a macro.
    InMacro,
    /// Anything else: a pointer to the kernel, a launch of another form.
    Other,
}

/// What stands behind a kernel, and what its launches become.
#[derive(Clone, Copy, Debug)]
pub struct Insertion<'a> {
    /// Device code and host functions.
    pub text: &'a str,
    /// A header that it needs, included where the file's code begins: before any macro that would change its words.
    pub header: Option<&'a str>,
    /// The function that takes the place of `NAME<<<…>>>`: `launch(grid, block, shared, stream, …)`.
    pub launch: &'a str,
    /// A function for `cudaLaunchKernel`, put behind the others where there is such a launch; its name is that of
    /// `launch` with `_pointers`.
    pub by_pointers: &'a str,
}

impl File {
    /// The file with this behind a kernel, and its launches rewritten.
    pub fn replaced(&self, header: &Header, insertion: &Insertion<'_>) -> Replaced {
        let text = &*self.source.text;
        let kernel = &header.name.text;
        let (launches, notes) = launches::find(text, kernel, &header.span);
        let mut inserted = format!("\n\nextern \"C++\" {{\n\n{}", insertion.text);
        if launches.iter().any(|l| matches!(l, Launch::Function(_))) {
            inserted += insertion.by_pointers;
        }
        inserted += "\n}  // extern \"C++\"\n";
        let end = header.span.end;
        let mut edits = vec![(end..end, inserted)];
        if let Some(name) = insertion.header {
            let (at, is_fresh) = beginning(text);
            let line = match is_fresh {
                true => format!("#include <{name}>\n\n"),
                false => format!("\n#include <{name}>\n"),
            };
            edits.push((at..at, line));
        }
        // The name before `<<<` becomes that of the function.
        let launch = insertion.launch;
        let suffix = launch.strip_prefix(&**kernel).unwrap_or("_launch");
        let count = launches.len();
        for found in launches {
            match found {
                Launch::Chevrons {
                    name,
                    open,
                    close,
                    missing,
                    arguments,
                } => {
                    // What stands between the two stays, and so do a template's arguments.
                    edits.push((name..name, suffix.to_owned()));
                    edits.push((open, "(".to_owned()));
                    let comma = if arguments { ", " } else { "" };
                    edits.push((close, ", 0".repeat(missing) + comma));
                }
                Launch::Function(range) => edits.push((range, format!("{launch}_pointers("))),
            }
        }
        Replaced {
            text: self.replace(edits),
            launches: count,
            notes,
        }
    }
}

/// Where a text begins behind comments, and whether that is the start of a line.
fn beginning(text: &str) -> (usize, bool) {
    let Some(first) = tokens(text).into_iter().next() else {
        return (0, true);
    };
    let blanks = |text: &'_ str| text.trim_end_matches([' ', '\t']).len();
    let mut at = blanks(&text[..first.at.start]);
    if first.directive {
        at = text[..at]
            .strip_suffix('#')
            .map_or(at, |before| blanks(before));
    }
    (at, at == 0 || text[..at].ends_with('\n'))
}

/// A generated text in which no word is one of these: an underscore is added.
pub fn avoid(text: &str, taken: &BTreeSet<String>) -> String {
    words::avoid(text, taken)
}
