//! What a file's own launches of its kernels say. It is a fact about these launches, and no promise of others.

use warpwright_launch::{Guard, Source};
use warpwright_pass::Seen;
use warpwright_pass::names::{base_name, template_arguments};
use warpwright_ptx::Module;

use crate::code::{HostCode, numbers};

/// Block, grid and dynamic shared memory of each kernel of a module that the text launches. `nvcc`: its options.
pub fn own_launches(text: &str, module: &Module, nvcc: &[String], headers: &[String]) -> Vec<Seen> {
    let code = HostCode::with_headers(text, nvcc, headers);
    let of = |symbol: String| {
        let launches = code.launches(&base_name(&symbol), &template_arguments(&symbol));
        let extent = |all: &[u32], at: usize| all.get(at).copied().unwrap_or(1);
        let dims = |all: Vec<u32>| [0, 1, 2].map(|at| extent(&all, at));
        let blocks = launches.iter().map(|l| numbers(&l.block).map(dims));
        let product = |dims: Vec<u32>| dims.into_iter().map(u64::from).product();
        // Of several kernels of a name nobody says here which is launched.
        let names = module.kernels().map(|(_, f)| &*f.name);
        let mut others =
            names.filter(|other| **other != *symbol && base_name(other) == base_name(&symbol));
        let is_overloaded = template_arguments(&symbol).is_empty()
            && others.any(|o| template_arguments(o).is_empty());
        let block = match is_overloaded {
            true => agreed(blocks.clone()),
            false => blocks.clone().flatten().next(),
        };
        let grids = launches.iter().map(|l| numbers(&l.grid).map(product));
        Seen {
            symbol,
            source: Source::Host,
            block,
            differ: agreed(blocks).is_none(),
            grid: agreed(grids),
            guessed: String::new(),
            dynamic_smem: agreed(launches.iter().map(|l| l.dynamic_smem)),
            constants: Guard::always(),
        }
    };
    let kernels = module.kernels().map(|(_, f)| f.name.to_string());
    let says = |seen: &Seen| seen.block.is_some() || seen.dynamic_smem.is_some();
    kernels.map(of).filter(says).collect()
}

/// What all of them are.
pub(crate) fn agreed<T: PartialEq + Copy>(mut all: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = all.next()??;
    all.all(|one| one == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_launches_agree_on_is_known() {
        let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n\
                   .visible .entry _ZN2ns4fillIiEEvPT_(.param .u64 p) { ret; }\n.visible .entry k() { ret; }\n";
        let module = Module::parse("k.ptx", ptx).0;
        let found = |text: &str| own_launches(&format!("void f() {{ {text} }}"), &module, &[], &[]);
        let of = |kernel: &str, (block, differ): ([u32; 3], bool), grid, dynamic_smem| {
            vec![Seen {
                symbol: kernel.to_owned(),
                source: Source::Host,
                block: Some(block),
                differ,
                grid,
                guessed: String::new(),
                dynamic_smem,
                constants: Guard::always(),
            }]
        };
        let fill = "_ZN2ns4fillIiEEvPT_";
        assert_eq!(
            found("dim3 b(16, 8); ns::fill<int><<<n, b>>>(p);"),
            of(fill, ([16, 8, 1], false), None, Some(0))
        );
        assert_eq!(
            found("k<<<dim3(3, 2), 64>>>(); k<<<6, 64, 8>>>();"),
            of("k", ([64, 1, 1], false), Some(6), None)
        );
        assert_eq!(
            found("k<<<1, 64>>>(); k<<<n, 64, 8>>>();"),
            of("k", ([64, 1, 1], false), None, None)
        );
        for other in ["k<<<1, 32, 4 * 2>>>();", "k<<<1, n, 8>>>();"] {
            assert_eq!(
                found(&format!("k<<<1, 64, 8>>>(); {other}")),
                of("k", ([64, 1, 1], true), Some(1), Some(8))
            );
        }
        assert_eq!(
            found("k<<<1, n>>>(); k<<<2, 32, 8>>>();"),
            of("k", ([32, 1, 1], true), None, None)
        );
        for unknown in [
            "ns::fill<float><<<1, 64>>>(p);",
            "k<<<1, n, n>>>();",
            "kk<<<1, 2>>>();",
            "",
        ] {
            assert_eq!(found(unknown), [], "{unknown}");
        }
    }
}
