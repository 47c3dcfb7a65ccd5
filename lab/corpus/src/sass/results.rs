//! What the check of a SASS corpus came to: a result file, and the tables of lab/corpus/sass-results.md made from it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::table::grouped;

/// Where the tables stand in the page: between these two lines.
const MARKS: [&str; 2] = ["<!-- corpus -->", "<!-- /corpus -->"];
const SCHEMA: &str = "warpwright.sass-corpus/2";

/// Reasons by number of functions.
type Counts = BTreeMap<String, u64>;

/// All figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Results {
    schema: String,
    /// The version of nvdisasm that liveness was compared with; empty if it was not.
    pub nvdisasm: String,
    /// What ptxas refused to assemble in the way that was its turn, with its reason.
    pub refused: Vec<String>,
    /// By version of ptxas and architecture.
    pub rows: Vec<Row>,
}

/// The cubins of one ptxas for one architecture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Release of ptxas.
    pub ptxas: String,
    /// Architecture, 90 for sm_90.
    pub sm: u32,
    /// Files.
    pub cubins: u64,
    /// Kernels.
    pub kernels: u64,
    /// Functions with a section of their own: kernels, nearly all.
    pub functions: u64,
    /// Instructions.
    pub instructions: u64,
    /// Instructions that the tables do not explain.
    pub opaque: u64,
    /// Files whose round trip is the identity at every level.
    pub identical: u64,
    /// Functions whose code was moved and moved back.
    pub edited: u64,
    /// Functions that the edit layer refuses, by reason.
    pub refused: Counts,
    /// The comparison with nvdisasm.
    pub liveness: Liveness,
    /// Promises that do not hold.
    pub failures: Vec<String>,
}

/// A part of the functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Functions.
    pub functions: u64,
    /// Their instructions.
    pub instructions: u64,
}

impl Share {
    /// Adds another one.
    pub fn add(&mut self, other: Share) {
        self.functions += other.functions;
        self.instructions += other.instructions;
    }
}

/// What the comparison of liveness came to. Each function is in one share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Liveness {
    /// Agree at every instruction, nvdisasm's rule for guarded writes granted.
    pub agreeing: Share,
    /// Functions among them that need that rule.
    pub functions_by_rule: u64,
    /// Registers (times instructions) for which they need it.
    pub by_rule: u64,
    /// Differ, for a reason that is known.
    pub explained: Share,
    /// Functions by that reason.
    pub reasons: Counts,
    /// Differ otherwise.
    pub differing: Share,
    /// Have instructions whose roles are not known.
    pub opaque: Share,
    /// Those instructions, by mnemonic.
    pub unknown: Counts,
    /// Were not compared.
    pub left_out: Share,
    /// Functions by the reason for that.
    pub why_left_out: Counts,
    /// Instructions that nvdisasm does not show: padding, and what it takes for dead.
    pub not_shown: u64,
}

impl Liveness {
    /// Notes that some functions are not compared.
    pub fn leave_out(&mut self, why: String, share: Share) {
        self.left_out.add(share);
        *self.why_left_out.entry(why).or_default() += share.functions;
    }

    fn add(&mut self, other: &Liveness) {
        self.agreeing.add(other.agreeing);
        self.functions_by_rule += other.functions_by_rule;
        self.by_rule += other.by_rule;
        self.explained.add(other.explained);
        self.differing.add(other.differing);
        self.opaque.add(other.opaque);
        self.left_out.add(other.left_out);
        self.not_shown += other.not_shown;
        add_counts(&mut self.reasons, &other.reasons);
        add_counts(&mut self.unknown, &other.unknown);
        add_counts(&mut self.why_left_out, &other.why_left_out);
    }
}

impl Default for Results {
    fn default() -> Self {
        Results {
            schema: SCHEMA.to_owned(),
            nvdisasm: String::new(),
            refused: Vec::new(),
            rows: Vec::new(),
        }
    }
}

fn add_counts(to: &mut Counts, from: &Counts) {
    for (why, count) in from {
        *to.entry(why.clone()).or_default() += count;
    }
}

impl Row {
    fn add(&mut self, other: &Row) {
        self.cubins += other.cubins;
        self.kernels += other.kernels;
        self.functions += other.functions;
        self.instructions += other.instructions;
        self.opaque += other.opaque;
        self.identical += other.identical;
        self.edited += other.edited;
        add_counts(&mut self.refused, &other.refused);
        self.liveness.add(&other.liveness);
        self.failures.extend(other.failures.iter().cloned());
    }
}

