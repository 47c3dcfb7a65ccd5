//! A pass on a module, and what must hold of whatever it writes: the front end accepts it, the
//! verifier too, and the checker proves it equal.

use warpwright_check::{Options, check_modules};
use warpwright_driver::context::{Context, PassError};
use warpwright_driver::passes::find;
use warpwright_flow::{Cfg, Liveness, Pressure};
use warpwright_ptx::{FuncId, Module, verify};

/// What a pass did.
#[derive(Debug)]
pub enum Applied {
    /// It wrote this, and it was proved.
    Changed(Box<Module>),
    /// It changed nothing, and said why.
    Unchanged(String),
}

/// What does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The pass failed for a reason of its own.
    #[error("the pass failed: {0}")]
    Internal(String),
    /// The front end or the verifier does not accept what it wrote.
    #[error("it writes what is not valid: {0}")]
    Invalid(String),
    /// The checker refutes it or does not decide.
    #[error("not proved: {0}")]
    NotProved(String),
}

/// Runs the pass and proves what it wrote.
///
/// # Errors
/// The first thing that does not hold. That a pass refuses a kernel is no failure.
pub fn apply(pass: &str, module: &Module, context: &Context) -> Result<Applied, Failure> {
    let pass = find(pass).ok_or_else(|| Failure::Internal("there is no such pass".into()))?;
    let output = match pass.run(module, context) {
        Ok(output) => output,
        Err(PassError::Request(why)) => return Ok(Applied::Unchanged(why)),
        Err(PassError::Internal(why)) => return Err(Failure::Internal(why)),
    };
    if output.text == *module.source {
        return Ok(Applied::Unchanged(output.notes.join("; ")));
    }
    let (new, diagnostics) = Module::parse(&module.name, &output.text);
    if let Some(error) = diagnostics.iter().find(|d| d.is_error()) {
        return Err(Failure::Invalid(error.render(&new)));
    }
    if let Err(errors) = verify(&new) {
        let all = errors.iter().map(|d| d.render(&new));
        return Err(Failure::Invalid(all.collect()));
    }
    let options = Options {
        block: context.block.or(context.launch.map(|launch| launch.block)),
    };
    for (name, verdict) in check_modules(module, &new, &options) {
        if !verdict.is_proved() {
            return Err(Failure::NotProved(format!("`{name}`: {verdict}")));
        }
    }
    Ok(Applied::Changed(Box::new(new)))
}

/// The highest register pressure of a kernel, in 32-bit registers; 0 for one without a body.
pub fn pressure(module: &Module, kernel: FuncId) -> u32 {
    let Some(view) = module.view(kernel) else {
        return 0;
    };
    let cfg = Cfg::new(&view);
    let liveness = Liveness::new(&view, &cfg);
    Pressure::new(&view, &cfg, &liveness).max()
}
