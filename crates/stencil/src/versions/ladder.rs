//! A version against the input: every kernel of it, at odd and tiny sizes ([`warpwright_ladder`]).
//!
//! Without permission to reassociate every bit must be equal, with it every value within [`tolerance`] of the largest
//! one of its array. A stencil without a text of its own is compared with the host's values, and so is its plain kernel.

use std::collections::BTreeSet;
use std::sync::Arc;

use cranelift_entity::EntityRef;
use warpwright_cudac::ast::Type;
use warpwright_ladder::{
    Argument, Array, Bounds, Checked, Launch, Original, Run, Rung, Tools, Trial,
    climb as climb_trials,
};

use super::problem::{Cuda, Problem};
use super::result::tolerance;
use super::trial::grids;
use super::{Family, Version, as_written};
use crate::evaluate::{Data, Sizes, evaluate, extent};
use crate::extract::record;
use crate::ir::{Element, Stencil};
use crate::replace::Refusal;
use crate::sweep::{Condition, Names};

/// Compares a version with the input.
pub fn climb(problem: &Problem, version: &Version, tools: Tools<'_>) -> Rung<Refusal> {
    if version.family == Family::Original && problem.cuda.is_some() {
        return Rung::Agrees(Checked::default());
    }
    // It must be possible at all, and in the text itself.
    let first = problem.output(version).err().map(Err);
    let trials = grids(problem, version, tools.read)
        .into_iter()
        .filter_map(|grid| {
            let mut version = version.clone();
            if grid.shrunk {
                version.sweep = version.way.sweep(&grid.problem.stencil).ok()?;
            }
            let output = match grid.problem.output(&version) {
                Ok(output) => output,
                Err(refusal) => return Some(Err(refusal)),
            };
            let plain = Names::new(&grid.problem.stencil.name, &BTreeSet::new());
            let names = output.names.unwrap_or(plain);
            let comparison = Comparison {
                problem: &grid.problem,
                sizes: &grid.sizes,
            };
            let mut trial = comparison.trial(output.text.into())?;
            trial.is_shrunk = grid.shrunk;
            // A text with no other version in it has the plain kernel alone.
            if version.family != Family::Original {
                trial.rewrites = comparison.runs(&names, &version);
            }
            trial.rewrites.extend(comparison.plain());
            Some(Ok(trial))
        });
    // One grid alone says little, but a file that fixes all sizes has one.
    let fixed = problem.stencil.parameters.is_empty();
    let bounds = Bounds {
        least: if fixed { 1 } else { 2 },
        most: usize::MAX,
    };
    let rung = climb_trials(first.into_iter().chain(trials), bounds, tools.compile);
    if let Rung::Agrees(checked) = &rung
        && !fixed
        && version.family != Family::Original
        && let Some(suffix) = never_ran(version, &checked.kernels)
    {
        return Rung::Unchecked(format!(
            "`…_sweep_{suffix}` is launched at none of the sizes that were tried"
        ));
    }
    rung
}

/// A kernel that some launch may have, and that is not among these.
fn never_ran<'v>(version: &'v Version, ran: &[String]) -> Option<&'v str> {
    // Rows of an odd length that the file fixes.
    let is_odd = |c: &Condition| matches!(c, Condition::Even(length) if length.parameter.is_none() && length.add % 2 != 0);
    let choices = version.sweep.choices.iter();
    let possible = choices.filter(|choice| !choice.conditions.iter().any(is_odd));
    let mut entries = possible
        .flat_map(|choice| &choice.entries)
        .filter_map(|&at| version.sweep.entries.get(at))
        .map(|entry| entry.suffix.as_str());
    entries.find(|suffix| {
        let end = format!("_sweep_{suffix}");
        !ran.iter().any(|kernel| kernel.ends_with(&end))
    })
}

/// The arrays that are variables of the file: their names there, and the sample data.
pub fn variables(stencil: &Stencil, data: &Data) -> Vec<(String, Vec<u8>)> {
    let all = stencil.arrays.iter().filter_map(|(id, array)| {
        let bytes = array.element.bytes(&data.arrays[id]);
        Some((array.variable.as_ref()?.name.clone(), bytes))
    });
    all.collect()
}

fn scalar_argument(element: Element, value: f64) -> Argument {
    match element.is_integer() {
        true => Argument::Integer(value as i64),
        false => Argument::Real(value),
    }
}

/// A stencil on one grid.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The input.
    pub problem: &'a Problem,
    /// The grid.
    pub sizes: &'a Sizes,
}

