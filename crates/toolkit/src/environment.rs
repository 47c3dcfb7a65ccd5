//! What nvcc and the host compiler behind it may read besides their arguments and input files.
//!
//! They read dozens of variables (`CPATH`, `GCC_EXEC_PREFIX`, all that nvcc.profile names, those of wrappers
//! around the compiler), so every variable counts but for those that are known to say nothing to a compiler.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Variables of shells, terminals, desktops and build tools.
const HARMLESS: [&str; 29] = [
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "TERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "LS_COLORS",
    "PS1",
    "PS2",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESS",
    "MAIL",
    "LOGNAME",
    "USER",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "WINDOWID",
    "SHELL",
    "MANPATH",
    "INFOPATH",
    "TMPDIR",
    "CARGO",
    "TMUX",
];
/// Beginnings of such names.
const HARMLESS_BEGINNINGS: [&str; 9] = [
    "WARPWRIGHT_",
    "SSH_",
    "XDG_",
    "DBUS_",
    "CARGO_",
    "RUST_",
    "RUSTUP_",
    "NEXTEST",
    "HIST",
];

fn is_harmless(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    HARMLESS.contains(&&*name) || HARMLESS_BEGINNINGS.iter().any(|b| name.starts_with(b))
}

/// The variables that count, in the order of their names.
pub(crate) fn relevant() -> Vec<(OsString, OsString)> {
    let mut variables: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| !is_harmless(name))
        .collect();
    variables.sort();
    variables
}

/// The host compilers that nvcc would start: `NVCC_CCBIN`, and gcc and g++ in `PATH`.
pub(crate) fn host_compilers() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = |name: &str| {
        let mut places = std::env::split_paths(&path).map(|dir| dir.join(name));
        places.find(|file| file.is_file())
    };
    let named = std::env::var_os("NVCC_CCBIN").map(PathBuf::from);
    let found = ["gcc", "g++"].into_iter().filter_map(in_path);
    named
        .into_iter()
        .flat_map(|place| [place.join("gcc"), place.join("g++"), place])
        .chain(found)
        .filter(|file| file.is_file())
        .collect()
}
