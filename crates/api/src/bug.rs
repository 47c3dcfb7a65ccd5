//! What a report about an input needs (versions, the choice or the failure, the kernel's PTX), without a path of this machine in
//! it. Text in the kernel's data is blanked: formats of printf, the file names of assert.

use std::fmt::Write;
use std::path::Path;

use warpwright_diag::Problem;
use warpwright_driver::opt::{DEFAULT_BUDGET, DEFAULT_MARGIN, Request};
use warpwright_driver::{KernelReport, Peers, Proofs};
use warpwright_gpu::DeviceInfo;
use warpwright_pass::ptx::slice::slice;
use warpwright_pass::{Artifact, Scope};
use warpwright_toolkit::{BuildCache, Toolkit};

use crate::front::{target, verified};
use crate::optimise::{Watch, explore_input, launch_among, ptxas_version, workshop};
use crate::own_launch::seen;
use crate::source::{Tools, quoted};
use crate::{DeviceCode, Error, Input, Level, Options};

/// What is told of an input.
pub struct Told<'a> {
    /// The version of Warpwright.
    pub version: &'a str,
    /// The GPUs of this machine.
    pub devices: &'a [DeviceInfo],
    /// What the command line says.
    pub options: String,
    /// What `opt` chooses; or the exit code, and the message as people see it.
    pub found: Result<Vec<KernelReport>, (u8, String)>,
    /// The launch description.
    pub launch: Option<String>,
    /// The PTX, if there is any.
    pub ptx: Option<String>,
}

/// The report, in Markdown.
///
/// # Errors
/// The input is a stencil, and no text.
pub fn report(tools: &Tools<'_>, input: &Input, told: Told<'_>) -> Result<String, Error> {
    let mut text = heading(tools, input, &told);
    let _ = writeln!(text, "- options:{}", told.options);
    text += ASKED;
    match told.found {
        Ok(reports) if reports.is_empty() => {}
        Ok(mut reports) => {
            // What changes stands first.
            reports.sort_by_key(|report| report.chosen == 0);
            text += "\n## The choice\n\n";
            if input.level == Level::Cuda {
                text += "Without a run of the file's own program, by which `opt` may choose otherwise (`opt --no-run` does not).\n\n";
            }
            for report in &reports {
                let _ = writeln!(
                    text,
                    "- `{}`, block {:?} ({}): `{}`; {}",
                    report.name,
                    report.block,
                    report.block_source,
                    report.candidates[report.chosen].recipe,
                    report.reason
                );
            }
        }
        Err((code, shown)) => {
            let _ = writeln!(
                text,
                "\n## The failure\n\nexit code {}\n\n```\n{}\n```",
                code,
                shown.trim_end()
            );
        }
    }
    if let Some(launch) = &told.launch {
        let launch = launch.trim_end();
        let _ = writeln!(text, "\n## The launch description\n\n```\n{launch}\n```");
    }
    match told.ptx {
        Some(ptx) => {
            let (ptx, blanked) = without_text(&ptx);
            text += "\n## PTX\n";
            if blanked > 0 {
                let _ = writeln!(
                    text,
                    "\nText in its data is blanked: {blanked} bytes are `x` here ({X})."
                );
            }
            let _ = writeln!(text, "\n```\n{}\n```", ptx.trim_end());
        }
        None if input.level == Level::Stencil => {
            let source = input.text()?.trim_end();
            let _ = writeln!(text, "\n## The stencil\n\n```\n{source}\n```");
        }
        None => {
            text += "\nThere is no PTX to show, and nobody can run this again without the file: please attach it if you \
                     may. It holds the names of its kernels, the text in their data, and names of source files where it \
                     was built with -lineinfo or -G.\n";
        }
    }
    Ok(without_places(&text, &input.path))
}

/// What only the sender knows, and where it goes.
const ASKED: &str = "
Send it as a new issue, with the template 'Something went wrong' (.github/ISSUE_TEMPLATE/bug.md).

## What I expected

…

## What I saw

…
";

/// An option of nvcc: of an absolute path nothing, of another one its name.
pub fn option(word: &str) -> String {
    let mut slashes = word.match_indices('/').map(|(at, _)| at);
    // Behind `-I`, `-L` and the like a path begins at once.
    let is_start = |at: &usize| begins_a_path(&word[..*at]) || (*at == 2 && word.starts_with('-'));
    match (slashes.find(is_start), word.rsplit_once('/')) {
        (Some(0), _) => "…".to_owned(),
        (Some(at), _) => format!("{}…", quoted(&word[..at])),
        (None, Some((_, name))) => format!("…/{}", quoted(name)),
        (None, None) => quoted(word),
    }
}

/// May a slash behind this text be the root of a path?
fn begins_a_path(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || "_-./…~".contains(c))
}

