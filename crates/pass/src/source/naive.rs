//! `tiles`, `team`, `across`, `fours`, `prefix`, `totals`: the points of a naive kernel computed in another way.
//!
//! Goal: a kernel in which a thread computes one output element, tuned (Yang et al., PLDI 2010). What each family does,
//! its sections of the paper and its departures stand in the headers of `warpwright-naive`.
//!
//! Requires a kernel that `warpwright_naive::recognise` understands. Preserves its name, parameters and text, and every
//! bit of its results, but for sums where its pragma says `reassociate`. No proof covers a rewrite: the executor compares
//! it with the kernel as written in the emulator, and what no launch shows there is left out.

use std::collections::BTreeSet;

use warpwright_ladder::{Checked, Rung, Tools};
use warpwright_naive::across::Across;
use warpwright_naive::emit::{Entry, Generated, NoLauncher};
use warpwright_naive::fours::Fours;
use warpwright_naive::prefix::Prefix;
use warpwright_naive::schedule::{Schedule, Stage};
use warpwright_naive::team::{Lanes, Team};
use warpwright_naive::totals::Totals;
use warpwright_naive::versions::{Problem, climb};
use warpwright_naive::way::Way;

use crate::options::Argument;
use crate::pass::{Caution, Emulated, Fuel, Outcome, Pass, Replaced, Rewritten, Version, Work};
use crate::recipe::Invocation;
use crate::refusal::Refusal;
use crate::site::SourceSite;

crate::options!(Schedule:
    [threads "threads of a block along x and y"];
    [points: [u32; 2] = [1, 1], "points of a thread along x and y";
     run: [u32; 2] = [1, 1], "how many of them are neighbours";
     lanes: u32 = 0, "lanes of a warp along x; 0: as many as there are threads";
     stage: Option<Stage> = None, "a loop in parts whose operands wait in shared memory";
     order: u32 = 0, "rows of blocks that are computed together, for the L2 cache";
     resident: u32 = 0, "blocks that an SM must have room for; 0: the compiler's choice";
     planes: bool = false, "tiles lie along x and z";
     specialise: bool = false, "the sizes that are expected are constants in a kernel of their own"]);
crate::options!(Team:
    [threads "threads of a block", lanes "the lanes of a warp are points, or turns of so many points of a block"];
    [unroll: u32 = 1, "turns that are written out one after the other";
     blocks: u32 = 0, "blocks among which the turns of few points are divided; 0: they are not";
     apart: bool = false, "the four turns of an access of 16 bytes are added up apart";
     early: bool = true, "of two kernels the second is launched while the first one runs";
     resident: u32 = 0, "blocks that an SM must have room for; 0: the compiler's choice"]);
crate::options!(Across: [side "points along each side of a square", rows "rows of it at once"]; []);
crate::options!(Fours: [threads "threads of a block", rows "points of a thread along y"]; []);
crate::options!(Prefix: [threads "threads of a block", points "points of a thread"]; []);
crate::options!(Totals: [threads "threads of a block", points "points of a thread, or runs of four"]; []);

/// One pass for each family of ways.
macro_rules! ways {
    ($($way:ident, $variant:ident, $name:literal, $about:literal;)*) => {
        $(impl Pass for $way {
            const NAME: &'static str = $name;
            const ABOUT: &'static str = $about;

            fn work(&self) -> Work<Self> {
                Work::Emulated(|way, site, fuel| rewrite(Way::$variant(way.clone()), site, fuel))
            }
        })*

        /// The way that a pass stands for.
        pub fn way(pass: &Invocation) -> Option<Way> {
            $(if let Some(way) = pass.get::<$way>() {
                return Some(Way::$variant(way.clone()));
            })*
            None
        }

        impl From<Way> for Invocation {
            fn from(way: Way) -> Invocation {
                match way {
                    $(Way::$variant(way) => way.into(),)*
                }
            }
        }
    };
}

ways! {
    Schedule, Tiles, "tiles",
        "several points of a naive kernel for a thread, operands of its loops in shared memory";
    Team, Team, "team",
        "the turns of a naive kernel's loops for a team of threads; what they find is combined";
    Across, Across, "across",
        "squares of a naive kernel's points turned in shared memory, so that loads and stores are coalesced";
    Fours, Fours, "fours",
        "four neighbouring points of a naive kernel for a thread, 16 bytes at a time";
    Prefix, Prefix, "prefix",
        "what lies in front of a block of a naive kernel's points is added up once";
    Totals, Totals, "totals",
        "what a naive kernel counts atomically is added up in a block before it goes to memory";
}

/// A kernel, and what is made of it.
struct Tuned {
    way: Way,
    /// Bytes of shared memory that a block may have.
    shared: u32,
    problem: Problem,
    generated: Generated,
}

