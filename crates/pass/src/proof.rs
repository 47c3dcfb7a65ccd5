//! What stands behind a rewritten kernel: a proof, or the rung of the ladder that stands in for it.

use std::fmt;

use serde::{Deserialize, Serialize};
use warpwright_check::{
    Answer, Cause, CubinOptions, Options, Promises, Verdict, answer, check_functions, check_modules,
};
use warpwright_launch::{Guard, Shape};
use warpwright_ptx::Module;
use warpwright_ptx::syntax::{Kind, Tile};
use warpwright_sass::Elf;
use warpwright_target::{EditedCode, ran_right};

use crate::artifact::Artifact;
use crate::budget::{PROOF_OF_MACHINE_CODE, PROOF_OF_PTX};
use crate::launch::Block;
use crate::pass::{Level, Timing};
use crate::recipe::Invocation;
use crate::site::Setting;

/// Why a new version is a correct one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// Nothing was changed.
    Unchanged,
    /// It is the same code: only comments, layout or tuning directives differ.
    SameCode,
    /// The independent checker proved it.
    Proved,
    /// The checker proved it of the PTX that nvcc makes of both versions.
    ProvedAsPtx,
    /// No proof covers it: the emulator computed the same with both versions, at odd and tiny sizes.
    Emulated,
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rung::Unchanged => "unchanged",
            Rung::SameCode => "the same code",
            Rung::Proved => "proved",
            Rung::ProvedAsPtx => "proved as PTX",
            Rung::Emulated => "the same in the emulator",
        })
    }
}

/// What a proof takes for granted about launches, in words.
pub fn rests_on(promises: &Promises) -> String {
    // Passes of machine code write a bound for a block that only the caller states.
    let others = match promises.block {
        Some(_) => "others of as many threads or fewer",
        None => "others",
    };
    format!("proved for launches of {promises}; nothing refuses {others}")
}

/// A rewrite that no proof stands behind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pass} is not proved: {verdict}")]
pub struct NotProved {
    /// The pass.
    pub pass: Invocation,
    /// What the checker says, of the first function that it does not prove.
    pub verdict: Box<Verdict>,
}

/// What has to be proved: that one pass kept the meaning.
#[derive(Debug, Clone)]
pub struct Obligation {
    pub(crate) pass: Invocation,
    pub(crate) before: Artifact,
    pub(crate) after: Artifact,
    /// `None`: of every function of the module.
    pub(crate) kernel: Option<String>,
    pub(crate) block: Option<[u32; 3]>,
    pub(crate) dynamic_smem: Option<u32>,
    /// What is assumed of launches, one proof for each.
    pub(crate) cases: Vec<Guard>,
    /// What launches become for the new version.
    pub(crate) shape: Shape,
}

impl Obligation {
    pub(crate) fn new(
        pass: &Invocation,
        before: &Artifact,
        after: &Artifact,
        kernel: Option<&str>,
        setting: &Setting,
    ) -> Obligation {
        Obligation {
            block: match before.as_cubin() {
                Some(cubin) => promised(cubin.elf(), kernel, &setting.block),
                None => setting.block.stated(),
            },
            pass: pass.clone(),
            before: before.clone(),
            after: after.clone(),
            kernel: kernel.map(str::to_owned),
            dynamic_smem: setting.dynamic_smem,
            cases: vec![Guard::always()],
            shape: Shape::SAME,
        }
    }

    /// The same for the launches of a guard, in one proof for those of `cases` and others for the rest. Cases that
    /// cannot be told apart are one.
    pub(crate) fn under(mut self, guard: &Guard, cases: &Guard) -> Obligation {
        self.cases = match cases.complement() {
            None => vec![guard.clone()],
            Some(rest) => {
                let split = [cases.clone()].into_iter().chain(rest);
                split.map(|case| guard.and(&case)).collect()
            }
        };
        self
    }

    /// The same where the new version is launched in another shape.
    pub(crate) fn shaped(mut self, shape: Shape) -> Obligation {
        self.shape = shape;
        self
    }

