//! `warpwright explain-term`, `completions`, `man`: what there is to say about the command itself.

use clap::CommandFactory;
use warpwright_report::glossary::{explain, near, words};
use warpwright_report::screen::wrap;

use crate::args::{Cli, CompletionsArgs, ExplainTermArgs, ManArgs};
use crate::failure::Failure;
use warpwright_files::{make_folder, write_into};

/// Explains a word, or lists all of them.
pub fn explain_term(args: &ExplainTermArgs) -> Result<(), Failure> {
    let word = args.word.join(" ");
    if word.is_empty() {
        println!("{}", wrap(&words().join(", "), "", "").join("\n"));
        return Ok(());
    }
    let (word, text) = explain(&word).ok_or_else(|| {
        let near = near(&word);
        Failure::input(match near.is_empty() {
            true => format!(
                "`{word}` is no word of the glossary; it has {}",
                words().join(", ")
            ),
            false => format!(
                "`{word}` is no word of the glossary; near: {}",
                near.join(", ")
            ),
        })
    })?;
    println!("{word}\n{}", wrap(&text, "  ", "  ").join("\n"));
    Ok(())
}

/// Completions of a shell.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "warpwright", &mut text);
    crate::terminal::bytes(&text);
    Ok(())
}

/// One page for each command.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    make_folder(&args.folder)?;
    let mut command = with_dashes(Cli::command());
    command.build();
    pages(&command, &args.folder)
}

/// A command whose synopsis has the `--` that stands in front of another program's arguments.
fn with_dashes(command: clap::Command) -> clap::Command {
    let marked = |argument: clap::Arg| match (argument.is_last_set(), argument.get_id().as_str()) {
        (true, "nvcc") => argument.value_name("-- NVCC..."),
        (true, _) => argument.value_name("-- PROGRAM..."),
        (false, _) => argument,
    };
    command.mut_args(marked).mut_subcommands(with_dashes)
}

fn pages(command: &clap::Command, folder: &std::path::Path) -> Result<(), Failure> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)
        .map_err(|e| Failure::Internal(e.to_string()))?;
    write_into(folder, &page.get_filename(), &text)?;
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
    for sub in shown.filter(|c| c.get_name() != "help") {
        pages(sub, folder)?;
    }
    Ok(())
}
