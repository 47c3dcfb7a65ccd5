//! The space of an exhaustive search: which axes it has, and how many values of each.

use std::str::FromStr;

use warpwright_driver::proposal::AXES;
use warpwright_driver::search::{Axis, thin};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// Axes, and the most first values of each; all axes where none is named.
    pub axes: Vec<Named>,
    /// Points at most.
    pub most: u64,
}

/// An axis of a space: `unroll`, or `unroll=4` for its first four values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    name: &'static str,
    values: usize,
}

/// Why a text names no axis of a space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAxis {
    /// There is none of this name.
    #[error("there is no axis `{0}`: {all}", all = AXES.join(", "))]
    Unknown(String),
    /// Behind the name stands no number.
    #[error("`{0}` is no number of values")]
    Values(String),
}

impl FromStr for Named {
    type Err = NoAxis;

    fn from_str(text: &str) -> Result<Named, NoAxis> {
        let (name, values) = match text.split_once('=') {
            None => (text, usize::MAX),
            Some((name, values)) => {
                let count = values.parse();
                (name, count.map_err(|_| NoAxis::Values(values.to_owned()))?)
            }
        };
        let found = AXES.into_iter().find(|axis| *axis == name);
        let name = found.ok_or_else(|| NoAxis::Unknown(name.to_owned()))?;
        Ok(Named { name, values })
    }
}

impl Space {
    /// The axes that are searched, each with how many of its values are left out.
    pub fn of(&self, mut axes: Vec<Axis>) -> Vec<(Axis, usize)> {
        let all: Vec<usize> = axes.iter().map(|axis| axis.values.len()).collect();
        for axis in &mut axes {
            let named = self.axes.iter().find(|named| named.name == axis.name);
            axis.values.truncate(match named {
                Some(named) => named.values,
                None if self.axes.is_empty() => usize::MAX,
                None => 0,
            });
        }
        thin(&mut axes, self.most);
        let left_out = |(axis, all): (Axis, usize)| {
            let out = all - axis.values.len();
            (axis, out)
        };
        axes.into_iter().zip(all).map(left_out).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Vec<Axis> {
        let value = || vec!["unroll(4)".parse().expect("a pass")];
        let axis = |name, count| Axis {
            name,
            values: (0..count).map(|_| value()).collect(),
            wants: None,
        };
        vec![axis("shape", 6), axis("unroll", 5), axis("cache", 0)]
    }

    #[test]
    fn axes_are_those_named_and_as_long_as_fits() {
        let of = |named: &[&str], most| {
            let axes_of = named.iter().map(|text| text.parse().expect("an axis"));
            let space = Space {
                axes: axes_of.collect(),
                most,
            };
            let found = space.of(axes()).into_iter();
            found
                .map(|(axis, out)| (axis.values.len(), out))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&[], 100), [(6, 0), (5, 0), (0, 0)]);
        assert_eq!(of(&[], 30), [(5, 1), (4, 1), (0, 0)]);
        assert_eq!(of(&["unroll=2", "cache"], 100), [(0, 6), (2, 3), (0, 0)]);
        assert_eq!(of(&["shape"], 3), [(2, 4), (0, 5), (0, 0)]);
    }

    #[test]
    fn what_is_no_axis_is_named() {
        let why = |text: &str| text.parse::<Named>().expect_err(text).to_string();
        assert!(why("size").contains("`size`") && why("size").contains("shape, constants"));
        assert!(why("unroll=many").contains("`many`"));
    }
}
