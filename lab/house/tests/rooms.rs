//! Arrows point downwards: a room uses only rooms below it in the table of docs/architecture.md,
//! and the product never links the lab.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rooms in the order of the table: the first fenced block of the page, one a line.
fn table() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let block = page.split("```").nth(1).unwrap();
    let names = block.lines().filter(|line| !line.starts_with(' '));
    names
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

struct Room {
    is_product: bool,
    /// Of the workspace, without those for tests alone.
    uses: Vec<String>,
}

fn rooms() -> BTreeMap<String, Room> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The command line has the project's own name, for `cargo install`.
    let short = |name: &str| match name {
        "warpwright" => Some("cli".to_owned()),
        _ => name.strip_prefix("warpwright-").map(str::to_owned),
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .filter_map(|package| {
            let manifest = package["manifest_path"].as_str().unwrap();
            let uses = package["dependencies"].as_array().unwrap().iter();
            let uses = uses
                .filter(|d| d["kind"].as_str() != Some("dev"))
                .filter_map(|d| short(d["name"].as_str().unwrap()))
                .collect();
            let room = Room {
                is_product: manifest.contains("/crates/"),
                uses,
            };
            Some((short(package["name"].as_str().unwrap())?, room))
        })
        .collect()
}

#[test]
fn every_room_of_the_product_is_in_the_table() {
    let table = table();
    let rooms = rooms();
    let product: Vec<&String> = rooms
        .iter()
        .filter(|(_, room)| room.is_product)
        .map(|(name, _)| name)
        .collect();
    for name in &product {
        let times = table.iter().filter(|room| room == name).count();
        assert_eq!(times, 1, "`{name}` in the table of docs/architecture.md");
    }
    for name in &table {
        assert!(
            product.contains(&name),
            "the table names `{name}`, which is no room"
        );
    }
}

