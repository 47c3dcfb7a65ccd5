//! The wrappers in front of the real tools.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{
    BuildCache, FindOptions, NvccJob, PtxasJob, Severity, ToolError, Toolkit,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

#[test]
fn cuda_to_ptx_to_cubin_to_text() {
    let Some(toolkit) = require_toolkit("cuda_to_ptx_to_cubin_to_text") else {
        return;
    };
    let source = fixture("spills.cu");
    let made = toolkit
        .nvcc()
        .unwrap()
        .to_ptx(&NvccJob::new(&source, "sm_90"))
        .unwrap();
    assert!(made.ptx.contains(".entry big("));
    assert!(made.ptx.contains(".loc"), "line numbers are kept");

    let ptxas = toolkit.ptxas().unwrap();
    let free = ptxas.run(&PtxasJob::new(&made.ptx, "sm_90")).unwrap();
    let mut job = PtxasJob::new(&made.ptx, "sm_90");
    (job.maxrregcount, job.register_usage_level, job.lineinfo) = (Some(64), Some(0), true);
    let limited = ptxas.run(&job).unwrap();
    assert!(free.resources.kernel("big").unwrap().registers > Some(64));
    assert_eq!(limited.resources.kernel("big").unwrap().registers, Some(64));
    assert!(limited.resources.kernel("big").unwrap().spills());
    assert_eq!(limited.resources.unparsed, [] as [&str; 0]);
    assert!(!limited.log.contains("Compile time"));
    assert_eq!(
        ptxas.run(&job).unwrap().cubin,
        limited.cubin,
        "the same bytes each time"
    );

    let nvdisasm = toolkit.nvdisasm().unwrap();
    let text = nvdisasm.disassemble(&limited.cubin, &["-c"]).unwrap();
    assert!(text.contains(".text.big"));
    let json = nvdisasm.json(&limited.cubin).unwrap();
    let functions = json.pointer("/1").and_then(|f| f.as_array()).unwrap();
    assert!(functions.iter().any(|f| f["function-name"] == "big"));
    let error = nvdisasm.disassemble(b"junk", &[]).unwrap_err();
    assert!(error.is_input_error(), "{error:?}");
}

#[test]
fn a_kernel_under_another_name_has_its_own_in_the_cubin() {
    let Some(toolkit) = require_toolkit("a_kernel_under_another_name_has_its_own_in_the_cubin")
    else {
        return;
    };
    let nvcc = toolkit.nvcc().unwrap();
    let made = nvcc
        .to_ptx(&NvccJob::new(&fixture("spills.cu"), "sm_90"))
        .unwrap();
    let build = |suffix| {
        let mut job = PtxasJob::new(&made.ptx, "sm_90");
        job.suffix = suffix;
        BuildCache::disabled()
            .ptxas(&toolkit.ptxas().unwrap(), &job)
            .unwrap()
    };
    let code = |cubin: &[u8]| {
        toolkit
            .nvdisasm()
            .unwrap()
            .disassemble(cubin, &["-c"])
            .unwrap()
    };
    let (plain, other) = (build(None), build(Some("_other_name")));
    // Functions inside of kernels keep the name in theirs; how wide columns are follows from it.
    let words = |cubin: &[u8]| {
        let text = code(cubin).replace("_other_name", "");
        let lines = text.lines().filter(|line| !line.starts_with("//"));
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        lines.map(words).collect::<Vec<_>>().join("\n")
    };
    let (a, b) = (words(&plain.cubin), words(&other.cubin));
    for (a, b) in a.lines().zip(b.lines()) {
        assert_eq!(a, b);
    }
    assert_eq!(plain.resources.kernel("big"), other.resources.kernel("big"));
    let named = build(Some("_cutlass"));
    assert!(named.resources.kernel("big").is_some());
    assert!(code(&named.cubin).contains(".text.big"));
    assert!(!code(&named.cubin).contains("big_cutlass"));
}

#[test]
fn cuda_to_cubin_in_one_step() {
    let Some(toolkit) = require_toolkit("cuda_to_cubin_in_one_step") else {
        return;
    };
    let source = fixture("spills.cu");
    let build = toolkit
        .nvcc()
        .unwrap()
        .to_cubin(&NvccJob::new(&source, "sm_80"))
        .unwrap();
    assert!(build.resources.kernel("big").unwrap().spills());
    assert_eq!(build.resources.unparsed, [] as [&str; 0]);
}