/// Versions, machine and input.
fn heading(tools: &Tools<'_>, input: &Input, told: &Told<'_>) -> String {
    let level = match input.level {
        Level::Stencil => "a stencil",
        Level::Cuda => "CUDA C",
        Level::Ptx => "PTX",
        Level::Cubin => "a cubin",
        Level::Fat => "a file with cubins in it",
    };
    let digest = warpwright_driver::database::hash(&[&input.bytes]);
    let ptxas = tools.toolkit().ok().and_then(ptxas_version);
    format!(
        "# A report about Warpwright\n\n\
         - warpwright {}\n- ptxas {}\n{}- {} {}\n- {level}, {} bytes, digest {digest}\n",
        told.version,
        ptxas.as_deref().unwrap_or("not found"),
        gpus(told.devices),
        std::env::consts::OS,
        std::env::consts::ARCH,
        input.bytes.len(),
    )
}

/// The GPUs of this machine and their driver, a line each.
fn gpus(found: &[DeviceInfo]) -> String {
    let line = |device: &DeviceInfo| {
        let driver = device.driver.as_deref().unwrap_or("unknown");
        format!("- {}, driver {driver}\n", device.name)
    };
    match found.is_empty() {
        true => "- no GPU\n".to_owned(),
        false => found.iter().map(line).collect(),
    }
}

/// What `opt` chooses. The PTX is left behind whatever happens after it is known.
///
/// # Errors
/// As of `opt`.
pub fn choices(
    tools: &Tools<'_>,
    input: &Input,
    options: &Options,
    ptx: &mut Option<String>,
    watch: &dyn Watch,
) -> Result<Vec<KernelReport>, Error> {
    let own;
    let mut scope = options.scope();
    let is_code = matches!(input.level, Level::Cubin | Level::Fat);
    let artifacts = match is_code {
        true => {
            let code = DeviceCode::of(input, scope.gpu.as_ref())?.with_kernels(scope.kernels)?;
            let cubins = code.cubins.iter().filter(|cubin| cubin.has_kernels());
            let artifacts = cubins.map(|cubin| Artifact::cubin(cubin.bytes.clone()));
            let artifacts: Result<Vec<_>, _> = artifacts.collect();
            artifacts.map_err(|error| Problem::Input(error.to_string()))?
        }
        false => {
            if input.level == Level::Ptx {
                *ptx = Some(input.text()?.to_owned());
            }
            let module = tools.module(input, scope.gpu.as_ref(), false)?;
            own = seen(input, &module, options);
            scope.seen = &own;
            *ptx = Some(module.source.to_string());
            scope.gpu = Some(target(&module, scope.gpu)?);
            vec![verified(module)?]
        }
    };
    if artifacts.is_empty() {
        return Err(Problem::Input(format!("`{}` has no kernel", input.name)).into());
    }
    let mut launch = None;
    if let Some(described) = scope.launch {
        let all = Scope {
            kernels: &[],
            ..scope
        };
        let kernels: Result<Vec<_>, _> = artifacts.iter().map(|of| all.kernels(of)).collect();
        launch = Some(launch_among(described, &input.name, &kernels?.concat())?);
    }
    scope.launch = launch.as_ref();
    let toolkit: Option<&Toolkit> = tools.toolkit().ok().filter(|t| t.ptxas().is_ok());
    let cache = BuildCache::standard();
    let mut reports = Vec::new();
    for artifact in &artifacts {
        let kernels = scope.kernels(artifact)?;
        if let (Some(module), [kernel]) = (artifact.as_module(), &kernels[..])
            && let Some(alone) = slice(module, kernel)
        {
            *ptx = Some(alone.source.to_string());
        }
        let gpu = scope.gpu(artifact)?;
        let arch = gpu.target();
        let shop = toolkit
            .filter(|_| !is_code)
            .map(|toolkit| workshop(toolkit, &cache, &arch, artifact));
        let request = Request {
            gpu: &gpu,
            scope,
            peers: Peers::None,
            ptx_only: false,
            margin: DEFAULT_MARGIN,
            budget: DEFAULT_BUDGET,
            proofs: Proofs::Choice,
            is_searched: false,
        };
        let known = |_: &str| Default::default();
        let of = toolkit.map(|toolkit| (input, (toolkit, &cache)));
        let outcomes = explore_input(of, shop.as_ref(), artifact, &request, &known, watch)?;
        reports.extend(outcomes.into_iter().map(|outcome| outcome.report));
    }
    Ok(reports)
}

/// The letter that stands for text.
const X: u8 = b'x';

