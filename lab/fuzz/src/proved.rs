//! A recipe on a module or a cubin through the executor: what it writes is accepted by the verifier and
//! proved equal by the checker, or it is a failure.

use warpwright_launch::{Guard, Shape};
use warpwright_pass::{
    Artifact, CarryError, Demand, Executor, NotProved, Recipe, Refusal, RunError, Scope,
    ScopeError, carry_out, plans,
};

pub use warpwright_pass::ptx::facts::kernel_pressure as pressure;

/// What a recipe did.
#[derive(Debug)]
pub enum Applied {
    /// It wrote this, and it was proved.
    Changed(Version),
    /// It changed nothing.
    Unchanged,
    /// A pass refuses the kernel.
    Refused(Refusal),
}

/// What passes wrote, and what for.
#[derive(Debug, Clone)]
pub struct Version {
    /// The module or cubin.
    pub artifact: Artifact,
    /// The launches that it is right for.
    pub guard: Guard,
    /// What they become for it.
    pub shape: Shape,
}

/// What does not hold.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request contradicts the input.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// A pass failed, or the verifier does not accept what it wrote.
    #[error("{0}")]
    Run(RunError),
    /// The checker refutes it or does not decide.
    #[error(transparent)]
    NotProved(NotProved),
}

/// Carries the recipe out on every kernel of the scope, and proves what it wrote.
///
/// # Errors
/// The first thing that does not hold. That a pass refuses a kernel is no failure.
pub fn apply(recipe: &Recipe, input: &Artifact, scope: &Scope<'_>) -> Result<Applied, Failure> {
    apply_for(recipe, input, scope, Demand::Proved)
}

/// The same where perhaps nothing is to be proved.
///
/// # Errors
/// The first thing that does not hold.
pub fn apply_for(
    recipe: &Recipe,
    input: &Artifact,
    scope: &Scope<'_>,
    demand: Demand,
) -> Result<Applied, Failure> {
    let plans = plans(input, scope, recipe)?;
    let gpu = scope.gpu(input)?;
    let level = (input.level(), demand);
    let all = carry_out(
        &mut Executor::default(),
        input,
        (scope, &gpu),
        &plans,
        level,
    );
    let all = all.map_err(|error| match error {
        CarryError::Scope(error) => Failure::Scope(error),
        CarryError::Run { error, .. } => Failure::Run(*error),
        CarryError::NotProved { error, .. } => Failure::NotProved(error),
    })?;
    let mut launches = all.kernels.iter().map(|done| done.launches());
    let (guard, shape) = launches.next_back().unwrap_or_default();
    let refused = all.kernels.into_iter().find_map(|done| done.refused);
    Ok(match refused {
        Some((_, refusal)) => Applied::Refused(refusal),
        None if all.artifact.bytes() == input.bytes() => Applied::Unchanged,
        None => Applied::Changed(Version {
            artifact: all.artifact,
            guard,
            shape,
        }),
    })
}
