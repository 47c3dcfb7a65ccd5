//! What a rewrite from source to source would do, before it is done.

use warpwright_cudac::File;
use warpwright_driver::naive::promise;
use warpwright_naive::versions::is_emulated;
use warpwright_pass::names::{base_name, is_definition_named};
use warpwright_report::edit::{Edit, Gives};
use warpwright_report::screen::part as in_words;
use warpwright_stencil::extract;
use warpwright_stencil::ir::Stencil;
use warpwright_target::Gpu;

use super::sizes::{OwnSizes, state};
use super::{naive, quoted, stencil, target};
use crate::Counted;
use crate::front::architecture;
use crate::optimise::KernelEdits;

/// What `opt FILE -o OUT.cu` would do.
pub struct Advice {
    /// In a sentence.
    pub text: String,
    /// By kernel, as edits.
    pub rewrites: Vec<KernelEdits>,
}

/// What `opt FILE -o OUT.cu` would do, by the decisions that it makes itself at the sizes of launches that are known, for a
/// kernel and a GPU that may be named; nothing where it would write no other kernel.
pub fn advice(
    file: &File,
    (kernel, gpu): (Option<&str>, Option<&str>),
    nvcc: &[String],
    counted: &[Counted],
) -> Option<Advice> {
    let own = &OwnSizes::of(file, counted);
    let stated = architecture(None, nvcc).ok().and_then(|(stated, _)| stated);
    let named = gpu.or(stated.as_deref());
    let gpu = target(named).ok()?;
    let arguments = &behind_dashes(nvcc);
    let (naive, _) = naive::wanted_in(file, kernel).ok()?;
    if !naive.is_empty() {
        // Of several kernels the others would be written as well, or be in the way.
        let is_one_of_many = file.kernels.len() > 1;
        let place = (named, &gpu);
        return what_pays((file, own, arguments), naive, place, is_one_of_many);
    }
    let headers = match kernel {
        None => extract::choose_all(file).ok()?,
        Some(name) => {
            let all = file.kernels.iter();
            all.filter(|header| is_definition_named(name, &header.name.text))
                .collect()
        }
    };
    let stencils = headers
        .into_iter()
        .filter_map(|header| extract::extract(file, header).ok());
    let stencils = stencils.filter(|stencil| stencil::can_be_written(stencil, &gpu));
    let stencils: Vec<Stencil> = stencils.collect();
    let mut advice = what_to_do(file, &stencils, named, arguments)?;
    // Beside stencils naive kernels are left alone, unless they are named.
    let is_other = |name: &str| kernel.is_none() && stencils.iter().all(|s| s.name != name);
    let others = file.kernels.iter().map(|header| &*header.name.text);
    let others = others.filter(|name| is_other(name));
    let found = others.filter_map(|name| naive::wanted_in(file, Some(name)).ok());
    let found: Vec<_> = found.flat_map(|(found, _)| found).collect();
    if let Some(more) = what_pays((file, own, arguments), found, (named, &gpu), true) {
        advice.text = format!("{}; {}", advice.text, more.text);
        advice.rewrites.extend(more.rewrites);
    }
    Some(advice)
}

/// The arguments for nvcc as a command ends with them.
pub fn behind_dashes(nvcc: &[String]) -> String {
    let all: Vec<String> = nvcc.iter().map(|word| quoted(word)).collect();
    match all.is_empty() {
        true => String::new(),
        false => format!(" -- {}", all.join(" ")),
    }
}

/// A rewrite of a kernel as an edit at its definition.
fn rewrite(file: &File, kernel: &str, text: String, gives: Gives) -> KernelEdits {
    let line = defined_at(file, kernel);
    KernelEdits {
        kernel: kernel.to_owned(),
        edits: vec![Edit { line, text, gives }],
    }
}

/// `file:line` where a kernel is defined, by its name.
fn defined_at(file: &File, kernel: &str) -> Option<String> {
    let mut all = file.kernels.iter();
    let header = all.find(|header| header.name.text == kernel)?;
    let before = file.source.text.get(..header.span.start)?;
    let name = file.source.name.rsplit('/').next().unwrap_or_default();
    Some(format!("{name}:{}", before.matches('\n').count() + 1))
}

