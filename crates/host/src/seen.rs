//! What a launch was given when its program ran: it goes before what the code says. Where both agree the code's names
//! stay, for other sizes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use crate::code::{Amount, Argument, Described, Memory, Op, Root};
use warpwright_launch::{Buffer, ElemType, Init, Launch};

use crate::error::{Error, Strange};
use crate::layout::{Layout, Opaque, Sort};

/// The least number that is a size and no constant.
const SIZE: i64 = 16;
/// Of a size, that many times it may be another.
const TIMES: Range<i64> = 2..17;

/// Values of names.
pub type Sizes = BTreeMap<Rc<Root>, i64>;

/// A launch that was seen, with the places of the parameters in its bytes.
pub struct Seen<'a> {
    launch: &'a Launch,
    pointers: Vec<Pointed>,
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

/// A pointer among the bytes, and what it points to.
struct Pointed {
    at: usize,
    allocation: usize,
    offset: usize,
    /// Bytes to the end of the allocation.
    left: usize,
    /// What all bytes of the allocation were, if that is known.
    byte: Option<u8>,
}

impl Pointed {
    /// What tells memory apart.
    fn id(&self) -> String {
        format!("allocation {}+{}", self.allocation, self.offset)
    }
}

/// A part of the bytes: a parameter or a member of one.
type Part = Range<usize>;

