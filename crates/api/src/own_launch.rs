//! What a file's own launches of its kernels say. It is a fact about these launches, and no promise of others.

use std::path::{Path, PathBuf};

use warpwright_host::own_launches;
use warpwright_pass::Seen;
use warpwright_pass::names::is_named;
use warpwright_ptx::Module;

use crate::input::in_utf8;
use crate::{Counted, Input, Level, Options, ran};

/// What the input's own program launched when it ran, if it did; of the other kernels [`own_launches`] of an input that is
/// CUDA C, and how many blocks a launch has whose sizes are known beyond what the text says in place, of those that are
/// counted.
pub fn seen(input: &Input, module: &Module, options: &Options) -> Vec<Seen> {
    let mut ran = ran::seen(&options.ran, module);
    let is_other = |seen: &Seen| ran.iter().all(|own| own.symbol != seen.symbol);
    let mut read = read(input, module, options);
    read.retain(is_other);
    ran.extend(read);
    ran
}

/// What the text says, and what is guessed.
fn read(input: &Input, module: &Module, options: &Options) -> Vec<Seen> {
    let text = input.text().ok().filter(|_| input.level == Level::Cuda);
    let nvcc = &options.nvcc;
    let mut all = text.map_or_else(Vec::new, |text| {
        own_launches(text, module, nvcc, &own_headers(&input.path, text, nvcc))
    });
    // What a launch says by way of its callers.
    let own = options.counted.iter();
    for own in own.filter(|own| !own.is_described() && own.is_known_block) {
        let symbol = &own.launch.kernel;
        let found = all.iter_mut().find(|seen| is_named(symbol, &seen.symbol));
        let known = Some(own.launch.block);
        match found {
            Some(seen) if seen.block.is_none() => (seen.block, seen.differ) = (known, false),
            Some(_) => {}
            None => all.push(Seen {
                symbol: symbol.clone(),
                block: known,
                ..Seen::default()
            }),
        }
    }
    for seen in all.iter_mut().filter(|seen| seen.grid.is_none()) {
        let own = options.counted.iter().find_map(
            |Counted {
                 launch, guessed, ..
             }| {
                let is_it =
                    seen.block == Some(launch.block) && is_named(&launch.kernel, &seen.symbol);
                Some((launch.grid_blocks(), guessed.as_ref().filter(|_| is_it)?))
            },
        );
        if let Some((blocks, guessed)) = own {
            seen.grid = Some(blocks);
            seen.guessed.clone_from(guessed);
        }
    }
    all
}

/// Headers of the user's that are read, at most.
const MOST_HEADERS: usize = 32;
/// Bytes of a header that is read, at most.
const LARGEST: u64 = 1 << 20;

/// The texts of the headers that a file and its headers include in quotes: from the folder of who includes them, or from
/// those of `-I`.
pub fn own_headers(path: &Path, text: &str, nvcc: &[String]) -> Vec<String> {
    headers(path, text, nvcc, &[('"', '"')]).0
}

/// The texts of the sources of a program and of all headers of theirs that lie in their folders or in those of `-I`; none
/// where one of these is not read.
pub fn texts_of_program(sources: &[(PathBuf, String)], nvcc: &[String]) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for (path, text) in sources {
        let (own, is_whole) = headers(path, text, nvcc, &[('"', '"'), ('<', '>')]);
        if !is_whole {
            return None;
        }
        all.push(text.clone());
        all.extend(own);
    }
    Some(all)
}

/// What names of headers stand between.
type Quotes = [(char, char)];

/// The texts of headers, and whether these are all that are there.
fn headers(path: &Path, text: &str, nvcc: &[String], quotes: &Quotes) -> (Vec<String>, bool) {
    let mut folders = Vec::new();
    for (at, option) in nvcc.iter().enumerate() {
        let folder = match option.strip_prefix("-I") {
            Some("") => nvcc.get(at + 1).map(String::as_str),
            folder => folder,
        };
        folders.extend(folder.map(PathBuf::from));
    }
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut open = included(text, path.parent(), &folders, quotes);
    let mut is_whole = true;
    while let Some(header) = open.pop() {
        if seen.contains(&header) {
            continue;
        }
        if seen.len() >= MOST_HEADERS {
            is_whole = false;
            continue;
        }
        let is_small = std::fs::metadata(&header).is_ok_and(|m| m.is_file() && m.len() <= LARGEST);
        seen.push(header.clone());
        let Some(text) = is_small
            .then(|| String::from_utf8(in_utf8(std::fs::read(&header).ok()?).0).ok())
            .flatten()
        else {
            is_whole = false;
            continue;
        };
        open.extend(included(&text, header.parent(), &folders, quotes));
        texts.push(text);
    }
    (texts, is_whole)
}

/// The files that a text includes, as far as they are there.
fn included(text: &str, own: Option<&Path>, folders: &[PathBuf], quotes: &Quotes) -> Vec<PathBuf> {
    let name = |line: &str| -> Option<String> {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("include")?.trim_start();
        let mut quotes = quotes.iter();
        let (name, _) = quotes.find_map(|(open, close)| {
            let rest = rest.strip_prefix(*open)?;
            rest.split_once(*close)
        })?;
        Some(name.to_owned())
    };
    let place = |name: String| {
        let own = own.map(Path::to_path_buf).into_iter();
        let mut all = own.chain(folders.iter().cloned());
        all.find_map(|folder| Some(folder.join(&name)).filter(|path| path.is_file()))
    };
    text.lines().filter_map(name).filter_map(place).collect()
}
