//! A file of CUDA C in which a kernel is launched in another way.
//!
//! The kernel keeps its name, its parameters and its text, to the byte, and so does the rest of the file. Behind the
//! kernel stands what a source compiler generated, with a function `NAME_launch`, and every
//! `NAME<<<g, b, s, st>>>(…)` becomes `NAME_launch(g, b, s, st, …)`. A launch that is not found here, or that stands in
//! another file, launches the kernel as written: no call can mean something else than before.

use std::collections::BTreeSet;

use crate::launches::{Form, Found, Launch, find};
pub use crate::words::{Token, tokens, words};
use crate::{File, Header};

/// A file written anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Its text.
    pub text: String,
    /// Launches that were rewritten.
    pub launches: usize,
    /// Uses of the kernel that were left as they are.
    pub notes: Vec<Note>,
}

/// A use of the kernel that was left as it is: it gets the kernel as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its line in the input, from 1.
    pub line: usize,
    /// What it is.
    pub what: Use,
}

/// Why a use was left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A launch in front of the kernel's definition, where `NAME_launch` is not known yet.
    BeforeDefinition,
    /// A launch in the body of a macro.
    InMacro,
    /// Anything else: a pointer to the kernel, a launch of another form.
    Other,
}

/// What stands behind a kernel, and what its launches become.
#[derive(Clone, Copy, Debug)]
pub struct Insertion<'a> {
    /// Device code, and the host function that launches it where it can.
    pub text: &'a str,
    /// That function's name: it returns `cudaErrorNotSupported` where the kernel as written has to be launched.
    pub attempt: &'a str,
    /// The function that takes the place of a launch.
    pub launcher: &'a str,
    /// A header that it needs, included where the file's code begins: before any macro that would change its words.
    pub header: Option<&'a str>,
    /// The function that takes the place of `NAME<<<…>>>`: `launch(grid, block, shared, stream, …)`.
    pub launch: &'a str,
    /// A function for `cudaLaunchKernel`, put behind the others where there is such a launch; its name is that of
    /// `launch` with `_pointers`.
    pub by_pointers: &'a str,
}

impl File {
    /// The file with this behind a kernel, and its launches rewritten.
    pub fn replaced(&self, header: &Header, insertion: &Insertion<'_>) -> Replaced {
        let text = &*self.source.text;
        let kernel = &header.name.text;
        let Found {
            launches,
            notes,
            declaration,
        } = find(text, kernel, &header.span, header.template.is_none());
        let generated = self.guards(header);
        let generated = generated.around(insertion.text, kernel, insertion.attempt);
        let mut inserted = format!("\n\nextern \"C++\" {{\n\n{generated}{}", insertion.launcher);
        let by_pointers = launches.iter().any(|l| matches!(l.form, Form::Function(_)));
        if by_pointers {
            inserted += insertion.by_pointers;
        }
        inserted += "\n}  // extern \"C++\"\n";
        let end = header.span.end;
        let mut edits = vec![(end..end, inserted)];
        if let Some(name) = insertion.header {
            let (at, is_fresh) = beginning(text);
            let line = self.without_given(&format!("#include <{name}>\n"));
            let line = match is_fresh {
                true => format!("{line}\n"),
                false => format!("\n{line}"),
            };
            edits.push((at..at, line));
        }
        // Launches in front of the definition want a declaration, too.
        let is_early = |l: &Launch| l.start() < header.span.start;
        if let Some(declaration) = declaration.filter(|_| launches.iter().any(is_early)) {
            edits.push((
                declaration.end..declaration.end,
                declared(insertion.launch, &text[declaration.parameters], by_pointers),
            ));
        }
        // The name before `<<<` becomes that of the function.
        let launch = insertion.launch;
        let suffix = launch.strip_prefix(&**kernel).unwrap_or("_launch");
        let count = launches.len();
        for found in launches {
            match found.form {
                Form::Chevrons {
                    name,
                    open,
                    close,
                    missing,
                    arguments,
                } => {
                    // What stands between the two stays, and so do a template's arguments.
                    edits.push((name..name, suffix.to_owned()));
                    edits.push((open, "(".to_owned()));
                    let comma = if arguments { ", " } else { "" };
                    edits.push((close, ", 0".repeat(missing) + comma));
                }
                Form::Function(range) => edits.push((range, format!("{launch}_pointers("))),
                // `find` gives none of these.
                Form::Other(_) => {}
            }
        }
        Replaced {
            text: self.replace(edits),
            launches: count,
            notes,
        }
    }
}

