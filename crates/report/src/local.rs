//! Local memory that is no spill: which array or parameter lies there, why, and what would mend it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use warpwright_flow as flow;
use warpwright_pass::names::{base_name, source_name};
use warpwright_pass::ptx::local::{Index, LocalObject, Turns, Why, local_objects};
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
    /// It belongs to a function of CUDA's library.
    Library,
}

impl LocalArray {
    /// A sentence of what it is, and why it lies there.
    pub fn in_words(&self) -> String {
        let name = match (&self.name, self.parameter) {
            _ if self.cause == Cause::Library => "an array of CUDA's library".to_owned(),
            (Some(name), Some(_)) => format!("a copy of the parameter `{name}`"),
            (None, Some(at)) => format!("a copy of parameter {at} (from 0)"),
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

/// What the source says of that which may lie in local memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// What its functions declare.
    pub declared: Vec<Declared>,
    /// The lines (`file:line`) at which its functions are defined, by name.
    pub functions: BTreeMap<String, Vec<String>>,
    /// What is asked of the loops at lines (`file:line`) by a pragma in front: `#pragma unroll 1`.
    pub pragmas: BTreeMap<String, String>,
}

/// What a function of the source declares.
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

/// What a kernel keeps in local memory beside spills, as far as the PTX says so, with the names that the source has for
/// it. `stack`: bytes of the build's stack; what is larger does not lie there.
pub fn local_arrays(
    module: &Module,
    id: FuncId,
    stack: u32,
    room: Room,
    written: &Written,
) -> Vec<LocalArray> {
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
        written,
    };
    let mut arrays: Vec<LocalArray> = found.iter().map(|object| reader.array(object)).collect();
    let kernel = base_name(&module.functions[id].name);
    name(&mut arrays, &kernel, &written.declared);
    arrays
}

struct Reader<'m> {
    module: &'m Module,
    view: &'m View<'m>,
    lines: Lines<'m>,
    room: Room,
    written: &'m Written,
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
        let (cause, reason) = self.reason(object);
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

    /// `at k.cu:7`
    fn place(&self, inst: Inst) -> String {
        match self.line(inst) {
            Some(line) => format!("at {line}"),
            None => format!("of instruction {} (`{}`)", inst.as_u32(), self.text(inst)),
        }
    }

    fn reason(&self, object: &LocalObject) -> (Cause, String) {
        if object.is_trigonometric {
            let by = format!(
                "the `sinf`, `cosf`, `tanf` or `sincosf` {} indexes it where the argument is large",
                self.place(object.why.at())
            );
            return (Cause::Library, by);
        }
        match object.why {
            Why::Indexed { at, by } => {
                let (cause, by) = self.index(by);
                (cause, format!("the index {} {by}", self.place(at)))
            }
            Why::Passed { at, to } => {
                let (called, place) = (self.called(to), self.place(at));
                match called {
                    Called::Print => (
                        Cause::Library,
                        format!("it holds the arguments of the `printf` {place}"),
                    ),
                    Called::Own(to) => (
                        Cause::Call,
                        format!("its address {place} goes to {to}, which is not inlined"),
                    ),
                    Called::Elsewhere(to) => (
                        Cause::Call,
                        format!("its address {place} goes to {to}, which is compiled elsewhere"),
                    ),
                }
            }
            Why::Taken { at } => (
                Cause::Address,
                format!("its address {} is used as a value", self.place(at)),
            ),
        }
    }

    /// What an index goes by.
    fn index(&self, by: Index) -> (Cause, String) {
        let of = |exit: Inst| match self.line(exit) {
            Some(line) => format!("the loop at {line}"),
            None => "a loop".to_owned(),
        };
        match by {
            Index::Turns { exit, number } => {
                let number = match number {
                    Turns::Constant => "which is not fully unrolled",
                    Turns::Many => "which has too many turns to unroll",
                    Turns::Varying => "whose number of turns is not constant",
                    Turns::Unknown => "which is not unrolled",
                };
                (Cause::Loop, format!("goes by {}, {number}", of(exit)))
            }
            Index::Moved { exit } => (
                Cause::RunTime,
                format!("is moved by branches in {}, as a stack's is", of(exit)),
            ),
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
            Index::Computed => (
                Cause::RunTime,
                "goes by branches or the turns of a loop".to_owned(),
            ),
        }
    }

