//! A device made of numbers. A variant's image is a text of `key=value` words that says how it
//! behaves:
//!
//! - `ns=1000` time of a launch; `jitter=0.01` relative spread of samples, `placement=0.003` of
//!   epochs;
//! - `check=` `ok`, `within`, `wrong`, `corrupts`, `print`, `exit`, `abort`, `hang`, or a fault kind
//!   such as `illegal-address`;
//! - `second=` the same for the second and later checks of the same worker;
//! - `timed=` `ok`, `exit`, `silent` (a fault that names nobody) or a fault kind;
//! - `unstable` two runs differ; `memory=8` more sets than that run out of memory.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use warpwright_gpu::{
    Against, Backend, Buffer, CheckReport, CheckRequest, DeviceInfo, Fault, FaultKind, IN_FLIGHT,
    Image, Job, Reference, Resources, Shape, TimeReport, TimeRequest, Variant, Verdict,
};

/// The device.
pub struct Fake {
    seed: u64,
    slowness: f64,
    job: Option<Job>,
    /// How often each variant was checked.
    pub checks: BTreeMap<String, u32>,
    /// The variants of each timing request, with its number of rounds.
    pub requests: Vec<(Vec<String>, u32)>,
}

impl Fake {
    pub fn new(seed: u64) -> Self {
        Fake {
            seed,
            slowness: 1.0,
            job: None,
            checks: BTreeMap::new(),
            requests: Vec::new(),
        }
    }

    /// The same device, with times multiplied by a factor.
    #[allow(dead_code)] // Not every test program has several devices.
    pub fn slower_by(mut self, factor: f64) -> Self {
        self.slowness = factor;
        self
    }

    fn start(&self, id: &str) {
        if let Some(job) = &self.job {
            let _ = std::fs::write(job.dir.join(IN_FLIGHT), format!("{id}\n"));
        }
    }

