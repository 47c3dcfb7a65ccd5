//! The state of a kernel's symbolic execution, and what it leaves behind.

use std::collections::{BTreeMap, BTreeSet};

use super::edge::{Bent, Edges};
use super::guard::Domain;
use super::record::plain_name;
use super::tile::{Strided, Tile, TileRead};
use super::value::{Node, Operand, Pointer, not_understood};
use crate::ir::Element;
use warpwright_cudac::affine::{Places, Poly, Symbol, Test};
use warpwright_cudac::ast::{Expr, Function, Type};
use warpwright_cudac::diag::{Diagnostic, Span};
use warpwright_cudac::names::Scopes;
use warpwright_cudac::{File, Scalar, TypeNames};

/// What a kernel does, before its shape is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// Integer parameters by number, and behind them sizes of the grid.
    pub(super) sizes: Vec<String>,
    /// Sizes that are the number of blocks along an axis.
    pub(super) from_grid: Vec<(usize, u8)>,
    /// Sizes that are used as values, and what they are there.
    pub(super) valued: BTreeMap<usize, usize>,
    /// Parameters that are values, by number.
    pub(super) scalars: Vec<(String, Element)>,
    /// Pointer parameters by number, and the file's own arrays behind them.
    pub(super) arrays: Vec<RawArray>,
    pub(super) accesses: Vec<RawAccess>,
    pub(super) actions: Vec<Action>,
    /// By point symbol: the first variable that is the symbol plus a number, and the number.
    pub(super) names: BTreeMap<Symbol, (String, i64)>,
    pub(super) domain: Domain,
    /// What the other points of a larger box do.
    pub(super) border: Option<Border>,
    /// How many threads a block has, where the text presumes it.
    pub(super) places: Places,
    /// Some points are computed by several threads.
    pub(super) repeated: Option<Span>,
    /// Arrays that must not be stored to: values of theirs are kept.
    pub(super) kept: Vec<(usize, Span)>,
    /// Reads of shared memory whose cells must have been written.
    pub(super) tile_reads: Vec<TileRead>,
    /// Loads whose values are used by later iterations of a loop over points, by number.
    pub(super) ahead: Vec<usize>,
    /// What fills shared memory: an array, sizes, and how many elements are read from its beginning.
    pub(super) furthest: Vec<(usize, Vec<i64>, i64)>,
    /// Along each axis: the first thread of a block that computes, where not all do.
    pub(super) windows: [Option<i64>; 3],
    /// Threads of a block then, if they are known.
    pub(super) threads: [Option<i64>; 3],
    /// `blockDim` along an axis is asked for.
    pub(super) asked: [bool; 3],
    /// Places that are clamped or wrapped.
    pub(super) edges: Edges,
}

/// What the points of a box do that are not computed.
#[derive(Clone, Debug)]
pub(super) struct Border {
    /// The box, which has the computed points in it.
    pub(super) domain: Domain,
    pub(super) actions: Vec<Action>,
}

/// An array in memory.
#[derive(Clone, Debug)]
pub(super) struct RawArray {
    pub(super) name: String,
    pub(super) element: Element,
    /// A variable of the file and its lengths, none for a single number; `None` for an argument.
    pub(super) variable: Option<Vec<i64>>,
}

/// An access as written: one subscript for a plain pointer, several for arrays of arrays.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RawAccess {
    pub(super) array: usize,
    pub(super) offset: Poly,
    pub(super) lengths: Vec<Poly>,
    pub(super) subscripts: Vec<Poly>,
    /// What clamps or wraps its places, once it is known ([`Machine::straighten`]).
    pub(super) edges: Vec<Bent>,
    pub(super) span: Span,
}

/// A floating-point statement.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Declare(String, Element, Option<Operand>, Span),
    Assign(String, Operand, Span),
    Accumulate(String, Operand, Span),
    /// The access, whether it adds, the value.
    Store(usize, bool, Operand, Span),
    /// A variable's block ends.
    Forget(String),
    /// What stands under a condition; under one on the place of the point nothing is stored.
    Under(Guard, Box<Action>),
}

