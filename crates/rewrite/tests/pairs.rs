//! Right rewrites are equal for every input at odd and tiny sizes, wrong ones are refuted for the reason that is theirs.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::path::Path;
use std::sync::OnceLock;

use warpwright_emu::Emulator;
use warpwright_launch::{LaunchFile, no_files};
use warpwright_ptx::Module;
use warpwright_rewrite::{AtLaunch, Options, Paired, Side, Standing, Step, Why, compare, outputs};
use warpwright_toolkit::NvccJob;
use warpwright_toolkit::testing::require_toolkit;

/// The kernels, compiled once.
fn module() -> Option<&'static Module> {
    static MODULE: OnceLock<Option<Module>> = OnceLock::new();
    let module = MODULE.get_or_init(|| {
        let toolkit = require_toolkit("pairs")?;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels.cu");
        let ptx = toolkit
            .nvcc()
            .unwrap()
            .to_ptx(&NvccJob::new(&path, "sm_90"))
            .unwrap()
            .ptx;
        let (module, diagnostics) = Module::parse("kernels", &ptx);
        assert!(!diagnostics.iter().any(|d| d.is_error()));
        Some(module)
    });
    module.as_ref()
}

/// A launch: kernel, grid, block, and the arguments as `name type shape [init|output]` or `name type = value`.
#[derive(Clone, Copy)]
struct At {
    kernel: &'static str,
    grid: &'static str,
    block: &'static str,
    args: &'static str,
}

const fn at(
    kernel: &'static str,
    grid: &'static str,
    block: &'static str,
    args: &'static str,
) -> At {
    At {
        kernel,
        grid,
        block,
        args,
    }
}

fn quoted(list: &str) -> String {
    let all: Vec<String> = list
        .split_whitespace()
        .map(|e| format!("\"{e}\""))
        .collect();
    all.join(", ")
}

fn described(at: At) -> LaunchFile {
    let mut text = format!(
        "kernel = \"{}\"\n[sizes.small]\nn = 40\nrows = 3\n[launch]\ngrid = [{}]\nblock = [{}]\n",
        at.kernel,
        quoted(at.grid),
        quoted(at.block)
    );
    for arg in at.args.split(';').map(str::trim) {
        let words: Vec<&str> = arg.split_whitespace().collect();
        text += &format!(
            "[[args]]\nname = \"{}\"\ntype = \"{}\"\n",
            words[0], words[1]
        );
        match words[2] {
            "=" => text += &format!("value = \"{}\"\n", words[3]),
            shape => text += &format!("shape = [{}]\n", quoted(&shape.replace(',', " "))),
        }
        for word in &words[3..] {
            text += match *word {
                "out" => "output = true\n",
                "poison" => "init = \"poison\"\n",
                "zeros" => "init = \"zeros\"\n",
                "uniform" => "init = { kind = \"uniform\", low = -1.0, high = 1.0 }\n",
                "bytes" => "init = { kind = \"bits\" }\n",
                _ => "",
            };
        }
    }
    LaunchFile::parse(&text, at.kernel).unwrap()
}

fn side(module: &Module, at: At, sizes: &[(&str, i64)]) -> Side {
    let set: Vec<(String, i64)> = sizes.iter().map(|&(n, v)| (n.to_owned(), v)).collect();
    let launch = described(at).resolve("small", &set).unwrap();
    let contents = launch
        .buffers()
        .map(|b| b.materialize(&no_files).unwrap())
        .collect();
    let program = Emulator::new(module, &launch.kernel).unwrap();
    Side {
        name: at.kernel.to_owned(),
        steps: vec![Step {
            program,
            launch,
            contents,
        }],
    }
}

fn found(a: At, b: At, sizes: &[(&str, i64)]) -> Option<AtLaunch> {
    let module = module()?;
    let (a, b) = (side(module, a, sizes), side(module, b, sizes));
    let paired = Paired::of(&a, &b, &[]).unwrap();
    Some(compare(&a, &b, &paired, &Options::default()))
}

fn said(found: &AtLaunch) -> String {
    let why: Vec<String> = found.why.iter().map(ToString::to_string).collect();
    format!("{:?}: {}", found.standing, why.join("; "))
}

