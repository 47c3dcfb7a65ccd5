//! Local memory that is no spill: which array or parameter lies there, why, and what would mend it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use warpwright_flow as flow;
use warpwright_pass::names::source_name;
use warpwright_pass::ptx::local::{Index, LocalObject, Why, local_objects};
use warpwright_ptx::{FuncId, Inst, Module, View};
use warpwright_sass::Elf;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::lines::ptx_lines;
use warpwright_target::WARP_SIZE;

use crate::edit::{Edit, Gives};
use crate::explain::Lines;

/// Elements of an array that one would write a `switch` over, at most.
const MOST_CASES: u64 = 16;

/// Arrays declared in one line that nothing tells apart, at most.
const MOST_NAMES: usize = 3;

/// The largest alignment of an object, in bytes.
const ALIGNED: u64 = 16;

/// An array or a copy of a parameter in local memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalArray {
    /// What the source calls it, or the PTX where that has a variable for it alone.
    pub name: Option<String>,
    /// Where the source declares it (`file:line`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// The kernel's parameter (from 0) that it is a copy of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<usize>,
    /// Bytes of a thread.
    pub bytes: u64,
    /// Its kind of cause.
    pub cause: Cause,
    /// Why it lies there, in words.
    pub reason: String,
    /// The instruction of the PTX that shows it: its index and its text.
    pub at: u32,
    /// Its text.
    pub instruction: String,
    /// The lines of the source that load or store it, the one that shows the reason first.
    pub lines: Vec<String>,
    /// The lines of the PTX that do, from 1.
    pub in_ptx: Vec<u32>,
    /// What would mend it.
    pub edits: Vec<Edit>,
}

/// Why something lies in local memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Its index is a loop's, which is not unrolled.
    Loop,
    /// Its index is known at run time alone.
    RunTime,
    /// Its address is handed to a function that is not inlined.
    Call,
    /// Its address is used as a value.
    Address,
}

impl LocalArray {
    /// A sentence of what it is, and why it lies there.
    pub fn in_words(&self) -> String {
        let name = match (&self.name, self.parameter) {
            (Some(name), Some(_)) => format!("a copy of the parameter `{name}`"),
            (None, Some(at)) => format!("a copy of parameter {}", at + 1),
            (Some(name), None) => format!("`{name}`"),
            (None, None) => "an array".to_owned(),
        };
        let declared = self.declared.as_ref();
        let declared = declared.map_or_else(String::new, |line| format!(" ({line})"));
        format!(
            "{name}{declared} lies in local memory, {} B: {}",
            self.bytes, self.reason
        )
    }
}

/// What the source declares, for the names of what lies in local memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Where (`file:line`).
    pub line: String,
    /// The function's name.
    pub function: String,
    /// Of a parameter by value: its index.
    pub parameter: Option<usize>,
    /// Bytes of a thread, if they are known.
    pub bytes: Option<u64>,
    /// The lines of its function that name it (`file:line`).
    pub uses: Vec<String>,
}

/// What a kernel keeps in local memory beside spills, as far as the PTX says so. `stack`: bytes of the build's stack;
/// what is larger does not lie there.
pub fn local_arrays(module: &Module, id: FuncId, stack: u32, room: Room) -> Vec<LocalArray> {
    let Some(view) = module.view(id) else {
        return Vec::new();
    };
    let lines = Lines { module, id };
    let mut found = local_objects(module, id);
    found.retain(|object| object.bytes <= u64::from(stack));
    let reader = Reader {
        module,
        view: &view,
        lines,
        room,
    };
    found.iter().map(|object| reader.array(object)).collect()
}

struct Reader<'m> {
    module: &'m Module,
    view: &'m View<'m>,
    lines: Lines<'m>,
    room: Room,
}

/// The shared memory that a block has left.
#[derive(Clone, Copy)]
pub struct Room {
    /// Threads of the block.
    pub threads: u32,
    /// Bytes without asking for more.
    pub unasked: u32,
    /// Bytes where the kernel opts in.
    pub most: u32,
}

impl Room {
    /// The advice to keep what takes so many bytes of a thread there; none where it does not fit a warp.
    fn advice(self, bytes: u64) -> Option<String> {
        let of = |threads: u32| bytes.saturating_mul(u64::from(threads));
        let threads = match of(self.threads) > u64::from(self.most) {
            true => {
                u32::try_from(u64::from(self.most) / bytes.max(1)).ok()? / WARP_SIZE * WARP_SIZE
            }
            false => self.threads,
        };
        let (bytes, most) = (of(threads), threads < self.threads);
        let asked = match bytes > u64::from(self.unasked) {
            true => {
                ", dynamic, which the launch's code asks for (cudaFuncAttributeMaxDynamicSharedMemorySize)"
            }
            false => "",
        };
        let whole = match most {
            true => format!("in blocks of at most {threads} threads keep it in shared memory"),
            false => "keep it in shared memory".to_owned(),
        };
        (threads > 0).then(|| format!("{whole}: {bytes} B for {threads} threads{asked}"))
    }
}

