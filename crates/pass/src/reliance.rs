//! What a kernel relies on that its code does not show: the registers that it is launched with, and how many of its
//! blocks reside at once.
//!
//! | what the kernel does | other registers at launch | fewer resident blocks | more |
//! |---|---|---|---|
//! | moves registers between its warps (`setmaxnreg`) | never: `.inc` waits for what the pool does not hold | fine | fine |
//! | waits for other blocks: a grid's barrier, a cluster's, a flag or lock that is polled | fine | never: who is waited for may not have begun | fine |
//! | else | fine | fine | fine |
//!
//! More resident blocks are no harm: a block that waits finds those that it waits for, or a launch that asks for all of
//! them at once (cooperative, a cluster) finds more room than before.
//!
//! Blocks that do not wait run in any order, one after the other if need be (CUDA C++ programming guide, thread
//! hierarchy). Waiting takes a loop, and in it something that sees what another block stores while both run: an atomic
//! operation that returns something, a `volatile`, `relaxed`, `acquire` or uncached load, or a plain one beside a fence or
//! a pause. Cooperative groups find the grid's barrier through `%envreg`. Barriers of a block and atomics in shared memory
//! are its own affair. PTX ISA: `setmaxnreg`, `griddepcontrol`, `barrier.cluster`, memory consistency model.

use std::collections::BTreeSet;
use std::fmt;

use warpwright_flow::{Block, Cfg, Function as _, Inst, Transfer};
use warpwright_ptx::opcode::{Control, LatencyClass, Op, Opcode};
use warpwright_ptx::{DirectiveKind, FuncId, Function, Module, Operand, Space, SpecialReg, Symbol};
use warpwright_sass::elf::info::Attribute;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::{Elf, ElfError, Instruction, Kernel, Operation, isa};
use warpwright_target::{Resources, occupancy};

use crate::artifact::Artifact;
use crate::refusal::Refusal;
use crate::site::Setting;

/// How a block may come to wait for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// The grid's barrier of cooperative groups.
    Grid,
    /// Blocks of a cluster reside together.
    Cluster,
    /// It waits for the grid before it, or is waited for (`griddepcontrol`).
    Dependency,
    /// A loop reads memory that other blocks may write meanwhile.
    Memory,
    /// A loop pauses (`nanosleep`).
    Pause,
    /// It calls what is not to be seen.
    Call,
    /// It has instructions that are not known.
    Unknown,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wait::Grid => "a barrier of the grid",
            Wait::Cluster => "a cluster",
            Wait::Dependency => "griddepcontrol",
            Wait::Memory => "a loop that reads what other blocks may write",
            Wait::Pause => "a loop with nanosleep",
            Wait::Call => "a call of code that is not seen",
            Wait::Unknown => "an instruction that is not known",
        })
    }
}

/// What a kernel relies on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reliance {
    /// The registers that it is launched with are those that its warps share out (`setmaxnreg`).
    pub moves_registers: bool,
    /// Its blocks may wait for each other.
    pub waits: Option<Wait>,
}

/// What a pass does to the launches of a kernel, whatever its instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Footprint {
    /// Nothing by itself: registers and shared memory follow from the instructions.
    Instructions,
    /// It says how many registers a thread has, or how ptxas shares them out.
    Registers,
    /// It keeps blocks out.
    FewerBlocks,
}

/// What a launch of a build takes for each block and thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Takes {
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory in bytes per block.
    pub shared_bytes: u32,
    /// Blocks that reside on an SM, where the block is known.
    pub blocks: Option<u32>,
}

impl Takes {
    /// Of a kernel of a cubin.
    pub fn of(kernel: &Kernel, setting: &Setting) -> Takes {
        let reserved = setting.gpu.arch.first_shared_address();
        let shared_bytes = kernel.shared_bytes.saturating_sub(reserved);
        let need = Resources {
            static_smem: shared_bytes,
            dynamic_smem: setting.dynamic(),
            ..Resources::new(kernel.registers, setting.block.threads())
        };
        let found = occupancy(setting.gpu, &need).ok();
        Takes {
            registers: kernel.registers,
            shared_bytes,
            blocks: found.map(|o| o.blocks).filter(|_| setting.block.is_given()),
        }
    }
}

