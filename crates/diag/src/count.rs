//! Counted words.

use std::fmt;

/// `1 block`, `2 blocks`: a number and what it counts, in its form for one.
pub fn count(number: impl TryInto<u64> + fmt::Display + Copy, what: &str) -> String {
    format!("{number} {}", plural(what, number))
}

/// The word alone, as it stands behind the number.
pub fn plural(what: &str, number: impl TryInto<u64>) -> String {
    match number.try_into() {
        Ok(1) => what.to_owned(),
        _ if what.ends_with("ch") => format!("{what}es"),
        _ => format!("{what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn one_is_no_plural() {
        let said = [0u32, 1, 2].map(|number| count(number, "block"));
        assert_eq!(said, ["0 blocks", "1 block", "2 blocks"]);
        assert_eq!(count(1usize, "byte"), "1 byte");
        assert_eq!(count(2u64, "launch"), "2 launches");
    }
}
