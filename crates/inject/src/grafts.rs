//! Kernels that use `__constant__` or `__device__` variables: what takes their place must be in the same module.
//!
//! When the driver has taken such a module, the same cubin with the new kernels added ([`graft`]) is loaded beside it; if the driver takes that as
//! well, the first one is unloaded and the program gets the second. Its variables are the module's then, whoever asks for
//! them and whenever, and its own kernels are there as before. The program never sees the names of the new ones.

use std::collections::BTreeMap;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::sync::Arc;

use warpwright_winners::Winner;
use warpwright_winners::fit::Place;
use warpwright_winners::graft::{Addition, graft};
use warpwright_winners::ties::{Bond, bond};

use crate::abi::{Code, Handle, Out, SUCCESS, Text};
use crate::driver::{self, Relaxed};
use crate::functions::{self, Kind, Replacement};
use crate::modules::{Module, kept};
use crate::notes::say;
use crate::reserve::has_room;
use crate::state::{guarded, state};
use crate::trial::{self, Choice};

/// What may take the place of a kernel that shares something with its module. Nothing else may.
#[derive(Debug, Default)]
pub struct Grafted {
    /// Winners.
    pub winners: Arc<[Replacement]>,
    /// Candidates by their files.
    pub candidates: BTreeMap<String, (usize, Kind)>,
    /// Why there is nothing.
    pub refused: Option<String>,
}

/// A version of a kernel that its module is to get.
pub struct Version {
    /// The kernel.
    pub kernel: String,
    /// Digest of its code.
    pub digest: String,
    /// Its symbol there.
    pub symbol: String,
    /// What it is.
    pub of: Of,
}

/// What a version is.
pub enum Of {
    /// A winner, and where its guard finds parameters.
    Winner(Arc<Winner>, Arc<[Place]>),
    /// A candidate, and its code.
    Candidate(Box<Choice>, Vec<u8>),
}

impl Version {
    /// Code of the version.
    fn cubin(&self) -> &[u8] {
        match &self.of {
            Of::Winner(winner, _) => &winner.cubin,
            Of::Candidate(_, cubin) => cubin,
        }
    }
}

/// A module's kernels that share something with it, and what it is loaded as: once for each cubin, since programs
/// load and unload.
pub struct Plan {
    /// The cubin with the versions. The driver may go on reading an image for as long as the module lives.
    image: Option<&'static [u8]>,
    versions: Vec<Version>,
    /// By kernel: why it gets none.
    refused: BTreeMap<String, String>,
}

/// What is known of modules with added kernels.
#[derive(Default)]
pub struct Grafts {
    /// By digest of the cubin.
    plans: BTreeMap<String, Arc<Plan>>,
    /// By kernel and handles: a program that loads and unloads all the time gets the same handles again.
    winners: BTreeMap<(String, Vec<usize>), Arc<[Replacement]>>,
}

/// How the names of added kernels go on behind those of the kernels.
const MARK: &str = ".warpwright.";

fn name_of(kernel: &str, number: usize) -> String {
    format!("{kernel}{MARK}{number}")
}

impl Plan {
    /// How many kernels it adds.
    pub fn added(&self) -> usize {
        self.versions.len()
    }

    /// The plan for a cubin; `of` names the versions of a kernel, by its name and its digest.
    pub fn of(cubin: &[u8], module: &Module, of: &dyn Fn(&str, &str) -> Vec<Version>) -> Arc<Plan> {
        if let Some(known) = state().grafts.plans.get(&module.digest) {
            return known.clone();
        }
        let mut plan = Plan {
            image: None,
            versions: Vec::new(),
            refused: BTreeMap::new(),
        };
        for (name, kernel) in &module.kernels {
            let versions = of(name, &kernel.digest);
            if versions.is_empty() {
                continue;
            }
            match bond(cubin, name) {
                Ok(Bond::None) => {}
                Ok(Bond::Variables) => plan.versions.extend(versions),
                Err(tie) => {
                    say(&format!("`{name}` is left alone: {tie}"));
                    plan.refused.insert(name.clone(), tie.to_string());
                }
            }
        }
        if !plan.versions.is_empty() {
            plan.add_all(cubin);
        }
        let plan = Arc::new(plan);
        state()
            .grafts
            .plans
            .insert(module.digest.clone(), plan.clone());
        plan
    }

