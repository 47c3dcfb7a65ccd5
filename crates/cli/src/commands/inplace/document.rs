//! The file of a trace.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use warpwright_pass::names::is_named;
use warpwright_winners::lines::{Launches, Note};
use warpwright_winners::{LaunchClass, identities};

use crate::args::{KernelArgs, StatedBlock};
use crate::failure::Failure;

/// `schema` of the document.
pub const SCHEMA: &str = "warpwright.trace/1";

/// What a program launched.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trace {
    /// [`SCHEMA`]
    pub schema: String,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// When (ISO 8601).
    pub date: String,
    /// The GPU; absent if nothing was launched.
    pub gpu: Option<GpuFacts>,
    /// Processes that launched something.
    pub processes: u32,
    /// Folder with the cubins (and PTX) of the modules, by digest; absent if they were not kept.
    pub modules_in: Option<String>,
    /// The modules, in the order of their first load.
    pub modules: Vec<ModuleFacts>,
    /// Why modules were not looked at, each reason once.
    pub not_seen: Vec<String>,
    /// Launches, by kernel and launch class; the most expensive first.
    pub launches: Vec<Launched>,
}

/// The GPU of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFacts {
    /// As its driver reports it.
    pub name: String,
    /// 90 for sm_90.
    pub sm: u32,
    /// Version of the driver's interface, 13000 for CUDA 13.0.
    pub driver: u32,
}

/// One module.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModuleFacts {
    /// SHA-256 of its cubin.
    pub digest: String,
    /// Did the image have PTX for the same architecture?
    pub ptx: bool,
    /// Kernels in it.
    pub kernels: usize,
}

/// Launches of one kernel in one class.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launched {
    /// Symbol.
    pub kernel: String,
    /// The name as people write it.
    pub name: String,
    /// Digest of its module, if that was seen.
    pub module: Option<String>,
    /// Digest of its machine code, if its module was seen.
    pub digest: Option<String>,
    /// Grid of the first launch.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory per block.
    pub dynamic_smem: u32,
    /// Blocks per cluster as the launch states them.
    pub cluster: Option<[u32; 3]>,
    /// Launched cooperatively?
    pub cooperative: bool,
    /// Launches on streams.
    pub launches: u64,
    /// Launches within graphs.
    pub in_graphs: u64,
    /// Nanoseconds on the GPU, by events. Time of graphs is divided among their kernels by their number.
    pub gpu_ns: u64,
    /// Part of the GPU time of all launches.
    pub share: f64,
    /// Registers per thread.
    pub registers: Option<u32>,
    /// Bytes of spill stores and loads in the code.
    pub spill_bytes: Option<u32>,
    /// Static shared memory in bytes per block.
    pub static_smem: Option<u32>,
    /// Blocks per SM as the driver's calculator has it.
    pub resident: Option<u32>,
    /// Part of the SM's warps that are resident then, in percent.
    pub occupancy: Option<f64>,
    /// Why it cannot be replaced, if so.
    pub tied: Option<String>,
    /// What limits it, whether there is something to be gained.
    pub hint: String,
}

impl Launched {
    /// The class of these launches.
    pub fn class(&self) -> Option<LaunchClass> {
        let cluster = self.cluster.unwrap_or_default();
        LaunchClass::new(self.grid, self.block, self.dynamic_smem, cluster)
    }
}

impl Trace {
    /// Reads a trace.
    pub fn read(path: &Path) -> Result<Trace, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::input(format!("cannot read `{}`: {e}", path.display())))?;
        let trace: Trace = serde_json::from_str(&text)
            .map_err(|e| Failure::input(format!("`{}` is no trace: {e}", path.display())))?;
        match trace.schema == SCHEMA {
            true => Ok(trace),
            false => Err(Failure::input(format!(
                "`{}` has the schema {}, this version reads {SCHEMA}",
                path.display(),
                trace.schema
            ))),
        }
    }
}

/// Puts block size and dynamic shared memory of `--trace` where `--block` and `--dynamic-smem` would be: those
/// of the class that cost the kernel most. What is stated beside it stands.
pub fn apply(args: &KernelArgs) -> Result<KernelArgs, Failure> {
    let mut args = args.clone();
    let Some(path) = args.trace.take() else {
        return Ok(args);
    };
    let trace = Trace::read(&path)?;
    let named = args.kernels.clone();
    let wanted =
        |l: &&Launched| named.is_empty() || named.iter().any(|name| is_named(name, &l.kernel));
    let mut kernels: Vec<&str> = trace
        .launches
        .iter()
        .filter(wanted)
        .map(|l| &*l.kernel)
        .collect();
    kernels.sort_unstable();
    kernels.dedup();
    let [_] = kernels[..] else {
        let what = match (named.first(), kernels.len()) {
            (Some(name), 0) => format!("has no launch of `{name}`"),
            (None, 0) => "has no launch".to_owned(),
            (_, n) => format!("has launches of {n} kernels; choose one with --kernel"),
        };
        return Err(Failure::input(format!("`{}` {what}", path.display())));
    };
    let dearest = trace.launches.iter().find(|l| wanted(l));
    if let Some(launched) = dearest {
        args.kernels = vec![launched.kernel.clone()];
        if args.block.is_empty() {
            args.block.push(StatedBlock {
                kernel: None,
                dims: launched.block,
            });
        }
        args.dynamic_smem = args.dynamic_smem.or(Some(launched.dynamic_smem));
        if args.gpu.is_none() {
            args.gpu = trace.gpu.map(|gpu| format!("sm_{}", gpu.sm));
        }
    }
    Ok(args)
}

/// Launches of all processes, one entry for each kernel and class.
pub fn merge(notes: Vec<Note>) -> Vec<Launches> {
    let mut merged: BTreeMap<(String, String, LaunchClass), Launches> = BTreeMap::new();
    for note in notes {
        let Note::Launches(one) = note else { continue };
        let key = (one.kernel.clone(), one.module.clone(), one.class);
        match merged.get_mut(&key) {
            None => drop(merged.insert(key, one)),
            Some(all) => {
                all.count += one.count;
                all.in_graphs += one.in_graphs;
                all.timed += one.timed;
                all.total_ns += one.total_ns;
                all.graph_ns += one.graph_ns;
            }
        }
    }
    merged.into_values().collect()
}

/// Nanoseconds of all launches: those whose time is not known count like the others.
pub fn gpu_ns(launches: &Launches) -> u64 {
    let known = launches.total_ns as f64;
    let scale = launches.count as f64 / launches.timed.max(1) as f64;
    (known * scale) as u64 + launches.graph_ns
}

/// Digests of a cubin's kernels by symbol; nothing if it cannot be read.
pub fn digests(cubin: &[u8]) -> BTreeMap<String, String> {
    let all = identities(cubin).unwrap_or_default().into_iter();
    all.map(|kernel| (kernel.name, kernel.digest)).collect()
}

pub use warpwright_pass::names::source_name as demangled;