    fn called(&self, to: Option<FuncId>) -> Called {
        let Some(function) = to.map(|id| &self.module.functions[id]) else {
            return Called::Own("a function".to_owned());
        };
        let name = format!("`{}`", source_name(&function.name));
        match function.body.is_some() {
            _ if &*function.name == "vprintf" => Called::Print,
            true => Called::Own(name),
            false => Called::Elsewhere(name),
        }
    }

    /// What would mend it, the least work first.
    fn edits(&self, object: &LocalObject) -> Vec<Edit> {
        let edit = |line: Option<String>, text: String| Edit {
            line,
            text,
            gives: Gives::LocalBytes(object.bytes),
        };
        if object.copy_of.is_some() && object.is_only_read {
            let text =
                "write `const __grid_constant__` before the parameter: it is read where it lies";
            return vec![edit(None, text.to_owned())];
        }
        if object.is_trigonometric {
            let text = "`__sinf`, `__cosf`, `__tanf` or `__sincosf` in its place, or -use_fast_math, where their accuracy \
                        does; without the other arrays ptxas may keep it in registers, too";
            return vec![edit(None, text.to_owned())];
        }
        let own = self.line(object.why.at());
        match object.why {
            Why::Indexed { by, .. } => self.of_index(object, by),
            Why::Passed { to, .. } => {
                let (line, text) = match self.called(to) {
                    Called::Print => (own, "without this `printf`".to_owned()),
                    Called::Own(name) => (
                        to.and_then(|id| self.defined(id)),
                        format!("inline {name} (`__forceinline__`)"),
                    ),
                    Called::Elsewhere(name) => (
                        None,
                        format!("define {name} in this file, inlined (`__forceinline__`)"),
                    ),
                };
                vec![edit(line, text)]
            }
            Why::Taken { .. } => Vec::new(),
        }
    }

    /// What would mend an index.
    fn of_index(&self, object: &LocalObject, by: Index) -> Vec<Edit> {
        let edit = |line: Option<String>, text: String| Edit {
            line,
            text,
            gives: Gives::LocalBytes(object.bytes),
        };
        let own = self.line(object.why.at());
        let shared = self.room.advice(object.bytes);
        let shared = shared.map(|text| edit(own.clone(), text));
        let by_loop = self
            .unrolled(object, by)
            .map(|(line, text)| edit(line, text));
        let is_enough = by_loop.is_some() && !object.loops.is_empty();
        let cases = object.bytes / object.element;
        let text = "a `switch` over the index, with constant indices in its cases";
        let cases = ((2..=MOST_CASES).contains(&cases) && !matches!(by, Index::Turns { .. }))
            .then(|| edit(own, text.to_owned()));
        let fixed = match by {
            Index::Moved { exit } => {
                let text = "loops of a constant depth in its place, unrolled: each level has a constant index";
                Some(edit(self.line(exit), text.to_owned()))
            }
            _ => None,
        };
        let shared = shared.filter(|_| !is_enough);
        [by_loop, cases, shared, fixed]
            .into_iter()
            .flatten()
            .collect()
    }

    /// The line at which the source defines a function, where one function has its name.
    fn defined(&self, id: FuncId) -> Option<String> {
        let name = base_name(&self.module.functions[id].name);
        match &self.written.functions.get(&name)?[..] {
            [line] => Some(line.clone()),
            _ => None,
        }
    }

    /// How the loops that an index goes by would be unrolled, and the line of the first; none where that cannot be.
    fn unrolled(&self, object: &LocalObject, by: Index) -> Option<(Option<String>, String)> {
        let Index::Turns { exit, number } = by else {
            return None;
        };
        let text = match number {
            Turns::Many => return None,
            Turns::Varying => "give this loop a constant number of turns, and `#pragma unroll`",
            Turns::Unknown => {
                "`#pragma unroll` before this loop, if its number of turns has a constant bound"
            }
            Turns::Constant => {
                let mut lines: Vec<String> = object
                    .loops
                    .iter()
                    .filter_map(|&exit| self.line(exit))
                    .collect();
                lines.dedup();
                return self.pragmas(&lines);
            }
        };
        Some((self.line(exit), text.to_owned()))
    }

