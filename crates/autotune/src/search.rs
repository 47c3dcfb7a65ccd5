//! The search for better versions while the program waits at a launch: the library asks, this process builds and proves
//! what [`warpwright_driver::search`] names, until nothing promises more or the time is used up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use warpwright_api::Error;
use warpwright_api::trace::notes;
use warpwright_diag::count as counted;
use warpwright_driver::search::{Axis, Point, Search, points};
use warpwright_winners::lines::{Planned, answer_file, is_ask, parse_searches};
use warpwright_winners::store::write_whole;

use crate::candidates::{Code, Proposed, is_original, make};
use crate::judge::{is_told, ratios};
use crate::target::Target;
use warpwright_api::trace::shortened;

use crate::Tools;

/// Versions that are built at a time.
pub const BATCH: usize = 8;
/// How often progress is told.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// What is known of the search for a kernel.
pub struct Searching {
    /// What was found so far.
    pub(crate) search: Search,
    /// The candidate that each point is which is not the original.
    pub(crate) made: BTreeMap<Point, String>,
    /// How many values of axes are left out.
    pub(crate) left_out: BTreeMap<&'static str, usize>,
    /// The points of candidates that are being timed, by their names: recipes may come to the same code.
    pending: BTreeMap<String, Vec<Point>>,
    /// Code that was built, and the candidate that it is.
    known: BTreeMap<Vec<u8>, String>,
    /// Time that it may still take.
    left: Duration,
    /// When the program was answered last: until it asks again it times.
    answered: Option<Instant>,
    told: Option<Instant>,
}

impl Searching {
    /// A search that may take so long, beside candidates that are there already.
    pub fn new(search: Search, allowed: Duration, proposed: &[Proposed]) -> Searching {
        let known = proposed.iter().map(|p| (p.cubin.clone(), p.name.clone()));
        Searching {
            made: BTreeMap::new(),
            left_out: BTreeMap::new(),
            search,
            pending: BTreeMap::new(),
            known: known.collect(),
            left: allowed,
            answered: None,
            told: None,
        }
    }

    /// One of every point, however long that takes. Each axis comes with how many of its values are left out.
    pub fn exhaustive(axes: Vec<(Axis, usize)>, proposed: &[Proposed]) -> Searching {
        let left_out = axes.iter().filter(|(_, out)| *out > 0);
        let left_out = left_out.map(|(axis, out)| (axis.name, *out)).collect();
        let search = Search::exhaustive(axes.into_iter().map(|(axis, _)| axis).collect());
        Searching {
            left_out,
            ..Searching::new(search, Duration::MAX, proposed)
        }
    }

    /// The program has ended in the middle, and begins again.
    pub fn begin_again(&mut self) {
        self.pending.clear();
        self.answered = None;
        self.search.forget_asked();
    }

    /// Time has passed.
    fn spend(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }
}

/// Who answers the library's questions.
pub struct Builder<'a> {
    tools: Tools<'a>,
    /// The folder of the plan.
    work: &'a Path,
    answered: BTreeSet<PathBuf>,
}

