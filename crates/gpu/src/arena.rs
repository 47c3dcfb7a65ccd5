//! Device buffers of one launch, with guard zones around each.

use crate::cuda::{Context, Memory, Span};
use crate::fault::Fault;
use crate::job::Job;
use crate::rng::Rng;

/// Bytes of guard before and after each buffer of a checked run.
const GUARD: usize = 64 * 1024;

/// One buffer's allocation: guard, data, guard.
struct Slot {
    memory: Memory,
    start: usize,
    bytes: usize,
    guard: usize,
}

impl Slot {
    fn data(&self) -> Result<Span<'_>, Fault> {
        self.memory.span(self.start, self.bytes)
    }

    /// The zones before and after the data. Their size follows from the alignment of the data;
    /// the second starts at the very next byte.
    fn guards(&self) -> Result<[Span<'_>; 2], Fault> {
        let before = self.start.min(self.guard);
        let end = self.start + self.bytes;
        let after = (self.memory.len() - end).min(self.guard);
        Ok([
            self.memory.span(self.start - before, before)?,
            self.memory.span(end, after)?,
        ])
    }
}

/// A set of buffers for one launch: one per buffer of the job that is not a module variable.
pub(crate) struct Arena {
    slots: Vec<Option<Slot>>,
}

impl Arena {
    /// Allocates buffers with guard zones, for checking.
    pub(crate) fn guarded(context: &Context, job: &Job) -> Result<Self, Fault> {
        Self::alloc(context, job, GUARD)
    }

    /// Allocates buffers without guard zones, for timing.
    pub(crate) fn plain(context: &Context, job: &Job) -> Result<Self, Fault> {
        Self::alloc(context, job, 0)
    }

    fn alloc(context: &Context, job: &Job, guard: usize) -> Result<Self, Fault> {
        let mut slots = Vec::new();
        for buffer in &job.buffers {
            if buffer.symbol {
                slots.push(None);
                continue;
            }
            let slack = buffer.align + buffer.offset;
            let memory = context.alloc(buffer.bytes + 2 * guard + slack)?;
            let start = buffer.start(memory.all().address(), guard);
            slots.push(Some(Slot {
                memory,
                start,
                bytes: buffer.bytes,
                guard,
            }));
        }
        Ok(Arena { slots })
    }

    /// A buffer's data; `None` for a module variable.
    pub(crate) fn data(&self, buffer: usize) -> Result<Option<Span<'_>>, Fault> {
        self.slots
            .get(buffer)
            .and_then(Option::as_ref)
            .map(Slot::data)
            .transpose()
    }

    /// Gives a buffer its first contents, which are `pristine` or the addresses in this arena; module variables are
    /// nothing of its.
    pub(crate) fn restore(
        &self,
        context: &Context,
        job: &Job,
        (buffer, pristine): (usize, &Memory),
    ) -> Result<(), Fault> {
        let Some(to) = self.data(buffer)? else {
            return Ok(());
        };
        let Some(table) = job.buffers.get(buffer).and_then(|b| b.table) else {
            return context.copy(to, pristine.all());
        };
        let base = self.data(table.of)?.map_or(0, |span| span.address());
        to.upload(&table.bytes(base, to.len() / 8))
    }

    /// The kernel's parameters with this arena's addresses.
    pub(crate) fn params(&self, job: &Job) -> Result<Vec<Vec<u8>>, Fault> {
        job.params
            .iter()
            .map(|param| {
                let mut bytes = param.bytes.clone();
                for pointer in &param.pointers {
                    let address = self.data(pointer.buffer)?.map_or(0, |span| span.address());
                    let address = address.wrapping_add(pointer.offset);
                    if let Some(place) = bytes.get_mut(pointer.at..pointer.at + 8) {
                        place.copy_from_slice(&address.to_le_bytes());
                    }
                }
                Ok(bytes)
            })
            .collect()
    }

    /// Fills all guard zones with the pattern.
    pub(crate) fn arm(&self) -> Result<(), Fault> {
        for slot in self.slots.iter().flatten() {
            for zone in slot.guards()? {
                zone.upload(&pattern(zone.len()))?;
            }
        }
        Ok(())
    }

    /// Looks at all guard zones; says where the pattern is broken first.
    pub(crate) fn broken_guard(&self, job: &Job) -> Result<Option<String>, Fault> {
        for (slot, buffer) in self.slots.iter().zip(&job.buffers) {
            let Some(slot) = slot else { continue };
            let [before, after] = slot.guards()?;
            let bytes = before.download()?;
            // The byte nearest to the buffer says most.
            let last = bytes
                .iter()
                .zip(pattern(bytes.len()))
                .rposition(|(a, b)| *a != b);
            if let Some(i) = last {
                let distance = bytes.len() - i;
                return Ok(Some(format!(
                    "wrote before the start of `{}`, at -{distance}",
                    buffer.name
                )));
            }
            let bytes = after.download()?;
            let first = bytes
                .iter()
                .zip(pattern(bytes.len()))
                .position(|(a, b)| *a != b);
            if let Some(i) = first {
                let size = buffer.bytes;
                return Ok(Some(format!(
                    "wrote past the end of `{}` ({size} bytes), at +{i}",
                    buffer.name
                )));
            }
        }
        Ok(None)
    }
}

/// Bytes that a faulty kernel is unlikely to write by chance, at any position.
fn pattern(bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(0x6775_6172_6473);
    (0..bytes.div_ceil(8))
        .flat_map(|_| rng.word().to_le_bytes())
        .take(bytes)
        .collect()
}
