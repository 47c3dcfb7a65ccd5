//! `explain`: what a kernel takes, where its register pressure comes from, and what one register
//! less or one block more would take.

use serde::Serialize;
use warpwright_driver::crat::{DesignPoint, ResourceUsage, design_space, resource_usage};
use warpwright_driver::residency::occupy;
use warpwright_driver::score::Cycles;
use warpwright_driver::{Candidate, Residency, Resources};
use warpwright_flow::{Cfg, DefUse, Function, Inst, LiveRanges, Liveness, Loops, Pressure, Value};
use warpwright_pass::ptx::facts::static_shared_bytes;
use warpwright_pass::{BlockSource, Recipe, Setting};
use warpwright_ptx::{FuncId, Module};
use warpwright_sass::Elf;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::lines::source_lines;

use crate::cycles::CyclesReport;
use warpwright_target::{Stair, registers_for_one_more_block};

/// How many live ranges across the peak are listed.
const LISTED_RANGES: usize = 10;
/// How many of the highest peaks are listed.
const LISTED_PEAKS: usize = 5;
/// How many instructions are shown before and behind the first of the highest peak.
const AROUND: u32 = 12;

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
    /// Resources: of the default build, or estimated.
    pub resources: Resources,
    /// Are the resources an estimate (no ptxas)?
    pub estimated: bool,
    /// Blocks and warps that reside, if it can be launched.
    pub residency: Option<Residency>,
    /// Why it cannot be launched.
    pub cannot_launch: Option<String>,
    /// The occupancy staircase.
    pub staircase: Vec<Stair>,
    /// Registers per thread that one more block would leave; absent if something else is in the way.
    pub registers_for_one_more_block: Option<u32>,
    /// Registers too many for one more block.
    pub registers_to_save: Option<u32>,
    /// Register pressure; absent for machine code whose registers are not all known.
    pub pressure: Option<PressureReport>,
    /// The causes of a warp's cycles; absent without machine code.
    pub causes: Option<CyclesReport>,
    /// Resource usage as CRAT collects it; absent for a cubin.
    pub usage: Option<ResourceUsage>,
    /// The points of CRAT's design space; empty for a cubin.
    pub design_space: Vec<DesignPoint>,
    /// Where the cycles go; absent without machine code.
    pub cycles: Option<Cycles>,
    /// Register pressure of the default build's machine code, where `pressure` is that of the PTX.
    pub machine_code: Option<PressureReport>,
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
    /// The highest peaks.
    pub peaks: Vec<Peak>,
    /// The longest live ranges across the highest peak that are not used there.
    pub crossing: Vec<Range>,
    /// The instructions around the highest peak.
    pub around: Vec<Around>,
    /// The values that are live at its first instruction.
    pub live: Vec<String>,
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
}

impl PressureReport {
    /// Puts the source beside the instructions: the text of the file `name`.
    pub fn quote(&mut self, name: &str, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        for row in &mut self.around {
            let place = row.line.as_deref().and_then(|line| line.rsplit_once(':'));
            let number = place.filter(|(file, _)| *file == name);
            let number = number.and_then(|(_, number)| number.parse::<usize>().ok());
            let found = number.and_then(|n| lines.get(n.checked_sub(1)?));
            row.source = found.map(|line| line.trim().to_owned());
        }
    }
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

/// Explains a kernel of a module. `resources` are those of the default build, if there is a ptxas.
pub fn explain(
    module: &Module,
    id: FuncId,
    setting: &Setting,
    resources: Option<Resources>,
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
    explanation
}

/// The part that needs no PTX: for cubins.
pub fn from_resources(
    kernel: &str,
    setting: &Setting,
    resources: Resources,
    estimated: bool,
) -> Explanation {
    let mut candidate = Candidate::built(Recipe::default(), resources.clone());
    occupy(setting, &mut candidate);
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
        registers_to_save: next.map(|n| resources.registers.saturating_sub(n)),
        registers_for_one_more_block: next,
        staircase: setting.stairs(resources.shared_bytes).unwrap_or_default(),
        resources,
        estimated,
        residency: candidate.residency().cloned(),
        cannot_launch: candidate.rejected().map(ToString::to_string),
        pressure: None,
        causes: None,
        usage: None,
        design_space: Vec::new(),
        cycles: None,
        machine_code: None,
    }
}

