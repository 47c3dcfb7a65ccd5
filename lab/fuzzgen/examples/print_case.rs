//! Prints a generated kernel and its launch: `cargo run -p warpwright-fuzzgen --example print_case SEED`.
use warpwright_fuzzgen::{Config, generate, launch_toml, print};

fn main() {
    let seed = std::env::args()
        .nth(1)
        .and_then(|s| s.parse().ok())
        .unwrap_or(0);
    let program = generate(seed, &Config::default());
    println!("{}", print(&program));
    eprintln!("{}", launch_toml(&program));
}
