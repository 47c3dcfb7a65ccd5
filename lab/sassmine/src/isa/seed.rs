//! From one instruction to a form: flip its bits, see what the text does, and put the rules together.
//!
//! Each stage asks the oracle a set of questions; all seeds of a round go through a stage together, so
//! that a few runs of nvdisasm serve hundreds of seeds.
//!
//! 1. Flip each bit alone. A bit that changes one number belongs to that number's field; one that
//!    changes modifiers is active; one that changes the shape of the text, or a number and a modifier
//!    at once (an alias), is fixed; one that changes nothing is silent.
//! 2. Flip active bits in pairs, with illegal and silent ones nearby. Bits whose joint effect is not
//!    the sum of the single ones belong to one modifier field.
//! 3. Enumerate each modifier field.
//! 4. Set modifier fields two at a time: the texts give the order in which modifiers are written, and
//!    fields that do not act independently are joined (then 3 and 4 again).
//! 5. Set all numbers to ordinary values, and all but one or two. If that takes a name away (IMAD.MOV
//!    stands where one of two factors is RZ), the numbers that must stay for it are fixed.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_sass::isa::form::{Form, Kind, Piece};

use super::assemble;
use super::oracle::Answer;
use super::tokens::{Mark, Parsed};

/// First and last operation bit that is flipped: the guard's and the opcode's are known.
pub const BITS: std::ops::Range<u8> = 16..105;
/// The operand-reuse bits of the control field, which have a text.
pub const REUSE: std::ops::Range<u8> = 122..126;
const GUARD_BIT: u8 = 12;
/// Stall and yield: with a stall of 4 and the yield bit set, nvdisasm takes every reuse bit that means
/// something and prints it; with the bit clear it takes all and prints none.
const STALL: u8 = 105;
/// Wider modifier fields are not enumerated.
const MAX_WIDTH: usize = 10;
/// Values of a field that are combined with those of another one.
const MAX_VALUES: usize = 4;
const MAX_ATTEMPTS: usize = 24;
/// Probes per set of numbers.
const PROBES: u64 = 2;

/// What one bit does to the text of the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// nvdisasm refuses the instruction.
    Illegal,
    /// Another shape, or an alias.
    Fixed,
    /// One number changes.
    Number(usize),
    /// Only modifiers change.
    Active,
    /// Nothing changes.
    Silent,
}

/// A text of an instruction that differs from the seed in `flips`.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The instruction.
    pub bits: u128,
    /// Where it stood.
    pub address: u64,
    /// As printed.
    pub text: String,
    /// As read, with the same shape as the seed; `None` for another shape.
    pub parsed: Option<Parsed>,
}

/// Why the rules do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conflict {
    /// The modifier fields with these bits do not act independently.
    Fields(u8, u8),
    /// The number at this mark is not what its rule says.
    Number(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Singles,
    Pairs,
    Values,
    Combinations,
    Probes,
    Done,
}

/// The derivation of a form from one instruction.
pub struct Seed {
    /// The instruction.
    pub bits: u128,
    /// Bits that vary among the corpus instances of its opcode.
    varying: u128,
    /// Bits that vary among the instances of the same shape.
    varying_in_shape: u128,
    /// Its text.
    pub parsed: Option<Parsed>,
    shape: String,
    stage: Stage,
    queries: Vec<u128>,
    /// Every legal answer so far, by bits.
    pub samples: BTreeMap<u128, Sample>,
    /// What each bit does.
    pub effects: BTreeMap<u8, Effect>,
    /// Numbers that depend on the address.
    pub relative: BTreeSet<usize>,
    /// Modifier fields, bits in ascending order.
    pub clusters: Vec<Vec<u8>>,
    /// Pairs of modifier fields (by a bit of each) that act together but are too wide to join.
    pub tolerated: BTreeSet<(u8, u8)>,
    /// Numbers that no rule reproduces: their bits are fixed.
    pub frozen: BTreeSet<usize>,
    attempts: usize,
    /// The result.
    pub form: Option<Form>,
}

