//! Structures: which members they have.

use tree_sitter::Node;

use crate::File;
use crate::ast::{Ident, Type};
use crate::lower::Lower;
use crate::types::TypeNames;

/// A structure of the file or of its headers.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// Its name.
    pub name: String,
    /// Its members in order; none if something in it is not understood, such as a base or a bit field.
    pub members: Option<Vec<Member>>,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// `struct Name { int a, b; }` or `typedef struct { … } Name;`
pub(crate) fn structure(lower: &mut Lower<'_>, node: Node<'_>) -> Option<Structure> {
    let (definition, name) = match node.kind() {
        "type_definition" => {
            let definition = node.child_by_field_name("type")?;
            (definition, node.child_by_field_name("declarator")?)
        }
        _ => (node, node.child_by_field_name("name")?),
    };
    if definition.kind() != "struct_specifier" {
        return None;
    }
    let body = definition.child_by_field_name("body")?;
    let name = lower.ident(name).text;
    let mut cursor = definition.walk();
    let mut children = definition.named_children(&mut cursor);
    let is_plain = children.all(|child| {
        matches!(
            child.kind(),
            "type_identifier" | "field_declaration_list" | "comment"
        )
    });
    let members = is_plain.then(|| members(lower, body)).flatten();
    Some(Structure { name, members })
}

fn members(lower: &mut Lower<'_>, body: Node<'_>) -> Option<Vec<Member>> {
    let mut all = Vec::new();
    let mut cursor = body.walk();
    for child in body.named_children(&mut cursor) {
        match child.kind() {
            "comment" | "access_specifier" => continue,
            "field_declaration" => {}
            _ => return None,
        }
        let ty = lower.base_type(child).ok()?;
        let mut inner = child.walk();
        for part in child.named_children(&mut inner) {
            let (name, ty) = match part.kind() {
                "field_identifier" => (lower.ident(part), ty.clone()),
                "pointer_declarator" => {
                    let name = part.child_by_field_name("declarator")?;
                    if name.kind() != "field_identifier" {
                        return None;
                    }
                    (
                        lower.ident(name),
                        Type::Pointer(Box::new(ty.clone()), false),
                    )
                }
                "comment"
                | "type_qualifier"
                | "primitive_type"
                | "type_identifier"
                | "sized_type_specifier" => continue,
                // A bit field, an array, a first value.
                _ => return None,
            };
            let Ident { text, .. } = name;
            all.push(Member { name: text, ty });
        }
    }
    Some(all)
}

impl File {
    /// The members of a structure, if a type is one that is understood: the file's own, or one of CUDA's vectors.
    pub fn members(&self, ty: &Type, names: &TypeNames) -> Option<Vec<Member>> {
        let Type::Named(name) = ty.bare() else {
            return None;
        };
        let name = name.strip_prefix("struct ").unwrap_or(name);
        let mut own = self.structures.iter().filter(|s| s.name == name);
        if let Some(first) = own.next() {
            return first.members.clone().filter(|_| own.all(|s| s == first));
        }
        match self.resolved(ty, names) {
            Type::Named(name) => vector(&name),
            _ => None,
        }
    }
}

/// `int3`, `dim3`, …
fn vector(name: &str) -> Option<Vec<Member>> {
    let (element, count) = match name {
        "dim3" => ("unsigned int", 3),
        _ => {
            let count = name.chars().last()?.to_digit(10)? as usize;
            let element = match &name[..name.len() - 1] {
                "int" => "int",
                "uint" => "unsigned int",
                "float" => "float",
                "double" => "double",
                "longlong" => "long long",
                _ => return None,
            };
            (element, count)
        }
    };
    let letters = ["x", "y", "z", "w"].get(..count)?.iter();
    Some(
        letters
            .map(|letter| Member {
                name: (*letter).to_owned(),
                ty: Type::Named(element.to_owned()),
            })
            .collect(),
    )
}

/// The alignment of one of CUDA's vectors, where it is more than that of its members: bytes.
pub fn vector_alignment(name: &str) -> Option<usize> {
    Some(match name {
        "int2" | "uint2" | "float2" => 8,
        "int4" | "uint4" | "float4" | "double2" | "longlong2" | "double4" | "longlong4" => 16,
        _ => return None,
    })
}
