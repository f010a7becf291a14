//! Pictures: well-formed, bounded, of their own, and the same for the same seed.

use std::fs;

use super::{folder, passed, simulate, stderr};

fn picture(arguments: &[&str], option: &str, name: &str) -> String {
    let folder = folder();
    let all: Vec<&str> = arguments.iter().copied().chain([option, name]).collect();
    passed(folder.path(), &all);
    fs::read_to_string(folder.path().join(name)).expect("a picture")
}

#[test]
fn a_drawing_is_whole_and_asks_nothing_of_anybody() {
    let svg = picture(&["reorder-storm", "--seed", "3"], "--plot", "run.svg");
    let doc = well_formed(&svg);
    assert!(doc > 200, "{doc} elements");
    for part in [
        "viewBox=",
        "prefers-color-scheme:dark",
        "reorder-storm, seed 3",
        ">applied</text>",
        ">stale</text>",
        ">waits</text>",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    assert_eq!(svg.matches("class=\"name\"").count(), 6, "as many resources as fit");
    assert!(svg.contains("more resources are not drawn"));
    assert_eq!(svg.matches("http").count(), 1, "the name of the format and no other address");
    assert_eq!(svg, picture(&["reorder-storm", "--seed", "3"], "--plot", "run.svg"));
}

#[test]
fn a_page_carries_everything_it_shows() {
    let page = picture(&["lossy-sequence", "--seed", "2"], "--html", "run.html");
    for part in
        ["Content-Security-Policy", "default-src 'none'", "prefers-color-scheme:dark", "aria-live", "\"holds\":[{"]
    {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["src=", "href=\"http", "url(http", "@import", "fetch("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let (_, rest) = page.split_once("id=\"data\">").expect("its data");
    let (data, _) = rest.split_once("</script>").expect("an end");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["picture"]["passed"], true);
    assert!(data["picture"]["panels"].as_array().is_some_and(|panels| panels.len() > 3));
}

#[test]
fn one_resource_is_drawn_by_its_name() {
    let svg = picture(&["lossy-sequence", "--seed", "2", "--resource", "order/o1"], "--plot", "run.svg");
    assert_eq!(svg.matches("class=\"name\"").count(), 1);
    assert!(svg.contains(">order/o1<"));
}

#[test]
fn a_place_that_cannot_be_written_to_is_told() {
    let folder = folder();
    let output = simulate(folder.path(), &["gentle", "--plot", "no/such/folder/run.svg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no/such/folder/run.svg` cannot be written"), "{}", stderr(&output));
}

/// Reads XML far enough to know that every element is closed and every text is a text; gives their number.
fn well_formed(xml: &str) -> usize {
    let (mut open, mut count): (Vec<&str>, usize) = (Vec::new(), 0);
    for part in xml.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("an element without an end: {part}"));
        assert!(!text.contains('&') || text.contains(';'), "{text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{part}");
        } else {
            count += 1;
            if !tag.ends_with('/') {
                open.push(tag.split_whitespace().next().unwrap_or_default());
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    count
}
