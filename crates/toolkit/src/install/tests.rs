//! Installation from wheels of our own making, through a Python whose pip is played by a script: what goes
//! wrong is each its own error, and no half toolkit is ever seen.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

/// A cache, wheels for it, and a Python that hands them out.
struct World {
    dir: tempfile::TempDir,
    pins: Pins,
}

const MACHINE: &str = "x86_64";
const TOOLS: [&str; 5] = ["nvcc", "ptxas", "cuobjdump", "nvdisasm", "fatbinary"];

impl World {
    /// `None`, loudly, on a machine without Python.
    fn new(test: &str) -> Option<World> {
        if !Command::new("python3")
            .arg("-V")
            .output()
            .is_ok_and(|out| out.status.success())
        {
            crate::testing::skip(test, "no python3");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let wheels = TOOLS.map(|tool| {
            let digest = make_wheel(dir.path(), tool, "release 13.5, V13.5.37");
            format!(
                "{{ name = '{tool}', version = '1', x86_64 = '{digest}', aarch64 = '{digest}' }}"
            )
        });
        let pins = format!(
            "[[toolkit]]\nseries = '13.5'\nversion = '13.5.37'\nwheels = [{}]",
            wheels.join(", ")
        );
        let world = World {
            pins: Pins::parse(&pins).unwrap(),
            dir,
        };
        world.pip("cp \"$WHEELS/$name.whl\" \"$dest\"");
        Some(world)
    }

    /// Gives pip a behaviour; `$name` is the package, `$dest` the directory.
    fn pip(&self, download: &str) {
        let wheels = self.dir.path().display();
        let script = format!(
            r#"#!/bin/sh
case "$1 $2 $3" in
  "-V  ") exit 0 ;;
  "-m pip --version") exit 0 ;;
  "-m pip download")
    for word; do [ "$last" = --dest ] && dest=$word; last=$word; done
    name=$(sed 's/==.*//' "$last") WHEELS={wheels}
    echo "$name" >> {wheels}/downloads
    {download} ;;
  *) exec python3 "$@" ;;
esac
"#
        );
        self.python(&script);
    }

    fn python(&self, script: &str) {
        let path = self.dir.path().join("python");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn base(&self) -> PathBuf {
        self.dir.path().join("cache/toolkits")
    }

    fn install(&self) -> Result<Installed, InstallError> {
        self.install_seeing(&mut |_| ())
    }

    fn install_seeing(
        &self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Installed, InstallError> {
        let python = self.dir.path().join("python");
        let set = self.pins.select(None).unwrap();
        let site = Site {
            base: &self.base(),
            set,
            machine: MACHINE,
            python: Some(&python),
        };
        site.install(progress)
    }

    fn downloads(&self) -> usize {
        let log = fs::read_to_string(self.dir.path().join("downloads")).unwrap_or_default();
        log.lines().count()
    }

    fn target(&self) -> PathBuf {
        self.base().join("13.5.37")
    }

    /// What lies in the staging directory, but for finished downloads.
    fn rubbish(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.base().join(".staging-13.5.37"))
            .into_iter()
            .flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| !path.ends_with("wheels")).collect()
    }
}

/// Writes `NAME.whl` with one tool in it; returns its digest.
fn make_wheel(dir: &Path, tool: &str, says: &str) -> String {
    let script = r"
import sys, zipfile
path, tool, says = sys.argv[1:]
with zipfile.ZipFile(path, 'w') as archive:
    item = zipfile.ZipInfo(f'nvidia/cu13/bin/{tool}')
    item.external_attr = 0o100744 << 16
    archive.writestr(item, f'#!/bin/sh\necho {tool} {says}\n')
    archive.writestr(f'{tool}-1.dist-info/RECORD', '')
";
    let path = dir.join(format!("{tool}.whl"));
    let made = Command::new("python3")
        .arg("-c")
        .arg(script)
        .arg(&path)
        .args([tool, says])
        .status();
    assert!(made.unwrap().success());
    sha256_of(&path).unwrap()
}

#[test]
fn a_second_installation_only_verifies() {
    let Some(world) = World::new("a_second_installation_only_verifies") else {
        return;
    };
    let mut seen = Vec::new();
    let first = world.install_seeing(&mut |step| seen.push(step)).unwrap();
    assert_eq!((first.already, &first.dir), (false, &world.target()));
    assert!(
        matches!(
            &seen[0],
            Progress::Downloading {
                number: 1,
                of: 5,
                ..
            }
        ),
        "{seen:?}"
    );
    assert_eq!(seen[5..], [Progress::Unpacking, Progress::Checking]);
    for tool in TOOLS {
        let path = world.target().join("bin").join(tool);
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o755
        );
        assert!(
            world
                .target()
                .join(format!("wheels/{tool}-1.dist-info/RECORD"))
                .is_file()
        );
    }
    assert!(!world.base().join(".staging-13.5.37").exists());
    assert_eq!(
        installed_in(&world.dir.path().join("cache")),
        [world.target()]
    );

    let mut seen = Vec::new();
    assert!(
        world
            .install_seeing(&mut |step| seen.push(step))
            .unwrap()
            .already
    );
    assert_eq!((seen, world.downloads()), (vec![Progress::Verifying], 5));
}

