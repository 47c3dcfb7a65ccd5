//! A candidate: a recipe, and what came of it.

use serde::{Deserialize, Serialize};
use std::fmt;
use warpwright_model::Tpsc;
use warpwright_model::correction::Judgement;
use warpwright_pass::{Caution, Recipe, Rung};

/// Resources of one built kernel, as `ptxas -v` reports them (or as estimated).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Registers per thread.
    pub registers: u32,
    /// Stack frame in bytes per thread.
    pub stack_bytes: u32,
    /// Bytes per thread stored to spill slots (static count, not weighted by loops).
    pub spill_store_bytes: u32,
    /// Bytes per thread loaded from spill slots.
    pub spill_load_bytes: u32,
    /// Of both, what goes to shared memory because a pass moved the slots there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spill_moved_bytes: u32,
    /// Of the static shared memory, what ptxas itself made its spill slots. It counts no traffic there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spill_shared_bytes: u32,
    /// Of machine code that was given: loads and stores of its stack frame at places that only a run shows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub computed_accesses: u32,
    /// Static shared memory in bytes per block.
    pub shared_bytes: u32,
    /// Named barriers.
    pub barriers: u32,
}

impl Resources {
    /// Did ptxas spill?
    pub fn spills(&self) -> bool {
        self.spill_store_bytes + self.spill_load_bytes > 0
    }

    /// Bytes per thread to and from spill slots in local memory.
    pub fn local_spill_bytes(&self) -> u32 {
        (self.spill_store_bytes + self.spill_load_bytes).saturating_sub(self.spill_moved_bytes)
    }
}

fn is_zero(bytes: &u32) -> bool {
    *bytes == 0
}

/// Resident blocks and warps of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Residency {
    /// Blocks per SM.
    pub blocks: u32,
    /// Warps per SM.
    pub warps: u32,
    /// Share of the most warps an SM can hold, in percent.
    pub percent: f64,
    /// What limits the blocks, in words.
    pub limiters: Vec<String>,
}

/// What a prediction goes by where there are loops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// There is none, or nobody has said.
    #[default]
    None,
    /// Each has ten turns, whatever it has.
    Assumed,
    /// Executions were counted at a launch.
    Counted,
    /// The same at a launch that is smaller than the one that it stands for.
    CountedSmaller,
}

/// What the static model says of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Predicted time relative to the default build (1 = the same, less is faster).
    pub relative_time: f64,
    /// What bounds the kernel under the model.
    pub bound: String,
    /// What `bound` goes by: this model takes loops for ten turns.
    #[serde(default)]
    pub turns: Turns,
    /// How much longer blocks take because they take each other's cache lines, over the default
    /// build's; part of `relative_time`.
    #[serde(default = "unchanged")]
    pub contention: f64,
    /// Resident warps per SM, no more than the grid brings where a launch is known.
    #[serde(default)]
    pub active_warps: u32,
    /// Does it trade something that the model knows little of: accesses to slots in shared memory for warps, or warps
    /// for room in the caches?
    #[serde(default)]
    pub is_trade: bool,
    /// What the learned correction expects, where a launch is known.
    #[serde(default)]
    pub judgement: Option<Judgement>,
    /// CRAT's measure of the same candidate, for comparison.
    #[serde(default)]
    pub tpsc: Option<Tpsc>,
}

fn unchanged() -> f64 {
    1.0
}

/// A measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Median time of a launch in nanoseconds.
    pub median_ns: f64,
    /// Confidence interval of the median, nanoseconds.
    pub interval_ns: (f64, f64),
    /// Median ratio to the default within the same run.
    pub relative_time: f64,
}

/// Why a candidate is out of the race, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    /// A pass refuses the kernel.
    Refused,
    /// It could not be built.
    Build,
    /// It cannot be launched.
    Launch,
    /// The checker does not prove it.
    NotProved,
    /// The budget was spent before it was tried.
    Budget,
    /// It was measured, and failed or computed something else.
    Measured,
    /// An older document says so.
    Recorded,
}

