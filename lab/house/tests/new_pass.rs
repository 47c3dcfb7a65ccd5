//! The pass that docs/adding-a-pass.md shows. It stands in one file and nothing else knows of it: the executor applies it,
//! carries its guard and proves it; the same without the guard is not proved.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use warpwright_launch::{Extent, Guard, Quantity};
use warpwright_pass::pass::Outcome;
use warpwright_pass::{
    Artifact, Builders, Executor, Fuel, Invocation, Level, Pass, Recipe, Refusal, Rewritten, Rung,
    Setting, Site, Target, Work,
};
use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Edits, Operand, Part, SpecialReg};
use warpwright_target::lookup;

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct OneBlock {}

warpwright_pass::options!(OneBlock: []; []);

impl Pass for OneBlock {
    const NAME: &'static str = "one-block";
    const ABOUT: &'static str = "no block's number is read where the grid is one block wide";

    fn work(&self) -> Work<Self> {
        Work::Ptx(fold)
    }
}

fn fold(_: &OneBlock, site: &Site<'_>, fuel: &mut Fuel) -> Outcome<String> {
    let body = site.function().body.as_ref().ok_or(Refusal::NoBody)?;
    let mut edits = Edits::new(site.module);
    for (inst, data) in body.insts.iter() {
        let is_move = site.module.opcode(data).op == Some(Op::Mov) && data.guard.is_none();
        if let [
            Operand::Reg(to),
            Operand::Special {
                reg: SpecialReg::CtaId,
                part: Some(Part::X),
            },
        ] = *body.operands(inst)
            && is_move
            && fuel.burn()
        {
            let line = format!("mov.b32 {}, 0;", body.reg_name(to));
            edits.replace_by_lines(site.kernel, inst, &[line]);
        }
    }
    if edits.is_empty() && fuel.left() > 0 {
        return Err(Refusal::NothingToDo("read of a block's number"));
    }
    let guard = Guard::always().equal(Quantity::Grid(Extent::X), 1);
    Ok(Rewritten::new(edits.apply()?).under(guard))
}

/// The same, which says that it is right for all launches.
#[derive(Debug, Clone, Copy)]
struct Careless {}

warpwright_pass::options!(Careless: []; []);

impl Pass for Careless {
    const NAME: &'static str = "careless";
    const ABOUT: &'static str = "the same without its guard";

    fn work(&self) -> Work<Self> {
        Work::Ptx(|_, site, fuel| Ok(fold(&OneBlock {}, site, fuel)?.under(Guard::always())))
    }
}

const KERNEL: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<5>;\n.reg .b64 %rd<4>;\n\
    ld.param.u64 %rd1, [out];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n\
    mad.lo.u32 %r4, %r1, %r2, %r3;\nmul.wide.u32 %rd2, %r4, 4;\nadd.u64 %rd3, %rd1, %rd2;\n\
    st.global.u32 [%rd3], %r4;\nret;\n}\n";

fn run(pass: impl Into<Invocation>, fuel: Fuel) -> warpwright_pass::Run {
    let gpu = lookup("h200").unwrap();
    let target = Target {
        kernel: Some("k"),
        setting: Setting::new(&gpu),
    };
    let mut executor = Executor::new(Builders::default());
    executor.fuel = fuel;
    let start = Artifact::parse("k.ptx", KERNEL).unwrap();
    let recipe = Recipe::default().with(pass);
    executor.run(&start, &target, &recipe, Level::Ptx).unwrap()
}

#[test]
fn a_pass_is_one_file() {
    let run = run(OneBlock {}, Fuel::default());
    let text = String::from_utf8(run.unproved().bytes().to_vec()).unwrap();
    assert!(
        text.contains("mov.b32 %r1, 0;") && !text.contains("%ctaid"),
        "{text}"
    );
    let proved = run.prove().unwrap();
    assert_eq!(proved.guard.to_string(), "grid.x=1");
    let rungs: Vec<Rung> = proved.rungs.iter().map(|(rung, _)| *rung).collect();
    assert_eq!(rungs, [Rung::Proved]);
}

#[test]
fn without_its_guard_it_is_not_proved() {
    let run = run(Careless {}, Fuel::default());
    assert!(run.guard().is_always());
    run.prove().unwrap_err();
}

#[test]
fn without_fuel_it_changes_nothing() {
    let run = run(OneBlock {}, Fuel::limited(0));
    assert_eq!(run.unproved().bytes(), KERNEL.as_bytes());
}
