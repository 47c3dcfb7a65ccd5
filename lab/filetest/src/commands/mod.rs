//! The commands of all rooms. A room adds a file here and a line to [`all`].

mod check;
mod cuda;
mod pass;
mod ptx;
pub mod run;
mod sass;

use crate::harness::Registry;

/// All commands.
pub fn all() -> Registry {
    let mut registry = Registry::new();
    registry.add(check::COMMANDS);
    registry.add(pass::COMMANDS);
    registry.add(ptx::COMMANDS);
    registry.add(run::COMMANDS);
    registry.add_for("cu", cuda::COMMANDS);
    registry.add_for("sass", sass::COMMANDS);
    registry
}
