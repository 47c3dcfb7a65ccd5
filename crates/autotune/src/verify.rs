//! Winners from elsewhere: their recipe is carried out on the program's own module, proved, and must give the same code.
//! What is kept then is the code that was made here.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};
use std::{fmt, io};

use warpwright_api::Error;
use warpwright_api::front::{parse, target, verified};
use warpwright_api::optimise::workshop;
use warpwright_api::trace::Trace;
use warpwright_driver::build::Bench;
use warpwright_launch::Quantity;
use warpwright_pass::schedule::Schedule;
use warpwright_pass::{Artifact, Fuel, Invocation, Level, Recipe, Scope};
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, Toolkit};
use warpwright_winners::fit::Original;
use warpwright_winners::{Kept, Standing, Store, Winner, identities};

use crate::candidates::Code;

/// What the proof of one winner may take, and of all: whoever wrote an export is trusted with no time either.
const LONGEST: Duration = Duration::from_secs(60);
const LONGEST_OF_ALL: Duration = Duration::from_secs(180);
/// Orders that a recipe may search among: more is only a way to take time.
const MOST_ORDERS: u32 = 4096;
/// Bytes of stack that a proof may need.
const STACK: usize = 64 << 20;

/// Why a winner from elsewhere is not used.
#[derive(Debug)]
pub enum Unproved {
    /// No module of the program has its kernel.
    Absent,
    /// Its launches become others.
    Shape,
    /// Its recipe is none.
    Recipe(String),
    /// Its recipe gives other code.
    Code,
    /// Its recipe is right at fewer launches than it is used for.
    Guard(String),
    /// Its recipe is for launches of another shape.
    Reshaped(String),
    /// Its recipe cannot be carried out or proved.
    Made(String),
    /// What it gives may not stand in the kernel's place.
    Unfit(String),
    /// To carry it out and to prove it takes long.
    Long,
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unproved::Absent => f.write_str("no module of the program has its kernel"),
            Unproved::Shape => {
                f.write_str("its launches become others, and only `tune` can prove that")
            }
            Unproved::Recipe(why) => write!(f, "its recipe is none: {why}"),
            Unproved::Code => f.write_str("its recipe does not give its code here"),
            Unproved::Guard(needed) => write!(
                f,
                "its recipe is right at launches of {needed} alone, and it says that it is used at others"
            ),
            Unproved::Reshaped(shape) => {
                write!(f, "its recipe is for launches in the shape {shape}")
            }
            Unproved::Long => f.write_str("its proof takes too long"),
            Unproved::Made(why) | Unproved::Unfit(why) => f.write_str(why),
        }
    }
}

/// What became of one.
pub struct Verdict {
    /// Its symbol.
    pub symbol: String,
    /// It is used now, or a better one is; or why it is not.
    pub outcome: Result<Kept, Unproved>,
}

/// Looks at all winners of a store that came from elsewhere, for the kernels of a program that was traced; `modules` is the
/// folder of its code.
///
/// # Errors
/// [`Error::Store`], [`Error::Gpu`].
pub fn verify(
    toolkit: Option<&Toolkit>,
    store: &Store,
    trace: &Trace,
    modules: &Path,
) -> Result<Vec<Verdict>, Error> {
    let waiting = store.all()?.into_iter().filter_map(|entry| {
        let winner = entry.winner.ok()?;
        let waits = winner.standing == Standing::Imported;
        waits.then_some((entry.path, winner))
    });
    let Some(facts) = &trace.gpu else {
        return Ok(Vec::new());
    };
    let on_gpu = |(_, winner): &(_, Winner)| winner.gpu == facts.name;
    let waiting: Vec<_> = waiting.filter(on_gpu).collect();
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let gpu = warpwright_target::lookup(&format!("sm_{}", facts.sm))?;
    let code = Arc::new(read_modules(modules));
    let mut verdicts = Vec::new();
    let begun = Instant::now();
    for (path, winner) in waiting {
        let left = LONGEST_OF_ALL.saturating_sub(begun.elapsed());
        let (one, code, toolkit) = (winner.clone(), code.clone(), toolkit.cloned());
        let work = move || proved(&one, &code, toolkit.as_ref(), &gpu);
        let outcome = match within(LONGEST.min(left), work) {
            Ok(done) => done.unwrap_or(Err(Unproved::Long)),
            Err(e) => Err(Unproved::Made(format!("no thread can be started: {e}"))),
        };
        let outcome = match outcome {
            Ok(own) => Ok(store.promote(&path, &own)?),
            Err(why) => Err(why),
        };
        let symbol = winner.symbol;
        verdicts.push(Verdict { symbol, outcome });
    }
    Ok(verdicts)
}

/// Work that is given up where it takes longer. Then its thread goes on until the process ends.
fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let (give, given) = channel();
    let worker = Builder::new().stack_size(STACK);
    let worker = worker.spawn(move || drop(give.send(work())))?;
    match given.recv_timeout(limit) {
        Ok(done) => Ok(Some(done)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => match worker.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => Ok(None),
        },
    }
}

