//! The trace: how often each kernel is launched in which way, and how long it takes on the GPU.
//!
//! A launch is put between two events; what they say is read when they are through, never waited for while the
//! program runs. Where winners and originals take turns, the device is kept busy until all of it is queued: else what is
//! short would take what the host takes. Launches that are being captured are not timed: the graph that they go into is, as a whole, and
//! its time is divided among its kernels by their number. There winners take turns one after the other ([`crate::turns`]).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpwright_winners::lines::{Beside, Launches, Note, Steady, ValuesOf};
use warpwright_winners::values::Values;
use warpwright_winners::{Guard, LaunchClass};

use crate::abi::{Code, Handle, NOT_READY, SUCCESS};
use crate::driver::{self, Relaxed};
use crate::functions::{Replacement, described, identify};
use crate::helpers::Helpers;
use crate::launch::Launch;
use crate::notes::rewrite;
use crate::params::Passed;
use crate::state::{State, guarded, is_sealed, replacing, settings, state};
use crate::trial::is_pointer;
use crate::turns::Turn as GraphTurn;

/// Events that wait to be read, at most. Launches beyond are counted, not timed.
const PENDING: usize = 4096;
/// From so many on, each launch reads what is through: a program that ends in a hurry loses few.
const EAGER: usize = 8;
/// Kinds of launches that are kept apart, at most.
const KINDS: usize = 16_384;
/// How often the notes are written while the program runs.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long the end of the program waits for work that is still running.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen so far.
#[derive(Default)]
pub struct Trace {
    launches: Vec<Launches>,
    /// What stayed the same, by place in `launches`.
    steady: BTreeMap<usize, Steady>,
    /// What launches were given, by place in `launches`.
    values: BTreeMap<usize, Values>,
    /// Kernels that take turns with their winners, by place in `launches` and winner.
    turns: BTreeMap<(usize, usize), Turns>,
    /// The same of kernels in graphs.
    graph_turns: BTreeMap<(usize, usize), GraphTurns>,
    /// Place in `launches` by module, kernel and class; by handle, for the launch path.
    known: BTreeMap<(String, String, LaunchClass), usize>,
    by_handle: BTreeMap<(usize, LaunchClass), usize>,
    /// Events of no use at present, by context.
    free: BTreeMap<usize, Vec<[usize; 2]>>,
    /// Our own kernels, by context; none where they cannot be loaded.
    helpers: BTreeMap<usize, Option<Helpers>>,
    pending: VecDeque<Pending>,
    /// Places in `launches`, by executable graph.
    graphs: BTreeMap<usize, Vec<usize>>,
    written: Option<Instant>,
    /// What an empty pair of events says, in nanoseconds.
    overhead_ns: Option<f32>,
}

struct Pending {
    context: usize,
    events: [usize; 2],
    of: Timed,
}

enum Timed {
    /// Of a place, with these values.
    Launch(usize, Option<usize>, Turn),
    /// Of these places, perhaps in turns.
    Graph(Vec<usize>, Option<GraphTurn>),
}

impl Timed {
    /// Is it in turns with another?
    fn is_turn(&self) -> bool {
        match self {
            Timed::Launch(_, _, turn) => *turn != Turn::Any,
            Timed::Graph(_, turn) => turn.is_some(),
        }
    }
}

/// What ran at a launch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The kernel, which has no winner, or nothing takes turns.
    Any,
    /// The kernel, in turns with this winner.
    Own(usize),
    /// The winner.
    Winner(usize),
}

/// Times of a kernel's launches in turns with those of its winner, in nanoseconds.
struct Turns {
    guard: Guard,
    launches: u64,
    own: Vec<u64>,
    winner: Vec<u64>,
}

/// Times that are kept of each, at most.
const TURNS: usize = 1000;

impl Turns {
    fn new(guard: Guard) -> Turns {
        Turns {
            guard,
            launches: 0,
            own: Vec::new(),
            winner: Vec::new(),
        }
    }

    /// Is it the kernel's own turn in a run?
    fn is_own(&mut self, run: u64) -> bool {
        self.launches += 1;
        is_own_turn(self.launches - 1, run)
    }

