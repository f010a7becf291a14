//! A campaign against every preset and every good vector: requests their senders made, changed in every way a
//! stranger could change them, each outcome judged by what the key is known to have signed (`claim`, `sender`).
//! The judges read requests by themselves: a fault of the verifier is none of theirs.
//!
//! One seed makes one campaign, whatever the number of threads. `scripts/campaign` runs a long one.

mod claim;
mod judge;
mod message;
mod mutate;
mod mutate_body;
mod mutate_header;
mod sender;
mod text;
mod wire;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use judge::Right;
use mutate::{Kind, Loot};
use sender::Sender;
use wire::{Chance, Wire};

/// How many requests a run makes when nothing else is asked for, and from which seed.
const REQUESTS: u64 = 40_000;
const SEED: u64 = 20_260_302;
/// How many changes one request has: mostly one.
const CHANGES: [usize; 9] = [1, 1, 1, 1, 1, 1, 2, 2, 3];
/// How many failures are told.
const TOLD_MAX: usize = 5;

/// A change, with the chance it takes.
type Change = (Kind, u64);

struct Case<'s> {
    sender: &'s Sender,
    good: usize,
    loot: Loot<'s>,
    changes: Vec<Change>,
}

/// What came of a run.
#[derive(Default)]
struct Tally {
    /// Of each kind: requests, and how many of them were taken.
    kinds: BTreeMap<Kind, (u64, u64)>,
    rights: BTreeMap<Right, u64>,
    failures: Vec<String>,
}

impl Case<'_> {
    fn wire(&self, changes: &[Change]) -> Wire {
        let mut wire = self.sender.goods[self.good].wire.clone();
        for (kind, chance) in changes {
            mutate::change(*kind, &mut wire, &self.loot, &mut Chance::of(*chance, 0));
        }
        wire
    }

    fn verdict(&self, changes: &[Change]) -> Result<Right, String> {
        let wire = self.wire(changes);
        let outcome = catch_unwind(AssertUnwindSafe(|| self.sender.outcome(&wire)));
        let outcome = outcome.map_err(|_| "it panics".to_owned())?;
        judge::judge(self.sender, self.good, &wire, &outcome)
    }

    /// As few changes as still fail.
    fn smallest(&self) -> Vec<Change> {
        let mut changes = self.changes.clone();
        for at in (0..changes.len()).rev() {
            let mut fewer = changes.clone();
            fewer.remove(at);
            if self.verdict(&fewer).is_err() {
                changes = fewer;
            }
        }
        changes
    }
}

/// All senders, presets first.
struct Field {
    presets: Vec<Sender>,
    vectors: Vec<Sender>,
}

impl Field {
    fn case(&self, seed: u64, number: u64) -> Option<Case<'_>> {
        let mut chance = Chance::of(seed, number);
        let senders = if chance.happens(65) { &self.presets } else { &self.vectors };
        let sender = chance.one(senders)?;
        let good = chance.below(sender.goods.len());
        let other = chance.one(&self.presets)?;
        let loot = Loot { same: &chance.one(&sender.goods)?.wire, other: &chance.one(&other.goods)?.wire };
        let mut case = Case { sender, good, loot, changes: Vec::new() };
        let wanted = *chance.one(&CHANGES)?;
        // each kind in its turn, and another where it finds nothing to change
        let turn = usize::try_from(number).unwrap_or(0) % Kind::ALL.len();
        let mut kind = Kind::ALL[turn];
        for _ in 0..40 {
            let mut changes = case.changes.clone();
            changes.push((kind, chance.next()));
            if case.wire(&changes) != case.wire(&case.changes) {
                case.changes = changes;
            }
            if case.changes.len() == wanted {
                break;
            }
            kind = *chance.one(Kind::ALL)?;
        }
        (case.wire(&case.changes) != sender.goods[good].wire).then_some(case)
    }

    fn run(&self, seed: u64, numbers: impl Iterator<Item = u64>) -> Tally {
        let mut tally = Tally::default();
        for number in numbers {
            let Some(case) = self.case(seed, number) else { continue };
            let verdict = case.verdict(&case.changes);
            for (kind, _) in &case.changes {
                let (made, taken) = tally.kinds.entry(*kind).or_default();
                *made += 1;
                *taken += u64::from(!matches!(verdict, Ok(Right::Refused(_))));
            }
            match verdict {
                Ok(right) => *tally.rights.entry(right).or_default() += 1,
                Err(why) => tally.failures.push(told(&case, &why, seed, number)),
            }
        }
        tally
    }
}

