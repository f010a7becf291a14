//! A picture as a page of its own: it carries everything it shows, asks no network, and works by mouse and keys.

use super::Picture;
use super::marks::{Mark, STYLE};
use super::svg::safe;

const PAGE: &str = include_str!("page.html");
const LOOKS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of a picture.
pub(in super::super) fn page(picture: &Picture) -> Result<String, serde_json::Error> {
    let marks: Vec<_> = Mark::ALL.iter().map(|mark| (mark.class(), mark.word(), mark.path())).collect();
    let data = serde_json::to_string(&serde_json::json!({ "picture": picture, "marks": marks }))?;
    // Inside of a script element only `</` could end it; U+2028 and U+2029 are line ends to old readers.
    let data = data.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    let parts = [
        ("{{title}}", safe(&picture.title)),
        ("{{style}}", format!("{STYLE}\n{LOOKS}")),
        ("{{data}}", data),
        ("{{script}}", SCRIPT.to_owned()),
    ];
    let mut page = String::with_capacity(PAGE.len() + parts.iter().map(|(_, text)| text.len()).sum::<usize>());
    let mut rest = PAGE;
    // Each part stands once and in this order, so what is put in is never looked into.
    for (place, text) in &parts {
        if let Some((before, after)) = rest.split_once(place) {
            page.push_str(before);
            page.push_str(text);
            rest = after;
        }
    }
    page.push_str(rest);
    Ok(page)
}
