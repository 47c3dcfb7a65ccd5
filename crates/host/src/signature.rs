//! A kernel's head by its symbol: for what stands in a macro or a header, and for types that are outside the subset of CUDA C
//! that is understood (`volatile`, `struct X *`, pointers to arrays).

use warpwright_cudac::ast::{Block, Function, Ident, Parameter, Type};
use warpwright_cudac::{File, Header};
use warpwright_pass::names::{base_name, parameters_of};

use crate::kernel::parameter_types;

/// Words that change nothing about what memory a parameter is.
const IDLE: [&str; 6] = [
    "volatile",
    "__restrict__",
    "struct",
    "class",
    "union",
    "enum",
];

/// The head; none of a symbol that has no types (`extern "C"`), or such as are not understood.
pub fn of(file: &File, header: Option<&Header>, symbol: &str) -> Option<Function> {
    let types = parameter_types(symbol);
    let types: Vec<&String> = types
        .iter()
        .filter(|ty| !["", "void"].contains(&ty.as_str()))
        .collect();
    if !symbol.starts_with("_Z") {
        return None;
    }
    let names = header.map_or_else(Vec::new, |header| {
        names(&file.source.text[header.span.clone()])
    });
    let name = |at: usize| match names.len() == types.len() {
        true => names[at].clone(),
        false => format!("param{at}"),
    };
    let ident = |text: String| Ident { text, span: 0..0 };
    let parameter = |(at, ty): (usize, &&String)| {
        Some(Parameter {
            name: ident(name(at)),
            ty: spelled(ty)?,
            is_reference: false,
            span: 0..0,
        })
    };
    Some(Function {
        name: ident(base_name(symbol)),
        head: String::new(),
        result: Type::Named("void".into()),
        parameters: types
            .iter()
            .enumerate()
            .map(parameter)
            .collect::<Option<_>>()?,
        body: Block::default(),
        span: header.map_or(0..0, |header| header.span.clone()),
    })
}

/// A type as a symbol has it: `float const (*) [64]`.
fn spelled(text: &str) -> Option<Type> {
    // A pointer to an array points to the array's elements.
    let text = match text.split_once("(*)") {
        Some((element, array)) if array.trim_start().starts_with('[') => format!("{element}*"),
        Some(_) => return None,
        None => text.to_owned(),
    };
    let (mut base, mut pointers) = (text.trim_end(), 0);
    while let Some(rest) = base.strip_suffix('*').or_else(|| qualified_pointer(base)) {
        pointers += usize::from(base.ends_with('*'));
        base = rest.trim_end();
    }
    if base.contains(['(', '&', '[']) {
        return None;
    }
    let (base, is_const) = match base.strip_suffix(" const") {
        Some(base) => (base, true),
        None => (base, false),
    };
    let words = base.split_whitespace();
    let words: Vec<&str> = words.filter(|word| !IDLE.contains(word)).collect();
    let mut ty = Type::Named(words.join(" "));
    if is_const {
        ty = Type::Const(Box::new(ty));
    }
    for _ in 0..pointers {
        ty = Type::Pointer(Box::new(ty), false);
    }
    Some(ty).filter(|_| !words.is_empty())
}

/// A pointer without what is said of itself: `float*` of `float* const`.
fn qualified_pointer(text: &str) -> Option<&str> {
    let qualifiers = ["const", "volatile", "__restrict__", "__restrict"];
    let rest = qualifiers.iter().find_map(|word| text.strip_suffix(word))?;
    Some(rest.trim_end()).filter(|rest| rest.ends_with('*'))
}

/// The names of parameters in a head, the last word of each.
fn names(definition: &str) -> Vec<String> {
    let head = definition.split('{').next().unwrap_or_default();
    let parts = parameters_of(head.trim_end());
    let name = |part: &String| {
        let part = part.split('[').next().unwrap_or_default();
        let mut words = part.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let last = words.rfind(|word| !word.is_empty());
        last.map(str::to_owned)
    };
    let names = parts.iter().map(name).collect::<Option<_>>();
    names.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_symbols() {
        let named = |name: &str| Type::Named(name.into());
        let pointer = |to: Type| Type::Pointer(Box::new(to), false);
        let constant = |of: Type| Type::Const(Box::new(of));
        for (text, ty) in [
            ("unsigned int", named("unsigned int")),
            ("float volatile*", pointer(named("float"))),
            ("P const*", pointer(constant(named("P")))),
            ("float (*) [64]", pointer(named("float"))),
            ("float const (*) [8][64]", pointer(constant(named("float")))),
            ("float* const", pointer(named("float"))),
            ("double**", pointer(pointer(named("double")))),
            ("ns::View<float, 3>", named("ns::View<float, 3>")),
        ] {
            assert_eq!(spelled(text), Some(ty), "{text}");
        }
        for text in ["void (*)(int)", "", "int (&) [3]"] {
            assert_eq!(spelled(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_the_last_words() {
        let head = "__global__ void __launch_bounds__(64) k(struct P *p, float (*a)[N], const T b[], A<1, 2> c) {";
        assert_eq!(names(head), ["p", "a", "b", "c"]);
        assert!(names("__global__ void k() {").is_empty());
    }
}
