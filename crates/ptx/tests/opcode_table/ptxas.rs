//! Asks ptxas about instructions: many in one module, without generating code.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use warpwright_ptx::opcode::{Features, Form};
use warpwright_toolkit::testing::{require_toolkit, skip};

/// A PTX version and a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    pub sm: u16,
    pub features: Features,
    pub version: (u8, u8),
}

impl Target {
    /// What a line of the table asks for. Versions before 6.4 are as good as 6.4.
    pub fn of(form: &Form) -> Target {
        let version = form.version.max((6, 4));
        let version = version.max(first_version(form.target.sm, form.target.features));
        Target {
            sm: form.target.sm.max(30),
            features: form.target.features,
            version: form.until.unwrap_or(version),
        }
    }

    pub fn name(&self) -> String {
        format!("sm_{}{}", self.sm, self.features.suffix())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (PTX {}.{})",
            self.name(),
            self.version.0,
            self.version.1
        )
    }
}

/// The PTX version that introduced a target.
fn first_version(sm: u16, features: Features) -> (u8, u8) {
    match (sm, features) {
        (..=75, _) => (6, 4),
        (80, _) => (7, 0),
        (86, _) => (7, 1),
        (87, _) => (7, 4),
        (89 | 90, Features::Plain) => (7, 8),
        (90, _) => (8, 0),
        (100, Features::Family) => (8, 8),
        (100, _) => (8, 6),
        (120, Features::Family) => (8, 8),
        (120, _) => (8, 7),
        (103 | 121, _) => (8, 8),
        (110 | 88, _) => (9, 0),
        _ => (9, 5),
    }
}

/// Targets that the modifiers are tried on, all with one version.
const TARGETS: &[(u16, Features)] = &[
    (60, Features::Plain),
    (75, Features::Plain),
    (90, Features::Architecture),
    (100, Features::Architecture),
    (103, Features::Architecture),
    (107, Features::Architecture),
    (110, Features::Architecture),
    (120, Features::Architecture),
    (121, Features::Architecture),
];

/// Targets to measure the first one of a line, oldest first.
pub fn measured_targets(version: (u8, u8)) -> Vec<Target> {
    let plain = [
        30, 32, 35, 50, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 107, 110, 120,
        121,
    ];
    let all = plain.iter().flat_map(|&sm| {
        let all: &[Features] = match sm {
            90 => &[Features::Plain, Features::Architecture],
            100.. => &[Features::Plain, Features::Family, Features::Architecture],
            _ => &[Features::Plain],
        };
        all.iter().map(move |&features| Target {
            sm,
            features,
            version,
        })
    });
    all.collect()
}

/// The PTX version that the table is written for; an older ptxas cannot judge it.
const NEWEST: (u8, u8) = (9, 5);

/// ptxas, and the PTX versions that it knows.
pub struct Ptxas {
    program: PathBuf,
    versions: Vec<(u8, u8)>,
    dir: tempfile::TempDir,
}

