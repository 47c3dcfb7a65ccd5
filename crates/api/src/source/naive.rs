//! Naive kernels of a file of CUDA C, rewritten in it: the first schedule in the order of the predictions that agrees with
//! the input in the PTX emulator, which needs nvcc.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use warpwright_cudac::File;
use warpwright_cudac::diag::Diagnostic;
use warpwright_diag::count;
use warpwright_driver::naive::{Chosen, Kind, NoStencil, choose, kind};
use warpwright_ladder::{Checked, CompileError, Rung};
use warpwright_naive::explain;
use warpwright_naive::ir::{Kernel, Template};
use warpwright_naive::recognise::is_marked;
use warpwright_naive::versions::Problem;
use warpwright_pass::names::is_definition_named;
use warpwright_pass::{Artifact, Builders, Caution, Executor, Fuel, Setting, Target};
use warpwright_report::screen::{dropped, wrap};
use warpwright_report::table::Table;
use warpwright_target::Gpu;

use super::build::with_builders;
use super::read::{read, read_again, rendered};
use super::sizes::{Sizes, state};
use super::{Request, Rewritten, Tools, for_every_input, source, uses_left, write_rest};
use crate::{Error, Input, Level};

/// The JSON document of `opt` for a naive kernel.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Which document this is.
    pub schema: &'static str,
    /// The input by name.
    pub input: String,
    /// The kernel by its name in the source.
    pub kernel: String,
    /// Of a template the arguments of the instance that is looked at: `<float, 4>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// What it is written for.
    pub gpu: String,
    /// What each access touches, in words.
    pub accesses: Vec<String>,
    /// What the predictions go by.
    pub sizes: Sizes,
    /// What was tried, the best prediction first.
    pub versions: Vec<Row>,
    /// The chosen version; none: the kernel stays as written.
    pub chosen: Option<usize>,
    /// What `--recipe` takes; empty: the kernel stays as written.
    pub recipe_text: String,
    /// What the chosen one does.
    pub steps: Vec<String>,
    /// Predicted time of the kernel as written, milliseconds.
    pub original_ms: Option<f64>,
    /// Are sums in another order?
    pub reordered: bool,
    /// What the chosen version was compared at.
    pub checked: Option<Checked>,
    /// Why it was not compared.
    pub unchecked: Option<String>,
    /// Launches that were rewritten.
    pub launches: Option<usize>,
    /// Uses of the kernel that were left as they are.
    pub uses: Vec<String>,
    /// The other kernels of the file that stay as written, and why.
    pub left: Vec<Left>,
    /// Why it is no stencil.
    pub no_stencil: String,
    /// Why nothing was tried: the launch that is known is not one that a rewrite takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stays: Option<String>,
    /// Where the text is written.
    pub output: Option<String>,
    /// Is it one of several kernels of the file?
    #[serde(skip)]
    pub is_among: bool,
}

/// A schedule that was tried.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The pass that does it.
    pub schedule: String,
    /// How long it should take, milliseconds.
    pub predicted_ms: f64,
    /// By what it is bound.
    pub bound: &'static str,
    /// Why it is out.
    pub rejected: Option<String>,
}

/// A kernel that stays as written.
#[derive(Clone, Debug, Serialize)]
pub struct Left {
    /// The kernel by its name in the source.
    pub kernel: String,
    /// What is in the way.
    pub reason: String,
}

/// A naive kernel of a file, and why it is no stencil.
pub struct Found {
    /// The kernel.
    pub problem: Problem,
    no_stencil: String,
}

/// The naive kernels of a file of CUDA C that is to stay CUDA C, if that is what it has: those that are marked as naive,
/// else all of them where there is no stencil. What is neither is an error, for both reasons.
///
/// # Errors
/// A kernel is marked as naive but is not; a file that is too large, or has nothing to work on.
pub fn wanted(
    tools: &Tools<'_>,
    kernel: Option<&str>,
    input: &Input,
) -> Result<(Vec<Found>, Vec<Left>), Error> {
    if input.level != Level::Cuda {
        return Ok((Vec::new(), Vec::new()));
    }
    wanted_in(&read(tools, input, None)?, kernel)
}

