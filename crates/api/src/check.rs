//! Is one kernel a correct version of another?

use serde::Serialize;
use warpwright_check::{
    ControlFields, CubinOptions, NEW_KERNEL, Verdict, check_files, check_modules, signature,
};
use warpwright_launch::{Condition, Guard, Quantity, Shape, Signature};
use warpwright_pass::miscompiled;
use warpwright_pass::names::{is_named, source_name};
use warpwright_pass::witness::{Witness, refute};
use warpwright_pass::{Block, ScopeError};
use warpwright_ptx::{FunctionKind, Module};
use warpwright_sass::fatbin::{Entry, Fatbin, Kind};

use crate::device_code::{Contents, some_names};
use crate::front::{Compile, module, target};
use crate::parameters::in_source;
use crate::{Error, Input, Level, Optimizer};

/// What holds of the launches, and what is checked.
#[derive(Debug, Clone, Default)]
pub struct CheckOptions {
    /// Only this kernel, by its symbol.
    pub kernel: Option<String>,
    /// Threads per block, where the kernel does not state it.
    pub block: Option<[u32; 3]>,
    /// The most dynamic shared memory of a launch in bytes per block.
    pub dynamic_smem: Option<u32>,
    /// What every launch meets, as a guard says it (`block=256,1,1; n=4096`). Parameters go by name where one kernel is
    /// checked.
    pub assume: Option<String>,
    /// What these launches become for the second one (`block=64,1,1`).
    pub shape: Shape,
    /// Options for nvcc, for CUDA C.
    pub nvcc: Vec<String>,
}

/// The document of `check`.
#[derive(Debug, Clone, Serialize)]
pub struct Checked {
    /// `warpwright.check/1`
    pub schema: &'static str,
    /// The first input by name.
    pub original: String,
    /// The second one.
    pub rewritten: String,
    /// `symbolically`, `run in the emulator` or `run on the GPU`.
    pub how: &'static str,
    /// The worst of the functions' verdicts: `refuted`, then `undecided`, then `proved`.
    pub verdict: &'static str,
    /// Function by function.
    pub functions: Vec<FunctionVerdict>,
    /// Where the ptxas that was found may make wrong code of the second input, whatever the verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub miscompiled: Vec<String>,
}

impl Checked {
    /// The first function that is undecided and that a launch may decide: none that the second version has alone.
    pub fn open(&self) -> Option<&FunctionVerdict> {
        let mut all = self.functions.iter();
        all.find(|of| of.verdict == "undecided" && !of.is_new)
    }

    /// Puts together what was found of each function.
    pub fn new(a: &Input, b: &Input, how: &'static str, functions: Vec<FunctionVerdict>) -> Self {
        let worst = ["refuted", "undecided"]
            .into_iter()
            .find(|w| functions.iter().any(|f| f.verdict == *w));
        Checked {
            schema: "warpwright.check/1",
            original: a.name.clone(),
            rewritten: b.name.clone(),
            how,
            verdict: worst.unwrap_or("proved"),
            functions,
            miscompiled: Vec::new(),
        }
    }

    /// Is every function proved?
    pub fn is_proved(&self) -> bool {
        self.verdict == "proved"
    }
}

/// The verdict on one function.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionVerdict {
    /// Its symbol.
    pub name: String,
    /// `proved`, `refuted` or `undecided`.
    pub verdict: &'static str,
    /// The verdict in words: where the two differ, or why it is not decided.
    pub text: String,
    /// What must hold of launches for the proof to be one: nothing refuses others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promises: Option<Promised>,
    /// What was assumed of launches, as a guard says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed: Option<String>,
    /// Of machine code that is proved and not the same: `kept` if its control fields protect as much as the original's,
    /// `anew` if they follow from what ptxas was seen to leave, on an architecture where such code has run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_fields: Option<&'static str>,
    /// What was tried, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// The first difference, or what is not understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// A launch on which the two differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
    /// Has the second version alone such a function?
    #[serde(skip)]
    pub is_new: bool,
}