/// Does a recipe search among more orders than it may?
fn is_endless(recipe: &Recipe) -> bool {
    let mut schedules = recipe
        .passes()
        .iter()
        .filter_map(Invocation::get::<Schedule>);
    schedules.any(|schedule| schedule.search > MOST_ORDERS)
}

fn read_modules(folder: &Path) -> Vec<Code> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "cubin"));
    paths.sort();
    paths
        .iter()
        .filter_map(|path| Code::at(path).ok())
        .collect()
}

/// The winner with code that was made and proved here.
fn proved(
    winner: &Winner,
    modules: &[Code],
    toolkit: Option<&Toolkit>,
    gpu: &Gpu,
) -> Result<Winner, Unproved> {
    if !winner.shape.is_same() {
        return Err(Unproved::Shape);
    }
    let recipe: Recipe = winner
        .recipe
        .parse()
        .map_err(|e: warpwright_pass::RecipeError| Unproved::Recipe(e.to_string()))?;
    if is_endless(&recipe) {
        return Err(Unproved::Long);
    }
    let wanted = digest(&winner.cubin, &winner.symbol).ok_or(Unproved::Code)?;
    let mut why = Unproved::Absent;
    for module in modules {
        let kernels = identities(&module.cubin).unwrap_or_default();
        let own = kernels.iter().find(|k| k.digest == winner.kernel);
        let Some(kernel) = own.map(|k| &k.name) else {
            continue;
        };
        for source in [module.ptx.as_deref().zip(toolkit).map(Some), Some(None)] {
            let Some(source) = source else { continue };
            match made(winner, (kernel, &recipe), module, source, gpu) {
                Ok((cubin, _)) if digest(&cubin, kernel).as_ref() != Some(&wanted) => {
                    why = Unproved::Code;
                }
                Ok((cubin, proof)) => return fitting(winner, module, kernel, (cubin, proof)),
                Err(error) if matches!(why, Unproved::Absent) => why = error,
                Err(_) => {}
            }
        }
    }
    Err(why)
}

fn digest(cubin: &[u8], kernel: &str) -> Option<String> {
    let all = identities(cubin).ok()?;
    all.into_iter().find(|k| k.name == kernel).map(|k| k.digest)
}

fn fitting(
    winner: &Winner,
    module: &Code,
    kernel: &str,
    (cubin, proof): (Vec<u8>, String),
) -> Result<Winner, Unproved> {
    let unfit = |e: &dyn std::fmt::Display| Unproved::Unfit(e.to_string());
    let own = Winner {
        symbol: kernel.to_owned(),
        cubin,
        proof,
        standing: Standing::Proved,
        ..winner.clone()
    };
    let original = Original::new(&module.cubin).map_err(|e| unfit(&e))?;
    original.fits(kernel, &own).map_err(|e| unfit(&e))?;
    Ok(own)
}

