//! The hot kernels of a program: what is tried for each, and what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use warpwright_api::Error;
use warpwright_api::front::parse;
use warpwright_api::trace::{GpuFacts, Launched, Stayed, Trace};
use warpwright_driver::search::{Axis, Search};
use warpwright_pass::Recipe;
use warpwright_pass::names::is_named;
use warpwright_report::edit::{Edit, edit_in_place};
use warpwright_target::Gpu;
use warpwright_winners::lines::{IN_GRAPH, Likeness, Occasion, Planned, Searched, allowance};
use warpwright_winners::{Guard, LaunchClass, Standing, Winner};

use crate::candidates::{Code, Proposed, Wanted, is_original, make, propose};
use crate::judge::is_of_the_best;
use crate::search::Searching;
use crate::space::Space;
use crate::weigh::launches_of;
use warpwright_api::trace::shortened;

use crate::Tools;

/// Kernels with less of the GPU time than this are left alone.
const LEAST_SHARE: f64 = 0.01;
/// Launches shorter than this are left alone: what could be gained is lost in the launch.
const SHORTEST_NS: u64 = 3000;
/// At most so many pairs of kernel and launch class.
const MOST_TARGETS: usize = 16;

/// Values with less of a kernel's time get no version of their own.
const LEAST_OF_VALUES: f64 = 0.1;
/// The same of those beyond the heaviest.
const MOST_VALUES: usize = 4;

/// Versions that are tried of a kernel that gets no more while the program runs.
const MOST_AT_ONCE: usize = 16;
/// All searches together may take so many times the budget of one kernel.
const SEARCHES: u32 = 6;
/// A kernel's search may take this part of its budget even where the hotter ones have used up all.
const LEAST_OF_BUDGET: f64 = 0.2;

/// A kernel in a launch class, and what is tried for it.
pub struct Target {
    /// Its launches.
    pub launched: Launched,
    /// The digest of its code.
    pub digest: String,
    /// Their class.
    pub class: LaunchClass,
    /// What is tried.
    pub proposed: Vec<Proposed>,
    /// The search for more.
    pub searching: Option<Searching>,
    /// At which launches of a process.
    pub(crate) when: Occasion,
    /// Has the kernel launch bounds?
    pub(crate) has_bounds: bool,
    /// May last bits of results differ (`--fp`)?
    pub(crate) may_round: bool,
    /// What came of it.
    pub verdict: Verdict,
}

