//! A pair at a launch: the verdict, and the judges' own view.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use warpwright_emu::{Emulator, Options as RunOptions, Outcome, Program};
use warpwright_fuzzgen::Rng;
use warpwright_launch::{Generator, Launch, LaunchFile, no_files};
use warpwright_ptx::Module;
use warpwright_rewrite::{AtLaunch, Options, Paired, Side, Standing, Step, compare};

use crate::code::{Elem, Mistake, NAME};
use crate::family::{Expected, FAMILIES, Family, Inputs, Kernel, Param, Sizes, TEST_INPUT};

/// What is wrong with a pair, a verdict or this generator.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which pair at which sizes.
    pub pair: String,
    /// What.
    pub what: String,
    /// Both kernels.
    pub text: String,
}

/// What the judges see of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// The same bits on all inputs.
    SameBits,
    /// The same up to rounding.
    Close,
    /// Another result, or a fault of the rewrite.
    Differs,
}

/// Verdicts at launches.
pub type Verdicts = BTreeMap<String, u64>;

/// Pairs with one kind of mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    /// All.
    pub pairs: u64,
    /// Refuted at one of their sizes.
    pub refuted: u64,
    /// Of these, such as differ on numbers at none: races and what nobody has set.
    pub unseen: u64,
    /// Neither refuted nor seen to differ: at these sizes the mistake does not show.
    pub latent: u64,
}

/// What came of a run. All counters add up over pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Pairs.
    pub pairs: u64,
    /// Of these with a mistake.
    pub broken: u64,
    /// Pairs at a launch.
    pub launches: u64,
    /// Pairs by family.
    pub families: Verdicts,
    /// Verdicts on right ones.
    pub right: Verdicts,
    /// Verdicts on broken ones at launches at which the judges see them differ.
    pub differing: Verdicts,
    /// At the others.
    pub agreeing: Verdicts,
    /// Why right ones are not proved, and differing ones not refuted, by the reasons' words.
    pub open: Verdicts,
    /// By the mistake.
    pub mistakes: BTreeMap<Mistake, Planted>,
    /// Wrong verdicts, and pairs that the judges find at odds with what they were made for.
    pub wrong: u64,
}

impl Counters {
    /// Adds another run.
    pub fn add(&mut self, other: &Counters) {
        self.pairs += other.pairs;
        self.broken += other.broken;
        self.launches += other.launches;
        self.wrong += other.wrong;
        for (mine, theirs) in [
            (&mut self.families, &other.families),
            (&mut self.right, &other.right),
            (&mut self.differing, &other.differing),
            (&mut self.agreeing, &other.agreeing),
            (&mut self.open, &other.open),
        ] {
            for (name, count) in theirs {
                *mine.entry(name.clone()).or_default() += count;
            }
        }
        for (mistake, planted) in &other.mistakes {
            let mine = self.mistakes.entry(*mistake).or_default();
            mine.pairs += planted.pairs;
            mine.refuted += planted.refuted;
            mine.unseen += planted.unseen;
            mine.latent += planted.latent;
        }
    }
}

/// A plain kernel and one under a schedule.
pub struct Pair {
    family: Box<dyn Family>,
    /// The mistake, and its place.
    pub mistake: Option<(usize, Mistake)>,
    plain: Kernel,
    rewrite: Kernel,
    modules: [Module; 2],
    programs: [Program; 2],
    name: String,
}

/// A mistake for every second pair.
const BROKEN_PERCENT: usize = 60;

