//! Which tables stand in the documentation, from which result files, and which kernels had a part in which
//! decision: one committed plan (`bench/tables.json`), so that a kernel is called fitted everywhere or nowhere.

use std::collections::BTreeMap;

use crate::results::{SUITE_SCHEMA, Suite};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::suite::{agreement, figure, summary, table};
use crate::{ReportError, crat, spills, stencils};

/// The schema of a plan.
pub const SCHEMA: &str = "warpwright.tables/1";

/// The tables of the documentation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was decided by looking at kernels.
    pub decisions: Vec<Decided>,
    /// The tables, in the order in which they are written.
    pub tables: Vec<Table>,
}

/// A rule or a fit, and the kernels that it was chosen on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// What was decided, and where it is described.
    pub what: String,
    /// What its kernels are called, if figures without them are to be shown.
    #[serde(default)]
    pub short: Option<String>,
    /// On which kernels.
    pub kernels: Seen,
}

/// Kernels that had a part in a decision.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Seen {
    /// These.
    Some(Vec<String>),
    /// Every kernel of the suite, in one word: `"all"`.
    All(All),
}

/// The word `all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum All {
    /// Every kernel.
    All,
}

/// Did a kernel have a part in a decision that not all kernels had a part in?
pub fn is_fitted(decisions: &[Decided], kernel: &str) -> bool {
    let named = decisions.iter().filter_map(|d| match &d.kernels {
        Seen::Some(kernels) => Some(kernels),
        Seen::All(_) => None,
    });
    named.flatten().any(|name| name == kernel)
}

/// A table: made of result files, it goes between the markers of its kind in a Markdown file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// What it shows.
    pub kind: Kind,
    /// The result files.
    pub results: Vec<String>,
    /// The Markdown file; for a figure, the SVG file.
    pub into: String,
    /// For stencils: the file of goals.
    #[serde(default)]
    pub goals: Option<String>,
}

/// What a table shows. Its name is that of the markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Kernel by kernel.
    Suite,
    /// Geometric means.
    Summary,
    /// Do two runs agree?
    Agreement,
    /// CRAT against throttling alone.
    Crat,
    /// You & Tsai on kernels one block short of a step.
    OneBlockMore,
    /// The ways to spill.
    Spills,
    /// Stencils beside their goals.
    Stencils,
    /// The figure of a suite (SVG).
    Figure,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 8] = [
        Kind::Suite,
        Kind::Summary,
        Kind::Agreement,
        Kind::Crat,
        Kind::OneBlockMore,
        Kind::Spills,
        Kind::Stencils,
        Kind::Figure,
    ];

    /// The name of its markers.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Suite => "suite",
            Kind::Summary => "summary",
            Kind::Agreement => "agreement",
            Kind::Crat => "crat",
            Kind::OneBlockMore => "one-block-more",
            Kind::Spills => "spills",
            Kind::Stencils => "stencils",
            Kind::Figure => "figure",
        }
    }
}

/// Reads a file by the name that a plan gives it.
pub type Read<'a> = &'a dyn Fn(&str) -> std::io::Result<String>;

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// It is not in the form of one.
    pub fn parse(name: &str, text: &str) -> Result<Plan, ReportError> {
        let plan: Plan = document(name, text)?;
        match plan.schema == SCHEMA {
            true => Ok(plan),
            false => Err(ReportError::Schema {
                file: name.into(),
                found: plan.schema,
                wanted: SCHEMA,
            }),
        }
    }

    /// Every file that the plan writes, with its new contents.
    ///
    /// # Errors
    /// A file cannot be read, is no result file, or lacks the markers.
    pub fn files(&self, read: Read) -> Result<BTreeMap<String, String>, ReportError> {
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        for table in &self.tables {
            let text = table.text(&self.decisions, read)?;
            if table.kind == Kind::Figure {
                files.insert(table.into.clone(), text);
                continue;
            }
            let old = match files.remove(&table.into) {
                Some(text) => text,
                None => contents(&table.into, read)?,
            };
            let sources: Vec<String> = table.results.iter().map(|p| format!("`{p}`")).collect();
            let text = format!("{text}\nFrom {}.", sources.join(" and "));
            let new = replace_between(&old, table.kind.name(), &text)?;
            files.insert(table.into.clone(), new);
        }
        Ok(files)
    }
}

