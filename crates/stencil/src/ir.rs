//! What one sweep of a stencil computes, independent of the text it came from.
//!
//! A [`Stencil`] is a list of statements that every point of a rectangular domain executes. All
//! points are independent: an array that is written is not read at another point of the same sweep
//! (the front ends refuse that by name). Loop order, threads, tiles and registers are not part of
//! it; they are what the transformations choose.

use cranelift_entity::{PrimaryMap, entity_impl};

/// One dimension of the iteration domain; 0 is the outermost, the last one is contiguous in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DimId(u32);
entity_impl!(DimId, "dim");

/// A size known when the kernel is launched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParameterId(u32);
entity_impl!(ParameterId, "parameter");

/// An array in global memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayId(u32);
entity_impl!(ArrayId, "array");

/// A scalar argument of the kernel, the same at all points.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScalarId(u32);
entity_impl!(ScalarId, "scalar");

/// A value private to one point.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TempId(u32);
entity_impl!(TempId, "temp");

/// A node of an expression as written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);
entity_impl!(ExprId, "expr");

/// A whole stencil.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stencil {
    /// The kernel's name.
    pub name: String,
    /// The domain, outermost dimension first.
    pub dims: PrimaryMap<DimId, Dim>,
    /// Sizes (`L`, `M`, `N` in listing 1 of the paper).
    pub parameters: PrimaryMap<ParameterId, String>,
    /// Arrays, in the order of the kernel's arguments.
    pub arrays: PrimaryMap<ArrayId, Array>,
    /// Scalar arguments, in order.
    pub scalars: PrimaryMap<ScalarId, Scalar>,
    /// Values private to a point; each is assigned before it is read.
    pub temps: PrimaryMap<TempId, Temp>,
    /// All expression nodes; children come before their parents.
    pub exprs: PrimaryMap<ExprId, Expr>,
    /// What a point executes, in order.
    pub statements: Vec<Statement>,
    /// The input permits reassociation (`#pragma warpwright stencil reassociate`, `--fp`).
    pub reassociate: bool,
    /// What the points of a larger box do that are not in the domain, such as to copy: a stencil
    /// with the same parameters, arrays and scalars and the same dimensions, but for their margins.
    pub border: Option<Box<Stencil>>,
    /// Threads along x, y and z of a block, where the source presumes a number.
    pub block: [Option<i64>; 3],
    /// Along x, y and z, where only some threads of a block compute: the first of them, and how many.
    pub computing: [Option<(i64, i64)>; 3],
    /// Sizes that are no arguments but the number of blocks along an axis of the launch (0: x).
    pub from_grid: Vec<(ParameterId, u8)>,
}

/// One dimension of the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// The iterator's name.
    pub name: String,
    /// Cells along it, halo included.
    pub extent: Extent,
    /// First computed index.
    pub low: i64,
    /// Cells at the far end that are not computed: the last computed index is
    /// `extent - high - 1`.
    pub high: i64,
    /// The unroll factor that the input asks for.
    pub unroll: Option<u32>,
    /// Where neighbours beyond its ends are, in a stencil that is another one's border; else there are none.
    pub edge: Option<Edge>,
}

/// Which cell is meant beyond the ends of a dimension. A neighbour is at most as far away as the dimension is long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The last one.
    Clamped,
    /// The one as far from the other end.
    Wrapped,
}

impl Edge {
    /// The cell that is meant in a dimension of `extent` cells.
    pub fn cell(self, at: i64, extent: i64) -> i64 {
        match self {
            Edge::Clamped => at.min(extent - 1).max(0),
            Edge::Wrapped if at < 0 => at + extent,
            Edge::Wrapped if at >= extent => at - extent,
            Edge::Wrapped => at,
        }
    }
}

/// A size: a parameter plus a constant, or a constant alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The parameter, if the size is not a plain constant.
    pub parameter: Option<ParameterId>,
    /// Added to it.
    pub add: i64,
}

