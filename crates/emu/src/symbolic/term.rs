//! Terms: what a value is, as a graph over the launch's inputs.
//!
//! Every term stands once (hash-consing), as 16 bytes in an arena; its number is its identity, so that the same number
//! is the same value. The constructors apply what holds bit for bit alone: commutation (not of `.f64`, which hands one of two
//! NaNs on), signs pulled out of products, `x*1` and `x+(-0)` of what arithmetic made (of other numbers they change the
//! bits of a NaN), parts of joined words, selections of one and the same.
//!
//! A term has the bits of its kind and is zero-extended beyond them, as registers are.

use rustc_hash::FxHashMap;

use crate::lanes::{Mask, WARP, lanes_of};

/// A term's number in its arena.
pub type Id = u32;

/// The value of a lane: bits, or a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Val {
    /// Known bits.
    Bits(u64),
    /// A term.
    Term(Id),
}

/// What a term's bits mean where it is an operand of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Domain {
    /// Whatever its reader takes it for: inputs, constants, parts.
    Any,
    /// IEEE formats.
    F16,
    /// bfloat16
    Bf16,
    /// binary32
    F32,
    /// binary64
    F64,
    /// Integers modulo 2¹⁶.
    I16,
    /// Integers modulo 2³².
    I32,
    /// Integers modulo 2⁶⁴.
    I64,
    /// A predicate.
    Pred,
}

impl Domain {
    const ALL: [Domain; 9] = [
        Domain::Any,
        Domain::F16,
        Domain::Bf16,
        Domain::F32,
        Domain::F64,
        Domain::I16,
        Domain::I32,
        Domain::I64,
        Domain::Pred,
    ];

    /// Bits of a value.
    pub fn bits(self) -> u32 {
        match self {
            Domain::Pred => 1,
            Domain::F16 | Domain::Bf16 | Domain::I16 => 16,
            Domain::F32 | Domain::I32 => 32,
            Domain::Any | Domain::F64 | Domain::I64 => 64,
        }
    }

    /// Is it a floating-point format?
    pub fn is_float(self) -> bool {
        matches!(self, Domain::F16 | Domain::Bf16 | Domain::F32 | Domain::F64)
    }

    /// Integers of so many bits.
    pub fn int(bits: u32) -> Domain {
        match bits {
            0..=16 => Domain::I16,
            17..=32 => Domain::I32,
            _ => Domain::I64,
        }
    }

    /// The bits of infinity.
    fn infinity(self) -> u64 {
        match self {
            Domain::F16 => 0x7c00,
            Domain::Bf16 => 0x7f80,
            Domain::F32 => 0x7f80_0000,
            Domain::F64 => 0x7ff0_0000_0000_0000,
            _ => u64::MAX,
        }
    }

    /// The sign bit.
    fn sign(self) -> u64 {
        1 << (self.bits() - 1)
    }

    /// The number one.
    fn one(self) -> u64 {
        match self {
            Domain::F16 => 0x3c00,
            Domain::Bf16 => 0x3f80,
            Domain::F32 => 0x3f80_0000,
            Domain::F64 => 0x3ff0_0000_0000_0000,
            _ => 1,
        }
    }
}

/// What a term is made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Known bits: `a` the lower, `b` the upper half.
    Const,
    /// Element `b` of buffer `a` before the first launch; `imm`: its bits.
    Input,
    /// What nobody has written: `a` says where, `b` which.
    Unset,
    /// Sums, products and the like of floating point; `imm`: [`Mode`].
    FAdd,
    /// A product.
    FMul,
    /// `a * b + c`, rounded once.
    FFma,
    /// The sign turned.
    FNeg,
    /// The magnitude.
    FAbs,
    /// A quotient.
    FDiv,
    /// A square root.
    FSqrt,
    /// Its reciprocal.
    FRsqrt,
    /// 2ᵃ
    FEx2,
    /// The smaller.
    FMin,
    /// The larger.
    FMax,
    /// From one format to another, or to the whole number; `imm`: [`Mode`], `b`: the source's domain.
    FCvt,
    /// An integer as floating point; `b`: source bits and sign.
    FromInt,
    /// Integer sums; `imm`: domain.
    IAdd,
    /// A product's lower half.
    IMul,
    /// Bits `imm & 0xff` on, `imm >> 8` of them.
    Extract,
    /// `a` below, `b` from bit `imm & 0xff` on; `imm >> 8` bits in all.
    Concat,
    /// The sign of `imm & 0xff` bits spread to `imm >> 8`.
    Sext,
    /// A comparison; `imm`: [`Cmp`].
    Cmp,
    /// Predicates.
    Not,
    /// Both.
    And,
    /// One of two, not both.
    Xor,
    /// `b` where `a` holds, else `c`; `imm`: domain.
    Select,
    /// Any other function; `imm`: its name and domain.
    App,
    /// Further arguments of an [`App`](Kind::App).
    Pair,
}

const KINDS: [Kind; 28] = [
    Kind::Const,
    Kind::Input,
    Kind::Unset,
    Kind::FAdd,
    Kind::FMul,
    Kind::FFma,
    Kind::FNeg,
    Kind::FAbs,
    Kind::FDiv,
    Kind::FSqrt,
    Kind::FRsqrt,
    Kind::FEx2,
    Kind::FMin,
    Kind::FMax,
    Kind::FCvt,
    Kind::FromInt,
    Kind::IAdd,
    Kind::IMul,
    Kind::Extract,
    Kind::Concat,
    Kind::Sext,
    Kind::Cmp,
    Kind::Not,
    Kind::And,
    Kind::Xor,
    Kind::Select,
    Kind::App,
    Kind::Pair,
];

/// How an operation rounds, in a word: domain (4 bits), then flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode(pub u32);

