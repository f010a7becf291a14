//! What waited for too long, what a person pushed, and how the rest waits on.

use std::collections::BTreeSet;

use super::super::graph::Reach;
use super::{Attempt, Court, Full, HELD_MAX, Hold, Judged, Judgement, Kind, OnGap, Policy, Push, Unjudged, on_time};

impl Court<'_, '_> {
    /// Ends the waiting of what is over its time. Whether the resource moved, so that the rest is tried again.
    pub(super) fn overdue(&mut self) -> Result<bool, Unjudged> {
        if self.push == Push::Release && self.release_parked()? {
            return Ok(true);
        }
        if let Some(last) = self.pending.iter().rposition(|&place| self.releases(place)) {
            let given_up: Vec<usize> = match self.first_step(last).or_else(|| self.first_gap(last)) {
                Some(first) => vec![self.pending.remove(first)],
                None => self.pending.drain(..=last).collect(),
            };
            for place in given_up {
                if matches!(self.kind(place), Some(Kind::Gap | Kind::Window)) {
                    self.force(place)?;
                } else {
                    self.pending.push(place);
                }
            }
            self.in_version_order();
            return Ok(true);
        }
        for place in std::mem::take(&mut self.pending) {
            let ended = if self.due(place) == Some(OnGap::Expire) {
                "its time ran out"
            } else if self.given_up(place) {
                "the provider gave no answer"
            } else {
                self.pending.push(place);
                continue;
            };
            let why = self.hold_of(place).map(|hold| hold.why.clone()).unwrap_or_default();
            self.done[place] = Some(Judgement::Expired { why: format!("{ended}: {why}") });
        }
        Ok(false)
    }

    /// How an event waits from now on: as it did, where it did.
    pub(super) fn hold(&self, place: usize, kind: Kind, why: String) -> Hold {
        let item = &self.items[place];
        let now = item.waiting;
        let answered = self.fetched.is_some_and(|(epoch, _)| now.fetch == Some(epoch));
        let fetch = now.fetch.filter(|_| !answered);
        let mut hold = Hold { kind, until_ms: now.until_ms, parked_in: None, fetch, why };
        match (kind, &item.subject.order.policy) {
            (Kind::Parked, _) => {
                hold.until_ms = None;
                hold.parked_in = Some(self.state.epoch);
            }
            (Kind::Signal, _) => hold.until_ms = None,
            (Kind::Window, Policy::Window { window_ms, .. }) => {
                hold.until_ms = now.until_ms.or_else(|| Some(self.now_ms.saturating_add(*window_ms)));
            }
            (_, policy) => {
                let waits_for_fetch = now.held && now.until_ms.is_none() && now.parked_in.is_none() && !answered;
                if hold.until_ms.is_none() && !waits_for_fetch {
                    let wait_ms = item.subject.order.wait().map_or(0, |wait| wait.hold_for_ms);
                    debug_assert!(on_time(policy).is_some());
                    hold.until_ms = Some(self.now_ms.saturating_add(wait_ms));
                }
            }
        }
        hold
    }

    /// Everything is said: what still waits must have room.
    pub(super) fn finish(mut self) -> Result<Judged, Unjudged> {
        let mut wants_fetch = false;
        let mut held = 0;
        let mut new = 0;
        for &place in &self.pending {
            let is_new = self.items[place].is_new();
            let asks = self.due(place) == Some(OnGap::Refetch);
            let Some(Judgement::Held(hold)) = &mut self.done[place] else { continue };
            held += 1;
            new += usize::from(is_new);
            if asks {
                hold.until_ms = None;
            }
            wants_fetch |= asks || (hold.kind == Kind::Signal && hold.fetch.is_none());
            self.parked += u32::from(is_new && hold.kind == Kind::Parked);
        }
        if new > 0 && held > HELD_MAX {
            return Err(Full.into());
        }
        self.state.held = i64::try_from(held).unwrap_or(i64::MAX);
        let judgements = self.done.into_iter().map(|judgement| {
            // each was tried at least once
            judgement.unwrap_or_else(|| Judgement::Stale { tie: false, why: String::new() })
        });
        let judgements = judgements.collect();
        Ok(Judged { state: self.state, judgements, wants_fetch, parked: self.parked, applied: self.applied })
    }

