//! What is written, and what is believed.

use tidegate::cache::open;

use super::{cache, era, fact, key, run, settings};
use crate::support::setting;

fn shared() -> String {
    setting("TIDEGATE_TEST_REDIS")
}

/// A stranger's connection to the same server.
fn stranger() -> redis::Connection {
    redis::Client::open(shared()).unwrap().get_connection().unwrap()
}

/// The name a fact has in Redis.
fn name(stranger: &mut redis::Connection, number: u64) -> String {
    let names: Vec<String> = redis::cmd("KEYS").arg(format!("tidegate:*:k:{}", key(number))).query(stranger).unwrap();
    assert_eq!(names.len(), 1, "{names:?}");
    names[0].clone()
}

#[test]
fn without_an_address_nothing_is_known_and_nothing_fails() {
    run(async {
        let mut settings = settings("");
        settings.url = None;
        let cache = open(&settings).unwrap();
        cache.put(era(1), &[fact(1)]).await.unwrap();
        assert_eq!(cache.get(era(1), &[key(1), key(2)]).await.unwrap(), [None, None]);
    });
}

#[test]
fn an_address_that_is_none_is_refused_without_showing_its_password() {
    for address in ["redis://user:hunter2@[", "redis://:hunter2@host:port/", "http://user:hunter2@127.0.0.1/", "x"] {
        let error = open(&settings(address)).err().unwrap().to_string();
        assert!(error.contains("cache.url") && !error.contains("hunter2"), "{error}");
    }
}

#[test]
fn facts_come_back_in_the_order_asked_for_with_a_time_to_live() {
    run(async {
        let cache = cache(&shared());
        let facts: Vec<_> = (10_000..12_000).map(fact).collect();
        cache.put(era(2), &facts).await.unwrap();
        let keys: Vec<_> = (9_500..12_500).rev().map(key).collect();
        let known = cache.get(era(2), &keys).await.unwrap();
        let expected = (9_500..12_500).rev().map(|number| (10_000..12_000).contains(&number).then(|| fact(number)));
        assert_eq!(known, expected.collect::<Vec<_>>());
        let mut stranger = stranger();
        let name = name(&mut stranger, 10_007);
        let left: i64 = redis::cmd("PTTL").arg(name).query(&mut stranger).unwrap();
        let two_days = 48 * 3600 * 1000;
        assert!(left > two_days - 60_000 && left <= two_days, "{left} ms left");
    });
}

#[test]
fn another_node_with_the_same_secret_sees_the_fact() {
    run(async {
        cache(&shared()).put(era(3), &[fact(1)]).await.unwrap();
        assert_eq!(cache(&shared()).get(era(3), &[key(1)]).await.unwrap(), [Some(fact(1))]);
    });
}

#[test]
fn another_incarnation_or_secret_is_a_miss() {
    run(async {
        let ours = cache(&shared());
        ours.put(era(4), &[fact(2)]).await.unwrap();
        assert_eq!(ours.get(era(5), &[key(2)]).await.unwrap(), [None], "the database was restored");
        let mut theirs = settings(&shared());
        for secret in [Some("another secret".into()), None] {
            theirs.secret = secret;
            assert_eq!(open(&theirs).unwrap().get(era(4), &[key(2)]).await.unwrap(), [None]);
        }
        assert_eq!(ours.get(era(4), &[key(2)]).await.unwrap(), [Some(fact(2))], "and still ours");
    });
}

#[test]
fn a_value_moved_to_the_name_of_another_incarnation_is_a_miss() {
    run(async {
        let cache = cache(&shared());
        let mut stranger = stranger();
        cache.put(era(6), &[fact(20)]).await.unwrap();
        let before = name(&mut stranger, 20);
        let value: Vec<u8> = redis::cmd("GET").arg(&before).query(&mut stranger).unwrap();
        redis::cmd("DEL").arg(&before).exec(&mut stranger).unwrap();
        cache.put(era(7), &[fact(20)]).await.unwrap();
        let restored = name(&mut stranger, 20);
        redis::cmd("SET").arg(restored).arg(value).exec(&mut stranger).unwrap();
        assert_eq!(cache.get(era(7), &[key(20)]).await.unwrap(), [None]);
    });
}

#[test]
fn a_strangers_value_a_copied_value_and_a_wrong_type_are_misses() {
    run(async {
        let cache = cache(&shared());
        let keys: Vec<_> = (31..=36).map(key).collect();
        cache.put(era(8), &(31..=36).map(fact).collect::<Vec<_>>()).await.unwrap();
        let mut stranger = stranger();
        let names: Vec<String> = (31..=36).map(|number| name(&mut stranger, number)).collect();
        let good: Vec<u8> = redis::cmd("GET").arg(&names[0]).query(&mut stranger).unwrap();
        let mut forged: Vec<u8> = redis::cmd("GET").arg(&names[1]).query(&mut stranger).unwrap();
        *forged.last_mut().unwrap() ^= 1;
        let mut set = |name: usize, value: &[u8]| {
            redis::cmd("SET").arg(&names[name]).arg(value).exec(&mut stranger).unwrap();
        };
        set(1, &forged);
        set(2, &good);
        set(3, b"");
        set(4, &vec![1; 1 << 20]);
        redis::cmd("DEL").arg(&names[5]).exec(&mut stranger).unwrap();
        redis::cmd("LPUSH").arg(&names[5]).arg("a list").exec(&mut stranger).unwrap();
        let known = cache.get(era(8), &keys).await.unwrap();
        assert_eq!(known, [Some(fact(31)), None, None, None, None, None]);

        cache.put(era(8), &[fact(36)]).await.unwrap();
        assert_eq!(cache.get(era(8), &[key(36)]).await.unwrap(), [Some(fact(36))], "a fact replaces a wrong type");
    });
}
