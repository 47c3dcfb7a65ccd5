//! Modules: what a program loads, the kernels in it, and the winners for them.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex};

use warpwright_winners::fit::{Original, Place, Unfit};
use warpwright_winners::image::{self, CONTAINER, ImageError};
use warpwright_winners::lines::Note;
use warpwright_winners::store::Index;
use warpwright_winners::ties::TABLES;
use warpwright_winners::{Store, Winner, digest, plain, sha256};

use crate::abi::{CAPABILITY, Code, Handle, Out, SUCCESS, Text};
use crate::driver::{self, Relaxed};
use crate::functions::{self, Kind, Replacement, current_context};
use crate::grafts::{Effect, Grafted, Of, Plan, Version, effect};
use crate::notes::{folder, note, say, write};
use crate::reserve::{has_room, has_stack};
use crate::state::{
    Mode, State, fall_asleep, finish_at_exit, guarded, is_sealed, mode, replacing, settings,
    stand_aside, state,
};
use crate::trial;

/// A module whose code is known.
#[derive(Debug)]
pub struct Module {
    /// Digest of its cubin.
    pub digest: String,
    /// Its kernels by symbol.
    pub kernels: BTreeMap<String, digest::Identity>,
    /// Its variables that kernels may write.
    pub variables: Vec<String>,
    /// What may take the place of kernels that share something with it.
    pub grafted: BTreeMap<String, Grafted>,
}

/// The GPUs of this process, all of one kind.
#[derive(Debug, Clone)]
pub struct Gpu {
    /// As the driver has it.
    pub name: String,
    /// 90 for sm_90.
    pub sm: u32,
}

struct Loaded {
    code: Arc<Module>,
    /// Does it outlive contexts?
    library: bool,
    /// The context that was current when it was loaded.
    context: usize,
}

/// What is known of modules.
#[derive(Default)]
pub struct Modules {
    /// By handle of a module or library.
    loaded: BTreeMap<usize, Loaded>,
    /// By handle as well: how many kernels of it are ours, and how many are the program's. Whatever else is forgotten of it,
    /// ours are not to be seen.
    added: BTreeMap<usize, (usize, usize)>,
    gpu: Option<Result<Gpu, &'static str>>,
    /// The store and the names of what it has.
    store: Option<Arc<(Store, Index)>>,
    /// Winners that are loaded, by the original's digest.
    winners: BTreeMap<String, Arc<[Replacement]>>,
}

impl Modules {
    /// The handle means something else now.
    fn forget(&mut self, handle: Handle) {
        self.loaded.remove(&(handle as usize));
        self.added.remove(&(handle as usize));
    }

    /// How many kernels of a module or library are ours, and how many are the program's, where some are ours.
    pub fn added(&self, handle: Handle) -> Option<(usize, usize)> {
        self.added.get(&(handle as usize)).copied()
    }

    /// The module or library of this handle.
    pub fn get(&self, handle: Handle) -> Option<Arc<Module>> {
        self.loaded
            .get(&(handle as usize))
            .map(|loaded| loaded.code.clone())
    }

    /// The context that a module lies in.
    pub fn context(&self, handle: Handle) -> Option<usize> {
        let loaded = self.loaded.get(&(handle as usize))?;
        (!loaded.library).then_some(loaded.context)
    }

    /// Handles of libraries (then true), and of modules in a context, whose code is known.
    pub fn owners(&self, context: usize) -> Vec<(usize, bool, Arc<Module>)> {
        let all = self.loaded.iter();
        all.filter(|(_, loaded)| loaded.library || loaded.context == context)
            .map(|(handle, loaded)| (*handle, loaded.library, loaded.code.clone()))
            .collect()
    }

    /// Has all that may be forgotten live on.
    fn keep(&mut self) {
        let all = self.loaded.values();
        all.for_each(|loaded| std::mem::forget(loaded.code.clone()));
    }

    /// The winners for a kernel.
    pub fn winners(&self, digest: &str) -> Option<Arc<[Replacement]>> {
        self.winners.get(digest).cloned()
    }

