//! How the log names a module: by its source and its kernels, and not by a file that the compiler removes again.

use warpwright_pass::names::source_name;

/// As many kernels are named.
const MOST: usize = 4;

/// `saxpy.cu (axpy(float*, float), dot(float*))` for a file with this PTX; `path` is the name of that file.
pub fn of(path: &str, ptx: Option<&str>) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let source = ptx.and_then(source).or_else(|| of_nvcc(file));
    let name = source.unwrap_or_else(|| path.to_owned());
    let kernels: Vec<String> = ptx.into_iter().flat_map(kernels).collect();
    if kernels.is_empty() {
        return name;
    }
    let mut named = kernels[..kernels.len().min(MOST)].join(", ");
    if kernels.len() > MOST {
        named.push_str(&format!(" and {} more", kernels.len() - MOST));
    }
    format!("{name} ({named})")
}

/// The first source file that line numbers refer to.
fn source(ptx: &str) -> Option<String> {
    let line = ptx.lines().find(|line| line.starts_with(".file"))?;
    let path = line.split('"').nth(1)?;
    Some(path.rsplit('/').next().unwrap_or(path).to_owned())
}

/// nvcc's temporary files: `tmpxft_<process>_<part>-<step>_<source>.compute_90.ptx`.
fn of_nvcc(file: &str) -> Option<String> {
    let rest = file.strip_prefix("tmpxft_")?;
    let (_, rest) = rest.split_once('-')?;
    let (_, rest) = rest.split_once('_')?;
    let stem = rest.strip_suffix(".ptx").unwrap_or(rest);
    let stem = stem.split(".compute_").next().unwrap_or(stem);
    (!stem.is_empty()).then(|| format!("{stem}.cu"))
}

/// The kernels as they are written in the source.
fn kernels(ptx: &str) -> impl Iterator<Item = String> {
    symbols(ptx)
        .map(source_name)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
}

/// The kernels of PTX by their symbols.
pub fn symbols(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.match_indices(".entry").filter_map(|(at, word)| {
        let rest = ptx[at + word.len()..].trim_start();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_$%".contains(c)));
        let name = &rest[..end.unwrap_or(rest.len())];
        (!name.is_empty()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn modules_are_named_by_source_and_kernels() {
        let ptx = ".version 9.0\n.visible .entry _Z4axpyPff(\n.param .u64 p\n)\n{ ret; }\n.entry dot() { ret; }";
        let nvcc = "/tmp/tmpxft_00001a2b_00000000-6_saxpy.compute_90.ptx";
        assert_eq!(of(nvcc, Some(ptx)), "saxpy.cu (axpy(float*, float), dot)");
        assert_eq!(of("/tmp/tmpxft_1-6_my_file.ptx", None), "my_file.cu");
        assert_eq!(
            of("/tmp/xy12.ptx", Some(ptx)),
            "/tmp/xy12.ptx (axpy(float*, float), dot)"
        );
        let lines = format!("{ptx}\n.file\t1 \"/home/me/heat.py\"\n");
        assert_eq!(
            of("/tmp/xy12.ptx", Some(&lines)),
            "heat.py (axpy(float*, float), dot)"
        );
        let many: String = (0..9)
            .map(|i| format!(".entry k{i}() {{ ret; }}\n"))
            .collect();
        assert_eq!(
            of("k.ptx", Some(&many)),
            "k.ptx (k0, k1, k2, k3 and 5 more)"
        );
        assert_eq!(of("k.ptx", Some(".entry")), "k.ptx");
    }
}