impl<'a> Builder<'a> {
    /// Nothing is answered yet.
    pub fn new(tools: Tools<'a>, work: &'a Path) -> Builder<'a> {
        Builder {
            tools,
            work,
            answered: BTreeSet::new(),
        }
    }

    /// Answers what was asked since the last time. A question that cannot be answered ends the search for its kernel.
    pub fn answer(&mut self, targets: &mut [Target]) {
        let entries = std::fs::read_dir(self.work).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(name) = name.filter(|name| is_ask(name)) else {
                continue;
            };
            if !self.answered.insert(path.clone()) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let asked = parse_searches(&text).into_iter().next();
            let number = asked.and_then(|asked| {
                let mut all = targets.iter();
                let is_it = |t: &Target| t.digest == asked.kernel && t.class == asked.class;
                all.position(|t| is_it(t) && t.when.among == asked.when.among)
            });
            let more = number.map(|number| self.more(number, &mut targets[number]));
            let lines: String = match more {
                Some(Ok(planned)) => planned.iter().map(Planned::line).collect(),
                Some(Err(error)) => {
                    self.tools.watch.failed(error);
                    String::new()
                }
                None => String::new(),
            };
            let answer = self.work.join(answer_file(name));
            if let Err(e) = write_whole(&answer, lines.as_bytes()) {
                self.tools
                    .watch
                    .warn(&format!("no answer for the program: {e}"));
                // Where nothing can be written any more, the question becomes an answer that names no candidate.
                let _ = std::fs::rename(&path, &answer);
            }
        }
    }

    /// The next candidates for a kernel; none end its search.
    fn more(&self, number: usize, target: &mut Target) -> Result<Vec<Planned>, Error> {
        let begun = Instant::now();
        let notes = notes(self.work, "trials")?;
        let found = ratios(target, &notes, 1);
        let Some(mut searching) = target.searching.take() else {
            return Ok(Vec::new());
        };
        if let Some(at) = searching.answered {
            searching.spend(begun - at);
        }
        for (name, points) in std::mem::take(&mut searching.pending) {
            let ratio = found.get(&name).copied();
            let is_told = ratio.is_some() || is_told(target, &notes, &name);
            if !is_told {
                searching.known.retain(|_, other| *other != name);
            }
            for point in points {
                match is_told {
                    true => searching.search.found(point, ratio),
                    // There was no time for it.
                    false => searching.search.forget(&point),
                }
            }
        }
        let planned = self.build(number, target, &mut searching, &found, begun);
        searching.spend(begun.elapsed());
        searching.answered = Some(Instant::now());
        let is_over = planned.as_ref().map_or(true, Vec::is_empty);
        self.tell(target, &mut searching, &found, is_over);
        target.searching = Some(searching);
        planned
    }

    fn build(
        &self,
        number: usize,
        target: &mut Target,
        searching: &mut Searching,
        found: &BTreeMap<String, f64>,
        begun: Instant,
    ) -> Result<Vec<Planned>, Error> {
        let Some(toolkit) = self.tools.toolkit else {
            return Ok(Vec::new());
        };
        let mut planned = Vec::new();
        while planned.is_empty() {
            let is_over = begun.elapsed() > searching.left;
            let points = match is_over || self.tools.watch.is_asked_to_end() {
                true => Vec::new(),
                false => searching.search.next(BATCH),
            };
            if points.is_empty() {
                break;
            }
            let recipes = points.iter().map(|p| searching.search.recipe(p)).collect();
            let code = Code::read(self.tools.modules, &target.launched)?;
            let wanted = target.wanted(&code, self.tools.gpu);
            let made = make(&wanted, toolkit, recipes)?;
            for (point, proposed) in points.into_iter().zip(made) {
                let Some(mut proposed) = proposed else {
                    searching.search.found(point, None);
                    continue;
                };
                // The same code takes the same time.
                if is_original(&proposed, &target.digest) {
                    searching.search.found(point, Some(1.0));
                    continue;
                }
                if let Some(name) = searching.known.get(&proposed.cubin) {
                    searching.made.insert(point.clone(), name.clone());
                    match searching.pending.get_mut(name) {
                        Some(points) => points.push(point),
                        None => searching.search.found(point, found.get(name).copied()),
                    }
                    continue;
                }
                let made = target.proposed.len();
                proposed.name = format!("search-{made}");
                let file = format!("{number}-search-{made}.cubin");
                let path = self.work.join(&file);
                std::fs::write(&path, &proposed.cubin).map_err(|error| Error::Unread {
                    name: path.display().to_string(),
                    error,
                })?;
                (searching.known).insert(proposed.cubin.clone(), proposed.name.clone());
                (searching.made).insert(point.clone(), proposed.name.clone());
                (searching.pending).insert(proposed.name.clone(), vec![point]);
                planned.push(target.planned(&proposed, file));
                target.proposed.push(proposed);
            }
        }
        Ok(planned)
    }

    /// Progress: kernel, best so far, versions tried, time left.
    fn tell(
        &self,
        target: &Target,
        searching: &mut Searching,
        found: &BTreeMap<String, f64>,
        is_over: bool,
    ) {
        let is_due = searching.told.is_none_or(|at| at.elapsed() > TOLD_EVERY);
        if !is_due && !is_over {
            return;
        }
        searching.told = Some(Instant::now());
        let best = 1.0 / found.values().copied().fold(1.0, f64::min);
        let tried = counted(found.len(), "version");
        let name = shortened(&target.launched.name);
        let search = &searching.search;
        self.tools.watch.tell(&match is_over {
            true => format!("{name}: {tried} tried, {best:.3}× at best"),
            false if search.is_exhaustive() => format!(
                "{name}: {tried} tried, {best:.3}× so far, {} of {} points",
                search.tried(),
                points(search.axes()) - 1
            ),
            false => format!(
                "{name}: {tried} tried, {best:.3}× so far, at most {:.0} s more",
                searching.left.as_secs_f64()
            ),
        });
    }
}
