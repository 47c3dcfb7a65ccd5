//! What a program registers when it starts: fat binaries, functions, variables. A module is read when something of it is
//! first used.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::Arc;

use warpwright_emu::{DecodeError, Emulator, Program};
use warpwright_ptx::{Module as Ptx, Severity};
use warpwright_sass::Cubin;
use warpwright_sass::fatbin::{self, Fatbin};
use warpwright_target::Architecture;
use warpwright_winners::image::{self, CONTAINER};
use warpwright_winners::lines::Note;
use warpwright_winners::sha256;

use crate::abi::{Code, INVALID_DEVICE_FUNCTION, INVALID_SYMBOL, Text, WRAPPER, Wrapper};
use crate::memory::Kind;
use crate::state::State;

/// A function of the program that stands for a kernel.
#[derive(Clone)]
pub struct Function {
    pub module: usize,
    pub name: Arc<str>,
}

/// A variable of the program that stands for one on the device.
#[derive(Clone)]
struct Shadow {
    module: usize,
    name: String,
    size: u64,
}

/// What a kernel takes, as its machine code says.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    pub registers: u32,
    pub static_smem: u32,
    pub local: u32,
    pub max_threads: Option<[u32; 3]>,
}

/// Why a kernel cannot be run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unrun {
    #[error("its module has no PTX")]
    NoPtx,
    #[error("its PTX cannot be read: {0}")]
    Unread(String),
    #[error("{0}")]
    Undecoded(Arc<DecodeError>),
}

impl From<DecodeError> for Unrun {
    fn from(error: DecodeError) -> Unrun {
        Unrun::Undecoded(Arc::new(error))
    }
}

/// A module that was read.
pub struct Loaded {
    /// Digest of its machine code, if it has some for the GPU.
    pub digest: Option<String>,
    needs: BTreeMap<String, Needs>,
    /// Its PTX, or why there is none to run.
    ptx: Result<Ptx, Unrun>,
    /// First slot of its variables.
    first: usize,
    /// By name, and whether the launch is cooperative.
    programs: BTreeMap<(Arc<str>, bool), Result<Arc<Program>, Unrun>>,
    variables: BTreeMap<String, (u64, u64)>,
}

/// Everything that was registered.
#[derive(Default)]
pub struct Modules {
    /// Where the blocks of cooperative launches wait for each other, once there was one.
    workspace: Option<u64>,
    /// Places of wrappers in the program.
    images: Vec<usize>,
    loaded: Vec<Option<Loaded>>,
    functions: BTreeMap<usize, Function>,
    shadows: BTreeMap<usize, Shadow>,
    managed: Vec<(usize, Shadow)>,
}

impl Modules {
    /// A fat binary; its number.
    pub fn add(&mut self, wrapper: usize) -> usize {
        self.images.push(wrapper);
        self.loaded.push(None);
        self.images.len() - 1
    }

    pub fn add_function(&mut self, host: usize, module: usize, name: &CStr) {
        let name = name.to_string_lossy().into();
        self.functions.insert(host, Function { module, name });
    }

    pub fn add_variable(&mut self, host: usize, module: usize, name: &CStr, size: u64) {
        let name = name.to_string_lossy().into_owned();
        self.shadows.insert(host, Shadow { module, name, size });
    }

    pub fn add_managed(&mut self, pointer: usize, module: usize, name: &CStr, size: u64) {
        let name = name.to_string_lossy().into_owned();
        self.managed.push((pointer, Shadow { module, name, size }));
    }

    /// The variables of a module that was read, and where they are.
    pub fn variables(&self, module: usize) -> impl Iterator<Item = (&str, u64)> {
        let loaded = self.loaded.get(module).and_then(Option::as_ref);
        let all = loaded.into_iter().flat_map(|loaded| &loaded.variables);
        all.map(|(name, (base, _))| (&**name, *base))
    }

    /// The kernel that a function of the program stands for.
    pub fn function(&self, host: usize) -> Result<Function, Code> {
        let found = self.functions.get(&host).cloned();
        found.ok_or(INVALID_DEVICE_FUNCTION)
    }
}

impl State {
    /// A module, read if it was not yet.
    pub fn module(&mut self, number: usize) -> Result<&mut Loaded, Code> {
        let slot = self.modules.loaded.get(number);
        if slot.ok_or(INVALID_DEVICE_FUNCTION)?.is_none() {
            let loaded = self.load(self.modules.images[number])?;
            self.modules.loaded[number] = Some(loaded);
        }
        let loaded = self.modules.loaded[number].as_mut();
        loaded.ok_or(INVALID_DEVICE_FUNCTION)
    }

