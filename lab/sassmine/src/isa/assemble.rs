//! The rules of one seed, put together into a form and tried on everything that the oracle said.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_sass::isa::float::Float;
use warpwright_sass::isa::form::{
    Choice, Field, File, Form, GUARD, Guard, Kind, Number, OPERATION, Piece,
};
use warpwright_sass::isa::print;

use super::oracle::normalise;
use super::seed::{Conflict, Effect, Sample, Seed};
use super::tokens::{Atom, Mark, Parsed};

/// A number's rule: bits from the least significant on.
struct Rule {
    bits: Vec<u8>,
    kind: Kind,
    scale: u8,
}

/// What one modifier field contributes to one run of modifiers.
struct Contribution {
    cluster: usize,
    /// Tokens of the seed's run that it stands for.
    span: std::ops::Range<usize>,
    /// By value of the field.
    texts: Vec<Option<String>>,
}

/// The form, or what must be changed before it can be made.
pub fn assemble(seed: &Seed) -> Result<Form, BTreeSet<Conflict>> {
    let Some(parsed) = &seed.parsed else {
        return Err(BTreeSet::new());
    };
    let mut form = Form {
        opcode: (seed.bits & 0xfff) as u16,
        confirmed: 0,
        guard: guard(seed, parsed),
        value: 0,
        hidden: seed.hidden(),
        fields: Vec::new(),
        pieces: Vec::new(),
    };
    let mut conflicts = BTreeSet::new();
    push(&mut form, &parsed.base);
    for (at, atom) in parsed.atoms.iter().enumerate() {
        push_run(seed, parsed, at, &mut form, &mut conflicts);
        push_mark(seed, parsed, at, atom, &mut form);
    }
    form.value = seed.bits & form.mask();
    if conflicts.is_empty() {
        for sample in seed.samples.values() {
            try_sample(seed, &form, sample, &mut conflicts);
        }
    }
    if conflicts.is_empty() {
        Ok(form)
    } else {
        Err(conflicts)
    }
}

fn guard(seed: &Seed, parsed: &Parsed) -> Guard {
    let flipped = seed.guard_flipped();
    if flipped.is_none() {
        return Guard::None;
    }
    match flipped.and_then(|p| p.guard).or(parsed.guard) {
        Some((File::UniformPredicate, ..)) => Guard::Uniform,
        Some(_) => Guard::Predicate,
        None => Guard::None,
    }
}

fn push(form: &mut Form, text: &str) {
    match form.pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(last)) => last.push_str(text),
        _ => form.pieces.push(Piece::Text(text.to_owned())),
    }
}

fn intern(form: &mut Form, bits: &[u8]) -> usize {
    let field = Field::from_bits(bits);
    form.fields
        .iter()
        .position(|f| *f == field)
        .unwrap_or_else(|| {
            form.fields.push(field);
            form.fields.len() - 1
        })
}

/// Is the integer at `at` a summand of an address?
fn is_term(parsed: &Parsed, at: usize) -> bool {
    let plus = |i: usize| parsed.atoms[i].mark == Mark::Punctuation("+".into());
    matches!(parsed.atoms[at].mark, Mark::Integer(_)) && at > 0 && plus(at - 1)
}

fn push_mark(seed: &Seed, parsed: &Parsed, at: usize, atom: &Atom, form: &mut Form) {
    let term = is_term(parsed, at);
    if let Some(rule) = rule_or_twin(seed, at) {
        let field = intern(form, &rule.bits);
        form.pieces.push(Piece::Number(Number {
            field,
            kind: rule.kind,
            scale: rule.scale,
            term,
        }));
        return;
    }
    match &atom.mark {
        // The plus sign comes with the number behind it.
        Mark::Punctuation(p) if p == "+" && is_term(parsed, at + 1) => {}
        Mark::Punctuation(p) => push(form, p),
        Mark::Register(file, None) => push(form, file.constant().unwrap_or("")),
        Mark::Register(file, Some(n)) => push(form, &format!("{}{n}", file.prefix())),
        Mark::Integer(0) if term => {}
        Mark::Integer(n) => {
            let (plus, sign) = (if term { "+" } else { "" }, if *n < 0 { "-" } else { "" });
            push(form, &format!("{plus}{sign}{:#x}", n.unsigned_abs()));
        }
        Mark::Float(text) => push(form, text),
        Mark::End => {}
    }
}

