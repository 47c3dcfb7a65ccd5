//! Trials, until a difference is found or all of them agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use warpwright_ptx::Module;

use crate::emulated::{run, symbol};
use crate::terms::{Said, said};
use crate::variables::with_variables;
use crate::{
    Array, Checked, Compile, CompileError, Element, Fall, Launch, NotRun, Original, Run, Rung,
    Trial,
};

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Grids below which nothing is said.
    pub least: usize,
    /// Runs after which a kernel has been tried enough.
    pub most: usize,
}

/// Compares a rewrite with the original on every grid. A grid for which the original itself does not work says
/// nothing.
pub fn climb<R>(
    trials: impl IntoIterator<Item = Result<Trial, R>>,
    bounds: Bounds,
    compile: &Compile<'_>,
) -> Rung<R> {
    match compared(trials, bounds, compile) {
        Ok(rung) => rung,
        Err(fall) => Rung::Falls(fall),
    }
}

fn compared<R>(
    trials: impl IntoIterator<Item = Result<Trial, R>>,
    bounds: Bounds,
    compile: &Compile<'_>,
) -> Result<Rung<R>, Fall<R>> {
    let mut checked = Checked::default();
    let mut compiled: Vec<(Arc<str>, Module)> = Vec::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut fault_of_original: Option<String> = None;
    for trial in trials {
        let trial = trial.map_err(Fall::Refused)?;
        let key = |run: &Run| run.launches.last().map(|launch| launch.kernel.clone());
        let is_wanted = |run: &&Run| {
            key(run).is_some_and(|kernel| times.get(&kernel).is_none_or(|n| *n < bounds.most))
        };
        let wanted: Vec<&Run> = trial.rewrites.iter().filter(is_wanted).collect();
        if wanted.is_empty() {
            continue;
        }
        if !compiled.iter().any(|(text, _)| *text == trial.text) {
            let ptx = match compile(&trial.text) {
                Ok(ptx) => ptx,
                Err(CompileError::Missing(why)) => return Ok(Rung::Unchecked(why)),
                Err(CompileError::Rejected(why)) => return Err(Fall::Compile(why)),
            };
            let ptx = with_variables(&ptx, &trial.variables);
            let (module, problems) = Module::parse("output", &ptx);
            if let Some(problem) = problems.iter().find(|d| d.is_error()) {
                return Err(Fall::Compile(problem.message.clone()));
            }
            compiled.push((trial.text.clone(), module));
        }
        let Some((_, module)) = compiled.iter().find(|(text, _)| *text == trial.text) else {
            continue;
        };
        if let Original::Run(run) = &trial.original
            && let Some(gone) = run
                .launches
                .iter()
                .find(|l| symbol(module, &l.kernel).is_none())
        {
            let why = format!("the compiler leaves `{}` out", gone.kernel);
            return Err(Fall::Compile(why));
        }
        let expected = match trial.expected(module) {
            Ok(expected) => expected,
            Err(NotRun(fault)) => {
                let sizes = &trial.sizes;
                fault_of_original.get_or_insert_with(|| {
                    format!(
                        "the kernel as written does not run in the emulator at {sizes:?}: {fault}"
                    )
                });
                continue;
            }
        };
        for run in wanted {
            trial.compare(run, module, &expected, &mut checked)?;
            *times.entry(key(run).unwrap_or_default()).or_default() += 1;
        }
        checked.shrunk |= trial.is_shrunk;
        checked.sizes.push(trial.sizes);
    }
    if checked.sizes.len() < bounds.least {
        let why = "no small grid could be made to try it on";
        return Ok(Rung::Unchecked(
            fault_of_original.unwrap_or_else(|| why.to_owned()),
        ));
    }
    Ok(Rung::Agrees(checked))
}

impl Trial {
    /// What the original leaves in the arrays.
    ///
    /// # Errors
    /// It cannot be run on this grid: what the emulator says.
    pub fn expected(&self, module: &Module) -> Result<Vec<Vec<u8>>, NotRun> {
        match &self.original {
            Original::Known(contents) => Ok(contents.clone()),
            Original::Run(run) => self.run(run, module).map_err(|(_, fault)| NotRun(fault)),
        }
    }