/// An array in global memory, row-major, its last subscript contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub element: Element,
    /// Its extents, outermost first. A one-dimensional coefficient array has one.
    pub extents: Vec<Extent>,
    /// Some statement reads it.
    pub read: bool,
    /// Some statement writes it.
    pub written: bool,
    /// It is no argument but this variable of the source file.
    pub variable: Option<Variable>,
}

/// A variable of the source file in constant or global memory: `__constant__ float w[9];`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name in the file.
    pub name: String,
    /// It is one number, as in `__constant__ float c;`: an array of one element here.
    pub is_number: bool,
}

/// The types of elements and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// `float`
    F32,
    /// `double`
    F64,
    /// `signed char`
    I8,
    /// `unsigned char`
    U8,
    /// `short`
    I16,
    /// `unsigned short`
    U16,
    /// `int`
    I32,
    /// `unsigned`
    U32,
}

impl Element {
    /// Bytes of a value.
    pub fn size(self) -> usize {
        match self {
            Element::I8 | Element::U8 => 1,
            Element::I16 | Element::U16 => 2,
            Element::F32 | Element::I32 | Element::U32 => 4,
            Element::F64 => 8,
        }
    }

    /// Values as they lie in memory.
    pub fn bytes(self, values: &[f64]) -> Vec<u8> {
        let values = values.iter();
        match self {
            Element::F32 => values.flat_map(|v| (*v as f32).to_le_bytes()).collect(),
            Element::F64 => values.flat_map(|v| v.to_le_bytes()).collect(),
            Element::I8 | Element::U8 => values.map(|v| *v as i64 as u8).collect(),
            Element::I16 | Element::U16 => values
                .flat_map(|v| (*v as i64 as u16).to_le_bytes())
                .collect(),
            Element::I32 | Element::U32 => values
                .flat_map(|v| (*v as i64 as u32).to_le_bytes())
                .collect(),
        }
    }

    /// The values that lie in memory; what is left over is no value.
    pub fn values(self, bytes: &[u8]) -> Vec<f64> {
        let single = |&bytes: &[u8; 4]| f64::from(f32::from_le_bytes(bytes));
        let double = |&bytes: &[u8; 8]| f64::from_le_bytes(bytes);
        // Rounding brings a number without a sign to the type's own range.
        let half = |&bytes: &[u8; 2]| self.round(u16::from_le_bytes(bytes).into());
        let word = |&bytes: &[u8; 4]| self.round(u32::from_le_bytes(bytes).into());
        match self {
            Element::I8 | Element::U8 => bytes.iter().map(|v| self.round((*v).into())).collect(),
            Element::I16 | Element::U16 => bytes.as_chunks().0.iter().map(half).collect(),
            Element::I32 | Element::U32 => bytes.as_chunks().0.iter().map(word).collect(),
            Element::F32 => bytes.as_chunks().0.iter().map(single).collect(),
            Element::F64 => bytes.as_chunks().0.iter().map(double).collect(),
        }
    }
}

/// A scalar argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Its name.
    pub name: String,
    /// Its type.
    pub element: Element,
}

/// A value private to a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Temp {
    /// Its name.
    pub name: String,
    /// Its type.
    pub element: Element,
}

/// One subscript: an iterator plus a constant, or a constant alone (a component of `u[3][k][j][i]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subscript {
    /// The iterator, if any.
    pub dim: Option<DimId>,
    /// Added to it.
    pub offset: i64,
}

/// An element of an array relative to the point.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// The array.
    pub array: ArrayId,
    /// One subscript per extent, outermost first.
    pub subscripts: Vec<Subscript>,
}

/// A node of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A literal: its value and its type.
    Constant(f64, Element),
    /// A scalar argument.
    Scalar(ScalarId),
    /// A value of an earlier statement.
    Temp(TempId),
    /// An element of an array.
    Load(Access),
    /// The negative of a value.
    Neg(ExprId),
    /// Two operands, as written.
    Binary(BinaryOp, ExprId, ExprId),
    /// A function of CUDA's mathematical library.
    Call(Function, Vec<ExprId>),
    /// The first value where the point is within all limits, else the second one; the other one is not computed. Only a
    /// stencil that is another one's border has it.
    Choice(Vec<Limit>, ExprId, ExprId),
}

