//! `explain`: what a kernel takes, where its register pressure comes from, and what one register
//! less or one block more would take.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use warpwright_driver::crat::{DesignPoint, ResourceUsage, design_space, resource_usage};
use warpwright_driver::residency::occupy;
use warpwright_driver::score::Cycles;
use warpwright_driver::{Candidate, Residency, Resources};
use warpwright_flow::{
    Cfg, DefUse, Function, Inst, LiveRanges, Liveness, Loops, Point, Pressure, Value,
};
use warpwright_pass::passes::ignored_bounds;
use warpwright_pass::ptx::facts::static_shared_bytes;
use warpwright_pass::{BlockSource, Footprint, Recipe, Reliance, Setting};
use warpwright_ptx::{self as ptx, FuncId, Module, is_own_file};
use warpwright_sass::Elf;
use warpwright_sass::elf::info::Attribute;
use warpwright_sass::elf::symbol::Symbol;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::lines::{inlined_lines, ptx_lines};
use warpwright_sass::profile::loop_depths;

use crate::accesses::AccessReport;
use crate::cycles::CyclesReport;
use crate::edit::{Edit, Gives};
use crate::local::{LocalArray, Room, Written, local_arrays};
use warpwright_target::{Stair, registers_for_one_more_block, registers_of_bound};

/// How many live ranges across the peak are listed.
const LISTED_RANGES: usize = 10;
/// How many of the highest peaks are listed.
const LISTED_PEAKS: usize = 5;
/// How many instructions are shown before and behind the first of the highest peak.
const AROUND: u32 = 12;
/// How many values live at the highest peak have a column beside the instructions around it.
const LISTED_COLUMNS: usize = 48;
/// How many lines of the source are shown before and behind one that has code.
const CONTEXT: usize = 2;

/// What is said of one kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// Its name.
    pub kernel: String,
    /// Threads per block.
    pub block: [u32; 3],
    /// Where the block size comes from.
    pub block_source: BlockSource,
    /// Dynamic shared memory in bytes per block; that of `resources` is static.
    pub dynamic_smem: u32,
    /// Blocks of the launch that cycles and bound go by, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<u64>,
    /// Multiprocessors that get none of these blocks, if there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_sms: Option<u32>,
    /// The sizes that `grid` goes by and that are guessed, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub guessed: String,
    /// What is known of a program that ran and did not launch it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_launched: Option<String>,
    /// The arguments with which its program was seen to launch it, where that does not without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_args: Option<String>,
    /// Why neither turns of loops nor accesses are counted, where a launch is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_counted: Option<String>,
    /// The kernel has dynamic shared memory, and nobody said how much: it is taken for none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dynamic_smem_is_assumed: bool,
    /// Functions in code of their own that it calls: neither their registers nor their cycles are in the figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Functions within its own code: its registers include theirs, its spills and its stack do not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
    /// Bytes of stack per thread with these; absent where no bound is known (recursion).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_with_functions: Option<u32>,
    /// Resources: of the default build, or estimated.
    pub resources: Resources,
    /// Are the resources an estimate (no ptxas)?
    pub estimated: bool,
    /// Blocks and warps that reside, if it can be launched.
    pub residency: Option<Residency>,
    /// Why it cannot be launched.
    pub cannot_launch: Option<String>,
    /// Which of its own bounds makes it spill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spills_for: Option<String>,
    /// Which of its own bounds no build on this GPU takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_bounds: Option<String>,
    /// What lies in local memory beside spills; of PTX and CUDA C.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub local_arrays: Vec<LocalArray>,
    /// What would let it be launched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
    /// The occupancy staircase; empty where other registers at launch are no choice ([`Explanation::no_staircase`]).
    pub staircase: Vec<Stair>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_staircase: Option<String>,
    /// Registers per thread that one more block would leave; absent if something else is in the way.
    pub registers_for_one_more_block: Option<u32>,
    /// Registers too many for one more block.
    pub registers_to_save: Option<u32>,
    /// Register pressure; absent for machine code whose registers are not all known.
    pub pressure: Option<PressureReport>,
    /// The causes of a warp's cycles; absent without machine code.
    pub causes: Option<CyclesReport>,
    /// Coalescing and bank conflicts; absent where no launch could be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses: Option<AccessReport>,
    /// Resource usage as CRAT collects it; absent for a cubin.
    pub usage: Option<ResourceUsage>,
    /// The points of CRAT's design space; empty for a cubin.
    pub design_space: Vec<DesignPoint>,
    /// Where the cycles go; absent without machine code.
    pub cycles: Option<Cycles>,
    /// Register pressure of the default build's machine code, where `pressure` is that of the PTX.
    pub machine_code: Option<PressureReport>,
    /// The lines of the source that have code, and those near them; empty where the source is not at hand.
    pub source: Vec<SourceLine>,
}

