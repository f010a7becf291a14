//! Which door a path leads to. A pure function of the path's own bytes.
//!
//! Nothing is decoded and nothing is normalised: another spelling of a path is another path, so a proxy in
//! front and this program can never read one path in two ways. Knows nothing of which sources exist.

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door<'a> {
    /// `/in/{source}` or `/in/{source}/{tenant}`.
    Ingest {
        /// The source's name as written.
        source: &'a str,
        /// The tenant as written.
        tenant: Option<&'a str>,
    },
    /// `/healthz`: the process lives.
    Health,
    /// `/readyz`: events would be taken.
    Ready,
    /// Anything else.
    Nowhere,
}

impl<'a> Door<'a> {
    /// The door of this path (without its query).
    pub(crate) fn of(path: &'a str) -> Self {
        if let Some(rest) = path.strip_prefix("/in/") {
            return Self::ingest(rest);
        }
        match path {
            "/healthz" => Self::Health,
            "/readyz" => Self::Ready,
            _ => Self::Nowhere,
        }
    }

    fn ingest(rest: &'a str) -> Self {
        let (source, tenant) = match rest.split_once('/') {
            Some((source, tenant)) => (source, Some(tenant)),
            None => (rest, None),
        };
        let whole = !source.is_empty() && tenant.is_none_or(|tenant| !tenant.is_empty() && !tenant.contains('/'));
        if whole { Self::Ingest { source, tenant } } else { Self::Nowhere }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_reached_with_and_without_a_tenant() {
        assert_eq!(Door::of("/in/stripe"), Door::Ingest { source: "stripe", tenant: None });
        assert_eq!(Door::of("/in/stripe/acme"), Door::Ingest { source: "stripe", tenant: Some("acme") });
    }

    #[test]
    fn another_spelling_is_another_path() {
        for path in ["/in", "/in/", "/in//acme", "/in/stripe/", "/in/stripe/a/b", "/IN/stripe", "//in/stripe", "/", "*"]
        {
            assert_eq!(Door::of(path), Door::Nowhere, "{path}");
        }
        assert_eq!(Door::of("/in/str%69pe"), Door::Ingest { source: "str%69pe", tenant: None });
    }

    #[test]
    fn health_and_readiness_have_doors_of_their_own() {
        assert_eq!(Door::of("/healthz"), Door::Health);
        assert_eq!(Door::of("/readyz"), Door::Ready);
        assert_eq!(Door::of("/readyz/"), Door::Nowhere);
    }
}
