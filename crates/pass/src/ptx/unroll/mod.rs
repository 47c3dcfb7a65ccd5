//! `unroll`: several iterations of an innermost loop, one behind the other.
//!
//! Goal: loads of several iterations in flight at once, and fewer tests, branches and index arithmetic per iteration.
//! Yang et al. (PLDI 2010, sections 3.5 and 4) merge threads and unroll their loops for reuse; here the loop is finished
//! PTX. Method: the text of the loop is copied (registers of PTX are variables, so copies share them, and ptxas renames
//! them), the copies' own labels get names, and each copy's way back leads to the next copy.
//!
//! Two forms. With `tests=each` a test stands behind every copy: any loop will do, several exits and `continue`
//! included. With `tests=hoisted` one test in front of all copies stands for theirs, and the loop as it was runs the
//! iterations that remain: the loop must be counted (`counted`), with the test at its end as its only exit. ptxas can
//! begin the loads of later copies early in this form alone, since a load behind a test might fault. `tests=auto` takes
//! the second form where it can. A factor of 1 asks ptxas to leave the loops as they are (`.pragma "nounroll"`).
//!
//! Departures: the copies are not scheduled here (ptxas does), and constant trip counts are left to ptxas, which
//! unrolls such loops whole.
//!
//! Requires loops that are entered at their header alone and lie in one piece of the text. Loops in which threads meet
//! (barriers, shuffles) are unrolled with a test in each copy, where all threads go around alike (`uniform`) and the checker
//! proves it; those with calls are left alone. Preserves the order of all accesses of a thread, and what each computes, bit
//! by bit; ptxas may fuse operations of neighbouring iterations ([`fusion`]).

pub(super) mod counted;
pub(super) mod region;
mod uniform;

use std::collections::BTreeSet;

use warpwright_check::{Options, check_functions};
use warpwright_diag::count;
use warpwright_flow::{Cfg, Loops};
use warpwright_ptx::{Diagnostic, Edits, Module, View};

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::ptx::facts::view;
use crate::ptx::fusion;
use crate::refusal::Refusal;
use crate::site::Site;
use counted::Counted;
use region::{Copy, Region};

/// The pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unroll {
    /// Iterations that stand behind each other.
    pub factor: u32,
    /// Where the tests stand.
    pub tests: Tests,
    /// The source line at which a loop's header stands; all loops without it.
    pub line: Option<u32>,
    /// The number of an innermost loop in the order of the text, from 1; all loops without it.
    pub nth: Option<u32>,
}

/// Copies beyond this are code that no instruction cache holds.
const MOST_COPIES: u32 = 64;

crate::options!(Unroll: [factor "iterations behind each other; 1: ptxas is not to unroll" in 1..=MOST_COPIES];
    [tests: Tests = Tests::Auto, "where the tests stand";
     line: Option<u32> = None, "the source line of a loop";
     nth: Option<u32> = None, "an innermost loop by its place in the text, from 1"]);

/// Where the tests of the copies stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tests {
    /// In front of all copies where the loop is counted, else behind each.
    Auto,
    /// Behind each copy.
    Each,
    /// In front of all copies.
    Hoisted,
}

crate::words!(Tests: Tests::Auto = "auto", Tests::Each = "each", Tests::Hoisted = "hoisted");

impl Pass for Unroll {
    const NAME: &'static str = "unroll";
    const ABOUT: &'static str =
        "put several iterations of innermost loops behind each other, with a remainder loop";

    fn work(&self) -> Work<Self> {
        Work::Ptx(unroll)
    }
}

/// Instructions that all copies of a loop may have.
const MOST_INSTRUCTIONS: usize = 20_000;

fn unroll(pass: &Unroll, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    let view = view(site.module, site.kernel)?;
    let cfg = Cfg::new(&view);
    let mut plans = Vec::new();
    let mut why = None;
    for region in chosen(pass, site, &view, &cfg)? {
        match region.and_then(|region| Plan::of(pass, &view, &cfg, region)) {
            Ok(plan) => plans.push(plan),
            Err(refusal) => why = Some(why.unwrap_or(refusal)),
        }
    }
    let planned = plans.len();
    let plans = proved(pass, site, plans)?;
    let left = planned - plans.len();
    if plans.is_empty() {
        return Err(why.unwrap_or(NOT_PROVED));
    }
    let plans: Vec<&Plan<'_>> = plans.iter().filter(|_| fuel.burn()).collect();
    let mut done = Done::default();
    plans.iter().for_each(|plan| done.count(plan));
    let mut rewritten = Rewritten::new(written(pass, site, &plans)?)
        .note(done.note(pass.factor))
        .careful(fusion::caution(site.module).filter(|_| pass.factor > 1));
    if left > 0 {
        let loops = count(left, "loop");
        rewritten = rewritten.note(format!("{loops} left as written: {NOT_PROVED}"));
    }
    Ok(rewritten)
}

