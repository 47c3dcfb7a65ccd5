//! `warpwright launch`: what it writes of everyday code runs in the emulator as it is, and at the full size its numbers
//! are those of the code.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpwright_launch::{Arg, LaunchFile};
use warpwright_toolkit::testing::require_toolkit;

fn run_in(folder: &Path, args: &[&str]) -> Output {
    run_with(folder, args, "programs do not run here".as_ref())
}

/// The same with what programs find in the runtime's place.
fn run_with(folder: &Path, args: &[&str], standin: &OsStr) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    command.env("WARPWRIGHT_STANDIN", standin);
    let command = command.arg(args[0]).current_dir(folder);
    if args[0] == "launch" {
        // However slow the machine is.
        command.args(["--budget", "900"]);
    }
    command
        .args(&args[1..])
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The description of a kernel in a text, which has to run at its small size.
fn described(folder: &Path, source: &str, kernel: &str) -> String {
    described_with(
        (folder, source, kernel),
        "programs do not run here".as_ref(),
    )
}

/// The same of the launch that the program makes.
fn ran(folder: &Path, source: &str, kernel: &str) -> String {
    described_with((folder, source, kernel), library().as_os_str())
}

/// What programs find in the runtime's place.
fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let library = own.with_file_name("libwarpwright_standin.so");
    assert!(library.exists(), "{} is missing", library.display());
    library
}

fn described_with((folder, source, kernel): (&Path, &str, &str), standin: &OsStr) -> String {
    std::fs::write(folder.join("k.cu"), source).unwrap();
    let args = [
        "launch", "k.cu", "--kernel", kernel, "-o", "k.toml", "--force",
    ];
    let made = run_with(folder, &args, standin);
    assert!(made.status.success(), "{kernel}: {}", text(&made.stderr));
    let toml = std::fs::read_to_string(folder.join("k.toml")).unwrap();
    let args = ["run", "k.cu", "--launch", "k.toml", "--size", "small"];
    let emulated = run_in(folder, &args);
    assert!(
        emulated.status.success(),
        "{kernel}: {}\n{toml}",
        text(&emulated.stderr)
    );
    toml
}

/// Grid, block, dynamic shared memory, and what is handed over at the full size: elements of a buffer as `[8]`, bytes of
/// a value as a number of them.
fn at_full(toml: &str) -> String {
    let file = LaunchFile::parse(toml, "k.toml").unwrap();
    let launch = file.resolve("full", &[]).unwrap();
    let one = |arg: &Arg| match (arg.points_to(), arg.ty) {
        (Some(of), _) if launch.memory[of].name == arg.name => {
            format!("[{}]", launch.memory[of].len)
        }
        (Some(of), _) => format!("={of}"),
        (None, Some(ty)) => ty.to_f64(ty.read(&arg.bytes)).to_string(),
        (None, None) => {
            let members = arg.pointers.iter().map(|to| &launch.memory[to.of]);
            let members: Vec<String> = members.map(|m| format!("[{}]", m.len)).collect();
            format!("{{{}}}", members.join(" "))
        }
    };
    let args: Vec<String> = launch.args.iter().map(one).collect();
    let symbols: Vec<String> = launch
        .symbols
        .iter()
        .map(|s| format!("{}[{}]", s.name, s.len))
        .collect();
    let list = [args, symbols].concat().join(" ");
    format!(
        "{:?} {:?} {} {list}",
        launch.grid, launch.block, launch.dynamic_smem
    )
}

#[test]
fn everyday_code_runs_and_has_its_own_numbers() {
    if require_toolkit("launch descriptions of everyday code").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (source, kernel, full) in [
        // A size that the program may be given, and a check of each call.
        (
            "#include <cstdlib>\n#define CHECK(c) do { if ((c) != cudaSuccess) exit(1); } while (0)\n\
             __global__ void add(const float *a, float *b, int n, float s) {\n\
               int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[i] += s * a[i]; }\n\
             int main(int argc, char **argv) { int n = 1 << 20; if (argc > 1) n = atoi(argv[1]);\n\
               size_t bytes = n * sizeof(float); float *a, *b; const float s = 1.0f / 4;\n\
               CHECK(cudaMalloc(&a, bytes)); CHECK(cudaMalloc((void **)&b, bytes));\n\
               int t = 256, g = (n + t - 1) / t; add<<<g, t>>>(a, b, n, s); }",
            "add",
            "[4096, 1, 1] [256, 1, 1] 0 [1048576] [1048576] 1048576 0.25",
        ),
        // A sparse matrix: row pointers and columns.
        (
            "__global__ void spmv(int rows, const int *ptr, const int *col, const double *v, const double *x, double *y) {\n\
               int r = blockIdx.x * blockDim.x + threadIdx.x; if (r < rows) { double s = 0;\n\
               for (int j = ptr[r]; j < ptr[r + 1]; ++j) s += v[j] * x[col[j]]; y[r] = s; } }\n\
             int main() { int rows = 100000, nnz = rows * 5; int *ptr, *col; double *v, *x, *y;\n\
               cudaMalloc(&ptr, (rows + 1) * sizeof(int)); cudaMalloc(&col, nnz * sizeof(int));\n\
               cudaMalloc(&v, nnz * sizeof(double)); cudaMalloc(&x, rows * 8); cudaMalloc(&y, rows * 8);\n\
               spmv<<<(rows + 127) / 128, 128>>>(rows, ptr, col, v, x, y); }",
            "spmv",
            "[782, 1, 1] [128, 1, 1] 0 100000 [100001] [500000] [500000] [100000] [100000]",
        ),
        // A macro that the kernel is compiled with stays what it is, in two dimensions.
        (
            "#define NX 1024\n#define NY 768\n__global__ void heat(const float *u, float *v) {\n\
               int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;\n\
               if (i > 0 && i < NX - 1 && j > 0 && j < NY - 1) v[j * NX + i] = u[(j + 1) * NX + i] + u[(j - 1) * NX + i]; }\n\
             int main() { float *u, *v; cudaMalloc(&u, NX * NY * sizeof(float)); cudaMalloc(&v, NX * NY * sizeof(float));\n\
               dim3 b(32, 8); dim3 g((NX + b.x - 1) / b.x, (NY + b.y - 1) / b.y);\n\
               for (int s = 0; s < 9; ++s) { heat<<<g, b>>>(u, v); float *t = u; u = v; v = t; } }",
            "heat",
            "[32, 96, 1] [32, 8, 1] 0 [786432] [786432]",
        ),
        // Sizes from the caller, dynamic shared memory by the block.
        (
            "__global__ void sums(const float *x, float *y, int cols) { extern __shared__ float s[];\n\
               float a = 0; for (int i = threadIdx.x; i < cols; i += blockDim.x) a += x[blockIdx.x * cols + i];\n\
               s[threadIdx.x] = a; __syncthreads(); if (threadIdx.x == 0) { for (int i = 1; i < blockDim.x; ++i) a += s[i];\n\
               y[blockIdx.x] = a; } }\n\
             void rows(const float *x, float *y, int batch, int dim) { const int t = 64;\n\
               sums<<<batch, t, t * sizeof(float)>>>(x, y, dim); }\n\
             int main() { int batch = 512, dim = 4096; float *x, *y;\n\
               cudaMalloc(&x, (size_t)batch * dim * sizeof(float)); cudaMalloc(&y, batch * sizeof(float));\n\
               rows(x, y, batch, dim); }",
            "sums",
            "[512, 1, 1] [64, 1, 1] 256 [2097152] [512] 4096",
        ),
        // Module variables that the host sets, and the same memory twice.
        (
            "#define R 4\n__constant__ float c[2 * R + 1];\n__constant__ int count;\n\
             __global__ void conv(const float *in, float *out, float *same) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
               if (i >= count) return; float s = same[i]; for (int k = -R; k <= R; ++k) { int j = i + k;\n\
               if (j >= 0 && j < count) s += in[j] * c[k + R]; } out[i] = s; }\n\
             int main() { const int n = 1 << 20; float h[2 * R + 1]; cudaMemcpyToSymbol(c, h, sizeof(h));\n\
               cudaMemcpyToSymbol(count, &n, sizeof(int)); float *in, *out;\n\
               cudaMalloc(&in, n * sizeof(float)); cudaMalloc(&out, n * sizeof(float));\n\
               conv<<<(n + 255) / 256, 256>>>(in, out, out); }",
            "conv",
            "[4096, 1, 1] [256, 1, 1] 0 [1048576] [1048576] =1 c[9] count[1]",
        ),
        // A loop that changes what is handed over: its first launch. No name makes the grid smaller.
        (
            "__global__ void step(float *x, int j, int k) { unsigned i = threadIdx.x + blockDim.x * blockIdx.x, o = i ^ j;\n\
               if (o > i && (i & k) == 0 && x[i] > x[o]) { float t = x[i]; x[i] = x[o]; x[o] = t; } }\n\
             int main() { float *x; cudaMalloc((void **)&x, 512 * 32768 * sizeof(float)); int j, k;\n\
               for (k = 2; k <= 512 * 32768; k <<= 1) for (j = k >> 1; j > 0; j = j >> 1) step<<<32768, 512>>>(x, j, k); }",
            "step",
            "[32768, 1, 1] [512, 1, 1] 0 [16777216] 1 2",
        ),
    ] {
        let toml = ran(folder.path(), source, kernel);
        assert_eq!(at_full(&toml), full, "{toml}");
    }
}

