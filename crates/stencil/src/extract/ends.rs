//! Which points are away from all ends at which indices are clamped or wrapped, and that these ends are those of the rows.

use std::collections::BTreeSet;

use super::edge::{Bent, Rule};
use super::emit::{Built, Emit, Range};
use super::machine::{Action, RawAccess};
use super::shape::Length;
use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::diag::Diagnostic;

impl Emit<'_> {
    /// A border of its own and bent indices do not go together.
    pub(super) fn no_edges(&self) -> Built<()> {
        for number in self.trace.all_used() {
            let access = &self.trace.accesses[number];
            if !access.edges.is_empty() {
                let what =
                    "a border and indices that are clamped or wrapped are not understood together";
                return Err(refuse(what, access));
            }
        }
        Ok(())
    }

    /// The length of a dimension, as the indices say that are clamped or wrapped along it.
    pub(super) fn row_between_edges(
        &self,
        point: Symbol,
        used: &BTreeSet<usize>,
    ) -> Built<Option<Length>> {
        let mut found: Option<Length> = None;
        for (access, bent, (at, offset)) in self.bent(point, used) {
            let mut say = |row: Option<Length>| {
                let row = row.ok_or_else(|| not_the_end(access))?;
                match found.replace(row) {
                    Some(before) if before != row => Err(not_the_end(access)),
                    _ => Ok(()),
                }
            };
            if let Rule::Wrapped(period) = &bent.rule {
                say(period.as_extent())?;
            }
            if let Some(high) = &bent.high {
                let end = high.plus(&Poly::constant(offset), 1);
                say(end.and_then(|end| end.as_extent()))?;
            }
            if bent.low.is_some_and(|low| low.saturating_add(offset) != 0) {
                return Err(not_the_end(access));
            }
            // Rows that lie behind one another have a length of their own, and may be longer.
            let lengths = self.shape.lengths[access.array].as_ref();
            let row = at.checked_sub(1);
            if let Some(row) = row.and_then(|at| lengths?.get(at).copied())
                && found.is_some_and(|end| end.0 == row.0 && end.1 > row.1)
            {
                return Err(not_the_end(access));
            }
        }
        Ok(found)
    }

    /// What is written is no neighbour.
    pub(super) fn no_bent_stores(&self) -> Built<()> {
        for action in &self.trace.actions {
            if let Action::Store(access, ..) = action.bare()
                && !self.trace.accesses[*access].edges.is_empty()
            {
                let what = "an element is written at a clamped or wrapped place";
                return Err(refuse(what, &self.trace.accesses[*access]));
            }
        }
        Ok(())
    }

    /// The points whose neighbours need no bent index, and all points, if they are more.
    pub(super) fn away_from_edges(
        &self,
        all: Vec<Range>,
        used: &BTreeSet<usize>,
    ) -> Built<(Vec<Range>, Option<Vec<Range>>)> {
        let (mut inside, mut around) = (all.clone(), all);
        for ((inside, around), (point, shift)) in
            inside.iter_mut().zip(&mut around).zip(&self.shape.dims)
        {
            let (low, high) = (around.low, around.high);
            for (access, bent, (_, offset)) in self.bent(*point, used) {
                let away = offset.saturating_sub(*shift);
                let edge = bent.rule.edge();
                if around.edge.replace(edge).is_some_and(|other| other != edge) {
                    let what = "indices along one dimension are clamped here and wrapped there";
                    return Err(refuse(what, access));
                }
                if bent.low.is_some() {
                    inside.low = inside.low.max(away.saturating_neg());
                } else if low.saturating_add(away) < 0 {
                    return Err(not_the_end(access));
                }
                if bent.high.is_some() {
                    inside.high = inside.high.max(away);
                } else if away > high {
                    return Err(not_the_end(access));
                }
            }
            if around.edge.is_none() {
                continue;
            }
            // At the border all indices along the dimension are bent: those that are not meant to be stay within.
            for number in used {
                let access = &self.trace.accesses[*number];
                let straight = |(p, _): &&(Option<Symbol>, i64)| *p == Some(*point);
                let is_bent = |bent: &Bent| bent.of == Poly::symbol(*point);
                for (_, offset) in self.shape.accesses[*number].iter().filter(straight) {
                    let away = offset.saturating_sub(*shift);
                    let within = low.saturating_add(away) >= 0 && away <= high;
                    if !access.edges.iter().any(is_bent) && !within {
                        let what = "a neighbour beyond the end is clamped or wrapped elsewhere, but not here";
                        return Err(refuse(what, access));
                    }
                }
            }
        }
        let margins = |all: &[Range]| -> Vec<(i64, i64)> {
            all.iter().map(|range| (range.low, range.high)).collect()
        };
        let same = margins(&inside) == margins(&around);
        Ok((inside, (!same).then_some(around)))
    }

    /// The accesses that are bent along a dimension, with the position and the number of the subscript.
    fn bent<'s>(
        &'s self,
        point: Symbol,
        used: &'s BTreeSet<usize>,
    ) -> impl Iterator<Item = (&'s RawAccess, &'s Bent, (usize, i64))> {
        used.iter().flat_map(move |number| {
            let access = &self.trace.accesses[*number];
            let own = access.edges.iter();
            own.filter(move |bent| bent.of == Poly::symbol(point))
                .flat_map(move |bent| {
                    let subscripts = self.shape.accesses[*number].iter().enumerate();
                    let along = subscripts.filter(move |(_, (p, _))| *p == Some(point));
                    along.map(move |(at, (_, offset))| (access, bent, (at, *offset)))
                })
        })
    }
}

fn not_the_end(access: &RawAccess) -> Diagnostic {
    refuse(
        "an index is clamped or wrapped at another place than the end of the row",
        access,
    )
}

fn refuse(what: &str, access: &RawAccess) -> Diagnostic {
    Diagnostic::error("stencil::edge", what)
        .label(access.span.clone(), "in this access")
        .help("compute the points next to the border in an `else` or a kernel of their own")
}