/// The same of a file that has been read.
///
/// # Errors
/// See [`wanted`].
pub fn wanted_in(file: &File, kernel: Option<&str>) -> Result<(Vec<Found>, Vec<Left>), Error> {
    let (nothing, mut left) = (Vec::new(), Vec::new());
    let fail = |problems: &[Diagnostic]| rendered(problems, &file.source);
    let (mut found, mut reasons, mut stencils) = (Vec::new(), Vec::new(), 0);
    // Kernels of one point each, that the stencil compiler takes as well.
    let mut both = 0;
    for header in &file.kernels {
        if kernel.is_some_and(|name| !is_definition_named(name, &header.name.text)) {
            continue;
        }
        let marked = is_marked(file, header).map_err(|p| fail(&[p]))?;
        match kind(file, header).map_err(|p| fail(&[p]))? {
            Kind::Naive(problem, why) => {
                both += usize::from(matches!(why, NoStencil::NoNeighbours));
                let (problem, no_stencil) = (*problem, no_stencil(&why));
                found.push((
                    marked,
                    Found {
                        problem,
                        no_stencil,
                    },
                ));
            }
            Kind::Neither { naive, .. } if marked => return Err(fail(&[naive])),
            Kind::Neither { stencil, naive } => {
                left.push(Left {
                    kernel: header.name.text.clone(),
                    reason: naive.message.clone(),
                });
                reasons.push(naive);
                reasons.extend(stencil);
            }
            Kind::Stencil => stencils += 1,
        }
    }
    let some_are_marked = found.iter().any(|(marked, _)| *marked);
    let all_are_both = found.len() > 1 && both == found.len();
    if !some_are_marked && (stencils > 0 || all_are_both) {
        return Ok((nothing, left));
    }
    if found.is_empty() && !reasons.is_empty() {
        return Err(Error::Source(refusals(&left, &reasons, file)));
    }
    let found = found.into_iter();
    let found = found.filter(|(marked, _)| *marked || !some_are_marked);
    Ok((found.map(|(_, found)| found).collect(), left))
}

/// Refusals that are shown; of more the number.
const SHOWN: usize = 8;

/// That no kernel of a file is rewritten in CUDA C and why each is not, with the places of the reasons, each once, and what
/// can be done all the same.
fn refusals(left: &[Left], reasons: &[Diagnostic], file: &File) -> String {
    let mut text = format!(
        "error: `{}` has no kernel that is written anew in CUDA C: neither a naive kernel nor a stencil\n",
        file.source.name
    );
    for Left { kernel, reason } in left.iter().take(SHOWN) {
        text += &format!("  {kernel} stays as written: {reason}\n");
    }
    let mut told: Vec<&Diagnostic> = Vec::new();
    for reason in reasons {
        if !told.contains(&reason) {
            told.push(reason);
        }
    }
    // One error, and where its reasons are.
    let place = |reason: &&Diagnostic| reason.render(&file.source).replacen("  ×", "note:", 1);
    text.extend(told.iter().take(SHOWN).map(place));
    if let Some(more @ 1..) = told.len().checked_sub(SHOWN) {
        text += &format!("\n({more} more; --kernel NAME has those of a kernel)\n");
    }
    text + "\nhelp: with `-o OUT.cubin` or `-o OUT.ptx` registers and shared memory of any kernel are chosen\n"
}

/// In words.
fn no_stencil(why: &NoStencil) -> String {
    match why {
        NoStencil::Refused(reason) => reason.message.clone(),
        NoStencil::NoNeighbours => "it reads too few places around its point".into(),
        NoStencil::Marked => "its pragma says so".into(),
    }
}

/// States sizes of all kernels.
///
/// # Errors
/// A size that none of them has.
pub fn state_all(found: &mut [Found], sizes: &[(String, i64)], input: &Input) -> Result<(), Error> {
    let of = |found: &mut Found| found.problem.state(sizes);
    let unknown: Vec<Vec<String>> = found.iter_mut().map(of).collect();
    let nowhere = |name: &&String| unknown.iter().all(|u| u.contains(name));
    match sizes.iter().map(|(name, _)| name).find(nowhere) {
        Some(name) => {
            let each = found.iter().map(|of| of.problem.size_names());
            let known: BTreeSet<String> = each.flatten().collect();
            let known: Vec<String> = known.into_iter().collect();
            Err(Error::Rewrite(format!(
                "`{}` has no size `{name}`; it has {}",
                input.name,
                known.join(", ")
            )))
        }
        None => Ok(()),
    }
}

/// A kernel of a file, for sizes.
pub fn target_of<'a>(kernel: &'a str, gpu: &'a Gpu, sizes: &'a [(String, i64)]) -> Target<'a> {
    Target {
        kernel: Some(kernel),
        setting: Setting {
            sizes,
            ..Setting::new(gpu)
        },
    }
}

/// The kernel of a name in a text that was changed since it was found.
///
/// # Errors
/// It is gone, or no naive kernel any more: a mistake of ours.
pub fn again(
    tools: &Tools<'_>,
    input: &Input,
    (name, text): (&str, &str),
) -> Result<Problem, Error> {
    let file = read_again(tools, input, text.to_owned())?;
    let header = file.kernels.iter().find(|h| h.name.text == name);
    let header = header.cloned();
    let header = header.ok_or(Error::Internal(
        "a kernel is gone from the text that has it",
    ))?;
    let source = file.source.clone();
    Problem::new(file, &header).map_err(|p| rendered(&[p], &source))
}