    fn load(&mut self, wrapper: usize) -> Result<Loaded, Code> {
        let sm = self.sm()?;
        // SAFETY: the program registered it, and fat binaries stay in memory.
        let image = unsafe { image_of(wrapper) };
        let code = match image {
            Ok(image) => image::code(image, sm).map_err(|error| error.to_string()),
            Err(why) => Err(why.to_owned()),
        };
        let (cubin, beside) = match code {
            Ok(code) => (Some(code.cubin), code.ptx),
            Err(why) => {
                self.record.module(&Note::Unknown(why));
                (None, None)
            }
        };
        let text = beside.or_else(|| image.ok().and_then(|image| ptx_for(image, sm)));
        let digest = cubin.as_deref().map(sha256);
        if let (Some(cubin), Some(digest)) = (&cubin, &digest) {
            self.record.keep(digest, cubin, text.as_deref());
        }
        let ptx = match text {
            Some(text) => parsed(&text),
            None => Err(Unrun::NoPtx),
        };
        let arch = self.gpu()?.arch;
        let mut loaded = Loaded {
            digest,
            needs: cubin.map(|cubin| needs(&cubin, arch)).unwrap_or_default(),
            ptx,
            first: 0,
            programs: BTreeMap::new(),
            variables: BTreeMap::new(),
        };
        self.place_variables(&mut loaded)?;
        Ok(loaded)
    }

    fn place_variables(&mut self, loaded: &mut Loaded) -> Result<(), Code> {
        let Ok(ptx) = &loaded.ptx else { return Ok(()) };
        let count = Emulator::variables(ptx, 0).map_or(0, |all| all.len());
        loaded.first = self.arena.reserve(count)?;
        match Emulator::variables(ptx, loaded.first) {
            Ok(variables) => {
                for (at, variable) in variables.iter().enumerate() {
                    let base = self.arena.place(loaded.first + at, variable)?;
                    let place = (base, variable.bytes.len() as u64);
                    loaded.variables.insert(variable.name.clone(), place);
                }
            }
            Err(error) => loaded.ptx = Err(error.into()),
        }
        Ok(())
    }

    /// The kernel, decoded; or why it cannot be run.
    pub fn program(
        &mut self,
        function: &Function,
        is_cooperative: bool,
    ) -> Result<Result<Arc<Program>, Unrun>, Code> {
        let workspace = match is_cooperative {
            true => Some(self.workspace()?),
            false => None,
        };
        let module = self.module(function.module)?;
        let key = (function.name.clone(), is_cooperative);
        if let Some(known) = module.programs.get(&key) {
            return Ok(known.clone());
        }
        let decoded = |ptx: &Ptx| match workspace {
            Some(at) => Emulator::cooperative(ptx, &function.name, module.first, at),
            None => Emulator::placed(ptx, &function.name, module.first),
        };
        let made = match &module.ptx {
            Ok(ptx) => decoded(ptx).map(Arc::new).map_err(Unrun::from),
            Err(why) => Err(why.clone()),
        };
        module.programs.insert(key, made.clone());
        Ok(made)
    }

    /// Where the blocks of cooperative launches wait for each other.
    fn workspace(&mut self) -> Result<u64, Code> {
        const BYTES: u64 = 8;
        match self.modules.workspace {
            Some(at) => Ok(at),
            None => {
                let at = self.arena.allocate(BYTES, Kind::Variable)?;
                self.modules.workspace = Some(at);
                Ok(at)
            }
        }
    }

    /// Offset and size of a kernel's parameters, as its PTX declares them.
    pub fn parameters(&mut self, function: &Function) -> Result<Option<Vec<(u64, u64)>>, Code> {
        let module = self.module(function.module)?;
        let Ok(ptx) = &module.ptx else {
            return Ok(None);
        };
        let kernel = ptx.kernels().find(|(_, f)| *f.name == *function.name);
        let Some((_, kernel)) = kernel else {
            return Ok(None);
        };
        let mut end = 0u64;
        let places = kernel.params.iter().map(|param| {
            let variable = &ptx.variables[param.var];
            let start = end.next_multiple_of(u64::from(variable.alignment()).max(1));
            end = start + variable.bytes();
            (start, variable.bytes())
        });
        Ok(Some(places.collect()))
    }

