//! Hazards planted into compiled examples and a tensor-core kernel: every one must be reported, and nothing must be before.
//!
//! Where a hazard can be planted is found without the checker: inside a basic block, by the roles
//! of the instructions and by distances that are written down here.

#![allow(clippy::unwrap_used)]

mod sample;

use sample::Variant;
use warpwright_flow::{Cfg, EntityRef, Inst};
use warpwright_sass::control::{Control, SCOREBOARDS};
use warpwright_sass::elf::Elf;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::hazards::check;
use warpwright_sass::roles::{File, Role, Span};
use warpwright_toolkit::Toolkit;
use warpwright_toolkit::testing::require_toolkit;

const SOURCES: [(&str, Variant); 10] = [
    ("crates/sass/tests/sample/tensor.cu", Variant::Default),
    (
        "examples/smith_waterman/smith_waterman.cu",
        Variant::Default,
    ),
    ("examples/kmeans/kmeans.cu", Variant::Default),
    ("examples/mesh_flux/mesh_flux.cu", Variant::Default),
    ("examples/fft512/fft512.cu", Variant::Default),
    ("examples/tridiag/tridiag.cu", Variant::Default),
    ("examples/icp/icp.cu", Variant::Default),
    ("examples/wilson/wilson.cu", Variant::Default),
    ("examples/hlld/hlld.cu", Variant::Default),
    ("examples/air_chemistry/air_chemistry.cu", Variant::Default),
];

/// So many of the sources are enough for every day.
const SAMPLE: usize = 7;

/// Pairs of operations, and the cycles from one to the other where ptxas puts them as close as it
/// does, on all architectures: (first, second, does the second read it as its guard?, cycles).
const CLOSEST: [(u16, u16, bool, u16); 9] = [
    (0x010, 0x010, false, 4), // IADD3
    (0x012, 0x012, false, 4), // LOP3
    (0x012, 0x010, false, 4),
    (0x010, 0x012, false, 4),
    (0x023, 0x023, false, 4), // FFMA
    (0x021, 0x021, false, 4), // FADD
    (0x024, 0x024, false, 4), // IMAD
    (0x010, 0x024, false, 5),
    (0x024, 0x010, false, 5),
];
/// ISETP, BRA: a cycle sooner on sm_75.
const GUARD_SM_75: [(u16, u16, bool, u16); 1] = [(0x00c, 0x147, true, 12)];
const GUARD: [(u16, u16, bool, u16); 1] = [(0x00c, 0x147, true, 13)];

/// The same for sm_90, where double precision has a fixed latency.
const CLOSEST_SM_90: [(u16, u16, bool, u16); 2] = [
    (0x02b, 0x02b, false, 8), // DFMA
    (0x029, 0x029, false, 8), // DADD
];

/// DMUL, DADD, DSETP, DFMA keep each other in order.
const DOUBLE: std::ops::RangeInclusive<u16> = 0x028..=0x02b;
/// MOVM and LDSM come through the queue of loads and stores.
const MATRIX_MOVES: std::ops::RangeInclusive<u16> = 0x03a..=0x03b;
/// On sm_75 it counts on scoreboards, which the checker does not ask for (docs/sass.md, what is not modelled).
const HMMA: u16 = 0x03c;
const BAR: u16 = 0x11d;

/// A changed control field.
struct Mutation {
    at: Inst,
    control: Control,
    /// Where the hazard must be reported, and between which instructions.
    shows: Inst,
}

/// A kernel, and the pairs of dependent instructions inside its blocks.
struct Kernel {
    name: String,
    code: Code,
    blocks: Vec<Vec<Inst>>,
}

impl Kernel {
    fn control(&self, inst: Inst) -> Control {
        self.code.instructions()[inst.index()].control()
    }

    fn operation(&self, inst: Inst) -> u16 {
        self.code.instructions()[inst.index()].operation().number()
    }

