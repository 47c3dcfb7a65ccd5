//! Expressions.

use tree_sitter::Node;

use super::{Lower, Lowered};
use crate::ast::{Expr, ExprKind, Type};
use crate::diag::Diagnostic;

/// Most operators in a row, such as those of a sum.
const LONGEST: usize = 500;

impl Lower<'_> {
    /// An expression.
    pub(crate) fn expr(&mut self, node: Node<'_>) -> Lowered<Expr> {
        self.deeper(node)?;
        let kind = crate::with_stack(|| self.expr_kind(node))?;
        self.depth -= 1;
        let span = self.span(node);
        Ok(Expr { kind, span })
    }

    pub(super) fn boxed(&mut self, node: Node<'_>, field: &str) -> Lowered<Box<Expr>> {
        let child = self.field(node, field)?;
        Ok(Box::new(self.expr(child)?))
    }

    pub(super) fn operator(&self, node: Node<'_>) -> Lowered<String> {
        Ok(self.text(self.field(node, "operator")?).to_owned())
    }

    pub(super) fn expr_kind(&mut self, node: Node<'_>) -> Lowered<ExprKind> {
        Ok(match node.kind() {
            "number_literal" => ExprKind::Number(self.text(node).to_owned()),
            "identifier" | "qualified_identifier" | "null" => {
                ExprKind::Name(self.text(node).to_owned())
            }
            "true" | "false" => ExprKind::Bool(node.kind() == "true"),
            "parenthesized_expression" => match self.children(node).as_slice() {
                [inner] => ExprKind::Paren(Box::new(self.expr(*inner)?)),
                _ => return Err(self.unsupported(node)),
            },
            "field_expression" => {
                let base = self.boxed(node, "argument")?;
                if self.operator(node)? != "." {
                    return Err(self.unsupported(node));
                }
                ExprKind::Member(base, self.text(self.field(node, "field")?).to_owned())
            }
            "subscript_expression" => {
                let base = self.boxed(node, "argument")?;
                let indices = self.field(node, "indices")?;
                match self.children(indices).as_slice() {
                    [index] => ExprKind::Index(base, Box::new(self.expr(*index)?)),
                    _ => return Err(self.unsupported(indices)),
                }
            }
            "unary_expression" | "pointer_expression" => {
                let op = self.operator(node)?;
                ExprKind::Unary(op, self.boxed(node, "argument")?)
            }
            "update_expression" => {
                let op = self.field(node, "operator")?;
                let argument = self.field(node, "argument")?;
                let first = op.start_byte() < argument.start_byte();
                let text = self.text(op).to_owned();
                ExprKind::Update(text, first, Box::new(self.expr(argument)?))
            }
            "binary_expression" => self.operators(node)?,
            "assignment_expression" => {
                let op = self.operator(node)?;
                ExprKind::Assign(op, self.boxed(node, "left")?, self.boxed(node, "right")?)
            }
            "conditional_expression" => ExprKind::Conditional(
                self.boxed(node, "condition")?,
                self.boxed(node, "consequence")?,
                self.boxed(node, "alternative")?,
            ),
            "cast_expression" => {
                let ty = self.type_descriptor(self.field(node, "type")?)?;
                ExprKind::Cast(None, Box::new(ty), self.boxed(node, "value")?)
            }
            "comma_expression" => {
                ExprKind::Comma(self.boxed(node, "left")?, self.boxed(node, "right")?)
            }
            "call_expression" => self.call(node)?,
            _ => return Err(self.unsupported(node)),
        })
    }

    /// A row of binary operators. They group to the left, so a sum is as deep as it is long: it is
    /// walked in a loop.
    pub(super) fn operators(&mut self, node: Node<'_>) -> Lowered<ExprKind> {
        let mut row = vec![node];
        let mut left = self.field(node, "left")?;
        while left.kind() == "binary_expression" {
            row.push(left);
            left = self.field(left, "left")?;
        }
        if row.len() > LONGEST {
            let what = format!("there are more than {LONGEST} operators in a row");
            return Err(Diagnostic::error("cuda::size", what)
                .label(self.span(node), "too long")
                .help("split the sum over several statements (`+=`)"));
        }
        let mut value = self.expr(left)?;
        for node in row.into_iter().rev() {
            let (op, right) = (self.operator(node)?, self.boxed(node, "right")?);
            value = Expr {
                kind: ExprKind::Binary(op, Box::new(value), right),
                span: self.span(node),
            };
        }
        Ok(value.kind)
    }

    /// `double`, `(real_t)`
    fn is_type_name(&self, node: Node<'_>) -> bool {
        match self.children(node)[..] {
            [] => node.kind() == "primitive_type",
            [inner] => inner.kind() == "identifier",
            _ => false,
        }
    }

    pub(super) fn call(&mut self, node: Node<'_>) -> Lowered<ExprKind> {
        let function = self.field(node, "function")?;
        let list = self.field(node, "arguments")?;
        if list.kind() != "argument_list" {
            return Err(self.unsupported(list));
        }
        let mut arguments = Vec::new();
        for argument in self.children(list) {
            arguments.push(self.expr(argument)?);
        }
        match function.kind() {
            // `std::max(a, b)`, `block.sync()`
            "identifier" | "qualified_identifier" | "field_expression" => {
                Ok(ExprKind::Call(self.ident(function), arguments))
            }
            // `double(x)` is a cast; parentheses keep the argument together. So is `(real_t)(x)`, which the grammar takes for
            // a call: who calls a function by its name in parentheses gets the same text again.
            "primitive_type" | "parenthesized_expression"
                if arguments.len() == 1 && self.is_type_name(function) =>
            {
                let name = self.text(function).trim_matches(['(', ')', ' ']);
                let ty = Type::Named(name.to_owned());
                let span = self.span(list);
                let inner = arguments.swap_remove(0);
                let kind = ExprKind::Paren(Box::new(inner));
                let value = Expr { kind, span };
                Ok(ExprKind::Cast(None, Box::new(ty), Box::new(value)))
            }
            "template_function" if arguments.len() == 1 => {
                let word = self.text(self.field(function, "name")?);
                let types = self.children(self.field(function, "arguments")?);
                match (word, types.as_slice()) {
                    ("static_cast" | "reinterpret_cast" | "const_cast", [ty]) => {
                        let ty = self.type_descriptor(*ty)?;
                        let value = Box::new(arguments.swap_remove(0));
                        Ok(ExprKind::Cast(Some(word.to_owned()), Box::new(ty), value))
                    }
                    _ => Err(self.unsupported(function)),
                }
            }
            _ => Err(self.unsupported(function)),
        }
    }
}
