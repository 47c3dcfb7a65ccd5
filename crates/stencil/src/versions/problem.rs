//! A stencil and the text that it came from.

use crate::evaluate::{Sizes, extent};
use crate::extract::{self, Along, record};
use crate::ir::Stencil;
use crate::replace::{Note, Refusal, Subject};
use crate::sweep::{self, Names, standalone};
use warpwright_cudac::ast::Function;
use warpwright_cudac::diag::{Diagnostic, Source};
use warpwright_cudac::{File, Header};

use warpwright_ladder::Read;

use super::{Family, Version, as_written};

/// A stencil to be computed better.
#[derive(Clone, Debug)]
pub struct Problem {
    /// What is computed.
    pub stencil: Stencil,
    /// The kernel in CUDA C, if that is the input.
    pub(super) cuda: Option<Cuda>,
}

/// A kernel of a file.
#[derive(Clone, Debug)]
pub(super) struct Cuda {
    pub(super) file: File,
    pub(super) header: Header,
    pub(super) function: Function,
    pub(super) mapping: Option<Vec<Along>>,
}

/// A launch of the kernel as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks.
    pub grid: [u64; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// By parameter: which of the stencil's parameters it is ([`sweep::parameters`]); `None`: unused.
    pub arguments: Vec<Option<usize>>,
    /// By parameter: its type.
    pub types: Vec<String>,
}

/// A text that computes the stencil.
#[derive(Clone, Debug)]
pub struct Output {
    /// CUDA C++.
    pub text: String,
    /// The names in it, where kernels were added.
    pub names: Option<Names>,
    /// Launches that were rewritten; `None` where there was no program to rewrite.
    pub launches: Option<usize>,
    /// Uses of the kernel that were left as they are.
    pub notes: Vec<Note>,
}

impl Problem {
    /// A stencil in the compact language.
    pub fn of_language(stencil: Stencil) -> Problem {
        Problem {
            stencil,
            cuda: None,
        }
    }

    /// A kernel of a file; `reassociate` permits what its pragma may not.
    pub fn of_cuda(
        file: File,
        header: &Header,
        reassociate: bool,
    ) -> Result<Problem, Vec<Diagnostic>> {
        let one = |problem| vec![problem];
        let mut stencil = extract::extract(&file, header)?;
        stencil.reassociate |= reassociate;
        let function = file.kernel(header).map_err(one)?;
        let mapping = extract::mapping(&file, header).map_err(one)?;
        let header = header.clone();
        Ok(Problem {
            stencil,
            cuda: Some(Cuda {
                file,
                header,
                function,
                mapping,
            }),
        })
    }

    /// A launch of the kernel as written that computes all points of a grid.
    pub fn launch(&self, sizes: &Sizes) -> Option<Launch> {
        let cuda = self.cuda.as_ref()?;
        let (grid, block) = cuda.threads(&self.stencil, sizes)?;
        let list = sweep::parameters(&self.stencil);
        let own = &cuda.function.parameters;
        // What is passed is one value each.
        if own.iter().any(|p| record::is_record(&cuda.file, &p.ty)) {
            return None;
        }
        let arguments = own.iter().map(|p| {
            let name = &p.name.text;
            list.iter()
                .position(|q| q.name == *name || q.name == format!("own_{name}"))
        });
        let text = &cuda.file.source.text;
        let types = own.iter().map(|p| {
            // The declaration without its name is the type.
            let (span, name) = (&p.span, &p.name.span);
            format!(
                "{}{}",
                &text[span.start..name.start],
                &text[name.end..span.end]
            )
            .replace("__restrict__", "")
        });
        Some(Launch {
            grid,
            block,
            arguments: arguments.collect(),
            types: types.collect(),
        })
    }

    /// The same kernel in a file with another text.
    pub(super) fn with_text(&self, text: String, read: &Read<'_>) -> Option<Problem> {
        let cuda = self.cuda.as_ref()?;
        let source = Source::new(&*cuda.file.source.name, text);
        let file = read(source)?;
        let own = |k: &&Header| k.name.text == cuda.header.name.text;
        let header = file.kernels.iter().find(own)?.clone();
        Problem::of_cuda(file, &header, self.stencil.reassociate).ok()
    }

    /// The text in which a version takes the place of the input.
    pub fn output(&self, version: &Version) -> Result<Output, Refusal> {
        let original = version.family == Family::Original;
        let Some(cuda) = &self.cuda else {
            let plain = as_written(&self.stencil);
            let sweep = (!original).then_some(&version.sweep);
            return Ok(Output {
                text: standalone(&self.stencil, sweep, plain.as_ref()),
                names: Some(Names::new(&self.stencil.name, &Default::default())),
                launches: None,
                notes: Vec::new(),
            });
        };
        if original {
            return Ok(Output {
                text: cuda.file.source.text.to_string(),
                names: None,
                launches: None,
                notes: Vec::new(),
            });
        }
        let subject = cuda.subject(&self.stencil)?;
        let replaced = subject.replaced(&version.sweep)?;
        Ok(Output {
            text: replaced.text,
            names: Some(replaced.names),
            launches: Some(replaced.launches),
            notes: replaced.notes,
        })
    }
}

impl Cuda {
    pub(super) fn subject<'a>(&'a self, stencil: &'a Stencil) -> Result<Subject<'a>, Refusal> {
        Ok(Subject {
            file: &self.file,
            header: &self.header,
            function: &self.function,
            stencil,
            mapping: self.mapping.as_deref().ok_or(Refusal::Geometry)?,
        })
    }

    /// A launch of the kernel as written that computes all points.
    pub(super) fn threads(&self, stencil: &Stencil, sizes: &Sizes) -> Option<([u64; 3], [u32; 3])> {
        let subject = self.subject(stencil).ok()?;
        let mut block = [1u32; 3];
        let mut last = [1i64; 3];
        for (dim, along) in stencil.all_points().values().zip(subject.mapping) {
            let (axis, shift, blocks) = match *along {
                Along::Threads { axis, shift } => (usize::from(axis), shift, false),
                Along::Blocks { axis, shift } => (usize::from(axis), shift, true),
                Along::Loop => continue,
            };
            if !blocks {
                block[axis] = [32, 4, 2][axis];
            }
            last[axis] = extent(dim.extent, sizes) - dim.high - shift;
        }
        for (threads, known) in block.iter_mut().zip(stencil.block) {
            if let Some(known) = known {
                *threads = u32::try_from(known).ok()?;
            }
        }
        let mut grid = [1; 3];
        for axis in 0..3 {
            let all = (0, i64::from(block[axis]));
            let (first, apart) = stencil.computing[axis].unwrap_or(all);
            let places = u64::try_from((last[axis] - first).max(0)).ok()?;
            grid[axis] = places.div_ceil(u64::try_from(apart).ok()?).max(1);
        }
        Some((grid, block))
    }
}
