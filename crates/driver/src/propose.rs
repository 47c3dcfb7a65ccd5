//! Which recipes are worth building for a kernel.
//!
//! One register limit per occupancy stair (CRAT, section 4.2: of all points with the same number
//! of resident blocks only the one with the most registers matters), on both sides of what the
//! default build takes: fewer registers for more blocks, and more registers at fewer blocks,
//! because ptxas schedules differently when it may use more (FACTS, section 1: both directions
//! win). Where a limit makes ptxas spill, a second round offers spilling to shared memory.
//! Departure from CRAT: points above the best thread-level parallelism are not pruned here; the
//! model ranks them.

use crate::candidate::Candidate;
use crate::recipe::{Decision, Recipe};

/// The fewest registers worth asking for: the ABI minimum of ptxas is 24 on current parts, and
/// it raises smaller limits to that by itself.
const FEWEST_REGISTERS: u32 = 24;
/// The most registers a thread can have.
const MOST_REGISTERS: u32 = 255;
/// Below this share of the natural need nearly every instruction would touch a spill slot. (An
/// eighth still wins: `ionic` at 32 of 196 registers is its fastest build on an H200.)
const LOWEST_SHARE: f64 = 0.125;

/// What the proposals depend on.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    /// Registers per thread of the default build (or the estimate).
    pub natural: u32,
    /// The largest register count of each occupancy stair, any order.
    pub stairs: &'a [u32],
    /// Threads per block, if they may be promised to ptxas.
    pub promised_block: Option<u32>,
    /// May ptxas options be used? They hold for a whole module, so only for a single kernel.
    pub module_options: bool,
    /// May the kernel spill to shared memory?
    pub shared_spilling: bool,
}

/// The first round: the default, each stair, and the extremes of the usage level.
pub fn first_round(situation: &Situation) -> Vec<Recipe> {
    let mut recipes = vec![Recipe::default()];
    for registers in limits(situation.natural, situation.stairs) {
        recipes.push(Recipe::default().with(Decision::MaxRegisters { registers }));
    }
    if situation.module_options {
        for level in [0, 10] {
            recipes.push(Recipe::default().with(Decision::RegisterUsageLevel { level }));
        }
    }
    recipes
}

/// The second round: shared-memory spilling wherever a limit made ptxas spill. With a known block
/// size the size is promised too, or ptxas plans for 1,024 threads and offers little room.
pub fn second_round(situation: &Situation, built: &[Candidate]) -> Vec<Recipe> {
    if !situation.shared_spilling {
        return Vec::new();
    }
    built
        .iter()
        .filter(|c| c.resources.as_ref().is_some_and(|r| r.spills()))
        .filter(|c| c.recipe.usage_level().is_none())
        .map(|c| {
            let bounded = match situation.promised_block {
                Some(threads) => c.recipe.with(Decision::BlockBound { threads }),
                None => c.recipe.clone(),
            };
            bounded.with(Decision::SharedSpilling)
        })
        .collect()
}

/// What people sweep by hand, as peers for measuring: every eighth register limit, and (with a
/// known block size) `__launch_bounds__` with each minimum number of blocks.
pub fn peers(situation: &Situation, block_counts: &[u32]) -> Vec<Recipe> {
    let mut recipes: Vec<Recipe> = (FEWEST_REGISTERS..MOST_REGISTERS)
        .step_by(8)
        .chain([MOST_REGISTERS])
        .map(|registers| Recipe::default().with(Decision::MaxRegisters { registers }))
        .collect();
    if let Some(threads) = situation.promised_block {
        let bounded = Recipe::default().with(Decision::BlockBound { threads });
        recipes.push(bounded.clone());
        for &blocks in block_counts {
            recipes.push(bounded.with(Decision::MinBlocks { blocks }));
        }
    }
    recipes
}

/// Register limits in ascending order: the top of each stair, as far as it is worth a build, and
/// the architecture's maximum.
fn limits(natural: u32, stairs: &[u32]) -> Vec<u32> {
    let lowest = ((f64::from(natural) * LOWEST_SHARE).ceil() as u32).max(FEWEST_REGISTERS);
    let mut limits: Vec<u32> = stairs
        .iter()
        .copied()
        .chain([MOST_REGISTERS])
        .filter(|&r| (lowest..=MOST_REGISTERS).contains(&r) && r != natural)
        .collect();
    limits.sort_unstable();
    limits.dedup();
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_and_nothing_twice() {
        let stairs = [255, 128, 80, 64, 48, 40, 32, 24, 16];
        assert_eq!(limits(68, &stairs), [24, 32, 40, 48, 64, 80, 128, 255]);
        assert_eq!(
            limits(250, &stairs),
            [32, 40, 48, 64, 80, 128, 255],
            "an eighth is 32"
        );
        assert_eq!(
            limits(64, &stairs),
            [24, 32, 40, 48, 80, 128, 255],
            "64 is the default"
        );
    }

    #[test]
    fn usage_levels_only_for_a_module_with_one_kernel() {
        let mut situation = Situation {
            natural: 64,
            stairs: &[64, 80],
            promised_block: Some(256),
            module_options: false,
            shared_spilling: true,
        };
        assert!(
            first_round(&situation)
                .iter()
                .all(|r| r.usage_level().is_none())
        );
        situation.module_options = true;
        assert_eq!(
            first_round(&situation)
                .iter()
                .filter(|r| r.usage_level().is_some())
                .count(),
            2
        );
    }
}