impl Pair {
    /// The pair of a number.
    ///
    /// # Errors
    /// A kernel that does not parse.
    pub fn random(seed: u64, number: u64) -> Result<Pair, Finding> {
        let mut rng = Rng::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number));
        let family = rng.pick(&FAMILIES).1(&mut rng);
        let offered = family.rewrite(None).code.offered;
        let is_broken = rng.chance(BROKEN_PERCENT) && !offered.is_empty();
        let planted = is_broken.then(|| rng.below(offered.len()));
        Pair::of(family, planted, &format!("{seed}:{number}"))
    }

    /// A schedule of a family, with a mistake at a place.
    ///
    /// # Errors
    /// A kernel that does not parse.
    pub fn of(
        family: Box<dyn Family>,
        planted: Option<usize>,
        name: &str,
    ) -> Result<Pair, Finding> {
        let (plain, rewrite) = (family.plain(), family.rewrite(planted));
        let mistake = planted.and_then(|at| Some((at, *rewrite.code.offered.get(at)?)));
        let name = match mistake {
            Some((at, mistake)) => format!("{name} {} {mistake:?} at {at}", family.name()),
            None => format!("{name} {}", family.name()),
        };
        let modules = [parsed(&plain, &name)?, parsed(&rewrite, &name)?];
        let program = |at: usize| {
            Emulator::new(&modules[at], NAME).map_err(|e| Finding {
                pair: name.clone(),
                what: e.to_string(),
                text: [&plain, &rewrite][at].code.text(),
            })
        };
        let programs = [program(0)?, program(1)?];
        Ok(Pair {
            family,
            mistake,
            plain,
            rewrite,
            modules,
            programs,
            name,
        })
    }

    /// Its number, family and mistake.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Each kernel as a module.
    pub fn texts(&self) -> [String; 2] {
        [&self.plain, &self.rewrite].map(|kernel| kernel.code.text())
    }

    /// Both kernels.
    pub fn text(&self) -> String {
        self.texts().join("\n")
    }

    /// One block, odd, prime, tile minus one, two tiles and one, one element.
    pub fn plan(&self) -> Vec<Sizes> {
        let at = |of: &dyn Fn(usize, usize) -> usize| self.sizes(of);
        vec![
            at(&|_, tile| tile),
            at(&|k, tile| (tile / 2 + 2 * k) | 1),
            at(&|k, _| [37, 23, 13][k % 3]),
            at(&|_, tile| tile.saturating_sub(1).max(1)),
            at(&|_, tile| 2 * tile + 1),
            at(&|_, _| 1),
        ]
    }

    /// Three sets of sizes at random.
    pub(crate) fn random_sizes(&self, rng: &mut Rng) -> Vec<Sizes> {
        (0..3)
            .map(|_| {
                let choices: Vec<usize> = (0..4).map(|_| rng.below(8)).collect();
                self.sizes(&|k, tile| match choices[k % 4] {
                    0 => 1,
                    1 => tile.saturating_sub(1).max(1),
                    2 => tile + 1,
                    3 => [17, 37, 29][k % 3],
                    4 => 2 * tile + 1,
                    5 => (tile / 2) | 1,
                    6 => 2 * tile,
                    _ => tile,
                })
            })
            .collect()
    }

    fn sizes(&self, of: &dyn Fn(usize, usize) -> usize) -> Sizes {
        let tiles = self.family.tiles().into_iter().enumerate();
        let mut sizes: Sizes = tiles
            .map(|(k, (name, tile))| (name, of(k, tile) as i64))
            .collect();
        sizes.extend(self.family.fixed());
        sizes
    }

    /// The pair at some sizes.
    ///
    /// # Errors
    /// A wrong verdict.
    pub fn at(&self, sizes: &Sizes) -> Result<(AtLaunch, Seen), Finding> {
        let wrong = |what: String| self.finding(sizes, what);
        let launches = self.launches(sizes)?;
        let seen = self.judged(sizes, &launches).map_err(wrong)?;
        let found = self.compared(launches).map_err(wrong)?;
        match self.contradiction(seen, found.standing) {
            None => Ok((found, seen)),
            Some(what) => {
                let why: Vec<String> = found.why.iter().map(ToString::to_string).collect();
                Err(wrong(format!(
                    "{what}: {:?}, {}",
                    found.standing,
                    why.join("; ")
                )))
            }
        }
    }

    fn finding(&self, sizes: &Sizes, what: String) -> Finding {
        Finding {
            pair: format!("{} at {sizes:?}", self.name),
            what,
            text: self.text(),
        }
    }

    /// How both are launched at some sizes.
    pub(crate) fn launches(&self, sizes: &Sizes) -> Result<[Launch; 2], Finding> {
        let launch = |kernel: &Kernel| {
            let launch = self.launch(kernel, sizes);
            launch.map_err(|what| self.finding(sizes, what))
        };
        Ok([launch(&self.plain)?, launch(&self.rewrite)?])
    }

    fn contradiction(&self, seen: Seen, standing: Standing) -> Option<&'static str> {
        let is_equal = standing <= Standing::UpToRounding;
        match (self.mistake, seen, standing) {
            (_, _, Standing::WrongInput) => Some("the plain kernel is right"),
            (None, Seen::Differs, _) => Some("a right rewrite differs on numbers"),
            (None, _, Standing::Refuted) => Some("a right rewrite is refuted"),
            (_, Seen::Differs, _) if is_equal => Some("a mistake that shows is taken for equal"),
            (_, Seen::Close, Standing::BitForBit | Standing::ButNans) => {
                Some("other bits are taken for the same")
            }
            _ => None,
        }
    }

    fn launch(&self, kernel: &Kernel, sizes: &Sizes) -> Result<Launch, String> {
        let is_plain = std::ptr::eq(kernel, &self.plain);
        let params = self.family.params().into_iter().map(|param| match param {
            // The plain kernel writes every element: it is given none.
            Param::Output(name, elem, shape, _) if is_plain && self.family.writes_all() => {
                Param::Output(name, elem, shape, false)
            }
            param => param,
        });
        let text = description(kernel, &params.collect::<Vec<_>>(), sizes);
        let file = LaunchFile::parse(&text, "launch.toml").map_err(|e| format!("{e}\n{text}"))?;
        file.resolve("small", &[]).map_err(|e| e.to_string())
    }

    fn compared(&self, launches: [Launch; 2]) -> Result<AtLaunch, String> {
        let mut sides = Vec::new();
        for ((launch, module), name) in launches
            .into_iter()
            .zip(&self.modules)
            .zip(["plain", "rewrite"])
        {
            let program = Emulator::new(module, NAME).map_err(|e| e.to_string())?;
            let contents = launch.buffers().map(|b| b.materialize(&no_files));
            let contents: Result<Vec<_>, _> = contents.collect();
            let contents = contents.map_err(|e| e.to_string())?;
            let step = Step {
                program,
                launch,
                contents,
            };
            sides.push(Side {
                name: name.to_owned(),
                steps: vec![step],
            });
        }
        let paired = Paired::of(&sides[0], &sides[1], &[]).map_err(|e| e.to_string())?;
        Ok(compare(&sides[0], &sides[1], &paired, &Options::default()))
    }

    // ---- the judges

    fn judged(&self, sizes: &Sizes, launches: &[Launch; 2]) -> Result<Seen, String> {
        let mut seen = Seen::SameBits;
        for filling in 0..FILLINGS {
            let (bytes, expected) = self.given(sizes, &launches[0], filling);
            let first = ran(&self.programs[0], &launches[0], &bytes)?;
            let Ok(second) = ran(&self.programs[1], &launches[1], &bytes) else {
                return Ok(Seen::Differs);
            };
            let elem = self.output();
            if let Some(at) = differs(elem, &first, &expected) {
                return Err(format!(
                    "the plain kernel's element {at} is not the host's, filling {filling}"
                ));
            }
            if differs(elem, &second, &expected).is_some() {
                return Ok(Seen::Differs);
            }
            if first != second {
                seen = seen.max(Seen::Close);
            }
        }
        Ok(seen)
    }

    /// Contents of the buffers in order, and what the host says of the output.
    pub(crate) fn given(
        &self,
        sizes: &Sizes,
        launch: &Launch,
        filling: u64,
    ) -> (Vec<Vec<u8>>, Vec<Expected>) {
        let (bytes, inputs) = self.filled(launch, filling);
        (bytes, self.family.expected(sizes, &inputs))
    }

    pub(crate) fn output(&self) -> Elem {
        let params = self.family.params();
        let found = params.iter().find_map(|param| match param {
            Param::Output(_, elem, ..) => Some(*elem),
            _ => None,
        });
        found.unwrap_or(Elem::F32)
    }

    /// Contents of the buffers in order, and the inputs as numbers.
    fn filled(&self, launch: &Launch, filling: u64) -> (Vec<Vec<u8>>, Inputs) {
        let mut inputs = Inputs::new();
        let params = self.family.params();
        let buffers = params
            .iter()
            .filter(|param| !matches!(param, Param::Size(_)));
        let bytes = buffers.zip(launch.buffers()).map(|(param, buffer)| {
            let (name, elem, bound) = match *param {
                Param::Input(name, elem, _) => (name, elem, None),
                Param::Keys(name, _, bound) => (name, Elem::S32, Some(bound)),
                // The last call's results, where the kernel is to write.
                Param::Output(_, elem, _, zeros) => {
                    let old = if zeros { 0.0 } else { 77.0 };
                    return bits(elem, &vec![old; buffer.len]);
                }
                Param::Size(_) => return Vec::new(),
            };
            let generator = Generator::new(name, 100 + filling);
            let value = |i: u64| match bound {
                Some(bound) => generator.below(i, bound as u64) as f64,
                None => number(elem, generator, filling, i),
            };
            let values: Vec<f64> = (0..buffer.len as u64).map(value).collect();
            let bytes = bits(elem, &values);
            inputs.insert(name.to_owned(), values);
            bytes
        });
        let bytes = bytes.collect();
        (bytes, inputs)
    }
}