/// The JSON document for a file with several naive kernels.
#[derive(Debug, Serialize)]
pub struct Documents {
    /// Which document this is.
    pub schema: &'static str,
    /// The input by name.
    pub input: String,
    /// Kernel by kernel.
    pub kernels: Vec<Document>,
    /// Where the text is written.
    pub output: Option<String>,
}

/// Rewrites one kernel after the other, each in the text that the one before it left.
///
/// # Errors
/// A size that none of them has; the file cannot be read or written.
pub fn rewrite(
    tools: &Tools<'_>,
    request: &Request<'_>,
    input: &Input,
    (mut found, mut left): (Vec<Found>, Vec<Left>),
) -> Result<Rewritten<Document>, Error> {
    state_all(&mut found, request.sizes, input)?;
    let mut text = input.text()?.to_owned();
    let mut kernels = Vec::new();
    with_builders(tools, request.gpu, |builders| {
        let mut executor = Executor::new(builders);
        executor.fuel = request.fuel.map_or_else(Fuel::default, Fuel::limited);
        for (number, of) in found.into_iter().enumerate() {
            let mut problem = of.problem;
            if number > 0 {
                let name = problem.kernel.name.clone();
                problem = again(tools, input, (&name, &text))?;
            }
            let sizes = state(&mut problem, request.sizes, request.own);
            let kernel = &problem.kernel;
            let stays = request.own.refused(kernel);
            let chosen = if stays.is_some() {
                Chosen::default()
            } else {
                tools.watch.begins(&kernel.name);
                let (chosen, refused) = one(kernel, request, (input, &text), &mut executor)?;
                tools.watch.ends();
                left.extend(refused);
                chosen
            };
            let mut document = document(request, input, (kernel, sizes), &chosen);
            document.no_stencil = of.no_stencil;
            document.stays = stays;
            document.uses = uses_left(chosen.kept.as_ref(), &kernel.name, [input.text()?, &text]);
            if let Some(kept) = chosen.kept {
                text = kept.text;
            }
            kernels.push(document);
        }
        Ok::<(), Error>(())
    })?;
    let is_among = kernels.len() + left.len() > 1;
    for document in &mut kernels {
        document.is_among = is_among;
    }
    if let Some(last) = kernels.last_mut() {
        last.left = left;
    }
    let is_checked = kernels.iter().all(|d| d.unchecked.is_none());
    Ok(Rewritten::new(kernels, text, is_checked))
}

/// The choice for one kernel of a text; and why the file with it stays as it is, if nvcc does not take it.
fn one(
    kernel: &Kernel,
    request: &Request<'_>,
    (input, text): (&Input, &str),
    executor: &mut Executor<'_>,
) -> Result<(Chosen, Option<Left>), Error> {
    let file = source(input, text.to_owned());
    let target = target_of(&kernel.name, request.gpu, &kernel.pragma.sizes);
    let mut chosen = choose(kernel, (&file, &target), executor)?;
    let Some(kept) = &chosen.kept else {
        return Ok((chosen, None));
    };
    let new = source(input, kept.text.clone());
    let Some(why) = refused_by_nvcc(&new, &executor.builders) else {
        return Ok((chosen, None));
    };
    (chosen.kept, chosen.version) = (None, None);
    let left = Left {
        kernel: kernel.name.clone(),
        reason: format!("nvcc refuses the file with it rewritten: {why}"),
    };
    Ok((chosen, Some(left)))
}

/// Why nvcc does not take a file as a whole. Kernels are compared alone where its host code stands in the way, and launches
/// are rewritten after that. Without nvcc nobody knows.
pub fn refused_by_nvcc(file: &Artifact, builders: &Builders<'_>) -> Option<String> {
    let compile = builders.compile_unfused?;
    match compile(file.as_source()?) {
        Err(CompileError::Rejected(why)) => Some(why),
        _ => None,
    }
}

fn document(
    request: &Request<'_>,
    input: &Input,
    (kernel, sizes): (&Kernel, Sizes),
    chosen: &Chosen,
) -> Document {
    let kept = chosen.kept.as_ref();
    let step = kept.map(|kept| &kept.step);
    let comparison = step.and_then(|step| step.comparison.as_ref());
    Document {
        schema: "warpwright.naive-opt/1",
        input: input.name.clone(),
        kernel: kernel.name.clone(),
        instance: kernel.template.as_ref().map(Template::given),
        gpu: request.gpu.to_string(),
        accesses: explain::accesses(kernel),
        sizes,
        versions: chosen
            .versions
            .iter()
            .map(|v| Row {
                schedule: v.pass.to_string(),
                predicted_ms: v.predicted.ms,
                bound: v.predicted.bound,
                rejected: v.rejected.as_ref().map(ToString::to_string),
            })
            .collect(),
        chosen: chosen.version,
        recipe_text: step.map_or_else(String::new, |step| step.pass.to_string()),
        steps: step.map_or_else(Vec::new, |step| step.notes.clone()),
        original_ms: chosen.original_ms,
        reordered: step.is_some_and(|step| step.cautions.contains(&Caution::Reordered)),
        checked: comparison.and_then(|c| match &c.rung {
            Rung::Agrees(checked) => Some(checked.clone()),
            _ => None,
        }),
        unchecked: kept.and_then(|kept| kept.unchecked.clone()),
        launches: comparison.and_then(|c| c.launches),
        uses: Vec::new(),
        left: Vec::new(),
        no_stencil: String::new(),
        stays: None,
        output: request.output.clone(),
        is_among: false,
    }
}

