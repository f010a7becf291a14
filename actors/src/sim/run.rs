//! One run of a plan: lives in turn, each in a runtime of its own, and the verdict at the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::backend::Backend;
use super::check::{Stored, check};
use super::node::{Plain, Wrapping};
use super::outcome::{Run, RunCounts, Violation};
use super::plan::Plan;
use super::play::{Ended, Play};
use super::prepared::Prepared;
use super::story;
use crate::ports::StoreError;

/// What a run is to keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Every line of the trace.
    pub trace: bool,
    /// The story of each resource.
    pub timelines: bool,
}

/// Plays a plan on the engine and judges what came of it. Blocks the calling thread, which must not be
/// inside a runtime.
#[must_use]
pub fn run(plan: &Plan, backend: &dyn Backend, options: &RunOptions) -> Run {
    run_wrapped(plan, backend, options, &Plain)
}

/// The same with something between the engine and its surroundings.
pub(super) fn run_wrapped(plan: &Plan, backend: &dyn Backend, options: &RunOptions, wrapping: &dyn Wrapping) -> Run {
    let started = Run { scenario: plan.scenario.clone(), seed: plan.seed, ..Run::default() };
    let played = catch_unwind(AssertUnwindSafe(|| play(plan, backend, options, wrapping)));
    let fault = match played {
        Ok(Ok(run)) => return run,
        Ok(Err(error)) => format!("the store under the run failed by itself: {error}"),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            format!("a panic reached the outside: {}", text.unwrap_or("no message"))
        }
    };
    let violation = Violation { invariant: "I14".to_owned(), what: fault, at_ms: 0, event: None, resource: None };
    Run { violations: vec![violation], ..started }
}

fn play(plan: &Plan, backend: &dyn Backend, options: &RunOptions, wrapping: &dyn Wrapping) -> Result<Run, StoreError> {
    let prepared = Arc::new(Prepared::new(plan));
    let mut play = Play::new(&prepared, backend, options.trace, wrapping)?;
    let stored = loop {
        let ended = in_a_life(backend.takes_real_time(), async {
            let (ended, life) = play.live().await?;
            let stored = match ended {
                Ended::Over => Some(check(&play, &life).await?),
                Ended::Killed => None,
            };
            play.clock.end();
            Ok::<_, StoreError>(stored)
        })?;
        if let Some(stored) = ended {
            break stored;
        }
    };
    Ok(told(&play, &stored, options))
}

/// A process's life: dropping the runtime is its end.
fn in_a_life<T>(takes_real_time: bool, life: impl Future<Output = T>) -> T {
    let system = actix_rt::System::with_tokio_rt(|| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        if takes_real_time {
            builder.enable_all()
        } else {
            builder.enable_time()
        };
        #[expect(clippy::expect_used, reason = "a machine without threads or timers runs nothing")]
        builder.start_paused(true).build().expect("a runtime")
    });
    let (handle, result) = system.block_on(async { (tokio::runtime::Handle::current(), life.await) });
    // actix polls an actor once more when it is dropped, and one that was never started starts then: it must
    // find a timer. What it does reaches nobody: its node is dead.
    let _context = handle.enter();
    drop(system);
    result
}

fn told(play: &Play<'_>, stored: &Stored, options: &RunOptions) -> Run {
    let plan = &play.prepared.plan;
    let known = &mut *play.ledger.known();
    let wanted = plan.messages.iter().any(|message| !message.never && !message.events.is_empty());
    if wanted && (known.deliveries == 0 || (known.claims.is_empty() && known.violations.is_empty())) {
        let what = format!("{} requests reached the gate, and nothing was taken", known.deliveries);
        known.violate("vacuous", play.clock.elapsed_ms(), what, None);
    }
    let mut counts = RunCounts {
        events: plan.messages.iter().filter(|message| !message.never).map(|message| message.events.len() as u64).sum(),
        deliveries: known.deliveries,
        faults: plan.faults.len() as u64,
        commits: known.commits,
        lives: play.lives,
        ended_at_ms: play.clock.elapsed_ms(),
        answers: std::mem::take(&mut known.answers),
        ..RunCounts::default()
    };
    for row in &stored.events {
        *counts.rows.entry(row.verdict.word().to_owned()).or_default() += 1;
    }
    for (verdict, count) in &counts.rows {
        known.reached.add(&format!("verdict {verdict}"), *count);
    }
    let rows = stored.events.iter().map(|row| (row.id, row)).collect();
    let delays = story::delays(&play.prepared, known, &rows);
    (counts.worst_delay_ms, counts.held, counts.worst_hold_ms) = (delays.worst_ms, delays.held, delays.worst_hold_ms);
    let resources = if options.timelines { story::timelines(&play.prepared, known, stored) } else { Vec::new() };
    Run {
        scenario: plan.scenario.clone(),
        seed: plan.seed,
        trace: known.trace.take().unwrap_or_default(),
        trace_hash: known.hash.value(),
        violations: std::mem::take(&mut known.violations),
        reached: std::mem::take(&mut known.reached),
        counts,
        resources,
    }
}
