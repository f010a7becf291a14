//! The presets: senders described as data, compiled in from `presets/*.toml`, each named and never guessed.

mod samples;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::Table;

use super::Problem;
use super::spec::{SourceSpec, VerifySpec};

macro_rules! texts {
    ($($name:literal)*) => {
        /// Name and text of every preset.
        const TEXTS: &[(&str, &str)] = &[$(($name, include_str!(concat!("presets/", $name, ".toml")))),*];
    };
}

texts! {
    "adyen"
    "adyen-platform"
    "airtable"
    "airwallex"
    "asana"
    "auth0"
    "aws-eventbridge"
    "aws-ses"
    "aws-sns"
    "bigcommerce"
    "bitbucket"
    "box"
    "braintree"
    "brex"
    "buildkite"
    "calcom"
    "calendly"
    "cashfree"
    "chargebee"
    "checkout"
    "circleci"
    "clerk"
    "cloudevents"
    "cloudevents-batch"
    "cloudevents-binary"
    "coinbase-commerce"
    "contentful"
    "customerio"
    "discord"
    "discord-interactions"
    "docusign"
    "dropbox"
    "dwolla"
    "figma"
    "flutterwave"
    "flutterwave-v3"
    "gitea"
    "github"
    "gitlab"
    "gitlab-token"
    "gocardless"
    "heroku"
    "hubspot"
    "hubspot-workflow"
    "intercom"
    "jira"
    "lemonsqueezy"
    "line"
    "linear"
    "linkedin"
    "linkedin-leads"
    "lithic"
    "loops"
    "mailgun"
    "mailgun-inbound"
    "mandrill"
    "meta"
    "microsoft-graph"
    "mollie"
    "monday"
    "mux"
    "notion"
    "nylas"
    "okta"
    "openai"
    "paddle"
    "paddle-classic"
    "pagerduty"
    "paypal"
    "paystack"
    "persona"
    "pipedrive"
    "pipedrive-v1"
    "plaid"
    "polar"
    "postmark"
    "razorpay"
    "recurly"
    "render"
    "replicate"
    "resend"
    "revolut"
    "sanity"
    "segment"
    "sendgrid"
    "sentry"
    "shopify"
    "slack"
    "smartcar"
    "snyk"
    "square"
    "standard-webhooks"
    "strava"
    "stripe"
    "svix"
    "tebex"
    "telegram"
    "telnyx"
    "trello"
    "twilio"
    "twilio-events"
    "twilio-voice"
    "twitch"
    "typeform"
    "vercel"
    "vercel-drain"
    "websub"
    "whatsapp"
    "wise"
    "woocommerce"
    "workos"
    "worldpay"
    "x"
    "x-activity"
    "xero"
    "zendesk"
    "zoom"
}

/// A sender described as data.
#[derive(Clone, Debug)]
pub struct Preset {
    /// What a person who chooses it wants to know.
    pub about: About,
    /// What a source of this sender states by itself.
    spec: SourceSpec,
}

/// What a person who chooses a preset wants to know: the `about` of its file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct About {
    /// The sender's name, as it writes it.
    pub title: String,
    /// The sender's documents of its webhooks.
    pub docs: Vec<String>,
    /// Why its events are ordered as they are, in one sentence.
    pub order: String,
    /// A request of this sender.
    pub sample: Option<Sample>,
}

/// A request as the sender makes it, without its signature.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// The body: a file of `presets/samples`.
    pub file: String,
    /// The `Content-Type`; JSON when left out.
    #[serde(default = "json")]
    pub content_type: String,
    /// The query.
    #[serde(default)]
    pub query: String,
    /// The headers that are no signature.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The event types of a resource's first, second and later versions, where `send` plays more than the file's.
    #[serde(default)]
    pub types: Vec<String>,
}

impl Sample {
    /// The body.
    #[must_use]
    pub fn body(&self) -> &'static [u8] {
        samples::bytes(&self.file).unwrap_or_default()
    }
}

fn json() -> String {
    "application/json".to_owned()
}

static PRESETS: LazyLock<Vec<(&str, Result<Preset, String>)>> =
    LazyLock::new(|| TEXTS.iter().map(|(name, text)| (*name, Preset::parse(text))).collect());

impl Preset {
    fn parse(text: &str) -> Result<Self, String> {
        let mut table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let about = table.remove("about").unwrap_or_else(|| Table::new().into());
        Ok(Self {
            about: about.try_into().map_err(|error| format!("about: {error}"))?,
            spec: table.try_into().map_err(|error| error.to_string())?,
        })
    }
}

/// The names of all presets.
pub fn names() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name)
}

