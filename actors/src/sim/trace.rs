//! What happened in a run, line by line, and its hash.
//!
//! Owns the lines. Promises that the hash covers every line with its time, so that two runs with one hash did
//! the same in the same order.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceLine {
    /// When, in milliseconds since the start.
    pub at_ms: u64,
    /// What.
    pub what: Happened,
}

/// What can happen. Numbers are indices into the plan's events, messages, faults and nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Happened {
    /// A sender sends a request; tries are counted from 1.
    Sent {
        /// The message.
        message: u32,
        /// Which try.
        attempt: u32,
        /// Nobody asked for it.
        copy: bool,
    },
    /// A request reached a node.
    Arrived {
        /// The message.
        message: u32,
        /// Which try.
        attempt: u32,
        /// The node.
        node: u32,
    },
    /// The node was not there.
    Unreachable {
        /// The message.
        message: u32,
        /// The node.
        node: u32,
    },
    /// The gate answered for one event.
    Answered {
        /// The event.
        event: u32,
        /// The node.
        node: u32,
        /// A verdict, or the reason of a refusal.
        answer: String,
    },
    /// A sender heard that everything of a message is taken.
    Settled {
        /// The message.
        message: u32,
    },
    /// A sender gave up waiting for an answer.
    TimedOut {
        /// The message.
        message: u32,
        /// Which try.
        attempt: u32,
    },
    /// The store committed a batch: each event with its outcome.
    Committed {
        /// The node.
        node: u32,
        /// Events and what was decided.
        events: Vec<(u32, String)>,
    },
    /// Waiting ended in the store.
    Waited {
        /// The node.
        node: u32,
        /// Held events that were applied.
        released: u32,
        /// Held events that were older than the state by then.
        stale: u32,
        /// Held events whose time ran out.
        expired: u32,
    },
    /// A fault began.
    FaultBegan {
        /// The fault.
        fault: u32,
    },
    /// A fault is over.
    FaultEnded {
        /// The fault.
        fault: u32,
    },
    /// A fault did something.
    FaultFired {
        /// The kind.
        kind: String,
        /// The node.
        node: u32,
    },
    /// A node was killed.
    Killed {
        /// The node.
        node: u32,
    },
    /// A node was started.
    Started {
        /// The node.
        node: u32,
        /// Which of its lives.
        life: u32,
    },
    /// A node shut down in order.
    Drained {
        /// The node.
        node: u32,
        /// Everything it had accepted was answered.
        complete: bool,
    },
    /// Nothing breaks from now on.
    Healing,
    /// Everything is settled.
    Quiet,
}

impl fmt::Display for TraceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>8} ms  {}", self.at_ms, self.what)
    }
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent { message, attempt, copy: false } => write!(f, "message {message} is sent, try {attempt}"),
            Self::Sent { message, copy: true, .. } => write!(f, "message {message} is sent again unasked"),
            Self::Arrived { message, attempt, node } => {
                write!(f, "message {message}, try {attempt}, reaches node {node}")
            }
            Self::Unreachable { message, node } => write!(f, "message {message} finds node {node} down"),
            Self::Answered { event, node, answer } => write!(f, "node {node} answers event {event}: {answer}"),
            Self::Settled { message } => write!(f, "message {message} is settled"),
            Self::TimedOut { message, attempt } => write!(f, "message {message}, try {attempt}, times out"),
            Self::Committed { node, events } => write!(f, "node {node} commits {}", Each(events)),
            Self::Waited { node, released, stale, expired } => {
                write!(f, "node {node} settles what was held: {released} applied, {stale} stale, {expired} expired")
            }
            Self::FaultBegan { fault } => write!(f, "fault {fault} begins"),
            Self::FaultEnded { fault } => write!(f, "fault {fault} is over"),
            Self::FaultFired { kind, node } => write!(f, "{kind} strikes node {node}"),
            Self::Killed { node } => write!(f, "node {node} is killed"),
            Self::Started { node, life } => write!(f, "node {node} starts, life {life}"),
            Self::Drained { node, complete: true } => write!(f, "node {node} shut down, everything answered"),
            Self::Drained { node, complete: false } => write!(f, "node {node} shut down with work left"),
            Self::Healing => f.write_str("nothing breaks from now on"),
            Self::Quiet => f.write_str("everything is settled"),
        }
    }
}

struct Each<'a>(&'a [(u32, String)]);

impl fmt::Display for Each<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (event, outcome)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}event {event} {outcome}")?;
        }
        Ok(())
    }
}