/// The pair stands so at all of these lengths.
#[track_caller]
fn stands(a: At, b: At, lengths: &[i64], standing: Standing) {
    for &n in lengths {
        let Some(found) = found(a, b, &[("n", n)]) else {
            return;
        };
        assert_eq!(
            found.standing,
            standing,
            "{} against {} at n = {n}: {}",
            b.kernel,
            a.kernel,
            said(&found)
        );
        are_within_bounds(a, b, n, &found);
    }
}

/// Where rounding is bounded, the emulator's results are no further apart than both bounds together.
#[track_caller]
fn are_within_bounds(a: At, b: At, n: i64, found: &AtLaunch) {
    let Some(module) = module().filter(|_| found.bounds().next().is_some()) else {
        return;
    };
    let sides = [a, b].map(|at| side(module, at, &[("n", n)]));
    let [first, second] = sides.each_ref().map(|side| outputs(side).unwrap());
    for bounded in found.bounds() {
        let of = |all: &[(String, Vec<u8>)]| -> Vec<f64> {
            let (_, bytes) = all
                .iter()
                .find(|(name, _)| *name == bounded.output)
                .unwrap();
            let mut buffers = sides[0].steps[0].launch.buffers();
            let ty = buffers.find(|b| b.name == bounded.output).unwrap().ty;
            let elements = bytes.chunks_exact(ty.size());
            elements.map(|e| ty.to_f64(ty.read(e))).collect()
        };
        let (x, y) = (of(&first), of(&second));
        let apart = x.iter().zip(&y).map(|(x, y)| (x - y).abs());
        let most = bounded.sides[0].error + bounded.sides[1].error;
        let apart = apart.fold(0.0, f64::max);
        assert!(apart <= most, "{} is {apart:e} off: {bounded}", b.kernel);
    }
}

/// The second is refuted at some length for a reason of this name.
#[track_caller]
fn refuted(a: At, b: At, lengths: &[i64], code: &str) {
    let mut all = Vec::new();
    for &n in lengths {
        let Some(found) = found(a, b, &[("n", n)]) else {
            return;
        };
        let is_it =
            found.standing == Standing::Refuted && found.why.iter().any(|why| why.code() == code);
        if is_it {
            return;
        }
        all.push(said(&found));
    }
    panic!("{} is not refuted: {}", b.kernel, all.join("\n"));
}

const ROWS: &str = "x f32 rows,n uniform; out f32 rows out; n s32 = n";
const TABLE: &str = "x f32 rows,n uniform; out f32 rows,n out; n s32 = n";
const FLAT: &str = "x f32 n uniform; out f32 n out; n s32 = n";
const SQUARES: &str = "a f32 n,n uniform; b f32 n,n uniform; c f32 n,n out; n s32 = n";
const SQUARE: &str = "x f32 n,n uniform; out f32 n,n out; n s32 = n";
const INTS: &str = "x s32 rows,n bytes; out s32 rows out; n s32 = n";

const SUM: At = at("sum_serial", "rows", "32", ROWS);

fn sums_in_another_order_are_equal_up_to_rounding() {
    for b in [
        at("sum_tree", "rows", "128", ROWS),
        at("sum_shuffle", "rows", "32", ROWS),
    ] {
        stands(SUM, b, &[33, 40, 129], Standing::UpToRounding);
    }
    stands(
        SUM,
        at("sum_fours", "rows", "32", ROWS),
        &[4, 40, 128],
        Standing::UpToRounding,
    );
}

fn the_same_order_is_the_same_bits() {
    stands(SUM, SUM, &[1, 40], Standing::BitForBit);
    let serial = at("max_serial", "rows", "1", ROWS);
    stands(
        serial,
        at("max_shuffle", "rows", "32", ROWS),
        &[33, 40],
        Standing::UpToRounding,
    );
    let naive = at("transpose_naive", "ceil_div(n*n,64)", "64", SQUARE);
    let tiled = at(
        "transpose_tiled",
        "ceil_div(n,16) ceil_div(n,16)",
        "16 16",
        SQUARE,
    );
    stands(naive, tiled, &[1, 17, 40], Standing::BitForBit);
    let branch = at("relu_branch", "ceil_div(n,64)", "64", FLAT);
    // A branch and a maximum differ in the sign of a zero.
    stands(
        branch,
        at("relu_select", "1", "32", FLAT),
        &[1, 40, 65],
        Standing::UpToRounding,
    );
}