    fn add(&mut self, is_own: bool, ns: u64) {
        let times = match is_own {
            true => &mut self.own,
            false => &mut self.winner,
        };
        if times.len() < TURNS {
            times.push(ns);
        }
    }
}

/// Is the launch of this number the kernel's own in a run? Of two launches one each, in an order that is not that of the
/// program.
pub fn is_own_turn(launch: u64, run: u64) -> bool {
    let pair = launch / 2;
    let mixed = pair.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let is_first_own = (mixed >> 63 == 0) == run.is_multiple_of(2);
    launch.is_multiple_of(2) == is_first_own
}

/// Times of graphs with a kernel's winner in turns with those with the kernel, in pairs: nanoseconds, over the number of its
/// nodes.
struct GraphTurns {
    guard: Guard,
    /// The first of a pair, by executable graph.
    halves: BTreeMap<usize, (GraphTurn, u64)>,
    own: Vec<u64>,
    winner: Vec<u64>,
}

impl GraphTurns {
    fn new(guard: Guard) -> GraphTurns {
        GraphTurns {
            guard,
            halves: BTreeMap::new(),
            own: Vec::new(),
            winner: Vec::new(),
        }
    }

    fn add(&mut self, turn: GraphTurn, ns: u64) {
        let ns = ns / turn.nodes.max(1);
        let (exec, _) = turn.pair;
        let half = self.halves.remove(&exec);
        let is_other =
            |(half, _): &(GraphTurn, u64)| half.pair == turn.pair && half.is_own != turn.is_own;
        let Some((_, other)) = half.filter(is_other) else {
            self.halves.insert(exec, (turn, ns));
            return;
        };
        if self.own.len() < TURNS {
            let (own, winner) = match turn.is_own {
                true => (ns, other),
                false => (other, ns),
            };
            self.own.push(own);
            self.winner.push(winner);
        }
    }
}

impl Trace {
    fn place(
        &mut self,
        launch: &Launch,
        class: LaunchClass,
        state_of: impl FnOnce() -> (String, String, u32),
    ) -> Option<usize> {
        let handle = (launch.function as usize, class);
        if let Some(&place) = self.by_handle.get(&handle) {
            return Some(place);
        }
        let (module, kernel, resident) = state_of();
        let key = (module, kernel, class);
        let place = match self.known.get(&key) {
            Some(&place) => place,
            None if self.launches.len() >= KINDS => return None,
            None => {
                self.launches.push(Launches {
                    module: key.0.clone(),
                    class,
                    grid: launch.grid,
                    count: 0,
                    in_graphs: 0,
                    timed: 0,
                    total_ns: 0,
                    graph_ns: 0,
                    cooperative: launch.cooperative,
                    resident,
                    kernel: key.1.clone(),
                });
                self.known.insert(key, self.launches.len() - 1);
                self.launches.len() - 1
            }
        };
        self.by_handle.insert(handle, place);
        Some(place)
    }

    /// Takes a pair of events of the current context.
    fn events(&mut self) -> Option<(usize, [usize; 2])> {
        // SAFETY: an output of the right type.
        let context = driver::handle(|out| unsafe { driver::context(out) })? as usize;
        if self.pending.len() >= PENDING {
            self.read();
            if self.pending.len() >= PENDING {
                return None;
            }
        }
        if let Some(pair) = self.free.get_mut(&context).and_then(Vec::pop) {
            return Some((context, pair));
        }
        // SAFETY: outputs of the right types.
        let event = || driver::handle(|out| unsafe { driver::event_create(out, 0) });
        Some((context, [event()? as usize, event()? as usize]))
    }

    /// Reads what is through.
    fn read(&mut self) {
        while let Some(first) = self.pending.front() {
            let [begin, end] = first.events.map(|event| event as Handle);
            // SAFETY: events that were recorded.
            let code = unsafe { driver::event_query(end) };
            if code == NOT_READY {
                break;
            }
            let Some(done) = self.pending.pop_front() else {
                break;
            };
            let mut milliseconds = 0f32;
            // SAFETY: as above.
            let known = code == SUCCESS
                && unsafe { driver::event_elapsed(&raw mut milliseconds, begin, end) } == SUCCESS;
            if known {
                let ns = (milliseconds * 1e6 - self.overhead_ns.unwrap_or(0.0)).max(0.0) as u64;
                self.add(done.of, ns);
                self.free.entry(done.context).or_default().push(done.events);
            }
        }
    }

