//! A launch description while it is made: numbers as amounts, and what of it is a guess.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use crate::code::{Amount, Root};
use warpwright_launch::{ElemType, Source};
use warpwright_target::Gpu;

use crate::layout::{Given, Layout, is_opaque};

/// A parameter of the sizes.
#[derive(Clone, Debug)]
pub struct Named {
    pub root: Rc<Root>,
    /// As the description calls it.
    pub name: String,
    pub small: i64,
    pub full: i64,
    /// Who says the number at the full size; stated is the named GPU's.
    pub source: Source,
    /// It is no part of the grid or of a shape.
    pub is_scalar: bool,
}

/// What a buffer holds first.
#[derive(Clone, Debug, PartialEq)]
pub enum Contents {
    /// Zeros, as somebody says.
    Zeros(Source),
    /// Floating-point numbers between -1 and 1.
    Uniform,
    /// Numbers below this one for narrow integers.
    Narrow(i64),
    /// Indices below an amount.
    Indices(Amount),
    /// Row pointers up to an amount.
    Sorted(Amount),
    /// This number, as somebody says.
    Fill(Amount, Source),
    /// Numbers below what the code says.
    Below(Amount),
}

/// A buffer or a module variable.
#[derive(Clone, Debug)]
pub struct Memory {
    pub name: String,
    pub layout: Layout,
    /// Its element's type as it is written.
    pub written: String,
    /// Elements; none where they are guessed anew for each trial.
    pub count: Option<Amount>,
    /// Of a table of pointers: how many there are, each to so many elements.
    pub rows: Option<Amount>,
    /// Who says that.
    pub source: Source,
    pub contents: Contents,
    pub is_output: bool,
    /// Of a module variable that is one structure: its members that are known.
    pub fields: Option<Vec<(String, Value)>>,
}

/// What a pointer points to.
#[derive(Clone, Debug)]
pub enum Made {
    /// Memory of its own.
    Memory(Box<Memory>),
    /// That of the buffer of this name.
    Alias(String),
}

/// A kernel parameter.
#[derive(Clone, Debug)]
pub enum Parameter {
    Buffer(Memory),
    Alias {
        name: String,
        of: String,
    },
    /// Its table but the value of a scalar, which may be an amount.
    Scalar {
        name: String,
        layout: Layout,
        values: Vec<(String, Value)>,
        /// Of a structure: its pointers, by the way to each.
        pointers: Vec<(String, Made)>,
    },
    /// A table that nothing is known of.
    Text(String),
    /// A null pointer.
    Null(String),
}

/// What a scalar, or a member of one, is.
#[derive(Clone, Debug)]
pub enum Value {
    /// An integer, and who says it as far as the names in it are known.
    Integer(Amount, Source),
    /// The code's floating-point number.
    Real(f64),
    /// The parts of a vector.
    Vector(Vec<Value>),
}

impl Value {
    /// The integers in it.
    fn amounts(&self) -> Vec<&Amount> {
        match self {
            Value::Integer(amount, _) => vec![amount],
            Value::Real(_) => Vec::new(),
            Value::Vector(parts) => parts.iter().flat_map(Value::amounts).collect(),
        }
    }
}

/// The description.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) kernel: String,
    pub(crate) names: Vec<Named>,
    pub(crate) grid: Vec<Amount>,
    pub(crate) grid_source: Source,
    pub(crate) block: Vec<u32>,
    pub(crate) block_source: Source,
    /// The block is that of the kernel's `__launch_bounds__`.
    pub(crate) is_bound: bool,
    /// Blocks per cluster, if it is launched in clusters, and who says that.
    pub(crate) cluster: Vec<Amount>,
    pub(crate) cluster_source: Source,
    pub(crate) dynamic_smem: Amount,
    pub(crate) smem_source: Source,
    /// The code computes the dynamic shared memory of what is not known.
    pub(crate) is_smem_computed: bool,
    /// What is traced was seen when the file's own program ran.
    pub(crate) has_run: bool,
    /// Where the launch stands, and where others of the kernel do.
    pub launched: Launched,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) symbols: Vec<Memory>,
    /// What a buffer has whose size is not known.
    pub(crate) guessed_count: Vec<Amount>,
    pub(crate) processors: Processors,
    /// Sizes with which the code's grid is that of the trace.
    pub(crate) traced: BTreeMap<Rc<Root>, i64>,
    /// These are what the program handed over, and not the roundest that fit.
    pub(crate) is_seen: bool,
    /// The kernel asks how many blocks there are, as loops do that go by the grid.
    pub(crate) strides: bool,
}

