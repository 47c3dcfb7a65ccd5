//! The drop-in for ptxas; see `warpwright-dropin`.

fn main() -> std::process::ExitCode {
    warpwright_dropin::main()
}
