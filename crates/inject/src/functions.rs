//! Functions: which kernel a handle stands for, and what is launched instead.
//!
//! A launch looks its handle up in a table that is read without a lock. A handle that is not in it is
//! identified once: by what `cuModuleGetFunction` and `cuLibraryGetKernel` returned it for, or by asking the
//! driver for its name and module.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};

use warpwright_launch::{CompiledGuard, Extents, LaunchValues, Shape};
use warpwright_winners::fit::Place;
use warpwright_winners::{Guard, Winner};

use crate::abi::{
    Code, FUNCTION_CLUSTER, FUNCTION_DYNAMIC_SHARED, FUNCTION_REGISTERS, Handle, NOT_FOUND, Out,
    SETTABLE, SUCCESS, Text,
};
use crate::driver;
use crate::launch::Launch;
use crate::modules::{Module, make_ready};
use crate::notes::say;
use crate::params::Passed;
use crate::reserve::has_room;
use crate::state::{Mode, State, fall_asleep, guarded, is_sealed, mode, state};
use crate::within::is_amid;

/// Is the handle a kernel of a library, or a function of a context?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `CUfunction`
    Function,
    /// `CUkernel`
    Kernel,
}

/// What a handle stands for.
#[derive(Debug, Clone)]
pub struct Known {
    /// Which kind of handle it is.
    pub kind: Kind,
    /// Symbol.
    pub name: String,
    /// Its module, if the code is known.
    pub module: Option<Arc<Module>>,
    /// The context that a function belongs to; 0 if that is not known, or for a kernel of a library.
    pub context: usize,
}

impl Known {
    /// Do both stand for the same kernel of the same module?
    fn is(&self, other: &Known) -> bool {
        let modules = match (&self.module, &other.module) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        };
        modules && (self.kind, &self.name, self.context) == (other.kind, &other.name, other.context)
    }

    /// Digest of the kernel's code.
    pub fn digest(&self) -> Option<&str> {
        let kernel = self.module.as_ref()?.kernels.get(&self.name)?;
        Some(&kernel.digest)
    }
}

/// Handles that the program was given.
#[derive(Default)]
pub struct Functions {
    known: BTreeMap<usize, Known>,
    /// What was ever entered into the table: a program that loads and unloads all the time finds its entries again.
    entries: BTreeMap<usize, &'static Entry>,
}

impl Functions {
    /// Has what stands for handles live on when they are forgotten.
    pub fn keep(&mut self) {
        std::mem::forget(std::mem::take(&mut self.known));
    }

    /// Forgets all of them; they are identified again when they are launched.
    pub fn forget(&mut self) {
        self.known.clear();
    }
}

/// What a handle stands for; the driver is asked where the program was not seen to get it.
pub fn identify(handle: Handle) -> Option<Known> {
    if let Some(known) = state().functions.known.get(&(handle as usize)) {
        return Some(known.clone());
    }
    let mut name: Text = std::ptr::null();
    // SAFETY: the handle is one that the program launches; the outputs have the right types.
    let (kind, owner) = unsafe {
        if driver::function_name(&raw mut name, handle) == SUCCESS {
            (
                Kind::Function,
                driver::handle(|out| driver::function_module(out, handle)),
            )
        } else if driver::kernel_name(&raw mut name, handle) == SUCCESS {
            (
                Kind::Kernel,
                driver::handle(|out| driver::kernel_library(out, handle)),
            )
        } else {
            return None;
        }
    };
    let mut state = state();
    let known = Known {
        kind,
        name: driver::text(name)?,
        module: owner.and_then(|owner| state.modules.get(owner)),
        context: context_of(kind, owner.and_then(|owner| state.modules.context(owner))),
    };
    state.functions.known.insert(handle as usize, known.clone());
    Some(known)
}

fn context_of(kind: Kind, of_module: Option<usize>) -> usize {
    match kind {
        Kind::Function => of_module.unwrap_or(0),
        Kind::Kernel => 0,
    }
}