    /// What the proof takes, in nominal microseconds.
    pub fn work(&self) -> u64 {
        let versions = [&self.before, &self.after];
        if let [Some(before), Some(after)] = versions.map(Artifact::as_module) {
            return match self.shape.is_same() && is_same_code(before, after) {
                true => 0,
                false => {
                    let all = [before, after].map(|module| self.instructions(module));
                    PROOF_OF_PTX * (all[0] + all[1]) * self.cases.len() as u64
                }
            };
        }
        let code = versions.map(|artifact| {
            let kernel = artifact.as_cubin()?.kernel(self.kernel.as_deref()?)?;
            Some(&kernel.code)
        });
        match code {
            [Some(before), Some(after)] if before == after => 0,
            [Some(before), Some(after)] => {
                PROOF_OF_MACHINE_CODE * (before.len() + after.len()) as u64
            }
            _ => 0,
        }
    }

    fn instructions(&self, module: &Module) -> u64 {
        let functions = module.functions.values();
        let wanted = functions.filter(|f| self.kernel.as_ref().is_none_or(|k| *f.name == **k));
        wanted
            .filter_map(|f| f.body.as_ref())
            .map(|body| body.insts.len() as u64)
            .sum()
    }

    /// Proves it; says, too, what must hold of launches for the proof to be one, though nothing refuses others.
    ///
    /// # Errors
    /// [`NotProved`], with what the checker says.
    pub fn prove(&self) -> Result<(Rung, Promises), NotProved> {
        let nothing = Promises::default();
        let (verdict, promises) = match (self.before.as_module(), self.after.as_module()) {
            (Some(before), Some(after)) if self.shape.is_same() && is_same_code(before, after) => {
                return Ok((Rung::SameCode, nothing));
            }
            (Some(before), Some(after)) => self.check_ptx(before, after),
            _ => self.check_machine_code(),
        };
        match verdict {
            Verdict::Proved if !self.is_confirmed() => Err(NotProved {
                pass: self.pass.clone(),
                verdict: Box::new(undecided(
                    "the registers are right; no device confirms control fields that were made anew",
                )),
            }),
            Verdict::Proved if self.pass.level() == Level::Source => {
                Ok((Rung::ProvedAsPtx, promises))
            }
            Verdict::Proved => Ok((Rung::Proved, promises)),
            verdict => Err(NotProved {
                pass: self.pass.clone(),
                verdict: Box::new(verdict),
            }),
        }
    }

    /// Did code with such control fields run right?
    fn is_confirmed(&self) -> bool {
        match self.pass.timing() {
            Timing::Kept => true,
            Timing::Mended | Timing::Anew => {
                let sm = self.after.as_cubin().map(|cubin| cubin.view().sm);
                sm.is_some_and(|sm| ran_right(EditedCode::ControlFields, sm))
            }
        }
    }

    fn check_ptx(&self, before: &Module, after: &Module) -> (Verdict, Promises) {
        let free = self.check_cases(before, after, None);
        // How much dynamic memory a launch has is a promise only where the proof needs it.
        match (free.cause(), self.dynamic_smem) {
            (Some(Cause::DynamicSharedMemory), Some(_)) => {
                let promised = self.check_cases(before, after, self.dynamic_smem);
                let promises = Promises {
                    dynamic_smem: self.dynamic_smem,
                    ..Promises::default()
                };
                (promised, promises)
            }
            _ => (free, Promises::default()),
        }
    }

    /// The first case that is not proved, or that all are.
    fn check_cases(&self, before: &Module, after: &Module, dynamic_smem: Option<u32>) -> Verdict {
        let cases = self.cases.iter().filter(|case| !case.is_never());
        let mut open = cases
            .map(|case| self.check_case(before, after, case, dynamic_smem))
            .filter(|verdict| !verdict.is_proved());
        open.next().unwrap_or(Verdict::Proved)
    }

    fn check_case(
        &self,
        before: &Module,
        after: &Module,
        case: &Guard,
        dynamic_smem: Option<u32>,
    ) -> Verdict {
        let options = Options {
            block: self.block.filter(|_| case.is_always()),
            dynamic_smem,
            shape: self.shape,
            assume: match self.block {
                Some(block) if !case.is_always() => case.clone().block(block),
                _ => case.clone(),
            },
        };
        if options.assume.is_never() {
            return Verdict::Proved; // No launch is like that.
        }
        let Some(kernel) = &self.kernel else {
            let verdicts = check_modules(before, after, &options).into_iter();
            let mut open = verdicts
                .map(|(_, verdict)| verdict)
                .filter(|v| !v.is_proved());
            return open.next().unwrap_or(Verdict::Proved);
        };
        match (before.function(kernel), after.function(kernel)) {
            (Some(old), Some(new)) => check_functions((before, old), (after, new), &options),
            _ => undecided("the kernel is gone"),
        }
    }

