//! The answer.

use std::fmt;

/// Is the rewritten function a correct version of the original?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// For every input, every observable of the rewritten function equals the original's.
    Proved,
    /// A difference is certain: of cubins by what it is, of PTX by a run.
    Refuted(Box<Refutation>),
    /// Some observable takes a different symbolic value. Operations count as free functions here: that
    /// the two values never differ in fact is possible, but no rule of the checker makes them equal.
    Differs(Box<Refutation>),
    /// The checker cannot tell.
    Undecided(Reason),
}

/// Why a function is refuted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refutation {
    /// What differs: `the value stored`, `the branch condition`, …
    pub what: String,
    /// The instruction of the original that uses the value, with its line.
    pub original_place: Option<String>,
    /// The instruction of the rewritten function that uses the value, with its line.
    pub rewritten_place: Option<String>,
    /// A path on which it happens: the first instruction of each block, with its line, in the
    /// original where it moves, else in the rewritten function.
    pub path: Vec<String>,
    /// The original's value. `%r4@25` is what %r4 holds on arrival at line 25, where paths meet.
    pub original: String,
    /// The rewritten function's value.
    pub rewritten: String,
    /// Is it more than a difference in form? Constants differ, something is missing, or a thread is named.
    pub is_certain: bool,
}

/// What kind of reason it is that there is no answer. Unlike its text it stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A value or an observable differs, perhaps in form alone.
    Form,
    /// The flow of control does not line up.
    ControlFlow,
    /// What threads do together, or in order, moved.
    Together,
    /// A load that the original does not execute there.
    Load,
    /// An access that might not be aligned.
    Alignment,
    /// An access to a spill area that cannot be placed.
    Slot,
    /// A register that may be read before it is set.
    Unset,
    /// Something that an asynchronous operation may still use.
    InFlight,
    /// An instruction or a piece of code outside the model.
    Unsupported,
    /// What stands around the code.
    Around,
    /// Launches that the original takes.
    Launches,
    /// The most dynamic shared memory is not stated.
    DynamicSharedMemory,
    /// Words of machine code whose form is not known.
    Words,
    /// The schedule of machine code waits for less.
    Schedule,
    /// It is too large, or comes to no end.
    Size,
    /// Two files and a name do not make a question.
    Question,
}

impl Cause {
    /// Its code.
    pub fn code(self) -> &'static str {
        match self {
            Cause::Form => "form",
            Cause::ControlFlow => "control-flow",
            Cause::Together => "together",
            Cause::Load => "load",
            Cause::Alignment => "alignment",
            Cause::Slot => "slot",
            Cause::Unset => "unset",
            Cause::InFlight => "in-flight",
            Cause::Unsupported => "unsupported",
            Cause::Around => "around",
            Cause::Launches => "launches",
            Cause::DynamicSharedMemory => "dynamic-shared-memory",
            Cause::Words => "words",
            Cause::Schedule => "schedule",
            Cause::Size => "size",
            Cause::Question => "question",
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What kind it is of.
    pub cause: Cause,
    /// The reason.
    pub text: String,
    /// The instruction or block of the original, with its line.
    pub original_place: Option<String>,
    /// The instruction or block of the rewritten function, with its line.
    pub rewritten_place: Option<String>,
}

impl Reason {
    /// A reason that no single place is to blame for.
    pub fn new(cause: Cause, text: impl Into<String>) -> Reason {
        Reason {
            cause,
            text: text.into(),
            original_place: None,
            rewritten_place: None,
        }
    }
}

impl Verdict {
    /// Is it proved?
    pub fn is_proved(&self) -> bool {
        matches!(self, Verdict::Proved)
    }

    /// Why it is undecided.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Verdict::Proved | Verdict::Refuted(_) => None,
            Verdict::Differs(_) => Some(Cause::Form),
            Verdict::Undecided(reason) => Some(reason.cause),
        }
    }

    /// `proved`, `refuted` or `undecided`.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Proved => "proved",
            Verdict::Refuted(_) => "refuted",
            Verdict::Differs(_) | Verdict::Undecided(_) => "undecided",
        }
    }
}

/// Several lines, the last one without an end.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Verdict::Proved => Ok(()),
            Verdict::Refuted(refutation) => write!(f, ": {refutation}"),
            Verdict::Differs(refutation) => write!(f, ": perhaps in form alone, {refutation}"),
            Verdict::Undecided(reason) => write!(f, ": {reason}"),
        }
    }
}

fn places(
    f: &mut fmt::Formatter<'_>,
    original: &Option<String>,
    rewritten: &Option<String>,
) -> fmt::Result {
    if let Some(place) = original {
        write!(f, "\n  original   {place}")?;
    }
    if let Some(place) = rewritten {
        write!(f, "\n  rewritten  {place}")?;
    }
    Ok(())
}

impl fmt::Display for Refutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        places(f, &self.original_place, &self.rewritten_place)?;
        let (was, is) = (&self.original, &self.rewritten);
        match was == is {
            // Terms are shown to some depth.
            true => write!(f, "\n  both       {was}, but for what is not shown")?,
            false => write!(f, "\n  was        {was}\n  is         {is}")?,
        }
        for (index, step) in self.path.iter().enumerate() {
            let word = if index == 0 { "path" } else { "" };
            write!(f, "\n  {word:<9}  {step}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        places(f, &self.original_place, &self.rewritten_place)
    }
}
