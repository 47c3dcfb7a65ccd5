//! What `opt` and `tune` print: for one kernel a screen of [`WIDTH`] columns and [`HEIGHT`] lines (what limits it, the
//! choice, the gain, the best alternatives and why they were not taken, what to do next), for several a summary by
//! gain, and every candidate where that is asked for.

use std::collections::BTreeMap;

use warpwright_diag::{count, plural};
use warpwright_driver::candidate::{Figures, Standing, Turns};
use warpwright_driver::opt::{self, DEFAULT_MARGIN};
use warpwright_driver::proposal::is_version;
use warpwright_driver::why_not::{NotChosen, why_not};
use warpwright_driver::{Candidate, KernelReport, Resources};
use warpwright_pass::names::{base_name, source_name, template_arguments};
use warpwright_pass::passes::{MaxNReg, Specialize, UsageLevel};
use warpwright_pass::{
    Block, BlockSource, Caution, Invocation, Level, Need, Promises, Rung, rests_on,
};
use warpwright_sass::profile::LOOP_WEIGHT;
use warpwright_target::{Gpu, lookup};

use crate::edit::edits_of;
use crate::table::Table;

/// Columns of a terminal.
pub const WIDTH: usize = 80;
/// Lines of the screen for one kernel.
pub const HEIGHT: usize = 20;
/// Alternatives that are named.
const ALTERNATIVES: usize = 3;
/// Characters of a choice in a summary.
const CHOICE: usize = 26;
/// Columns of a summary beside the kernel and the choice: times, registers before and after, warps, what is between.
const BESIDE: usize = 30;
/// Kernels that a promise names.
const NAMED: usize = 3;
/// What the notes say that want it.
const UNSTATED: &str = "--dynamic-smem";
const NOT_MOVED: &str = "spills are not moved to shared memory, whose dynamic part nobody states (--dynamic-smem BYTES, 0 if there is none)";
/// Recipes that are written out for the drop-in.
const RECIPES: usize = 12;
/// Kernels of a summary, unless all are asked for.
const KERNELS: usize = 40;

/// What is shown beside the kernels.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// FILE.
    pub input: &'a str,
    /// The GPU by name.
    pub gpu: &'a str,
    /// `ptxas 13.5.37`, or what stands in for it.
    pub builder: &'a str,
    /// OUT; nothing is written without.
    pub output: Option<&'a str>,
    /// `cubin`, `ptx`, or `file` for a host file with its cubins replaced.
    pub emitted: &'a str,
    /// Is FILE machine code?
    pub is_machine_code: bool,
    /// Were candidates measured?
    pub is_measured: bool,
    /// Is a page written, too?
    pub has_page: bool,
    /// Is every candidate to be shown?
    pub all: bool,
    /// Lines that stand below.
    pub reserved: usize,
}

impl About<'_> {
    fn level(&self) -> Level {
        match self.is_machine_code {
            true => Level::MachineCode,
            false => Level::Ptx,
        }
    }
}

/// The board whose SMs are reckoned with for a bare architecture, behind the GPU; nothing where none is.
/// Nor where no grid is known.
pub fn assumed_board(gpu: &Gpu, mut grids: impl Iterator<Item = Option<u64>>) -> String {
    match (gpu.board, gpu.typical_board()) {
        (None, Some(board)) if board.sms.is_some() && grids.any(|grid| grid.is_some()) => {
            format!(" (SMs: {}'s)", board.name)
        }
        _ => String::new(),
    }
}

/// The whole text.
pub fn screen(kernels: &[KernelReport], about: &About<'_>) -> String {
    let gpu = lookup(about.gpu).ok();
    let grids = kernels.iter().map(|kernel| kernel.grid);
    let board = gpu.map_or_else(String::new, |gpu| assumed_board(&gpu, grids));
    let mut lines = wrap(
        &format!(
            "{} for {}{board}, {}",
            about.input, about.gpu, about.builder
        ),
        "",
        "",
    );
    lines.push(String::new());
    let mut text = String::new();
    match kernels {
        _ if about.all => {
            for kernel in kernels {
                text += &(lines.join("\n") + "\n");
                lines = vec![String::new()];
                text += &candidates(kernel, about.level());
            }
            lines.extend(next(kernels, about));
        }
        [kernel] => {
            let next = next(kernels, about);
            let room = HEIGHT.saturating_sub(lines.len() + next.len() + about.reserved);
            lines.extend(one(kernel, room, about.level()));
            lines.extend(next);
        }
        _ => {
            text += &(lines.join("\n") + "\n");
            lines = Vec::new();
            text += &summary(kernels);
            lines.extend(next(kernels, about));
        }
    }
    text + &lines.join("\n") + "\n"
}

/// The promises of a choice, without what its proof says of dynamic shared memory where a pass has said it already.
fn apart(report: &KernelReport) -> Vec<&String> {
    let bytes = report.dynamic_smem;
    let said = Caution::DynamicSharedBound { bytes }.to_string();
    let again = rests_on(&Promises {
        dynamic_smem: Some(bytes),
        ..Promises::default()
    });
    let is_said = report.promises.contains(&said);
    let promises = report.promises.iter();
    promises.filter(|p| !(is_said && **p == again)).collect()
}

