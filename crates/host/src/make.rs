//! A draft of a launch description: from what was seen of the launch, else from what the code says of it for certain, else
//! from what the kernel compares.

use std::collections::BTreeMap;
use std::rc::Rc;

use warpwright_cudac::File;
use warpwright_cudac::ast::{Function, Type};
use warpwright_launch::{ElemType, Op, Source};
use warpwright_pass::names::{base_name, template_arguments};
use warpwright_pass::ptx::facts::{used_variables, uses_dynamic_shared};
use warpwright_ptx::{Module, Space};
use warpwright_target::Gpu;

use crate::Stated;
use crate::amount::{Amount, Root, roots_of};
use crate::code::{Extents, Handed, HostCode, numbers};
use crate::draft::{Contents, Draft, Made, Memory, Parameter, Value, filled};
use crate::error::Error;
use crate::guards::{Guard, Guards, guards};
use crate::kernel::{element, own_bound, parameter_types};
use crate::layout::{self, Known, Layout, Pointed, Sort};
use crate::own::agreed;
use crate::seen::{self, Argument, Seen};

/// What a description is made of.
pub struct Ground<'a> {
    pub file: &'a File,
    /// The host code: the text behind those of the user's headers.
    pub host: &'a str,
    pub module: &'a Module,
    pub symbol: &'a str,
    pub function: &'a Function,
    pub nvcc: &'a [String],
    pub gpu: &'a Gpu,
    pub stated: &'a Stated<'a>,
    /// That launch, if its program ran without a GPU.
    pub seen: Option<Seen<'a>>,
}

/// Threads of a block that nobody knows, by its dimensions.
const BLOCKS: [&[u32]; 3] = [&[256], &[16, 16], &[8, 8, 8]];

/// Pointers of a table of which nobody knows how many it has.
const ROWS: i64 = 64;

/// No size that a grid is made of is larger.
const LARGEST_SIZE: i64 = i32::MAX as i64;

/// Dynamic shared memory that every GPU gives to a block that does not ask for more than usual.
const MOST_SMEM: u32 = 32 << 10;

/// What is known of a launch.
#[derive(Default)]
struct Own {
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
    dynamic_smem: Option<u32>,
    /// Who says all that.
    source: Source,
    /// Sizes that it hands over.
    sizes: Vec<(Amount, i64)>,
    arguments: Vec<Argument>,
    /// The code has several launches that differ.
    differ: bool,
}

/// Extents without ones at the end.
fn trimmed<T>(mut all: Vec<T>, is_one: impl Fn(&T) -> bool) -> Vec<T> {
    while all.len() > 1 && all.last().is_some_and(&is_one) {
        all.pop();
    }
    all
}

/// An integer parameter that may be a size; none of narrow ones.
fn is_size(sort: &Sort) -> bool {
    match sort {
        Sort::Scalar(Layout::Elements(element, 1, _)) => !element.is_float() && element.size() >= 4,
        _ => false,
    }
}

