//! Host code read: which launches a file makes, as facts.

pub mod code;

pub use code::number;
