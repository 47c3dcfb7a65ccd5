//! A naive kernel, its file, and the text that a schedule makes of both.

use crate::emit::{Generated, Names, NoLauncher};
use crate::ir::Kernel;
use crate::recognise::recognise;
use crate::replace::replaced;
use warpwright_cudac::diag::Diagnostic;
use warpwright_cudac::replace::Note;
use warpwright_cudac::{File, Header};

/// A kernel to be computed better.
#[derive(Clone, Debug)]
pub struct Problem {
    /// What it does.
    pub kernel: Kernel,
    file: File,
    header: Header,
}

/// A text in which generated kernels stand for the one that was written.
#[derive(Clone, Debug)]
pub struct Output {
    /// CUDA C++.
    pub text: String,
    /// The names in it.
    pub names: Names,
    /// Launches that were rewritten.
    pub launches: usize,
    /// Uses of the kernel that were left as they are.
    pub notes: Vec<Note>,
}

impl Problem {
    /// A kernel of a file.
    ///
    /// # Errors
    /// It is no naive kernel: the construct that is in the way.
    pub fn new(file: File, header: &Header) -> Result<Problem, Diagnostic> {
        let kernel = recognise(&file, header)?;
        let header = header.clone();
        Ok(Problem {
            kernel,
            file,
            header,
        })
    }

    /// The file with these kernels in the place of the one that was written.
    ///
    /// # Errors
    /// The kernel cannot be launched in another way.
    pub fn output(&self, generated: &Generated) -> Result<Output, NoLauncher> {
        let (replaced, names) = replaced(&self.file, &self.header, &self.kernel, generated)?;
        Ok(Output {
            text: replaced.text,
            names,
            launches: replaced.launches,
            notes: replaced.notes,
        })
    }
}
