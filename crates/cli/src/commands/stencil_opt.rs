//! `warpwright opt` for a stencil: the input with a faster kernel in it, in CUDA C. No GPU is needed; what is written was
//! compared with the input in the PTX emulator, which needs nvcc.

use std::path::Path;

use warpwright::front::architecture;
use warpwright::source::sizes::OwnSizes;
use warpwright::source::stencil::{Documents, Rewrite, rewrite, stencils};
use warpwright::source::{Request, Tools, target};
use warpwright_driver::stencil::Verdict;
use warpwright_report::results::{StencilResult, StencilVersion};
use warpwright_report::screen::{dropped, wrap};
use warpwright_report::table::Table;
use warpwright_stencil::versions::Family;
use warpwright_target::Gpu;

use crate::args::{Floating, OptArgs};
use crate::failure::Failure;
use crate::input::{Input, Level, is_stdout, write_atomically};
use crate::session;

/// Is it source that becomes source: a `.stencil`, or CUDA C that is to stay CUDA C?
pub fn is_wanted(input: &Input, output: Option<&Path>) -> bool {
    let ends_in_cu = output.is_some_and(|path| path.extension().is_some_and(|e| e == "cu"));
    input.level == Level::Stencil || input.level == Level::Cuda && ends_in_cu
}

/// A stencil becomes CUDA C++, and OUT says so.
pub fn refuse_other_levels(output: Option<&Path>) -> Result<(), Failure> {
    match output {
        None => Ok(()),
        Some(output) if is_stdout(output) || output.extension().is_some_and(|e| e == "cu") => {
            Ok(())
        }
        Some(output) => Err(Failure::input(format!(
            "`{}`: a stencil becomes CUDA C++; name OUT.cu (and optimize that once more for a cubin)",
            output.display()
        ))),
    }
}

/// From source to source, options about builds and launches would be dropped without a word.
pub fn refuse_what_has_no_effect(args: &OptArgs) -> Result<(), Failure> {
    let given = [
        ("--emit", args.emit.is_some()),
        ("--keep", args.keep.is_some()),
        ("--block", !args.kernel.block.is_empty()),
        ("--dynamic-smem", args.kernel.dynamic_smem.is_some()),
        (
            "--launch beside --recipe",
            args.kernel.launch.is_some() && args.recipe.is_some(),
        ),
    ];
    match session::first_given(&given) {
        None => Ok(()),
        Some(name) => Err(Failure::Usage(format!(
            "{name} has no effect from source to source (--grid NAME=N or --launch states sizes); without OUT.cu, candidates of \
             a build are tried"
        ))),
    }
}

/// The same with the architecture that options of nvcc name as its GPU; it may not contradict `--gpu`.
pub fn for_one_target(args: &OptArgs) -> Result<OptArgs, Failure> {
    let mut args = args.clone();
    let named = session::named_gpu(args.kernel.gpu.as_deref())?;
    let (stated, nvcc) = architecture(named.as_ref(), &args.nvcc)?;
    args.kernel.gpu = args.kernel.gpu.or(stated);
    args.nvcc = nvcc;
    Ok(args)
}

/// What a command line asks of a rewrite.
pub fn request<'a>(args: &'a OptArgs, gpu: &'a Gpu, own: &'a OwnSizes) -> Request<'a> {
    Request {
        gpu,
        sizes: &args.stencil.sizes,
        own,
        reassociate: args.stencil.fp == Some(Floating::Reassociate),
        fuel: args.fuel,
        output: super::opt::written_to(args),
    }
}

/// Runs the command. `own` are the sizes of the file's launches.
pub fn run(
    tools: &Tools<'_>,
    args: &OptArgs,
    input: &Input,
    own: &dyn Fn() -> Result<OwnSizes, Failure>,
) -> Result<(), Failure> {
    refuse_other_levels(args.output.as_deref())?;
    let names = stencils(tools, input, args.kernel.one()?)?;
    if names.len() != 1 && args.show.report.is_some() {
        let what = "--report shows one stencil: --kernel NAME names it";
        return Err(Failure::Usage(what.to_owned()));
    }
    let (gpu, own) = (target(args.kernel.gpu.as_deref())?, own()?);
    let all = rewrite(tools, &request(args, &gpu, &own), input, &names)?;
    write(args, &all.text)?;
    let output = super::opt::written_to(args);
    if let [only] = &all.kernels[..] {
        super::write_page(args.show.report.as_deref(), &only.document)?;
    }
    match (args.show.json, &all.kernels[..]) {
        (true, [only]) => super::print_json(&only.document)?,
        (true, _) => super::print_json(&Documents {
            schema: "warpwright.stencil-opts/1",
            input: input.name.clone(),
            stencils: all.kernels.into_iter().map(|of| of.document).collect(),
            output,
        })?,
        (false, rewrites) => {
            for of in rewrites {
                print(of, args.all);
                if rewrites.len() > 1 {
                    println!();
                }
            }
            let is_changed = input.level == Level::Stencil || all.text != input.text()?;
            print_written(output.as_deref(), is_changed);
        }
    }
    decided(args, all.is_checked)
}

/// Exit code 5 for what was not checked, unless that was permitted.
pub fn decided(args: &OptArgs, is_checked: bool) -> Result<(), Failure> {
    match is_checked || args.stencil.unchecked {
        true => Ok(()),
        false => Err(Failure::Quiet(5)),
    }
}

/// Writes the text, if it is wanted.
pub fn write(args: &OptArgs, text: &str) -> Result<(), Failure> {
    match &args.output {
        Some(output) => write_atomically(output, text.as_bytes()),
        None => Ok(()),
    }
}

