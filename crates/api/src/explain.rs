//! What limits a kernel, before any choice.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;
use warpwright_cudac::diag::Source;
use warpwright_cudac::{File, Local};
use warpwright_driver::build::{resources, resources_of};
use warpwright_driver::candidate::Turns;
use warpwright_launch::Source as Certainty;
use warpwright_pass::names::is_named;
use warpwright_pass::scope::{gpu_of, too_large};
use warpwright_pass::{Block, BlockSource, Bounded, Reliance, Setting};
use warpwright_ptx::Module;
use warpwright_report::accesses::AccessReport;
use warpwright_report::cycles::{Facts, cycles_of};
use warpwright_report::explain::{
    Explanation, explain, from_resources, lines_by_origin, lines_of_machine_code, origins,
    pressure_of_machine_code,
};
use warpwright_report::local::{self, Declared, Written};
use warpwright_report::screen::extents;
use warpwright_sass::{Cubin, Elf};
use warpwright_target::{Gpu, runs_on};
use warpwright_toolkit::PtxasJob;

use crate::counts::{executed_by, of_machine_code};
use crate::device_code::some_names;
use crate::front::{Compile, kernels_of, module, register_limit, target, verified};
use crate::optimise::{blocks_are_known, launch_among};
use crate::own_launch::seen;
use crate::ran::seen_of_machine_code;
use crate::refused::placed;
use crate::{DeviceCode, Error, Input, Level, Optimizer, Options};

/// What is said of the kernels of an input.
#[derive(Debug, Clone, Serialize)]
pub struct Explained {
    /// `warpwright.explain/1`
    pub schema: &'static str,
    /// The input by name.
    pub input: String,
    /// What the machine code is for; in the document by name.
    #[serde(serialize_with = "by_name")]
    pub gpu: Gpu,
    /// Kernel by kernel.
    pub kernels: Vec<Explanation>,
}

fn by_name<S: serde::Serializer>(gpu: &Gpu, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(gpu)
}

/// Threads per block that are assumed of a cubin that states nothing.
const ASSUMED_BLOCK: [u32; 3] = [256, 1, 1];

impl Optimizer {
    /// Resources, occupancy staircase and register pressure of each kernel. Without ptxas, the resources of PTX are
    /// estimated.
    ///
    /// ```
    /// use warpwright_api::{Input, Options, Optimizer};
    ///
    /// let ptx = ".version 8.5\n.target sm_90\n.address_size 64\n\
    ///     .visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<2>;\n.reg .b64 %d;\n\
    ///     ld.param.u64 %d, [p];\nmov.u32 %r1, %tid.x;\nst.global.u32 [%d], %r1;\nret;\n}\n";
    /// let input = Input::new("k.ptx", ptx)?;
    /// let found = Optimizer::without_toolkit().explain(&input, &Options::default())?;
    /// assert_eq!(found.kernels[0].kernel, "k");
    /// assert!(found.kernels[0].estimated);
    /// # Ok::<(), warpwright_api::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error`].
    pub fn explain(&self, input: &Input, options: &Options) -> Result<Explained, Error> {
        let (gpu, kernels) = match input.level {
            Level::Cubin | Level::Fat => of_cubins(input, options)?,
            Level::Cuda | Level::Ptx | Level::Stencil => self.of_module(input, options)?,
        };
        Ok(Explained {
            schema: "warpwright.explain/1",
            input: input.name.clone(),
            gpu,
            kernels,
        })
    }

    /// What nvcc makes of CUDA C, or the PTX as it is; kept by content.
    ///
    /// # Errors
    /// [`Error`].
    pub fn compiled(&self, input: &Input, options: &Options) -> Result<Module, Error> {
        let compile = Compile {
            gpu: options.gpu.as_ref(),
            nvcc: &options.nvcc,
            lineinfo: true,
            takes_limit: true,
        };
        module(self.toolkit(), input, &compile)
    }

