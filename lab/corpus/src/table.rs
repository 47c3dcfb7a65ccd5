//! The outcome of a check, as a table for people and as a page for `docs/`.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::build::Index;
use crate::check::Tally;

/// Most failures that are listed one by one.
const LISTED: usize = 40;

/// A Markdown table by producer, then unknown opcodes, failures, and what is missing. The same input gives
/// the same text.
pub fn table(tallies: &BTreeMap<String, Tally>, index: Option<&Index>) -> String {
    let mut text = "| producer | files | kernels | device functions | instructions | bytes | unknown opcodes | failures |\n\
                    |---|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let mut total = Tally::default();
    for (producer, tally) in tallies {
        total.add(tally);
        let version = index.and_then(|i| i.producers.iter().find(|p| p.name == *producer));
        let label = version.map_or(producer.clone(), |v| match producer.contains(&v.text) {
            true => producer.clone(),
            false => format!("{producer} ({})", v.text),
        });
        row(&mut text, &label, tally);
    }
    row(&mut text, "**all**", &total);
    if !total.unknown.is_empty() {
        text.push_str("\nUnknown opcodes:\n\n");
        for (opcode, count) in &total.unknown {
            let _ = writeln!(text, "- `{opcode}`: {count}");
        }
    }
    if !total.failures.is_empty() {
        text.push_str("\nFailures:\n\n");
        for (path, reason) in total.failures.iter().take(LISTED) {
            let _ = writeln!(text, "- `{}`: {reason}", path.display());
        }
        if total.failures.len() > LISTED {
            let _ = writeln!(text, "- and {} more", total.failures.len() - LISTED);
        }
    }
    if let Some(index) = index {
        for missing in &index.missing {
            let _ = writeln!(
                text,
                "\n**Missing producer** `{}`: {}",
                missing.name, missing.text
            );
        }
        for failed in &index.failed {
            let _ = writeln!(text, "\n**Not built** `{}`: {}", failed.name, failed.text);
        }
    }
    text
}

fn row(text: &mut String, name: &str, tally: &Tally) {
    let unknown: u64 = tally.unknown.values().sum();
    let numbers = [
        tally.files,
        tally.kernels,
        tally.functions,
        tally.instructions,
        tally.bytes,
        unknown,
        tally.failures.len() as u64,
    ];
    let cells = numbers.map(grouped).join(" | ");
    let _ = writeln!(text, "| {name} | {cells} |");
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The page `lab/corpus/ptx-results.md`.
pub fn page(tallies: &BTreeMap<String, Tally>, index: Option<&Index>) -> String {
    format!(
        "# The PTX corpus\n\n\
         <!-- Written by `warpwright-corpus check --summary`; do not edit. -->\n\n\
         PTX of many producers, which the front end must take without loss. For every file: it parses without \
         a diagnostic, printing gives back its bytes, every token belongs to one statement of the typed view, \
         the canonical print parsed again is the same view, the verifier accepts it, and every opcode is \
         known. The corpus is made and checked by\n\n\
         ```sh long\n\
         cargo run --release -p warpwright-corpus -- build .corpus --install\n\
         cargo run --release -p warpwright-corpus -- check .corpus --summary lab/corpus/ptx-results.md\n\
         ```\n\n\
         The first command fetches the producers that can be fetched (two CUDA toolkits, Triton) and takes half \
         an hour or more; clang comes from the distribution. `--sample` makes the small corpus of the tests. \
         The sources are in `lab/corpus` and `examples`; the kernels of libcu++'s PTX wrappers are generated \
         from its headers.\n\n{}",
        table(tallies, index)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Entry;

    #[test]
    fn a_table_says_everything() {
        let mut good = Tally {
            files: 2,
            kernels: 1234,
            bytes: 1_234_567,
            ..Tally::default()
        };
        let mut tallies = BTreeMap::from([("clang".to_owned(), good.clone())]);
        good.unknown.insert("frob.u32".to_owned(), 3);
        good.failures
            .push(("nvcc-13.5/sm_90/x.ptx".into(), "because".to_owned()));
        tallies.insert("nvcc-13.5".to_owned(), good);
        let entry = |name: &str, text: &str| Entry {
            name: name.into(),
            text: text.into(),
        };
        let index = Index {
            sample: false,
            producers: vec![entry("clang", "19.1.7")],
            missing: vec![entry("triton", "no Triton")],
            failed: vec![entry("clang/sm_75/x", "crashed")],
        };
        let text = table(&tallies, Some(&index));
        for part in [
            "| clang (19.1.7) | 2 | 1,234 | 0 | 0 | 1,234,567 | 0 | 0 |",
            "| nvcc-13.5 | 2 | 1,234 | 0 | 0 | 1,234,567 | 3 | 1 |",
            "| **all** | 4 | 2,468 | 0 | 0 | 2,469,134 | 3 | 1 |",
            "- `frob.u32`: 3",
            "- `nvcc-13.5/sm_90/x.ptx`: because",
            "**Missing producer** `triton`: no Triton",
            "**Not built** `clang/sm_75/x`: crashed",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(page(&tallies, None).starts_with("# The PTX corpus"));
        assert_eq!(
            [0, 999, 1000, 12345].map(grouped),
            ["0", "999", "1,000", "12,345"]
        );
    }
}
