//! Whether a program that stands beside a file is that file's: nobody wants another one to run.

use std::path::{Path, PathBuf};

use warpwright_api::Input;
use warpwright_api::own_launch::own_headers;
use warpwright_cudac::File;
use warpwright_cudac::diag::Source;

/// Does the program of a `main` use a file, by its text: is the file included, or is one of its kernels or functions
/// named as such, in the file of the `main` or in one beside it that the `main` uses itself?
pub fn to(input: &Input, text: &str, main: &Path, all: &[(PathBuf, String)]) -> bool {
    let others: Vec<&(PathBuf, String)> =
        all.iter().filter(|(path, _)| *path != input.path).collect();
    let mut open: Vec<&(PathBuf, String)> = others
        .iter()
        .copied()
        .filter(|(path, _)| path == main)
        .collect();
    let mut reached: Vec<&Path> = Vec::new();
    while let Some((path, own)) = open.pop() {
        reached.push(path);
        let mut texts = own_headers(path, own, &[]);
        texts.push(own.clone());
        let uses = |path: &Path, text: &str| {
            let names = names(text);
            let includes = |own: &String| own.lines().any(|line| includes(line, path));
            texts
                .iter()
                .any(|own| includes(own) || names.iter().any(|name| is_used(own, name)))
        };
        if uses(&input.path, text) {
            return true;
        }
        let next = others.iter().copied();
        open.extend(next.filter(|(path, text)| !reached.contains(&&**path) && uses(path, text)));
    }
    false
}

/// The kernels and functions that a file defines, but for `main`.
fn names(text: &str) -> Vec<String> {
    let Ok(file) = File::parse(Source::new("", text)) else {
        return Vec::new();
    };
    let all = file.kernels.iter().chain(&file.functions);
    let names = all.map(|header| header.name.text.clone());
    names.filter(|name| name != "main").collect()
}

fn includes(line: &str, file: &Path) -> bool {
    let name = file
        .file_name()
        .map(|name| name.to_string_lossy())
        .unwrap_or_default();
    let line = line.trim_start();
    let quoted = line.split(['"', '<', '>', '/']).any(|part| part == name);
    line.starts_with('#') && line.contains("include") && quoted
}

/// Is a function called, launched, declared, taken by its address or looked for by its name?
fn is_used(text: &str, name: &str) -> bool {
    words_at(text, name).any(|at| {
        let before = text[..at].trim_end().chars().next_back();
        let after = text[at + name.len()..].trim_start();
        let is_template = after.starts_with('<')
            && after
                .split(';')
                .next()
                .is_some_and(|own| own.contains(">(") || own.contains("<<<"));
        after.starts_with('(')
            || after.starts_with("<<<")
            || is_template
            || matches!(before, Some('"' | '&' | ')'))
                && !after.starts_with(['=', '+', '-', '*', '['])
    })
}

/// Where a text has a word that is no part of a longer one.
fn words_at<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let found = text.match_indices(word).map(|(at, _)| at);
    found.filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Has a text a word that is no part of a longer one?
pub fn has_word(text: &str, word: &str) -> bool {
    words_at(text, word).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_uses_a_function() {
        for text in [
            "k<<<1, 2>>>(p)",
            "k <<<1, 2>>> (p)",
            "k<int><<<1, 2>>>(p)",
            "void k(float *);",
            "cudaLaunchKernel((void*)k, 1, 2, a, 0, 0);",
            "cuModuleGetFunction(&f, m, \"k\");",
        ] {
            assert!(is_used(text, "k"), "{text}");
        }
        for text in [
            "for (int k = 0; k < n; k++) a[k] = k;",
            "int ok(int);",
            "// k is not used",
            "a.k = 1",
        ] {
            assert!(!is_used(text, "k"), "{text}");
        }
        assert!(includes("# include \"../src/k.cu\"", Path::new("a/k.cu")));
        assert!(!includes("#include \"ok.cu\"", Path::new("a/k.cu")));
    }
}
