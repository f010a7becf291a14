//! The scenarios of these tests: each policy, under everything that can go wrong.
#![allow(dead_code, reason = "each test binary uses some of them")]

use tidegate_actors::sim::{GapChoice, PolicyChoice, Scenario, Span, TieChoice, VersionKind};

/// All of them.
pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![newest(), ties(), waiting("release", GapChoice::Release), waiting("expire", GapChoice::Expire), mixed()]
}

/// Something of everything, so that whatever is wrong shows.
pub(crate) fn everything() -> Scenario {
    let mut scenario = named(
        "everything",
        vec![
            PolicyChoice::default(),
            PolicyChoice::Newest { version: VersionKind::Time, tie: TieChoice::Apply },
            PolicyChoice::Sequence { hold_for_ms: 5_000, on_gap: GapChoice::Release },
            PolicyChoice::Sequence { hold_for_ms: 5_000, on_gap: GapChoice::Expire },
        ],
    );
    scenario.clock.precision_ms = 1_000;
    scenario.gate.tight = 0.3;
    scenario
}

fn named(name: &str, policies: Vec<PolicyChoice>) -> Scenario {
    let mut scenario = Scenario { name: name.to_owned(), ..Scenario::default() };
    scenario.order.policies = policies;
    scenario
}

/// Whole numbers, and nothing waits.
pub(crate) fn newest() -> Scenario {
    named("newest", vec![PolicyChoice::default(), PolicyChoice::Arrival { version: VersionKind::Number }])
}

/// Times in whole seconds, so that many are equal.
pub(crate) fn ties() -> Scenario {
    let of = |version, tie| PolicyChoice::Newest { version, tie };
    let mut scenario = named(
        "ties",
        vec![
            of(VersionKind::Time, TieChoice::Keep),
            of(VersionKind::Time, TieChoice::Apply),
            of(VersionKind::TimeAndRank, TieChoice::Keep),
        ],
    );
    scenario.clock.precision_ms = 1_000;
    scenario.clock.sender_skew_ms = 300;
    scenario
}

/// Rows without gaps, some of whose events never come.
pub(crate) fn waiting(name: &str, on_gap: GapChoice) -> Scenario {
    let steps = || ["created", "paid", "packed", "shipped", "delivered"].map(str::to_owned).to_vec();
    let mut scenario = named(
        name,
        vec![
            PolicyChoice::Sequence { hold_for_ms: 3_000, on_gap },
            PolicyChoice::Sequence { hold_for_ms: 15_000, on_gap },
            PolicyChoice::Transition { hold_for_ms: 4_000, on_gap, steps: steps(), strict: true },
            PolicyChoice::Transition { hold_for_ms: 4_000, on_gap, steps: steps(), strict: false },
        ],
    );
    scenario.world.never = 0.02;
    scenario
}

/// All kinds of policies side by side, in requests of several events.
pub(crate) fn mixed() -> Scenario {
    let mut scenario = named(
        "mixed",
        vec![
            PolicyChoice::default(),
            PolicyChoice::Fields,
            PolicyChoice::Window { window_ms: 1_500 },
            PolicyChoice::Refetch,
            PolicyChoice::Sequence { hold_for_ms: 2_000, on_gap: GapChoice::Refetch },
            PolicyChoice::Sequence { hold_for_ms: 60_000, on_gap: GapChoice::Release },
        ],
    );
    scenario.world.batch = Span::new(1, 6);
    scenario.world.repeats = 0.04;
    scenario.world.never = 0.01;
    scenario
}
