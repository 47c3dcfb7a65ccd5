//! Which recipes are worth building for a kernel.
//!
//! One register limit per occupancy stair (CRAT, section 4.2: of all points with the same number
//! of resident blocks only the one with the most registers matters), on both sides of what the
//! default build takes: fewer registers for more blocks, and more registers at fewer blocks,
//! because ptxas schedules differently when it may use more (docs/facts.md: both directions
//! win). Where a limit makes ptxas spill, a second round offers spilling to shared memory. Fewer
//! blocks at unchanged code (throttling) are offered where the static OptTLP says so.
//!
//! Departure from CRAT: points above OptTLP are not pruned, because the estimate is not exact and a
//! build is cheap; the paper's own choice, with pruning, is reported beside ours (docs/regs.md).

use warpwright_launch::Guard;
use warpwright_pass::pass::Timing;
use warpwright_pass::passes::{
    Allocate, Arrays, Cache, Demote, LoadPolicy, MaxNReg, MaxNTid, MinNCtaPerSm, Prefetch, Promote,
    Reduce, Remat, Rename, Reshape, Schedule, ScheduleBy, SmemSpilling, Specialize, SpillShared,
    SpillToShared, StorePolicy, Target, Tests, Throttle, ThrottleBy, Unroll, UsageLevel, Vectorize,
};
use warpwright_pass::throttle::{array_for, by_registers, registers_for};
use warpwright_pass::{Invocation, Level, Recipe};
use warpwright_target::{
    EditedCode, Gpu, REGISTERS_PER_THREAD, Resources, THREADS_PER_BLOCK, WARP_SIZE, ran_right,
};

use crate::candidate::Candidate;
use crate::search::Axis;

/// Is the code the default build's, at most with fewer resident blocks?
pub fn is_throttle_only(recipe: &Recipe) -> bool {
    let mut passes = recipe.passes().iter();
    passes.all(|pass| pass.get::<Throttle>().is_some())
}

/// Are the kernel's own instructions moved, repeated or said otherwise, or its shared memory changed, before ptxas sees
/// them?
pub fn is_rewritten(recipe: &Recipe) -> bool {
    let rewrites = |pass: &Invocation| {
        pass.get::<Reduce>().is_some()
            || pass.get::<Allocate>().is_some()
            || pass.get::<Remat>().is_some()
            || pass.get::<SpillShared>().is_some()
            || pass.get::<Throttle>().is_some()
            || pass.get::<Unroll>().is_some()
            || pass.get::<Cache>().is_some()
            || pass.get::<Specialize>().is_some()
            || pass.get::<Vectorize>().is_some()
            || pass.get::<Promote>().is_some()
    };
    recipe.at(Level::Ptx).any(rewrites)
}

/// Has the finished cubin another order or other registers, which the model hardly tells from what it was made of
/// ([`reworked`])?
pub fn is_reworked(recipe: &Recipe) -> bool {
    let mut passes = recipe.at(Level::MachineCode);
    passes.any(|pass| pass.timing() != Timing::Kept)
}

/// Do spills go elsewhere than to local memory?
pub fn spills_elsewhere(recipe: &Recipe) -> bool {
    recipe.find::<SmemSpilling>().is_some() || recipe.find::<SpillToShared>().is_some()
}

/// The fewest registers worth asking for, and the most that a thread can have.
const FEWEST_REGISTERS: u32 = *REGISTERS_PER_THREAD.start();
const MOST_REGISTERS: u32 = *REGISTERS_PER_THREAD.end();
/// Below this share of the natural need nearly every instruction would touch a spill slot. (An
/// eighth still wins: `ionic` at 32 of 196 registers is its fastest build on an H200.)
const LOWEST_SHARE: f64 = 0.125;
/// Register limits that are built: small blocks have a stair every few registers.
const MOST_LIMITS: usize = 11;
/// Limits below the natural need that are built at once, and those that follow at a time.
const FIRST_LIMITS: usize = 3;
const MORE_LIMITS: usize = 4;
/// The predicted time over the default's from which a limit leads nowhere.
const HOPELESS: f64 = 1.5;
/// Limits at which ptxas may spill to shared memory.
const MOST_SHARED: usize = 4;
/// Limits at which all ways to spill are compared.
const MOST_COMPARED: usize = 6;
/// Limits that our own passes are tried at.
const MOST_GOALS: usize = 3;
/// Limits at which versions for the launch are tried.
const MOST_SPECIALISED: usize = 3;
/// Throttles that are measured.
const MOST_THROTTLES: usize = 4;

