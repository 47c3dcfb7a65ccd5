//! A draft of a launch description, from what the code says.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::code::{self, Amount, Argument, Described, HostCode, Op, Root};
use warpwright_cudac::File;
use warpwright_cudac::ast::{Function, Type};
use warpwright_launch::{ElemType, Source};
use warpwright_pass::names::{base_name, source_name, template_arguments};
use warpwright_pass::ptx::facts::{used_variables, uses_dynamic_shared};
use warpwright_ptx::{Module, Space};

use crate::Stated;
use crate::draft::{
    Contents, Draft, Launched, Made, Memory, Parameter, Processors, Value, filled, read,
};
use crate::error::Error;
use crate::guards::{Guard, Guards, guards};
use crate::kernel::{element, own_bound, parameter_types};
use crate::layout::{self, Known, Layout, Pointed, Sort};
use crate::seen::Seen;

/// What a description is made of.
pub struct Ground<'a> {
    pub file: &'a File,
    /// The host code: the text behind those of the user's headers, with its macros that launch as what they stand for.
    pub host: &'a str,
    /// Lines of it in front of the file's own.
    pub headers: usize,
    pub module: &'a Module,
    pub symbol: &'a str,
    pub function: &'a Function,
    pub nvcc: &'a [String],
    pub stated: &'a Stated<'a>,
    /// That launch, if its program ran without a GPU.
    pub seen: Option<Seen<'a>>,
    pub processors: Processors,
}

/// Threads of a block that nobody knows, by its dimensions.
const BLOCKS: [&[u32]; 3] = [&[256], &[16, 16], &[8, 8, 8]];

/// Pointers of a table of which nobody knows how many it has.
const ROWS: i64 = 64;

/// No size that a grid is made of is larger.
const LARGEST_SIZE: i64 = i32::MAX as i64;

/// Dynamic shared memory that every GPU gives to a block that does not ask for more than usual.
const MOST_SMEM: i64 = 32 << 10;

/// A block, what is guessed of the names in it, who says it, and whether it is the kernel's own bound.
type Block = (Vec<u32>, BTreeMap<Rc<Root>, i64>, (Source, bool));

/// The innermost namespace of a symbol.
fn space(symbol: &str) -> Option<String> {
    let name = source_name(symbol);
    let name = name.split('(').next()?.split('<').next()?;
    let (spaces, _) = name.rsplit_once("::")?;
    let last = spaces.rsplit("::").next()?;
    Some(last.trim_start_matches("void ").to_owned())
}

/// The integers among parameters, each a size of its own name as far as nobody says another; none of narrow ones, which
/// hold no size.
fn integers(sorts: &[(String, Sort)]) -> Vec<Option<Amount>> {
    let one = |(name, sort): &(String, Sort)| match sort {
        Sort::Scalar(Layout::Elements(element, 1, _))
            if !element.is_float() && element.size() >= 4 =>
        {
            Some(Root::guess(name, None))
        }
        _ => None,
    };
    sorts.iter().map(one).collect()
}

fn is_one(amount: &Amount) -> bool {
    *amount == Amount::Number(1)
}

/// Extents without ones at the end.
fn trimmed<T>(mut all: Vec<T>, is_one: impl Fn(&T) -> bool) -> Vec<T> {
    while all.len() > 1 && all.last().is_some_and(&is_one) {
        all.pop();
    }
    all
}

