//! Comparisons of data: limiters, upwind differences, masks.

use crate::generate::Writer;

impl Writer<'_> {
    /// A comparison that holds at about half of the points: elements lie between a half and one and a half.
    fn comparison(&mut self) -> String {
        let op = *self.rng.pick(&["<", "<=", ">", ">=", "==", "!="]);
        let one = self.function_free("1.0");
        match self.rng.below(4) {
            0 => format!("{} {op} {}", self.read(), self.read()),
            1 => format!("{} - {} {op} 0", self.read(), self.read()),
            _ => format!("{} {op} {one}", self.read()),
        }
    }

    /// A number in the type of the kernel.
    fn function_free(&self, number: &str) -> String {
        match self.element() {
            "float" => format!("{number}f"),
            _ => number.to_owned(),
        }
    }

    fn condition(&mut self) -> String {
        match self.rng.below(5) {
            0 => format!("{} && {}", self.comparison(), self.comparison()),
            1 => format!("{} || {}", self.comparison(), self.comparison()),
            2 => format!("!({})", self.comparison()),
            _ => self.comparison(),
        }
    }

    /// A value that depends on other ones.
    pub(crate) fn chosen_by_data(&mut self) -> String {
        let (condition, a, b) = (self.condition(), self.read(), self.term());
        format!("({condition} ? {a} : {b})")
    }

    /// Statements under conditions on data.
    pub(crate) fn by_data(&mut self, lines: &mut Vec<String>, temps: &mut Vec<String>) {
        if !self.masks || self.rng.chance(40) {
            return;
        }
        let ty = self.element();
        let name = format!("q{}", temps.len());
        let start = self.term();
        lines.push(format!("{ty} {name} = {start};"));
        let condition = self.condition();
        let (a, b) = (self.term(), self.read());
        lines.push(match self.rng.below(5) {
            0 => format!("if ({condition}) {name} = {a}; else {name} = {b};"),
            1 => format!("if ({condition}) {name} += {a};"),
            2 => format!("const bool f_{name} = {condition}; if (!f_{name}) {{ {name} -= {a}; }}"),
            3 => {
                let more = self.condition();
                format!("if ({condition}) {{ if ({more}) {name} *= {a}; else {name} = {b}; }}")
            }
            _ => format!("if ({condition}) {{ const {ty} own = {a}; {name} = own - {b}; }}"),
        });
        temps.push(name);
    }

    /// An element that is stored where a condition holds.
    pub(crate) fn masked_store(&mut self, lines: &mut Vec<String>, place: &str, value: &str) {
        let (condition, other) = (self.condition(), self.read());
        match self.rng.below(5) {
            0 => lines.push(format!("if ({condition}) {place} = {value};")),
            1 => lines.push(format!("if ({condition}) {place} += {value};")),
            2 => lines.push(format!(
                "if ({condition}) {place} = {value}; else {place} = {other};"
            )),
            3 => {
                let second = self.condition();
                lines.push(format!("if ({condition}) {place} = {value};"));
                lines.push(format!("if ({second}) {place} = {other};"));
            }
            _ => {
                lines.push(format!("{place} = {other};"));
                lines.push(format!("if ({condition}) {{ {place} = {value}; }}"));
            }
        }
    }
}