/// A line of the source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceLine {
    /// `file:line`, as in [`PressureReport::lines`].
    pub line: String,
    /// What stands there.
    pub text: String,
}

impl Explanation {
    /// Other registers at launch are no choice for a kernel that shares them out among its warps.
    pub fn enter_reliance(&mut self, reliance: Reliance) {
        if let Err(why) = reliance.permits(Footprint::Registers) {
            self.no_staircase = Some(why.to_string());
            self.staircase.clear();
            self.design_space.clear();
            self.registers_for_one_more_block = None;
            self.registers_to_save = None;
        }
    }

    /// Puts the source beside the instructions: the text of the file `name`.
    pub fn quote(&mut self, name: &str, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let of = |line: &str| -> Option<usize> {
            let (file, number) = line.rsplit_once(':')?;
            let at = number.parse::<usize>().ok()?.checked_sub(1)?;
            (file == name && at < lines.len()).then_some(at)
        };
        let mut shown = BTreeSet::new();
        for report in [&mut self.pressure, &mut self.machine_code] {
            let Some(report) = report else { continue };
            for at in report.lines.iter().flatten().filter_map(|line| of(line)) {
                shown.extend(at.saturating_sub(CONTEXT)..lines.len().min(at + CONTEXT + 1));
            }
            for row in &mut report.around {
                let at = row.line.as_deref().and_then(of);
                row.source = at.map(|at| lines[at].trim().to_owned());
            }
        }
        let line = |at: usize| SourceLine {
            line: format!("{name}:{}", at + 1),
            text: lines[at].to_owned(),
        };
        self.source = shown.into_iter().map(line).collect();
    }
}

/// The pressure curve: of PTX before ptxas schedules and allocates, of machine code as it is.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PressureReport {
    /// Highest pressure in 32-bit registers.
    pub peak_units: u32,
    /// Instructions.
    pub instructions: usize,
    /// Deepest loop nest.
    pub loop_depth: u32,
    /// Pressure during each instruction, in program order.
    pub curve: Vec<u32>,
    /// Source line of each instruction (`file:line`), where `.loc` says so.
    pub lines: Vec<Option<String>>,
    /// Text of each instruction.
    pub texts: Vec<String>,
    /// Loops around each instruction; a branch to itself is none.
    pub depths: Vec<u32>,
    /// Of machine code: the instruction of the PTX that each was made of (its index), where ptxas says so.
    pub origins: Vec<Option<u32>>,
    /// The highest peaks.
    pub peaks: Vec<Peak>,
    /// The longest live ranges across the highest peak that are not used there.
    pub crossing: Vec<Range>,
    /// The instructions around the highest peak.
    pub around: Vec<Around>,
    /// The values that are live at its first instruction.
    pub live: Vec<String>,
    /// Those of them that have a column in [`Around::ranges`]: the longest that are unused there, then the others.
    pub columns: Vec<String>,
}

/// An instruction near the highest peak.
#[derive(Debug, Clone, Serialize)]
pub struct Around {
    /// Its index in program order.
    pub at: u32,
    /// Pressure in 32-bit registers.
    pub units: u32,
    /// Its text.
    pub text: String,
    /// Its source line (`file:line`).
    pub line: Option<String>,
    /// What stands there, where the source is at hand.
    pub source: Option<String>,
    /// What becomes of each value of [`PressureReport::columns`], a character each: `d` defined, `u` used, `x` both,
    /// `e` used for the last time, `|` live, else a blank.
    pub ranges: String,
}

