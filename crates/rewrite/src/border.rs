//! Where a rounded number decides between two functions of it that meet there, rounding decides nothing: `x` or `0.01 * x`
//! by the sign of `x`, the two polynomials of `tanhf` at its bound.

use rustc_hash::FxHashMap;
use warpwright_emu::symbolic::term::{Cmp, Domain, Id, Kind, Mode, Node, Order, Terms};

use crate::constants::number;
use crate::reals::scaled_by_bits;
use crate::taken::{Place, operands};

/// Terms that are evaluated on one side of a border.
const MOST: usize = 512;

/// How far apart two numbers are that meet, as a part of the larger one: four times half an ulp of 1. The polynomials of
/// CUDA's mathematical functions are that accurate (CUDA C++ Programming Guide, 'Mathematical Functions').
const fn near(domain: Domain) -> f64 {
    const HALVES: f64 = 4.0;
    match domain {
        Domain::F16 => HALVES / (1u64 << 11) as f64,
        Domain::Bf16 => HALVES / (1u64 << 8) as f64,
        Domain::F32 => HALVES / (1u64 << 24) as f64,
        _ => HALVES / (1u64 << 53) as f64,
    }
}

/// A number of single precision from here on is whole (2²³), and so are sums that are rounded down to it.
const WHOLE: f64 = 8_388_608.0;

/// Does a term have the same value on both sides of a predicate's border, wherever that is? It and the predicate must be
/// made of one number and of constants.
pub(crate) fn meets(terms: &Terms, place: Place, predicate: Id) -> bool {
    let Some((core, border)) = border(terms, predicate) else {
        return false;
    };
    place.1.is_float()
        && border.iter().all(|&at| {
            let [yes, no] = [true, false].map(|holds| {
                let mut side = Evaluation {
                    terms,
                    known: FxHashMap::default(),
                    core,
                    at,
                    predicate,
                    holds,
                };
                side.number(place)
            });
            match (yes, no) {
                (Some(yes), Some(no)) => {
                    (yes - no).abs() <= yes.abs().max(no.abs()) * near(place.1)
                }
                _ => false,
            }
        })
}

/// The number that a comparison with a constant is made of, and its values where both are equal.
fn border(terms: &Terms, predicate: Id) -> Option<(Place, Vec<f64>)> {
    let test = terms.node(predicate);
    let cmp = Cmp(test.imm());
    let domain = cmp.domain();
    let is_order = test.kind() == Kind::Cmp && matches!(cmp.order(), Order::Lt | Order::Le);
    if !is_order || !domain.is_float() {
        return None;
    }
    let constant = |id: Id| number(terms.bits_of(id)?, domain);
    let (mut id, bound) = match (constant(test.a), constant(test.b)) {
        (Some(bound), None) => (test.b, bound),
        (None, Some(bound)) => (test.a, bound),
        _ => return None,
    };
    let mut all = vec![bound];
    while let Some((inner, values)) = inverse(terms, (id, domain), &all) {
        (id, all) = (inner, values);
    }
    (!all.is_empty()).then_some(((id, domain), all))
}

/// What a term is made of, if it is one number and constants, and that number's values where the term has some.
fn inverse(terms: &Terms, (id, domain): Place, all: &[f64]) -> Option<(Id, Vec<f64>)> {
    let node = terms.node(id);
    if terms.domain(id) != domain || node.mode().0 & !MODES != domain as u32 {
        return None;
    }
    let constant = |id: Id| number(terms.bits_of(id)?, domain);
    let each = |f: &dyn Fn(f64) -> f64| all.iter().map(|&x| f(x)).collect();
    let both = |values: Vec<f64>| values.iter().flat_map(|&x| [x, -x]).collect();
    let operand = || match (constant(node.a), constant(node.b)) {
        (Some(by), None) => Some((node.b, by)),
        (None, Some(by)) => Some((node.a, by)),
        _ => None,
    };
    let not_negative = |f: &dyn Fn(f64) -> f64| {
        let known = all.iter().filter(|&&x| x >= 0.0);
        both(known.map(|&x| f(x)).collect())
    };
    match node.kind() {
        Kind::FNeg => Some((node.a, each(&|x| -x))),
        Kind::FAbs => Some((node.a, not_negative(&|x| x))),
        Kind::FMul if node.a == node.b => Some((node.a, not_negative(&f64::sqrt))),
        Kind::FMul => {
            let (inner, by) = operand().filter(|(_, by)| *by != 0.0)?;
            Some((inner, each(&|x| x / by)))
        }
        Kind::FAdd => {
            let (inner, by) = operand()?;
            Some((inner, each(&|x| x - by)))
        }
        _ => None,
    }
}

