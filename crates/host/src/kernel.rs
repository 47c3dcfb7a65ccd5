//! A kernel's definition: which one is meant, its head, and what that says.

use warpwright_cudac::ast::{Function, Parameter, Type};
use warpwright_cudac::diag::Source;
use warpwright_cudac::{File, Header};
use warpwright_launch::ElemType;
use warpwright_pass::names::{base_name, parameters_of, selected, source_name};

use crate::error::Error;
use crate::{number, signature};

/// The definition of the kernel that is wanted, in the file or else in the file with its headers.
pub(crate) fn defined<'f>(
    (file, whole): (&'f File, Option<&'f File>),
    (symbols, wanted): (&[String], Option<&str>),
) -> Result<(&'f File, Option<&'f Header>, String), Error> {
    let (header, symbol) = chosen(file, symbols, wanted)?;
    let there = whole.filter(|_| header.is_none());
    let there = there.and_then(|whole| Some((whole, chosen(whole, symbols, wanted).ok()?.0?)));
    Ok(match there {
        Some((whole, header)) => (whole, Some(header), symbol),
        None => (file, header, symbol),
    })
}

/// The kernel's definition, if it is found, and symbol.
pub(crate) fn chosen<'f>(
    file: &'f File,
    symbols: &[String],
    wanted: Option<&str>,
) -> Result<(Option<&'f Header>, String), Error> {
    let found: Vec<&str> = match wanted {
        Some(wanted) => selected(wanted, symbols),
        None => symbols.iter().map(String::as_str).collect(),
    };
    let [symbol] = found[..] else {
        return Err(Error::NotOne {
            file: file.source.name.clone(),
            wanted: wanted.map(str::to_owned),
            found: found.into_iter().map(str::to_owned).collect(),
            all: symbols.to_vec(),
        });
    };
    let base = base_name(symbol);
    let headers = file
        .kernels
        .iter()
        .filter(|header| header.name.text == base);
    let headers: Vec<&Header> = headers.collect();
    // Of overloads the one with the types of the symbol.
    let types = parameter_types(symbol);
    let is_it = |header: &&&Header| {
        let function = read_head(file, header);
        function.is_ok_and(|function| is_overload(file, &function, &types))
    };
    let header = match headers[..] {
        [only] => Some(only),
        _ => headers.iter().find(is_it).copied(),
    };
    Ok((header, symbol.to_owned()))
}

/// The kernel without its body, of which nothing has to be understood: as the source has it, or where that is not
/// understood or stands elsewhere, with the types of its symbol.
pub(crate) fn head(file: &File, header: Option<&Header>, symbol: &str) -> Result<Function, Error> {
    let read = match header {
        Some(header) => read_head(file, header),
        None => Err(Error::NotFound {
            symbol: symbol.to_owned(),
            file: file.source.name.clone(),
        }),
    };
    read.or_else(|failure| signature::of(file, header, symbol).ok_or(failure))
}

/// The names of a kernel's parameters, in order.
pub fn parameter_names(file: &File, header: &Header) -> Option<Vec<String>> {
    let function = read_head(file, header).ok()?;
    let names = function.parameters.into_iter();
    Some(names.map(|parameter| parameter.name.text).collect())
}

fn read_head(file: &File, header: &Header) -> Result<Function, Error> {
    let definition = &file.source.text[header.span.clone()];
    let head = definition.split('{').next().unwrap_or(definition);
    // At its own place, for what is said of it.
    let before = file.source.text[..header.span.start].bytes();
    let place = before.map(|byte| if byte == b'\n' { '\n' } else { ' ' });
    let text = format!("{}{head}{{}}", place.collect::<String>());
    let failed = |problem| Error::Syntax(Box::new(problem), file.source.clone());
    let alone = File::parse(Source::new(&*file.source.name, text)).map_err(failed)?;
    let header = alone
        .kernels
        .first()
        .ok_or_else(|| Error::Head(header.name.text.clone()))?;
    alone.kernel(header).map_err(failed)
}

/// The threads of `__launch_bounds__(threads, …)` in a kernel's head, if that is a number.
pub(crate) fn own_bound(file: &File, kernel: &str) -> Option<Vec<u32>> {
    let text = &file.source.text;
    let header = file.kernels.iter().find(|h| h.name.text == kernel)?;
    let head = text.get(header.span.clone())?.split('{').next()?;
    let (_, inside) = head.split_once("__launch_bounds__")?;
    let inside = inside.trim_start().strip_prefix('(')?;
    let first = inside.split([',', ')']).next()?;
    let threads = number(text, first, header.span.start)?;
    Some(vec![threads])
}

/// The types of a kernel's parameters as its symbol has them.
pub(crate) fn parameter_types(symbol: &str) -> Vec<String> {
    parameters_of(&source_name(symbol))
}

/// `double` of `double const*`.
pub(crate) fn element(ty: &str) -> &str {
    let ty = ty.trim().trim_end_matches(['*', ' ']);
    ty.strip_suffix(" const").unwrap_or(ty)
}

/// Can a kernel of these parameters have a symbol with these types? Templates are not looked into.
fn is_overload(file: &File, function: &Function, types: &[String]) -> bool {
    let one = |(parameter, ty): (&Parameter, &String)| {
        let (mut own, mut pointers) = (parameter.ty.bare(), 0);
        while let Type::Pointer(inner, _) | Type::Array(inner, _) = own {
            own = inner.bare();
            pointers += 1;
        }
        let Type::Named(own) = own else {
            return false;
        };
        let own = file.type_named(own);
        let same = |a: &str, b: &str| {
            a == b || ElemType::from_name(a).is_some_and(|t| Some(t) == ElemType::from_name(b))
        };
        pointers == ty.matches('*').count() && same(&own, element(ty))
    };
    function.parameters.len() == types.len() && function.parameters.iter().zip(types).all(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_has_the_types_of_its_instance() {
        // `void rk4<double, 10>(double const*, double*, unsigned int, Pair<int, float>)`
        let types = parameter_types("_Z3rk4IdLi10EEvPKT_PS0_j4PairIifE");
        assert_eq!(types.len(), 4, "{types:?}");
        let elements: Vec<&str> = types.iter().map(|ty| element(ty)).collect();
        assert_eq!(elements[..3], ["double", "double", "unsigned int"]);
        assert_eq!(elements[3], "Pair<int, float>");
        assert!(parameter_types("k").is_empty() && parameter_types("_Z1kv").len() < 2);
    }

    #[test]
    fn a_bound_of_the_kernel_is_found() {
        let bounded = "#define T 96\n__global__ void __launch_bounds__ (T, 2) k(float *x) { x[0] = 1; }\n\
                       __global__ void free(float *x) { x[0] = 1; }";
        let bounded = File::parse(Source::new("k.cu", bounded)).unwrap();
        assert_eq!(own_bound(&bounded, "k"), Some(vec![96]));
        assert_eq!(own_bound(&bounded, "free"), None);
    }
}
