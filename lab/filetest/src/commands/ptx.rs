//! Commands of the PTX front end.

use std::fmt::Write as _;

use warpwright_flow::{Cfg, Function as _, Liveness, Pressure, Value};
use warpwright_ptx::print::{canonical, inst_text};
use warpwright_ptx::verify::diagnose;
use warpwright_ptx::{Diagnostic, FuncId, Module, View, check};

use crate::case::Case;
use crate::harness::Command;

/// The commands.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "parse",
        about: "parses without a diagnostic, prints back byte by byte, and covers every token",
        run: parse,
    },
    Command {
        name: "diagnostics",
        about: "what the parser reports, rendered",
        run: diagnostics,
    },
    Command {
        name: "verify",
        about: "what the verifier reports, rendered",
        run: verify,
    },
    Command {
        name: "print-canonical",
        about: "the canonical form, which must parse to the same module",
        run: print_canonical,
    },
    Command {
        name: "def-use",
        about: "registers that each instruction writes and reads",
        run: def_use,
    },
    Command {
        name: "liveness",
        about: "registers live after each instruction",
        run: liveness,
    },
    Command {
        name: "pressure",
        about: "32-bit registers needed while each instruction executes",
        run: pressure,
    },
];

fn load(case: &Case) -> (Module, Vec<Diagnostic>) {
    Module::parse(&case.file_name(), &case.source)
}

/// The module of a file that must have no errors.
fn sound(case: &Case) -> Result<Module, String> {
    let (module, diagnostics) = load(case);
    match diagnostics.iter().any(Diagnostic::is_error) {
        true => Err(render(&module, &diagnostics)),
        false => Ok(module),
    }
}

/// Diagnostics as text. Their line numbers are those of the file itself.
fn render(module: &Module, diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|d| d.render(module)).collect()
}

/// What holds for every module, with or without errors.
fn lossless(module: &Module) -> Result<(), String> {
    let printed = module.print().map_err(|e| e.to_string())?;
    if printed != *module.source {
        return Err("printing changed the text".to_owned());
    }
    check::coverage(module).map_err(|e| e.to_string())
}

fn parse(case: &Case, _: &[String]) -> Result<String, String> {
    let (module, diagnostics) = load(case);
    lossless(&module)?;
    match diagnostics.is_empty() {
        true => Ok(String::new()),
        false => Err(render(&module, &diagnostics)),
    }
}

fn diagnostics(case: &Case, _: &[String]) -> Result<String, String> {
    let (module, diagnostics) = load(case);
    lossless(&module)?;
    match diagnostics.is_empty() {
        true => Err("nothing is reported".to_owned()),
        false => Ok(render(&module, &diagnostics)),
    }
}

fn verify(case: &Case, _: &[String]) -> Result<String, String> {
    let module = sound(case)?;
    Ok(render(&module, &diagnose(&module)))
}

fn print_canonical(case: &Case, _: &[String]) -> Result<String, String> {
    let module = sound(case)?;
    let text = canonical(&module);
    let (again, diagnostics) = Module::parse("canonical", &text);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(render(&again, &diagnostics));
    }
    check::same(&module, &again).map_err(|e| e.to_string())?;
    Ok(text)
}

/// Runs `lines` on the view of every function with a body, under its name.
fn each_function(
    case: &Case,
    mut lines: impl FnMut(&View<'_>, &mut String),
) -> Result<String, String> {
    let module = sound(case)?;
    let ids: Vec<FuncId> = module.functions.keys().collect();
    let mut out = String::new();
    for view in ids.into_iter().filter_map(|id| module.view(id)) {
        let _: std::fmt::Result = writeln!(out, "{}:", view.function().name);
        lines(&view, &mut out);
    }
    Ok(out)
}

fn def_use(case: &Case, _: &[String]) -> Result<String, String> {
    each_function(case, |view, out| {
        for inst in view.body().insts.keys() {
            let name = |r: &warpwright_ptx::Reg| view.body().reg_name(*r).to_string();
            let defs: Vec<String> = view.defs(inst).iter().map(name).collect();
            let uses: Vec<String> = view.uses(inst).iter().map(name).collect();
            let text = inst_text(view.module(), view.body(), inst);
            let (defs, uses) = (defs.join(" "), uses.join(" "));
            let _: std::fmt::Result = writeln!(out, "  {text:<40} writes [{defs}] reads [{uses}]");
        }
    })
}

fn liveness(case: &Case, _: &[String]) -> Result<String, String> {
    each_function(case, |view, out| {
        let cfg = Cfg::new(view);
        let liveness = Liveness::new(view, &cfg);
        for inst in (0..view.inst_count() as u32).map(warpwright_flow::Inst) {
            let live = liveness.live_after(view, &cfg, inst);
            let name = |v: &Value| view.value_name(*v);
            let live: Vec<String> = live.iter().map(name).collect();
            let text = view.inst_text(inst);
            let _: std::fmt::Result = writeln!(out, "  {text:<40} {}", live.join(" "));
        }
    })
}

fn pressure(case: &Case, _: &[String]) -> Result<String, String> {
    each_function(case, |view, out| {
        let cfg = Cfg::new(view);
        let liveness = Liveness::new(view, &cfg);
        let pressure = Pressure::new(view, &cfg, &liveness);
        for inst in (0..view.inst_count() as u32).map(warpwright_flow::Inst) {
            let text = view.inst_text(inst);
            let _: std::fmt::Result = writeln!(out, "  {text:<40} {}", pressure.during(inst));
        }
    })
}
