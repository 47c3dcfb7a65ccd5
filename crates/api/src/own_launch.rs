//! The blocks that a file launches its own kernels with. What is found is a fact about these launches, and no promise of
//! others.

use warpwright_cudac::launches::{HostCode, numbers};
use warpwright_pass::names::{base_name, template_arguments};
use warpwright_ptx::Module;

use crate::{Input, Level};

/// The block of each kernel of a module, by its symbol, where the text launches it and all launches agree on numbers.
/// `nvcc`: its options.
pub fn own_blocks(text: &str, module: &Module, nvcc: &[String]) -> Vec<(String, [u32; 3])> {
    let code = HostCode::new(text, nvcc);
    let kernels = module
        .kernels()
        .map(|(_, function)| function.name.to_string());
    let block = |symbol: String| {
        let launches = code.launches(&base_name(&symbol), &template_arguments(&symbol));
        let extent = |all: &[u32], at: usize| all.get(at).copied().unwrap_or(1);
        let dims = |all: Vec<u32>| [0, 1, 2].map(|at| extent(&all, at));
        let mut blocks = launches.iter().map(|l| numbers(&l.block).map(dims));
        let first = blocks.next()??;
        let agree = blocks.all(|block| block == Some(first));
        agree.then_some((symbol, first))
    };
    kernels.filter_map(block).collect()
}

/// [`own_blocks`] of an input that is CUDA C.
pub(crate) fn seen(input: &Input, module: &Module, nvcc: &[String]) -> Vec<(String, [u32; 3])> {
    let text = input.text().ok().filter(|_| input.level == Level::Cuda);
    text.map_or_else(Vec::new, |text| own_blocks(text, module, nvcc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_known_where_all_launches_agree() {
        let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n\
                   .visible .entry _ZN2ns4fillIiEEvPT_(.param .u64 p) { ret; }\n.visible .entry k() { ret; }\n";
        let module = Module::parse("k.ptx", ptx).0;
        let blocks = |text: &str| own_blocks(&format!("void f() {{ {text} }}"), &module, &[]);
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
            "ns::fill<float><<<1, 64>>>(p);",
            "k<<<1, n>>>();",
            "kk<<<1, 2>>>();",
            "",
        ] {
            assert_eq!(blocks(unknown), [], "{unknown}");
        }
    }
}
