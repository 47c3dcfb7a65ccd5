//! Which instructions of a line of the opcode table the campaign runs.

use warpwright_ptx::opcode::{Family, Form, Op, Presence};

use super::values::scramble;

/// All choices of modifiers are taken of a line that has at most so many; of others so many at random.
const MOST: usize = 96;

/// Of a conversion line.
const MOST_CONVERSIONS: usize = 6000;

/// Why no kernel of the campaign has a line.
pub fn excluded(form: &Form) -> Option<&'static str> {
    use Op::*;
    Some(match (form.family, form.op) {
        _ if form.target.sm > 90 => "of a device that nobody has",
        _ if form.until.is_some() => "no version that the tools take has it",
        (Family::Texture | Family::Surface, _) => "textures and surfaces",
        (Family::Wgmma | Family::Tcgen05, _) => "asynchronous matrix instructions",
        (Family::Control | Family::Stack, _) => "control flow: `warpwright-fuzz hardware` runs it",
        (_, Multimem | Fabric) => "memory of several devices",
        (_, Cvta | Isspacep | Mapa | Getctarank | Istypep) => {
            "the result is an address or depends on one"
        }
        (_, Wmma) => "the layout of a fragment is open: see the sequences",
        (_, Mbarrier | Cp | Tensormap | Clusterlaunchcontrol | Griddepcontrol) => {
            "asynchronous: see the sequences"
        }
        (_, Bar | Barrier | Elect | Setmaxnreg) => {
            "of a block or warp as a whole: see the sequences"
        }
        (_, Nanosleep | Trap | Brkpt | Pmevent | Exit) => "no result",
        (_, Discard | Applypriority | Createpolicy | Prefetch | Prefetchu) => "no defined result",
        (_, St | Red) if form.pattern.contains("async") => "asynchronous",
        (_, St) if form.pattern.contains("bulk") => "asynchronous",
        _ => return None,
    })
}

/// Opcode texts of a line.
pub fn opcodes(form: &Form) -> Vec<String> {
    let sizes = form
        .slots
        .iter()
        .map(|s| s.alternatives.len() + usize::from(s.optional));
    let all = sizes.fold(1usize, usize::saturating_mul);
    let most = if form.op == Op::Cvt {
        MOST_CONVERSIONS
    } else {
        MOST
    };
    let seed = u64::from(form.place.1) << 32;
    let mut texts: Vec<String> = match all <= most {
        true => (0..all)
            .map(|number| text(form, number as u64, |rest, n| (rest % n, rest / n)))
            .collect(),
        false => (0..most as u64)
            .map(|i| {
                text(form, scramble(seed ^ i), |rest, n| {
                    (scramble(rest) % n, scramble(rest ^ n))
                })
            })
            .collect(),
    };
    texts.sort();
    texts.dedup();
    texts
}

/// The opcode that a number picks: `take` gives the choice of a slot and the number for the others.
fn text(form: &Form, mut number: u64, take: impl Fn(u64, u64) -> (u64, u64)) -> String {
    let mut text = form.op.word().to_owned();
    for slot in &form.slots {
        let optional = u64::from(slot.optional);
        let (choice, rest) = take(number, slot.alternatives.len() as u64 + optional);
        number = rest;
        if let Some(modifier) = (choice + 1)
            .checked_sub(1 + optional)
            .and_then(|i| slot.alternatives.get(i as usize))
        {
            text.push('.');
            text.push_str(modifier);
        }
    }
    text
}

/// Has the line operands that may be missing?
pub fn has_optional(form: &Form) -> bool {
    form.sample.is_none()
        && form
            .operands
            .iter()
            .any(|o| o.presence == Presence::Optional)
}
