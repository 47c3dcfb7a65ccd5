//! Stencils of a file, rewritten in CUDA C: the first version in the order of the predictions that agrees with the input in
//! the PTX emulator, which needs nvcc.

use std::fmt;

use serde::Serialize;
use warpwright_cudac::diag::Source;
use warpwright_driver::stencil::{Chosen, Verdict, choose};
use warpwright_ladder::{Checked, Rung};
use warpwright_pass::{Executor, Fuel, Setting, Target};
use warpwright_report::results::StencilVersion;
use warpwright_report::screen::{dropped, extents, wrap};
use warpwright_report::stencils::{family, size_text};
use warpwright_report::table::Table;
use warpwright_stencil::evaluate::Sizes;
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::versions::{Problem, Version, versions};
use warpwright_stencil::{dsl, extract};
use warpwright_target::Gpu;

use super::build::with_builders;
use super::read::{named, read, read_again, rendered};
use super::sizes::OwnSizes;
use super::{Request, Rewritten, Tools, for_every_input, source, uses_left, write_rest};
use crate::{Error, Input, Level};

/// Versions of each family that are shown.
const SHOWN: usize = 8;

/// The JSON document of `opt` for a stencil.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Which document this is.
    pub schema: &'static str,
    /// The input by name.
    pub input: String,
    /// The stencil by name.
    pub stencil: String,
    /// What it is written for.
    pub gpu: String,
    /// What the predictions go by, elements.
    pub sizes: Vec<(String, i64)>,
    /// Those of them that nobody gave.
    pub assumed_sizes: Vec<String>,
    /// The launch that has the others that nobody gave.
    pub launch: Option<String>,
    /// Threads of a block of the kernel as written, where its launch is known; else its block is assumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<[u32; 3]>,
    /// May its sums be reordered?
    pub reassociate: bool,
    /// What was tried, the best prediction first.
    pub versions: Vec<StencilVersion>,
    /// The chosen one.
    pub chosen: usize,
    /// What `--recipe` takes; empty: the input stays as it is.
    pub recipe_text: String,
    /// Is it one of several stencils of the file?
    #[serde(skip)]
    pub is_among: bool,
    /// What the chosen version was compared at; none: it was not checked, or it is the input.
    pub checked: Option<Checked>,
    /// Why it was not checked.
    pub unchecked: Option<String>,
    /// Launches that were rewritten.
    pub launches: Option<usize>,
    /// Uses of the kernel that were left as they are.
    pub left: Vec<String>,
    /// Where the text is written.
    pub output: Option<String>,
}

/// The JSON document for a file with several stencils.
#[derive(Debug, Serialize)]
pub struct Documents {
    /// Which document this is.
    pub schema: &'static str,
    /// The input by name.
    pub input: String,
    /// Stencil by stencil.
    pub stencils: Vec<Document>,
    /// Where the text is written.
    pub output: Option<String>,
}

/// A stencil's document, and what became of each version.
#[derive(Debug)]
pub struct Rewrite {
    /// As JSON has it.
    pub document: Document,
    /// By version.
    pub verdicts: Vec<Verdict>,
}

impl Rewrite {
    /// What people see of it; with all versions, or of each family the best.
    pub fn screen(&self, all: bool) -> impl fmt::Display {
        fmt::from_fn(move |f| self.write(f, all))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, all: bool) -> fmt::Result {
        let Rewrite { document, verdicts } = self;
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
        writeln!(f, "{}\n", wrap(&title, "", "  ").join("\n"))?;
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
        write!(f, "{}", table.render_within(1))?;
        if let Some(launch) = &document.launch {
            let text = format!("sizes of {launch}");
            writeln!(f, "{}", wrap(&text, "    ", "      ").join("\n"))?;
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
            writeln!(f, "{}", wrap(&text, "    ", "      ").join("\n"))?;
        }
        if hidden > 0 {
            writeln!(f, "    {hidden} more with --all")?;
        }
        writeln!(f)?;
        write!(
            f,
            "{}",
            dropped(falls.iter().map(|(plan, why)| (*plan, &**why)))
        )?;
        if !document.recipe_text.is_empty() {
            let kernel = match document.is_among {
                true => format!(" --kernel {}", document.stencil),
                false => String::new(),
            };
            let text = format!("once more:{kernel} --recipe '{}'", document.recipe_text);
            writeln!(f, "{}", wrap(&text, "", "  ").join("\n"))?;
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
                for_every_input(checked.proved, checked.compared),
                if checked.shrunk {
                    ", the file's constants made small"
                } else {
                    ""
                },
            );
            writeln!(f, "{}", wrap(&text, "", "").join("\n"))?;
        }
        let unchecked = document.unchecked.as_deref();
        write_rest(f, unchecked, &document.left, document.launches)
    }
}

