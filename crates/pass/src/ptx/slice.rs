//! One kernel of a module, with all that it may need.
//!
//! The candidates of a kernel are rewritten and assembled many times over; what the other kernels of
//! a file would add is time alone (74 kernels of one file: 74 times the work). ptxas compiles each
//! kernel by itself, and the chosen module is assembled whole at the end and compared with what each
//! kernel's own build promised.

use warpwright_ptx::ir::{FunctionKind, Module, TopItem};
use warpwright_ptx::{Edits, Function};

use crate::ptx::facts::has_operation;

/// The module without the kernels that neither `kernel` nor anything else that is left mentions.
/// `None` if there is no such kernel, if debug information ties them together, or if the kernel calls
/// functions: what ptxas makes of an indirect call depends on the whole module.
pub fn slice(module: &Module, kernel: &str) -> Option<Module> {
    if module.items.iter().any(|item| is_debug_info(module, item)) {
        return None;
    }
    let own = &module.functions[module.function(kernel)?];
    if has_operation(module, own, "call") {
        return None;
    }
    let is_other = |f: &Function| f.kind == FunctionKind::Entry && f.name != own.name;
    let mut edits = Edits::new(module);
    for item in &module.items {
        match item {
            TopItem::Define(id) if is_other(&module.functions[*id]) => {
                edits.delete(module.functions[*id].span);
            }
            TopItem::Declare { func, span, .. } if is_other(&module.functions[*func]) => {
                edits.delete(*span);
            }
            _ => {}
        }
    }
    if edits.is_empty() {
        return None;
    }
    let text = edits.apply().ok()?;
    // A mention of a kernel that is gone (in an initializer, or a launch from the device) is an error.
    let (slice, diagnostics) = Module::parse(&module.name, &text);
    let is_whole = slice.function(kernel).is_some() && !diagnostics.iter().any(|d| d.is_error());
    is_whole.then_some(slice)
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
