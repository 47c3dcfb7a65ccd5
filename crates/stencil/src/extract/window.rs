//! Blocks with more threads than points: all threads load, those in the middle compute.
//!
//! Goal: `x = blockIdx.x * OUT + threadIdx.x - R` with `threadIdx.x >= R && threadIdx.x < R + OUT` around the stores gives
//! every place from R on one thread, as `blockIdx.x * blockDim.x + threadIdx.x` does: blocks are OUT places apart, and so
//! many of their threads compute (Kirk and Hwu's tiles for inputs, hotspot).
//!
//! Requires: conditions on threads around all stores alike; as many threads that compute as blocks are apart; no
//! `blockDim` along that axis, which is another number.

use super::guard::not_on_places;
use super::machine::{Done, Machine, Trace};
use warpwright_cudac::affine::{Poly, Relation, Symbol, Test};
use warpwright_cudac::diag::{Diagnostic, Span};

/// The first thread that computes along an axis, and how many do, where not all do.
type Computing = Option<(i64, i64)>;

impl Trace {
    /// Along each axis: how many threads a block has, where the text presumes it, and which of them compute.
    pub(super) fn threads_of_blocks(&self) -> ([Option<i64>; 3], [Computing; 3]) {
        let mut block = self.places.block;
        let mut computing = [None; 3];
        for (at, first) in self.windows.into_iter().enumerate() {
            computing[at] = first.zip(block[at]);
            if let Some((first, count)) = computing[at] {
                block[at] = Some(self.threads[at].unwrap_or(first.saturating_add(count)));
            }
        }
        (block, computing)
    }
}

impl Machine<'_> {
    /// Takes the conditions on threads out of the domain.
    pub(super) fn find_windows(&mut self, name: &Span) -> Done<()> {
        for axis in 0..3u8 {
            let at = usize::from(axis);
            let Some(bounds) = self.trace.domain.remove(&Symbol::ThreadIdx(axis)) else {
                continue;
            };
            let span = bounds.ends.first().map_or(name, |(_, span)| span);
            let mut ends = bounds.ends.iter().map(|(end, _)| end.as_constant());
            let end = match ends.clone().all(|end| end.is_some()) {
                true => ends.by_ref().flatten().min(),
                false => None,
            };
            let apart = self.trace.places.block[at];
            let is_plain = bounds.without.is_empty() && self.trace.border.is_none();
            let (Some(end), Some(apart), true) = (end, apart, is_plain) else {
                return Err(not_on_places(span));
            };
            if end.saturating_sub(bounds.low) != apart || self.trace.asked[at] {
                let what = format!(
                    "{} threads of a block compute, and blocks are {apart} places apart",
                    end.saturating_sub(bounds.low)
                );
                let label = match self.trace.asked[at] {
                    true => "`blockDim` is used beside it",
                    false => "these threads",
                };
                return Err(Diagnostic::error("stencil::block", what).label(span.clone(), label));
            }
            let places = self.trace.domain.entry(Symbol::Global(axis)).or_default();
            places.low = places.low.max(bounds.low);
            self.trace.windows[at] = Some(bounds.low);
        }
        Ok(())
    }

    /// Which threads compute.
    pub(super) fn window_tests(&self) -> Vec<Test> {
        let windows = self.trace.windows.iter().zip(self.trace.places.block);
        let tests = (0..3u8).zip(windows).filter_map(|(axis, (first, apart))| {
            let thread = Poly::symbol(Symbol::ThreadIdx(axis));
            let from = thread.plus(&Poly::constant((*first)?), -1)?;
            let left = Poly::constant(apart? - 1).plus(&from, -1)?;
            let test = |value| Test::compare(Relation::NotNegative, value, 0..0);
            Some([test(from), test(left)])
        });
        tests.flatten().collect()
    }
}
