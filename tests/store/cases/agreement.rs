//! Both ways through a batch mean what `rules` mean, however the stream is cut.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::Event;
use tidegate_actors::rules::key::ResourceHash;

use crate::events::{Words as _, event, resource};
use crate::model::Model;
use crate::world::World;

const RESOURCES: u32 = 4;

/// What a random event is made of.
#[derive(Clone, Debug)]
struct Draw {
    key: u32,
    body: u32,
    guards: Vec<(u32, Option<u32>)>,
    form: Form,
    ties_apply: bool,
    deletes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Newest,
    Arrival,
    Ignored,
}

fn draw(plain: bool) -> impl Strategy<Value = Draw> {
    let guards = if plain { 0..=1usize } else { 0..=3usize };
    let number =
        if plain { (0u32..6).prop_map(Some).boxed() } else { proptest::option::weighted(0.9, 0u32..6).boxed() };
    let form = if plain {
        prop_oneof![9 => Just(Form::Newest), 1 => Just(Form::Ignored)].boxed()
    } else {
        prop_oneof![6 => Just(Form::Newest), 2 => Just(Form::Arrival), 1 => Just(Form::Ignored)].boxed()
    };
    let guards =
        proptest::collection::btree_map(0..RESOURCES, number, guards).prop_map(|map| map.into_iter().collect());
    (0u32..40, 0u32..8, guards, form, any::<bool>(), proptest::bool::weighted(0.2)).prop_map(
        |(key, body, guards, form, ties_apply, deletes)| Draw { key, body, guards, form, ties_apply, deletes },
    )
}

fn stream() -> impl Strategy<Value = Vec<Vec<Draw>>> {
    any::<bool>().prop_flat_map(|plain| proptest::collection::vec(proptest::collection::vec(draw(plain), 1..14), 1..7))
}

/// `scope` keeps the keys and resources of one run apart from those of the others.
fn make(scope: u32, draw: &Draw) -> Event {
    let mut made = event(&format!("{scope}-{}", draw.key));
    for (id, number) in &draw.guards {
        let id = format!("{scope}-{id}");
        made = match number {
            Some(number) => made.on(&id, number),
            None => made.on_unversioned(&id),
        };
    }
    // Few bodies differ, so that most repeats are honest.
    made = made.body(format!("{{\"body\":{}}}", draw.body / 7).as_bytes());
    made.deletes = draw.deletes;
    match draw.form {
        Form::Newest if draw.ties_apply => made.ties_apply(),
        Form::Newest => made,
        Form::Arrival => made.arrival(),
        Form::Ignored => made.ignored(),
    }
}

pub(crate) async fn random_batches_agree_with_the_rules(world: &World) {
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let streams: Vec<Vec<Vec<Draw>>> =
        (0..60).map(|_| stream().new_tree(&mut runner).expect("a stream").current()).collect();
    let mut session = world.node.session().await;
    for (scope, stream) in streams.iter().enumerate() {
        let scope = u32::try_from(scope).unwrap();
        let mut model = Model::default();
        for (at, draws) in stream.iter().enumerate() {
            let batch: Vec<Event> = draws.iter().map(|draw| make(scope, draw)).collect();
            let expected = model.commit(&batch);
            let got: Vec<Outcome> = session.commit(&batch).await.unwrap().outcomes;
            assert_eq!(got, expected, "batch {at} of {stream:#?}");
            for id in 0..RESOURCES {
                compare(world, &model, resource("shop", "", &format!("{scope}-{id}")).hash, stream).await;
            }
        }
    }
}

async fn compare(world: &World, model: &Model, hash: ResourceHash, stream: &[Vec<Draw>]) {
    let row = world.node.reader.resource(hash).await.unwrap();
    let got = row.map(|row| (row.version, row.event, row.deleted, row.applied));
    let expected = model.states.get(&hash).map(|state| {
        (state.version.as_ref().map(|version| version.text().to_owned()), state.event, state.deleted, state.applied)
    });
    assert_eq!(got, expected, "a state after {stream:#?}");
}