fn learn(handle: Out, kind: Kind, name: Text, owner: Handle) {
    if mode() == Mode::Off || handle.is_null() {
        return;
    }
    guarded(|| {
        let Some(name) = driver::text(name) else {
            return;
        };
        let mut state = state();
        let module = state.modules.get(owner);
        // SAFETY: the driver has just written it.
        let handle = unsafe { *handle } as usize;
        let context = context_of(kind, state.modules.context(owner));
        let known = Known {
            kind,
            name,
            module,
            context,
        };
        let before = state.functions.known.insert(handle, known.clone());
        // A handle that was given out again: what is launched for it was found for another kernel.
        if before.is_none_or(|before| !before.is(&known)) {
            state.trace.forget(handle);
            state.plan.forget(handle);
            if let Some(table) = table() {
                table.remove(handle);
            }
        }
    });
}

/// `cuModuleGetFunction`
pub unsafe fn get_function(
    _: bool,
    real: unsafe extern "C-unwind" fn(Out, Handle, Text) -> Code,
    function: Out,
    module: Handle,
    name: Text,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(function, module, name) };
    if code == SUCCESS {
        learn(function, Kind::Function, name, module);
    }
    code
}

/// `cuLibraryGetKernel`
pub unsafe fn get_kernel(
    _: bool,
    real: unsafe extern "C-unwind" fn(Out, Handle, Text) -> Code,
    kernel: Out,
    library: Handle,
    name: Text,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(kernel, library, name) };
    if code == SUCCESS {
        learn(kernel, Kind::Kernel, name, library);
    }
    code
}

/// `cuKernelGetFunction`: the same kernel under another handle.
pub unsafe fn of_kernel(
    _: bool,
    real: unsafe extern "C-unwind" fn(Out, Handle) -> Code,
    function: Out,
    kernel: Handle,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(function, kernel) };
    if code == SUCCESS && mode() != Mode::Off {
        guarded(|| {
            let known = state().functions.known.get(&(kernel as usize)).cloned();
            if let Some(known) = known {
                // SAFETY: the driver has just written it.
                let function = unsafe { *function } as usize;
                let (kind, context) = (Kind::Function, current_context());
                let known = Known {
                    kind,
                    context,
                    ..known
                };
                state().functions.known.insert(function, known);
            }
        });
    }
    code
}

/// `cuFuncSetAttribute`: what the program allows its kernel, the winner must be allowed, too.
pub unsafe fn set_attribute(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle, c_int, c_int) -> Code,
    function: Handle,
    attribute: c_int,
    value: c_int,
) -> Code {
    changed(function, attribute);
    // SAFETY: the program's call.
    let code = unsafe { real(function, attribute, value) };
    changed(function, attribute);
    code
}

/// `cuKernelSetAttribute`
pub unsafe fn set_kernel_attribute(
    _: bool,
    real: unsafe extern "C-unwind" fn(c_int, c_int, Handle, c_int) -> Code,
    attribute: c_int,
    value: c_int,
    kernel: Handle,
    device: c_int,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(attribute, value, kernel, device) };
    changed(kernel, attribute);
    code
}

/// Where a kernel has its parameters, as the driver says it: of each the first byte, and the size. `None` where this
/// driver describes none.
pub fn described(handle: Handle, kind: Kind) -> Option<Vec<Place>> {
    let mut places = Vec::new();
    for index in 0.. {
        let (mut offset, mut bytes) = (0usize, 0usize);
        // SAFETY: outputs of the right types.
        let code = unsafe {
            let (offset, bytes) = (&raw mut offset, &raw mut bytes);
            match kind {
                Kind::Function => driver::function_parameter(handle, index, offset, bytes),
                Kind::Kernel => driver::kernel_parameter(handle, index, offset, bytes),
            }
        };
        match code {
            SUCCESS => places.push((u32::try_from(offset).ok()?, u32::try_from(bytes).ok()?)),
            NOT_FOUND => return None,
            _ => break,
        }
    }
    Some(places)
}