    fn check_machine_code(&self) -> (Verdict, Promises) {
        if !self.shape.is_same() {
            let why = undecided("it is launched in another shape");
            return (why, Promises::default());
        }
        let options = CubinOptions {
            block: self.block,
            dynamic_smem: self.dynamic_smem,
        };
        let versions = [&self.before, &self.after].map(Artifact::as_cubin);
        match (versions, &self.kernel) {
            ([Some(before), Some(after)], Some(kernel)) => {
                let Answer {
                    verdict, promises, ..
                } = answer(before.elf(), after.elf(), kernel, &options);
                (verdict, promises)
            }
            _ => {
                let why = undecided("two cubins and a kernel's name are wanted");
                (why, Promises::default())
            }
        }
    }
}

fn undecided(why: &str) -> Verdict {
    Verdict::Undecided(warpwright_check::Reason::new(
        warpwright_check::Cause::Question,
        why,
    ))
}

/// The block that every launch has, where only the caller says so: a bound is written into the new cubin.
fn promised(elf: &Elf, kernel: Option<&str>, block: &Block) -> Option<[u32; 3]> {
    let bound = || elf.block_bound(&elf.kernel(kernel?).ok()?).ok()?;
    let count = |dims: [u32; 3]| dims.iter().fold(1u32, |all, &n| all.saturating_mul(n));
    let is_tighter = |dims: &[u32; 3]| bound().is_none_or(|bound| count(*dims) < count(bound));
    block.stated().filter(is_tighter)
}

/// Are the two modules the same but for comments, layout, and directives and pragmas that only tell ptxas
/// how to build? (A promise of a block size is a caution of its pass.)
pub(crate) fn is_same_code(before: &Module, after: &Module) -> bool {
    Tokens::new(before).eq(Tokens::new(after))
}

/// The tokens that say what the code does.
struct Tokens<'m> {
    module: &'m Module,
    tiles: std::iter::Peekable<std::slice::Iter<'m, Tile>>,
}

impl<'m> Tokens<'m> {
    fn new(module: &'m Module) -> Self {
        Tokens {
            tiles: module.syntax.tiles.iter().peekable(),
            module,
        }
    }

    /// Skips what stands behind a tuning directive: its numbers, or a pragma's strings.
    fn skip_arguments(&mut self, is_pragma: bool) {
        use Kind::{BlockComment, Comma, LineComment, Number, Semi, Space, Str};
        while let Some(tile) = self.tiles.peek() {
            let is_argument = match tile.kind {
                Space | LineComment | BlockComment | Comma => true,
                Number => !is_pragma,
                Str | Semi => is_pragma,
                _ => false,
            };
            if !is_argument {
                return;
            }
            let is_end = tile.kind == Semi;
            self.tiles.next();
            if is_end {
                return;
            }
        }
    }
}

impl<'m> Iterator for Tokens<'m> {
    type Item = &'m str;

    fn next(&mut self) -> Option<&'m str> {
        const TUNING: [&str; 4] = [".maxnreg", ".maxntid", ".minnctapersm", ".maxnctapersm"];
        loop {
            let tile = self.tiles.next()?;
            let text = tile.span.text(&self.module.source);
            match tile.kind {
                Kind::Space | Kind::LineComment | Kind::BlockComment => {}
                Kind::Dotted if TUNING.contains(&text) => self.skip_arguments(false),
                Kind::Dotted if text == ".pragma" => self.skip_arguments(true),
                _ => return Some(text),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        let head = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n";
        let module = |text: &str| Module::parse("t.ptx", &format!("{head}{text}")).0;
        is_same_code(&module(a), &module(b))
    }

    #[test]
    fn tuning_is_no_code_and_everything_else_is() {
        let plain = "{\n\tret;\n}\n";
        assert!(same(plain, ".maxnreg 64\n{ ret; // done\n}"));
        assert!(same(
            plain,
            ".maxntid 64, 1, 1\n.minnctapersm 3\n{ .pragma \"x\"; ret; }"
        ));
        assert!(!same(plain, ".reqntid 64\n{ ret; }"));
        assert!(!same(plain, "{ exit; }"));
        assert!(!same(plain, "{ ret; ret; }"));
    }
}
