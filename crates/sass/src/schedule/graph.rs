//! What must stay in order within a block, and how far apart.
//!
//! * Registers of all files: read after write, write after read, write after write, with the distances that control
//!   fields keep ([`Kept`]); for what takes an unknown time, a typical one. Where general registers are to get other
//!   names afterwards, only what one value ([`General`]) is written and read by keeps its order; what writes R1 is
//!   passed by nothing then.
//! * Memory: a load and a store, or two stores, of global or local memory keep their order unless they surely
//!   touch different bytes: at different constants from one value of a register. Loads do not wait for loads.
//!   Accesses to shared memory all keep their order, because machine code does not tell which were volatile.
//!   Different spaces have nothing to do with each other. Constants do not change.
//! * Fences keep their order with all memory accesses and with each other: everything that touches memory in
//!   another way, or works on no register, or counts on a scoreboard that DEPBAR names, or of which nothing is known.
//!   NOP is one: ptxas writes it where `__syncwarp` stood and the warp is together anyway (sm_75 to sm_90, and behind
//!   what acquires), and other lanes may touch what the lane's own addresses keep apart.
//! * What threads of a warp do together (votes, shuffles, matrix products) keeps its order, fences included.
//! * Uniform registers belong to the warp: their readers and writers pass no fence, and nothing that parts the warp.
//! * What parts or joins threads of a warp (BSSY, BSYNC, BREAK, WARPSYNC …) is passed by nothing: what goes before it
//!   would be executed by fewer threads at a time.
//! * A transfer of control stays the last of its block.
//!
//! The prover has rules of its own (docs/checker.md); what it cannot prove is not written.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use warpwright_flow::{Function, Inst, Transfer, Value};

use crate::demote::general::{General, STACK};
use crate::function::{Code, value_of};
use crate::hazards::distance::Asked;
use crate::hazards::timing::{Timing, timings};
use crate::hazards::walk::{Dependence, Kind, Operand};
use crate::hazards::{self, Hidden, Kept, Order as UnitOrder, OrderKind, Orders, Unchecked};
use crate::inst::Instruction;
use crate::isa::decode;
use crate::roles::{File, Role, Span};

/// Two instructions that keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The later one, by its place in the block.
    pub to: u32,
    /// Cycles from issue to issue that are needed, or usual.
    pub cycles: u16,
}

/// The dependences of one block, by places in it.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    edges: Vec<SmallVec<[Edge; 4]>>,
    far: Vec<Far>,
    behind: Vec<u16>,
}

/// What an instruction has to do with memory that may be far away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Far {
    /// It loads from it.
    pub loads: bool,
    /// It reads what was loaded, and so waits for it.
    pub waits: bool,
}

impl Graph {
    /// What must come after the instruction at this place.
    pub fn successors(&self, node: usize) -> &[Edge] {
        &self.edges[node]
    }

    /// What the instruction at this place has to do with memory that may be far away.
    pub fn far(&self, node: usize) -> Far {
        self.far[node]
    }

    /// Cycles from the issue of the instruction at this place until whoever is behind the block has what it loads from
    /// far away; none where somebody in the block reads it.
    pub fn behind(&self, node: usize) -> u16 {
        self.behind[node]
    }

    /// The same dependences of the same instructions in another order that keeps them: the new n-th instruction is the
    /// old `order[n]`-th.
    pub fn in_order(&self, order: &[usize]) -> Graph {
        let places = places_in(order);
        let moved = |edge: &Edge| Edge {
            to: places[edge.to as usize] as u32,
            ..*edge
        };
        let edges = |&old: &usize| self.edges[old].iter().map(moved).collect();
        Graph {
            edges: order.iter().map(edges).collect(),
            far: order.iter().map(|&old| self.far[old]).collect(),
            behind: order.iter().map(|&old| self.behind[old]).collect(),
        }
    }

    /// Adds an instruction that must come after some others.
    #[cfg(test)]
    pub(super) fn add(&mut self, others: &[usize]) {
        let node = self.edges.len();
        self.edges.push(SmallVec::new());
        self.behind.push(0);
        self.far.push(Far {
            loads: false,
            waits: false,
        });
        for &other in others {
            self.edge(other, node, 1);
        }
    }

