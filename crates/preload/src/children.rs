//! What a program starts has the library, too, if it can open it. Where it cannot (after `chroot`, as another user, with other
//! mounts, if the library is gone, or as a program of another kind) the dynamic linker would say so on its standard error: then
//! it is given an environment that does not name the library. So is what would be started with arguments and an environment that
//! are too long, and only by what names it.
//!
//! This runs in signal handlers and between `vfork` and exec, where all memory is the parent's: nothing is called or allocated,
//! and nothing of the program's is written. What is given stands on the stack. `system` and `popen` take the program's own
//! environment, so there the words that name the library are written over where they stand, until they return. Whoever calls
//! the kernel itself goes past this. `posix_spawn` is the one of today, which takes no file for a script that does not say so,
//! also for programs from before 2012.

use std::ffi::{c_char, c_int, c_void};
use std::mem::transmute;

use warpwright_linkage::captured::{environment, is_same, kernel, own_name};

use crate::folder::{Folder, HERE};
use crate::foreign::{Named, is_foreign};
use crate::room::on_stack;
use crate::sealed::are_children_sealed;
use crate::ways::{SAVED, Way, known, ways};

static NAME: [u8; 11] = *b"LD_PRELOAD=";

/// Texts, behind the last of them a null.
type Texts = *const *mut u8;

/// Can what is started not open the library? It may have no descriptor left for that.
fn is_out_of_reach() -> bool {
    const HOW: usize = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    let library = own_name();
    if library.is_null() || are_children_sealed() {
        return !library.is_null();
    }
    let here = libc::AT_FDCWD as isize as usize;
    // SAFETY: the dynamic linker's name, and a descriptor of our own.
    unsafe {
        let opened = kernel(libc::SYS_openat, [here, library.addr(), HOW]);
        if opened >= 0 {
            kernel(libc::SYS_close, [opened as usize, 0, 0]);
        }
        opened < 0
    }
}

/// Can what is started not have the library, or does it say so?
///
/// # Safety
/// Named as said, or null.
unsafe fn is_away(what: usize, named: Named) -> bool {
    // SAFETY: the caller's.
    is_out_of_reach() || unsafe { is_foreign(what, named, HERE) }
}

/// Writes a list of libraries anew, without this one. Words end in a space or a colon.
///
/// # Safety
/// It ends in a zero, and may be written.
unsafe fn take_out(list: *mut u8) {
    let ends = |byte: u8| matches!(byte, 0 | b' ' | b':');
    let library: *const u8 = own_name().cast();
    let (mut from, mut to) = (list, list);
    // SAFETY: nothing is read behind the zero, and nothing written behind what was read.
    unsafe {
        loop {
            let mut end = from;
            while !ends(end.read_volatile()) {
                end = end.add(1);
            }
            let separator = end.read_volatile();
            end.write_volatile(0);
            let is_own = is_same(from, library);
            end.write_volatile(separator);
            while !is_own && from != end.add(usize::from(separator != 0)) {
                to.write_volatile(from.read_volatile());
                (from, to) = (from.add(1), to.add(1));
            }
            if separator == 0 {
                break;
            }
            from = end.add(1);
        }
        to.write_volatile(0);
    }
}

/// Does a variable begin so?
///
/// # Safety
/// It ends in a zero.
unsafe fn begins<const BYTES: usize>(variable: *const u8, begin: &[u8; BYTES]) -> bool {
    let mut at = 0;
    // SAFETY: a byte is there if those before it are no zeros.
    unsafe {
        while at < BYTES && variable.add(at).read_volatile() == begin[at] {
            at += 1;
        }
    }
    at == BYTES
}

