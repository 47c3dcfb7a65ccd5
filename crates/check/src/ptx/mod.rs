//! The checker on PTX.

mod assumed;
mod counter;
mod fold;
mod function;
mod launches;
mod meaning;
mod places;
mod promoted;
mod shaped;
mod speculated;
mod step;
mod surroundings;

use warpwright_launch::{Guard, Quantity, Shape, Signature};
use warpwright_ptx::{FuncId, FunctionKind, Module};

use crate::prove::check;
use crate::slots::Threads;
use crate::verdict::{Cause, Reason, Verdict};
use assumed::Assumed;
use function::PtxFunction;
use shaped::{Launches, Numbering};
use surroundings::{Surroundings, different_heads, different_modules, is_apart, new_name};

/// What the caller knows beside the two modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The exact block that the kernel is launched with, in threads. Without it, `.reqntid` is
    /// used, or else any block up to `.maxntid` threads.
    pub block: Option<[u32; 3]>,
    /// The most dynamic shared memory that a launch will have, in bytes. Unless it is given, kernels that may use any
    /// are undecided where the rewritten version has more shared memory.
    pub dynamic_smem: Option<u32>,
    /// Every launch of the kernels meets this: parameters and extents that it states are constants, and what is decided by
    /// them goes one way. It says nothing of functions that are no kernels.
    pub assume: Guard,
    /// What these launches become for the second version. Functions that are no kernels are compared as they are: kernels that
    /// call any are undecided where it is another one.
    pub shape: Shape,
}

/// The parameters of a function, as guards name them.
pub fn signature(module: &Module, function: FuncId) -> Signature {
    let params = module.functions[function].params.iter();
    Signature::new(params.map(|param| {
        let variable = &module.variables[param.var];
        let bytes = u32::try_from(variable.bytes()).unwrap_or(u32::MAX);
        (variable.name.to_string(), bytes)
    }))
}

impl Options {
    /// The block is a part of what is assumed, and what is assumed may say the block.
    fn completed(mut self) -> Options {
        if self.assume.is_always() {
            return self;
        }
        match self.block {
            Some(block) => self.assume = self.assume.block(block),
            None => self.block = self.assume.exact(Quantity::Block),
        }
        self
    }
}

/// What kind of reason there is, and the reason.
type Why = (Cause, String);

/// Is function `new` a correct version of function `original`?
///
/// Device functions that they call by the same name are taken to be equal: [`check_modules`] checks
/// them, too.
pub fn check_functions(
    original: (&Module, FuncId),
    new: (&Module, FuncId),
    options: &Options,
) -> Verdict {
    let different = different_modules(original.0, new.0);
    if let Some(text) = different.or_else(|| new_name(original.0, new.0, |_| false)) {
        return undecided(text);
    }
    let around = (Surroundings::new(original.0), Surroundings::new(new.0));
    check_bodies((&around.0, original.1), (&around.1, new.1), options)
}

/// Why a kernel is undecided that the second version has alone.
pub const NEW_KERNEL: &str =
    "it is new: the original has no such kernel, and what launches it is not compared";

fn undecided(text: impl Into<String>) -> Verdict {
    Verdict::Undecided(Reason::new(Cause::Around, text))
}

