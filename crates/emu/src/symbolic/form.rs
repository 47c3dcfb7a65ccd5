//! What an instruction makes of terms: read off its opcode once, when the program is prepared.
//!
//! Bits that are known go through the emulator's own functions; a form is for operands of which one is a term at
//! least. What has no form of its own is a function of its name: the same opcode of the same values is the same term.

use crate::lanes::{Lanes, WARP};
use crate::program::{Op, Out, Program, Step};
use crate::symbolic::term::{Cmp, Domain, Id, Kind, Mode, Node, Order, Terms, Val};

/// One result of an instruction as a function of its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Bits `at..at + bits` of the first operand.
    Part {
        at: u32,
        bits: u32,
    },
    /// All operands, each of so many bits, the first one lowest.
    Join {
        bits: u32,
    },
    /// The first operand and a constant, of so many bits.
    Plus {
        by: u64,
        bits: u32,
    },
    /// A predicate turned.
    Not,
    And,
    Or,
    Xor,
    Float {
        what: Float,
        mode: Mode,
        packed: bool,
    },
    Int {
        what: Int,
        bits: u32,
        signed: bool,
    },
    Test {
        test: Test,
        combine: Option<Combine>,
        negated: bool,
    },
    /// A sum and the products of four bytes each, with a sign or not.
    Dot {
        signed: [bool; 2],
    },
    Select,
    /// Integer to integer.
    Extend {
        from: u32,
        signed: bool,
        to: u32,
    },
    /// One format to another, two of them packed where there are two operands.
    Convert {
        mode: Mode,
        from: Domain,
    },
    FromInt {
        mode: Mode,
        bits: u32,
        signed: bool,
    },
    /// A function of this name; its operands may be exchanged.
    Named {
        function: u32,
        commutes: bool,
        packed: Option<u32>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Float {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Rcp,
    Neg,
    Abs,
    Sqrt,
    Rsqrt,
    Ex2,
    Min,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Int {
    Add,
    Sub,
    Neg,
    Mul,
    Mad,
    MulWide,
    MadWide,
    Min,
    Max,
    And,
    Or,
    Xor,
    Not,
    Shl,
    Shr,
    Bfe,
    Bfi,
    Prmt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    pub cmp: Cmp,
    pub swapped: bool,
    pub negated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    And,
    Or,
    Xor,
}

/// The forms of all results of all steps, function by function.
pub(crate) fn forms(program: &Program, terms: &mut Terms) -> Vec<Vec<Vec<Form>>> {
    let function = |function: &crate::program::Function, terms: &mut Terms| {
        let steps = function.code.iter();
        steps.map(|step| of_step(program, step, terms)).collect()
    };
    let all = program.functions.iter();
    all.map(|f| function(f, terms)).collect()
}

fn of_step(program: &Program, step: &Step, terms: &mut Terms) -> Vec<Form> {
    let Op::Alu { srcs, outs } = &step.op else {
        return Vec::new();
    };
    if !step.counted {
        return outs.iter().map(helper).collect();
    }
    let text = program.sites.get(step.site as usize);
    let text = text.map_or("", |site| site.place.instruction.as_str());
    let opcode = opcode(text);
    let all = 0..outs.len();
    let one = |at: usize| match of(opcode, text, srcs.len(), (at, outs.len()), terms) {
        Form::Named {
            function,
            commutes,
            packed: None,
        } => Form::Named {
            function: widened(function, &outs[at], srcs.len(), terms),
            commutes,
            packed: None,
        },
        other => other,
    };
    all.map(one).collect()
}

/// A named function whose results have more bits than its type, in a register that is wider: a negative number's sign goes
/// on there, and two numbers may be packed.
fn widened(function: u32, out: &Out, count: usize, terms: &mut Terms) -> u32 {
    // −1 in every format that is converted.
    const NEGATIVE: [u64; 5] = [u64::MAX, 0xbf80_0000, 0xbff0_0000_0000_0000, 0xbc00, 0xbf80];
    let (name, domain) = terms.name(function);
    if !name.starts_with("cvt") {
        return function;
    }
    let probe = |bits: u64| {
        let (operand, mut result) = ([bits; WARP], [0; WARP]);
        (out.f)(&[&operand; 8][..count.min(8)], &mut result, 1);
        64 - u64::leading_zeros(result[0])
    };
    let most = NEGATIVE.into_iter().map(probe).max().unwrap_or(0);
    if most <= domain.bits() {
        return function;
    }
    let name = format!("{name} to {most}");
    terms.function(&name, Domain::int(most))
}

/// The opcode of an instruction's text.
pub(crate) fn opcode(text: &str) -> &str {
    let text = match text.strip_prefix('@') {
        Some(guarded) => guarded.split_once(' ').map_or("", |(_, rest)| rest),
        None => text,
    };
    let end = text.find([' ', ';', '{', '\t']).unwrap_or(text.len());
    &text[..end]
}

/// A helper step turns a predicate, takes a part of a word, or adds a constant that is not 0: which, its function shows.
fn helper(out: &Out) -> Form {
    let probe = |bits: u64| {
        let mut result: Lanes = [0; WARP];
        (out.f)(&[&[bits; WARP]], &mut result, 1);
        result[0]
    };
    match (probe(0), probe(1)) {
        (0, _) => {}
        (1, 0) => return Form::Not,
        // The number before the one that wraps around to 0 has all bits.
        (by, _) => {
            let bits = 64 - probe(!by).leading_zeros();
            return Form::Plus { by, bits };
        }
    }
    let bits = 64 - probe(u64::from(u32::MAX)).leading_zeros();
    let at = (0..32).find(|&at| probe(1 << at) == 1).unwrap_or(0);
    Form::Part { at, bits }
}

struct Words<'a> {
    name: &'a str,
    words: Vec<&'a str>,
}

impl Words<'_> {
    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn types(&self) -> impl Iterator<Item = Ty> + '_ {
        self.words.iter().filter_map(|word| Ty::parse(word))
    }
}

