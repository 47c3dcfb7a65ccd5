//! Scores built candidates with the static model, relative to the first one (the default build), and
//! with CRAT's TPSC beside it.

use warpwright_model::constants::Constants;
use warpwright_model::correction::{Correction, Judgement};
use warpwright_model::features::{
    Build, COUNT, Terms, crowds_memory, features as features_of, kept_in_registers, pays_for_spills,
};
use warpwright_model::{
    Case, OptTlp, Parameters, Prediction, grid_warps, inserted, predict, profile, tpsc,
};
use warpwright_pass::passes::Promote;
use warpwright_pass::{Level, Recipe, Setting};
use warpwright_sass::Kernel;

use crate::build::Built;
use crate::candidate::{Residency, Resources, Score, Turns};
use crate::proposal::{is_rewritten, is_throttle_only, is_version, spills_elsewhere};

/// Fills in the scores. Without a prediction for the default there is nothing to compare with, and
/// no candidate gets one. `opt_tlp` is the estimate for the default build.
pub fn score_all(setting: &Setting, opt_tlp: Option<&OptTlp>, built: &mut [Built]) {
    let parameters = Parameters::default();
    let Some(first) = built.first() else { return };
    let Some(default) = predict_one(setting, first, None, &parameters) else {
        return;
    };
    let of = |b: &Built, figure: fn(&OptTlp, u32) -> f64| match (opt_tlp, b.candidate.residency()) {
        (Some(opt_tlp), Some(residency)) => figure(opt_tlp, residency.blocks),
        _ => 1.0,
    };
    let contention_of_default = of(first, OptTlp::contention);
    let time_of_default = of(first, OptTlp::relative_time);
    let global_bytes = Some(default.global_bytes);
    let least = least_spilling(setting, built);
    let terms_of_default = terms(setting, first);
    let scores: Vec<Option<Score>> = built
        .iter()
        .map(|b| {
            let p = predict_one(setting, b, global_bytes, &parameters)?;
            let contention = of(b, OptTlp::contention) / contention_of_default;
            // The same code at other residencies is what the mimic compares; the stall model compares
            // different code. A throttle gains no more than the contention that it takes away, and
            // other code is charged for contention that it adds but not credited with what it takes
            // away: where that pays, the throttle says so (docs/regs.md).
            let features = (terms_of_default.as_ref().zip(terms(setting, b).as_ref())).map(
                |(default_terms, own)| features_of(default_terms, own, p.cycles / default.cycles),
            );
            // The loops of a kernel whose stores wait stand there twice, and ptxas unrolls one of them.
            let copied = features.filter(|_| b.candidate.recipe.find::<Promote>().is_some());
            let at_launch = b.at_launch.as_ref().and_then(|alone| {
                let time =
                    predict_one(setting, alone, global_bytes, &parameters)?.cycles / default.cycles;
                let own = terms(setting, alone)?;
                Constants::fitted()?.expected(&features_of(terms_of_default.as_ref()?, &own, time))
            });
            let relative_time = match (is_throttle_only(&b.candidate.recipe), copied, at_launch) {
                (true, ..) => (of(b, OptTlp::relative_time) / time_of_default).max(contention),
                (_, Some(features), _) => kept_in_registers(&features) * contention.max(1.0),
                (_, _, Some(expected)) => expected * contention.max(1.0),
                // Both versions are in the code, and nobody says what the one that runs takes.
                _ if is_version(&b.candidate.recipe) => (p.cycles / default.cycles).max(1.0),
                _ => p.cycles / default.cycles * contention.max(1.0),
            };
            let own = case(setting, b, None)?;
            let own_profile = profile(&own, &parameters);
            let measure = || {
                let inserted = inserted(&own_profile, least.as_ref()?);
                let blocks = b.candidate.residency()?.blocks;
                Some(tpsc(
                    setting.gpu,
                    blocks,
                    setting.block.threads(),
                    &inserted,
                ))
            };
            Some(Score {
                relative_time,
                bound: p.bound().name().into(),
                turns: turns(&own, &own_profile),
                contention,
                active_warps: active_warps(setting, b)?,
                is_trade: features.is_some_and(|f| is_trade(&b.candidate.recipe, &f)),
                judgement: features.and_then(|f| judge(setting, b, &f)),
                tpsc: measure(),
            })
        })
        .collect();
    for (b, score) in built.iter_mut().zip(scores) {
        if let Some(figures) = b.candidate.figures_mut() {
            figures.score = score;
        }
    }
}

/// The profile of the first build with the fewest bytes of spills, among those that ptxas alone has made and that can be
/// launched: what the others have inserted their spill code into.
fn least_spilling(setting: &Setting, built: &[Built]) -> Option<warpwright_sass::Profile> {
    let bytes = |b: &&Built| {
        let resources = b.candidate.resources();
        resources.map_or(u32::MAX, |r| r.spill_store_bytes + r.spill_load_bytes)
    };
    let plain = |b: &&Built| {
        let recipe = &b.candidate.recipe;
        let is_launched = b.candidate.residency().is_some();
        is_launched && !spills_elsewhere(recipe) && !is_rewritten(recipe)
    };
    let least = built.iter().filter(plain).min_by_key(bytes)?;
    let case = case(setting, least, None)?;
    Some(profile(&case, &Parameters::default()))
}