/// Where the code launches a kernel.
#[derive(Clone, Debug, Default)]
pub struct Launched {
    /// The line of the launch that is described, if it is one of several.
    pub own: Option<String>,
    /// Those of the others, the most likely first.
    pub others: Vec<String>,
    /// Is it known that the code comes to this one?
    pub is_sure: bool,
}

impl Launched {
    /// What is said of the others.
    pub fn said(&self) -> Option<String> {
        let own = self.own.as_deref().filter(|_| !self.others.is_empty())?;
        let others = self.others.join(", ");
        Some(match self.is_sure {
            true => format!("of its launches that at {own}, not those at {others}"),
            false => format!("which launch runs is a guess: that at {own}, not those at {others}"),
        })
    }
}

/// Who says what the code may say.
pub(crate) fn read(is_sure: bool) -> Source {
    if is_sure {
        Source::Host
    } else {
        Source::Guessed
    }
}

/// The mark of what is guessed.
fn mark(source: Source) -> &'static str {
    match source {
        Source::Guessed => "  # guess",
        _ => "",
    }
}

/// The multiprocessors of the GPU.
#[derive(Clone, Copy, Debug)]
pub struct Processors {
    pub number: i64,
    /// Somebody has said which GPU.
    pub is_named: bool,
}

impl Processors {
    /// Of a GPU, or of the typical one of its architecture, or else of the H100 and H200.
    pub fn of(gpu: &Gpu) -> Processors {
        let sms = gpu.typical_sms();
        Processors {
            number: sms.map_or(132, i64::from),
            is_named: gpu.board.is_some() && sms.is_some(),
        }
    }
}

/// What a number becomes in an integer type.
fn wrapped(number: i64, element: ElemType) -> i128 {
    let (low, high) = element.int_range();
    low + (i128::from(number) - low).rem_euclid(high - low + 1)
}

impl Draft {
    /// An amount with the names of the description.
    fn named(&self, amount: &Amount) -> String {
        let name = |root: &Root| {
            let found = self.names.iter().find(|named| *named.root == *root);
            found.map_or_else(|| root.name.clone(), |named| named.name.clone())
        };
        amount.text(&name)
    }

    /// The same as TOML.
    fn quoted(&self, amount: &Amount) -> String {
        match amount {
            Amount::Number(number) => number.to_string(),
            other => format!("\"{}\"", self.named(other)),
        }
    }

    /// An amount at one of the sizes.
    pub fn at(&self, amount: &Amount, is_small: bool) -> Option<i64> {
        amount.at(&|root| {
            let named = self.names.iter().find(|named| *named.root == *root)?;
            Some(if is_small { named.small } else { named.full })
        })
    }

    /// All buffers and symbols.
    pub fn memory(&self) -> impl Iterator<Item = &Memory> {
        let buffers = self.parameters.iter().flat_map(|p| match p {
            Parameter::Buffer(memory) => vec![memory],
            Parameter::Scalar { pointers, .. } => {
                let own = |(_, made): &'_ (String, Made)| matches!(made, Made::Memory(_));
                let own = pointers.iter().filter(|pointer| own(pointer));
                own.filter_map(|(_, made)| match made {
                    Made::Memory(memory) => Some(&**memory),
                    Made::Alias(_) => None,
                })
                .collect()
            }
            _ => Vec::new(),
        });
        buffers.chain(&self.symbols)
    }

    /// The buffers alone.
    pub fn buffers_mut(&mut self) -> impl Iterator<Item = &mut Memory> {
        self.parameters.iter_mut().flat_map(|p| match p {
            Parameter::Buffer(memory) => vec![memory],
            Parameter::Scalar { pointers, .. } => {
                let own = pointers.iter_mut().filter_map(|(_, made)| match made {
                    Made::Memory(memory) => Some(&mut **memory),
                    Made::Alias(_) => None,
                });
                own.collect()
            }
            _ => Vec::new(),
        })
    }

    /// All names that the description uses.
    pub fn used(&self) -> BTreeSet<Rc<Root>> {
        let (mut all, mut fixed) = (BTreeSet::new(), BTreeSet::new());
        let mut add = |amount: &Amount| amount.roots(&mut all, &mut fixed);
        self.grid.iter().for_each(&mut add);
        self.cluster.iter().for_each(&mut add);
        add(&self.dynamic_smem);
        for memory in self.memory() {
            match &memory.count {
                Some(count) => add(count),
                None => self.guessed_count.iter().for_each(&mut add),
            }
            memory.rows.iter().for_each(&mut add);
            if let Contents::Indices(a)
            | Contents::Sorted(a)
            | Contents::Fill(a, _)
            | Contents::Below(a) = &memory.contents
            {
                add(a);
            }
        }
        let members = self
            .symbols
            .iter()
            .flat_map(|symbol| symbol.fields.iter().flatten());
        let values = self
            .parameters
            .iter()
            .flat_map(|parameter| match parameter {
                Parameter::Scalar { values, .. } => &values[..],
                _ => &[],
            });
        for (_, value) in values.chain(members) {
            value.amounts().into_iter().for_each(&mut add);
        }
        all
    }

