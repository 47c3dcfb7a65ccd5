//! Which nvcc, ptxas, … are used.
//!
//! Places, first match wins: `--toolkit DIR`, `WARPWRIGHT_TOOLKIT`, `CUDA_HOME`, `CUDA_PATH`, `PATH`,
//! Warpwright's cache. A toolkit named by one of the first two is used alone. Behind them each tool is
//! looked up by itself, since a toolkit may well lack some (the packages that split CUDA into parts often
//! leave out nvdisasm).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dirs::{Environment, cache_dir, cache_dir_in, process_environment};
use crate::error::{NotFound, ToolError};
use crate::install;
use crate::tool::{Origin, Tool, ToolKind};

/// Names a toolkit directory, like `--toolkit`.
pub const TOOLKIT_VARIABLE: &str = "WARPWRIGHT_TOOLKIT";

/// Where to look.
#[derive(Debug, Clone, Default)]
pub struct FindOptions {
    /// The directory that the user named with `--toolkit`, if any: one that holds `bin/ptxas`, or
    /// ptxas itself.
    pub explicit_dir: Option<PathBuf>,
}

/// The tools that were found.
#[derive(Debug, Clone)]
pub struct Toolkit {
    tools: BTreeMap<ToolKind, Tool>,
    named: Option<PathBuf>,
}

impl Toolkit {
    /// Looks for the tools.
    ///
    /// # Errors
    /// An explicitly named directory holds none of the tools, or none is found anywhere. A toolkit that
    /// lacks single tools is found all the same; [`Toolkit::tool`] says what is missing.
    pub fn find(options: &FindOptions) -> Result<Toolkit, NotFound> {
        Toolkit::find_in(options, &process_environment)
    }

    fn find_in(options: &FindOptions, env: Environment) -> Result<Toolkit, NotFound> {
        if let Some(dir) = &options.explicit_dir {
            return Toolkit::named(dir, Origin::Option);
        }
        if let Some(dir) = env(TOOLKIT_VARIABLE) {
            return Toolkit::named(Path::new(&dir), Origin::Variable);
        }
        let places = places(env);
        let mut tools = BTreeMap::new();
        for kind in ToolKind::ALL {
            let found = places
                .iter()
                .find_map(|(dir, origin)| tool_in(dir, kind, *origin));
            tools.extend(found.map(|tool| (kind, tool)));
        }
        if tools.is_empty() {
            Err(match cache_dir_in(env) {
                Some(_) => NotFound::Anywhere,
                None => NotFound::NoCache,
            })
        } else {
            Ok(Toolkit { tools, named: None })
        }
    }

    /// The toolkit of a series (`13.5`, `13.0`) that `warpwright toolkit install` put into the cache.
    ///
    /// # Errors
    /// It is not installed, or no such series is known.
    pub fn installed(series: &str) -> Result<Toolkit, NotFound> {
        let missing = || NotFound::Series {
            series: series.to_owned(),
        };
        let version = install::version_of(series).ok_or_else(missing)?;
        let dirs = cache_dir()
            .map(|dir| install::installed_in(&dir))
            .unwrap_or_default();
        let dir = dirs
            .into_iter()
            .find(|dir| dir.ends_with(&version))
            .ok_or_else(missing)?;
        Toolkit::named(&dir, Origin::Cache)
    }

    /// All toolkits in the cache, the newest first.
    pub fn cached() -> Vec<Toolkit> {
        let dirs = cache_dir().map(|dir| install::installed_in(&dir));
        let dirs = dirs.unwrap_or_default().into_iter();
        let found = dirs.filter_map(|dir| Toolkit::named(&dir, Origin::Cache).ok());
        found.collect()
    }

    /// Did the user say that this one is to be used?
    pub fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// The toolkit in one directory and nothing else.
    fn named(dir: &Path, origin: Origin) -> Result<Toolkit, NotFound> {
        let mut tools = BTreeMap::new();
        for kind in ToolKind::ALL {
            let found = [dir.join("bin"), dir.to_path_buf()];
            let found = found.iter().find_map(|dir| tool_in(dir, kind, origin));
            tools.extend(found.map(|tool| (kind, tool)));
        }
        if tools.is_empty() {
            return Err(NotFound::Named {
                origin: origin.name(),
                dir: dir.to_path_buf(),
            });
        }
        Ok(Toolkit {
            tools,
            named: Some(dir.to_path_buf()),
        })
    }

