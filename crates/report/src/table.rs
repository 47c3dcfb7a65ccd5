//! Plain-text tables: columns padded to their widest cell, numbers to the right.

use crate::screen::{WIDTH, broken, squeezed};

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

    /// Leaves out the column of this head.
    pub fn remove(&mut self, head: &str) {
        let at = self
            .rows
            .first()
            .and_then(|heads| heads.iter().position(|of| of == head));
        for row in &mut self.rows {
            if let Some(at) = at.filter(|&at| at < row.len()) {
                row.remove(at);
            }
        }
    }

    /// The text within [`WIDTH`] columns: the cells of the widest columns go on in further lines, and words that are
    /// wider than their column are shortened in the middle.
    pub fn render_within(&self, indent: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = self.widths();
        let room = WIDTH.saturating_sub(indent + 2 * columns.saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max() {
                Some(widest) if *widest > NARROWEST => *widest -= 1,
                _ => break,
            }
        }
        let mut rows = Vec::new();
        for row in &self.rows {
            let cell = |(cell, &width): (&String, &usize)| match cell.chars().count() <= width {
                true => vec![cell.clone()],
                false => {
                    let lines = broken(cell, width).into_iter();
                    lines.map(|line| squeezed(&line, width)).collect()
                }
            };
            let cells: Vec<Vec<String>> = row.iter().zip(&widths).map(cell).collect();
            for number in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let line = |cell: &Vec<String>| cell.get(number).cloned().unwrap_or_default();
                rows.push(cells.iter().map(line).collect());
            }
        }
        Table { rows }.render(indent)
    }

    /// Characters of the widest cell of each column.
    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..columns).map(width).collect()
    }

    /// The text, each line indented by `indent` blanks.
    pub fn render(&self, indent: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, c: usize| row.get(c).cloned().unwrap_or_default();
        let widths = self.widths();
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
        .all(|c| c.is_ascii_digit() || " .,%+-–×<".contains(c))
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
        // Two wide columns, and a word that is wider than what is left of it.
        let mut wide = Table::new(&["line", "of it", "instruction"]);
        let place = format!("{}.h:107", "x".repeat(60));
        wide.row(vec![place, "word ".repeat(9), "op ".repeat(20)]);
        let text = wide.render_within(4);
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        assert!(text.contains("…") && text.contains("x.h:107"), "{text}");
        assert_eq!(
            (text.matches("word").count(), text.matches("op").count()),
            (9, 20)
        );
        wide.remove("of it");
        wide.remove("nothing");
        assert!(!wide.render(0).contains("word") && wide.render(0).contains("op op"));
        let mut narrow = Table::new(&["a"]);
        narrow.row(vec!["b".into()]);
        assert_eq!(narrow.render_within(1), narrow.render(1));
    }
}
