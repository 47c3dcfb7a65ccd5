//! What somebody would change in the source: where, what, and what it gives. Only what the tool knows.

use serde::{Deserialize, Serialize};

use warpwright_driver::KernelReport;
use warpwright_pass::names::parameters_of;
use warpwright_pass::passes::{
    Cache, LoadPolicy, MaxNReg, Prefetch, Promote, Reshape, Specialize, StorePolicy, Unroll,
    UsageLevel, Vectorize,
};
use warpwright_pass::{BlockSource, Invocation, Recipe};

use crate::screen::part;

/// A change of the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edit {
    /// `file:line` that it stands at or in front of; absent where it is an option of the compiler, or no line is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// What to write, or to change.
    pub text: String,
    /// What it gives.
    pub gives: Gives,
}

/// What an edit gives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gives {
    /// So many bytes of a thread may leave local memory.
    LocalBytes(u64),
    /// A time over that of now, as the model predicts it for the build that the edit stands for.
    Predicted(f64),
    /// The same, measured.
    Measured(f64),
    /// With more that has no words in the source, this measured time over that of now.
    Part(f64),
    /// It can be launched.
    Launch,
    /// Whoever tries it learns that.
    Unknown,
}

impl Edit {
    /// The edit in a sentence. How many bytes may leave local memory stands beside it.
    pub fn in_words(&self) -> String {
        let gives = match self.gives {
            Gives::LocalBytes(_) | Gives::Unknown => String::new(),
            Gives::Predicted(time) => format!(" (predicted {} of the time)", part(time)),
            Gives::Measured(time) => format!(" (measured {} of the time)", part(time)),
            Gives::Part(time) => format!(
                " (with what has no words in the source: measured {} of the time)",
                part(time)
            ),
            Gives::Launch => " (it can be launched then)".to_owned(),
        };
        match &self.line {
            Some(line) => format!("{line}: {}{gives}", self.text),
            None => format!("{}{gives}", self.text),
        }
    }
}

/// What makes nvcc build the choice of a report: options, or words in the kernel. None where a pass has no such thing. nvcc
/// plans for launch bounds itself, so these never give the same as the passes that write them.
pub fn edits_of(report: &KernelReport) -> Vec<Edit> {
    let chosen = &report.candidates[report.chosen];
    if report.chosen == 0 {
        return Vec::new();
    }
    let measured = chosen
        .measured()
        .map(|found| Gives::Measured(found.relative_time));
    let predicted = chosen
        .score()
        .map(|found| Gives::Predicted(found.relative_time));
    let default = report.candidates[0].rejected();
    let launch = default.map(|_| Gives::Launch);
    let Some(gives) = measured.or(predicted).or(launch) else {
        return Vec::new();
    };
    // A limit stands in the place of bounds, without which nobody knows what ptxas makes; one that is nearer to what the
    // build took is another choice as well.
    let is_bound = matches!(
        report.block_source,
        BlockSource::Bound | BlockSource::BoundSeen
    );
    let has_bounds = report.has_bounds || is_bound;
    let text = |pass: &Invocation| match pass.get::<MaxNReg>() {
        Some(_) if has_bounds => None,
        _ => in_source(pass, &[]),
    };
    let texts: Option<Vec<String>> = chosen.recipe.passes().iter().map(text).collect();
    // A part of a recipe promises nothing.
    let texts = texts.filter(|texts| !texts.is_empty());
    let edit = |texts: Vec<String>| Edit {
        line: None,
        text: texts.join("; "),
        gives,
    };
    texts.map(edit).into_iter().collect()
}

/// What would do in the source as much of a recipe as can be said there, which took `time` of the original's when it was
/// measured in a program. `name` is the kernel's as people write it, with the types of its parameters. Where a kernel has
/// bounds, a limit takes their place in the source and stands beside them in what was measured: that promises nothing.
pub fn edit_in_place(recipe: &Recipe, name: &str, has_bounds: bool, time: f64) -> Option<Edit> {
    let types = parameters_of(name);
    let all: Vec<Option<String>> = (recipe.passes().iter())
        .map(|pass| in_source(pass, &types))
        .collect();
    let is_whole = all.iter().all(Option::is_some);
    let is_another = has_bounds && recipe.find::<MaxNReg>().is_some();
    let texts: Vec<String> = all.into_iter().flatten().collect();
    let mut text = texts.join("; ");
    if is_another {
        text += " (its own go, their minimum of blocks with them: not what was measured)";
    }
    (!text.is_empty()).then_some(Edit {
        line: None,
        text,
        gives: match (is_another, is_whole) {
            (true, _) => Gives::Unknown,
            (false, true) => Gives::Measured(time),
            (false, false) => Gives::Part(time),
        },
    })
}

