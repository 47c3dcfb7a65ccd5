//! The filetests of the checker, run in the emulator: what it proves computes the same, and what it
//! refutes does something else.

mod common;

use std::path::{Path, PathBuf};

use common::{Run, parse, run_under};
use warpwright_check::{Options, Verdict, check_functions, check_modules, signature};
use warpwright_launch::Guard;
use warpwright_ptx::Module;

/// What a file says of its own run in its header: not run at all, or the same in both versions, and
/// why.
fn says(path: &Path, word: &str) -> bool {
    read(path)
        .lines()
        .any(|line| line.starts_with(&format!("// {word}: ")))
}

const NOT_RUN: &str = "not run";
const SAME: &str = "same in the emulator";

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a readable file")
}

/// Both versions, and the names of the kernels.
fn versions(path: &Path) -> [(Module, &'static str); 2] {
    let text = read(path);
    let parse = |text: &str| parse(&name(path), text).expect("valid PTX");
    match text.split_once("\n// rewritten\n") {
        Some((first, second)) => [(parse(first), "k"), (parse(second), "k")],
        None => [(parse(&text), "original"), (parse(&text), "rewritten")],
    }
}

fn files(prefix: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/check");
    let entries = std::fs::read_dir(folder).expect("the folder of the filetests");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a file").path())
        .filter(|path| name(path).starts_with(prefix) && !says(path, NOT_RUN))
        // Launches of two shapes are run by the fuzzer's `shapes` and the filetests of `reshape`.
        .filter(|path| !name(path).contains("-shaped-"))
        .collect();
    files.sort();
    files
}

fn name(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Both kernels on a few inputs: `None` if they never differ, `Err` if the original itself is at fault. `aliases`: also with one buffer for
/// both pointers, where plain accesses of several threads meet.
fn difference(path: &Path, aliases: bool) -> Result<Option<String>, String> {
    let text = read(path);
    let mut words = text
        .lines()
        .find_map(|line| line.strip_prefix("// test: check"))
        .into_iter()
        .flat_map(|rest| rest.split_whitespace());
    let block = words
        .rfind(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .unwrap_or("64")
        .to_owned();
    let [(first, original), (second, rewritten)] = versions(path);
    let guard = assumed(&text, &first, original);
    let inputs = [(1, false), (5, false), (40, false), (2, true)];
    for (n, alias) in inputs {
        if alias && !aliases {
            continue;
        }
        let of = |module, kernel| launch(module, kernel, &block, n, alias, &guard);
        let before = of(&first, original);
        if let Run::Faulted(fault) = before {
            return Err(fault);
        }
        match of(&second, rewritten) {
            Run::Faulted(fault) => return Ok(Some(fault)),
            same if same == before => {}
            Run::Finished(_) => return Ok(Some(format!("other outputs for n = {n}"))),
        }
    }
    Ok(None)
}

/// One block of a kernel that takes 512 words to write, 512 words to read, and a number.
fn launch(module: &Module, kernel: &str, block: &str, n: u32, alias: bool, guard: &Guard) -> Run {
    let words = |seed: u32| {
        format!(
            "type = \"s32\"\nshape = [512]\noutput = true\n\
             init = {{ kind = \"uniform\", low = -100, high = 300, seed = {seed} }}"
        )
    };
    let output = words(1);
    let input = if alias {
        "alias = \"out\"".to_owned()
    } else {
        words(2)
    };
    let text = format!(
        "kernel = \"{kernel}\"\n[sizes.small]\n[launch]\ngrid = [1]\nblock = [{block}]\n\
         [[args]]\nname = \"out\"\n{output}\n[[args]]\nname = \"in\"\n{input}\n\
         [[args]]\nname = \"n\"\ntype = \"u32\"\nvalue = {n}\n"
    );
    run_under(module, &text, guard)
}

/// The guard that a file's header assumes.
fn assumed(text: &str, module: &Module, kernel: &str) -> Guard {
    let mut words = text.lines().take_while(|line| line.starts_with("//"));
    let guard = words.find_map(|line| line.split("assume:").nth(1));
    let Some((guard, id)) = guard.zip(module.function(kernel)) else {
        return Guard::always();
    };
    Guard::parse(guard, &signature(module, id)).expect("a guard")
}

#[test]
fn right_rewrites_compute_the_same() {
    let files = files("right-");
    assert!(files.len() >= 20);
    for path in files {
        assert_eq!(difference(&path, false), Ok(None), "{}", name(&path));
    }
}

#[test]
fn wrong_rewrites_compute_something_else() {
    let files = files("wrong-");
    assert!(files.len() >= 20);
    let unexpected: Vec<_> = files
        .iter()
        .map(|path| (path, difference(path, true)))
        .filter(|(path, found)| match found {
            Ok(found) => found.is_none() != says(path, SAME),
            Err(_) => true,
        })
        .map(|(path, found)| (name(path), found))
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

/// Kinds of wrong rewrites that were proved once, and the filetest of each. Those of cubins are in
/// `bits.rs`, `found_from_outside`.
const FOUND: [(&str, &str); 12] = [
    (
        "slots at constant and at thread-dependent offsets",
        "wrong-local-constant-and-thread-dependent",
    ),
    (
        "`.noreturn` on a function that returns",
        "wrong-noreturn-added",
    ),
    (
        "a guarded load that is not aligned loses its guard",
        "wrong-safe-load-misaligned",
    ),
    ("constant expressions: shifts", "wrong-constant-shift"),
    (
        "constant expressions: remainders",
        "wrong-constant-remainder",
    ),
    (
        "`ld.global.nc` over a call that may exit",
        "wrong-nc-load-over-exiting-call",
    ),
    (
        "a barrier into divergent arms",
        "wrong-barrier-into-divergent-arms",
    ),
    ("an immediate predicate", "wrong-constant-predicate"),
    (
        "`ld.global.nc` over `griddepcontrol.wait`",
        "wrong-nc-load-over-griddepcontrol",
    ),
    ("code behind `brkpt`", "wrong-behind-brkpt"),
    (
        "more shared memory than ptxas takes",
        "wrong-private-shared-too-large",
    ),
    ("the carry flag over a call", "wrong-carry-over-a-call"),
];

#[test]
fn what_was_proved_once_is_no_longer() {
    for (kind, file) in FOUND {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../filetests/check")
            .join(format!("{file}.ptx"));
        let [(first, original), (second, rewritten)] = versions(&path);
        let options = Options::default();
        let verdicts: Vec<Verdict> = match original == rewritten {
            true => check_modules(&first, &second, &options)
                .into_iter()
                .map(|(_, verdict)| verdict)
                .collect(),
            false => {
                let of = |module: &Module, name: &str| {
                    let mut functions = module.functions.iter();
                    let found = functions.find(|(_, function)| &*function.name == name);
                    found.expect("it has both versions").0
                };
                let (a, b) = (of(&first, original), of(&second, rewritten));
                vec![check_functions((&first, a), (&second, b), &options)]
            }
        };
        let is_proved = verdicts.iter().all(Verdict::is_proved);
        assert!(!is_proved, "{kind}: {file}");
    }
}
