//! What people are told while a program is tuned.

use warpwright::Error;
use warpwright::optimise;
use warpwright_autotune::{Bar, Watch};
use warpwright_supervise::signals::asked_to_end;

use crate::args::Cli;
use crate::commands::opt::Progress;
use crate::failure::Failure;
use crate::progress;

/// On standard error.
pub struct Told<'a>(pub &'a Cli);

impl Watch for Told<'_> {
    fn tell(&self, line: &str) {
        eprintln!("{line}");
    }

    fn warn(&self, line: &str) {
        complain!("{line}");
    }

    fn failed(&self, error: Error) {
        let _ = Failure::from(error).report(false);
    }

    fn shown(&self, error: Error) -> String {
        Failure::from(error).shown()
    }

    fn unstored(&self, error: Error) {
        let failure = Failure::from(error);
        complain!("warning: the measurements were not stored: {failure:?}");
    }

    fn bar(&self, parts: Option<u64>, what: &str) -> Box<dyn Bar + '_> {
        Box::new(progress::bar(parts, what))
    }

    fn refused(&self, kernel: &str, of: &str, error: Error) {
        if self.0.verbose > 0 {
            complain!("{kernel}: no candidates from {of}");
            self.failed(error);
        }
    }

    fn is_asked_to_end(&self) -> bool {
        asked_to_end()
    }

    fn building(&self) -> Box<dyn optimise::Watch + '_> {
        Box::new(Progress::new(self.0, false))
    }
}
