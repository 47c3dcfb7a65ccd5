//! The sizes at which a file's kernels are launched, as far as a launch is known: what rewrites from source to source are
//! predicted at.

use warpwright::Counted;
use warpwright_cudac::File;
use warpwright_host::parameter_names;
use warpwright_launch::{Arg, Launch};
use warpwright_naive::versions::Problem;
use warpwright_pass::names::base_name;
use warpwright_stencil::ir::Stencil;

use super::explain::counted;
use super::{cuda, own_run};
use crate::args::{Cli, KernelArgs, OwnArgs};
use crate::failure::Failure;
use crate::input::{Input, Level};
use crate::{progress, session};

/// The sizes of one kernel's launch.
struct Own {
    /// The kernel by its name in the source.
    kernel: String,
    /// Its integer arguments by the names of the parameters.
    sizes: Vec<(String, i64)>,
    grid: [u32; 3],
    /// Which launch it is, in words.
    at: String,
}

/// Those of the kernels of a file.
#[derive(Default)]
pub struct OwnSizes(Vec<Own>);

impl OwnSizes {
    /// Of launches that are known as they are: a size that is guessed or made small for counting says nothing.
    pub fn of(file: &File, counted: &[Counted]) -> OwnSizes {
        let is_known = |of: &&Counted| match &of.guessed {
            Some(guessed) => guessed.is_empty(),
            None => of.is_described() && !of.is_smaller,
        };
        let own = |of: &Counted| {
            let kernel = base_name(&of.launch.kernel);
            let header = file.kernels.iter().find(|h| h.name.text == kernel)?;
            Some(Own {
                sizes: integers(&parameter_names(file, header)?, &of.launch),
                kernel,
                grid: of.launch.grid,
                at: of.at.clone(),
            })
        };
        OwnSizes(counted.iter().filter(is_known).filter_map(own).collect())
    }

    /// Those of one kernel, for tests.
    #[cfg(test)]
    pub fn one(kernel: &str, sizes: &[(&str, i64)], at: &str) -> OwnSizes {
        OwnSizes(vec![Own {
            kernel: kernel.to_owned(),
            sizes: sizes
                .iter()
                .map(|(n, size)| ((*n).to_owned(), *size))
                .collect(),
            grid: [1; 3],
            at: at.to_owned(),
        }])
    }

    fn of_kernel(&self, name: &str) -> Option<&Own> {
        self.0.iter().find(|own| own.kernel == name)
    }

    /// States the sizes of a naive kernel, but for those that its pragma or somebody else states; gives back their names,
    /// and which launch has them.
    pub fn state(&self, problem: &mut Problem) -> Option<(Vec<String>, &str)> {
        let own = self.of_kernel(&problem.kernel.name)?;
        let names = problem.size_names();
        let stated = &problem.kernel.pragma.sizes;
        let is_open = |(name, _): &&(String, i64)| {
            names.contains(name) && stated.iter().all(|(stated, _)| stated != name)
        };
        let sizes: Vec<(String, i64)> = own.sizes.iter().filter(is_open).cloned().collect();
        problem.state(&sizes);
        let names = sizes.into_iter().map(|(name, _)| name).collect();
        Some((names, &own.at))
    }

    /// The sizes of a stencil that nobody gave, and which launch has them.
    pub fn of_stencil(
        &self,
        stencil: &Stencil,
        given: &[(String, i64)],
    ) -> Option<(Vec<(String, i64)>, &str)> {
        let own = self.of_kernel(&stencil.name)?;
        let of_argument = |name: &str| {
            let found = own.sizes.iter().find(|(own, _)| own == name);
            found.map(|(_, size)| *size)
        };
        let sizes = stencil.parameters.iter().filter_map(|(id, name)| {
            let of_grid = stencil.from_grid.iter().find(|(of, _)| *of == id);
            let size = match of_grid {
                Some((_, axis)) => own.grid.get(usize::from(*axis)).copied().map(i64::from),
                None => of_argument(name),
            };
            Some((name.clone(), size?))
        });
        let is_open = |(name, _): &(String, i64)| given.iter().all(|(given, _)| given != name);
        Some((sizes.filter(is_open).collect(), &own.at))
    }
}

/// The arguments of a launch that are positive integers.
fn integers(names: &[String], launch: &Launch) -> Vec<(String, i64)> {
    let integer = |arg: &Arg| {
        let is_integer = arg.ty.is_none_or(|ty| !ty.is_float());
        let number = match (&arg.bytes[..], arg.pointers.is_empty() && is_integer) {
            (&[a, b, c, d], true) => i64::from(i32::from_le_bytes([a, b, c, d])),
            (&[a, b, c, d, e, f, g, h], true) => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => return None,
        };
        (number > 0).then_some(number)
    };
    let all = names.iter().zip(&launch.args);
    all.filter_map(|(name, arg)| Some((name.clone(), integer(arg)?)))
        .collect()
}

/// The same for a rewrite: of the launch that is described, else of that which the file's program makes, else of that in
/// its code.
pub fn known(
    cli: &Cli,
    input: &Input,
    kernel: &KernelArgs,
    (own, nvcc): (&OwnArgs, &[String]),
) -> Result<OwnSizes, Failure> {
    if input.level != Level::Cuda {
        return Ok(OwnSizes::default());
    }
    let file = &cuda::read(cli, input, None, nvcc)?;
    let gpu = session::named_gpu(kernel.gpu.as_deref())?;
    let wanted = own_run::Wanted {
        own,
        nvcc,
        budget: own_run::BUDGET,
        gpu: gpu.as_ref(),
    };
    let until = own_run::until(wanted.budget);
    let run = || own_run::of(cli, input, kernel, wanted);
    let ran = progress::waiting(own_run::DOING, run);
    let found = (ran.as_ref(), until);
    let all = counted(cli, (input, Some(file)), kernel, nvcc, found)?;
    Ok(OwnSizes::of(file, &all))
}
