//! What documents and comments may say: links lead somewhere, and what is cited is public or in
//! the repository.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder whose name ends so.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            // Cargo's folder of builds has this file; the room `target` has not.
            if !path.join("CACHEDIR.TAG").exists() {
                files(&path, endings, found);
            }
        } else if endings
            .iter()
            .any(|ending| path.extension().is_some_and(|e| e == *ending))
        {
            found.push(path);
        }
    }
    found.sort();
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for folder in ["docs", "lab", "crates", "bench", ".github"] {
        files(&root().join(folder), &["md"], &mut pages);
    }
    pages
}

#[test]
fn links_lead_somewhere() {
    let mut dead = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            let path = link.split('#').next().unwrap();
            let is_local = !link.contains("://") && !path.is_empty() && !link.contains(' ');
            if is_local && !page.parent().unwrap().join(path).exists() {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

#[test]
fn only_what_a_reader_can_have_is_cited() {
    let mut sources = pages();
    for folder in ["crates", "lab", "examples", "bench", "filetests"] {
        let endings = ["rs", "toml", "sh", "py", "cu", "ptx", "sass", "txt"];
        files(&root().join(folder), &endings, &mut sources);
    }
    // Put together here, so that this file is not among its own findings.
    let forbidden = [
        ["FACTS,", " section"].concat(),
        ["FACTS", " (section"].concat(),
        ["../sh", "ared/"].concat(),
    ];
    let mut found = Vec::new();
    for path in sources {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if forbidden.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Words of the README and of docs/*.md together.
const MOST_WORDS: usize = 25_000;

#[test]
fn the_documentation_is_short() {
    let mut pages = vec![root().join("README.md")];
    files(&root().join("docs"), &["md"], &mut pages);
    let words = |page: &PathBuf| {
        let text = std::fs::read_to_string(page).unwrap();
        text.split_whitespace().count()
    };
    let all: usize = pages.iter().map(words).sum();
    assert!(
        all <= MOST_WORDS,
        "{all} words: what has another home goes there"
    );
}

/// mdbook makes it without a warning, and its links lead somewhere. SKIPPED where there is none.
#[test]
fn the_book_holds_together() {
    if Command::new("mdbook").arg("--version").output().is_err() {
        println!("SKIPPED the book: no mdbook (cargo install mdbook)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = root().join("scripts/book.py");
    let output = Command::new("python3")
        .arg(script)
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(folder.path().join("start.html").exists(), "{said}");
}

/// book.toml makes a book of docs/: every page is a chapter, once.
#[test]
fn the_book_has_every_page() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let links = summary.split("](").skip(1);
    let mut chapters: Vec<&str> = links.map(|link| link.split(')').next().unwrap()).collect();
    chapters.sort_unstable();
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && name != "SUMMARY.md" {
            pages.push(name);
        }
    }
    pages.sort_unstable();
    assert_eq!(chapters, pages);
    assert!(root().join("book.toml").exists());
}
