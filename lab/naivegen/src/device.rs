//! Programs for a machine with a GPU: kernels as written against what is launched in their place, on the device, where
//! compute-sanitizer can watch. What they read lies in a file beside each.

use std::fmt::Write as _;
use std::path::Path;

use warpwright_launch::{ElemType, Launch, LaunchFile, Tolerance, no_files};
use warpwright_naive::emit;
use warpwright_naive::ir::Template;
use warpwright_sourcegen::{Counters, Subject as _};

use crate::check::{Subject, names};

/// A program: its text, and what it reads.
#[derive(Default)]
pub struct Program {
    /// Kernels and launchers.
    kernels: String,
    /// What is launched.
    tests: String,
    data: Vec<u8>,
    /// Comparisons.
    pub comparisons: usize,
}

impl Program {
    /// One launch, by name: the kernel as written, and statements that are to do the same.
    fn test(
        &mut self,
        name: &str,
        launch: &Launch,
        original: &str,
        versions: &[(String, String)],
        is_loose: bool,
    ) -> Result<(), String> {
        let mut arguments = Vec::new();
        let mut buffers = String::new();
        let before = self.data.len();
        for arg in &launch.args {
            let Some(of) = arg.points_to() else {
                let ty = arg.ty.ok_or("a parameter that is no value and no array")?;
                arguments.push(literal(ty, &arg.bytes)?);
                continue;
            };
            let buffer = &launch.memory[of];
            if buffer.name != arg.name {
                return Err("two names of an array".into());
            }
            let bytes = buffer.materialize(&no_files).map_err(|e| e.to_string())?;
            let tolerance = match (is_loose && buffer.output, buffer.ty) {
                (true, ElemType::F32 | ElemType::F64) => buffer.tolerance.unwrap_or(Tolerance {
                    rel: 0.0,
                    abs: if buffer.ty == ElemType::F32 {
                        1e-4
                    } else {
                        1e-12
                    },
                }),
                _ => Tolerance { rel: 0.0, abs: 0.0 },
            };
            let kind = match buffer.ty {
                ElemType::F32 => 1,
                ElemType::F64 => 2,
                _ => 0,
            };
            let _ = writeln!(
                buffers,
                "    memory.add({}, {kind}, {:e}, {:e});",
                bytes.len(),
                tolerance.abs,
                tolerance.rel
            );
            arguments.push(format!("memory.at({})", arguments_of_buffers(&arguments)));
            self.data.extend(bytes);
        }
        let passed = arguments.join(", ");
        let dim = |d: [u32; 3]| format!("dim3({}, {}, {})", d[0], d[1], d[2]);
        let (grid, block) = (dim(launch.grid), dim(launch.block));
        let call = |text: &str| {
            text.replace("{grid}", &grid)
                .replace("{block}", &block)
                .replace("{args}", &passed)
        };
        let _ = write!(
            self.tests,
            "if (begin(\"{name}\", {})) {{\n    Memory_ memory;\n{buffers}    {};\n    memory.keep();\n",
            self.data.len() - before,
            call(original)
        );
        for (name, text) in versions {
            let _ = writeln!(
                self.tests,
                "    memory.reset();\n    {};\n    memory.compare({name:?});",
                call(text)
            );
            self.comparisons += 1;
        }
        self.tests.push_str("}\n");
        Ok(())
    }

    /// The text.
    pub fn text(&self) -> String {
        format!(
            "#include <cuda_pipeline.h>\n#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n\
             #include <vector>\n\n{}\n{PRELUDE}\nint main(int count, char **arguments)\n{{\ndata_ = fopen(arguments[1], \
             \"rb\");\nif (count > 2) first_ = atol(arguments[2]);\n{}finish(0);\nreturn wrong_ != 0;\n}}\n",
            self.kernels, self.tests
        )
    }

