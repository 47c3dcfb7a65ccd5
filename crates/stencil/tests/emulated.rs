//! What a kernel is taken for is what it computes: nvcc compiles it without contraction, the PTX
//! emulator runs it, and the results are the stencil's values on the host, to the bit. The benchmarks are
//! taken at small sizes, and so are the accepted kernels of `double` arrays.
//!
//! `// launch: GX GY GZ BX BY BZ` in a file says how it is launched, at the first size alone;
//! `// nvcc: OPTIONS` what nvcc is told. Files of `preprocessed/` need nvcc's preprocessor.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use warpwright_cudac::ast;
use warpwright_cudac::diag::Source;
use warpwright_cudac::{File, marked};
use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_ladder::with_variables;
use warpwright_launch::{ContentsError, LaunchFile};
use warpwright_ptx::Module;
use warpwright_stencil::evaluate::{Data, Sizes, evaluate};
use warpwright_stencil::extract;
use warpwright_stencil::ir::{Element, Expr, Function, Stencil};
use warpwright_stencil::versions::variables;
use warpwright_toolkit::{FindOptions, NvccJob, Toolkit};

/// All sizes, one after the other: a little more than one tile, and a little more than two.
const SIZES: [i64; 2] = [12, 19];

/// Threads along x, y and z of a block, where the kernel knows the direction.
const BLOCK: [i64; 3] = [32, 8, 2];

fn kernels() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in [
        "tests/stencils/accepted",
        "tests/stencils/preprocessed",
        "../../examples/stencils",
    ] {
        let entries = own.join(folder).read_dir().unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    files.retain(|path| path.extension().is_some_and(|e| e == "cu"));
    files.sort();
    files
}

/// The text with small sizes built in, and kernels with plain names.
fn small(text: &str, size: i64) -> String {
    let lines = text.lines().map(|line| {
        let mut words = line.split(' ');
        let sizes = ["N", "M", "L", "WIDTH", "HEIGHT"];
        match (words.next(), words.next(), words.next()) {
            (Some("#define"), Some(name), Some(value))
                if sizes.contains(&name) && value.parse::<i64>().is_ok() =>
            {
                format!("#define {name} {size}\n")
            }
            _ => format!("{line}\n"),
        }
    });
    let text: String = lines.collect();
    text
}

/// The words behind a mark of the file.
fn told<'t>(text: &'t str, mark: &str) -> Option<Vec<&'t str>> {
    let line = text.lines().find_map(|line| line.strip_prefix(mark))?;
    Some(line.split_whitespace().collect())
}

/// The launch of a kernel with these data, and the contents of its buffers by name.
fn describe(
    text: &str,
    entry: &str,
    function: &ast::Function,
    stencil: &Stencil,
    data: &Data,
    size: i64,
) -> (String, BTreeMap<String, Vec<u8>>) {
    let cells = stencil.dims.values().map(|d| match d.extent.parameter {
        None => d.extent.add,
        Some(_) => d.extent.add + size,
    });
    let cells = cells.max().unwrap_or(1);
    // A direction that the kernel does not know has one thread: others would do the same again.
    let knows = |what: &str, axis| text.contains(&format!("{what}.{axis}"));
    let mut block = [1; 3];
    let mut grid = [1; 3];
    for (n, axis) in ["x", "y", "z"].into_iter().enumerate() {
        if knows("threadIdx", axis) {
            block[n] = stencil.block[n].unwrap_or(BLOCK[n]);
        }
        if knows("blockIdx", axis) {
            let apart = stencil.computing[n].map_or(block[n], |(_, count)| count);
            grid[n] = cells / apart + 1;
        }
    }
    for (_, axis) in &stencil.from_grid {
        grid[usize::from(*axis)] = size;
    }
    if let Some(told) = told(text, "// launch: ") {
        let told: Vec<i64> = told.iter().map(|n| n.parse().unwrap()).collect();
        (grid, block) = ([told[0], told[1], told[2]], [told[3], told[4], told[5]]);
    }
    let mut toml = format!(
        "kernel = \"{entry}\"\n[sizes.small]\nn = {size}\n[launch]\ngrid = {grid:?}\nblock = {block:?}\n",
    );
    let mut files = BTreeMap::new();
    for parameter in &function.parameters {
        let name = &parameter.name.text;
        // Words of the compact language have other names in the stencil.
        let is = |theirs: &str| theirs == name || theirs == format!("own_{name}");
        let _ = writeln!(toml, "[[args]]\nname = \"{name}\"");
        if let Some((id, array)) = stencil.arrays.iter().find(|(_, a)| is(&a.name)) {
            let elements = &data.arrays[id];
            let bytes = elements.iter().flat_map(|v| v.to_le_bytes()).collect();
            files.insert(format!("{name}.bin"), bytes);
            let _ = writeln!(
                toml,
                "type = \"f64\"\nshape = [{}]\noutput = {}\n\
                 init = {{ kind = \"file\", path = \"{name}.bin\" }}",
                elements.len(),
                array.written
            );
        } else if let Some((id, _)) = stencil.scalars.iter().find(|(_, s)| is(&s.name)) {
            let _ = writeln!(toml, "type = \"f64\"\nvalue = {:?}", data.scalars[id]);
        } else {
            let is =
                |word| matches!(parameter.ty.bare(), ast::Type::Named(ty) if ty.contains(word));
            let bits = if is("size_t") || is("long") { 64 } else { 32 };
            let _ = writeln!(toml, "type = \"s{bits}\"\nvalue = {size}");
        }
    }
    (toml, files)
}

