//! Ensembles of regression trees, as the fits of `lab/fits/fit` write them.

use serde::Deserialize;

use crate::features::COUNT;

/// Trees as parallel arrays over all nodes.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Forest {
    /// What all trees start from.
    base: f64,
    /// The root of each tree.
    starts: Vec<usize>,
    /// The feature that a node asks for; negative: a leaf.
    feature: Vec<i32>,
    /// The threshold, or the value of a leaf.
    at: Vec<f64>,
    /// The child above the threshold; the other one is the next node.
    right: Vec<usize>,
}

impl Forest {
    /// The sum of its leaves for these features.
    pub(crate) fn value(&self, features: &[f64; COUNT]) -> f64 {
        let leaf = |&start: &usize| {
            let mut node = start;
            while let Ok(feature) = usize::try_from(self.feature[node]) {
                // The fit compares in single precision.
                let below = f64::from(features[feature] as f32) <= self.at[node];
                node = if below { node + 1 } else { self.right[node] };
            }
            self.at[node]
        };
        self.base + self.starts.iter().map(leaf).sum::<f64>()
    }

    /// Do all nodes lead to a leaf, and ask for features that there are?
    pub(crate) fn is_whole(&self) -> bool {
        let nodes = self.feature.len();
        let inner = |node: usize| match usize::try_from(self.feature[node]) {
            Ok(feature) => {
                feature < COUNT
                    && node + 1 < nodes
                    && self.right[node] > node
                    && self.right[node] < nodes
            }
            Err(_) => true,
        };
        self.at.len() == nodes
            && self.right.len() == nodes
            && (0..nodes).all(inner)
            && self.starts.iter().all(|&start| start < nodes)
    }
}
