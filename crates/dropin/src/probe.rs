//! Builds that only ask whether a compiler works: nobody wants them in the log, or faster.

use std::path::Path;

/// Folders in which CMake tries the compiler.
const OF_CMAKE: [&str; 3] = ["CMakeScratch", "CMakeTmp", "CompilerIdCUDA"];

/// Is this process part of such a build?
pub fn is_running() -> bool {
    std::env::current_dir().is_ok_and(|folder| is_in(&folder))
}

fn is_in(folder: &Path) -> bool {
    let mut parts = folder.iter().skip_while(|part| *part != "CMakeFiles");
    parts.any(|part| OF_CMAKE.iter().any(|of_cmake| part == *of_cmake))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_of_cmake_are_no_builds() {
        for (folder, is_probe) in [
            ("/b/CMakeFiles/CMakeScratch/TryCompile-a1B2", true),
            ("/b/CMakeFiles/CMakeTmp", true),
            ("/b/CMakeFiles/4.1.2/CompilerIdCUDA", true),
            ("/b/CMakeFiles/app.dir", false),
            ("/b", false),
            ("/CMakeTmp/b", false),
        ] {
            assert_eq!(is_in(Path::new(folder)), is_probe, "{folder}");
        }
    }
}
