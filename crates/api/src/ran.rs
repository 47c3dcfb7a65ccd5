//! What a file's own program launched when it ran without a GPU, as facts about its kernels and as launches to count.
//!
//! Nothing goes through a description: parameters are the bytes that the program gave, memory has the sizes of its
//! allocations and begins with what was in them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use warpwright_launch::{Arg, Buffer, FileFormat, Init, Launch, Pointer, Source};
use warpwright_pass::Seen;
use warpwright_pass::ptx::facts::used_variables;
use warpwright_ptx::{Function, Module};

use crate::Counted;
use crate::trace::{Given, Launched, Trace};

/// What the launches of each kernel have: those of most threads count, of the first run that launched it. Nothing of a
/// kernel that was not launched, or only when results were missing.
pub fn seen(runs: &[Trace], module: &Module) -> Vec<Seen> {
    let of = |symbol: &str| {
        let (trace, found) = of_kernel(runs, symbol)?;
        let first = trace.of(symbol).next()?;
        let numbers = (first.stayed.as_ref().zip(module.function(symbol)))
            .map(|(stayed, kernel)| stayed.numbers(module, kernel).block(first.block));
        let constants = numbers.map(|numbers| match first.stayed.as_ref() {
            Some(stayed) if stayed.grid => numbers.grid(first.grid),
            _ => numbers,
        });
        Some(Seen {
            constants: constants.unwrap_or_default(),
            ..found
        })
    };
    let kernels = module.kernels();
    kernels.filter_map(|(_, kernel)| of(&kernel.name)).collect()
}

/// The same of machine code, where it is not known which parameters are numbers.
pub fn seen_of_machine_code(runs: &[Trace], kernels: &[String]) -> Vec<Seen> {
    let of = |symbol: &String| Some(of_kernel(runs, symbol)?.1);
    kernels.iter().filter_map(of).collect()
}

fn of_kernel<'r>(runs: &'r [Trace], symbol: &str) -> Option<(&'r Trace, Seen)> {
    let launched = |trace: &&Trace| trace.of(symbol).next().is_some();
    let trace = runs.iter().find(launched)?;
    let mut all = trace.of(symbol);
    let first = all.next()?;
    let seen = Seen {
        symbol: symbol.to_owned(),
        source: Source::Traced,
        block: Some(first.block),
        differ: all.any(|other| other.block != first.block),
        grid: Some(first.blocks()),
        dynamic_smem: Some(first.dynamic_smem),
        ..Seen::default()
    };
    Some((trace, seen))
}

/// What a run left of the memory that launches read.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// Where it lies: `DIGEST.bin`.
    pub folder: PathBuf,
    /// The digests of what is there.
    pub digests: BTreeSet<String>,
}

impl Contents {
    /// The byte that all of what was kept are, if they are alike.
    fn alike(&self, init: &Init) -> Option<u8> {
        let Init::File { path, .. } = init else {
            return None;
        };
        let bytes = std::fs::read(self.folder.join(path)).ok()?;
        let first = *bytes.first()?;
        bytes.iter().all(|byte| *byte == first).then_some(first)
    }
}

/// The launches of a kernel, to be run to count, that of most threads first.
pub fn counted<'a>(
    trace: &'a Trace,
    contents: &'a Contents,
    module: &'a Module,
    kernel: &'a str,
) -> impl Iterator<Item = Counted> + 'a {
    let function = module.function(kernel).map(|id| &module.functions[id]);
    trace.of(kernel).filter_map(move |launched| {
        let given = launched.given.as_ref()?;
        let without = trace.without_gpu.as_ref()?;
        let at = match without.is_computed(given.launch) {
            true => "the launch that its program made",
            false => {
                "the launch that its program made, on memory that earlier kernels had not written"
            }
        };
        Some(Counted {
            launch: launch(module, function?, (launched, given), contents)?,
            folder: contents.folder.clone(),
            at: at.to_owned(),
            source: Source::Traced,
            is_known_block: true,
            is_smaller: false,
            guessed: Some(String::new()),
        })
    })
}

