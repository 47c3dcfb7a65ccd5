//! Self-contained HTML pages: no outside reference; light and dark, on paper, at any width. A script links the panes of
//! listings; without it they are there to be read.

use minijinja::{Environment, context};
use serde::Serialize;
use serde_json::Value;
use warpwright_diag::count;
use warpwright_driver::opt::DEFAULT_MARGIN;
use warpwright_driver::why_not::why_not;
use warpwright_driver::{Candidate, KernelReport};
use warpwright_model::attribution::Cause;
use warpwright_pass::names::{base_name, source_name};
use warpwright_target::{lookup, staircase};

use crate::ReportError;
use crate::edit::{Edit, edits_of};
use crate::glossary::TERMS;
use crate::listing::{Lines, listing};
use crate::local::LocalArray;
use crate::plane::{Point, Stairs, plane};
use crate::rewritten;
use crate::screen::{
    bound_by, decision, extents, for_others, in_brief, launched, launched_of, proof,
};
use crate::svg;

/// Instructions, of PTX and machine code, that the listings of a page have together: some five megabytes.
const LISTED: usize = 40_000;

/// A kernel of `opt` or `tune`, as the page shows it.
#[derive(Debug, Serialize)]
struct Kernel {
    name: String,
    symbol: String,
    launched: String,
    decision: String,
    /// The same in a word or a number.
    brief: String,
    is_kept: bool,
    proof: Option<&'static str>,
    recipe: String,
    plane: String,
    rows: Vec<Row>,
    notes: Vec<String>,
    edits: Vec<Edit>,
    /// What the choice changes, where there is one.
    changes: Vec<Change>,
    gained: Option<String>,
    /// What `explain` says of the build that is there.
    explained: Option<Value>,
}

/// A figure before and after.
#[derive(Debug, Serialize)]
struct Change {
    what: &'static str,
    before: String,
    after: String,
}

/// A candidate; what has the same code as an earlier one stands in that one's row.
#[derive(Debug, Serialize)]
struct Row {
    recipe: String,
    same: Vec<String>,
    is_chosen: bool,
    is_out: bool,
    registers: Option<u32>,
    /// Bytes per thread to and from slots in local memory, and in shared memory.
    spills: Option<(u32, u32)>,
    shared: Option<u32>,
    blocks: Option<u32>,
    warps: Option<u32>,
    percent: Option<f64>,
    predicted: Option<f64>,
    measured: Option<f64>,
    why: Option<String>,
}

/// The page of a document that a command printed with `--json`.
///
/// # Errors
/// [`ReportError::UnknownSchema`] for other documents, [`ReportError::Document`] for one that does not hold what its
/// schema says.
pub fn page(document: &Value) -> Result<String, ReportError> {
    let mut document = document.clone();
    let schema = document["schema"].as_str().unwrap_or("").to_owned();
    let kind = match schema.split('/').next().unwrap_or("") {
        "warpwright.opt" => "opt",
        "warpwright.tune" => "tune",
        "warpwright.explain" => "explain",
        "warpwright.check" => "check",
        "warpwright.rewrite" => "rewrite",
        "warpwright.naive-opt" => "naive",
        "warpwright.stencil-opt" => "stencil",
        "warpwright.tune-in-place" => "in-place",
        _ => return Err(ReportError::UnknownSchema(schema)),
    };
    let gpu = document["gpu"].as_str().map(str::to_owned);
    let gpu = gpu.as_deref();
    let mut kernels = Vec::new();
    let mut planes = Vec::new();
    let mut room = LISTED;
    match kind {
        "opt" | "tune" => {
            let reports = document["kernels"].clone();
            let reports: Vec<KernelReport> = serde_json::from_value(reports)?;
            let explained = document["explained"].as_array();
            kernels = reports
                .iter()
                .map(|report| {
                    let is_it = |kernel: &&Value| kernel["kernel"].as_str() == Some(&report.name);
                    let explained = explained.and_then(|all| all.iter().find(is_it));
                    let mut shown = shown(report, gpu, explained.cloned());
                    let placed = document["edits"].as_array().into_iter().flatten();
                    let mut placed = placed.filter(|own| own["kernel"] == *report.name);
                    if let Some(own) = placed.next() {
                        shown.edits = edits_in(own);
                    }
                    shown
                        .edits
                        .extend(rewrites(&document["rewrites"], &report.name));
                    if document["python"].is_object() {
                        shown.launched = shown.launched.replace("--block", "block=");
                    }
                    shown
                })
                .collect();
            for (at, kernel) in kernels.iter_mut().enumerate() {
                if let Some(explained) = &mut kernel.explained {
                    link(explained, &format!("kernel-{}", at + 1), &mut room);
                }
            }
        }
        "explain" => {
            let all = document["rewrites"].clone();
            let kernels = document["kernels"].as_array_mut();
            for (at, kernel) in kernels.into_iter().flatten().enumerate() {
                planes.push(explained(kernel));
                kernel["launched"] = launched_at(kernel).into();
                let symbol = kernel["kernel"].as_str().unwrap_or_default();
                let edits = rewrites(&all, symbol);
                let own = edits_in(kernel).into_iter().chain(edits);
                kernel["edits"] = serde_json::to_value(own.collect::<Vec<Edit>>())?;
                link(kernel, &format!("kernel-{}", at + 1), &mut room);
            }
        }
        // The template shows them as they are.
        _ => {}
    }
    let rewritten = match kind {
        "rewrite" => Some(rewritten::said(&document)?),
        _ => None,
    };
    let title = match (
        kind,
        document["original"].as_str(),
        document["rewritten"].as_str(),
    ) {
        ("check" | "rewrite", Some(a), Some(b)) => format!("{a} and {b}"),
        ("in-place", ..) => {
            let words = document["program"].as_array().into_iter().flatten();
            let words: Vec<&str> = words.filter_map(Value::as_str).collect();
            words.join(" ")
        }
        _ => document["input"].as_str().unwrap_or_default().to_owned(),
    };
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
    environment.add_template("page", include_str!("page.html"))?;
    add_filters(&mut environment);
    let terms: Vec<(&str, &str)> = TERMS.iter().map(|term| (term.word, term.text)).collect();
    let template = environment.get_template("page")?;
    let again = document["again"].as_str().map(str::to_owned);
    let again = again.or(document["input"].as_str().map(str::to_owned));
    let has_listing = |kernel: &Value| !kernel["listing"].is_null();
    let explained = kernels
        .iter()
        .filter_map(|kernel| kernel.explained.as_ref());
    let documented = document["kernels"].as_array().into_iter().flatten();
    let script = explained
        .chain(documented)
        .any(has_listing)
        .then_some(include_str!("listing.js"));
    Ok(template.render(context! {
        document, title, kind, kernels, planes, terms, again, script, rewritten
    })?)
}

