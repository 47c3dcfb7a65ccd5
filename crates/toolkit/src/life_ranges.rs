//! What `nvdisasm -c -plr -lrm narrow` prints: for every instruction, which registers it defines,
//! uses, or lets live past it.
//!
//! Each row of the disassembly ends in `// |` and one cell per register file; a cell holds the
//! number of occupied registers and one character per register, at the position that the table's
//! heading (`# 0123…`) gives. The number is what `-lrm count` prints alone; a row whose number is not that
//! of its characters is refused. Seen in the output of nvdisasm 13.0 and 13.5.

/// A register file, in the order of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    /// General registers.
    Gpr,
    /// Predicates.
    Pred,
    /// Uniform registers.
    Uniform,
    /// Uniform predicates.
    UniformPred,
}

/// What happens to a register at one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `^`: assigned.
    Defined,
    /// `v`: used.
    Used,
    /// `x`: used and assigned.
    Both,
    /// `:`: holds a value that is used later.
    Live,
}

impl Mark {
    /// Does the instruction write the register?
    pub fn defines(self) -> bool {
        matches!(self, Mark::Defined | Mark::Both)
    }

    /// Does the instruction read the register?
    pub fn uses(self) -> bool {
        matches!(self, Mark::Used | Mark::Both)
    }

    fn of(char: u8) -> Option<Mark> {
        Some(match char {
            b'^' => Mark::Defined,
            b'v' => Mark::Used,
            b'x' => Mark::Both,
            b':' => Mark::Live,
            _ => return None,
        })
    }
}

/// One instruction's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Bytes from the start of the section.
    pub offset: u64,
    /// The instruction as nvdisasm writes it.
    pub text: String,
    /// Does a label stand before it? One that nothing branches to may, named by `.nv.info`.
    pub labelled: bool,
    /// Marked registers: file, number, mark; files in column order, numbers ascending.
    pub marks: Vec<(File, u16, Mark)>,
}

impl Row {
    /// Number of occupied registers of one file.
    pub fn count(&self, file: File) -> usize {
        self.marks.iter().filter(|mark| mark.0 == file).count()
    }
}

/// One code section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name, for example `.text.kernel`.
    pub name: String,
    /// Its instructions.
    pub rows: Vec<Row>,
}

/// Where a file's cell stands in a row, relative to the `// ` that begins the table.
struct Column {
    file: File,
    /// Behind the bar that begins the cell.
    start: usize,
    /// Of register 0.
    first: usize,
    /// Of the bar that ends the cell.
    end: usize,
}

/// Parses the text; `None` if it does not have the expected form (life ranges are missing when
/// nvdisasm could not analyse the code), or if its numbers contradict its marks.
pub fn parse(text: &str) -> Option<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    let mut files: Vec<File> = Vec::new();
    let mut labelled = false;
    for line in text.lines() {
        let body = line.trim_start();
        // Not `.sectioninfo`, which follows it before sm_90.
        if let Some(rest) = body.strip_prefix(".section\t") {
            let name = rest.split(',').next()?.trim().to_owned();
            let rows = Vec::new();
            sections.push(Section { name, rows });
            columns.clear();
            labelled = false;
            continue;
        }
        let Some(at) = line.rfind("// ") else {
            continue;
        };
        let table = &line.as_bytes()[at..];
        if at == body_start(line) {
            if let Some(found) = heading(table) {
                files = found;
            } else if table.contains(&b'#') && columns.is_empty() {
                columns = positions(table, &files)?;
            }
            continue;
        }
        if let Some((offset, text)) = instruction(&line[..at]) {
            let marks = marks(table, &columns)?;
            let row = Row {
                offset,
                text,
                labelled,
                marks,
            };
            labelled = false;
            sections.last_mut()?.rows.push(row);
        } else {
            labelled |= line[..at].trim_end().ends_with(':');
        }
    }
    sections.retain(|section| !section.rows.is_empty());
    Some(sections)
}

