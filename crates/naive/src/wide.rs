//! Accesses of 16 bytes for four neighbouring turns of a loop, or four neighbouring points (section 3.1 of the paper,
//! which pairs two; 16 bytes are what a thread of today loads at once).
//!
//! What four neighbours read at `times * i + offset` is one run of elements if the offsets lie below `times`: `a[i]`, the
//! two parts of a complex number at `2 * i` and `2 * i + 1`, the bytes of a pixel.

use warpwright_cudac::Scalar;
use warpwright_cudac::affine::{Poly, Symbol};

use crate::bounds::end;
use crate::emit::Condition;
use crate::ir::{Array, Index, Kernel, Statement, Value};
use crate::text::Text;

/// How four neighbours are done together.
pub(crate) struct Plan {
    /// The loop around them, whose counter may be anything.
    around: Option<usize>,
    pub(crate) groups: Vec<Group>,
    pub(crate) conditions: Vec<Condition>,
    /// What tells the neighbours apart is used itself.
    pub(crate) uses_counter: bool,
}

/// Accesses to neighbouring elements.
pub(crate) struct Group {
    pub(crate) array: usize,
    /// Elements for a neighbour.
    times: i64,
    /// The subscript of the first one, without what tells the neighbours apart.
    pub(crate) base: Poly,
    /// The accesses, and how far each is from that.
    accesses: Vec<(usize, i64)>,
    pub(crate) is_loaded: bool,
    pub(crate) is_stored: bool,
}

/// Bytes of an access: as many as divide the run.
fn width(array: &Array, times: i64) -> Option<i64> {
    let own = i64::from(array.bytes);
    let run = 4 * times * own;
    let fits = |bytes: &i64| run % bytes == 0 && *bytes > own;
    matches!(own, 1 | 4 | 8)
        .then(|| [16, 8, 4].into_iter().find(fits))
        .flatten()
}

/// The type of an access.
fn vector(array: &Array, bytes: i64) -> &'static str {
    match (array.scalar, array.bytes, bytes) {
        (Some(Scalar::Float), _, 16) => "float4",
        (Some(Scalar::Float), _, 8) => "float2",
        (Some(Scalar::Double), ..) => "double2",
        (_, _, 16) => "int4",
        (_, _, 8) => "int2",
        _ => "int",
    }
}

