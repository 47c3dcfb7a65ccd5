//! `warpwright launch`: the start of a launch description, from the code's own launch or from a trace. What is guessed
//! says so.

use std::fmt::Write;

use warpwright::own_launch::{arguments, numbers, own_launches};
use warpwright_cudac::ast::{Function, Parameter, Type};
use warpwright_cudac::diag::{Source, render_all};
use warpwright_cudac::{File, Header};
use warpwright_launch::{ElemType, LaunchFile};
use warpwright_pass::names::{is_named, selected, source_name};
use warpwright_target::{Gpu, Resources, occupancy};

use super::inplace::document;
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
    grid: Option<Vec<u32>>,
    block: Option<Vec<u32>>,
    dynamic_smem: u32,
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
    let text = description(&name.unwrap_or_default(), &symbol, &function, &shape, &file)?;
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
        let names: Vec<String> = symbols.iter().map(|symbol| source_name(symbol)).collect();
        let names = warpwright::device_code::some_names(&names);
        let file = &file.source.name;
        return Err(Failure::input(match (wanted, found.len()) {
            _ if symbols.is_empty() => format!("`{file}` has no kernel"),
            (Some(wanted), 0) => format!("`{file}` has no kernel `{wanted}`; it has {names}"),
            (Some(wanted), found) => format!("`{wanted}` names {found} kernels of {names}"),
            (None, _) => format!("name one kernel with --kernel: {names}"),
        }));
    };
    let mut headers = file.kernels.iter();
    let header = headers.find(|header| is_named(&header.name.text, symbol));
    let header = header.ok_or_else(|| {
        Failure::input(format!("the definition of `{symbol}` is not in this file"))
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
    let mut shape = Shape::default();
    if let Some(path) = &args.trace {
        let trace = document::read(path)?;
        let launched = trace.launches.iter().find(|l| l.kernel == symbol);
        let launched = launched.ok_or_else(|| {
            Failure::input(format!("`{}` has no launch of `{symbol}`", path.display()))
        })?;
        shape = Shape {
            grid: Some(launched.grid.to_vec()),
            block: Some(launched.block.to_vec()),
            dynamic_smem: launched.dynamic_smem,
            source: "the trace",
            is_stated: false,
        };
    } else if let Some(own) = own_launches(text, kernel).into_iter().next() {
        shape = Shape {
            grid: own.grid,
            block: own.block,
            dynamic_smem: own.dynamic_smem,
            source: "the code's launch",
            is_stated: false,
        };
    }
    if let Some(block) = args.block {
        shape.block = Some(block.to_vec());
        shape.is_stated = true;
    }
    shape.dynamic_smem = args.dynamic_smem.unwrap_or(shape.dynamic_smem);
    Ok(shape)
}

/// What is stated has to fit a block of the GPU.
fn can_be_launched(shape: &Shape, gpu: &Gpu) -> Result<(), Failure> {
    let block = shape.block.iter().flatten();
    let need = Resources {
        block_threads: block.fold(1, |threads: u32, extent| threads.saturating_mul(*extent)),
        dynamic_smem: shape.dynamic_smem,
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
    let inside = inside.trim_start().strip_prefix('(')?.split_once(')')?.0;
    numbers(arguments(inside).first()?, text, 1)
}

fn description(
    file: &str,
    symbol: &str,
    function: &Function,
    shape: &Shape,
    names: &File,
) -> Result<String, Failure> {
    // A bound of its own is what the kernel was written for.
    let bound = own_bound(names, &function.name.text);
    let block = shape.block.clone().or(bound.clone());
    let block = block.unwrap_or_else(|| vec![256]);
    let mut text = format!(
        "# A start, by `warpwright launch`: lines with `guess` want a look.\n\
         source = {file:?}\nkernel = {symbol:?}\n\n\
         [sizes.small]\nn = {SMALL}  # guess\n\n[sizes.full]\nn = {FULL}  # guess\n\n[launch]\n"
    );
    let list = |all: &[u32]| {
        all.iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    match &shape.grid {
        Some(grid) => {
            let _ = writeln!(text, "grid = [{}]  # {}", list(grid), shape.source);
        }
        None => {
            let _ = writeln!(text, "grid = [\"ceil_div(n, {})\"]  # guess", block[0]);
        }
    }
    let from = match (&shape.block, shape.is_stated) {
        (None, _) if bound.is_some() => "guess: the kernel's own bound",
        (None, _) => "guess",
        (Some(_), true) => "--block",
        (Some(_), false) => shape.source,
    };
    let _ = writeln!(text, "block = [{}]  # {from}", list(&block));
    if shape.dynamic_smem > 0 {
        let _ = writeln!(text, "dynamic_smem = {}", shape.dynamic_smem);
    }
    let demangled = source_name(symbol);
    let instances = instance_types(&demangled);
    for (at, parameter) in function.parameters.iter().enumerate() {
        text += &argument(parameter, names, instances.get(at).copied())?;
    }
    Ok(text)
}

/// The types of a kernel's parameters as its symbol has them: without templates, pointers and `const`.
fn instance_types(demangled: &str) -> Vec<&str> {
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
    let Some((at, _)) = open else {
        return Vec::new();
    };
    let mut depth = 0;
    let types = inside[at + 1..].split(|c| {
        depth += match c {
            '<' | '(' => 1,
            '>' | ')' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    });
    types.map(element).filter(|ty| !ty.is_empty()).collect()
}

/// `double` of `double const*`.
fn element(ty: &str) -> &str {
    let ty = ty.trim().trim_end_matches(['*', ' ']);
    ty.strip_suffix(" const").unwrap_or(ty)
}

/// The table of a parameter.
fn argument(
    parameter: &Parameter,
    names: &File,
    instance: Option<&str>,
) -> Result<String, Failure> {
    let name = &parameter.name.text;
    let unknown = |what: &str| {
        Failure::input(format!(
            "parameter `{name}` is {what}: write its table by hand (docs/launch.md, `fields` for structures)"
        ))
    };
    let (mut ty, mut is_pointer, mut is_const) = (&parameter.ty, false, false);
    loop {
        match ty {
            Type::Const(inner) => {
                is_const = true;
                ty = inner;
            }
            Type::Pointer(inner, _) if !is_pointer => {
                is_pointer = true;
                // What is const is the pointer so far.
                is_const = false;
                ty = inner;
            }
            Type::Named(_) => break,
            _ => return Err(unknown("of a type that is not understood")),
        }
    }
    let Type::Named(written) = ty else {
        return Err(unknown("of a type that is not understood"));
    };
    let known = ElemType::from_name(written);
    let known = known.or_else(|| ElemType::from_name(&names.type_named(written)));
    let known = known.or_else(|| ElemType::from_name(instance?));
    let element = known.ok_or_else(|| unknown(&format!("of type `{written}`")))?;
    let mut text = format!(
        "\n[[args]]\nname = {name:?}\ntype = \"{}\"\n",
        element.name()
    );
    // Sizes do not fit the narrowest numbers.
    let is_narrow = element.size() < 4;
    match (is_pointer, element.is_float()) {
        (false, false) if is_narrow => text += "value = 1  # guess\n",
        (false, true) => text += "value = 1.0  # guess\n",
        (false, false) => text += "value = \"n\"  # guess\n",
        (true, is_float) => {
            text += "shape = [\"n\"]  # guess\n";
            text += match is_float {
                true => "init = { kind = \"uniform\", low = -1.0, high = 1.0 }  # guess\n",
                false if is_narrow => "init = { kind = \"indices\", bound = 100 }  # guess\n",
                false => "init = { kind = \"indices\", bound = \"n\" }  # guess\n",
            };
            if !is_const {
                text += "output = true\n";
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_has_the_types_of_its_instance() {
        let name = "void rk4<double, 10>(double const*, double*, unsigned int, Pair<int, float>)";
        let types = instance_types(name);
        assert_eq!(
            types,
            ["double", "double", "unsigned int", "Pair<int, float>"]
        );
        assert!(instance_types("k").is_empty());
        assert_eq!(instance_types("k()"), [""; 0]);
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