impl Comparison<'_> {
    fn stencil(&self) -> &Stencil {
        &self.problem.stencil
    }

    fn named(&self) -> Vec<(String, i64)> {
        let own = self.stencil().parameters.iter();
        let mut all: Vec<(String, i64)> = own
            .map(|(id, name)| (name.clone(), self.sizes[id]))
            .collect();
        if all.is_empty() {
            let dims = self.stencil().dims.values();
            all.extend(dims.map(|d| (d.name.clone(), extent(d.extent, self.sizes))));
        }
        all
    }

    /// The input on this grid, in a text that has it and the kernels of versions; `None` if it cannot be run here.
    pub fn trial(&self, text: Arc<str>) -> Option<Trial> {
        let stencil = self.stencil();
        let mut data = Data::sample(stencil, self.sizes).ok()?;
        let tolerance = tolerance(stencil);
        let arrays = stencil.arrays.iter().map(|(id, array)| Array {
            name: array.name.clone(),
            element: match array.element {
                Element::F32 => warpwright_ladder::Element::Single,
                Element::F64 => warpwright_ladder::Element::Double,
                other => warpwright_ladder::Element::Exact(other.size()),
            },
            bytes: array.element.bytes(&data.arrays[id]),
            tolerance,
        });
        let arrays = arrays.collect();
        let original = match &self.problem.cuda {
            Some(cuda) => Original::Run(self.own(cuda, &data)?),
            None => {
                evaluate(stencil, self.sizes, &mut data).ok()?;
                let contents = stencil.arrays.iter();
                let contents = contents.map(|(id, array)| array.element.bytes(&data.arrays[id]));
                Original::Known(contents.collect())
            }
        };
        Some(Trial {
            text,
            sizes: self.named(),
            is_shrunk: false,
            arrays,
            original,
            rewrites: Vec::new(),
            variables: variables(stencil, &data),
        })
    }

    /// The kernel as written, with its parameters in its order.
    fn own(&self, cuda: &Cuda, data: &Data) -> Option<Run> {
        let stencil = self.stencil();
        let (grid, block) = cuda.threads(stencil, self.sizes)?;
        let value = |name: &str, ty: &Type| {
            let is = |other: &String| other == name || *other == format!("own_{name}");
            if let Some((id, _)) = stencil.arrays.iter().find(|(_, a)| is(&a.name)) {
                Argument::Array(id.index())
            } else if matches!(ty.bare(), Type::Pointer(..) | Type::Array(..)) {
                Argument::Unused
            } else if let Some((id, _)) = stencil.scalars.iter().find(|(_, s)| is(&s.name)) {
                scalar_argument(stencil.scalars[id].element, data.scalars[id])
            } else {
                let size = stencil.parameters.iter().find(|(_, p)| is(p));
                Argument::Integer(size.map_or(1, |(id, _)| self.sizes[id]))
            }
        };
        let number = Type::Named("int".to_owned());
        let argument = |parameter: &warpwright_cudac::ast::Parameter| {
            let (name, ty) = (&*parameter.name.text, &parameter.ty);
            match record::is_record(&cuda.file, ty) {
                true => record::argument(&cuda.file, (name, ty), &|name| value(name, &number)),
                false => Some(value(name, ty)),
            }
        };
        let arguments: Option<Vec<Argument>> =
            cuda.function.parameters.iter().map(argument).collect();
        Some(Run {
            launches: vec![Launch {
                kernel: cuda.header.name.text.clone(),
                grid,
                block,
                shared: 0,
            }],
            arguments: arguments?,
            scratch: Vec::new(),
            offset: 0,
            is_reordered: false,
        })
    }

    /// All that the version, whose kernels have these names, may launch on this grid.
    pub fn runs(&self, names: &Names, version: &Version) -> Vec<Run> {
        let mut found: Vec<Run> = Vec::new();
        for choice in version.sweep.choices(self.sizes, 256) {
            let aligned = choice.conditions.iter().all(|c| c.holds(self.sizes, 8));
            // A kernel that does not ask for alignment must not need it.
            let offset = if aligned && !found.is_empty() { 8 } else { 0 };
            let entries = choice.entries.iter().map(|&at| {
                let entry = &version.sweep.entries[at];
                (names.entry(&entry.suffix), entry)
            });
            found.extend(self.run(entries, offset, version.reassociates()));
        }
        found
    }

    /// The plain kernel of a stencil without a text of its own.
    fn plain(&self) -> Option<Run> {
        let stencil = self.stencil();
        let plain = as_written(stencil).filter(|_| self.problem.cuda.is_none())?;
        let entries = plain
            .entries
            .first()
            .map(|entry| (stencil.name.clone(), entry));
        self.run(entries.into_iter(), 0, stencil.reassociate)
    }

    /// Kernels with the parameters of sweeps: arrays, scalars, sizes.
    fn run<'e>(
        &self,
        entries: impl Iterator<Item = (String, &'e crate::sweep::Entry)>,
        offset: usize,
        is_reordered: bool,
    ) -> Option<Run> {
        let stencil = self.stencil();
        let data = Data::sample(stencil, self.sizes).ok()?;
        let launches = entries.filter_map(|(kernel, entry)| {
            Some(Launch {
                kernel,
                grid: entry.grid.blocks(self.sizes)?,
                block: entry.block,
                shared: entry.shared_bytes,
            })
        });
        let arrays = stencil.passed().map(|(id, _)| Argument::Array(id.index()));
        let scalars = stencil.scalars.iter();
        let scalars = scalars.map(|(id, s)| scalar_argument(s.element, data.scalars[id]));
        let sizes = self.sizes.values().map(|size| Argument::Integer(*size));
        Some(Run {
            launches: launches.collect(),
            arguments: arrays.chain(scalars).chain(sizes).collect(),
            scratch: Vec::new(),
            offset,
            is_reordered,
        })
    }
}
