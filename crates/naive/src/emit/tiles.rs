//! Which operands of a loop are staged in shared memory, and how they lie there.
//!
//! Sections 3.3 and 3.4 of the paper: the elements that a block of points touches in a part of a loop are loaded
//! together, in the order of memory. An operand without reuse that is coalesced as it is stays where it is, unless its
//! copies are several parts ahead (a departure: the paper knows no copies that run beside the threads).

use warpwright_cudac::affine::{Poly, Symbol};

use crate::forms::{Form, rows};
use crate::ir::{Kernel, Statement, Value};
use crate::schedule::{Schedule, Stage};

/// Operands in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The loop that is done in parts.
    pub(super) number: usize,
    /// Loops inside it, with their turns.
    pub(super) inner: Vec<(usize, i64)>,
    pub(super) tiles: Vec<Tile>,
    pub(super) stage: Stage,
}

/// A box of elements of an array.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    pub(super) array: usize,
    /// Strides; those of the rows of the box first, that of its columns last.
    pub(super) forms: Vec<Form>,
    /// Elements along each.
    pub(super) extents: Vec<i64>,
    /// The least element of the accesses, apart from what moves.
    pub(super) base: Poly,
    /// The accesses that it serves, and how many elements each is further.
    pub(super) accesses: Vec<(usize, i64)>,
    /// The largest of these numbers.
    pub(super) range: i64,
    /// Columns are not the neighbours in memory.
    pub(super) turned: bool,
    /// Elements of a row in shared memory.
    pub(super) pitch: i64,
}

impl Tile {
    /// The stride of its columns.
    pub(super) fn columns(&self) -> &Form {
        &self.forms[self.forms.len() - 1]
    }

    /// The strides of its rows.
    pub(super) fn rows(&self) -> &[Form] {
        &self.forms[..self.forms.len() - 1]
    }

    pub(super) fn row_count(&self) -> i64 {
        self.extents[..self.extents.len() - 1].iter().product()
    }

    pub(super) fn column_count(&self) -> i64 {
        self.extents[self.extents.len() - 1]
    }

    pub(super) fn offset(&self, access: usize) -> Option<i64> {
        let found = self.accesses.iter().find(|(a, _)| *a == access);
        found.map(|(_, offset)| *offset)
    }

    /// Elements in shared memory.
    pub(super) fn elements(&self) -> i64 {
        self.row_count() * self.pitch
    }
}

/// Elements that a 16-byte access holds; 1 where there is no such type.
pub(super) fn lanes(kernel: &Kernel, array: usize) -> i64 {
    match (kernel.arrays[array].bytes, kernel.arrays[array].scalar) {
        (4, Some(_)) => 4,
        (8, Some(warpwright_cudac::Scalar::Double)) => 2,
        _ => 1,
    }
}

/// The type of a 16-byte access.
pub(super) fn vector(kernel: &Kernel, array: usize) -> &'static str {
    use warpwright_cudac::Scalar;
    match kernel.arrays[array].scalar {
        Some(Scalar::Float) => "float4",
        Some(Scalar::Double) => "double2",
        Some(Scalar::Integer(_, true)) => "int4",
        _ => "uint4",
    }
}