impl Results {
    /// Where the result of the whole corpus is kept.
    pub fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("sass-results.json")
    }

    /// Adds a row to the one of its ptxas and architecture.
    pub fn add(&mut self, row: Row) {
        let key = |row: &Row| (row.ptxas.clone(), row.sm);
        match self.rows.binary_search_by_key(&key(&row), key) {
            Ok(at) => self.rows[at].add(&row),
            Err(at) => self.rows.insert(at, row),
        }
    }

    /// All rows together.
    pub fn total(&self) -> Row {
        let mut all = Row::default();
        self.rows.iter().for_each(|row| all.add(row));
        all
    }

    /// Does every promise hold?
    pub fn is_good(&self) -> bool {
        self.rows.iter().all(|row| row.failures.is_empty())
    }

    /// Reads a result file.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn load(path: &Path) -> Result<Results, Error> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        serde_json::from_slice(&bytes).map_err(|source| Error::Index {
            path: path.to_path_buf(),
            source,
        })
    }

    /// Writes a result file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(self).map_err(|source| Error::Index {
            path: path.to_path_buf(),
            source,
        })?;
        std::fs::write(path, text + "\n").map_err(|e| Error::io(path, e))
    }

    /// The figures as Markdown.
    pub fn tables(&self) -> String {
        let all = self.total();
        let mut text = String::from(
            "| ptxas | architecture | cubins | kernels | functions | instructions | opaque | identical | moved and back | refused |\n\
             |---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for row in &self.rows {
            row_of_code(&mut text, &row.ptxas, &format!("sm_{}", row.sm), row);
        }
        row_of_code(&mut text, "**all**", "", &all);
        list(
            &mut text,
            "Refused by the edit layer, by reason",
            &all.refused,
        );
        if !self.nvdisasm.is_empty() {
            self.liveness(&mut text, &all);
        }
        if !self.refused.is_empty() {
            text += "\nRefused by ptxas:\n\n";
        }
        for refused in &self.refused {
            let _ = writeln!(text, "- {refused}");
        }
        for failure in &all.failures {
            let _ = writeln!(text, "- FAILED {failure}");
        }
        text
    }

    fn liveness(&self, text: &mut String, all: &Row) {
        let _ = write!(
            text,
            "\nLiveness against nvdisasm {}, functions (their instructions):\n\n\
             | ptxas | architecture | agree | of them by the rule for guarded writes | explained | differ | with unknown instructions | left out |\n\
             |---|---|---:|---:|---:|---:|---:|---:|\n",
            self.nvdisasm
        );
        for row in &self.rows {
            row_of_liveness(text, &row.ptxas, &format!("sm_{}", row.sm), &row.liveness);
        }
        row_of_liveness(text, "**all**", "", &all.liveness);
        let _ = write!(
            text,
            "\nThe rule for guarded writes decides about {} pairs of register and instruction. {} \
             instructions are padding or dead code, which nvdisasm does not show.\n",
            grouped(all.liveness.by_rule),
            grouped(all.liveness.not_shown)
        );
        list(
            text,
            "Explained (`lab/corpus/sass-differences.txt`)",
            &all.liveness.reasons,
        );
        list(text, "Left out", &all.liveness.why_left_out);
        list(text, "Instructions without roles", &all.liveness.unknown);
    }
}

fn row_of_code(text: &mut String, ptxas: &str, sm: &str, row: &Row) {
    let numbers = [
        row.cubins,
        row.kernels,
        row.functions,
        row.instructions,
        row.opaque,
        row.identical,
        row.edited,
        row.refused.values().sum(),
    ];
    let _ = writeln!(
        text,
        "| {ptxas} | {sm} | {} |",
        numbers.map(grouped).join(" | ")
    );
}

fn row_of_liveness(text: &mut String, ptxas: &str, sm: &str, live: &Liveness) {
    let share = |share: Share| match share.functions {
        0 => "0".to_owned(),
        functions => format!("{} ({})", grouped(functions), grouped(share.instructions)),
    };
    let cells = [
        share(live.agreeing),
        grouped(live.functions_by_rule),
        share(live.explained),
        share(live.differing),
        share(live.opaque),
        share(live.left_out),
    ];
    let _ = writeln!(text, "| {ptxas} | {sm} | {} |", cells.join(" | "));
}

/// The most frequent first.
fn list(text: &mut String, title: &str, counts: &Counts) {
    if counts.is_empty() {
        return;
    }
    let _ = write!(text, "\n{title}:\n\n");
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|(why, count)| (std::cmp::Reverse(**count), why.as_str()));
    for (why, count) in sorted {
        let _ = writeln!(text, "- {}: {why}", grouped(*count));
    }
}

/// The page with the tables in their place, if it has one.
pub fn in_page(page: &str, tables: &str) -> Option<String> {
    let (head, rest) = page.split_once(MARKS[0])?;
    let (_, tail) = rest.split_once(MARKS[1])?;
    Some(format!("{head}{}\n{tables}{}{tail}", MARKS[0], MARKS[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ptxas: &str, sm: u32) -> Row {
        Row {
            ptxas: ptxas.into(),
            sm,
            cubins: 1,
            instructions: 1000,
            refused: Counts::from([("BRX".to_owned(), 2)]),
            ..Row::default()
        }
    }

    #[test]
    fn rows_add_up_in_order() {
        let mut results = Results::default();
        for (ptxas, sm) in [("13.5", 90), ("13.0", 90), ("13.5", 75), ("13.5", 90)] {
            results.add(row(ptxas, sm));
        }
        let keys: Vec<_> = results
            .rows
            .iter()
            .map(|r| (&*r.ptxas, r.sm, r.cubins))
            .collect();
        assert_eq!(keys, [("13.0", 90, 1), ("13.5", 75, 1), ("13.5", 90, 2)]);
        let tables = results.tables();
        assert!(
            tables.contains("| 13.5 | sm_90 | 2 | 0 | 0 | 2,000 |"),
            "{tables}"
        );
        assert!(tables.contains("- 8: BRX"), "{tables}");
    }

    #[test]
    fn the_tables_go_between_the_marks() {
        let page = "a\n<!-- corpus -->\nold\n<!-- /corpus -->\nb\n";
        let new = in_page(page, "new\n");
        let expected = "a\n<!-- corpus -->\nnew\n<!-- /corpus -->\nb\n";
        assert_eq!(new.as_deref(), Some(expected));
        assert_eq!(in_page("nothing", "new"), None);
    }
}
