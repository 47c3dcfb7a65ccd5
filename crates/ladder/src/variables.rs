//! Variables of a module that a program's host code would set before it launches anything.

use crate::names::is_named;

/// PTX in which these variables, named as in the source, begin with these bytes.
pub fn with_variables(ptx: &str, variables: &[(String, Vec<u8>)]) -> String {
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        let mut all = variables.iter();
        let set = all.find_map(|(name, bytes)| with_value(line, name, bytes));
        text.push_str(set.as_deref().unwrap_or(line));
    }
    text
}

/// `.const .align 8 .b8 w[72];` with this value; nothing for other lines.
fn with_value(line: &str, name: &str, bytes: &[u8]) -> Option<String> {
    let declared = line.strip_prefix(".visible ").unwrap_or(line);
    if !declared.starts_with(".const ") && !declared.starts_with(".global ") {
        return None;
    }
    let array = line.split_once(&format!("[{}]", bytes.len()));
    // `.const .align 4 .f32 c;` is one number.
    let (before, _) = array.or_else(|| line.split_once([';', '=']))?;
    let (typed, symbol) = before.trim_end().rsplit_once(char::is_whitespace)?;
    let (rest, ty) = typed.rsplit_once(char::is_whitespace)?;
    let ty = match array {
        Some(_) => ty,
        None if ty == format!(".f{}", 8 * bytes.len()) => ".b8",
        None => return None,
    };
    if !is_named(symbol, name) {
        return None;
    }
    let all: Vec<String> = bytes.iter().map(u8::to_string).collect();
    let (length, all) = (bytes.len(), all.join(", "));
    Some(format!("{rest} {ty} {symbol}[{length}] = {{{all}}};\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_set_and_nothing_else() {
        let ptx = ".const .align 1 .b8 other[2];\n.const .align 1 .b8 w[3];\n\
                   .visible .const .align 1 .b8 _ZN1aL1wE[2] = {9, 9};\n\tld.const.u8 %r1, [w];\n\
                   .const .align 4 .f32 w;\n.const .align 4 .f64 w = 0d0000000000000000;\n";
        let set = with_variables(ptx, &[("w".to_owned(), vec![1, 2])]);
        let lines: Vec<&str> = set.lines().collect();
        assert_eq!(
            lines,
            [
                ".const .align 1 .b8 other[2];",
                ".const .align 1 .b8 w[3];",
                ".visible .const .align 1 .b8 _ZN1aL1wE[2] = {1, 2};",
                "\tld.const.u8 %r1, [w];",
                ".const .align 4 .f32 w;",
                ".const .align 4 .f64 w = 0d0000000000000000;"
            ]
        );
        // `11wide_scale` has `1w` in it.
        let other = ".const .align 1 .b8 _ZL11wide_scale[2];\n";
        assert_eq!(
            with_variables(other, &[("w".to_owned(), vec![1, 2])]),
            other
        );
        let bytes = vec![1, 2, 3, 4];
        let set = with_variables(
            ".visible .const .align 4 .f32 w = 0f00000000;\n",
            &[("w".to_owned(), bytes)],
        );
        assert_eq!(set, ".visible .const .align 4 .b8 w[4] = {1, 2, 3, 4};\n");
    }
}