impl Reliance {
    /// Of a kernel of PTX.
    pub fn of_ptx(module: &Module, kernel: FuncId) -> Reliance {
        let function = &module.functions[kernel];
        let reached = reached(module, kernel);
        let moves = |id: &FuncId| has(module, *id, |opcode| opcode.op == Some(Op::Setmaxnreg));
        Reliance {
            moves_registers: reached.iter().any(moves),
            waits: directive(function).or_else(|| waits(module, kernel, &reached)),
        }
    }

    /// Of a kernel of a cubin, with what stands in its section behind it.
    ///
    /// # Errors
    /// The cubin has no such kernel, or is damaged.
    pub fn of_machine_code(elf: &Elf, kernel: &str) -> Result<Reliance, ElfError> {
        const CLUSTERS: [Attribute; 4] = [
            Attribute::CTA_PER_CLUSTER,
            Attribute::EXPLICIT_CLUSTER,
            Attribute::MAX_CLUSTER_RANK,
            Attribute::BLOCKS_ARE_CLUSTERS,
        ];
        let sections = elf.kernel(kernel)?;
        let code = elf.instructions(&sections)?;
        let info = elf.info_of(&sections)?;
        let says =
            |wanted: &[Attribute]| info.records.iter().any(|r| wanted.contains(&r.attribute));
        let seen = Code::new(elf, &sections, Calls::Followed).ok();
        let ends = |at: usize| {
            let transfer = seen.as_ref().map(|seen| seen.transfer(Inst(at as u32)));
            transfer == Some(Transfer::Trap)
        };
        let code = MachineCode::new(&code, &ends);
        Ok(Reliance {
            moves_registers: says(&[Attribute::REG_RECONFIG]) || code.moves_registers(),
            waits: says(&CLUSTERS)
                .then_some(Wait::Cluster)
                .or_else(|| code.waits()),
        })
    }

    /// Of a kernel in whatever it comes; nothing of CUDA C, whose kernels are looked at once compiled.
    pub fn of(artifact: &Artifact, kernel: &str) -> Reliance {
        if let Some(module) = artifact.as_module() {
            let own = module.function(kernel);
            return own.map_or_else(Reliance::default, |id| Reliance::of_ptx(module, id));
        }
        let cubin = artifact.as_cubin();
        cubin
            .and_then(|cubin| Reliance::of_machine_code(cubin.elf(), kernel).ok())
            .unwrap_or_default()
    }

    /// Does it rely on anything?
    pub fn is_nothing(self) -> bool {
        self == Reliance::default()
    }

    /// May a pass be applied that does this to its launches?
    ///
    /// # Errors
    /// [`Refusal::MovesRegisters`], [`Refusal::MayWait`].
    pub fn permits(self, footprint: Footprint) -> Result<(), Refusal> {
        match (footprint, self.waits) {
            (Footprint::Instructions, _) => Ok(()),
            _ if self.moves_registers => Err(Refusal::MovesRegisters),
            (Footprint::FewerBlocks, Some(wait)) => Err(Refusal::MayWait(wait)),
            _ => Ok(()),
        }
    }

    /// May a build stand in the original's place? Where the block is not known, fewer blocks reside as soon as one
    /// takes more of anything.
    ///
    /// # Errors
    /// [`Refusal::MovesRegisters`], [`Refusal::MayWait`].
    pub fn keeps(self, original: Takes, build: Takes) -> Result<(), Refusal> {
        if self.moves_registers && original.registers != build.registers {
            return Err(Refusal::MovesRegisters);
        }
        let is_fewer = match (original.blocks, build.blocks) {
            (Some(original), Some(build)) => build < original,
            _ => build.registers > original.registers || build.shared_bytes > original.shared_bytes,
        };
        match self.waits.filter(|_| is_fewer) {
            Some(wait) => Err(Refusal::MayWait(wait)),
            None => Ok(()),
        }
    }
}