/// Are there functions that run in clusters though their launches state none?
static CLUSTERS: AtomicBool = AtomicBool::new(false);

/// From now on functions are asked for their clusters.
pub fn expect_clusters() {
    CLUSTERS.store(true, Ordering::Release);
}

/// The cluster that a function's launches run in which state none; zeros where it has none.
pub fn own_cluster(handle: Handle) -> [u32; 3] {
    if !CLUSTERS.load(Ordering::Relaxed) {
        return [0; 3];
    }
    let read = || {
        // SAFETY: an output of the right type.
        let device = driver::number(|n| unsafe { driver::context_device(n) })?;
        let kind = identify(handle)?.kind;
        Some(FUNCTION_CLUSTER.map(|number| attribute(handle, kind, number, device).unwrap_or(0)))
    };
    let found = guarded(read).flatten().unwrap_or_default();
    found.map(|n| n as u32)
}

fn changed(handle: Handle, attribute: c_int) {
    if FUNCTION_CLUSTER.contains(&attribute) {
        expect_clusters();
    }
    if let Some(entry) = table().and_then(|table| table.get(handle as usize)) {
        entry.agrees_on.store(0, Ordering::Relaxed);
    }
}

/// A winner, loaded.
#[derive(Debug)]
pub struct Replacement {
    guard: CompiledGuard,
    /// As it was written.
    of: Guard,
    shape: Shape,
    /// Where its guard finds the parameters.
    places: Arc<[Place]>,
    handle: usize,
    /// What its handle is: of a library of ours, or of the program's module or library.
    pub kind: Kind,
    name: String,
    recipe: String,
    launches: String,
    failures: AtomicU32,
    said: AtomicBool,
}

/// A winner that is refused so often is given up.
const MOST_FAILURES: u32 = 3;

impl Replacement {
    /// A winner that is loaded, in the place of `name`.
    pub fn new(
        winner: &Winner,
        name: &str,
        places: &Arc<[Place]>,
        (handle, kind): (Handle, Kind),
    ) -> Self {
        Replacement {
            guard: winner.guard.compile(),
            of: winner.guard.clone(),
            shape: winner.shape,
            places: places.clone(),
            handle: handle as usize,
            kind,
            name: name.to_owned(),
            recipe: winner.recipe.clone(),
            launches: winner.launches(),
            failures: AtomicU32::new(0),
            said: AtomicBool::new(false),
        }
    }

    /// What the launch becomes, if it may be this one's.
    #[inline]
    fn takes(&self, launch: &Launch, cluster: [u32; 3]) -> Option<Extents> {
        let stated = match cluster {
            [0, 0, 0] => [1; 3],
            stated => stated,
        };
        let passed = Passed {
            params: launch.params,
            extra: launch.extra,
            places: &self.places,
        };
        let holds = self.guard.holds(&LaunchValues {
            grid: launch.grid,
            block: launch.block,
            cluster: stated,
            dynamic_smem: launch.shared,
            params: &passed,
        });
        if !holds || self.failures.load(Ordering::Relaxed) >= MOST_FAILURES {
            return None;
        }
        if self.shape.is_same() {
            return Some(launch.extents());
        }
        // Clusters divide the grid, cooperative grids are as large as the GPU, and who reads the node of a captured
        // launch must find the program's extents there.
        let is_bound = launch.cooperative || cluster != [0; 3];
        let is_free = !is_bound && !driver::is_capturing_into(launch.stream);
        is_free
            .then(|| self.shape.apply(launch.extents()))
            .flatten()
    }

    /// What is launched: the driver takes a `CUkernel` as it does a `CUfunction`.
    pub fn handle(&self) -> Handle {
        self.handle as Handle
    }

    /// The launches that it is for.
    pub fn of(&self) -> &Guard {
        &self.of
    }

    /// Its function in the current context.
    pub fn function(&self) -> Option<Handle> {
        match self.kind {
            Kind::Function => Some(self.handle()),
            // SAFETY: a kernel that was loaded.
            Kind::Kernel => {
                driver::handle(|out| unsafe { driver::kernel_function(out, self.handle()) })
            }
        }
    }