/// A condition under which something is done.
#[derive(Clone, Debug)]
pub(super) enum Guard {
    /// On the place of the point.
    Place(Test),
    /// On data: a variable that is not zero, or zero if the condition must not hold.
    Data(String, bool),
}

impl Action {
    /// What is done, without its conditions.
    pub(super) fn bare(&self) -> &Action {
        match self {
            Action::Under(_, action) => action.bare(),
            other => other,
        }
    }
}

/// A variable or parameter.
#[derive(Clone, Debug)]
pub(super) enum Var {
    Int(Poly),
    /// A `bool` that holds a condition on places.
    Test(Test),
    /// A `bool` that holds a condition on data.
    Flag(Node),
    /// A floating-point variable, and the leaf that it holds, if it holds one.
    Real(Element, Option<Box<Node>>),
    /// An argument of a function: what was passed, which is a leaf.
    Leaf(Node),
    Scalar(usize, Element),
    Pointer(Pointer),
    /// Constants, by number.
    Table(Element, Vec<f64>),
    /// Whole numbers, by number: offsets of neighbours.
    Integers(Vec<i64>),
    /// An array of a thread; each element is a variable.
    Cells(Vec<i64>),
    /// A structure that is an argument: its members are variables, `p.nx`.
    Record,
    /// Something that cannot be used, and why.
    Other(&'static str),
}

/// A whole number without a value.
pub(super) const NOT_SET: &str = "not set";

/// The state of the execution.
#[derive(Clone)]
pub(super) struct Machine<'a> {
    pub(super) file: &'a File,
    pub(super) trace: Trace,
    pub(super) domain: Domain,
    /// What holds where a condition is looked at, behind others.
    pub(super) beside: Option<Domain>,
    pub(super) scopes: Scopes<Var>,
    /// The template parameters that are types.
    pub(super) types: TypeNames,
    /// Calls that are being executed.
    pub(super) calls: usize,
    /// Scopes outside the innermost loop over points: what is in them is fixed inside it.
    pub(super) fixed: usize,
    pub(super) loops: usize,
    pub(super) unknowns: usize,
    /// The first store.
    pub(super) stored: Option<Span>,
    /// A condition or loop over points that has ended: no store may follow.
    pub(super) closed: Option<Span>,
    /// The innermost loop is one over points.
    pub(super) in_points: bool,
    /// Arrays in shared memory.
    pub(super) tiles: Vec<Tile>,
    /// Barriers so far.
    pub(super) barriers: usize,
    /// Conditions under which shared memory is written.
    pub(super) path: Vec<Test>,
    /// Conditions under which values are computed, and stored.
    pub(super) choices: Vec<Guard>,
    /// Blocks under such conditions that are being executed.
    pub(super) guarded: usize,
    /// Variables that have no value, or none at some points.
    pub(super) unset: BTreeSet<String>,
    /// Those that have one at the other points.
    pub(super) partly: BTreeSet<String>,
    /// Loops in which the threads of a block share the cells of a tile.
    pub(super) strided: Vec<Strided>,
    /// Quotients and remainders of places in a block.
    pub(super) derived: Vec<super::tile::Derived>,
    /// Globals that are being evaluated.
    pub(super) evaluating: Vec<String>,
    /// Globals that have been looked at.
    pub(super) globals: BTreeMap<String, Var>,
    /// Integer variables without a sign.
    pub(super) unsigned: BTreeSet<String>,
    /// Integer variables of 64 bits.
    pub(super) wide: BTreeSet<String>,
    /// Those of 8 and 16 bits.
    pub(super) narrow: BTreeMap<String, Element>,
    /// By size: its type, if it may be a value.
    pub(super) size_types: Vec<Option<Element>>,
    /// Integer variables that are values of the point.
    pub(super) counts: BTreeSet<String>,
    /// The thread's own arrays of known numbers.
    pub(super) lists: BTreeSet<String>,
    /// Choices by data in which a value is computed.
    pub(super) doubtful: usize,
    /// A loop is looked at to learn what it carries.
    pub(super) on_the_side: bool,
    steps: u32,
}

