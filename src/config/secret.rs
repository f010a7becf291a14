//! Where a secret is kept, and the secret itself once fetched.
//!
//! A secret is named in the settings, never written there: `env:NAME` or `file:/path`. The one exception is
//! `demo:…`, a literal that everybody knows, for sources that only this machine can reach. Problem texts
//! name the place and never the secret.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use secrecy::{ExposeSecret as _, SecretString};

/// The most bytes a secret's file may have.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Environment variables by name.
pub type Environment = BTreeMap<String, String>;

/// Where a secret is kept.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum SecretRef {
    /// In an environment variable.
    Env(String),
    /// In a file; one line end at its end does not count.
    File(PathBuf),
    /// Here, for all to see.
    Demo(String),
}

impl SecretRef {
    /// Reads `env:NAME`, `file:/path` or `demo:…`; anything else might be the secret itself.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "env" if !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                Some(Self::Env(rest.to_owned()))
            }
            "file" if !rest.is_empty() => Some(Self::File(PathBuf::from(rest))),
            "demo" if !rest.is_empty() => Some(Self::Demo(rest.to_owned())),
            _ => None,
        }
    }

    pub(crate) fn is_demo(&self) -> bool {
        matches!(self, Self::Demo(_))
    }

    /// Fetches the secret; the error is to be read after the setting's key.
    pub(crate) fn resolve(&self, environment: &Environment) -> Result<SecretString, String> {
        let (secret, place) = match self {
            Self::Env(name) => {
                let secret = environment.get(name).cloned();
                let missing =
                    || format!("names the environment variable {name}, which is not set: set it and start again");
                (secret.ok_or_else(missing)?, format!("the environment variable {name}"))
            }
            Self::File(path) => {
                let place = format!("the file {}", path.display());
                let text = read_file(path).map_err(|error| format!("names {place}, which cannot be read: {error}"))?;
                (text, place)
            }
            Self::Demo(literal) => (literal.clone(), "the demo secret".to_owned()),
        };
        check(secret, &place)
    }
}

/// The value of a header to send: a text, or a secret by its place, also behind a word (`Bearer env:NAME`).
pub(crate) struct HeaderRef {
    before: String,
    secret: Option<SecretRef>,
}

impl HeaderRef {
    /// Reads a value; the error is to be read after the setting's key.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let (before, last) = text.rsplit_once(' ').map_or(("", text), |(before, last)| (before, last));
        let secret = SecretRef::parse(last).filter(|secret| !secret.is_demo());
        if secret.is_some() {
            let before = if before.is_empty() { String::new() } else { format!("{before} ") };
            return Ok(Self { before, secret });
        }
        let name = name.to_ascii_lowercase();
        let credential =
            ["auth", "token", "secret", "key", "cookie", "password"].iter().any(|word| name.contains(word));
        if credential {
            let message = "may hold a secret (not shown): write \"env:NAME\", \"file:/path\", or a word before it such as \
                           \"Bearer env:NAME\"";
            return Err(message.to_owned());
        }
        Ok(Self { before: text.to_owned(), secret: None })
    }

    /// The whole value; the error is to be read after the setting's key.
    pub(crate) fn resolve(&self, environment: &Environment) -> Result<SecretString, String> {
        let secret = self.secret.as_ref().map(|secret| secret.resolve(environment)).transpose()?;
        let secret = secret.as_ref().map_or("", |secret| secret.expose_secret());
        let value = SecretString::from(format!("{}{secret}", self.before));
        let fits = |byte: u8| (b' '..=b'~').contains(&byte);
        if value.expose_secret().is_empty() || !value.expose_secret().bytes().all(fits) {
            return Err("cannot be a header's value (not shown): use printable ASCII on one line".to_owned());
        }
        Ok(value)
    }
}

fn read_file(path: &PathBuf) -> std::io::Result<String> {
    let mut text = String::new();
    let length = File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if length as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other("it is longer than 64 KiB, so hardly a secret"));
    }
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// An empty secret verifies anything an attacker signs with nothing; a padded one verifies nothing.
fn check(secret: String, place: &str) -> Result<SecretString, String> {
    let secret = SecretString::from(secret);
    let text = secret.expose_secret();
    if text.trim().is_empty() {
        return Err(format!("is empty: put the secret into {place}"));
    }
    if text.trim() != text {
        return Err(format!("has blanks or line ends around it: take them out of {place}"));
    }
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn resolve(text: &str, environment: &[(&str, &str)]) -> Result<String, String> {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let reference = SecretRef::parse(text).ok_or("no reference")?;
        reference.resolve(&environment).map(|secret| secret.expose_secret().to_owned())
    }

    #[test]
    fn a_secret_comes_from_its_variable() {
        assert_eq!(resolve("env:A_1", &[("A_1", "s3cret")]), Ok("s3cret".to_owned()));
        assert!(resolve("env:A_1", &[]).expect_err("not set").contains("A_1, which is not set"));
    }

    #[test]
    fn a_file_may_end_in_one_line_end() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(b"s3cret\r\n").expect("written");
        assert_eq!(resolve(&format!("file:{}", file.path().display()), &[]), Ok("s3cret".to_owned()));
    }

    #[test]
    fn empty_and_padded_secrets_are_refused_without_being_shown() {
        assert!(resolve("env:A", &[("A", "  ")]).expect_err("empty").starts_with("is empty"));
        let padded = resolve("env:A", &[("A", " s3cret")]).expect_err("padded");
        assert!(!padded.contains("s3cret"), "{padded}");
    }

    #[test]
    fn what_might_be_the_secret_itself_is_no_reference() {
        for text in ["whsec_abc", "", "env:", "env:A B", "http://x", "ENV:A"] {
            assert!(SecretRef::parse(text).is_none(), "{text}");
        }
    }
}
