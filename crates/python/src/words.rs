//! What the library says, in the words of Python: the command line's options become parameters.

use serde_json::Value;

/// Phrases of the command line, longer ones first. A blank stands for any, also for the end of a line.
const PHRASES: [(&str, &str); 16] = [
    ("note with --all", "note in `notes`"),
    ("notes with --all", "notes in `notes`"),
    ("with --all", "in `candidates`"),
    ("(--json has all)", "(`kernels` has all)"),
    ("`--emit ptx`", "`emit=\"ptx\"`"),
    (
        "`tune` (explain-term fusion)",
        "the command `warpwright tune`",
    ),
    (
        "waits for `tune`",
        "waits for the command `warpwright tune`",
    ),
    (
        "`warpwright explain`, `opt`, `sass`, passes over machine code, and `check` of two cubins read them",
        "`explain`, `optimise` and `check` of two cubins read them",
    ),
    (
        "`opt` proves its own steps before it writes",
        "`optimise` proves its own steps",
    ),
    (
        "arguments after `--` go to nvcc, but FILE is PTX",
        "`nvcc=` is for CUDA C, and this is PTX",
    ),
    (" (what is written here says -o in front of `--`)", ""),
    ("after `--`", "in `nvcc=`"),
    ("FILE is machine code", "this is machine code"),
    ("`pass --list`", "`warpwright pass --list`"),
    ("nothing is written", "nothing is given back"),
    ("say --gpu GPU", "give `gpu=`"),
];

/// Options that have a parameter.
const OPTIONS: [(&str, &str); 7] = [
    ("--block", "block="),
    ("--budget", "budget="),
    ("--dynamic-smem", "dynamic_smem="),
    ("--emit", "emit="),
    ("--gpu", "gpu="),
    ("--kernel", "kernels="),
    ("--recipe", "recipe="),
];

/// What names no text of ours: files, symbols and lines of code.
const NAMES: [&str; 7] = [
    "input",
    "kernel",
    "name",
    "original",
    "recipe",
    "rewritten",
    "source",
];

/// A text in Python's words.
pub fn python(text: &str) -> String {
    let mut text = text.to_owned();
    for (from, to) in PHRASES {
        text = replaced(&text, from, to);
    }
    for (option, parameter) in OPTIONS {
        text = with_parameter(&text, option, parameter);
    }
    text
}

/// A document, but for what is no text of ours.
pub fn python_document(document: &mut Value) {
    match document {
        Value::String(text) => *text = python(text),
        Value::Array(all) => all.iter_mut().for_each(python_document),
        Value::Object(fields) => {
            let ours = fields
                .iter_mut()
                .filter(|(key, value)| !(value.is_string() && NAMES.contains(&key.as_str())));
            ours.for_each(|(_, value)| python_document(value));
        }
        _ => {}
    }
}

/// A line's end within the phrase is one behind the first word of what takes its place.
fn replaced(text: &str, from: &str, to: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((at, length)) = found(rest, from) {
        out.push_str(&rest[..at]);
        let gap = &rest[at..at + length];
        let gap = gap.find('\n').map(|start| {
            let end = gap[start..].find(|c: char| !c.is_whitespace());
            &gap[start..end.map_or(gap.len(), |end| start + end)]
        });
        out.push_str(&match gap {
            Some(gap) => to.replacen(' ', gap, 1),
            None => to.to_owned(),
        });
        rest = &rest[at + length..];
    }
    out + rest
}

/// Where the phrase stands, and its length there.
fn found(text: &str, phrase: &str) -> Option<(usize, usize)> {
    let first = phrase.split(' ').find(|word| !word.is_empty())?;
    let lead = phrase.len() - phrase.trim_start().len();
    let starts = text.match_indices(first).map(|(at, _)| at);
    starts
        .filter_map(|at| at.checked_sub(lead))
        .filter(|&at| text.is_char_boundary(at))
        .find_map(|at| Some((at, matches(&text[at..], phrase)?)))
}

/// The length of the phrase at the begin of the text.
fn matches(text: &str, phrase: &str) -> Option<usize> {
    let mut rest = text;
    for (number, word) in phrase.split(' ').enumerate() {
        if number > 0 {
            let word = rest.trim_start();
            if word.len() == rest.len() {
                return None;
            }
            rest = word;
        }
        rest = rest.strip_prefix(word)?;
    }
    Some(text.len() - rest.len())
}

/// An option becomes its parameter: with its value behind it, without what stands for one.
fn with_parameter(text: &str, option: &str, parameter: &str) -> String {
    let mut parts = text.split(option);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if part.starts_with(|c: char| c == '-' || c.is_ascii_alphanumeric()) {
            // A longer option.
            out.push_str(option);
            out.push_str(part);
            continue;
        }
        let word = part.trim_start();
        let end = word.find(|c: char| c.is_whitespace() || ";:)`".contains(c));
        let (word, behind) = word.split_at(end.unwrap_or(word.len()));
        let is_quoted = out.ends_with('`');
        let is_value = word.starts_with(|c: char| c.is_ascii_digit());
        let stands_for_one = |c: char| c.is_ascii_uppercase() || "[]=,.".contains(c);
        let named = match is_quoted || is_value {
            true => parameter.to_owned(),
            false => format!("`{parameter}`"),
        };
        out.push_str(&named);
        if part.starts_with(char::is_whitespace) && is_value {
            out.push_str(word);
            out.push_str(behind);
        } else if part.starts_with(char::is_whitespace)
            && word.starts_with(|c: char| c.is_ascii_uppercase() || c == '[')
            && word.chars().all(stands_for_one)
        {
            out.push_str(word.strip_suffix(',').map_or("", |_| ","));
            out.push_str(behind);
        } else {
            out.push_str(part);
        }
    }
    out
}
