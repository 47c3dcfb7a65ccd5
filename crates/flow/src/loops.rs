//! The loop nest.
//!
//! Method: Havlak, "Nesting of reducible and irreducible loops" (TOPLAS 1997), which builds on
//! Tarjan's interval-finding with union-find: reducible loops come out as natural loops, and a
//! strongly connected region with several entries as one irreducible loop whose header is the entry
//! that the depth-first search meets first.

use cranelift_entity::{EntityRef, entity_impl};

use crate::lists::Lists;
use crate::{Block, Cfg, Inst};

/// A loop. Outer loops come before the loops inside them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Loop(pub u32);
entity_impl!(Loop, "loop");

#[derive(Clone, Debug)]
struct LoopData {
    header: Block,
    parent: Option<Loop>,
    depth: u32,
    irreducible: bool,
    /// The blocks of the loop and of all loops inside it, as a range of `Loops::blocks`.
    blocks: std::ops::Range<usize>,
}

/// The loop nest of one function.
#[derive(Clone, Debug)]
pub struct Loops {
    loops: Vec<LoopData>,
    innermost: Vec<Option<Loop>>,
    /// Blocks inside loops, grouped by innermost loop.
    blocks: Vec<Block>,
}

impl Loops {
    /// Finds the loops among the reachable blocks.
    pub fn new(cfg: &Cfg) -> Loops {
        let found = find_headers(cfg);
        build_nest(cfg, &found)
    }

    /// Number of loops.
    pub fn len(&self) -> usize {
        self.loops.len()
    }

    /// Has the function no loop?
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    /// All loops, outer before inner.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Loop> + ExactSizeIterator + use<> {
        (0..self.loops.len() as u32).map(Loop)
    }

    /// The block through which the loop is entered (the first met, if it is irreducible).
    pub fn header(&self, of: Loop) -> Block {
        self.loops[of.index()].header
    }

    /// The loop around this one.
    pub fn parent(&self, of: Loop) -> Option<Loop> {
        self.loops[of.index()].parent
    }

    /// Nesting depth: 1 for an outermost loop.
    pub fn depth(&self, of: Loop) -> u32 {
        self.loops[of.index()].depth
    }

    /// Has the loop an entry besides its header?
    pub fn is_irreducible(&self, of: Loop) -> bool {
        self.loops[of.index()].irreducible
    }

    /// The loop's blocks, those of inner loops included: the header first, then by inner loop and
    /// program order.
    pub fn blocks(&self, of: Loop) -> &[Block] {
        &self.blocks[self.loops[of.index()].blocks.clone()]
    }

    /// The innermost loop around `block`.
    pub fn innermost(&self, block: Block) -> Option<Loop> {
        self.innermost[block.index()]
    }

    /// Number of loops around `block`: 0 outside any.
    pub fn block_depth(&self, block: Block) -> u32 {
        self.innermost(block).map_or(0, |inner| self.depth(inner))
    }

    /// Number of loops around each instruction. A branch to itself is none: a thread that has ended waits there.
    pub fn inst_depths(&self, cfg: &Cfg, count: usize) -> Vec<u32> {
        let depth = |at: usize| match self.innermost(cfg.block_of(Inst::new(at))) {
            Some(inner) => self.depth(inner) - u32::from(self.waits(cfg, inner)),
            None => 0,
        };
        (0..count).map(depth).collect()
    }

    /// Is it a branch to itself?
    pub fn waits(&self, cfg: &Cfg, of: Loop) -> bool {
        match self.blocks(of) {
            &[only] => cfg.first_inst(only) == cfg.last_inst(only),
            _ => false,
        }
    }

    /// Is `block` inside the loop?
    pub fn contains(&self, outer: Loop, block: Block) -> bool {
        // A loop's range of blocks holds the ranges of the loops inside it.
        let range = &self.loops[outer.index()].blocks;
        self.innermost(block)
            .is_some_and(|inner| range.contains(&self.loops[inner.index()].blocks.start))
    }

    /// The usual static guess at how often `block` runs: ten times per loop around it, at most
    /// 10⁸.
    pub fn weight(&self, block: Block) -> f64 {
        10f64.powi(self.block_depth(block).min(8) as i32)
    }
}

const NONE: u32 = u32::MAX;

/// What the search finds; nodes go by their depth-first preorder number.
struct Headers {
    vertex: Vec<Block>,
    /// The header of the innermost loop around each node, the node itself excluded.
    header: Vec<u32>,
    is_header: Vec<bool>,
    irreducible: Vec<bool>,
}

