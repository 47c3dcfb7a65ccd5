//! Errors are types: no function of a library gives back a text for one.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::path::Path;

use warpwright_house::sources;

/// Where a text may be an error: the command line shows it at once.
const EXEMPT: &str = "cli";

/// Texts that are no errors of a call: the file's end, what the line holds, and why.
const OTHERS: &[(&str, &str, &str)] = &[(
    "driver/src/opt.rs",
    "pub type Known = BTreeMap<Recipe, Result<Measured, String>>;",
    "what the database has of earlier runs",
)];

/// The second argument of every `Result<A, B>` in some code.
fn errors(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, name) in code.match_indices("Result<") {
        let (mut depth, mut commas, mut error) = (1, 0, String::new());
        let mut last = ' ';
        for c in code[at + name.len()..].chars() {
            match c {
                '<' | '(' | '[' => depth += 1,
                // An arrow closes nothing.
                '>' if last == '-' => {}
                '>' | ')' | ']' => depth -= 1,
                ',' if depth == 1 => commas += 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if commas > 0 && !(c == ',' && depth == 1) {
                error.push(c);
            }
            last = c;
        }
        found.push(error.split_whitespace().collect());
    }
    found
}

#[test]
fn no_library_gives_back_a_text_for_an_error() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut files = Vec::new();
    for room in std::fs::read_dir(&crates).unwrap() {
        let room = room.unwrap().path();
        if room.file_name().is_some_and(|name| name != EXEMPT) {
            sources(&room.join("src"), &mut files);
        }
    }
    files.sort();
    assert!(files.len() > 300, "{}", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let others = OTHERS.iter().filter(|(end, ..)| file.ends_with(end));
        let code = others.fold(code.to_owned(), |code, (_, line, _)| code.replace(line, ""));
        let texts = errors(&code).into_iter().filter(|error| error == "String");
        if texts.count() > 0 {
            found.push(file.display().to_string());
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn such_signatures_are_found() {
    let code = "fn a() -> Result<Vec<(u8, u8)>, String>; fn b() -> Result<\n    (),\n    String,\n>; \
                fn c(f: fn() -> Result<u8, E>) -> std::result::Result<BTreeMap<u8, String>, Error>; \
                fn d() -> Result<()>";
    assert_eq!(errors(code), ["String", "String", "E", "Error", ""]);
}