fn check(
    toolkit: &Toolkit,
    path: &Path,
    size: i64,
    compiled: &mut BTreeMap<String, String>,
) -> Result<bool, String> {
    let text = small(&std::fs::read_to_string(path).unwrap(), size);
    if size != SIZES[0] && told(&text, "// launch: ").is_some() {
        return Ok(false);
    }
    let name = path.file_name().unwrap().to_str().unwrap();
    let nvcc = toolkit.nvcc().map_err(|e| e.to_string())?;
    let folder = path.parent().unwrap();
    let mut job = NvccJob::new(path, "sm_90");
    job.include_dirs = vec![folder.to_owned()];
    let options = told(&text, "// nvcc: ").unwrap_or_default();
    job.extra = options.iter().map(Into::into).collect();
    let source = Source::new(name, text.clone());
    let file = if folder.ends_with("preprocessed") {
        let output = nvcc.preprocess(&job, &marked(&text));
        let output = output.map_err(|e| e.to_string())?;
        File::parse_preprocessed(source, name, &output)
    } else {
        File::parse(source)
    };
    let file = file.unwrap();
    assert_eq!(file.is_preprocessed, folder.ends_with("preprocessed"));
    let header = extract::choose(&file, None).map_err(|p| p.render(&file.source))?[0];
    let stencil = extract::extract(&file, header).map_err(|p| p[0].render(&file.source))?;
    let function = file.kernel(header).unwrap();
    // Launch descriptions here have no structures; `written_back` compares these.
    let is_structure = |p: &ast::Parameter| {
        let name = match p.ty.bare() {
            ast::Type::Named(name) => name,
            _ => return false,
        };
        let declared = [format!("struct {name} "), format!("}} {name};")];
        ["int2", "int3", "dim3"].contains(&&**name) || declared.iter().any(|d| text.contains(d))
    };
    if function.parameters.iter().any(is_structure) {
        return Ok(false);
    }
    let double = stencil.arrays.values().all(|a| a.element == Element::F64);
    let sizes: Sizes = stencil.parameters.values().map(|_| size).collect();
    let mut data = Data::sample(&stencil, &sizes).unwrap();
    if !double || data.arrays.values().any(|a| a.len() > 100_000) {
        return Ok(false);
    }

    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("kernel.cu");
    std::fs::write(&source, &text).unwrap();
    job.source = &source;
    job.extra.push("-fmad=false".into());
    // Many texts are the same at all sizes.
    let ptx = match compiled.get(&text) {
        Some(ptx) => ptx.clone(),
        None => nvcc.to_ptx(&job).map_err(|e| e.to_string())?.ptx,
    };
    compiled.insert(text.clone(), ptx.clone());
    let ptx = with_variables(&ptx, &variables(&stencil, &data));
    let (module, _) = Module::parse(name, &ptx);
    // The entry whose name, mangled or not, is the kernel's.
    let entries = ptx.lines().filter_map(|line| line.split(".entry ").nth(1));
    let mut entries = entries.map(|entry| entry.trim_end_matches(['(', ' ']));
    let kernel = &header.name.text;
    let mangled = format!("{}{kernel}", kernel.len());
    let entry = entries.find(|entry| entry == kernel || entry.contains(&mangled));
    let entry = entry.ok_or("no such entry in the PTX")?;
    let (toml, files) = describe(&text, entry, &function, &stencil, &data, size);
    evaluate(&stencil, &sizes, &mut data).unwrap();
    let launch = LaunchFile::parse(&toml, name).map_err(|e| e.to_string())?;
    let launch = launch.resolve("small", &[]).map_err(|e| e.to_string())?;
    let read = |name: &str| {
        let missing = || ContentsError::NoFiles(name.to_owned());
        files.get(name).cloned().ok_or_else(missing)
    };
    let buffers = launch.buffers().map(|b| b.materialize(&read));
    let buffers: Result<Vec<_>, _> = buffers.collect();
    let buffers = buffers.map_err(|e| e.to_string())?;
    let program = Emulator::new(&module, &launch.kernel).map_err(|e| e.to_string())?;
    let options = Options::default();
    let outcome = program.run(&launch, buffers, &options);
    let results = match outcome.map_err(|e| e.to_string())? {
        Outcome::Finished(results) => results,
        Outcome::Faulted(fault) => return Err(fault.to_string()),
    };
    let tolerance = tolerance(&stencil);
    for (buffer, bytes) in launch.buffers().zip(&results.buffers) {
        let own = format!("own_{}", buffer.name);
        let arrays = &stencil.arrays;
        let found = arrays
            .iter()
            .find(|(_, a)| a.name == buffer.name || a.name == own);
        let (id, _) = found.ok_or("a buffer that is no array")?;
        let computed = bytes.chunks_exact(8);
        let computed = computed.map(|b| f64::from_le_bytes(b.try_into().unwrap()));
        for (n, (ours, theirs)) in data.arrays[id].iter().zip(computed).enumerate() {
            if theirs.is_nan() || (ours - theirs).abs() > tolerance * ours.abs() {
                let name = &buffer.name;
                return Err(format!("`{name}`, element {n}: {theirs}, not {ours}"));
            }
        }
    }
    Ok(true)
}

