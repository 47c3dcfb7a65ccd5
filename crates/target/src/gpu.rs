//! Find a GPU by any name that people, compilers and drivers use.

use std::fmt;

use thiserror::Error;

use crate::arch::Architecture;
use crate::board::Board;
use crate::rows;

/// How many near matches an [`UnknownGpu`] lists.
const MAX_SUGGESTIONS: usize = 5;

/// A GPU: an architecture, and where it is known the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// The architecture.
    pub arch: &'static Architecture,
    /// The board, if one was named.
    pub board: Option<&'static Board>,
    /// Which feature set of the architecture a compiler is to use.
    pub variant: Variant,
}

/// The feature set that a target name asks for (PTX ISA, `.target`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// `sm_90`: what all later architectures have too.
    #[default]
    Base,
    /// `sm_90a`: everything that this architecture alone has.
    Architecture,
    /// `sm_100f`: what the family shares.
    Family,
}

impl Variant {
    const fn suffix(self) -> &'static str {
        match self {
            Self::Base => "",
            Self::Architecture => "a",
            Self::Family => "f",
        }
    }

    /// The first architecture that has such a target.
    const fn since(self) -> u32 {
        match self {
            Self::Base => 0,
            Self::Architecture => 90,
            Self::Family => 100,
        }
    }
}

impl Gpu {
    /// The compiler's name of the target: "sm_90", "sm_100f".
    pub fn target(&self) -> String {
        format!("sm_{}{}", self.arch.sm, self.variant.suffix())
    }

    /// The board, or where none was named the one that stands for the architecture: the first in the
    /// table. Predictions in seconds need clocks and bandwidths; they should say that this one was taken.
    pub fn typical_board(&self) -> Option<&'static Board> {
        self.board
            .or_else(|| boards().find(|board| board.arch.sm == self.arch.sm))
    }

    /// Multiprocessors of [that board](Gpu::typical_board), if the table has them.
    pub fn typical_sms(&self) -> Option<u32> {
        Some(self.typical_board()?.sms?.value)
    }

    /// Blocks that a grid of so many brings to the busiest of them; `None` where the board is not known.
    pub fn blocks_for_sm(&self, grid: u64) -> Option<u64> {
        let sms = u64::from(self.typical_sms()?).max(1);
        Some(grid.div_ceil(sms))
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.board {
            Some(board) => write!(f, "{} ({})", board.name, self.target()),
            None => f.write_str(&self.target()),
        }
    }
}

/// No row has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct UnknownGpu {
    /// The name that was asked for.
    pub name: String,
    /// Names that are near, the nearest first.
    pub near: Vec<String>,
    /// Its architecture, if it is a GPU without a row; the architecture may have one.
    pub sm: Option<u32>,
}

impl fmt::Display for UnknownGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(sm) = self.sm {
            if architectures().any(|arch| arch.sm == sm) {
                return write!(
                    f,
                    "there is no row for `{}`; name its architecture, sm_{sm}",
                    self.name
                );
            }
            let number = format!("sm_{sm}");
            let number = match self.name == number {
                true => String::new(),
                false => format!(" ({number})"),
            };
            return write!(
                f,
                "`{}`{number} is not supported: there is no table for it (`warpwright occupancy --list` has all)",
                self.name
            );
        }
        write!(f, "unknown GPU `{}`", self.name)?;
        if !self.near.is_empty() {
            write!(f, "; near: {}", self.near.join(", "))?;
        }
        f.write_str(" (an architecture does, too: sm_90; `warpwright occupancy --list` has all)")
    }
}

/// All architectures, from the oldest to the newest.
pub fn architectures() -> impl Iterator<Item = &'static Architecture> {
    rows::ARCHITECTURES.iter().copied()
}

/// All boards; of one architecture's boards the typical one comes first.
pub fn boards() -> impl Iterator<Item = &'static Board> {
    rows::BOARDS.iter().copied().flatten()
}

/// Find a GPU by name. Case, spaces, `-` and `_` do not count, nor do "NVIDIA", "GeForce", "Tesla" and
/// "Jetson". A board: `h200`, `H100 PCIe`, `NVIDIA A100-SXM4-80GB`. An architecture: `sm_90`, `sm_90a`,
/// `sm_100f`, `compute_90`, `sm90`, `90`, `9.0`.
///
/// # Errors
/// [`UnknownGpu`] with the nearest names.
pub fn lookup(name: &str) -> Result<Gpu, UnknownGpu> {
    let key = normalize(name);
    find_board(&key)
        .or_else(|| find_architecture(&key))
        .ok_or_else(|| UnknownGpu {
            name: name.to_owned(),
            near: near(&key),
            sm: without_a_row(&key),
        })
}

