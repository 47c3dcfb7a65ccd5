//! What a program compiles while it runs. CuPy, Numba and others hand CUDA C or PTX to NVRTC, nvJitLink or the driver's
//! linker and get machine code back, which they load. Such code is known again by its bytes, and its PTX stands beside it
//! in the trace as if both came from one file.
//!
//! A compiler's library belongs to the program: its functions are found where the program asks `dlsym` for them, and
//! handed out for one library only. Whoever links it is not seen.
//!
//! Names and signatures: nvrtc.h, nvJitLink.h, cuda.h.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use warpwright_winners::sha256;

use crate::abi::{Code, Handle, Out, SUCCESS, Text};
use crate::door::real_dlsym;
use crate::modules::bytes;
use crate::reserve::has_room;
use crate::state::{Mode, guarded, mode, state};

/// Most bytes of PTX that are kept.
const MOST: usize = 256 << 20;

/// What is known of compilers' work.
#[derive(Default)]
pub struct Compilers {
    /// Of each program of NVRTC, whether its options leave the translation of PTX alone, and the size of its cubin.
    programs: BTreeMap<usize, Job>,
    /// Links that are under way.
    links: BTreeMap<usize, Job>,
    /// PTX by the digest of the machine code that was made of it.
    made: BTreeMap<String, Arc<str>>,
    kept: usize,
}

/// Something that becomes one cubin.
#[derive(Default)]
struct Job {
    /// It has options that may change what PTX computes.
    is_odd: bool,
    /// Its inputs; of PTX the text.
    inputs: Vec<Option<Arc<str>>>,
}

impl Job {
    /// The one text that it is made of.
    fn ptx(&self) -> Option<Arc<str>> {
        match &self.inputs[..] {
            [Some(ptx)] if !self.is_odd => Some(ptx.clone()),
            _ => None,
        }
    }
}

impl Compilers {
    /// The PTX that a cubin was made of.
    pub fn ptx_of(&self, digest: &str) -> Option<String> {
        self.made.get(digest).map(|ptx| ptx.to_string())
    }

    fn remember(&mut self, cubin: &[u8], ptx: Arc<str>) {
        self.kept += ptx.len();
        if self.kept <= MOST {
            self.made.insert(sha256(cubin), ptx);
        }
    }
}

/// Options that reach the translation of PTX, where they may round otherwise. NVRTC's own `--fmad=false` stands in its PTX.
const TO_PTXAS: [&[u8]; 4] = [b"-Xptxas", b"--ptxas-options", b"-ptxas-options", b"-fma="];

/// Is one of them given?
///
/// # Safety
/// As many texts as `count` says.
unsafe fn is_odd(count: c_int, options: *const Text) -> bool {
    (0..count.max(0) as usize).any(|at| {
        // SAFETY: the caller's.
        let option = unsafe { *options.add(at) };
        // SAFETY: a text that ends in a zero.
        let text = (!option.is_null()).then(|| unsafe { CStr::from_ptr(option) }.to_bytes());
        text.is_none_or(|text| TO_PTXAS.iter().any(|other| text.starts_with(other)))
    })
}

/// Text in memory, without the zeros at its end.
fn text(bytes: &[u8]) -> Option<Arc<str>> {
    let end = bytes.iter().rposition(|&byte| byte != 0)? + 1;
    std::str::from_utf8(&bytes[..end]).ok().map(Arc::from)
}

/// A cubin that a compiler has written to `image` comes from this PTX.
///
/// # Safety
/// A module image, or null.
unsafe fn made(image: *const c_void, ptx: Option<Arc<str>>) {
    let Some(ptx) = ptx.filter(|_| !image.is_null()) else {
        return;
    };
    // SAFETY: the caller's.
    if let Ok(cubin) = unsafe { bytes(image) }
        && cubin.starts_with(b"\x7fELF")
    {
        state().compilers.remember(cubin, ptx);
    }
}

/// A function of a compiler's library that we stand in for.
struct Function {
    name: &'static str,
    ours: *const c_void,
    real: AtomicPtr<c_void>,
}

// SAFETY: the pointer is a function's.
unsafe impl Sync for Function {}

/// Is this a name of a compiler's function?
pub fn is_name(name: &[u8]) -> bool {
    let bare = name.strip_prefix(b"__").unwrap_or(name);
    bare.starts_with(b"nvrtc") || bare.starts_with(b"nvJitLink")
}

/// Our function for one of a compiler's, by the name that the program asks for.
pub fn hand_out(name: &[u8], real: impl FnOnce() -> *mut c_void) -> Option<*mut c_void> {
    if mode() != Mode::Trace {
        return None;
    }
    let function = FUNCTIONS
        .iter()
        .find(|f| is_called(name, f.name.as_bytes()))?;
    let real = real();
    if real.is_null() {
        return None;
    }
    let null = std::ptr::null_mut();
    let set = function
        .real
        .compare_exchange(null, real, Ordering::AcqRel, Ordering::Acquire);
    // A second library of the kind has handles of its own.
    match set {
        Err(other) if other != real => None,
        _ => Some(function.ours.cast_mut()),
    }
}