/// What people sweep by hand, to compare with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Peers {
    /// Nothing.
    #[default]
    None,
    /// What people usually try: some ten register limits, and the launch bounds for one block more
    /// and for twice as many.
    Usual,
    /// Every eighth register limit, and launch bounds with each number of blocks.
    All,
    /// Nothing but registers: at every limit under which ptxas spills, with the slots in local memory, with ptxas's own
    /// in shared memory, and moved, all or a part; values of ours in their place, and other orders.
    Spills,
}

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
    /// May ptxas let the kernel spill to shared memory?
    pub shared_spilling: bool,
    /// May spill slots be moved to shared memory in the finished cubin?
    pub spill_to_shared: bool,
}

/// The first round: the default, each stair, and the extremes of the usage level.
pub fn first_round(situation: &Situation) -> Vec<Recipe> {
    let mut recipes = vec![Recipe::default()];
    for registers in limits(situation.natural, situation.stairs) {
        recipes.push(Recipe::default().with(MaxNReg { registers }));
    }
    if situation.module_options {
        for level in [0, 10] {
            recipes.push(Recipe::default().with(UsageLevel { level }));
        }
    }
    recipes
}

/// The first round in the order in which it is built: everything but the limits below the natural need, with the
/// next few of these; then the others downwards, a few at a time, so that they can be left out once one above them
/// [`is_hopeless`].
pub fn steps(natural: u32, recipes: Vec<Recipe>) -> Vec<Vec<Recipe>> {
    let below = |recipe: &Recipe| register_limit(recipe).filter(|&limit| limit < natural);
    let (mut lower, mut first): (Vec<Recipe>, Vec<Recipe>) = recipes
        .into_iter()
        .partition(|recipe| below(recipe).is_some());
    lower.sort_by_key(|recipe| std::cmp::Reverse(below(recipe)));
    let rest = lower.split_off(lower.len().min(FIRST_LIMITS));
    first.extend(lower);
    let rest = rest.chunks(MORE_LIMITS).map(<[Recipe]>::to_vec);
    std::iter::once(first).chain(rest).collect()
}

/// Is it predicted to take so long that neither a lower limit nor its spills in shared memory can make up for it?
/// (docs/pipeline.md has how often they did.)
pub fn is_hopeless(candidate: &Candidate) -> bool {
    let is_slow = candidate
        .score()
        .is_some_and(|score| score.relative_time > HOPELESS);
    is_slow && register_limit(&candidate.recipe).is_some()
}

/// The second round: shared-memory spilling where a limit made ptxas spill, by our own edit of the
/// finished cubin, and by ptxas at the limits that the model likes best. With a known block size the
/// size is promised too, or ptxas plans for 1,024 threads and offers little room; the edit needs it.
pub fn second_round(situation: &Situation, built: &[Candidate]) -> Vec<Recipe> {
    let mut spilling = spilling(built);
    spilling.sort_by(|a, b| predicted(a).total_cmp(&predicted(b)));
    let beside = |blocks| vec![blocks];
    let each = spilling.into_iter().enumerate();
    let recipes = each.flat_map(|(place, c)| {
        let mut recipes = in_shared_memory(situation, c, beside);
        if place >= MOST_SHARED {
            recipes.retain(|recipe| !recipe.fits_ptx());
        }
        recipes
    });
    let mut recipes: Vec<Recipe> = recipes.collect();
    recipes.sort_by_key(|recipe| !recipe.fits_ptx());
    recipes
}

/// The same at more limits, and with fewer blocks resident, where more slots fit.
pub fn all_spilling(situation: &Situation, built: &[Candidate]) -> Vec<Recipe> {
    let mut spilling = spilling(built);
    spilling.sort_by(|a, b| predicted(a).total_cmp(&predicted(b)));
    spilling.truncate(MOST_COMPARED);
    let beside = |blocks: u32| vec![blocks, blocks * 3 / 4, blocks / 2];
    let each = spilling.into_iter();
    each.flat_map(|c| in_shared_memory(situation, c, beside))
        .collect()
}

/// Builds with spill code in local memory.
fn spilling(built: &[Candidate]) -> Vec<&Candidate> {
    let spills = |c: &&Candidate| c.resources().is_some_and(|r| r.spills());
    let is_plain = |c: &&Candidate| c.recipe.passes().iter().all(|p| p.level() == Level::Ptx);
    built.iter().filter(spills).filter(is_plain).collect()
}