/// One peak of the curve.
#[derive(Debug, Clone, Serialize)]
pub struct Peak {
    /// First instruction (index in program order).
    pub first: u32,
    /// Last instruction.
    pub last: u32,
    /// Pressure in 32-bit registers.
    pub units: u32,
    /// Source line of the first instruction.
    pub line: Option<String>,
    /// Text of the first instruction.
    pub text: String,
}

/// One live range.
#[derive(Debug, Clone, Serialize)]
pub struct Range {
    /// The register's name.
    pub register: String,
    /// 32-bit registers that it takes.
    pub units: u32,
    /// Instructions before which it is live.
    pub length: u32,
    /// Text of its first definition.
    pub defined_by: Option<String>,
    /// Source line of its first definition.
    pub line: Option<String>,
    /// Number of uses.
    pub uses: usize,
}

/// Explains a kernel of a module. `resources` are those of the default build, if there is a ptxas; `written` is what the
/// source says, where it is at hand.
pub fn explain(
    module: &Module,
    id: FuncId,
    setting: &Setting,
    resources: Option<Resources>,
    written: &Written,
) -> Explanation {
    let pressure = pressure_report(module, id);
    let function = &module.functions[id];
    let estimated = resources.is_none();
    let resources = resources.unwrap_or_else(|| Resources {
        registers: warpwright_driver::estimate::registers(pressure.peak_units),
        shared_bytes: static_shared_bytes(module, function),
        ..Resources::default()
    });
    let mut explanation = from_resources(&function.name, setting, resources, estimated);
    let resources = &explanation.resources;
    let usage = resource_usage(module, id, setting, pressure.peak_units, resources);
    explanation.design_space = design_space(&usage, &explanation.staircase);
    explanation.usage = Some(usage);
    explanation.pressure = Some(pressure);
    explanation.spills_for = spills_for(function, setting, &explanation.resources);
    explanation.ignored_bounds = ignored_bounds(function, setting.gpu);
    // Without a build nobody knows what ptxas leaves there.
    let stack = match estimated {
        true => u32::MAX,
        false => explanation.resources.stack_bytes,
    };
    let shared = &setting.gpu.arch.shared;
    let used =
        (explanation.resources.shared_bytes).saturating_add(setting.dynamic_smem.unwrap_or(0));
    let room = Room {
        threads: setting.block.threads(),
        unasked: shared.per_block.saturating_sub(used),
        most: shared.per_block_opt_in.saturating_sub(used),
    };
    explanation.local_arrays = local_arrays(module, id, stack, room, written);
    explanation.enter_reliance(Reliance::of_ptx(module, id));
    explanation
        .edits
        .extend(bounds_to_launch(function, &explanation));
    explanation
}

/// The bounds under which ptxas leaves registers enough for the block that a kernel cannot be launched with.
fn bounds_to_launch(function: &ptx::Function, explanation: &Explanation) -> Option<Edit> {
    let is_bounded = function.max_ntid().is_some() || function.req_ntid().is_some();
    if explanation.cannot_launch.is_none() || is_bounded || function.max_nreg().is_some() {
        return None;
    }
    let registers = explanation.staircase.iter().map(|stair| stair.regs).max()?;
    let threads: u32 = explanation.block.iter().product();
    Some(Edit {
        line: None,
        text: format!(
            "`__launch_bounds__({threads})` at the kernel: ptxas keeps to {registers} registers"
        ),
        gives: Gives::Launch,
    })
}

