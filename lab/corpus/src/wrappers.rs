//! CUDA C++ that uses every overload of libcu++'s `cuda::ptx` functions.
//!
//! Each of these functions is one PTX instruction with its modifiers: between them they have most of what
//! PTX 7.0 and later added (mbarriers, bulk copies, tensor maps, fences, tcgen05, multimem, …). The headers
//! of the cccl wheel describe each overload in a comment, which is what is read here:
//!
//! ```text
//! // fence.sem.scope; // PTX ISA 60, SM_70
//! // .sem       = { .sc, .acq_rel }
//! // .scope     = { .cta, .gpu, .sys }
//! template <cuda::ptx::dot_sem Sem, cuda::ptx::dot_scope Scope>
//! __device__ void fence(
//!   cuda::ptx::sem_t<Sem> sem,
//!   cuda::ptx::scope_t<Scope> scope);
//! ```
//!
//! The generated kernel takes the address of each overload, which makes the compiler emit its body.

use std::fmt::Write;

/// One overload set of a `cuda::ptx` function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    /// First and last PTX version that has it, as one number: 86 for 8.6.
    isa: (u32, u32),
    /// Architectures, such as `90`, `100a`, `100f`.
    targets: Vec<String>,
    /// Values of each modifier, without leading dots.
    modifiers: Vec<(String, Vec<String>)>,
    template: Vec<String>,
    returns: String,
    name: String,
    parameters: String,
}

/// All overloads that a header's comments describe.
pub fn parse(header: &str) -> Vec<Wrapper> {
    let blocks = header
        .split("/*")
        .skip(1)
        .filter_map(|rest| rest.split("*/").next());
    blocks.filter_map(parse_block).collect()
}

fn parse_block(block: &str) -> Option<Wrapper> {
    let (about, code) = block.split_once("__device__ ")?;
    // A long first line may have swallowed the word `template`.
    let (about, template) = about
        .split_once("template <")
        .unwrap_or((about, "typename = void>"));
    let template = template.trim_end().strip_suffix('>')?;
    let about = about.replace('\n', " ");
    let (_, target) = about.split_once("PTX ISA ")?;
    // `86`, or `93-94` for what a later version took back.
    let end = target.find(|c: char| !c.is_ascii_digit() && c != '-')?;
    let (first, last) = target[..end]
        .split_once('-')
        .unwrap_or((&target[..end], "999"));
    let isa = (first.parse().ok()?, last.parse().ok()?);
    let targets = target[end..]
        .split([',', ' '])
        .filter_map(|word| word.strip_prefix("SM_"));
    let (signature, _) = code.split_once(");")?;
    let (head, parameters) = signature.split_once('(')?;
    let (returns, name) = head.rsplit_once(' ')?;
    Some(Wrapper {
        isa,
        targets: targets.map(str::to_owned).collect(),
        modifiers: modifiers(&about),
        template: split_commas(template)
            .iter()
            .map(|part| part.trim().to_owned())
            .collect(),
        returns: returns.replace("static inline ", ""),
        name: name.to_owned(),
        parameters: without_defaults(parameters),
    })
}

/// Parameters without their default values, which a function type cannot have.
fn without_defaults(parameters: &str) -> String {
    let parts = split_commas(parameters).into_iter();
    let parts = parts.map(|part| part.split(" = ").next().unwrap_or(part).trim());
    parts.collect::<Vec<_>>().join(", ")
}

/// `// .sem = { .sc, .acq_rel }`.
fn modifiers(about: &str) -> Vec<(String, Vec<String>)> {
    let parts = about.split("// .").filter_map(|part| {
        let (name, rest) = part.split_once('=')?;
        let (values, _) = rest.trim_start().strip_prefix('{')?.split_once('}')?;
        let values = values
            .split(',')
            .map(|v| v.trim().trim_start_matches('.').to_owned());
        Some((name.trim().to_owned(), values.collect()))
    });
    parts.collect()
}