/// A type as a form sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ty {
    bits: u32,
    signed: bool,
    float: Option<Domain>,
    packed: bool,
    pred: bool,
}

impl Ty {
    fn parse(word: &str) -> Option<Ty> {
        let plain = |bits, signed| Ty {
            bits,
            signed,
            float: None,
            packed: false,
            pred: false,
        };
        let float = |domain: Domain, packed| Ty {
            float: Some(domain),
            packed,
            ..plain(domain.bits(), false)
        };
        Some(match word {
            "pred" => Ty {
                pred: true,
                ..plain(1, false)
            },
            "f16" => float(Domain::F16, false),
            "bf16" => float(Domain::Bf16, false),
            "f32" => float(Domain::F32, false),
            "f64" => float(Domain::F64, false),
            "f16x2" => float(Domain::F16, true),
            "bf16x2" => float(Domain::Bf16, true),
            "f32x2" => float(Domain::F32, true),
            "u8" | "b8" => plain(8, false),
            "s8" => plain(8, true),
            "u16" | "b16" => plain(16, false),
            "s16" => plain(16, true),
            "u32" | "b32" => plain(32, false),
            "s32" => plain(32, true),
            "u64" | "b64" => plain(64, false),
            "s64" => plain(64, true),
            "b128" => plain(128, false),
            _ => return None,
        })
    }

    fn domain(self) -> Domain {
        match self {
            _ if self.pred => Domain::Pred,
            Ty {
                float: Some(domain),
                packed: false,
                ..
            } => domain,
            Ty { packed: true, .. } => Domain::Any,
            Ty { bits, .. } => Domain::int(bits),
        }
    }
}

fn flags(words: &Words<'_>) -> u32 {
    let table = [
        ("ftz", Mode::FTZ),
        ("sat", Mode::SAT),
        ("rz", Mode::ZERO),
        ("rm", Mode::DOWN),
        ("rp", Mode::UP),
        ("rzi", Mode::ZERO | Mode::INTEGRAL),
        ("rmi", Mode::DOWN | Mode::INTEGRAL),
        ("rpi", Mode::UP | Mode::INTEGRAL),
        ("rni", Mode::INTEGRAL),
        ("approx", Mode::APPROX),
        ("full", Mode::APPROX | Mode::FULL),
        ("relu", Mode::RELU),
        ("NaN", Mode::NAN),
        ("satfinite", Mode::FINITE),
    ];
    let set = table.iter().filter(|(word, _)| words.has(word));
    set.fold(0, |all, (_, flag)| all | flag)
}

/// The form of a result: number `at` of `outs`.
fn of(text: &str, whole: &str, srcs: usize, (at, outs): (usize, usize), terms: &mut Terms) -> Form {
    let mut split = text.split('.');
    let words = Words {
        name: split.next().unwrap_or(""),
        words: split.collect(),
    };
    let ty = words.types().next();
    let known = match (words.name, ty) {
        // A whole vector: element by element, whatever the braces hold.
        ("mov", Some(_)) if words.has("v2") || words.has("v4") => None,
        ("mov", Some(ty)) => moved(ty, whole, srcs, (at, outs)),
        ("cvta", _) => Some(named_offset(text, terms)),
        ("setp", Some(ty)) => tested(&words, ty, whole, (at, outs)),
        ("selp", _) => Some(Form::Select),
        ("dp4a", Some(_)) => dot(&words),
        ("cvt", Some(to)) => converted(&words, to, srcs),
        (_, Some(ty)) if ty.pred => predicate(words.name),
        (_, Some(ty)) if ty.float.is_some() && outs == 1 => float(&words, ty, srcs),
        (_, Some(ty)) if outs == 1 => int(&words, ty),
        _ => None,
    };
    known.unwrap_or_else(|| named((text, whole), &words, ty, (at, outs), terms))
}