    /// Writes `NAME.cu` and `NAME.bin`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> Result<(), String> {
        let write = |ending: &str, bytes: &[u8]| {
            let path = folder.join(format!("{name}.{ending}"));
            std::fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))
        };
        write("cu", self.text().as_bytes())?;
        write("bin", &self.data)
    }

    /// Random kernels, each with what its launchers launch, at all of its sizes.
    ///
    /// # Errors
    /// A generated kernel that is wrong before anything runs.
    pub fn random(&mut self, seed: u64, number: u64) -> Result<(), String> {
        let found = Subject::generate(seed, number, &mut Counters::default());
        let Some(subject) = found.map_err(|finding| finding.what)? else {
            return Ok(());
        };
        self.kernels += &subject.kernel.text;
        let instance = subject.ir.template.as_ref().map(Template::given);
        let instance = instance.unwrap_or_default();
        let mut versions = Vec::new();
        for (at, (_, choices, generated)) in subject.ways.iter().enumerate() {
            let names = names(&subject, at);
            if let Ok(made) = emit::launcher(&subject.ir, generated, &names) {
                self.kernels += &made.text;
                self.kernels += &made.launch;
                versions.push((
                    format!("{}: {choices}", subject.kernel.name),
                    format!(
                        "{}{instance}({{grid}}, {{block}}, 0, 0, {{args}})",
                        names.launch()
                    ),
                ));
            }
        }
        let file =
            LaunchFile::parse(&subject.kernel.launch, "launch").map_err(|e| e.to_string())?;
        let original = format!(
            "{}{instance}<<<{{grid}}, {{block}}>>>({{args}})",
            subject.kernel.name
        );
        for size in 0..subject.kernel.sizes {
            let launch = file.resolve(&format!("s{size}"), &[]);
            let launch = launch.map_err(|e| e.to_string())?;
            let bytes: usize = launch.buffers().map(|b| b.len * b.ty.size()).sum();
            if bytes <= MOST_BYTES {
                let name = format!("{} at s{size}", subject.kernel.name);
                let is_loose = subject.kernel.reassociate;
                self.test(&name, &launch, &original, &versions, is_loose)?;
            }
        }
        Ok(())
    }

    /// A kernel of a file in which `run_KERNEL` launches what was made of it, at its small sizes.
    ///
    /// # Errors
    /// A description that is not understood.
    pub fn example(&mut self, text: &str, description: &str) -> Result<(), String> {
        self.kernels += text;
        let file = LaunchFile::parse(description, "launch").map_err(|e| e.to_string())?;
        for size in ["tiny", "small"] {
            let launch = file.resolve(size, &[]).map_err(|e| e.to_string())?;
            let kernel = launch.kernel.clone();
            let original = format!("{kernel}<<<{{grid}}, {{block}}>>>({{args}})");
            let version = format!("run_{kernel}({{args}}, (cudaStream_t)0)");
            let name = format!("{kernel} at {size}");
            self.test(
                &name,
                &launch,
                &original,
                &[(name.clone(), version)],
                text.contains("reassociate"),
            )?;
        }
        Ok(())
    }
}

/// Bytes of all arrays of a launch, beyond which it is left out: programs travel.
const MOST_BYTES: usize = 48 << 10;

/// How many arguments are arrays.
fn arguments_of_buffers(arguments: &[String]) -> usize {
    arguments
        .iter()
        .filter(|a| a.starts_with("memory."))
        .count()
}

/// A number as C has it.
fn literal(ty: ElemType, bytes: &[u8]) -> Result<String, String> {
    let short = || format!("{} bytes for {}", bytes.len(), ty.name());
    Ok(match ty {
        ElemType::F32 => {
            let bits = <[u8; 4]>::try_from(bytes).map_err(|_| short())?;
            format!("{:e}f", f32::from_le_bytes(bits))
        }
        ElemType::F64 => {
            let bits = <[u8; 8]>::try_from(bytes).map_err(|_| short())?;
            format!("{:e}", f64::from_le_bytes(bits))
        }
        ElemType::S32 => {
            let bits = <[u8; 4]>::try_from(bytes).map_err(|_| short())?;
            i32::from_le_bytes(bits).to_string()
        }
        ElemType::U32 => {
            let bits = <[u8; 4]>::try_from(bytes).map_err(|_| short())?;
            format!("{}u", u32::from_le_bytes(bits))
        }
        ElemType::S64 | ElemType::U64 => {
            let bits = <[u8; 8]>::try_from(bytes).map_err(|_| short())?;
            format!("{}ll", i64::from_le_bytes(bits))
        }
        _ => return Err(format!("a parameter of type {}", ty.name())),
    })
}