/// The names of the stencils that are rewritten; nothing in place of a name where there is only one.
///
/// # Errors
/// There is none, or none of that name.
pub fn stencils(
    tools: &Tools<'_>,
    input: &Input,
    kernel: Option<&str>,
) -> Result<Vec<Option<String>>, Error> {
    if input.level == Level::Stencil {
        return Ok(vec![kernel.map(str::to_owned)]);
    }
    let file = read(tools, input, None)?;
    if let Some(given) = kernel {
        let names = named(&file, given)?;
        return Ok(names.into_iter().map(Some).collect());
    }
    let chosen = extract::choose_all(&file);
    let chosen = chosen.map_err(|problem| rendered(&[problem], &file.source))?;
    let names = chosen.iter().map(|header| Some(header.name.text.clone()));
    Ok(names.collect())
}

/// The stencil of a `.stencil` file.
///
/// # Errors
/// It is not understood.
pub fn of_language(input: &Input) -> Result<Stencil, Error> {
    let source = Source::new(&*input.name, input.text()?);
    dsl::parse(&source.text).map_err(|problems| rendered(&problems, &source))
}

/// Rewrites the [`stencils`] of a file one after the other, each in the text that the one before it left.
///
/// # Errors
/// A size that none of them has; the file cannot be read or written.
pub fn rewrite(
    tools: &Tools<'_>,
    request: &Request<'_>,
    input: &Input,
    names: &[Option<String>],
) -> Result<Rewritten<Rewrite>, Error> {
    let mut text = input.text()?.to_owned();
    let mut kernels = Vec::new();
    if let [name] = names {
        let problem = read_problem(tools, input, name.as_deref(), request.reassociate)?;
        let (rewrite, new) = one(
            tools,
            request,
            input,
            (&problem.stencil, text),
            request.sizes,
        )?;
        kernels.push(rewrite);
        text = new;
    } else {
        let mut unknown = request.sizes.to_vec();
        for name in names.iter().flatten() {
            let file = read_again(tools, input, text.clone())?;
            let problems = |problems: Vec<_>| rendered(&problems, &file.source);
            let chosen = extract::choose(&file, Some(name)).map_err(|p| problems(vec![p]))?;
            let header = chosen[0].clone();
            let problem = Problem::of_cuda(file.clone(), &header, request.reassociate);
            let problem = problem.map_err(problems)?;
            let has = |size: &String| problem.stencil.parameters.values().any(|p| p == size);
            let given = request.sizes.iter().filter(|(size, _)| has(size));
            let given: Vec<(String, i64)> = given.cloned().collect();
            unknown.retain(|(size, _)| !has(size));
            let (rewrite, new) = one(tools, request, input, (&problem.stencil, text), &given)?;
            kernels.push(rewrite);
            text = new;
        }
        if let Some((size, _)) = unknown.first() {
            let what = format!("no stencil of `{}` has a size `{size}`", input.name);
            return Err(Error::Rewrite(what));
        }
    }
    let is_among = kernels.len() > 1;
    for of in &mut kernels {
        of.document.is_among = is_among;
    }
    let is_checked = kernels.iter().all(|of| of.document.unchecked.is_none());
    Ok(Rewritten::new(kernels, text, is_checked))
}