/// Says where the text is, and whether it is another than the input.
pub fn written(output: &str, is_changed: bool) -> String {
    match is_changed {
        true => format!("wrote {output} (CUDA C++)"),
        false => format!("wrote {output} (CUDA C++): the input as it is, nothing was changed"),
    }
}

/// The same on stdout.
pub fn print_written(output: Option<&str>, is_changed: bool) {
    match output {
        Some(output) => println!("{}", written(output, is_changed)),
        None => println!("nothing is written: -o OUT.cu writes it"),
    }
}

fn print(Rewrite { document, verdicts }: &Rewrite, all: bool) {
    let title = format!(
        "stencil {} for {}{}{}",
        document.stencil,
        document.gpu,
        size_text(&document.sizes),
        match document.reassociate {
            true => "",
            false => ", sums stay as written",
        }
    );
    println!("{}\n", wrap(&title, "", "  ").join("\n"));
    let (mut last, mut hidden, mut falls) = (None, 0, Vec::new());
    let mut table = Table::new(&["", "family", "plan", "predicted ms", "note"]);
    for (at, (version, verdict)) in document.versions.iter().zip(verdicts).enumerate() {
        // Of each family the best one stands first.
        let is_best = last.replace(version.family) != Some(version.family);
        if !(all || is_best || at == document.chosen) {
            hidden += 1;
            continue;
        }
        let mark = if at == document.chosen { "*" } else { "" };
        let predicted = version
            .predicted_ms
            .map_or("–".into(), |ms| format!("{ms:.3}"));
        let note = match verdict {
            Verdict::Falls(fall) => {
                falls.push((version.plan.as_str(), fall.to_string()));
                "dropped".to_owned()
            }
            Verdict::Kept if document.unchecked.is_some() => "not checked".to_owned(),
            Verdict::NoGain => "no gain".to_owned(),
            Verdict::Kept | Verdict::NotTried => String::new(),
        };
        table.row(vec![
            mark.into(),
            family(version.family).into(),
            version.plan.clone(),
            predicted,
            note,
        ]);
    }
    print!("{}", table.render_within(1));
    if let Some(launch) = &document.launch {
        let text = format!("sizes of {launch}");
        println!("{}", wrap(&text, "    ", "      ").join("\n"));
    }
    let assumed = document.assumed_sizes.iter();
    let mut assumed: Vec<String> = assumed
        .map(|name| format!("{name} (--grid {name}=N)"))
        .collect();
    if document.block.is_none() {
        assumed.push("the block of the original".to_owned());
    }
    let text = format!("assumed: {}", assumed.join(", "));
    if !assumed.is_empty() {
        println!("{}", wrap(&text, "    ", "      ").join("\n"));
    }
    if hidden > 0 {
        println!("    {hidden} more with --all");
    }
    println!();
    print!(
        "{}",
        dropped(falls.iter().map(|(plan, why)| (*plan, &**why)))
    );
    if !document.recipe_text.is_empty() {
        let text = format!("once more: --recipe '{}'", document.recipe_text);
        println!("{}", wrap(&text, "", "  ").join("\n"));
    }
    if let Some(checked) = &document.checked {
        let sizes: Vec<String> = checked
            .sizes
            .iter()
            .map(|s| size_text(s)[2..].to_owned())
            .collect();
        let text = format!(
            "agrees with the input in the emulator{} ({}), {}, at {}{}{}",
            match checked.distance {
                0.0 => " to the bit".to_owned(),
                apart => format!(" within {apart:.1e} of the largest value"),
            },
            checked.kernels.join(", "),
            "without races in shared memory",
            sizes.join("; "),
            super::for_every_input(checked.proved, checked.compared),
            if checked.shrunk {
                ", the file's constants made small"
            } else {
                ""
            },
        );
        println!("{}", wrap(&text, "", "").join("\n"));
    }
    if let Some(why) = &document.unchecked {
        let text = format!("NOT CHECKED against the input: {why}");
        println!("{}", wrap(&text, "", "  ").join("\n"));
    }
    for left in &document.left {
        println!("{}", wrap(left, "", "").join("\n"));
    }
    if let Some(launches) = document.launches {
        println!("launches rewritten: {launches}");
    }
}

fn family(family: Family) -> &'static str {
    match family {
        Family::Original => "original",
        Family::Unrolled => "unrolled",
        Family::Reordered => "reordered",
        Family::Streamed => "streamed",
    }
}

/// `, M=512, N=512`
fn size_text(sizes: &[(String, i64)]) -> String {
    let sizes = sizes.iter().map(|(name, n)| format!(", {name}={n}"));
    sizes.collect()
}

/// Prints what `tune` measured, the fastest first.
pub fn print_versions(result: &StencilResult) {
    println!(
        "stencil {} on {}{}\n",
        result.stencil,
        result.gpu,
        size_text(&result.sizes)
    );
    let mut order: Vec<&StencilVersion> = result.versions.iter().collect();
    order.sort_by(|a, b| {
        let key = |v: &StencilVersion| v.ms.unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b))
    });
    let mut table = Table::new(&["family", "plan", "ms", "predicted", "from the host", "note"]);
    for version in order {
        let number = |value: Option<f64>| value.map_or("–".into(), |ms| format!("{ms:.3}"));
        let apart = version.reference_distance;
        table.row(vec![
            family(version.family).into(),
            version.plan.clone(),
            number(version.ms),
            number(version.predicted_ms),
            apart.map_or("–".into(), |apart| format!("{apart:.0e}")),
            version.rejected.clone().unwrap_or_default(),
        ]);
    }
    print!("{}", table.render_within(2));
}