/// The kernel and the functions with a body that it names, and those name in turn.
pub(crate) fn reached(module: &Module, kernel: FuncId) -> BTreeSet<FuncId> {
    let mut found = BTreeSet::from([kernel]);
    let mut work = vec![kernel];
    while let Some(id) = work.pop() {
        let named = operands(module, id).filter_map(function_of);
        let new = named.filter(|&id| module.functions[id].body.is_some());
        let new: Vec<FuncId> = new.filter(|&id| found.insert(id)).collect();
        work.extend(new);
    }
    found
}

fn operands(module: &Module, id: FuncId) -> impl Iterator<Item = &Operand> {
    let body = module.functions[id].body.iter();
    body.flat_map(|body| body.operands.values())
}

fn function_of(operand: &Operand) -> Option<FuncId> {
    match operand {
        Operand::Symbol {
            symbol: Symbol::Func(id),
            ..
        } => Some(*id),
        _ => None,
    }
}

fn has(module: &Module, id: FuncId, is_wanted: impl Fn(&Opcode) -> bool) -> bool {
    let mut insts = module.functions[id]
        .body
        .iter()
        .flat_map(|body| body.insts.values());
    insts.any(|inst| is_wanted(module.opcode(inst)))
}

/// What the kernel's own directives say.
fn directive(function: &Function) -> Option<Wait> {
    let mut directives = function.directives.iter();
    let is_cluster = directives.any(|directive| {
        matches!(
            directive.kind,
            DirectiveKind::ReqNctaPerCluster(_)
                | DirectiveKind::ExplicitCluster
                | DirectiveKind::MaxClusterRank(_)
        )
    });
    is_cluster.then_some(Wait::Cluster)
}

/// How a block may wait, in the kernel or in what it calls; a call may stand in a loop, so all of that counts as one.
fn waits(module: &Module, kernel: FuncId, reached: &BTreeSet<FuncId>) -> Option<Wait> {
    let Some(view) = module.view(kernel) else {
        return Some(Wait::Unknown);
    };
    let cfg = Cfg::new(&view);
    let all = reached.iter().flat_map(|&id| {
        let body = module.functions[id].body.iter();
        let insts = body.flat_map(|body| body.insts.iter());
        insts.map(move |(inst, of)| (id, inst, module.opcode(of)))
    });
    let mut found = reached
        .iter()
        .any(|&id| names_the_grid(module, id))
        .then_some(Wait::Grid);
    found = found.or_else(|| calls_unseen(module, reached));
    for (id, inst, opcode) in all {
        let wait = match heard(opcode) {
            None => continue,
            Some((wait, Where::Anywhere)) => wait,
            Some((wait, Where::InALoop)) => {
                let inst = Inst(inst.as_u32());
                if id == kernel && !is_repeated(&cfg, cfg.block_of(inst)) {
                    continue;
                }
                wait
            }
        };
        found = Some(found.map_or(wait, |known| known.min(wait)));
    }
    found
}

fn names_the_grid(module: &Module, id: FuncId) -> bool {
    operands(module, id).any(|operand| {
        matches!(
            operand,
            Operand::Special {
                reg: SpecialReg::EnvReg(_),
                ..
            }
        )
    })
}

/// Calls of what has no body here. These wait for no other block: a lock of the heap is held by a thread that runs.
fn calls_unseen(module: &Module, reached: &BTreeSet<FuncId>) -> Option<Wait> {
    const KNOWN: [&str; 4] = ["vprintf", "__assertfail", "malloc", "free"];
    let is_unseen = |id: FuncId| {
        let function = &module.functions[id];
        function.body.is_none() && !KNOWN.contains(&&*function.name)
    };
    let is_indirect = |id: FuncId| {
        let body = module.functions[id].body.iter();
        let mut insts = body.flat_map(|body| body.insts.values());
        insts.any(|inst| {
            let calls = module.opcode(inst).control() == Control::Call;
            let Some(body) = &module.functions[id].body else {
                return calls;
            };
            let mut named = body.list(inst.operands).iter().filter_map(function_of);
            calls && named.next().is_none()
        })
    };
    let unseen = reached
        .iter()
        .any(|&id| is_indirect(id) || operands(module, id).filter_map(function_of).any(is_unseen));
    unseen.then_some(Wait::Call)
}

