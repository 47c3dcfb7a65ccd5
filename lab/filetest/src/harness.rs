//! Running the tests of files, and blessing them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Conclusion, Failed, Trial};

use crate::case::{Case, Expectation, Test, normalise};

/// What a command does: from a file and the words after the command's name to the text that the
/// file's expectations are compared with. `Err` fails the test, whatever the file expects.
pub type Run = fn(&Case, &[String]) -> Result<String, String>;

/// A command that a `// test:` line can name.
#[derive(Clone, Copy)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// One line for the documentation.
    pub about: &'static str,
    /// What it does.
    pub run: Run,
}

/// All commands, by name.
#[derive(Clone, Default)]
pub struct Registry {
    /// By the ending of the files that they are for, empty for all others, and by name.
    commands: BTreeMap<(&'static str, &'static str), Command>,
}

impl Registry {
    /// No commands.
    pub fn new() -> Self {
        Registry::default()
    }

    /// Adds commands. A name that is there already is replaced.
    pub fn add(&mut self, commands: &[Command]) {
        self.add_for("", commands);
    }

    /// Adds the commands of files with an ending; they have no others.
    pub fn add_for(&mut self, ending: &'static str, commands: &[Command]) {
        let commands = commands.iter().map(|c| ((ending, c.name), *c));
        self.commands.extend(commands);
    }

    /// All commands, by name.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.commands.values()
    }

    fn run(&self, case: &Case, test: &Test) -> Result<String, String> {
        let ending = case.path.extension().and_then(|e| e.to_str()).unwrap_or("");
        let own = self.commands.keys().find(|key| key.0 == ending);
        let ending = own.map_or("", |key| key.0);
        let mut of_kind = self.commands.iter().filter(|(key, _)| key.0 == ending);
        let Some((_, command)) = of_kind.clone().find(|(key, _)| key.1 == test.name) else {
            let known: Vec<&str> = of_kind.by_ref().map(|(key, _)| key.1).collect();
            return Err(format!(
                "unknown test `{}`; known: {}",
                test.name,
                known.join(", ")
            ));
        };
        (command.run)(case, &test.args).map(|text| normalise(&text))
    }
}

/// Runs the tests of one file. With `bless`, rewrites its expectations instead of failing on them
/// (errors and conditions still fail).
pub fn check_file(registry: &Registry, path: &Path, bless: bool) -> Result<(), String> {
    let source = std::fs::read_to_string(path).map_err(|e| format!("cannot be read: {e}"))?;
    let case = Case::parse(path, &source)?;
    let mut outputs = Vec::new();
    for test in &case.tests {
        let title = test.title();
        let text = registry
            .run(&case, test)
            .map_err(|e| format!("test `{title}`: {e}"))?;
        outputs.push((title, text));
    }
    conditions(&case, &outputs)?;
    if bless {
        let blessed = case.with_blocks(&expected_blocks(&case, outputs));
        if blessed != source {
            std::fs::write(path, blessed).map_err(|e| format!("cannot be written: {e}"))?;
        }
        return Ok(());
    }
    compare(&case, &outputs)
}

/// A file with conditions says with them all that it expects; others expect the whole output.
fn expected_blocks(case: &Case, outputs: Vec<(String, String)>) -> Vec<(String, String)> {
    if case.conditions.is_empty() {
        return outputs;
    }
    let kept = |title: &String| case.blocks.iter().any(|(t, _)| t == title);
    outputs
        .into_iter()
        .filter(|(title, _)| kept(title))
        .collect()
}

