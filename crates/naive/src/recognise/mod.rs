//! A kernel of CUDA C to a [`Kernel`]: does a thread compute one output element, and from what?
//!
//! The kernel is executed symbolically, once: integers become polynomials where they can, guards become the bounds of
//! the points, loops stay loops. Indices are the four kinds of section 3.2 of Yang et al. (PLDI 2010): constant,
//! predefined and loop indices are polynomials, unresolved ones are values.
//!
//! Refused by name: shared memory and barriers (the kernel is not naive), atomics whose order counts, loops of another
//! form than a counter upwards, stores that two points may share, functions with effects, pointers that change. Where
//! this refuses a kernel, it is executed once more `loose`: then loops of any form are kept as they were written, with
//! what they change as variables of the thread, and jumps as flags (`jumps`).

mod apart;
mod below;
mod finish;
mod flat;
mod grid;
mod inline;
mod jumps;
mod pragma;
mod pure;
mod registers;
mod statements;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use warpwright_cudac::affine::{Places, Poly, Symbol};
use warpwright_cudac::ast::{Block, Expr, Function, Type};
use warpwright_cudac::def_use::DefUse;
use warpwright_cudac::definitions::TemplateArgument;
use warpwright_cudac::diag::{Diagnostic, Span};
use warpwright_cudac::instance::{first_instance, word};
use warpwright_cudac::names::Scopes;
use warpwright_cudac::{File, Header, Scalar, TypeNames, print};

use flat::{Digits, Wish};
use grid::Grid;

use crate::ir::{
    Access, Array, Index, Kernel, Parameter, ParameterKind, Pragma, Statement, Template, Value,
    Variable,
};

type Done<T> = Result<T, Diagnostic>;

/// What a name means.
#[derive(Clone, Debug)]
enum Var {
    Int(Poly, Scalar),
    /// A variable of the kernel, by number.
    Value(usize),
    /// The same behind a loop that counts in it: what it holds there is not followed.
    Counter(usize),
    /// Behind a loop that counts in it, where it is a polynomial else.
    Counted,
    /// A parameter that is passed by value.
    Parameter(usize),
    Pointer(Pointer),
    /// Something that cannot be used, and why.
    Other(&'static str),
}

/// An array with an offset, and the subscripts that were given so far.
#[derive(Clone, Debug)]
struct Pointer {
    array: usize,
    offset: Index,
    /// Lengths of the arrays that it points to.
    lengths: Vec<Poly>,
    taken: Vec<Index>,
}

/// What an expression is.
#[derive(Clone, Debug)]
enum Val {
    Int(Poly, Scalar),
    Pointer(Pointer),
    Value(Value),
}

#[derive(Clone)]
struct Machine<'a> {
    file: &'a File,
    kernel: Kernel,
    scopes: Scopes<Var>,
    types: TypeNames,
    places: Places,
    /// Assignments of the whole function, by name.
    uses: DefUse,
    /// Guards may still bound the points: nothing was stored, and no loop or condition is open.
    open: bool,
    /// Loops and conditions around the present place.
    depth: usize,
    /// Names of variables that hold places.
    names: BTreeMap<Symbol, String>,
    steps: u32,
    /// What the place along x is taken apart into.
    digits: Digits,
    /// A division that asks for one more digit.
    wish: Option<Wish>,
    /// What the values and subscripts so far depend on.
    used: BTreeSet<Symbol>,
    grid: Grid,
    /// Variables that only a loop without a first value of its own counts in, and how many loops are around their
    /// declarations.
    counting: BTreeMap<String, usize>,
    /// Variables that are only assigned to beside their declaration, in the same block: each assignment is a variable of
    /// its own. With their types, once they are declared.
    straight: BTreeMap<String, Option<Type>>,
    /// Calls that variables are set to, and nothing else: the largest or the smallest of some places.
    clamped: BTreeMap<usize, Value>,
    /// Loops around the present place.
    turning: usize,
    /// Loops of any form are kept as they are written, where they do not count upwards.
    loose: bool,
    /// Flags so far, whose names are numbered.
    flags: usize,
    /// Counters that are read outside of their loops.
    escaping: BTreeSet<String>,
    /// Variables that functions may change which they are passed to.
    referred: BTreeSet<String>,
    /// Variables that were read, and those that a loop counts in instead.
    read: BTreeSet<usize>,
    counted: BTreeSet<usize>,
    /// What parameters are copied to that are assigned to.
    copies: Vec<Statement>,
    /// Functions around the present place.
    inlined: usize,
    /// Types of parameters that are structures.
    structures: BTreeMap<usize, Type>,
}