impl Ptxas {
    pub fn find(test: &str) -> Option<Ptxas> {
        let toolkit = require_toolkit(test)?;
        let program = match toolkit.ptxas() {
            Ok(ptxas) => ptxas.tool().path.clone(),
            Err(e) => {
                skip(test, &e.to_string());
                return None;
            }
        };
        let listed = Command::new(&program).arg("--list-version").output();
        let listed = String::from_utf8_lossy(&listed.unwrap().stdout).into_owned();
        let version = |line: &str| {
            let (major, minor) = line.trim().split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        let versions: Vec<(u8, u8)> = listed.lines().filter_map(version).collect();
        if !versions.contains(&NEWEST) {
            let (major, minor) = NEWEST;
            let name = program.display();
            skip(test, &format!("{name} does not know PTX {major}.{minor}"));
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        Some(Ptxas {
            program,
            versions,
            dir,
        })
    }

    /// The versions that it knows, from `first` on, oldest first.
    pub fn versions_from(&self, first: (u8, u8)) -> Vec<(u8, u8)> {
        let all = self.versions.iter().copied();
        let mut versions: Vec<_> = all.filter(|&v| v >= first).collect();
        versions.sort();
        versions
    }

    /// Targets of all generations, with the newest version.
    pub fn targets() -> Vec<Target> {
        let target = |&(sm, features)| Target {
            sm,
            features,
            version: NEWEST,
        };
        TARGETS.iter().map(target).collect()
    }

    /// What ptxas says of each of these instructions.
    pub fn run(&self, target: Target, lines: &[String]) -> Vec<Result<(), String>> {
        let mut verdicts: Vec<Result<(), String>> = vec![Ok(()); lines.len()];
        let mut open: Vec<usize> = (0..lines.len()).collect();
        // A syntax error ends the run: leave out what it complained of, and ask again.
        while !open.is_empty() {
            let complaints = self.complaints(target, &open, lines);
            let Some(complaints) = complaints else {
                break;
            };
            for (&i, why) in &complaints.of {
                verdicts[i] = Err(why.clone());
            }
            if !complaints.ended_early || complaints.of.is_empty() {
                if let Some(why) = complaints.whole {
                    open.iter().for_each(|&i| verdicts[i] = Err(why.clone()));
                }
                break;
            }
            open.retain(|i| !complaints.of.contains_key(i));
        }
        verdicts
    }

    /// `None` if there is nothing to complain of.
    fn complaints(&self, target: Target, open: &[usize], lines: &[String]) -> Option<Complaints> {
        let mut module = prelude(target);
        let first = module.lines().count();
        for &i in open {
            module.push_str(&lines[i].replace('\n', " "));
            module.push('\n');
        }
        module.push_str(POSTLUDE);
        let path = self.dir.path().join("module.ptx");
        std::fs::write(&path, module).unwrap();
        let suffix = target.features.suffix();
        let output = Command::new(&self.program)
            .arg("-c")
            .arg(format!("--gpu-name=compute_{}{suffix}", target.sm.max(75)))
            .arg(&path)
            .arg("--output-file=/dev/null")
            .output()
            .unwrap();
        if output.status.success() {
            return None;
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        let mut complaints = Complaints::default();
        for line in text.lines() {
            let at = line
                .split_once("line ")
                .and_then(|(_, rest)| rest.split_once(';'));
            let Some((number, message)) = at else {
                continue;
            };
            if !["error", "fatal"]
                .iter()
                .any(|kind| message.trim().starts_with(kind))
            {
                continue;
            }
            complaints.ended_early |= message.contains("fatal");
            let index = number
                .parse::<usize>()
                .ok()
                .and_then(|n| n.checked_sub(first + 1));
            match index.and_then(|n| open.get(n)) {
                Some(&i) => {
                    complaints
                        .of
                        .entry(i)
                        .or_insert_with(|| message.trim().to_owned());
                }
                None => complaints.whole = Some(line.to_owned()),
            }
        }
        if complaints.of.is_empty() {
            complaints.whole.get_or_insert(text);
        }
        Some(complaints)
    }
}

#[derive(Default)]
struct Complaints {
    /// By instruction.
    of: BTreeMap<usize, String>,
    /// Of something else.
    whole: Option<String>,
    ended_early: bool,
}

fn prelude(target: Target) -> String {
    let (major, minor) = target.version;
    let wide = match target.version >= (8, 3) && target.sm >= 70 {
        true => ".reg .b128 %q<20>;",
        false => "",
    };
    format!(
        ".version {major}.{minor}
.target {}
.address_size 64
.global .texref tex;
.global .surfref srf;
.func dev() {{ ret; }}
.entry kernel(.param .u64 kp)
{{
.reg .pred %p<20>; .reg .b8 %c<20>; .reg .b16 %h<40>; .reg .b32 %r<300>;
.reg .b64 %d<40>; .reg .f32 %f<300>; .reg .f64 %e<40>; {wide}
T0: .branchtargets L0;
",
        target.name()
    )
}

const POSTLUDE: &str = "L0: ret;\n}\n";
