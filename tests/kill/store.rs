//! SIGKILL of the database under load.

use crate::judge::{Watch, judge};
use crate::senders::Senders;
use crate::support::fault::Outsider;
use crate::support::gate::until;
use crate::support::http::{Client, Request};
use crate::support::place::Place;
use crate::support::postgres::PostgresServer;
use crate::support::process::Process;

const KILLS: u32 = 10;

#[test]
fn while_postgres_is_gone_the_answer_is_503_and_afterwards_all_is_well_by_itself() {
    let server = PostgresServer::start();
    let place = Place::on_server(&server.url());
    let program = Process::start(&place, "", &[]);
    let senders = Senders::start(program.public);
    let mut watch = Watch::default();
    for kill in 0..KILLS {
        senders.ledger.wait_for(rand::random_range(1..60));
        server.kill();
        let refused = refusals(&senders);
        until("senders are told to come back", || refusals(&senders) > refused);
        if kill == 0 {
            until("the program says it is not ready", || ready(&program) == 503);
        }
        server.run();
        senders.ledger.wait_for(1);
        watch.look(&mut Outsider::connect(&place));
    }
    senders.ledger.wait_for(100);
    until("the program says it is ready", || ready(&program) == 200);
    let ledger = senders.finish();
    judge(&ledger, &mut Outsider::connect(&place));
}

fn refusals(senders: &Senders) -> u64 {
    senders.ledger.statuses.lock().expect("statuses").get(&503).copied().unwrap_or(0)
}

fn ready(program: &Process) -> u16 {
    let mut client = Client::connect(program.public).expect("the program listens all the time");
    client.call(&Request::new("GET", "/readyz")).expect("an answer").status
}
