//! What somebody would change in the source: where, what, and what it gives. Only what the tool knows.

use serde::{Deserialize, Serialize};

use warpwright_driver::KernelReport;
use warpwright_pass::BlockSource;
use warpwright_pass::passes::{MaxNReg, UsageLevel};

use crate::screen::part;

/// A change of the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edit {
    /// `file:line` that it stands at or in front of; absent where it is an option of the compiler, or no line is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// What to write, or to change.
    pub text: String,
    /// What it gives.
    pub gives: Gives,
}

/// What an edit gives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gives {
    /// So many bytes of a thread may leave local memory.
    LocalBytes(u64),
    /// A time over that of now, as the model predicts it for the build that the edit stands for.
    Predicted(f64),
    /// The same, measured.
    Measured(f64),
    /// It can be launched.
    Launch,
}

impl Edit {
    /// The edit in a sentence. How many bytes may leave local memory stands beside it.
    pub fn in_words(&self) -> String {
        let gives = match self.gives {
            Gives::LocalBytes(_) => String::new(),
            Gives::Predicted(time) => format!(" (predicted {} of the time)", part(time)),
            Gives::Measured(time) => format!(" (measured {} of the time)", part(time)),
            Gives::Launch => " (it can be launched then)".to_owned(),
        };
        match &self.line {
            Some(line) => format!("{line}: {}{gives}", self.text),
            None => format!("{}{gives}", self.text),
        }
    }
}

/// What makes nvcc build the choice of a report: options, or words in the kernel. None where a pass has no such thing. nvcc
/// plans for launch bounds itself, so these never give the same as the passes that write them.
pub fn edits_of(report: &KernelReport) -> Vec<Edit> {
    let chosen = &report.candidates[report.chosen];
    if report.chosen == 0 {
        return Vec::new();
    }
    let measured = chosen
        .measured()
        .map(|found| Gives::Measured(found.relative_time));
    let predicted = chosen
        .score()
        .map(|found| Gives::Predicted(found.relative_time));
    let default = report.candidates[0].rejected();
    let launch = default.map(|_| Gives::Launch);
    let Some(gives) = measured.or(predicted).or(launch) else {
        return Vec::new();
    };
    let text = |pass: &warpwright_pass::Invocation| {
        if let Some(UsageLevel { level }) = pass.get() {
            return Some(format!("`-Xptxas --register-usage-level={level}`"));
        }
        let MaxNReg { registers } = pass.get()?;
        (report.block_source != BlockSource::Bound)
            .then(|| format!("`__maxnreg__({registers})`, without launch bounds"))
    };
    let texts: Option<Vec<String>> = chosen.recipe.passes().iter().map(text).collect();
    // A part of a recipe promises nothing.
    let texts = texts.filter(|texts| !texts.is_empty());
    let edit = |texts: Vec<String>| Edit {
        line: None,
        text: texts.join("; "),
        gives,
    };
    texts.map(edit).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_says_where_what_and_how_much() {
        let edit = |line: Option<&str>, gives| Edit {
            line: line.map(str::to_owned),
            text: "`#pragma unroll`".to_owned(),
            gives,
        };
        assert_eq!(
            edit(Some("k.cu:7"), Gives::LocalBytes(64)).in_words(),
            "k.cu:7: `#pragma unroll`"
        );
        assert_eq!(
            edit(None, Gives::Measured(0.8)).in_words(),
            "`#pragma unroll` (measured 0.80 of the time)"
        );
    }
}
