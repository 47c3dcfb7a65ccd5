//! Derives the instruction tables of `warpwright-sass` from the corpus and nvdisasm
//! (docs/sass.md).
//!
//! Counterexamples drive it: as long as there are instances that no form explains, some of them become
//! seeds, each seed yields a form, and the forms are tried on all instances again.

mod assemble;
mod corpus;
mod oracle;
pub mod report;
mod seed;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use warpwright_sass::isa::form::{Form, Piece};
use warpwright_sass::isa::print;
use warpwright_sass::isa::table::Table;
use warpwright_toolkit::{FindOptions, Toolkit};

use corpus::{Corpus, Instance};
use oracle::{Oracle, normalise};
use seed::Seed;
use tokens::Parsed;

use crate::Error;

/// What to derive.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The architecture, for example 90.
    #[arg(long)]
    sm: u32,
    /// Folders with cubins (searched with their subfolders); those for other architectures are passed over.
    #[arg(long, required = true, num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// The table to write.
    #[arg(long)]
    out: PathBuf,
    /// A table whose forms are kept: only what they do not explain is derived. Sightings add up, so the
    /// corpus must be one that the table has not seen.
    #[arg(long)]
    extend: Option<PathBuf>,
    /// Of the corpus only the opcodes of which it has something that no form explains.
    #[arg(long)]
    lacking: bool,
    /// Rounds of seeds at most.
    #[arg(long, default_value_t = 40)]
    rounds: usize,
    /// Instances per opcode that are looked at while deriving (all are counted at the end).
    #[arg(long, default_value_t = 4000)]
    instances: usize,
    /// Prints up to this many texts that the table does not reproduce.
    #[arg(long, default_value_t = 40)]
    show: usize,
}

/// Instances of one opcode that are not explained, and what has been tried.
#[derive(Default)]
struct Work<'a> {
    instances: Vec<&'a Instance>,
    shapes: BTreeMap<String, u128>,
    varying: u128,
    tried: BTreeSet<u128>,
    forms: Vec<Form>,
}

/// Derives a table, writes it, and says how large it is.
pub fn run(options: &Options) -> Result<String, Error> {
    let toolkit = Toolkit::find(&FindOptions::default())?;
    let mut oracle = Oracle::new(toolkit.nvdisasm()?, options.sm);
    let known = known(options.extend.as_deref())?;
    let lacking = options.lacking.then(|| Table::new(known.clone()));
    let corpus = Corpus::load(&options.corpus, options.sm, &mut oracle, lacking.as_ref())?;
    eprintln!(
        "sm_{}: {} instances, {} distinct, {} more that nvdisasm refuses",
        options.sm,
        corpus.total,
        corpus.instances.len(),
        corpus.refused,
    );
    let mut work = split(&corpus, options.instances);
    for form in &known {
        let work = work.entry(form.opcode).or_default();
        work.forms.push(form.clone());
    }
    for round in 0..options.rounds {
        let limit = if round == 0 { 1 } else { 6 };
        let mut seeds = choose_seeds(&mut work, limit);
        if seeds.is_empty() {
            refill(&mut work, &corpus);
            seeds = choose_seeds(&mut work, limit);
        }
        if seeds.is_empty() {
            break;
        }
        let count = seeds.len();
        let forms = derive(seeds, &mut oracle)?;
        let made = forms.len();
        for form in forms {
            if let Some(work) = work.get_mut(&form.opcode) {
                add(&mut work.forms, form);
            }
        }
        eprintln!(
            "round {round}: {count} seeds, {made} forms, {} asked",
            oracle.asked
        );
    }
    refill(&mut work, &corpus);
    work.par_iter_mut().for_each(|(_, work)| {
        prune(work);
        thin(work, &known);
    });
    let forms = work.into_values().flat_map(|w| w.forms).collect();
    let table = confirm(Table::new(forms), &corpus, options.show, &known);
    let text = heading(options.sm) + &table.print();
    std::fs::write(&options.out, text).map_err(|e| Error::File(options.out.clone(), e))?;
    Ok(format!("{} forms", table.forms().len()))
}

/// The forms of the table that is to be extended.
fn known(path: Option<&Path>) -> Result<Vec<Form>, Error> {
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    let text = std::fs::read_to_string(path).map_err(|e| Error::File(path.to_owned(), e))?;
    let table = Table::parse(&text).map_err(|e| Error::Input(path.to_owned(), e.to_string()))?;
    Ok(table.forms().to_vec())
}

/// Adds a form. Of one with the same fixed bits it takes over the texts that it lacks itself.
fn add(forms: &mut Vec<Form>, mut form: Form) {
    let same = |f: &Form| (f.mask(), f.value) == (form.mask(), form.value);
    if let Some(at) = forms.iter().position(same) {
        let old = forms.remove(at);
        if old.fields == form.fields && old.pieces.len() == form.pieces.len() {
            for (new, old) in form.pieces.iter_mut().zip(old.pieces) {
                let (Piece::Choice(new), Piece::Choice(old)) = (new, old) else {
                    continue;
                };
                for (text, known) in new.texts.iter_mut().zip(old.texts) {
                    *text = text.take().or(known);
                }
            }
        }
    }
    forms.push(form);
}

