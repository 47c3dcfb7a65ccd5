//! `warpwright check --launch-a … --launch-b …`: a rewritten kernel at launches of its own.

use std::path::{Path, PathBuf};

use warpwright::{RewriteOptions, Word};
use warpwright_autotune::launches::{launch_file, nvcc as described_nvcc};
use warpwright_launch::{ContentsError, LaunchFile};
use warpwright_report::rewritten::screen;
use warpwright_report::screen::wrap;

use super::{print_json, write_page};
use crate::args::{CheckArgs, Cli};
use crate::failure::Failure;
use crate::{progress, session};
use warpwright::Input;
use warpwright_files::contents;

/// Runs the command. The exit code is 0 for what `--accept` names and better, 1 for what is refuted or wrong, else 5.
pub fn run(cli: &Cli, args: &CheckArgs, a: &Input, b: &Input) -> Result<(), Failure> {
    let paths = [&args.rewrite.launch_a, &args.rewrite.launch_b];
    if paths.iter().any(|paths| paths.is_empty()) {
        return Err(Failure::Usage(
            "--launch-a and --launch-b are wanted both: each version has launches of its own"
                .into(),
        ));
    }
    refuse_what_has_no_effect(args)?;
    let accepted = accepted(args.rewrite.accept.as_deref())?;
    let read = |at: usize| {
        let files = paths[at].iter().map(|path| launch_file(path));
        files.collect::<Result<Vec<LaunchFile>, _>>()
    };
    let files = |side: usize, number: usize, name: &str| {
        let folder = paths[side].get(number).and_then(|path| path.parent());
        let path = folder.unwrap_or(Path::new("")).join(name);
        contents(&path).map_err(|error| ContentsError::Reader(error.to_string().into()))
    };
    let nvcc = |input: &Input, at: usize| {
        described_nvcc(
            input,
            paths[at].first().map(|path| path.as_path()),
            &args.nvcc,
        )
    };
    let bar = progress::bar(None, "comparing");
    bar.turn();
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
        watch: &|done, of, next| bar.set_message(format!("comparing, {done} of {of} done: {next}")),
    };
    let optimizer = super::check::compiler(cli, [a, b])?;
    let document = optimizer.check_rewrite(a, b, &options);
    bar.finish_and_clear();
    let document = document?;
    write_page(args.show.report.as_deref(), &document)?;
    match args.show.json {
        true => print_json(&document)?,
        false => {
            let internal = |e: &dyn std::fmt::Display| Failure::Internal(e.to_string());
            let json = serde_json::to_value(&document).map_err(|e| internal(&e))?;
            print!("{}", screen(&json).map_err(|e| internal(&e))?);
        }
    }
    if !args.show.json && accepted < document.verdict && document.verdict <= Word::Tested {
        let (wanted, found) = (accepted.name(), document.verdict.name());
        let note = format!(
            "note: less than `{wanted}`: exit code 5; --accept {found} takes it, and says no more of other launches"
        );
        println!("{}", wrap(&note, "", "  ").join("\n"));
    }
    if !args.show.json
        && document.verdict > Word::Tested
        && let Some(note) = guesses([&args.rewrite.launch_a, &args.rewrite.launch_b])
    {
        println!("{}", wrap(&note, "", "  ").join("\n"));
    }
    let note = document.made_size_note(&options);
    if let Some(note) = note.filter(|_| !args.show.json) {
        println!("{}", wrap(note, "", "  ").join("\n"));
    }
    match document.verdict {
        word if word <= accepted => Ok(()),
        Word::Refuted | Word::WrongInput => Err(Failure::Quiet(1)),
        _ => Err(Failure::Quiet(5)),
    }
}

/// Kernels and blocks are those of the descriptions.
fn refuse_what_has_no_effect(args: &CheckArgs) -> Result<(), Failure> {
    let given = [
        ("--assume", args.assume.is_some()),
        ("--kernel", args.setup.kernel.is_some()),
        ("--block", args.block.is_some()),
        ("--dynamic-smem", args.dynamic_smem.is_some()),
    ];
    match session::first_given(&given) {
        Some(name) => Err(Failure::Usage(format!(
            "{name} says nothing beside --launch-a and --launch-b: their descriptions do"
        ))),
        None => Ok(()),
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

/// What descriptions mark as guesses of a launch, for who takes it for the rewrite's fault: a wrong one refutes as well.
/// What buffers hold does not count: for terms it is anything.
fn guesses(paths: [&[PathBuf]; 2]) -> Option<String> {
    let of = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        let file = launch_file(path).ok()?;
        let of_launch = |at: &&usize| {
            let line = text.lines().nth(**at - 1).unwrap_or_default();
            !line.starts_with("init")
        };
        let lines = file.guesses().iter().filter(of_launch);
        let lines: Vec<String> = lines.map(usize::to_string).collect();
        (!lines.is_empty()).then(|| format!("`{}` line {}", path.display(), lines.join(", ")))
    };
    let all: Vec<String> = paths.into_iter().flatten().filter_map(of).collect();
    (!all.is_empty()).then(|| {
        format!(
            "note: a wrong guess refutes as well, and these are guesses: {}",
            all.join("; ")
        )
    })
}
