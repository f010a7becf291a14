//! `sources list|show|test`: who may send, by which rules, and what became of a captured request.
//!
//! Promises: no secret is printed, and no signature that would have held; nothing is stored. `show` and the list of
//! presets read no secret at all.

mod answer;
pub(super) mod args;
mod capture;
mod list;
mod markdown;
mod rules;
mod show;
mod snippet;
mod test;
mod wrap;

use std::path::Path;

use super::{Exit, Failure};
use args::{SourcesArgs, SourcesCommand};

/// Runs one of the commands.
pub(super) async fn run(args: &SourcesArgs, file: Option<&Path>) -> Result<Exit, Failure> {
    match &args.command {
        SourcesCommand::List(args) => list::run(args, file),
        SourcesCommand::Show(args) => show::run(args, file),
        SourcesCommand::Test(args) => test::run(args, file).await,
    }
}
