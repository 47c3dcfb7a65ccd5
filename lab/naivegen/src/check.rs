//! Random kernels through recognition and every kind of generated kernel, many in one call of nvcc, in the PTX emulator.

use std::collections::BTreeSet;

use warpwright_cudac::File;
use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::diag::Source;
use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_fuzzgen::Rng;
use warpwright_launch::{Arg, ElemType, Launch, LaunchFile, Tolerance, compare, no_files};
use warpwright_naive::emit::{self, Condition, Entry, Generated, Names, NoLauncher, Parts};
use warpwright_naive::ir;
use warpwright_naive::recognise::recognise;
use warpwright_ptx::Module;
use warpwright_sourcegen::{Counters, Finding};

use crate::generate::{self, Kernel};
use crate::ways::{Way, ways};

/// A kernel with its versions.
pub struct Subject {
    /// What was generated at random.
    pub kernel: Kernel,
    /// What it was taken for.
    pub ir: ir::Kernel,
    /// What was made of it.
    pub ways: Vec<Way>,
}

impl warpwright_sourcegen::Subject for Subject {
    fn generate(seed: u64, number: u64, counters: &mut Counters) -> Result<Option<Self>, Finding> {
        let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
        let kernel = generate::kernel(&mut rng, &format!("k{number}"));
        counters.kernels += 1;
        let finding = |what: String| Finding {
            text: kernel.text.clone(),
            version: String::new(),
            what,
        };
        let file = File::parse(Source::new("kernel.cu", kernel.text.clone()))
            .map_err(|e| finding(e.message.clone()))?;
        let Some(header) = file.kernels.first() else {
            return Err(finding("no kernel was found in it".into()));
        };
        let ir = match recognise(&file, header) {
            Ok(ir) => match kernel.refused {
                None => ir,
                Some(what) => return Err(finding(format!("{what} was taken"))),
            },
            Err(problem) => {
                if let Some(what) = kernel.refused.filter(|what| *what != problem.message) {
                    let said = problem.message;
                    return Err(finding(format!("{what} was refused as: {said}")));
                }
                *counters.refused.entry(problem.message.clone()).or_default() += 1;
                return Ok(None);
            }
        };
        let mut subject = Subject {
            ways: ways(&mut rng, &ir),
            kernel,
            ir,
        };
        // A version that nothing may launch is refused, and not compared.
        let all = std::mem::take(&mut subject.ways);
        for way in all {
            match emit::launcher(&subject.ir, &way.2, &names(&subject, 0)) {
                Ok(_) => subject.ways.push(way),
                Err(NoLauncher::Overlap(_)) => {
                    let why = "a version: which elements of an array are touched is not known";
                    *counters.refused.entry(why.into()).or_default() += 1;
                }
                Err(why) => {
                    *counters
                        .refused
                        .entry(format!("a version: {why}"))
                        .or_default() += 1
                }
            }
        }
        Ok(Some(subject))
    }

    fn batch_text(subjects: &[Self]) -> String {
        let mut text = String::from("#include <cuda_pipeline.h>\n\n");
        for subject in subjects {
            text += &subject.kernel.text;
            for (number, (_, _, generated)) in subject.ways.iter().enumerate() {
                if let Ok(part) = emit::launcher(&subject.ir, generated, &names(subject, number)) {
                    text += &part.text;
                    text += &part.launch;
                }
            }
            text += "\n";
        }
        text
    }

