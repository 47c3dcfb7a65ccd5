//! `warpwright sass hazards` on a kernel as ptxas wrote it, and with its waits taken out.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use warpwright_sass::Elf;
use warpwright_toolkit::PtxasJob;
use warpwright_toolkit::testing::require_toolkit;

const KERNEL: &str = ".version 8.5
.target sm_90
.address_size 64

.visible .entry twice(.param .u64 p)
{
	.reg .b32 %r<3>;
	.reg .b64 %d;
	ld.param.u64 %d, [p];
	ld.global.u32 %r1, [%d];
	add.u32 %r2, %r1, %r1;
	st.global.u32 [%d], %r2;
	ret;
}
";

fn hazards(folder: &Path, file: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    command
        .current_dir(folder)
        .args(["sass", "hazards", file, "--json"]);
    command.output().unwrap()
}

#[test]
fn what_ptxas_wrote_holds_and_without_waits_it_does_not() {
    let Some(toolkit) = require_toolkit("what_ptxas_wrote_holds_and_without_waits_it_does_not")
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let job = PtxasJob::new(KERNEL, "sm_90");
    let cubin = toolkit.ptxas().unwrap().run(&job).unwrap().cubin;
    std::fs::write(folder.path().join("good.cubin"), &cubin).unwrap();
    let good = hazards(folder.path(), "good.cubin");
    let document: serde_json::Value = serde_json::from_slice(&good.stdout).unwrap();
    assert_eq!(good.status.code(), Some(0), "{document}");
    assert_eq!(document["holds"], true);

    let mut elf = Elf::parse(&cubin).unwrap();
    let code = elf.instructions(&elf.kernel("twice").unwrap()).unwrap();
    let code = code.into_iter().map(|inst| {
        let mut control = inst.control();
        control.wait_mask = 0;
        inst.with_control(control).unwrap()
    });
    let code: Vec<_> = code.collect();
    elf.set_instructions("twice", &code).unwrap();
    std::fs::write(folder.path().join("bad.cubin"), elf.write().unwrap()).unwrap();
    let bad = hazards(folder.path(), "bad.cubin");
    let document: serde_json::Value = serde_json::from_slice(&bad.stdout).unwrap();
    assert_eq!(bad.status.code(), Some(1), "{document}");
    let errors = document["errors"].as_array().unwrap();
    let reasons: Vec<&str> = errors
        .iter()
        .map(|e| e["reason"].as_str().unwrap())
        .collect();
    let load = |reason: &&str| reason.contains("LDG") && reason.contains("nothing waits for");
    assert!(reasons.iter().any(load), "{reasons:?}");
}
