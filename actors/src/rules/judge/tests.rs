//! Every policy, sentence by sentence.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::rules::event::EventId;
use crate::rules::fields::{MEMBERS_MAX, Patch};
use crate::rules::graph::Graph;
use crate::rules::order::{EpochOn, Order, Wait};
use crate::rules::version::Version;

const NEWEST: Policy = Policy::Newest { tie: Tie::Keep };

fn version(number: i64) -> Version {
    Version::integer(&number.to_string()).expect("a version")
}

/// A resource with what it holds, played event by event.
struct Play {
    state: State,
    held: BTreeMap<EventId, (Subject, Waiting)>,
    verdicts: BTreeMap<EventId, Judgement>,
    now_ms: i64,
    next: u128,
    wants_fetch: bool,
}

fn order(policy: Policy) -> Order {
    Order::judged(policy)
}

fn sequence(on_gap: OnGap) -> Order {
    order(Policy::Sequence { start: 1, wait: Wait { hold_for_ms: 100, on_gap } })
}

fn ranks(on_gap: OnGap) -> Order {
    let graph = Arc::new(Graph::ranks(["created", "updated", "deleted"]).expect("ranks"));
    order(Policy::Transition { graph, tie: Tie::Keep, wait: Wait { hold_for_ms: 100, on_gap } })
}

fn event(order: &Order, number: impl Into<Option<i64>>) -> Subject {
    Subject {
        received_at_ms: 0,
        version: number.into().map(version),
        step: None,
        deletes: false,
        patch: None,
        order: order.clone(),
    }
}

fn step(order: &Order, name: &str, number: impl Into<Option<i64>>) -> Subject {
    Subject { step: Some(name.to_owned()), ..event(order, number) }
}

impl Play {
    fn new() -> Self {
        Self {
            state: State::default(),
            held: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            now_ms: 0,
            next: 1,
            wants_fetch: false,
        }
    }

    fn judge(&mut self, came: &[(EventId, Subject)], fetched: Option<i64>, push: Push) {
        let held: Vec<_> = self.held.clone().into_iter().collect();
        let mut items: Vec<Item<'_>> = Vec::new();
        for (id, (subject, waiting)) in &held {
            items.push(Item { waiting: *waiting, ..Item::new(*id, subject.view()) });
        }
        for (id, subject) in came {
            items.push(Item { fetched, ..Item::new(*id, subject.view()) });
        }
        let judged = judge(self.state.clone(), &items, self.now_ms, push).expect("room");
        self.wants_fetch = judged.wants_fetch;
        self.state = judged.state;
        for (item, judgement) in items.iter().zip(judged.judgements) {
            match &judgement {
                Judgement::Held(hold) => {
                    let waiting =
                        Waiting { held: true, until_ms: hold.until_ms, parked_in: hold.parked_in, fetch: hold.fetch };
                    self.held.insert(item.id, (item.subject.to_subject(), waiting));
                }
                _ => {
                    self.held.remove(&item.id);
                }
            }
            self.verdicts.insert(item.id, judgement);
        }
        assert_eq!(self.state.held, i64::try_from(self.held.len()).expect("few"));
    }

    fn take(&mut self, mut subject: Subject) -> EventId {
        let id = EventId(Uuid::from_u128(self.next));
        self.next += 1;
        subject.received_at_ms = self.now_ms;
        self.judge(&[(id, subject)], None, Push::None);
        id
    }

    fn at(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
        self.judge(&[], None, Push::None);
    }

    fn word(&self, id: EventId) -> &'static str {
        match &self.verdicts[&id] {
            Judgement::Applied { tie: true, .. } => "tie",
            Judgement::Applied { .. } => "applied",
            Judgement::Stale { .. } => "stale",
            Judgement::Held(_) => "held",
            Judgement::Expired { .. } => "expired",
        }
    }

    fn words(&self, ids: &[EventId]) -> Vec<&'static str> {
        ids.iter().map(|&id| self.word(id)).collect()
    }

    fn number(&self) -> Option<i128> {
        self.state.version.as_ref().and_then(Version::number)
    }

    fn why(&self, id: EventId) -> &str {
        match &self.verdicts[&id] {
            Judgement::Applied { why, .. } => why.as_deref().unwrap_or(""),
            Judgement::Stale { why, .. } | Judgement::Expired { why } => why,
            Judgement::Held(hold) => &hold.why,
        }
    }
}

