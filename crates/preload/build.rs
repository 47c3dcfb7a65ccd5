//! How the library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // It finds the one that it opens beside itself, before any folder that the program names.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN,--disable-new-dtags");
    // Of a name that the standard library defines as well its own comes first (src/lib.rs).
    println!("cargo:rustc-cdylib-link-arg=-Wl,--allow-multiple-definition");
}