    /// ptxas in exactly this file, whatever its name, and no other tool; `None` where the file is no program, or is the
    /// program that runs.
    pub fn with_ptxas(file: &Path, origin: Origin) -> Option<Toolkit> {
        let tool = program_at(file.to_path_buf(), ToolKind::Ptxas, origin)?;
        let named = Some(tool.path.clone());
        let tools = BTreeMap::from([(ToolKind::Ptxas, tool)]);
        Some(Toolkit { tools, named })
    }

    /// The tool of that kind.
    ///
    /// # Errors
    /// [`ToolError::Missing`], which names the command that mends it.
    pub fn tool(&self, kind: ToolKind) -> Result<&Tool, ToolError> {
        let missing = || ToolError::Missing {
            tool: kind,
            named: self.named.clone(),
        };
        self.tools.get(&kind).ok_or_else(missing)
    }

    /// All that were found, in the order of [`ToolKind::ALL`].
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values()
    }
}

/// The directories searched when no toolkit is named, in order.
fn places(env: Environment) -> Vec<(PathBuf, Origin)> {
    let mut places = Vec::new();
    for (name, origin) in [
        ("CUDA_HOME", Origin::CudaHome),
        ("CUDA_PATH", Origin::CudaPath),
    ] {
        if let Some(dir) = env(name) {
            places.push((Path::new(&dir).join("bin"), origin));
        }
    }
    let path = env("PATH").unwrap_or_default();
    places.extend(std::env::split_paths(&path).map(|dir| (dir, Origin::Path)));
    let cached = cache_dir_in(env)
        .map(|dir| install::installed_in(&dir))
        .unwrap_or_default();
    places.extend(
        cached
            .into_iter()
            .map(|dir| (dir.join("bin"), Origin::Cache)),
    );
    places
}

fn tool_in(dir: &Path, kind: ToolKind, origin: Origin) -> Option<Tool> {
    // An empty element of PATH means the working directory: never run a program from there.
    match dir.as_os_str().is_empty() {
        true => None,
        false => program_at(dir.join(kind.name()), kind, origin),
    }
}

