//! The environment as it is: in its order, names that come twice twice, and with what is no variable.

use std::ffi::{CStr, OsString, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

#[allow(unsafe_code)]
// SAFETY: the C library's, which [`own`] reads.
unsafe extern "C" {
    /// Where the C library finds it.
    pub static mut environ: *const *const c_char;
}

/// This process's.
#[allow(unsafe_code)]
pub fn own() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    // SAFETY: nothing here sets variables; texts up to a null, each up to a zero.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            all.push(CStr::from_ptr(*entry).to_bytes().to_vec());
            entry = entry.add(1);
        }
    }
    all
}

/// The same with some variables set: each where it stands, or at the end.
pub fn with(mut all: Vec<Vec<u8>>, set: &[(OsString, OsString)]) -> Vec<Vec<u8>> {
    for (name, value) in set {
        let start = [name.as_bytes(), b"="].concat();
        let new = [&start, value.as_bytes()].concat();
        let mut is_there = false;
        // Whoever looks for it takes the first, or the last.
        for entry in all.iter_mut().filter(|entry| entry.starts_with(&start)) {
            entry.clone_from(&new);
            is_there = true;
        }
        if !is_there {
            all.push(new);
        }
    }
    all
}

/// A variable's value where it stands last.
pub fn last(name: &str) -> Option<OsString> {
    let start = [name.as_bytes(), b"="].concat();
    let entry = own().into_iter().rfind(|entry| entry.starts_with(&start));
    entry.map(|entry| OsString::from_vec(entry[start.len()..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_set_where_they_stand() {
        let all = ["B=1", "NONE", "A=first", "", "A=second", "=odd", "AB=2"];
        let all = all.map(|entry| entry.as_bytes().to_vec()).to_vec();
        let set = [("A", "x"), ("C", ""), ("C", "y"), ("B", "")];
        let set = set.map(|(name, value)| (name.into(), value.into()));
        let expected = ["B=", "NONE", "A=x", "", "A=x", "=odd", "AB=2", "C=y"];
        assert_eq!(
            with(all, &set),
            expected.map(|entry| entry.as_bytes().to_vec())
        );
    }
}
