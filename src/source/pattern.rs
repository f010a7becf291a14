//! Patterns of event types: text in which `*` stands for anything, also for nothing.

/// A list of patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Patterns(Vec<String>);

impl Patterns {
    pub(crate) fn new(patterns: &[String]) -> Self {
        Self(patterns.to_vec())
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, text))
    }

    /// The place of the longest pattern that matches, letters counted and stars not.
    pub(super) fn rank(&self, text: &str) -> Option<u32> {
        let letters = |pattern: &str| pattern.bytes().filter(|&byte| byte != b'*').count();
        let matching = self.0.iter().enumerate().filter(|(_, pattern)| matches(pattern, text));
        let (place, _) = matching.max_by_key(|(place, pattern)| (letters(pattern), std::cmp::Reverse(*place)))?;
        u32::try_from(place).ok()
    }
}

/// Whether a text fits a pattern. Each `*` takes as little as it can and gives way when the rest fails, so
/// the work is bounded by the product of the two lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut from) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while from < text.len() {
        if pattern.get(at) == Some(&b'*') {
            last_star = Some((at, from));
            at += 1;
        } else if pattern.get(at) == Some(&text[from]) {
            at += 1;
            from += 1;
        } else if let Some((star, taken)) = last_star {
            last_star = Some((star, taken + 1));
            at = star + 1;
            from = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "a.b"),
            ("a.*", "a."),
            ("*.deleted", "customer.subscription.deleted"),
            ("a*b*c", "aXbXbc"),
            ("ping", "ping"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("ping", "pings"), ("*.deleted", "deleted"), ("a*b*c", "acb")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn the_longest_pattern_decides_the_rank() {
        let ranks = Patterns::new(&["*.created".to_owned(), "*".to_owned(), "*.deleted".to_owned()]);
        assert_eq!(ranks.rank("customer.created"), Some(0));
        assert_eq!(ranks.rank("customer.updated"), Some(1));
        assert_eq!(ranks.rank("customer.deleted"), Some(2));
        assert_eq!(Patterns::new(&["a".to_owned()]).rank("b"), None);
    }
}