    /// The GPUs.
    pub fn gpu(&mut self) -> Result<&Gpu, &'static str> {
        self.gpu
            .get_or_insert_with(find_gpu)
            .as_ref()
            .map_err(|why| *why)
    }

    fn store(&mut self) -> Arc<(Store, Index)> {
        let known = self.store.get_or_insert_with(|| {
            let store = Store::at(&settings().store);
            if let Ok(Some(exposure)) = store.exposure() {
                say(&format!(
                    "`{}`: {exposure}; who can write it decides what runs here",
                    store.folder().display()
                ));
            }
            let index = store.index().unwrap_or_else(|e| {
                say(&format!("the store cannot be read: {e}"));
                Index::default()
            });
            Arc::new((store, index))
        });
        known.clone()
    }
}

/// Winners are looked up by the GPU's name: with GPUs of several kinds one would have to know on which one
/// a launch will run.
fn find_gpu() -> Result<Gpu, &'static str> {
    let unknown = "the driver does not say which GPUs there are";
    // SAFETY: outputs of the right types.
    let count = driver::number(|n| unsafe { driver::device_count(n) }).ok_or(unknown)?;
    let mut found: Option<Gpu> = None;
    for device in 0..count {
        let mut name = [0 as c_char; 256];
        // SAFETY: the buffer has that many bytes.
        let code = unsafe { driver::device_name(name.as_mut_ptr(), 255, device) };
        let [major, minor] = CAPABILITY.map(|attribute| {
            // SAFETY: an output of the right type.
            driver::number(|n| unsafe { driver::device_attribute(n, attribute, device) })
        });
        let (Some(major), Some(minor), SUCCESS) = (major, minor, code) else {
            return Err(unknown);
        };
        let gpu = Gpu {
            name: driver::text(name.as_ptr()).unwrap_or_default(),
            sm: (major * 10 + minor) as u32,
        };
        match &found {
            Some(first) if first.name != gpu.name || first.sm != gpu.sm => {
                return Err("there are GPUs of several kinds");
            }
            _ => found = Some(gpu),
        }
    }
    found.ok_or("there is no GPU")
}

/// The magic number of a wrapper: it, a version, the address of an image, and what depends on the version (CUDA's
/// `fatbinary_section.h`).
const WRAPPER: u32 = 0x4662_43b1;
/// The version for device-linked code, with a list of the images that it was linked from (CUDA's `link.stub`).
const LINKED: u32 = 2;
/// Images of a list that are looked at.
const MOST_LINKED: usize = 4096;

/// The images that device-linked code was made of; a zero ends their list.
///
/// # Safety
/// The driver accepted `image`.
unsafe fn linked_from<'a>(image: *const c_void) -> Vec<&'a [u8]> {
    let [magic, version] = unsafe { image.cast::<[u32; 2]>().read_unaligned() };
    if magic != WRAPPER || version != LINKED {
        return Vec::new();
    }
    let list = unsafe { image.cast::<*const *const c_void>().add(2).read_unaligned() };
    let entries = (0..MOST_LINKED).map(|at| list.wrapping_add(at));
    let mapped = entries.take_while(|at| is_mapped(at.cast(), size_of::<*const c_void>()));
    // SAFETY: there is memory behind each.
    let parts = mapped.map(|at| unsafe { at.read_unaligned() });
    let parts = parts.take_while(|part| is_mapped(part.cast(), 16));
    parts
        .filter_map(|part| unsafe { bytes(part) }.ok())
        .collect()
}