/// `c` with its spill slots in shared memory: by ptxas, all of them, and as many as fit beside so many
/// resident blocks.
fn in_shared_memory(
    situation: &Situation,
    c: &Candidate,
    beside: impl Fn(u32) -> Vec<u32>,
) -> Vec<Recipe> {
    let bounded = match situation.promised_block {
        Some(threads) => c.recipe.with(MaxNTid { threads }),
        None => c.recipe.clone(),
    };
    let mut recipes = Vec::new();
    if situation.shared_spilling {
        recipes.push(bounded.with(SmemSpilling {}));
    }
    if situation.spill_to_shared {
        let resident = c.residency().map(|residency| residency.blocks);
        let counts = resident.map(beside).unwrap_or_default();
        recipes.extend(moved(&bounded, counts));
    }
    recipes
}

/// `recipe` with all spill slots moved in the finished cubin, and with those that fit beside so many blocks.
fn moved(recipe: &Recipe, mut beside: Vec<u32>) -> Vec<Recipe> {
    beside.retain(|&blocks| blocks > 0);
    beside.dedup();
    let extents = std::iter::once(None).chain(beside.into_iter().map(Some));
    extents
        .map(|blocks| recipe.with(SpillToShared { blocks }))
        .collect()
}

/// What is worth a try for machine code as it is: its spills moved, all or those that fit beside the blocks
/// that reside, and fewer blocks.
pub fn for_machine_code(default: &Candidate, kernel: &Throttled) -> Vec<Recipe> {
    let mut recipes = Vec::new();
    if default.resources().is_some_and(|r| r.spills()) {
        recipes = moved(&Recipe::default(), vec![kernel.resident]);
    }
    if by_registers(kernel.gpu) {
        recipes.extend(throttles(kernel, true));
    }
    recipes
}

/// What loops store, in registers.
const KEPT: Promote = Promote {
    arrays: Arrays::Any,
};

/// What is chosen unmeasured: nothing that may run twice.
pub const KEPT_APART: Promote = Promote {
    arrays: Arrays::Apart,
};

/// Is what loops store kept in registers, where none runs twice, and nothing else done? (`bench/unmeasured.py` has how often that
/// was slower: never by more than its noise.)
pub fn is_kept_apart(recipe: &Recipe) -> bool {
    recipe.passes() == [KEPT_APART.into()]
}

/// Limits that unrolled loops are tried at.
const MOST_UNROLLED: usize = 2;
/// Iterations that stand behind each other.
const FACTORS: [u32; 2] = [4, 8];

/// PTX that is worth measuring only, because the model tells neither loads that begin early nor what caches keep: unrolled
/// loops, also at the best limits, since they want registers; what loops store, in registers; loops that ptxas is not to
/// unroll; hints to the caches.
pub fn loops_and_caches(scored: &[Candidate]) -> Vec<Recipe> {
    let mut limits: Vec<&Candidate> = scored
        .iter()
        .filter(|c| c.is_open() && register_limit(&c.recipe).is_some())
        .collect();
    limits.sort_by(|a, b| predicted(a).total_cmp(&predicted(b)));
    let plain = Recipe::default();
    let limits = limits.into_iter().take(MOST_UNROLLED).map(|c| &c.recipe);
    let starts: Vec<&Recipe> = std::iter::once(&plain).chain(limits).collect();
    let by = |factor| Unroll {
        factor,
        tests: Tests::Auto,
        line: None,
        nth: None,
    };
    let before =
        |pass: Recipe, start: &Recipe| start.passes().iter().cloned().fold(pass, |r, p| r.with(p));
    let mut recipes: Vec<Recipe> = FACTORS
        .iter()
        .flat_map(|&factor| {
            starts
                .iter()
                .map(move |start| before(plain_with(by(factor)), start))
        })
        .collect();
    let kept = plain.with(KEPT);
    recipes.extend([kept.clone(), kept.with(by(FACTORS[0]))]);
    recipes.push(plain.with(by(1)));
    recipes.extend(hints().map(|hint| plain.with(hint)));
    recipes.push(plain.with(by(FACTORS[0])).with(hints()[0]));
    recipes
}