/// Chooses a version of one kernel of a text; the choice, and the text that has it.
fn one(
    tools: &Tools<'_>,
    request: &Request<'_>,
    input: &Input,
    (stencil, text): (&Stencil, String),
    given: &[(String, i64)],
) -> Result<(Rewrite, String), Error> {
    let gpu = request.gpu;
    let known = known_sizes(stencil, given, request.own)?;
    let presumed = stencil.block;
    let differs = |block: &[u32; 3]| {
        let mut both = presumed.iter().zip(block);
        both.any(|(wanted, &own)| wanted.is_some_and(|wanted| wanted != i64::from(own)))
    };
    if let Some(block) = known.block.filter(differs) {
        return Err(Error::Rewrite(format!(
            "`{}` stays as written: its launch has {} threads in a block, its text presumes other blocks, and a rewrite \
             takes no others",
            stencil.name,
            extents(block)
        )));
    }
    let found = versions(stencil, gpu, (&known.sizes, known.block), SHOWN, false);
    let file = source(input, text.clone());
    let target = target_of(stencil, gpu);
    tools.watch.begins(&stencil.name);
    let chosen = with_builders(tools, gpu, |builders| {
        let mut executor = Executor::new(builders);
        executor.fuel = request.fuel.map_or_else(Fuel::default, Fuel::limited);
        choose(&found, (&file, &target), &mut executor)
    });
    tools.watch.ends();
    let chosen = chosen?.ok_or_else(|| {
        Error::Rewrite(format!("no kernel can be written for `{}`", stencil.name))
    })?;
    let document = document(request, input, (stencil, &text), known, (&found, &chosen))?;
    let text = chosen.kept.map_or(text, |kept| kept.text);
    let verdicts = chosen.verdicts;
    Ok((Rewrite { document, verdicts }, text))
}

fn document(
    request: &Request<'_>,
    input: &Input,
    (stencil, text): (&Stencil, &str),
    Known {
        known,
        sizes,
        launch,
        block,
    }: Known,
    (found, chosen): (&[Version], &Chosen),
) -> Result<Document, Error> {
    let kept = chosen.kept.as_ref();
    let comparison = kept.and_then(|kept| kept.step.comparison.as_ref());
    Ok(Document {
        schema: "warpwright.stencil-opt/2",
        input: input.name.clone(),
        stencil: stencil.name.clone(),
        gpu: request.gpu.to_string(),
        sizes: named_sizes(stencil, &sizes),
        assumed_sizes: assumed(stencil, &known),
        launch,
        block,
        reassociate: stencil.reassociate,
        versions: found.iter().zip(&chosen.verdicts).map(measured).collect(),
        chosen: chosen.version,
        is_among: false,
        recipe_text: kept.map_or_else(String::new, |kept| kept.step.pass.to_string()),
        checked: comparison.and_then(|c| match &c.rung {
            Rung::Agrees(checked) => Some(checked.clone()),
            _ => None,
        }),
        unchecked: kept.and_then(|kept| kept.unchecked.clone()),
        launches: comparison.and_then(|c| c.launches),
        left: uses_left(kept, &stencil.name, [input.text()?, text]),
        output: request.output.clone(),
    })
}

/// Is there a version of a stencil, at the usual sizes?
pub fn can_be_written(stencil: &Stencil, gpu: &Gpu) -> bool {
    sizes(stencil, &[])
        .is_ok_and(|sizes| !versions(stencil, gpu, (&sizes, None), SHOWN, false).is_empty())
}

/// The sizes that a stencil is rewritten for.
pub struct Known {
    /// Those that somebody said.
    pub known: Vec<(String, i64)>,
    /// All.
    pub sizes: Sizes,
    /// Which launch has those that were not given.
    pub launch: Option<String>,
    /// Threads of a block of the kernel as written, where its launch is known.
    pub block: Option<[u32; 3]>,
}

/// Those that are given, then those of its launch, then the usual ones.
///
/// # Errors
/// One that the stencil does not have, or that leaves no points.
pub fn known_sizes(
    stencil: &Stencil,
    given: &[(String, i64)],
    own: &OwnSizes,
) -> Result<Known, Error> {
    sizes(stencil, given)?;
    let own_block = own.block(&stencil.name);
    let launched = own.of_stencil(stencil, given);
    let launched = launched.filter(|(sizes, _)| !sizes.is_empty());
    let (own, launch) = launched.map_or((Vec::new(), None), |(sizes, at)| {
        (sizes, Some(at.to_owned()))
    });
    let known = [given, &own].concat();
    let sizes = sizes(stencil, &known)?;
    Ok(Known {
        known,
        sizes,
        launch,
        block: own_block,
    })
}

