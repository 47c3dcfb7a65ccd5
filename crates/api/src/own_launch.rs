//! What a file's own launches of its kernels say. It is a fact about these launches, and no promise of others.

use std::path::{Path, PathBuf};

use warpwright_cudac::launches::{HostCode, expanded, numbers};
use warpwright_launch::{Guard, Source};
use warpwright_pass::Seen;
use warpwright_pass::names::{base_name, is_named, template_arguments};
use warpwright_ptx::Module;

use crate::input::in_utf8;
use crate::{Counted, Input, Level, Options, ran};

/// Block, grid and dynamic shared memory of each kernel of a module that the text launches. `nvcc`: its options.
pub fn own_launches(text: &str, module: &Module, nvcc: &[String], headers: &[String]) -> Vec<Seen> {
    let text = expanded(text, nvcc, headers);
    let code = HostCode::with_headers(&text, nvcc, headers);
    let of = |symbol: String| {
        let launches = code.launches(&base_name(&symbol), &template_arguments(&symbol));
        let extent = |all: &[u32], at: usize| all.get(at).copied().unwrap_or(1);
        let dims = |all: Vec<u32>| [0, 1, 2].map(|at| extent(&all, at));
        let blocks = launches.iter().map(|l| numbers(&l.block).map(dims));
        let product = |dims: Vec<u32>| dims.into_iter().map(u64::from).product();
        // Of several kernels of a name nobody says here which is launched.
        let names = module.kernels().map(|(_, f)| &*f.name);
        let mut others =
            names.filter(|other| **other != *symbol && base_name(other) == base_name(&symbol));
        let is_overloaded = template_arguments(&symbol).is_empty()
            && others.any(|o| template_arguments(o).is_empty());
        let block = match is_overloaded {
            true => agreed(blocks.clone()),
            false => blocks.clone().flatten().next(),
        };
        let grids = launches.iter().map(|l| numbers(&l.grid).map(product));
        Seen {
            symbol,
            source: Source::Host,
            block,
            differ: agreed(blocks).is_none(),
            grid: agreed(grids),
            guessed: String::new(),
            dynamic_smem: agreed(launches.iter().map(|l| l.dynamic_smem)),
            constants: Guard::always(),
        }
    };
    let kernels = module.kernels().map(|(_, f)| f.name.to_string());
    let says = |seen: &Seen| seen.block.is_some() || seen.dynamic_smem.is_some();
    kernels.map(of).filter(says).collect()
}

/// What all of them are.
fn agreed<T: PartialEq + Copy>(mut all: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = all.next()??;
    all.all(|one| one == Some(first)).then_some(first)
}

/// What the input's own program launched when it ran, if it did; of the other kernels [`own_launches`] of an input that is
/// CUDA C, and how many blocks a launch has whose sizes are known beyond what the text says in place, of those that are
/// counted.
pub fn seen(input: &Input, module: &Module, options: &Options) -> Vec<Seen> {
    let ran = options.ran.as_ref();
    let mut ran = ran.map_or_else(Vec::new, |trace| ran::seen(trace, module));
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
    let mut open = included(text, path.parent(), &folders);
    while let Some(header) = open.pop() {
        if seen.contains(&header) || seen.len() >= MOST_HEADERS {
            continue;
        }
        let is_small = std::fs::metadata(&header).is_ok_and(|m| m.is_file() && m.len() <= LARGEST);
        seen.push(header.clone());
        let Some(text) = is_small
            .then(|| String::from_utf8(in_utf8(std::fs::read(&header).ok()?).0).ok())
            .flatten()
        else {
            continue;
        };
        open.extend(included(&text, header.parent(), &folders));
        texts.push(text);
    }
    texts
}

/// The files that a text includes in quotes, as far as they are there.
fn included(text: &str, own: Option<&Path>, folders: &[PathBuf]) -> Vec<PathBuf> {
    let name = |line: &str| -> Option<String> {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("include")?.trim_start();
        let (name, _) = rest.strip_prefix('"')?.split_once('"')?;
        Some(name.to_owned())
    };
    let place = |name: String| {
        let own = own.map(Path::to_path_buf).into_iter();
        let mut all = own.chain(folders.iter().cloned());
        all.find_map(|folder| Some(folder.join(&name)).filter(|path| path.is_file()))
    };
    text.lines().filter_map(name).filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_launches_agree_on_is_known() {
        let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n\
                   .visible .entry _ZN2ns4fillIiEEvPT_(.param .u64 p) { ret; }\n.visible .entry k() { ret; }\n";
        let module = Module::parse("k.ptx", ptx).0;
        let found = |text: &str| own_launches(&format!("void f() {{ {text} }}"), &module, &[], &[]);
        let of = |kernel: &str, (block, differ): ([u32; 3], bool), grid, dynamic_smem| {
            vec![Seen {
                symbol: kernel.to_owned(),
                source: Source::Host,
                block: Some(block),
                differ,
                grid,
                guessed: String::new(),
                dynamic_smem,
                constants: Guard::always(),
            }]
        };
        let fill = "_ZN2ns4fillIiEEvPT_";
        assert_eq!(
            found("dim3 b(16, 8); ns::fill<int><<<n, b>>>(p);"),
            of(fill, ([16, 8, 1], false), None, Some(0))
        );
        assert_eq!(
            found("k<<<dim3(3, 2), 64>>>(); k<<<6, 64, 8>>>();"),
            of("k", ([64, 1, 1], false), Some(6), None)
        );
        assert_eq!(
            found("k<<<1, 64>>>(); k<<<n, 64, 8>>>();"),
            of("k", ([64, 1, 1], false), None, None)
        );
        for other in ["k<<<1, 32, 4 * 2>>>();", "k<<<1, n, 8>>>();"] {
            assert_eq!(
                found(&format!("k<<<1, 64, 8>>>(); {other}")),
                of("k", ([64, 1, 1], true), Some(1), Some(8))
            );
        }
        assert_eq!(
            found("k<<<1, n>>>(); k<<<2, 32, 8>>>();"),
            of("k", ([32, 1, 1], true), None, None)
        );
        for unknown in [
            "ns::fill<float><<<1, 64>>>(p);",
            "k<<<1, n, n>>>();",
            "kk<<<1, 2>>>();",
            "",
        ] {
            assert_eq!(found(unknown), [], "{unknown}");
        }
    }
}
