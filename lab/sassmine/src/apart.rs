//! A build that computes something wrong, taken apart: the same code with stricter control fields, everywhere or in a
//! part of it (bench/apart.py). What makes it right says which kind of protection is missing, and where.

use std::collections::BTreeSet;
use std::ops::Range;

use clap::ValueEnum;
use warpwright_flow::Inst;
use warpwright_sass::control::{Control, SCOREBOARDS};
use warpwright_sass::function::Code;
use warpwright_sass::hazards::{self, Kind, Orders};

use crate::Error;
use crate::code::Files;

/// What is made stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Strict {
    /// Every instruction waits for all scoreboards.
    Waits,
    /// Every instruction stalls for long.
    Stalls,
    /// What takes an unknown time has a scoreboard of its own, where the order of a unit would do.
    Scoreboards,
    /// No operand is kept for reuse.
    NoReuse,
}

/// What is written.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    files: Files,
    /// What is made stricter; all of it if nothing is said.
    #[arg(long, value_delimiter = ',')]
    with: Vec<Strict>,
    /// From this part of each function on, 0 to 1.
    #[arg(long, default_value_t = 0.0)]
    from: f64,
    /// Up to this part, 0 to 1.
    #[arg(long, default_value_t = 1.0)]
    to: f64,
}

/// As long as ptxas lets an instruction stall, with the yield bit clear.
const LONG: u8 = 14;

/// Writes the cubin; says of each function which instructions are stricter.
pub fn run(options: &Options) -> Result<String, Error> {
    options.files.rewrite(|code| {
        let count = code.instructions().len();
        let place = |part: f64| (part.clamp(0.0, 1.0) * count as f64) as usize;
        let range = place(options.from)..place(options.to);
        let (from, to) = (range.start * 16, range.end * 16);
        strict(code, range, &options.with)?;
        Ok(format!("stricter from {from:#x} to {to:#x}"))
    })
}

fn strict(code: &mut Code, range: Range<usize>, with: &[Strict]) -> Result<(), String> {
    let has = |what: Strict| with.is_empty() || with.contains(&what);
    let (mut results, mut sources) = (BTreeSet::new(), BTreeSet::new());
    // No order is believed: whatever is late and depended on is found.
    hazards::dependences_with(code, &Orders::default(), |dependence| {
        let earlier = dependence.earlier;
        if earlier.timing.is_late(earlier.span) {
            match dependence.kind {
                Kind::War => sources.insert(earlier.inst),
                Kind::Raw | Kind::Waw => results.insert(earlier.inst),
            };
        }
    })
    .map_err(|error| error.to_string())?;
    for at in range {
        let inst = Inst(at as u32);
        let mut control = code.instructions()[at].control();
        // The padding.
        if control.stall == 0 {
            continue;
        }
        if has(Strict::Waits) {
            control.wait_mask = (1 << SCOREBOARDS) - 1;
        }
        if has(Strict::NoReuse) {
            control.reuse = 0;
        }
        if has(Strict::Stalls) {
            control = Control {
                stall: LONG,
                yield_bit: false,
                reuse: 0,
                ..control
            };
        }
        if has(Strict::Scoreboards) {
            let own = |old: Option<u8>, late: &BTreeSet<Inst>| {
                old.or(late.contains(&inst).then_some(SCOREBOARDS - 1))
            };
            control.write_barrier = own(control.write_barrier, &results);
            control.read_barrier = own(control.read_barrier, &sources);
        }
        code.set_control(inst, control)
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use warpwright_sass::elf::Elf;
    use warpwright_sass::function::Calls;
    use warpwright_sass::hazards::check;
    use warpwright_sass::text;

    use super::*;

    /// What a filetest shows to be wrong is right in time, or with scoreboards of its own that are awaited.
    #[test]
    fn what_is_missing_shows() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../filetests/sass/hazards/wrong-told-too-soon.sass"
        );
        let source = std::fs::read_to_string(path).unwrap();
        let elf = Elf::parse(&text::assemble(&source).unwrap()).unwrap();
        let kernel = &elf.kernels().unwrap()[0];
        let wrong = Code::new(&elf, kernel, Calls::Followed).unwrap();
        let is_right = |with: &[Strict], range: Range<usize>| {
            let mut code = wrong.clone();
            strict(&mut code, range, with).unwrap();
            check(&code).unwrap().is_empty()
        };
        let all = 0..wrong.instructions().len();
        assert!(!is_right(&[Strict::NoReuse], all.clone()));
        assert!(!is_right(&[Strict::Scoreboards], all.clone()));
        assert!(!is_right(&[], 0..0));
        assert!(is_right(&[], all.clone()));
        assert!(is_right(
            &[Strict::Stalls, Strict::Scoreboards, Strict::Waits],
            all
        ));
    }
}
