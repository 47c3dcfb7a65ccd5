//! `warpwright toolkit`: which tools are used and from where; `install` fetches them.

use serde::Serialize;
use warpwright_toolkit::{InstallError, InstallOptions, Installed, Progress as InstallProgress};

use super::print_json;
use crate::args::{Cli, ToolkitAction, ToolkitArgs};
use crate::failure::Failure;
use crate::progress;
use crate::session;
use warpwright_report::table::Table;

#[derive(Serialize)]
struct Row {
    tool: String,
    version: Option<String>,
    path: String,
    origin: String,
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    tools: Vec<Row>,
}

/// Runs the command.
pub fn run(cli: &Cli, args: &ToolkitArgs) -> Result<(), Failure> {
    if let Some(ToolkitAction::Install { version }) = &args.action {
        let installed = install(version.clone())?;
        let what = if installed.already {
            "is installed and intact"
        } else {
            "installed"
        };
        eprintln!(
            "toolkit {} {what}: {}",
            installed.version,
            installed.dir.display()
        );
        return Ok(());
    }
    let toolkit = session::toolkit(cli)?;
    let tools: Vec<Row> = toolkit
        .tools()
        .map(|tool| Row {
            tool: tool.kind.name().to_string(),
            version: tool.version().ok().map(ToString::to_string),
            path: tool.path.display().to_string(),
            origin: tool.origin.name().to_string(),
        })
        .collect();
    if args.json {
        return print_json(&Document {
            schema: "warpwright.toolkit/1",
            tools,
        });
    }
    let mut table = Table::new(&["tool", "version", "from", "path"]);
    for row in tools {
        let version = row.version.unwrap_or_else(|| "does not run".into());
        table.row(vec![row.tool, version, row.origin, row.path]);
    }
    print!("{}", table.render(0));
    Ok(())
}

/// Installs the toolkit with progress on stderr.
pub fn install(version: Option<String>) -> Result<Installed, Failure> {
    let bar = progress::bar(None, "toolkit");
    bar.turn();
    let options = InstallOptions {
        version,
        ..InstallOptions::default()
    };
    let result = warpwright_toolkit::install(&options, &mut |step| {
        bar.set_message(match step {
            InstallProgress::Waiting => "waiting for another installation to finish".into(),
            InstallProgress::Verifying => "checking the installed toolkit".into(),
            InstallProgress::Damaged(file) => {
                format!("installing anew: {} is damaged", file.display())
            }
            InstallProgress::Downloading {
                package,
                number,
                of,
            } => {
                format!("fetching {package} ({number} of {of})")
            }
            InstallProgress::Unpacking => "unpacking".into(),
            InstallProgress::Checking => "trying the tools".into(),
        });
    });
    result.map_err(|e: InstallError| Failure::Missing {
        what: e.to_string(),
        mend: None,
    })
}
