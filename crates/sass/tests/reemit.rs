//! Code that is taken apart and written again in its own order: the same instructions, other control fields,
//! no hazard.

#![allow(clippy::unwrap_used)]

mod sample;

use warpwright_sass::control::Control;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::ir::{Ir, IrError, Keep};
use warpwright_sass::issue::Unassigned;
use warpwright_sass::{Elf, hazards};

#[test]
fn ptxas_own_order_with_our_control_fields_has_no_hazard() {
    let Some(samples) = sample::cubins("ptxas_own_order_with_our_control_fields_has_no_hazard")
    else {
        return;
    };
    let (mut written, mut refused) = (0, 0);
    for sample in samples {
        let elf = Elf::parse(&sample.cubin).unwrap();
        for kernel in elf.kernels().unwrap() {
            let old = Code::new(&elf, &kernel, Calls::Followed).unwrap();
            let Ok(violations) = hazards::check(&old) else {
                continue;
            };
            assert!(violations.is_empty(), "{}: {}", sample.name, kernel.name);
            let mut new = elf.clone();
            let ir = Ir::new(&elf, &kernel.name).unwrap();
            match ir.emit(&mut new, Keep::Nothing) {
                Ok(_) => written += 1,
                // -G and what the edit layer refuses; architectures without distances; rare operands; pairs that
                // no stall count keeps apart.
                Err(
                    IrError::Elf(_)
                    | IrError::Issue(
                        Unassigned::NotTried(_)
                        | Unassigned::Rare { .. }
                        | Unassigned::TooClose { .. },
                    ),
                ) => {
                    assert_eq!(new.write().unwrap(), sample.cubin);
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{}: {}: {error}", sample.name, kernel.name),
            }
            let code =
                Code::new(&new, &new.kernel(&kernel.name).unwrap(), Calls::Followed).unwrap();
            for (a, b) in old.instructions().iter().zip(code.instructions()) {
                let blank = |inst: &warpwright_sass::Instruction| {
                    inst.with_control(Control::default()).unwrap()
                };
                assert_eq!(blank(a), blank(b), "{}: {}", sample.name, kernel.name);
            }
            let violations = hazards::check(&code).unwrap();
            let first = violations.first().map(|first| first.describe(&code));
            assert_eq!(first, None, "{}: {}", sample.name, kernel.name);
        }
    }
    assert!(written >= 20, "{written} written, {refused} refused");
}