/// How far relatively a value may be off: CUDA's `exp`, `log` and `pow` are not rounded correctly, all
/// else is equal to the bit.
fn tolerance(stencil: &Stencil) -> f64 {
    let inexact = stencil.exprs.values().any(|expr| {
        matches!(
            expr,
            Expr::Call(Function::Exp | Function::Log | Function::Pow, _)
        )
    });
    if inexact { 1e-15 } else { 0.0 }
}

fn find_toolkit() -> Result<Toolkit, String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    toolkit.nvcc().map_err(|e| e.to_string())?;
    Ok(toolkit)
}

#[test]
fn kernels_compute_what_their_stencils_say() {
    let toolkit = match find_toolkit() {
        Ok(toolkit) => toolkit,
        Err(reason) => {
            let required = std::env::var_os("WARPWRIGHT_REQUIRE_TOOLKIT").is_some();
            assert!(!required, "{reason}");
            eprintln!("SKIPPED: the kernels need nvcc: {reason}");
            return;
        }
    };
    let mut wrong = String::new();
    let mut compared = 0;
    for path in kernels() {
        let mut compiled = BTreeMap::new();
        for size in SIZES {
            match check(&toolkit, &path, size, &mut compiled) {
                Ok(done) => compared += usize::from(done),
                Err(problem) => {
                    let _ = writeln!(wrong, "{}, size {size}: {problem}", path.display());
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(compared >= 80, "only {compared} kernels were compared");
}
