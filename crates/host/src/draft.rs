//! A launch description while it is made: numbers as amounts, and what of it is a guess.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use crate::amount::{Amount, Root, roots_of};
use warpwright_launch::{
    ArgTable, ElemType, Expr, InitTable, LaunchError, LaunchFile, OneOrMany, Source, mark,
};

use crate::layout::{Layout, Opaque, is_opaque};

/// A parameter of the sizes.
#[derive(Clone, Debug)]
pub struct Named {
    pub root: Rc<Root>,
    /// As the description calls it.
    pub name: String,
    pub small: i64,
    pub full: i64,
    /// Who says the number at the full size.
    pub source: Source,
    /// It is no part of the grid or of a shape.
    pub is_scalar: bool,
}

/// What a buffer holds first.
#[derive(Clone, Debug, PartialEq)]
pub enum Contents {
    Zeros,
    /// This in each byte.
    Filled(u8),
    /// Floating-point numbers between -1 and 1.
    Uniform,
    /// Numbers below this one for narrow integers.
    Narrow(i64),
    /// Indices below an amount.
    Indices(Amount),
    /// Row pointers up to an amount.
    Sorted(Amount),
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
    /// A value that is not understood, and its bytes, if they are known.
    Bytes(Opaque, Option<Vec<u8>>),
    /// A null pointer.
    Null(String),
}

/// What a scalar, or a member of one, is.
#[derive(Clone, Debug)]
pub enum Value {
    /// An integer, and who says it as far as the names in it are known.
    Integer(Amount, Source),
    /// A floating-point number, and who says it.
    Real(f64, Source),
    /// The parts of a vector.
    Vector(Vec<Value>),
}

/// What is known, by the ways to it.
type Ways<'w, T> = &'w [(String, T)];

impl Value {
    /// The integers in it.
    fn amounts(&self) -> Vec<&Amount> {
        match self {
            Value::Integer(amount, _) => vec![amount],
            Value::Real(..) => Vec::new(),
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
    /// Blocks per cluster, if it was seen to be launched in clusters.
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) dynamic_smem: Amount,
    pub(crate) smem_source: Source,
    /// Who says the numbers of sizes that are known.
    pub(crate) sizes_source: Source,
    /// What is traced was seen when the file's own program ran.
    pub(crate) has_run: bool,
    /// The code has several launches.
    pub(crate) differ: bool,
    /// The arguments with which its program was seen to launch it, where nobody stated them.
    pub(crate) tried: Option<String>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) symbols: Vec<Memory>,
    /// What a buffer has whose size is not known.
    pub(crate) guessed_count: Vec<Amount>,
    /// Sizes of which nobody knows but that the grid was so.
    pub(crate) solved: BTreeMap<Rc<Root>, i64>,
    /// The kernel asks how many blocks there are, as loops do that go by the grid.
    pub(crate) strides: bool,
}

/// What a number becomes in an integer type.
fn wrapped(number: i64, element: ElemType) -> i128 {
    let (low, high) = element.int_range();
    low + (i128::from(number) - low).rem_euclid(high - low + 1)
}

impl Draft {
    /// What is said of which launch it is.
    pub fn said(&self) -> Option<String> {
        let several = "the code launches it in several places: what these agree on is known";
        let tried = self.tried.as_ref();
        let tried = tried.map(|args| format!("its program launches it with `{args}`"));
        tried.or(self.differ.then(|| several.to_owned()))
    }

    /// An amount with the names of the description.
    fn expr(&self, amount: &Amount) -> Expr {
        amount.expr(&|root: &Root| {
            let found = self.names.iter().find(|named| *named.root == *root);
            found.map_or_else(|| root.name.clone(), |named| named.name.clone())
        })
    }