/// What leaves a kernel that spills too few registers, if its own bounds do.
fn spills_for(
    function: &ptx::Function,
    setting: &Setting,
    resources: &Resources,
) -> Option<String> {
    if !resources.spills() {
        return None;
    }
    let (limit, what) = match (function.max_nreg(), function.max_ntid()) {
        (Some(limit), _) => (limit, format!("__maxnreg__({limit})")),
        (None, Some(bound)) => {
            let threads: u32 = bound.iter().product();
            let is_ignored = ignored_bounds(function, setting.gpu).is_some();
            let blocks = function.min_nctapersm().filter(|_| !is_ignored);
            let blocks = blocks.unwrap_or(1).max(1);
            let limit = registers_of_bound(setting.gpu, threads, blocks)?;
            let words = match blocks {
                1 => format!("__launch_bounds__({threads})"),
                _ => format!("__launch_bounds__({threads}, {blocks})"),
            };
            (limit, words)
        }
        (None, None) => return None,
    };
    // ptxas may leave some of them.
    let binds = 10 * resources.registers >= 9 * limit;
    let is_few = limit < setting.gpu.arch.registers.per_thread;
    (binds && is_few)
        .then(|| format!("it spills for {what}, which leaves a thread {limit} registers"))
}

/// The part that needs no PTX: for cubins.
pub fn from_resources(
    kernel: &str,
    setting: &Setting,
    resources: Resources,
    estimated: bool,
) -> Explanation {
    let mut candidate = Candidate::built(Recipe::default(), resources.clone());
    // As it is: what it allows beside that is not asked.
    let as_launched = Setting {
        bound: None,
        ..*setting
    };
    occupy(&as_launched, &mut candidate);
    let block = &setting.block;
    let need = warpwright_target::Resources {
        regs: resources.registers,
        block_threads: block.threads(),
        static_smem: resources.shared_bytes,
        dynamic_smem: setting.dynamic(),
        barriers: resources.barriers,
    };
    let next = registers_for_one_more_block(setting.gpu, &need)
        .ok()
        .flatten();
    Explanation {
        kernel: kernel.to_string(),
        block: block.dims,
        block_source: block.source,
        dynamic_smem: setting.dynamic(),
        grid: setting.grid,
        idle_sms: setting.idle_sms(),
        guessed: setting.guessed.to_owned(),
        not_launched: None,
        run_args: None,
        not_counted: None,
        dynamic_smem_is_assumed: false,
        calls: Vec::new(),
        functions: Vec::new(),
        stack_with_functions: None,
        registers_to_save: next.map(|n| resources.registers.saturating_sub(n)),
        registers_for_one_more_block: next,
        staircase: setting.stairs(resources.shared_bytes).unwrap_or_default(),
        no_staircase: None,
        resources,
        estimated,
        residency: candidate.residency().cloned(),
        cannot_launch: candidate.rejected().map(ToString::to_string),
        spills_for: None,
        ignored_bounds: None,
        local_arrays: Vec::new(),
        edits: Vec::new(),
        pressure: None,
        causes: None,
        accesses: None,
        usage: None,
        design_space: Vec::new(),
        cycles: None,
        machine_code: None,
        source: Vec::new(),
    }
}

impl Explanation {
    /// Enters the functions that the kernel's machine code has beside its own, and those that it calls elsewhere.
    pub fn enter_functions(&mut self, elf: &Elf) {
        // Of what is linked the registers of a kernel are those of its calls as well.
        let (linked, open) = calls_out(elf, &self.kernel);
        self.calls = open;
        self.functions = functions_within(elf, &self.kernel).unwrap_or_default();
        self.functions.extend(linked);
        if !self.functions.is_empty() {
            self.stack_with_functions = stack_in_all(elf, &self.kernel);
        }
    }
}

/// The functions of the source within a kernel's code: ptxas calls them `$KERNEL$FUNCTION`, and its own
/// `$KERNEL$__internal…`.
fn functions_within(elf: &Elf, kernel: &str) -> Option<Vec<String>> {
    let text = elf.kernel(kernel).ok()?.text;
    let symbols = elf.symbols().ok()?;
    let inside = symbols
        .iter()
        .filter(|symbol| symbol.is_function() && usize::from(symbol.section) == text);
    let own = |symbol: &Symbol| {
        let name = symbol.name.strip_prefix('$')?.strip_prefix(kernel)?;
        let name = name.strip_prefix('$')?;
        (!name.starts_with("__")).then(|| name.to_owned())
    };
    Some(inside.filter_map(own).collect())
}