    fn add_all(&mut self, cubin: &[u8]) {
        let names = self.versions.iter().enumerate();
        let names: Vec<String> = names
            .map(|(number, v)| name_of(&v.kernel, number))
            .collect();
        let versions = self.versions.iter().zip(&names);
        let additions: Vec<Addition<'_>> = versions
            .map(|(version, name)| Addition {
                kernel: &version.kernel,
                name,
                cubin: version.cubin(),
                symbol: &version.symbol,
            })
            .collect();
        let bytes = additions.iter().map(|one| one.cubin.len()).sum::<usize>();
        if !has_room(bytes + cubin.len()) {
            drop(additions);
            return self.refuse_all("there is no memory for its module with other kernels");
        }
        match graft(cubin, &additions) {
            Ok(image) => self.image = Some(kept(image)),
            Err(e) => self.refuse_all(&e.to_string()),
        }
    }

    fn refuse_all(&mut self, why: &str) {
        for version in self.versions.drain(..) {
            say(&format!("`{}` is left alone: {why}", version.kernel));
            self.refused.insert(version.kernel, why.to_owned());
        }
    }

    /// Is it about this kernel?
    pub fn is_about(&self, kernel: &str) -> bool {
        self.refused.contains_key(kernel) || self.versions.iter().any(|v| v.kernel == kernel)
    }

    /// What stands for kernels where the module could not be loaded with its versions.
    fn without(&self, why: &str) -> BTreeMap<String, Grafted> {
        let refused = |why: &str| Grafted {
            refused: Some(why.to_owned()),
            ..Grafted::default()
        };
        let own = self
            .refused
            .iter()
            .map(|(k, why)| (k.clone(), refused(why)));
        let versions = self
            .versions
            .iter()
            .map(|v| (v.kernel.clone(), refused(why)));
        own.chain(versions).collect()
    }

    /// Loads the module with its versions in the place of the one that the driver has just loaded. `load` loads an image.
    pub fn load(
        &self,
        handle: &mut Handle,
        is_library: bool,
        load: Result<&dyn Fn(*const c_void, Out) -> Code, &str>,
    ) -> BTreeMap<String, Grafted> {
        let (Some(image), load) = (self.image, load) else {
            return self.without("it has no versions");
        };
        let load = match load {
            Ok(load) => load,
            Err(why) => {
                say(&format!("a module stays as it is: {why}"));
                return self.without(why);
            }
        };
        let candidates = self.versions.iter().filter_map(|v| match &v.of {
            Of::Candidate(choice, _) => Some((&*v.digest, &*choice.candidate)),
            Of::Winner(..) => None,
        });
        let candidates: Vec<(&str, &str)> = candidates.collect();
        let _relaxed = Relaxed::new();
        // If the driver does not survive it, these are the reason.
        trial::mark(&candidates);
        let mut new: Handle = std::ptr::null_mut();
        let code = load(image.as_ptr().cast(), &raw mut new);
        let found = match code {
            SUCCESS => self.handles(new, is_library),
            _ => None,
        };
        trial::mark(&[]);
        let Some(found) = found else {
            if code == SUCCESS {
                unload(new, is_library);
            }
            let why = match code {
                SUCCESS => "its module does not show the other kernels".to_owned(),
                _ => format!("the driver refuses its module with another kernel (error {code})"),
            };
            say(&format!("a module stays as it is: {why}"));
            return self.without(&why);
        };
        unload(*handle, is_library);
        *handle = new;
        self.sort(&found, is_library)
    }

    /// The handles of the versions.
    fn handles(&self, owner: Handle, is_library: bool) -> Option<Vec<usize>> {
        let versions = self.versions.iter().enumerate();
        let handles = versions.map(|(number, version)| {
            let name = CString::new(name_of(&version.kernel, number)).ok()?;
            // SAFETY: a module that was just loaded, a C string, an output of the right type.
            let handle = driver::handle(|out| unsafe {
                match is_library {
                    true => driver::library_kernel(out, owner, name.as_ptr()),
                    false => driver::module_function(out, owner, name.as_ptr()),
                }
            });
            handle.map(|handle| handle as usize)
        });
        handles.collect()
    }

