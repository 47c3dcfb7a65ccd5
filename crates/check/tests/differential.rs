//! The filetests of the checker, run in the emulator: what it proves computes the same, and what it
//! refutes does something else.

mod common;

use std::path::{Path, PathBuf};

use common::{Run, parse, run};
use warpwright_ptx::Module;

/// Wrong rewrites that this emulator cannot tell from right ones, and why.
const HIDDEN: &[(&str, &str)] = &[
    (
        "wrong-other-barrier.ptx",
        "all threads meet there just as well",
    ),
    (
        "wrong-shuffle-repeated.ptx",
        "the second shuffle gives the same here",
    ),
];

/// Not run: one never ends, the other needs the real matrix units.
const SKIPPED: [&str; 2] = [
    "right-in-an-infinite-loop.ptx",
    "right-spilled-around-wgmma.ptx",
];

fn files(prefix: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/check");
    let entries = std::fs::read_dir(folder).expect("the folder of the filetests");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a file").path())
        .filter(|path| name(path).starts_with(prefix) && !SKIPPED.contains(&&*name(path)))
        .collect();
    files.sort();
    files
}

fn name(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Both kernels on a few inputs; `None` if they never differ. `aliases`: also with one buffer for
/// both pointers, where plain accesses of several threads meet.
fn difference(path: &Path, aliases: bool) -> Option<String> {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let module = parse(&name(path), &text).expect("valid PTX");
    let test = text
        .lines()
        .find_map(|line| line.strip_prefix("// test: check"));
    let block = match test.map(str::trim) {
        Some(block) if !block.is_empty() => block.to_owned(),
        _ => "64".to_owned(),
    };
    let inputs = [(1, false), (5, false), (40, false), (2, true)];
    inputs
        .into_iter()
        .filter(|&(_, alias)| aliases || !alias)
        .find_map(|(n, alias)| {
            let of = |kernel| launch(&module, kernel, &block, n, alias);
            let (original, rewritten) = (of("original"), of("rewritten"));
            assert!(
                matches!(original, Run::Finished(_)),
                "{}: {original:?}",
                name(path)
            );
            match rewritten {
                Run::Faulted(fault) => Some(fault),
                same if same == original => None,
                _ => Some(format!("other outputs for n = {n}")),
            }
        })
}

/// One block of a kernel that takes 512 words to write, 512 words to read, and a number.
fn launch(module: &Module, kernel: &str, block: &str, n: u32, alias: bool) -> Run {
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
    run(module, &text)
}

#[test]
fn right_rewrites_compute_the_same() {
    let files = files("right-");
    assert!(files.len() >= 20);
    for path in files {
        assert_eq!(difference(&path, false), None, "{}", name(&path));
    }
}

#[test]
fn wrong_rewrites_compute_something_else() {
    let files = files("wrong-");
    assert!(files.len() >= 20);
    let hidden: Vec<String> = files
        .iter()
        .filter(|path| difference(path, true).is_none())
        .map(|path| name(path))
        .collect();
    let expected: Vec<&str> = HIDDEN.iter().map(|(name, _)| *name).collect();
    assert_eq!(hidden, expected);
}