#[test]
fn ptxas_points_into_the_text() {
    let Some(toolkit) = require_toolkit("ptxas_points_into_the_text") else {
        return;
    };
    let ptx = fs::read_to_string(fixture("refused.ptx")).unwrap();
    let error = toolkit
        .ptxas()
        .unwrap()
        .run(&PtxasJob::new(&ptx, "sm_90"))
        .unwrap_err();
    let ToolError::Rejected {
        diagnostics, log, ..
    } = &error
    else {
        panic!("{error:?}")
    };
    let lines: Vec<_> = diagnostics.iter().filter_map(|d| d.line).collect();
    assert!([7, 8, 9].iter().all(|l| lines.contains(l)), "{lines:?}");
    assert!(diagnostics.iter().all(|d| d.file.is_none()));
    assert!(!log.contains("warpwright-"), "no private path: {log}");
}

#[test]
fn ptxas_refuses_unknown_architectures_and_options() {
    let Some(toolkit) = require_toolkit("ptxas_refuses_unknown_architectures") else {
        return;
    };
    let ptxas = toolkit.ptxas().unwrap();
    let error = ptxas.run(&PtxasJob::new("", "sm_42")).unwrap_err();
    assert!(error.to_string().contains("sm_42"), "{error}");
    let mut job = PtxasJob::new("", "sm_90");
    job.extra = vec!["--frob".into()];
    assert!(ptxas.run(&job).unwrap_err().to_string().contains("frob"));
}

#[test]
fn nvcc_points_into_the_source() {
    let Some(toolkit) = require_toolkit("nvcc_points_into_the_source") else {
        return;
    };
    let source = fixture("refused.cu");
    let error = toolkit
        .nvcc()
        .unwrap()
        .to_ptx(&NvccJob::new(&source, "sm_90"))
        .unwrap_err();
    let ToolError::Rejected { diagnostics, .. } = &error else {
        panic!("{error:?}")
    };
    let errors: Vec<_> = diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .collect();
    assert_eq!(
        errors.iter().map(|d| d.line).collect::<Vec<_>>(),
        [Some(3), Some(4)]
    );
}

