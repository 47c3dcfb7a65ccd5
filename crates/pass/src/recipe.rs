//! Recipes: lists of passes with their options. They print, parse back and replay:
//! `reduce(98); maxnreg(128)`.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::legacy::Decision;
use crate::names::near;
use crate::options::{ArgumentError, Arguments};
use crate::pass::{AssemblerOptions, Erased, Level, Need, Pass, Timing};
use crate::passes::{PASSES, find};

/// A pass with its options. Equal where they print the same.
#[derive(Clone)]
pub struct Invocation {
    pub(crate) pass: Arc<dyn Erased>,
    text: Arc<str>,
}

/// Text that is no recipe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecipeError {
    /// No pass has this name.
    #[error("there is no pass `{name}`{near}", name = .0, near = near(.0, PASSES.iter().map(|pass| pass.name)))]
    NoPass(String),
    /// `(` without `)`, or text behind it.
    #[error("`{0}` is no pass with options: NAME or NAME(VALUE, NAME=VALUE) is wanted")]
    Syntax(String),
    /// Options that the pass does not take.
    #[error("{pass}: {error}{how}", how = how(pass, error))]
    Argument {
        /// The pass.
        pass: &'static str,
        /// What is wrong.
        error: ArgumentError,
    },
    /// A recipe goes from source to machine code and never back.
    #[error("`{later}` works on {level} and cannot come after `{earlier}`")]
    Order {
        /// The pass that comes too late.
        later: String,
        /// Its level.
        level: Level,
        /// The one before it.
        earlier: String,
    },
}

/// How it is written.
fn how(pass: &str, error: &ArgumentError) -> String {
    match error {
        ArgumentError::Missing(name) => {
            let parameters = find(pass)
                .map(|entry| (entry.parameters)())
                .unwrap_or_default();
            let about = parameters.iter().find(|parameter| parameter.name == *name);
            let about =
                about.map_or_else(String::new, |parameter| format!(": {}", parameter.about));
            let all = parameters
                .iter()
                .filter(|parameter| parameter.is_positional);
            let all: Vec<String> = all.map(|p| p.name.to_uppercase()).collect();
            format!(", as in `{pass}({})`{about}", all.join(", "))
        }
        ArgumentError::Unknown(_) | ArgumentError::TooMany(_) => {
            "; `pass --list` has its options".to_owned()
        }
        ArgumentError::Value { .. } => String::new(),
    }
}

impl Invocation {
    /// The pass of this name with these options.
    ///
    /// # Errors
    /// [`RecipeError::NoPass`], [`RecipeError::Argument`].
    pub fn new(name: &str, mut arguments: Arguments) -> Result<Invocation, RecipeError> {
        let entry = find(name).ok_or_else(|| RecipeError::NoPass(name.to_owned()))?;
        let wrong = |error| RecipeError::Argument {
            pass: entry.name,
            error,
        };
        let pass = (entry.read)(&mut arguments).map_err(wrong)?;
        arguments.finish().map_err(wrong)?;
        Ok(Invocation::erased(pass.into()))
    }

    fn erased(pass: Arc<dyn Erased>) -> Invocation {
        let written = pass.written();
        let named = written
            .named
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"));
        let values: Vec<String> = written.positional.into_iter().chain(named).collect();
        let text = match values.is_empty() {
            true => pass.name().to_owned(),
            false => format!("{}({})", pass.name(), values.join(", ")),
        };
        Invocation {
            pass,
            text: text.into(),
        }
    }

    /// The pass's name.
    pub fn name(&self) -> &'static str {
        self.pass.name()
    }

    /// Its level, with these options.
    pub fn level(&self) -> Level {
        self.pass.level()
    }

    /// What it does to control fields.
    pub fn timing(&self) -> Timing {
        self.pass.timing()
    }

    /// What it must be told about launches.
    pub fn needs(&self) -> &'static [Need] {
        self.pass.needs()
    }

    /// The pass, if it is a `P`.
    pub fn get<P: Pass>(&self) -> Option<&P> {
        self.pass.as_any().downcast_ref()
    }

    /// A short form for tables and names of files: `reduce-98`, `throttle-3-smem`, `spill-to-shared-x4`.
    pub fn label(&self) -> String {
        let written = self.pass.written();
        let mut label = self.pass.label().to_owned();
        let mut is_first = true;
        for value in written.positional {
            label += &format!("-{value}");
            is_first = false;
        }
        for (_, value) in written.named {
            let is_number = value.parse::<u64>().is_ok();
            label += match (is_number, is_first) {
                (true, true) => "-x",
                (true, false) => "x",
                (false, _) => "-",
            };
            // What a file's name had better not have.
            label += &value.replace([':', '=', '&'], "-");
            is_first = false;
        }
        label
    }
}

