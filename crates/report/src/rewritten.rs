//! What is said of a rewritten kernel at launches of its own (`warpwright.rewrite`), on the screen and on the page.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use warpwright_diag::count;

use crate::ReportError;
use crate::screen::wrap;

/// The document, as far as it is shown.
#[derive(Debug, Deserialize)]
struct Document {
    verdict: String,
    meaning: String,
    #[serde(default)]
    conditions: Vec<String>,
    launches: Vec<Launch>,
    #[serde(default)]
    skipped: Vec<Skipped>,
    #[serde(default)]
    limits: Vec<Reason>,
    holds_where: Option<Reason>,
    smallest: Option<Smallest>,
    #[serde(default)]
    in_place: Vec<InPlace>,
    #[serde(default)]
    untried: Vec<Reason>,
}

/// The smallest launch at which the rewritten kernel is at fault.
#[derive(Debug, Deserialize)]
struct Smallest {
    size: String,
    #[serde(default)]
    set: Vec<String>,
    why: Vec<Reason>,
}

/// What both do where an output is an input.
#[derive(Debug, Deserialize)]
struct InPlace {
    output: String,
    input: String,
    verdict: String,
    #[serde(default)]
    why: Vec<Reason>,
}

impl InPlace {
    fn text(&self) -> String {
        let InPlace { output, input, .. } = self;
        match &*self.verdict {
            "wrong-input" => {
                format!("not in place, `{output}` being `{input}`: nor is the original right there")
            }
            "refuted" => format!(
                "not in place, `{output}` being `{input}`, where the original is right: {}",
                joined(&self.why)
            ),
            word => format!("in place, `{output}` being `{input}`: {word}"),
        }
    }
}

fn joined(why: &[Reason]) -> String {
    let all: Vec<&str> = why.iter().map(|reason| &*reason.text).collect();
    all.join("; ")
}

#[derive(Debug, Deserialize)]
struct Launch {
    size: String,
    #[serde(default)]
    set: Vec<String>,
    verdict: String,
    elements: u64,
    terms: u64,
    why: Vec<Reason>,
}

#[derive(Debug, Deserialize)]
struct Reason {
    text: String,
}

#[derive(Debug, Deserialize)]
struct Skipped {
    #[serde(default)]
    size: String,
    #[serde(default)]
    set: Vec<String>,
    code: String,
    why: String,
}

/// A document in sentences, each said once.
#[derive(Debug, Serialize)]
pub struct Said {
    /// `refuted: not the same; 3 launches tried`
    pub headline: String,
    /// The original is no judge, or the rewrite is wrong.
    pub is_wrong: bool,
    /// The same bits for every input.
    pub is_proved: bool,
    /// Launch by launch.
    pub launches: Vec<SaidOf>,
    /// Where both agree and where they do not, sizes that indices reach, and what was not tried.
    pub more: Vec<String>,
}

/// What is said of a launch.
#[derive(Debug, Serialize)]
pub struct SaidOf {
    /// `small with n=99`
    pub name: String,
    /// The verdict.
    pub verdict: String,
    /// Output elements compared.
    pub elements: u64,
    /// Terms made for both.
    pub terms: u64,
    /// What was not said of an earlier one, but for its numbers.
    pub why: Vec<String>,
}

/// A document in sentences.
///
/// # Errors
/// [`ReportError::Document`]: it is none of a rewritten kernel.
pub fn said(document: &Value) -> Result<Said, ReportError> {
    let document: Document = serde_json::from_value(document.clone())?;
    let is_wrong = ["refuted", "wrong-input"].contains(&&*document.verdict);
    let mut meaning = vec![document.meaning];
    if !is_wrong {
        meaning.extend(document.conditions);
    }
    let headline = format!(
        "{}: {}; {} tried",
        document.verdict,
        meaning.join(", "),
        count(document.launches.len(), "launch")
    );
    let mut known = BTreeSet::new();
    let launches = document.launches.into_iter().map(|launch| {
        let why = launch.why.into_iter().map(|reason| reason.text);
        let is_new = |text: &String| known.insert((launch.verdict.clone(), without_numbers(text)));
        SaidOf {
            name: named(&launch.size, &launch.set),
            why: why.filter(is_new).collect(),
            verdict: launch.verdict,
            elements: launch.elements,
            terms: launch.terms,
        }
    });
    let launches = launches.collect();
    let smallest = document.smallest.iter().map(|one| {
        let place = named(&one.size, &one.set);
        format!(
            "the smallest found that shows it, {place}: {}",
            joined(&one.why)
        )
    });
    let mut more: Vec<String> = smallest.collect();
    more.extend(skipped(&document.skipped));
    more.extend(document.holds_where.into_iter().map(|found| found.text));
    more.extend(document.in_place.iter().map(InPlace::text));
    more.extend(document.limits.into_iter().map(|limit| limit.text));
    let untried = document.untried.into_iter();
    more.extend(untried.map(|untried| format!("not tried: {}", untried.text)));
    Ok(Said {
        headline,
        is_wrong,
        is_proved: ["proved", "proved-at-launches"].contains(&&*document.verdict),
        launches,
        more,
    })
}