/// Is it a variable that the command sets beside the one that names the library? Others of such names are the user's, who would
/// have them without it, too.
///
/// # Safety
/// It ends in a zero.
unsafe fn is_told(variable: *const u8) -> bool {
    // Their ends, each with a zero, and one more.
    static ENDS: &[u8] = b"=\0_DIR=\0_TURNS=\0_BUDGET=\0_BUILDER=\0\0";
    // SAFETY: the caller's; the list has its ends.
    unsafe {
        if !begins(variable, b"WARPWRIGHT") {
            return false;
        }
        let rest = variable.add(10);
        let mut end = ENDS.as_ptr();
        while end.read_volatile() != 0 {
            let mut at = 0;
            while end.read_volatile() != 0 && rest.add(at).read_volatile() == end.read_volatile() {
                (at, end) = (at + 1, end.add(1));
            }
            if end.read_volatile() == 0 {
                return true;
            }
            while end.read_volatile() != 0 {
                end = end.add(1);
            }
            end = end.add(1);
        }
        false
    }
}

/// Is it the variable that names the library?
///
/// # Safety
/// It ends in a zero.
unsafe fn names_library(variable: *const u8) -> bool {
    // SAFETY: the caller's.
    unsafe { begins(variable, &NAME) }
}

/// Copies a text; returns how many words it takes.
///
/// # Safety
/// It ends in a zero, and there is room, or `to` is null.
unsafe fn copy(text: *const u8, to: *mut u8) -> usize {
    let mut at = 0;
    // SAFETY: the caller's.
    unsafe {
        loop {
            let byte = text.add(at).read_volatile();
            if !to.is_null() {
                to.add(at).write_volatile(byte);
            }
            at += 1;
            if byte == 0 {
                return at.div_ceil(size_of::<usize>());
            }
        }
    }
}

/// How many texts there are, and how many words an environment without the library takes; as many as there are texts, and a null,
/// where none names it.
///
/// # Safety
/// Null, or texts that end in a zero.
unsafe fn size(all: Texts) -> (usize, usize) {
    let (mut count, mut words) = (0, 1);
    // SAFETY: the caller's.
    unsafe {
        while !all.is_null() && !(*all.add(count)).is_null() {
            let text = *all.add(count);
            words += 1;
            if names_library(text) {
                words += 1 + copy(text, std::ptr::null_mut());
            }
            count += 1;
        }
    }
    (count, words)
}

/// Has something done with an environment that does not name the library. A short one has no variable more than the program
/// has without the library.
///
/// # Safety
/// Null, or texts that end in a zero.
unsafe fn without_library(
    all: Texts,
    is_short: bool,
    work: &mut dyn FnMut(Texts) -> usize,
) -> usize {
    // SAFETY: the caller's.
    let (count, words) = unsafe { size(all) };
    if words == count + 1 {
        return work(all);
    }
    on_stack(words, &mut |place| {
        if place.is_null() {
            return work(all);
        }
        let new: *mut *mut u8 = place.cast();
        // SAFETY: there are so many words.
        unsafe {
            let (mut at, mut to, mut behind) = (0, new, place.add(count + 1));
            while at < count {
                let mut text = *all.add(at);
                at += 1;
                if is_short && is_told(text) {
                    continue;
                }
                if names_library(text) {
                    let words = copy(text, behind.cast());
                    text = behind.cast();
                    let list = text.add(NAME.len());
                    take_out(list);
                    if is_short && list.read_volatile() == 0 {
                        continue;
                    }
                    behind = behind.add(words);
                }
                to.write_volatile(text);
                to = to.add(1);
            }
            to.write_volatile(std::ptr::null_mut());
        }
        work(new)
    })
}

/// The same in the program's own environment, which is as it was behind that.
///
/// # Safety
/// It is not the parent's.
unsafe fn without_library_meanwhile(is_short: bool, work: &mut dyn FnMut() -> usize) -> usize {
    let all = environment();
    // SAFETY: the program's environment.
    let (count, words) = unsafe { size(all) };
    if words == count + 1 {
        return work();
    }
    on_stack(count + 1 + words, &mut |place| {
        if place.is_null() {
            return work();
        }
        // SAFETY: there are so many words; texts of the environment are not given back.
        unsafe {
            let texts = place.add(count + 1);
            leave_out(all, count, texts);
            if is_short {
                shorten(all, count, place);
            }
            let done = work();
            if is_short && environment() == all {
                let mut at = 0;
                while at <= count {
                    let text = std::ptr::with_exposed_provenance_mut(place.add(at).read_volatile());
                    all.cast_mut().add(at).write_volatile(text);
                    at += 1;
                }
            }
            put_back(texts);
            done
        }
    })
}

