//! Has the program functions of its own under names that a library of ours in it calls?
//!
//! The dynamic linker looks for what a library calls in the program first, and a program exports whatever has the
//! name of a function in a library that it is linked with. What it calls `close` would be called with our descriptors. Which
//! names these are is read from the table of symbols of the library that this is linked into. Nothing is called here: it might
//! be the program's.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// A link beside notes: to the name of a function that the program has and the library would call, so that it stands aside.
pub const CAPTURED: &CStr = c"captured";

/// `Elf64_Sym` of elf.h.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// `Elf64_Dyn`.
#[repr(C)]
struct Entry {
    tag: i64,
    value: usize,
}

/// `struct link_map` of link.h.
#[repr(C)]
struct Map {
    base: usize,
    name: *const c_char,
    dynamic: *const Entry,
    next: *const Map,
}

/// `struct r_debug`.
#[repr(C)]
struct Loaded {
    version: c_int,
    first: *const Map,
}

// SAFETY: the dynamic linker's own list, which it makes before anything runs.
unsafe impl Sync for Loaded {}
// SAFETY: a table that nobody writes.
unsafe impl Sync for Entry {}

unsafe extern "C" {
    static _r_debug: Loaded;
    /// This library's.
    static _DYNAMIC: Entry;
    static __environ: AtomicPtr<*const u8>;
}

const TAG_HASH: i64 = 4;
const TAG_NAMES: i64 = 5;
const TAG_SYMBOLS: i64 = 6;
const TAG_RELOCATIONS: i64 = 7;
const TAG_RELOCATION_BYTES: i64 = 8;
const TAG_OWN_NAME: i64 = 14;
const TAG_GNU_HASH: i64 = 0x6fff_fef5;
/// A variable of a library that the program holds for all.
#[cfg(target_arch = "x86_64")]
const COPY: u64 = 5;
#[cfg(target_arch = "aarch64")]
const COPY: u64 = 1024;

/// What a program may replace if it replaces all: the C library itself calls these by name.
static HEAP: [&CStr; 7] = [
    c"malloc",
    c"calloc",
    c"realloc",
    c"free",
    c"posix_memalign",
    c"aligned_alloc",
    c"memalign",
];

/// A library of ours may define these and call them all the same.
static DEFINED: [&CStr; 3] = [c"prctl", c"syscall", c"dlclose"];

/// Names that no program may use for itself, and that mean something of the C library's alone. Of other such names a program
/// may have its own from what compilers link.
static OF_LIBRARY: [&CStr; 3] = [
    c"__errno_location",
    c"__xpg_strerror_r",
    c"__register_atfork",
];

/// A loaded object's tables.
struct Object {
    symbols: *const Symbol,
    names: *const u8,
    hash: *const u32,
    gnu_hash: *const u32,
    relocations: *const Relocation,
    count: usize,
    /// The name by which others ask for it, among the names; zero for none.
    own_name: usize,
}

/// The same bytes? Read one by one, so that no compiler makes a call of it.
///
/// # Safety
/// Both end in a zero.
#[inline]
pub unsafe fn is_same(one: *const u8, other: *const u8) -> bool {
    let mut at = 0;
    loop {
        // SAFETY: the caller's.
        let (a, b) = unsafe { (one.add(at).read_volatile(), other.add(at).read_volatile()) };
        if a != b || a == 0 {
            return a == b;
        }
        at += 1;
    }
}

/// Of the two functions that tables are made with, the one of GNU or the older one.
///
/// # Safety
/// It ends in a zero.
unsafe fn hash(name: *const u8, is_gnu: bool) -> u32 {
    let (mut value, mut at) = (if is_gnu { 5381u32 } else { 0 }, 0);
    loop {
        // SAFETY: the caller's.
        let byte = u32::from(unsafe { name.add(at).read_volatile() });
        if byte == 0 {
            return value;
        }
        value = match is_gnu {
            true => value.wrapping_mul(33).wrapping_add(byte),
            false => {
                let next = (value << 4).wrapping_add(byte);
                let high = next & 0xf000_0000;
                (next ^ (high >> 24)) & !high
            }
        };
        at += 1;
    }
}

impl Object {
    /// # Safety
    /// One of the dynamic linker's.
    unsafe fn of(map: &Map) -> Object {
        // SAFETY: the caller's.
        unsafe { Object::at(map.base, map.dynamic) }
    }

