//! Prints the static profile of every kernel of a cubin: `cargo run -p warpwright-sass --example profile FILE`.
use warpwright_sass::{Cubin, Latencies, Profile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: profile FILE.cubin")?;
    let cubin = Cubin::parse(&std::fs::read(path)?)?;
    let latencies = Latencies {
        global: 500.0,
        local: 35.0,
        shared: 30.0,
        sfu: 20.0,
        fp64: 16.0,
        other: 20.0,
    };
    for k in &cubin.kernels {
        println!(
            "sm_{} {} entry={} regs={} frame={} shared={} max={:?}\n{:#?}",
            cubin.sm,
            k.name,
            k.is_entry,
            k.registers,
            k.frame_bytes,
            k.shared_bytes,
            k.max_threads,
            Profile::new(&k.code, &latencies)
        );
    }
    Ok(())
}