/// Where an instruction must stand to be part of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Anywhere,
    InALoop,
}

/// Is it part of waiting for another block, as far as we know?
fn heard(opcode: &Opcode) -> Option<(Wait, Where)> {
    const UNCACHED: [&str; 2] = ["cv", "cg"];
    let is_own = opcode.space == Some(Space::Shared) && !opcode.has_mod("shared::cluster");
    let effect = opcode.effect();
    let listens = match opcode.op {
        None => return Some((Wait::Unknown, Where::Anywhere)),
        _ if !opcode.is_known() => return Some((Wait::Unknown, Where::Anywhere)),
        Some(Op::Griddepcontrol) => return Some((Wait::Dependency, Where::Anywhere)),
        Some(Op::Clusterlaunchcontrol | Op::Multimem | Op::Fabric) => {
            return Some((Wait::Memory, Where::Anywhere));
        }
        Some(Op::Nanosleep) => return Some((Wait::Pause, Where::InALoop)),
        Some(Op::Membar | Op::Fence | Op::Suld) => return Some((Wait::Memory, Where::InALoop)),
        Some(Op::Bar | Op::Barrier) => {
            let is_cluster = opcode.has_mod("cluster");
            return is_cluster.then_some((Wait::Cluster, Where::Anywhere));
        }
        // It tells others something and hears nothing, or waits for copies that its own block began.
        Some(Op::Red | Op::St | Op::Cp) => false,
        Some(Op::Ld) => effect.strong || UNCACHED.iter().any(|word| opcode.has_mod(word)),
        Some(_) => {
            effect.strong || effect.acquire || opcode.latency_class() == LatencyClass::Atomic
        }
    };
    (listens && !is_own).then_some((Wait::Memory, Where::InALoop))
}

/// Can control come back to the block?
fn is_repeated(cfg: &Cfg, block: Block) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = cfg.succs(block).to_vec();
    while let Some(next) = work.pop() {
        if next == block {
            return true;
        }
        if seen.insert(next) {
            work.extend_from_slice(cfg.succs(next));
        }
    }
    false
}

/// The instructions of a section with the stretches that branches lead back over: every way round lies in some.
struct MachineCode<'a> {
    code: &'a [Instruction],
    /// Calls from which no thread comes back.
    ends: &'a dyn Fn(usize) -> bool,
    back: Vec<(usize, usize)>,
    is_followed: bool,
}

impl<'a> MachineCode<'a> {
    fn new(code: &'a [Instruction], ends: &'a dyn Fn(usize) -> bool) -> Self {
        use warpwright_sass::branch::CodeOperand;
        const BYTES: i64 = 16;
        let mut back = Vec::new();
        let mut is_followed = true;
        for (at, inst) in code.iter().enumerate() {
            match inst.code_operand() {
                CodeOperand::None => {}
                // It asks where it is, and goes nowhere.
                CodeOperand::Indirect(_) if inst.operation() == Operation::LEPC => {}
                CodeOperand::Relative(distance) => {
                    let to = at as i64 + 1 + distance / BYTES;
                    let to = usize::try_from(to).unwrap_or(0);
                    // A branch to itself fills the end of a section.
                    back.extend((to < at).then_some((to, at)));
                }
                CodeOperand::Table(_) | CodeOperand::Indirect(_) => is_followed = false,
            }
        }
        // What a call reaches may be in a loop of the caller.
        let mut calls = code.iter().enumerate().filter(|(_, inst)| inst.is_call());
        is_followed &= calls.all(|(at, _)| ends(at));
        MachineCode {
            code,
            ends,
            back,
            is_followed,
        }
    }

