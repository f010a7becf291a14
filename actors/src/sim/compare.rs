//! The same stream under several policies, against the truth: what each would lose or apply out of turn.
//!
//! Owns the comparison only. The truth is the order in which things happened at the sender; a policy may be
//! right to pass an event over, and still the comparison says so, because an application may need it.

use super::backend::Backend;
use super::outcome::{Arrival, Comparison, Misfortune, Timeline};
use super::plan::Plan;
use super::policy::PolicyChoice;
use super::run::{RunOptions, run};
use crate::rules::order::Policy;

/// Plays a plan once for each policy, with everything else as it is.
pub fn compare(plan: &Plan, policies: &[PolicyChoice], backend: &dyn Backend) -> Vec<Comparison> {
    policies.iter().map(|policy| under(plan, policy, backend)).collect()
}

fn under(plan: &Plan, policy: &PolicyChoice, backend: &dyn Backend) -> Comparison {
    let mut plan = plan.clone();
    plan.policies.iter_mut().for_each(|each| each.clone_from(policy));
    let run = run(&plan, backend, &RunOptions { trace: false, timelines: true });
    let mut compared = Comparison {
        policy: policy.name().to_owned(),
        rows: run.counts.rows,
        lost: Vec::new(),
        wrong: Vec::new(),
        wrong_states: 0,
        worst_delay_ms: run.counts.worst_delay_ms,
        violations: run.violations,
    };
    let gapless =
        matches!(policy.rule().map(|rule| rule.policy), Ok(Policy::Sequence { .. } | Policy::Transition { .. }));
    for timeline in &run.resources {
        judge(&plan, timeline, gapless, &mut compared);
    }
    compared
}

/// One resource against the truth.
fn judge(plan: &Plan, timeline: &Timeline, gapless: bool, compared: &mut Comparison) {
    let claimed: Vec<&Arrival> = timeline.arrivals.iter().filter(|arrival| arrival.verdict.is_some()).collect();
    let applied = |arrival: &Arrival| arrival.verdict.as_deref() == Some("applied");
    let misfortune = |arrival: &Arrival, what: String| Misfortune {
        event: arrival.event,
        key: plan.events[arrival.event as usize].key.clone(),
        resource: timeline.name.clone(),
        truth: arrival.truth,
        version: arrival.version.clone(),
        what,
    };
    for one in &claimed {
        let why = one.why.as_deref().map_or_else(String::new, |why| format!(": {why}"));
        match one.verdict.as_deref() {
            Some("stale") => compared.lost.push(misfortune(one, format!("never took effect, called stale{why}"))),
            Some("expired") => compared.lost.push(misfortune(one, format!("never took effect, expired{why}"))),
            Some("applied") => {
                let before = |other: &&&Arrival| applied(other) && other.settled_at_ms < one.settled_at_ms;
                let newest = claimed.iter().filter(before).map(|other| other.truth).max().unwrap_or(0);
                let at_once = |other: &&&Arrival| applied(other) && other.settled_at_ms <= one.settled_at_ms;
                let follows = claimed.iter().filter(at_once).any(|other| other.truth + 1 == one.truth);
                if newest > one.truth {
                    compared.wrong.push(misfortune(one, format!("was applied over event {newest} of its resource")));
                } else if gapless && one.truth > 1 && !follows {
                    compared.wrong.push(misfortune(one, format!("was applied without event {}", one.truth - 1)));
                }
            }
            _ => {}
        }
    }
    let newest = claimed.iter().map(|arrival| arrival.truth).max();
    if newest.is_some_and(|newest| newest > 0 && timeline.state_truth.unwrap_or(0) < newest) {
        compared.wrong_states += 1;
    }
}