    /// # Safety
    /// As above: where it lies, and its table.
    unsafe fn at(base: usize, dynamic: *const Entry) -> Object {
        // The dynamic linker has most addresses set right where they stand.
        let place = |value: usize| match value < base {
            true => value.wrapping_add(base),
            false => value,
        };
        let mut found = Object {
            symbols: ptr::null(),
            names: ptr::null(),
            hash: ptr::null(),
            gnu_hash: ptr::null(),
            relocations: ptr::null(),
            count: 0,
            own_name: 0,
        };
        let mut entry = dynamic;
        loop {
            // SAFETY: the table ends with an entry of tag zero.
            let Entry { tag, value } = unsafe { &*entry };
            let address = place(*value);
            match *tag {
                0 => return found,
                TAG_HASH => found.hash = address as *const u32,
                TAG_NAMES => found.names = address as *const u8,
                TAG_SYMBOLS => found.symbols = address as *const Symbol,
                TAG_RELOCATIONS => found.relocations = address as *const Relocation,
                TAG_RELOCATION_BYTES => found.count = *value / size_of::<Relocation>(),
                TAG_OWN_NAME => found.own_name = *value,
                TAG_GNU_HASH => found.gnu_hash = address as *const u32,
                _ => {}
            }
            // SAFETY: as above.
            entry = unsafe { entry.add(1) };
        }
    }

    /// Is it this one's own, by that name? What it holds for a library is not.
    ///
    /// # Safety
    /// A name that ends in a zero.
    unsafe fn has(&self, name: *const u8) -> bool {
        // SAFETY: the caller's.
        unsafe { self.place(name).is_some_and(|place| !self.is_copy(place)) }
    }

    /// Where its table of symbols has what it defines by that name.
    ///
    /// # Safety
    /// A name that ends in a zero.
    unsafe fn place(&self, name: *const u8) -> Option<u32> {
        // SAFETY: the tables of a loaded object.
        unsafe {
            match self.gnu_hash.is_null() {
                false => self.by_gnu_hash(name),
                true if !self.hash.is_null() => self.by_hash(name),
                true => None,
            }
        }
    }

    /// # Safety
    /// As above.
    unsafe fn is(&self, place: u32, name: *const u8) -> bool {
        // SAFETY: a symbol of the table.
        unsafe {
            let symbol = &*self.symbols.add(place as usize);
            symbol.section != 0 && is_same(self.names.add(symbol.name as usize), name)
        }
    }

    /// # Safety
    /// As above.
    unsafe fn by_gnu_hash(&self, name: *const u8) -> Option<u32> {
        // SAFETY: four numbers, the filter of 64-bit words, the buckets, the chains.
        unsafe {
            let table = self.gnu_hash;
            let (buckets, first, filter) = (*table, *table.add(1), *table.add(2));
            let wanted = hash(name, true);
            let bucket = table.add(4 + 2 * filter as usize);
            let chains = bucket.add(buckets as usize);
            let mut place = match buckets {
                0 => 0,
                _ => *bucket.add((wanted % buckets) as usize),
            };
            while place >= first && place != 0 {
                let found = *chains.add((place - first) as usize);
                if found | 1 == wanted | 1 && self.is(place, name) {
                    return Some(place);
                }
                place = if found & 1 == 1 { 0 } else { place + 1 };
            }
            None
        }
    }

    /// # Safety
    /// As above.
    unsafe fn by_hash(&self, name: *const u8) -> Option<u32> {
        // SAFETY: two numbers, the buckets, the chains.
        unsafe {
            let buckets = *self.hash;
            let bucket = self.hash.add(2);
            let chains = bucket.add(buckets as usize);
            let mut place = match buckets {
                0 => 0,
                _ => *bucket.add((hash(name, false) % buckets) as usize),
            };
            while place != 0 {
                if self.is(place, name) {
                    return Some(place);
                }
                place = *chains.add(place as usize);
            }
            None
        }
    }

    /// # Safety
    /// As above.
    unsafe fn is_copy(&self, place: u32) -> bool {
        let mut at = 0;
        while at < self.count {
            // SAFETY: a symbol of the table, and so many there are. Several names may be for one place.
            let (symbol, copy) = unsafe {
                (
                    &*self.symbols.add(place as usize),
                    &*self.relocations.add(at),
                )
            };
            if copy.info & 0xffff_ffff == COPY && copy.offset == symbol.value {
                return true;
            }
            at += 1;
        }
        false
    }
}

