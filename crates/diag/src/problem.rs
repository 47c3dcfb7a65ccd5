//! What is wrong, in words.

use std::fmt;

/// Why something is not done, and whose fault that is.
#[derive(Debug)]
pub enum Problem {
    /// What was given cannot be used.
    Input(String),
    /// What was asked for contradicts itself.
    Usage(String),
    /// Something is not there.
    Missing {
        /// What is missing.
        what: String,
        /// What mends it.
        mend: Option<String>,
    },
    /// A mistake of ours.
    Internal(String),
    /// Nothing is proved, so nothing is given out.
    Undecided(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Input(text)
            | Problem::Usage(text)
            | Problem::Missing { what: text, .. }
            | Problem::Internal(text)
            | Problem::Undecided(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Problem {}
