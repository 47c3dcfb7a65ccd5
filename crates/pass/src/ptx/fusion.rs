//! Where a proof of the PTX is no proof of the last bit.
//!
//! A multiplication and an addition without a rounding modifier may be fused into one operation that
//! rounds once, or not (PTX ISA, `mul`, `add`, `sub` of floating-point types). ptxas decides by what
//! it sees around them, and our passes change that. The checker proves that a rewritten kernel
//! computes the same PTX values; it cannot know what is fused below. On an H200 19 of 165 rewritten
//! builds, of eight examples, differed from the default build in the last bits for this reason, all
//! within their tolerance (docs/regs.md), two of them with equally many operations of each kind.
//!
//! So a rewritten build of such a kernel is chosen only where a measurement has compared its outputs
//! bit for bit. A kernel that was compiled with `-fmad=false` has a rounding modifier on every
//! operation: nothing can be fused, and there is no such caution.

use warpwright_ptx::Module;
use warpwright_ptx::ir::Function;

use crate::pass::Caution;

/// The caution of a pass that moves or repeats the kernel's own instructions.
pub fn caution(module: &Module) -> Option<Caution> {
    may_be_fused(module).then_some(Caution::Fusion)
}

/// Is there a multiplication and an addition in the module that ptxas may fuse?
pub fn may_be_fused(module: &Module) -> bool {
    let any = |operations: &[&str]| {
        let mut functions = module.functions.values();
        functions.any(|f| has_unrounded(module, f, operations))
    };
    any(&["mul"]) && any(&["add", "sub"])
}

/// Has `function` one of these operations on a floating-point type, without a rounding modifier?
fn has_unrounded(module: &Module, function: &Function, operations: &[&str]) -> bool {
    const TYPES: [&str; 7] = ["f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"];
    const ROUNDINGS: [&str; 4] = ["rn", "rz", "rm", "rp"];
    let Some(body) = &function.body else {
        return false;
    };
    body.insts.values().any(|inst| {
        let mut parts = inst.opcode_span.text(&module.source).split('.');
        let is_one = parts.next().is_some_and(|name| operations.contains(&name));
        let modifiers: Vec<&str> = parts.collect();
        is_one
            && modifiers.last().is_some_and(|ty| TYPES.contains(ty))
            && !modifiers.iter().any(|m| ROUNDINGS.contains(m))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(body: &str) -> Module {
        let text = format!(
            ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n\
             .reg .f64 %d<3>;\n.reg .b32 %r<3>;\n{body}\nret;\n}}\n"
        );
        Module::parse("k.ptx", &text).0
    }

    #[test]
    fn only_unrounded_pairs_can_be_fused() {
        let fused = |body| may_be_fused(&module(body));
        assert!(fused("mul.f64 %d1, %d0, %d0;\nadd.f64 %d2, %d1, %d0;"));
        assert!(fused("mul.f64 %d1, %d0, %d0;\nsub.f64 %d2, %d1, %d0;"));
        assert!(!fused("mul.rn.f64 %d1, %d0, %d0;\nadd.f64 %d2, %d1, %d0;"));
        assert!(!fused("mul.f64 %d1, %d0, %d0;\nadd.rn.f64 %d2, %d1, %d0;"));
        assert!(!fused("mul.lo.s32 %r1, %r0, %r0;\nadd.s32 %r2, %r1, %r0;"));
        assert!(!fused("fma.rn.f64 %d1, %d0, %d0, %d0;"));
    }
}