fn named(
    (text, whole): (&str, &str),
    words: &Words<'_>,
    ty: Option<Ty>,
    (at, outs): (usize, usize),
    terms: &mut Terms,
) -> Form {
    let domain = match (words.name, ty) {
        ("cvt", Some(to)) => to.domain(),
        ("popc" | "clz" | "bfind", _) => Domain::I32,
        ("testp" | "setp" | "isspacep", _) => Domain::Pred,
        (_, Some(ty)) if outs == 1 => ty.domain(),
        _ => Domain::Any,
    };
    let mut name = match outs {
        1 => text.to_owned(),
        _ => format!("{text}#{at}"),
    };
    name += &shape(whole);
    // The table is no operand of the decoded step, and makes the function.
    if words.name == "lop3" {
        let mut operands = whole.split(',').map(|word| word.trim_matches([' ', ';']));
        name += &format!(" {}", operands.nth(4).unwrap_or(whole));
    }
    let commutes = words.name == "mul" && words.has("hi");
    let packed = ty.filter(|ty| ty.packed && outs == 1 && matches!(words.name, "ex2" | "tanh"));
    Form::Named {
        function: terms.function(&name, domain),
        commutes,
        packed: packed.map(|ty| ty.bits),
    }
}

/// What an instruction's text says of its operands beside their values: parts, signs, and results that nobody wants.
fn shape(text: &str) -> String {
    let operands = text.rsplit_once(char::is_whitespace).map_or("", |_| {
        let from = text.find(opcode(text)).unwrap_or(0) + opcode(text).len();
        &text[from..]
    });
    let said = operands.split(',').enumerate().filter_map(|(at, operand)| {
        let operand = operand.trim_matches([' ', '\t', ';']);
        let sign = if operand.starts_with("-%") { "-" } else { "" };
        let is_named = operand.trim_start_matches('-').starts_with('%');
        let part = match operand.split_once('.') {
            Some((_, part)) if is_named => part,
            _ => "",
        };
        let parts = operand.split('|').map(str::trim);
        let sinks = parts.enumerate().filter(|(_, part)| *part == "_");
        let sinks: String = sinks.map(|(at, _)| format!("_{at}")).collect();
        let said = format!("{sign}{part}{sinks}");
        (!said.is_empty()).then(|| format!(" {at}:{said}"))
    });
    said.collect()
}

/// `cvta` of a shared or local address: an address is never a term, so any function does.
fn named_offset(text: &str, terms: &mut Terms) -> Form {
    Form::Named {
        function: terms.function(text, Domain::I64),
        commutes: false,
        packed: None,
    }
}

fn moved(ty: Ty, whole: &str, srcs: usize, (at, outs): (usize, usize)) -> Option<Form> {
    // `mov.b64 {a, b}, c`: as many parts as the braces hold, sinks among them; a result's part is then not its number.
    let from = whole.find('{');
    match (from, srcs) {
        (None, 1) if ty.bits <= 64 && outs == 1 => Some(Form::Part {
            at: 0,
            bits: ty.bits,
        }),
        (Some(_), srcs) if srcs > 1 && ty.bits <= 64 => Some(Form::Join {
            bits: ty.bits / srcs as u32,
        }),
        (Some(start), 1) if ty.bits <= 64 => {
            let inside = whole[start + 1..].split('}').next()?;
            let parts: Vec<&str> = inside.split(',').map(str::trim).collect();
            let kept = parts.iter().enumerate().filter(|(_, part)| **part != "_");
            let (place, _) = kept.clone().nth(at)?;
            let bits = ty.bits / parts.len() as u32;
            (kept.count() == outs).then_some(Form::Part {
                at: place as u32 * bits,
                bits,
            })
        }
        _ => None,
    }
}

fn predicate(name: &str) -> Option<Form> {
    Some(match name {
        "not" => Form::Not,
        "and" => Form::And,
        "or" => Form::Or,
        "xor" => Form::Xor,
        "mov" => Form::Part { at: 0, bits: 1 },
        _ => return None,
    })
}