fn products_of_tiles_are_those_of_rows() {
    let naive = at(
        "product_naive",
        "ceil_div(n,8) ceil_div(n,4)",
        "8 4",
        SQUARES,
    );
    let tiled = at(
        "product_tiled",
        "ceil_div(n,8) ceil_div(n,8)",
        "8 8",
        SQUARES,
    );
    stands(naive, tiled, &[16], Standing::BitForBit);
    // Beyond the matrix zeros are added: `x + 0` is no `x` where x is -0.
    stands(naive, tiled, &[7, 17], Standing::UpToRounding);
}

fn softmaxes_and_norms_are_equal_by_their_algebra() {
    let three = at("softmax_three", "rows", "32", TABLE);
    for kernel in ["softmax_online", "softmax_warp"] {
        stands(
            three,
            at(kernel, "rows", "32", TABLE),
            &[1, 5, 40],
            Standing::UpToRounding,
        );
    }
    let two = at("norm_two_pass", "rows", "32", TABLE);
    stands(
        two,
        at("norm_squares", "rows", "32", TABLE),
        &[1, 37, 40],
        Standing::UpToRounding,
    );
    let swish = at("swish_div", "ceil_div(n,64)", "64", FLAT);
    stands(
        swish,
        at("swish_mul", "ceil_div(n,32)", "32", FLAT),
        &[1, 40],
        Standing::UpToRounding,
    );
}

fn sums_of_integers_are_equal_and_wider_ones_are_not() {
    let serial = at("isum_serial", "rows", "1", INTS);
    stands(
        serial,
        at("isum_shuffle", "rows", "32", INTS),
        &[33, 40],
        Standing::BitForBit,
    );
}

fn atomic_sums_have_no_order() {
    let all = "x f32 n uniform; out f32 1 zeros out; n s32 = n";
    let serial = at("sum_all", "1", "1", all);
    stands(
        serial,
        at("sum_atomic", "ceil_div(n,32)", "32", all),
        &[1, 40],
        Standing::UpToRounding,
    );
    refuted(
        serial,
        at("wrong_sum_plain_add", "ceil_div(n,32)", "32", all),
        &[40],
        "race",
    );
}

fn addresses_of_data_are_tested_only() {
    let args = "x u8 n bytes; out u32 256 zeros out; n s32 = n";
    let global = at("histogram_global", "ceil_div(n,32)", "32", args);
    stands(
        global,
        at("histogram_shared", "1", "64", args),
        &[40],
        Standing::Tested,
    );
}

fn wrong_sums_are_refuted() {
    let rows = |kernel| at(kernel, "rows", "32", ROWS);
    refuted(
        SUM,
        at("wrong_sum_no_barrier", "rows", "128", ROWS),
        &[40],
        "race",
    );
    refuted(SUM, rows("wrong_sum_stride"), &[40], "shown");
    refuted(SUM, rows("wrong_sum_lost_step"), &[40], "shown");
    refuted(SUM, rows("wrong_sum_reads_past"), &[64], "out-of-bounds");
    refuted(SUM, rows("wrong_sum_half_rows"), &[40], "unwritten");
    refuted(SUM, rows("wrong_sum_unset"), &[40], "unset");
    refuted(SUM, rows("wrong_sum_writes_input"), &[40], "input-written");
    // Four at a time: what is left over is lost.
    refuted(SUM, rows("sum_fours"), &[40, 41], "misaligned");
}

fn other_wrong_rewrites_are_refuted() {
    let max = at("max_serial", "rows", "1", ROWS);
    refuted(
        max,
        at("wrong_max_identity", "rows", "32", ROWS),
        &[40],
        "shown",
    );
    let softmax = at("softmax_three", "rows", "32", TABLE);
    refuted(
        softmax,
        at("wrong_softmax_rescale", "rows", "32", TABLE),
        &[5, 40],
        "shown",
    );
    // Over the reals it is right.
    let infinite = at("wrong_softmax_infinite", "rows", "32", TABLE);
    refuted(softmax, infinite, &[5], "shown");
    stands(softmax, infinite, &[32, 40], Standing::UpToRounding);
    let norm = at("norm_two_pass", "rows", "32", TABLE);
    refuted(
        norm,
        at("wrong_norm_epsilon", "rows", "32", TABLE),
        &[40],
        "shown",
    );
    let transpose = at("transpose_naive", "ceil_div(n*n,64)", "64", SQUARE);
    let swapped = at(
        "wrong_transpose_swapped",
        "ceil_div(n,16) ceil_div(n,16)",
        "16 16",
        SQUARE,
    );
    refuted(transpose, swapped, &[64], "shown");
    refuted(transpose, swapped, &[17], "unset");
    let relu = at("relu_branch", "ceil_div(n,64)", "64", FLAT);
    refuted(
        relu,
        at("wrong_relu_leaky", "1", "32", FLAT),
        &[40],
        "shown",
    );
}

