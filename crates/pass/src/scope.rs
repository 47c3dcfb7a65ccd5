//! What a caller states: which kernel, for which GPU, launched how. One struct for all passes and all
//! levels.

use std::collections::BTreeSet;

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_launch::{Facts, Guard, Launch, Parts, Quantity, Source as Certainty};
use warpwright_ptx::Module;
use warpwright_sass::{Elf, Kernel};
use warpwright_stencil::dsl;
use warpwright_target::{Gpu, THREADS_PER_BLOCK, UnknownGpu, lookup};

use crate::artifact::{Artifact, Language};
use crate::launch::{Block, BlockError, BlockSource, possible};
use crate::names::{is_definition_named, is_named, is_of_library, selected, source_name};
use crate::ptx::facts::{static_shared_bytes, uses_dynamic_shared};
use crate::refusal::Refusal;
use crate::site::Setting;

/// Has a kernel a bound on its blocks (`.maxntid`)?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounded {
    /// It has none.
    Not,
    /// It has one, and no other kernel stands beside it.
    Alone,
    /// It has this one, and other kernels may stand beside it, as in every program.
    AmongOthers([u32; 3]),
    /// The same of finished code, of which a larger block says that it cannot be launched.
    Finished([u32; 3]),
}

/// What a kernel's own launches say of it: of those that its program made when it ran, that of most threads; of those that
/// the source has, the first block that is a number, and what all agree on beside it. Facts about these launches, which
/// occupancy and prediction may use, and no promises of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The kernel's symbol.
    pub symbol: String,
    /// Did the program make the launch, or does its code say it?
    pub source: Certainty,
    /// Threads in x, y, z.
    pub block: Option<[u32; 3]>,
    /// Have other launches another block, or none that is a number?
    pub differ: bool,
    /// Blocks of these launches.
    pub grid: Option<u64>,
    /// The sizes that `grid` goes by and that are guessed, in words.
    pub guessed: String,
    /// Dynamic shared memory, bytes per block.
    pub dynamic_smem: Option<u32>,
    /// What is the same at all of them, as far as it is known.
    pub constants: Guard,
}

/// What the caller states. `Default` states nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope<'a> {
    /// `--gpu`; without it the architecture that the code names counts.
    pub gpu: Option<Gpu>,
    /// `--kernel`: only these kernels, as [`crate::names::selected`] reads them; all of them if there are none.
    pub kernels: &'a [String],
    /// `--block`, threads in x, y, z.
    pub block: Option<[u32; 3]>,
    /// `--block NAME=X,Y,Z`: the same of the kernels that a name is for ([`is_named`]).
    pub blocks: &'a [(String, [u32; 3])],
    /// What launches that the source has itself say ([`BlockSource::Seen`]).
    pub seen: &'a [Seen],
    /// `--dynamic-smem`, bytes per block.
    pub dynamic_smem: Option<u32>,
    /// Blocks of the launch that counts, where it was seen (`--trace`); `block` is then that launch's.
    pub grid: Option<u64>,
    /// `--grid NAME=N`: sizes of kernels in CUDA C.
    pub sizes: &'a [(String, i64)],
    /// `--fp reassociate`: sums of stencils may be reordered.
    pub reassociate: bool,
    /// `--launch`, for the kernel that it names.
    pub launch: Option<&'a Launch>,
}

/// What was stated contradicts the code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// No kernel at all.
    #[error("the {0} has no kernel")]
    NoKernels(&'static str),
    /// Not this one.
    #[error("there is no kernel `{wanted}`; the {place} has {}", known.join(", "))]
    NoSuchKernel {
        /// The name.
        wanted: String,
        /// `module`, `cubin`, `file`.
        place: &'static str,
        /// The first few that there are.
        known: Vec<String>,
    },
    /// A block that the kernel forbids.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The code names no architecture that we know.
    #[error("the module names no architecture; name a GPU with --gpu")]
    NoGpu,
    /// Machine code for another architecture.
    #[error(
        "the cubin is for {cubin} and does not run on sm_{gpu}: leave --gpu out, or build it for sm_{gpu}"
    )]
    OtherGpu {
        /// The architecture of the cubin.
        cubin: String,
        /// That of the GPU.
        gpu: u32,
    },
    /// No table for it.
    #[error("nothing is known of {0}")]
    UnknownGpu(String),
}