impl Ground<'_> {
    fn kernel(&self) -> &str {
        &self.function.name.text
    }

    /// The dimensions whose places the kernel reads.
    fn dimensions(&self) -> usize {
        self.places(&["%tid.", "%ctaid.", "%ntid.", "%nctaid."])
    }

    /// Does the kernel read a register?
    fn reads(&self, register: &str) -> bool {
        let compiled = self.module.function(self.symbol);
        let compiled = compiled.map(|id| self.module.text(self.module.functions[id].span));
        compiled.is_some_and(|text| text.contains(register))
    }

    /// The same of some of the registers that say a place.
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

    /// The draft, with names that have no numbers yet; `usual` is the block where nobody knows one.
    pub fn draft(&self, usual: Option<&[u32]>) -> Result<Draft, Error> {
        let sorts = self.sorts()?;
        let code = HostCode::new(self.host, self.nvcc);
        let (launches, may_be_anothers) = self.own_of(&code);
        let is_found = !launches.is_empty();
        let launched = self.launched(&launches);
        // What all of them say is no guess, whichever runs.
        let said = |part: fn(&Described) -> &[Option<Amount>]| {
            let mut all = launches.windows(2);
            let is_one = all.all(|two| part(&two[0]) == part(&two[1]));
            read(is_one && !may_be_anothers)
        };
        let (mut from_grid, mut from_block) = (said(|own| &own.grid), said(|own| &own.block));
        // Of several launches that which the trace can have seen.
        let traced = self.stated.traced.and_then(|(grid, block, _)| {
            let mut all = launches.iter().enumerate();
            let sizes = |own| {
                let seen = self.seen.as_ref();
                let seen = seen.and_then(|seen| Some((seen.sizes(own, &sorts)?, true)));
                seen.or_else(|| Some((by_trace(own, grid, block)?, false)))
            };
            all.find_map(|(at, own)| Some((at, sizes(own)?)))
        });
        let (at, sizes) = traced.unzip();
        let (sizes, is_seen) = sizes.unzip();
        let mut own = launches
            .into_iter()
            .nth(at.unwrap_or(0))
            .unwrap_or_default();
        if let Some((grid, block, smem)) = self.stated.traced {
            let numbers = |all: [u32; 3]| all.map(|n| Some(Amount::Number(n.into()))).to_vec();
            if sizes.is_none() {
                (own.grid, own.block) = (numbers(grid), numbers(block));
            }
            own.dynamic_smem = Some(Amount::Number(smem.into()));
            (from_grid, from_block) = (Source::Traced, Source::Traced);
            if let Some(seen) = &self.seen {
                own.arguments = Some(seen.arguments(&own, &sorts, sizes.as_ref()));
                if sizes.is_none() {
                    own.grid = seen.grid(&sorts);
                }
            }
        } else if !is_found {
            own.dynamic_smem = Some(Amount::Number(0));
        }
        let is_alone = !is_found && self.stated.traced.is_none();
        let integers = match is_alone {
            true => integers(&sorts),
            false => Vec::new(),
        };
        let fixed = self.fixed(&code, &own);
        let (block, guessed, (block_source, is_bound)) = self.block(&own, from_block, usual);
        let pin = |root: &Rc<Root>| match fixed.contains(root) {
            true => root
                .value
                .or_else(|| guessed.get(root).copied())
                .map(Amount::Number),
            false => None,
        };
        let fold = |amount: &Amount, size: usize| amount.with(&pin, size as i64);
        let is_sure = |amount: &Amount| {
            let (mut all, mut inner) = (BTreeSet::new(), BTreeSet::new());
            amount.roots(&mut all, &mut inner);
            let mut fixed_ones = all.iter().filter(|root| fixed.contains(*root));
            fixed_ones.all(|root| root.is_sure) && !amount.has_pitch()
        };
        let mut draft = Draft {
            kernel: self.symbol.to_owned(),
            names: Vec::new(),
            grid: Vec::new(),
            grid_source: Source::Guessed,
            block_source,
            is_bound,
            cluster: self.seen.as_ref().and_then(Seen::cluster),
            dynamic_smem: Amount::Number(0),
            smem_source: Source::Guessed,
            is_smem_computed: own.dynamic_smem.is_none(),
            has_run: self.seen.is_some(),
            launched,
            parameters: Vec::new(),
            symbols: Vec::new(),
            guessed_count: Vec::new(),
            processors: self.processors,
            traced: sizes.unwrap_or_default(),
            is_seen: is_seen.unwrap_or(false),
            strides: self.reads("%nctaid."),
            block,
        };
        // The grid.
        let said = own.grid.iter().flatten().filter(|a| !a.has_element());
        let said: Vec<Amount> = said.map(|a| fold(a, 1)).collect();
        let n = Root::guess("n", None);
        let threads = |at: usize| draft.block.get(at).copied().unwrap_or(1);
        if said.len() == own.grid.len()
            && is_found | self.stated.traced.is_some()
            && !said.is_empty()
        {
            let sure = own.grid.iter().flatten().all(&is_sure)
                && (guessed.is_empty() || self.stated.traced.is_some())
                && self.stated.block.is_none();
            draft.grid_source = if sure { from_grid } else { Source::Guessed };
            draft.grid = trimmed(said, is_one);
        } else {
            let dimensions = self.dimensions().max(draft.block.len()).max(own.grid.len());
            let guessed = self.guessed_grid(&integers, dimensions);
            let extent = |at: usize| match (own.grid.get(at), &guessed[at]) {
                (Some(Some(known)), _) if !known.has_element() => fold(known, 1),
                (_, Some(guard)) => guard.blocks(threads(at).into()),
                _ => Amount::binary(Op::CeilDiv, n.clone(), Amount::Number(threads(at).into())),
            };
            draft.grid = (0..dimensions).map(extent).collect();
        }
        // Dynamic shared memory.
        match (self.stated.dynamic_smem, &own.dynamic_smem) {
            (Some(stated), _) => {
                draft.dynamic_smem = Amount::Number(stated.into());
                draft.smem_source = Source::Stated;
            }
            (None, Some(bytes)) => {
                draft.dynamic_smem = fold(bytes, 1);
                let sure = is_sure(bytes) && !bytes.has_element();
                draft.smem_source = read(sure);
            }
            (None, None) => {}
        }
        let compiled = self
            .module
            .function(self.symbol)
            .map(|id| &self.module.functions[id]);
        let uses_more = compiled.is_some_and(|f| uses_dynamic_shared(self.module, f));
        let is_guess = !is_found && self.stated.traced.is_none() || own.dynamic_smem.is_none();
        if uses_more && is_guess && self.stated.dynamic_smem.is_none() {
            draft.dynamic_smem = Amount::Number(MOST_SMEM);
            draft.smem_source = Source::Guessed;
        }
        // Parameters.
        let mut seen: Vec<(String, String)> = Vec::new();
        let arguments = own.arguments.filter(|all| all.len() <= sorts.len());
        let arguments = arguments.unwrap_or_default();
        let none = Argument::default();
        let made = |draft: &mut Draft,
                    seen: &mut Vec<(String, String)>,
                    name: String,
                    to: &Pointed,
                    argument: &Argument| {
            let memory = argument.memory.as_ref();
            let same = memory.filter(|m| !m.is_moved);
            let before = same.and_then(|m| seen.iter().find(|(id, _)| *id == m.id));
            if let Some((_, of)) = before {
                let first = draft.buffers_mut().find(|m| m.name == *of);
                // Members of the same parameter are not in the draft yet.
                if let Some(first) = first {
                    first.is_output |= to.is_output;
                    return Made::Alias(of.clone());
                }
            }
            if let Some(same) = same {
                seen.push((same.id.clone(), name.clone()));
            }
            let bytes = memory.and_then(|m| m.bytes.as_ref());
            // Nobody knows how large such an element is.
            let bytes = bytes.filter(|bytes| !(to.is_opaque() && bytes.has_element()));
            let size = to.layout.size();
            let count = bytes.map(|bytes| {
                let count = bytes.clone().over(Amount::Number(size as i64));
                fold(&count, size)
            });
            let sure = bytes.is_some_and(&is_sure) && same.is_some();
            Made::Memory(Box::new(Memory {
                name,
                contents: (self.filled(to, memory)).unwrap_or_else(|| contents(&to.layout)),
                rows: None,
                layout: to.layout.clone(),
                written: to.written.clone(),
                count: count.filter(|c| c.number().is_none_or(|c| c > 0)),
                source: read(sure),
                is_output: to.is_output,
            }))
        };
        for (at, (name, sort)) in sorts.into_iter().enumerate() {
            let argument = arguments.get(at).unwrap_or(&none);
            let parameter = match sort {
                Sort::Bytes(value) => {
                    let seen = self.seen.as_ref().map(|seen| seen.opaque(at, &value));
                    let seen = seen.transpose()?.map(<[u8]>::to_vec);
                    Parameter::Bytes(value, seen)
                }
                Sort::Scalar(layout) => {
                    let own = self.function.parameters.get(at).map(|own| own.ty.bare());
                    let is_bool = own.is_some_and(|ty| *ty == Type::Named("bool".into()));
                    let truth = |amount: Amount, source: Source| match amount {
                        Amount::Number(n) if is_bool => {
                            Value::Integer(Amount::Number(i64::from(n != 0)), source)
                        }
                        _ if is_bool => Value::Integer(Amount::Number(1), Source::Guessed),
                        amount => Value::Integer(amount, source),
                    };
                    let one = |argument: &Argument, is_float: bool| {
                        let integer = argument.integer.as_ref();
                        let integer = integer.map(|a| truth(fold(a, 1), read(is_sure(a))));
                        let real = argument.real.map(Value::Real);
                        if is_float { real } else { integer }
                    };
                    let value = |name: &str, argument: &Argument, is_float: bool| {
                        let value = match argument.parts.is_empty() {
                            true => one(argument, is_float)?,
                            false => {
                                let parts = argument.parts.iter().map(|part| one(part, is_float));
                                Value::Vector(parts.collect::<Option<_>>()?)
                            }
                        };
                        Some((name.to_owned(), value))
                    };
                    let is_float = |name: &str| layout.is_float(name);
                    let whole = value("", argument, is_float(""));
                    let (own, pointers) = (layout.members(), layout.pointers());
                    let is_number = |name: &str| {
                        own.iter().any(|member| member == name)
                            && !pointers.iter().any(|(pointer, _)| pointer == name)
                    };
                    let members = argument.members.iter();
                    let members = members.filter(|(name, _)| is_number(name));
                    let members =
                        members.filter_map(|(name, own)| value(name, own, is_float(name)));
                    let own = integers.get(at).cloned().flatten();
                    let own = own.map(|own| (String::new(), Value::Integer(own, Source::Guessed)));
                    let values = match layout {
                        Layout::Structure(_) => members.collect(),
                        Layout::Elements(..) | Layout::Pointer(_) => {
                            whole.or(own).into_iter().collect()
                        }
                    };
                    let mut pointers = Vec::new();
                    for (way, to) in layout.pointers() {
                        let own = argument.members.iter().find(|(name, _)| *name == way);
                        let own = own.map_or(&none, |(_, own)| own);
                        let memory = format!("{name}.{way}");
                        let same = own.memory.as_ref().filter(|m| !m.is_moved);
                        let before = same.and_then(|m| seen.iter().find(|(id, _)| *id == m.id));
                        let is_it = |(_, made): &&mut (String, Made)| match (made, before) {
                            (Made::Memory(memory), Some((_, of))) => memory.name == *of,
                            _ => false,
                        };
                        // Another member of this structure points to it.
                        let found = match pointers.iter_mut().find(is_it) {
                            Some((_, Made::Memory(first))) => {
                                first.is_output |= to.is_output;
                                Made::Alias(first.name.clone())
                            }
                            _ => made(&mut draft, &mut seen, memory, to, own),
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
                Sort::Memory(_) | Sort::Table(_) if is_null(&argument.text) => {
                    Parameter::Null(name)
                }
                Sort::Table(to) => {
                    let memory = argument.memory.as_ref().filter(|m| !m.is_moved);
                    let bytes = memory.and_then(|m| m.bytes.clone());
                    let rows = bytes.map(|bytes| fold(&bytes.over(Amount::Number(8)), 8));
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
                Sort::Memory(to) => {
                    match made(&mut draft, &mut seen, name.clone(), &to, argument) {
                        Made::Memory(memory) => Parameter::Buffer(*memory),
                        Made::Alias(of) => Parameter::Alias { name, of },
                    }
                }
            };
            draft.parameters.push(parameter);
        }
        self.symbols(&code, &mut draft);
        self.guess_counts(&mut draft, 0);
        let needs_name = draft.used().is_empty()
            && draft.parameters.iter().any(|p| match p {
                Parameter::Scalar { values, layout, .. } => {
                    values.is_empty() && !layout.is_float("")
                }
                _ => false,
            });
        if needs_name {
            draft.guessed_count = vec![n];
        }
        Ok(draft)
    }

    /// What memory held when the program ran, where all bytes were alike. Zeros count where integers are written: of others
    /// nobody knows whether the program meant them.
    fn filled(&self, to: &Pointed, memory: Option<&code::Memory>) -> Option<Contents> {
        let byte = self.seen.as_ref()?.filled(memory?)?;
        let (element, _) = to.layout.uniform()?;
        let is_number = !element.is_float() || filled(element, byte).is_some();
        let tells = byte != 0 || to.is_output && !element.is_float();
        (is_number && tells).then_some(Contents::Filled(byte))
    }

    /// What a kernel that no code launches says of its grid: it compares places with sizes, or has a block for each of
    /// what the first of the other integers counts.
    fn guessed_grid(&self, integers: &[Option<Amount>], dimensions: usize) -> Vec<Option<Guard>> {
        let id = self.module.function(self.symbol);
        let own = |at: usize| integers.get(at).cloned().flatten();
        let read = |id| guards((self.module, &self.module.functions[id]), &own);
        let found = id.filter(|_| !integers.is_empty()).map(read);
        let Guards {
            mut of,
            has_places,
            inside,
        } = found.unwrap_or_default();
        let (mut taken, mut fixed) = (BTreeSet::new(), BTreeSet::new());
        for amount in of.iter().flatten().map(Guard::size).chain(&inside) {
            amount.roots(&mut taken, &mut fixed);
        }
        let is_free = |one: &&Amount| matches!(one, Amount::Root(root) if !taken.contains(root));
        let mut free = integers.iter().flatten().filter(is_free);
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            let is_of_blocks = self.reads(&format!("%ctaid.{name}")) && !has_places[axis];
            if of[axis].is_none() && is_of_blocks && !integers.is_empty() {
                let blocks = free.next().cloned();
                let blocks = blocks.unwrap_or_else(|| Root::guess("blocks", None));
                of[axis] = Some(Guard::Blocks(blocks));
            }
        }
        of.into_iter().take(dimensions.max(3)).collect()
    }

    /// The launches of the kernel, without those of others of its name, and whether the first may be of another.
    fn own_of(&self, code: &HostCode<'_>) -> (Vec<Described>, bool) {
        let all = |symbol: &str| {
            let mut all = code.described(self.kernel(), &template_arguments(symbol));
            all.retain(|launch| self.may_launch(code, launch, symbol));
            all
        };
        let own = all(self.symbol);
        let Some(first) = own.first() else {
            return (own, false);
        };
        let others = self.module.kernels().map(|(_, f)| &*f.name);
        let mut others = others.filter(|other| self.is_namesake(other));
        let is_it = |other: &str| all(other).iter().any(|launch| launch.at == first.at);
        let may_be_anothers = others.any(is_it);
        (own, may_be_anothers)
    }

    /// Another kernel of the same name: of other parameters, another instance, or in another namespace.
    fn is_namesake(&self, symbol: &str) -> bool {
        symbol != self.symbol && base_name(symbol) == base_name(self.symbol)
    }

    /// Can a launch be of the kernel of a symbol, by the namespace, the number of arguments and the types of pointers?
    fn may_launch(&self, code: &HostCode<'_>, launch: &Described, symbol: &str) -> bool {
        let others = self.module.kernels().map(|(_, f)| &*f.name);
        let namesakes: Vec<&str> = others.filter(|other| self.is_namesake(other)).collect();
        if namesakes.is_empty() {
            return true;
        }
        let (around, written) = code.spaces(launch.at);
        let own = space(symbol);
        let is_here = match (written, &own) {
            (Some(written), own) => own.as_deref().is_none_or(|own| own == written),
            (None, Some(own)) => {
                let is_around =
                    |symbol: &&str| space(symbol).is_some_and(|space| around.contains(&&*space));
                around.contains(&&**own)
                    || !is_around(&self.symbol) && !namesakes.iter().any(is_around)
            }
            (None, None) => true,
        };
        let types = parameter_types(symbol);
        let Some(arguments) = &launch.arguments else {
            return is_here;
        };
        let is_type = |(argument, ty): (&Argument, &String)| {
            let declared = code.pointed_type(&argument.text, launch.at);
            let known = declared.and_then(|ty| ElemType::from_name(&ty));
            let wanted = ElemType::from_name(element(ty)).filter(|_| ty.ends_with('*'));
            known.is_none() || wanted.is_none() || known == wanted
        };
        is_here && arguments.len() == types.len() && arguments.iter().zip(&types).all(is_type)
    }

    /// Where the launches are of which the first is described.
    fn launched(&self, launches: &[Described]) -> Launched {
        if self.stated.traced.is_some() {
            return Launched::default();
        }
        let number = |launch: &Described| self.host[..launch.at].matches('\n').count();
        let line = |launch: &Described| {
            let before = number(launch);
            // Two on a line differ by the column.
            let same = launches.iter().filter(|other| number(other) == before);
            let column = launch.at - self.host[..launch.at].rfind('\n').map_or(0, |at| at + 1);
            match (before.checked_sub(self.headers), same.count()) {
                (Some(before), 0 | 1) => format!("line {}", before + 1),
                (Some(before), _) => format!("{}:{}", before + 1, column + 1),
                (None, _) => "a header".to_owned(),
            }
        };
        let (own, others) = match launches.split_first() {
            Some((own, others)) => (Some(own), others),
            None => (None, &[][..]),
        };
        Launched {
            own: own.map(line),
            others: others.iter().map(line).collect(),
        }
    }

    /// Names that have to be what the code makes them: they decide the block or what is compiled, or change on the way.
    fn fixed(&self, code: &HostCode<'_>, own: &Described) -> BTreeSet<Rc<Root>> {
        let (mut all, mut fixed) = (BTreeSet::new(), own.fixed.clone());
        for amount in own.block.iter().flatten() {
            amount.roots(&mut all, &mut fixed);
        }
        fixed.extend(std::mem::take(&mut all));
        if let Some(smem) = &own.dynamic_smem {
            smem.roots(&mut all, &mut fixed);
            fixed.extend(all.iter().filter(|root| root.value.is_some()).cloned());
        }
        let mut rest: Vec<&Amount> = own.grid.iter().flatten().collect();
        for argument in own.arguments.iter().flatten() {
            let members = argument.members.iter().map(|(_, member)| member);
            for argument in members.chain([argument]) {
                rest.extend(&argument.integer);
                let memory = argument.memory.iter();
                rest.extend(memory.flat_map(|m| &m.bytes));
            }
        }
        for amount in rest {
            amount.roots(&mut all, &mut fixed);
        }
        // What is one or none is no size.
        let is_small = |root: &&Rc<Root>| root.is_sure && root.value.is_some_and(|n| n <= 1);
        fixed.extend(all.iter().filter(is_small).cloned());
        let words = code.words_of(self.kernel());
        fixed.extend(
            all.into_iter()
                .filter(|root| root.is_shared && words.contains(&root.name)),
        );
        fixed
    }

    /// The block, what is guessed of the names in it, and who says it.
    fn block(&self, own: &Described, from: Source, usual: Option<&[u32]>) -> Block {
        let mut guessed = BTreeMap::new();
        let small = |n: Option<i64>| n.and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
        let numbers = own.block.iter().map(|a| small(a.as_ref()?.number()));
        let numbers: Option<Vec<u32>> = numbers
            .collect::<Option<_>>()
            .filter(|b: &Vec<u32>| !b.is_empty());
        let traced = self.stated.traced.map(|(_, block, _)| block);
        if let Some(stated) = self.stated.block.or(traced) {
            let stated = trimmed(stated.to_vec(), |n| *n == 1);
            let (mut all, mut fixed) = (BTreeSet::new(), BTreeSet::new());
            for (amount, extent) in own.block.iter().flatten().zip(&stated) {
                if let Amount::Root(root) = amount {
                    guessed.insert(root.clone(), i64::from(*extent));
                }
                amount.roots(&mut all, &mut fixed);
            }
            let source = match self.stated.block {
                Some(_) => Source::Stated,
                None => from,
            };
            return (stated, guessed, (source, false));
        }
        if let Some(numbers) = numbers {
            let is_sure = own.block.iter().flatten().all(Amount::is_sure);
            let source = if is_sure { from } else { Source::Guessed };
            return (trimmed(numbers, |n| *n == 1), guessed, (source, false));
        }
        if let Some(bound) = own_bound(self.file, self.kernel()) {
            return (bound, guessed, (Source::Guessed, true));
        }
        let dimensions = match own.block.len() {
            0 => self.places(&["%tid.", "%ntid."]),
            said => said,
        };
        let usual = usual.unwrap_or(BLOCKS[dimensions.min(3) - 1]);
        let (mut all, mut fixed) = (BTreeSet::new(), BTreeSet::new());
        for amount in own.block.iter().flatten() {
            amount.roots(&mut all, &mut fixed);
        }
        for root in all.into_iter().filter(|root| root.value.is_none()) {
            guessed.insert(root, i64::from(usual[0]));
        }
        let extent = |at: usize| {
            let amount = own.block.get(at).and_then(Option::as_ref);
            let number = amount
                .and_then(|a| a.at(&|root| root.value.or_else(|| guessed.get(root).copied())));
            small(number).unwrap_or(usual.get(at).copied().unwrap_or(1))
        };
        let block: Vec<u32> = (0..usual.len().max(own.block.len())).map(extent).collect();
        (
            trimmed(block, |n| *n == 1),
            guessed,
            (Source::Guessed, false),
        )
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
        let (mut roots, mut fixed) = (BTreeSet::new(), BTreeSet::new());
        let mut by_extent: Vec<Amount> = Vec::new();
        for extent in &draft.grid {
            let mut own = BTreeSet::new();
            extent.roots(&mut own, &mut fixed);
            by_extent.extend(
                own.iter()
                    .filter(|root| !roots.contains(*root))
                    .cloned()
                    .map(Amount::Root),
            );
            roots.extend(own);
        }
        if let [Amount::Root(only)] = &by_extent[..]
            && draft.grid.len() > 1
        {
            by_extent = vec![Amount::Root(only.clone()); draft.grid.len()];
        }
        let threads = draft.block.iter().fold(1_i64, |all, n| all * i64::from(*n));
        let blocks = draft.grid.iter().cloned().reduce(Amount::times);
        let whole = match blocks {
            Some(Amount::Number(blocks)) => Amount::Number(blocks.saturating_mul(threads)),
            Some(blocks) => blocks.times(Amount::Number(threads)),
            None => Amount::Number(threads),
        };
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

/// The sizes with which the code's launch is the traced one, of all that fit the roundest; none where it is not known, or
/// another one.
fn by_trace(own: &Described, grid: [u32; 3], block: [u32; 3]) -> Option<BTreeMap<Rc<Root>, i64>> {
    let is_known = |all: &[Option<Amount>]| {
        let is_one = |a: &Option<Amount>| a.as_ref().is_some_and(|a| !a.has_element());
        !all.is_empty() && all.iter().all(is_one)
    };
    if !is_known(&own.block) || !is_known(&own.grid) {
        return None;
    }
    let mut sizes: BTreeMap<Rc<Root>, i64> = BTreeMap::new();
    let extents = [(&own.block, block), (&own.grid, grid)];
    let extents = extents.into_iter().flat_map(|(own, seen)| {
        let own = own
            .iter()
            .flatten()
            .map(Some)
            .chain(std::iter::repeat(None));
        own.zip(seen)
    });
    for (amount, seen) in extents {
        let seen = i64::from(seen);
        let one = Amount::Number(1);
        let amount = amount.unwrap_or(&one);
        let (mut roots, mut inner) = (BTreeSet::new(), BTreeSet::new());
        amount.roots(&mut roots, &mut inner);
        let open = roots.into_iter();
        let mut open = open.filter(|root| root.value.is_none() && !sizes.contains_key(root));
        let found = match (open.next(), open.next()) {
            (Some(root), None) => {
                let with = |size: i64| {
                    let of = |r: &Root| (*r == *root).then_some(size);
                    amount.at(&|r| r.value.or_else(|| of(r)).or_else(|| sizes.get(r).copied()))
                };
                Some((roundest(&with, seen)?, root))
            }
            _ => None,
        };
        sizes.extend(found.map(|(size, root)| (root, size)));
        let number = amount.at(&|root| root.value.or_else(|| sizes.get(root).copied()));
        if number != Some(seen) {
            return None;
        }
    }
    Some(sizes)
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
