//! Plain-text tables: columns padded to their widest cell, numbers to the right.

use crate::screen::{WIDTH, broken};

/// Characters that a column of words keeps, however narrow the screen.
const NARROWEST: usize = 16;

/// A table under construction.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new(heads: &[&str]) -> Self {
        Table {
            rows: vec![heads.iter().map(|h| (*h).to_string()).collect()],
        }
    }

    /// Adds a row; missing cells stay empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The text within [`WIDTH`] columns as far as words can be broken: cells of the widest column of words go on in
    /// further lines.
    pub fn render_within(&self, indent: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let all: usize = (0..columns).map(width).sum();
        let all = indent + all + 2 * columns.saturating_sub(1);
        let Some(widest) = (0..columns).max_by_key(|&c| width(c)) else {
            return String::new();
        };
        let room = (width(widest) + WIDTH).saturating_sub(all).max(NARROWEST);
        let mut rows = Vec::new();
        for row in &self.rows {
            let cell = row.get(widest).map_or("", String::as_str);
            for (number, line) in broken(cell, room).into_iter().enumerate() {
                let mut part = match number {
                    0 => row.clone(),
                    _ => vec![String::new(); row.len()],
                };
                if let Some(cell) = part.get_mut(widest) {
                    *cell = line;
                }
                rows.push(part);
            }
        }
        Table { rows }.render(indent)
    }

    /// The text, each line indented by `indent` blanks.
    pub fn render(&self, indent: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, c: usize| row.get(c).cloned().unwrap_or_default();
        let width = |c: usize| self.rows.iter().map(|r| cell(r, c).chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
        let numeric: Vec<bool> = (0..columns)
            .map(|c| self.rows[1..].iter().all(|r| is_number(&cell(r, c))))
            .collect();
        let mut out = String::new();
        for row in &self.rows {
            let cells: Vec<String> = (0..columns)
                .map(|c| {
                    let text = cell(row, c);
                    let pad = " ".repeat(widths[c] - text.chars().count());
                    if numeric[c] {
                        format!("{pad}{text}")
                    } else {
                        format!("{text}{pad}")
                    }
                })
                .collect();
            out.push_str(&" ".repeat(indent));
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
        }
        out
    }
}

fn is_number(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_digit() || " .,%+-–×".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right() {
        let mut table = Table::new(&["name", "regs"]);
        table.row(vec!["default".into(), "8".into()]);
        table.row(vec!["x".into(), "128".into()]);
        assert_eq!(
            table.render(1),
            " name     regs\n default     8\n x         128\n"
        );
    }

    #[test]
    fn words_go_on_below_where_the_screen_ends() {
        let mut table = Table::new(&["ms", "plan"]);
        table.row(vec!["1".into(), "word ".repeat(30).trim_end().into()]);
        let text = table.render_within(2);
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        assert_eq!(text.matches("word").count(), 30);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(
            text.lines()
                .nth(2)
                .is_some_and(|line| line.starts_with("      word")),
            "{text}"
        );
        let mut narrow = Table::new(&["a"]);
        narrow.row(vec!["b".into()]);
        assert_eq!(narrow.render_within(1), narrow.render(1));
    }
}
