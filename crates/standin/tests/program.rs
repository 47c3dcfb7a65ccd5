//! The stand-in in a program: `program.cu`, built once, in the runs that its parts need.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use warpwright_toolkit::Toolkit;
use warpwright_winners::lines::{Note, parse};

struct Workshop {
    folder: tempfile::TempDir,
}

/// The stand-in that cargo has built for this test.
fn library() -> PathBuf {
    let own = std::env::current_exe().expect("own path");
    let found = own.with_file_name("libwarpwright_standin.so");
    assert!(found.exists(), "{} is missing", found.display());
    found
}

fn workshop() -> Option<&'static Workshop> {
    static MADE: OnceLock<Option<Workshop>> = OnceLock::new();
    MADE.get_or_init(|| {
        let toolkit = Toolkit::find(&Default::default()).ok()?;
        let folder = tempfile::tempdir().expect("a folder");
        let nvcc = toolkit.nvcc().expect("nvcc");
        let program = nvcc
            .program("sm_90", Duration::from_secs(300))
            .expect("a folder");
        let shared = ["-cudart".into(), "shared".into()];
        let made = program.executable("program", include_str!("program.cu"), &shared);
        std::fs::copy(made.expect("it compiles"), folder.path().join("program")).expect("a copy");
        for name in ["libcudart.so.13", "libcudart.so.12"] {
            std::os::unix::fs::symlink(library(), folder.path().join(name)).expect("a link");
        }
        Some(Workshop { folder })
    })
    .as_ref()
}

/// What the program says, and the notes of the run; nothing without a toolkit.
fn run(args: &[&str], environment: &[(&str, &str)]) -> Option<(String, Vec<Note>)> {
    let folder = workshop()?.folder.path();
    let notes = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(folder.join("program"));
    command
        .args(args)
        .env("LD_LIBRARY_PATH", folder)
        .env("WARPWRIGHT_DIR", notes.path());
    command
        .env("WARPWRIGHT_GPU", "h200")
        .envs(environment.iter().copied());
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {said}", output.status);
    Some((said, read(notes.path())))
}

fn read(folder: &Path) -> Vec<Note> {
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "notes"));
    paths.sort();
    let read =
        |path: PathBuf| parse(&std::fs::read_to_string(path).expect("notes")).expect("our notes");
    paths.into_iter().flat_map(read).collect()
}

/// Kernels with grid, launches on streams, and in graphs.
fn counts(notes: &[Note]) -> Vec<(&str, [u32; 3], u64, u64)> {
    let launches = notes.iter().filter_map(|note| match note {
        Note::Launches(l) => Some((&*l.kernel, l.grid, l.count, l.in_graphs)),
        _ => None,
    });
    launches.collect()
}

fn says(said: &str, lines: &[&str]) {
    assert_eq!(said.lines().collect::<Vec<_>>(), lines);
}

fn memory_and_symbols() {
    let Some((said, notes)) = run(&["modules"], &[]) else {
        return;
    };
    says(
        &said,
        &[
            "symbol: cudaSuccess",
            "symbol too long: cudaErrorInvalidValue",
            "to: cudaSuccess",
            "a kernel prints 1000",
            "from: cudaSuccess",
            "1 1999, counted 1000, shared 7",
            "called 4 16",
            "3 parameters, the third at 16 has 4 bytes",
            "fourth: cudaErrorInvalidValue",
            "too far: cudaErrorInvalidValue",
            "last: cudaErrorInvalidValue",
            "last again: cudaSuccess",
            "free: cudaSuccess",
            "free twice: cudaErrorInvalidValue",
            "pitch 512: axxd exxh ixxl",
            "more than there is: cudaErrorMemoryAllocation",
            "pinned 7",
            "registered 9",
            "memory of type 2",
            "pool: cudaSuccess",
            "its threshold: cudaSuccess",
            "of the pool: cudaSuccess",
            "no pool: cudaSuccess",
            "pools 1 1: 5",
        ],
    );
    let arguments = notes.iter().find_map(|note| match note {
        Note::Arguments(arguments) if arguments.kernel.contains("weigh") => Some(arguments),
        _ => None,
    });
    let weigh = arguments.expect("the first launch");
    assert_eq!(weigh.bytes.len(), 20);
    assert_eq!(weigh.bytes[16..], 1000u32.to_le_bytes());
    let sized = notes.iter().find_map(|note| match note {
        Note::Arguments(arguments) if arguments.kernel.contains("sized") => Some(arguments),
        _ => None,
    });
    assert_eq!(sized.expect("its launch").pointers.len(), 1);
    let sizes: Vec<_> = weigh
        .pointers
        .iter()
        .map(|p| (p.at, p.size, p.offset))
        .collect();
    assert_eq!(sizes, [(0, 4000, 0), (8, 4000, 0)]);
    let input: Vec<u8> = (0..1000).flat_map(|i| (i as f32).to_le_bytes()).collect();
    assert_eq!(
        weigh.pointers[0].digest,
        Some(warpwright_winners::sha256(&input))
    );
    assert!(
        !notes
            .iter()
            .any(|note| matches!(note, Note::Uncomputed(..) | Note::Fault(..)))
    );
}