/// A preset as its file has it.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    TEXTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// What there is to know about a preset.
pub fn about(name: &str) -> Option<&'static About> {
    let (_, preset) = PRESETS.iter().find(|(known, _)| *known == name)?;
    preset.as_ref().ok().map(|preset| &preset.about)
}

impl SourceSpec {
    /// This source with the fields it leaves out filled in from its preset.
    pub fn with_preset(&self) -> Result<Self, Problem> {
        let Some(name) = &self.preset else { return Ok(self.clone()) };
        let Some((_, preset)) = PRESETS.iter().find(|(known, _)| known == name) else {
            let known = names().collect::<Vec<_>>().join(", ");
            return Err(Problem::new("preset", format!("is {name:?}, which is none of {known}: correct it")));
        };
        let preset =
            preset.as_ref().map_err(|error| Problem::new("preset", format!("{name:?} is damaged: {error}")))?;
        // a preset may build on another
        Ok(overlay(self.clone(), &preset.spec.with_preset()?))
    }
}

fn overlay(own: SourceSpec, preset: &SourceSpec) -> SourceSpec {
    macro_rules! or_preset {
        ($($field:ident)*) => {
            SourceSpec {
                name: own.name,
                preset: own.preset,
                secrets: own.secrets,
                tenants: own.tenants,
                secrets_file: own.secrets_file,
                setup: own.setup,
                config: preset.config.clone().into_iter().chain(own.config).collect(),
                verify: overlay_verify(own.verify, preset.verify.as_ref()),
                $($field: own.$field.or_else(|| preset.$field.clone()),)*
            }
        };
    }
    or_preset!(
        allow_weak_secret batch batch_items key kind tenant resource version on_missing_version order merge state epoch_on
        effect_key refetch types pings delete also narrow
        form_json decode digest_without keep_headers on_unusable config_help handshake max_body content_encoding content_types answer rate
    )
}

/// A `verify` table with a scheme of its own stands alone; one without changes the preset's.
fn overlay_verify(own: Option<VerifySpec>, preset: Option<&VerifySpec>) -> Option<VerifySpec> {
    let (own, preset) = match (own, preset) {
        (Some(own), Some(preset)) if own.scheme.is_none() => (own, preset),
        (own, preset) => return own.or_else(|| preset.cloned()),
    };
    macro_rules! or_preset {
        ($($field:ident)*) => {
            VerifySpec { $($field: own.$field.or_else(|| preset.$field.clone()),)* }
        };
    }
    Some(or_preset!(
        scheme header also_header from format encoding signed timestamp unit window sides id secret secret_prefix
        key_prefix origin any_port each require body_hash partial methods certificate keys algorithm components
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_whole() {
        for name in names() {
            let spec = SourceSpec { preset: Some(name.to_owned()), ..SourceSpec::default() };
            let spec = spec.with_preset().expect("a preset");
            assert!(spec.verify.is_some() && spec.key.is_some() && spec.kind.is_some(), "{name}");
            assert!(spec.name.is_empty() && spec.secrets.is_empty(), "{name} states what is the source's own");
        }
    }

    #[test]
    fn every_preset_tells_its_sender_its_documents_and_why_its_events_are_ordered_so() {
        for name in names() {
            let about = about(name).expect("a preset");
            let spec = SourceSpec { preset: Some(name.to_owned()), ..SourceSpec::default() };
            let policies = spec.with_preset().expect("a preset").policies();
            assert!(!about.title.trim().is_empty(), "{name}: `about.title` is the sender's name");
            assert!(about.sample.is_some(), "{name}: `about.sample` is one of the sender's requests");
            let https = about.docs.iter().all(|address| address.starts_with("https://"));
            assert!(https && !about.docs.is_empty(), "{name}: `about.docs` are addresses of the sender's documents");
            let because = policies.iter().any(|policy| about.order.contains(&format!("`{policy}`")));
            assert!(because, "{name}: `about.order` says in one sentence why {policies:?} fit");
        }
    }

    #[test]
    fn own_fields_win_and_a_verify_table_without_a_scheme_changes_only_what_it_states() {
        let own: SourceSpec =
            toml::from_str("preset = 'stripe'\nkey = 'body:/x'\nverify = { window = '10m' }").expect("TOML");
        let spec = own.with_preset().expect("a preset");
        assert_eq!(spec.key, own.key);
        let verify = spec.verify.expect("a verify table");
        assert_eq!(verify.window.map(|window| window.0.as_secs()), Some(600));
        assert!(verify.format.is_some() && verify.scheme.is_some());
    }

    #[test]
    fn an_unknown_preset_names_the_known_ones() {
        let spec = SourceSpec { preset: Some("strype".to_owned()), ..SourceSpec::default() };
        assert!(spec.with_preset().expect_err("a problem").to_string().contains("stripe"));
    }
}
