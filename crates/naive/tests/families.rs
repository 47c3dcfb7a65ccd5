//! Naive kernels whose loops are divided among threads, that are read across, four at a time, or as prefixes: what is
//! printed computes what was written, in the emulator; to the bit, but for sums that may be reordered.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_ladder::{CompileError, Rung};
use warpwright_naive::across::{self, Across};
use warpwright_naive::emit::Generated;
use warpwright_naive::fours::{self, Fours};
use warpwright_naive::prefix::{self, Prefix};
use warpwright_naive::team::{self, Apart, Lanes, Team};
use warpwright_naive::versions::{Problem, climb};
use warpwright_toolkit::Toolkit;
use warpwright_toolkit::testing::{require_toolkit, unfused_ptx};

fn problem(name: &str) -> Problem {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/naive");
    let text = std::fs::read_to_string(folder.join(name).with_extension("cu")).unwrap();
    of_text(&text)
}

fn of_text(text: &str) -> Problem {
    let file = File::parse(Source::new("kernel.cu", text)).unwrap();
    let header = file.kernels[0].clone();
    Problem::new(file, &header).unwrap()
}

fn agrees(toolkit: &Toolkit, problem: &Problem, generated: &Generated) {
    let name = &problem.kernel.name;
    let compile =
        |text: &str| unfused_ptx(toolkit, text).map_err(|e| CompileError::Rejected(e.to_string()));
    let mut left = generated.clone();
    match climb(problem, &mut left, &compile) {
        Rung::Agrees(checked) => {
            assert_eq!(
                left.entries.len(),
                generated.entries.len(),
                "{name}: not every kernel was tried: {checked:?}"
            );
        }
        other => panic!("{name}: {other:?}"),
    }
}

fn team(threads: u32, lanes: Lanes, blocks: u32) -> Team {
    Team {
        threads,
        lanes,
        unroll: 2,
        blocks,
        apart: false,
        early: true,
        resident: 0,
    }
}

/// With sums for each of four turns, and the second kernel behind the first one.
fn apart(of: Team) -> Team {
    Team {
        apart: true,
        early: false,
        resident: 2,
        ..of
    }
}

const BLOCK: Lanes = Lanes::Turns { points: 1 };

#[test]
fn rows_and_columns_are_added_up_by_teams() {
    let Some(toolkit) = require_toolkit("rows_and_columns_are_added_up_by_teams") else {
        return;
    };
    for (name, team) in [
        ("mv", team(128, Lanes::Turns { points: 4 }, 0)),
        ("tmv", team(256, Lanes::Points, 0)),
        ("softmax", team(64, BLOCK, 0)),
        ("layer_norm", team(128, BLOCK, 0)),
        ("rd_complex", team(128, BLOCK, 528)),
        ("rd_complex", apart(team(128, BLOCK, 528))),
        ("rd", apart(team(256, BLOCK, 528))),
        ("softmax", apart(team(64, BLOCK, 0))),
        ("layer_norm", apart(team(64, BLOCK, 0))),
        ("column_mean", team(128, Lanes::Points, 528)),
    ] {
        let problem = problem(name);
        let generated = team::generate(&problem.kernel, &team).unwrap();
        assert!(generated.reordered, "{name}");
        let divided = generated.entries.iter().any(|e| e.parts.is_some());
        assert_eq!(divided, team.blocks > 0, "{name}");
        agrees(&toolkit, &problem, &generated);
    }
    // A maximum has no order.
    let problem = problem("row_max");
    let generated = team::generate(&problem.kernel, &team(128, BLOCK, 0)).unwrap();
    assert!(!generated.reordered);
    agrees(&toolkit, &problem, &generated);
}

#[test]
fn squares_fours_and_prefixes_compute_the_same() {
    let Some(toolkit) = require_toolkit("squares_fours_and_prefixes_compute_the_same") else {
        return;
    };
    for (name, across) in [
        ("tp", Across { side: 32, rows: 8 }),
        ("add_transposed", Across { side: 64, rows: 8 }),
    ] {
        let problem = problem(name);
        let generated = across::generate(&problem.kernel, &across).unwrap();
        agrees(&toolkit, &problem, &generated);
    }
    for (name, rows) in [("vv", 4), ("grey", 1), ("max_pool", 2)] {
        let problem = problem(name);
        let fours = Fours { threads: 32, rows };
        agrees(
            &toolkit,
            &problem,
            &fours::generate(&problem.kernel, &fours).unwrap(),
        );
    }
    let problem = problem("prefix_sum");
    let prefix = Prefix {
        threads: 64,
        points: 3,
    };
    agrees(
        &toolkit,
        &problem,
        &prefix::generate(&problem.kernel, &prefix).unwrap(),
    );
}