    fn add(&mut self, what: Timed, ns: u64) {
        match what {
            Timed::Launch(place, values, turn) => {
                self.launches[place].timed += 1;
                self.launches[place].total_ns += ns;
                if let Some((all, number)) = self.values.get_mut(&place).zip(values) {
                    all.time(number, ns);
                }
                let (winner, is_own) = match turn {
                    Turn::Any => return,
                    Turn::Own(winner) => (winner, true),
                    Turn::Winner(winner) => (winner, false),
                };
                if let Some(turns) = self.turns.get_mut(&(place, winner)) {
                    turns.add(is_own, ns);
                }
            }
            Timed::Graph(places, turn) => {
                let is_own = turn.as_ref().is_some_and(|turn| turn.is_own);
                if let Some(turn) = turn {
                    let turns = self.graph_turns.entry(turn.of);
                    let guard = turn.guard.clone();
                    turns
                        .or_insert_with(|| GraphTurns::new(guard))
                        .add(turn, ns);
                }
                // With the winners is what a run is asked for.
                if is_own {
                    return;
                }
                let each = ns / places.len().max(1) as u64;
                for place in places {
                    self.launches[place].graph_ns += each;
                }
            }
        }
    }

    /// Handles are about to lose their meaning.
    pub fn close(&mut self) {
        self.by_handle.clear();
        self.helpers.clear();
    }

    /// A handle stands for another kernel.
    pub fn forget(&mut self, handle: usize) {
        self.by_handle.retain(|(other, _), _| *other != handle);
    }

    /// An executable graph is gone.
    pub fn forget_graph(&mut self, exec: Handle) {
        self.graphs.remove(&(exec as usize));
    }

    fn notes(&self) -> Vec<Note> {
        let launches = self.launches.iter().cloned().map(Note::Launches);
        let steady = self.steady.values().cloned().map(Note::Steady);
        let values = self.values.iter().map(|(&place, values)| {
            let of = &self.launches[place];
            Note::Values(ValuesOf {
                module: of.module.clone(),
                class: of.class,
                taken: values.taken().to_vec(),
                kernel: of.kernel.clone(),
            })
        });
        let launches = launches.chain(steady).chain(values);
        launches.chain(self.beside()).collect()
    }

    fn beside(&self) -> impl Iterator<Item = Note> {
        let of_launches = self.turns.iter();
        let of_launches = of_launches
            .map(|(&(place, _), turns)| (place, false, &turns.guard, &turns.own, &turns.winner));
        let in_pairs = self.graph_turns.iter();
        let in_pairs = in_pairs.filter(|(_, turns)| !turns.own.is_empty());
        let in_pairs = in_pairs
            .map(|(&(place, _), turns)| (place, true, &turns.guard, &turns.own, &turns.winner));
        let all = of_launches.chain(in_pairs);
        all.map(|(place, in_graphs, guard, own, winner)| {
            let of = &self.launches[place];
            Note::Beside(Beside {
                module: of.module.clone(),
                class: of.class,
                guard: guard.clone(),
                in_graphs,
                own: own.clone(),
                winner: winner.clone(),
                kernel: of.kernel.clone(),
            })
        })
    }
}