fn conditions(case: &Case, outputs: &[(String, String)]) -> Result<(), String> {
    let found = |text: &str| outputs.iter().any(|(_, out)| out.contains(text));
    let all = || {
        outputs
            .iter()
            .map(|(_, out)| out.as_str())
            .collect::<String>()
    };
    for condition in &case.conditions {
        match condition {
            Expectation::Contains(text) if !found(text) => {
                return Err(format!("`{text}` is not in the output:\n{}", all()));
            }
            Expectation::Lacks(text) if found(text) => {
                return Err(format!("`{text}` is in the output:\n{}", all()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn compare(case: &Case, outputs: &[(String, String)]) -> Result<(), String> {
    for (title, want) in &case.blocks {
        let Some((_, text)) = outputs.iter().find(|(t, _)| t == title) else {
            return Err(format!(
                "`// expect: {title}` belongs to no `// test:` line"
            ));
        };
        let want = normalise(want);
        if *text != want {
            return Err(format!(
                "test `{title}` says something else:\n{}",
                difference(&want, text)
            ));
        }
    }
    for (title, text) in expected_blocks(case, outputs.to_vec()) {
        let has_block = case.blocks.iter().any(|(t, _)| *t == title);
        if !has_block && !text.trim().is_empty() {
            let hint = "no `// expect:` block (WARPWRIGHT_BLESS=1 writes it)";
            return Err(format!("test `{title}`: {hint}; it says:\n{text}"));
        }
    }
    Ok(())
}

/// The lines that differ: common beginning and end left out.
fn difference(want: &str, got: &str) -> String {
    let (want, got): (Vec<&str>, Vec<&str>) = (want.lines().collect(), got.lines().collect());
    let same = want.iter().zip(&got).take_while(|(a, b)| a == b).count();
    let rest = want[same..].iter().rev().zip(got[same..].iter().rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    let mut out = format!("(from line {} of the expectation)\n", same + 1);
    for line in &want[same..want.len() - tail] {
        out.push_str(&format!("- {line}\n"));
    }
    for line in &got[same..got.len() - tail] {
        out.push_str(&format!("+ {line}\n"));
    }
    out
}

/// Makes one test of every file under `root` and runs those that the command line asks for.
/// Exits the process with the result, as a test binary without a harness does.
pub fn run_all(registry: Registry, root: &Path) -> Conclusion {
    let bless = std::env::var_os("WARPWRIGHT_BLESS").is_some_and(|v| v == "1");
    let registry: &'static Registry = Box::leak(Box::new(registry));
    let mut paths = Vec::new();
    collect(root, &mut paths);
    paths.sort();
    let trials = paths.into_iter().map(|path| {
        let shown = path.strip_prefix(root).unwrap_or(&path);
        let name = shown.display().to_string();
        Trial::test(name, move || {
            check_file(registry, &path, bless).map_err(Failed::from)
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect())
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|e| e.path()) {
        let extension = path.extension().and_then(|e| e.to_str());
        match path.is_dir() {
            true => collect(&path, paths),
            false if matches!(extension, Some("ptx" | "cu" | "sass")) => paths.push(path),
            false => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> Registry {
        let mut registry = Registry::new();
        registry.add(&[Command {
            name: "count",
            about: "counts the lines of code",
            run: |case, _| {
                let lines = case
                    .source
                    .lines()
                    .filter(|l| !l.starts_with("//") && !l.is_empty());
                Ok(format!("{} lines", lines.count()))
            },
        }]);
        registry
    }

    fn check(source: &str, bless: bool) -> (Result<(), String>, String) {
        let folder = std::env::temp_dir().join(format!("filetest-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let name = source.len().to_string() + if bless { "b" } else { "" };
        let path = folder.join(name + ".ptx");
        std::fs::write(&path, source).unwrap();
        let result = check_file(&registry(), &path, bless);
        let after = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        (result, after)
    }

    #[test]
    fn expectations_hold_or_fail() {
        let good = "// test: count\ncode\n\n// expect: count\n// 1 lines\n";
        assert_eq!(check(good, false).0, Ok(()));
        let wrong = good.replace("1 lines", "20 lines");
        let message = check(&wrong, false).0.unwrap_err();
        assert!(message.contains("- 20 lines\n+ 1 lines"), "{message}");
        let missing = "// test: count\ncode code\n";
        assert!(
            check(missing, false)
                .0
                .unwrap_err()
                .contains("no `// expect:` block")
        );
        let unknown = "// test: frob\ncode code code\n";
        assert!(
            check(unknown, false)
                .0
                .unwrap_err()
                .contains("unknown test `frob`")
        );
    }

    #[test]
    fn conditions_stand_for_the_whole_output() {
        assert_eq!(
            check("// test: count\n// contains: 1 l\na\n", false).0,
            Ok(())
        );
        assert!(
            check("// test: count\n// contains: 2 l\na\n\n", false)
                .0
                .is_err()
        );
        assert!(
            check("// test: count\n// lacks: 1 lin\na\n", false)
                .0
                .is_err()
        );
    }

    #[test]
    fn blessing_writes_the_output() {
        let (result, after) = check("// test: count\ncode\ncode\n", true);
        assert_eq!(result, Ok(()));
        assert_eq!(
            after,
            "// test: count\ncode\ncode\n\n// expect: count\n// 2 lines\n"
        );
        assert_eq!(check(&after, false).0, Ok(()));
    }
}