/// One kernel in at most `room` lines; notes that do not fit are counted.
fn one(report: &KernelReport, room: usize, level: Level) -> Vec<String> {
    let mut lines = title(report);
    if !is_replayed(report) {
        let default = &report.candidates[0];
        let now = figures(default, report.dynamic_smem, level);
        lines.extend(wrap(&now, "  now     ", INDENT));
        lines.extend(wrap(&limits(report), INDENT, INDENT));
    }
    lines.extend(choice(report, level));
    // What the choice relies on goes before the alternatives.
    let promises = apart(report);
    let notes: Vec<Vec<String>> = report
        .notes
        .iter()
        .chain(promises.iter().copied())
        .map(|note| wrap(note, "  note    ", INDENT))
        .collect();
    let wanted: usize = notes.iter().map(Vec::len).sum();
    // One stands there always, the others where there is room.
    let mut left = room.saturating_sub(lines.len() + 1 + wanted);
    let (best, others) = alternatives(report, ALTERNATIVES);
    let told = best.iter().map(|&index| alternative(report, index));
    // What launches must keep to is said whatever else there is.
    let promised = notes.len() - promises.len();
    let needed: usize = notes[promised..].iter().map(Vec::len).sum();
    let needed = needed + usize::from(promised > 0);
    let space = room.saturating_sub(lines.len() + 1);
    let told: Vec<Vec<String>> = told
        .enumerate()
        .take_while(|(at, text)| {
            let fits = match at {
                0 => text.len() + needed <= space,
                _ => text.len() <= left,
            };
            left = left.saturating_sub(text.len());
            fits
        })
        .map(|(_, text)| text)
        .collect();
    match (told.len(), others + best.len() - told.len()) {
        (0, 0) => {}
        (0, others) => lines.push(format!("  not chosen: {others} with --all")),
        (_, 0) => lines.push("  not chosen".to_owned()),
        (_, others) => lines.push(format!("  not chosen, the best; {others} more with --all")),
    }
    lines.extend(told.into_iter().flatten());
    // The last notes are what the choice relies on.
    let mut left = room.saturating_sub(lines.len());
    let mut first = notes.len();
    while let Some(note) = first.checked_sub(1).map(|at| &notes[at]) {
        let is_promise = first > promised;
        if !is_promise && note.len() + usize::from(first > 1) > left {
            break;
        }
        left = left.saturating_sub(note.len());
        first -= 1;
    }
    let hidden = first;
    lines.extend(notes.into_iter().skip(first).flatten());
    if hidden > 0 {
        lines.push(format!(
            "  {hidden} more {} with --all",
            plural("note", hidden)
        ));
    }
    lines
}

/// The choice.
fn choice(report: &KernelReport, level: Level) -> Vec<String> {
    let mut lines = Vec::new();
    let (default, chosen) = (&report.candidates[0], &report.candidates[report.chosen]);
    if report.chosen == 0 {
        let what = match is_replayed(report) {
            true => default.recipe.to_string(),
            false => "kept".to_owned(),
        };
        let text = format!("{what}: {}", report.reason);
        lines.extend(wrap(&text, "  choice  ", INDENT));
    } else {
        lines.extend(wrap(
            &gain(chosen, &report.reason, report.counted.is_some()),
            "  choice  ",
            INDENT,
        ));
        let figures = figures(chosen, report.dynamic_smem, level);
        lines.extend(wrap(&figures, INDENT, INDENT));
        if let Some(gained) = &report.gained {
            lines.extend(wrap(gained, INDENT, INDENT));
        }
        lines.extend(proof(chosen).map(|proof| format!("{INDENT}{proof}")));
        if let Some(launches) = launches(report, chosen) {
            lines.extend(wrap(&launches, INDENT, INDENT));
        }
    }
    lines
}

/// Which launches a version of the kernel is for, if it is not for all.
pub(crate) fn launches(report: &KernelReport, chosen: &Candidate) -> Option<String> {
    let is_ran = matches!(
        report.block_source,
        BlockSource::Ran | BlockSource::RanFirst
    );
    if !is_version(&chosen.recipe) {
        return None;
    }
    let own = chosen.recipe.find::<Specialize>();
    let is_of_another = own
        .and_then(|own| own.block)
        .is_some_and(|block| block != report.block);
    let whose = match (is_of_another, is_ran) {
        (true, _) => "those of another launch",
        (false, true) => "what all such launches of its program were given",
        (false, false) => "those of the launch",
    };
    let guard = own.and_then(Specialize::by_places);
    let alone = guard.map_or_else(String::new, |guard| {
        format!("; `check --assume '{guard}'` looks at these alone")
    });
    Some(format!(
        "its constants are {whose}; others run the original, behind a branch{alone}"
    ))
}

/// A candidate and why it was not chosen, in two lines at most.
fn alternative(report: &KernelReport, index: usize) -> Vec<String> {
    let why = why_not(&report.candidates, report.chosen, index, DEFAULT_MARGIN);
    let candidate = &report.candidates[index];
    let text = format!("{}: {why}", candidate.recipe);
    let time = format!("    {:>4}  ", time(candidate));
    let mut text = wrap(&text, &time, INDENT);
    if text.len() > 2 {
        text.truncate(2);
        text[1] = shortened(&(text[1].clone() + " …"), WIDTH);
    }
    text
}

/// Is it what a named recipe made, and no choice?
fn is_replayed(report: &KernelReport) -> bool {
    let first = report.candidates.first();
    first.is_some_and(|first| !first.recipe.passes().is_empty())
}

/// What stands before continued lines of a kernel.
const INDENT: &str = "          ";

fn title(report: &KernelReport) -> Vec<String> {
    wrap(&titled(&report.name, &launched_of(report)), "", "  ")
}

/// The launch that a report goes by.
pub(crate) fn launched_of(report: &KernelReport) -> String {
    let block = (report.block, report.block_source);
    launched(block, (report.grid, report.idle_sms), &report.guessed)
}

/// A launch in words: its block, who says so, and its blocks where they are known.
pub fn launched(
    (block, source): ([u32; 3], BlockSource),
    (grid, idle_sms): (Option<u64>, Option<u32>),
    guessed: &str,
) -> String {
    let mut text = format!("{} threads per block ({source})", extents(block));
    if let Some(blocks) = grid {
        text += &format!(", {}", count(blocks, "block"));
    }
    if !guessed.is_empty() {
        text += &format!(" ({guessed})");
    }
    if let Some(idle) = idle_sms {
        text += &match idle {
            1 => ": 1 SM gets none".to_owned(),
            _ => format!(": {idle} SMs get none"),
        };
    }
    text
}

/// The first line about a kernel.
pub fn titled(kernel: &str, launched: &str) -> String {
    format!("kernel {}, {launched}", source_name(kernel))
}

