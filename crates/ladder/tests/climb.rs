//! Rewrites in PTX: right, wrong, reordered, faulty and missing.

use warpwright_ladder::{
    Argument, Array, Bounds, Checked, CompileError, Element, Fall, Launch, Original, Run, Rung,
    Trial, climb,
};

/// `out[i] = in[i] + add` for each thread, and `what` before the store.
fn kernel(name: &str, what: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 out, .param .u64 in, .param .f32 add)\n{{\n\
         .reg .b32 %r<4>;\n.reg .b64 %d<4>;\n.reg .f32 %f<4>;\n\
         ld.param.u64 %d1, [out];\nld.param.u64 %d2, [in];\nld.param.f32 %f1, [add];\n\
         mov.u32 %r1, %tid.x;\nmul.wide.u32 %d3, %r1, 4;\n\
         add.s64 %d1, %d1, %d3;\nadd.s64 %d2, %d2, %d3;\n\
         ld.global.f32 %f2, [%d2];\nadd.f32 %f3, %f2, %f1;\n{what}\nst.global.f32 [%d1], %f3;\nret;\n}}\n"
    )
}

fn text() -> String {
    let kernels = [
        ("k", ""),
        ("same", ""),
        ("twice", "add.f32 %f3, %f3, %f1;"),
        ("near", "add.f32 %f3, %f3, 0f34000000;"),
        ("clamped", "max.f32 %f3, %f3, 0f00000000;"),
        ("beyond", "st.global.f32 [%d1+64], %f3;"),
    ];
    let kernels = kernels.map(|(name, what)| kernel(name, what)).concat();
    format!(".version 8.0\n.target sm_90\n.address_size 64\n{kernels}")
}

fn run(name: &str, is_reordered: bool) -> Run {
    Run {
        launches: vec![Launch {
            kernel: name.to_owned(),
            grid: [1; 3],
            block: [8, 1, 1],
            shared: 0,
        }],
        arguments: vec![Argument::Array(0), Argument::Array(1), Argument::Real(0.5)],
        scratch: Vec::new(),
        offset: 0,
        is_reordered,
    }
}

fn climbs(original: &str, name: &str, is_reordered: bool) -> Rung<&'static str> {
    let array = |name: &str, first: f32| Array {
        name: name.to_owned(),
        element: Element::Single,
        bytes: (0..8u8)
            .flat_map(|n| (first + f32::from(n)).to_le_bytes())
            .collect(),
        tolerance: 1e-6,
    };
    let trial = Trial {
        text: text().into(),
        sizes: vec![("n".to_owned(), 8)],
        is_shrunk: false,
        arrays: vec![array("out", 0.0), array("in", 1.0)],
        original: Original::Run(run(original, false)),
        rewrites: vec![run(name, is_reordered)],
        variables: Vec::new(),
    };
    let bounds = Bounds { least: 1, most: 4 };
    climb([Ok(trial)], bounds, &|text| Ok(text.to_owned()))
}

#[test]
fn what_computes_the_same_agrees() {
    let Rung::Agrees(Checked {
        kernels,
        distance,
        compared,
        proved,
        ..
    }) = climbs("k", "same", false)
    else {
        panic!("it is the same");
    };
    assert_eq!((kernels, distance), (vec!["same".to_owned()], 0.0));
    assert_eq!((compared, proved), (1, 1));
}

/// All sample data are positive.
#[test]
fn what_differs_on_other_inputs_alone_falls() {
    let rung = climbs("k", "clamped", false);
    assert!(
        matches!(&rung, Rung::Falls(Fall::Fault { fault, .. }) if fault.contains("is another function")),
        "{rung:?}"
    );
}

#[test]
fn another_value_falls() {
    for is_reordered in [false, true] {
        let rung = climbs("k", "twice", is_reordered);
        let Rung::Falls(Fall::Differs {
            kernel,
            array,
            element,
            ..
        }) = rung
        else {
            panic!("it adds twice: {rung:?}");
        };
        assert_eq!((&*kernel, &*array, element), ("twice", "out", 0));
    }
}

#[test]
fn a_last_bit_is_permitted_where_sums_were_reordered() {
    let exact = climbs("k", "near", false);
    assert!(matches!(exact, Rung::Falls(Fall::Differs { .. })));
    let Rung::Agrees(checked) = climbs("k", "near", true) else {
        panic!("within the tolerance");
    };
    assert!(checked.distance > 0.0 && checked.distance < 1e-6);
}

#[test]
fn faults_and_what_is_not_there_fall() {
    for wrong in ["beyond", "absent"] {
        let rung = climbs("k", wrong, true);
        assert!(matches!(rung, Rung::Falls(Fall::Fault { .. })), "{rung:?}");
    }
    let rung = climbs("absent", "same", true);
    assert!(matches!(rung, Rung::Falls(Fall::Compile(_))), "{rung:?}");
    // A grid that the original itself does not survive says nothing.
    let rung = climbs("beyond", "same", false);
    // The reason is the original's own, not the grid.
    let own = "the kernel as written does not run in the emulator";
    assert!(
        matches!(&rung, Rung::Unchecked(why) if why.starts_with(own)),
        "{rung:?}"
    );
}

#[test]
fn without_a_grid_nothing_is_said() {
    let bounds = Bounds { least: 1, most: 4 };
    let none: Rung<()> = climb([], bounds, &|_| Err(CompileError::Rejected(String::new())));
    assert!(matches!(none, Rung::Unchecked(_)), "{none:?}");
    let refused = climb([Err("no launcher")], bounds, &|text| Ok(text.to_owned()));
    assert_eq!(refused, Rung::Falls(Fall::Refused("no launcher")));
}
