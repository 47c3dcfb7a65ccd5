//! The text form of a DAG, which parses back.
//!
//! One tree a line: `target = expression` for a value that is stored, `target := expression` for
//! one that later trees read. A label is a name, possibly with subscripts (`in[k+1][j][i]`); with
//! a `$` in front it takes no register. `//` starts a comment.

use std::collections::HashMap;
use std::fmt;

use super::dag::{Child, Dag, Kind, LabelData, Node, Operator, Order};
use super::expression::Expression;
use super::labels::Label;
use super::lower::add_tree;
use crate::ir::{Element, Function};

/// Nested parentheses and calls are read up to this depth.
const MAX_DEPTH: usize = 100;

/// Why a text is no DAG.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct TextError {
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub fault: TextFault,
}

/// What is wrong with a line of a DAG.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// Something else must stand there.
    #[error("{what} expected before `{before}`")]
    Expected {
        /// What must stand there.
        what: &'static str,
        /// The rest of the line.
        before: String,
    },
    /// The line ends too early.
    #[error("{0} expected at the end")]
    ExpectedAtEnd(&'static str),
    /// The label of the tree has a value already.
    #[error("`{0}` is read or written earlier")]
    Taken(String),
    /// `+-`.
    #[error("one sign at a time")]
    TwoSigns,
    /// Deeper than is read.
    #[error("more than {} nested parentheses", MAX_DEPTH)]
    TooDeep,
    /// Digits that make no number.
    #[error("`{0}` is no number")]
    Number(String),
}

/// Reads a DAG of `double` trees.
///
/// # Errors
/// The first line that cannot be read, or writes a label that an earlier line reads or writes.
pub fn parse(text: &str, order: Order) -> Result<Dag, TextError> {
    let mut reader = Reader {
        dag: Dag::default(),
        names: HashMap::new(),
        order,
        rest: "",
        depth: 0,
    };
    for (at, line) in text.lines().enumerate() {
        let line = line.split("//").next().unwrap_or("").trim();
        if !line.is_empty() {
            let error = |fault| TextError {
                line: at + 1,
                fault,
            };
            reader.tree(line).map_err(error)?;
        }
    }
    Ok(reader.dag)
}

