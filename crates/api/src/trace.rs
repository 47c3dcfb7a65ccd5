//! Which kernels a program launched, and where its GPU time went: the notes of the library that a program loads, as a
//! document.

mod screen;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde::{Deserialize, Serialize};
use warpwright_diag::count;
use warpwright_driver::build::{known_spills, resources_of};
use warpwright_launch::{Field, Guard, Quantity};
use warpwright_pass::names::source_name;
use warpwright_pass::ptx::specialize::loaded;
use warpwright_ptx::{FuncId, Module};
use warpwright_sass::{Cubin, Kernel};
use warpwright_target::{Gpu, Resources, lookup, occupancy};
use warpwright_winners::lines::{Launches, Note, Steady, parse};
use warpwright_winners::ties::bond;
use warpwright_winners::values::{Taken, Values, digits, from_digits};
use warpwright_winners::{LaunchClass, identities};

use crate::Error;

pub use screen::shortened;

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
    /// Launches, by kernel and launch class; the most expensive first (without a GPU: those of the most threads).
    pub launches: Vec<Launched>,
    /// What is to be known of a trace that was made without a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_gpu: Option<WithoutGpu>,
}

/// How far a trace holds that was made on the stand-in for CUDA.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithoutGpu {
    /// Launches up to this one, counted from 1, rest on nothing that was not computed; all do if it is absent.
    pub exact_until: Option<u64>,
    /// Launches up to this one rest on no result that GPUs round otherwise, of a kernel with functions that they
    /// approximate; all do not if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounded: Option<Noted>,
    /// Kernels that did not run in the emulator, each once, in the order of their launches.
    pub not_computed: Vec<Noted>,
    /// What kernels did wrong.
    pub faults: Vec<Noted>,
    /// Functions of the runtime that the program asked for in vain.
    pub unanswered: Vec<String>,
    /// Why the program was ended.
    pub ended: Option<String>,
}

/// Something about a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// Its number, counted from 1.
    pub launch: u64,
    /// Symbol.
    pub kernel: String,
    /// What.
    pub why: String,
}

/// What the first launch of a class was given (without a GPU).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Number of the launch, counted from 1.
    pub launch: u64,
    /// The bytes of the parameters in hexadecimal digits; none if their sizes are not known.
    pub parameters: String,
    /// What of them points into allocations.
    pub pointers: Vec<Pointed>,
    /// What the variables of its module held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

impl Given {
    /// The bytes of the parameters.
    pub fn bytes(&self) -> Vec<u8> {
        let pairs = self.parameters.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        pairs.map_while(byte).collect()
    }
}

/// A variable of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Symbol.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// SHA-256 of what it held before the launch, unless it is large.
    pub digest: Option<String>,
}

/// What stayed the same over launches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stayed {
    /// The grid did.
    pub grid: bool,
    /// The bytes of the parameters in hexadecimal digits: `..` for those that changed, and for pointers.
    pub parameters: String,
    /// Of each parameter its first byte among them, and its size.
    pub places: Vec<(u32, u32)>,
}

impl Stayed {
    /// The bytes; none for those that are not known.
    fn bytes(&self) -> Vec<Option<u8>> {
        from_digits(&self.parameters).unwrap_or_default()
    }

    /// The numbers that a kernel loads of its parameters, as far as they stayed.
    pub fn numbers(&self, module: &Module, kernel: FuncId) -> Guard {
        let bytes = self.bytes();
        let known = loaded(module, kernel).into_iter();
        let known = known.filter_map(|field| Some((field, self.value(field, &bytes)?)));
        known.fold(Guard::always(), |all, (field, value)| {
            all.equal(Quantity::Param(field), value)
        })
    }

    /// The value of a field, if all its bytes are known.
    fn value(&self, field: Field, bytes: &[Option<u8>]) -> Option<u64> {
        let &(first, size) = self.places.get(field.param())?;
        let param = bytes.get(first as usize..(first + size) as usize)?;
        let own = param.get(field.at()..field.at() + field.bytes())?;
        own.iter()
            .rev()
            .try_fold(0, |all: u64, byte| Some(all << 8 | u64::from((*byte)?)))
    }
}