/// PTX without the text in its data, and how many bytes that were: in arrays of single bytes, every run of four or more
/// characters is `x`, so that sizes, alignment and ends of strings stay. Sections of debuggers go whole.
fn without_text(ptx: &str) -> (String, usize) {
    let (mut out, mut rest, mut blanked) = (String::new(), ptx, 0);
    while let Some(open) = rest.find('{') {
        let before = &rest[..open];
        let statement = before.rsplit([';', '}']).next().unwrap_or(before);
        let end = open + closing(&rest[open..]);
        if statement.contains(".section") {
            out.push_str(before);
            out.push_str("{ }");
            rest = &rest[end..];
            continue;
        }
        let is_bytes = [".b8 ", ".u8 ", ".s8 "]
            .iter()
            .any(|ty| statement.contains(ty));
        if !(is_bytes && before.trim_end().ends_with('=')) {
            out.push_str(&rest[..=open]);
            rest = &rest[open + 1..];
            continue;
        }
        out.push_str(before);
        let words = words(&rest[open..end]);
        let bytes: Vec<Option<u8>> = words.iter().map(|word| byte(word)).collect();
        let numbers: Vec<usize> = (0..words.len()).filter(|&at| words[at].is_value).collect();
        let mut hidden: std::collections::BTreeSet<usize> = Default::default();
        // Bytes beyond ASCII are text as a part of UTF-8 alone.
        for run in runs(&numbers, |at| bytes[at].is_some_and(is_text)) {
            let text: Vec<u8> = run.iter().filter_map(|&at| bytes[at]).collect();
            match std::str::from_utf8(&text) {
                Ok(_) => hidden.extend(run),
                Err(_) => {
                    let is_ascii = |at: usize| bytes[at].is_some_and(|b| b < 0x80);
                    hidden.extend(runs(run, is_ascii).flatten());
                }
            }
        }
        blanked += hidden.len();
        for (at, word) in words.iter().enumerate() {
            match hidden.contains(&at) {
                true => out.push_str(&X.to_string()),
                false => out.push_str(word.text),
            }
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    (out, blanked)
}

/// The runs of four or more numbers that are text.
fn runs(numbers: &[usize], is_text: impl Fn(usize) -> bool) -> impl Iterator<Item = &[usize]> {
    const SHORTEST: usize = 4;
    let runs = numbers.split(move |&at| !is_text(at));
    runs.filter(|run| run.len() >= SHORTEST)
}

/// Bytes to behind the brace that closes the first one; all of them where none does.
fn closing(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// A part of an initialiser.
struct Word<'t> {
    text: &'t str,
    /// A number or a name, and nothing between them.
    is_value: bool,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let is_value = |c: char| c.is_alphanumeric() || "_$%+-()".contains(c);
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = is_value(first);
        let end = rest.find(|c| is_value(c) != kind).unwrap_or(rest.len());
        words.push(Word {
            text: &rest[..end],
            is_value: kind,
        });
        rest = &rest[end..];
    }
    words
}

fn byte(word: &Word) -> Option<u8> {
    let text = word.text;
    let value = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse::<i64>(),
    };
    // -61 and 195 are the same byte.
    let value = value.ok().filter(|v| (-128..256).contains(v))?;
    Some(value.rem_euclid(256) as u8)
}

/// A printable character, white space, or a part of one beyond ASCII.
fn is_text(byte: u8) -> bool {
    byte >= 0x80 || byte == b' ' || byte.is_ascii_graphic() || (b'\t'..=b'\r').contains(&byte)
}

/// The text without folders of this machine: that of FILE, the current one, the home, and those in `.file` lines.
fn without_places(text: &str, file: &Path) -> String {
    let real = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folders = [
        file.parent().map(Path::to_path_buf),
        real.parent().map(Path::to_path_buf),
        std::env::current_dir().ok(),
        std::env::var_os("HOME").map(Into::into),
    ];
    let mut folders: Vec<String> = folders
        .into_iter()
        .flatten()
        .map(|folder| folder.display().to_string())
        .filter(|folder| folder.len() > 1)
        .collect();
    // The longest first: a folder within another one goes whole.
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
    let mut text = text.to_owned();
    for folder in folders {
        text = without_folder(&text, &folder);
        // A relative one may be any word.
        if folder.starts_with('/') {
            text = text.replace(&folder, "…");
        }
    }
    let text = without_absolute(&text);
    let lines = text
        .lines()
        .map(|line| match line.trim_start().starts_with(".file") {
            true => match (line.find('"'), line.rfind('/')) {
                (Some(quote), Some(slash)) if slash > quote => {
                    format!("{}{}", &line[..=quote], &line[slash + 1..])
                }
                _ => line.to_owned(),
            },
            false => line.to_owned(),
        });
    lines.map(|line| line + "\n").collect()
}