    fn edge(&mut self, from: usize, to: usize, cycles: u16) {
        let edges = &mut self.edges[from];
        match edges.iter_mut().find(|edge| edge.to == to as u32) {
            Some(edge) => edge.cycles = edge.cycles.max(cycles),
            None => edges.push(Edge {
                to: to as u32,
                cycles,
            }),
        }
    }
}

/// The new place of each instruction, where the new n-th one is the old `order[n]`-th.
pub(super) fn places_in(order: &[usize]) -> Vec<usize> {
    let mut places = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        places[old] = new;
    }
    places
}

/// What an instruction is to others besides its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// Nothing.
    Pure,
    /// A plain load.
    Load(Bytes),
    /// A plain store.
    Store(Bytes),
    /// Something that the threads of a warp do together, on registers alone.
    Together,
    /// All else.
    Fence,
}

impl Nature {
    /// Does it load from memory that may be far away?
    fn is_far_load(self) -> bool {
        matches!(self, Nature::Load(bytes) if bytes.space != Space::Shared)
    }
}

/// Which bytes an access touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes {
    space: Space,
    /// The registers of the address, general and uniform.
    base: [Option<(Value, u8)>; 2],
    offset: i32,
    bytes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Space {
    Global,
    Shared,
    Local,
    /// Memory that does not change while the kernel runs.
    Constant,
}

/// Operations whose results depend on their operands alone, by the beginning of the mnemonic up to the first dot.
/// Without those that pack and unpack predicates by a mask: the tables of roles do not name these predicates.
#[rustfmt::skip]
const PURE: &[&str] = &[
    "BMSK", "BREV", "DADD", "DFMA", "DMNMX", "DMUL", "DSETP", "F2F", "F2FP", "F2I", "FADD", "FCHK", "FFMA",
    "FLO", "FMNMX", "FMUL", "FRND", "FSEL", "FSET", "FSETP", "HADD2", "HFMA2", "HMNMX2", "HMUL2", "HSET2",
    "HSETP2", "I2F", "I2FP", "I2I", "IABS", "IADD", "IADD3", "IDP", "IMAD", "IMNMX", "IMUL", "ISETP", "LDC",
    "LEA", "LOP3", "MOV", "MUFU", "PLOP3", "POPC", "PRMT", "SEL", "SGXT", "SHF", "UBMSK",
    "UBREV", "UFLO", "UIADD3", "UIMAD", "UISETP", "ULDC", "ULEA", "ULOP3", "UMOV", "UPLOP3",
    "UPOPC", "UPRMT", "USEL", "USGXT", "USHF", "VABSDIFF", "VABSDIFF4", "VIADD", "VIADDMNMX", "VIMNMX",
];

/// Operations on registers that the threads of a warp do together.
const TOGETHER: &[&str] = &[
    "BMMA", "DMMA", "HMMA", "IMMA", "MATCH", "MOVM", "R2UR", "REDUX", "SHFL", "VOTE", "VOTEU",
];

/// Special registers that do not change while the thread runs: lane, thread and block index, warp masks, window of
/// shared memory.
const FIXED: &[u32] = &[
    0x00, 0x20, 0x21, 0x22, 0x23, 0x25, 0x26, 0x27, 0x2f, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x88,
];

/// The guard's field.
const GUARD: u128 = 0xf << 12;
/// Order, scope and privacy of an access to global memory (bits 77 to 80): so they stand in plain accesses.
const ORDER: (u32, u128) = (77, 0xf);
const WEAK: u128 = 0;
const CONSTANT: u128 = 4;
/// The first architecture where they do.
const ORDERED_SINCE: u32 = 80;
/// A global address is a pair of registers plus a constant, and the uniform registers describe the memory alone; else
/// they belong to the address.
const PLAIN_ADDRESS: u128 = 1 << 72 | 1 << 76;
/// A local address is a register plus a constant: no scale, no uniform register.
const OTHER_ADDRESS: u128 = 3 << 78 | 1 << 91;