fn body_start(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The line that names the files.
fn heading(table: &[u8]) -> Option<Vec<File>> {
    let text = std::str::from_utf8(table).ok()?;
    let names = text.split('|').map(str::trim).skip(1);
    let files: Option<Vec<File>> = names
        .filter(|name| !name.is_empty())
        .map(|name| {
            Some(match name {
                "GPR" => File::Gpr,
                "PRED" => File::Pred,
                "UGPR" => File::Uniform,
                "UPRED" => File::UniformPred,
                _ => return None,
            })
        })
        .collect();
    files.filter(|files| !files.is_empty())
}

/// The line with the units of the register numbers.
fn positions(table: &[u8], files: &[File]) -> Option<Vec<Column>> {
    let mut columns = Vec::new();
    let mut at = table.iter().position(|&c| c == b'|')?;
    for &file in files {
        let end = at + 1 + table[at + 1..].iter().position(|&c| c == b'|')?;
        let sharp = at + table[at..end].iter().position(|&c| c == b'#')?;
        let first = sharp + 2;
        columns.push(Column {
            file,
            start: at + 1,
            first,
            end,
        });
        at = end;
    }
    Some(columns)
}

/// `/*0010*/  text ;` as offset and text.
fn instruction(line: &str) -> Option<(u64, String)> {
    let (offset, text) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    let text = text.trim().trim_end_matches(';').trim_end();
    Some((offset, text.to_owned()))
}

fn marks(table: &[u8], columns: &[Column]) -> Option<Vec<(File, u16, Mark)>> {
    let mut marks = Vec::new();
    for column in columns {
        let cell = table.get(column.first..column.end)?;
        let before = marks.len();
        for (number, &char) in cell.iter().enumerate() {
            if let Some(mark) = Mark::of(char) {
                marks.push((column.file, u16::try_from(number).ok()?, mark));
            }
        }
        let number = std::str::from_utf8(table.get(column.start..column.first)?).ok()?;
        let number = match number.trim() {
            "" => 0,
            digits => digits.parse().ok()?,
        };
        if number != marks.len() - before {
            return None;
        }
    }
    (!columns.is_empty()).then_some(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "
\t.section\t.text.k,\"ax\",@progbits
\t.sectioninfo\t@\"SHI_REGISTERS=8\"
                              // +-------------+------------+---------------+---------+
                              // |    GPR      |   PRED     |     UGPR      | UPRED   |
                              // |    00000000 |            |    00000000   |         |
                              // |  # 01234567 | # 0123456  |  # 01234567   |  # 01   |
                              // +-------------+------------+---------------+---------+
        .global         k     // |             |            |               |         |
k:                            // |             |            |               |         |
        /*0000*/        MOV ; // |  2  :^      |            |  1     ^      |         |
        /*0010*/   @!P0 FOO ; // |  4 x:v     ^| 1 v        |               |  1 v    |
.L_x_1:                       // +.............+............+...............+.........+
        /*0020*/        BAR ; // |             |            |               |         |
";

    #[test]
    fn rows_have_offsets_and_marks() {
        let sections = parse(SAMPLE).expect("the sample parses");
        assert_eq!(sections.len(), 1);
        assert_eq!(sections[0].name, ".text.k");
        let rows = &sections[0].rows;
        assert_eq!((rows[0].offset, rows[1].offset), (0, 16));
        assert_eq!(rows[1].text, "@!P0 FOO");
        let (live, defined) = (Mark::Live, Mark::Defined);
        assert_eq!(
            rows[0].marks,
            [
                (File::Gpr, 1, live),
                (File::Gpr, 2, defined),
                (File::Uniform, 4, defined)
            ]
        );
        assert_eq!(rows[1].count(File::Gpr), 4);
        let labelled: Vec<bool> = rows.iter().map(|row| row.labelled).collect();
        assert_eq!(labelled, [true, false, true]);
        assert!(rows[1].marks.contains(&(File::UniformPred, 0, Mark::Used)));
    }

    #[test]
    fn a_number_that_is_not_that_of_the_marks_is_refused() {
        assert_eq!(parse(&SAMPLE.replace("|  4 x:v", "|  5 x:v")), None);
    }

    #[test]
    fn text_without_life_ranges_is_refused() {
        assert_eq!(parse("\t.section\t.text.k\n  /*0000*/ NOP ; // x\n"), None);
    }
}
