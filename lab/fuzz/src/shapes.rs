//! Kernels at their launch and at one of another shape: what the checker proves and what `reshape` accepts computes the same.

use warpwright_check::{Options, check_functions};
use warpwright_fuzzgen::{Places, places};
use warpwright_launch::{Guard, Launch, Shape};
use warpwright_pass::passes::Reshape;
use warpwright_pass::{Recipe, Refusal, Scope};
use warpwright_ptx::Module;

use crate::case::{self, Case};
use crate::proved::{self, Applied};
use crate::totals::Counts;

/// What its runs are counted as.
pub const RESHAPE: &str = "reshape";

/// What a run came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// What the pass did.
    pub counts: Counts,
    /// Of the kernels that it leaves alone, those that compute something else in the other shape.
    pub different: u64,
}

/// What did not hold.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The kernel itself.
    #[error(transparent)]
    Case(#[from] case::Failure),
    /// What the pass wrote is invalid or not proved.
    #[error(transparent)]
    Pass(#[from] proved::Failure),
    /// It uses its threads' numbers alone.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// It computes something else in the other shape.
    #[error("{0}, and it computes something else")]
    Different(&'static str),
}

/// The kernel of a seed.
///
/// # Errors
/// What does not hold.
pub fn check(seed: u64, totals: &mut Totals) -> Result<(), Box<(Places, Failure)>> {
    let kernel = places(seed);
    checked(&kernel, totals).map_err(|failure| Box::new((kernel, failure)))
}

fn checked(kernel: &Places, totals: &mut Totals) -> Result<(), Failure> {
    let case = case::of_text(kernel.text.clone(), &kernel.launch)?;
    let is_same = same(&case, kernel, &case.module)?;
    if is_proved(&case.module, kernel) && !is_same {
        return Err(Failure::Different("the checker proves it"));
    }
    let recipe = Recipe::default().with(Reshape {
        block: kernel.shape,
        from: Some(kernel.block),
        grid: Some(kernel.grid),
    });
    let input = warpwright_pass::Artifact::ptx(case.module.clone());
    let input = input.map_err(|error| case::Failure::Verify(error.render()))?;
    let applied = proved::apply(&recipe, &input, &Scope::default())?;
    totals.counts.count(&applied);
    match applied {
        Applied::Changed(new) => {
            let is_right = match new.artifact.as_module() {
                Some(new) => same(&case, kernel, new)?,
                None => false,
            };
            match is_right {
                true => Ok(()),
                false => Err(Failure::Different("the pass accepts it")),
            }
        }
        Applied::Refused(why) if kernel.is_right => Err(Failure::Refused(why)),
        Applied::Refused(_) | Applied::Unchanged => {
            totals.different += u64::from(!is_same);
            Ok(())
        }
    }
}

/// Does a version compute in the other shape what the kernel computes?
fn same(case: &Case, kernel: &Places, new: &Module) -> Result<bool, Failure> {
    let before = case::emulate(case, &case::strict())?;
    let launch = Launch {
        grid: std::array::from_fn(|axis| {
            kernel.grid[axis] * kernel.block[axis] / kernel.shape[axis]
        }),
        block: kernel.shape,
        ..case.launch.clone()
    };
    // Where places are mixed up two threads may write one element, or none.
    let after = case::emulate_module(new, &launch, &case.inputs, &Default::default());
    Ok(after.is_ok_and(|after| after.buffers == before.buffers))
}

/// Does the checker prove the kernel as it is in the other shape?
fn is_proved(module: &Module, kernel: &Places) -> bool {
    let Some((id, _)) = module.kernels().next() else {
        return false;
    };
    let options = Options {
        assume: Guard::always().block(kernel.block).grid(kernel.grid),
        shape: Shape {
            block: Some(kernel.shape),
            more_smem: 0,
        },
        ..Options::default()
    };
    check_functions((module, id), (module, id), &options).is_proved()
}

/// A test file of a kernel that fails.
pub fn report(kernel: &Places, failure: &Failure) -> String {
    let about = format!(
        "blocks of {:?} instead of {:?}\n{failure}",
        kernel.shape, kernel.block
    );
    case::in_comments(&about, &kernel.launch) + &kernel.text
}
