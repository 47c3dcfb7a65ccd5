//! Dominators and post-dominators.
//!
//! Method: Lengauer and Tarjan, "A fast algorithm for finding dominators in a flowgraph" (TOPLAS
//! 1979), the simple O(m log n) version. The shorter iterative method of Cooper, Harvey and Kennedy
//! is quadratic on long ladders of early exits, which generated kernels have.

use cranelift_entity::EntityRef;

use crate::lists::Lists;
use crate::{Block, Cfg};

const NONE: u32 = u32::MAX;

/// A dominator or post-dominator tree.
#[derive(Clone, Debug)]
pub struct Dominators {
    /// Immediate dominator of each block; `NONE` for roots and for blocks outside the tree.
    idom: Vec<u32>,
    /// Preorder and last-descendant numbers in the tree: `a` dominates `b` if `b`'s preorder number
    /// lies in `a`'s interval. Blocks outside the tree have an empty interval.
    interval: Vec<(u32, u32)>,
}

impl Dominators {
    /// The dominator tree of the reachable blocks.
    pub fn new(cfg: &Cfg) -> Dominators {
        let blocks = cfg.block_count();
        if blocks == 0 {
            return Dominators {
                idom: Vec::new(),
                interval: Vec::new(),
            };
        }
        let mut edges = Vec::new();
        for block in cfg.blocks() {
            edges.extend(cfg.succs(block).iter().map(|succ| (block.0, succ.0)));
        }
        let idom = immediate_dominators(blocks, 0, &edges);
        Dominators::from_tree(idom, 0)
    }

    /// The post-dominator tree of the reachable blocks, rooted in a virtual exit after every block
    /// that can leave the function.
    ///
    /// Blocks that never reach an exit (infinite loops) hang below the virtual exit as if their
    /// last block in reverse postorder could leave, so that every reachable block has its place.
    pub fn post(cfg: &Cfg) -> Dominators {
        let blocks = cfg.block_count();
        let exit = blocks as u32;
        let mut edges = Vec::new();
        for &block in cfg.reverse_postorder() {
            edges.extend(cfg.succs(block).iter().map(|succ| (succ.0, block.0)));
        }
        edges.extend(virtual_exits(cfg).into_iter().map(|block| (exit, block.0)));
        let mut idom = immediate_dominators(blocks + 1, blocks, &edges);
        for parent in &mut idom {
            if *parent == exit {
                *parent = NONE;
            }
        }
        let mut tree = Dominators::from_forest(&idom, blocks);
        tree.idom.truncate(blocks);
        for block in cfg.blocks().filter(|&block| !cfg.is_reachable(block)) {
            tree.interval[block.index()] = (1, 0);
        }
        tree
    }

    /// The immediate dominator of `block`: `None` for the entry (or, in a post-dominator tree, where
    /// only the virtual exit post-dominates) and for unreachable blocks.
    pub fn idom(&self, block: Block) -> Option<Block> {
        Some(self.idom[block.index()])
            .filter(|&idom| idom != NONE)
            .map(Block)
    }

    /// Does `a` (post-)dominate `b`? Every reachable block dominates itself; an unreachable block
    /// dominates nothing and nothing dominates it.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        let (first, last) = self.interval[a.index()];
        let (pre, end) = self.interval[b.index()];
        pre <= end && first <= pre && pre <= last
    }

    /// The nearest block that (post-)dominates both, if there is one.
    pub fn common(&self, a: Block, b: Block) -> Option<Block> {
        let mut at = a;
        while !self.dominates(at, b) {
            at = self.idom(at)?;
        }
        Some(at)
    }

    fn from_tree(idom: Vec<u32>, root: usize) -> Dominators {
        let mut tree = Dominators::from_forest(&idom, idom.len());
        for (block, interval) in tree.interval.iter_mut().enumerate() {
            if block != root && tree.idom[block] == NONE {
                *interval = (1, 0);
            }
        }
        tree
    }

    /// Numbers the first `count` nodes of a forest in preorder.
    fn from_forest(idom: &[u32], count: usize) -> Dominators {
        let pairs: Vec<(u32, u32)> = (0..count)
            .filter(|&node| idom[node] != NONE)
            .map(|node| (idom[node], node as u32))
            .collect();
        let children = Lists::from_pairs(count, &pairs);
        let mut interval = vec![(1, 0); count];
        let mut next = 1;
        for root in (0..count).filter(|&node| idom[node] == NONE) {
            let mut stack = vec![(root, 0)];
            interval[root].0 = next;
            next += 1;
            while let Some((node, child)) = stack.last_mut() {
                match children.get(*node).get(*child) {
                    Some(&below) => {
                        *child += 1;
                        interval[below as usize].0 = next;
                        next += 1;
                        stack.push((below as usize, 0));
                    }
                    None => {
                        interval[*node].1 = next - 1;
                        stack.pop();
                    }
                }
            }
        }
        Dominators {
            idom: idom.to_vec(),
            interval,
        }
    }
}