/// What people see of it.
impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = format!(
            "naive kernel {}{} for {}: each thread computes outputs of its own; no stencil: {}",
            self.kernel,
            self.instance.as_deref().unwrap_or_default(),
            self.gpu,
            self.no_stencil
        );
        writeln!(f, "{}\n", wrap(&title, "", "  ").join("\n"))?;
        for access in &self.accesses {
            writeln!(f, "{}", wrap(access, "  ", "    ").join("\n"))?;
        }
        writeln!(f)?;
        if let Some(why) = &self.stays {
            let text = format!("stays as it is: {why}");
            writeln!(f, "{}", wrap(&text, "", "  ").join("\n"))?;
            return write_left(f, &self.left);
        }
        let mut table = Table::new(&["", "schedule", "predicted ms", "bound by", "note"]);
        for (at, row) in self.versions.iter().enumerate() {
            table.row(vec![
                if self.chosen == Some(at) { "*" } else { "" }.into(),
                row.schedule.clone(),
                format!("{:.4}", row.predicted_ms),
                row.bound.into(),
                row.rejected.as_ref().map_or("", |_| "dropped").to_owned(),
            ]);
        }
        let original = self.original_ms.map_or("–".into(), |ms| format!("{ms:.4}"));
        let mark = if self.chosen.is_none() { "*" } else { "" };
        table.row(vec![
            mark.into(),
            "as written".into(),
            original,
            String::new(),
            String::new(),
        ]);
        write!(f, "{}", table.render_within(1))?;
        let at = self.sizes.at();
        if !at.is_empty() {
            writeln!(
                f,
                "{}",
                wrap(&format!("predicted{at}"), "    ", "      ").join("\n")
            )?;
        }
        writeln!(f)?;
        let all = self.versions.iter();
        let why = all.filter_map(|row| Some((&*row.schedule, row.rejected.as_deref()?)));
        write!(f, "{}", dropped(why))?;
        if self.chosen.is_none() {
            let all = &self.versions;
            let why = match all.is_empty() {
                true => "no schedule is predicted to gain enough",
                false if all.iter().all(|row| row.rejected.is_some()) => {
                    "all schedules that were tried were dropped"
                }
                false => "no other schedule is predicted to gain enough",
            };
            writeln!(f, "stays as it is: {why}")?;
        }
        for step in &self.steps {
            writeln!(f, "{}", wrap(step, "", "  ").join("\n"))?;
        }
        let again = self.sizes.options();
        if !self.recipe_text.is_empty() && !again.is_empty() {
            let kernel = match self.is_among {
                true => format!(" --kernel {}", self.kernel),
                false => String::new(),
            };
            let recipe = &self.recipe_text;
            let text = format!("once more:{kernel} --recipe '{recipe}'{again}");
            writeln!(f, "{}", wrap(&text, "", "  ").join("\n"))?;
        }
        if let Some(checked) = &self.checked {
            let how = match self.reordered {
                false => "to the bit",
                true => {
                    "within 1e-5 (float) or 1e-13 (double) of the largest value, sums reordered as its pragma or its atomics permit"
                }
            };
            let text = format!(
                "agrees with the input in the emulator {how}, without races in shared memory: {} at {}{}{}",
                checked.kernels.join(", "),
                count(checked.sizes.len(), "launch"),
                for_every_input(checked.proved, checked.compared),
                match checked.shrunk {
                    true => ", the file's constants made small",
                    false => "",
                }
            );
            writeln!(f, "{}", wrap(&text, "", "").join("\n"))?;
        }
        write_rest(f, self.unchecked.as_deref(), &self.uses, self.launches)?;
        write_left(f, &self.left)
    }
}

fn write_left(f: &mut fmt::Formatter<'_>, left: &[Left]) -> fmt::Result {
    for Left { kernel, reason } in left {
        let text = format!("{kernel} stays as written: {reason}");
        writeln!(f, "{}", wrap(&text, "", "  ").join("\n"))?;
    }
    Ok(())
}
