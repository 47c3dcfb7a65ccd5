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
    /// The folder; empty for that of the compiler, and where the table names none.
    pub folder: String,
    /// From 1.
    pub line: u32,
}

/// The line of each instruction of a kernel; `None` for those in front of the first row, all of them where the
/// cubin has no table.
///
/// # Errors
/// If there is no such kernel, or the table is damaged.
pub fn source_lines(elf: &Elf, kernel: &str) -> Result<Vec<Option<SourceLine>>, ElfError> {
    let lines = inlined_lines(elf, kernel)?.into_iter();
    Ok(lines.map(|line| line.into_iter().next()).collect())
}

/// The same with the lines of the calls that the code was inlined at, from the inside out: ptxas notes them by an
/// operation of its own (0x90: the number of the caller's row, and where the function's name stands).
///
/// # Errors
/// If there is no such kernel, or the table is damaged.
pub fn inlined_lines(elf: &Elf, kernel: &str) -> Result<Vec<Vec<SourceLine>>, ElfError> {
    table(elf, kernel, ".debug_line")
}

/// The line of the PTX that ptxas made each instruction of (`--generate-line-info`), from 1; `None` as with
/// [`source_lines`].
///
/// # Errors
/// If there is no such kernel, or the table is damaged.
pub fn ptx_lines(elf: &Elf, kernel: &str) -> Result<Vec<Option<u32>>, ElfError> {
    let lines = table(elf, kernel, ".nv_debug_line_sass")?.into_iter();
    Ok(lines.map(|line| Some(line.first()?.line)).collect())
}

fn table(elf: &Elf, kernel: &str, name: &str) -> Result<Vec<Vec<SourceLine>>, ElfError> {
    let kernel = elf.kernel(kernel)?;
    let count = elf.instructions(&kernel)?.len();
    let mut lines = vec![Vec::new(); count];
    let Some(table) = elf.section_index(name) else {
        return Ok(lines);
    };
    let starts = starts(elf, table, kernel.text)?;
    let damaged = |why| damaged(format!("{name}: {why}"));
    let mut rows = rows(&elf.sections[table].data, &starts).map_err(damaged)?;
    rows.sort_by_key(|row| row.address);
    let mut next = rows.into_iter().peekable();
    let mut current = Vec::new();
    for (index, line) in lines.iter_mut().enumerate() {
        while let Some(row) = next.next_if(|row| row.address <= 16 * index as u64) {
            current = row.lines;
        }
        line.clone_from(&current);
    }
    Ok(lines)
}

/// From this address on, the line, and those that it was inlined at.
struct Row {
    address: u64,
    lines: Vec<SourceLine>,
}

/// A file of a unit: its name and its folder.
type Place = (String, String);

/// The operation that says where the next rows were inlined.
const INLINED_CALL: u8 = 0x90;
/// Calls in inlined code in inlined code, so many at most.
const DEEPEST: usize = 64;

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

/// A unit's files; its folders come first.
fn files(data: &[u8], mut at: usize, end: usize) -> Result<Vec<Place>, LineError> {
    let data = data.get(..end).ok_or(LineError::Cut)?;
    let name = |at: &mut usize| -> Result<String, LineError> {
        let rest = data.get(*at..).ok_or(LineError::Cut)?;
        let length = rest.iter().position(|&b| b == 0).ok_or(LineError::Cut)?;
        *at += length + 1;
        Ok(String::from_utf8_lossy(&rest[..length]).into_owned())
    };
    let mut folders = Vec::new();
    loop {
        match name(&mut at)? {
            folder if folder.is_empty() => break,
            folder => folders.push(folder),
        }
    }
    let mut files = Vec::new();
    loop {
        let file = name(&mut at)?;
        if file.is_empty() {
            return Ok(files);
        }
        let (folder, behind) = leb(data, at)?;
        at = behind;
        // Time and length.
        for _ in 0..2 {
            at = leb(data, at)?.1;
        }
        // Folder 0 is the compiler's own.
        let named = (folder as usize)
            .checked_sub(1)
            .and_then(|at| folders.get(at));
        let named = named.cloned().unwrap_or_default();
        files.push(match file.rsplit_once('/') {
            Some((own, name)) if named.is_empty() => (name.to_owned(), own.to_owned()),
            Some((own, name)) => (name.to_owned(), format!("{named}/{own}")),
            None => (file, named),
        });
    }
}

/// The registers of the line number machine.
struct Machine<'a> {
    unit: &'a Unit,
    files: &'a [Place],
    starts: &'a Starts,
    /// All rows of the unit, also those of other sections: calls name them by their numbers.
    all: Vec<Vec<SourceLine>>,
    /// The number of the row that the next ones were inlined at; 0 is none.
    call: usize,
    /// While the sequence is in the wanted section.
    address: Option<u64>,
    file: u64,
    line: i64,
}

impl<'a> Machine<'a> {
    fn new(unit: &'a Unit, files: &'a [Place], starts: &'a Starts) -> Self {
        Machine {
            unit,
            files,
            starts,
            all: Vec::new(),
            call: 0,
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
                    lines: Vec::new(),
                }));
                (self.address, self.file, self.line, self.call) = (None, 1, 1, 0);
            }
            Some(2) => {
                let start = self.starts.get(&(body as u64 + 1));
                self.address = start
                    .and_then(|&(symbol, addend)| symbol.checked_add_signed(addend.unwrap_or(0)));
            }
            Some(&INLINED_CALL) => {
                let number = leb(data, body + 1).map_or(0, |(number, _)| number);
                self.call = usize::try_from(number).unwrap_or(0);
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

    /// Takes the row into the table; one of another section is there for its number alone.
    fn row(&mut self) -> Option<Row> {
        let place = match (self.file as usize).checked_sub(1) {
            Some(at) => self.files.get(at).cloned(),
            // The PTX, which has no name.
            None => Some(Place::default()),
        };
        let line = u32::try_from(self.line).ok();
        let own = place
            .zip(line)
            .map(|((file, folder), line)| SourceLine { file, folder, line });
        let call = self.call.checked_sub(1).and_then(|at| self.all.get(at));
        let mut lines: Vec<SourceLine> = own.into_iter().collect();
        lines.extend(call.into_iter().flatten().take(DEEPEST).cloned());
        self.all.push(lines.clone());
        let address = self.address?;
        Some(Row { address, lines })
    }
}
