//! What waits, under two sessions at once: nothing is left behind, and nothing takes effect twice.

use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::{Event, Verdict};
use tidegate_actors::rules::order::OnGap;

use crate::events::{APPLIED, HELD, Words as _, event};
use crate::policies::{HOLD_MS, newest, refetch, sequence};
use crate::world::{Options, World};

const ROUNDS: u32 = 20;

fn number(id: &str, n: u32, on_gap: OnGap) -> Event {
    event(&format!("{id}-{n}")).on(id, n).by(&sequence(on_gap))
}

pub(crate) async fn a_hold_may_run_out_while_its_gap_closes(world: &World) {
    let other = world.open(Options::default()).await;
    let mut session = other.session().await;
    for round in 0..ROUNDS {
        let id = format!("o{round}-");
        let on_gap = if round % 2 == 0 { OnGap::Expire } else { OnGap::Release };
        let third = number(&id, 3, on_gap);
        world.commit(&[number(&id, 1, on_gap), third.clone()]).await;
        world.pass(HOLD_MS + 60_000).await;
        let second = [number(&id, 2, on_gap)];
        let (settled, committed) = tokio::join!(world.node.store.settle_due(100), session.commit(&second));
        let outcome = committed.unwrap().outcomes[0];
        let in_time = outcome == APPLIED;
        // Whoever left the resource to the other finds nothing, or settles it now.
        let settled = settled.unwrap().and(world.settle().await);
        let row = world.state(&id).await;
        assert_eq!(row.held, 0, "round {round}: {outcome:?} {settled:?}");
        let said = world.verdict(&third).await;
        let expired = said == Verdict::Expired;
        assert!(expired || said == Verdict::Applied, "round {round}: {said:?}");
        assert!(in_time || (on_gap == OnGap::Release && !expired), "round {round}: {outcome:?} {said:?}");
        assert_eq!(row.version.as_deref(), Some(if expired { "2" } else { "3" }), "round {round}");
        assert_eq!(row.applied, 1 + i64::from(in_time) + i64::from(!expired), "round {round}");
    }
}

pub(crate) async fn one_happening_under_two_ids_on_two_sessions_takes_effect_once(world: &World) {
    let (mut left, mut right) = (world.node.session().await, world.node.session().await);
    for round in 0..ROUNDS {
        let told = |side: &str| {
            let key = format!("{side}{round}");
            event(&key).on(&key, 1).effect(&format!("paid-{round}")).by(&newest())
        };
        let (a, b) = (told("a"), told("b"));
        let (one, two) = tokio::join!(left.commit(std::slice::from_ref(&a)), right.commit(std::slice::from_ref(&b)));
        let (one, two) = (one.unwrap().outcomes[0], two.unwrap().outcomes[0]);
        let expected = if one == APPLIED {
            (APPLIED, Outcome::Repeat { first: a.id })
        } else {
            (Outcome::Repeat { first: b.id }, APPLIED)
        };
        assert_eq!((one, two), expected, "round {round}");
    }
    assert_eq!(world.node.reader.counts().await.unwrap().resources, i64::from(ROUNDS));
}

pub(crate) async fn a_signal_may_come_while_the_fetch_is_claimed_and_answered(world: &World) {
    let mut session = world.node.session().await;
    let other = world.open(Options::default()).await;
    let signal = |key: String| event(&key).on_unversioned("o").by(&refetch());
    for round in 0..ROUNDS {
        assert_eq!(world.take(&signal(format!("k{round}"))).await, HELD);
        let late = [signal(format!("l{round}"))];
        let (claimed, committed) = tokio::join!(other.store.claim_fetches(10, 600_000), session.commit(&late));
        assert_eq!(committed.unwrap().outcomes, [HELD]);
        let mut claims = claimed.unwrap().claims;
        let mut version = round * 10;
        // A signal that came behind the claim asks for another fetch, and no more than one.
        for _ in 0..3 {
            claims.extend(other.store.claim_fetches(10, 600_000).await.unwrap().claims);
            let Some(claim) = claims.pop() else { break };
            version += 1;
            let key = format!("refetch-{}", claim.epoch);
            assert_eq!(world.take(&event(&key).on("o", version).by(&refetch()).answers(&claim)).await, APPLIED);
        }
        let counts = world.node.reader.counts().await.unwrap();
        assert_eq!((counts.held, counts.fetches), (0, 0), "round {round}");
    }
}
