//! Every command of the documentation: blocks that begin with ```sh are run line by line, in a folder with the files
//! that they name. What cannot run here says why behind `sh`; then its programs, options and scripts must exist, as
//! those of every command within a line must.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{NvccJob, PtxasJob, Toolkit};

/// Why a block is not run.
const WHYS: [&str; 4] = [
    "gpu",   // needs one
    "cmake", // needs it, or another host
    "long",  // builds everything, takes hours, or fetches from the network
    "shape", // stands for commands: has `…` or words in the place of files
];

/// A kernel that spills under its launch bounds.
const SPILLS: &str = "
extern \"C\" __global__ void __launch_bounds__(256, 6) spills(float *p) {
  float x[56];
  for (int r = 0; r < 9; r++) {
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) x[i] = p[threadIdx.x + 256 * i];
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) x[i] = x[i] * x[55 - i] + sqrtf(x[(i * 7 + 3) % 56]);
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) p[threadIdx.x + 256 * i] = x[i] + x[(i * 5 + 1) % 56];
  }
}
";
const STENCIL: &str = "
__global__ void smooth(double *out, const double *in, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= n - 1 || j < 1 || j >= m - 1) return;
    out[j * n + i] = 0.25 * (in[(j - 1) * n + i] + in[(j + 1) * n + i] + in[j * n + i - 1] + in[j * n + i + 1]);
}
";

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    let mut folders: Vec<PathBuf> = ["docs", "bench", "lab", "crates", "examples"]
        .map(|name| root().join(name))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_page = path.extension().is_some_and(|ending| ending == "md");
            match path.is_dir() && !path.is_symlink() {
                true => folders.push(path),
                false if is_page => pages.push(path),
                false => {}
            }
        }
    }
    pages.sort();
    pages
}

