//! Statements as text, with places, counters and variables under the names of a generated kernel.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::with_stack;

use crate::emit::print::{self, Leaves};
use crate::emit::{end_names, names_of, plane};
use crate::ir::{Index, Kernel, Statement, Value};

/// Names, and what is written under them.
#[derive(Clone, Debug)]
pub(crate) struct Text<'k> {
    kernel: &'k Kernel,
    symbols: BTreeMap<Symbol, String>,
    variables: Vec<String>,
    elements: BTreeMap<usize, String>,
    taken: BTreeSet<String>,
    ends: [String; 4],
    indent: usize,
    /// What was written.
    pub(crate) out: String,
}

impl<'k> Text<'k> {
    /// The kernel's own names.
    pub(crate) fn new(kernel: &'k Kernel) -> Self {
        let mut text = Text {
            kernel,
            symbols: BTreeMap::new(),
            variables: Vec::new(),
            elements: BTreeMap::new(),
            taken: names_of(kernel),
            ends: end_names(kernel),
            indent: 1,
            out: String::new(),
        };
        let mut seen = BTreeSet::new();
        for variable in &kernel.variables {
            let name = match seen.insert(variable.name.clone()) {
                true => variable.name.clone(),
                false => text.fresh(&variable.name),
            };
            text.taken.insert(name.clone());
            text.variables.push(name);
        }
        for (number, counter) in kernel.loops.iter().enumerate() {
            text.taken.insert(counter.name.clone());
            text.name(Symbol::Loop(number), counter.name.clone());
        }
        for number in 0..kernel.sizes.len() {
            text.name(Symbol::Size(number), kernel.size_name(number).to_owned());
        }
        for dim in &kernel.dims {
            text.taken.insert(dim.name.clone());
            text.name(dim.symbol, dim.name.clone());
        }
        text
    }

