//! Launches of a file's kernels as drafts of descriptions, and as launches to count.

use std::path::PathBuf;
use std::time::Instant;

use warpwright_cudac::ast::Function;
use warpwright_cudac::diag::Source as Text;
use warpwright_cudac::{File, Header};
use warpwright_launch::{Launch, Source};
use warpwright_pass::names::{base_name, template_arguments};
use warpwright_ptx::Module;
use warpwright_target::{Gpu, Resources, occupancy};

use crate::code::HostCode;
use crate::counted::{Counted, halved, labelled, whole_or_parts};
use crate::draft::{Contents, Draft, Memory, Named};
use crate::error::Error;
use crate::kernel;
use crate::make::Ground;
use crate::seen::Seen;
use crate::trial::{self, Trial};

/// Blocks that are tried where nobody knows one and the usual one faults.
const OTHER_BLOCKS: [&[u32]; 6] = [&[32, 8], &[128], &[64], &[32], &[32, 32], &[16, 16]];

/// A launch that was seen: grid, block, and bytes of dynamic shared memory.
pub type Traced = ([u32; 3], [u32; 3], u32);

/// What is known of a launch beside the code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stated<'a> {
    /// Threads per block, as the user says.
    pub block: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory, as the user says.
    pub dynamic_smem: Option<u32>,
    /// The launch that a trace saw.
    pub traced: Option<Traced>,
    /// The same with what it was given, if its program ran without a GPU.
    pub seen: Option<&'a Launch>,
    /// The arguments of that run, where nobody stated them.
    pub tried: Option<&'a str>,
}

/// A file whose launches are described.
pub struct Code<'a> {
    file: &'a File,
    /// With its own headers.
    whole: Option<File>,
    /// The text behind those of the user's headers.
    host: String,
    module: &'a Module,
    symbols: Vec<String>,
    nvcc: &'a [String],
    gpu: Gpu,
}

/// A kernel of a file.
pub struct Kernel<'c> {
    /// Its symbol.
    pub symbol: String,
    file: &'c File,
    header: Option<&'c Header>,
}

/// What became of a launch.
pub struct Described {
    /// The description.
    pub draft: Draft,
    /// What came of running its small size.
    pub trial: Trial,
}

impl<'a> Code<'a> {
    /// A file's text with the texts of the user's headers, those that include others first, and what nvcc makes of it with
    /// these options for a GPU.
    pub fn new(
        (file, text, mut headers): (&'a File, &str, Vec<String>),
        (module, nvcc): (&'a Module, &'a [String]),
        gpu: Gpu,
    ) -> Code<'a> {
        headers.reverse();
        headers.push(text.to_owned());
        let host = headers.join("\n");
        let whole = match host.len() == text.len() {
            true => None,
            false => File::parse(Text::new(&*file.source.name, &*host)).ok(),
        };
        Code {
            file,
            whole,
            host,
            module,
            symbols: module.kernels().map(|(_, f)| f.name.to_string()).collect(),
            nvcc,
            gpu,
        }
    }

    /// All kernels by their symbols.
    pub fn symbols(&self) -> &[String] {
        &self.symbols
    }

    /// The kernel that is wanted; the only one, if nobody says which.
    ///
    /// # Errors
    /// No kernel is it, or several are.
    pub fn kernel(&self, wanted: Option<&str>) -> Result<Kernel<'_>, Error> {
        let asked = (&self.symbols[..], wanted);
        let (file, header, symbol) = kernel::defined((self.file, self.whole.as_ref()), asked)?;
        Ok(Kernel {
            symbol,
            file,
            header,
        })
    }

    fn ground<'g>(
        &'g self,
        kernel: &'g Kernel<'_>,
        function: &'g Function,
        stated: &'g Stated<'g>,
    ) -> Ground<'g> {
        Ground {
            file: kernel.file,
            host: &self.host,
            module: self.module,
            symbol: &kernel.symbol,
            function,
            nvcc: self.nvcc,
            gpu: &self.gpu,
            stated,
            seen: stated.seen.map(Seen::new),
        }
    }

    /// The description of a kernel's launch, as far as no guess is tried later than an instant.
    ///
    /// # Errors
    /// No description has such parameters, the kernel's head is not understood, or no block of the GPU is that large.
    pub fn describe(
        &self,
        kernel: &Kernel<'_>,
        stated: &Stated<'_>,
        until: Instant,
    ) -> Result<Described, Error> {
        let function = kernel::head(kernel.file, kernel.header, &kernel.symbol)?;
        let ground = self.ground(kernel, &function, stated);
        let mut bases = vec![ground.draft(None)?];
        can_be_launched(&bases[0], &self.gpu)?;
        if bases[0].block_source == Source::Guessed && !bases[0].is_bound {
            for block in OTHER_BLOCKS {
                bases.push(ground.draft(Some(block))?);
            }
        }
        let limits = trial::ASKED.until(until);
        let best = trial::best(&ground, &bases, self.module, limits).ok_or(Error::NoDraft)?;
        let as_it_runs = trial::as_it_runs(self.module, &best, limits);
        let (draft, found) = best;
        let trial = as_it_runs.unwrap_or(found);
        Ok(Described { draft, trial })
    }

    /// The code's own launch of a kernel to be run to count, as it is or else made small, as far as it has a description;
    /// no guess is tried later than an instant.
    pub fn counted(
        &self,
        symbol: &str,
        stated: &Stated<'_>,
        until: Instant,
    ) -> Option<Vec<Counted>> {
        let kernel = self.kernel(Some(symbol)).ok()?;
        let symbol = &kernel.symbol;
        let code = HostCode::new(&self.host, self.nvcc);
        let launches = code.launches(&base_name(symbol), &template_arguments(symbol));
        launches.first()?;
        let function = kernel::head(kernel.file, kernel.header, symbol).ok()?;
        let ground = self.ground(&kernel, &function, stated);
        let base = ground.draft(None).ok()?;
        let limits = trial::UNASKED.until(until);
        let (draft, _) = trial::best(&ground, &[base], self.module, limits)?;
        counted(&draft, stated)
    }
}

