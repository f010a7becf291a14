//! "Did you mean": the closest of the names there are.

/// The name closest to `wrong`, if one is close enough to be what was meant.
pub(crate) fn closest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wrong.chars().count() / 3).max(1);
    names
        .into_iter()
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Letters to insert, take out, change or swap with their neighbour until `left` reads `right`.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(64).collect();
    let right: Vec<char> = right.chars().take(64).collect();
    let mut before_last = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for row in 1..=left.len() {
        let mut current = vec![row; right.len() + 1];
        for column in 1..=right.len() {
            let change = usize::from(left[row - 1] != right[column - 1]);
            let mut best = (last[column - 1] + change).min(last[column] + 1).min(current[column - 1] + 1);
            let swapped =
                row > 1 && column > 1 && left[row - 1] == right[column - 2] && left[row - 2] == right[column - 1];
            if swapped {
                best = best.min(before_last[column - 2] + 1);
            }
            current[column] = best;
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_name() {
        let names = ["listen", "workers", "body_timeout", "keep_alive"];
        assert_eq!(closest("lisen", names), Some("listen"));
        assert_eq!(closest("lsiten", names), Some("listen"));
        assert_eq!(closest("body-timeout", names), Some("body_timeout"));
        assert_eq!(closest("colour", names), None);
    }
}
