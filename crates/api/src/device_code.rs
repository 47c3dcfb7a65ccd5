//! The cubins of FILE: the file itself, or those in a fat binary, host object, executable or library.

use std::collections::BTreeSet;

use warpwright_pass::names::{is_named, selected, source_name};
use warpwright_sass::Cubin;
use warpwright_sass::elf::Elf;
use warpwright_sass::fatbin::{Fatbin, FatbinError, Kind};
use warpwright_target::{Gpu, runs_on};

use crate::{Error, Input, Level};

/// Cubins of one architecture.
#[derive(Debug)]
pub struct DeviceCode {
    name: String,
    fat: Option<Fatbin>,
    /// In file order.
    pub cubins: Vec<Embedded>,
}

/// One of them.
#[derive(Debug)]
pub struct Embedded {
    /// Its number in the fat binary; 0 for a file that is a cubin.
    entry: usize,
    /// The cubin.
    pub bytes: Vec<u8>,
    contents: Contents,
}

/// What a cubin holds, by name: of a library that is all of it that is kept.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Its functions, and whether they are kernels; none where it cannot be read.
    functions: Option<Vec<(String, bool)>>,
    /// Those of its sections, with what only its own file knows.
    sections: Vec<String>,
    is_linked: bool,
}

impl Contents {
    pub(crate) fn of(cubin: &[u8]) -> Contents {
        let Ok(elf) = Elf::parse(cubin) else {
            return Contents::default();
        };
        let functions = Cubin::of(&elf).map(|cubin| cubin.kernels);
        let sections = elf.kernels().unwrap_or_default().into_iter();
        Contents {
            functions: functions.ok().map(|all| {
                let all = all.into_iter();
                all.map(|kernel| (kernel.name, kernel.is_entry)).collect()
            }),
            sections: sections.map(|kernel| kernel.name).collect(),
            is_linked: !elf.is_relocatable(),
        }
    }

    fn functions(&self) -> impl Iterator<Item = &(String, bool)> {
        self.functions.iter().flatten()
    }

    /// Does it have kernels? What cannot be read may have some: whoever reads it next says what is wrong.
    pub(crate) fn has_kernels(&self) -> bool {
        self.functions.is_none() || self.functions().any(|(_, is_kernel)| *is_kernel)
    }

    /// Its kernels.
    pub(crate) fn kernels(&self) -> Vec<String> {
        let kernels = self.functions().filter(|(_, is_kernel)| *is_kernel);
        kernels.map(|(name, _)| name.clone()).collect()
    }
}

impl Embedded {
    fn new(entry: usize, bytes: Vec<u8>) -> Embedded {
        Embedded {
            entry,
            contents: Contents::of(&bytes),
            bytes,
        }
    }

    /// The patterns that name kernels of it.
    pub fn named(&self, patterns: &[String]) -> Vec<String> {
        let names = self.contents.functions().map(|(name, _)| name.clone());
        let names: Vec<String> = names.collect();
        let patterns = patterns.iter();
        patterns
            .filter(|pattern| !selected(pattern, &names).is_empty())
            .cloned()
            .collect()
    }

    /// Does it have kernels, as far as is known?
    pub fn has_kernels(&self) -> bool {
        self.contents.has_kernels()
    }
}

/// The architecture whose cubins the driver would take, as far as is known.
fn architecture(name: &str, fat: &Fatbin, gpu: Option<&Gpu>) -> Result<u32, Error> {
    let cubins = fat.entries().iter().filter(|e| e.kind == Kind::Cubin);
    let all: BTreeSet<u32> = cubins.map(|e| e.sm).collect();
    let names: Vec<String> = all.iter().map(|sm| format!("sm_{sm}")).collect();
    let names = names.join(", ");
    match (gpu.map(|gpu| gpu.arch.sm), all.first(), all.len()) {
        (_, None, _) => Err(Error::NoCubin(name.to_owned())),
        (Some(wanted), ..) => {
            let runs = all.iter().filter(|&&sm| runs_on(sm, wanted));
            runs.max().copied().ok_or_else(|| Error::NoCubinFor {
                name: name.to_owned(),
                found: names,
                wanted,
            })
        }
        (None, Some(only), 1) => Ok(*only),
        (None, ..) => Err(Error::WhichCubin {
            name: name.to_owned(),
            found: names,
        }),
    }
}