/// Most expressions that are looked at: loops are executed.
const MOST_STEPS: u32 = 400_000;

/// Where the execution goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flow {
    Next,
    Continue,
    Break,
    Return,
}

pub(super) type Done<T> = Result<T, Diagnostic>;

/// A parameter of a template, and what it is in this kernel.
pub(super) enum Bound {
    Type(String),
    Value(Expr),
}

/// Executes a kernel.
pub(super) fn run(file: &File, function: &Function, bound: Vec<(String, Bound)>) -> Done<Trace> {
    let mut machine = Machine {
        file,
        trace: Trace::default(),
        domain: Domain::new(),
        beside: None,
        scopes: Scopes::default(),
        types: TypeNames::new(),
        calls: 0,
        fixed: 0,
        loops: 0,
        unknowns: 0,
        stored: None,
        closed: None,
        in_points: false,
        tiles: Vec::new(),
        barriers: 0,
        path: Vec::new(),
        choices: Vec::new(),
        guarded: 0,
        unset: BTreeSet::new(),
        partly: BTreeSet::new(),
        strided: Vec::new(),
        derived: Vec::new(),
        evaluating: Vec::new(),
        globals: BTreeMap::new(),
        unsigned: BTreeSet::new(),
        wide: BTreeSet::new(),
        narrow: BTreeMap::new(),
        size_types: Vec::new(),
        counts: BTreeSet::new(),
        lists: BTreeSet::new(),
        doubtful: 0,
        on_the_side: false,
        steps: 0,
    };
    for (name, bound) in bound {
        machine.bind(&name, bound)?;
    }
    for parameter in &function.parameters {
        let var = machine.parameter(&parameter.name.text, &parameter.ty, &parameter.span)?;
        machine.scopes.declare(&parameter.name.text, var);
    }
    let trace = &machine.trace;
    let arrays = trace.arrays.iter().map(|array| &array.name);
    let scalars = trace.scalars.iter().map(|(name, _)| name);
    let mut seen = BTreeSet::new();
    let mut all = trace.sizes.iter().chain(scalars).chain(arrays);
    if let Some(twice) = all.find(|name| !seen.insert(*name)) {
        let what =
            format!("an argument and a member of another one are both called `{twice}` here");
        return Err(Diagnostic::error("stencil::argument", what)
            .label(function.name.span.clone(), "in this kernel"));
    }
    machine.find_lists(&function.body);
    machine.find_counts(function);
    machine.block(&function.body)?;
    if machine.stored.is_none() {
        let what = format!("`{}` stores nothing", function.name.text);
        return Err(Diagnostic::error("stencil::no-output", what)
            .label(function.name.span.clone(), "this kernel"));
    }
    machine.bound_by_grid();
    machine.finish(&function.name.span)?;
    Ok(machine.trace)
}

