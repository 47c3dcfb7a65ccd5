//! What is written for the command line: modules, launches, parameters, and what was not computed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpwright_target::Gpu;
use warpwright_winners::LaunchClass;
use warpwright_winners::fit::Place;
use warpwright_winners::lines::{Arguments, HEAD, Launches, Note, Steady};
use warpwright_winners::store::write_whole;

/// Kinds of launches that are kept apart, at most.
const KINDS: usize = 16_384;
/// How often the notes are written while the program runs.
const INTERVAL: Duration = Duration::from_millis(500);
/// The version of the driver's interface that is stood in for: that of the headers in `abi`.
pub const DRIVER: u32 = 13_000;

/// One launch.
pub struct Seen<'a> {
    pub module: &'a str,
    pub kernel: &'a str,
    pub class: LaunchClass,
    pub grid: [u32; 3],
    pub cooperative: bool,
    pub in_graph: bool,
    pub resident: u32,
}

/// Launches that are counted together.
#[derive(Clone, Copy)]
pub struct Kind {
    place: usize,
    /// Is it the first of them?
    pub is_new: bool,
}

/// What was seen so far.
pub struct Record {
    folder: Option<PathBuf>,
    modules: Vec<Note>,
    launches: Vec<Launches>,
    /// What stayed the same, by place in `launches`.
    steady: BTreeMap<usize, Steady>,
    known: BTreeMap<(String, String, LaunchClass), usize>,
    notes: Vec<Note>,
    said: BTreeSet<String>,
    /// Launches so far.
    pub number: u64,
    /// The first launch that was not computed.
    pub gap: Option<u64>,
    /// Up to this launch nothing can rest on what was not computed.
    exact: Option<u64>,
    /// The first kernel that ran functions which GPUs approximate, until the program has looked at results.
    approximate: Option<String>,
    is_rounded: bool,
    /// How often the program has looked at what was not computed.
    pub looks: u64,
    written: Option<Instant>,
    /// Bytes of what launches read that may still be kept.
    room: u64,
    kept: BTreeSet<String>,
}

impl Record {
    /// In a folder, with so many bytes of what launches read.
    pub fn new(folder: Option<PathBuf>, room: u64) -> Record {
        Record {
            folder,
            room,
            kept: BTreeSet::new(),
            modules: Vec::new(),
            launches: Vec::new(),
            steady: BTreeMap::new(),
            known: BTreeMap::new(),
            notes: Vec::new(),
            said: BTreeSet::new(),
            number: 0,
            gap: None,
            exact: None,
            approximate: None,
            is_rounded: false,
            looks: 0,
            written: None,
        }
    }

    /// Counts a launch; none of a kind too many.
    pub fn launch(&mut self, seen: &Seen<'_>) -> Option<Kind> {
        self.number += 1;
        let key = (seen.module.to_owned(), seen.kernel.to_owned(), seen.class);
        let known = self.known.get(&key).copied();
        let place = match known {
            Some(place) => place,
            None if self.launches.len() >= KINDS => return None,
            None => {
                self.launches.push(Launches {
                    module: key.0.clone(),
                    class: seen.class,
                    grid: seen.grid,
                    count: 0,
                    in_graphs: 0,
                    timed: 0,
                    total_ns: 0,
                    graph_ns: 0,
                    cooperative: seen.cooperative,
                    resident: seen.resident,
                    kernel: key.1.clone(),
                });
                self.known.insert(key, self.launches.len() - 1);
                self.launches.len() - 1
            }
        };
        match seen.in_graph {
            true => self.launches[place].in_graphs += 1,
            false => self.launches[place].count += 1,
        }
        Some(Kind {
            place,
            is_new: known.is_none(),
        })
    }

    /// What the first launch of a kind was given, the bytes of its parameters.
    pub fn begins(
        &mut self,
        kind: Kind,
        bytes: &[u8],
        places: Arc<[Place]>,
        is_pointer: impl Fn(u64) -> bool,
    ) {
        let first = Steady::first(&self.launches[kind.place], bytes, places, is_pointer);
        self.steady.insert(kind.place, first);
    }

    /// What a later one was given.
    pub fn goes_on(&mut self, kind: Kind, grid: [u32; 3], bytes: &[u8]) {
        if let Some(steady) = self.steady.get_mut(&kind.place) {
            steady.meet(grid, bytes);
        }
    }

    /// Kinds of launches so far.
    pub fn kinds(&self) -> usize {
        self.launches.len()
    }

    /// What the first launch of a kind was given.
    pub fn arguments(&mut self, arguments: Arguments) {
        self.notes.push(Note::Arguments(arguments));
    }

    /// Says something once.
    fn once(&mut self, key: String, note: Note) {
        if self.said.insert(key) {
            self.notes.push(note);
        }
    }

