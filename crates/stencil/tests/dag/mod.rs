//! DAGs as text that parses back, and the rules that every schedule of one keeps.
//!
//! One tree a line: `target = expression` for a value that is stored, `target := expression` for
//! one that later trees read. A label is a name, possibly with subscripts (`in[k+1][j][i]`); with
//! a `$` in front it takes no register. `//` starts a comment.

#![allow(dead_code)]

use std::collections::HashMap;

use cranelift_entity::SecondaryMap;
use warpwright_stencil::ir::{Element, Function};
use warpwright_stencil::schedule::dag::{Child, Dag, Kind, LabelData, Node, Operator, Order, Tree};
use warpwright_stencil::schedule::expression::Expression;
use warpwright_stencil::schedule::labels::Label;
use warpwright_stencil::schedule::lower::add_tree;
use warpwright_stencil::schedule::straight::{Context, Profile, Step, Values};

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

/// The trees, one a line.
pub fn text(dag: &Dag) -> String {
    let line = |tree: &Tree| {
        let sign = if tree.stored { "=" } else { ":=" };
        let target = &dag.labels[tree.target].name;
        format!("{target} {sign} {}\n", expression(dag, tree.root))
    };
    dag.trees.values().map(line).collect()
}

/// A subtree as an expression.
pub fn expression(dag: &Dag, node: Node) -> String {
    let children = &dag.nodes[node].children;
    match dag.nodes[node].kind {
        Kind::Leaf(label) => dag.labels[label].name.clone(),
        Kind::Literal(value) if value < 0.0 => format!("({value:?})"),
        Kind::Literal(value) => format!("{value:?}"),
        Kind::Sum(_) => terms(dag, children),
        Kind::Product(_) | Kind::Multiply => {
            let factors: Vec<String> = children.iter().map(|c| factor(dag, c.node)).collect();
            factors.join(" * ")
        }
        Kind::Operator(Operator::Negate) => format!("-{}", factor(dag, children[0].node)),
        Kind::Operator(Operator::Divide) => {
            let [a, b] = [0, 1].map(|at| factor(dag, children[at].node));
            format!("{a} / {b}")
        }
        Kind::Operator(Operator::Call(function)) => {
            let operands: Vec<String> = children.iter().map(|c| expression(dag, c.node)).collect();
            format!("{}({})", function.name(), operands.join(", "))
        }
    }
}

fn terms(dag: &Dag, children: &[Child]) -> String {
    let mut text = String::new();
    for (at, child) in children.iter().enumerate() {
        text.push_str(match (at, child.negative) {
            (0, false) => "",
            (0, true) => "-",
            (_, false) => " + ",
            (_, true) => " - ",
        });
        text.push_str(&match dag.nodes[child.node].kind {
            Kind::Product(_) | Kind::Multiply => expression(dag, child.node),
            Kind::Operator(Operator::Divide) => expression(dag, child.node),
            _ => factor(dag, child.node),
        });
    }
    text
}

/// In parentheses where it must be as a factor.
fn factor(dag: &Dag, node: Node) -> String {
    let text = expression(dag, node);
    match dag.nodes[node].kind {
        Kind::Leaf(_) | Kind::Literal(_) | Kind::Operator(Operator::Call(_)) => text,
        _ => format!("({text})"),
    }
}

/// Why steps are no schedule of a DAG.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// An operand is read too early.
    #[error("{0} is read before it is complete")]
    Incomplete(String),
    /// A step that was done, that has no such child, or that comes out of its order.
    #[error("{0:?} is out of place")]
    OutOfPlace(Step),
    /// A node that nothing evaluates.
    #[error("{0} is not evaluated")]
    Missing(String),
}

