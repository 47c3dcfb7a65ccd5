//! The filetests of the checker, run in the emulator: what it proves computes the same, and what it
//! refutes does something else.

mod common;

use std::path::Path;

use common::Run;
use common::filetests::{SAME, assumed, block, files, launch, name, says, source, versions};
use warpwright_check::{Options, Verdict, check_functions, check_modules};
use warpwright_ptx::Module;

/// Both kernels on a few inputs: `None` if they never differ, `Err` if the original itself is at fault. `aliases`: also with one buffer for
/// both pointers, where plain accesses of several threads meet.
fn difference(path: &Path, aliases: bool) -> Result<Option<String>, String> {
    let text = source(path);
    let block = block(path);
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