impl Machine<'_> {
    fn bind(&mut self, name: &str, bound: Bound) -> Done<()> {
        match bound {
            Bound::Type(ty) => {
                self.types.insert(name.to_owned(), ty);
            }
            Bound::Value(value) => {
                let var = match self.value(&value)? {
                    super::value::Val::Int(value) if value.as_constant().is_some() => {
                        Var::Int(value)
                    }
                    _ => return Err(not_understood("this template argument", &value.span)),
                };
                self.scopes.declare(name, var);
            }
        }
        Ok(())
    }

    fn parameter(&mut self, name: &str, ty: &Type, span: &Span) -> Done<Var> {
        let narrow = self.data_element(ty).filter(|_| !self.is_integer(ty));
        if let Some(element) = narrow {
            self.trace.scalars.push((plain_name(name), element));
            return Ok(Var::Scalar(self.trace.scalars.len() - 1, element));
        }
        if self.is_integer(ty) {
            self.note_type(name, ty);
            self.trace.sizes.push(plain_name(name));
            self.size_types
                .push(self.data_element(ty).filter(|e| e.size() == 4));
            let size = Symbol::Size(self.trace.sizes.len() - 1);
            return Ok(Var::Int(Poly::symbol(size)));
        }
        let Type::Pointer(to, _) = ty.bare() else {
            let Some(members) = self.file.members(ty, &self.types) else {
                return Ok(Var::Other("an argument of a type that is not understood"));
            };
            for member in members {
                let name = format!("{name}.{}", member.name);
                let var = match member.ty.bare() {
                    Type::Pointer(..) => Var::Other("an array in a structure"),
                    _ => self.parameter(&name, &member.ty, span)?,
                };
                self.scopes.declare(&name, var);
            }
            return Ok(Var::Record);
        };
        let (element, lengths) = self.row_type(to, span)?;
        let Some(element) = element else {
            return Ok(Var::Other(
                "no array of numbers of at most 32 bits or `double`",
            ));
        };
        let array = self.array(name, element, None);
        Ok(Var::Pointer(Pointer::new(array, lengths)))
    }

    /// Planes of blocks that no condition bounds are as many as the launch has blocks.
    fn bound_by_grid(&mut self) {
        for axis in 0..3u8 {
            let symbol = Symbol::BlockIdx(axis);
            let stores = self
                .trace
                .actions
                .iter()
                .filter_map(|action| match action.bare() {
                    Action::Store(access, _, _, span) => {
                        Some((&self.trace.accesses[*access], span))
                    }
                    _ => None,
                });
            let by_block = |access: &&RawAccess| {
                let mut all = access.subscripts.iter().chain([&access.offset]);
                all.any(|at| at.points().contains(&symbol))
            };
            let mut own = stores.filter(|(access, _)| by_block(access));
            let Some((_, span)) = own.next() else {
                continue;
            };
            let span = span.clone();
            let is_bounded = self.trace.domain.get(&symbol);
            if is_bounded.is_some_and(|b| !b.ends.is_empty()) || self.trace.border.is_some() {
                continue;
            }
            let size = self.trace.sizes.len();
            self.trace
                .sizes
                .push(format!("blocks_{}", ["x", "y", "z"][usize::from(axis)]));
            self.trace.from_grid.push((size, axis));
            let end = (Poly::symbol(Symbol::Size(size)), span);
            self.trace.domain.entry(symbol).or_default().ends.push(end);
        }
    }

    /// A new array.
    pub(super) fn array(
        &mut self,
        name: &str,
        element: Element,
        variable: Option<Vec<i64>>,
    ) -> usize {
        let name = name.to_owned();
        self.trace.arrays.push(RawArray {
            name,
            element,
            variable,
        });
        self.trace.arrays.len() - 1
    }

    /// Notes what is done, under the conditions at hand.
    pub(super) fn act(&mut self, action: Action) {
        let tests = self.choices.iter().rev();
        let action = tests.fold(action, |action, guard| {
            Action::Under(guard.clone(), Box::new(action))
        });
        self.trace.actions.push(action);
    }

    /// Notes whether a variable has a value now.
    pub(super) fn note_value(&mut self, name: &str, has_one: bool) {
        self.partly.remove(name);
        match has_one {
            true => self.unset.remove(name),
            false => self.unset.insert(name.to_owned()),
        };
    }

    /// A new unknown.
    pub(super) fn unknown(&mut self) -> Symbol {
        self.unknowns += 1;
        Symbol::Unknown(self.unknowns - 1)
    }

    /// A type with the file's own names for types replaced.
    pub(super) fn resolved(&self, ty: &Type) -> Type {
        self.file.resolved(ty, &self.types)
    }

    /// The element type, if it is `float` or `double`.
    pub(super) fn element(&self, ty: &Type) -> Option<Element> {
        match self.file.scalar(ty, &self.types) {
            Some(Scalar::Float) => Some(Element::F32),
            Some(Scalar::Double) => Some(Element::F64),
            _ => None,
        }
    }

    pub(super) fn is_integer(&self, ty: &Type) -> bool {
        matches!(self.file.scalar(ty, &self.types), Some(Scalar::Integer(..)))
    }

    pub(super) fn variable(&self, name: &str) -> Option<&Var> {
        self.scopes.get(name).or_else(|| self.globals.get(name))
    }

    /// Writes places of threads in the grid as such.
    pub(super) fn placed(&mut self, value: Poly) -> Poly {
        self.trace.places.merged(value)
    }

    /// Counts a step; loops with many iterations stop here.
    pub(super) fn step(&mut self, span: &Span) -> Done<()> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            let what = "the kernel has too many operations once its loops are unrolled";
            return Err(Diagnostic::error("stencil::size", what).label(span.clone(), "up to here"));
        }
        Ok(())
    }

    /// What can only be known at the end.
    fn finish(&mut self, name: &Span) -> Done<()> {
        if let Some(axis) = self.trace.places.conflict {
            let axis = ['x', 'y', 'z'][usize::from(axis)];
            let what = format!("two block sizes along {axis} are presumed");
            return Err(Diagnostic::error("stencil::block", what)
                .label(name.clone(), "in this kernel")
                .help("use `blockDim`, or one number"));
        }
        self.find_windows(name)?;
        self.trace.prune();
        self.straighten()?;
        self.check_kept()?;
        self.check_repeated()?;
        self.check_tiles()
    }

    /// Values that were kept are still those of the array.
    fn check_kept(&self) -> Done<()> {
        for (array, span) in &self.trace.kept {
            if let Some(stored) = self.stores_to(*array).next() {
                let what = format!(
                    "values of `{}` are kept while it is written",
                    self.trace.arrays[*array].name
                );
                return Err(Diagnostic::error("stencil::in-place", what)
                    .label(span.clone(), "kept here")
                    .label(stored, "written here")
                    .help("write to a second array, and exchange the two between sweeps"));
            }
        }
        Ok(())
    }

    /// Points that two threads compute must get the same values from both.
    fn check_repeated(&self) -> Done<()> {
        let Some(span) = &self.trace.repeated else {
            return Ok(());
        };
        for used in self.trace.all_used() {
            let access = &self.trace.accesses[used];
            if let Some(stored) = self.stores_to(access.array).next()
                && access.span != stored
            {
                let what = "points that two threads compute are read and written";
                return Err(Diagnostic::error("stencil::race", what)
                    .label(stored, "written here")
                    .label(span.clone(), "two threads have the same point"));
            }
        }
        let mut actions = self.trace.actions.iter().map(Action::bare);
        let adds = |a: &&Action| matches!(a, Action::Store(_, true, ..));
        if let Some(Action::Store(.., stored)) = actions.find(adds) {
            let what = "points that two threads compute are added to";
            return Err(Diagnostic::error("stencil::race", what)
                .label(stored.clone(), "added here")
                .label(span.clone(), "two threads have the same point"));
        }
        Ok(())
    }

    /// Where an array is stored to.
    fn stores_to(&self, array: usize) -> impl Iterator<Item = Span> {
        let border = self.trace.border.iter().flat_map(|b| &b.actions);
        let all = self.trace.actions.iter().chain(border);
        all.filter_map(move |action| match action.bare() {
            Action::Store(access, ..) => {
                let access = &self.trace.accesses[*access];
                (access.array == array).then(|| access.span.clone())
            }
            _ => None,
        })
    }
}
