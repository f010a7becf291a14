//! Requests that are not what the sender signed: each preset refuses at least four of them.

use tidegate::source::Source;
use tidegate_actors::rules::event::Event;

use super::super::stated::{Covers, Entry, Sample, Sent};
use super::Wrong;

const BAD_MIN: usize = 4;

/// A request that must be refused, with what was done to it.
struct Bad {
    what: String,
    sent: Sent,
}

#[test]
fn what_the_sender_did_not_sign_is_refused() {
    let mut wrong = Wrong::default();
    for entry in Entry::all() {
        let source = entry.source();
        let stranger = entry.source_under(&entry.other_secret());
        for sample in &entry.samples {
            let good = super::sent(sample, &source);
            if let Err(refusal) = entry.verify(&source, &good) {
                wrong.add(&entry, format!("{}: a good one is refused: {}", sample.file, refusal.reason.label()));
                continue;
            }
            if entry.verify_asking(&stranger, &good, entry.other_secret()).is_ok() {
                wrong.add(&entry, format!("{}: good under another secret", sample.file));
            }
            let bad = bad(&entry, sample, &good, &stranger);
            if bad.len() < BAD_MIN {
                wrong.add(&entry, format!("{}: only {} bad ones", sample.file, bad.len()));
            }
            for Bad { what, sent } in bad {
                if entry.verify(&source, &sent).is_ok() {
                    wrong.add(&entry, format!("{}: {what} is taken", sample.file));
                }
            }
        }
    }
    wrong.none();
}

fn bad(entry: &Entry, sample: &Sample, good: &Sent, stranger: &Source) -> Vec<Bad> {
    let mut all = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut Sent)| {
        let mut sent = good.clone();
        change(&mut sent);
        all.push(Bad { what, sent });
    };
    match entry.covers {
        Covers::Body => {
            let last = good.body.len() - 1;
            for at in [0, last / 3, last / 2, last] {
                add(format!("body: byte {at} flipped"), &|sent| sent.body = flipped(&sent.body, at));
            }
            add("body: one byte more".to_owned(), &|sent| sent.body = [&sent.body[..], b" "].concat().into());
        }
        Covers::Part | Covers::Nothing => {}
    }
    for (what, body) in sample.tampered(&good.body) {
        add(format!("changed: {what}"), &|sent| sent.body = body.clone().into());
    }
    let forged = super::sent(sample, stranger);
    let differs = |name| forged.headers.get(name) != good.headers.get(name);
    if forged.body != good.body || forged.target != good.target || forged.headers.keys().any(differs) {
        add("another secret".to_owned(), &|sent| *sent = forged.clone());
    }
    for name in sample.signature_headers(good) {
        let value = good.headers.get(&name).expect("a header").clone();
        add(format!("missing: {name}"), &|sent| drop(sent.headers.remove(&name)));
        add(format!("twice: {name}"), &|sent| sent.headers.append(name.clone(), value.clone()));
        add(format!("empty: {name}"), &|sent| {
            sent.headers.insert(name.clone(), "".parse().expect("a value"));
        });
        add(format!("cut: {name}"), &|sent| {
            let text = value.to_str().expect("a text");
            sent.headers.insert(name.clone(), text[..text.len() - 1].parse().expect("a value"));
        });
    }
    if let Some((path, query)) = good.target.split_once('?').filter(|_| sample.states_no_query()) {
        let cut = good.target[..good.target.len() - 1].to_owned();
        let twice = format!("{}&{query}", good.target);
        for (what, target) in
            [("no", path.to_owned()), ("a cut", cut), ("a doubled", twice), ("an empty", format!("{path}?"))]
        {
            add(format!("{what} query"), &|sent| sent.target.clone_from(&target));
        }
    }
    if let Some(window) = entry.window {
        for (when, seconds) in [("late", window + 1), ("a year late", 31_536_000), ("early", -window - 1)] {
            add(format!("{when}: {seconds} s"), &|sent| sent.now_ms += seconds * 1000);
        }
    }
    all
}

fn flipped(body: &[u8], at: usize) -> bytes::Bytes {
    let mut body = body.to_vec();
    body[at] ^= 1;
    body.into()
}

#[test]
fn a_request_is_taken_until_its_window_ends_and_without_one_for_ever() {
    let mut wrong = Wrong::default();
    for entry in Entry::all() {
        let source = entry.source();
        let mut sent = super::sent(&entry.samples[0], &source);
        sent.now_ms += entry.window.unwrap_or(31_536_000) * 1000 - 1000;
        if let Err(refusal) = entry.verify(&source, &sent) {
            wrong.add(&entry, format!("within its window: {}", refusal.reason.label()));
        }
    }
    wrong.none();
}

/// A signature covers the body and seldom a header: who has a request once can send it again under other headers.
#[test]
fn a_replay_under_other_headers_is_known_again_or_the_preset_says_why_not() {
    let mut wrong = Wrong::default();
    for entry in Entry::all() {
        let source = entry.source();
        let preset = entry.comments();
        for sample in entry.samples.iter().filter(|sample| !sample.events.is_empty()) {
            let good = super::sent(sample, &source);
            let Ok(first) = super::events(&entry, &source, &good) else { continue };
            for name in good.headers.keys().filter(|name| !matches!(name.as_str(), "content-type" | "host")) {
                let mut renamed = good.clone();
                let other = format!("{}1", renamed.headers.get(name).expect("a header").to_str().expect("a text"));
                renamed.headers.insert(name.clone(), other.parse().expect("a value"));
                let Ok(again) = super::events(&entry, &source, &renamed) else { continue };
                let differs = |(one, other): (&Event, &Event)| one.key != other.key || one.kind != other.kind;
                let new = first.iter().zip(&again).any(differs) && !entry.signals;
                let said =
                    ["not signed", "Nothing is signed", "does not cover"].iter().any(|word| preset.contains(word));
                if new && !said {
                    wrong.add(&entry, format!("{}: {name} makes it another event, and nothing says so", sample.file));
                }
            }
        }
    }
    wrong.none();
}
