//! The host functions around generated kernels: `NAME_try` launches one of them where it can, and `NAME_launch` takes the
//! place of `NAME<<<…>>>` ([`crate::replace`]).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::names::{free, free_stem};

/// What the parts of a generated text are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    stem: String,
    /// Names that are free: the grid, the block, the shared memory, the stream, the arguments.
    pub free: [String; 5],
}

impl Names {
    /// The names for a kernel in a text that has these words; `parts` is what names go on with behind the kernel's.
    pub fn new(kernel: &str, words: &BTreeSet<String>, parts: &[&str]) -> Names {
        let all = [&["_launch", "_try"], parts].concat();
        let roles = ["grid", "block", "shared", "stream", "arguments"];
        Names {
            stem: free_stem(kernel, words, &all),
            free: roles.map(|word| free(word, |name| words.contains(name))),
        }
    }

    /// The function that a program calls in place of the kernel.
    pub fn launch(&self) -> String {
        self.of("_launch")
    }

    /// The function that launches a generated kernel where it can.
    pub fn attempt(&self) -> String {
        self.of("_try")
    }

    /// A name that goes on so.
    pub fn of(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.stem)
    }
}

/// `NAME_try` while it is written. It returns `cudaErrorNotSupported`, and has launched nothing, where the generated
/// kernels are not for a launch.
pub struct Attempt {
    text: String,
}

impl Attempt {
    /// Its head; an error from before is left for somebody who still has to see it.
    pub fn new(name: &str, parameters: &[String], stream: &str) -> Attempt {
        let parameters = parameters.join(", ");
        let text =
            format!("static inline cudaError_t {name}({parameters}, cudaStream_t {stream})\n{{\n");
        let mut attempt = Attempt { text };
        attempt.unless(&["cudaPeekAtLastError() != cudaSuccess".to_owned()]);
        attempt
    }

    /// A line.
    pub fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    /// Leaves where one of these holds.
    pub fn unless(&mut self, what: &[String]) {
        if !what.is_empty() {
            let what = what.join(" ||\n        ");
            self.line(&format!("if ({what}) return cudaErrorNotSupported;"));
        }
    }

    /// Begins what is done where all of these hold.
    pub fn open(&mut self, conditions: &[String], and: &str) {
        match conditions.is_empty() {
            true => self.line("{"),
            false => self.line(&format!("if ({}) {{", conditions.join(and))),
        }
    }

    /// Ends it with the status of its launches.
    pub fn close(&mut self) {
        self.text += "        return cudaPeekAtLastError();\n    }\n";
    }

    /// Leaves where a grid's second or third dimension, which have 16 bits, is larger.
    pub fn fits(&mut self, blocks: &str) {
        self.line(&format!(
            "    if ({blocks} > 65535) return cudaErrorNotSupported;"
        ));
    }

    /// Asks for shared memory beyond what a kernel has without asking, bytes.
    pub fn shared(&mut self, kernel: &str, bytes: u32) {
        let _ = writeln!(
            self.text,
            "        if (cudaFuncSetAttribute({kernel}, cudaFuncAttributeMaxDynamicSharedMemorySize, {bytes}) != \
             cudaSuccess) {{\n            cudaGetLastError();\n            return cudaErrorNotSupported;\n        }}"
        );
    }

    /// A launch: how many blocks, the block, bytes of shared memory and the stream, the arguments.
    pub fn launch(&mut self, kernel: &str, [x, y, z]: &[String; 3], how: &str, arguments: &str) {
        let _ = writeln!(
            self.text,
            "        {kernel}<<<dim3((unsigned)({x}), (unsigned)({y}), (unsigned)({z})), {how}>>>(\n            \
             {arguments});"
        );
    }

    /// Text as it stands.
    pub fn push(&mut self, text: &str) {
        self.text += text;
    }

    /// All of it; `is_sure`: something is always launched.
    pub fn end(mut self, is_sure: bool) -> String {
        if !is_sure {
            self.line("return cudaErrorNotSupported;");
        }
        self.text + "}\n"
    }
}
