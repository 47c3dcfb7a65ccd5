//! `warpwright pass spill-shared`: Algorithm 2 of You & Tsai alone, on each kernel of a module.

use warpwright_ptx::Module;
use warpwright_regs::frame::Layout;

use crate::context::{Context, Output, PassError, request};
use crate::rewrite::{Setting, Site};
use crate::spill::{self, Request, describe, spill_shared};
use crate::step::step;

/// Options of the pass.
pub const OPTIONS: &[(&str, &str)] = &[(
    "layout",
    "slot-major (all threads' words of one slot, the default) or thread-major (Eq. 3)",
)];

/// Runs the pass. The goal is `--regs`, else the next stair of the occupancy staircase below the
/// pressure. A kernel that cannot be spilled stays as it is, with the reason as a note.
pub fn run(module: &Module, context: &Context) -> Result<Output, PassError> {
    let layout = match context.option("layout") {
        None | Some("slot-major") => Layout::SlotMajor,
        Some("thread-major") => Layout::ThreadMajor,
        Some(other) => return Err(request(format!("there is no layout `{other}`"))),
    };
    each_kernel(module, context, |site| {
        let function = &site.module.functions[site.kernel];
        let pressure = spill::pressure(&spill::view(site.module, site.kernel)?);
        let goal = step(site, context.regs, pressure)?;
        let request = Request {
            goal: goal.registers,
            blocks: goal.blocks,
            layout,
        };
        match spill_shared(site, &request)? {
            Some(rewritten) => {
                let note = describe(function, &rewritten, goal.registers);
                Ok((rewritten.text, note))
            }
            None => Err(format!(
                "its pressure of {pressure} registers is within the goal of {}",
                goal.registers
            )),
        }
    })
}

/// Runs a pass on each kernel in turn. It gives the module's new text and a note, or the reason why
/// the kernel stays as it is, which becomes a note.
pub(crate) fn each_kernel(
    module: &Module,
    context: &Context,
    mut pass: impl FnMut(&Site) -> Result<(String, String), String>,
) -> Result<Output, PassError> {
    let gpu = context.gpu(module)?;
    let mut output = Output::from(module.source.to_string());
    for (kernel, function) in context.kernels(module)? {
        // What an earlier kernel added moved the text, and no function.
        let (current, _) = Module::parse(&module.name, &output.text);
        let setting = Setting {
            gpu: &gpu,
            block: context.block(function)?,
            dynamic_smem: context.dynamic_smem(function),
        };
        let site = Site {
            module: &current,
            kernel,
            setting,
        };
        match pass(&site) {
            Ok((text, note)) => {
                output.text = text;
                output.notes.push(note);
            }
            Err(why) => output
                .notes
                .push(format!("{}: unchanged: {why}", function.name)),
        }
    }
    Ok(output)
}
