//! Parses PTX files, checks that printing gives them back and that the canonical form says the
//! same, verifies them, and shows diagnostics and times; writes the canonical forms into the folder that
//! `PTX_CHECK_CANONICAL` names:
//! `cargo run --release -p warpwright-ptx --example ptx_check FILE…`

use std::time::{Duration, Instant};

use warpwright_ptx::{Module, check, print::canonical, verify};

fn main() {
    let (mut bytes, mut errors, mut kernels, mut insts, mut opaque) = (0, 0, 0, 0, 0);
    let (mut parsing, mut printing) = (Duration::ZERO, Duration::ZERO);
    for path in std::env::args().skip(1) {
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) => {
                println!("{path}: {error}");
                continue;
            }
        };
        let start = Instant::now();
        let (module, diagnostics) = Module::parse_bytes(&path, &text);
        parsing += start.elapsed();
        let start = Instant::now();
        let printed = module.print();
        printing += start.elapsed();
        if printed.as_deref().map(str::as_bytes) != Ok(&text) {
            println!("{path}: printed differently: {:?}", printed.err());
            errors += 1;
        }
        errors += diagnostics.len();
        if let Err(error) = check::coverage(&module) {
            println!("{path}: {error}");
            errors += 1;
        }
        for diagnostic in verify::diagnose(&module).iter().take(3) {
            println!("{}", diagnostic.render(&module));
            errors += 1;
        }
        if diagnostics.is_empty() {
            let text = canonical(&module);
            if let Ok(dir) = std::env::var("PTX_CHECK_CANONICAL") {
                let name = path.rsplit('/').next().unwrap_or("x");
                if let Err(error) = std::fs::write(format!("{dir}/{name}"), &text) {
                    println!("{path}: {error}");
                }
            }
            let (again, diagnostics) = Module::parse("canonical", &text);
            for diagnostic in diagnostics.iter().take(3) {
                println!("{path}: {}", diagnostic.render(&again));
            }
            if let Err(error) = check::same(&module, &again) {
                println!("{path}: {error}");
                errors += 1;
            }
        }
        for diagnostic in diagnostics.iter().take(3) {
            println!("{}", diagnostic.render(&module));
        }
        bytes += text.len();
        kernels += module.kernels().count();
        for body in module.functions.values().filter_map(|f| f.body.as_ref()) {
            insts += body.insts.len();
            opaque += body.opaque.len();
            for &inst in body.opaque.iter().take(2) {
                println!("{path}: opaque: {}", module.text(body.insts[inst].span));
            }
        }
    }
    let rate = |time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    println!(
        "{bytes} bytes, {kernels} kernels, {insts} instructions ({opaque} opaque), \
         {errors} diagnostics; parse {parsing:.1?} = {:.0} MB/s, print {printing:.1?} = {:.0} MB/s",
        rate(parsing),
        rate(printing)
    );
}
