//! The launches of kernels in their own file, `k<<<grid, block, shared>>>`, as far as their parts are numbers. Read from
//! the text alone: what is found is a fact about that launch, and no promise of others.

use warpwright_pass::names::base_name;
use warpwright_ptx::Module;

use crate::{Input, Level};

/// A launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnLaunch {
    /// Blocks, in as many dimensions as it says.
    pub grid: Option<Vec<u32>>,
    /// Threads per block.
    pub block: Option<Vec<u32>>,
    /// Dynamic shared memory in bytes per block.
    pub dynamic_smem: u32,
}

/// The block of each kernel of a module, by its symbol, where the text launches it and all launches agree on numbers.
pub fn own_blocks(text: &str, module: &Module) -> Vec<(String, [u32; 3])> {
    let kernels = module
        .kernels()
        .map(|(_, function)| function.name.to_string());
    let block = |symbol: String| {
        let mut launches = own_launches(text, &base_name(&symbol)).into_iter();
        let first = launches.next()?.block?;
        let agrees = |launch: OwnLaunch| launch.block.as_ref() == Some(&first);
        let extent = |at: usize| first.get(at).copied().unwrap_or(1);
        launches
            .all(agrees)
            .then(|| (symbol, [0, 1, 2].map(extent)))
    };
    kernels.filter_map(block).collect()
}

/// [`own_blocks`] of an input that is CUDA C.
pub(crate) fn seen(input: &Input, module: &Module) -> Vec<(String, [u32; 3])> {
    let text = input.text().ok().filter(|_| input.level == Level::Cuda);
    text.map_or_else(Vec::new, |text| own_blocks(text, module))
}

/// All launches of a kernel that the text has, in its order.
pub fn own_launches(text: &str, kernel: &str) -> Vec<OwnLaunch> {
    if kernel.is_empty() {
        return Vec::new();
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let inside = |(at, _): (usize, &str)| {
        let before = text[..at].chars().next_back();
        let after = text[at + kernel.len()..].trim_start();
        // A template's arguments may stand between.
        let after = match after.starts_with("<<<") || !after.starts_with('<') {
            true => after,
            false => after
                .split_once('>')
                .map_or(after, |(_, rest)| rest.trim_start()),
        };
        let after = after.strip_prefix("<<<");
        let after = after.filter(|_| !before.is_some_and(is_name))?;
        Some(after.split_once(">>>")?.0)
    };
    let launch = |inside: &str| {
        let parts = arguments(inside);
        let part = |number: usize| parts.get(number).and_then(|part| numbers(part, text, 3));
        let smem = part(2).and_then(|smem| smem.first().copied());
        OwnLaunch {
            grid: part(0),
            block: part(1),
            dynamic_smem: smem.unwrap_or(0),
        }
    };
    let found = text.match_indices(kernel).filter_map(inside);
    found.map(launch).collect()
}

/// Parts between commas that stand in no brackets.
pub fn arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0_i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// `256`, `dim3(16, 8)`, or a name that the text gives one such value; `most` names lead to one another.
pub fn numbers(part: &str, text: &str, most: u32) -> Option<Vec<u32>> {
    let part = part.trim();
    if let Ok(number) = part.parse() {
        return (number > 0).then(|| vec![number]);
    }
    if let Some(inside) = part.strip_prefix("dim3") {
        let inside = inside
            .trim()
            .strip_prefix(['(', '{'])?
            .strip_suffix([')', '}'])?;
        let all = arguments(inside).into_iter();
        let one = |part: &str| match numbers(part, text, most.checked_sub(1)?)?[..] {
            [number] => Some(number),
            _ => None,
        };
        let all: Option<Vec<u32>> = all.map(one).collect();
        return all.filter(|all| !all.is_empty() && all.len() <= 3 && !all.contains(&0));
    }
    let is_name = part.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !is_name || part.is_empty() || most == 0 {
        return None;
    }
    let mut values: Vec<Vec<u32>> = Vec::new();
    for line in text.split([';', '\n']) {
        let line = line.trim();
        let after = |prefix: &str| {
            let at = line.find(prefix)?;
            let rest = line[at + prefix.len()..].strip_prefix(part)?;
            rest.starts_with(|c: char| !(c.is_alphanumeric() || c == '_'))
                .then_some(rest)
        };
        let value = match (
            after("dim3 "),
            after("#define "),
            after("int "),
            after("unsigned "),
        ) {
            (Some(rest), ..) => Some(format!("dim3{}", rest.trim())),
            (_, Some(rest), ..) => Some(rest.trim().to_owned()),
            (_, _, Some(rest), _) | (.., Some(rest)) => rest
                .trim()
                .strip_prefix('=')
                .map(|value| value.trim().to_owned()),
            _ => continue,
        };
        values.push(numbers(&value?, text, most - 1)?);
    }
    values.dedup();
    match &values[..] {
        [only] => Some(only.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_launch_are_found() {
        let text = "#define T 128\ndim3 b(32, 8); const int n = 64; int m = n + 1;\n\
             ak<<<1, 2>>>(x); k<<<(n + 255) / 256, T>>>(x);";
        let own = own_launches(text, "k").remove(0);
        assert_eq!(
            (own.grid, own.block, own.dynamic_smem),
            (None, Some(vec![128]), 0)
        );
        assert_eq!(numbers("b", text, 3), Some(vec![32, 8]));
        assert_eq!(numbers("dim3(4, 2, 1)", text, 3), Some(vec![4, 2, 1]));
        assert_eq!(numbers("dim3(T, n)", text, 3), Some(vec![128, 64]));
        assert_eq!(numbers("dim3(b, 2)", text, 3), None);
        assert_eq!(numbers("n", text, 3), Some(vec![64]));
        for unknown in ["m", "0", "dim3(0)", "x", "n * 2", ""] {
            assert_eq!(numbers(unknown, text, 3), None, "{unknown}");
        }
        // A name for itself ends, too.
        assert_eq!(numbers("a", "#define a a", 3), None);
        let own = own_launches("k<float, 4><<<dim3(2), 64, 1024>>>(x)", "k").remove(0);
        assert_eq!(
            (own.grid, own.block, own.dynamic_smem),
            (Some(vec![2]), Some(vec![64]), 1024)
        );
        assert!(own_launches("k(x);", "k").is_empty());
    }

    #[test]
    fn a_block_is_known_where_all_launches_agree() {
        let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n\
                   .visible .entry _ZN2ns4fillIiEEvPT_(.param .u64 p) { ret; }\n.visible .entry k() { ret; }\n";
        let module = Module::parse("k.ptx", ptx).0;
        let blocks = |text: &str| own_blocks(text, &module);
        let of = |kernel: &str, dims: [u32; 3]| vec![(kernel.to_owned(), dims)];
        let fill = "_ZN2ns4fillIiEEvPT_";
        assert_eq!(
            blocks("dim3 b(16, 8); ns::fill<int><<<n, b>>>(p);"),
            of(fill, [16, 8, 1])
        );
        assert_eq!(
            blocks("k<<<1, 64>>>(); k<<<n, 64, 8>>>();"),
            of("k", [64, 1, 1])
        );
        for unknown in [
            "k<<<1, 64>>>(); k<<<1, 32>>>();",
            "k<<<1, n>>>();",
            "kk<<<1, 2>>>();",
            "",
        ] {
            assert_eq!(blocks(unknown), [], "{unknown}");
        }
    }
}