/// Why a candidate is out of the race.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The kind.
    pub because: Because,
    /// In words.
    pub text: String,
}

impl Rejection {
    /// A rejection.
    pub fn new(because: Because, text: impl ToString) -> Rejection {
        Rejection {
            because,
            text: text.to_string(),
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.because {
            Because::Measured => write!(f, "measured: {}", self.text),
            _ => f.write_str(&self.text),
        }
    }
}

/// Where a built candidate stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// It may be chosen, once it is proved.
    Open,
    /// It may be chosen: this stands behind it.
    Proved(Rung),
    /// It may be chosen only where a measurement has compared its outputs.
    UntilMeasured(Caution),
    /// The earlier candidate of this name has exactly the same machine code.
    SameCode(String),
    /// It is out.
    Rejected(Rejection),
}

/// What is known of a candidate's code.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Its resources.
    pub resources: Resources,
    /// Its residency on the target; none where it cannot be launched, or is not for the launch that is known.
    pub residency: Option<Residency>,
    /// The launches that it is for, in words, where the one that is known is none of them.
    pub elsewhere: Option<String>,
    /// The prediction.
    pub score: Option<Score>,
    /// The measurement, if the database or a tuning run has one.
    pub measured: Option<Measured>,
    /// Where it stands.
    pub standing: Standing,
    /// What its proof holds for, in words.
    pub holds_for: Vec<String>,
}

/// How far a candidate has come.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// There is no code for it.
    NotBuilt(Rejection),
    /// There is, or at least an estimate of it.
    Built(Box<Figures>),
}

/// One way to build a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Flat", into = "Flat")]
pub struct Candidate {
    /// The passes.
    pub recipe: Recipe,
    /// What came of it.
    pub state: State,
}

impl Candidate {
    /// A candidate with code.
    pub fn built(recipe: Recipe, resources: Resources) -> Self {
        let figures = Figures {
            resources,
            residency: None,
            elsewhere: None,
            score: None,
            measured: None,
            standing: Standing::Open,
            holds_for: Vec::new(),
        };
        Candidate {
            recipe,
            state: State::Built(Box::new(figures)),
        }
    }

    /// A candidate of which nothing is known but its recipe.
    pub fn named(recipe: Recipe) -> Self {
        let why = Rejection::new(Because::Recorded, "it was not rated");
        Candidate::not_built(recipe, why)
    }

    /// A candidate without code.
    pub fn not_built(recipe: Recipe, rejection: Rejection) -> Self {
        Candidate {
            recipe,
            state: State::NotBuilt(rejection),
        }
    }

    /// Its name within the kernel.
    pub fn name(&self) -> String {
        self.recipe.label()
    }

