//! Boards. Of one architecture's boards the first stands for the architecture.

use super::ada::SM_89;
use super::ampere::{SM_80, SM_86, SM_87};
use super::blackwell::{SM_100, SM_103, SM_110, SM_120, SM_121};
use super::fermi_to_maxwell::{SM_20, SM_30, SM_35, SM_52};
use super::hopper::SM_90;
use super::sources::{BLACKWELL_TUNING, DATASHEET, DEVICE_QUERY, FORUM_ORIN, PROBE};
use super::tesla::SM_13;
use super::turing::SM_75;
use crate::arch::Architecture;
use crate::board::Board;
use crate::fact::{Fact, documented, estimated, measured};

const FROM_FP32: &str = "HGX datasheet, FP32, divided by SMs and lanes";

/// What can be set aside of a level-2 cache of so many KiB.
const fn of_l2(l2_kib: u32) -> Option<Fact<u32>> {
    estimated(
        l2_kib / 8 * 5,
        "level-2 cache divided by 8, times 5: as of the H200",
    )
}

/// A board as its datasheet has it: SMs, MHz, GB/s, KiB of level-2 cache. What the datasheet does not say
/// is overridden with another source, or with `None`.
const fn datasheet(
    name: &'static str,
    aliases: &'static [&'static str],
    arch: &'static Architecture,
    [sms, mhz, gb_s, l2_kib]: [u32; 4],
) -> Board {
    Board {
        name,
        aliases,
        arch,
        sms: documented(sms, DATASHEET),
        clock_mhz: documented(mhz, DATASHEET),
        dram_gb_s: documented(gb_s, DATASHEET),
        copy_gb_s: None,
        l2_kib: documented(l2_kib, DATASHEET),
        persisting_l2_kib: match arch.has_persisting_l2() {
            true => of_l2(l2_kib),
            false => None,
        },
    }
}

/// All boards, grouped by generation.
pub(crate) const BOARDS: &[&[Board]] = &[LEGACY, TURING, AMPERE, ADA, HOPPER, BLACKWELL];

// Clocks up to Fermi are those of the shader domain, in which an SM issues.
const LEGACY: &[Board] = &[
    Board {
        l2_kib: None,
        ..datasheet("gtx285", &[], &SM_13, [30, 1476, 159, 0])
    },
    Board {
        l2_kib: None,
        ..datasheet("gtx280", &[], &SM_13, [30, 1296, 142, 0])
    },
    datasheet("c2050", &["m2050"], &SM_20, [14, 1150, 144, 768]),
    datasheet("gtx480", &[], &SM_20, [15, 1401, 177, 768]),
    datasheet("gtx680", &[], &SM_30, [8, 1058, 192, 512]),
    datasheet("k40c", &["k40", "k40m"], &SM_35, [15, 875, 288, 1536]),
    datasheet(
        "titan-x-maxwell",
        &["gtx-titan-x", "titan-x"],
        &SM_52,
        [24, 1075, 337, 3072],
    ),
    datasheet("gtx980", &[], &SM_52, [16, 1216, 224, 2048]),
];

const TURING: &[Board] = &[
    datasheet("t4", &[], &SM_75, [40, 1590, 320, 4096]),
    datasheet("rtx2080ti", &["2080ti"], &SM_75, [68, 1545, 616, 5632]),
];