impl<P: Pass> From<P> for Invocation {
    fn from(pass: P) -> Self {
        Invocation::erased(Arc::new(pass))
    }
}

impl FromStr for Invocation {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let text = text.trim();
        let syntax = || RecipeError::Syntax(text.to_owned());
        let (name, options) = match text.split_once('(') {
            None => (text, ""),
            Some((name, rest)) => (name.trim_end(), rest.strip_suffix(')').ok_or_else(syntax)?),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || !name.chars().all(is_name) || options.contains(['(', ')']) {
            return Err(syntax());
        }
        let mut arguments = Arguments::default();
        let values = options.split(',').map(str::trim);
        for value in values.filter(|_| !options.trim().is_empty()) {
            match value.split_once('=') {
                Some((name, value)) => arguments.set(name.trim_end(), value.trim_start()),
                None => arguments.push(value),
            }
        }
        Invocation::new(name, arguments)
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Invocation {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Invocation {}

impl PartialOrd for Invocation {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Invocation {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for Invocation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// Passes in the order in which they run; none: the kernel stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recipe(Vec<Invocation>);

impl Recipe {
    /// A recipe from its passes.
    ///
    /// # Errors
    /// [`RecipeError::Order`].
    pub fn new(passes: Vec<Invocation>) -> Result<Recipe, RecipeError> {
        let back = |pair: &&[Invocation]| pair[0].level() > pair[1].level();
        match passes.windows(2).find(back) {
            None => Ok(Recipe(passes)),
            Some(pair) => Err(RecipeError::Order {
                later: pair[1].to_string(),
                level: pair[1].level(),
                earlier: pair[0].to_string(),
            }),
        }
    }

    /// The same recipe with one more pass, behind all of its level.
    #[must_use]
    pub fn with(&self, pass: impl Into<Invocation>) -> Recipe {
        let pass = pass.into();
        let mut passes = self.0.clone();
        let at = passes.partition_point(|earlier| earlier.level() <= pass.level());
        passes.insert(at, pass);
        Recipe(passes)
    }

    /// Its passes, in order.
    pub fn passes(&self) -> &[Invocation] {
        &self.0
    }

    /// Does it leave the kernel alone?
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    /// The passes of one level, in order.
    pub fn at(&self, level: Level) -> impl Iterator<Item = &Invocation> {
        self.0.iter().filter(move |pass| pass.level() == level)
    }

    /// The first `P` in it.
    pub fn find<P: Pass>(&self) -> Option<&P> {
        self.0.iter().find_map(Invocation::get)
    }

    /// Can PTX text carry it? (An option of ptxas can be named beside the text.)
    pub fn fits_ptx(&self) -> bool {
        self.at(Level::MachineCode).next().is_none()
    }

    /// What ptxas is told.
    pub fn assembler(&self) -> AssemblerOptions {
        let mut options = AssemblerOptions::default();
        for pass in &self.0 {
            pass.pass.configure(&mut options);
        }
        options
    }

    /// A short form for tables and names of files: `maxnreg-64+smem`.
    pub fn label(&self) -> String {
        match self.0.is_empty() {
            true => "default".to_owned(),
            false => {
                let labels: Vec<String> = self.0.iter().map(Invocation::label).collect();
                labels.join("+")
            }
        }
    }
}

/// What the empty recipe is written as.
const NOTHING: &str = "default";

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(NOTHING);
        }
        for (i, pass) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{pass}")?;
        }
        Ok(())
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let text = text.trim().trim_end_matches(';');
        if text.is_empty() || text == NOTHING {
            return Ok(Recipe::default());
        }
        let passes: Result<Vec<Invocation>, _> = text.split(';').map(str::parse).collect();
        Recipe::new(passes?)
    }
}

impl Serialize for Recipe {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Recipe {
    /// From its text, or from the list of decisions that the first result files have.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Text(String),
            Decisions(Vec<Decision>),
        }
        match Stored::deserialize(deserializer)? {
            Stored::Text(text) => text.parse().map_err(serde::de::Error::custom),
            Stored::Decisions(decisions) => {
                let with = |recipe: Recipe, decision: Decision| recipe.with(decision.into_pass());
                Ok(decisions.into_iter().fold(Recipe::default(), with))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::{MaxNReg, SmemSpilling, SpillToShared, Throttle, ThrottleBy};

    fn recipe(text: &str) -> Recipe {
        text.parse().unwrap()
    }

    #[test]
    fn recipes_print_parse_and_have_short_names() {
        for (text, label) in [
            ("default", "default"),
            ("maxnreg(64); smem-spilling", "maxnreg-64+smem"),
            ("throttle(3, by=smem)", "throttle-3-smem"),
            ("throttle(3)", "throttle-3"),
            ("spill-to-shared(blocks=4)", "spill-to-shared-x4"),
            (
                "allocate(80, blocks=3); maxnreg(80)",
                "allocate-80x3+maxnreg-80",
            ),
            ("reduce", "reduce"),
            (
                "specialize(block=64x1x1, params=param0:4=3&param1+4:4=9, guarded=yes)",
                "specialize-64x1x1-param0-4-3-param1+4-4-9-yes",
            ),
            ("remat(4, rules=paper)", "remat-4-paper"),
        ] {
            assert_eq!(recipe(text).to_string(), text);
            assert_eq!(recipe(text).label(), label);
            let json = serde_json::to_string(&recipe(text)).unwrap();
            assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), recipe(text));
        }
        assert_eq!(
            recipe(" throttle( blocks = 3 );").to_string(),
            "throttle(3)"
        );
        assert_eq!(recipe(""), Recipe::default());
    }