fn limited(registers: u32) -> String {
    format!("`__maxnreg__({registers})`, without launch bounds")
}

/// What a pass would be in CUDA C or on nvcc's command line; none for what no source says.
fn in_source(pass: &Invocation, types: &[String]) -> Option<String> {
    if let Some(UsageLevel { level }) = pass.get() {
        return Some(format!("`-Xptxas --register-usage-level={level}`"));
    }
    if let Some(MaxNReg { registers }) = pass.get() {
        return Some(limited(*registers));
    }
    if let Some(unroll) = pass.get::<Unroll>() {
        let which = match (unroll.line, unroll.nth) {
            (Some(line), _) => format!("the loop of line {line}"),
            (None, Some(nth)) => format!("its loop number {nth}"),
            (None, None) => "its loops".to_owned(),
        };
        return Some(format!("`#pragma unroll {}` at {which}", unroll.factor));
    }
    if pass.get::<Promote>().is_some() {
        let text =
            "what loops add to in memory (`c[i] += …`) in a local variable, stored behind the loop";
        return Some(text.to_owned());
    }
    if pass.get::<Vectorize>().is_some() {
        let text =
            "neighbouring elements of a thread as one `float4` or `float2`, of aligned pointers";
        return Some(text.to_owned());
    }
    if let Some(reshape) = pass.get::<Reshape>() {
        let [now, then] = [reshape.from?, reshape.block].map(extents);
        return Some(format!(
            "launch it with blocks of {then} in the place of {now}, as many threads in all"
        ));
    }
    if let Some(own) = pass.get::<Specialize>() {
        let extent = |name: &str, dims: Option<[u32; 3]>| {
            dims.map(|dims| format!("`{name}` = {}", extents(dims)))
        };
        let values = own
            .params
            .0
            .iter()
            .map(|value| value_in_words(value, types));
        let all = [extent("blockDim", own.block), extent("gridDim", own.grid)];
        let all: Vec<String> = all.into_iter().flatten().chain(values).collect();
        return Some(format!(
            "as constants (template arguments): {}",
            all.join(", ")
        ));
    }
    cached(pass.get::<Cache>()?)
}

/// Hints to the caches as intrinsics, and as inline PTX where there is none.
fn cached(hints: &Cache) -> Option<String> {
    let loads = match hints.loads {
        LoadPolicy::Own => None,
        LoadPolicy::Streaming => Some("loads by `__ldcs`"),
        LoadPolicy::L2 => Some("loads by `__ldcg`"),
        LoadPolicy::NoAllocate => Some("loads as `ld.global.L1::no_allocate` (inline PTX)"),
        LoadPolicy::EvictFirst => Some("loads as `ld.global.L1::evict_first` (inline PTX)"),
        LoadPolicy::EvictLast => Some("loads as `ld.global.L1::evict_last` (inline PTX)"),
    };
    let prefetch = match hints.prefetch {
        Prefetch::Own => None,
        Prefetch::Bytes64 => Some("loads as `ld.global.L2::64B` (inline PTX)"),
        Prefetch::Bytes128 => Some("loads as `ld.global.L2::128B` (inline PTX)"),
        Prefetch::Bytes256 => Some("loads as `ld.global.L2::256B` (inline PTX)"),
    };
    let stores = match hints.stores {
        StorePolicy::Own => None,
        StorePolicy::Streaming => Some("stores by `__stcs`"),
        StorePolicy::L2 => Some("stores by `__stcg`"),
        StorePolicy::WriteThrough => Some("stores by `__stwt`"),
    };
    let all: Vec<&str> = [loads, prefetch, stores].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// `256`, `32×8`
fn extents([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x}×{y}"),
        _ => format!("{x}×{y}×{z}"),
    }
}

