//! A pass on a module, and everything that must hold of what it writes.

use warpwright_check::{Options as CheckOptions, check_modules};
use warpwright_driver::context::Context;
use warpwright_driver::passes::find;
use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_flow::{Cfg, EntityRef as _, Function as _, LiveSet, Liveness, Pressure};
use warpwright_launch::Launch;
use warpwright_ptx::{FuncId, Module, Reg, verify};

/// The highest register pressure of a kernel.
pub fn pressure(module: &Module, kernel: FuncId) -> u32 {
    let view = module.view(kernel).expect("a body");
    let cfg = Cfg::new(&view);
    let liveness = Liveness::new(&view, &cfg);
    Pressure::new(&view, &cfg, &liveness).max()
}

/// Runs a pass and proves what it wrote: it parses, the verifier accepts it, the checker proves it.
/// Returns the new module, or the note of a pass that changed nothing.
pub fn apply(pass: &str, module: &Module, context: &Context) -> Result<Module, String> {
    let pass = find(pass).ok_or("no such pass")?;
    let output = pass.run(module, context).map_err(|e| e.to_string())?;
    if output.text == *module.source {
        return Err(output.notes.join("; "));
    }
    let (new, diagnostics) = Module::parse(&module.name, &output.text);
    let errors = diagnostics.iter().filter(|d| d.is_error());
    let errors: String = errors.map(|d| d.render(&new)).collect();
    assert!(errors.is_empty(), "{errors}");
    if let Err(errors) = verify(&new) {
        let errors: String = errors.iter().map(|d| d.render(&new)).collect();
        panic!("{errors}\n{}", new.source);
    }
    let options = CheckOptions {
        block: context.block.or(context.launch.map(|launch| launch.block)),
    };
    for (name, verdict) in check_modules(module, &new, &options) {
        assert!(verdict.is_proved(), "`{name}`: {verdict}\n{}", new.source);
    }
    Ok(new)
}

/// What a kernel leaves in its buffers, under the emulator's strict options.
pub fn emulate(module: &Module, launch: &Launch, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let program = Emulator::new(module, &launch.kernel).expect("a kernel for the emulator");
    let options = Options {
        uninitialised: true,
        races: true,
        ..Options::default()
    };
    match program.run(launch, inputs.to_vec(), &options) {
        Ok(Outcome::Finished(results)) => results.buffers,
        Ok(Outcome::Faulted(fault)) => panic!("{fault}\n{}", module.source),
        Err(error) => panic!("{error}"),
    }
}

/// The promise of `allocate`: if each name stands for the registers that it says (`%r5` for number 5,
/// `%rd3` for 6 and 7), values that are live together never share one, and none is beyond the limit.
pub fn assert_assignment(module: &Module, kernel: FuncId, limit: u32) {
    let view = module.view(kernel).expect("a body");
    let body = view.body();
    let cfg = Cfg::new(&view);
    let liveness = Liveness::new(&view, &cfg);
    let mut live = LiveSet::new(view.value_count());
    for block in cfg.blocks() {
        let mut walk = liveness.walk(&view, &cfg, block, &mut live);
        loop {
            let mut owner = vec![None; limit as usize];
            for &value in walk.live().members() {
                let units = view.units(value) as usize;
                let number = body.regs[Reg::new(value.index())]
                    .index()
                    .expect("a number") as usize;
                for unit in &mut owner[number * units..(number + 1) * units] {
                    let other = unit.replace(value);
                    assert_eq!(other, None, "{} shares", view.value_name(value));
                }
            }
            if walk.step().is_none() {
                break;
            }
        }
    }
}
