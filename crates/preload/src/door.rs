//! Where a program gets the driver's functions from: `dlsym`. It is defined here under its own name, so a preloaded library
//! answers first. The opened library decides what is handed out (`door` there); whoever links the driver comes through
//! [`crate::exported`].

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use warpwright_linkage::Dlsym;
use warpwright_linkage::captured::{self, is_captured, is_captured_for, program};

use crate::inside::{behind, inside};

static REAL_DLSYM: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The C library's `dlsym`. It is found by version, since by name one would find ours.
pub fn dlsym_of_libc() -> Option<Dlsym> {
    let mut found = REAL_DLSYM.load(Ordering::Acquire);
    if found.is_null() && is_captured() {
        // It is only passed to, and `dlvsym` may be the program's.
        // SAFETY: a C string.
        found = unsafe { captured::behind(c"dlsym".as_ptr()) };
        REAL_DLSYM.store(found, Ordering::Release);
    }
    if found.is_null() {
        // SAFETY: C strings; RTLD_NEXT searches behind this library.
        let of = |version: *const c_char| unsafe {
            libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version)
        };
        found = of(c"GLIBC_2.34".as_ptr());
        if found.is_null() {
            let first = match cfg!(target_arch = "x86_64") {
                true => c"GLIBC_2.2.5",
                false => c"GLIBC_2.17",
            };
            found = of(first.as_ptr());
        }
        REAL_DLSYM.store(found, Ordering::Release);
    }
    // SAFETY: it is null or `dlsym`.
    unsafe { std::mem::transmute::<*mut c_void, Option<Dlsym>>(found) }
}

/// `dlsym` of the C library.
///
/// # Safety
/// As `dlsym`.
pub unsafe fn real_dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    match dlsym_of_libc() {
        // SAFETY: the caller's.
        Some(real) => unsafe { real(handle, name) },
        None => std::ptr::null_mut(),
    }
}

static NEXT_DLSYM: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The `dlsym` behind this library's: of another tool that was preloaded, or of the C library.
fn next_dlsym() -> *mut c_void {
    let known = NEXT_DLSYM.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: a C string; RTLD_NEXT searches behind this library.
    let mut found = unsafe { real_dlsym(libc::RTLD_NEXT, c"dlsym".as_ptr()) };
    let is_ours = found.cast_const() == dlsym as *const c_void;
    if found.is_null() || is_ours || cfg!(not(target_arch = "x86_64")) {
        found = REAL_DLSYM.load(Ordering::Acquire);
    }
    NEXT_DLSYM.store(found, Ordering::Release);
    found
}

/// Where the object begins that an address lies in.
pub fn object_of(address: *const c_void) -> *mut c_void {
    let null: *mut c_void = std::ptr::null_mut();
    let mut found = libc::Dl_info {
        dli_fname: null.cast(),
        dli_fbase: null,
        dli_sname: null.cast(),
        dli_saddr: null,
    };
    // SAFETY: any address may be asked about.
    unsafe { libc::dladdr(address, &raw mut found) };
    found.dli_fbase
}

/// What `dlsym` gives back, or null and where it goes on.
#[repr(C)]
struct Answer {
    found: *mut c_void,
    next: *mut c_void,
}

/// Does a name begin so? Of `cuInit` the third letter is a capital, and of `curl_easy_init` it is none.
///
/// # Safety
/// A name that ends in a zero.
unsafe fn is_of_driver(name: *const u8) -> bool {
    // SAFETY: nothing is read behind the zero.
    let begins = |at: *const u8, with: &[u8]| unsafe {
        let mut number = 0;
        while number < with.len() && at.add(number).read_volatile() == with[number] {
            number += 1;
        }
        number == with.len()
    };
    // SAFETY: a byte is there if those before it are no zeros.
    unsafe {
        if begins(name, b"cu") {
            return name.add(2).read_volatile().is_ascii_uppercase();
        }
        let bare = if begins(name, b"__") {
            name.add(2)
        } else {
            name
        };
        begins(bare, b"nvrtc") || begins(bare, b"nvJitLink")
    }
}

/// Would a search among all that is loaded find a name here, where nobody else has it? Then it is to fail, as it just has.
///
/// # Safety
/// A name that ends in a zero.
unsafe fn is_ours_alone(handle: *mut c_void, name: *const c_char) -> bool {
    let is_of_all = [libc::RTLD_DEFAULT, libc::RTLD_NEXT].contains(&handle);
    if !is_of_all && handle.cast_const() != program() {
        return false;
    }
    // SAFETY: the caller's. Whoever comes first is found, and then whoever stands behind this library.
    unsafe {
        let found = real_dlsym(libc::RTLD_DEFAULT, name);
        let is_ours = object_of(found) == object_of(dlsym as *const c_void);
        !found.is_null() && is_ours && behind(name).is_null()
    }
}

/// Our function for a name, or who is asked for everything else.
unsafe extern "C" fn ours(
    handle: *mut c_void,
    name: *const c_char,
    caller: *const c_void,
) -> Answer {
    let pass = |next: *mut c_void| Answer {
        found: std::ptr::null_mut(),
        next,
    };
    let Some(of_libc) = dlsym_of_libc() else {
        return pass(std::ptr::null_mut());
    };
    // SAFETY: `dlsym` was called with it.
    if unsafe { is_captured_for(name) } {
        return pass(of_libc as *mut c_void);
    }
    let next = next_dlsym();
    // Who searches behind itself, and who hooks this function as well, is a tool and not the program: it gets what it would
    // get without us.
    let is_hooked = next != of_libc as *mut c_void;
    let is_tool = is_hooked && object_of(caller) == object_of(next);
    // SAFETY: `dlsym` was called with it. The C library itself asks for names while it starts, so there is
    // no work here for a name that is not the driver's.
    if name.is_null() || !unsafe { is_of_driver(name.cast()) } {
        return pass(next);
    }
    // SAFETY: as above.
    if unsafe { is_ours_alone(handle, name) } {
        return pass(std::ptr::null_mut());
    }
    if handle == libc::RTLD_NEXT || is_tool {
        return pass(next);
    }
    // SAFETY: it is a `dlsym`, or null.
    let ask = unsafe { std::mem::transmute::<*mut c_void, Option<Dlsym>>(next) };
    let found = match (inside(), ask) {
        // SAFETY: `dlsym` was called with these.
        (Some(inside), Some(ask)) => unsafe { (inside.hand_out)(ask, handle, name) },
        _ => std::ptr::null_mut(),
    };
    Answer { found, next }
}

/// Answers for the names that we stand in for and goes on into the next `dlsym` for all others, with
/// registers and stack as they were: `RTLD_NEXT` and `RTLD_DEFAULT` depend on who calls.
///
/// # Safety
/// As the C library's.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "mov rdx, qword ptr [rsp + 16]",
        "sub rsp, 8",
        "call {ours}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jne 2f",
        "test rdx, rdx",
        "je 2f",
        "jmp rdx",
        "2:",
        "ret",
        ours = sym ours,
    )
}

/// As above; a search that depends on who calls begins behind this library.
///
/// # Safety
/// As the C library's.
#[cfg(not(target_arch = "x86_64"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe {
        let answer = ours(handle, name, std::ptr::null());
        match answer.found.is_null() {
            true => real_dlsym(handle, name),
            false => answer.found,
        }
    }
}
