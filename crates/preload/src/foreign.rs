//! Would the library be in the way of what is started? Programs of another width or processor, and such that another dynamic
//! linker starts (musl's), cannot load it: they say so on standard error, or do not start at all. What may be started and not
//! read may be such a one.
//!
//! As for `children`: nothing is called or allocated, what is read stands on the stack.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

use warpwright_linkage::captured::{is_same, kernel, kernel_of_four, variable};

use crate::folder::HERE;

/// How what is started is named.
#[derive(Clone, Copy)]
pub enum Named {
    /// By its path.
    Path,
    /// By its path below the folder of a descriptor.
    Below(usize),
    /// By its path, or by a name that is looked for in the folders of `PATH`.
    Searched,
    /// By a descriptor.
    Descriptor,
}

/// Bytes of a file that are looked at in one place.
const BYTES: usize = 1024;
/// Bytes of a script that the kernel looks at (`BINPRM_BUF_SIZE`).
const OF_SCRIPT: usize = 256;
/// Scripts that run each other, at most (`exec_binprm` in Linux' fs/exec.c).
const SCRIPTS: usize = 5;

/// Bytes of a path that is put together: of most, and of any.
const USUAL: usize = 512;
const LONGEST: usize = 4096 + 256;

#[cfg(target_arch = "x86_64")]
const OWN: (u16, &CStr) = (62, c"ld-linux-x86-64.so.2");
#[cfg(target_arch = "aarch64")]
const OWN: (u16, &CStr) = (183, c"ld-linux-aarch64.so.1");

/// Entries of the dynamic section, and what the second says of a program (`DF_1_PIE`).
const OWN_NAME: usize = 14;
const FLAGS: usize = 0x6fff_fffb;
const IS_PROGRAM: usize = 0x0800_0000;

/// A part of a file.
struct Part {
    bytes: MaybeUninit<[u8; BYTES]>,
    count: usize,
}

impl Part {
    /// Reads what stands there.
    ///
    /// # Safety
    /// A descriptor may be of anything.
    unsafe fn read(&mut self, descriptor: usize, from: usize) {
        let place = self.bytes.as_mut_ptr().addr();
        // SAFETY: there is room for so many.
        let count = unsafe { kernel_of_four(libc::SYS_pread64, [descriptor, place, BYTES, from]) };
        self.count = if count < 0 { 0 } else { count as usize };
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

    /// What runs it, if it is a script that runs.
    fn of_script(&mut self) -> Option<*const c_char> {
        const SCRIPT: usize = 0x2123;
        if self.number(0, 2) != SCRIPT {
            return None;
        }
        let mut at = 2;
        while matches!(self.number(at, 1), 0x20 | 0x09) {
            at += 1;
        }
        let mut end = at;
        while end < OF_SCRIPT && !matches!(self.number(end, 1), 0x20 | 0x09 | 0x0a | 0) {
            end += 1;
        }
        (end < OF_SCRIPT).then(|| self.text(at, end))
    }

    /// Is it a program that cannot load this library?
    ///
    /// # Safety
    /// The beginning of the file of this descriptor.
    unsafe fn is_foreign(&mut self, descriptor: usize) -> bool {
        const MAGIC: usize = 0x464c_457f;
        const SHARED: usize = 3;
        const DYNAMIC: usize = 2;
        const INTERPRETER: usize = 3;
        if self.number(0, 4) != MAGIC {
            return false;
        }
        if self.number(4, 2) != 0x0102 || self.number(18, 2) != usize::from(OWN.0) {
            return true;
        }
        let is_shared = self.number(16, 2) == SHARED;
        let (headers, each) = (self.number(32, 8), self.number(54, 2));
        let (mut left, mut header, mut dynamic) = (self.number(56, 2), 0, 0);
        // SAFETY: the caller's.
        unsafe {
            self.read(descriptor, headers);
            while left > 0 && header < self.count {
                let (kind, at) = (self.number(header, 4), self.number(header + 8, 8));
                if kind == INTERPRETER {
                    let bytes = self.number(header + 32, 8);
                    return self.is_other_linker(descriptor, at, bytes);
                }
                if kind == DYNAMIC {
                    dynamic = at;
                }
                header = header.wrapping_add(each);
                left -= 1;
            }
            is_shared && dynamic != 0 && self.is_nameless_linker(descriptor, dynamic)
        }
    }

    /// Does the path of a dynamic linker end in another name?
    ///
    /// # Safety
    /// A descriptor.
    unsafe fn is_other_linker(&mut self, descriptor: usize, at: usize, bytes: usize) -> bool {
        let looked_at = if bytes > BYTES { BYTES } else { bytes };
        // SAFETY: the caller's.
        unsafe { self.read(descriptor, at.wrapping_add(bytes - looked_at)) };
        if looked_at == 0 || looked_at > self.count {
            return false;
        }
        let mut file = self.text(0, looked_at - 1).cast::<u8>();
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
            !is_same(last, OWN.1.as_ptr().cast())
        }
    }

