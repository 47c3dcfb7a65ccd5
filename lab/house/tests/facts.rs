//! A fact is a value: no product code looks for the words in which another part says one.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::path::Path;

use warpwright_house::sources;

/// Words that say a fact where it is shown: what is guessed, what nobody stated, which form of a kernel it is.
const MARKS: [&str; 3] = ["guess", "--dynamic-smem", "_wide"];

/// Calls that look for a text in another.
const CALLS: [&str; 9] = [
    ".contains(",
    ".starts_with(",
    ".ends_with(",
    ".find(",
    ".rfind(",
    ".strip_prefix(",
    ".strip_suffix(",
    ".trim_end_matches(",
    ".split_once(",
];

/// Where a text has to be read: the file's end, what is looked for, and why.
const OTHERS: &[(&str, &str, &str)] = &[
    (
        "launch/src/file.rs",
        "GUESS",
        "the comments of a description on the disk are its format",
    ),
    (
        "report/src/screen.rs",
        "UNSTATED",
        "the notes of a report are texts, and say alone what nobody stated",
    ),
];

/// The constants of a text that hold a mark.
fn constants(code: &str) -> Vec<String> {
    let named = |part: &str| {
        let (name, rest) = part.split_once(':')?;
        let (_, value) = rest.split(';').next()?.split_once("= \"")?;
        is_mark(&format!("\"{value}")).then(|| name.trim().to_owned())
    };
    code.split("const ").skip(1).filter_map(named).collect()
}

/// Is there a mark in a literal of this?
fn is_mark(code: &str) -> bool {
    let literals = code.split('"').skip(1).step_by(2);
    literals
        .into_iter()
        .any(|text| MARKS.iter().any(|mark| text.contains(mark)))
}

/// What a call is given, up to the bracket that closes it.
fn given(rest: &str) -> &str {
    let mut depth = 1;
    let end = rest.find(|c| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    });
    &rest[..end.unwrap_or(rest.len())]
}

/// What is looked for in texts that is a mark, by itself or by the name of a constant.
fn looked_for<'c>(code: &'c str, constants: &[String]) -> Vec<&'c str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let calls = CALLS.iter().flat_map(|call| code.match_indices(call));
    let all = calls.map(|(at, call)| given(&code[at + call.len()..]));
    all.filter(|given| {
        let mut words = given.split(|c| !is_word(c));
        is_mark(given) || words.any(|word| constants.iter().any(|name| name == word))
    })
    .collect()
}

/// Code without its comments.
fn bare(code: &str) -> String {
    let lines = code.lines().map(|line| match line.trim_start() {
        comment if comment.starts_with("//") => "",
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn no_fact_is_read_back_from_text() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut files = Vec::new();
    for room in std::fs::read_dir(&crates).unwrap() {
        sources(&room.unwrap().path().join("src"), &mut files);
    }
    files.sort();
    assert!(files.len() > 400, "{}", files.len());
    let read = |file: &std::path::PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        bare(text.split("#[cfg(test)]").next().unwrap())
    };
    let codes: Vec<String> = files.iter().map(read).collect();
    let named: Vec<String> = codes.iter().flat_map(|code| constants(code)).collect();
    assert!(named.contains(&"GUESS".to_owned()), "{named:?}");
    let mut found = Vec::new();
    for (file, code) in files.iter().zip(&codes) {
        for given in looked_for(code, &named) {
            let is_other =
                |(end, what, _): &(&str, &str, &str)| file.ends_with(end) && given.contains(what);
            if !OTHERS.iter().any(is_other) {
                found.push(format!("{}: {given}", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn such_readers_are_found() {
    let named = constants("pub const MARK: &str = \"  # guess\";\nconst N: usize = 3;");
    assert_eq!(named, ["MARK"]);
    for code in [
        "if line.contains(\"# guess\") {",
        "let wide = entry.suffix.ends_with(\"_wide\");",
        "text.trim_end_matches(draft::MARK)",
        "notes.iter().any(|n| n.contains(\"--dynamic-smem\"))",
    ] {
        assert_eq!(looked_for(code, &named).len(), 1, "{code}");
    }
    for code in [
        "let text = format!(\"{line}  # guess\");",
        "if entry.is_wide && names.contains(&name) {",
        "let mark = mark(source);",
    ] {
        assert!(looked_for(code, &named).is_empty(), "{code}");
    }
    assert!(looked_for(&bare("// .contains(\"# guess\")\n"), &named).is_empty());
}
