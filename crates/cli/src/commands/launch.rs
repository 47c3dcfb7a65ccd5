//! `warpwright launch`: the start of a launch description, from the code's own launch or from a trace. What is guessed
//! says so.

mod draft;
mod make;
mod seen;
mod signature;
mod sizes;
mod trial;

use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use warpwright::Counted;
use warpwright::own_launch::own_headers;
use warpwright::ran::places;
use warpwright_cudac::ast::{Function, Parameter, Type};
use warpwright_cudac::diag::{Source, render_all};
use warpwright_host::code::{HostCode, expanded};
use warpwright_cudac::{File, Header};
use warpwright_launch::{ElemType, LaunchFile, Source as Certainty};
use warpwright_pass::names::{
    base_name, is_named, parameters_of, selected, source_name, template_arguments,
};
use warpwright_ptx::Module;
use warpwright_target::{Gpu, Resources, occupancy};

use self::make::Ground;
use self::seen::Seen;
use self::trial::Trial;
use super::OWN_BUDGET;
use super::inplace::document;
use super::own_run::{self, Ran};
use crate::args::{Cli, KernelArgs, LaunchArgs, OwnArgs, Traced};
use crate::failure::Failure;
use crate::input::{self, Input, Level, make_folder, write_atomically};
use crate::session;

/// Blocks that are tried where nobody knows one and the usual one faults.
const OTHER_BLOCKS: [&[u32]; 6] = [&[32, 8], &[128], &[64], &[32], &[32, 32], &[16, 16]];

/// Runs the command.
pub fn run(cli: &Cli, args: &LaunchArgs) -> Result<(), Failure> {
    let until = own_run::until(args.budget);
    let input = input::read(&args.file)?;
    if input.level != Level::Cuda {
        return Err(Failure::input(format!(
            "`{}` is no CUDA C: the names and types of parameters stand in the source alone",
            input.name
        )));
    }
    let file = super::cuda::read(cli, &input, None, &args.nvcc)?;
    let module = session::module(cli, &input, None, &args.nvcc, true)?;
    let symbols: Vec<String> = module.kernels().map(|(_, f)| f.name.to_string()).collect();
    let ran = match (&args.trace, args.block) {
        (None, None) => own_run::run(cli, &input, args.wanted()),
        _ => None,
    };
    let host = host_code(&input.path, input.text()?, &args.nvcc);
    let whole = with_headers(&input, &host);
    let code = Code {
        file: &file,
        whole: whole.as_ref(),
        host: &expanded(&host, &args.nvcc, &[]),
        headers: lines_of_headers(&host, input.text()?),
        module: &module,
        symbols: &symbols,
        args,
        ran: ran.as_ref(),
        until,
    };
    if let Some(folder) = args.folder() {
        return into_folder(&input, &code, folder);
    }
    if let Some(output) = &args.output {
        is_free(output, args.force)?;
    }
    let made = code.describe(args.kernel.as_deref(), args.output.as_deref(), until)?;
    match &args.output {
        Some(output) => made.write(output)?,
        None => {
            if let Trial::Faults { .. } = made.trial {
                eprintln!("warning: {}", said(&made.trial));
            }
            crate::terminal::document(&made.text);
        }
    }
    made.ended()
}

/// A description of each kernel that is wanted, in a folder, by the kernel's name.
fn into_folder(input: &Input, code: &Code<'_>, folder: &Path) -> Result<(), Failure> {
    let wanted: Vec<&str> = match code.args.kernel.as_deref() {
        Some(wanted) => selected(wanted, code.symbols),
        None => code.symbols.iter().map(String::as_str).collect(),
    };
    if let ([], Some(wanted)) = (&wanted[..], code.args.kernel.as_deref()) {
        chosen(code.file, code.symbols, Some(wanted))?;
    }
    let mut names: Vec<String> = Vec::new();
    let mut made_some = false;
    let mut worst = Ok(());
    let is_new = !folder.exists();
    make_folder(folder)?;
    let count = wanted.len();
    for (at, symbol) in wanted.into_iter().enumerate() {
        let base = base_name(symbol);
        let same = names.iter().filter(|name| **name == base).count();
        names.push(base.clone());
        let output = folder.join(match same {
            0 => format!("{base}.toml"),
            same => format!("{base}_{}.toml", same + 1),
        });
        let made = is_free(&output, code.args.force)
            .and_then(|()| code.describe(Some(symbol), Some(&output), code.share(count - at)));
        match made {
            Ok(made) => {
                made.write(&output)?;
                made_some = true;
                if worst.is_ok() {
                    worst = made.ended();
                }
            }
            Err(failure) => {
                println!("left out {}: {}", source_name(symbol), failure.shown());
                worst = Err(Failure::Quiet(failure.code()));
            }
        }
    }
    if is_new && !made_some {
        // Only an empty one goes.
        let _ = std::fs::remove_dir(folder);
    }
    match names.is_empty() {
        true => Err(Failure::input(format!("`{}` has no kernel", input.name))),
        false => worst,
    }
}