/// Kernels that a message names.
const SHOWN: usize = 8;

impl Bounded {
    /// A kernel of machine code with this bound.
    pub fn in_machine_code(bound: Option<[u32; 3]>) -> Bounded {
        bound.map_or(Bounded::Not, Bounded::Finished)
    }
}

/// The GPU that machine code is for; without its features where there is no table of a GPU with these.
///
/// # Errors
/// There is no table of its architecture.
pub fn gpu_of(elf: &Elf) -> Result<Gpu, UnknownGpu> {
    lookup(&elf.architecture()).or_else(|_| lookup(&format!("sm_{}", elf.target().sm)))
}

impl<'a> Scope<'a> {
    /// The GPU: the one named, else what the code is for.
    ///
    /// # Errors
    /// [`ScopeError::NoGpu`], [`ScopeError::OtherGpu`], [`ScopeError::UnknownGpu`].
    pub fn gpu(&self, artifact: &Artifact) -> Result<Gpu, ScopeError> {
        let cubin = artifact.as_cubin();
        match (artifact.as_module(), cubin, self.gpu) {
            (_, Some(cubin), Some(gpu)) if gpu.arch.sm != cubin.view().sm => {
                Err(ScopeError::OtherGpu {
                    cubin: cubin.elf().architecture(),
                    gpu: gpu.arch.sm,
                })
            }
            (_, Some(cubin), None) => {
                gpu_of(cubin.elf()).map_err(|_| ScopeError::UnknownGpu(cubin.elf().architecture()))
            }
            (_, _, Some(gpu)) => Ok(gpu),
            (Some(module), _, None) => {
                let mut targets = module.header.targets.iter();
                let stated = targets.find(|target| target.starts_with("sm_"));
                let gpu = stated.and_then(|name| lookup(name).ok());
                gpu.ok_or(ScopeError::NoGpu)
            }
            (None, None, None) => Err(ScopeError::NoGpu),
        }
    }

    /// The names of the kernels to work on: those with a body, or the one that was named.
    ///
    /// # Errors
    /// [`ScopeError::NoKernels`], [`ScopeError::NoSuchKernel`].
    pub fn kernels(&self, artifact: &Artifact) -> Result<Vec<String>, ScopeError> {
        let (place, names): (_, Vec<String>) = match (artifact.as_module(), artifact.as_cubin()) {
            (Some(module), _) => {
                let names = module.kernels().map(|(_, f)| f.name.to_string());
                ("module", names.collect())
            }
            (_, Some(cubin)) => {
                let entries = cubin.view().kernels.iter().filter(|kernel| kernel.is_entry);
                ("cubin", entries.map(|kernel| kernel.name.clone()).collect())
            }
            (None, None) => ("file", kernels_of_source(artifact)),
        };
        if names.is_empty() {
            return Err(ScopeError::NoKernels(place));
        }
        if self.kernels.is_empty() {
            let own = names.iter().filter(|name| !is_of_library(name));
            let own: Vec<String> = own.cloned().collect();
            return Ok(if own.is_empty() { names } else { own });
        }
        let mut found = BTreeSet::new();
        for wanted in self.kernels {
            let these: Vec<&str> = match place {
                // Of a source the symbols are not known.
                "file" => {
                    let names = names.iter().map(String::as_str);
                    names
                        .filter(|name| is_definition_named(wanted, name))
                        .collect()
                }
                _ => selected(wanted, &names),
            };
            if these.is_empty() {
                return Err(ScopeError::NoSuchKernel {
                    wanted: wanted.clone(),
                    place,
                    known: names.iter().take(SHOWN).map(|n| source_name(n)).collect(),
                });
            }
            found.extend(these);
        }
        Ok(names
            .iter()
            .filter(|n| found.contains(&***n))
            .cloned()
            .collect())
    }

