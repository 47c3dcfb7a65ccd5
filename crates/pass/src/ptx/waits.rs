//! Could a block of this kernel wait for another one?
//!
//! If not, its results cannot depend on how many blocks are resident: blocks run in any order, one after the other if need
//! be (CUDA C++ programming guide, thread hierarchy). If so (a barrier of the whole grid, a flag that is polled), a build
//! with fewer resident blocks may never end.
//!
//! Waiting takes a load that sees what another block stores while both run: an atomic operation that returns something, a
//! `volatile`, `relaxed`, `acquire` or uncached load, or a plain one kept in a loop by a fence or a pause. Cooperative groups
//! find the grid's barrier through `%envreg`. None of them, no cluster and no call: no waiting. Barriers of a block and
//! atomics in shared memory are its own affair.

use warpwright_ptx::opcode::{Control, LatencyClass, Op, Opcode};
use warpwright_ptx::{DirectiveKind, Function, Module, Operand, Space, SpecialReg};

/// Could a block of it wait for another one? `true` where that is not known.
pub fn may_wait(module: &Module, function: &Function) -> bool {
    let is_cluster = function.directives.iter().any(|directive| {
        matches!(
            directive.kind,
            DirectiveKind::ReqNctaPerCluster(_)
                | DirectiveKind::ExplicitCluster
                | DirectiveKind::MaxClusterRank(_)
        )
    });
    let Some(body) = &function.body else {
        return true;
    };
    let is_grid = |operand: &Operand| {
        matches!(
            operand,
            Operand::Special {
                reg: SpecialReg::EnvReg(_),
                ..
            }
        )
    };
    is_cluster
        || body.operands.values().any(is_grid)
        || body
            .insts
            .values()
            .any(|inst| is_suspect(module.opcode(inst)))
}

/// Is it part of waiting for another block, as far as we know?
fn is_suspect(opcode: &Opcode) -> bool {
    const UNCACHED: [&str; 2] = ["cv", "cg"];
    let is_own = opcode.space == Some(Space::Shared) && !opcode.has_mod("shared::cluster");
    let effect = opcode.effect();
    let listens = match opcode.op {
        None => true,
        Some(
            Op::Membar
            | Op::Fence
            | Op::Nanosleep
            | Op::Griddepcontrol
            | Op::Clusterlaunchcontrol
            | Op::Multimem
            | Op::Fabric
            | Op::Suld,
        ) => return true,
        Some(Op::Bar | Op::Barrier) => opcode.has_mod("cluster"),
        // It tells others something and hears nothing, or waits for copies that its own block began.
        Some(Op::Red | Op::St | Op::Cp) => false,
        Some(Op::Ld) => effect.strong || UNCACHED.iter().any(|word| opcode.has_mod(word)),
        Some(_) => {
            effect.strong || effect.acquire || opcode.latency_class() == LatencyClass::Atomic
        }
    };
    !opcode.is_known() || opcode.control() == Control::Call || (listens && !is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(directives: &str, body: &str) -> bool {
        let text = format!(
            ".version 8.5\n.target sm_90\n.address_size 64\n.func f() {{ ret; }}\n.visible .entry k() {directives}\n{{\n\
             .shared .b32 s[64];\n.reg .b32 %r<4>;\n.reg .b64 %d<3>;\n.reg .f32 %f<3>;\n.reg .pred %p<2>;\n{body}\nret;\n}}\n"
        );
        let (module, diagnostics) = Module::parse("k.ptx", &text);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let kernel = module.function("k").unwrap();
        may_wait(&module, &module.functions[kernel])
    }

    #[test]
    fn what_other_blocks_store_is_heard_by_few_instructions() {
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
            "nanosleep.u32 32;",
            "mov.u32 %r1, %envreg2;",
            "griddepcontrol.wait;",
            "barrier.cluster.arrive;",
            "call f;",
            "unheard.of.b32 %r1, %r2;",
        ] {
            assert!(waits("", body), "{body}");
        }
        for directives in [".reqnctapercluster 2", ".maxclusterrank 8"] {
            assert!(waits(directives, ""), "{directives}");
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
        ] {
            assert!(!waits("", body), "{body}");
        }
    }
}