/// A kernel's own constants ask for sizes, whatever its parameters and the host say: the small size is as large as they
/// want it.
#[test]
fn small_sizes_are_as_large_as_the_constants_of_the_kernel() {
    if require_toolkit("launch descriptions of kernels with constants").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (source, kernel, small) in [
        // Rows are as long as a macro says, and loops and buffers as long as a parameter.
        (
            "#define N 256\n__global__ void mm(int n, const float *a, const float *b, float *c) {\n\
               int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n\
               if (x < n && y < n) { float s = 0; for (int k = 0; k < n; k += 15) s += a[y * N + k] * b[k * N + x];\n\
               c[y * N + x] = s; } }\n\
             int main() { int n = N; float *a, *b, *c; cudaMalloc(&a, n * n * 4); cudaMalloc(&b, n * n * 4);\n\
               cudaMalloc(&c, n * n * 4); mm<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(n, a, b, c); }",
            "mm",
            "n = 256",
        ),
        // Fewer than all: the kernel goes to a row that a constant names, and rows are as long as a parameter.
        (
            "__global__ void band(int n, const float *u, float *v) {\n\
               int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;\n\
               if (x < n && y < n) v[y * n + x] = u[y * n + x] + u[100 * n + x]; }\n\
             int main() { int n = 1000; float *u, *v; cudaMalloc(&u, n * n * 4); cudaMalloc(&v, n * n * 4);\n\
               band<<<dim3((n + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(n, u, v); }",
            "band",
            "n = 128",
        ),
        // Threads are so far from each other in a buffer that has a size of its own.
        (
            "__global__ void sample(const int *x, int *y, unsigned n, unsigned threads) {\n\
               unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i < threads) y[i] = x[i * 64] + n; }\n\
             int main() { unsigned threads = 16384, n = threads * 64; int *x, *y; cudaMalloc(&x, n * 4);\n\
               cudaMalloc(&y, threads * 4); sample<<<threads / 256, 256>>>(x, y, n, threads); }",
            "sample",
            "n = 1048576 threads = 16384",
        ),
        // A block of a tile has several rows for each of its threads.
        (
            "__global__ void turn(const float *x, float *y, int w) { int i = blockIdx.x * 32 + threadIdx.x;\n\
               int j = blockIdx.y * 32 + threadIdx.y; for (int k = 0; k < 32; k += 16) y[i * w + j + k] = x[(j + k) * w + i]; }\n\
             int main() { int w = 1024; float *x, *y; cudaMalloc(&x, w * w * 4); cudaMalloc(&y, w * w * 4);\n\
               turn<<<dim3(w / 32, w / 32), dim3(32, 16)>>>(x, y, w); }",
            "turn",
            "w = 128",
        ),
        // With as many blocks as that takes the launch takes long: a few of them.
        (
            "#define N 2048\n__global__ void rows(int n, const float *a, float *c) {\n\
               int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n\
               if (x < n && y < n) { float s = 0; for (int k = 0; k < n; k += 89) s += a[k * N + x]; c[y * N + x] = s; } }\n\
             int main() { int n = N; float *a, *c; cudaMalloc(&a, n * n * 4); cudaMalloc(&c, n * n * 4);\n\
               rows<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(n, a, c); }",
            "rows",
            "blocks_x = 4 blocks_y = 4 n = 2048",
        ),
        // A volume whose rows and planes are the kernel's own.
        (
            "#define N 64\n__global__ void planes(const float *a, float *b, int n, int p) {\n\
               int k = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;\n\
               if (p < n - 1 && j < n && k < n) b[p * N * N + j * N + k] = a[(p + 1) * N * N + j * N + k]; }\n\
             int main() { int n = N; float *a, *b; cudaMalloc(&a, n * n * n * 4); cudaMalloc(&b, n * n * n * 4);\n\
               planes<<<dim3(2, 8), dim3(32, 8)>>>(a, b, n, 40); }",
            "planes",
            "n = 64 p = 40",
        ),
    ] {
        let toml = ran(folder.path(), source, kernel);
        let file = LaunchFile::parse(&toml, "k.toml").unwrap();
        let sizes = file.parameters("small");
        let sizes: Vec<String> = sizes.map(|(name, n)| format!("{name} = {n}")).collect();
        assert_eq!(sizes.join(" "), small, "{toml}");
    }
}

/// Few blocks do the work of all: no size of it is small, and none that is written faults.
#[test]
fn what_no_small_size_is_enough_for_takes_long_and_does_not_fault() {
    if require_toolkit("launch descriptions of kernels that take long").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "#define TILES 16384
__global__ void all(const float *a, float *c) {
    for (int t = blockIdx.x; t < TILES; t += gridDim.x)
        for (int k = 0; k < 256; ++k) c[t * 256 + threadIdx.x] += a[(TILES - t) * 256 - 1 - k];
}
int main() {
    float *a, *c;
    cudaMalloc(&a, TILES * 1024);
    cudaMalloc(&c, TILES * 1024);
    all<<<66, 256>>>(a, c);
}
";
    std::fs::write(folder.path().join("k.cu"), source).unwrap();
    let made = run_with(folder.path(), &["launch", "k.cu"], library().as_os_str());
    let toml = text(&made.stdout);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(
        toml.contains("takes longer") && !toml.contains("FAULTS"),
        "{toml}"
    );
}