/// The rewrites from source to source that a document has of a kernel, by its symbol.
fn rewrites(all: &Value, symbol: &str) -> Vec<Edit> {
    let all = all.as_array().into_iter().flatten();
    let own = all.filter(|one| one["kernel"].as_str() == Some(&base_name(symbol)));
    own.flat_map(edits_in).collect()
}

/// The edits of a part of a document.
fn edits_in(part: &Value) -> Vec<Edit> {
    serde_json::from_value(part["edits"].clone()).unwrap_or_default()
}

/// The launch that a kernel of `explain` goes by.
fn launched_at(kernel: &Value) -> String {
    let read = |name: &str| kernel.get(name).cloned().unwrap_or_default();
    let block = serde_json::from_value(read("block"));
    let source = serde_json::from_value(read("block_source"));
    let (Ok(block), Ok(source)) = (block, source) else {
        return String::new();
    };
    let grid = read("grid").as_u64();
    let idle = read("idle_sms")
        .as_u64()
        .and_then(|n| u32::try_from(n).ok());
    let guessed = read("guessed");
    launched(
        (block, source),
        (grid, idle),
        guessed.as_str().unwrap_or_default(),
    )
}

/// What the template makes words and pictures with.
fn add_filters(environment: &mut Environment<'_>) {
    environment.add_filter(
        "curve",
        |values: Vec<u64>, peaks: minijinja::Value, id: String| {
            minijinja::Value::from_safe_string(svg::curve(&values, &marks(&peaks, &id)))
        },
    );
    environment.add_filter("extents", |block: Vec<u32>| match block[..] {
        [x, y, z] => extents([x, y, z]),
        _ => String::new(),
    });
    environment.add_filter("cause", |cause: String| {
        let is_it = |known: &&Cause| serde_json::to_value(known).is_ok_and(|known| known == *cause);
        Cause::ALL
            .iter()
            .find(is_it)
            .map_or(cause.clone(), |known| known.name().to_owned())
    });
    environment.add_filter("bound_by", |bound: &str, turns: minijinja::Value| {
        let turns = turns.as_str().unwrap_or_default();
        let turns = serde_json::from_value(turns.into()).unwrap_or_default();
        bound_by(bound, turns, &[])
    });
    environment.add_filter("local_array", |array: minijinja::Value| {
        words(&read::<LocalArray>(&array).map_or_else(String::new, |array| array.in_words()))
    });
    environment.add_filter("edit", |edit: minijinja::Value| {
        words(&read::<Edit>(&edit).map_or_else(String::new, |edit| edit.in_words()))
    });
    environment.add_filter("words", |text: String| words(&text));
    environment.add_filter("sentence", |text: String| words(&begun(&text)));
    environment.add_filter("word", |word: u32, how: &str| match how {
        "integer" => word.cast_signed().to_string(),
        "float" => format!("{:?}", f32::from_bits(word)),
        _ => format!("{word:#010x}"),
    });
    environment.add_filter("source_name", |name: String| source_name(&name));
}

