//! What can be typed behind `sources`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `sources`
#[derive(Debug, Args)]
pub struct SourcesArgs {
    /// Which of them.
    #[command(subcommand)]
    pub command: SourcesCommand,
}

/// `sources …`
#[derive(Debug, Subcommand)]
pub enum SourcesCommand {
    /// List the configured sources, and the presets there are
    List(ListArgs),
    /// Show every rule of a source or a preset, and what you have to state to use it
    Show(ShowArgs),
    /// Explain step by step what would become of a captured request, and which mistake it likely is
    Test(TestArgs),
}

/// `sources list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only presets, whose name or sender holds this word if there is one; no settings are read
    #[arg(long, value_name = "WORD", num_args = 0..=1, default_missing_value = "")]
    pub presets: Option<String>,
    /// Print all presets as a table of Markdown, as in docs/providers.md
    #[arg(long, conflicts_with_all = ["presets", "json"])]
    pub markdown: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `sources show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A source of the settings, or a preset
    pub name: String,
    /// Print the preset's own text, with its reasons
    #[arg(long, conflicts_with = "json")]
    pub toml: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `sources test`
#[derive(Debug, Args)]
#[command(after_help = "\
The file is a request as HTTP/1.1 writes it: a request line, headers, an empty line, and the body byte for byte:

  POST /in/billing HTTP/1.1
  Content-Type: application/json
  X-Signature: 5f2c…

  {\"id\":\"evt_1\"}

Nothing is stored, no signature is printed that would have held, and no secret is.

Exit codes:
  0  the gate would answer 2xx
  1  it would not
  2  arguments, settings or the file are wrong")]
pub struct TestArgs {
    /// A source of the settings; with --secret-from a preset too
    pub name: String,
    /// The captured request
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
    /// Use this secret in place of those of the settings: env:NAME or file:/path
    #[arg(long, value_name = "PLACE")]
    pub secret_from: Option<String>,
    /// Judge the request at this time, as RFC 3339 or seconds since 1970 [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<i64>,
    /// Ask the owner of the key, as the gate would, where the signature names one
    #[arg(long)]
    pub fetch: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Milliseconds since 1970.
fn time(text: &str) -> Result<i64, String> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(time.as_millisecond());
    }
    let seconds = text.parse::<i64>().ok().filter(|seconds| (0..=253_402_300_799).contains(seconds));
    let ms = seconds.and_then(|seconds| seconds.checked_mul(1000));
    ms.ok_or_else(|| "write a time such as 2026-03-02T12:00:00Z, or seconds since 1970".to_owned())
}