/// The two as they are, or what the original's loops store kept in registers.
fn check_bodies(
    original: (&Surroundings<'_>, FuncId),
    new: (&Surroundings<'_>, FuncId),
    options: &Options,
) -> Verdict {
    let first = check_as_written(original, new, options);
    if first.is_proved() || matches!(first.cause(), Some(Cause::Around | Cause::Size)) {
        return first;
    }
    let versions = promoted::versions(original.0.module, original.1);
    let mut proved = versions.map(|version| {
        let around = Surroundings::new(&version);
        check_as_written((&around, original.1), new, options)
    });
    proved.find(Verdict::is_proved).unwrap_or(first)
}

fn check_as_written(
    original: (&Surroundings<'_>, FuncId),
    new: (&Surroundings<'_>, FuncId),
    options: &Options,
) -> Verdict {
    let options = &options.clone().completed();
    let is_kernel = original.0.module.functions[original.1].kind == FunctionKind::Entry;
    if !options.shape.is_same() && is_kernel {
        return check_shaped(original, new, options);
    }
    let assumed = || Assumed::new(options.assume.clone());
    let views = (
        PtxFunction::at_launches(original.0.module, original.1, assumed()),
        PtxFunction::at_launches(new.0.module, new.1, assumed()),
    );
    let (Some(a), Some(b)) = views else {
        return undecided("there is no such function with a body");
    };
    if let Some((cause, text)) = surroundings::difference(original, new, options, None) {
        return Verdict::Undecided(Reason::new(cause, text));
    }
    let threads = launches::threads(a.view.function(), b.view.function(), options);
    match check(&a, &b, &threads) {
        Verdict::Refuted(found) => Verdict::Differs(found),
        verdict => verdict,
    }
}

/// The same where the rewritten kernel is launched in another shape.
fn check_shaped(
    original: (&Surroundings<'_>, FuncId),
    new: (&Surroundings<'_>, FuncId),
    options: &Options,
) -> Verdict {
    let launches = match Launches::of(&options.assume, options.shape) {
        Ok(launches) => launches,
        Err(why) => return Verdict::Undecided(Reason::new(Cause::Launches, why.to_string())),
    };
    if let Some((cause, text)) = surroundings::difference(original, new, options, Some(&launches)) {
        return Verdict::Undecided(Reason::new(cause, text));
    }
    let by_axes = check_numbered(original, new, options, (&launches, Numbering::Axes));
    if by_axes.is_proved() {
        return by_axes;
    }
    let in_line = check_numbered(original, new, options, (&launches, Numbering::Line));
    match in_line.is_proved() {
        true => in_line,
        false => by_axes,
    }
}

/// The same with threads that have the same number.
fn check_numbered(
    original: (&Surroundings<'_>, FuncId),
    new: (&Surroundings<'_>, FuncId),
    options: &Options,
    (launches, numbering): (&Launches, Numbering),
) -> Verdict {
    let [before, after] = launches.places(numbering);
    let old = Assumed::new(options.assume.clone());
    let now = Assumed::new(launches.assumed_after(&options.assume));
    let views = (
        PtxFunction::shaped(original.0.module, original.1, old, before),
        PtxFunction::shaped(new.0.module, new.1, now, after),
    );
    let (Some(a), Some(b)) = views else {
        return undecided("there is no such function with a body");
    };
    if let Some(text) = [&a, &b].into_iter().find_map(shaped::tied) {
        return Verdict::Undecided(Reason::new(Cause::Launches, text));
    }
    match check(&a, &b, &Threads::default()) {
        Verdict::Refuted(found) => Verdict::Differs(found),
        verdict => verdict,
    }
}

/// All functions of `original` that have a body, or get one in `new`, by name, with the verdict on
/// the function of that name in `new`. A kernel that `new` has alone is no version of anything: it is undecided, and the
/// others are what they are.
pub fn check_modules(original: &Module, new: &Module, options: &Options) -> Vec<(String, Verdict)> {
    let different = different_modules(original, new);
    let apart = |name: &str| is_apart(original, new, name);
    let different = different.or_else(|| new_name(original, new, apart));
    let (before, now) = (Surroundings::new(original), Surroundings::new(new));
    let mut verdicts = Vec::new();
    for (id, function) in &original.functions {
        let other = now.functions.get(&*function.name).copied();
        let verdict = match (other, &function.body) {
            // Nobody can call what is no longer declared.
            (None, None) => continue,
            (None, Some(_)) => undecided("the rewritten module does not have it"),
            (Some(other), None) if new.functions[other].body.is_some() => {
                undecided("the original leaves it to the linker")
            }
            (Some(other), None) => match different_heads((&before, id), (&now, other)) {
                Some(text) => undecided(text),
                None => continue,
            },
            (Some(other), Some(_)) if before.aliases(id) != now.aliases(other) => {
                undecided("it has other aliases")
            }
            (Some(other), Some(_)) => match &different {
                Some(text) => undecided(text.clone()),
                None => check_bodies((&before, id), (&now, other), options),
            },
        };
        verdicts.push((function.name.to_string(), verdict));
    }
    let added = new.kernels().map(|(_, kernel)| &*kernel.name);
    verdicts.extend(
        added
            .filter(|name| apart(name))
            .map(|name| (name.to_owned(), undecided(NEW_KERNEL))),
    );
    verdicts
}
