//! An opcode's words, consumed one by one.
//!
//! Decoding takes every modifier that it understands; what is left at the end makes the
//! instruction unsupported. So a modifier is never ignored by accident.

use warpwright_ptx::{Opcode, Type};

use crate::arith::Round;
use crate::arith::float::Mode;

/// Why an instruction is not supported.
pub(super) type Reason = String;

/// The modifiers of an opcode that have not been taken yet.
pub(super) struct Words<'a> {
    /// The first word.
    pub name: &'a str,
    left: Vec<&'a str>,
}

impl<'a> Words<'a> {
    pub fn new(opcode: &'a Opcode) -> Self {
        let mut words = opcode.text.split('.');
        Words {
            name: words.next().unwrap_or(""),
            left: words.collect(),
        }
    }

    /// Takes a modifier, if it is there.
    pub fn take(&mut self, word: &str) -> bool {
        let at = self.left.iter().position(|&w| w == word);
        at.map(|at| self.left.remove(at)).is_some()
    }

    /// Takes every modifier of a list that is there.
    pub fn skip(&mut self, words: &[&str]) {
        self.left.retain(|w| !words.contains(w));
    }

    /// Is the modifier there?
    pub fn has(&self, word: &str) -> bool {
        self.left.contains(&word)
    }

    /// Takes the first modifier for which a function gives something.
    pub fn find<T>(&mut self, f: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (at, value) = self
            .left
            .iter()
            .enumerate()
            .find_map(|(at, w)| Some((at, f(w)?)))?;
        self.left.remove(at);
        Some(value)
    }

    /// Takes the next modifier.
    pub fn next(&mut self) -> Option<&'a str> {
        (!self.left.is_empty()).then(|| self.left.remove(0))
    }

    /// Takes the first type.
    pub fn ty(&mut self) -> Result<Type, Reason> {
        self.find(Type::parse)
            .ok_or_else(|| "it names no type".into())
    }

    /// Takes the last type that is left.
    pub fn last_type(&mut self) -> Option<Type> {
        let (at, ty) = self
            .left
            .iter()
            .enumerate()
            .rev()
            .find_map(|(at, w)| Some((at, Type::parse(w)?)))?;
        self.left.remove(at);
        Some(ty)
    }

    /// The first type, not taken.
    pub fn peek_type(&self) -> Option<Type> {
        self.left.iter().find_map(|w| Type::parse(w))
    }

    /// Takes `.v2`, `.v4`, `.v8`; 1 without.
    pub fn vector(&mut self) -> u32 {
        self.find(|w| match w {
            "v2" => Some(2),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        })
        .unwrap_or(1)
    }

    /// Takes `.rn .rz .rm .rp .rna`.
    pub fn round(&mut self) -> Option<Round> {
        self.find(|w| match w {
            "rn" => Some(Round::NearestEven),
            "rna" => Some(Round::NearestAway),
            "rz" => Some(Round::Zero),
            "rm" => Some(Round::Down),
            "rp" => Some(Round::Up),
            _ => None,
        })
    }

    /// Takes `.rni .rzi .rmi .rpi`.
    pub fn integer_round(&mut self) -> Option<Round> {
        self.find(|w| match w {
            "rni" => Some(Round::NearestEven),
            "rzi" => Some(Round::Zero),
            "rmi" => Some(Round::Down),
            "rpi" => Some(Round::Up),
            _ => None,
        })
    }

    /// Takes rounding, `.ftz` and `.sat`.
    pub fn mode(&mut self) -> Mode {
        Mode {
            round: self.round().unwrap_or(Round::NearestEven),
            ftz: self.take("ftz"),
            sat: self.take("sat"),
        }
    }

    /// Takes scopes, cache operators, eviction and prefetch hints: they change time, not values.
    pub fn hints(&mut self) {
        const EXACT: &[&str] = &[
            "cta",
            "cluster",
            "gpu",
            "sys",
            "ca",
            "cg",
            "cs",
            "lu",
            "cv",
            "wb",
            "wt",
            "nc",
            "weak",
            "L1::evict_normal",
            "L1::evict_unchanged",
            "L1::evict_first",
            "L1::evict_last",
            "L1::no_allocate",
            "L2::evict_normal",
            "L2::evict_first",
            "L2::evict_last",
            "L2::cache_hint",
            "L2::64B",
            "L2::128B",
            "L2::256B",
        ];
        self.skip(EXACT);
    }

    /// Succeeds if every modifier has been taken.
    pub fn finish(&self) -> Result<(), Reason> {
        match &self.left[..] {
            [] => Ok(()),
            left => Err(format!(
                "the emulator does not know .{} here",
                left.join(".")
            )),
        }
    }
}
