//! Which PTX is assembled by which ptxas, for what, and how.

use std::path::{Path, PathBuf};

use crate::Error;

/// Architectures with tables. PTX is assembled for its own and for later ones that have no PTX of that name.
const ARCHITECTURES: [u32; 7] = [75, 80, 86, 89, 90, 100, 120];

/// PTX files larger than this are assembled for every second architecture only.
const LARGE: u64 = 1 << 21;

/// One way to assemble a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Its name, part of the file's.
    pub name: &'static str,
    /// `-O`.
    pub level: u8,
    /// `-maxrregcount`.
    pub limit: Option<u32>,
    /// `-lineinfo`.
    pub lines: bool,
}

const fn variant(name: &'static str, level: u8, limit: Option<u32>, lines: bool) -> Variant {
    Variant {
        name,
        level,
        limit,
        lines,
    }
}

/// The ways take turns.
const VARIANTS: [Variant; 8] = [
    variant("O3.lines", 3, None, true),
    variant("O3.r32.lines", 3, Some(32), true),
    variant("O2.r64", 2, Some(64), false),
    variant("O0", 0, None, false),
    variant("O1.r40", 1, Some(40), false),
    variant("O3", 3, None, false),
    variant("O1.lines", 1, None, true),
    variant("O3.r128", 3, Some(128), false),
];

/// The only way for PTX that was compiled with -G.
const DEBUG: Variant = variant("O0", 0, None, false);

fn is_debug(stem: &str) -> bool {
    stem.ends_with(".debug")
}

/// One PTX file of the corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Of the toolkit that made it, `13.5`; empty if none did.
    series: String,
    /// `sm_90a`, …
    gpu: String,
    stem: String,
    path: PathBuf,
    bytes: u64,
}

/// One cubin to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// From this file.
    pub ptx: PathBuf,
    /// For this architecture.
    pub gpu: String,
    /// In this way.
    pub variant: Variant,
}

/// The files of nvcc and of our generator below a corpus folder, in the order of their paths.
pub fn sources(dir: &Path) -> Result<Vec<Source>, Error> {
    let mut found = Vec::new();
    for path in crate::files_below(dir, "ptx")? {
        let name = |path: Option<&Path>| {
            let name = path.and_then(Path::file_name).unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let gpu = path.parent();
        let producer = name(gpu.and_then(Path::parent));
        let series = match producer.strip_prefix("nvcc-") {
            Some(series) => series.to_owned(),
            None if producer == "fuzzgen" => String::new(),
            None => continue,
        };
        found.push(Source {
            series,
            gpu: name(gpu),
            stem: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into(),
            bytes: std::fs::metadata(&path)
                .map_err(|e| Error::io(&path, e))?
                .len(),
            path,
        });
    }
    Ok(found)
}

/// What ptxas of `series`, the toolkit with number `rank`, makes of them: an older toolkit's files too, where
/// its own lacks them.
pub fn plan(sources: &[Source], series: &str, rank: usize) -> Vec<Item> {
    let mine = sources.iter().filter(|source| {
        let newer = |other: &&Source| {
            other.gpu == source.gpu
                && other.stem == source.stem
                && other.series > source.series
                && *other.series <= *series
        };
        *source.series <= *series && !sources.iter().any(|other| newer(&other))
    });
    let mine: Vec<&Source> = mine.collect();
    let mut items = Vec::new();
    for (number, source) in mine.iter().enumerate() {
        for (turn, gpu) in targets(source, &mine).into_iter().enumerate() {
            // Every file meets every way somewhere, and toolkits and architectures differ in which.
            if source.bytes > LARGE && (number + turn + rank) % 2 == 1 {
                continue;
            }
            let variant = VARIANTS[(number + 3 * turn + 2 * rank) % VARIANTS.len()];
            items.push(Item {
                ptx: source.path.clone(),
                gpu,
                variant: if is_debug(&source.stem) {
                    DEBUG
                } else {
                    variant
                },
            });
        }
    }
    items
}

/// The architectures that a file is assembled for.
fn targets(source: &Source, all: &[&Source]) -> Vec<String> {
    let number = |gpu: &str| gpu.strip_prefix("sm_").and_then(|n| n.parse::<u32>().ok());
    // Features of one architecture (sm_90a) are that one's alone.
    let Some(own) = number(&source.gpu) else {
        return vec![source.gpu.clone()];
    };
    let better = |target: u32| {
        let mut others = all.iter().filter(|other| other.stem == source.stem);
        others.any(|other| number(&other.gpu).is_some_and(|n| n > own && n <= target))
    };
    let later = ARCHITECTURES
        .into_iter()
        .filter(|&sm| sm >= own && !better(sm));
    later.map(|sm| format!("sm_{sm}")).collect()
}

/// Was the file compiled with `-rdc`, so that it needs a linker?
pub fn is_relocatable(ptx: &Path) -> bool {
    let stem = ptx.file_stem().unwrap_or_default().to_string_lossy();
    stem.starts_with("runtime") || stem.ends_with(".rdc")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(series: &str, gpu: &str, stem: &str) -> Source {
        Source {
            series: series.into(),
            gpu: gpu.into(),
            stem: stem.into(),
            path: PathBuf::from(format!("nvcc-{series}/{gpu}/{stem}.ptx")),
            bytes: 1,
        }
    }

    #[test]
    fn one_ptx_for_several_architectures() {
        let files = [
            source("13.0", "sm_75", "a"),
            source("13.0", "sm_80", "a"),
            source("13.0", "sm_90a", "a"),
            source("13.0", "sm_100", "a"),
        ];
        let all: Vec<&Source> = files.iter().collect();
        assert_eq!(targets(&files[0], &all), ["sm_75"]);
        assert_eq!(
            targets(&files[1], &all),
            ["sm_80", "sm_86", "sm_89", "sm_90"]
        );
        assert_eq!(targets(&files[2], &all), ["sm_90a"]);
        assert_eq!(targets(&files[3], &all), ["sm_100", "sm_120"]);
    }

    #[test]
    fn a_newer_toolkit_takes_an_older_ones_files_where_it_has_none() {
        let files = [
            source("", "sm_120", "fuzz"),
            source("13.0", "sm_120", "a"),
            source("13.0", "sm_120", "b"),
            source("13.5", "sm_120", "b"),
        ];
        let made = |series: &str| -> Vec<String> {
            let items = plan(&files, series, 0).into_iter();
            items.map(|item| item.ptx.display().to_string()).collect()
        };
        let file = |series: &str, stem: &str| format!("nvcc-{series}/sm_120/{stem}.ptx");
        let old = [file("", "fuzz"), file("13.0", "a"), file("13.0", "b")];
        assert_eq!(made("13.0"), old);
        let new = [file("", "fuzz"), file("13.0", "a"), file("13.5", "b")];
        assert_eq!(made("13.5"), new);
    }

    #[test]
    fn every_way_is_used() {
        let files: Vec<Source> = (0..8)
            .map(|n| source("13.0", "sm_75", &format!("f{n}")))
            .collect();
        let items = plan(&files, "13.5", 1);
        for variant in VARIANTS {
            assert!(
                items.iter().any(|item| item.variant == variant),
                "{}",
                variant.name
            );
        }
        assert_eq!(items.len(), 8 * ARCHITECTURES.len());
    }
}