/// The stack of a kernel and all that it calls, in bytes per thread (EIATTR_MIN_STACK_SIZE); `None` where ptxas does not
/// know it.
fn stack_in_all(elf: &Elf, kernel: &str) -> Option<u32> {
    let facts = elf.info(".nv.info").ok()??;
    let all = facts.by_symbol(Attribute::MIN_STACK_SIZE);
    let bytes = all.get(&elf.kernel(kernel).ok()?.symbol).copied();
    bytes.filter(|&bytes| bytes != u32::MAX)
}

/// The functions outside its own section that a kernel calls, by name: those that are linked with it, and the others.
fn calls_out(elf: &Elf, kernel: &str) -> (Vec<String>, Vec<String>) {
    let find = || -> Option<BTreeSet<(String, bool)>> {
        let text = elf.kernel(kernel).ok()?.text;
        let name = &elf.sections[text].name;
        let symbols = elf.symbols().ok()?;
        let mut found = BTreeSet::new();
        for prefix in [".rel", ".rela"] {
            let Some(table) = elf.section_index(&format!("{prefix}{name}")) else {
                continue;
            };
            for relocation in elf.relocations(table).ok()? {
                let symbol = symbols.get(relocation.symbol as usize)?;
                if symbol.is_function() && usize::from(symbol.section) != text {
                    let is_linked = !elf.is_relocatable() && symbol.section != 0;
                    found.insert((symbol.name.clone(), is_linked));
                }
            }
        }
        Some(found)
    };
    let all = find().unwrap_or_default().into_iter();
    let (linked, open): (Vec<_>, Vec<_>) = all.partition(|(_, is_linked)| *is_linked);
    let names = |all: Vec<(String, bool)>| all.into_iter().map(|(name, _)| name).collect();
    (names(linked), names(open))
}

/// Which instruction of the PTX (its index) each of the machine code that ptxas made of it belongs to: the first on the
/// line that the cubin's table names. Without a table (`--generate-line-info` writes it) none.
pub fn origins(elf: &Elf, module: &Module, id: FuncId) -> Vec<Option<u32>> {
    let function = &module.functions[id];
    let Some(body) = &function.body else {
        return Vec::new();
    };
    let mut first = BTreeMap::new();
    let (mut line, mut at) = (1u32, 0);
    for (inst, data) in body.insts.iter() {
        let start = data.span.start as usize;
        let skipped = module.source.get(at..start).unwrap_or_default();
        line += skipped.bytes().filter(|&byte| byte == b'\n').count() as u32;
        at = start;
        first.entry(line).or_insert(inst.as_u32());
    }
    let lines = ptx_lines(elf, &function.name).unwrap_or_default();
    let origin = |line: Option<u32>| first.get(&line?).copied();
    lines.into_iter().map(origin).collect()
}

/// All analyses of one function's body; a declaration has an empty report.
pub fn pressure_report(module: &Module, id: FuncId) -> PressureReport {
    let lines = Lines { module, id };
    let view = module.view(id);
    view.map_or_else(PressureReport::default, |view| {
        pressure_of(&view, |inst| lines.of(inst), None)
    })
}

/// The same of finished machine code with the lines of its instructions ([`lines_of_machine_code`]); `None` where not all of
/// its registers are known.
pub fn pressure_of_machine_code(
    elf: &Elf,
    kernel: &str,
    lines: &[Option<String>],
) -> Option<PressureReport> {
    let code = Code::new(elf, &elf.kernel(kernel).ok()?, Calls::Followed).ok()?;
    let is_known = code.opaque().is_empty();
    let line = |inst: Inst| lines.get(inst.0 as usize)?.clone();
    let targets = elf.branch_targets(&elf.kernel(kernel).ok()?).ok()?;
    let depths = loop_depths(code.instructions(), &targets);
    is_known.then(|| pressure_of(&code, line, Some(depths)))
}

