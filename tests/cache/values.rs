//! What is written, and what is believed.

use secrecy::SecretString;
use tidegate::cache::{CacheSettings, open};
use tidegate_actors::rules::event::Incarnation;
use uuid::Uuid;

use super::{ERA, cache, fact, key, run, settings};
use crate::support::setting;

fn shared() -> String {
    setting("TIDEGATE_TEST_REDIS")
}

/// A stranger's connection to the same server.
fn stranger() -> redis::Connection {
    redis::Client::open(shared()).unwrap().get_connection().unwrap()
}

fn name(namespace: &str, number: u64) -> String {
    format!("tidegate:{namespace}:k:{}", key(number))
}

#[test]
fn without_an_address_nothing_is_known_and_nothing_fails() {
    run(async {
        let cache = open(&CacheSettings::default()).unwrap();
        cache.put(ERA, &[fact(1)]).await.unwrap();
        assert_eq!(cache.get(ERA, &[key(1), key(2)]).await.unwrap(), [None, None]);
    });
}

#[test]
fn an_address_that_is_none_is_refused_without_showing_its_password() {
    let mut settings = settings("redis://user:hunter2@[", "x");
    let error = open(&settings).err().unwrap().to_string();
    assert!(error.contains("cache.url") && !error.contains("hunter2"), "{error}");
    settings.url = Some(SecretString::from("http://127.0.0.1/"));
    assert!(open(&settings).is_err());
}

#[test]
fn facts_come_back_in_the_order_asked_for_with_a_time_to_live() {
    run(async {
        let cache = cache(&shared(), "round-trip");
        let facts: Vec<_> = (0..2_000).map(fact).collect();
        cache.put(ERA, &facts).await.unwrap();
        let keys: Vec<_> = (0..3_000).rev().map(key).collect();
        let known = cache.get(ERA, &keys).await.unwrap();
        let expected: Vec<_> = (0..3_000).rev().map(|number| (number < 2_000).then(|| fact(number))).collect();
        assert_eq!(known, expected);
        let left: i64 = redis::cmd("PTTL").arg(name("round-trip", 7)).query(&mut stranger()).unwrap();
        let three_days = 72 * 3600 * 1000;
        assert!(left > three_days - 60_000 && left <= three_days, "{left} ms left");
    });
}

#[test]
fn another_node_with_the_same_secret_sees_the_fact() {
    run(async {
        cache(&shared(), "two-nodes").put(ERA, &[fact(1)]).await.unwrap();
        assert_eq!(cache(&shared(), "two-nodes").get(ERA, &[key(1)]).await.unwrap(), [Some(fact(1))]);
    });
}

#[test]
fn another_incarnation_secret_or_namespace_is_a_miss() {
    run(async {
        let ours = cache(&shared(), "ours");
        ours.put(ERA, &[fact(1)]).await.unwrap();
        let restored = Incarnation(Uuid::from_u128(2));
        assert_eq!(ours.get(restored, &[key(1)]).await.unwrap(), [None]);
        let mut theirs = settings(&shared(), "ours");
        theirs.secret = SecretString::from("another secret");
        assert_eq!(open(&theirs).unwrap().get(ERA, &[key(1)]).await.unwrap(), [None]);
        assert_eq!(cache(&shared(), "yours").get(ERA, &[key(1)]).await.unwrap(), [None]);
        assert_eq!(ours.get(ERA, &[key(1)]).await.unwrap(), [Some(fact(1))], "and still ours");
    });
}

#[test]
fn a_strangers_value_a_copied_value_and_a_wrong_type_are_misses() {
    run(async {
        let cache = cache(&shared(), "stranger");
        cache.put(ERA, &[fact(1), fact(2), fact(3)]).await.unwrap();
        let mut stranger = stranger();
        let good: Vec<u8> = redis::cmd("GET").arg(name("stranger", 1)).query(&mut stranger).unwrap();
        let mut forged = good.clone();
        *forged.last_mut().unwrap() ^= 1;
        redis::cmd("SET").arg(name("stranger", 2)).arg(&forged).exec(&mut stranger).unwrap();
        redis::cmd("DEL").arg(name("stranger", 3)).exec(&mut stranger).unwrap();
        redis::cmd("LPUSH").arg(name("stranger", 3)).arg("a list").exec(&mut stranger).unwrap();
        redis::cmd("SET").arg(name("stranger", 4)).arg(&good).exec(&mut stranger).unwrap();
        redis::cmd("SET").arg(name("stranger", 5)).arg("").exec(&mut stranger).unwrap();
        redis::cmd("SET").arg(name("stranger", 6)).arg(vec![1_u8; 1 << 20]).exec(&mut stranger).unwrap();
        let keys: Vec<_> = (1..=6).map(key).collect();
        assert_eq!(cache.get(ERA, &keys).await.unwrap(), [Some(fact(1)), None, None, None, None, None]);
    });
}

#[test]
fn a_fact_written_over_a_wrong_type_counts_again() {
    run(async {
        let cache = cache(&shared(), "overwrite");
        redis::cmd("LPUSH").arg(name("overwrite", 1)).arg("a list").exec(&mut stranger()).unwrap();
        cache.put(ERA, &[fact(1)]).await.unwrap();
        assert_eq!(cache.get(ERA, &[key(1)]).await.unwrap(), [Some(fact(1))]);
    });
}
