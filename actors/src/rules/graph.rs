//! The graph of a state machine: which step may follow which, and which is still reachable.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The most steps a graph may have.
pub const STEPS_MAX: usize = 64;

/// Why a graph cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// No step at all.
    #[error("there are no steps")]
    Empty,
    /// More than [`STEPS_MAX`].
    #[error("there are more than {STEPS_MAX} steps")]
    TooMany,
    /// A step is blank.
    #[error("the name of a step is blank")]
    Blank,
    /// A step comes twice in a list of ranks.
    #[error("step {0:?} comes twice")]
    Twice(String),
    /// No path from the start leads to a step.
    #[error("step {0:?} cannot be reached from a start")]
    Unreachable(String),
    /// An edge starts at, or leads to, a step that is not named among the graph's keys or targets.
    #[error("no step is a start: name one that no other leads to, or give `start`")]
    NoStart,
}

/// Where a step stands, seen from the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// An edge leads there.
    Edge,
    /// The current step itself, in a graph of ranks.
    Same,
    /// A path leads there, over steps that have not come yet.
    Later,
    /// No path leads there (any more).
    Never,
}

/// Named steps and the edges between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Graph {
    names: Vec<String>,
    /// For each step, a set of steps as bits: where its edges lead, and where paths lead.
    edges: Vec<u64>,
    paths: Vec<u64>,
    starts: u64,
    ranked: bool,
}

/// What is written of a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    names: Vec<String>,
    edges: Vec<u64>,
    starts: u64,
    ranked: bool,
}

impl From<Graph> for Stored {
    fn from(graph: Graph) -> Self {
        Self { names: graph.names, edges: graph.edges, starts: graph.starts, ranked: graph.ranked }
    }
}

impl TryFrom<Stored> for Graph {
    type Error = GraphError;

    fn try_from(stored: Stored) -> Result<Self, GraphError> {
        if stored.edges.len() != stored.names.len() {
            return Err(GraphError::Empty);
        }
        Self::new(stored.names, stored.edges, stored.starts, stored.ranked)
    }
}

impl Graph {
    /// Steps in order: the first must come first, and each leads to every later one.
    pub fn ranks<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Result<Self, GraphError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        if names.len() > STEPS_MAX {
            return Err(GraphError::TooMany);
        }
        let all = names.len() as u32;
        let later = |rank: u32| bits_below(all) & !bits_below(rank + 1);
        let edges = (0..all).map(later).collect();
        Self::new(names, edges, 1, true)
    }

    /// Steps by name, each with the steps that may follow it; `starts` are those a resource may begin with.
    /// Where no start is given, every step that no other leads to is one.
    pub fn edges(following: &BTreeMap<String, Vec<String>>, starts: &[String]) -> Result<Self, GraphError> {
        let mut names: Vec<String> = Vec::new();
        let all = following.iter().flat_map(|(from, to)| std::iter::once(from).chain(to)).chain(starts);
        for name in all {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        if names.len() > STEPS_MAX {
            return Err(GraphError::TooMany);
        }
        let bit = |name: &String| names.iter().position(|known| known == name).map_or(0, |place| 1_u64 << place);
        let edges: Vec<u64> =
            names.iter().map(|from| following.get(from).into_iter().flatten().map(bit).fold(0, |a, b| a | b)).collect();
        let starts = if starts.is_empty() {
            let led_to = edges.iter().fold(0, |a, b| a | b);
            bits_below(names.len() as u32) & !led_to
        } else {
            starts.iter().map(bit).fold(0, |a, b| a | b)
        };
        Self::new(names, edges, starts, false)
    }

    fn new(names: Vec<String>, edges: Vec<u64>, starts: u64, ranked: bool) -> Result<Self, GraphError> {
        if names.is_empty() {
            return Err(GraphError::Empty);
        }
        if names.len() > STEPS_MAX {
            return Err(GraphError::TooMany);
        }
        for (place, name) in names.iter().enumerate() {
            if name.trim().is_empty() {
                return Err(GraphError::Blank);
            }
            if names[..place].contains(name) {
                return Err(GraphError::Twice(name.clone()));
            }
        }
        if starts == 0 {
            return Err(GraphError::NoStart);
        }
        let paths = paths(&edges);
        let reached = starts | steps(starts).fold(0, |reached, start| reached | paths[start]);
        if let Some(place) = (0..names.len()).find(|place| reached & 1 << place == 0) {
            return Err(GraphError::Unreachable(names[place].clone()));
        }
        Ok(Self { names, edges, paths, starts, ranked })
    }

    /// Whether a step can be left and come again: then only versions say which round an event is of.
    #[must_use]
    pub fn has_cycle(&self) -> bool {
        self.paths.iter().enumerate().any(|(place, paths)| paths & 1 << place != 0)
    }

    /// The names of its steps.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The names of the steps that a resource may be in before `step`, for people.
    #[must_use]
    pub fn before(&self, step: &str) -> Vec<&str> {
        let Some(place) = self.place(step) else { return Vec::new() };
        let leads = |from: &usize| self.edges[*from] & 1 << place != 0;
        (0..self.names.len()).filter(leads).map(|from| self.names[from].as_str()).collect()
    }

    /// How far along a step is: what leads to it is never further. The fewer steps still follow, the further.
    #[must_use]
    pub fn depth(&self, step: &str) -> u32 {
        self.place(step).map_or(0, |place| u64::BITS - self.paths[place].count_ones())
    }

    /// Where `step` stands, seen from the current one; `None` is a resource never seen. A current step that
    /// the graph does not know any more holds nobody up.
    #[must_use]
    pub fn reach(&self, current: Option<&str>, step: &str) -> Reach {
        let Some(place) = self.place(step) else { return Reach::Never };
        let bit = 1_u64 << place;
        let (edges, paths) = match current.map(|current| self.place(current)) {
            None => (self.starts, u64::MAX),
            Some(None) => return Reach::Edge,
            Some(Some(current)) if current == place && self.ranked => return Reach::Same,
            Some(Some(current)) => (self.edges[current], self.paths[current]),
        };
        match (edges & bit != 0, paths & bit != 0) {
            (true, _) => Reach::Edge,
            (false, true) => Reach::Later,
            (false, false) => Reach::Never,
        }
    }

    fn place(&self, step: &str) -> Option<usize> {
        self.names.iter().position(|name| name == step)
    }
}