/// `256`, `16×8`: a block without the directions that it does not use.
pub fn extents(block: [u32; 3]) -> String {
    let used = block.iter().rposition(|&n| n != 1).unwrap_or(0);
    let extents: Vec<String> = block[..=used].iter().map(u32::to_string).collect();
    extents.join("×")
}

/// Registers, spills, shared memory, warps.
fn figures(candidate: &Candidate, dynamic_smem: u32, level: Level) -> String {
    let Some(r) = candidate.resources() else {
        return "its resources are not known".into();
    };
    let mut parts = vec![count(r.registers, "register"), spills(r, level)];
    if level != Level::MachineCode && !r.spills() && r.stack_bytes > 0 {
        parts.push(format!("{} B of local arrays", r.stack_bytes));
    }
    let shared = r.shared_bytes + dynamic_smem;
    match (shared, r.spill_shared_bytes) {
        (0, _) => {}
        (shared, 0) => parts.push(format!("{shared} B shared")),
        (shared, spilled) => {
            parts.push(format!("{shared} B shared ({spilled} of them for spills)"));
        }
    }
    parts.push(match (candidate.residency(), candidate.elsewhere()) {
        (Some(found), _) => format!(
            "{}/SM ({:.0}%, {})",
            count(found.warps, "warp"),
            found.percent,
            count(found.blocks, "block")
        ),
        (None, Some(launches)) => for_others(launches),
        (None, None) => "it cannot be launched".into(),
    });
    parts.join(", ")
}

/// What is said of a build that is not for the launch that is known.
pub(crate) fn for_others(launches: &str) -> String {
    format!("for launches of {launches} and not this one, of which nothing is predicted")
}

/// Bytes of spill traffic, and where. `level`: what was given. Finished code does not tell slots from data of its
/// own, in shared memory or in its frame: of that the size is told.
pub fn spills(r: &Resources, level: Level) -> String {
    let is_finished = level == Level::MachineCode;
    match (r.local_spill_bytes(), r.spill_moved_bytes) {
        (bytes, 0) if is_finished && bytes + r.computed_accesses > 0 => {
            format!("{} B spills or local arrays", r.stack_bytes)
        }
        (0, 0) if is_finished || r.spill_shared_bytes > 0 => "no local spills".to_owned(),
        (0, 0) => "no spills".to_owned(),
        (bytes, 0) if r.spill_shared_bytes > 0 => format!("{bytes} B local spills"),
        (bytes, 0) => format!("{bytes} B spills"),
        (0, moved) => format!("{moved} B spills (shared)"),
        (bytes, moved) => format!("{bytes} B spills and {moved} (shared)"),
    }
}

/// What limits a kernel: its resident warps, and its time.
fn limits(report: &KernelReport) -> String {
    let default = &report.candidates[0];
    let mut parts = Vec::new();
    if let Some(found) = default.residency() {
        parts.push(format!("limited by {}", found.limiters.join(" and ")));
    } else if let Some(why) = default.rejected() {
        parts.push(why.to_string());
    }
    match (&report.counted, default.score()) {
        (Some(counted), _) => {
            let near = counted.others().filter(|(_, part)| *part >= NEAR);
            let near: Vec<String> = near.map(beside).collect();
            parts.push(bound_by(&counted.bound, counted.turns, &near));
        }
        (None, Some(score)) => parts.push(bound_by(&score.bound, score.turns, &[])),
        (None, None) => {}
    }
    parts.extend(report.wasted.clone());
    parts.join("; ")
}

/// Of the largest part of a time: what is as large as this nearly bounds it, too.
const NEAR: f64 = 0.8;

/// A part of a time beside the largest.
pub fn beside((name, part): (&str, f64)) -> String {
    format!("{name} takes {:.0}% of that", 100.0 * part)
}

/// What bounds a time under the model, what that goes by, and what else there is to say of it.
pub fn bound_by(bound: &str, turns: Turns, more: &[String]) -> String {
    let turns = match turns {
        Turns::None => "predicted".to_owned(),
        Turns::Assumed => assumed(),
        Turns::Counted => "predicted, loops counted".to_owned(),
        Turns::CountedSmaller => "predicted, loops counted at a smaller size".to_owned(),
    };
    let more = match more {
        [] => String::new(),
        more => format!("; {}", more.join(", ")),
    };
    format!("time bound by {bound} ({turns}{more})")
}

/// What a prediction goes by that counts no turns of loops.
fn assumed() -> String {
    format!("if loops have {LOOP_WEIGHT:.0} turns")
}

/// The choice in a sentence.
pub(crate) fn decision(report: &KernelReport) -> String {
    match report.chosen {
        0 => format!("Kept as it is: {}.", report.reason),
        chosen => {
            let candidate = &report.candidates[chosen];
            let times =
                relative_time(candidate).map(|time| format!(" ({:.2} times as fast)", 1.0 / time));
            let times = times.unwrap_or_default();
            format!("{}: {}{times}.", candidate.recipe, report.reason)
        }
    }
}

/// The choice where there is room for a word or a number.
pub(crate) fn in_brief(report: &KernelReport) -> String {
    match (
        report.chosen,
        relative_time(&report.candidates[report.chosen]),
    ) {
        (0, _) => "kept".to_owned(),
        (_, Some(time)) => format!("{:.2} times as fast", 1.0 / time),
        (_, None) => "changed".to_owned(),
    }
}

fn gain(chosen: &Candidate, reason: &str, is_counted: bool) -> String {
    let (how, time) = match (chosen.measured(), chosen.score()) {
        (Some(m), _) => ("measured", m.relative_time),
        (None, Some(s)) => ("predicted", s.relative_time),
        (None, None) => return format!("{}: {reason}", chosen.recipe),
    };
    let by = match reason == opt::NAMED {
        true => format!("{reason}; "),
        false => String::new(),
    };
    let faster = match time {
        1.0.. => String::new(),
        _ => format!(", {:.2} times as fast", 1.0 / time),
    };
    // Beside turns that are counted.
    let turns = match chosen.score().filter(|_| chosen.measured().is_none()) {
        Some(score) if is_counted && score.turns == Turns::Assumed => format!(" {}", assumed()),
        _ => String::new(),
    };
    let part = part(time);
    format!(
        "{}: {by}{how} {part} of the time{turns}{faster}",
        chosen.recipe
    )
}

