//! The sizes at which a file's kernels are launched, as far as a launch is known: what rewrites from source to source are
//! predicted at.

use serde::Serialize;
use warpwright_cudac::File;
use warpwright_host::parameter_names;
use warpwright_launch::{Arg, Launch};
use warpwright_naive::emit::shape_refused;
use warpwright_naive::ir::Kernel;
use warpwright_naive::versions::Problem;
use warpwright_pass::names::{base_name, template_arguments};
use warpwright_stencil::ir::Stencil;

use crate::Counted;

/// The sizes of one kernel's launch.
struct Own {
    /// The kernel by its name in the source.
    kernel: String,
    /// Of an instance of a template its arguments.
    arguments: Vec<String>,
    /// Its integer arguments by the names of the parameters.
    sizes: Vec<(String, i64)>,
    grid: [u32; 3],
    block: Option<[u32; 3]>,
    /// Which launch it is, in words.
    at: String,
}

/// Those of the kernels of a file.
#[derive(Default)]
pub struct OwnSizes(Vec<Own>);

impl Own {
    /// Why the rewrite of a kernel leaves this launch to the kernel as written; what is known of it decides.
    fn refused(&self, kernel: &Kernel) -> Option<String> {
        shape_refused(kernel, self.grid, self.block?)
    }
}

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
                arguments: template_arguments(&of.launch.kernel),
                kernel,
                grid: of.launch.grid,
                block: Some(of.launch.block),
                at: of.at.clone(),
            })
        };
        OwnSizes(counted.iter().filter(is_known).filter_map(own).collect())
    }

    /// Those of one kernel, where somebody knows them.
    pub fn one(kernel: &str, sizes: &[(&str, i64)], at: &str) -> OwnSizes {
        OwnSizes(vec![Own {
            kernel: kernel.to_owned(),
            arguments: Vec::new(),
            sizes: sizes
                .iter()
                .map(|(n, size)| ((*n).to_owned(), *size))
                .collect(),
            grid: [1; 3],
            block: None,
            at: at.to_owned(),
        }])
    }

    /// Threads of a block of a kernel's launch, where somebody knows them.
    pub fn block(&self, kernel: &str) -> Option<[u32; 3]> {
        self.of_kernel(kernel)?.block
    }

    fn of_kernel(&self, name: &str) -> Option<&Own> {
        self.0.iter().find(|own| own.kernel == name)
    }

    /// The launch of a kernel; of a template that of the instance, unless only one is known and its types alone may be
    /// written otherwise.
    fn of_instance(&self, kernel: &Kernel) -> Option<&Own> {
        let named = self.0.iter().filter(|own| own.kernel == kernel.name);
        let Some(template) = &kernel.template else {
            // Of several launches one that the rewrite takes.
            let taken = named.clone().find(|own| own.refused(kernel).is_none());
            return taken.or_else(|| named.clone().next());
        };
        let given: Vec<&str> = template
            .arguments
            .iter()
            .map(|(.., what)| &**what)
            .collect();
        let mut all = named;
        if let Some(own) = all.clone().find(|own| own.arguments == given) {
            return Some(own);
        }
        let first = all.next()?;
        let is_alone = all.all(|other| other.arguments == first.arguments);
        let numbers = |all: &mut dyn Iterator<Item = &str>| {
            all.map(|text| text.parse::<i64>().ok()).collect::<Vec<_>>()
        };
        let own = numbers(&mut first.arguments.iter().map(String::as_str));
        (is_alone && own == numbers(&mut given.into_iter())).then_some(first)
    }

    /// States the sizes of a naive kernel, but for those that its pragma or somebody else states; gives back their names,
    /// and which launch has them.
    pub fn state(&self, problem: &mut Problem) -> Option<(Vec<String>, &str)> {
        let own = self.of_instance(&problem.kernel)?;
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

    /// Why the rewrite of a naive kernel would leave every launch that is known to the kernel as written.
    pub fn refused(&self, kernel: &Kernel) -> Option<String> {
        let own = self.of_instance(kernel)?;
        let why = own.refused(kernel)?;
        Some(format!("{} has {why}", own.at))
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

/// The sizes that a kernel is rewritten for.
#[derive(Debug, Serialize)]
pub struct Sizes {
    all: Vec<(String, i64)>,
    /// Those of them that a launch has.
    launched: Vec<String>,
    /// Which launch.
    launch: Option<String>,
    /// Those of them that nobody says.
    assumed: Vec<String>,
}

impl Sizes {
    /// In words, behind what goes by them.
    pub fn at(&self) -> String {
        let is_one = |names: &[String], name: &str| names.iter().any(|n| n == name);
        let one = |(name, size): &(String, i64)| match is_one(&self.assumed, name) {
            true => format!("{name} = {size} (assumed: --grid {name}=N)"),
            false => format!("{name} = {size}"),
        };
        let all: Vec<String> = self.all.iter().map(one).collect();
        let launch = self.launch.as_ref().filter(|_| !self.launched.is_empty());
        let launch = launch.map_or_else(String::new, |launch| format!(" ({launch})"));
        match all[..] {
            [] => String::new(),
            _ => format!(" at {}{launch}", all.join(", ")),
        }
    }

    /// The options that state them again.
    pub fn options(&self) -> String {
        let launched = self.all.iter();
        let launched = launched.filter(|(name, _)| self.launched.contains(name));
        launched
            .map(|(name, size)| format!(" --grid {name}={size}"))
            .collect()
    }
}

/// States the sizes of a kernel: those that are given, then what its pragma says, then those of its launch.
pub fn state(problem: &mut Problem, given: &[(String, i64)], own: &OwnSizes) -> Sizes {
    problem.state(given);
    let stated: Vec<String> = problem
        .kernel
        .pragma
        .sizes
        .iter()
        .map(|(n, _)| n.clone())
        .collect();
    let own = own.state(problem);
    let (launched, launch) = own.map_or((Vec::new(), None), |(names, at)| {
        (names, Some(at.to_owned()))
    });
    let all = problem.expected_sizes();
    let is_assumed = |name: &&String| !stated.contains(name) && !launched.contains(name);
    let assumed = all.iter().map(|(name, _)| name).filter(is_assumed);
    Sizes {
        assumed: assumed.cloned().collect(),
        all,
        launched,
        launch,
    }
}