/// Where paths of one edge or more lead, from each step.
fn paths(edges: &[u64]) -> Vec<u64> {
    let mut paths = edges.to_vec();
    for over in 0..edges.len() {
        for from in 0..edges.len() {
            if paths[from] & 1 << over != 0 {
                paths[from] |= paths[over];
            }
        }
    }
    paths
}

fn steps(bits: u64) -> impl Iterator<Item = usize> {
    (0..STEPS_MAX).filter(move |place| bits & 1 << place != 0)
}

fn bits_below(count: u32) -> u64 {
    1_u64.checked_shl(count).map_or(u64::MAX, |bit| bit - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Graph {
        let edges = [
            ("created", vec!["paid", "cancelled"]),
            ("paid", vec!["shipped", "refunded"]),
            ("shipped", vec!["refunded"]),
        ];
        let edges = edges.map(|(from, to)| (from.to_owned(), to.into_iter().map(str::to_owned).collect()));
        Graph::edges(&edges.into(), &[]).expect("a graph")
    }

    #[test]
    fn an_edge_applies_a_path_waits_and_the_rest_is_over() {
        let graph = order();
        assert_eq!(graph.reach(None, "created"), Reach::Edge);
        assert_eq!(graph.reach(None, "shipped"), Reach::Later);
        assert_eq!(graph.reach(Some("created"), "paid"), Reach::Edge);
        assert_eq!(graph.reach(Some("created"), "refunded"), Reach::Later);
        assert_eq!(graph.reach(Some("paid"), "created"), Reach::Never);
        assert_eq!(graph.reach(Some("cancelled"), "paid"), Reach::Never);
        assert_eq!(graph.reach(Some("created"), "created"), Reach::Never);
        assert_eq!(graph.reach(Some("created"), "unheard of"), Reach::Never);
        assert!(!graph.has_cycle());
    }

    #[test]
    fn ranks_go_forward_from_the_first() {
        let graph = Graph::ranks(["created", "updated", "deleted"]).expect("ranks");
        assert_eq!(graph.reach(None, "updated"), Reach::Later);
        assert_eq!(graph.reach(Some("created"), "deleted"), Reach::Edge);
        assert_eq!(graph.reach(Some("updated"), "updated"), Reach::Same);
        assert_eq!(graph.reach(Some("deleted"), "created"), Reach::Never);
    }

    #[test]
    fn a_step_that_the_graph_lost_holds_nobody_up() {
        assert_eq!(order().reach(Some("an old name"), "paid"), Reach::Edge);
    }

    #[test]
    fn a_cycle_is_seen() {
        let edges = [("open", vec!["closed"]), ("closed", vec!["open"])];
        let edges = edges.map(|(from, to)| (from.to_owned(), to.into_iter().map(str::to_owned).collect()));
        let edges = edges.into();
        assert_eq!(Graph::edges(&edges, &[]), Err(GraphError::NoStart));
        assert!(Graph::edges(&edges, &["open".to_owned()]).is_ok_and(|graph| graph.has_cycle()));
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        assert_eq!(Graph::ranks(Vec::<String>::new()), Err(GraphError::Empty));
        assert_eq!(Graph::ranks(["a", "a"]), Err(GraphError::Twice("a".to_owned())));
        assert_eq!(Graph::ranks(["a", " "]), Err(GraphError::Blank));
        assert_eq!(Graph::ranks((0..65).map(|n| n.to_string())), Err(GraphError::TooMany));
        assert!(Graph::ranks((0..64).map(|n| n.to_string())).is_ok());
        let edges = BTreeMap::from([("b".to_owned(), vec!["c".to_owned()])]);
        assert_eq!(Graph::edges(&edges, &["c".to_owned()]), Err(GraphError::Unreachable("b".to_owned())));
    }
}