impl Ground<'_> {
    fn kernel(&self) -> &str {
        &self.function.name.text
    }

    /// Does the kernel read a register?
    fn reads(&self, register: &str) -> bool {
        let compiled = self.module.function(self.symbol);
        let compiled = compiled.map(|id| self.module.text(self.module.functions[id].span));
        compiled.is_some_and(|text| text.contains(register))
    }

    /// The dimensions in which the kernel reads some of the registers that say a place.
    fn places(&self, registers: &[&str]) -> usize {
        let reads = |axis: &str| registers.iter().any(|r| self.reads(&format!("{r}{axis}")));
        match (reads("y"), reads("z")) {
            (_, true) => 3,
            (true, false) => 2,
            _ => 1,
        }
    }

    fn sorts(&self) -> Result<Vec<(String, Sort)>, Error> {
        let types = parameter_types(self.symbol);
        let compiled = self
            .module
            .function(self.symbol)
            .map(|id| &self.module.functions[id]);
        let all = self.function.parameters.iter().enumerate();
        all.map(|(at, parameter)| {
            let compiled = compiled.and_then(|f| f.params.get(at));
            let variable = compiled.map(|param| &self.module.variables[param.var]);
            let known = Known {
                instance: types.get(at).map(|ty| element(ty)),
                bytes: variable.map(|v| (v.bytes() as usize, v.alignment() as usize)),
            };
            let sort = layout::sort(parameter, self.file, &known)?;
            Ok((parameter.name.text.clone(), sort))
        })
        .collect()
    }

    /// What was seen of the launch, else what the code says.
    fn own(&self, code: &HostCode<'_>, sorts: &[(String, Sort)]) -> Own {
        let Some((grid, block, smem)) = self.stated.traced else {
            return self.read(code, sorts);
        };
        let seen = self.seen.as_ref();
        let sizes = seen.map_or_else(Vec::new, |seen| seen.sizes(sorts));
        Own {
            grid: Some(grid),
            block: Some(block),
            dynamic_smem: Some(smem),
            source: Source::Traced,
            arguments: seen.map_or_else(Vec::new, |seen| seen.arguments(sorts, &sizes)),
            sizes,
            differ: false,
        }
    }

    /// What the code says for certain.
    fn read(&self, code: &HostCode<'_>, sorts: &[(String, Sort)]) -> Own {
        let launches = code.launches(self.kernel(), &template_arguments(self.symbol));
        let all = |extents: &Extents| {
            let all = numbers(extents)?;
            Some([0, 1, 2].map(|at| all.get(at).copied().unwrap_or(1)))
        };
        // Of several kernels of a name nobody says here which is launched.
        let mut others = self.module.kernels().map(|(_, f)| &*f.name);
        let is_alone = launches.len() == 1
            && !others.any(|o| o != self.symbol && base_name(o) == base_name(self.symbol));
        let handed = launches.first().filter(|_| is_alone);
        let handed = handed.and_then(|own| own.arguments.as_ref());
        let handed: &[Handed] = handed
            .filter(|all| all.len() <= sorts.len())
            .map_or(&[], |all| all);
        let integers = sorts
            .iter()
            .zip(handed)
            .filter(|((_, sort), _)| is_size(sort));
        let integers = integers.filter_map(|((name, _), own)| Some((name.clone(), own.number?)));
        let sizes = seen::sizes(integers);
        let argument = |own: &Handed| Argument {
            integer: own.number.map(|number| seen::named(&sizes, number)),
            is_null: is_null(&own.text),
            ..Argument::default()
        };
        Own {
            grid: agreed(launches.iter().map(|own| all(&own.grid))),
            block: agreed(launches.iter().map(|own| all(&own.block))),
            dynamic_smem: agreed(launches.iter().map(|own| own.dynamic_smem)),
            source: Source::Host,
            arguments: handed.iter().map(argument).collect(),
            sizes,
            differ: launches.len() > 1,
        }
    }

    /// The draft, with names that have no numbers yet; `usual` is the block where nobody knows one.
    pub fn draft(&self, usual: Option<&[u32]>) -> Result<Draft, Error> {
        let sorts = self.sorts()?;
        let code = HostCode::new(self.host, self.nvcc).on(self.gpu);
        let own = self.own(&code, &sorts);
        let (block, block_source, is_bound) = self.block(&own, usual);
        let mut draft = Draft {
            kernel: self.symbol.to_owned(),
            names: Vec::new(),
            grid: Vec::new(),
            grid_source: match (own.grid, self.stated.block) {
                (Some(_), None) => own.source,
                _ => Source::Guessed,
            },
            sizes_source: own.source,
            block_source,
            is_bound,
            cluster: self.seen.as_ref().and_then(Seen::cluster),
            dynamic_smem: Amount::Number(0),
            smem_source: Source::Guessed,
            has_run: self.seen.is_some(),
            differ: own.differ,
            tried: self.stated.tried.map(str::to_owned),
            parameters: Vec::new(),
            symbols: Vec::new(),
            guessed_count: Vec::new(),
            solved: BTreeMap::new(),
            strides: self.reads("%nctaid."),
            block,
        };
        let integers = integers(&sorts, &own.arguments);
        self.grid(&mut draft, &own, &integers);
        self.dynamic_smem(&mut draft, &own);
        self.parameters(&mut draft, sorts, (&own.arguments, &integers))?;
        self.symbols(&code, &mut draft);
        self.guess_counts(&mut draft, 0);
        let is_open = |parameter: &Parameter| match parameter {
            Parameter::Scalar { values, layout, .. } => values.is_empty() && !layout.is_float(""),
            _ => false,
        };
        if draft.used().is_empty() && draft.parameters.iter().any(is_open) {
            draft.guessed_count = vec![Root::amount("n", None)];
        }
        Ok(draft)
    }

    /// The block, who says it, and whether it is the kernel's own bound.
    fn block(&self, own: &Own, usual: Option<&[u32]>) -> (Vec<u32>, Source, bool) {
        let known = self.stated.block.map(|block| (block, Source::Stated));
        if let Some((block, source)) = known.or(own.block.map(|block| (block, own.source))) {
            return (trimmed(block.to_vec(), |n| *n == 1), source, false);
        }
        if let Some(bound) = own_bound(self.file, self.kernel()) {
            return (bound, Source::Guessed, true);
        }
        let dimensions = self.places(&["%tid.", "%ntid."]);
        let usual = usual.unwrap_or(BLOCKS[dimensions - 1]);
        (usual.to_vec(), Source::Guessed, false)
    }

    /// The grid, as far as it is made of sizes.
    fn grid(&self, draft: &mut Draft, own: &Own, integers: &[Option<Amount>]) {
        let dimensions = self.places(&["%tid.", "%ctaid.", "%ntid.", "%nctaid."]);
        let dimensions = dimensions.max(draft.block.len());
        let guards = self.guessed_grid(integers, own.grid.is_none());
        let threads: Vec<u32> = (0..3)
            .map(|at| draft.block.get(at).copied().unwrap_or(1))
            .collect();
        let of_guard = |at: usize| guards[at].as_ref().map(|g| g.blocks(threads[at].into()));
        let Some(grid) = own.grid else {
            let n = || {
                let threads = Amount::Number(threads[0].into());
                Amount::binary(Op::CeilDiv, Root::amount("n", None), threads)
            };
            draft.grid = (0..dimensions)
                .map(|at| of_guard(at).unwrap_or_else(n))
                .collect();
            return;
        };
        let mut extents = Vec::new();
        for (at, extent) in grid.into_iter().enumerate() {
            let by_sizes = seen::blocks(&own.sizes, extent, threads[at]);
            let solved = || of_guard(at).filter(|guard| solve(guard, extent, &mut draft.solved));
            let known = by_sizes.or_else(solved);
            extents.push(known.unwrap_or(Amount::Number(extent.into())));
        }
        draft.grid = trimmed(extents, |extent| *extent == Amount::Number(1));
    }

    fn dynamic_smem(&self, draft: &mut Draft, own: &Own) {
        let id = self.module.function(self.symbol);
        let compiled = id.map(|id| &self.module.functions[id]);
        let uses_more = || compiled.is_some_and(|f| uses_dynamic_shared(self.module, f));
        let (bytes, source) = match (self.stated.dynamic_smem, own.dynamic_smem) {
            (Some(stated), _) => (stated, Source::Stated),
            (None, Some(bytes)) => (bytes, own.source),
            (None, None) if uses_more() => (MOST_SMEM, Source::Guessed),
            (None, None) => (0, Source::Guessed),
        };
        draft.dynamic_smem = Amount::Number(bytes.into());
        draft.smem_source = source;
    }

    fn parameters(
        &self,
        draft: &mut Draft,
        sorts: Vec<(String, Sort)>,
        (arguments, integers): (&[Argument], &[Option<Amount>]),
    ) -> Result<(), Error> {
        let none = Argument::default();
        let mut named = Named::new();
        for (at, (name, sort)) in sorts.into_iter().enumerate() {
            let argument = arguments.get(at).unwrap_or(&none);
            let parameter = match sort {
                Sort::Bytes(value) => {
                    let seen = self.seen.as_ref().map(|seen| seen.opaque(at, &value));
                    let seen = seen.transpose()?.map(<[u8]>::to_vec);
                    Parameter::Bytes(value, seen)
                }
                Sort::Memory(_) | Sort::Table(_) if argument.is_null => Parameter::Null(name),
                Sort::Scalar(layout) => {
                    let integer = integers.get(at).cloned().flatten();
                    let values = self.values(at, &layout, (argument, integer));
                    let mut pointers = Vec::new();
                    for (way, to) in layout.pointers() {
                        let own = argument.members.iter().find(|(name, _)| *name == way);
                        let own = own.map_or(&none, |(_, own)| own);
                        let memory = format!("{name}.{way}");
                        let found = match named.met(draft, &mut pointers, to, own) {
                            Some(of) => Made::Alias(of),
                            None => Made::Memory(Box::new(named.memory(memory, to, own))),
                        };
                        pointers.push((way, found));
                    }
                    Parameter::Scalar {
                        name,
                        layout,
                        values,
                        pointers,
                    }
                }
                Sort::Table(to) => {
                    let rows = argument.memory.as_ref().map(|memory| memory.count.clone());
                    let rows = rows.filter(|n| n.number().is_none_or(|n| n > 0));
                    Parameter::Buffer(Memory {
                        name,
                        contents: contents(&to.layout),
                        layout: to.layout,
                        written: to.written,
                        count: None,
                        rows: Some(rows.unwrap_or(Amount::Number(ROWS))),
                        source: Source::Guessed,
                        is_output: to.is_output,
                    })
                }
                Sort::Memory(to) => match named.met(draft, &mut [], &to, argument) {
                    Some(of) => Parameter::Alias { name, of },
                    None => Parameter::Buffer(named.memory(name, &to, argument)),
                },
            };
            draft.parameters.push(parameter);
        }
        Ok(())
    }

    /// The numbers of a scalar, or of a structure's members.
    fn values(
        &self,
        at: usize,
        layout: &Layout,
        (argument, integer): (&Argument, Option<Amount>),
    ) -> Vec<(String, Value)> {
        let own = self.function.parameters.get(at).map(|own| own.ty.bare());
        let is_bool = own.is_some_and(|ty| *ty == Type::Named("bool".into()));
        let source = match self.seen {
            Some(_) => Source::Traced,
            None => Source::Host,
        };
        let one = |argument: &Argument, is_float: bool| match (&argument.integer, argument.real) {
            (_, Some(real)) if is_float => Some(Value::Real(real, source)),
            (Some(Amount::Number(n)), _) if is_bool => {
                Some(Value::Integer(Amount::Number((*n != 0).into()), source))
            }
            (Some(integer), _) => Some(Value::Integer(integer.clone(), source)),
            _ => None,
        };
        let value = |argument: &Argument, is_float: bool| match argument.parts.is_empty() {
            true => one(argument, is_float),
            false => {
                let parts = argument.parts.iter().map(|part| one(part, is_float));
                Some(Value::Vector(parts.collect::<Option<_>>()?))
            }
        };
        if let Layout::Structure(_) = layout {
            let (own, pointers) = (layout.members(), layout.pointers());
            let is_number =
                |name: &String| own.contains(name) && !pointers.iter().any(|(own, _)| own == name);
            let members = argument.members.iter().filter(|(name, _)| is_number(name));
            return members
                .filter_map(|(name, own)| Some((name.clone(), value(own, layout.is_float(name))?)))
                .collect();
        }
        let guess = |amount| match is_bool {
            true => Value::Integer(Amount::Number(1), Source::Guessed),
            false => Value::Integer(amount, Source::Guessed),
        };
        let found = value(argument, layout.is_float(""));
        let found = found.or_else(|| integer.map(guess));
        found
            .map(|value| (String::new(), value))
            .into_iter()
            .collect()
    }

    /// What the kernel says of its grid: it compares places with sizes, or has a block for each of what the first of the
    /// other integers counts, where nobody knows the grid.
    fn guessed_grid(&self, integers: &[Option<Amount>], is_open: bool) -> [Option<Guard>; 3] {
        let id = self.module.function(self.symbol);
        let own = |at: usize| integers.get(at).cloned().flatten();
        let read = |id| guards((self.module, &self.module.functions[id]), &own);
        let Guards {
            mut of,
            has_places,
            inside,
        } = id.map(read).unwrap_or_default();
        let taken = roots_of(of.iter().flatten().map(Guard::size).chain(&inside));
        let is_free = |one: &&Amount| matches!(one, Amount::Root(root) if !taken.contains(root));
        let mut free = integers.iter().flatten().filter(is_free);
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            let is_of_blocks = self.reads(&format!("%ctaid.{name}")) && !has_places[axis];
            if of[axis].is_none() && is_of_blocks && is_open {
                let blocks = free.next().cloned();
                let blocks = blocks.unwrap_or_else(|| Root::amount("blocks", None));
                of[axis] = Some(Guard::Blocks(blocks));
            }
        }
        of
    }

    /// Module variables that the kernel uses and that nothing initialises.
    fn symbols(&self, code: &HostCode<'_>, draft: &mut Draft) {
        let Some(id) = self.module.function(self.symbol) else {
            return;
        };
        for id in used_variables(self.module, &self.module.functions[id]) {
            let variable = &self.module.variables[id];
            let is_constant = variable.space == Space::Const;
            let is_wanted = (is_constant || variable.space == Space::Global)
                && variable.init.is_none()
                && variable.owner.is_none()
                && variable.bytes() > 0;
            let name = variable.name.to_string();
            if !is_wanted || name.starts_with('$') {
                continue;
            }
            let written = code.variable_type(&base_name(&name));
            let bytes = variable.bytes() as usize;
            let meaning = self.file.type_named(&written);
            let layout = layout::layout(&[&written, &meaning], self.file, layout::DEEPEST);
            let layout = layout.ok().filter(|l| bytes.is_multiple_of(l.size()));
            let layout = layout.unwrap_or(Layout::Elements(ElemType::U8, 1, 1));
            let is_float = matches!(layout.uniform(), Some((e, _)) if e.is_float());
            draft.symbols.push(Memory {
                name,
                written,
                count: Some(Amount::Number((bytes / layout.size()) as i64)),
                source: Source::Host,
                // What the host sets it to is not known; what it does not set is zero.
                contents: match is_constant && is_float {
                    true => Contents::Uniform,
                    false => Contents::Zeros,
                },
                rows: None,
                layout,
                is_output: !is_constant,
            });
        }
    }

    /// How large buffers are of which nothing is known: other guesses at other levels.
    pub fn guess_counts(&self, draft: &mut Draft, level: usize) {
        let mut roots: Vec<Rc<Root>> = Vec::new();
        for extent in &draft.grid {
            let own = roots_of([extent]).into_iter();
            let new: Vec<Rc<Root>> = own.filter(|root| !roots.contains(root)).collect();
            roots.extend(new);
        }
        let mut by_extent: Vec<Amount> = roots.into_iter().map(Amount::Root).collect();
        if let [only] = &by_extent[..]
            && draft.grid.len() > 1
        {
            by_extent = vec![only.clone(); draft.grid.len()];
        }
        let threads = draft.block.iter().fold(1_i64, |all, n| all * i64::from(*n));
        let blocks = draft.grid.iter().cloned().reduce(Amount::times);
        let whole = blocks.unwrap_or(Amount::Number(1));
        let whole = whole.times(Amount::Number(threads));
        let all = || {
            let roots = draft.used().into_iter().map(Amount::Root);
            roots.reduce(Amount::times).unwrap_or(whole.clone())
        };
        by_extent.reverse();
        draft.guessed_count = match level {
            0 if !by_extent.is_empty() => by_extent,
            0 | 1 => vec![whole],
            2 => vec![all()],
            _ => vec![whole.times(Amount::Number(4))],
        };
    }
}