fn find_headers(cfg: &Cfg) -> Headers {
    let (vertex, number, last) = depth_first(cfg);
    let count = vertex.len();
    let within = |w: u32, v: u32| w <= v && v <= last[w as usize];
    let mut found = Headers {
        header: vec![NONE; count],
        is_header: vec![false; count],
        irreducible: vec![false; count],
        vertex,
    };
    let mut forward = vec![Vec::new(); count];
    let mut back = vec![Vec::new(); count];
    for w in 0..count as u32 {
        for pred in cfg.preds(found.vertex[w as usize]) {
            let v = number[pred.index()];
            if v != NONE {
                let list = if within(w, v) {
                    &mut back
                } else {
                    &mut forward
                };
                list[w as usize].push(v);
            }
        }
    }
    let mut union: Vec<u32> = (0..count as u32).collect();
    let mut in_body = vec![NONE; count];
    for w in (0..count as u32).rev() {
        let mut body = Vec::new();
        for &v in &back[w as usize] {
            found.is_header[w as usize] = true;
            let v = find(&mut union, v);
            if v != w && in_body[v as usize] != w {
                in_body[v as usize] = w;
                body.push(v);
            }
        }
        let mut done = 0;
        while let Some(&x) = body.get(done) {
            done += 1;
            for y in std::mem::take(&mut forward[x as usize]) {
                let y = find(&mut union, y);
                if !within(w, y) {
                    // An entry beside the header: the edge concerns the loops around this one too.
                    found.irreducible[w as usize] = true;
                    forward[w as usize].push(y);
                } else if y != w && in_body[y as usize] != w {
                    in_body[y as usize] = w;
                    body.push(y);
                }
            }
        }
        for x in body {
            found.header[x as usize] = w;
            union[x as usize] = w;
        }
    }
    found
}

/// Preorder: the nodes, each block's number (or `NONE`), and each number's last descendant.
fn depth_first(cfg: &Cfg) -> (Vec<Block>, Vec<u32>, Vec<u32>) {
    let mut vertex = Vec::new();
    let mut number = vec![NONE; cfg.block_count()];
    let mut stack = Vec::new();
    if cfg.block_count() > 0 {
        number[0] = 0;
        vertex.push(Block(0));
        stack.push((Block(0), 0));
    }
    let mut last = vec![0; cfg.reverse_postorder().len()];
    while let Some((block, next)) = stack.last_mut() {
        match cfg.succs(*block).get(*next) {
            Some(&succ) => {
                *next += 1;
                if number[succ.index()] == NONE {
                    number[succ.index()] = vertex.len() as u32;
                    vertex.push(succ);
                    stack.push((succ, 0));
                }
            }
            None => {
                last[number[block.index()] as usize] = vertex.len() as u32 - 1;
                stack.pop();
            }
        }
    }
    (vertex, number, last)
}

fn find(union: &mut [u32], node: u32) -> u32 {
    let mut root = node;
    while union[root as usize] != root {
        root = union[root as usize];
    }
    let mut at = node;
    while union[at as usize] != root {
        at = std::mem::replace(&mut union[at as usize], root);
    }
    root
}

/// Numbers the loops so that each comes before those inside it, and groups the blocks likewise.
fn build_nest(cfg: &Cfg, found: &Headers) -> Loops {
    let count = found.vertex.len();
    let nested: Vec<(u32, u32)> = (0..count as u32)
        .filter(|&w| found.is_header[w as usize] && found.header[w as usize] != NONE)
        .map(|w| (found.header[w as usize], w))
        .collect();
    let inner = Lists::from_pairs(count, &nested);
    let plain: Vec<(u32, Block)> = (0..count)
        .filter(|&w| !found.is_header[w] && found.header[w] != NONE)
        .map(|w| (found.header[w], found.vertex[w]))
        .collect();
    let mut own = Lists::from_pairs(count, &plain);
    own.sort_each();
    let mut nest = Loops {
        loops: Vec::new(),
        innermost: vec![None; cfg.block_count()],
        blocks: Vec::new(),
    };
    let outermost = (0..count as u32)
        .filter(|&w| found.is_header[w as usize] && found.header[w as usize] == NONE);
    for root in outermost {
        let mut stack = vec![(nest.open(found, root, None, &own), root, 0)];
        while let Some(&mut (this, header, ref mut next)) = stack.last_mut() {
            match inner.get(header as usize).get(*next) {
                Some(&below) => {
                    *next += 1;
                    stack.push((nest.open(found, below, Some(this), &own), below, 0));
                }
                None => {
                    nest.loops[this.index()].blocks.end = nest.blocks.len();
                    stack.pop();
                }
            }
        }
    }
    nest
}

impl Loops {
    fn open(
        &mut self,
        found: &Headers,
        header: u32,
        parent: Option<Loop>,
        own: &Lists<Block>,
    ) -> Loop {
        let this = Loop::new(self.loops.len());
        let header_block = found.vertex[header as usize];
        let start = self.blocks.len();
        self.blocks.push(header_block);
        self.blocks.extend_from_slice(own.get(header as usize));
        for block in &self.blocks[start..] {
            self.innermost[block.index()] = Some(this);
        }
        self.loops.push(LoopData {
            header: header_block,
            parent,
            depth: parent.map_or(1, |outer| self.depth(outer) + 1),
            irreducible: found.irreducible[header as usize],
            blocks: start..start,
        });
        this
    }
}
