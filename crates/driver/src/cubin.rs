//! Finished cubins as input: what is known of their kernels, the passes over them, and the choice
//! between leaving a kernel alone and moving its spills.

use warpwright_launch::Launch;
use warpwright_sass::elf::info::{Attribute, Info};
use warpwright_sass::{Cubin, Elf, Instruction, Kernel, Unit};
use warpwright_target::{Gpu, lookup};

use crate::build::Built;
use crate::candidate::{Candidate, Resources};
use crate::choose::{Choice, choose};
use crate::context::{Context, PassError, request};
use crate::demote::{CAUTION, Extent, TRIED, spill_to_shared};
use crate::kernel::{Block, BlockSource};
use crate::opt::{KernelOutcome, KernelReport};
use crate::recipe::{Decision, Recipe};
use crate::residency::occupy;
use crate::rewrite::Setting;
use crate::score::score_all;

/// What a pass over a cubin made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The new cubin.
    pub cubin: Vec<u8>,
    /// What it did and what it refused, a sentence each.
    pub notes: Vec<String>,
}

/// A pass over cubins.
#[derive(Clone, Copy)]
pub struct CubinPass {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Its options (`--set NAME=VALUE`) and what they mean.
    pub options: &'static [(&'static str, &'static str)],
    apply: fn(&[u8], &Context) -> Result<Edited, PassError>,
}

impl CubinPass {
    /// Runs it.
    ///
    /// # Errors
    /// [`PassError::Request`] for an option that it does not know, or whatever the pass itself
    /// misses.
    pub fn run(&self, cubin: &[u8], context: &Context) -> Result<Edited, PassError> {
        let is_known = |name: &str| self.options.iter().any(|(known, _)| *known == name);
        if let Some(name) = context.options.keys().find(|name| !is_known(name)) {
            let text = format!("the pass `{}` has no option `{name}`", self.name);
            return Err(PassError::Request(text));
        }
        (self.apply)(cubin, context)
    }
}

/// All passes over cubins, by name.
pub const CUBIN_PASSES: &[CubinPass] = &[CubinPass {
    name: "spill-to-shared",
    about: "move the spill slots of finished kernels to shared memory (cubin -> cubin)",
    options: &[(
        "blocks",
        "only the hottest slots that fit while so many blocks per SM stay resident; else all slots",
    )],
    apply: move_spills,
}];

/// `--set blocks=N`.
fn extent(context: &Context) -> Result<Extent, PassError> {
    let Some(text) = context.option("blocks") else {
        return Ok(Extent::All);
    };
    match text.parse() {
        Ok(blocks @ 1..) => Ok(Extent::Beside(blocks)),
        _ => Err(request(format!(
            "`blocks={text}`: a number of blocks per SM is wanted"
        ))),
    }
}

/// Moves the spills of every kernel that has some, or of the one that was named. With a name, a
/// refusal is an error; without one, it is a note.
fn move_spills(cubin: &[u8], context: &Context) -> Result<Edited, PassError> {
    let gpu = gpu(cubin, context.gpu)?;
    let extent = extent(context)?;
    let mut edited = Edited {
        cubin: cubin.to_vec(),
        notes: Vec::new(),
    };
    for name in kernels(cubin, context.kernel)? {
        let moved = setting(cubin, &name, &gpu, context).and_then(|setting| {
            spill_to_shared(&edited.cubin, &name, &setting, extent).map_err(|e| e.to_string())
        });
        match moved {
            Ok(cubin) => {
                edited.notes.push(format!("{name}: spills moved, proved"));
                let contract = contract(&edited.cubin, &cubin, &name, context)?;
                let notes = contract.iter().map(|note| format!("{name}: {note}"));
                edited.notes.extend(notes);
                edited.cubin = cubin;
            }
            Err(why) if context.kernel.is_some() => return Err(request(format!("{name}: {why}"))),
            Err(why) => edited.notes.push(format!("{name}: left as it is: {why}")),
        }
    }
    Ok(edited)
}

/// What launches of a kernel must keep to since its spills moved.
fn contract(
    old: &[u8],
    new: &[u8],
    name: &str,
    context: &Context,
) -> Result<Vec<String>, PassError> {
    let kernel = |cubin: &[u8]| Cubin::parse(cubin).map(|cubin| cubin.kernel(name).cloned());
    let (Some(old), Some(new)) = (kernel(old).map_err(request)?, kernel(new).map_err(request)?)
    else {
        return Ok(Vec::new());
    };
    let mut notes = Vec::new();
    if let Some(bound) = new
        .max_threads
        .filter(|_| new.max_threads != old.max_threads)
    {
        let threads = bound.iter().fold(1u32, |all, &n| all.saturating_mul(n));
        notes.push(format!(
            "it promises blocks of at most {threads} threads; a larger launch fails"
        ));
    }
    if touches_shared(&old) {
        let launch = context.launch.filter(|launch| launch.kernel == name);
        let stated = context.dynamic_smem.or(launch.map(|l| l.dynamic_smem));
        notes.push(format!(
            "it holds for launches with at most {} bytes of dynamic shared memory; more would overwrite the \
             slots, and nothing notices",
            stated.unwrap_or(0)
        ));
    }
    Ok(notes)
}