/// A rung of the ladder to a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// How.
    pub rung: Rung,
    /// What came of it.
    pub found: Found,
}

/// A way to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// Every value as a term.
    Symbolically,
    /// A few launches in the emulator, for a difference that may be one of form.
    Emulator,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// The two are equal.
    Equal,
    /// They differ for certain.
    Different,
    /// They differ, perhaps in form alone.
    InForm,
    /// Nothing that tells them apart.
    NoDifference,
    /// It cannot be told.
    Unclear,
}

/// Where two versions begin to differ, or what the checker does not understand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// In words.
    pub what: String,
    /// The kind of reason why it is undecided ([`warpwright_check::Cause::code`]).
    pub cause: Option<&'static str>,
    /// In the original.
    pub original: Side,
    /// In the second one.
    pub rewritten: Side,
    /// A path that leads there: the first instruction of each block.
    pub path: Vec<String>,
}

/// One side of a difference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The instruction, with its line.
    pub place: Option<String>,
    /// The value, as a term.
    pub value: Option<String>,
    /// The lines around it; empty for machine code.
    pub around: Vec<Line>,
}

/// A line of PTX.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// From 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// Is it the one that differs?
    pub is_it: bool,
}

impl FunctionVerdict {
    /// A verdict of a run, with what there is to say of it.
    pub fn of_run(name: String, verdict: &'static str, text: String) -> FunctionVerdict {
        FunctionVerdict {
            name,
            verdict,
            text,
            promises: None,
            assumed: None,
            control_fields: None,
            tried: Vec::new(),
            difference: None,
            witness: None,
            is_new: false,
        }
    }
}

impl Difference {
    /// What a verdict says, beside the texts of both modules where these are PTX.
    fn of(verdict: &Verdict, modules: Option<[&Module; 2]>) -> Option<Difference> {
        let side = |at: usize, place: &Option<String>, value: Option<&String>| Side {
            place: place.clone(),
            value: value.cloned(),
            around: place
                .as_ref()
                .zip(modules)
                .map_or_else(Vec::new, |(place, modules)| around(place, modules[at])),
        };
        match verdict {
            Verdict::Proved => None,
            Verdict::Refuted(found) | Verdict::Differs(found) => Some(Difference {
                what: found.what.clone(),
                cause: verdict.cause().map(|cause| cause.code()),
                original: side(0, &found.original_place, Some(&found.original)),
                rewritten: side(1, &found.rewritten_place, Some(&found.rewritten)),
                path: found.path.clone(),
            }),
            Verdict::Undecided(reason) => Some(Difference {
                what: reason.text.clone(),
                cause: Some(reason.cause.code()),
                original: side(0, &reason.original_place, None),
                rewritten: side(1, &reason.rewritten_place, None),
                path: Vec::new(),
            }),
        }
    }
}

/// How many lines are shown before and behind the one that differs.
const AROUND: usize = 4;

/// The lines of a module around a place in it, `NAME:LINE…: INSTRUCTION`.
fn around(place: &str, module: &Module) -> Vec<Line> {
    let rest = place.strip_prefix(&*module.name);
    let rest = rest.and_then(|rest| rest.strip_prefix(':'));
    let number = rest.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let Some(at) = number.and_then(|number| number.parse::<usize>().ok()) else {
        return Vec::new();
    };
    let lines = module.source.lines().enumerate();
    lines
        .map(|(before, text)| (before + 1, text))
        .skip(at.saturating_sub(AROUND + 1))
        .take_while(|&(line, _)| line <= at + AROUND)
        .map(|(line, text)| Line {
            line,
            text: text.to_owned(),
            is_it: line == at,
        })
        .collect()
}

