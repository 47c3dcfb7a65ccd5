//! Graphs: lists of work, in the order in which it was added or captured, run when the graph is launched.

use std::collections::BTreeMap;

use crate::abi::{Callback, Code, HostFunction, INVALID_RESOURCE_HANDLE};
use crate::launch::Call;
use crate::state::{Answer, State, state};

/// A piece of work.
#[derive(Clone)]
pub enum Work {
    Kernel(Box<Call>),
    /// To, from (address and pitch), width, height.
    Copy((u64, u64), (u64, u64), u64, u64),
    /// To (address and pitch), the bytes of an element, width in elements, height.
    Fill((u64, u64), Vec<u8>, u64, u64),
    Host(HostFunction, usize),
    Callback(Callback, usize, usize),
    Graph(usize),
    Nothing,
}

/// Graphs, and what is being captured.
#[derive(Default)]
pub struct Graphs {
    /// By handle: work with the handles of its nodes.
    graphs: BTreeMap<usize, Vec<(usize, Work)>>,
    /// The graph that a stream is captured into, and whether the capture began there.
    captures: BTreeMap<usize, (usize, bool)>,
    /// The graph that an event was recorded in.
    events: BTreeMap<usize, usize>,
}

impl Graphs {
    pub fn create(&mut self, graph: usize) {
        self.graphs.insert(graph, Vec::new());
    }

    pub fn destroy(&mut self, graph: usize) {
        self.graphs.remove(&graph);
    }

    pub fn add(&mut self, graph: usize, node: usize, work: Work) -> Answer {
        let nodes = self.graphs.get_mut(&graph).ok_or(INVALID_RESOURCE_HANDLE)?;
        nodes.push((node, work));
        Ok(())
    }

    /// Replaces the work of a node, wherever it is.
    pub fn change(&mut self, graph: Option<usize>, node: usize, work: &Work) -> Answer {
        let own =
            |(handle, _): &(&usize, &mut Vec<(usize, Work)>)| graph.is_none_or(|g| g == **handle);
        let nodes = self
            .graphs
            .iter_mut()
            .filter(own)
            .flat_map(|(_, nodes)| nodes);
        let mut found = nodes.filter(|(handle, _)| *handle == node).peekable();
        if found.peek().is_none() {
            return Err(INVALID_RESOURCE_HANDLE);
        }
        found.for_each(|(_, old)| *old = work.clone());
        Ok(())
    }

    pub fn nodes(&self, graph: usize) -> Result<&[(usize, Work)], Code> {
        let nodes = self.graphs.get(&graph).map(Vec::as_slice);
        nodes.ok_or(INVALID_RESOURCE_HANDLE)
    }

    /// A copy under another handle, nodes with the same handles.
    pub fn copy(&mut self, graph: usize, new: usize) -> Answer {
        let nodes = self.nodes(graph)?.to_vec();
        self.graphs.insert(new, nodes);
        Ok(())
    }

    pub fn begin(&mut self, stream: usize, graph: usize) {
        self.graphs.entry(graph).or_default();
        self.captures.insert(stream, (graph, true));
    }

    /// Ends the capture that began in a stream; other streams leave it, too.
    pub fn end(&mut self, stream: usize) -> Option<usize> {
        let (graph, true) = *self.captures.get(&stream)? else {
            return None;
        };
        self.captures.retain(|_, (other, _)| *other != graph);
        self.events.retain(|_, other| *other != graph);
        Some(graph)
    }

    pub fn captured(&self, stream: usize) -> Option<usize> {
        self.captures.get(&stream).map(|(graph, _)| *graph)
    }

    /// An event was recorded in a stream: who waits for it is captured as well.
    pub fn record(&mut self, event: usize, stream: usize) {
        match self.captured(stream) {
            Some(graph) => drop(self.events.insert(event, graph)),
            None => drop(self.events.remove(&event)),
        }
    }

    pub fn wait(&mut self, stream: usize, event: usize) {
        if let Some(&graph) = self.events.get(&event) {
            self.captures.entry(stream).or_insert((graph, false));
        }
    }
}

/// Does a piece of work now, or adds it to the graph that its stream is captured into.
pub fn on(stream: usize, work: Work) -> Answer {
    let mut state = state();
    if let Some(graph) = state.graphs.captured(stream) {
        let node = state.clock.handle() as usize;
        return state.graphs.add(graph, node, work);
    }
    drop(state);
    run(&work, false)
}

/// Runs a graph.
pub fn launch(graph: usize) -> Answer {
    let nodes = state().graphs.nodes(graph)?.to_vec();
    nodes.iter().try_for_each(|(_, work)| run(work, true))
}

fn run(work: &Work, in_graph: bool) -> Answer {
    match work {
        Work::Kernel(call) => state().launch(call, in_graph),
        Work::Copy(to, from, width, height) => copy(&mut state(), *to, *from, *width, *height),
        Work::Fill(to, element, width, height) => fill(&mut state(), *to, element, *width, *height),
        // The functions are the program's and may call the runtime: the state is not locked.
        Work::Host(function, data) => {
            // SAFETY: the program gave both for this call.
            unsafe { function(*data as *mut _) };
            Ok(())
        }
        Work::Callback(function, stream, data) => {
            // SAFETY: as above.
            unsafe { function(*stream as *mut _, 0, *data as *mut _) };
            Ok(())
        }
        Work::Graph(graph) => launch(*graph),
        Work::Nothing => Ok(()),
    }
}

fn copy(state: &mut State, to: (u64, u64), from: (u64, u64), width: u64, height: u64) -> Answer {
    if state.arena.is_device(from.0) && !state.arena.is_device(to.0) {
        state.look();
        if state.sticky != 0 {
            return Err(state.sticky);
        }
    }
    state.arena.copy(to, from, width, height)
}

fn fill(state: &mut State, to: (u64, u64), element: &[u8], width: u64, height: u64) -> Answer {
    let arena = &mut state.arena;
    if element.windows(2).all(|pair| pair[0] == pair[1]) {
        let byte = element.first().copied().unwrap_or(0);
        return arena.fill(to, byte, width * element.len() as u64, height);
    }
    for row in 0..height {
        for at in 0..width {
            let place = to.0 + row * to.1 + at * element.len() as u64;
            let from = element.as_ptr() as u64;
            arena.copy((place, 0), (from, 0), element.len() as u64, 1)?;
        }
    }
    Ok(())
}
