//! `warpwright launch`: the start of a launch description, from the code's own launch or from a trace. What is guessed
//! says so.

use std::fmt::Write;

use warpwright_cudac::ast::{Function, Parameter, Type};
use warpwright_cudac::diag::{Source, render_all};
use warpwright_cudac::launches::{Extents, HostCode, numbers};
use warpwright_cudac::{File, Header};
use warpwright_launch::{ElemType, LaunchFile};
use warpwright_pass::names::{base_name, parameters, selected, source_name, template_arguments};
use warpwright_ptx::Module;
use warpwright_target::{Gpu, Resources, occupancy};

use super::inplace::document;
use super::parameters::{Known, table};
use crate::args::{Cli, LaunchArgs};
use crate::failure::Failure;
use crate::input::{self, Level, write_atomically};
use crate::session;

/// Elements of a buffer whose length nobody knows: a size that the emulator runs in seconds, and one for a GPU. Whole
/// blocks of them: kernels without a check of bounds run as they are.
const SMALL: u32 = 1 << 10;
const FULL: u32 = 10 << 20;

/// What is known of the launch.
#[derive(Debug, Default)]
struct Shape {
    /// As far as it is known; empty where it is not.
    grid: Extents,
    block: Option<Vec<u32>>,
    dynamic_smem: Option<u32>,
    /// Where it comes from.
    source: &'static str,
    /// The block was stated.
    is_stated: bool,
}

/// Runs the command.
pub fn run(cli: &Cli, args: &LaunchArgs) -> Result<(), Failure> {
    let input = input::read(&args.file)?;
    if input.level != Level::Cuda {
        return Err(Failure::input(format!(
            "`{}` is no CUDA C: the names and types of parameters stand in the source alone",
            input.name
        )));
    }
    let file = super::cuda::read(cli, &input, None, &args.nvcc)?;
    let module = session::module(cli, &input, None, &args.nvcc, false)?;
    let symbols: Vec<String> = module.kernels().map(|(_, f)| f.name.to_string()).collect();
    let (header, symbol) = chosen(&file, &symbols, args.kernel.as_deref())?;
    let function = head(&file, header)?;
    let shape = shape(args, input.text()?, &header.name.text, &symbol)?;
    let gpu = session::target(&module, None)?;
    can_be_launched(&shape, &gpu)?;
    let name = input.path.file_name().map(|name| name.to_string_lossy());
    let about = (&file, &module);
    let text = description(&name.unwrap_or_default(), &symbol, &function, &shape, about)?;
    // What is written has to be what is read.
    LaunchFile::parse(&text, "the description")
        .and_then(|file| file.resolve("small", &[]))
        .map_err(|e| Failure::Internal(format!("a launch description that is none: {e}")))?;
    match &args.output {
        Some(output) => {
            write_atomically(output, text.as_bytes())?;
            println!(
                "wrote {}: look at what it marks as a guess",
                output.display()
            );
        }
        None => crate::terminal::document(&text),
    }
    Ok(())
}

/// The kernel's definition and symbol.
fn chosen<'f>(
    file: &'f File,
    symbols: &[String],
    wanted: Option<&str>,
) -> Result<(&'f Header, String), Failure> {
    let found: Vec<&str> = match wanted {
        Some(wanted) => selected(wanted, symbols),
        None => symbols.iter().map(String::as_str).collect(),
    };
    let [symbol] = found[..] else {
        let names = warpwright::device_code::some_names(symbols);
        let file = &file.source.name;
        return Err(Failure::input(match (wanted, found.len()) {
            _ if symbols.is_empty() => format!("`{file}` has no kernel"),
            (Some(wanted), 0) => format!("`{file}` has no kernel `{wanted}`; it has {names}"),
            (Some(wanted), count) => {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                let names = warpwright::device_code::some_names(&found);
                format!("`{wanted}` names {count} kernels: {names}")
            }
            (None, _) => format!("name one kernel with --kernel: {names}"),
        }));
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
        let function = head(file, header);
        function.is_ok_and(|function| is_overload(file, &function, &types))
    };
    let header = match headers[..] {
        [only] => Some(only),
        _ => headers.iter().find(is_it).copied(),
    };
    let header = header.ok_or_else(|| {
        Failure::input(format!(
            "the definition of `{}` is not found in `{}`: it stands in a header, or is not understood; write the \
             description by hand (docs/launch.md)",
            source_name(symbol),
            file.source.name
        ))
    })?;
    Ok((header, symbol.to_owned()))
}

