//! A launch that a guard holds for, made of another one.

use super::{Condition, Extent, Guard, Quantity, Set};
use crate::launch::Launch;
use crate::values::{Field, LaunchValues};

impl Guard {
    /// The launch with as little changed as the guard asks for: extents, dynamic shared memory, scalars, and how
    /// pointers are aligned. `None` where that takes a parameter that is not there, a pointer's value, or a
    /// relation between several numbers that was not met.
    pub fn satisfied(&self, launch: &Launch) -> Option<Launch> {
        if self.is_never() {
            return None;
        }
        let mut met = launch.clone();
        met.block = self.dims_like(Quantity::Block, met.block)?;
        met.grid = self.dims_like(Quantity::Grid, met.grid)?;
        let cluster = met.cluster.unwrap_or([1; 3]);
        let wanted = self.dims_like(Quantity::Cluster, cluster)?;
        if wanted != cluster {
            met.cluster = Some(wanted);
        }
        let smem = self.known(Quantity::DynamicShared);
        met.dynamic_smem = u32::try_from(smem.nearest(met.dynamic_smem.into())).ok()?;
        for condition in self.conditions() {
            if let Condition::In(Quantity::Param(field), set) = condition {
                set_param(&mut met, field, set)?;
            }
        }
        met.is_met(self).then_some(met)
    }

    /// Extents near these: each by itself, then their product.
    fn dims_like(&self, of: fn(Extent) -> Quantity, dims: [u32; 3]) -> Option<[u32; 3]> {
        let mut near = [0; 3];
        for ((axis, n), near) in Extent::AXES.into_iter().zip(dims).zip(&mut near) {
            *near = u32::try_from(self.known(of(axis)).nearest(n.into())).ok()?;
        }
        let size = self.known(of(Extent::Size));
        if size.has(Extent::Size.of(near)) {
            return Some(near);
        }
        self.resized(of, near, size)
    }

    /// The first dimension that can make the product right alone does.
    fn resized(&self, of: fn(Extent) -> Quantity, dims: [u32; 3], size: Set) -> Option<[u32; 3]> {
        (0..3).find_map(|which| {
            let mut made = dims;
            made[which] = 1;
            let others = Extent::Size.of(made);
            let allowed = self.known(of(Extent::AXES[which]));
            let wanted = size.nearest(others.saturating_mul(dims[which].into()));
            let candidates = [wanted / others, wanted.div_ceil(others), allowed.low()];
            candidates.into_iter().find_map(|n| {
                made[which] = u32::try_from(n).ok()?;
                let fits = allowed.has(n) && size.has(Extent::Size.of(made));
                fits.then_some(made)
            })
        })
    }
}

/// Gives a scalar a value of the set, or a pointer its alignment.
fn set_param(launch: &mut Launch, field: Field, set: Set) -> Option<()> {
    let arg = launch.args.get_mut(field.param())?;
    let overlaps = |at: usize| at < field.at() + field.bytes() && field.at() < at + 8;
    match arg.pointers.iter().find(|pointer| overlaps(pointer.at)) {
        None => {
            let now = field.of(&arg.bytes)?;
            field.write(&mut arg.bytes, set.nearest(now)).then_some(())
        }
        Some(pointer) if pointer.at == field.at() && field.bytes() == 8 => {
            let (of, offset) = (pointer.of, pointer.offset);
            let align = usize::try_from(set.step())
                .ok()
                .filter(|step| step.is_power_of_two())?;
            let all = launch.memory.iter_mut().chain(&mut launch.symbols);
            let buffer = all.into_iter().nth(of)?;
            buffer.align = buffer.align.max(align);
            let pointer = buffer.offset + offset;
            buffer.offset += pointer.next_multiple_of(align) - pointer;
            Some(())
        }
        Some(_) => None,
    }
}

impl Launch {
    /// Does a guard hold for it? Its buffers are taken to lie apart, each at its alignment.
    pub fn is_met(&self, guard: &Guard) -> bool {
        self.at_places(|values| guard.holds(values))
    }

    /// Its numbers, with buffers at made-up addresses: far from one another, and aligned as they say and no better.
    pub fn at_places<R>(&self, use_them: impl FnOnce(&LaunchValues<'_, [Vec<u8>]>) -> R) -> R {
        let mut next = 1u64 << 32;
        let mut starts = Vec::new();
        for buffer in self.buffers() {
            let align = buffer.align.max(1) as u64;
            next = next.next_multiple_of(2 * align) + align;
            starts.push(next + buffer.offset as u64);
            next += (buffer.offset + buffer.size()) as u64 + align;
        }
        let base = |of: usize| starts.get(of).copied().unwrap_or(0);
        let params: Vec<Vec<u8>> = (self.args.iter())
            .map(|arg| arg.with_pointers(base))
            .collect();
        use_them(&LaunchValues {
            grid: self.grid,
            block: self.block,
            cluster: self.cluster.unwrap_or([1; 3]),
            dynamic_smem: self.dynamic_smem,
            params: params.as_slice(),
        })
    }
}