    /// The block that was stated for a kernel: the last that names it, else the one for all. That one is not meant for
    /// a kernel with another bound of its own where neither the kernel was named nor the file has it alone.
    pub fn stated_block(&self, kernel: &str, bound: Bounded) -> Option<[u32; 3]> {
        let own = self.blocks.iter().rfind(|(name, _)| is_named(name, kernel));
        let threads = |dims: [u32; 3]| dims.iter().map(|&n| u64::from(n)).product::<u64>();
        let is_meant = |all: &[u32; 3]| match bound {
            Bounded::AmongOthers(own) if self.kernels.is_empty() => threads(*all) == threads(own),
            Bounded::Finished(own) if self.kernels.is_empty() => threads(*all) >= threads(own),
            _ => true,
        };
        own.map(|(_, dims)| *dims).or(self.block.filter(is_meant))
    }

    /// Where a kernel will run.
    ///
    /// # Errors
    /// [`ScopeError::Block`].
    pub fn setting<'g>(
        &'g self,
        artifact: &Artifact,
        kernel: &str,
        gpu: &'g Gpu,
    ) -> Result<Setting<'g>, ScopeError> {
        let launch = self.launch.filter(|launch| launch.kernel == kernel);
        let stated = self.dynamic_smem.or(launch.map(|l| l.dynamic_smem));
        let mut seen_dynamic = None;
        let (block, dynamic_smem) = match (artifact.as_module(), artifact.as_cubin()) {
            (Some(module), _) => {
                seen_dynamic = self.seen_dynamic(module, kernel, gpu);
                self.in_module(module, kernel, launch, stated)?
            }
            (_, Some(cubin)) => {
                let found = cubin.kernel(kernel);
                let has_none = found.is_some_and(|kernel| !kernel.touches_shared());
                let block = block_in_cubin(cubin.elf(), kernel, self, launch);
                let seen = self.seen(kernel);
                let most = gpu.arch.shared.per_block_opt_in;
                let fits = |bytes: &u32| {
                    let own = found.map_or(0, |kernel| kernel.shared_bytes);
                    own.checked_add(*bytes).is_some_and(|all| all <= most)
                };
                seen_dynamic = seen.and_then(|seen| seen.dynamic_smem).filter(fits);
                let block = seen.map_or(block, |seen| block.or_seen(seen));
                (block, stated.or(has_none.then_some(0)))
            }
            (None, None) => {
                let dims = self
                    .stated_block(kernel, Bounded::Not)
                    .map(|dims| (dims, BlockSource::Option));
                let dims = dims.or(launch.map(|launch| (launch.block, BlockSource::Launch)));
                let block = dims.map_or(Block::ASSUMED, |(dims, source)| Block { dims, source });
                (block, stated)
            }
        };
        // Of machine code and sources a block that is too large is said later; one that is too long, here.
        if block.stated().is_some()
            && let Err(error @ BlockError::TooLong { .. }) = possible(block.dims)
        {
            return Err(error.into());
        }
        let block = match block.source {
            BlockSource::Option if self.grid.is_some() => Block {
                source: BlockSource::Traced,
                ..block
            },
            _ => block,
        };
        let stated_grid = self.grid.or(launch.map(Launch::grid_blocks));
        // A launch that was seen counts for its own block.
        let is_its_own = |seen: &&Seen| stated_grid.is_none() && seen.block == Some(block.dims);
        let seen = self.seen(kernel).filter(is_its_own);
        let grid = stated_grid.or(seen.and_then(|seen| seen.grid));
        let bound = block.is_seen().then(|| bound(artifact, kernel)).flatten();
        Ok(Setting {
            gpu,
            block,
            bound,
            dynamic_smem,
            seen_dynamic: seen_dynamic.filter(|_| stated.is_none()),
            grid,
            grid_dims: self
                .grid
                .is_none()
                .then(|| launch.map(|l| l.grid))
                .flatten(),
            guessed: seen.map_or("", |seen| &seen.guessed),
            sizes: self.sizes,
            reassociate: self.reassociate,
        })
    }

    /// What is the same at the launches of a kernel with such blocks, where it is known: of the launch that is described, else of
    /// those that were seen.
    pub fn constants(&self, kernel: &str, block: [u32; 3]) -> Option<Guard> {
        let parts = Parts {
            cluster: false,
            dynamic_smem: false,
            ..Parts::ALL
        };
        let described = self.launch.filter(|launch| launch.kernel == kernel);
        let described =
            described.map(|launch| Facts::of(launch, Certainty::Described).guard(parts));
        let seen = self.seen(kernel).map(|seen| seen.constants.clone());
        let known = described.or(seen)?;
        (known.exact(Quantity::Block) == Some(block)).then_some(known)
    }

    fn seen(&self, kernel: &str) -> Option<&Seen> {
        self.seen.iter().find(|seen| seen.symbol == kernel)
    }

    /// Dynamic shared memory of launches that were seen, if a block of the GPU has as much beside the kernel's own.
    fn seen_dynamic(&self, module: &Module, kernel: &str, gpu: &Gpu) -> Option<u32> {
        let bytes = self.seen(kernel)?.dynamic_smem?;
        let function = &module.functions[module.function(kernel)?];
        let all = static_shared_bytes(module, function).checked_add(bytes)?;
        (all <= gpu.arch.shared.per_block_opt_in).then_some(bytes)
    }

    fn in_module(
        &self,
        module: &Module,
        kernel: &str,
        launch: Option<&Launch>,
        stated: Option<u32>,
    ) -> Result<(Block, Option<u32>), ScopeError> {
        let Some(id) = module.function(kernel) else {
            return Ok((Block::ASSUMED, stated));
        };
        let function = &module.functions[id];
        let bounded = match (function.max_ntid(), module.kernels().count()) {
            (None, _) => Bounded::Not,
            (Some(_), 1) => Bounded::Alone,
            (Some(own), _) => Bounded::AmongOthers(own),
        };
        let block = Block::of(function, self.stated_block(kernel, bounded), launch);
        let block = block.map_err(|error| match error {
            BlockError::Bound {
                kernel,
                asked,
                bound,
                ..
            } if self.grid.is_some() => BlockError::Bound {
                who: "the trace's block",
                kernel,
                asked,
                bound,
            },
            error => error,
        })?;
        let block = match self.seen(kernel) {
            Some(seen) => block.or_seen(seen),
            None => block,
        };
        let has_none = !uses_dynamic_shared(module, function);
        Ok((block, stated.or(has_none.then_some(0))))
    }
}

