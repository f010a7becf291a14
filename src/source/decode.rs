//! From the text a sender wrote to the JSON that references are read from.

use std::borrow::Cow;

use super::rules::Flaw;
use super::spec::DecodeSpec;
use super::step::from_base64;
use super::xml;

/// The JSON of a text, by what it is written in.
pub(super) fn text(text: Cow<'_, str>, decode: DecodeSpec) -> Result<Cow<'_, str>, Flaw> {
    let unwrapped = match decode {
        DecodeSpec::Json | DecodeSpec::Xml => text,
        DecodeSpec::Base64Json | DecodeSpec::Base64Xml => {
            let reason = "the text is not base64 of UTF-8: correct `decode` of the source, or ask the sender";
            Cow::Owned(from_base64(&text).ok_or_else(|| Flaw::new("body-not-base64", reason))?)
        }
    };
    match decode {
        DecodeSpec::Json | DecodeSpec::Base64Json => Ok(unwrapped),
        DecodeSpec::Xml | DecodeSpec::Base64Xml => match xml::to_json(&unwrapped) {
            Ok(json) => Ok(Cow::Owned(json)),
            Err(fault) => Err(Flaw::new("body-not-xml", format!("the body is not XML as it is read here: {fault}"))),
        },
    }
}

/// The same for a text that nobody has to answer for; `None` where it is not written so.
pub(crate) fn json_of(held: &str, decode: DecodeSpec) -> Option<String> {
    text(Cow::Borrowed(held), decode).ok().map(Cow::into_owned)
}