    /// What needs no dynamic linker, and says neither its name, as GNU's does, nor that it is a program is one itself: musl's.
    ///
    /// # Safety
    /// A descriptor.
    unsafe fn is_nameless_linker(&mut self, descriptor: usize, dynamic: usize) -> bool {
        // SAFETY: the caller's.
        unsafe { self.read(descriptor, dynamic) };
        let mut entry = 0;
        while entry < self.count {
            let (tag, value) = (self.number(entry, 8), self.number(entry + 8, 8));
            if tag == OWN_NAME || tag == FLAGS && value & IS_PROGRAM != 0 {
                return false;
            }
            if tag == 0 {
                return true;
            }
            entry += 16;
        }
        false
    }
}

/// Opens a file: a descriptor, or a negative number.
///
/// # Safety
/// A text that ends in a zero.
unsafe fn open(folder: usize, path: *const c_char) -> isize {
    const HOW: usize = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) as usize;
    // SAFETY: the caller's.
    unsafe { kernel(libc::SYS_openat, [folder, path.addr(), HOW]) }
}

/// May it be started?
///
/// # Safety
/// A text that ends in a zero.
unsafe fn starts(folder: usize, path: *const c_char) -> bool {
    let asked = [folder, path.addr(), libc::X_OK as usize];
    // SAFETY: the caller's.
    unsafe { kernel(libc::SYS_faccessat, asked) == 0 }
}

pub fn close(descriptor: usize) {
    // SAFETY: a descriptor of our own.
    unsafe { kernel(libc::SYS_close, [descriptor, 0, 0]) };
}

/// What is known of the file that is started.
enum Found {
    /// There is none, or it may not be started.
    Nothing,
    /// It may be started, and cannot be read.
    Unread,
    Opened(usize),
}

impl Found {
    /// # Safety
    /// A text that ends in a zero.
    unsafe fn at(folder: usize, path: *const c_char) -> Found {
        // SAFETY: the caller's.
        unsafe {
            match open(folder, path) {
                opened if opened >= 0 => Found::Opened(opened as usize),
                code if code == -(libc::EACCES as isize) && starts(folder, path) => Found::Unread,
                _ => Found::Nothing,
            }
        }
    }

    /// What a name means in the folders of `PATH`.
    ///
    /// # Safety
    /// A text that ends in a zero.
    unsafe fn searched(folder: usize, name: *const c_char) -> Found {
        #[inline(never)]
        unsafe fn with<const MOST: usize>(folder: usize, name: *const c_char) -> Option<Found> {
            let mut path = MaybeUninit::<[u8; MOST]>::uninit();
            // SAFETY: there is room for so many; the rest is the caller's.
            unsafe { search(folder, name, path.as_mut_ptr().cast(), MOST) }
        }
        // SAFETY: the caller's.
        unsafe {
            let usual = with::<USUAL>(folder, name);
            usual.unwrap_or_else(|| with::<LONGEST>(folder, name).unwrap_or(Found::Nothing))
        }
    }

