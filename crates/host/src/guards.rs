//! What a kernel compares the place of a thread or block with: where no code launches it, these are the sizes of its grid.

use std::collections::BTreeMap;

use warpwright_launch::Op;
use warpwright_ptx::ir::{Address, Base, Body, Function, Imm, Inst, Operand, Part, Reg, Symbol};
use warpwright_ptx::{Module, SpecialReg};

use crate::amount::Amount;

/// What the kernel says of one dimension of its grid.
#[derive(Clone, Debug, PartialEq)]
pub enum Guard {
    /// So many blocks.
    Blocks(Amount),
    /// Blocks for so many threads, this many or else the block's in each.
    Threads(Amount, Option<i64>),
}

/// What a register holds.
#[derive(Clone, Debug, PartialEq)]
enum Form {
    /// A number, or a size made of parameters.
    Amount(Amount),
    Tid(usize),
    Ntid(usize),
    Ctaid(usize),
    /// The first place of the block: `ctaid` times `ntid`, or times a number.
    Start(usize, Option<i64>),
    /// `tid` divided by a number.
    Part(usize, i64),
    /// `Start` and `tid`, divided by a number.
    Place(usize, Option<i64>, i64),
}

/// What a kernel says of its grid.
#[derive(Clone, Debug, Default)]
pub struct Guards {
    /// The first comparison of each dimension with parameters.
    pub of: [Option<Guard>; 3],
    /// Do threads of several blocks have places side by side?
    pub has_places: [bool; 3],
    /// What threads count up to within their block.
    pub inside: Vec<Amount>,
}

/// What a kernel says of its grid. `parameter`: the integer that a parameter is, by its number.
pub fn guards(
    (module, function): (&Module, &Function),
    parameter: &dyn Fn(usize) -> Option<Amount>,
) -> Guards {
    let mut found = Guards::default();
    let Some(body) = &function.body else {
        return found;
    };
    let mut reader = Reader {
        body,
        function,
        parameter,
        forms: BTreeMap::new(),
    };
    let written = written(body);
    let mut labels = body.labels.values().map(|label| label.at).peekable();
    for (inst, data) in body.insts.iter() {
        let opcode = &*module.opcode(data).text;
        let operands = body.operands(inst);
        // What is written anew elsewhere, as a counter of a loop is, holds as far as code is entered from above alone.
        if labels.next_if(|at| *at <= inst).is_some() {
            reader.forms.retain(|reg, _| written.get(reg) == Some(&1));
        }
        if opcode.starts_with("setp.") {
            match reader.compared(opcode, operands) {
                Some((Form::Tid(_), size)) => found.inside.push(size),
                Some((place, size)) => found.meets(&place, size),
                None => {}
            }
            continue;
        }
        let form = reader.made(opcode, inst);
        let form = form.filter(|_| data.guard.is_none());
        for reg in targets(body, inst) {
            reader.forms.remove(&reg);
        }
        let (Some(form), Some(&Operand::Reg(to))) = (form, operands.first()) else {
            continue;
        };
        if let Form::Start(axis, _) | Form::Place(axis, ..) = form {
            found.has_places[axis] = true;
        }
        reader.forms.insert(to, form);
    }
    found
}

/// The registers that stand where an instruction writes.
fn targets(body: &Body, inst: Inst) -> impl Iterator<Item = Reg> {
    let to: &[Operand] = match body.operands(inst).first() {
        Some(Operand::Vector(list) | Operand::Pair(list)) => body.list(*list),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    to.iter().filter_map(|operand| match operand {
        Operand::Reg(reg) => Some(*reg),
        _ => None,
    })
}

/// How often registers are written.
fn written(body: &Body) -> BTreeMap<Reg, usize> {
    let mut times = BTreeMap::new();
    for reg in body.insts.keys().flat_map(|inst| targets(body, inst)) {
        *times.entry(reg).or_default() += 1;
    }
    times
}

struct Reader<'r> {
    body: &'r Body,
    function: &'r Function,
    parameter: &'r dyn Fn(usize) -> Option<Amount>,
    forms: BTreeMap<Reg, Form>,
}

