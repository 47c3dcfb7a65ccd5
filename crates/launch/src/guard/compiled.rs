//! A guard as a flat list of tests: what a library runs at each launch.

use super::{Condition, Disjoint, Guard, Quantity, Set};
use crate::values::{LaunchValues, ParamBytes};

/// A guard for testing at launches: no allocation, no maps, the cheap tests first.
#[derive(Clone, Debug)]
pub struct CompiledGuard {
    tests: Box<[Test]>,
}

#[derive(Clone, Copy, Debug)]
enum Test {
    /// `value - low <= span`, in arithmetic modulo 2^64.
    Range(Quantity, u64, u64),
    /// The same, and no bit of the mask.
    Aligned(Quantity, u64, u64, u64),
    /// The same as a set, for steps that are no power of two.
    Steps(Quantity, Set),
    Disjoint(Disjoint),
    Never,
}

impl Guard {
    /// The guard in a form that is tested in nanoseconds.
    pub fn compile(&self) -> CompiledGuard {
        let never = self.is_never().then_some(Test::Never);
        let mut tests: Vec<Test> = self.conditions().map(test).chain(never).collect();
        tests.sort_by_key(|test| match test {
            Test::Range(Quantity::Param(_), ..) => 1,
            Test::Range(..) | Test::Never => 0,
            Test::Aligned(..) | Test::Disjoint(_) => 2,
            Test::Steps(..) => 3,
        });
        CompiledGuard {
            tests: tests.into(),
        }
    }
}

fn test(condition: Condition) -> Test {
    match condition {
        Condition::In(quantity, set) => {
            let (low, span) = (set.low(), set.high() - set.low());
            match set.step() {
                1 => Test::Range(quantity, low, span),
                step if step.is_power_of_two() => Test::Aligned(quantity, low, span, step - 1),
                _ => Test::Steps(quantity, set),
            }
        }
        Condition::Disjoint(disjoint) => Test::Disjoint(disjoint),
    }
}

impl CompiledGuard {
    /// Does the guard hold for a launch?
    #[inline]
    pub fn holds<P: ParamBytes + ?Sized>(&self, launch: &LaunchValues<'_, P>) -> bool {
        self.tests.iter().all(|test| test.holds(launch))
    }
}

impl Test {
    #[inline]
    fn holds<P: ParamBytes + ?Sized>(&self, launch: &LaunchValues<'_, P>) -> bool {
        let check = |quantity: Quantity, holds: &dyn Fn(u64) -> bool| {
            quantity.of(launch).is_some_and(holds)
        };
        match *self {
            Test::Range(quantity, low, span) => check(quantity, &|n| n.wrapping_sub(low) <= span),
            Test::Aligned(quantity, low, span, mask) => {
                check(quantity, &|n| n.wrapping_sub(low) <= span && n & mask == 0)
            }
            Test::Steps(quantity, set) => check(quantity, &|n| set.has(n)),
            Test::Disjoint(disjoint) => {
                let [a, b] = disjoint.pointers.map(|pointer| launch.params.read(pointer));
                a.zip(b).is_some_and(|(a, b)| disjoint.holds([a, b]))
            }
            Test::Never => false,
        }
    }
}