/// The launch of a kernel of most threads with what its program gave it. Memory of which all bytes were alike is filled
/// with them; what else was in it is left out, and where earlier kernels had not run, all is.
pub fn given(trace: &Trace, contents: &Contents, module: &Module, kernel: &str) -> Option<Launch> {
    let function = &module.functions[module.function(kernel)?];
    let launched = trace.of(kernel).next()?;
    let given = launched.given.as_ref()?;
    let without = trace.without_gpu.as_ref();
    let is_computed = without.is_some_and(|without| without.is_computed(given.launch));
    let mut launch = launch(module, function, (launched, given), contents)?;
    for buffer in launch.memory.iter_mut().chain(&mut launch.symbols) {
        let byte = contents.alike(&buffer.init).filter(|_| is_computed);
        buffer.init = byte.map_or(Init::Zeros, |byte| Init::Fill(byte.into()));
    }
    // Pointers as well.
    let bytes = given.bytes();
    for (arg, place) in launch.args.iter_mut().zip(places(module, function)) {
        arg.bytes = bytes.get(place)?.to_vec();
    }
    Some(launch)
}

/// Where each parameter of a kernel stands among the bytes of all.
fn places(module: &Module, function: &Function) -> Vec<Range<usize>> {
    let mut end = 0_usize;
    let place = |param: &warpwright_ptx::Param| {
        let variable = &module.variables[param.var];
        let start = end.next_multiple_of((variable.alignment() as usize).max(1));
        end = start + variable.bytes() as usize;
        start..end
    };
    function.params.iter().map(place).collect()
}

/// The launch, if the bytes of its parameters are known.
fn launch(
    module: &Module,
    function: &Function,
    (launched, given): (&Launched, &Given),
    contents: &Contents,
) -> Option<Launch> {
    let bytes = given.bytes();
    let mut memory = Memory {
        contents,
        buffers: Vec::new(),
        places: BTreeMap::new(),
    };
    let mut args = Vec::new();
    for (param, place) in function.params.iter().zip(places(module, function)) {
        let variable = &module.variables[param.var];
        let mut own = bytes.get(place.clone())?.to_vec();
        let inside = given.pointers.iter();
        let inside = inside.filter(|pointer| place.contains(&(pointer.at as usize)));
        let mut pointers = Vec::new();
        for pointer in inside {
            let at = pointer.at as usize - place.start;
            own.get_mut(at..at + 8)?.fill(0);
            let of = memory.place(pointer.allocation, pointer.size, pointer.digest.as_deref())?;
            let offset = usize::try_from(pointer.offset).ok()?;
            pointers.push(Pointer { at, of, offset });
        }
        args.push(Arg {
            name: variable.name.to_string(),
            ty: None,
            bytes: own,
            align: (variable.alignment() as usize).max(1),
            pointers,
        });
    }
    let used = used_variables(module, function);
    let is_used = |name: &str| used.iter().any(|&id| &*module.variables[id].name == name);
    let variables = given.variables.iter().filter(|v| is_used(&v.name));
    let symbols = variables.map(|variable| {
        let len = usize::try_from(variable.size).ok()?;
        let init = memory.init(variable.digest.as_deref());
        Some(Buffer::of_bytes(&*variable.name, len, init))
    });
    let symbols = symbols.collect::<Option<_>>()?;
    Some(Launch {
        kernel: launched.kernel.clone(),
        size: String::new(),
        params: BTreeMap::new(),
        grid: launched.grid,
        block: launched.block,
        cluster: launched.cluster,
        dynamic_smem: launched.dynamic_smem,
        args,
        memory: memory.buffers,
        symbols,
    })
}

/// The allocations that a launch reaches.
struct Memory<'a> {
    contents: &'a Contents,
    buffers: Vec<Buffer>,
    /// Where each allocation stands among them, by its number.
    places: BTreeMap<u64, usize>,
}

impl Memory<'_> {
    fn place(&mut self, allocation: u64, size: u64, digest: Option<&str>) -> Option<usize> {
        if let Some(&known) = self.places.get(&allocation) {
            return Some(known);
        }
        let init = self.init(digest);
        let name = format!("allocation {allocation}");
        let buffer = Buffer::of_bytes(name, usize::try_from(size).ok()?, init);
        self.buffers.push(buffer);
        self.places.insert(allocation, self.buffers.len() - 1);
        Some(self.buffers.len() - 1)
    }

    /// What was in it, if that was kept; else zeros.
    fn init(&self, digest: Option<&str>) -> Init {
        match digest.filter(|digest| self.contents.digests.contains(*digest)) {
            Some(digest) => Init::File {
                path: format!("{digest}.bin"),
                format: FileFormat::Raw,
            },
            None => Init::Zeros,
        }
    }
}
