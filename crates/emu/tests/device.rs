//! Kernels on a device whose memory outlives launches.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use warpwright_emu::{Device, Emulator, Extents, FaultKind, Options};
use warpwright_ptx::Module;

const PTX: &str = ".version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 total = 5;
.global .align 8 .u64 place = total;
.func (.param .u32 r) twice(.param .u32 a) {
    .reg .b32 %r<2>; ld.param.u32 %r0, [a]; add.u32 %r1, %r0, %r0; st.param.u32 [r], %r1; ret;
}
.global .align 8 .u64 function = twice;
.visible .entry add(.param .u64 to, .param .u32 n) {
    .reg .b64 %d<3>; .reg .b32 %r<4>; .reg .pred %p;
    ld.param.u64 %d0, [to]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x;
    mul.wide.u32 %d1, %r1, 4; add.u64 %d0, %d0, %d1; st.global.u32 [%d0], %r0;
    ld.global.u64 %d2, [place]; atom.global.add.u32 %r2, [%d2], 1; ret;
}
.visible .entry other(.param .u64 to) {
    .reg .b64 %d<2>; .reg .b32 %r<3>;
    ld.param.u64 %d0, [to]; ld.global.u32 %r0, [total]; ld.global.u64 %d1, [function];
    { .param .u32 a; .param .u32 r; st.param.u32 [a], %r0;
    P: .callprototype (.param .u32 _) _ (.param .u32 _);
    call (r), %d1, (a), P; ld.param.u32 %r1, [r]; }
    st.global.u32 [%d0], %r1; ret;
}
";

fn words(count: usize) -> &'static [AtomicU32] {
    Vec::leak((0..count).map(|_| AtomicU32::new(0)).collect())
}

#[test]
fn memory_and_variables_outlive_launches() {
    let (module, diagnostics) = Module::parse("k.ptx", PTX);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let first = Device::FIRST_FREE + 3;
    let mut device = Device::new(64);
    let variables = Emulator::variables(&module, first).unwrap();
    let names: Vec<&str> = variables.iter().map(|v| &*v.name).collect();
    assert_eq!(names, ["total", "place", "function"]);
    let mut places = Vec::new();
    for (at, variable) in variables.iter().enumerate() {
        assert_eq!(variable.address, Device::address(first + at));
        let own = words(variable.bytes.len() / 4);
        for (word, bytes) in own.iter().zip(variable.bytes.chunks(4)) {
            word.store(u32::from_le_bytes(bytes.try_into().unwrap()), Relaxed);
        }
        device.put_variable(variable, own);
        places.push(own);
    }
    let (buffer, base) = (words(32), Device::address(Device::FIRST_FREE));
    device.put("buffer", base, buffer, 128);
    let program = |kernel| Emulator::placed(&module, kernel, first).unwrap();
    let add = program("add");
    let offsets: Vec<(u64, u64)> = add.parameters().iter().map(|p| (p.offset, p.len)).collect();
    assert_eq!(offsets, [(0, 8), (8, 4)]);
    let params = |base: u64, n: u32| [&base.to_le_bytes()[..], &n.to_le_bytes()].concat();
    let extents = |threads| Extents {
        grid: [1; 3],
        block: [threads, 1, 1],
        cluster: None,
        dynamic_smem: 0,
    };
    let options = Options::default();
    let spent = add
        .run_on(&device, &extents(32), &params(base, 7), &options)
        .unwrap()
        .unwrap();
    assert!(spent.work > 8, "{spent:?}");
    assert!(buffer.iter().all(|word| word.load(Relaxed) == 7));
    assert_eq!(places[0][0].load(Relaxed), 37);

    // Another kernel of the module, and a function by its address.
    program("other")
        .run_on(&device, &extents(1), &base.to_le_bytes(), &options)
        .unwrap()
        .unwrap();
    assert_eq!(buffer[0].load(Relaxed), 74);

    // What is not there is a fault, and so is what has gone.
    let fault = add
        .run_on(&device, &extents(33), &params(base, 8), &options)
        .unwrap()
        .unwrap_err();
    assert_eq!(
        (fault.kind, fault.allocation.as_deref()),
        (FaultKind::OutOfBounds, Some("buffer"))
    );
    device.remove(base);
    let fault = add
        .run_on(&device, &extents(1), &params(base, 8), &options)
        .unwrap()
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::OutOfBounds);

    // Memory beside the slots.
    let beside = 1 << 46;
    device.put("beside", beside, buffer, 128);
    add.run_on(&device, &extents(1), &params(beside, 9), &options)
        .unwrap()
        .unwrap();
    assert_eq!(buffer[0].load(Relaxed), 9);
    let short = add.run_on(&device, &extents(1), &base.to_le_bytes(), &options);
    assert!(short.is_err_and(|error| error.to_string().contains("8 bytes of parameters")));
}

/// As much as may be executed is, and one more shows that the end is not there.
#[test]
fn a_budget_holds_to_the_instruction() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry long() {\n.reg .b32 %r;\n\
                mov.u32 %r, 1;\nadd.u32 %r, %r, 1;\nadd.u32 %r, %r, 1;\nret;\n}\n";
    let module = Module::parse("k.ptx", text).0;
    let program = Emulator::placed(&module, "long", Device::FIRST_FREE).unwrap();
    let fault = |budget: u64| {
        let options = Options {
            budget,
            ..Options::default()
        };
        let extents = Extents {
            grid: [1; 3],
            block: [64, 1, 1],
            cluster: None,
            dynamic_smem: 0,
        };
        let ended = program.run_on(&Device::new(64), &extents, &[], &options);
        ended.unwrap().err()
    };
    let spent = fault(3).expect("an end before the end");
    assert_eq!(spent.kind, FaultKind::Budget);
    assert!(
        spent.message.contains("has executed 3 warp"),
        "{}",
        spent.message
    );
    assert!(fault(8).is_none());
}