/// The rule of the mark, or that of an earlier one whose field it shows as well.
fn rule_or_twin(seed: &Seed, at: usize) -> Option<Rule> {
    let Some((first, behind)) = seed.twin(at) else {
        return rule(seed, at);
    };
    let mut rule = rule(seed, first)?;
    rule.kind = match (rule.kind, behind) {
        (kind, 0) => kind,
        (Kind::Register(File::Uniform), 1) => Kind::Next(File::Uniform),
        _ => return None,
    };
    Some(rule)
}

fn rule(seed: &Seed, at: usize) -> Option<Rule> {
    if seed.frozen.contains(&at) {
        return None;
    }
    let numbered = seed.effects.iter().filter(|e| *e.1 == Effect::Number(at));
    let bits: Vec<u8> = numbered.map(|e| *e.0).collect();
    if bits.is_empty() {
        return None;
    }
    match seed.parsed.as_ref()?.atoms[at].mark {
        Mark::Register(file, _) => register_rule(seed, at, file, &bits),
        Mark::Integer(_) => integer_rule(seed, at, &bits),
        Mark::Float(_) => float_rule(seed, at, &bits),
        _ => None,
    }
}

fn register_rule(seed: &Seed, at: usize, file: File, bits: &[u8]) -> Option<Rule> {
    let index = |flips| match seed.flipped(flips)?.parsed.as_ref()?.atoms[at].mark {
        Mark::Register(_, index) => Some(index.map(i128::from)),
        _ => None,
    };
    let original = index(0)?;
    let named: Option<Vec<(u8, Option<i128>)>> =
        bits.iter().map(|&b| Some((b, index(1 << b)?))).collect();
    let named = named?;
    // The constant register has all bits set; how many, the other values tell.
    let constants = [7, 15, 31, 63, 127, 255];
    let find = |sign: i128| {
        constants.into_iter().find_map(|constant| {
            let value = |v: Option<i128>| sign * v.unwrap_or(constant);
            let steps = named.iter().map(|&(b, v)| (b, value(v) - value(original)));
            weights(seed, steps).filter(|w| !w.1)
        })
    };
    // Or the field holds the number inverted.
    let inverted = |w: &Weights| w.0.len() == 3 && file == File::UniformPredicate;
    let (weights, kind) = match find(1) {
        Some(weights) => (weights, Kind::Register(file)),
        None => (find(-1).filter(inverted)?, Kind::Complement(file)),
    };
    let mut bits = complete(seed, &weights.0)?;
    // Even registers only: the lowest bit is part of the number all the same.
    let mut lowest = weights.0.first()?.1;
    while lowest > 1 {
        let below = bits.first()?.checked_sub(1)?;
        (seed.effects.get(&below) == Some(&Effect::Illegal)).then_some(())?;
        bits.insert(0, below);
        lowest /= 2;
    }
    Some(Rule {
        bits,
        kind,
        scale: 0,
    })
}

fn integer_rule(seed: &Seed, at: usize, bits: &[u8]) -> Option<Rule> {
    let value = |flips| seed.integer(seed.flipped(flips)?, at);
    let original = value(0)?;
    let steps: Option<Vec<_>> = bits
        .iter()
        .map(|&b| Some((b, value(1 << b)? - original)))
        .collect();
    let (weights, signed) = weights(seed, steps?.into_iter())?;
    let scale = weights.first()?.1.trailing_zeros() as u8;
    let kind = match (seed.relative.contains(&at), signed) {
        (true, _) => Kind::Relative,
        (false, true) => Kind::Signed,
        (false, false) => Kind::Unsigned,
    };
    Some(Rule {
        bits: complete(seed, &weights)?,
        kind,
        scale,
    })
}

/// Bits with their weights in ascending order, and whether the heaviest counts negative.
type Weights = (Vec<(u8, u128)>, bool);

