//! Holes of the address space around the driver. A program that closes the driver and opens it again has it where it was,
//! since the kernel takes the highest hole that is large enough; so nothing of ours is to lie in these.

use std::ffi::c_void;

use crate::door::object_of;
use crate::inside::of_driver;

/// What the kernel aligns large mappings to: it looks for a hole that is larger by so much.
const HUGE: usize = 2 << 20;
const MOST: usize = 64;

/// Holes that are taken, until they are given back.
pub struct Holes {
    parts: [(*mut c_void, usize); MOST],
    count: usize,
}

impl Holes {
    /// All above the driver, and the one below it, as far as they are to be had; none where there is no driver.
    pub fn take() -> Holes {
        let mut holes = Holes {
            parts: [(std::ptr::null_mut(), 0); MOST],
            count: 0,
        };
        // SAFETY: a C string.
        let driver = object_of(unsafe { of_driver(c"cuInit".as_ptr()) });
        if driver.is_null() {
            return holes;
        }
        for size in [1 << 20, 64 << 10, 4 << 10] {
            while let Some(part) = holes.map(std::ptr::null_mut(), size, 0) {
                if part < driver {
                    holes.give_back(1);
                    break;
                }
            }
        }
        let below = driver.wrapping_byte_sub(HUGE);
        holes.map(below, HUGE, libc::MAP_FIXED_NOREPLACE);
        holes
    }

    fn map(&mut self, at: *mut c_void, size: usize, how: i32) -> Option<*mut c_void> {
        let place = self.parts.get_mut(self.count)?;
        let how = how | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping in the place of none.
        let part = unsafe { libc::mmap(at, size, libc::PROT_NONE, how, -1, 0) };
        if part == libc::MAP_FAILED {
            return None;
        }
        *place = (part, size);
        self.count += 1;
        Some(part)
    }

    /// Gives the last ones back.
    fn give_back(&mut self, count: usize) {
        for _ in 0..count {
            self.count -= 1;
            if let Some(&(part, size)) = self.parts.get(self.count) {
                // SAFETY: it was mapped here, and nobody knows of it.
                unsafe { libc::munmap(part, size) };
            }
        }
    }
}

impl Drop for Holes {
    fn drop(&mut self) {
        self.give_back(self.count);
    }
}
