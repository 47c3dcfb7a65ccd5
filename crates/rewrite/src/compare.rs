//! One launch of each side on terms, and what their outputs are to one another.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_emu::symbolic::term::{Cmp, Domain, Id, Kind, Terms, Unset, Val};
use warpwright_emu::symbolic::{
    Buffer, Content, Note, Options as MachineOptions, Refusal, Report, Shown, Stop,
};
use warpwright_launch::{ElemType, Init};

use crate::alike::{Chosen, Launched, chosen};
use crate::bounds::Range;
use crate::errors::{self, Root};
use crate::field::Value;
use crate::guards;
use crate::pairing::{self, Known, Paired, buffers};
use crate::reals::{Reals, Roots, is_whole};
use crate::standing::{AtLaunch, Begun, Standing, Which, Why, at};
use crate::tested::{
    self, Difference, FILLINGS, Filling, Memory, Ran, Scale, differences, filled, run, run_within,
};
use crate::{Side, Step};

/// Options of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// What the machine on terms may spend.
    pub machine: MachineOptions,
    /// Buffers that hold what the description says.
    pub fixed: Vec<String>,
    /// Buffers with the numbers that they hold, from the least to the largest.
    pub ranges: Vec<(String, f64, f64)>,
    /// What terms do not do is left at that: no buffer is fixed for it, and nothing is tried on numbers.
    pub terms_alone: bool,
    /// What takes more terms or instructions than are permitted is not tried on numbers in place of it.
    pub is_capped: bool,
    /// What is equal over the reals is run on the ends of its ranges and on large numbers, too.
    pub extremes: bool,
}

impl Options {
    /// Is what terms do not do left at that?
    fn leaves(&self, why: &Why) -> bool {
        self.terms_alone || self.is_capped && why.is_too_large()
    }
}

/// Compares two sides at their launches.
pub fn compare(a: &Side, b: &Side, paired: &Paired, options: &Options) -> AtLaunch {
    let mut fixed = options.fixed.clone();
    let mut open: Vec<String> = Vec::new();
    loop {
        let known = Known {
            fixed: &fixed,
            open: &open,
            ranges: &options.ranges,
        };
        let mut comparison = Comparison::new(a, b, paired, known, options);
        let found = comparison.run();
        if found.is_ok() && !comparison.zeros.is_empty() {
            open.extend(comparison.zeros);
            continue;
        }
        let elements = comparison.elements;
        let terms = comparison.terms.len();
        let (standing, mut why) = match found {
            Ok(found) => found,
            Err(Halt::Found(standing, why)) => (standing, why),
            Err(Halt::Refused(why, _)) if options.leaves(&why) => (Standing::Tested, vec![*why]),
            Err(Halt::Refused(why, more)) => {
                let new: Vec<String> = more
                    .into_iter()
                    .filter(|name| !fixed.contains(name))
                    .collect();
                if !new.is_empty() && can_be_fixed(&why) {
                    fixed.extend(new);
                    continue;
                }
                let fixed = &kept(a, &fixed, options)[..];
                tested(a, b, paired, Known { fixed, ..known }, *why)
            }
        };
        let is_fixed = !fixed.is_empty();
        let is_stated = |name: &String| options.fixed.contains(name);
        let (stated, made): (Vec<String>, Vec<String>) = fixed.into_iter().partition(is_stated);
        why.extend((!stated.is_empty()).then_some(Why::Stated(stated)));
        why.extend((!made.is_empty()).then_some(Why::Fixed(made)));
        let standing = match is_fixed {
            true => standing.max(Standing::Tested),
            false => standing,
        };
        return AtLaunch {
            standing,
            why,
            elements,
            terms,
        };
    }
}

/// No rounded value decides anything.
struct Undecided;

/// Behind the name of an input that the rewritten kernel alone has.
const OTHERS: &str = " of the rewritten kernel";

/// Of plain inputs: which end of a range is in even places, and which in odd ones.
const SHAPES: [[usize; 2]; 3] = [[0, 0], [1, 1], [0, 1]];
/// A number whose exponential has left the range of single precision, and which half precision has.
const LARGE: f64 = 200.0;

/// Elements that tell of others.
const SAMPLE: usize = 8;
/// For how many each of them tells at least.
const MANY: usize = 128;

/// Characters of a term that is shown.
const SHOWN: usize = 100;

/// Known inputs make an address, a trip count or a mask known.
fn can_be_fixed(why: &Why) -> bool {
    let Why::Refused { refusal, .. } = why else {
        return false;
    };
    matches!(
        refusal,
        Refusal::Address(_) | Refusal::Loop(_) | Refusal::Operand(_) | Refusal::Collective(_)
    )
}

/// Why a comparison ends early.
enum Halt {
    Found(Standing, Vec<Why>),
    /// Not done on terms; the buffers that it is about.
    Refused(Box<Why>, Vec<String>),
}

/// What a side begins with as described.
#[derive(Clone, Copy, Default)]
struct Relied {
    is_zeros: bool,
    is_output: bool,
    is_table: bool,
    /// A launch of either side writes it.
    is_written: bool,
    /// A result may depend on it.
    is_read: bool,
}

/// What launches left of a side.
struct Left {
    memory: Vec<Buffer>,
    /// Place of each buffer by name.
    places: BTreeMap<String, usize>,
    reports: Vec<Report>,
}

impl Left {
    /// The memory of each buffer of a launch.
    fn of(&self, step: &Step) -> Vec<usize> {
        let buffers = step.launch.buffers();
        let place = buffers.map(|buffer| self.places.get(&buffer.name).copied().unwrap_or(0));
        place.collect()
    }
}

struct Comparison<'c> {
    a: &'c Side,
    b: &'c Side,
    paired: &'c Paired,
    known: Known<'c>,
    options: &'c Options,
    terms: Terms,
    /// Names of buffers by the number that their inputs have.
    names: Vec<String>,
    elements: usize,
    /// Blocks that stand for all.
    chosen: Option<Chosen>,
    /// Zeros that turned out to be inputs: nobody writes them.
    zeros: Vec<String>,
}

/// An output element as both sides leave it.
#[derive(Clone, Copy)]
struct Element {
    output: usize,
    index: usize,
    /// For how many it stands.
    weight: usize,
    values: [Val; 2],
}

/// An output of both.
struct Output {
    name: String,
    ty: ElemType,
    number: u32,
}