impl Seed {
    /// A derivation that starts at `bits`.
    pub fn new(bits: u128, varying: u128, varying_in_shape: u128) -> Self {
        let bits = bits & !(0x1f << STALL) | 0x14 << STALL;
        let mut queries = vec![bits];
        queries.extend(BITS.chain(REUSE).chain([GUARD_BIT]).map(|b| bits ^ 1 << b));
        queries.push(bits);
        Seed {
            bits,
            varying,
            varying_in_shape,
            parsed: None,
            shape: String::new(),
            stage: Stage::Singles,
            queries,
            samples: BTreeMap::new(),
            effects: BTreeMap::new(),
            relative: BTreeSet::new(),
            clusters: Vec::new(),
            tolerated: BTreeSet::new(),
            frozen: BTreeSet::new(),
            attempts: 0,
            form: None,
        }
    }

    /// What it wants to know next; nothing when it is done.
    pub fn queries(&self) -> &[u128] {
        &self.queries
    }

    /// Takes the answers to [`Seed::queries`] and goes on to the next stage.
    pub fn absorb(&mut self, answers: &[Option<Answer>]) {
        if self.stage == Stage::Singles {
            self.find_relative(answers);
        }
        for (&bits, answer) in self.queries.iter().zip(answers) {
            let Some(answer) = answer else { continue };
            let parsed = Parsed::new(&answer.text).filter(|p| p.shape() == self.shape);
            let sample = Sample {
                bits,
                address: answer.address,
                text: answer.text.clone(),
                parsed,
            };
            self.samples.entry(bits).or_insert(sample);
        }
        self.queries.clear();
        self.advance();
    }

    fn advance(&mut self) {
        loop {
            match self.stage {
                Stage::Singles => {
                    self.classify();
                    self.ask_pairs();
                    self.stage = Stage::Pairs;
                }
                Stage::Pairs => {
                    self.cluster();
                    self.ask_values();
                    self.stage = Stage::Values;
                }
                Stage::Values => {
                    self.ask_combinations();
                    self.stage = Stage::Combinations;
                }
                Stage::Combinations => match assemble::assemble(self) {
                    Ok(form) => {
                        self.ask_probes(&form);
                        self.form = Some(form);
                        self.stage = Stage::Probes;
                    }
                    Err(_) if self.attempts > MAX_ATTEMPTS => self.stage = Stage::Done,
                    Err(conflicts) => {
                        self.mend(conflicts);
                        self.ask_values();
                        self.stage = Stage::Values;
                    }
                },
                Stage::Probes => {
                    let held = self.form.as_ref().map_or(Vec::new(), |f| self.alias(f));
                    self.stage = Stage::Done;
                    if !held.is_empty() {
                        self.frozen.extend(held);
                        self.form = None;
                        self.stage = Stage::Combinations;
                    }
                }
                Stage::Done => return,
            }
            if !self.queries.is_empty() {
                return;
            }
        }
    }

    /// The seed stands first and last among the queries, at two addresses.
    fn find_relative(&mut self, answers: &[Option<Answer>]) {
        let (Some(Some(first)), Some(Some(last))) = (answers.first(), answers.last()) else {
            self.stage = Stage::Done;
            return;
        };
        self.parsed = Parsed::new(&first.text);
        let (Some(a), Some(b)) = (&self.parsed, Parsed::new(&last.text)) else {
            return;
        };
        self.shape = a.shape();
        for (at, (a, b)) in a.atoms.iter().zip(&b.atoms).enumerate() {
            if a.mark != b.mark {
                self.relative.insert(at);
            }
        }
    }

    /// The sample of the seed with these bits flipped.
    pub fn flipped(&self, flips: u128) -> Option<&Sample> {
        self.samples.get(&(self.bits ^ flips))
    }

    /// The number at mark `at`: a distance if it is one.
    pub fn integer(&self, sample: &Sample, at: usize) -> Option<i128> {
        match sample.parsed.as_ref()?.atoms.get(at)?.mark {
            Mark::Integer(n) if self.relative.contains(&at) => {
                let next = i128::from(sample.address) + 16;
                Some(i128::from((n - next) as i64))
            }
            Mark::Integer(n) => Some(n),
            _ => None,
        }
    }

    fn classify(&mut self) {
        for bit in BITS.chain(REUSE) {
            let effect = match self.flipped(1 << bit) {
                None => Effect::Illegal,
                Some(sample) => self.effect(sample),
            };
            self.effects.insert(bit, effect);
        }
    }

