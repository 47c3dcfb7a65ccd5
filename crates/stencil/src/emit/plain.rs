//! A point's statements in their order, as C: for points that few threads compute.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cranelift_entity::{PrimaryMap, SecondaryMap};

use super::names::{self, Names, c_type};
use crate::ir::{
    Access, BinaryOp, Dim, DimId, Edge, Element, Expr, ExprId, Function, Limit, Statement, Stencil,
    Target, TempId,
};

/// The statements; the variables named for the dimensions hold the point.
pub(super) fn body(stencil: &Stencil, names: &mut Names) -> String {
    let mut writer = Writer {
        stencil,
        types: stencil.types(),
        bent: BTreeMap::new(),
        assigned: SecondaryMap::new(),
        text: String::new(),
    };
    writer.bend(names);
    for statement in &stencil.statements {
        writer.statement(statement);
    }
    writer.text
}

struct Writer<'a> {
    stencil: &'a Stencil,
    types: PrimaryMap<ExprId, Element>,
    /// Cells that may lie beyond an end, by dimension and distance.
    bent: BTreeMap<(DimId, i64), String>,
    assigned: SecondaryMap<TempId, bool>,
    text: String,
}

impl Writer<'_> {
    /// The places of neighbours along dimensions with an edge.
    fn bend(&mut self, names: &mut Names) {
        let roots = self.stencil.statements.iter().map(|s| s.value);
        let loads = roots.flat_map(|root| self.stencil.loads(root));
        let mut all: Vec<(DimId, i64)> = loads
            .flat_map(|(access, _)| &access.subscripts)
            .filter_map(|s| Some((s.dim?, s.offset)))
            .filter(|(_, offset)| *offset != 0)
            .collect();
        all.sort_unstable();
        all.dedup();
        for (dim, offset) in all {
            let Dim {
                name, extent, edge, ..
            } = &self.stencil.dims[dim];
            let Some(edge) = edge else { continue };
            let size = names::extent(self.stencil, *extent, None);
            let sign = if offset < 0 { 'm' } else { 'p' };
            let own = names.unique(&format!("{name}_{sign}{}", offset.unsigned_abs()));
            let (below, above) = match edge {
                Edge::Clamped => ("0".to_owned(), format!("{size} - 1")),
                Edge::Wrapped => (format!("{own} + {size}"), format!("{own} - {size}")),
            };
            let _ = writeln!(
                self.text,
                "  int {own} = {name} {offset:+};\n  \
                 {own} = {own} < 0 ? {below} : {own} >= {size} ? {above} : {own};"
            );
            self.bent.insert((dim, offset), own);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        let target = match &statement.target {
            Target::Store(access) => self.access(access),
            Target::Temp(temp) => {
                let data = &self.stencil.temps[*temp];
                match std::mem::replace(&mut self.assigned[*temp], true) {
                    true => data.name.clone(),
                    false => format!("{} {}", c_type(data.element), data.name),
                }
            }
        };
        let op = if statement.accumulate { "+=" } else { "=" };
        let value = self.value(statement.value);
        let when = match &self.stencil.exprs[statement.value] {
            Expr::Call(Function::When, arguments) => {
                format!("if ({} != 0) ", self.value(arguments[0]))
            }
            _ => String::new(),
        };
        let _ = writeln!(self.text, "  {when}{target} {op} {value};");
    }

    /// An element, counted from the first one of its array.
    fn access(&self, access: &Access) -> String {
        let array = &self.stencil.arrays[access.array];
        let mut at = String::new();
        for (subscript, &extent) in access.subscripts.iter().zip(&array.extents) {
            let bent = |dim| self.bent.get(&(dim, subscript.offset));
            let cell = match (subscript.dim, subscript.offset) {
                (None, cell) => cell.to_string(),
                (Some(dim), offset) => match (bent(dim), offset) {
                    (Some(cell), _) => cell.clone(),
                    (None, 0) => self.stencil.dims[dim].name.clone(),
                    (None, _) => format!("({} {offset:+})", self.stencil.dims[dim].name),
                },
            };
            at = match at.is_empty() {
                true => format!("(long long){cell}"),
                false => {
                    let extent = names::extent(self.stencil, extent, None);
                    format!("({at}) * {extent} + {cell}")
                }
            };
        }
        format!("{}[{at}]", array.name)
    }

    fn value(&self, expr: ExprId) -> String {
        crate::with_stack(|| self.value_of(expr))
    }

    fn value_of(&self, expr: ExprId) -> String {
        let inner = |expr: ExprId| {
            let text = self.value(expr);
            match self.stencil.exprs[expr] {
                Expr::Neg(_) | Expr::Binary(..) => format!("({text})"),
                Expr::Constant(value, _) if value.is_sign_negative() => format!("({text})"),
                _ => text,
            }
        };
        match &self.stencil.exprs[expr] {
            Expr::Constant(value, element) => names::literal(*value, *element),
            Expr::Scalar(scalar) => self.stencil.scalars[*scalar].name.clone(),
            Expr::Temp(temp) => self.stencil.temps[*temp].name.clone(),
            Expr::Load(access) => self.access(access),
            Expr::Neg(a) if self.types[expr] == Element::I32 => {
                format!("(int)(0u - (unsigned)({}))", self.value(*a))
            }
            Expr::Neg(a) => format!("-{}", inner(*a)),
            Expr::Binary(op, a, b) if self.types[expr] == Element::I32 => {
                op.text(&self.value(*a), &self.value(*b), Element::I32)
            }
            Expr::Binary(op, a, b) => {
                // Sums group to the left: long ones need no parentheses.
                let left = match (op, &self.stencil.exprs[*a]) {
                    (BinaryOp::Add | BinaryOp::Sub, Expr::Binary(..)) => self.value(*a),
                    _ => inner(*a),
                };
                format!("{left} {} {}", op.symbol(), inner(*b))
            }
            Expr::Call(function, arguments) => {
                let all: Vec<String> = arguments.iter().map(|a| self.value(*a)).collect();
                function.text(&all, self.types[expr])
            }
            Expr::Choice(limits, a, b) => {
                let limits: Vec<String> = limits.iter().map(|l| self.limit(l)).collect();
                let test = match limits.is_empty() {
                    true => "true".to_owned(),
                    false => limits.join(" && "),
                };
                format!("({test} ? {} : {})", self.value(*a), self.value(*b))
            }
        }
    }

    fn limit(&self, limit: &Limit) -> String {
        let op = if limit.below { "<" } else { ">=" };
        let at = names::extent(self.stencil, limit.at, None);
        format!("{} {op} {at}", self.stencil.dims[limit.dim].name)
    }
}