/// Bytes that the driver has just read as a module image.
///
/// # Safety
/// The driver accepted `image`.
pub unsafe fn bytes<'a>(image: *const c_void) -> Result<&'a [u8], &'static str> {
    // A damaged header may state any length.
    let slice = |at: *const u8, size: usize| match is_mapped(at, size) {
        true => Ok(unsafe { std::slice::from_raw_parts(at, size) }),
        false => Err("it is longer than the memory that it is in"),
    };
    let mut at = image.cast::<u8>();
    let magic = |at: *const u8| unsafe { at.cast::<u32>().read_unaligned() };
    if magic(at) == WRAPPER {
        let version = unsafe { at.add(4).cast::<u32>().read_unaligned() };
        if !(1..=LINKED).contains(&version) {
            return Err("it is a wrapper of an unknown version");
        }
        at = unsafe { at.add(8).cast::<*const u8>().read_unaligned() };
    }
    if magic(at).to_le_bytes() == CONTAINER {
        let header = unsafe { at.add(6).cast::<u16>().read_unaligned() };
        let size = unsafe { at.add(8).cast::<u64>().read_unaligned() };
        return slice(at, usize::from(header).saturating_add(size as usize));
    }
    if magic(at).to_le_bytes() == *b"\x7fELF" {
        let mut header = [0; 64];
        header.copy_from_slice(slice(at, 64)?);
        let extent = image::header_extent(&header).map_err(|_| "its ELF header is unusual")?;
        let headers = slice(
            at.wrapping_add(extent.sections as usize),
            extent.count as usize * 64,
        )?;
        return slice(at, extent.end_of_file(headers) as usize);
    }
    if unsafe { !at.read().is_ascii_graphic() && !at.read().is_ascii_whitespace() } {
        return Err("it is of an unknown kind");
    }
    // Text that ends in a zero.
    Ok(unsafe { CStr::from_ptr(at.cast()) }.to_bytes())
}

/// Is there memory behind an address for so many bytes?
pub fn is_mapped(at: *const u8, bytes: usize) -> bool {
    /// Pages that are asked about at a time.
    const AT_ONCE: usize = 4096;
    let Some(last) = (at as usize).checked_add(bytes.max(1) - 1) else {
        return false;
    };
    if at.is_null() || bytes > isize::MAX as usize {
        return false;
    }
    // SAFETY: a question. Some kernels have pages of 64 KiB.
    let size = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let (first, last) = (at as usize / size, last / size);
    let mut states = [0u8; AT_ONCE];
    (first..=last).step_by(AT_ONCE).all(|page| {
        let count = AT_ONCE.min(last - page + 1);
        let start = (page * size) as *mut c_void;
        // SAFETY: nothing is read there; there is room for so many states.
        unsafe { libc::mincore(start, count * size, states.as_mut_ptr()) == 0 }
    })
}

/// Loads an image once more, in the way of the program's call.
type Again<'a> = Result<&'a dyn Fn(*const c_void, Out) -> Code, &'static str>;

/// How the program had an image loaded.
#[derive(Clone, Copy)]
struct Way<'a> {
    library: bool,
    /// What its options may change.
    effect: Effect,
    load: &'a dyn Fn(*const c_void, Out) -> Code,
}

impl<'a> Way<'a> {
    /// Without options.
    fn plain(library: bool, load: &'a dyn Fn(*const c_void, Out) -> Code) -> Way<'a> {
        Way {
            library,
            effect: Effect::Nothing,
            load,
        }
    }

    fn again(&self) -> Again<'a> {
        match self.effect {
            Effect::Nothing | Effect::Compiler => Ok(self.load),
            Effect::Code | Effect::Choice => Err(OPTIONS),
        }
    }
}

/// May a module be looked at? Where the program has forbidden itself system calls only what had its handle before is
/// forgotten, and kept: to give memory back may be one.
fn may_look(handle: Handle) -> bool {
    if mode() == Mode::Off || handle.is_null() {
        return false;
    }
    if is_sealed() {
        guarded(|| std::mem::forget(state().modules.loaded.remove(&(handle as usize))));
        return false;
    }
    true
}

