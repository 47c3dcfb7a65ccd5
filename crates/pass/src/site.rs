//! A kernel in its surroundings, and where it will run: what a pass is given.

use warpwright_cudac::{File, Header};
use warpwright_launch::{Extent, Guard, Shape};
use warpwright_ptx::{FuncId, Function, Module};
use warpwright_sass::Parsed;
use warpwright_stencil::ir::Stencil;
use warpwright_target::{Gpu, Stair, staircase};

use crate::launch::{Block, BlockSource};
use crate::refusal::Refusal;

/// Where a kernel will run.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The target.
    pub gpu: &'a Gpu,
    /// Threads per block, and how we know.
    pub block: Block,
    /// The threads that the kernel's own bound allows, where launches that were seen have fewer: blocks of as many are
    /// not to fail.
    pub bound: Option<u32>,
    /// Dynamic shared memory in bytes per block, if it is stated or the kernel has none.
    pub dynamic_smem: Option<u32>,
    /// That of launches that were seen: for occupancy and prediction, and no promise.
    pub seen_dynamic: Option<u32>,
    /// Blocks of the grid, if a launch is known.
    pub grid: Option<u64>,
    /// The same in x, y and z, if it is known so well.
    pub grid_dims: Option<[u32; 3]>,
    /// The sizes that it goes by and that are guessed, in words.
    pub guessed: &'a str,
    /// Sizes of the kernels in CUDA C that are to be optimized for, by the names of their parameters.
    pub sizes: &'a [(String, i64)],
    /// Sums of stencils may be reordered, whatever their pragmas say.
    pub reassociate: bool,
}

impl<'a> Setting<'a> {
    /// A GPU, and nothing known of launches.
    pub fn new(gpu: &'a Gpu) -> Setting<'a> {
        Setting {
            gpu,
            block: Block::ASSUMED,
            bound: None,
            dynamic_smem: None,
            seen_dynamic: None,
            grid: None,
            grid_dims: None,
            guessed: "",
            sizes: &[],
            reassociate: false,
        }
    }

    /// The same once launches have another block: what follows a pass that shapes them sees it as the kernel's own.
    #[must_use]
    pub fn shaped(mut self, launches: &Guard, shape: Shape) -> Setting<'a> {
        let Some(block) = shape.block else {
            return self;
        };
        let made = shape.apply_to(launches);
        self.block = Block {
            dims: block,
            source: BlockSource::Required,
        };
        self.bound = None;
        self.grid_dims = made.map(|made| made.grid);
        self.grid = self.grid_dims.map(|dims| Extent::Size.of(dims));
        self
    }

    /// Multiprocessors that get no block of the launch, if it is known; of the typical board where none was named.
    pub fn idle_sms(&self) -> Option<u32> {
        let idle = self.gpu.typical_sms()?;
        let idle = u64::from(idle).checked_sub(self.grid?);
        let idle = idle.filter(|idle| *idle > 0)?;
        u32::try_from(idle).ok()
    }

    /// Dynamic shared memory in bytes per block, for occupancy and prediction; none where nobody said.
    pub fn dynamic(&self) -> u32 {
        self.seen_dynamic.unwrap_or(self.promised_dynamic())
    }

    /// The same as far as every launch keeps to it; none where nobody said.
    pub fn promised_dynamic(&self) -> u32 {
        self.dynamic_smem.unwrap_or(0)
    }

    /// The occupancy staircase with so much static shared memory.
    ///
    /// # Errors
    /// [`Refusal::Launch`].
    pub fn stairs(&self, static_smem: u32) -> Result<Vec<Stair>, Refusal> {
        let threads = self.block.threads();
        Ok(staircase(self.gpu, threads, static_smem, self.dynamic())?)
    }
}

/// A kernel of a PTX module.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// The module.
    pub module: &'a Module,
    /// The kernel in it.
    pub kernel: FuncId,
    /// Where it will run.
    pub setting: Setting<'a>,
}

impl<'a> Site<'a> {
    /// The kernel.
    pub fn function(&self) -> &'a Function {
        &self.module.functions[self.kernel]
    }
}

/// A kernel of a cubin.
#[derive(Debug, Clone, Copy)]
pub struct CubinSite<'a> {
    /// The cubin.
    pub cubin: &'a Parsed,
    /// The kernel's name.
    pub kernel: &'a str,
    /// Where it will run.
    pub setting: Setting<'a>,
}

/// A source file as it was read.
#[derive(Debug, Clone)]
pub enum Source {
    /// CUDA C.
    Cuda(File),
    /// A stencil in a language of its own.
    Stencil(Stencil),
}

/// A kernel of a source file.
#[derive(Debug, Clone, Copy)]
pub struct SourceSite<'a> {
    /// The file.
    pub source: &'a Source,
    /// The kernel's name as it is written.
    pub kernel: &'a str,
    /// Where it will run.
    pub setting: Setting<'a>,
}

impl<'a> SourceSite<'a> {
    /// The file, and the kernel in it.
    ///
    /// # Errors
    /// It is no CUDA C; [`Refusal::NoBody`].
    pub fn cuda(&self) -> Result<(&'a File, &'a Header), Refusal> {
        let Source::Cuda(file) = self.source else {
            return Err(Refusal::InTheWay("the file is not in CUDA C"));
        };
        let mut kernels = file.kernels.iter();
        let own = kernels.find(|header| header.name.text == self.kernel);
        Ok((file, own.ok_or(Refusal::NoBody)?))
    }
}
