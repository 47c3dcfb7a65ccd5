//! What a launch was given when its program ran, by the names of the sizes that it hands over.

use std::ops::Range;

use warpwright_launch::{Buffer, ElemType, Init, Launch, Op};

use crate::amount::{Amount, Root};
use crate::error::{Error, Strange};
use crate::layout::{Layout, Opaque, Sort};

/// The least number that is a size and no constant.
const SIZE: i64 = 16;
/// Of a size, that many times it may be another.
const TIMES: Range<i64> = 2..17;

/// What a launch hands over for one parameter.
#[derive(Clone, Debug, Default)]
pub struct Argument {
    /// If it is an integer.
    pub integer: Option<Amount>,
    /// If it is a floating-point number.
    pub real: Option<f64>,
    /// If it is a pointer that points somewhere.
    pub memory: Option<Memory>,
    /// It is a null pointer.
    pub is_null: bool,
    /// If it is a structure: what a member of it is, by name.
    pub members: Vec<(String, Argument)>,
    /// If it is a vector: its parts.
    pub parts: Vec<Argument>,
}

/// Memory of a pointer.
#[derive(Clone, Debug)]
pub struct Memory {
    /// What tells it from other memory.
    pub id: (usize, usize),
    /// Elements up to its end.
    pub count: Amount,
    /// What all bytes of it were, if they were alike.
    pub byte: Option<u8>,
}

/// Sizes that a launch hands over, each with its value.
pub type Sizes = [(Amount, i64)];

/// Of integers with their names those that are sizes; of two that are the same the first.
pub fn sizes(integers: impl IntoIterator<Item = (String, i64)>) -> Vec<(Amount, i64)> {
    let mut found: Vec<(Amount, i64)> = Vec::new();
    for (name, number) in integers {
        if number >= SIZE && found.iter().all(|(_, other)| *other != number) {
            found.push((Root::amount(&name, Some(number)), number));
        }
    }
    found
}

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

    /// Blocks per cluster, if it is launched in clusters.
    pub fn cluster(&self) -> Option<[u32; 3]> {
        self.launch.cluster
    }

    /// Sizes that it hands over.
    pub fn sizes(&self, sorts: &[(String, Sort)]) -> Vec<(Amount, i64)> {
        let mut all = Vec::new();
        for ((name, sort), part) in sorts.iter().zip(&self.places) {
            if let Sort::Scalar(layout) = sort {
                self.integers(name, layout, part, &mut all);
            }
        }
        sizes(all)
    }

    /// The integers in a value, by their names.
    fn integers(&self, name: &str, layout: &Layout, part: &Part, all: &mut Vec<(String, i64)>) {
        match layout {
            Layout::Elements(element, 1, _) if !element.is_float() => {
                let number = self.number(*element, part);
                all.extend(number.map(|number| (name.to_owned(), number)));
            }
            Layout::Structure(members) => {
                for (member, layout, part) in placed(members, part.start) {
                    // `w[2]` is no name.
                    let member = member.replace(|c: char| !c.is_alphanumeric(), "_");
                    let name = format!("{name}_{}", member.trim_end_matches('_'));
                    self.integers(&name, layout, &part, all);
                }
            }
            Layout::Elements(..) | Layout::Pointer(_) => {}
        }
    }

    /// What it hands over.
    pub fn arguments(&self, sorts: &[(String, Sort)], known: &Sizes) -> Vec<Argument> {
        let all = sorts.iter().zip(&self.places);
        all.map(|((_, sort), part)| match sort {
            Sort::Scalar(layout) => self.value(layout, part, known),
            Sort::Memory(to) => self.memory(part, to.layout.size(), known),
            Sort::Table(_) => self.memory(part, 8, known),
            Sort::Bytes(_) => Argument::default(),
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

    fn value(&self, layout: &Layout, part: &Part, known: &Sizes) -> Argument {
        let none = Argument::default();
        match layout {
            Layout::Elements(element, 1, _) if element.is_float() => {
                let bytes = self.bytes.get(part.clone());
                let real = bytes.map(|bytes| element.to_f64(element.read(bytes)));
                let real = real.filter(|n| n.is_finite());
                Argument { real, ..none }
            }
            Layout::Elements(element, 1, _) => {
                let integer = self.number(*element, part);
                let integer = integer.map(|seen| named(known, seen));
                Argument { integer, ..none }
            }
            Layout::Elements(element, _, _) => {
                let one = Layout::Elements(*element, 1, element.size());
                let parts = part.clone().step_by(element.size());
                let parts = parts.map(|at| self.value(&one, &(at..at + element.size()), known));
                let parts = parts.collect();
                Argument { parts, ..none }
            }
            Layout::Pointer(to) => self.memory(part, to.layout.size(), known),
            Layout::Structure(all) => {
                let members = placed(all, part.start);
                let members =
                    members.map(|(name, layout, part)| (name, self.value(layout, &part, known)));
                Argument {
                    members: members.collect(),
                    ..none
                }
            }
        }
    }

    /// A pointer to elements of so many bytes.
    fn memory(&self, part: &Part, element: usize, known: &Sizes) -> Argument {
        let mut pointers = self.pointers.iter();
        let pointer = pointers.find(|pointer| pointer.at == part.start);
        let bytes = self.bytes.get(part.clone());
        let memory = pointer.map(|pointer| Memory {
            id: (pointer.allocation, pointer.offset),
            count: made_of(known, (pointer.left / element.max(1)) as i64),
            byte: pointer.byte,
        });
        Argument {
            is_null: memory.is_none()
                && bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)),
            memory,
            ..Argument::default()
        }
    }
}

/// Members of a structure that begins at a place, each with its own.
fn placed(
    members: &[(String, Layout)],
    start: usize,
) -> impl Iterator<Item = (String, &Layout, Part)> {
    members.iter().scan(start, |end, (name, layout)| {
        let start = end.next_multiple_of(layout.align());
        *end = start + layout.size();
        Some((name.clone(), layout, start..*end))
    })
}

/// A number, by a name where it is a size.
pub fn named(known: &Sizes, number: i64) -> Amount {
    let found = known.iter().find(|(_, n)| *n == number);
    found.map_or(Amount::Number(number), |(size, _)| size.clone())
}

/// An extent of a grid, if it is made of sizes: a block for so many threads, that many blocks, or a block for a few times
/// its threads, with nothing left.
pub fn blocks(known: &Sizes, extent: u32, threads: u32) -> Option<Amount> {
    let (extent, threads) = (i64::from(extent), i64::from(threads));
    if extent == 1 || threads == 1 {
        let made = made_of(known, extent);
        return (made != Amount::Number(extent)).then_some(made);
    }
    let of_each = |each: i64, has_rest: bool| {
        let is_it = |n: i64| (n + each - 1) / each == extent && (has_rest || n % each == 0);
        let found = known.iter().find(|(_, n)| is_it(*n));
        found.map(|(size, _)| Amount::binary(Op::CeilDiv, size.clone(), Amount::Number(each)))
    };
    let made = || Some(made_of(known, extent)).filter(|made| *made != Amount::Number(extent));
    let several = || {
        TIMES
            .into_iter()
            .find_map(|times| of_each(times * threads, false))
    };
    of_each(threads, true).or_else(made).or_else(several)
}

/// A number as sizes make it: one of them, two multiplied, one more than one, or a few times one.
fn made_of(known: &Sizes, number: i64) -> Amount {
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