/// Looks at a module that the driver has loaded. Where its kernels share something with it, it may be loaded once more
/// with others added; then the handle is another one.
/// `parts`: the images that it was linked from.
fn look(
    handle: &mut Handle,
    image: Result<&[u8], &'static str>,
    parts: &dyn Fn() -> Vec<&'static [u8]>,
    way: Way<'_>,
) {
    guarded(|| {
        if !has_room(image.map_or(0, <[u8]>::len)) {
            return fall_asleep();
        }
        // What had this handle before is gone.
        state().modules.forget(*handle);
        if !has_stack() {
            return unknown("the thread that loads it has little stack");
        }
        if mode() == Mode::With && state().modules.store().1.is_empty() {
            return say("the store is empty: nothing is replaced");
        }
        let gpu = state().modules.gpu().cloned();
        let (image, gpu) = match (image, gpu) {
            (Ok(image), Ok(gpu)) => (image, gpu),
            (Err(why), _) | (_, Err(why)) => return unknown(why),
        };
        const FORCES: [&str; 2] = ["CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT"];
        let is_set = |name: &&&str| std::env::var_os(name).is_some_and(|v| v == "1");
        if let Some(name) = FORCES.iter().find(is_set) {
            return unknown(&format!("the driver was told to compile PTX ({name})"));
        }
        if way.effect == Effect::Choice && !image.starts_with(b"\x7fELF") {
            return unknown("it is loaded with options that choose among its code");
        }
        let mut code = match image::code(image, gpu.sm) {
            Ok(code) => code,
            Err(e @ (ImageError::Ptx | ImageError::NoCubin(_))) => {
                match compiled(image, gpu.sm, way) {
                    Ok(code) => code,
                    Err(why) => return unknown(&format!("{e}: {why}")),
                }
            }
            Err(e) => return unknown(&e.to_string()),
        };
        let identities = match digest::identities(&code.cubin) {
            Ok(identities) => identities,
            Err(e) => return unknown(&e.to_string()),
        };
        if mode() == Mode::Trace {
            finish_at_exit();
            if code.ptx.is_none() {
                let remembered = state().compilers.ptx_of(&sha256(&code.cubin));
                code.ptx = remembered.or_else(|| image::linked_ptx(&parts(), gpu.sm));
            }
            keep(&code);
        }
        if identities.iter().any(|kernel| kernel.is_clustered) {
            functions::expect_clusters();
        }
        let kernels = identities.into_iter().map(|k| (k.name.clone(), k));
        let all = match mode() {
            Mode::Try => digest::variables(&code.cubin).unwrap_or_default(),
            _ => Vec::new(),
        };
        let variables = all.into_iter().filter(|variable| !variable.is_constant);
        let mut module = Module {
            digest: sha256(&code.cubin),
            kernels: kernels.collect(),
            variables: variables.map(|variable| variable.name).collect(),
            grafted: BTreeMap::new(),
        };
        let stored = Stored::new(&code.cubin, &gpu);
        let versions = |name: &str, digest: &str| match mode() {
            Mode::Try => trial::versions(name, digest),
            _ if replacing() => stored.versions(name, digest),
            _ => Vec::new(),
        };
        let plan = Plan::of(&code.cubin, &module, &versions);
        if replacing() {
            bring_winners(&module, &plan, &stored);
        }
        module.grafted = plan.load(handle, way.library, way.again());
        if module
            .grafted
            .values()
            .any(|grafted| grafted.refused.is_none())
        {
            let numbers = (plan.added(), module.kernels.len());
            state().modules.added.insert(*handle as usize, numbers);
        }
        state().modules.loaded.remove(&(*handle as usize));
        let loaded = Loaded {
            code: Arc::new(module),
            library: way.library,
            context: current_context(),
        };
        state().modules.loaded.insert(*handle as usize, loaded);
    });
}