impl<'c> Comparison<'c> {
    fn new(
        a: &'c Side,
        b: &'c Side,
        paired: &'c Paired,
        known: Known<'c>,
        options: &'c Options,
    ) -> Self {
        Comparison {
            a,
            b,
            paired,
            known,
            options,
            terms: Terms::default(),
            names: Vec::new(),
            elements: 0,
            chosen: None,
            zeros: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(Standing, Vec<Why>), Halt> {
        self.described_alike()?;
        let (mut first, mut second) = (self.prepared(Which::First), self.prepared(Which::Second));
        self.chosen = self.alike(&mut first, &mut second)?;
        let mut first = self.launched(Which::First, first, false)?;
        let once = self.terms.fusible;
        let mut second = self.launched(Which::Second, second, false)?;
        let fusible = self.terms.fusible;
        // What ptxas may fuse in one alone is rounded otherwise.
        let is_fused_alike = 2 * once == fusible;
        self.faults(Which::First, &first)?;
        self.faults(Which::Second, &second)?;
        self.zeros = self.zeros_read([&first, &second]);
        if !self.zeros.is_empty() {
            return Ok((Standing::Tested, Vec::new()));
        }
        let outputs = self.outputs(&first);
        let elements = self.compared(&outputs, &mut first, &mut second);
        self.elements = elements.iter().map(|e| e.weight).sum();
        let mut why = Vec::new();
        if let Some(chosen) = &self.chosen {
            why.push(Why::Alike(chosen.groups));
        }
        self.unwritten(&outputs, &elements)?;
        let (standing, probability) = self.equal(&outputs, &elements, &mut why)?;
        let begun = self.begun([&first, &second]);
        if !begun.is_empty() {
            why.push(Why::Begun(begun));
        }
        self.inputs_kept(&mut first, &mut second)?;
        let mut standing = standing;
        if let Some(probability) = probability {
            why.push(probability);
        }
        let both = [(Which::First, &first), (Which::Second, &second)];
        for (which, left) in both {
            if noted(left, Note::Lockstep) {
                standing = standing.max(Standing::Tested);
                why.push(Why::Lockstep(which));
            }
            if noted(left, Note::PassedBarrier) {
                standing = standing.max(Standing::Tested);
                why.push(Why::PassedBarrier(which));
            }
            if noted(left, Note::Exited) {
                why.push(Why::Exited(which));
            }
            if noted(left, Note::Printed) {
                standing = standing.max(Standing::Tested);
                why.push(Why::Printed(which));
            }
        }
        if both.iter().any(|(_, left)| noted(left, Note::ThreadOrder)) {
            standing = standing.max(Standing::Tested);
            why.push(Why::ThreadOrder);
        }
        if both.iter().any(|(_, left)| noted(left, Note::AtomicSum)) {
            standing = standing.max(Standing::UpToRounding);
            why.push(Why::AtomicSums);
        }
        let has = |note| both.iter().any(|(_, left)| noted(left, note));
        let shown = [self.a, self.b].map(shown_addresses);
        let shows = |side: &Shown| !side.is_empty();
        if has(Note::BlockOrder) || has(Note::Fragments) || shown.iter().any(shows) {
            let order = self.other_order(&outputs, &elements)?;
            if order == Standing::Tested {
                why.push(Why::OrderOpen);
            }
            standing = standing.max(order);
        }
        if has(Note::OrderShown) {
            // Of all orders these are two, and blocks run at one time, too.
            standing = standing.max(Standing::Tested);
            why.push(Why::BothOrders);
        }
        if shown[0] != shown[1] {
            standing = standing.max(Standing::Tested);
            why.push(Why::Places);
        }
        if let Some(state) = self.state((&first, &second), &outputs, &elements)? {
            standing = standing.max(Standing::Tested);
            why.push(state);
        }
        if standing <= Standing::ButNans && fusible > 0 {
            why.push(Why::Fusible(fusible));
            if !is_fused_alike {
                standing = Standing::UpToRounding;
            }
        }
        if let Some(output) = self.one_sided() {
            standing = standing.max(Standing::Tested);
            why.push(output);
        }
        let is_decided = why.iter().any(|why| matches!(why, Why::Decided { .. }));
        if standing == Standing::UpToRounding || is_decided {
            let (found, held) = self.held(is_decided)?;
            standing = standing.max(found);
            why.extend(held);
            if self.options.extremes {
                why.extend(self.lost()?);
            }
        }
        if standing == Standing::UpToRounding {
            why.extend(self.bounded(&outputs, &elements));
        }
        Ok((standing, why))
    }

    /// The reals have neither NaN nor infinity, and no rounding: on the described inputs both sides must leave numbers in
    /// the same places, as close to one another as the description wants them.
    /// What is further off than rounding is refutes, unless rounded values decide: then rounding may have done it.
    fn held(&self, is_decided: bool) -> Result<(Standing, Option<Why>), Halt> {
        let mut memory = filled(self.a, self.b, self.paired, self.known, Filling::Described);
        let witness = memory.clone();
        let [first, second] = &mut memory;
        if let Err(why) = run(self.a, Which::First, first) {
            let unheld = Why::Unheld(why.to_string());
            return Ok((Standing::UpToRounding, Some(unheld)));
        }
        if let Err(why) = run(self.b, Which::Second, second) {
            return Err(Halt::Found(Standing::Refuted, vec![why]));
        }
        let shown = |difference: Difference| Why::Shown {
            output: difference.output,
            index: difference.index,
            inputs: Filling::Described.text(),
            values: difference.values,
            witness: Box::new(witness.clone()),
        };
        if let Some(stray) = tested::stray(self.a, self.paired, &memory) {
            return Err(Halt::Found(Standing::Refuted, vec![shown(stray)]));
        }
        let ran = Ran {
            before: &witness,
            after: &memory,
            budget: tested::PATIENT,
        };
        match tested::beyond(self.a, self.b, self.paired, &ran) {
            None => Ok((Standing::UpToRounding, None)),
            Some((far, Some(tolerance))) => {
                let tolerance = format!("rel {:e}, abs {:e}", tolerance.rel, tolerance.abs);
                let beyond = Why::Beyond(far.output.clone(), tolerance);
                let why = vec![shown(far), beyond];
                Err(Halt::Found(Standing::Refuted, why))
            }
            Some((far, None)) if is_decided => {
                let Difference {
                    output,
                    index,
                    values,
                    ..
                } = far;
                let apart = Why::Apart {
                    output,
                    index,
                    values,
                };
                Ok((Standing::Tested, Some(apart)))
            }
            Some((far, None)) => {
                let output = far.output.clone();
                let why = vec![shown(far), Why::Far(output)];
                Err(Halt::Found(Standing::Refuted, why))
            }
        }
    }

    /// Where plain inputs lead the rewritten kernel out of the numbers and the original not: the ends of what is described,
    /// which refutes, and large numbers of either sign, which is said.
    fn lost(&self) -> Result<Option<Why>, Halt> {
        for shape in SHAPES {
            for large in [None, Some([-LARGE, LARGE])] {
                let Some((mut memory, inputs, is_described)) = self.plain(shape, large) else {
                    continue;
                };
                let witness = Box::new(memory.clone());
                let [first, second] = &mut memory;
                if run(self.a, Which::First, first).is_err()
                    || run(self.b, Which::Second, second).is_err()
                {
                    continue;
                }
                let Some(lost) = tested::lost(self.a, self.paired, &memory) else {
                    continue;
                };
                let Difference {
                    output,
                    index,
                    values,
                    ..
                } = lost;
                let lost = Why::Lost {
                    output,
                    index,
                    inputs,
                    values,
                    witness,
                };
                return match is_described {
                    true => Err(Halt::Found(Standing::Refuted, vec![lost])),
                    false => Ok(Some(lost)),
                };
            }
        }
        Ok(None)
    }

    /// Data of floating point that are one end or the other, by turns as a shape says: of their ranges, or of one for all.
    /// With them what they are, and whether descriptions allow it.
    fn plain(
        &self,
        shape: [usize; 2],
        large: Option<[f64; 2]>,
    ) -> Option<([Memory; 2], String, bool)> {
        let mut memory = filled(self.a, self.b, self.paired, self.known, Filling::Described);
        let (mut said, mut is_described) = (Vec::new(), true);
        for (name, own) in buffers(self.a) {
            let (ty, is_kept) = (own.buffer.ty, self.known.is_kept(&name, &own));
            if !ty.is_float() || is_kept || !pairing::is_data(&own) {
                continue;
            }
            let range = self.range(&name, &own);
            let ends = large.or(range.map(|range| [range.low, range.high]))?;
            let values = shape.map(|at| ends[at]);
            let holds = |x: f64| range.is_some_and(|range| range.low <= x && x <= range.high);
            is_described &= values.into_iter().all(holds);
            let bits = values.map(|x| ty.float_bits(x).to_le_bytes());
            let elements = (0..own.bytes.len() / ty.size()).map(|at| &bits[at % 2][..ty.size()]);
            let bytes = elements.collect::<Vec<&[u8]>>().concat();
            let partner = self.paired.partner.iter().find(|(_, x)| **x == name);
            if let Some((partner, _)) = partner {
                memory[1].insert(partner.clone(), bytes.clone());
            }
            said.push(match values {
                [one, other] if one == other => format!("{one} throughout `{name}`"),
                [one, other] => format!("{one} and {other} by turns in `{name}`"),
            });
            memory[0].insert(name, bytes);
        }
        (!said.is_empty()).then(|| (memory, said.join(", "), is_described))
    }

    /// How far rounding may move elements that are not the same, or all of them where all are.
    fn bounded(&mut self, outputs: &[Output], elements: &[Element]) -> Vec<Why> {
        let differ = |e: &&Element| e.values[0] != e.values[1];
        let is_same = !elements.iter().any(|e| differ(&e));
        let root = |element: &Element, terms: &mut Terms| Root {
            output: &outputs[element.output].name,
            index: element.index,
            domain: domain(outputs[element.output].ty),
            values: element.values.map(|value| terms.term(value)),
        };
        let chosen = elements.iter().filter(|e| is_same || differ(e));
        let roots: Vec<Root<'_>> = chosen.map(|e| root(e, &mut self.terms)).collect();
        errors::bounded(&self.terms, &self.names, &self.ranges(), &roots)
    }

    /// The numbers that each input may hold: as stated, else as described.
    fn ranges(&self) -> Vec<Option<Range>> {
        let (first, second) = (buffers(self.a), buffers(self.b));
        let range = |key: &String| {
            let (name, all) = match key.strip_suffix(OTHERS) {
                Some(name) => (name, &second),
                None => (key.as_str(), &first),
            };
            let (_, described) = all.iter().find(|(own, _)| own == name)?;
            self.range(name, described)
        };
        self.names.iter().map(range).collect()
    }

    fn range(&self, name: &str, described: &pairing::Described<'_>) -> Option<Range> {
        let mut ranges = self.options.ranges.iter();
        match ranges.find(|(own, ..)| own == name) {
            Some(&(_, low, high)) => Some(errors::stated(described.buffer, low, high)),
            None => errors::described(described),
        }
    }

    /// A buffer that both write and the other description alone calls an output.
    fn one_sided(&self) -> Option<Why> {
        let theirs = buffers(self.a);
        let mut all = buffers(self.b).into_iter().filter(|(_, own)| own.output);
        all.find_map(|(name, _)| {
            let partner = self.paired.partner.get(&name)?;
            let (_, first) = theirs.iter().find(|(x, _)| x == partner)?;
            (!first.output).then_some(Why::OneSided(name))
        })
    }

    fn side(&self, which: Which) -> &'c Side {
        match which {
            Which::First => self.a,
            Which::Second => self.b,
        }
    }

    // ---- running

    /// The memory of a side before its first launch.
    fn prepared(&mut self, which: Which) -> Left {
        let theirs = buffers(self.a);
        let mut left = Left {
            memory: Vec::new(),
            places: BTreeMap::new(),
            reports: Vec::new(),
        };
        for (name, described) in buffers(self.side(which)) {
            let partner = match which {
                Which::First => Some(&name),
                Which::Second => self.paired.partner.get(&name),
            };
            // The first side's description says what both begin with.
            let leading = partner.and_then(|x| theirs.iter().find(|(n, _)| n == x));
            let leading = leading.filter(|(_, other)| pairing::leads(other, &described));
            let (key, content) = match leading {
                Some((x, other)) => (x.clone(), self.content(x, other)),
                // An output of which its own description says nothing is the same memory.
                None if described.output && pairing::is_unset(&described) => {
                    let key = partner.unwrap_or(&name).clone();
                    (key, Content::Unset)
                }
                None => {
                    let key = format!("{name}{OTHERS}");
                    (key, self.content(&name, &described))
                }
            };
            let number = self.number(&key);
            left.places.insert(name.clone(), left.memory.len());
            let buffer = described.buffer;
            let mut memory = Buffer::new(&name, number, buffer.ty, buffer.len, &content);
            memory.logged = described.output;
            left.memory.push(memory);
        }
        if which == Which::Second {
            let own = self.own_constants().into_iter();
            left.memory.extend(own.map(|(_, buffer)| buffer));
        }
        left
    }

    fn content(&self, name: &str, described: &pairing::Described<'_>) -> Content {
        match () {
            () if self.known.is_kept(name, described) => Content::Known(described.bytes.to_vec()),
            () if pairing::is_unset(described) => Content::Unset,
            () => Content::Any,
        }
    }

    /// A buffer of either side under the first side's name.
    fn key(&self, which: Which, name: &str) -> String {
        let partner = match which {
            Which::First => None,
            Which::Second => self.paired.partner.get(name),
        };
        partner.map_or(name, String::as_str).to_owned()
    }

    /// Of what both begin with as described: what nobody writes, and what is read before it is written.
    fn relied(&self, [first, second]: [&Left; 2]) -> BTreeMap<String, Relied> {
        let mut all: BTreeMap<String, Relied> = BTreeMap::new();
        for (which, left) in [(Which::First, first), (Which::Second, second)] {
            for (name, described) in buffers(self.side(which)) {
                let Some(memory) = left.places.get(&name).and_then(|&at| left.memory.get(at))
                else {
                    continue;
                };
                let own = Relied {
                    is_zeros: matches!(described.buffer.init, Init::Zeros),
                    is_output: described.output,
                    is_table: described.buffer.table.is_some(),
                    ..Relied::default()
                };
                let known = all.entry(self.key(which, &name)).or_insert(own);
                known.is_written |= memory.written;
                known.is_read |= memory.relied;
            }
        }
        all.retain(|name, relied| {
            relied.is_read && !relied.is_table && !self.known.fixed.contains(name)
        });
        all
    }

    /// What results may depend on beside the inputs, and what it holds.
    fn begun(&self, both: [&Left; 2]) -> Vec<(String, Begun)> {
        let loaded = self.own_constants().into_iter().filter(|(_, own)| {
            let mut known = both[1].memory.iter();
            known.any(|memory| memory.name == own.name && memory.relied)
        });
        let how = |relied: &Relied| match relied.is_zeros {
            true => Begun::Zero,
            false => Begun::Described,
        };
        let buffers = self.relied(both).into_iter();
        let buffers = buffers.map(|(name, relied)| (name, how(&relied)));
        let loaded = loaded.map(|(name, _)| (name, Begun::Loaded));
        buffers.chain(loaded).collect()
    }

    /// Constants of the rewritten kernel that hold what their declarations say: the original has none of that name that a
    /// host may set, and no launch sets them.
    fn own_constants(&self) -> Vec<(String, Buffer)> {
        let set = self.a.steps.iter().chain(&self.b.steps);
        let set = set.flat_map(|step| &step.launch.symbols);
        let theirs = self
            .a
            .steps
            .iter()
            .flat_map(|step| step.program.variables());
        let known: BTreeSet<&str> = set.map(|symbol| &*symbol.name).chain(theirs).collect();
        let mut all: BTreeMap<String, Buffer> = BTreeMap::new();
        for step in &self.b.steps {
            let own = step.program.given_constants().into_iter();
            all.extend(own.filter(|(name, _)| !known.contains(&**name)));
        }
        all.into_iter().collect()
    }

    /// Zeros that are read and that no launch of either side writes: another input is as good.
    fn zeros_read(&self, left: [&Left; 2]) -> Vec<String> {
        let inputs = self.relied(left).into_iter();
        let inputs = inputs.filter(|(_, x)| x.is_zeros && !x.is_output && !x.is_written);
        let names = inputs.map(|(name, _)| name);
        names
            .filter(|name| !self.known.open.contains(name))
            .collect()
    }

    fn number(&mut self, key: &str) -> u32 {
        match self.names.iter().position(|name| name == key) {
            Some(at) => at as u32,
            None => {
                self.names.push(key.to_owned());
                self.names.len() as u32 - 1
            }
        }
    }

    /// Groups of blocks that stand for all, where each side is one launch.
    fn alike(&self, first: &mut Left, second: &mut Left) -> Result<Option<Chosen>, Halt> {
        let (a, b) = (self.a, self.b);
        if a.steps.len() != 1 || b.steps.len() != 1 {
            return Ok(None);
        }
        let name = |own: &str| match self.paired.partner.get(own) {
            Some(partner) => partner.clone(),
            None => format!("{own}{OTHERS}"),
        };
        let own = first.memory.iter().map(|buffer| buffer.name.clone());
        let theirs = second.memory.iter().map(|buffer| name(&buffer.name));
        let names = [own.collect(), theirs.collect()];
        let places = [first.of(&a.steps[0]), second.of(&b.steps[0])];
        let outputs = self.outputs(first).into_iter().map(|output| output.name);
        let outputs: Vec<String> = outputs.collect();
        let memories = [(a, &mut first.memory), (b, &mut second.memory)];
        let each = memories.into_iter().zip(names).zip(places);
        let mut sides = each.map(|(((side, memory), names), places)| Launched {
            side,
            memory,
            places,
            names,
        });
        let (Some(one), Some(other)) = (sides.next(), sides.next()) else {
            return Ok(None);
        };
        let found = chosen(&mut [one, other], &outputs, &self.options.machine);
        found.map_err(|(at, stop)| self.stopped([Which::First, Which::Second][at], stop))
    }

    fn launched(&mut self, which: Which, mut left: Left, reversed: bool) -> Result<Left, Halt> {
        let chosen = self.chosen.as_ref();
        let options = MachineOptions {
            reversed,
            only: chosen.map(|chosen| chosen.blocks[which as usize].clone()),
            ..self.options.machine.clone()
        };
        for step in &self.side(which).steps {
            let places = left.of(step);
            let report = step.program.run_on_terms(
                &step.launch,
                &mut self.terms,
                &mut left.memory,
                &places,
                &options,
            );
            left.reports
                .push(report.map_err(|stop| self.stopped(which, stop))?);
        }
        Ok(left)
    }

    fn stopped(&self, which: Which, stop: Stop) -> Halt {
        let charged = match which {
            Which::First => Standing::WrongInput,
            Which::Second => Standing::Refuted,
        };
        match stop {
            Stop::Fault(fault) => Halt::Found(charged, vec![Why::Faulty { which, fault }]),
            Stop::Launch(error) => {
                let text = error.to_string();
                let why = Why::Launch { which, text };
                Halt::Found(Standing::WrongInput, vec![why])
            }
            Stop::Refused(refusal, place) => {
                let of = self.about(&refusal);
                let place = at(&place);
                let why = Why::Refused {
                    which,
                    refusal,
                    place,
                    of: of.clone(),
                };
                Halt::Refused(Box::new(why), of)
            }
        }
    }

    /// The buffers whose elements a refusal is about.
    fn about(&self, refusal: &Refusal) -> Vec<String> {
        let id = match *refusal {
            Refusal::Address(id)
            | Refusal::Loop(id)
            | Refusal::Operand(id)
            | Refusal::Collective(id) => id,
            _ => return Vec::new(),
        };
        let numbers = leaves(&self.terms, &[id]).inputs;
        let names = numbers
            .into_iter()
            .filter_map(|number| self.names.get(number as usize));
        names.cloned().collect()
    }

    fn faults(&self, which: Which, left: &Left) -> Result<(), Halt> {
        let race = left
            .reports
            .iter()
            .flat_map(|report| report.races.first())
            .next();
        match race {
            None => Ok(()),
            Some(fault) => {
                let fault = Box::new(fault.clone());
                Err(self.stopped(which, Stop::Fault(fault)))
            }
        }
    }

    // ---- comparing

    /// Data and outputs have one size in both descriptions; what a kernel alone works in need not.
    fn described_alike(&self) -> Result<(), Halt> {
        let second = buffers(self.b);
        for (x, first) in buffers(self.a) {
            let is_data = !pairing::is_unset(&first) && !pairing::is_given(&first);
            let partner = self.paired.partner.iter().find(|(_, own)| **own == x);
            let partner = partner.and_then(|(y, _)| second.iter().find(|(name, _)| name == y));
            let Some((y, other)) = partner.filter(|_| first.output || is_data) else {
                continue;
            };
            let bytes = [first.buffer.size(), other.buffer.size()];
            if bytes[0] != bytes[1] {
                let names = [x, y.clone()];
                let why = Why::Shape { names, bytes };
                return Err(Halt::Found(Standing::WrongInput, vec![why]));
            }
        }
        Ok(())
    }

    fn outputs(&self, first: &Left) -> Vec<Output> {
        let all = buffers(self.a).into_iter().filter(|(_, d)| d.output);
        let output = |(name, described): (String, pairing::Described<'_>)| {
            let &at = first.places.get(&name)?;
            Some(Output {
                number: first.memory[at].number,
                name,
                ty: described.buffer.ty,
            })
        };
        all.filter_map(output).collect()
    }

    fn compared(
        &mut self,
        outputs: &[Output],
        first: &mut Left,
        second: &mut Left,
    ) -> Vec<Element> {
        let mut all = Vec::new();
        for (number, output) in outputs.iter().enumerate() {
            let partner = self.paired.partner.iter().find(|(_, x)| **x == output.name);
            let places = [
                first.places.get(&output.name).copied(),
                partner.and_then(|(y, _)| second.places.get(y).copied()),
            ];
            let [Some(x), Some(y)] = places else { continue };
            let size = output.ty.size();
            for index in 0..first.memory[x].elements() {
                let chosen = self.chosen.as_ref();
                let weight = chosen.map(|chosen| chosen.weight(&output.name, index * size));
                let Some(weight) = weight.unwrap_or(Some(1)) else {
                    continue;
                };
                let values = [
                    first.memory[x].element(&mut self.terms, index),
                    second.memory[y].element(&mut self.terms, index),
                ];
                all.push(Element {
                    output: number,
                    index,
                    weight,
                    values,
                });
            }
        }
        all
    }

    /// Are all elements the same, bit for bit or over the reals?
    fn equal(
        &mut self,
        outputs: &[Output],
        elements: &[Element],
        why: &mut Vec<Why>,
    ) -> Result<(Standing, Option<Why>), Halt> {
        self.unset(outputs, elements)?;
        let unequal: Vec<&Element> = elements
            .iter()
            .filter(|e| e.values[0] != e.values[1])
            .collect();
        let all = unequal.len();
        let unequal = self.but_for_nans(outputs, unequal);
        let same = all - unequal.len();
        if same > 0 {
            why.push(Why::Nans {
                elements: same,
                of: self.elements,
            });
        }
        if unequal.is_empty() {
            let standing = match same {
                0 => Standing::BitForBit,
                _ => Standing::ButNans,
            };
            return Ok((standing, None));
        }
        let (different, decided) = self.over_the_reals(outputs, &unequal);
        let Some(&first) = different.first() else {
            // Integers that are equal modulo the primes may still be others modulo a power of two.
            let are_integers = |e: &&&Element| !domain(outputs[e.output].ty).is_float();
            if let Some(element) = unequal.iter().find(are_integers) {
                match self.shown_on_numbers(element.values) {
                    Ok(None) => {}
                    Ok(Some(shown)) => return Err(Halt::Found(Standing::Refuted, vec![shown])),
                    Err(why) => return Err(Halt::Found(Standing::Refuted, vec![why])),
                }
            }
            let probability = self.probability(unequal.len());
            let reals = Why::Reals {
                elements: unequal.iter().map(|e| e.weight).sum(),
                of: self.elements,
                probability,
            };
            let exactly = match same {
                0 => Standing::BitForBit,
                _ => Standing::ButNans,
            };
            return Ok(match (self.are_exact(outputs, &unequal), decided) {
                (true, _) => (exactly, Some(Why::Integers(probability))),
                (false, None) => (Standing::UpToRounding, Some(reals)),
                (false, Some(decided)) => {
                    why.push(decided);
                    (Standing::Tested, Some(reals))
                }
            });
        };
        let element = unequal[first];
        let name = outputs[element.output].name.clone();
        let described = outputs[element.output].ty;
        if let Some(stored) = self.stored_otherwise(described, element.values) {
            let why = Why::Type {
                output: name,
                described,
                stored,
            };
            return Err(Halt::Found(Standing::WrongInput, vec![why]));
        }
        let values = element.values.map(|value| self.shown(value));
        let differs = Why::Differs {
            output: name.clone(),
            index: element.index,
            elements: different.iter().map(|&at| unequal[at].weight).sum(),
            values,
        };
        match self.shown_on_numbers(element.values) {
            Ok(Some(shown)) => Err(Halt::Found(Standing::Refuted, vec![differs, shown])),
            Ok(None) => {
                let tried = FILLINGS.len();
                let index = element.index;
                let not_shown = Why::NotShown {
                    output: name,
                    index,
                    tried,
                };
                why.push(differs);
                Ok((Standing::Tested, Some(not_shown)))
            }
            Err(why) => Err(Halt::Found(Standing::Refuted, vec![why])),
        }
    }

    /// Those of some elements that are not the same even where the bits of a NaN do not count. Of many, where that is so of
    /// none of those looked at first, it is not asked of the others: what is the same so is over the reals, too.
    fn but_for_nans<'e>(
        &mut self,
        outputs: &[Output],
        elements: Vec<&'e Element>,
    ) -> Vec<&'e Element> {
        let is_number = |e: &&Element| domain(outputs[e.output].ty).is_float();
        let numbers: Vec<&Element> = elements.iter().copied().filter(is_number).collect();
        let every = numbers.len() / SAMPLE;
        let few = numbers.iter().step_by(every.max(1)).copied();
        if every > MANY && !self.are_same_numbers(few).contains(&true) {
            return elements;
        }
        let mut found = self.are_same_numbers(numbers.into_iter()).into_iter();
        let mut is_same = |e: &&Element| is_number(e) && found.next() == Some(true);
        elements.into_iter().filter(|e| !is_same(e)).collect()
    }

    /// Of each element, whether both values are one where the bits of a NaN do not count.
    fn are_same_numbers<'e>(&mut self, elements: impl Iterator<Item = &'e Element>) -> Vec<bool> {
        let values = elements.flat_map(|e| e.values);
        let roots: Vec<Id> = values.map(|value| self.terms.term(value)).collect();
        let found = self.terms.without_nans(&roots);
        let pairs = found.as_chunks::<2>().0.iter();
        pairs.map(|[x, y]| x == y).collect()
    }

    /// The first of some elements that are equal over the reals where not the same is decided by the same bits; `Err`:
    /// nothing is decided in any.
    fn decided(
        &mut self,
        outputs: &[Output],
        elements: &[&Element],
    ) -> Result<Option<Why>, Undecided> {
        const SEED: u64 = 3;
        let mut roots = Vec::new();
        for element in elements {
            let domain = domain(outputs[element.output].ty);
            for value in element.values {
                let id = self.terms.term(value);
                // A number stays one in whatever memory it is left.
                let own = Some(self.terms.domain(id)).filter(|own| own.is_float());
                roots.push((id, own.unwrap_or(domain)));
            }
        }
        let roots = Roots::new(&self.terms, roots);
        let telling = roots.telling(&self.terms).ok_or(Undecided)?;
        let exact = Reals::exact(&self.terms, SEED).evaluated(&telling);
        let values = Reals::deciding(&self.terms, SEED, exact).of(&roots);
        let pairs = values.as_chunks::<2>().0.iter().zip(elements);
        let mut apart = pairs.filter(|([x, y], _)| x.p != y.p).map(|(_, e)| e);
        Ok(apart.next().map(|first| Why::Decided {
            output: outputs[first.output].name.clone(),
            index: first.index,
            elements: first.weight + apart.map(|e| e.weight).sum::<usize>(),
        }))
    }

    /// Are elements integers made of integers alone?
    fn are_exact(&self, outputs: &[Output], elements: &[&Element]) -> bool {
        let roots: Vec<Val> = elements.iter().flat_map(|e| e.values).collect();
        let mut types = elements.iter().map(|e| domain(outputs[e.output].ty));
        !types.any(Domain::is_float) && is_exact(&self.terms, &roots)
    }

    /// The floating-point type that both sides store where the description says another.
    fn stored_otherwise(&self, described: ElemType, values: [Val; 2]) -> Option<ElemType> {
        // Pieces of a number are integers.
        let is_piece = |value: Val| match value {
            Val::Term(id) => matches!(self.terms.node(id).kind(), Kind::Extract | Kind::Concat),
            Val::Bits(_) => false,
        };
        if !described.is_float() && values.into_iter().any(is_piece) {
            return None;
        }
        let [x, y] = values.map(|value| self.stored(value));
        let stored = x.filter(|_| x == y)?;
        (stored != described).then_some(stored)
    }

    /// The floating-point type of what is stored, of parts and pieces put together too.
    fn stored(&self, value: Val) -> Option<ElemType> {
        let Val::Term(mut id) = value else {
            return None;
        };
        while matches!(self.terms.node(id).kind(), Kind::Extract | Kind::Concat) {
            id = self.terms.node(id).a;
        }
        match self.terms.domain(id) {
            Domain::F16 => Some(ElemType::F16),
            Domain::Bf16 => Some(ElemType::Bf16),
            Domain::F32 => Some(ElemType::F32),
            Domain::F64 => Some(ElemType::F64),
            _ => None,
        }
    }

    /// Elements that are other functions over the reals, by their place among those given; if there are none, what
    /// decides otherwise in one where roundings differ.
    ///
    /// Two random points are tried. Where something decides, the second one is that at which equal values are made of
    /// equal decisions: these are equal functions all the more.
    fn over_the_reals(
        &mut self,
        outputs: &[Output],
        elements: &[&Element],
    ) -> (Vec<usize>, Option<Why>) {
        let mut roots = Vec::new();
        for element in elements {
            let domain = domain(outputs[element.output].ty);
            for value in element.values {
                roots.push((self.terms.term(value), domain));
            }
        }
        let is_whole = roots.iter().any(|&(_, domain)| is_whole(domain));
        let roots = Roots::new(&self.terms, roots);
        let first = self.apart(&roots, 1);
        if !first.is_empty() {
            return (first, None);
        }
        let decided = self.decided(outputs, elements);
        match decided {
            Ok(None) if !is_whole => (Vec::new(), None),
            decided => (self.apart(&roots, 2), decided.unwrap_or_default()),
        }
    }

    /// Pairs of roots whose values differ at a random point.
    fn apart(&self, roots: &Roots, seed: u64) -> Vec<usize> {
        let values = Reals::new(&self.terms, seed).of(roots);
        let pairs = values.as_chunks::<2>().0.iter().enumerate();
        let differs = |&(at, [x, y]): &(usize, &[Value; 2])| match is_whole(roots.domain(2 * at)) {
            true => x != y,
            false => x.p != y.p,
        };
        pairs.filter(differs).map(|(at, _)| at).collect()
    }

    /// Schwartz and Zippel: the degree is below the number of terms, the field has 2⁵⁷ elements, two points are tried.
    fn probability(&self, elements: usize) -> i32 {
        let log = |n: usize| (n.max(1) as f64).log2().ceil() as i32;
        (2 * (log(self.terms.len()) - 57) + log(elements)).min(-1)
    }

    /// Inputs on which the emulator shows a difference.
    fn shown_on_numbers(&self, values: [Val; 2]) -> Result<Option<Why>, Why> {
        let guarded = guards::fillings(&self.terms, values);
        let plain = FILLINGS.into_iter().map(|filling| (filling, Vec::new()));
        // Inputs that a condition asks for, on top of the described ones.
        let guarded = guarded.into_iter().map(|set| (Filling::Described, set));
        // An element that only one of both looks at shows in a maximum, too, where it is far from all others.
        let alone = guards::alone(&self.terms, values).into_iter();
        let far = alone.flat_map(|given| {
            let extremes = self.extremes(given.buffer).into_iter().flatten();
            extremes.map(move |value| (Filling::Described, vec![guards::Given { value, ..given }]))
        });
        let mut scale = Scale::new();
        for (filling, set) in plain.chain(guarded).chain(far) {
            let fixed = &kept(self.a, self.known.fixed, self.options)[..];
            let known = Known {
                fixed,
                ..self.known
            };
            let mut memory = filled(self.a, self.b, self.paired, known, filling);
            for given in &set {
                self.give(&mut memory, given);
            }
            let witness = memory.clone();
            let [first, second] = &mut memory;
            if run(self.a, Which::First, first).is_err() {
                continue;
            }
            run(self.b, Which::Second, second)?;
            if filling == Filling::Described && set.is_empty() {
                scale = tested::scale(self.a, self.paired, &memory);
            }
            let sides = [self.a, self.b];
            let ran = Ran {
                before: &witness,
                after: &memory,
                budget: tested::PATIENT,
            };
            let found = differences(sides, self.paired, (filling, &scale), &ran);
            if let Some(difference) = found.into_iter().find(|d| !d.small) {
                return Ok(Some(Why::Shown {
                    output: difference.output,
                    index: difference.index,
                    inputs: self.inputs_text(filling, &set),
                    values: difference.values,
                    witness: Box::new(witness),
                }));
            }
        }
        Ok(None)
    }

    /// The bits of the least and the largest value that an element of an input may have, as far as it is described.
    fn extremes(&self, number: u32) -> Option<[u64; 2]> {
        let name = self.names.get(number as usize)?;
        let all = buffers(self.a);
        let (_, described) = all.iter().find(|(other, _)| other == name)?;
        let ty = described.buffer.ty;
        match tested::integers(described.buffer) {
            Some((low, high)) => Some([ty.int_bits(low)?, ty.int_bits(high)?]),
            None if ty.is_float() => Some([-1000.0, 1000.0].map(|value| ty.float_bits(value))),
            None => None,
        }
    }

    /// Writes an element of an input on both sides.
    fn give(&self, [first, second]: &mut [Memory; 2], given: &guards::Given) {
        let Some(name) = self.names.get(given.buffer as usize) else {
            return;
        };
        let size = given.bits as usize / 8;
        let at = given.element as usize * size;
        let put = |bytes: Option<&mut Vec<u8>>| {
            let place = bytes.and_then(|bytes| bytes.get_mut(at..at + size));
            if let Some(place) = place {
                place.copy_from_slice(&given.value.to_le_bytes()[..size]);
            }
        };
        put(first.get_mut(name));
        let partner = self.paired.partner.iter().find(|(_, x)| *x == name);
        put(partner.and_then(|(y, _)| second.get_mut(y)));
    }

    fn inputs_text(&self, filling: Filling, set: &[guards::Given]) -> String {
        let one = |given: &guards::Given| {
            let name = self
                .names
                .get(given.buffer as usize)
                .map_or("?", String::as_str);
            format!("`{name}[{}]` of bits {:#x}", given.element, given.value)
        };
        match set {
            [] => filling.text(),
            set => {
                let all: Vec<String> = set.iter().map(one).collect();
                format!("{}, but {}", filling.text(), all.join(", "))
            }
        }
    }

    /// Elements that depend on what nobody has written.
    fn unset(&mut self, outputs: &[Output], elements: &[Element]) -> Result<(), Halt> {
        let mut seen = Seen::default();
        // Where both are one term, what stands in it is no matter of the rewriting.
        let differ = elements.iter().filter(|e| e.values[0] != e.values[1]);
        for element in differ {
            let own = outputs[element.output].number;
            let found = element.values.map(|value| match value {
                Val::Bits(_) => Seen::CLEAN,
                Val::Term(id) if is_own(&self.terms, id, (own, element.index)) => Seen::CLEAN,
                Val::Term(id) => seen.reaches_unset(&self.terms, id, own),
            });
            let which = match found.map(|found| found != Seen::CLEAN) {
                [false, false] => continue,
                [false, true] => Which::Second,
                _ => Which::First,
            };
            let standing = match which {
                Which::First => Standing::WrongInput,
                Which::Second => Standing::Refuted,
            };
            let worst = found.into_iter().max().unwrap_or(Seen::CLEAN);
            let why = Why::Unset {
                which,
                output: outputs[element.output].name.clone(),
                index: element.index,
                of: Seen::text(worst),
            };
            if worst >= Seen::MEMORY {
                return Err(Halt::Found(standing, vec![why]));
            }
            return match self.shown_on_numbers(element.values) {
                Ok(None) => Err(Halt::Found(standing, vec![why])),
                Ok(Some(shown)) => Err(Halt::Found(standing, vec![why, shown])),
                Err(fault) => Err(Halt::Found(standing, vec![why, fault])),
            };
        }
        Ok(())
    }

    /// Elements that one side alone leaves as they were. Of what stood there before and was read, both may have made the
    /// same, and a store of it shows in no term: that counts where numbers tell.
    fn unwritten(&mut self, outputs: &[Output], elements: &[Element]) -> Result<(), Halt> {
        for (which, side) in [(Which::Second, 1), (Which::First, 0)] {
            let is_alone = |e: &&Element| {
                self.is_left(outputs, e, side) && !self.is_left(outputs, e, 1 - side)
            };
            let alone: Vec<&Element> = elements.iter().filter(is_alone).collect();
            let Some(&first) = alone.first() else {
                continue;
            };
            let shown = match self.is_input(first.values[side]) {
                false => None,
                true => match self.kept_or_shown(outputs, first)? {
                    None => continue,
                    shown => shown,
                },
            };
            let (output, index) = (outputs[first.output].name.clone(), first.index);
            let elements_alone = alone.len();
            // An original that leaves others as they were, too, and so does the rewrite, is not at fault for this one.
            let is_kept = |e: &Element| {
                let is_left = |side| self.is_left(outputs, e, side);
                e.output == first.output && is_left(0) && is_left(1)
            };
            if which == Which::First && elements.iter().any(is_kept) {
                let why = Why::Overwritten {
                    output,
                    index,
                    elements: elements_alone,
                };
                let why = [why].into_iter().chain(shown).collect();
                return Err(Halt::Found(Standing::Refuted, why));
            }
            let standing = match which {
                Which::First => Standing::WrongInput,
                Which::Second => Standing::Refuted,
            };
            let why = Why::Unwritten {
                which,
                output,
                index,
                elements: elements_alone,
                is_input: shown.is_some(),
            };
            let why = [why].into_iter().chain(shown).collect();
            return Err(Halt::Found(standing, why));
        }
        let left = |e: &Element, side| self.is_left(outputs, e, side);
        let all = elements.iter().all(|e| left(e, 0) && left(e, 1));
        match elements.first() {
            Some(first) if all => {
                let why = Why::Unwritten {
                    which: Which::First,
                    output: outputs[first.output].name.clone(),
                    index: first.index,
                    elements: elements.len(),
                    is_input: false,
                };
                Err(Halt::Found(Standing::WrongInput, vec![why]))
            }
            _ => Ok(()),
        }
    }

    /// Does a side leave an element as it was?
    fn is_left(&self, outputs: &[Output], element: &Element, side: usize) -> bool {
        match element.values[side] {
            Val::Term(id) => {
                let own = outputs[element.output].number;
                is_own(&self.terms, id, (own, element.index))
            }
            Val::Bits(_) => false,
        }
    }

    /// Is it an element of an input, whole?
    fn is_input(&self, value: Val) -> bool {
        match value {
            Val::Term(id) => self.terms.node(id).kind() == Kind::Input,
            Val::Bits(_) => false,
        }
    }

    /// Inputs on which an element that one side leaves as it was is another one on the other side.
    fn kept_or_shown(
        &mut self,
        outputs: &[Output],
        element: &Element,
    ) -> Result<Option<Why>, Halt> {
        if self.over_the_reals(outputs, &[element]).0.is_empty() {
            return Ok(None);
        }
        let shown = self.shown_on_numbers(element.values);
        shown.map_err(|why| Halt::Found(Standing::Refuted, vec![why]))
    }

    /// Buffers that are no outputs of the original and that the second alone writes.
    fn inputs_kept(&mut self, first: &mut Left, second: &mut Left) -> Result<(), Halt> {
        let theirs = buffers(self.a);
        let outputs = theirs.iter().filter(|(_, described)| described.output);
        let outputs: BTreeSet<&String> = outputs.map(|(name, _)| name).collect();
        for (name, _) in buffers(self.b) {
            let Some(x) = self.paired.partner.get(&name) else {
                continue;
            };
            let theirs = first
                .places
                .get(x)
                .map(|&at| (at, first.memory[at].written));
            let (Some((at, false)), false) = (theirs, outputs.contains(x)) else {
                continue;
            };
            let Some(&own) = second.places.get(&name) else {
                continue;
            };
            if !second.memory[own].written {
                continue;
            }
            for index in 0..second.memory[own].elements() {
                let before = first.memory[at].element(&mut self.terms, index);
                let after = second.memory[own].element(&mut self.terms, index);
                if before != after {
                    let why = Why::InputWritten {
                        which: Which::Second,
                        buffer: name,
                        index,
                    };
                    return Err(Halt::Found(Standing::Refuted, vec![why]));
                }
            }
        }
        Ok(())
    }

    /// A variable of the module in which the next launch finds something else, where it could show.
    ///
    /// # Errors
    /// It does show: another launch of the rewritten kernel does something else than its first.
    fn state(
        &mut self,
        (first, second): (&Left, &Left),
        outputs: &[Output],
        elements: &[Element],
    ) -> Result<Option<Why>, Halt> {
        let same = |other: &Buffer, all: &[Buffer]| {
            let known = all.iter().find(|buffer| buffer.name == other.name);
            known.map(|buffer| buffer.holds_as(other))
        };
        let left = first.memory.iter().filter(|buffer| buffer.is_state());
        for buffer in left {
            if same(buffer, &second.memory) == Some(false) {
                return Ok(Some(Why::State(Which::First, buffer.name.clone())));
            }
        }
        let left = second.memory.iter().filter(|buffer| buffer.is_state());
        let left = left.filter(|buffer| same(buffer, &first.memory) != Some(true));
        let left: Vec<Buffer> = left.cloned().collect();
        let Some(name) = left.first().map(|buffer| buffer.name.clone()) else {
            return Ok(None);
        };
        // What is written before it is read is nothing that a launch leaves to the next one.
        let forgotten = left.iter().map(Buffer::forgotten).collect();
        if let Ok(again) = self.launched_again(forgotten, outputs, elements)
            && again.iter().all(|e| e.values[0] == e.values[1])
        {
            return Ok(None);
        }
        // Of an original that is for one launch, too, nothing can be wanted.
        let is_for_one = first.memory.iter().any(Buffer::is_state);
        if !is_for_one && let Ok(again) = self.launched_again(left, outputs, elements) {
            let unequal: Vec<&Element> = again
                .iter()
                .filter(|e| e.values[0] != e.values[1])
                .collect();
            if let Some(&at) = self.over_the_reals(outputs, &unequal).0.first() {
                let why = Why::SecondLaunch {
                    variable: name,
                    output: outputs[unequal[at].output].name.clone(),
                    index: unequal[at].index,
                };
                return Err(Halt::Found(Standing::Refuted, vec![why]));
            }
        }
        Ok(Some(Why::State(Which::Second, name)))
    }

    /// Elements as the rewritten kernel leaves them, and as it does where variables of the module hold something else.
    fn launched_again(
        &mut self,
        variables: Vec<Buffer>,
        outputs: &[Output],
        elements: &[Element],
    ) -> Result<Vec<Element>, Halt> {
        let mut again = self.prepared(Which::Second);
        again.memory.extend(variables);
        let mut again = self.launched(Which::Second, again, false)?;
        let mut both = Vec::new();
        for element in elements {
            let output = &outputs[element.output].name;
            let partner = self.paired.partner.iter().find(|(_, x)| *x == output);
            let Some(&at) = partner.and_then(|(y, _)| again.places.get(y)) else {
                continue;
            };
            let value = again.memory[at].element(&mut self.terms, element.index);
            both.push(Element {
                values: [element.values[1], value],
                ..*element
            });
        }
        Ok(both)
    }

    /// The last block first: each side must leave what it did the other way round.
    fn other_order(&mut self, outputs: &[Output], elements: &[Element]) -> Result<Standing, Halt> {
        let mut standing = Standing::BitForBit;
        let (first, second) = (self.prepared(Which::First), self.prepared(Which::Second));
        let mut first = self.launched(Which::First, first, true)?;
        let mut second = self.launched(Which::Second, second, true)?;
        let others = self.compared(outputs, &mut first, &mut second);
        for (which, side) in [(Which::First, 0), (Which::Second, 1)] {
            let mixed: Vec<Element> = elements
                .iter()
                .zip(&others)
                .map(|(one, other)| Element {
                    output: one.output,
                    index: one.index,
                    weight: one.weight,
                    values: [one.values[side], other.values[side]],
                })
                .filter(|e| e.values[0] != e.values[1])
                .collect();
            let mixed: Vec<&Element> = mixed.iter().collect();
            let (different, _) = self.over_the_reals(outputs, &mixed);
            if !self.are_exact(outputs, &mixed) {
                standing = standing.max(Standing::UpToRounding);
            }
            // Functions with a choice in them may be one and have no form that tells.
            let is_told = |comparison: &mut Self, at: usize| {
                let domain = domain(outputs[mixed[at].output].ty);
                let places = mixed[at]
                    .values
                    .map(|value| (comparison.terms.term(value), domain));
                let roots = Roots::new(&comparison.terms, places.to_vec());
                roots.telling(&comparison.terms).is_none()
            };
            let told = different.iter().copied().find(|&at| is_told(self, at));
            if let Some(at) = told {
                let element = mixed[at];
                let standing = match which {
                    Which::First => Standing::WrongInput,
                    Which::Second => Standing::Refuted,
                };
                let why = Why::Differs {
                    output: outputs[element.output].name.clone(),
                    index: element.index,
                    elements: different.len(),
                    values: element.values.map(|value| self.shown(value)),
                };
                return Err(Halt::Found(standing, vec![why]));
            }
            if !different.is_empty() {
                standing = Standing::Tested;
            }
        }
        Ok(standing)
    }

    // ---- words

    /// A value as a term, to the depth at which it fits.
    fn shown(&self, value: Val) -> String {
        let id = match value {
            Val::Bits(bits) => return format!("{bits:#x}"),
            Val::Term(id) => id,
        };
        let texts = (1..=4).rev().map(|depth| self.text(id, depth));
        let fitting = texts.into_iter().find(|text| text.len() <= SHOWN);
        fitting.unwrap_or_else(|| self.text(id, 1))
    }

    fn text(&self, id: Id, depth: u32) -> String {
        let node = self.terms.node(id);
        let args = || {
            let args: Vec<String> = node.args().map(|arg| self.text(arg, depth - 1)).collect();
            args.join(", ")
        };
        match node.kind() {
            Kind::Const => self.constant(id),
            Kind::Input => {
                let name = self.names.get(node.a as usize).map_or("?", String::as_str);
                format!("{name}[{}]", node.b)
            }
            Kind::Unset => "unset".to_owned(),
            _ if depth == 0 => "…".to_owned(),
            Kind::App => format!("{}({})", self.terms.name(node.imm()).0, args()),
            Kind::Select => format!("select({})", args()),
            kind => {
                let name = format!("{kind:?}").to_lowercase();
                format!("{}({})", name.trim_start_matches(['f', 'i']), args())
            }
        }
    }

    fn constant(&self, id: Id) -> String {
        let bits = self.terms.bits_of(id).unwrap_or(0);
        let single = f32::from_bits(bits as u32);
        match bits {
            0..=9_999 => bits.to_string(),
            _ if bits >> 32 == 0 && single.is_normal() => single_text(single),
            _ => format!("{bits:#x}"),
        }
    }
}

