//! The library for Python's interpreter: bytes and plain values in, bytes and JSON out. The package's own files make
//! objects of them.

// What the macros of pyo3 write.
#![allow(unsafe_code, missing_docs)]

mod words;
mod work;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{create_exception, exceptions::PyException};
use warpwright_api::{
    CheckOptions, Emit, Error, Fault, Input, Level, Optimizer, Options, Recipe, RewriteOptions,
    Toolkit, gpu, page,
};
use warpwright_launch::{ContentsError, LaunchFile, no_files};
use words::{python, python_document};
use work::worked;

create_exception!(warpwright, WarpwrightError, PyException);
create_exception!(warpwright, InputError, WarpwrightError);
create_exception!(warpwright, UsageError, WarpwrightError);
create_exception!(warpwright, MissingToolError, WarpwrightError);
create_exception!(warpwright, InternalError, WarpwrightError);
create_exception!(warpwright, UndecidedError, WarpwrightError);

/// An error of the library as Python's.
fn raised(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    let mut text = python(&error.to_string());
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

/// Bytes, what they are called, and their file, if they stand in one.
type Code = (Vec<u8>, String, Option<PathBuf>);

fn input((code, name, path): Code) -> PyResult<Input> {
    let found = match path {
        Some(path) => Input::of_file(name, &path, code),
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

    /// An error, also where the tools are missing because nobody wanted them.
    fn raised(&self, error: Error) -> PyErr {
        match error.fault() {
            Fault::Missing if !self.use_toolkit => MissingToolError::new_err(
                "NVIDIA's tools are needed for this, and use_toolkit=False turns them off (emit=\"ptx\" of PTX does \
                 without)",
            ),
            _ => raised(error),
        }
    }
}

/// The code, the document as JSON, and the screen of text.
type Optimised<'py> = (Bound<'py, PyBytes>, String, String);

#[pyfunction]
fn optimise<'py>(
    py: Python<'py>,
    code: Code,
    asked: Asked,
    how: (Option<String>, Option<f64>, bool),
) -> PyResult<Optimised<'py>> {
    let (recipe, budget, as_ptx) = how;
    let input = input(code)?;
    let mut options = asked.options()?;
    options.budget = budget.unwrap_or(options.budget);
    if let Some(text) = recipe {
        let recipe: Result<Recipe, _> = text.parse();
        let said = |error| UsageError::new_err(python(&format!("recipe: {error}")));
        options.recipe = Some(recipe.map_err(said)?);
    }
    if as_ptx {
        options.emit = Emit::Ptx;
    }
    let optimizer = match &asked.ptxas {
        Some(file) => Optimizer::with_ptxas(file)
            .ok_or_else(|| InputError::new_err(format!("`{}` is no ptxas", file.display())))?,
        None => optimizer(input.level, asked.use_toolkit)?,
    };
    let outcome = worked(py, move |stop| {
        optimizer.optimise_watched(&input, &options, stop)
    })?;
    let outcome = outcome.map_err(|error| asked.raised(error))?;
    let mut document = outcome.report.to_json().map_err(raised)?;
    python_document(&mut document);
    Ok((
        PyBytes::new(py, &outcome.code),
        document.to_string(),
        python(&outcome.report.screen(false)),
    ))
}

#[pyfunction]
fn explain(py: Python<'_>, code: Code, asked: Asked) -> PyResult<String> {
    let input = input(code)?;
    let options = asked.options()?;
    let optimizer = optimizer(input.level, asked.use_toolkit)?;
    let explained = worked(py, move |_| optimizer.explain(&input, &options))?;
    json(&explained.map_err(|error| asked.raised(error))?)
}

#[pyfunction]
fn check(
    py: Python<'_>,
    original: Code,
    rewritten: Code,
    how: (Option<String>, Option<[u32; 3]>, Option<u32>, Vec<String>),
) -> PyResult<String> {
    let (kernel, block, dynamic_smem, nvcc) = how;
    let (a, b) = (input(original)?, input(rewritten)?);
    let is_source = [&a, &b].iter().any(|input| input.level == Level::Cuda);
    let optimizer = match is_source {
        true => optimizer(Level::Cuda, true)?,
        false => Optimizer::without_toolkit(),
    };
    let options = CheckOptions {
        kernel,
        block,
        dynamic_smem,
        nvcc,
        ..CheckOptions::default()
    };
    let checked = worked(py, move |_| optimizer.check(&a, &b, &options))?;
    json(&checked.map_err(raised)?)
}