/// What the driver makes of an image's PTX, made once more to look at it.
fn compiled(image: &[u8], sm: u32, way: Way<'_>) -> Result<image::Code, &'static str> {
    /// Bytes: what takes the driver a second or so.
    const LONGEST: usize = 1 << 20;
    way.again()?;
    if way.effect != Effect::Nothing {
        return Err("its PTX is compiled with options");
    }
    let ptx = image::ptx(image, sm).ok_or("which PTX the driver compiles is not known")?;
    if ptx.text.len() > LONGEST {
        return Err("its PTX is too long to be compiled once more");
    }
    let cubin = driver::compiled(&ptx.text, ptx.registers)
        .ok_or("the driver does not compile its PTX once more")?;
    Ok(image::Code {
        cubin,
        ptx: Some(ptx.text),
    })
}

fn unknown(why: &str) {
    say(&format!("a module is left alone: {why}"));
    if mode() == Mode::Trace {
        note("modules", &[Note::Unknown(why.to_owned())]);
    }
}

/// Keeps a module's cubin (and PTX) in the folder of the trace.
fn keep(code: &image::Code) {
    let Some(folder) = folder() else { return };
    let digest = sha256(&code.cubin);
    let path = folder.join(format!("{digest}.cubin"));
    if !path.exists() {
        if let Some(ptx) = &code.ptx {
            write(&path.with_extension("ptx"), ptx.as_bytes());
        }
        write(&path, &code.cubin);
    }
    note("modules", &[Note::Module(digest)]);
}

/// A winner, and the places of its code that were read.
type Known = (Arc<Winner>, Arc<[Place]>);

/// What the store has for the kernels of a module, read when it is asked for.
struct Stored<'a> {
    cubin: &'a [u8],
    gpu: &'a Gpu,
    original: OnceCell<Option<Original>>,
    known: RefCell<BTreeMap<String, Vec<Known>>>,
}

impl<'a> Stored<'a> {
    fn new(cubin: &'a [u8], gpu: &'a Gpu) -> Self {
        Stored {
            cubin,
            gpu,
            original: OnceCell::new(),
            known: RefCell::default(),
        }
    }

    /// The winners for a kernel that may stand in its place, in the order in which they are tried, each with the places
    /// of its parameters.
    fn of(&self, name: &str, digest: &str) -> Vec<Known> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let found = self.read(name, digest);
        self.known
            .borrow_mut()
            .insert(name.to_owned(), found.clone());
        found
    }

    fn read(&self, name: &str, digest: &str) -> Vec<Known> {
        let known = state().modules.store();
        let (store, index) = &*known;
        if index.of(digest).is_empty() {
            return Vec::new();
        }
        let mut winners = store.of(index, digest);
        winners.retain(|winner| winner.gpu == self.gpu.name);
        if winners.is_empty() {
            say(&format!(
                "`{name}`: what the store has is for another GPU, damaged, of a later version, or others can write it"
            ));
            return Vec::new();
        }
        let read = || Original::new(self.cubin).ok();
        let Some(original) = self.original.get_or_init(read) else {
            return Vec::new();
        };
        let places: Arc<[Place]> = original.parameters(name).unwrap_or_default().into();
        winners.retain(|winner| {
            let has_room = has_room(winner.cubin.len());
            if !has_room {
                say(&format!("`{name}`: there is no memory for a winner"));
            }
            has_room
        });
        winners.retain(|winner| match original.fits(name, winner) {
            Ok(_) => true,
            Err(why) => {
                let what = match why {
                    Unfit::Original(_) => " is left alone",
                    _ => "",
                };
                say(&format!("`{name}`{what}: {why}"));
                false
            }
        });
        let winners = winners.into_iter();
        let known = winners.map(|winner| (Arc::new(winner), places.clone()));
        known.collect()
    }

    /// The same as versions that a module may get.
    fn versions(&self, name: &str, digest: &str) -> Vec<Version> {
        let winners = self.of(name, digest).into_iter();
        let versions = winners.map(|(winner, places)| Version {
            kernel: name.to_owned(),
            digest: digest.to_owned(),
            symbol: winner.symbol.clone(),
            of: Of::Winner(winner, places),
        });
        versions.collect()
    }
}

/// Loads the winners for those of a module's kernels that share nothing with it. They are libraries: those belong to no
/// context.
fn bring_winners(module: &Module, plan: &Plan, stored: &Stored<'_>) {
    for (name, kernel) in &module.kernels {
        let known = state().modules.winners.contains_key(&kernel.digest);
        if known || plan.is_about(name) {
            continue;
        }
        let winners = stored.of(name, &kernel.digest);
        if winners.is_empty() {
            continue;
        }
        let loaded = winners.iter();
        let loaded: Vec<Replacement> = loaded
            .filter_map(|(winner, places)| bring(winner, name, places))
            .collect();
        if !loaded.is_empty() {
            functions::expect_replacements();
        }
        state()
            .modules
            .winners
            .insert(kernel.digest.clone(), loaded.into());
    }
}