/// Launches of a class that were given the same, but for pointers and what changes all the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Valued {
    /// Their grid, if it is one.
    pub grid: Option<[u32; 3]>,
    /// The bytes of their parameters as in [`Stayed`].
    pub parameters: String,
    /// Launches on streams.
    pub launches: u64,
    /// Nanoseconds on the GPU.
    pub gpu_ns: u64,
}

/// A pointer among parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointed {
    /// Where it stands among the parameters, in bytes.
    pub at: u32,
    /// Number of the allocation, counted from 1.
    pub allocation: u64,
    /// Bytes of the allocation.
    pub size: u64,
    /// Where it points, in bytes from the allocation's begin.
    pub offset: u64,
    /// SHA-256 of what the allocation held before the launch, unless it is large.
    pub digest: Option<String>,
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
    /// Bytes of spill stores and loads in the code; absent where nothing tells them from local arrays.
    pub spill_bytes: Option<u32>,
    /// Bytes of a thread's stack.
    #[serde(default)]
    pub stack_bytes: Option<u32>,
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
    /// What the first of these launches was given (without a GPU).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Given>,
    /// What all of them were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stayed: Option<Stayed>,
    /// The few kinds of them, the most expensive first; none where all are one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Valued>,
}

impl Launched {
    /// Blocks of the first launch.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Threads of all launches.
    pub fn threads(&self) -> u64 {
        let block: u64 = self.block.iter().map(|&n| u64::from(n)).product();
        let launches = self.launches + self.in_graphs;
        self.blocks().saturating_mul(block).saturating_mul(launches)
    }

    /// The class of these launches.
    pub fn class(&self) -> Option<LaunchClass> {
        let cluster = self.cluster.unwrap_or_default();
        LaunchClass::new(self.grid, self.block, self.dynamic_smem, cluster)
    }
}

impl WithoutGpu {
    /// Can a launch not rest on a result that was not computed?
    pub fn is_exact(&self, launch: u64) -> bool {
        self.exact_until.is_none_or(|last| launch <= last)
    }

    /// Had all kernels before a launch run?
    pub fn is_computed(&self, launch: u64) -> bool {
        let gap = self.not_computed.first();
        gap.is_none_or(|first| launch <= first.launch)
    }
}

impl Trace {
    /// The launches of a kernel, those of most threads first; without a GPU those alone that rest on nothing that was
    /// not computed.
    pub fn of<'a>(&'a self, kernel: &'a str) -> impl Iterator<Item = &'a Launched> {
        let is_exact = |launched: &&Launched| match (&self.without_gpu, &launched.given) {
            (Some(without), Some(given)) => without.is_exact(given.launch),
            (without, _) => without.is_none(),
        };
        let all = self.launches.iter().filter(is_exact);
        all.filter(move |launched| launched.kernel == kernel)
    }

    /// Reads a trace.
    ///
    /// # Errors
    /// [`Error::NoTrace`], [`Error::TraceSchema`].
    pub fn parse(name: &str, text: &str) -> Result<Trace, Error> {
        let trace: Trace = serde_json::from_str(text).map_err(|error| Error::NoTrace {
            name: name.to_owned(),
            error,
        })?;
        match trace.schema == SCHEMA {
            true => Ok(trace),
            false => Err(Error::TraceSchema {
                name: name.to_owned(),
                schema: trace.schema,
            }),
        }
    }
}

