//! Whether host code comes to a place, as far as its own numbers say.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;

use super::HostCode;
use super::values::{Known, Value};

/// Does the code come to a place?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// No condition is in the way, or those that are hold.
    Surely,
    /// As long as the program is given nothing else.
    Probably,
    /// It is a warm-up, or decided by what is not known.
    #[default]
    Unknown,
    /// Not with the numbers that the code begins with.
    Hardly,
    /// A condition is false whatever the program is given.
    Never,
}

impl Reached {
    /// Where it must not be so.
    fn otherwise(self) -> Reached {
        match self {
            Reached::Surely => Reached::Never,
            Reached::Probably => Reached::Hardly,
            Reached::Unknown => Reached::Unknown,
            Reached::Hardly => Reached::Probably,
            Reached::Never => Reached::Surely,
        }
    }
}

/// Calls that are followed back, one behind another and in all.
const DEEPEST: u32 = 4;
const MOST: u32 = 64;

/// A condition: its parenthesis, or the label of a `switch`, and whether it has to hold.
type Condition = (usize, bool);

impl HostCode<'_> {
    /// Does the code come to a token?
    pub(super) fn reached(&self, at: usize, known: &Known) -> Reached {
        self.reached_from(at, known, (DEEPEST, &Cell::new(MOST)))
    }

    fn reached_from(&self, at: usize, known: &Known, left: (u32, &Cell<u32>)) -> Reached {
        let mut all = Vec::new();
        self.heads(self.statement(at)..at, &mut all);
        let mut outermost = None;
        let around = std::iter::successors(self.around[at], |open| self.around[*open]);
        for open in around.take_while(|open| !self.is_shared(Some(*open))) {
            self.heads(self.statement(open)..open, &mut all);
            outermost = Some(open);
        }
        let conditions = all.into_iter().map(|(open, holds)| {
            let is_so = self.holds(open, known);
            if holds { is_so } else { is_so.otherwise() }
        });
        let own = conditions.max().unwrap_or(Reached::Surely);
        match outermost {
            Some(body) if own < Reached::Never => own.max(self.called(body, left)),
            _ => own,
        }
    }

    /// Does the code come to the function of a body?
    fn called(&self, body: usize, (deepest, left): (u32, &Cell<u32>)) -> Reached {
        let head = self.statement(body)..body;
        let open = head.filter(|&at| self.around[at] == self.around[body]);
        let mut open = open.filter(|&at| self.word(at) == "(" && self.body(at) == Some(body));
        let Some(name) = open.next().and_then(|open| open.checked_sub(1)) else {
            return Reached::Surely;
        };
        let function = self.word(name);
        let is_warm_up = function.to_ascii_lowercase().contains("warm");
        let calls = self.places(function).iter().filter(|&&at| {
            at != name
                && !self.is_shared(self.around[at])
                && !self.is_inside(at, Some(body))
                && matches!(self.word(at + 1), "(" | "<")
        });
        let mut best = None;
        for &call in calls {
            let (Some(deepest), Some(more)) = (deepest.checked_sub(1), left.get().checked_sub(1))
            else {
                break;
            };
            left.set(more);
            let own = self.reached_from(call, &Known::default(), (deepest, left));
            best = Some(best.map_or(own, |best: Reached| best.min(own)));
            if best == Some(Reached::Surely) {
                break;
            }
        }
        let is_program = !self.places("main").is_empty();
        let own = match best {
            Some(best) => best,
            // A program does not come to what nobody calls by its name.
            None if is_program && function != "main" => Reached::Unknown,
            None => Reached::Surely,
        };
        if is_warm_up {
            own.max(Reached::Unknown)
        } else {
            own
        }
    }

    /// The conditions in front of a statement or of a brace.
    fn heads(&self, head: Range<usize>, all: &mut Vec<Condition>) {
        let mut at = head.start;
        while at < head.end {
            match self.word(at) {
                "else" => {
                    self.alternative(at, all);
                    at += 1;
                }
                "if" => {
                    let open = at + 1 + usize::from(self.word(at + 1) == "constexpr");
                    all.push((open, true));
                    at = self.close(open) + 1;
                }
                "for" | "while" => at = self.close(at + 1) + 1,
                "do" => at += 1,
                _ => break,
            }
        }
    }

    /// What an `else` asks for: that the `if` before it does not hold.
    fn alternative(&self, at: usize, all: &mut Vec<Condition>) {
        let Some(before) = at.checked_sub(1) else {
            return;
        };
        let head = match self.opens.get(&before) {
            Some(&open) => self.statement(open)..open,
            None => self.statement(before)..before,
        };
        let mut own = Vec::new();
        self.heads(head, &mut own);
        if let Some(last) = own.last_mut() {
            last.1 = !last.1;
        }
        all.extend(own);
    }

    /// Does a condition hold?
    fn holds(&self, open: usize, known: &Known) -> Reached {
        self.refuel();
        let close = self.tokens.get(self.close(open));
        let Some(close) = close.filter(|_| self.word(open) == "(") else {
            return Reached::Unknown;
        };
        let text = &self.text[self.tokens[open].at.end..close.at.start];
        let value = self.value(text, open, known).and_then(Value::number);
        let Some((value, amount)) = value.and_then(|v| Some((v.number()?, v.amount))) else {
            return Reached::Unknown;
        };
        let (mut roots, mut fixed) = (BTreeSet::new(), BTreeSet::new());
        amount.roots(&mut roots, &mut fixed);
        let is_so = match (amount.is_sure(), roots.iter().any(|root| root.varies)) {
            (true, _) => Reached::Surely,
            (false, false) => Reached::Probably,
            // It becomes so, or was.
            (false, true) => return Reached::Unknown,
        };
        if value != 0 { is_so } else { is_so.otherwise() }
    }
}