    fn of_module(
        &self,
        input: &Input,
        options: &Options,
    ) -> Result<(Gpu, Vec<Explanation>), Error> {
        let module = self.compiled(input, options)?;
        let gpu = target(&module, options.gpu)?;
        let arch = gpu.target();
        let build = match self.assembler() {
            Some(toolkit) => {
                let mut job = PtxasJob::new(&module.source, &arch);
                // Also without `.loc`: which line of the PTX an instruction comes from.
                job.lineinfo = true;
                job.extra.extend(register_limit(&options.nvcc));
                let built = self.cache().ptxas(&toolkit.ptxas()?, &job);
                let tools = Some((toolkit, self.cache()));
                let text = (input, &*module.source, &*arch);
                Some(built.map_err(|error| placed(error.into(), tools, text, "default"))?)
            }
            None => None,
        };
        let seen = seen(input, &module, options);
        let kernels = kernels_of(&module, input)?;
        blocks_are_known(input, options, &kernels)?;
        let launch = options.launch.as_ref();
        let launch = launch.map(|launch| launch_among(launch, &input.name, &kernels));
        let launch = launch.transpose()?;
        let mut scope = options.scope();
        scope.launch = launch.as_ref();
        scope.gpu = Some(gpu);
        scope.seen = &seen;
        let artifact = verified(module)?;
        let written = written(input);
        let mut explanations = Vec::new();
        for kernel in scope.kernels(&artifact)? {
            let mut setting = scope.setting(&artifact, &kernel, &gpu)?;
            // Occupancy goes by the launch that cycles are counted at.
            if setting.dynamic_smem.is_none() && setting.seen_dynamic.is_none() {
                let own = options.counted.iter().find(|counted| {
                    let launch = &counted.launch;
                    is_named(&launch.kernel, &kernel) && launch.block == setting.block.dims
                });
                setting.seen_dynamic = own.map(|counted| counted.launch.dynamic_smem);
            }
            let found = artifact
                .as_module()
                .and_then(|module| Some((module, module.function(&kernel)?)));
            let Some((module, id)) = found else { continue };
            let built = build.as_ref().and_then(|b| b.resources.kernel(&kernel));
            let mut found = explain(module, id, &setting, built.map(resources), &written);
            // What the code's own launch says is no assumption.
            found.dynamic_smem_is_assumed =
                setting.dynamic_smem.is_none() && setting.seen_dynamic.is_none();
            let mut executions = None;
            let (mut is_smaller, mut is_guessed) = (false, false);
            for counted in &options.counted {
                // What is counted goes for its own block.
                let is_other = counted.launch.block != setting.block.dims;
                if is_other && !counted.is_described() && is_named(&counted.launch.kernel, &kernel)
                {
                    let own = extents(counted.launch.block);
                    let why = match options.block == Some(counted.launch.block) {
                        true => format!(
                            "--block {own} is not for its launch bounds of {}: --block NAME=X",
                            extents(setting.block.dims)
                        ),
                        false => format!(
                            "the code's own launch, as far as it is known, has blocks of {own}: --block"
                        ),
                    };
                    found.not_counted.get_or_insert(why);
                    continue;
                }
                let is_late = options.until.is_some_and(|until| Instant::now() > until);
                if is_late && is_named(&counted.launch.kernel, &kernel) {
                    let why = "no time was left to run a launch: --budget".to_owned();
                    found.not_counted.get_or_insert(why);
                    continue;
                }
                match executed_by(counted, module, id, &kernel, &input.name) {
                    None => {}
                    Some(Ok(found)) => {
                        let at = found.at(&counted.at);
                        executions = Some((found, at));
                        is_guessed =
                            !matches!(counted.source, Certainty::Described | Certainty::Traced);
                        is_smaller = counted.is_smaller;
                        break;
                    }
                    // What is said of the first goes for the code's own launch.
                    Some(Err(why)) => {
                        let why = format!("{} is no example: {why}", counted.at);
                        found.not_counted.get_or_insert(why);
                    }
                }
            }
            if executions.is_some() {
                found.not_counted = None;
            }
            found.accesses = executions.as_ref().and_then(|(executions, at)| {
                AccessReport::new(module, id, &executions.instructions, at)
            });
            if let (true, Some(accesses)) = (is_guessed, &mut found.accesses) {
                accesses.enter_guessed();
            }
            if let Some(elf) = build.as_ref().and_then(|b| Elf::parse(&b.cubin).ok()) {
                found.enter_functions(&elf);
                local::keep_built(&mut found.local_arrays, &elf, &kernel);
                let origins = origins(&elf, module, id);
                let lines = lines_by_origin(&origins, module, id);
                found.machine_code = pressure_of_machine_code(&elf, &kernel, &lines);
                let counted = executions.as_ref().and_then(|(found, at)| {
                    let counts = of_machine_code(&found.counts, &elf, &kernel, &origins)?;
                    Some((counts, at.as_str()))
                });
                let known = Facts {
                    lines: &lines,
                    counts: counted.as_ref().map(|(counts, size)| (&counts[..], *size)),
                    atomics: executions
                        .as_ref()
                        .map_or(0.0, |(found, _)| found.atomics.cycles(&gpu)),
                };
                of_cycles(&elf, &setting, &mut found, known);
                let turns = found.cycles.as_mut().map(|cycles| &mut cycles.turns);
                if let Some(turns @ Turns::Counted) = turns
                    && is_smaller
                {
                    *turns = Turns::CountedSmaller;
                }
                if let Some(code) = &mut found.machine_code {
                    code.origins = origins;
                }
            }
            if let (Level::Cuda, Ok(text)) = (input.level, input.text()) {
                found.quote(short_name(&input.name), text);
            }
            explanations.push(found);
        }
        Ok((gpu, explanations))
    }
}

