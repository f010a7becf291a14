//! A file of tenants with their secrets: `acme = "…"`, `acme = ["new", "old"]`, or `{ value = "…", until = "…" }`.
//!
//! Promises: a file that others than its owner may read is refused, since the secrets stand in it as they are; no
//! problem's text holds any part of a secret. A value may also be `env:NAME` or `file:/path`.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use super::redact::printable;
use crate::source::spec::SecretSpec;

/// The most bytes of such a file, and the most tenants in it.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
const TENANTS_MAX: usize = 50_000;

/// One tenant's secrets.
pub(super) type OfTenant = (String, Vec<SecretSpec>);

/// One tenant's secrets as written in the file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    One(SecretSpec),
    Many(Vec<SecretSpec>),
}

/// Reads a file; each problem has the tenant it is about (or none) and is to be read after its key.
pub(super) fn read(path: &str) -> Result<Vec<OfTenant>, Vec<(Option<String>, String)>> {
    let whole = |message: String| vec![(None, message)];
    if !Path::new(path).is_absolute() {
        return Err(whole("must be the whole path of a file, such as \"/etc/tidegate/tenants.toml\"".to_owned()));
    }
    let table =
        table(path).map_err(|error| whole(format!("names the file {}, which {error}", printable(path, 256))))?;
    if table.len() > TENANTS_MAX {
        return Err(whole(format!("has more than {TENANTS_MAX} tenants: make a second source of them")));
    }
    let (mut tenants, mut problems) = (Vec::with_capacity(table.len()), Vec::new());
    for (name, value) in table {
        match secrets(value) {
            Some(secrets) => tenants.push((name, secrets)),
            None => {
                let message = "must be a secret, a list of secrets, or { value = \"…\", until = \"…\" } (not shown)";
                problems.push((Some(name), message.to_owned()));
            }
        }
    }
    if problems.is_empty() { Ok(tenants) } else { Err(problems) }
}

fn secrets(value: Value) -> Option<Vec<SecretSpec>> {
    match value.try_into().ok()? {
        Written::One(secret) => Some(vec![secret]),
        Written::Many(secrets) => Some(secrets).filter(|secrets| !secrets.is_empty()),
    }
}

fn table(path: &str) -> Result<Table, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    only_its_owner(&about)?;
    let mut text = String::new();
    let length = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if length as u64 > FILE_BYTES_MAX {
        return Err(format!("has more than {FILE_BYTES_MAX} bytes"));
    }
    // the parser's own words could quote a secret
    text.parse::<Table>().map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        format!("is not TOML at line {line}: write lines such as NAME = \"secret\"")
    })
}

#[cfg(unix)]
fn only_its_owner(about: &std::fs::Metadata) -> Result<(), String> {
    let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(format!("others than its owner may read or change (mode {mode:o}): chmod 600"))
}

#[cfg(not(unix))]
fn only_its_owner(_: &std::fs::Metadata) -> Result<(), String> {
    Ok(())
}