/// A time over that of now, in words.
pub fn part(time: f64) -> String {
    match time {
        ..0.005 => "less than 0.01".to_owned(),
        _ => format!("{time:.2}"),
    }
}

/// What stands behind the choice.
pub(crate) fn proof(chosen: &Candidate) -> Option<&'static str> {
    match chosen.figures()?.standing {
        Standing::Proved(Rung::SameCode | Rung::Unchanged) => {
            Some("ptxas makes it of the same instructions; nothing is rewritten")
        }
        Standing::Proved(rung) => Some(behind(rung)),
        _ => None,
    }
}

/// What stands behind a new version, in words.
pub fn behind(rung: Rung) -> &'static str {
    match rung {
        Rung::Proved => "proved: it computes what the original does",
        Rung::ProvedAsPtx => "proved: its PTX computes what the original's does",
        Rung::Emulated => {
            "compared: the emulator computes the same with both, at odd and tiny sizes"
        }
        Rung::SameCode => "the same code",
        Rung::Unchanged => "unchanged",
    }
}

/// The best that were not chosen, and how many more there are. What has the code of another is that.
fn alternatives(report: &KernelReport, most: usize) -> (Vec<usize>, usize) {
    let mut others: Vec<usize> = (1..report.candidates.len())
        .filter(|&i| i != report.chosen && report.candidates[i].same_code_as().is_none())
        .collect();
    let rank = |&i: &usize| {
        let candidate = &report.candidates[i];
        let is_out = candidate.rejected().is_some();
        (is_out, relative_time(candidate).unwrap_or(f64::INFINITY))
    };
    others.sort_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let more = others.len().saturating_sub(most);
    others.truncate(most);
    (others, more)
}

fn relative_time(candidate: &Candidate) -> Option<f64> {
    let measured = candidate.measured().map(|m| m.relative_time);
    measured.or(candidate.score().map(|s| s.relative_time))
}

fn time(candidate: &Candidate) -> String {
    relative_time(candidate).map_or_else(|| "–".into(), in_cell)
}

/// The same where there is no room for words.
fn in_cell(time: f64) -> String {
    match time {
        ..0.005 => "<0.01".to_owned(),
        _ => format!("{time:.2}"),
    }
}

/// Several kernels, those that gain most first.
fn summary(kernels: &[KernelReport]) -> String {
    let mut order: Vec<&KernelReport> = kernels.iter().collect();
    let time_of = |report: &KernelReport| match report.chosen {
        0 => 1.0,
        chosen => relative_time(&report.candidates[chosen]).unwrap_or(1.0),
    };
    order.sort_by(|a, b| time_of(a).total_cmp(&time_of(b)).then(a.name.cmp(&b.name)));
    let mut table = Table::new(&["time", "registers", "warps", "kernel", "choice"]);
    let in_short = |report: &KernelReport| match report.chosen {
        0 => "kept".to_owned(),
        chosen => shortened(&report.candidates[chosen].recipe.to_string(), CHOICE),
    };
    // Names have what the choices leave.
    let choices = order
        .iter()
        .take(KERNELS)
        .map(|report| in_short(report).chars().count());
    let name = WIDTH - BESIDE - choices.max().unwrap_or(0).max("choice".len());
    for report in order.iter().take(KERNELS) {
        let before = &report.candidates[0];
        let after = &report.candidates[report.chosen];
        let change = |of: &dyn Fn(&Figures) -> Option<u32>| {
            let get = |c: &Candidate| c.figures().and_then(of);
            match (get(before), get(after)) {
                (Some(a), Some(b)) if a != b => format!("{a} → {b}"),
                (_, Some(b)) => b.to_string(),
                _ => "–".into(),
            }
        };
        table.row(vec![
            in_cell(time_of(report)),
            change(&|f| Some(f.resources.registers)),
            change(&|f| f.residency.as_ref().map(|r| r.warps)),
            shortened(&source_name(&report.name), name),
            in_short(report),
        ]);
    }
    let changed = kernels.iter().filter(|k| k.chosen != 0).count();
    let mut text = format!(
        "{changed} of {} kernels are changed; times are relative to now\n\n",
        kernels.len()
    );
    text += &table.render(2);
    if kernels.len() > KERNELS {
        let more = kernels.len() - KERNELS;
        text += &format!("  … and {more} more (--json has all)\n");
    }
    // What launches must keep to, and what nobody has stated.
    let mut promises: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for report in order {
        let kept = report.promises.iter().filter(|_| report.chosen != 0);
        let unstated = report.notes.iter().filter(|note| note.contains(UNSTATED));
        for note in kept.chain(unstated) {
            promises.entry(note).or_default().push(&report.name);
        }
        let mut refused = report.candidates.iter().filter_map(|c| c.rejected());
        if refused.any(|why| why.to_string().contains(UNSTATED)) {
            promises.entry(NOT_MOVED).or_default().push(&report.name);
        }
    }
    for (promise, of) in promises {
        let note = format!("{}: {promise}", names(of.into_iter()));
        text += &("\n".to_owned() + &wrap(&note, "  note    ", INDENT).join("\n") + "\n");
    }
    let assumed = kernels.iter();
    let assumed: Vec<_> = assumed
        .filter(|k| k.block_source == BlockSource::Assumed)
        .collect();
    if let Some(first) = assumed.first() {
        let threads: u32 = first.block.iter().product();
        let of = match assumed.len() == kernels.len() {
            true => "all".to_owned(),
            false => names(assumed.iter().map(|kernel| &*kernel.name)),
        };
        let note = format!(
            "{threads} threads per block are assumed of {of}: --block [NAME=]X states them"
        );
        text += &("\n".to_owned() + &wrap(&note, "  note    ", INDENT).join("\n") + "\n");
    }
    text + "\n"
}