fn bring(winner: &Winner, name: &str, places: &Arc<[Place]>) -> Option<Replacement> {
    let _relaxed = Relaxed::new();
    let loaded = load_kernel(&winner.cubin, &winner.symbol);
    let loaded = loaded.inspect_err(|(what, code)| {
        say(&format!(
            "`{name}`: the driver refuses the winner ({what}: error {code})"
        ));
    });
    let handle = (loaded.ok()?.kernel, Kind::Kernel);
    Some(Replacement::new(winner, name, places, handle))
}

/// A kernel of a library of ours.
pub struct OwnKernel {
    /// Its library.
    pub library: Handle,
    /// Its handle.
    pub kernel: Handle,
}

/// An image that lives on.
pub fn kept(image: Vec<u8>) -> &'static [u8] {
    // The driver alone may know it: who looks for lost memory finds it here.
    static ALL: Mutex<Vec<&[u8]>> = Mutex::new(Vec::new());
    let image: &'static [u8] = Box::leak(image.into_boxed_slice());
    // A forked child may find it locked for ever.
    if let Ok(mut all) = ALL.try_lock() {
        all.push(image);
    }
    image
}

/// Loads a cubin as a library and takes a kernel from it.
pub fn load_kernel(cubin: &[u8], symbol: &str) -> Result<OwnKernel, (&'static str, Code)> {
    let (mut library, mut kernel): (Handle, Handle) = (std::ptr::null_mut(), std::ptr::null_mut());
    let null = std::ptr::null_mut;
    let symbol = CString::new(symbol).unwrap_or_default();
    if !has_room(cubin.len()) {
        /// CUDA_ERROR_OUT_OF_MEMORY
        const NO_MEMORY: Code = 2;
        return Err(("no memory", NO_MEMORY));
    }
    // The driver may go on reading an image for as long as the library lives.
    let image = kept(cubin.to_vec());
    // SAFETY: the image is a cubin that lives on, the outputs have the right types.
    let code = unsafe {
        driver::library_load(
            &raw mut library,
            image.as_ptr().cast(),
            null(),
            null(),
            0,
            null(),
            null(),
            0,
        )
    };
    if code != SUCCESS {
        return Err(("cuLibraryLoadData", code));
    }
    // SAFETY: the library was just loaded.
    match unsafe { driver::library_kernel(&raw mut kernel, library, symbol.as_ptr()) } {
        SUCCESS => {
            make_ready((kernel, Kind::Kernel));
            Ok(OwnKernel { library, kernel })
        }
        code => Err(("cuLibraryGetKernel", code)),
    }
}

/// Loads code into the current context, if there is one: the first launch may be one that is captured, when
/// nothing can be loaded.
pub fn make_ready((handle, kind): (Handle, Kind)) {
    let _relaxed = Relaxed::new();
    // SAFETY: it was loaded, and is of that kind.
    unsafe {
        let function = match kind {
            Kind::Function => Some(handle),
            Kind::Kernel => driver::handle(|out| driver::kernel_function(out, handle)),
        };
        if let Some(function) = function {
            driver::function_load(function);
        }
    }
}

/// Finishes a load: looks at the image if the driver took it.
unsafe fn loaded(code: Code, handle: Out, image: *const c_void, way: Way<'_>) -> Code {
    // SAFETY: the driver has written it.
    if code == SUCCESS && !handle.is_null() && !image.is_null() && may_look(unsafe { *handle }) {
        // SAFETY: the driver has read the image and written the handle.
        unsafe { look(&mut *handle, bytes(image), &|| linked_from(image), way) };
    }
    code
}

/// `cuModuleLoadData`, which takes every image.
fn load_module(image: *const c_void, out: Out) -> Code {
    // SAFETY: an image of ours, an output of the right type.
    unsafe { driver::module_load(out, image) }
}