/// The source line of each instruction of finished machine code (`file:line`), as far as its line table goes; of what is
/// inlined from a header of the toolkit that of the call.
pub fn lines_of_machine_code(elf: &Elf, kernel: &str) -> Vec<Option<String>> {
    let lines = inlined_lines(elf, kernel).unwrap_or_default().into_iter();
    let own = |lines: Vec<warpwright_sass::lines::SourceLine>| {
        let is_own = |line: &&warpwright_sass::lines::SourceLine| {
            is_own_file(&format!("{}/{}", line.folder, line.file))
        };
        let line = lines.iter().find(is_own).or(lines.first())?;
        (line.line > 0).then(|| format!("{}:{}", line.file, line.line))
    };
    lines.map(own).collect()
}

/// `depths`: of the loops around each instruction, where these are not those of the ways that registers live along.
fn pressure_of<F: Function>(
    view: &F,
    line: impl Fn(Inst) -> Option<String>,
    depths: Option<Vec<u32>>,
) -> PressureReport {
    let cfg = Cfg::new(view);
    let depths = depths.unwrap_or_else(|| Loops::new(&cfg).inst_depths(&cfg, view.inst_count()));
    let liveness = Liveness::new(view, &cfg);
    let pressure = Pressure::new(view, &cfg, &liveness);
    let ranges = LiveRanges::new(view, &cfg, &liveness);
    let def_use = DefUse::new(view, &liveness);
    let insts = || (0..view.inst_count() as u32).map(Inst);
    let peak = |region: warpwright_flow::PressureRegion| Peak {
        first: region.first.0,
        last: region.last.0,
        units: region.units,
        line: line(region.first),
        text: view.inst_text(region.first),
    };
    let range = |value: Value| {
        let def = def_use.defs(value).first().copied();
        Range {
            register: view.value_name(value),
            units: view.units(value),
            length: ranges.length(value),
            defined_by: def.map(|d| view.inst_text(d)),
            line: def.and_then(&line),
            uses: def_use.uses(value).len(),
        }
    };
    let highest = pressure.highest(LISTED_PEAKS);
    let around = highest.first().map_or(0..0, |region| {
        let last = view.inst_count() as u32;
        region.first.0.saturating_sub(AROUND)..last.min(region.first.0 + AROUND + 1)
    });
    let live = highest
        .first()
        .map(|region| liveness.live_before(view, &cfg, region.first));
    let live = live.unwrap_or_default();
    let crossing = ranges.crossing_peak(&pressure, &def_use);
    let mut columns: Vec<Value> = crossing.clone();
    columns.extend(live.iter().filter(|value| !crossing.contains(value)));
    columns.retain(|&value| view.units(value) > 0 && live.contains(&value));
    columns.truncate(LISTED_COLUMNS);
    let becomes = |value: Value, inst: Inst| {
        let is_live = |point: Point| ranges.is_live_at(value, point);
        let (mut is_used, mut is_defined) = (false, false);
        view.for_each_use(inst, |used| is_used |= used == value);
        view.for_each_def(inst, |defined| is_defined |= defined == value);
        match (is_used, is_defined) {
            (true, true) => 'x',
            (false, true) => 'd',
            (true, false) if is_live(Point::after(inst)) => 'u',
            (true, false) => 'e',
            (false, false) if is_live(Point::before(inst)) => '|',
            (false, false) => ' ',
        }
    };
    let row = |inst: Inst| Around {
        at: inst.0,
        units: pressure.during(inst),
        text: view.inst_text(inst),
        line: line(inst),
        source: None,
        ranges: columns.iter().map(|&value| becomes(value, inst)).collect(),
    };
    PressureReport {
        peak_units: pressure.max(),
        instructions: view.inst_count(),
        loop_depth: depths.iter().copied().max().unwrap_or(0),
        curve: insts().map(|i| pressure.during(i)).collect(),
        lines: insts().map(&line).collect(),
        texts: insts().map(|i| view.inst_text(i)).collect(),
        depths,
        origins: Vec::new(),
        around: around.map(|i| row(Inst(i))).collect(),
        live: live
            .into_iter()
            .map(|value| view.value_name(value))
            .collect(),
        peaks: highest.into_iter().map(peak).collect(),
        columns: columns.iter().map(|&v| view.value_name(v)).collect(),
        crossing: crossing
            .into_iter()
            .take(LISTED_RANGES)
            .map(range)
            .collect(),
    }
}