/// Takes the library out of so many texts where they stand, and keeps them as they were: where each is, and the text.
///
/// # Safety
/// There is room, and they may be written.
unsafe fn leave_out(all: Texts, count: usize, mut kept: *mut usize) {
    let mut at = 0;
    // SAFETY: the caller's.
    unsafe {
        while at < count {
            let text = *all.add(at);
            if names_library(text) {
                kept.write_volatile(text.expose_provenance());
                kept = kept.add(1 + copy(text, kept.add(1).cast()));
                take_out(text.add(NAME.len()));
            }
            at += 1;
        }
        kept.write_volatile(0);
    }
}

/// Writes such texts where they were.
///
/// # Safety
/// As [`leave_out`] kept them.
unsafe fn put_back(mut kept: *const usize) {
    // SAFETY: the caller's.
    unsafe {
        while kept.read_volatile() != 0 {
            let text = std::ptr::with_exposed_provenance_mut(kept.read_volatile());
            kept = kept.add(1 + copy(kept.add(1).cast(), text));
        }
    }
}

/// Takes those of so many variables away that the program would not have without the library, and keeps the list as it was.
///
/// # Safety
/// There is room, and the list may be written.
unsafe fn shorten(all: Texts, count: usize, kept: *mut usize) {
    let (mut at, mut to) = (0, all.cast_mut());
    // SAFETY: the caller's; no more is written than was read.
    unsafe {
        while at < count {
            let text = *all.add(at);
            kept.add(at).write_volatile(text.expose_provenance());
            at += 1;
            let is_empty = names_library(text) && text.add(NAME.len()).read_volatile() == 0;
            if !is_empty && !is_told(text) {
                to.write_volatile(text);
                to = to.add(1);
            }
        }
        kept.add(count).write_volatile(0);
        to.write_volatile(std::ptr::null_mut());
    }
}

/// What starts a program with arguments and an environment.
type Start = unsafe extern "C" fn(usize, Texts, Texts) -> c_int;

/// Were arguments and environment too long, as the functions say that return only then?
fn is_too_long(done: usize) -> bool {
    // SAFETY: the calling thread's own.
    done as c_int == -1 && unsafe { *libc::__errno_location() } == libc::E2BIG
}

/// Starts something, as it was called or with another environment than its own, so that it fits.
///
/// # Safety
/// Null, or texts that end in a zero.
unsafe fn fitted(
    own: Texts,
    is_away: bool,
    start: &dyn Fn(Option<Texts>) -> usize,
    is_too_long: fn(usize) -> bool,
) -> c_int {
    let mut with = |other| start(Some(other));
    // SAFETY: the caller's.
    unsafe {
        if is_away {
            return without_library(own, false, &mut with) as c_int;
        }
        let done = start(None);
        let again = is_too_long(done);
        (if again {
            without_library(own, true, &mut with)
        } else {
            done
        }) as c_int
    }
}

/// Goes on there.
///
/// # Safety
/// As the C library's.
unsafe fn start(way: &Way, named: Named, what: usize, words: Texts, own: Texts) -> c_int {
    // SAFETY: it is one; the rest is the caller's.
    unsafe {
        let next: Start = transmute(way.next());
        let start = |other: Option<Texts>| next(what, words, other.unwrap_or(own)) as usize;
        fitted(own, is_away(what, named), &start, is_too_long)
    }
}

