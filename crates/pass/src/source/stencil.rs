//! `boxes`, `stream`: the points of a stencil computed in another way; `lower`: a stencil's language as CUDA C.
//!
//! Goal: a kernel that sweeps over a neighbourhood, faster. `boxes` gives a thread several points, with or without the
//! order of Rawat et al. (PPoPP 2018); `stream` walks through the domain with tiles in shared memory. Sections of the
//! papers and departures stand in the headers of `warpwright-stencil`, and in docs/stencils.md.
//!
//! Requires a stencil: a kernel that `warpwright_stencil::extract` understands, or a text in the language of stencils,
//! which becomes CUDA C. Preserves name, parameters and text of a kernel, and every bit of its results, but for sums
//! where its pragma or the caller permits `reassociate`. No proof covers a rewrite: the executor compares it with the
//! kernel as written in the emulator.

use warpwright_ladder::{Rung, Tools};
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::stream::Plan;
use warpwright_stencil::versions::{Boxes, Problem, Unfit, Version, Way, climb};

use crate::pass::{self, Caution, Emulated, Fuel, Outcome, Pass, Replaced, Rewritten, Work};
use crate::recipe::Invocation;
use crate::refusal::Refusal;
use crate::site::{Source, SourceSite};

crate::options!(Boxes:
    [points "points of a thread along each dimension, the outermost first"];
    [block: [u32; 3] = Boxes::AS_WRITTEN.block, "threads of a block along x, y and z";
     registers: Option<u32> = None, "most registers of a thread";
     scheduled: bool = false, "the operations are put into an order that needs few registers"]);
crate::options!(Plan:
    [block "threads of a block along x and y"];
    [points: [u32; 2] = [1, 1], "points of a thread along x and y";
     ahead: u32 = 1, "planes that are on their way to shared memory";
     chunk: u32 = 32, "planes that a block computes";
     unroll: u32 = 1, "planes that are written out one after the other";
     reassociate: bool = false, "planes add to the sums that they belong to as they come";
     stage: bool = false, "values that neighbours need go through shared memory";
     reload: bool = false, "values are read again where they are needed again";
     min_blocks: u32 = 1, "blocks that an SM must have room for"]);

impl Pass for Boxes {
    const NAME: &'static str = "boxes";
    const ABOUT: &'static str =
        "several points of a stencil for a thread, perhaps in an order that needs few registers";

    fn work(&self) -> Work<Self> {
        Work::Emulated(|boxes, site, fuel| {
            let way = Way::Boxes(boxes.clone());
            rewrite(|stencil| Version::new(stencil, way), site, fuel)
        })
    }
}

impl Pass for Plan {
    const NAME: &'static str = "stream";
    const ABOUT: &'static str = "a stencil's blocks walk through the domain, one plane after the other, with tiles in shared memory";

    fn work(&self) -> Work<Self> {
        Work::Emulated(|plan, site, fuel| {
            let way = Way::Stream(plan.clone());
            rewrite(|stencil| Version::new(stencil, way), site, fuel)
        })
    }
}

/// A stencil in a language of its own becomes CUDA C.
#[derive(Debug, Clone, Copy)]
pub struct Lower;

crate::options!(Lower: []; []);

impl Pass for Lower {
    const NAME: &'static str = "lower";
    const ABOUT: &'static str =
        "a stencil in a language of its own becomes CUDA C with a thread for each point";

    fn work(&self) -> Work<Self> {
        Work::Emulated(|_, site, fuel| match site.source {
            Source::Stencil(_) => rewrite(Version::as_written, site, fuel),
            Source::Cuda(_) => Err(Refusal::InTheWay("it is CUDA C already")),
        })
    }
}

/// The way that a pass stands for.
pub fn way(pass: &Invocation) -> Option<Way> {
    let boxes = pass.get::<Boxes>().cloned().map(Way::Boxes);
    boxes.or_else(|| pass.get::<Plan>().cloned().map(Way::Stream))
}

impl From<Way> for Invocation {
    fn from(way: Way) -> Invocation {
        match way {
            Way::Boxes(boxes) => boxes.into(),
            Way::Stream(plan) => plan.into(),
        }
    }
}

/// A stencil, and what is made of it.
struct Swept {
    problem: Problem,
    version: Version,
}

impl Emulated for Swept {
    fn climb(&mut self, tools: Tools<'_>) -> Rung<Refusal> {
        climb(&self.problem, &self.version, tools).refused(Refusal::from)
    }

    fn replaced(&self) -> Result<Replaced, Refusal> {
        let output = self.problem.output(&self.version)?;
        Ok(Replaced {
            text: output.text,
            launches: output.launches,
            left: output.notes,
            launcher: output.names.map(|names| names.launch()),
        })
    }
}

/// What a site is for the compiler of stencils.
fn problem(site: &SourceSite<'_>) -> Result<Problem, Refusal> {
    let reassociate = site.setting.reassociate;
    if let Source::Stencil(stencil) = site.source {
        let mut stencil = stencil.clone();
        stencil.reassociate |= reassociate;
        return Ok(Problem::of_language(stencil));
    }
    let (file, header) = site.cuda()?;
    let found = Problem::of_cuda(file.clone(), header, reassociate);
    found.map_err(|reasons| {
        let first = reasons.into_iter().next();
        let why = first.map_or_else(String::new, |reason| reason.message);
        Refusal::obstacle("it is no stencil", why)
    })
}

fn rewrite(
    version: impl FnOnce(&Stencil) -> Result<Version, Unfit>,
    site: &SourceSite<'_>,
    fuel: &mut Fuel,
) -> Outcome<pass::Version> {
    let problem = problem(site)?;
    let version = version(&problem.stencil)?;
    if !fuel.burn() {
        return Ok(Rewritten::new(None));
    }
    let reordered = version.reassociates().then_some(Caution::Reordered);
    let version: Box<dyn Emulated> = Box::new(Swept { problem, version });
    Ok(Rewritten::new(Some(version)).careful(reordered))
}