/// Most expressions that are looked at.
const MOST_STEPS: u32 = 200_000;

/// Is there a pragma that marks a kernel as naive? One that is not understood is an error.
///
/// # Errors
/// The pragma is not understood, or names what is no parameter.
pub fn is_marked(file: &File, header: &Header) -> Result<bool, Diagnostic> {
    let pragma = pragma::of(file, header)?;
    // A head that is not understood is said where the kernel is.
    if let (Some(pragma), Ok(function)) = (&pragma, file.kernel(header)) {
        let parameters = function.parameters.iter();
        let parameters: Vec<&str> = parameters.map(|p| p.name.text.as_str()).collect();
        pragma::fits(pragma, &parameters, (file, header))?;
    }
    Ok(pragma.is_some())
}

/// The naive kernel that a kernel of a file is.
///
/// # Errors
/// What is in the way, with its place.
pub fn recognise(file: &File, header: &Header) -> Result<Kernel, Diagnostic> {
    let pragma = pragma::of(file, header)?.unwrap_or_default();
    if header.is_member || header.nested && header.template.is_none() {
        let what = "a kernel inside something else is not rewritten";
        return Err(problem("naive::template", what, &header.name.span, "here"));
    }
    let function = file.kernel(header)?;
    let strict = executed(file, header, &function, &pragma, false);
    // What is in the way of a loop over the grid is said as such.
    let over_grid = DefUse::of(&function.body).sites("gridDim").is_some();
    strict.or_else(|first| {
        let loose = executed(file, header, &function, &pragma, true);
        loose.map_err(|last| if over_grid { first } else { last })
    })
}

/// The kernel, with loops of any form where it is `loose`.
fn executed(
    file: &File,
    header: &Header,
    function: &Function,
    pragma: &Pragma,
    loose: bool,
) -> Done<Kernel> {
    let unresolved = |kernel: &Kernel| {
        let is = |a: &&Access| a.affine().is_none();
        kernel.accesses.iter().filter(is).count()
    };
    let (mut digits, mut best, mut problem) = (Digits::default(), None::<Kernel>, None);
    loop {
        let (found, wish) = attempt(
            file,
            header,
            function,
            pragma.clone(),
            (digits.clone(), loose),
        );
        match found {
            Ok(kernel) => {
                let better = |best: &Kernel| unresolved(&kernel) < unresolved(best);
                if best.as_ref().is_none_or(better) {
                    best = Some(kernel);
                }
            }
            Err(found) => problem = Some(found),
        }
        match wish {
            Some(wish) if digits.count() < flat::MOST && digits.split(&wish) => {}
            _ => break,
        }
    }
    best.ok_or_else(|| problem.unwrap_or_else(|| refused("this kernel", &header.name.span)))
}

/// The kernel with its place along x taken apart so; and a division that asks for more.
fn attempt(
    file: &File,
    header: &Header,
    function: &Function,
    pragma: Pragma,
    (digits, loose): (Digits, bool),
) -> (Done<Kernel>, Option<Wish>) {
    let kernel = Kernel {
        name: header.name.text.clone(),
        template: None,
        parameters: Vec::new(),
        arrays: Vec::new(),
        sizes: Vec::new(),
        dims: Vec::new(),
        flat: None,
        block: [None; 3],
        single: [false; 3],
        variables: Vec::new(),
        accesses: Vec::new(),
        loops: Vec::new(),
        body: Vec::new(),
        ranges: Vec::new(),
        pragma,
    };
    let mut machine = Machine {
        file,
        kernel,
        scopes: Scopes::default(),
        types: TypeNames::new(),
        places: Places::default(),
        uses: DefUse::of(&function.body),
        open: true,
        depth: 0,
        names: BTreeMap::new(),
        steps: 0,
        digits,
        wish: None,
        used: BTreeSet::new(),
        grid: Grid::default(),
        counting: BTreeMap::new(),
        straight: BTreeMap::new(),
        clamped: BTreeMap::new(),
        turning: 0,
        loose,
        flags: 0,
        escaping: BTreeSet::new(),
        referred: BTreeSet::new(),
        read: BTreeSet::new(),
        counted: BTreeSet::new(),
        copies: Vec::new(),
        inlined: 0,
        structures: BTreeMap::new(),
    };
    let done = machine.whole(header, function);
    (done.map(|()| machine.kernel), machine.wish)
}

