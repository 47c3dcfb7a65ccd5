//! A version of a kernel: what may stand in its place, and when.

use crate::guard::Guard;
use crate::shape::Shape;

/// Code that may run in a kernel's place at launches for which its guard holds, once they have its shape.
///
/// `C` is the code, `R` what stands for it: which rung of the ladder says that it is right.
#[derive(Clone, Debug, PartialEq)]
pub struct Version<C, R> {
    /// The code.
    pub code: C,
    /// The launches that it is right for.
    pub guard: Guard,
    /// What they become.
    pub shape: Shape,
    /// The recipe that made it, which replays to the same bytes.
    pub recipe: String,
    /// What says that it is right.
    pub rung: R,
}

impl<C, R> Version<C, R> {
    /// The same with other code, such as what was built of it.
    pub fn map<D>(self, of: impl FnOnce(C) -> D) -> Version<D, R> {
        Version {
            code: of(self.code),
            guard: self.guard,
            shape: self.shape,
            recipe: self.recipe,
            rung: self.rung,
        }
    }
}
