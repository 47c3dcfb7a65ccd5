//! The listing of a kernel on the page: source, PTX and machine code side by side, a row per line or instruction.
//!
//! Rows say what they belong to: `data-k` is a line of the source, `data-q` an instruction of the PTX. The page's script
//! marks the rows of the other panes that belong to the chosen one. A row is one element, its columns are text, so that
//! a kernel of 10,000 instructions stays a page of one or two megabytes.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

use crate::svg::escape;
use warpwright_diag::count;

/// With more rows than that the code of a listing is folded at first, and all of it where there is no source.
const OPEN: usize = 1500;

/// The lines of the source that rows of a kernel belong to, numbered by their first occurrence.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    numbers: BTreeMap<String, usize>,
    names: Vec<String>,
}

impl Lines {
    /// All lines of a kernel of `explain`: those of the source, of the PTX, of the machine code.
    pub(crate) fn of(kernel: &Value) -> Lines {
        let mut lines = Lines::default();
        let quoted = list(&kernel["source"]).filter_map(|row| row["line"].as_str());
        let sides = ["pressure", "machine_code"].map(|side| &kernel[side]);
        let named = sides.into_iter().flat_map(|side| list(&side["lines"]));
        for line in quoted.chain(named.filter_map(Value::as_str)) {
            if !lines.numbers.contains_key(line) {
                lines.numbers.insert(line.to_owned(), lines.names.len());
                lines.names.push(line.to_owned());
            }
        }
        lines
    }

    /// The anchor of a line in the listing of the kernel `id`.
    pub(crate) fn anchor(&self, id: &str, line: &str) -> Option<String> {
        Some(format!("{id}-L{}", self.numbers.get(line)?))
    }
}

/// A pane under construction.
struct Pane {
    title: &'static str,
    head: String,
    rows: Vec<Row>,
    /// The row that is chosen at first.
    first: usize,
}

#[derive(Default)]
struct Row {
    line: Option<usize>,
    origin: Option<u64>,
    /// Percent of the peak.
    pressure: Option<u64>,
    is_peak: bool,
    follows_gap: bool,
    text: String,
}

/// The listing of a kernel of `explain`; `None` where it has no code.
pub(crate) fn listing(kernel: &Value, id: &str, lines: &Lines) -> Option<String> {
    let is_ptx = !kernel["machine_code"].is_null() || !kernel["usage"].is_null();
    let title = if is_ptx { "PTX" } else { "Machine code" };
    let mut panes = Vec::new();
    panes.extend(source(kernel, lines));
    panes.extend(code(kernel, &kernel["pressure"], title, lines));
    panes.extend(code(kernel, &kernel["machine_code"], "Machine code", lines));
    panes.retain(|pane| !pane.rows.is_empty());
    if panes.iter().all(|pane| pane.title == SOURCE) {
        return None;
    }
    let rows: usize = panes.iter().map(|pane| pane.rows.len()).sum();
    let has_source = panes.iter().any(|pane| pane.title == SOURCE);
    let sizes: Vec<String> = panes
        .iter()
        .map(|pane| format!("{}: {}", pane.title, count(pane.rows.len(), "row")))
        .collect();
    let names: Vec<String> = lines.names.iter().map(|name| escape(name)).collect();
    let mut out = format!(
        "<details class=\"listing\"{} data-names=\"{}\"><summary>{}</summary>\
         <p class=\"soft\" role=\"status\">{}</p><div class=\"panes\">",
        if rows <= OPEN || has_source {
            " open"
        } else {
            ""
        },
        names.join("\n"),
        sizes.join(", "),
        if panes.len() > 1 {
            "Click a row, or press an arrow key: what belongs to it is marked. L: a line that loads or stores an array in \
             local memory."
        } else {
            ""
        },
    );
    let mut anchored = vec![false; lines.names.len()];
    for pane in &panes {
        let widest = pane.rows.iter().map(|row| row.text.chars().count()).max();
        let _ = write!(
            out,
            "<details class=\"pane\"{}><summary>{}</summary><div class=\"head\" aria-hidden=\"true\">{}</div>\
             <ol{} tabindex=\"0\" aria-label=\"{}\" data-first=\"{}\" style=\"--w:{}\">",
            if rows <= OPEN || pane.title == SOURCE || !has_source {
                " open"
            } else {
                ""
            },
            pane.title,
            pane.head,
            if pane.title == SOURCE {
                ""
            } else {
                " class=\"bars\""
            },
            pane.title,
            pane.first,
            widest.unwrap_or(0)
        );
        for row in &pane.rows {
            out.push_str("<li");
            match (row.is_peak, row.follows_gap) {
                (true, _) => out.push_str(" class=top"),
                (false, true) => out.push_str(" class=gap"),
                (false, false) => {}
            }
            if let Some(line) = row.line {
                if !std::mem::replace(&mut anchored[line], true) {
                    let _ = write!(out, " id={id}-L{line}");
                }
                let _ = write!(out, " data-k={line}");
            }
            if let Some(origin) = row.origin {
                let _ = write!(out, " data-q={origin}");
            }
            if let Some(pressure) = row.pressure {
                let _ = write!(out, " style=--p:{pressure}");
            }
            let _ = writeln!(out, ">{}</li>", escape(&row.text));
        }
        out.push_str("</ol></details>");
    }
    out.push_str("<i hidden></i></div></details>");
    Some(out)
}