    /// The same as a value of a description.
    fn quoted(&self, amount: &Amount) -> String {
        self.expr(amount).quoted()
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

    /// The names that the grid goes by.
    pub fn of_grid(&self) -> Vec<&Named> {
        let all = roots_of(&self.grid);
        let named = self.names.iter();
        named.filter(|named| all.contains(&named.root)).collect()
    }

    /// All names that the description uses.
    pub fn used(&self) -> BTreeSet<Rc<Root>> {
        let mut all = BTreeSet::new();
        let mut add = |amount: &Amount| amount.roots(&mut all);
        self.grid.iter().for_each(&mut add);
        add(&self.dynamic_smem);
        for memory in self.memory() {
            match &memory.count {
                Some(count) => add(count),
                None => self.guessed_count.iter().for_each(&mut add),
            }
            memory.rows.iter().for_each(&mut add);
            if let Contents::Indices(a) | Contents::Sorted(a) = &memory.contents {
                add(a);
            }
        }
        let values = self
            .parameters
            .iter()
            .flat_map(|parameter| match parameter {
                Parameter::Scalar { values, .. } => &values[..],
                _ => &[],
            });
        for (_, value) in values {
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
                    false => (named.full, mark(named.source)),
                };
                let _ = writeln!(text, "{} = {number}{note}", named.name);
            }
        }
        let grid: Vec<String> = self.grid.iter().map(|a| self.quoted(a)).collect();
        let block: Vec<String> = self.block.iter().map(u32::to_string).collect();
        text += "\n[launch]\n";
        if let Some(said) = self.said() {
            let _ = writeln!(text, "# {said}");
        }
        let _ = writeln!(
            text,
            "grid = [{}]{}",
            grid.join(", "),
            self.by(self.grid_source)
        );
        let note = match self.is_bound {
            true => "  # guess: the kernel's own bound",
            false => self.by(self.block_source),
        };
        let _ = writeln!(text, "block = [{}]{note}", block.join(", "));
        if let Some(cluster) = self.cluster {
            let _ = writeln!(text, "cluster = {cluster:?}{}", self.by(Source::Traced));
        }
        let note = match self.smem_source {
            Source::Stated => "  # --dynamic-smem",
            source => mark(source),
        };
        if self.dynamic_smem != Amount::Number(0) || !note.is_empty() {
            let bytes = self.quoted(&self.dynamic_smem);
            let _ = writeln!(text, "dynamic_smem = {bytes}{note}");
        }
        let [args, symbols] = self.tables();
        for (head, tables) in [("args", args), ("symbols", symbols)] {
            for table in tables {
                let _ = write!(text, "\n[[{head}]]\n{}", table.text());
            }
        }
        text
    }

    /// Who says an extent of the launch, in words.
    fn by(&self, source: Source) -> &'static str {
        match source {
            Source::Stated => "  # --block",
            Source::Traced if self.has_run => "  # seen when its program ran",
            Source::Traced => "  # the trace",
            Source::Host => "  # the code's launch",
            source => mark(source),
        }
    }

    /// As the description that it is.
    pub(crate) fn file(&self) -> Result<LaunchFile, LaunchError> {
        let size = |is_small: bool| {
            let number = |named: &Named| if is_small { named.small } else { named.full };
            let names = self.names.iter();
            names
                .map(|named| (named.name.clone(), number(named)))
                .collect()
        };
        let all = |amounts: &[Amount]| amounts.iter().map(|a| self.expr(a)).collect();
        let [args, symbols] = self.tables();
        LaunchFile::made(warpwright_launch::Made {
            kernel: self.kernel.clone(),
            sizes: vec![("small".into(), size(true)), ("full".into(), size(false))],
            grid: all(&self.grid),
            block: self.block.iter().map(|n| Expr::int((*n).into())).collect(),
            cluster: self.cluster.map_or_else(Vec::new, |all| {
                all.iter().map(|n| Expr::int((*n).into())).collect()
            }),
            dynamic_smem: self.expr(&self.dynamic_smem),
            args,
            symbols,
        })
    }

    /// The tables of the parameters, and of the module variables.
    fn tables(&self) -> [Vec<ArgTable>; 2] {
        let symbol = |symbol: &Memory| self.memory_table(&symbol.name, symbol);
        let args = self.parameters.iter().map(|own| self.parameter(own));
        [args.collect(), self.symbols.iter().map(symbol).collect()]
    }

    fn parameter(&self, parameter: &Parameter) -> ArgTable {
        match parameter {
            Parameter::Bytes(value, bytes) => opaque(value, bytes.as_deref()),
            Parameter::Null(name) => ArgTable::value(
                name,
                ElemType::U64,
                OneOrMany::One(Expr::int(0)),
                Source::Host,
            )
            .remarked("A null pointer.".to_owned()),
            Parameter::Alias { name, of } => ArgTable::alias(name, of),
            Parameter::Scalar {
                name,
                layout,
                values,
                pointers,
            } => self.value(name, "", layout, (values, pointers)),
            Parameter::Buffer(memory) => self.memory_table(&memory.name, memory),
        }
    }

    /// A value, or the member that is reached by a way, of what is known of values and pointers by the ways to them.
    fn value(
        &self,
        name: &str,
        way: &str,
        layout: &Layout,
        (values, pointers): (Ways<'_, Value>, Ways<'_, Made>),
    ) -> ArgTable {
        match layout {
            Layout::Elements(element, count, align) => {
                let known = values.iter().find(|(own, _)| own == way);
                let known = known.and_then(|(_, value)| elements(self, value, *element, *count));
                let (all, source) = known.unwrap_or_else(|| {
                    let one = self.unknown(*element);
                    (vec![one; *count], Source::Guessed)
                });
                let value = match &all[..] {
                    [one] if *count == 1 => OneOrMany::One(one.clone()),
                    _ => all.into(),
                };
                let table = ArgTable::value(name, *element, value, source);
                match *align > element.size() {
                    true => table.aligned(*align),
                    false => table,
                }
            }
            Layout::Pointer(_) => match pointers.iter().find(|(own, _)| own == way) {
                Some((_, Made::Memory(memory))) => self.memory_table(name, memory),
                Some((_, Made::Alias(of))) => ArgTable::alias(name, of),
                None => ArgTable::value(
                    name,
                    ElemType::U64,
                    OneOrMany::One(Expr::int(0)),
                    Source::Guessed,
                ),
            },
            Layout::Structure(all) => {
                let member = |(own, member): &(String, Layout)| {
                    let way = match way {
                        "" => own.clone(),
                        way => format!("{way}.{own}"),
                    };
                    self.value(own, &way, member, (values, pointers))
                };
                ArgTable::structure(name, all.iter().map(member).collect())
            }
        }
    }

    /// What an element is guessed to be: sizes do not fit the narrowest numbers.
    fn unknown(&self, element: ElemType) -> Expr {
        match (element.is_float(), element.size() < 4, self.names.first()) {
            (true, _, _) => Expr::float(1.0),
            (false, false, Some(first)) => Expr::name(&*first.name),
            _ => Expr::int(1),
        }
    }

    /// A number in a type.
    fn number(&self, value: &Value, element: ElemType) -> Option<(Expr, Source)> {
        Some(match (value, element.is_float()) {
            (Value::Integer(Amount::Number(n), source), true) => (Expr::float(*n as f64), *source),
            (Value::Real(number, source), true) => {
                let text = match element {
                    ElemType::F32 => format!("{:?}", *number as f32),
                    _ => return Some((Expr::float(*number), *source)),
                };
                (Expr::float(text.parse().ok()?), *source)
            }
            // As C converts it.
            (Value::Integer(Amount::Number(n), source), false) => {
                (Expr::int(wrapped(*n, element)), *source)
            }
            (Value::Integer(amount, source), _) => (self.expr(amount), *source),
            (Value::Real(..), false) | (Value::Vector(_), _) => return None,
        })
    }

    fn memory_table(&self, name: &str, memory: &Memory) -> ArgTable {
        let (count, source) = match &memory.count {
            Some(count) => (std::slice::from_ref(count), memory.source),
            None => (&self.guessed_count[..], Source::Guessed),
        };
        let mut shape: Vec<Expr> = count.iter().map(|a| self.expr(a)).collect();
        let known = memory.layout.uniform();
        let known = known.filter(|_| !is_opaque(&memory.layout, &memory.written));
        let (element, width) = known.unwrap_or((ElemType::U8, memory.layout.size()));
        if width > 1 {
            shape.push(Expr::int(width as i128));
        }
        let filled = self.filled(&memory.contents, element);
        let mut table = ArgTable::buffer(name, element, (shape, source), filled, memory.is_output);
        if known.is_none() {
            let remark = format!("The bytes of elements that are `{}`.", memory.written);
            table = table.remarked(remark);
        }
        match &memory.rows {
            Some(rows) => table.repeated(self.expr(rows)),
            None => table,
        }
    }

    /// What memory begins with, and who says so.
    fn filled(&self, contents: &Contents, element: ElemType) -> (InitTable, Source) {
        let indices = |bound: Expr| InitTable::of("indices", [("bound", bound)]);
        match contents {
            Contents::Zeros => (InitTable::of("zeros", []), Source::Guessed),
            Contents::Filled(byte) => {
                let value = filled(element, *byte).filter(|_| *byte != 0);
                let fill = |value| InitTable::of("fill", [("value", value)]);
                let table = value.map_or_else(|| InitTable::of("zeros", []), fill);
                (table, Source::Traced)
            }
            Contents::Uniform => {
                let ends = [("low", Expr::float(-1.0)), ("high", Expr::float(1.0))];
                (InitTable::of("uniform", ends), Source::Guessed)
            }
            Contents::Narrow(bound) => (indices(Expr::int((*bound).into())), Source::Guessed),
            Contents::Indices(bound) => (indices(self.expr(bound)), Source::Guessed),
            Contents::Sorted(high) => {
                let ends = [("low", Expr::int(0)), ("high", self.expr(high))];
                (InitTable::of("sorted", ends), Source::Guessed)
            }
        }
    }
}