impl File {
    /// Lines that macros of the command line are not to change: `-DN=…` is no word of a toolkit's header.
    fn without_given(&self, lines: &str) -> String {
        // nvcc defines two by itself.
        let is_users = |name: &str| !name.starts_with('_') && name != "CUDA_DOUBLE_MATH_FUNCTIONS";
        let given = self.macros.iter();
        let given = given.filter(|m| m.span == (0..0) && m.body.is_some() && is_users(&m.name));
        let names: BTreeSet<&str> = given.map(|m| &*m.name).collect();
        let each = |line: fn(&str) -> String| names.iter().map(|n| line(n)).collect::<String>();
        let before = each(|n| format!("#pragma push_macro(\"{n}\")\n#undef {n}\n"));
        let after = each(|n| format!("#pragma pop_macro(\"{n}\")\n"));
        before + lines + &after
    }
}

/// Declarations of the functions that take the place of launches.
fn declared(launch: &str, parameters: &str, by_pointers: bool) -> String {
    let comma = match parameters.trim() {
        "" | "void" => "",
        _ => ", ",
    };
    let parameters = if comma.is_empty() { "" } else { parameters };
    let mut text = format!(
        "\nextern \"C++\" {{\nstatic inline void {launch}(dim3 grid, dim3 block, size_t shared, cudaStream_t stream\
         {comma}{parameters});\n"
    );
    if by_pointers {
        text += &format!(
            "static inline cudaError_t {launch}_pointers(dim3 grid, dim3 block, void **arguments, size_t shared, \
             cudaStream_t stream);\n"
        );
    }
    text + "}\n"
}

/// Where a text begins behind comments, and whether that is the start of a line.
fn beginning(text: &str) -> (usize, bool) {
    const MARK: char = '\u{feff}';
    if let Some(rest) = text.strip_prefix(MARK) {
        let (at, is_fresh) = beginning(rest);
        return (at + MARK.len_utf8(), is_fresh);
    }
    let Some(first) = tokens(text).into_iter().next() else {
        return (0, true);
    };
    let blanks = |text: &'_ str| text.trim_end_matches([' ', '\t']).len();
    let mut at = blanks(&text[..first.at.start]);
    if first.directive {
        at = text[..at].strip_suffix('#').map_or(at, blanks);
    }
    (at, at == 0 || text[..at].ends_with('\n'))
}

