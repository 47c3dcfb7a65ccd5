//! Both versions in one kernel: a uniform branch at the entry leads to one of them.

use warpwright_launch::{Guard, PtxNames};
use warpwright_ptx::{Edits, Item, Module, Span, VarId};

use crate::refusal::Refusal;
use crate::site::Site;

/// The original with the special version before it, for launches that meet the guard.
///
/// # Errors
/// [`Refusal::InTheWay`]: a guard that needs what the kernel does not have.
pub(super) fn both(original: &Site, special: &Site, guard: &Guard) -> Result<String, Refusal> {
    let function = original.function();
    let body = function.body.as_ref().ok_or(Refusal::NoBody)?;
    let mut edits = Edits::new(original.module);
    let prefix = edits.fresh_name("%special");
    let label = edits.fresh_name("$original");
    let variables = &original.module.variables;
    let names: Vec<&str> = (function.params.iter())
        .map(|param| &*variables[param.var].name)
        .collect();
    let test = guard.to_ptx(PtxNames {
        params: &names,
        prefix: &prefix,
    });
    let test = test.ok_or(Refusal::InTheWay(
        "the guard asks for parameters that it does not have",
    ))?;
    let (shared, first) = without_variables(special)?;
    let (_, second) = without_variables(original)?;
    let text = format!(
        "{{\n{shared}{}\t@!{} bra {label};\n\t{{{first}\tret;\n\t}}\n{label}:\n\t{{{second}\t}}\n}}",
        test.code, test.predicate
    );
    edits.replace(body.span, text);
    Ok(edits.apply()?)
}

/// The declarations of memory of a body, and the rest of it.
fn without_variables(site: &Site) -> Result<(String, String), Refusal> {
    let module = site.module;
    let body = site.function().body.as_ref().ok_or(Refusal::NoBody)?;
    let outer = body.items.iter().scan(0, |depth, item| {
        *depth += match item {
            Item::Open(_) => 1,
            Item::Close(_) => -1,
            _ => 0,
        };
        Some((*depth, item))
    });
    let mut spans: Vec<Span> = Vec::new();
    for (depth, item) in outer {
        if let (0, Item::Var(var)) = (depth, item) {
            spans.push(declaration(module, *var));
        }
    }
    let (mut declared, mut rest) = (String::new(), String::new());
    let mut at = body.span.start + 1;
    for span in spans {
        rest += module.text(Span::new(at, span.start));
        declared += &format!("\t{}\n", module.text(span));
        at = span.end;
    }
    rest += module.text(Span::new(at, body.span.end - 1));
    Ok((declared, rest))
}

/// A declaration with its semicolon.
fn declaration(module: &Module, var: VarId) -> Span {
    let span = module.variables[var].span;
    let rest = &module.source[span.end as usize..];
    let has_one = module.text(span).ends_with(';');
    let end = rest.find(';').map_or(0, |at| at as u32 + 1);
    Span::new(span.start, if has_one { span.end } else { span.end + end })
}
