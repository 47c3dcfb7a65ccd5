//! A pass of a source compiler, tried: the executor compares what comes of it with the kernel as written.

use warpwright_ladder::{Fall, Rung};
use warpwright_pass::{
    Artifact, Executor, Invocation, Level, Recipe, Refusal, RunError, Step, Target,
};

/// A version that is as good as the emulator can say.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The file with it.
    pub text: String,
    /// What its pass did.
    pub step: Step,
    /// Why it was not compared.
    pub unchecked: Option<String>,
}

/// What comes of a pass.
pub enum Attempt {
    /// It agrees, or could not be compared.
    Kept(Box<Kept>),
    /// It is out.
    Falls(Fall<Refusal>),
    /// There is nothing of the kind in this kernel, or no fuel left.
    NotOne,
}

/// Applies a pass to a kernel of a source file.
///
/// # Errors
/// The file cannot be read or written.
pub fn attempt(
    pass: &Invocation,
    (file, target): (&Artifact, &Target<'_>),
    executor: &mut Executor<'_>,
) -> Result<Attempt, RunError> {
    let recipe = Recipe::default().with(pass.clone());
    let run = match executor.run(file, target, &recipe, Level::Source) {
        Err(RunError::Refused { refusal, .. }) => {
            return Ok(match refusal {
                Refusal::Way(_) | Refusal::Sweep(_) => Attempt::NotOne,
                refusal => Attempt::Falls(Fall::Refused(refusal)),
            });
        }
        run => run?,
    };
    let (Some(step), Some(new)) = (run.steps.last(), run.unproved().as_source()) else {
        return Ok(Attempt::NotOne);
    };
    let unchecked = match step.comparison.as_ref().map(|c| &c.rung) {
        Some(Rung::Agrees(_)) => None,
        Some(Rung::Unchecked(why)) => Some(why.clone()),
        Some(Rung::Falls(fall)) => return Ok(Attempt::Falls(fall.clone())),
        None => return Ok(Attempt::NotOne),
    };
    Ok(Attempt::Kept(Box::new(Kept {
        text: new.text.clone(),
        step: step.clone(),
        unchecked,
    })))
}
