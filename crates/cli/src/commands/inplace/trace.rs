//! `warpwright trace -- PROGRAM ARGS`

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use warpwright_sass::Cubin;
use warpwright_target::lookup;
use warpwright_winners::digest::stands_alone;
use warpwright_winners::lines::{Launches, Note};

use super::document::{
    GpuFacts, Launched, ModuleFacts, SCHEMA, Trace, demangled, digests, gpu_ns, merge,
};
use super::hint::hint;
use super::program::{command, exit_code, inject, notes, run as run_program};
use crate::args::TraceArgs;
use crate::commands::print_json;
use crate::failure::Failure;
use crate::input::write_atomically;
use warpwright_report::table::Table;

/// Runs the command.
pub fn run(args: &TraceArgs) -> Result<(), Failure> {
    let folder =
        tempfile::tempdir().map_err(|e| Failure::input(format!("no folder for the trace: {e}")))?;
    let mut program = command(&args.program)?;
    look(&mut program, folder.path())?;
    let status = run_program(program, None)?;
    let mut trace = read(folder.path(), &args.program)?;
    if let Some(output) = &args.output {
        trace.modules_in = Some(keep_modules(folder.path(), output)?);
        let text = serde_json::to_string_pretty(&trace)
            .map_err(|e| Failure::Internal(format!("a trace that is no JSON: {e}")))?;
        write_atomically(output, text.as_bytes())?;
    }
    match args.json {
        true => print_json(&trace)?,
        false => print(&trace, args.rows),
    }
    match exit_code(status) {
        0 => Ok(()),
        code => Err(Failure::Quiet(code)),
    }
}

/// Has the program traced into a folder.
pub fn look(program: &mut std::process::Command, folder: &Path) -> Result<(), Failure> {
    inject(program, "trace")?;
    program.env("WARPWRIGHT_DIR", folder);
    if std::env::var_os("WARPWRIGHT_LOG").is_none() {
        program.env("WARPWRIGHT_LOG", folder.join("log"));
    }
    Ok(())
}

/// What the library wrote into the folder, as a document.
pub fn read(folder: &Path, program: &[OsString]) -> Result<Trace, Failure> {
    let seen = notes(folder, "modules")?;
    let mut not_seen: Vec<String> = Vec::new();
    let mut modules: Vec<ModuleFacts> = Vec::new();
    let mut code: BTreeMap<String, Code> = BTreeMap::new();
    for note in seen {
        match note {
            Note::Unknown(why) if !not_seen.contains(&why) => not_seen.push(why),
            Note::Module(digest) if !code.contains_key(&digest) => {
                let path = folder.join(format!("{digest}.cubin"));
                let Ok(cubin) = std::fs::read(&path) else {
                    continue;
                };
                let digests = digests(&cubin);
                modules.push(ModuleFacts {
                    digest: digest.clone(),
                    ptx: path.with_extension("ptx").exists(),
                    kernels: digests.len(),
                });
                let parsed = Cubin::parse(&cubin).ok();
                code.insert(
                    digest,
                    Code {
                        cubin,
                        parsed,
                        digests,
                    },
                );
            }
            _ => {}
        }
    }
    let launches = notes(folder, "launches")?;
    let gpu = launches.iter().find_map(|note| match note {
        Note::Gpu(sm, driver, name) => Some(GpuFacts {
            name: name.clone(),
            sm: *sm,
            driver: *driver,
        }),
        _ => None,
    });
    let processes = launches
        .iter()
        .filter(|n| matches!(n, Note::Process(..)))
        .count() as u32;
    let merged = merge(launches);
    let total: u64 = merged.iter().map(gpu_ns).sum();
    let mut rows: Vec<Launched> = merged
        .iter()
        .map(|l| launched(l, total, code.get(&l.module), gpu.as_ref()))
        .collect();
    rows.sort_by(|a, b| {
        b.gpu_ns
            .cmp(&a.gpu_ns)
            .then_with(|| a.kernel.cmp(&b.kernel))
    });
    Ok(Trace {
        schema: SCHEMA.into(),
        program: program
            .iter()
            .map(|w| w.to_string_lossy().into_owned())
            .collect(),
        date: warpwright_gpu::utc_now(),
        gpu,
        processes,
        modules_in: None,
        modules,
        not_seen,
        launches: rows,
    })
}

struct Code {
    cubin: Vec<u8>,
    parsed: Option<Cubin>,
    digests: BTreeMap<String, String>,
}