/// Source lines by `.loc`.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'m> {
    pub(crate) module: &'m Module,
    pub(crate) id: FuncId,
}

impl Lines<'_> {
    pub(crate) fn of(&self, inst: Inst) -> Option<String> {
        let inst = warpwright_ptx::Inst::from_u32(inst.0);
        let (path, line) = self.module.own_line(self.id, inst)?;
        let name = path.rsplit('/').next().unwrap_or(path);
        Some(format!("{name}:{line}"))
    }
}

/// The source lines of instructions of the machine code by those of the PTX that they were made of ([`origins`]).
pub fn lines_by_origin(
    origins: &[Option<u32>],
    module: &Module,
    id: FuncId,
) -> Vec<Option<String>> {
    let lines = Lines { module, id };
    let line = |origin: &Option<u32>| lines.of(Inst((*origin)?));
    origins.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_code_has_a_pressure() {
        let text = ".sm 90\n.function k\n\
            B------:R-:W-:-:S05:U---- MOV R2, 0x7\n\
            B------:R-:W-:-:S05:U---- MOV R3, 0x8\n\
            B------:R-:W-:-:S05:U---- IADD3 R4, R2, R3, R2\n\
            B------:R-:W-:-:S05:U---- IADD3 R5, R4, R4, R3\n\
            B------:R-:W-:-:S05:U---- EXIT\n";
        let elf = Elf::parse(&warpwright_sass::text::assemble(text).unwrap()).unwrap();
        let report = pressure_of_machine_code(&elf, "k", &[]).unwrap();
        // The stack pointer is live throughout.
        assert_eq!(report.curve[..4], [2, 3, 3, 3]);
        assert_eq!((report.peak_units, report.peaks[0].first), (3, 1));
        assert!(
            report.peaks[0].text.contains("MOV R3"),
            "{:?}",
            report.peaks
        );
        let rows: Vec<(u32, u32)> = report
            .around
            .iter()
            .map(|row| (row.at, row.units))
            .collect();
        assert_eq!(rows[..3], [(0, 2), (1, 3), (2, 3)]);
        assert!(report.live.contains(&"R2".to_owned()), "{:?}", report.live);
        // The stack pointer first, which nothing uses; R3 is made at the peak.
        assert_eq!(report.columns, ["R1", "R2"]);
        let ranges: Vec<&str> = report.around.iter().map(|row| &*row.ranges).collect();
        assert_eq!(ranges[..4], ["|d", "||", "|e", "| "]);
        assert_eq!((report.depths[4], report.texts.len()), (0, 5));
        assert_eq!(
            pressure_of_machine_code(&elf, "other", &[]).map(|r| r.peak_units),
            None
        );
    }

    #[test]
    fn the_source_stands_beside_its_instructions() {
        let row = |line: Option<&str>| Around {
            at: 0,
            units: 1,
            text: "ret".into(),
            line: line.map(str::to_owned),
            source: None,
            ranges: String::new(),
        };
        let lines = [Some("k.cu:4"), Some("other.h:1"), Some("k.cu:9"), None];
        let gpu = warpwright_target::lookup("sm_90").unwrap();
        let setting = Setting::new(&gpu);
        let mut found = from_resources("k", &setting, Resources::default(), false);
        found.pressure = Some(PressureReport {
            around: lines.map(row).into(),
            lines: lines.map(|line| line.map(str::to_owned)).into(),
            ..PressureReport::default()
        });
        found.quote("k.cu", "a\nb\nc\n  d;\ne\nf\ng\n");
        let shown: Vec<(&str, &str)> = found.source.iter().map(|l| (&*l.line, &*l.text)).collect();
        let expected = [
            ("k.cu:2", "b"),
            ("k.cu:3", "c"),
            ("k.cu:4", "  d;"),
            ("k.cu:5", "e"),
            ("k.cu:6", "f"),
        ];
        assert_eq!(shown, expected);
        let rows = &found.pressure.as_ref().unwrap().around;
        let found: Vec<Option<&str>> = rows.iter().map(|r| r.source.as_deref()).collect();
        assert_eq!(found, [Some("d;"), None, None, None]);
    }
}
