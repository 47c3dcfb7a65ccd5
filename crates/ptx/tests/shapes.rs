//! Operands whose number alone does not tell their roles: brackets and braces do.

#![allow(clippy::unwrap_used)]

use warpwright_ptx::opcode::{Role, Shape};
use warpwright_ptx::{Module, Opcode, verify};

use Shape::{Bracketed, Plain, Vector};

#[test]
fn a_report_before_or_a_hint_after_the_address() {
    let opcode = Opcode::parse("mbarrier.try_wait.phase_type::primary.acquire.cta.shared::cta.b64");
    assert_eq!(opcode.roles(4), None);
    let report = opcode.roles_of(&[Plain, Plain, Bracketed, Plain]).unwrap();
    assert_eq!(report[..], [Role::Def, Role::Def, Role::Address, Role::Use]);
    let hint = opcode.roles_of(&[Plain, Bracketed, Plain, Plain]).unwrap();
    assert_eq!(hint[..], [Role::Def, Role::Address, Role::Use, Role::Use]);
}

#[test]
fn a_mask_before_or_a_scale_after_the_predicate() {
    let text = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n\
        \t.reg .pred %p<2>;\n\t.reg .b32 %r<7>;\n\t.reg .b64 %d<3>;\n\
        \ttcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, {%r3, %r4, %r5, %r6}, %p1;\n\
        \ttcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1, 4;\n\tret;\n}\n";
    let (module, diagnostics) = Module::parse("t.ptx", text);
    assert_eq!(diagnostics, []);
    let problems = verify::diagnose(&module);
    assert_eq!(problems, []);
    // Types are checked by the form that fits: a mask where the predicate belongs is refused.
    let (module, _) = Module::parse("t.ptx", &text.replace("%r2, %p1, 4", "%r2, %r3, 4"));
    assert!(verify::verify(&module).is_err());
    let opcode = Opcode::parse("tcgen05.mma.cta_group::1.kind::f16");
    let shapes = [Bracketed, Plain, Plain, Plain, Vector, Plain];
    let last = opcode.expected_of(&shapes).unwrap()[5];
    assert_eq!(last.ty, Some(warpwright_ptx::Type::Pred));
}
