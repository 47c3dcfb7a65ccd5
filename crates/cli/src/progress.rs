//! Progress on stderr; nothing is shown where stderr is no terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

use crate::terminal::printable;

/// A bar that counts to `length`, or a spinner if that is unknown.
pub fn bar(length: Option<u64>, message: &str) -> ProgressBar {
    let bar = match length {
        Some(n) => ProgressBar::new(n),
        None => ProgressBar::new_spinner(),
    };
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    bar.set_draw_target(target);
    let template = match length {
        Some(_) => "{msg} [{bar:30}] {pos}/{len}",
        None => "{spinner} {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(printable(message));
    bar
}
