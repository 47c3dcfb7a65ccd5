//! Suggestions for names that are nearly right.

/// The candidate nearest to `name` in spelling, if it is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.len() / 3).clamp(1, 3);
    let distances = candidates.map(|c| (edit_distance(name, c, limit), c));
    let near = distances.filter_map(|(d, c)| d.map(|d| (d, c)));
    near.min().map(|(_, c)| c)
}

/// Levenshtein distance in bytes if it is at most `limit`.
fn edit_distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit || a.len() > 256 {
        return None;
    }
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().filter(|&d| d <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_near_and_stable() {
        let names = ["%rd1", "%rd2", "foo_param_0", "bar"];
        assert_eq!(
            nearest("foo_parm_0", names.into_iter()),
            Some("foo_param_0")
        );
        assert_eq!(nearest("%rd9", names.into_iter()), Some("%rd1"));
        assert_eq!(nearest("quite_another", names.into_iter()), None);
    }
}