    /// As TOML, of the source at this path, which nvcc compiles with these options.
    pub fn text(&self, source: &str, nvcc: &[String]) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "source = {}", toml_text(source));
        if !nvcc.is_empty() {
            let all: Vec<String> = nvcc.iter().map(|option| toml_text(option)).collect();
            let _ = writeln!(text, "nvcc = [{}]", all.join(", "));
        }
        let _ = writeln!(text, "kernel = {}", toml_text(&self.kernel));
        for (size, is_small) in [("small", true), ("full", false)] {
            let _ = writeln!(text, "\n[sizes.{size}]");
            for named in &self.names {
                let (number, note) = match is_small {
                    true => (named.small, ""),
                    false if named.source == Source::Stated => (named.full, "  # the GPU's"),
                    false => (named.full, mark(named.source)),
                };
                let _ = writeln!(text, "{} = {number}{note}", named.name);
            }
        }
        let grid: Vec<String> = self.grid.iter().map(|a| self.quoted(a)).collect();
        let block: Vec<String> = self.block.iter().map(u32::to_string).collect();
        text += "\n[launch]\n";
        if let Some(said) = self.launched.said() {
            let _ = writeln!(text, "# {said}");
        }
        let _ = writeln!(
            text,
            "grid = [{}]{}",
            grid.join(", "),
            self.said(self.grid_source)
        );
        let note = match self.is_bound {
            true => "  # guess: the kernel's own bound",
            false => self.said(self.block_source),
        };
        let _ = writeln!(text, "block = [{}]{note}", block.join(", "));
        if !self.cluster.is_empty() {
            let cluster: Vec<String> = self.cluster.iter().map(|a| self.quoted(a)).collect();
            let cluster = cluster.join(", ");
            let note = self.said(self.cluster_source);
            let _ = writeln!(text, "cluster = [{cluster}]{note}");
        }
        let note = match self.smem_source {
            Source::Stated => "  # --dynamic-smem",
            Source::Guessed if self.is_smem_computed => "  # guess: the code's launch computes it",
            source => mark(source),
        };
        if self.dynamic_smem != Amount::Number(0) || !note.is_empty() {
            let bytes = self.quoted(&self.dynamic_smem);
            let _ = writeln!(text, "dynamic_smem = {bytes}{note}");
        }
        for parameter in &self.parameters {
            match parameter {
                Parameter::Text(table) => text += table,
                Parameter::Null(name) => {
                    let _ = write!(
                        text,
                        "\n[[args]]\nname = {name:?}\n# A null pointer.\ntype = \"u64\"\nvalue = 0\n"
                    );
                }
                Parameter::Alias { name, of } => {
                    let _ = write!(text, "\n[[args]]\nname = {name:?}\nalias = {of:?}\n");
                }
                Parameter::Scalar {
                    name,
                    layout,
                    values,
                    pointers,
                } => {
                    let _ = write!(text, "\n[[args]]\nname = {name:?}\n");
                    text += &self.scalar(layout, values, pointers);
                }
                Parameter::Buffer(memory) => {
                    text += "\n[[args]]\n";
                    text += &self.table(memory);
                }
            }
        }
        for symbol in &self.symbols {
            text += "\n[[symbols]]\n";
            match &symbol.fields {
                Some(values) => {
                    let _ = writeln!(text, "name = {:?}", symbol.name);
                    text += &self.scalar(&symbol.layout, values, &[]);
                }
                None => text += &self.table(symbol),
            }
        }
        text
    }

    /// Who says an extent of the launch, in words.
    fn said(&self, source: Source) -> &'static str {
        match source {
            Source::Stated => "  # --block",
            Source::Traced if self.has_run => "  # seen when its program ran",
            Source::Traced => "  # the trace",
            Source::Host => "  # the code's launch",
            source => mark(source),
        }
    }

    fn scalar(
        &self,
        layout: &Layout,
        values: &[(String, Value)],
        pointers: &[(String, Made)],
    ) -> String {
        let one = |value: &Value, element: ElemType| {
            let text = match (value, element.is_float()) {
                (Value::Integer(Amount::Number(n), _), true) => format!("{n}.0"),
                (Value::Real(number), true) if element == ElemType::F32 => {
                    format!("{:?}", *number as f32)
                }
                (Value::Real(number), true) => format!("{number:?}"),
                // As C converts it.
                (Value::Integer(Amount::Number(n), _), false) => wrapped(*n, element).to_string(),
                (Value::Integer(amount, _), _) => self.quoted(amount),
                (Value::Real(_), false) | (Value::Vector(_), _) => return None,
            };
            let is_sure = match value {
                Value::Integer(_, source) => *source != Source::Guessed,
                _ => true,
            };
            Some((text, is_sure))
        };
        let number = |member: &str, element: ElemType, count: usize| {
            let found = values.iter().find(|(name, _)| name == member);
            match (found.map(|(_, value)| value)?, count) {
                (Value::Vector(parts), count) if count > 1 && parts.len() == count => {
                    let parts = parts.iter().map(|part| one(part, element));
                    let parts: Vec<(String, bool)> = parts.collect::<Option<_>>()?;
                    let is_sure = parts.iter().all(|(_, is_sure)| *is_sure);
                    let texts: Vec<String> = parts.into_iter().map(|(text, _)| text).collect();
                    Some((format!("[{}]", texts.join(", ")), is_sure))
                }
                (value, 1) => one(value, element),
                _ => None,
            }
        };
        let pointer = |way: &str| match pointers.iter().find(|(own, _)| own == way) {
            Some((_, Made::Alias(of))) => (format!("alias = {of:?}"), false),
            Some((_, Made::Memory(memory))) => {
                let table = self.table(memory);
                let is_guess = table.contains(GUESS);
                let keys = table.lines().skip(1).filter(|line| !line.starts_with('#'));
                let keys: Vec<&str> = keys.map(|line| line.trim_end_matches(GUESS)).collect();
                (keys.join(", "), is_guess)
            }
            None => (String::new(), true),
        };
        let first = self.names.first().map(|named| named.name.as_str());
        let given = Given {
            number: &number,
            pointer: &pointer,
        };
        layout.value(&given, first)
    }

    /// The table of memory without its head.
    fn table(&self, memory: &Memory) -> String {
        let mut text = format!("name = {:?}\n", memory.name);
        let (count, note) = match &memory.count {
            Some(count) => (vec![count.clone()], memory.note),
            None => (self.guessed_count.clone(), GUESS),
        };
        let mut shape: Vec<String> = count.iter().map(|a| self.quoted(a)).collect();
        let uniform = memory.layout.uniform();
        let (element, width) = match uniform {
            Some(known) if !is_opaque(&memory.layout, &memory.written) => known,
            _ => {
                let _ = writeln!(
                    text,
                    "# The bytes of elements that are `{}`.",
                    memory.written
                );
                (ElemType::U8, memory.layout.size())
            }
        };
        if width > 1 {
            shape.push(width.to_string());
        }
        let (init, init_note) = match &memory.contents {
            Contents::Zeros { is_code: true } => ("\"zeros\"".to_owned(), ""),
            Contents::Zeros { .. } => ("\"zeros\"".to_owned(), GUESS),
            Contents::Uniform => (
                "{ kind = \"uniform\", low = -1.0, high = 1.0 }".to_owned(),
                GUESS,
            ),
            Contents::Narrow(bound) => {
                (format!("{{ kind = \"indices\", bound = {bound} }}"), GUESS)
            }
            Contents::Indices(bound) => {
                let bound = self.quoted(bound);
                (format!("{{ kind = \"indices\", bound = {bound} }}"), GUESS)
            }
            Contents::Sorted(high) => {
                let high = self.quoted(high);
                (
                    format!("{{ kind = \"sorted\", low = 0, high = {high} }}"),
                    GUESS,
                )
            }
            Contents::Below(bound) => {
                let bound = self.quoted(bound);
                (format!("{{ kind = \"indices\", bound = {bound} }}"), "")
            }
            Contents::Fill(value, is_sure) => {
                let number = self.quoted(value);
                let note = if *is_sure { "" } else { GUESS };
                (format!("{{ kind = \"fill\", value = {number} }}"), note)
            }
        };
        if let Some(rows) = &memory.rows {
            let output = if memory.is_output {
                ", output = true"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "shape = [{}]{note}\neach = {{ type = \"{}\", shape = [{}], init = {init}{output} }}{}",
                self.quoted(rows),
                element.name(),
                shape.join(", "),
                if note.is_empty() { init_note } else { note },
            );
            return text;
        }
        let _ = writeln!(
            text,
            "type = \"{}\"\nshape = [{}]{note}\ninit = {init}{init_note}",
            element.name(),
            shape.join(", ")
        );
        if memory.is_output {
            text += "output = true\n";
        }
        text
    }
}

/// A text as TOML has it.
fn toml_text(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}