/// A generated text in which no word is one of these: an underscore is added.
pub fn avoid(text: &str, taken: &BTreeSet<String>) -> String {
    crate::words::avoid(text, taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;

    fn replaced(text: &str, header: Option<&str>) -> Replaced {
        let file = File::parse(Source::new("k.cu", text)).expect("it is read");
        let insertion = Insertion {
            text: "// new\n",
            attempt: "k_try",
            launcher: "",
            header,
            launch: "k_launch",
            by_pointers: "// by pointers\n",
        };
        let kernel = file.kernels.iter().find(|header| header.name.text == "k");
        file.replaced(kernel.expect("a kernel"), &insertion)
    }

    const NEW: &str = "\n\nextern \"C++\" {\n\n// new\n\n}  // extern \"C++\"\n";

    #[test]
    fn launches_in_front_of_the_definition_get_a_declaration() {
        for around in [
            "@",
            "namespace a {\n@}\n",
            "extern \"C\" {\n@}\n",
            "namespace a::b { namespace {\n@} }\n",
        ] {
            let text = around.replace(
                '@',
                "__global__ void k(float *, int n = 4);\nvoid f(float *p) { k<<<1, 32>>>(p); }\n\
                 __global__ void k(float *p, int n) { p[n] = 1; }\n",
            );
            let found = replaced(&text, None);
            assert_eq!((found.launches, found.notes.len()), (1, 0), "{text}");
            let behind = "void k(float *, int n = 4);\nextern \"C++\" {\nstatic inline void k_launch(dim3 grid, \
                          dim3 block, size_t shared, cudaStream_t stream, float *, int n = 4);\n}\n\n\
                          void f(float *p) { k_launch(1, 32, 0, 0, p); }";
            assert!(found.text.contains(behind), "{}", found.text);
            assert!(
                found.text.contains(&format!("p[n] = 1; }}{NEW}")),
                "{}",
                found.text
            );
        }
    }

    #[test]
    fn launches_without_a_declaration_outside_stay() {
        for declared in [
            "",
            "void g() { __global__ void k(float *p); }\n",
            "#define D __global__ void k(float *p);\n",
        ] {
            let text = format!(
                "{declared}void f(float *p) {{ k<<<1, 32>>>(p); }}\n__global__ void k(float *p) {{ p[0] = 1; }}\n"
            );
            let found = replaced(&text, None);
            assert_eq!(found.launches, 0, "{text}");
            let line = text.lines().count() - 1;
            let what = Use::BeforeDefinition;
            assert_eq!(found.notes, [Note { line, what }], "{text}");
        }
    }

    #[test]
    fn launches_in_macros_that_look_at_their_arguments_stay() {
        let macros = "#define SAY(...) __VA_ARGS__; puts( \\\r\n #__VA_ARGS__)\n#define COUNT(a, b, n, ...) n\n\
                      #define MANY(...) \\\n    for (int i = COUNT(__VA_ARGS__, 2, 1, 0); i; i--) __VA_ARGS__\n\
                      #define TWO(a, b) a, b\n#define ONCE(...) __VA_ARGS__\n";
        for (around, launches) in [
            ("@", 1),
            ("SAY(@)", 0),
            ("MANY(@)", 0),
            ("TWO(@)", 0),
            ("SAY(if (p) { f(); @; })", 0),
            ("ONCE(@)", 1),
            ("if (p) @", 1),
            ("SAY(f()); (@)", 1),
            ("each(1, [=](int i) { @; })", 1),
        ] {
            let launch = around.replace('@', "k<<<1, 32>>>(p)");
            let text = format!(
                "{macros}__global__ void k(float *p) {{ p[0] = 1; }}\nvoid g(float *p) {{ {launch}; }}\n"
            );
            let found = replaced(&text, None);
            assert_eq!(found.launches, launches, "{text}");
            let line = text.lines().count();
            let what = Use::InMacro;
            let notes = vec![Note { line, what }; 1 - launches];
            assert_eq!(found.notes, notes, "{text}");
        }
    }

    #[test]
    fn a_backslash_joins_lines_of_a_comment() {
        let kernel = "__global__ void k(float *p) { p[0] = 1; }\n";
        let text = format!("{kernel}void g(float *p) {{ f(p); // no \\\n k<<<1, 32>>>(p);\n}}\n");
        let found = replaced(&text, None);
        assert_eq!(found.launches, 0);
        assert!(found.text.contains("k<<<1, 32>>>(p)"), "{}", found.text);
    }

    #[test]
    fn a_header_is_included_in_front_of_the_first_word() {
        let kernel = "__global__ void k(float *p) { p[0] = 1; }\n";
        for (before, expected) in [
            ("", "#include <h>\n\n@"),
            ("#define N 4\n", "#include <h>\n\n#define N 4\n@"),
            (
                "// a\n  # define N 4\n",
                "// a\n#include <h>\n\n  # define N 4\n@",
            ),
            (
                "/* a\n b */ #define N 4\n",
                "/* a\n b */\n#include <h>\n #define N 4\n@",
            ),
            (
                "\u{feff}#define N 4\n",
                "\u{feff}#include <h>\n\n#define N 4\n@",
            ),
        ] {
            let found = replaced(&format!("{before}{kernel}"), Some("h"));
            let expected = expected.replace('@', kernel.trim_end()) + NEW + "\n";
            assert_eq!(found.text, expected);
        }
    }
}