/// The blocks with an edge to the virtual exit: those that leave, and one for each part of the
/// graph that cannot reach a block that leaves.
fn virtual_exits(cfg: &Cfg) -> Vec<Block> {
    let mut reaches = vec![false; cfg.block_count()];
    let mut exits = Vec::new();
    let mut flood = |root: Block| {
        if std::mem::replace(&mut reaches[root.index()], true) {
            return false;
        }
        let mut stack = vec![root];
        while let Some(block) = stack.pop() {
            for &pred in cfg.preds(block) {
                if !std::mem::replace(&mut reaches[pred.index()], true) {
                    stack.push(pred);
                }
            }
        }
        true
    };
    for &block in cfg.reverse_postorder() {
        if cfg.leaves(block) {
            flood(block);
            exits.push(block);
        }
    }
    for &block in cfg.reverse_postorder().iter().rev() {
        if flood(block) {
            exits.push(block);
        }
    }
    exits
}

/// Depth-first numbering and the working state of the algorithm; nodes go by their number.
struct LengauerTarjan {
    semi: Vec<u32>,
    ancestor: Vec<u32>,
    /// The node of least semidominator on the path to the root of the linked forest.
    best: Vec<u32>,
    path: Vec<u32>,
}

impl LengauerTarjan {
    /// The node of least semidominator on the linked path above `node`, compressing that path.
    fn eval(&mut self, node: u32) -> u32 {
        if self.ancestor[node as usize] == NONE {
            return node;
        }
        let mut at = node;
        while self.ancestor[self.ancestor[at as usize] as usize] != NONE {
            self.path.push(at);
            at = self.ancestor[at as usize];
        }
        while let Some(below) = self.path.pop() {
            let above = self.ancestor[below as usize];
            let (mine, theirs) = (self.best[below as usize], self.best[above as usize]);
            if self.semi[theirs as usize] < self.semi[mine as usize] {
                self.best[below as usize] = theirs;
            }
            self.ancestor[below as usize] = self.ancestor[above as usize];
        }
        self.best[node as usize]
    }
}

/// Immediate dominators of the nodes `0..count` from `root`; `NONE` for the root and for nodes that
/// it does not reach.
fn immediate_dominators(count: usize, root: usize, edges: &[(u32, u32)]) -> Vec<u32> {
    let succs = Lists::from_pairs(count, edges);
    let reversed: Vec<(u32, u32)> = edges.iter().map(|&(from, to)| (to, from)).collect();
    let preds = Lists::from_pairs(count, &reversed);
    let (vertex, number, parent) = depth_first(count, root, &succs);
    let reached = vertex.len();
    let identity: Vec<u32> = (0..reached as u32).collect();
    let mut state = LengauerTarjan {
        semi: identity.clone(),
        ancestor: vec![NONE; reached],
        best: identity,
        path: Vec::new(),
    };
    let mut idom = vec![0u32; reached];
    // Buckets as linked lists: `bucket[s]` is the first node whose semidominator is `s`.
    let mut bucket = vec![NONE; reached];
    let mut next_in_bucket = vec![NONE; reached];
    for w in (1..reached as u32).rev() {
        for &pred in preds.get(vertex[w as usize] as usize) {
            let pred = number[pred as usize];
            if pred != NONE {
                let best = state.eval(pred);
                let semi = state.semi[best as usize];
                state.semi[w as usize] = state.semi[w as usize].min(semi);
            }
        }
        let semi = state.semi[w as usize] as usize;
        next_in_bucket[w as usize] = std::mem::replace(&mut bucket[semi], w);
        let above = parent[w as usize];
        state.ancestor[w as usize] = above;
        let mut v = std::mem::replace(&mut bucket[above as usize], NONE);
        while v != NONE {
            let best = state.eval(v);
            let nearer = state.semi[best as usize] < state.semi[v as usize];
            idom[v as usize] = if nearer { best } else { above };
            v = next_in_bucket[v as usize];
        }
    }
    let mut result = vec![NONE; count];
    for w in 1..reached {
        if idom[w] != state.semi[w] {
            idom[w] = idom[idom[w] as usize];
        }
        result[vertex[w] as usize] = vertex[idom[w] as usize];
    }
    result
}

/// Depth-first search from `root`: the nodes in preorder, each node's number (or `NONE`), and each
/// number's parent number.
fn depth_first(count: usize, root: usize, succs: &Lists<u32>) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let mut vertex = vec![root as u32];
    let mut number = vec![NONE; count];
    let mut parent = vec![NONE];
    number[root] = 0;
    let mut stack = vec![(root, 0)];
    while let Some((node, next)) = stack.last_mut() {
        let Some(&succ) = succs.get(*node).get(*next) else {
            stack.pop();
            continue;
        };
        *next += 1;
        if number[succ as usize] == NONE {
            let above = number[*node];
            number[succ as usize] = vertex.len() as u32;
            vertex.push(succ);
            parent.push(above);
            stack.push((succ as usize, 0));
        }
    }
    (vertex, number, parent)
}
