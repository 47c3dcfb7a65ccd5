//! Random naive kernels under random schedules: what is printed computes what was written, to the bit, in the emulator.
//!
//! `NAIVE_CASES` kernels from the seed `NAIVE_SEED` on `NAIVE_THREADS` threads; a few where nothing is said. A kernel
//! that fails is printed with its schedule, and its number makes it again.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_driver::naive::{Problem, Rung, climb};
use warpwright_driver::stencil::CompileError;
use warpwright_naive::emit::generate;
use warpwright_naive::schedule::{Schedule, Stage};
use warpwright_toolkit::{FindOptions, NvccJob, Toolkit};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// A kernel in text.
struct Kernel<'a> {
    random: &'a mut Random,
    dims: usize,
    ty: &'static str,
    /// Counters that are in scope.
    counters: Vec<&'static str>,
    variables: Vec<String>,
    indices: Vec<String>,
}

impl Kernel<'_> {
    fn place(&mut self) -> &'static str {
        let all = ["x", "y", "z"];
        all[self.random.below(self.dims)]
    }

    /// Something that moves, with numbers that are not negative.
    fn moving(&mut self) -> String {
        let mut out = match self.counters.is_empty() || self.random.one_in(2) {
            true => self.place().to_owned(),
            false => self.random.pick(&self.counters.clone()).to_owned(),
        };
        if self.random.one_in(8) {
            out = format!("{} * {out}", 2 + self.random.below(3));
        }
        if !self.counters.is_empty() && self.random.one_in(3) {
            let more = self.random.pick(&self.counters.clone());
            let _ = write!(out, " + {more}");
        }
        if self.random.one_in(4) {
            let _ = write!(out, " + {}", 1 + self.random.below(3));
        }
        out
    }

    fn index(&mut self) -> String {
        if !self.indices.is_empty() && self.random.one_in(3) {
            let near = self.random.pick(&self.indices.clone());
            return match self.random.one_in(2) {
                true => near,
                false => format!("{near} + {}", 1 + self.random.below(4)),
            };
        }
        let row = self.moving();
        let unit = self.moving();
        let length = self
            .random
            .pick(&["n", "k", "w", "(n + 2)", "(n + k - 1)", "16"]);
        let index = match self.random.below(6) {
            0 => unit,
            1 => {
                let plane = self.moving();
                format!("(({plane}) * m + {row}) * {length} + {unit}")
            }
            2 => format!("({row}) * {length}"),
            _ => format!("({row}) * {length} + {unit}"),
        };
        self.indices.push(index.clone());
        index
    }

    fn leaf(&mut self) -> String {
        match self.random.below(9) {
            0 if !self.variables.is_empty() => self.random.pick(&self.variables.clone()),
            1 => "alpha".to_owned(),
            2 => self.random.pick(&["0.5f", "2", "1.25f"]).to_owned(),
            3 if self.random.one_in(2) => {
                let place = self.place();
                format!("({}){place}", self.ty)
            }
            _ => {
                let array = self.random.pick(&["a", "b", "d"]);
                format!("{array}[{}]", self.index())
            }
        }
    }

    fn value(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.one_in(3) {
            return self.leaf();
        }
        let (a, b) = (self.value(depth - 1), self.value(depth - 1));
        match self.random.below(8) {
            0 => {
                let most = match self.ty {
                    "float" => "fmaxf",
                    "double" => "fmax",
                    // An `int` beside a `float` has no `max`.
                    _ => return format!("({a} + {b})"),
                };
                format!("{most}({a}, {b})")
            }
            1 => format!("({a} - {b})"),
            2 if self.random.one_in(2) => {
                let place = self.place();
                format!("({place} > 2 ? {a} : {b})")
            }
            3 | 4 => format!("({a} + {b})"),
            _ => format!("{a} * {b}"),
        }
    }

    fn statements(&mut self, depth: usize, level: usize, out: &mut String) {
        let indent = "    ".repeat(level);
        for _ in 0..1 + self.random.below(2) {
            match self.random.below(10) {
                0..4 if depth > 0 => {
                    let counter = ["i", "j", "l"][self.counters.len()];
                    let high = match self.random.below(8) {
                        0 => "3".to_owned(),
                        1 => "4".to_owned(),
                        2 => "f".to_owned(),
                        3 => self.place().to_owned(),
                        4 => "k - 1".to_owned(),
                        _ => "k".to_owned(),
                    };
                    let low = if self.random.one_in(8) { "1" } else { "0" };
                    let step = if self.random.one_in(10) {
                        format!("{counter} += 2")
                    } else {
                        format!("{counter}++")
                    };
                    let _ = writeln!(
                        out,
                        "{indent}for (int {counter} = {low}; {counter} < {high}; {step}) {{"
                    );
                    self.counters.push(counter);
                    let (variables, indices) = (self.variables.clone(), self.indices.clone());
                    self.statements(depth - 1, level + 1, out);
                    let value = self.value(2);
                    let target = self.target();
                    let _ = writeln!(out, "{indent}    {target} += {value};");
                    (self.variables, self.indices) = (variables, indices);
                    self.counters.pop();
                    let _ = writeln!(out, "{indent}}}");
                }
                4 => {
                    let name = format!("t{}", self.variables.len());
                    let value = self.value(2);
                    let _ = writeln!(out, "{indent}{} {name} = {value};", self.ty);
                    self.variables.push(name);
                }
                5 => {
                    let (place, value, target) = (self.place(), self.value(1), self.target());
                    let _ = writeln!(out, "{indent}if ({place} % 3 != 0) {target} += {value};");
                }
                _ => {
                    let (op, value, target) = (
                        self.random.pick(&["=", "+=", "-=", "+="]),
                        self.value(2),
                        self.target(),
                    );
                    let _ = writeln!(out, "{indent}{target} {op} {value};");
                }
            }
        }
    }

    fn target(&mut self) -> String {
        self.random.pick(&["s", "s", "r"]).to_owned()
    }
}