    fn spans(&self, inst: Inst, role: Role, file: File) -> impl Iterator<Item = Span> + '_ {
        let spans = self.code.roles(inst).spans().iter().copied();
        spans.filter(move |span| span.role == role && span.file == file)
    }

    /// Do two operands share a register?
    fn meet(&self, a: (Inst, Role), b: (Inst, Role), file: File) -> bool {
        self.spans(a.0, a.1, file).any(|x| {
            self.spans(b.0, b.1, file)
                .any(|y| x.first < y.first + y.count && y.first < x.first + x.count)
        })
    }

    /// Waits that alone protect a pair: (first, second, scoreboard). The second instruction waits for
    /// nothing else, and nothing in between waits at all.
    fn only_waits(&self) -> Vec<(Inst, Inst, u8)> {
        let mut found = Vec::new();
        for block in &self.blocks {
            for (place, &second) in block.iter().enumerate() {
                let mask = self.control(second).wait_mask;
                if mask.count_ones() != 1 {
                    continue;
                }
                let scoreboard = mask.trailing_zeros() as u8;
                for (at, &first) in block[..place].iter().enumerate().rev() {
                    let between = &block[at + 1..place];
                    // Others that count on it might speak for the first one.
                    let counted = between.iter().any(|&inst| {
                        let control = self.control(inst);
                        [control.write_barrier, control.read_barrier].contains(&Some(scoreboard))
                    });
                    let barrier = between.iter().any(|&inst| self.operation(inst) == BAR);
                    if !counted && !barrier && self.is_protected_by(first, second, scoreboard) {
                        found.push((first, second, scoreboard));
                        break;
                    }
                    // DEPBAR waits, too.
                    if self.control(first).wait_mask != 0 || self.operation(first) == 0x11a {
                        break;
                    }
                }
            }
        }
        found
    }

    fn is_protected_by(&self, first: Inst, second: Inst, scoreboard: u8) -> bool {
        let control = self.control(first);
        let other = [control.write_barrier, control.read_barrier];
        if other.iter().flatten().count() != 1 || self.operation(first) == HMMA {
            return false;
        }
        let raw = self.meet((first, Role::Def), (second, Role::Use), File::Gpr);
        let war = self.meet((first, Role::Use), (second, Role::Def), File::Gpr);
        // Loads and stores keep each other in order without a wait.
        let is_double = |inst| DOUBLE.contains(&self.operation(inst));
        let is_arithmetic = self.operation(second) < 0x50
            && !MATRIX_MOVES.contains(&self.operation(second))
            && !(is_double(first) && is_double(second));
        control.write_barrier == Some(scoreboard) && raw
            || control.read_barrier == Some(scoreboard) && war && is_arithmetic
    }

    fn closest_pairs(&self) -> impl Iterator<Item = &'static (u16, u16, bool, u16)> {
        let (guard, more): (_, &[_]) = match self.code.instructions()[0].sm() {
            75 => (&GUARD_SM_75, &[]),
            90 => (&GUARD, &CLOSEST_SM_90),
            _ => (&GUARD, &[]),
        };
        CLOSEST.iter().chain(guard).chain(more)
    }

    /// Pairs that are as close as can be, with an instruction between them whose stall can shrink.
    fn closest(&self) -> Vec<(Inst, Inst)> {
        let mut found = Vec::new();
        for block in &self.blocks {
            for (place, &first) in block.iter().enumerate() {
                let mut cycles = 0;
                for (&before, &second) in block[place..].iter().zip(&block[place + 1..]) {
                    cycles += u16::from(self.control(before).stall);
                    let pair = self.closest_pairs().find(|pair| {
                        (pair.0, pair.1, pair.3)
                            == (self.operation(first), self.operation(second), cycles)
                    });
                    let meets = pair.is_some_and(|pair| match pair.2 {
                        false => self.meet((first, Role::Def), (second, Role::Use), File::Gpr),
                        true => self.meet((first, Role::Def), (second, Role::Use), File::Pred),
                    });
                    if meets {
                        found.push((first, second));
                    }
                    let again = |file| self.meet((first, Role::Def), (second, Role::Def), file);
                    if cycles >= 13 || again(File::Gpr) || again(File::Pred) {
                        break;
                    }
                }
            }
        }
        found
    }

    /// The wait goes.
    fn without_waits(&self) -> Vec<Mutation> {
        let pairs = self.only_waits().into_iter();
        let mutations = pairs.map(|(_, second, _)| Mutation {
            at: second,
            control: Control {
                wait_mask: 0,
                ..self.control(second)
            },
            shows: second,
        });
        mutations.collect()
    }

    /// The first instruction counts on another scoreboard.
    fn other_scoreboards(&self) -> Vec<Mutation> {
        let pairs = self.only_waits().into_iter();
        let mutations = pairs.map(|(first, second, scoreboard)| {
            let control = self.control(first);
            let other = Some((scoreboard + 1) % SCOREBOARDS);
            let control = match control.write_barrier {
                Some(_) => Control {
                    write_barrier: other,
                    ..control
                },
                None => Control {
                    read_barrier: other,
                    ..control
                },
            };
            Mutation {
                at: first,
                control,
                shows: second,
            }
        });
        mutations.collect()
    }

    /// One of the stalls between the two is a cycle shorter.
    fn shorter_stalls(&self) -> Vec<Mutation> {
        let pairs = self.closest().into_iter();
        let mutations = pairs.filter_map(|(first, second)| {
            let between = (first.0..second.0).map(Inst);
            let at = between.max_by_key(|&inst| self.control(inst).stall)?;
            let control = self.control(at);
            (control.stall > 1).then_some(Mutation {
                at,
                control: Control {
                    stall: control.stall - 1,
                    ..control
                },
                shows: second,
            })
        });
        mutations.collect()
    }

    /// Plants at most `most` of the mutations, one after the other; how many.
    fn plant(&self, kind: &str, mutations: Vec<Mutation>, most: usize) -> usize {
        let step = mutations.len().div_ceil(most).max(1);
        let mut planted = 0;
        for mutation in mutations.into_iter().step_by(step) {
            let mut code = self.code.clone();
            code.set_control(mutation.at, mutation.control).unwrap();
            let violations = check(&code).unwrap();
            let (at, shows) = (mutation.at.0 * 16, mutation.shows.0 * 16);
            assert!(
                violations.iter().any(|v| v.inst == mutation.shows),
                "{}: {kind} at {at:#x}: nothing is said of {shows:#x}, but {violations:?}",
                self.name
            );
            planted += 1;
        }
        planted
    }
}

