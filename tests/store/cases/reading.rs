//! What was stored comes back, in pages and by filter.

use bytes::Bytes;
use tidegate_actors::ports::{EventFilter, ResourceFilter};
use tidegate_actors::rules::event::{Event, Unusable, Verdict};
use tidegate_actors::rules::key::BodyDigest;

use crate::events::{APPLIED, Words as _, again, event, event_of, fresh_id};
use crate::world::World;

pub(crate) async fn bytes_come_back_as_they_came(world: &World) {
    let mut session = world.node.session().await;
    let bodies: [&[u8]; 5] = [b"", b"\0", b"{\"a\":\"\\u0000\"}", &[0xff, 0xfe, 0x00, 0xc3, 0x28], &[7; 300_000]];
    for (n, body) in bodies.into_iter().enumerate() {
        let mut event = event(&format!("k{n}")).body(body);
        event.headers = Bytes::from_static(b"{\"content-type\":\"application/json\"}");
        assert_eq!(session.commit(std::slice::from_ref(&event)).await.unwrap().outcomes, [APPLIED]);
        let row = world.node.reader.event(event.id).await.unwrap().expect("the event's row");
        assert_eq!(row.body.as_deref(), Some(body));
        assert_eq!(row.body_bytes, i64::try_from(body.len()).unwrap());
        assert_eq!(row.headers.as_deref(), Some(event.headers.as_ref()));
        assert_eq!(row.received_at_ms, event.received_at_ms);
    }
    assert_eq!(world.node.reader.event(fresh_id()).await.unwrap(), None);
}

pub(crate) async fn texts_with_nul_are_taken(world: &World) {
    let mut session = world.node.session().await;
    let mut event = event("k").on("o\0dd \u{1F30A}", 1);
    event.kind = "a\0b".to_owned();
    assert_eq!(session.commit(std::slice::from_ref(&event)).await.unwrap().outcomes, [APPLIED]);
    assert!(world.node.reader.resource(event.guards[0].resource.hash).await.unwrap().is_some());
}

pub(crate) async fn events_are_listed_newest_first_in_pages(world: &World) {
    let mut session = world.node.session().await;
    let mut ids = Vec::new();
    for n in 0..7 {
        let event = event(&format!("k{n}"));
        ids.insert(0, event.id);
        session.commit(std::slice::from_ref(&event)).await.unwrap();
    }
    let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = world.node.reader.events(&EventFilter::default(), after, 3).await.unwrap();
        seen.extend(page.rows.iter().map(|row| row.id));
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((seen, pages), (ids, 3));
    let all = world.node.reader.events(&EventFilter::default(), None, u32::MAX).await.unwrap();
    assert_eq!((all.rows.len(), all.next), (7, None));
    assert!(all.rows.iter().all(|row| row.body.is_none() && row.headers.is_none() && row.body_bytes > 0));
}

pub(crate) async fn events_are_found_by_source_verdict_key_and_resource(world: &World) {
    let mut session = world.node.session().await;
    let batch = [
        event("k1").on("a", 2),
        event("k2").on("a", 3),
        event("k3").on("b", 1),
        event_of("other", "t", "k1"),
        event("k4").ignored(),
    ];
    session.commit(&batch).await.unwrap();
    session.commit(&[event("k5").on("a", 1)]).await.unwrap();
    let keys = async |filter: EventFilter| {
        let page = world.node.reader.events(&filter, None, 10).await.unwrap();
        let mut keys: Vec<_> = page.rows.into_iter().map(|row| format!("{}/{}", row.source, row.key)).collect();
        keys.sort();
        keys
    };
    let all = EventFilter::default;
    assert_eq!(keys(EventFilter { source: Some("other".into()), ..all() }).await, ["other/k1"]);
    assert_eq!(keys(EventFilter { key: Some("k1".into()), ..all() }).await, ["other/k1", "shop/k1"]);
    assert_eq!(keys(EventFilter { verdict: Some(Verdict::Stale), ..all() }).await, ["shop/k5"]);
    assert_eq!(keys(EventFilter { verdict: Some(Verdict::Ignored), ..all() }).await, ["shop/k4"]);
    let of_a = EventFilter { resource: Some(("order".into(), "a".into())), ..all() };
    assert_eq!(keys(of_a).await, ["shop/k1", "shop/k2", "shop/k5"]);
}

