//! What a result is, and whether the name of its file says something else.

use std::path::Path;

use warpwright_diag::Problem;

/// What a result is, which the ending of its file must not contradict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A bare cubin.
    Cubin,
    /// PTX.
    Ptx,
    /// CUDA C.
    Cuda,
    /// A host file or fat binary with its cubins replaced.
    Host,
    /// A page.
    Page,
    /// A report of a mistake.
    Report,
}

/// Endings of texts that no result of a kernel is.
const TEXTS: [&str; 10] = [
    "html", "json", "md", "sass", "stencil", "toml", "c", "cc", "h", "hpp",
];
/// Endings of what a host's linker writes or takes.
const OF_HOST: [&str; 7] = ["a", "dll", "exe", "lib", "o", "obj", "so"];

impl Kind {
    /// Endings that say something else.
    fn contradicted_by(self, ending: &str) -> bool {
        let is_text = TEXTS.contains(&ending) || ["cpp", "cxx"].contains(&ending);
        let is_host = OF_HOST.contains(&ending) || ending == "fatbin";
        match self {
            Kind::Cubin => is_text || is_host || ["cu", "cuh", "ptx", "txt"].contains(&ending),
            Kind::Ptx => is_text || is_host || ["cu", "cuh", "cubin"].contains(&ending),
            Kind::Cuda => {
                let is_source = ["c", "cc", "cpp", "cxx", "h", "hpp"].contains(&ending);
                (is_text && !is_source) || is_host || ["cubin", "ptx"].contains(&ending)
            }
            Kind::Page | Kind::Report => {
                let is_code = ["cu", "cuh", "cubin", "ptx"].contains(&ending);
                let is_written = match self {
                    Kind::Page => "html",
                    _ => "md",
                };
                is_code || is_host || (is_text && ending != is_written)
            }
            Kind::Host => is_text || ["cu", "cuh", "cubin", "ptx", "txt"].contains(&ending),
        }
    }

    /// In words.
    fn name(self) -> &'static str {
        match self {
            Kind::Cubin => "machine code (a bare cubin)",
            Kind::Ptx => "PTX",
            Kind::Cuda => "CUDA C",
            Kind::Host => "FILE with its machine code replaced",
            Kind::Page => "a page (HTML)",
            Kind::Report => "a report",
        }
    }

    /// Does the name of OUT fit what is written there?
    ///
    /// # Errors
    /// [`Problem::Usage`]: its ending says something else.
    pub fn fits(self, output: &Path) -> Result<(), Problem> {
        let ending = ending(output);
        match self.contradicted_by(&ending) {
            false => Ok(()),
            true => Err(Problem::Usage(format!(
                "the result is {}: OUT is not to end in .{ending}",
                self.name()
            ))),
        }
    }
}

/// The ending of a name, in small letters.
pub(crate) fn ending(path: &Path) -> String {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.map(str::to_ascii_lowercase).unwrap_or_default()
}
