//! nvdisasm's rule for guarded writes, and for the stack pointer, which are not ours.
//!
//! Within a run of code that is entered at its top alone, nvdisasm keeps a register alive over a guarded
//! write, as we do. But it computes what is live between such runs from a summary of each, and in the summary
//! a guarded write ends a life. A run (nvdisasm calls it a hyperblock and draws it with `-cfg`) begins at a
//! label, also at one that only `.nv.info` names, and behind an unconditional transfer; conditional branches,
//! calls and barriers do not end it. So a register that is written under a guard and read in a later run is
//! live at the top of the first run, and not at the end of what leads there. For whoever changes code that
//! would be wrong; here it is needed to tell the rule from a mistake of ours.
//!
//! A write under a uniform predicate ends a life even within the run. And R1 counts as read wherever control
//! leaves a run, also where it is overwritten before anything reads it.
//!
//! Found with patched kernels: docs/sass.md, tests/hyperblocks.rs.
//!
//! [`Hyperblocks`] states the rule as another [`Function`], so that the liveness that is held against
//! nvdisasm's is flow's own. Each run appears twice. The first copy is the code itself; what leaves it goes to
//! the second copy of the run that follows. The second copy is the summary: what the run reads before any
//! unguarded write, and then its writes, all of them unguarded, with its exits between them.

use warpwright_flow::{Class, ClassInfo, EntityRef, Function, Inst, LiveSet, Transfer, Value};

use super::occupied::for_each_occupied;
use super::{Code, value_of};
use crate::roles::File;

/// The bit where the guard of every instruction stands.
const GUARD: u8 = 12;

/// One instruction of the view.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The top of a summary: all that the run reads from outside.
    Reads(usize),
    /// An instruction of the code.
    Code(Inst),
    /// Its writes, or its exit.
    Summary(Inst),
    /// On to the summary of this run.
    Next(usize),
}

/// A section as nvdisasm analyses it.
pub struct Hyperblocks<'a> {
    code: &'a Code,
    places: Vec<Place>,
    /// The run of each instruction.
    run: Vec<u32>,
    /// Where the summary of each run begins.
    summary: Vec<Inst>,
    /// What each run reads before any unguarded write.
    reads: Vec<Vec<Value>>,
}

impl<'a> Hyperblocks<'a> {
    /// `labelled`: before which instructions nvdisasm shows a label.
    pub fn new(code: &'a Code, labelled: impl Fn(Inst) -> bool) -> Hyperblocks<'a> {
        let starts = starts(code, labelled);
        let count = code.inst_count();
        let runs = || {
            let ends = starts.iter().skip(1).copied().chain([count]);
            starts.iter().copied().zip(ends).enumerate()
        };
        let mut view = Hyperblocks {
            code,
            places: Vec::with_capacity(2 * count + 3 * starts.len()),
            run: Vec::with_capacity(count),
            summary: Vec::with_capacity(starts.len()),
            reads: Vec::with_capacity(starts.len()),
        };
        let mut written = LiveSet::new(code.value_count());
        for (number, (start, end)) in runs() {
            let insts = (start..end).map(Inst::new);
            view.places.extend(insts.clone().map(Place::Code));
            view.places.push(Place::Next(number + 1));
            view.run.extend((start..end).map(|_| number as u32));
            view.reads.push(reads(code, insts, &mut written));
        }
        for (number, (start, end)) in runs() {
            view.summary.push(Inst::new(view.places.len()));
            view.places.push(Place::Reads(number));
            view.places
                .extend((start..end).map(|at| Place::Summary(Inst::new(at))));
            view.places.push(Place::Next(number + 1));
        }
        view
    }

    /// Visits the instructions of the code with their occupied registers, as [`for_each_occupied`] does.
    pub fn for_each_occupied(&self, mut visit: impl FnMut(Inst, &[Value])) {
        for_each_occupied(self, |at, occupied| {
            if let Place::Code(inst) = self.place(at) {
                visit(inst, occupied);
            }
        });
    }

    fn place(&self, at: Inst) -> Place {
        self.places[at.index()]
    }

    /// Does control leave the run there?
    fn leaves(&self, at: Inst) -> bool {
        match self.place(at) {
            Place::Code(inst) | Place::Summary(inst) => self.is_exit(inst),
            Place::Next(run) => run < self.summary.len(),
            Place::Reads(_) => false,
        }
    }

    /// Does a transfer of control stand there, which the summary keeps instead of writes?
    fn is_exit(&self, inst: Inst) -> bool {
        !matches!(self.code.transfer(inst), Transfer::Next | Transfer::Call)
    }
}

/// The first instructions of the runs, ascending.
fn starts(code: &Code, labelled: impl Fn(Inst) -> bool) -> Vec<usize> {
    let count = code.inst_count();
    let mut is_start = vec![false; count + 1];
    for at in 0..count {
        let inst = Inst::new(at);
        is_start[at] |= at == 0 || labelled(inst);
        let stays = matches!(
            code.transfer(inst),
            Transfer::Next | Transfer::Call | Transfer::Branch
        );
        is_start[at + 1] |= !stays && !code.is_predicated(inst);
        code.for_each_target(inst, |target| is_start[target.index()] = true);
    }
    (0..count).filter(|&at| is_start[at]).collect()
}

/// Is it guarded, and not by a uniform predicate?
fn may_leave_alive(code: &Code, inst: Inst) -> bool {
    let mut guards = code.roles(inst).uses().filter(|span| span.bit == GUARD);
    code.is_predicated(inst) && guards.all(|span| span.file != File::UniformPred)
}

/// What `insts` read before any unguarded write.
fn reads(code: &Code, insts: impl Iterator<Item = Inst>, written: &mut LiveSet) -> Vec<Value> {
    let mut reads = Vec::new();
    written.clear();
    for inst in insts {
        code.for_each_use(inst, |value| {
            if !written.contains(value) {
                reads.push(value);
            }
        });
        if !may_leave_alive(code, inst) {
            code.for_each_def(inst, |value| {
                written.insert(value);
            });
        }
    }
    reads.sort_unstable();
    reads.dedup();
    reads
}

impl Function for Hyperblocks<'_> {
    fn inst_count(&self) -> usize {
        self.places.len()
    }