/// A constant of single precision.
fn single_text(x: f32) -> String {
    match x.abs() {
        1e-4..1e16 => x.to_string(),
        _ => format!("{x:e}"),
    }
}

/// Buffers that hold what is described whatever is tried: not those of any numbers, unless the user names them.
fn kept(a: &Side, fixed: &[String], options: &Options) -> Vec<String> {
    let all = buffers(a);
    let is_any = |name: &String| {
        let own = all.iter().find(|(other, _)| other == name);
        own.is_some_and(|(_, described)| matches!(described.buffer.init, Init::Normal { .. }))
    };
    let is_kept = |name: &&String| options.fixed.contains(name) || !is_any(name);
    fixed.iter().filter(is_kept).cloned().collect()
}

/// What was not done on terms is tried on numbers.
fn tested(
    a: &Side,
    b: &Side,
    paired: &Paired,
    known: Known<'_>,
    refused: Why,
) -> (Standing, Vec<Why>) {
    let mut exactly = true;
    let mut tried = 0;
    let budget = match &refused {
        Why::Refused { refusal, .. } if *refusal == Refusal::Waiting => tested::WAITING,
        _ => tested::PATIENT,
    };
    let mut scale = Scale::new();
    for filling in FILLINGS {
        let mut memory = filled(a, b, paired, known, filling);
        let witness = memory.clone();
        let [first, second] = &mut memory;
        if let Err(why) = run_within(a, Which::First, first, budget) {
            if filling == FILLINGS[0] {
                return (Standing::WrongInput, vec![refused, why]);
            }
            continue;
        }
        if let Err(why) = run_within(b, Which::Second, second, budget) {
            return (Standing::Refuted, vec![refused, why]);
        }
        tried += 1;
        if filling == Filling::Described {
            scale = tested::scale(a, paired, &memory);
        }
        let ran = Ran {
            before: &witness,
            after: &memory,
            budget,
        };
        for difference in differences([a, b], paired, (filling, &scale), &ran) {
            exactly = false;
            if !difference.small {
                let shown = Why::Shown {
                    output: difference.output,
                    index: difference.index,
                    inputs: filling.text(),
                    values: difference.values,
                    witness: Box::new(witness),
                };
                return (Standing::Refuted, vec![refused, shown]);
            }
        }
    }
    (
        Standing::Tested,
        vec![refused, Why::Agrees { tried, exactly }],
    )
}