const SOURCE: &str = "Source";

/// What stands in the margin of a line of the source.
#[derive(Debug, Clone, Copy, Default)]
struct Margin {
    /// Percent of the cycles, where the model has them.
    cycles: f64,
    /// The highest pressure among its instructions, of the machine code where there is one.
    registers: u64,
    /// Does it load or store an array in local memory?
    is_local: bool,
}

impl Margin {
    fn text(self) -> String {
        let cycles = match self.cycles {
            ..0.05 => String::new(),
            cycles => format!("{cycles:.1}"),
        };
        let registers = match self.registers {
            0 => String::new(),
            registers => registers.to_string(),
        };
        let local = if self.is_local { "L" } else { "" };
        format!("{cycles:>5} {registers:>4} {local:<1}")
    }
}

/// The margins of the lines that have one.
fn margins(kernel: &Value) -> BTreeMap<&str, Margin> {
    let mut all: BTreeMap<&str, Margin> = BTreeMap::new();
    let each: Vec<f64> = list(&kernel["causes"]["each"])
        .filter_map(Value::as_f64)
        .collect();
    let total: f64 = each.iter().sum();
    let side = match &kernel["machine_code"] {
        Value::Null => &kernel["pressure"],
        code => code,
    };
    for (at, line) in list(&side["lines"]).enumerate() {
        let Some(line) = line.as_str() else { continue };
        let margin = all.entry(line).or_default();
        let units = side["curve"][at].as_u64().unwrap_or(0);
        margin.registers = margin.registers.max(units);
        if let Some(cycles) = each.get(at).filter(|_| total > 0.0) {
            margin.cycles += 100.0 * cycles / total;
        }
    }
    for line in list(&kernel["local_arrays"]).flat_map(|array| list(&array["lines"])) {
        if let Some(line) = line.as_str() {
            all.entry(line).or_default().is_local = true;
        }
    }
    all
}

/// The lines of the source at hand; behind them those of other files that have code, by name.
fn source(kernel: &Value, lines: &Lines) -> Option<Pane> {
    let quoted: Vec<&Value> = list(&kernel["source"]).collect();
    if quoted.is_empty() {
        return None;
    }
    let number = |line: &str| line.rsplit(':').next()?.parse::<u32>().ok();
    let margins = margins(kernel);
    let margin = |line: &str| margins.get(line).copied().unwrap_or_default().text();
    let mut before = None;
    let mut rows = Vec::new();
    // Where most of the cycles go, or else the first line that has code.
    let (mut first, mut most) = (None, 0.0);
    for row in &quoted {
        let (Some(line), Some(text)) = (row["line"].as_str(), row["text"].as_str()) else {
            continue;
        };
        let at = number(line).unwrap_or(0);
        if let Some(own) = margins.get(line)
            && (first.is_none() || own.cycles > most)
        {
            (first, most) = (Some(rows.len()), own.cycles);
        }
        rows.push(Row {
            line: lines.numbers.get(line).copied(),
            follows_gap: before.is_some_and(|before| at != before + 1),
            text: format!("{at:>5} {} {}", margin(line), text.replace('\t', "    ")),
            ..Row::default()
        });
        before = Some(at);
    }
    for (at, name) in lines.names.iter().enumerate().skip(rows.len()) {
        rows.push(Row {
            line: Some(at),
            follows_gap: at == quoted.len(),
            text: format!("      {} {name}", margin(name)),
            ..Row::default()
        });
    }
    Some(Pane {
        title: SOURCE,
        head: " line  cyc% regs L".to_owned(),
        rows,
        first: first.unwrap_or(0),
    })
}