/// Hints to the caches that are worth a try.
fn hints() -> [Cache; 4] {
    let own = Cache {
        loads: LoadPolicy::Own,
        prefetch: Prefetch::Own,
        stores: StorePolicy::Own,
    };
    [
        Cache {
            prefetch: Prefetch::Bytes256,
            ..own
        },
        Cache {
            prefetch: Prefetch::Bytes128,
            ..own
        },
        Cache {
            loads: LoadPolicy::NoAllocate,
            ..own
        },
        Cache {
            stores: StorePolicy::Streaming,
            ..own
        },
    ]
}

/// What is known where the choices of a search are made.
#[derive(Debug, Clone, Copy)]
pub struct Choices<'a> {
    /// What is the same at all launches: the most first.
    pub constants: &'a [Guard],
    /// Threads per block and blocks of all launches, where they may have another shape.
    pub launch: Option<[[u32; 3]; 2]>,
    /// May ptxas's options be used? They hold for a whole module.
    pub module_options: bool,
    /// The architecture, 90 for sm_90.
    pub sm: u32,
}

/// Shapes that a search chooses among.
const MOST_SHAPES: usize = 6;

/// Other blocks than this one: halves, doubles and quarters along its axes, the nearest first. The pass knows which are
/// right.
fn blocks(from: [u32; 3]) -> Vec<[u32; 3]> {
    let sides = |axis: usize| -> Vec<u32> {
        let n = from[axis];
        match axis > 0 && n == 1 {
            true => vec![1],
            false => vec![n, n * 2, n / 2, n * 4, n / 4],
        }
    };
    let threads = |block: [u32; 3]| block.iter().product::<u32>();
    let far = |block: [u32; 3]| {
        let log = |n: u32| f64::from(n).log2();
        let sides = (0..3).map(|axis| (log(block[axis]) - log(from[axis])).abs());
        let all = (log(threads(block)) - log(threads(from))).abs();
        (all * 4.0) as u32 + (sides.sum::<f64>() * 2.0) as u32
    };
    let mut all = Vec::new();
    for x in sides(0) {
        for y in sides(1) {
            all.extend(sides(2).into_iter().map(|z| [x, y, z]));
        }
    }
    all.retain(|&block| {
        let size = threads(block);
        block != from && (WARP_SIZE..=THREADS_PER_BLOCK).contains(&size)
    });
    all.sort_by_key(|&block| (far(block), block));
    all.truncate(MOST_SHAPES);
    all
}

/// The axes of a search, in their order.
pub const AXES: [&str; 9] = [
    "shape",
    "constants",
    "promote",
    "unroll",
    "cache",
    "registers",
    "name",
    "spills",
    "order",
];

/// Register limits that a search chooses among.
const MOST_SEARCHED: usize = 8;

/// The choices of a [search](crate::search) for a kernel of which there are these builds.
pub fn axes(facts: &Choices<'_>, scored: &[Candidate]) -> Vec<Axis> {
    let axis = |name, wants, values| Axis {
        name,
        values,
        wants,
    };
    let constants = facts.constants.iter();
    let constants = constants.map(|guard| vec![Specialize::of(guard).into()]);
    let mut limits: Vec<&Candidate> = scored
        .iter()
        .filter(|c| register_limit(&c.recipe).is_some() && c.same_code_as().is_none())
        .collect();
    limits.sort_by(|a, b| predicted(a).total_cmp(&predicted(b)));
    let limits = limits.into_iter().filter_map(|c| register_limit(&c.recipe));
    let limits = limits.take(MOST_SEARCHED);
    let mut registers: Vec<Vec<Invocation>> = limits
        .map(|registers| vec![MaxNReg { registers }.into()])
        .collect();
    let mut names: Vec<Vec<Invocation>> = Vec::new();
    if facts.module_options {
        registers.extend([0, 10].map(|level| vec![UsageLevel { level }.into()]));
        names.push(vec![Rename {}.into()]);
    }
    let unroll = |factor| {
        vec![
            Unroll {
                factor,
                tests: Tests::Auto,
                line: None,
                nth: None,
            }
            .into(),
        ]
    };
    // Neighbours of one iteration, and of four.
    let vectors = || Vectorize { bytes: 16 }.into();
    let mut loops: Vec<Vec<Invocation>> = [4, 8, 1, 2].map(unroll).into();
    loops.extend([vec![vectors()], [unroll(4), vec![vectors()]].concat()]);
    let orders: Vec<Vec<Invocation>> = match ran_right(EditedCode::ControlFields, facts.sm) {
        true => [ScheduleBy::Height, ScheduleBy::Place]
            .map(|by| vec![Schedule::tried(by, 0).into()])
            .into(),
        false => Vec::new(),
    };
    let mut spills: Vec<Vec<Invocation>> = vec![
        vec![SpillToShared { blocks: None }.into()],
        vec![SmemSpilling {}.into()],
    ];
    if !orders.is_empty() {
        let fewer = || Demote::to(Target::Auto).into();
        spills.extend([vec![fewer()], [spills[0].clone(), vec![fewer()]].concat()]);
    }
    let shapes = facts.launch.into_iter().flat_map(|[from, grid]| {
        blocks(from).into_iter().map(move |block| {
            vec![
                Reshape {
                    block,
                    from: Some(from),
                    grid: Some(grid),
                }
                .into(),
            ]
        })
    });
    vec![
        axis("shape", None, shapes.collect()),
        axis("constants", None, constants.collect()),
        axis("promote", None, vec![vec![KEPT.into()]]),
        axis("unroll", Some("registers"), loops),
        axis("cache", None, hints().map(|hint| vec![hint.into()]).into()),
        axis("registers", None, registers),
        axis("name", None, names),
        axis("spills", Some("registers"), spills),
        axis("order", None, orders),
    ]
}