impl Table {
    /// The table's text, in Markdown; a figure as SVG.
    ///
    /// # Errors
    /// A file cannot be read or is no result file.
    pub fn text(&self, decisions: &[Decided], read: Read) -> Result<String, ReportError> {
        if self.kind == Kind::Stencils {
            let results = self.results.first().ok_or(ReportError::NoResults)?;
            let goals = match &self.goals {
                Some(goals) => document(goals, &contents(goals, read)?)?,
                None => stencils::Goals::new(),
            };
            let results = document(results, &contents(results, read)?)?;
            return Ok(stencils::table(&results, &goals));
        }
        let suites = self.results.iter().map(|name| suite(name, read));
        let mut suites = suites.collect::<Result<Vec<Suite>, _>>()?.into_iter();
        let first = suites.next().ok_or(ReportError::NoResults)?;
        Ok(match self.kind {
            Kind::Suite => table(&first, decisions),
            Kind::Summary => summary(&first, decisions),
            Kind::Crat => crat::table(&first),
            Kind::OneBlockMore => crat::one_block_more(&first),
            Kind::Figure => figure(&first),
            Kind::Agreement => agreement(&first, &suites.next().ok_or(ReportError::NoResults)?),
            Kind::Spills | Kind::Stencils => spills::table(&merged(first, suites)),
        })
    }
}

/// One suite of several: kernels of later ones replace those of the same name.
fn merged(mut all: Suite, others: impl Iterator<Item = Suite>) -> Suite {
    for kernel in others.flat_map(|suite| suite.kernels) {
        let mut known = all.kernels.iter_mut();
        match known.find(|known| known.report.name == kernel.report.name) {
            Some(known) => *known = kernel,
            None => all.kernels.push(kernel),
        }
    }
    all
}

fn suite(name: &str, read: Read) -> Result<Suite, ReportError> {
    let suite: Suite = document(name, &contents(name, read)?)?;
    match suite.schema == SUITE_SCHEMA {
        true => Ok(suite),
        false => Err(ReportError::Schema {
            file: name.into(),
            found: suite.schema,
            wanted: SUITE_SCHEMA,
        }),
    }
}

fn contents(name: &str, read: Read) -> Result<String, ReportError> {
    read(name).map_err(|source| ReportError::Read {
        file: name.into(),
        source,
    })
}

fn document<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ReportError> {
    serde_json::from_str(text).map_err(|source| ReportError::Json {
        file: name.into(),
        source,
    })
}

/// Replaces what stands between `<!-- NAME -->` and `<!-- /NAME -->` in a Markdown text.
///
/// # Errors
/// [`ReportError::NoMarkers`].
pub fn replace_between(markdown: &str, name: &str, content: &str) -> Result<String, ReportError> {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let missing = || ReportError::NoMarkers(name.into());
    let start = markdown.find(&open).ok_or_else(missing)? + open.len();
    let end = start + markdown[start..].find(&close).ok_or_else(missing)?;
    Ok(format!(
        "{}\n{}\n{}",
        &markdown[..start],
        content.trim_end(),
        &markdown[end..]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_goes_between_its_markers() {
        let text = "a\n<!-- suite -->\nold\n<!-- /suite -->\nb\n";
        let new = replace_between(text, "suite", "| new |\n").unwrap();
        assert_eq!(new, "a\n<!-- suite -->\n| new |\n<!-- /suite -->\nb\n");
        assert_eq!(
            replace_between(&new, "suite", "| new |").unwrap(),
            new,
            "repeatable"
        );
        assert!(replace_between("nothing", "suite", "").is_err());
    }

    #[test]
    fn a_rule_that_saw_all_kernels_marks_none() {
        let decided = |kernels| Decided {
            what: "a rule".into(),
            short: None,
            kernels,
        };
        let decisions = [
            decided(Seen::All(All::All)),
            decided(Seen::Some(vec!["a".into()])),
        ];
        assert!(is_fitted(&decisions, "a") && !is_fitted(&decisions, "b"));
    }
}