fn weights(seed: &Seed, steps: impl Iterator<Item = (u8, i128)>) -> Option<Weights> {
    let mut weights = Vec::new();
    let mut negative = Vec::new();
    for (bit, step) in steps {
        if !step.unsigned_abs().is_power_of_two() {
            return None;
        }
        let is_set = seed.bits >> bit & 1 != 0;
        if is_set == (step > 0) {
            negative.push(bit);
        }
        weights.push((bit, step.unsigned_abs()));
    }
    weights.sort_by_key(|w| w.1);
    let heaviest = weights.last()?.0;
    match negative[..] {
        [] => Some((weights, false)),
        [bit] if bit == heaviest => Some((weights, true)),
        _ => None,
    }
}

/// The bits by weight, without gaps: one between its neighbours that is illegal, or that takes the
/// operand away (because the number becomes zero), fills one.
fn complete(seed: &Seed, weights: &[(u8, u128)]) -> Option<Vec<u8>> {
    let mut bits = Vec::new();
    let mut expected = weights.first()?.1;
    for &(bit, weight) in weights {
        while expected < weight {
            let next = bits.last()? + 1;
            let effect = seed.effects.get(&next);
            matches!(effect, Some(Effect::Illegal | Effect::Fixed)).then_some(())?;
            bits.push(next);
            expected = expected.checked_mul(2)?;
        }
        (expected == weight).then_some(())?;
        bits.push(bit);
        expected = expected.checked_mul(2)?;
    }
    (bits.len() <= 64).then_some(bits)
}

fn float_rule(seed: &Seed, at: usize, bits: &[u8]) -> Option<Rule> {
    let field = Field::from_bits(bits);
    let fits = |float: Float| {
        bits.iter().map(|&b| 1u128 << b).chain([0]).all(|flips| {
            let Some(sample) = seed.flipped(flips) else {
                return false;
            };
            let found = sample.parsed.as_ref().map(|p| &p.atoms[at].mark);
            let mut text = String::new();
            float.print(field.extract(sample.bits), &mut text);
            found == Some(&Mark::Float(text))
        })
    };
    let width = field.width();
    let float = Float::ALL
        .into_iter()
        .find(|f| f.width() == width && fits(*f))?;
    Some(Rule {
        bits: bits.to_vec(),
        kind: Kind::Float(float),
        scale: 0,
    })
}

fn push_run(
    seed: &Seed,
    parsed: &Parsed,
    at: usize,
    form: &mut Form,
    conflicts: &mut BTreeSet<Conflict>,
) {
    let run = &parsed.atoms[at].run;
    let mut parts: Vec<Contribution> = (0..seed.clusters.len())
        .filter_map(|cluster| contribution(seed, run, at, cluster))
        .collect();
    parts.sort_by_key(|p| (p.span.start, p.span.end, p.cluster));
    order_ties(seed, run, at, &mut parts, conflicts);
    let mut done = 0;
    for part in parts {
        push(
            form,
            &run[done.min(part.span.start)..part.span.start].concat(),
        );
        done = done.max(part.span.end);
        let field = intern(form, &seed.clusters[part.cluster]);
        form.pieces.push(Piece::Choice(Choice {
            field,
            texts: part.texts,
        }));
    }
    push(form, &run[done..].concat());
}

/// What field `cluster` adds to the run before mark `at`, if anything.
fn contribution(seed: &Seed, run: &[String], at: usize, cluster: usize) -> Option<Contribution> {
    let bits = &seed.clusters[cluster];
    let original = Field::from_bits(bits).extract(seed.bits);
    let mut runs: BTreeMap<u64, &[String]> = BTreeMap::new();
    for flip in 0..1u64 << bits.len() {
        if let Some(parsed) = seed.modified(Seed::spread(bits, flip)) {
            runs.insert(original ^ flip, &parsed.atoms[at].run);
        }
    }
    let mut start = run.len();
    for other in runs.values() {
        let common = run.iter().zip(*other).take_while(|(a, b)| a == b).count();
        start = start.min(common);
    }
    let mut tail = run.len() - start;
    for other in runs.values() {
        let pairs = run[start..].iter().rev().zip(other[start..].iter().rev());
        tail = tail.min(pairs.take_while(|(a, b)| a == b).count());
    }
    if runs.values().all(|r| *r == run) {
        return None;
    }
    let mut texts = vec![None; 1 << bits.len()];
    for (value, other) in runs {
        texts[value as usize] = Some(other[start..other.len() - tail].concat());
    }
    Some(Contribution {
        cluster,
        span: start..run.len() - tail,
        texts,
    })
}

