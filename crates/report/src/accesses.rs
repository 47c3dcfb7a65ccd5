//! How a kernel's accesses lie in memory, as the emulator counted them: coalescing, bank conflicts, lanes of atomic
//! operations at one address; and how many lanes its instructions have.

use std::collections::BTreeMap;

use serde::Serialize;
use warpwright_emu::{InstructionCount, Pattern, Patterns};
use warpwright_flow::{self as flow, Function as _};
use warpwright_ptx::{FuncId, Module};
use warpwright_target::WARP_SIZE;

use crate::explain::Lines;
use crate::screen::wrap;
use crate::table::Table;

/// Places that are listed.
const LISTED: usize = 6;
/// What takes no more than this over the least is in order: a row that does not begin at a sector takes one more.
const IN_ORDER: f64 = 1.3;
/// A smaller part of all that is taken is not listed beside larger ones.
const SMALLEST: f64 = 0.02;

/// The kinds of memory whose accesses are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// Moved in sectors of 32 bytes.
    Global,
    /// Moved in passes over 32 banks.
    Shared,
}

/// On average so many lanes of an atomic operation at one address are worth a word.
const CROWDED: f64 = 1.5;
/// So few lanes of an instruction are, of those of a warp.
const FEW_LANES: f64 = 0.875;

/// The accesses of a kernel at a launch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccessReport {
    /// At which, in words.
    pub counted_at: String,
    /// Sectors of global memory; absent where none is accessed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sectors: Option<Total>,
    /// Passes over shared memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passes: Option<Total>,
    /// Atomic operations whose lanes go to one address, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atomics: Option<OnAverage>,
    /// The lanes that instructions have, if they are few: branches that diverge, and blocks that are no whole warps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<OnAverage>,
    /// What they come to, in a sentence.
    pub summary: String,
    /// Few active lanes, and what the prediction does not know of accesses that take more than they must.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wasted: Option<String>,
    /// The instructions that take more than they must, those that waste most first.
    pub places: Vec<AccessPlace>,
    /// How many there are besides.
    pub more: usize,
}

/// Lanes of a warp.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnAverage {
    /// In all instructions that count.
    pub mean: f64,
    /// Of those in the worst line.
    pub worst: f64,
    /// That line, `file:line`.
    pub line: Option<String>,
}

impl OnAverage {
    /// Where it is worst, and how much it is there.
    fn at(&self) -> String {
        match &self.line {
            Some(line) => format!(" ({:.1} in {line})", self.worst),
            None => String::new(),
        }
    }
}

/// What the accesses of all warps that ran come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Total {
    /// What they took.
    pub taken: u64,
    /// What the same bytes take side by side.
    pub least: u64,
}

impl Total {
    fn ratio(self) -> f64 {
        self.taken as f64 / self.least.max(1) as f64
    }
}

/// Instructions of one kind in one line, as unrolled loops have them, that take more than they must.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccessPlace {
    /// `file:line`.
    pub line: Option<String>,
    /// The instruction of the PTX, or the first of them.
    pub text: String,
    /// How many they are.
    pub instructions: usize,
    /// What they access.
    pub memory: Memory,
    /// Sectors or passes of an access of a warp, on average.
    pub taken: f64,
    /// What the same bytes take side by side.
    pub least: f64,
    /// Their part of all sectors or passes of the kernel, 0 to 1.
    pub share: f64,
}