fn heading(sm: u32) -> String {
    format!(
        "# Forms of sm_{sm}, written by `warpwright-sassmine tables` (docs/sass.md): do not edit.\n\
         # opcode, sightings, guard, fixed bits, hidden bits, template\n"
    )
}

/// The instances by opcode, at most `limit` distinct ones of each, spread evenly.
fn split(corpus: &Corpus, limit: usize) -> BTreeMap<u16, Work<'_>> {
    let mut all: BTreeMap<u16, Vec<&Instance>> = BTreeMap::new();
    for instance in &corpus.instances {
        all.entry((instance.bits & 0xfff) as u16)
            .or_default()
            .push(instance);
    }
    let work = all.into_iter().map(|(opcode, instances)| {
        let first = instances[0].bits;
        let varying = instances.iter().fold(0, |m, i| m | (i.bits ^ first));
        let mut bits_by_shape: BTreeMap<String, (u128, u128)> = BTreeMap::new();
        for i in &instances {
            let entry = bits_by_shape.entry(i.shape.clone()).or_insert((i.bits, 0));
            entry.1 |= entry.0 ^ i.bits;
        }
        let shapes = bits_by_shape.into_iter().map(|(s, b)| (s, b.1)).collect();
        let step = instances.len().div_ceil(limit.max(1));
        let work = Work {
            instances: instances.into_iter().step_by(step.max(1)).collect(),
            shapes,
            varying,
            ..Work::default()
        };
        (opcode, work)
    });
    work.collect()
}

/// Looks at all instances again, not only at those of the selection.
fn refill<'a>(work: &mut BTreeMap<u16, Work<'a>>, corpus: &'a Corpus) {
    for work in work.values_mut() {
        work.instances.clear();
    }
    for instance in &corpus.instances {
        if let Some(work) = work.get_mut(&((instance.bits & 0xfff) as u16)) {
            work.instances.push(instance);
        }
    }
}

/// Unexplained instances as seeds: up to `limit` of each shape and name (with modifiers) of an opcode.
fn choose_seeds(work: &mut BTreeMap<u16, Work<'_>>, limit: usize) -> Vec<Seed> {
    let mut seeds = Vec::new();
    for work in work.values_mut() {
        narrow(work);
        let table = Table::new(work.forms.clone());
        work.instances.retain(|i| !explains(&table, i));
        let mut styles: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        // A NaN's text says little about its bits, and a register that is always zero or true may be left
        // out when one of them changes.
        let mut order = work.instances.clone();
        order.sort_by_key(|i| (i.text.contains("NAN"), i.constants()));
        for instance in order {
            if work.tried.contains(&instance.bits) {
                continue;
            }
            let count = styles
                .entry((&instance.shape, instance.name()))
                .or_default();
            *count += 1;
            if *count > limit {
                continue;
            }
            work.tried.insert(instance.bits);
            let in_shape = work.shapes.get(&instance.shape).copied().unwrap_or(0);
            seeds.push(Seed::new(instance.bits, work.varying, in_shape));
        }
    }
    seeds
}

/// A hidden bit without which a form would not get an instance wrong is not hidden: it is fixed to zero.
fn narrow(work: &mut Work<'_>) {
    let table = Table::new(std::mem::take(&mut work.forms));
    let mut forms = table.forms().to_vec();
    for instance in &work.instances {
        let found = table.find(instance.bits);
        let at = found.and_then(|found| table.forms().iter().position(|f| std::ptr::eq(f, found)));
        if let Some(at) = at.filter(|_| !explains(&table, instance)) {
            forms[at].hidden &= !instance.bits;
        }
    }
    work.forms = forms;
}

fn explains(table: &Table, instance: &Instance) -> bool {
    let Some(form) = table.find(instance.bits) else {
        return false;
    };
    let mut text = String::new();
    print::operation(form, instance.bits, instance.address, &mut text);
    normalise(&text) == instance.text
}

/// Takes all seeds through their stages together.
fn derive(mut seeds: Vec<Seed>, oracle: &mut Oracle<'_>) -> Result<Vec<Form>, Error> {
    loop {
        let words: Vec<u128> = seeds.iter().flat_map(|s| s.queries().to_vec()).collect();
        if words.is_empty() {
            return Ok(seeds.into_iter().filter_map(|s| s.form).collect());
        }
        let answers = oracle.ask(&words)?;
        let mut rest = &answers[..];
        let mut parts = Vec::new();
        for seed in &mut seeds {
            let (own, others) = rest.split_at(seed.queries().len());
            rest = others;
            if !own.is_empty() {
                parts.push((seed, own));
            }
        }
        parts
            .into_par_iter()
            .for_each(|(seed, own)| seed.absorb(own));
    }
}

