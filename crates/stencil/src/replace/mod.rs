//! A file of CUDA C in which a kernel is launched in another way.
//!
//! Goal: the output stands in for the input. The kernel keeps its name, its parameters and its text, to the byte, and
//! so does the rest of the file; behind the kernel stand the kernels of a [`Sweep`] and `NAME_launch`, and
//! every `NAME<<<g, b, s, st>>>(…)` becomes `NAME_launch(g, b, s, st, …)`. That function compares the launch that was
//! asked for with the points of the stencil. Where it computes all of them, and nothing else speaks against it (arrays
//! that overlap, sizes beyond 32 bits, …), it launches the sweep; everywhere else it launches the kernel as written,
//! as asked for. A launch that is not found here, or that stands in another file, launches the kernel as written too:
//! no call can mean something else than before.
//!
//! Requires: a kernel that is no member; threads of which a launch says which points they compute. Of a template,
//! `NAME_launch` is one too: it has the sweep for the instance that the file uses, and launches all others as written.

mod host;

use std::collections::BTreeSet;

use warpwright_cudac::ast::Function;
use warpwright_cudac::{File, Header};

use crate::extract::Along;
use crate::ir::Stencil;
use crate::sweep::{Names, Sweep, device};
use warpwright_cudac::replace::{Insertion, avoid};
pub use warpwright_cudac::replace::{Note, Use, words};

/// A file written anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Its text.
    pub text: String,
    /// The names in it.
    pub names: Names,
    /// Launches that were rewritten.
    pub launches: usize,
    /// Uses of the kernel that were left as they are.
    pub notes: Vec<Note>,
}

/// Why a file cannot be written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The kernel is a member.
    #[error("it is a member of something")]
    Nested,
    /// What the template is instantiated with is not known.
    #[error("what it is instantiated with is not known")]
    Template,
    /// Which points a launch computes is not known.
    #[error("which points a launch of it computes cannot be told from its grid and its block")]
    Geometry,
    /// A parameter of the stencil is no parameter of the kernel.
    #[error("a value that it uses is no parameter of it")]
    Parameters,
}

/// A kernel in its file, and the stencil that it is.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The file.
    pub file: &'a File,
    /// The kernel.
    pub header: &'a Header,
    /// Its parameters.
    pub function: &'a Function,
    /// What it computes.
    pub stencil: &'a Stencil,
    /// With which threads.
    pub mapping: &'a [Along],
}

impl Subject<'_> {
    /// The file with this sweep in the place of the kernel.
    pub fn replaced(&self, sweep: &Sweep) -> Result<Replaced, Refusal> {
        if self.header.is_member || self.header.nested && self.header.template.is_none() {
            return Err(Refusal::Nested);
        }
        let taken = words(&self.file.source.text);
        let names = Names::new(&self.header.name.text, &taken);
        let host = host::Host::new(self, &names)?;
        let generated = device(self.stencil, sweep, &names, "") + &host.attempt(sweep);
        let generated = avoid(&generated, &self.macros());
        let insertion = Insertion {
            text: &format!("{generated}\n"),
            attempt: &names.attempt(),
            launcher: &host.launch(),
            header: None,
            launch: &names.launch(),
            by_pointers: &host.launch_by_pointers(),
        };
        let replaced = self.file.replaced(self.header, &insertion);
        Ok(Replaced {
            text: replaced.text,
            names,
            launches: replaced.launches,
            notes: replaced.notes,
        })
    }

    /// Macros of the file change every word that they are called.
    fn macros(&self) -> BTreeSet<String> {
        let parameters = self.function.parameters.iter();
        let own: BTreeSet<&str> = parameters.map(|p| &*p.name.text).collect();
        let names = self.file.macros.iter().map(|m| m.name.clone());
        names.filter(|name| !own.contains(&**name)).collect()
    }
}
