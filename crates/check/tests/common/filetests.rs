//! The filetests of the checker: their parts, and how they are launched.

use std::path::{Path, PathBuf};

use warpwright_check::signature;
use warpwright_launch::Guard;
use warpwright_ptx::Module;

use super::{Run, parse, run_under};

/// What a file says of its own run in its header: not run at all, or the same in both versions, and
/// why.
pub fn says(path: &Path, word: &str) -> bool {
    source(path)
        .lines()
        .any(|line| line.starts_with(&format!("// {word}: ")))
}

pub const NOT_RUN: &str = "not run";
pub const SAME: &str = "same in the emulator";

pub fn source(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a readable file")
}

/// Both versions, and the names of the kernels.
pub fn versions(path: &Path) -> [(Module, &'static str); 2] {
    let text = source(path);
    let parse = |text: &str| parse(&name(path), text).expect("valid PTX");
    match text.split_once("\n// rewritten\n") {
        Some((first, second)) => [(parse(first), "k"), (parse(second), "k")],
        None => [(parse(&text), "original"), (parse(&text), "rewritten")],
    }
}

pub fn files(prefix: &str) -> Vec<PathBuf> {
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

pub fn name(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// One block of a kernel that takes 512 words to write, 512 words to read, and a number.
pub fn launch(
    module: &Module,
    kernel: &str,
    block: &str,
    n: u32,
    alias: bool,
    guard: &Guard,
) -> Run {
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
pub fn assumed(text: &str, module: &Module, kernel: &str) -> Guard {
    let mut words = text.lines().take_while(|line| line.starts_with("//"));
    let guard = words.find_map(|line| line.split("assume:").nth(1));
    let Some((guard, id)) = guard.zip(module.function(kernel)) else {
        return Guard::always();
    };
    Guard::parse(guard, &signature(module, id)).expect("a guard")
}

/// The block of its test: the last number of its command, 64 threads if there is none.
pub fn block(path: &Path) -> String {
    let text = source(path);
    let mut words = text
        .lines()
        .find_map(|line| line.strip_prefix("// test: check"))
        .into_iter()
        .flat_map(|rest| rest.split_whitespace());
    words
        .rfind(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .unwrap_or("64")
        .to_owned()
}
