//! What a long run came to: counts that add up, so that parts of a run can be made anywhere.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use warpwright_check::Verdict;

use crate::controls::Controls;
use crate::proved::Applied;

/// The schema of a file of totals.
pub const SCHEMA: &str = "warpwright.fuzz-passes/2";

/// Runs of one pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Kernels that it was given.
    pub runs: u64,
    /// Kernels that it changed; each result was proved.
    pub changed: u64,
    /// Of these, such that read what was never written where nobody uses it.
    #[serde(default)]
    pub unwritten: u64,
    /// Kernels that it refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Kernels whose results the checker did not decide, by reason (of machine code alone).
    pub undecided: BTreeMap<String, u64>,
}

impl Counts {
    /// Counts a run whose result is proved.
    pub fn count_changed(&mut self) {
        self.runs += 1;
        self.changed += 1;
    }

    /// Counts a run.
    pub fn count(&mut self, applied: &Applied) {
        self.runs += 1;
        match applied {
            Applied::Changed(_) => self.changed += 1,
            Applied::Unchanged => {}
            Applied::Refused(why) => {
                let reason = without_details(&why.to_string());
                *self.refused.entry(reason).or_default() += 1;
            }
        }
    }

    /// Counts a run whose result is not proved.
    pub fn count_undecided(&mut self, verdict: &Verdict) {
        self.runs += 1;
        let text = verdict.to_string();
        let text = text.trim_start_matches("undecided: ");
        *self.undecided.entry(without_details(text)).or_default() += 1;
    }
}

impl Counts {
    /// Adds other runs of the pass.
    pub fn add(&mut self, other: Counts) {
        self.runs += other.runs;
        self.changed += other.changed;
        self.unwritten += other.unwritten;
        for (own, others) in [
            (&mut self.refused, other.refused),
            (&mut self.undecided, other.undecided),
        ] {
            for (reason, times) in others {
                *own.entry(reason).or_default() += times;
            }
        }
    }

    /// A line for a pass, and one for each reason.
    pub fn line(&self, pass: &str) -> String {
        let Counts { runs, changed, .. } = self;
        let mut text = format!("{pass}: {changed} of {runs} runs changed the kernel");
        if self.unwritten > 0 {
            let times = self.unwritten;
            text += &format!("\n    {times} read what was never written, and nobody uses it");
        }
        for (reason, times) in &self.refused {
            text += &format!("\n    {times} refused: {reason}");
        }
        for (reason, times) in &self.undecided {
            text += &format!("\n    {times} not decided: {reason}");
        }
        text
    }
}

/// The first line up to a colon, without numbers.
fn without_details(text: &str) -> String {
    let text = text.lines().next().unwrap_or_default();
    let text = text.split(": ").next().unwrap_or_default();
    let is_number = |word: &str| {
        let digits = word
            .strip_prefix("0x")
            .map(|hex| u64::from_str_radix(hex, 16));
        digits.unwrap_or_else(|| word.parse()).is_ok()
    };
    let mut words = text.split(' ').map(|word| match is_number(word) {
        true => "N",
        false => word,
    });
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| all + " " + word)
}

/// A kernel on which something did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Its seed.
    pub seed: u64,
    /// What it went through.
    pub run: String,
    /// What did not hold.
    pub failure: String,
}

/// A file of totals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// [`SCHEMA`].
    pub schema: String,
    /// First seeds and those behind the last ones.
    pub seeds: Vec<(u64, u64)>,
    /// The assembler of machine code, if there was one.
    pub assembled_by: Option<String>,
    /// Kernels.
    pub kernels: u64,
    /// Kernels by stratum (`case::Plan`).
    pub strata: BTreeMap<String, u64>,
    /// Kernels that were assembled.
    pub assembled: u64,
    /// Seconds that the parts took, on one thread each.
    pub thread_seconds: u64,
    /// Planted mistakes, and rewrites that change nothing.
    pub controls: Controls,
    /// Pass by pass.
    pub passes: BTreeMap<String, Counts>,
    /// In the order of the seeds.
    pub failures: Vec<Failed>,
}

impl Default for Totals {
    fn default() -> Self {
        Totals {
            schema: SCHEMA.to_owned(),
            seeds: Vec::new(),
            assembled_by: None,
            kernels: 0,
            strata: BTreeMap::new(),
            assembled: 0,
            thread_seconds: 0,
            controls: Controls::default(),
            passes: BTreeMap::new(),
            failures: Vec::new(),
        }
    }
}

/// Files of totals that do not add up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Another kind of file, or of another version.
    #[error("`{0}` is not `{SCHEMA}`")]
    Schema(String),
    /// Two assemblers.
    #[error("one part was assembled by {}, another by {}", .0[0], .0[1])]
    Assembler(Box<[String; 2]>),
    /// A seed counted twice.
    #[error("the seeds from {} are in two parts", .0.start)]
    Seeds(Range<u64>),
}