#[test]
fn stores_across_rows_exchange_the_dimensions() {
    let text = "#pragma warpwright naive
__global__ void turned(const float *a, float *b, int m, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= m) return;
    b[x * m + y] = a[y * n + x] + 1.0f;
}
";
    let problem = of_text(text);
    let generated = across::generate(&problem.kernel, &Across { side: 32, rows: 8 }).unwrap();
    assert!(generated.notes[0].contains("points along y"));
    assert!(generated.entries[0].body.contains("a_square"));
    if let Some(toolkit) = require_toolkit("stores_across_rows_exchange_the_dimensions") {
        agrees(&toolkit, &problem, &generated);
    }
}

#[test]
fn what_has_an_order_is_refused_by_name() {
    let mv = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/naive/mv.cu"),
    )
    .unwrap();
    let strict = of_text(&mv.replace(" reassociate", ""));
    let order = team::generate(&strict.kernel, &team(128, BLOCK, 0));
    assert_eq!(
        order,
        Err(team::Unfit::Apart(Apart::Order("sum".to_owned())))
    );
    let solve = team::generate(&problem("strsm").kernel, &team(128, BLOCK, 0));
    assert_eq!(
        solve,
        Err(team::Unfit::Apart(Apart::Shared("b".to_owned())))
    );
    let nearest = team::generate(&problem("nearest4").kernel, &team(128, BLOCK, 0));
    assert!(matches!(
        nearest,
        Err(team::Unfit::Apart(Apart::Carried(_)))
    ));
    let plain = team::generate(&problem("vv").kernel, &team(128, BLOCK, 0));
    assert_eq!(plain, Err(team::Unfit::Apart(Apart::NoLoop)));
    let along = across::generate(&problem("vv").kernel, &Across { side: 32, rows: 8 });
    assert_eq!(along, Err(across::Unfit::Along));
    // ptxas refuses more than 48 KiB in one entry.
    let three = of_text(
        "__global__ void sums(const float *a, const float *b, const float *c, float *out, int n, int m)\n{\n    int x = \
         blockIdx.x * blockDim.x + threadIdx.x;\n    int y = blockIdx.y * blockDim.y + threadIdx.y;\n    if (x >= n || y >= \
         m) return;\n    out[y * n + x] = a[x * m + y] + b[x * m + y] + c[x * m + y];\n}\n",
    );
    let large = across::generate(&three.kernel, &Across { side: 64, rows: 8 });
    assert_eq!(large, Err(across::Unfit::Shared(3 * 64 * 65 * 4)));
    let fours = Fours {
        threads: 128,
        rows: 1,
    };
    assert_eq!(
        fours::generate(&problem("mm").kernel, &fours),
        Err(fours::Unfit::Loop)
    );
    let prefix = Prefix {
        threads: 64,
        points: 3,
    };
    assert_eq!(
        prefix::generate(&problem("mv").kernel, &prefix),
        Err(prefix::Unfit::NoPrefix)
    );
}

/// A loop whose turns store what other turns read, in every way that names them differently.
#[test]
fn turns_that_share_elements_are_refused() {
    for (body, wanted) in [
        // The next turn reads what this one stores.
        (
            "for (int i = 1; i < n; i++) y[x * n + i] = y[x * n + i - 1] + a[i];",
            true,
        ),
        // The second loop reads what another turn of the first one stored.
        (
            "for (int i = 0; i < n; i++) y[x * n + i] = a[i]; for (int i = 1; i < n; i++) y[x * n + i] += y[x * n + i - 1];",
            true,
        ),
        // The same element for all turns.
        ("for (int i = 0; i < n; i++) y[x * n] = a[i];", true),
        // Another first turn: turn 1 of one loop is with another thread than turn 1 of the other.
        (
            "for (int i = 0; i < n; i++) y[x * n + i] = a[i]; for (int i = 1; i < n; i++) y[x * n + i] *= a[i];",
            true,
        ),
        // Its own element, in both loops.
        (
            "for (int i = 0; i < n; i++) y[x * n + i] = a[i]; for (int i = 0; i < n; i++) y[x * n + i] *= a[i];",
            false,
        ),
    ] {
        let text = format!(
            "#pragma warpwright naive reassociate
__global__ void rows(const float *a, float *y, int m, int n) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= m) return;
    {body}
}}
"
        );
        let generated = team::generate(&of_text(&text).kernel, &team(64, BLOCK, 0));
        let shared = Err(team::Unfit::Apart(Apart::Shared("y".to_owned())));
        assert_eq!(generated == shared, wanted, "{body}: {generated:?}");
    }
}

/// Every second element alone: the last run of eight would end behind the array.
#[test]
fn runs_end_where_accesses_do() {
    let text = "#pragma warpwright naive
__global__ void halves(const float *a, float *b, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    b[x] = a[2 * x];
}
";
    let problem = of_text(text);
    let fours = Fours {
        threads: 32,
        rows: 1,
    };
    let generated = fours::generate(&problem.kernel, &fours).unwrap();
    assert!(!generated.entries[0].body.contains("a_four"));
    if let Some(toolkit) = require_toolkit("runs_end_where_accesses_do") {
        agrees(&toolkit, &problem, &generated);
    }
}