/// The same on a terminal.
///
/// # Errors
/// As [`said`].
pub fn screen(document: &Value) -> Result<String, ReportError> {
    let said = said(document)?;
    let mut lines = wrap(&said.headline, "", "  ");
    for launch in &said.launches {
        let (name, verdict) = (&launch.name, &launch.verdict);
        let figures = format!(
            "{}, {}",
            count(launch.elements, "output element"),
            count(launch.terms, "term")
        );
        lines.extend(wrap(
            &format!("{name}: {verdict} ({figures})"),
            "  ",
            "    ",
        ));
        let why = launch.why.iter();
        lines.extend(why.flat_map(|text| wrap(text, "    ", "      ")));
    }
    let more = said.more.iter();
    lines.extend(more.flat_map(|text| wrap(text, "  ", "    ")));
    Ok(lines.join("\n") + "\n")
}

/// Sizes that were not tried or do not count, each reason once.
fn skipped(all: &[Skipped]) -> Vec<String> {
    let mut known = BTreeSet::new();
    let reasons = all.iter().filter(|one| known.insert((&one.code, &one.why)));
    let text = |one: &Skipped| {
        let same = all.iter().filter(|other| other.why == one.why);
        let names: Vec<String> = same.map(|s| named(&s.size, &s.set)).collect();
        let what = match &*one.code {
            "original" => "not counted",
            _ => "not tried",
        };
        format!("{what}, {}: {}", names.join("; "), one.why)
    };
    reasons.map(text).collect()
}

/// `small with n=99`
fn named(size: &str, set: &[String]) -> String {
    match (size, set) {
        (size, []) => size.to_owned(),
        ("", set) => set.join(", "),
        (size, set) => format!("{size} with {}", set.join(", ")),
    }
}

fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_reason_is_said_once() {
        let launch = |set: &[&str], why: &str| {
            json!({"size": "small", "set": set, "verdict": "refuted", "elements": 1, "terms": 2,
                "why": [{"code": "differs", "text": why}]})
        };
        let skipped = |set: &str| json!({"size": "small", "set": [set], "code": "original", "why": "it faults"});
        let document = json!({"verdict": "refuted", "meaning": "not the same", "conditions": ["as described"],
            "launches": [launch(&[], "`y[0]` differs"), launch(&["n=9"], "`y[7]` differs"), launch(&["n=1"], "a race")],
            "skipped": [skipped("n=2"), skipped("n=3")],
            "holds_where": {"text": "right where n % 4 == 0"}, "limits": [{"text": "no index wraps up to n = 7"}],
            "smallest": {"size": "small", "set": ["n=1"], "why": [{"text": "`y[0]` is 1"}]},
            "in_place": [{"output": "y", "input": "x", "verdict": "proved-at-launches", "why": []},
                {"output": "z", "input": "x", "verdict": "refuted", "why": [{"text": "a race"}]}],
            "untried": [{"text": "other alignments"}]});
        assert_eq!(
            screen(&document).unwrap(),
            "refuted: not the same; 3 launches tried
  small: refuted (1 output element, 2 terms)
    `y[0]` differs
  small with n=9: refuted (1 output element, 2 terms)
  small with n=1: refuted (1 output element, 2 terms)
    a race
  the smallest found that shows it, small with n=1: `y[0]` is 1
  not counted, small with n=2; small with n=3: it faults
  right where n % 4 == 0
  in place, `y` being `x`: proved-at-launches
  not in place, `z` being `x`, where the original is right: a race
  no index wraps up to n = 7
  not tried: other alignments
"
        );
    }
}
