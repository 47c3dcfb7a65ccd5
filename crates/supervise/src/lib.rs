//! A program that a command runs as if it ran alone, with a library of ours in it: its standard input, its environment, the
//! signals that somebody sends to this process, and an end like the program's.
//!
//! * [`program`]: starting it with the library in it, waiting for it, becoming it; [`environment`]: its variables;
//!   [`needs`]: what it must have first.
//! * [`signals`]: what they end; [`stdin`]: what it reads; [`shown`]: what it writes; [`beside`]: what is said beside it.
//! * [`work`]: a folder to work in; [`limits`]: what a run takes; [`threads`]: how many work.
//!
//! It is for a process of its own: signals and standard input are taken for all of it.

pub mod beside;
mod environment;
mod fresh;
pub mod limits;
mod needs;
pub mod program;
pub mod shown;
pub mod signals;
pub mod stdin;
pub mod threads;
pub mod work;
