//! The list of what the tables have from few sightings: `crates/sass/tables/rare.txt`.
//!
//! A form (text) that few instructions have shown may lack modifiers; a row of roles that few have confirmed
//! may be that of a sibling with other modifiers, and transformations refuse such instructions by name.

use std::collections::BTreeMap;
use std::fmt::Write;

use warpwright_sass::isa::form::Form;
use warpwright_sass::isa::table;
use warpwright_sass::roles::{self, Roles};

/// All architectures with tables.
const ARCHITECTURES: [u32; 7] = [75, 80, 86, 89, 90, 100, 120];

/// The list as text.
pub fn list() -> String {
    let few = Roles::FEW;
    let mut out = format!(
        "# Seen fewer than {few} times, written by `warpwright-sassmine rare`: do not edit.\n\
         # Forms by opcode and mnemonic; rows of roles by opcode, mnemonic and key; sightings behind the colon.\n"
    );
    for sm in ARCHITECTURES {
        let _ = writeln!(out, "\nsm_{sm} forms");
        let forms = table::Table::of(sm).map_or(&[][..], table::Table::forms);
        let mut rare: BTreeMap<(u16, &str), Vec<u64>> = BTreeMap::new();
        for form in forms.iter().filter(|form| form.confirmed < few) {
            let name = Form::mnemonic(form);
            rare.entry((form.opcode, name))
                .or_default()
                .push(form.confirmed);
        }
        for ((opcode, name), counts) in rare {
            let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
            let _ = writeln!(out, "{opcode:03x} {name}: {}", counts.join(" "));
        }
        let _ = writeln!(out, "\nsm_{sm} roles");
        let entries = roles::Table::for_sm(sm).map(roles::Table::entries);
        for (opcode, entry) in entries.into_iter().flatten() {
            let rows = entry.rows.iter().filter(|(_, row)| row.confirmed < few);
            let rows: Vec<String> = rows
                .map(|(key, row)| format!("{key:x}:{}", row.confirmed))
                .collect();
            if !rows.is_empty() {
                let _ = writeln!(out, "{opcode:03x} {} {}", entry.name, rows.join(" "));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_list_is_what_the_tables_say() {
        let committed = include_str!("../../../crates/sass/tables/rare.txt");
        assert!(
            committed == super::list(),
            "write it again: cargo run -p warpwright-sassmine -- rare -o crates/sass/tables/rare.txt"
        );
    }
}