pub(crate) async fn resources_are_listed_in_pages_and_found_by_filter(world: &World) {
    let mut session = world.node.session().await;
    let batch: Vec<Event> = (0..5).map(|n| event(&format!("k{n}")).on(&format!("o{n}"), n)).collect();
    session.commit(&batch).await.unwrap();
    session.commit(&[event_of("other", "", "k").on("o1", 1)]).await.unwrap();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = world.node.reader.resources(&ResourceFilter::default(), after, 4).await.unwrap();
        seen.extend(page.rows.into_iter().map(|row| row.hash));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let sorted = seen.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(seen.len() == 6 && sorted, "{seen:?}");
    let count = async |filter: ResourceFilter| world.node.reader.resources(&filter, None, 10).await.unwrap().rows.len();
    let all = ResourceFilter::default;
    assert_eq!(count(ResourceFilter { source: Some("other".into()), ..all() }).await, 1);
    assert_eq!(count(ResourceFilter { id: Some("o1".into()), ..all() }).await, 2);
    assert_eq!(count(ResourceFilter { kind: Some("order".into()), ..all() }).await, 6);
    assert_eq!(count(ResourceFilter { kind: Some("invoice".into()), ..all() }).await, 0);
}

pub(crate) async fn counts_agree_with_what_was_committed(world: &World) {
    let mut session = world.node.session().await;
    let first = event("k1").on("o", 5);
    session.commit(&[first.clone(), event("k2"), event("k3").ignored()]).await.unwrap();
    session.commit(&[event("k4").on("o", 4), again(&first), again(&first).body(b"other")]).await.unwrap();
    session.quarantine(&[unusable(b"?")]).await.unwrap();
    let counts = world.node.reader.counts().await.unwrap();
    let count = |verdict| counts.events.iter().find(|row| row.0 == verdict).map_or(0, |row| row.1);
    assert_eq!(
        Verdict::ALL.map(count),
        [2, 1, 1, 0, 0, 1, 1],
        "applied, duplicate, stale, held, expired, ignored, quarantined"
    );
    assert_eq!((counts.keys, counts.resources), (4, 1));
}

fn unusable(body: &'static [u8]) -> Unusable {
    Unusable {
        id: fresh_id(),
        received_at_ms: 1_796_000_000_000,
        source: "shop".into(),
        tenant: "".into(),
        code: "key-blank",
        reason: "the header x-event-id is blank\0".to_owned(),
        digest: BodyDigest::of(body),
        headers: Bytes::from_static(b"{}"),
        body: Bytes::from_static(body),
    }
}

pub(crate) async fn quarantine_keeps_the_same_bytes_once_and_counts_repeats(world: &World) {
    let mut session = world.node.session().await;
    let (a, b) = (unusable(b"a\0"), unusable(b"b"));
    let ids = session.quarantine(&[a.clone(), b.clone(), unusable(b"a\0")]).await.unwrap();
    assert_eq!(ids, [a.id, b.id, a.id]);
    assert_eq!(session.quarantine(&[unusable(b"a\0")]).await.unwrap(), [a.id]);
    let elsewhere = Unusable { source: "other".into(), ..unusable(b"a\0") };
    assert_eq!(session.quarantine(std::slice::from_ref(&elsewhere)).await.unwrap(), [elsewhere.id]);

    let page = world.node.reader.quarantine(None, 2).await.unwrap();
    assert_eq!(page.rows.len(), 2);
    let rest = world.node.reader.quarantine(page.next, 2).await.unwrap();
    assert_eq!((rest.rows.len(), rest.next), (1, None));
    let rows: Vec<_> = page.rows.into_iter().chain(rest.rows).collect();
    let times = |id| rows.iter().find(|row| row.id == id).map(|row| row.times);
    assert_eq!([times(a.id), times(b.id), times(elsewhere.id)], [Some(3), Some(1), Some(1)]);
    assert!(rows.iter().all(|row| row.code == "key-blank" && row.reason.starts_with("the header")));
}

pub(crate) async fn what_is_taken_out_of_quarantine_is_gone_and_comes_back_as_new(world: &World) {
    let mut session = world.node.session().await;
    let (a, b) = (unusable(b"a"), unusable(b"b"));
    session.quarantine(&[a.clone(), b.clone()]).await.unwrap();
    let kept = world.node.reader.quarantined(a.id).await.unwrap().unwrap();
    assert_eq!((kept.body.as_deref(), kept.headers.as_deref()), (Some(&b"a"[..]), Some(&b"{}"[..])));
    assert!(world.node.store.discharge(a.id).await.unwrap());
    assert!(!world.node.store.discharge(a.id).await.unwrap(), "once");
    assert_eq!(world.node.reader.quarantined(a.id).await.unwrap(), None);
    let rows = world.node.reader.quarantine(None, 10).await.unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [b.id]);
    let later = unusable(b"a");
    assert_eq!(session.quarantine(std::slice::from_ref(&later)).await.unwrap(), [later.id], "a new row");
}