    /// A name that nothing else has.
    pub(crate) fn fresh(&mut self, wish: &str) -> String {
        let mut name = wish.to_owned();
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{wish}_{number}");
            number += 1;
        }
        name
    }

    /// Calls a symbol by a name.
    pub(crate) fn name(&mut self, symbol: Symbol, name: String) {
        self.symbols.insert(symbol, name);
    }

    /// The same, and tells the name that it had.
    pub(crate) fn rename_symbol(&mut self, symbol: Symbol, name: String) -> String {
        self.symbols.insert(symbol, name).unwrap_or_default()
    }

    /// Calls a variable by another name, and tells the one that it had.
    pub(crate) fn rename(&mut self, variable: usize, name: String) -> String {
        std::mem::replace(&mut self.variables[variable], name)
    }

    /// The name of a variable.
    pub(crate) fn variable(&self, variable: usize) -> &str {
        &self.variables[variable]
    }

    /// Has an access mean something else than memory.
    pub(crate) fn replace_element(&mut self, access: usize, text: String) {
        self.elements.insert(access, text);
    }

    /// Has it mean memory again.
    pub(crate) fn restore_element(&mut self, access: usize) {
        self.elements.remove(&access);
    }

    /// One past the last point of a dimension.
    pub(crate) fn end(&self, dim: usize) -> &str {
        self.ends.get(dim).map_or("", String::as_str)
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Writes a line that opens a block.
    pub(crate) fn open(&mut self, text: &str) {
        self.line(&format!("{text} {{"));
        self.indent += 1;
    }

    /// Ends a block.
    pub(crate) fn close(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    /// Writes lines; a brace at the end of one opens a block, one alone ends it.
    pub(crate) fn lines(&mut self, text: &str) {
        for line in text.lines() {
            match (line, line.strip_suffix(" {")) {
                ("}", _) => self.close(),
                (_, Some(head)) => self.open(head),
                (_, None) => self.line(line),
            }
        }
    }

    /// Writes where a point is along the dimensions behind the second; a point in front of the first one has no work.
    pub(crate) fn planes(&mut self) {
        for (number, dim) in self.kernel.dims.iter().enumerate().skip(2) {
            let place = plane(self.kernel, number);
            self.line(&format!("const int {} = {place};", dim.name));
            for low in &dim.low {
                self.line(&format!("if ({} < {}) return;", dim.name, self.poly(low)));
            }
        }
    }

    /// A polynomial.
    pub(crate) fn poly(&self, poly: &Poly) -> String {
        poly.text(|symbol| self.symbols.get(&symbol).cloned().unwrap_or_default())
    }

    /// An element of an array.
    pub(crate) fn element(&self, access: usize) -> String {
        if let Some(text) = self.elements.get(&access) {
            return text.clone();
        }
        let access = &self.kernel.accesses[access];
        let index = match &access.index {
            Index::Affine(poly) => self.poly(poly),
            Index::Value(value) => self.value(value),
        };
        format!("{}[{index}]", self.kernel.arrays[access.array].text())
    }

    /// A value.
    pub(crate) fn value(&self, value: &Value) -> String {
        print::text(value, self)
    }

    /// A statement and all in it.
    pub(crate) fn statement(&mut self, statement: &Statement) {
        with_stack(|| match statement {
            Statement::Declare(variable, value) => {
                let ty = &self.kernel.variables[*variable].ty;
                let name = self.variable(*variable);
                let text = match value {
                    Some(value) => format!("{ty} {name} = {};", self.value(value)),
                    None => format!("{ty} {name};"),
                };
                self.line(&text);
            }
            Statement::Assign {
                variable,
                member,
                op,
                value,
            } => {
                let member = member.as_ref().map_or(String::new(), |m| format!(".{m}"));
                let text = format!(
                    "{}{member} {op} {};",
                    self.variable(*variable),
                    self.value(value)
                );
                self.line(&text);
            }
            Statement::Store {
                access,
                member,
                op,
                value,
            } => {
                let member = member.as_ref().map_or(String::new(), |m| format!(".{m}"));
                let text = format!(
                    "{}{member} {op} {};",
                    self.element(*access),
                    self.value(value)
                );
                self.line(&text);
            }
            Statement::Atomic { access, op, value } => {
                let (place, value) = (self.element(*access), self.value(value));
                self.line(&format!("{}(&{place}, {value});", op.name()));
            }
            Statement::Loop(number, body) => {
                let counter = &self.kernel.loops[*number];
                let name = self.symbols[&Symbol::Loop(*number)].clone();
                let step = match counter.step {
                    1 => format!("{name}++"),
                    step => format!("{name} += {step}"),
                };
                let (low, high) = (self.poly(&counter.low), self.poly(&counter.high));
                self.open(&format!(
                    "for (int {name} = {low}; {name} < {high}; {step})"
                ));
                self.statements(body);
                self.close();
            }
            Statement::While(cond, body) => {
                self.open(&format!("while ({})", self.value(cond)));
                self.statements(body);
                self.close();
            }
            Statement::If(cond, then, otherwise) => {
                self.open(&format!("if ({})", self.value(cond)));
                self.statements(then);
                self.close();
                if !otherwise.is_empty() {
                    self.open("else");
                    self.statements(otherwise);
                    self.close();
                }
            }
        });
    }

    /// Statements one after the other.
    pub(crate) fn statements(&mut self, all: &[Statement]) {
        for statement in all {
            self.statement(statement);
        }
    }
}

/// The head of a loop over four turns or points.
pub(crate) fn four_times(turn: &str) -> String {
    format!("#pragma unroll\nfor (int {turn} = 0; {turn} < 4; {turn}++) {{")
}

impl Leaves for Text<'_> {
    fn parameter(&self, number: usize) -> String {
        self.kernel.parameters[number].name.clone()
    }

    fn variable(&self, number: usize) -> String {
        self.variables[number].clone()
    }

    fn load(&self, access: usize) -> String {
        self.element(access)
    }

    fn int(&self, poly: &Poly) -> String {
        self.poly(poly)
    }
}