/// nvJitLink's header gives every function the version as well: `__nvJitLinkCreate_12_4`.
fn is_called(name: &[u8], bare: &[u8]) -> bool {
    let versioned = name
        .strip_prefix(b"__")
        .and_then(|name| name.strip_prefix(bare));
    let is_version = |rest: &[u8]| {
        rest.starts_with(b"_")
            && rest
                .iter()
                .all(|&byte| byte == b'_' || byte.is_ascii_digit())
    };
    name == bare || versioned.is_some_and(is_version)
}

/// A function of the library that another one belongs to, or null.
fn beside(function: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: zeros are valid, and the call fills them.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about.
    if unsafe { libc::dladdr(function, &raw mut found) } == 0 || found.dli_fname.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: a path of the linker's; nothing is loaded that is not there.
    let library = unsafe { libc::dlopen(found.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if library.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: a handle of dlopen and a C string. The function stays: the program holds the library.
    unsafe {
        let found = real_dlsym(library, name.as_ptr());
        libc::dlclose(library);
        found
    }
}

macro_rules! compilers {
    ($($(#[$meta:meta])* $name:ident $body:path, ($($arg:ident: $ty:ty),*);)*) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        enum Index { $($name),* }

        static FUNCTIONS: [Function; [$(stringify!($name)),*].len()] = [$(Function {
            name: stringify!($name),
            ours: $name as *const c_void,
            real: AtomicPtr::new(std::ptr::null_mut()),
        }),*];

        $(
            $(#[$meta])*
            ///
            /// # Safety
            /// As its header says. It was handed out, so the library's function is known.
            #[allow(non_snake_case)]
            unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> Code {
                let real = FUNCTIONS[Index::$name as usize].real.load(Ordering::Acquire);
                // SAFETY: the library's function of that name has this signature.
                let call: unsafe extern "C-unwind" fn($($ty),*) -> Code = unsafe { std::mem::transmute(real) };
                // SAFETY: the program's call.
                let code = unsafe { call($($arg),*) };
                if code == SUCCESS && mode() == Mode::Trace {
                    // SAFETY: the library has just done the same with these arguments.
                    guarded(|| unsafe { $body(real, $($arg),*) });
                }
                code
            }
        )*
    };
}

compilers! {
    /// NVRTC compiles a program.
    nvrtcCompileProgram nvrtc_compiled, (program: Handle, count: c_int, options: *const Text);
    /// NVRTC hands out machine code.
    nvrtcGetCUBIN nvrtc_cubin, (program: Handle, cubin: *mut c_char);
    /// A link begins.
    nvJitLinkCreate jit_begun, (link: Out, count: c_uint, options: *const Text);
    /// It gets an input.
    nvJitLinkAddData jit_added, (link: Handle, kind: c_uint, data: *const c_void, size: usize, name: Text);
    /// It gets a file.
    nvJitLinkAddFile jit_file, (link: Handle, kind: c_uint, file: Text);
    /// It hands out machine code.
    nvJitLinkGetLinkedCubin jit_cubin, (link: Handle, cubin: *mut c_void);
}

unsafe fn nvrtc_compiled(_: *mut c_void, program: Handle, count: c_int, options: *const Text) {
    let job = Job {
        // SAFETY: the caller's.
        is_odd: unsafe { is_odd(count, options) },
        inputs: Vec::new(),
    };
    state().compilers.programs.insert(program as usize, job);
}

unsafe fn nvrtc_cubin(real: *mut c_void, program: Handle, cubin: *mut c_char) {
    let is_plain = {
        let all = &state().compilers.programs;
        all.get(&(program as usize)).is_some_and(|job| !job.is_odd)
    };
    let (size_of, get) = (
        beside(real, c"nvrtcGetPTXSize"),
        beside(real, c"nvrtcGetPTX"),
    );
    if !is_plain || size_of.is_null() || get.is_null() {
        return;
    }
    // SAFETY: nvrtc.h has these signatures.
    let (size_of, get) = unsafe {
        (
            std::mem::transmute::<
                *mut c_void,
                unsafe extern "C-unwind" fn(Handle, *mut usize) -> Code,
            >(size_of),
            std::mem::transmute::<
                *mut c_void,
                unsafe extern "C-unwind" fn(Handle, *mut c_char) -> Code,
            >(get),
        )
    };
    let mut size = 0;
    // SAFETY: a program that was compiled, an output of the right type.
    if unsafe { size_of(program, &raw mut size) } != SUCCESS || size > MOST || !has_room(size) {
        return;
    }
    let mut ptx = vec![0u8; size];
    // SAFETY: as many bytes as were asked for.
    if unsafe { get(program, ptx.as_mut_ptr().cast()) } == SUCCESS {
        // SAFETY: NVRTC has just written the image.
        unsafe { made(cubin.cast(), text(&ptx)) };
    }
}

unsafe fn jit_begun(_: *mut c_void, link: Out, count: c_uint, options: *const Text) {
    // SAFETY: the caller's; the library has written the handle.
    let (link, is_odd) = unsafe { (*link, is_odd(count as c_int, options)) };
    begun(link, is_odd);
}

/// nvJitLinkInputType in nvJitLink.h.
const JIT_PTX: c_uint = 2;

unsafe fn jit_added(
    _: *mut c_void,
    link: Handle,
    kind: c_uint,
    data: *const c_void,
    size: usize,
    _: Text,
) {
    // SAFETY: the caller's.
    unsafe { added(link, kind == JIT_PTX, data, size) };
}

unsafe fn jit_file(_: *mut c_void, link: Handle, _: c_uint, _: Text) {
    input(link, None);
}

unsafe fn jit_cubin(_: *mut c_void, link: Handle, cubin: *mut c_void) {
    // SAFETY: the library has just written the image.
    unsafe { linked(link, cubin) };
}

fn begun(link: Handle, is_odd: bool) {
    let job = Job {
        is_odd,
        inputs: Vec::new(),
    };
    state().compilers.links.insert(link as usize, job);
}

fn input(link: Handle, ptx: Option<Arc<str>>) {
    if let Some(job) = state().compilers.links.get_mut(&(link as usize)) {
        job.inputs.push(ptx);
    }
}

/// # Safety
/// So many bytes.
unsafe fn added(link: Handle, is_ptx: bool, data: *const c_void, size: usize) {
    let is_kept = is_ptx && !data.is_null() && size <= MOST;
    // SAFETY: the caller's.
    let ptx = is_kept.then(|| unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) });
    input(link, ptx.and_then(text));
}

/// # Safety
/// A module image, or null.
unsafe fn linked(link: Handle, cubin: *const c_void) {
    let ptx = {
        let links = &state().compilers.links;
        links.get(&(link as usize)).and_then(Job::ptx)
    };
    // SAFETY: the caller's.
    unsafe { made(cubin, ptx) };
}

/// `cuLinkCreate`
pub unsafe fn link_create(
    _: bool,
    real: unsafe extern "C-unwind" fn(c_uint, *mut c_void, *mut *mut c_void, Out) -> Code,
    count: c_uint,
    options: *mut c_void,
    values: *mut *mut c_void,
    link: Out,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(count, options, values, link) };
    if code == SUCCESS {
        // SAFETY: the driver has written it. Its options choose registers, levels and messages; those for FTZ, division
        // and contraction are for link-time optimisation alone, which has no PTX.
        guarded(|| begun(unsafe { *link }, false));
    }
    code
}

/// CUjitInputType in cuda.h.
const LINK_PTX: c_uint = 1;

/// `cuLinkAddData`
#[allow(clippy::too_many_arguments)]
pub unsafe fn link_add(
    _: bool,
    real: unsafe extern "C-unwind" fn(
        Handle,
        c_uint,
        *mut c_void,
        usize,
        Text,
        c_uint,
        *mut c_void,
        *mut *mut c_void,
    ) -> Code,
    link: Handle,
    kind: c_uint,
    data: *mut c_void,
    size: usize,
    name: Text,
    count: c_uint,
    options: *mut c_void,
    values: *mut *mut c_void,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(link, kind, data, size, name, count, options, values) };
    if code == SUCCESS {
        // SAFETY: the driver has read them.
        guarded(|| unsafe { added(link, kind == LINK_PTX, data, size) });
    }
    code
}

/// `cuLinkAddFile`
#[allow(clippy::too_many_arguments)]
pub unsafe fn link_file(
    _: bool,
    real: unsafe extern "C-unwind" fn(
        Handle,
        c_uint,
        Text,
        c_uint,
        *mut c_void,
        *mut *mut c_void,
    ) -> Code,
    link: Handle,
    kind: c_uint,
    file: Text,
    count: c_uint,
    options: *mut c_void,
    values: *mut *mut c_void,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(link, kind, file, count, options, values) };
    if code == SUCCESS {
        guarded(|| input(link, None));
    }
    code
}

/// `cuLinkComplete`
pub unsafe fn link_complete(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle, Out, *mut usize) -> Code,
    link: Handle,
    cubin: Out,
    size: *mut usize,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(link, cubin, size) };
    if code == SUCCESS && !cubin.is_null() {
        // SAFETY: the driver has just written it.
        guarded(|| unsafe { linked(link, *cubin) });
    }
    code
}