/// The integers among parameters: those that are known, others as sizes of their own names; none of narrow ones, which
/// hold no size.
fn integers(sorts: &[(String, Sort)], arguments: &[Argument]) -> Vec<Option<Amount>> {
    let one = |(at, (name, sort)): (usize, &(String, Sort))| {
        let known = arguments.get(at).and_then(|own| own.integer.clone());
        is_size(sort).then(|| known.unwrap_or_else(|| Root::amount(name, None)))
    };
    sorts.iter().enumerate().map(one).collect()
}

/// Buffers by what tells memory apart: those that are handed over twice are one.
struct Named(Vec<((usize, usize), String)>);

impl Named {
    fn new() -> Named {
        Named(Vec::new())
    }

    /// The buffer that a pointer points to, if one before it does; `own` are of the same parameter.
    fn met(
        &self,
        draft: &mut Draft,
        own: &mut [(String, Made)],
        to: &Pointed,
        argument: &Argument,
    ) -> Option<String> {
        let id = argument.memory.as_ref()?.id;
        let (_, of) = self.0.iter().find(|(other, _)| *other == id)?;
        let own = own.iter_mut().filter_map(|(_, made)| match made {
            Made::Memory(memory) => Some(&mut **memory),
            Made::Alias(_) => None,
        });
        let first = own.chain(draft.buffers_mut()).find(|m| m.name == *of);
        first?.is_output |= to.is_output;
        Some(of.clone())
    }