/// A stencil of a file.
pub fn target_of<'a>(stencil: &'a Stencil, gpu: &'a Gpu) -> Target<'a> {
    Target {
        kernel: Some(&stencil.name),
        setting: Setting {
            reassociate: stencil.reassociate,
            ..Setting::new(gpu)
        },
    }
}

fn measured((version, verdict): (&Version, &Verdict)) -> StencilVersion {
    let mut measured = StencilVersion::new(version);
    if let Verdict::Falls(fall) = verdict {
        measured.rejected = Some(fall.to_string());
    }
    measured
}

/// The one stencil of a file; `reassociate`: its sums may be reordered, whatever the file says.
///
/// # Errors
/// There is none, or several of that name.
pub fn read_problem(
    tools: &Tools<'_>,
    input: &Input,
    kernel: Option<&str>,
    reassociate: bool,
) -> Result<Problem, Error> {
    let source = Source::new(&*input.name, input.text()?);
    let problems = |problems: Vec<_>| rendered(&problems, &source);
    if input.level == Level::Stencil {
        let mut stencil = dsl::parse(&source.text).map_err(problems)?;
        stencil.reassociate |= reassociate;
        return Ok(Problem::of_language(stencil));
    }
    let file = read(tools, input, None)?;
    let names = kernel.map(|kernel| named(&file, kernel));
    let names = names.transpose()?;
    let kernel = match names.as_deref() {
        Some([first, _, ..]) => {
            let kernel = kernel.unwrap_or(first);
            return Err(Error::Rewrite(format!("`{kernel}` names several kernels")));
        }
        names => names.and_then(|names| names.first()),
    };
    let chosen = extract::choose(&file, kernel.map(String::as_str));
    let chosen = chosen.map_err(|problem| problems(vec![problem]))?;
    match chosen.as_slice() {
        [one] => {
            let header = (*one).clone();
            Problem::of_cuda(file, &header, reassociate).map_err(problems)
        }
        several => {
            let names: Vec<&str> = several.iter().map(|k| &*k.name.text).collect();
            Err(Error::Rewrite(format!(
                "`{}` has the stencils {}; name one with --kernel",
                input.name,
                names.join(", ")
            )))
        }
    }
}

/// The sizes that are given, elements; for the others, a domain larger than the caches.
///
/// # Errors
/// One that the stencil does not have.
pub fn sizes(stencil: &Stencil, given: &[(String, i64)]) -> Result<Sizes, Error> {
    let names: Vec<&str> = stencil.parameters.values().map(String::as_str).collect();
    if let Some((unknown, _)) = given
        .iter()
        .find(|(name, _)| !names.contains(&name.as_str()))
    {
        let known = names.join(", ");
        return Err(Error::Rewrite(format!(
            "`{}` has no size `{unknown}`; it has {known}",
            stencil.name
        )));
    }
    let default = match stencil.dims.len() {
        0..=2 => 8192,
        _ => 512,
    };
    let mut sizes = Sizes::new();
    for name in names {
        let found = given.iter().find(|(given, _)| given == name);
        sizes.push(found.map_or(default, |(_, size)| *size));
    }
    Ok(sizes)
}

/// The sizes that nobody gave.
fn assumed(stencil: &Stencil, given: &[(String, i64)]) -> Vec<String> {
    let is_given = |name: &&String| given.iter().any(|(given, _)| given == *name);
    let names = stencil.parameters.values();
    names.filter(|name| !is_given(name)).cloned().collect()
}

/// Sizes with their names.
pub fn named_sizes(stencil: &Stencil, sizes: &Sizes) -> Vec<(String, i64)> {
    let names = stencil.parameters.iter();
    names.map(|(id, name)| (name.clone(), sizes[id])).collect()
}
