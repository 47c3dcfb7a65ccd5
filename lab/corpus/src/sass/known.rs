//! Differences between our liveness and nvdisasm's that are understood, from `sass-differences.txt`.
//!
//! A line of that file: `rule`, the name of a rule of nvdisasm's that the comparison computes, and behind a
//! colon what it says; or an architecture or `*`, a part of function names or `*`, a part of the text of the
//! first differing instruction or `*`, and behind a colon the explanation. One that begins with `open:` only
//! says what was seen: such a difference still counts as a failure.

use warpwright_driver::life_ranges::Difference;

use crate::Error;

/// The file's lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    rules: Vec<(String, String)>,
    lines: Vec<Line>,
}

/// The rule for guarded writes ([`warpwright_sass::function::Hyperblocks`]).
pub const GUARDED_WRITES: &str = "guarded-writes";

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    sm: Option<u32>,
    function: String,
    instruction: String,
    why: String,
}

impl Known {
    /// The file of this crate, as it was when the program was built.
    ///
    /// # Errors
    /// A line has another form.
    pub fn load() -> Result<Known, Error> {
        let text = include_str!("../../sass-differences.txt");
        Known::parse(text).map_err(|line| Error::Directive {
            file: "sass-differences.txt".to_owned(),
            line,
        })
    }

    /// Reads a text; the error is the line that has another form.
    ///
    /// # Errors
    /// That line.
    pub fn parse(text: &str) -> Result<Known, String> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut known = Known::default();
        for line in lines {
            let fail = || line.to_owned();
            if let Some(rule) = line.strip_prefix("rule ") {
                let (name, what) = rule.split_once(" : ").ok_or_else(fail)?;
                if name != GUARDED_WRITES {
                    return Err(fail());
                }
                known.rules.push((name.to_owned(), what.trim().to_owned()));
            } else {
                known.lines.push(parse_line(line).ok_or_else(fail)?);
            }
        }
        Ok(known)
    }

    /// The rules of nvdisasm's: names, and what they say.
    pub fn rules(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rules.iter().map(|(name, what)| (&**name, &**what))
    }

    /// The explanations of single functions, `open:` ones included.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| &*line.why)
    }

    /// The explanation of a function's differences, if there is one.
    pub fn explains(&self, sm: u32, function: &str, found: &[Difference]) -> Option<&str> {
        let first = found.first()?;
        let line = self.lines.iter().find(|line| {
            !line.why.starts_with("open:")
                && line.sm.is_none_or(|known| known == sm)
                && function.contains(&line.function)
                && first.text.contains(&line.instruction)
        });
        line.map(|line| line.why.as_str())
    }
}

fn parse_line(line: &str) -> Option<Line> {
    let (place, why) = line.split_once(" : ")?;
    let mut words = place.split_whitespace();
    let sm = match words.next()? {
        "*" => None,
        word => Some(word.strip_prefix("sm_")?.parse().ok()?),
    };
    let part = |word: &str| {
        if word == "*" {
            String::new()
        } else {
            word.to_owned()
        }
    };
    let line = Line {
        sm,
        function: part(words.next()?),
        instruction: part(words.next()?),
        why: why.trim().to_owned(),
    };
    words.next().is_none().then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_explains_what_it_names() {
        let known = Known::parse("# why\nsm_80 sort CALL.REL : because\n").unwrap();
        let found = |text: &str| Difference {
            offset: 0,
            text: text.into(),
            register: "R2".into(),
            ours: true,
        };
        let call = [found("CALL.REL.NOINC 0x10")];
        assert_eq!(known.explains(80, "radix_sort", &call), Some("because"));
        assert_eq!(known.explains(86, "radix_sort", &call), None);
        assert_eq!(known.explains(80, "scan", &call), None);
        assert_eq!(known.explains(80, "radix_sort", &[found("BRA 0x0")]), None);
        let open = Known::parse("* sort * : open: seen").unwrap();
        assert_eq!(open.explains(80, "radix_sort", &call), None);
    }

    #[test]
    fn other_lines_are_errors() {
        let lines = ["sm_80 a b", "sm_x a b : c", "sm_80 a : c", "* a b d : c"];
        for line in lines.into_iter().chain(["rule a", "rule other : c"]) {
            assert_eq!(Known::parse(line), Err(line.to_owned()));
        }
    }
}