/// What structures hold, and what memory is behind their pointers, the program says best.
#[test]
fn structures_are_what_the_program_makes_them() {
    if require_toolkit("launch descriptions of programs").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (source, kernel, full) in [
        // A structure of pointers, filled member by member; one is set to zero.
        (
            "struct Particles { float *x, *v; const int *cell; int n; };\n\
             __global__ void step(Particles p, float dt) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
               if (i < p.n && p.cell[i] >= 0) p.x[i] += dt * p.v[i]; }\n\
             int main() { const int n = 1 << 20; Particles p; p.n = n; int *cell;\n\
               cudaMalloc(&p.x, n * sizeof(float)); cudaMalloc((void **)&p.v, n * sizeof(float));\n\
               cudaMalloc(&cell, n * sizeof(int)); cudaMemset(p.v, 0, n * 4); p.cell = cell;\n\
               step<<<(n + 255) / 256, 256>>>(p, 0.01f); }",
            "step",
            "[4096, 1, 1] [256, 1, 1] 0 {[1048576] [1048576] [1048576]} 0.009999999776482582",
        ),
        // Braces, from the caller's sizes; two members of one memory.
        (
            "struct Csr { int rows; const int *ptr, *col; const double *val; double *y, *again; };\n\
             __global__ void spmv(Csr a, const double *x) { int r = blockIdx.x * blockDim.x + threadIdx.x;\n\
               if (r >= a.rows) return; double s = 0;\n\
               for (int k = a.ptr[r]; k < a.ptr[r + 1]; ++k) s += a.val[k] * x[a.col[k]]; a.y[r] = s + 0 * a.again[r]; }\n\
             void run(int rows, int nnz) { int *ptr, *col; double *val, *x, *y;\n\
               cudaMalloc(&ptr, (rows + 1) * sizeof(int)); cudaMalloc(&col, nnz * sizeof(int));\n\
               cudaMalloc(&val, nnz * sizeof(double)); cudaMalloc(&x, rows * 8); cudaMalloc(&y, rows * 8);\n\
               Csr a = {rows, ptr, col, val, y, y}; spmv<<<(rows + 127) / 128, 128>>>(a, x); }\n\
             int main() { run(50000, 50000 * 27); }",
            "spmv",
            "[391, 1, 1] [128, 1, 1] 0 {[50001] [1350000] [1350000] [50000] [50000]} [50000]",
        ),
        // A constructor, behind an array of pointers, and a module variable that is a structure.
        (
            "struct Grid { int nx, ny; float dx; Grid(int x, int y, float d) : nx(x), ny(y) { dx = d; } };\n\
             struct Law { float a; int n; };\n__constant__ Law law;\n\
             __global__ void lap(const float *u, float *v, Grid g, int k) { int x = blockIdx.x * 16 + threadIdx.x;\n\
               int y = blockIdx.y * 16 + threadIdx.y; if (x > 0 && x < g.nx - 1 && y < g.ny)\n\
               v[y * g.nx + x] = (u[y * g.nx + x - 1] + u[y * g.nx + x + 1]) / g.dx * law.a + k * law.n; }\n\
             int main() { int w = 1920, h = 1080, k = 3; float *u, *v; Law l{0.5f, 7};\n\
               cudaMemcpyToSymbol(law, &l, sizeof(l)); cudaMalloc(&u, w * h * 4); cudaMalloc(&v, w * h * 4);\n\
               Grid g(w, h, 0.25f); void *args[] = {&u, &v, &g, (void *)&k}; dim3 b(16, 16);\n\
               cudaLaunchKernel((void *)lap, dim3(w / 16, (h + 15) / 16), b, args, 0, 0); }",
            "lap",
            "[120, 68, 1] [16, 16, 1] 0 [2073600] [2073600] {} 3 law[8]",
        ),
        // A vector within a structure, which is a name for another type; a loop swaps its pointers.
        (
            "typedef struct { double *in, *out; int3 dim; double omega; } Lattice;\n\
             __global__ void stream(Lattice l, float2 f) { int x = blockIdx.x * blockDim.x + threadIdx.x;\n\
               int y = blockIdx.y * blockDim.y + threadIdx.y; if (x < l.dim.x && y < l.dim.y) {\n\
               size_t i = ((size_t)blockIdx.z * l.dim.y + y) * l.dim.x + x; l.out[i] = l.in[i] * l.omega + f.y; } }\n\
             int main() { const int nx = 256, ny = 128, nz = 64; Lattice l; l.dim = make_int3(nx, ny, nz); l.omega = 1.2;\n\
               size_t bytes = sizeof(double) * nx * ny * nz; cudaMalloc(&l.in, bytes); cudaMalloc(&l.out, bytes);\n\
               for (int t = 0; t < 9; ++t) { stream<<<dim3(nx / 32, ny / 4, nz), dim3(32, 4)>>>(l, make_float2(0, 1));\n\
               double *s = l.in; l.in = l.out; l.out = s; } }",
            "stream",
            "[8, 32, 64] [32, 4, 1] 0 {[2097152] [2097152]} 0",
        ),
        // A cooperative launch; an array in a structure, whose length is a macro's.
        (
            "#define K 3\nstruct Conv { float w[K * K]; int r, n; };\n\
             __global__ void conv(const float *in, float *out, Conv c, int m) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
               if (i < c.n && i < m) out[i] = in[i] * c.w[c.r]; }\n\
             void go(const float *in, float *out, int m) { Conv c; c.r = K / 2; c.n = 50000;\n\
               void *args[] = {&in, &out, &c, &m};\n\
               cudaLaunchCooperativeKernel((void *)conv, dim3(200), dim3(250), args); }\n\
             int main() { float *a, *b; int n = 50000; cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4); int m = 50000; go(a, b, m); }",
            "conv",
            "[200, 1, 1] [250, 1, 1] 0 [50000] [50000] {} 50000",
        ),
        // First values of members, and a memory of ones' bits.
        (
            "struct Opt { int n; float scale = 2.5f; int steps{3}; unsigned *seen = nullptr; };\n\
             __global__ void go(Opt o, int *f) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
               if (i < o.n) { f[i] = o.seen[i] * o.scale; for (int k = 0; k < o.steps; ++k) f[i] += k; } }\n\
             int main() { Opt o; o.n = 100000; int *f; cudaMalloc(&f, o.n * 4);\n\
               cudaMalloc(&o.seen, o.n * sizeof(unsigned)); cudaMemset(o.seen, 0, 4); cudaMemset(o.seen, 0xff, o.n * 4);\n\
               go<<<(o.n + 255) / 256, 256>>>(o, f); }",
            "go",
            "[391, 1, 1] [256, 1, 1] 0 {[100000]} [100000]",
        ),
        // Instances of a structure's template, as the kernel names them and as its own template does.
        (
            "template <class R> struct Particles { R *x, *y; int n; };\n\
             __global__ void push(Particles<float> p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
               if (i < n && i < p.n) p.x[i] += p.y[i]; }\n\
             int main() { int n = 50000; Particles<float> p; p.n = n; cudaMalloc(&p.x, n * sizeof(float));\n\
               cudaMalloc(&p.y, n * sizeof(float)); push<<<(n + 127) / 128, 128>>>(p, n); }",
            "push",
            "[391, 1, 1] [128, 1, 1] 0 {[50000] [50000]} 50000",
        ),
        (
            "template <typename T, int D> struct View { const T *p; T scale; int shape[D]; };\n\
             template <typename T> __global__ void sum(View<T, 2> v, T *y) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
               if (i < v.shape[0] * v.shape[1]) y[i] = v.p[i] * v.scale; }\n\
             int main() { int n = 50000; double *d, *y; cudaMalloc(&d, n * sizeof(double)); cudaMalloc(&y, n * 8);\n\
               View<double, 2> v{d, 2.5, {n, 1}}; sum<double><<<(n + 127) / 128, 128>>>(v, y); }",
            "sum",
            "[391, 1, 1] [128, 1, 1] 0 {[50000]} [50000]",
        ),
        // A table of pointers, and a pointer to nothing.
        (
            "__global__ void rows(float **rows, const float *const *in, int n, int cols, const float *bias) {\n\
               int i = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y; if (i < cols && r < n)\n\
               rows[r][i] = in[r][i] * 2 + (bias ? bias[i] : 0); }\n\
             int main() { const int n = 16, cols = 5000; float *h[n], *g[n], **d, **e;\n\
               for (int i = 0; i < n; ++i) { cudaMalloc(&h[i], cols * sizeof(float)); cudaMalloc(&g[i], cols * 4); }\n\
               cudaMalloc(&d, n * sizeof(float *)); cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice);\n\
               cudaMalloc((void **)&e, n * sizeof *e); cudaMemcpy(e, g, sizeof(g), cudaMemcpyHostToDevice);\n\
               rows<<<dim3((cols + 255) / 256, n), 256>>>(d, e, n, cols, nullptr); }",
            "rows",
            "[20, 16, 1] [256, 1, 1] 0 [16] [16] 16 5000 0",
        ),
    ] {
        let toml = ran(folder.path(), source, kernel);
        assert_eq!(at_full(&toml), full, "{toml}");
    }
}

