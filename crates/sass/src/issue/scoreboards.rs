//! Which of the six scoreboards an instruction takes.
//!
//! Any choice is correct, because whoever waits for a scoreboard waits for all that count on it. So the
//! choice is about time: one that is free; or one whose other users are waited for by the same instruction;
//! or the one where sharing makes somebody wait for the shortest time, as far as typical latencies tell.
//!
//! Paper: the barrier tracker of RegDem (section 3.2) takes a free barrier, or the one that costs the fewest
//! stalls. Here the first wait of both users counts, too.

use crate::control::SCOREBOARDS;

/// Something that a scoreboard will tell.
#[derive(Debug, Clone, Copy)]
struct User {
    /// When it is over, in estimated cycles.
    ready: u32,
    /// The place in the block of the first instruction that waits for it.
    waiter: u32,
    /// It is from before the block, and nobody knows who waits.
    is_unknown: bool,
}

/// The scoreboards at a point of a block.
#[derive(Debug, Clone, Default)]
pub(super) struct Board {
    users: [Vec<User>; SCOREBOARDS as usize],
    /// Estimated cycles since the start of the block.
    pub now: u32,
}

impl Board {
    /// Somebody waits for the scoreboards in `mask`.
    pub fn wait(&mut self, mask: u8) {
        for s in (0..SCOREBOARDS).filter(|s| mask >> s & 1 != 0) {
            let users = &mut self.users[usize::from(s)];
            let ready = users.iter().map(|user| user.ready).max();
            self.now = self.now.max(ready.unwrap_or(0));
            users.clear();
        }
    }

    /// Something from before the block is still going on.
    pub fn occupy(&mut self, mask: u8, ready: u32) {
        for s in (0..SCOREBOARDS).filter(|s| mask >> s & 1 != 0) {
            self.users[usize::from(s)].push(User {
                ready,
                waiter: u32::MAX,
                is_unknown: true,
            });
        }
    }

    /// The scoreboards in `mask` belong for so many cycles to somebody who is not asked.
    pub fn occupy_until(&mut self, mask: u8, cycles: u32) {
        self.occupy(mask, self.now + cycles);
    }

    /// A scoreboard not in `taken` for what takes so many cycles and is first waited for at `waiter`. The one that it
    /// had is taken if it is free to be: ptxas groups by who waits, and code that is not changed waits for that.
    pub fn choose(
        &mut self,
        taken: u8,
        cycles: u32,
        (waiter, old): (u32, Option<u8>),
        place: u32,
    ) -> Option<u8> {
        let user = User {
            ready: self.now + cycles,
            waiter,
            is_unknown: false,
        };
        let free = (0..SCOREBOARDS).filter(|s| taken >> s & 1 == 0);
        let rank = |s: u8| (Some(s) != old, self.cost(usize::from(s), user, place), s);
        let best = free.min_by_key(|&s| rank(s))?;
        self.users[usize::from(best)].push(user);
        Some(best)
    }

    /// What it costs to share, in cycles. A free one costs the more the fewer are left.
    fn cost(&self, s: usize, new: User, place: u32) -> u32 {
        const SHARED: u32 = 2;
        const UNKNOWN: u32 = 8;
        let users = &self.users[s];
        if users.is_empty() {
            let used = self.users.iter().filter(|users| !users.is_empty());
            return 1 + 2 * used.count() as u32;
        }
        // An instruction issues in a cycle or two; a wait is over when it is over.
        let time = |waiter: u32| {
            self.now
                .saturating_add(2 * waiter.saturating_sub(place).min(1 << 20))
        };
        let delay = |late: &User, waits: &User| {
            let at = time(waits.waiter).max(waits.ready);
            late.ready.saturating_sub(at)
        };
        let costs = users.iter().map(|old| match old.waiter.cmp(&new.waiter) {
            _ if old.is_unknown => UNKNOWN,
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Less => SHARED + delay(&new, old),
            std::cmp::Ordering::Greater => SHARED + delay(old, &new),
        });
        costs.max().unwrap_or(0)
    }
}