/// The number that an element is whose bytes are all this one; none if it is infinite or no number.
pub(crate) fn filled(element: ElemType, byte: u8) -> Option<Expr> {
    let bits = element.read(&vec![byte; element.size()]);
    if element.is_float() {
        let number = Some(element.to_f64(bits)).filter(|number| number.is_finite());
        return number.map(Expr::float);
    }
    let (low, high) = element.int_range();
    let bits = i128::from(bits);
    Some(Expr::int(if bits > high {
        bits - high + low - 1
    } else {
        bits
    }))
}

/// The numbers of a vector, or the one number, in a type.
fn elements(
    draft: &Draft,
    value: &Value,
    element: ElemType,
    count: usize,
) -> Option<(Vec<Expr>, Source)> {
    let parts = match (value, count) {
        (Value::Vector(parts), count) if count > 1 && parts.len() == count => &parts[..],
        (value, 1) => std::slice::from_ref(value),
        _ => return None,
    };
    let all = parts.iter().map(|part| draft.number(part, element));
    let (all, sources): (Vec<Expr>, Vec<Source>) =
        all.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    Some((all, sources.into_iter().max()?))
}

/// A value that is not understood: its bytes, or guessed zeros.
fn opaque(value: &Opaque, bytes: Option<&[u8]>) -> ArgTable {
    let Opaque {
        name,
        written,
        size,
        align,
    } = value;
    let element = match align {
        1 => ElemType::U8,
        2 => ElemType::U16,
        4 => ElemType::U32,
        _ => ElemType::U64,
    };
    let (numbers, source) = match bytes {
        Some(bytes) => {
            let all = bytes.chunks(element.size());
            let all = all.map(|bytes| Expr::int(element.read(bytes).into()));
            (all.collect(), Source::Traced)
        }
        None => (vec![Expr::int(0); size / element.size()], Source::Guessed),
    };
    let table = ArgTable::value(name, element, OneOrMany::from(numbers), source).remarked(format!(
        "The {size} bytes of a `{written}`, which is not understood."
    ));
    match *align > element.size() {
        true => table.aligned(*align),
        false => table,
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
