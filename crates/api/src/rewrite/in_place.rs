//! Outputs that are inputs, too: does the rewrite work in place where the original does?
//!
//! No description that gives each buffer memory of its own says that a caller may do so, and C promises it of pointers
//! that nothing restricts. So it is tried at the smallest size and said, and the verdict is that of the launches as
//! described: `alias` in a description makes it count.

use serde::Serialize;
use warpwright_launch::Init;
use warpwright_ptx::Module;
use warpwright_rewrite::pairing::{Described, buffers, is_data};
use warpwright_rewrite::{Paired, Side, Standing};

use super::{Contents, Reason, RewriteOptions, Try, Word, one, reason, sides};
use crate::{Error, Input};

/// What was found where an output is an input.
#[derive(Debug, Clone, Serialize)]
pub struct InPlace {
    /// The output, by the original's name.
    pub output: String,
    /// The input whose memory it is.
    pub input: String,
    /// [`Word::WrongInput`]: the original does not work in place.
    pub verdict: Word,
    /// Why.
    pub why: Vec<Reason>,
}

/// Pairs of buffers that are tried.
const MOST: usize = 4;

/// What both sides do in place at a launch.
///
/// # Errors
/// As where the launch is tried as described.
pub(super) fn of(
    inputs: [&Input; 2],
    modules: &[Module; 2],
    options: &RewriteOptions<'_>,
    at: &Try,
) -> Result<Vec<InPlace>, Error> {
    let fresh = || sides(inputs, modules, options, at, Contents::All);
    let apart = fresh()?;
    let paired = Paired::of(&apart[0], &apart[1], &options.pairs)?;
    let mut found = Vec::new();
    for [output, input] in pairs(&apart[0]) {
        let partner = |name: &str| {
            let mut pairs = paired.partner.iter();
            pairs.find(|(_, x)| *x == name).map(|(y, _)| &**y)
        };
        let (Some(y), Some(x)) = (partner(&output), partner(&input)) else {
            continue;
        };
        let mut both = fresh()?;
        join(&mut both[0], &apart[0], [&output, &input]);
        join(&mut both[1], &apart[1], [y, x]);
        let Ok(paired) = Paired::of(&both[0], &both[1], &options.pairs) else {
            continue;
        };
        let result = one(&both, &paired, options);
        found.push(InPlace {
            output,
            input,
            verdict: Word::of(result.standing),
            why: match result.standing {
                Standing::Refuted => result.why.iter().map(reason).collect(),
                _ => Vec::new(),
            },
        });
    }
    Ok(found)
}

/// Outputs with inputs that they may be.
fn pairs(side: &Side) -> Vec<[String; 2]> {
    let all = buffers(side);
    let outputs = all.iter().filter(|(_, own)| is_result(own));
    let pairs = outputs.flat_map(|(output, result)| {
        let inputs = all.iter().filter(|(_, own)| may_hold(own, result));
        inputs.map(|(input, _)| [output.clone(), input.clone()])
    });
    pairs.take(MOST).collect()
}

/// An output that begins with nothing.
fn is_result(own: &Described<'_>) -> bool {
    own.output && matches!(own.buffer.init, Init::Poison)
}

/// May an output lie in this buffer?
fn may_hold(own: &Described<'_>, output: &Described<'_>) -> bool {
    let (ty, bytes) = (output.buffer.ty, output.buffer.size());
    is_data(own) && !own.output && own.buffer.ty == ty && own.buffer.size() == bytes
}

/// Makes an input of a side the memory of an output. `apart`: the side as described.
fn join(side: &mut Side, apart: &Side, [output, input]: [&str; 2]) {
    let all = buffers(apart);
    let Some((_, held)) = all.iter().find(|(name, _)| name == input) else {
        return;
    };
    for step in &mut side.steps {
        let memory = &mut step.launch.memory;
        let place = |name: &str| memory.iter().position(|own| own.name == name);
        match (place(output), place(input)) {
            (Some(from), Some(to)) => {
                memory[to].output |= std::mem::take(&mut memory[from].output);
                let args = step.launch.args.iter_mut();
                let pointers = args.flat_map(|arg| &mut arg.pointers);
                pointers.filter(|p| p.of == from).for_each(|p| p.of = to);
            }
            (Some(from), None) => {
                memory[from].name = input.to_owned();
                memory[from].init = held.buffer.init.clone();
                step.contents[from] = held.bytes.to_vec();
            }
            (None, _) => {}
        }
    }
}