    fn moves_registers(&self) -> bool {
        let mut code = self.code.iter();
        code.any(|&inst| isa::decode(inst).mnemonic() == "USETMAXREG")
    }

    fn is_repeated(&self, at: usize) -> bool {
        let mut back = self.back.iter();
        !self.is_followed || back.any(|&(from, to)| (from..=to).contains(&at))
    }

    fn waits(&self) -> Option<Wait> {
        let each = self.code.iter().enumerate();
        let found = each
            .filter(|&(at, _)| !(self.ends)(at))
            .filter_map(|(at, &inst)| match machine_heard(inst)? {
                (wait, Where::Anywhere) => Some(wait),
                (wait, Where::InALoop) => self.is_repeated(at).then_some(wait),
            });
        found.min()
    }
}

/// The same of a machine instruction. A `.SM` is the block's own scope.
fn machine_heard(inst: Instruction) -> Option<(Wait, Where)> {
    let decoded = isa::decode(inst);
    if decoded.is_opaque() {
        return Some((Wait::Unknown, Where::Anywhere));
    }
    let modifiers = decoded.modifiers();
    let mut words = modifiers.split('.');
    let mut has = |wanted: &[&str]| words.any(|word| wanted.contains(&word));
    match decoded.mnemonic() {
        // Within its section a call is followed.
        "CALL" => {
            (inst.operation() == Operation::CALL_ABS).then_some((Wait::Call, Where::Anywhere))
        }
        "UCGABAR_ARV" | "UCGABAR_WAIT" => Some((Wait::Cluster, Where::Anywhere)),
        "ACQBULK" | "PREEXIT" => Some((Wait::Dependency, Where::Anywhere)),
        "NANOSLEEP" => Some((Wait::Pause, Where::InALoop)),
        "SULD" | "SUATOM" => Some((Wait::Memory, Where::InALoop)),
        "LD" | "LDG" => has(&["STRONG"])
            .then(|| modifiers.ends_with(".SM") || modifiers.contains(".SM."))
            .filter(|is_own| !is_own)
            .map(|_| (Wait::Memory, Where::InALoop)),
        "ATOM" | "ATOMG" => Some((Wait::Memory, Where::InALoop)),
        "MEMBAR" => has(&["GPU", "SYS", "VC"]).then_some((Wait::Memory, Where::InALoop)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reliance(directives: &str, body: &str) -> Reliance {
        let text = format!(
            ".version 8.5\n.target sm_90a\n.address_size 64\n.func f() {{ ret; }}\n.extern .func g;\n\
             .func h() {{ .reg .b64 %d; .reg .b32 %r; ld.volatile.global.u32 %r, [%d]; ret; }}\n\
             .visible .entry k() {directives}\n{{\n\
             .shared .b32 s[64];\n.reg .b32 %r<4>;\n.reg .b64 %d<3>;\n.reg .f32 %f<3>;\n.reg .pred %p<2>;\n{body}\nret;\n}}\n"
        );
        let (module, diagnostics) = Module::parse("k.ptx", &text);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let kernel = module.function("k").unwrap();
        Reliance::of_ptx(&module, kernel)
    }

    fn in_a_loop(body: &str) -> Option<Wait> {
        reliance("", &format!("LOOP:\n{body}\n@%p0 bra LOOP;")).waits
    }

    #[test]
    fn what_other_blocks_store_is_heard_in_a_loop() {
        for body in [
            "atom.global.add.u32 %r1, [%d1], 1;",
            "atom.add.u32 %r1, [%d1], 1;",
            "ld.volatile.global.u32 %r1, [%d1];",
            "ld.acquire.gpu.global.u32 %r1, [%d1];",
            "ld.relaxed.gpu.u32 %r1, [%d1];",
            "ld.global.cv.u32 %r1, [%d1];",
            "ld.global.cg.u32 %r1, [%d1];",
            "membar.gl;",
            "fence.acq_rel.gpu;",
            "call h;",
        ] {
            assert_eq!(in_a_loop(body), Some(Wait::Memory), "{body}");
        }
        assert_eq!(in_a_loop("nanosleep.u32 32;"), Some(Wait::Pause));
    }

    #[test]
    fn without_a_loop_nobody_waits() {
        for body in [
            "atom.global.add.u32 %r1, [%d1], 1;\nmembar.gl;",
            "ld.volatile.global.u32 %r1, [%d1];\nLOOP:\nadd.u32 %r1, %r1, 1;\n@%p0 bra LOOP;",
            "nanosleep.u32 32;",
        ] {
            assert_eq!(reliance("", body).waits, None, "{body}");
        }
    }

    #[test]
    fn some_wait_wherever_they_stand() {
        for (body, wait) in [
            ("mov.u32 %r1, %envreg2;", Wait::Grid),
            ("griddepcontrol.wait;", Wait::Dependency),
            ("barrier.cluster.arrive;", Wait::Cluster),
            ("call g;", Wait::Call),
            ("unheard.of.b32 %r1, %r2;", Wait::Unknown),
        ] {
            assert_eq!(reliance("", body).waits, Some(wait), "{body}");
        }
        for directives in [".reqnctapercluster 2", ".maxclusterrank 8"] {
            assert_eq!(reliance(directives, "").waits, Some(Wait::Cluster));
        }
    }

    #[test]
    fn a_block_may_wait_for_itself() {
        for body in [
            "ld.global.nc.f32 %f1, [%d1];\nst.global.f32 [%d1], %f1;",
            "ld.global.u32 %r1, [%d1];",
            "bar.sync 0;\nbarrier.sync 1;",
            "atom.shared.add.u32 %r1, [s], 1;",
            "ld.volatile.shared.u32 %r1, [s];",
            "red.global.add.f32 [%d1], %f1;",
            "cp.async.ca.shared.global [s], [%d1], 16;\ncp.async.wait_all;",
            "mbarrier.init.shared.b64 [s], 1;\nmbarrier.try_wait.shared.b64 %p1, [s], %d1;",
            "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;",
            "mov.u32 %r1, %clock;",
            "call f;",
        ] {
            assert_eq!(in_a_loop(body), None, "{body}");
        }
    }

    #[test]
    fn registers_that_move_stay_as_they_are_launched() {
        let moving = reliance(".maxntid 384", "setmaxnreg.inc.sync.aligned.u32 232;");
        assert!(moving.moves_registers && moving.waits.is_none());
        assert_eq!(
            moving.permits(Footprint::Registers),
            Err(Refusal::MovesRegisters)
        );
        assert_eq!(moving.permits(Footprint::Instructions), Ok(()));
        let takes = |registers, shared_bytes, blocks| Takes {
            registers,
            shared_bytes,
            blocks,
        };
        let fewer = moving.keeps(takes(168, 0, Some(1)), takes(160, 0, Some(1)));
        assert_eq!(fewer, Err(Refusal::MovesRegisters));
        assert_eq!(
            moving.keeps(takes(168, 0, Some(2)), takes(168, 9, Some(1))),
            Ok(())
        );
        let waiting = reliance("", "mov.u32 %r1, %envreg2;");
        let refused = Err(Refusal::MayWait(Wait::Grid));
        assert_eq!(waiting.permits(Footprint::FewerBlocks), refused);
        assert_eq!(waiting.permits(Footprint::Registers), Ok(()));
        assert_eq!(
            waiting.keeps(takes(64, 0, Some(4)), takes(80, 0, Some(3))),
            refused
        );
        assert_eq!(
            waiting.keeps(takes(64, 0, Some(4)), takes(32, 0, Some(8))),
            Ok(())
        );
        assert_eq!(
            waiting.keeps(takes(64, 0, None), takes(64, 16, None)),
            refused
        );
    }
}