    /// The driver accepted it; that is said once.
    pub fn launched(&self) {
        if !self.said.load(Ordering::Relaxed) && !self.said.swap(true, Ordering::Relaxed) {
            guarded(|| {
                say(&format!(
                    "`{}` is replaced: {} ({})",
                    self.name, self.recipe, self.launches
                ))
            });
        }
    }

    /// The driver refused it and took the original.
    pub fn refused(&self, code: Code) {
        let before = self.failures.fetch_add(1, Ordering::Relaxed);
        guarded(|| {
            say(&format!(
                "`{}`: the driver refuses a launch of the winner (error {code})",
                self.name
            ));
            if before + 1 == MOST_FAILURES {
                say(&format!("`{}` is not replaced any more", self.name));
            }
        });
    }
}

/// What is launched for a handle.
pub struct Entry {
    handle: usize,
    winners: Arc<[Replacement]>,
    /// See [`Known::context`]. Elsewhere the driver refuses the original, and it is asked.
    context: usize,
    /// Devices on which the winners have the attributes that the program set on the original; the first bit for a
    /// function, which has one.
    agrees_on: AtomicU64,
}

/// The table's size: a power of two. What does not fit is identified at each launch.
const PLACES: usize = 1 << 14;
/// Places that are looked at for one handle.
const REACH: usize = 16;

struct Table {
    keys: [AtomicUsize; PLACES],
    entries: [AtomicPtr<Entry>; PLACES],
    /// The one that was abandoned before.
    before: AtomicPtr<Table>,
}

static ABANDONED: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());
static ANY: AtomicBool = AtomicBool::new(false);

fn table() -> Option<&'static Table> {
    // SAFETY: null, or a table that is never freed.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

/// From now on launches look handles up.
pub fn expect_replacements() {
    ANY.store(true, Ordering::Release);
}

/// Handles may mean something else from now on. Called with the state's lock held.
pub fn forget_all() {
    for key in table().iter().flat_map(|table| &table.keys) {
        key.store(0, Ordering::Release);
    }
}

/// For a forked child: its parent may have been writing into the table. It stays where it is found.
pub fn abandon() {
    let known = TABLE.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !known.is_null() {
        ABANDONED.store(known, Ordering::Release);
    }
}

impl Table {
    fn places(handle: usize) -> impl Iterator<Item = usize> {
        // Handles are addresses: their low bits say nothing.
        let start = (handle >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - 14);
        (0..REACH).map(move |i| (start + i) % PLACES)
    }

    fn get(&self, handle: usize) -> Option<&Entry> {
        for place in Table::places(handle) {
            match self.keys[place].load(Ordering::Acquire) {
                0 => return None,
                key if key == handle => {
                    // SAFETY: entries are never freed, and written before their key.
                    let entry = unsafe { self.entries[place].load(Ordering::Acquire).as_ref() };
                    // The place may have been given to another handle in between.
                    return entry.filter(|entry| entry.handle == handle);
                }
                _ => {}
            }
        }
        None
    }

    /// Called with the state's lock held. Removals leave gaps, so a handle may stand in several places.
    fn remove(&self, handle: usize) {
        for place in Table::places(handle) {
            if self.keys[place].load(Ordering::Acquire) == handle {
                self.keys[place].store(0, Ordering::Release);
            }
        }
    }

    /// Called with the state's lock held.
    fn insert(&self, entry: &'static Entry) {
        if self.get(entry.handle).is_some() {
            return;
        }
        let free = Table::places(entry.handle).find(|&p| self.keys[p].load(Ordering::Acquire) == 0);
        if let Some(place) = free {
            let entry_pointer = std::ptr::from_ref(entry).cast_mut();
            self.entries[place].store(entry_pointer, Ordering::Release);
            self.keys[place].store(entry.handle, Ordering::Release);
        }
    }
}