/// What CUDA C says of that which may lie in local memory.
fn written(input: &Input) -> Written {
    let (Level::Cuda, Ok(text)) = (input.level, input.text()) else {
        return Written::default();
    };
    let file = short_name(&input.name);
    let Ok(parsed) = File::parse(Source::new(file, text)) else {
        return Written::default();
    };
    let before = |at: usize| text.get(..at).unwrap_or_default();
    let line = |at: usize| format!("{file}:{}", before(at).matches('\n').count() + 1);
    let mut functions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for header in parsed.functions.iter().chain(&parsed.kernels) {
        let lines = functions.entry(header.name.text.clone()).or_default();
        lines.push(line(header.span.start));
    }
    let declared = |local: Local| Declared {
        line: line(local.name.span.start),
        uses: uses(&local, file, text),
        name: local.name.text,
        function: local.function,
        parameter: local.parameter,
        bytes: local.bytes,
    };
    let locals = parsed.locals(&warpwright_host::number).into_iter();
    Written {
        declared: locals.map(declared).collect(),
        functions,
        pragmas: pragmas(file, text),
    }
}

/// The lines of its function that name something.
fn uses(local: &Local, file: &str, text: &str) -> Vec<String> {
    let own = text.get(local.within.clone()).unwrap_or_default();
    let before = text.get(..local.within.start).unwrap_or_default();
    let first = before.matches('\n').count() + 1;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let named = own.lines().enumerate().filter(|(_, line)| {
        let mut words = line.split(|c| !is_word(c));
        words.any(|word| word == local.name.text)
    });
    named
        .map(|(at, _)| format!("{file}:{}", first + at))
        .collect()
}

/// What pragmas in front of loops say of unrolling, by the loops' lines.
fn pragmas(file: &str, text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.split("//").next().unwrap_or_default().trim();
        match line.strip_prefix('#') {
            Some(rest) if rest.trim_start().starts_with("pragma") && rest.contains("unroll") => {
                let words: Vec<&str> = rest.split_whitespace().collect();
                open = Some(format!("#{}", words.join(" ")));
            }
            _ if line.is_empty() => {}
            _ => {
                found.extend(open.take().map(|own| (format!("{file}:{}", at + 1), own)));
            }
        }
    }
    found
}

