//! What may be done, from the environment: a build system hands ptxas no arguments of ours.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use warpwright_pass::Recipe;
use warpwright_pass::names::is_named;
use warpwright_winners::store::{Store, default_folder};

use crate::DEFAULT_BUDGET;

/// `off`, `recorded` or `safe`.
pub const POLICY: &str = "WARPWRIGHT_PTXAS";
/// Seconds for each kernel of a module.
pub const BUDGET: &str = "WARPWRIGHT_PTXAS_BUDGET";
/// A file to which a line is added for each module that was looked at.
pub const LOG: &str = "WARPWRIGHT_PTXAS_LOG";
/// Recipes of single kernels, which `safe` carries out in the place of its own: `NAME=RECIPE | NAME=RECIPE`.
pub const RECIPES: &str = "WARPWRIGHT_PTXAS_RECIPES";
/// `declared`: launches give dynamic shared memory only to kernels that declare it, so spills of others may move.
pub const SMEM: &str = "WARPWRIGHT_PTXAS_SMEM";
/// The GPU that code is for, by name, where the architecture does not say enough.
pub const GPU: &str = "WARPWRIGHT_GPU";

/// Was it said that the log cannot be written?
static UNWRITABLE: AtomicBool = AtomicBool::new(false);

/// What may take the place of ptxas's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Nothing.
    Off,
    /// Winners of the store, which were measured and proved.
    Recorded,
    /// What the static model promises, without the launch: no more spilling, and a tenth of the time promised.
    Safe,
}

impl Policy {
    /// The policy of that name.
    pub fn named(name: &str) -> Option<Policy> {
        let all = [Policy::Off, Policy::Recorded, Policy::Safe];
        all.into_iter().find(|policy| policy.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Off => "off",
            Policy::Recorded => "recorded",
            Policy::Safe => "safe",
        }
    }
}

/// A variable whose value means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}={value} is not understood ({wanted}): the drop-in is off")]
pub struct Mistake {
    /// The variable.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// What it may be.
    pub wanted: &'static str,
}

/// All of it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The policy; `off` where there are mistakes: a slip must not fail builds, nor change them.
    pub policy: Policy,
    /// Variables with values that mean nothing, as the log says it.
    pub mistakes: Vec<Mistake>,
    /// Time for one kernel.
    pub budget: Duration,
    /// Where notes go.
    pub log: Option<PathBuf>,
    /// The GPU's name.
    pub gpu: Option<String>,
    /// Recipes of single kernels, by their names. Without a policy their modules have no other changes.
    pub recipes: Vec<(String, Recipe)>,
    /// Is there no policy beside them?
    pub named_alone: bool,
    /// Kernels that declare no dynamic shared memory are launched with none.
    pub smem_declared: bool,
    /// Where winners are.
    pub store: Option<PathBuf>,
}