fn wrong_products_are_refuted() {
    let naive = at(
        "product_naive",
        "ceil_div(n,8) ceil_div(n,4)",
        "8 4",
        SQUARES,
    );
    let wrong = |kernel| at(kernel, "ceil_div(n,8) ceil_div(n,8)", "8 8", SQUARES);
    refuted(naive, wrong("wrong_product_barrier"), &[16], "race");
    refuted(naive, wrong("wrong_product_guard"), &[16, 17], "shown");
}

/// A path for one input alone: no random one finds it, what its condition asks for does.
fn a_path_for_the_tests_own_input_is_refuted() {
    refuted(
        SUM,
        at("wrong_sum_fast_path", "rows", "32", ROWS),
        &[5],
        "shown",
    );
}

/// A maximum shows an element that is skipped only where that is the largest.
fn a_skipped_element_is_refuted() {
    refuted(
        at("max_serial", "rows", "1", ROWS),
        at("wrong_max_skips_last", "rows", "32", ROWS),
        &[40],
        "shown",
    );
}

/// A sum in 64 bits that is halved loses a bit.
fn a_wider_sum_is_refuted() {
    let serial = at("isum_serial", "rows", "1", INTS);
    refuted(
        serial,
        at("wrong_isum_wide", "rows", "32", INTS),
        &[33],
        "shown",
    );
}

/// A condition that was made a number and is tested again, and a choice between two places in memory that nobody writes.
fn the_larger_of_two_is_a_maximum() {
    const HALVES: &str = "x f16 n uniform; z f16 n uniform; out f16 n out; n s32 = n";
    const FLOATS: &str = "x f32 n uniform; z f32 n uniform; out f32 n out; n s32 = n";
    let of = |kernel, args| at(kernel, "ceil_div(n,32)", "32", args);
    for (max, right, wrong, args) in [
        ("half_max", "half_larger", "wrong_half_smaller", HALVES),
        ("float_max", "float_place", "wrong_float_place", FLOATS),
    ] {
        stands(
            of(max, args),
            of(right, args),
            &[40],
            Standing::UpToRounding,
        );
        refuted(of(max, args), of(wrong, args), &[40], "shown");
    }
}

/// A variable of the module counts the blocks.
fn the_last_block_adds_what_all_have_left() {
    let all = "x f32 n uniform; out f32 1 zeros out; n s32 = n";
    let parts = "x f32 n uniform; part f32 n poison; out f32 1 zeros out; n s32 = n";
    let serial = at("sum_all", "1", "1", all);
    let of = |kernel| at(kernel, "ceil_div(n,8)", "32", parts);
    // The flag that the block shares is a byte of a word that nobody else writes.
    let lengths = [9, 40, 100];
    // Which block comes last is tried for two orders of all.
    stands(serial, of("sum_last_block"), &lengths, Standing::Tested);
    refuted(serial, of("wrong_sum_first_parts"), &[1, 8, 40], "shown");
    refuted(serial, of("wrong_sum_too_early"), &[40], "unset");
}