/// Looks at what a launch is given: the number of its values. (The driver is asked without the lock.)
fn observe(place: usize, launch: &Launch) -> Option<usize> {
    if replacing() {
        return None;
    }
    let known = (state().trace.steady.get(&place)).map(|steady| steady.places.clone());
    let is_first = known.is_none();
    let places = known.or_else(|| {
        let kind = identify(launch.function)?.kind;
        described(launch.function, kind).map(Arc::from)
    })?;
    let passed = Passed {
        params: launch.params,
        extra: launch.extra,
        places: &places,
    };
    let bytes = passed.packed()?;
    let met = {
        let mut state = state();
        if let Some(steady) = state.trace.steady.get_mut(&place).filter(|_| !is_first) {
            steady.meet(launch.grid, &bytes);
        }
        let values = state.trace.values.entry(place).or_default();
        values.meet(launch.grid, &bytes)
    };
    if met.is_some() {
        return met;
    }
    let of = Launches {
        grid: launch.grid,
        ..state().trace.launches[place].clone()
    };
    let alone = Steady::first(&of, &bytes, places, is_pointer);
    let mut state = state();
    let values = state.trace.values.entry(place).or_default();
    let number = values.add(launch.grid, &alone.bytes);
    if is_first {
        state.trace.steady.insert(place, alone);
    }
    Some(number)
}

/// Symbol and module of a function, and how many blocks of this launch an SM holds.
fn describe(launch: &Launch) -> (String, String, u32) {
    let known = identify(launch.function);
    let module = known.as_ref().and_then(|k| k.module.as_ref());
    let threads = launch.block.iter().product::<u32>() as i32;
    // SAFETY: an output of the right type; a kernel may stand for a function here.
    let resident = driver::number(|n| unsafe {
        driver::occupancy(n, launch.function, threads, launch.shared as usize)
    });
    (
        module.map_or("-".to_owned(), |m| m.digest.clone()),
        known.as_ref().map_or("?".to_owned(), |k| k.name.clone()),
        resident.unwrap_or(0) as u32,
    )
}

/// The place of a launch among those that were seen.
pub fn place(launch: &Launch) -> Option<usize> {
    let class = launch.class()?;
    let known = state()
        .trace
        .by_handle
        .get(&(launch.function as usize, class))
        .copied();
    known.or_else(|| {
        // The driver is asked without the lock.
        let described = describe(launch);
        state().trace.place(launch, class, || described)
    })
}

/// Times a call on a stream. The lock is not held while it runs: it may wait for other threads' work.
fn timed(stream: Handle, call: impl FnOnce() -> Code, of: Option<Timed>) -> Code {
    let begun = of.and_then(|of| {
        guarded(|| {
            let _relaxed = Relaxed::new();
            calibrate(stream);
            let (context, events) = state().trace.events()?;
            if of.is_turn() {
                hold(context, stream);
            }
            // SAFETY: the event is ours, the stream the program's.
            let code = unsafe { driver::event_record(events[0] as Handle, stream) };
            (code == SUCCESS).then_some((context, events, of))
        })?
    });
    let code = call();
    if let Some((context, events, of)) = begun {
        guarded(|| {
            let _relaxed = Relaxed::new();
            // SAFETY: as above.
            let recorded = unsafe { driver::event_record(events[1] as Handle, stream) };
            let mut state = state();
            crate::state::finish_at_exit();
            if state.trace.pending.len() > EAGER {
                state.trace.read();
            }
            if code == SUCCESS && recorded == SUCCESS {
                state.trace.pending.push_back(Pending {
                    context,
                    events,
                    of,
                });
            }
            let due = state.trace.written.is_none_or(|at| at.elapsed() > INTERVAL);
            if due {
                write(&mut state);
            }
        });
    }
    code
}

/// Keeps the device busy while the next calls are queued, where that can be.
fn hold(context: usize, stream: Handle) {
    let known = state().trace.helpers.get(&context).copied();
    let helpers = known.unwrap_or_else(|| {
        let loaded = Helpers::load().ok();
        state().trace.helpers.insert(context, loaded);
        loaded
    });
    if let Some(helpers) = helpers {
        // Without it the time is the host's as well.
        let _ = helpers.hold(stream, None);
    }
}