/// No program may use these for itself.
///
/// # Safety
/// A name that ends in a zero.
unsafe fn is_reserved(name: *const u8) -> bool {
    // SAFETY: the second byte is there if the first is no zero.
    unsafe {
        let is_first = name.read_volatile() == b'_';
        is_first && matches!(name.add(1).read_volatile(), b'_' | b'A'..=b'Z')
    }
}

/// # Safety
/// A name that ends in a zero.
unsafe fn is_one(all: &[&CStr], name: *const u8) -> bool {
    let mut at = 0;
    while at < all.len() {
        // SAFETY: the caller's.
        if unsafe { is_same(all[at].as_ptr().cast(), name) } {
            return true;
        }
        at += 1;
    }
    false
}

/// This library in the dynamic linker's list, or null.
///
/// # Safety
/// Once the dynamic linker has made its list.
unsafe fn own_map() -> *const Map {
    // SAFETY: the list, which ends in a null.
    unsafe {
        let mut own = _r_debug.first;
        while !own.is_null() && !ptr::eq((*own).dynamic, &raw const _DYNAMIC) {
            own = (*own).next;
        }
        own
    }
}

/// The program, as the dynamic linker has it: a handle that means all that is loaded.
pub extern "C" fn program() -> *const c_void {
    // SAFETY: as for [`own_name`].
    unsafe { _r_debug.first.cast() }
}

/// The name under which this library was loaded; null if there is none.
pub extern "C" fn own_name() -> *const c_char {
    // SAFETY: the list is there whenever this library runs.
    unsafe { own_map().as_ref() }.map_or(ptr::null(), |own| own.name)
}

/// A function of what was loaded behind this library, with nothing called; null if there is none.
///
/// # Safety
/// A name that ends in a zero, of a plain function.
pub unsafe extern "C" fn behind(name: *const c_char) -> *mut c_void {
    // SAFETY: the list, which ends in a null, and the tables of what is loaded.
    unsafe {
        let mut map = own_map();
        while !map.is_null() {
            map = (*map).next;
            if map.is_null() {
                break;
            }
            let found = in_object((*map).base, (*map).dynamic.expose_provenance(), name);
            if !found.is_null() {
                return found;
            }
        }
        ptr::null_mut()
    }
}

/// Shows all that is loaded, where it lies and its dynamic section, until one is wanted. No lock is taken.
///
/// # Safety
/// Nobody loads or unloads meanwhile.
pub unsafe fn each(mut is_last: impl FnMut(usize, usize) -> bool) {
    // SAFETY: the list, which ends in a null.
    unsafe {
        let mut map = _r_debug.first;
        while !map.is_null() && !is_last((*map).base, (*map).dynamic.expose_provenance()) {
            map = (*map).next;
        }
    }
}

/// Do others ask for an object by this name? It lies at `base`, and its dynamic section is `table`.
///
/// # Safety
/// Of a loaded object that stays meanwhile; a name that ends in a zero.
pub unsafe fn is_called(base: usize, table: usize, name: *const c_char) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let object = Object::at(base, ptr::with_exposed_provenance(table));
        object.own_name != 0 && is_same(object.names.add(object.own_name), name.cast())
    }
}

/// What such an object defines by a name, or null.
///
/// # Safety
/// As above; a name of a plain function.
pub unsafe fn in_object(base: usize, table: usize, name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe {
        let object = Object::at(base, ptr::with_exposed_provenance(table));
        let Some(place) = object.place(name.cast()) else {
            return ptr::null_mut();
        };
        let value = (*object.symbols.add(place as usize)).value as usize;
        ptr::with_exposed_provenance_mut(base.wrapping_add(value))
    }
}

/// The program's environment.
#[inline]
pub fn environment() -> *const *mut u8 {
    // SAFETY: a word of the C library.
    unsafe { __environ.load(Ordering::Relaxed).cast() }
}

