//! Which line of the source an instruction comes from: the rows of `.debug_line` (DWARF 2 and 3, section 6.2), which
//! ptxas writes when it is told to (`--generate-line-info`) and the PTX has `.loc`; and which line of the PTX, the same
//! in `.nv_debug_line_sass`.

use crate::edit::lines::{LineError, Starts, Unit, leb, sleb, starts};
use crate::elf::{Elf, ElfError, damaged};

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLine {
    /// The file's name, without its folder.
    pub file: String,
    /// From 1.
    pub line: u32,
}

/// The line of each instruction of a kernel; `None` for those in front of the first row, all of them where the
/// cubin has no table.
///
/// # Errors
/// If there is no such kernel, or the table is damaged.
pub fn source_lines(elf: &Elf, kernel: &str) -> Result<Vec<Option<SourceLine>>, ElfError> {
    table(elf, kernel, ".debug_line")
}

/// The line of the PTX that ptxas made each instruction of (`--generate-line-info`), from 1; `None` as with
/// [`source_lines`].
///
/// # Errors
/// If there is no such kernel, or the table is damaged.
pub fn ptx_lines(elf: &Elf, kernel: &str) -> Result<Vec<Option<u32>>, ElfError> {
    let lines = table(elf, kernel, ".nv_debug_line_sass")?.into_iter();
    Ok(lines.map(|line| line.map(|line| line.line)).collect())
}

fn table(elf: &Elf, kernel: &str, name: &str) -> Result<Vec<Option<SourceLine>>, ElfError> {
    let kernel = elf.kernel(kernel)?;
    let count = elf.instructions(&kernel)?.len();
    let mut lines = vec![None; count];
    let Some(table) = elf.section_index(name) else {
        return Ok(lines);
    };
    let starts = starts(elf, table, kernel.text)?;
    let damaged = |why| damaged(format!("{name}: {why}"));
    let mut rows = rows(&elf.sections[table].data, &starts).map_err(damaged)?;
    rows.sort_by_key(|row| row.address);
    let mut next = rows.into_iter().peekable();
    let mut current = None;
    for (index, line) in lines.iter_mut().enumerate() {
        while let Some(row) = next.next_if(|row| row.address <= 16 * index as u64) {
            current = row.line;
        }
        line.clone_from(&current);
    }
    Ok(lines)
}

/// From this address on, the line.
struct Row {
    address: u64,
    line: Option<SourceLine>,
}

fn rows(data: &[u8], starts: &Starts) -> Result<Vec<Row>, LineError> {
    let mut rows = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let unit = Unit::read(data, at)?;
        let files = files(data, at + 15 + unit.lengths.len(), unit.program)?;
        Machine::new(&unit, &files, starts).run(&data[..unit.end], &mut rows)?;
        at = unit.end;
    }
    Ok(rows)
}

/// The names of a unit's files; its folders come first and are left out.
fn files(data: &[u8], mut at: usize, end: usize) -> Result<Vec<String>, LineError> {
    let data = data.get(..end).ok_or(LineError::Cut)?;
    let name = |at: &mut usize| -> Result<String, LineError> {
        let rest = data.get(*at..).ok_or(LineError::Cut)?;
        let length = rest.iter().position(|&b| b == 0).ok_or(LineError::Cut)?;
        *at += length + 1;
        Ok(String::from_utf8_lossy(&rest[..length]).into_owned())
    };
    while !name(&mut at)?.is_empty() {}
    let mut files = Vec::new();
    loop {
        let file = name(&mut at)?;
        if file.is_empty() {
            return Ok(files);
        }
        // Folder, time and length.
        for _ in 0..3 {
            at = leb(data, at)?.1;
        }
        files.push(file.rsplit('/').next().unwrap_or_default().to_owned());
    }
}

/// The registers of the line number machine.
struct Machine<'a> {
    unit: &'a Unit,
    files: &'a [String],
    starts: &'a Starts,
    /// While the sequence is in the wanted section.
    address: Option<u64>,
    file: u64,
    line: i64,
}

impl<'a> Machine<'a> {
    fn new(unit: &'a Unit, files: &'a [String], starts: &'a Starts) -> Self {
        Machine {
            unit,
            files,
            starts,
            address: None,
            file: 1,
            line: 1,
        }
    }

    fn run(mut self, data: &[u8], rows: &mut Vec<Row>) -> Result<(), LineError> {
        let mut at = self.unit.program;
        while let Some(&opcode) = data.get(at) {
            at += 1;
            match opcode {
                0 => {
                    let (length, body) = leb(data, at)?;
                    let end = body.checked_add(length as usize);
                    at = end.filter(|&e| e <= data.len()).ok_or(LineError::Cut)?;
                    self.extended(data, body, rows);
                }
                1 => rows.extend(self.row()),
                2 => {
                    let (by, end) = leb(data, at)?;
                    self.advance(by);
                    at = end;
                }
                3 => {
                    let (by, end) = sleb(data, at)?;
                    self.line = self.line.wrapping_add(by);
                    at = end;
                }
                4 => (self.file, at) = leb(data, at)?,
                8 => self.special(255),
                9 => {
                    let bytes = data.get(at..at + 2).ok_or(LineError::Cut)?;
                    self.advance(u64::from(bytes[0]) | u64::from(bytes[1]) << 8);
                    at += 2;
                }
                _ if opcode >= self.unit.opcode_base => {
                    self.special(opcode);
                    let number = i64::from(opcode - self.unit.opcode_base);
                    self.line += number % self.unit.line_range + self.unit.line_base;
                    rows.extend(self.row());
                }
                _ => {
                    for _ in 0..self.unit.lengths[usize::from(opcode) - 1] {
                        at = leb(data, at)?.1;
                    }
                }
            }
        }
        Ok(())
    }

    fn extended(&mut self, data: &[u8], body: usize, rows: &mut Vec<Row>) {
        match data.get(body) {
            Some(1) => {
                // Behind the end of a sequence nothing is known.
                rows.extend(self.address.map(|address| Row {
                    address,
                    line: None,
                }));
                (self.address, self.file, self.line) = (None, 1, 1);
            }
            Some(2) => {
                let start = self.starts.get(&(body as u64 + 1));
                self.address = start
                    .and_then(|&(symbol, addend)| symbol.checked_add_signed(addend.unwrap_or(0)));
            }
            _ => {}
        }
    }

    fn advance(&mut self, by: u64) {
        self.address = self.address.and_then(|address| address.checked_add(by));
    }

    /// The address advance of a special opcode.
    fn special(&mut self, opcode: u8) {
        let number = opcode.saturating_sub(self.unit.opcode_base);
        self.advance((i64::from(number) / self.unit.line_range) as u64);
    }

    fn row(&self) -> Option<Row> {
        let file = match (self.file as usize).checked_sub(1) {
            Some(at) => self.files.get(at)?.clone(),
            // The PTX, which has no name.
            None => String::new(),
        };
        Some(Row {
            address: self.address?,
            line: u32::try_from(self.line)
                .ok()
                .map(|line| SourceLine { file, line }),
        })
    }
}
