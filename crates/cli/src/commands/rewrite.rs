//! `warpwright check --launch-a … --launch-b …`: a rewritten kernel at launches of its own.

use std::collections::BTreeSet;
use std::path::Path;

use warpwright::{
    Beyond, InPlace, Limit, Precondition, Reason, RewriteOptions, Rewritten, Which, Word,
};
use warpwright_launch::{ContentsError, LaunchFile};
use warpwright_report::screen::wrap;

use super::print_json;
use crate::args::{CheckArgs, Cli};
use crate::failure::Failure;
use crate::input::{Input, contents};
use crate::session;

/// Runs the command. The exit code is 0 for what `--accept` names and better, 1 for what is refuted or wrong, else 5.
pub fn run(cli: &Cli, args: &CheckArgs, a: &Input, b: &Input) -> Result<(), Failure> {
    let paths = [&args.rewrite.launch_a, &args.rewrite.launch_b];
    if paths.iter().any(|paths| paths.is_empty()) {
        return Err(Failure::Usage(
            "--launch-a and --launch-b are wanted both: each version has launches of its own"
                .into(),
        ));
    }
    let accepted = accepted(args.rewrite.accept.as_deref())?;
    if args.show.report.is_some() {
        return Err(Failure::Usage(
            "--report has no page of rewritten kernels: --json has all of it".to_owned(),
        ));
    }
    let read = |at: usize| {
        let files = paths[at].iter().map(|path| session::launch_file(path));
        files.collect::<Result<Vec<LaunchFile>, Failure>>()
    };
    let files = |side: usize, number: usize, name: &str| {
        let folder = paths[side].get(number).and_then(|path| path.parent());
        let path = folder.unwrap_or(Path::new("")).join(name);
        contents(&path).map_err(|error| ContentsError::Reader(error.to_string().into()))
    };
    let nvcc = |input: &Input, at: usize| {
        session::nvcc(
            input,
            paths[at].first().map(|path| path.as_path()),
            &args.nvcc,
        )
    };
    let options = RewriteOptions {
        launches: [read(0)?, read(1)?],
        files: &files,
        size: args.setup.size.clone(),
        set: session::overrides(&args.setup.set)?,
        pairs: pairs(&args.rewrite.pair)?,
        requires: args.rewrite.require.clone(),
        fixed: args.rewrite.fixed.clone(),
        ranges: ranges(&args.rewrite.range)?,
        only_described: args.rewrite.only_described,
        nvcc: [nvcc(a, 0)?, nvcc(b, 1)?],
    };
    let optimizer = super::check::compiler(cli, [a, b])?;
    let document = optimizer.check_rewrite(a, b, &options)?;
    match args.show.json {
        true => print_json(&document)?,
        false => print(&document),
    }
    if !args.show.json && accepted < document.verdict && document.verdict <= Word::Tested {
        let note = format!(
            "note: less than `{}`: exit code 5; --accept {} takes it",
            accepted.name(),
            document.verdict.name()
        );
        println!("{}", wrap(&note, "", "  ").join("\n"));
    }
    match document.verdict {
        word if word <= accepted => Ok(()),
        Word::Refuted | Word::WrongInput => Err(Failure::Quiet(1)),
        _ => Err(Failure::Quiet(5)),
    }
}

/// The worst verdict that is good enough.
fn accepted(word: Option<&str>) -> Result<Word, Failure> {
    let Some(word) = word else {
        return Ok(Word::ProvedAtLaunches);
    };
    let known = Word::ALL.into_iter().filter(|known| *known <= Word::Tested);
    let names: Vec<&str> = known.clone().map(Word::name).collect();
    known
        .into_iter()
        .find(|known| known.name() == word)
        .ok_or_else(|| Failure::Usage(format!("--accept {word}: it takes {}", names.join(", "))))
}

fn pairs(stated: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let split = |pair: &String| match pair.split_once('=') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() => Ok((a.to_owned(), b.to_owned())),
        _ => Err(Failure::Usage(format!(
            "--pair {pair}: it takes NAME=NAME, the original's first"
        ))),
    };
    stated.iter().map(split).collect()
}

fn ranges(stated: &[String]) -> Result<Vec<(String, f64, f64)>, Failure> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite());
    let range = |text: &String| {
        let (name, ends) = text.split_once('=')?;
        let (low, high) = ends.split_once("..")?;
        let (low, high) = (number(low)?, number(high)?);
        (!name.is_empty() && low <= high).then(|| (name.to_owned(), low, high))
    };
    let wrong = |text| Failure::Usage(format!("--range {text}: it takes NAME=LOW..HIGH"));
    let all = stated
        .iter()
        .map(|text| range(text).ok_or_else(|| wrong(text)));
    all.collect()
}