/// Code, the launches of its kernels as descriptions, and the bytes of arrays by name.
type Launched = (Code, Vec<String>, BTreeMap<String, Vec<u8>>);

/// One side of a comparison, read.
struct Read {
    input: Input,
    launches: Vec<LaunchFile>,
    arrays: BTreeMap<String, Vec<u8>>,
}

impl Read {
    fn of((code, texts, arrays): Launched) -> PyResult<Read> {
        let launches = texts.iter().map(|text| LaunchFile::parse(text, "launch"));
        Ok(Read {
            input: input(code)?,
            launches: launches.collect::<Result<_, _>>().map_err(raised)?,
            arrays,
        })
    }

    /// The array that a description calls `NAME.bin`.
    fn array(&self, path: &str) -> Result<Vec<u8>, ContentsError> {
        match self.arrays.get(path.trim_end_matches(".bin")) {
            Some(array) => Ok(array.clone()),
            None => no_files(path),
        }
    }
}

/// The tools, where one of two is in CUDA C.
fn tools(sides: &[&Read]) -> PyResult<Optimizer> {
    match sides.iter().any(|side| side.input.level == Level::Cuda) {
        true => optimizer(Level::Cuda, true),
        false => Ok(Optimizer::without_toolkit()),
    }
}

#[pyfunction]
fn check_launched(
    py: Python<'_>,
    original: Launched,
    rewritten: Launched,
    how: (Vec<String>, Vec<String>),
) -> PyResult<String> {
    let (fixed, nvcc) = how;
    let sides = [Read::of(original)?, Read::of(rewritten)?];
    let optimizer = tools(&[&sides[0], &sides[1]])?;
    let found = worked(py, move |_| {
        let options = RewriteOptions {
            launches: [sides[0].launches.clone(), sides[1].launches.clone()],
            files: &|side, _, name| sides[side].array(name),
            size: None,
            set: Vec::new(),
            pairs: Vec::new(),
            requires: Vec::new(),
            fixed,
            ranges: Vec::new(),
            only_described: true,
            nvcc: [nvcc.clone(), nvcc],
            watch: &|_, _, _| {},
        };
        optimizer.check_rewrite(&sides[0].input, &sides[1].input, &options)
    })?;
    json(&found.map_err(raised)?)
}

/// The outputs that launches leave in the emulator, by name.
#[pyfunction]
fn run_launched<'py>(
    py: Python<'py>,
    side: Launched,
    nvcc: Vec<String>,
) -> PyResult<Vec<(String, Bound<'py, PyBytes>)>> {
    let side = Read::of(side)?;
    let optimizer = tools(&[&side])?;
    let found = worked(py, move |_| {
        let files = |name: &str| side.array(name);
        optimizer.run_launched(&side.input, &side.launches, &nvcc, &files)
    })?;
    let outputs = found.map_err(raised)?.into_iter();
    Ok(outputs
        .map(|(name, bytes)| (name, PyBytes::new(py, &bytes)))
        .collect())
}

/// A document in Python's words.
fn json<T: serde::Serialize>(document: &T) -> PyResult<String> {
    let mut document = serde_json::to_value(document).map_err(raised)?;
    python_document(&mut document);
    Ok(document.to_string())
}

/// Is this a GPU's name?
#[pyfunction]
fn known_gpu(name: &str) -> PyResult<()> {
    gpu(name).map(drop).map_err(raised)
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
    module.add_function(wrap_pyfunction!(check_launched, module)?)?;
    module.add_function(wrap_pyfunction!(run_launched, module)?)?;
    module.add_function(wrap_pyfunction!(known_gpu, module)?)?;
    module.add_function(wrap_pyfunction!(work::before_fork, module)?)?;
    module.add_function(wrap_pyfunction!(work::after_fork, module)?)?;
    module.add_function(wrap_pyfunction!(html, module)?)?;
    module.add_function(wrap_pyfunction!(read_trace, module)?)?;
    module.add_function(wrap_pyfunction!(source_name, module)?)?;
    module.add_function(wrap_pyfunction!(toolkit, module)?)
}