impl Mode {
    /// Subnormals are zero.
    pub const FTZ: u32 = 1 << 4;
    /// Clamped to 0…1.
    pub const SAT: u32 = 1 << 5;
    /// Rounded toward zero, down, up; to nearest where none is set.
    pub const ZERO: u32 = 1 << 6;
    /// See [`ZERO`](Self::ZERO).
    pub const DOWN: u32 = 1 << 7;
    /// See [`ZERO`](Self::ZERO).
    pub const UP: u32 = 1 << 8;
    /// Approximate, as the hardware has it.
    pub const APPROX: u32 = 1 << 9;
    /// Of a matrix product: summed in an order that nobody states.
    pub const MATRIX: u32 = 1 << 10;
    /// Integers with a sign; an approximate reciprocal.
    pub const OTHER: u32 = 1 << 11;
    /// To a whole number.
    pub const INTEGRAL: u32 = 1 << 12;
    /// ptxas may fuse it with what follows: no rounding is stated. Of a term's identity it is a part in sums of products
    /// alone.
    pub const FUSIBLE: u32 = 1 << 13;
    /// Nothing below zero.
    pub const RELU: u32 = 1 << 14;
    /// NaN if one of both is.
    pub const NAN: u32 = 1 << 15;
    /// Clamped to the largest number.
    pub const FINITE: u32 = 1 << 16;
    /// `div.full`: approximate over all its range.
    pub const FULL: u32 = 1 << 17;
    /// The first step of a matrix instruction: how its steps are rounded is its own matter.
    pub const FIRST: u32 = 1 << 18;
    /// The same of `wmma`.
    pub const WMMA: u32 = 1 << 19;

    /// A domain with flags.
    pub fn new(domain: Domain, flags: u32) -> Mode {
        Mode(domain as u32 | flags)
    }

    /// The format.
    pub fn domain(self) -> Domain {
        Domain::ALL[(self.0 & 15) as usize % Domain::ALL.len()]
    }

    /// Is the flag set?
    pub fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    /// Is it rounded to nearest, with nothing else about it?
    pub fn is_plain(self) -> bool {
        self.0 & !(15 | Mode::FUSIBLE) == 0
    }
}

/// A comparison: domain, operator, signed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cmp(pub u32);

/// Operators of comparisons. The others are these, negated or with operands exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// `a < b`; false with NaN.
    Lt,
    /// `a <= b`; false with NaN.
    Le,
    /// `a == b`; false with NaN.
    Eq,
    /// One of both is NaN.
    Nan,
}

impl Cmp {
    /// A comparison in a domain.
    pub fn new(domain: Domain, order: Order, signed: bool, ftz: bool) -> Cmp {
        Cmp(domain as u32 | (order as u32) << 4 | (signed as u32) << 6 | (ftz as u32) << 7)
    }

    /// Of what.
    pub fn domain(self) -> Domain {
        Domain::ALL[(self.0 & 15) as usize % Domain::ALL.len()]
    }

    /// Which.
    pub fn order(self) -> Order {
        [Order::Lt, Order::Le, Order::Eq, Order::Nan][(self.0 >> 4 & 3) as usize]
    }

    /// Does it hold of two integers of its domain?
    fn holds(self, a: u64, b: u64) -> bool {
        let shift = 64 - self.domain().bits();
        let is_signed = self.0 >> 6 & 1 != 0;
        let number = |bits: u64| match is_signed {
            true => i128::from((bits << shift) as i64),
            false => i128::from(bits << shift),
        };
        match self.order() {
            Order::Lt => number(a) < number(b),
            Order::Le => number(a) <= number(b),
            Order::Eq => number(a) == number(b),
            Order::Nan => false,
        }
    }
}

/// A term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    head: u32,
    /// First argument.
    pub a: u32,
    /// Second argument.
    pub b: u32,
    /// Third argument.
    pub c: u32,
}

impl Node {
    /// A term before it has a number.
    #[inline]
    pub fn new(kind: Kind, imm: u32, a: u32, b: u32, c: u32) -> Node {
        let head = kind as u32 | imm << 8;
        Node { head, a, b, c }
    }

    /// What makes it.
    #[inline]
    pub fn kind(&self) -> Kind {
        KINDS[(self.head & 0xff) as usize % KINDS.len()]
    }

    /// What else belongs to it.
    #[inline]
    pub fn imm(&self) -> u32 {
        self.head >> 8
    }

    /// As a rounding mode.
    #[inline]
    pub fn mode(&self) -> Mode {
        Mode(self.imm())
    }

    /// Its arguments that are terms.
    #[inline]
    pub fn args(&self) -> impl Iterator<Item = Id> + Clone + use<> {
        let count = match self.kind() {
            Kind::Const | Kind::Input | Kind::Unset => 0,
            Kind::FNeg
            | Kind::FAbs
            | Kind::FSqrt
            | Kind::FRsqrt
            | Kind::FEx2
            | Kind::FCvt
            | Kind::FromInt
            | Kind::Extract
            | Kind::Sext
            | Kind::Not => 1,
            Kind::FFma | Kind::Select => 3,
            Kind::App => self.c as usize,
            _ => 2,
        };
        [self.a, self.b, self.c].into_iter().take(count)
    }
}

/// Where an [`Unset`](Kind::Unset) value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unset {
    /// A register.
    Register,
    /// Shared memory.
    Shared,
    /// Local memory.
    Local,
    /// What a shuffle reads of a lane that takes no part in it.
    Lane,
    /// A buffer's element, by the buffer's number.
    Global(u32),
}

impl Unset {
    fn code(self) -> u32 {
        match self {
            Unset::Register => 0,
            Unset::Shared => 1,
            Unset::Local => 2,
            Unset::Lane => 3,
            Unset::Global(buffer) => 4 + buffer,
        }
    }

    /// From a term's first argument.
    pub fn of(code: u32) -> Unset {
        match code {
            0 => Unset::Register,
            1 => Unset::Shared,
            2 => Unset::Local,
            3 => Unset::Lane,
            buffer => Unset::Global(buffer - 4),
        }
    }
}

/// All terms.
pub struct Terms {
    nodes: Vec<Node>,
    /// The width of each, with [`KNOWN`] for a constant.
    widths: Vec<u8>,
    /// Of each product, [`OPEN`] and [`STATED`]: how instructions that made it are rounded.
    products: Vec<u8>,
    table: Vec<u32>,
    names: Vec<(String, Domain)>,
    numbers: FxHashMap<String, u32>,
    /// Sums of products that ptxas may round once or twice.
    pub fusible: u64,
    /// The bits of a NaN do not count: all that holds of numbers is applied.
    pub nans_apart: bool,
}

const EMPTY: u32 = u32::MAX;

/// Beside the width of a constant.
const KNOWN: u8 = 1 << 7;