/// A text whose code stands between backquotes.
fn words(text: &str) -> minijinja::Value {
    let mut parts = text.split('`');
    let mut out = svg::escape(parts.next().unwrap_or_default());
    while let Some(code) = parts.next() {
        match parts.next() {
            Some(rest) => {
                out += &format!("<code>{}</code>{}", svg::escape(code), svg::escape(rest));
            }
            None => out += &format!("`{}", svg::escape(code)),
        }
    }
    minijinja::Value::from_safe_string(out)
}

/// A sentence begins with a capital, unless it does with a name.
fn begun(text: &str) -> String {
    let word = text.split(' ').next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if word.chars().all(char::is_alphabetic) => {
            first.to_uppercase().to_string() + letters.as_str()
        }
        _ => text.to_owned(),
    }
}

/// A part of the document as what it is.
fn read<T: serde::de::DeserializeOwned>(value: &minijinja::Value) -> Option<T> {
    serde_json::from_value(serde_json::to_value(value).ok()?).ok()
}

/// The first of the highest peaks leads to the code there.
fn marks(peaks: &minijinja::Value, id: &str) -> Vec<svg::Mark> {
    let Ok(mut peaks) = peaks.try_iter() else {
        return Vec::new();
    };
    let Some(peak) = peaks.next() else {
        return Vec::new();
    };
    let get = |name: &str| peak.get_attr(name).ok().and_then(|v| u32::try_from(v).ok());
    let (Some(first), Some(units)) = (get("first"), get("units")) else {
        return Vec::new();
    };
    vec![svg::Mark {
        at: first as usize,
        label: format!("the peak: {units} registers at instruction {first}"),
        anchor: format!("{id}-peak"),
    }]
}

/// The listing of a kernel, and links into it (`to`) from all that names a line of the source. Where there is no room
/// left, no listing.
fn link(kernel: &mut Value, id: &str, room: &mut usize) {
    let count = |side: &str| kernel[side]["texts"].as_array().map_or(0, Vec::len);
    let Some(left) = room.checked_sub(count("pressure") + count("machine_code")) else {
        kernel["is_unlisted"] = true.into();
        return;
    };
    *room = left;
    let lines = Lines::of(kernel);
    let Some(listing) = listing(kernel, id, &lines) else {
        return;
    };
    for rows in [
        "/pressure/around",
        "/machine_code/around",
        "/pressure/peaks",
        "/pressure/crossing",
        "/causes/places",
        "/accesses/places",
    ] {
        for row in rows_of(kernel, rows) {
            let anchor = row["line"].as_str().and_then(|line| lines.anchor(id, line));
            if let Some(anchor) = anchor {
                row["to"] = anchor.into();
            }
        }
    }
    kernel["listing"] = listing.into();
}

/// The rows at a JSON pointer; none where there is no list.
fn rows_of<'v>(kernel: &'v mut Value, pointer: &str) -> impl Iterator<Item = &'v mut Value> {
    let rows = kernel.pointer_mut(pointer).and_then(Value::as_array_mut);
    rows.into_iter().flatten()
}

fn shown(report: &KernelReport, gpu: Option<&str>, explained: Option<Value>) -> Kernel {
    let chosen = &report.candidates[report.chosen];
    Kernel {
        name: source_name(&report.name),
        symbol: report.name.clone(),
        launched: launched_of(report),
        decision: decision(report),
        brief: in_brief(report),
        is_kept: report.chosen == 0,
        proof: proof(chosen),
        recipe: chosen.recipe.to_string(),
        plane: plane(&stairs(report, gpu), &points(report)),
        rows: rows(report),
        changes: changes(report),
        gained: report.gained.clone(),
        notes: (report.notes.iter())
            .chain(&report.promises)
            .cloned()
            .chain(chosen.elsewhere().map(for_others))
            .collect(),
        edits: edits_of(report),
        explained,
    }
}

/// The stairs of the default build on the GPU that the document names.
fn stairs(report: &KernelReport, gpu: Option<&str>) -> Stairs {
    let name = gpu
        .and_then(|gpu| gpu.split(' ').next())
        .unwrap_or_default();
    let (Ok(gpu), Some(resources)) = (lookup(name), report.candidates[0].resources()) else {
        return Stairs::default();
    };
    let threads = report.block.iter().product();
    let found = staircase(&gpu, threads, resources.shared_bytes, report.dynamic_smem);
    Stairs {
        most_warps: gpu.arch.threads.warps,
        most_registers: gpu.arch.registers.per_thread,
        steps: found
            .unwrap_or_default()
            .iter()
            .map(|stair| (stair.regs, stair.warps))
            .collect(),
    }
}