impl Target {
    /// What candidates are wanted for.
    pub fn wanted<'a>(&'a self, code: &'a Code, gpu: &'a Gpu) -> Wanted<'a> {
        let stayed = self.launched.stayed.as_ref();
        Wanted {
            cubin: &code.cubin,
            ptx: code.ptx.as_deref(),
            kernel: &self.launched.kernel,
            digest: &self.digest,
            class: self.class,
            blocks: self.launched.blocks(),
            grid: stayed.filter(|s| s.grid).map(|_| self.launched.grid),
            may_be_shaped: !self.launched.cooperative && self.class.cluster == [0; 3],
            stayed,
            gpu,
            may_round: self.may_round,
        }
    }

    /// A candidate as the plan has it.
    pub fn planned(&self, proposed: &Proposed, file: String) -> Planned {
        Planned {
            kernel: self.digest.clone(),
            class: self.class,
            when: self.when.clone(),
            candidate: proposed.name.clone(),
            file,
            symbol: self.launched.kernel.clone(),
            likeness: proposed.likeness,
            guard: proposed.guard.clone(),
            shape: proposed.shape,
        }
    }

    /// What is tried first, and what a search that may take so long chooses among.
    fn start(
        &mut self,
        tools: Tools<'_>,
        most: Duration,
        space: Option<&Space>,
    ) -> Result<(), Error> {
        let code = Code::read(tools.modules, &self.launched)?;
        self.has_bounds = code.has_bounds(&self.launched.kernel);
        let start = propose(tools.watch, &self.wanted(&code, tools.gpu), tools.toolkit);
        self.proposed = start.proposed;
        if let (true, Some(space)) = (start.is_searched, space) {
            let axes = space.of(start.axes);
            self.tell_left_out(tools, &axes);
            self.searching = Some(Searching::exhaustive(axes, &self.proposed));
            return Ok(());
        }
        let mut search = Search::new(start.axes);
        if start.is_searched {
            self.searching = Some(Searching::new(search, most, &self.proposed));
        } else if let Some(toolkit) = tools.toolkit {
            // All that its module can get is there when that is loaded.
            let points = search.next(MOST_AT_ONCE);
            let recipes: Vec<_> = points.iter().map(|p| search.recipe(p)).collect();
            // PTX that ptxas refuses has no axes.
            if !recipes.is_empty() {
                let made = make(&self.wanted(&code, tools.gpu), toolkit, recipes)?;
                self.add(made.into_iter().flatten());
            }
        }
        if !self.is_tried() {
            self.verdict = Verdict::Stays("there is no candidate".to_owned());
        }
        Ok(())
    }

    /// Says which points an exhaustive search has, and what it leaves out.
    fn tell_left_out(&self, tools: Tools<'_>, axes: &[(Axis, usize)]) {
        let name = shortened(&self.launched.name);
        let out = axes.iter().filter(|(_, out)| *out > 0).map(|(axis, out)| {
            let all = axis.values.len() + out;
            format!("{out} of {all} of {}", axis.name)
        });
        let out: Vec<String> = out.collect();
        let sizes = axes.iter().map(|(axis, _)| axis.values.len() as u64 + 1);
        let points = sizes.fold(1, u64::saturating_mul) - 1;
        tools.watch.tell(&match out.is_empty() {
            true => format!("{name}: all {points} points"),
            false => format!(
                "{name}: {points} points; values left out: {}",
                out.join(", ")
            ),
        });
    }

    /// The lines of a plan for a run, and the files in its folder that they name. `crashed` are candidates by their kernels'
    /// digests, `before` what others took of the original's time until the program had to be started again.
    ///
    /// # Errors
    /// [`Error::Unread`]: a file cannot be written.
    pub fn plan(
        &mut self,
        number: usize,
        work: &Path,
        crashed: &[(String, String)],
        before: Option<&BTreeMap<String, f64>>,
    ) -> Result<String, Error> {
        let is_out = |name: &str| {
            let mut all = crashed.iter();
            all.any(|(kernel, candidate)| *kernel == self.digest && candidate == name)
        };
        let mut plan = String::new();
        if is_out(IN_GRAPH) {
            return Ok(plan);
        }
        for (index, proposed) in self.proposed.iter().enumerate() {
            let is_slow = before.is_some_and(|ratios| !is_of_the_best(&proposed.name, ratios));
            if is_slow || is_out(&proposed.name) {
                continue;
            }
            let file = format!("{number}-{index}.cubin");
            let path = work.join(&file);
            fs::write(&path, &proposed.cubin).map_err(|error| Error::Unread {
                name: path.display().to_string(),
                error,
            })?;
            plan.push_str(&self.planned(proposed, file).line());
        }
        if let Some(searching) = &mut self.searching {
            searching.begin_again();
            let searched = Searched {
                kernel: self.digest.clone(),
                class: self.class,
                when: self.when.clone(),
                symbol: self.launched.kernel.clone(),
            };
            plan.push_str(&searched.line());
        }
        Ok(plan)
    }

    /// More candidates, each code once.
    fn add(&mut self, made: impl Iterator<Item = Proposed>) {
        for mut proposed in made {
            let is_new = self.proposed.iter().all(|p| p.cubin != proposed.cubin);
            if is_new && !is_original(&proposed, &self.digest) {
                proposed.name = format!("search-{}", self.proposed.len());
                self.proposed.push(proposed);
            }
        }
    }

    /// Did anything win?
    pub fn is_won(&self) -> bool {
        matches!(self.verdict, Verdict::Won { .. })
    }

    /// Is anything tried?
    pub fn is_tried(&self) -> bool {
        !self.proposed.is_empty() || self.searching.is_some()
    }

    /// What would do in the source what a candidate does, which took so much of the original's time.
    pub fn edit(&self, name: &str, time: f64) -> Option<Edit> {
        let mut all = self.proposed.iter();
        let recipe = &all.find(|proposed| proposed.name == name)?.recipe;
        let recipe = recipe.parse::<Recipe>().ok()?;
        edit_in_place(&recipe, &self.launched.name, self.has_bounds, time)
    }

    /// Is it for some launches of its class by themselves?
    pub fn is_for_some(&self) -> bool {
        !self.when.among.is_always()
    }

    /// The part of the GPU time of its launches but those with winners of their own.
    pub fn share_beside(&self, targets: &[Target]) -> f64 {
        let is_part = |t: &&Target| {
            let is_other = t.is_for_some() && t.is_won() && !self.is_for_some();
            is_other && t.digest == self.digest && t.class == self.class
        };
        let parts = targets.iter().filter(is_part).map(|t| t.launched.share);
        (self.launched.share - parts.sum::<f64>()).max(0.0)
    }

    /// The launches that a candidate is for.
    pub fn guard(&self, name: &str) -> Option<Guard> {
        let proposed = self.proposed.iter().find(|p| p.name == name)?;
        let own = self.class.guard().and(&self.when.among);
        Some(own.and(&proposed.guard))
    }

    /// What goes into the store for a kernel, if anything won.
    pub fn winners(&self, gpu: &GpuFacts) -> Vec<Winner> {
        let Verdict::Won {
            name,
            beside,
            original_ns,
            winner_ns,
            ..
        } = &self.verdict
        else {
            return Vec::new();
        };
        let own = (name, *winner_ns);
        let all = std::iter::once(own).chain(beside.iter().map(|(name, ns)| (name, *ns)));
        let winner = |(name, ns): (&String, f64)| {
            let proposed = self.proposed.iter().find(|p| p.name == *name)?;
            let mut proof = proposed.proof.clone();
            proof.push_str(match proposed.likeness {
                Likeness::Bytes => "",
                Likeness::Rounded(_) => ", within the tolerance of --fp",
                Likeness::Spread(_) => {
                    "; sums in no fixed order, within what the original's own runs span"
                }
            });
            Some(Winner {
                kernel: self.digest.clone(),
                gpu: gpu.name.clone(),
                guard: self.guard(name)?,
                shape: proposed.shape,
                symbol: self.launched.kernel.clone(),
                recipe: proposed.recipe.clone(),
                proof,
                original_ns: *original_ns as u64,
                winner_ns: ns as u64,
                driver: gpu.driver.to_string(),
                date: warpwright_gpu::utc_now().chars().take(10).collect(),
                standing: Standing::Measured,
                cubin: proposed.cubin.clone(),
            })
        };
        all.filter_map(winner).collect()
    }

    /// A candidate as it is shown: its recipe, and of what.
    pub fn shown(&self, name: &str) -> String {
        let mut all = self.proposed.iter();
        match all.find(|proposed| proposed.name == name) {
            Some(Proposed { recipe, of, .. }) => format!("{recipe} of the {of}"),
            None => name.to_owned(),
        }
    }
}

