//! Rules of order for the cases.

use std::sync::Arc;

use tidegate_actors::rules::graph::Graph;
use tidegate_actors::rules::order::{EpochOn, Merge, OnGap, Order, Policy, Tie, Wait};

/// How long events wait where a case does not say: no case takes as long by itself.
pub(crate) const HOLD_MS: i64 = 600_000;

fn wait(on_gap: OnGap) -> Wait {
    Wait { hold_for_ms: HOLD_MS, on_gap }
}

pub(crate) fn newest() -> Arc<Order> {
    Arc::new(Order::judged(Policy::Newest { tie: Tie::Keep }))
}

/// Contiguous numbers from 1.
pub(crate) fn sequence(on_gap: OnGap) -> Arc<Order> {
    Arc::new(Order::judged(Policy::Sequence { start: 1, wait: wait(on_gap) }))
}

/// Steps in order, the first of them first.
pub(crate) fn ranks(names: &[&str], on_gap: OnGap) -> Arc<Order> {
    let graph = Arc::new(Graph::ranks(names.iter().copied()).expect("ranks"));
    Arc::new(Order::judged(Policy::Transition { graph, tie: Tie::Keep, wait: wait(on_gap) }))
}

/// Steps, each with those that may follow it.
pub(crate) fn graph(edges: &[(&str, &[&str])], on_gap: OnGap) -> Arc<Order> {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let edges = edges.iter().map(|&(from, to)| (from.to_owned(), owned(to))).collect();
    let graph = Arc::new(Graph::edges(&edges, &[]).expect("a graph"));
    Arc::new(Order::judged(Policy::Transition { graph, tie: Tie::Keep, wait: wait(on_gap) }))
}

pub(crate) fn window(window_ms: i64) -> Arc<Order> {
    Arc::new(Order::judged(Policy::Window { window_ms, tie: Tie::Keep }))
}

pub(crate) fn refetch() -> Arc<Order> {
    Arc::new(Order::judged(Policy::Refetch))
}

/// The same, with states put together from partial updates.
pub(crate) fn merging(order: &Order) -> Arc<Order> {
    Arc::new(Order { merge: Merge::Fields, ..order.clone() })
}

/// The newest, where a number that falls by more than a thousand is a counter that started again.
pub(crate) fn resetting(after_idle_ms: Option<i64>) -> Arc<Order> {
    let epoch_on = Some(EpochOn { falls_by: 1_000, after_idle_ms });
    Arc::new(Order { epoch_on, ..Order::judged(Policy::Newest { tie: Tie::Keep }) })
}