    fn value_count(&self) -> usize {
        self.code.value_count()
    }

    fn classes(&self) -> &[ClassInfo] {
        self.code.classes()
    }

    fn class(&self, value: Value) -> Class {
        self.code.class(value)
    }

    fn for_each_use(&self, at: Inst, mut visit: impl FnMut(Value)) {
        match self.place(at) {
            Place::Reads(run) => self.reads[run].iter().copied().for_each(&mut visit),
            Place::Code(inst) => self.code.for_each_use(inst, &mut visit),
            Place::Summary(_) | Place::Next(_) => {}
        }
        if self.leaves(at) {
            value_of(File::Gpr, 1).into_iter().for_each(visit);
        }
    }

    fn for_each_def(&self, at: Inst, visit: impl FnMut(Value)) {
        match self.place(at) {
            Place::Code(inst) => self.code.for_each_def(inst, visit),
            Place::Summary(inst) if !self.is_exit(inst) => self.code.for_each_def(inst, visit),
            _ => {}
        }
    }

    fn is_predicated(&self, at: Inst) -> bool {
        match self.place(at) {
            Place::Code(inst) if !self.is_exit(inst) => may_leave_alive(self.code, inst),
            Place::Code(inst) => self.code.is_predicated(inst),
            Place::Summary(inst) => self.is_exit(inst) && self.code.is_predicated(inst),
            Place::Reads(_) | Place::Next(_) => false,
        }
    }

    fn transfer(&self, at: Inst) -> Transfer {
        match self.place(at) {
            Place::Code(inst) | Place::Summary(inst) => self.code.transfer(inst),
            Place::Next(run) if run < self.summary.len() => Transfer::Jump,
            Place::Next(_) => Transfer::Return,
            Place::Reads(_) => Transfer::Next,
        }
    }

    fn for_each_target(&self, at: Inst, mut visit: impl FnMut(Inst)) {
        match self.place(at) {
            Place::Code(inst) | Place::Summary(inst) => {
                self.code.for_each_target(inst, |target| {
                    visit(self.summary[self.run[target.index()] as usize]);
                });
            }
            Place::Next(run) => self.summary.get(run).copied().into_iter().for_each(visit),
            Place::Reads(_) => {}
        }
    }

    fn value_name(&self, value: Value) -> String {
        self.code.value_name(value)
    }

    fn inst_text(&self, at: Inst) -> String {
        match self.place(at) {
            Place::Code(inst) | Place::Summary(inst) => self.code.inst_text(inst),
            Place::Reads(_) | Place::Next(_) => String::new(),
        }
    }
}
