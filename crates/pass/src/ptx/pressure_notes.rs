//! `pressure`: a comment behind every instruction, with the 32-bit registers live during it.
//!
//! Goal: to see where the register pressure is. Requires nothing; preserves every token.

use warpwright_flow::{Cfg, Function as _, Inst, Liveness, Pressure};
use warpwright_ptx::{Inst as PtxInst, Module, Span};

use crate::pass::{Pass, Rewritten, Work};

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct PressureNotes {}

crate::options!(PressureNotes: []; []);

impl Pass for PressureNotes {
    const NAME: &'static str = "pressure";
    const ABOUT: &'static str = "annotate each instruction with the registers live during it";

    fn work(&self) -> Work<Self> {
        Work::Module(|_, module| Ok(Rewritten::new(annotate(module))))
    }
}

fn annotate(module: &Module) -> String {
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

    #[test]
    fn pressure_counts_pairs() {
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n\
            .reg .b64 %a<3>;\nld.param.u64 %a0, [p]; add.s64 %a1, %a0, 1;\nst.u64 [%a0], %a1;\nret;\n}\n";
        let (module, _) = Module::parse("t.ptx", text);
        let text = annotate(&module);
        assert!(text.contains("st.u64 [%a0], %a1; // 4\n"), "{text}");
    }
}
