//! What ptxas says about kernels, made true of other code: hosts judge a build by its spills, and throw it away
//! when standard error says that registers are spilled.
//!
//! The lines are those of ptxas 13.0 and 13.5 (`-v`, `--warn-on-spills`, `--warn-on-local-memory-usage`).

/// What is true of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its symbol.
    pub kernel: String,
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Bytes of local memory per thread.
    pub frame: u32,
    /// Bytes stored to and loaded from spill slots per thread.
    pub spills: (u32, u32),
    /// Static shared memory in bytes per block.
    pub shared: u32,
}

impl Facts {
    /// Of a function that needs no memory of its own.
    pub fn of_nothing(function: String) -> Facts {
        Facts {
            kernel: function,
            registers: 0,
            frame: 0,
            spills: (0, 0),
            shared: 0,
        }
    }
}

/// The text with the lines about these kernels changed.
pub fn about(said: &str, kernels: &[Facts]) -> String {
    let of = |name: &str| kernels.iter().find(|facts| facts.kernel == name);
    let mut out = String::with_capacity(said.len());
    // Whose properties come in the next line, and whose `Used` line comes later.
    let (mut properties, mut compiling): (Option<&Facts>, Option<&Facts>) = (None, None);
    for line in said.split_inclusive('\n') {
        let text = line.trim_end_matches('\n');
        if let Some(facts) = properties.take() {
            let (stores, loads) = facts.spills;
            let frame = facts.frame;
            out.push_str(&format!(
                "    {frame} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads\n"
            ));
            continue;
        }
        if let Some(name) = text.strip_prefix("ptxas info    : Function properties for ") {
            properties = of(name);
        } else if let Some(rest) = text.strip_prefix("ptxas info    : Compiling entry function '") {
            compiling = rest.split('\'').next().and_then(of);
        } else if let (Some(facts), Some(rest)) =
            (compiling, text.strip_prefix("ptxas info    : Used "))
        {
            out.push_str(&used(rest, facts));
            compiling = None;
            continue;
        } else if let Some((facts, is_spill)) = warning(text).and_then(|(n, s)| Some((of(n)?, s))) {
            let (stores, loads) = facts.spills;
            let name = &facts.kernel;
            if is_spill && stores + loads > 0 {
                out.push_str(&format!(
                    "ptxas warning : Registers are spilled to local memory in function '{name}', {stores} bytes \
                     spill stores, {loads} bytes spill loads\n"
                ));
            } else if !is_spill && facts.frame > 0 {
                let frame = facts.frame;
                out.push_str(&format!(
                    "ptxas warning : Local memory used for function '{name}', size of stack frame: {frame} bytes\n"
                ));
            }
            continue;
        }
        out.push_str(line);
    }
    out
}

/// The function that a warning of spills or of local memory is about, and which of the two it is.
fn warning(text: &str) -> Option<(&str, bool)> {
    let spilled = "ptxas warning : Registers are spilled to local memory in function '";
    let local = "ptxas warning : Local memory used for function '";
    let (rest, is_spill) = match text.strip_prefix(spilled) {
        Some(rest) => (rest, true),
        None => (text.strip_prefix(local)?, false),
    };
    Some((rest.split('\'').next()?, is_spill))
}

/// `Used 40 registers, used 1 barriers, 304 bytes cumulative stack size, 1024 bytes smem, 400 bytes cmem[0]`
fn used(rest: &str, facts: &Facts) -> String {
    let is_kept = |item: &&str| {
        !item.ends_with(" registers")
            && !item.ends_with(" bytes smem")
            && !item.ends_with(" cumulative stack size")
    };
    let mut items = vec![format!("{} registers", facts.registers)];
    let (barriers, others): (Vec<&str>, Vec<&str>) = rest
        .split(", ")
        .filter(is_kept)
        .partition(|item| item.ends_with(" barriers"));
    items.extend(barriers.iter().map(ToString::to_string));
    if facts.frame > 0 {
        items.push(format!("{} bytes cumulative stack size", facts.frame));
    }
    if facts.shared > 0 {
        items.push(format!("{} bytes smem", facts.shared));
    }
    items.extend(others.iter().map(ToString::to_string));
    format!("ptxas info    : Used {}\n", items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
ptxas warning : Local memory used for function 'k', size of stack frame: 304 bytes
ptxas warning : Registers are spilled to local memory in function 'k', 300 bytes spill stores, 300 bytes spill loads
ptxas warning : Local memory used for function 'other', size of stack frame: 8 bytes
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    304 bytes stack frame, 300 bytes spill stores, 300 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 304 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 40.504 ms
ptxas info    : Compiling entry function 'other' for 'sm_90'
ptxas info    : Function properties for other
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
";

    fn facts(frame: u32, spills: (u32, u32)) -> Facts {
        Facts {
            kernel: "k".into(),
            registers: 42,
            frame,
            spills,
            shared: 20_480,
        }
    }

    #[test]
    fn nothing_changed_is_nothing_said() {
        assert_eq!(about(SAID, &[]), SAID);
        assert_eq!(about("no newline", &[facts(0, (0, 0))]), "no newline");
    }

    #[test]
    fn spills_that_are_gone_are_not_reported() {
        let told = about(SAID, &[facts(0, (0, 0))]);
        assert!(!told.contains("function 'k', "), "{told}");
        assert!(told.contains(
            "for k\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        ));
        assert!(told.contains("Used 42 registers, used 1 barriers, 20480 bytes smem\n"));
        assert!(told.ends_with(&SAID[SAID.find("ptxas info    : Compile time").unwrap_or(0)..]));
    }

    #[test]
    fn spills_that_are_left_are() {
        let told = about(SAID, &[facts(16, (8, 12))]);
        assert!(
            told.contains("function 'k', 8 bytes spill stores, 12 bytes spill loads\n"),
            "{told}"
        );
        assert!(told.contains("'k', size of stack frame: 16 bytes\n"));
        assert!(
            told.contains("used 1 barriers, 16 bytes cumulative stack size, 20480 bytes smem\n")
        );
    }
}