#[test]
fn libraries_have_the_names_that_linkers_look_for() {
    let root = tempfile::tempdir().unwrap();
    let lib = root.path().join("lib");
    fs::create_dir(&lib).unwrap();
    for name in [
        "libcudart.so.13",
        "libcudart_static.a",
        "libother.so.1.2",
        "libboth.so.4",
        "libboth.so",
    ] {
        fs::write(lib.join(name), name).unwrap();
    }
    for _ in 0..2 {
        linkable(root.path()).unwrap();
        let read = |name: &str| fs::read_to_string(root.path().join(name)).ok();
        assert_eq!(
            read("lib64/libcudart.so").as_deref(),
            Some("libcudart.so.13")
        );
        assert_eq!(read("lib/libboth.so").as_deref(), Some("libboth.so"));
        assert_eq!(read("lib/libother.so"), None);
    }
}

#[test]
fn damage_is_found_and_mended() {
    let Some(world) = World::new("damage_is_found_and_mended") else {
        return;
    };
    world.install().unwrap();
    let ptxas = world.target().join("bin/ptxas");
    let good = fs::read(&ptxas).unwrap();
    for damage in [None, Some(b"short".to_vec()), Some(vec![b'#'; good.len()])] {
        match damage {
            Some(bytes) => fs::write(&ptxas, bytes).unwrap(),
            None => fs::remove_file(&ptxas).unwrap(),
        }
        let mut seen = Vec::new();
        assert!(
            !world
                .install_seeing(&mut |step| seen.push(step))
                .unwrap()
                .already
        );
        assert!(seen.contains(&Progress::Damaged(ptxas.clone())), "{seen:?}");
        assert_eq!(fs::read(&ptxas).unwrap(), good);
    }
}

#[test]
fn an_interrupted_try_is_taken_up_again() {
    let Some(world) = World::new("an_interrupted_try_is_taken_up_again") else {
        return;
    };
    world.pip("[ $name = nvdisasm ] && kill -9 $$; cp \"$WHEELS/$name.whl\" \"$dest\"");
    let error = world.install().unwrap_err();
    assert!(
        matches!(
            error,
            InstallError::Tool(ToolError::Signal { signal: 9, .. })
        ),
        "{error:?}"
    );
    assert!(!world.target().exists());
    assert_eq!(world.rubbish(), [] as [&Path; 0]);
    assert_eq!(
        installed_in(&world.dir.path().join("cache")),
        [] as [&Path; 0]
    );

    // What a killed process leaves: a half-filled work directory, and a half-written download.
    let staging = world.base().join(".staging-13.5.37");
    fs::create_dir_all(staging.join("work-old/site/nvidia")).unwrap();
    fs::write(staging.join("wheels/ptxas-1.whl"), "half").unwrap();
    let before = world.downloads();
    world.pip("cp \"$WHEELS/$name.whl\" \"$dest\"");
    assert!(!world.install().unwrap().already);
    assert_eq!(
        world.downloads() - before,
        3,
        "ptxas again, nvdisasm and fatbinary"
    );
    assert!(!staging.exists());
}

#[test]
fn a_wrong_digest_installs_nothing() {
    let Some(world) = World::new("a_wrong_digest_installs_nothing") else {
        return;
    };
    world.pip("echo other > \"$dest/$name.whl\"");
    let error = world.install().unwrap_err();
    assert!(
        matches!(&error, InstallError::Checksum { package } if package == "nvcc 1"),
        "{error:?}"
    );
    assert!(!world.target().exists());
}