    /// A buffer of this name.
    fn memory(&mut self, name: String, to: &Pointed, argument: &Argument) -> Memory {
        let memory = argument.memory.as_ref();
        self.0
            .extend(memory.map(|memory| (memory.id, name.clone())));
        let count = memory.map(|memory| memory.count.clone());
        let count = count.filter(|count| count.number().is_none_or(|count| count > 0));
        Memory {
            name,
            contents: was_filled(to, memory).unwrap_or_else(|| contents(&to.layout)),
            rows: None,
            layout: to.layout.clone(),
            written: to.written.clone(),
            source: match count {
                Some(_) => Source::Traced,
                None => Source::Guessed,
            },
            count,
            is_output: to.is_output,
        }
    }
}

/// What memory held when the program ran, where all bytes were alike. Zeros count where integers are written: of others
/// nobody knows whether the program meant them.
fn was_filled(to: &Pointed, memory: Option<&seen::Memory>) -> Option<Contents> {
    let byte = memory?.byte?;
    let (element, _) = to.layout.uniform()?;
    let is_number = !element.is_float() || filled(element, byte).is_some();
    let tells = byte != 0 || to.is_output && !element.is_float();
    (is_number && tells).then_some(Contents::Filled(byte))
}

/// Is an extent that one name decides what was seen, with the roundest size?
fn solve(extent: &Amount, seen: u32, solved: &mut BTreeMap<Rc<Root>, i64>) -> bool {
    let seen = i64::from(seen);
    let mut open = roots_of([extent]).into_iter();
    let mut open = open
        .by_ref()
        .filter(|root| root.value.is_none() && !solved.contains_key(root));
    if let (Some(root), None) = (open.next(), open.next()) {
        let with = |size: i64| {
            let of = |r: &Root| (*r == *root).then_some(size);
            extent.at(&|r| r.value.or_else(|| of(r)).or_else(|| solved.get(r).copied()))
        };
        let Some(size) = roundest(&with, seen) else {
            return false;
        };
        if with(size) == Some(seen) {
            solved.insert(root, size);
        }
    }
    extent.at(&|root| root.value.or_else(|| solved.get(root).copied())) == Some(seen)
}