/// One side: index, registers, loops, share of the cycles where the model has them, text.
fn code(kernel: &Value, side: &Value, title: &'static str, lines: &Lines) -> Option<Pane> {
    let texts: Vec<&str> = list(&side["texts"]).filter_map(Value::as_str).collect();
    let is_code = title != "PTX";
    let each: Vec<f64> = list(&kernel["causes"]["each"])
        .filter_map(Value::as_f64)
        .collect();
    let total: f64 = each.iter().sum();
    let has_cycles = is_code && each.len() == texts.len() && total > 0.0;
    let peak = side["peak_units"].as_u64()?;
    let number = |column: &str, at: usize| side[column][at].as_u64();
    let row = |(at, text): (usize, &&str)| {
        let units = number("curve", at).unwrap_or(0);
        let depth = number("depths", at).filter(|&depth| depth > 0);
        let mut shown = format!("{at:>5} {units:>4} ");
        let _ = match depth {
            Some(depth) => write!(shown, "{depth:>2} "),
            None => write!(shown, "   "),
        };
        if has_cycles {
            let share = 100.0 * each[at] / total;
            let _ = match share >= 0.05 {
                true => write!(shown, "{share:>4.1} "),
                false => write!(shown, "     "),
            };
        }
        shown += text;
        Row {
            line: side["lines"][at]
                .as_str()
                .and_then(|line| lines.numbers.get(line).copied()),
            origin: match is_code {
                true => number("origins", at),
                // An instruction of the PTX belongs to itself.
                false => Some(at as u64),
            },
            pressure: (peak > 0).then(|| 100 * units / peak),
            is_peak: units == peak,
            follows_gap: false,
            text: shown,
        }
    };
    Some(Pane {
        title,
        head: format!("   at regs lp {}", if has_cycles { "cyc% " } else { "" }),
        rows: texts.iter().enumerate().map(row).collect(),
        first: number_of_first(side),
    })
}

/// The first instruction of the highest peak.
fn number_of_first(side: &Value) -> usize {
    let first = side["peaks"][0]["first"].as_u64();
    first.and_then(|at| usize::try_from(at).ok()).unwrap_or(0)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kernel() -> Value {
        json!({
            "source": [{"line": "k.cu:3", "text": "\tx = a<b;"}, {"line": "k.cu:9", "text": "y();"}],
            "pressure": {"peak_units": 4, "curve": [2, 4], "lines": ["k.cu:3", "o.h:7"], "depths": [0, 1],
                "texts": ["add", "mul"], "origins": [], "peaks": [{"first": 1}]},
            "machine_code": {"peak_units": 8, "curve": [8, 2], "lines": ["k.cu:9", null], "depths": [0, 0],
                "texts": ["IADD3", "EXIT"], "origins": [1, null], "peaks": [{"first": 0}]},
            "causes": {"each": [3.0, 1.0]}, "local_arrays": [{"lines": ["k.cu:3"]}]
        })
    }

    #[test]
    fn rows_say_what_they_belong_to() {
        let kernel = kernel();
        let html = listing(&kernel, "k1", &Lines::of(&kernel)).unwrap();
        for row in [
            "<li id=k1-L0 data-k=0>    3            L     x = a&lt;b;</li>",
            "<li class=gap id=k1-L1 data-k=1>    9  75.0    8   y();</li>",
            "<li class=gap id=k1-L2 data-k=2>                   o.h:7</li>",
            "<li data-k=0 data-q=0 style=--p:50>    0    2    add</li>",
            "<li class=top data-k=2 data-q=1 style=--p:100>    1    4  1 mul</li>",
            "<li class=top data-k=1 data-q=1 style=--p:100>    0    8    75.0 IADD3</li>",
            "<li style=--p:25>    1    2    25.0 EXIT</li>",
        ] {
            assert_eq!(html.matches(row).count(), 1, "{row}\n{html}");
        }
        assert!(html.contains("data-names=\"k.cu:3\nk.cu:9\no.h:7\""));
        // The source opens where most of the cycles go.
        assert!(html.contains("aria-label=\"Source\" data-first=\"1\""));
    }

    #[test]
    fn without_source_or_ptx_there_are_fewer_panes() {
        let mut kernel = kernel();
        let panes = |kernel: &Value| {
            let html = listing(kernel, "k", &Lines::of(kernel));
            html.map_or(0, |html| html.matches("<ol").count())
        };
        assert_eq!(panes(&kernel), 3);
        kernel["source"] = json!([]);
        assert_eq!(panes(&kernel), 2);
        kernel["machine_code"] = Value::Null;
        assert_eq!(panes(&kernel), 1);
        kernel["pressure"] = Value::Null;
        assert_eq!(panes(&kernel), 0);
    }

    #[test]
    fn large_kernels_are_folded_and_small() {
        let count = 10_000;
        let side = |text: &str| {
            json!({"peak_units": 200, "curve": vec![150; count], "lines": vec!["k.cu:1"; count],
                "texts": vec![text; count], "depths": vec![1; count], "origins": vec![5; count], "peaks": []})
        };
        let mut kernel = kernel();
        kernel["pressure"] = side("fma.rn.f32 \t%f1000, %f1001, %f1002, %f1003");
        kernel["machine_code"] = side("FFMA R100, R101, R102, R103");
        let html = listing(&kernel, "k", &Lines::of(&kernel)).unwrap();
        // The source is seen at once, what was made of it is not.
        assert!(html.starts_with("<details class=\"listing\" open"));
        assert_eq!(html.matches("<details class=\"pane\" open>").count(), 1);
        assert_eq!(html.matches("<details class=\"pane\">").count(), 2);
        assert!(html.len() < 2_500_000, "{} bytes", html.len());
        kernel["source"] = json!([]);
        let html = listing(&kernel, "k", &Lines::of(&kernel)).unwrap();
        assert!(!html.starts_with("<details class=\"listing\" open"));
    }
}