fn launches_and_graphs() {
    let Some((said, notes)) = run(&["launches"], &[]) else {
        return;
    };
    says(
        &said,
        &[
            "too many threads: cudaErrorInvalidConfiguration",
            "no blocks: cudaErrorInvalidConfiguration",
            "too much shared memory: cudaErrorInvalidValue",
            "attribute: cudaSuccess",
            "with the attribute: cudaSuccess",
            "reversed 255",
            "2 blocks",
            "264 blocks of 1024",
            "132 SMs, 9.0, 232448, 233472",
            "begin: cudaSuccess",
            "end: cudaSuccess",
            "captured 0",
            "replayed 22, called 2",
            "changed: cudaSuccess",
            "built 1122",
            "time goes on: 1",
            "refused: cudaErrorNotSupported",
        ],
    );
    assert!(notes.contains(&Note::Unanswered("cudaGetDriverEntryPointByVersion".into())));
    assert_eq!(
        counts(&notes),
        [("_Z7dynamicPi", [1; 3], 1, 0), ("_Z3addPii", [1; 3], 0, 6)]
    );
}

fn another_gpu() {
    let Some((said, _)) = run(&["launches"], &[("WARPWRIGHT_GPU", "nonsense")]) else {
        return;
    };
    assert!(said.contains("attribute: cudaErrorNoDevice"), "{said}");
}

/// What a GPU would not notice is no error of the program, and nothing is computed behind it.
fn an_access_within_the_page() {
    let Some((said, notes)) = run(&["faults"], &[]) else {
        return;
    };
    says(
        &said,
        &[
            "in the same page: cudaSuccess",
            "after what was not computed: cudaSuccess",
        ],
    );
    let faults = notes.iter().filter(|note| matches!(note, Note::Fault(1, kernel, what) if kernel.contains("just_beyond") && what.contains("out-of-bounds")));
    assert_eq!(faults.count(), 1);
    assert!(
        notes
            .iter()
            .any(|note| matches!(note, Note::Uncomputed(2, why, _) if why.contains("earlier")))
    );
}

fn a_fault_is_an_error_that_stays() {
    let Some((said, _)) = run(&["fault"], &[]) else {
        return;
    };
    says(
        &said,
        &[
            // The kernel has run when the call returns.
            "launch: cudaErrorIllegalAddress",
            "far beyond: cudaErrorIllegalAddress",
            "it stays: cudaErrorIllegalAddress",
            "launch: cudaErrorIllegalAddress",
        ],
    );
}

fn exact(notes: &[Note]) -> Option<u64> {
    notes.iter().find_map(|note| match note {
        Note::Exact(until) => Some(*until),
        _ => None,
    })
}

/// Kernels run until the budget is spent; launches go on, and those up to the first look at a result are exact.
fn the_budget() {
    let Some((_, small)) = run(&["budget", "100"], &[("WARPWRIGHT_BUDGET", "0.1")]) else {
        return;
    };
    // Grids of two and three blocks are of one class.
    assert_eq!((counts(&small).len(), exact(&small)), (3, None));
    assert!(
        !small
            .iter()
            .any(|note| matches!(note, Note::Uncomputed(..)))
    );
    let (_, large) =
        run(&["budget", "10000000"], &[("WARPWRIGHT_BUDGET", "0.1")]).expect("as before");
    assert_eq!((counts(&large).len(), exact(&large)), (3, Some(3)));
    let first = large.iter().find_map(|note| match note {
        Note::Uncomputed(number, why, kernel) => Some((*number, &**why, &**kernel)),
        _ => None,
    });
    assert_eq!(first, Some((2, "the budget is spent", "_Z4spinPii")));
}

/// What was computed before on the same memory is not computed again, and what others have written since is seen.
fn repeated_launches_cost_nothing() {
    let Some((said, notes)) = run(&["repeats"], &[("WARPWRIGHT_BUDGET", "0.4")]) else {
        return;
    };
    says(
        &said,
        &[
            "the same: right",
            "by turns: right",
            "in place: right",
            "written by the host: right",
        ],
    );
    let is_gap = |note: &Note| matches!(note, Note::Uncomputed(..));
    assert!(!notes.iter().any(is_gap));
    // Less than they cost when all of them run.
    let (_, short) = run(&["repeats"], &[("WARPWRIGHT_BUDGET", "0.02")]).expect("as before");
    assert!(short.iter().any(is_gap));
}