#[test]
fn inline_assembly_that_ptxas_refuses_has_a_place_in_the_source() {
    let Some(toolkit) =
        require_toolkit("inline_assembly_that_ptxas_refuses_has_a_place_in_the_source")
    else {
        return;
    };
    let text = "__global__ void k(float *a) {\n    float x = a[0];\n    \
                asm volatile(\"mul.f33 %0, %0, %0;\" : \"+f\"(x));\n    a[0] = x;\n}\n";
    let nvcc = toolkit.nvcc().unwrap();
    for lineinfo in [false, true] {
        let job = NvccJob {
            lineinfo,
            ..NvccJob::new("asm.cu".as_ref(), "sm_90")
        };
        let error = nvcc.text_to_ptx(text, &job).unwrap_err();
        let ToolError::Rejected { diagnostics, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(diagnostics[0].line, Some(3), "{error}");
        assert!(
            error
                .to_string()
                .contains("asm.cu:3: error: inline assembly"),
            "{error}"
        );
    }
}

/// One compilation makes both, and what is kept of it is what nvcc makes of the kernels alone.
#[test]
fn an_object_brings_the_ptx_of_its_kernels() {
    let Some(toolkit) = require_toolkit("an_object_brings_the_ptx_of_its_kernels") else {
        return;
    };
    let nvcc = toolkit.nvcc().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cache = BuildCache::open(dir.path().join("cache"), 1 << 30);
    let source = dir.path().join("k.cu");
    // A header that the host does not see.
    let header = dir.path().join("own.h");
    let text = "#ifdef __CUDA_ARCH__\n#include \"own.h\"\n#else\n#define FACTOR 0\n#endif\n\
                namespace { __global__ void hidden(float *x) { x[0] = FACTOR * x[1]; } }\n\
                int main() { hidden<<<1, 1>>>(nullptr); }\n";
    let of_kernels = NvccJob::new(&source, "sm_90");
    let mut of_object = of_kernels.clone();
    of_object.extra.push("-O2".into());
    let made = |text: &str| {
        fs::write(&source, text).unwrap();
        cache.object(&nvcc, &of_object, Some(&of_kernels)).unwrap();
        cache.nvcc(&nvcc, &of_kernels).unwrap()
    };
    fs::write(&header, "#define FACTOR 2\n").unwrap();
    let kept = made(text);
    assert!(kept.cached);
    assert_eq!(kept.ptx, nvcc.to_ptx(&of_kernels).unwrap().ptx);
    fs::write(&header, "#define FACTOR 3\n").unwrap();
    assert!(!cache.nvcc(&nvcc, &of_kernels).unwrap().cached);
    // Optimised host code is other code then.
    let asks = format!("#ifdef __OPTIMIZE__\n#define MORE 1\n#endif\n{text}");
    assert!(!made(&asks).cached);
}

#[test]
fn a_fat_object_gives_up_its_parts() {
    let Some(toolkit) = require_toolkit("a_fat_object_gives_up_its_parts") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let object = dir.path().join("spills.o");
    let made = std::process::Command::new(&toolkit.nvcc().unwrap().tool().path)
        .args(["-arch=sm_80", "-c", "-o"])
        .args([&object, &fixture("spills.cu")])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let cuobjdump = toolkit.cuobjdump().unwrap();
    let cubins = cuobjdump.extract_elf(&object).unwrap();
    assert_eq!(
        cuobjdump.list_elf(&object).unwrap(),
        [cubins[0].name.clone()]
    );
    assert!(cubins[0].bytes.starts_with(b"\x7fELF"));
    let modules = cuobjdump.extract_ptx(&object).unwrap();
    assert_eq!(
        cuobjdump.list_ptx(&object).unwrap(),
        [modules[0].name.clone()]
    );
    assert!(String::from_utf8_lossy(&modules[0].bytes).contains(".entry big("));
    let none = cuobjdump.list_elf(&fixture("spills.cu")).unwrap();
    assert_eq!(none, [] as [&str; 0], "a file without device code has none");
}

#[test]
fn builds_are_kept_checked_and_evicted() {
    let Some(toolkit) = require_toolkit("builds_are_kept_checked_and_evicted") else {
        return;
    };
    let ptxas = toolkit.ptxas().unwrap();
    let ptx = fs::read_to_string(fixture("setmaxnreg.ptx")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cache = BuildCache::open(dir.path().to_path_buf(), 1 << 20);
    let job = PtxasJob::new(&ptx, "sm_90a");

    let first = cache.ptxas(&ptxas, &job).unwrap();
    assert!(!first.cached);
    let second = cache.ptxas(&ptxas, &job).unwrap();
    assert!(second.cached);
    assert_eq!(
        (&second.cubin, &second.resources),
        (&first.cubin, &first.resources)
    );
    assert!(!BuildCache::disabled().ptxas(&ptxas, &job).unwrap().cached);

    let mut other = job.clone();
    other.maxrregcount = Some(40);
    assert!(
        !cache.ptxas(&ptxas, &other).unwrap().cached,
        "other arguments, other entry"
    );
    let spaced = format!("{ptx} ");
    let changed = PtxasJob::new(&spaced, "sm_90a");
    assert!(
        !cache.ptxas(&ptxas, &changed).unwrap().cached,
        "other text, other entry"
    );

    for damage in [&b""[..], b"WWBUILD3", &[7; 5000]] {
        files(dir.path())
            .iter()
            .for_each(|file| fs::write(file, damage).unwrap());
        assert!(
            !cache.ptxas(&ptxas, &job).unwrap().cached,
            "a damaged entry is built again"
        );
        assert!(cache.ptxas(&ptxas, &job).unwrap().cached);
    }
    for file in files(dir.path()) {
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&file, bytes).unwrap();
    }
    assert!(
        !cache.ptxas(&ptxas, &job).unwrap().cached,
        "one flipped bit is noticed"
    );

    let size = files(dir.path())
        .iter()
        .map(|f| fs::metadata(f).unwrap().len())
        .max()
        .unwrap();
    let small_dir = tempfile::tempdir().unwrap();
    let small = BuildCache::open(small_dir.path().to_path_buf(), size * 5 / 2);
    for limit in [32, 40, 48, 56, 64] {
        other.maxrregcount = Some(limit);
        small.ptxas(&ptxas, &other).unwrap();
    }
    let left = files(small_dir.path())
        .iter()
        .map(|f| fs::metadata(f).unwrap().len())
        .sum::<u64>();
    assert!(left <= size * 5 / 2, "{left} bytes are kept");
    assert!(
        small.ptxas(&ptxas, &other).unwrap().cached,
        "the newest stays"
    );
}

#[test]
fn ptx_is_kept_until_a_header_changes() {
    let Some(toolkit) = require_toolkit("ptx_is_kept_until_a_header_changes") else {
        return;
    };
    let nvcc = toolkit.nvcc().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (source, header) = (dir.path().join("a b.cu"), dir.path().join("h $.h"));
    fs::write(
        &source,
        "#include \"h $.h\"\n__global__ void k(int *p) { *p = N; }\n",
    )
    .unwrap();
    fs::write(&header, "#define N 11\n").unwrap();
    let store = dir.path().join("cache");
    let cache = BuildCache::open(store.clone(), 1 << 20);
    let job = NvccJob::new(&source, "sm_90");

    let first = cache.nvcc(&nvcc, &job).unwrap();
    assert_eq!(files(&store).len(), 1);
    let again = cache.nvcc(&nvcc, &job).unwrap();
    assert!(again.cached && !first.cached);
    assert_eq!(
        (&again.ptx, &again.diagnostics),
        (&first.ptx, &first.diagnostics)
    );
    fs::write(&header, "#define N 22\n").unwrap();
    let second = cache.nvcc(&nvcc, &job).unwrap();
    assert!(
        second.ptx.contains("22") && !first.ptx.contains("22"),
        "{}",
        second.ptx
    );
    assert!(!second.cached);
    let mut other = job.clone();
    other.extra = vec!["-DM".into()];
    cache.nvcc(&nvcc, &other).unwrap();
    assert_eq!(files(&store).len(), 2, "other arguments, other entry");
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let shards = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    shards
        .flat_map(|s| fs::read_dir(s).unwrap().map(|e| e.unwrap().path()))
        .collect()
}

/// A toolkit whose ptxas is a script around the real one.
fn wrapped(body: &str) -> Option<(tempfile::TempDir, Toolkit)> {
    use std::os::unix::fs::PermissionsExt;
    let real = require_toolkit("a wrapped ptxas")?;
    let real = real.ptxas().unwrap().tool().path.clone();
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("ptxas");
    fs::write(
        &script,
        format!("#!/bin/sh\nreal='{}'\n{body}\n", real.display()),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let explicit_dir = Some(dir.path().to_path_buf());
    let toolkit = Toolkit::find(&FindOptions { explicit_dir }).unwrap();
    Some((dir, toolkit))
}

const KERNEL: &str =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";

#[test]
fn a_build_without_its_report_is_not_kept_and_another_program_has_entries_of_its_own() {
    let Some((_mute_dir, mute)) = wrapped("exec \"$real\" \"$@\" >/dev/null 2>&1") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let cache = BuildCache::open(dir.path().to_path_buf(), 1 << 20);
    let job = PtxasJob::new(KERNEL, "sm_90");
    for _ in 0..2 {
        let build = cache.ptxas(&mute.ptxas().unwrap(), &job).unwrap();
        assert!(!build.cached && build.resources.kernel("k").is_none());
    }
    let (_dir, plain) = wrapped("exec \"$real\" \"$@\"").unwrap();
    let build = cache.ptxas(&plain.ptxas().unwrap(), &job).unwrap();
    assert!(!build.cached && build.resources.kernel("k").is_some());
    assert!(cache.ptxas(&plain.ptxas().unwrap(), &job).unwrap().cached);
    // The same version, but not the same program.
    let (_dir, other) = wrapped("exec \"$real\" \"$@\" # other").unwrap();
    assert!(!cache.ptxas(&other.ptxas().unwrap(), &job).unwrap().cached);
}

#[test]
fn a_cubin_that_is_cut_or_of_another_module_is_an_error_each_time() {
    let cut = "\"$real\" \"$@\" || exit 1; for last; do :; done; head -c 100 \"$last\" > \"$last.cut\"; \
               mv \"$last.cut\" \"$last\"";
    let other = "for file; do case \"$file\" in *.ptx) sed -i s/k/other/ \"$file\";; esac; done; exec \"$real\" \"$@\"";
    for (body, reason) in [(cut, "not whole"), (other, "has no kernel `k`")] {
        let Some((_dir, toolkit)) = wrapped(body) else {
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let cache = BuildCache::open(dir.path().to_path_buf(), 1 << 20);
        for _ in 0..2 {
            let job = PtxasJob::new(KERNEL, "sm_90");
            let error = cache.ptxas(&toolkit.ptxas().unwrap(), &job).unwrap_err();
            assert!(matches!(error, ToolError::Garbage { .. }), "{error:?}");
            assert!(error.to_string().contains(reason), "{error}");
        }
        assert!(
            fs::read_dir(dir.path()).unwrap().next().is_none(),
            "nothing is kept"
        );
    }
}

#[test]
fn a_pipe_in_the_place_of_an_entry_is_no_entry() {
    let Some(toolkit) = require_toolkit("a_pipe_in_the_place_of_an_entry_is_no_entry") else {
        return;
    };
    let ptxas = toolkit.ptxas().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cache = BuildCache::open(dir.path().to_path_buf(), 1 << 20);
    let job = PtxasJob::new(KERNEL, "sm_90");
    cache.ptxas(&ptxas, &job).unwrap();
    for file in files(dir.path()) {
        fs::remove_file(&file).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.unwrap().success());
    }
    assert!(!cache.ptxas(&ptxas, &job).unwrap().cached);
    assert!(
        cache.ptxas(&ptxas, &job).unwrap().cached,
        "it took the pipe's place"
    );
}
