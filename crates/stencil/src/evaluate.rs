//! The values of a stencil on the host, point by point: the reference for everything else.
//!
//! Arithmetic is that of C without contraction: each operation in the type of its operands, `float`
//! results rounded to `float`. Kernels compiled by nvcc fuse multiplications and additions, so they
//! agree up to a tolerance, not to the last bit.
//!
//! # Conventions, also for generated host programs
//!
//! - An array is row-major without padding: the element `[a][b][c]` of extents `A, B, C` stands at
//!   `(a * B + b) * C + c`. It has `A * B * C` elements.
//! - [`Data::sample`] fills every array, outputs included, with [`sample`]: element `n` of the array
//!   number `a` (in the order of the arguments, from 0) is `sample(a, n)`, and the scalar number `s`
//!   is `sample(arrays + s, 0)`. All values are in `[0.5, 1.5)`, multiples of 2^-23, the same in
//!   `float` and `double`. Whole numbers are [`sample_integer`] in their type.
//! - Elements that no point writes keep their value.

use cranelift_entity::PrimaryMap;

use super::ir::{
    Access, ArrayId, Dim, Edge, Element, Expr, ExprId, Extent, Function, ParameterId, ScalarId,
    Stencil, Target,
};

/// Most elements of an array, and of all arrays together.
const MOST_ELEMENTS: i64 = 1 << 31;

/// Sizes: a value for each parameter.
pub type Sizes = PrimaryMap<ParameterId, i64>;

/// The arguments of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// The elements of each array.
    pub arrays: PrimaryMap<ArrayId, Vec<f64>>,
    /// The scalar arguments.
    pub scalars: PrimaryMap<ScalarId, f64>,
}

/// Why a stencil has no values for some sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SizeError(String);

/// Element `index` of the argument number `argument`, the same on every machine.
///
/// In C: `h = n * 2654435761u + (a + 1) * 2654435769u; h ^= h >> 15; h *= 739982445u;
/// h ^= h >> 12; value = 0.5 + (h >> 9) / 8388608.0` with `uint32_t h, n, a`.
pub fn sample(argument: u32, index: u32) -> f64 {
    0.5 + f64::from(hash(argument, index) >> 9) / 8_388_608.0
}

fn hash(argument: u32, index: u32) -> u32 {
    let mut h = index
        .wrapping_mul(2_654_435_761)
        .wrapping_add(argument.wrapping_add(1).wrapping_mul(2_654_435_769));
    h ^= h >> 15;
    h = h.wrapping_mul(739_982_445);
    h ^ (h >> 12)
}

/// Element `index` of an argument of whole numbers, before it is brought to its type: a quarter each below 4 and of 20
/// bits with a sign, else below 256. So types of 8 and 16 bits have all their values, and sums of 32 bits have room.
///
/// In C, with `h` as for [`sample`]: `n = h >> 2; h % 4 == 0 ? n % 4 : h % 4 == 1 ? n % 1048576 - 524288 : n % 256`.
pub fn sample_integer(argument: u32, index: u32) -> i64 {
    let h = hash(argument, index);
    let n = i64::from(h >> 2);
    match h % 4 {
        0 => n % 4,
        1 => n % 1_048_576 - 524_288,
        _ => n % 256,
    }
}

impl Element {
    /// The sample in a type.
    pub fn sample(self, argument: u32, index: u32) -> f64 {
        match self.is_integer() {
            true => self.wrapped(sample_integer(argument, index)),
            false => sample(argument, index),
        }
    }
}

impl Data {
    /// Arguments for a stencil, as the conventions say.
    pub fn sample(stencil: &Stencil, sizes: &Sizes) -> Result<Data, SizeError> {
        let mut arrays = PrimaryMap::new();
        let mut total = 0;
        for array in stencil.arrays.values() {
            let number = arrays.len() as u32;
            let count = elements(&array.name, &array.extents, sizes)?;
            total += count;
            if total > MOST_ELEMENTS {
                return Err(SizeError("the arrays are too large".to_owned()));
            }
            let values = (0..count as u32).map(|n| array.element.sample(number, n));
            arrays.push(values.collect());
        }
        let first = arrays.len() as u32;
        let mut scalars = PrimaryMap::new();
        for (number, scalar) in (first..).zip(stencil.scalars.values()) {
            scalars.push(scalar.element.sample(number, 0));
        }
        Ok(Data { arrays, scalars })
    }
}

