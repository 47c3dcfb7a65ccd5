//! `warpwright opt` for a naive kernel: the input with tuned kernels in it, in CUDA C. No GPU is needed; what is written
//! was compared with the input in the PTX emulator, which needs nvcc.

use warpwright::source::naive::{Document, Documents, Found, Left, rewrite};
use warpwright::source::sizes::OwnSizes;
use warpwright::source::{Tools, target};

use super::stencil_opt::{decided, request, write, written};
use crate::args::{Floating, OptArgs, StencilArgs};
use crate::failure::Failure;
use crate::input::Input;
use warpwright_diag::count;
use warpwright_report::screen::{dropped, wrap};
use warpwright_report::table::Table;

/// Only its pragma lets a naive kernel's sums be reordered: the text says so wherever it goes.
pub fn refuse_reassociate(args: &StencilArgs) -> Result<(), Failure> {
    match args.fp {
        Some(Floating::Reassociate) => Err(Failure::Usage(
            "--fp reassociate is for stencils, and has no effect on naive kernels: `#pragma warpwright naive reassociate` \
             in front of a kernel lets its sums be reordered"
                .into(),
        )),
        _ => Ok(()),
    }
}

/// Runs the command.
pub fn run(
    tools: &Tools<'_>,
    args: &OptArgs,
    input: &Input,
    found: (Vec<Found>, Vec<Left>),
    own: &OwnSizes,
) -> Result<(), Failure> {
    if found.0.len() > 1 && args.show.report.is_some() {
        let what = "--report shows one kernel: --kernel NAME names it";
        return Err(Failure::Usage(what.to_owned()));
    }
    let gpu = target(args.kernel.gpu.as_deref())?;
    let all = rewrite(tools, &request(args, &gpu, own), input, found)?;
    write(args, &all.text)?;
    if let [document] = &all.kernels[..] {
        super::write_page(args.show.report.as_deref(), document)?;
    }
    match (args.show.json, &all.kernels[..]) {
        (true, [document]) => super::print_json(document)?,
        (true, _) => super::print_json(&Documents {
            schema: "warpwright.naive-opts/1",
            input: input.name.clone(),
            kernels: all.kernels,
            output: super::opt::written_to(args),
        })?,
        (false, documents) => {
            for (number, document) in documents.iter().enumerate() {
                if number > 0 {
                    println!();
                }
                print(document);
            }
            if let Some(output) = super::opt::written_to(args) {
                println!("{}", written(&output, all.text != input.text()?));
            }
        }
    }
    decided(args, all.is_checked)
}

fn print(document: &Document) {
    let title = format!(
        "naive kernel {}{} for {}: each thread computes outputs of its own; no stencil: {}",
        document.kernel,
        document.instance.as_deref().unwrap_or_default(),
        document.gpu,
        document.no_stencil
    );
    println!("{}\n", wrap(&title, "", "  ").join("\n"));
    for access in &document.accesses {
        println!("{}", wrap(access, "  ", "    ").join("\n"));
    }
    println!();
    let mut table = Table::new(&["", "schedule", "predicted ms", "bound by", "note"]);
    for (at, row) in document.versions.iter().enumerate() {
        table.row(vec![
            if document.chosen == Some(at) { "*" } else { "" }.into(),
            row.schedule.clone(),
            format!("{:.4}", row.predicted_ms),
            row.bound.into(),
            row.rejected.as_ref().map_or("", |_| "dropped").to_owned(),
        ]);
    }
    let original = document
        .original_ms
        .map_or("–".into(), |ms| format!("{ms:.4}"));
    let mark = if document.chosen.is_none() { "*" } else { "" };
    table.row(vec![
        mark.into(),
        "as written".into(),
        original,
        String::new(),
        String::new(),
    ]);
    print!("{}", table.render_within(1));
    let at = document.sizes.at();
    if !at.is_empty() {
        println!(
            "{}",
            wrap(&format!("predicted{at}"), "    ", "      ").join("\n")
        );
    }
    println!();
    let all = document.versions.iter();
    let why = all.filter_map(|row| Some((&*row.schedule, row.rejected.as_deref()?)));
    print!("{}", dropped(why));
    if document.chosen.is_none() {
        let all = &document.versions;
        println!(
            "stays as it is: {}",
            match all.is_empty() {
                true => "no schedule is predicted to gain enough",
                false if all.iter().all(|row| row.rejected.is_some()) =>
                    "all schedules that were tried were dropped",
                false => "no other schedule is predicted to gain enough",
            }
        );
    }
    for step in &document.steps {
        println!("{}", wrap(step, "", "  ").join("\n"));
    }
    let again = document.sizes.options();
    if !document.recipe_text.is_empty() && !again.is_empty() {
        let text = format!("once more: --recipe '{}'{again}", document.recipe_text);
        println!("{}", wrap(&text, "", "  ").join("\n"));
    }
    if let Some(checked) = &document.checked {
        let how = match document.reordered {
            false => "to the bit",
            true => {
                "within 1e-5 (float) or 1e-13 (double) of the largest value, sums reordered as its pragma or its atomics permit"
            }
        };
        let text = format!(
            "agrees with the input in the emulator {how}, without races in shared memory: {} at {}{}{}",
            checked.kernels.join(", "),
            count(checked.sizes.len(), "launch"),
            super::for_every_input(checked.proved, checked.compared),
            match checked.shrunk {
                true => ", the file's constants made small",
                false => "",
            }
        );
        println!("{}", wrap(&text, "", "").join("\n"));
    }
    if let Some(why) = &document.unchecked {
        let text = format!("NOT CHECKED against the input: {why}");
        println!("{}", wrap(&text, "", "  ").join("\n"));
    }
    for left in &document.uses {
        println!("{}", wrap(left, "", "").join("\n"));
    }
    if let Some(launches) = document.launches {
        println!("launches rewritten: {launches}");
    }
    for Left { kernel, reason } in &document.left {
        let text = format!("{kernel} stays as written: {reason}");
        println!("{}", wrap(&text, "", "  ").join("\n"));
    }
}