/// What is said of a description that does not come to an end.
const TOO_LONG: &str = "its small size takes longer than it is tried in the emulator, and nothing wrong was seen: make it smaller";

/// What is said of one whose outputs tell nothing.
const ZEROS: &str = "with what its buffers begin with, outputs become zero or stay as they are";

/// A description.
struct Made {
    text: String,
    trial: Trial,
    launched: draft::Launched,
}

impl Made {
    /// Writes it and says so.
    fn write(&self, output: &Path) -> Result<(), Failure> {
        write_atomically(output, self.text.as_bytes())?;
        if output == Path::new("-") {
            return Ok(());
        }
        println!("wrote {}: {}", output.display(), said(&self.trial));
        if let Some(said) = self.launched.said() {
            println!("  {said}");
        }
        Ok(())
    }
}

impl Made {
    /// Nobody is to take for good what faults.
    fn ended(&self) -> Result<(), Failure> {
        match self.trial {
            Trial::Faults { is_long: false, .. } => Err(Failure::Quiet(FAULTS)),
            _ => Ok(()),
        }
    }
}

/// The exit code where something was written that is not decided to be right.
const FAULTS: u8 = 5;

/// What the trial of a description says to who wrote it.
fn said(trial: &Trial) -> String {
    match trial {
        Trial::Runs => "look at what it marks as a guess".to_owned(),
        Trial::Zeros => format!("look at what it marks as a guess; {ZEROS}"),
        Trial::Faults { is_long: true, .. } => {
            format!("{TOO_LONG}; look at what it marks as a guess")
        }
        Trial::Faults { why, .. } => {
            format!("it FAULTS at its small size and wants a look: {why}")
        }
        Trial::Unknown(why) => {
            format!("look at what it marks as a guess; the emulator could not try it: {why}")
        }
    }
}

/// A file whose launches are described.
struct Code<'a> {
    file: &'a File,
    /// With its own headers.
    whole: Option<&'a File>,
    /// As [`Ground`] has them.
    host: &'a str,
    headers: usize,
    module: &'a Module,
    symbols: &'a [String],
    args: &'a LaunchArgs,
    ran: Option<&'a Ran>,
    /// No other guess is tried later than this.
    until: Instant,
}