fn kernels_of_source(artifact: &Artifact) -> Vec<String> {
    let Some(file) = artifact.as_source() else {
        return Vec::new();
    };
    if file.language == Language::Stencil {
        return dsl::parse(&file.text).into_iter().map(|s| s.name).collect();
    }
    let file = File::parse(Source::new(&*file.name, &*file.text));
    let kernels = file.map(|file| file.kernels).unwrap_or_default();
    kernels
        .into_iter()
        .map(|header| header.name.text.to_string())
        .collect()
}

/// The threads that a kernel's own bound allows.
fn bound(artifact: &Artifact, kernel: &str) -> Option<u32> {
    let dims = match artifact.as_module() {
        Some(module) => module.functions[module.function(kernel)?].max_ntid(),
        None => artifact.as_cubin()?.kernel(kernel)?.max_threads,
    };
    let threads = dims?.iter().fold(1u32, |all, &n| all.saturating_mul(n));
    Some(threads.min(THREADS_PER_BLOCK))
}

/// What the kernel requires wins over what the caller says, which wins over its upper bound.
fn block_in_cubin(elf: &Elf, kernel: &str, scope: &Scope<'_>, launch: Option<&Launch>) -> Block {
    let stated = || {
        let sections = elf.kernel(kernel).ok()?;
        let required = elf.required_block(&sections).ok()?;
        Some((required, elf.block_bound(&sections).ok()?))
    };
    let (required, bound) = stated().unwrap_or_default();
    let named = scope.stated_block(kernel, Bounded::in_machine_code(bound));
    let sources = [
        (required, BlockSource::Required),
        (named, BlockSource::Option),
        (launch.map(|launch| launch.block), BlockSource::Launch),
        (bound, BlockSource::Bound),
    ];
    let mut known = sources.into_iter().filter_map(|(dims, source)| {
        Some(Block {
            dims: dims?,
            source,
        })
    });
    known.next().unwrap_or(Block::ASSUMED)
}