/// What is known of the instructions of a function.
pub struct Analysis {
    timings: Vec<Timing>,
    natures: Vec<Nature>,
    distances: &'static Kept,
    asked: Asked<Option<u16>>,
    orders: &'static Orders,
    /// Registers that a load from far away fills, somewhere in the function.
    loaded: FxHashSet<Value>,
}

impl Analysis {
    /// Looks at all of them.
    ///
    /// # Errors
    /// Something is not known well enough.
    pub fn new(code: &Code) -> Result<Analysis, Unchecked> {
        let sm = code.instructions().first().map_or(0, |inst| inst.sm());
        let hidden = hazards::hidden(code)?;
        let natures = hidden.iter().enumerate();
        let natures: Vec<Nature> = natures
            .map(|(at, hidden)| nature(code, Inst(at as u32), *hidden))
            .collect();
        let loads = natures
            .iter()
            .zip(0..)
            .filter(|(nature, _)| nature.is_far_load());
        Ok(Analysis {
            timings: timings(code)?,
            loaded: loads
                .flat_map(|(_, at)| code.roles(Inst(at)).spans())
                .filter(|span| span.role == Role::Def)
                .flat_map(|span| span.registers().filter_map(|n| value_of(span.file, n)))
                .collect(),
            natures,
            asked: Asked::default(),
            distances: Kept::for_sm(sm).ok_or(Unchecked::Architecture(sm))?,
            orders: Orders::for_sm(sm).ok_or(Unchecked::Architecture(sm))?,
        })
    }

    /// What an instruction is to others.
    pub fn nature(&self, inst: Inst) -> Nature {
        self.natures[inst.0 as usize]
    }

    /// Does it part or join the threads of a warp?
    fn is_wall(&self, inst: Inst) -> bool {
        matches!(self.timings[inst.0 as usize].unit.name, "control" | "bmov")
    }

    /// The dependences among the instructions of a block, given in their order; with general registers that are to get
    /// other names, those of their values.
    pub fn graph(&self, code: &Code, block: &[Inst], renamed: Option<&General<'_>>) -> Graph {
        let mut graph = Graph {
            edges: vec![SmallVec::new(); block.len()],
            far: Vec::with_capacity(block.len()),
            behind: Vec::with_capacity(block.len()),
        };
        let mut registers = Registers::new(renamed);
        let mut order = Order::default();
        // The first instruction behind the last wall.
        let mut behind = 0;
        for (node, &inst) in block.iter().enumerate() {
            if self.is_wall(inst) || renamed.is_some() && writes_stack(code, inst) {
                for before in behind..node {
                    graph.edge(before, node, 1);
                }
                behind = node + 1;
            } else if behind > 0 {
                graph.edge(behind - 1, node, 1);
            }
            let far = self.far(code, &registers, inst);
            let result = self.timings[inst.0 as usize].unit.result_cycles;
            graph.behind.push(if far.loads { result } else { 0 });
            graph.far.push(far);
            // What it reads is from before what it writes.
            self.order(code, &mut graph, &mut order, &registers, node, inst);
            self.registers(code, &mut graph, &mut registers, node, inst);
        }
        // What ends the block stays at its end.
        if let Some((last, &inst)) = block.iter().enumerate().next_back()
            && code.transfer(inst) != Transfer::Next
        {
            for node in 0..last {
                graph.edge(node, last, 1);
            }
        }
        graph
    }

    fn far(&self, code: &Code, registers: &Registers<'_>, inst: Inst) -> Far {
        let is_loaded = |named: &Named| match registers.defs.get(&named.key) {
            Some(defs) => defs.iter().any(|def| self.nature(def.1).is_far_load()),
            None => self.loaded.contains(&named.register),
        };
        let mut uses = code.roles(inst).uses();
        Far {
            loads: self.nature(inst).is_far_load(),
            waits: uses.any(|span| registers.named(inst, span).iter().any(is_loaded)),
        }
    }

