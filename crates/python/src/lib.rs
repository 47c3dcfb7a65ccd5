//! The library for Python's interpreter: bytes and plain values in, bytes and JSON out. The package's own files make
//! objects of them.

// What the macros of pyo3 write.
#![allow(unsafe_code, missing_docs)]

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{create_exception, exceptions::PyException};
use warpwright_api::{
    CheckOptions, Emit, Error, Fault, Input, Level, Optimizer, Options, Toolkit, gpu, page,
};

create_exception!(warpwright, WarpwrightError, PyException);
create_exception!(warpwright, InputError, WarpwrightError);
create_exception!(warpwright, UsageError, WarpwrightError);
create_exception!(warpwright, MissingToolError, WarpwrightError);
create_exception!(warpwright, InternalError, WarpwrightError);
create_exception!(warpwright, UndecidedError, WarpwrightError);

/// An error of the library as Python's.
fn raised(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    let mut text = error.to_string();
    if let Some(mend) = error.mend() {
        text += &format!("\nmend it with: {mend}");
    }
    match error.fault() {
        Fault::Input => InputError::new_err(text),
        Fault::Usage => UsageError::new_err(text),
        Fault::Missing => MissingToolError::new_err(text),
        Fault::Internal => InternalError::new_err(text),
        Fault::Undecided => UndecidedError::new_err(text),
    }
}

/// The bytes with the place of their file, if they stand in one.
fn input(code: &[u8], name: &str, path: Option<PathBuf>) -> PyResult<Input> {
    let found = match path {
        Some(path) => Input::of_file(name.to_owned(), &path, code.to_vec()),
        None => Input::new(name, code),
    };
    found.map_err(raised)
}

/// The tools, which finished machine code does without. With `false` nothing is looked for.
fn optimizer(level: Level, uses_toolkit: bool) -> PyResult<Optimizer> {
    if !uses_toolkit || matches!(level, Level::Cubin | Level::Fat) {
        return Ok(Optimizer::without_toolkit());
    }
    match (Optimizer::new(), level) {
        (Ok(optimizer), _) => Ok(optimizer),
        (Err(error), Level::Cuda) => Err(raised(error)),
        (Err(_), _) => Ok(Optimizer::without_toolkit()),
    }
}

/// What is asked for about kernels and launches.
#[derive(FromPyObject)]
struct Asked {
    gpu: Option<String>,
    kernels: Vec<String>,
    block: Option<[u32; 3]>,
    dynamic_smem: Option<u32>,
    nvcc: Vec<String>,
    use_toolkit: bool,
    ptxas: Option<PathBuf>,
    ptxas_options: Vec<String>,
    made: Option<Vec<u8>>,
}

impl Asked {
    fn options(&self) -> PyResult<Options> {
        Ok(Options {
            gpu: self.gpu.as_deref().map(gpu).transpose().map_err(raised)?,
            kernels: self.kernels.clone(),
            block: self.block,
            dynamic_smem: self.dynamic_smem,
            nvcc: self.nvcc.clone(),
            ptxas: self.ptxas_options.iter().map(OsString::from).collect(),
            made: self.made.clone(),
            ..Options::default()
        })
    }
}

/// The code, the document as JSON, and the screen of text.
type Optimised<'py> = (Bound<'py, PyBytes>, String, String);

#[pyfunction]
fn optimise<'py>(
    py: Python<'py>,
    code: &[u8],
    place: (String, Option<PathBuf>),
    asked: Asked,
    how: (Option<String>, Option<f64>, bool),
) -> PyResult<Optimised<'py>> {
    let ((name, path), (recipe, budget, as_ptx)) = (place, how);
    let input = input(code, &name, path)?;
    let mut options = asked.options()?;
    if let Some(budget) = budget {
        if !budget.is_finite() || budget <= 0.0 {
            return Err(UsageError::new_err("a budget is more than 0 seconds"));
        }
        options.budget = budget;
    }
    if let Some(text) = recipe {
        let recipe = text.parse();
        options.recipe = Some(recipe.map_err(|e| UsageError::new_err(format!("recipe: {e}")))?);
    }
    if as_ptx {
        options.emit = Emit::Ptx;
    }
    let optimizer = match &asked.ptxas {
        Some(file) => Optimizer::with_ptxas(file)
            .ok_or_else(|| InputError::new_err(format!("`{}` is no ptxas", file.display())))?,
        None => optimizer(input.level, asked.use_toolkit)?,
    };
    let outcome = py.detach(|| optimizer.optimise(&input, &options));
    let outcome = outcome.map_err(raised)?;
    let document = outcome.report.to_json().map_err(raised)?;
    Ok((
        PyBytes::new(py, &outcome.code),
        document.to_string(),
        outcome.report.screen(false),
    ))
}

