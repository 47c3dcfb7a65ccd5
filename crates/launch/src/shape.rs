//! What a launch becomes for a version of its kernel.

use std::fmt;
use std::str::FromStr;

use crate::guard::{Condition, Guard, Quantity};

/// Another block over the same threads, and more dynamic shared memory.
///
/// With another block the grid has, along each dimension, as many blocks as cover the threads that there were;
/// the version must do nothing in threads beyond them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Threads per block in x, y and z, if others than the launch has.
    pub block: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory per block beyond those of the launch.
    pub more_smem: u32,
}

/// Grid, block and dynamic shared memory of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes per block.
    pub dynamic_smem: u32,
}

impl Shape {
    /// The launch as it is.
    pub const SAME: Shape = Shape {
        block: None,
        more_smem: 0,
    };

    /// Does it leave launches as they are?
    pub fn is_same(self) -> bool {
        self == Shape::SAME
    }

    /// What a launch becomes. `None` where a number would not fit, or the new block has none.
    pub fn apply(self, launch: Extents) -> Option<Extents> {
        let mut made = launch;
        made.dynamic_smem = launch.dynamic_smem.checked_add(self.more_smem)?;
        let Some(block) = self.block else {
            return Some(made);
        };
        for (axis, &n) in block.iter().enumerate() {
            let threads = u64::from(launch.grid[axis]) * u64::from(launch.block[axis]);
            let blocks = threads.checked_next_multiple_of(n.into())? / u64::from(n.max(1));
            made.grid[axis] = u32::try_from(blocks).ok()?;
        }
        made.block = block;
        Some(made)
    }
}

impl Shape {
    /// What it makes of the launches of a guard, which must say their blocks and grids exactly where the block is
    /// another one. `None` where it does not, or a number would not fit.
    pub fn apply_to(self, launches: &Guard) -> Option<Extents> {
        let [block, grid] = [
            launches.exact(Quantity::Block),
            launches.exact(Quantity::Grid),
        ];
        self.apply(Extents {
            grid: grid?,
            block: block?,
            dynamic_smem: 0,
        })
    }

    /// The launches of a guard that meet another one once they have this shape. None where that is not known.
    #[must_use]
    pub fn also(self, launches: &Guard, shaped: &Guard) -> Guard {
        if self.is_same() {
            return launches.and(shaped);
        }
        let now = self.apply_to(launches);
        let mut all = launches.clone();
        for condition in shaped.conditions() {
            let met = match (condition, now) {
                (Condition::In(Quantity::Block(axis), set), Some(now)) => {
                    set.has(axis.of(now.block))
                }
                (Condition::In(Quantity::Grid(axis), set), Some(now)) => set.has(axis.of(now.grid)),
                (Condition::In(Quantity::Param(_), _) | Condition::Disjoint(_), _) => {
                    all = all.with(condition);
                    true
                }
                (Condition::In(Quantity::DynamicShared, _), _) if self.more_smem == 0 => {
                    all = all.with(condition);
                    true
                }
                // A cluster is so many blocks of another size.
                _ => false,
            };
            if !met {
                return Guard::never();
            }
        }
        match shaped.is_never() {
            true => Guard::never(),
            false => all,
        }
    }
}

/// `block=64,4,1; smem+1024`, or `same`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block = self.block.map(|[x, y, z]| format!("block={x},{y},{z}"));
        let smem = (self.more_smem > 0).then(|| format!("smem+{}", self.more_smem));
        let parts: Vec<String> = block.into_iter().chain(smem).collect();
        match parts.is_empty() {
            true => f.write_str("same"),
            false => f.write_str(&parts.join("; ")),
        }
    }
}

/// The text is no shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no shape of a launch, such as `block=64,4,1; smem+1024`")]
pub struct NoShape(String);

impl FromStr for Shape {
    type Err = NoShape;

    fn from_str(text: &str) -> Result<Self, NoShape> {
        let wrong = || NoShape(text.to_owned());
        let mut shape = Shape::SAME;
        for part in text
            .split(';')
            .map(str::trim)
            .filter(|part| !["", "same"].contains(part))
        {
            if let Some(dims) = part.strip_prefix("block=") {
                let dims: Option<Vec<u32>> =
                    dims.split(',').map(|n| n.trim().parse().ok()).collect();
                let dims = dims.and_then(|dims| dims.try_into().ok());
                shape.block = Some(dims.ok_or_else(wrong)?);
            } else {
                let bytes = part.strip_prefix("smem+").and_then(|n| n.parse().ok());
                shape.more_smem = bytes.ok_or_else(wrong)?;
            }
        }
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_conditions_are_about_launches_of_the_new_shape() {
        let guard = |text: &str| text.parse::<Guard>().unwrap();
        let launches = guard("block=256,1,1; grid=4,1,1; param0:4=7");
        let shape: Shape = "block=64,1,1".parse().unwrap();
        let also = |later: &str| shape.also(&launches, &guard(later));
        assert_eq!(
            also("block=64,1,1; grid=16,1,1; param1:4=3; smem=0"),
            launches.and(&guard("param1:4=3; smem=0"))
        );
        assert_eq!(also("block.size<=64"), launches);
        assert!(also("block=256,1,1").is_never());
        assert!(also("grid.x=4").is_never());
        assert!(also("cluster.x=1").is_never());
        assert!(also("param0:4=8").is_never());
        let open = guard("block=256,1,1");
        assert!(shape.also(&open, &guard("grid.x=16")).is_never());
        assert_eq!(
            Shape::SAME.also(&launches, &guard("smem=0")),
            launches.and(&guard("smem=0"))
        );
    }

    #[test]
    fn shapes_keep_the_threads() {
        let launch = Extents {
            grid: [10, 3, 1],
            block: [32, 8, 1],
            dynamic_smem: 100,
        };
        let shape: Shape = "block=64,2,1; smem+28".parse().unwrap();
        assert_eq!(shape.to_string().parse(), Ok(shape));
        let made = shape.apply(launch).unwrap();
        assert_eq!(
            (made.grid, made.block, made.dynamic_smem),
            ([5, 12, 1], [64, 2, 1], 128)
        );
        let odd = Shape {
            block: Some([96, 8, 1]),
            more_smem: 0,
        };
        assert_eq!(odd.apply(launch).map(|made| made.grid), Some([4, 3, 1]));
        assert_eq!(Shape::SAME.apply(launch), Some(launch));
        assert_eq!("same".parse(), Ok(Shape::SAME));
        let none = Shape {
            block: Some([0, 1, 1]),
            more_smem: 0,
        };
        assert_eq!(none.apply(launch), None);
        let too_much = Shape {
            block: None,
            more_smem: u32::MAX,
        };
        assert_eq!(too_much.apply(launch), None);
        assert!("block=1,2".parse::<Shape>().is_err());
    }
}