#[test]
fn arrows_point_downwards() {
    let table = table();
    let rooms = rooms();
    let height = |name: &str| table.iter().position(|room| room == name);
    let mut wrong = Vec::new();
    for (name, room) in rooms.iter().filter(|(_, room)| room.is_product) {
        for used in &room.uses {
            match (height(name), height(used)) {
                (Some(upper), Some(lower)) if upper < lower => {}
                _ => wrong.push(format!("`{name}` uses `{used}`")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the command line is made of: the library, what it prints with, and where files, programs and devices are.
const OF_CLI: [&str; 15] = [
    "api",
    "autotune",
    "diag",
    "driver",
    "dropin",
    "files",
    "gpu",
    "host",
    "launch",
    "pass",
    "report",
    "supervise",
    "target",
    "toolkit",
    "winners",
];

/// Lines of it without tests. Less is better; what decides belongs into another room.
const MOST_OF_CLI: usize = 6_079;

/// The lines of a file without its modules of tests.
fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let (mut count, mut at) = (0, 0);
    while at < lines.len() {
        let is_tests = lines[at] == "#[cfg(test)]"
            && lines
                .get(at + 1)
                .is_some_and(|line| line.starts_with("mod "));
        match is_tests {
            true => at += lines[at..].iter().position(|line| *line == "}").unwrap(),
            false => count += 1,
        }
        at += 1;
    }
    count
}

#[test]
fn the_command_line_decides_nothing() {
    let uses = &rooms()["cli"].uses;
    let others: Vec<&String> = uses
        .iter()
        .filter(|used| !OF_CLI.contains(&used.as_str()))
        .collect();
    assert!(others.is_empty(), "`cli` uses {others:?}");
    let mut files = Vec::new();
    warpwright_house::sources(&root().join("crates/cli/src"), &mut files);
    let count = |file: &PathBuf| lines_without_tests(&std::fs::read_to_string(file).unwrap());
    let lines: usize = files.iter().map(count).sum();
    assert!(
        lines <= MOST_OF_CLI,
        "`cli` has {lines} lines, {MOST_OF_CLI} at most"
    );
}

#[test]
fn modules_of_tests_are_no_lines() {
    let text = "use a;\n\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
    assert_eq!(lines_without_tests(text), 3);
}

#[test]
fn the_oracle_and_the_proof_are_independent() {
    let rooms = rooms();
    let passes = ["pass", "regs", "driver", "stencil", "naive"];
    for (room, other) in [("check", "emu"), ("emu", "check")] {
        let uses = &rooms[room].uses;
        let forbidden = uses
            .iter()
            .find(|used| *used == other || passes.contains(&used.as_str()));
        assert_eq!(forbidden, None, "what `{room}` may not use");
    }
}

/// Files outside the rooms of input and output that open others, and what.
const OPENS: [(&str, &str); 10] = [
    ("api/src/bug.rs", "where a file is"),
    ("api/src/counts.rs", "the files of a launch description"),
    ("api/src/own_launch.rs", "headers beside a source"),
    ("api/src/ran.rs", "the code of a trace"),
    ("api/src/trace.rs", "the folder of a trace"),
    ("cudac/src/guards.rs", "headers of a source"),
    ("driver/src/database.rs", "the database"),
    ("winners/src/aside.rs", "files of the store"),
    ("winners/src/plain.rs", "files of the store"),
    ("winners/src/store.rs", "the store"),
];

/// The rooms that the page of the architecture gives input and output to.
fn rooms_of_input_and_output() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let (_, line) = page.split_once("**Input and output happen in ").unwrap();
    let (line, _) = line.split_once(" alone.**").unwrap();
    let names = line.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

/// Does a line of code open, list, print or start something?
fn is_input_or_output(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let words = [
        "std::fs",
        "std::net",
        "std::process",
        "std::io::std",
        "println!",
        "print!(",
        "rusqlite::",
    ];
    words.iter().any(|word| code.contains(word))
}

#[test]
fn input_and_output_happen_where_the_page_says() {
    let named = rooms_of_input_and_output();
    let table = table();
    assert!(
        named.len() > 5 && named.iter().all(|room| table.contains(room)),
        "{named:?}"
    );
    let (mut wrong, mut met) = (Vec::new(), Vec::new());
    for room in table.iter().filter(|room| !named.contains(room)) {
        let mut files = Vec::new();
        warpwright_house::sources(&root().join("crates").join(room).join("src"), &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let is_tests = file.file_name().is_some_and(|name| name == "tests.rs");
            if is_tests || !code.lines().any(is_input_or_output) {
                continue;
            }
            match OPENS.iter().position(|(end, _)| file.ends_with(end)) {
                Some(at) => met.push(at),
                None => wrong.push(file.display().to_string()),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "they open or print:\n{}",
        wrong.join("\n")
    );
    met.sort_unstable();
    assert!(
        met.into_iter().eq(0..OPENS.len()),
        "one of the list opens nothing"
    );
}

#[test]
fn such_lines_are_found() {
    assert!(is_input_or_output("    let bytes = std::fs::read(path)?;"));
    assert!(is_input_or_output("println!(\"{n}\");"));
    assert!(!is_input_or_output("let a = b; // std::fs::read"));
}

/// What writes control fields writes them after these; whoever proves machine code must not believe them.
const WRITERS_OF_CONTROL_FIELDS: [&str; 6] =
    ["hazards", "issue", "schedule", "spill", "demote", "ir"];

/// The modules of `sass` that a text names, in paths and in lists of imports.
fn modules_of_sass(text: &str) -> Vec<String> {
    let mut named = Vec::new();
    for (at, path) in text.match_indices("warpwright_sass::") {
        let rest = &text[at + path.len()..];
        let list = rest.strip_prefix('{').map(|rest| {
            let mut depth = 1;
            let end = rest.find(|c| {
                depth += match c {
                    '{' => 1,
                    '}' => -1,
                    _ => 0,
                };
                depth == 0
            });
            &rest[..end.unwrap_or(rest.len())]
        });
        let mut depth = 0;
        let parts = list.unwrap_or(rest).split(|c| {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0 && c == ','
        });
        let count = list.map_or(1, |_| usize::MAX);
        named.extend(parts.take(count).map(|part| {
            let name = part
                .trim()
                .split(|c: char| !c.is_alphanumeric() && c != '_');
            name.into_iter().next().unwrap_or_default().to_owned()
        }));
    }
    named
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn the_checker_of_machine_code_judges_alone() {
    let mut files = Vec::new();
    sources(&root().join("crates/check/src"), &mut files);
    let mut wrong = Vec::new();
    let mut named = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for module in modules_of_sass(&text) {
            if WRITERS_OF_CONTROL_FIELDS.contains(&module.as_str()) {
                wrong.push(format!("{}: `{module}`", file.display()));
            }
            named.push(module);
        }
        // Under another name nobody would see it.
        assert!(!text.contains("warpwright_sass as "), "{}", file.display());
        assert!(!text.contains("use warpwright_sass;"), "{}", file.display());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        named.iter().any(|module| module == "roles"),
        "nothing was found"
    );
}

#[test]
fn such_modules_are_found() {
    let found = |text: &str| modules_of_sass(text);
    assert_eq!(
        found("use warpwright_sass::hazards::{self, Hazard};"),
        ["hazards"]
    );
    let list = "use warpwright_sass::{Elf, function::{Calls, Code}, hazards};";
    assert_eq!(found(list), ["Elf", "function", "hazards"]);
    assert_eq!(found("let x = warpwright_sass::issue::walk();"), ["issue"]);
}