impl Totals {
    /// The counts of a pass.
    pub fn pass(&mut self, name: &str) -> &mut Counts {
        self.passes.entry(name.to_owned()).or_default()
    }

    /// Counts a kernel.
    pub fn count_kernel(&mut self, stratum: &str) {
        self.kernels += 1;
        *self.strata.entry(stratum.to_owned()).or_default() += 1;
    }

    /// From so many kernels on every class of mistakes must have been planted and caught.
    const MANY: u64 = 2_000;

    /// The classes of controls that fail the run.
    pub fn failing_controls(&self) -> Vec<String> {
        let ptx = Controls::in_ptx().filter(|_| self.kernels >= Totals::MANY);
        let code = Controls::in_machine_code().filter(|_| self.assembled >= Totals::MANY);
        self.controls.failing(ptx.chain(code))
    }

    /// Adds what another part of the run came to.
    ///
    /// # Errors
    /// [`MergeError`]: the parts do not belong together.
    pub fn merge(&mut self, other: Totals) -> Result<(), MergeError> {
        if other.schema != SCHEMA {
            return Err(MergeError::Schema(other.schema));
        }
        match (&self.assembled_by, other.assembled_by) {
            (Some(a), Some(b)) if *a != b => {
                return Err(MergeError::Assembler(Box::new([a.clone(), b])));
            }
            (None, by) => self.assembled_by = by,
            _ => {}
        }
        self.seeds.extend(other.seeds);
        self.seeds.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for &(from, to) in &self.seeds {
            match joined.last_mut() {
                Some((_, end)) if from < *end => return Err(MergeError::Seeds(from..to)),
                Some((_, end)) if from == *end => *end = to,
                _ => joined.push((from, to)),
            }
        }
        self.seeds = joined;
        self.kernels += other.kernels;
        self.assembled += other.assembled;
        self.thread_seconds += other.thread_seconds;
        for (stratum, kernels) in other.strata {
            *self.strata.entry(stratum).or_default() += kernels;
        }
        self.controls.add(&other.controls);
        for (name, counts) in other.passes {
            self.passes.entry(name).or_default().add(counts);
        }
        self.failures.extend(other.failures);
        self.failures.sort_by_key(|failed| failed.seed);
        Ok(())
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failures = self.failures.len();
        write!(f, "{} kernels, {failures} failures", self.kernels)?;
        if let Some(by) = &self.assembled_by {
            write!(f, "; {} assembled by {by}", self.assembled)?;
        }
        for (stratum, kernels) in &self.strata {
            write!(f, "\n{stratum}: {kernels} kernels")?;
        }
        let Controls {
            idle,
            idle_proved,
            classes,
        } = &self.controls;
        write!(
            f,
            "\n{idle_proved} of {idle} rewrites that change nothing proved"
        )?;
        for (name, class) in classes {
            let (mistakes, caught) = (class.mistakes, class.caught);
            write!(
                f,
                "\nplanted: {name}: {caught} of {mistakes} mistakes caught"
            )?;
        }
        for (pass, counts) in &self.passes {
            write!(f, "\n{}", counts.line(pass))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(from: u64, to: u64, changed: u64) -> Totals {
        let mut totals = Totals {
            seeds: vec![(from, to)],
            kernels: to - from,
            strata: BTreeMap::from([("tiny".to_owned(), to - from)]),
            thread_seconds: 1,
            ..Totals::default()
        };
        let counts = totals.pass("remat");
        counts.runs = to - from;
        counts.changed = changed;
        counts.refused.insert("nothing to do".into(), 1);
        totals
    }

    #[test]
    fn parts_in_any_order_are_the_whole() {
        let mut sum = Totals::default();
        for (from, to, changed) in [(20, 30, 3), (0, 10, 1), (10, 20, 2)] {
            sum.merge(part(from, to, changed)).unwrap();
        }
        let mut whole = part(0, 30, 6);
        whole.thread_seconds = 3;
        whole
            .pass("remat")
            .refused
            .insert("nothing to do".into(), 3);
        assert_eq!(sum, whole);
        let text = serde_json::to_string(&sum).unwrap();
        assert_eq!(serde_json::from_str::<Totals>(&text).unwrap(), whole);
    }

    #[test]
    fn nothing_counts_twice() {
        let mut sum = part(0, 10, 1);
        assert_eq!(sum.merge(part(9, 12, 1)), Err(MergeError::Seeds(9..12)));
        let other = Totals {
            schema: "another".into(),
            ..Totals::default()
        };
        let wrong = part(0, 1, 0).merge(other);
        assert_eq!(wrong, Err(MergeError::Schema("another".into())));
    }
}