    fn registers(
        &self,
        code: &Code,
        graph: &mut Graph,
        registers: &mut Registers<'_>,
        node: usize,
        inst: Inst,
    ) {
        let timing = self.timings[inst.0 as usize];
        let spans = code.roles(inst).spans().iter();
        let is_certain = !code.is_predicated(inst);
        let operand = |inst, span, timing| Operand { inst, span, timing };
        for &span in spans.clone() {
            for Named { key, register } in registers.named(inst, span) {
                let used = registers.uses.get(&key);
                let used = used.filter(|_| span.role == Role::Def);
                let known = registers.defs.get(&key).into_iter().chain(used);
                for &(earlier, earlier_inst, earlier_span) in known.flatten() {
                    let kind = match (earlier_span.role, span.role) {
                        (Role::Use, _) => Kind::War,
                        (Role::Def, Role::Use) => Kind::Raw,
                        (Role::Def, Role::Def) => Kind::Waw,
                    };
                    if earlier == node {
                        continue;
                    }
                    let before = self.timings[earlier_inst.0 as usize];
                    let dependence = Dependence {
                        kind,
                        earlier: operand(earlier_inst, earlier_span, before),
                        later: operand(inst, span, timing),
                        value: register,
                        cycles: 0,
                        waitless: None,
                        scoreboards: 0,
                        order: None,
                    };
                    if kind == Kind::Raw {
                        graph.behind[earlier] = 0;
                    }
                    graph.edge(earlier, node, self.cycles(&dependence));
                }
            }
        }
        for &span in spans {
            for Named { key, register } in registers.named(inst, span) {
                if span.role == Role::Use {
                    registers
                        .uses
                        .entry(key)
                        .or_default()
                        .push((node, inst, span));
                    continue;
                }
                let defs = registers.defs.entry(key).or_default();
                if is_certain {
                    defs.retain(|access| access.0 == node);
                    if let Some(uses) = registers.uses.get_mut(&key) {
                        uses.retain(|access| access.0 == node);
                    }
                }
                defs.push((node, inst, span));
                registers.versions.insert(register, node as u32 + 1);
            }
        }
    }

    fn cycles(&self, dependence: &Dependence) -> u16 {
        let earlier = dependence.earlier;
        if dependence.is_in_order() && dependence.kind != Kind::Raw {
            return 1;
        }
        if earlier.timing.is_late(earlier.span) {
            let unit = earlier.timing.unit;
            let typical = match earlier.span.role {
                Role::Def => unit.result_cycles,
                Role::Use => unit.source_cycles,
            };
            return match self.unit_keeps(dependence) {
                true => 1,
                false => typical.max(2),
            };
        }
        let kept = || self.distances.cycles(dependence);
        self.asked.answer(dependence, kept).unwrap_or(1)
    }

    /// Does one unit keep the two in order, so that nobody waits?
    fn unit_keeps(&self, dependence: &Dependence) -> bool {
        let [earlier, later] = [dependence.earlier.timing, dependence.later.timing];
        let (kind, role) = match dependence.kind {
            Kind::Raw => return false,
            Kind::War => (OrderKind::War, Role::Use),
            Kind::Waw => (OrderKind::Waw, Role::Def),
        };
        let queue = earlier.queue(role);
        let order = UnitOrder {
            kind,
            earlier: earlier.operation,
            later: later.operation,
        };
        queue.is_some() && queue == later.queue(role) && self.orders.needed(order).is_some()
    }