fn tested(words: &Words<'_>, ty: Ty, whole: &str, (at, outs): (usize, usize)) -> Option<Form> {
    // Which half of `p|q` is meant where one of both is a sink, or of packed operands, is not told here.
    if ty.packed || (outs == 1 && whole.contains('|')) {
        return None;
    }
    let combine = words.words.iter().find_map(|word| match *word {
        "and" => Some(Combine::And),
        "or" => Some(Combine::Or),
        "xor" => Some(Combine::Xor),
        _ => None,
    });
    let test = words
        .words
        .iter()
        .find_map(|word| test(word, ty, words.has("ftz")))?;
    Some(Form::Test {
        test,
        combine,
        negated: at == 1,
    })
}

/// A comparison by its name. `lo`, `ls`, `hi`, `hs` are without sign whatever the type.
fn test(word: &str, ty: Ty, ftz: bool) -> Option<Test> {
    let domain = ty.domain();
    let signed = ty.signed && !matches!(word, "lo" | "ls" | "hi" | "hs");
    let make = |order, swapped, negated| Test {
        cmp: Cmp::new(domain, order, signed, ftz),
        swapped,
        negated,
    };
    Some(match word {
        "eq" => make(Order::Eq, false, false),
        // With NaN `ne` is false and `neu` is true: of integers both are the same.
        "ne" if ty.float.is_none() => make(Order::Eq, false, true),
        "neu" => make(Order::Eq, false, true),
        "lt" | "lo" => make(Order::Lt, false, false),
        "le" | "ls" => make(Order::Le, false, false),
        "gt" | "hi" => make(Order::Lt, true, false),
        "ge" | "hs" => make(Order::Le, true, false),
        "ltu" => make(Order::Le, true, true),
        "leu" => make(Order::Lt, true, true),
        "gtu" => make(Order::Le, false, true),
        "geu" => make(Order::Lt, false, true),
        "nan" => make(Order::Nan, false, false),
        "num" => make(Order::Nan, false, true),
        _ => return None,
    })
}

fn converted(words: &Words<'_>, to: Ty, srcs: usize) -> Option<Form> {
    let from = words.types().nth(1)?;
    let mode = |domain| Mode::new(domain, flags(words));
    match (to.float, from.float) {
        (None, None) if !words.has("sat") && srcs == 1 && to.bits <= 64 => Some(Form::Extend {
            from: from.bits.min(to.bits),
            signed: if to.bits > from.bits {
                from.signed
            } else {
                to.signed
            },
            to: if to.signed { 64 } else { to.bits },
        }),
        (Some(domain), None) if !to.packed && srcs == 1 => Some(Form::FromInt {
            mode: mode(domain),
            bits: from.bits,
            signed: from.signed,
        }),
        (Some(domain), Some(source)) if !from.packed && (to.packed == (srcs == 2)) => {
            Some(Form::Convert {
                mode: mode(domain),
                from: source,
            })
        }
        _ => None,
    }
}

fn float(words: &Words<'_>, ty: Ty, srcs: usize) -> Option<Form> {
    // `add.f32.f16` and its like keep their name.
    if words.types().nth(1).is_some() || words.has("xorsign") {
        return None;
    }
    let what = match (words.name, srcs) {
        ("add", 2) => Float::Add,
        ("sub", 2) => Float::Sub,
        ("mul", 2) => Float::Mul,
        ("fma" | "mad", 3) => Float::Fma,
        ("div", 2) => Float::Div,
        ("rcp", 1) => Float::Rcp,
        ("neg", 1) => Float::Neg,
        ("abs", 1) => Float::Abs,
        ("sqrt", 1) => Float::Sqrt,
        ("rsqrt", 1) => Float::Rsqrt,
        ("ex2", 1) if !ty.packed => Float::Ex2,
        ("min", 2) if !words.has("abs") => Float::Min,
        ("max", 2) if !words.has("abs") => Float::Max,
        _ => return None,
    };
    let mut flags = flags(words);
    let rounded = ["rn", "rz", "rm", "rp"].iter().any(|word| words.has(word));
    if matches!(what, Float::Add | Float::Sub | Float::Mul) && !rounded {
        flags |= Mode::FUSIBLE;
    }
    // Of these `.approx` is all that there is.
    if matches!(what, Float::Rsqrt | Float::Ex2) {
        flags &= !Mode::APPROX;
    }
    Some(Form::Float {
        what,
        mode: Mode::new(ty.float?, flags),
        packed: ty.packed,
    })
}