/// The number of cells that a size stands for.
pub fn extent(extent: Extent, sizes: &Sizes) -> i64 {
    let parameter = extent.parameter.map_or(0, |p| sizes[p]);
    parameter.saturating_add(extent.add)
}

/// The computed indices of a dimension: from, and up to but not including.
pub fn range(dim: &Dim, sizes: &Sizes) -> (i64, i64) {
    (dim.low, extent(dim.extent, sizes) - dim.high)
}

/// The number of elements of an array.
pub fn elements(name: &str, extents: &[Extent], sizes: &Sizes) -> Result<i64, SizeError> {
    let mut count: i64 = 1;
    for size in extents {
        let size = extent(*size, sizes);
        count = count.saturating_mul(size.max(0));
        if size < 1 || count > MOST_ELEMENTS {
            return Err(SizeError(format!(
                "`{name}` has a dimension of {size} elements"
            )));
        }
    }
    Ok(count)
}

/// Runs one sweep: every point of the domain, in order, and those at the border.
pub fn evaluate(stencil: &Stencil, sizes: &Sizes, data: &mut Data) -> Result<(), SizeError> {
    let inside: Vec<(i64, i64)> = stencil.dims.values().map(|d| range(d, sizes)).collect();
    if let Some(border) = &stencil.border {
        sweep(border, sizes, data, |point| {
            let within = |(at, (from, to)): (&i64, &(i64, i64))| (*from..*to).contains(at);
            !point.iter().zip(&inside).all(within)
        })?;
    }
    sweep(stencil, sizes, data, |_| true)
}

/// Runs the points of a box that are meant.
fn sweep(
    stencil: &Stencil,
    sizes: &Sizes,
    data: &mut Data,
    is_meant: impl Fn(&[i64]) -> bool,
) -> Result<(), SizeError> {
    let mut sweep = Sweep::new(stencil, sizes)?;
    sweep.check(data)?;
    let ranges: Vec<(i64, i64)> = stencil.dims.values().map(|d| range(d, sizes)).collect();
    if ranges.iter().any(|(from, to)| from >= to) {
        return Ok(());
    }
    let mut point: Vec<i64> = ranges.iter().map(|r| r.0).collect();
    loop {
        if is_meant(&point) {
            sweep.point(&point, data);
        }
        // The next point: the last dimension runs fastest.
        let mut dim = point.len();
        loop {
            let Some(before) = dim.checked_sub(1) else {
                return Ok(());
            };
            dim = before;
            point[dim] += 1;
            if point[dim] < ranges[dim].1 {
                break;
            }
            point[dim] = ranges[dim].0;
        }
    }
}

struct Sweep<'a> {
    stencil: &'a Stencil,
    sizes: &'a Sizes,
    types: PrimaryMap<ExprId, Element>,
    /// By array: elements, and the distance in elements of neighbours along each dimension.
    strides: PrimaryMap<ArrayId, (i64, Vec<i64>)>,
    /// By dimension: where neighbours beyond its ends are, and its cells.
    edges: Vec<(Option<Edge>, i64)>,
    /// By statement: its expressions, operands first.
    orders: Vec<Vec<ExprId>>,
    values: Vec<f64>,
    temps: Vec<f64>,
}

impl<'a> Sweep<'a> {
    fn new(stencil: &'a Stencil, sizes: &'a Sizes) -> Result<Self, SizeError> {
        let mut strides = PrimaryMap::new();
        for array in stencil.arrays.values() {
            let count = elements(&array.name, &array.extents, sizes)?;
            let mut stride = 1;
            let mut all = Vec::new();
            for size in array.extents.iter().rev() {
                all.push(stride);
                stride *= extent(*size, sizes);
            }
            all.reverse();
            strides.push((count, all));
        }
        Ok(Sweep {
            stencil,
            sizes,
            types: stencil.types(),
            strides,
            edges: stencil
                .dims
                .values()
                .map(|dim| (dim.edge, extent(dim.extent, sizes)))
                .collect(),
            orders: stencil
                .statements
                .iter()
                .map(|s| stencil.reachable(s.value))
                .collect(),
            values: vec![0.0; stencil.exprs.len()],
            temps: vec![0.0; stencil.temps.len()],
        })
    }

