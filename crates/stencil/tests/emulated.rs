//! What a kernel is taken for is what it computes: nvcc compiles it without contraction, the PTX
//! emulator runs it, and the results are the stencil's values on the host, to the bit. The benchmarks are
//! taken at small sizes, and so are the accepted kernels of `double` arrays.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use warpwright_cudac::File;
use warpwright_cudac::ast;
use warpwright_cudac::diag::Source;
use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_launch::LaunchFile;
use warpwright_ptx::Module;
use warpwright_stencil::evaluate::{Data, Sizes, evaluate};
use warpwright_stencil::extract;
use warpwright_stencil::ir::{Element, Expr, Function, Stencil};
use warpwright_toolkit::{FindOptions, NvccJob, Toolkit};

/// All sizes.
const SIZE: i64 = 12;

/// Threads along x, y and z of a block, where the kernel knows the direction.
const BLOCK: [i64; 3] = [32, 8, 2];

fn kernels() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["tests/stencils/accepted", "../../examples/stencils"] {
        let entries = own.join(folder).read_dir().unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    files.retain(|path| path.extension().is_some_and(|e| e == "cu"));
    files.sort();
    files
}

/// The text with small sizes built in, and kernels with plain names.
fn small(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let mut words = line.split(' ');
        let sizes = ["N", "M", "L", "WIDTH", "HEIGHT"];
        match (words.next(), words.next(), words.next()) {
            (Some("#define"), Some(name), Some(value))
                if sizes.contains(&name) && value.parse::<i64>().is_ok() =>
            {
                format!("#define {name} {SIZE}\n")
            }
            _ => format!("{line}\n"),
        }
    });
    let text: String = lines.collect();
    text.replace("__global__", "extern \"C\" __global__")
}

/// The launch of a kernel with these data, and the contents of its buffers by name.
fn describe(
    text: &str,
    function: &ast::Function,
    stencil: &Stencil,
    data: &Data,
) -> (String, BTreeMap<String, Vec<u8>>) {
    let cells = stencil.dims.values().map(|d| match d.extent.parameter {
        None => d.extent.add,
        Some(_) => d.extent.add + SIZE,
    });
    let cells = cells.max().unwrap_or(1);
    // A direction that the kernel does not know has one thread: others would do the same again.
    let knows = |axis: &str| text.contains(&format!("threadIdx.{axis}"));
    let block = ["x", "y", "z"].map(knows).map(i64::from);
    let block = [0, 1, 2].map(|n| 1.max(block[n] * BLOCK[n]));
    let grid = block.map(|threads| if threads > 1 { cells / threads + 1 } else { 1 });
    let mut toml = format!(
        "kernel = \"{}\"\n[sizes.small]\nn = {SIZE}\n[launch]\ngrid = {grid:?}\nblock = {block:?}\n",
        function.name.text,
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
            let _ = writeln!(toml, "type = \"s32\"\nvalue = {SIZE}");
        }
    }
    (toml, files)
}

fn check(toolkit: &Toolkit, path: &Path) -> Result<bool, String> {
    let text = small(&std::fs::read_to_string(path).unwrap());
    let name = path.file_name().unwrap().to_str().unwrap();
    let file = File::parse(Source::new(name, text.clone())).unwrap();
    let header = extract::choose(&file, None).unwrap()[0];
    let stencil = extract::extract(&file, header).map_err(|p| p[0].render(&file.source))?;
    let function = file.kernel(header).unwrap();
    let double = stencil.arrays.values().all(|a| a.element == Element::F64);
    let sizes: Sizes = stencil.parameters.values().map(|_| SIZE).collect();
    let mut data = Data::sample(&stencil, &sizes).unwrap();
    if !double || data.arrays.values().any(|a| a.len() > 100_000) {
        return Ok(false);
    }
    let (toml, files) = describe(&text, &function, &stencil, &data);
    evaluate(&stencil, &sizes, &mut data).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("kernel.cu");
    std::fs::write(&source, text).unwrap();
    let mut job = NvccJob::new(&source, "sm_90");
    job.extra = vec!["-fmad=false".into()];
    let nvcc = toolkit.nvcc().map_err(|e| e.to_string())?;
    let ptx = nvcc.to_ptx(&job).map_err(|e| e.to_string())?.ptx;
    let (module, _) = Module::parse(name, &ptx);
    let launch = LaunchFile::parse(&toml, name).map_err(|e| e.to_string())?;
    let launch = launch.resolve("small", &[]).map_err(|e| e.to_string())?;
    let read = |name: &str| files.get(name).cloned().ok_or_else(|| name.to_owned());
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
        match check(&toolkit, &path) {
            Ok(done) => compared += usize::from(done),
            Err(problem) => {
                let _ = writeln!(wrong, "{}: {problem}", path.display());
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(compared >= 15, "only {compared} kernels were compared");
}