/// Checks that a schedule evaluates every node of the trees once, operands before their use,
/// ordered accumulations in written order.
///
/// # Errors
/// The first rule that is broken.
pub fn validate(dag: &Dag, steps: &[Step]) -> Result<(), ScheduleError> {
    let values = Values::new(dag);
    let produced: HashMap<Label, Node> = dag.trees.values().map(|t| (t.target, t.root)).collect();
    let mut done: SecondaryMap<Node, Vec<u32>> = SecondaryMap::new();
    let complete = |done: &SecondaryMap<Node, Vec<u32>>, node: Node| {
        done[node].len()
            == if dag.is_accumulation(node) {
                dag.nodes[node].children.len()
            } else {
                1
            }
    };
    for &step in steps {
        let node = step.node();
        for operand in values.operands(step) {
            let made_by = match dag.nodes[operand].kind {
                Kind::Leaf(label) => produced.get(&label).copied(),
                Kind::Literal(_) => None,
                _ => Some(operand),
            };
            if made_by.is_some_and(|node| !complete(&done, node)) {
                return Err(ScheduleError::Incomplete(expression(dag, operand)));
            }
        }
        let index = match step {
            Step::Compute(_) => 0,
            Step::Accumulate(_, at) => at,
        };
        let matches = matches!(step, Step::Accumulate(..)) == dag.is_accumulation(node);
        let in_order = !dag.is_ordered(node) || index as usize == done[node].len();
        if !matches || !in_order || done[node].contains(&index) {
            return Err(ScheduleError::OutOfPlace(step));
        }
        done[node].push(index);
    }
    let inner = |node: &Node| !dag.is_operand(*node) && dag.nodes[*node].kind != Kind::Multiply;
    let trees = dag.trees.values().flat_map(|t| dag.subtree(t.root));
    match trees.filter(inner).find(|&node| !complete(&done, node)) {
        Some(node) => Err(ScheduleError::Missing(expression(dag, node))),
        None => Ok(()),
    }
}

/// The steps as text, one a line, each with the values alive before and after it.
pub fn describe(dag: &Dag, steps: &[Step], context: &Context) -> String {
    let profile = Profile::new(dag, steps, context);
    let values = Values::new(dag);
    let name = |node: Node| match values.target(node) {
        Some(target) => dag.labels[target].name.clone(),
        None => format!("[{}]", expression(dag, node)),
    };
    let mut text = String::new();
    let mut started: SecondaryMap<Node, bool> = SecondaryMap::new();
    for (at, &step) in steps.iter().enumerate() {
        let node = step.node();
        let operation = match step {
            Step::Compute(_) => format!("{} = {}", name(node), expression(dag, node)),
            Step::Accumulate(_, index) => {
                let child = dag.nodes[node].children[index as usize];
                let product = matches!(dag.nodes[node].kind, Kind::Product(_));
                let operator = match (std::mem::replace(&mut started[node], true), product) {
                    (false, _) => "=",
                    (true, true) => "*=",
                    (true, false) => "+=",
                };
                let sign = if child.negative { "-" } else { "" };
                let value = expression(dag, child.node);
                format!("{} {operator} {sign}{value}", name(node))
            }
        };
        let (before, after) = (profile.before[at], profile.after[at]);
        text += &format!("{before} {after}  {operation}\n");
    }
    text
}

/// The Sethi–Ullman number of a node, generalised to accumulation nodes (section 3.1 of the paper, equation 1 and the
/// paragraph on accumulation nodes): the fewest registers that evaluate a tree without data sharing, every operand in a
/// register of its own. It knows neither free operands nor sharing (`schedule_tree` does).
pub fn su(dag: &Dag, node: Node) -> u32 {
    let children = &dag.nodes[node].children;
    let mut numbers: Vec<u32> = children.iter().map(|c| su(dag, c.node)).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    match dag.nodes[node].kind {
        Kind::Leaf(_) | Kind::Literal(_) => 1,
        // One register accumulates; it comes from the child that is evaluated first.
        Kind::Sum(_) | Kind::Product(_) => match numbers[..] {
            [most, second, ..] if most == second => most + 1,
            [most, ..] => most,
            [] => 1,
        },
        // Operands are held until all are there: the i-th takes what it needs and i registers.
        Kind::Multiply | Kind::Operator(_) => {
            let held = numbers.iter().zip(0..);
            held.map(|(number, held)| number + held).max().unwrap_or(1)
        }
    }
}