/// Some names of kernels, and how many more there are.
fn names<'n>(of: impl Iterator<Item = &'n str>) -> String {
    let of: Vec<&str> = of.collect();
    let more = of.len().saturating_sub(NAMED);
    let mut names: Vec<String> = of.iter().take(NAMED).map(|n| source_name(n)).collect();
    names.extend((more > 0).then(|| format!("{more} more")));
    names.join(", ")
}

/// Every candidate of a kernel; what has the code of another stands in its line.
fn candidates(report: &KernelReport, level: Level) -> String {
    let mut table = Table::new(&[
        "",
        "time",
        "regs",
        "spill",
        "in smem",
        "smem",
        "blocks",
        "warps",
        "candidate",
    ]);
    for (i, c) in report.candidates.iter().enumerate() {
        if c.same_code_as().is_some() {
            continue;
        }
        let of = |f: &dyn Fn(&Figures) -> Option<String>| {
            c.figures().and_then(f).unwrap_or_else(|| "–".into())
        };
        let mut note = c.recipe.to_string();
        let name = c.name();
        let twins = report
            .candidates
            .iter()
            .filter(|t| t.same_code_as() == Some(&*name));
        let twins: Vec<String> = twins.map(|twin| twin.recipe.to_string()).collect();
        if !twins.is_empty() {
            note += &format!(" = {}", twins.join(" = "));
        }
        if i != report.chosen {
            match why_not(&report.candidates, report.chosen, i, DEFAULT_MARGIN) {
                NotChosen::Slower { .. } | NotChosen::AsFast | NotChosen::Noise => {}
                why => note += &format!(" ({why})"),
            }
        }
        table.row(vec![
            if i == report.chosen { "*" } else { "" }.into(),
            time(c),
            of(&|f| Some(f.resources.registers.to_string())),
            of(&|f| Some(f.resources.local_spill_bytes().to_string())),
            of(&|f| Some(f.resources.spill_moved_bytes.to_string())),
            of(&|f| Some((f.resources.shared_bytes + report.dynamic_smem).to_string())),
            of(&|f| f.residency.as_ref().map(|r| r.blocks.to_string())),
            of(&|f| f.residency.as_ref().map(|r| r.warps.to_string())),
            note,
        ]);
    }
    let moved = |c: &Candidate| c.resources().map_or(0, |r| r.spill_moved_bytes);
    if report.candidates.iter().all(|c| moved(c) == 0) {
        table.remove("in smem");
    }
    let mut text = title(report).join("\n") + "\n" + &table.render_within(1);
    text += &(choice(report, level).join("\n") + "\n");
    for note in report.notes.iter().chain(&report.promises) {
        text += &(wrap(note, "  note    ", INDENT).join("\n") + "\n");
    }
    text
}

/// What to do with it.
fn next(kernels: &[KernelReport], about: &About<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let is_changed = kernels.iter().any(|kernel| kernel.chosen != 0);
    let level = kernels.iter().find_map(|kernel| {
        let UsageLevel { level } = kernel.candidates[kernel.chosen].recipe.find()?;
        Some(level)
    });
    let is_replayed = kernels.iter().any(is_replayed);
    match (about.output, about.emitted) {
        (Some(output), _) if !is_changed && !is_replayed => {
            let what = match about.is_machine_code {
                true => "what was given",
                false => "the default build",
            };
            let text = format!("wrote {output}: {what}, since no recipe gains");
            lines.extend(wrap(&text, "  next    ", INDENT));
        }
        (None, _) if is_changed || is_replayed => {
            lines.push("  next    -o OUT writes it; nothing is written now".into())
        }
        (None, _) => lines.push("  next    no recipe gains, and nothing was written".into()),
        (Some(output), "ptx") => {
            lines.extend(wrap(&format!("wrote {output} (PTX)"), "  next    ", INDENT));
            let spills = |kernel: &KernelReport| {
                let resources = kernel.candidates[kernel.chosen].resources();
                resources.is_some_and(|r| r.local_spill_bytes() > 0)
            };
            if kernels.iter().any(spills) {
                let text = "-o OUT.cubin: machine code can also move what spills to shared memory";
                lines.extend(wrap(text, INDENT, INDENT));
            }
            if let Some(level) = level {
                let text = format!("assemble it with ptxas --register-usage-level {level}");
                lines.push(format!("{INDENT}{text}"));
            }
        }
        (Some(output), "file") => {
            let text = format!("wrote {output}: it takes the place of {}", about.input);
            lines.extend(wrap(&text, "  next    ", INDENT));
        }
        (Some(output), _) => {
            let text = format!("wrote {output}: give it to cuModuleLoad in the old module's place");
            lines.extend(wrap(&text, "  next    ", INDENT));
        }
    }
    let changed: Vec<&KernelReport> = kernels.iter().filter(|k| k.chosen != 0).collect();
    if !changed.is_empty() && !about.is_machine_code {
        let from_nvcc = match kernels {
            [kernel] => in_source(kernel),
            _ => None,
        };
        let recipe = |kernel: &&KernelReport| {
            let name = instance_name(&kernel.name);
            format!("{name}={}", kernel.candidates[kernel.chosen].recipe)
        };
        let by_the_drop_in = || {
            // Whatever is wrapped within the quotes may be pasted: the drop-in takes a line's end for a space.
            let recipes: Vec<String> = changed.iter().map(recipe).collect();
            let start = if recipes.len() > 1 { "\n" } else { "" };
            // The drop-in knows no launch.
            let bounds = changed
                .iter()
                .filter(|kernel| wants_bounds(kernel))
                .map(|kernel| {
                    let threads: u32 = kernel.block.iter().product();
                    let at = match kernels {
                        [_] => String::new(),
                        _ => format!(" at `{}`", instance_name(&kernel.name)),
                    };
                    format!("`__launch_bounds__({threads})`{at}")
                });
            let bounds: Vec<String> = bounds.collect();
            let with = match bounds.is_empty() {
                true => " (explain-term drop-in)".to_owned(),
                false => format!(", with {}", bounds.join(", ")),
            };
            format!(
                "in your build, by the drop-in{with}: WARPWRIGHT_PTXAS_RECIPES='{start}{}'",
                recipes.join(" |\n")
            )
        };
        let way = from_nvcc.or_else(|| (changed.len() <= RECIPES).then(by_the_drop_in));
        for line in way.iter().flat_map(|way| way.lines()) {
            lines.extend(wrap(line, INDENT, INDENT));
        }
    }
    if about.is_machine_code {
        let way = "of machine code, spills and residency change; register limits and `promote` want PTX: \
                   `warpwright nvcc` builds with both";
        lines.extend(wrap(way, INDENT, INDENT));
    }
    if !about.is_measured && !about.is_machine_code && about.emitted != "file" {
        lines.push(format!(
            "{INDENT}`warpwright tune` measures the candidates on your GPU"
        ));
    }
    if kernels.len() > 1 && !about.all {
        lines.push(format!(
            "{INDENT}--kernel NAME: one kernel and its best candidates"
        ));
    }
    let more = [
        (!about.all).then_some("--all: every candidate"),
        (!about.has_page).then_some("--report R.html: a page"),
        Some("explain-term WORD"),
    ];
    let more: Vec<&str> = more.into_iter().flatten().collect();
    lines.push(format!("{INDENT}{}", more.join("; ")));
    lines
}

