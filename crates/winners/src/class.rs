//! Launch classes: launches for which one measurement and one proof stand.

use std::fmt;
use std::str::FromStr;

use warpwright_launch::{Extent, Guard, Quantity};

/// What a winner's launch must agree with.
///
/// Block, dynamic shared memory and cluster are compared exactly: a proof may rest on them. The grid is
/// compared by its order of magnitude: no proof rests on it, but what pays in a large grid may not in a small
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchClass {
    /// Threads per block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory per block.
    pub dynamic_smem: u32,
    /// Blocks per cluster, the kernel's own where the launch states none; zeros without clusters.
    pub cluster: [u32; 3],
    /// Whole part of the binary logarithm of the number of blocks.
    pub grid_log2: u32,
}

impl LaunchClass {
    /// The class of a launch; `None` for an empty grid, which no driver accepts.
    pub fn new(
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_smem: u32,
        cluster: [u32; 3],
    ) -> Option<Self> {
        let blocks = grid.iter().fold(1u128, |all, &n| all * u128::from(n));
        Some(LaunchClass {
            block,
            dynamic_smem,
            cluster,
            grid_log2: blocks.checked_ilog2()?,
        })
    }

    /// Holds for the launches of this class.
    pub fn guard(&self) -> Guard {
        let cluster = match self.cluster {
            [0, 0, 0] => [1; 3],
            stated => stated,
        };
        let least = 1u64.checked_shl(self.grid_log2).unwrap_or(u64::MAX);
        Guard::always()
            .block(self.block)
            .cluster(cluster)
            .equal(Quantity::DynamicShared, self.dynamic_smem.into())
            .within(Quantity::Grid(Extent::Size), least, (least - 1) << 1 | 1, 1)
    }
}

/// `256,1,1 smem 0 cluster 0,0,0 grid 10`
impl fmt::Display for LaunchClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [cx, cy, cz]) = (self.block, self.cluster);
        write!(
            f,
            "{bx},{by},{bz} smem {} cluster {cx},{cy},{cz} grid {}",
            self.dynamic_smem, self.grid_log2
        )
    }
}

/// The text is no launch class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no launch class")]
pub struct NoClass(String);

impl FromStr for LaunchClass {
    type Err = NoClass;

    fn from_str(text: &str) -> Result<Self, NoClass> {
        let words: Vec<&str> = text.split(' ').collect();
        let parsed = match words[..] {
            [block, "smem", smem, "cluster", cluster, "grid", grid] => (|| {
                Some(LaunchClass {
                    block: triple(block)?,
                    dynamic_smem: smem.parse().ok()?,
                    cluster: triple(cluster)?,
                    grid_log2: grid.parse().ok()?,
                })
            })(),
            _ => None,
        };
        parsed.ok_or_else(|| NoClass(text.to_owned()))
    }
}

/// `x,y,z`
pub(crate) fn triple(text: &str) -> Option<[u32; 3]> {
    let numbers: Vec<u32> = text
        .split(',')
        .map(|n| n.parse().ok())
        .collect::<Option<_>>()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_print_and_parse() {
        let class = LaunchClass::new([1000, 2, 1], [256, 1, 1], 4096, [2, 1, 1]).unwrap();
        assert_eq!(class.to_string(), "256,1,1 smem 4096 cluster 2,1,1 grid 10");
        assert_eq!(class.to_string().parse(), Ok(class));
        assert_eq!(LaunchClass::new([0, 1, 1], [1; 3], 0, [0; 3]), None);
        let most = LaunchClass::new([u32::MAX; 3], [1; 3], 0, [0; 3]).unwrap();
        assert_eq!(most.grid_log2, 95);
        let guard = class.guard().to_string();
        assert_eq!(
            guard,
            "block=256,1,1; grid.size>=1024; grid.size<=2047; cluster=2,1,1; smem=4096"
        );
        let plain = LaunchClass::new([1, 1, 1], [64, 1, 1], 0, [0; 3]).unwrap();
        assert!(plain.guard().to_string().contains("cluster=1,1,1"));
        for bad in [
            "",
            "256 smem 0",
            "1,1,1 smem x cluster 0,0,0 grid 1",
            "1,1 smem 0 cluster 0,0,0 grid 1",
        ] {
            assert!(bad.parse::<LaunchClass>().is_err(), "{bad}");
        }
    }
}