/// `param2+8:4=17`: bytes 8 to 11 of parameter 2, from 0; `n=4096` is a name.
fn value_in_words(value: &str, types: &[String]) -> String {
    let parts = || {
        let (place, number) = value.strip_prefix("param")?.split_once('=')?;
        let (place, _) = place.split_once(':')?;
        let (index, at) = place
            .split_once('+')
            .map_or((place, None), |(index, at)| (index, Some(at)));
        let index: usize = index.parse().ok()?;
        let ty = types
            .get(index)
            .filter(|_| at.is_none())
            .map(String::as_str);
        let bits: u64 = number.parse().ok()?;
        let number = match ty {
            Some("float") => f32::from_bits(bits as u32).to_string(),
            Some("double") => f64::from_bits(bits).to_string(),
            Some("int") => (bits as u32 as i32).to_string(),
            Some("long" | "long long") => (bits as i64).to_string(),
            _ => number.to_owned(),
        };
        let at = at.map_or_else(String::new, |at| format!(" (its byte {at})"));
        Some(format!("parameter {index}{at} = {number}"))
    };
    parts().unwrap_or_else(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_said_in_the_words_of_the_source() {
        let of = |recipe: &str| {
            let recipe: Recipe = recipe.parse().expect("a recipe");
            edit_in_place(&recipe, "k", false, 0.5).map(|edit| edit.in_words())
        };
        let said = of(
            "reshape(64x4x1, from=32x8x1, grid=12x48x1); specialize(block=32x8x1, params=param0:4=384&param2+8:4=5); \
             unroll(8); vectorize; cache(loads=no-allocate, stores=streaming); maxnreg(64)",
        );
        assert_eq!(
            said.as_deref(),
            Some(
                "launch it with blocks of 64×4 in the place of 32×8, as many threads in all; as constants (template \
                 arguments): `blockDim` = 32×8, parameter 0 = 384, parameter 2 (its byte 8) = 5; `#pragma unroll 8` at its \
                 loops; neighbouring elements of a thread as one `float4` or `float2`, of aligned pointers; loads as \
                 `ld.global.L1::no_allocate` (inline PTX), stores by `__stcs`; `__maxnreg__(64)`, without launch bounds (measured 0.50 of the time)"
            )
        );
        let part = of("unroll(1); schedule(waits=alone, margin=0)").expect("an edit");
        assert!(
            part.starts_with("`#pragma unroll 1` at its loops (with what has no words"),
            "{part}"
        );
        assert_eq!(of("schedule(waits=alone, margin=0)"), None);
    }

    #[test]
    fn a_limit_in_the_place_of_bounds_promises_nothing() {
        let of = |recipe: &str, has_bounds| {
            let recipe: Recipe = recipe.parse().expect("a recipe");
            let edit = edit_in_place(&recipe, "k", has_bounds, 0.5).expect("an edit");
            assert_eq!(
                edit.text.contains("minimum of blocks"),
                has_bounds && recipe.find::<MaxNReg>().is_some()
            );
            edit.gives
        };
        assert_eq!(of("maxnreg(64)", true), Gives::Unknown);
        assert_eq!(
            of("maxnreg(64); schedule(waits=alone, margin=0)", true),
            Gives::Unknown
        );
        assert_eq!(of("maxnreg(64)", false), Gives::Measured(0.5));
        assert_eq!(of("unroll(4)", true), Gives::Measured(0.5));
    }

    #[test]
    fn constants_are_numbers_of_their_parameters_types() {
        let types = parameters_of(
            "void a::k<int, (b)1>(float, std::pair<int, double> const&, int, void (*)(int, long))",
        );
        assert_eq!(
            types,
            [
                "float",
                "std::pair<int, double> const&",
                "int",
                "void (*)(int, long)"
            ]
        );
        let said = |value: &str| value_in_words(value, &types);
        assert_eq!(said("param0:4=1092616192"), "parameter 0 = 10");
        assert_eq!(said("param2:4=4294967295"), "parameter 2 = -1");
        assert_eq!(said("param1+8:8=7"), "parameter 1 (its byte 8) = 7");
        assert!(parameters_of("cupy_copy__float32_float32").is_empty());
    }

    #[test]
    fn an_edit_says_where_what_and_how_much() {
        let edit = |line: Option<&str>, gives| Edit {
            line: line.map(str::to_owned),
            text: "`#pragma unroll`".to_owned(),
            gives,
        };
        assert_eq!(
            edit(Some("k.cu:7"), Gives::LocalBytes(64)).in_words(),
            "k.cu:7: `#pragma unroll`"
        );
        assert_eq!(
            edit(None, Gives::Measured(0.8)).in_words(),
            "`#pragma unroll` (measured 0.80 of the time)"
        );
    }
}