    /// Runs what a rewrite launches, and compares what it leaves with what is expected.
    ///
    /// # Errors
    /// [`Fall::Fault`], [`Fall::Differs`].
    pub fn compare<R>(
        &self,
        run: &Run,
        module: &Module,
        expected: &[Vec<u8>],
        checked: &mut Checked,
    ) -> Result<(), Fall<R>> {
        let found = self
            .run(run, module)
            .map_err(|(launch, fault)| Fall::Fault {
                kernel: launch.kernel.clone(),
                sizes: self.sizes.clone(),
                fault,
            })?;
        for (array, (expected, found)) in self.arrays.iter().zip(expected.iter().zip(&found)) {
            let (distance, first) = array.distance(run.is_reordered, expected, found);
            if let Some(element) = first {
                return Err(Fall::Differs {
                    kernel: run
                        .launches
                        .last()
                        .map_or_else(String::new, |l| l.kernel.clone()),
                    sizes: self.sizes.clone(),
                    array: array.name.clone(),
                    element,
                    distance,
                });
            }
            checked.distance = checked.distance.max(distance);
        }
        checked.compared += 1;
        match said(self, run, module) {
            Said::Proved => checked.proved += 1,
            Said::Nothing => {}
            Said::Refuted(fault) => {
                let kernel = run.launches.last().map(|launch| launch.kernel.clone());
                return Err(Fall::Fault {
                    kernel: kernel.unwrap_or_default(),
                    sizes: self.sizes.clone(),
                    fault,
                });
            }
        }
        for launch in &run.launches {
            if !checked.kernels.contains(&launch.kernel) {
                checked.kernels.push(launch.kernel.clone());
            }
        }
        Ok(())
    }

    /// What the arrays hold after all launches; or the launch that went wrong, and how.
    fn run<'a>(&self, of: &'a Run, module: &Module) -> Result<Vec<Vec<u8>>, (&'a Launch, String)> {
        let arrays = self.arrays.iter().map(|array| array.bytes.clone());
        let mut memory: Vec<Vec<u8>> = arrays.chain(of.scratch.iter().cloned()).collect();
        for launch in &of.launches {
            run(module, launch, (&of.arguments, of.offset), &mut memory)
                .map_err(|fault| (launch, fault.to_string()))?;
        }
        memory.truncate(self.arrays.len());
        Ok(memory)
    }
}

impl Array {
    /// The largest difference over the largest finite magnitude, and the first element that differs by more than
    /// is permitted: not one bit, unless sums were reordered.
    fn distance(&self, reordered: bool, expected: &[u8], found: &[u8]) -> (f64, Option<usize>) {
        let values = |bytes: &[u8]| self.element.value(bytes).unwrap_or(f64::NAN);
        let size = self.element.size();
        let magnitudes = expected.chunks_exact(size).map(|bytes| values(bytes).abs());
        let largest = magnitudes.filter(|v| v.is_finite()).fold(0.0, f64::max);
        let (mut worst, mut first) = (0.0f64, None);
        for (number, (a, b)) in expected.chunks(size).zip(found.chunks(size)).enumerate() {
            if a == b {
                continue;
            }
            let real = self.element.value(a).zip(self.element.value(b));
            let apart = match real {
                Some((a, b)) if a.is_nan() && b.is_nan() => 0.0,
                // Zeros of both signs, too.
                Some((a, b)) if a == b => 0.0,
                Some((a, b)) if largest > 0.0 && (a - b).is_finite() => (a - b).abs() / largest,
                _ => f64::INFINITY,
            };
            worst = worst.max(apart);
            if !reordered || apart > self.tolerance {
                first.get_or_insert(number);
            }
        }
        (worst, first)
    }
}

impl Element {
    /// Its bytes; at least 1.
    pub fn size(self) -> usize {
        match self {
            Element::Single => 4,
            Element::Double => 8,
            Element::Exact(bytes) => bytes.max(1),
        }
    }

    /// Its value, where it is a number.
    fn value(self, bytes: &[u8]) -> Option<f64> {
        match self {
            Element::Single => Some(f32::from_le_bytes(bytes.try_into().ok()?).into()),
            Element::Double => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
            Element::Exact(_) => None,
        }
    }
}