impl AccessReport {
    /// The accesses of a kernel whose instructions were counted so; `None` where there are none.
    pub fn new(
        module: &Module,
        id: FuncId,
        counts: &[InstructionCount],
        counted_at: &str,
    ) -> Option<AccessReport> {
        let view = module.view(id)?;
        let body = module.functions[id].body.as_ref()?;
        let lines = Lines { module, id };
        let own = counts.iter().filter(|count| count.function == id);
        let patterns = own.clone().filter(|of| of.patterns != Patterns::default());
        let patterns: Vec<_> = patterns.map(|of| (of.inst, of.patterns)).collect();
        let line_of = |inst: warpwright_ptx::Inst| lines.of(flow::Inst(inst.as_u32()));
        let of_atomics = patterns.iter().map(|(inst, patterns)| {
            let Pattern {
                requests, taken, ..
            } = patterns.atomic;
            (line_of(*inst), requests, taken)
        });
        let atomics = on_average(of_atomics, |mean| mean);
        let atomics = atomics.filter(|found| found.mean >= CROWDED);
        // What is guarded has fewer lanes by its guard.
        let plain = own.filter(|of| body.insts[of.inst].guard.is_none());
        let plain = plain.map(|of| (line_of(of.inst), of.warps, of.threads));
        let active = on_average(plain, |mean| f64::from(WARP_SIZE) - mean);
        let active = active.filter(|found| found.mean < FEW_LANES * f64::from(WARP_SIZE));
        let mut places = Vec::new();
        let mut total = |memory: Memory| {
            let of = |patterns: &Patterns| match memory {
                Memory::Global => patterns.global,
                Memory::Shared => patterns.shared,
            };
            let [mut all, mut least] = [0, 0];
            for (_, patterns) in &patterns {
                all += of(patterns).taken;
                least += of(patterns).least;
            }
            let mut alike: BTreeMap<_, (usize, String, usize, Pattern)> = BTreeMap::new();
            for (inst, patterns) in &patterns {
                let own = of(patterns);
                if is_in_order(&own) {
                    continue;
                }
                let at = flow::Inst(inst.as_u32());
                let (line, text) = (lines.of(at), view.inst_text(at));
                let kind = match line {
                    Some(_) => text.split(' ').next().unwrap_or_default().to_owned(),
                    None => inst.as_u32().to_string(),
                };
                let first = (alike.len(), text, 0, Pattern::default());
                let (_, _, instructions, sum) = alike.entry((line, kind)).or_insert(first);
                *instructions += 1;
                sum.requests += own.requests;
                sum.taken += own.taken;
                sum.least += own.least;
            }
            let mut alike: Vec<_> = alike.into_iter().collect();
            alike.sort_by_key(|(_, (order, ..))| *order);
            for ((line, _), (_, text, instructions, sum)) in alike {
                let mean = |count: u64| count as f64 / sum.requests as f64;
                places.push(AccessPlace {
                    line,
                    text,
                    instructions,
                    memory,
                    taken: mean(sum.taken),
                    least: mean(sum.least),
                    share: sum.taken as f64 / all.max(1) as f64,
                });
            }
            (least > 0).then_some(Total { taken: all, least })
        };
        let (sectors, passes) = (total(Memory::Global), total(Memory::Shared));
        let wasted = |place: &AccessPlace| place.share * (1.0 - place.least / place.taken);
        places.sort_by(|a, b| wasted(b).total_cmp(&wasted(a)));
        let parts = [
            in_words(sectors, "sectors of global memory"),
            in_words(passes, "passes over shared memory"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        // The model takes accesses to be in order.
        let is_wasting = [sectors, passes]
            .iter()
            .flatten()
            .any(|total| total.ratio() > IN_ORDER);
        // Of a loop that is unrolled each copy is small, and all of them are not.
        let is_large = |place: &AccessPlace| place.share >= SMALLEST;
        if !is_wasting || places.iter().any(is_large) {
            places.retain(is_large);
        }
        let more = places.len().saturating_sub(LISTED);
        places.truncate(LISTED);
        let unknown = match is_wasting {
            true => "; predicted cycles do not know of that",
            false => "",
        };
        let wasted = [(sectors, "sectors"), (passes, "passes over shared memory")];
        let wasted = wasted.into_iter().filter_map(|(total, what)| {
            let ratio = total?.ratio();
            (ratio > IN_ORDER).then(|| format!("{ratio:.1} times the {what} needed"))
        });
        let wasted: Vec<String> = wasted.collect();
        let place = |line: Option<&str>| line.map_or_else(String::new, |line| format!(" ({line})"));
        let first = places.first().and_then(|place| place.line.as_deref());
        let crowded = atomics.as_ref().map(|found| {
            let line = found.at();
            format!(
                "{:.1} lanes at the fullest address of atomic operations{line}",
                found.mean
            )
        });
        let wasted = is_wasting.then(|| format!("{}{}", wasted.join(", "), place(first)));
        let wasted = wasted.map(|text| format!("not in that: {text}"));
        let idle = active.as_ref().map(|found| {
            let line = found.at();
            format!("{:.1} of {WARP_SIZE} lanes are active{line}", found.mean)
        });
        let wasted: Vec<String> = idle.into_iter().chain(crowded).chain(wasted).collect();
        let wasted = (!wasted.is_empty()).then(|| wasted.join("; "));
        (!parts.is_empty()).then(|| AccessReport {
            counted_at: counted_at.to_owned(),
            sectors,
            passes,
            atomics,
            lanes: active,
            wasted,
            summary: format!(
                "accesses of a warp (counted at {counted_at}) take {}{unknown}",
                parts.join(", ")
            ),
            places,
            more,
        })
    }

    /// Says that what buffers held when it was counted was guessed.
    pub fn enter_guessed(&mut self) {
        let texts = self.wasted.iter_mut().chain([&mut self.summary]);
        texts.for_each(|text| text.push_str(GUESSED));
    }

    /// The lines of the screen, indented as `explain` has them.
    pub fn screen(&self) -> String {
        let mut table = Table::new(&["takes", "needs", "", "of all", "place", "instruction"]);
        for place in &self.places {
            table.row(vec![
                format!("{:.1}", place.taken),
                format!("{:.1}", place.least),
                place.memory.unit().to_owned(),
                format!("{:.0}%", 100.0 * place.share),
                place.line.clone().unwrap_or_default(),
                match place.instructions {
                    0 | 1 => place.text.clone(),
                    all => format!("{}, {} more", place.text, all - 1),
                },
            ]);
        }
        let rows = match self.places[..] {
            [] => String::new(),
            _ => table.render_within(4),
        };
        let rows = match self.more {
            0 => rows,
            more => format!("{rows}    {more} more\n"),
        };
        let atomics = self.atomics.as_ref().map(|found| {
            format!(
                "an atomic operation of a warp has {:.1} lanes at its fullest address on average{}: they take turns where \
                 ptxas does not combine them",
                found.mean,
                found.at()
            )
        });
        let lanes = self.lanes.as_ref().map(|found| {
            format!(
                "{:.1} of {WARP_SIZE} lanes are active on average{}: branches part them, or a block is no whole warps",
                found.mean,
                found.at()
            )
        });
        let more = [atomics, lanes].into_iter().flatten();
        let more = more.map(|text| wrap(&text, "  ", "    ").join("\n") + "\n");
        wrap(&self.summary, "  ", "    ").join("\n") + "\n" + &rows + &more.collect::<String>()
    }
}

/// What is said of counts that may go by what buffers hold, where nobody knows it.
const GUESSED: &str = " (what its buffers hold is guessed)";

/// The mean of what executions by warps had, and the line that is worst by what all of its executions have of `badness`.
fn on_average(
    all: impl Iterator<Item = (Option<String>, u64, u64)>,
    badness: fn(f64) -> f64,
) -> Option<OnAverage> {
    let mut by_line: BTreeMap<Option<String>, [u64; 2]> = BTreeMap::new();
    for (line, executions, lanes) in all {
        let [a, b] = by_line.entry(line).or_default();
        (*a, *b) = (*a + executions, *b + lanes);
    }
    by_line.retain(|_, [executions, _]| *executions > 0);
    let mean = |&[executions, lanes]: &[u64; 2]| lanes as f64 / executions as f64;
    let [executions, lanes] = by_line
        .values()
        .fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
    let cost = |of: &[u64; 2]| of[0] as f64 * badness(mean(of));
    let (line, worst) = by_line
        .iter()
        .max_by(|(_, a), (_, b)| cost(a).total_cmp(&cost(b)))?;
    Some(OnAverage {
        mean: mean(&[executions, lanes]),
        worst: mean(worst),
        line: line.clone(),
    })
}

fn in_words(total: Option<Total>, what: &str) -> Option<String> {
    let ratio = total?.ratio();
    Some(match ratio > IN_ORDER {
        true => format!("{ratio:.1} times the {what} that their bytes need"),
        false => format!("about as many {what} as their bytes need"),
    })
}

impl Memory {
    /// What its accesses are counted in.
    pub fn unit(self) -> &'static str {
        match self {
            Memory::Global => "sectors",
            Memory::Shared => "passes",
        }
    }
}

fn is_in_order(pattern: &Pattern) -> bool {
    pattern.taken as f64 <= IN_ORDER * pattern.least as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_emu::Place;

    /// Executions by warps and threads of an instruction.
    fn count(
        function: FuncId,
        at: u32,
        [warps, threads]: [u64; 2],
        patterns: Patterns,
    ) -> InstructionCount {
        InstructionCount {
            place: Place::default(),
            inst: warpwright_ptx::Inst::from_u32(at),
            function,
            warps,
            threads,
            patterns,
        }
    }

    #[test]
    fn lanes_that_idle_and_lanes_that_meet_are_said() {
        let text = ".version 8.0\n.target sm_90\n.address_size 64\n.file 1 \"k.cu\"\n.visible .entry k(.param .u64 p)\n{\n\
            .reg .b32 %r<3>;\n.reg .b64 %d;\n.reg .pred %p;\n.loc 1 3 0\nld.param.u64 %d, [p];\n.loc 1 4 0\n\
            mov.u32 %r1, 1;\n.loc 1 5 0\natom.global.add.u32 %r2, [%d], %r1;\n.loc 1 6 0\n@%p mov.u32 %r1, 2;\nret;\n}\n";
        let module = Module::parse("k.ptx", text).0;
        let (id, _) = module.kernels().next().unwrap();
        let atomic = |taken| Patterns {
            global: Pattern {
                requests: 4,
                taken: 4,
                least: 4,
            },
            atomic: Pattern {
                requests: 4,
                taken,
                least: 4,
            },
            ..Patterns::default()
        };
        let report = |taken: u64, lanes: u64| {
            let all = [
                count(id, 0, [4, 128], Patterns::default()),
                count(id, 1, [4, 4 * lanes], Patterns::default()),
                count(id, 2, [4, 128], atomic(taken)),
                // Its guard has them idle.
                count(id, 3, [4, 0], Patterns::default()),
            ];
            AccessReport::new(&module, id, &all, "size `small`").unwrap()
        };
        let plain = report(4, 32);
        assert_eq!(
            (&plain.atomics, &plain.lanes, &plain.wasted),
            (&None, &None, &None)
        );
        let found = report(64, 2);
        let on = |mean, worst, line: &str| {
            let line = Some(line.to_owned());
            Some(OnAverage { mean, worst, line })
        };
        assert_eq!(found.atomics, on(16.0, 16.0, "k.cu:5"));
        assert_eq!(found.lanes, on(22.0, 2.0, "k.cu:4"));
        let screen = found.screen();
        let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "16.0 lanes at its fullest address",
            "22.0 of 32 lanes",
            "(2.0 in k.cu:4)",
        ] {
            assert!(screen.contains(part), "{screen}");
        }
        let wasted = "22.0 of 32 lanes are active (2.0 in k.cu:4); 16.0 lanes at the fullest address of atomic operations (16.0 in k.cu:5)";
        assert_eq!(found.wasted.as_deref(), Some(wasted));
    }

