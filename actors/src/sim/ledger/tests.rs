//! Answers and commits made by hand: the ledger must see what cannot be.

use uuid::Uuid;

use super::*;
use crate::rules::event::Incarnation;
use crate::sim::{Scenario, generate};

struct Hand {
    prepared: Arc<Prepared>,
    ledger: Ledger,
    ids: u128,
}

impl Hand {
    fn new() -> Self {
        let prepared = Arc::new(Prepared::new(&generate(&Scenario::default(), 1)));
        let ledger = Ledger::new(Arc::clone(&prepared), Arc::default(), false);
        Self { prepared, ledger, ids: 0 }
    }

    /// An event arrives, under a name of its own.
    fn arrive(&mut self, event: u32) -> Event {
        self.ids += 1;
        let id = EventId(Uuid::from_u128(self.ids));
        self.ledger.arrived(event, id, 0);
        self.prepared.deliver(event, id, 0)
    }

    fn commit(&self, event: &Event, outcome: Outcome) {
        let incarnation = Incarnation(Uuid::nil());
        let committed = Committed { outcomes: vec![outcome], incarnation, waits: Waits::default() };
        self.ledger.committed(0, std::slice::from_ref(event), &committed);
    }

    fn answer(&self, event: &Event, verdict: Verdict, id: EventId) {
        self.ledger.answered(event.id, 0, &Ok(Receipt { verdict, id, tie: false, conflict: false }));
    }

    fn broken(&self) -> Vec<String> {
        self.ledger.known().violations.iter().map(|violation| violation.invariant.clone()).collect()
    }
}

const APPLIED: Outcome = Outcome::Applied { tie: false };

#[test]
fn an_answer_after_its_commit_is_right_and_so_is_that_of_its_repeat() {
    let mut hand = Hand::new();
    let (first, repeat) = (hand.arrive(0), hand.arrive(0));
    hand.commit(&first, APPLIED);
    hand.answer(&first, Verdict::Applied, first.id);
    hand.commit(&repeat, Outcome::Duplicate { first: first.id, conflict: false });
    hand.answer(&repeat, Verdict::Duplicate, first.id);
    assert_eq!(hand.broken(), [""; 0]);
}

#[test]
fn an_answer_before_its_commit_breaks_i1() {
    let mut hand = Hand::new();
    let event = hand.arrive(0);
    hand.answer(&event, Verdict::Applied, event.id);
    assert_eq!(hand.broken(), ["I1"]);
}

#[test]
fn a_key_that_takes_effect_twice_breaks_i3() {
    let mut hand = Hand::new();
    let (first, repeat) = (hand.arrive(0), hand.arrive(0));
    hand.commit(&first, APPLIED);
    hand.commit(&repeat, APPLIED);
    assert_eq!(hand.broken(), ["I3"]);
}

#[test]
fn a_duplicate_of_nothing_or_of_another_breaks_i7() {
    let mut hand = Hand::new();
    let (first, repeat, other) = (hand.arrive(0), hand.arrive(0), hand.arrive(1));
    hand.commit(&other, Outcome::Duplicate { first: first.id, conflict: false });
    hand.commit(&first, APPLIED);
    hand.commit(&repeat, Outcome::Duplicate { first: other.id, conflict: false });
    hand.answer(&repeat, Verdict::Applied, repeat.id);
    assert_eq!(hand.broken(), ["I7", "I7", "I7", "I7"]);
}

#[test]
fn a_version_that_goes_back_breaks_i5() {
    let hand = Hand::new();
    let numbered = |number| {
        let of =
            |event: &&Event| event.guards.first().and_then(|guard| guard.version.as_ref()?.number()) == Some(number);
        (0..)
            .map_while(|event| hand.prepared.plan.events.get(event as usize).map(|_| hand.prepared.template(event)))
            .find(of)
            .cloned()
            .expect("an event with this version")
    };
    let row = |number| {
        let event = numbered(number);
        ResourceRow {
            hash: ResourceHash([1; 16]),
            source: String::new(),
            tenant: String::new(),
            kind: String::new(),
            id: String::new(),
            version: event.guards[0].version.as_ref().map(|version| version.text().to_owned()),
            deleted: false,
            event: Some(event.id),
            applied_at_ms: 0,
            applied: 1,
            epoch: 1,
            step: None,
            held: 0,
            fields: None,
        }
    };
    hand.ledger.stored(&row(1));
    hand.ledger.stored(&row(3));
    assert_eq!(hand.broken(), [""; 0]);
    hand.ledger.stored(&row(2));
    assert_eq!(hand.broken(), ["I5"]);
}

#[test]
fn a_good_event_that_is_rejected_breaks_i14_and_one_nobody_sent_i2() {
    let mut hand = Hand::new();
    let good = (0..).find(|&event| !hand.prepared.planned(event).poison).expect("most are good");
    let event = hand.arrive(good);
    hand.ledger.answered(event.id, 0, &Err(Refused::Rejected("just so".to_owned())));
    assert_eq!(hand.broken(), ["I14"]);
    let forged = hand.prepared.deliver(0, EventId(Uuid::from_u128(99)), 0);
    hand.commit(&forged, APPLIED);
    assert_eq!(hand.broken(), ["I14", "I2"]);
}
