//! The attributes of a line.

use super::super::class::{Control, Family, Features, LatencyClass, MinTarget, SpaceSet};
use super::super::form::Form;
use super::Message;

pub(super) fn parse_family(text: &str) -> Result<Family, Message> {
    Ok(match text {
        "integer" => Family::Integer,
        "extended" => Family::Extended,
        "float" => Family::Float,
        "compare" => Family::Compare,
        "logic" => Family::Logic,
        "move" => Family::Move,
        "async" => Family::Async,
        "texture" => Family::Texture,
        "surface" => Family::Surface,
        "control" => Family::Control,
        "sync" => Family::Sync,
        "matrix" => Family::Matrix,
        "wgmma" => Family::Wgmma,
        "tcgen05" => Family::Tcgen05,
        "stack" => Family::Stack,
        "video" => Family::Video,
        "misc" => Family::Misc,
        _ => return Err(format!("unknown family {text}")),
    })
}

fn parse_class(text: &str) -> Option<LatencyClass> {
    Some(match text {
        "alu" => LatencyClass::Alu,
        "imul" => LatencyClass::IntMul,
        "fp16" => LatencyClass::Fp16,
        "fp32" => LatencyClass::Fp32,
        "fp64" => LatencyClass::Fp64,
        "sfu" => LatencyClass::Sfu,
        "div" => LatencyClass::Division,
        "cvt" => LatencyClass::Conversion,
        "warp" => LatencyClass::Warp,
        "shared-load" => LatencyClass::SharedLoad,
        "global-load" => LatencyClass::GlobalLoad,
        "store" => LatencyClass::Store,
        "atomic" => LatencyClass::Atomic,
        "copy" => LatencyClass::AsyncCopy,
        "tensor" => LatencyClass::Tensor,
        "texture" => LatencyClass::Texture,
        "control" => LatencyClass::Control,
        "barrier" => LatencyClass::Barrier,
        "video" => LatencyClass::Video,
        "misc" => LatencyClass::Misc,
        _ => return None,
    })
}

fn parse_control(text: &str) -> Option<Control> {
    Some(match text {
        "branch" => Control::Branch,
        "indirect" => Control::IndirectBranch,
        "call" => Control::Call,
        "return" => Control::Return,
        "exit" => Control::Exit,
        "trap" => Control::Trap,
        _ => return None,
    })
}

/// Enters an attribute into the form; `None` if it is unknown.
pub(super) fn apply_attribute(form: &mut Form, text: &str) -> Option<()> {
    if let Some((key, value)) = text.split_once('=') {
        match key {
            "ptx" => form.version = parse_version(value)?,
            "until" => form.until = Some(parse_version(value)?),
            "sm" => form.target = parse_target(value)?,
            "reads" => {
                parse_memories(value, &mut form.effect.reads, &mut form.reads_space)?;
            }
            "writes" => {
                parse_memories(value, &mut form.effect.writes, &mut form.writes_space)?;
            }
            "goes" => form.control = parse_control(value)?,
            _ => return None,
        }
        return Some(());
    }
    let effect = &mut form.effect;
    match text {
        "load" => {
            form.class = None;
            form.reads_space = Some(0);
        }
        "store" => {
            form.class = Some(LatencyClass::Store);
            form.writes_space = Some(0);
        }
        "is-atomic" => {
            effect.atomic = true;
            form.class = Some(LatencyClass::Atomic);
            form.reads_space = Some(0);
            form.writes_space = Some(0);
        }
        "acquires" => effect.acquire = true,
        "releases" => effect.release = true,
        "async" => effect.is_async = true,
        "blocks" => effect.barrier = true,
        "fence" => effect.fence = true,
        "convergent" => effect.convergent = true,
        "carry-in" => effect.carry_in = true,
        "carry-out" => effect.carry_out = true,
        "impure" => effect.other = true,
        _ => form.class = Some(parse_class(text)?),
    }
    Some(())
}

/// `$1` (the first state space of the opcode) or a list such as `global+shared`.
fn parse_memories(text: &str, set: &mut SpaceSet, nth: &mut Option<u8>) -> Option<()> {
    if let Some(n) = text.strip_prefix('$') {
        *nth = Some(n.parse::<u8>().ok()?.checked_sub(1)?);
        return Some(());
    }
    for name in text.split('+') {
        *set = *set | SpaceSet::parse(name)?;
    }
    Some(())
}

fn parse_version(text: &str) -> Option<(u8, u8)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn parse_target(text: &str) -> Option<MinTarget> {
    let digits = text.trim_end_matches(['a', 'f']);
    Some(MinTarget {
        sm: digits.parse().ok()?,
        features: match text.get(digits.len()..)? {
            "" => Features::Plain,
            "f" => Features::Family,
            "a" => Features::Architecture,
            _ => return None,
        },
    })
}
