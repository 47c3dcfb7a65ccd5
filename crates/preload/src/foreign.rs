//! Would the library be in the way of what is started? Programs of another width or processor, and such that another dynamic
//! linker starts (musl's), cannot load it: they say so on standard error, or do not start at all.
//!
//! As for `children`: nothing is called or allocated, what is read stands on the stack.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

use warpwright_linkage::captured::{is_same, kernel, variable};

/// How what is started is named.
#[derive(Clone, Copy)]
pub enum Named {
    /// By its path.
    Path,
    /// By its path, or by a name that is looked for in the folders of `PATH`.
    Searched,
    /// By a descriptor.
    Descriptor,
}

/// Bytes of a file that are looked at: the program headers stand at its beginning, and then the dynamic linker's name.
const BYTES: usize = 1024;

/// Bytes of a path that is put together.
const LONGEST: usize = 512;

#[cfg(target_arch = "x86_64")]
const OWN: (u16, &CStr) = (62, c"ld-linux-x86-64.so.2");
#[cfg(target_arch = "aarch64")]
const OWN: (u16, &CStr) = (183, c"ld-linux-aarch64.so.1");

/// The beginning of a file.
struct Beginning {
    bytes: MaybeUninit<[u8; BYTES]>,
    count: usize,
}

impl Beginning {
    /// # Safety
    /// Nothing else reads there; a descriptor may be of anything.
    #[inline(never)]
    unsafe fn of(descriptor: usize) -> Beginning {
        let mut bytes = MaybeUninit::<[u8; BYTES]>::uninit();
        // SAFETY: there is room for so many; from where the file begins.
        let count = unsafe {
            kernel(
                libc::SYS_pread64,
                [descriptor, bytes.as_mut_ptr().addr(), BYTES],
            )
        };
        let count = if count < 0 { 0 } else { count as usize };
        Beginning { bytes, count }
    }

    /// A number of so many bytes, the least one first; zero where there is none.
    fn number(&self, at: usize, bytes: usize) -> usize {
        let (mut value, mut byte) = (0, 0);
        while byte < bytes && at < self.count && byte < self.count - at {
            // SAFETY: it was read.
            let part = unsafe {
                self.bytes
                    .as_ptr()
                    .cast::<u8>()
                    .add(at + byte)
                    .read_volatile()
            };
            value |= usize::from(part) << (8 * byte);
            byte += 1;
        }
        value
    }

    /// Ends a text there; where it begins.
    fn text(&mut self, at: usize, end: usize) -> *const c_char {
        let bytes = self.bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: within the bytes.
        unsafe {
            bytes.add(end).write_volatile(0);
            bytes.add(at).cast()
        }
    }

    /// Is it a program that cannot load this library?
    fn is_foreign(&mut self) -> bool {
        const SCRIPT: usize = 0x2123;
        const MAGIC: usize = 0x464c_457f;
        const INTERPRETER: usize = 3;
        if self.number(0, 2) == SCRIPT {
            return self.is_script_foreign();
        }
        if self.number(0, 4) != MAGIC {
            return false;
        }
        let (machine, name) = OWN;
        if self.number(4, 2) != 0x0102 || self.number(18, 2) != usize::from(machine) {
            return true;
        }
        let (mut header, each) = (self.number(32, 8), self.number(54, 2));
        let mut left = self.number(56, 2);
        while left > 0 && header < BYTES {
            if self.number(header, 4) == INTERPRETER {
                let (at, bytes) = (self.number(header + 8, 8), self.number(header + 32, 8));
                let end = at.wrapping_add(bytes);
                if bytes == 0 || end > self.count || end < at {
                    return false;
                }
                let mut file = self.text(at, end - 1).cast::<u8>();
                let mut last = file;
                // SAFETY: it ends in a zero.
                unsafe {
                    while file.read_volatile() != 0 {
                        let is_folder = file.read_volatile() == b'/';
                        file = file.add(1);
                        if is_folder {
                            last = file;
                        }
                    }
                    return !is_same(last, name.as_ptr().cast());
                }
            }
            header = header.wrapping_add(each);
            left -= 1;
        }
        false
    }