impl Code<'_> {
    /// Until when one of so many kernels that are left may be tried.
    fn share(&self, left: usize) -> Instant {
        let now = Instant::now();
        now + self.until.saturating_duration_since(now) / u32::try_from(left).unwrap_or(u32::MAX)
    }

    /// The description of a kernel, and what came of running it.
    fn describe(
        &self,
        wanted: Option<&str>,
        output: Option<&Path>,
        until: Instant,
    ) -> Result<Made, Failure> {
        let asked = (self.symbols, wanted);
        let (file, header, symbol) = defined((self.file, self.whole), asked)?;
        let function = head(file, header, &symbol)?;
        let gpu = session::target(self.module, None)?;
        let ground = Ground {
            file,
            host: self.host,
            headers: self.headers,
            module: self.module,
            symbol: &symbol,
            function: &function,
            args: self.args,
            traced: traced(self.args, self.ran, &symbol)?,
            seen: self.ran.and_then(|ran| seen(ran, self.module, &symbol)),
            processors: draft::Processors::of(&gpu),
        };
        let source = source(&self.args.file, output);
        let mut bases = vec![ground.draft(source.clone(), None)?];
        can_be_launched(&bases[0], &gpu)?;
        if bases[0].block_note == draft::GUESS {
            for block in OTHER_BLOCKS {
                bases.push(ground.draft(source.clone(), Some(block))?);
            }
        }
        let (mut draft, trial) =
            trial::best(&ground, &bases, self.module, trial::ASKED.until(until))
                .ok_or_else(|| Failure::Internal("no description to try".into()))?;
        draft.nvcc = options(&self.args.nvcc, output);
        draft.about = match &trial {
            Trial::Runs => {
                "; the emulator runs it at `small`. Lines with `guess` want a look.".to_owned()
            }
            Trial::Zeros => format!(
                "; the emulator runs it at `small`, and {ZEROS}. Lines with `guess` want a look."
            ),
            Trial::Faults { is_long: true, .. } => format!("; {TOO_LONG}"),
            Trial::Faults { why, .. } => {
                format!("; it FAULTS at `small` and wants a look: {why}")
            }
            Trial::Unknown(why) => format!("; the emulator could not try it: {why}"),
        };
        let text = draft.render();
        // What is written has to be what is read.
        LaunchFile::parse(&text, "the description")
            .and_then(|file| file.resolve("small", &[]))
            .map_err(|e| {
                Failure::input(format!(
                    "the launch of `{}` in the code has no description that can be run; write one by hand \
                     (docs/launch.md): {e}",
                    source_name(&symbol)
                ))
            })?;
        Ok(Made {
            text,
            trial,
            launched: draft.launched,
        })
    }
}

/// The file with its own headers, where it has some: kernels may stand in these.
fn with_headers(input: &Input, host: &str) -> Option<File> {
    let is_whole = input.text().is_ok_and(|text| text.len() == host.len());
    match is_whole {
        true => None,
        false => File::parse(Source::new(&*input.name, host)).ok(),
    }
}

/// The definition of the kernel that is wanted, in the file or else in the file with its headers.
fn defined<'f>(
    (file, whole): (&'f File, Option<&'f File>),
    (symbols, wanted): (&[String], Option<&str>),
) -> Result<(&'f File, Option<&'f Header>, String), Failure> {
    let (header, symbol) = chosen(file, symbols, wanted)?;
    let there = whole.filter(|_| header.is_none());
    let there = there.and_then(|whole| Some((whole, chosen(whole, symbols, wanted).ok()?.0?)));
    Ok(match there {
        Some((whole, header)) => (whole, Some(header), symbol),
        None => (file, header, symbol),
    })
}

/// The texts of the user's headers, those that others include first, and that of the file behind them.
fn host_code(path: &Path, text: &str, nvcc: &[String]) -> String {
    let mut all = own_headers(path, text, nvcc);
    all.reverse();
    all.push(text.to_owned());
    all.join("\n")
}

/// The lines in front of the file's own text.
fn lines_of_headers(host: &str, text: &str) -> usize {
    host[..host.len() - text.len()].matches('\n').count()
}

/// Bytes of a description that is looked at.
const LARGEST: u64 = 1 << 20;

/// Sizes that are halved that often are the small ones.
const SMALLEST: u32 = i64::BITS - 1;

/// `what: a, b`; none of nothing.
fn labelled(what: &str, all: &[String]) -> Option<String> {
    (!all.is_empty()).then(|| format!("{what}: {}", all.join(", ")))
}

/// Sizes that are halved so often, but for what becomes too small, and what is said of those that are; from names, what
/// they are at the whole launch, and at the small one.
pub fn halved<'n>(
    names: impl Iterator<Item = (&'n str, i64, i64)>,
    shift: u32,
) -> (Vec<(String, i64)>, Option<String>) {
    let (mut sizes, mut smaller) = (Vec::new(), Vec::new());
    for (name, whole, small) in names {
        let size = (whole >> shift).max(small.min(whole));
        sizes.push((name.to_owned(), size));
        if size != whole {
            smaller.push(format!("{name} = {size} for {whole}"));
        }
    }
    (sizes, labelled("made small", &smaller))
}

/// A launch that is made smaller by halves: as it is, then the largest part of it that fits, which is more like it than
/// the smallest, whose blocks may have next to nothing to do, then that.
pub fn whole_or_parts(sized: &dyn Fn(u32) -> Option<Counted>) -> Vec<Counted> {
    let whole = sized(0);
    let part = match &whole {
        Some(whole) if !whole.fits() => (1..SMALLEST).filter_map(sized).find(Counted::fits),
        _ => None,
    };
    let all = whole.into_iter().chain(part).chain(sized(SMALLEST));
    let mut all: Vec<Counted> = all.collect();
    all.dedup_by(|a, b| a.at == b.at);
    all
}

