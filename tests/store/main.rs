//! The store suite: what the port promises, asked of every backend.
//!
//! Cases belong to the trait; a backend only names itself, in `world.rs` and in the list below. Postgres is found by
//! `TIDEGATE_TEST_POSTGRES` (`scripts/test` starts one and sets it).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test a failed unwrap is the report, and the run says how much it did"
)]

mod arrivals;
mod asked;
mod cases;
mod clock;
mod database;
mod events;
mod lockstep;
mod model;
mod policies;
mod postgres_itself;
mod postgres_ways;
mod world;

/// Makes a test of each named case for one backend.
macro_rules! suite {
    ($backend:ident, $kind:expr; $($group:ident { $($case:ident),* $(,)? })*) => {
        mod $backend {
            $($(
                #[test]
                fn $case() {
                    crate::world::run($kind, crate::cases::$group::$case);
                }
            )*)*
        }
    };
}

/// Every case of the port, for one backend.
macro_rules! every_case {
    ($backend:ident, $kind:expr) => {
        suite! { $backend, $kind;
            claims {
                a_free_key_is_claimed_and_a_second_event_with_it_is_a_duplicate,
                a_key_twice_in_one_batch_goes_to_the_first,
                the_same_key_with_other_bytes_is_kept_aside_once,
                two_different_bodies_under_one_key_in_one_batch_are_a_conflict,
                the_same_event_again_is_a_duplicate_of_itself,
                a_big_batch_is_taken_whole_and_again_as_duplicates,
                tenants_and_sources_have_keys_of_their_own,
            }
            order {
                a_newer_version_applies_and_an_older_one_is_stale,
                reordering_inside_a_batch_heals,
                a_tie_is_decided_by_its_rule_and_said,
                ties_inside_a_batch_are_taken_in_the_order_they_came,
                an_ignored_event_is_recorded_and_changes_no_state,
                an_event_without_a_resource_passes_and_leaves_no_state,
                an_event_without_a_version_applies_and_leaves_the_stored_version,
                arrival_takes_every_event_and_keeps_the_highest_version,
                a_tombstone_counts_as_state_also_when_the_resource_was_never_seen,
                an_event_of_several_resources_guards_each_and_is_judged_by_the_first,
                a_batch_may_mix_all_kinds_of_events,
                numbers_beyond_32_and_64_bits_stay_exact,
            }
            reading {
                bytes_come_back_as_they_came,
                texts_with_nul_are_taken,
                events_are_listed_newest_first_in_pages,
                events_are_found_by_source_verdict_key_and_resource,
                resources_are_listed_in_pages_and_found_by_filter,
                counts_agree_with_what_was_committed,
                quarantine_keeps_the_same_bytes_once_and_counts_repeats,
                what_is_taken_out_of_quarantine_is_gone_and_comes_back_as_new,
            }
            races {
                two_sessions_racing_for_one_key_let_one_through,
                two_sessions_racing_on_one_resource_keep_the_newest,
                events_that_touch_the_same_resources_in_opposite_order_all_pass,
            }
            upkeep {
                a_pulse_tells_time_and_one_incarnation,
                keys_outlive_a_turn_of_the_ring_and_are_forgotten_in_the_end,
                upkeep_drops_what_outlived_its_retention,
                upkeep_on_two_nodes_at_once_is_safe,
                no_key_is_claimed_twice_while_the_ring_turns,
            }
            sequence {
                the_next_number_applies_and_what_is_above_it_waits,
                what_closes_a_gap_releases_what_waited_in_its_transaction,
                a_gap_in_a_batch_holds_and_a_batch_that_is_whole_does_not,
                numbers_begin_at_the_start_also_for_a_resource_never_seen,
                a_repeat_of_what_waits_is_a_duplicate_and_the_gap_stays,
                a_hold_that_is_over_gives_the_gap_up,
                a_hold_that_is_over_expires_with_a_record,
                a_hold_that_is_over_asks_the_provider,
                a_transaction_settles_so_many_resources_and_says_when_to_come_again,
                a_person_gives_a_gap_up,
                two_sessions_close_gaps_for_each_other,
            }
            transition {
                an_edge_applies_a_later_step_waits_and_what_is_over_is_stale,
                an_update_before_its_create_waits_and_tells_for_what,
                a_rank_is_moved_forward_and_a_newer_version_of_it_applies,
                a_hold_that_is_over_applies_whatever_the_graph_says,
                a_version_below_the_stored_one_is_stale_whatever_its_step,
            }
            window {
                events_wait_for_their_window_and_apply_in_version_order,
                what_is_older_than_what_was_released_is_stale_at_once,
            }
            refetch {
                a_signal_waits_and_the_fetches_of_a_resource_are_one,
                an_answer_settles_the_signals_that_were_there_when_it_was_asked_for,
                a_late_answer_changes_nothing,
                a_failed_fetch_is_due_again_and_keeps_what_happened,
                a_fetch_given_up_lets_its_signals_expire,
            }
            epochs {
                a_counter_that_falls_by_a_lot_is_parked_and_a_little_is_stale,
                a_parked_event_waits_for_a_person_and_not_for_time,
                a_counter_that_falls_after_a_quiet_time_begins_an_epoch,
            }
            fields {
                partial_updates_in_any_order_end_in_one_state,
                a_tombstone_takes_what_is_older_and_keeps_older_updates_away,
                members_are_bounded_and_nothing_of_a_refused_event_is_stored,
                partial_updates_may_wait_for_each_other,
            }
            effects {
                one_happening_under_two_ids_takes_effect_once_and_both_ids_are_kept,
                an_effect_twice_in_one_batch_goes_to_the_first,
                repeats_with_the_same_bytes_are_all_kept,
                an_effect_key_never_meets_an_idempotency_key,
            }
            waiting {
                an_embedded_object_is_taken_while_its_event_waits,
                held_events_of_a_resource_are_bounded_and_the_gap_can_still_close,
                every_event_is_counted_under_one_verdict,
                settling_twice_does_nothing,
                a_held_event_outlives_the_retention,
                what_waits_is_listed_in_pages_and_by_source,
                many_resources_wait_in_one_batch_and_settle_in_one_transaction,
            }
            rivals {
                a_hold_may_run_out_while_its_gap_closes,
                one_happening_under_two_ids_on_two_sessions_takes_effect_once,
                a_signal_may_come_while_the_fetch_is_claimed_and_answered,
            }
            agreement {
                random_batches_agree_with_the_rules,
            }
        }
    };
}

every_case!(postgres, crate::world::Kind::Postgres);
every_case!(postgres_loaded, crate::world::Kind::PostgresLoaded);
every_case!(postgres_locked, crate::world::Kind::PostgresLocked);
every_case!(sqlite, crate::world::Kind::Sqlite);
every_case!(memory, crate::world::Kind::Memory);