/// Says of edits at kernels where these are defined; options of nvcc stand nowhere.
pub fn place(edits: &mut [KernelEdits], file: &File) {
    for of in edits {
        let line = defined_at(file, &base_name(&of.kernel));
        let at_kernel = of
            .edits
            .iter_mut()
            .filter(|edit| !edit.text.starts_with("`-"));
        at_kernel.for_each(|edit| edit.line.clone_from(&line));
    }
}

/// What `opt FILE -o OUT.cu` would do with the naive kernels that it finds, in a sentence; nothing where none is
/// predicted to gain.
fn what_pays(
    (file, own, arguments): (&File, &OwnSizes, &str),
    found: Vec<naive::Found>,
    (named, gpu): (Option<&str>, &Gpu),
    wants_name: bool,
) -> Option<Advice> {
    // What cannot be compared is not advised.
    let problems = found.into_iter().map(|found| found.problem);
    let problems = problems.filter(|problem| is_emulated(&problem.kernel));
    // Nor what a known launch would not come to.
    let problems = problems.filter(|problem| own.refused(&problem.kernel).is_none());
    let gains = problems.filter_map(|mut problem| {
        let sizes = state(&mut problem, &[], own);
        Some((promise(&problem.kernel, gpu)?, problem.kernel.name, sizes))
    });
    let gains: Vec<_> = gains.collect();
    let (part, first, sizes) = gains.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let also = match gains.len() {
        1 => String::new(),
        count => format!(" ({} more)", count - 1),
    };
    let gpu_option = gpu_option(named);
    let command = |kernel: &str| {
        let kernel = match wants_name {
            true => format!(" --kernel {kernel}"),
            false => String::new(),
        };
        let name = &file.source.name;
        format!(
            "`warpwright opt {name} -o OUT.cu{gpu_option}{kernel}{arguments}` writes a tuned kernel in CUDA C"
        )
    };
    let rewrites = gains.iter().map(|(part, kernel, sizes)| {
        let text = format!("{}{}", command(kernel), sizes.at());
        rewrite(file, kernel, text, Gives::Predicted(*part))
    });
    Some(Advice {
        text: format!(
            "each thread of `{first}`{also} computes alone: {}, predicted to take {} of its time on {}{}",
            command(first),
            in_words(*part),
            gpu.target(),
            sizes.at(),
        ),
        rewrites: rewrites.collect(),
    })
}

/// The option that names a GPU again.
fn gpu_option(named: Option<&str>) -> String {
    named.map_or_else(String::new, |gpu| format!(" --gpu {}", quoted(gpu)))
}

/// What can be done with the stencils of a file, in a sentence; nothing where there are none.
fn what_to_do(
    file: &File,
    stencils: &[Stencil],
    named: Option<&str>,
    arguments: &str,
) -> Option<Advice> {
    let names: Vec<String> = stencils.iter().map(|s| format!("`{}`", s.name)).collect();
    let (is, one) = match stencils {
        [] => return None,
        [_] => ("is a stencil", ""),
        _ => ("are stencils", " --kernel NAME"),
    };
    let name = &file.source.name;
    let gpu = gpu_option(named);
    let what = "looks for a faster kernel in CUDA C (more points for a thread, streaming through planes, an order that \
                needs fewer registers)";
    let own = |stencil: &Stencil| {
        let kernel = &stencil.name;
        let named = if one.is_empty() {
            String::new()
        } else {
            format!(" --kernel {kernel}")
        };
        let text =
            format!("a stencil: `warpwright opt {name} -o OUT.cu{gpu}{named}{arguments}` {what}");
        rewrite(file, kernel, text, Gives::Unknown)
    };
    Some(Advice {
        text: format!(
            "{} {is}: `warpwright opt {name} -o OUT.cu{gpu}{one}{arguments}` {what}",
            names.join(", ")
        ),
        rewrites: stencils.iter().map(own).collect(),
    })
}