/// A fenced block: its page, what stands behind the fence, its lines.
struct Block {
    page: String,
    info: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let mut all = Vec::new();
    for path in pages() {
        let page = path.strip_prefix(root()).unwrap().display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut open: Option<Block> = None;
        for line in text.lines() {
            match (line.strip_prefix("```"), &mut open) {
                (Some(_), Some(_)) => all.extend(open.take()),
                (Some(info), None) => {
                    open = Some(Block {
                        page: page.clone(),
                        info: info.to_owned(),
                        text: String::new(),
                    });
                }
                (None, Some(block)) => block.text += &format!("{line}\n"),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{page}: a block does not end");
    }
    all
}

/// Does a command of ours or of a shell begin here?
fn is_command(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or("");
    let is_script = first.starts_with("bench/") || first.starts_with("scripts/");
    let programs = [
        "warpwright",
        "cargo",
        "bash",
        "cmake",
        "nvcc",
        "python",
        "python3",
        "pip",
        "mdbook",
        "warpwright-sassmine",
    ];
    let second = line.split_whitespace().nth(1);
    let is_line = second.is_some_and(|word| word != "=") && !line.contains("  the ");
    is_line && (programs.contains(&first) || is_script || first.starts_with("WARPWRIGHT_"))
}

#[test]
fn every_block_of_commands_says_whether_it_runs() {
    let mut wrong = Vec::new();
    for block in blocks() {
        let words: Vec<&str> = block.info.split_whitespace().collect();
        let is_told = match &words[..] {
            ["sh"] => true,
            ["sh", why] => WHYS.contains(why),
            ["sh", ..] => false,
            _ => !block.text.lines().any(is_command) || block.page == "docs/architecture.md",
        };
        if !is_told {
            wrong.push(format!("{}: ```{}\n{}", block.page, block.info, block.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The folder that commands run in: the repository's examples, and the files that pages name.
fn folder(toolkit: &Toolkit) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(root().join("examples"), at("examples")).unwrap();
    std::fs::write(at("X.cu"), SPILLS).unwrap();
    std::fs::write(at("S.cu"), STENCIL).unwrap();
    std::fs::write(
        at("program.cu"),
        format!("{SPILLS}int main() {{ return 0; }}\n"),
    )
    .unwrap();
    let nvcc = toolkit.nvcc().unwrap();
    let ptx = nvcc
        .to_ptx(&NvccJob::new(&at("X.cu"), "sm_90"))
        .unwrap()
        .ptx;
    std::fs::write(at("X.ptx"), &ptx).unwrap();
    let built = toolkit
        .ptxas()
        .unwrap()
        .run(&PtxasJob::new(&ptx, "sm_90"))
        .unwrap();
    std::fs::write(at("X.cubin"), &built.cubin).unwrap();
    let compiled = Command::new(&nvcc.tool().path)
        .args(["-arch=sm_90", "-o", "program", "program.cu"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    folder
}

fn shell(folder: &Path, toolkit: &Toolkit, line: &str) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_warpwright"))
        .parent()
        .unwrap();
    let ptxas = toolkit.ptxas().unwrap().tool().path.clone();
    let path = std::env::var("PATH").unwrap();
    Command::new("bash")
        .args(["-euo", "pipefail", "-c", line])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("WARPWRIGHT_CACHE", folder.join("cache"))
        .env("WARPWRIGHT_DB", folder.join("winners"))
        .env(
            "WARPWRIGHT_TOOLKIT",
            ptxas.parent().and_then(Path::parent).unwrap(),
        )
        .output()
        .unwrap()
}

#[test]
fn commands_of_the_documentation_run() {
    let Some(toolkit) = require_toolkit("commands_of_the_documentation_run") else {
        return;
    };
    let folder = folder(&toolkit);
    let mut count = 0;
    for block in blocks().iter().filter(|block| block.info == "sh") {
        for line in block.text.lines().filter(|line| !line.trim().is_empty()) {
            let ran = shell(folder.path(), &toolkit, line);
            let said = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{}: {line}\n{said}", block.page);
            count += 1;
        }
    }
    assert!(count > 10, "{count} commands");
}

/// CMake and its compiler, where both are there.
#[test]
fn an_application_is_built_by_cmake_as_the_readme_says() {
    let Some(toolkit) = require_toolkit("an_application_is_built_by_cmake") else {
        return;
    };
    if Command::new("cmake").arg("--version").output().is_err() {
        eprintln!("SKIPPED the README's build by CMake: there is no cmake");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["CMakeLists.txt", "app.cu", "moments.cu"] {
        std::fs::copy(
            root().join("bench/hosts").join(name),
            folder.path().join(name),
        )
        .unwrap();
    }
    let blocks = blocks();
    let block = blocks
        .iter()
        .find(|b| b.page == "README.md" && b.info == "sh cmake")
        .unwrap();
    let ran = shell(
        folder.path(),
        &toolkit,
        &block.text.replace("BUDGET=10", "BUDGET=60"),
    );
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert!(
        said.contains("moments: ") && said.contains("its spills stay out of shared memory"),
        "{said}"
    );
}

/// What the README shows is what is printed.
#[test]
fn the_screen_of_the_readme_is_what_is_printed() {
    let Some(toolkit) = require_toolkit("the_screen_of_the_readme") else {
        return;
    };
    let all = blocks();
    let shown = all
        .iter()
        .find(|b| b.page == "README.md" && b.info.starts_with("text opt "));
    let shown = shown.unwrap();
    let ptxas = toolkit.ptxas().unwrap().tool().version().unwrap();
    if !shown.text.contains(&format!("ptxas {ptxas}\n")) {
        eprintln!("SKIPPED the screen of the README: it is another ptxas's");
        return;
    }
    let folder = folder(&toolkit);
    let command = shown.info.replacen("text opt", "warpwright opt", 1);
    let ran = shell(folder.path(), &toolkit, &command);
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout).trim_end(),
        shown.text.trim_end()
    );
    let said = all
        .iter()
        .any(|b| b.page == "README.md" && b.text.contains(&command["warpwright ".len()..]));
    assert!(said, "the command stands in the README");
}

/// The help of a command of ours; empty if there is none.
fn help(seen: &mut BTreeMap<String, String>, command: &str) -> String {
    let text = seen.entry(command.to_owned()).or_insert_with(|| {
        let words = command.split(' ').chain(["--help"]);
        let ran = Command::new(env!("CARGO_BIN_EXE_warpwright"))
            .env("WARPWRIGHT_STANDIN", "programs do not run here")
            .args(words)
            .output()
            .unwrap();
        match ran.status.success() {
            true => String::from_utf8(ran.stdout).unwrap(),
            false => String::new(),
        }
    });
    text.clone()
}

/// What is wrong with a command that is not run.
fn wrong(seen: &mut BTreeMap<String, String>, line: &str) -> Option<String> {
    let line = line
        .split(" # ")
        .next()
        .unwrap_or(line)
        .split("   ")
        .next()?;
    let mut words = line
        .split_whitespace()
        .skip_while(|word| word.contains('=') && !word.starts_with('-'));
    let program = words.next()?;
    let words: Vec<&str> = words.collect();
    if program == "bash" || program.starts_with("bench/") || program.starts_with("scripts/") {
        let script = if program == "bash" {
            *words.first()?
        } else {
            program
        };
        let is_there = root().join(script).exists();
        return (!is_there).then(|| format!("no script {script}"));
    }
    if program == "cargo" {
        let packages = words
            .windows(2)
            .filter(|pair| pair[0] == "-p")
            .map(|pair| pair[1]);
        let cargo = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
        let mut missing = packages.filter(|name| !cargo.contains(&format!("name = \"{name}\"")));
        return missing.next().map(|name| format!("no package {name}"));
    }
    if program != "warpwright" {
        return None;
    }
    let ours: Vec<&str> = words
        .iter()
        .copied()
        .take_while(|word| *word != "--")
        .collect();
    let names: Vec<&str> = ours
        .iter()
        .copied()
        .take_while(|w| w.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
        .collect();
    let Some(command) = names.first() else {
        let stands_for_all = ours.first() == Some(&"COMMAND");
        return (!stands_for_all).then(|| "no command".into());
    };
    // What programs call among themselves has no help.
    if command.starts_with("gpu-") {
        return None;
    }
    let nested = names.get(1).map(|second| format!("{command} {second}"));
    let has_nested = ["sass", "db", "toolkit"].contains(command);
    let page = match nested {
        Some(nested) if has_nested && !help(seen, &nested).is_empty() => help(seen, &nested),
        _ => help(seen, command),
    };
    if page.is_empty() {
        return Some(format!("no command {command}"));
    }
    let options = ours.iter().map(|word| word.trim_start_matches('['));
    let mut options = options.filter(|word| word.starts_with("--") && word.len() > 2);
    let unknown = options.find(|option| {
        let name = option.split(['=', ']', '`', ',']).next().unwrap_or(option);
        !page.contains(name)
    });
    unknown.map(|option| format!("{command} has no {option}"))
}

#[test]
fn commands_that_do_not_run_here_exist() {
    let mut seen = BTreeMap::new();
    let mut found = Vec::new();
    let mut count = 0;
    let mut look = |page: &str, line: &str| {
        count += 1;
        if let Some(why) = wrong(&mut seen, line) {
            found.push(format!("{page}: {line}: {why}"));
        }
    };
    for block in blocks()
        .iter()
        .filter(|block| block.info.starts_with("sh "))
    {
        for line in block.text.replace("\\\n", " ").lines() {
            look(&block.page, line);
        }
    }
    for path in pages() {
        let page = path.strip_prefix(root()).unwrap().display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        for code in text
            .lines()
            .flat_map(|line| line.split('`').skip(1).step_by(2))
        {
            if is_command(code) {
                look(&page, code);
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(count > 50, "{count} commands");
}