const AMPERE: &[Board] = &[
    datasheet(
        "a100",
        &["a100-80gb", "a100-sxm4-80gb"],
        &SM_80,
        [108, 1410, 2039, 40_960],
    ),
    datasheet(
        "a100-40gb",
        &["a100-sxm4-40gb", "a100-pcie-40gb"],
        &SM_80,
        [108, 1410, 1555, 40_960],
    ),
    datasheet(
        "a100-pcie",
        &["a100-80gb-pcie"],
        &SM_80,
        [108, 1410, 1935, 40_960],
    ),
    datasheet("a30", &[], &SM_80, [56, 1440, 933, 24_576]),
    datasheet("rtx3090", &["3090"], &SM_86, [82, 1695, 936, 6144]),
    datasheet("rtx3080", &["3080"], &SM_86, [68, 1710, 760, 5120]),
    datasheet("a10", &[], &SM_86, [72, 1695, 600, 6144]),
    datasheet("a40", &[], &SM_86, [84, 1740, 696, 6144]),
    datasheet("rtx-a6000", &["a6000"], &SM_86, [84, 1800, 768, 6144]),
    Board {
        persisting_l2_kib: measured(3072, FORUM_ORIN),
        ..datasheet("orin", &["agx-orin"], &SM_87, [16, 1300, 205, 4096])
    },
];

const ADA: &[Board] = &[
    datasheet("l40s", &[], &SM_89, [142, 2520, 864, 98_304]),
    datasheet("l40", &[], &SM_89, [142, 2490, 864, 98_304]),
    datasheet("l4", &[], &SM_89, [58, 2040, 300, 49_152]),
    datasheet("rtx4090", &["4090"], &SM_89, [128, 2520, 1008, 73_728]),
];

const HOPPER: &[Board] = &[
    datasheet(
        "h100",
        &["h100-sxm", "h100-sxm5", "h100-80gb-hbm3"],
        &SM_90,
        [132, 1980, 3352, 51_200],
    ),
    datasheet("h100-pcie", &[], &SM_90, [114, 1755, 2039, 51_200]),
    Board {
        copy_gb_s: measured(4306, PROBE),
        l2_kib: measured(61_440, PROBE),
        persisting_l2_kib: measured(38_400, PROBE),
        ..datasheet("h200", &["h200-sxm"], &SM_90, [132, 1980, 4800, 0])
    },
    Board {
        l2_kib: measured(61_440, DEVICE_QUERY),
        persisting_l2_kib: of_l2(61_440),
        ..datasheet("gh200", &["gh200-480gb"], &SM_90, [132, 1980, 4000, 0])
    },
];

const BLACKWELL: &[Board] = &[
    Board {
        clock_mhz: estimated(1980, FROM_FP32),
        l2_kib: documented(129_024, BLACKWELL_TUNING),
        persisting_l2_kib: of_l2(129_024),
        ..datasheet("b200", &["gb200"], &SM_100, [148, 0, 8000, 0])
    },
    Board {
        sms: measured(148, DEVICE_QUERY),
        clock_mhz: estimated(1980, FROM_FP32),
        l2_kib: estimated(129_024, "equal to b200"),
        persisting_l2_kib: of_l2(129_024),
        ..datasheet("b300", &["gb300", "b300-sxm6-ac"], &SM_103, [0, 0, 8000, 0])
    },
    Board {
        l2_kib: measured(32_768, DEVICE_QUERY),
        persisting_l2_kib: of_l2(32_768),
        ..datasheet("thor", &["agx-thor", "t5000"], &SM_110, [20, 1575, 273, 0])
    },
    datasheet("rtx5090", &["5090"], &SM_120, [170, 2407, 1792, 98_304]),
    datasheet("rtx5080", &["5080"], &SM_120, [84, 2617, 960, 65_536]),
    datasheet(
        "rtx-pro-6000",
        &[
            "rtx-pro-6000-blackwell",
            "rtx-pro-6000-blackwell-workstation-edition",
        ],
        &SM_120,
        [188, 2617, 1792, 131_072],
    ),
    Board {
        clock_mhz: estimated(
            2520,
            "31 TFLOP/s FP32 (Hot Chips 2025), divided by SMs and lanes",
        ),
        l2_kib: documented(24_576, "NVIDIA at Hot Chips 2025"),
        persisting_l2_kib: of_l2(24_576),
        ..datasheet("gb10", &["spark", "dgx-spark"], &SM_121, [48, 0, 273, 0])
    },
];