/// What the library wrote into a folder, as a document; `date` goes into it (ISO 8601).
///
/// # Errors
/// [`Error::Unread`], [`Error::Notes`].
pub fn read(folder: &Path, program: &[OsString], date: String) -> Result<Trace, Error> {
    let seen = notes(folder, "modules")?;
    let mut not_seen: Vec<String> = Vec::new();
    let mut modules: Vec<ModuleFacts> = Vec::new();
    let mut code: BTreeMap<String, Code> = BTreeMap::new();
    for note in seen {
        match note {
            Note::Unknown(why) if !not_seen.contains(&why) => not_seen.push(why),
            Note::Module(digest) if !code.contains_key(&digest) => {
                let path = folder.join(format!("{digest}.cubin"));
                let Ok(cubin) = std::fs::read(&path) else {
                    continue;
                };
                let digests = digests(&cubin);
                let text = std::fs::read_to_string(path.with_extension("ptx")).ok();
                modules.push(ModuleFacts {
                    digest: digest.clone(),
                    ptx: text.is_some(),
                    kernels: digests.len(),
                });
                let parsed = Cubin::parse(&cubin).ok();
                code.insert(
                    digest,
                    Code {
                        cubin,
                        parsed,
                        ptx: text.map(|text| Module::parse("module.ptx", &text).0),
                        digests,
                    },
                );
            }
            _ => {}
        }
    }
    let launches = notes(folder, "launches")?;
    let gpu = launches.iter().find_map(|note| match note {
        Note::Gpu(sm, driver, name) => Some(GpuFacts {
            name: name.clone(),
            sm: *sm,
            driver: *driver,
        }),
        _ => None,
    });
    let without_gpu = without_gpu(&launches, folder);
    let (given, timed) = (given(&launches), without_gpu.is_none());
    let (stayed, mut values) = (stayed(&launches), values(&launches));
    let processes = launches
        .iter()
        .filter(|n| matches!(n, Note::Process(..)))
        .count() as u32;
    let merged = merge(launches);
    let total: u64 = merged.iter().map(gpu_ns).sum();
    let mut rows: Vec<Launched> = merged
        .iter()
        .map(|l| {
            let key = (l.kernel.clone(), l.module.clone(), l.class);
            Launched {
                given: given.get(&key).cloned(),
                stayed: stayed.get(&key).cloned(),
                values: values.remove(&key).unwrap_or_default(),
                ..launched(l, total, code.get(&l.module), gpu.as_ref(), timed)
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let cost = |l: &Launched| match without_gpu {
            Some(_) => l.threads(),
            None => l.gpu_ns,
        };
        cost(b).cmp(&cost(a)).then_with(|| a.kernel.cmp(&b.kernel))
    });
    Ok(Trace {
        schema: SCHEMA.into(),
        program: program
            .iter()
            .map(|w| w.to_string_lossy().into_owned())
            .collect(),
        date,
        gpu,
        processes,
        modules_in: None,
        modules,
        not_seen,
        launches: rows,
        without_gpu,
    })
}

/// What the stand-in said, if it was one that wrote the notes: it names a GPU and times nothing.
fn without_gpu(notes: &[Note], folder: &Path) -> Option<WithoutGpu> {
    if !folder.join(STAND_IN).exists() {
        return None;
    }
    let mut without = WithoutGpu::default();
    for note in notes {
        let noted = |launch: &u64, kernel: &String, why: &String| Noted {
            launch: *launch,
            kernel: kernel.clone(),
            why: why.clone(),
        };
        match note {
            Note::Uncomputed(launch, why, kernel) => {
                without.not_computed.push(noted(launch, kernel, why));
            }
            Note::Fault(launch, kernel, what) => without.faults.push(noted(launch, kernel, what)),
            Note::Exact(launch) => {
                let least = without.exact_until.unwrap_or(u64::MAX).min(*launch);
                without.exact_until = Some(least);
            }
            Note::Rounded(launch, kernel) => {
                let why = "functions that GPUs approximate".to_owned();
                let first = without.rounded.as_ref();
                if first.is_none_or(|first| *launch < first.launch) {
                    without.rounded = Some(noted(launch, kernel, &why));
                }
            }
            Note::Unanswered(name) => without.unanswered.push(name.clone()),
            Note::Ended(why) => without.ended = Some(why.clone()),
            _ => {}
        }
    }
    Some(without)
}

/// The folder in that of the notes that leads programs to the stand-in.
pub const STAND_IN: &str = "lib";

/// What stayed the same in all processes.
fn stayed(notes: &[Note]) -> BTreeMap<(String, String, LaunchClass), Stayed> {
    let mut all: BTreeMap<_, Steady> = BTreeMap::new();
    for note in notes {
        let Note::Steady(one) = note else { continue };
        let key = (one.kernel.clone(), one.module.clone(), one.class);
        let known = all.entry(key).or_insert_with(|| one.clone());
        known.grid = known.grid.filter(|_| known.grid == one.grid);
        if known.places != one.places || known.bytes.len() != one.bytes.len() {
            known.bytes.fill(None);
        }
        for (byte, other) in known.bytes.iter_mut().zip(&one.bytes) {
            *byte = byte.filter(|_| byte == other);
        }
    }
    all.into_iter()
        .map(|(key, steady)| {
            let stayed = Stayed {
                grid: steady.grid.is_some(),
                parameters: digits(&steady.bytes),
                places: steady.places.to_vec(),
            };
            (key, stayed)
        })
        .collect()
}

/// The kinds of launches in all processes.
fn values(notes: &[Note]) -> BTreeMap<(String, String, LaunchClass), Vec<Valued>> {
    let mut all: BTreeMap<_, Values> = BTreeMap::new();
    for note in notes {
        let Note::Values(one) = note else { continue };
        let key = (one.kernel.clone(), one.module.clone(), one.class);
        let known = all.entry(key).or_default();
        for taken in &one.taken {
            known.join(taken.clone());
        }
    }
    let valued = |taken: &Taken| Valued {
        grid: taken.grid(),
        parameters: digits(taken.parameters()),
        launches: taken.count,
        gpu_ns: taken.gpu_ns(),
    };
    all.retain(|_, values| values.taken().len() > 1);
    let all = all.into_iter().map(|(key, values)| {
        let mut all: Vec<Valued> = values.taken().iter().map(valued).collect();
        all.sort_by_key(|valued| std::cmp::Reverse(valued.gpu_ns));
        (key, all)
    });
    all.collect()
}

/// What the first launches of the classes were given.
fn given(notes: &[Note]) -> BTreeMap<(String, String, LaunchClass), Given> {
    let all = notes.iter().filter_map(|note| {
        let Note::Arguments(given) = note else {
            return None;
        };
        let pointers = given.pointers.iter().map(|pointer| Pointed {
            at: pointer.at,
            allocation: pointer.allocation,
            size: pointer.size,
            offset: pointer.offset,
            digest: pointer.digest.clone(),
        });
        let variables = given.variables.iter().map(|variable| Variable {
            name: variable.name.clone(),
            size: variable.size,
            digest: variable.digest.clone(),
        });
        let parameters = given.bytes.iter().map(|byte| format!("{byte:02x}"));
        let key = (given.kernel.clone(), given.module.clone(), given.class);
        Some((
            key,
            Given {
                launch: given.number,
                parameters: parameters.collect(),
                pointers: pointers.collect(),
                variables: variables.collect(),
            },
        ))
    });
    all.collect()
}

struct Code {
    cubin: Vec<u8>,
    parsed: Option<Cubin>,
    /// What it was made of, where that was at hand.
    ptx: Option<Module>,
    digests: BTreeMap<String, String>,
}

fn launched(
    l: &Launches,
    total: u64,
    code: Option<&Code>,
    facts: Option<&GpuFacts>,
    timed: bool,
) -> Launched {
    let ns = gpu_ns(l);
    let gpu = facts.and_then(|facts| lookup(&format!("sm_{}", facts.sm)).ok());
    let kernel = code.and_then(|code| code.parsed.as_ref()?.kernel(&l.kernel));
    let resources = kernel
        .zip(gpu.as_ref())
        .map(|(kernel, gpu)| resources_of(kernel, gpu));
    let ptx = code.and_then(|code| code.ptx.as_ref());
    let made_of = ptx.and_then(|ptx| Some((ptx, &ptx.functions[ptx.function(&l.kernel)?])));
    let threads: u32 = l.class.block.iter().product();
    let occupancy = gpu.as_ref().filter(|_| l.resident > 0).map(|gpu| {
        // No more than the launch brings.
        let blocks: u64 = l.grid.iter().map(|&n| u64::from(n)).product();
        let most = gpu.blocks_for_sm(blocks).unwrap_or(u64::MAX);
        let resident = u64::from(l.resident).min(most) as u32;
        let warps = resident * threads.div_ceil(32);
        f64::from(warps) * 100.0 / f64::from(gpu.arch.threads.warps)
    });
    let mut row = Launched {
        name: source_name(&l.kernel),
        kernel: l.kernel.clone(),
        module: code.is_some().then(|| l.module.clone()),
        digest: code.and_then(|code| code.digests.get(&l.kernel).cloned()),
        grid: l.grid,
        block: l.class.block,
        dynamic_smem: l.class.dynamic_smem,
        cluster: Some(l.class.cluster).filter(|c| *c != [0; 3]),
        cooperative: l.cooperative,
        launches: l.count,
        in_graphs: l.in_graphs,
        gpu_ns: ns,
        share: if total == 0 {
            0.0
        } else {
            ns as f64 / total as f64
        },
        registers: resources.as_ref().map(|r| r.registers),
        spill_bytes: resources.as_ref().and_then(|r| known_spills(r, made_of)),
        stack_bytes: resources.as_ref().map(|r| r.stack_bytes),
        static_smem: resources.as_ref().map(|r| r.shared_bytes),
        resident: Some(l.resident).filter(|&blocks| blocks > 0),
        occupancy,
        tied: Some("its module was not seen".into()),
        hint: String::new(),
        given: None,
        stayed: None,
        values: Vec::new(),
    };
    if let (Some(code), Some(kernel), Some(gpu)) = (code, kernel, gpu.as_ref()) {
        row.tied = bond(&code.cubin, &l.kernel)
            .err()
            .map(|tie| tie.to_string());
        row.hint = hint(&row, kernel, gpu, timed);
    }
    if let Some(why) = &row.tied {
        row.hint = format!("is not replaced: {why}");
    }
    row
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

/// What the library noted in a folder, of all processes, in the order of the files' names.
///
/// # Errors
/// [`Error::Unread`], [`Error::Notes`].
pub fn notes(folder: &Path, kind: &str) -> Result<Vec<Note>, Error> {
    let unreadable = |error: std::io::Error| Error::Unread {
        name: folder.display().to_string(),
        error,
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if name.starts_with(&format!("{kind}-")) && name.ends_with(".notes") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = std::fs::read(&path).map_err(unreadable)?;
        let notes = parse(&String::from_utf8_lossy(&text))
            .ok_or_else(|| Error::Notes(path.display().to_string()))?;
        all.extend(notes);
    }
    Ok(all)
}

/// Shorter launches are dominated by the launch itself.
const SHORT_NS: u64 = 3000;

/// The hint for launches of a kernel whose code is at hand.
fn hint(launched: &Launched, kernel: &Kernel, gpu: &Gpu, timed: bool) -> String {
    let launches = launched.launches + launched.in_graphs;
    if timed && launched.gpu_ns / launches.max(1) < SHORT_NS {
        return "too short to gain".into();
    }
    match launched.spill_bytes {
        Some(0) => {}
        Some(bytes) => {
            return format!("spills ({bytes} bytes in the code): shared memory may take them");
        }
        None => {
            let stack = launched.stack_bytes.unwrap_or(0);
            return format!("{stack} bytes of stack: local arrays, or spills as well");
        }
    }
    let blocks = launched.blocks();
    let sms = gpu.typical_sms().map_or(0, u64::from);
    if blocks < sms {
        return format!("{} for {sms} SMs", count(blocks, "block"));
    }
    let need = Resources::new(kernel.registers, launched.block.iter().product())
        .static_smem(launched.static_smem.unwrap_or(0))
        .dynamic_smem(launched.dynamic_smem);
    let most = gpu.blocks_for_sm(blocks).unwrap_or(u64::MAX);
    match occupancy(gpu, &need) {
        Ok(found) if most < u64::from(found.blocks) => format!(
            "at most {} for an SM, which has room for {}",
            count(most, "block"),
            found.blocks
        ),
        Ok(found) if found.percent < 100.0 => {
            let limiters: Vec<&str> = found.limiters.iter().map(|l| l.name()).collect();
            format!("occupancy limited by {}", limiters.join(" and "))
        }
        _ => "full occupancy".into(),
    }
}
