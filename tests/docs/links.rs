//! Links between documents.

use crate::{documents, read, root};

#[test]
fn every_link_leads_to_a_file_and_heading_that_is_there() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = read(&document);
        for target in targets(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
            let path = if file.is_empty() { root().join(&document) } else { root().join(folder).join(file) };
            let inside = path.canonicalize().is_ok_and(|path| path.starts_with(root().canonicalize().unwrap()));
            let found = inside
                && (heading.is_empty() || headings(&std::fs::read_to_string(&path).unwrap()).any(|it| it == heading));
            if !found {
                broken.push(format!("{document}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere, or out of the project:\n{}", broken.join("\n"));
}

fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Anchors of headings, as the usual renderers make them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title
            .chars()
            .filter(|it| it.is_alphanumeric() || "- _".contains(*it))
            .map(|it| if it == ' ' { '-' } else { it })
            .collect()
    })
}

#[test]
fn every_path_on_the_map_is_there() {
    let map = read("ARCHITECTURE.md") + &read("CONTRIBUTING.md");
    let places = ["src/", "actors/", "tests/", "scripts/", "docs/", "examples/"];
    let named = map.split('`').skip(1).step_by(2).filter(|token| places.iter().any(|place| token.starts_with(place)));
    let gone: Vec<&str> = named.filter(|path| !root().join(path).exists()).collect();
    assert!(gone.is_empty(), "paths in ARCHITECTURE.md or CONTRIBUTING.md that lead nowhere: {gone:?}");
}

/// The tree in ARCHITECTURE.md: each line indented by two blanks a level, names, two blanks or more, what they are.
fn tree() -> Vec<String> {
    let map = read("ARCHITECTURE.md");
    let tree = map.split("## Where things are").nth(1).and_then(|rest| rest.split("```").nth(1)).expect("a tree");
    let mut folders: Vec<&str> = Vec::new();
    let mut paths = Vec::new();
    for line in tree.lines().skip(1) {
        let names = line.trim_start();
        folders.truncate((line.len() - names.len()) / 2);
        let above = folders.concat();
        let (names, _) = names.split_once("  ").unwrap_or((names, ""));
        paths.extend(names.split(", ").map(|name| format!("{above}{name}")));
        folders.push(names);
    }
    paths
}

/// Every file and folder below these, folders with `/` at their end.
fn below(folder: &str) -> Vec<String> {
    crate::names(folder)
        .into_iter()
        .flat_map(|name| {
            if root().join(&name).is_dir() {
                let folder = format!("{name}/");
                let inside = below(&folder);
                [vec![folder], inside].concat()
            } else {
                vec![name]
            }
        })
        .collect()
}

#[test]
fn the_map_shows_every_file_and_folder_and_nothing_else() {
    let tree = tree();
    let gone: Vec<&String> = tree.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(gone.is_empty(), "on the map, and nowhere else: {gone:?}");
    let places = ["actors/src/", "src/", "tests/", "bench/src/", "benches/", "examples/", "docs/", "scripts/"];
    let there = places.iter().flat_map(|place| below(place));
    // A folder whose line says what is in it stands for its files.
    let shown = |path: &String| {
        let folder = &path[..path.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1)];
        let opened = tree.iter().any(|other| other.len() > folder.len() && other.starts_with(folder));
        tree.contains(path) || (!opened && tree.iter().any(|other| path.starts_with(other.as_str())))
    };
    let missing: Vec<String> = there.filter(|path| !shown(path)).collect();
    assert!(missing.is_empty(), "not on the map in ARCHITECTURE.md: {missing:?}");
}

#[test]
fn every_test_that_is_named_is_there() {
    let map = read("ARCHITECTURE.md") + &read("CONTRIBUTING.md");
    let is_name = |token: &&str| {
        let plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
        token.chars().all(plain) && token.matches('_').count() >= 3
    };
    let code: String = ["tests/", "actors/tests/", "actors/src/"]
        .iter()
        .flat_map(|place| below(place))
        .filter(|path| path.ends_with(".rs"))
        .map(|path| read(&path))
        .collect();
    let missing: Vec<&str> = map
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(is_name)
        .filter(|name| !code.contains(&format!("fn {name}(")) && !code.contains(&format!("fn {name}<")))
        .collect();
    assert!(missing.is_empty(), "tests that are named and not there: {missing:?}");
}
