//! What functions declare that a thread may keep in local memory: arrays, structures, and parameters by value.

use tree_sitter::Node;

use crate::ast::{Ident, Type};
use crate::diag::Span;
use crate::lower::Lower;
use crate::structures::{Numbers, vector_alignment};
use crate::types::{Scalar, TypeNames};
use crate::{File, Header, print};

/// An array or a structure of a function, or one of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Local {
    /// Its name.
    pub name: Ident,
    /// The function's name.
    pub function: String,
    /// The function's place in the text.
    pub within: Span,
    /// Of a parameter: its index.
    pub parameter: Option<usize>,
    /// Bytes of a thread, where the text says them.
    pub bytes: Option<u64>,
}

/// How deep types in types are followed.
const DEEPEST: u32 = 8;

/// Declarations that are no memory of the thread's own.
const ELSEWHERE: [&str; 4] = ["__shared__", "__constant__", "static", "extern"];

impl File {
    /// The arrays and structures that the file's own functions declare, and their parameters by value, in order.
    pub fn locals(&self, number: &Numbers<'_>) -> Vec<Local> {
        let all = self.kernels.iter().chain(&self.functions);
        let own = all.filter(|header| header.part.0 == 0);
        own.flat_map(|header| self.locals_of(header, number))
            .collect()
    }

    fn locals_of(&self, header: &Header, number: &Numbers<'_>) -> Vec<Local> {
        let Some(node) = self.definition(header) else {
            return Vec::new();
        };
        let mut lower = self.parts[header.part.0].lower();
        let mut found: Vec<(Ident, Type, Option<usize>)> = Vec::new();
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            match node.kind() {
                "declaration" => found.extend(declared(&mut lower, node)),
                "parameter_list" => {
                    let parameters = lower.children(node).into_iter().enumerate();
                    found.extend(parameters.filter_map(|(at, node)| {
                        let parameter = lower.parameter(node).ok()?;
                        if parameter.is_reference {
                            return None;
                        }
                        Some((parameter.name, parameter.ty, Some(at)))
                    }));
                    continue;
                }
                _ => {}
            }
            stack.extend(lower.children(node).into_iter().rev());
        }
        let is_memory = |ty: &Type| match ty.bare() {
            Type::Array(..) => true,
            Type::Named(_) => self.scalar(ty, &TypeNames::new()).is_none(),
            _ => false,
        };
        let found = found.into_iter().filter(|(_, ty, _)| is_memory(ty));
        found
            .map(|(name, ty, parameter)| Local {
                bytes: self.layout(&ty, number, DEEPEST).map(|(bytes, _)| bytes),
                name,
                function: header.name.text.clone(),
                within: header.span.clone(),
                parameter,
            })
            .collect()
    }

    /// Bytes and alignment of a type, where the text says them.
    fn layout(&self, ty: &Type, number: &Numbers<'_>, depth: u32) -> Option<(u64, u64)> {
        let depth = depth.checked_sub(1)?;
        let ty = self.resolved(ty, &TypeNames::new());
        let name = match &ty {
            Type::Array(of, Some(count)) => {
                let (bytes, alignment) = self.layout(of, number, depth)?;
                return Some((
                    bytes.checked_mul(u64::from(number(
                        &self.source.text,
                        &print::expr(count),
                        count.span.start,
                    )?))?,
                    alignment,
                ));
            }
            Type::Pointer(..) => return Some((8, 8)),
            Type::Named(name) => name,
            _ => return None,
        };
        if let Some(scalar) = self.scalar(&ty, &TypeNames::new()) {
            let bytes = match scalar {
                Scalar::Bool => 1,
                Scalar::Integer(bits, _) => u64::from(bits) / 8,
                Scalar::Float => 4,
                Scalar::Double => 8,
            };
            return Some((bytes, bytes));
        }
        if ["char", "unsigned char", "signed char"].contains(&&**name) {
            return Some((1, 1));
        }
        let members = self
            .laid_out(name, number)
            .or_else(|| self.members(&ty, &TypeNames::new()))?;
        let (mut end, mut most) = (0_u64, vector_alignment(name).unwrap_or(1) as u64);
        for member in members {
            let (bytes, alignment) = self.layout(&member.ty, number, depth)?;
            end = end.next_multiple_of(alignment) + bytes;
            most = most.max(alignment);
        }
        Some((end.next_multiple_of(most), most))
    }
}

/// The variables of a declaration, unless they lie elsewhere.
fn declared(lower: &mut Lower<'_>, node: Node<'_>) -> Vec<(Ident, Type, Option<usize>)> {
    let words = lower.text(node);
    let words = words.split_whitespace().take(3);
    if words.clone().any(|word| ELSEWHERE.contains(&word)) {
        return Vec::new();
    }
    let Ok(base) = lower.base_type(node) else {
        return Vec::new();
    };
    let mut cursor = node.walk();
    let declarators: Vec<Node<'_>> = node
        .children_by_field_name("declarator", &mut cursor)
        .collect();
    let variable = |declarator: Node<'_>| {
        let inner = match declarator.kind() {
            "init_declarator" => declarator.child_by_field_name("declarator")?,
            _ => declarator,
        };
        let (name, ty) = lower.declarator(inner, base.clone()).ok()?;
        Some((name, ty, None))
    };
    declarators.into_iter().filter_map(variable).collect()
}