struct Reader<'a> {
    dag: Dag,
    names: HashMap<String, Label>,
    order: Order,
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn tree(&mut self, line: &'a str) -> Result<(), TextFault> {
        self.rest = line;
        let name = self.name()?;
        let stored = !self.take(":=");
        if stored && !self.take("=") {
            return Err(self.expected("`=` or `:=`"));
        }
        let value = self.sum()?;
        if !self.rest.trim_start().is_empty() {
            return Err(self.expected("an operator or the end of the line"));
        }
        if self.names.contains_key(&name) {
            return Err(TextFault::Taken(name));
        }
        let target = self.label(name);
        add_tree(&mut self.dag, value, target, stored, self.order);
        Ok(())
    }

    fn expected(&self, what: &'static str) -> TextFault {
        match self.rest.trim_start() {
            "" => TextFault::ExpectedAtEnd(what),
            rest => TextFault::Expected {
                what,
                before: rest.to_owned(),
            },
        }
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn label(&mut self, name: String) -> Label {
        let dag = &mut self.dag;
        *self.names.entry(name.clone()).or_insert_with(|| {
            dag.labels.push(LabelData {
                free: name.starts_with('$'),
                name,
                element: Element::F64,
            })
        })
    }

    fn sum(&mut self) -> Result<Expression, TextFault> {
        let negative = self.take("-");
        let mut value = self.product()?;
        if negative {
            value = value.negated(self.order);
        }
        loop {
            let negative = match (self.take("+"), self.take("-")) {
                (true, false) => false,
                (false, true) => true,
                (true, true) => return Err(TextFault::TwoSigns),
                (false, false) => return Ok(value),
            };
            value = Expression::plus(value, self.product()?, negative, self.order);
        }
    }

    fn product(&mut self) -> Result<Expression, TextFault> {
        let mut value = self.factor()?;
        loop {
            if self.take("*") {
                value = Expression::times(value, self.factor()?, self.order);
            } else if self.take("/") {
                let operands = vec![value, self.factor()?];
                value = Expression::operator(Operator::Divide, operands);
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Result<Expression, TextFault> {
        if self.take("(") {
            let value = self.nested(Self::sum)?;
            return match self.take(")") {
                true => Ok(value),
                false => Err(self.expected("`)`")),
            };
        }
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        let name = self.name()?;
        match Function::ALL.into_iter().find(|f| f.name() == name) {
            Some(function) => self.call(function, function.arity()),
            None => {
                let label = self.label(name);
                Ok(Expression::leaf(label, Element::F64))
            }
        }
    }

    fn nested<T>(&mut self, read: fn(&mut Self) -> Result<T, TextFault>) -> Result<T, TextFault> {
        if self.depth == MAX_DEPTH {
            return Err(TextFault::TooDeep);
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn call(&mut self, function: Function, arity: usize) -> Result<Expression, TextFault> {
        let mut operands = Vec::new();
        for at in 0..arity {
            if !self.take(if at == 0 { "(" } else { "," }) {
                return Err(self.expected("an argument list"));
            }
            operands.push(self.nested(Self::sum)?);
        }
        match self.take(")") {
            true => Ok(Expression::operator(Operator::Call(function), operands)),
            false => Err(self.expected("`)`")),
        }
    }

    fn number(&mut self) -> Result<Expression, TextFault> {
        let mut end = 0;
        let bytes = self.rest.as_bytes();
        while end < bytes.len() {
            let exponent_sign = matches!(bytes[end], b'+' | b'-') && matches!(bytes[end - 1], b'e');
            if !(bytes[end].is_ascii_digit() || matches!(bytes[end], b'.' | b'e') || exponent_sign)
            {
                break;
            }
            end += 1;
        }
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        let value: f64 = number
            .parse()
            .map_err(|_| TextFault::Number(number.to_owned()))?;
        Ok(Expression::literal(value, Element::F64))
    }

    fn name(&mut self) -> Result<String, TextFault> {
        let text = self.rest.trim_start();
        let start = usize::from(text.starts_with('$'));
        let mut depth = 0;
        let end = text[start..].find(|c: char| {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            depth == 0 && !matches!(c, ']' | '_' | '.') && !c.is_alphanumeric()
        });
        let end = end.map_or(text.len(), |end| end + start);
        let (name, rest) = text.split_at(end);
        let letter = name[start..].starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !letter || depth != 0 {
            return Err(self.expected("a name"));
        }
        self.rest = rest;
        Ok(name.chars().filter(|c| !c.is_whitespace()).collect())
    }
}

impl fmt::Display for Dag {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for tree in self.trees.values() {
            let sign = if tree.stored { "=" } else { ":=" };
            let target = &self.labels[tree.target].name;
            writeln!(f, "{target} {sign} {}", self.expression(tree.root))?;
        }
        Ok(())
    }
}

impl Dag {
    /// A subtree as an expression.
    pub fn expression(&self, node: Node) -> String {
        let children = &self.nodes[node].children;
        match self.nodes[node].kind {
            Kind::Leaf(label) => self.labels[label].name.clone(),
            Kind::Literal(value) if value < 0.0 => format!("({value:?})"),
            Kind::Literal(value) => format!("{value:?}"),
            Kind::Sum(_) => self.terms(children),
            Kind::Product(_) | Kind::Multiply => {
                let factors: Vec<String> = children.iter().map(|c| self.factor(c.node)).collect();
                factors.join(" * ")
            }
            Kind::Operator(Operator::Negate) => format!("-{}", self.factor(children[0].node)),
            Kind::Operator(Operator::Divide) => {
                let [a, b] = [0, 1].map(|at| self.factor(children[at].node));
                format!("{a} / {b}")
            }
            Kind::Operator(Operator::Call(function)) => {
                let operands: Vec<String> =
                    children.iter().map(|c| self.expression(c.node)).collect();
                format!("{}({})", function.name(), operands.join(", "))
            }
        }
    }

    fn terms(&self, children: &[Child]) -> String {
        let mut text = String::new();
        for (at, child) in children.iter().enumerate() {
            text.push_str(match (at, child.negative) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            });
            text.push_str(&match self.nodes[child.node].kind {
                Kind::Product(_) | Kind::Multiply => self.expression(child.node),
                Kind::Operator(Operator::Divide) => self.expression(child.node),
                _ => self.factor(child.node),
            });
        }
        text
    }

    /// In parentheses where it must be as a factor.
    fn factor(&self, node: Node) -> String {
        let text = self.expression(node);
        match self.nodes[node].kind {
            Kind::Leaf(_) | Kind::Literal(_) | Kind::Operator(Operator::Call(_)) => text,
            _ => format!("({text})"),
        }
    }
}
