//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use tidegate_actors::rules::event::Verdict;
use uuid::Uuid;

use super::simulate::args::SimulateArgs;
use super::sources::args::SourcesArgs;

const EXAMPLES: &str = "\
Try it:
  tidegate                             serve with the compiled-in settings: SQLite, source \"demo\"
  tidegate send demo                   in a second terminal: sign and post one event
  tidegate send demo --count 2000 --shuffle --duplicate 0.3 --concurrency 32
  tidegate events                      what came in, and what became of it
  tidegate events --held               what waits, for what and until when
  tidegate events --failed             events of which an effect failed, and why
  tidegate resources                   the newest version of everything
  tidegate simulate retry-storm        the engine through a storm: does everything hold?

Set it up:
  tidegate sources list --presets pay  which senders are known
  tidegate sources show stripe         every rule of one, and what you have to state
  tidegate sources test shop --file request.http
                                       why is this request refused?
  tidegate check --config my.toml      everything that is wrong with the settings, at once
  tidegate serve --config my.toml      config.toml documents every setting
  TIDEGATE_STORE__URL=postgres://tidegate@localhost/tidegate tidegate

Exit codes:
  0  all went well
  1  the answer is no: problems found, events refused, nothing by that name
  2  arguments or settings are wrong; nothing was done
  3  the server or the store could not be reached";

/// Takes webhooks in once, in order, durably.
///
/// Tidegate stands in front of your application. It verifies each webhook's signature, recognises repeats
/// by the event's idempotency key, guards each resource with its stored version so that a late event never
/// overwrites a newer state, and answers 2xx only when all of that is committed.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// A settings file; what it does not state keeps its default.
    #[arg(long, global = true, value_name = "FILE", env = "TIDEGATE_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,

    /// What to do; `serve` when left out.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take webhooks in until told to stop (the default)
    Serve,
    /// Report every problem of the settings at once, or what they mean
    Check(CheckArgs),
    /// List sources and presets, show their rules, or explain what becomes of a captured request
    Sources(SourcesArgs),
    /// Sign events as the source's sender would, post them, and count the answers
    Send(SendArgs),
    /// Run the engine through a stream that is repeated, delayed, swapped and lost, and say what held
    Simulate(Box<SimulateArgs>),
    /// List the events that came in, newest first, or show one
    Events(EventsArgs),
    /// List resources with their stored versions, or show one with its events
    Resources(ResourcesArgs),
    /// List the requests that are authentic but unusable, newest first, or show one
    Quarantine(QuarantineArgs),
}

/// `check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Also try to reach the store and the cache
    #[arg(long)]
    pub connect: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `send`
#[derive(Debug, Args)]
#[command(after_help = "\
A seed makes the same events again, so a second run with the same seed is all duplicates.
Answers 429 and 503 are tried again after their Retry-After, as a sender would.

Exit codes:
  0  all answered 2xx
  1  some were refused
  2  arguments or settings are wrong; nothing was sent
  3  the server could not be reached")]
pub struct SendArgs {
    /// The source to send to, by its name in the settings
    pub source: String,
    /// How many different events
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub count: u32,
    /// Over how many resources to spread them [default: a tenth of the count]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub resources: Option<u32>,
    /// How many versions each resource goes through, instead of --resources
    #[arg(long, value_name = "N", conflicts_with = "resources", value_parser = clap::value_parser!(u32).range(1..))]
    pub versions: Option<u32>,
    /// Send in random order, so that old versions come late
    #[arg(long)]
    pub shuffle: bool,
    /// Send this share of the events twice, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub duplicate: f64,
    /// How many requests are under way at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub concurrency: u16,
    /// The most requests a second [default: as fast as they are answered]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,
    /// How often a 429, a 503 or a broken connection is tried again
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(0..=20))]
    pub retries: u8,
    /// Send the bytes of this file in place of a generated body
    #[arg(long, value_name = "BODY", conflicts_with_all = ["resources", "versions", "duplicate"])]
    pub file: Option<PathBuf>,
    /// Sign with the private key in this file, as PEM, in place of the settings' secret: for senders whose settings
    /// hold only a public key
    #[arg(long, value_name = "FILE")]
    pub sign_with: Option<PathBuf>,
    /// Send this header too, such as "X-GitHub-Event: ping"; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// The tenant inside the source
    #[arg(long)]
    pub tenant: Option<String>,
    /// Where the server is [default: server.listen of the settings]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Makes the same events again [default: random]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Print the requests as HTTP/1.1, signed now, and send nothing
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Paging and form, for all lists.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// How many rows at most, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Go on behind this row: the id a list ends with
    #[arg(long, value_name = "ID")]
    pub after: Option<Uuid>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `events`
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Show this event with its headers and body
    pub id: Option<Uuid>,
    /// Only of this source
    #[arg(long, conflicts_with = "id")]
    pub source: Option<String>,
    /// Only with this verdict: applied, stale, held, expired, ignored or duplicate (those that are kept aside)
    #[arg(long, conflicts_with = "id", value_parser = verdict)]
    pub verdict: Option<Verdict>,
    /// Only with this idempotency key
    #[arg(long, conflicts_with = "id")]
    pub key: Option<String>,
    /// Only of this resource
    #[arg(long, conflicts_with = "id", num_args = 2, value_names = ["TYPE", "ID"])]
    pub resource: Option<Vec<String>>,
    /// List what waits, for what and until when, the oldest first
    #[arg(long, conflicts_with_all = ["id", "verdict", "key", "resource"])]
    pub held: bool,
    /// List events of which an effect failed, how often and why: their senders try again, held ones the gate
    #[arg(long, conflicts_with_all = ["id", "verdict", "key", "resource", "held"])]
    pub failed: bool,
    /// Write all of them, each with headers and body as one line of JSON, for `simulate --from`
    #[arg(long, conflicts_with_all = ["id", "held", "failed", "limit", "after", "json"])]
    pub export: bool,
    /// Write the body's bytes as they are, and nothing else
    #[arg(long, requires = "id")]
    pub raw: bool,
    /// Paging and form.
    #[command(flatten)]
    pub list: ListArgs,
}