    fn effect(&self, sample: &Sample) -> Effect {
        let (Some(parsed), Some(seed)) = (&sample.parsed, self.flipped(0)) else {
            return Effect::Fixed;
        };
        let Some(original) = &seed.parsed else {
            return Effect::Fixed;
        };
        let mut number = None;
        let mut modified = false;
        for (at, (a, b)) in original.atoms.iter().zip(&parsed.atoms).enumerate() {
            modified |= a.run != b.run;
            let same = match a.mark {
                Mark::Integer(_) => self.integer(seed, at) == self.integer(sample, at),
                _ => a.mark == b.mark,
            };
            // One field may be written twice (BAR.SYNC R4, R4).
            let twin = |first: usize| {
                let before = distance(&original.atoms[first].mark, &a.mark);
                before.is_some() && before == distance(&parsed.atoms[first].mark, &b.mark)
            };
            match number {
                _ if same => {}
                None => number = Some(at),
                Some(first) if twin(first) => {}
                Some(_) => return Effect::Fixed,
            }
        }
        match (number, modified) {
            (Some(at), false) => Effect::Number(at),
            (Some(_), true) => Effect::Fixed,
            (None, true) => Effect::Active,
            (None, false) => Effect::Silent,
        }
    }

    /// Bits that may belong to a modifier field.
    fn candidates(&self) -> Vec<u8> {
        let active = |b: u8| {
            let varies = self.varying >> b & 1 != 0;
            let effect = self.effects.get(&b);
            let number = matches!(effect, Some(Effect::Number(_)));
            varies && !number || effect == Some(&Effect::Active)
        };
        let near = |b: u8| (b.saturating_sub(2)..=b + 2).any(active);
        let effects = self.effects.iter().filter(|e| BITS.contains(e.0));
        effects
            .filter(|&(&b, &effect)| match effect {
                Effect::Active => true,
                Effect::Illegal | Effect::Silent => near(b),
                _ => false,
            })
            .map(|(&b, _)| b)
            .collect()
    }

    fn ask_pairs(&mut self) {
        let bits = self.candidates();
        for (i, &a) in bits.iter().enumerate() {
            for &b in &bits[i + 1..] {
                if self.may_interact(a, b) {
                    self.queries.push(self.bits ^ 1 << a ^ 1 << b);
                }
            }
        }
    }

    /// Is the pair worth a question? Two bits without an effect of their own matter together only as
    /// neighbours; one such bit with an active one if it is near or varies in the corpus.
    fn may_interact(&self, a: u8, b: u8) -> bool {
        let quiet = |b| self.effects.get(&b) != Some(&Effect::Active);
        let varies = |b| self.varying >> b & 1 != 0;
        match (quiet(a), quiet(b)) {
            (false, false) => true,
            (true, true) => b - a <= 4,
            (true, false) => b - a <= 12 || varies(a),
            (false, true) => b - a <= 12 || varies(b),
        }
    }

    fn cluster(&mut self) {
        let bits = self.candidates();
        let mut clusters: Vec<Vec<u8>> = bits.iter().map(|&b| vec![b]).collect();
        for (i, &a) in bits.iter().enumerate() {
            for &b in &bits[i + 1..] {
                if self.interact(a, b) {
                    merge(&mut clusters, a, b);
                }
            }
        }
        let active = |b: &u8| self.effects.get(b) == Some(&Effect::Active);
        // A field needs a bit with an effect, or illegal bits that are legal together.
        clusters.retain(|c| c.len() > 1 || c.iter().any(active));
        clusters.extend(REUSE.filter(active).map(|b| vec![b]));
        self.clusters = clusters;
    }

    /// Is the effect of both bits not the sum of their single effects?
    fn interact(&self, a: u8, b: u8) -> bool {
        let parsed = |flips| self.flipped(flips).and_then(|s| s.parsed.as_ref());
        let usable = |flips| {
            let sample = self.flipped(flips)?;
            matches!(self.effect(sample), Effect::Active | Effect::Silent)
                .then_some(sample.parsed.as_ref()?)
        };
        let illegal = |b| self.effects.get(&b) == Some(&Effect::Illegal);
        let both = usable(1 << a | 1 << b);
        if illegal(a) || illegal(b) {
            return both.is_some();
        }
        let (Some(seed), Some(a_only), Some(b_only)) = (parsed(0), parsed(1 << a), parsed(1 << b))
        else {
            return false;
        };
        let Some(both) = both else {
            return b - a <= 2 && same_place(seed, a_only, b_only);
        };
        (0..seed.atoms.len()).any(|at| {
            let run = |p: &Parsed| p.atoms[at].run.clone();
            let mut expected = run(a_only);
            expected.extend(run(b_only));
            let mut found = run(both);
            found.extend(run(seed));
            expected.sort();
            found.sort();
            expected != found
        })
    }

