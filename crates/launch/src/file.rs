//! The launch file: parsed once, resolved at any of its sizes.

use std::sync::Arc;

use crate::error::{LaunchError, Source};
use crate::launch::Launch;
use crate::made::{GUESS, Made, list, nowhere};
use crate::resolve::Resolver;
use crate::schema::{ArgTable, Document, LaunchTable, OneOrMany};

/// A launch description whose sizes are still open.
#[derive(Clone, Debug)]
pub struct LaunchFile {
    pub(crate) document: Document,
    source: Arc<Source>,
    guesses: Vec<usize>,
}

impl LaunchFile {
    /// Parses a description. `path` is only for messages.
    ///
    /// # Errors
    /// [`LaunchError`], with the place in the text. Every size is resolved once, so a file that parses has no unknown
    /// parameters, no impossible combinations of keys and no overflow at its own sizes.
    pub fn parse(text: &str, path: &str) -> Result<LaunchFile, LaunchError> {
        let source = Arc::new(Source {
            path: path.to_owned(),
            text: text.to_owned(),
        });
        let document: Document = toml::from_str(text).map_err(|error| {
            LaunchError::new(&source, error.span().unwrap_or(0..0), error.message())
        })?;
        let lines = text.lines().zip(1..);
        let guesses = lines.filter(|(line, _)| line.contains(GUESS));
        LaunchFile {
            document,
            source,
            guesses: guesses.map(|(_, number)| number).collect(),
        }
        .checked()
    }

    /// One that was made. Messages about it have no place.
    ///
    /// # Errors
    /// As of one that is parsed.
    pub fn made(made: Made) -> Result<LaunchFile, LaunchError> {
        let size = |(name, all): (String, Vec<(String, i64)>)| {
            let all = all.into_iter().map(|(name, n)| (name, nowhere(n)));
            (name, nowhere(all.collect()))
        };
        let tables = |all: Vec<ArgTable>| all.into_iter().map(nowhere).collect();
        let document = Document {
            source: None,
            nvcc: Vec::new(),
            kernel: nowhere(made.kernel),
            about: None,
            sizes: nowhere(made.sizes.into_iter().map(size).collect()),
            launch: LaunchTable {
                grid: nowhere(list(made.grid)),
                block: nowhere(list(made.block)),
                cluster: (!made.cluster.is_empty()).then(|| nowhere(list(made.cluster))),
                dynamic_smem: Some(nowhere(made.dynamic_smem)),
            },
            args: tables(made.args),
            symbols: tables(made.symbols),
        };
        LaunchFile {
            document,
            source: Arc::default(),
            guesses: Vec::new(),
        }
        .checked()
    }

    /// Every size resolved once.
    fn checked(self) -> Result<LaunchFile, LaunchError> {
        let file = self;
        let sizes = &file.document.sizes;
        if sizes.get_ref().is_empty() {
            let message = "there is no size: add a table `[sizes.small]`";
            return Err(LaunchError::new(&file.source, sizes.span(), message));
        }
        for size in sizes.get_ref().keys() {
            file.resolve(size, &[])?;
        }
        Ok(file)
    }

    /// The lines that are marked as guesses, from 1.
    pub fn guesses(&self) -> &[usize] {
        &self.guesses
    }

    /// The kernel's source file, relative to the description, if it names one.
    pub fn source(&self) -> Option<&str> {
        self.document.source.as_deref()
    }

    /// Options that nvcc needs to compile the source.
    pub fn nvcc(&self) -> &[String] {
        &self.document.nvcc
    }

    /// The kernel: its symbol, or its name in the source.
    pub fn kernel(&self) -> &str {
        self.document.kernel.get_ref()
    }

    /// What the kernel does, in a sentence.
    pub fn about(&self) -> Option<&str> {
        self.document.about.as_deref()
    }

    /// Names of the sizes, in alphabetical order.
    pub fn sizes(&self) -> impl Iterator<Item = &str> {
        self.document.sizes.get_ref().keys().map(String::as_str)
    }

    /// The parameters of a size; none of one that there is not.
    pub fn parameters(&self, size: &str) -> impl Iterator<Item = (&str, i64)> {
        let table = self.document.sizes.get_ref().get(size);
        let all = table.into_iter().flat_map(|table| table.get_ref());
        all.map(|(name, value)| (name.as_str(), *value.get_ref()))
    }

    /// The parameters that grow the launch: the grid and the shape of some buffer depend on them.
    pub fn scales(&self) -> Vec<&str> {
        let document = &self.document;
        let grid = document.launch.grid.get_ref().iter();
        let shapes = document
            .args
            .iter()
            .flat_map(|arg| arg.get_ref().shape.iter());
        let shapes: Vec<&str> = shapes
            .flat_map(|shape| shape.get_ref())
            .flat_map(|extent| extent.get_ref().names())
            .collect();
        let mut scales: Vec<&str> = grid.flat_map(|extent| extent.get_ref().names()).collect();
        scales.retain(|name| shapes.contains(name));
        scales.sort_unstable();
        scales.dedup();
        scales
    }

    /// Does a block's shape depend on this parameter?
    pub fn is_of_blocks(&self, name: &str) -> bool {
        let mut block = self.document.launch.block.get_ref().iter();
        block.any(|extent| extent.get_ref().names().contains(&name))
    }

    /// The parameters that shapes of buffers depend on and blocks do not: they may have other values.
    pub fn extents(&self) -> Vec<&str> {
        let args = self.document.args.iter();
        let shapes = args.flat_map(|arg| arg.get_ref().shape.iter());
        let shapes = shapes.flat_map(|shape| shape.get_ref());
        let mut extents: Vec<&str> = shapes.flat_map(|extent| extent.get_ref().names()).collect();
        extents.retain(|name| !self.is_of_blocks(name));
        extents.sort_unstable();
        extents.dedup();
        extents
    }

    /// Arguments that are floating-point numbers, of whatever size the launch is.
    pub fn numbers(&self) -> Vec<&str> {
        self.alone(true)
    }

    /// Arguments that are integers, of whatever size the launch is.
    pub fn integers(&self) -> Vec<&str> {
        self.alone(false)
    }

    /// Arguments that are one number each, which no size decides.
    fn alone(&self, is_float: bool) -> Vec<&str> {
        let is_number = |arg: &&ArgTable| {
            let ty = arg.ty.as_ref();
            let stands_alone = |value: &OneOrMany| match value {
                OneOrMany::One(expr) => expr.names().is_empty(),
                OneOrMany::Many(_) => false,
            };
            let value = arg.value.as_ref();
            ty.is_some_and(|ty| ty.get_ref().is_float() == is_float)
                && value.is_some_and(|value| stands_alone(value.get_ref()))
        };
        let args = self.document.args.iter().map(|arg| arg.get_ref());
        let names = args.filter(is_number).filter_map(|arg| arg.name.as_ref());
        names.map(|name| name.get_ref().as_str()).collect()
    }

    /// The launch at one size, with some of its parameters replaced.
    ///
    /// # Errors
    /// There is no such size or parameter, or with these overrides a value is out of its range.
    pub fn resolve(&self, size: &str, overrides: &[(String, i64)]) -> Result<Launch, LaunchError> {
        Resolver::new(&self.document, &self.source, size, overrides)?.launch()
    }
}