impl Reader<'_> {
    fn line(&self, inst: Inst) -> Option<String> {
        self.lines.of(flow::Inst(inst.as_u32()))
    }

    fn text(&self, inst: Inst) -> String {
        flow::Function::inst_text(self.view, flow::Inst(inst.as_u32()))
    }

    fn array(&self, object: &LocalObject) -> LocalArray {
        let at = object.why.at();
        let mut lines: Vec<String> = self.line(at).into_iter().collect();
        for line in object.accesses.iter().filter_map(|&inst| self.line(inst)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let variable = &self.module.variables[object.var];
        let is_whole = variable.bytes() == object.bytes && !variable.name.starts_with("__");
        let (cause, reason) = self.reason(&object.why);
        LocalArray {
            name: is_whole.then(|| variable.name.to_string()),
            declared: None,
            parameter: object.copy_of,
            bytes: object.bytes,
            cause,
            reason,
            at: at.as_u32(),
            instruction: self.text(at),
            lines,
            in_ptx: self.in_ptx(object),
            edits: self.edits(object),
        }
    }

    fn in_ptx(&self, object: &LocalObject) -> Vec<u32> {
        let line = |inst: &Inst| {
            let start = self.view.body().insts[*inst].span.start as usize;
            let before = self.module.source.get(..start).unwrap_or_default();
            1 + before.bytes().filter(|&byte| byte == b'\n').count() as u32
        };
        let mut lines: Vec<u32> = object.accesses.iter().map(line).collect();
        lines.dedup();
        lines
    }

    fn reason(&self, why: &Why) -> (Cause, String) {
        let place = |inst: Inst| match self.line(inst) {
            Some(line) => format!("at {line}"),
            None => format!("of instruction {} (`{}`)", inst.as_u32(), self.text(inst)),
        };
        match *why {
            Why::Indexed { at, by } => {
                let at = place(at);
                let (cause, by) = match by {
                    Index::Turns { exit, is_fixed } => {
                        let turns = match is_fixed {
                            true => "which is not fully unrolled",
                            false => "whose number of turns is not constant",
                        };
                        let of = match self.line(exit) {
                            Some(line) => format!("the loop at {line}"),
                            None => "a loop".to_owned(),
                        };
                        (Cause::Loop, format!("goes by {of}, {turns}"))
                    }
                    Index::Loaded(from) => {
                        let text = self.text(from);
                        let word = text.split_whitespace().find(|word| !word.starts_with('@'));
                        let word = word.unwrap_or_default().to_owned();
                        (
                            Cause::RunTime,
                            format!("is not known before `{word}` has run"),
                        )
                    }
                    Index::Thread => (
                        Cause::RunTime,
                        "goes by a special register, such as the thread's number".to_owned(),
                    ),
                    Index::Parameter => (Cause::RunTime, "goes by a parameter".to_owned()),
                    Index::Computed => (Cause::RunTime, "goes by branches".to_owned()),
                };
                (cause, format!("the index {at} {by}"))
            }
            Why::Passed { at, to } => {
                let name = to.map(|id| source_name(&self.module.functions[id].name));
                let to = name.map_or_else(
                    || "a function that is not inlined".to_owned(),
                    |name| format!("`{name}`, which is not inlined"),
                );
                (
                    Cause::Call,
                    format!("its address {} goes to {to}", place(at)),
                )
            }
            Why::Taken { at } => (
                Cause::Address,
                format!("its address {} is used as a value", place(at)),
            ),
        }
    }

    /// What would mend it, the least work first.
    fn edits(&self, object: &LocalObject) -> Vec<Edit> {
        let edit = |line: Option<String>, text: String| Edit {
            line,
            text,
            gives: Gives::LocalBytes(object.bytes),
        };
        let mut edits = Vec::new();
        if object.copy_of.is_some() && object.is_only_read {
            let text =
                "write `const __grid_constant__` before the parameter: it is read where it lies";
            return vec![edit(None, text.to_owned())];
        }
        match object.why {
            Why::Indexed { at, by } => {
                let own = self.line(at);
                if let Index::Turns { exit, is_fixed } = by {
                    let text = match is_fixed {
                        true => {
                            "`#pragma unroll` before this loop: its turns are constant, and so is the index then"
                        }
                        false => "give this loop a constant number of turns, and `#pragma unroll`",
                    };
                    edits.push(edit(self.line(exit), text.to_owned()));
                    if is_fixed {
                        return edits;
                    }
                }
                let cases = object.bytes / object.element;
                if (2..=MOST_CASES).contains(&cases) && !matches!(by, Index::Turns { .. }) {
                    let text = "a `switch` over the index, with constant indices in its cases";
                    edits.push(edit(own.clone(), text.to_owned()));
                }
                let shared = self.room.advice(object.bytes);
                edits.extend(shared.map(|text| edit(own, text)));
            }
            Why::Passed { at, to } => {
                let name = to.map(|id| source_name(&self.module.functions[id].name));
                let name =
                    name.map_or_else(|| "the function".to_owned(), |name| format!("`{name}`"));
                let text = format!("inline {name} (`__forceinline__`)");
                edits.push(edit(self.line(at), text));
            }
            Why::Taken { .. } => {}
        }
        edits
    }
}