/// Kernels of a file whose own launches are looked at.
const MOST_OWN: usize = 8;

/// The code's own launches of kernels, as far as they have a description that `launch` would begin with: to be run to
/// count, as they are or else made small.
pub fn counted_launches(
    cli: &Cli,
    (input, file): (&Input, &File),
    kernels: &KernelArgs,
    nvcc: &[String],
    (ran, until): (Option<&Ran>, Instant),
) -> Option<Vec<Counted>> {
    let args_of = |symbol: &str| LaunchArgs {
        file: input.path.clone(),
        kernel: None,
        block: kernels
            .block_of(symbol)
            .filter(|_| kernels.traced.is_none()),
        dynamic_smem: kernels.dynamic_smem,
        trace: None,
        output: None,
        force: false,
        own: OwnArgs::default(),
        budget: OWN_BUDGET,
        nvcc: nvcc.to_vec(),
    };
    let text = input.text().ok()?;
    let module = session::module(cli, input, None, nvcc, true).ok()?;
    let symbols: Vec<String> = module.kernels().map(|(_, f)| f.name.to_string()).collect();
    let host = host_code(&input.path, text, nvcc);
    let whole = with_headers(input, &host);
    let headers = lines_of_headers(&host, text);
    let gpu = session::named_gpu(kernels.gpu.as_deref()).ok()?;
    let own = || session::target(&module, None).ok();
    let gpu = gpu.or_else(own)?;
    let host = expanded(&host, nvcc, &[]);
    let code = HostCode::new(&host, nvcc);
    // What was seen, unless other blocks are stated.
    let seen = |symbol: &str| -> Vec<Counted> {
        let mut all = ran.map_or_else(Vec::new, |ran| ran.counted(&module, symbol));
        let stated = kernels.block_of(symbol);
        all.retain(|seen| stated.is_none_or(|block| block == seen.launch.block));
        all
    };
    let read = |symbol: &String| -> Option<Vec<Counted>> {
        let asked = (&symbols[..], Some(&**symbol));
        let args = &args_of(symbol);
        let (file, header, symbol) = defined((file, whole.as_ref()), asked).ok()?;
        let launches = code.launches(&base_name(&symbol), &template_arguments(&symbol));
        launches.first()?;
        let ground = Ground {
            file,
            host: &host,
            headers,
            module: &module,
            symbol: &symbol,
            function: &head(file, header, &symbol).ok()?,
            args,
            traced: kernels.traced,
            seen: None,
            processors: draft::Processors::of(&gpu),
        };
        let base = ground.draft(input.name.clone(), None).ok()?;
        let (draft, _) = trial::best(&ground, &[base], &module, trial::UNASKED.until(until))?;
        let described = LaunchFile::parse(&draft.render(), "the code's launch").ok()?;
        // Accesses and branches may go by them.
        let is_guess = |memory: &draft::Memory| {
            use draft::Contents::{Indices, Narrow, Sorted};
            matches!(memory.contents, Indices(_) | Narrow(_) | Sorted(_))
        };
        let is_block_guessed = draft.block_note.contains(draft::GUESS);
        let own = [
            Some(match kernels.traced {
                Some(_) => "the traced launch",
                None => "the code's own launch",
            }),
            args.block.map(|_| "blocks as --block says"),
            is_block_guessed.then_some("threads per block guessed"),
            (draft.grid_note.contains(draft::GUESS)).then_some("blocks guessed"),
            draft
                .memory()
                .any(is_guess)
                .then_some("contents of integer arrays guessed"),
        ];
        let own: Vec<&str> = own.into_iter().flatten().collect();
        let own = own.join(", ");
        // Of a size that nobody knows the small one tells as much.
        let is_unknown = |named: &draft::Named| {
            !named.is_scalar
                && named.root.value.is_none()
                && !named.root.is_processors
                && !draft.traced.contains_key(&named.root)
        };
        let whole = |named: &draft::Named| match is_unknown(named) {
            true => named.small,
            false => named.full,
        };
        let is_guessed = |named: &&draft::Named| {
            let is_of_scalar = named.root.varies || named.root.value.is_none();
            (!named.is_scalar || is_of_scalar) && named.note == draft::GUESS
        };
        let guessed = draft.names.iter().filter(is_guessed);
        let guessed = guessed.map(|named| format!("{} = {}", named.name, whole(named)));
        let guessed = labelled("guessed", &guessed.collect::<Vec<_>>());
        let sized = |shift: u32| {
            let names = draft.names.iter();
            let names = names.map(|named| (&*named.name, whole(named), named.small));
            let (sizes, smaller) = halved(names, shift);
            let is_own = smaller.is_none()
                && !draft.grid_note.contains(draft::GUESS)
                && !draft.names.iter().any(is_unknown);
            let at = [Some(own.clone()), guessed.clone(), smaller];
            Some(Counted {
                launch: described.resolve("full", &sizes).ok()?,
                folder: PathBuf::new(),
                at: at.into_iter().flatten().collect::<Vec<_>>().join(", "),
                source: Certainty::Host,
                is_known_block: !is_block_guessed && draft.launched.others.is_empty(),
                is_smaller: !is_own,
                guessed: is_own.then(|| guessed.clone().unwrap_or_default()),
            })
        };
        Some(whole_or_parts(&sized))
    };
    let is_wanted = |symbol: &&String| {
        let mut names = kernels.kernels.iter();
        kernels.kernels.is_empty() || names.any(|name| is_named(name, symbol))
    };
    let wanted: Vec<&String> = symbols.iter().filter(is_wanted).collect();
    let mut all = Vec::new();
    let mut unseen = Vec::new();
    for symbol in wanted {
        let seen = seen(symbol);
        if !seen.iter().any(Counted::fits) {
            unseen.push(symbol);
        }
        all.extend(seen);
    }
    if unseen.len() <= MOST_OWN {
        all.extend(unseen.into_iter().filter_map(read).flatten());
    }
    Some(all)
}

