//! `print` and `canonical`: a module from its syntax, and from its typed view alone.
//!
//! Goal: to see what the front end made of a text. Requires nothing; preserves every token, or every
//! instruction.

use warpwright_ptx::print::canonical;

use crate::pass::{Pass, Rewritten, Work};
use crate::refusal::Refusal;

/// Print the module byte for byte.
#[derive(Debug, Clone, Copy)]
pub struct Print {}

crate::options!(Print: []; []);

impl Pass for Print {
    const NAME: &'static str = "print";
    const ABOUT: &'static str = "print the module from its syntax, byte for byte";

    fn work(&self) -> Work<Self> {
        Work::Module(|_, module| {
            let text = module.print();
            let text =
                text.map_err(|error| Refusal::obstacle("its tiles do not cover it", error))?;
            Ok(Rewritten::new(text))
        })
    }
}

/// Print the module in one fixed layout.
#[derive(Debug, Clone, Copy)]
pub struct Canonical {}

crate::options!(Canonical: []; []);

impl Pass for Canonical {
    const NAME: &'static str = "canonical";
    const ABOUT: &'static str = "print the module from its typed view alone, in one fixed layout";

    fn work(&self) -> Work<Self> {
        Work::Module(|_, module| Ok(Rewritten::new(canonical(module))))
    }
}
