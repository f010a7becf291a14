//! Redis away, empty, frozen and full, and back again.

use std::time::{Duration, Instant};

use tidegate::cache::open;
use tidegate_actors::ports::KeyCache;

use super::log::Log;
use super::{cache, era, fact, key, run, settings};
use crate::support::eventually;
use crate::support::redis::RedisServer;

async fn works(cache: &dyn KeyCache) -> bool {
    cache.put(era(1), &[fact(9)]).await.is_ok()
        && matches!(cache.get(era(1), &[key(9)]).await, Ok(known) if known[0].is_some())
}

#[test]
fn a_flushed_server_has_forgotten_and_learns_anew() {
    run(async {
        let server = RedisServer::start(&[]);
        let cache = cache(&server.url());
        cache.put(era(1), &[fact(1)]).await.unwrap();
        let mut stranger = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        redis::cmd("FLUSHALL").exec(&mut stranger).unwrap();
        assert_eq!(cache.get(era(1), &[key(1)]).await.unwrap(), [None]);
        assert!(works(&*cache).await);
    });
}

#[test]
fn a_server_that_restarts_empty_is_used_again_by_itself_and_costs_two_lines_of_log() {
    let log = Log::default();
    let _listening = log.listen();
    run(async {
        let mut server = RedisServer::start(&[]);
        let cache = cache(&server.url());
        cache.put(era(1), &[fact(1)]).await.unwrap();

        server.kill();
        let died = Instant::now();
        let mut refused = 0;
        while died.elapsed() < Duration::from_secs(2) {
            let asked = Instant::now();
            assert!(cache.get(era(1), &[key(1)]).await.is_err());
            assert!(asked.elapsed() < Duration::from_secs(1), "a call waited for a server that is away");
            refused += 1;
            tokio::task::yield_now().await;
        }
        assert!(refused > 1_000, "calls fail at once while the server is away: {refused} in 2 s");

        server.start_again();
        eventually("the cache works again", async || works(&*cache).await).await;
        assert_eq!(cache.get(era(1), &[key(1)]).await.unwrap(), [None], "what it knew is gone");
    });
    let lines = log.lines();
    assert!(lines.len() <= 3, "thousands of failures are a few lines: {lines:?}");
    assert!(lines[0].contains("does not answer"), "{lines:?}");
}

#[test]
fn a_server_that_was_never_there_is_found_when_it_comes() {
    run(async {
        let mut server = RedisServer::start(&[]);
        server.kill();
        let cache = cache(&server.url());
        assert!(cache.get(era(1), &[key(1)]).await.is_err());
        server.start_again();
        eventually("the cache finds the server", async || works(&*cache).await).await;
    });
}

#[test]
fn a_frozen_server_costs_the_deadline_a_few_times_and_then_nothing() {
    run(async {
        let server = RedisServer::start(&[]);
        let mut settings = settings(&server.url());
        settings.deadline = Duration::from_millis(200);
        let cache = open(&settings).unwrap();
        eventually("the cache works", async || works(&*cache).await).await;

        server.freeze();
        let frozen = Instant::now();
        for _ in 0..100 {
            assert!(cache.get(era(1), &[key(9)]).await.is_err());
        }
        assert!(frozen.elapsed() < Duration::from_secs(4), "100 calls waited {:?}", frozen.elapsed());

        server.thaw();
        eventually("the cache works again", async || works(&*cache).await).await;
    });
}

#[test]
fn a_caller_that_gives_up_first_still_teaches_the_connection() {
    run(async {
        let server = RedisServer::start(&[]);
        let cache = cache(&server.url());
        assert!(works(&*cache).await);
        server.freeze();
        for _ in 0..4 {
            let keys = [key(9)];
            let asked = tokio::time::timeout(Duration::from_millis(20), cache.get(era(1), &keys));
            assert!(asked.await.is_err(), "the server is frozen");
        }
        let asked = Instant::now();
        assert!(cache.get(era(1), &[key(9)]).await.is_err());
        assert!(asked.elapsed() < Duration::from_secs(1), "the connection was given up after four calls");
        server.thaw();
        eventually("the cache works again", async || works(&*cache).await).await;
    });
}

#[test]
fn a_full_server_refuses_facts_and_still_answers() {
    run(async {
        let server = RedisServer::start(&["--maxmemory-policy", "noeviction"]);
        let cache = cache(&server.url());
        cache.put(era(1), &[fact(1)]).await.unwrap();
        let mut stranger = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg("1").exec(&mut stranger).unwrap();
        let error = cache.put(era(1), &[fact(2), fact(3)]).await.unwrap_err();
        assert!(error.to_string().contains("OOM"), "{error}");
        assert_eq!(cache.get(era(1), &[key(1), key(2)]).await.unwrap(), [Some(fact(1)), None]);
        redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg("0").exec(&mut stranger).unwrap();
        assert!(works(&*cache).await);
    });
}

#[test]
fn a_server_that_wants_a_password_is_an_error_and_not_a_wait() {
    run(async {
        let server = RedisServer::start(&["--requirepass", "open sesame"]);
        let cache = cache(&server.url());
        assert!(cache.get(era(1), &[key(1)]).await.is_err());
        let mut settings = settings(&server.url());
        settings.password = Some("open sesame".into());
        assert!(works(&*open(&settings).unwrap()).await, "the password beside the address is used");
    });
}

#[test]
fn a_cache_made_on_one_thread_serves_others_whose_end_it_survives() {
    let server = RedisServer::start(&[]);
    let cache = cache(&server.url());
    run(async { cache.put(era(1), &[fact(1)]).await.unwrap() });
    for _ in 0..3 {
        let cache = cache.clone();
        std::thread::spawn(move || {
            run(async { assert_eq!(cache.get(era(1), &[key(1)]).await.unwrap(), [Some(fact(1))]) });
        })
        .join()
        .unwrap();
    }
    // The first thread's runtime, which drove its connection, is gone: the cache must notice and connect anew.
    run(eventually("the first thread is served again", async || works(&*cache).await));
}