    /// The data have the shape of the arrays.
    fn check(&self, data: &Data) -> Result<(), SizeError> {
        for (array, (count, _)) in &self.strides {
            if data.arrays[array].len() as i64 != *count {
                let name = &self.stencil.arrays[array].name;
                return Err(SizeError(format!("`{name}` should have {count} elements")));
            }
        }
        Ok(())
    }

    /// The place of an element in its array.
    fn place(&self, access: &Access, point: &[i64]) -> usize {
        let (_, strides) = &self.strides[access.array];
        let mut at = 0;
        for (subscript, stride) in access.subscripts.iter().zip(strides) {
            let mut cell = subscript.dim.map_or(0, |d| point[index(d)]) + subscript.offset;
            if let Some((Some(edge), cells)) = subscript.dim.map(|d| self.edges[index(d)]) {
                cell = edge.cell(cell, cells);
            }
            at += cell * stride;
        }
        // The rules keep all accesses of a stencil inside; a stencil made otherwise reads nothing.
        usize::try_from(at).unwrap_or(usize::MAX)
    }

    fn point(&mut self, point: &[i64], data: &mut Data) {
        for (n, statement) in self.stencil.statements.iter().enumerate() {
            for &expr in &self.orders[n] {
                self.values[index(expr)] = self.value(expr, point, data);
            }
            let value = self.values[index(statement.value)];
            if let Expr::Call(Function::When, arguments) = &self.stencil.exprs[statement.value]
                && self.values[index(arguments[0])] == 0.0
            {
                continue;
            }
            let (slot, element) = match &statement.target {
                Target::Temp(temp) => (
                    self.temps.get_mut(index(*temp)),
                    self.stencil.temps[*temp].element,
                ),
                Target::Store(access) => {
                    let at = self.place(access, point);
                    let element = self.stencil.arrays[access.array].element;
                    (data.arrays[access.array].get_mut(at), element)
                }
            };
            if let Some(slot) = slot {
                let new = if statement.accumulate {
                    *slot + value
                } else {
                    value
                };
                *slot = element.round(new);
            }
        }
    }

    fn value(&self, expr: ExprId, point: &[i64], data: &Data) -> f64 {
        let at = |e: &ExprId| self.values[index(*e)];
        let exact = match &self.stencil.exprs[expr] {
            Expr::Constant(value, _) => *value,
            Expr::Scalar(scalar) => data.scalars[*scalar],
            Expr::Temp(temp) => self.temps[index(*temp)],
            Expr::Load(access) => {
                let elements = &data.arrays[access.array];
                let value = elements.get(self.place(access, point));
                value.copied().unwrap_or(f64::NAN)
            }
            Expr::Neg(a) => -at(a),
            Expr::Binary(op, a, b) => op.apply_in(self.types[expr], at(a), at(b)),
            Expr::Call(function, arguments) => {
                let mut values = [0.0; 4];
                for (value, argument) in values.iter_mut().zip(arguments) {
                    *value = at(argument);
                }
                function.apply(values)
            }
            Expr::Choice(limits, a, b) => {
                let mut limits = limits.iter();
                let within = limits.all(|l| l.holds(point[index(l.dim)], extent(l.at, self.sizes)));
                at(if within { a } else { b })
            }
        };
        // Operations on two floats in double, rounded once, are correctly rounded in float.
        self.types[expr].round(exact)
    }
}

fn index(id: impl cranelift_entity::EntityRef) -> usize {
    id.index()
}

impl Element {
    /// A value as the type holds it.
    pub fn round(self, value: f64) -> f64 {
        match self {
            Element::F32 => f64::from(value as f32),
            Element::F64 => value,
            // Cut off, and at the ends of 64 bits; C says nothing about numbers beyond the range.
            _ => self.wrapped(value as i64),
        }
    }

