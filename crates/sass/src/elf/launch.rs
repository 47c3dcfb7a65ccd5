//! What a kernel says about its launches: how large blocks may be, clusters, the stack frame.

use super::info::{Attribute, Record, Value};
use super::{Elf, ElfError, KernelSections};

impl Elf {
    /// The block that every launch of a kernel must have (EIATTR_REQNTID).
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: a record is cut short.
    pub fn required_block(&self, kernel: &KernelSections) -> Result<Option<[u32; 3]>, ElfError> {
        self.block_fact(kernel, Attribute::REQNTID)
    }

    /// The block that no launch of a kernel may exceed (EIATTR_MAX_THREADS).
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: a record is cut short.
    pub fn block_bound(&self, kernel: &KernelSections) -> Result<Option<[u32; 3]>, ElfError> {
        self.block_fact(kernel, Attribute::MAX_THREADS)
    }

    fn block_fact(
        &self,
        kernel: &KernelSections,
        attribute: Attribute,
    ) -> Result<Option<[u32; 3]>, ElfError> {
        let info = self.info(&info_name(&kernel.name))?.unwrap_or_default();
        let record = info.get(attribute);
        Ok(record.and_then(|record| <[u32; 3]>::try_from(record.words()).ok()))
    }

    /// Does a kernel say that its blocks run in clusters?
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: a record is cut short.
    pub fn is_clustered(&self, kernel: &KernelSections) -> Result<bool, ElfError> {
        const FACTS: [Attribute; 3] = [
            Attribute::EXPLICIT_CLUSTER,
            Attribute::CTA_PER_CLUSTER,
            Attribute::MAX_CLUSTER_RANK,
        ];
        let info = self.info(&info_name(&kernel.name))?.unwrap_or_default();
        Ok(FACTS.iter().any(|&fact| info.get(fact).is_some()))
    }

    /// Makes launches of a kernel with more threads per block fail.
    ///
    /// # Errors
    /// [`ElfError::Refused`]: the kernel has no section of records. [`ElfError::Damaged`]: a record is cut short.
    pub fn bound_blocks(&mut self, kernel: &str, threads: u32) -> Result<(), ElfError> {
        let name = info_name(kernel);
        let mut info = self.info(&name)?.unwrap_or_default();
        let words = [threads, 1, 1];
        let value = Value::Sized(words.iter().flat_map(|word| word.to_le_bytes()).collect());
        let attribute = Attribute::MAX_THREADS;
        info.records.retain(|record| record.attribute != attribute);
        info.records.push(Record { attribute, value });
        self.set_info(&name, &info)
    }

    /// States that a kernel has no stack frame any more.
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: symbols or records are cut short.
    pub fn drop_frame(&mut self, kernel: &KernelSections) -> Result<(), ElfError> {
        let symbols = self.symbols()?;
        let here = |index: u32| {
            let symbol = symbols.get(index as usize);
            symbol.is_some_and(|symbol| usize::from(symbol.section) == kernel.text)
        };
        let Some(mut info) = self.info(".nv.info")? else {
            return Ok(());
        };
        for record in &mut info.records {
            let is_size = matches!(
                record.attribute,
                Attribute::FRAME_SIZE | Attribute::MIN_STACK_SIZE | Attribute::MAX_STACK_SIZE
            );
            if is_size && record.words().first().is_some_and(|&symbol| here(symbol)) {
                record.set_word(1, 0);
            }
        }
        self.set_info(".nv.info", &info)
    }

    /// The name of a section with an intermediate copy of the program. From sm_100 on a cubin holds its
    /// program twice; a driver can make code for another GPU of the family from the copy, which an edit of
    /// the machine code does not reach.
    pub fn intermediate_copy(&self) -> Option<&str> {
        let is_copy = |name: &str| name.starts_with(".nv.capmerc") || name.starts_with(".nv.merc");
        let copy = self.sections.iter().find(|section| is_copy(&section.name));
        copy.map(|section| section.name.as_str())
    }
}

fn info_name(kernel: &str) -> String {
    format!(".nv.info.{kernel}")
}
