//! Straight-line code, each value once.

use std::collections::BTreeMap;

/// Lines of C in which equal right-hand sides become one variable.
///
/// Scopes nest: what an inner scope computes is unknown outside.
#[derive(Debug)]
pub(super) struct Emitter {
    prefix: &'static str,
    element: &'static str,
    lines: Vec<String>,
    known: Vec<BTreeMap<String, String>>,
    count: usize,
    /// Arithmetic operations emitted.
    pub(super) operations: usize,
}

impl Emitter {
    pub(super) fn new(prefix: &'static str, element: &'static str) -> Self {
        Emitter {
            prefix,
            element,
            lines: Vec::new(),
            known: vec![BTreeMap::new()],
            count: 0,
            operations: 0,
        }
    }

    /// A line as it stands.
    pub(super) fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// The variable that holds a value.
    pub(super) fn value(&mut self, right: String) -> String {
        let element = self.element;
        self.typed(element, right)
    }

    /// A value that takes an arithmetic operation.
    pub(super) fn operation(&mut self, right: String) -> String {
        let before = self.count;
        let name = self.value(right);
        self.operations += self.count - before;
        name
    }

    /// The same for another type.
    pub(super) fn typed(&mut self, kind: &str, right: String) -> String {
        if let Some(name) = self.known.iter().rev().find_map(|scope| scope.get(&right)) {
            return name.clone();
        }
        let name = format!("{}{}", self.prefix, self.count);
        self.count += 1;
        self.lines.push(format!("const {kind} {name} = {right};"));
        if let Some(scope) = self.known.last_mut() {
            scope.insert(right, name.clone());
        }
        name
    }

    /// Computes again what these right-hand sides say, if it is needed again.
    pub(super) fn forget(&mut self, which: impl Fn(&str) -> bool) {
        for scope in &mut self.known {
            scope.retain(|right, _| !which(right));
        }
    }

    pub(super) fn open(&mut self, line: &str) {
        self.lines.push(format!("{line} {{"));
        self.known.push(BTreeMap::new());
    }

    pub(super) fn close(&mut self) {
        self.lines.push("}".to_owned());
        self.known.pop();
    }

    /// Values computed.
    pub(super) fn values(&self) -> usize {
        self.count
    }

    /// Most values that are alive at once, in the order of the lines: pairs count twice.
    pub(super) fn most_alive(&self) -> usize {
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        let names = |line: &'_ str| -> Vec<(usize, usize)> { words(line, self.prefix) };
        for (number, line) in self.lines.iter().enumerate() {
            for (from, to) in names(line) {
                last.insert(&line[from..to], number);
            }
        }
        let mut ends = vec![0; self.lines.len()];
        let (mut alive, mut most) = (0, 0);
        for (number, line) in self.lines.iter().enumerate() {
            if let (Some(rest), Some((from, to))) =
                (line.strip_prefix("const "), names(line).first().copied())
            {
                let pair = rest[self.element.len().min(rest.len())..].starts_with('2');
                let size = if pair { 2 } else { 1 };
                if let Some(end) = last.get(&line[from..to]) {
                    alive += size;
                    ends[*end] += size;
                }
            }
            most = most.max(alive);
            alive -= ends[number];
        }
        most
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines
    }
}

/// Where names made of a prefix and digits stand in a line.
fn words(line: &str, prefix: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for part in line.split_inclusive(|c| !inside(c)) {
        let word = part.trim_end_matches(|c| !inside(c));
        let digits = word.strip_prefix(prefix).unwrap_or_default();
        if !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()) {
            found.push((from, from + word.len()));
        }
        from += part.len();
    }
    found
}
