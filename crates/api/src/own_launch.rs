//! What a file's own launches of its kernels say. It is a fact about these launches, and no promise of others.

use warpwright_cudac::launches::{HostCode, numbers};
use warpwright_pass::Seen;
use warpwright_pass::names::{base_name, template_arguments};
use warpwright_ptx::Module;

use crate::{Input, Level};

/// Block and dynamic shared memory of each kernel of a module, where the text launches it and all launches agree on
/// numbers. `nvcc`: its options.
pub fn own_launches(text: &str, module: &Module, nvcc: &[String]) -> Vec<Seen> {
    let code = HostCode::new(text, nvcc);
    let of = |symbol: String| {
        let launches = code.launches(&base_name(&symbol), &template_arguments(&symbol));
        let extent = |all: &[u32], at: usize| all.get(at).copied().unwrap_or(1);
        let dims = |all: Vec<u32>| [0, 1, 2].map(|at| extent(&all, at));
        Seen {
            symbol,
            block: agreed(launches.iter().map(|l| numbers(&l.block).map(dims))),
            dynamic_smem: agreed(launches.iter().map(|l| l.dynamic_smem)),
        }
    };
    let kernels = module.kernels().map(|(_, f)| f.name.to_string());
    let says = |seen: &Seen| seen.block.is_some() || seen.dynamic_smem.is_some();
    kernels.map(of).filter(says).collect()
}

/// What all of them are.
fn agreed<T: PartialEq + Copy>(mut all: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = all.next()??;
    all.all(|one| one == Some(first)).then_some(first)
}

/// [`own_launches`] of an input that is CUDA C.
pub fn seen(input: &Input, module: &Module, nvcc: &[String]) -> Vec<Seen> {
    let text = input.text().ok().filter(|_| input.level == Level::Cuda);
    text.map_or_else(Vec::new, |text| own_launches(text, module, nvcc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_launches_agree_on_is_known() {
        let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n\
                   .visible .entry _ZN2ns4fillIiEEvPT_(.param .u64 p) { ret; }\n.visible .entry k() { ret; }\n";
        let module = Module::parse("k.ptx", ptx).0;
        let found = |text: &str| own_launches(&format!("void f() {{ {text} }}"), &module, &[]);
        let of = |kernel: &str, block: Option<[u32; 3]>, dynamic_smem| {
            vec![Seen {
                symbol: kernel.to_owned(),
                block,
                dynamic_smem,
            }]
        };
        let fill = "_ZN2ns4fillIiEEvPT_";
        assert_eq!(
            found("dim3 b(16, 8); ns::fill<int><<<n, b>>>(p);"),
            of(fill, Some([16, 8, 1]), Some(0))
        );
        assert_eq!(
            found("k<<<1, 64>>>(); k<<<n, 64, 8>>>();"),
            of("k", Some([64, 1, 1]), None)
        );
        for other in ["k<<<1, 32, 4 * 2>>>();", "k<<<1, n, 8>>>();"] {
            assert_eq!(
                found(&format!("k<<<1, 64, 8>>>(); {other}")),
                of("k", None, Some(8))
            );
        }
        for unknown in [
            "k<<<1, 64>>>(); k<<<1, 32, 8>>>();",
            "ns::fill<float><<<1, 64>>>(p);",
            "k<<<1, n, n>>>();",
            "kk<<<1, 2>>>();",
            "",
        ] {
            assert_eq!(found(unknown), [], "{unknown}");
        }
    }
}