/// The text without the folders of absolute paths, wherever they come from (headers in messages of nvcc).
fn without_absolute(text: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || "\"'`,;:()<>=|*".contains(c);
    let (mut out, mut from) = (String::new(), 0);
    for (at, _) in text.match_indices('/') {
        if at < from || !begins_a_path(&text[..at]) {
            continue;
        }
        let run = &text[at..];
        let run = &run[..run.find(is_end).unwrap_or(run.len())];
        // A comment is no path.
        if let (false, Some(last)) = (run.starts_with("//"), run[1..].rfind('/')) {
            out.push_str(&text[from..at]);
            out.push('…');
            from = at + 1 + last;
        }
    }
    out + &text[from..]
}

/// The text without a folder in front of names in it.
fn without_folder(text: &str, folder: &str) -> String {
    let is_longer = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let (mut out, mut from) = (String::new(), 0);
    for (at, found) in text.match_indices(&format!("{folder}/")) {
        if !text[..at].ends_with(is_longer) {
            out.push_str(&text[from..at]);
            from = at + found.len();
        }
    }
    out + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::{option, without_absolute, without_folder, without_places, without_text};

    #[test]
    fn a_folder_is_no_part_of_another_word() {
        let text = "in/k.cu(1): main/in/k.cu, in, `in/h.cuh`";
        let without = "k.cu(1): main/in/k.cu, in, `h.cuh`";
        assert_eq!(without_folder(text, "in"), without);
        assert_eq!(
            without_places("linux\nin/k.cu\n", "in/k.cu".as_ref()),
            "linux\nk.cu\n"
        );
    }

    #[test]
    fn text_in_data_is_blanked_and_nothing_else() {
        let bytes = |text: &str| {
            let bytes: Vec<String> = text.bytes().map(|b| b.to_string()).collect();
            bytes.join(", ")
        };
        let path = bytes("/home/me/é.cu");
        let mixed = format!("0, 1, 2, 255, {}, 0, 7, 65, 66, 0", bytes("secret"));
        let ptx = format!(
            ".global .align 1 .b8 $str[15] = {{{path}}};\n.const .align 4 .b8 t[16] = {{{mixed}}};\n\
             .global .align 8 .b8 p[8] = {{0xFF(f), 0xFF00(f), 47, 0x2f}};\n\
             .global .align 4 .b32 n[4] = {{97, 98, 99, 100}};\n.entry k() {{ mov.u32 %r1, {{a, b}}; ret; }}\n\
             .section .debug_str {{\n.b8 47,104,111,109,101,0\n}}\n// end\n"
        );
        let (told, blanked) = without_text(&ptx);
        assert_eq!(blanked, "/home/me/é.cu".len() + "secret".len());
        let x = |count: usize| vec!["120"; count].join(", ");
        let expected = ptx
            .replace(&path, &x("/home/me/é.cu".len()))
            .replace(&bytes("secret"), &x(6))
            .replace("{\n.b8 47,104,111,109,101,0\n}", "{ }");
        assert_eq!(told, expected);
        // Whatever was cut off.
        for end in (0..ptx.len()).filter(|&at| ptx.is_char_boundary(at)) {
            without_text(&ptx[..end]);
        }
    }

    #[test]
    fn absolute_paths_are_names_and_options_less() {
        for (text, told) in [
            ("/tmp/jdoe/hush/cfg.h(2): error: x", "…/cfg.h(2): error: x"),
            (
                "In file included from /home/j/a.h:3,",
                "In file included from …/a.h:3,",
            ),
            ("`/a/b/` and \"/a/b/c d\"", "`…/` and \"…/c d\""),
            ("// begin inline asm", "// begin inline asm"),
            (
                "//////// a/b/c, 1/2/3 /* x */",
                "//////// a/b/c, 1/2/3 /* x */",
            ),
        ] {
            assert_eq!(without_absolute(text), told);
        }
        for (word, told) in [
            ("-I/home/jdoe/include", "-I…"),
            ("-L/home/jdoe", "-L…"),
            ("/home/jdoe", "…"),
            ("-fmacro-prefix-map=/home/jdoe=x", "-fmacro-prefix-map=…"),
            ("-Iinclude/own", "…/own"),
            ("-O3", "-O3"),
        ] {
            assert_eq!(option(word), told);
        }
    }

    #[test]
    fn no_folder_of_this_machine_is_told() {
        let here = std::env::current_dir().unwrap();
        let here = here.display();
        let text = format!(
            "at {here}/a/k.ptx:3\n\t.file 1 \"/somewhere/else/k.cu\"\n.file\t2 \"k.h\", 1, 2\nld.f32 %f1, [%rd1];\n"
        );
        let told = without_places(&text, std::path::Path::new("a/k.ptx"));
        assert!(
            !told.contains(&here.to_string()) && !told.contains("somewhere"),
            "{told}"
        );
        assert!(
            told.contains("k.ptx:3") && told.contains(".file 1 \"k.cu\""),
            "{told}"
        );
        assert!(told.contains("\"k.h\", 1, 2") && told.contains("ld.f32 %f1, [%rd1];"));
    }
}
