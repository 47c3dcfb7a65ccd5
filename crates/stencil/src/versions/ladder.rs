//! A version against the input, in the PTX emulator: odd and tiny sizes, every kernel of the version, races in shared
//! memory and accesses outside of arrays being faults.
//!
//! Both stand in one text (the output keeps the kernel as written), which nvcc compiles without fusing multiplications
//! and additions: it may choose other pairs in other texts. Without permission to reassociate every bit must be equal,
//! with it every value within [`tolerance`] of the largest one of its array. A stencil without a text of its own is
//! compared with the host's values, and so is its plain kernel.

use std::collections::BTreeSet;

use crate::evaluate::{Data, Sizes, evaluate, extent};
use crate::ir::{ArrayId, Element, Stencil};
use crate::replace::Refusal;
use crate::sweep::Names;
use serde::Serialize;
use warpwright_cudac::ast::Type;
use warpwright_ptx::Module;

use warpwright_ladder::CompileError;

use super::problem::{Cuda, Problem};
use super::result::tolerance;
use super::trial::trials;
use super::{Family, Version, Way, as_written};
use warpwright_ladder::emulated::{self, symbol};

/// What agreed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Checked {
    /// The sizes, by name, of each comparison.
    pub sizes: Vec<Vec<(String, i64)>>,
    /// The kernels that ran.
    pub kernels: Vec<String>,
    /// The largest difference over the largest magnitude; 0 where bits had to be equal.
    pub distance: f64,
    /// The file's constants were made smaller for it.
    pub shrunk: bool,
}

/// Why a version is out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fall {
    /// The kernel cannot be replaced.
    #[error("the kernel cannot be replaced: {0}")]
    Refused(#[from] Refusal),
    /// The compiler refuses it.
    #[error("it does not compile: {0}")]
    Compile(String),
    /// It does something wrong.
    #[error("`{kernel}` at {sizes:?}: {fault}")]
    Fault {
        /// The kernel.
        kernel: String,
        /// The sizes.
        sizes: Vec<(String, i64)>,
        /// What the emulator says.
        fault: String,
    },
    /// It computes something else.
    #[error(
        "`{kernel}` at {sizes:?} computes something else: {distance:.1e} of the largest value away"
    )]
    Differs {
        /// The kernel.
        kernel: String,
        /// The sizes.
        sizes: Vec<(String, i64)>,
        /// How far it is from the input, over the largest magnitude.
        distance: f64,
    },
}

/// How far a version got.
#[derive(Clone, Debug, PartialEq)]
pub enum Rung {
    /// It agrees with the input.
    Agrees(Checked),
    /// It is out.
    Falls(Fall),
    /// It was not compared: there is no compiler, or no small grid could be made.
    Unchecked(String),
}

/// Compares a version with the input. `compile` makes PTX of a text, with nvcc's `-fmad=false`.
pub fn climb(
    problem: &Problem,
    version: &Version,
    compile: &dyn Fn(&str) -> Result<String, CompileError>,
) -> Rung {
    if version.family == Family::Original && problem.cuda.is_some() {
        return Rung::Agrees(Checked::default());
    }
    match compared(problem, version, compile) {
        Ok(rung) => rung,
        Err(fall) => Rung::Falls(fall),
    }
}

fn compared(
    problem: &Problem,
    version: &Version,
    compile: &dyn Fn(&str) -> Result<String, CompileError>,
) -> Result<Rung, Fall> {
    // It must be possible at all, and in the text itself.
    problem.output(version)?;
    let mut checked = Checked::default();
    let mut compiled: Vec<(String, Module)> = Vec::new();
    for trial in trials(problem, version) {
        let mut version = version.clone();
        if trial.shrunk {
            let Some(sweep) = version.way.sweep(&trial.problem.stencil) else {
                continue;
            };
            version.sweep = sweep;
        }
        let output = trial.problem.output(&version)?;
        let known = compiled.iter().position(|(text, _)| *text == output.text);
        let at = match known {
            Some(at) => at,
            None => {
                let ptx = match compile(&output.text) {
                    Ok(ptx) => ptx,
                    Err(CompileError::Missing(why)) => return Ok(Rung::Unchecked(why)),
                    Err(CompileError::Rejected(why)) => return Err(Fall::Compile(why)),
                };
                let (module, problems) = Module::parse("output", &ptx);
                if let Some(problem) = problems.iter().find(|d| d.is_error()) {
                    return Err(Fall::Compile(problem.message.clone()));
                }
                compiled.push((output.text.clone(), module));
                compiled.len() - 1
            }
        };
        let run = Comparison {
            problem: &trial.problem,
            module: &compiled[at].1,
            sizes: &trial.sizes,
        };
        let plain = Names::new(&trial.problem.stencil.name, &BTreeSet::new());
        let names = output.names.unwrap_or(plain);
        let Some(expected) = run.expected() else {
            continue;
        };
        checked.shrunk |= trial.shrunk;
        checked.sizes.push(run.named());
        run.version(&names, &version, &expected, &mut checked)?;
        run.plain(&version, &expected, &mut checked)?;
    }
    if checked.sizes.len() < 2 {
        let why = "no small grid could be made to try it on";
        return Ok(Rung::Unchecked(why.to_owned()));
    }
    Ok(Rung::Agrees(checked))
}

