//! `warpwright pass allocate`: the allocator of CRAT alone, on each kernel of a module.

use warpwright_ptx::Module;
use warpwright_regs::frame::Layout;
use warpwright_regs::substacks::Cut;

use crate::allocate::{Point, allocate, describe};
use crate::context::{Context, Output, PassError, request};
use crate::spill::{pressure, view};
use crate::spill_pass::each_kernel;
use crate::step::step;

/// Options of the pass.
pub const OPTIONS: &[(&str, &str)] = &[
    (
        "space",
        "shared (where it is free and saves accesses, the default) or local",
    ),
    (
        "cut",
        "cell (one sub-stack for each piece of memory, the default) or class (the paper's)",
    ),
];

/// Runs the pass. The limit is `--regs`, else the next stair of the occupancy staircase below the
/// pressure; the blocks that reside there keep residing.
pub fn run(module: &Module, context: &Context) -> Result<Output, PassError> {
    let cut = match context.option("cut") {
        None | Some("cell") => Cut::Cell,
        Some("class") => Cut::Class,
        Some(other) => return Err(request(format!("there is no cut `{other}`"))),
    };
    let is_shared = match context.option("space") {
        None | Some("shared") => true,
        Some("local") => false,
        Some(other) => return Err(request(format!("slots do not lie in `{other}`"))),
    };
    each_kernel(module, context, |site| {
        let before = pressure(&view(site.module, site.kernel)?);
        let goal = step(site, context.regs, before)?;
        let point = Point {
            registers: goal.registers,
            blocks: if is_shared { goal.blocks } else { 0 },
            layout: Layout::SlotMajor,
            cut,
        };
        let done = allocate(site, &point)?;
        let note = describe(site, &point, &done);
        Ok((done.text, note))
    })
}