/// The plan for a kernel; none where no loop has an operand to be staged.
pub(super) fn plan(kernel: &Kernel, schedule: &Schedule) -> Option<Plan> {
    let stage = schedule.stage.clone()?;
    let (number, body) = find(kernel, &kernel.body, i64::from(stage.turns))?;
    let mut inner = Vec::new();
    loops_inside(kernel, body, &mut inner)?;
    let turns = |symbol: Symbol| match symbol {
        Symbol::Loop(n) if n == number => i64::from(stage.turns),
        Symbol::Loop(n) => inner
            .iter()
            .find(|(m, _)| *m == n)
            .map_or(1, |(_, turns)| *turns),
        symbol => match kernel.dim(symbol) {
            Some(axis @ 0..2) => i64::from(schedule.tile()[axis]),
            _ => 1,
        },
    };
    let mut tiles: Vec<Tile> = Vec::new();
    let mut accesses = Vec::new();
    for statement in body {
        operands(statement, &mut accesses);
    }
    for access in accesses {
        let array = kernel.accesses[access].array;
        let of = &kernel.arrays[array];
        // Variables of the file stay where they are: constant memory cannot be copied by `cp.async`, and a host does
        // not know how they are aligned.
        if of.stored || of.parameter.is_none() || !matches!(of.bytes, 4 | 8 | 16) {
            continue;
        }
        let Some(found) = kernel.accesses[access].affine().and_then(rows) else {
            continue;
        };
        // A counter of these loops has no value yet where a part is copied, even if it never moves.
        let counted = |s: &Symbol| matches!(s, Symbol::Loop(n) if *n == number || inner.iter().any(|(m, _)| m == n));
        let moves = |form: &Form| {
            let mut terms = form.terms.iter();
            terms.any(|(s, _)| turns(*s) > 1 || counted(s))
        };
        let (forms, fixed): (Vec<Form>, Vec<Form>) = found.forms.into_iter().partition(moves);
        // Points of both dimensions along one stride have no runs.
        let both = |form: &Form| {
            let places = form
                .terms
                .iter()
                .filter(|(s, _)| matches!(kernel.dim(*s), Some(0..2)));
            places.count() > 1
        };
        if forms.is_empty() || forms.iter().any(both) {
            continue;
        }
        let mut base = found.base;
        for form in &fixed {
            for (symbol, times) in &form.terms {
                let term = form.stride.times(&Poly::symbol(*symbol))?;
                base = base.plus(&term, *times)?;
            }
        }
        let same = |tile: &&mut Tile| tile.array == array && tile.forms == forms;
        let apart = |tile: &Tile| {
            base.plus(&tile.base, -1)
                .and_then(|apart| apart.as_constant())
        };
        let near = |tile: &Tile| apart(tile).filter(|apart| apart.abs() < 64);
        let known = tiles.iter_mut().filter(same).find_map(|tile| {
            let apart = near(tile).filter(|apart| *apart == 0 || tile.columns().is_unit())?;
            Some((tile, apart))
        });
        match known {
            Some((tile, apart)) => {
                if apart < 0 {
                    tile.base = base;
                    tile.accesses
                        .iter_mut()
                        .for_each(|(_, offset)| *offset -= apart);
                }
                tile.accesses.push((access, apart.max(0)));
            }
            None => tiles.push(Tile {
                array,
                forms,
                extents: Vec::new(),
                base,
                accesses: vec![(access, 0)],
                range: 0,
                turned: false,
                pitch: 0,
            }),
        }
    }
    let points = turns_of(kernel, schedule)
        * i64::from(stage.turns)
        * inner.iter().map(|(_, n)| n).product::<i64>();
    tiles.retain_mut(|tile| {
        laid_out(kernel, tile, &turns, stage.turn);
        let elements: i64 = tile.extents.iter().product();
        let uses = points * i64::try_from(tile.accesses.len()).unwrap_or(1);
        let coalesced =
            tile.columns().is_unit() && tile.columns().times(kernel.dims[0].symbol) == 1;
        // Copies that are far ahead keep memory busy even where nothing is used twice.
        let ahead = stage.buffers > 2;
        elements > 0 && elements <= 1 << 16 && (uses > elements || !coalesced || ahead)
    });
    (!tiles.is_empty()).then_some(Plan {
        number,
        inner,
        tiles,
        stage,
    })
}

fn turns_of(kernel: &Kernel, schedule: &Schedule) -> i64 {
    let tile = schedule.tile();
    i64::from(tile[0])
        * if kernel.dims.len() > 1 {
            i64::from(tile[1])
        } else {
            1
        }
}

