//! SIGKILL of the program at random moments under load.

use crate::judge::{Watch, judge};
use crate::senders::Senders;
use crate::support::fault::Outsider;
use crate::support::place::Place;
use crate::support::process::Process;

/// Kills on each store.
const KILLS: u32 = 50;

fn nothing_is_lost_when_the_program_is_killed(place: &Place) {
    let mut program = Process::start(place, "", &[]);
    let senders = Senders::start(program.public);
    let mut watch = Watch::default();
    for _ in 0..KILLS {
        // a random number of answers is a random moment, whatever the speed of the machine
        senders.ledger.wait_for(rand::random_range(1..40));
        program.kill();
        watch.look(&mut Outsider::connect(place));
        program = Process::start(place, "", &[]);
        senders.ledger.listens(program.public);
    }
    senders.ledger.wait_for(100);
    let ledger = senders.finish();
    let mut outsider = Outsider::connect(place);
    watch.look(&mut outsider);
    judge(&ledger, &mut outsider);
    let delivered = ledger.count();
    println!("{KILLS} kills, {delivered} deliveries answered 2xx, all of them recorded once");
}

#[test]
fn nothing_answered_is_lost_or_done_twice_when_the_program_is_killed_on_sqlite() {
    nothing_is_lost_when_the_program_is_killed(&Place::sqlite());
}

#[test]
fn nothing_answered_is_lost_or_done_twice_when_the_program_is_killed_on_postgres() {
    nothing_is_lost_when_the_program_is_killed(&Place::postgres());
}