/// The kernel without its body, of which nothing has to be understood.
fn head(file: &File, header: &Header) -> Result<Function, Failure> {
    let definition = &file.source.text[header.span.clone()];
    let head = definition.split('{').next().unwrap_or(definition);
    let source = Source::new(&*file.source.name, format!("{head}{{}}"));
    let failed = |problem| Failure::Rendered(render_all(&[problem], &source));
    let alone = File::parse(source.clone()).map_err(failed)?;
    let header = alone.kernels.first().ok_or_else(|| {
        Failure::input(format!(
            "the head of `{}` is not understood",
            header.name.text
        ))
    })?;
    alone.kernel(header).map_err(failed)
}

/// The launch: what is stated, else the trace's, else the code's own.
fn shape(args: &LaunchArgs, text: &str, kernel: &str, symbol: &str) -> Result<Shape, Failure> {
    let mut shape = Shape {
        dynamic_smem: Some(0),
        ..Shape::default()
    };
    if let Some(path) = &args.trace {
        let trace = document::read(path)?;
        let launched = trace.launches.iter().find(|l| l.kernel == symbol);
        let launched = launched.ok_or_else(|| {
            Failure::input(format!("`{}` has no launch of `{symbol}`", path.display()))
        })?;
        shape = Shape {
            grid: launched.grid.map(Some).to_vec(),
            block: Some(launched.block.to_vec()),
            dynamic_smem: Some(launched.dynamic_smem),
            source: "the trace",
            is_stated: false,
        };
    } else {
        let code = HostCode::new(text, &args.nvcc);
        let launches = code.launches(kernel, &template_arguments(symbol));
        if let Some(own) = launches.into_iter().next() {
            shape = Shape {
                block: numbers(&own.block),
                grid: own.grid,
                dynamic_smem: own.dynamic_smem,
                source: "the code's launch",
                is_stated: false,
            };
        }
    }
    if let Some(block) = args.block {
        shape.block = Some(block.to_vec());
        shape.is_stated = true;
    }
    shape.dynamic_smem = args.dynamic_smem.or(shape.dynamic_smem);
    Ok(shape)
}

/// What is stated has to fit a block of the GPU.
fn can_be_launched(shape: &Shape, gpu: &Gpu) -> Result<(), Failure> {
    let block = shape.block.iter().flatten();
    let need = Resources {
        block_threads: block.fold(1, |threads: u32, extent| threads.saturating_mul(*extent)),
        dynamic_smem: shape.dynamic_smem.unwrap_or(0),
        regs: 1,
        ..Resources::default()
    };
    match occupancy(gpu, &need) {
        Ok(_) => Ok(()),
        Err(why) => Err(Failure::input(why.to_string())),
    }
}

/// The threads of `__launch_bounds__(threads, …)` in a kernel's head, if that is a number.
fn own_bound(file: &File, kernel: &str) -> Option<Vec<u32>> {
    let text = &file.source.text;
    let header = file.kernels.iter().find(|h| h.name.text == kernel)?;
    let head = text.get(header.span.clone())?.split('{').next()?;
    let (_, inside) = head.split_once("__launch_bounds__")?;
    let inside = inside.trim_start().strip_prefix('(')?;
    let first = inside.split([',', ')']).next()?;
    let threads = HostCode::new(text, &[]).number(first, header.span.start)?;
    Some(vec![threads])
}

/// The extent of a domain of so many dimensions that has about this many elements, in whole blocks.
fn side(elements: u32, dimensions: usize, block: &[u32]) -> u32 {
    let root = f64::from(elements).powf(1.0 / dimensions as f64).round() as u32;
    let extents = block.iter().take(dimensions).copied();
    let whole = extents.fold(1, |all: u32, extent| all.max(extent.next_power_of_two()));
    root.next_multiple_of(whole)
}

