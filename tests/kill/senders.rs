//! Senders that repeat a delivery until it is answered 2xx, and what they were told.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::support::http::Client;
use crate::support::{gate, signing};

/// Resources the load is spread over: few, so that events of one resource meet in a batch.
pub(crate) const RESOURCES: u64 = 24;
const SENDERS: u64 = 8;

/// What the senders know.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Event ids answered 2xx, with the resource and the version they carried.
    pub(crate) answered: Mutex<HashMap<String, (u64, u64)>>,
    /// How many answers there were of each status.
    pub(crate) statuses: Mutex<BTreeMap<u16, u64>>,
    count: AtomicU64,
    versions: Mutex<HashMap<u64, u64>>,
    ending: AtomicBool,
    address: Mutex<Option<SocketAddr>>,
}

impl Ledger {
    /// Answers 2xx so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Where the program listens now.
    pub(crate) fn listens(&self, address: SocketAddr) {
        *self.address.lock().expect("an address") = Some(address);
    }

    /// Waits until that many more are answered.
    pub(crate) fn wait_for(&self, more: u64) {
        let goal = self.count() + more;
        gate::until("deliveries are answered again", || self.count() >= goal);
    }

    fn next(&self, resource: u64) -> u64 {
        let mut versions = self.versions.lock().expect("versions");
        let version = versions.entry(resource).or_default();
        *version += 1;
        *version
    }

    fn told(&self, status: u16) {
        *self.statuses.lock().expect("statuses").entry(status).or_default() += 1;
    }
}

/// Senders at work.
pub(crate) struct Senders {
    pub(crate) ledger: Arc<Ledger>,
    threads: Vec<JoinHandle<()>>,
}

impl Senders {
    /// Starts sending to the address.
    pub(crate) fn start(address: SocketAddr) -> Self {
        let ledger = Arc::new(Ledger::default());
        ledger.listens(address);
        let threads = (0..SENDERS)
            .map(|sender| {
                let ledger = Arc::clone(&ledger);
                std::thread::spawn(move || work(sender, &ledger))
            })
            .collect();
        Self { ledger, threads }
    }

    /// Lets each sender bring its last delivery home.
    pub(crate) fn finish(self) -> Arc<Ledger> {
        self.ledger.ending.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().expect("a sender ends well");
        }
        self.ledger
    }
}

fn work(sender: u64, ledger: &Ledger) {
    let mut client = None;
    let mut number = 0;
    while !ledger.ending.load(Ordering::SeqCst) {
        number += 1;
        let resource = (sender * 7 + number * 13) % RESOURCES;
        let version = ledger.next(resource);
        let id = format!("e-{sender}-{number}");
        let body = signing::thing(&format!("r{resource}"), version);
        let mut delivered = false;
        gate::until("a delivery is answered 2xx", || {
            delivered = deliver(ledger, &mut client, &id, &body);
            delivered
        });
        ledger.answered.lock().expect("answers").insert(id, (resource, version));
        ledger.count.fetch_add(1, Ordering::SeqCst);
    }
}

/// One attempt. Anything but an answer of 2xx or 503 to a good delivery is a fault.
fn deliver(ledger: &Ledger, client: &mut Option<Client>, id: &str, body: &str) -> bool {
    let address = ledger.address.lock().expect("an address").expect("an address");
    let connected = match client.take() {
        Some(connected) => Ok(connected),
        None => Client::connect(address),
    };
    let Ok(mut connected) = connected else { return false };
    let Ok(answer) = connected.call(&signing::signed("/in/things", id, body)) else { return false };
    ledger.told(answer.status);
    assert!(matches!(answer.status, 200 | 503), "{}: {}", answer.status, answer.text());
    if answer.header("connection") != Some("close") {
        *client = Some(connected);
    }
    answer.status == 200
}
