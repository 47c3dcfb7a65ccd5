//! A rung above what numbers show: both on terms, for every input at the trial's launches ([`warpwright_rewrite`]).

use warpwright_emu::symbolic::{Clash, FaultClass, Options as Machine};
use warpwright_ptx::Module;
use warpwright_rewrite::{Options, Paired, Side, Standing, Step, Why, compare};

use crate::emulated::{Described, described};
use crate::{Array, Element, Original, Run, Trial};

/// Terms and warp instructions of a comparison: a trial is small.
const TERMS: usize = 1 << 18;
const INSTRUCTIONS: u64 = 1 << 18;

/// What terms say of a rewrite.
pub(crate) enum Said {
    /// The same for every input: the same bits, or up to rounding where sums were reordered.
    Proved,
    /// Not the same, or at fault, and how.
    Refuted(String),
    /// No more than numbers do.
    Nothing,
}

/// Compares what a rewrite launches with the original on terms.
pub(crate) fn said(trial: &Trial, run: &Run, module: &Module) -> Said {
    let Original::Run(original) = &trial.original else {
        return Said::Nothing;
    };
    let sides = [("original", original), ("rewrite", run)]
        .map(|(name, of)| side(trial, (name, of), module));
    let [Some(a), Some(b)] = sides else {
        return Said::Nothing;
    };
    let Ok(paired) = Paired::of(&a, &b, &[]) else {
        return Said::Nothing;
    };
    let options = Options {
        machine: Machine {
            terms: TERMS,
            budget: INSTRUCTIONS,
            ..Machine::default()
        },
        terms_alone: true,
        ..Options::default()
    };
    let found = compare(&a, &b, &paired, &options);
    match found.standing {
        Standing::BitForBit => Said::Proved,
        Standing::ButNans | Standing::UpToRounding if run.is_reordered => Said::Proved,
        // An element that is read beside the last one, and not used, may be written by another thread meanwhile.
        Standing::Refuted if found.why.iter().any(is_race_with_a_read) => Said::Nothing,
        Standing::Refuted => {
            let why: Vec<String> = found.why.iter().map(ToString::to_string).collect();
            Said::Refuted(why.join("; "))
        }
        _ => Said::Nothing,
    }
}

fn is_race_with_a_read(why: &Why) -> bool {
    let Why::Faulty { fault, .. } = why else {
        return false;
    };
    matches!(fault.class, FaultClass::Race(clash) if clash != Clash::WriteAfterWrite)
}

/// All launches of a run. Arrays have one name on both sides, what is between launches has one of its own.
fn side(trial: &Trial, (name, of): (&str, &Run), module: &Module) -> Option<Side> {
    let buffers = |place: Option<usize>| match place {
        None => (
            String::new(),
            "type = \"u64\"\nshape = [8]\ninit = \"poison\"".to_owned(),
        ),
        Some(place) => match trial.arrays.get(place) {
            Some(array) => (format!("array {place}"), of_array(array)),
            None => {
                let bytes = of
                    .scratch
                    .get(place - trial.arrays.len())
                    .map_or(0, Vec::len);
                let what = format!("type = \"u8\"\nshape = [{bytes}]\ninit = \"poison\"");
                (format!("{name} {place}"), what)
            }
        },
    };
    let held = |place: usize| {
        let arrays = trial.arrays.iter().map(|array| &array.bytes);
        arrays.chain(&of.scratch).nth(place).cloned()
    };
    let steps = of.launches.iter().map(|launch| {
        let arguments = (&of.arguments[..], of.offset);
        let Described {
            launch,
            program,
            places,
        } = described(module, launch, arguments, &buffers).ok()?;
        let contents = places.iter().zip(launch.buffers());
        let contents = contents.map(|(place, buffer)| match place {
            Some(place) => held(*place),
            None => Some(vec![0; buffer.size()]),
        });
        let contents = contents.collect::<Option<Vec<Vec<u8>>>>()?;
        Some(Step {
            program,
            launch,
            contents,
        })
    });
    Some(Side {
        name: name.to_owned(),
        steps: steps.collect::<Option<Vec<Step>>>()?,
    })
}

/// An array in the words of launch descriptions; whole numbers stay as they are where terms do not do.
fn of_array(array: &Array) -> String {
    let (ty, init) = match array.element {
        Element::Single => ("f32", "{ kind = \"uniform\", low = 0.25, high = 1.25 }"),
        Element::Double => ("f64", "{ kind = \"uniform\", low = 0.25, high = 1.25 }"),
        Element::Exact(2) => ("u16", WHOLE),
        Element::Exact(4) => ("u32", WHOLE),
        Element::Exact(8) => ("u64", WHOLE),
        Element::Exact(_) => ("u8", WHOLE),
    };
    let size = match ty {
        "u8" => 1,
        _ => array.element.size(),
    };
    format!(
        "type = \"{ty}\"\nshape = [{}]\noutput = true\ninit = {init}",
        array.bytes.len() / size
    )
}

const WHOLE: &str = "{ kind = \"indices\", bound = 256 }";
