//! Commands of the machine code: the file is the text of a cubin (docs/sass.md).

use std::fmt::Write as _;
use std::sync::Arc;

use warpwright_check::{ControlFields, CubinOptions, answer};
use warpwright_diag::{Diagnostic, SourceText, Span};
use warpwright_flow::{Cfg, Function as _, Inst, Liveness, Pressure, Value};
use warpwright_pass::{Artifact, Builders};
use warpwright_sass::elf::KernelSections;
use warpwright_sass::function::{Calls, Code, register_of};
use warpwright_sass::{Edit, Elf, Instruction, hazards, text};

use crate::case::Case;
use crate::harness::Command;

/// The commands.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "assemble",
        about: "the text of the whole cubin that the file makes, which must assemble to the same",
        run: assemble,
    },
    Command {
        name: "diagnostics",
        about: "why the text is no cubin, rendered",
        run: diagnostics,
    },
    Command {
        name: "operands",
        about: "registers that each instruction reads and writes",
        run: operands,
    },
    Command {
        name: "liveness",
        about: "registers live after each instruction",
        run: liveness,
    },
    Command {
        name: "pressure",
        about: "general registers needed while each instruction executes",
        run: pressure,
    },
    Command {
        name: "hazards",
        about: "accesses that stall counts and scoreboards do not protect; a file named `right-` has \
                none, one named `wrong-` has some",
        run: hazards,
    },
    Command {
        name: "edit",
        about: "the cubin after the `// edit:` lines, or why not (a file named `refused-`)",
        run: edit,
    },
    Command {
        name: "check",
        about: "is kernel `rewritten` a correct version of kernel `original`? A file named `right-` is \
                proved, one named `wrong-` or `unclear-` is not",
        run: check,
    },
    Command {
        name: "pass",
        about: "run a pass on the cubin: its notes and the code that it leaves; proved, and without \
                hazards",
        run: pass,
    },
];

/// The cubin that the file makes.
pub(super) fn load(case: &Case) -> Result<Elf, String> {
    let cubin = text::assemble(&case.source).map_err(|error| render(case, &error))?;
    Elf::parse(&cubin).map_err(|error| error.to_string())
}

fn render(case: &Case, error: &text::TextError) -> String {
    let span = error.span(&case.source);
    let (start, end) = (span.start as u32, span.end as u32);
    let text = Text(case.file_name(), Arc::from(&*case.source));
    let diagnostic = Diagnostic::error("sass::text", error.kind.to_string());
    diagnostic.label(Span { start, end }, "here").render(&text)
}

struct Text(String, Arc<str>);

impl SourceText for Text {
    fn name(&self) -> &str {
        &self.0
    }

    fn text(&self) -> &Arc<str> {
        &self.1
    }
}

fn diagnostics(case: &Case, _: &[String]) -> Result<String, String> {
    match text::assemble(&case.source) {
        Ok(_) => Err("nothing is wrong with it".to_owned()),
        Err(error) => Ok(render(case, &error)),
    }
}

fn assemble(case: &Case, _: &[String]) -> Result<String, String> {
    let cubin = text::assemble(&case.source).map_err(|error| render(case, &error))?;
    let elf = Elf::parse(&cubin).map_err(|error| error.to_string())?;
    let whole = text::whole(&elf).map_err(|error| error.to_string())?;
    let again = text::assemble(&whole).map_err(|error| format!("{error}\n{whole}"))?;
    match again == cubin {
        true => Ok(whole),
        false => Err(format!("this assembles to another cubin:\n{whole}")),
    }
}

/// Runs `lines` on the code of every function, under its name.
fn each_function(
    case: &Case,
    lines: impl Fn(&Code, &mut String) -> Result<(), String>,
) -> Result<String, String> {
    let elf = load(case)?;
    let mut out = String::new();
    for kernel in elf.kernels().map_err(|e| e.to_string())? {
        let code = Code::new(&elf, &kernel, Calls::Followed).map_err(|e| e.to_string())?;
        let _: std::fmt::Result = writeln!(out, "{}:", kernel.name);
        lines(&code, &mut out)?;
    }
    Ok(out)
}

/// What is to be said of each instruction, beside its text.
fn each_instruction(
    code: &Code,
    out: &mut String,
    mut say: impl FnMut(Inst) -> String,
) -> Result<(), String> {
    if let Some(inst) = code.opaque().first() {
        return Err(format!("nothing is known of {}", code.inst_text(*inst)));
    }
    for (at, &inst) in (0..).zip(code.instructions()) {
        let address = u64::from(at) * 16;
        let text = text::instruction(inst, address);
        let said = say(Inst(at));
        let _: std::fmt::Result = writeln!(out, "  {address:04x} {text:<44} {said}");
    }
    Ok(())
}