/// The GPU: the one named, which must be of the cubin's architecture, else any of that.
///
/// # Errors
/// [`PassError::Request`] if they do not fit, or the bytes are no cubin.
pub fn gpu(cubin: &[u8], named: Option<Gpu>) -> Result<Gpu, PassError> {
    let sm = Cubin::parse(cubin).map_err(request)?.sm;
    match named {
        Some(gpu) if gpu.arch.sm != sm => Err(request(format!(
            "the cubin is for sm_{sm}, and that GPU is of sm_{}",
            gpu.arch.sm
        ))),
        Some(gpu) => Ok(gpu),
        None => lookup(&format!("sm_{sm}")).map_err(request),
    }
}

/// The names of the kernels that a request is about.
///
/// # Errors
/// [`PassError::Request`] where there is none, or the bytes are no cubin.
pub fn kernels(cubin: &[u8], only: Option<&str>) -> Result<Vec<String>, PassError> {
    let cubin = Cubin::parse(cubin).map_err(request)?;
    let entries = cubin.kernels.into_iter().filter(|kernel| kernel.is_entry);
    let wanted = entries.filter(|kernel| only.is_none_or(|name| name == kernel.name));
    let names: Vec<String> = wanted.map(|kernel| kernel.name).collect();
    match (names.is_empty(), only) {
        (true, Some(name)) => Err(request(format!("the cubin has no kernel `{name}`"))),
        (true, None) => Err(request("the cubin has no kernel")),
        _ => Ok(names),
    }
}

/// Where a kernel of a cubin will run. A cubin does not tell whether its shared memory has a dynamic
/// part, so a kernel that touches shared memory needs the size to be stated.
///
/// # Errors
/// What must be stated.
pub fn setting<'a>(
    cubin: &[u8],
    name: &str,
    gpu: &'a Gpu,
    context: &Context,
) -> Result<Setting<'a>, String> {
    let parsed = Cubin::parse(cubin).map_err(|e| e.to_string())?;
    let kernel = parsed.kernel(name).ok_or("it is gone")?;
    let info = info(cubin, name)?;
    let launch = context.launch.filter(|launch| launch.kernel == name);
    let stated = context.dynamic_smem.or(launch.map(|l| l.dynamic_smem));
    let dynamic_smem = match stated {
        None if touches_shared(kernel) => {
            return Err(
                "it uses shared memory, perhaps dynamic: name the size with \
                        --dynamic-smem (0 if there is none)"
                    .to_owned(),
            );
        }
        stated => stated.unwrap_or(0),
    };
    let block = block(&info, context.block, launch);
    match too_large(kernel, &block, gpu) {
        Some(why) => Err(why),
        None => Ok(Setting {
            gpu,
            block,
            dynamic_smem,
        }),
    }
}

/// Why the driver refuses to launch such a block.
pub fn too_large(kernel: &Kernel, block: &Block, gpu: &Gpu) -> Option<String> {
    let product = |dims: [u32; 3]| {
        dims.iter()
            .fold(1u64, |all, &n| all.saturating_mul(n.into()))
    };
    let threads = product(block.dims);
    let most = u64::from(gpu.arch.threads.per_block);
    let bound = kernel.max_threads.map(product);
    match bound {
        _ if threads > most => Some(format!(
            "a block of {threads} threads is larger than the {most} that the device allows"
        )),
        Some(bound) if threads > bound && block.source != BlockSource::Assumed => Some(format!(
            "a block of {threads} threads is larger than the {bound} that the kernel's launch bounds allow"
        )),
        _ => None,
    }
}

fn info(cubin: &[u8], name: &str) -> Result<Info, String> {
    let elf = Elf::parse(cubin).map_err(|e| e.to_string())?;
    let info = elf.info(&format!(".nv.info.{name}"));
    Ok(info.map_err(|e| e.to_string())?.unwrap_or_default())
}

fn touches_shared(kernel: &Kernel) -> bool {
    // Generic and asynchronous accesses need an address of shared memory, which comes from here, too.
    const READS_SPECIAL: u16 = 0x119;
    const SHARED_WINDOW: u128 = 0x2f;
    kernel.shared_bytes > 0
        || kernel.code.iter().any(|inst| {
            let window = inst.bits() >> 72 & 0xff == SHARED_WINDOW;
            inst.unit() == Unit::Shared || (inst.operation() == READS_SPECIAL && window)
        })
}