/// The launch of a draft, whole or made small.
fn counted(draft: &Draft, stated: &Stated<'_>) -> Option<Vec<Counted>> {
    let described = draft.file().ok()?;
    let own = remarks(draft, stated);
    let guesses = |named: Vec<&Named>| {
        let guessed = named.into_iter().filter(is_guessed);
        let guessed = guessed.map(|named| format!("{} = {}", named.name, whole(draft, named)));
        labelled("guessed", &guessed.collect::<Vec<_>>())
    };
    let guessed = guesses(draft.names.iter().collect());
    // Sizes of memory that nobody knows leave a grid that goes by none of them what it is.
    // What a grid that is known solves takes nothing from it.
    let mut of_grid = draft.of_grid();
    of_grid.retain(|named| !draft.solved.contains_key(&named.root));
    let is_known_grid =
        draft.grid_source != Source::Guessed && !of_grid.iter().any(|n| is_unknown(draft, n));
    let sized = |shift: u32| {
        let names = draft.names.iter();
        let names = names.map(|named| (&*named.name, whole(draft, named), named.small));
        let (sizes, smaller) = halved(names, shift);
        let is_whole = smaller.is_none();
        let is_own = is_whole
            && draft.grid_source != Source::Guessed
            && !draft.names.iter().any(|named| is_unknown(draft, named));
        let at = [Some(own.clone()), guessed.clone(), smaller];
        Some(Counted {
            launch: described.resolve("full", &sizes).ok()?,
            folder: PathBuf::new(),
            at: at.into_iter().flatten().collect::<Vec<_>>().join(", "),
            source: Source::Host,
            is_known_block: draft.block_source != Source::Guessed && !draft.differ,
            is_smaller: !is_own,
            guessed: (is_whole && is_known_grid)
                .then(|| guesses(of_grid.clone()).unwrap_or_default()),
        })
    };
    Some(whole_or_parts(&sized))
}

/// What a launch to count is, in words.
fn remarks(draft: &Draft, stated: &Stated<'_>) -> String {
    let is_guess = |source: Source| source == Source::Guessed;
    let own = [
        Some(match stated.traced {
            Some(_) => "the traced launch",
            None => "the code's own launch",
        }),
        stated.block.map(|_| "blocks as --block says"),
        is_guess(draft.block_source).then_some("threads per block guessed"),
        is_guess(draft.grid_source).then_some("blocks guessed"),
        draft
            .memory()
            .any(holds_guesses)
            .then_some("contents of integer arrays guessed"),
    ];
    own.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Integers that accesses and branches may go by.
fn holds_guesses(memory: &Memory) -> bool {
    use Contents::{Indices, Narrow, Sorted};
    matches!(memory.contents, Indices(_) | Narrow(_) | Sorted(_))
}

fn is_unknown(draft: &Draft, named: &Named) -> bool {
    !named.is_scalar && named.root.value.is_none() && !draft.solved.contains_key(&named.root)
}

/// Of a size that nobody knows the small one tells as much.
fn whole(draft: &Draft, named: &Named) -> i64 {
    match is_unknown(draft, named) {
        true => named.small,
        false => named.full,
    }
}

fn is_guessed(named: &&Named) -> bool {
    named.source == Source::Guessed
}

/// What is stated has to fit a block of the GPU.
fn can_be_launched(draft: &Draft, gpu: &Gpu) -> Result<(), Error> {
    let block = draft.block.iter();
    let smem = draft
        .dynamic_smem
        .number()
        .and_then(|n| u32::try_from(n).ok());
    let need = Resources {
        block_threads: block.fold(1, |threads: u32, extent| threads.saturating_mul(*extent)),
        dynamic_smem: smem.unwrap_or(0),
        regs: 1,
        ..Resources::default()
    };
    occupancy(gpu, &need)?;
    Ok(())
}