    fn compare(&self, module: &Module) -> (Counters, Vec<Finding>) {
        let (mut counters, mut findings) = (Counters::default(), Vec::new());
        let ir = &self.ir;
        let mut finding = |version: &str, what: String| {
            findings.push(Finding {
                text: format!("{}\n/*\n{}*/\n", self.kernel.text, self.kernel.launch),
                version: version.to_owned(),
                what,
            });
        };
        let file = match LaunchFile::parse(&self.kernel.launch, "launch") {
            Ok(file) => file,
            Err(error) => {
                counters.broken += 1;
                finding("", error.to_string());
                return (counters, findings);
            }
        };
        let mut out = vec![false; self.ways.len()];
        let mut ran = false;
        for size in 0..self.kernel.sizes {
            let launch = match file.resolve(&format!("s{size}"), &[]) {
                Ok(launch) => launch,
                Err(error) => {
                    counters.broken += 1;
                    finding("", error.to_string());
                    continue;
                }
            };
            // Arrays as cudaMalloc gives them, and beside any alignment.
            for offset in [0, 8] {
                let mut launch = launch.clone();
                for buffer in &mut launch.memory {
                    buffer.offset = offset;
                }
                let inputs: Result<Vec<_>, _> =
                    launch.buffers().map(|b| b.materialize(&no_files)).collect();
                let Ok(inputs) = inputs else { continue };
                let Some(ends) = ends(ir, &launch) else {
                    continue;
                };
                launch.kernel = symbol(module, &self.kernel.name).unwrap_or_default();
                let expected = match run(module, &launch, &inputs) {
                    Ok(expected) => expected,
                    Err(fault) => {
                        counters.broken += 1;
                        finding("original", fault);
                        return (counters, findings);
                    }
                };
                ran = true;
                for (number, (kind, choices, generated)) in self.ways.iter().enumerate() {
                    if out[number] {
                        continue;
                    }
                    for entry in &generated.entries {
                        let fits = entry
                            .conditions
                            .iter()
                            .all(|c| holds(ir, &launch, &ends, offset as i64, c) == Some(true));
                        if !fits
                            || (offset != 0
                                && entry
                                    .conditions
                                    .iter()
                                    .any(|c| matches!(c, Condition::Aligned(..))))
                        {
                            continue;
                        }
                        let name = names(self, number).entry(entry);
                        let version =
                            format!("{kind}: {choices}, {name} at size {size}, {offset} bytes off");
                        let Some(kernel) = symbol(module, &name) else {
                            counters.broken += 1;
                            finding(&version, "it is not in the module".into());
                            continue;
                        };
                        counters.comparisons += 1;
                        let launch = entry_launch(ir, &launch, &ends, entry, kernel);
                        let found = match &entry.parts {
                            None => run(module, &launch, &inputs),
                            Some(parts) => {
                                let first = symbol(module, &names(self, number).first(entry))
                                    .unwrap_or_default();
                                let turns = value(ir, &launch, &ends, &parts.turns).unwrap_or(0);
                                // Also more parts than a launcher would make: some of them have no turn then.
                                let count = u32::try_from(turns.clamp(1, 7)).unwrap_or(1);
                                in_parts(module, &launch, &inputs, parts, count, first, &ends)
                            }
                        };
                        match found {
                            Err(fault) => {
                                counters.faults += 1;
                                out[number] = true;
                                finding(&version, fault);
                            }
                            Ok(found) => {
                                if let Some(what) = difference(self, &launch, &found, &expected) {
                                    counters.differences += 1;
                                    out[number] = true;
                                    finding(&version, what);
                                }
                            }
                        }
                    }
                }
            }
        }
        counters.idle += u64::from(!ran);
        for (kind, _, _) in self.ways.iter().filter(|_| ran) {
            *counters.versions.entry((*kind).to_owned()).or_default() += 1;
        }
        (counters, findings)
    }
}

/// What the names of a version begin with.
pub(crate) fn names(subject: &Subject, number: usize) -> Names {
    Names::new(
        &format!("{}v{number}", subject.kernel.name),
        &BTreeSet::new(),
    )
}

/// A kernel in the module, by its name in the source.
fn symbol(module: &Module, name: &str) -> Option<String> {
    let mangled = format!("_Z{}{name}", name.len());
    let mut all = module.functions.values().map(|f| f.name.to_string());
    all.find(|n| n == name || n.starts_with(&mangled))
}

fn run(module: &Module, launch: &Launch, inputs: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
    let program = Emulator::new(module, &launch.kernel).map_err(|e| e.to_string())?;
    // nvcc leaves branches on values that nobody sets where their outcome does not matter, so reading what was never
    // written is no fault; it holds 0xa5 in every byte, which shows in a result.
    let options = Options {
        races: true,
        budget: 1 << 24,
        ..Options::default()
    };
    match program
        .run(launch, inputs.to_vec(), &options)
        .map_err(|e| e.to_string())?
    {
        Outcome::Finished(results) => Ok(results.buffers),
        Outcome::Faulted(fault) => Err(fault.to_string()),
    }
}