/// A condition on the place of a point along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    /// The dimension.
    pub dim: DimId,
    /// The place is less than `at`, else at least `at`.
    pub below: bool,
    /// A place.
    pub at: Extent,
}

impl Limit {
    /// Does it hold at a place, where the limit is at a number?
    pub fn holds(&self, place: i64, at: i64) -> bool {
        (place < at) == self.below
    }
}

/// The arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
}

/// The functions a stencil may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `sqrt`, `sqrtf`
    Sqrt,
    /// `fabs`, `fabsf`
    Abs,
    /// `fmin`, `fminf`
    Min,
    /// `fmax`, `fmaxf`
    Max,
    /// `fma`, `fmaf`
    Fma,
    /// `exp`, `expf`
    Exp,
    /// `log`, `logf`
    Log,
    /// `pow`, `powf`
    Pow,
    /// `x < y ? a : b`
    IfLess,
    /// `x <= y ? a : b`
    IfAtMost,
    /// `x == y ? a : b`
    IfEqual,
    /// The second value; where it is stored, it is stored only if the first one is not zero.
    When,
    /// `(T)x`
    To(Element),
    /// `a / b` of whole numbers
    Quotient,
    /// `a % b`
    Remainder,
    /// `a << b`
    ShiftLeft,
    /// `a >> b`
    ShiftRight,
    /// `a & b`
    BitAnd,
    /// `a | b`
    BitOr,
    /// `a ^ b`
    BitXor,
}

/// What a statement assigns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A private value.
    Temp(TempId),
    /// An element of an array, at the point itself (all offsets of iterators are 0).
    Store(Access),
}

/// `target = value` or `target += value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// What is assigned.
    pub target: Target,
    /// `+=`: the old value is read and added to.
    pub accumulate: bool,
    /// The right-hand side.
    pub value: ExprId,
    /// Byte range of the statement in its source, for diagnostics.
    pub span: std::ops::Range<usize>,
}

impl Stencil {
    /// All points for which a launch of the kernel as written has a thread or an iteration: the domain, and the border
    /// around it.
    pub fn all_points(&self) -> &PrimaryMap<DimId, Dim> {
        self.border
            .as_ref()
            .map_or(&self.dims, |border| &border.dims)
    }

    /// Are neighbours clamped or wrapped, or values chosen by the place of the point, at the border?
    pub fn has_edges(&self) -> bool {
        let mut dims = self.all_points().values();
        let chooses = |border: &Stencil| {
            let mut all = border.exprs.values();
            all.any(|expr| matches!(expr, Expr::Choice(..)))
        };
        dims.any(|dim| dim.edge.is_some()) || self.border.as_deref().is_some_and(chooses)
    }

    /// The loads of an expression, each with the limits within which it is computed.
    pub fn loads(&self, root: ExprId) -> Vec<(&Access, Vec<Limit>)> {
        let mut found = Vec::new();
        let mut stack = vec![(root, Vec::new())];
        while let Some((expr, limits)) = stack.pop() {
            match &self.exprs[expr] {
                Expr::Load(access) => found.push((access, limits)),
                Expr::Choice(more, then, otherwise) => {
                    let opposite = match more.as_slice() {
                        [one] => vec![Limit {
                            below: !one.below,
                            ..*one
                        }],
                        _ => Vec::new(),
                    };
                    stack.push((*otherwise, [limits.clone(), opposite].concat()));
                    stack.push((*then, [limits, more.clone()].concat()));
                }
                other => stack.extend(other.operands().into_iter().map(|o| (o, limits.clone()))),
            }
        }
        found
    }

    /// The arrays that are arguments, in order.
    pub fn passed(&self) -> impl Iterator<Item = (ArrayId, &Array)> {
        self.arrays.iter().filter(|(_, a)| a.variable.is_none())
    }

    /// The arrays that are variables of the file.
    pub fn variables(&self) -> impl Iterator<Item = (&Array, &Variable)> {
        let all = self.arrays.values();
        all.filter_map(|array| Some((array, array.variable.as_ref()?)))
    }
}
