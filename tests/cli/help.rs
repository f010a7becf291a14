//! What a newcomer reads first.

use super::{folder, stdout, tidegate};

#[test]
fn the_help_text_is_the_one_kept_beside_this_test() {
    let output = tidegate(folder().path(), &["--help"], &[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), include_str!("help.txt"), "tests/cli/help.txt must say the same");
}

#[test]
fn every_command_has_help() {
    for command in ["serve", "check", "sources", "send", "simulate", "events", "resources", "quarantine"] {
        let output = tidegate(folder().path(), &[command, "--help"], &[]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert!(stdout(&output).contains(&format!("Usage: tidegate {command}")), "{}", stdout(&output));
    }
}

#[test]
fn a_command_that_is_none_ends_with_2() {
    let output = tidegate(folder().path(), &["sned"], &[]);
    assert_eq!(output.status.code(), Some(2));
}