fn kernel(random: &mut Random) -> String {
    let dims = 1 + random.below(3);
    let ty = random.pick(&["float", "float", "float", "double", "int"]);
    let mut text = String::from("#pragma warpwright naive sizes(f=3)\n");
    let pointer = random.pick(&[
        "const T *a, const T *b, const T *d",
        "const T *__restrict__ a, const T* b, const T d[]",
    ]);
    let _ = writeln!(
        text,
        "__global__ void probe({}, T *c, T *e, T alpha, int m, int n, int k, int w, int f) {{",
        pointer
    );
    for (axis, name) in ["x", "y", "z"].iter().enumerate().take(dims) {
        let place = match axis == 2 {
            true => "blockIdx.z".to_owned(),
            false => format!("blockIdx.{name} * blockDim.{name} + threadIdx.{name}"),
        };
        let _ = writeln!(text, "    int {name} = {place};");
    }
    let guards = ["x < n", "y < m", "z < 2"];
    let mut guard: Vec<&str> = guards[..dims].to_vec();
    if random.one_in(6) {
        guard[0] = "x < n - 1";
        guard.push("x >= 1");
    }
    let returns = random.one_in(2);
    let guarded = !random.one_in(8);
    let guard = guard.join(" && ");
    match (guarded, returns) {
        (true, true) => {
            let _ = writeln!(text, "    if (!({guard})) return;");
        }
        (true, false) => {
            let _ = writeln!(text, "    if ({guard}) {{");
        }
        _ => {}
    }
    let mut of = Kernel {
        random,
        dims,
        ty,
        counters: Vec::new(),
        variables: Vec::new(),
        indices: Vec::new(),
    };
    let first = of.leaf();
    let _ = writeln!(text, "    T s = {first}, r = 0;");
    of.statements(2, 1, &mut text);
    let out = ["x", "y * w + x", "(z * m + y) * w + x"][dims - 1];
    let _ = writeln!(text, "    c[{out}] = s;");
    if of.random.one_in(2) {
        let op = of.random.pick(&["=", "+="]);
        let _ = writeln!(text, "    e[{out}] {op} s + r * 0.5f;");
    }
    if guarded && !returns {
        text += "    }\n";
    }
    text += "}\n";
    text.replace("T ", &format!("{ty} "))
        .replace("(T)", &format!("({ty})"))
        .replace("T* ", &format!("{ty}* "))
}