fn noted(left: &Left, note: Note) -> bool {
    left.reports
        .iter()
        .any(|report| report.notes.contains(&note))
}

pub(crate) fn domain(ty: ElemType) -> Domain {
    match ty {
        ElemType::F16 => Domain::F16,
        ElemType::Bf16 => Domain::Bf16,
        ElemType::F32 => Domain::F32,
        ElemType::F64 => Domain::F64,
        other => Domain::int(8 * other.size() as u32),
    }
}

/// Is it this element of the output itself, never written? Others of the same buffer are what a kernel in place moves there.
fn is_own(terms: &Terms, id: Id, (number, index): (u32, usize)) -> bool {
    let mut node = terms.node(id);
    while matches!(node.kind(), Kind::Extract | Kind::Concat) {
        node = terms.node(node.a);
    }
    match node.kind() {
        Kind::Unset => Unset::of(node.a) == Unset::Global(number),
        Kind::Input => node.a == number && node.b as usize == index,
        _ => false,
    }
}

/// Is all that values are made of integers, whose identities hold bit for bit?
fn is_exact(terms: &Terms, roots: &[Val]) -> bool {
    let mut seen = vec![false; terms.len()];
    let mut stack: Vec<Id> = roots
        .iter()
        .filter_map(|value| match value {
            Val::Term(id) => Some(*id),
            Val::Bits(_) => None,
        })
        .collect();
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut seen[id as usize], true) {
            continue;
        }
        let node = terms.node(id);
        let takes_floats = match node.kind() {
            Kind::FCvt => true,
            Kind::Cmp => Cmp(node.imm()).domain().is_float(),
            Kind::App => {
                let (name, domain) = terms.name(node.imm());
                name.starts_with("cvt") || domain.is_float()
            }
            _ => false,
        };
        if takes_floats || terms.domain(id).is_float() {
            return false;
        }
        stack.extend(node.args());
    }
    true
}

