//! References, as far as `send` knows where they read: which of a reference's choices can be written.

/// Where a text can be put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Header(String),
    Query(String),
    /// A field of a form.
    Field(String),
    /// A place in the JSON that a form's field holds.
    FieldJson(String, String),
    Body(String),
    /// In the one item of a batch, and in the outer item around it.
    Item(String),
    Outer(String),
}

/// One of the choices of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// What stands at a place.
    At(Place),
    /// The name, where something stands at the place.
    Has(Place, String),
    /// The text itself.
    Literal(String),
    /// The event's type, or its stem.
    Kind,
    Stem,
    /// Whatever is sent: another body is another text.
    Digest,
    /// Of itself another for each delivery.
    Unique,
    /// A text of the source's own.
    Own,
}

/// The choices of a reference, the first that is there counts.
pub(super) fn choices(reference: &str) -> Vec<Choice> {
    reference.split(" | ").filter_map(|choice| read(choice.trim())).collect()
}

fn read(choice: &str) -> Option<Choice> {
    let Some((of, rest)) = choice.split_once(':') else {
        return match choice {
            "type" => Some(Choice::Kind),
            "digest" => Some(Choice::Digest),
            "unique" => Some(Choice::Unique),
            "index" => Some(Choice::Own),
            _ => None,
        };
    };
    Some(match (of, rest) {
        ("type", "stem") => Choice::Stem,
        ("digest" | "raw", _) => Choice::Digest,
        ("literal", text) => Choice::Literal(text.to_owned()),
        ("config", _) => Choice::Own,
        ("has", of) => {
            let name = of.rsplit('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~");
            let (of, pointer) = of.split_once(':')?;
            Choice::Has(place(of, pointer)?, name)
        }
        _ => Choice::At(place(of, rest)?),
    })
}

fn place(of: &str, rest: &str) -> Option<Place> {
    Some(match of {
        "header" => Place::Header(rest.to_ascii_lowercase()),
        "query" => Place::Query(rest.to_owned()),
        "body" => Place::Body(rest.to_owned()),
        "item" => Place::Item(rest.to_owned()),
        "outer" => Place::Outer(rest.to_owned()),
        "form" => match rest.split_once(":/") {
            Some((field, pointer)) => Place::FieldJson(field.to_owned(), format!("/{pointer}")),
            None => Place::Field(rest.to_owned()),
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_told_apart() {
        let reference = "type:stem | literal:a:b | has:body:/edited_message | form:payload:/id | header:X-Id";
        let field = Place::FieldJson("payload".to_owned(), "/id".to_owned());
        let expected = [
            Choice::Stem,
            Choice::Literal("a:b".to_owned()),
            Choice::Has(Place::Body("/edited_message".to_owned()), "edited_message".to_owned()),
            Choice::At(field),
            Choice::At(Place::Header("x-id".to_owned())),
        ];
        assert_eq!(choices(reference), expected);
    }
}