fn launched(l: &Launches, total: u64, code: Option<&Code>, facts: Option<&GpuFacts>) -> Launched {
    let ns = gpu_ns(l);
    let gpu = facts.and_then(|facts| lookup(&format!("sm_{}", facts.sm)).ok());
    let kernel = code.and_then(|code| code.parsed.as_ref()?.kernel(&l.kernel));
    let resources = kernel
        .zip(gpu.as_ref())
        .map(|(kernel, gpu)| warpwright_driver::build::resources_of(kernel, gpu));
    let threads: u32 = l.class.block.iter().product();
    let occupancy = gpu.as_ref().filter(|_| l.resident > 0).map(|gpu| {
        let warps = l.resident * threads.div_ceil(32);
        f64::from(warps) * 100.0 / f64::from(gpu.arch.threads.warps)
    });
    let mut row = Launched {
        name: demangled(&l.kernel),
        kernel: l.kernel.clone(),
        module: code.is_some().then(|| l.module.clone()),
        digest: code.and_then(|code| code.digests.get(&l.kernel).cloned()),
        grid: l.grid,
        block: l.class.block,
        dynamic_smem: l.class.dynamic_smem,
        cluster: Some(l.class.cluster).filter(|c| *c != [0; 3]),
        cooperative: l.cooperative,
        launches: l.count,
        in_graphs: l.in_graphs,
        gpu_ns: ns,
        share: if total == 0 {
            0.0
        } else {
            ns as f64 / total as f64
        },
        registers: resources.as_ref().map(|r| r.registers),
        spill_bytes: resources
            .as_ref()
            .map(|r| r.spill_store_bytes + r.spill_load_bytes),
        static_smem: resources.as_ref().map(|r| r.shared_bytes),
        resident: Some(l.resident).filter(|&blocks| blocks > 0),
        occupancy,
        tied: Some("its module was not seen".into()),
        hint: String::new(),
    };
    if let (Some(code), Some(kernel), Some(gpu)) = (code, kernel, gpu.as_ref()) {
        row.tied = stands_alone(&code.cubin, &l.kernel)
            .err()
            .map(|tie| tie.to_string());
        row.hint = hint(&row, kernel, gpu);
    }
    if let Some(why) = &row.tied {
        row.hint = format!("is not replaced: {why}");
    }
    row
}

/// Keeps the modules beside the trace; returns the folder's name.
fn keep_modules(from: &Path, output: &Path) -> Result<String, Failure> {
    let mut name = output.as_os_str().to_owned();
    name.push(".modules");
    let folder = std::path::PathBuf::from(&name);
    let failed = |e: std::io::Error| Failure::input(format!("`{}`: {e}", folder.display()));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_code = path.extension().is_some_and(|e| e == "cubin" || e == "ptx");
        if let (true, Some(file)) = (is_code, path.file_name()) {
            std::fs::copy(&path, folder.join(file)).map_err(failed)?;
        }
    }
    Ok(name.to_string_lossy().into_owned())
}

/// The table, the most expensive kernels first.
fn print(trace: &Trace, rows: usize) {
    let Some(gpu) = &trace.gpu else {
        eprintln!(
            "no launch was seen: the program does not use the driver, is linked statically, or must not be preloaded \
             (set-user-ID)"
        );
        return;
    };
    let total: u64 = trace.launches.iter().map(|l| l.gpu_ns).sum();
    println!(
        "{}: {} kernels, {:.3} ms of GPU time in {} launches, {} modules",
        gpu.name,
        trace
            .launches
            .iter()
            .map(|l| &l.kernel)
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        total as f64 * 1e-6,
        trace
            .launches
            .iter()
            .map(|l| l.launches + l.in_graphs)
            .sum::<u64>(),
        trace.modules.len(),
    );
    let mut table = Table::new(&[
        "ms", "share", "launches", "grid", "block", "smem", "regs", "spills", "occ.", "hint",
        "kernel",
    ]);
    let dims = |[x, y, z]: [u32; 3]| match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x}x{y}"),
        _ => format!("{x}x{y}x{z}"),
    };
    let number = |n: Option<u32>| n.map_or("?".to_owned(), |n| n.to_string());
    for l in trace.launches.iter().take(rows) {
        table.row(vec![
            format!("{:.3}", l.gpu_ns as f64 * 1e-6),
            format!("{:.1}%", l.share * 100.0),
            match l.in_graphs {
                0 => l.launches.to_string(),
                n => format!("{}+{n}", l.launches),
            },
            dims(l.grid),
            dims(l.block),
            (l.dynamic_smem + l.static_smem.unwrap_or(0)).to_string(),
            number(l.registers),
            number(l.spill_bytes),
            l.occupancy.map_or("?".to_owned(), |p| format!("{p:.0}%")),
            l.hint.clone(),
            shortened(&l.name),
        ]);
    }
    print!("{}", table.render(0));
    if trace.launches.len() > rows {
        println!(
            "… and {} more (--rows, --json)",
            trace.launches.len() - rows
        );
    }
    for why in &trace.not_seen {
        println!("modules were not looked at: {why}");
    }
}

/// The start of a long name.
pub fn shortened(name: &str) -> String {
    const MOST: usize = 60;
    match name.char_indices().nth(MOST) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}
