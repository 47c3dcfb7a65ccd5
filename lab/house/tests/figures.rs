//! Figures of measurements in README and docs come from committed result files: `lab/house/figures.json` says for each
//! which file and what of it, and this test takes it from there. Tables between `<!-- kind -->` are held against their
//! results by `report`'s tests. What no line of the list covers is counted by page, so that it becomes less.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

fn read(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn list() -> Value {
    serde_json::from_str(&read("lab/house/figures.json")).unwrap()
}

/// The cells of the rows of a page's tables: below a heading, with so many columns, if these are named.
fn rows(of: &Value) -> Vec<Vec<String>> {
    let text = read(of["table"].as_str().unwrap());
    let section = of["section"].as_str();
    let mut is_in = section.is_none();
    let mut rows = Vec::new();
    for line in text.lines() {
        if let (Some(heading), Some(section)) = (line.strip_prefix("## "), section) {
            is_in = heading == section;
        }
        if let (true, Some(cells)) = (is_in, line.strip_prefix("| ")) {
            let cells = cells.trim_end_matches('|').split('|');
            rows.push(cells.map(|cell| cell.trim().replace("**", "")).collect());
        }
    }
    let columns = of["columns"].as_u64();
    rows.retain(|row: &Vec<String>| columns.is_none_or(|columns| row.len() as u64 == columns));
    rows
}

/// The first number of a cell: its row by the first cell (and, of several, by number), its column by number.
fn cell(of: &Value) -> f64 {
    let rows = rows(of);
    let mut named = rows
        .iter()
        .filter(|row| *row[0] == *of["row"].as_str().unwrap());
    let row = named.nth(of["nth"].as_u64().unwrap_or(0) as usize);
    let row = row.unwrap_or_else(|| panic!("no row for {of}"));
    let text = &row[of["column"].as_u64().unwrap() as usize];
    text.split(' ').next().unwrap().parse().unwrap()
}

/// The mean (geometric), the least or the most of one column over another, where both have numbers.
fn ratio(of: &Value) -> f64 {
    let columns = ["column", "over"].map(|name| of[name].as_u64().unwrap() as usize);
    let number = |row: &Vec<String>, at: usize| row.get(at)?.parse::<f64>().ok();
    let each = rows(of)
        .into_iter()
        .filter(|row| row[0] != "geometric mean");
    let ratios: Vec<f64> = each
        .filter_map(|row| Some(number(&row, columns[0])? / number(&row, columns[1])?))
        .collect();
    match of["take"].as_str().unwrap() {
        "mean" => {
            let sum: f64 = ratios.iter().map(|r| r.ln()).sum();
            (sum / ratios.len() as f64).exp()
        }
        "least" => ratios.iter().copied().fold(f64::INFINITY, f64::min),
        _ => ratios.iter().copied().fold(0.0, f64::max),
    }
}

/// The least median of a kernel's builds of a suite: those whose name has a word, or those that ptxas alone makes.
fn least(of: &Value) -> f64 {
    const OURS: [&str; 7] = [
        "reduce",
        "allocate",
        "throttle",
        "to-shared",
        "schedule",
        "demote",
        "compact",
    ];
    let suite: Value = serde_json::from_str(&read(of["result"].as_str().unwrap())).unwrap();
    let kernels = suite["kernels"].as_array().unwrap();
    let kernel = kernels
        .iter()
        .find(|k| k["report"]["name"] == of["kernel"])
        .unwrap();
    let variants = kernel["measurements"]["variants"]
        .as_array()
        .unwrap()
        .iter();
    let is_meant = |id: &str| match of["with"].as_str() {
        Some(word) => id.contains(word),
        None => !OURS.iter().any(|word| id.contains(word)),
    };
    let meant = variants.filter(|variant| is_meant(variant["id"].as_str().unwrap()));
    meant
        .filter_map(|variant| variant["ratio"]["median"].as_f64())
        .fold(f64::INFINITY, f64::min)
}

/// A number of a result, by its JSON pointer.
fn at(of: &Value) -> f64 {
    let result: Value = serde_json::from_str(&read(of["result"].as_str().unwrap())).unwrap();
    let found = result.pointer(of["pointer"].as_str().unwrap());
    found
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("nothing for {of}"))
}

fn value(entry: &Value) -> f64 {
    for (name, take) in [
        ("cell", cell as fn(&Value) -> f64),
        ("ratio", ratio),
        ("least", least),
        ("at", at),
    ] {
        if let Some(of) = entry.get(name) {
            return take(of);
        }
    }
    panic!("{entry} says nothing")
}

#[test]
fn figures_are_what_the_results_say() {
    for entry in list()["figures"].as_array().unwrap() {
        let (page, figure) = (
            entry["page"].as_str().unwrap(),
            entry["figure"].as_str().unwrap(),
        );
        assert!(
            numbers(&read(page)).contains(figure),
            "{page} does not say {figure}"
        );
        let digits = figure.split('.').nth(1).map_or(0, str::len);
        let found = format!("{:.digits$}", value(entry));
        assert_eq!(found, figure, "{entry}");
    }
}

/// Numbers with two decimals and more in what people wrote: no code, no generated table, no version (`13.0.88`).
fn numbers(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let (mut is_code, mut is_generated) = (false, false);
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        if line.starts_with("<!-- ") {
            is_generated = !line.starts_with("<!-- /");
        }
        if is_code || is_generated {
            continue;
        }
        let prose = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        for word in prose.split(|c: char| !c.is_ascii_alphanumeric() && !"./_-#".contains(c)) {
            let word = word.trim_end_matches('.');
            let is_figure = word.split_once('.').is_some_and(|(whole, part)| {
                let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
                !whole.is_empty() && is_digits(whole) && part.len() > 1 && is_digits(part)
            });
            if is_figure {
                found.insert(word.to_owned());
            }
        }
    }
    found
}

#[test]
fn figures_without_a_line_in_the_list_become_fewer() {
    let list = list();
    let mut covered: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for entry in list["figures"].as_array().unwrap() {
        let page = covered.entry(entry["page"].as_str().unwrap()).or_default();
        page.insert(entry["figure"].as_str().unwrap());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec!["README.md".to_owned(), "bench/README.md".to_owned()];
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        pages.extend(name.ends_with(".md").then(|| format!("docs/{name}")));
    }
    let mut wrong = Vec::new();
    for page in pages {
        let found = numbers(&read(&page));
        let known = covered.get(&*page).cloned().unwrap_or_default();
        let open: Vec<&String> = found
            .iter()
            .filter(|f| !known.contains(f.as_str()))
            .collect();
        let stated = list["open"][&page].as_u64().unwrap_or(0);
        if open.len() as u64 != stated {
            wrong.push(format!(
                "{page}: {} open, {stated} stated: {open:?}",
                open.len()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "more need a line each, fewer a smaller number:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn what_is_a_figure() {
    let page = "takes 0.649 (1.55 times), not `2.22`, ptxas 13.0.88, ISA 9.0, x-1.25, [f](a/1.75.md).\n```\n3.33\n```\n\
                <!-- t -->\n| 4.44 |\n<!-- /t -->\nends with 5.55.";
    let found: Vec<String> = numbers(page).into_iter().collect();
    assert_eq!(found, ["0.649", "1.55", "5.55"]);
}