/// One grid, in a module that has the kernel as written and the kernels of versions.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The input.
    pub problem: &'a Problem,
    /// All kernels.
    pub module: &'a Module,
    /// The grid.
    pub sizes: &'a Sizes,
}

/// The bytes of all arrays, in the stencil's order.
pub type Memory = Vec<Vec<u8>>;

/// What a kernel is launched with.
struct Launched<'a> {
    kernel: &'a str,
    grid: [u64; 3],
    block: [u32; 3],
    shared: u32,
    /// Bytes by which every array misses a multiple of 256.
    offset: usize,
    arguments: Vec<Argument>,
}

enum Argument {
    Array(ArrayId),
    /// A type and a value, in the words of launch descriptions.
    Value(String, String),
    /// A pointer that the stencil does not use.
    Unused,
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

    fn data(&self) -> Option<Data> {
        Data::sample(self.stencil(), self.sizes).ok()
    }

    /// What the input computes from the sample data; `None` if it cannot be run on this grid.
    pub fn expected(&self) -> Option<Memory> {
        let mut data = self.data()?;
        let Some(cuda) = &self.problem.cuda else {
            evaluate(self.stencil(), self.sizes, &mut data).ok()?;
            return Some(memory(self.stencil(), &data));
        };
        let kernel = symbol(self.module, &cuda.header.name.text)?;
        let (grid, block) = cuda.threads(self.stencil(), self.sizes)?;
        let launched = Launched {
            kernel: &kernel,
            grid,
            block,
            shared: 0,
            offset: 0,
            arguments: self.own_arguments(cuda, &kernel, &data)?,
        };
        self.run(&launched, &data).ok()
    }

    /// The arguments of the kernel as written, in its order.
    fn own_arguments(&self, cuda: &Cuda, kernel: &str, data: &Data) -> Option<Vec<Argument>> {
        let stencil = self.stencil();
        let function = &self.module.functions[self.module.function(kernel)?];
        let mut all = Vec::new();
        for (parameter, declared) in cuda.function.parameters.iter().zip(&function.params) {
            let name = &parameter.name.text;
            let is = |other: &String| other == name || *other == format!("own_{name}");
            let ty = self.module.variables[declared.var].ty;
            if let Some((id, _)) = stencil.arrays.iter().find(|(_, a)| is(&a.name)) {
                all.push(Argument::Array(id));
            } else if matches!(parameter.ty.bare(), Type::Pointer(..) | Type::Array(..)) {
                all.push(Argument::Unused);
            } else if let Some((id, scalar)) = stencil.scalars.iter().find(|(_, s)| is(&s.name)) {
                let value = format!("{:?}", data.scalars[id]);
                all.push(Argument::Value(element(scalar.element).into(), value));
            } else {
                let size = stencil.parameters.iter().find(|(_, p)| is(p));
                let value = size.map_or(1, |(id, _)| self.sizes[id]);
                let name = ty.to_string();
                let name = name.trim_start_matches('.');
                let value = match name.starts_with('f') {
                    true => format!("{value}.0"),
                    false => value.to_string(),
                };
                all.push(Argument::Value(name.replace('b', "u"), value));
            }
        }
        Some(all)
    }

    /// The arguments of a sweep's kernels.
    fn arguments(&self, data: &Data) -> Vec<Argument> {
        let stencil = self.stencil();
        let mut all: Vec<Argument> = stencil.arrays.keys().map(Argument::Array).collect();
        for (id, scalar) in &stencil.scalars {
            let value = format!("{:?}", data.scalars[id]);
            all.push(Argument::Value(element(scalar.element).into(), value));
        }
        for size in self.sizes.values() {
            all.push(Argument::Value("s32".into(), size.to_string()));
        }
        all
    }

    /// Runs all that the version, whose kernels have these names, may launch on this grid.
    pub fn version(
        &self,
        names: &Names,
        version: &Version,
        expected: &Memory,
        checked: &mut Checked,
    ) -> Result<(), Fall> {
        let mut wrong_offset = false;
        for choice in version.sweep.choices(self.sizes, 256) {
            let aligned = choice.conditions.iter().all(|c| c.holds(self.sizes, 8));
            // A kernel that does not ask for alignment must not need it.
            let offset = if aligned && wrong_offset { 8 } else { 0 };
            wrong_offset = true;
            let kernels: Vec<(String, usize)> = choice
                .entries
                .iter()
                .map(|&at| (names.entry(&version.sweep.entries[at].suffix), at))
                .collect();
            self.launches(version, &kernels, offset, expected, checked)?;
        }
        Ok(())
    }

