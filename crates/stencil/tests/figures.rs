//! The worked figures of the paper, as data: `schedule/*.tree`.
//!
//! A file holds a DAG in its text form; `// written` in a line of its own forbids reassociation. A
//! line `//? COMMAND` asks for something, the lines `//= TEXT` after it are the answer:
//!
//! - `dag`: the trees as they print; they must parse back to the same DAG;
//! - `su`: the Sethi–Ullman number of each tree;
//! - `su' [in=A,B] [out=C]`: su' of each tree by itself, in that context, searched exactly;
//! - `steps [atomic]`: the schedule, with the values alive before and after each step;
//! - `maxlive`: MAXLIVE of the trees one after the other, and after interleaving.
//!
//! `WARPWRIGHT_BLESS=1` rewrites the answers.

#![allow(clippy::unwrap_used)]

mod dag;

use std::path::{Path, PathBuf};

use dag::{describe, parse, su, text, validate};
use warpwright_stencil::schedule::dag::{Dag, Order};
use warpwright_stencil::schedule::labels::LabelSet;
use warpwright_stencil::schedule::order_trees::order_trees;
use warpwright_stencil::schedule::schedule_dag::{atomic, schedule};
use warpwright_stencil::schedule::schedule_tree::{Options, Scheduler};
use warpwright_stencil::schedule::straight::Context;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schedule");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

fn labels(dag: &Dag, names: &str) -> LabelSet {
    let find = |name: &str| {
        let found = dag.labels.iter().find(|(_, data)| data.name == name);
        found.unwrap_or_else(|| panic!("no label `{name}`")).0
    };
    names
        .split(',')
        .filter(|n| !n.is_empty())
        .map(find)
        .collect()
}

fn context(dag: &Dag, words: &[&str]) -> Context {
    let set = |key: &str| {
        let found = words
            .iter()
            .find_map(|w| w.strip_prefix(key)?.strip_prefix('='));
        labels(dag, found.unwrap_or(""))
    };
    Context {
        live_in: set("in"),
        live_out: set("out"),
    }
}

fn answer(dag: &Dag, order: Order, question: &str) -> String {
    let words: Vec<&str> = question.split_whitespace().collect();
    let exact = Options {
        d: 0,
        ..Options::default()
    };
    let trees = order_trees(dag);
    let mut told = String::new();
    match words[0] {
        "dag" => {
            told = text(dag);
            let again = parse(&told, order).unwrap();
            assert_eq!(text(&again), told);
            assert_eq!(again.nodes.len(), dag.nodes.len());
        }
        "su" | "su'" => {
            for tree in dag.trees.values() {
                let number = match words[0] {
                    "su" => su(dag, tree.root),
                    _ => Scheduler::new(dag, exact).su(tree.root, &context(dag, &words)),
                };
                told += &format!("{} {number}\n", dag.labels[tree.target].name);
            }
        }
        "steps" => {
            let steps = match words.contains(&"atomic") {
                true => atomic(dag, &trees, exact).0,
                false => schedule(dag, &trees, exact).steps,
            };
            validate(dag, &steps).unwrap();
            told = describe(dag, &steps, &Context::default());
        }
        "maxlive" => {
            let found = schedule(dag, &trees, exact);
            validate(dag, &found.steps).unwrap();
            told = format!("atomic {}, interleaved {}\n", found.atomic, found.max_live);
        }
        other => panic!("unknown question `{other}`"),
    }
    told
}

#[test]
fn figures() {
    let bless = std::env::var_os("WARPWRIGHT_BLESS").is_some();
    let mut wrong = Vec::new();
    for file in files() {
        let source = std::fs::read_to_string(&file).unwrap();
        let order = match source.lines().any(|l| l.trim() == "// written") {
            true => Order::Written,
            false => Order::Any,
        };
        let dag = parse(&source, order).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        let mut told = String::new();
        for line in source.lines().filter(|l| !l.starts_with("//=")) {
            told += &format!("{line}\n");
            if let Some(question) = line.strip_prefix("//? ") {
                let answer = answer(&dag, order, question);
                answer.lines().for_each(|l| told += &format!("//= {l}\n"));
            }
        }
        if told != source {
            match bless {
                true => std::fs::write(&file, told).unwrap(),
                false => wrong.push(format!("{}:\n{told}", file.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "other answers:\n{}", wrong.join("\n"));
}
