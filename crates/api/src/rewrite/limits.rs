//! How large a launch may be before an index of 32 bits overflows.
//!
//! No size that terms take shows it. So each parameter that grows a buffer is set to where the largest one passes 2²⁴
//! elements, and 2³¹ or 2³² bytes or elements, and some blocks of both sides run for their addresses alone, those among
//! them that come to where numbers of fewer bits end. The first such size at which one of the two leaves its memory,
//! writes to one place in two threads, or has a block that writes nothing, is narrowed down to the parameter's value, as far
//! as these blocks show it. What the original does there, too, is no fault of the rewriting.

use serde::Serialize;
use warpwright_launch::Launch;
use warpwright_ptx::Module;
use warpwright_rewrite::{Look, Looked, Side, Which, addresses};

use super::{Condition, NEAR, RewriteOptions, Try, known, parameters, scales};
use crate::optimise::launch_among;
use crate::{Error, Input};

/// At which value addresses are right in the blocks looked at, and at which they are not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// The parameter; the others are those of the smallest size.
    pub name: String,
    /// The largest value looked at at which no fault was found. Of those below it some were looked at.
    pub up_to: i64,
    /// The next one that was tried, and what is wrong there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<Beyond>,
    /// Both in a sentence: `in the blocks looked at, no index is wrong at n = 46340, and one is at n = 46341: …`.
    pub text: String,
}

impl Limit {
    fn new(name: &str, up_to: i64, beyond: Option<Beyond>) -> Limit {
        let text = match &beyond {
            None => {
                format!("in the blocks looked at, no index is wrong at {name} = {up_to}")
            }
            Some(Beyond { value, why, .. }) => format!(
                "in the blocks looked at, no index is wrong at {name} = {up_to}, and one is at {name} = {value}: {why}"
            ),
        };
        Limit {
            name: name.to_owned(),
            up_to,
            beyond,
            text,
        }
    }
}

/// What is wrong at a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Beyond {
    /// The value.
    pub value: i64,
    /// Of which kernel.
    pub which: Which,
    /// What.
    pub why: String,
}

/// Bytes and elements at which an index may overflow.
const EDGES: [u64; 2] = [1 << 31, 1 << 32];
/// Elements that are many, and that all numbers of 24 bits and more count.
const LARGE: u64 = 1 << 20;
/// Elements at which a whole number in single precision ends.
const SINGLE: u64 = 1 << 24;
/// Bytes of a buffer that is looked at.
const MOST: u64 = 1 << 37;
/// The limits of each parameter, and the elements of the largest buffer that was looked at.
pub(super) fn of(
    inputs: [&Input; 2],
    modules: &[Module; 2],
    options: &RewriteOptions<'_>,
    (smallest, sides): (&Try, [Side; 2]),
) -> (Vec<Limit>, u64) {
    let requires = options.requires.iter();
    let requires = requires.filter_map(|text| Condition::parse(text).ok());
    let mut search = Search {
        inputs,
        modules,
        options,
        smallest,
        sides,
        requires: requires.collect(),
        usual: Vec::new(),
        quiet: [false; 2],
        twice: [false; 2],
        elements: 0,
    };
    let Some(usual) = search.usual() else {
        return (Vec::new(), 0);
    };
    search.usual = usual;
    let (names, _) = scales(options);
    let limits = names.into_iter().filter_map(|name| search.limit(name));
    let limits = limits.collect();
    (limits, search.elements)
}

struct Search<'s> {
    inputs: [&'s Input; 2],
    modules: &'s [Module; 2],
    options: &'s RewriteOptions<'s>,
    smallest: &'s Try,
    sides: [Side; 2],
    requires: Vec<Condition>,
    /// What blocks of both sides do at the smallest size.
    usual: Vec<Looked>,
    /// Of which side blocks write nothing though no index wraps.
    quiet: [bool; 2],
    /// Of which side two threads of a block write to one place though no index wraps.
    twice: [bool; 2],
    elements: u64,
}