/// What the kernel requires wins over what the caller says, which wins over its upper bound.
fn block(info: &Info, named: Option<[u32; 3]>, launch: Option<&Launch>) -> Block {
    let stated = |attribute| {
        let record = info.get(attribute)?;
        <[u32; 3]>::try_from(record.words()).ok()
    };
    let sources = [
        (stated(Attribute::REQNTID), BlockSource::Required),
        (named, BlockSource::Option),
        (launch.map(|launch| launch.block), BlockSource::Launch),
        (stated(Attribute::MAX_THREADS), BlockSource::Bound),
    ];
    let mut known = sources.into_iter().filter_map(|(dims, source)| {
        Some(Block {
            dims: dims?,
            source,
        })
    });
    known.next().unwrap_or(Block {
        dims: [256, 1, 1],
        source: BlockSource::Assumed,
    })
}

/// `opt` for a kernel of a cubin: unchanged, or with its spills moved, as the model says.
///
/// # Errors
/// [`PassError::Request`] if the cubin cannot be read or the launch is not known well enough.
pub fn explore(
    cubin: &[u8],
    name: &str,
    gpu: &Gpu,
    context: &Context,
    margin: f64,
) -> Result<KernelOutcome, PassError> {
    let mut notes = Vec::new();
    let setting = setting(cubin, name, gpu, context);
    let known = setting.clone().unwrap_or_else(|why| {
        notes.push(format!("spill-to-shared is not offered: {why}"));
        let launch = context.launch.filter(|launch| launch.kernel == name);
        let info = info(cubin, name).unwrap_or_default();
        Setting {
            gpu,
            block: block(&info, context.block, launch),
            dynamic_smem: 0,
        }
    });
    let mut built = vec![built(cubin.to_vec(), name, &known, Recipe::default())?];
    let spills = built[0].candidate.resources.as_ref();
    if let (Ok(setting), true) = (&setting, spills.is_some_and(Resources::spills)) {
        built.push(moved(cubin, name, setting, Decision::SpillToShared)?);
    }
    for b in &mut built {
        occupy(gpu, &known.block, known.dynamic_smem, &mut b.candidate);
        let refused = b.kernel.as_ref();
        if let Some(why) = refused.and_then(|kernel| too_large(kernel, &known.block, gpu)) {
            b.candidate.residency = None;
            b.candidate.rejected = Some(why);
        }
    }
    score_all(&known, None, &mut built);
    let candidates: Vec<Candidate> = built.iter().map(|b| b.candidate.clone()).collect();
    let Choice { index, reason } = choose(&candidates, margin);
    if index > 0 {
        notes.extend(contract(cubin, &built[index].cubin, name, context)?);
    }
    let report = KernelReport {
        name: name.to_owned(),
        block: known.block.dims,
        block_source: format!("{:?}", known.block.source).to_lowercase(),
        dynamic_smem: known.dynamic_smem,
        candidates,
        chosen: index,
        reason,
        notes,
        crat: None,
    };
    Ok(KernelOutcome { report, built })
}

/// The candidate with spills moved, or rejected with the reason.
fn moved(
    cubin: &[u8],
    name: &str,
    setting: &Setting,
    decision: Decision,
) -> Result<Built, PassError> {
    let recipe = Recipe::default().with(decision);
    match spill_to_shared(cubin, name, setting, Extent::All) {
        Ok(moved) => {
            let mut built = built(moved, name, setting, recipe)?;
            if !TRIED.contains(&setting.gpu.arch.sm) {
                built.candidate.caution = Some(CAUTION.into());
            }
            Ok(built)
        }
        Err(why) => Ok(Built {
            candidate: Candidate {
                rejected: Some(why.to_string()),
                ..Candidate::new(recipe)
            },
            cubin: Vec::new(),
            kernel: None,
        }),
    }
}

fn built(
    cubin: Vec<u8>,
    name: &str,
    setting: &Setting,
    recipe: Recipe,
) -> Result<Built, PassError> {
    let kernel = Cubin::parse(&cubin).map_err(request)?.kernel(name).cloned();
    let kernel = kernel.ok_or_else(|| request(format!("the cubin has no kernel `{name}`")))?;
    Ok(Built {
        candidate: Candidate {
            resources: Some(resources(&kernel, setting.gpu)),
            ..Candidate::new(recipe)
        },
        cubin,
        kernel: Some(kernel),
    })
}

/// What a kernel of a cubin takes. Spills are counted as accesses at fixed places of the frame, like ptxas
/// does, so parts of local arrays with constant indices are among them.
pub fn resources(kernel: &Kernel, gpu: &Gpu) -> Resources {
    // The frame's start is in R1, or in a uniform register, with RZ beside it.
    let is_fixed = |inst: &&Instruction| matches!(inst.bits() >> 24 & 0xff, 0x01 | 0xff);
    let bytes = |unit| -> u32 {
        let those = kernel.code.iter().filter(|inst| inst.unit() == unit);
        those.filter(is_fixed).map(|inst| inst.access_bytes()).sum()
    };
    let first = gpu.arch.first_shared_address();
    Resources {
        registers: kernel.registers,
        stack_bytes: kernel.frame_bytes,
        spill_store_bytes: bytes(Unit::LocalStore),
        spill_load_bytes: bytes(Unit::LocalLoad),
        shared_bytes: kernel.shared_bytes.saturating_sub(first),
        barriers: 0,
    }
}
