//! Lowers the register pressure of a kernel by all means, in turn, until the goal or no change.
//!
//! Paper: You & Tsai 2011, Fig. 2: rematerialization and spilling to shared memory are repeated and
//! interleaved; rematerialization comes first, for it adds less. Each finds more to do after the
//! other.

use warpwright_ptx::Module;
use warpwright_regs::frame::Layout;
use warpwright_regs::remat::Rules;

use crate::explain::pressure_report;
use crate::remat;
use crate::rewrite::Site;
use crate::spill::{Request, describe, spill_shared};
use crate::step::step;

/// A kernel under less pressure.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// The text of the whole module.
    pub text: String,
    /// The highest pressure now, in 32-bit registers. It may be above the goal.
    pub pressure: u32,
    /// What recomputations cost, loop-weighted, in simple instructions.
    pub cost: f64,
    /// What was done, a sentence for each step.
    pub notes: Vec<String>,
}

/// What one step of one of the means leaves.
struct Step {
    text: String,
    cost: f64,
    note: String,
}

/// A means of lowering the pressure: `None` where it can do nothing more.
type Means = fn(&Site, u32) -> Result<Option<Step>, String>;

const MEANS: &[Means] = &[recompute, spill];

/// Lowers the pressure of the site's kernel towards `goal` 32-bit registers. The text stays as it is
/// where nothing can be done.
///
/// # Errors
/// Why the kernel cannot be rewritten at all, by name.
pub fn reduce(site: &Site, goal: u32) -> Result<Reduced, String> {
    let peak = |module: &Module| pressure_report(module, site.kernel).peak_units;
    let mut now = Reduced {
        text: site.module.source.to_string(),
        pressure: peak(site.module),
        cost: 0.0,
        notes: Vec::new(),
    };
    let mut idle = 0;
    for means in MEANS.iter().cycle() {
        if now.pressure <= goal || idle == MEANS.len() {
            break;
        }
        let (module, _) = Module::parse(&site.module.name, &now.text);
        let here = Site {
            module: &module,
            ..*site
        };
        idle += 1;
        if let Some(step) = means(&here, goal)? {
            let pressure = peak(&Module::parse(&site.module.name, &step.text).0);
            if pressure >= now.pressure {
                continue;
            }
            idle = 0;
            now.pressure = pressure;
            now.text = step.text;
            now.cost += step.cost;
            now.notes.push(step.note);
        }
    }
    Ok(now)
}

/// Algorithm 2, with as much shared memory as leaves the blocks resident that the goal is for.
fn spill(site: &Site, goal: u32) -> Result<Option<Step>, String> {
    let request = Request {
        goal,
        blocks: step(site, Some(goal), 0)?.blocks,
        layout: Layout::SlotMajor,
    };
    // What cannot be spilled is no reason to give up what was recomputed.
    let Ok(Some(rewritten)) = spill_shared(site, &request) else {
        return Ok(None);
    };
    let function = &site.module.functions[site.kernel];
    Ok(Some(Step {
        note: format!("spill-shared: {}", describe(function, &rewritten, goal)),
        cost: 0.0,
        text: rewritten.text,
    }))
}

/// Algorithm 1.
fn recompute(site: &Site, goal: u32) -> Result<Option<Step>, String> {
    let rewritten = remat::recompute(site.module, site.kernel, goal, Rules::Full)?;
    Ok((rewritten.copies > 0).then(|| Step {
        note: format!("remat: {}", remat::describe(&rewritten, goal)),
        cost: rewritten.cost,
        text: rewritten.text,
    }))
}