    #[test]
    fn many_small_places_are_no_reason_to_name_none() {
        let loads = "ld.global.u32 %r1, [%d];\n".repeat(100);
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .b32 %r<3>;\n.reg .b64 %d;\nld.param.u64 %d, [p];\n{loads}ret;\n}}\n"
        );
        let module = Module::parse("k.ptx", text.as_str()).0;
        let (id, _) = module.kernels().next().unwrap();
        let pattern = Pattern {
            requests: 1,
            taken: 32,
            least: 4,
        };
        let of = |at| {
            let global = Patterns {
                global: pattern,
                ..Patterns::default()
            };
            count(id, at, [1, 32], global)
        };
        let all: Vec<_> = (1..=100).map(of).collect();
        let report = AccessReport::new(&module, id, &all, "size `small`").unwrap();
        assert_eq!(report.places.len(), LISTED);
    }

    #[test]
    fn copies_of_a_line_are_one_place() {
        let loads = "ld.global.u32 %r1, [%d];\n".repeat(3);
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.file 1 \"k.cu\"\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .b32 %r<3>;\n.reg .b64 %d;\nld.param.u64 %d, [p];\n.loc 1 7 0\n{loads}st.global.u32 [%d], %r1;\n\
             .loc 1 8 0\n{loads}ret;\n}}\n"
        );
        let module = Module::parse("k.ptx", text.as_str()).0;
        let (id, _) = module.kernels().next().unwrap();
        let of = |at: u32| {
            let global = Patterns {
                global: Pattern {
                    requests: 1,
                    taken: 8 * u64::from(at),
                    least: 4,
                },
                ..Patterns::default()
            };
            count(id, at, [1, 32], global)
        };
        let all: Vec<_> = (1..=7).map(of).collect();
        let report = AccessReport::new(&module, id, &all, "size `small`").unwrap();
        let found: Vec<_> = report
            .places
            .iter()
            .map(|p| (p.line.as_deref().unwrap(), p.instructions, p.taken))
            .collect();
        assert_eq!(
            found,
            [
                ("k.cu:8", 3, 48.0),
                ("k.cu:7", 3, 16.0),
                ("k.cu:7", 1, 32.0)
            ]
        );
        let screen = report.screen();
        assert!(screen.contains("[%d], 2 more"), "{screen}");
    }

    #[test]
    fn what_takes_more_than_it_must_is_listed() {
        let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n\
            .reg .b32 %r<3>;\n.reg .b64 %d;\nld.param.u64 %d, [p];\nld.global.u32 %r1, [%d];\n\
            st.shared.u32 [%r1], %r1;\nst.global.u32 [%d], %r1;\nret;\n}\n";
        let module = Module::parse("k.ptx", text).0;
        let (id, _) = module.kernels().next().unwrap();
        let pattern = |taken, least| Pattern {
            requests: 2,
            taken,
            least,
        };
        let global = |taken, least| Patterns {
            global: pattern(taken, least),
            ..Patterns::default()
        };
        let shared = Patterns {
            shared: pattern(4, 2),
            ..Patterns::default()
        };
        let all = [
            count(id, 1, [2, 64], global(10, 8)),
            count(id, 2, [2, 64], shared),
            count(id, 3, [2, 64], global(64, 8)),
        ];
        let report = AccessReport::new(&module, id, &all, "size `small`").unwrap();
        let total = |taken, least| Some(Total { taken, least });
        assert_eq!(
            (report.sectors, report.passes),
            (total(74, 16), total(4, 2))
        );
        let found: Vec<(Memory, f64, f64)> = (report.places.iter())
            .map(|p| (p.memory, p.taken, p.least))
            .collect();
        assert_eq!(
            found,
            [(Memory::Global, 32.0, 4.0), (Memory::Shared, 2.0, 1.0)]
        );
        assert_eq!(
            report.summary,
            "accesses of a warp (counted at size `small`) take 4.6 times the sectors of global memory that their bytes \
             need, 2.0 times the passes over shared memory that their bytes need; predicted cycles do not know of that"
        );
        assert!(
            report.screen().contains("st.global.u32"),
            "{}",
            report.screen()
        );
        assert_eq!(AccessReport::new(&module, id, &[], ""), None);
    }
}
