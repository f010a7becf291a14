//! The steps that a resource takes through a state machine: what `send` plays for the policy `transition`.

use crate::source::spec::{OrderSpec, PolicySpec, StartSpec};

/// The step that this version of a resource takes, if it has a state machine: the first way through it, and its
/// last step again and again.
pub(super) fn step(order: Option<&OrderSpec>, version: u32) -> Option<String> {
    let order = order.filter(|order| order.policy == Some(PolicySpec::Transition))?;
    let behind = usize::try_from(version.saturating_sub(1)).ok()?;
    let name = match (&order.ranks, &order.graph) {
        (Some(ranks), _) => ranks.get(behind.min(ranks.len().saturating_sub(1)))?,
        (None, Some(graph)) => {
            let led_to = |step: &String| graph.values().any(|next| next.contains(step));
            let start = match &order.start {
                Some(StartSpec::Steps(steps)) => steps.all().first(),
                _ => graph.keys().find(|step| !led_to(step)),
            };
            let next = |step: &&String| graph.get(*step).and_then(|next| next.first());
            std::iter::successors(start, next).take(behind + 1).last()?
        }
        (None, None) => return None,
    };
    // a pattern is filled in with something that matches it
    Some(name.replace('*', "item"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_the_first_way_through_a_state_machine_and_stay_at_its_end() {
        let step = |text: &str, version| {
            let order: OrderSpec = toml::from_str(&format!("policy = 'transition'\n{text}")).expect("an order");
            step(Some(&order), version)
        };
        let steps = |text: &str| [1, 2, 3, 4].map(|version| step(text, version).unwrap_or_default());
        assert_eq!(steps("ranks = ['*.created', '*.paid']"), ["item.created", "item.paid", "item.paid", "item.paid"]);
        assert_eq!(steps("graph = { c = ['d'], a = ['b', 'c'], b = ['c'] }"), ["a", "b", "c", "d"]);
        assert_eq!(steps("graph = { a = ['b'], b = ['a'] }\nstart = 'b'"), ["b", "a", "b", "a"]);
        assert_eq!(super::step(Some(&OrderSpec::default()), 1), None);
    }
}