/// What was tried until a verdict stood; machine code is not run.
fn tried(verdict: &Verdict, witness: Option<&Witness>, is_ptx: bool) -> Vec<Tried> {
    let symbolically = |found| Tried {
        rung: Rung::Symbolically,
        found,
    };
    let emulator = |found| Tried {
        rung: Rung::Emulator,
        found,
    };
    match (verdict, witness) {
        (Verdict::Proved, _) => vec![symbolically(Found::Equal)],
        (_, Some(_)) => vec![symbolically(Found::InForm), emulator(Found::Different)],
        (Verdict::Refuted(_), None) => vec![symbolically(Found::Different)],
        (Verdict::Differs(_), None) if is_ptx => {
            vec![symbolically(Found::InForm), emulator(Found::NoDifference)]
        }
        (Verdict::Differs(_), None) => vec![symbolically(Found::InForm)],
        (Verdict::Undecided(_), None) => vec![symbolically(Found::Unclear)],
    }
}

/// What a proof takes for granted.
#[derive(Debug, Clone, Serialize)]
pub struct Promised {
    /// All blocks have these dimensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<[u32; 3]>,
    /// A launch has at most so many bytes of dynamic shared memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic_smem: Option<u32>,
}

impl Optimizer {
    /// Proves that the kernels of `b` compute what those of `a` do, shows where they do not, or says that it is not
    /// decided. Nothing is run but, for a witness, in the emulator.
    ///
    /// ```
    /// use warpwright_api::{CheckOptions, Input, Optimizer};
    ///
    /// let ptx = |add: u32| {
    ///     format!(
    ///         ".version 8.5\n.target sm_90\n.address_size 64\n\
    ///          .visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<3>;\n.reg .b64 %d;\n\
    ///          ld.param.u64 %d, [p];\nmov.u32 %r1, %tid.x;\nadd.u32 %r2, %r1, {add};\n\
    ///          st.global.u32 [%d], %r2;\nret;\n}}\n"
    ///     )
    /// };
    /// let (one, two) = (Input::new("one.ptx", ptx(1))?, Input::new("two.ptx", ptx(2))?);
    /// let optimizer = Optimizer::without_toolkit();
    /// let options = CheckOptions { block: Some([1, 1, 1]), ..CheckOptions::default() };
    /// assert!(optimizer.check(&one, &one, &options)?.is_proved());
    /// assert_eq!(optimizer.check(&one, &two, &options)?.verdict, "refuted");
    /// # Ok::<(), warpwright_api::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error`]: one of the two cannot be read, or there is nothing to check.
    pub fn check(&self, a: &Input, b: &Input, options: &CheckOptions) -> Result<Checked, Error> {
        let mut miscompiled = Vec::new();
        let functions = match (a.level, b.level) {
            (Level::Cubin, Level::Cubin) => {
                cubins([&a.name, &b.name], [&a.bytes, &b.bytes], options)?
            }
            (Level::Fat, Level::Fat) => programs(a, b, options)?,
            (one, other)
                if [one, other]
                    .iter()
                    .all(|l| !matches!(l, Level::Cubin | Level::Fat)) =>
            {
                let compared = |input: &Input| match input.level {
                    Level::Cuda => self.compared(input, &options.nvcc),
                    _ => self.compared(input, &[]),
                };
                let source = (a.level == Level::Cuda).then(|| String::from_utf8_lossy(&a.bytes));
                let (a, b) = (compared(a)?, compared(b)?);
                miscompiled = self.miscompiled(&b);
                modules((&a, source.as_deref()), &b, options)?
            }
            _ => {
                return Err(Error::Kinds {
                    a: a.name.clone(),
                    b: b.name.clone(),
                });
            }
        };
        Ok(Checked {
            miscompiled,
            ..Checked::new(a, b, "symbolically", functions)
        })
    }

    /// Where the ptxas that was found may make wrong code of a module for its own target.
    fn miscompiled(&self, module: &Module) -> Vec<String> {
        let version = self.assembler().and_then(|toolkit| {
            let version = toolkit.ptxas().ok()?.tool().version().ok()?;
            Some((version.major, version.minor))
        });
        let (Some(version), Ok(gpu)) = (version, target(module, None)) else {
            return Vec::new();
        };
        let met = miscompiled::met(module, version, gpu.arch.sm);
        met.iter().map(ToString::to_string).collect()
    }

