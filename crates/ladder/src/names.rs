//! Symbols of a module as the source names them.

/// Does a symbol, mangled or not, stand for this name of the source?
pub(crate) fn is_named(symbol: &str, name: &str) -> bool {
    symbol == name || base_name(symbol) == Some(name)
}

/// The name of a function or variable without its namespaces, from its mangled symbol (Itanium C++ ABI, section 5.1.2).
fn base_name(symbol: &str) -> Option<&str> {
    let rest = symbol.strip_prefix("_Z")?;
    let nested = rest.strip_prefix('N');
    let (mut rest, mut name) = (nested.unwrap_or(rest), None);
    // `L` stands before names that are no other file's.
    loop {
        rest = rest.trim_start_matches('L');
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let Ok(length) = rest[..digits].parse::<usize>() else {
            return name;
        };
        name = Some(rest.get(digits..digits + length)?);
        rest = &rest[digits + length..];
        if nested.is_none() {
            return name;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::base_name;

    #[test]
    fn names_are_those_of_the_source() {
        for (symbol, name) in [
            ("_Z2mmPKfS0_Pfi", Some("mm")),
            ("_ZL2mmPKfS0_Pfi", Some("mm")),
            ("_Z2mmIfEvPKT_", Some("mm")),
            ("_ZN1a1b2mmEPKfS1_Pfi", Some("mm")),
            ("_ZN1a12_GLOBAL__N_12mmEPf", Some("mm")),
            (
                "_ZN45_GLOBAL__N__01d5dbf8_12_anonymous_cu_8b9b18b22mmEPf",
                Some("mm"),
            ),
            ("_ZN1a2mmIfLi4EEEvPT_", Some("mm")),
            ("_Z9mm", None),
            ("mm", None),
        ] {
            assert_eq!(base_name(symbol), name, "{symbol}");
        }
    }
}