impl<'a> Seen<'a> {
    /// Of a launch with the bytes that its program gave.
    pub fn new(launch: &'a Launch) -> Seen<'a> {
        let (mut pointers, mut bytes, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for arg in &launch.args {
            let start = bytes.len();
            bytes.extend_from_slice(&arg.bytes);
            places.push(start..bytes.len());
            pointers.extend(arg.pointers.iter().map(|pointer| {
                let memory = launch.memory.get(pointer.of);
                let size = memory.map_or(0, Buffer::size);
                Pointed {
                    byte: memory.and_then(|memory| match memory.init {
                        Init::Fill(byte) => u8::try_from(byte).ok(),
                        _ => None,
                    }),
                    at: start + pointer.at,
                    allocation: pointer.of,
                    offset: pointer.offset,
                    left: size.saturating_sub(pointer.offset),
                }
            }));
        }
        Seen {
            launch,
            pointers,
            bytes,
            places,
        }
    }

    /// The values of names with which the code's launch is this one; none if it is another, or not known.
    pub fn sizes(&self, own: &Described, sorts: &[(String, Sort)]) -> Option<Sizes> {
        let mut sizes = Sizes::new();
        let arguments = own.arguments.iter().flatten();
        for ((argument, (_, sort)), part) in arguments.zip(sorts).zip(&self.places) {
            if let (Some(Amount::Root(root)), Some(number)) =
                (&argument.integer, self.integer(sort, part))
            {
                sizes.insert(root.clone(), number);
            }
        }
        let value = |root: &Root| value(&sizes, root);
        let is_it = |own: &[Option<Amount>], seen: [u32; 3]| {
            let number = |at: usize| match own.get(at) {
                Some(amount) => amount.as_ref().filter(|a| !a.has_element())?.at(&value),
                None => Some(1),
            };
            !own.is_empty() && (0..3).all(|at| number(at) == Some(seen[at].into()))
        };
        let Launch { grid, block, .. } = self.launch;
        (is_it(&own.grid, *grid) && is_it(&own.block, *block)).then_some(sizes)
    }

    /// What all bytes of memory were before the launch, if they were alike.
    pub fn filled(&self, memory: &Memory) -> Option<u8> {
        let mut pointers = self.pointers.iter();
        pointers.find(|pointer| pointer.id() == memory.id)?.byte
    }

    /// Blocks per cluster, if it is launched in clusters.
    pub fn cluster(&self) -> Option<[u32; 3]> {
        self.launch.cluster
    }

    /// The grid, as far as it is made of sizes that were handed over.
    pub fn grid(&self, sorts: &[(String, Sort)]) -> Vec<Option<Amount>> {
        let known = self.scalars(sorts);
        let extent = |at: usize| {
            let seen = i64::from(self.launch.grid[at]);
            let threads = i64::from(self.launch.block[at]);
            let is_it = |(_, n): &&(Amount, i64)| {
                threads > 1 && (n + threads - 1) / threads == seen && seen > 1
            };
            match known.iter().find(is_it) {
                Some((size, _)) => {
                    Amount::binary(Op::CeilDiv, size.clone(), Amount::Number(threads))
                }
                None => made_of(&known, seen),
            }
        };
        (0..3).map(|at| Some(extent(at))).collect()
    }

    /// What it hands over; with the sizes of the code's launch, if that is this one.
    pub fn arguments(
        &self,
        own: &Described,
        sorts: &[(String, Sort)],
        sizes: Option<&Sizes>,
    ) -> Vec<Argument> {
        let read = own.arguments.clone();
        let read = read.filter(|all| all.len() == sorts.len());
        let read = read.unwrap_or_else(|| vec![Argument::default(); sorts.len()]);
        let mut known = sizes.map_or_else(Vec::new, |sizes| named(own, sizes));
        known.extend(self.scalars(sorts));
        let none = Sizes::new();
        let sizes = sizes.unwrap_or(&none);
        let all = read.into_iter().zip(sorts).zip(&self.places);
        all.map(|((read, (name, sort)), part)| match sort {
            Sort::Scalar(layout) => self.value(read, layout, part, (name, sizes, &known)),
            Sort::Memory(to) => {
                let size = to.layout.size();
                self.memory(read, part, (size, sizes, &known))
            }
            Sort::Table(_) | Sort::Bytes(_) => read,
        })
        .collect()
    }

    /// The bytes of a parameter that is not understood.
    ///
    /// # Errors
    /// It holds pointers.
    pub fn opaque(&self, at: usize, value: &Opaque) -> Result<&[u8], Error> {
        let part = self.places.get(at).cloned().unwrap_or_default();
        let mut pointers = self.pointers.iter();
        match pointers.any(|pointer| part.contains(&pointer.at)) {
            true => Err(Strange::Bytes(value.written.clone()).of(&value.name)),
            false => Ok(self.bytes.get(part).unwrap_or_default()),
        }
    }

    /// Integers that are sizes, each with its value.
    fn scalars(&self, sorts: &[(String, Sort)]) -> Vec<(Amount, i64)> {
        let all = sorts.iter().zip(&self.places);
        let mut found: Vec<(Amount, i64)> = Vec::new();
        for ((name, sort), part) in all {
            let number = self.integer(sort, part).filter(|n| *n >= SIZE);
            if let Some(number) = number
                && found.iter().all(|(_, other)| *other != number)
            {
                found.push((Root::literal(name, number), number));
            }
        }
        found
    }

    fn integer(&self, sort: &Sort, part: &Part) -> Option<i64> {
        match sort {
            Sort::Scalar(Layout::Elements(element, 1, _)) if !element.is_float() => {
                self.number(*element, part)
            }
            _ => None,
        }
    }

    /// An integer among the bytes, as its type has it.
    fn number(&self, element: ElemType, part: &Part) -> Option<i64> {
        let bits = element.read(self.bytes.get(part.clone())?);
        let (low, high) = element.int_range();
        let number = i128::from(bits);
        let number = if number > high {
            number - high + low - 1
        } else {
            number
        };
        i64::try_from(number).ok()
    }

    fn value(
        &self,
        read: Argument,
        layout: &Layout,
        part: &Part,
        (name, sizes, known): (&str, &Sizes, &[(Amount, i64)]),
    ) -> Argument {
        match layout {
            Layout::Elements(element, 1, _) if element.is_float() => {
                let bits = self
                    .bytes
                    .get(part.clone())
                    .map(|bytes| element.read(bytes));
                let real = bits
                    .map(|bits| element.to_f64(bits))
                    .filter(|n| n.is_finite());
                Argument {
                    real: real.or(read.real),
                    parts: Vec::new(),
                    ..read
                }
            }
            Layout::Elements(element, 1, _) => {
                let seen = self.number(*element, part);
                let integer = seen.map(|seen| agreed(read.integer.as_ref(), seen, sizes, known));
                Argument { integer, ..read }
            }
            Layout::Elements(element, _, _) => {
                let parts = part.clone().step_by(element.size());
                let one = |at: usize| {
                    let layout = Layout::Elements(*element, 1, element.size());
                    let none = Argument::default();
                    let part = at..at + element.size();
                    self.value(none, &layout, &part, (name, sizes, known))
                };
                let parts = parts.map(one).collect();
                Argument { parts, ..read }
            }
            Layout::Pointer(to) => self.memory(read, part, (to.layout.size(), sizes, known)),
            Layout::Structure(all) => {
                let mut end = part.start;
                let mut members = Vec::new();
                for (name, member) in all {
                    let start = end.next_multiple_of(member.align());
                    end = start + member.size();
                    let own = read.members.iter().find(|(own, _)| own == name);
                    let own = own.map(|(_, own)| own.clone()).unwrap_or_default();
                    let own = self.value(own, member, &(start..end), (name, sizes, known));
                    members.push((name.clone(), own));
                }
                Argument { members, ..read }
            }
        }
    }

    /// A pointer.
    fn memory(
        &self,
        read: Argument,
        part: &Part,
        (element, sizes, known): (usize, &Sizes, &[(Amount, i64)]),
    ) -> Argument {
        let mut pointers = self.pointers.iter();
        let pointer = pointers.find(|pointer| pointer.at == part.start);
        let Some(pointer) = pointer else {
            let is_null = self.bytes.get(part.clone());
            let is_null = is_null.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0));
            return match is_null {
                true => Argument {
                    text: "nullptr".to_owned(),
                    memory: None,
                    ..read
                },
                false => read,
            };
        };
        let left = pointer.left as i64;
        let element = element.max(1) as i64;
        let bytes = read
            .memory
            .as_ref()
            .and_then(|memory| memory.bytes.as_ref());
        let bytes = bytes.and_then(|bytes| {
            let with = |root: &Root| value(sizes, root);
            let own = bytes.with(&|_| None, element);
            (own.at(&with) == Some(left)).then(|| bytes.clone())
        });
        let bytes = bytes.unwrap_or_else(|| {
            let count = made_of(known, left / element);
            count.times(Amount::Number(element))
        });
        let memory = Memory {
            id: pointer.id(),
            bytes: Some(bytes),
            is_moved: false,
        };
        Argument {
            memory: Some(memory),
            ..read
        }
    }
}