/// The roundest size that makes an extent of a launch this one: extents grow with their sizes. Where all from one on do, it is
/// near that.
fn roundest(extent: &dyn Fn(i64) -> Option<i64>, wanted: i64) -> Option<i64> {
    let first = |least: i64| {
        let (mut low, mut high) = (1, LARGEST_SIZE);
        while low < high {
            let middle = low + (high - low) / 2;
            match extent(middle) {
                Some(n) if n < least => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    };
    let least = first(wanted);
    let most = (first(wanted + 1) - 1).max(least).min(2 * least);
    let powers = (0..31).rev().map(|power| 1_i64 << power);
    let mut round = powers.map(|power| most / power * power);
    round.find(|size| *size >= least)
}

/// Is it a null pointer, perhaps cast?
fn is_null(text: &str) -> bool {
    let text = text.rsplit_once(')').map_or(text, |(_, text)| text);
    ["nullptr", "NULL", "0"].contains(&text.trim())
}

/// Integers that nobody knows are below it, where larger ones may be no index.
pub const FEW: i64 = 100;

/// What a buffer of such elements may hold.
fn contents(layout: &Layout) -> Contents {
    match layout.uniform() {
        None => Contents::Zeros,
        Some((element, _)) if element.is_float() => Contents::Uniform,
        // All that a byte may be, where the kernel takes that.
        Some((element, _)) if element.size() == 1 => {
            let (_, high) = element.int_range();
            Contents::Narrow(i64::try_from(high).map_or(FEW, |high| high + 1))
        }
        Some((element, _)) if element.size() < 4 => Contents::Narrow(FEW),
        Some(_) => Contents::Indices(Amount::Number(100)),
    }
}
