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

/// Public functions of rooms that can fail and do not say how under `# Errors`. Less is better.
const MOST_UNSAID: &[(&str, usize)] = &[
    ("emu", 49),
    ("gpu", 4),
    ("host", 2),
    ("inject", 8),
    ("launch", 2),
    ("ptx", 1),
    ("sass", 4),
    ("standin", 18),
    ("stencil", 15),
    ("supervise", 8),
    ("toolkit", 11),
    ("winners", 4),
];

/// The public functions of some code that give back a `Result`, by name, whose comment does not say when it is an error.
fn unsaid(code: &str) -> Vec<String> {
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let head = ["pub fn ", "pub const fn ", "pub unsafe fn "];
        let Some(name) = head.iter().find_map(|head| line.strip_prefix(head)) else {
            continue;
        };
        let is_comment = |line: &&&str| ["///", "#[", ")]"].iter().any(|s| line.starts_with(s));
        let mut comment = lines[..at].iter().rev().take_while(is_comment);
        let rest = lines[at..].join(" ");
        let head = rest.split(['{', ';']).next().unwrap_or_default();
        // What it takes may give back something, too: the last arrow behind the last bracket is its own.
        let (mut depth, mut own) = (0, "");
        for (place, c) in head.char_indices() {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            if c == ')' && depth == 0 {
                own = &head[place + 1..];
                break;
            }
        }
        let gives = own.trim_start().strip_prefix("->").unwrap_or_default();
        let path = gives.trim_start().split('<').next().unwrap_or_default();
        let can_fail = path.rsplit("::").next() == Some("Result") && !path.contains('(');
        if can_fail && !comment.any(|line| line.contains("# Errors")) {
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
            found.push(name[..end.unwrap_or(name.len())].to_owned());
        }
    }
    found
}

#[test]
fn functions_that_can_fail_say_how() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut wrong = Vec::new();
    for room in std::fs::read_dir(&crates).unwrap() {
        let room = room.unwrap();
        let name = room.file_name().into_string().unwrap();
        // Nobody but itself calls the command line.
        if name == EXEMPT {
            continue;
        }
        let mut files = Vec::new();
        sources(&room.path().join("src"), &mut files);
        let mut found = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let file = file.file_name().unwrap().display().to_string();
            found.extend(unsaid(code).iter().map(|name| format!("{file}: {name}")));
        }
        let most = MOST_UNSAID.iter().find(|(room, _)| *room == name);
        let most = most.map_or(0, |(_, most)| *most);
        if found.len() > most {
            let all = found.join(", ");
            wrong.push(format!(
                "{name}: {} and not at most {most}: {all}",
                found.len()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn such_functions_are_found() {
    let code = "/// Reads.\n#[must_use]\npub fn a(f: impl Fn() -> Result<u8, E>) -> Result<u8, E> {\n\
                /// # Errors\n/// Never.\npub fn b() -> io::Result<()> {\n\
                pub fn c(\n    f: fn() -> Result<u8, E>,\n) -> u8 {\n\
                pub(crate) fn d() -> Result<u8, E> {\nfn e() -> Result<u8, E> {\n\
                pub fn f() -> (u8, io::Result<()>) {\n";
    assert_eq!(unsaid(code), ["a"]);
}
