//! A file in which a kernel is launched in another way: what changes, and that nothing else does.

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_stencil::extract::{self, extract};
use warpwright_stencil::replace::{Note, Refusal, Replaced, Subject, Use};
use warpwright_stencil::stream::{Plan, generate};

const KERNEL: &str = "#define first 7\n\
    __global__ void blur(float weight, const float* __restrict__ in, int pitch, float *out, int n, long m)\n{\n\
    \x20   int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * 16 + threadIdx.y;\n\
    \x20   if (i >= 1 && i < n - 1 && j < m) out[j * pitch + i] = weight * (in[j * pitch + i - 1] + in[j * pitch + i + 1]);\n}";

fn replaced(text: &str) -> Result<Replaced, Refusal> {
    let file = File::parse(Source::new("file.cu", text)).expect("a file");
    let header = &file.kernels[0];
    let stencil = extract(&file, header).expect("a stencil");
    let mapping = extract::mapping(&file, header).expect("a stencil");
    let function = file.kernel(header).expect("a kernel");
    let plan = Plan {
        block: [32, 1],
        points: [1, 1],
        ahead: 1,
        chunk: 8,
        unroll: 1,
        reassociate: false,
        stage: false,
        reload: false,
        min_blocks: 1,
    };
    let kernel = generate(&stencil, &plan).expect("a kernel");
    let subject = Subject {
        file: &file,
        header,
        function: &function,
        stencil: &stencil,
        mapping: mapping.as_deref().ok_or(Refusal::Geometry)?,
    };
    subject.replaced(&kernel.sweep)
}

/// What was put behind the kernel, and the text without it.
fn inserted(before: &str, after: &str) -> (String, String) {
    let end = before.find(KERNEL).expect("the kernel") + KERNEL.len();
    assert_eq!(
        &before[..end],
        &after[..end],
        "the kernel and what is before it stay"
    );
    let mark = "}  // extern \"C++\"\n";
    let close = after.find(mark).expect("the block's end") + mark.len();
    let rest = format!("{}{}", &after[..end], &after[close..]);
    (after[end..close].to_owned(), rest)
}

#[test]
fn launches_are_rewritten_and_nothing_else() {
    let host = "\nvoid run(float* a, float* b, int n, cudaStream_t st) {\n\
        \x20 // blur<<<1, 1>>>(0) in a comment\n\
        \x20 const char* text = \"blur<<<1, 1>>>(0)\";\n\
        \x20 dim3 g((n + 31) / 32, (n + 15) / 16);\n\
        \x20 if (n) blur<<<g, dim3(32, 16)>>>(2.f, a, n, b, n, n);\n\
        \x20 blur <<< g, dim3(32, 16), 0, st >>> (\n    2.f, a, n, b, n, n);\n\
        \x20 void* p[6];\n\
        \x20 cudaLaunchKernel(reinterpret_cast<const void*>(&blur), g, dim3(32, 16), p, 0, st);\n}\n";
    let before = format!("{KERNEL}{host}");
    let after = replaced(&before).expect("it can be replaced");
    assert_eq!((after.launches, after.notes.len()), (3, 0));
    let (block, rest) = inserted(&before, &after.text);
    let expected = before
        .replace(
            "blur<<<g, dim3(32, 16)>>>(2.f",
            "blur_launch(g, dim3(32, 16), 0, 0, 2.f",
        )
        .replace(
            "blur <<< g, dim3(32, 16), 0, st >>> (\n    2.f",
            "blur_launch ( g, dim3(32, 16), 0, st , \n    2.f",
        )
        .replace(
            "cudaLaunchKernel(reinterpret_cast<const void*>(&blur), ",
            "blur_launch_pointers( ",
        );
    assert_eq!(rest, expected);
    // The kernel's own parameters, in their order; its own block; sizes that `int` holds.
    assert!(block.contains(
        "cudaStream_t stream, float weight, const float* __restrict__ in, int pitch, float *out, int n, long m)"
    ) || block.contains("st_"), "{block}");
    assert!(block.contains("block.y == 16"), "{block}");
    assert!(block.contains("(long long)m == (int)m"), "{block}");
    assert!(block.contains("grid.z * block.z == 1"), "{block}");
    // A macro of the file does not change what was generated.
    assert!(block.contains("const int first_ = "), "{block}");
}

#[test]
fn what_is_not_understood_is_left_with_a_note() {
    let before = format!(
        "void early(float* a) {{ blur<<<1, 1>>>(1.f, a, 1, a, 1, 1); }}\n{KERNEL}\n\
         #define RUN(a) blur<<<1, 1>>>(1.f, a, 1, a, 1, 1)\n\
         void* pointer() {{ return (void*)blur; }}\n"
    );
    let after = replaced(&before).expect("it can be replaced");
    let note = |line, what| Note { line, what };
    let expected = [
        note(1, Use::BeforeDefinition),
        note(8, Use::InMacro),
        note(9, Use::Other),
    ];
    assert_eq!(after.notes, expected);
    assert_eq!(after.launches, 0);
    let (_, rest) = inserted(&before, &after.text);
    assert_eq!(rest, before);
}

#[test]
fn names_that_are_taken_are_not_used() {
    let before = format!("void blur_launch();\nint grid, blur_2_device;\n{KERNEL}\n");
    let after = replaced(&before).expect("it can be replaced");
    assert_eq!(after.names.launch(), "blur_3_launch");
    assert!(after.text.contains("blur_3_launch(dim3 grid_, dim3 block"));
}
