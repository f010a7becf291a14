//! B81: a cache that comes back empty, that refuses connections and that answers nothing, under load.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::fault::Outsider;
use crate::support::gate::until;
use crate::support::http::{Client, Request};
use crate::support::place::Place;
use crate::support::process::Process;
use crate::support::redis::RedisServer;
use crate::support::signing::{signed, thing};

const SENDERS: usize = 4;
/// How long the cache is away each time.
const AWAY: Duration = Duration::from_secs(4);

/// Senders that go on all the time: a new event, then one they sent before.
struct Load<'a> {
    to: SocketAddr,
    ending: &'a AtomicBool,
    answered: &'a AtomicU64,
}

impl Load<'_> {
    /// Gives back how many events it sent. Whatever the cache does, each answer is right at once.
    fn send(&self, sender: usize) -> usize {
        let mut client = Client::connect(self.to).expect("the program takes connections");
        let mut post = |number: usize| {
            let request = signed("/in/things", &format!("evt_{sender}_{number}"), thing(&format!("t{sender}"), number));
            let answer = client.call(&request).expect("an answer");
            assert_eq!(answer.status, 200, "{}", answer.text());
            self.answered.fetch_add(1, Ordering::SeqCst);
            answer.verdict()
        };
        let mut number = 0;
        while !self.ending.load(Ordering::SeqCst) {
            assert_eq!(post(number), "applied", "evt_{sender}_{number} is new");
            assert_eq!(post(number / 2), "duplicate", "evt_{sender}_{} was sent before", number / 2);
            number += 1;
        }
        number
    }
}

fn hits(program: &Process) -> u64 {
    let mut admin = Client::connect(program.admin).expect("the admin listener takes connections");
    let figures = admin.call(&Request::new("GET", "/metrics")).expect("an answer").text();
    let line = figures.lines().find_map(|line| line.strip_prefix("tidegate_key_cache_total{result=\"hit\"} "));
    line.expect("a figure of hits").parse().expect("a number")
}

fn is_used_again(program: &Process) {
    let before = hits(program);
    until("the cache is used again, by itself", || hits(program) > before + 20);
}

/// Lets the load go on for a while, and wants answers all that time.
fn stays_away(answered: &AtomicU64) {
    let (before, since) = (answered.load(Ordering::SeqCst), Instant::now());
    until("the outage has lasted", || since.elapsed() >= AWAY);
    assert!(answered.load(Ordering::SeqCst) > before + 100, "nobody waits for a cache that is away");
}

fn go_through_outages(program: &Process, redis: &mut RedisServer, answered: &AtomicU64) {
    is_used_again(program);
    redis.kill();
    redis.start_again();
    is_used_again(program);

    redis.kill();
    stays_away(answered);
    redis.start_again();
    is_used_again(program);

    redis.freeze();
    stays_away(answered);
    redis.thaw();
    is_used_again(program);
}

#[test]
fn a_cache_that_restarts_empty_or_stays_away_changes_no_answer_and_floods_no_log() {
    let place = Place::postgres();
    let mut redis = RedisServer::start(&[]);
    let settings = format!("[cache]\nurl = \"{}\"\nlookup = \"always\"\n[pools.dedup]\nrecent = 0\n", redis.url());
    let program = Process::start(&place, &settings, &[]);
    let (ending, answered, began) = (AtomicBool::new(false), AtomicU64::new(0), Instant::now());
    let load = Load { to: program.public, ending: &ending, answered: &answered };
    let sent: Vec<usize> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                scope.spawn({
                    let load = &load;
                    move || load.send(sender)
                })
            })
            .collect();
        let outages = std::panic::AssertUnwindSafe(|| go_through_outages(&program, &mut redis, &answered));
        let outcome = std::panic::catch_unwind(outages);
        ending.store(true, Ordering::SeqCst);
        let sent = senders.into_iter().map(|sender| sender.join().expect("a sender")).collect();
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent
    });
    let seconds = began.elapsed().as_secs();
    println!("{} answers in {seconds} s, all 200, each right", answered.load(Ordering::SeqCst));

    let log = program.log();
    let about_it: Vec<&str> = log.lines().filter(|line| line.contains("cache")).collect();
    assert!(!about_it.is_empty(), "an outage is said");
    assert!(about_it.len() as u64 <= seconds, "{} lines in {seconds} s:\n{}", about_it.len(), about_it.join("\n"));

    let mut outsider = Outsider::connect(&place);
    let total = i64::try_from(sent.iter().sum::<usize>()).unwrap();
    assert_eq!(outsider.number("SELECT count(*) FROM events WHERE verdict = 'applied'"), total);
    assert_eq!(outsider.number("SELECT count(*) FROM events"), total, "each event is in once");
    let versions = outsider.texts("SELECT id || ' ' || version_text FROM resources");
    let versions: BTreeMap<_, _> = versions.iter().filter_map(|row| row.split_once(' ')).collect();
    for (sender, count) in sent.iter().enumerate() {
        assert_eq!(versions[format!("t{sender}").as_str()], (count - 1).to_string(), "at its newest version");
    }
}