/// No rounding is stated, so that ptxas may fuse a product with what it is added to.
const OPEN: u8 = 1;
/// A rounding is stated.
const STATED: u8 = 2;

/// Nested choices between constants that are followed.
const CHOICES: u32 = 4;

impl Default for Terms {
    fn default() -> Self {
        Terms {
            nodes: Vec::new(),
            widths: Vec::new(),
            products: Vec::new(),
            table: vec![EMPTY; 1 << 12],
            names: Vec::new(),
            numbers: FxHashMap::default(),
            fusible: 0,
            nans_apart: false,
        }
    }
}

/// Where a term may stand in the table, one place after the other.
///
/// Lanes make terms of terms that were made together. So the first places follow the sum of the arguments: neighbours are
/// looked for next to one another, which the memory of a large table is slow for otherwise. Terms of one sum go on to where
/// a hash says.
struct Places {
    at: usize,
    /// From one place to the next.
    step: usize,
    left: u32,
}

/// Places that follow the sum.
const NEAR: u32 = 4;

impl Places {
    #[inline(always)]
    fn of(node: &Node) -> Places {
        let sum = node.a.wrapping_add(node.b).wrapping_add(node.c);
        let kind = node.head.wrapping_mul(0x9e37_79b1);
        Places {
            at: 2 * sum.wrapping_add(kind) as usize,
            step: 1,
            left: NEAR - 1,
        }
    }

    #[inline(always)]
    fn first(&self) -> usize {
        self.at
    }

    #[inline(always)]
    fn next(&mut self, node: &Node) -> usize {
        if self.left == 0 {
            let hash = hash(node);
            (self.at, self.step) = (hash as usize, (hash >> 32) as usize | 1);
            self.left = u32::MAX;
            return self.at;
        }
        self.left -= 1;
        self.at = self.at.wrapping_add(self.step);
        self.at
    }
}