    /// What is known of its code, if there is any.
    pub fn figures(&self) -> Option<&Figures> {
        match &self.state {
            State::Built(figures) => Some(figures),
            State::NotBuilt(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn figures_mut(&mut self) -> Option<&mut Figures> {
        match &mut self.state {
            State::Built(figures) => Some(figures),
            State::NotBuilt(_) => None,
        }
    }

    /// Its resources.
    pub fn resources(&self) -> Option<&Resources> {
        self.figures().map(|figures| &figures.resources)
    }

    /// Its residency.
    pub fn residency(&self) -> Option<&Residency> {
        self.figures()?.residency.as_ref()
    }

    /// The launches that it is for, where the one that is known is none of them.
    pub fn elsewhere(&self) -> Option<&str> {
        self.figures()?.elsewhere.as_deref()
    }

    /// The prediction.
    pub fn score(&self) -> Option<&Score> {
        self.figures()?.score.as_ref()
    }

    /// The measurement.
    pub fn measured(&self) -> Option<&Measured> {
        self.figures()?.measured.as_ref()
    }

    /// Why it is out of the race, if so.
    pub fn rejected(&self) -> Option<&Rejection> {
        match &self.state {
            State::NotBuilt(rejection) => Some(rejection),
            State::Built(figures) => match &figures.standing {
                Standing::Rejected(rejection) => Some(rejection),
                _ => None,
            },
        }
    }

    /// The earlier candidate with the same machine code, if there is one.
    pub fn same_code_as(&self) -> Option<&str> {
        match &self.figures()?.standing {
            Standing::SameCode(name) => Some(name),
            _ => None,
        }
    }

    /// Why it waits for a measurement, if so.
    pub fn caution(&self) -> Option<Caution> {
        match self.figures()?.standing {
            Standing::UntilMeasured(caution) => Some(caution),
            _ => None,
        }
    }

    /// May the model choose it?
    pub fn is_open(&self) -> bool {
        let standing = self.figures().map(|figures| &figures.standing);
        matches!(standing, Some(Standing::Open | Standing::Proved(_)))
    }

    /// It was proved, by these rungs at most, if nothing is said against it.
    pub fn prove(&mut self, rung: Rung) {
        match &mut self.state {
            State::Built(figures) if figures.standing == Standing::Open => {
                figures.standing = Standing::Proved(rung);
            }
            _ => {}
        }
    }

    /// Takes it out of the race.
    pub fn reject(&mut self, rejection: Rejection) {
        match &mut self.state {
            State::Built(figures) => figures.standing = Standing::Rejected(rejection),
            State::NotBuilt(_) => {}
        }
    }
}

/// The form in documents, which is that of the first version.
#[derive(Clone, Serialize, Deserialize)]
struct Flat {
    recipe: Recipe,
    resources: Option<Resources>,
    residency: Option<Residency>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    elsewhere: Option<String>,
    score: Option<Score>,
    measured: Option<Measured>,
    rejected: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    because: Option<Because>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caution: Option<Stated>,
    same_code_as: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<Rung>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    holds_for: Vec<String>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Stated {
    Typed(Caution),
    /// The first documents hold the words; all that they knew want a measurement.
    Words(String),
}

impl From<Candidate> for Flat {
    fn from(candidate: Candidate) -> Flat {
        let rejection = candidate.rejected().cloned();
        let mut flat = Flat {
            because: rejection.as_ref().map(|rejection| rejection.because),
            rejected: rejection.map(|rejection| rejection.text),
            caution: candidate.caution().map(Stated::Typed),
            same_code_as: candidate.same_code_as().map(str::to_owned),
            recipe: candidate.recipe,
            resources: None,
            residency: None,
            elsewhere: None,
            score: None,
            measured: None,
            proof: None,
            holds_for: Vec::new(),
        };
        if let State::Built(figures) = candidate.state {
            if let Standing::Proved(rung) = figures.standing {
                flat.proof = Some(rung);
            }
            flat.resources = Some(figures.resources);
            flat.residency = figures.residency;
            flat.elsewhere = figures.elsewhere;
            flat.score = figures.score;
            flat.measured = figures.measured;
            flat.holds_for = figures.holds_for;
        }
        flat
    }
}

impl From<Flat> for Candidate {
    fn from(flat: Flat) -> Candidate {
        let because = flat.because.unwrap_or(Because::Recorded);
        let rejection = flat.rejected.map(|text| Rejection { because, text });
        let Some(resources) = flat.resources else {
            let unknown = || Rejection::new(Because::Recorded, "it was not built");
            return Candidate::not_built(flat.recipe, rejection.unwrap_or_else(unknown));
        };
        let standing = match (rejection, flat.same_code_as, flat.caution, flat.proof) {
            (Some(rejection), ..) => Standing::Rejected(rejection),
            (None, Some(twin), ..) => Standing::SameCode(twin),
            (.., Some(Stated::Typed(caution)), _) => Standing::UntilMeasured(caution),
            (.., Some(Stated::Words(_)), _) => Standing::UntilMeasured(Caution::Fusion),
            (.., Some(rung)) => Standing::Proved(rung),
            _ => Standing::Open,
        };
        Candidate {
            recipe: flat.recipe,
            state: State::Built(Box::new(Figures {
                resources,
                residency: flat.residency,
                elsewhere: flat.elsewhere,
                score: flat.score,
                measured: flat.measured,
                standing,
                holds_for: flat.holds_for,
            })),
        }
    }
}