fn program_at(path: PathBuf, kind: ToolKind, origin: Origin) -> Option<Tool> {
    if !is_program(&path) || is_this_program(&path) {
        return None;
    }
    let path = std::path::absolute(&path).ok()?;
    Some(Tool::new(kind, path, origin))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The drop-in for ptxas may itself stand in `PATH` under the name `ptxas`; it must not call itself.
fn is_this_program(path: &Path) -> bool {
    let this = std::env::current_exe().and_then(std::fs::canonicalize);
    matches!((this, std::fs::canonicalize(path)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::dirs::CACHE_VARIABLE;

    /// Places with tools that are never run, and the environment that points at them.
    struct World {
        dir: tempfile::TempDir,
        variables: Vec<(&'static str, OsString)>,
    }

    impl World {
        fn new() -> World {
            World {
                dir: tempfile::tempdir().unwrap(),
                variables: Vec::new(),
            }
        }

        fn tool(&self, path: &str) {
            let path = self.dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn set(&mut self, name: &'static str, path: &str) {
            let value = self.dir.path().join(path).into_os_string();
            self.variables.push((name, value));
        }

        fn find(&self, explicit: Option<&str>) -> Result<Toolkit, NotFound> {
            let explicit_dir = explicit.map(|dir| self.dir.path().join(dir));
            let get = |name: &str| {
                self.variables
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, value)| value.clone())
            };
            Toolkit::find_in(&FindOptions { explicit_dir }, &get)
        }

        /// `ORIGIN:PLACE` of the tool, or why not.
        fn place(&self, explicit: Option<&str>, kind: ToolKind) -> String {
            let toolkit = match self.find(explicit) {
                Ok(toolkit) => toolkit,
                Err(e) => return e.to_string(),
            };
            match toolkit.tool(kind) {
                Ok(tool) => {
                    let place = tool.path.strip_prefix(self.dir.path()).unwrap();
                    format!("{}:{}", tool.origin, place.display())
                }
                Err(e) => e.to_string(),
            }
        }
    }

    #[test]
    fn places_in_their_order() {
        let mut world = World::new();
        for place in ["option", "variable", "home", "path"] {
            world.tool(&format!("{place}/bin/ptxas"));
        }
        world.tool("onpath/ptxas");
        world.tool("cache/toolkits/13.5.37/bin/ptxas");
        world.tool("cache/toolkits/13.5.37/installed.json");
        assert!(matches!(world.find(None), Err(NotFound::NoCache)));
        world.set("WARPWRIGHT_CACHE", "cache");
        let cached = "warpwright cache:cache/toolkits/13.5.37/bin/ptxas";
        assert_eq!(world.place(None, ToolKind::Ptxas), cached);
        world.set("PATH", "onpath");
        assert_eq!(world.place(None, ToolKind::Ptxas), "PATH:onpath/ptxas");
        world.set("CUDA_PATH", "path");
        assert_eq!(
            world.place(None, ToolKind::Ptxas),
            "CUDA_PATH:path/bin/ptxas"
        );
        world.set("CUDA_HOME", "home");
        assert_eq!(
            world.place(None, ToolKind::Ptxas),
            "CUDA_HOME:home/bin/ptxas"
        );
        world.set("WARPWRIGHT_TOOLKIT", "variable");
        assert_eq!(
            world.place(None, ToolKind::Ptxas),
            "WARPWRIGHT_TOOLKIT:variable/bin/ptxas"
        );
        let option = world.place(Some("option"), ToolKind::Ptxas);
        assert_eq!(option, "--toolkit:option/bin/ptxas");
        let option = world.place(Some("onpath"), ToolKind::Ptxas);
        assert_eq!(
            option, "--toolkit:onpath/ptxas",
            "the directory of the programs itself"
        );
    }

    #[test]
    fn single_tools_come_from_later_places_unless_a_toolkit_is_named() {
        let mut world = World::new();
        world.tool("home/bin/nvcc");
        world.tool("onpath/nvdisasm");
        world.set("CUDA_HOME", "home");
        world.set("PATH", "onpath");
        assert_eq!(
            world.place(None, ToolKind::Nvdisasm),
            "PATH:onpath/nvdisasm"
        );
        assert_eq!(
            world.place(None, ToolKind::Ptxas),
            "ptxas is missing: run `warpwright toolkit install`"
        );
        world.set("WARPWRIGHT_TOOLKIT", "home");
        let named = world.place(None, ToolKind::Nvdisasm);
        assert!(
            named.contains("named explicitly") && named.contains("home"),
            "{named}"
        );
        let wrong = world.place(Some("nowhere"), ToolKind::Nvdisasm);
        assert!(
            wrong.contains("--toolkit names") && wrong.contains("nowhere"),
            "{wrong}"
        );
    }

    #[test]
    fn half_toolkits_in_the_cache_are_not_seen() {
        let mut world = World::new();
        world.set("WARPWRIGHT_CACHE", "cache");
        world.tool("cache/toolkits/13.5.37/bin/ptxas");
        world.tool("cache/toolkits/.staging-13.0.88/bin/ptxas");
        world.tool("cache/toolkits/.staging-13.0.88/installed.json");
        assert!(matches!(world.find(None), Err(NotFound::Anywhere)));
        world.tool("cache/toolkits/13.0.88/bin/ptxas");
        world.tool("cache/toolkits/13.0.88/installed.json");
        assert!(
            world
                .place(None, ToolKind::Ptxas)
                .ends_with("13.0.88/bin/ptxas")
        );
        world.tool("cache/toolkits/13.5.37/installed.json");
        assert!(
            world
                .place(None, ToolKind::Ptxas)
                .ends_with("13.5.37/bin/ptxas")
        );
    }

    #[test]
    fn this_program_and_the_working_directory_are_never_taken() {
        let mut world = World::new();
        let this = std::env::current_exe().unwrap();
        fs::create_dir(world.dir.path().join("onpath")).unwrap();
        std::os::unix::fs::symlink(this, world.dir.path().join("onpath/ptxas")).unwrap();
        world.set("PATH", "onpath");
        assert!(matches!(world.find(None), Err(NotFound::NoCache)));
        let path = std::env::join_paths(["".into(), world.dir.path().join("none")]).unwrap();
        world.variables = vec![("PATH", path)];
        assert!(matches!(world.find(None), Err(NotFound::NoCache)));
    }

    #[test]
    fn cache_directories() {
        let dir = |pairs: &[(&str, &str)]| {
            let get = |name: &str| {
                pairs
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, value)| OsString::from(value))
            };
            cache_dir_in(&get).map(|path| path.display().to_string())
        };
        assert_eq!(dir(&[]), None);
        assert_eq!(
            dir(&[("HOME", "/h")]).as_deref(),
            Some("/h/.cache/warpwright")
        );
        let both = [("HOME", "/h"), ("XDG_CACHE_HOME", "/x")];
        assert_eq!(dir(&both).as_deref(), Some("/x/warpwright"));
        let relative = [("HOME", "/h"), ("XDG_CACHE_HOME", "x")];
        assert_eq!(dir(&relative).as_deref(), Some("/h/.cache/warpwright"));
        assert_eq!(
            dir(&[("HOME", "/h"), (CACHE_VARIABLE, "/c")]).as_deref(),
            Some("/c")
        );
    }
}