fn told(case: &Case<'_>, why: &str, seed: u64, number: u64) -> String {
    let changes = case.smallest();
    let kinds: Vec<Kind> = changes.iter().map(|(kind, _)| *kind).collect();
    let wire = case.wire(&changes);
    let good = &case.sender.goods[case.good];
    let (was, is) = (good.wire.as_http(), wire.as_http());
    let before: Vec<&str> = was.lines().filter(|line| !is.lines().any(|other| other == *line)).collect();
    format!(
        "{}: {why}\nrequest {number} of seed {seed}, {kinds:?}, at {}\n--- lines that its sender made otherwise\n{}\n\
         --- the request\n{is}\n",
        case.sender.name,
        wire.now_ms,
        before.join("\n")
    )
}

impl Tally {
    fn add(&mut self, other: Self) {
        for (kind, (made, taken)) in other.kinds {
            let sums = self.kinds.entry(kind).or_default();
            *sums = (sums.0 + made, sums.1 + taken);
        }
        for (right, count) in other.rights {
            *self.rights.entry(right).or_default() += count;
        }
        self.failures.extend(other.failures);
    }

    fn requests(&self) -> u64 {
        self.rights.values().sum::<u64>() + self.failures.len() as u64
    }

    fn report(&self, field: &Field, seed: u64) -> String {
        let mut text = format!(
            "{} requests of seed {seed}, made out of the good ones of {} presets and {} vectors' sources\n",
            self.requests(),
            field.presets.len(),
            field.vectors.len()
        );
        for (right, count) in &self.rights {
            let _ = writeln!(text, "{count:>9}  {right:?}");
        }
        let _ = writeln!(text, "{:>9}  wrong", self.failures.len());
        for (kind, (made, taken)) in &self.kinds {
            let _ = writeln!(text, "{made:>9}  {kind:?}, {taken} of them taken");
        }
        text
    }
}

fn stated(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, no number")))
}

#[test]
fn no_changed_request_is_taken_for_what_its_sender_did_not_sign() {
    let (requests, seed) = (stated("CAMPAIGN_REQUESTS", REQUESTS), stated("CAMPAIGN_SEED", SEED));
    let mut field = Field { presets: sender::presets(), vectors: sender::vectors() };
    sender::share(field.presets.iter_mut().chain(&mut field.vectors));
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64).min(8);
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let field = &field;
        let step = usize::try_from(threads).unwrap_or(1);
        let of = |thread| scope.spawn(move || field.run(seed, (thread..requests).step_by(step)));
        let runs: Vec<_> = (0..threads).map(of).collect();
        runs.into_iter().for_each(|run| tally.add(run.join().expect("a run")));
    });
    eprintln!("{}", tally.report(&field, seed));
    let failures = tally.failures.iter().take(TOLD_MAX).cloned().collect::<Vec<_>>();
    assert!(failures.is_empty(), "{} wrong outcomes:\n{}", tally.failures.len(), failures.join("\n"));
    // a campaign that reaches little shows little
    let idle: Vec<_> = Kind::ALL.iter().filter(|kind| !tally.kinds.contains_key(kind)).collect();
    assert!(idle.is_empty(), "nothing was changed in these ways: {idle:?}");
    let reasons = tally.rights.keys().filter(|right| matches!(right, Right::Refused(_))).count();
    assert!(reasons >= 15, "only {reasons} reasons to refuse were reached");
    assert!(tally.requests() * 100 >= requests * 98, "only {} requests were made", tally.requests());
}
