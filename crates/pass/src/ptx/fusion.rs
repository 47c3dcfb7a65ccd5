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
//! bit for bit. nvcc has fused what it could, so that a product gets to a sum in few kernels. A kernel that was compiled with `-fmad=false` has a rounding modifier on every
//! operation: nothing can be fused, and there is no such caution.

use std::collections::BTreeSet;

use warpwright_ptx::ir::{FunctionKind, Operand};
use warpwright_ptx::{FuncId, Inst, Module, Reg, View};

use crate::pass::Caution;

/// The caution of a pass that moves or repeats the kernel's own instructions.
pub fn caution(module: &Module) -> Option<Caution> {
    may_be_fused(module).then_some(Caution::Fusion)
}

/// Is there a multiplication and an addition in the module that ptxas may fuse? One whose product gets to the other: by copies,
/// signs and choices, or through memory that a thread writes and reads. Of a module with functions all products get everywhere.
pub fn may_be_fused(module: &Module) -> bool {
    let mut functions = module.functions.values();
    let has_functions = functions.any(|f| f.kind != FunctionKind::Entry && f.body.is_some());
    has_unrounded_pair(module)
        && (has_functions || module.kernels().any(|(id, _)| adds_products(module, id)))
}

/// Is there a multiplication and an addition in the module, neither with a rounding modifier, wherever they stand?
pub fn has_unrounded_pair(module: &Module) -> bool {
    let any = |operations: &[&str]| {
        let views = module.functions.iter();
        let mut views = views.filter_map(|(id, _)| module.view(id));
        views.any(|view| {
            let mut insts = view.body().insts.keys();
            insts.any(|inst| is_unrounded(&view, inst, operations))
        })
    };
    any(&["mul"]) && any(SUMS)
}

const SUMS: &[&str] = &["add", "sub"];
/// What gives on one of its operands as it is, or with another sign.
const COPIES: &[&str] = &["mov", "neg", "abs", "selp", "copysign", "shfl", "movmatrix"];

/// Does a product get to a sum?
fn adds_products(module: &Module, function: FuncId) -> bool {
    let Some(view) = module.view(function) else {
        return false;
    };
    let mut found = Products::default();
    while found.grow(&view) {}
    let mut insts = view.body().insts.keys();
    insts.any(|inst| is_unrounded(&view, inst, SUMS) && found.are_read(&view, inst))
}

/// Where products are.
#[derive(Default)]
struct Products {
    registers: BTreeSet<Reg>,
    /// Places in global memory, as they are written; no text for all other memory.
    places: BTreeSet<String>,
}

impl Products {
    fn are_read(&self, view: &View<'_>, inst: Inst) -> bool {
        let mut uses = view.uses(inst).into_iter();
        uses.any(|reg| self.registers.contains(&reg))
    }

    /// Goes through all instructions once; are there more now?
    fn grow(&mut self, view: &View<'_>) -> bool {
        let before = (self.registers.len(), self.places.len());
        for inst in view.body().insts.keys() {
            let name = name(view, inst);
            let is_one = is_unrounded(view, inst, &["mul"])
                || COPIES.contains(&name) && self.are_read(view, inst)
                || name.starts_with("ld") && self.places.contains(&place(view, inst));
            if is_one {
                self.registers.extend(view.defs(inst));
            } else if !is_load_or_sum(name)
                && view.defs(inst).is_empty()
                && self.are_read(view, inst)
            {
                self.places.insert(place(view, inst));
            }
        }
        before != (self.registers.len(), self.places.len())
    }
}

fn is_load_or_sum(name: &str) -> bool {
    name.starts_with("ld") || SUMS.contains(&name)
}

/// The first part of an opcode.
fn name<'v>(view: &View<'v>, inst: Inst) -> &'v str {
    let text = opcode(view, inst);
    text.split('.').next().unwrap_or(text)
}

fn opcode<'v>(view: &View<'v>, inst: Inst) -> &'v str {
    let module = view.module();
    view.body().insts[inst].opcode_span.text(&module.source)
}

/// The place that a load or store names, in global memory; nothing for all others, which one name reaches in many ways.
fn place(view: &View<'_>, inst: Inst) -> String {
    let body = view.body();
    let is_global = opcode(view, inst).split('.').any(|part| part == "global");
    let mut operands = body.operands(inst).iter();
    let address = operands.find(|operand| matches!(operand, Operand::Mem(_)));
    let text = address.map(|address| format!("{address:?}"));
    text.filter(|_| is_global).unwrap_or_default()
}

/// Is it one of these operations on a floating-point type, without a rounding modifier?
fn is_unrounded(view: &View<'_>, inst: Inst, operations: &[&str]) -> bool {
    const TYPES: [&str; 7] = ["f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"];
    const ROUNDINGS: [&str; 4] = ["rn", "rz", "rm", "rp"];
    let mut parts = opcode(view, inst).split('.');
    let is_one = parts.next().is_some_and(|name| operations.contains(&name));
    let modifiers: Vec<&str> = parts.collect();
    is_one
        && modifiers.last().is_some_and(|ty| TYPES.contains(ty))
        && !modifiers.iter().any(|m| ROUNDINGS.contains(m))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(body: &str) -> Module {
        let text = format!(
            ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n\
             .reg .f64 %d<3>;\n.reg .b32 %r<3>;\n.reg .f32 %f;\n.reg .pred %p;\n.reg .b64 %a;\n\
             .shared .f64 s;\n{body}\nret;\n}}\n"
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

    #[test]
    fn a_product_that_gets_to_no_sum_is_not_fused() {
        let fused = |body: &str| may_be_fused(&module(body));
        let sum = "add.f64 %d1, %d0, %d0;\nmul.f64 %d2, %d1, %d1;";
        assert!(!fused(sum) && has_unrounded_pair(&module(sum)));
        let product = "mul.f64 %d1, %d0, %d0;\n";
        for way in [
            "mov.f64 %d2, %d1;",
            "neg.f64 %d2, %d1;",
            "selp.f64 %d2, %d1, %d0, %p;",
            "st.shared.f64 [s], %d1;\nld.shared.f64 %d2, [s];",
            "st.shared.f64 [s], %d1;\nld.f64 %d2, [%a];",
            "st.global.f64 [%a+8], %d1;\nld.global.f64 %d2, [%a+8];",
        ] {
            assert!(
                fused(&format!("{product}{way}\nadd.f64 %d0, %d2, %d2;")),
                "{way}"
            );
        }
        for way in [
            "cvt.rn.f32.f64 %f, %d1;\ncvt.f64.f32 %d2, %f;",
            "max.f64 %d2, %d1, %d0;",
            "st.global.f64 [%a+8], %d1;\nld.global.f64 %d2, [%a];",
        ] {
            assert!(
                !fused(&format!("{product}{way}\nadd.f64 %d0, %d2, %d2;")),
                "{way}"
            );
        }
        // Whatever stands first.
        assert!(fused(&format!(
            "add.f64 %d0, %d2, %d2;\n mov.f64 %d2, %d1;\n{product}"
        )));
    }
}