/// Ways to round that move a number by no more than rounding does.
const MODES: u32 = Mode::FTZ | Mode::APPROX | Mode::FULL | Mode::FUSIBLE | Mode::OTHER;

/// Values over the reals at a border, with the predicate taken as given.
struct Evaluation<'t> {
    terms: &'t Terms,
    known: FxHashMap<Place, Option<f64>>,
    core: Place,
    at: f64,
    predicate: Id,
    holds: bool,
}

impl Evaluation<'_> {
    /// `None`: it is made of something else, too, or is none that is known here.
    fn number(&mut self, place: Place) -> Option<f64> {
        if place == self.core {
            return Some(self.at);
        }
        let (id, domain) = place;
        if let Some(bits) = self.terms.bits_of(id) {
            return number(bits, domain);
        }
        if let Some(&known) = self.known.get(&place) {
            return known;
        }
        if self.known.len() > MOST {
            return None;
        }
        let value = self.computed(place).filter(|x| x.is_finite());
        self.known.insert(place, value);
        value
    }

    fn computed(&mut self, (id, domain): Place) -> Option<f64> {
        let node = self.terms.node(id);
        if let Some((sum, _)) = scaled_by_bits(self.terms, &node) {
            return Some((self.number((sum, Domain::F32))? - WHOLE_OF_ZERO).exp2());
        }
        let own = self.terms.domain(id);
        if node.kind() == Kind::Select {
            let side = match self.truth(node.a)? {
                true => node.b,
                false => node.c,
            };
            return self.number((side, domain));
        }
        if own != domain || !domain.is_float() {
            return None;
        }
        let mut x = [0.0; 3];
        for (value, place) in x.iter_mut().zip(operands(self.terms, &node, domain)) {
            *value = self.number(place)?;
        }
        let value = self.made(&node, x)?;
        match node.mode() {
            mode if node.kind() == Kind::App || mode.0 & !MODES == domain as u32 => Some(value),
            mode if mode == Mode::new(domain, Mode::SAT) => Some(value.clamp(0.0, 1.0)),
            mode if mode == Mode::new(Domain::F32, Mode::DOWN) => {
                (value.abs() >= WHOLE).then(|| value.floor())
            }
            _ => None,
        }
    }

    fn made(&self, node: &Node, [a, b, c]: [f64; 3]) -> Option<f64> {
        Some(match node.kind() {
            Kind::FAdd => a + b,
            Kind::FMul => a * b,
            Kind::FFma => a * b + c,
            Kind::FNeg => -a,
            Kind::FAbs => a.abs(),
            Kind::FDiv => a / b,
            Kind::FSqrt => a.sqrt(),
            Kind::FRsqrt => a.sqrt().recip(),
            Kind::FEx2 => a.exp2(),
            Kind::FMin => a.min(b),
            Kind::FMax => a.max(b),
            Kind::FCvt => a,
            Kind::App => return self.named(node, [a, b]),
            _ => return None,
        })
    }

    fn named(&self, node: &Node, [a, b]: [f64; 2]) -> Option<f64> {
        let name = self.terms.name(node.imm()).0;
        match name.split('.').next() {
            // The second operand with the sign of the first (PTX ISA, `copysign`).
            Some("copysign") => Some(b.abs().copysign(a)),
            Some("lg2") => Some(a.log2()),
            Some("tanh") => Some(a.tanh()),
            _ => None,
        }
    }

    fn truth(&mut self, id: Id) -> Option<bool> {
        if id == self.predicate {
            return Some(self.holds);
        }
        let node = self.terms.node(id);
        match node.kind() {
            Kind::Not => Some(!self.truth(node.a)?),
            Kind::And => Some(self.truth(node.a)? && self.truth(node.b)?),
            Kind::Xor => Some(self.truth(node.a)? != self.truth(node.b)?),
            Kind::Cmp => {
                let cmp = Cmp(node.imm());
                let domain = cmp.domain();
                let (a, b) = (
                    self.number((node.a, domain))?,
                    self.number((node.b, domain))?,
                );
                // Where rounding would decide this one, too, nothing is said.
                let is_open = (a - b).abs() <= a.abs().max(b.abs()) * OPEN;
                match cmp.order() {
                    Order::Lt | Order::Le if !is_open => Some(a < b),
                    Order::Nan => Some(false),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Numbers that are nearer to one another, as a part of the larger one, may be compared either way.
const OPEN: f64 = 1.0 / 1024.0;

/// What `expf` adds to a whole number so that its lower bits are the exponent of its power of two (`scaled_by_bits`).
const WHOLE_OF_ZERO: f64 = 12_583_039.0;
