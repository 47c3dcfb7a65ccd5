//! Names of a kernel's parameters as CUDA C has them: nvcc's PTX calls them by number.

/// The names, where the source has one kernel of this name, as it is written.
pub(crate) fn in_source(source: &str, kernel: &str) -> Option<Vec<String>> {
    let text = without_comments(source);
    let kernels = text.split("__global__").skip(1);
    let mut found = kernels.filter_map(|rest| {
        let (name, list) = declared(rest)?;
        (name == kernel).then(|| {
            parts(list)
                .into_iter()
                .map(name_of)
                .collect::<Vec<String>>()
        })
    });
    let names = found.next()?;
    // A declaration and its definition may name them otherwise; kernels of one name are not told apart.
    found.all(|other| other == names).then_some(names)
}

/// The name of what is declared behind `__global__`, and what stands in its parentheses.
fn declared(mut rest: &str) -> Option<(&str, &str)> {
    loop {
        let open = rest.find('(')?;
        let list = &rest[open + 1..];
        let close = closing(list)?;
        let head = rest[..open].trim_end();
        let start = head.rfind(|c: char| !is_of_name(c)).map_or(0, |at| at + 1);
        let name = &head[start..];
        if name != "__launch_bounds__" && name != "__attribute__" {
            return Some((name, &list[..close]));
        }
        rest = &list[close + 1..];
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The place of the parenthesis that ends a list.
fn closing(list: &str) -> Option<usize> {
    let mut depth = 0;
    list.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
        None
    })
}

/// Parameters, between commas that stand in no brackets.
fn parts(list: &str) -> Vec<&str> {
    let mut depth = 0;
    let is_comma = |c: char| {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    };
    let all = list.split(is_comma).map(str::trim);
    all.filter(|part| !part.is_empty()).collect()
}

/// `x` of `const float x[4]`
fn name_of(part: &str) -> String {
    let end = part.find(['=', '[']).unwrap_or(part.len());
    let part = part[..end].trim_end();
    let start = part.rfind(|c: char| !is_of_name(c));
    part[start.map_or(0, |at| at + 1)..].to_owned()
}

fn without_comments(source: &str) -> String {
    let mut text = String::new();
    let mut rest = source;
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        text.push_str(&rest[..at]);
        text.push(' ');
        let end = match rest[at..].starts_with("//") {
            true => rest[at..].find('\n'),
            false => rest[at..].find("*/").map(|end| end + 2),
        };
        rest = end.map_or("", |end| &rest[at + end..]);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::in_source;

    #[test]
    fn parameters_are_named_as_in_the_source() {
        let source = "// __global__ void k(int old)
            template <int N> __global__ void other(float* y) {}
            extern \"C\" __global__ void __launch_bounds__(128, 2)
            k(const float* __restrict__ x, /* (a comment, */ float (&y)[4], pair<int, int> p, int n = 3) {}";
        let names = in_source(source, "k").unwrap();
        assert_eq!(names[0], "x");
        assert_eq!(names[2..], ["p", "n"]);
        assert_eq!(in_source(source, "other").unwrap(), ["y"]);
        assert_eq!(in_source(source, "none"), None);
        let twice = "__global__ void k(int a);\n__global__ void k(float b) {}";
        assert_eq!(in_source(twice, "k"), None);
    }
}