    /// Applies an event whatever is missing before it; what is older than the state stays out.
    fn force(&mut self, place: usize) -> Result<(), Unjudged> {
        let item = &self.items[place];
        let (order, waited) = (item.subject.order, self.kind(place));
        match self.by_version(item, order.tie()) {
            Attempt::Stale { tie, why } => self.done[place] = Some(Judgement::Stale { tie, why }),
            Attempt::Apply { tie } => {
                let why = (waited == Some(Kind::Gap)).then(|| "the gap before it was given up".to_owned());
                self.apply(place, tie, why)?;
            }
            Attempt::Merge | Attempt::NewEpoch | Attempt::Wait { .. } => self.apply(place, false, None)?,
        }
        Ok(())
    }

    /// Steps of a state machine are given up one at a time, for what the first of them leads to needs no force,
    /// and what it leaves behind is stale. The first is the lowest version, or else a step that no other one over
    /// its time leads to.
    fn first_step(&self, last: usize) -> Option<usize> {
        let subject = |position: usize| &self.items[self.pending[position]].subject;
        let Policy::Transition { graph, .. } = &subject(last).order.policy else { return None };
        let over = || (0..=last).filter(|&position| self.releases(self.pending[position]));
        let first = over().next()?;
        if subject(first).version.is_some() {
            return Some(first);
        }
        let steps: BTreeSet<&str> = over().filter_map(|position| subject(position).step).collect();
        let leads = |from: &str, to: &str| matches!(graph.reach(Some(from), to), Reach::Edge | Reach::Later);
        let led_to = |to: &str| steps.iter().any(|from| leads(from, to) && !leads(to, from));
        over().find(|&position| !subject(position).step.is_some_and(led_to)).or(Some(first))
    }

    /// Gaps are given up one at a time, the lowest first: what follows it without another gap needs no force.
    fn first_gap(&self, last: usize) -> Option<usize> {
        (0..=last).find(|&position| self.kind(self.pending[position]) == Some(Kind::Gap))
    }

    /// The lowest parked event begins a new epoch.
    fn release_parked(&mut self) -> Result<bool, Unjudged> {
        let parked = self.pending.iter().position(|&place| self.kind(place) == Some(Kind::Parked));
        let Some(first) = parked else { return Ok(false) };
        let place = self.pending.remove(first);
        self.new_epoch(place)?;
        Ok(true)
    }

    fn in_version_order(&mut self) {
        let items = self.items;
        self.pending.sort_by_key(|&place| (items[place].rank(), place));
    }

    fn hold_of(&self, place: usize) -> Option<&Hold> {
        match &self.done[place] {
            Some(Judgement::Held(hold)) => Some(hold),
            _ => None,
        }
    }

    fn kind(&self, place: usize) -> Option<Kind> {
        self.hold_of(place).map(|hold| hold.kind)
    }

    /// What its policy says of an event that is over its time; `None` of one that is not.
    fn due(&self, place: usize) -> Option<OnGap> {
        let item = &self.items[place];
        let until_ms = self.hold_of(place)?.until_ms?;
        if !item.waiting.held || until_ms > self.now_ms {
            return None;
        }
        on_time(&item.subject.order.policy)
    }

    fn releases(&self, place: usize) -> bool {
        if !matches!(self.kind(place), Some(Kind::Gap | Kind::Window)) {
            return false;
        }
        self.due(place) == Some(OnGap::Release) || (self.push == Push::Release && self.kind(place) == Some(Kind::Gap))
    }

    fn given_up(&self, place: usize) -> bool {
        matches!(self.push, Push::GiveUp(fetch) if self.items[place].waiting.fetch == Some(fetch))
    }
}
