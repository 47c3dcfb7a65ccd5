//! What a guard on launches says of a kernel's special registers and parameters.

use warpwright_launch::{Extent, Field, Guard, Quantity, Set};
use warpwright_ptx::SpecialReg;
use warpwright_target::BLOCK_DIMENSIONS;

use crate::range::Range;

/// The launches that a kernel is looked at for.
#[derive(Clone, Debug, Default)]
pub(super) struct Assumed {
    guard: Guard,
}

impl Assumed {
    pub(super) fn new(guard: Guard) -> Assumed {
        Assumed { guard }
    }

    /// Is nothing assumed?
    pub(super) fn is_nothing(&self) -> bool {
        self.guard.is_always()
    }

    /// What a special register of 32 bits can be, by dimension.
    pub(super) fn special(&self, reg: SpecialReg, dim: u8) -> Option<Range> {
        use SpecialReg as S;
        if reg == S::DynamicSmemSize {
            let set = self.guard.known(Quantity::DynamicShared);
            return Some(Range::new(set.low(), set.high()));
        }
        let axis = *Extent::AXES.get(usize::from(dim))?;
        let most = BLOCK_DIMENSIONS.map(u64::from)[usize::from(dim)];
        let size = |of: fn(Extent) -> Quantity| {
            let set = self.guard.known(of(axis));
            Range::new(set.low(), set.high())
        };
        let block = || {
            let size = size(Quantity::Block);
            Range::new(size.low, size.high.min(most).max(size.low))
        };
        // An index is below its extent.
        let below = |size: Range| Range::new(0, size.high.saturating_sub(1));
        match reg {
            S::NTid => Some(block()),
            S::Tid => Some(below(block())),
            S::NCtaId => Some(size(Quantity::Grid)),
            S::CtaId => Some(below(size(Quantity::Grid))),
            S::ClusterNCtaId => Some(size(Quantity::Cluster)),
            S::ClusterCtaId => Some(below(size(Quantity::Cluster))),
            _ => None,
        }
    }

    /// The numbers that `bytes` bytes of a parameter can be.
    fn set(&self, index: usize, at: i64, bytes: u32) -> Option<(Field, Set)> {
        let (param, at) = (u16::try_from(index).ok()?, u32::try_from(at).ok()?);
        let field = Field::new(param, at, u8::try_from(bytes).ok()?)?;
        Some((field, self.guard.known(Quantity::Param(field))))
    }

    /// What `bytes` bytes of a parameter are multiples of.
    pub(super) fn alignment(&self, index: usize, at: i64, bytes: u32) -> u64 {
        let set = self.set(index, at, bytes);
        set.map_or(1, |(_, set)| 1 << set.step().trailing_zeros())
    }

    /// What `bytes` bytes of a parameter can be, if something is known.
    pub(super) fn parameter(&self, index: usize, at: i64, bytes: u32) -> Option<Range> {
        let (field, set) = self.set(index, at, bytes)?;
        let is_any = set.low() == 0 && set.high() == field.most();
        (!is_any).then(|| Range::new(set.low(), set.high()))
    }
}
