//! What types mean once names for types are replaced.

use std::collections::BTreeMap;

use crate::File;
use crate::ast::Type;

/// An arithmetic type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// `bool`
    Bool,
    /// An integer: its bits, and whether it has a sign.
    Integer(u8, bool),
    /// `float`
    Float,
    /// `double`
    Double,
}

/// Names for types beyond those of the file: the parameters of a template that are types.
pub type TypeNames = BTreeMap<String, String>;

impl File {
    /// A type with all names for types replaced, without `const` around it.
    pub fn resolved(&self, ty: &Type, names: &TypeNames) -> Type {
        match ty.bare() {
            Type::Named(name) => {
                let own = names.get(name).map_or(&**name, String::as_str);
                Type::Named(self.type_named(own))
            }
            other => other.clone(),
        }
    }

    /// The arithmetic type that a type is.
    pub fn scalar(&self, ty: &Type, names: &TypeNames) -> Option<Scalar> {
        match self.resolved(ty, names) {
            Type::Named(name) => scalar(&name),
            _ => None,
        }
    }
}

/// The arithmetic type of a name, as CUDA has it on 64-bit Linux.
fn scalar(name: &str) -> Option<Scalar> {
    let name = name.strip_prefix("std::").unwrap_or(name);
    let known = match name {
        "bool" => Scalar::Bool,
        "float" => Scalar::Float,
        "double" => Scalar::Double,
        "size_t" | "uint64_t" | "ulong" => Scalar::Integer(64, false),
        "ptrdiff_t" | "int64_t" | "ssize_t" => Scalar::Integer(64, true),
        "int32_t" => Scalar::Integer(32, true),
        "uint32_t" | "uint" => Scalar::Integer(32, false),
        "int16_t" => Scalar::Integer(16, true),
        "uint16_t" | "ushort" => Scalar::Integer(16, false),
        _ => return words(name),
    };
    Some(known)
}

/// `unsigned long long int` and so on, in any order of the words.
fn words(name: &str) -> Option<Scalar> {
    let (mut bits, mut signed) = (32, true);
    for word in name.split_whitespace() {
        match word {
            "int" | "signed" => {}
            "const" => {}
            "unsigned" => signed = false,
            "short" => bits = 16,
            "long" => bits = 64,
            _ => return None,
        }
    }
    (!name.trim().is_empty()).then_some(Scalar::Integer(bits, signed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_widths() {
        for (name, expected) in [
            ("int", Some(Scalar::Integer(32, true))),
            ("unsigned", Some(Scalar::Integer(32, false))),
            ("long unsigned int", Some(Scalar::Integer(64, false))),
            ("short", Some(Scalar::Integer(16, true))),
            ("std::size_t", Some(Scalar::Integer(64, false))),
            ("double", Some(Scalar::Double)),
            ("float4", None),
            ("", None),
        ] {
            assert_eq!(scalar(name), expected, "{name}");
        }
    }
}