    /// The module of an input that is to be compared: of CUDA C with lines, so that a difference can be shown in the
    /// source. `nvcc`: its options.
    ///
    /// # Errors
    /// [`Error`].
    pub fn compared(&self, input: &Input, nvcc: &[String]) -> Result<Module, Error> {
        let compile = Compile {
            lineinfo: input.level == Level::Cuda,
            nvcc,
            ..Compile::default()
        };
        let mut module = module(self.toolkit(), input, &compile)?;
        if input.level == Level::Cuda {
            module.name = format!("PTX of {}", module.name);
        }
        Ok(module)
    }
}

/// `source`: of the first one, if it is CUDA C.
fn modules(
    (a, source): (&Module, Option<&str>),
    b: &Module,
    options: &CheckOptions,
) -> Result<Vec<FunctionVerdict>, Error> {
    // One kernel stands on the device functions that it may call.
    let is_meant = |name: &str| match &options.kernel {
        Some(kernel) => is_named(kernel, name) || ![a, b].iter().any(|of| is_kernel(of, name)),
        None => true,
    };
    match &options.kernel {
        Some(kernel)
            if !a
                .kernels()
                .any(|(_, f)| f.body.is_some() && is_named(kernel, &f.name)) =>
        {
            return Err(Error::NoSuchKernel {
                name: a.name.clone(),
                kernel: kernel.clone(),
                has: {
                    let names = a.kernels().map(|(_, f)| f.name.to_string());
                    some_names(&names.collect::<Vec<String>>())
                },
            });
        }
        None if a.functions.values().all(|f| f.body.is_none()) => {
            return Err(Error::NothingToCheck {
                name: a.name.clone(),
                what: "function",
            });
        }
        _ => {}
    }
    let entries = |module: &Module| -> Vec<String> {
        let with_body = module.kernels().filter(|(_, f)| f.body.is_some());
        with_body.map(|(_, f)| f.name.to_string()).collect()
    };
    have_one_in_common([&a.name, &b.name], [&entries(a), &entries(b)])?;
    is_launched(a, options, &is_meant)?;
    let meant: Vec<_> = (a.kernels())
        .filter(|(_, kernel)| kernel.body.is_some() && is_meant(&kernel.name))
        .collect();
    let names = match meant[..] {
        [(id, kernel)] => match source {
            Some(source) => named_in(source, &kernel.name, signature(a, id)),
            None => signature(a, id),
        },
        _ => Signature::default(),
    };
    let assume = assumed(options, &names)?;
    let assumed = (!assume.is_always()).then(|| assume.named(&names).to_string());
    let mut of_launches = assumed
        .as_ref()
        .map_or_else(String::new, |text| format!(", at launches of {text}"));
    if !options.shape.is_same() {
        of_launches += &format!(", of which the second has {}", options.shape);
    }
    let options = warpwright_check::Options {
        block: options.block,
        dynamic_smem: options.dynamic_smem,
        assume,
        shape: options.shape,
    };
    let verdicts = check_modules(a, b, &options).into_iter();
    let verdicts = verdicts.filter(|(name, _)| is_meant(name)).collect();
    let verdicts = refute(a, b, verdicts, &options).into_iter();
    Ok(verdicts
        .map(|(name, verdict, witness)| FunctionVerdict {
            is_new: a.function(&name).is_none(),
            name,
            verdict: verdict.word(),
            text: match verdict.is_proved() {
                true => format!("{verdict}{of_launches}"),
                false => verdict.to_string(),
            },
            promises: None,
            assumed: assumed.clone(),
            control_fields: None,
            tried: tried(&verdict, witness.as_ref(), true),
            difference: Difference::of(&verdict, Some([a, b])),
            witness,
        })
        .collect())
}