fn print(document: &Rewritten) {
    let count = document.launches.len();
    let launches = if count == 1 { "launch" } else { "launches" };
    let mut meaning = vec![meaning(document.verdict)];
    if document.verdict <= Word::Tested {
        meaning.extend(document.conditions.iter().map(String::as_str));
    }
    println!(
        "{}: {} at {count} {launches}",
        document.verdict.name(),
        meaning.join(", ")
    );
    let mut said = BTreeSet::new();
    for launch in &document.launches {
        println!(
            "  {}: {} ({} output elements, {} terms)",
            at(&launch.size, &launch.set),
            launch.verdict.name(),
            launch.elements,
            launch.terms
        );
        // What differs from what was said of an earlier launch by its numbers alone is not said again.
        let is_new =
            |reason: &&Reason| said.insert((launch.verdict, without_numbers(&reason.text)));
        for reason in launch.why.iter().filter(is_new) {
            println!("{}", wrap(&reason.text, "    ", "      ").join("\n"));
        }
    }
    if let Some(smallest) = &document.smallest {
        let why: Vec<&str> = smallest.why.iter().map(|why| &*why.text).collect();
        let place = at(&smallest.size, &smallest.set);
        let text = format!("the smallest that shows it, {place}: {}", why.join("; "));
        println!("{}", wrap(&text, "  ", "    ").join("\n"));
    }
    let mut said = BTreeSet::new();
    let reasons = document.skipped.iter().map(|s| (s.code, &*s.why));
    for (code, why) in reasons.filter(|reason| said.insert(*reason)) {
        let same = document.skipped.iter().filter(|s| s.why == why);
        let all: Vec<String> = same.map(|s| at(&s.size, &s.set)).collect();
        let what = match code {
            "original" => "not counted",
            _ => "not tried",
        };
        let text = format!("{what}, {}: {why}", all.join("; "));
        println!("{}", wrap(&text, "  ", "    ").join("\n"));
    }
    if let Some(found) = &document.holds_where {
        println!("{}", wrap(&holds_where(found), "  ", "    ").join("\n"));
    }
    for found in &document.in_place {
        println!("{}", wrap(&in_place(found), "  ", "    ").join("\n"));
    }
    for limit in &document.limits {
        println!("{}", wrap(&reach(limit), "  ", "    ").join("\n"));
    }
    for untried in &document.untried {
        let text = format!("not tried: {}", untried.text);
        println!("{}", wrap(&text, "  ", "    ").join("\n"));
    }
}

/// `right where n % 4 == 0, as far as tried …`
fn holds_where(found: &Precondition) -> String {
    let listed = |values: &[i64]| {
        let all: Vec<String> = values.iter().map(i64::to_string).collect();
        all.join(", ")
    };
    let Precondition {
        condition,
        name,
        right,
        wrong,
    } = found;
    format!(
        "right where {condition}, as far as tried: at {name} = {}, not at {} (`--require '{condition}'` tries more of them)",
        listed(right),
        listed(wrong)
    )
}

/// `in place, `out` being `x`: proved-at-launches`
fn in_place(found: &InPlace) -> String {
    let InPlace {
        output,
        input,
        verdict,
        why,
    } = found;
    match verdict {
        Word::WrongInput => {
            format!("not in place, `{output}` being `{input}`: nor is the original right there")
        }
        Word::Refuted => {
            let why: Vec<&str> = why.iter().map(|why| &*why.text).collect();
            format!(
                "not in place, `{output}` being `{input}`, where the original is right: {}",
                why.join("; ")
            )
        }
        word => format!("in place, `{output}` being `{input}`: {}", word.name()),
    }
}

/// `right up to n = 46340; at 46341 …`
fn reach(limit: &Limit) -> String {
    let Limit {
        name,
        up_to,
        beyond,
    } = limit;
    match beyond {
        None => {
            format!("no index leaves its memory up to {name} = {up_to}, in the blocks looked at")
        }
        Some(Beyond {
            value,
            which: Which::First,
            why,
        }) => {
            format!("right up to {name} = {up_to}, as the original is: at {name} = {value} {why}")
        }
        Some(Beyond { value, why, .. }) => format!(
            "right up to {name} = {up_to}, in the blocks looked at; beyond, an index wraps: at {name} = {value} {why}"
        ),
    }
}

/// `small with n=99`
fn at(size: &str, set: &[String]) -> String {
    match (size, set) {
        (size, []) => size.to_owned(),
        ("", set) => set.join(", "),
        (size, set) => format!("{size} with {}", set.join(", ")),
    }
}

fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn meaning(word: Word) -> &'static str {
    match word {
        Word::Proved => "the same for every launch of both, and shown",
        Word::ProvedAtLaunches => "the same bits for every input",
        Word::EqualButForNans => "the same bits for every input, NaN payloads apart",
        Word::EqualUpToRounding => {
            "the same for every input, up to rounding; NaN, infinities, overflow and underflow apart"
        }
        Word::Tested => "the same on the inputs tried",
        Word::Refuted => "not the same",
        Word::WrongInput => "no judge: the original or a description is wrong",
    }
}
