//! Symbols: kernels and device functions, constant banks, arrays in device and shared memory.

use object::elf::{SHT_SYMTAB, STT_FUNC, Sym64};
use object::{LittleEndian, U16, U32, U64};

use super::{Elf, ElfError, damaged, refused};

const E: LittleEndian = LittleEndian;

/// One symbol, as plain numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Name, from the linked string table.
    pub name: String,
    pub(crate) name_offset: u32,
    /// st_info: binding and type.
    pub info: u8,
    /// st_other; bit 4 marks a kernel.
    pub other: u8,
    /// Index of the section that it belongs to.
    pub section: u16,
    /// Offset in its section in bytes.
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
}

impl Symbol {
    /// Does it name code?
    pub fn is_function(&self) -> bool {
        self.info & 0xf == STT_FUNC
    }

    /// Is it a kernel, which the host can launch?
    pub fn is_kernel(&self) -> bool {
        self.is_function() && self.other & 0x10 != 0
    }

    /// Is it known only in this file?
    pub fn is_local(&self) -> bool {
        self.info >> 4 == object::elf::STB_LOCAL
    }
}

impl Elf {
    /// All symbols, by index.
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: the table is cut short, or a symbol has no name.
    pub fn symbols(&self) -> Result<Vec<Symbol>, ElfError> {
        match self.symbol_table() {
            Some(table) => self.symbols_of(table),
            None => Ok(Vec::new()),
        }
    }

    /// Index of the section with the symbols.
    pub(crate) fn symbol_table(&self) -> Option<usize> {
        self.sections.iter().position(|s| s.kind == SHT_SYMTAB)
    }

    /// The symbols of the table in section `table`.
    ///
    /// # Errors
    /// As of [`Elf::symbols`], or where there is no such table.
    pub fn symbols_of(&self, table: usize) -> Result<Vec<Symbol>, ElfError> {
        let section = self.sections.get(table);
        let section = section.ok_or_else(|| damaged("there is no such symbol table"))?;
        let names = self.sections.get(section.link as usize);
        let names = names.ok_or_else(|| damaged("the symbol table has no names"))?;
        let raw = object::slice_from_all_bytes::<Sym64<LittleEndian>>(&section.data);
        let raw = raw.map_err(|()| damaged("the symbol table is cut short"))?;
        let name = |offset: u32| {
            let rest = names.data.get(offset as usize..)?;
            let end = rest.iter().position(|&b| b == 0)?;
            String::from_utf8(rest[..end].to_vec()).ok()
        };
        let symbols = raw.iter().enumerate().map(|(i, s)| {
            Ok(Symbol {
                name: name(s.st_name.get(E))
                    .ok_or_else(|| damaged(format!("symbol {i} has no name")))?,
                name_offset: s.st_name.get(E),
                info: s.st_info,
                other: s.st_other,
                section: s.st_shndx.get(E),
                value: s.st_value.get(E),
                size: s.st_size.get(E),
            })
        });
        symbols.collect()
    }

    /// Writes changed symbols back. Number and names stay as they were.
    ///
    /// # Errors
    /// [`ElfError::Refused`]: there is no table, or another number of symbols.
    pub fn set_symbols(&mut self, symbols: &[Symbol]) -> Result<(), ElfError> {
        let table = self.symbol_table();
        let table = table.ok_or_else(|| refused("there is no symbol table"))?;
        let bytes = symbols.iter().flat_map(|s| {
            let raw = Sym64 {
                st_name: U32::new(E, s.name_offset),
                st_info: s.info,
                st_other: s.other,
                st_shndx: U16::new(E, s.section),
                st_value: U64::new(E, s.value),
                st_size: U64::new(E, s.size),
            };
            object::pod::bytes_of(&raw).to_vec()
        });
        self.sections[table].data = bytes.collect();
        Ok(())
    }
}
