//! Names and expressions of the generated text.

use std::collections::{HashMap, HashSet};

use super::super::evaluate::{self, Sizes};
use super::super::ir::{Access, Element, Extent, Stencil};
use super::super::schedule::labels::Label;

pub(super) use crate::sweep::c_type;

/// A constant of a type.
pub fn literal(value: f64, element: Element) -> String {
    match element {
        Element::F32 => format!("{:?}f", value as f32),
        Element::F64 => format!("{value:?}"),
        Element::U32 => format!("{}u", value as i64),
        // The sign of a literal is an operator, and its number none of the type.
        Element::I32 if value == f64::from(i32::MIN) => format!("({} - 1)", i32::MIN + 1),
        _ => format!("{}", value as i64),
    }
}

/// C identifiers for labels, unique, and none that the input uses.
pub struct Names {
    taken: HashSet<String>,
    labels: HashMap<Label, String>,
}

impl Names {
    pub fn new(stencil: &Stencil) -> Names {
        let mut taken: HashSet<String> = HashSet::new();
        taken.extend(stencil.parameters.values().cloned());
        taken.extend(stencil.arrays.values().map(|a| a.name.clone()));
        taken.extend(stencil.arrays.values().map(|a| format!("{}_", a.name)));
        taken.extend(stencil.scalars.values().map(|s| s.name.clone()));
        taken.extend(stencil.dims.values().map(|d| d.name.clone()));
        Names {
            taken,
            labels: HashMap::new(),
        }
    }

    /// `in[k+1][j][i-2]` becomes `in_kp1_j_im2`.
    pub fn of(&mut self, label: Label, name: &str) -> String {
        if let Some(name) = self.labels.get(&label) {
            return name.clone();
        }
        let mut text = String::new();
        for c in name.chars() {
            match c {
                '+' => text.push('p'),
                '-' => text.push('m'),
                '[' | '.' => text.push('_'),
                c if c.is_ascii_alphanumeric() || c == '_' => text.push(c),
                _ => {}
            }
        }
        let name = self.unique(&text);
        self.labels.insert(label, name.clone());
        name
    }

    /// A name that is not taken, starting with `stem`.
    pub fn unique(&mut self, stem: &str) -> String {
        let mut name = stem.to_owned();
        let mut number = 1;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{stem}_{number}");
        }
        name
    }
}

/// An extent as C: a number if the sizes are known.
pub fn extent(stencil: &Stencil, extent: Extent, sizes: Option<&Sizes>) -> String {
    if let Some(sizes) = sizes {
        return evaluate::extent(extent, sizes).to_string();
    }
    match (extent.parameter, extent.add) {
        (None, add) => add.to_string(),
        (Some(parameter), 0) => stencil.parameters[parameter].clone(),
        (Some(parameter), add) => format!("({} {:+})", stencil.parameters[parameter], add),
    }
}

/// The distance of an element from the one at the thread's first point, in elements.
pub fn offset(stencil: &Stencil, access: &Access, sizes: Option<&Sizes>) -> String {
    let extents = &stencil.arrays[access.array].extents;
    if let Some(sizes) = sizes {
        let mut offset: i64 = 0;
        for (subscript, &e) in access.subscripts.iter().zip(extents) {
            offset = offset * evaluate::extent(e, sizes) + subscript.offset;
        }
        return offset.to_string();
    }
    let mut terms = Vec::new();
    for (at, subscript) in access.subscripts.iter().enumerate() {
        let inner = extents[at + 1..].iter().map(|&e| extent(stencil, e, None));
        let factors: Vec<String> = inner.collect();
        match (subscript.offset, factors.is_empty()) {
            (0, _) => {}
            (offset, true) => terms.push(offset.to_string()),
            (1, false) => terms.push(factors.join(" * ")),
            (offset, false) => terms.push(format!("{offset} * {}", factors.join(" * "))),
        }
    }
    match terms.is_empty() {
        true => "0".to_owned(),
        false => terms.join(" + "),
    }
}
