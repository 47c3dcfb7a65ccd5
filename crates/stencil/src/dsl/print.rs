//! A [`Stencil`] as text that parses back to it.

use std::fmt::{self, Write};

use cranelift_entity::EntityRef;

use crate::ir::{
    Access, BinaryOp, Edge, Element, Expr, ExprId, Extent, Statement, Stencil, Target, TempId,
};
use crate::rules::points_to_name;

/// The text of a stencil.
pub fn print(stencil: &Stencil) -> String {
    let mut out = String::new();
    let printer = Printer { stencil };
    match printer.file(&mut out) {
        Ok(()) => out,
        // Writing to a string does not fail.
        Err(fmt::Error) => String::new(),
    }
}

/// The text of a literal in C.
pub fn literal(value: f64, element: Element) -> String {
    match element {
        Element::F64 => format!("{value:?}"),
        Element::F32 => format!("{:?}f", value as f32),
        _ => format!("{}", value as i64),
    }
}

struct Printer<'a> {
    stencil: &'a Stencil,
}

/// How tightly the parts of a sum, of a product and a sign bind.
const SUM: u8 = 1;
const PRODUCT: u8 = 2;
const SIGN: u8 = 3;

impl Printer<'_> {
    fn file(&self, out: &mut String) -> fmt::Result {
        let s = self.stencil;
        let arguments: Vec<&str> = self.arguments().collect();
        let arguments = arguments.join(", ");
        writeln!(out, "function {} ({arguments}) {{", s.name)?;
        self.statements(out, "  ")?;
        writeln!(out, "}}")?;
        self.remarks(out)?;
        if !s.parameters.is_empty() {
            let names: Vec<&str> = s.parameters.values().map(|n| &**n).collect();
            writeln!(out, "parameter {};", names.join(", "))?;
        }
        let iterators: Vec<&str> = s.dims.values().map(|d| &*d.name).collect();
        writeln!(out, "iterator {};", iterators.join(", "))?;
        self.declarations(out)?;
        let points: Vec<String> = points_to_name(s)
            .into_iter()
            .map(|(dim, (low, end))| format!("{} = {low} : {}", s.dims[dim].name, self.extent(end)))
            .collect();
        if !points.is_empty() {
            writeln!(out, "points {};", points.join(", "))?;
        }
        let unrolls: Vec<String> = s
            .dims
            .values()
            .filter_map(|d| Some(format!("{}={}", d.name, d.unroll?)))
            .collect();
        if !unrolls.is_empty() {
            writeln!(out, "unroll {};", unrolls.join(", "))?;
        }
        if s.reassociate {
            writeln!(out, "reassociate;")?;
        }
        writeln!(out, "{} ({arguments});", s.name)?;
        let written: Vec<&str> = s
            .arrays
            .values()
            .filter(|a| a.written)
            .map(|a| &*a.name)
            .collect();
        writeln!(out, "return {};", written.join(", "))
    }

    fn statements(&self, out: &mut String, indent: &str) -> fmt::Result {
        let mut assigned = vec![false; self.stencil.temps.len()];
        for statement in &self.stencil.statements {
            out.push_str(indent);
            self.statement(out, statement, &mut assigned)?;
        }
        Ok(())
    }

    /// What the language has no words for.
    fn remarks(&self, out: &mut String) -> fmt::Result {
        let s = self.stencil;
        for (array, variable) in s.variables() {
            let variable = &variable.name;
            writeln!(out, "// `{}` is `{variable}` of the file", array.name)?;
        }
        for (parameter, axis) in &s.from_grid {
            let (name, axis) = (
                &s.parameters[*parameter],
                ["x", "y", "z"][usize::from(*axis)],
            );
            writeln!(out, "// `{name}` is `gridDim.{axis}`")?;
        }
        let Some(border) = &s.border else {
            return Ok(());
        };
        let around = Printer { stencil: border };
        let points = border.dims.values().map(|dim| {
            let end = Extent {
                add: dim.extent.add - dim.high,
                ..dim.extent
            };
            format!("{} = {} : {}", dim.name, dim.low, around.extent(end))
        });
        let points: Vec<String> = points.collect();
        let edges = border.dims.values().filter_map(|dim| {
            let edge = match dim.edge? {
                Edge::Clamped => "clamped",
                Edge::Wrapped => "wrapped",
            };
            Some(format!(", {edge} along {}", dim.name))
        });
        let edges: String = edges.collect();
        writeln!(out, "// other points of {}{edges}:", points.join(", "))?;
        around.statements(out, "//   ")
    }

    fn arguments(&self) -> impl Iterator<Item = &str> {
        let arrays = self.stencil.arrays.values().map(|a| &*a.name);
        arrays.chain(self.stencil.scalars.values().map(|s| &*s.name))
    }

    fn declarations(&self, out: &mut String) -> fmt::Result {
        for element in Element::ALL {
            let mut all = Vec::new();
            for array in self.stencil.arrays.values() {
                if array.element == element {
                    let sizes = array
                        .extents
                        .iter()
                        .map(|e| format!("[{}]", self.extent(*e)));
                    all.push(format!("{}{}", array.name, sizes.collect::<String>()));
                }
            }
            let scalars = self.stencil.scalars.values();
            let scalars = scalars.filter(|s| s.element == element);
            all.extend(scalars.map(|s| s.name.clone()));
            if !all.is_empty() {
                writeln!(out, "{} {};", element.word(), all.join(", "))?;
            }
        }
        Ok(())
    }

    fn extent(&self, extent: Extent) -> String {
        match extent.parameter {
            None => extent.add.to_string(),
            Some(parameter) => sum(&self.stencil.parameters[parameter], extent.add),
        }
    }

    fn statement(
        &self,
        out: &mut String,
        statement: &Statement,
        assigned: &mut [bool],
    ) -> fmt::Result {
        match &statement.target {
            Target::Store(access) => self.access(out, access)?,
            Target::Temp(temp) => self.temp(out, *temp, assigned)?,
        }
        let (op, value) = match (&self.stencil.exprs[statement.value], statement.accumulate) {
            (Expr::Neg(inner), true) => ("-=", *inner),
            (_, true) => ("+=", statement.value),
            (_, false) => ("=", statement.value),
        };
        write!(out, " {op} ")?;
        self.expr(out, value, 0)?;
        writeln!(out, ";")
    }

    /// A temporary as a target; its type stands before its first assignment.
    fn temp(&self, out: &mut String, temp: TempId, assigned: &mut [bool]) -> fmt::Result {
        let described = &self.stencil.temps[temp];
        if let Some(assigned) = assigned.get_mut(temp.index()) {
            if !*assigned {
                write!(out, "{} ", described.element.word())?;
            }
            *assigned = true;
        }
        out.write_str(&described.name)
    }

    fn access(&self, out: &mut String, access: &Access) -> fmt::Result {
        out.write_str(&self.stencil.arrays[access.array].name)?;
        for subscript in &access.subscripts {
            let text = match subscript.dim {
                None => subscript.offset.to_string(),
                Some(dim) => sum(&self.stencil.dims[dim].name, subscript.offset),
            };
            write!(out, "[{text}]")?;
        }
        Ok(())
    }

    /// An expression inside an operator that binds as tightly as `around`.
    fn expr(&self, out: &mut String, expr: ExprId, around: u8) -> fmt::Result {
        match &self.stencil.exprs[expr] {
            Expr::Constant(value, element) => out.write_str(&literal(*value, *element)),
            Expr::Scalar(scalar) => out.write_str(&self.stencil.scalars[*scalar].name),
            Expr::Temp(temp) => out.write_str(&self.stencil.temps[*temp].name),
            Expr::Load(access) => self.access(out, access),
            Expr::Neg(inner) => {
                out.write_char('-')?;
                self.expr(out, *inner, SIGN)
            }
            Expr::Binary(op, a, b) => {
                let level = match op {
                    BinaryOp::Add | BinaryOp::Sub => SUM,
                    BinaryOp::Mul | BinaryOp::Div => PRODUCT,
                };
                let open = level < around;
                if open {
                    out.write_char('(')?;
                }
                self.expr(out, *a, level)?;
                write!(out, " {} ", op.symbol())?;
                // Operators group to the left, so an equal one on the right needs parentheses.
                self.expr(out, *b, level + 1)?;
                if open {
                    out.write_char(')')?;
                }
                Ok(())
            }
            Expr::Call(function, arguments) => {
                write!(out, "{}(", function.name())?;
                for (n, argument) in arguments.iter().enumerate() {
                    if n > 0 {
                        out.write_str(", ")?;
                    }
                    self.expr(out, *argument, 0)?;
                }
                out.write_char(')')
            }
            // Printed for people: the language has no borders.
            Expr::Choice(limits, a, b) => {
                out.write_char('(')?;
                for (n, limit) in limits.iter().enumerate() {
                    let and = if n > 0 { " && " } else { "" };
                    let op = if limit.below { "<" } else { ">=" };
                    let (name, at) = (&self.stencil.dims[limit.dim].name, self.extent(limit.at));
                    write!(out, "{and}{name} {op} {at}")?;
                }
                out.write_str(" ? ")?;
                self.expr(out, *a, 0)?;
                out.write_str(" : ")?;
                self.expr(out, *b, 0)?;
                out.write_char(')')
            }
        }
    }
}

/// `name+2`, `name-1` or `name`.
fn sum(name: &str, add: i64) -> String {
    match add {
        0 => name.to_owned(),
        _ => format!("{name}{add:+}"),
    }
}
