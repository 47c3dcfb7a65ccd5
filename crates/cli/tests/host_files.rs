//! `opt APP -o APP2`: machine code replaced within programs, libraries and objects, in place where it fits and with
//! the file growing where it does not; what comes out is still a program that starts, a library that loads and an
//! object that links, and NVIDIA's own tool finds the new code in it.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpwright_sass::Cubin;
use warpwright_sass::fatbin::{Fatbin, Kind};
use warpwright_toolkit::Toolkit;
use warpwright_toolkit::testing::require_toolkit;

/// Three kernels; the one in the middle spills under its launch bounds.
const KERNELS: &str = "
extern \"C\" __global__ void first(float *p) { p[threadIdx.x] *= 2; }
extern \"C\" __global__ void __launch_bounds__(64, 24) spills(float *p) {
  float x[56];
  for (int r = 0; r < 9; r++) {
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) x[i] = p[threadIdx.x + 64 * i];
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) x[i] = x[i] * x[55 - i] + sqrtf(x[(i * 7 + 3) % 56]);
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) p[threadIdx.x + 64 * i] = x[i] + x[(i * 5 + 1) % 56];
  }
}
extern \"C\" __global__ void third(int *p) { p[threadIdx.x] = 3; }
extern \"C\" int answer() { return 42; }
";

