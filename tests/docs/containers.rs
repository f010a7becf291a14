//! The files for containers parse, and agree with the settings and the README. There may be no engine to run
//! them where the tests run.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode as _, Yaml};
use tidegate::config::{Config, DEFAULTS, Environment};

use crate::{names, read, root};

fn yaml(text: &str) -> Yaml<'_> {
    let mut documents = Yaml::load_from_str(text).unwrap();
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

fn texts(list: &Yaml<'_>) -> Vec<String> {
    list.as_vec().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// The settings and secrets that the gate's container gets.
fn environment(compose: &Yaml<'_>) -> BTreeMap<String, String> {
    let variables = compose["services"]["tidegate"]["environment"].as_mapping().unwrap();
    let pairs =
        variables.iter().map(|(name, value)| (name.as_str().unwrap().to_owned(), value.as_str().unwrap().to_owned()));
    pairs.collect()
}

#[test]
fn compose_starts_the_gate_behind_healthy_servers() {
    let text = read("docker-compose.yml");
    let compose = yaml(&text);
    let services = compose["services"].as_mapping().unwrap();
    let mut found: Vec<&str> = services.keys().map(|name| name.as_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, ["postgres", "redis", "tidegate"]);
    for (name, service) in services {
        assert!(service["healthcheck"]["test"].as_vec().is_some(), "{name:?} has a health check");
        let image = service.as_mapping_get("image").and_then(Yaml::as_str);
        assert!(
            image.is_none_or(|image| image.split_once(':').is_some_and(|(_, tag)| tag.starts_with(char::is_numeric)))
        );
    }
    for server in ["postgres", "redis"] {
        assert_eq!(
            compose["services"]["tidegate"]["depends_on"][server]["condition"].as_str(),
            Some("service_healthy")
        );
        assert!(
            services
                .iter()
                .all(|(name, service)| name.as_str() != Some(server) || service.as_mapping_get("ports").is_none())
        );
    }
}

#[test]
fn compose_names_settings_that_exist_and_that_load() {
    let text = read("docker-compose.yml");
    let compose = yaml(&text);
    let mut variables = environment(&compose);
    let defaults: toml::Table = DEFAULTS.parse().unwrap();
    for name in variables.keys().filter_map(|name| name.strip_prefix("TIDEGATE_")) {
        let (section, key) = name.split_once("__").unwrap();
        assert!(defaults[&section.to_lowercase()].get(key.to_lowercase()).is_some(), "{name} is a setting");
    }
    variables.insert("POSTGRES_PASSWORD".into(), "a password".into());
    variables.insert("GITHUB_WEBHOOK_SECRET".into(), "a-long-secret-of-your-own".into());
    let environment: Environment = variables.into_iter().collect();
    let config = Config::load(Some(&root().join("compose.toml")), &environment).unwrap();
    assert!(config.server.listen.to_string().ends_with(":8080"));
    assert!(config.admin.listen.to_string().ends_with(":9090"));
}

#[test]
fn ports_are_the_same_in_settings_image_compose_and_readme() {
    let text = read("docker-compose.yml");
    let compose = yaml(&text);
    let defaults: toml::Table = DEFAULTS.parse().unwrap();
    let port = |section: &str| defaults[section]["listen"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    let (public, admin) = (port("server"), port("admin"));
    let expected = [format!("{public}:{public}"), format!("127.0.0.1:{admin}:{admin}")];
    assert_eq!(texts(&compose["services"]["tidegate"]["ports"]), expected);
    let dockerfile = read("Dockerfile");
    assert!(dockerfile.contains(&format!("EXPOSE {public} {admin}")));
    assert!(dockerfile.contains(&format!("http://127.0.0.1:{admin}/readyz")));
    let readme = read("README.md");
    assert!(
        readme.contains(&format!("127.0.0.1:{public}/in/demo"))
            && readme.contains(&format!("127.0.0.1:{admin}/metrics"))
    );
    assert!(readme.contains(&format!("port {public}")) && readme.contains(&format!("port {admin}")));
}

#[test]
fn the_image_is_built_from_pinned_bases_and_runs_without_rights() {
    let dockerfile = read("Dockerfile");
    let bases: Vec<&str> = dockerfile.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    assert_eq!(bases.len(), 2);
    assert!(
        bases.iter().all(|base| base.split_once(':').is_some_and(|(_, tag)| tag.starts_with(char::is_numeric))),
        "{bases:?}"
    );
    let user = dockerfile.lines().find_map(|line| line.strip_prefix("USER ")).unwrap();
    assert!(user != "root" && !user.starts_with('0'));
    let version = read("Cargo.toml");
    let least =
        version.lines().find_map(|line| line.strip_prefix("rust-version = \"1.")).unwrap().trim_end_matches('"');
    let built = bases[0].split_once("1.").unwrap().1.split_once('-').unwrap().0;
    assert!(built.parse::<u32>().unwrap() >= least.parse::<u32>().unwrap(), "{built} is older than rust-version");
    assert!(!names("").contains(&"rust-toolchain.toml".to_owned()), "a pinned toolchain must agree with the image");
}

#[test]
fn containers_get_longer_to_stop_than_the_gate_takes() {
    let text = read("docker-compose.yml");
    let grace =
        yaml(&text)["services"]["tidegate"]["stop_grace_period"].as_str().unwrap().trim_end_matches('s').to_owned();
    let config = Config::load(None, &Environment::default()).unwrap();
    assert!(grace.parse::<u64>().unwrap() > config.server.drain_within.as_secs());
}

#[test]
fn the_tests_container_has_the_toolchain_of_the_image() {
    let text = read("scripts/lib/compose.yml");
    let compose = yaml(&text);
    let image = compose["services"]["tests"]["image"].as_str().unwrap();
    assert!(read("Dockerfile").contains(&format!("FROM {image} ")));
    assert!(root().join("scripts/test").exists());
}
