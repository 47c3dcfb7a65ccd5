//! A template as the one kernel that the file makes of it.

use crate::ast::{Expr, ExprKind, Type};
use crate::definitions::{Instance, TemplateArgument, TemplateParameter};
use crate::diag::{Diagnostic, Span};
use crate::{File, Header, print};

/// What the parameters of a kernel's template are; nothing for a kernel that is none.
///
/// # Errors
/// With this code: the file instantiates it nowhere, in several ways, or in one that is not known.
pub fn instance(
    file: &File,
    kernel: &Header,
    code: &'static str,
) -> Result<Vec<(String, TemplateArgument)>, Diagnostic> {
    one_of(file, kernel, code, None)
}

/// The same for the first of several instances, those in front that are launched. What stands in a template itself is what its first instance makes of it.
///
/// # Errors
/// With this code: the file instantiates it nowhere, or in a way that is not known.
pub fn first_instance(
    file: &File,
    kernel: &Header,
    code: &'static str,
) -> Result<Vec<(String, TemplateArgument)>, Diagnostic> {
    one_of(file, kernel, code, Some(DEEPEST))
}

/// Most templates that instantiate each other.
const DEEPEST: usize = 4;

/// The only instance, or the first one where `first` templates may still be around it.
fn one_of(
    file: &File,
    kernel: &Header,
    code: &'static str,
    first: Option<usize>,
) -> Result<Vec<(String, TemplateArgument)>, Diagnostic> {
    let Some(parameters) = &kernel.template else {
        return Ok(Vec::new());
    };
    let name = &kernel.name.text;
    let refuse = |what: String| {
        let problem = Diagnostic::error(code, what);
        problem.label(kernel.name.span.clone(), "this template")
    };
    let special = format!("{name}<");
    if let Some(other) = file
        .kernels
        .iter()
        .find(|k| k.name.text.starts_with(&special))
    {
        let problem = refuse(format!("`{name}` is specialised"));
        return Err(problem.label(other.name.span.clone(), "here"));
    }
    let mut found: Option<(Vec<TemplateArgument>, Span)> = None;
    let mut instances: Vec<&Instance> = file.instances_of(kernel).collect();
    if first.is_some() {
        // What is launched tells more than what is only compiled.
        instances.sort_by_key(|instance| !is_launched(file, instance));
    }
    for instance in instances {
        let at = &instance.name.span;
        let Some(given) = &instance.arguments else {
            let what = format!("what `{name}` is instantiated with is not known here");
            let problem = refuse(what).label(at.clone(), "the compiler finds it out");
            return Err(problem.help(format!("write `{name}<…>`")));
        };
        let all = complete(parameters, given, at).ok_or_else(|| {
            let what = format!("`{name}` is instantiated with arguments of another kind");
            refuse(what).label(at.clone(), "here")
        })?;
        let all = match first {
            Some(deep) => inside(file, all, at, code, deep)?,
            None => all,
        };
        match &found {
            Some(_) if first.is_some() => break,
            None => found = Some((all, at.clone())),
            Some((before, first)) if !same(file, before, &all) => {
                let what = format!("`{name}` is instantiated in several ways");
                return Err(refuse(what)
                    .label(first.clone(), "in this way")
                    .label(at.clone(), "and in this"));
            }
            Some(_) => {}
        }
    }
    let given = match found {
        Some((given, _)) => given,
        None => complete(parameters, &[], &kernel.name.span).ok_or_else(|| {
            let problem = refuse(format!("`{name}` is instantiated nowhere in this file"));
            problem.help(format!("add `template __global__ void {name}<…>(…);`"))
        })?,
    };
    let names = parameters.iter().map(|parameter| parameter.name.clone());
    Ok(names.zip(given).collect())
}

/// Does a launch follow an instance's name?
fn is_launched(file: &File, instance: &Instance) -> bool {
    let rest = file.source.text.get(instance.name.span.end..);
    let statement = rest.and_then(|rest| rest.split(';').next());
    statement.is_some_and(|statement| statement.contains("<<<"))
}

/// Arguments that are parameters of the template around them, as its first instance has them.
fn inside(
    file: &File,
    all: Vec<TemplateArgument>,
    at: &Span,
    code: &'static str,
    deep: usize,
) -> Result<Vec<TemplateArgument>, Diagnostic> {
    let is_around = |h: &&Header| h.span.start <= at.start && at.end <= h.span.end;
    let around = file.functions.iter().find(is_around);
    let Some(around) = around.filter(|h| h.template.is_some() && deep > 0) else {
        return Ok(all);
    };
    let named = |argument: &TemplateArgument| match argument {
        TemplateArgument::Type(ty) => word(ty),
        TemplateArgument::Value(value) => print::expr(value),
    };
    let own = around.template.iter().flatten();
    let own: Vec<&str> = own.map(|parameter| parameter.name.as_str()).collect();
    if !all.iter().any(|a| own.contains(&&*named(a))) {
        return Ok(all);
    }
    let given = one_of(file, around, code, Some(deep - 1))?;
    let replaced = |argument: TemplateArgument| {
        let name = named(&argument);
        let found = given.iter().find(|(own, _)| *own == name);
        found.map_or(argument, |(_, given)| given.clone())
    };
    Ok(all.into_iter().map(replaced).collect())
}

/// The arguments of all parameters: those that are given, then defaults.
fn complete(
    parameters: &[TemplateParameter],
    given: &[TemplateArgument],
    at: &Span,
) -> Option<Vec<TemplateArgument>> {
    if given.len() > parameters.len() {
        return None;
    }
    let mut all = Vec::new();
    for (number, parameter) in parameters.iter().enumerate() {
        let argument = given.get(number).or(parameter.default.as_ref())?;
        all.push(match (argument, &parameter.ty) {
            // A single name looks like a type to the grammar.
            (TemplateArgument::Type(Type::Named(name)), Some(_)) => TemplateArgument::Value(Expr {
                kind: ExprKind::Name(name.clone()),
                span: at.clone(),
            }),
            (TemplateArgument::Type(_), None) | (TemplateArgument::Value(_), Some(_)) => {
                argument.clone()
            }
            _ => return None,
        });
    }
    Some(all)
}

fn same(file: &File, a: &[TemplateArgument], b: &[TemplateArgument]) -> bool {
    let text = |argument: &TemplateArgument| match argument {
        TemplateArgument::Type(ty) => file.type_named(&word(ty)),
        TemplateArgument::Value(value) => print::expr(value),
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| text(a) == text(b))
}

/// The name of a type; one that no type has for a pointer.
pub fn word(ty: &Type) -> String {
    match ty.bare() {
        Type::Named(name) => name.clone(),
        // No number, so refused where it is used.
        _ => "a pointer".to_owned(),
    }
}