fn laid_out(kernel: &Kernel, tile: &mut Tile, turns: &impl Fn(Symbol) -> i64, turn: bool) {
    tile.range = tile
        .accesses
        .iter()
        .map(|(_, offset)| *offset)
        .max()
        .unwrap_or(0);
    let is_point = |form: &Form| form.terms.iter().any(|(s, _)| kernel.dim(*s).is_some());
    let unit_loops = tile.columns().is_unit() && !is_point(tile.columns());
    if turn && unit_loops && tile.range == 0 && tile.forms.len() == 2 && is_point(&tile.forms[0]) {
        tile.forms.swap(0, 1);
        tile.turned = true;
    }
    let last = tile.forms.len() - 1;
    let extent = |(at, form): (usize, &Form)| {
        let moved: i64 = form
            .terms
            .iter()
            .map(|(s, times)| times * (turns(*s) - 1))
            .sum();
        moved + 1 + if at == last { tile.range } else { 0 }
    };
    tile.extents = tile.forms.iter().enumerate().map(extent).collect();
    let lanes = lanes(kernel, tile.array);
    let columns = tile.column_count();
    tile.extents[last] = (columns + lanes - 1) / lanes * lanes;
    tile.pitch = tile.extents[last];
    // Rows that several points read at once begin in different banks.
    if tile.turned || tile.forms.len() > 1 && !is_point(tile.columns()) {
        tile.pitch += lanes;
    }
}

/// The loop to be done in parts: the outermost one in which everything else is known, and its body.
fn find<'a>(
    kernel: &Kernel,
    statements: &'a [Statement],
    turns: i64,
) -> Option<(usize, &'a [Statement])> {
    for statement in statements {
        let Statement::Loop(number, body) = statement else {
            continue;
        };
        let mut inner = Vec::new();
        let known = loops_inside(kernel, body, &mut inner).is_some();
        let work = inner.iter().map(|(_, n)| n).product::<i64>() * turns;
        if is_uniform(kernel, *number) && kernel.loops[*number].step == 1 {
            // How many parts there are is known before the launch.
            let of = &kernel.loops[*number];
            let sized = |p: &Poly| {
                let symbols = p.symbols();
                symbols.iter().all(|s| matches!(s, Symbol::Size(_)))
            };
            if known && work <= 4096 && sized(&of.low) && sized(&of.high) {
                return Some((*number, body));
            }
            if let Some(found) = find(kernel, body, turns) {
                return Some(found);
            }
        }
    }
    None
}

/// Does a loop make the same turns for all points of a block?
pub(super) fn is_uniform(kernel: &Kernel, number: usize) -> bool {
    let of = &kernel.loops[number];
    let tiled = |s: &Symbol| matches!(kernel.dim(*s), Some(0..2));
    let depends = |poly: &Poly| poly.symbols().iter().any(tiled);
    // Counters of outer loops that are not uniform do not come here: such loops are not looked into.
    !depends(&of.low) && !depends(&of.high)
}

/// The turns of a loop, if they are a number.
pub(super) fn trips(kernel: &Kernel, number: usize) -> Option<i64> {
    let of = &kernel.loops[number];
    let span = of.high.plus(&of.low, -1)?.as_constant()?;
    Some((span.max(0) + of.step - 1) / of.step)
}

/// The loops in a body; none if one of them is not a fixed number of turns from a fixed number.
fn loops_inside(kernel: &Kernel, body: &[Statement], found: &mut Vec<(usize, i64)>) -> Option<()> {
    for statement in body {
        match statement {
            Statement::Loop(number, body) => {
                let of = &kernel.loops[*number];
                of.low.as_constant().filter(|_| of.step == 1)?;
                found.push((*number, trips(kernel, *number).filter(|n| *n > 0)?));
                loops_inside(kernel, body, found)?;
            }
            Statement::If(_, then, otherwise) => {
                let mut inside = Vec::new();
                loops_inside(kernel, then, &mut inside)?;
                loops_inside(kernel, otherwise, &mut inside)?;
                // A loop under a condition is no loop of the block.
                if !inside.is_empty() {
                    return None;
                }
            }
            Statement::While(..) => return None,
            _ => {}
        }
    }
    Some(())
}

/// Loads that are always done.
fn operands(statement: &Statement, found: &mut Vec<usize>) {
    match statement {
        Statement::Loop(_, body) => body.iter().for_each(|s| operands(s, found)),
        other => other.own().into_iter().for_each(|v| loads(v, found)),
    }
}

pub(super) fn loads(value: &Value, found: &mut Vec<usize>) {
    value.walk(false, &mut |value, sometimes| {
        if let Value::Load(access) = value
            && !sometimes
        {
            found.push(*access);
        }
    });
}