fn plain_with(pass: Unroll) -> Recipe {
    Recipe::default().with(pass)
}

/// The predicted time, for sorting; without one a candidate comes last.
pub(crate) fn predicted(candidate: &Candidate) -> f64 {
    candidate.score().map_or(f64::INFINITY, |s| s.relative_time)
}

/// The register limit, if the recipe is that alone.
pub fn register_limit(recipe: &Recipe) -> Option<u32> {
    let [limit] = recipe.passes() else {
        return None;
    };
    Some(limit.get::<MaxNReg>()?.registers)
}

/// A register limit that our own passes are tried at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// Registers per thread.
    pub registers: u32,
    /// Blocks that reside when ptxas keeps to it.
    pub blocks: u32,
}

/// Where our own passes are worth their builds: the next stair below the natural need, which gives one
/// block more (You & Tsai), and the limits under which ptxas spills that the model likes best.
/// `scored` are the candidates so far.
pub fn goals(situation: &Situation, scored: &[Candidate]) -> Vec<Goal> {
    let goal = |c: &Candidate| {
        Some(Goal {
            registers: register_limit(&c.recipe)?,
            blocks: c.residency()?.blocks,
        })
    };
    let below = |g: &Goal| g.registers < situation.natural;
    let next = scored.iter().filter_map(goal).filter(below);
    let mut goals: Vec<Goal> = next.max_by_key(|g| g.registers).into_iter().collect();
    let mut spilling: Vec<(f64, Goal)> = scored
        .iter()
        .filter(|c| c.resources().is_some_and(|r| r.spills()))
        .filter_map(|c| Some((c.score()?.relative_time, goal(c)?)))
        .filter(|(_, g)| below(g) && !goals.contains(g))
        .collect();
    spilling.sort_by(|a, b| a.0.total_cmp(&b.0));
    goals.extend(spilling.into_iter().map(|(_, g)| g));
    goals.truncate(MOST_GOALS);
    goals
}

/// The third round: CRAT's allocator at each goal. ptxas is held to the limit as well, because its
/// scheduler adds pressure of its own. (You & Tsai's passes need the controller: [`crate::explore`].)
pub fn third_round(goals: &[Goal]) -> Vec<Recipe> {
    let at = |&Goal { registers, blocks }: &Goal| {
        Recipe::default()
            .with(Allocate::new(registers, Some(blocks)))
            .with(MaxNReg { registers })
    };
    goals.iter().map(at).collect()
}

/// The kernel for the launch that is stated: with the original behind a branch at the entry, and by itself.
pub fn at_launch(guard: &Guard) -> (Recipe, Recipe) {
    let alone = Specialize::of(guard);
    let both = Specialize {
        guarded: true,
        ..alone.clone()
    };
    (Recipe::default().with(both), Recipe::default().with(alone))
}

/// Is it the version for a launch, with the original beside it, and nothing else?
pub fn is_version(recipe: &Recipe) -> bool {
    let version = recipe.find::<Specialize>();
    recipe.passes().len() == 1 && version.is_some_and(|version| version.guarded)
}