/// Is there no file of another's in the place of the description?
fn is_free(output: &Path, force: bool) -> Result<(), Failure> {
    let is_file = std::fs::metadata(output).is_ok_and(|m| m.is_file() && m.len() > 0);
    if force || !is_file {
        return Ok(());
    }
    // It is no input.
    let mut text = Vec::new();
    let read =
        std::fs::File::open(output).and_then(|file| file.take(LARGEST).read_to_end(&mut text));
    if read.is_ok() && draft::is_own(&String::from_utf8_lossy(&text)) {
        return Ok(());
    }
    Err(Failure::input(format!(
        "`{}` is there, and not as `launch` has written it: --force overwrites it",
        output.display()
    )))
}

/// The folder of a description, without links.
fn folder(output: Option<&Path>) -> Option<PathBuf> {
    let folder = match output.and_then(Path::parent) {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::canonicalize(folder).ok()
}

/// A folder as the description names it: relative to its own where there is a way.
fn named(path: &Path, output: Option<&Path>) -> Option<PathBuf> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    Some(way(&folder(output)?, &std::fs::canonicalize(path).ok()?))
}

/// The source as the description names it.
fn source(file: &Path, output: Option<&Path>) -> String {
    let relative = || Some(named(file.parent()?, output)?.join(file.file_name()?));
    let path = relative().unwrap_or_else(|| file.to_path_buf());
    path.to_string_lossy().into_owned()
}

/// nvcc's options as the description has them: its folders of headers are relative to it.
fn options(nvcc: &[String], output: Option<&Path>) -> Vec<String> {
    let relative = |folder: &str| {
        let path = Path::new(folder);
        let named = named(path, output).filter(|_| path.is_relative());
        named.map_or_else(
            || folder.to_owned(),
            |way| match way.as_os_str().is_empty() {
                true => ".".to_owned(),
                false => way.to_string_lossy().into_owned(),
            },
        )
    };
    let mut is_folder = false;
    let one = |option: &String| {
        let own = match option.strip_prefix("-I") {
            Some(folder) if !folder.is_empty() => format!("-I{}", relative(folder)),
            _ if is_folder => relative(option),
            _ => option.clone(),
        };
        is_folder = option == "-I";
        own
    };
    nvcc.iter().map(one).collect()
}

