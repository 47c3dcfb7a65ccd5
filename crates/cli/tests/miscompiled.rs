//! What is known of versions of ptxas that make wrong code is said where such a version meets such a kernel, by each
//! command, and scripts tell a refuted version from wrong input.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use warpwright_toolkit::testing::require_toolkit;

/// max(|a|, |b|), written with max and a negation (triton-lang/triton#11032).
fn distance(last: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry dist(.param .u64 p) .maxntid 32\n{{\n\
         .reg .b32 %r<9>;\n.reg .b64 %d<4>;\nld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\n\
         mul.wide.u32 %d2, %r1, 8;\nadd.s64 %d3, %d1, %d2;\nld.global.v2.u32 {{%r2, %r3}}, [%d3];\n\
         neg.s32 %r4, %r2;\nmax.s32 %r5, %r2, %r4;\nneg.s32 %r6, %r3;\nmax.s32 %r7, %r3, %r6;\n\
         max.s32 %r8, %r5, {last};\nst.global.u32 [%d3], %r8;\nret;\n}}\n"
    )
}

/// A ptxas that does what the real one does and says that it is of another version.
fn pretender(folder: &Path, real: &Path) -> PathBuf {
    let bin = folder.join("old/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let file = bin.join("ptxas");
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then\n  echo 'ptxas: NVIDIA (R) Ptx optimizing assembler'\n  \
         echo 'Cuda compilation tools, release 13.0, V13.0.88'\n  exit 0\nfi\nexec {} \"$@\"\n",
        real.display()
    );
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder.join("old")
}

fn run(folder: &Path, program: &str, env: &[(&str, &Path)], args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder);
    command.env("WARPWRIGHT_CACHE", folder.join("cache"));
    command.envs(env.iter().copied());
    command.output().unwrap()
}

const WARPWRIGHT: &str = env!("CARGO_BIN_EXE_warpwright");
const WORDS: &str = "ptxas 13.0 may make wrong code of `dist`";

#[test]
fn each_command_says_where_such_a_ptxas_meets_such_a_kernel() {
    let Some(toolkit) = require_toolkit("miscompiled: each command") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let real = toolkit.ptxas().unwrap().tool().path.clone();
    let old = pretender(at, &real);
    std::fs::write(at.join("k.ptx"), distance("%r7")).unwrap();
    for (args, field) in [
        (&["opt", "k.ptx", "--json"][..], "/kernels/0/notes"),
        (&["check", "k.ptx", "k.ptx", "--json"], "/miscompiled"),
    ] {
        let said = |toolkit: &Path| {
            let output = run(at, WARPWRIGHT, &[("WARPWRIGHT_TOOLKIT", toolkit)], args);
            assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            document
                .pointer(field)
                .map_or_else(String::new, ToString::to_string)
        };
        assert!(said(&old).contains(WORDS), "{args:?}: {}", said(&old));
        let right = real.parent().unwrap().parent().unwrap();
        assert!(
            !said(right).contains("wrong code"),
            "{args:?}: {}",
            said(right)
        );
    }
    let log = at.join("log");
    let ptxas = old.join("bin/ptxas");
    let output = run(
        at,
        env!("CARGO_BIN_EXE_warpwright-ptxas"),
        &[
            ("WARPWRIGHT_REAL_PTXAS", &ptxas),
            ("WARPWRIGHT_PTXAS_LOG", &log),
            ("WARPWRIGHT_PTXAS", Path::new("safe")),
            ("WARPWRIGHT_PTXAS_BUDGET", Path::new("60")),
        ],
        &["-arch=sm_90", "k.ptx", "-o", "k.cubin"],
    );
    assert!(output.status.success(), "{output:?}");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains(WORDS), "{log}");
}

#[test]
fn scripts_tell_a_refuted_version_from_wrong_input() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("a.ptx"), distance("%r7")).unwrap();
    std::fs::write(at.join("b.ptx"), distance("%r3")).unwrap();
    std::fs::write(
        at.join("broken.ptx"),
        distance("%r7").replace("ret;", "rot"),
    )
    .unwrap();
    let document = |b: &str| -> Value {
        let output = run(at, WARPWRIGHT, &[], &["check", "a.ptx", b, "--json"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let refuted = document("b.ptx");
    assert_eq!(refuted["schema"], "warpwright.check/1", "{refuted}");
    assert_eq!(refuted["verdict"], "refuted", "{refuted}");
    for wrong in ["broken.ptx", "none.ptx"] {
        let error = document(wrong);
        assert_eq!(error["schema"], "warpwright.error/1", "{error}");
        assert_eq!(error["kind"], "input", "{error}");
        assert!(error.get("verdict").is_none(), "{error}");
    }
}