/// The kernel for the launch that is stated, with the original behind a branch at the entry, alone and at the limits
/// that the model likes best. For measurement alone: the model sees both versions and weighs them alike.
pub fn specialised(guard: &Guard, scored: &[Candidate]) -> Vec<Recipe> {
    let (special, _) = at_launch(guard);
    let mut limits: Vec<&Candidate> = (scored.iter())
        .filter(|candidate| register_limit(&candidate.recipe).is_some())
        .collect();
    limits.sort_by(|a, b| predicted(a).total_cmp(&predicted(b)));
    let limited = limits.iter().take(MOST_SPECIALISED);
    let limited = limited.filter_map(|candidate| register_limit(&candidate.recipe));
    let limited = limited.map(|registers| special.with(MaxNReg { registers }));
    [special.clone()].into_iter().chain(limited).collect()
}

/// A kernel that may be throttled.
#[derive(Debug, Clone, Copy)]
pub struct Throttled<'a> {
    /// The target.
    pub gpu: &'a Gpu,
    /// What the default build takes.
    pub need: &'a Resources,
    /// Blocks of the default build that reside.
    pub resident: u32,
    /// The static OptTLP.
    pub opt_tlp: Option<u32>,
    /// Must PTX text alone carry the decision?
    pub ptx_only: bool,
}

/// The default's code with fewer resident blocks: at the static OptTLP, and for `profiling` also at
/// a half, a quarter and an eighth, so that OptTLP can be found by measuring.
pub fn throttles(kernel: &Throttled, profiling: bool) -> Vec<Recipe> {
    let all = kernel.resident;
    let mut wanted: Vec<u32> = kernel.opt_tlp.into_iter().collect();
    if profiling {
        wanted.extend([all / 2, all.div_ceil(4), all.div_ceil(8)]);
    }
    let by = match by_registers(kernel.gpu) && !kernel.ptx_only {
        true => ThrottleBy::Registers,
        false => ThrottleBy::SharedMemory,
    };
    let is_possible = |blocks: u32| match by {
        ThrottleBy::Registers => registers_for(kernel.gpu, kernel.need, blocks).is_some(),
        ThrottleBy::SharedMemory => array_for(kernel.gpu, kernel.need, blocks).is_some(),
    };
    let possible: Vec<u32> = (1..all).filter(|&blocks| is_possible(blocks)).collect();
    let mut counts: Vec<u32> = Vec::new();
    for blocks in wanted.into_iter().filter(|&blocks| blocks < all) {
        let nearest = possible.iter().min_by_key(|p| p.abs_diff(blocks));
        counts.extend(nearest.filter(|nearest| !counts.contains(nearest)));
    }
    counts.truncate(MOST_THROTTLES);
    let recipe = |blocks| Recipe::default().with(Throttle { blocks, by });
    counts.into_iter().map(recipe).collect()
}