    /// What a kernel takes; nothing is known without machine code.
    pub fn needs(&mut self, function: &Function) -> Result<Option<Needs>, Code> {
        let module = self.module(function.module)?;
        Ok(module.needs.get(&*function.name).copied())
    }

    /// Address and size of the variable that one of the program stands for.
    pub fn variable(&mut self, host: usize) -> Result<(u64, u64), Code> {
        let shadow = self.modules.shadows.get(&host).cloned();
        self.shadow(&shadow.ok_or(INVALID_SYMBOL)?)
    }

    fn shadow(&mut self, shadow: &Shadow) -> Result<(u64, u64), Code> {
        let known = self.module(shadow.module)?.variables.get(&shadow.name);
        if let Some(&known) = known {
            return Ok(known);
        }
        let base = self.arena.allocate(shadow.size, Kind::Variable)?;
        let place = (base, shadow.size);
        let module = self.module(shadow.module)?;
        module.variables.insert(shadow.name.clone(), place);
        Ok(place)
    }

    /// Tells the program where its managed variables are.
    pub fn place_managed(&mut self) -> Result<(), Code> {
        for (pointer, shadow) in std::mem::take(&mut self.modules.managed) {
            let (base, _) = self.shadow(&shadow)?;
            // SAFETY: the program said that the address of its variable belongs there.
            unsafe { *(pointer as *mut u64) = base };
            self.modules.shadows.insert(pointer, shadow.clone());
        }
        Ok(())
    }
}

/// The bytes of a registered image.
///
/// # Safety
/// A wrapper that nvcc made.
unsafe fn image_of(wrapper: usize) -> Result<&'static [u8], &'static str> {
    // SAFETY: as above.
    let wrapper = unsafe { &*(wrapper as *const Wrapper) };
    if wrapper.magic != WRAPPER || wrapper.data.is_null() {
        return Err("it is of an unknown kind");
    }
    // SAFETY: data has a header of 16 bytes, and so many bytes as that states.
    unsafe {
        let data = wrapper.data;
        if data.cast::<[u8; 4]>().read_unaligned() != CONTAINER {
            return Err("it is no fat binary");
        }
        let header = usize::from(data.add(6).cast::<u16>().read_unaligned());
        let size = data.add(8).cast::<u64>().read_unaligned() as usize;
        Ok(std::slice::from_raw_parts(data, header + size))
    }
}

/// PTX that the emulator can run: that which the driver would compile, or the only one there is.
fn ptx_for(image: &[u8], sm: u32) -> Option<String> {
    if let Some(ptx) = image::ptx(image, sm) {
        return Some(ptx.text);
    }
    let fat = Fatbin::parse(image).ok()?;
    let entries = fat.entries().iter().enumerate();
    let all = entries.filter(|(_, entry)| entry.kind == fatbin::Kind::Ptx);
    let all: Vec<usize> = all.map(|(at, _)| at).collect();
    let [only] = all[..] else { return None };
    let mut text = fat.contents(only).ok()?;
    while text.last() == Some(&0) {
        text.pop();
    }
    String::from_utf8(text).ok()
}

fn parsed(text: &str) -> Result<Ptx, Unrun> {
    let (module, diagnostics) = Ptx::parse("module.ptx", text);
    let wrong = diagnostics.iter().find(|d| d.severity == Severity::Error);
    match wrong {
        Some(wrong) => Err(Unrun::Unread(wrong.message.clone())),
        None => Ok(module),
    }
}

fn needs(cubin: &[u8], arch: &Architecture) -> BTreeMap<String, Needs> {
    let Ok(cubin) = Cubin::parse(cubin) else {
        return BTreeMap::new();
    };
    let system = arch.first_shared_address();
    let entries = cubin.kernels.iter().filter(|kernel| kernel.is_entry);
    let all = entries.map(|kernel| {
        let needs = Needs {
            registers: kernel.registers,
            static_smem: kernel.shared_bytes.saturating_sub(system),
            local: kernel.frame_bytes,
            max_threads: kernel.max_threads,
        };
        (kernel.name.clone(), needs)
    });
    all.collect()
}

/// A name that the program gives.
///
/// # Safety
/// Null, or a text that ends in a zero.
pub unsafe fn text<'a>(text: Text) -> &'a CStr {
    match text.is_null() {
        true => c"",
        // SAFETY: as above.
        false => unsafe { CStr::from_ptr(text) },
    }
}