/// Splits at commas outside of brackets.
fn split_commas(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

impl Wrapper {
    /// Whether an architecture (`90`, `100a`) has the instruction.
    fn runs_on(&self, gpu: &str) -> bool {
        let number = |text: &str| text.trim_end_matches(['a', 'f']).parse::<u32>().ok();
        self.targets
            .iter()
            .any(|target| match target.strip_suffix('f') {
                Some(_) => gpu.ends_with(['a', 'f']) && number(target) == number(gpu),
                None if target.ends_with('a') => target == gpu,
                None => number(target) <= number(gpu),
            })
    }

    /// For each template parameter its possible declarations.
    fn choices(&self) -> Option<Vec<Vec<String>>> {
        let mut all = Vec::new();
        for parameter in &self.template {
            if parameter == "typename = void" || parameter.starts_with("enable_if_t") {
                continue;
            }
            let declaration = parameter.split('=').next()?.trim();
            let (kind, name) = declaration.rsplit_once(' ')?;
            all.push(match kind.strip_prefix("cuda::ptx::dot_") {
                Some(set) => {
                    let values = self.values(set)?.iter();
                    let line = |v: &String| {
                        format!("constexpr {kind} {name} = {kind}::{};", value_name(v))
                    };
                    values.map(line).collect()
                }
                None if kind == "int" => {
                    vec![format!("constexpr int {name} = {};", self.immediate())]
                }
                None if kind == "typename" => {
                    let types = self.types(name)?.into_iter();
                    types.map(|t| format!("using {name} = {t};")).collect()
                }
                None => return None,
            });
        }
        Some(all)
    }

    /// A value that ptxas takes for the instruction's immediate operand.
    fn immediate(&self) -> u32 {
        match self.name.as_str() {
            // Bytes of a tensor map.
            name if name.contains("fence") => 128,
            // Registers, a multiple of 8.
            name if name.starts_with("setmaxnreg") => 64,
            _ => 0,
        }
    }

    fn values(&self, modifier: &str) -> Option<&[String]> {
        let mut all = self.modifiers.iter();
        all.find(|(name, _)| name == modifier)
            .map(|(_, values)| &values[..])
    }

    /// Types that a type parameter can stand for: by its size, or by the modifier `.type`.
    fn types(&self, name: &str) -> Option<Vec<&'static str>> {
        let size = format!("sizeof({name}) == ");
        let rule = self.template.iter().find_map(|part| part.split_once(&size));
        if let Some((_, rest)) = rule {
            let digits = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            return Some(vec![match &rest[..digits] {
                "1" => "int8_t",
                "2" => "int16_t",
                "4" => "int32_t",
                "8" => "int64_t",
                "16" => "longlong2",
                "32" => "longlong4_32a",
                _ => return None,
            }]);
        }
        self.values("type")?
            .iter()
            .map(|value| c_type(value))
            .collect()
    }
}

fn c_type(ptx: &str) -> Option<&'static str> {
    let table = [
        ("b8", "int8_t"),
        ("b16", "int16_t"),
        ("b32", "int32_t"),
        ("b64", "int64_t"),
        ("u32", "uint32_t"),
        ("s32", "int32_t"),
        ("u64", "uint64_t"),
        ("s64", "int64_t"),
        ("f32", "float"),
        ("f64", "double"),
        ("f16", "__half"),
        ("bf16", "__nv_bfloat16"),
    ];
    table.iter().find(|(name, _)| *name == ptx).map(|(_, c)| *c)
}

/// libcu++'s name of a modifier's value.
fn value_name(value: &str) -> String {
    match value {
        "and" | "or" | "xor" => format!("{value}_op"),
        "shared::cta" => "shared".to_owned(),
        "shared::cluster" => "cluster".to_owned(),
        _ => {
            let value = value.rsplit_once("validity::").map_or(value, |(_, v)| v);
            let value = match value.split_once("::") {
                Some(("kind" | "layout" | "phase_type", rest)) => rest,
                Some(("mbarrier", rest)) => rest.rsplit("::").next().unwrap_or(rest),
                _ => value,
            };
            value.replace("::", "_")
        }
    }
}