/// A kernel's parameters by their names in CUDA C, as far as that has them.
fn named_in(source: &str, kernel: &str, own: Signature) -> Signature {
    let name = source_name(kernel);
    let name = name.split(['(', '<']).next().unwrap_or_default();
    let name = name.rsplit([' ', ':']).next().unwrap_or_default();
    match in_source(source, name) {
        Some(names) if names.len() == own.len() => {
            let bytes = (0..own.len()).map(|at| own.bytes(at).unwrap_or_default());
            Signature::new(names.into_iter().zip(bytes))
        }
        _ => own,
    }
}

/// What is assumed of launches.
fn assumed(options: &CheckOptions, names: &Signature) -> Result<Guard, Error> {
    let text = options.assume.as_deref().unwrap_or_default();
    Guard::parse(text, names).map_err(|error| Error::Assume {
        text: text.to_owned(),
        error,
    })
}

/// The same of machine code, as far as it is understood there.
fn assumed_of_code(options: &CheckOptions) -> Result<CubinOptions, Error> {
    let guard = assumed(options, &Signature::default())?;
    if !options.shape.is_same() {
        return Err(Error::AssumeOfMachineCode(options.shape.to_string()));
    }
    let is_understood = |condition: &Condition| match condition {
        Condition::In(Quantity::Block(_), _) => guard.exact(Quantity::Block).is_some(),
        Condition::In(Quantity::DynamicShared, _) => true,
        _ => false,
    };
    if guard.is_never()
        || !guard
            .conditions()
            .all(|condition| is_understood(&condition))
    {
        return Err(Error::AssumeOfMachineCode(guard.to_string()));
    }
    let most = guard.known(Quantity::DynamicShared).high();
    Ok(CubinOptions {
        block: options.block.or(guard.exact(Quantity::Block)),
        dynamic_smem: (options.dynamic_smem)
            .or(u32::try_from(most).ok().filter(|most| *most < u32::MAX)),
    })
}

/// The block that is stated must be one that a kernel takes: of several it need not be everyone's.
fn is_launched(
    module: &Module,
    options: &CheckOptions,
    is_meant: &dyn Fn(&str) -> bool,
) -> Result<(), Error> {
    let kernels = module.kernels().map(|(_, kernel)| kernel);
    let mut kernels = kernels.filter(|kernel| kernel.body.is_some() && is_meant(&kernel.name));
    let Some(first) = kernels.next() else {
        return Ok(());
    };
    let taken = |kernel| Block::of(kernel, options.block, None);
    match taken(first) {
        Err(error) if !kernels.any(|kernel| taken(kernel).is_ok()) => {
            Err(ScopeError::from(error).into())
        }
        _ => Ok(()),
    }
}

