//! Kernels that do little but touch memory: loads and stores of all widths through two pointers that may meet, shared
//! memory, fences, and what the threads of a warp do together. Generated kernels of the usual kind ([`crate::case`])
//! keep to cells of their own and load before they store, so many orders cannot be spoiled in them.
//!
//! Each of the threads of the one block has its own bytes, so no two race.

use std::fmt::Write;

use crate::controls::Dice;

/// Threads of a block.
pub const BLOCK: u32 = 64;
/// Registers that everything goes through.
const POOL: usize = 12;
/// Statements.
const LENGTH: (usize, usize) = (30, 40);
/// Bytes of each thread behind each pointer.
const BYTES: usize = 64;

/// The text of a kernel.
pub fn kernel(seed: u64) -> String {
    let mut dice = Dice::new(seed ^ 0x7261_6666_6963);
    let mut text = String::from(
        ".version 7.8\n.target sm_75\n.address_size 64\n\
         .visible .entry traffic(.param .u64 p, .param .u64 q, .param .u64 o)\n{\n\
         .reg .b16 %h;\n.reg .b32 %r<12>;\n.reg .b32 %t<4>;\n.reg .b64 %d<8>;\n.reg .pred %p<2>;\n\
         .shared .align 16 .b8 cells[4096];\n\
         mov.u32 %t0, %tid.x;\nshl.b32 %t1, %t0, 6;\ncvt.u64.u32 %d0, %t1;\n\
         ld.param.u64 %d1, [p];\nadd.s64 %d1, %d1, %d0;\n\
         ld.param.u64 %d2, [q];\nadd.s64 %d2, %d2, %d0;\n\
         ld.param.u64 %d3, [o];\nadd.s64 %d3, %d3, %d0;\n\
         mov.u32 %t2, cells;\nadd.s32 %t2, %t2, %t1;\n",
    );
    for register in 0..POOL {
        let _ = writeln!(text, "ld.global.b32 %r{register}, [%d3+{}];", 4 * register);
    }
    for at in (0..BYTES).step_by(16) {
        let _ = writeln!(text, "st.shared.v4.b32 [%t2+{at}], {{%r0, %r1, %r2, %r3}};");
    }
    for _ in 0..LENGTH.0 + dice.below(LENGTH.1) {
        statement(&mut dice, &mut text);
    }
    for register in 0..POOL {
        let _ = writeln!(text, "st.global.b32 [%d3+{}], %r{register};", 4 * register);
    }
    text + "ret;\n}\n"
}

/// The one launch of a kernel.
pub fn launch_toml() -> String {
    let words = BLOCK as usize * BYTES / 4;
    let buffer = |(name, seed): (&str, u32)| {
        format!(
            "[[args]]\nname = \"{name}\"\ntype = \"u32\"\nshape = [{words}]\n\
             init = {{ kind = \"bits\", seed = {seed} }}\noutput = true\n\n"
        )
    };
    let buffers: String = [("p", 1), ("q", 2), ("o", 3)].map(buffer).concat();
    format!(
        "kernel = \"traffic\"\nabout = \"generated\"\n\n[sizes.small]\n\n[launch]\ngrid = [1]\nblock = [{BLOCK}]\n\n{buffers}"
    )
}

fn statement(dice: &mut Dice, text: &mut String) {
    let [a, b] = [dice.below(POOL), dice.below(POOL)];
    let base = ["%d1", "%d2"][dice.below(2)];
    let own = |dice: &mut Dice, bytes: usize| bytes * dice.below(BYTES / bytes);
    let _ = match dice.below(16) {
        0..=2 => {
            let at = own(dice, 4);
            writeln!(
                text,
                "ld.global.b32 %t3, [{base}+{at}];\nmad.lo.u32 %r{a}, %r{a}, 3, %t3;"
            )
        }
        3 => {
            let at = own(dice, 1);
            writeln!(
                text,
                "ld.global.u8 %t3, [{base}+{at}];\nmad.lo.u32 %r{a}, %r{a}, 5, %t3;"
            )
        }
        4 => {
            let at = own(dice, 8);
            writeln!(
                text,
                "ld.global.v2.b32 {{%t3, %t1}}, [{base}+{at}];\nmad.lo.u32 %r{a}, %t1, %r{a}, %t3;"
            )
        }
        5..=7 => {
            let at = own(dice, 4);
            writeln!(text, "st.global.b32 [{base}+{at}], %r{a};")
        }
        8 => {
            let at = own(dice, 2);
            writeln!(
                text,
                "cvt.u16.u32 %h, %r{a};\nst.global.b16 [{base}+{at}], %h;"
            )
        }
        9 => {
            let at = own(dice, 8);
            writeln!(text, "st.global.v2.b32 [{base}+{at}], {{%r{a}, %r{b}}};")
        }
        10 => {
            let at = own(dice, 4);
            writeln!(text, "st.shared.b32 [%t2+{at}], %r{a};")
        }
        11 => {
            let at = own(dice, 2);
            writeln!(
                text,
                "ld.shared.u16 %t3, [%t2+{at}];\nmad.lo.u32 %r{a}, %r{a}, 7, %t3;"
            )
        }
        12 => match dice.below(3) {
            0 => writeln!(text, "bar.sync 0;"),
            1 => writeln!(text, "membar.gl;"),
            _ => writeln!(text, "red.global.add.u32 [{base}], %r{a};"),
        },
        13 => writeln!(
            text,
            "shfl.sync.bfly.b32 %t3, %r{a}, {}, 31, -1;\nmad.lo.u32 %r{b}, %r{b}, 9, %t3;",
            1 + dice.below(30)
        ),
        14 => writeln!(
            text,
            "setp.lt.u32 %p0, %r{a}, %r{b};\nvote.sync.ballot.b32 %t3, %p0, -1;\nadd.u32 %r{a}, %r{a}, %t3;"
        ),
        _ => writeln!(text, "mad.lo.u32 %r{a}, %r{a}, %r{b}, {};", dice.below(99)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid_and_differ() {
        for seed in 0..20 {
            let text = kernel(seed);
            let (_, diagnostics) = warpwright_ptx::Module::parse("traffic.ptx", &text);
            assert!(diagnostics.is_empty(), "{text}");
            assert_ne!(text, kernel(seed + 1));
        }
    }
}