/// Ways in which the judges fill inputs.
pub(crate) const FILLINGS: u64 = 5;

/// Numbers of either sign, whole ones, negative ones, the test's own, of many magnitudes.
fn number(elem: Elem, generator: Generator, filling: u64, i: u64) -> f64 {
    let unit = generator.unit(i);
    let value = match (filling, elem) {
        (0, Elem::F32) => 4.0 * unit - 2.0,
        (0, Elem::S32) | (1, _) => (unit * 201.0).floor() - 100.0,
        (2, _) => -1.0 - (9.0 * unit).floor(),
        (3, _) => TEST_INPUT,
        (_, Elem::F32) => {
            2f64.powf(6.0 * unit - 3.0)
                * if generator.word(i) & 1 == 0 {
                    1.0
                } else {
                    -1.0
                }
        }
        (_, Elem::S32) => 1.0 + (9.0 * unit).floor(),
    };
    // As the kernel has it.
    match elem {
        Elem::F32 => f64::from(value as f32),
        Elem::S32 => value,
    }
}

/// Numbers as words of 4 bytes.
pub(crate) fn bits(elem: Elem, values: &[f64]) -> Vec<u8> {
    let word = |&value: &f64| match elem {
        Elem::F32 => (value as f32).to_le_bytes(),
        Elem::S32 => (value as i32).to_le_bytes(),
    };
    values.iter().flat_map(word).collect()
}