fn schedule(random: &mut Random, dims: usize) -> Schedule {
    let threads = match dims {
        1 => random.pick(&[[32, 1], [64, 1], [128, 1]]),
        _ => random.pick(&[[8, 4], [8, 8], [16, 4], [32, 2], [4, 8]]),
    };
    let mut points = [random.pick(&[1, 1, 2, 4, 8]), random.pick(&[1, 1, 2, 4])];
    if dims == 1 {
        points[1] = 1;
    }
    let run = points.map(|p| {
        random.pick(
            &[1, 2, 4]
                .iter()
                .copied()
                .filter(|r| p % r == 0)
                .collect::<Vec<u32>>(),
        )
    });
    let lanes = random.pick(&[0, 0, 4, 8]);
    let fits = dims > 1 && lanes != 0 && threads[0] % lanes == 0 && threads[1] % (32 / lanes) == 0;
    let unroll = random.pick(&[1, 2, 4, 8]);
    let stage = Stage {
        turns: unroll * random.pick(&[1, 2, 3]),
        unroll,
        buffers: random.pick(&[1, 2, 2, 3]),
        turn: random.one_in(3),
    };
    Schedule {
        threads,
        points,
        run,
        lanes: if fits { lanes } else { 0 },
        stage: (!random.one_in(5)).then_some(stage),
        order: if dims > 1 { random.pick(&[0, 0, 2]) } else { 0 },
        resident: 0,
        specialise: random.one_in(2),
    }
}

fn compile(toolkit: &Toolkit, text: &str) -> Result<String, CompileError> {
    let nvcc = toolkit
        .nvcc()
        .map_err(|e| CompileError::Missing(e.to_string()))?;
    let mut job = NvccJob::new(Path::new(""), "sm_90");
    job.lineinfo = false;
    job.extra.push("-fmad=false".into());
    match nvcc.text_to_ptx(text, &job) {
        Ok(output) => Ok(output.ptx),
        Err(e) => Err(CompileError::Rejected(e.to_string())),
    }
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_kernels_compute_the_same() {
    let toolkit = match Toolkit::find(&FindOptions::default()) {
        Ok(toolkit) => toolkit,
        Err(e) => {
            assert!(
                std::env::var_os("WARPWRIGHT_REQUIRE_TOOLKIT").is_none(),
                "{e}"
            );
            return;
        }
    };
    let (cases, seed) = (
        number("NAIVE_CASES").unwrap_or(6),
        number("NAIVE_SEED").unwrap_or(1),
    );
    let seconds = number("NAIVE_SECONDS").unwrap_or(3600);
    let next = AtomicUsize::new(0);
    let begin = std::time::Instant::now();
    let wrong = Mutex::new(Vec::new());
    let counts = [const { AtomicUsize::new(0) }; 5];
    std::thread::scope(|scope| {
        for _ in 0..number("NAIVE_THREADS").unwrap_or(2) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= cases || begin.elapsed().as_secs() as usize > seconds {
                        return;
                    }
                    match case(&toolkit, (seed * 1_000_000 + at) as u64) {
                        Ok(what) => {
                            counts[what].fetch_add(1, Ordering::Relaxed);
                        }
                        Err(problem) => wrong.lock().unwrap().push(format!("case {at}: {problem}")),
                    }
                }
            });
        }
    });
    let [agree, staged, unfit, refused, unchecked] = counts.map(|c| c.into_inner());
    println!(
        "{agree} agree, {staged} of operands in shared memory agree, {unfit} schedules unfit, {refused} kernels \
         refused, {unchecked} not checked, {} wrong",
        wrong.lock().unwrap().len()
    );
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(agree + staged > cases / 3 || begin.elapsed().as_secs() as usize > seconds);
}

fn case(toolkit: &Toolkit, seed: u64) -> Result<usize, String> {
    let mut random = Random(seed);
    let text = kernel(&mut random);
    let file = File::parse(Source::new("probe.cu", &*text)).map_err(|d| d.message)?;
    let header = file.kernels[0].clone();
    let problem = match Problem::new(file, &header) {
        Ok(problem) => problem,
        Err(d) => {
            if number("NAIVE_SHOW").is_some() {
                println!("{}\n{text}", d.message);
            }
            return Ok(3);
        }
    };
    let of = schedule(&mut random, problem.kernel.dims.len());
    let Ok(mut generated) = generate(&problem.kernel, &of, 96 << 10) else {
        return Ok(2);
    };
    let whole = problem.output(&generated);
    match climb(&problem, &mut generated, &|text| compile(toolkit, text)) {
        Rung::Agrees(_) => Ok(usize::from(of.stage.is_some())),
        Rung::Unchecked(_) => Ok(4),
        Rung::Falls(fall) => Err(format!(
            "{of}: {fall}\n{text}\n{}",
            whole.map(|o| o.text).unwrap_or_default()
        )),
    }
}