fn int(words: &Words<'_>, ty: Ty) -> Option<Form> {
    let plain = !words.has("sat") && !words.has("cc") && !words.has("relu");
    let what = match words.name {
        "add" if plain => Int::Add,
        "sub" if plain => Int::Sub,
        "neg" => Int::Neg,
        "mul" if words.has("lo") => Int::Mul,
        "mad" if words.has("lo") && plain => Int::Mad,
        "mul" if words.has("wide") => Int::MulWide,
        "mad" if words.has("wide") && plain => Int::MadWide,
        "min" if plain => Int::Min,
        "max" if plain => Int::Max,
        "and" => Int::And,
        "or" => Int::Or,
        "xor" => Int::Xor,
        "not" => Int::Not,
        "shl" => Int::Shl,
        "shr" => Int::Shr,
        "bfe" => Int::Bfe,
        "bfi" => Int::Bfi,
        "prmt" if words.words.len() == 1 => Int::Prmt,
        _ => return None,
    };
    (ty.bits <= 64).then_some(Form::Int {
        what,
        bits: ty.bits,
        signed: ty.signed,
    })
}

// ---- building

impl Form {
    /// What it makes of terms, if that is looked up as it is, most of the time.
    #[inline(always)]
    fn kind_ahead(&self) -> Option<(Kind, Mode)> {
        let Form::Float {
            what,
            mode,
            packed: false,
        } = *self
        else {
            return None;
        };
        let kind = match what {
            Float::Add => Kind::FAdd,
            Float::Mul => Kind::FMul,
            Float::Fma => Kind::FFma,
            Float::Max => Kind::FMax,
            Float::Min => Kind::FMin,
            _ => return None,
        };
        Some((kind, mode))
    }

    #[inline(always)]
    pub fn is_ahead(&self) -> bool {
        self.kind_ahead().is_some()
    }

    /// The term that some terms make, most of the time.
    #[inline(always)]
    pub fn ahead(&self, [a, b, c]: [Id; 3]) -> Node {
        let (kind, mode) = self.kind_ahead().unwrap_or((Kind::Const, Mode(0)));
        let c = if kind == Kind::FFma { c } else { 0 };
        let (a, b) = (a.min(b), a.max(b));
        Node::new(kind, mode.0 & !Mode::FUSIBLE, a, b, c)
    }

    /// That term's number, if it is what [`build`](Self::build) makes: no rule is about its operands.
    #[inline(always)]
    pub fn made_ahead(&self, terms: &mut Terms, node: &Node) -> Option<Id> {
        let (kind, mode) = self.kind_ahead()?;
        let domain = mode.domain();
        let whole = |id: Id| terms.fills(id, domain.bits());
        let [a, b] = [node.a, node.b].map(|id| terms.node(id).kind());
        // Signs are pulled out, of products ptxas fuses some, and one of two NaNs is handed on in double precision.
        let is_plain = match kind {
            Kind::FAdd => ![Kind::FNeg, Kind::FMul].iter().any(|k| [a, b].contains(k)),
            Kind::FMul | Kind::FFma => a != Kind::FNeg && b != Kind::FNeg,
            _ => node.a != node.b,
        };
        let is_whole = whole(node.a) && whole(node.b) && (kind != Kind::FFma || whole(node.c));
        if !is_plain || !is_whole || domain == Domain::F64 {
            return None;
        }
        let id = terms.intern(*node);
        if kind == Kind::FMul {
            terms.made_product(Val::Term(id), mode.has(Mode::FUSIBLE));
        }
        Some(id)
    }

    /// The result for these operands.
    #[inline]
    pub fn build(&self, terms: &mut Terms, x: &[Val]) -> Val {
        let get = |at: usize| x.get(at).copied().unwrap_or(Val::Bits(0));
        match *self {
            Form::Part { at, bits } => terms.extract(get(0), at, bits),
            Form::Join { bits } => {
                let mut all = get(0);
                for (at, &part) in x.iter().enumerate().skip(1) {
                    let below = at as u32 * bits;
                    all = terms.concat(all, below, part, below + bits);
                }
                all
            }
            Form::Dot { signed } => dot_product(terms, signed, [get(0), get(1), get(2)]),
            Form::Plus { by, bits } => {
                let sum = terms.iadd(Domain::int(bits), get(0), Val::Bits(by));
                terms.extract(sum, 0, bits)
            }
            Form::Not => terms.not(get(0)),
            Form::And => terms.and(get(0), get(1)),
            Form::Or => terms.or(get(0), get(1)),
            Form::Xor => terms.xor(get(0), get(1)),
            Form::Float { what, mode, packed } => floats(terms, what, mode, packed, x),
            Form::Int { what, bits, signed } => ints(terms, what, bits, signed, x),
            Form::Test {
                test,
                combine,
                negated,
            } => {
                let holds = test.build(terms, get(0), get(1));
                let holds = if negated { terms.not(holds) } else { holds };
                match combine {
                    None => holds,
                    Some(Combine::And) => terms.and(holds, get(2)),
                    Some(Combine::Or) => terms.or(holds, get(2)),
                    Some(Combine::Xor) => terms.xor(holds, get(2)),
                }
            }
            Form::Select => terms.select(get(2), get(0), get(1)),
            Form::Extend { from, signed, to } => match signed {
                true => terms.sext(get(0), from, to),
                false => terms.extract(get(0), 0, from),
            },
            Form::Convert { mode, from } => match x {
                [high, low] => {
                    let (low, high) = (
                        convert(terms, mode, from, *low),
                        convert(terms, mode, from, *high),
                    );
                    terms.concat(low, 16, high, 32)
                }
                _ => convert(terms, mode, from, get(0)),
            },
            Form::FromInt { mode, bits, signed } => {
                let value = terms.extract(get(0), 0, bits);
                let a = terms.term(value);
                let source = bits << 1 | u32::from(signed);
                let node = super::term::Node::new(Kind::FromInt, mode.0, a, source, 0);
                Val::Term(terms.intern(node))
            }
            Form::Named {
                function,
                commutes,
                packed,
            } => named_value(terms, function, commutes, packed, x),
        }
    }
}