    /// What a descriptor is of. One that only names a file (`O_PATH`) is opened once more.
    ///
    /// # Safety
    /// A descriptor may be of anything.
    unsafe fn again(descriptor: usize) -> Found {
        let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0";
        // At most ten digits: negative ones are none.
        let number = descriptor & 0x7fff_ffff;
        let (mut digits, mut rest) = (1, number / 10);
        while rest != 0 {
            (digits, rest) = (digits + 1, rest / 10);
        }
        rest = number;
        while digits > 0 {
            digits -= 1;
            if let Some(place) = path.get_mut(14 + digits) {
                *place = b'0' + (rest % 10) as u8;
            }
            rest /= 10;
        }
        // SAFETY: the text ends in a zero.
        unsafe {
            let opened = open(HERE, path.as_ptr().cast());
            let is_one = kernel(libc::SYS_fcntl, [descriptor, libc::F_GETFD as usize, 0]) >= 0;
            match opened {
                opened if opened >= 0 => Found::Opened(opened as usize),
                _ if is_one => Found::Unread,
                _ => Found::Nothing,
            }
        }
    }

    /// Is it a program that cannot load this library? Of a script what runs it is looked at, in the end.
    ///
    /// # Safety
    /// The descriptor is our own.
    #[inline(never)]
    unsafe fn runs_foreign(mut self, folder: usize) -> bool {
        let mut part = Part {
            bytes: MaybeUninit::uninit(),
            count: 0,
        };
        let mut scripts = 0;
        loop {
            let Found::Opened(opened) = self else {
                return matches!(self, Found::Unread);
            };
            // SAFETY: of a descriptor; a text of the file.
            unsafe {
                part.read(opened, 0);
                let script = part.of_script();
                let is_foreign = script.is_none() && part.is_foreign(opened);
                close(opened);
                let (Some(script), true) = (script, scripts < SCRIPTS) else {
                    return is_foreign;
                };
                self = Found::at(folder, script);
            }
            scripts += 1;
        }
    }
}

/// What a name means in the folders of `PATH`; none where a path is too long for the room.
///
/// # Safety
/// A text that ends in a zero, and so much room.
#[inline(never)]
unsafe fn search(at: usize, name: *const c_char, path: *mut u8, most: usize) -> Option<Found> {
    let mut folder = variable(b"PATH=");
    if folder.is_null() {
        folder = c"/bin:/usr/bin".as_ptr().cast();
    }
    // SAFETY: texts that end in a zero; nothing is written behind the room.
    unsafe {
        loop {
            let mut bytes = 0;
            while !matches!(folder.read_volatile(), 0 | b':') {
                if bytes < most {
                    path.add(bytes).write_volatile(folder.read_volatile());
                }
                (bytes, folder) = (bytes + 1, folder.add(1));
            }
            // An empty one is the current folder.
            if bytes > 0 && bytes < most {
                path.add(bytes).write_volatile(b'/');
                bytes += 1;
            }
            let mut byte = name.cast::<u8>();
            while bytes < most {
                path.add(bytes).write_volatile(byte.read_volatile());
                if byte.read_volatile() == 0 {
                    break;
                }
                (bytes, byte) = (bytes + 1, byte.add(1));
            }
            if bytes >= most && most < LONGEST {
                return None;
            }
            if bytes < most && starts(at, path.cast()) {
                return Some(Found::at(at, path.cast()));
            }
            if folder.read_volatile() == 0 {
                return Some(Found::Nothing);
            }
            folder = folder.add(1);
        }
    }
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

/// Is what is started in a folder a program that cannot load this library?
///
/// # Safety
/// Named as said, or null; the folder is that of a descriptor, or [`HERE`].
pub unsafe fn is_foreign(what: usize, named: Named, folder: usize) -> bool {
    let text: *const c_char = std::ptr::with_exposed_provenance(what);
    // SAFETY: the caller's.
    unsafe {
        let found = match named {
            Named::Descriptor => Found::again(what),
            _ if text.is_null() => return false,
            Named::Searched if !is_path(text) => Found::searched(folder, text),
            Named::Below(below) => Found::at(below, text),
            _ => Found::at(folder, text),
        };
        found.runs_foreign(folder)
    }
}