/// The source of one kernel for each header: `headers` are names and texts; overloads beyond the PTX
/// version `isa` (95 for 9.5) or the architecture (`90`, `100a`) are left out. Also returns how many
/// overloads there are that this reader does not understand.
pub fn source(headers: &[(String, String)], gpu: &str, isa: u32) -> (String, usize) {
    let mut text = "// Generated from the headers of libcu++ by warpwright-corpus.\n\
                    #include <cstdint>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda/ptx>\n"
        .to_owned();
    let mut skipped = 0;
    for (name, header) in headers {
        let mut body = String::new();
        for wrapper in parse(header)
            .iter()
            .filter(|w| (w.isa.0..=w.isa.1).contains(&isa) && w.runs_on(gpu))
        {
            match wrapper.choices() {
                Some(choices) => uses(wrapper, &choices, &mut body),
                None => skipped += 1,
            }
        }
        if !body.is_empty() {
            let _ = writeln!(
                text,
                "extern \"C\" __global__ void ptx_{name}(void **o) {{\n{body}}}"
            );
        }
    }
    (text, skipped)
}

/// One line for each combination of choices.
fn uses(wrapper: &Wrapper, choices: &[Vec<String>], body: &mut String) {
    let Wrapper {
        returns,
        name,
        parameters,
        ..
    } = wrapper;
    let total: usize = choices.iter().map(Vec::len).product();
    for mut index in 0..total {
        let _ = write!(body, "  {{ ");
        for choice in choices {
            let _ = write!(body, "{} ", choice[index % choice.len()]);
            index /= choice.len();
        }
        let _ = writeln!(
            body,
            "*o++ = (void *)static_cast<{returns} (*)({parameters})>(cuda::ptx::{name}); }}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE: &str = "\
/*
// fence.sem.scope; // PTX ISA 60,
SM_70
// .sem       = { .sc, .acq_rel }
// .scope     = { .cta, .gpu,
.sys }
template <cuda::ptx::dot_sem Sem, cuda::ptx::dot_scope Scope>
__device__ void fence(
  cuda::ptx::sem_t<Sem> sem,
  cuda::ptx::scope_t<Scope> scope);
*/
";

    #[test]
    fn every_combination_of_modifiers() {
        let headers = [("fence".to_owned(), FENCE.to_owned())];
        let (text, skipped) = source(&headers, "90", 95);
        assert_eq!((text.matches("*o++").count(), skipped), (6, 0), "{text}");
        let line = "  { constexpr cuda::ptx::dot_sem Sem = cuda::ptx::dot_sem::acq_rel; constexpr \
                    cuda::ptx::dot_scope Scope = cuda::ptx::dot_scope::sys; *o++ = (void *)static_cast<void \
                    (*)(cuda::ptx::sem_t<Sem> sem, cuda::ptx::scope_t<Scope> scope)>(cuda::ptx::fence); }\n";
        assert!(text.contains(line), "{text}");
        assert_eq!(
            source(&headers, "60", 95).0.matches("*o++").count(),
            0,
            "too old a GPU"
        );
        let taken_back = [("f".to_owned(), FENCE.replace("ISA 60", "ISA 60-94"))];
        assert_eq!(source(&taken_back, "90", 95).0.matches("*o++").count(), 0);
        assert_eq!(source(&taken_back, "90", 94).0.matches("*o++").count(), 6);
        assert_eq!(
            source(&headers, "90", 50).0.matches("*o++").count(),
            0,
            "too old a PTX"
        );
    }

    #[test]
    fn type_parameters() {
        let header = "/*\n// st.b32 [a], v; // PTX ISA 81, SM_100a, SM_110f\n// .type = { .b32, .f64 }\n\
                      template <typename Type, typename B16, enable_if_t<sizeof(B16) == 16, bool> = true>\n\
                      __device__ static inline bool st(\n  Type* a,\n  cuda::ptx::n32_t<N> n = cuda::ptx::n32_t<3>());\n*/";
        let headers = [("st".to_owned(), header.to_owned())];
        let (text, _) = source(&headers, "100a", 95);
        for part in [
            "using Type = int32_t;",
            "using Type = double;",
            "using B16 = longlong2;",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(
            text.contains("bool (*)(Type* a, cuda::ptx::n32_t<N> n)"),
            "{text}"
        );
        for (gpu, count) in [("100", 0), ("90", 0), ("110a", 2), ("110f", 2), ("120a", 0)] {
            assert_eq!(
                source(&headers, gpu, 95).0.matches("*o++").count(),
                count,
                "{gpu}"
            );
        }
    }

    #[test]
    fn what_is_not_understood_is_counted() {
        let header = FENCE.replace(".sem  ", ".other");
        assert_eq!(source(&[("f".to_owned(), header)], "90", 95).1, 1);
    }
}
