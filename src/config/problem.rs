//! One thing wrong with the settings: where, what was found, what is allowed, what to do.

use std::fmt;

/// One configuration problem. Its text never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the setting, such as `server.listen`.
    pub key: String,
    /// What is wrong and what to do, to be read after the key.
    pub message: String,
}

impl Problem {
    /// A problem with one setting.
    #[must_use]
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.key, self.message)
    }
}
