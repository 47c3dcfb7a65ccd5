//! What terms are taken for: one without a format of its own has that of its reader.

use warpwright_emu::symbolic::term::{Cmp, Domain, Id, Kind, Node, Terms};

/// A term in what its reader takes it for.
pub(crate) type Place = (Id, Domain);

pub(crate) const DOMAINS: [Domain; 9] = [
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

/// What each term is taken for, as bits; 0 of those that no root needs.
pub(crate) fn wanted(terms: &Terms, roots: &[Place]) -> Vec<u16> {
    let mut wanted = vec![0u16; terms.len()];
    for &(id, domain) in roots {
        wanted[id as usize] |= 1 << domain as u32;
    }
    needed(terms, &mut wanted);
    wanted
}

/// Adds what those that are wanted are made of.
pub(crate) fn needed(terms: &Terms, wanted: &mut [u16]) {
    for id in (0..wanted.len()).rev() {
        let domains = wanted[id];
        if domains == 0 {
            continue;
        }
        let node = terms.node(id as Id);
        let own = terms.domain(id as Id);
        if own == Domain::Any && node.kind() == Kind::Select {
            wanted[node.a as usize] |= 1 << Domain::Pred as u32;
            wanted[node.b as usize] |= domains;
            wanted[node.c as usize] |= domains;
            continue;
        }
        for (arg, domain) in operands(terms, &node, own) {
            wanted[arg as usize] |= 1 << domain as u32;
        }
    }
}

/// A term's arguments with what it takes them for.
pub(crate) fn operands<'t>(
    terms: &'t Terms,
    node: &Node,
    own: Domain,
) -> impl Iterator<Item = Place> + Clone + use<'t> {
    let node = *node;
    let taken = move |arg: Id| match node.kind() {
        Kind::FCvt => DOMAINS[node.b as usize % DOMAINS.len()],
        Kind::FromInt => Domain::int(node.b >> 1),
        Kind::Sext => Domain::int(node.imm() & 0xff),
        Kind::Cmp => Cmp(node.imm()).domain(),
        Kind::Not | Kind::And | Kind::Xor => Domain::Pred,
        Kind::Extract | Kind::Concat | Kind::Pair => terms.domain(arg),
        Kind::App => argument(terms, &node, arg),
        _ => own,
    };
    let args = node.args().enumerate();
    args.map(move |(at, arg)| match (node.kind(), at) {
        (Kind::Select, 0) => (arg, Domain::Pred),
        _ => (arg, taken(arg)),
    })
}

/// What a named function takes an argument for: its own format, or the one behind it in a conversion's name.
fn argument(terms: &Terms, node: &Node, arg: Id) -> Domain {
    let own = terms.domain(arg);
    if own != Domain::Any {
        return own;
    }
    let (name, domain) = terms.name(node.imm());
    if name.starts_with("cvt") {
        return match name.rsplit('.').next() {
            Some("f32") => Domain::F32,
            Some("f64") => Domain::F64,
            Some("f16") => Domain::F16,
            Some("bf16") => Domain::Bf16,
            _ => Domain::Any,
        };
    }
    domain
}