fn hash(node: &Node) -> u64 {
    let mix = |h: u64, x: u64| (h ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let h = mix(0, u64::from(node.head) | u64::from(node.a) << 32);
    let h = mix(h, u64::from(node.b) | u64::from(node.c) << 32);
    h ^ h >> 31
}

impl Terms {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A term.
    #[inline(always)]
    pub fn node(&self, id: Id) -> Node {
        self.nodes[id as usize]
    }

    /// The name and domain of an [`App`](Kind::App).
    pub fn name(&self, number: u32) -> (&str, Domain) {
        self.names
            .get(number as usize)
            .map_or(("?", Domain::Any), |(name, domain)| (name, *domain))
    }

    /// The number of a function's name.
    pub fn function(&mut self, name: &str, domain: Domain) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push((name.to_owned(), domain));
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// The number of a term that is what it is: no rule is applied.
    #[inline]
    pub fn intern(&mut self, node: Node) -> Id {
        let mask = self.table.len() - 1;
        let mut place = Places::of(&node);
        let mut at = place.first() & mask;
        loop {
            match self.table[at] {
                EMPTY => break,
                id if self.nodes[id as usize] == node => return id,
                _ => at = place.next(&node) & mask,
            }
        }
        let id = self.nodes.len() as u32;
        let width = self.width_of(&node);
        self.nodes.push(node);
        self.widths.push(width);
        self.products.push(0);
        self.table[at] = id;
        if self.nodes.len() * 2 > self.table.len() {
            self.grow();
        }
        id
    }

    /// Reads what [`intern`](Self::intern) of these terms will look at, all of it at once: nearly each of them is far from
    /// the last one in memory, and one after the other they would be waited for.
    pub fn look_ahead(&self, nodes: &[Node; WARP], lanes: Mask) {
        let mask = self.table.len() - 1;
        let mut found = [EMPTY; WARP];
        for lane in lanes_of(lanes) {
            found[lane] = self.table[Places::of(&nodes[lane]).first() & mask];
        }
        let known = found.iter().filter(|&&id| id != EMPTY);
        let heads = known.fold(0, |all, &id| all ^ self.nodes[id as usize].head);
        std::hint::black_box(heads);
    }

    #[cold]
    fn grow(&mut self) {
        let size = self.table.len() * 2;
        let mut table = vec![EMPTY; size];
        for (id, node) in self.nodes.iter().enumerate() {
            let mut place = Places::of(node);
            let mut at = place.first() & (size - 1);
            while table[at] != EMPTY {
                at = place.next(node) & (size - 1);
            }
            table[at] = id as u32;
        }
        self.table = table;
    }

    /// Bits as a term.
    pub fn constant(&mut self, bits: u64) -> Id {
        self.intern(Node::new(
            Kind::Const,
            0,
            bits as u32,
            (bits >> 32) as u32,
            0,
        ))
    }

    /// The bits of a constant.
    #[inline]
    pub fn bits_of(&self, id: Id) -> Option<u64> {
        let node = self.node(id);
        (node.kind() == Kind::Const).then(|| u64::from(node.a) | u64::from(node.b) << 32)
    }

    /// A value as a term.
    #[inline]
    pub fn term(&mut self, value: Val) -> Id {
        match value {
            Val::Term(id) => id,
            Val::Bits(bits) => self.constant(bits),
        }
    }

    /// An element of a buffer before the first launch.
    pub fn input(&mut self, buffer: u32, element: u32, bits: u32) -> Id {
        self.intern(Node::new(Kind::Input, bits, buffer, element, 0))
    }

    /// What nobody has written.
    pub fn unset(&mut self, place: Unset, index: u32) -> Id {
        self.intern(Node::new(Kind::Unset, 32, place.code(), index, 0))
    }

    /// What arithmetic takes a term for.
    #[inline]
    pub fn domain(&self, id: Id) -> Domain {
        self.domain_of(&self.node(id))
    }

    #[inline]
    fn domain_of(&self, node: &Node) -> Domain {
        match node.kind() {
            Kind::FAdd
            | Kind::FMul
            | Kind::FFma
            | Kind::FNeg
            | Kind::FAbs
            | Kind::FDiv
            | Kind::FSqrt
            | Kind::FRsqrt
            | Kind::FEx2
            | Kind::FMin
            | Kind::FMax
            | Kind::FCvt
            | Kind::FromInt
            | Kind::IAdd
            | Kind::IMul
            | Kind::Select => node.mode().domain(),
            Kind::Sext => Domain::int(node.imm() >> 8),
            Kind::Cmp | Kind::Not | Kind::And | Kind::Xor => Domain::Pred,
            Kind::App => self.name(node.imm()).1,
            _ => Domain::Any,
        }
    }

    /// Bits that may be set.
    #[inline]
    pub fn width(&self, id: Id) -> u32 {
        (self.widths[id as usize] & !KNOWN).into()
    }

    /// Is it no constant, and exactly so wide?
    #[inline]
    pub(crate) fn fills(&self, id: Id, bits: u32) -> bool {
        u32::from(self.widths[id as usize]) == bits
    }

    fn width_of(&self, node: &Node) -> u8 {
        let width = match node.kind() {
            Kind::Const => {
                let bits = u64::from(node.a) | u64::from(node.b) << 32;
                return (64 - bits.leading_zeros()) as u8 | KNOWN;
            }
            Kind::Input | Kind::Unset => node.imm(),
            Kind::Extract | Kind::Concat => node.imm() >> 8,
            Kind::Select if node.mode().domain() == Domain::Any => {
                self.width(node.b).max(self.width(node.c))
            }
            _ => self.domain_of(node).bits(),
        };
        width as u8
    }

    // ---- choices between constants

    /// Is it a constant, or a choice between few of them?
    fn is_choice(&self, id: Id, depth: u32) -> bool {
        let node = self.node(id);
        match node.kind() {
            Kind::Const => true,
            Kind::Select if depth > 0 => {
                self.is_choice(node.b, depth - 1) && self.is_choice(node.c, depth - 1)
            }
            _ => false,
        }
    }

    /// A function of a choice between constants is a choice between what it makes of them: so one of a few addresses
    /// stays one of a few.
    pub(crate) fn chosen(
        &mut self,
        value: Val,
        of: &impl Fn(&mut Terms, u64) -> Val,
    ) -> Option<Val> {
        let Val::Term(id) = value else { return None };
        let node = self.node(id);
        let is_choice = node.kind() == Kind::Select && self.is_choice(id, CHOICES);
        is_choice.then(|| self.each_of(id, of))
    }

    fn each_of(&mut self, id: Id, of: &impl Fn(&mut Terms, u64) -> Val) -> Val {
        if let Some(bits) = self.bits_of(id) {
            return of(self, bits);
        }
        let node = self.node(id);
        let (yes, no) = (self.each_of(node.b, of), self.each_of(node.c, of));
        self.select(Val::Term(node.a), yes, no)
    }

    // ---- bits

    /// Bits `at..at + bits` of a value.
    pub fn extract(&mut self, value: Val, at: u32, bits: u32) -> Val {
        let id = match value {
            Val::Term(id) if at == 0 && self.fills(id, bits) => return value,
            Val::Bits(all) => {
                let mask = u64::MAX >> (64 - bits.clamp(1, 64));
                return Val::Bits(all.checked_shr(at).unwrap_or(0) & mask);
            }
            Val::Term(id) => match self.bits_of(id) {
                Some(all) => return self.extract(Val::Bits(all), at, bits),
                None => id,
            },
        };
        let width = self.width(id);
        if at >= width {
            return Val::Bits(0);
        }
        let bits = bits.min(width - at);
        if at == 0 && bits == width {
            return value;
        }
        let part = |terms: &mut Terms, all| terms.extract(Val::Bits(all), at, bits);
        if let Some(chosen) = self.chosen(value, &part) {
            return chosen;
        }
        let node = self.node(id);
        match node.kind() {
            Kind::Extract => self.extract(Val::Term(node.a), at + (node.imm() & 0xff), bits),
            Kind::Concat => {
                let low = node.imm() & 0xff;
                let (a, b) = (Val::Term(node.a), Val::Term(node.b));
                if at + bits <= low {
                    self.extract(a, at, bits)
                } else if at >= low {
                    self.extract(b, at - low, bits)
                } else {
                    let (first, second) = (
                        self.extract(a, at, low - at),
                        self.extract(b, 0, at + bits - low),
                    );
                    self.concat(first, low - at, second, bits)
                }
            }
            // The lower part of a sum, or of a product, is that of its operands' lower parts.
            Kind::IAdd | Kind::IMul if at == 0 && matches!(bits, 16 | 32) => {
                let x = self.extract(Val::Term(node.a), 0, bits);
                let y = self.extract(Val::Term(node.b), 0, bits);
                match node.kind() {
                    Kind::IAdd => self.iadd(Domain::int(bits), x, y),
                    _ => self.imul(Domain::int(bits), x, y),
                }
            }
            Kind::Sext if at + bits <= node.imm() & 0xff => {
                self.extract(Val::Term(node.a), at, bits)
            }
            Kind::Sext if at == 0 => self.sext(Val::Term(node.a), node.imm() & 0xff, bits),
            _ => Val::Term(self.intern(Node::new(Kind::Extract, at | bits << 8, id, 0, 0))),
        }
    }

    /// `low` of so many bits with `high` above, `bits` in all.
    pub fn concat(&mut self, low: Val, low_bits: u32, high: Val, bits: u32) -> Val {
        let low = self.extract(low, 0, low_bits);
        let high = self.extract(high, 0, bits - low_bits);
        if let (Val::Bits(low), Val::Bits(high)) = (low, high) {
            return Val::Bits(low | high << low_bits);
        }
        if high == Val::Bits(0) {
            return low;
        }
        if let Val::Bits(below) = low {
            let above = |terms: &mut Terms, high| {
                terms.concat(Val::Bits(below), low_bits, Val::Bits(high), bits)
            };
            if let Some(chosen) = self.chosen(high, &above) {
                return chosen;
            }
        }
        // Above what is joined already: the lower part comes first.
        if let Val::Term(id) = high {
            let node = self.node(id);
            if node.kind() == Kind::Concat {
                let inner = node.imm() & 0xff;
                let first = self.concat(low, low_bits, Val::Term(node.a), low_bits + inner);
                return self.concat(first, low_bits + inner, Val::Term(node.b), bits);
            }
        }
        // Parts of one whole, next to each other.
        if let (Some((x, at, width)), Some((y, from, more))) = (self.part(low), self.part(high))
            && x == y
            && from == at + low_bits
            && width == low_bits
        {
            return self.extract(Val::Term(x), at, low_bits + more);
        }
        if let (Val::Term(id), Some((y, from, more))) = (low, self.part(high)) {
            let node = self.node(id);
            if node.kind() == Kind::Concat
                && let inner = node.imm() & 0xff
                && let Some((x, at, width)) = self.part(Val::Term(node.b))
                && (x == y && from == at + width && width == low_bits - inner)
            {
                let joined = self.extract(Val::Term(x), at, width + more);
                return self.concat(Val::Term(node.a), inner, joined, bits);
            }
        }
        let (a, b) = (self.term(low), self.term(high));
        Val::Term(self.intern(Node::new(Kind::Concat, low_bits | bits << 8, a, b, 0)))
    }

    /// The whole that a value is a part of, with place and width.
    fn part(&self, value: Val) -> Option<(Id, u32, u32)> {
        let Val::Term(id) = value else { return None };
        let node = self.node(id);
        match node.kind() {
            Kind::Extract => Some((node.a, node.imm() & 0xff, node.imm() >> 8)),
            _ => None,
        }
    }

    /// The sign of `from` bits spread to `to`.
    pub fn sext(&mut self, value: Val, from: u32, to: u32) -> Val {
        match self.extract(value, 0, from) {
            whole if from >= to => self.extract(whole, 0, to),
            Val::Bits(bits) => {
                let shift = 64 - from;
                let wide = ((bits << shift) as i64 >> shift) as u64;
                Val::Bits(wide & u64::MAX >> (64 - to))
            }
            Val::Term(id) if self.width(id) < from => Val::Term(id),
            Val::Term(id) => {
                let spread = |terms: &mut Terms, bits| terms.sext(Val::Bits(bits), from, to);
                if let Some(chosen) = self.chosen(Val::Term(id), &spread) {
                    return chosen;
                }
                Val::Term(self.intern(Node::new(Kind::Sext, from | to << 8, id, 0, 0)))
            }
        }
    }

    // ---- integers

    /// A sum modulo the domain.
    pub fn iadd(&mut self, domain: Domain, a: Val, b: Val) -> Val {
        match (a, b) {
            (x, Val::Bits(0)) | (Val::Bits(0), x) => self.extract(x, 0, domain.bits()),
            _ => self.commuting(Kind::IAdd, domain as u32, a, b),
        }
    }

    /// A product modulo the domain.
    pub fn imul(&mut self, domain: Domain, a: Val, b: Val) -> Val {
        match (a, b) {
            (_, Val::Bits(0)) | (Val::Bits(0), _) => Val::Bits(0),
            (x, Val::Bits(1)) | (Val::Bits(1), x) => self.extract(x, 0, domain.bits()),
            _ => self.commuting(Kind::IMul, domain as u32, a, b),
        }
    }

    fn commuting(&mut self, kind: Kind, imm: u32, a: Val, b: Val) -> Val {
        let domain = Mode(imm).domain();
        let (a, b) = (
            self.extract(a, 0, domain.bits()),
            self.extract(b, 0, domain.bits()),
        );
        if let (Val::Bits(a), Val::Bits(b)) = (a, b) {
            let both = match kind {
                Kind::IAdd => a.wrapping_add(b),
                _ => a.wrapping_mul(b),
            };
            return self.extract(Val::Bits(both), 0, domain.bits());
        }
        if let (x, Val::Bits(known)) | (Val::Bits(known), x) = (a, b) {
            let with = |terms: &mut Terms, bits| {
                terms.commuting(kind, imm, Val::Bits(bits), Val::Bits(known))
            };
            if let Some(chosen) = self.chosen(x, &with) {
                return chosen;
            }
        }
        let (a, b) = (self.term(a), self.term(b));
        let (a, b) = (a.min(b), a.max(b));
        Val::Term(self.intern(Node::new(kind, imm, a, b, 0)))
    }

    // ---- floating point

    /// If it is NaN, is it one as arithmetic leaves it: would another operation leave its bits alone?
    pub(crate) fn is_settled(&self, domain: Domain, value: Val) -> bool {
        match value {
            Val::Bits(bits) => bits & !domain.sign() <= domain.infinity(),
            Val::Term(id) => self.nans_apart || self.is_arithmetic(domain, id, CHOICES),
        }
    }

    fn is_arithmetic(&self, domain: Domain, id: Id, depth: u32) -> bool {
        let node = self.node(id);
        match node.kind() {
            Kind::FAdd | Kind::FMul | Kind::FFma | Kind::FNeg | Kind::FAbs | Kind::FDiv => {}
            Kind::FSqrt | Kind::FRsqrt | Kind::FEx2 | Kind::FMin | Kind::FMax => {}
            Kind::FromInt => {}
            // From double precision a payload is handed on, from bfloat16 all bits are.
            Kind::FCvt if domain != Domain::F64 => {
                let handed_on = [Domain::F64, Domain::Bf16].map(|from| from as u32);
                return node.mode().domain() == domain && !handed_on.contains(&node.b);
            }
            Kind::FCvt => {}
            Kind::Select if depth > 0 => {
                return [node.b, node.c]
                    .into_iter()
                    .all(|arm| match self.bits_of(arm) {
                        Some(bits) => self.is_settled(domain, Val::Bits(bits)),
                        None => self.is_arithmetic(domain, arm, depth - 1),
                    });
            }
            _ => return false,
        }
        node.mode().domain() == domain
    }

    /// Operands in one order, where that does not show: of two NaNs in double precision one is handed on.
    #[inline]
    fn exchanged(&self, domain: Domain, a: Id, b: Id) -> (Id, Id) {
        let is_number = |id: Id| {
            let bits = self.bits_of(id);
            bits.is_some_and(|bits| self.is_settled(domain, Val::Bits(bits)))
        };
        let is_free = domain != Domain::F64 || self.nans_apart || is_number(a) || is_number(b);
        match is_free {
            true => (a.min(b), a.max(b)),
            false => (a, b),
        }
    }

    /// A sum.
    #[inline]
    pub fn fadd(&mut self, mode: Mode, a: Val, b: Val) -> Val {
        let (mode, fusible) = split(mode);
        let minus_zero = Val::Bits(mode.domain().sign());
        if mode.is_plain() {
            if b == minus_zero && self.is_settled(mode.domain(), a) {
                return a;
            }
            if a == minus_zero && self.is_settled(mode.domain(), b) {
                return b;
            }
        }
        let (a, b) = (self.term(a), self.term(b));
        let products = [a, b].map(|part| self.product(part).map(|id| self.products[id as usize]));
        // Of a product with a stated rounding nothing is fused. What is made anew of a term was looked at before.
        let is_open = |made: &u8| self.nans_apart || *made != STATED;
        let is_fused = fusible && products.iter().flatten().any(is_open);
        self.fusible += u64::from(is_fused);
        // Of two products ptxas fuses the first one.
        let both = products.iter().all(Option::is_some);
        let (a, b) = match (fusible || self.nans_apart) && both {
            true => (a, b),
            false => self.exchanged(mode.domain(), a, b),
        };
        // A sum that may be rounded once is not the one that is rounded twice. Of a product that was made both ways it is not
        // known which of them is added: that sum is like no other.
        let is_unsure = is_fused && products.contains(&Some(OPEN | STATED));
        let number = if is_unsure {
            self.nodes.len() as u32
        } else {
            0
        };
        let fusible = if is_fused { Mode::FUSIBLE } else { 0 };
        Val::Term(self.intern(Node::new(Kind::FAdd, mode.0 | fusible, a, b, number)))
    }

    /// The product that a value is, whatever its sign.
    fn product(&self, id: Id) -> Option<Id> {
        let node = self.node(id);
        match node.kind() {
            Kind::FMul => Some(id),
            Kind::FNeg => Some(node.a).filter(|&a| self.node(a).kind() == Kind::FMul),
            _ => None,
        }
    }

    /// An instruction made this value; `open`: no rounding is stated.
    pub fn made_product(&mut self, value: Val, open: bool) {
        if let Val::Term(id) = value
            && let Some(id) = self.product(id)
        {
            self.products[id as usize] |= if open { OPEN } else { STATED };
        }
    }

    /// The sign turned.
    #[inline]
    pub fn fneg(&mut self, domain: Domain, a: Val) -> Val {
        match a {
            Val::Bits(bits) => Val::Bits(bits ^ domain.sign()),
            Val::Term(id) => {
                let node = self.node(id);
                match node.kind() {
                    Kind::FNeg
                        if node.mode() == Mode::new(domain, 0)
                            && self.is_settled(domain, Val::Term(node.a)) =>
                    {
                        Val::Term(node.a)
                    }
                    _ => Val::Term(self.intern(Node::new(Kind::FNeg, domain as u32, id, 0, 0))),
                }
            }
        }
    }

    /// A value without its sign, and whether that was turned.
    #[inline]
    fn unsigned(&mut self, domain: Domain, a: Val) -> (Val, bool) {
        match a {
            Val::Bits(bits) => (Val::Bits(bits & !domain.sign()), bits & domain.sign() != 0),
            Val::Term(id) => {
                let node = self.node(id);
                match node.kind() {
                    Kind::FNeg if node.mode() == Mode::new(domain, 0) => (Val::Term(node.a), true),
                    _ => (a, false),
                }
            }
        }
    }

    fn signed(&mut self, domain: Domain, a: Val, negative: bool) -> Val {
        match negative {
            true => self.fneg(domain, a),
            false => a,
        }
    }

    /// A product.
    #[inline]
    pub fn fmul(&mut self, mode: Mode, a: Val, b: Val) -> Val {
        let (mode, _) = split(mode);
        let domain = mode.domain();
        if !mode.is_plain() {
            let (a, b) = (self.term(a), self.term(b));
            let (a, b) = self.exchanged(domain, a, b);
            return Val::Term(self.intern(Node::new(Kind::FMul, mode.0, a, b, 0)));
        }
        let ((a, turned), (b, back)) = (self.unsigned(domain, a), self.unsigned(domain, b));
        let negative = turned != back;
        let one = Val::Bits(domain.one());
        if b == one && (negative || self.is_settled(domain, a)) {
            return self.signed(domain, a, negative);
        }
        if a == one && (negative || self.is_settled(domain, b)) {
            return self.signed(domain, b, negative);
        }
        let (a, b) = (self.term(a), self.term(b));
        let (a, b) = self.exchanged(domain, a, b);
        let product = Val::Term(self.intern(Node::new(Kind::FMul, mode.0, a, b, 0)));
        self.signed(domain, product, negative)
    }

    /// `a * b + c`, rounded once.
    #[inline]
    pub fn ffma(&mut self, mode: Mode, a: Val, b: Val, c: Val) -> Val {
        let (mode, _) = split(mode);
        let domain = mode.domain();
        if !mode.is_plain() {
            let (a, b, c) = (self.term(a), self.term(b), self.term(c));
            let (a, b) = self.exchanged(domain, a, b);
            return Val::Term(self.intern(Node::new(Kind::FFma, mode.0, a, b, c)));
        }
        let one = domain.one();
        if a == Val::Bits(one) {
            // As `.f64` looks at its operands.
            return self.fadd(mode, c, b);
        }
        if b == Val::Bits(one) {
            return self.fadd(mode, a, c);
        }
        if c == Val::Bits(domain.sign()) {
            return self.fmul(mode, a, b);
        }
        let ((a, turned), (b, back)) = (self.unsigned(domain, a), self.unsigned(domain, b));
        let (a, b) = (self.term(a), self.term(b));
        let (mut a, mut b) = self.exchanged(domain, a, b);
        if turned != back {
            // The sign stays away from a constant, whichever of both came first.
            let signed = if self.bits_of(a).is_some() {
                &mut b
            } else {
                &mut a
            };
            *signed = self.intern(Node::new(Kind::FNeg, domain as u32, *signed, 0, 0));
        }
        let ((a, b), c) = (self.exchanged(domain, a, b), self.term(c));
        Val::Term(self.intern(Node::new(Kind::FFma, mode.0, a, b, c)))
    }

    /// A quotient.
    pub fn fdiv(&mut self, mode: Mode, a: Val, b: Val) -> Val {
        let domain = mode.domain();
        if mode.is_plain() && b == Val::Bits(domain.one()) && self.is_settled(domain, a) {
            return a;
        }
        let ((a, turned), (b, back)) = match mode.is_plain() {
            true => (self.unsigned(domain, a), self.unsigned(domain, b)),
            false => ((a, false), (b, false)),
        };
        let (a, b) = (self.term(a), self.term(b));
        let quotient = Val::Term(self.intern(Node::new(Kind::FDiv, mode.0, a, b, 0)));
        self.signed(domain, quotient, turned != back)
    }

    /// The magnitude.
    pub fn fabs(&mut self, mode: Mode, a: Val) -> Val {
        let domain = mode.domain();
        if !mode.is_plain() {
            return self.unary(Kind::FAbs, mode.0, a);
        }
        match self.unsigned(domain, a).0 {
            Val::Bits(bits) => Val::Bits(bits),
            Val::Term(id) if self.node(id).kind() == Kind::FAbs => Val::Term(id),
            value => self.unary(Kind::FAbs, mode.0, value),
        }
    }

    /// A function of one value.
    pub fn unary(&mut self, kind: Kind, imm: u32, a: Val) -> Val {
        let a = self.term(a);
        Val::Term(self.intern(Node::new(kind, imm, a, 0, 0)))
    }

    /// The smaller or larger.
    pub fn extreme(&mut self, larger: bool, mode: Mode, a: Val, b: Val) -> Val {
        let domain = mode.domain();
        let is_settled = || mode.is_plain() && self.is_settled(domain, a);
        if a == b && (!domain.is_float() || is_settled()) {
            return a;
        }
        let (a, b) = (self.term(a), self.term(b));
        let (a, b) = self.exchanged(domain, a, b);
        let kind = if larger { Kind::FMax } else { Kind::FMin };
        Val::Term(self.intern(Node::new(kind, mode.0, a, b, 0)))
    }

    // ---- predicates

    /// A comparison.
    pub fn compare(&mut self, cmp: Cmp, a: Val, b: Val) -> Val {
        let domain = cmp.domain();
        let (a, b) = (
            self.extract(a, 0, domain.bits()),
            self.extract(b, 0, domain.bits()),
        );
        // No number is below itself, and no NaN.
        if a == b && (!domain.is_float() || cmp.order() == Order::Lt) {
            return Val::Bits(u64::from(cmp.order() != Order::Lt));
        }
        if let (Val::Bits(a), Val::Bits(b)) = (a, b)
            && !domain.is_float()
        {
            return Val::Bits(u64::from(cmp.holds(a, b)));
        }
        if !domain.is_float()
            && cmp.order() == Order::Eq
            && let Some(known) = self.choice(a, b)
        {
            return known;
        }
        let (mut a, mut b) = (self.term(a), self.term(b));
        if matches!(cmp.order(), Order::Eq | Order::Nan) {
            (a, b) = (a.min(b), a.max(b));
        }
        Val::Term(self.intern(Node::new(Kind::Cmp, cmp.0, a, b, 0)))
    }

    /// A choice between two numbers, compared with a third: `(p ? 1 : 0) == 0` is `p` turned round.
    fn choice(&mut self, a: Val, b: Val) -> Option<Val> {
        let ((Val::Term(id), Val::Bits(bits)) | (Val::Bits(bits), Val::Term(id))) = (a, b) else {
            return None;
        };
        let node = self.node(id);
        if node.kind() != Kind::Select {
            return None;
        }
        let p = Val::Term(node.a);
        let sides = (self.bits_of(node.b)? == bits, self.bits_of(node.c)? == bits);
        Some(match sides {
            (true, false) => p,
            (false, true) => self.not(p),
            (both, _) => Val::Bits(u64::from(both)),
        })
    }

    /// Not.
    pub fn not(&mut self, a: Val) -> Val {
        match a {
            Val::Bits(bits) => Val::Bits(!bits & 1),
            Val::Term(id) => match self.node(id) {
                node if node.kind() == Kind::Not => Val::Term(node.a),
                _ => Val::Term(self.intern(Node::new(Kind::Not, 0, id, 0, 0))),
            },
        }
    }

    /// Both.
    pub fn and(&mut self, a: Val, b: Val) -> Val {
        match (a, b) {
            (Val::Bits(x), other) | (other, Val::Bits(x)) => match x & 1 {
                0 => Val::Bits(0),
                _ => other,
            },
            (Val::Term(x), Val::Term(y)) if x == y => a,
            (Val::Term(x), Val::Term(y)) => {
                let (x, y) = (x.min(y), x.max(y));
                Val::Term(self.intern(Node::new(Kind::And, 0, x, y, 0)))
            }
        }
    }

    /// One of both, or both.
    pub fn or(&mut self, a: Val, b: Val) -> Val {
        let (a, b) = (self.not(a), self.not(b));
        let neither = self.and(a, b);
        self.not(neither)
    }

    /// One of both.
    pub fn xor(&mut self, a: Val, b: Val) -> Val {
        match (a, b) {
            (Val::Bits(x), other) | (other, Val::Bits(x)) => match x & 1 {
                0 => other,
                _ => self.not(other),
            },
            (Val::Term(x), Val::Term(y)) if x == y => Val::Bits(0),
            (Val::Term(x), Val::Term(y)) => {
                let (x, y) = (x.min(y), x.max(y));
                Val::Term(self.intern(Node::new(Kind::Xor, 0, x, y, 0)))
            }
        }
    }

    /// `a` where the predicate holds, else `b`.
    pub fn select(&mut self, p: Val, a: Val, b: Val) -> Val {
        let mut p = match p {
            Val::Bits(bits) => return if bits & 1 != 0 { a } else { b },
            Val::Term(p) => p,
        };
        let (mut a, mut b) = (a, b);
        if a == b {
            return a;
        }
        let node = self.node(p);
        if node.kind() == Kind::Not {
            p = node.a;
            (a, b) = (b, a);
        }
        // Below the same condition the other side is never taken.
        a = self.taken(p, a, true);
        b = self.taken(p, b, false);
        if a == b {
            return a;
        }
        let natural = |terms: &Terms, v: Val| match v {
            Val::Bits(_) => Domain::Any,
            Val::Term(id) => terms.domain(id),
        };
        let domain = match (natural(self, a), natural(self, b)) {
            (x, y) if x == y => x,
            (Domain::Any, x) | (x, Domain::Any) => x,
            _ => Domain::Any,
        };
        if domain == Domain::Pred {
            let (yes, no) = (self.and(Val::Term(p), a), self.not(Val::Term(p)));
            let no = self.and(no, b);
            return self.or(yes, no);
        }
        // A constant wider than the other side's format is no number of that format.
        let fits = |terms: &Terms, v: Val| match v {
            Val::Bits(bits) => domain.bits() == 64 || bits >> domain.bits() == 0,
            Val::Term(id) => terms.width(id) <= domain.bits(),
        };
        let domain = match fits(self, a) && fits(self, b) {
            true => domain,
            false => Domain::Any,
        };
        let (a, b) = (self.term(a), self.term(b));
        Val::Term(self.intern(Node::new(Kind::Select, domain as u32, p, a, b)))
    }

    fn taken(&self, p: Id, value: Val, holds: bool) -> Val {
        let Val::Term(id) = value else { return value };
        let node = self.node(id);
        match node.kind() {
            Kind::Select if node.a == p => {
                let side = if holds { node.b } else { node.c };
                self.bits_of(side).map_or(Val::Term(side), Val::Bits)
            }
            _ => value,
        }
    }

    /// Any other function of some values.
    pub fn apply(&mut self, function: u32, args: &[Val]) -> Val {
        let mut ids: Vec<Id> = args.iter().map(|&value| self.term(value)).collect();
        while ids.len() > 2 {
            let (y, x) = (ids.pop().unwrap_or(0), ids.pop().unwrap_or(0));
            ids.push(self.intern(Node::new(Kind::Pair, 0, x, y, 0)));
        }
        let get = |at: usize| ids.get(at).copied().unwrap_or(0);
        let node = Node::new(Kind::App, function, get(0), get(1), ids.len() as u32);
        Val::Term(self.intern(node))
    }
}

impl Terms {
    /// Terms as they are if the bits of a NaN do not count. What takes a number for its bits keeps it as it is.
    pub fn without_nans(&mut self, roots: &[Id]) -> Vec<Id> {
        let end = roots.iter().max().map_or(0, |&last| last as usize + 1);
        let mut wanted = vec![false; end];
        roots.iter().for_each(|&id| wanted[id as usize] = true);
        for id in (0..end).rev() {
            if wanted[id] && self.takes_numbers(&self.node(id as Id)) {
                self.node(id as Id)
                    .args()
                    .for_each(|arg| wanted[arg as usize] = true);
            }
        }
        self.nans_apart = true;
        let mut all: Vec<Id> = (0..end as Id).collect();
        for id in (0..end).filter(|&id| wanted[id]) {
            let node = self.node(id as Id);
            if self.takes_numbers(&node) {
                let value = self.again(&node, &all);
                all[id] = self.term(value);
            }
        }
        self.nans_apart = false;
        roots.iter().map(|&id| all[id as usize]).collect()
    }

    /// Are its arguments numbers or predicates to it, whatever the bits of a NaN among them?
    fn takes_numbers(&self, node: &Node) -> bool {
        match node.kind() {
            Kind::Const | Kind::Input | Kind::Unset | Kind::FromInt => false,
            Kind::FMin | Kind::FMax => node.mode().domain().is_float(),
            Kind::Cmp => Cmp(node.imm()).domain().is_float(),
            Kind::Not | Kind::And | Kind::Xor | Kind::Select => true,
            Kind::FAdd | Kind::FMul | Kind::FFma | Kind::FNeg | Kind::FAbs | Kind::FDiv => true,
            Kind::FSqrt | Kind::FRsqrt | Kind::FEx2 | Kind::FCvt => true,
            _ => false,
        }
    }

    /// A term made anew of other arguments.
    fn again(&mut self, node: &Node, all: &[Id]) -> Val {
        let count = node.args().count();
        let [a, b, c] = [(node.a, 0), (node.b, 1), (node.c, 2)].map(|(arg, at)| {
            let id = if at < count { all[arg as usize] } else { 0 };
            self.bits_of(id).map_or(Val::Term(id), Val::Bits)
        });
        let mode = node.mode();
        match node.kind() {
            Kind::FAdd => self.fadd(mode, a, b),
            Kind::FMul => self.fmul(mode, a, b),
            Kind::FFma => self.ffma(mode, a, b, c),
            Kind::FNeg if mode.is_plain() => self.fneg(mode.domain(), a),
            Kind::FAbs => self.fabs(mode, a),
            Kind::FDiv => self.fdiv(mode, a, b),
            Kind::FMin | Kind::FMax => self.extreme(node.kind() == Kind::FMax, mode, a, b),
            Kind::Cmp => self.compare(Cmp(node.imm()), a, b),
            Kind::Not => self.not(a),
            Kind::And => self.and(a, b),
            Kind::Xor => self.xor(a, b),
            Kind::Select => self.select(a, b, c),
            kind => {
                let a = self.term(a);
                Val::Term(self.intern(Node::new(kind, node.imm(), a, node.b, 0)))
            }
        }
    }
}

/// A mode without what is no part of a term, and whether that was set.
#[inline]
fn split(mode: Mode) -> (Mode, bool) {
    (Mode(mode.0 & !Mode::FUSIBLE), mode.has(Mode::FUSIBLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_below_itself() {
        let mut terms = Terms::default();
        let x = Val::Term(terms.input(0, 0, 32));
        for domain in [Domain::F32, Domain::I32] {
            let of = |order| Cmp::new(domain, order, true, false);
            assert_eq!(terms.compare(of(Order::Lt), x, x), Val::Bits(0));
            // A NaN is not what it is.
            let is_open = matches!(terms.compare(of(Order::Le), x, x), Val::Term(_));
            assert_eq!(is_open, domain.is_float());
        }
    }

    /// A sort makes chains of selections of which each has the one before on both sides.
    #[test]
    fn selections_of_selections_have_a_width_at_once() {
        let mut terms = Terms::default();
        let mut all = [0, 1].map(|element| terms.input(0, element, 32));
        let domain = Domain::I32;
        for round in 0..200u32 {
            let p = terms.input(1, round, 1);
            let mode = Mode::new(Domain::Any, 0).0;
            let [a, b] = all;
            all =
                [[a, b], [b, a]].map(|[x, y]| terms.intern(Node::new(Kind::Select, mode, p, x, y)));
        }
        assert_eq!(terms.width(all[0]), domain.bits());
    }
}