/// Why the driver refuses to launch such a block of a finished kernel.
pub fn too_large(kernel: &Kernel, block: &Block, gpu: &Gpu) -> Option<Refusal> {
    let product = |dims: [u32; 3]| {
        dims.iter()
            .fold(1u64, |all, &n| all.saturating_mul(n.into()))
    };
    let threads = product(block.dims);
    let device = u64::from(gpu.arch.threads.per_block);
    let bound = kernel.max_threads.map(product);
    let (most, who) = match bound {
        _ if threads > device => (device, "the device allows"),
        Some(bound) if threads > bound && block.is_given() => {
            (bound, "the kernel's launch bounds allow")
        }
        _ => return None,
    };
    Some(Refusal::BlockTooLarge { threads, most, who })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    const ONE: &str = ".visible .entry a() .maxntid 1024, 1, 1 { ret; }\n";
    const TWO: &str = ".visible .entry b() { ret; }\n";

    fn blocks(kernels: &[&str], scope: &Scope<'_>) -> Vec<[u32; 3]> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n{}",
            kernels.concat()
        );
        let module = Artifact::parse("k.ptx", &text).expect("valid");
        assert_eq!(module.level(), Level::Ptx);
        let gpu = lookup("h200").expect("a known GPU");
        let names = scope.kernels(&module).expect("they are there");
        let block = |name: &String| scope.setting(&module, name, &gpu).expect("it fits").block;
        names.iter().map(|name| block(name).dims).collect()
    }

    #[test]
    fn a_block_for_all_leaves_other_bounds_alone() {
        let small = ".visible .entry c() .maxntid 64, 1, 1 { ret; }\n";
        let scope = Scope {
            block: Some([256, 1, 1]),
            ..Scope::default()
        };
        let found = blocks(&[ONE, TWO, small], &scope);
        assert_eq!(found, [[1024, 1, 1], [256, 1, 1], [64, 1, 1]]);
    }

    #[test]
    fn a_launch_that_was_seen_is_known_and_promises_nothing() {
        let text = format!(".version 8.0\n.target sm_90\n.address_size 64\n{ONE}{TWO}");
        let module = Artifact::parse("k.ptx", &text).expect("valid");
        let gpu = lookup("h200").expect("a known GPU");
        let of = |name: &str, block| Seen {
            symbol: name.to_owned(),
            block: Some(block),
            grid: Some(64),
            guessed: "guessed: n = 16384".to_owned(),
            dynamic_smem: Some(40_000),
            ..Seen::default()
        };
        let seen = ["a", "b"].map(|name| of(name, [16, 16, 1]));
        let mut scope = Scope {
            seen: &seen,
            ..Scope::default()
        };
        let block =
            |scope: &Scope<'_>, name| scope.setting(&module, name, &gpu).expect("it fits").block;
        // A bound of the kernel's own is no size, where a smaller launch was seen.
        let found = block(&scope, "a");
        assert_eq!((found.dims, found.source), ([16, 16, 1], BlockSource::Seen));
        let bound = |name| scope.setting(&module, name, &gpu).expect("it fits").bound;
        assert_eq!((bound("a"), bound("b")), (Some(1024), None));
        let found = block(&scope, "b");
        assert_eq!((found.dims, found.source), ([16, 16, 1], BlockSource::Seen));
        // The kernel's own bound says how many threads, and not which way they lie.
        let as_many = [of("a", [32, 32, 1])];
        scope.seen = &as_many;
        let bound = block(&scope, "a");
        assert_eq!(
            (bound.dims, bound.source),
            ([32, 32, 1], BlockSource::BoundSeen)
        );
        scope.seen = &seen;
        let grid = |scope: &Scope<'_>| {
            let found = scope.setting(&module, "b", &gpu).expect("it fits");
            (found.grid, found.guessed.to_owned())
        };
        assert_eq!(grid(&scope), (Some(64), "guessed: n = 16384".to_owned()));
        // Of another block they say nothing, and what is stated goes before.
        scope.block = Some([64, 1, 1]);
        assert_eq!(grid(&scope), (None, String::new()));
        scope.grid = Some(7);
        let traced = block(&scope, "b");
        assert_eq!(
            (traced.source, traced.stated()),
            (BlockSource::Traced, Some([64, 1, 1]))
        );
        (scope.block, scope.grid) = (None, Some(7));
        assert_eq!(grid(&scope), (Some(7), String::new()));
        scope.grid = None;
        assert!(!found.is_given() && found.stated().is_none());
        let first = [Seen {
            differ: true,
            ..seen[1].clone()
        }];
        scope.seen = &first;
        let found = block(&scope, "b");
        assert_eq!(
            (found.dims, found.source),
            ([16, 16, 1], BlockSource::SeenFirst)
        );
        assert!(!found.is_given() && found.stated().is_none());
        scope.seen = &seen;
        scope.block = Some([64, 1, 1]);
        assert_eq!(block(&scope, "b").source, BlockSource::Option);
        scope.block = None;
        let seen = [of("b", [1024, 2, 1])];
        scope.seen = &seen;
        assert_eq!(block(&scope, "b").source, BlockSource::Assumed);
    }

    #[test]
    fn dynamic_shared_memory_that_was_seen_counts_for_occupancy_alone() {
        let dynamic = ".extern .shared .align 4 .b8 s[];\n\
                       .visible .entry d() { .reg .b32 %r; ld.shared.u32 %r, [s]; ret; }\n";
        let text = format!(".version 8.0\n.target sm_90\n.address_size 64\n{dynamic}");
        let module = Artifact::parse("k.ptx", &text).expect("valid");
        let gpu = lookup("h200").expect("a known GPU");
        let found = |bytes: u32, stated: Option<u32>| {
            let seen = [Seen {
                symbol: "d".to_owned(),
                dynamic_smem: Some(bytes),
                ..Seen::default()
            }];
            let scope = Scope {
                seen: &seen,
                dynamic_smem: stated,
                ..Scope::default()
            };
            let setting = scope.setting(&module, "d", &gpu).expect("it fits");
            (setting.dynamic(), setting.dynamic_smem)
        };
        assert_eq!(found(65_536, None), (65_536, None));
        assert_eq!(found(65_536, Some(1024)), (1024, Some(1024)));
        // More than a block of this GPU can have: that launch is not for it.
        assert_eq!(found(300_000, None), (0, None));
    }

    #[test]
    fn a_block_for_all_narrows_no_bound_among_other_kernels() {
        let (wide, narrow) = ([1024, 1, 1], [256, 1, 1]);
        let all = Scope {
            block: Some(narrow),
            ..Scope::default()
        };
        assert_eq!(blocks(&[ONE], &all), [narrow]);
        assert_eq!(blocks(&[ONE, TWO], &all), [wide, narrow]);
        let named = [("a".to_owned(), narrow)];
        let named = Scope {
            blocks: &named,
            ..all
        };
        assert_eq!(blocks(&[ONE, TWO], &named), [narrow, narrow]);
        let kernels = ["a".to_owned()];
        let alone = Scope {
            kernels: &kernels,
            ..all
        };
        assert_eq!(blocks(&[ONE, TWO], &alone), [narrow]);
    }
}