/// The same for one without an environment, which means the program's, and one with it.
///
/// # Safety
/// As the C library's.
unsafe fn start_as(bare: &Way, way: &Way, named: Named, what: usize, words: Texts) -> c_int {
    // SAFETY: they are; the rest is the caller's.
    unsafe {
        let bare: unsafe extern "C" fn(usize, Texts) -> c_int = transmute(bare.next());
        let next: Start = transmute(way.next());
        let start = |other| match other {
            Some(other) => next(what, words, other) as usize,
            None => bare(what, words) as usize,
        };
        fitted(environment(), is_away(what, named), &start, is_too_long)
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execve(path: usize, words: Texts, own: Texts) -> c_int {
    // SAFETY: the caller's.
    unsafe { start(&all::execve, Named::Path, path, words, own) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvpe(file: usize, words: Texts, own: Texts) -> c_int {
    // SAFETY: the caller's.
    unsafe { start(&all::execvpe, Named::Searched, file, words, own) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fexecve(file: c_int, words: Texts, own: Texts) -> c_int {
    // SAFETY: the caller's.
    unsafe { start(&all::fexecve, Named::Descriptor, file as usize, words, own) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execveat(
    folder: c_int,
    path: *const c_char,
    words: Texts,
    own: Texts,
    flags: c_int,
) -> c_int {
    type StartAt = unsafe extern "C" fn(c_int, *const c_char, Texts, Texts, c_int) -> c_int;
    let next = all::execveat.next();
    // SAFETY: null, or one; the rest is the caller's.
    unsafe {
        let Some(next) = transmute::<*mut c_void, Option<StartAt>>(next) else {
            // The C library is older.
            *libc::__errno_location() = libc::ENOSYS;
            return -1;
        };
        let is_itself =
            flags & libc::AT_EMPTY_PATH != 0 && !path.is_null() && path.read_volatile() == 0;
        let (what, named) = match is_itself {
            true => (folder as usize, Named::Descriptor),
            false => (path.expose_provenance(), Named::Below(folder as usize)),
        };
        let start =
            |other: Option<Texts>| next(folder, path, words, other.unwrap_or(own), flags) as usize;
        fitted(own, is_away(what, named), &start, is_too_long)
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execv(path: usize, words: Texts) -> c_int {
    // SAFETY: the caller's.
    unsafe { start_as(&all::execv, &all::execve, Named::Path, path, words) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvp(file: usize, words: Texts) -> c_int {
    // SAFETY: the caller's.
    unsafe { start_as(&all::execvp, &all::execvpe, Named::Searched, file, words) }
}

/// What `posix_spawn` is given before the environment.
type Spawned = (
    *mut c_int,
    *const c_char,
    *const c_void,
    *const c_void,
    Texts,
);

/// # Safety
/// As the C library's.
unsafe fn spawn(
    way: &Way,
    named: Named,
    (id, what, actions, attributes, words): Spawned,
    own: Texts,
) -> c_int {
    type Spawn = unsafe extern "C" fn(
        *mut c_int,
        *const c_char,
        *const c_void,
        *const c_void,
        Texts,
        Texts,
    ) -> c_int;
    // SAFETY: it is one.
    let next: Spawn = unsafe { transmute(way.next()) };
    // SAFETY: the caller's.
    let start = |other: Option<Texts>| unsafe {
        next(id, what, actions, attributes, words, other.unwrap_or(own)) as usize
    };
    // SAFETY: the caller's.
    unsafe {
        let what = what.expose_provenance();
        let is_away = is_out_of_reach()
            || Folder::of(actions).is_none_or(|folder| is_foreign(what, named, folder.descriptor));
        fitted(own, is_away, &start, |done| done as c_int == libc::E2BIG)
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawn(
    id: *mut c_int,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    words: Texts,
    own: Texts,
) -> c_int {
    let given = (id, path, actions, attributes, words);
    // SAFETY: the caller's.
    unsafe { spawn(&all::posix_spawn, Named::Path, given, own) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawnp(
    id: *mut c_int,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    words: Texts,
    own: Texts,
) -> c_int {
    let given = (id, file, actions, attributes, words);
    // SAFETY: the caller's.
    unsafe { spawn(&all::posix_spawnp, Named::Searched, given, own) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn system(command: *const c_char) -> c_int {
    // SAFETY: it is one.
    let next: unsafe extern "C" fn(*const c_char) -> c_int =
        unsafe { transmute(all::system.next()) };
    // SAFETY: the caller's.
    let mut next = || unsafe { next(command) as usize };
    // Without a command it starts a shell, too, to see whether there is one. Of one that could not be started it says that it
    // ended so.
    let has_failed = |status, number| status == 127 << 8 && number == libc::E2BIG;
    // SAFETY: the C library's starts a shell from this process's memory alone.
    unsafe { in_shell(&mut next, has_failed) as c_int }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn popen(command: *const c_char, how: *const c_char) -> usize {
    type Open = unsafe extern "C" fn(*const c_char, *const c_char) -> usize;
    // SAFETY: it is one.
    let next: Open = unsafe { transmute(all::popen.next()) };
    // SAFETY: the caller's.
    let mut next = || unsafe { next(command, how) };
    // Its number of the error does not say why a shell could not be started.
    let has_failed = |file, _| file == 0;
    // SAFETY: as above.
    unsafe { in_shell(&mut next, has_failed) }
}

/// Starts a shell with the program's own environment, so that it fits.
///
/// # Safety
/// That is not the parent's.
unsafe fn in_shell(
    start: &mut dyn FnMut() -> usize,
    has_failed: fn(usize, c_int) -> bool,
) -> usize {
    // SAFETY: the caller's; the calling thread's own number.
    unsafe {
        if is_out_of_reach() {
            return without_library_meanwhile(false, start);
        }
        let number = libc::__errno_location();
        let before = number.read();
        number.write(0);
        let done = start();
        if has_failed(done, number.read()) {
            return without_library_meanwhile(true, start);
        }
        if number.read() == 0 {
            number.write(before);
        }
        done
    }
}

/// Where the second to sixth argument stand on the stack, and the first.
const REGISTERS: [usize; 5] = [4, 3, 2, 1, 0];
const FIRST: usize = 5;

/// What could not be started.
unsafe extern "C" fn failed() -> c_int {
    -1
}

/// Starts a program whose arguments are the caller's own, up to a null, if the library is out of its reach: `way` takes them as a
/// list. Behind them may stand an environment.
///
/// # Safety
/// Words as [`ways`] leaves them on the stack.
unsafe fn start_listed(
    own: &Way,
    (way, named): (&Way, Named),
    saved: *const usize,
    has_own: bool,
) -> *mut c_void {
    // SAFETY: the caller's.
    let what = unsafe { saved.add(FIRST).read_volatile() };
    // SAFETY: the caller's.
    if !unsafe { is_away(what, named) } {
        return own.next();
    }
    // SAFETY: the caller's.
    let word = |number: usize| unsafe {
        let at = match REGISTERS.get(number) {
            Some(at) => *at,
            None => SAVED + number - REGISTERS.len(),
        };
        saved.add(at).read_volatile()
    };
    let mut count = 0;
    while word(count) != 0 {
        count += 1;
    }
    let own = match has_own {
        true => std::ptr::with_exposed_provenance(word(count + 1)),
        false => environment(),
    };
    on_stack(count + 1, &mut |place| {
        if place.is_null() {
            return 0;
        }
        let mut at = 0;
        // SAFETY: there are so many words; the rest is the caller's.
        unsafe {
            while at <= count {
                place.add(at).write_volatile(word(at));
                at += 1;
            }
            let next: Start = transmute(way.next());
            let words = place.cast_const().cast();
            without_library(own, false, &mut |own| next(what, words, own) as usize)
        }
    });
    failed as *mut c_void
}

/// # Safety
/// As for [`start_listed`].
unsafe extern "C-unwind" fn listed(way: &Way, saved: *const usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { start_listed(way, (&all::execve, Named::Path), saved, false) }
}

/// # Safety
/// As for [`start_listed`].
unsafe extern "C-unwind" fn listed_with_own(way: &Way, saved: *const usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { start_listed(way, (&all::execve, Named::Path), saved, true) }
}

/// # Safety
/// As for [`start_listed`].
unsafe extern "C-unwind" fn listed_and_searched(way: &Way, saved: *const usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { start_listed(way, (&all::execvpe, Named::Searched), saved, false) }
}

known! {
    execv execvp execve execvpe execveat fexecve posix_spawn posix_spawnp system popen execl execlp execle
}

ways! {
    execl listed,
    execle listed_with_own,
    execlp listed_and_searched,
}