/// The build that is there beside the choice; of what is kept nothing changes.
fn changes(report: &KernelReport) -> Vec<Change> {
    if report.chosen == 0 {
        return Vec::new();
    }
    let both = [0, report.chosen].map(|at| &report.candidates[at]);
    let figure = |what: &'static str, of: &dyn Fn(&Candidate) -> Option<String>| {
        let [before, after] = both.map(|one| of(one).unwrap_or_else(|| "–".to_owned()));
        Change {
            what,
            before,
            after,
        }
    };
    let spilled = |c: &Candidate| {
        let r = c.resources()?;
        Some(match (r.local_spill_bytes(), r.spill_moved_bytes) {
            (bytes, 0) => bytes.to_string(),
            (bytes, moved) => format!("{bytes}, and {moved} in shared memory"),
        })
    };
    let shared =
        |c: &Candidate| Some((c.resources()?.shared_bytes + report.dynamic_smem).to_string());
    let warps = |c: &Candidate| {
        let found = c.residency()?;
        Some(format!("{} ({:.0}%)", found.warps, found.percent))
    };
    let mut all = vec![
        figure("registers of a thread", &|c| {
            Some(c.resources()?.registers.to_string())
        }),
        figure("spill traffic, bytes of a thread", &spilled),
        figure("shared memory of a block, bytes", &shared),
        figure("warps on an SM", &warps),
    ];
    let is_measured = both[1].measured().is_some();
    let of_default = |time: Option<f64>| time.map(|time| format!("{time:.3}"));
    all.push(match is_measured {
        true => figure("time, measured", &|c| {
            of_default(c.measured().map(|m| m.relative_time))
        }),
        false => figure("time, predicted", &|c| {
            of_default(c.score().map(|s| s.relative_time))
        }),
    });
    all
}

fn points(report: &KernelReport) -> Vec<Point> {
    let all = report.candidates.iter().enumerate();
    let all = all.filter(|(_, c)| c.same_code_as().is_none() && c.rejected().is_none());
    all.filter_map(|(at, c)| {
        let time = time(c);
        Some(Point {
            registers: c.resources()?.registers,
            warps: c.residency()?.warps,
            label: label(c),
            time,
            is_chosen: at == report.chosen,
            is_default: at == 0,
        })
    })
    .collect()
}

/// What a dot is: recipe, registers, warps and both times, over now's.
fn label(candidate: &Candidate) -> String {
    let mut parts = vec![candidate.recipe.to_string()];
    parts.extend(
        candidate
            .resources()
            .map(|r| format!("{} registers", r.registers)),
    );
    parts.extend(candidate.residency().map(|r| count(r.warps, "warp")));
    let times = [
        ("predicted", candidate.score().map(|s| s.relative_time)),
        ("measured", candidate.measured().map(|m| m.relative_time)),
    ];
    let times = times
        .into_iter()
        .filter_map(|(how, time)| Some((how, time?)));
    parts.extend(times.map(|(how, time)| format!("{how} {time:.2} of the time")));
    parts.join(", ")
}

fn time(candidate: &Candidate) -> Option<f64> {
    let measured = candidate.measured().map(|m| m.relative_time);
    measured.or(candidate.score().map(|s| s.relative_time))
}

fn rows(report: &KernelReport) -> Vec<Row> {
    let all = report.candidates.iter().enumerate();
    let all = all.filter(|(_, c)| c.same_code_as().is_none());
    all.map(|(at, c)| {
        let name = c.name();
        let twins = report.candidates.iter();
        let twins = twins.filter(|twin| twin.same_code_as() == Some(&*name));
        let is_chosen = at == report.chosen;
        let why = || why_not(&report.candidates, report.chosen, at, DEFAULT_MARGIN).to_string();
        Row {
            recipe: c.recipe.to_string(),
            same: twins.map(|twin| twin.recipe.to_string()).collect(),
            is_chosen,
            is_out: c.rejected().is_some(),
            registers: c.resources().map(|r| r.registers),
            spills: c
                .resources()
                .map(|r| (r.local_spill_bytes(), r.spill_moved_bytes)),
            shared: c.resources().map(|r| r.shared_bytes + report.dynamic_smem),
            blocks: c.residency().map(|r| r.blocks),
            warps: c.residency().map(|r| r.warps),
            percent: c.residency().map(|r| r.percent),
            predicted: c.score().map(|s| s.relative_time),
            measured: c.measured().map(|m| m.relative_time),
            why: (!is_chosen && at != 0).then(why),
        }
    })
    .collect()
}