/// The ends of the dimensions of a launch; none if it computes no point.
fn ends(ir: &ir::Kernel, launch: &Launch) -> Option<Vec<i64>> {
    let mut all = Vec::new();
    if let Some(flat) = &ir.flat {
        return flat_ends(ir, flat, launch);
    }
    for dim in &ir.dims {
        let axis = dim.axis();
        let mut end = i64::from(launch.grid[axis]);
        if matches!(dim.symbol, Symbol::Global(_)) {
            end *= i64::from(launch.block[axis]);
        }
        if dim.whole {
            end = i64::MAX;
        }
        for high in &dim.high {
            end = end.min(value(ir, launch, &[], high)?);
        }
        if end <= 0 {
            return None;
        }
        all.push(end);
    }
    Some(all)
}

/// The same where they are digits of one place: what the launch covers must be whole rows, or everything.
fn flat_ends(ir: &ir::Kernel, flat: &ir::Flat, launch: &Launch) -> Option<Vec<i64>> {
    let last = ir.dims.last()?;
    let mut left = match last.whole {
        true => i64::MAX,
        false => i64::from(launch.grid[0]) * i64::from(launch.block[0]),
    };
    for high in &flat.high {
        left = left.min(value(ir, launch, &[], high)?);
    }
    let (mut all, mut rest) = (Vec::new(), 0);
    for (radix, dim) in flat.radices.iter().zip(&ir.dims) {
        let radix = value(ir, launch, &[], radix)?;
        if radix <= 0 {
            return None;
        }
        rest |= left % radix;
        left /= radix;
        let mut end = radix;
        for high in &dim.high {
            end = end.min(value(ir, launch, &[], high)?);
        }
        all.push(end);
    }
    for high in &last.high {
        let high = value(ir, launch, &[], high)?;
        if left >= high {
            (left, rest) = (high, 0);
        }
    }
    all.push(left);
    (rest == 0 && all.iter().all(|end| *end > 0)).then_some(all)
}

fn value(ir: &ir::Kernel, launch: &Launch, ends: &[i64], poly: &Poly) -> Option<i64> {
    poly.evaluate(|symbol| match symbol {
        Symbol::Size(size) => launch.param(ir.size_name(size)),
        Symbol::Unknown(dim) => ends.get(dim).copied(),
        _ => None,
    })
}

/// Does a launch meet what an entry asks for, its arrays lying `offset` bytes beside their alignment?
fn holds(
    ir: &ir::Kernel,
    launch: &Launch,
    ends: &[i64],
    offset: i64,
    condition: &Condition,
) -> Option<bool> {
    Some(match condition {
        Condition::Multiple(poly, by) => value(ir, launch, ends, poly)? % by == 0,
        Condition::Aligned(_, bytes) => offset % i64::from(*bytes) == 0,
        Condition::Is(size, wanted) => launch.param(ir.size_name(*size))? == *wanted,
        Condition::Most(poly, most) => value(ir, launch, ends, poly)? <= *most,
    })
}

/// The launch of an entry in place of the original's.
fn entry_launch(
    ir: &ir::Kernel,
    launch: &Launch,
    ends: &[i64],
    entry: &Entry,
    kernel: String,
) -> Launch {
    let mut launch = launch.clone();
    launch.kernel = kernel;
    let blocks = |dim: usize| {
        ends.get(dim).map_or(1, |end| {
            let tile = entry.tile.get(dim).map_or(1, |tile| i64::from(*tile));
            (end + tile - 1) / tile
        })
    };
    let grid = [blocks(0), blocks(1), blocks(2) * blocks(3)];
    launch.grid = grid.map(|blocks| u32::try_from(blocks).unwrap_or(u32::MAX));
    launch.block = [entry.threads, 1, 1];
    launch.dynamic_smem = entry.shared_bytes;
    for (number, end) in ends.iter().enumerate().take(ir.dims.len()) {
        let end = i32::try_from(*end).unwrap_or(i32::MAX);
        launch.args.push(Arg::scalar(
            format!("end{number}"),
            ElemType::S32,
            end.to_le_bytes().to_vec(),
        ));
    }
    launch
}

