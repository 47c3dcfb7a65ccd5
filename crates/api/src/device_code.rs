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
}

impl Embedded {
    /// The patterns that name kernels of it.
    pub fn named(&self, patterns: &[String]) -> Vec<String> {
        let kernels = Cubin::parse(&self.bytes).map(|cubin| cubin.kernels);
        let names = kernels.unwrap_or_default().into_iter();
        let names: Vec<String> = names.map(|kernel| kernel.name).collect();
        let patterns = patterns.iter();
        patterns
            .filter(|pattern| !selected(pattern, &names).is_empty())
            .cloned()
            .collect()
    }

    /// Does it have kernels? What cannot be read may have some: whoever reads it next says what is wrong.
    pub fn has_kernels(&self) -> bool {
        has_kernels(&self.bytes)
    }
}

/// Does a cubin have kernels? One that cannot be read may have some.
pub(crate) fn has_kernels(cubin: &[u8]) -> bool {
    Cubin::parse(cubin).map_or(true, |cubin| cubin.kernels.iter().any(|k| k.is_entry))
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
            let bytes = input.bytes.clone();
            return Ok(DeviceCode {
                name,
                fat: None,
                cubins: vec![Embedded { entry: 0, bytes }],
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
            .map(|(entry, bytes)| Embedded { entry, bytes })
            .collect();
        // Beside what the device linker made, a program may keep what it was made of: that is never loaded.
        let is_linked = |cubin: &Embedded| {
            let elf = Elf::parse(&cubin.bytes);
            elf.is_ok_and(|elf| !elf.is_relocatable())
        };
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
                let elf = Elf::parse(&cubin.bytes);
                let kernels = elf.ok().and_then(|elf| elf.kernels().ok());
                let mut kernels = kernels.into_iter().flatten();
                kernels.any(|kernel| is_named(function, &kernel.name))
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
        let cubins = self.cubins.iter();
        let parsed = cubins.filter_map(|cubin| Cubin::parse(&cubin.bytes).ok());
        parsed
            .flat_map(|cubin| cubin.kernels)
            .map(|kernel| kernel.name)
            .collect()
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