/// The names that the code's launch is made of, each with its value, as far as that is a size.
fn named(own: &Described, sizes: &Sizes) -> Vec<(Amount, i64)> {
    let arguments = own.arguments.iter().flatten();
    let memory = arguments.filter_map(|argument| argument.memory.as_ref()?.bytes.as_ref());
    let mut found: Vec<(Amount, i64)> = Vec::new();
    for amount in own.grid.iter().flatten().chain(memory) {
        let mut roots = BTreeSet::new();
        amount.roots(&mut roots, &mut BTreeSet::new());
        let roots = roots.into_iter().filter(|root| !root.name.is_empty());
        found.extend(roots.filter_map(|root| {
            let number = value(sizes, &root).filter(|n| *n >= SIZE)?;
            Some((Amount::Root(root), number))
        }));
    }
    found
}

fn value(sizes: &Sizes, root: &Root) -> Option<i64> {
    let own = sizes.iter().find(|(own, _)| ***own == *root);
    own.map(|(_, number)| *number).or(root.value)
}

/// What the code says where that is what was seen, else the number, by a name where it is a size.
fn agreed(read: Option<&Amount>, seen: i64, sizes: &Sizes, known: &[(Amount, i64)]) -> Amount {
    let own = read.filter(|read| read.at(&|root| value(sizes, root)) == Some(seen));
    let named = || known.iter().find(|(_, number)| *number == seen);
    match (own, named()) {
        (Some(own), _) => own.clone(),
        (None, Some((size, _))) => size.clone(),
        (None, None) => Amount::Number(seen),
    }
}

/// A number as sizes make it: one of them, two multiplied, one more than one, or a few times one.
fn made_of(known: &[(Amount, i64)], number: i64) -> Amount {
    let one = |(size, _): &(Amount, i64)| size.clone();
    if let Some(found) = known.iter().find(|(_, n)| *n == number) {
        return one(found);
    }
    if let Some(found) = known.iter().find(|(_, n)| n + 1 == number) {
        return Amount::binary(Op::Add, one(found), Amount::Number(1));
    }
    for (at, a) in known.iter().enumerate() {
        let mut others = known[at..].iter();
        if let Some(b) = others.find(|b| a.1.checked_mul(b.1) == Some(number)) {
            return one(a).times(one(b));
        }
    }
    for times in TIMES {
        let mut all = known.iter();
        if let Some(found) = all.find(|(_, n)| n.checked_mul(times) == Some(number)) {
            return one(found).times(Amount::Number(times));
        }
    }
    Amount::Number(number)
}