    /// The plain kernel of a stencil without a text of its own.
    fn plain(
        &self,
        version: &Version,
        expected: &Memory,
        checked: &mut Checked,
    ) -> Result<(), Fall> {
        let Some(plain) = as_written(self.stencil()).filter(|_| self.problem.cuda.is_none()) else {
            return Ok(());
        };
        let plain = Version {
            sweep: plain,
            way: Way::Boxes(Default::default()),
            ..version.clone()
        };
        let kernels = [(self.stencil().name.clone(), 0)];
        self.launches(&plain, &kernels, 0, expected, checked)
    }

    fn launches(
        &self,
        version: &Version,
        kernels: &[(String, usize)],
        offset: usize,
        expected: &Memory,
        checked: &mut Checked,
    ) -> Result<(), Fall> {
        let Some(mut data) = self.data() else {
            return Ok(());
        };
        let mut found = memory(self.stencil(), &data);
        for (name, entry) in kernels {
            let entry = &version.sweep.entries[*entry];
            let Some(grid) = entry.grid.blocks(self.sizes) else {
                continue;
            };
            let fault = |fault: String| Fall::Fault {
                kernel: name.clone(),
                sizes: self.named(),
                fault,
            };
            let kernel =
                symbol(self.module, name).ok_or_else(|| fault("it is not there".into()))?;
            let launched = Launched {
                kernel: &kernel,
                grid,
                block: entry.block,
                shared: entry.shared_bytes,
                offset,
                arguments: self.arguments(&data),
            };
            found = self.run(&launched, &data).map_err(fault)?;
            for (id, bytes) in self.stencil().arrays.keys().zip(&found) {
                data.arrays[id] = values(self.stencil().arrays[id].element, bytes);
            }
            if !checked.kernels.contains(name) {
                checked.kernels.push(name.clone());
            }
        }
        let reassociated = version.reassociates();
        let distance = self.distance(expected, &found);
        let most = if reassociated {
            tolerance(self.stencil())
        } else {
            0.0
        };
        if *expected != found && (!reassociated || distance > most) {
            return Err(Fall::Differs {
                kernel: kernels.first().map_or_else(String::new, |k| k.0.clone()),
                sizes: self.named(),
                distance,
            });
        }
        checked.distance = checked.distance.max(distance);
        Ok(())
    }

    fn distance(&self, expected: &Memory, found: &Memory) -> f64 {
        let mut worst = 0.0f64;
        let arrays = self.stencil().arrays.values();
        for (array, (a, b)) in arrays.zip(expected.iter().zip(found)) {
            let (a, b) = (values(array.element, a), values(array.element, b));
            let largest = a.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            for (a, b) in a.iter().zip(&b) {
                let apart = (a - b).abs();
                let apart = if apart.is_nan() { f64::INFINITY } else { apart };
                worst = worst.max(if largest > 0.0 {
                    apart / largest
                } else {
                    apart
                });
            }
        }
        worst
    }

    fn run(&self, launched: &Launched<'_>, data: &Data) -> Result<Memory, String> {
        let stencil = self.stencil();
        let mut order = Vec::new();
        let arguments = launched.arguments.iter().map(|argument| match argument {
            Argument::Array(id) => {
                order.push(*id);
                let element = stencil.arrays[*id].element;
                let bytes = bytes(element, &data.arrays[*id]);
                emulated::Argument::Array(self::element(element), bytes)
            }
            Argument::Unused => emulated::Argument::Unused,
            Argument::Value(ty, value) => emulated::Argument::Value(ty.clone(), value.clone()),
        });
        let arguments = arguments.collect();
        let launch = emulated::Launched {
            kernel: launched.kernel,
            grid: launched.grid,
            block: launched.block,
            shared: launched.shared,
            offset: launched.offset,
        };
        let buffers = emulated::run(self.module, &launch, arguments)?;
        let mut memory: Vec<(ArrayId, Vec<u8>)> = order.into_iter().zip(buffers).collect();
        memory.sort_by_key(|(id, _)| *id);
        Ok(memory.into_iter().map(|(_, bytes)| bytes).collect())
    }
}

fn element(element: Element) -> &'static str {
    match element {
        Element::F32 => "f32",
        Element::F64 => "f64",
    }
}

fn memory(stencil: &Stencil, data: &Data) -> Memory {
    let arrays = stencil.arrays.iter();
    arrays
        .map(|(id, a)| bytes(a.element, &data.arrays[id]))
        .collect()
}

fn bytes(element: Element, values: &[f64]) -> Vec<u8> {
    match element {
        Element::F32 => values
            .iter()
            .flat_map(|v| (*v as f32).to_le_bytes())
            .collect(),
        Element::F64 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
    }
}

fn values(element: Element, bytes: &[u8]) -> Vec<f64> {
    match element {
        Element::F32 => bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f64::from(f32::from_le_bytes(*b)))
            .collect(),
        Element::F64 => bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| f64::from_le_bytes(*b))
            .collect(),
    }
}