#[test]
fn pips_complaints_are_told_apart() {
    let Some(world) = World::new("pips_complaints_are_told_apart") else {
        return;
    };
    let fails = |words: &str| {
        world.pip(&format!("echo \"{words}\" >&2; exit 1"));
        let error = world.install().unwrap_err();
        assert_eq!(world.rubbish(), [] as [&Path; 0]);
        error
    };
    let no_network = "NewConnectionError: Failed to establish a new connection\n\
                      ERROR: No matching distribution found for nvcc==1";
    assert!(matches!(fails(no_network), InstallError::Network { .. }));
    let error = fails("ERROR: No matching distribution found for nvcc==1");
    assert!(
        matches!(error, InstallError::NotOffered { .. }),
        "{error:?}"
    );
    let error = fails("OSError: [Errno 28] No space left on device");
    assert!(matches!(error, InstallError::DiskFull { .. }), "{error:?}");
    let error = fails("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE");
    assert!(matches!(error, InstallError::Checksum { .. }), "{error:?}");
    let error = fails("Traceback:\n  something else\n");
    assert_eq!(error.to_string(), "pip cannot fetch nvcc 1: something else");
    world.pip("true");
    let error = world.install().unwrap_err();
    assert!(error.log().unwrap().contains("left no wheel"), "{error:?}");
}

#[test]
fn no_python_and_no_pip() {
    let Some(world) = World::new("no_python_and_no_pip") else {
        return;
    };
    world.python("#!/bin/sh\nexit 1\n");
    let error = world.install().unwrap_err();
    assert!(matches!(error, InstallError::NoPython), "{error:?}");
    world.python("#!/bin/sh\n[ \"$1\" = -V ] && exit 0\necho 'No module named pip'; exit 1\n");
    let error = world.install().unwrap_err();
    assert!(matches!(&error, InstallError::NoPip { log, .. } if log.contains("No module")));
    assert!(error.to_string().contains("python3-venv"), "{error}");
}

#[test]
fn a_python_without_pip_makes_an_environment() {
    let Some(world) = World::new("a_python_without_pip_makes_an_environment") else {
        return;
    };
    let full = world.dir.path().join("full");
    fs::rename(world.dir.path().join("python"), &full).unwrap();
    world.python(&format!(
        "#!/bin/sh\ncase \"$1 $2\" in\n  -V*) exit 0 ;;\n  '-m venv') mkdir -p \"$3/bin\" && \
         cp {} \"$3/bin/python3\" ;;\n  *) exit 1 ;;\nesac\n",
        full.display()
    ));
    assert!(!world.install().unwrap().already);
}

#[test]
fn a_tool_that_does_not_run_here_is_not_installed() {
    let Some(mut world) = World::new("a_tool_that_does_not_run_here") else {
        return;
    };
    let digest = make_wheel(world.dir.path(), "nvdisasm", "needs another libc");
    let old = world.pins.select(None).unwrap().wheels[3]
        .sha256(MACHINE)
        .to_owned();
    let wheels: Vec<_> = world.pins.select(None).unwrap().wheels.iter().collect();
    let lines = wheels.iter().map(|w| {
        let digest = if w.sha256(MACHINE) == old {
            &digest
        } else {
            w.sha256(MACHINE)
        };
        format!(
            "{{ name = '{}', version = '1', x86_64 = '{digest}', aarch64 = '' }}",
            w.name
        )
    });
    let text = lines.collect::<Vec<_>>().join(", ");
    let text = format!("[[toolkit]]\nseries = '13.5'\nversion = '13.5.37'\nwheels = [{text}]");
    world.pins = Pins::parse(&text).unwrap();
    let error = world.install().unwrap_err();
    assert!(
        matches!(
            error,
            InstallError::Unusable {
                tool: ToolKind::Nvdisasm,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(!world.target().exists());
}

#[test]
fn two_at_once_install_once() {
    let Some(world) = World::new("two_at_once_install_once") else {
        return;
    };
    world.pip("sleep 0.05; cp \"$WHEELS/$name.whl\" \"$dest\"");
    let results = std::thread::scope(|scope| {
        let both = [0, 1].map(|_| scope.spawn(|| world.install().unwrap().already));
        both.map(|thread| thread.join().unwrap())
    });
    assert_eq!(
        (
            results.iter().filter(|already| **already).count(),
            world.downloads()
        ),
        (1, 5)
    );
}

#[test]
fn the_pinned_list_is_complete() {
    let pins = Pins::built_in().unwrap();
    assert_eq!(pins.series(), ["13.5", "13.0"]);
    for series in pins.series() {
        let set = pins.select(Some(&series)).unwrap();
        assert_eq!(pins.select(Some(&set.version)).unwrap().series, series);
        for (wheel, machine) in set
            .wheels
            .iter()
            .flat_map(|wheel| [(wheel, "x86_64"), (wheel, "aarch64")])
        {
            let digest = wheel.sha256(machine);
            assert!(digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit()));
        }
        assert_ne!(set.digest("x86_64"), set.digest("aarch64"));
    }
    let error = pins.select(Some("12.9")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no toolkit `12.9` to install; choose one of 13.5, 13.0"
    );
}