    #[test]
    fn typed_and_written_recipes_are_the_same() {
        let by = ThrottleBy::SharedMemory;
        let built = Recipe::default()
            .with(SpillToShared { blocks: None })
            .with(MaxNReg { registers: 64 })
            .with(Throttle { blocks: 3, by })
            .with(SmemSpilling {});
        let text = "maxnreg(64); throttle(3, by=smem); smem-spilling; spill-to-shared";
        assert_eq!(built, recipe(text), "by level, whatever the order");
        assert_eq!(
            built.find::<MaxNReg>().map(|limit| limit.registers),
            Some(64)
        );
        assert!(!built.fits_ptx());
    }

    #[test]
    fn what_is_no_recipe_is_said_by_type() {
        let error = |text: &str| text.parse::<Recipe>().unwrap_err();
        assert_eq!(error("frob"), RecipeError::NoPass("frob".into()));
        assert!(matches!(error("maxnreg(64"), RecipeError::Syntax(_)));
        assert!(matches!(error("a b"), RecipeError::Syntax(_)));
        let argument = |text| match error(text) {
            RecipeError::Argument { error, .. } => error,
            other => panic!("{other}"),
        };
        assert_eq!(argument("maxnreg"), ArgumentError::Missing("registers"));
        let said = |text: &str| text.parse::<Recipe>().unwrap_err().to_string();
        assert_eq!(
            said("maxnreg"),
            "maxnreg: `registers` is wanted, as in `maxnreg(REGISTERS)`: registers per thread"
        );
        assert!(said("maxnreg(64, 32)").contains("; `pass --list`"));
        assert_eq!(
            argument("maxnreg(1, 2)"),
            ArgumentError::TooMany("2".into())
        );
        assert_eq!(
            argument("maxnreg(1, x=2)"),
            ArgumentError::Unknown("x".into())
        );
        assert!(matches!(
            argument("maxnreg(-1)"),
            ArgumentError::Value { .. }
        ));
        assert!(matches!(
            argument("throttle(1, by=luck)"),
            ArgumentError::Value { .. }
        ));
        assert!(matches!(
            error("spill-to-shared; maxnreg(64)"),
            RecipeError::Order { .. }
        ));
    }

    #[test]
    fn what_ptxas_would_ignore_is_no_recipe() {
        for wrong in [
            "maxnreg(0)",
            "maxnreg(256)",
            "usage-level(11)",
            "minnctapersm(0)",
            "minnctapersm(33)",
            "maxntid(0)",
            "maxntid(1025)",
            "launch-bounds(2000)",
        ] {
            let error = wrong.parse::<Recipe>().unwrap_err();
            let is_value = matches!(
                &error,
                RecipeError::Argument {
                    error: ArgumentError::Value { .. },
                    ..
                }
            );
            assert!(is_value, "{wrong}: {error}");
        }
        let said = "maxnreg(1000)".parse::<Recipe>().unwrap_err().to_string();
        assert_eq!(
            said,
            "maxnreg: registers=1000: a number from 1 to 255 is wanted"
        );
        for right in [
            "maxnreg(1)",
            "maxnreg(255)",
            "usage-level(0)",
            "usage-level(10)",
            "minnctapersm(32)",
            "maxntid(1024)",
        ] {
            assert_eq!(recipe(right).to_string(), right);
        }
    }

    #[test]
    fn the_first_result_files_can_be_read() {
        let json = r#"[{"decision":"max-registers","registers":64},{"decision":"shared-spilling"},
            {"decision":"throttle","blocks":3,"by":"shared-memory"},{"decision":"spill-hottest-to-shared","blocks":4}]"#;
        let text = "maxnreg(64); smem-spilling; throttle(3, by=smem); spill-to-shared(blocks=4)";
        assert_eq!(serde_json::from_str::<Recipe>(json).unwrap(), recipe(text));
    }
}