fn kernels(toolkit: &Toolkit, gpu: &str, sources: &[(&str, Variant)]) -> Vec<Kernel> {
    let mut kernels = Vec::new();
    for &(source, variant) in sources {
        let sample = sample::build(toolkit, source, "sm_75", gpu, variant);
        let elf = Elf::parse(&sample.cubin).unwrap();
        for kernel in elf.kernels().unwrap() {
            let code = Code::new(&elf, &kernel, Calls::Followed).unwrap();
            let cfg = Cfg::new(&code);
            let reachable = cfg.blocks().filter(|&block| cfg.is_reachable(block));
            kernels.push(Kernel {
                name: format!("{}: {}", sample.name, kernel.name),
                blocks: reachable.map(|block| cfg.insts(block).collect()).collect(),
                code,
            });
        }
    }
    kernels
}

/// Plants hazards into the sources on every architecture.
fn plant_everywhere(toolkit: &Toolkit, sources: &[(&str, Variant)], most: usize) {
    for gpu in sample::ARCHITECTURES {
        let mut planted = [0; 3];
        for kernel in kernels(toolkit, gpu, sources) {
            let before = check(&kernel.code).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
            let before: Vec<String> = before.iter().map(|v| v.describe(&kernel.code)).collect();
            assert_eq!(before, [] as [&str; 0], "{}", kernel.name);
            planted[0] += kernel.plant("a removed wait", kernel.without_waits(), most);
            planted[1] += kernel.plant("another scoreboard", kernel.other_scoreboards(), most);
            planted[2] += kernel.plant("a shorter stall", kernel.shorter_stalls(), most);
        }
        println!("{gpu}: removed waits, other scoreboards, shorter stalls: {planted:?}");
        assert!(planted.iter().sum::<usize>() >= 200, "{gpu}: {planted:?}");
        assert!(
            planted.iter().all(|&count| count >= 40),
            "{gpu}: {planted:?}"
        );
    }
}

#[test]
fn every_planted_hazard_is_reported() {
    if let Some(toolkit) = require_toolkit("every_planted_hazard_is_reported") {
        plant_everywhere(&toolkit, &SOURCES[..SAMPLE], 60);
    }
}

#[test]
#[ignore = "takes minutes; docs/sass.md has the figures"]
fn every_planted_hazard_of_all_sources_is_reported() {
    if let Some(toolkit) = require_toolkit("every_planted_hazard_of_all_sources_is_reported") {
        plant_everywhere(&toolkit, &SOURCES, 400);
    }
}
