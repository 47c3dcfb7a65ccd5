//! Where the cycles of a warp go: by cause, and beside the lines of the source.

use std::collections::BTreeMap;

use serde::Serialize;
use warpwright_driver::candidate::Turns;
use warpwright_driver::score::{Cycles as Bound, case_of};
use warpwright_driver::{Residency, Resources};
use warpwright_flow::{Function, Inst};
use warpwright_model::Parameters;
use warpwright_model::attribution::{Cause, Cycles, attribute};
use warpwright_pass::Setting;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::profile::LOOP_WEIGHT;
use warpwright_sass::{Cubin, Elf};

use crate::screen::wrap;
use crate::table::Table;

/// How many places are listed.
const LISTED: usize = 8;
/// Of the default build's cycles: what takes more is not told as a gain.
const TOLD: f64 = 0.95;

/// A smaller ratio is shown as less than this.
const LEAST_SHOWN: f64 = 0.01;
/// A cause below this share is left out.
const SMALLEST: f64 = 0.005;

/// The cycles of a warp alone, as the model has them: loops count as it weights them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CyclesReport {
    /// All of them.
    pub cycles: f64,
    /// By cause, the largest first.
    pub causes: Vec<Share>,
    /// The places that take most: source lines where the code has a line table, else instructions.
    pub places: Vec<Place>,
    /// Those of each instruction.
    pub each: Vec<f64>,
    /// What they go by.
    pub turns: Turns,
    /// Where executions were counted: at which launch, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_at: Option<String>,
}

/// What is known of a kernel's instructions besides the machine code.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The source line of each, `file:line`.
    pub lines: &'a [Option<String>],
    /// How often a warp executes each, and at which launch that was counted.
    pub counts: Option<(&'a [f64], &'a str)>,
    /// SM cycles of a warp's atomic operations that wait for each other.
    pub atomics: f64,
}

/// A cause and its part of the cycles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// The cause.
    pub cause: Cause,
    /// 0 to 1, of all cycles of the kernel.
    pub share: f64,
}

/// A place in the code.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Place {
    /// `file:line`.
    pub line: Option<String>,
    /// Its instructions.
    pub instructions: usize,
    /// Its part of the cycles, 0 to 1.
    pub share: f64,
    /// The causes of that, the largest first.
    pub causes: Vec<Share>,
    /// The instruction that takes most.
    pub at: u32,
    /// Its text.
    pub text: String,
}

/// The cycles of a kernel of a cubin at a residency, and what they are bound by; `None` where its code is not to be read.
pub fn cycles_of(
    elf: &Elf,
    kernel: &str,
    setting: &Setting,
    resources: &Resources,
    residency: &Residency,
    known: Facts<'_>,
) -> Option<(CyclesReport, Bound)> {
    let cubin = Cubin::of(elf).ok()?;
    let found = cubin.kernel(kernel)?;
    let mut case = case_of(setting, found, resources, residency, None);
    case.counts = known.counts.map(|(counts, _)| counts);
    let cycles = attribute(&case, &Parameters::default());
    let code = Code::new(elf, &elf.kernel(kernel).ok()?, Calls::Followed).ok();
    let text = |at: u32| {
        code.as_ref()
            .map_or_else(String::new, |code| code.inst_text(Inst(at)))
    };
    let line = |at: usize| known.lines.get(at)?.clone();
    let mut report = report(&cycles, line, text);
    report.counted_at = known.counts.map(|(_, at)| at.to_owned());
    let bound = Bound::of_case(&case, known.atomics);
    report.turns = bound.turns;
    Some((report, bound))
}

fn report(
    cycles: &[Cycles],
    line: impl Fn(usize) -> Option<String>,
    text: impl Fn(u32) -> String,
) -> CyclesReport {
    let mut all = Cycles::default();
    // Instructions of a line, or one without a line by itself.
    let mut places: BTreeMap<(Option<String>, usize), (Cycles, usize, usize)> = BTreeMap::new();
    for (at, of) in cycles.iter().enumerate() {
        all.add(of);
        let line = line(at);
        let own = if line.is_some() { 0 } else { at };
        let place = places
            .entry((line, own))
            .or_insert((Cycles::default(), 0, at));
        place.0.add(of);
        place.1 += 1;
        if of.total() > cycles[place.2].total() {
            place.2 = at;
        }
    }
    let total = all.total();
    let mut places: Vec<Place> = places
        .into_iter()
        .map(|((line, _), (of, instructions, at))| Place {
            line,
            instructions,
            share: of.total() / total.max(1.0),
            causes: shares(&of, total),
            at: at as u32,
            text: text(at as u32),
        })
        .collect();
    places.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.at.cmp(&b.at)));
    places.truncate(LISTED);
    CyclesReport {
        cycles: total,
        causes: shares(&all, total),
        places,
        each: cycles.iter().map(Cycles::total).collect(),
        turns: Turns::None,
        counted_at: None,
    }
}