    /// The same of what runs a script.
    fn is_script_foreign(&mut self) -> bool {
        let mut at = 2;
        while matches!(self.number(at, 1), 0x20 | 0x09) {
            at += 1;
        }
        let mut end = at;
        while end < self.count && !matches!(self.number(end, 1), 0x20 | 0x09 | 0x0a | 0) {
            end += 1;
        }
        if end >= self.count {
            return false;
        }
        let text = self.text(at, end);
        // SAFETY: it ends in a zero. What runs scripts is no script, as a rule.
        let opened = unsafe { open(text) };
        opened.is_some_and(|opened| {
            // SAFETY: a descriptor of our own.
            let mut first = unsafe { Beginning::of(opened) };
            close(opened);
            first.number(0, 1) != 0x23 && first.is_foreign()
        })
    }
}

/// # Safety
/// A text that ends in a zero.
unsafe fn open(path: *const c_char) -> Option<usize> {
    const HOW: usize = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) as usize;
    // SAFETY: the caller's.
    let opened = unsafe {
        kernel(
            libc::SYS_openat,
            [libc::AT_FDCWD as isize as usize, path.addr(), HOW],
        )
    };
    if opened < 0 {
        None
    } else {
        Some(opened as usize)
    }
}

fn close(descriptor: usize) {
    // SAFETY: a descriptor of our own.
    unsafe { kernel(libc::SYS_close, [descriptor, 0, 0]) };
}

/// Opens what a name means in the folders of `PATH`.
///
/// # Safety
/// A text that ends in a zero.
#[inline(never)]
unsafe fn search(name: *const c_char) -> Option<usize> {
    let mut folder = variable(b"PATH=");
    let mut place = MaybeUninit::<[u8; LONGEST]>::uninit();
    let path = place.as_mut_ptr().cast::<u8>();
    // SAFETY: texts that end in a zero; nothing is written behind the room.
    unsafe {
        while !folder.is_null() {
            let mut bytes = 0;
            while !matches!(folder.read_volatile(), 0 | b':') {
                if bytes < LONGEST {
                    path.add(bytes).write_volatile(folder.read_volatile());
                }
                (bytes, folder) = (bytes + 1, folder.add(1));
            }
            // An empty one is the current folder.
            if bytes > 0 && bytes < LONGEST {
                path.add(bytes).write_volatile(b'/');
                bytes += 1;
            }
            let mut byte = name.cast::<u8>();
            while bytes < LONGEST {
                path.add(bytes).write_volatile(byte.read_volatile());
                if byte.read_volatile() == 0 {
                    if let Some(opened) = open(path.cast()) {
                        return Some(opened);
                    }
                    break;
                }
                (bytes, byte) = (bytes + 1, byte.add(1));
            }
            if folder.read_volatile() == 0 {
                break;
            }
            folder = folder.add(1);
        }
    }
    None
}

/// Is there a slash in it?
///
/// # Safety
/// A text that ends in a zero.
unsafe fn is_path(name: *const c_char) -> bool {
    let mut at = name.cast::<u8>();
    // SAFETY: the caller's.
    unsafe {
        while !matches!(at.read_volatile(), 0 | b'/') {
            at = at.add(1);
        }
        at.read_volatile() != 0
    }
}

/// Is what is started a program that cannot load this library?
///
/// # Safety
/// Named as said, or null.
pub unsafe fn is_foreign(what: usize, named: Named) -> bool {
    let text: *const c_char = std::ptr::with_exposed_provenance(what);
    // SAFETY: the caller's.
    unsafe {
        if let Named::Descriptor = named {
            return Beginning::of(what).is_foreign();
        }
        if text.is_null() {
            return false;
        }
        let opened = match named {
            Named::Searched if !is_path(text) => search(text),
            _ => open(text),
        };
        opened.is_some_and(|opened| {
            let mut first = Beginning::of(opened);
            close(opened);
            first.is_foreign()
        })
    }
}
