//! Handshakes on their way out: what is to be done before the answer, and the answer.
//!
//! Promises that an address is fetched and a secret is written down before the sender hears a 2xx, and that a
//! secret already written is never replaced. Knows nothing of what a handshake is. What fails is a 503, so that
//! the sender asks again.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use actix_web::HttpResponse;
use secrecy::{ExposeSecret as _, SecretString};
use tracing::{info, warn};

use super::answer;
use super::ingest::{TurnedAway, away};
use super::problem;
use super::public::{Edge, Entrance};
use crate::source::{Greeted, Greeting, Source};
use crate::telemetry::{Happening, emit};

/// Answers a handshake.
pub(super) async fn answer(
    edge: &Edge,
    entrance: &Entrance,
    source: &Arc<Source>,
    greeting: Greeting,
) -> Result<HttpResponse, TurnedAway> {
    let greeted = match greeting {
        Greeting::Answer(greeted) => greeted,
        Greeting::Refused { status: 400, why, .. } => return Err(away(why, &problem::HANDSHAKE_MALFORMED)),
        Greeting::Refused { status: 404, why, .. } => return Err(away(why, &problem::HANDSHAKE_UNKNOWN)),
        Greeting::Refused { why, .. } => return Err(away(why, &problem::HANDSHAKE_REFUSED)),
    };
    if let Some(url) = &greeted.get
        && let Err(why) = edge.gate.confirm.get(url).await
    {
        emit(ConfirmationFailed { source, url, why: &why });
        return Err(away("handshake-unfinished", &problem::HANDSHAKE_UNFINISHED));
    }
    if let Some(secret) = &greeted.learn {
        learn(source, secret).await?;
    }
    emit(HandshakeAnswered { source, entrance, greeted: &greeted });
    Ok(answer::handshake(*greeted))
}

/// Writes a secret down where nobody but the owner of this process reads it; not in the log, not in the store.
async fn learn(source: &Arc<Source>, secret: &SecretString) -> Result<(), TurnedAway> {
    let refused = away("handshake-refused", &problem::HANDSHAKE_REFUSED);
    let Some(path) = source.setup().map(Path::to_owned) else { return Err(refused) };
    let (to, secret) = (path.clone(), secret.clone());
    let written = actix_web::web::block(move || write_once(&to, secret.expose_secret())).await;
    let unfinished = away("handshake-unfinished", &problem::HANDSHAKE_UNFINISHED);
    match written {
        Ok(Ok(())) => {
            emit(SecretLearned { source, path: &path });
            Ok(())
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
            emit(SecretNotLearned { source, path: &path, why: "the file is there already, and is never replaced" });
            Err(refused)
        }
        Ok(Err(error)) => {
            emit(SecretNotLearned { source, path: &path, why: &error.to_string() });
            Err(unfinished)
        }
        Err(_) => Err(unfinished),
    }
}

/// Makes a file that only its owner reads; one that is there is left as it is.
fn write_once(path: &Path, secret: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let written = file.write_all(secret.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // half a secret is none, and would stand in the way of the whole one
        let _ = std::fs::remove_file(path);
    }
    written
}

/// A handshake was answered; nothing is kept.
struct HandshakeAnswered<'a> {
    source: &'a Source,
    entrance: &'a Entrance,
    greeted: &'a Greeted,
}

impl Happening for HandshakeAnswered<'_> {
    fn emit(self) {
        self.entrance.figures.handshakes.inc();
        info!(source = &**self.source.name(), handshake = &*self.greeted.name, "a handshake was answered");
    }
}

/// An address that a handshake names could not be fetched.
struct ConfirmationFailed<'a> {
    source: &'a Source,
    url: &'a str,
    why: &'a str,
}

impl Happening for ConfirmationFailed<'_> {
    fn emit(self) {
        // the query holds a token
        let address = self.url.split('?').next().unwrap_or_default();
        warn!(
            source = &**self.source.name(),
            address,
            why = self.why,
            "the address of a handshake could not be fetched"
        );
    }
}

/// A secret came in a handshake and is written down.
struct SecretLearned<'a> {
    source: &'a Source,
    path: &'a Path,
}

impl Happening for SecretLearned<'_> {
    fn emit(self) {
        let (source, file) = (&**self.source.name(), self.path.display());
        warn!(source, %file, "a secret came in a handshake: name the file in `secrets`, take `setup` out, start again");
    }
}

/// A secret came in a handshake and is not written down.
struct SecretNotLearned<'a> {
    source: &'a Source,
    path: &'a Path,
    why: &'a str,
}

impl Happening for SecretNotLearned<'_> {
    fn emit(self) {
        let (source, file) = (&**self.source.name(), self.path.display());
        warn!(source, %file, why = self.why, "a secret came in a handshake and was not taken");
    }
}