/// Carries a recipe out on a module, its PTX or its machine code, and proves it.
fn made(
    winner: &Winner,
    (kernel, recipe): (&String, &Recipe),
    module: &Code,
    ptx: Option<(&str, &Toolkit)>,
    gpu: &Gpu,
) -> Result<(Vec<u8>, String), Unproved> {
    let failed = |e: &dyn std::fmt::Display| Unproved::Made(e.to_string());
    let cache = BuildCache::standard();
    let (artifact, gpu) = match ptx {
        Some((text, _)) => {
            let parsed = parse(kernel, text).map_err(|_| failed(&"its PTX cannot be read"))?;
            let gpu =
                target(&parsed, Some(*gpu)).map_err(|_| failed(&"its PTX is for another GPU"))?;
            let artifact = verified(parsed).map_err(|_| failed(&"its PTX is not valid"))?;
            (artifact, gpu)
        }
        None => {
            let artifact = Artifact::cubin(module.cubin.clone()).map_err(|e| failed(&e))?;
            (artifact, *gpu)
        }
    };
    let arch = gpu.target();
    let workshop = ptx.map(|(_, toolkit)| workshop(toolkit, &cache, &arch, &artifact));
    let scope = Scope {
        gpu: Some(gpu),
        kernels: std::slice::from_ref(kernel),
        block: winner.guard.exact(Quantity::Block),
        dynamic_smem: winner
            .guard
            .value(Quantity::DynamicShared)
            .and_then(|bytes| bytes.try_into().ok()),
        ..Scope::default()
    };
    let setting = scope
        .setting(&artifact, kernel, &gpu)
        .map_err(|e| failed(&e))?;
    let bench = Bench {
        workshop: workshop.as_ref(),
        start: &artifact,
        kernel,
        setting,
        fuel: Fuel::default(),
    };
    let (run, _) = bench
        .run(None, recipe, Level::MachineCode)
        .map_err(|e| failed(&e))?;
    let needed = run.guard();
    if !needed.covers(&winner.guard) {
        return Err(Unproved::Guard(needed.to_string()));
    }
    if !run.shape().is_same() {
        return Err(Unproved::Reshaped(run.shape().to_string()));
    }
    if let Some(caution) = run.cautions().into_iter().find(|c| c.wants_measurement()) {
        return Err(failed(&format!("only a trial can tell, since {caution}")));
    }
    let proved = run.prove().map_err(|e| failed(&e))?;
    if !proved.promises.is_empty() {
        return Err(failed(&"its proof rests on what launches promise"));
    }
    let rung = proved.rungs.last().map(|(rung, _)| rung.to_string());
    let cubin = proved
        .artifact()
        .as_cubin()
        .map(|cubin| cubin.bytes().to_vec());
    let of = if ptx.is_some() { "PTX" } else { "machine code" };
    let proof = format!("{of}: {}", rung.unwrap_or_else(|| "unchanged".into()));
    Ok((cubin.ok_or(Unproved::Code)?, proof))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use warpwright_toolkit::PtxasJob;
    use warpwright_toolkit::testing::require_toolkit;

    use super::*;

    const PTX: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry count(.param .u64 p, .param .u32 n)
{
    .reg .b64 %d<3>; .reg .b32 %r<5>; .reg .pred %p;
    ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r1, %r2, %r3, %r1;
    setp.ge.u32 %p, %r1, %r0; @%p ret;
    mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %d0, %d1;
    mul.lo.u32 %r4, %r1, %r0; st.global.u32 [%d2], %r4; ret;
}
";

    #[test]
    fn a_winner_is_used_where_its_recipe_is_right_and_nowhere_else() {
        let Some(toolkit) = require_toolkit("winners from elsewhere") else {
            return;
        };
        let gpu = warpwright_target::lookup("sm_90").unwrap();
        let job = PtxasJob::new(PTX, "sm_90");
        let ptxas = toolkit.ptxas().unwrap();
        let cubin = BuildCache::standard().ptxas(&ptxas, &job).unwrap().cubin;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("m.cubin"), &*cubin).unwrap();
        std::fs::write(folder.path().join("m.ptx"), PTX).unwrap();
        let module = Code::at(&folder.path().join("m.cubin")).unwrap();
        assert!(module.ptx.is_some());
        let kernel = identities(&cubin).unwrap().remove(0);
        let mut winner = Winner {
            kernel: kernel.digest.clone(),
            gpu: "a GPU".into(),
            guard: "param1:4=500".parse().unwrap(),
            shape: warpwright_launch::Shape::SAME,
            symbol: "count".into(),
            recipe: String::new(),
            proof: "proved".into(),
            original_ns: 2,
            winner_ns: 1,
            driver: "13000".into(),
            date: "2026-11-30".into(),
            standing: Standing::Imported,
            cubin: Vec::new(),
        };
        let text = "specialize(params=n=500)";
        let uses = [
            ("param1:4=500", true),
            ("param1:4=500; grid=7,1,1", true),
            ("always", false),
            ("param1:4>=400; param1:4<=500", false),
            ("param1:4=501", false),
        ];
        for (guard, is_right) in uses {
            let recipe: Recipe = text.parse().unwrap();
            winner.recipe = text.to_owned();
            winner.guard = "param1:4=500".parse().unwrap();
            let ptx = module.ptx.as_deref().unwrap();
            let code = made(
                &winner,
                (&kernel.name, &recipe),
                &module,
                Some((ptx, &toolkit)),
                &gpu,
            );
            winner.cubin = code.unwrap().0;
            winner.guard = guard.parse().unwrap();
            let found = proved(&winner, std::slice::from_ref(&module), Some(&toolkit), &gpu);
            match found {
                Ok(own) => assert!(is_right && own.standing == Standing::Proved, "{guard}"),
                Err(why) => assert!(
                    !is_right && matches!(why, Unproved::Guard(_)),
                    "{guard}: {why}"
                ),
            }
        }
    }

    #[test]
    fn work_has_an_end() {
        let short = Duration::from_millis(20);
        assert_eq!(within(LONGEST, || 7).unwrap(), Some(7));
        let endless = || {
            loop {
                std::thread::park();
            }
        };
        assert_eq!(within::<()>(short, endless).unwrap(), None);
        let panics = std::panic::catch_unwind(|| {
            within(LONGEST, || panic!("wanted")).map(|_: Option<()>| ())
        });
        assert!(panics.is_err());
    }

    #[test]
    fn recipes_search_among_so_many() {
        let is_endless = |text: &str| is_endless(&text.parse().unwrap());
        assert!(!is_endless("schedule(search=4096)"));
        assert!(is_endless("schedule(search=4097)"));
        assert!(is_endless(
            "maxnreg(64); schedule(margin=0, search=1000000000)"
        ));
        assert!(!is_endless("maxnreg(64)"));
    }
}
