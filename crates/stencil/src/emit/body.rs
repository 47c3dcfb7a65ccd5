//! The text of one kernel.

use std::fmt::Write as _;

use cranelift_entity::SecondaryMap;

use super::super::ir::{Access, Array, ArrayId, BinaryOp, Element, Function, Stencil};
use super::super::schedule::build::{Origin, Unrolled};
use super::super::schedule::dag::{Child, Kind, Node, Operator};
use super::super::schedule::labels::Label;
use super::super::schedule::schedule_dag::Schedule;
use super::super::schedule::straight::{Step, Values};
use super::names::{self, Names, c_type};
use super::{Hold, Options};

const AXES: [&str; 3] = ["x", "y", "z"];

/// The qualifiers of a kernel and its statements.
pub fn kernel(
    stencil: &Stencil,
    unrolled: &Unrolled,
    schedule: &Schedule,
    options: &Options,
) -> [String; 2] {
    let text = format!(
        "  // MAXLIVE {} (each statement atomically: {}).\n",
        schedule.max_live, schedule.atomic
    );
    let threads: u32 = options.block.iter().product();
    let registers = options.registers.map(|n| format!("__maxnreg__({n})"));
    let bounds = registers.unwrap_or_else(|| format!("__launch_bounds__({threads})"));
    let mut writer = Writer {
        stencil,
        unrolled,
        options,
        values: Values::new(&unrolled.dag),
        names: Names::new(stencil),
        temps: SecondaryMap::new(),
        loaded: SecondaryMap::new(),
        taken: SecondaryMap::new(),
        conditions: SecondaryMap::new(),
        text,
    };
    writer.point();
    writer.bases();
    for &label in &unrolled.early {
        writer.load(label);
    }
    for (at, &step) in schedule.steps.iter().enumerate() {
        writer.hold(at);
        writer.step(step);
    }
    [bounds, writer.text]
}

