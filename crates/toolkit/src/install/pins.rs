//! What is fetched: the pinned wheels of `wheels.toml`.

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::InstallError;

/// The toolkits that can be installed.
#[derive(Debug, Deserialize)]
pub(crate) struct Pins {
    toolkit: Vec<Set>,
}

/// The wheels that make up one toolkit.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Set {
    /// What the user asks for, such as `13.5`.
    pub series: String,
    /// The version of nvcc and ptxas.
    pub version: String,
    pub wheels: Vec<Wheel>,
}

/// One package, with the SHA-256 of its wheel for each machine.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Wheel {
    pub name: String,
    pub version: String,
    x86_64: String,
    aarch64: String,
}

impl Pins {
    /// Those of this version of Warpwright.
    pub fn built_in() -> Result<Pins, InstallError> {
        Pins::parse(include_str!("wheels.toml"))
    }

    pub fn parse(text: &str) -> Result<Pins, InstallError> {
        toml::from_str(text).map_err(|e| InstallError::Pins(e.to_string()))
    }

    /// The toolkit asked for by series or version; without a wish, the first.
    pub fn select(&self, wish: Option<&str>) -> Result<&Set, InstallError> {
        let fits = |set: &&Set| wish.is_none_or(|w| w == set.series || w == set.version);
        self.toolkit
            .iter()
            .find(fits)
            .ok_or_else(|| InstallError::UnknownVersion {
                asked: wish.unwrap_or("any").to_owned(),
                known: self.series().join(", "),
            })
    }

    /// The versions that can be asked for, the default first.
    pub fn series(&self) -> Vec<String> {
        self.toolkit.iter().map(|set| set.series.clone()).collect()
    }

    /// Place of a version in the list; what is not in it comes last.
    pub fn rank(&self, version: &str) -> usize {
        self.toolkit
            .iter()
            .position(|set| set.version == version)
            .unwrap_or(usize::MAX)
    }
}

impl Set {
    /// Tells this set from any other: also from an earlier one of the same version.
    pub fn digest(&self, machine: &str) -> String {
        let lines = self
            .wheels
            .iter()
            .map(|w| format!("{}\n", w.requirement(machine)));
        crate::hex(&Sha256::digest(lines.collect::<String>()))
    }
}

impl Wheel {
    /// SHA-256 of the wheel for a machine (`std::env::consts::ARCH`); empty for an unknown machine.
    pub fn sha256(&self, machine: &str) -> &str {
        match machine {
            "x86_64" => &self.x86_64,
            "aarch64" => &self.aarch64,
            _ => "",
        }
    }

    /// A line of a requirements file, digest included.
    pub fn requirement(&self, machine: &str) -> String {
        format!(
            "{}=={} --hash=sha256:{}",
            self.name,
            self.version,
            self.sha256(machine)
        )
    }
}
