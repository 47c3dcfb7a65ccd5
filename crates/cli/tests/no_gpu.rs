//! `trace --no-gpu`: a program that make builds and runs, and one of a source file.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpwright_toolkit::testing::require_toolkit;

const PROGRAM: &str = r#"#include <cstdio>
__global__ void scale(float *x, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
int main(int argc, char **argv) {
    const int n = 1000;
    float *x, host[n];
    for (int i = 0; i < n; ++i) host[i] = i;
    cudaMalloc(&x, sizeof host);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    for (int turn = 0; turn < 3; ++turn) scale<<<(n + 127) / 128, 128>>>(x, 2, n);
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    printf("the last is %g, %d arguments\n", host[n - 1], argc - 1);
    return host[n - 1] == 7992 ? 7 : 1;
}
"#;

fn library() -> PathBuf {
    let own = std::env::current_exe().expect("own path");
    let found = own.with_file_name("libwarpwright_standin.so");
    assert!(found.exists(), "{} is missing", found.display());
    found
}

fn trace(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    command
        .current_dir(folder)
        .env("WARPWRIGHT_STANDIN", library());
    command
        .args(["trace", "--no-gpu", "--gpu", "h200"])
        .args(words);
    command.output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A program that means something else by what the stand-in calls is told that there is no GPU, and the trace says why.
#[test]
fn programs_with_functions_of_the_stand_ins_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "int close(char *at) { return *at; }\nint cudaGetDeviceCount(int *);\n\
                  int main(void) { int n = 0; return cudaGetDeviceCount(&n) == 100 ? 7 : 1; }\n";
    std::fs::write(folder.path().join("own.c"), source).expect("written");
    std::fs::copy(library(), folder.path().join("libcudart.so.13")).expect("copied");
    let built = Command::new("cc")
        .current_dir(folder.path())
        .args(["-w", "-o", "own", "own.c", "-L.", "-l:libcudart.so.13"])
        .status();
    assert!(built.expect("cc").success());
    let ended = trace(folder.path(), &["--", "./own"]);
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(7), "{said}");
    assert!(said.contains("a function `close` of its own"), "{said}");
}

#[test]
fn make_and_a_source_file() {
    let Some(toolkit) = require_toolkit("trace --no-gpu") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect(name);
    write("scale.cu", PROGRAM);
    let library = toolkit
        .nvcc()
        .expect("nvcc")
        .tool()
        .path
        .with_file_name("../lib");
    let make = format!(
        "run: scale\n\t./scale one two\nscale: scale.cu\n\tnvcc -L{} -o scale scale.cu\n",
        library.display()
    );
    write("Makefile", &make);
    let output = trace(folder.path(), &["-o", "T.json", "--", "make", "run"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains("the last is 7992, 2 arguments"), "{out}{err}");
    assert!(
        out.contains("all kernels ran in the emulator"),
        "{out}{err}"
    );
    let linked = "linked with the shared runtime, libcudart.so: build it anew for other runs";
    assert!(err.contains(linked), "{err}");
    // make ends with 2 where a command ends with 7.
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    // Of the program itself that is known.
    let itself = text(&trace(folder.path(), &["./scale"]).stderr);
    assert!(!itself.contains(linked), "{itself}");
    // Without dashes, and by a program that starts two others.
    let words = ["make", "run", "-s"];
    let out = text(&trace(folder.path(), &words).stdout);
    assert!(out.contains("2 arguments"), "{out}");
    let both = ["-o", "B.json", "sh", "-c", "./scale & ./scale; wait"];
    trace(folder.path(), &both);
    let kept = std::fs::read_to_string(folder.path().join("B.json")).expect("a trace");
    let both: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    assert_eq!(both["processes"], 2, "{kept}");
    assert_eq!(both["launches"][0]["launches"], 6, "{kept}");

    let kept = std::fs::read_to_string(folder.path().join("T.json")).expect("a trace");
    let trace: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    let launched = &trace["launches"][0];
    assert_eq!(launched["grid"], serde_json::json!([8, 1, 1]));
    assert_eq!(launched["launches"], 3);
    assert_eq!(launched["given"]["pointers"][0]["size"], 4000);
    // The factor behind the pointer, and the size behind that.
    let parameters = launched["given"]["parameters"].as_str().expect("digits");
    assert_eq!(&parameters[16..], "00000040e8030000");
    assert_eq!(trace["without_gpu"]["not_computed"], serde_json::json!([]));

    // What else reads a trace reads this one.
    let explain = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .current_dir(folder.path())
        .args(["explain", "scale.cu", "--trace", "T.json", "--json"])
        .output()
        .expect("it starts");
    assert!(
        text(&explain.stdout).contains("\"traced\""),
        "{}",
        text(&explain.stdout)
    );
}