/// The winner for a launch, if there is one.
#[inline]
pub fn replacement(launch: &Launch) -> Option<(&'static Replacement, Extents)> {
    if !ANY.load(Ordering::Relaxed) || launch.alone {
        return None;
    }
    let handle = launch.function;
    let entry = match table().and_then(|table| table.get(handle as usize)) {
        Some(entry) => entry,
        // A node of a graph is in one of our functions itself.
        None if !launch.stream.is_null() && is_amid() => return None,
        None => guarded(|| find(handle))??,
    };
    if entry.winners.is_empty() {
        return None;
    }
    // No driver takes an empty one, and which error it gives is the driver's affair.
    if launch.grid.contains(&0) || launch.block.contains(&0) {
        return None;
    }
    let cluster = launch.effective_cluster();
    let mut taken = entry.winners.iter().map(|w| (w, w.takes(launch, cluster)));
    let found = taken.find_map(|(winner, extents)| Some((winner, extents?)))?;
    let bit = match entry.context {
        // SAFETY: an output of the right type.
        0 => 1u64.checked_shl(driver::number(|n| unsafe { driver::context_device(n) })? as u32)?,
        context if context == current_context() => 1,
        _ => return None,
    };
    if entry.agrees_on.load(Ordering::Relaxed) & bit == 0 {
        // The driver would load what it has not yet.
        if is_sealed() {
            return None;
        }
        guarded(|| {
            for winner in entry.winners.iter() {
                make_ready((winner.handle(), winner.kind));
                let more = winner.shape.more_smem;
                give_settings(handle, (winner.handle(), winner.kind), more);
            }
        });
        entry.agrees_on.fetch_or(bit, Ordering::Relaxed);
    }
    Some(found)
}

/// The calling thread's context.
pub fn current_context() -> usize {
    // SAFETY: an output of the right type.
    let context = driver::handle(|out| unsafe { driver::context(out) });
    context.map_or(0, |context| context as usize)
}

/// Identifies a handle and remembers the result.
fn find(handle: Handle) -> Option<&'static Entry> {
    // The room is asked of the kernel.
    if is_sealed() {
        return None;
    }
    // An allocation that fails would end the program.
    if !has_room(size_of::<Table>()) {
        fall_asleep();
        return None;
    }
    let known = identify(handle);
    let winners = known.as_ref().and_then(|known| {
        let winners = match known.module.as_ref()?.grafted.get(&known.name) {
            Some(grafted) => grafted.winners.clone(),
            None => state().modules.winners(known.digest()?)?,
        };
        is_what_it_seems(handle, known).then_some(winners)
    });
    let winners = winners.unwrap_or_default();
    let context = known.map_or(0, |known| known.context);
    let mut state = state();
    let before = state.functions.entries.get(&(handle as usize)).copied();
    let is_same = |entry: &Entry| {
        both_empty(entry, &winners)
            || Arc::ptr_eq(&entry.winners, &winners) && entry.context == context
    };
    let entry = match before {
        Some(entry) if is_same(entry) => {
            entry.agrees_on.store(0, Ordering::Relaxed);
            entry
        }
        _ => {
            let entry: &'static Entry = Box::leak(Box::new(Entry {
                handle: handle as usize,
                winners,
                context,
                agrees_on: AtomicU64::new(0),
            }));
            state.functions.entries.insert(handle as usize, entry);
            entry
        }
    };
    made(&state).insert(entry);
    Some(entry)
}

