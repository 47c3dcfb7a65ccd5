//! A template as the one kernel that the file makes of it.

use super::machine::{Bound, Done};
use warpwright_cudac::definitions::TemplateArgument;
use warpwright_cudac::instance::{instance, word};
use warpwright_cudac::{File, Header};

/// What the parameters of a kernel's template are; nothing for a kernel that is none.
pub(super) fn bind(file: &File, kernel: &Header) -> Done<Vec<(String, Bound)>> {
    let given = instance(file, kernel, "stencil::template")?.into_iter();
    Ok(given
        .map(|(name, argument)| {
            let bound = match argument {
                TemplateArgument::Type(ty) => Bound::Type(word(&ty)),
                TemplateArgument::Value(value) => Bound::Value(value),
            };
            (name, bound)
        })
        .collect())
}
