//! Where programs keep what they compiled: CuPy and Triton have a cache of machine code, and without a compiler's run there
//! is no PTX beside it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use warpwright_winners::sha256;

/// The variable that says where CuPy keeps what it compiled. Its own cache has no PTX: where that is wanted, a program gets
/// a folder that is empty when the first run of a command begins.
pub const CUPY: &str = "CUPY_CACHE_DIR";

/// That folder for a command that works in this one.
pub fn of_cupy(work: &Path) -> PathBuf {
    work.join("cupy")
}

/// Puts the PTX beside machine code that came out of Triton's cache, where it stands next to it.
pub fn find_ptx(modules: &Path) {
    let entries = fs::read_dir(modules).into_iter().flatten().flatten();
    let alone = entries.map(|entry| entry.path()).filter(|path| {
        path.extension().is_some_and(|e| e == "cubin") && !path.with_extension("ptx").exists()
    });
    let sized = alone.filter_map(|path| Some((fs::metadata(&path).ok()?.len(), path)));
    let mut wanted: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
    for (size, path) in sized {
        wanted.entry(size).or_default().push(path);
    }
    if !wanted.is_empty() {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        for folder in triton(&var, &std::env::temp_dir()) {
            search(&folder, &wanted);
        }
    }
}

/// The folders of Triton's caches: its own, and the one that PyTorch's compiler gives it.
fn triton(var: &dyn Fn(&str) -> Option<OsString>, temporary: &Path) -> Vec<PathBuf> {
    let home = var("TRITON_HOME")
        .or_else(|| var("HOME"))
        .map(PathBuf::from);
    let own = match var("TRITON_CACHE_DIR") {
        Some(folder) => Some(PathBuf::from(folder)),
        None => home.map(|home| home.join(".triton/cache")),
    };
    let user = ["LOGNAME", "USER", "LNAME", "USERNAME"]
        .iter()
        .find_map(|name| var(name));
    let user = user.unwrap_or_else(|| "root".into());
    let inductor = match var("TORCHINDUCTOR_CACHE_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => temporary.join(format!("torchinductor_{}", user.to_string_lossy())),
    };
    own.into_iter().chain([inductor.join("triton")]).collect()
}

/// Looks through a cache, at most so many folders of it.
fn search(cache: &Path, wanted: &BTreeMap<u64, Vec<PathBuf>>) {
    const MOST: usize = 100_000;
    // PyTorch has a folder for each device in between.
    const DEPTH: usize = 3;
    let mut folders = vec![(cache.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = folders.pop() {
        seen += 1;
        if seen > MOST {
            return;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && depth < DEPTH {
                folders.push((path, depth + 1));
            } else if kind.is_file() && path.extension().is_some_and(|e| e == "cubin") {
                compare(&path, wanted);
            }
        }
    }
}

/// Is this cached file one of the modules, and was it made in a way that we know?
fn compare(cached: &Path, wanted: &BTreeMap<u64, Vec<PathBuf>>) {
    let size = fs::metadata(cached).map_or(0, |data| data.len());
    let Some(modules) = wanted.get(&size) else {
        return;
    };
    let (Ok(code), Ok(ptx)) = (
        fs::read(cached),
        fs::read_to_string(cached.with_extension("ptx")),
    ) else {
        return;
    };
    let digest = sha256(&code);
    let module = modules
        .iter()
        .find(|path| path.file_stem().is_some_and(|stem| stem == digest.as_str()));
    let made = fs::read_to_string(cached.with_extension("json")).unwrap_or_default();
    if let (Some(module), true) = (module, is_usual(&made)) {
        let _ = fs::write(module.with_extension("ptx"), ptx);
    }
}

/// Does Triton's description of a kernel say that ptxas got no options that may round otherwise?
fn is_usual(description: &str) -> bool {
    let Ok(serde_json::Value::Object(all)) = serde_json::from_str(description) else {
        return false;
    };
    let fuses = all
        .get("enable_fp_fusion")
        .is_none_or(|fuses| *fuses == true);
    let options = all
        .get("ptx_options")
        .is_none_or(|options| options.is_null() || *options == "");
    fuses && options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_where_their_programs_look() {
        let of = |set: &'static [(&'static str, &'static str)]| {
            move |name: &str| {
                set.iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, v)| OsString::from(v))
            }
        };
        let temporary = Path::new("/tmp");
        let found = triton(&of(&[("HOME", "/home/a"), ("USER", "a")]), temporary);
        let usual = ["/home/a/.triton/cache", "/tmp/torchinductor_a/triton"];
        assert_eq!(found, usual.map(PathBuf::from));
        let set = of(&[
            ("HOME", "/home/a"),
            ("TRITON_CACHE_DIR", "/c"),
            ("TORCHINDUCTOR_CACHE_DIR", "/i"),
        ]);
        assert_eq!(
            triton(&set, temporary),
            ["/c", "/i/triton"].map(PathBuf::from)
        );
    }

    #[test]
    fn ptx_is_taken_from_beside_the_same_code_alone() {
        let (modules, cache) = (
            tempfile::tempdir().expect("folder"),
            tempfile::tempdir().expect("folder"),
        );
        let module = |code: &[u8]| modules.path().join(format!("{}.cubin", sha256(code)));
        let cached = |folder: &str, code: &[u8], ptx: &str, json: &str| {
            let folder = cache.path().join(folder);
            fs::create_dir_all(&folder).expect("folder");
            for (name, bytes) in [
                ("k.cubin", code),
                ("k.ptx", ptx.as_bytes()),
                ("k.json", json.as_bytes()),
            ] {
                fs::write(folder.join(name), bytes).expect("written");
            }
        };
        let names: [&[u8]; 4] = [b"first", b"other", b"fused", b"undescribed"];
        for code in names {
            fs::write(module(code), code).expect("written");
        }
        cached(
            "a",
            b"first",
            "its own",
            r#"{"enable_fp_fusion": true, "ptx_options": null}"#,
        );
        cached(
            "b",
            b"OTHER",
            "of the same size",
            r#"{"enable_fp_fusion": true}"#,
        );
        cached(
            "0/c",
            b"fused",
            "made otherwise",
            r#"{"enable_fp_fusion": false}"#,
        );
        cached("d", b"undescribed", "how?", "");
        let mut wanted: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
        for code in names {
            wanted
                .entry(code.len() as u64)
                .or_default()
                .push(module(code));
        }
        search(cache.path(), &wanted);
        let ptx = |code: &[u8]| fs::read_to_string(module(code).with_extension("ptx")).ok();
        assert_eq!(ptx(b"first").as_deref(), Some("its own"));
        assert_eq!(
            [ptx(b"other"), ptx(b"fused"), ptx(b"undescribed")],
            [None, None, None]
        );
    }
}