    fn sort(&self, handles: &[usize], is_library: bool) -> BTreeMap<String, Grafted> {
        let kind = match is_library {
            true => Kind::Kernel,
            false => Kind::Function,
        };
        let mut all = self.without("");
        for (kernel, grafted) in &mut all {
            let versions = self.versions.iter().zip(handles);
            let own: Vec<(&Version, usize)> = versions
                .filter(|(version, _)| version.kernel == *kernel)
                .map(|(version, handle)| (version, *handle))
                .collect();
            if own.is_empty() {
                continue;
            }
            grafted.refused = None;
            let key = own.iter().map(|(_, handle)| *handle).collect();
            let made = || {
                let made = own
                    .iter()
                    .filter_map(|(version, handle)| match &version.of {
                        Of::Winner(winner, places) => {
                            let handle = (*handle as Handle, kind);
                            Some(Replacement::new(winner, kernel, places, handle))
                        }
                        Of::Candidate(..) => None,
                    });
                made.collect::<Arc<[Replacement]>>()
            };
            let digest = own[0].0.digest.clone();
            let mut state = state();
            let known = state.grafts.winners.entry((digest, key));
            grafted.winners = known.or_insert_with(made).clone();
            drop(state);
            if !grafted.winners.is_empty() {
                functions::expect_replacements();
            }
            for (version, handle) in own {
                if let Of::Candidate(choice, _) = &version.of {
                    let file = choice.file.clone();
                    grafted.candidates.insert(file, (handle, kind));
                }
            }
        }
        all
    }
}

fn unload(handle: Handle, is_library: bool) {
    // SAFETY: it was loaded for or by us, and nobody else has seen it.
    unsafe {
        match is_library {
            true => driver::library_unload(handle),
            false => driver::module_unload(handle),
        };
    }
}

/// What the options of a load may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Nothing: logs of the compiler, its cache, the target of the context.
    Nothing,
    /// What is made of PTX, and nothing of a cubin: limits and level of the compiler, line information.
    Compiler,
    /// What code does: symbols to link with, and whatever is not known.
    Code,
    /// Which code of an image is taken (CU_JIT_TARGET, CU_JIT_FALLBACK_STRATEGY).
    Choice,
}

/// What the options of a load may change.
///
/// # Safety
/// `options` are as many numbers as `count` says.
pub unsafe fn effect(options: *const c_void, count: c_uint) -> Effect {
    let options = options.cast::<c_int>();
    let all = (0..count as usize).map(|i| {
        if options.is_null() {
            return Effect::Code;
        }
        // SAFETY: the caller's.
        match unsafe { options.add(i).read() } {
            2..=6 | 8 | 12 | 14 => Effect::Nothing,
            0 | 1 | 7 | 11 | 13 => Effect::Compiler,
            9 | 10 => Effect::Choice,
            _ => Effect::Code,
        }
    });
    all.max().unwrap_or(Effect::Nothing)
}

type Enumerate = unsafe extern "C-unwind" fn(Out, c_uint, Handle) -> Code;
type Count = unsafe extern "C-unwind" fn(*mut c_uint, Handle) -> Code;

/// How many kernels of a module are ours, and how many are the program's.
fn added(owner: Handle) -> (usize, usize) {
    let added = guarded(|| state().modules.added(owner));
    added.flatten().unwrap_or_default()
}

/// `cuModuleGetFunctionCount` and `cuLibraryGetKernelCount`: without ours.
pub unsafe fn count(_: bool, real: Count, count: *mut c_uint, owner: Handle) -> Code {
    // SAFETY: the program's call; the driver has written the number.
    unsafe {
        let code = real(count, owner);
        if code == SUCCESS && !count.is_null() {
            *count -= added(owner).0 as c_uint;
        }
        code
    }
}

/// `cuModuleEnumerateFunctions` and `cuLibraryEnumerateKernels`: without ours.
pub unsafe fn enumerate(_: bool, real: Enumerate, found: Out, most: c_uint, owner: Handle) -> Code {
    let (ours, own) = added(owner);
    if ours == 0 || found.is_null() {
        // SAFETY: the program's call.
        return unsafe { real(found, most, owner) };
    }
    // A program may name any number: there are no more than these.
    let most = (most as usize).min(own);
    let mut all: Vec<Handle> = vec![std::ptr::null_mut(); most + ours];
    // SAFETY: the program's call, with room for ours.
    let code = unsafe { real(all.as_mut_ptr(), all.len() as c_uint, owner) };
    if code == SUCCESS {
        let is_own = |handle: &&Handle| !handle.is_null() && !is_added(**handle);
        for (place, handle) in all.iter().filter(is_own).take(most).enumerate() {
            // SAFETY: the program has room for `most`.
            unsafe { *found.add(place) = *handle };
        }
    }
    code
}

fn is_added(handle: Handle) -> bool {
    let mut name: Text = std::ptr::null();
    // SAFETY: a handle of the driver, outputs of the right types.
    let known = unsafe {
        driver::function_name(&raw mut name, handle) == SUCCESS
            || driver::kernel_name(&raw mut name, handle) == SUCCESS
    };
    known && driver::text(name).is_some_and(|name| name.contains(MARK))
}
