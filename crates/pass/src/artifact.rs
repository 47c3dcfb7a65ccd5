//! What passes are applied to: a source file, a PTX module, a cubin; verified on the way in.

use std::sync::Arc;

use warpwright_ptx::{Diagnostic, Module, verify};
use warpwright_sass::{ElfError, Parsed};

use crate::pass::Level;

/// What a source file is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Language {
    /// CUDA C.
    #[default]
    Cuda,
    /// The language of stencils; what passes make of it is CUDA C.
    Stencil,
}

/// A source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// What that is written in.
    pub language: Language,
}

#[derive(Debug, Clone)]
enum Content {
    Source(Arc<SourceFile>),
    Ptx(Arc<Module>),
    Cubin(Arc<Parsed>),
}

/// Something that a verifier has accepted.
#[derive(Debug, Clone)]
pub struct Artifact(Content);

/// What no verifier accepts.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Invalid {
    /// PTX with errors: all diagnostics, and the module that they are about.
    #[error("{}", first_error(.diagnostics))]
    Ptx {
        /// The module, as far as it could be read.
        module: Arc<Module>,
        /// What is wrong.
        diagnostics: Vec<Diagnostic>,
    },
    /// No cubin, or one that cannot be taken apart.
    #[error(transparent)]
    Elf(#[from] ElfError),
}

fn first_error(diagnostics: &[Diagnostic]) -> &str {
    let first = diagnostics.iter().find(|found| found.is_error());
    first.map_or("", |found| &found.message)
}

impl Invalid {
    /// All that is wrong, with the places in the text.
    pub fn render(&self) -> String {
        match self {
            Invalid::Ptx {
                module,
                diagnostics,
            } => {
                let errors = diagnostics.iter().filter(|found| found.is_error());
                errors.map(|found| found.render(&**module)).collect()
            }
            other => other.to_string(),
        }
    }
}

impl Artifact {
    /// A source file. What reads or compiles it is its verifier.
    pub fn source(file: SourceFile) -> Artifact {
        Artifact(Content::Source(Arc::new(file)))
    }

    /// A module that the verifier of `ptx` accepts.
    ///
    /// # Errors
    /// [`Invalid::Ptx`].
    pub fn ptx(module: Module) -> Result<Artifact, Invalid> {
        match verify(&module).map(|_| ()) {
            Ok(()) => Ok(Artifact(Content::Ptx(Arc::new(module)))),
            Err(diagnostics) => Err(Invalid::Ptx {
                module: Arc::new(module),
                diagnostics,
            }),
        }
    }

    /// PTX from its text.
    ///
    /// # Errors
    /// [`Invalid::Ptx`].
    pub fn parse(name: &str, text: &str) -> Result<Artifact, Invalid> {
        let (module, diagnostics) = Module::parse(name, text);
        match diagnostics.iter().any(Diagnostic::is_error) {
            false => Artifact::ptx(module),
            true => Err(Invalid::Ptx {
                module: Arc::new(module),
                diagnostics,
            }),
        }
    }

    /// A cubin that can be taken apart.
    ///
    /// # Errors
    /// [`Invalid::Elf`].
    pub fn cubin(bytes: impl Into<Arc<[u8]>>) -> Result<Artifact, Invalid> {
        Ok(Artifact(Content::Cubin(Arc::new(Parsed::new(bytes)?))))
    }

    /// Its level.
    pub fn level(&self) -> Level {
        match &self.0 {
            Content::Source(_) => Level::Source,
            Content::Ptx(_) => Level::Ptx,
            Content::Cubin(_) => Level::MachineCode,
        }
    }

    /// The source file, if it is one.
    pub fn as_source(&self) -> Option<&SourceFile> {
        match &self.0 {
            Content::Source(file) => Some(file),
            _ => None,
        }
    }

    /// The module, if it is PTX.
    pub fn as_module(&self) -> Option<&Module> {
        match &self.0 {
            Content::Ptx(module) => Some(module),
            _ => None,
        }
    }

    /// What a cubin holds, if it is one.
    pub fn as_cubin(&self) -> Option<&Parsed> {
        match &self.0 {
            Content::Cubin(parsed) => Some(parsed),
            _ => None,
        }
    }

    /// What would be written to a file.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Content::Source(file) => file.text.as_bytes(),
            Content::Ptx(module) => module.source.as_bytes(),
            Content::Cubin(parsed) => parsed.bytes(),
        }
    }
}