/// The name of a file without its folders, as lines have it.
fn short_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn of_cubins(input: &Input, options: &Options) -> Result<(Gpu, Vec<Explanation>), Error> {
    let mut all = Vec::new();
    let mut target = options.gpu;
    let code = DeviceCode::of(input, options.gpu.as_ref())?;
    let names = code.functions();
    for cubin in code.cubins {
        let elf = Elf::parse(&cubin.bytes).map_err(|error| Error::Cubin {
            name: input.name.clone(),
            error,
        })?;
        let (gpu, explanations) = of_cubin(input, &elf, target, options)?;
        all.extend(explanations);
        target = Some(gpu);
    }
    match (target, &options.kernels[..]) {
        (Some(gpu), _) if !all.is_empty() => Ok((gpu, all)),
        (_, [kernel, ..]) => Err(Error::NoSuchKernel {
            name: input.name.clone(),
            kernel: kernel.clone(),
            has: some_names(&names),
        }),
        (_, []) => Err(Error::NoKernel(input.name.clone())),
    }
}

fn of_cubin(
    input: &Input,
    elf: &Elf,
    named: Option<Gpu>,
    options: &Options,
) -> Result<(Gpu, Vec<Explanation>), Error> {
    let cubin = Cubin::of(elf).map_err(|error| Error::Cubin {
        name: input.name.clone(),
        error,
    })?;
    let own = gpu_of(elf)?;
    let gpu = named.unwrap_or(own);
    if !runs_on(own.arch.sm, gpu.arch.sm) {
        return Err(Error::CubinDoesNotRun {
            own: own.to_string(),
            gpu: gpu.to_string(),
        });
    }
    let scope = options.scope();
    let entries: Vec<_> = cubin.kernels.iter().filter(|k| k.is_entry).collect();
    let names: Vec<String> = entries.iter().map(|kernel| kernel.name.clone()).collect();
    let seen = seen_of_machine_code(&options.ran, &names);
    let mut explanations = Vec::new();
    for kernel in entries {
        let wanted = &options.kernels;
        if !wanted.is_empty() && !wanted.iter().any(|name| is_named(name, &kernel.name)) {
            continue;
        }
        let bounded = Bounded::in_machine_code(kernel.max_threads);
        let stated = scope.stated_block(&kernel.name, bounded);
        let (dims, source) = match (stated, kernel.max_threads) {
            (Some(dims), _) if options.grid.is_some() => (dims, BlockSource::Traced),
            (Some(dims), _) => (dims, BlockSource::Option),
            (None, Some(dims)) if kernel.is_exact_block => (dims, BlockSource::Required),
            (None, Some(dims)) => (dims, BlockSource::Bound),
            (None, None) => (ASSUMED_BLOCK, BlockSource::Assumed),
        };
        let own = seen.iter().find(|seen| seen.symbol == kernel.name);
        let block = Block { dims, source };
        let block = own.map_or(block, |seen| block.or_seen(seen));
        let own = own.filter(|seen| seen.block == Some(block.dims));
        let setting = Setting {
            block,
            dynamic_smem: options.dynamic_smem,
            seen_dynamic: own
                .filter(|_| options.dynamic_smem.is_none())
                .and_then(|seen| seen.dynamic_smem),
            grid: options.grid.or(own.and_then(|seen| seen.grid)),
            ..Setting::new(&gpu)
        };
        let resources = resources_of(kernel, &gpu);
        let mut found = from_resources(&kernel.name, &setting, resources, false);
        let lines = lines_of_machine_code(elf, &kernel.name);
        found.enter_functions(elf);
        if let Ok(reliance) = Reliance::of_machine_code(elf, &kernel.name) {
            found.enter_reliance(reliance);
        }
        found.pressure = pressure_of_machine_code(elf, &kernel.name, &lines);
        if let Some(why) = too_large(kernel, &setting.block, &gpu) {
            found.residency = None;
            found.cannot_launch = Some(why.to_string());
        }
        let known = Facts {
            lines: &lines,
            ..Facts::default()
        };
        of_cycles(elf, &setting, &mut found, known);
        explanations.push(found);
    }
    Ok((gpu, explanations))
}

/// Where the cycles of a kernel go that can be launched, and what they are bound by.
fn of_cycles(elf: &Elf, setting: &Setting, found: &mut Explanation, known: Facts<'_>) {
    let Some(residency) = &found.residency else {
        return;
    };
    let name = &found.kernel;
    let all = cycles_of(elf, name, setting, &found.resources, residency, known);
    (found.causes, found.cycles) = all.unzip();
}
