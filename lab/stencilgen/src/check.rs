//! Random kernels through extraction and every family of rewrites, many in one call of nvcc, in the PTX emulator.

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_fuzzgen::Rng;
use warpwright_ladder::{Checked, Fall, with_variables};
use warpwright_ptx::Module;
use warpwright_sourcegen::{Counters, Finding};
use warpwright_stencil::evaluate::{Data, Sizes};
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::replace::Refusal;
use warpwright_stencil::sweep::Names;
use warpwright_stencil::versions::{Comparison, Problem, Version, small_sizes, variables};

use crate::generate::{self, Kernel};
use crate::ways::{Kind, ways};

/// A kernel with its versions.
pub struct Subject {
    /// What was generated.
    pub kernel: Kernel,
    /// What it was taken for.
    pub problem: Problem,
    /// As [`ways`] gives them; the first one stands in the kernel's own file.
    pub versions: Vec<Kind>,
    /// The kernel's file with the first version in it.
    pub text: String,
    /// The grids.
    pub sizes: Vec<Sizes>,
}

/// All kernels with their versions; `unit` gives the text of one that does not stand in the kernel's own file.
pub fn text_of(subjects: &[Subject], unit: impl Fn(&Version, &Stencil, &str) -> String) -> String {
    let mut text = String::from("#include <cuda_runtime.h>\n\n");
    for subject in subjects {
        text += &subject.text;
        for (number, (_, version)) in subject.versions.iter().enumerate().skip(1) {
            let name = format!("{}v{number}", subject.kernel.name);
            text += &unit(version, &subject.problem.stencil, &name);
        }
        // Macros end with their kernel.
        text += "\n";
    }
    text
}

/// The names of a version's kernels in a batch's text.
pub fn names(subject: &Subject, number: usize) -> Names {
    let words = Default::default();
    match number {
        0 => Names::new(&subject.kernel.name, &words),
        _ => Names::new(&format!("{}v{number}", subject.kernel.name), &words),
    }
}

impl warpwright_sourcegen::Subject for Subject {
    fn generate(seed: u64, number: u64, counters: &mut Counters) -> Result<Option<Self>, Finding> {
        let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
        let kernel = generate::kernel(&mut rng, &format!("s{number}"));
        counters.kernels += 1;
        let finding = |version: &str, what: String| Finding {
            text: kernel.text.clone(),
            version: version.to_owned(),
            what,
        };
        let parsed = File::parse(Source::new("kernel.cu", kernel.text.clone()));
        let file = parsed.map_err(|e| finding("", e.message.clone()))?;
        let mut all = file.kernels.iter();
        let Some(header) = all.find(|k| k.name.text == kernel.name).cloned() else {
            return Err(finding("", "the kernel was not found in it".into()));
        };
        let problem = match Problem::of_cuda(file, &header, rng.chance(50)) {
            Ok(problem) => problem,
            Err(problems) => {
                let code = problems.first().map_or("?", |p| p.code);
                *counters.refused.entry(code.to_owned()).or_default() += 1;
                return Ok(None);
            }
        };
        let mut versions = ways(&mut rng, &problem.stencil);
        // Each kind stands in the kernel's own file at times.
        if !versions.is_empty() {
            let first = rng.below(versions.len());
            versions.swap(0, first);
        }
        let Some((kind, first)) = versions.first() else {
            return Ok(None);
        };
        let text = match problem.output(first) {
            Ok(output) => output.text,
            Err(refusal) => {
                counters.broken += 1;
                return Err(finding(kind, refusal.to_string()));
            }
        };
        let dims = problem.stencil.dims.len();
        let mut grids = vec![vec![1; dims]];
        for parity in [0, 1] {
            let mut cells: Vec<i64> = (0..dims).map(|_| rng.range(3, 12) as i64).collect();
            if let Some(last) = cells.last_mut() {
                *last = rng.range(17, 35) as i64 * 2 + parity;
            }
            grids.push(cells);
        }
        let mut sizes: Vec<Sizes> = Vec::new();
        for cells in grids {
            let small = small_sizes(&problem.stencil, &cells);
            sizes.extend(small.filter(|s| !sizes.contains(s)));
        }
        Ok(Some(Subject {
            kernel,
            problem,
            versions,
            text,
            sizes,
        }))
    }

    fn batch_text(subjects: &[Self]) -> String {
        // The emulator needs no launchers.
        text_of(subjects, |version, stencil, name| {
            version.kernels(stencil, name)
        })
    }

    /// The arrays in the texts' own memory are set.
    fn prepared(subjects: &[Self], ptx: String) -> String {
        let mut all = Vec::new();
        for subject in subjects {
            let stencil = &subject.problem.stencil;
            let data = subject
                .sizes
                .first()
                .and_then(|sizes| Data::sample(stencil, sizes).ok());
            all.extend(data.iter().flat_map(|data| variables(stencil, data)));
        }
        with_variables(&ptx, &all)
    }

    fn compare(&self, module: &Module) -> (Counters, Vec<Finding>) {
        let (mut counters, mut findings) = (Counters::default(), Vec::new());
        let mut ran = false;
        let mut out = vec![false; self.versions.len()];
        for sizes in &self.sizes {
            let comparison = Comparison {
                problem: &self.problem,
                sizes,
            };
            let Some(trial) = comparison.trial("".into()) else {
                continue;
            };
            let Ok(expected) = trial.expected(module) else {
                continue;
            };
            ran = true;
            for (number, (kind, version)) in self.versions.iter().enumerate() {
                if out[number] {
                    continue;
                }
                let names = names(self, number);
                let mut checked = Checked::default();
                counters.comparisons += 1;
                let compared: Result<(), Fall<Refusal>> = comparison
                    .runs(&names, version)
                    .iter()
                    .try_for_each(|run| trial.compare(run, module, &expected, &mut checked));
                if let Err(fall) = compared {
                    match fall {
                        Fall::Differs { .. } => counters.differences += 1,
                        Fall::Fault { .. } => counters.faults += 1,
                        Fall::Refused(_) | Fall::Compile(_) => counters.broken += 1,
                    }
                    out[number] = true;
                    findings.push(Finding {
                        text: self.kernel.text.clone(),
                        version: format!("{kind}: {}", version.plan),
                        what: fall.to_string(),
                    });
                }
            }
        }
        counters.idle += u64::from(!ran);
        for (kind, _) in self.versions.iter().filter(|_| ran) {
            *counters.versions.entry((*kind).to_owned()).or_default() += 1;
        }
        (counters, findings)
    }

    /// Its arrays are as long as what it was taken for says: no more may be needed.
    fn beyond(&self, module: &Module) -> Option<Finding> {
        let fault = self.sizes.iter().find_map(|sizes| {
            let comparison = Comparison {
                problem: &self.problem,
                sizes,
            };
            let fault = match comparison.trial("".into()) {
                Some(trial) => trial.expected(module).err()?.0,
                None if self.problem.launch(sizes).is_none() => return None,
                None => "it is launched, but cannot be tried".to_owned(),
            };
            let sizes: Vec<i64> = sizes.values().copied().collect();
            Some(format!("{sizes:?}: {fault}"))
        });
        Some(Finding {
            text: self.kernel.text.clone(),
            version: "as written".to_owned(),
            what: fault?,
        })
    }
}