/// The outputs that a run leaves; `Err`: its fault.
fn ran(program: &Program, launch: &Launch, contents: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let options = RunOptions {
        races: true,
        sequential: true,
        budget: 1 << 24,
        ..RunOptions::default()
    };
    match program.run(launch, contents.to_vec(), &options) {
        Ok(Outcome::Finished(results)) => {
            let outputs = launch
                .buffers()
                .zip(results.buffers)
                .filter(|(b, _)| b.output);
            Ok(outputs.flat_map(|(_, bytes)| bytes).collect())
        }
        Ok(Outcome::Faulted(fault)) => Err(fault.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// The first element that is not what the host says: rounding of single precision apart.
fn differs(elem: Elem, bytes: &[u8], expected: &[Expected]) -> Option<usize> {
    let words = bytes.as_chunks::<4>().0;
    if words.len() != expected.len() {
        return Some(words.len());
    }
    let is_other = |word: &[u8; 4], expected: &Expected| match elem {
        Elem::S32 => f64::from(i32::from_le_bytes(*word)) != expected.value,
        Elem::F32 => {
            let difference = (f64::from(f32::from_le_bytes(*word)) - expected.value).abs();
            // A NaN is no number's neighbour.
            difference.is_nan() || difference > 1e-5 * expected.scale + 1e-9
        }
    };
    words
        .iter()
        .zip(expected)
        .position(|(word, expected)| is_other(word, expected))
}

fn parsed(kernel: &Kernel, name: &str) -> Result<Module, Finding> {
    let text = kernel.code.text();
    let (module, diagnostics) = Module::parse("pair", &text);
    match diagnostics.iter().find(|d| d.is_error()) {
        Some(error) => Err(Finding {
            pair: name.to_owned(),
            what: error.message.to_string(),
            text,
        }),
        None => Ok(module),
    }
}

fn description(kernel: &Kernel, params: &[Param], sizes: &Sizes) -> String {
    let sizes: Vec<String> = sizes
        .iter()
        .map(|(name, value)| format!("{name} = {value}\n"))
        .collect();
    let ([x, y], [w, h]) = (&kernel.grid, kernel.block);
    let mut text = format!(
        "kernel = \"{NAME}\"\n[sizes.small]\n{}[launch]\ngrid = [\"{x}\", \"{y}\"]\nblock = [{w}, {h}]\n",
        sizes.concat()
    );
    for param in params {
        text += &match param {
            Param::Input(name, elem, shape) => {
                let range = match elem {
                    Elem::F32 => "low = -2.0, high = 2.0",
                    Elem::S32 => "low = -100, high = 100",
                };
                buffer(
                    name,
                    *elem,
                    shape,
                    &format!("init = {{ kind = \"uniform\", {range} }}"),
                )
            }
            Param::Keys(name, shape, bound) => buffer(
                name,
                Elem::S32,
                shape,
                &format!("init = {{ kind = \"indices\", bound = {bound} }}"),
            ),
            Param::Output(name, elem, shape, zeros) => {
                let init = if *zeros { "init = \"zeros\"\n" } else { "" };
                buffer(name, *elem, shape, &format!("{init}output = true"))
            }
            Param::Size(name) => {
                format!("[[args]]\nname = \"{name}\"\ntype = \"u32\"\nvalue = \"{name}\"\n")
            }
        };
    }
    text
}

fn buffer(name: &str, elem: Elem, shape: &str, rest: &str) -> String {
    let shape: Vec<String> = shape
        .split(", ")
        .map(|extent| format!("\"{extent}\""))
        .collect();
    let shape = shape.join(", ");
    format!(
        "[[args]]\nname = \"{name}\"\ntype = \"{}\"\nshape = [{shape}]\n{rest}\n",
        elem.name()
    )
}

// ---- runs

fn word(standing: Standing) -> String {
    let word = match standing {
        Standing::BitForBit => "bit-for-bit",
        Standing::ButNans => "but-for-nans",
        Standing::UpToRounding => "up-to-rounding",
        Standing::Tested => "tested",
        Standing::Refuted => "refuted",
        Standing::WrongInput => "wrong-input",
    };
    word.to_owned()
}

/// A pair at some sizes, counted.
pub fn counted(pair: &Pair, all: &[Sizes]) -> (Counters, Vec<Finding>) {
    let mut counters = Counters {
        pairs: 1,
        ..Counters::default()
    };
    let mut findings = Vec::new();
    let (mut refuted, mut shown) = (false, false);
    *counters
        .families
        .entry(pair.family.name().to_owned())
        .or_default() += 1;
    for sizes in all {
        counters.launches += 1;
        let (found, seen) = match pair.at(sizes) {
            Ok(both) => both,
            Err(finding) => {
                counters.wrong += 1;
                findings.push(finding);
                continue;
            }
        };
        refuted |= found.standing == Standing::Refuted;
        shown |= seen == Seen::Differs;
        let table = match (pair.mistake, seen) {
            (None, _) => &mut counters.right,
            (Some(_), Seen::Differs) => &mut counters.differing,
            (Some(_), _) => &mut counters.agreeing,
        };
        *table.entry(word(found.standing)).or_default() += 1;
        let is_open =
            found.standing == Standing::Tested && (pair.mistake.is_none() || seen == Seen::Differs);
        if is_open {
            let codes: Vec<&str> = found.why.iter().map(|why| why.code()).collect();
            let what = if pair.mistake.is_some() {
                "differing"
            } else {
                "right"
            };
            let key = format!("{what}, {}: {}", pair.family.name(), codes.join(" "));
            *counters.open.entry(key).or_default() += 1;
        }
    }
    if let Some((_, mistake)) = pair.mistake {
        counters.broken = 1;
        let planted = counters.mistakes.entry(mistake).or_default();
        planted.pairs = 1;
        planted.refuted = u64::from(refuted);
        planted.unseen = u64::from(refuted && !shown);
        planted.latent = u64::from(!refuted && !shown);
    }
    (counters, findings)
}

/// The pairs of some numbers.
pub fn run(seed: u64, numbers: std::ops::Range<u64>) -> (Counters, Vec<Finding>) {
    let each: Vec<(Counters, Vec<Finding>)> = numbers
        .into_par_iter()
        .map(|number| match Pair::random(seed, number) {
            Ok(pair) => {
                let mut rng = Rng::new(seed ^ number.rotate_left(32));
                counted(&pair, &pair.random_sizes(&mut rng))
            }
            Err(finding) => (
                Counters {
                    wrong: 1,
                    ..Counters::default()
                },
                vec![finding],
            ),
        })
        .collect();
    let (mut counters, mut findings) = (Counters::default(), Vec::new());
    for (more, found) in each {
        counters.add(&more);
        findings.extend(found);
    }
    (counters, findings)
}
