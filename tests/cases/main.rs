//! Failures seen in the field, as data: each file of `data/` is a sequence of requests that went wrong
//! somewhere, with the right result. The runner plays it over HTTP against the engine on each store,
//! under a clock that the case sets, and reads the rows afterwards.
//!
//! A test here is a case's whole kind: the file gives the sequence, the functions below its circumstances.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "in a test a failed unwrap is the report, deadlines are real time, and the run says how much it did"
)]

#[path = "../support/mod.rs"]
mod support;

mod bounds;
mod case;
mod lease;
mod play;
mod redis;
mod stop;
mod widths;
mod window;
mod world;

use case::Case;
use play::Stage;

/// Plays a case on every store.
fn right_everywhere(id: &str) {
    let case = Case::load(id);
    for stage in Stage::ALL {
        play::right_on(&case, stage);
        for case in case.under_other_rules() {
            play::right_on(&case, stage);
        }
    }
}

macro_rules! cases {
    ($($name:ident: $id:literal;)*) => {
        $(#[test] fn $name() { right_everywhere($id); })*

        /// The cases that are played from their file.
        const FROM_FILES: &[&str] = &[$($id),*];
    };
}

/// The cases that are played, wholly or also, by a module: what no file can tell.
const IN_MODULES: [(&str, &str); 6] =
    [("B30", "window"), ("B32", "lease"), ("B34", "stop"), ("B81", "redis"), ("B84", "bounds"), ("B85", "widths")];

/// Every file is played by a test, and every case that has none by its module.
#[test]
fn no_case_is_left_out() {
    let files = Case::ids();
    for id in &files {
        let played = FROM_FILES.contains(&id.as_str()) || IN_MODULES.iter().any(|(known, _)| known == id);
        assert!(played, "no test plays {id}");
    }
    for id in FROM_FILES {
        assert!(files.iter().any(|file| file == id), "{id} has no file");
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    for (id, module) in IN_MODULES {
        let text = std::fs::read_to_string(folder.join(format!("{module}.rs"))).expect("a module");
        assert!(text.contains("#[test]"), "{id} has no test in `{module}`");
    }
}

cases! {
    the_signature_covers_the_bytes_received: "B01";
    a_body_written_anew_is_refused_and_the_first_bytes_are_kept: "B03";
    the_line_end_behind_the_last_item_is_signed_too: "B04";
    a_form_is_signed_as_sent_and_the_json_inside_is_read: "B05";
    one_text_is_two_keys_and_malformed_secrets_fail_at_load: "B07";
    while_secrets_rotate_any_live_one_is_enough: "B09";
    the_time_window_has_two_sides: "B11";
    a_malformed_signature_header_is_refused_and_harms_nothing: "B12";
    the_signed_address_comes_from_the_settings: "B14";
    probes_are_answered_and_keep_nothing: "B15";
    a_nul_or_a_lone_surrogate_loses_no_event: "B17";
    copies_at_the_same_instant_take_effect_once: "B19";
    a_failed_first_try_claims_nothing: "B20";
    all_parts_of_a_composite_key_count: "B21";
    a_composite_key_tells_events_of_one_subscription_apart: "B24";
    a_blank_missing_or_structured_id_is_never_a_key: "B26";
    two_endpoints_with_two_secrets_are_one_event: "B28";
    a_key_outlives_caches_and_days: "B30";
    an_older_create_after_a_newer_update_is_stale: "B35";
    in_one_second_the_later_arrival_applies_and_a_resent_one_does_not: "B36";
    an_older_update_after_the_delete_brings_nothing_back: "B38";
    times_are_compared_as_instants: "B40";
    numbers_given_as_text_are_compared_as_numbers: "B42";
    ids_beyond_53_bits_stay_apart: "B44";
    a_counter_that_starts_again_begins_an_epoch_and_is_alerted: "B45";
    what_a_partial_update_leaves_out_is_not_null_and_an_older_one_is_not_useless: "B51";
    an_event_that_beats_what_it_is_about_waits_for_it: "B52";
    one_bad_item_does_not_sink_its_neighbours: "B54";
    while_the_store_is_away_the_answer_is_503: "B56";
    an_event_of_an_unknown_owner_is_answered_and_found: "B57";
    unknown_types_and_new_fields_are_no_reason_to_refuse: "B60";
    opposite_order_on_the_same_resources_blocks_nothing: "B88";
}

#[test]
fn bodies_that_differ_under_one_constant_key_are_kept_aside_and_said() {
    let mut case = Case::load("B24");
    case.sources[0]["key"] = serde_json::json!(["body:/webhookId"]);
    for stage in Stage::ALL {
        let played = play::play(&case, stage);
        let verdicts: Vec<_> = played.answers.iter().map(|answer| answer.verdict()).collect();
        assert_eq!(verdicts, ["applied", "duplicate", "duplicate", "duplicate"]);
        let conflicts: Vec<_> = played.answers.iter().map(|answer| answer.json()["conflict"] == true).collect();
        assert_eq!(conflicts, [false, true, true, true], "on {stage:?}: other bytes are never a plain duplicate");
        let aside = played.events.iter().filter(|event| event.conflicts_with.is_some()).count();
        assert_eq!(aside, 2, "on {stage:?}: two other bodies, each kept once");
    }
}

#[test]
fn an_unusable_request_is_kept_with_its_reason_and_counted() {
    let case = Case::load("B26");
    for stage in Stage::ALL {
        let played = play::play(&case, stage);
        assert_eq!(played.quarantined.len(), 6, "on {stage:?}: {:?}", played.quarantined);
        for row in &played.quarantined {
            assert_eq!(row.source, "case");
            assert!(row.reason.contains("/id"), "the reason names the field: {}", row.reason);
        }
    }
}

#[test]
fn partial_updates_end_in_one_state_in_each_of_their_orders() {
    let case = Case::load("B51");
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut shuffled = case.clone();
        for (place, from) in order.into_iter().enumerate() {
            let at_ms = case.arrivals[place].at_ms;
            shuffled.arrivals[place] = case::Arrival { at_ms, ..case.arrivals[from].clone() };
        }
        shuffled.expect.verdicts = Vec::new();
        // when the oldest comes last, each of its members has been set by a newer one
        let applied = order.into_iter().take(if order[2] == 0 { 2 } else { 3 });
        shuffled.expect.applied = Some(applied.map(|from| ["e1", "e3", "e2"][from].to_owned()).collect());
        for stage in Stage::ALL {
            play::right_on(&shuffled, stage);
        }
    }
}