/// Where data choose who writes, nobody else does; a guess ahead of a swap counts only if it is still there.
fn conditions_on_data_decide_who_writes() {
    let halves = |kernel| at(kernel, "ceil_div(2*n,64)", "64", FLAT);
    let one = at("sign_marked", "ceil_div(n,64)", "64", FLAT);
    stands(
        one,
        halves("sign_marked_by_two"),
        &[37, 64],
        Standing::BitForBit,
    );
    for wrong in ["wrong_sign_marked_by_both", "wrong_sign_marked_overlapping"] {
        let Some(found) = found(one, halves(wrong), &[("n", 37)]) else {
            return;
        };
        assert!(
            found.standing >= Standing::Tested,
            "{wrong}: {}",
            said(&found)
        );
    }
    let largest = |kernel, first| {
        let args = match first {
            true => "x f32 n uniform; out f32 1 zeros out; n s32 = n",
            false => "x f32 n uniform; out f32 1 out; n s32 = n",
        };
        at(
            kernel,
            if first { "2" } else { "1" },
            if first { "64" } else { "1" },
            args,
        )
    };
    let serial = largest("largest_from_zero", false);
    let swapped = largest("largest_by_swaps", true);
    // Which thread comes first shows, and two orders of all are tried.
    stands(serial, swapped, &[40, 100], Standing::Tested);
    refuted(
        serial,
        largest("wrong_largest_last_wins", true),
        &[100],
        "shown",
    );
    refuted(
        serial,
        largest("wrong_largest_read_after", true),
        &[100],
        "race",
    );
}

/// A block that reads what others wrote needs a fence between.
fn what_blocks_hand_over_is_fenced() {
    let all = "x f32 n uniform; out f32 1 zeros out; n s32 = n";
    let parts = "x f32 n uniform; part f32 n poison; out f32 1 zeros out; n s32 = n";
    let serial = at("sum_all", "1", "1", all);
    let unfenced = at("wrong_sum_unfenced", "ceil_div(n,8)", "32", parts);
    refuted(serial, unfenced, &[40], "race");
}

/// One of a few places, chosen by data.
fn a_place_that_data_choose_is_one_of_a_few() {
    const PAIRS: &str = "x f32 4*n uniform; g f32 n uniform; out f32 4*n zeros out; n s32 = n";
    let of = |kernel, per| at(kernel, per, "64", PAIRS);
    let gathered = of("largest_gathered", "ceil_div(4*n,64)");
    let scattered = |kernel| of(kernel, "ceil_div(n,64)");
    stands(
        gathered,
        scattered("largest_scattered"),
        &[33],
        Standing::UpToRounding,
    );
    refuted(
        gathered,
        scattered("wrong_largest_scattered"),
        &[33],
        "shown",
    );
}

/// The algebra of selections, of constants and of bytes.
fn selections_constants_and_bytes_have_an_algebra() {
    const ROWS: &str = "x f32 3,n uniform; out f32 3 out; n s32 = n";
    let of = |kernel, block| at(kernel, "3", block, ROWS);
    let (plain, warp) = (of("gated_sum", "1"), of("gated_sum_warp", "32"));
    stands(plain, warp, &[33, 70], Standing::UpToRounding);
    refuted(plain, of("wrong_gated_sum_warp", "32"), &[70], "shown");
    let pool = of("rectified_max", "1");
    stands(
        pool,
        of("rectified_max_from_below", "1"),
        &[33],
        Standing::UpToRounding,
    );
    refuted(pool, of("wrong_rectified_max", "1"), &[33], "shown");
    let swish = |kernel| at(kernel, "ceil_div(n,64)", "64", FLAT);
    stands(
        swish("swish"),
        swish("swish_fast"),
        &[33, 130],
        Standing::UpToRounding,
    );
    refuted(swish("swish"), swish("wrong_swish_fast"), &[33], "shown");
    let third = (swish("third_double"), swish("third_single"));
    stands(third.0, third.1, &[33], Standing::UpToRounding);
    refuted(third.0, swish("wrong_third"), &[33], "shown");
    const BYTES: &str = "a s8 4*n bytes; b s8 4*n bytes; out s32 1 out; n s32 = n";
    let dot = |kernel| at(kernel, "1", "1", BYTES);
    stands(
        dot("dot_bytes"),
        dot("dot_words"),
        &[1, 9],
        Standing::BitForBit,
    );
    refuted(dot("dot_bytes"), dot("wrong_dot_words"), &[9], "shown");
}

/// An element that another one of the same buffer moves to is written.
fn what_moves_within_a_buffer_is_written() {
    let of = |kernel| at(kernel, "1", "64", "x f32 n uniform out; n s32 = n");
    let right = of("turned_staged");
    stands(of("turned"), right, &[8, 9, 70], Standing::BitForBit);
    stands(right, right, &[8], Standing::BitForBit);
    let wrong = of("wrong_turned_staged");
    refuted(of("turned"), wrong, &[8], "unwritten");
}

