//! What the real tools print (tests/fixtures, made by its `regenerate.sh`), read by the pure parsers.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use warpwright_toolkit::diagnostic::{parse_nvcc, parse_ptxas};
use warpwright_toolkit::resources::{FunctionKind, KernelResources, parse};
use warpwright_toolkit::{Severity, Version};

const VERSIONS: [&str; 2] = ["13.0", "13.5"];

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn entry(name: &str, gpu: &str, registers: u32) -> KernelResources {
    let mut entry = KernelResources::new(name, FunctionKind::Entry);
    entry.gpu = Some(gpu.to_owned());
    entry.registers = Some(registers);
    entry
}

#[test]
fn spilling_kernel_and_device_functions_on_sm_90a() {
    for version in VERSIONS {
        let module = parse(&fixture(&format!("spills-{version}-sm_90a.txt")));
        let mut big = entry("big", "sm_90a", 255);
        (big.stack_frame, big.spill_stores, big.spill_loads) = (304, 300, 300);
        big.cumulative_stack = Some(304);
        let mut calls = entry("_Z5callsPfi", "sm_90a", 28);
        (calls.barriers, calls.shared) = (1, 1024);
        let mut fibonacci = KernelResources::new("_Z9fibonaccii", FunctionKind::Device);
        (
            fibonacci.stack_frame,
            fibonacci.spill_stores,
            fibonacci.spill_loads,
        ) = (40, 40, 40);
        let ramp = KernelResources::new("_Z4rampfi", FunctionKind::Device);
        assert_eq!(module.functions, [big, calls, fibonacci, ramp], "{version}");
        assert_eq!(module.unparsed, [] as [&str; 0]);
        assert_eq!(module.kernels().count(), 2);
        assert!(module.kernel("big").unwrap().spills());
        assert!(
            module.kernel("_Z4rampfi").is_none(),
            "a device function is no kernel"
        );
    }
}

#[test]
fn constant_banks_on_sm_75() {
    for version in VERSIONS {
        let module = parse(&fixture(&format!("spills-{version}-sm_75.txt")));
        assert_eq!(module.global, 0);
        assert_eq!(module.constant.iter().collect::<Vec<_>>(), [(&3, &400)]);
        let big = module.kernel("big").unwrap();
        assert_eq!(big.constant.iter().collect::<Vec<_>>(), [(&0, &368)]);
        assert_eq!((big.registers, big.spill_stores), (Some(255), 180));
    }
}

#[test]
fn unbounded_stack_is_a_warning_of_13_5() {
    let module = parse(&fixture("spills-13.5-sm_90a.txt"));
    let [warning] = &module.messages[..] else {
        panic!("{:?}", module.messages)
    };
    assert_eq!(warning.severity, Severity::Warning);
    assert_eq!(
        warning.message,
        "Stack size for entry function '_Z5callsPfi' cannot be statically determined"
    );
    assert_eq!(parse(&fixture("spills-13.0-sm_90a.txt")).messages, []);
}

#[test]
fn register_limit_and_its_notes() {
    for version in VERSIONS {
        let module = parse(&fixture(&format!("limited-{version}-sm_90a.txt")));
        let big = module.kernel("big").unwrap();
        assert_eq!(
            (big.registers, big.spill_stores, big.spill_loads),
            (Some(32), 3680, 4176)
        );
        let count = |s| module.messages.iter().filter(|m| m.severity == s).count();
        assert_eq!(count(Severity::Info), 2, "two overridden limits");
        assert!(
            count(Severity::Warning) >= 4,
            "local memory and spills, twice each"
        );
        assert_eq!(module.unparsed, [] as [&str; 0]);
    }
}

#[test]
fn shared_memory_spilling_counts_as_shared() {
    for version in VERSIONS {
        let module = parse(&fixture(&format!("pragma-{version}-sm_90a.txt")));
        let big = module.kernel("big").unwrap();
        assert_eq!(
            (big.shared, big.spill_stores, big.cumulative_stack),
            (19456, 232, Some(232))
        );
    }
}

#[test]
fn relocatable_code_prints_device_functions_first() {
    for version in VERSIONS {
        let module = parse(&fixture(&format!("relocatable-{version}-sm_90a.txt")));
        let names: Vec<_> = module
            .functions
            .iter()
            .map(|f| (f.name.as_str(), f.kind))
            .collect();
        use FunctionKind::{Device, Entry};
        let expected = [
            ("_Z9fibonaccii", Device),
            ("_Z4rampfi", Device),
            ("big", Entry),
            ("_Z5callsPfi", Entry),
        ];
        assert_eq!(names, expected);
        assert_eq!(module.kernel("big").unwrap().cumulative_stack, None);
    }
}

