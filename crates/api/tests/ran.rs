//! What a program launched, as facts about its kernels and as launches to count.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use serde_json::json;
use warpwright_api::ran::{Contents, counted, seen};
use warpwright_api::trace::Trace;
use warpwright_launch::{FileFormat, Init, Pointer, Source};
use warpwright_ptx::Module;

fn launched(launch: u64, grid: u32, block: u32) -> serde_json::Value {
    json!({
        "kernel": "k", "name": "k", "module": null, "digest": null, "grid": [grid, 1, 1], "block": [block, 1, 1],
        "dynamic_smem": 16, "cluster": null, "cooperative": false, "launches": 1, "in_graphs": 0, "gpu_ns": 0,
        "share": 0.0, "registers": null, "spill_bytes": null, "static_smem": null, "resident": null,
        "occupancy": null, "tied": null, "hint": "",
        "given": {
            "launch": launch,
            "parameters": "050000000000000000100000007000000000000000000000",
            "pointers": [{ "at": 8, "allocation": 3, "size": 64, "offset": 16, "digest": "ab" }],
            "variables": [
                { "name": "table", "size": 8, "digest": "cd" },
                { "name": "other", "size": 8, "digest": null },
            ],
        },
    })
}

fn trace(launches: &[serde_json::Value], exact_until: Option<u64>) -> Trace {
    let document = json!({
        "schema": "warpwright.trace/1", "program": [], "date": "", "gpu": null, "processes": 1, "modules_in": null,
        "modules": [], "not_seen": [], "launches": launches,
        "without_gpu": {
            "exact_until": exact_until, "not_computed": [], "faults": [], "unanswered": [], "ended": null,
        },
    });
    Trace::parse("t.json", &document.to_string()).unwrap()
}

fn module() -> Module {
    let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 4 .b8 table[8];\n\
               .global .align 4 .b8 other[8];\n\
               .visible .entry k(.param .u32 n, .param .u64 p, .param .u64 q) {\n.reg .b32 %r<2>;\n\
               ld.global.u32 %r1, [table];\nret;\n}\n";
    Module::parse("k.ptx", ptx).0
}

#[test]
fn launches_that_rest_on_nothing_missing_count() {
    let (module, none) = (module(), Contents::default());
    let both = trace(&[launched(1, 9, 64), launched(2, 4, 32)], None);
    let found = seen(std::slice::from_ref(&both), &module);
    let first = &found[0];
    assert_eq!((first.block, first.grid), (Some([64, 1, 1]), Some(9)));
    assert!(first.differ);
    assert_eq!(
        (first.source, first.dynamic_smem),
        (Source::Traced, Some(16))
    );
    assert_eq!(counted(&both, &none, &module, "k").count(), 2);
    // The larger one came after a result that was missing.
    let one = trace(&[launched(2, 9, 64), launched(1, 4, 32)], Some(1));
    assert_eq!(seen(std::slice::from_ref(&one), &module)[0].grid, Some(4));
    assert!(seen(&[trace(&[launched(2, 9, 64)], Some(1))], &module).is_empty());
}

#[test]
fn a_launch_has_the_bytes_and_the_memory_of_the_program() {
    let module = module();
    let contents = Contents {
        folder: PathBuf::new(),
        digests: ["ab".to_owned()].into(),
    };
    let trace = trace(&[launched(1, 9, 64)], None);
    let launch = counted(&trace, &contents, &module, "k").next();
    let launch = launch.unwrap().launch;
    let bytes: Vec<&[u8]> = launch.args.iter().map(|arg| &arg.bytes[..]).collect();
    assert_eq!(bytes, [&[5, 0, 0, 0][..], &[0; 8], &[0; 8]]);
    let pointer = Pointer {
        at: 0,
        of: 0,
        offset: 16,
    };
    assert_eq!(launch.args[1].pointers, [pointer]);
    assert!(launch.args[2].pointers.is_empty(), "a null pointer");
    let file = Init::File {
        path: "ab.bin".into(),
        format: FileFormat::Raw,
    };
    let memory = &launch.memory[0];
    assert_eq!((memory.size(), &memory.init), (64, &file));
    // Of the variables that which it reads; what it held was not kept.
    let names: Vec<&str> = launch.symbols.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["table"]);
    assert_eq!(launch.symbols[0].init, Init::Zeros);
}