    /// A whole number as an integer type holds it; a sum of a few or a product of two is exact before.
    pub fn wrapped(self, value: i64) -> f64 {
        match self {
            Element::F32 => f64::from(value as f32),
            Element::F64 => value as f64,
            Element::I8 => f64::from(value as i8),
            Element::U8 => f64::from(value as u8),
            Element::I16 => f64::from(value as i16),
            Element::U16 => f64::from(value as u16),
            Element::I32 => f64::from(value as i32),
            Element::U32 => f64::from(value as u32),
        }
    }

    /// Is it a type of whole numbers?
    pub fn is_integer(self) -> bool {
        !matches!(self, Element::F32 | Element::F64)
    }

    /// The type in which C computes with values of this one.
    #[must_use]
    pub fn promoted(self) -> Element {
        match self {
            Element::I8 | Element::U8 | Element::I16 | Element::U16 => Element::I32,
            other => other,
        }
    }

    /// The type of an operation on values of both types.
    #[must_use]
    pub fn wider(self, other: Element) -> Element {
        let both = [self, other];
        let widest = [Element::F64, Element::F32, Element::U32];
        widest
            .into_iter()
            .find(|element| both.contains(element))
            .unwrap_or(Element::I32)
    }
}

impl Function {
    /// Its value; arguments that it does not take are ignored.
    pub fn apply(self, [a, b, c, d]: [f64; 4]) -> f64 {
        match self {
            Function::Sqrt => a.sqrt(),
            Function::Abs => a.abs(),
            Function::Min => a.min(b),
            Function::Max => a.max(b),
            Function::Fma => a.mul_add(b, c),
            Function::Exp => a.exp(),
            Function::Log => a.ln(),
            Function::Pow => a.powf(b),
            Function::IfLess if a < b => c,
            Function::IfAtMost if a <= b => c,
            Function::IfEqual if a == b => c,
            Function::IfLess | Function::IfAtMost | Function::IfEqual => d,
            Function::When => b,
            Function::To(element) => element.round(a),
            Function::Quotient => (a as i64).checked_div(b as i64).unwrap_or(0) as f64,
            Function::Remainder => (a as i64).checked_rem(b as i64).unwrap_or(0) as f64,
            Function::ShiftLeft => (a as i64).wrapping_shl(b as u32) as f64,
            Function::ShiftRight => (a as i64).wrapping_shr(b as u32) as f64,
            Function::BitAnd => (a as i64 & b as i64) as f64,
            Function::BitOr => (a as i64 | b as i64) as f64,
            Function::BitXor => (a as i64 ^ b as i64) as f64,
        }
    }
}

impl Stencil {
    /// The type that each expression has in C.
    pub fn types(&self) -> PrimaryMap<ExprId, Element> {
        let mut types: PrimaryMap<ExprId, Element> = PrimaryMap::new();
        for expr in self.exprs.values() {
            let element = match expr {
                Expr::Constant(_, element) => *element,
                Expr::Scalar(scalar) => self.scalars[*scalar].element,
                Expr::Temp(temp) => self.temps[*temp].element,
                Expr::Load(access) => self.arrays[access.array].element,
                Expr::Neg(_) | Expr::Binary(..) | Expr::Call(..) | Expr::Choice(..) => {
                    let operands = expr.operands();
                    let mut known = operands.iter().filter_map(|o| types.get(*o)).copied();
                    let element = match expr {
                        Expr::Call(function, _) => function.element(known),
                        _ => known.next().map(|first| known.fold(first, Element::wider)),
                    };
                    element.unwrap_or(Element::F32)
                }
            };
            types.push(element);
        }
        types
    }