fn find_board(key: &str) -> Option<Gpu> {
    let is_named = |board: &&Board| {
        normalize(board.name) == key || board.aliases.iter().any(|alias| normalize(alias) == key)
    };
    let board = boards().find(is_named)?;
    Some(Gpu {
        arch: board.arch,
        board: Some(board),
        variant: Variant::Base,
    })
}

fn find_architecture(key: &str) -> Option<Gpu> {
    let digits = ["sm", "compute", "cc"]
        .iter()
        .find_map(|prefix| key.strip_prefix(prefix));
    let digits = digits.unwrap_or(key);
    let (digits, variant) = match digits.as_bytes().last()? {
        b'a' => (&digits[..digits.len() - 1], Variant::Architecture),
        b'f' => (&digits[..digits.len() - 1], Variant::Family),
        _ => (digits, Variant::Base),
    };
    let sm: u32 = match digits.split_once('.') {
        Some((major, minor)) if minor.len() == 1 => format!("{major}{minor}").parse().ok()?,
        Some(_) => return None,
        None => digits.parse().ok()?,
    };
    let arch = architectures().find(|arch| arch.sm == sm && sm >= variant.since())?;
    Some(Gpu {
        arch,
        board: None,
        variant,
    })
}

/// Lower case, without separators and without words that add nothing.
fn normalize(name: &str) -> String {
    let words = name.to_lowercase();
    let words = words.split(|c: char| c.is_whitespace() || c == '-' || c == '_');
    words
        .filter(|word| !["nvidia", "geforce", "tesla", "jetson"].contains(word))
        .collect()
}

/// GPUs without a row, by name, with their compute capabilities (NVIDIA, 'CUDA GPU Compute Capability').
const WITHOUT_A_ROW: &[(&str, u32)] = &[
    ("v100", 70),
    ("titanv", 70),
    ("xavier", 72),
    ("agxxavier", 72),
    ("p100", 60),
    ("p4", 61),
    ("p40", 61),
    ("titanxp", 61),
    ("gtx1050", 61),
    ("gtx1060", 61),
    ("gtx1070", 61),
    ("gtx1080", 61),
    ("gtx1080ti", 61),
    ("tx2", 62),
    ("k80", 37),
    ("tx1", 53),
    ("gtx1650", 75),
    ("gtx1660", 75),
    ("rtx2060", 75),
    ("rtx2070", 75),
    ("rtx2080", 75),
    ("titanrtx", 75),
    ("a800", 80),
    ("a2", 86),
    ("a16", 86),
    ("rtxa2000", 86),
    ("rtxa4000", 86),
    ("rtxa5000", 86),
    ("rtx3050", 86),
    ("rtx3060", 86),
    ("rtx3070", 86),
    ("rtx3080ti", 86),
    ("rtx3090ti", 86),
    ("l20", 89),
    ("rtx4050", 89),
    ("rtx4060", 89),
    ("rtx4070", 89),
    ("rtx4080", 89),
    ("rtx2000ada", 89),
    ("rtx4000ada", 89),
    ("rtx4500ada", 89),
    ("rtx5000ada", 89),
    ("rtx6000ada", 89),
    ("h20", 90),
    ("h800", 90),
    ("rtx5050", 120),
    ("rtx5060", 120),
    ("rtx5070", 120),
];

/// What may follow a name without changing the architecture.
const ENDINGS: &[&str] = &["sxm", "pcie", "ti", "super", "laptop", "generation"];

/// The architecture of a GPU that exists and has no row.
fn without_a_row(key: &str) -> Option<u32> {
    let known = WITHOUT_A_ROW.iter();
    let by_name = known.clone().find(|(name, _)| {
        key == *name || {
            let rest = key.strip_prefix(name);
            rest.is_some_and(|rest| ENDINGS.iter().any(|end| rest.starts_with(end)))
        }
    });
    let number = ["sm", "compute", "cc"]
        .iter()
        .find_map(|p| key.strip_prefix(p));
    let number = number.unwrap_or(key).replace('.', "").parse::<u32>().ok();
    let by_number = || known.clone().find(|(_, sm)| Some(*sm) == number);
    by_name.or_else(by_number).map(|(_, sm)| *sm)
}

/// The names of boards and architectures nearest to `key`.
fn near(key: &str) -> Vec<String> {
    let boards = boards().map(|board| board.name.to_owned());
    let archs = architectures().map(|arch| format!("sm_{}", arch.sm));
    let mut ranked: Vec<_> = boards
        .chain(archs)
        .map(|name| (distance(key, &normalize(&name)), name))
        .filter(|&(distance, _)| distance <= 2)
        .collect();
    ranked.sort();
    ranked.truncate(MAX_SUGGESTIONS);
    ranked.into_iter().map(|(_, name)| name).collect()
}