/// What people sweep by hand, as peers for measuring. `block_counts` are the resident blocks that
/// some register count gives, `resident` those of the default build.
pub fn peers(
    situation: &Situation,
    peers: Peers,
    block_counts: &[u32],
    resident: u32,
) -> Vec<Recipe> {
    let limits: Vec<u32> = match peers {
        Peers::None | Peers::Spills => return Vec::new(),
        Peers::Usual => vec![32, 48, 64, 80, 96, 128, 168],
        Peers::All => (FEWEST_REGISTERS..MOST_REGISTERS)
            .step_by(8)
            .chain([MOST_REGISTERS])
            .collect(),
    };
    let limit = |registers| Recipe::default().with(MaxNReg { registers });
    let mut recipes: Vec<Recipe> = limits.into_iter().map(limit).collect();
    if let Some(threads) = situation.promised_block {
        let bounded = Recipe::default().with(MaxNTid { threads });
        recipes.push(bounded.clone());
        let is_wanted = |blocks: u32| match peers {
            Peers::All => true,
            _ => blocks == resident + 1 || blocks == 2 * resident,
        };
        for &blocks in block_counts.iter().filter(|&&blocks| is_wanted(blocks)) {
            recipes.push(bounded.with(MinNCtaPerSm { blocks }));
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
    thin(limits, natural)
}

/// Drops limits, the ones closest to their neighbours first, until few enough are left. The next one
/// above the natural need and the next two below it stay, and so do the ends.
fn thin(mut limits: Vec<u32>, natural: u32) -> Vec<u32> {
    while limits.len() > MOST_LIMITS {
        let above = limits.partition_point(|&r| r < natural);
        let stays = |at: usize| (at..=at + 2).contains(&above);
        let gap = |at: usize| f64::from(limits[at + 1]) / f64::from(limits[at - 1]);
        let inner = (1..limits.len() - 1).filter(|&at| !stays(at));
        let Some(closest) = inner.min_by(|&a, &b| gap(a).total_cmp(&gap(b))) else {
            break;
        };
        limits.remove(closest);
    }
    limits
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn other_blocks_are_near_and_can_be_launched() {
        let near = blocks([256, 1, 1]);
        assert_eq!(near[..2], [[128, 1, 1], [512, 1, 1]]);
        let flat = blocks([16, 16, 1]);
        assert!(
            flat.contains(&[32, 8, 1]) && flat.contains(&[8, 32, 1]),
            "{flat:?}"
        );
        for from in [[1, 1, 1], [1024, 1, 1], [7, 5, 3], [32, 32, 1]] {
            let all = blocks(from);
            assert!(all.len() <= MOST_SHAPES && !all.contains(&from));
            let size = |block: &[u32; 3]| block.iter().product::<u32>();
            assert!(all.iter().all(|block| (32..=1024).contains(&size(block))));
        }
    }

    #[test]
    fn the_axes_have_their_names() {
        let facts = Choices {
            constants: &[],
            launch: None,
            module_options: true,
            sm: 90,
        };
        let names: Vec<&str> = axes(&facts, &[]).iter().map(|axis| axis.name).collect();
        assert_eq!(names, AXES);
    }

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
    fn many_stairs_are_thinned_but_not_beside_the_natural_need() {
        let stairs: Vec<u32> = (3..=31).map(|n| 8 * n).collect();
        let limits = limits(100, &stairs);
        assert_eq!(limits.len(), MOST_LIMITS);
        for kept in [24, 88, 96, 104, 255] {
            assert!(limits.contains(&kept), "{kept}: {limits:?}");
        }
    }

    #[test]
    fn usage_levels_only_for_a_module_with_one_kernel() {
        let mut situation = Situation {
            natural: 64,
            stairs: &[64, 80],
            promised_block: Some(256),
            module_options: false,
            shared_spilling: true,
            spill_to_shared: true,
        };
        assert!(
            first_round(&situation)
                .iter()
                .all(|r| r.find::<UsageLevel>().is_none())
        );
        situation.module_options = true;
        assert_eq!(
            first_round(&situation)
                .iter()
                .filter(|r| r.find::<UsageLevel>().is_some())
                .count(),
            2
        );
    }

    pub(crate) fn limited(registers: u32, blocks: u32, spills: u32, time: f64) -> Candidate {
        let recipe = Recipe::default().with(MaxNReg { registers });
        let resources = crate::candidate::Resources {
            registers,
            spill_store_bytes: spills,
            ..Default::default()
        };
        let mut c = Candidate::built(recipe, resources);
        let figures = c.figures_mut().unwrap();
        figures.residency = Some(crate::candidate::Residency {
            blocks,
            warps: 8 * blocks,
            percent: 12.5 * f64::from(blocks),
            limiters: Vec::new(),
        });
        figures.score = Some(crate::candidate::Score {
            relative_time: time,
            bound: "latency".into(),
            turns: crate::candidate::Turns::None,
            contention: 1.0,
            active_warps: 0,
            is_trade: false,
            judgement: None,
            tpsc: None,
        });
        c
    }

    #[test]
    fn our_passes_go_for_one_block_more_and_for_the_best_that_spill() {
        let situation = Situation {
            natural: 90,
            stairs: &[],
            promised_block: Some(256),
            module_options: true,
            shared_spilling: true,
            spill_to_shared: true,
        };
        let scored = [
            limited(32, 8, 400, 1.6),
            limited(40, 6, 200, 1.1),
            limited(48, 5, 90, 0.8),
            limited(64, 4, 40, 0.9),
            limited(80, 3, 0, 0.95),
            limited(128, 2, 0, 1.2),
        ];
        let found = goals(&situation, &scored);
        let registers: Vec<u32> = found.iter().map(|g| g.registers).collect();
        assert_eq!(registers, [80, 48, 64]);
        assert_eq!(
            third_round(&found[..1])
                .iter()
                .map(Recipe::label)
                .collect::<Vec<_>>(),
            ["allocate-80x3+maxnreg-80"]
        );
        let second = second_round(&situation, &scored);
        let names: Vec<String> = second.iter().map(Recipe::label).collect();
        assert_eq!(
            names[0], "maxnreg-48+maxntid-256+smem",
            "the model's favourite first"
        );
        assert_eq!(
            names[MOST_SHARED..][..2],
            [
                "maxnreg-48+maxntid-256+spill-to-shared",
                "maxnreg-48+maxntid-256+spill-to-shared-x5"
            ],
            "all slots, and as many as leave the blocks alone"
        );
        assert_eq!(names.len(), 3 * MOST_SHARED);
        let more: Vec<Candidate> = scored
            .into_iter()
            .chain([limited(24, 10, 900, 2.0)])
            .collect();
        let second = second_round(&situation, &more);
        let edits = second.iter().filter(|recipe| !recipe.fits_ptx());
        assert_eq!(edits.count(), 2 * 5, "our own edit at every limit");
        assert_eq!(second.len(), MOST_SHARED + 2 * 5);
        assert_eq!(all_spilling(&situation, &more).len(), 5 * 5);
    }

    #[test]
    fn unrolled_loops_are_tried_at_the_best_limits() {
        let scored = [
            limited(48, 5, 90, 0.8),
            limited(64, 4, 40, 0.9),
            limited(80, 3, 0, 0.95),
        ];
        let names: Vec<String> = loops_and_caches(&scored)
            .iter()
            .map(Recipe::to_string)
            .collect();
        assert_eq!(
            names[..3],
            [
                "unroll(4)",
                "unroll(4); maxnreg(48)",
                "unroll(4); maxnreg(64)"
            ]
        );
        assert!(names.contains(&"unroll(1)".to_owned()));
        assert!(names.contains(&"unroll(4); cache(prefetch=256B)".to_owned()));
        assert!(names.contains(&"promote; unroll(4)".to_owned()));
        assert_eq!(names.len(), 2 * 3 + 2 + 1 + 4 + 1);
        assert!(loops_and_caches(&scored).iter().all(is_rewritten));
    }

    #[test]
    fn limits_are_built_downwards_and_a_few_at_a_time() {
        let limit = |registers| Recipe::default().with(MaxNReg { registers });
        let recipes = [24, 32, 40, 48, 56, 64, 72, 80, 96, 128].map(limit);
        let steps = steps(90, recipes.to_vec());
        let registers: Vec<Vec<u32>> = steps
            .iter()
            .map(|step| step.iter().filter_map(register_limit).collect())
            .collect();
        assert_eq!(
            registers,
            [vec![96, 128, 80, 72, 64], vec![56, 48, 40, 32], vec![24]]
        );
        assert!(is_hopeless(&limited(48, 5, 90, 1.6)));
        assert!(!is_hopeless(&limited(48, 5, 90, 1.4)));
        let mut unknown = limited(48, 5, 90, 1.0);
        unknown.figures_mut().unwrap().score = None;
        assert!(!is_hopeless(&unknown), "nothing is predicted");
    }

    #[test]
    fn throttles_are_below_the_default_and_possible() {
        let gpu = warpwright_target::lookup("h200").unwrap();
        let need = Resources::new(40, 256);
        let mut kernel = Throttled {
            gpu: &gpu,
            need: &need,
            resident: 6,
            opt_tlp: Some(4),
            ptx_only: false,
        };
        let names = |k: &Throttled, profiling| -> Vec<String> {
            let recipes = throttles(k, profiling);
            recipes.iter().map(Recipe::label).collect()
        };
        assert_eq!(names(&kernel, false), ["throttle-4"]);
        assert_eq!(
            names(&kernel, true),
            ["throttle-4", "throttle-3", "throttle-2", "throttle-1"]
        );
        kernel.ptx_only = true;
        assert_eq!(names(&kernel, false), ["throttle-4-smem"]);
        kernel.opt_tlp = Some(6);
        assert!(names(&kernel, false).is_empty(), "as many as reside anyway");
        let small = Resources::new(20, 64);
        let kernel = Throttled {
            need: &small,
            resident: 32,
            opt_tlp: Some(5),
            ptx_only: false,
            ..kernel
        };
        assert_eq!(
            names(&kernel, false),
            ["throttle-4"],
            "registers come in steps"
        );
    }
}
