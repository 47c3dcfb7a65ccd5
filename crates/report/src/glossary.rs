//! Words that the terminal and the page use, explained once: `warpwright explain-term WORD`.

use warpwright_pass::pass::Registered;
use warpwright_pass::registry::PASSES;

/// A word of ours or of the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// The word, as it is printed.
    pub word: &'static str,
    /// Other spellings that lead to it.
    pub also: &'static [&'static str],
    /// What it means.
    pub text: &'static str,
}

const fn term(word: &'static str, also: &'static [&'static str], text: &'static str) -> Term {
    Term { word, also, text }
}

/// All of them, in the order of the alphabet.
pub const TERMS: &[Term] = &[
    term(
        "bank conflict",
        &["bank"],
        "Shared memory has 32 banks of 4 bytes. Lanes of a warp that read different words of one bank in one access \
         wait for each other. Spill slots are laid out so that they never do.",
    ),
    term(
        "block",
        &["thread block", "CTA"],
        "Threads that start together on one SM and share its shared memory. A block resides as a whole or not at all.",
    ),
    term(
        "block bound",
        &[".reqntid"],
        "A promise in the code: a block has exactly so many threads (.reqntid), or at most so many (.maxntid, which is \
         __launch_bounds__ in CUDA C). Other launches fail.",
    ),
    term(
        "bound",
        &[
            "bound by",
            "latency",
            "issue",
            "traffic",
            "latency bound",
            "issue bound",
            "traffic bound",
        ],
        "What the predicted time consists of: `issue` (the busiest execution unit or the issue slots), `latency` (too \
         few resident warps to hide waiting), or `traffic` (bytes to memory, spills included).",
    ),
    term(
        "budget",
        &[],
        "How much work `opt` spends on one kernel, counted in steps and not in clock time, so that the result is the \
         same on every machine (--budget).",
    ),
    term(
        "candidate",
        &["recipe", "variant", "choice", "chosen"],
        "One way to build a kernel, written as its recipe: the passes in order, such as `maxnreg(64); spill-to-shared`. \
         `opt --recipe TEXT` carries it out again, to the same bytes.",
    ),
    term(
        "contention",
        &["cache contention"],
        "How much longer a kernel takes because resident blocks evict each other's lines from the first-level cache, \
         as estimated from its PTX.",
    ),
    term(
        "cubin",
        &[],
        "Finished machine code for one architecture, as ptxas writes it. cuModuleLoad takes it.",
    ),
    term(
        "cycles",
        &[
            "where the cycles go",
            "fixed latency",
            "unit",
            "branch",
            "other scoreboards",
        ],
        "Where a warp's cycles go, predicted as if it ran alone: `issue` of its instructions, an execution `unit` that \
         is busy, `fixed latency` of arithmetic, memory (`global`, `shared`, `local`), `barrier`, `branch`, or another \
         `scoreboard`.",
    ),
    term(
        "default",
        &["now", "kept"],
        "The build that is there already: the cubin as given, or what ptxas makes without any option. It is always a \
         candidate and wins ties.",
    ),
    term(
        "design point",
        &["design space"],
        "A stair of the occupancy staircase that CRAT (MICRO 2015) would try: the most registers at a number of blocks.",
    ),
    term(
        "dynamic shared memory",
        &["dynamic-smem"],
        "Shared memory whose size the launch states. Code does not say how much; --dynamic-smem or a launch \
         description does.",
    ),
    term(
        "fusion",
        &["fused", "-fmad"],
        "ptxas makes one instruction of a multiplication and an addition, which rounds once and not twice. Where the \
         text around them changes it may fuse others than before, and the last bits differ: such builds (`reduce`, \
         `allocate`) are chosen only where `tune` has compared the outputs, or where the code was compiled with \
         -fmad=false.",
    ),
    term(
        "grid",
        &["launches"],
        "The blocks of one launch, in up to three directions.",
    ),
    term(
        "launch description",
        &["launch"],
        "A TOML file that says how a kernel is launched and on what data (docs/launch.md). `warpwright launch` writes \
         the start of one.",
    ),
    term(
        "live range",
        &["live", "live over"],
        "The instructions over which a value must be kept. Registers are needed for all values live at once.",
    ),
    term(
        "local memory",
        &["local", "stack"],
        "Memory of one thread, in device memory behind the caches. Spilled registers go there.",
    ),
    term(
        "margin",
        &["promise"],
        "The share of time that a change must promise to save before the default is given up: 5%, and 15% where one \
         thing is traded for another (more spilling for more warps), because the model errs.",
    ),
    term(
        "MaxReg",
        &["MinReg", "MaxTLP", "ShmSize"],
        "CRAT's numbers of a kernel: MaxReg is the highest register pressure of its PTX, MinReg the registers of an \
         SM over its threads, MaxTLP the most blocks that can reside, ShmSize its shared memory.",
    ),
    term(
        "measured",
        &["ratio", "faster"],
        "Time on a GPU over the default's in the same run, with outputs compared. Less is faster.",
    ),
    term(
        "occupancy",
        &["occ"],
        "Resident warps over the most that an SM can hold. More warps hide latency; what they cost is registers and \
         cache.",
    ),
    term(
        "OptTLP",
        &["TLP", "thread-level parallelism"],
        "The number of resident blocks at which a kernel is fastest: above it blocks only fight for the cache. \
         Estimated from the PTX.",
    ),
    term(
        "prediction",
        &["predicted", "time", "model"],
        "Time over the default's, from the machine code and the resident warps, without running anything. Only such \
         ratios mean anything. `warpwright tune` measures.",
    ),
    term(
        "proved",
        &["proof", "checker", "verdict", "refuted", "undecided"],
        "The independent checker has shown that the new code computes what the original does, for all inputs \
         (docs/checker.md says under which assumptions). `refuted`: it found where they differ. `undecided`: neither.",
    ),
    term(
        "PTX",
        &[],
        "NVIDIA's assembly language for a virtual machine with unlimited registers. ptxas turns it into machine code.",
    ),
    term(
        "register limit",
        &["maxrregcount", "limit", "registers up to"],
        "The most registers that ptxas may give a thread. Fewer registers let more warps reside, but values that do \
         not fit are spilled.",
    ),
    term(
        "register pressure",
        &["pressure", "units", "peak", "peak at"],
        "How many 32-bit registers are needed at an instruction, for all values live there.",
    ),
    term(
        "registers",
        &["register", "regs"],
        "Where a thread keeps its values, 32 bits in each. All threads that reside on an SM share its registers, so \
         fewer for each let more of them reside.",
    ),
    term(
        "resident",
        &[
            "residency",
            "resident warps",
            "resident blocks",
            "warps",
            "blocks",
            "limited by",
            "threads",
            "barriers",
        ],
        "On an SM at one time. Registers, shared memory, threads and a fixed number of blocks each set a limit; the \
         smallest one counts.",
    ),
    term(
        "SASS",
        &["machine code"],
        "The machine code of an NVIDIA GPU, with the stall counts and scoreboards that ptxas sets.",
    ),
    term(
        "schedule",
        &["plan", "family", "version"],
        "How a stencil or a naive kernel is written anew: its tile, how much a thread computes, in which direction it \
         streams. A family is one way of doing that.",
    ),
    term(
        "scoreboard",
        &["stall count", "stall"],
        "How machine code waits: a stall count is a number of cycles to the next instruction, a scoreboard is what a \
         later instruction waits for until a load has arrived.",
    ),
    term(
        "shared memory",
        &["smem", "shared", "shared bytes"],
        "Fast memory of a block on the SM. It is the same memory as the first-level cache.",
    ),
    term(
        "SM",
        &["multiprocessor"],
        "A streaming multiprocessor: the part of a GPU on which blocks reside, with its registers and shared memory.",
    ),
    term(
        "spill",
        &["spills", "spilled", "spill slot"],
        "A value that found no register is stored to memory and loaded again. Slots are in local memory, or in shared \
         memory where a pass moved them.",
    ),
    term(
        "spill traffic",
        &["spill bytes"],
        "Bytes per thread stored to and loaded from spill slots, counted once for each instruction, not by loops.",
    ),
    term(
        "staircase",
        &["stair", "occupancy staircase"],
        "Occupancy falls in steps as a thread takes more registers. A stair is a number of resident blocks; its right \
         end is the most registers at which they still reside.",
    ),
    term(
        "TPSC",
        &[],
        "CRAT's measure of a candidate: gain by more threads times cost of spilling. Shown for comparison; it decides \
         nothing.",
    ),
    term(
        "trace",
        &[],
        "What `warpwright trace -- PROGRAM` saw: kernels, their launches and times. --trace gives other commands the \
         block sizes.",
    ),
    term(
        "warp",
        &["lane"],
        "32 threads that execute one instruction together.",
    ),
    term(
        "winner",
        &["winners", "store"],
        "A faster version of a kernel that `tune -- PROGRAM` proved and measured twice. The store keeps it; \
         `warpwright with` and the drop-in for ptxas use it.",
    ),
];

/// The explanation of a word: of the glossary, else of a pass. Case, hyphens and arguments in parentheses do not
/// count.
pub fn explain(word: &str) -> Option<(String, String)> {
    let wanted = plain(word);
    let is_it = |term: &&Term| {
        let mut spellings = term.also.iter().chain([&term.word]);
        spellings.any(|spelling| plain(spelling) == wanted)
    };
    if let Some(term) = TERMS.iter().find(is_it) {
        return Some((term.word.to_owned(), term.text.to_owned()));
    }
    // Names of files and tables have numbers behind the pass (`maxnreg-64`, `spill-to-shared-x4`, `level-10`).
    let numbers = |c: char| c.is_ascii_digit() || c == 'x' || c == '-';
    let label = plain(word.trim_end_matches(numbers));
    let is_it = |pass: &&Registered| {
        let name = plain(pass.name);
        name == wanted || name == label || (label == "level" && pass.name == "usage-level")
    };
    let mut passes = PASSES.iter();
    let pass = passes.find(is_it)?;
    let text = format!(
        "A pass: {}. `warpwright pass --list` has its options.",
        pass.about
    );
    Some((pass.name.to_owned(), text))
}

/// Words of the glossary and passes, for a message.
pub fn words() -> Vec<&'static str> {
    let passes = PASSES.iter().map(|pass| pass.name);
    TERMS.iter().map(|term| term.word).chain(passes).collect()
}

fn plain(word: &str) -> String {
    let word = word.split('(').next().unwrap_or(word);
    let letters = word.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_however_they_are_written() {
        for word in [
            "occ.",
            "Occupancy",
            "opt-tlp",
            "OptTLP",
            "smem",
            "spill traffic",
        ] {
            assert!(explain(word).is_some(), "{word}");
        }
        assert_eq!(
            explain("spill-to-shared(blocks=4)").unwrap().0,
            "spill-to-shared"
        );
        assert_eq!(explain("level-10").unwrap().0, "usage-level");
        assert_eq!(explain("spill-to-shared-x4").unwrap().0, "spill-to-shared");
        assert_eq!(explain("nonsense"), None);
        assert_eq!(explain(""), None);
    }

    #[test]
    fn no_word_is_explained_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for term in TERMS {
            for spelling in term.also.iter().chain([&term.word]) {
                assert!(seen.insert(plain(spelling)), "{spelling}");
            }
        }
        let sorted = TERMS.is_sorted_by_key(|term| term.word.to_lowercase());
        assert!(sorted, "the words are in alphabetical order");
    }
}
