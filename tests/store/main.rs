//! The store suite: what the port promises, asked of every backend.
//!
//! Cases belong to the trait; a backend only names itself, in `world.rs` and in the list below. Postgres is found by
//! `TIDEGATE_TEST_POSTGRES` (`scripts/test` starts one and sets it).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test a failed unwrap is the report, and the run says how much it did"
)]

mod cases;
mod events;
mod model;
mod postgres_itself;
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