    fn order(
        &self,
        code: &Code,
        graph: &mut Graph,
        order: &mut Order,
        registers: &Registers<'_>,
        node: usize,
        inst: Inst,
    ) {
        let uniform = |span: &Span| matches!(span.file, File::Uniform | File::UniformPred);
        let is_uniform = code.roles(inst).spans().iter().any(uniform);
        let nature = self.nature(inst);
        if nature == Nature::Fence {
            for &other in &order.uniform {
                graph.edge(other, node, 1);
            }
            order.uniform.clear();
            if let Some(parting) = order.parting.replace(node) {
                graph.edge(parting, node, 1);
            }
        } else if is_uniform {
            if let Some(parting) = order.parting {
                graph.edge(parting, node, 1);
            }
            order.uniform.push(node);
        }
        match nature {
            Nature::Pure => {}
            Nature::Together => order.together(graph, node),
            Nature::Load(bytes) | Nature::Store(bytes) if bytes.space == Space::Shared => {
                order.after_fence(graph, node);
                if let Some(before) = order.shared.replace(node) {
                    graph.edge(before, node, 1);
                }
            }
            Nature::Load(bytes) => {
                let access = (node, bytes, registers.version(bytes));
                order.after_fence(graph, node);
                for store in order
                    .stores
                    .iter()
                    .filter(|store| may_touch(**store, access))
                {
                    graph.edge(store.0, node, 1);
                }
                order.loads.push(access);
            }
            Nature::Store(bytes) => {
                let access = (node, bytes, registers.version(bytes));
                order.after_fence(graph, node);
                let others = order.stores.iter().chain(&order.loads);
                for other in others.filter(|other| may_touch(**other, access)) {
                    graph.edge(other.0, node, 1);
                }
                order.stores.push(access);
            }
            Nature::Fence => order.fence(graph, node),
        }
        if order.loads.len() + order.stores.len() > REACH {
            order.fence(graph, node);
        }
    }
}

/// So many accesses are compared with each other; then one of them becomes a fence.
const REACH: usize = 48;

type Version = [u32; 2];
type Known = (usize, Bytes, Version);

/// Where a value is touched: the place in the block, the instruction, the operand.
type Accesses = SmallVec<[(usize, Inst, Span); 4]>;

/// What keeps accesses of a register in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// The register itself.
    Register(Value),
    /// The value in it, which may come to lie elsewhere.
    Value(Value),
}

/// A register, and what stands for it.
#[derive(Debug, Clone, Copy)]
struct Named {
    key: Key,
    register: Value,
}

struct Registers<'g> {
    /// Where general registers are to get other names: their values.
    renamed: Option<&'g General<'g>>,
    /// The definitions since the last certain one, and that one.
    defs: FxHashMap<Key, Accesses>,
    /// The uses since then.
    uses: FxHashMap<Key, Accesses>,
    /// The place behind the last definition of a register.
    versions: FxHashMap<Value, u32>,
}

impl<'g> Registers<'g> {
    fn new(renamed: Option<&'g General<'g>>) -> Registers<'g> {
        Registers {
            renamed,
            defs: FxHashMap::default(),
            uses: FxHashMap::default(),
            versions: FxHashMap::default(),
        }
    }

    /// The registers of an operand.
    fn named(&self, inst: Inst, span: Span) -> SmallVec<[Named; 4]> {
        let values = self.renamed.map(|general| general.values(inst, span));
        let values = values.unwrap_or_default();
        let named = |(at, number): (usize, u16)| {
            let register = value_of(span.file, number)?;
            let value = values.get(at).filter(|_| number != STACK);
            let key = value.map_or(Key::Register(register), |&value| Key::Value(value));
            Some(Named { key, register })
        };
        span.registers().enumerate().filter_map(named).collect()
    }

    /// Which values the registers of an address have now: two accesses with the same have the same.
    fn version(&self, bytes: Bytes) -> Version {
        bytes.base.map(|base| {
            let Some((first, count)) = base else { return 0 };
            let all = (0..u32::from(count)).map(|n| Value(first.0 + n));
            all.filter_map(|value| self.versions.get(&value).copied())
                .max()
                .unwrap_or(0)
        })
    }
}

#[derive(Default)]
struct Order {
    fence: Option<usize>,
    together: Option<usize>,
    parting: Option<usize>,
    uniform: Vec<usize>,
    shared: Option<usize>,
    loads: Vec<Known>,
    stores: Vec<Known>,
}

impl Order {
    fn after_fence(&self, graph: &mut Graph, node: usize) {
        if let Some(fence) = self.fence {
            graph.edge(fence, node, 1);
        }
    }

    fn together(&mut self, graph: &mut Graph, node: usize) {
        if let Some(before) = self.together.replace(node) {
            graph.edge(before, node, 1);
        }
        self.after_fence(graph, node);
    }

    fn fence(&mut self, graph: &mut Graph, node: usize) {
        self.together(graph, node);
        if let Some(shared) = self.shared.take() {
            graph.edge(shared, node, 1);
        }
        for (other, ..) in self.loads.drain(..).chain(self.stores.drain(..)) {
            if other != node {
                graph.edge(other, node, 1);
            }
        }
        self.fence = Some(node);
    }
}

