//! A naive kernel, its file, and the text that a schedule makes of both.

use crate::emit::{Generated, Names, NoLauncher, expected};
use crate::ir::{Kernel, Parameter, ParameterKind};
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
    pub(super) file: File,
    pub(super) header: Header,
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
        if let Some(problem) = file.is_ambiguous(header) {
            return Err(problem);
        }
        let kernel = recognise(&file, header)?;
        let header = header.clone();
        Ok(Problem {
            kernel,
            file,
            header,
        })
    }

    /// States sizes to optimize for, as its pragma could; gives back those that it does not have.
    pub fn state(&mut self, sizes: &[(String, i64)]) -> Vec<String> {
        let known: Vec<String> = self.size_names();
        let stated = &mut self.kernel.pragma.sizes;
        let mut unknown = Vec::new();
        for (name, size) in sizes {
            if !known.contains(name) {
                unknown.push(name.clone());
                continue;
            }
            stated.retain(|(known, _)| known != name);
            stated.push((name.clone(), *size));
        }
        unknown
    }

    /// Its sizes.
    pub fn size_names(&self) -> Vec<String> {
        let parameters = self.kernel.parameters.iter();
        let is_size = |p: &&Parameter| matches!(p.kind, ParameterKind::Size(..));
        parameters.filter(is_size).map(|p| p.name.clone()).collect()
    }

    /// The sizes that predictions go by.
    pub fn expected_sizes(&self) -> Vec<(String, i64)> {
        let all = expected(&self.kernel).into_iter().enumerate();
        let name = |size: usize| self.kernel.size_name(size).to_owned();
        all.map(|(size, value)| (name(size), value)).collect()
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