    /// `#pragma unroll` before the loops at some lines; none where one asks for it already.
    fn pragmas(&self, lines: &[String]) -> Option<(Option<String>, String)> {
        let pragmas = lines
            .iter()
            .filter_map(|line| self.written.pragmas.get(line));
        let now: BTreeSet<&String> = pragmas.collect();
        if now.iter().any(|now| *now == "#pragma unroll") {
            return None;
        }
        let now: Vec<String> = now.into_iter().map(|now| format!("`{now}`")).collect();
        let place = match now.is_empty() {
            true => String::new(),
            false => format!(" in place of {}", now.join(" and ")),
        };
        let Some((first, others @ [_, ..])) = lines.split_first() else {
            let text = "before this loop: its turns are constant, and so is the index then";
            return Some((
                lines.first().cloned(),
                format!("`#pragma unroll`{place} {text}"),
            ));
        };
        let text = format!(
            "`#pragma unroll`{place} before this loop and at {}: their turns are constant, and so is each index then",
            others.join(", ")
        );
        Some((Some(first.clone()), text))
    }
}

/// Whom an address is handed to.
enum Called {
    /// `printf` of CUDA's library.
    Print,
    /// A function of the module.
    Own(String),
    /// One that is linked to it.
    Elsewhere(String),
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
/// object; or the few of which it is one. `kernel`: the base of its name.
fn name(arrays: &mut [LocalArray], kernel: &str, declared: &[Declared]) {
    let all: Vec<Vec<&Declared>> = arrays
        .iter()
        .map(|array| candidates(array, kernel, declared))
        .collect();
    let chosen: Vec<Vec<&Declared>> = (0..arrays.len())
        .map(|at| told_apart(arrays, &all, at).map_or_else(|| all[at].clone(), |own| vec![own]))
        .collect();
    for (array, found) in arrays.iter_mut().zip(chosen) {
        let Some(&only) = found.first() else {
            continue;
        };
        let names: Vec<&str> = found.iter().map(|one| &*one.name).collect();
        let mut lines: Vec<&str> = found.iter().map(|one| &*one.line).collect();
        lines.dedup();
        array.bytes = only.bytes.unwrap_or(array.bytes);
        for edit in &mut array.edits {
            edit.gives = Gives::LocalBytes(array.bytes);
        }
        array.name = Some(names.join(" or "));
        array.declared = Some(lines.join(", "));
        if array.parameter.is_some() {
            for edit in array.edits.iter_mut().filter(|edit| edit.line.is_none()) {
                edit.line = Some(only.line.clone());
            }
        }
    }
}

/// What an object may be of that which the source declares; none where it may be too much.
fn candidates<'d>(array: &LocalArray, kernel: &str, declared: &'d [Declared]) -> Vec<&'d Declared> {
    // Objects are aligned: some bytes between two are no one's.
    let fits = |one: &&Declared| {
        let own = one.bytes.unwrap_or(array.bytes);
        (own..own.saturating_add(ALIGNED)).contains(&array.bytes)
    };
    let is_it = |one: &&Declared| match array.parameter {
        _ if array.cause == Cause::Library => false,
        Some(at) => one.function == kernel && one.parameter == Some(at),
        None => one.parameter.is_none() && one.uses.iter().any(|line| array.lines.contains(line)),
    };
    let found: Vec<&Declared> = declared.iter().filter(is_it).filter(fits).collect();
    let is_one_size = found.windows(2).all(|pair| pair[0].bytes == pair[1].bytes);
    match found.len() <= MOST_NAMES && is_one_size {
        true => found,
        false => Vec::new(),
    }
}

/// Which of its candidates an object is, where there are as many objects as candidates: each line that accesses an object
/// names it, and what another one must be it is not.
fn told_apart<'d>(
    arrays: &[LocalArray],
    all: &[Vec<&'d Declared>],
    at: usize,
) -> Option<&'d Declared> {
    let alike: Vec<usize> = (0..all.len()).filter(|&of| all[of] == all[at]).collect();
    if alike.len() != all[at].len() {
        return None;
    }
    let named = |of: usize| -> Vec<&Declared> {
        let is_named = |one: &&Declared| arrays[of].lines.iter().all(|l| one.uses.contains(l));
        all[of].iter().copied().filter(is_named).collect()
    };
    let mut left: Vec<(usize, Vec<&Declared>)> = alike.iter().map(|&of| (of, named(of))).collect();
    let mut own = None;
    while let Some(next) = left.iter().position(|(_, found)| found.len() == 1) {
        let (of, found) = left.swap_remove(next);
        let taken = found[0];
        for (_, others) in &mut left {
            others.retain(|&other| other != taken);
        }
        own = own.or((of == at).then_some(taken));
    }
    // What is left over, or may be nothing, says that a line goes by another name.
    own.filter(|_| left.is_empty())
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
