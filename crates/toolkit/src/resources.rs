//! The report of `ptxas -v`, as data. Pure text parsing.
//!
//! Formats read: ptxas 13.0 and 13.5, which print the same lines. For a module they are
//!
//! ```text
//! ptxas info    : 0 bytes gmem, 400 bytes cmem[3]
//! ptxas info    : Compiling entry function 'k' for 'sm_90a'
//! ptxas info    : Function properties for k
//!     304 bytes stack frame, 300 bytes spill stores, 300 bytes spill loads
//! ptxas info    : Used 255 registers, used 1 barriers, 304 bytes cumulative stack size, 1024 bytes smem
//! ptxas info    : Compile time = 40.504 ms
//! ptxas info    : Function properties for device_function
//!     40 bytes stack frame, 40 bytes spill stores, 40 bytes spill loads
//! ```
//!
//! Items that are zero are left out of the `Used` line. sm_90 and later print no constant banks for a
//! kernel's parameters. ptxas gives registers for entry functions only. Compile times are dropped: they
//! differ from run to run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, parse_ptxas_line};

/// Whether the host can launch a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FunctionKind {
    /// A kernel (`.entry`).
    Entry,
    /// A function that kernels call (`.func`).
    Device,
}

/// What ptxas says one function needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelResources {
    /// The name in the PTX (mangled).
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// The architecture it was compiled for, as ptxas names it; entries only.
    pub gpu: Option<String>,
    /// 32-bit registers per thread; ptxas gives it for entries only.
    pub registers: Option<u32>,
    /// Hardware barriers per block.
    pub barriers: u32,
    /// Bytes of local memory per thread that the function itself uses.
    pub stack_frame: u32,
    /// Bytes per thread written by spill code, each store counted once in the program text.
    pub spill_stores: u32,
    /// Bytes per thread read by spill code, each load counted once in the program text.
    pub spill_loads: u32,
    /// Bytes of stack per thread with all callees; `None` where ptxas does not give it.
    pub cumulative_stack: Option<u32>,
    /// Static shared memory, bytes per block; includes spill slots that
    /// `.pragma "enable_smem_spilling"` put there.
    pub shared: u32,
    /// Local memory apart from the stack, bytes per thread.
    pub local: u32,
    /// Bytes in each constant bank that the function uses.
    pub constant: BTreeMap<u32, u32>,
    /// Bound textures.
    pub textures: u32,
    /// Bound surfaces.
    pub surfaces: u32,
    /// Bound samplers.
    pub samplers: u32,
}

impl KernelResources {
    /// A function that uses nothing yet.
    pub fn new(name: &str, kind: FunctionKind) -> Self {
        KernelResources {
            name: name.to_owned(),
            kind,
            gpu: None,
            registers: None,
            barriers: 0,
            stack_frame: 0,
            spill_stores: 0,
            spill_loads: 0,
            cumulative_stack: None,
            shared: 0,
            local: 0,
            constant: BTreeMap::new(),
            textures: 0,
            surfaces: 0,
            samplers: 0,
        }
    }

    /// Whether ptxas put any value aside for want of registers.
    pub fn spills(&self) -> bool {
        self.spill_stores > 0 || self.spill_loads > 0
    }
}

/// What ptxas says about a whole module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleResources {
    /// Bytes of global memory that the module's variables take.
    pub global: u64,
    /// Bytes in each constant bank that belong to the module.
    pub constant: BTreeMap<u32, u32>,
    /// Its functions, in the order in which ptxas prints them.
    pub functions: Vec<KernelResources>,
    /// Everything else it said: warnings, and notes such as an overridden register limit.
    pub messages: Vec<Diagnostic>,
    /// Lines that are in no known form.
    pub unparsed: Vec<String>,
}

impl ModuleResources {
    /// The kernels alone.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelResources> {
        self.functions
            .iter()
            .filter(|f| f.kind == FunctionKind::Entry)
    }

    /// The kernel of that (mangled) name.
    pub fn kernel(&self, name: &str) -> Option<&KernelResources> {
        self.kernels().find(|f| f.name == name)
    }
}

/// Reads all that `ptxas -v` printed. Never fails: what it does not know is kept as it stands.
pub fn parse(text: &str) -> ModuleResources {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.line(line);
    }
    reader.module
}