/// A name that this library calls and the program means something else by; null if there is none.
fn search() -> *const u8 {
    let none = ptr::null();
    // SAFETY: the dynamic linker's list, where the program is the first, and the tables of what is loaded.
    unsafe {
        let (first, own) = (_r_debug.first, own_map());
        if own.is_null() || own == first {
            return none;
        }
        let (program, own) = (Object::of(&*first), Object::of(&*own));
        let mut at = 0;
        while at < DEFINED.len() {
            let name = DEFINED[at].as_ptr().cast();
            if program.has(name) {
                return name;
            }
            at += 1;
        }
        // What is called stands before all that the table finds by name.
        let count = match own.gnu_hash.is_null() {
            true => 0,
            false => *own.gnu_hash.add(1),
        };
        let (mut place, mut is_part, mut of_heap) = (1, false, none);
        while place < count {
            let symbol = &*own.symbols.add(place as usize);
            let name = own.names.add(symbol.name as usize);
            place += 1;
            if symbol.section != 0 || is_reserved(name) && !is_one(&OF_LIBRARY, name) {
                continue;
            }
            let (has, is_of_heap) = (program.has(name), is_one(&HEAP, name));
            if has && !is_of_heap {
                return name;
            }
            if has {
                of_heap = name;
            }
            is_part |= is_of_heap && !has;
        }
        if is_part { of_heap } else { none }
    }
}

const UNKNOWN: u8 = 0;
const FREE: u8 = 1;
const CALLED: u8 = 2;

/// Is any name taken? Then nothing of this library may run.
pub extern "C" fn is_captured() -> bool {
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => {
            let is_free = search().is_null();
            let found = if is_free { FREE } else { CALLED };
            KNOWN.store(found, Ordering::Relaxed);
            !is_free
        }
        known => known == CALLED,
    }
}

/// The same where a function is asked for: if it is one of the driver's the command line is told.
///
/// # Safety
/// Null, or a name that ends in a zero.
pub unsafe extern "C" fn is_captured_for(name: *const c_char) -> bool {
    // SAFETY: the second byte is there if the first is no zero.
    let is_of_driver = || unsafe {
        let name = name.cast::<u8>();
        !name.is_null() && name.read_volatile() == b'c' && name.add(1).read_volatile() == b'u'
    };
    let is_captured = is_captured();
    if is_captured && is_of_driver() {
        tell();
    }
    is_captured
}

/// Tells the command line, past the C library: by a link, since what is written may send a signal.
pub extern "C" fn tell() {
    const PATH_ONLY: usize = (libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) as usize;
    let (name, folder) = (search(), variable(b"WARPWRIGHT_DIR="));
    if name.is_null() || folder.is_null() {
        return;
    }
    let here = libc::AT_FDCWD as isize as usize;
    let link = CAPTURED.as_ptr() as usize;
    // SAFETY: names that end in a zero, and a descriptor of our own.
    unsafe {
        let opened = kernel(libc::SYS_openat, [here, folder as usize, PATH_ONLY]);
        if opened >= 0 {
            kernel(libc::SYS_symlinkat, [name as usize, opened as usize, link]);
            kernel(libc::SYS_close, [opened as usize, 0, 0]);
        }
    }
}

/// The value of a variable of the environment, of which the name is given with its `=`; null if there is none.
#[inline]
pub fn variable(name: &[u8]) -> *const u8 {
    // SAFETY: pointers to what ends in a zero, behind the last of them a null.
    unsafe {
        let mut variable = environment();
        while !variable.is_null() && !(*variable).is_null() {
            let mut at = 0;
            while at < name.len() && (*variable).add(at).read_volatile() == name[at] {
                at += 1;
            }
            if at == name.len() {
                return (*variable).add(at);
            }
            variable = variable.add(1);
        }
    }
    ptr::null()
}

/// A call of the kernel.
///
/// # Safety
/// As the call asks for.
#[inline]
pub unsafe fn kernel(call: libc::c_long, [a, b, c]: [usize; 3]) -> isize {
    // SAFETY: the caller's.
    unsafe { kernel_of_four(call, [a, b, c, 0]) }
}

/// The same with four arguments.
///
/// # Safety
/// As the call asks for.
#[inline]
#[cfg(target_arch = "x86_64")]
pub unsafe fn kernel_of_four(call: libc::c_long, [a, b, c, d]: [usize; 4]) -> isize {
    let found;
    // SAFETY: the kernel's convention.
    unsafe {
        core::arch::asm!("syscall", inlateout("rax") call as isize => found, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    found
}

/// As above.
///
/// # Safety
/// As above.
#[inline]
#[cfg(target_arch = "aarch64")]
pub unsafe fn kernel_of_four(call: libc::c_long, [a, b, c, d]: [usize; 4]) -> isize {
    let found;
    // SAFETY: the kernel's convention.
    unsafe {
        core::arch::asm!("svc 0", in("x8") call, inlateout("x0") a as isize => found, in("x1") b, in("x2") c,
            in("x3") d, options(nostack));
    }
    found
}
