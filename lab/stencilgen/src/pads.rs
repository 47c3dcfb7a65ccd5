//! Neighbours beyond the ends of a dimension that are left out, or that something stands for: zero, as a rule.

use warpwright_fuzzgen::Rng;

use crate::generate::{Dim, Writer};

/// Lets some dimensions be computed to their ends.
pub(crate) fn pad(rng: &mut Rng, dims: &mut [Dim]) {
    for dim in dims {
        if rng.chance(75) {
            dim.padded = true;
            dim.margins = [
                rng.below(2) as i64 * rng.below(2) as i64,
                rng.below(2) as i64,
            ];
            dim.shifted = false;
        }
    }
}

impl Writer<'_> {
    /// The condition under which a neighbour is there, in parts.
    fn is_there(&mut self, offsets: &[i64]) -> Vec<String> {
        let mut parts = Vec::new();
        for (at, &offset) in offsets.iter().enumerate() {
            let dim = &self.dims[at];
            if !dim.padded || offset == 0 {
                continue;
            }
            let (name, size, by) = (dim.iterator, dim.size.clone(), offset.abs());
            let choice = self.rng.below(6);
            parts.push(match (offset < 0, choice) {
                (true, 0) => format!("{name} > {}", by - 1),
                (true, 1) => format!("{name} - {by} >= 0"),
                (true, 2) => format!("!({name} < {by})"),
                (true, 3) if by == 1 => name.to_owned(),
                (true, 4) if by == 1 => format!("{name} != 0"),
                (true, _) => format!("{name} >= {by}"),
                (false, 0) => format!("{name} + {by} < {size}"),
                (false, 1) => format!("{name} <= {size} - {}", by + 1),
                (false, 2) => format!("!({name} >= {size} - {by})"),
                (false, 3) if by == 1 => format!("{name} != {size} - 1"),
                (false, _) => format!("{name} < {size} - {by}"),
            });
            // Both sides, as people write them in loops over neighbours.
            if self.rng.chance(25) {
                let dim = &self.dims[at];
                let place = crate::edges::plain(dim, offset);
                parts.push(match offset < 0 {
                    true => format!("{place} < {size}"),
                    false => format!("{place} >= 0"),
                });
            }
        }
        parts
    }

    /// An element where there is one, else something else.
    pub(crate) fn padded(&mut self, element: String, offsets: &[i64]) -> String {
        let parts = self.is_there(offsets);
        if parts.is_empty() {
            return element;
        }
        let other = match self.rng.below(4) {
            0 => self.literal(),
            1 if !self.scalars.is_empty() => self.rng.pick(&self.scalars).clone(),
            _ => "0".to_owned(),
        };
        match self.rng.below(3) {
            0 => {
                let opposite: Vec<String> = parts.iter().map(|p| format!("!({p})")).collect();
                format!("({} ? {other} : {element})", opposite.join(" || "))
            }
            1 if parts.len() > 1 => {
                let (first, rest) = (&parts[0], parts[1..].join(" && "));
                format!("({first} ? ({rest} ? {element} : {other}) : {other})")
            }
            _ => format!("({} ? {element} : {other})", parts.join(" && ")),
        }
    }

    /// Sums that leave out what is not there.
    pub(crate) fn guarded_sums(&mut self, lines: &mut Vec<String>, temps: &mut Vec<String>) {
        if !self.dims.iter().any(|dim| dim.padded) || self.rng.chance(40) {
            return;
        }
        let ty = self.element();
        let name = format!("p{}", temps.len());
        let start = match self.rng.chance(50) {
            true => "0".to_owned(),
            false => self.expression(2),
        };
        lines.push(format!("{ty} {name} = {start};"));
        for _ in 0..self.rng.range(1, 4) {
            let array = self.rng.pick(&self.inputs).clone();
            let mut offsets = Vec::new();
            for at in 0..self.dims.len() {
                let [low, high] = self.dims[at].offsets;
                offsets.push(low + self.rng.below((high - low + 1) as usize) as i64);
            }
            let (element, parts) = (self.access(&array, &offsets), self.is_there(&offsets));
            let weight = self.weight();
            let term = match self.rng.below(3) {
                0 => element,
                _ => format!("{weight} * {element}"),
            };
            if parts.is_empty() {
                lines.push(format!("{name} += {term};"));
                continue;
            }
            let test = parts.join(" && ");
            let sign = *self.rng.pick(&["+=", "+=", "-="]);
            lines.push(match self.rng.below(5) {
                0 => format!("if ({test}) {{ {ty} own = {term}; {name} {sign} own; }}"),
                1 => format!("if ({test}) {name} {sign} {term}; else {name} -= {weight};"),
                2 => format!("if ({test}) {name} = {name} * {weight} - {term};"),
                _ => format!("if ({test}) {name} {sign} {term};"),
            });
        }
        temps.push(name);
    }
}