    /// Uniform in [-1, 1), from the seed and what it is for.
    fn noise(&self, what: &str) -> f64 {
        let mut h = self.seed ^ 0xCBF2_9CE4_8422_2325;
        for byte in what.bytes() {
            h = (h ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        h ^= h >> 29;
        h = h.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        h ^= h >> 32;
        (h >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

struct Script(BTreeMap<String, String>);

impl Script {
    fn of(variant: &Variant) -> Self {
        let text = variant.image.read().expect("image").into_owned();
        let text = String::from_utf8(text).expect("text");
        let words = text
            .split_whitespace()
            .map(|word| word.split_once('=').unwrap_or((word, "")));
        Script(words.map(|(k, v)| (k.to_string(), v.to_string())).collect())
    }

    fn word(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn number(&self, key: &str, default: f64) -> f64 {
        self.word(key)
            .map_or(default, |v| v.parse().expect("number"))
    }
}

impl Backend for Fake {
    fn open(&mut self, job: &Job) -> Result<DeviceInfo, Fault> {
        self.job = Some(job.clone());
        Ok(DeviceInfo {
            ordinal: 0,
            name: "Fake".into(),
            arch: "sm_90".into(),
            sm_count: 132,
            l2_bytes: 50 << 20,
            memory_bytes: 80 << 30,
            smem_per_block: 232_448,
            smem_per_sm: 233_472,
            regs_per_sm: 65_536,
            cuda: "13.0".into(),
            driver: None,
            highest_mhz: None,
        })
    }

    fn check(&mut self, request: &CheckRequest) -> Result<CheckReport, Fault> {
        let id = &request.variant.id;
        self.start(id);
        let script = Script::of(&request.variant);
        let count = self.checks.entry(id.clone()).or_insert(0);
        *count += 1;
        let behaviour = script
            .word("second")
            .filter(|_| *count > 1)
            .or(script.word("check"));
        let verdict = match behaviour.unwrap_or("ok") {
            "ok" => Verdict::Identical,
            "print" => {
                print!("printed by a kernel, without a line end");
                let _ = std::io::stdout().flush();
                Verdict::Identical
            }
            "within" if matches!(request.against, Against::Reference { bits: false, .. }) => {
                Verdict::Within {
                    max_abs: 1e-6,
                    max_rel: 1e-7,
                }
            }
            "wrong" | "within" => Verdict::Wrong {
                buffer: "y".into(),
                index: 7,
                expected: "1.0".into(),
                found: "2.0".into(),
                mismatches: 3,
                of: 100,
                within_tolerance: behaviour == Some("within"),
            },
            "corrupts" => Verdict::Corrupts {
                what: "wrote 4 bytes past the end of `y`".into(),
            },
            "exit" => std::process::exit(9),
            "abort" => std::process::abort(),
            "hang" => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            kind => return Err(fault(kind).blame(id)),
        };
        let unstable = if script.word("unstable").is_some() {
            vec![0]
        } else {
            Vec::new()
        };
        Ok(CheckReport {
            resources: Resources {
                registers: 64,
                threads: 256,
                ..Resources::default()
            },
            verdict,
            ns: script.number("ns", 1000.0),
            reference: Reference {
                changed: vec![0],
                unstable,
            },
        })
    }

    fn time(&mut self, request: &TimeRequest) -> Result<TimeReport, Fault> {
        let ids: Vec<String> = request.variants.iter().map(|v| v.id.clone()).collect();
        self.requests.push((ids, request.rounds));
        let mut samples = Vec::new();
        let mut total = 0.0;
        for variant in &request.variants {
            self.start(&variant.id);
            let script = Script::of(variant);
            match script.word("timed").unwrap_or("ok") {
                "ok" => {}
                "exit" => std::process::exit(9),
                "silent" => return Err(fault("illegal-address")),
                kind => return Err(fault(kind).blame(&variant.id)),
            }
            if f64::from(request.plan.sets()) > script.number("memory", 1e9) {
                return Err(fault("out-of-memory"));
            }
            let key = |round: u32| format!("{} {} {round}", variant.id, request.epoch);
            let placed = 1.0 + script.number("placement", 0.0) * self.noise(&key(u32::MAX));
            let ns = script.number("ns", 1000.0) * placed * self.slowness;
            let jitter = script.number("jitter", 0.01);
            let one: Vec<f64> = (0..request.rounds)
                .map(|r| ns * (1.0 + jitter * self.noise(&key(r))))
                .collect();
            total += one.iter().sum::<f64>() * f64::from(request.plan.sets());
            samples.push(one);
        }
        let wall_s = request.warmup_s + total * 1e-9;
        Ok(TimeReport {
            samples,
            wall_s,
            clocks_before: None,
            clocks_after: None,
        })
    }
}

fn fault(kind: &str) -> Fault {
    let kind: FaultKind =
        serde_json::from_value(serde_json::Value::String(kind.into())).expect("a fault kind");
    Fault::new(kind, "as scripted")
}

/// A job with one output buffer `y`, in a folder.
pub fn job(dir: &Path) -> Job {
    std::fs::write(dir.join("y.bin"), [0; 400]).expect("folder");
    Job {
        kernel: "kernel".into(),
        shape: Shape {
            grid: [1, 1, 1],
            block: [256, 1, 1],
            cluster: None,
            dynamic_smem: 0,
        },
        params: Vec::new(),
        buffers: vec![Buffer {
            name: "y".into(),
            bytes: 400,
            element: "f32".into(),
            file: dir.join("y.bin"),
            table: None,
            symbol: false,
            output: true,
            unwritten: false,
            align: 256,
            offset: 0,
            tolerance: Some((1e-3, 1e-5)),
        }],
        dir: dir.to_path_buf(),
    }
}

/// A variant that behaves as the script says.
pub fn variant(id: &str, script: &str) -> Variant {
    Variant::new(id, Image::Bytes(script.as_bytes().to_vec()))
}