#[derive(Default)]
struct Reader {
    module: ModuleResources,
    /// The entry function being compiled, and its architecture.
    entry: Option<(String, String)>,
    /// Whether the properties line of the last function is still to come.
    properties_due: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let known = match parse_ptxas_line(line) {
            Some(d) if d.severity == crate::Severity::Info && d.line.is_none() => {
                self.info(&d.message).then_some(()).or_else(|| self.keep(d))
            }
            Some(d) => self.keep(d),
            None if self.properties_due => {
                self.properties_due = false;
                self.properties(line.trim())
            }
            None => None,
        };
        if known.is_none() {
            self.module.unparsed.push(line.to_owned());
        }
    }

    fn keep(&mut self, message: Diagnostic) -> Option<()> {
        self.module.messages.push(message);
        Some(())
    }

    /// A line `ptxas info    : TEXT`; whether it was a part of the report.
    fn info(&mut self, text: &str) -> bool {
        if let Some(rest) = text.strip_prefix("Compiling entry function '") {
            let parts = rest
                .split_once("' for '")
                .and_then(|(n, g)| Some((n, g.strip_suffix('\'')?)));
            self.entry = parts.map(|(name, gpu)| (name.to_owned(), gpu.to_owned()));
            return self.entry.is_some();
        }
        if let Some(name) = text.strip_prefix("Function properties for ") {
            self.function(name.trim());
            return true;
        }
        if let Some(rest) = text.strip_prefix("Used ") {
            return self.used(rest).is_some();
        }
        text.starts_with("Compile time = ") || self.module_line(text).is_some()
    }

    fn function(&mut self, name: &str) {
        let entry = self.entry.take_if(|(entry, _)| entry == name);
        let kind = if entry.is_some() {
            FunctionKind::Entry
        } else {
            FunctionKind::Device
        };
        let mut function = KernelResources::new(name, kind);
        function.gpu = entry.map(|(_, gpu)| gpu);
        self.module.functions.push(function);
        self.properties_due = true;
    }

    /// `304 bytes stack frame, 300 bytes spill stores, 300 bytes spill loads`.
    fn properties(&mut self, text: &str) -> Option<()> {
        let function = self.module.functions.last_mut()?;
        let mut items = text.split(", ");
        function.stack_frame = bytes(items.next()?, "stack frame")?;
        function.spill_stores = bytes(items.next()?, "spill stores")?;
        function.spill_loads = bytes(items.next()?, "spill loads")?;
        items.next().is_none().then_some(())
    }

    /// `255 registers, used 1 barriers, 304 bytes cumulative stack size, 1024 bytes smem, …`.
    fn used(&mut self, text: &str) -> Option<()> {
        let function = self.module.functions.last_mut()?;
        for item in text.split(", ") {
            let item = item.strip_prefix("used ").unwrap_or(item);
            let (number, what) = item.split_once(' ')?;
            let number = sum(number)?;
            match what {
                "registers" => function.registers = Some(number),
                "barriers" => function.barriers = number,
                "bytes cumulative stack size" => function.cumulative_stack = Some(number),
                "bytes smem" => function.shared = number,
                "bytes lmem" => function.local = number,
                "textures" => function.textures = number,
                "surfaces" => function.surfaces = number,
                "samplers" => function.samplers = number,
                _ => drop(function.constant.insert(bank(what)?, number)),
            }
        }
        Some(())
    }

    /// `0 bytes gmem, 400 bytes cmem[3]`.
    fn module_line(&mut self, text: &str) -> Option<()> {
        let mut global = 0;
        let mut constant = BTreeMap::<u32, u32>::new();
        for item in text.split(", ") {
            let (number, what) = item.split_once(' ')?;
            match what {
                "bytes gmem" => global = number.parse().ok()?,
                _ => drop(constant.insert(bank(what)?, number.parse().ok()?)),
            }
        }
        self.module.global += global;
        for (bank, size) in constant {
            *self.module.constant.entry(bank).or_default() += size;
        }
        Some(())
    }
}

fn bytes(item: &str, what: &str) -> Option<u32> {
    item.strip_suffix(what)?
        .trim_end()
        .strip_suffix("bytes")?
        .trim_end()
        .parse()
        .ok()
}

/// `1024`, or `1024+16` as older versions write static and driver-owned parts.
fn sum(number: &str) -> Option<u32> {
    number
        .split('+')
        .try_fold(0u32, |total, part| total.checked_add(part.parse().ok()?))
}

/// `bytes cmem[3]` is bank 3.
fn bank(what: &str) -> Option<u32> {
    what.strip_prefix("bytes cmem[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}
