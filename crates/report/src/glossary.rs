//! Words that the terminal and the page use, explained once: `warpwright explain-term WORD`.

use warpwright_pass::names::nearest;
use warpwright_pass::pass::Registered;
use warpwright_pass::passes::PASSES;

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
        "ABI",
        &["calling convention"],
        "The rules by which machine code calls a function: which registers hold arguments, where the stack is. Kernels \
         that call functions so keep their spills where they are.",
    ),
    term(
        "active lanes",
        &[
            "lanes",
            "divergence",
            "diverge",
            "fullest address",
            "not in that",
        ],
        "How many of a warp's 32 threads take part in its instructions. Branches that part them leave the others idle. Lanes \
         of one atomic operation that go to one address take turns. `explain` counts both at a launch, and beside them the \
         accesses that the predicted time takes to be in order (not in that).",
    ),
    term(
        "bank conflict",
        &["bank", "passes", "passes over shared memory"],
        "Shared memory has 32 banks of 4 bytes. Lanes of a warp that read different words of one bank in one access \
         wait for each other. Spill slots are laid out so that they never do. `explain` counts passes over the banks, \
         and what the same bytes need side by side.",
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
            "atomics",
            "latency bound",
            "issue bound",
            "traffic bound",
        ],
        "What the predicted time consists of: `issue` (the busiest execution unit or the issue slots), `latency` (too \
         few resident warps to hide waiting), `traffic` (bytes to memory, spills included), or, where a launch was counted, \
         `atomics` (operations that wait for each other: on one line of global memory those of all blocks, on one bank of \
         shared memory those of a warp).",
    ),
    term(
        "budget",
        &["reference seconds"],
        "How much work `opt` spends on one kernel, in reference seconds: steps are counted, each with the time that a \
         reference machine takes for it, and not the clock's, so that the result is the same on every machine (--budget).",
    ),
    term(
        "candidate",
        &[
            "recipe",
            "variant",
            "choice",
            "chosen",
            "not chosen",
            "same-code",
        ],
        "One way to build a kernel (a variant), written as its recipe: the passes in order, such as `maxnreg(64); spill-to-shared`. \
         `opt --recipe TEXT` carries it out again, to the same bytes. The choice is the one that is written; the others \
         are not chosen (`same-code`: the same machine code as an earlier one).",
    ),
    term(
        "contention",
        &["cache contention", "contended"],
        "How much longer a kernel takes because resident blocks evict each other's lines from the first-level cache (a contended kernel), \
         as estimated from its PTX.",
    ),
    term(
        "CRAT",
        &[],
        "A paper (MICRO 2015) that chooses registers and resident blocks together: the staircase of design points, and TPSC \
         to compare them.",
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
        "The build that is there already (`now`): the cubin as given, or what ptxas makes without any option. It is always \
         a candidate and wins ties: then it is `kept`.",
    ),
    term(
        "design point",
        &["design space"],
        "A stair of the occupancy staircase that CRAT (MICRO 2015) would try: the most registers at a number of blocks.",
    ),
    term(
        "drop-in",
        &[
            "warpwright-ptxas",
            "policy",
            "safe",
            "recorded",
            "WARPWRIGHT_PTXAS_RECIPES",
        ],
        "A program in the place of ptxas in other people's builds (docs/dropin.md). Its policy, WARPWRIGHT_PTXAS, is `off`, \
         `recorded` (winners of the store) or `safe` (what the model promises, without the launch, of a few builds; with \
         WARPWRIGHT_PTXAS_RECIPES='NAME=RECIPE | …' what `opt` chose, proved). A choice that rests on --block wants \
         __launch_bounds__ in the source: what calls ptxas does not say how kernels are launched.",
    ),
    term(
        "dynamic shared memory",
        &["dynamic-smem"],
        "Shared memory whose size the launch states. Code does not say how much; --dynamic-smem or a launch \
         description does.",
    ),
    term(
        "equal",
        &["equal here"],
        "`check --run` has run both kernels on the same inputs, and what they wrote is the same. Other inputs may differ, so \
         the verdict stays `undecided`.",
    ),
    term(
        "equal-but-for-nans",
        &[],
        "A verdict on a rewrite, below `proved-at-launches`: the same bits for every input at the launches tried, but for \
         what stands in a NaN.",
    ),
    term(
        "equal-up-to-rounding",
        &["up to rounding"],
        "A verdict on a rewrite, below `equal-but-for-nans`: over the real numbers both compute the same for every input \
         at the launches tried. Rounding, NaN, infinities, overflow, underflow and the sign of zeros may differ; bounds of the error stand \
         beside it where they are known. `check --accept` names the least verdict that is good enough.",
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
        "guess",
        &["guessed"],
        "A number that neither code nor launch description states. `launch` marks it, and screens name it beside what goes \
         by it.",
    ),
    term(
        "hazard",
        &["hazards"],
        "Where machine code reads a result before the hardware has it: a wait or a stall is missing. `warpwright sass hazards` \
         looks for them.",
    ),
    term(
        "launch description",
        &["launch"],
        "A TOML file that says how a kernel is launched and on what data (docs/launch.md). `warpwright launch` writes \
         the start of one.",
    ),
    term(
        "listing",
        &["lp", "cyc%"],
        "Source, PTX and machine code of a kernel on the page (`--report`). Beside each instruction stand its number, the \
         registers in use there (the bar, full at the peak), the loops around it, and its percentage of a warp's cycles.",
    ),
    term(
        "live range",
        &["live", "live over"],
        "The instructions over which a value must be kept. Registers are needed for all values live at once.",
    ),
    term(
        "liveness",
        &[],
        "Which values are still needed at an instruction. `warpwright sass liveness` compares what we find with nvdisasm.",
    ),
    term(
        "local memory",
        &["local", "local array", "stack"],
        "Memory of one thread, in device memory behind the caches. Spilled registers go there.",
    ),
    term(
        "margin",
        &["promise"],
        "The share of time that a change must promise to save before the default is given up, because the model errs: \
         5%; 6% for a version for the launch that is known, beside the original; 15% where one thing is traded for another (more spilling for more warps); 30% where no block more would fit \
         beside those of the launch; 40% where blocks are only kept out.",
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
        "naive kernel",
        &["naive"],
        "A kernel in which each thread computes outputs of its own, one or a row of them, without the others. `opt X.cu -o Y.cu` writes such a kernel and \
         stencils anew in CUDA C.",
    ),
    term(
        "occupancy",
        &["occ", "warps/SM"],
        "Resident warps over the most that an SM can hold. More warps hide latency; what they cost is registers and \
         cache.",
    ),
    term(
        "OptTLP",
        &["TLP", "thread-level parallelism", "above OptTLP"],
        "The number of resident blocks at which a kernel is fastest: above it blocks only fight for the cache. \
         Estimated from the PTX.",
    ),
    term(
        "output elements",
        &[],
        "Elements of the buffers that are compared of two kernels, at a launch of each.",
    ),
    term(
        "own launch",
        &["the code's own launch", "seen"],
        "A launch of the kernel in its own file, with a block that is a number. Occupancy and prediction go by it. It \
         promises nothing of other launches: no bound is derived from it, and `--block` states what holds for all.",
    ),
    term(
        "prediction",
        &["predicted", "time", "model"],
        "Time over the default's, from the machine code and the resident warps, without running anything. Only such \
         ratios mean anything. `warpwright tune` measures.",
    ),
    term(
        "proved",
        &[
            "proof",
            "checker",
            "verdict",
            "refuted",
            "undecided",
            "byte-for-byte",
        ],
        "The independent checker has shown that the new code computes what the original does, for all inputs \
         (docs/checker.md says under which assumptions). `refuted`: it found where they differ. `undecided`: neither.",
    ),
    term(
        "proved-at-launches",
        &["at launches"],
        "A verdict on a rewrite, below `proved`: the same bits for every input, at the launches that were tried. Of other \
         sizes it says nothing.",
    ),
    term(
        "PTX",
        &[],
        "NVIDIA's assembly language for a virtual machine with unlimited registers. ptxas turns it into machine code.",
    ),
    term(
        "race",
        &["--races"],
        "Two warps access the same shared memory, one of them writes, and no barrier stands between: what is read depends on \
         who is first. `run --races` stops at one; it does not look at global memory, nor at the lanes of one warp.",
    ),
    term(
        "RegDem",
        &["register demotion"],
        "A paper (2019) that moves registers to shared memory in finished machine code; `demote` and `spill-to-shared` do.",
    ),
    term(
        "register limit",
        &["maxrregcount", "limit", "registers up to"],
        "The most registers that ptxas may give a thread. Fewer registers let more warps reside, but values that do \
         not fit are spilled.",
    ),
    term(
        "register pressure",
        &["pressure", "units", "peak", "peak at", "MAXLIVE"],
        "How many 32-bit registers are needed at an instruction, for all values live there.",
    ),
    term(
        "registers",
        &["register", "regs"],
        "Where a thread keeps its values, 32 bits in each. All threads that reside on an SM share its registers, so \
         fewer for each let more of them reside.",
    ),
    term(
        "regret",
        &[],
        "Time of what was chosen over that of the best measured candidate: 1.00 is a perfect choice.",
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
        "rewrite",
        &["rewritten", "rewritten version"],
        "A kernel that computes the same by other code and may be launched in another way. `check A B --launch-a a.toml \
         --launch-b b.toml` compares both, each at its own launches.",
    ),
    term(
        "SASS",
        &["machine code"],
        "The machine code of an NVIDIA GPU, with the stall counts and scoreboards that ptxas sets.",
    ),
    term(
        "schedule",
        &["plan", "family", "version", "seed"],
        "How a stencil or a naive kernel is written anew: its tile, how much a thread computes, in which direction it \
         streams. A family is one way of doing that. Of machine code: a pass that puts instructions into another order; \
         `seed` numbers orders that promise nothing and are only measured.",
    ),
    term(
        "scoreboard",
        &["stall count", "stall"],
        "How machine code waits: a stall count is a number of cycles to the next instruction, a scoreboard is what a \
         later instruction waits for until a load has arrived.",
    ),
    term(
        "sector",
        &["coalescing", "coalesced", "takes", "needs", "of all"],
        "Global memory is moved in sectors of 32 bytes. Lanes of a warp that read neighbouring words share sectors \
         (coalesced); lanes far apart take one each, and most of its bytes are thrown away. `explain` counts them at a \
         launch.",
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
        &["spill bytes", "in smem"],
        "Bytes per thread stored to and loaded from spill slots, counted once for each instruction, not by loops. \
         Those whose slots a pass moved to shared memory stand by themselves.",
    ),
    term(
        "staircase",
        &["stair", "occupancy staircase"],
        "Occupancy falls in steps as a thread takes more registers. A stair is a number of resident blocks; its right \
         end is the most registers at which they still reside.",
    ),
    term(
        "standing",
        &["imported", "trusted"],
        "Why a winner in the store may be launched: measured here, proved here against the program's own module, or trusted \
         by `db import --trust`. One that is imported is not used until `db verify` or the next `tune` has proved it.",
    ),
    term(
        "stencil",
        &["points", "UF"],
        "A computation in which each output point is made of its neighbours (its points) in the input. UF is how many \
         outputs a thread computes at once (docs/stencils.md).",
    ),
    term(
        "term",
        &["terms"],
        "A value as a formula over the inputs of a kernel: where both kernels make the same of an element of the output, they \
         agree for every input.",
    ),
    term(
        "tested",
        &[],
        "The least verdict on a rewrite that is not `refuted`: the same on the inputs that were tried, and nothing is \
         shown of others.",
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
        "trade",
        &["is_trade", "risk"],
        "A candidate that gives one thing for another, such as more spilling for more warps. The model is less sure of it \
         (its risk), so it must promise more: see margin.",
    ),
    term(
        "tune",
        &["tuning"],
        "`warpwright tune` measures the likely candidates on your GPU, compares their outputs, and keeps what is faster.",
    ),
    term(
        "unlike anything measured",
        &["may be slower"],
        "Where a launch is known, a model learned from measured kernels says how likely a candidate is slower. One whose \
         numbers lie outside all that was measured is not chosen; `tune` measures it.",
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
    term(
        "wrong-input",
        &[],
        "A verdict on a rewrite that is none: the original is at fault at a launch, or the descriptions do not fit each \
         other.",
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
    let is_one_of_many = |term: &&Term| {
        let mut spellings = term.also.iter().chain([&term.word]);
        spellings.any(|spelling| format!("{}s", plain(spelling)) == wanted)
    };
    let found = TERMS.iter().find(is_it);
    if let Some(term) = found.or_else(|| TERMS.iter().find(is_one_of_many)) {
        let also = match term.also {
            [] => String::new(),
            also => format!(" (Also: {}.)", also.join(", ")),
        };
        return Some((term.word.to_owned(), format!("{}{also}", term.text)));
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

/// The words nearest to one that is not there, by all their spellings.
pub fn near(word: &str) -> Vec<&'static str> {
    let passes = PASSES.iter().map(|pass| pass.name);
    let terms = TERMS
        .iter()
        .flat_map(|term| term.also.iter().chain([&term.word]));
    nearest(word, terms.copied().chain(passes))
}

/// Words of the glossary and passes, for a message.
pub fn words() -> Vec<&'static str> {
    let passes = PASSES.iter().map(|pass| pass.name);
    let is_term = |name: &&str| TERMS.iter().any(|term| term.word == *name);
    let passes = passes.filter(|name| !is_term(name));
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
        assert_eq!(explain("sectors").unwrap().0, "sector");
        assert_eq!(explain("local arrays").unwrap().0, "local memory");
        assert_eq!(explain("nonsense"), None);
        assert_eq!(explain(""), None);
    }

    #[test]
    fn an_entry_has_the_word_that_was_asked_for() {
        for term in TERMS {
            for spelling in term.also.iter().chain([&term.word]) {
                let (word, text) = explain(spelling).unwrap();
                assert!(format!("{word} {text}").contains(spelling), "{spelling}");
            }
        }
        assert_eq!(near("regrett"), ["regret"]);
        assert!(near("xyzzy").is_empty());
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