/// What came of it.
pub enum Verdict {
    /// A candidate won twice.
    Won {
        /// Its name.
        name: String,
        /// The best of those that are for all launches of the class, if this one is not.
        beside: Option<(String, f64)>,
        /// Nanoseconds of the kernel as it was.
        original_ns: f64,
        /// Nanoseconds of the winner.
        winner_ns: f64,
        /// Time over the original's among the program's other kernels, once that is known.
        in_program: Option<f64>,
    },
    /// The original stays, for this reason.
    Stays(String),
}

/// What is asked for.
pub struct Asked<'a> {
    /// Seconds of the search for one kernel.
    pub budget: f64,
    /// Names of kernels; all hot ones if there is none.
    pub kernels: &'a [String],
    /// May last bits of results differ?
    pub may_round: bool,
    /// Is every point of a space tried, however long that takes?
    pub space: Option<&'a Space>,
}

/// The hot kernels with their candidates, or why there are none.
///
/// # Errors
/// A module cannot be read, or versions of its PTX cannot be built.
pub fn targets(tools: Tools<'_>, asked: &Asked<'_>, trace: &Trace) -> Result<Vec<Target>, Error> {
    let budget = Duration::from_secs_f64(asked.budget);
    let mut left = budget * SEARCHES;
    let is_wanted = |l: &&Launched| {
        let named = asked.kernels;
        named.is_empty() || named.iter().any(|name| is_named(name, &l.kernel))
    };
    let hot = trace.launches.iter();
    let hot = hot.filter(is_wanted);
    let mut targets = Vec::new();
    let each = hot.take(MOST_TARGETS).flat_map(|launched| {
        let all = std::iter::once((launched.clone(), Guard::always()));
        all.chain(by_value(tools.modules, launched))
    });
    let mut each: Vec<(Launched, Guard)> = each.filter(|(l, _)| l.share >= LEAST_SHARE).collect();
    each.sort_by(|(a, _), (b, _)| b.share.total_cmp(&a.share));
    each.truncate(MOST_TARGETS);
    for (launched, among) in each {
        let Some(class) = launched.class() else {
            continue;
        };
        let each = launched.gpu_ns / (launched.launches + launched.in_graphs).max(1);
        let mut target = Target {
            // Without one the module was not seen, and the kernel is tied.
            digest: launched.digest.clone().unwrap_or_default(),
            class,
            proposed: Vec::new(),
            searching: None,
            when: Occasion {
                among,
                ..occasion(&launched, trace.processes)
            },
            launched,
            has_bounds: false,
            may_round: asked.may_round,
            verdict: Verdict::Stays("it was not launched again".into()),
        };
        match refused(&target, each) {
            Some(why) => target.verdict = Verdict::Stays(why),
            None => {
                let own = Duration::from_nanos(each).as_secs_f64();
                let allowed = Duration::from_secs_f64(allowance(asked.budget, own));
                let most = left.max(budget.mul_f64(LEAST_OF_BUDGET)).min(allowed);
                left = left.saturating_sub(allowed);
                target.start(tools, most, asked.space)?;
            }
        }
        targets.push(target);
    }
    Ok(targets)
}