/// The model's prediction for one built candidate; `global_bytes` is the default build's.
pub fn predict_one(
    setting: &Setting,
    built: &Built,
    global_bytes: Option<f64>,
    parameters: &Parameters,
) -> Option<Prediction> {
    let case = case(setting, built, global_bytes)?;
    Some(predict(&case, parameters))
}

/// What the predicted time consists of.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Cycles {
    /// The largest part: `issue`, `latency`, `traffic` or `atomics`.
    pub bound: String,
    /// What it goes by.
    pub turns: Turns,
    /// The parts over the largest one, 1 at most.
    pub issue: f64,
    /// Waiting that resident warps do not hide.
    pub latency: f64,
    /// Bytes to caches and memory.
    pub traffic: f64,
    /// Atomic operations that wait for each other, where a launch was counted.
    #[serde(default, skip_serializing_if = "is_none")]
    pub atomics: f64,
}

fn is_none(part: &f64) -> bool {
    *part == 0.0
}

impl Cycles {
    /// The parts beside the largest, over it.
    pub fn others(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let parts = [
            ("issue", self.issue),
            ("latency", self.latency),
            ("traffic", self.traffic),
            ("atomics", self.atomics),
        ];
        let others = parts.into_iter().filter(|(name, _)| *name != self.bound);
        others.filter(|(name, part)| *name != "atomics" || *part > 0.0)
    }

    /// Of machine code that runs at a residency, with the cycles of its atomic operations ([`Atomics::cycles`]).
    ///
    /// [`Atomics::cycles`]: warpwright_model::atomics::Atomics::cycles
    pub fn of_case(case: &Case, atomics: f64) -> Cycles {
        let prediction = predict(case, &Parameters::default());
        let parts = [prediction.issue, prediction.latency, prediction.traffic];
        let largest = parts.into_iter().fold(f64::MIN_POSITIVE, f64::max);
        let bound = match atomics > largest {
            true => "atomics",
            false => prediction.bound().name(),
        };
        let largest = largest.max(atomics);
        Cycles {
            bound: bound.to_owned(),
            turns: turns(case, &profile(case, &Parameters::default())),
            issue: prediction.issue / largest,
            latency: prediction.latency / largest,
            traffic: prediction.traffic / largest,
            atomics: atomics / largest,
        }
    }
}

/// What the model knows of the loops of machine code.
fn turns(case: &Case, profile: &warpwright_sass::Profile) -> Turns {
    match (case.counts, profile.loop_depth) {
        (_, 0) => Turns::None,
        (Some(_), _) => Turns::Counted,
        (None, _) => Turns::Assumed,
    }
}

/// What the learned correction expects of `built` beside the default build. Without a launch there is nothing to go by;
/// and of what our own passes make, and of spills in shared memory, the fit has seen too little.
fn judge(setting: &Setting, built: &Built, features: &[f64; COUNT]) -> Option<Judgement> {
    let recipe = &built.candidate.recipe;
    let is_common = !spills_elsewhere(recipe) && recipe.at(Level::MachineCode).next().is_none();
    if !is_common || is_rewritten(recipe) || is_throttle_only(recipe) && !recipe.is_default() {
        return None;
    }
    setting.grid?;
    Some(Correction::fitted()?.judge(features))
}

/// Does the build trade what the model knows little of?
fn is_trade(recipe: &Recipe, features: &[f64; COUNT]) -> bool {
    spills_elsewhere(recipe) && pays_for_spills(features) || crowds_memory(features)
}

/// What the learned correction knows of a build by itself.
fn terms(setting: &Setting, built: &Built) -> Option<Terms> {
    let build = Build {
        case: case(setting, built, None)?,
        registers: built.candidate.resources()?.registers,
        threads: setting.block.threads(),
        blocks: built.candidate.residency()?.blocks,
        grid: setting.grid,
    };
    Some(Terms::new(&build, &Parameters::default()))
}

/// Resident warps per SM, no more than the grid brings.
fn active_warps(setting: &Setting, built: &Built) -> Option<u32> {
    let case = case(setting, built, None)?;
    Some(
        case.grid_warps
            .map_or(case.warps, |grid| grid.min(case.warps)),
    )
}

/// What the model asks of a built candidate.
fn case<'a>(
    setting: &Setting<'a>,
    built: &'a Built,
    global_bytes: Option<f64>,
) -> Option<Case<'a>> {
    let candidate = &built.candidate;
    let (resources, residency) = (candidate.resources()?, candidate.residency()?);
    let kernel = built.kernel.as_ref()?;
    Some(case_of(setting, kernel, resources, residency, global_bytes))
}

/// What the model asks of machine code that runs at a residency.
pub fn case_of<'a>(
    setting: &Setting<'a>,
    kernel: &'a Kernel,
    resources: &Resources,
    residency: &Residency,
    global_bytes: Option<f64>,
) -> Case<'a> {
    let gpu = setting.gpu;
    let per_block = resources.shared_bytes + setting.dynamic() + gpu.arch.shared.reserved;
    let threads = setting.block.threads();
    Case {
        gpu,
        code: &kernel.code,
        targets: &kernel.targets,
        warps: residency.warps,
        grid_warps: setting
            .grid
            .and_then(|blocks| grid_warps(gpu, blocks, threads)),
        frame_bytes: kernel.frame_bytes.max(resources.stack_bytes),
        shared_per_sm: per_block.saturating_mul(residency.blocks),
        global_bytes,
        counts: None,
    }
}