/// What was found at a value.
enum Found {
    Right,
    Wrong(Which, String),
    /// Nothing tells.
    Open,
}

impl Search<'_> {
    fn usual(&self) -> Option<Vec<Looked>> {
        let sides = self.sides.iter().zip([Which::First, Which::Second]);
        let looked = sides.map(|(side, which)| addresses(side, which, Look::QUICK));
        looked.map(|looked| looked.ok().flatten()).collect()
    }

    /// What blocks do here that they do not at the smallest size.
    fn unusual(&self, which: Which, looked: Looked) -> Option<String> {
        let usual = &self.usual[which as usize];
        let met = looked.met.filter(|_| usual.met.is_none());
        let twice = looked.twice.filter(|_| !self.twice[which as usize]);
        if let Some(met) = met {
            let ([(a, _), (b, _)], byte, memory) = (met.writers, met.byte, met.memory);
            let text = format!("writes byte {byte} of `{memory}` in block {a} and in block {b}");
            return Some(format!("{which} {text}"));
        }
        if let Some(met) = twice {
            let ([(block, a), (_, b)], byte, memory) = (met.writers, met.byte, met.memory);
            let text = format!(
                "writes byte {byte} of `{memory}` in thread {a} and in thread {b} of block {block}"
            );
            return Some(format!("{which} {text}"));
        }
        let silent = looked.silent.filter(|_| !self.quiet[which as usize])?;
        Some(format!("{which} writes nothing in block {silent}"))
    }

    fn at(&self, name: &str, value: i64) -> Try {
        self.smallest.derived(name, value)
    }

    /// The launches of both sides with another value of a parameter.
    fn launches(&self, name: &str, value: i64) -> Result<[Vec<Launch>; 2], Error> {
        let at = self.at(name, value);
        let side = |which: usize| {
            let module = &self.modules[which];
            let kernels: Vec<String> = module.kernels().map(|(_, f)| f.name.to_string()).collect();
            let files = self.options.launches[which].iter();
            let launches = files.map(|file| {
                let launch = file.resolve(&at.size, &known(file, &at))?;
                launch_among(&launch, &self.inputs[which].name, &kernels)
            });
            launches.collect::<Result<Vec<Launch>, Error>>()
        };
        Ok([side(0)?, side(1)?])
    }

    /// Bytes and elements of the largest buffer at a value; `None` where there is no such launch.
    fn extents(&self, name: &str, value: i64) -> Option<[u64; 2]> {
        let launches = self.launches(name, value).ok()?;
        let buffers = launches.iter().flatten().flat_map(Launch::buffers);
        let extents = buffers.map(|buffer| {
            let elements = buffer.len as u64;
            [elements.saturating_mul(buffer.ty.size() as u64), elements]
        });
        let all = extents.fold([0, 0], |[a, b], [c, d]| [a.max(c), b.max(d)]);
        (all[0] <= MOST).then_some(all)
    }

    fn holds(&self, name: &str, value: i64) -> bool {
        let values = parameters(self.options, &self.at(name, value));
        self.requires.iter().all(|required| required.holds(&values))
    }

    /// The least value above another one at which the largest buffer has so many bytes, or elements.
    fn edge(&self, name: &str, from: i64, (measure, edge): (usize, u64)) -> Option<i64> {
        let is_there = |value: i64| self.extents(name, value).map(|all| all[measure] > edge);
        let (mut low, mut high) = (from, from);
        while !is_there(high)? {
            low = high;
            high = high.checked_mul(2)?;
            // The last doubling may be too much where the edge is not.
            while is_there(high).is_none() {
                high = low + (high - low) / 2;
                if high == low {
                    return None;
                }
            }
        }
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match is_there(middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        (high..high + NEAR).find(|&value| self.holds(name, value))
    }

    /// Sets both sides to another value of a parameter; none where there is no such launch.
    fn set(&mut self, name: &str, value: i64) -> Option<()> {
        let launches = self.launches(name, value).ok()?;
        for (side, launches) in self.sides.iter_mut().zip(launches) {
            for (step, launch) in side.steps.iter_mut().zip(launches) {
                step.launch = launch;
            }
        }
        Some(())
    }

    /// Finds which sides have blocks that write nothing, and blocks of which two threads write to one place, though no
    /// index of 24 bits wraps. Where the original has some, the rewritten kernel may have some, too.
    fn habits(&mut self, name: &str, from: i64) {
        let large = self.edge(name, from, (1, LARGE));
        let is_set = large.is_some_and(|value| self.set(name, value).is_some());
        let looked = [Which::First, Which::Second].map(|which| {
            let side = &self.sides[which as usize];
            let looked = is_set.then(|| addresses(side, which, Look::QUICK));
            looked.and_then(|looked| looked.ok().flatten())
        });
        let has = |which: usize, is_it: &dyn Fn(&Looked) -> bool| {
            is_it(&self.usual[which]) || looked[which].as_ref().is_some_and(is_it)
        };
        let silent = |looked: &Looked| looked.silent.is_some();
        let twice = |looked: &Looked| looked.twice.is_some();
        let is_large = looked[0].as_ref().is_some_and(silent);
        self.quiet = [has(0, &silent), silent(&self.usual[1]) || is_large];
        self.twice = [has(0, &twice), has(0, &twice) || has(1, &twice)];
    }

    fn look(&mut self, name: &str, value: i64, look: Look) -> Found {
        if self.set(name, value).is_none() {
            return Found::Open;
        }
        let found = self.looked(look);
        if !matches!(found, Found::Open) {
            let extents = self.extents(name, value);
            self.elements = self.elements.max(extents.map_or(0, |all| all[1]));
        }
        found
    }

    /// What both sides do as they are set.
    fn looked(&self, look: Look) -> Found {
        for (side, which) in self.sides.iter().zip([Which::First, Which::Second]) {
            match addresses(side, which, look) {
                Ok(Some(looked)) if looked.blocks > 0 => {
                    if let Some(why) = self.unusual(which, looked) {
                        return Found::Wrong(which, why);
                    }
                }
                Ok(_) => return Found::Open,
                Err(why) => return Found::Wrong(which, why.to_string()),
            }
        }
        Found::Right
    }

    fn limit(&mut self, name: &str) -> Option<Limit> {
        let from = *parameters(self.options, self.smallest).get(name)?;
        self.habits(name, from.max(1));
        let mut right = None;
        let edges = EDGES.into_iter().flat_map(|edge| [(0, edge), (1, edge)]);
        let edges = edges.chain([(1, SINGLE)]);
        let edges = edges.filter_map(|edge| self.edge(name, from.max(1), edge));
        let mut values: Vec<i64> = edges.collect();
        values.sort_unstable();
        values.dedup();
        for value in values {
            match self.look(name, value, Look::QUICK) {
                Found::Right => right = Some(value),
                Found::Open => break,
                Found::Wrong(which, why) => {
                    let low = right.unwrap_or(from);
                    return Some(self.narrowed(name, low, (value, which, why)));
                }
            }
        }
        right.map(|up_to| Limit::new(name, up_to, None))
    }

    /// Between a value at which all is right and one at which it is not: where that begins.
    fn narrowed(&mut self, name: &str, mut low: i64, wrong: (i64, Which, String)) -> Limit {
        let (mut high, mut which, mut why) = wrong;
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            let down = (low + 1..=middle).rev().take(NEAR as usize);
            let Some(value) = down.into_iter().find(|&value| self.holds(name, value)) else {
                break;
            };
            match self.look(name, value, Look::SHORT) {
                Found::Right => low = value,
                Found::Wrong(of, what) => (high, which, why) = (value, of, what),
                Found::Open => break,
            }
        }
        let value = high;
        Limit::new(name, low, Some(Beyond { value, which, why }))
    }
}
