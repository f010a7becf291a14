//! A hook after the mailbox: runs once an actor has handled everything that lay in its mailbox, so that it
//! can gather what waits. It has no size, so it costs no allocation; a spawned future per message would.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use actix::fut::ActorFuture;
use actix::{Actor, AsyncContext, Context};

/// An actor that gathers.
pub(crate) trait Turn: Actor<Context = Context<Self>> {
    /// The mailbox is empty for now.
    fn turn(&mut self, ctx: &mut Context<Self>);

    /// Nothing waits and nothing is in flight: it may stop when nobody holds its address any more.
    fn at_rest(&self) -> bool;
}

/// Calls [`Turn::turn`] after each emptied mailbox; spawn it once, when the actor starts.
struct EachTurn;

impl<A: Turn> ActorFuture<A> for EachTurn {
    type Output = ();

    fn poll(self: Pin<&mut Self>, actor: &mut A, ctx: &mut Context<A>, _: &mut TaskContext<'_>) -> Poll<()> {
        actor.turn(ctx);
        if actor.at_rest() && !ctx.connected() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Lets the actor gather from now on.
pub(crate) fn gather<A: Turn>(ctx: &mut Context<A>) {
    ctx.spawn(EachTurn);
}