impl Reader<'_> {
    fn of(&self, operand: &Operand) -> Option<Form> {
        match operand {
            Operand::Reg(reg) => self.forms.get(reg).cloned(),
            Operand::Imm(Imm::Int { value, .. }) => Some(Form::Amount(Amount::Number(*value))),
            Operand::Special { reg, part } => {
                let axis = match part {
                    Some(Part::X) => 0,
                    Some(Part::Y) => 1,
                    Some(Part::Z) => 2,
                    _ => return None,
                };
                match reg {
                    SpecialReg::Tid => Some(Form::Tid(axis)),
                    SpecialReg::NTid => Some(Form::Ntid(axis)),
                    SpecialReg::CtaId => Some(Form::Ctaid(axis)),
                    _ => None,
                }
            }
            Operand::Mem(Address {
                base: Base::Symbol(Symbol::Var(var)),
                offset: 0,
                ..
            }) => {
                let mut params = self.function.params.iter();
                let at = params.position(|param| param.var == *var)?;
                (self.parameter)(at).map(Form::Amount)
            }
            _ => None,
        }
    }

    /// What an instruction makes.
    fn made(&self, opcode: &str, inst: Inst) -> Option<Form> {
        let from = self.body.operands(inst).get(1..)?.iter();
        let from: Option<Vec<Form>> = from.map(|operand| self.of(operand)).collect();
        let word = opcode.split('.').next()?;
        match (word, &from?[..]) {
            ("mov" | "cvt", [one]) => Some(one.clone()),
            ("ld", [one]) if opcode.starts_with("ld.param.") => Some(one.clone()),
            ("mul", [a, b]) => product(a, b),
            // A shift stands for a product; with an `or` a number is put behind one.
            ("shl", [a, Form::Amount(Amount::Number(by @ 0..32))]) => {
                product(a, &Form::Amount(Amount::Number(1 << by)))
            }
            ("add" | "or", [a, b]) => sum(a, b),
            ("sub", [a, Form::Amount(Amount::Number(_))]) => Some(a.clone()),
            ("mad", [a, b, c]) => sum(&product(a, b)?, c),
            ("shr", [a, Form::Amount(Amount::Number(by @ 0..63))]) => shifted(a, *by),
            _ => None,
        }
    }

    /// A comparison with a size.
    fn compared(&self, opcode: &str, operands: &[Operand]) -> Option<(Form, Amount)> {
        let order = opcode.split('.').nth(1)?;
        if !["lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"].contains(&order) {
            return None;
        }
        let [_, a, b] = operands else {
            return None;
        };
        match (self.of(a)?, self.of(b)?) {
            (place, Form::Amount(size)) | (Form::Amount(size), place) => {
                is_made_of_names(&size).then_some((place, size))
            }
            _ => None,
        }
    }
}

fn is_made_of_names(amount: &Amount) -> bool {
    match amount {
        Amount::Root(_) => true,
        Amount::Binary(_, a, b) => is_made_of_names(a) || is_made_of_names(b),
        _ => false,
    }
}

fn product(a: &Form, b: &Form) -> Option<Form> {
    use Form::{Ctaid, Ntid, Start};
    match (a, b) {
        (Ctaid(a), Ntid(b)) | (Ntid(a), Ctaid(b)) if a == b => Some(Start(*a, None)),
        (Ctaid(a), Form::Amount(Amount::Number(n)))
        | (Form::Amount(Amount::Number(n)), Ctaid(a)) => Some(Start(*a, Some(*n))),
        (Form::Amount(Amount::Number(a)), Form::Amount(Amount::Number(b))) => {
            Some(Form::Amount(Amount::Number(a.checked_mul(*b)?)))
        }
        (Form::Amount(a), Form::Amount(b)) => Some(Form::Amount(a.clone().times(b.clone()))),
        _ => None,
    }
}

/// A number that is added to a size is one of a border.
fn sum(a: &Form, b: &Form) -> Option<Form> {
    use Form::{Part, Place, Start, Tid};
    match (a, b) {
        (Start(a, each), Tid(b)) | (Tid(b), Start(a, each)) if a == b => Some(Place(*a, *each, 1)),
        // As many for each block as it has such parts.
        (Start(a, Some(each)), Part(b, over)) | (Part(b, over), Start(a, Some(each))) if a == b => {
            Some(Place(*a, Some(each.checked_mul(*over)?), *over))
        }
        (Form::Amount(Amount::Number(a)), Form::Amount(Amount::Number(b))) => {
            Some(Form::Amount(Amount::Number(a.checked_add(*b)?)))
        }
        (own, Form::Amount(Amount::Number(_))) | (Form::Amount(Amount::Number(_)), own) => {
            Some(own.clone())
        }
        _ => None,
    }
}

/// A quotient of what is not negative; of a size only the sign is shifted so far.
fn shifted(a: &Form, by: i64) -> Option<Form> {
    let over = 1_i64.checked_shl(u32::try_from(by).ok()?)?;
    match a {
        Form::Tid(axis) => Some(Form::Part(*axis, over)),
        Form::Place(axis, each, before) => {
            Some(Form::Place(*axis, *each, before.checked_mul(over)?))
        }
        Form::Amount(Amount::Number(number)) => Some(Form::Amount(Amount::Number(number >> by))),
        Form::Amount(_) if by >= 31 => Some(Form::Amount(Amount::Number(0))),
        Form::Amount(size) => Some(Form::Amount(size.clone().over(Amount::Number(over)))),
        _ => None,
    }
}

impl Guards {
    /// A place is compared with a size.
    fn meets(&mut self, place: &Form, size: Amount) {
        let (axis, guard) = match place {
            Form::Ctaid(axis) => (*axis, Guard::Blocks(size)),
            Form::Place(axis, each, 1) => (*axis, Guard::Threads(size, *each)),
            Form::Place(axis, each, over) => {
                let threads = size.times(Amount::Number(*over));
                (*axis, Guard::Threads(threads, *each))
            }
            _ => return,
        };
        self.of[axis].get_or_insert(guard);
    }
}

impl Guard {
    /// The size that it is about.
    pub fn size(&self) -> &Amount {
        match self {
            Guard::Blocks(size) | Guard::Threads(size, _) => size,
        }
    }

    /// The blocks of the grid, with so many threads in each.
    pub fn blocks(&self, threads: i64) -> Amount {
        match self {
            Guard::Blocks(blocks) => blocks.clone(),
            Guard::Threads(all, each) => {
                let each = Amount::Number(each.unwrap_or(threads).max(1));
                Amount::binary(Op::CeilDiv, all.clone(), each)
            }
        }
    }
}
