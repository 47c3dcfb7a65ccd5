//! Passes that can be run alone: the engine of `warpwright pass` and of the filetests.
//!
//! A pass is a plain function from a module and its parameters to text; `pass --list` shows this
//! table.

use warpwright_flow::{Cfg, Function as _, Inst, Liveness, Pressure};
use warpwright_ptx::{Inst as PtxInst, Module, Span};

use crate::context::{Context, Output, PassError};

/// A pass.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// The `--set` options that it knows, with what they mean.
    pub options: &'static [(&'static str, &'static str)],
    apply: fn(&Module, &Context) -> Result<Output, PassError>,
}

impl Pass {
    /// Runs it on a module that the verifier accepts.
    ///
    /// # Errors
    /// [`PassError::Request`] for an option that it does not know, or whatever the pass itself
    /// misses.
    pub fn run(&self, module: &Module, context: &Context) -> Result<Output, PassError> {
        let is_known = |name: &str| self.options.iter().any(|(known, _)| *known == name);
        if let Some(name) = context.options.keys().find(|name| !is_known(name)) {
            let text = format!("the pass `{}` has no option `{name}`", self.name);
            return Err(PassError::Request(text));
        }
        (self.apply)(module, context)
    }
}

/// All passes, by name.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "allocate",
        about: "give values registers up to a limit, and slots beyond it (CRAT)",
        options: crate::allocate_pass::OPTIONS,
        apply: crate::allocate_pass::run,
    },
    Pass {
        name: "canonical",
        about: "print the module from its typed view alone, in one fixed layout",
        options: &[],
        apply: |module, _| Ok(warpwright_ptx::print::canonical(module).into()),
    },
    Pass {
        name: "pressure",
        about: "annotate each instruction with the registers live during it",
        options: &[],
        apply: |module, _| Ok(annotate_pressure(module).into()),
    },
    Pass {
        name: "print",
        about: "print the module from its syntax, byte for byte",
        options: &[],
        apply: |module, _| match module.print() {
            Ok(text) => Ok(text.into()),
            Err(error) => Err(PassError::Internal(error.to_string())),
        },
    },
    Pass {
        name: "remat",
        about: "recompute values instead of keeping them in registers, down to --regs registers live",
        options: crate::remat::OPTIONS,
        apply: crate::remat::pass,
    },
    Pass {
        name: "spill-shared",
        about: "keep values in shared memory while the register pressure is high (You & Tsai)",
        options: crate::spill_pass::OPTIONS,
        apply: crate::spill_pass::run,
    },
];

/// The pass of this name.
pub fn find(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|p| p.name == name)
}

/// The source with a comment behind every instruction: 32-bit registers live during it.
fn annotate_pressure(module: &Module) -> String {
    let mut notes: Vec<(Span, u32)> = Vec::new();
    for (id, function) in module.functions.iter() {
        let (Some(view), Some(body)) = (module.view(id), &function.body) else {
            continue;
        };
        let cfg = Cfg::new(&view);
        let liveness = Liveness::new(&view, &cfg);
        let pressure = Pressure::new(&view, &cfg, &liveness);
        for index in 0..view.inst_count() as u32 {
            notes.push((
                body.insts[PtxInst::from_u32(index)].span,
                pressure.during(Inst(index)),
            ));
        }
    }
    notes.sort_by_key(|(span, _)| span.end);
    let mut out = String::with_capacity(module.source.len() + 16 * notes.len());
    let mut at = 0;
    for (span, units) in notes {
        let end = span.end as usize;
        out.push_str(&module.source[at..end]);
        out.push_str(&format!(" // {units}"));
        // What follows on the same line must not become part of the comment.
        if !module.source[end..]
            .trim_start_matches([' ', '\t', '\r'])
            .starts_with('\n')
        {
            out.push('\n');
        }
        at = end;
    }
    out.push_str(&module.source[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n\
                        .reg .b64 %a<3>;\nld.param.u64 %a0, [p]; add.s64 %a1, %a0, 1;\n\
                        st.u64 [%a0], %a1;\nret;\n}\n";

    #[test]
    fn every_pass_gives_a_module_that_parses() {
        let (module, _) = Module::parse("t.ptx", TEXT);
        for pass in PASSES {
            let text = pass.run(&module, &Context::default()).unwrap().text;
            let (_, diagnostics) = Module::parse("t.ptx", &text);
            assert!(
                diagnostics.is_empty(),
                "{}: {diagnostics:?}\n{text}",
                pass.name
            );
        }
    }

    #[test]
    fn pressure_counts_pairs() {
        let (module, _) = Module::parse("t.ptx", TEXT);
        let text = annotate_pressure(&module);
        assert!(text.contains("st.u64 [%a0], %a1; // 4\n"), "{text}");
    }

    #[test]
    fn unknown_options_are_refused() {
        let (module, _) = Module::parse("t.ptx", TEXT);
        let options = [("layout".to_owned(), "x".to_owned())].into();
        let context = Context {
            options,
            ..Context::default()
        };
        let error = find("print").unwrap().run(&module, &context).unwrap_err();
        assert!(error.to_string().contains("no option `layout`"), "{error}");
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(PASSES.is_sorted_by_key(|p| p.name));
    }
}