/// What a side does with addresses but access memory by them, where that may show.
fn shown_addresses(side: &Side) -> Shown {
    let mut all = Shown::new();
    for step in &side.steps {
        for (what, count) in step.program.shown_addresses(&step.launch) {
            *all.entry(what).or_default() += count;
        }
    }
    all
}

/// Which buffers' elements a term is made of.
struct Leaves {
    inputs: BTreeSet<u32>,
}

fn leaves(terms: &Terms, roots: &[Id]) -> Leaves {
    let mut seen = BTreeSet::new();
    let mut stack = roots.to_vec();
    let mut inputs = BTreeSet::new();
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = terms.node(id);
        if node.kind() == Kind::Input {
            inputs.insert(node.a);
        }
        stack.extend(node.args());
    }
    Leaves { inputs }
}

/// Which terms depend on memory or registers that nobody has written, but for an output's own elements.
#[derive(Default)]
struct Seen {
    own: Option<u32>,
    states: Vec<u8>,
}

impl Seen {
    const CLEAN: u8 = 1;
    const REGISTER: u8 = 2;
    const MEMORY: u8 = 3;
    const LANE: u8 = 4;

    fn text(state: u8) -> &'static str {
        match state {
            Self::LANE => {
                "memory that nobody has written, or on a lane that takes no part in a shuffle"
            }
            Self::MEMORY => "memory that nobody has written",
            _ => "a register that nobody has set",
        }
    }

    fn reaches_unset(&mut self, terms: &Terms, root: Id, own: u32) -> u8 {
        if self.own.replace(own) != Some(own) {
            self.states.clear();
        }
        // Arguments stand before what is made of them.
        for id in self.states.len()..=root as usize {
            let node = terms.node(id as Id);
            let itself = match node.kind() {
                Kind::Unset if Unset::of(node.a) == Unset::Register => Self::REGISTER,
                Kind::Unset if Unset::of(node.a) == Unset::Lane => Self::LANE,
                Kind::Unset if Unset::of(node.a) != Unset::Global(own) => Self::MEMORY,
                _ => Self::CLEAN,
            };
            let parts = node.args().map(|arg| self.states[arg as usize]);
            self.states.push(parts.fold(itself, u8::max));
        }
        self.states[root as usize]
    }
}
