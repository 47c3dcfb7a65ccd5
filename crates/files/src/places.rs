//! Before any work: can everything be written where it is to go, and is nothing of it an input?

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use warpwright_diag::Problem;
use warpwright_winners::aside::Aside;

use crate::kind::{Kind, ending};
use crate::paths::{behind_links, descriptor, folder_of, identity, is_stdout, place};
use crate::writing::{cannot_write, is_a_folder, is_an_input, open_pipe, opened};

/// What a command reads and writes, as its arguments say.
#[derive(Debug, Default)]
pub struct Places<'a> {
    /// Files that it reads.
    pub reads: Vec<&'a Path>,
    /// Files that it writes.
    pub writes: Vec<&'a Path>,
    /// Pages that it writes.
    pub pages: Vec<&'a Path>,
    /// Folders that it writes into, and makes if they are not there.
    pub folders: Vec<&'a Path>,
    /// A document was asked for (--json), and takes stdout.
    pub is_document: bool,
    /// A trace that it writes, which has a folder beside it.
    pub trace: Option<&'a Path>,
    /// A program that it runs, and its arguments.
    pub program: &'a [OsString],
}

/// The folder of modules beside a trace.
pub fn modules_beside(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".modules");
    name.into()
}

/// The files that the words of a command line name, the program first.
fn files_of(words: &[OsString]) -> Vec<PathBuf> {
    let Some((program, others)) = words.split_first() else {
        return Vec::new();
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |path: &PathBuf| {
        let data = std::fs::metadata(path);
        data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let program = match program.as_bytes().contains(&b'/') {
        true => Some(PathBuf::from(program)),
        false => std::env::split_paths(&path)
            .map(|folder| folder.join(program))
            .find(is_program),
    };
    // `--input=FILE`
    let behind = |word: &OsString| {
        let mut parts = word.as_bytes().splitn(2, |&byte| byte == b'=').skip(1);
        parts
            .next()
            .map(|file| PathBuf::from(std::ffi::OsStr::from_bytes(file)))
    };
    let others = others
        .iter()
        .flat_map(|word| [Some(PathBuf::from(word)), behind(word)]);
    let all = std::iter::once(program).chain(others).flatten();
    all.filter(|path| path.is_file()).collect()
}

/// What standard input, output or error is, if it is a file.
fn standard(number: i32) -> Option<(u64, u64)> {
    let data = opened(number).and_then(|file| file.metadata()).ok()?;
    data.is_file().then(|| (data.dev(), data.ino()))
}

impl Places<'_> {
    /// Before any work: can everything be written where it is to go, and is nothing of it an input, under
    /// whatever name?
    ///
    /// # Errors
    /// [`Problem::Usage`] or [`Problem::Input`], of the first place that is none.
    pub fn check(&self) -> Result<(), Problem> {
        let all = self.writes.iter().chain(&self.trace).chain(&self.pages);
        let written: Vec<&Path> = all.copied().collect();
        let words = files_of(self.program);
        if let Some(path) = self.trace {
            check_trace(path)?;
        }
        for (number, &path) in written.iter().enumerate() {
            if is_stdout(path) && self.is_document {
                return Err(Problem::Usage(
                    "--json puts a document on stdout, where `-o -` puts the result: name a file for one of the two"
                        .to_owned(),
                ));
            }
            if is_stdout(path) {
                continue;
            }
            if path.is_dir() {
                return Err(is_a_folder(path));
            }
            let file = identity(path);
            let is_same = |other: &&Path| match (file, identity(other)) {
                (Some(a), Some(b)) => a == b,
                (None, None) => place(path) == place(other),
                _ => false,
            };
            let kind = std::fs::metadata(path).ok().map(|data| data.file_type());
            if let (Some(kind), Some(pipe), None) = (kind, file, descriptor(path))
                && kind.is_fifo()
            {
                open_pipe(path, pipe).map_err(|e| cannot_write(path, &e))?;
            }
            if kind.is_some_and(|kind| !kind.is_file()) || descriptor(path).is_some() {
                continue;
            }
            // Programs read these, and not this process.
            if ["winner", "imported"].contains(&&*ending(path)) && path.exists() {
                let text = format!("`{}` is a winner, in the store itself", path.display());
                return Err(Problem::Input(text));
            }
            let words = words.iter().map(PathBuf::as_path);
            let is_standard = |number: i32| file.is_some() && standard(number) == file;
            if self
                .reads
                .iter()
                .copied()
                .chain(words)
                .any(|read| is_same(&read))
                || is_standard(0)
            {
                return Err(is_an_input(path));
            }
            if written[..number].iter().any(is_same) || is_standard(1) || is_standard(2) {
                let text = format!("`{}` is to be written twice", path.display());
                return Err(Problem::Input(text));
            }
            let real = behind_links(path).map_err(|e| cannot_write(path, &e))?;
            Aside::new_in(folder_of(&real)).map_err(|e| cannot_write(path, &e))?;
        }
        for page in &self.pages {
            Kind::Page.fits(page)?;
        }
        let modules = self.trace.map(modules_beside);
        for folder in self.folders.iter().copied().chain(modules.as_deref()) {
            // The first part of the path that is there.
            let there = folder.ancestors().find(|part| part.exists());
            let there = there.unwrap_or(Path::new("."));
            Aside::new_in(there).map_err(|e| cannot_write(folder, &e))?;
        }
        Ok(())
    }
}

/// A trace has its modules beside it.
fn check_trace(path: &Path) -> Result<(), Problem> {
    let is_file = std::fs::metadata(path).map_or(true, |found| found.is_file() || found.is_dir());
    match is_file && !is_stdout(path) && descriptor(path).is_none() {
        true => Ok(()),
        false => Err(Problem::Input(format!(
            "`{}` is no file, and the modules of a trace go into a folder beside it: name a file, or take --json",
            path.display()
        ))),
    }
}
