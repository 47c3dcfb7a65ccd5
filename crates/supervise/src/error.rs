use std::fmt;

/// Why a program is not run.
#[derive(Debug)]
pub enum Error {
    /// It, what it reads or what it is given cannot be used.
    Input(String),
    /// None is named.
    Usage(String),
    /// A library of ours is not there.
    Missing {
        /// What is missing.
        what: String,
        /// What mends it.
        mend: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input(text) | Error::Usage(text) | Error::Missing { what: text, .. } => {
                f.write_str(text)
            }
        }
    }
}

impl std::error::Error for Error {}