    fn mend(&mut self, conflicts: BTreeSet<Conflict>) {
        self.attempts += 1;
        for conflict in conflicts {
            match conflict {
                Conflict::Number(at) => {
                    self.frozen.insert(at);
                }
                Conflict::Fields(a, b) => {
                    let before = self.clusters.len();
                    merge(&mut self.clusters, a, b);
                    if self.clusters.len() == before {
                        self.tolerated.insert((a, b));
                    }
                }
            }
        }
        if self.attempts > MAX_ATTEMPTS {
            self.clusters.clear();
        }
    }

    /// The flips that set field `cluster` to `value` xor its value in the seed.
    pub fn spread(cluster: &[u8], value: u64) -> u128 {
        let bits = cluster.iter().enumerate();
        bits.fold(0, |m, (i, &b)| m | u128::from(value >> i & 1) << b)
    }

    fn ask_values(&mut self) {
        for cluster in self.clusters.iter().filter(|c| c.len() <= MAX_WIDTH) {
            for value in 1..1u64 << cluster.len() {
                self.queries.push(self.bits ^ Self::spread(cluster, value));
            }
        }
        self.queries.retain(|q| !self.samples.contains_key(q));
    }

    /// Flips of `cluster` that change modifiers only, one per text, few; the seed's own left out.
    pub fn distinct_values(&self, cluster: &[u8]) -> Vec<u128> {
        let mut seen: Vec<&Parsed> = self.parsed.iter().collect();
        let mut values = Vec::new();
        for value in 1..1u64 << cluster.len().min(MAX_WIDTH) {
            let flips = Self::spread(cluster, value);
            let Some(parsed) = self.modified(flips) else {
                continue;
            };
            if !seen.iter().any(|p| runs(p).eq(runs(parsed))) {
                seen.push(parsed);
                values.push(flips);
            }
            if values.len() == MAX_VALUES {
                break;
            }
        }
        values
    }

    /// The text with `flips` if it differs from the seed's in modifiers at most.
    pub fn modified(&self, flips: u128) -> Option<&Parsed> {
        let sample = self.flipped(flips)?;
        let effect = self.effect(sample);
        matches!(effect, Effect::Active | Effect::Silent).then_some(sample.parsed.as_ref()?)
    }

    fn ask_combinations(&mut self) {
        for (i, a) in self.clusters.iter().enumerate() {
            for b in &self.clusters[i + 1..] {
                for x in self.distinct_values(a) {
                    for y in self.distinct_values(b) {
                        self.queries.push(self.bits ^ x ^ y);
                    }
                }
            }
        }
        self.queries.retain(|q| !self.samples.contains_key(q));
    }