/// Two programs, libraries, objects or fat binaries: the cubins in them kernel by kernel, everything else byte for byte.
fn programs(a: &Input, b: &Input, options: &CheckOptions) -> Result<Vec<FunctionVerdict>, Error> {
    let read = |input: &Input| {
        let fail = |error| Error::Fatbin {
            name: input.name.clone(),
            error,
        };
        let fat = Fatbin::parse(&input.bytes).map_err(fail)?;
        let contents = fat
            .extract(|entry| entry.kind == Kind::Cubin)
            .map_err(fail)?;
        Ok::<_, Error>((fat, contents))
    };
    let ((fat, old), (other, new)) = (read(a)?, read(b)?);
    let held = |fat: &Fatbin| {
        let name = |entry: &Entry| match entry.kind {
            Kind::Cubin => format!("sm_{}", entry.sm),
            _ => format!("other code for sm_{}", entry.sm),
        };
        fat.entries()
            .iter()
            .map(name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let found = [held(&fat), held(&other)];
    if found[0] != found[1] {
        return Err(Error::OtherEntries {
            a: a.name.clone(),
            b: b.name.clone(),
            found: found.join("; "),
        });
    }
    let mut functions = Vec::new();
    for ((entry, old), (_, new)) in old.iter().zip(&new) {
        if !Contents::of(old).has_kernels() && old == new {
            continue;
        }
        let sm = fat.entries()[*entry].sm;
        let name = |input: &Input| format!("{} (sm_{sm})", input.name);
        match cubins([&name(a), &name(b)], [old, new], options) {
            Ok(found) => functions.extend(found),
            // It has not the kernel that is meant.
            Err(Error::NothingToCheck { .. }) if options.kernel.is_some() => {}
            Err(error) => return Err(error),
        }
    }
    if functions.is_empty() {
        return Err(Error::NothingToCheck {
            name: a.name.clone(),
            what: "kernel",
        });
    }
    let changed = old.iter().zip(&new).filter(|(old, new)| old != new);
    let changed: Vec<(usize, &[u8])> = changed.map(|((at, _), (_, new))| (*at, &new[..])).collect();
    let is_same = fat.replace(&changed).is_ok_and(|bytes| bytes == b.bytes);
    if !is_same {
        let text =
            "undecided: what is beside the cubins differs, too, and is not compared".to_owned();
        functions.push(FunctionVerdict::of_run(
            "the rest of the file".to_owned(),
            "undecided",
            text,
        ));
    }
    Ok(functions)
}

/// Two finished cubins, kernel by kernel.
fn cubins(
    [a, b]: [&str; 2],
    [old, new]: [&[u8]; 2],
    options: &CheckOptions,
) -> Result<Vec<FunctionVerdict>, Error> {
    let holds = assumed_of_code(options)?;
    let verdicts = check_files(old, new, &holds).map_err(|error| Error::Unreadable {
        a: a.to_owned(),
        b: b.to_owned(),
        error,
    })?;
    let [known, others] = [old, new].map(|cubin| Contents::of(cubin).kernels());
    have_one_in_common([a, b], [&known, &others])?;
    let wanted = |name: &str| options.kernel.as_deref().is_none_or(|k| is_named(k, name));
    let functions: Vec<FunctionVerdict> = verdicts
        .into_iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, answer)| {
            let mut text = answer.verdict.to_string();
            let promises = answer.promises;
            let holds = answer.verdict.is_proved() && !promises.is_empty();
            if answer.control_fields == Some(ControlFields::Anew) {
                text += ", with control fields of its own";
            }
            if holds {
                text += &format!(", for launches of {promises}");
            }
            FunctionVerdict {
                name,
                verdict: Verdict::word(&answer.verdict),
                text,
                assumed: None,
                promises: holds.then_some(Promised {
                    block: promises.block,
                    dynamic_smem: promises.dynamic_smem,
                }),
                control_fields: answer.control_fields.map(ControlFields::word),
                tried: tried(&answer.verdict, None, false),
                difference: Difference::of(&answer.verdict, None),
                witness: None,
                is_new: false,
            }
        })
        .collect();
    let added = others
        .into_iter()
        .filter(|name| wanted(name) && !known.contains(name));
    let added = added.map(|name| FunctionVerdict {
        is_new: true,
        ..FunctionVerdict::of_run(name, "undecided", format!("undecided: {NEW_KERNEL}"))
    });
    match functions.is_empty() {
        true => Err(Error::NothingToCheck {
            name: a.to_owned(),
            what: "kernel",
        }),
        false => Ok(functions.into_iter().chain(added).collect()),
    }
}

/// Two files whose kernels have other names throughout are no versions of each other.
fn have_one_in_common([a, b]: [&str; 2], [of_a, of_b]: [&[String]; 2]) -> Result<(), Error> {
    match of_a.is_empty() || of_b.is_empty() || of_a.iter().any(|name| of_b.contains(name)) {
        true => Ok(()),
        false => Err(Error::NothingInCommon {
            a: a.to_owned(),
            b: b.to_owned(),
            of_a: some_names(of_a),
            of_b: some_names(of_b),
        }),
    }
}

fn is_kernel(module: &Module, name: &str) -> bool {
    let function = module.function(name).map(|id| &module.functions[id]);
    function.is_some_and(|f| f.kind == FunctionKind::Entry && f.body.is_some())
}