impl DeviceCode {
    /// The cubins of a file for a GPU; without one, those of the only architecture that it has.
    ///
    /// # Errors
    /// [`Error::Fatbin`], [`Error::NoCubin`], [`Error::NoCubinFor`], [`Error::WhichCubin`].
    pub fn of(input: &Input, gpu: Option<&Gpu>) -> Result<DeviceCode, Error> {
        let name = input.name.clone();
        if input.level == Level::Cubin {
            return Ok(DeviceCode {
                name,
                fat: None,
                cubins: vec![Embedded::new(0, input.bytes.clone())],
            });
        }
        let fail = |error: FatbinError| Error::Fatbin {
            name: name.clone(),
            error,
        };
        let fat = Fatbin::parse(&input.bytes).map_err(fail)?;
        let sm = architecture(&name, &fat, gpu)?;
        let cubins = fat.extract(|e| e.kind == Kind::Cubin && e.sm == sm);
        let cubins = cubins.map_err(fail)?.into_iter();
        let mut cubins: Vec<Embedded> = cubins
            .map(|(entry, bytes)| Embedded::new(entry, bytes))
            .collect();
        // Beside what the device linker made, a program may keep what it was made of: that is never loaded.
        let is_linked = |cubin: &Embedded| cubin.contents.is_linked;
        if cubins.iter().any(is_linked) {
            cubins.retain(is_linked);
        }
        Ok(DeviceCode {
            fat: Some(fat),
            cubins,
            name,
        })
    }

    /// Only the cubins that have a kernel which one of the patterns names; all of them without patterns.
    ///
    /// # Errors
    /// [`Error::NoFunction`].
    pub fn with_kernels(mut self, patterns: &[String]) -> Result<Self, Error> {
        let names = self.functions();
        if let Some(pattern) = patterns.iter().find(|p| selected(p, &names).is_empty()) {
            return Err(self.no_function(pattern, &names));
        }
        if self.fat.is_some() && !patterns.is_empty() {
            self.cubins
                .retain(|cubin| !cubin.named(patterns).is_empty());
        }
        Ok(self)
    }

    /// Only the cubins that have a function of that name.
    ///
    /// # Errors
    /// [`Error::NoFunction`].
    pub fn with_function(mut self, function: Option<&str>) -> Result<Self, Error> {
        let Some(function) = function else {
            return Ok(self);
        };
        let names = self.functions();
        if self.fat.is_some() {
            self.cubins.retain(|cubin| {
                let mut names = cubin.contents.sections.iter();
                names.any(|name| is_named(function, name))
            });
        }
        match self.cubins.is_empty() {
            true => Err(self.no_function(function, &names)),
            false => Ok(self),
        }
    }

    fn no_function(&self, function: &str, names: &[String]) -> Error {
        Error::NoFunction {
            name: self.name.clone(),
            function: function.to_owned(),
            has: some_names(names),
        }
    }

    /// The functions that its cubins have.
    pub fn functions(&self) -> Vec<String> {
        let functions = self.cubins.iter().flat_map(|c| c.contents.functions());
        functions.map(|(name, _)| name.clone()).collect()
    }

    /// The file with these cubins in the place of its own.
    ///
    /// # Errors
    /// [`Error::NotReplaced`].
    pub fn replaced(&self, new: &[Vec<u8>]) -> Result<Vec<u8>, Error> {
        let Some(fat) = &self.fat else {
            return new.first().cloned().ok_or(Error::Internal(
                "a cubin was taken apart and nothing came back",
            ));
        };
        let changed = self
            .cubins
            .iter()
            .zip(new)
            .filter(|(old, new)| old.bytes != **new);
        let changed: Vec<(usize, &[u8])> =
            changed.map(|(old, new)| (old.entry, &new[..])).collect();
        let bytes = fat.replace(&changed);
        bytes.map_err(|error| Error::NotReplaced {
            name: self.name.clone(),
            error,
        })
    }
}

/// The first few names of a list as their sources have them, for a message.
pub fn some_names(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).map(|name| source_name(name));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "none".to_owned(),
        1..=SHOWN => shown,
        all => format!("{shown}, … ({all} in all)"),
    }
}