fn description(
    file: &str,
    symbol: &str,
    function: &Function,
    shape: &Shape,
    (names, module): (&File, &Module),
) -> Result<String, Failure> {
    // A bound of its own is what the kernel was written for.
    let bound = own_bound(names, &function.name.text);
    let block = shape.block.clone().or(bound.clone());
    let block = block.unwrap_or_else(|| vec![256]);
    let used = ["Idx.y", "Idx.z"].map(|axis| uses(names, &function.name.text, axis));
    let own = 1 + usize::from(used[0]).max(2 * usize::from(used[1]));
    let dimensions = match shape.grid.len() {
        0 => own.max(block.len()),
        said => said.max(block.len()).min(own.max(block.len())),
    };
    let [small, full] = [SMALL, FULL].map(|all| side(all, dimensions, &block));
    let mut text = format!(
        "# A start, by `warpwright launch`: lines with `guess` want a look.\n\
         source = {file:?}\nkernel = {symbol:?}\n\n\
         [sizes.small]\nn = {small}  # guess\n\n[sizes.full]\nn = {full}  # guess\n\n[launch]\n"
    );
    let list = |all: &[String]| all.join(", ");
    let extent = |at: usize| match shape.grid.get(at).copied().flatten() {
        Some(number) => number.to_string(),
        None => format!("\"ceil_div(n, {})\"", block.get(at).unwrap_or(&1)),
    };
    let said = shape.grid.iter().flatten().count();
    let grid: Vec<String> = (0..shape.grid.len().max(dimensions)).map(extent).collect();
    let _ = match said > 0 && said == shape.grid.len() {
        true => writeln!(text, "grid = [{}]  # {}", list(&grid[..said]), shape.source),
        false => writeln!(text, "grid = [{}]  # guess", list(&grid)),
    };
    let from = match (&shape.block, shape.is_stated) {
        (None, _) if bound.is_some() => "guess: the kernel's own bound",
        (None, _) => "guess",
        (Some(_), true) => "--block",
        (Some(_), false) => shape.source,
    };
    let numbers: Vec<String> = block.iter().map(u32::to_string).collect();
    let _ = writeln!(text, "block = [{}]  # {from}", list(&numbers));
    match shape.dynamic_smem {
        Some(0) => {}
        Some(bytes) => {
            let _ = writeln!(text, "dynamic_smem = {bytes}");
        }
        None => text += "dynamic_smem = 0  # guess: the code's launch computes it\n",
    }
    let types = parameter_types(symbol);
    let compiled = module.function(symbol).map(|id| &module.functions[id]);
    for (at, parameter) in function.parameters.iter().enumerate() {
        let compiled = compiled.and_then(|f| f.params.get(at));
        let variable = compiled.map(|param| &module.variables[param.var]);
        let known = Known {
            instance: types.get(at).map(|ty| element(ty)),
            bytes: variable.map(|v| (v.bytes() as usize, v.alignment() as usize)),
            dimensions,
        };
        text += &table(parameter, names, &known)?;
    }
    Ok(text)
}

/// Does the kernel of a name read a place of its threads or blocks along this axis?
fn uses(file: &File, kernel: &str, axis: &str) -> bool {
    let header = file.kernels.iter().find(|h| h.name.text == kernel);
    let definition = header.and_then(|header| file.source.text.get(header.span.clone()));
    definition.is_some_and(|text| text.contains(axis))
}

/// The types of a kernel's parameters as its symbol has them.
fn parameter_types(symbol: &str) -> Vec<String> {
    let demangled = source_name(symbol);
    let Some(inside) = demangled.strip_suffix(')') else {
        return Vec::new();
    };
    let mut depth = 1;
    let open = inside.char_indices().rev().find(|(_, c)| {
        depth += match c {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        depth == 0
    });
    open.map_or_else(Vec::new, |(at, _)| parameters(&inside[at + 1..]))
}

/// `double` of `double const*`.
fn element(ty: &str) -> &str {
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

    #[test]
    fn domains_are_whole_blocks() {
        assert_eq!(side(SMALL, 1, &[256]), SMALL);
        assert_eq!(side(SMALL, 2, &[16, 16]), 32);
        assert_eq!(side(SMALL, 2, &[48, 4]), 64);
        assert_eq!(side(SMALL, 3, &[32, 4, 1]), 32);
    }
}