/// The plan for statements in which `counter` tells the neighbours apart; none if no access gains from it. `around` is a
/// loop in whose turns the statements stand.
pub(crate) fn plan(
    kernel: &Kernel,
    counter: Symbol,
    body: &[Statement],
    around: Option<usize>,
) -> Option<Plan> {
    let mut plan = Plan {
        around,
        groups: Vec::new(),
        conditions: Vec::new(),
        uses_counter: false,
    };
    let mut kept = Vec::new();
    let mut ints = false;
    for statement in body {
        // Inside loops and conditions nothing is known to be reached.
        let reached = !matches!(statement, Statement::Loop(..) | Statement::If(..));
        statement.walk(&mut |s| {
            // A condition at the top is reached itself.
            let reached = reached || std::ptr::eq(s, statement);
            let mut value = |v: &Value, sometimes: bool| {
                v.walk(sometimes, &mut |v, sometimes| match v {
                    Value::Load(access) => match reached && !sometimes {
                        true => plan.add(kernel, counter, *access, false, &mut kept),
                        false => kept.push(*access),
                    },
                    Value::Int(poly, _) => ints |= poly.symbols().contains(&counter),
                    _ => {}
                });
            };
            match s {
                Statement::If(cond, ..) => value(cond, false),
                Statement::Loop(inner, _) => {
                    let inner = &kernel.loops[*inner];
                    ints |= inner.low.symbols().contains(&counter)
                        || inner.high.symbols().contains(&counter);
                }
                Statement::Atomic {
                    access, value: v, ..
                } => {
                    value(v, false);
                    match &kernel.accesses[*access].index {
                        Index::Affine(poly) => ints |= poly.symbols().contains(&counter),
                        Index::Value(index) => value(index, false),
                    }
                }
                s => s.value().into_iter().for_each(|v| value(v, false)),
            }
            if let Statement::Store {
                access, op, member, ..
            } = s
            {
                match reached && op == "=" && member.is_none() {
                    true => plan.add(kernel, counter, *access, true, &mut kept),
                    false => kept.push(*access),
                }
            }
        });
    }
    // A run whose ends no access touches may end behind its array.
    let (whole, torn) = std::mem::take(&mut plan.groups)
        .into_iter()
        .partition(Group::is_whole);
    plan.groups = whole;
    let torn: Vec<Group> = torn;
    kept.extend(
        torn.iter()
            .flat_map(|g| g.accesses.iter().map(|(access, _)| *access)),
    );
    let unresolved = |a: &usize| {
        kernel.accesses[*a]
            .affine()
            .is_none_or(|p| p.symbols().contains(&counter))
    };
    plan.uses_counter = ints || kept.iter().any(unresolved);
    // A stored element that a group does not hold may be one that another group holds in registers.
    let clash =
        |g: &Group| g.is_stored && kept.iter().any(|a| kernel.accesses[*a].array == g.array);
    if plan.groups.is_empty() || plan.groups.iter().any(clash) {
        return None;
    }
    // Two groups of an array that is stored to could hold the same element.
    let twice = |g: &Group| {
        kernel.arrays[g.array].stored
            && plan.groups.iter().filter(|o| o.array == g.array).count() > 1
    };
    // A group that is stored has to be filled by stores alone.
    let full = |g: &Group| !g.is_stored || g.times == 1;
    (plan.groups.iter().all(full) && !plan.groups.iter().any(twice)).then_some(plan)
}

impl Plan {
    pub(crate) fn push(&mut self, condition: Condition) {
        let known = matches!(&condition, Condition::Multiple(p, by) if p.as_constant().is_some_and(|v| v % by == 0));
        if !known && !self.conditions.contains(&condition) {
            self.conditions.push(condition);
        }
    }

    fn add(
        &mut self,
        kernel: &Kernel,
        counter: Symbol,
        access: usize,
        store: bool,
        kept: &mut Vec<usize>,
    ) {
        if self.join(kernel, counter, access, store).is_none() {
            kept.push(access);
        }
    }

    fn join(&mut self, kernel: &Kernel, counter: Symbol, access: usize, store: bool) -> Option<()> {
        let of = &kernel.accesses[access];
        let array = &kernel.arrays[of.array];
        // A host does not know how a variable of the file is aligned.
        array.parameter?;
        let index = of.affine()?;
        let times = index.coefficient(counter)?.as_constant()?;
        if !(1..=4).contains(&times) {
            return None;
        }
        let bytes = width(array, times)?;
        let per = bytes / i64::from(array.bytes);
        let rest = index.plus(&Poly::symbol(counter), -times)?;
        let offset = rest.constant_term().rem_euclid(times);
        let base = rest.plus(&Poly::constant(offset), -1)?;
        let mut conditions = vec![Condition::Aligned(of.array, u32::try_from(bytes).ok()?)];
        for (symbols, number) in base.terms() {
            let other = |s: &Symbol| matches!(s, Symbol::Loop(n) if Some(*n) != self.around);
            if symbols.iter().any(other) {
                return None;
            }
            let mut sizes = Poly::constant(number);
            for symbol in symbols.iter().filter(|s| !s.is_point()) {
                sizes = sizes.times(&Poly::symbol(*symbol))?;
            }
            let known = |s: &Symbol| matches!(s, Symbol::Size(_)) || (0..3).any(|n| *s == end(n));
            if !sizes.symbols().iter().all(known)
                || sizes.as_constant().is_some_and(|v| v % per != 0)
            {
                return None;
            }
            conditions.push(Condition::Multiple(sizes, per));
        }
        conditions.into_iter().for_each(|c| self.push(c));
        let known = self
            .groups
            .iter_mut()
            .find(|g| g.array == of.array && g.times == times && g.base == base);
        match known {
            Some(group) => {
                group.accesses.push((access, offset));
                group.is_stored |= store;
                group.is_loaded |= !store;
            }
            None => self.groups.push(Group {
                array: of.array,
                times,
                base,
                accesses: vec![(access, offset)],
                is_loaded: !store,
                is_stored: store,
            }),
        }
        Some(())
    }
}