#[pyfunction]
fn explain(
    py: Python<'_>,
    code: &[u8],
    place: (String, Option<PathBuf>),
    asked: Asked,
) -> PyResult<String> {
    let (name, path) = place;
    let input = input(code, &name, path)?;
    let options = asked.options()?;
    let optimizer = optimizer(input.level, asked.use_toolkit)?;
    let explained = py.detach(|| optimizer.explain(&input, &options));
    json(&explained.map_err(raised)?)
}

#[pyfunction]
fn check(
    py: Python<'_>,
    original: (Vec<u8>, String, Option<PathBuf>),
    rewritten: (Vec<u8>, String, Option<PathBuf>),
    how: (Option<String>, Option<[u32; 3]>, Option<u32>, Vec<String>),
) -> PyResult<String> {
    let (kernel, block, dynamic_smem, nvcc) = how;
    let (code, name, path) = original;
    let a = input(&code, &name, path)?;
    let (code, name, path) = rewritten;
    let b = input(&code, &name, path)?;
    let is_source = [&a, &b].iter().any(|input| input.level == Level::Cuda);
    let optimizer = optimizer(a.level, is_source)?;
    let options = CheckOptions {
        kernel,
        block,
        dynamic_smem,
        nvcc,
    };
    let checked = py.detach(|| optimizer.check(&a, &b, &options));
    json(&checked.map_err(raised)?)
}

fn json<T: serde::Serialize>(document: &T) -> PyResult<String> {
    serde_json::to_string(document).map_err(raised)
}

/// The self-contained page of a document.
#[pyfunction(name = "page")]
fn html(document: &str) -> PyResult<String> {
    let document: serde_json::Value = serde_json::from_str(document).map_err(raised)?;
    page(&document).map_err(raised)
}

/// What the library that programs load noted in a folder, as the document of `trace`.
#[pyfunction]
fn read_trace(folder: PathBuf, program: Vec<String>, date: String) -> PyResult<String> {
    let program: Vec<OsString> = program.into_iter().map(OsString::from).collect();
    let trace = warpwright_api::trace::read(&folder, &program, date);
    json(&trace.map_err(raised)?)
}

/// A kernel's name as its source has it.
#[pyfunction]
fn source_name(symbol: &str) -> String {
    warpwright_api::source_name(symbol)
}

/// Where the tools are that would be used, if there are any.
#[pyfunction]
fn toolkit() -> Option<PathBuf> {
    let found = Toolkit::find(&Default::default()).ok()?;
    let ptxas = found.ptxas().ok()?;
    Some(ptxas.tool().path.clone())
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("WarpwrightError", py.get_type::<WarpwrightError>())?;
    module.add("InputError", py.get_type::<InputError>())?;
    module.add("UsageError", py.get_type::<UsageError>())?;
    module.add("MissingToolError", py.get_type::<MissingToolError>())?;
    module.add("InternalError", py.get_type::<InternalError>())?;
    module.add("UndecidedError", py.get_type::<UndecidedError>())?;
    module.add_function(wrap_pyfunction!(optimise, module)?)?;
    module.add_function(wrap_pyfunction!(explain, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(html, module)?)?;
    module.add_function(wrap_pyfunction!(read_trace, module)?)?;
    module.add_function(wrap_pyfunction!(source_name, module)?)?;
    module.add_function(wrap_pyfunction!(toolkit, module)?)
}