/// Two events with nothing between them are some time apart, too.
fn calibrate(stream: Handle) {
    if state().trace.overhead_ns.is_some() {
        return;
    }
    const PAIRS: usize = 8;
    let mut least = f32::MAX;
    for _ in 0..PAIRS {
        let Some((context, events)) = state().trace.events() else {
            return;
        };
        let [begin, end] = events.map(|event| event as Handle);
        // SAFETY: events of ours, the program's stream.
        let recorded = unsafe {
            driver::event_record(begin, stream) == SUCCESS
                && driver::event_record(end, stream) == SUCCESS
        };
        let started = Instant::now();
        let mut milliseconds = 0f32;
        // SAFETY: as above.
        while recorded && unsafe { driver::event_query(end) } == NOT_READY {
            if started.elapsed() > Duration::from_millis(5) {
                // The stream is busy: what is left over is read by nobody.
                state().trace.overhead_ns = Some(0.0);
                return;
            }
        }
        // SAFETY: as above.
        if recorded
            && unsafe { driver::event_elapsed(&raw mut milliseconds, begin, end) } == SUCCESS
        {
            least = least.min(milliseconds * 1e6);
        }
        state().trace.free.entry(context).or_default().push(events);
    }
    state().trace.overhead_ns = Some(if least == f32::MAX { 0.0 } else { least });
}

/// A launch of the program; `call` makes it, with the winner or without.
pub fn launch(
    launch: &Launch,
    winner: Option<&'static Replacement>,
    call: impl FnOnce(bool) -> Code,
) -> Code {
    let mut turn = Turn::Any;
    let place = guarded(|| {
        let capturing = driver::is_capturing(launch.stream);
        let place = place(launch)?;
        let values = observe(place, launch);
        let mut state = state();
        if !capturing {
            state.trace.launches[place].count += 1;
        }
        // What is captured is launched many times.
        if let (Some(winner), Some(run), false) = (winner, settings().turns, capturing) {
            let key = std::ptr::from_ref(winner) as usize;
            let turns = state.trace.turns.entry((place, key));
            let turns = turns.or_insert_with(|| Turns::new(winner.of().clone()));
            turn = match turns.is_own(run) {
                true => Turn::Own(key),
                false => Turn::Winner(key),
            };
        }
        (!capturing).then_some(Timed::Launch(place, values, turn))
    });
    let replaced = winner.is_some() && !matches!(turn, Turn::Own(_));
    timed(launch.stream, || call(replaced), place.flatten())
}

/// An executable graph has these launches, as the program made them.
pub fn graph<'a>(exec: Handle, launches: impl Iterator<Item = &'a Launch>) {
    let places = launches.filter_map(graph_node).collect();
    state().trace.graphs.insert(exec as usize, places);
}

/// The place of a launch in a graph.
pub fn graph_node(node: &Launch) -> Option<usize> {
    let place = place(node)?;
    observe(place, node);
    Some(place)
}

/// A launch of a graph, perhaps in turns.
pub fn graph_launch(
    exec: Handle,
    stream: Handle,
    turn: Option<GraphTurn>,
    call: impl FnOnce() -> Code,
) -> Code {
    let of = guarded(|| {
        if driver::is_capturing(stream) {
            return None;
        }
        let mut state = state();
        let places = state.trace.graphs.get(&(exec as usize))?.clone();
        if !turn.as_ref().is_some_and(|turn| turn.is_own) {
            for &place in &places {
                state.trace.launches[place].in_graphs += 1;
            }
        }
        Some(Timed::Graph(places, turn))
    });
    timed(stream, call, of.flatten())
}

fn write(state: &mut State) {
    state.trace.read();
    state.trace.written = Some(Instant::now());
    let mut notes = Vec::new();
    if let Ok(gpu) = state.modules.gpu() {
        // SAFETY: an output of the right type.
        let version = driver::number(|n| unsafe { driver::driver_version(n) });
        notes.push(Note::Gpu(
            gpu.sm,
            version.unwrap_or(0) as u32,
            gpu.name.clone(),
        ));
    }
    notes.extend(state.trace.notes());
    rewrite("launches", &notes);
}

/// The program ends: what is left is read, for a while.
pub fn finish() {
    if is_sealed() || state().trace.launches.is_empty() {
        return;
    }
    let started = Instant::now();
    loop {
        let mut state = state();
        state.trace.read();
        if state.trace.pending.is_empty() || started.elapsed() > PATIENCE {
            return write(&mut state);
        }
        drop(state);
        std::thread::sleep(Duration::from_millis(1));
    }
}
