//! `[[effect]]`: what is wrong with one is said with its place, all of it at once.

use crate::{load, problems};

#[test]
fn everything_that_is_wrong_with_effects_is_said_at_once_each_with_its_place() {
    let found = problems(
        r#"
[[effect]]
on = { source = "nobody", type = "x" }
sql = "DROP TABLE orders"
[[effect]]
sql = ["INSERT INTO log (entry) VALUES (:kye)", "COMMIT", "DELETE FROM events"]
setup = "CREATE TABLE log (entry TEXT)"
[[effect]]
on = { source = ["demo", "demmo"] }
sql = "INSERT INTO log (entry) VALUES (:key); DELETE FROM log"
[[effect]]
on = { source = "demo" }
"#,
        &[],
    );
    for expected in [
        "`effect[0].on.type` is not a setting here: did you mean `types`?",
        "`effect[1].sql[0]` has the parameter :kye, which is none of :id, :source",
        "`effect[1].sql[1]` begins with COMMIT; a statement must begin with one of INSERT",
        "`effect[1].sql[2]` uses a table that is the gate's own",
        "`effect[1].setup` must say IF NOT EXISTS or OR REPLACE",
        "`effect[2].sql` holds more than one statement",
        "`effect[3]` lacks `sql`: add it",
    ] {
        assert!(found.iter().any(|problem| problem.starts_with(expected)), "{expected}\n{}", found.join("\n"));
    }
}

#[test]
fn an_effect_of_a_source_that_is_not_there_is_refused_with_those_that_are() {
    let found = problems(
        "[[effect]]\non = { source = [\"demo\", \"demmo\"] }\nsql = \"DELETE FROM mine WHERE id = :key\"\n",
        &[],
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("`effect[0].on.source` names \"demmo\"") && found[0].contains("\"demo\""),
        "{found:?}"
    );
}

#[test]
fn effects_are_read_in_the_dialect_of_the_store() {
    let text = "[[effect]]\nsql = \"UPDATE t SET body = :body WHERE id = :key\"\n";
    let of = |url: &str| {
        let config = load(&format!("[store]\nurl = \"{url}\"\n{text}"), &[]).expect("settings");
        config.effects.all()[0].statements[0].sql.clone()
    };
    assert_eq!(of("sqlite:some.db"), "UPDATE t SET body = ?1 WHERE id = ?2");
    assert_eq!(of("postgres://user@localhost/db"), "UPDATE t SET body = CAST($1::text AS jsonb) WHERE id = $2::text");
}
