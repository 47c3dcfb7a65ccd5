//! `cache`: what the caches do with the lines of global loads and stores.
//!
//! Goal: whole neighbourhoods fetched at once where a kernel's loads leave gaps (structures of 72 to 144 bytes, stencils
//! with many planes), and lines that nobody reads again kept out of what others need. PTX ISA, sections 'Cache
//! Operators', 'Cache Eviction Priority Hints' and `ld` (`level::prefetch_size`). Which one pays is for a measurement:
//! it depends on what other warps read.
//!
//! Departure: policies by `createpolicy` need a register and an operand, and are left alone, as are accesses whose text
//! names a cache operator, a priority or a prefetch size already: whoever wrote it had a reason.
//!
//! Requires a kernel whose opcodes are all known, PTX 7.4 for the hints that came with it. Preserves every value: the
//! ISA calls all of them performance hints. Volatile and ordered accesses keep their text.

use warpwright_diag::count;
use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Edits, Opcode, Space};

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::ptx::facts::view;
use crate::refusal::Refusal;
use crate::site::Site;

/// The pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// What loads do with a line in L1.
    pub loads: LoadPolicy,
    /// How much L2 fetches for a load.
    pub prefetch: Prefetch,
    /// What stores do with a line.
    pub stores: StorePolicy,
}

crate::options!(Cache: [];
    [loads: LoadPolicy = LoadPolicy::Own, "what loads do with a line";
     prefetch: Prefetch = Prefetch::Own, "how much the L2 cache fetches for a load";
     stores: StorePolicy = StorePolicy::Own, "what stores do with a line"]);

/// What a load does with its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadPolicy {
    /// As the kernel says.
    Own,
    /// `.L1::no_allocate`
    NoAllocate,
    /// `.L1::evict_first`
    EvictFirst,
    /// `.L1::evict_last`
    EvictLast,
    /// `.cs`: evicted first, in both caches.
    Streaming,
    /// `.cg`: the L2 cache alone.
    L2,
}

crate::words!(LoadPolicy: LoadPolicy::Own = "own", LoadPolicy::NoAllocate = "no-allocate",
    LoadPolicy::EvictFirst = "evict-first", LoadPolicy::EvictLast = "evict-last",
    LoadPolicy::Streaming = "streaming", LoadPolicy::L2 = "l2");

/// How much the L2 cache fetches for a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefetch {
    /// As the kernel says.
    Own,
    /// 64 bytes.
    Bytes64,
    /// 128 bytes, a line.
    Bytes128,
    /// 256 bytes, two lines.
    Bytes256,
}

crate::words!(Prefetch: Prefetch::Own = "own", Prefetch::Bytes64 = "64B", Prefetch::Bytes128 = "128B",
    Prefetch::Bytes256 = "256B");

/// What a store does with its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorePolicy {
    /// As the kernel says.
    Own,
    /// `.cs`: evicted first.
    Streaming,
    /// `.cg`: the L2 cache alone.
    L2,
    /// `.wt`: through the L2 cache.
    WriteThrough,
}

crate::words!(StorePolicy: StorePolicy::Own = "own", StorePolicy::Streaming = "streaming",
    StorePolicy::L2 = "l2", StorePolicy::WriteThrough = "write-through");

impl Pass for Cache {
    const NAME: &'static str = "cache";
    const ABOUT: &'static str =
        "tell the caches what to fetch for global loads, and what to do with the lines";

    fn work(&self) -> Work<Self> {
        Work::Ptx(annotate)
    }
}

/// The PTX version that brought eviction priorities and prefetch sizes.
const HINTS_SINCE: (u32, u32) = (7, 4);

fn annotate(pass: &Cache, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    let view = view(site.module, site.kernel)?;
    if pass.wants_hints() && site.module.header.version < HINTS_SINCE {
        return Err(Refusal::InTheWay(
            "its PTX is older than 7.4, which has no such hints",
        ));
    }
    let mut edits = Edits::new(site.module);
    let mut changed = 0;
    for data in view.body().insts.values() {
        let opcode = site.module.opcode(data);
        if let Some(text) = pass.rewritten(opcode)
            && fuel.burn()
        {
            edits.replace(data.opcode_span, text);
            changed += 1;
        }
    }
    match changed {
        0 if fuel.left() > 0 => Err(Refusal::NothingToDo(
            "global access whose caching is left open",
        )),
        _ => Ok(Rewritten::new(edits.apply()?)
            .note(format!("{} with hints", count(changed, "instruction")))),
    }
}

impl Cache {
    fn wants_hints(&self) -> bool {
        use LoadPolicy::{EvictFirst, EvictLast, NoAllocate};
        self.prefetch != Prefetch::Own || matches!(self.loads, NoAllocate | EvictFirst | EvictLast)
    }

    /// The opcode with what it is to say, if that is another one.
    fn rewritten(&self, opcode: &Opcode) -> Option<String> {
        if opcode.space != Some(Space::Global) || opcode.mods().any(is_spoken_for) {
            return None;
        }
        let mut mods: Vec<&str> = opcode.mods().collect();
        let behind =
            |mods: &[&str], name: &str| mods.iter().position(|m| *m == name).map(|at| at + 1);
        let (operator, priority, ahead) = match opcode.op {
            Some(Op::Ld) => (
                self.loads.operator(),
                self.loads.priority(),
                self.prefetch.text(),
            ),
            Some(Op::St) => (self.stores.operator(), None, None),
            _ => return None,
        };
        let space = behind(&mods, "global")?;
        // `.nc` stands between the operator and the hints.
        let hints = behind(&mods, "nc").unwrap_or(space);
        let added: Vec<&str> = priority.into_iter().chain(ahead).collect();
        mods.splice(hints..hints, added);
        mods.splice(space..space, operator);
        let word = opcode.text.split('.').next()?;
        let text = format!("{word}.{}", mods.join("."));
        let is_new = text != *opcode.text && Opcode::parse(&text).is_known();
        is_new.then_some(text)
    }
}

/// Does the access say itself what caches do, or is it no plain one?
fn is_spoken_for(modifier: &str) -> bool {
    const ORDERED: [&str; 8] = [
        "volatile", "relaxed", "acquire", "release", "mmio", "async", "bulk", "weak",
    ];
    const OPERATORS: [&str; 7] = ["ca", "cg", "cs", "lu", "cv", "wb", "wt"];
    ORDERED.contains(&modifier) || OPERATORS.contains(&modifier) || modifier.contains("::")
}

impl LoadPolicy {
    fn operator(self) -> Option<&'static str> {
        match self {
            LoadPolicy::Streaming => Some("cs"),
            LoadPolicy::L2 => Some("cg"),
            _ => None,
        }
    }

    fn priority(self) -> Option<&'static str> {
        match self {
            LoadPolicy::NoAllocate => Some("L1::no_allocate"),
            LoadPolicy::EvictFirst => Some("L1::evict_first"),
            LoadPolicy::EvictLast => Some("L1::evict_last"),
            _ => None,
        }
    }
}

impl Prefetch {
    fn text(self) -> Option<&'static str> {
        match self {
            Prefetch::Own => None,
            Prefetch::Bytes64 => Some("L2::64B"),
            Prefetch::Bytes128 => Some("L2::128B"),
            Prefetch::Bytes256 => Some("L2::256B"),
        }
    }
}

impl StorePolicy {
    fn operator(self) -> Option<&'static str> {
        match self {
            StorePolicy::Own => None,
            StorePolicy::Streaming => Some("cs"),
            StorePolicy::L2 => Some("cg"),
            StorePolicy::WriteThrough => Some("wt"),
        }
    }
}