/// By the rules of the programming guide, worked out by hand.
fn textures_are_sampled() {
    let Some((said, notes)) = run(&["textures"], &[]) else {
        return;
    };
    let made = "texture: cudaSuccess";
    says(
        &said,
        &[
            made,
            "nearest: 12 12 10 23",
            made,
            "border: 12 12 -1 -1",
            made,
            // The last lies at a weight of 128.256 parts of 256.
            "linear: 6.5 11.25 0 11.5",
            made,
            "linear border: 6.5 11.25 -0.75",
            made,
            "wrap: 11 11 13 0",
            made,
            "mirror: 11 12 10 23",
            made,
            "linear wrap: 11 11 13 11.5",
            made,
            "block: 6.5 11.5 16.5",
            made,
            "layers: 1 13 13",
            made,
            "bytes: 1 0 0.2 0.4 0.00392157 0.00784314 0.0117647 0.0156863",
            made,
            "linear memory: 0 5 -6 7 0 0",
            "surface: cudaSuccess",
            "clamped: 20 21 22 23 23 23",
            "written: 110 111 112 113, 10",
            "destroy: cudaSuccess",
        ],
    );
    let is_wrong = |note: &Note| matches!(note, Note::Uncomputed(..) | Note::Fault(..));
    assert!(!notes.iter().any(is_wrong));
    // How the hardware filters to the last bit nobody says.
    assert!(notes.iter().any(|note| matches!(note, Note::Rounded(..))));
}

/// A product of matrices counts as what it takes.
fn matrix_products_have_their_price() {
    let Some((_, notes)) = run(&["matrices"], &[("WARPWRIGHT_BUDGET", "0.02")]) else {
        return;
    };
    let first = notes.iter().find_map(|note| match note {
        Note::Uncomputed(number, why, _) => Some((*number, &**why)),
        _ => None,
    });
    assert_eq!(first, Some((2, "the budget is spent")));
}

/// Blocks of a cooperative launch meet; those of another one cannot, and that is said.
fn blocks_wait_for_each_other() {
    let Some((said, notes)) = run(&["cooperate"], &[("WARPWRIGHT_BUDGET", "30")]) else {
        return;
    };
    // Three times 0 + … + 131 and once and twice more per block; then of seven blocks.
    let of = |n: i32| 3 * n * (n - 1) / 2 + 3 * n;
    let (first, second) = (of(132), of(132) + of(7));
    let lines =
        format!("together: cudaSuccess\nsum {first}\ntogether: cudaSuccess\nsum {second}\n");
    assert_eq!(said, lines);
    let gap = notes.iter().find_map(|note| match note {
        Note::Uncomputed(number, why, _) => Some((*number, why.contains("envreg"))),
        _ => None,
    });
    assert_eq!(gap, Some((3, true)));
}

/// Of whatever kind, allocations together have as many bytes as the option says.
fn memory_has_a_bound() {
    let Some((said, _)) = run(&["memory"], &[("WARPWRIGHT_MEMORY", "1048576")]) else {
        return;
    };
    says(
        &said,
        &[
            "1048576",
            "most: cudaSuccess",
            "one more than the rest: cudaErrorMemoryAllocation",
            "managed: cudaErrorMemoryAllocation",
            "pinned: cudaErrorMemoryAllocation",
            "the rest: cudaSuccess",
            "again: cudaSuccess",
        ],
    );
}

/// What a GPU only approximates may make a program decide otherwise once it has read it.
fn other_rounding_is_marked() {
    let Some((_, notes)) = run(&["rounds"], &[]) else {
        return;
    };
    let rounded = notes.iter().filter_map(|note| match note {
        Note::Rounded(number, kernel) => Some((*number, &**kernel)),
        _ => None,
    });
    assert_eq!(rounded.collect::<Vec<_>>(), [(2, "_Z6softenPf")]);
    assert_eq!(exact(&notes), None);
    let (_, plain) = run(&["launches"], &[]).expect("as before");
    assert!(!plain.iter().any(|note| matches!(note, Note::Rounded(..))));
}

fn loops_that_wait_end() {
    let Some((said, notes)) = run(&["waits"], &[]) else {
        return;
    };
    assert_eq!(said, "");
    assert!(notes.iter().any(|note| matches!(note, Note::Ended(_))));
    let first = notes.iter().find_map(|note| match note {
        Note::Uncomputed(number, why, _) => Some((*number, why.contains("tex"))),
        _ => None,
    });
    assert_eq!((first, exact(&notes)), (Some((1, true)), Some(2)));
}

fn main() {
    let tests: [(&str, fn()); 13] = [
        ("blocks_wait_for_each_other", blocks_wait_for_each_other),
        (
            "matrix_products_have_their_price",
            matrix_products_have_their_price,
        ),
        ("memory_has_a_bound", memory_has_a_bound),
        ("other_rounding_is_marked", other_rounding_is_marked),
        ("memory_and_symbols", memory_and_symbols),
        ("launches_and_graphs", launches_and_graphs),
        ("another_gpu", another_gpu),
        ("an_access_within_the_page", an_access_within_the_page),
        (
            "a_fault_is_an_error_that_stays",
            a_fault_is_an_error_that_stays,
        ),
        ("textures_are_sampled", textures_are_sampled),
        ("the_budget", the_budget),
        (
            "repeated_launches_cost_nothing",
            repeated_launches_cost_nothing,
        ),
        ("loops_that_wait_end", loops_that_wait_end),
    ];
    let trials = tests.into_iter().map(|(name, test)| {
        Trial::test(name, move || {
            let run = std::panic::catch_unwind(test);
            run.map_err(|_| Failed::without_message())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