const OPTIONS: &str = "it is loaded with options that may change its code";

/// What a file has; none of a pipe, which gives it once, and of one that is too large for a module.
fn content(file: &str) -> Option<Vec<u8>> {
    const LARGEST: u64 = 2 << 30;
    let (file, data) = plain::open(file.as_ref()).ok()??;
    plain::content(file, &data, LARGEST).ok()?
}

unsafe fn loaded_file(code: Code, handle: Out, file: *const c_char, way: Way<'_>) -> Code {
    // SAFETY: the driver has written it.
    if code == SUCCESS && !handle.is_null() && may_look(unsafe { *handle }) {
        guarded(|| {
            // SAFETY: the driver has read the name and written the handle.
            let (file, handle) = unsafe { (driver::text(file).unwrap_or_default(), &mut *handle) };
            let bytes = content(&file);
            let bytes = bytes.as_deref().ok_or("its file cannot be read again");
            look(handle, bytes, &Vec::new, way);
        });
    }
    code
}

/// `cuModuleLoad`
pub unsafe fn load_file(
    _: bool,
    real: unsafe extern "C-unwind" fn(Out, *const c_char) -> Code,
    module: Out,
    file: *const c_char,
) -> Code {
    // SAFETY: the program's call.
    unsafe {
        loaded_file(
            real(module, file),
            module,
            file,
            Way::plain(false, &load_module),
        )
    }
}

/// `cuModuleLoadData` and `cuModuleLoadFatBinary`
pub unsafe fn load_data(
    _: bool,
    real: unsafe extern "C-unwind" fn(Out, *const c_void) -> Code,
    module: Out,
    image: *const c_void,
) -> Code {
    // SAFETY: the program's call.
    unsafe {
        loaded(
            real(module, image),
            module,
            image,
            Way::plain(false, &load_module),
        )
    }
}

/// `cuModuleLoadDataEx`
pub unsafe fn load_data_ex(
    _: bool,
    real: unsafe extern "C-unwind" fn(
        Out,
        *const c_void,
        c_uint,
        *mut c_void,
        *mut *mut c_void,
    ) -> Code,
    module: Out,
    image: *const c_void,
    count: c_uint,
    options: *mut c_void,
    values: *mut *mut c_void,
) -> Code {
    // SAFETY: the program's call.
    unsafe {
        let code = real(module, image, count, options, values);
        let way = Way {
            effect: effect(options, count),
            ..Way::plain(false, &load_module)
        };
        loaded(code, module, image, way)
    }
}

type LoadLibrary<T> = unsafe extern "C-unwind" fn(
    Out,
    *const T,
    *mut c_void,
    *mut *mut c_void,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    c_uint,
) -> Code;

/// `cuLibraryLoadData` with the program's options for libraries.
fn library_again(
    image: *const c_void,
    out: Out,
    options: *mut c_void,
    values: *mut *mut c_void,
    count: c_uint,
) -> Code {
    let null = std::ptr::null_mut;
    // SAFETY: an image of ours, an output of the right type, and what the driver has just accepted.
    unsafe { driver::library_load(out, image, null(), null(), 0, options, values.cast(), count) }
}

/// `cuLibraryLoadData`
#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub unsafe fn load_library(
    _: bool,
    real: LoadLibrary<c_void>,
    library: Out,
    image: *const c_void,
    options: *mut c_void,
    values: *mut *mut c_void,
    count: c_uint,
    library_options: *mut c_void,
    library_values: *mut *mut c_void,
    library_count: c_uint,
) -> Code {
    // SAFETY: the program's call.
    unsafe {
        let code = real(
            library,
            image,
            options,
            values,
            count,
            library_options,
            library_values,
            library_count,
        );
        let again =
            |image, out| library_again(image, out, library_options, library_values, library_count);
        let way = Way {
            effect: effect(options, count),
            ..Way::plain(true, &again)
        };
        loaded(code, library, image, way)
    }
}

