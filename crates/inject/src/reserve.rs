//! Memory for the case that there is none.
//!
//! A program may run at the edge of its memory (RLIMIT_AS), where Rust ends the process as soon as an allocation fails. So
//! large work asks for its room before it begins ([`has_room`]), and what is small comes from a reserve of this library:
//! that is the sign to stand aside, and then little is allocated any more.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::state::fall_asleep;

/// Bytes of the reserve: address space and no memory until they are used.
const BYTES: usize = 1 << 20;
/// What is larger asks for its room.
const LARGEST: usize = 64 << 10;

#[repr(align(4096))]
struct Place(UnsafeCell<[u8; BYTES]>);

// SAFETY: its parts are handed out once each.
unsafe impl Sync for Place {}

static PLACE: Place = Place(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

struct Reserve;

#[global_allocator]
static ALLOCATOR: Reserve = Reserve;

/// A part of the reserve, which is never given back; null where there is none.
fn part(layout: Layout) -> *mut u8 {
    fall_asleep();
    let (size, align) = (layout.size(), layout.align());
    if size > LARGEST || align > 4096 {
        return std::ptr::null_mut();
    }
    let place = |used: usize| {
        let start = used.next_multiple_of(align);
        (start + size <= BYTES).then_some(start)
    };
    let taken = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        place(used).map(|start| start + size)
    });
    match taken.ok().and_then(place) {
        // SAFETY: inside of the reserve.
        Some(start) => unsafe { PLACE.0.get().cast::<u8>().add(start) },
        None => std::ptr::null_mut(),
    }
}

fn is_part(pointer: *mut u8) -> bool {
    let start = PLACE.0.get().cast::<u8>().addr();
    (start..start + BYTES).contains(&pointer.addr())
}

// SAFETY: the system's memory, or parts of the reserve that are handed out once and are zeros before.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        match unsafe { System.alloc(layout) } {
            none if none.is_null() => part(layout),
            found => found,
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        match unsafe { System.alloc_zeroed(layout) } {
            none if none.is_null() => part(layout),
            found => found,
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if !is_part(pointer) {
            // SAFETY: the system gave it.
            unsafe { System.dealloc(pointer, layout) };
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_part(pointer) {
            // SAFETY: the system gave it.
            let found = unsafe { System.realloc(pointer, layout, size) };
            if !found.is_null() {
                return found;
            }
        }
        // SAFETY: the caller's: a size that is a layout's with this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: both have as many bytes as are copied, and the old one is given back by whom it is from.
        unsafe {
            let found = self.alloc(new);
            if !found.is_null() {
                found.copy_from_nonoverlapping(pointer, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            found
        }
    }
}

unsafe extern "C" {
    /// Where the first thread's stack began, as the dynamic linker keeps it.
    static __libc_stack_end: *const c_void;
}

/// Is there room for work on a module on the calling thread's stack? On one that the program has put in its place there is
/// none: nobody can tell where that ends.
pub fn has_stack() -> bool {
    /// Bytes, several times what a release build takes.
    const WANTED: usize = 64 << 10;
    /// The first thread of a program that may have so much is not looked at more closely: that takes long.
    const MUCH: usize = 1 << 20;
    /// Below the first thread's stack nothing else lies within so many bytes (`SZ_128M` in Linux' mm/util.c).
    const GAP: usize = 128 << 20;
    // SAFETY: zeros are attributes, which are filled below.
    let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    let here = std::ptr::from_ref(&attributes).addr();
    let (mut start, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the calling thread, a word of the dynamic linker's, and outputs of the right types.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit);
        let most = usize::try_from(limit.rlim_cur).map_or(GAP, |limit| limit.min(GAP));
        let used = __libc_stack_end.addr().checked_sub(here);
        if most >= MUCH && used.is_some_and(|used| used <= most - WANTED) {
            return true;
        }
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return false;
        }
        libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
    }
    let room = here.checked_sub(start.addr());
    room.is_some_and(|room| room <= size && room >= WANTED)
}

/// Does work on so many bytes fit into what the process may still have? Reading them, what is made of them, and room for
/// the program itself to go on.
pub fn has_room(bytes: usize) -> bool {
    /// Bytes that the program may want next.
    const REST: usize = 8 << 20;
    /// What is made of an image: a copy, its sections, its instructions.
    const FACTOR: usize = 8;
    let size = bytes.saturating_mul(FACTOR).saturating_add(REST);
    let (access, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a mapping of its own, which goes again untouched.
    unsafe {
        let found = libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0);
        found != libc::MAP_FAILED && libc::munmap(found, size) == 0
    }
}