fn named_value(
    terms: &mut Terms,
    function: u32,
    commutes: bool,
    packed: Option<u32>,
    x: &[Val],
) -> Val {
    if let (Some(bits), [value]) = (packed, x) {
        let (low, high) = (
            terms.extract(*value, 0, bits),
            terms.extract(*value, bits, bits),
        );
        let (low, high) = (
            terms.apply(function, &[low]),
            terms.apply(function, &[high]),
        );
        return terms.concat(low, bits, high, 2 * bits);
    }
    if let (true, &[a, b]) = (commutes, x) {
        let (a, b) = (terms.term(a), terms.term(b));
        return terms.apply(function, &[Val::Term(a.min(b)), Val::Term(a.max(b))]);
    }
    terms.apply(function, x)
}

fn convert(terms: &mut Terms, mode: Mode, from: Domain, value: Val) -> Val {
    let a = terms.extract(value, 0, from.bits());
    if mode.domain() == from && mode.is_plain() && terms.is_settled(from, a) {
        return a;
    }
    let a = terms.term(a);
    let node = super::term::Node::new(Kind::FCvt, mode.0, a, from as u32, 0);
    Val::Term(terms.intern(node))
}

impl Test {
    fn build(self, terms: &mut Terms, a: Val, b: Val) -> Val {
        let (a, b) = if self.swapped { (b, a) } else { (a, b) };
        let holds = terms.compare(self.cmp, a, b);
        if self.negated {
            terms.not(holds)
        } else {
            holds
        }
    }
}

fn floats(terms: &mut Terms, what: Float, mode: Mode, packed: bool, x: &[Val]) -> Val {
    if packed {
        let bits = mode.domain().bits();
        let [low, high] = [0, bits].map(|at| {
            let parts: Vec<Val> = x.iter().map(|&v| terms.extract(v, at, bits)).collect();
            scalar(terms, what, mode, &parts)
        });
        return terms.concat(low, bits, high, 2 * bits);
    }
    scalar(terms, what, mode, x)
}

/// Operands are taken to their format's width: registers may be wider.
#[inline]
fn scalar(terms: &mut Terms, what: Float, mode: Mode, x: &[Val]) -> Val {
    let domain = mode.domain();
    let take = |terms: &mut Terms, at: usize| match x.get(at) {
        Some(&Val::Bits(bits)) => Val::Bits(bits & u64::MAX >> (64 - domain.bits())),
        Some(&Val::Term(id)) if domain == Domain::F64 || terms.fills(id, domain.bits()) => {
            Val::Term(id)
        }
        Some(&value) => terms.extract(value, 0, domain.bits()),
        None => Val::Bits(0),
    };
    let a = take(terms, 0);
    let plain = Mode(mode.0 & !Mode::FUSIBLE);
    match what {
        Float::Add => {
            let b = take(terms, 1);
            terms.fadd(mode, a, b)
        }
        Float::Sub => {
            let b = take(terms, 1);
            let b = terms.fneg(domain, b);
            terms.fadd(mode, a, b)
        }
        Float::Mul => {
            let b = take(terms, 1);
            let product = terms.fmul(mode, a, b);
            terms.made_product(product, mode.has(Mode::FUSIBLE));
            product
        }
        Float::Fma => {
            let (b, c) = (take(terms, 1), take(terms, 2));
            let value = terms.ffma(mode, a, b, c);
            terms.made_product(value, false);
            value
        }
        Float::Div => {
            let b = take(terms, 1);
            terms.fdiv(mode, a, b)
        }
        Float::Rcp => {
            // An approximate reciprocal has other bits than an approximate quotient.
            let other = if plain.has(Mode::APPROX) {
                Mode::OTHER
            } else {
                0
            };
            let one = Val::Bits(match domain {
                Domain::F64 => 1f64.to_bits(),
                _ => u64::from(1f32.to_bits()),
            });
            terms.fdiv(Mode(plain.0 | other), one, a)
        }
        Float::Neg if plain.is_plain() => terms.fneg(domain, a),
        Float::Neg => terms.unary(Kind::FNeg, plain.0, a),
        Float::Abs => terms.fabs(plain, a),
        Float::Sqrt => terms.unary(Kind::FSqrt, plain.0, a),
        Float::Rsqrt => terms.unary(Kind::FRsqrt, plain.0, a),
        Float::Ex2 => terms.unary(Kind::FEx2, plain.0, a),
        Float::Min | Float::Max => {
            let b = take(terms, 1);
            terms.extreme(what == Float::Max, plain, a, b)
        }
    }
}