/// Does its chosen recipe go by a block size that its code does not state?
fn wants_bounds(kernel: &KernelReport) -> bool {
    let recipe = &kernel.candidates[kernel.chosen].recipe;
    let block = Block {
        dims: kernel.block,
        source: kernel.block_source,
    };
    let is_stated = match block.source {
        BlockSource::Required | BlockSource::Bound | BlockSource::BoundSeen => true,
        _ => kernel.has_bounds && block.is_seen(),
    };
    let goes_by_it = |pass: &Invocation| pass.needs().contains(&Need::BlockSize);
    !is_stated && recipe.passes().iter().any(goes_by_it)
}

/// A kernel's name as the drop-in's recipes have it: of a template the instance's.
fn instance_name(symbol: &str) -> String {
    match &template_arguments(symbol)[..] {
        [] => base_name(symbol).to_string(),
        arguments => format!("{}<{}>", base_name(symbol), arguments.join(", ")),
    }
}

/// What makes nvcc build the same ([`edits_of`]), in words.
fn in_source(report: &KernelReport) -> Option<String> {
    let edits = edits_of(report);
    let [edit] = &edits[..] else { return None };
    // Bounds in the source steer how nvcc makes PTX as well.
    let recipe = &report.candidates[report.chosen].recipe;
    // Template arguments are constants for nvcc before it optimises, and for us behind it.
    if recipe.find::<Specialize>().is_some() {
        return Some(format!("similar from nvcc: {}", edit.text));
    }
    Some(match recipe.find::<MaxNReg>() {
        Some(_) => format!("from nvcc, if its PTX stays the same: {}", edit.text),
        None => format!("the same from nvcc: {}", edit.text),
    })
}

/// At most `width` characters, the rest left out at the end: whole words, where they take a third of the room.
pub fn shortened(text: &str, width: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(width) else {
        return text.to_owned();
    };
    // With a blank and the mark.
    let blanks = text[..end].match_indices(' ').rev();
    let mut whole = blanks.map(|(at, _)| text[..at].trim_end());
    match whole.find(|kept| kept.chars().count() + 2 <= width) {
        Some(kept) if 3 * kept.chars().count() > width => format!("{kept} …"),
        _ => {
            let kept = text.chars().take(width.saturating_sub(1));
            kept.chain(['…']).collect()
        }
    }
}

/// At most `width` characters, what is left out in the middle: a place ends in its line, a name in what tells it from
/// others.
pub fn squeezed(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let head = width / 3;
    let tail = width.saturating_sub(head + 1);
    let first = text.chars().take(head);
    let last = text.chars().skip(length - tail);
    first.chain(['…']).chain(last).collect()
}

/// Lines of at most [`WIDTH`] characters, broken at blanks; a longer word stands alone.
pub fn wrap(text: &str, first: &str, rest: &str) -> Vec<String> {
    wrap_at(WIDTH, text, first, rest)
}

/// The same of `width` characters, with nothing before them.
pub fn broken(text: &str, width: usize) -> Vec<String> {
    wrap_at(width, text, "", "")
}

/// Why versions were dropped, as lines: each reason once, with the versions that it drops.
pub fn dropped<'a>(all: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (version, why) in all {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, versions)) => versions.push(version),
            None => reasons.push((why, vec![version])),
        }
    }
    let mut text = String::new();
    for (why, versions) in reasons {
        let more = match versions.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let line = format!("dropped {}{more}: {why}", versions[0]);
        text += &wrap(&line, "", "  ").join("\n");
        text.push('\n');
    }
    text
}

