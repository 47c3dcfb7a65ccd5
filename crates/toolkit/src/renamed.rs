//! Kernels under other names: ptxas makes other code of kernels whose name holds certain words.
//!
//! The text that ptxas gets has the words behind the name of each kernel; they are taken off again in the cubin's tables
//! of strings, where a shorter name keeps its place.

use object::read::elf::{ElfFile64, SectionHeader};
use object::{Endianness, elf};

use crate::cubin;
use crate::ptxas::Build;

/// A module whose kernels have `suffix` behind their names, and the kernels. `None` if it has none, or one that is used by
/// its name.
pub(crate) fn with_suffix<'a>(ptx: &'a str, suffix: &str) -> Option<(String, Vec<&'a str>)> {
    let mut kernels = cubin::entries(ptx);
    kernels.sort_unstable();
    kernels.dedup();
    let is_name = |c: u8| c.is_ascii_alphanumeric() || b"_$%.".contains(&c);
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        let code = line.find("//").map_or(line, |at| &line[..at]);
        let mut at = 0;
        while at < code.len() {
            let rest = &code.as_bytes()[at..];
            let length = rest.iter().take_while(|&&c| is_name(c)).count();
            let word = &code[at..at + length];
            if kernels.binary_search(&word).is_ok() {
                if !code[..at].trim_end().ends_with(".entry") {
                    return None;
                }
                text.push_str(word);
                text.push_str(suffix);
                at += length;
            } else {
                let next = code[at..]
                    .chars()
                    .next()
                    .map_or(1, char::len_utf8)
                    .max(length);
                text.push_str(&code[at..at + next]);
                at += next;
            }
        }
        text.push_str(&line[code.len()..]);
    }
    (!kernels.is_empty()).then_some((text, kernels))
}

/// Gives the kernels of a build their own names back.
pub(crate) fn without_suffix(build: &mut Build, kernels: &[&str], suffix: &str) {
    let tables: Vec<(usize, usize)> = ElfFile64::<Endianness>::parse(&*build.cubin)
        .ok()
        .map(|file| {
            let endian = file.endian();
            let sections = file.elf_section_table().iter();
            let tables = sections.filter(|s| s.sh_type(endian) == elf::SHT_STRTAB);
            let range = |(offset, bytes): (u64, u64)| (offset as usize, (offset + bytes) as usize);
            tables
                .filter_map(|s| Some(range(s.file_range(endian)?)))
                .collect()
        })
        .unwrap_or_default();
    for kernel in kernels {
        let named = [kernel, suffix, "\0"].concat();
        for &(begin, end) in &tables {
            let table = &mut build.cubin[begin..end];
            let mut at = 0;
            while let Some(found) = find(&table[at..], named.as_bytes()) {
                let behind = at + found + kernel.len();
                table[behind..behind + suffix.len()].fill(0);
                at = behind;
            }
        }
    }
    for function in &mut build.resources.functions {
        if let Some(own) = function.name.strip_suffix(suffix) {
            function.name = own.to_owned();
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|found| found == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_alone_are_renamed() {
        let ptx = "// .globl k\n.visible .entry k(\n .param .u64 k_param_0\n) { ret; } // k\n.func kk() { ret; }\n";
        let (text, kernels) = with_suffix(ptx, "_x").expect("a kernel");
        assert_eq!(kernels, ["k"]);
        assert_eq!(text, ptx.replace(".entry k(", ".entry k_x("));
    }

    #[test]
    fn a_kernel_that_is_used_by_its_name_stays() {
        let ptx = ".entry k() { ret; }\n.global .u64 at = k;\n";
        assert_eq!(with_suffix(ptx, "_x"), None);
        assert_eq!(with_suffix(".func f() { ret; }", "_x"), None);
    }
}
