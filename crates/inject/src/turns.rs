//! Winners in executable graphs take turns with their kernels, one winner after the other, while all other nodes stay what
//! they are: what the whole graph takes less with a winner is that winner's.
//!
//! A turn of the kernel sets its nodes in the executable graph before the launch, and they get their winner back behind it: at
//! any other time the graph is what the program made. So there are no turns in a graph whose nodes the program has changed since. The
//! driver knows such nodes by those of the graph that it was made from, so that one lives as long as it takes turns, though the
//! program destroys it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use warpwright_winners::Guard;

use crate::abi::{Handle, SUCCESS};
use crate::driver;
use crate::functions::in_place;
use crate::graph::{Both, forget, kernel_nodes};
use crate::notes::say;
use crate::state::{settings, state};
use crate::trace::{is_own_turn, place};

/// Executable graphs with winners that take turns.
#[derive(Default)]
pub struct Turns {
    execs: BTreeMap<usize, Turning>,
    /// What they were made from and the program has destroyed.
    destroyed: BTreeSet<usize>,
    /// Held while such a graph is looked at: another thread may destroy it.
    looking: Arc<Mutex<()>>,
}

struct Turning {
    source: usize,
    launches: u64,
    winners: Vec<Arc<InGraph>>,
}

/// A winner in a graph.
struct InGraph {
    /// Place of its launches in the trace, and which winner it is.
    of: (usize, usize),
    guard: Guard,
    nodes: BTreeSet<usize>,
}

/// A launch of a graph with a winner, or with its kernel.
#[derive(Clone)]
pub struct Turn {
    /// Place of the kernel's launches in the trace, and which winner it is.
    pub of: (usize, usize),
    /// Of the winner.
    pub guard: Guard,
    /// Of the kernel, in the graph.
    pub nodes: u64,
    /// The executable graph, and which two of its launches are compared.
    pub pair: (usize, u64),
    pub is_own: bool,
}

/// While it lives, an executable graph has what it is to be launched with.
pub struct Taken {
    exec: Handle,
    winner: Arc<InGraph>,
    pub turn: Turn,
}

impl Taken {
    /// The next turn of a graph that is about to be launched.
    pub fn new(exec: Handle, stream: Handle) -> Option<Taken> {
        let run = settings().turns?;
        if driver::is_capturing(stream) {
            return None;
        }
        let (winner, turn) = next(exec as usize, run)?;
        let taken = Taken { exec, winner, turn };
        taken.winner.set(exec, taken.turn.is_own).then_some(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.turn.is_own && !self.winner.set(self.exec, false) {
            say("a graph keeps kernels whose winners took turns with them");
        }
    }
}

fn next(exec: usize, run: u64) -> Option<(Arc<InGraph>, Turn)> {
    let mut state = state();
    let turning = state.nodes.turns.execs.get_mut(&exec)?;
    turning.launches += 1;
    // The first one brings the graph to the device.
    let number = turning.launches.checked_sub(2)?;
    let pair = number / 2;
    let count = turning.winners.len() as u64;
    let which = pair.wrapping_add(run).checked_rem(count)?;
    let winner = turning.winners[which as usize].clone();
    let turn = Turn {
        of: winner.of,
        guard: winner.guard.clone(),
        nodes: winner.nodes.len() as u64,
        pair: (exec, pair),
        is_own: is_own_turn(number, run),
    };
    Some((winner, turn))
}

impl InGraph {
    /// Puts the program's kernel, or the winner, into its nodes of an executable graph: all of them or none.
    fn set(&self, exec: Handle, is_own: bool) -> bool {
        let looking = state().nodes.turns.looking.clone();
        let _looking = looking.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(source) = state().nodes.source(exec) else {
            return false;
        };
        let mut nodes = Vec::new();
        kernel_nodes(source, 0, &mut |node| {
            if self.nodes.contains(&(node as usize)) {
                nodes.extend(Both::of(node).map(|both| (node, both)));
            }
        });
        let put = |is_own: bool, nodes: &[(Handle, Both)]| {
            let set = |(node, both): &&(Handle, Both)| {
                let params = if is_own { &both.own } else { &both.there };
                // SAFETY: a node of what the graph was made from, with the parameters that it has there.
                unsafe { driver::set_exec_node_kernel(exec, *node, params) == SUCCESS }
            };
            nodes.iter().take_while(set).count()
        };
        let is_there = nodes.len() == self.nodes.len();
        let count = if is_there { put(is_own, &nodes) } else { 0 };
        let is_set = is_there && count == nodes.len();
        if is_own && !is_set {
            put(false, &nodes[..count]);
        }
        is_set
    }
}

/// The winners in a graph, and their nodes.
fn winners(graph: Handle) -> Vec<Arc<InGraph>> {
    let mut found: BTreeMap<(usize, usize), InGraph> = BTreeMap::new();
    kernel_nodes(graph, 0, &mut |node| {
        let both = Both::of(node);
        let winner = both.as_ref().and_then(|both| in_place(both.winner()?));
        let Some((both, (winner, guard))) = both.zip(winner) else {
            return;
        };
        let Some(place) = place(&both.launch(node)) else {
            return;
        };
        let of = (place, winner);
        let nodes = BTreeSet::new();
        let known = found.entry(of).or_insert(InGraph { of, guard, nodes });
        known.nodes.insert(node as usize);
    });
    found.into_values().map(Arc::new).collect()
}

/// A graph is executable; its winners take turns if they are to.
pub fn made(exec: Handle, source: Handle) {
    if settings().turns.is_none() {
        return;
    }
    let winners = winners(source);
    let turning = Turning {
        source: source as usize,
        launches: 0,
        winners,
    };
    let turns = &mut state().nodes.turns;
    match turning.winners.is_empty() {
        true => drop(turns.execs.remove(&(exec as usize))),
        false => drop(turns.execs.insert(exec as usize, turning)),
    }
}

/// The program destroys a graph. True if that is done later, as one that was made of it takes turns.
pub fn is_kept(source: Handle) -> bool {
    let looking = state().nodes.turns.looking.clone();
    let _looking = looking.lock().unwrap_or_else(PoisonError::into_inner);
    let is_wanted = state().nodes.turns.has(source as usize);
    match is_wanted {
        true => drop(state().nodes.turns.destroyed.insert(source as usize)),
        false => forget(source),
    }
    is_wanted
}

/// An executable graph is gone, and with it what it was made from if nobody else wants that.
pub fn gone(exec: Handle) {
    let unwanted = {
        let turns = &mut state().nodes.turns;
        let source = turns.execs.remove(&(exec as usize)).map(|it| it.source);
        source.filter(|source| !turns.has(*source) && turns.destroyed.remove(source))
    };
    if let Some(source) = unwanted {
        forget(source as Handle);
        // SAFETY: the program has destroyed it, and nothing uses it any more.
        unsafe { driver::graph_destroy(source as Handle) };
    }
}

impl Turns {
    fn has(&self, source: usize) -> bool {
        self.execs.values().any(|turning| turning.source == source)
    }
}
