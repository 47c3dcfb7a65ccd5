//! The comments of a source file that say how it is compiled.
//!
//! ```text
//! // corpus: sample                     part of the small corpus too
//! // corpus: heavy                      in the lean corpus for its lowest architecture alone
//! // corpus: min 80                     lowest architecture
//! // corpus: gpus sm_90 sm_90a          exactly these architectures
//! // corpus: flags -std=c++17           for every compilation
//! // corpus: variant debug -G           compiled once more, with these flags besides
//! ```

use crate::Error;

/// How one source file is compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directives {
    /// Whether the small corpus has it.
    pub sample: bool,
    /// Whether the lean corpus has it for its lowest architecture alone.
    pub heavy: bool,
    /// Lowest architecture number, such as 80.
    pub min: u32,
    /// The architectures; empty for the producer's usual ones.
    pub gpus: Vec<String>,
    /// Flags of every compilation.
    pub flags: Vec<String>,
    /// Further compilations: a name, and flags besides the common ones.
    pub variants: Vec<(String, Vec<String>)>,
}

impl Directives {
    /// Reads the `// corpus:` lines of a source text.
    ///
    /// # Errors
    /// A line that is none of the forms above; `file` names the source in the message.
    pub fn parse(file: &str, text: &str) -> Result<Directives, Error> {
        let mut found = Directives::default();
        for line in text.lines() {
            let Some(rest) = line.strip_prefix("// corpus:") else {
                continue;
            };
            let bad = || Error::Directive {
                file: file.to_owned(),
                line: line.to_owned(),
            };
            let mut words = rest.split_whitespace();
            let list = |words: std::str::SplitWhitespace| words.map(str::to_owned).collect();
            match words.next() {
                Some("sample") if words.clone().next().is_none() => found.sample = true,
                Some("heavy") if words.clone().next().is_none() => found.heavy = true,
                Some("min") => {
                    let number = words.next().and_then(|word| word.parse().ok());
                    found.min = number.ok_or_else(bad)?;
                }
                Some("gpus") => found.gpus = list(words),
                Some("flags") => found.flags = list(words),
                Some("variant") => {
                    let name = words.next().ok_or_else(bad)?.to_owned();
                    found.variants.push((name, list(words)));
                }
                _ => return Err(bad()),
            }
        }
        Ok(found)
    }

    /// Which of the usual architectures apply.
    pub fn gpus<'a>(&'a self, usual: &'a [&'a str]) -> Vec<&'a str> {
        if !self.gpus.is_empty() {
            return self.gpus.iter().map(String::as_str).collect();
        }
        let number = |gpu: &str| gpu.strip_prefix("sm_").and_then(|n| n.parse::<u32>().ok());
        usual
            .iter()
            .copied()
            .filter(|gpu| number(gpu).is_none_or(|n| n >= self.min))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms() {
        let text = "// A kernel.\n// corpus: sample\n// corpus: heavy\n// corpus: min 80\n// corpus: flags -a -b\n\
                    // corpus: variant debug -G\n// corpus: variant plain\nint x;\n";
        let found = Directives::parse("f.cu", text).unwrap();
        assert!(found.sample && found.heavy);
        assert_eq!(found.gpus(&["sm_75", "sm_80", "sm_90"]), ["sm_80", "sm_90"]);
        assert_eq!(found.flags, ["-a", "-b"]);
        let variants = [
            ("debug".to_owned(), vec!["-G".to_owned()]),
            ("plain".to_owned(), vec![]),
        ];
        assert_eq!(found.variants, variants);
        let exact = Directives::parse("f.cu", "// corpus: gpus sm_90a").unwrap();
        assert_eq!(exact.gpus(&["sm_75"]), ["sm_90a"]);
        assert_eq!(
            Directives::parse("f.cu", "int x;").unwrap(),
            Directives::default()
        );
    }

    #[test]
    fn anything_else_is_an_error() {
        for line in [
            "sampel",
            "sample now",
            "heavy now",
            "min",
            "min x",
            "variant",
            "",
        ] {
            let text = format!("// corpus: {line}");
            let error = Directives::parse("f.cu", &text).unwrap_err();
            assert!(error.to_string().contains("f.cu"), "{line}: {error}");
        }
    }
}