#[test]
fn the_newest_applies_and_what_is_older_is_stale_with_its_reason() {
    let mut play = Play::new();
    let ids = [5, 4, 5, 6].map(|number| play.take(event(&order(NEWEST), number)));
    assert_eq!(play.words(&ids), ["applied", "stale", "stale", "applied"]);
    assert_eq!((play.why(ids[1]), play.why(ids[2])), ("older than 5", "equals 5"));
    assert_eq!(play.number(), Some(6));
}

#[test]
fn a_tie_is_decided_by_its_rule_and_said() {
    let mut play = Play::new();
    let apply = order(Policy::Newest { tie: Tie::Apply });
    let ids = [5, 5].map(|number| play.take(event(&apply, number)));
    assert_eq!(play.words(&ids), ["applied", "tie"]);
    assert_eq!(play.state.event, Some(ids[1]));
}

#[test]
fn an_event_without_a_version_applies_and_leaves_the_stored_version() {
    let mut play = Play::new();
    play.take(event(&order(NEWEST), 7));
    let id = play.take(event(&order(NEWEST), None));
    assert_eq!((play.word(id), play.number(), play.state.event), ("applied", Some(7), Some(id)));
}

#[test]
fn reordering_inside_a_batch_heals() {
    let mut play = Play::new();
    let newest = order(NEWEST);
    let came = [3, 1, 2].map(|number| (EventId(Uuid::from_u128(number as u128)), event(&newest, number)));
    play.judge(&came, None, Push::None);
    assert_eq!(play.words(&[came[0].0, came[1].0, came[2].0]), ["applied"; 3]);
    assert_eq!(play.state.event, Some(came[0].0));
}

#[test]
fn arrival_applies_everything_and_its_version_never_goes_back() {
    let mut play = Play::new();
    let ids = [5, 3].map(|number| play.take(event(&order(Policy::Arrival), number)));
    assert_eq!(play.words(&ids), ["applied"; 2]);
    assert_eq!((play.number(), play.state.event), (Some(5), Some(ids[1])));
}

#[test]
fn a_sequence_holds_what_is_above_the_gap_and_releases_it_with_what_closes_it() {
    let mut play = Play::new();
    let ids = [1, 4, 3, 2, 2].map(|number| play.take(event(&sequence(OnGap::Expire), number)));
    assert_eq!(play.words(&ids), ["applied", "applied", "applied", "applied", "stale"]);
    assert_eq!((play.number(), play.state.applied, play.state.held), (Some(4), 4, 0));
}

#[test]
fn a_sequence_begins_at_its_start() {
    let mut play = Play::new();
    let ids = [0, 2, 1].map(|number| play.take(event(&sequence(OnGap::Expire), number)));
    assert_eq!(play.words(&ids), ["stale", "applied", "applied"]);
    assert_eq!(play.why(ids[0]), "before the start, 1");
}

#[test]
fn a_held_event_expires_when_its_time_is_over_and_the_prefix_stays_contiguous() {
    let mut play = Play::new();
    let ids = [1, 3].map(|number| play.take(event(&sequence(OnGap::Expire), number)));
    assert_eq!(play.why(ids[1]), "waits for 2");
    play.at(99);
    assert_eq!(play.word(ids[1]), "held");
    play.at(100);
    assert_eq!((play.word(ids[1]), play.number()), ("expired", Some(1)));
    assert_eq!(play.why(ids[1]), "its time ran out: waits for 2");
    assert_eq!(play.take(event(&sequence(OnGap::Expire), 2)), EventId(Uuid::from_u128(3)));
    assert_eq!(play.number(), Some(2));
}

#[test]
fn a_gap_given_up_releases_everything_below_what_was_over_its_time() {
    let mut play = Play::new();
    let release = sequence(OnGap::Release);
    let first = [1, 5].map(|number| play.take(event(&release, number)));
    play.now_ms = 50;
    let later = [3, 6, 8].map(|number| play.take(event(&release, number)));
    play.at(100);
    assert_eq!(play.words(&first), ["applied", "applied"]);
    assert_eq!(play.words(&later), ["applied", "applied", "held"], "6 follows 5, and 8 has its own gap");
    assert_eq!((play.number(), play.why(later[0])), (Some(6), "the gap before it was given up"));
    assert_eq!((play.why(first[1]), play.why(later[1])), ("the gap before it was given up", ""), "6 follows 5");
    let late = play.take(event(&release, 2));
    assert_eq!(play.word(late), "stale");
}