impl Emulated for Tuned {
    fn climb(&mut self, tools: Tools<'_>) -> Rung<Refusal> {
        let rung = climb(&self.problem, &mut self.generated, tools.compile);
        match rung {
            // Where the file fixes its sizes no launch is small.
            Rung::Unchecked(_) => self.climb_shrunk(tools).unwrap_or(rung),
            rung => rung,
        }
        .refused(Refusal::from)
    }

    fn replaced(&self) -> Result<Replaced, Refusal> {
        let output = self.problem.output(&self.generated)?;
        Ok(Replaced {
            text: output.text,
            launches: Some(output.launches),
            left: output.notes,
            launcher: Some(output.names.launch()),
        })
    }
}

impl Tuned {
    /// The comparison with the file's constants made small; `None` where that says nothing.
    fn climb_shrunk(&mut self, tools: Tools<'_>) -> Option<Rung<NoLauncher>> {
        let mut all = Checked {
            shrunk: true,
            ..Checked::default()
        };
        let mut ran = BTreeSet::new();
        for problem in self.problem.shrunk(tools.read) {
            let Ok(mut generated) = self.way.kernels(&problem.kernel, self.shared) else {
                continue;
            };
            match climb(&problem, &mut generated, tools.compile) {
                Rung::Agrees(checked) => {
                    ran.extend(generated.entries.into_iter().map(|entry| entry.suffix));
                    all.sizes.extend(checked.sizes);
                    all.kernels.extend(checked.kernels);
                    all.distance = all.distance.max(checked.distance);
                }
                Rung::Unchecked(_) => {}
                falls => return Some(falls),
            }
        }
        all.kernels.sort();
        all.kernels.dedup();
        let entries = &mut self.generated.entries;
        let has_run = |entry: &Entry| ran.contains(&entry.suffix);
        entries.iter().any(has_run).then(|| {
            entries.retain(has_run);
            Rung::Agrees(all)
        })
    }
}

fn rewrite(way: Way, site: &SourceSite<'_>, fuel: &mut Fuel) -> Outcome<Version> {
    let not_naive = |problem: warpwright_cudac::diag::Diagnostic| {
        Refusal::obstacle("it is no naive kernel", problem.message)
    };
    let (file, header) = site.cuda()?;
    let mut problem = Problem::new(file.clone(), header).map_err(not_naive)?;
    problem.state(site.setting.sizes);
    let shared = site.setting.gpu.arch.shared.per_block_opt_in;
    let generated = way.kernels(&problem.kernel, shared)?;
    if !fuel.burn() {
        return Ok(Rewritten::new(None));
    }
    let notes = way.steps(&problem.kernel);
    let reordered = generated.reordered.then_some(Caution::Reordered);
    let version: Box<dyn Emulated> = Box::new(Tuned {
        way,
        shared,
        problem,
        generated,
    });
    Ok(Rewritten {
        notes,
        ..Rewritten::new(Some(version)).careful(reordered)
    })
}

/// `16x4`: turns of a part, turns that are written out; `16x4x2`: parts at once; `16x4x2-turned`.
impl Argument for Stage {
    fn wanted() -> String {
        "`TURNSxUNROLLED` or `TURNSxUNROLLEDxBUFFERS`, with or without `-turned`".into()
    }

    fn parse(text: &str) -> Option<Self> {
        let (numbers, turn) = match text.strip_suffix("-turned") {
            Some(numbers) => (numbers, true),
            None => (text, false),
        };
        let numbers: Option<Vec<u32>> = numbers.split('x').map(|n| n.parse().ok()).collect();
        let (turns, unroll, buffers) = match numbers?[..] {
            [turns, unroll] => (turns, unroll, 1),
            [turns, unroll, buffers] => (turns, unroll, buffers),
            _ => return None,
        };
        let all = [turns, unroll, buffers];
        (!all.contains(&0)).then_some(Stage {
            turns,
            unroll,
            buffers,
            turn,
        })
    }

    fn print(&self) -> Option<String> {
        let mut text = format!("{}x{}", self.turns, self.unroll);
        if self.buffers > 1 {
            text += &format!("x{}", self.buffers);
        }
        Some(text + if self.turn { "-turned" } else { "" })
    }
}

impl Argument for Lanes {
    fn wanted() -> String {
        "`points` or a number".into()
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "points" => Some(Lanes::Points),
            number => Some(Lanes::Turns {
                points: number.parse().ok()?,
            }),
        }
    }

    fn print(&self) -> Option<String> {
        Some(match self {
            Lanes::Points => "points".to_owned(),
            Lanes::Turns { points } => points.to_string(),
        })
    }
}
