//! A plan carried out: the kernel and what is known about it before it is compiled.

use std::collections::BTreeSet;

use super::cost::Cost;
use super::graph::{Graph, Node};
use super::kernel::{self, PlaneStep};
use super::layout::{Layout, Reach, Read};
use super::plan::{Plan, Refusal};
use super::terms::{Field, Terms};
use super::writer::Writer;
use crate::evaluate::{Sizes, extent};
use crate::ir::{Element, Extent, Stencil};
use crate::sweep::Sweep;

/// A generated kernel and what is known about it before it is compiled.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its text and its launch. The entry `wide` is for rows whose elements pair up at multiples of two elements,
    /// `any` for all.
    pub sweep: Sweep,
    /// What was chosen.
    pub plan: Plan,
    /// Bytes of dynamic shared memory per block.
    pub shared_bytes: u32,
    /// The tile of computed points along the contiguous dimension and the one before it.
    pub tile: [u32; 2],
    /// What a step costs.
    pub cost: Cost,
    /// Columns, rows and planes to compute: a size and what is taken off it.
    pub(super) counts: [(Extent, i64); 3],
    /// The domain has two dimensions.
    pub(super) flat: bool,
}

impl Kernel {
    /// Columns, rows and planes that a sweep computes; 0 where there are none.
    pub fn domain(&self, sizes: &Sizes) -> [u64; 3] {
        let count = |(size, less): (Extent, i64)| extent(size, sizes).saturating_sub(less);
        self.counts.map(|c| u64::try_from(count(c)).unwrap_or(0))
    }

    /// The domain has two dimensions.
    pub(super) fn is_flat(&self) -> bool {
        self.flat
    }

    /// The same kernel with so many planes on their way, but for its text.
    pub(super) fn with_ahead(&self, ahead: u32) -> Kernel {
        let plane = self.cost.plane_bytes;
        let others = self.shared_bytes - self.plan.ahead * plane;
        let mut kernel = self.clone();
        kernel.plan.ahead = ahead;
        kernel.shared_bytes = others + ahead * plane;
        kernel
    }

    /// Tiles along the columns and rows, and chunks of planes.
    pub fn blocks(&self, sizes: &Sizes) -> [u64; 3] {
        let [columns, rows, planes] = self.domain(sizes);
        [
            columns.div_ceil(u64::from(self.tile[0])),
            rows.div_ceil(u64::from(self.tile[1])),
            planes.div_ceil(u64::from(self.plan.chunk)),
        ]
    }
}

/// Generates the kernel of a plan.
pub fn generate(stencil: &Stencil, plan: &Plan) -> Result<Kernel, Refusal> {
    if plan.reassociate && !stencil.reassociate {
        return Err(Refusal::new(
            "the input does not permit to reassociate sums",
        ));
    }
    Prepared::new(stencil, plan.reassociate)?.generate(plan)
}

