//! Arguments that are structures: what their members are called, and how they are passed.

use warpwright_cudac::ast::{Parameter, Type};
use warpwright_cudac::structures::vector_alignment;
use warpwright_cudac::{File, Scalar, TypeNames};
use warpwright_ladder::{Argument, Member};

/// The name of an argument's member as that of an argument: `p.nx` is `p_nx`.
pub(crate) fn plain_name(name: &str) -> String {
    name.replace('.', "_")
}

/// What follows an argument's name where this is the value: nothing for the argument itself, `.nx` for a member.
pub(crate) fn path_of(file: &File, parameter: &Parameter, wanted: &str) -> Option<String> {
    let name = &parameter.name.text;
    // A word of the compact language has another name in the stencil.
    if name == wanted || format!("own_{name}") == *wanted {
        return Some(String::new());
    }
    paths(file, &parameter.ty)
        .into_iter()
        .find(|path| plain_name(&format!("{name}{path}")) == wanted)
}

/// The members of a structure, and those of structures in it: `.nx`, `.size.x`.
fn paths(file: &File, ty: &Type) -> Vec<String> {
    let members = file.members(ty, &TypeNames::new()).unwrap_or_default();
    let below = members.into_iter().flat_map(|member| {
        let own = format!(".{}", member.name);
        let deeper = paths(file, &member.ty);
        match deeper.is_empty() {
            true => vec![own],
            false => deeper.iter().map(|path| format!("{own}{path}")).collect(),
        }
    });
    below.collect()
}

/// Is an argument a structure that is understood?
pub(crate) fn is_record(file: &File, ty: &Type) -> bool {
    file.members(ty, &TypeNames::new()).is_some()
}

/// A structure as an argument of a launch, with the values of its members by their plain names; none where its layout is
/// not known.
pub(crate) fn argument(
    file: &File,
    (name, ty): (&str, &Type),
    value: &impl Fn(&str) -> Argument,
) -> Option<Argument> {
    let members = file.members(ty, &TypeNames::new())?;
    let mut fields = Vec::new();
    for member in members {
        let own = format!("{name}.{}", member.name);
        if let Some(inner) = argument(file, (&own, &member.ty), value) {
            fields.push(Member {
                ty: "",
                value: inner,
            });
            continue;
        }
        let ty = match (file.scalar(&member.ty, &TypeNames::new()), member.ty.bare()) {
            (_, Type::Pointer(..)) => "u64",
            (Some(Scalar::Bool), _) => "u8",
            (Some(Scalar::Float), _) => "f32",
            (Some(Scalar::Double), _) => "f64",
            (Some(Scalar::Integer(16, true)), _) => "s16",
            (Some(Scalar::Integer(16, false)), _) => "u16",
            (Some(Scalar::Integer(32, true)), _) => "s32",
            (Some(Scalar::Integer(32, false)), _) => "u32",
            (Some(Scalar::Integer(64, true)), _) => "s64",
            (Some(Scalar::Integer(64, false)), _) => "u64",
            _ => return None,
        };
        fields.push(Member {
            ty,
            value: value(&plain_name(&own)),
        });
    }
    let alignment = match file.resolved(ty, &TypeNames::new()) {
        Type::Named(name) => vector_alignment(&name),
        _ => None,
    };
    Some(Argument::Structure(fields, alignment))
}