#[test]
fn a_gap_may_be_closed_by_asking_the_provider() {
    let mut play = Play::new();
    let refetch = sequence(OnGap::Refetch);
    let ids = [1, 3, 6].map(|number| play.take(event(&refetch, number)));
    play.at(100);
    assert!(play.wants_fetch);
    assert_eq!(play.words(&ids), ["applied", "held", "held"]);
    for (_, waiting) in play.held.values_mut() {
        assert_eq!(waiting.until_ms, None, "it waits for the answer, and not for time");
        waiting.fetch = Some(7);
    }
    let answer = EventId(Uuid::from_u128(99));
    let fetched = event(&order(Policy::Newest { tie: Tie::Apply }), 4);
    play.judge(&[(answer, fetched)], Some(7), Push::None);
    assert_eq!(play.words(&ids), ["applied", "stale", "held"]);
    assert_eq!((play.word(answer), play.number()), ("applied", Some(4)));
    let waiting = play.held[&ids[2]].1;
    assert_eq!((waiting.until_ms, waiting.fetch), (Some(200), None), "6 waits for 5, for another while");
    play.take(event(&refetch, 5));
    assert_eq!(play.number(), Some(6));
}

#[test]
fn a_provider_that_never_answers_lets_what_waited_for_it_expire() {
    let mut play = Play::new();
    let id = play.take(event(&sequence(OnGap::Refetch), 3));
    play.at(100);
    play.held.values_mut().for_each(|(_, waiting)| waiting.fetch = Some(1));
    play.judge(&[], None, Push::GiveUp(2));
    assert_eq!(play.word(id), "held", "another fetch took over");
    play.judge(&[], None, Push::GiveUp(1));
    assert_eq!(play.word(id), "expired");
}

#[test]
fn an_update_before_its_create_waits() {
    let mut play = Play::new();
    let by_rank = ranks(OnGap::Expire);
    let ids = ["deleted", "updated", "created"].map(|name| play.take(step(&by_rank, name, None)));
    assert_eq!(play.words(&ids), ["applied"; 3], "created lets both follow");
    assert_eq!(play.state.step.as_deref(), Some("deleted"));
    let late = play.take(step(&by_rank, "updated", None));
    assert_eq!((play.word(late), play.why(late)), ("stale", "updated does not follow deleted"));
}

#[test]
fn within_a_rank_the_newer_version_applies() {
    let mut play = Play::new();
    let by_rank = ranks(OnGap::Expire);
    let ids = [("created", 1), ("updated", 5), ("updated", 7), ("updated", 6), ("updated", 7)]
        .map(|(name, number)| play.take(step(&by_rank, name, number)));
    assert_eq!(play.words(&ids), ["applied", "applied", "applied", "stale", "stale"]);
    assert_eq!(play.why(ids[1]), "");
}

#[test]
fn a_step_that_cannot_be_reached_yet_is_released_or_expires_by_its_rule() {
    for (on_gap, word) in [(OnGap::Release, "applied"), (OnGap::Expire, "expired")] {
        let mut play = Play::new();
        let id = play.take(step(&ranks(on_gap), "updated", None));
        assert_eq!((play.word(id), play.why(id)), ("held", "waits for created"));
        play.at(100);
        assert_eq!(play.word(id), word);
    }
}

#[test]
fn steps_that_run_out_together_are_released_in_the_order_of_the_graph() {
    for (arrival, words) in [(["updated", "deleted"], ["applied"; 2]), (["deleted", "updated"], ["applied"; 2])] {
        let mut play = Play::new();
        let ids = arrival.map(|name| play.take(step(&ranks(OnGap::Release), name, None)));
        play.at(100);
        assert_eq!((play.words(&ids), play.state.step.as_deref()), (words.to_vec(), Some("deleted")), "{arrival:?}");
    }
    // one after the other: what the first leaves behind does not take the state back
    let mut play = Play::new();
    let deleted = play.take(step(&ranks(OnGap::Release), "deleted", None));
    play.now_ms = 50;
    let updated = play.take(step(&ranks(OnGap::Release), "updated", None));
    play.at(100);
    assert_eq!(play.words(&[deleted, updated]), ["applied", "stale"]);
    assert_eq!(play.state.step.as_deref(), Some("deleted"));
}