/// Memory of a test. Arrays lie in allocations of their own, so that a sanitizer sees what is outside.
const PRELUDE: &str = r#"
static FILE *data_;
static int compared_, wrong_;
static long cases_, first_;
// A case with so many bytes of data, unless the program was asked to begin behind it: a fault ends the program.
static bool begin(const char *name, long bytes) {
    if (cases_++ < first_) { fseek(data_, bytes, SEEK_CUR); return false; }
    printf("CASE %ld %s\n", cases_ - 1, name);
    fflush(stdout);
    return true;
}
static void finish(int errors) {
    printf("{\"comparisons\": %d, \"differences\": %d, \"errors\": %d}\n", compared_, wrong_, errors);
    fflush(stdout);
}
static void stop(const char *what, const char *why) {
    printf("ERROR %s: %s\n", what, why);
    finish(1);
    exit(3);
}
struct Any_ {
    void *at;
    template <class T> operator T *() const { return (T *)at; }
};
struct Memory_ {
    struct Array {
        void *at;
        std::vector<char> first, expected;
        int kind;
        double abs, rel;
    };
    std::vector<Array> all;
    void check(const char *what) {
        cudaError_t status = cudaGetLastError();
        if (status == cudaSuccess) status = cudaDeviceSynchronize();
        if (status != cudaSuccess) stop(what, cudaGetErrorString(status));
    }
    void add(size_t bytes, int kind, double abs, double rel) {
        Array array{nullptr, std::vector<char>(bytes), std::vector<char>(bytes), kind, abs, rel};
        if (fread(array.first.data(), 1, bytes, data_) != bytes) stop("the program", "short data");
        cudaMalloc(&array.at, bytes);
        cudaMemcpy(array.at, array.first.data(), bytes, cudaMemcpyHostToDevice);
        all.push_back(array);
    }
    Any_ at(int number) { return Any_{all[number].at}; }
    void reset() { for (auto &a : all) cudaMemcpy(a.at, a.first.data(), a.first.size(), cudaMemcpyHostToDevice); }
    void keep() {
        check("as written");
        for (auto &a : all) cudaMemcpy(a.expected.data(), a.at, a.first.size(), cudaMemcpyDeviceToHost);
    }
    template <class T> static bool near(const Array &a, const std::vector<char> &found) {
        const T *x = (const T *)found.data(), *y = (const T *)a.expected.data();
        double largest = 1;
        for (size_t i = 0; i < found.size() / sizeof(T); i++) if (std::isfinite(y[i])) largest = std::fmax(largest, std::fabs(y[i]));
        for (size_t i = 0; i < found.size() / sizeof(T); i++) {
            if (std::isnan(x[i]) && std::isnan(y[i])) continue;
            if (!(std::fabs((double)x[i] - y[i]) <= a.abs * largest + a.rel * std::fabs(y[i]))) return false;
        }
        return true;
    }
    void compare(const char *what) {
        check(what);
        compared_++;
        for (size_t n = 0; n < all.size(); n++) {
            Array &a = all[n];
            std::vector<char> found(a.first.size());
            cudaMemcpy(found.data(), a.at, found.size(), cudaMemcpyDeviceToHost);
            if (!memcmp(found.data(), a.expected.data(), found.size())) continue;
            const bool loose = a.abs + a.rel > 0;
            if (loose && (a.kind == 1 ? near<float>(a, found) : a.kind == 2 && near<double>(a, found))) continue;
            printf("DIFFERS %s: array %zu\n", what, n);
            wrong_++;
        }
    }
    ~Memory_() { for (auto &a : all) cudaFree(a.at); }
};
"#;