/// Launches of a kernel that are worth versions of their own: those with a value that few of its numbers take, each with the
/// condition that tells them apart. What is another number at each launch is in none; pointers never are.
fn by_value(modules: &Path, launched: &Launched) -> Vec<(Launched, Guard)> {
    let mut found = told_apart(modules, launched).unwrap_or_default();
    let (_, all_ns) = launches_of(launched);
    for (own, _) in &mut found {
        own.share = launched.share * own.gpu_ns as f64 / all_ns.max(1.0);
    }
    found.retain(|(own, _)| {
        let is_heavy = own.gpu_ns as f64 >= all_ns * LEAST_OF_VALUES;
        // Once is no value, and all launches are one of the others.
        let is_some = (2..launched.launches).contains(&own.launches);
        is_heavy && is_some && own.class() == launched.class()
    });
    found.sort_by_key(|(own, _)| std::cmp::Reverse(own.gpu_ns));
    found.truncate(MOST_VALUES);
    found
}

/// The launches of a kernel by the numbers that it reads; nothing where those are not known.
fn told_apart(modules: &Path, launched: &Launched) -> Option<Vec<(Launched, Guard)>> {
    // Nothing is known of the values in graphs.
    let stayed = launched
        .stayed
        .as_ref()
        .filter(|_| launched.in_graphs == 0)?;
    if launched.values.is_empty() {
        return None;
    }
    let text = Code::read(modules, launched).ok()?.ptx?;
    let module = parse(&launched.kernel, &text).ok()?;
    let kernel = module.function(&launched.kernel)?;
    let always = stayed.numbers(&module, kernel);
    let mut found: Vec<(Launched, Guard)> = Vec::new();
    for valued in &launched.values {
        let own = Stayed {
            grid: valued.grid.is_some(),
            parameters: valued.parameters.clone(),
            places: stayed.places.clone(),
        };
        let numbers = own.numbers(&module, kernel);
        let others = numbers.conditions();
        let others = others.filter(|c| !always.conditions().any(|known| known == *c));
        let among = others.fold(Guard::always(), Guard::with);
        if among.is_always() {
            continue;
        }
        match found.iter_mut().find(|(_, other)| *other == among) {
            // They differ in what the kernel does not read, or in their grids.
            Some((known, _)) => {
                known.launches += valued.launches;
                known.gpu_ns += valued.gpu_ns;
                if let Some(stayed) = &mut known.stayed {
                    stayed.grid &= valued.grid == Some(known.grid);
                }
            }
            None => {
                let own = Launched {
                    grid: valued.grid.unwrap_or(launched.grid),
                    launches: valued.launches,
                    gpu_ns: valued.gpu_ns,
                    stayed: Some(own),
                    values: Vec::new(),
                    ..launched.clone()
                };
                found.push((own, among));
            }
        }
    }
    Some(found)
}

/// Why nothing is tried for a kernel whose launches take so many nanoseconds.
fn refused(target: &Target, each: u64) -> Option<String> {
    match &target.launched.tied {
        Some(why) => Some(why.clone()),
        None if target.digest.is_empty() => Some("its code is not known".into()),
        None if each < SHORTEST_NS => Some(format!("its launches take {each} ns")),
        None => None,
    }
}

/// When candidates for a kernel are tried: a third and two thirds into the launches of a process. Nodes of graphs are where
/// nothing else is; what one of them takes is not known.
fn occasion(launched: &Launched, processes: u32) -> Occasion {
    let in_graphs = launched.launches == 0;
    let all = match in_graphs {
        true => launched.in_graphs,
        false => launched.launches,
    };
    let launches = (all / u64::from(processes.max(1))).max(1);
    let (count, ns) = launches_of(launched);
    Occasion {
        among: Guard::always(),
        at: [launches / 3, launches * 2 / 3].map(|at| at.min(launches - 1)),
        own_ns: if in_graphs {
            0
        } else {
            (ns / count.max(1.0)) as u64
        },
        in_graphs,
    }
}