const NOT_PROVED: Refusal =
    Refusal::InTheWay("threads meet in its loop, and that they do so in its copies is not proved");

/// The module with these loops unrolled.
fn written(pass: &Unroll, site: &Site, plans: &[&Plan<'_>]) -> Result<String, Refusal> {
    let mut edits = Edits::new(site.module);
    for plan in plans {
        plan.write(pass.factor, site, &mut edits)?;
    }
    Ok(edits.apply()?)
}

/// The plans without the loops in which threads meet and whose copies the checker does not follow: one of them would take
/// the others' proof along.
fn proved<'v>(pass: &Unroll, site: &Site, plans: Vec<Plan<'v>>) -> Result<Vec<Plan<'v>>, Refusal> {
    let (meeting, mut kept): (Vec<_>, Vec<_>) = plans.into_iter().partition(|plan| plan.meets);
    if meeting.is_empty() {
        return Ok(kept);
    }
    let holds = |plans: &[&Plan<'_>]| -> Result<bool, Refusal> {
        Ok(is_proved(site, &written(pass, site, plans)?))
    };
    let all: Vec<&Plan<'_>> = kept.iter().chain(&meeting).collect();
    let all_hold = holds(&all)?;
    for (number, plan) in meeting.into_iter().enumerate() {
        let with: Vec<&Plan<'_>> = kept.iter().chain([&plan]).collect();
        if all_hold || number < MOST_TRIED && holds(&with)? {
            kept.push(plan);
        }
    }
    kept.sort_by_key(|plan| plan.region.span().start);
    Ok(kept)
}

/// Loops that are tried one by one.
const MOST_TRIED: usize = 8;

/// Does the checker prove the text of the module with the kernel rewritten?
fn is_proved(site: &Site, text: &str) -> bool {
    let (new, diagnostics) = Module::parse(&site.module.name, text);
    let Some(kernel) = new.function(&site.function().name) else {
        return false;
    };
    let options = Options {
        block: site.setting.block.stated(),
        ..Options::default()
    };
    !diagnostics.iter().any(Diagnostic::is_error)
        && check_functions((site.module, site.kernel), (&new, kernel), &options).is_proved()
}

/// The innermost loops that the options name, in the order of the text.
fn chosen<'v>(
    pass: &Unroll,
    site: &Site,
    view: &'v View<'v>,
    cfg: &Cfg,
) -> Result<Vec<Result<Region<'v>, Refusal>>, Refusal> {
    let loops = Loops::new(cfg);
    let outer: BTreeSet<_> = loops.iter().filter_map(|of| loops.parent(of)).collect();
    let mut innermost: Vec<_> = loops
        .iter()
        .filter(|of| !outer.contains(of) && !loops.waits(cfg, *of))
        .collect();
    innermost.sort_by_key(|&of| cfg.first_inst(loops.header(of)));
    let line_of = |of| {
        let first = cfg.first_inst(loops.header(of));
        let first = warpwright_ptx::Inst::from_u32(first.0);
        site.module.own_line(site.kernel, first).map(|at| at.1)
    };
    let wanted = innermost.into_iter().zip(1..).filter(|&(of, number)| {
        pass.nth.is_none_or(|nth| nth == number)
            && pass.line.is_none_or(|line| line_of(of) == Some(line))
    });
    let found: Vec<_> = wanted
        .map(|(of, _)| Region::new(view, cfg, &loops, of))
        .collect();
    match found.is_empty() {
        true => Err(Refusal::NothingToDo("innermost loop that is asked for")),
        false => Ok(found),
    }
}

/// What will be done to a loop.
struct Plan<'v> {
    region: Region<'v>,
    form: Form,
    /// Do threads meet in it?
    meets: bool,
}

enum Form {
    /// ptxas is told to leave it.
    Left,
    Each,
    Hoisted(Counted),
}