/// Takes out forms that are tried before others and get more instances wrong than they explain.
fn prune(work: &mut Work<'_>) {
    loop {
        let table = Table::new(work.forms.clone());
        let right = |table: &Table| work.instances.iter().filter(|i| explains(table, i)).count();
        let wrong = work.instances.iter().filter(|i| !explains(&table, i));
        let blamed: BTreeSet<(u128, u128)> = wrong
            .filter_map(|i| table.find(i.bits).map(|form| (form.value, form.mask())))
            .collect();
        let before = right(&table);
        let without = blamed.into_iter().map(|blamed| {
            let others = table.forms().iter();
            let others = others.filter(|f| (f.value, f.mask()) != blamed).cloned();
            Table::new(others.collect())
        });
        let better = without.map(|table| (right(&table), table));
        match better.max_by_key(|(right, _)| *right) {
            Some((right, table)) if right > before => work.forms = table.forms().to_vec(),
            _ => return,
        }
    }
}

/// Takes out new forms without which their instances are explained as well, those of few instances first.
fn thin(work: &mut Work<'_>, known: &[Form]) {
    let id = |f: &Form| (f.value, f.mask());
    let mut table = Table::new(std::mem::take(&mut work.forms));
    let mut users: BTreeMap<(u128, u128), Vec<&Instance>> = BTreeMap::new();
    for &instance in &work.instances {
        if let Some(form) = table.find(instance.bits) {
            users.entry(id(form)).or_default().push(instance);
        }
    }
    let is_known: BTreeSet<(u128, u128)> = known.iter().map(id).collect();
    let new = users.iter().filter(|u| !is_known.contains(u.0));
    let mut order: Vec<_> = new.map(|(&form, users)| (users.len(), form)).collect();
    order.sort_unstable();
    for (_, form) in order {
        let own = users.remove(&form).unwrap_or_default();
        let others = table.forms().iter().filter(|f| id(f) != form);
        let without = Table::new(others.cloned().collect());
        let same = |i: &&Instance| explains(&without, i) || !explains(&table, i);
        if own.iter().all(same) {
            for instance in own {
                if let Some(form) = without.find(instance.bits) {
                    users.entry(id(form)).or_default().push(instance);
                }
            }
            table = without;
        }
    }
    work.forms = table.forms().to_vec();
}

/// Counts for each form the instances that it explains; forms without any are dropped unless they were
/// known before.
fn confirm(table: Table, corpus: &Corpus, show: usize, known: &[Form]) -> Table {
    let mut counts: BTreeMap<(u128, u128), u64> = BTreeMap::new();
    let mut failures: BTreeMap<(u128, &str), Failure> = BTreeMap::new();
    for instance in &corpus.instances {
        let found = table.find(instance.bits);
        if let Some(form) = found.filter(|_| explains(&table, instance)) {
            *counts.entry((form.value, form.mask())).or_default() += instance.count;
            continue;
        }
        let key = (instance.bits & 0xfff, &*instance.shape);
        let failure = failures
            .entry(key)
            .or_insert_with(|| Failure::new(instance, found));
        failure.count += instance.count;
    }
    let mut worst: Vec<_> = failures.into_values().collect();
    worst.sort_by_key(|f| std::cmp::Reverse(f.count));
    let failed: u64 = worst.iter().map(|f| f.count).sum();
    eprintln!("not explained: {failed} of {}", corpus.total);
    for failure in worst.iter().take(show) {
        let Failure {
            count,
            bits,
            theirs,
            ours,
        } = failure;
        eprintln!("{count:6} {bits:032x} {theirs}  <>  {ours}");
    }
    let forms = table.forms().iter().cloned().filter_map(|mut form| {
        let count = counts.remove(&(form.value, form.mask()));
        let is_same = |f: &&Form| (f.value, f.mask()) == (form.value, form.mask());
        let before = known.iter().find(is_same);
        form.confirmed = count.unwrap_or(0) + before.map_or(0, |known| known.confirmed);
        (count.is_some() || before.is_some()).then_some(form)
    });
    Table::new(forms.collect())
}

/// Instances of one shape that are not explained, with an example.
struct Failure {
    count: u64,
    bits: u128,
    theirs: String,
    ours: String,
}

impl Failure {
    fn new(instance: &Instance, form: Option<&Form>) -> Self {
        let mut ours = String::from("opaque");
        if let Some(form) = form {
            ours.clear();
            print::operation(form, instance.bits, instance.address, &mut ours);
        }
        Failure {
            count: 0,
            bits: instance.bits,
            theirs: instance.text.clone(),
            ours,
        }
    }
}

/// The shape of a text, empty if it cannot be read.
fn shape(text: &str) -> String {
    Parsed::new(text).map(|p| p.shape()).unwrap_or_default()
}
