//! What became of a program's kernels, as a document.

use std::fmt;

use serde::Serialize;
use warpwright_api::trace::{Trace, shortened};
use warpwright_report::edit::Edit;
use warpwright_report::table::Table;

use crate::target::{Target, Verdict};

/// What became of a kernel in a launch class.
#[derive(Serialize)]
pub struct Row {
    /// Symbol.
    pub kernel: String,
    /// The name as people write it.
    pub name: String,
    /// Of its code.
    pub digest: String,
    /// Its launches.
    pub class: String,
    /// Those of the class that it is about, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub among: Option<String>,
    /// Part of the program's GPU time.
    pub share: f64,
    /// Versions that were tried.
    pub candidates: usize,
    /// Nanoseconds of the kernel as it was.
    pub original_ns: Option<f64>,
    /// Nanoseconds of the winner.
    pub winner_ns: Option<f64>,
    /// Time over the original's among the program's other kernels.
    pub in_program: Option<f64>,
    /// The winner's recipe, and of what.
    pub winner: Option<String>,
    /// Why the original stays.
    pub stays: Option<String>,
    /// What would do it in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<Edit>,
}

/// `warpwright.tune-in-place/1`
#[derive(Serialize)]
pub struct Document {
    schema: &'static str,
    gpu: String,
    program: Vec<String>,
    date: String,
    /// The hottest first.
    pub kernels: Vec<Row>,
}

/// The document of a tuning of a program on a GPU.
pub fn document(targets: &[Target], gpu: &str, trace: &Trace) -> Document {
    let rows = targets.iter().map(|target| {
        let mut row = Row {
            kernel: target.launched.kernel.clone(),
            name: target.launched.name.clone(),
            digest: target.digest.clone(),
            class: target.class.to_string(),
            among: target.is_for_some().then(|| target.when.among.to_string()),
            share: target.share_beside(targets),
            candidates: target.proposed.len(),
            original_ns: None,
            winner_ns: None,
            in_program: None,
            winner: None,
            stays: None,
            edit: None,
        };
        match &target.verdict {
            Verdict::Won {
                name,
                original_ns,
                winner_ns,
                in_program,
                ..
            } => {
                row.in_program = *in_program;
                row.winner = Some(target.shown(name));
                row.edit = in_program.and_then(|time| target.edit(name, time));
                row.original_ns = Some(*original_ns);
                row.winner_ns = Some(*winner_ns);
            }
            Verdict::Stays(why) => row.stays = Some(why.clone()),
        }
        row
    });
    Document {
        schema: "warpwright.tune-in-place/1",
        gpu: gpu.to_owned(),
        program: trace.program.clone(),
        date: warpwright_gpu::utc_now(),
        kernels: rows.collect(),
    }
}

/// What people see of it; where no GPU was seen there is nothing to see.
impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.gpu.is_empty() {
            return Ok(());
        }
        if self.kernels.is_empty() {
            return writeln!(f, "no kernel was measured");
        }
        let mut table = Table::new(&["share", "µs", "was", "faster", "what", "kernel"]);
        for row in &self.kernels {
            let us =
                |ns: Option<f64>| ns.map_or("–".to_owned(), |ns| format!("{:.1}", ns * 1e-3));
            let faster = row
                .original_ns
                .zip(row.winner_ns)
                .map(|(a, b)| a / b.max(1.0));
            let what = row.winner.as_ref().or(row.stays.as_ref());
            table.row(vec![
                format!("{:.1}%", row.share * 100.0),
                us(row.winner_ns),
                us(row.original_ns),
                faster.map_or("–".to_owned(), |f| format!("{f:.3}×")),
                what.cloned().unwrap_or_default(),
                match &row.among {
                    Some(among) => format!("{} where {among}", shortened(&row.name)),
                    None => shortened(&row.name),
                },
            ]);
        }
        write!(f, "{}", table.render(0))?;
        for row in &self.kernels {
            if let Some(edit) = &row.edit {
                writeln!(
                    f,
                    "in the source: {}: {}",
                    shortened(&row.name),
                    edit.in_words()
                )?;
            }
        }
        Ok(())
    }
}
