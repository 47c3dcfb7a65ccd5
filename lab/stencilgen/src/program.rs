//! A program that compares originals and versions on a GPU.

use std::fmt::Write as _;

use warpwright_stencil::evaluate::extent;
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::sweep::c_type;

use crate::check::{Subject, text_of};

const HEAD: &str = include_str!("program.cuh");

/// One translation unit with a `main` for these kernels.
pub fn program(subjects: &[Subject]) -> String {
    let mut text = HEAD.to_owned();
    text += &text_of(subjects, |version, stencil, name| {
        version.unit(stencil, name).0
    });
    for subject in subjects {
        test(subject, &mut text);
    }
    text += "int main(int count, char** arguments)\n{\n    if (count > 2) first_case = std::atol(arguments[2]);\n";
    for subject in subjects {
        let name = &subject.kernel.name;
        let _ = writeln!(text, "    if (begin(\"{name}\")) test_{name}();");
    }
    text + "    finish();\n    return differences || errors;\n}\n"
}

fn test(subject: &Subject, text: &mut String) {
    let stencil = &subject.problem.stencil;
    let name = &subject.kernel.name;
    let instance = subject.kernel.instance.map_or("", |_| "<T>");
    let _ = writeln!(text, "static void test_{name}()\n{{");
    for sizes in &subject.sizes {
        let Some(launch) = subject.problem.launch(sizes) else {
            continue;
        };
        text.push_str("    {\n        Case test;\n");
        if let Some(ty) = subject.kernel.instance {
            let _ = writeln!(text, "        using T = {ty};");
        }
        for (id, array) in &stencil.arrays {
            let cells: i64 = array.extents.iter().map(|&e| extent(e, sizes)).product();
            let ty = c_type(array.element);
            let (id, written) = (id.as_u32(), array.written);
            let _ = match &array.variable {
                None => writeln!(
                    text,
                    "        {ty}* a{id} = test.array<{ty}>({id}, {cells}, {written});"
                ),
                Some(variable) => writeln!(
                    text,
                    "        test.variable<{ty}>({id}, {cells}, {written}, {});",
                    variable.name
                ),
            };
        }
        let value = |at: usize, element| {
            format!(
                "({})sample({}u, 0u)",
                c_type(element),
                stencil.arrays.len() + at
            )
        };
        let mut canonical: Vec<String> = stencil
            .passed()
            .map(|(id, _)| format!("a{}", id.as_u32()))
            .collect();
        canonical.extend(
            stencil
                .scalars
                .values()
                .enumerate()
                .map(|(at, s)| value(at, s.element)),
        );
        canonical.extend(sizes.values().map(ToString::to_string));
        let own: Vec<String> = launch
            .arguments
            .iter()
            .map(|from| {
                from.as_ref()
                    .map_or("1".to_owned(), |at| canonical[*at].clone())
            })
            .collect();
        // The original's parameters may be pointers to arrays: casts by the parameter's own type.
        let own: Vec<String> = own
            .iter()
            .zip(&launch.types)
            .map(|(value, ty)| format!("({ty}){value}"))
            .collect();
        let dim3 = |v: [u64; 3]| format!("dim3({}, {}, {})", v[0], v[1], v[2]);
        let (grid, block) = (dim3(launch.grid), dim3(launch.block.map(u64::from)));
        let own = own.join(", ");
        let _ = writeln!(
            text,
            "        test.fill();\n        {name}{instance}<<<{grid}, {block}>>>({own});\n        test.keep(\"{name}\");"
        );
        for (number, (kind, version)) in subject.versions.iter().enumerate() {
            let tolerance = tolerance(stencil, version.reassociates());
            let call = match number {
                0 => format!("{name}_launch{instance}({grid}, {block}, 0, 0, {own});"),
                _ => format!(
                    "test.status({name}v{number}_launch({}, 0), \"{name} {kind}\");",
                    canonical.join(", ")
                ),
            };
            let _ = writeln!(
                text,
                "        test.fill();\n        {call}\n        test.compare(\"{name}\", \"{kind}\", {tolerance:e});"
            );
        }
        text.push_str("    }\n");
    }
    text.push_str("}\n\n");
}

fn tolerance(stencil: &Stencil, reassociates: bool) -> f64 {
    match reassociates {
        true => warpwright_stencil::versions::tolerance(stencil),
        false => 0.0,
    }
}