#[test]
fn a_window_holds_everything_for_its_time_and_releases_in_version_order() {
    let mut play = Play::new();
    let window = order(Policy::Window { window_ms: 100, tie: Tie::Keep });
    let early = play.take(event(&window, 5));
    play.now_ms = 60;
    let ids = [3, 9, 5].map(|number| play.take(event(&window, number)));
    assert_eq!(play.words(&ids), ["held"; 3]);
    play.at(100);
    assert_eq!((play.word(early), play.number()), ("applied", Some(5)));
    assert_eq!(play.words(&ids), ["applied", "held", "stale"], "3 came before 5; 9 has its own time; 5 is a tie");
    let late = play.take(event(&window, 4));
    assert_eq!(play.word(late), "stale");
    play.at(160);
    assert_eq!(play.number(), Some(9));
}

#[test]
fn a_signal_waits_for_the_answer_that_was_asked_for_after_it() {
    let mut play = Play::new();
    let signal = order(Policy::Refetch);
    let first = [None, None].map(|none: Option<i64>| play.take(event(&signal, none)));
    assert!(play.wants_fetch);
    play.held.values_mut().for_each(|(_, waiting)| waiting.fetch = Some(1));
    let later = play.take(event(&signal, None));
    let answer = EventId(Uuid::from_u128(99));
    play.judge(&[(answer, event(&order(Policy::Newest { tie: Tie::Apply }), 4))], Some(1), Push::None);
    assert_eq!((play.words(&first), play.word(later)), (vec!["applied"; 2], "held"));
    assert!(play.wants_fetch, "what came after the claim needs another answer");
    assert_eq!((play.state.event, play.state.applied), (Some(answer), 1), "signals carry no state");
}

#[test]
fn a_counter_that_falls_by_a_lot_is_parked_and_a_little_is_stale() {
    let mut play = Play::new();
    let rule = Order { epoch_on: Some(EpochOn { falls_by: 100, after_idle_ms: Some(1_000) }), ..order(NEWEST) };
    play.take(event(&rule, 1_000));
    play.now_ms = 10;
    let (stale, parked) = (play.take(event(&rule, 900)), play.take(event(&rule, 50)));
    assert_eq!((play.word(stale), play.word(parked)), ("stale", "held"));
    assert_eq!((play.why(parked), play.number()), ("parked: fell from 1000 to 50", Some(1_000)));
    play.now_ms = 1_000;
    let next = play.take(event(&rule, 51));
    assert_eq!((play.word(next), play.state.epoch, play.number()), ("applied", 2, Some(51)));
    assert_eq!(play.word(parked), "stale", "it belongs to the new epoch, and is older");
}

#[test]
fn a_person_begins_the_new_epoch_with_the_lowest_parked_event() {
    let mut play = Play::new();
    let rule = Order { epoch_on: Some(EpochOn { falls_by: 100, after_idle_ms: None }), ..order(NEWEST) };
    play.take(event(&rule, 1_000));
    let parked = [52, 51].map(|number| play.take(event(&rule, number)));
    play.judge(&[], None, Push::Release);
    assert_eq!(play.words(&parked), ["applied", "applied"]);
    assert_eq!((play.state.epoch, play.number()), (2, Some(52)));
}

#[test]
fn a_person_gives_a_gap_up() {
    let mut play = Play::new();
    let ids = [1, 3, 7].map(|number| play.take(event(&sequence(OnGap::Expire), number)));
    play.judge(&[], None, Push::Release);
    assert_eq!((play.words(&ids), play.number()), (vec!["applied"; 3], Some(7)));
}

#[test]
fn a_tombstone_counts_as_state_also_when_the_resource_was_never_seen() {
    let mut play = Play::new();
    play.take(Subject { deletes: true, ..event(&order(NEWEST), 3) });
    assert!(play.state.deleted);
    let late = play.take(event(&order(NEWEST), 2));
    assert_eq!((play.word(late), play.state.deleted), ("stale", true));
    play.take(event(&order(NEWEST), 4));
    assert!(!play.state.deleted);
}

