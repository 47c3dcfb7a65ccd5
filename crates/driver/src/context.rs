//! What a pass is told beside the module: which kernel, for which GPU, launched how, towards which
//! goal. One struct for all passes, so that a pass that needs one fact more adds it here once.

use std::collections::BTreeMap;

use warpwright_launch::Launch;
use warpwright_ptx::{FuncId, Function, Module};
use warpwright_target::{Gpu, lookup};

use crate::kernel::{Block, block_of};
use crate::opt;

/// The parameters of a pass. `Default` states nothing.
#[derive(Clone, Debug, Default)]
pub struct Context<'a> {
    /// `--gpu`; without it the module's own `.target` counts.
    pub gpu: Option<Gpu>,
    /// `--kernel`: only this kernel.
    pub kernel: Option<&'a str>,
    /// `--block`, threads in x, y, z.
    pub block: Option<[u32; 3]>,
    /// `--dynamic-smem`, bytes per block.
    pub dynamic_smem: Option<u32>,
    /// `--launch`, for the kernel that it names.
    pub launch: Option<&'a Launch>,
    /// `--regs`: the goal, in 32-bit registers per thread.
    pub regs: Option<u32>,
    /// `--set NAME=VALUE`: options of one pass; see [`crate::passes::Pass::options`].
    pub options: BTreeMap<String, String>,
}

/// What a pass made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The text it prints: the module's, rewritten or annotated.
    pub text: String,
    /// What it did and what it refused, a sentence each.
    pub notes: Vec<String>,
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        let notes = Vec::new();
        Output { text, notes }
    }
}

/// Why a pass could not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PassError {
    /// What was asked for contradicts the module or itself, or is not enough.
    #[error("{0}")]
    Request(String),
    /// Our own mistake.
    #[error("{0}")]
    Internal(String),
}

impl<'a> Context<'a> {
    /// The GPU: the one named, else what the module's `.target` says.
    ///
    /// # Errors
    /// [`PassError::Request`] where neither names a GPU that we know.
    pub fn gpu(&self, module: &Module) -> Result<Gpu, PassError> {
        if let Some(gpu) = self.gpu {
            return Ok(gpu);
        }
        let mut targets = module.header.targets.iter();
        let stated = targets.find(|target| target.starts_with("sm_"));
        stated.and_then(|name| lookup(name).ok()).ok_or_else(|| {
            PassError::Request("the module names no architecture; name a GPU with --gpu".into())
        })
    }

    /// The kernels to work on: those with a body, or the one that was named.
    ///
    /// # Errors
    /// [`PassError::Request`] where there is none.
    pub fn kernels<'m>(
        &self,
        module: &'m Module,
    ) -> Result<Vec<(FuncId, &'m Function)>, PassError> {
        let wanted = opt::kernels(module, self.kernel).map_err(request)?;
        let all = module.kernels();
        Ok(all
            .filter(|(_, f)| f.body.is_some() && wanted.iter().any(|w| w.name == f.name))
            .collect())
    }

    /// The block that a kernel is launched with, and how we know.
    ///
    /// # Errors
    /// [`PassError::Request`] where the kernel forbids what was asked for.
    pub fn block(&self, function: &Function) -> Result<Block, PassError> {
        block_of(function, self.block, self.launch_of(function)).map_err(request)
    }

    /// Dynamic shared memory in bytes per block; 0 if nobody said.
    pub fn dynamic_smem(&self, function: &Function) -> u32 {
        let described = || self.launch_of(function).map(|launch| launch.dynamic_smem);
        self.dynamic_smem.or_else(described).unwrap_or_default()
    }

    /// The value of `--set NAME=…`.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    fn launch_of(&self, function: &Function) -> Option<&'a Launch> {
        self.launch
            .filter(|launch| *launch.kernel == *function.name)
    }
}

/// An error of the caller.
pub fn request(error: impl ToString) -> PassError {
    PassError::Request(error.to_string())
}
