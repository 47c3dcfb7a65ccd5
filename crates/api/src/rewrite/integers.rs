//! Arguments that no size decides: integers have a few other values, and the verdict says at which values all was tried.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_launch::{Arg, Launch, LaunchFile};

use super::{RewriteOptions, Try, number_names, resolved};

/// An integer that may be a length without a size: it is at least so large and divides the elements of a buffer.
const LEAST_LENGTH: i128 = 8;

/// Each integer that both sides have alike, one more and one less (or two more): a version that does without one is found.
/// What is fixed stays, and so does what may be a length.
pub(super) fn tries(options: &RewriteOptions<'_>, smallest: &Try) -> Vec<Try> {
    let Ok(launches) = resolved(options, smallest) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (name, own) in common(options, &launches) {
        if options.fixed.contains(&name) || launches.iter().any(|l| is_length(l, own)) {
            continue;
        }
        let other = if own == 0 { 2 } else { own - 1 };
        for value in [own + 1, other] {
            let fits = |arg: &Arg| arg.ty.is_some_and(|ty| ty.int_bits(value).is_some());
            let mut args = launches.iter().flat_map(|launch| &launch.args);
            if args.all(|arg| arg.name != name || fits(arg)) {
                all.push(Try {
                    integers: vec![(name.clone(), value)],
                    derived: true,
                    ..smallest.clone()
                });
            }
        }
    }
    all
}

/// Integers of one name and value in all launches.
fn common(options: &RewriteOptions<'_>, launches: &[Launch]) -> BTreeMap<String, i128> {
    let files: Vec<&LaunchFile> = options.launches.iter().flatten().collect();
    let alike = |(launch, file): (&Launch, &&LaunchFile)| {
        let names: BTreeSet<&str> = file.integers().into_iter().collect();
        let args = launch.args.iter();
        let own = args.filter(|arg| names.contains(&*arg.name));
        own.filter_map(|arg| Some((arg.name.clone(), value(arg)?)))
            .collect::<BTreeMap<String, i128>>()
    };
    let mut all = launches.iter().zip(&files).map(alike);
    let first = all.next().unwrap_or_default();
    all.fold(first, |mut known, other| {
        known.retain(|name, value| other.get(name) == Some(value));
        known
    })
}

fn value(arg: &Arg) -> Option<i128> {
    let ty = arg.ty.filter(|ty| !ty.is_float())?;
    Some(ty.to_int(ty.read(&arg.bytes)))
}

fn is_length(launch: &Launch, value: i128) -> bool {
    let mut lengths = launch.buffers().map(|buffer| buffer.len as i128);
    value >= LEAST_LENGTH && lengths.any(|length| length % value == 0)
}

/// At which values of arguments that no size decides all was tried: `at seed = 7, 8 and 6`.
pub(super) fn stated(options: &RewriteOptions<'_>, tries: &[&Try]) -> Option<String> {
    let launches = resolved(options, tries.first()?).ok()?;
    let floats = number_names(options);
    let mut values: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let files = options.launches.iter().flatten();
    for (launch, file) in launches.iter().zip(files) {
        let constants = file.constants();
        let own = launch
            .args
            .iter()
            .filter(|arg| constants.contains(&&*arg.name) || floats.contains(&&*arg.name));
        own.for_each(|arg| remember(values.entry(&arg.name).or_default(), described(arg)));
        for name in constants {
            values
                .entry(name)
                .or_insert_with(|| vec!["described".to_owned()]);
        }
    }
    for at in tries {
        for (name, value) in &at.numbers {
            remember(values.entry(name).or_default(), value.to_string());
        }
        for (name, value) in &at.integers {
            remember(values.entry(name).or_default(), value.to_string());
        }
    }
    let one = |(name, all): (&str, Vec<String>)| format!("{name} = {}", listed(&all));
    let all: Vec<String> = values.into_iter().map(one).collect();
    (!all.is_empty()).then(|| format!("at {}", all.join(", ")))
}

fn described(arg: &Arg) -> String {
    let number = arg.ty.filter(|ty| ty.is_float());
    match (number, value(arg)) {
        (Some(ty), _) => ty.to_f64(ty.read(&arg.bytes)).to_string(),
        (None, Some(value)) => value.to_string(),
        (None, None) => "described".to_owned(),
    }
}

fn remember(all: &mut Vec<String>, value: String) {
    if !all.contains(&value) {
        all.push(value);
    }
}

/// `7, 8 and 6`
fn listed(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