fn wrap_at(width: usize, text: &str, first: &str, rest: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let long = line.chars().count() + usize::from(!is_empty) + word.chars().count();
        if !is_empty && long > width {
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_that_fall_for_one_reason_share_a_line() {
        let all = [
            ("a", "it faults"),
            ("b", "it differs"),
            ("c", "it faults"),
            ("d", "it faults"),
        ];
        let expected = "dropped a and 2 more: it faults\ndropped b: it differs\n";
        assert_eq!(super::dropped(all), expected);
        assert_eq!(super::dropped([]), "");
    }

    use super::*;
    use serde_json::json;

    /// A kernel with a default build, a choice with twice the warps, and candidates that are not chosen.
    fn report(name: &str, time: f64, notes: &[&str]) -> KernelReport {
        let candidate = |recipe: &str, registers: u32, time: f64, warps: u32| {
            json!({
                "recipe": recipe,
                "resources": {"registers": registers, "stack_bytes": 0, "spill_store_bytes": 40,
                    "spill_load_bytes": 60, "spill_moved_bytes": if time < 1.0 { 100 } else { 0 },
                    "shared_bytes": 1024, "barriers": 0},
                "residency": {"blocks": warps / 8, "warps": warps, "percent": 12.5, "limiters": ["registers"]},
                "score": {"relative_time": time, "bound": "latency", "active_warps": warps},
                "measured": null, "rejected": null, "same_code_as": null
            })
        };
        let mut candidates = vec![
            candidate("default", 135, 1.0, 8),
            candidate("maxnreg(64); spill-to-shared", 64, time, 16),
            candidate("maxnreg(32)", 32, 3.0, 64),
            candidate("usage-level(0)", 130, 1.1, 8),
        ];
        candidates[3]["same_code_as"] = json!("maxnreg-32");
        let value = json!({
            "name": name, "block": [16, 8, 1], "block_source": "option", "dynamic_smem": 512,
            "recipe_text": "", "candidates": candidates, "chosen": usize::from(time < 1.0),
            "reason": "because", "notes": notes
        });
        serde_json::from_value(value).unwrap()
    }

    const ABOUT: About<'_> = About {
        input: "k.cu",
        gpu: "h200 (sm_90)",
        builder: "ptxas 13.5.37",
        output: None,
        emitted: "cubin",
        is_machine_code: false,
        is_measured: false,
        has_page: false,
        all: false,
        reserved: 0,
    };

    #[test]
    fn one_kernel_is_a_screen() {
        let long = "a word and ".repeat(30);
        let notes = [&*long, "promise one", "promise two"];
        let shown = screen(&[report("k", 0.8, &notes)], &ABOUT);
        assert!(shown.lines().count() <= HEIGHT, "{shown}");
        assert!(
            shown.lines().all(|line| line.chars().count() <= WIDTH),
            "{shown}"
        );
        // Static and dynamic shared memory together; slots that were moved are not local any more.
        let flat: Vec<&str> = shown.split_whitespace().collect();
        let flat = flat.join(" ");
        for part in [
            "16×8 threads",
            "1536 B shared",
            "100 B spills (shared)",
            "promise one",
            "promise two",
            "1.25 times as fast",
            "limited by registers",
            "1 more note with --all",
            "-o OUT",
        ] {
            assert!(flat.contains(part), "{part}:\n{shown}");
        }
        assert!(
            !shown.contains("usage-level"),
            "equal code is no alternative:\n{shown}"
        );
    }

    #[test]
    fn a_version_says_which_launches_it_is_for() {
        let mut one = report("k", 0.8, &[]);
        let version = "specialize(block=16x8x1, params=param2:4=6, guarded=yes)";
        let said = |one: &KernelReport| {
            let lines = choice(one, Level::Ptx);
            lines
                .join(" ")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert!(!said(&one).contains("constants"), "{}", said(&one));
        one.candidates[1].recipe = version.parse().unwrap();
        assert!(said(&one).contains("those of the launch; others run the original"));
        one.block_source = BlockSource::Ran;
        assert!(said(&one).contains("what all such launches of its program were given"));
    }

    #[test]
    fn a_promise_is_said_once() {
        let mut one = report("k", 0.8, &[]);
        let bytes = one.dynamic_smem;
        let said = Caution::DynamicSharedBound { bytes }.to_string();
        let of_proof = |dynamic_smem| {
            rests_on(&Promises {
                dynamic_smem,
                ..Promises::default()
            })
        };
        let other = of_proof(Some(bytes + 1));
        one.promises = vec![said.clone(), of_proof(Some(bytes)), other.clone()];
        assert_eq!(apart(&one), [&said, &other]);
        // Alone it is all that is known.
        one.promises.remove(0);
        assert_eq!(apart(&one).len(), 2);
    }

    #[test]
    fn what_the_choice_holds_for_is_in_the_summary() {
        let promised = |name: &str| {
            let mut one = report(name, 0.8, &[]);
            one.promises = vec!["a larger launch fails".to_owned()];
            one
        };
        // What is kept promises nothing.
        let mut kept = report("kept", 1.0, &[]);
        kept.promises = vec!["the moon".to_owned()];
        let kernels: Vec<KernelReport> = ["a", "b", "c", "d", "e"].map(promised).into();
        let shown = screen(&[kernels, vec![kept]].concat(), &ABOUT);
        let flat: Vec<&str> = shown.split_whitespace().collect();
        let flat = flat.join(" ");
        assert!(
            flat.contains("note a, b, c, 2 more: a larger launch fails next"),
            "{shown}"
        );
        assert!(!flat.contains("the moon"), "{shown}");
    }

    #[test]
    fn what_a_recipe_made_is_named_and_not_called_kept() {
        let mut replayed = report("k", 1.0, &[]);
        replayed.candidates.drain(..1);
        replayed.candidates.truncate(1);
        let about = About {
            output: Some("o.cubin"),
            ..ABOUT
        };
        let shown = screen(&[replayed], &about);
        assert!(
            shown.contains("maxnreg(64); spill-to-shared: because"),
            "{shown}"
        );
        assert!(shown.contains("wrote o.cubin: give it to"), "{shown}");
        assert!(
            !shown.contains("kept") && !shown.contains("  now "),
            "{shown}"
        );
    }

    #[test]
    fn nvcc_is_told_what_the_choice_is() {
        let chosen = |recipe: &str| {
            let mut one = report("k", 0.8, &[]);
            one.candidates[1].recipe = recipe.parse().unwrap();
            one
        };
        let said = |recipe: &str| in_source(&chosen(recipe));
        let registers = said("maxnreg(64)").unwrap();
        assert!(registers.contains("__maxnreg__(64)"), "{registers}");
        // What the build took may be less: a limit of that would be another choice.
        let wide = said("maxnreg(255)").unwrap();
        assert!(wide.contains("__maxnreg__(255)"), "{wide}");
        let both = said("maxnreg(64); usage-level(5)").unwrap();
        assert_eq!(both, registers + "; `-Xptxas --register-usage-level=5`");
        for other in [
            "maxnreg(64); spill-to-shared",
            "minnctapersm(3)",
            "maxntid(128)",
        ] {
            assert_eq!(said(other), None, "{other}");
        }
        // With launch bounds of its own a kernel has no `__maxnreg__`.
        let bounded = |recipe: &str| {
            let mut one = chosen(recipe);
            one.block_source = BlockSource::Bound;
            in_source(&one)
        };
        assert_eq!(bounded("maxnreg(64)"), None);
        // Nor where its block is known by other means.
        let mut seen = chosen("maxnreg(64)");
        seen.has_bounds = true;
        assert_eq!(in_source(&seen), None);
        assert!(bounded("usage-level(5)").is_some());
        let of = |is_machine_code| {
            let about = About {
                is_machine_code,
                ..ABOUT
            };
            screen(&[chosen("maxnreg(64); spill-to-shared")], &about)
        };
        let instance = instance_name("_ZN4chem5reactILi1EfEEvPT0_");
        assert_eq!(instance, "react<1, float>");
        let is_it = |symbol| warpwright_pass::names::is_named(&instance, symbol);
        assert!(is_it("_ZN4chem5reactILi1EfEEvPT0_") && !is_it("_ZN4chem5reactILi0EfEEvPT0_"));
        let advice = "WARPWRIGHT_PTXAS_RECIPES='k=maxnreg(64); spill-to-shared'";
        let shown = of(false).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(advice), "{shown}");
        let bounds = "by the drop-in, with `__launch_bounds__(128)`:";
        assert!(shown.contains(bounds), "{shown}");
        assert!(!of(true).contains("WARPWRIGHT_PTXAS_RECIPES"));
    }

    #[test]
    fn a_kernel_that_is_kept_says_why() {
        let shown = screen(&[report("k", 1.0, &[])], &ABOUT);
        assert!(
            shown.contains("kept: because") && shown.contains("no recipe gains"),
            "{shown}"
        );
    }

    #[test]
    fn several_kernels_are_sorted_by_gain() {
        let kernels = [
            report("a", 0.9, &[]),
            report("b", 1.0, &[]),
            report("_Z1cPf", 0.5, &[]),
        ];
        let shown = screen(&kernels, &ABOUT);
        let place = |what: &str| {
            shown
                .find(what)
                .unwrap_or_else(|| panic!("{what}:\n{shown}"))
        };
        assert!(place("c(float*)") < place(" a ") && place(" a ") < place(" b "));
        assert!(shown.contains("2 of 3 kernels are changed") && shown.contains("135 → 64"));
        let names = ["a_kernel_with_a_long_name_that_is_kept_as_it_is", "b"];
        let shown = screen(&names.map(|name| report(name, 1.0, &[])), &ABOUT);
        assert!(
            shown.contains("a_kernel_with_a_long_name_that_is_kept_as_i…"),
            "{shown}"
        );
        let names = ["a_kernel_with_a_long_name_that_is_faster", "b"];
        let shown = screen(&names.map(|name| report(name, 0.5, &[])), &ABOUT);
        assert!(
            shown.lines().all(|line| line.chars().count() <= WIDTH),
            "{shown}"
        );
    }

    #[test]
    fn what_launches_must_keep_to_is_never_left_to_all() {
        let long = "a word and ".repeat(60);
        let mut one = report("k", 0.8, &[&long, "of general interest"]);
        one.promises = vec!["no launch gives more".to_owned(), long.clone()];
        let about = About {
            reserved: HEIGHT,
            ..ABOUT
        };
        let shown = screen(&[one.clone()], &about);
        assert!(shown.contains("no launch gives more"), "{shown}");
        let flat: Vec<&str> = shown.split_whitespace().collect();
        assert_eq!(flat.join(" ").matches("a word and").count(), 60, "{shown}");
        assert!(!shown.contains("of general interest"), "{shown}");
        assert!(shown.contains("2 more notes with --all"), "{shown}");
        // All of it stands there where it is asked for.
        let shown = screen(&[one], &About { all: true, ..about });
        assert!(shown.contains("of general interest"), "{shown}");
        assert!(!shown.contains("with --all"), "{shown}");
    }

    #[test]
    fn every_candidate_is_shown_where_that_is_asked_for() {
        let all = About { all: true, ..ABOUT };
        let shown = screen(&[report("k", 0.8, &["a note"])], &all);
        let flat: Vec<&str> = shown.split_whitespace().collect();
        let flat = flat.join(" ");
        for part in [
            "maxnreg(32) = usage-level(0)",
            "default",
            "a note",
            "spill in smem smem",
        ] {
            assert!(flat.contains(part), "{part}:\n{shown}");
        }
        assert!(
            shown.lines().all(|line| line.chars().count() <= WIDTH),
            "{shown}"
        );
        // Without spills in shared memory there is no column for them.
        let shown = screen(&[report("k", 1.0, &[])], &all);
        assert!(!shown.contains("in smem"), "{shown}");
    }

    #[test]
    fn what_is_left_out_begins_at_a_word() {
        for (text, width, wanted) in [
            ("it fits", 7, "it fits"),
            ("maxnreg(64); spill-to-shared", 26, "maxnreg(64); …"),
            ("saves 0.1%; such a change", 24, "saves 0.1%; such a …"),
            ("a_name_without_a_blank", 10, "a_name_wi…"),
            ("a name_that_is_one_long_word", 12, "a name_that…"),
            ("äöü äöü äöü", 9, "äöü äöü …"),
        ] {
            assert_eq!(shortened(text, width), wanted);
        }
    }

    #[test]
    fn what_a_bound_goes_by_is_said() {
        let more = ["issue takes 3% of that".to_owned()];
        assert_eq!(
            bound_by("traffic", Turns::Assumed, &[]),
            "time bound by traffic (if loops have 10 turns)"
        );
        assert_eq!(
            bound_by("issue", Turns::Counted, &more),
            "time bound by issue (predicted, loops counted; issue takes 3% of that)"
        );
        assert_eq!(
            bound_by("issue", Turns::None, &[]),
            "time bound by issue (predicted)"
        );
    }

    #[test]
    fn lines_break_at_blanks() {
        let text = "word ".repeat(40);
        let lines = wrap(&text, "  x ", "    ");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(lines.concat().matches("word").count(), 40);
        assert_eq!(wrap("", "a", "b"), ["a"]);
    }
}
