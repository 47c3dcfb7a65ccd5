//! Allocation on an instruction set that PTX and SASS have nothing to do with: generated functions,
//! with and without operand constraints, checked by places alone.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod checker;

use checker::Checker;
use warpwright_flow::{Class, EntityRef, Function, Value};
use warpwright_regs::allocate::{AllocateError, Allocation, Limits, allocate};
use warpwright_regs::draft::Role;
use warpwright_regs::frame::Layout;
use warpwright_regs::substacks::{Cut, Shared};
use warpwright_toy::Toy;
use warpwright_toy::generate::{Shape, function};

const NARROW: Class = Class(1);

fn limits(registers: u32, shared: Option<u64>) -> Limits {
    Limits {
        merges: u64::MAX,
        registers,
        shared: shared.map(|capacity| Shared {
            capacity,
            threads: 32,
            layout: Layout::SlotMajor,
            cut: Cut::Cell,
        }),
        address: NARROW,
        scratch: 1,
    }
}

fn run(func: &Toy, limits: &Limits) -> Result<Allocation, AllocateError> {
    allocate(func, limits, |value| func.units(value) > 0)
}

fn check(func: &Toy, limits: &Limits) -> Result<Option<Allocation>, String> {
    match run(func, limits) {
        Err(AllocateError::TooFew(_)) => Ok(None),
        Err(other) => Err(format!("{other:?}")),
        Ok(done) => {
            let checker = Checker {
                func,
                done: &done,
                limit: limits.registers,
            };
            checker.check().map(|()| Some(done))
        }
    }
}

/// Functions of a shape, under limits from roomy to tight; how many got registers.
fn generated(shape: Shape, seeds: std::ops::Range<u64>) -> (u32, u32) {
    let (mut done, mut spilled) = (0, 0);
    for seed in seeds {
        let func = function(seed, shape);
        let tight = 12 + 2 * (seed % 6) as u32;
        let shared = [None, Some(1 << 16), Some(256)][(seed % 3) as usize];
        for limits in [limits(64, None), limits(tight, shared)] {
            match check(&func, &limits) {
                Ok(Some(found)) => {
                    done += 1;
                    let slots = [&found.shared, &found.local];
                    spilled += u32::from(slots.iter().any(|frame| !frame.is_empty()));
                }
                Ok(None) => {}
                Err(why) => panic!("seed {seed}, {} registers: {why}", limits.registers),
            }
        }
    }
    (done, spilled)
}

#[test]
fn generated_functions() {
    let shape = Shape {
        values: 16,
        statements: 60,
        constraints: false,
    };
    let (done, spilled) = generated(shape, 0..40);
    assert!(
        done >= 70 && spilled >= 30,
        "{done} done, {spilled} spilled"
    );
}

#[test]
fn generated_functions_with_operand_constraints() {
    let shape = Shape {
        values: 8,
        statements: 50,
        constraints: true,
    };
    let (done, spilled) = generated(shape, 0..40);
    assert!(
        done >= 50 && spilled >= 15,
        "{done} done, {spilled} spilled"
    );
}

fn registers(func: &Toy, done: &Allocation, names: &[&str]) -> Vec<u32> {
    let first = |name: &&str| done.register[func.named(name).index()].unwrap();
    names.iter().map(first).collect()
}

#[test]
fn pairs_stay_together_where_a_lone_value_would_fit_between() {
    let text = "x = op; y = op; z = op; out x; (a b) = op; out y, z; out (a b); exit";
    let func = Toy::parse(text);
    let done = check(&func, &limits(4, None)).unwrap().unwrap();
    let pair = registers(&func, &done, &["a", "b"]);
    assert_eq!((pair[0] % 2, pair[1]), (0, pair[0] + 1));
    assert!(done.local.is_empty());
}

#[test]
fn a_pair_inside_a_four_keeps_its_place() {
    let text = "(a b c e) = op; out (c e); out (a b); out a, b, c, e; exit";
    let func = Toy::parse(text);
    let done = check(&func, &limits(4, None)).unwrap().unwrap();
    assert_eq!(registers(&func, &done, &["a", "b", "c", "e"]), [0, 1, 2, 3]);
}

#[test]
fn a_fixed_register_is_left_free_for_its_value() {
    let func = Toy::parse("v1 = op; v2 = op; f0 = op; out v1, v2; out f0; exit");
    let done = check(&func, &limits(3, None)).unwrap().unwrap();
    assert_eq!(registers(&func, &done, &["f0"]), [0]);
}

#[test]
fn contradictions_are_refused_by_the_instruction() {
    let both_ways = Toy::parse("(a b) = op; out (a b); out (b a); exit");
    let refused = run(&both_ways, &limits(8, None)).unwrap_err();
    assert_eq!(
        refused,
        AllocateError::Contradiction(Some(warpwright_flow::Inst(2)))
    );
    let twice = Toy::parse("f0x = op; f0y = op; out f0x, f0y; exit");
    assert!(matches!(
        run(&twice, &limits(8, None)),
        Err(AllocateError::TooFew(_))
    ));
}

#[test]
fn too_few_registers_for_one_instruction_are_said() {
    let func = Toy::parse("(a b c e) = op; out (a b c e); exit");
    let refused = run(&func, &limits(3, None)).unwrap_err();
    assert!(matches!(refused, AllocateError::TooFew(Some(_))));
}

/// Every mistake that can be planted by exchanging two registers is found where it matters: the
/// check that all of the above rests on can fail.
#[test]
fn exchanged_registers_are_found() {
    let shape = Shape {
        values: 10,
        statements: 40,
        constraints: true,
    };
    let (mut planted, mut found) = (0, 0);
    for seed in 0..80 {
        let func = function(seed, shape);
        let limits = limits(40, None);
        let Ok(mut done) = run(&func, &limits) else {
            continue;
        };
        // Written on entry, and no copy makes another value equal to it.
        let is_sure = |value: &Value| {
            let Role::Register(of) = done.draft.role(*value) else {
                return false;
            };
            let copies = func.insts.iter().filter(|inst| inst.copies);
            let mut copied = copies.flat_map(|inst| inst.defs.iter().chain(&inst.uses));
            func.names[of.index()].starts_with(['t', 'q']) && !copied.any(|&value| value == of)
        };
        let used: Vec<Value> = done
            .draft
            .insts()
            .flat_map(|inst| done.draft.uses(inst).to_vec())
            .filter(is_sure)
            .collect();
        let Some(&victim) = used.get(seed as usize % used.len().max(1)) else {
            continue;
        };
        let old = done.register[victim.index()].unwrap();
        // One that is live together with it: some other operand of an instruction that reads it.
        let reader = done
            .draft
            .insts()
            .find(|&inst| done.draft.uses(inst).contains(&victim))
            .unwrap();
        let other = done.draft.uses(reader).iter().copied();
        let mut other = other.filter_map(|value| {
            let register = done.register[value.index()]?;
            (done.draft.units(value) > 0 && register != old).then_some(register)
        });
        let Some(other) = other.next() else { continue };
        done.register[victim.index()] = Some(other);
        planted += 1;
        let checker = Checker {
            func: &func,
            done: &done,
            limit: 40,
        };
        found += u32::from(checker.check().is_err());
    }
    assert!(planted >= 10, "{planted} planted");
    assert_eq!(found, planted);
}
