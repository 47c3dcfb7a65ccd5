//! A file's device code: host functions keep nothing but their declarations.

use crate::File;
use crate::macros::Macros;

/// The file's text with `;` in the place of the bodies of host functions; lines stay where they are. Kept are members,
/// `constexpr` functions, and functions whose names `is_kept` wants.
pub fn without_host_code(file: &File, is_kept: impl Fn(&str) -> bool) -> String {
    let source = &file.source.text;
    let mut text = source.to_string();
    let root = file.parts[0].tree.root_node();
    for function in file.functions.iter().rev() {
        let (part, span) = &function.part;
        if *part != 0 || function.is_member || is_kept(&function.name.text) {
            continue;
        }
        let node = root.descendant_for_byte_range(span.start, span.end);
        let Some(body) = node.and_then(|node| node.child_by_field_name("body")) else {
            continue;
        };
        let body = body.byte_range();
        let Some(qualifiers) = source.get(span.start..function.name.span.start) else {
            continue;
        };
        if may_be_on_the_device(qualifiers, &file.macros, DEEPEST) {
            continue;
        }
        let lines = source[body.clone()].matches('\n').count();
        text.replace_range(body, &format!(";{}", "\n".repeat(lines)));
    }
    text
}

/// Macros in macros.
const DEEPEST: u32 = 8;

/// Do the words in front of a function's name say so, or what macros among them stand for? Capitals that stand for
/// nothing here may be a macro of a header.
fn may_be_on_the_device(words: &str, macros: &Macros, depth: u32) -> bool {
    let mut words = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.any(|word| {
        let mut named = macros.named(word).peekable();
        match word {
            "__device__" | "device" | "__global__" | "constexpr" | "consteval" => true,
            _ if named.peek().is_none() => {
                word.len() > 1 && !word.contains(|c: char| c.is_ascii_lowercase())
            }
            _ => named.any(|m| {
                let body = m.body.as_deref().unwrap_or_default();
                depth == 0 || may_be_on_the_device(body, macros, depth - 1)
            }),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;

    #[test]
    fn bodies_of_host_functions_go() {
        let text = "#define BOTH __host__ __device__\n#define HD inline BOTH\n#define API static\n\
            int host(int x)\n{\n  return x;\n}\n\
            __device__ float on(float x) { return x; }\nHD float both(float x) { return x; }\n\
            API int other(API int x) { return 1; }\nconstexpr int early() { return 4; }\n\
            struct S { int of() { return 2; } };\n\
            template <class T> void any(T x) { host(x); }\nvoid k_launch(int n) { }\n\
            __global__ void k(float *x) { x[0] = on(x[1]); }\nint main() { return oops(); }\n";
        let file = File::parse(Source::new("t.cu", text)).expect("it is read");
        let expected = text
            .replace("\n{\n  return x;\n}\n", "\n;\n\n\n")
            .replace("x) { return 1; }", "x) ;")
            .replace("{ host(x); }", ";")
            .replace("{ return oops(); }", ";");
        assert_eq!(
            without_host_code(&file, |name| name.ends_with("_launch")),
            expected
        );
    }
}