/// A stencil that has been looked at; plans are tried on it.
#[derive(Clone, Debug)]
pub(super) struct Prepared<'a> {
    stencil: &'a Stencil,
    graph: Graph,
    terms: Terms,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(stencil: &'a Stencil, reassociate: bool) -> Result<Self, Refusal> {
        let mut graph = Graph::new(stencil)?;
        if graph.dims < 2 {
            return Err(Refusal::new(
                "a domain of one dimension has no tile to stream",
            ));
        }
        let terms = Terms::new(&mut graph, reassociate);
        let prepared = Prepared {
            stencil,
            graph,
            terms,
        };
        prepared.check_arrays()?;
        Ok(prepared)
    }

    /// Full arrays have their constant subscripts first, so that rows are contiguous.
    fn check_arrays(&self) -> Result<(), Refusal> {
        for source in self.graph.sources.values() {
            let full = source.subscripts.iter().flatten().count() == self.graph.dims;
            let last = source.subscripts.len().saturating_sub(self.graph.dims);
            let leading = source.subscripts[..last].iter().all(Result::is_err);
            if full && !leading {
                let array = &self.stencil.arrays[source.array].name;
                return Err(Refusal::new(format!(
                    "`{array}` has a constant subscript after an iterator"
                )));
            }
        }
        for (source, _) in &self.graph.outputs {
            if !self.graph.is_full(*source) {
                let array = &self.stencil.arrays[self.graph.sources[*source].array].name;
                return Err(Refusal::new(format!(
                    "`{array}` is written and does not extend along all dimensions"
                )));
            }
        }
        Ok(())
    }

    /// Some field can be staged.
    pub(super) fn can_stage(&self) -> bool {
        self.terms.fields.iter().any(|f| self.worth_staging(f))
    }

    /// Elements are 64 bits wide.
    pub(super) fn is_double(&self) -> bool {
        self.graph.element == Element::F64
    }

    /// Arrays that extend along all dimensions, components counted each.
    pub(super) fn full_sources(&self) -> usize {
        let sources = self.graph.sources.keys();
        sources.filter(|s| self.graph.is_full(*s)).count()
    }

    /// It is read by neighbours in the plane, and it is more than an element of an array.
    fn worth_staging(&self, field: &Field) -> bool {
        let mut readers = field.uses.values().flat_map(|u| u.keys());
        let aside = readers.any(|v| kernel::split(self.graph.dims, *v)[1..] != [0, 0]);
        let element = match &field.parts[..] {
            [(factors, node, _)] => {
                factors.is_empty() && matches!(self.graph.nodes[*node], Node::Load(..))
            }
            _ => false,
        };
        aside && !element
    }

    pub(super) fn generate(&self, plan: &Plan) -> Result<Kernel, Refusal> {
        check_plan(plan, self.graph.dims)?;
        let mut slots = 0;
        let mut staged = Vec::new();
        let mut fields = Vec::new();
        for field in &self.terms.fields {
            let stage = plan.stage && self.worth_staging(field);
            staged.push(stage.then_some(slots));
            if stage {
                slots += 1;
                let mut reach = Reach::default();
                for place in field.uses.values().flat_map(|u| u.keys()) {
                    let [_, y, x] = kernel::split(self.graph.dims, *place);
                    reach.include([y, x], [1, 1]);
                }
                fields.push(reach);
            }
        }
        let step = |layout, known: &BTreeSet<Read>| {
            let (stencil, graph, terms) = (self.stencil, &self.graph, &self.terms);
            let mut step =
                PlaneStep::new(stencil, graph, terms, plan, staged.clone(), layout, known);
            step.emit().map(|()| step)
        };
        let reads = step(None, &BTreeSet::new())?.reads;
        let start = self.first_column(plan);
        let layout = Layout::new(plan, &reads, &fields, start as i32);
        let [rows, columns] = layout.tile();
        if rows < 1 || columns < 1 {
            return Err(Refusal::new("the block is smaller than the neighbourhood"));
        }
        if layout.rings > 0 && columns % 2 != 0 {
            let text = format!("tiles of {columns} columns would split pairs of elements");
            return Err(Refusal::new(text));
        }
        let step = step(Some(&layout), &reads)?;
        let writer = Writer {
            stencil: self.stencil,
            graph: &self.graph,
            plan,
            layout: &layout,
            start,
            span: step.span(),
            points: step.all_points(),
            text: String::new(),
        };
        Ok(writer.finish(step))
    }

    /// The first column of the first tile: the first computed one, or one before it so that pairs
    /// are aligned.
    fn first_column(&self, plan: &Plan) -> i64 {
        let low = self.stencil.dims.values().last().map_or(0, |d| d.low);
        if plan.points[0].is_multiple_of(2) {
            low - low.rem_euclid(2)
        } else {
            low
        }
    }
}

fn check_plan(plan: &Plan, dims: usize) -> Result<(), Refusal> {
    let threads = plan.threads();
    if threads == 0 || threads > 1024 {
        return Err(Refusal::new(format!("a block of {threads} threads")));
    }
    let [columns, rows] = plan.points;
    if columns == 0 || rows == 0 || columns.saturating_mul(rows) > 64 {
        return Err(Refusal::new(format!(
            "{columns} x {rows} points for a thread"
        )));
    }
    if dims == 2 && (rows != 1 || plan.block[1] != 1) {
        return Err(Refusal::new("a tile of rows in a domain of two dimensions"));
    }
    if plan.ahead == 0 || plan.chunk == 0 || plan.unroll == 0 || plan.min_blocks == 0 {
        return Err(Refusal::new(
            "`ahead`, `chunk`, `unroll` and `blocks` are 1 or more",
        ));
    }
    if plan.ahead > 16 || plan.chunk > 100_000 || plan.unroll > 64 || plan.min_blocks > 32 {
        return Err(Refusal::new(
            "at most 16 planes ahead, 100,000 in a chunk, 64 written out; 32 blocks",
        ));
    }
    Ok(())
}