fn problem(code: &'static str, what: impl Into<String>, at: &Span, label: &str) -> Diagnostic {
    Diagnostic::error(code, what.into()).label(at.clone(), label.to_owned())
}

/// A construct that is outside of what naive kernels have.
fn refused(what: &str, at: &Span) -> Diagnostic {
    problem("naive::construct", what, at, "this is no naive kernel")
}

impl Machine<'_> {
    fn whole(&mut self, header: &Header, function: &Function) -> Done<()> {
        self.begin_template(header)?;
        self.begin_flat();
        self.begin_function(&function.body);
        for parameter in &function.parameters {
            let declared = self.file.source.text.get(parameter.span.clone());
            let declared = declared.unwrap_or("").to_owned();
            let name = &parameter.name;
            self.parameter(&name.text, &parameter.ty, declared, &name.span)?;
        }
        let body = self.block(&function.body, true)?;
        self.kernel.body = std::mem::take(&mut self.copies);
        self.kernel.body.extend(body);
        if let Some(both) = self.counted.intersection(&self.read).next() {
            let name = &self.kernel.variables[*both].name;
            let what = format!("`{name}` is read outside of the loop that counts in it");
            return Err(refused(&what, &header.name.span));
        }
        self.finish(&header.name.span)?;
        finish::note_order(&mut self.kernel);
        registers::kept(&mut self.kernel);
        below::note(&mut self.kernel);
        Ok(())
    }

    /// Notes how a function uses its variables.
    fn begin_function(&mut self, body: &Block) {
        self.begin_referred(body);
        self.begin_escaping(body);
        if !self.loose {
            self.begin_counting(body);
        }
        self.begin_straight(body);
    }

    /// Takes the first instance of a template for the kernel.
    fn begin_template(&mut self, header: &Header) -> Done<()> {
        let given = first_instance(self.file, header, "naive::template")?;
        let Some(head) = header.head.clone().filter(|_| !given.is_empty()) else {
            return Ok(());
        };
        let mut arguments = Vec::new();
        for (name, argument) in given {
            arguments.push(match argument {
                TemplateArgument::Type(ty) => {
                    let ty = self.file.type_named(&word(&ty));
                    self.types.insert(name.clone(), ty.clone());
                    (true, name, ty)
                }
                TemplateArgument::Value(value) => {
                    let var = match self.value(&value)? {
                        Val::Int(poly, scalar) => Var::Int(poly, scalar),
                        _ => Var::Other("a value of a template that is no integer"),
                    };
                    self.scopes.declare(&name, var);
                    (false, name, print::expr(&value))
                }
            });
        }
        let head = self.file.source.text.get(head).unwrap_or_default();
        let head = head.trim().to_owned();
        self.kernel.template = Some(Template { head, arguments });
        Ok(())
    }

    fn parameter(&mut self, name: &str, ty: &Type, declared: String, at: &Span) -> Done<()> {
        let number = self.kernel.parameters.len();
        let scalar = self.file.scalar(ty, &self.types);
        let changed = self.is_assigned(name);
        let (kind, var) = match (scalar, ty.bare()) {
            (Some(scalar @ Scalar::Integer(32 | 64, _)), _) if !changed => {
                let size = self.kernel.sizes.len();
                self.kernel.sizes.push(number);
                let poly = Poly::symbol(Symbol::Size(size));
                (ParameterKind::Size(size, scalar), Var::Int(poly, scalar))
            }
            (_, Type::Pointer(to, _)) if !changed => match self.pointed(to, at) {
                Ok((element, lengths)) => {
                    let array = self.array(name, Some(number), &element, None);
                    let pointer = Pointer {
                        array,
                        offset: Index::Affine(Poly::default()),
                        lengths,
                        taken: Vec::new(),
                    };
                    (ParameterKind::Array(array), Var::Pointer(pointer))
                }
                Err(_) => (
                    ParameterKind::Unused,
                    Var::Other("a pointer to something that is not understood"),
                ),
            },
            (scalar, Type::Named(_)) if changed => {
                let variable = self.variable(name, ty);
                let value = Some(Value::Parameter(number));
                self.copies.push(Statement::Declare(variable, value));
                (ParameterKind::Scalar(scalar), Var::Value(variable))
            }
            _ if changed => (
                ParameterKind::Unused,
                Var::Other("a parameter that is assigned to"),
            ),
            (scalar, named @ Type::Named(_)) => {
                if scalar.is_none() {
                    self.structures.insert(number, named.clone());
                }
                (ParameterKind::Scalar(scalar), Var::Parameter(number))
            }
            _ => (
                ParameterKind::Unused,
                Var::Other("a parameter of a type that is not understood"),
            ),
        };
        let template = self.kernel.template.as_ref();
        let parameter = Parameter::new(name, declared, template, kind);
        self.kernel.parameters.push(parameter);
        self.scopes.declare(name, var);
        Ok(())
    }

    /// Is a name assigned to anywhere, apart from the first values of its declarations? (Each stands for itself in its
    /// own scope.)
    fn is_assigned(&self, name: &str) -> bool {
        let sites = self.uses.sites(name);
        (sites.is_some_and(|s| !s.assigned.is_empty()) || self.referred.contains(name))
            && !self.counting.contains_key(name)
            && !self.straight.contains_key(name)
    }

    /// The elements of what a pointer points to, and the lengths of arrays of them.
    fn pointed(&mut self, ty: &Type, at: &Span) -> Done<(Type, Vec<Poly>)> {
        let mut lengths = Vec::new();
        let mut ty = ty.bare().clone();
        while let Type::Array(of, length) = ty {
            let length = length.ok_or_else(|| refused("an array without a length", at))?;
            match self.value(&length)? {
                Val::Int(length, _) => lengths.push(length),
                _ => return Err(refused("an array of this length", at)),
            }
            ty = of.bare().clone();
        }
        match self.file.resolved(&ty, &self.types) {
            named @ Type::Named(_) => Ok((named, lengths)),
            _ => Err(refused("a pointer to pointers", at)),
        }
    }

    fn array(
        &mut self,
        name: &str,
        parameter: Option<usize>,
        element: &Type,
        length: Option<i64>,
    ) -> usize {
        let scalar = self.file.scalar(element, &self.types);
        let text = print::declared(element, "").trim().to_owned();
        self.kernel.arrays.push(Array {
            name: name.to_owned(),
            parameter,
            bytes: bytes(&text, scalar),
            element: text,
            scalar,
            length,
            rows: 0,
            is_fixed: false,
            stored: false,
            early: false,
        });
        self.kernel.arrays.len() - 1
    }

    fn variable(&mut self, name: &str, ty: &Type) -> usize {
        let ty = self.file.resolved(ty, &self.types);
        let scalar = self.file.scalar(&ty, &self.types);
        self.kernel.variables.push(Variable {
            name: name.to_owned(),
            ty: print::declared(&ty, "").trim().to_owned(),
            scalar,
        });
        self.kernel.variables.len() - 1
    }

    fn step(&mut self, expr: &Expr) -> Done<()> {
        self.steps += 1;
        match self.steps > MOST_STEPS {
            true => Err(refused("so much code", &expr.span)),
            false => Ok(()),
        }
    }
}

/// Bytes of an element; 0 where they are not known.
fn bytes(name: &str, scalar: Option<Scalar>) -> u32 {
    match scalar {
        Some(Scalar::Bool) => 1,
        Some(Scalar::Integer(bits, _)) => u32::from(bits) / 8,
        Some(Scalar::Float) => 4,
        Some(Scalar::Double) => 8,
        None => match name {
            "char" | "signed char" | "unsigned char" | "uint8_t" | "int8_t" => 1,
            "char2" | "uchar2" => 2,
            "char3" | "uchar3" => 3,
            "half" | "__half" => 2,
            "half2" | "__half2" => 4,
            "char4" | "uchar4" | "short2" | "ushort2" => 4,
            "float2" | "int2" | "uint2" | "short4" | "ushort4" => 8,
            "float4" | "int4" | "uint4" | "double2" => 16,
            "float3" | "int3" | "uint3" => 12,
            _ => 0,
        },
    }
}