/// `cuLibraryLoadFromFile`
#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub unsafe fn load_library_file(
    _: bool,
    real: LoadLibrary<c_char>,
    library: Out,
    file: *const c_char,
    options: *mut c_void,
    values: *mut *mut c_void,
    count: c_uint,
    library_options: *mut c_void,
    library_values: *mut *mut c_void,
    library_count: c_uint,
) -> Code {
    // SAFETY: the program's call.
    unsafe {
        let code = real(
            library,
            file,
            options,
            values,
            count,
            library_options,
            library_values,
            library_count,
        );
        let again =
            |image, out| library_again(image, out, library_options, library_values, library_count);
        let way = Way {
            effect: effect(options, count),
            ..Way::plain(true, &again)
        };
        loaded_file(code, library, file, way)
    }
}

/// `cuModuleUnload` and `cuLibraryUnload`: handles may be given out again, so all that is known by them goes.
pub unsafe fn unload(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle) -> Code,
    handle: Handle,
) -> Code {
    forget(|modules| {
        modules.added.remove(&(handle as usize));
        if let Some(gone) = modules.get(handle) {
            modules
                .loaded
                .retain(|_, loaded| !Arc::ptr_eq(&loaded.code, &gone));
        }
    });
    // SAFETY: the program's call.
    unsafe { real(handle) }
}

/// `cuCtxDestroy`: its modules go with it. Libraries stay.
pub unsafe fn destroy_context(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle) -> Code,
    context: Handle,
) -> Code {
    let is_left = |loaded: &Loaded| loaded.library || loaded.context != context as usize;
    forget(|modules| modules.loaded.retain(|_, loaded| is_left(loaded)));
    if mode() == Mode::Try {
        guarded(|| state().memory.forget());
    }
    // SAFETY: the program's call.
    unsafe { real(context) }
}

/// `cuDevicePrimaryCtxReset` and `cuDevicePrimaryCtxRelease`
pub unsafe fn reset_device(
    _: bool,
    real: unsafe extern "C-unwind" fn(c_int) -> Code,
    device: c_int,
) -> Code {
    forget(|modules| modules.loaded.retain(|_, loaded| loaded.library));
    if mode() == Mode::Try {
        guarded(|| state().memory.forget());
    }
    // SAFETY: the program's call.
    unsafe { real(device) }
}

fn forget(which: impl FnOnce(&mut Modules)) {
    if mode() == Mode::Off {
        return;
    }
    guarded(|| {
        let mut state = state();
        let State {
            modules,
            functions,
            trace,
            plan,
            ..
        } = &mut *state;
        trace.close();
        plan.close();
        if is_sealed() {
            // To give memory back may be a system call.
            modules.keep();
            functions.keep();
        }
        which(modules);
        functions.forget();
        crate::functions::forget_all();
    });
}

/// `cuModuleGetGlobal` and `cuLibraryGetGlobal`: who asks for a table of the mathematical library may write it, and
/// winners bring their own.
pub unsafe fn get_variable(
    _: bool,
    real: unsafe extern "C-unwind" fn(*mut u64, *mut usize, Handle, Text) -> Code,
    address: *mut u64,
    bytes: *mut usize,
    owner: Handle,
    name: Text,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(address, bytes, owner, name) };
    if code == SUCCESS && replacing() {
        guarded(|| {
            if driver::text(name).is_some_and(|name| name.starts_with(TABLES)) {
                stand_aside("the program asks for a table of the mathematical library");
            }
        });
    }
    code
}

/// `cuLibraryGetModule`: the same code under another handle.
pub unsafe fn of_library(
    _: bool,
    real: unsafe extern "C-unwind" fn(Out, Handle) -> Code,
    module: Out,
    library: Handle,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(module, library) };
    if code == SUCCESS && mode() != Mode::Off {
        guarded(|| {
            let at = current_context();
            let mut state = state();
            if let Some(known) = state.modules.get(library) {
                // SAFETY: the driver has written it.
                let module = unsafe { *module } as usize;
                let loaded = Loaded {
                    code: known,
                    library: false,
                    context: at,
                };
                state.modules.loaded.insert(module, loaded);
            }
        });
    }
    code
}