    /// The latest launch was not computed.
    pub fn not_computed(&mut self, kernel: &str, why: &str) {
        self.gap.get_or_insert(self.number);
        let note = Note::Uncomputed(self.number, why.to_owned(), kernel.to_owned());
        self.once(format!("uncomputed {kernel}"), note);
    }

    /// A kernel did something wrong.
    pub fn fault(&mut self, kernel: &str, what: &str) {
        let note = Note::Fault(self.number, kernel.to_owned(), what.to_owned());
        self.once(format!("fault {kernel}"), note);
    }

    /// The latest launch has results that GPUs may round otherwise.
    pub fn approximate(&mut self, kernel: &str) {
        if !self.is_rounded {
            self.approximate.get_or_insert_with(|| kernel.to_owned());
        }
    }

    /// Does it matter whether the program reads what kernels left?
    pub fn minds_looks(&self) -> bool {
        self.gap.is_some() || self.approximate.is_some()
    }

    /// The program has read what kernels left; from here on it may rest on what was not computed, or is rounded
    /// otherwise.
    pub fn looked_at(&mut self) {
        if let Some(kernel) = self.approximate.take() {
            self.is_rounded = true;
            self.notes.push(Note::Rounded(self.number, kernel));
        }
        if self.gap.is_some() && self.exact.is_none() {
            self.exact = Some(self.number);
            self.notes.push(Note::Exact(self.number));
        }
    }

    /// A function that is not answered.
    pub fn refused(&mut self, name: &str) {
        let note = Note::Unanswered(name.to_owned());
        self.once(format!("refused {name}"), note);
    }

    /// Why the program is ended.
    pub fn ended(&mut self, why: &str) {
        self.once("ended".into(), Note::Ended(why.to_owned()));
    }

    /// A module that is not kept, and why.
    pub fn module(&mut self, note: &Note) {
        self.modules.push(note.clone());
        self.rewrite("modules", self.modules.clone());
    }

    /// Keeps a module's cubin (and PTX).
    pub fn keep(&mut self, digest: &str, cubin: &[u8], ptx: Option<&str>) {
        if let Some(folder) = &self.folder {
            let path = folder.join(format!("{digest}.cubin"));
            if let Some(ptx) = ptx {
                save(&path.with_extension("ptx"), ptx.as_bytes());
            }
            save(&path, cubin);
        }
        self.module(&Note::Module(digest.to_owned()));
    }

    /// Keeps what a launch reads, by its digest, as long as there is room.
    pub fn contents(&mut self, digest: &str, bytes: &[u8]) {
        let Some(folder) = &self.folder else { return };
        let size = bytes.len() as u64;
        if size <= self.room && self.kept.insert(digest.to_owned()) {
            self.room -= size;
            save(&folder.join(format!("{digest}.bin")), bytes);
        }
    }

    /// Writes what was seen, if it is time to.
    pub fn write(&mut self, gpu: Option<&Gpu>, now: bool) {
        let due = self.written.is_none_or(|at| at.elapsed() > INTERVAL);
        if !(due || now) || self.folder.is_none() {
            return;
        }
        self.written = Some(Instant::now());
        let gpu = gpu.map(|gpu| Note::Gpu(gpu.arch.sm, DRIVER, name(gpu)));
        let launches = self.launches.iter().cloned().map(Note::Launches);
        let notes: Vec<Note> = gpu
            .into_iter()
            .chain(launches)
            .chain(self.steady.values().cloned().map(Note::Steady))
            .chain(self.notes.iter().cloned())
            .collect();
        self.rewrite("launches", notes);
    }

    fn rewrite(&self, kind: &str, notes: Vec<Note>) {
        let Some(folder) = &self.folder else { return };
        let process = std::process::id();
        let mut text = format!("{HEAD}\n{}", Note::Process(process, command()).line());
        text.extend(notes.iter().map(Note::line));
        save(
            &folder.join(format!("{kind}-{process}.notes")),
            text.as_bytes(),
        );
    }
}

/// A trace that cannot be written is no reason to disturb the program.
fn save(path: &Path, bytes: &[u8]) {
    let _ = write_whole(path, bytes);
}

/// The name of a GPU as its driver has it, or as our table does.
pub fn name(gpu: &Gpu) -> String {
    let board = gpu.typical_board();
    let names = board.map(|board| board.aliases).unwrap_or_default();
    let own = names
        .iter()
        .find(|name| name.to_lowercase().starts_with("nvidia"));
    let own = own.copied().or(board.map(|board| board.name));
    own.map_or_else(|| gpu.target(), str::to_owned)
}

fn command() -> String {
    let raw = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = raw.split(|&b| b == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    words.join(" ")
}
