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

#[test]
fn the_map_shows_every_folder_and_actor() {
    let map = read("ARCHITECTURE.md");
    let mut missing = Vec::new();
    for folder in ["src/", "actors/src/"] {
        let names = crate::names(folder).into_iter().filter(|name| root().join(name).is_dir());
        missing.extend(names.filter(|name| {
            let owner = format!("{name}.rs");
            !map.contains(&format!("`{name}")) && !map.contains(&format!("`{owner}"))
        }));
    }
    assert!(missing.is_empty(), "not in ARCHITECTURE.md: {missing:?}");
}