/// The staircase of `explain`, with the kernel on it.
fn explained(kernel: &Value) -> String {
    let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
    let steps = kernel["staircase"].as_array().into_iter().flatten();
    let steps: Vec<(u32, u32)> = steps
        .filter_map(|stair| Some((number(&stair["regs"])?, number(&stair["warps"])?)))
        .collect();
    let point = |registers: u32, warps: u32| Point {
        registers,
        warps,
        label: "this kernel".to_owned(),
        time: None,
        is_chosen: false,
        is_default: true,
    };
    let here = number(&kernel["resources"]["registers"]);
    let here = here.zip(number(&kernel["residency"]["warps"]));
    let stairs = Stairs {
        most_warps: steps.iter().map(|step| step.1).max().unwrap_or(0),
        most_registers: steps.iter().map(|step| step.0).max().unwrap_or(0),
        steps,
    };
    let points: Vec<Point> = here.map(|(r, w)| point(r, w)).into_iter().collect();
    plane(&stairs, &points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use warpwright_pass::BlockSource;

    fn document() -> Value {
        json!({
            "schema": "warpwright.opt/1", "input": "a<b>.cu", "gpu": "h200 (sm_90)",
            "kernels": [{
                "name": "_Z1kPf", "block": [256, 1, 1], "block_source": "option", "dynamic_smem": 512,
                "chosen": 1, "reason": "fewer registers", "notes": ["a <note>"],
                "candidates": [
                    {"recipe": "default", "resources": {"registers": 68, "stack_bytes": 0, "spill_store_bytes": 0,
                     "spill_load_bytes": 0, "shared_bytes": 1024, "barriers": 0},
                     "residency": {"blocks": 3, "warps": 24, "percent": 37.5, "limiters": ["registers"]},
                     "score": {"relative_time": 1.0, "bound": "latency"}},
                    {"recipe": "maxnreg(64)", "resources": {"registers": 64, "stack_bytes": 0, "spill_store_bytes": 8,
                     "spill_load_bytes": 8, "shared_bytes": 1024, "barriers": 0},
                     "residency": {"blocks": 4, "warps": 32, "percent": 50.0, "limiters": ["registers"]},
                     "score": {"relative_time": 0.9, "bound": "latency"}},
                    {"recipe": "maxnreg(63)", "resources": {"registers": 63, "stack_bytes": 0, "spill_store_bytes": 8,
                     "spill_load_bytes": 8, "shared_bytes": 1024, "barriers": 0},
                     "residency": null, "score": null, "same_code_as": "maxnreg-64"},
                    {"recipe": "maxnreg(16)", "resources": null, "rejected": "ptxas: too few"}
                ]}]
        })
    }

    #[test]
    fn opt_shows_every_candidate_and_marks_the_chosen_one() {
        let html = page(&document()).unwrap();
        assert!(
            html.contains("a&lt;b&gt;.cu") && html.contains("A &lt;note&gt;"),
            "texts are escaped"
        );
        assert_eq!(html.matches("<tr class=\"chosen\">").count(), 1);
        for part in [
            "maxnreg(64)",
            "0.900",
            "68",
            "k(float*)",
            "1536",
            "maxnreg(63)",
            "out: ptxas: too few",
            "1.11 times",
        ] {
            assert!(html.contains(part), "{part}");
        }
        assert!(html.contains("--recipe"), "the command that makes it again");
        assert!(
            !html.to_lowercase().contains("none<"),
            "what is not known is left out"
        );
    }

    fn stands_alone(html: &str) {
        for outside in ["http://", "https://", "src=", "@import", "url(", "fetch("] {
            let place = html.replace("http://www.w3.org/2000/svg", "");
            assert!(!place.contains(outside), "{outside}");
        }
    }

    #[test]
    fn a_page_stands_alone() {
        let html = page(&document()).unwrap();
        stands_alone(&html);
        assert!(!html.contains("<script"), "without a listing there is none");
        // Every SVG has a text for those who do not see it, every table a heading row.
        assert_eq!(
            html.matches("<svg").count(),
            html.matches("role=\"img\"").count()
        );
        assert_eq!(
            html.matches("<table").count(),
            html.matches("<thead").count()
        );
        assert!(html.contains("prefers-color-scheme: dark") && html.contains("@media print"));
        for term in TERMS {
            assert!(
                html.contains(&format!("<dt>{}</dt>", term.word)),
                "{}",
                term.word
            );
        }
    }

    #[test]
    fn opt_explains_the_build_that_is_there_and_names_its_command() {
        let side = |line: &str| {
            json!({"peak_units": 7, "instructions": 2, "loop_depth": 0, "curve": [3, 7], "crossing": [], "live": [],
                "texts": ["a", "b"], "lines": [line, line],
                "peaks": [{"first": 1, "last": 1, "units": 7, "line": line, "text": "ret"}],
                "around": [{"at": 0, "units": 3, "text": "a", "line": line, "source": null},
                           {"at": 1, "units": 7, "text": "b", "line": line, "source": null}]})
        };
        let mut document = document();
        document["command"] = "warpwright opt 'a<b>.cu' --block 256".into();
        document["again"] = "'a<b>.cu' --block 256".into();
        document["explained"] = json!([{
            "kernel": "_Z1kPf", "pressure": side("k.cu:3"), "machine_code": side("k.cu:3"),
            "causes": {"cycles": 1.0, "causes": [{"cause": "fixed-latency", "share": 1.0}],
                "places": [{"line": "k.cu:3", "at": "0x0", "share": 1.0, "text": "RET"}]}}]);
        let html = page(&document).unwrap();
        // The line's first row in the listing; links to it from both sides, their peaks and the cycles; the peak.
        for (part, times) in [
            ("id=kernel-1-L0", 1),
            ("data-k=0", 4),
            ("href=\"#kernel-1-L0\"", 4),
            ("href=\"#kernel-1-peak\"", 2),
            ("fixed latency 100%", 1),
            (
                "warpwright opt &#x27;a&lt;b&gt;.cu&#x27; --block 256 --kernel",
                1,
            ),
            ("<h2>The command</h2>", 1),
            ("256 threads per block", 1),
        ] {
            assert_eq!(html.matches(part).count(), times, "{part}\n{html}");
        }
        assert_eq!(html.matches("<script>").count(), 1);
        stands_alone(&html);
    }

    #[test]
    fn a_page_is_ordered_by_what_is_asked() {
        let mut document = document();
        document["rewrites"] = json!([{"kernel": "k", "edits": [
            {"line": "a.cu:3", "text": "`warpwright opt` writes another", "gives": {"predicted": 0.25}}]}]);
        document["explained"] = json!([{
            "kernel": "_Z1kPf", "causes": {"cycles": 1.0, "causes": [], "places": []}, "edits": [],
            "cycles": {"bound": "atomics", "turns": "counted", "issue": 0.1, "latency": 0.2, "traffic": 0.3, "atomics": 1.0}}]);
        let html = page(&document).unwrap();
        let parts = [
            "1.11 times",
            "What limits it now",
            "Time bound by atomics",
            "atomics 100%",
            "What to edit",
            "a.cu:3: <code>warpwright opt</code> writes another (predicted 0.25 of the time)",
            "What to know of it",
            "Where the cycles of a warp go",
            "Registers and resident warps",
            "Candidates",
            "Before and after",
            "<td>registers of a thread</td><td>68</td><td>64</td>",
            "<td>time, predicted</td><td>1.000</td><td>0.900</td>",
        ];
        let place = |part: &&str| html.find(*part).unwrap_or_else(|| panic!("{part}\n{html}"));
        let places: Vec<usize> = parts.iter().map(place).collect();
        assert!(places.is_sorted(), "{places:?}");
        // What is kept changes nothing.
        document["kernels"][0]["chosen"] = 0.into();
        assert!(!page(&document).unwrap().contains("Before and after"));
    }

    #[test]
    fn a_result_of_python_names_the_call_that_makes_it_again() {
        let mut document = document();
        document["python"] = json!({"code": "code", "how": ", gpu='h200', block=(64, 1, 1)"});
        let html = page(&document).unwrap();
        let call = "code, gpu='h200', block=(64, 1, 1), kernels=\"_Z1kPf\"".replace('\'', "&#x27;");
        let call = call.replace('"', "&quot;");
        for function in ["optimise", "explain"] {
            let call = format!("warpwright.{function}({call}");
            assert!(html.contains(&call), "{call}\n{html}");
        }
        assert!(!html.contains("warpwright opt ") && !html.contains("warpwright explain "));
    }

    #[test]
    fn what_a_page_has_no_room_for_is_said() {
        let kernel = |count: usize| json!({"pressure": {"peak_units": 1, "texts": vec!["add"; count], "peaks": []}, "machine_code": {}});
        let mut room = 5;
        let is_listed = [3, 3, 2].map(|count| {
            let mut kernel = kernel(count);
            link(&mut kernel, "k", &mut room);
            assert_eq!(
                kernel["is_unlisted"].is_null(),
                kernel["listing"].is_string()
            );
            kernel["listing"].is_string()
        });
        assert_eq!(is_listed, [true, false, true]);
    }

    #[test]
    fn explain_has_the_stairs_and_the_curve() {
        let document = json!({
            "schema": "warpwright.explain/1", "input": "k.ptx", "gpu": "sm_90",
            "kernels": [{
                "kernel": "k", "block": [32, 1, 1], "block_source": "ran", "grid": 7, "idle_sms": 125,
                "resources": {"registers": 10, "stack_bytes": 0, "shared_bytes": 0},
                "residency": null, "staircase": [{"blocks": 1, "warps": 8, "percent": 12.5, "regs": 255}],
                "pressure": {"peak_units": 7, "instructions": 2, "loop_depth": 0, "curve": [3, 7],
                    "peaks": [{"first": 1, "last": 1, "units": 7, "line": null, "text": "ret"}],
                    "crossing": [{"register": "%f9", "units": 1, "length": 90, "uses": 2, "line": null,
                        "defined_by": "mov"}]}}]
        });
        let html = page(&document).unwrap();
        assert_eq!(html.matches("<svg").count(), 2);
        assert!(html.contains("255"));
        assert!(
            !html.to_lowercase().contains("none<"),
            "what is not known is left out"
        );
        // The launch that it goes by.
        let launch = launched(([32, 1, 1], BlockSource::Ran), (Some(7), Some(125)), "");
        assert!(html.contains(&launch), "{launch}\n{html}");
    }

    #[test]
    fn explain_has_the_numbers_of_stencils() {
        let document = json!({
            "schema": "warpwright.explain/1", "input": "s.stencil", "kernels": [],
            "stencils": [{"stencil": "j2d25pt", "points": ["2 <= j < M-2"], "unroll": 4, "order": 2, "arrays": 2,
                "flops_per_point": 33, "accessed_per_thread": 104, "unique_per_thread": 44, "reassociate": false}]
        });
        let html = page(&document).unwrap();
        for part in [
            "j2d25pt",
            "2 &lt;= j &lt; M-2",
            "33 floating",
            "104 array elements and scalar parameters, 44",
            "stay as written",
        ] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn check_shows_every_function_and_what_the_proof_rests_on() {
        let document = json!({
            "schema": "warpwright.check/1", "original": "a.cubin", "rewritten": "b.cubin", "how": "symbolically",
            "verdict": "refuted", "functions": [
                {"name": "_Z1kPf", "verdict": "proved", "text": "proved", "promises": {"dynamic_smem": 512}},
                {"name": "g", "verdict": "refuted", "text": "refuted: [1] differs\n  a <b> c"}]
        });
        let html = page(&document).unwrap();
        for part in [
            "a.cubin and b.cubin",
            "k(float*)",
            "512",
            "refuted: [1] differs\n  a &lt;b&gt; c",
        ] {
            assert!(html.contains(part), "{part}");
        }
        assert_eq!(html.matches("class=\"verdict ").count(), 2);
    }

    #[test]
    fn check_shows_the_first_difference_and_the_counterexample() {
        let side = |place: &str, value: &str| {
            json!({"place": place, "value": value, "around": [
                {"line": 13, "text": "add <1>", "is_it": false}, {"line": 14, "text": "st", "is_it": true}]})
        };
        let document = json!({
            "schema": "warpwright.check/1", "original": "a.ptx", "rewritten": "b.ptx", "how": "symbolically",
            "verdict": "refuted", "functions": [{"name": "k", "verdict": "refuted", "text": "refuted: at length",
                "tried": [{"rung": "symbolically", "found": "in-form"}, {"rung": "emulator", "found": "different"}],
                "witness": {"kernel": "k", "blocks": 2, "block": [64, 1, 1], "number": 40, "kind": "word",
                    "parameter": "out", "word": 7, "was": 0x3f80_0000_u32, "is": 0xffff_ffff_u32},
                "difference": {"what": "with n = 40", "cause": null, "original": side("a.ptx:14: st", "x"),
                    "rewritten": side("b.ptx:14: st", "<y>"), "path": ["a.ptx:8: ld"]}}]
        });
        let html = page(&document).unwrap();
        for (part, times) in [
            ("<tr class=\"chosen\"><td>14</td>", 2),
            ("add &lt;1&gt;", 2),
            ("&lt;y&gt;", 1),
            ("0x3f800000", 1),
            ("<code>1.0</code>", 1),
            ("<code>-1</code>", 1),
            ("<code>NaN</code>", 1),
            ("word 7 of <code>out</code>", 1),
            ("2 blocks of 64 threads", 1),
            ("a.ptx:8: ld", 1),
            ("refuted: at length", 0),
        ] {
            assert_eq!(html.matches(part).count(), times, "{part}\n{html}");
        }
    }

    #[test]
    fn source_to_source_shows_every_version_and_the_comparison() {
        let naive = json!({
            "schema": "warpwright.naive-opt/1", "input": "mm.cu", "kernel": "mm", "gpu": "sm_90",
            "accesses": ["a[i]: <same> for a warp"], "chosen": 1, "original_ms": 2.0, "reordered": false,
            "versions": [
                {"schedule": "tiles 8", "predicted_ms": 1.5, "bound": "traffic", "rejected": "nvcc refuses it"},
                {"schedule": "tiles 16", "predicted_ms": 0.5, "bound": "issue", "rejected": null}],
            "steps": ["step one"], "checked": {"kernels": ["mm_w"], "sizes": [[], []], "distance": 0.0, "shrunk": false},
            "unchecked": null, "launches": 1, "output": "out.cu"
        });
        let html = page(&naive).unwrap();
        for part in [
            "tiles 16",
            "4.00 times",
            "nvcc refuses it",
            "&lt;same&gt;",
            "step one",
            "2 launches",
        ] {
            assert!(html.contains(part), "{part}");
        }
        assert_eq!(html.matches("<tr class=\"chosen\">").count(), 1);
        let stencil = json!({
            "schema": "warpwright.stencil-opt/2", "input": "s.cu", "stencil": "f", "gpu": "h200",
            "sizes": [["n", 64]], "reassociate": false, "chosen": 0, "launches": null, "left": ["a use"],
            "versions": [{"family": "original", "plan": "block 128x1x1", "predicted_ms": 0.5, "rejected": null}],
            "checked": null, "unchecked": "there is no nvcc", "output": null
        });
        let html = page(&stencil).unwrap();
        for part in [
            "block 128x1x1",
            "n = 64",
            "there is no nvcc",
            "A use",
            "It stays as it is",
        ] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn a_rewrite_is_judged_before_its_launches() {
        let document = json!({
            "schema": "warpwright.rewrite/1", "original": "a.cu", "rewritten": "b.cu", "verdict": "refuted",
            "meaning": "not the same", "launches": [
                {"size": "small", "verdict": "tested", "elements": 7, "terms": 5,
                 "why": [{"code": "alike", "text": "1 of 7 blocks"}]},
                {"size": "small", "set": ["n=3"], "verdict": "refuted", "elements": 9, "terms": 1,
                 "why": [{"code": "race", "text": "a race in `<tile>`"}]}],
            "holds_where": {"text": "right where n % 4 == 0"}
        });
        let html = page(&document).unwrap();
        let parts = [
            "a.cu and b.cu",
            "refuted: not the same; 2 launches tried",
            "small with n=3, refuted:</span> a race in <code>&lt;tile&gt;</code>",
            "small, tested:</span> 1 of 7 blocks",
            "Right where n % 4 == 0",
            "<tr><td>small</td>",
            "<tr class=\"wrong\"><td>small with n=3</td>",
        ];
        let place = |part: &&str| html.find(*part).unwrap_or_else(|| panic!("{part}\n{html}"));
        let places: Vec<usize> = parts.iter().map(place).collect();
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn a_tuned_program_leads_to_its_kernels() {
        let document = json!({
            "schema": "warpwright.tune-in-place/1", "gpu": "NVIDIA H200", "program": ["./a.out", "<n>"], "date": "today",
            "kernels": [
                {"kernel": "_Z1kPf", "name": "k(float*)", "digest": "12", "class": "block 256", "share": 0.75,
                 "candidates": 9, "original_ns": 4000.0, "winner_ns": 3000.0, "in_program": 0.8, "winner": "unroll(8)",
                 "stays": null, "edit": {"text": "`#pragma unroll 8` at its loops", "gives": {"measured": 0.8}}},
                {"kernel": "g", "name": "g", "digest": "13", "class": "block 32", "share": 0.25, "candidates": 0,
                 "original_ns": null, "winner_ns": null, "in_program": null, "winner": null, "stays": "it calls <assert>"}]
        });
        let html = page(&document).unwrap();
        for part in [
            "a.out &lt;n&gt;</h1>",
            "href=\"#kernel-1\"",
            "id=\"kernel-2\"",
            "75% of the GPU time",
            "unroll(8)",
            "1.25 times as fast in the program",
            "<code>#pragma unroll 8</code> at its loops (measured 0.80 of the time)",
            "it calls &lt;assert&gt;",
        ] {
            assert!(html.contains(part), "{part}\n{html}");
        }
    }

    #[test]
    fn other_documents_are_refused() {
        assert!(matches!(
            page(&json!({"schema": "x/1"})),
            Err(ReportError::UnknownSchema(_))
        ));
        let odd = json!({"schema": "warpwright.opt/1", "kernels": [{"name": 3}]});
        assert!(matches!(page(&odd), Err(ReportError::Document(_))));
    }
}