/// Its variables without initial values lie behind everything else.
const MAIN: &str = "
#include <cstdio>
extern \"C\" int answer();
extern \"C\" __global__ void own(int *p) { *p = 1; }
static char large[3 << 20];
int main() { large[1 << 20] = 1; std::printf(\"%d %d\\n\", answer(), large[1 << 20] + large[1 << 21]); }
";

struct Bench {
    folder: tempfile::TempDir,
    toolkit: Toolkit,
}

impl Bench {
    fn new(test: &str) -> Option<Bench> {
        let toolkit = require_toolkit(test)?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("k.cu"), KERNELS).unwrap();
        std::fs::write(folder.path().join("main.cu"), MAIN).unwrap();
        Some(Bench { folder, toolkit })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, program: &Path, args: &[&str]) -> Output {
        let mut command = Command::new(program);
        let cache = self.path("cache");
        command
            .current_dir(self.folder.path())
            .env("WARPWRIGHT_CACHE", cache);
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{program:?} {args:?}: {output:?}");
        output
    }

    fn nvcc(&self, args: &[&str]) {
        let nvcc = self.toolkit.nvcc().unwrap().tool().path.clone();
        self.run(&nvcc, &[&["-arch=sm_90"], args].concat());
    }

    fn opt(&self, file: &str, out: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_warpwright"));
        let output = self.run(
            program,
            &[
                "opt",
                file,
                "-o",
                out,
                "--gpu",
                "h200",
                "--block",
                "64",
                "--dynamic-smem",
                "0",
            ],
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// What `check` says of two of them.
    fn checked(&self, one: &str, other: &str, code: i32) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_warpwright"));
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        let words = ["check", one, other, "--block", "64", "--dynamic-smem", "0"];
        let output = command.args(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{one} {other}: {output:?}"
        );
        text
    }

    fn answers(&self, program: &str) {
        let output = self.run(&self.path(program), &[]);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "42 1\n",
            "{program}"
        );
    }

    /// Our reading and cuobjdump's agree, and the kernel's frame is gone or not.
    fn holds(&self, file: &str, is_moved: bool) {
        let bytes = std::fs::read(self.path(file)).unwrap();
        let fat = Fatbin::parse(&bytes).unwrap();
        let ours: Vec<Vec<u8>> = fat
            .extract(|e| e.kind == Kind::Cubin)
            .unwrap()
            .into_iter()
            .map(|(_, cubin)| cubin)
            .collect();
        let theirs = self
            .toolkit
            .cuobjdump()
            .unwrap()
            .extract_elf(&self.path(file))
            .unwrap();
        assert_eq!(ours.len(), theirs.len(), "{file}");
        for cubin in &ours {
            let same = theirs
                .iter()
                .any(|t| cubin.starts_with(&t.bytes) || t.bytes.starts_with(cubin));
            assert!(same, "{file}: cuobjdump finds another cubin");
        }
        let kernels = ours
            .iter()
            .filter_map(|c| Cubin::parse(c).unwrap().kernel("spills").cloned());
        let frames: Vec<u32> = kernels.map(|kernel| kernel.frame_bytes).collect();
        assert!(
            !frames.is_empty() && frames.iter().all(|&f| (f == 0) == is_moved),
            "{file}: {frames:?}"
        );
    }
}

#[test]
fn what_is_optimized_still_starts_loads_and_links() {
    let Some(bench) = Bench::new("what_is_optimized_still_starts_loads_and_links") else {
        return;
    };
    bench.nvcc(&["-c", "k.cu", "-o", "k.o"]);
    bench.nvcc(&["-o", "program", "k.cu", "main.cu"]);
    bench.nvcc(&["-Xcompiler", "-no-pie", "-o", "fixed", "k.cu", "main.cu"]);
    bench.nvcc(&["-shared", "-Xcompiler", "-fPIC", "k.cu", "-o", "libk.so"]);
    bench.nvcc(&["-fatbin", "k.cu", "-o", "k.fatbin"]);
    for file in ["program", "fixed", "libk.so", "k.o", "k.fatbin"] {
        bench.holds(file, false);
        let out = format!("new-{file}");
        let text = bench.opt(file, &out);
        let is_moved = |line: &str| line.contains(" spills ") && line.ends_with(" spill-to-shared");
        assert!(text.lines().any(is_moved), "{file}: {text}");
        bench.holds(&out, true);
        let text = bench.checked(file, &out, 0);
        assert!(text.contains("spills: proved"), "{file}: {text}");
        // Nor is another program taken for it, nor one with other code beside its cubins.
        let mut bytes = std::fs::read(bench.path(&out)).unwrap();
        bytes.extend(b"more");
        std::fs::write(bench.path("more"), bytes).unwrap();
        let text = bench.checked(file, "more", 5);
        assert!(text.contains("the rest of the file: undecided"), "{text}");
    }
    bench.checked("program", "libk.so", 1);
    bench.answers("new-program");
    bench.answers("new-fixed");
    bench.nvcc(&["-o", "linked", "new-k.o", "main.cu"]);
    bench.answers("linked");
    bench.holds("linked", true);
    std::fs::create_dir(bench.path("with")).unwrap();
    std::fs::rename(bench.path("new-libk.so"), bench.path("with/libk.so")).unwrap();
    bench.nvcc(&[
        "-o",
        "user",
        "main.cu",
        "-Lwith",
        "-lk",
        "-Xlinker",
        "-rpath=$ORIGIN/with",
    ]);
    bench.answers("user");
}

/// A cubin that cannot fit, however it is compressed.
#[test]
fn files_grow_and_still_start_load_and_link() {
    let Some(bench) = Bench::new("files_grow_and_still_start_load_and_link") else {
        return;
    };
    bench.nvcc(&["-c", "k.cu", "-o", "k.o"]);
    bench.nvcc(&["-o", "program", "k.cu", "main.cu"]);
    bench.nvcc(&["-Xcompiler", "-no-pie", "-o", "fixed", "k.cu", "main.cu"]);
    bench.nvcc(&["-shared", "-Xcompiler", "-fPIC", "k.cu", "-o", "libk.so"]);
    for file in ["program", "fixed", "libk.so", "k.o"] {
        let bytes = std::fs::read(bench.path(file)).unwrap();
        let fat = Fatbin::parse(&bytes).unwrap();
        let cubins = fat.extract(|e| e.kind == Kind::Cubin).unwrap();
        let named = |cubin: &[u8]| Cubin::parse(cubin).is_ok_and(|c| c.kernel("spills").is_some());
        let (entry, cubin) = cubins.iter().find(|(_, cubin)| named(cubin)).unwrap();
        // Behind its sections a cubin may have anything; noise does not compress.
        let mut state = 1u64;
        let noise = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 56) as u8
        });
        let large: Vec<u8> = cubin.iter().copied().chain(noise.take(300_000)).collect();
        let written = fat.replace(&[(*entry, &large)]).unwrap();
        let out = bench.path(&format!("new-{file}"));
        std::fs::write(&out, &written).unwrap();
        let mode = std::fs::metadata(bench.path(file)).unwrap().permissions();
        std::fs::set_permissions(&out, mode).unwrap();
        let again = Fatbin::parse(&written).unwrap();
        assert!(
            again.contents(*entry).unwrap().starts_with(&large),
            "{file}"
        );
        bench.holds(&format!("new-{file}"), false);
        // Once more, and the other cubins are what they were.
        let shorter: Vec<u8> = large[..200_000].to_vec();
        let third = again.replace(&[(*entry, &shorter)]).unwrap();
        assert_eq!(third.len(), written.len());
        for (other, old) in cubins.iter().filter(|(other, _)| other != entry) {
            assert_eq!(&again.contents(*other).unwrap(), old);
        }
    }
    bench.answers("new-program");
    bench.answers("new-fixed");
    bench.nvcc(&["-o", "linked", "new-k.o", "main.cu"]);
    bench.answers("linked");
    std::fs::create_dir(bench.path("with")).unwrap();
    std::fs::rename(bench.path("new-libk.so"), bench.path("with/libk.so")).unwrap();
    bench.nvcc(&[
        "-o",
        "user",
        "main.cu",
        "-Lwith",
        "-lk",
        "-Xlinker",
        "-rpath=$ORIGIN/with",
    ]);
    bench.answers("user");
}
