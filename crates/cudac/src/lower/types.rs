//! Types and declarators.

use tree_sitter::Node;

use super::{Lower, Lowered};
use crate::ast::{Ident, Type};
use crate::diag::Diagnostic;

impl<'a> Lower<'a> {
    /// The type in front of the declarators.
    pub(crate) fn base_type(&mut self, node: Node<'_>) -> Lowered<Type> {
        let ty = self.field(node, "type")?;
        let name = match ty.kind() {
            "primitive_type"
            | "type_identifier"
            | "sized_type_specifier"
            | "template_type"
            | "qualified_identifier" => {
                let words: Vec<&str> = self.text(ty).split_whitespace().collect();
                words.join(" ")
            }
            "placeholder_type_specifier" => "auto".to_owned(),
            _ => return Err(self.unsupported(ty)),
        };
        let qualifiers = self.qualifiers(node);
        if qualifiers.contains(&"volatile") {
            let what = "`volatile` is outside the subset of CUDA C that is understood";
            return Err(Diagnostic::error("cuda::subset", what)
                .label(self.span(ty), "somebody else may change it, or look at it"));
        }
        let named = Type::Named(name);
        Ok(if qualifiers.contains(&"const") {
            Type::Const(Box::new(named))
        } else {
            named
        })
    }

    pub(super) fn qualifiers(&self, node: Node<'_>) -> Vec<&'a str> {
        let mut cursor = node.walk();
        let children = node.children(&mut cursor);
        children
            // In front of a variable `__device__` is a word of its own in the grammar.
            .filter(|c| {
                matches!(
                    c.kind(),
                    "type_qualifier" | "storage_class_specifier" | "__device__"
                )
            })
            .map(|c| self.text(c))
            .collect()
    }

    /// A declarator around a name: the name, and the type that it gives to it.
    pub(crate) fn declarator(&mut self, node: Node<'_>, base: Type) -> Lowered<(Ident, Type)> {
        match node.kind() {
            "identifier" => Ok((self.ident(node), base)),
            "parenthesized_declarator" => match self.children(node).as_slice() {
                [inner] => self.declarator(*inner, base),
                _ => Err(self.unsupported(node)),
            },
            "pointer_declarator" => {
                let ty = self.pointer_to(node, base);
                self.declarator(self.field(node, "declarator")?, ty)
            }
            "array_declarator" => {
                let ty = self.array_of(node, base)?;
                self.declarator(self.field(node, "declarator")?, ty)
            }
            _ => Err(self.unsupported(node)),
        }
    }

    pub(super) fn pointer_to(&mut self, node: Node<'_>, base: Type) -> Type {
        let words = self.qualifiers(node);
        let restrict = words.iter().any(|w| w.contains("restrict"));
        let pointer = Type::Pointer(Box::new(base), restrict);
        if words.contains(&"const") {
            Type::Const(Box::new(pointer))
        } else {
            pointer
        }
    }

    pub(super) fn array_of(&mut self, node: Node<'_>, base: Type) -> Lowered<Type> {
        let size = node.child_by_field_name("size");
        let size = size.map(|size| self.expr(size)).transpose()?;
        Ok(Type::Array(Box::new(base), size.map(Box::new)))
    }

    /// The type in a cast.
    pub(crate) fn type_descriptor(&mut self, node: Node<'_>) -> Lowered<Type> {
        let mut ty = self.base_type(node)?;
        let mut next = node.child_by_field_name("declarator");
        while let Some(declarator) = next {
            ty = match declarator.kind() {
                "abstract_pointer_declarator" => self.pointer_to(declarator, ty),
                "abstract_array_declarator" => self.array_of(declarator, ty)?,
                "abstract_parenthesized_declarator" => ty,
                _ => return Err(self.unsupported(declarator)),
            };
            next = match declarator.kind() {
                "abstract_parenthesized_declarator" => self.children(declarator).first().copied(),
                _ => declarator.child_by_field_name("declarator"),
            };
        }
        Ok(ty)
    }
}