/// Both kernels of an entry, one after the other, with a memory between them that holds nothing at first.
fn in_parts(
    module: &Module,
    launch: &Launch,
    inputs: &[Vec<u8>],
    parts: &Parts,
    count: u32,
    first: String,
    ends: &[i64],
) -> Result<Vec<Vec<u8>>, String> {
    let points = usize::try_from(ends[0]).unwrap_or(0);
    let mut launch = launch.clone();
    let own = launch.buffers().count();
    for (ty, name) in &parts.values {
        let ty = match ty.as_str() {
            "float" => "f32",
            "double" => "f64",
            "int" => "s32",
            "unsigned int" | "unsigned" => "u32",
            _ => return Err(format!("a value of type {ty}")),
        };
        let text = format!(
            "kernel = \"k\"\n[sizes.s]\nq = 1\n[launch]\ngrid = [1]\nblock = [1]\n[[args]]\nname = \"{name}\"\ntype = \"{ty}\"\n\
             shape = [{}]\noutput = true\n",
            points * count as usize
        );
        let file = LaunchFile::parse(&text, "values").map_err(|e| e.to_string())?;
        launch.append(file.resolve("s", &[]).map_err(|e| e.to_string())?);
    }
    launch.args.push(Arg::scalar(
        "parts",
        ElemType::S32,
        count.to_le_bytes().to_vec(),
    ));
    let mut memory = inputs.to_vec();
    for buffer in launch.buffers().skip(own) {
        memory.push(buffer.materialize(&no_files).map_err(|e| e.to_string())?);
    }
    let mut earlier = launch.clone();
    earlier.kernel = first;
    let across = (ends[0] + i64::from(parts.tile) - 1) / i64::from(parts.tile);
    earlier.grid = [u32::try_from(across).unwrap_or(1), count, 1];
    earlier.block = [parts.threads, 1, 1];
    let memory = run(module, &earlier, &memory)?;
    let mut found = run(module, &launch, &memory)?;
    found.truncate(own);
    Ok(found)
}

/// How outputs differ: by a bit, or by more than the numbers allow where sums may be reordered.
fn difference(
    subject: &Subject,
    launch: &Launch,
    found: &[Vec<u8>],
    expected: &[Vec<u8>],
) -> Option<String> {
    for (buffer, (a, b)) in launch.buffers().zip(found.iter().zip(expected)) {
        let largest = b
            .chunks_exact(buffer.ty.size())
            .map(|e| buffer.ty.to_f64(buffer.ty.read(e)).abs());
        let largest = largest.filter(|v| v.is_finite()).fold(1.0, f64::max);
        let abs = match buffer.ty {
            ElemType::F32 => 1e-4 * largest,
            ElemType::F64 => 1e-12 * largest,
            _ => 0.0,
        };
        let loose = subject.kernel.reassociate && buffer.output;
        let comparison = compare(
            a,
            b,
            buffer.ty,
            loose.then_some(Tolerance { rel: 0.0, abs }),
        );
        if !comparison.within() {
            return Some(format!("`{}`: {comparison}", buffer.name));
        }
    }
    None
}

/// A mistake planted into a version: points are left out.
pub fn planted(subject: &Subject, module: &Module) -> Option<bool> {
    let file = LaunchFile::parse(&subject.kernel.launch, "launch").ok()?;
    let mut launch = file.resolve("s3", &[]).ok()?;
    let inputs: Vec<Vec<u8>> = launch
        .buffers()
        .filter_map(|b| b.materialize(&no_files).ok())
        .collect();
    let ends = ends(&subject.ir, &launch)?;
    launch.kernel = symbol(module, &subject.kernel.name)?;
    let expected = run(module, &launch, &inputs).ok()?;
    if expected == inputs {
        return None;
    }
    let (number, (_, _, generated)) = subject.ways.iter().enumerate().next()?;
    let entry: &Entry = plain(generated)?;
    let kernel = symbol(module, &names(subject, number).entry(entry))?;
    let mut launch = entry_launch(&subject.ir, &launch, &ends, entry, kernel);
    // Points are left out: all, by the end along x, or half of them where each has a block. (One less by the end
    // would be none less where the launch covers more than the kernel's own guard lets through.)
    match (entry.tile[0], launch.grid[0]) {
        (1, 0..=2) => return None,
        // Of several, since a point may store nothing.
        (1, blocks) => launch.grid[0] = blocks.div_ceil(2),
        _ => {
            let at = launch.args.len() - subject.ir.dims.len();
            if let Some(end) = launch.args.get_mut(at) {
                end.bytes = 0i32.to_le_bytes().to_vec();
            }
        }
    }
    let found = run(module, &launch, &inputs);
    Some(
        found.is_err()
            || found.is_ok_and(|found| difference(subject, &launch, &found, &expected).is_some()),
    )
}

fn plain(generated: &Generated) -> Option<&Entry> {
    generated
        .entries
        .iter()
        .find(|e| e.conditions.is_empty() && e.parts.is_none())
}
