//! One kernel of a module, with all that it may need.
//!
//! The candidates of a kernel are rewritten and assembled many times over; what the other kernels of
//! a file would add is time alone (74 kernels of one file: 74 times the work). ptxas compiles each
//! kernel by itself, and the chosen module is assembled whole at the end and compared with what each
//! kernel's own build promised.

use std::collections::BTreeMap;

use warpwright_ptx::ir::{FuncId, FunctionKind, Module, TopItem};
use warpwright_ptx::{Function, Span};

use crate::ptx::facts::has_operation;

/// A module's kernels apart. What is common to them is collected once, so that a module of thousands of kernels costs
/// thousands of slices, and not that many modules.
#[derive(Debug, Clone)]
pub struct Slices<'m> {
    module: &'m Module,
    /// The text without its kernels.
    rest: String,
    kernels: BTreeMap<&'m str, Parts>,
}

/// Where one kernel stands.
#[derive(Debug, Clone)]
struct Parts {
    id: FuncId,
    /// Its declarations and its definition, with the byte of the rest before which each stood.
    parts: Vec<(usize, Span)>,
}

impl<'m> Slices<'m> {
    /// `None` if debug information ties the kernels together.
    pub fn new(module: &'m Module) -> Option<Slices<'m>> {
        let source = &*module.source;
        let mut rest = String::new();
        let mut kernels: BTreeMap<&'m str, Parts> = BTreeMap::new();
        let mut last = 0;
        for item in &module.items {
            let (id, span) = match item {
                TopItem::Define(id) => (*id, module.functions[*id].span),
                TopItem::Declare { func, span, .. } => (*func, *span),
                item if is_debug_info(module, item) => return None,
                _ => continue,
            };
            let function = &module.functions[id];
            if function.kind != FunctionKind::Entry {
                continue;
            }
            keep(&mut rest, source.get(last..span.start as usize)?);
            last = span.end as usize;
            let parts = Vec::new();
            let known = kernels.entry(&*function.name);
            let known = known.or_insert(Parts { id, parts });
            known.parts.push((rest.len(), span));
        }
        keep(&mut rest, source.get(last..)?);
        Some(Slices {
            module,
            rest,
            kernels,
        })
    }

    /// The module without the kernels that neither `kernel` nor anything else that is left mentions.
    /// `None` if there is no such kernel or no other one, or if it calls functions: what ptxas makes of an indirect
    /// call depends on the whole module.
    pub fn get(&self, kernel: &str) -> Option<Module> {
        let Parts { id, parts } = self.kernels.get(kernel)?;
        let own = &self.module.functions[*id];
        if self.kernels.len() < 2 || has_operation(self.module, own, "call") {
            return None;
        }
        let mut text = String::with_capacity(self.rest.len());
        let mut last = 0;
        for &(at, span) in parts {
            text.push_str(&self.rest[last..at]);
            text.push_str(span.text(&self.module.source));
            text.push('\n');
            last = at;
        }
        text.push_str(&self.rest[last..]);
        // A mention of a kernel that is gone (in an initializer, or a launch from the device) is an error.
        let (slice, diagnostics) = Module::parse(&self.module.name, &text);
        let is_whole =
            slice.function(kernel).is_some() && !diagnostics.iter().any(|d| d.is_error());
        is_whole.then_some(slice)
    }

    /// The definition of a kernel in the whole module.
    pub fn function(&self, kernel: &str) -> Option<&'m Function> {
        let parts = self.kernels.get(kernel)?;
        Some(&self.module.functions[parts.id])
    }
}

/// Adds what stands between kernels; of the blanks, not more than end the last line.
fn keep(rest: &mut String, between: &str) {
    let is_begun = !rest.is_empty() && !rest.ends_with('\n');
    let text = match is_begun {
        true => between,
        false => between.trim_start(),
    };
    rest.push_str(text.trim_end_matches([' ', '\t']));
}

/// One kernel of a module: [`Slices::get`] without the others.
pub fn slice(module: &Module, kernel: &str) -> Option<Module> {
    Slices::new(module)?.get(kernel)
}

/// DWARF names the code of every function; the strings of `-lineinfo` name none.
fn is_debug_info(module: &Module, item: &TopItem) -> bool {
    match item {
        TopItem::Section(span) => {
            let mut words = span.text(&module.source).split_ascii_whitespace();
            words.nth(1) != Some(".debug_str")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";
    const TWO: &str = ".func f()\n{\n\tret;\n}\n\n.visible .entry a()\n{\n\tret;\n}\n\
                       .visible .entry b()\n{\n\tret;\n}\n";

    fn sliced(rest: &str, kernel: &str) -> Option<String> {
        let (module, diagnostics) = Module::parse("test.ptx", &format!("{HEAD}{rest}"));
        assert!(diagnostics.iter().all(|d| !d.is_error()), "{diagnostics:?}");
        slice(&module, kernel).map(|slice| slice.source.to_string())
    }

    #[test]
    fn other_kernels_go_and_functions_stay() {
        let text = sliced(TWO, "a").unwrap();
        assert!(
            text.contains("entry a") && text.contains("func f"),
            "{text}"
        );
        assert!(!text.contains("entry b"), "{text}");
    }

    #[test]
    fn a_kernel_that_something_mentions_keeps_the_module_whole() {
        let table = format!("{TWO}.global .u64 table[1] = {{b}};\n");
        assert_eq!(sliced(&table, "a"), None);
        assert!(sliced(&table, "b").is_some_and(|text| !text.contains("entry a")));
    }

    #[test]
    fn declarations_of_other_kernels_go_with_them() {
        let text = sliced(&format!(".visible .entry b();\n{TWO}"), "a").unwrap();
        assert!(!text.contains("entry b"), "{text}");
    }

    #[test]
    fn a_kernel_that_calls_keeps_the_module_whole() {
        let calling = TWO.replacen("{\n\tret;\n}\n.vis", "{\n\tcall f;\n\tret;\n}\n.vis", 1);
        assert!(calling.contains("call f"));
        assert_eq!(sliced(&calling, "a"), None);
        assert!(sliced(&calling, "b").is_some());
    }

    #[test]
    fn a_single_kernel_is_no_slice_and_a_missing_one_neither() {
        assert_eq!(sliced(".visible .entry a()\n{\n\tret;\n}\n", "a"), None);
        assert_eq!(sliced(TWO, "c"), None);
    }

    #[test]
    fn debug_information_keeps_the_module_whole() {
        let strings = ".section .debug_str\n{\n.b8 97,0\n}\n";
        assert!(sliced(&format!("{TWO}{strings}"), "a").is_some());
        let debug = ".section .debug_info\n{\n.b32 1\n}\n";
        assert_eq!(sliced(&format!("{TWO}{debug}"), "a"), None);
    }
}
