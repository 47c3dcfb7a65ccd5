//! The examples as a set: every folder is complete, described, and has a reference that fills
//! every output. (That kernels and references agree is tested where kernels run: in the emulator.)

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use warpwright_launch::{LaunchFile, no_files};
use warpwright_references::{naive, names, reference};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

fn describe(name: &str) -> LaunchFile {
    let path = examples().join(name).join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).unwrap();
    LaunchFile::parse(&text, &path.to_string_lossy()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_example_has_a_reference_and_a_line_in_the_readme() {
    let readme = std::fs::read_to_string(examples().join("README.md")).unwrap();
    let folders: BTreeSet<String> = examples()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .filter(|entry| {
            !["reference", "stencils", "naive"].contains(&&*entry.file_name().to_string_lossy())
        })
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders, names().map(str::to_owned).collect());
    for name in folders {
        assert!(
            readme.contains(&format!("[`{name}`]({name}/{name}.cu)")),
            "{name}"
        );
    }
}

#[test]
fn every_naive_kernel_has_a_reference() {
    let all = |ending: &str| -> BTreeSet<String> {
        let files = examples().join("naive").read_dir().unwrap();
        let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter_map(|name| name.strip_suffix(ending).map(str::to_owned))
            .collect()
    };
    let known: BTreeSet<String> = naive().map(str::to_owned).collect();
    assert_eq!(all(".cu"), known);
    assert_eq!(all(".toml"), known);
}

#[test]
fn every_description_names_its_source_and_its_two_sizes() {
    for name in names() {
        let file = describe(name);
        let source = examples().join(name).join(file.source().unwrap());
        let text = std::fs::read_to_string(source).unwrap();
        assert!(
            text.contains(&format!("{}(", file.kernel())),
            "{name}: no {}",
            file.kernel()
        );
        assert!(
            file.about().is_some_and(|about| !about.is_empty()),
            "{name}"
        );
        assert_eq!(
            file.sizes().collect::<Vec<_>>(),
            ["full", "small"],
            "{name}"
        );
        let (small, full) = (
            file.resolve("small", &[]).unwrap(),
            file.resolve("full", &[]).unwrap(),
        );
        assert!(
            small.block_threads() <= 1024 && small.block == full.block,
            "{name}"
        );
        let bytes = |launch: &warpwright_launch::Launch| -> usize {
            launch.buffers().map(|buffer| buffer.size()).sum()
        };
        assert!(
            bytes(&small) < 4 << 20,
            "{name}: {} bytes in small",
            bytes(&small)
        );
        assert!(
            bytes(&full) < 4 << 30,
            "{name}: {} bytes in full",
            bytes(&full)
        );
    }
}

#[test]
fn references_fill_every_output_with_numbers() {
    for name in names() {
        let launch = describe(name).resolve("small", &[]).unwrap();
        let inputs: Vec<Vec<u8>> = launch
            .buffers()
            .map(|buffer| buffer.materialize(&no_files).unwrap())
            .collect();
        let outputs = reference(name, &launch, &inputs).unwrap_or_else(|| panic!("{name}"));
        let wanted: Vec<&str> = launch
            .buffers()
            .filter(|b| b.output)
            .map(|b| b.name.as_str())
            .collect();
        let found: Vec<&str> = outputs.iter().map(|output| output.0.as_str()).collect();
        assert_eq!(wanted, found, "{name}");
        for (buffer, input) in launch.buffers().zip(&inputs).filter(|(b, _)| b.output) {
            let (_, bytes) = outputs
                .iter()
                .find(|output| output.0 == buffer.name)
                .unwrap();
            assert_eq!(bytes.len(), buffer.size(), "{name}.{}", buffer.name);
            assert_ne!(bytes, input, "{name}.{} is left as it was", buffer.name);
            let mut elements = bytes.chunks_exact(buffer.ty.size());
            let finite = |e: &[u8]| buffer.ty.to_f64(buffer.ty.read(e)).is_finite();
            assert!(
                elements.all(finite),
                "{name}.{} holds a NaN or infinity",
                buffer.name
            );
        }
    }
}

#[test]
fn what_is_no_example_has_no_reference() {
    let launch = describe("keccak").resolve("small", &[]).unwrap();
    let inputs: Vec<Vec<u8>> = launch
        .buffers()
        .map(|buffer| buffer.materialize(&no_files).unwrap())
        .collect();
    assert!(reference("nothing", &launch, &inputs).is_none());
    assert!(reference("fft512", &launch, &inputs).is_none());
    assert!(reference("keccak", &launch, &inputs).is_some());
}