impl<'v> Plan<'v> {
    fn of(
        pass: &Unroll,
        view: &View<'_>,
        cfg: &Cfg,
        region: Region<'v>,
    ) -> Result<Plan<'v>, Refusal> {
        if pass.factor == 1 {
            return Ok(Plan {
                region,
                form: Form::Left,
                meets: false,
            });
        }
        let meets = region.may_be_copied()?;
        if region.len() * pass.factor as usize > MOST_INSTRUCTIONS {
            return Err(Refusal::InTheWay("its loop is too long for so many copies"));
        }
        let counted = match pass.tests {
            Tests::Each => None,
            Tests::Hoisted if meets => {
                return Err(Refusal::InTheWay(
                    "threads meet in its loop between the tests",
                ));
            }
            Tests::Auto if meets => None,
            Tests::Hoisted => Some(Counted::new(view, cfg, &region, pass.factor)?),
            Tests::Auto => Counted::new(view, cfg, &region, pass.factor).ok(),
        };
        let form = counted.map_or(Form::Each, Form::Hoisted);
        Ok(Plan {
            region,
            form,
            meets,
        })
    }

    fn write(&self, factor: u32, site: &Site, edits: &mut Edits<'_>) -> Result<(), Refusal> {
        let region = &self.region;
        let text = match &self.form {
            Form::Left => region.left_alone(),
            Form::Each => self.each(factor, edits),
            Form::Hoisted(counted) => {
                let rest = edits.fresh_name("$L_unrolled_");
                let test = counted.test(site.kernel, &rest, edits)?;
                self.hoisted(factor, &rest, &test, edits)
            }
        };
        edits.replace(region.span(), text);
        Ok(())
    }

    /// Copies with a test behind each.
    fn each(&self, factor: u32, edits: &mut Edits<'_>) -> String {
        let region = &self.region;
        let exit = edits.fresh_name("$L_unrolled_");
        let headers = self.headers(factor, edits);
        let mut text = region.begin();
        for copy in 0..factor as usize {
            let is_last = copy + 1 == factor as usize;
            if copy > 0 {
                text += &format!("\n{}:\n", headers[copy]);
            }
            text += &region.copy(&Copy {
                suffix: (copy > 0).then(|| edits.fresh_name("_u")),
                header: &headers[(copy + 1) % headers.len()],
                exit: (!is_last).then_some(&*exit),
                is_tested: true,
            });
        }
        text + &format!("\n{exit}:")
    }

    /// A test in front of copies without any, and the loop as it was for what remains.
    fn hoisted(&self, factor: u32, rest: &str, test: &[String], edits: &mut Edits<'_>) -> String {
        let region = &self.region;
        let exit = edits.fresh_name("$L_unrolled_");
        let header = region.header();
        let mut text = region.begin();
        for line in test {
            text += &format!("\t{line}\n");
        }
        for copy in 0..factor {
            let is_last = copy + 1 == factor;
            text += &region.copy(&Copy {
                suffix: Some(edits.fresh_name("_u")),
                header,
                exit: None,
                is_tested: is_last,
            });
            text += "\n";
        }
        text += &format!("\tbra.uni {exit};\n{rest}:\n\t.pragma \"nounroll\";\n");
        text += &region.copy(&Copy {
            suffix: None,
            header: rest,
            exit: None,
            is_tested: true,
        });
        text + &format!("\n{exit}:")
    }

    /// The labels of the copies: the first has the loop's own.
    fn headers(&self, factor: u32, edits: &mut Edits<'_>) -> Vec<String> {
        let own = self.region.header().to_owned();
        let others = (1..factor).map(|_| edits.fresh_name("$L_unrolled_"));
        std::iter::once(own).chain(others).collect()
    }
}

/// What was done.
#[derive(Default)]
struct Done {
    loops: usize,
    hoisted: usize,
}

impl Done {
    fn count(&mut self, plan: &Plan<'_>) {
        self.loops += 1;
        self.hoisted += usize::from(matches!(plan.form, Form::Hoisted(_)));
    }

    fn note(&self, factor: u32) -> String {
        let loops = count(self.loops, "loop");
        match factor {
            1 => format!("{loops} left as written"),
            _ => format!(
                "{loops} unrolled by {factor}, {} with tests in front",
                self.hoisted
            ),
        }
    }
}
