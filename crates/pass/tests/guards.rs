//! A guard as PTX at a kernel's entry says what the guard says: random guards at random launches, in the emulator.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::fmt::Write;

use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_launch::{Guard, LaunchFile, LaunchValues, PtxNames, no_files};
use warpwright_ptx::Module;

struct Random(u64);

impl Random {
    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        of[(self.0 >> 33) as usize % of.len()]
    }

    fn number(&mut self) -> u64 {
        let numbers = ["0", "1", "2", "3", "4", "7", "8", "12", "16", "4294967303"];
        self.one(&numbers).parse().unwrap()
    }

    fn condition(&mut self) -> String {
        let quantity = self.one(&[
            "block.x",
            "block.y",
            "block.size",
            "grid.x",
            "grid.z",
            "grid.size",
            "smem",
            "param1:4",
            "param2:8",
            "param3:4",
            "param3+4:4",
            "param3+4:2",
            "param3+7:1",
            "param4:8",
        ]);
        let number = self.number();
        match self.one(&["=", "=", "<=", ">=", "%", "disjoint"]) {
            "%" => format!("{quantity}%{}=0", number.max(1)),
            "disjoint" => format!("disjoint(param2[{number}],param4[{}])", self.number()),
            relation => format!("{quantity}{relation}{number}"),
        }
    }
}

/// A kernel that writes whether the guard holds.
fn kernel(guard: &Guard) -> Module {
    let names = ["out", "n", "x", "s", "y"];
    let test = guard.to_ptx(PtxNames {
        params: &names,
        prefix: "%guard",
    });
    let test = test.unwrap();
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 n, .param .u64 x, \
         .param .align 8 .b8 s[8], .param .u64 y)\n{{\n\t.reg .b32 %answer;\n\t.reg .b64 %out;\n{}\tselp.b32 %answer, 1, 0, \
         {};\n\tld.param.u64 %out, [out];\n\tst.global.u32 [%out], %answer;\n\tret;\n}}\n",
        test.code, test.predicate
    );
    let (module, diagnostics) = Module::parse("guard.ptx", &text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}\n{text}");
    module
}

#[test]
fn ptx_says_the_same() {
    let mut random = Random(17);
    let (mut holding, mut total) = (0, 0);
    for _ in 0..250 {
        let mut text = String::new();
        for _ in 0..1 + random.number() % 3 {
            write!(text, "{};", random.condition()).unwrap();
        }
        // What does not fit into a quantity is no guard.
        let Ok(guard) = text.parse::<Guard>() else {
            continue;
        };
        let module = kernel(&guard);
        for _ in 0..4 {
            let [block, grid] = [["1", "2", "4", "8"], ["1", "2", "3", "4"]];
            let (block, grid) = (random.one(&block), random.one(&grid));
            let dims = |n: &str, other: &str| -> [u32; 3] {
                [n.parse().unwrap(), other.parse().unwrap(), 1]
            };
            let (y, z, smem) = (
                random.one(&["1", "2"]),
                random.one(&["1", "1", "2"]),
                random.one(&["0", "4", "16"]),
            );
            let (n, x, s, t) = (
                random.number() as u32,
                random.number(),
                [random.number(), random.number()],
                random.number(),
            );
            let s = s.map(|part| part as u32);
            let launch = format!(
                "kernel = \"k\"\n[sizes.small]\n[launch]\ngrid = [{grid}, 1, {z}]\nblock = [{block}, {y}]\ndynamic_smem = {smem}\n\
                 [[args]]\nname = \"out\"\ntype = \"u32\"\nshape = [1]\noutput = true\n[[args]]\nname = \"n\"\ntype = \
                 \"u32\"\nvalue = {n}\n[[args]]\nname = \"x\"\ntype = \"u64\"\nvalue = {x}\n[[args]]\nname = \"s\"\ntype = \
                 \"u32\"\nvalue = [{}, {}]\nalign = 8\n[[args]]\nname = \"y\"\ntype = \"u64\"\nvalue = {t}\n",
                s[0], s[1]
            );
            let launch = LaunchFile::parse(&launch, "guard.toml")
                .unwrap()
                .resolve("small", &[])
                .unwrap();
            let params: Vec<Vec<u8>> = launch.args.iter().map(|arg| arg.bytes.clone()).collect();
            let mut values = LaunchValues {
                grid: dims(grid, "1"),
                block: dims(block, y),
                cluster: [1; 3],
                dynamic_smem: launch.dynamic_smem,
                params: &params,
            };
            values.grid[2] = z.parse().unwrap();
            let inputs: Vec<Vec<u8>> = launch
                .buffers()
                .map(|b| b.materialize(&no_files).unwrap())
                .collect();
            let program = Emulator::new(&module, "k").unwrap();
            let said = match program.run(&launch, inputs, &Options::default()).unwrap() {
                Outcome::Finished(results) => results.buffers[0][0],
                Outcome::Faulted(fault) => panic!("{fault}"),
            };
            assert_eq!(said == 1, guard.holds(&values), "{guard}");
            holding += u32::from(said);
            total += 1;
        }
    }
    assert!(holding > 50 && holding < total - 50, "{holding} of {total}");
}
