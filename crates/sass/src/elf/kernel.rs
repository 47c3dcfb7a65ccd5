//! What belongs to one function of a cubin, and the changes that need no more than that: its
//! shared memory, its register count, its instruction words.

use std::collections::{BTreeMap, HashMap};

use object::elf::{SHF_ALLOC, SHF_INFO_LINK, SHF_WRITE, SHT_NOBITS};
use warpwright_target::{architectures, machine_code};

use super::info::{Attribute, Info, Value, branch_entries};
use super::{Elf, ElfError, Section, damaged, refused};
use crate::inst::Instruction;

/// Bytes of an instruction.
pub const INSTRUCTION: usize = 16;

/// How many registers EIATTR_REGCOUNT states beyond the last one that code may name. ptxas leaves so many
/// in every cubin that was looked at; on an H200 an instruction that names one of them is illegal, or the
/// kernel never ends (tried on sm_90).
pub const RESERVED_REGISTERS: u32 = 2;

/// Sections and symbol of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSections {
    /// The function's name.
    pub name: String,
    /// Index of its symbol.
    pub symbol: u32,
    /// Index of `.text.NAME`.
    pub text: usize,
    /// Index of `.nv.info.NAME`.
    pub info: Option<usize>,
    /// Index of `.nv.shared.NAME`.
    pub shared: Option<usize>,
    /// Index of `.nv.constant0.NAME`: the parameters.
    pub parameters: Option<usize>,
}

/// Where indirect branches lead: by the index of the branch, byte offsets in the order of its table.
pub type BranchTargets = BTreeMap<usize, Vec<u64>>;

impl Elf {
    /// What `.nv.info.KERNEL` says about indirect branches (EIATTR_INDIRECT_BRANCH_TARGETS).
    ///
    /// # Errors
    /// The list is cut short, or the container is damaged.
    pub fn branch_targets(&self, kernel: &KernelSections) -> Result<BranchTargets, ElfError> {
        let mut found = BranchTargets::new();
        let Some(section) = kernel.info else {
            return Ok(found);
        };
        let info = self.info(&self.sections[section].name)?.unwrap_or_default();
        let records = info.records.iter();
        for record in records.filter(|r| r.attribute == Attribute::INDIRECT_BRANCH_TARGETS) {
            let words = record.words();
            let entries = branch_entries(&words);
            let entries =
                entries.ok_or_else(|| damaged("a list of branch targets is cut short"))?;
            for entry in entries {
                let targets = words[entry.targets].iter().map(|&word| u64::from(word));
                let branch = words[entry.branch] as usize / INSTRUCTION;
                found.insert(branch, targets.collect());
            }
        }
        Ok(found)
    }

    /// The functions with a text section of their own (kernels, and device functions of relocatable
    /// files), in symbol order.
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: the symbols cannot be read.
    pub fn kernels(&self) -> Result<Vec<KernelSections>, ElfError> {
        self.kernels_named(|_| true)
    }

    /// The function called `name`.
    ///
    /// # Errors
    /// [`ElfError::Refused`]: there is none. [`ElfError::Damaged`]: the symbols cannot be read.
    pub fn kernel(&self, name: &str) -> Result<KernelSections, ElfError> {
        let found = self
            .kernels_named(|known| known == name)?
            .into_iter()
            .next();
        found.ok_or_else(|| refused(format!("the cubin has no function {name}")))
    }