/// The way from a folder to another.
fn way(from: &Path, to: &Path) -> PathBuf {
    let (from, to): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (from.components().collect(), to.components().collect());
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[same..].iter().map(|_| Component::ParentDir);
    up.chain(to[same..].iter().copied()).collect()
}

/// The kernel's definition, if it is found, and symbol.
fn chosen<'f>(
    file: &'f File,
    symbols: &[String],
    wanted: Option<&str>,
) -> Result<(Option<&'f Header>, String), Failure> {
    let found: Vec<&str> = match wanted {
        Some(wanted) => selected(wanted, symbols),
        None => symbols.iter().map(String::as_str).collect(),
    };
    let [symbol] = found[..] else {
        let names = warpwright::device_code::some_names(symbols);
        let file = &file.source.name;
        return Err(Failure::input(match (wanted, found.len()) {
            _ if symbols.is_empty() => warpwright::Error::NoKernel(file.clone()).to_string(),
            (Some(wanted), 0) => format!("`{file}` has no kernel `{wanted}`; it has {names}"),
            (Some(wanted), count) => {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                let names = warpwright::device_code::some_names(&found);
                format!("`{wanted}` names {count} kernels: {names}")
            }
            (None, _) => format!(
                "name one kernel with --kernel, or a folder for all with -o FOLDER/: {names}"
            ),
        }));
    };
    let base = base_name(symbol);
    let headers = file
        .kernels
        .iter()
        .filter(|header| header.name.text == base);
    let headers: Vec<&Header> = headers.collect();
    // Of overloads the one with the types of the symbol.
    let types = parameter_types(symbol);
    let is_it = |header: &&&Header| {
        let function = read_head(file, header);
        function.is_ok_and(|function| is_overload(file, &function, &types))
    };
    let header = match headers[..] {
        [only] => Some(only),
        _ => headers.iter().find(is_it).copied(),
    };
    Ok((header, symbol.to_owned()))
}

/// The kernel without its body, of which nothing has to be understood: as the source has it, or where that is not
/// understood or stands elsewhere, with the types of its symbol.
fn head(file: &File, header: Option<&Header>, symbol: &str) -> Result<Function, Failure> {
    let read = match header {
        Some(header) => read_head(file, header),
        None => Err(not_found(file, symbol)),
    };
    read.or_else(|failure| signature::of(file, header, symbol).ok_or(failure))
}

/// The names of a kernel's parameters, in order.
pub fn parameter_names(file: &File, header: &Header) -> Option<Vec<String>> {
    let function = read_head(file, header).ok()?;
    let names = function.parameters.into_iter();
    Some(names.map(|parameter| parameter.name.text).collect())
}

fn read_head(file: &File, header: &Header) -> Result<Function, Failure> {
    let definition = &file.source.text[header.span.clone()];
    let head = definition.split('{').next().unwrap_or(definition);
    // At its own place, for what is said of it.
    let before = file.source.text[..header.span.start].bytes();
    let place = before.map(|byte| if byte == b'\n' { '\n' } else { ' ' });
    let text = format!("{}{head}{{}}", place.collect::<String>());
    let failed = |problem| Failure::Rendered(render_all(&[problem], &file.source));
    let alone = File::parse(Source::new(&*file.source.name, text)).map_err(failed)?;
    let header = alone.kernels.first().ok_or_else(|| {
        Failure::input(format!(
            "the head of `{}` is not understood",
            header.name.text
        ))
    })?;
    alone.kernel(header).map_err(failed)
}

fn not_found(file: &File, symbol: &str) -> Failure {
    Failure::input(format!(
        "the definition of `{}` is not found in `{}`: it stands in a header, or is not understood; write the \
         description by hand (docs/launch.md)",
        source_name(symbol),
        file.source.name
    ))
}

/// The launch of a kernel that a trace saw.
fn traced(args: &LaunchArgs, ran: Option<&Ran>, symbol: &str) -> Result<Option<Traced>, Failure> {
    let Some(path) = &args.trace else {
        let seen = ran.and_then(|ran| ran.launched(symbol));
        return Ok(seen.map(|seen| (seen.grid, seen.block, seen.dynamic_smem)));
    };
    let trace = document::read(path)?;
    let launched = trace.launches.iter().find(|l| l.kernel == symbol);
    let launched = launched.ok_or_else(|| {
        Failure::input(format!("`{}` has no launch of `{symbol}`", path.display()))
    })?;
    if args.block.is_some_and(|stated| stated != launched.block) {
        return Err(Failure::Usage(document::other_block(launched.block)));
    }
    Ok(Some((launched.grid, launched.block, launched.dynamic_smem)))
}