#[test]
fn what_cannot_run_says_so_and_what_is_not_known_is_a_guess() {
    if require_toolkit("launch descriptions of what faults").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wild = "__global__ void wild(float *x) { if (x) *(volatile float *)64 = 1; }";
    std::fs::write(folder.path().join("wild.cu"), wild).unwrap();
    let made = run_in(folder.path(), &["launch", "wild.cu", "-o", "wild.toml"]);
    assert_eq!(made.status.code(), Some(5), "{}", text(&made.stderr));
    let toml = std::fs::read_to_string(folder.path().join("wild.toml")).unwrap();
    let first = toml.lines().next().unwrap();
    for said in [first, &text(&made.stdout)] {
        assert!(
            said.contains("FAULTS") && said.contains("out-of-bounds"),
            "{said}"
        );
    }
    // A kernel that nobody launches: one dimension, whatever stands in comments and in other kernels.
    let flat = "__global__ void other(float *x) { x[threadIdx.y + blockIdx.z] = 0; }\n// threadIdx.y\n\
                __global__ void flat(float *x, int n) { /* blockIdx.z */ int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                if (i < n) x[i] = 1; }";
    std::fs::write(folder.path().join("flat.cu"), flat).unwrap();
    let args = ["launch", "flat.cu", "--kernel", "flat", "--block", "128"];
    let shown = text(&run_in(folder.path(), &args).stdout);
    for line in [
        "grid = [\"ceil_div(n, 128)\"]  # guess",
        "block = [128]  # --block",
        "shape = [\"n\"]  # guess",
        "value = \"n\"  # guess",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[test]
fn which_of_several_launches_runs_is_a_guess() {
    if require_toolkit("launch descriptions of several launches").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kernel = "__global__ void k(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 1; }\n";
    let of = |code: &str| {
        let source = format!(
            "{kernel}int main(int argc, char **argv) {{ float *x; cudaMalloc(&x, 400000);\n{code}\n}}\n"
        );
        described(folder.path(), &source, "k")
    };
    let toml = of("#if 0\nk<<<1, 32>>>(x, 32);\n#endif\nk<<<4, 64>>>(x, 256);");
    assert!(toml.contains("block = [64]  # the code's launch"), "{toml}");
    // What is not known says so.
    let toml = of("if (argc > 1)\nk<<<4, 32>>>(x, 64);\nelse\nk<<<4, 64>>>(x, 256);");
    assert!(toml.contains("block = [256]  # guess"), "{toml}");
    assert!(at_full(&toml).starts_with("[4, 1, 1]"), "{toml}");
    assert!(toml.contains("]  # the code's launch"), "{toml}");
    let said = "# the code launches it in several places: what these agree on is known\n";
    assert!(toml.contains(said), "{toml}");
}

#[test]
fn small_sizes_have_borders_and_take_no_time() {
    if require_toolkit("small sizes of launch descriptions").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let small = |toml: &str, name: &str| {
        let file = LaunchFile::parse(toml, "k.toml").unwrap();
        file.resolve("small", &[]).unwrap().param(name).unwrap()
    };
    let kernel = "__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;\n";
    let host = "int main() { const int n = 1 << 20; float *x, *y; cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4);\n\
                k<<<(n + 255) / 256, 256>>>(x, y, n); }\n";
    let bounded = format!("{kernel}if (i < n) y[i] = x[i]; }}\n{host}");
    let toml = described(folder.path(), &bounded, "k");
    assert_ne!(small(&toml, "n") % 256, 0, "{toml}");
    // What needs whole blocks gets them.
    let toml = described(
        folder.path(),
        &format!("{kernel}y[i] = x[i]; }}\n{host}"),
        "k",
    );
    assert_eq!(small(&toml, "n") % 256, 0, "{toml}");
    // A loop's count that is handed over.
    let long = "__global__ void k(float *y, int turns, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; float s = i;\n\
                for (int t = 0; t < turns; ++t) s = s * 0.5f + t; if (i < n) y[i] = s; }\n\
                int main() { float *y; int n = 4096; cudaMalloc(&y, n * sizeof(float)); k<<<n / 256, 256>>>(y, 1000000, n); }\n";
    let toml = described(folder.path(), long, "k");
    assert!(small(&toml, "turns") < 10_000, "{toml}");
    assert!(at_full(&toml).ends_with("[4096] 1000000 4096"), "{toml}");
    // One that is not: it is no fault.
    let endless = long.replace("t < turns", "t < 100000000");
    std::fs::write(folder.path().join("k.cu"), endless).unwrap();
    let made = run_in(folder.path(), &["launch", "k.cu", "-o", "k.toml"]);
    let said = text(&made.stdout);
    assert!(
        said.contains("takes longer") && !said.contains("FAULTS"),
        "{said}"
    );
}

#[test]
fn descriptions_stand_where_they_are_put() {
    if require_toolkit("places of launch descriptions").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for inner in ["src", "launches"] {
        std::fs::create_dir(path(inner)).unwrap();
    }
    let source = "__global__ void one(float *x) { x[threadIdx.x] = 1; }";
    std::fs::write(path("src/one.cu"), source).unwrap();
    let launch = |more: &[&str]| {
        let args = [&["launch", "src/one.cu", "-o", "launches/one.toml"], more].concat();
        run_in(folder.path(), &args)
    };
    assert!(launch(&[]).status.success());
    let read = || std::fs::read_to_string(path("launches/one.toml")).unwrap();
    assert!(
        read().contains("source = \"../src/one.cu\"\n"),
        "{}",
        read()
    );
    let shown = text(&run_in(&path("src"), &["launch", "one.cu"]).stdout);
    assert!(shown.contains("source = \"one.cu\"\n"), "{shown}");
    // Its own it writes again; what somebody else wrote it does not.
    assert!(launch(&[]).status.success());
    // Nor what somebody made of it.
    let edited = read().replace("[launch]", "[launch] # looked at");
    std::fs::write(path("launches/one.toml"), &edited).unwrap();
    assert_eq!(launch(&[]).status.code(), Some(1));
    assert_eq!(read(), edited);
    std::fs::write(path("launches/one.toml"), "mine").unwrap();
    let refused = launch(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("--force"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(read(), "mine");
    assert!(launch(&["--force"]).status.success());
    assert!(read().contains("kernel = "));
}

#[test]
fn macros_of_own_headers_count_and_no_grid_is_empty() {
    if require_toolkit("launch descriptions with headers").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("inc")).unwrap();
    let common =
        "#pragma once\n#include \"deeper.h\"\n#define DIV_UP(a, b) (((a) + (b) - 1) / (b))\n";
    std::fs::write(folder.path().join("inc/common.h"), common).unwrap();
    std::fs::write(folder.path().join("inc/deeper.h"), "#define TX 32\n").unwrap();
    let source = "#include \"inc/common.h\"\n\
        __global__ void copy(const float *a, float *b, int w, int h, int pitch) {\n\
          int x = blockIdx.x * TX + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;\n\
          if (x < w && y < h) b[y * pitch + x] = a[y * pitch + x]; }\n\
        int main() { int w = 1900, h = 1080; int pitch = DIV_UP(w, 64) * 64; float *a, *b;\n\
          cudaMalloc(&a, pitch * h * sizeof(float)); cudaMalloc(&b, pitch * h * sizeof(float));\n\
          copy<<<dim3(DIV_UP(w, TX), DIV_UP(h, 8)), dim3(TX, 8)>>>(a, b, w, h, pitch); }\n";
    let toml = ran(folder.path(), source, "copy");
    assert_eq!(
        at_full(&toml),
        "[60, 135, 1] [32, 8, 1] 0 [2073600] [2073600] 1900 1080 1920",
        "{toml}"
    );
    // Folders of headers are relative to the description, as one word or as two.
    let deeper = folder.path().join("d");
    std::fs::create_dir(&deeper).unwrap();
    std::fs::write(
        deeper.join("k.cu"),
        source.replace("inc/common.h", "common.h"),
    )
    .unwrap();
    for options in ["\"-I../inc\"", "\"-I\", \"../inc\""] {
        let with = toml.replacen("kernel =", &format!("nvcc = [{options}]\nkernel ="), 1);
        std::fs::write(deeper.join("k.toml"), with).unwrap();
        let args = ["run", "d/k.cu", "--launch", "d/k.toml", "--size", "small"];
        let ran = run_in(folder.path(), &args);
        assert!(ran.status.success(), "{options}: {}", text(&ran.stderr));
    }
    // The same block is known to the other commands.
    let args = ["explain", "k.cu", "--gpu", "h200"];
    let explained = text(&run_in(folder.path(), &args).stdout);
    assert!(explained.contains("32×8 threads"), "{explained}");
    let source = "__global__ void fill(float *a, int n) {\n\
          for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) a[i] = 1; }\n\
        int main() { int n = 1 << 20, sms = 0; float *a; cudaMalloc(&a, n * sizeof(float));\n\
          cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0); fill<<<sms * 8, 256>>>(a, n); }\n";
    let toml = ran(folder.path(), source, "fill");
    assert_eq!(
        at_full(&toml),
        "[1056, 1, 1] [256, 1, 1] 0 [1048576] 1048576"
    );
}

/// What is added to each element of an array.
const ADD: &str = "#include <utility>\n#include <cstdlib>\n\
    __global__ void k(float *a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] += 1; }\n";

/// The lines of a description that say what the code does, not what is guessed.
fn sure(toml: &str) -> Vec<&str> {
    let full = toml
        .split_once("[sizes.full]")
        .map_or(toml, |(_, full)| full);
    full.lines()
        .filter(|line| !line.contains("# guess"))
        .collect()
}

#[test]
fn what_changes_on_the_way_is_a_guess() {
    if require_toolkit("values that change in launch descriptions").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let launched = "float *a; cudaMalloc(&a, n * sizeof(float)); k<<<(n + 63) / 64, 64>>>(a, n);";
    for (before, body) in [
        ("", "int n = 100; int &r = n; r = 5000;"),
        ("", "int n = 100; auto &r = n; r *= 3;"),
        ("", "int n = 100, m = 3000; std::swap(n, m);"),
        ("", "int n = 100; int o = std::exchange(n, 2000);"),
        (
            "struct P { int n; };",
            "P p{100}; P &q = p; q.n = 1800; int n = p.n;",
        ),
        (
            "struct P { int n = 100; void grow() { n = n * 7; } };",
            "P p; p.grow(); int n = p.n;",
        ),
        (
            "struct S { char c; double d; short s; };",
            "int n = sizeof(S) * 100;",
        ),
        ("using real = double;", "int n = sizeof(real) * 100;"),
        (
            "bool odd(int n) { return n; }",
            "int n = odd(3) * 100 + 1000;",
        ),
    ] {
        let source = format!("{ADD}{before}\nint main() {{ {body} {launched} }}\n");
        let toml = described(folder.path(), &source, "k");
        let lines = sure(&toml);
        let is_said = |line: &&str| {
            let number = line
                .split(" = ")
                .nth(1)
                .and_then(|n| n.trim().parse::<i64>().ok());
            let is_size = number.is_some() && !line.starts_with("value");
            is_size || line.starts_with("shape = [1") || line.starts_with("grid = [2")
        };
        assert!(!lines.iter().any(is_said), "{body}: {toml}");
    }
    // Known all the same: a constant reference.
    let source =
        format!("{ADD}int main() {{ int n = 100; const int &r = n; (void)r; {launched} }}\n");
    let toml = described(folder.path(), &source, "k");
    let lines = sure(&toml);
    assert!(lines.iter().any(|line| line.ends_with("n = 100")), "{toml}");
}

#[test]
fn loops_by_the_grid_turn_twice_at_the_small_size() {
    if require_toolkit("small sizes of loops by the grid").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let body = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) a[i] += 1;";
    let source = format!(
        "__global__ void k(float *a, int n) {{ {body} }}\n\
         int main() {{ int n = 1 << 22; float *a; cudaMalloc(&a, n * 4); k<<<128, 256>>>(a, n); }}\n"
    );
    let toml = described(folder.path(), &source, "k");
    let small = toml.lines().find_map(|line| line.strip_prefix("n = "));
    let small: i64 = small.unwrap().parse().unwrap();
    assert!(small > 2 * 128 * 256, "{toml}");
    // A wrong stride is seen.
    let wrong = source.replace("gridDim.x * blockDim.x", "gridDim.x * 128");
    std::fs::write(folder.path().join("wrong.cu"), wrong).unwrap();
    let args = ["check", "k.cu", "wrong.cu", "--run", "--launch", "k.toml"];
    let checked = run_in(folder.path(), &args);
    assert!(text(&checked.stdout).contains("refuted"), "{checked:?}");
}

#[test]
fn numbers_become_what_their_types_hold() {
    if require_toolkit("conversions in launch descriptions").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (parameter, before, argument, expected) in [
        ("unsigned m", "", "-1", "value = 4294967295"),
        ("bool m", "", "5", "value = 1"),
        ("int m", "short s = 40000;", "s", "# guess"),
        (
            "int m",
            "int a = -100; unsigned b = 7;",
            "a < b ? 500 : 1000",
            "# guess",
        ),
    ] {
        let source = format!(
            "__global__ void k(float *x, {parameter}) {{ x[threadIdx.x] = m; }}\n\
             int main() {{ float *x; cudaMalloc(&x, 128);\n{before}\nk<<<1, 32>>>(x, {argument}); }}\n"
        );
        let toml = described(folder.path(), &source, "k");
        let (_, own) = toml.rsplit_once("name = \"m\"").unwrap();
        let line = own.lines().find(|line| line.starts_with("value")).unwrap();
        let name = line
            .trim_start_matches("value = ")
            .trim_matches('"')
            .to_owned()
            + " = ";
        let is_marked = line.contains("# guess")
            || toml
                .lines()
                .any(|line| line.starts_with(&name) && line.contains("# guess"));
        assert!(
            line == expected || expected == "# guess" && is_marked,
            "{argument}: {toml}"
        );
    }
}

#[test]
fn which_kernel_of_a_name_is_launched_nobody_guesses() {
    if require_toolkit("launches of overloads").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let body = "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] += 1; }";
    let overloads = format!(
        "__global__ void f(float *a, int n) {body}\n__global__ void f(double *a, int n) {body}\n\
         int main() {{ float *x; double *y; cudaMalloc(&x, 100 * 4); cudaMalloc(&y, 5000 * 8);\n\
           f<<<1, 128>>>(x, 100); f<<<10, 512>>>(y, 5000); }}\n"
    );
    let spaces = format!(
        "namespace A {{ __global__ void f(float *a, int n) {body} }}\n\
         namespace B {{ __global__ void f(float *a, int n) {body} }}\n\
         int main() {{ float *x, *y; cudaMalloc(&x, 100 * 4); cudaMalloc(&y, 5000 * 4);\n\
           A::f<<<1, 128>>>(x, 100); B::f<<<10, 512>>>(y, 5000); }}\n"
    );
    for (source, first, second) in [
        (&overloads, "_Z1fPfi", "_Z1fPdi"),
        (&spaces, "A::f", "B::f"),
    ] {
        // The program knows.
        for (kernel, grid, block) in [(first, 1, 128), (second, 10, 512)] {
            let toml = ran(folder.path(), source, kernel);
            let block = format!("block = [{block}]  # seen when its program ran");
            assert!(sure(&toml).contains(&&*block), "{toml}");
            let grid = format!("[{grid}, 1, 1]");
            assert!(at_full(&toml).starts_with(&grid), "{toml}");
        }
        // The text does not say.
        let toml = described(folder.path(), source, second);
        assert!(toml.contains("block = [256]  # guess"), "{toml}");
        let explained = run_in(folder.path(), &["explain", "k.cu", "--gpu", "h200"]);
        let screen = text(&explained.stdout);
        let assumed = screen.matches("256 threads per block (assumed").count();
        assert_eq!(assumed, 2, "{screen}");
    }
}

#[test]
fn clusters_are_those_of_the_launch() {
    if require_toolkit("clusters in launch descriptions").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "__global__ void kc(int *o) { if (threadIdx.x == 0) o[blockIdx.x] = 1; }\n\
        __global__ void __cluster_dims__(2) fixed(int *o) { if (threadIdx.x == 0) o[blockIdx.x] = 1; }\n\
        int main() { int *o; cudaMalloc(&o, 16 * sizeof(int)); cudaLaunchConfig_t cfg = {};\n\
          cfg.gridDim = 16; cfg.blockDim = 32; cudaLaunchAttribute at[1];\n\
          at[0].id = cudaLaunchAttributeClusterDimension; at[0].val.clusterDim.x = 4;\n\
          at[0].val.clusterDim.y = 1; at[0].val.clusterDim.z = 1; cfg.attrs = at; cfg.numAttrs = 1;\n\
          cudaLaunchKernelEx(&cfg, kc, o); fixed<<<16, 32>>>(o); }\n";
    std::fs::write(folder.path().join("k.cu"), source).unwrap();
    let of = |kernel| {
        let args = ["launch", "k.cu", "--kernel", kernel];
        text(&run_with(folder.path(), &args, library().as_os_str()).stdout)
    };
    let toml = of("kc");
    assert!(
        toml.contains("cluster = [4, 1, 1]  # seen when its program ran"),
        "{toml}"
    );
    let toml = of("fixed");
    assert!(
        toml.contains("grid = [16]  # seen when its program ran") && !toml.contains("cluster"),
        "{toml}"
    );
}

#[test]
fn small_sizes_differ_where_those_of_the_code_do() {
    if require_toolkit("small sizes of a transpose").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = |sizes: &str| {
        format!(
            "__global__ void transpose(const float *a, float *b, int w, int h) {{\n\
               int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;\n\
               if (x < w && y < h) b[x * h + y] = a[y * w + x]; }}\n\
             int main() {{ {sizes}; float *a, *b; cudaMalloc(&a, w * h * 4); cudaMalloc(&b, w * h * 4);\n\
               dim3 block(32, 8), grid((w + 31) / 32, (h + 7) / 8); transpose<<<grid, block>>>(a, b, w, h); }}\n"
        )
    };
    let number = |toml: &str, name: &str| {
        let line = toml.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().parse::<i64>().unwrap()
    };
    let toml = described(
        folder.path(),
        &source("int w = 4096, h = 2048"),
        "transpose",
    );
    let (w, h) = (number(&toml, "w = "), number(&toml, "h = "));
    assert!(w > h && h > 8 && w % 32 != 0 && h % 8 != 0, "{toml}");
    // One for the other is seen.
    let wrong = source("int w = 4096, h = 2048").replace("a[y * w + x]", "a[y * h + x]");
    std::fs::write(folder.path().join("wrong.cu"), wrong).unwrap();
    let args = ["check", "k.cu", "wrong.cu", "--run", "--launch", "k.toml"];
    let checked = run_in(folder.path(), &args);
    assert!(text(&checked.stdout).contains("refuted"), "{checked:?}");
    // A square stays one.
    let toml = described(
        folder.path(),
        &source("int w = 2048, h = 2048"),
        "transpose",
    );
    assert!(
        number(&toml, "w = ") > 8 && !toml.contains("\nh = "),
        "{toml}"
    );
    assert!(toml.contains("shape = [\"w\", \"w\"]"), "{toml}");
}

#[test]
fn a_table_has_as_many_pointers_as_the_hosts_array() {
    if require_toolkit("tables of pointers from arrays").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "#define ROWS 96\n\
        __global__ void add(float **rows, int n, int m) {\n\
          for (int i = threadIdx.x; i < m; i += blockDim.x) rows[blockIdx.x][i] += 1.0f; }\n\
        int main() { float *h[ROWS], **d; int m = 1000;\n\
          for (int i = 0; i < ROWS; i++) cudaMalloc(&h[i], m * sizeof(float));\n\
          cudaMalloc(&d, sizeof h); cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice);\n\
          add<<<ROWS, 128>>>(d, ROWS, m); }\n";
    let toml = ran(folder.path(), source, "add");
    assert!(
        toml.contains("shape = [\"n\"]") && toml.contains("n = 96\n"),
        "{toml}"
    );
    // Where that is guessed and wrong, the program is not blamed alone.
    std::fs::write(
        folder.path().join("k.toml"),
        toml.replace("shape = [\"n\"]", "shape = [8]  # guess"),
    )
    .unwrap();
    let ran = run_in(folder.path(), &["run", "k.cu", "--launch", "k.toml"]);
    assert_eq!(ran.status.code(), Some(1));
    let said = text(&ran.stderr);
    assert!(said.contains("a wrong one faults as well"), "{said}");
}

/// What reaches beyond a buffer at the small size alone would leave it at the full one.
#[test]
fn rows_whose_length_nobody_knows_are_as_long_as_the_kernel_is_told() {
    if require_toolkit("rows of unknown length").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "__global__ void sums(const float *in, float *out, int rows, int cols) {\n\
        int row = blockIdx.x * 8 + threadIdx.x / 32; if (row >= rows) return; float s = 0;\n\
        for (int c = threadIdx.x % 32; c < cols; c += 32) s += in[(size_t)row * cols + c];\n\
        if (threadIdx.x % 32 < 4) out[row * 4 + threadIdx.x % 32] = s; }\n\
        void all(const float *in, float *out, int rows, int cols) { sums<<<(rows + 7) / 8, 256>>>(in, out, rows, cols); }\n";
    let toml = described(folder.path(), source, "sums");
    for line in [
        "shape = [\"rows * cols\"]  # guess",
        "shape = [\"4 * rows\"]  # guess",
    ] {
        assert!(toml.contains(line), "{line}\n{toml}");
    }
}

/// Where no code launches a kernel, its grid is read off what it compares its places with, and buffers are as large as it
/// reaches; all of it is a guess.
#[test]
fn a_kernel_that_no_code_launches_says_its_own_sizes() {
    if require_toolkit("sizes of a kernel alone").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let norm = |place: &str, first: &str, step: &str| {
        format!(
            "__global__ void norm(float *out, const float *in, const float *gamma, int N, int C, float eps) {{\n\
             {place} float s = 0; for (int c = 0; c < C; ++c) s += in[i * C + c];\n\
             for (int c = {first}; c < C; c += {step}) out[i * C + c] = (in[i * C + c] - s / C) * gamma[c] + eps; }}\n"
        )
    };
    let global = "blockIdx.x * blockDim.x + threadIdx.x";
    let shapes = "[\"N * C\"] [\"N * C\"] [\"C\"]";
    for (source, grid) in [
        // A thread, a warp, and a block for each row.
        (
            norm(&format!("int i = {global}; if (i >= N) return;"), "0", "1"),
            "ceil_div(N, 256)",
        ),
        (
            norm(
                &format!("int i = ({global}) / 32; if (i >= N) return;"),
                "threadIdx.x % 32",
                "32",
            ),
            "ceil_div(32 * N, 256)",
        ),
        (
            norm("int i = blockIdx.x;", "threadIdx.x", "blockDim.x"),
            "N",
        ),
    ] {
        let toml = described(folder.path(), &source, "norm");
        assert!(
            toml.contains(&format!("grid = [\"{grid}\"]  # guess")),
            "{grid}\n{toml}"
        );
        let found = toml
            .lines()
            .filter_map(|line| line.strip_prefix("shape = "));
        let found: Vec<&str> = found
            .map(|line| line.strip_suffix("  # guess").unwrap())
            .collect();
        assert_eq!(found.join(" "), shapes, "{toml}");
        for value in ["value = \"N\"  # guess", "value = \"C\"  # guess"] {
            assert!(toml.contains(value), "{toml}");
        }
    }
    // Two dimensions, each with its own size.
    let source = "__global__ void turn(const float *a, float *b, int w, int h) {\n\
        int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;\n\
        if (x < w && y < h) b[x * h + y] = a[y * w + x]; }\n";
    let toml = described(folder.path(), source, "turn");
    let grid = "grid = [\"ceil_div(w, 16)\", \"ceil_div(h, 16)\"]  # guess";
    assert!(toml.contains(grid), "{toml}");
    assert_eq!(
        toml.matches("shape = [\"w * h\"]  # guess").count(),
        2,
        "{toml}"
    );
    // Places with a border in front, of which the compiler makes the counter of a loop.
    let source = "__global__ void __launch_bounds__(256, 6) march(const float *__restrict__ a, float *__restrict__ b, int w, int h, int d) {\n\
        int x = blockIdx.x * blockDim.x + threadIdx.x + 4, y = blockIdx.y * blockDim.y + threadIdx.y + 4;\n\
        if (x >= w - 4 || y >= h - 4) return; int plane = w * h, at = y * w + x;\n\
        for (int z = 4; z < d - 4; z++) { int c = at + z * plane; float s = a[c];\n\
          for (int i = 1; i <= 4; i++) s += a[c - i * w] + a[c + i * w] + a[c - i] + a[c + i] + a[c + i * plane];\n\
          b[c] = s; } }\n";
    std::fs::write(folder.path().join("k.cu"), source).unwrap();
    let made = run_in(folder.path(), &["launch", "k.cu", "--block", "32,8"]);
    let toml = text(&made.stdout);
    let grid = "grid = [\"ceil_div(w, 32)\", \"ceil_div(h, 8)\"]  # guess";
    assert!(toml.contains(grid), "{toml}{}", text(&made.stderr));
}

/// Shapes hold at other sizes than the small one, of which nobody knows the names.
#[test]
fn guessed_shapes_hold_at_other_sizes() {
    if require_toolkit("guessed shapes").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let head = "extern \"C\" __global__ void k(const float *in, float *out, ";
    let of = |parameters: &str, body: &str, host: &str| {
        let source = format!(
            "{head}{parameters}) {{ {body} }}\nvoid run(const float *in, float *out, {parameters}) {{ {host} }}\n"
        );
        let toml = described(folder.path(), &source, "k");
        let shapes = toml.lines().filter(|line| line.starts_with("shape"));
        shapes
            .map(|line| line.replace("  # guess", ""))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let square = of(
        "int n",
        "int i = blockIdx.x * 256 + threadIdx.x; if (i < n) { float t = 0; for (int j = 0; j < n; j++) t += in[i * n + j]; out[i] = t; }",
        "k<<<(n + 255) / 256, 256>>>(in, out, n);",
    );
    assert_eq!(square, "shape = [\"n * n\"] shape = [\"n\"]");
    let stride = of(
        "int n, int sms",
        "for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x) out[i] = in[i];",
        "k<<<sms * 4, 256>>>(in, out, n, sms);",
    );
    assert_eq!(stride, "shape = [\"n\"] shape = [\"n\"]");
    // An attribute that the grammar does not know.
    let source = "__global__ void __maxnreg__(40) m(float *p) { p[threadIdx.x] = 1; }\nint main() { float *p; cudaMalloc(&p, 256); m<<<1, 64>>>(p); }\n";
    assert!(described(folder.path(), source, "m").contains("shape = [64]"));
}

/// What a trace saw says which sizes the kernel compares its places with.
#[test]
fn a_trace_gives_the_kernels_sizes() {
    if require_toolkit("launch descriptions of traces").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "__global__ void blur(const float *in, float *out, int w, int h) {\n\
        int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;\n\
        if (x < w && y < h) out[y * w + x] = in[y * w + x] * 2; }\n\
        void run(const float *in, float *out, int w, int h) {\n\
        dim3 b(32, 4), g((w / 8 + 31) / 32 * 8, (h + 3) / 4); blur<<<g, b>>>(in, out, w, h); }\n";
    let traced = |grid: [u32; 3], block: [u32; 3]| {
        let trace = serde_json::json!({
            "schema": "warpwright.trace/1", "program": ["p"], "date": "", "processes": 1, "modules_in": null,
            "gpu": {"name": "NVIDIA H200", "sm": 90, "driver": 13000}, "modules": [], "not_seen": [],
            "launches": [{
                "kernel": "_Z4blurPKfPfii", "name": "blur", "module": null, "digest": null, "grid": grid,
                "block": block, "dynamic_smem": 0, "cluster": null, "cooperative": false, "launches": 1,
                "in_graphs": 0, "gpu_ns": 9, "share": 1.0, "registers": null, "spill_bytes": null,
                "static_smem": null, "resident": null, "occupancy": null, "tied": null, "hint": ""
            }]
        });
        std::fs::write(folder.path().join("t.json"), trace.to_string()).unwrap();
        std::fs::write(folder.path().join("k.cu"), source).unwrap();
        let args = [
            "launch", "k.cu", "--trace", "t.json", "-o", "k.toml", "--force",
        ];
        let made = run_in(folder.path(), &args);
        assert!(made.status.success(), "{}", text(&made.stderr));
        std::fs::read_to_string(folder.path().join("k.toml")).unwrap()
    };
    let toml = traced([128, 512, 1], [32, 4, 1]);
    // Of all that fit the roundest.
    let sizes = "[sizes.full]\nw = 4096  # guess\nh = 2048  # guess\n";
    assert!(toml.contains(sizes), "{toml}");
    assert!(toml.contains("\"ceil_div(h, 4)\"]  # the trace"), "{toml}");
    assert!(
        at_full(&toml).starts_with("[128, 512, 1] [32, 4, 1]"),
        "{}",
        at_full(&toml)
    );
    let args = ["explain", "k.cu", "--trace", "t.json"];
    let explained = text(&run_in(folder.path(), &args).stdout);
    let words: Vec<&str> = explained.split_whitespace().collect();
    let explained = words.join(" ");
    for part in [
        "32×4 threads per block (the trace)",
        "counted at the traced launch",
    ] {
        assert!(explained.contains(part), "{part}\n{explained}");
    }
    // Another block than the kernel is made for.
    let toml = traced([128, 512, 1], [64, 2, 1]);
    assert!(
        at_full(&toml).starts_with("[128, 512, 1] [64, 2, 1]"),
        "{toml}"
    );
    traced([128, 512, 1], [32, 4, 1]);
    let other = [&args[..], &["--block", "64"]].concat();
    let refused = run_in(folder.path(), &other);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.contains("another one than that of the trace, 32,4,1"),
        "{said}"
    );
}

#[test]
fn members_are_what_the_program_makes_them() {
    if require_toolkit("members of structures in launch descriptions").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("include")).unwrap();
    let header = "#pragma once\nstruct Filter { int width, height; float gain, w[3]; };\n";
    std::fs::write(folder.path().join("include/filter.h"), header).unwrap();
    let source = "#include \"filter.h\"\n\
        __global__ void sharpen(unsigned char *p, Filter f, unsigned *m) { int i = blockIdx.x * 256 + threadIdx.x;\n\
          if (i < f.width * f.height) { p[i] = p[i] * f.gain + f.w[2]; m[i] |= 1; } }\n\
        int main() { int w = 640, h = 480; unsigned char *p; unsigned *m; cudaMalloc(&p, w * h);\n\
          cudaMalloc(&m, w * h * sizeof(unsigned)); cudaMemset(m, 0xff, w * h * 4);\n\
          Filter f = {.width = w, .height = h, .gain = 1.5f}; sharpen<<<w * h / 256, 256>>>(p, f, m); }\n";
    std::fs::write(folder.path().join("k.cu"), source).unwrap();
    let args = ["launch", "k.cu", "--", "-Iinclude"];
    let toml = text(&run_with(folder.path(), &args, library().as_os_str()).stdout);
    assert!(toml.contains("nvcc = [\"-Iinclude\"]"), "{toml}");
    // Folders of headers are relative to the description, wherever that is.
    std::fs::create_dir(folder.path().join("launches")).unwrap();
    let args = [
        "launch",
        "k.cu",
        "-o",
        "launches/k.toml",
        "--",
        "-I",
        "include",
    ];
    assert!(run_in(folder.path(), &args).status.success());
    let elsewhere = std::fs::read_to_string(folder.path().join("launches/k.toml")).unwrap();
    assert!(
        elsewhere.contains("nvcc = [\"-I\", \"../include\"]"),
        "{elsewhere}"
    );
    let args = [
        "run",
        "k.cu",
        "--launch",
        "launches/k.toml",
        "--size",
        "small",
    ];
    let ran = run_in(folder.path(), &args);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    for line in [
        "{ name = \"width\", type = \"s32\", value = \"f_width\" },\n",
        "{ name = \"height\", type = \"s32\", value = \"f_height\" },\n",
        "{ name = \"gain\", type = \"f32\", value = 1.5 },\n",
        "{ name = \"w[2]\", type = \"f32\", value = ",
        "the emulator runs it at `small`",
    ] {
        assert!(toml.contains(line), "{line}\n{toml}");
    }
}

#[test]
fn a_folder_has_a_description_of_each_kernel() {
    if require_toolkit("a folder of launch descriptions").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let header = "#pragma once\n__global__ void set(int *p, int n) { if (threadIdx.x < n) p[threadIdx.x] = n; }\n";
    std::fs::write(folder.path().join("set.cuh"), header).unwrap();
    let source = "#include \"set.cuh\"\ntemplate <typename T> struct View { T *p; };\n\
        template <typename T> __global__ void add(T *p, T a) { p[threadIdx.x] += a; }\n\n\
        __global__ void odd(cudaTextureObject_t t, float *v) { v[0] = tex2D<float>(t, 0, 0); }\n\
        int main() { float *f; double *d; int *i; cudaMalloc(&f, 256); cudaMalloc(&d, 512); cudaMalloc(&i, 40);\n\
          add<float><<<1, 64>>>(f, 2.f); add<double><<<1, 64>>>(d, 3.); set<<<1, 32>>>(i, 10); }\n";
    std::fs::write(folder.path().join("k.cu"), source).unwrap();
    let made = run_in(folder.path(), &["launch", "k.cu", "-o", "all/"]);
    let said = text(&made.stdout);
    // What is left out counts.
    assert_eq!(
        made.status.code(),
        Some(1),
        "{said}\n{}",
        text(&made.stderr)
    );
    assert!(said.contains("left out odd("), "{said}");
    assert!(said.contains("cudaTextureObject_t"), "{said}");
    for (name, element) in [("add", "f32"), ("add_2", "f64"), ("set", "s32")] {
        let toml = std::fs::read_to_string(folder.path().join(format!("all/{name}.toml"))).unwrap();
        assert!(toml.contains("source = \"../k.cu\""), "{toml}");
        assert!(toml.contains("emulator runs it"), "{toml}");
        let element = format!("type = \"{element}\"");
        assert!(toml.contains(&element), "{toml}");
    }
    // A folder for nothing does not stay.
    let made = run_in(
        folder.path(),
        &["launch", "k.cu", "--kernel", "odd", "-o", "none/"],
    );
    assert_eq!(made.status.code(), Some(1));
    assert!(!folder.path().join("none").exists());
    // What somebody has changed stays.
    let changed = folder.path().join("all/set.toml");
    let mut toml = std::fs::read_to_string(&changed).unwrap();
    toml += "# mine\n";
    std::fs::write(&changed, &toml).unwrap();
    let again = run_in(folder.path(), &["launch", "k.cu", "-o", "all"]);
    assert!(text(&again.stdout).contains("left out set(int*, int): "));
    assert_eq!(std::fs::read_to_string(&changed).unwrap(), toml);
}

/// `run` calls it a fault, and so does the description.
#[test]
fn what_reads_a_lane_that_takes_no_part_is_said_to_fault() {
    if require_toolkit("a launch description with a shuffle").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "__global__ void sum(const float *x, float *y) { float a = x[threadIdx.x];\n\
         for (int d = 16; d; d >>= 1) a += __shfl_down_sync(0xff, a, d);\n\
         if (threadIdx.x == 0) y[0] = a; }\n\
         void go(const float *x, float *y) { sum<<<1, 8>>>(x, y); }\n";
    std::fs::write(folder.path().join("k.cu"), source).unwrap();
    let made = run_in(folder.path(), &["launch", "k.cu", "-o", "k.toml"]);
    assert_eq!(made.status.code(), Some(5), "{}", text(&made.stderr));
    let toml = std::fs::read_to_string(folder.path().join("k.toml")).unwrap();
    assert!(
        toml.contains("FAULTS at `small`") && toml.contains("inactive lane"),
        "{toml}"
    );
    let args = ["run", "k.cu", "--launch", "k.toml", "--size", "small"];
    let said = text(&run_in(folder.path(), &args).stderr);
    assert!(said.contains("inactive lane"), "{said}");
}