/// Leaves those of which a build has loads or stores in local memory: ptxas moves some to registers. One whose address is
/// handed over stays.
pub fn keep_built(arrays: &mut Vec<LocalArray>, elf: &Elf, kernel: &str) {
    let code = elf.kernel(kernel).ok();
    let code = code.and_then(|found| Code::new(elf, &found, Calls::Followed).ok());
    let (Some(code), Ok(lines)) = (code, ptx_lines(elf, kernel)) else {
        return;
    };
    let is_local = |at: usize| {
        let text = flow::Function::inst_text(&code, flow::Inst(at as u32));
        let mut words = text.split_whitespace();
        words.any(|word| word.starts_with("LDL") || word.starts_with("STL"))
    };
    let all = lines.iter().enumerate();
    let local: BTreeSet<u32> = all
        .filter_map(|(at, line)| line.filter(|_| is_local(at)))
        .collect();
    if lines.iter().any(Option::is_some) {
        let is_there = |array: &LocalArray| array.in_ptx.iter().any(|line| local.contains(line));
        arrays.retain(|array| array.cause == Cause::Call || is_there(array));
    }
}

/// Gives objects the names of the source: of what it declares, the thing of that size that a line names which accesses the
/// object; or the few of one line, of which it is one. `kernel`: the base of its name.
pub fn name(arrays: &mut [LocalArray], kernel: &str, declared: &[Declared]) {
    for array in arrays {
        // Objects are aligned: some bytes between two are no one's.
        let fits = |one: &&Declared| {
            let own = one.bytes.unwrap_or(array.bytes);
            (own..own.saturating_add(ALIGNED)).contains(&array.bytes)
        };
        let is_it = |one: &&Declared| match array.parameter {
            Some(at) => one.function == kernel && one.parameter == Some(at),
            None => {
                one.parameter.is_none() && one.uses.iter().any(|line| array.lines.contains(line))
            }
        };
        let found: Vec<&Declared> = declared.iter().filter(is_it).filter(fits).collect();
        let (Some(&only), ..=MOST_NAMES) = (found.first(), found.len()) else {
            continue;
        };
        // Which of several it is nothing says.
        let names: Vec<&str> = found.iter().map(|one| &*one.name).collect();
        let is_at = |one: &&&Declared| one.line == only.line;
        let is_of = |one: &&&Declared| one.bytes == only.bytes;
        if !found.iter().all(|one| is_at(&one) && is_of(&one)) {
            continue;
        }
        array.bytes = only.bytes.unwrap_or(array.bytes);
        for edit in &mut array.edits {
            edit.gives = Gives::LocalBytes(array.bytes);
        }
        array.name = Some(names.join(" or "));
        array.declared = Some(only.line.clone());
        if array.parameter.is_some() {
            for edit in array.edits.iter_mut().filter(|edit| edit.line.is_none()) {
                edit.line = Some(only.line.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_of_shared_memory_fits_a_block() {
        let room = |threads| Room {
            threads,
            unasked: 48 << 10,
            most: 227 << 10,
        };
        let said = |threads, bytes| room(threads).advice(bytes).unwrap_or_default();
        assert_eq!(
            said(128, 384),
            "keep it in shared memory: 49152 B for 128 threads"
        );
        assert!(said(256, 256).starts_with(
            "keep it in shared memory: 65536 B for 256 threads, dynamic, which the launch's code asks for"
        ));
        assert!(said(256, 4096).starts_with(
            "in blocks of at most 32 threads keep it in shared memory: 131072 B for 32 threads, dynamic"
        ));
        assert_eq!(room(256).advice(8192), None);
    }
}
