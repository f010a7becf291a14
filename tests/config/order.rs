//! The order of a source: every contradiction at once, where it stands.

use super::problems;

const SECRET: (&str, &str) = ("SHOP", "0123456789abcdef0123456789abcdef");

#[test]
fn a_source_full_of_contradictions_is_told_all_of_them() {
    let file = r#"
[events]
retention = "1d"
[[source]]
name = "shop"
secrets = ["env:SHOP"]
verify = { scheme = "hmac-sha256", header = "x-signature" }
key = "body:/id"
type = "body:/type"
resource = { type = "literal:order", id = "body:/order" }
version = [{ from = "body:/at", as = "rfc3339" }, { from = "body:/n", as = "integer" }]
order = { policy = "sequence", hold_for = "2d", window = "1s" }
state = "body:/order"
epoch_on = { falls_by = 0 }
[[source.narrow]]
types = ["order.step"]
order = { policy = "transition", graph = { a = ["b"], b = ["c"], c = ["b"] }, start = "x", hold_for = "0s" }
[[source.narrow]]
types = ["order.poke"]
order = { policy = "refetch" }
"#;
    let expected = [
        "`source.shop.order.window` belongs to the policy `window`, and this one is `sequence`: take it out, or state the policy",
        "`source.shop.version` must be one part `as = \"integer\"` under the policy `sequence`, which counts by one: leave the other parts out, or use `newest`",
        "`source.shop.state` belongs to `merge = \"fields\"`: state that too, or take it out",
        "`source.shop.epoch_on` is about a counter: the version must be one part `as = \"integer\"`",
        "`source.shop.epoch_on.falls_by` must be at least 1, got 0: by how much a late event may be behind without being a new start",
        "`source.shop.narrow[0].order.hold_for` must be a duration, 100ms to 30d, got 0s",
        "`source.shop.narrow[0].order.start` names \"x\", which is no step of `graph`: correct it",
        "`source.shop.narrow[0].order.graph` cannot be used: step \"a\" cannot be reached from a start",
        "`source.shop.epoch_on` goes with the policies `newest`, `sequence` and `window`: take it out, or state one of them",
        "`source.shop.narrow[1].order` asks the provider, and nothing says where: state refetch = { url = \"https://…/{id}\" }",
        "`source.shop.order.hold_for` must be shorter than `events.retention` (1d), got 2d: the event would be forgotten while it waits",
    ];
    assert_eq!(problems(file, &[SECRET]), expected);
}

#[test]
fn values_of_the_wrong_kind_are_told_in_the_words_of_the_file() {
    let file = r#"
[[source]]
name = "shop"
preset = "shopify"
secrets = ["env:SHOP"]
order = { policy = "newst", hold_for = "soon", start = 1.5, on_gap = "panic", hold_fr = 1 }
merge = "patch"
epoch_on = { fall_by = 3 }
"#;
    let expected = [
        "`source.shop.epoch_on.fall_by` is not a setting here: did you mean `falls_by`?",
        "`source.shop.epoch_on` lacks `falls_by`: add it",
        "`source.shop.merge` must be one of \"replace\", \"fields\", got \"patch\"",
        "`source.shop.order.hold_fr` is not a setting here: did you mean `hold_for`?",
        "`source.shop.order.hold_for` is not right: \"soon\" is not a length of time such as \"5m\" or \"300s\"",
        "`source.shop.order.on_gap` must be one of \"release\", \"expire\", \"refetch\", got \"panic\"",
        "`source.shop.order.policy` must be one of \"newest\", \"sequence\", \"transition\", \"window\", \"refetch\", \"arrival\", got \"newst\"",
        "`source.shop.order.start` must be a whole number (`sequence`), or a step or a list of steps (`transition`)",
    ];
    let mut found = problems(file, &[SECRET]);
    found.sort();
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn nothing_may_wait_longer_than_its_key_is_remembered() {
    let file = r#"
[keys]
window = "3d"
[cache]
keep = "1d"
[[source]]
name = "shop"
secrets = ["env:SHOP"]
verify = { scheme = "hmac-sha256", header = "x-signature" }
key = "body:/id"
resource = { type = "literal:order", id = "body:/order" }
version = [{ from = "body:/n", as = "integer" }]
order = { policy = "sequence", hold_for = "5d" }
"#;
    let expected = "`source.shop.order.hold_for` must be shorter than `keys.window` (3d), got 5d: the event would be forgotten while it waits";
    assert_eq!(problems(file, &[SECRET]), [expected]);
}