/// All analyses of one function's body; a declaration has an empty report.
pub fn pressure_report(module: &Module, id: FuncId) -> PressureReport {
    let lines = Lines { module, id };
    let view = module.view(id);
    view.map_or_else(PressureReport::default, |view| {
        pressure_of(&view, |inst| lines.of(inst))
    })
}

/// The same of finished machine code; `None` where not all of its registers are known.
pub fn pressure_of_machine_code(elf: &Elf, kernel: &str) -> Option<PressureReport> {
    let code = Code::new(elf, &elf.kernel(kernel).ok()?, Calls::Followed).ok()?;
    let is_known = code.opaque().is_empty();
    let lines = source_lines(elf, kernel).unwrap_or_default();
    let line = |inst: Inst| {
        let line = lines.get(inst.0 as usize)?.as_ref()?;
        let line = Some(line).filter(|line| line.line > 0)?;
        Some(format!("{}:{}", line.file, line.line))
    };
    is_known.then(|| pressure_of(&code, line))
}

fn pressure_of<F: Function>(view: &F, line: impl Fn(Inst) -> Option<String>) -> PressureReport {
    let cfg = Cfg::new(view);
    let loops = Loops::new(&cfg);
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
    let row = |inst: Inst| Around {
        at: inst.0,
        units: pressure.during(inst),
        text: view.inst_text(inst),
        line: line(inst),
        source: None,
    };
    let live = highest
        .first()
        .map(|region| liveness.live_before(view, &cfg, region.first));
    let live = live.unwrap_or_default();
    PressureReport {
        peak_units: pressure.max(),
        instructions: view.inst_count(),
        loop_depth: loops.iter().map(|l| loops.depth(l)).max().unwrap_or(0),
        curve: insts().map(|i| pressure.during(i)).collect(),
        lines: insts().map(&line).collect(),
        around: around.map(|i| row(Inst(i))).collect(),
        live: live
            .into_iter()
            .map(|value| view.value_name(value))
            .collect(),
        peaks: highest.into_iter().map(peak).collect(),
        crossing: ranges
            .crossing_peak(&pressure, &def_use)
            .into_iter()
            .take(LISTED_RANGES)
            .map(range)
            .collect(),
    }
}

/// Source lines by `.loc`.
struct Lines<'m> {
    module: &'m Module,
    id: FuncId,
}

impl Lines<'_> {
    fn of(&self, inst: Inst) -> Option<String> {
        let body = self.module.functions[self.id].body.as_ref()?;
        // Line 0 is code of no line.
        let loc = body.loc(warpwright_ptx::Inst::from_u32(inst.0));
        let loc = loc.filter(|loc| loc.line > 0)?;
        let path = &self.module.file(loc.file)?.path;
        let name = path.rsplit('/').next().unwrap_or(path);
        Some(format!("{name}:{}", loc.line))
    }
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
        let report = pressure_of_machine_code(&elf, "k").unwrap();
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
        assert_eq!(
            pressure_of_machine_code(&elf, "other").map(|r| r.peak_units),
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
        };
        let lines = [Some("k.cu:2"), Some("other.h:1"), Some("k.cu:9"), None];
        let mut report = PressureReport {
            around: lines.map(row).into(),
            ..PressureReport::default()
        };
        report.quote("k.cu", "first\n  second;\n");
        let found: Vec<Option<&str>> = report.around.iter().map(|r| r.source.as_deref()).collect();
        assert_eq!(found, [Some("second;"), None, None, None]);
    }
}
