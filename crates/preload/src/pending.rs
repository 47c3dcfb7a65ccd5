//! An error of the dynamic linker's that the program has not asked for yet. Whoever asks the dynamic linker for something takes it
//! away: so it is made once more, as far as what it says tells how.

use std::ffi::{c_char, c_void};

use crate::door::real_dlsym;

/// Bytes of the longest text, with its zero.
const MOST: usize = 1024;
const NO_SYMBOL: &[u8] = b": undefined symbol: ";
const NO_FILE: &[u8] = b": cannot open shared object file: No such file or directory";

/// Its text; empty where there is none, or it is too long.
pub struct Pending([u8; MOST]);

impl Pending {
    /// Takes it.
    pub fn take() -> Pending {
        let mut text = [0; MOST];
        // SAFETY: null, or a text that ends in a zero, of which nothing behind that is read.
        unsafe {
            let found: *const u8 = libc::dlerror().cast();
            let mut at = 0;
            while !found.is_null() && found.add(at).read_volatile() != 0 && at < MOST - 1 {
                (&raw mut text)
                    .cast::<u8>()
                    .add(at)
                    .write_volatile(found.add(at).read_volatile());
                at += 1;
            }
            if at == MOST - 1 {
                text = [0; MOST];
            }
        }
        Pending(text)
    }

    /// Makes it once more.
    pub fn give_back(mut self) {
        let text = (&raw mut self.0).cast::<u8>();
        let mut at = 0;
        // SAFETY: nothing is read behind the zero, and one is written where what is wrong begins to be told.
        unsafe {
            while text.add(at).read_volatile() != 0 {
                let rest = text.add(at);
                if begins(rest, NO_SYMBOL) {
                    rest.write_volatile(0);
                    return again(text.cast(), rest.add(NO_SYMBOL.len()).cast());
                }
                if begins(rest, NO_FILE) {
                    rest.write_volatile(0);
                    libc::dlopen(text.cast(), libc::RTLD_LAZY);
                    return;
                }
                at += 1;
            }
        }
    }
}

/// # Safety
/// It ends in a zero.
unsafe fn begins(text: *const u8, with: &[u8]) -> bool {
    let mut at = 0;
    // SAFETY: a byte is there if those before it are no zeros.
    unsafe {
        while at < with.len() && text.add(at).read_volatile() == with[at] {
            at += 1;
        }
    }
    at == with.len()
}

/// Asks an object, by its name or the program's, for what it does not have.
///
/// # Safety
/// Both end in a zero.
unsafe fn again(object: *const c_char, name: *const c_char) {
    const HOW: i32 = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: the caller's; what is loaded stays so where somebody else holds it.
    unsafe {
        let mut found: *mut c_void = libc::dlopen(object, HOW);
        if found.is_null() {
            found = libc::dlopen(std::ptr::null(), HOW);
        }
        libc::dlclose(found);
        real_dlsym(found, name);
    }
}