/// Edit distance; a name that begins like the key, or the other way round, is at most one away.
fn distance(key: &str, name: &str) -> usize {
    let begins = key.len() >= 2 && (name.starts_with(key) || key.starts_with(name));
    let edits = strsim::damerau_levenshtein(key, name);
    if begins { edits.min(1) } else { edits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_architectures() {
        for name in [
            "sm_90",
            "SM90",
            "sm-90",
            "90",
            "9.0",
            "compute_90",
            "cc9.0",
            " sm_90 ",
        ] {
            let gpu = lookup(name).unwrap();
            assert_eq!(
                (gpu.arch.sm, gpu.board, gpu.variant),
                (90, None, Variant::Base),
                "{name}"
            );
        }
        assert_eq!(lookup("1.3").unwrap().arch.sm, 13);
        assert_eq!(lookup("12.1").unwrap().arch.sm, 121);
    }

    #[test]
    fn suffixes_name_feature_sets() {
        assert_eq!(lookup("sm_90a").unwrap().target(), "sm_90a");
        assert_eq!(lookup("100f").unwrap().target(), "sm_100f");
        assert_eq!(lookup("sm_90").unwrap().target(), "sm_90");
        for name in ["sm_80a", "sm_90f", "sm_90b", "sm_90aa"] {
            assert!(lookup(name).is_err(), "{name}");
        }
    }

    #[test]
    fn names_of_boards() {
        for (name, board) in [
            ("h200", "h200"),
            ("NVIDIA H200", "h200"),
            ("H100 PCIe", "h100-pcie"),
            ("NVIDIA H100 80GB HBM3", "h100"),
            ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
            ("NVIDIA GeForce RTX 4090", "rtx4090"),
            ("rtx_2080_ti", "rtx2080ti"),
            ("Tesla T4", "t4"),
            ("spark", "gb10"),
            ("NVIDIA Thor", "thor"),
            ("GTX 285", "gtx285"),
            ("titan-x-maxwell", "titan-x-maxwell"),
        ] {
            let gpu = lookup(name).unwrap();
            assert_eq!(gpu.board.map(|board| board.name), Some(board), "{name}");
        }
        assert_eq!(lookup("h200").unwrap().to_string(), "h200 (sm_90)");
    }

    #[test]
    fn gpus_without_a_row_are_said_to_be_so() {
        for name in [
            "v100",
            "Tesla V100-SXM2-16GB",
            "NVIDIA V100",
            "sm_70",
            "7.0",
        ] {
            let error = lookup(name).unwrap_err();
            assert_eq!(error.sm, Some(70), "{name}");
            assert!(error.to_string().contains("not supported"));
        }
        for (name, sm) in WITHOUT_A_ROW {
            let text = lookup(name).unwrap_err().to_string();
            let has_row = architectures().any(|arch| arch.sm == *sm);
            assert_eq!(text.contains("name its architecture"), has_row, "{name}");
            assert!(text.contains(&format!("sm_{sm}")), "{text}");
        }
        for name in [
            "rtx4080",
            "NVIDIA GeForce RTX 4080 SUPER",
            "RTX 4070 Ti",
            "L20",
            "rtx-6000-ada",
            "NVIDIA RTX 6000 Ada Generation",
        ] {
            assert_eq!(lookup(name).unwrap_err().sm, Some(89), "{name}");
        }
        assert_eq!(lookup("NVIDIA H20").unwrap_err().sm, Some(90));
    }

    #[test]
    fn unknown_names_list_near_ones() {
        let error = lookup("h20O").unwrap_err();
        assert_eq!(error.near.first().map(String::as_str), Some("h200"));
        assert!(
            error
                .to_string()
                .starts_with("unknown GPU `h20O`; near: h200")
        );
        assert!(
            lookup("rtx40")
                .unwrap_err()
                .near
                .contains(&"rtx4090".to_owned())
        );
        assert!(
            lookup("sm_91")
                .unwrap_err()
                .near
                .contains(&"sm_90".to_owned())
        );
        let nothing = lookup("radeon-rx-7900").unwrap_err();
        assert_eq!((nothing.sm, nothing.near), (None, vec![]));
        for name in ["", "sm_", "a", "f", "ü", "9.ü", "sm_99999999999999"] {
            assert!(lookup(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn every_name_leads_to_its_own_board() {
        for board in boards() {
            for name in board.aliases.iter().chain([&board.name]) {
                assert_eq!(lookup(name).unwrap().board, Some(board), "{name}");
            }
        }
    }

    #[test]
    fn every_architecture_has_a_typical_board() {
        for arch in architectures() {
            let gpu = lookup(&arch.sm.to_string()).unwrap();
            assert_eq!(gpu.arch, arch);
            assert_eq!(gpu.typical_board().unwrap().arch, arch, "sm_{}", arch.sm);
        }
        assert_eq!(
            lookup("sm_90").unwrap().typical_board().unwrap().name,
            "h100"
        );
    }
}