/// `resources`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ResourcesArgs {
    /// What else to do with one of them.
    #[command(subcommand)]
    pub command: Option<ResourcesCommand>,
    /// Only of this source; with TYPE and ID the same as `show`
    pub source: Option<String>,
    /// Only of this type
    #[arg(value_name = "TYPE")]
    pub kind: Option<String>,
    /// This one
    pub id: Option<String>,
    /// The tenant inside the source, when one resource is shown
    #[arg(long, default_value = "")]
    pub tenant: String,
    /// Paging and form.
    #[command(flatten)]
    pub list: ListArgs,
}

/// `resources …`
#[derive(Debug, Subcommand)]
pub enum ResourcesCommand {
    /// Show a resource with its timeline: what came, what became of it and why, and what waits
    Show(ShowArgs),
    /// End the waiting of a resource: gaps are given up, parked events begin a new epoch
    Release(ReleaseArgs),
}

/// `resources show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The resource.
    #[command(flatten)]
    pub resource: ResourceArgs,
    /// Paging and form.
    #[command(flatten)]
    pub list: ListArgs,
}

/// `resources release`
#[derive(Debug, Args)]
#[command(after_help = "\
The running server does it, so this asks its admin listener.

Exit codes:
  0  done
  1  nothing of the resource waits
  2  arguments or settings are wrong; nothing was done
  3  the server could not be reached, or its store is away")]
pub struct ReleaseArgs {
    /// The resource.
    #[command(flatten)]
    pub resource: ResourceArgs,
    /// Where the admin listener is [default: admin.listen of the settings]
    #[arg(long, value_name = "URL")]
    pub admin: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One resource by its name.
#[derive(Debug, Args)]
pub struct ResourceArgs {
    /// Its source
    pub source: String,
    /// Its type
    #[arg(value_name = "TYPE")]
    pub kind: String,
    /// Its id
    pub id: String,
    /// The tenant inside the source
    #[arg(long, default_value = "")]
    pub tenant: String,
}

/// `quarantine`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct QuarantineArgs {
    /// What else to do with them.
    #[command(subcommand)]
    pub command: Option<QuarantineCommand>,
    /// Show this request with its body
    pub id: Option<Uuid>,
    /// Write the body's bytes as they are, and nothing else
    #[arg(long, requires = "id")]
    pub raw: bool,
    /// Paging and form.
    #[command(flatten)]
    pub list: ListArgs,
}

/// `quarantine …`
#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// Run requests again by the settings of now, under the time they came first
    Retry(RetryArgs),
    /// Give a request up: its bytes are gone, and the log says why
    Drop(DropArgs),
}

/// `quarantine retry`
#[derive(Debug, Args)]
#[command(after_help = "\
The running server does it, so this asks its admin listener. What can be used now leaves quarantine.

Exit codes:
  0  all went in
  1  some still cannot be used, or there is nothing by that name
  2  arguments or settings are wrong; nothing was done
  3  the server could not be reached, or its store is away")]
pub struct RetryArgs {
    /// The requests
    #[arg(required_unless_present = "source", conflicts_with = "source")]
    pub ids: Vec<Uuid>,
    /// All of this source, the oldest first
    #[arg(long)]
    pub source: Option<String>,
    /// Where the admin listener is [default: admin.listen of the settings]
    #[arg(long, value_name = "URL")]
    pub admin: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `quarantine drop`
#[derive(Debug, Args)]
pub struct DropArgs {
    /// The request
    pub id: Uuid,
    /// Why, for the log
    #[arg(long)]
    pub reason: String,
    /// Where the admin listener is [default: admin.listen of the settings]
    #[arg(long, value_name = "URL")]
    pub admin: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "it must be 0 to 1".to_owned())
}

fn verdict(text: &str) -> Result<Verdict, String> {
    Verdict::from_word(text).ok_or_else(|| "it must be applied, stale, held, expired, ignored or duplicate".to_owned())
}