    /// The bits with ordinary numbers in all fields but those in `held`.
    fn probe(&self, form: &Form, held: &[usize], salt: u64) -> u128 {
        let mut bits = self.bits;
        if salt % 2 == 1 {
            bits ^= form.hidden;
        }
        for piece in &form.pieces {
            let Piece::Number(n) = piece else { continue };
            if held.contains(&n.field) || n.kind == Kind::Relative {
                continue;
            }
            let field = &form.fields[n.field];
            let (width, old) = (field.width(), field.extract(self.bits));
            let noise = (self.bits as u64 >> 3 ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let noise = noise.rotate_left(7 * n.field as u32);
            let value = match (n.kind, width) {
                (Kind::Float(_), _) => old ^ noise & 0x3f,
                (_, 0..=3) => 1 + noise % ((1 << width) - 1).max(2) / 2,
                (Kind::Register(_), _) => 4 + noise % (1 << (width - 3)) * 4,
                _ => 0x28 + noise % (1 << (width - 2).min(12)),
            };
            bits = bits & !field.mask() | field.deposit(value);
        }
        bits
    }

    /// Fields of numbers, each once, and the sets of them that probes hold: none, one, two.
    fn holds(form: &Form) -> Vec<Vec<usize>> {
        let mut fields: Vec<usize> = Vec::new();
        for piece in &form.pieces {
            if let Piece::Number(n) = piece
                && n.kind != Kind::Relative
                && !fields.contains(&n.field)
            {
                fields.push(n.field);
            }
        }
        let mut holds = vec![Vec::new()];
        holds.extend(fields.iter().map(|&f| vec![f]));
        for (i, &a) in fields.iter().enumerate() {
            holds.extend(fields[i + 1..].iter().map(|&b| vec![a, b]));
        }
        holds
    }

    fn ask_probes(&mut self, form: &Form) {
        for held in Self::holds(form) {
            for salt in 0..PROBES {
                let bits = self.probe(form, &held, salt);
                self.queries.push(bits);
            }
        }
        self.queries.retain(|q| !self.samples.contains_key(q));
    }

    /// The marks of the smallest set of numbers that must keep their values for the form to hold; empty
    /// if it holds without.
    fn alias(&self, form: &Form) -> Vec<usize> {
        let holds_with = |held: &[usize]| {
            (0..PROBES).all(|salt| {
                let sample = self.samples.get(&self.probe(form, held, salt));
                sample.is_none_or(|s| assemble::agrees(form, s))
            })
        };
        let all = Self::holds(form);
        let Some(held) = all.iter().find(|h| holds_with(h)) else {
            return Vec::new();
        };
        let marks = self
            .effects
            .iter()
            .filter_map(|(&bit, effect)| match *effect {
                Effect::Number(at) => {
                    let inside = held.iter().any(|&f| form.fields[f].mask() >> bit & 1 != 0);
                    (inside && !self.frozen.contains(&at)).then_some(at)
                }
                _ => None,
            });
        let marks: BTreeSet<usize> = marks.collect();
        marks.into_iter().collect()
    }

    /// Silent bits that vary in the corpus although no modifier field has them.
    pub fn hidden(&self) -> u128 {
        let used = self
            .clusters
            .iter()
            .flatten()
            .fold(0, |m, &b| m | 1u128 << b);
        let silent = self.effects.iter().filter(|e| *e.1 == Effect::Silent);
        let silent = silent.filter(|e| BITS.contains(e.0));
        silent.fold(0, |m, (&b, _)| m | 1u128 << b) & self.varying_in_shape & !used
    }

    /// The mark whose field this one shows too, and how far behind that register it is (0 or 1): an earlier
    /// one with the same distance in every answer in which the field changes.
    pub fn twin(&self, at: usize) -> Option<(usize, u64)> {
        let apart = |parsed: &Parsed, first: usize| {
            distance(&parsed.atoms[first].mark, &parsed.atoms[at].mark)
        };
        let seed = self.parsed.as_ref()?;
        (0..at).find_map(|first| {
            let behind = apart(seed, first)?;
            let numbered = self
                .effects
                .iter()
                .filter(|e| *e.1 == Effect::Number(first));
            let flipped = numbered.filter_map(|e| self.flipped(1 << e.0)?.parsed.as_ref());
            let mut apart = flipped.map(|parsed| apart(parsed, first)).peekable();
            apart.peek()?;
            apart.all(|a| a == Some(behind)).then_some((first, behind))
        })
    }

    /// The text with another guard.
    pub fn guard_flipped(&self) -> Option<Parsed> {
        Parsed::new(&self.flipped(1 << GUARD_BIT)?.text)
    }
}

/// Is the second mark the same register as the first, or the one behind it?
fn distance(first: &Mark, second: &Mark) -> Option<u64> {
    match (first, second) {
        (Mark::Register(a, x), Mark::Register(b, y)) if a == b => match (x, y) {
            (Some(x), Some(y)) => y.checked_sub(*x).filter(|&apart| apart <= 1),
            (None, None) => Some(0),
            _ => None,
        },
        _ => None,
    }
}

fn runs(parsed: &Parsed) -> impl Iterator<Item = &Vec<String>> {
    parsed.atoms.iter().map(|a| &a.run)
}

/// Do two texts differ from a third one in the same run?
fn same_place(seed: &Parsed, a: &Parsed, b: &Parsed) -> bool {
    let runs = runs(seed).zip(runs(a).zip(runs(b)));
    runs.into_iter().any(|(s, (a, b))| s != a && s != b)
}

fn merge(clusters: &mut Vec<Vec<u8>>, a: u8, b: u8) {
    let find = |clusters: &[Vec<u8>], bit| clusters.iter().position(|c| c.contains(&bit));
    let (Some(i), Some(j)) = (find(clusters, a), find(clusters, b)) else {
        return;
    };
    if i != j && clusters[i].len() + clusters[j].len() <= MAX_WIDTH {
        let moved = clusters[j].clone();
        clusters[i].extend(moved);
        clusters[i].sort_unstable();
        clusters.remove(j);
    }
}