#[test]
fn what_comes_along_is_guarded_by_its_own_version_and_never_waits() {
    let rule = sequence(OnGap::Expire);
    let (first, second) = (event(&rule, 5), event(&rule, 4));
    let item = |number, subject: &'static Subject| Item {
        along: true,
        ..Item::new(EventId(Uuid::from_u128(number)), subject.view())
    };
    let (first, second): (&'static Subject, &'static Subject) = (Box::leak(first.into()), Box::leak(second.into()));
    let judged = judge(State::default(), &[item(1, first)], 0, Push::None).expect("room");
    assert!(matches!(judged.judgements[0], Judgement::Applied { .. }));
    let judged = judge(judged.state, &[item(2, second)], 0, Push::None).expect("room");
    assert!(matches!(judged.judgements[0], Judgement::Stale { .. }));
}

fn patch(members: impl IntoIterator<Item = (String, i64)>) -> Option<Patch> {
    Some(Patch(members.into_iter().map(|(name, value)| (name, value.to_string())).collect()))
}

#[test]
fn what_comes_along_leaves_members_that_were_set_one_by_one() {
    let rule = Order { merge: Merge::Fields, ..order(NEWEST) };
    let partial = |number| Subject { patch: patch([("plan".to_owned(), number)]), ..event(&rule, number) };
    let (updated, along) = (partial(2), event(&rule, 3));
    let id = |number| EventId(Uuid::from_u128(number));
    let items = [Item::new(id(2), updated.view()), Item { along: true, ..Item::new(id(3), along.view()) }];
    let ends = [[0, 1], [1, 0]].map(|arrival| {
        let mut state = State::default();
        for place in arrival {
            state = judge(state, &[items[place]], 0, Push::None).expect("room").state;
        }
        (state.fields.expect("members").document(), state.version, state.event)
    });
    assert_eq!(ends[0], (r#"{"plan":2}"#.to_owned(), Some(version(3)), Some(id(3))));
    assert_eq!(ends[0], ends[1]);
}

#[test]
fn a_held_event_that_finds_no_room_ends_with_a_record_and_stops_nobody() {
    let rule = Order { merge: Merge::Fields, ..sequence(OnGap::Release) };
    let many = |number: i64| {
        let members = (0..MEMBERS_MAX as i64).map(move |member| (format!("{number}-{member}"), member));
        Subject { patch: patch(members), ..event(&rule, number) }
    };
    let mut play = Play::new();
    let second = play.take(many(2));
    let first = play.take(many(1));
    assert_eq!(play.words(&[first, second]), ["applied", "expired"]);
    assert!(play.why(second).contains("more than 1000 members"), "{}", play.why(second));
    let over = many(2);
    let items = [Item::new(EventId(Uuid::from_u128(9)), over.view())];
    assert_eq!(judge(play.state.clone(), &items, 0, Push::None).err(), Some(Unjudged::Members));
    // also where nothing was there before: the row of a resource never seen stays as it was
    let mut play = Play::new();
    let most = play.take(Subject { patch: patch((0..=MEMBERS_MAX as i64).map(|n| (n.to_string(), n))), ..many(3) });
    play.at(100);
    assert_eq!((play.word(most), play.state.clone()), ("expired", State::default()));
}

#[test]
fn held_events_of_a_resource_are_bounded() {
    let mut play = Play::new();
    let rule = sequence(OnGap::Expire);
    for number in 0..HELD_MAX {
        play.take(event(&rule, 2 + i64::try_from(number).expect("small")));
    }
    let (over, closing) = (event(&rule, 5_000), event(&rule, 1));
    let held: Vec<_> = play.held.clone().into_iter().collect();
    let mut items: Vec<Item<'_>> = held
        .iter()
        .map(|(id, (subject, waiting))| Item { waiting: *waiting, ..Item::new(*id, subject.view()) })
        .collect();
    items.push(Item::new(EventId(Uuid::from_u128(9_999)), over.view()));
    assert_eq!(judge(play.state.clone(), &items, 0, Push::None).err(), Some(Unjudged::Full(Full)));
    items.last_mut().expect("the one over").waiting.held = true;
    assert!(judge(play.state.clone(), &items, 0, Push::None).is_ok(), "what is held already is never refused");
    items.pop();
    items.push(Item::new(EventId(Uuid::from_u128(9_999)), closing.view()));
    let judged = judge(play.state, &items, 0, Push::None).expect("what closes the gap needs no room");
    assert_eq!(judged.state.version.and_then(|version| version.number()), Some(HELD_MAX as i128 + 1));
}