fn ints(terms: &mut Terms, what: Int, bits: u32, signed: bool, x: &[Val]) -> Val {
    let get = |at: usize| x.get(at).copied().unwrap_or(Val::Bits(0));
    let domain = Domain::int(bits);
    let mask = u64::MAX >> (64 - bits.clamp(1, 64));
    let (a, b) = (get(0), get(1));
    let wide = |terms: &mut Terms, v: Val| match signed {
        true => terms.sext(v, bits, 2 * bits),
        false => terms.extract(v, 0, bits),
    };
    let negative = |terms: &mut Terms, v: Val| terms.imul(domain, v, Val::Bits(mask));
    let mode = Mode::new(domain, if signed { Mode::OTHER } else { 0 });
    match what {
        Int::Add => terms.iadd(domain, a, b),
        Int::Sub => {
            let b = match b {
                Val::Bits(b) => Val::Bits(b.wrapping_neg() & mask),
                b => negative(terms, b),
            };
            terms.iadd(domain, a, b)
        }
        Int::Neg => negative(terms, a),
        Int::Mul => terms.imul(domain, a, b),
        Int::Mad => {
            let product = product(terms, domain, a, b);
            terms.iadd(domain, product, get(2))
        }
        Int::MulWide | Int::MadWide => {
            let (a, b) = (wide(terms, a), wide(terms, b));
            let domain = Domain::int(2 * bits);
            let product = product(terms, domain, a, b);
            match what {
                Int::MadWide => terms.iadd(domain, product, get(2)),
                _ => product,
            }
        }
        Int::Min | Int::Max => {
            let (a, b) = (terms.extract(a, 0, bits), terms.extract(b, 0, bits));
            terms.extreme(what == Int::Max, mode, a, b)
        }
        Int::And | Int::Or | Int::Xor => logic(terms, what, bits, a, b),
        Int::Not => logic(terms, Int::Xor, bits, a, Val::Bits(mask)),
        Int::Shl => shifted(terms, bits, a, b),
        Int::Shr => match b {
            Val::Bits(by) if (by as u32) < bits => {
                let by = by as u32;
                let low = terms.extract(a, by, bits - by);
                match signed {
                    true => terms.sext(low, bits - by, bits),
                    false => low,
                }
            }
            _ => function(terms, "shr", bits, signed, &[a, b]),
        },
        Int::Bfe => match (b, get(2)) {
            (Val::Bits(at), Val::Bits(len))
                if !signed && at + len <= u64::from(bits) && len > 0 =>
            {
                terms.extract(a, at as u32, len as u32)
            }
            _ => function(terms, "bfe", bits, signed, x),
        },
        Int::Bfi => match (get(2), get(3)) {
            (Val::Bits(at), Val::Bits(len)) if at + len <= u64::from(bits) && len > 0 => {
                inserted(terms, bits, (a, b), (at as u32, len as u32))
            }
            _ => function(terms, "bfi", bits, signed, x),
        },
        Int::Prmt => match get(2) {
            Val::Bits(selector) if selector & 0x8888 == 0 => permuted(terms, selector, a, b),
            _ => function(terms, "prmt", bits, signed, x),
        },
    }
}

/// A product of which both factors may be known.
fn product(terms: &mut Terms, domain: Domain, a: Val, b: Val) -> Val {
    match (a, b) {
        (Val::Bits(a), Val::Bits(b)) => {
            Val::Bits(a.wrapping_mul(b) & u64::MAX >> (64 - domain.bits()))
        }
        _ => terms.imul(domain, a, b),
    }
}