/// The table, made where there is none yet.
fn made(_locked: &MutexGuard<'_, State>) -> &'static Table {
    let mut table = TABLE.load(Ordering::Acquire);
    if table.is_null() {
        // SAFETY: zeros are a table without entries.
        let new = unsafe { Box::<Table>::new_zeroed().assume_init() };
        new.before
            .store(ABANDONED.load(Ordering::Acquire), Ordering::Relaxed);
        table = Box::into_raw(new);
        TABLE.store(table, Ordering::Release);
    }
    // SAFETY: tables are never freed.
    unsafe { &*table }
}

/// Has the table where it is in nobody's way, while the library is opened.
pub fn prepare() {
    if has_room(size_of::<Table>()) {
        made(&state());
    }
}

fn both_empty(entry: &Entry, winners: &[Replacement]) -> bool {
    entry.winners.is_empty() && winners.is_empty()
}

/// Does the driver's function agree with the cubin that we took for its code?
fn is_what_it_seems(handle: Handle, known: &Known) -> bool {
    let expected = known
        .module
        .as_ref()
        .and_then(|m| m.kernels.get(&known.name)?.registers);
    let found = attribute(handle, known.kind, FUNCTION_REGISTERS, 0);
    let agrees = expected.is_none() || found.is_none() || expected.map(|n| n as c_int) == found;
    if !agrees {
        say(&format!(
            "`{}` is left alone: the driver loaded other code than was seen",
            known.name
        ));
    }
    agrees
}

fn attribute(handle: Handle, kind: Kind, attribute: c_int, device: c_int) -> Option<c_int> {
    // SAFETY: the handle is of that kind; the output has the right type.
    driver::number(|n| unsafe {
        match kind {
            Kind::Function => driver::function_attribute(n, attribute, handle),
            Kind::Kernel => driver::kernel_attribute(n, attribute, handle, device),
        }
    })
}

/// Gives code of ours what the program set on its own function, and so many bytes of dynamic shared memory more.
pub fn give_settings(from: Handle, (to, kind): (Handle, Kind), more_smem: u32) {
    // SAFETY: an output of the right type.
    let device = driver::number(|n| unsafe { driver::context_device(n) });
    let (Some(device), Some(known)) = (device, identify(from)) else {
        return;
    };
    for number in SETTABLE {
        let wanted = attribute(from, known.kind, number, device);
        let more = match number {
            FUNCTION_DYNAMIC_SHARED => c_int::try_from(more_smem).unwrap_or(0),
            _ => 0,
        };
        let wanted = wanted.map(|wanted| wanted.saturating_add(more));
        let Some(wanted) = wanted.filter(|_| attribute(to, kind, number, device) != wanted) else {
            continue;
        };
        // SAFETY: it was loaded, and is of that kind.
        unsafe {
            match kind {
                Kind::Function => driver::set_function_attribute(to, number, wanted),
                Kind::Kernel => driver::set_kernel_attribute(number, wanted, to, device),
            };
        }
    }
}

/// The handle under which the program knows the kernel whose winner this is.
pub fn original(replacing: Handle) -> Option<Handle> {
    Some(winner(replacing)?.0)
}

/// The winner that is launched by a handle: which one it is, and the launches that it is for.
pub fn in_place(replacing: Handle) -> Option<(usize, Guard)> {
    let (_, winners, place) = winner(replacing)?;
    let winner = &winners[place];
    Some((std::ptr::from_ref(winner) as usize, winner.of().clone()))
}

/// The driver refused a graph for a winner in it.
pub fn refused(replacing: Handle, code: Code) {
    if let Some((_, winners, place)) = winner(replacing) {
        winners[place].refused(code);
    }
}

/// The winner that is launched by a handle: the one of its kernel, the winners for that, and which of them it is.
fn winner(replacing: Handle) -> Option<(Handle, Arc<[Replacement]>, usize)> {
    let state = state();
    let State {
        functions, modules, ..
    } = &*state;
    let winners_of = |known: &Known| {
        let grafted = known
            .module
            .as_ref()
            .and_then(|m| m.grafted.get(&known.name));
        let winners = grafted.map(|grafted| grafted.winners.clone());
        winners.or_else(|| modules.winners(known.digest()?))
    };
    let is_it = |w: &Replacement| w.handle() == replacing || w.function() == Some(replacing);
    functions.known.iter().find_map(|(handle, known)| {
        let winners = winners_of(known)?;
        let place = winners.iter().position(is_it)?;
        Some((*handle as Handle, winners, place))
    })
}
