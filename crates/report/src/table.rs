//! Plain-text tables: columns padded to their widest cell, numbers to the right.

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
}
