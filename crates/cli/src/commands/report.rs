//! `warpwright report`: the tables and plots of the documentation from result files.

use std::path::{Path, PathBuf};
use warpwright_driver::tune::{SUITE_SCHEMA, Suite};
use warpwright_report::suite::{agreement, figure, replace_between, summary, table};
use warpwright_report::{crat, spills, stencils};

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::input::write_atomically;

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    if args.agree {
        let [first, second] = &args.results[..] else {
            return Err(Failure::Usage("--agree compares two result files".into()));
        };
        let text = agreement(&load(first)?, &load(second)?);
        for markdown in &args.markdown {
            rewrite(markdown, "agreement", &text)?;
        }
        print!("{text}");
        return Ok(());
    }
    if args.spills {
        let text = spills::table(&merged(&args.results)?);
        let names: Vec<String> = args
            .results
            .iter()
            .map(|p| format!("`{}`", p.display()))
            .collect();
        for markdown in &args.markdown {
            let text = format!("{text}\nFrom {}.", names.join(" and "));
            rewrite(markdown, "spills", &text)?;
        }
        if args.markdown.is_empty() {
            println!("{text}");
        }
        return Ok(());
    }
    for path in &args.results {
        if let Some(goals) = &args.stencils {
            let text = stencils::table(&read_json(path)?, &read_json(goals)?);
            for markdown in &args.markdown {
                let text = format!("{text}\nFrom `{}`.", path.display());
                rewrite(markdown, "stencils", &text)?;
            }
            if args.markdown.is_empty() {
                println!("{text}");
            }
            continue;
        }
        let suite = load(path)?;
        let held_out: Vec<&str> = args.held_out.iter().map(String::as_str).collect();
        let (marker, text) = match (args.summary, args.crat, args.one_block_more) {
            (true, ..) => ("summary", summary(&suite, &held_out)),
            (_, true, _) => ("crat", crat::table(&suite)),
            (.., true) => ("one-block-more", crat::one_block_more(&suite)),
            _ => ("suite", table(&suite, &held_out)),
        };
        for markdown in &args.markdown {
            rewrite(
                markdown,
                marker,
                &format!("{text}\nFrom `{}`.", path.display()),
            )?;
        }
        if let Some(folder) = &args.plots {
            let stem = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let file = folder.join(format!("{stem}.svg"));
            write_atomically(&file, figure(&suite).as_bytes())?;
        }
        if args.markdown.is_empty() && args.plots.is_none() {
            println!("{text}");
        }
    }
    Ok(())
}

/// Puts text between the markers of a Markdown file.
fn rewrite(markdown: &Path, marker: &str, text: &str) -> Result<(), Failure> {
    let old = std::fs::read_to_string(markdown)
        .map_err(|e| Failure::input(format!("cannot read `{}`: {e}", markdown.display())))?;
    let new = replace_between(&old, marker, text)
        .map_err(|e| Failure::input(format!("`{}`: {e}", markdown.display())))?;
    write_atomically(markdown, new.as_bytes())
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let bad = |e: String| Failure::input(format!("`{}`: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| bad(e.to_string()))
}

/// One suite of several files: kernels of later ones replace those of the same name.
fn merged(paths: &[PathBuf]) -> Result<Suite, Failure> {
    let mut suites = paths.iter().map(|path| load(path));
    let mut all = match suites.next() {
        Some(first) => first?,
        None => return Err(Failure::Usage("a result file is wanted".into())),
    };
    for suite in suites {
        for kernel in suite?.kernels {
            let name = &kernel.report.name;
            match all
                .kernels
                .iter_mut()
                .find(|known| known.report.name == *name)
            {
                Some(known) => *known = kernel,
                None => all.kernels.push(kernel),
            }
        }
    }
    Ok(all)
}

fn load(path: &Path) -> Result<Suite, Failure> {
    let bad = |e: String| Failure::input(format!("`{}`: {e}", path.display()));
    let suite: Suite = read_json(path)?;
    if suite.schema != SUITE_SCHEMA {
        return Err(bad(format!(
            "schema `{}`, wanted `{SUITE_SCHEMA}`",
            suite.schema
        )));
    }
    Ok(suite)
}