/// The causes by their size, without the smallest.
fn shares(of: &Cycles, total: f64) -> Vec<Share> {
    let share = |cause: Cause| Share {
        cause,
        share: of.of(cause) / total.max(1.0),
    };
    let mut shares: Vec<Share> = Cause::ALL.into_iter().map(share).collect();
    shares.retain(|share| share.share >= SMALLEST);
    shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.cause.cmp(&b.cause)));
    shares
}

impl CyclesReport {
    /// What is better than in the default build, in a sentence: the cause that has lost most cycles. `None` where a
    /// warp alone gains next to nothing.
    pub fn gained(&self, default: &CyclesReport) -> Option<String> {
        let ratio = self.cycles / default.cycles.max(1.0);
        let of = |report: &CyclesReport, cause: Cause| {
            let found = report.causes.iter().find(|share| share.cause == cause);
            found.map_or(0.0, |share| share.share)
        };
        let lost = |cause: Cause| of(default, cause) - of(self, cause) * ratio;
        let most = Cause::ALL
            .into_iter()
            .max_by(|a, b| lost(*a).total_cmp(&lost(*b)))?;
        let [before, after] = [default, self].map(|report| 100.0 * of(report, most));
        let shown = |share: f64| format!("{share:.0}%");
        let took = match ratio < LEAST_SHOWN {
            true => format!("less than {LEAST_SHOWN}"),
            false => format!("{ratio:.2}"),
        };
        // A share that rounds to what it was explains nothing.
        let why = match shown(before) == shown(after) {
            true => String::new(),
            false => format!(": {} {after:.0}%, not {before:.0}%", most.name()),
        };
        (ratio < TOLD).then(|| format!("a warp alone takes {took} of the cycles{why}"))
    }

    /// The causes in a line.
    pub fn causes_in_words(&self) -> String {
        in_words(&self.causes, 1.0, Cause::ALL.len())
    }

    /// The lines of the screen, indented as `explain` has them.
    pub fn screen(&self) -> String {
        let mut table = Table::new(&["cycles", "place", "of it", "instruction that takes most"]);
        for place in &self.places {
            let at = match &place.line {
                Some(line) => line.clone(),
                None => format!("instruction {}", place.at),
            };
            table.row(vec![
                format!("{:.1}%", 100.0 * place.share),
                at,
                in_words(&place.causes, place.share, 2),
                place.text.clone(),
            ]);
        }
        let loops = match (&self.counted_at, self.turns) {
            (Some(at), _) => format!(", instructions counted at {at}"),
            (None, Turns::None) => String::new(),
            (None, _) => format!(", loops {LOOP_WEIGHT:.0} times a level: --launch counts"),
        };
        let causes = format!(
            "where a warp's cycles go (predicted; alone{loops}): {}",
            self.causes_in_words()
        );
        wrap(&causes, "  ", "    ").join("\n") + "\n" + &table.render_within(4)
    }
}

/// The largest causes, each with its part of `whole`.
fn in_words(shares: &[Share], whole: f64, most: usize) -> String {
    let word = |share: &Share| {
        let part = 100.0 * share.share / whole.max(f64::MIN_POSITIVE);
        format!("{} {part:.0}%", share.cause.name())
    };
    let words: Vec<String> = shares.iter().take(most).map(word).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(cause: Cause, of: f64) -> Cycles {
        let mut cycles = Cycles::default();
        cycles.by_cause[cause as usize] = of;
        cycles
    }

    #[test]
    fn instructions_of_a_line_are_one_place() {
        let all = [
            cycles(Cause::Issue, 10.0),
            cycles(Cause::Global, 60.0),
            cycles(Cause::Issue, 20.0),
            cycles(Cause::Unit, 10.0),
        ];
        let line = |at: usize| (at < 3).then(|| format!("k.cu:{}", 7 + at % 2));
        let found = report(&all, line, |at| format!("instruction {at}"));
        assert_eq!(found.cycles, 100.0);
        assert_eq!(
            found.causes_in_words(),
            "global memory 60%, issue 30%, unit 10%"
        );
        assert_eq!(found.each, [10.0, 60.0, 20.0, 10.0]);
        let places: Vec<_> = found
            .places
            .iter()
            .map(|p| (p.line.as_deref(), p.instructions, p.at))
            .collect();
        assert_eq!(
            places,
            [(Some("k.cu:8"), 1, 1), (Some("k.cu:7"), 2, 2), (None, 1, 3)]
        );
        let screen = found.screen();
        assert!(
            screen.contains("k.cu:7") && screen.contains("  instruction 3  "),
            "{screen}"
        );
    }
}