#[test]
fn textures_surfaces_and_samplers() {
    for version in VERSIONS {
        let module = parse(&fixture(&format!("texref-{version}.txt")));
        let kernel = module.kernel("k").unwrap();
        assert_eq!(
            (kernel.textures, kernel.surfaces, kernel.samplers),
            (1, 1, 1)
        );
    }
}

#[test]
fn notes_with_a_code() {
    for version in VERSIONS {
        let module = parse(&fixture(&format!("setmaxnreg-{version}.txt")));
        let [note] = &module.messages[..] else {
            panic!("{:?}", module.messages)
        };
        assert_eq!(
            (note.severity, note.code.as_deref()),
            (Severity::Info, Some("C7508"))
        );
        assert!(
            note.message
                .starts_with("Potential Performance Loss: 'setmaxnreg' ignored")
        );
        assert_eq!(module.kernel("k2").unwrap().barriers, 4);
    }
}

#[test]
fn refused_ptx_names_file_and_line() {
    for version in VERSIONS {
        let found = parse_ptxas(&fixture(&format!("refused-{version}.txt")));
        let placed: Vec<_> = found
            .iter()
            .map(|d| (d.severity, d.line, d.message.as_str()))
            .collect();
        let expected = [
            (Severity::Error, Some(7), "Unknown symbol '%r9'"),
            (
                Severity::Error,
                Some(8),
                "Arguments mismatch for instruction 'add'",
            ),
            (
                Severity::Error,
                Some(9),
                "Not a name of any known instruction: 'frob'",
            ),
            (Severity::Fatal, None, "Ptx assembly aborted due to errors"),
        ];
        for line in expected {
            assert!(placed.contains(&line), "{version}: {line:?} in {placed:?}");
        }
        assert_eq!(found[0].file.as_deref(), Some("refused.ptx"));
    }
}

#[test]
fn refused_cuda_names_file_line_and_column() {
    for version in VERSIONS {
        let found = parse_nvcc(&fixture(&format!("refused-nvcc-{version}.txt")));
        let [undefined, pointer, unused] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            undefined.to_string(),
            r#"refused.cu:3: error: identifier "q" is undefined"#
        );
        assert_eq!((pointer.severity, pointer.line), (Severity::Error, Some(4)));
        assert_eq!(
            (unused.severity, unused.code.as_deref()),
            (Severity::Warning, Some("177-D"))
        );

        let found = parse_nvcc(&fixture(&format!("include-nvcc-{version}.txt")));
        let [missing] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((missing.line, missing.column), (Some(1), Some(10)));
        assert_eq!(missing.message, "nope.h: No such file or directory");
    }
}

#[test]
fn versions() {
    let version = Version::parse(&fixture("version-13.5.txt")).unwrap();
    assert_eq!((version.major, version.minor, version.build), (13, 5, 37));
    assert_eq!(version.to_string(), "13.5.37");
    assert!(
        version.text.contains("compiler."),
        "the build number tells builds apart"
    );
    let version = Version::parse(&fixture("version-13.0.txt")).unwrap();
    assert_eq!((version.major, version.minor, version.build), (13, 0, 88));
    for text in [
        "",
        ", V",
        ", V13",
        ", V13.5",
        ", V13.5.",
        ", V1.2.3.4",
        ", V99999999999.1.1",
    ] {
        assert_eq!(Version::parse(text), None, "{text:?}");
    }
}

#[test]
fn odd_reports_are_kept_and_never_panic() {
    let module = parse("ptxas info    : Used many registers\nhello\n\n    1 bytes stack frame\n");
    assert_eq!(module.functions, []);
    assert_eq!(module.messages.len(), 1, "a note that is no report");
    assert_eq!(module.unparsed, ["hello", "    1 bytes stack frame"]);
    let text = "ptxas info    : Function properties for f\n    3 bytes stack frame, x\n";
    assert_eq!(parse(text).unparsed.len(), 1);
    let text = fixture("spills-13.5-sm_90a.txt");
    for end in (0..text.len()).filter(|i| text.is_char_boundary(*i)) {
        parse(&text[..end]);
        parse_nvcc(&text[..end]);
    }
}

#[test]
fn file_names_with_commas_and_semicolons() {
    let text = "ptxas a, line 1; b.ptx, line 12; error   : Unknown symbol 'x'";
    let [found] = &parse_ptxas(text)[..] else {
        panic!()
    };
    assert_eq!(
        (found.file.as_deref(), found.line),
        (Some("a, line 1; b.ptx"), Some(12))
    );
}