    fn kernels_named(
        &self,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<KernelSections>, ElfError> {
        let symbols = self.symbols()?;
        // The first section of each name.
        let sections = self.sections.iter().enumerate().rev();
        let sections: HashMap<&str, usize> = sections.map(|(i, s)| (s.name.as_str(), i)).collect();
        let section = |prefix: &str, name: &str| {
            let found = sections.get(format!("{prefix}{name}").as_str());
            found.copied()
        };
        let named = symbols.iter().enumerate().filter(|(_, s)| wanted(&s.name));
        let functions = named.filter_map(|(i, symbol)| {
            let text = usize::from(symbol.section);
            let own = self.sections.get(text)?.name.strip_prefix(".text.")? == symbol.name;
            (own && symbol.is_function()).then(|| {
                let name = &symbol.name;
                KernelSections {
                    name: name.clone(),
                    symbol: i as u32,
                    text,
                    info: section(".nv.info.", name),
                    shared: section(".nv.shared.", name),
                    parameters: section(".nv.constant0.", name),
                }
            })
        });
        Ok(functions.collect())
    }

    /// The records about a function; none if it has no section of them.
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: a record is cut short.
    pub fn info_of(&self, kernel: &KernelSections) -> Result<Info, ElfError> {
        let section = kernel.info.and_then(|index| self.sections.get(index));
        section.map_or_else(|| Ok(Info::default()), |section| Info::parse(&section.data))
    }

    /// Raises the registers per thread: what the driver allocates. The code stays as it is, so the count
    /// may only grow, up to the limit under which the kernel was compiled (EIATTR_MAXREG_COUNT; 255 says none).
    ///
    /// # Errors
    /// [`ElfError::Refused`]: fewer than it has, more than its limit, or the cubin does not say how many it has.
    pub fn raise_registers(&mut self, name: &str, registers: u32) -> Result<(), ElfError> {
        let kernel = self.kernel(name)?;
        let own = self.registers(&kernel)?.unwrap_or(0);
        let info = self.info_of(&kernel)?;
        let limit = info
            .get(Attribute::MAXREG_COUNT)
            .map(|record| &record.value);
        match (limit, u8::try_from(registers)) {
            (Some(&Value::Half(limit)), _) if u32::from(limit) < registers => {
                Err(refused(format!(
                    "{name} was compiled for at most {limit} registers, and {registers} were to be set"
                )))
            }
            (_, Ok(wanted)) if registers >= own => self.set_registers(name, wanted),
            _ => Err(refused(format!("{registers} registers: {name} uses {own}"))),
        }
    }

    /// Bytes of static shared memory per block as the section header states them: on sm_90 and
    /// later with the 1,024 reserved ones (docs/facts.md).
    pub fn shared_bytes(&self, kernel: &KernelSections) -> u64 {
        kernel.shared.map_or(0, |i| self.sections[i].size())
    }

    /// Of [`Elf::shared_bytes`], the kernel's own, and what the system keeps before them.
    pub fn own_shared_bytes(&self, kernel: &KernelSections) -> (u64, u64) {
        let (all, sm) = (self.shared_bytes(kernel), self.target().sm);
        let arch = architectures().find(|arch| arch.sm == sm);
        let system = arch.map_or(0, |arch| u64::from(arch.first_shared_address()));
        let own = all.saturating_sub(system);
        (own, all - own)
    }

    /// Sets the static shared memory, in the section header and in the program header. A kernel
    /// that has no such section gets one.
    ///
    /// # Errors
    /// [`ElfError::Refused`]: there is no such function, the file is relocatable, or no section is that large.
    pub fn set_shared_bytes(&mut self, name: &str, bytes: u64) -> Result<(), ElfError> {
        let kernel = self.kernel(name)?;
        if self.is_relocatable() {
            return Err(refused(
                "the linker decides the shared memory of a relocatable file",
            ));
        }
        let section = match kernel.shared {
            Some(section) => section,
            None => self.add_shared_section(&kernel)?,
        };
        self.resize_zero_fill(section, bytes)
    }

    /// As ptxas writes it for a kernel that uses none in a module where another one does.
    fn add_shared_section(&mut self, kernel: &KernelSections) -> Result<usize, ElfError> {
        let name = format!(".nv.shared.{}", kernel.name);
        let name_offset = self.add_section_name(&name)?;
        Ok(self.add_zero_fill(Section {
            name,
            name_offset,
            kind: SHT_NOBITS,
            flags: u64::from(SHF_WRITE | SHF_ALLOC | SHF_INFO_LINK),
            address: 0,
            link: 0,
            info: kernel.text as u32,
            align: 16,
            entry_size: 0,
            size: 0,
            data: Vec::new(),
            offset: 0,
        }))
    }

    pub(super) fn add_section_name(&mut self, name: &str) -> Result<u32, ElfError> {
        let table = self.sections.get_mut(self.header.names);
        let table = table.ok_or_else(|| damaged("there are no section names"))?;
        let offset = u32::try_from(table.data.len());
        let offset = offset.map_err(|_| refused("there are too many section names"))?;
        table.data.extend_from_slice(name.as_bytes());
        table.data.push(0);
        Ok(offset)
    }

    /// Registers per thread: EIATTR_REGCOUNT, if the cubin says so.
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: a record is cut short.
    pub fn registers(&self, kernel: &KernelSections) -> Result<Option<u32>, ElfError> {
        let info = self.info(".nv.info")?.unwrap_or_default();
        Ok(info.of_symbol(Attribute::REGCOUNT, kernel.symbol))
    }

    /// Sets the registers per thread, [`RESERVED_REGISTERS`] included: EIATTR_REGCOUNT, and sh_info of the text section where the
    /// architecture repeats it there.
    ///
    /// # Errors
    /// [`ElfError::Refused`]: there is no such function, or the cubin does not say how many it has.
    pub fn set_registers(&mut self, name: &str, registers: u8) -> Result<(), ElfError> {
        let kernel = self.kernel(name)?;
        let mut info = self.info(".nv.info")?.unwrap_or_default();
        if !info.set_of_symbol(Attribute::REGCOUNT, kernel.symbol, u32::from(registers)) {
            return Err(refused(format!("{name} has no EIATTR_REGCOUNT")));
        }
        self.set_info(".nv.info", &info)?;
        if machine_code(self.target().sm).repeats_registers {
            let text = &mut self.sections[kernel.text];
            text.info = text.info & 0x00ff_ffff | u32::from(registers) << 24;
        }
        Ok(())
    }

    /// All instructions of the function's section, with the helper functions behind it.
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: the code is cut short.
    pub fn instructions(&self, kernel: &KernelSections) -> Result<Vec<Instruction>, ElfError> {
        let text = &self.sections[kernel.text].data;
        if !text.len().is_multiple_of(INSTRUCTION) {
            return Err(damaged(format!("the code of {} is cut short", kernel.name)));
        }
        let sm = self.target().sm;
        let words = text.chunks_exact(INSTRUCTION).map(|raw| {
            let mut bytes = [0; INSTRUCTION];
            bytes.copy_from_slice(raw);
            Instruction::new(sm, u128::from_le_bytes(bytes))
        });
        Ok(words.collect())
    }

    /// Replaces the function's instructions one by one: as many as there are.
    ///
    /// # Errors
    /// [`ElfError::Refused`]: there is no such function, or another number of instructions.
    pub fn set_instructions(&mut self, name: &str, code: &[Instruction]) -> Result<(), ElfError> {
        let kernel = self.kernel(name)?;
        self.set_code(&kernel, code)
    }

    /// The same for a function that was looked up already.
    ///
    /// # Errors
    /// [`ElfError::Refused`]: another number of instructions.
    pub fn set_code(
        &mut self,
        kernel: &KernelSections,
        code: &[Instruction],
    ) -> Result<(), ElfError> {
        let name = &kernel.name;
        let text = &mut self.sections[kernel.text].data;
        if text.len() != code.len() * INSTRUCTION {
            return Err(refused(format!(
                "{name} has {} instructions, not {}; use the edit layer to insert or delete",
                text.len() / INSTRUCTION,
                code.len()
            )));
        }
        for (place, instruction) in text.chunks_exact_mut(INSTRUCTION).zip(code) {
            place.copy_from_slice(&instruction.bits().to_le_bytes());
        }
        Ok(())
    }
}
