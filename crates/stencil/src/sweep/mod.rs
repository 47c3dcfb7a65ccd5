//! One generated way to compute a stencil: device code, kernels, and when and how they are launched.
//!
//! The geometry of a launch and the conditions for it are data: `text.rs` prints them as host code, and whoever
//! runs a kernel elsewhere (the emulator, a test) evaluates the same data ([`Sweep::choice`], [`Grid::blocks`]).

mod text;

pub use text::{Names, standalone};
pub(crate) use text::{device, host_extent, try_function};

use crate::evaluate::{Sizes, extent};
use crate::ir::{Array, Element, Extent, ParameterId, Stencil};

/// How a stencil is computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// What the reader of the code should know, a line each.
    pub about: Vec<String>,
    /// Functions of the device, for a namespace of their own.
    pub device: String,
    /// The kernels.
    pub entries: Vec<Entry>,
    /// Which of them are launched; the first choice whose conditions hold counts.
    pub choices: Vec<Choice>,
}

/// A kernel. Its parameters are the stencil's arrays, scalars and sizes (`int`), by their names.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name after that of the sweep: `wide` is `NAME_sweep_wide`.
    pub suffix: String,
    /// `__launch_bounds__(…)` and the like.
    pub qualifiers: String,
    /// Its statements.
    pub body: String,
    /// Blocks.
    pub grid: Grid,
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block in bytes.
    pub shared_bytes: u32,
}

/// Kernels that are launched one after the other, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// All of these hold.
    pub conditions: Vec<Condition>,
    /// Places in [`Sweep::entries`].
    pub entries: Vec<usize>,
}

/// The blocks of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grid {
    /// Along x, y and z.
    Box([Blocks; 3]),
    /// One thread for each point of a box that is not in the box inside it, in blocks of `per` along x. Points along a
    /// dimension are a size and what is taken off it.
    Around {
        /// The larger box.
        all: Vec<(Extent, i64)>,
        /// The box inside it.
        inside: Vec<(Extent, i64)>,
        /// Threads of a block.
        per: u32,
    },
}

/// `(extent - less)` points, `per` of them for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// A size.
    pub extent: Extent,
    /// Cells of it that are not computed.
    pub less: i64,
    /// Points of a block.
    pub per: u32,
}

impl Blocks {
    /// One block.
    pub const ONE: Blocks = Blocks {
        extent: Extent {
            parameter: None,
            add: 1,
        },
        less: 0,
        per: 1,
    };
}

/// What a choice asks of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The size is even: rows of this length begin at aligned pairs of elements if the first one does.
    Even(Extent),
    /// Every array begins at a multiple of so many bytes.
    Aligned(u32),
    /// `extent - less` is at least so much.
    AtLeast(Extent, i64, i64),
    /// A size has this value.
    Is(ParameterId, i64),
}

impl Grid {
    /// The blocks of a launch; `None` where there is nothing to compute.
    pub fn blocks(&self, sizes: &Sizes) -> Option<[u64; 3]> {
        let count = |points: i64, per: u32| {
            let points = u64::try_from(points).ok().filter(|p| *p > 0)?;
            Some(points.div_ceil(per.into()))
        };
        match self {
            Grid::Box(along) => {
                let mut blocks = [1; 3];
                for (blocks, b) in blocks.iter_mut().zip(along) {
                    *blocks = count(extent(b.extent, sizes) - b.less, b.per)?;
                }
                Some(blocks)
            }
            Grid::Around { all, inside, per } => {
                let points = |of: &[(Extent, i64)]| {
                    let along = of.iter().map(|(e, less)| extent(*e, sizes) - less);
                    along.fold(1i64, |n, along| n.saturating_mul(along.max(0)))
                };
                Some([count(points(all) - points(inside), *per)?, 1, 1])
            }
        }
    }

    /// Points of a block along x, y and z.
    pub fn per(&self) -> [u32; 3] {
        match self {
            Grid::Box(along) => along.map(|b| b.per),
            Grid::Around { per, .. } => [*per, 1, 1],
        }
    }
}

impl Condition {
    /// Does it hold for arrays that begin at multiples of `aligned` bytes?
    pub fn holds(&self, sizes: &Sizes, aligned: u32) -> bool {
        match self {
            Condition::Even(size) => extent(*size, sizes) % 2 == 0,
            Condition::Aligned(bytes) => aligned.is_multiple_of(*bytes),
            Condition::AtLeast(size, less, least) => extent(*size, sizes) - less >= *least,
            Condition::Is(parameter, value) => sizes[*parameter] == *value,
        }
    }
}

impl Sweep {
    /// The choices that could be taken: all of them are correct where their conditions hold.
    pub fn choices(&self, sizes: &Sizes, aligned: u32) -> impl Iterator<Item = &Choice> {
        let holds = move |c: &Condition, sizes: &Sizes| c.holds(sizes, aligned);
        let sizes = sizes.clone();
        self.choices
            .iter()
            .filter(move |c| c.conditions.iter().all(|c| holds(c, &sizes)))
    }

    /// The choice that the host code takes.
    pub fn choice(&self, sizes: &Sizes, aligned: u32) -> Option<&Choice> {
        self.choices(sizes, aligned).next()
    }
}

/// The C name of a type.
pub fn c_type(element: Element) -> &'static str {
    match element {
        Element::F32 => "float",
        Element::F64 => "double",
        Element::I8 => "signed char",
        Element::U8 => "unsigned char",
        Element::I16 => "short",
        Element::U16 => "unsigned short",
        Element::I32 => "int",
        Element::U32 => "unsigned",
    }
}

/// Bytes of an element.
pub(crate) fn bytes(element: Element) -> u32 {
    element.size() as u32
}

/// A parameter of the kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// `const double*`
    pub ty: String,
    /// It is a pointer.
    pub pointer: bool,
    /// The stencil's name for it.
    pub name: String,
}

impl Parameter {
    fn declared(&self, restrict: bool) -> String {
        match restrict && self.pointer {
            true => format!("{} __restrict__ {}", self.ty, self.name),
            false => format!("{} {}", self.ty, self.name),
        }
    }
}

/// The parameters of the kernels: arrays that are arguments, scalars and sizes, each in the stencil's order.
pub fn parameters(stencil: &Stencil) -> Vec<Parameter> {
    values(stencil, |array| array.variable.is_none())
}

/// What a kernel knows: its parameters, and pointers to variables of the file.
pub(crate) fn known(stencil: &Stencil) -> Vec<Parameter> {
    values(stencil, |_| true)
}

fn values(stencil: &Stencil, has: impl Fn(&Array) -> bool) -> Vec<Parameter> {
    let arrays = stencil.arrays.values().filter(|a| has(a));
    let arrays = arrays.map(|a| Parameter {
        ty: format!(
            "{}{}*",
            if a.written { "" } else { "const " },
            c_type(a.element)
        ),
        pointer: true,
        name: a.name.clone(),
    });
    let scalars = stencil.scalars.values().map(|s| Parameter {
        ty: c_type(s.element).to_owned(),
        pointer: false,
        name: s.name.clone(),
    });
    let sizes = stencil.parameters.values().map(|name| Parameter {
        ty: "int".to_owned(),
        pointer: false,
        name: name.clone(),
    });
    arrays.chain(scalars).chain(sizes).collect()
}
