//! B84: more resources than fit, through a node with small pools: nothing it keeps per resource or per key
//! outgrows its bound, and its memory does not follow the number ever seen.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::http::{Client, Request};
use crate::support::place::Place;
use crate::support::process::Process;
use crate::support::signing::{signed, thing};

const LIVE: i64 = 200;
const RECENT: i64 = 1_000;
const SENDERS: usize = 32;
const FIRST: usize = 5_000;
const ALL: usize = 30_000;
/// What SQLite's writer may keep of the file's pages.
const PAGE_CACHE_KIB: u64 = 64 * 1024;
/// Where a mailbox is nobody's in particular, a small one: what does not fit is refused, and sent again.
const MAILBOX: i64 = 64;

fn settings() -> String {
    format!(
        "[pools.ordering]\nlive = {LIVE}\nmailbox = {MAILBOX}\nresource_mailbox = 8\n\
         [pools.dedup]\nrecent = {RECENT}\nmailbox = {MAILBOX}\n[pools.writer]\nmailbox = {MAILBOX}\nbatch_events = 32\n"
    )
}

/// Posts an event for each resource of the range, each a resource never seen before.
fn post(to: SocketAddr, from: usize, until: usize) {
    let next = AtomicUsize::new(from);
    std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                let mut client = Client::connect(to).expect("the program takes connections");
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= until {
                        return;
                    }
                    let request = signed("/in/things", &format!("evt_{number}"), thing(&format!("t{number}"), 1));
                    let mut answer = client.call(&request).expect("an answer");
                    while answer.status == 503 {
                        std::thread::park_timeout(Duration::from_millis(20));
                        answer = client.call(&request).expect("an answer");
                    }
                    // refused, or taken too late to say so: then it is there already
                    assert!(["applied", "duplicate"].contains(&answer.verdict().as_str()), "{}", answer.text());
                }
            });
        }
    });
}

struct Figures(String);

impl Figures {
    fn of(program: &Process) -> Self {
        let mut admin = Client::connect(program.admin).expect("the admin listener takes connections");
        Self(admin.call(&Request::new("GET", "/metrics")).expect("an answer").text())
    }

    fn value(&self, name: &str) -> i64 {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {}", self.0)).parse().expect("a number")
    }

    fn assert_within_bounds(&self) {
        let within = |what: &str, value: i64, bound: i64| assert!(value <= bound, "{what}: {value} above {bound}");
        within("live resources", self.value("tidegate_live_resources"), LIVE);
        within("resource actors", self.value("tidegate_pool_actors{pool=\"resource\"}"), LIVE);
        within("recent keys", self.value("tidegate_recent_keys"), RECENT);
        for pool in ["ingress", "dedup", "ordering", "resource", "writer"] {
            let of = |name: &str| self.value(&format!("tidegate_{name}{{pool=\"{pool}\"}}"));
            within(
                &format!("mailboxes of {pool}"),
                of("mailbox_depth"),
                of("mailbox_bound") * of("pool_actors").max(1),
            );
        }
        for (pool, bound) in [("dedup", MAILBOX), ("ordering", MAILBOX), ("writer", MAILBOX), ("resource", 8)] {
            assert_eq!(self.value(&format!("tidegate_mailbox_bound{{pool=\"{pool}\"}}")), bound, "{pool}");
        }
    }
}

/// Resident memory of the process, in KiB.
fn resident(program: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.id())).expect("the process's status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("resident memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn what_a_node_holds_stays_within_its_bounds_and_memory_does_not_follow_the_number_ever_seen() {
    let (early, late) = go_through_many_resources(&Place::postgres());
    assert!(late * 100 <= early * 120, "memory follows the resources: {early} KiB, then {late} KiB");
}

#[test]
fn the_same_on_sqlite_where_memory_grows_by_no_more_than_its_page_cache() {
    let (early, late) = go_through_many_resources(&Place::sqlite());
    assert!(
        late * 100 <= early * 120 + PAGE_CACHE_KIB * 100,
        "memory follows the resources: {early} KiB, then {late} KiB"
    );
}

/// Gives the memory after the first resources and after all.
fn go_through_many_resources(place: &Place) -> (u64, u64) {
    let program = Process::start(place, &settings(), &[]);
    let ending = AtomicBool::new(false);
    let (looks, early, late) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut looks = 0;
            while !ending.load(Ordering::SeqCst) {
                Figures::of(&program).assert_within_bounds();
                looks += 1;
            }
            looks
        });
        let work = std::panic::AssertUnwindSafe(|| {
            post(program.public, 0, FIRST);
            let early = resident(&program);
            post(program.public, FIRST, ALL);
            (early, resident(&program))
        });
        let outcome = std::panic::catch_unwind(work);
        ending.store(true, Ordering::SeqCst);
        let looks = watch.join().expect("every look found everything within its bound");
        let (early, late) = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (looks, early, late)
    });
    assert!(looks > 50, "it was watched all along: {looks} looks");
    println!("{looks} looks; {early} KiB after {FIRST} resources, {late} KiB after {ALL}");
    let figures = Figures::of(&program);
    figures.assert_within_bounds();
    let all = i64::try_from(ALL).unwrap();
    let woken = figures.value("tidegate_resources_woken_total");
    assert!(woken >= all, "each had an actor of its own: {woken} of {all}");
    assert_eq!(
        figures.value("tidegate_resources_passivated_total"),
        woken - figures.value("tidegate_live_resources"),
        "and those that are not live have ended"
    );
    (early, late)
}
