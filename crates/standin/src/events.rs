//! Streams and events: handles, and the time that they stand for. All work is done when its call returns.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::abi::{Code, Handle, INVALID_RESOURCE_HANDLE};

/// The shortest time between two events in milliseconds: programs divide by it.
const LEAST: f32 = 1e-3;

/// Events that were recorded, and the next handle.
#[derive(Default)]
pub struct Clock {
    made: usize,
    recorded: BTreeMap<usize, Instant>,
}

impl Clock {
    /// A handle that nothing else has.
    pub fn handle(&mut self) -> Handle {
        /// Addresses where nothing is: what looks behind a handle faults.
        const FIRST: usize = 1 << 12;
        self.made += 1;
        (FIRST + 16 * self.made) as Handle
    }

    /// An event is recorded now.
    pub fn record(&mut self, event: Handle) {
        self.recorded.insert(event as usize, Instant::now());
    }

    /// Milliseconds between two events.
    pub fn between(&self, start: Handle, end: Handle) -> Result<f32, Code> {
        let at = |event: Handle| self.recorded.get(&(event as usize)).copied();
        let (start, end) = at(start).zip(at(end)).ok_or(INVALID_RESOURCE_HANDLE)?;
        let elapsed = end.saturating_duration_since(start).as_secs_f32() * 1e3;
        Ok(elapsed.max(LEAST))
    }
}