    /// An expression and all that it computes from, operands first.
    pub fn reachable(&self, root: ExprId) -> Vec<ExprId> {
        let mut seen = std::collections::BTreeSet::new();
        let mut stack = vec![root];
        while let Some(expr) = stack.pop() {
            if seen.insert(expr) {
                stack.extend(self.exprs[expr].operands());
            }
        }
        seen.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsl;
    use crate::ir::BinaryOp;

    fn run(text: &str, size: i64) -> Data {
        let stencil = dsl::parse(text).unwrap();
        let sizes: Sizes = stencil.parameters.values().map(|_| size).collect();
        let mut data = Data::sample(&stencil, &sizes).unwrap();
        evaluate(&stencil, &sizes, &mut data).unwrap();
        data
    }

    #[test]
    fn samples_never_change() {
        // Generated programs contain the same formula in C.
        let values = [(0, 0), (3, 1_000_000), (12, u32::MAX)].map(|(a, n)| sample(a, n));
        assert_eq!(
            values,
            [0.9028521776199341, 1.4196958541870117, 1.3258378505706787]
        );
        for n in 0..10_000 {
            let value = sample(1, n);
            assert!((0.5..1.5).contains(&value));
            assert_eq!(f64::from(value as f32), value);
        }
    }

    #[test]
    fn points_read_their_neighbours_and_edges_keep_their_value() {
        let data = run(
            "function f (o, v, c) { double t = v[j-1][i] + v[j][i+1]; t += c; o[j][i] += t; }\n\
             parameter N; iterator j, i; double o[N][4], v[N][4], c; f (o, v, c); return o;",
            3,
        );
        let (o, v) = (
            &data.arrays[ArrayId::from_u32(0)],
            &data.arrays[ArrayId::from_u32(1)],
        );
        let c = data.scalars[ScalarId::from_u32(0)];
        for n in 0..12u32 {
            let (j, i) = (n as usize / 4, n as usize % 4);
            let old = sample(0, n);
            let new = if j >= 1 && i <= 2 {
                old + (v[(j - 1) * 4 + i] + v[j * 4 + i + 1] + c)
            } else {
                old
            };
            assert_eq!(o[n as usize], new, "{j} {i}");
        }
    }

    #[test]
    fn floats_are_rounded_at_each_operation() {
        let data = run(
            "function f (o, v) { o[i] = v[i] * 0.1f + 1; } parameter N; iterator i;\n\
             float o[N], v[N]; f (o, v); return o;",
            5,
        );
        for (n, &value) in data.arrays[ArrayId::from_u32(0)].iter().enumerate() {
            let v = sample(1, n as u32) as f32;
            assert_eq!(value as f32, v * 0.1f32 + 1.0f32);
        }
    }

    #[test]
    fn whole_numbers_are_computed_as_in_c() {
        let data = run(
            "function f (o, s, v) { int d = v[i] - 300; o[i] = d; s[i] = quotient(d, 7) + to_int(v[i] * 0.5f); }\n\
             parameter N; iterator i; uchar o[N], v[N]; short s[N]; f (o, s, v); return o, s;",
            40,
        );
        let of = |array| &data.arrays[ArrayId::from_u32(array)];
        // Arrays are numbered as the call has them.
        for (n, ((o, s), v)) in of(0).iter().zip(of(1)).zip(of(2)).enumerate() {
            let pixel = sample_integer(2, n as u32) as u8;
            assert_eq!(*v, f64::from(pixel));
            let d = i32::from(pixel) - 300;
            assert_eq!(*o, f64::from(d as u8));
            let half = (f32::from(pixel) * 0.5) as i32;
            assert_eq!(*s, f64::from((d / 7 + half) as i16));
        }
        for (element, value, expected) in [
            (Element::I8, 200, -56.0),
            (Element::U16, -1, 65_535.0),
            (Element::U32, -1, 4_294_967_295.0),
            (Element::I32, 1 << 31, -2_147_483_648.0),
        ] {
            assert_eq!(element.wrapped(value), expected);
            assert_eq!(element.values(&element.bytes(&[expected])), [expected]);
        }
        let product = BinaryOp::Mul.apply_in(Element::I32, 2_147_483_647.0, 2_147_483_647.0);
        assert_eq!(product, 1.0);
    }

    #[test]
    fn sizes_that_make_no_sense_are_errors() {
        let stencil = dsl::parse(
            "function f (o, v) { o[i] = v[i]; } parameter N; iterator i;\n\
             double o[N], v[N]; f (o, v); return o;",
        )
        .unwrap();
        for size in [0, -5, i64::MAX] {
            let sizes: Sizes = [size].into_iter().collect();
            assert!(Data::sample(&stencil, &sizes).is_err(), "{size}");
        }
    }
}