/// The launch that the kernel's program made of it.
fn seen<'r>(ran: &'r Ran, module: &Module, symbol: &'r str) -> Option<Seen<'r>> {
    let function = &module.functions[module.function(symbol)?];
    Seen::new(ran.launched(symbol)?, places(module, function))
}

/// What is stated has to fit a block of the GPU.
fn can_be_launched(draft: &draft::Draft, gpu: &Gpu) -> Result<(), Failure> {
    let block = draft.block.iter();
    let smem = draft
        .dynamic_smem
        .number()
        .and_then(|n| u32::try_from(n).ok());
    let need = Resources {
        block_threads: block.fold(1, |threads: u32, extent| threads.saturating_mul(*extent)),
        dynamic_smem: smem.unwrap_or(0),
        regs: 1,
        ..Resources::default()
    };
    match occupancy(gpu, &need) {
        Ok(_) => Ok(()),
        Err(why) => Err(Failure::input(why.to_string())),
    }
}

/// The threads of `__launch_bounds__(threads, …)` in a kernel's head, if that is a number.
fn own_bound(file: &File, kernel: &str) -> Option<Vec<u32>> {
    let text = &file.source.text;
    let header = file.kernels.iter().find(|h| h.name.text == kernel)?;
    let head = text.get(header.span.clone())?.split('{').next()?;
    let (_, inside) = head.split_once("__launch_bounds__")?;
    let inside = inside.trim_start().strip_prefix('(')?;
    let first = inside.split([',', ')']).next()?;
    let threads = HostCode::new(text, &[]).number(first, header.span.start)?;
    Some(vec![threads])
}

/// The types of a kernel's parameters as its symbol has them.
fn parameter_types(symbol: &str) -> Vec<String> {
    parameters_of(&source_name(symbol))
}

/// `double` of `double const*`.
fn element(ty: &str) -> &str {
    let ty = ty.trim().trim_end_matches(['*', ' ']);
    ty.strip_suffix(" const").unwrap_or(ty)
}

/// Can a kernel of these parameters have a symbol with these types? Templates are not looked into.
fn is_overload(file: &File, function: &Function, types: &[String]) -> bool {
    let one = |(parameter, ty): (&Parameter, &String)| {
        let (mut own, mut pointers) = (parameter.ty.bare(), 0);
        while let Type::Pointer(inner, _) | Type::Array(inner, _) = own {
            own = inner.bare();
            pointers += 1;
        }
        let Type::Named(own) = own else {
            return false;
        };
        let own = file.type_named(own);
        let same = |a: &str, b: &str| {
            a == b || ElemType::from_name(a).is_some_and(|t| Some(t) == ElemType::from_name(b))
        };
        pointers == ty.matches('*').count() && same(&own, element(ty))
    };
    function.parameters.len() == types.len() && function.parameters.iter().zip(types).all(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_has_the_types_of_its_instance() {
        // `void rk4<double, 10>(double const*, double*, unsigned int, Pair<int, float>)`
        let types = parameter_types("_Z3rk4IdLi10EEvPKT_PS0_j4PairIifE");
        assert_eq!(types.len(), 4, "{types:?}");
        let elements: Vec<&str> = types.iter().map(|ty| element(ty)).collect();
        assert_eq!(elements[..3], ["double", "double", "unsigned int"]);
        assert_eq!(elements[3], "Pair<int, float>");
        assert!(parameter_types("k").is_empty() && parameter_types("_Z1kv").len() < 2);
    }

    #[test]
    fn a_bound_of_the_kernel_is_found() {
        let bounded = "#define T 96\n__global__ void __launch_bounds__ (T, 2) k(float *x) { x[0] = 1; }\n\
                       __global__ void free(float *x) { x[0] = 1; }";
        let bounded = File::parse(Source::new("k.cu", bounded)).unwrap();
        assert_eq!(own_bound(&bounded, "k"), Some(vec![96]));
        assert_eq!(own_bound(&bounded, "free"), None);
    }
}