/// Puts contributions to the same place into the order that combined texts show.
fn order_ties(
    seed: &Seed,
    run: &[String],
    at: usize,
    parts: &mut [Contribution],
    conflicts: &mut BTreeSet<Conflict>,
) {
    for i in 1..parts.len() {
        let mut j = i;
        while j > 0 {
            let (a, b) = (&parts[j - 1], &parts[j]);
            let empty = a.span.is_empty() && b.span.is_empty();
            if b.span.start < a.span.end {
                conflicts.insert(fields(seed, a.cluster, b.cluster));
            }
            if !empty || a.span.start != b.span.start {
                break;
            }
            match comes_first(seed, run, at, a, b) {
                Some(true) => break,
                Some(false) => parts.swap(j - 1, j),
                None => {
                    conflicts.insert(fields(seed, a.cluster, b.cluster));
                    break;
                }
            }
            j -= 1;
        }
    }
    let tolerated = &seed.tolerated;
    conflicts.retain(|c| !matches!(c, Conflict::Fields(a, b) if tolerated.contains(&(*a, *b))));
}

fn fields(seed: &Seed, a: usize, b: usize) -> Conflict {
    let (x, y) = (seed.clusters[a][0], seed.clusters[b][0]);
    Conflict::Fields(x.min(y), x.max(y))
}

/// Does `a` come before `b`? `None` if a combined text has neither order.
fn comes_first(
    seed: &Seed,
    run: &[String],
    at: usize,
    a: &Contribution,
    b: &Contribution,
) -> Option<bool> {
    let (first, second) = (&seed.clusters[a.cluster], &seed.clusters[b.cluster]);
    let place = a.span.start;
    let text = |flips: u128, part: &Contribution| {
        let value = Field::from_bits(&seed.clusters[part.cluster]).extract(seed.bits ^ flips);
        part.texts[value as usize].clone().unwrap_or_default()
    };
    for x in seed.distinct_values(first) {
        for y in seed.distinct_values(second) {
            let (before, behind) = (text(x, a), text(y, b));
            let Some(parsed) = seed.modified(x ^ y) else {
                continue;
            };
            if before.is_empty() || behind.is_empty() || before == behind {
                continue;
            }
            let found = parsed.atoms[at].run.concat();
            let (head, tail) = (run[..place].concat(), run[place..].concat());
            if found == format!("{head}{before}{behind}{tail}") {
                return Some(true);
            }
            let swapped = found == format!("{head}{behind}{before}{tail}");
            return swapped.then_some(false);
        }
    }
    Some(true)
}

/// Does the form print a sample as the oracle did, or leave it alone?
pub fn agrees(form: &Form, sample: &Sample) -> bool {
    let bits = sample.bits;
    if bits & form.mask() != form.value || !form.has_texts(bits) {
        return true;
    }
    let mut text = String::new();
    print::operation(form, bits, sample.address, &mut text);
    normalise(&text) == sample.text
}

/// Does the form print a sample as the oracle did? If not, which rules are to blame?
fn try_sample(seed: &Seed, form: &Form, sample: &Sample, conflicts: &mut BTreeSet<Conflict>) {
    if agrees(form, sample) {
        return;
    }
    let flips = (sample.bits ^ seed.bits) & (OPERATION & !GUARD | 0xf << 122);
    let touched: Vec<u8> = seed
        .clusters
        .iter()
        .filter(|c| c.iter().any(|&b| flips >> b & 1 != 0))
        .map(|c| c[0])
        .collect();
    match touched[..] {
        [a, b] => {
            let pair = (a.min(b), a.max(b));
            if !seed.tolerated.contains(&pair) {
                conflicts.insert(Conflict::Fields(pair.0, pair.1));
            }
        }
        _ => {
            // Probes change several numbers at once; they have their own stage.
            let lowest = flips.trailing_zeros() as u8;
            if flips.is_power_of_two()
                && let Some(&Effect::Number(at)) = seed.effects.get(&lowest)
                && !seed.frozen.contains(&at)
            {
                conflicts.insert(Conflict::Number(at));
            }
        }
    }
}
