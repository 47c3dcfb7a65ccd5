//! Outputs that say little about what made them: two kernels that leave the same one may be different all the same.

use warpwright_launch::{Buffer, ElemType};
use warpwright_ptx::Module;
use warpwright_rewrite::outputs;

use super::{Contents, RewriteOptions, Try, sides};
use crate::Input;

/// Why an output that two kernels agree on says little about them.
pub fn tells_little(buffer: &Buffer, input: &[u8], output: &[u8]) -> Option<String> {
    if input == output {
        return Some("it is as it was before the launch".to_owned());
    }
    let mut elements = output.chunks_exact(buffer.ty.size());
    if let Some(first) = elements.clone().next()
        && buffer.len > 1
        && elements.all(|element| element == first)
    {
        let value = shown(buffer.ty, buffer.ty.to_f64(buffer.ty.read(first)));
        return Some(format!("every element is {value}"));
    }
    let elements = output.chunks_exact(buffer.ty.size());
    let is_nan = |bytes: &[u8]| buffer.ty.to_f64(buffer.ty.read(bytes)).is_nan();
    let nans = elements.filter(|bytes| is_nan(bytes)).count();
    match nans {
        0 => None,
        all if all == buffer.len => Some("every element is NaN".to_owned()),
        some => Some(format!("{some} of {} elements are NaN", buffer.len)),
    }
}

/// A number, with no more digits than tell it from its neighbours.
pub fn shown(ty: ElemType, x: f64) -> String {
    match ty {
        ElemType::F64 => x.to_string(),
        ty if ty.is_float() => (x as f32).to_string(),
        _ => x.to_string(),
    }
}

/// What the original leaves at a launch with everything as described, where that says little.
pub(super) fn of(
    inputs: [&Input; 2],
    modules: &[Module; 2],
    options: &RewriteOptions<'_>,
    at: &Try,
) -> Vec<String> {
    let Ok([original, _]) = sides(inputs, modules, options, at, Contents::All) else {
        return Vec::new();
    };
    let Ok(left) = outputs(&original) else {
        return Vec::new();
    };
    let before = |name: &str| {
        let mut all = original.steps.iter().flat_map(|step| {
            let contents = step.contents.iter();
            step.launch.buffers().zip(contents)
        });
        all.find(|(buffer, _)| buffer.name == name)
    };
    let little = left.iter().filter_map(|(name, output)| {
        let (buffer, input) = before(name)?;
        let what = tells_little(buffer, input, output)?;
        Some(format!("`{name}` tells little at `{}`: {what}", at.size))
    });
    little.collect()
}