/// All in one: the kernels are compiled once.
#[test]
fn rewrites_stand_as_they_should() {
    sums_in_another_order_are_equal_up_to_rounding();
    the_same_order_is_the_same_bits();
    products_of_tiles_are_those_of_rows();
    softmaxes_and_norms_are_equal_by_their_algebra();
    sums_of_integers_are_equal_and_wider_ones_are_not();
    atomic_sums_have_no_order();
    addresses_of_data_are_tested_only();
    wrong_sums_are_refuted();
    other_wrong_rewrites_are_refuted();
    wrong_products_are_refuted();
    a_path_for_the_tests_own_input_is_refuted();
    a_wider_sum_is_refuted();
    a_skipped_element_is_refuted();
    the_larger_of_two_is_a_maximum();
    the_last_block_adds_what_all_have_left();
    conditions_on_data_decide_who_writes();
    what_blocks_hand_over_is_fenced();
    a_place_that_data_choose_is_one_of_a_few();
    selections_constants_and_bytes_have_an_algebra();
    what_moves_within_a_buffer_is_written();
}

/// Of blocks that do the same one stands for all; one that does not is looked at itself.
#[test]
fn blocks_that_are_alike_stand_for_one_another() {
    const ARGS: &str = "x f32 8,n uniform; w f32 n uniform; out f32 8,n out; n s32 = n";
    let of = |kernel| at(kernel, "8", "32", ARGS);
    let together = at("weighted_rows", "2", "4", ARGS);
    for (a, b, groups) in [
        (of("weighted"), of("weighted"), Some([1, 8])),
        (of("weighted"), together, Some([1, 2])),
        (of("weighted_by_row"), of("weighted_by_row"), None),
    ] {
        let Some(found) = found(a, b, &[("n", 40)]) else {
            return;
        };
        assert_eq!((found.standing, found.elements), (Standing::BitForBit, 320));
        let alike = found.why.iter().find_map(|why| match why {
            Why::Alike(groups) => Some(*groups),
            _ => None,
        });
        assert_eq!(alike, groups, "{}", said(&found));
    }
    for wrong in ["other_row", "sixth", "factor"] {
        let name: &'static str = format!("wrong_weighted_{wrong}").leak();
        refuted(of("weighted"), of(name), &[40], "shown");
        refuted(together, of(name), &[40], "shown");
    }
    refuted(of("weighted"), of("weighted_by_row"), &[40], "shown");
    refuted(of("weighted"), of("wrong_weighted_next_row"), &[40], "race");
}

/// What the original leaves as it was belongs to its outputs where it leaves other elements, too.
#[test]
fn elements_beyond_the_last_stay_as_they_are() {
    const ARGS: &str = "x f32 n+8 uniform; out f32 n+8 uniform out; n s32 = n";
    let of = |kernel| at(kernel, "ceil_div(n,32)", "32", ARGS);
    stands(of("doubled"), of("doubled"), &[33, 64], Standing::BitForBit);
    refuted(
        of("doubled"),
        of("wrong_doubled_one_more"),
        &[33],
        "overwritten",
    );
}

#[test]
fn constants_are_numbers_and_their_equality_is_none_of_bits() {
    let one = |kernel| at(kernel, "ceil_div(n,64)", "64", FLAT);
    for kernel in ["little", "scaled_little"] {
        let Some(found) = found(one("cleared"), one(kernel), &[("n", 40)]) else {
            return;
        };
        let proved = [Standing::BitForBit, Standing::UpToRounding];
        assert!(!proved.contains(&found.standing), "{}", said(&found));
    }
    let (above, below) = (one("cleared"), one("cleared_from_below"));
    stands(above, below, &[40], Standing::UpToRounding);
}

#[test]
fn comparisons_of_floats_are_no_integers() {
    const BITS: &str = "x s32 n bytes; out s32 n out; n s32 = n";
    let one = |kernel| at(kernel, "ceil_div(n,64)", "64", BITS);
    // They differ for NaN.
    let pair = (one("below_one"), one("not_from_one_on"));
    let Some(found) = found(pair.0, pair.1, &[("n", 40)]) else {
        return;
    };
    assert_ne!(found.standing, Standing::BitForBit, "{}", said(&found));
}
