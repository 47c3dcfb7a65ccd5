//! The operands of a line.

use super::super::class::Role;
use super::super::form::{Lanes, OperandSpec, Presence, TypeBase, TypeSpec};
use super::Message;
use crate::types::Type;

pub(super) fn parse_operands(text: &'static str) -> Result<Vec<OperandSpec>, Message> {
    let list = text.split(',').map(str::trim).filter(|t| !t.is_empty());
    list.map(|t| parse_operand(t).ok_or_else(|| format!("bad operand {t}")))
        .collect()
}

/// `=d:1`, `=p:pred+pred`, `[a]`, `#n:u32`, `b:2w?`, `policy:b64@L2::cache_hint` …
fn parse_operand(text: &'static str) -> Option<OperandSpec> {
    let (text, presence) = if let Some((text, modifier)) = text.split_once('@') {
        (text, Presence::With(modifier))
    } else if let Some(text) = text.strip_suffix('?') {
        (text, Presence::Optional)
    } else {
        (text, Presence::Always)
    };
    let (role, text) = match text.as_bytes().first()? {
        b'=' => (Role::Def, text.get(1..)?),
        b'+' => (Role::UseDef, text.get(1..)?),
        b'#' => (Role::Immediate, text.get(1..)?),
        b'>' => (Role::Label, text.get(1..)?),
        b'%' => (Role::BranchTargets, text.get(1..)?),
        b'(' => (Role::CallPart, text.get(1..text.len() - 1)?),
        b'[' => (Role::Address, text.strip_prefix('[')?.strip_suffix(']')?),
        _ => (Role::Use, text),
    };
    let (name, types) = text.split_once(':').unwrap_or((text, "*"));
    let (first, second) = match types.split_once('+') {
        Some((first, second)) => (first, Some(second)),
        None => (types, None),
    };
    Some(OperandSpec {
        name,
        role,
        ty: parse_type(first)?,
        pair: second.map_or(Some(None), |s| parse_type(s).map(Some))?,
        presence,
    })
}

/// `*`, `1`, `u32`; then `w` (double), `~` (may be wider), `v` (as the opcode's vector),
/// `{}` (any vector), `{4}`.
fn parse_type(text: &str) -> Option<TypeSpec> {
    let (text, lanes) = if let Some(text) = text.strip_suffix('}') {
        let (text, lanes) = text.split_once('{')?;
        (text, parse_lanes(lanes)?)
    } else if let Some(text) = text.strip_suffix('v') {
        (text, Lanes::OfOpcode)
    } else {
        (text, Lanes::One)
    };
    let (text, wider) = match text.strip_suffix('~') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (text, double) = match text.strip_suffix('w') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let base = match text {
        "*" => TypeBase::Any,
        _ => match text.parse::<u8>() {
            Ok(n) => TypeBase::Nth(n.checked_sub(1)?),
            Err(_) => TypeBase::Fixed(Type::parse(text)?),
        },
    };
    Some(TypeSpec {
        base,
        double,
        wider,
        lanes,
    })
}

/// What stands between the braces of a type.
fn parse_lanes(text: &str) -> Option<Lanes> {
    if text.is_empty() {
        return Some(Lanes::Any);
    }
    if text == "pack" {
        return Some(Lanes::Pack);
    }
    if let Some(divisor) = text.strip_prefix("n/") {
        return Some(Lanes::Columns(divisor.parse().ok()?));
    }
    let repeat = |times, over| Some(Lanes::Repeat { times, over });
    if let Some(over) = text.strip_prefix("x/") {
        return repeat(1, over.parse().ok()?);
    }
    match text.strip_suffix('x') {
        Some("") => repeat(1, 1),
        Some(times) => repeat(times.parse().ok()?, 1),
        None => Some(Lanes::Exactly(text.parse().ok()?)),
    }
}
