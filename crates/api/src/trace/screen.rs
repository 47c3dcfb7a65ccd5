//! What people see of a trace.

use std::collections::BTreeSet;
use std::fmt;

use warpwright_diag::count;
use warpwright_pass::names::source_name;
use warpwright_report::table::Table;

use super::{Trace, WithoutGpu};

/// The start of a long name.
pub fn shortened(name: &str) -> String {
    const MOST: usize = 60;
    match name.char_indices().nth(MOST) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

impl Trace {
    /// A table of so many rows, the most expensive kernels first.
    pub fn screen(&self, rows: usize) -> impl fmt::Display {
        fmt::from_fn(move |f| self.write(f, rows))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, rows: usize) -> fmt::Result {
        let Some(gpu) = &self.gpu else {
            return Ok(());
        };
        let total: u64 = self.launches.iter().map(|l| l.gpu_ns).sum();
        let kernels: BTreeSet<&String> = self.launches.iter().map(|l| &l.kernel).collect();
        let launches = self.launches.iter().map(|l| l.launches + l.in_graphs);
        let time = match &self.without_gpu {
            Some(_) => "no GPU,".to_owned(),
            None => format!("{:.3} ms of GPU time in", total as f64 * 1e-6),
        };
        writeln!(
            f,
            "{}: {}, {time} {}, {}",
            gpu.name,
            count(kernels.len(), "kernel"),
            count(launches.sum::<u64>(), "launch"),
            count(self.modules.len(), "module"),
        )?;
        // Without a GPU there are no times.
        let timed = 2 * usize::from(self.without_gpu.is_none());
        let heads = [
            "ms", "share", "launches", "grid", "block", "smem", "regs", "spills", "occ.", "hint",
            "kernel",
        ];
        let mut table = Table::new(&heads[2 - timed..]);
        let dims = |[x, y, z]: [u32; 3]| match (y, z) {
            (1, 1) => x.to_string(),
            (_, 1) => format!("{x}x{y}"),
            _ => format!("{x}x{y}x{z}"),
        };
        let number = |n: Option<u32>| n.map_or("?".to_owned(), |n| n.to_string());
        for l in self.launches.iter().take(rows) {
            let mut row = vec![
                format!("{:.3}", l.gpu_ns as f64 * 1e-6),
                format!("{:.1}%", l.share * 100.0),
                match l.in_graphs {
                    0 => l.launches.to_string(),
                    n => format!("{}+{n}", l.launches),
                },
                dims(l.grid),
                dims(l.block),
                (l.dynamic_smem + l.static_smem.unwrap_or(0)).to_string(),
                number(l.registers),
                number(l.spill_bytes),
                l.occupancy.map_or("?".to_owned(), |p| format!("{p:.0}%")),
                l.hint.clone(),
                shortened(&l.name),
            ];
            table.row(row.split_off(2 - timed));
        }
        write!(f, "{}", table.render(0))?;
        if self.launches.len() > rows {
            writeln!(
                f,
                "… and {} more (--rows, --json)",
                self.launches.len() - rows
            )?;
        }
        for why in self.not_seen_in_words() {
            writeln!(f, "{why}")?;
        }
        if let Some(without) = &self.without_gpu {
            without.write(f)?;
        }
        Ok(())
    }

    /// Which code of the program was not looked at, and why.
    pub fn not_seen_in_words(&self) -> impl Iterator<Item = String> {
        let all = self.not_seen.iter();
        all.map(|why| format!("modules were not looked at: {why}"))
    }
}

impl WithoutGpu {
    /// What a trace without a GPU is worth.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.exact_until, self.not_computed.first()) {
            (_, None) => writeln!(
                f,
                "all kernels ran in the emulator: the program saw their results"
            )?,
            (until, Some(first)) => {
                writeln!(
                    f,
                    "kernels were not computed, the first in launch {}: {}: {}",
                    first.launch,
                    shortened(&source_name(&first.kernel)),
                    first.why.lines().next().unwrap_or_default()
                )?;
                match until {
                    Some(until) => writeln!(
                        f,
                        "launches up to number {until} are exact; later ones may rest on results that were not computed"
                    )?,
                    None => writeln!(f, "no launch can rest on a result that was not computed")?,
                }
            }
        }
        if let Some(first) = &self.rounded {
            writeln!(
                f,
                "launches behind number {} may rest on results that a GPU rounds otherwise ({})",
                first.launch,
                shortened(&source_name(&first.kernel))
            )?;
        }
        for fault in &self.faults {
            writeln!(
                f,
                "launch {}: {}: {}",
                fault.launch,
                shortened(&source_name(&fault.kernel)),
                fault.why
            )?;
        }
        if !self.unanswered.is_empty() {
            writeln!(f, "refused: {}", self.unanswered.join(", "))?;
        }
        if let Some(why) = &self.ended {
            writeln!(f, "the program was ended: {why}")?;
        }
        Ok(())
    }
}