fn function(terms: &mut Terms, name: &str, bits: u32, signed: bool, x: &[Val]) -> Val {
    let name = format!("{name}.{}{bits}", if signed { 's' } else { 'u' });
    let number = terms.function(&name, Domain::int(bits));
    terms.apply(number, x)
}

fn logic(terms: &mut Terms, what: Int, bits: u32, a: Val, b: Val) -> Val {
    let (a, b) = (terms.extract(a, 0, bits), terms.extract(b, 0, bits));
    let mask = u64::MAX >> (64 - bits.clamp(1, 64));
    let (known, other) = match (a, b) {
        (Val::Bits(known), other) | (other, Val::Bits(known)) => (Some(known), other),
        _ => (None, a),
    };
    match (what, known) {
        (Int::And, Some(0)) => return Val::Bits(0),
        (Int::And, Some(known)) if known.wrapping_add(1) & known == 0 => {
            return terms.extract(other, 0, known.count_ones());
        }
        (Int::Or | Int::Xor, Some(0)) => return other,
        (Int::Or, Some(known)) if known == mask => return Val::Bits(mask),
        _ => {}
    }
    if a == b {
        return match what {
            Int::Xor => Val::Bits(0),
            _ => a,
        };
    }
    if let Some(known) = known {
        let with = |_: &mut Terms, bits| {
            Val::Bits(match what {
                Int::And => bits & known,
                Int::Or => bits | known,
                _ => bits ^ known,
            })
        };
        if let Some(chosen) = terms.chosen(other, &with) {
            return chosen;
        }
    }
    let name = match what {
        Int::And => "and",
        Int::Or => "or",
        _ => "xor",
    };
    let (a, b) = (terms.term(a), terms.term(b));
    let sorted = [Val::Term(a.min(b)), Val::Term(a.max(b))];
    function(terms, name, bits, false, &sorted)
}

fn dot(words: &Words<'_>) -> Option<Form> {
    let signs: Vec<bool> = words.types().map(|ty| ty.signed).collect();
    Some(Form::Dot {
        signed: signs.try_into().ok()?,
    })
}

fn dot_product(terms: &mut Terms, signed: [bool; 2], [a, b, c]: [Val; 3]) -> Val {
    let mut sum = c;
    for at in 0..4 {
        let [x, y] = [(a, signed[0]), (b, signed[1])].map(|(word, is_signed)| {
            let byte = terms.extract(word, 8 * at, 8);
            match is_signed {
                true => terms.sext(byte, 8, 32),
                false => byte,
            }
        });
        let product = product(terms, Domain::I32, x, y);
        sum = terms.iadd(Domain::I32, sum, product);
    }
    sum
}

/// Of a number a product with a power of two; of anything else its lower bits above zeros.
fn shifted(terms: &mut Terms, bits: u32, a: Val, by: Val) -> Val {
    let (Val::Bits(by), Val::Term(id)) = (by, a) else {
        return function(terms, "shl", bits, false, &[a, by]);
    };
    let by = by as u32;
    if by >= bits {
        return Val::Bits(0);
    }
    match terms.domain(id) {
        Domain::I16 | Domain::I32 | Domain::I64 => {
            terms.imul(Domain::int(bits), a, Val::Bits(1 << by))
        }
        _ if by == 0 => terms.extract(a, 0, bits),
        _ => {
            let low = terms.extract(a, 0, bits - by);
            terms.concat(Val::Bits(0), by, low, bits)
        }
    }
}

/// The lower `len` bits of `a` in place of those of `b` from `at` on.
fn inserted(terms: &mut Terms, bits: u32, (a, b): (Val, Val), (at, len): (u32, u32)) -> Val {
    let part = terms.extract(a, 0, len);
    let mut all = match at {
        0 => part,
        _ => {
            let below = terms.extract(b, 0, at);
            terms.concat(below, at, part, at + len)
        }
    };
    if at + len < bits {
        let above = terms.extract(b, at + len, bits - at - len);
        all = terms.concat(all, at + len, above, bits);
    }
    all
}

fn permuted(terms: &mut Terms, selector: u64, a: Val, b: Val) -> Val {
    let mut all = Val::Bits(0);
    for at in 0..4u32 {
        let byte = (selector >> (4 * at) & 7) as u32;
        let (from, byte) = if byte < 4 { (a, byte) } else { (b, byte - 4) };
        let part = terms.extract(from, 8 * byte, 8);
        all = match at {
            0 => part,
            _ => terms.concat(all, 8 * at, part, 8 * at + 8),
        };
    }
    all
}
