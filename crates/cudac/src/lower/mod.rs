//! From tree-sitter's tree to ours. What the subset lacks is a labelled error.

use tree_sitter::Node;

mod expressions;
mod statements;
mod types;

use crate::ast::{Function, Ident, Parameter, Type};
use crate::diag::{Diagnostic, Span};

type Lowered<T> = Result<T, Diagnostic>;

/// Deepest nesting of statements and expressions.
const DEEPEST: usize = 150;

/// Reads nodes of one text.
pub(crate) struct Lower<'a> {
    text: &'a str,
    /// The place of all nodes, if the text is an expanded macro.
    place: Option<Span>,
    depth: usize,
}

impl<'a> Lower<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Lower {
            text,
            place: None,
            depth: 0,
        }
    }

    /// For a text that stands nowhere: everything is at `place`.
    pub(crate) fn at(text: &'a str, place: Span) -> Self {
        Lower {
            place: Some(place),
            ..Lower::new(text)
        }
    }

    fn span(&self, node: Node<'_>) -> Span {
        self.place.clone().unwrap_or_else(|| node.byte_range())
    }

    /// All of the text.
    pub(crate) fn text(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    pub(crate) fn ident(&self, node: Node<'_>) -> Ident {
        Ident {
            text: self.text(node).to_owned(),
            span: self.span(node),
        }
    }

    fn unsupported(&self, node: Node<'_>) -> Diagnostic {
        let kind = node.kind().replace('_', " ");
        let what = format!("this is outside the subset of CUDA C that is understood: {kind}");
        Diagnostic::error("cuda::subset", what).label(self.span(node), "not understood")
    }

    fn field<'t>(&self, node: Node<'t>, name: &str) -> Lowered<Node<'t>> {
        node.child_by_field_name(name)
            .ok_or_else(|| self.unsupported(node))
    }

    /// Named children without comments.
    pub(crate) fn children<'t>(&self, node: Node<'t>) -> Vec<Node<'t>> {
        let mut cursor = node.walk();
        let children = node.named_children(&mut cursor);
        children.filter(|c| c.kind() != "comment").collect()
    }

    /// A function definition. A syntax error anywhere in it is reported first.
    pub(crate) fn function(&mut self, node: Node<'_>) -> Lowered<Function> {
        if let Some(problem) = self.syntax_error(node) {
            return Err(problem);
        }
        let body = self.field(node, "body")?;
        let declarator = self.field(node, "declarator")?;
        if declarator.kind() != "function_declarator" {
            return Err(self.unsupported(declarator));
        }
        let name = self.ident(self.field(declarator, "declarator")?);
        let mut parameters = Vec::new();
        for parameter in self.children(self.field(declarator, "parameters")?) {
            parameters.push(self.parameter(parameter)?);
        }
        let result = self.base_type(node)?;
        let head = self.text.get(node.start_byte()..body.start_byte());
        Ok(Function {
            name,
            head: head.unwrap_or("").trim_end().to_owned(),
            result,
            parameters,
            body: self.block(body)?,
            span: self.span(node),
        })
    }

    /// The first place below a node that is no CUDA C.
    fn syntax_error(&self, node: Node<'_>) -> Option<Diagnostic> {
        if !node.has_error() {
            return None;
        }
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            if node.is_missing() {
                let what = format!("`{}` is missing", node.kind());
                let span = self.span(node);
                return Some(Diagnostic::error("cuda::syntax", what).label(span, "here"));
            }
            if node.is_error() {
                let what = "this is no CUDA C as it is understood";
                let span = self.span(node);
                return Some(Diagnostic::error("cuda::syntax", what).label(span, "not understood"));
            }
            let mut cursor = node.walk();
            let children: Vec<_> = node.children(&mut cursor).collect();
            stack.extend(children.into_iter().rev().filter(|c| c.has_error()));
        }
        None
    }

    pub(crate) fn parameter(&mut self, node: Node<'_>) -> Lowered<Parameter> {
        let known = ["parameter_declaration", "optional_parameter_declaration"];
        if !known.contains(&node.kind()) {
            return Err(self.unsupported(node));
        }
        let base = self.base_type(node)?;
        let mut declarator = self.field(node, "declarator")?;
        let is_reference = declarator.kind() == "reference_declarator";
        if is_reference {
            declarator = match self.children(declarator).as_slice() {
                [inner] if self.text(declarator).matches('&').count() == 1 => *inner,
                _ => return Err(self.unsupported(declarator)),
            };
        }
        let (name, ty) = self.declarator(declarator, base)?;
        // `double a[M][N]` as a parameter is `double (*a)[N]`.
        let ty = match ty {
            Type::Array(of, _) => Type::Pointer(of, false),
            other => other,
        };
        let span = self.span(node);
        Ok(Parameter {
            name,
            ty,
            is_reference,
            span,
        })
    }

    fn deeper(&mut self, node: Node<'_>) -> Lowered<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let what = format!("this is nested more than {DEEPEST} deep");
            return Err(Diagnostic::error("cuda::size", what).label(self.span(node), "too deep"));
        }
        Ok(())
    }
}