struct Writer<'a> {
    stencil: &'a Stencil,
    unrolled: &'a Unrolled,
    options: &'a Options,
    values: Values<'a>,
    names: Names,
    /// The variable of each inner node.
    temps: SecondaryMap<Node, Option<String>>,
    loaded: SecondaryMap<Label, bool>,
    /// Children that each accumulation has taken up.
    taken: SecondaryMap<Node, u32>,
    /// The value without which a node's value is not stored.
    conditions: SecondaryMap<Node, Option<String>>,
    text: String,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "  {line}");
    }

    /// The thread's first point and what of its box is its own.
    fn point(&mut self) {
        let sizes = self.options.sizes.as_ref();
        for (axis, (id, dim)) in AXES.iter().zip(self.stencil.dims.iter().rev()) {
            let name = &dim.name;
            let factor = self.unrolled.factors[id.as_u32() as usize];
            let last = match sizes {
                Some(sizes) => (super::super::evaluate::range(dim, sizes).1 - 1).to_string(),
                None => {
                    let extent = names::extent(self.stencil, dim.extent, None);
                    format!("{extent} - {}", dim.high + 1)
                }
            };
            let thread = format!("(int)(blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})");
            let low = dim.low;
            if factor == 1 {
                self.line(&format!("const int {name} = {low} + {thread};"));
                self.line(&format!("if ({name} > {last}) return;"));
                continue;
            }
            self.line(&format!(
                "const int {name}_own = {low} + {factor} * {thread};"
            ));
            self.line(&format!("if ({name}_own > {last}) return;"));
            let box_last = format!("{last} - {}", factor - 1);
            self.line(&format!(
                "const int {name} = {name}_own < {box_last} ? {name}_own : {box_last};"
            ));
        }
    }

    /// What is loaded.
    fn loads(&self) -> impl Iterator<Item = &Access> {
        let origins = self.unrolled.origins.values();
        origins.filter_map(|origin| match origin {
            Origin::Load(access) => Some(access),
            Origin::Scalar(_) | Origin::Tree => None,
        })
    }

    /// A pointer into each array at the thread's first point.
    fn bases(&mut self) {
        for (id, array) in &self.stencil.arrays {
            if !self.is_used(id) {
                continue;
            }
            let constant = if array.written { "" } else { "const " };
            let line = format!(
                "{constant}{} *const {}_ = {} + {};",
                c_type(array.element),
                array.name,
                array.name,
                self.first(id, array)
            );
            self.line(&line);
        }
    }

    fn is_used(&self, array: ArrayId) -> bool {
        self.loads().any(|access| access.array == array)
            || self.unrolled.stores.iter().any(|s| s.access.array == array)
    }

    /// The distance of the element at the first point from the start of an array.
    fn first(&self, id: ArrayId, array: &Array) -> String {
        let mut all = self
            .loads()
            .chain(self.unrolled.stores.iter().map(|s| &s.access));
        let Some(access) = all.find(|access| access.array == id) else {
            return "0".to_owned();
        };
        let sizes = self.options.sizes.as_ref();
        let mut text = String::new();
        for (subscript, &extent) in access.subscripts.iter().zip(&array.extents) {
            let name = subscript.dim.map(|dim| self.stencil.dims[dim].name.clone());
            let extent = names::extent(self.stencil, extent, sizes);
            text = match (text.is_empty(), name) {
                (true, None) => text,
                (true, Some(name)) => format!("(long long){name}"),
                (false, None) => format!("({text}) * {extent}"),
                (false, Some(name)) => format!("({text}) * {extent} + {name}"),
            };
        }
        match text.is_empty() {
            true => "0".to_owned(),
            false => text,
        }
    }

    fn hold(&mut self, step: usize) {
        if let Hold::Fence(every) = self.options.order
            && step > 0
            && step.is_multiple_of(every.max(1) as usize)
        {
            self.line("asm volatile(\"\" ::: \"memory\");");
        }
    }

    fn load(&mut self, label: Label) {
        let Origin::Load(access) = &self.unrolled.origins[label] else {
            return;
        };
        if std::mem::replace(&mut self.loaded[label], true) {
            return;
        }
        let data = &self.unrolled.dag.labels[label];
        let name = self.names.of(label, &data.name);
        let array = &self.stencil.arrays[access.array].name;
        let offset = names::offset(self.stencil, access, self.options.sizes.as_ref());
        let line = format!(
            "const {} {name} = {array}_[{offset}];",
            c_type(data.element)
        );
        self.line(&line);
    }

    /// The C expression of a node's value.
    fn value(&mut self, node: Node) -> String {
        let data = &self.unrolled.dag.nodes[node];
        match data.kind {
            Kind::Literal(value) => names::literal(value, data.element),
            Kind::Leaf(label) => match self.unrolled.origins[label] {
                Origin::Scalar(scalar) => self.stencil.scalars[scalar].name.clone(),
                Origin::Load(_) | Origin::Tree => {
                    let name = &self.unrolled.dag.labels[label].name;
                    self.names.of(label, name)
                }
            },
            _ => self.temp(node),
        }
    }

    /// The variable of an inner node; that of a root is the tree's target, unless the types differ.
    fn temp(&mut self, node: Node) -> String {
        if let Some(name) = &self.temps[node] {
            return name.clone();
        }
        let dag = &self.unrolled.dag;
        let name = match self.values.target(node) {
            Some(target) if dag.labels[target].element == dag.nodes[node].element => {
                self.names.of(target, &dag.labels[target].name)
            }
            _ => self.names.unique(&format!("t{}", node.as_u32())),
        };
        self.temps[node] = Some(name.clone());
        name
    }

    fn step(&mut self, step: Step) {
        for node in self.values.operands(step) {
            if let Kind::Leaf(label) = self.unrolled.dag.nodes[node].kind {
                self.load(label);
            }
        }
        let node = step.node();
        let dag = &self.unrolled.dag;
        let count = match step {
            Step::Compute(_) => 1,
            Step::Accumulate(..) => dag.nodes[node].children.len() as u32,
        };
        let line = match step {
            Step::Compute(node) => self.compute(node),
            Step::Accumulate(node, at) => {
                let child = dag.nodes[node].children[at as usize];
                self.accumulate(node, child)
            }
        };
        self.line(&line);
        self.taken[node] += 1;
        if self.taken[node] == count {
            self.complete(node);
        }
    }

    fn compute(&mut self, node: Node) -> String {
        let data = &self.unrolled.dag.nodes[node];
        let operands: Vec<String> = data.children.iter().map(|c| self.value(c.node)).collect();
        let value = match data.kind {
            Kind::Operator(Operator::Negate) if data.element == Element::I32 => {
                BinaryOp::Sub.text("0", &operands[0], data.element)
            }
            Kind::Operator(Operator::Negate) => format!("-{}", operands[0]),
            Kind::Operator(Operator::Divide) => format!("{} / {}", operands[0], operands[1]),
            Kind::Operator(Operator::Call(function)) => {
                if function == Function::When {
                    self.conditions[node] = Some(operands[0].clone());
                }
                function.text(&operands, data.element)
            }
            _ => operands.join(" * "),
        };
        format!(
            "const {} {} = {value};",
            c_type(data.element),
            self.temp(node)
        )
    }

    fn accumulate(&mut self, node: Node, child: Child) -> String {
        let data = &self.unrolled.dag.nodes[node];
        let sign = if child.negative { "-" } else { "" };
        let target = self.temp(node);
        let fused = match self.unrolled.dag.nodes[child.node].kind {
            Kind::Multiply => {
                let factors = &self.unrolled.dag.nodes[child.node].children;
                let (a, b) = (factors[0].node, factors[1].node);
                Some((self.value(a), self.value(b)))
            }
            _ => None,
        };
        let starts = self.taken[node] == 0;
        let fma = if data.element == Element::F32 {
            "fmaf"
        } else {
            "fma"
        };
        let ty = c_type(data.element);
        match (fused, starts, data.kind) {
            (Some((a, b)), true, _) => format!("{ty} {target} = {} * {b};", signed(sign, &a)),
            (Some((a, b)), false, _) => {
                format!("{target} = {fma}({}, {b}, {target});", signed(sign, &a))
            }
            (None, starts, kind) if data.element == Element::I32 => {
                let value = self.value(child.node);
                let op = match kind {
                    Kind::Product(_) => BinaryOp::Mul,
                    _ if child.negative => BinaryOp::Sub,
                    _ => BinaryOp::Add,
                };
                match (starts, child.negative) {
                    (true, false) => format!("{ty} {target} = {value};"),
                    (true, true) => {
                        format!("{ty} {target} = {};", op.text("0", &value, data.element))
                    }
                    (false, _) => format!("{target} = {};", op.text(&target, &value, data.element)),
                }
            }
            (None, true, _) => {
                let value = self.value(child.node);
                format!("{ty} {target} = {};", signed(sign, &value))
            }
            (None, false, Kind::Product(_)) => {
                format!("{target} *= {};", self.value(child.node))
            }
            (None, false, _) => {
                let operator = if child.negative { "-=" } else { "+=" };
                format!("{target} {operator} {};", self.value(child.node))
            }
        }
    }

    /// The value of a node is complete: convert and store it if it is a tree's.
    fn complete(&mut self, node: Node) {
        let dag = &self.unrolled.dag;
        let Some(target) = self.values.target(node) else {
            return;
        };
        let data = &dag.labels[target];
        let value = self.temp(node);
        let name = self.names.of(target, &data.name);
        if name != value {
            let ty = c_type(data.element);
            self.line(&format!("const {ty} {name} = ({ty}){value};"));
        }
        let unrolled = self.unrolled;
        for store in unrolled
            .stores
            .iter()
            .filter(|s| dag.trees[s.tree].target == target)
        {
            let array = &self.stencil.arrays[store.access.array].name;
            let offset = names::offset(self.stencil, &store.access, self.options.sizes.as_ref());
            let mut guard = self.guard(&store.point);
            if let Some(condition) = &self.conditions[node] {
                guard += &format!("if ({condition} != 0) ");
            }
            self.line(&format!("{guard}{array}_[{offset}] = {name};"));
        }
    }

    /// The condition under which a point of the box is the thread's own.
    fn guard(&self, point: &[u32]) -> String {
        let mut conditions = Vec::new();
        for (id, dim) in &self.stencil.dims {
            let at = id.as_u32() as usize;
            // The last point of the box always is.
            if point[at] + 1 < self.unrolled.factors[at] {
                let name = &dim.name;
                conditions.push(format!("{name}_own - {name} <= {}", point[at]));
            }
        }
        match conditions.is_empty() {
            true => String::new(),
            false => format!("if ({}) ", conditions.join(" && ")),
        }
    }
}

/// A leading minus, but never two.
fn signed(sign: &str, value: &str) -> String {
    match (sign, value.strip_prefix('-')) {
        ("-", Some(positive)) => positive.to_owned(),
        _ => format!("{sign}{value}"),
    }
}