/// Could two accesses touch the same byte?
fn may_touch(a: Known, b: Known) -> bool {
    let ((_, first, one), (_, second, other)) = (a, b);
    let same_base = first.base == second.base && one == other;
    let end = |bytes: Bytes| i64::from(bytes.offset) + i64::from(bytes.bytes);
    let apart = end(first) <= i64::from(second.offset) || end(second) <= i64::from(first.offset);
    first.space == second.space && !(same_base && apart)
}

fn nature(code: &Code, inst: Inst, hidden: Hidden) -> Nature {
    let bits = code.instructions()[inst.0 as usize];
    if hidden.tokens != 0 || hidden.counted != 0 || hidden.synchronizes {
        return Nature::Fence;
    }
    if code.transfer(inst) != Transfer::Next || is_never(bits) || code.roles(inst).is_rare() {
        return Nature::Fence;
    }
    match operation(bits) {
        _ if is_pure(bits) => Nature::Pure,
        name @ ("LDG" | "LDS" | "LDL" | "STG" | "STS" | "STL") => {
            access(code, inst, bits, name).unwrap_or(Nature::Fence)
        }
        name if TOGETHER.contains(&name) => Nature::Together,
        _ => Nature::Fence,
    }
}

/// The beginning of the mnemonic up to the first dot.
fn operation(inst: Instruction) -> &'static str {
    let mnemonic = decode(inst).mnemonic();
    mnemonic.split('.').next().unwrap_or_default()
}

/// Do the results depend on the operands alone?
pub fn is_pure(inst: Instruction) -> bool {
    let special = (inst.bits() >> 72) as u32 & 0xff;
    match operation(inst) {
        "CS2R" if special == 0xff => true,
        "S2R" | "S2UR" | "CS2R" => FIXED.contains(&special),
        name => PURE.contains(&name),
    }
}

/// Does it write R1?
fn writes_stack(code: &Code, inst: Inst) -> bool {
    let mut defs = code.roles(inst).defs();
    defs.any(|span| span.file == File::Gpr && span.registers().contains(&STACK))
}

/// Is it executed by no thread?
fn is_never(inst: Instruction) -> bool {
    inst.bits() & GUARD == GUARD
}

fn access(code: &Code, inst: Inst, bits: Instruction, name: &str) -> Option<Nature> {
    let is_store = name.starts_with("ST");
    let space = match &name[2..] {
        "G" => Space::Global,
        "S" => Space::Shared,
        _ => Space::Local,
    };
    let order = bits.bits() >> ORDER.0 & ORDER.1;
    let is_plain = match space {
        Space::Global => bits.sm() >= ORDERED_SINCE && bits.bits() & PLAIN_ADDRESS == PLAIN_ADDRESS,
        Space::Local => bits.bits() & OTHER_ADDRESS == 0,
        Space::Shared | Space::Constant => true,
    };
    if !is_plain {
        return None;
    }
    let space = match (space, order) {
        (Space::Global, WEAK) => Space::Global,
        (Space::Global, CONSTANT) if !is_store => Space::Constant,
        (Space::Global, _) => return None,
        (space, _) => space,
    };
    let mut base = [None; 2];
    for span in code.roles(inst).uses() {
        let place = match (span.file, span.bit) {
            (_, 12) | (File::Pred, _) => continue,
            (File::Gpr, 32) if is_store => continue,
            (File::Gpr, _) => 0,
            (File::Uniform, _) => 1,
            _ => return None,
        };
        let first = value_of(span.file, span.first)?;
        if base[place].replace((first, span.count as u8)).is_some() {
            return None;
        }
    }
    let offset = ((bits.bits() >> 40) as u32 & 0xff_ffff) << 8;
    let touched = Bytes {
        space,
        base,
        offset: offset as i32 >> 8,
        bytes: bits.access_bytes(),
    };
    Some(match is_store {
        true => Nature::Store(touched),
        false => Nature::Load(touched),
    })
}