impl Settings {
    /// From variables.
    pub fn of(variable: &dyn Fn(&str) -> Option<OsString>) -> Settings {
        // A value that is no text is none that is known.
        let text = |name: &str| {
            let value = variable(name)?.to_string_lossy().into_owned();
            (!value.is_empty()).then_some(value)
        };
        let mut mistakes = Vec::new();
        let mut mistaken = |name, value, wanted| {
            mistakes.push(Mistake {
                name,
                value,
                wanted,
            })
        };
        let mut policy = match text(POLICY) {
            None => Policy::Recorded,
            Some(value) => match Policy::named(&value) {
                Some(policy) => policy,
                None => {
                    mistaken(POLICY, value, "off, recorded or safe");
                    Policy::Off
                }
            },
        };
        let mut budget = DEFAULT_BUDGET;
        if let Some(value) = text(BUDGET) {
            let seconds = value.trim().parse::<f64>().ok();
            match seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()) {
                Some(given) if !given.is_zero() => budget = given,
                _ => mistaken(BUDGET, value, "seconds, more than none"),
            }
        }
        let mut recipes = Vec::new();
        for part in text(RECIPES).iter().flat_map(|value| value.split('|')) {
            // `opt` wraps what is to be pasted.
            let words: Vec<&str> = part.split_whitespace().collect();
            let part = words.join(" ");
            let named = part.split_once('=');
            let named = named.and_then(|(name, recipe)| {
                let name = name.trim();
                let is_empty = name.is_empty() || recipe.trim().is_empty();
                Some((name.to_owned(), recipe.trim().parse().ok()?)).filter(|_| !is_empty)
            });
            match named {
                Some(named) => recipes.push(named),
                None => mistakes.push(Mistake {
                    name: RECIPES,
                    value: part,
                    wanted: "NAME=RECIPE | NAME=RECIPE",
                }),
            }
        }
        let smem = text(SMEM);
        let smem_declared = smem.as_deref() == Some("declared");
        if let Some(value) = smem.filter(|_| !smem_declared) {
            mistakes.push(Mistake {
                name: SMEM,
                value,
                wanted: "declared",
            });
        }
        // `recorded` is what nothing means.
        let named_alone = !recipes.is_empty() && policy == Policy::Recorded;
        if named_alone {
            policy = Policy::Safe;
        }
        if !mistakes.is_empty() {
            policy = Policy::Off;
        }
        Settings {
            policy,
            mistakes,
            budget,
            log: variable(LOG).filter(|v| !v.is_empty()).map(PathBuf::from),
            gpu: text(GPU),
            recipes,
            named_alone,
            smem_declared,
            store: default_folder(variable),
        }
    }

    /// What holds for a module of these kernels: where none is named, winners are still taken.
    pub fn for_module(self, symbols: &[&str]) -> Settings {
        let is_named = symbols.iter().any(|symbol| self.recipe(symbol).is_some());
        match self.named_alone && !is_named {
            true => Settings {
                policy: Policy::Recorded,
                named_alone: false,
                ..self
            },
            false => self,
        }
    }

    /// The kernels whose recipes are named.
    pub fn named(&self) -> String {
        let names: Vec<&str> = self.recipes.iter().map(|(name, _)| &**name).collect();
        names.join(", ")
    }

    /// The names of recipes that mean none of these kernels, for the log.
    pub fn unmatched(&self, symbols: &[&str]) -> String {
        let means = |name: &str| symbols.iter().any(|symbol| is_named(name, symbol));
        let names = self.recipes.iter().map(|(name, _)| &**name);
        let none: Vec<&str> = names.filter(|name| !means(name)).collect();
        match none.is_empty() {
            true => String::new(),
            false => format!("; {RECIPES}: no kernel here is {}", none.join(", ")),
        }
    }

    /// The recipe that is named for a kernel, by its symbol.
    pub fn recipe(&self, symbol: &str) -> Option<&Recipe> {
        let mut all = self.recipes.iter();
        all.find(|(name, _)| is_named(name, symbol))
            .map(|(_, recipe)| recipe)
    }

    /// The store of winners, if there is a place for one.
    pub fn winners(&self) -> Option<Store> {
        self.store.clone().map(Store::at)
    }

    /// What decides which code comes out, in a line: hosts keep builds by what `--version` prints.
    pub fn stamp(&self) -> String {
        let mut parts = format!(
            "warpwright {} policy {} budget {:?} gpu {}",
            env!("CARGO_PKG_VERSION"),
            match self.named_alone {
                true => "the named ones alone",
                false => self.policy.name(),
            },
            self.budget,
            self.gpu.as_deref().unwrap_or("any"),
        );
        if self.policy == Policy::Safe {
            if self.smem_declared {
                parts.push_str(" smem declared");
            }
            for (name, recipe) in &self.recipes {
                parts.push_str(&format!(" {name}={recipe}"));
            }
        }
        if self.policy == Policy::Recorded || self.named_alone {
            let mut names: Vec<String> = self.store_listing().unwrap_or_default();
            names.sort_unstable();
            let digest = warpwright_winners::sha256(names.join("\n").as_bytes());
            parts.push_str(&format!(" winners {}", &digest[..16]));
        }
        parts
    }

    /// Names, sizes and times of the store's files.
    fn store_listing(&self) -> Option<Vec<String>> {
        let entries = std::fs::read_dir(self.store.as_ref()?).ok()?.flatten();
        let line = |entry: std::fs::DirEntry| {
            let data = entry.metadata().ok()?;
            let time = data
                .modified()
                .ok()?
                .duration_since(std::time::UNIX_EPOCH)
                .ok()?;
            let name = entry.file_name();
            Some(format!(
                "{} {} {}",
                name.to_string_lossy(),
                data.len(),
                time.as_nanos()
            ))
        };
        Some(entries.filter_map(line).collect())
    }

    /// Adds a line to the log, in one write: several builds may share it.
    pub fn note(&self, line: &str) {
        let Some(path) = &self.log else { return };
        let line = format!("{}\n", line.replace(|c: char| c.is_control(), " "));
        let file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        // A log that stays empty looks as if nothing had been called: that is said, once.
        if let Err(error) = written
            && !UNWRITABLE.swap(true, Ordering::Relaxed)
        {
            eprintln!(
                "warpwright-ptxas: the log `{}` ({LOG}) cannot be written: {error}",
                path.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_switches_off_and_nothing_means_recorded() {
        let with = |given: &'static str, value: Option<&'static str>| {
            let get = move |name: &str| value.filter(|_| name == given).map(OsString::from);
            let settings = Settings::of(&get);
            let mistakes = settings.mistakes.into_iter().map(|m| (m.name, m.value));
            (settings.policy, mistakes.collect::<Vec<_>>())
        };
        assert_eq!(with(POLICY, None), (Policy::Recorded, vec![]));
        assert_eq!(with(POLICY, Some("")), (Policy::Recorded, vec![]));
        assert_eq!(with(POLICY, Some("safe")), (Policy::Safe, vec![]));
        assert_eq!(with(POLICY, Some("off")), (Policy::Off, vec![]));
        assert_eq!(with(BUDGET, Some("2.5")), (Policy::Recorded, vec![]));
        for (name, value) in [
            (POLICY, "sfae"),
            (POLICY, "Safe"),
            (BUDGET, "10s"),
            (BUDGET, "-1"),
            (BUDGET, "0"),
            (BUDGET, "nan"),
        ] {
            let expected = (Policy::Off, vec![(name, value.to_owned())]);
            assert_eq!(with(name, Some(value)), expected);
        }
    }

    #[test]
    fn recipes_are_named_for_kernels() {
        let with = |value: &'static str| {
            let get = move |name: &str| (name == RECIPES).then(|| OsString::from(value));
            Settings::of(&get)
        };
        let settings =
            with("lu=maxnreg(96);\n          smem-spilling | phys::k =\n  usage-level(5)");
        let recipe = |symbol: &str| settings.recipe(symbol).map(ToString::to_string);
        assert_eq!(recipe("lu").as_deref(), Some("maxnreg(96); smem-spilling"));
        assert_eq!(recipe("_ZN4phys1kEPf").as_deref(), Some("usage-level(5)"));
        assert_eq!(recipe("other"), None);
        assert!(settings.policy == Policy::Safe && settings.named_alone);
        assert!(settings.stamp().contains(" policy the named ones alone "));
        let unmatched = |symbols: &[&str]| settings.unmatched(symbols);
        let none = format!("; {RECIPES}: no kernel here is lu, phys::k");
        assert_eq!(unmatched(&["other"]), none);
        // Where none is named, winners are taken as without the variable.
        let of = |symbols: &[&str]| settings.clone().for_module(symbols);
        let other = of(&["other"]);
        assert!(other.policy == Policy::Recorded && !other.named_alone);
        let lu = of(&["other", "lu"]);
        assert!(lu.policy == Policy::Safe && lu.named_alone);
        assert_eq!(unmatched(&["_ZN4phys1kEPf", "lu"]), "");
        let expected = format!("; {RECIPES}: no kernel here is phys::k");
        assert_eq!(unmatched(&["lu", "other"]), expected);
        let both = Settings::of(&|name: &str| match name {
            RECIPES => Some("lu=maxnreg(96)".into()),
            POLICY => Some("recorded".into()),
            _ => None,
        });
        assert!(both.policy == Policy::Safe && both.named_alone && both.mistakes.is_empty());
        for slip in [
            "lu",
            "lu=",
            "=maxnreg(96)",
            "lu=maxnregs(96)",
            "lu=maxnreg(96) | ",
        ] {
            let settings = with(slip);
            assert_eq!(settings.policy, Policy::Off, "{slip}");
            assert_eq!(settings.mistakes[0].name, RECIPES, "{slip}");
        }
    }

    #[test]
    fn the_stamp_looks_like_no_version_of_ptxas() {
        let settings = Settings::of(&|_| None);
        assert!(!settings.stamp().contains(", V") && !settings.stamp().contains("release"));
    }
}