/// Registers by file, neighbours joined: `R0-R3 P0`.
fn names(code: &Code, values: impl IntoIterator<Item = Value>) -> String {
    let mut values: Vec<Value> = values.into_iter().collect();
    values.sort_unstable();
    values.dedup();
    let mut runs: Vec<(Value, Value)> = Vec::new();
    for value in values {
        let file = |value| register_of(value).map(|register| register.0);
        match runs.last_mut() {
            Some((_, last)) if last.0 + 1 == value.0 && file(*last) == file(value) => *last = value,
            _ => runs.push((value, value)),
        }
    }
    let run = |(first, last): &(Value, Value)| match first == last {
        true => code.value_name(*first),
        false => format!("{}-{}", code.value_name(*first), code.value_name(*last)),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(" ")
}

fn operands(case: &Case, _: &[String]) -> Result<String, String> {
    each_function(case, |code, out| {
        each_instruction(code, out, |inst| {
            let (mut defs, mut uses) = (Vec::new(), Vec::new());
            code.for_each_def(inst, |value| defs.push(value));
            code.for_each_use(inst, |value| uses.push(value));
            format!(
                "writes [{}] reads [{}]",
                names(code, defs),
                names(code, uses)
            )
        })
    })
}

fn liveness(case: &Case, _: &[String]) -> Result<String, String> {
    each_function(case, |code, out| {
        let cfg = Cfg::new(code);
        let liveness = Liveness::new(code, &cfg);
        each_instruction(code, out, |inst| {
            names(code, liveness.live_after(code, &cfg, inst).iter().copied())
        })
    })
}

fn pressure(case: &Case, _: &[String]) -> Result<String, String> {
    each_function(case, |code, out| {
        let cfg = Cfg::new(code);
        let liveness = Liveness::new(code, &cfg);
        let pressure = Pressure::new(code, &cfg, &liveness);
        each_instruction(code, out, |inst| pressure.during(inst).to_string())
    })
}

fn hazards(case: &Case, _: &[String]) -> Result<String, String> {
    let said = each_function(case, |code, out| {
        match hazards::check(code) {
            Ok(violations) => {
                for violation in &violations {
                    let _: std::fmt::Result = writeln!(out, "  {}", violation.describe(code));
                }
                if violations.is_empty() {
                    out.push_str("  nothing\n");
                }
            }
            Err(unchecked) => {
                let _: std::fmt::Result = writeln!(out, "  not checked: {unchecked}");
            }
        }
        Ok(())
    })?;
    let found = said
        .lines()
        .any(|line| line.starts_with("  ") && line != "  nothing");
    // Blessing must not turn wrong code into right code.
    match (case.file_name().split('-').next(), found) {
        (Some("right"), true) => Err(format!("it should have no hazards:\n{said}")),
        (Some("wrong"), false) => Err("it should have hazards".to_owned()),
        _ => Ok(said),
    }
}

/// `// edit: WHAT PLACE …`, places by label or by byte offset, in the file's first function:
///
/// * `insert-before .L_10 CONTROL TEXT`, `insert-after …`, `replace …`
/// * `delete .L_10`
/// * `rename .L_10 R4=R20 …`
fn edit(case: &Case, _: &[String]) -> Result<String, String> {
    let mut elf = load(case)?;
    let kernels = elf.kernels().map_err(|e| e.to_string())?;
    let kernel = kernels.first().ok_or("there is no function")?.clone();
    let outcome = wishes(case, &elf, &kernel).and_then(|edit| {
        edit.apply(&mut elf, &kernel.name)
            .map(|_| ())
            .map_err(|e| e.to_string())
    });
    let refused = case.file_name().starts_with("refused-");
    match outcome {
        Err(why) if refused => Ok(format!("refused: {why}")),
        Err(why) => Err(why),
        Ok(()) if refused => Err("it should be refused".to_owned()),
        Ok(()) => edited(&elf),
    }
}

/// What an edit may have changed.
fn edited(elf: &Elf) -> Result<String, String> {
    let whole = text::whole(elf).map_err(|e| e.to_string())?;
    let shown = [".text.", ".nv.info.", ".nv.constant2.", ".rel", ".symtab"];
    let sections = whole.split("\n\n").filter(|section| {
        let name = section.trim_start().strip_prefix(".section ");
        name.is_some_and(|name| shown.iter().any(|shown| name.starts_with(shown)))
    });
    Ok(sections.collect::<Vec<_>>().join("\n\n"))
}

fn wishes(case: &Case, elf: &Elf, kernel: &KernelSections) -> Result<Edit, String> {
    let code = elf.instructions(kernel).map_err(|e| e.to_string())?;
    let sm = elf.target().sm;
    let mut edit = Edit::new();
    for line in case
        .source
        .lines()
        .filter_map(|line| line.strip_prefix("// edit: "))
    {
        let mut words = line.splitn(3, ' ');
        let what = words.next().unwrap_or_default();
        let place = words.next().ok_or_else(|| format!("`{line}`: where?"))?;
        let rest = words.next().unwrap_or_default();
        let at = place_of(case, place)?;
        let parsed = || -> Result<Instruction, String> {
            let text = format!(".sm {sm}\n.function wish\n{rest}\n");
            let (_, functions) = text::parse(&text).map_err(|e| format!("`{line}`: {e}"))?;
            functions[0]
                .code
                .first()
                .copied()
                .ok_or_else(|| format!("`{line}`: what?"))
        };
        match what {
            "insert-before" => edit.insert_before(at, [parsed()?]),
            "insert-after" => edit.insert_after(at, [parsed()?]),
            "replace" => edit.replace(at, parsed()?),
            "delete" => edit.delete(at),
            "rename" => {
                let inst = *code
                    .get(at)
                    .ok_or_else(|| format!("`{line}`: there is no such"))?;
                let names = rest.split_whitespace().map(|pair| {
                    let (from, to) = pair.split_once("=R")?;
                    let from: u16 = from.strip_prefix('R')?.parse().ok()?;
                    Some((from, to.parse().ok()?))
                });
                let names: Option<Vec<(u16, u16)>> = names.collect();
                let names = names.ok_or_else(|| format!("`{line}`: R4=R20 is wanted"))?;
                let renamed = edit.rename(at, inst, |span| {
                    let general = span.file == warpwright_sass::roles::File::Gpr;
                    let new = names.iter().find(|name| general && name.0 == span.first);
                    new.map_or(span.first, |name| name.1)
                });
                renamed.map_err(|e| e.to_string())?;
            }
            _ => return Err(format!("`{line}`: no such edit")),
        }
    }
    Ok(edit)
}

/// The index of the instruction at a label or byte offset.
fn place_of(case: &Case, place: &str) -> Result<usize, String> {
    if let Some(digits) = place.strip_prefix("0x") {
        let offset = usize::from_str_radix(digits, 16).map_err(|e| format!("{place}: {e}"))?;
        return Ok(offset / 16);
    }
    let mut count = 0;
    for line in case.source.lines().map(str::trim) {
        if line.strip_suffix(':') == Some(place) {
            return Ok(count);
        }
        count += usize::from(line.starts_with('B') && line.contains(":S"));
    }
    Err(format!("there is no label {place}"))
}

/// `check [--block X,Y,Z] [--dynamic-smem BYTES]`
fn check(case: &Case, args: &[String]) -> Result<String, String> {
    let mut options = CubinOptions::default();
    for pair in args.chunks(2) {
        match pair {
            [name, value] if name == "--block" => options.block = Some(super::check::block(value)?),
            [name, value] if name == "--dynamic-smem" => {
                let bytes = value.parse().map_err(|e| format!("{value}: {e}"))?;
                options.dynamic_smem = Some(bytes);
            }
            _ => return Err(format!("unknown option {}", pair[0])),
        }
    }
    let [original, new] = [version(case, "original")?, version(case, "rewritten")?];
    let answer = answer(&original, &new, KERNEL, &options);
    let verdict = answer.verdict;
    let rule = match answer.control_fields {
        Some(ControlFields::Anew) => ", with control fields of its own",
        Some(ControlFields::Kept) | None => "",
    };
    // Machine code that is wrong is mostly not decided: it may be the same in another form.
    let expected = match case.file_name().split('-').next() {
        Some("right") => verdict.word() == "proved",
        Some("wrong" | "unclear") => verdict.word() != "proved",
        _ => return Err("the file's name begins with neither right, wrong nor unclear".to_owned()),
    };
    match expected {
        true => Ok(format!("{verdict}{rule}")),
        false => Err(format!("it is {verdict}{rule}")),
    }
}

const KERNEL: &str = "kernel";

/// The cubin with one of the two functions, under a common name; what stands before the first
/// function belongs to both.
fn version(case: &Case, name: &str) -> Result<Elf, String> {
    const FUNCTION: &str = "\n.function ";
    let source = case.without_blocks();
    let mut parts = source.split(FUNCTION);
    let head = parts.next().unwrap_or_default();
    let wanted = |part: &&str| part.split_whitespace().next() == Some(name);
    let own = parts
        .find(wanted)
        .ok_or_else(|| format!("there is no function `{name}`"))?;
    let text = format!("{head}{FUNCTION}{}", own.replacen(name, KERNEL, 1));
    let cubin = text::assemble(&text).map_err(|error| format!("{name}: {error}"))?;
    Elf::parse(&cubin).map_err(|error| error.to_string())
}

/// `pass NAME …`, with the options of `warpwright pass`. A file named `refused-` expects a refusal.
fn pass(case: &Case, args: &[String]) -> Result<String, String> {
    let cubin = load(case)?.write().map_err(|e| e.to_string())?;
    let input = Artifact::cubin(cubin.clone()).map_err(|e| e.to_string())?;
    let (mut out, all) = super::pass::carried_out(&input, Builders::default(), args)?;
    let is_refused = all.kernels.iter().any(|done| done.refused.is_some());
    if case.file_name().starts_with("refused-") && !is_refused {
        return Err("it should be refused".to_owned());
    }
    let bytes = all.artifact.bytes();
    if bytes == cubin {
        out.push_str("unchanged\n");
        return Ok(out);
    }
    let after = Elf::parse(bytes).map_err(|e| e.to_string())?;
    let functions = text::functions(&after).map_err(|e| e.to_string())?;
    out.push_str(&text::print(after.target().sm, &functions));
    Ok(out)
}