impl Group {
    /// Are the first and the last element of a neighbour's run accessed?
    fn is_whole(&self) -> bool {
        let has = |wanted: i64| self.accesses.iter().any(|(_, offset)| *offset == wanted);
        has(0) && has(self.times - 1)
    }

    /// Is it loaded and nothing else?
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_loaded && !self.is_stored
    }

    /// Declares what the group holds, and loads it; `first` is the first neighbour, `turn` counts them. The lines that
    /// store it come back.
    pub(crate) fn write(
        &self,
        kernel: &Kernel,
        text: &mut Text<'_>,
        counter: Symbol,
        first: &str,
        turn: &str,
    ) -> Vec<String> {
        let own = self.declare(kernel, text, "");
        self.load(kernel, text, counter, first, turn, &own)
    }

    /// Declares what the group holds, `rows` times (`[4]`, or nothing). Its name comes back.
    pub(crate) fn declare(&self, kernel: &Kernel, text: &mut Text<'_>, rows: &str) -> String {
        let array = &kernel.arrays[self.array];
        let own = text.fresh(&format!("{}_four", array.name));
        let count = 4 * self.times;
        text.line(&format!(
            "alignas(16) {} {own}{rows}[{count}];",
            array.element
        ));
        own
    }

    /// Loads the group into `own`; see [`Group::write`].
    pub(crate) fn load(
        &self,
        kernel: &Kernel,
        text: &mut Text<'_>,
        counter: Symbol,
        first: &str,
        turn: &str,
        own: &str,
    ) -> Vec<String> {
        let array = &kernel.arrays[self.array];
        let Some(bytes) = width(array, self.times) else {
            return Vec::new();
        };
        let count = 4 * self.times;
        let per = bytes / i64::from(array.bytes);
        let at = Poly::symbol(counter)
            .times(&Poly::constant(self.times))
            .and_then(|at| at.plus(&self.base, 1));
        let at = at.unwrap_or_default();
        let vector = vector(array, bytes);
        let before = text.rename_symbol(counter, first.to_owned());
        let mut late = Vec::new();
        for part in 0..count / per {
            let place = at.plus(&Poly::constant(part * per), 1).unwrap_or_default();
            let memory = format!("{}[{}]", array.name, text.poly(&place));
            let mine = format!("*reinterpret_cast<{vector} *>(&{own}[{}])", part * per);
            if self.is_loaded {
                text.line(&format!(
                    "{mine} = *reinterpret_cast<const {vector} *>(&{memory});"
                ));
            }
            if self.is_stored {
                late.push(format!(
                    "*reinterpret_cast<{vector} *>(&{memory}) = {mine};"
                ));
            }
        }
        text.rename_symbol(counter, before);
        for (access, offset) in &self.accesses {
            let times = match self.times {
                1 => turn.to_owned(),
                times => format!("{times} * {turn}"),
            };
            let text_of = match offset {
                0 => format!("{own}[{times}]"),
                offset => format!("{own}[{times} + {offset}]"),
            };
            text.replace_element(*access, text_of);
        }
        late
    }

    /// Has its accesses mean memory again.
    pub(crate) fn end(&self, text: &mut Text<'_>) {
        for (access, _) in &self.accesses {
            text.restore_element(*access);
        }
    }
}
