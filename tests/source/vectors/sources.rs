//! Every scheme of the vectors as a `verify` table: no sender needs code.

use serde_json::Value;

use super::vector::Vector;

/// A source in TOML.
pub(crate) struct Described {
    pub(crate) text: String,
    /// The vector's secret is what its key's owner answers.
    pub(crate) fetched: bool,
}

const SNS: &str = r#"
[verify]
scheme = "rsa-pkcs1-sha256"
from = "body:/Signature"
encoding = "base64"
partial = true
methods = { from = "body:/SignatureVersion", allow = { "1" = "rsa-pkcs1-sha1", "2" = "rsa-pkcs1-sha256" } }
certificate = { from = "body:/SigningCertURL", hosts = ["sns.*.amazonaws.com", "sns.*.amazonaws.com.cn"], suffix = ".pem" }
require = [{ from = "body:/TopicArn", is = "{config:topic_arn}" }]
[verify.signed]
from = "body:/Type"
[verify.signed.when]
Notification = "{lines:Message,MessageId,Subject?,Timestamp,TopicArn,Type}"
SubscriptionConfirmation = "{lines:Message,MessageId,SubscribeURL,Timestamp,Token,TopicArn,Type}"
"#;

const PAYPAL: &str = r#"scheme = "rsa-pkcs1-sha256", header = "paypal-transmission-sig", encoding = "base64",
    signed = "{header:paypal-transmission-id}|{header:paypal-transmission-time}|{config:webhook_id}|{body.crc32}",
    require = [{ from = "header:paypal-auth-algo", is = "SHA256withRSA" }],
    certificate = { from = "header:paypal-cert-url", hosts = ["api.paypal.com", "api.sandbox.paypal.com"] }"#;

const ADYEN: &str = r#"scheme = "hmac-sha256", each = "body:/notificationItems/*/NotificationRequestItem",
    from = "item:/additionalData/hmacSignature", encoding = "base64", secret = "hex", partial = true,
    signed = "{item:/pspReference?}:{item:/originalReference?}:{item:/merchantAccountCode?}:{item:/merchantReference?}:{item:/amount/value?}:{item:/amount/currency?}:{item:/eventCode?}:{item:/success?}""#;

const MAILGUN: &str = r#"scheme = "hmac-sha256", from = ["body:/signature/signature", "form:signature"],
    timestamp = ["body:/signature/timestamp", "form:timestamp"], id = ["body:/signature/token", "form:token"],
    signed = "{timestamp}{id}", partial = true"#;

const TWILIO: &str = r#"header = "x-twilio-signature", encoding = "base64", signed = "{url}{form.sorted}", any_port = true,
    body_hash = "query:bodySHA256""#;

/// What a scheme's table says besides window, origin and the vector's own settings.
fn table(vector: &Vector) -> String {
    let bare = |scheme: &str, header: &str, rest: &str| format!("scheme = '{scheme}', header = '{header}'{rest}");
    let sha256 = |header: &str| bare("hmac-sha256", header, "");
    let base64 = |header: &str| bare("hmac-sha256", header, ", encoding = 'base64'");
    let prefix =
        |header: &str, rest: &str| bare("hmac-sha256", header, &format!(", format = {{ prefix = 'sha256=' }}{rest}"));
    let pairs = |header: &str, rest: &str| {
        let rest = format!(
            ", format = {{ pairs = {{ names = ['v1'] }} }}, timestamp = 'pair:t', signed = '{{timestamp}}.{{body}}'{rest}"
        );
        bare("hmac-sha256", header, &rest)
    };
    match vector.scheme.as_str() {
        "hmac-sha256-raw" => bare("hmac-sha256", "x-signature", ", secret = 'hex'"),
        "ed25519-raw" => bare("ed25519", "x-signature", ", secret = 'hex'"),
        "standard-webhooks-v1-utf8key" => "scheme = 'standard-webhooks', secret = 'utf8'".to_owned(),
        "gitlab-token" => bare("token", "x-gitlab-token", ""),
        "telegram" | "handshake/telegram" => bare("token", "x-telegram-bot-api-secret-token", ""),
        "flutterwave-v3" => bare("token", "verif-hash", ""),
        "auth-header" => bare("token", "authorization", ""),
        "figma-passcode" => "scheme = 'token', from = 'body:/passcode'".to_owned(),
        "query-token" => "scheme = 'token', from = 'query:token'".to_owned(),
        "basic-auth" => "scheme = 'basic'".to_owned(),
        "msgraph-clientstate" => "scheme = 'token', each = 'body:/value/*', from = 'item:/clientState'".to_owned(),
        "github-sha1" | "intercom" => bare("hmac-sha1", "x-hub-signature", ", format = { prefix = 'sha1=' }"),
        "github-sha256" | "meta-sha256" | "meta" => prefix("x-hub-signature-256", ""),
        "bitbucket" | "jira" => prefix("x-hub-signature", ""),
        "mollie-nextgen" => prefix("x-mollie-signature", ""),
        "notion" => prefix("x-notion-signature", ""),
        "typeform" => prefix("typeform-signature", ", encoding = 'base64'"),
        "twitter" => prefix("x-twitter-webhooks-signature", ", encoding = 'base64'"),
        "woocommerce" => base64("x-wc-webhook-signature"),
        "flutterwave-v4" => base64("flutterwave-signature"),
        "heroku" => base64("heroku-webhook-hmac-sha256"),
        "xero" | "handshake/xero-itr" => base64("x-xero-signature"),
        "line" => base64("x-line-signature"),
        "lemonsqueezy" => sha256("x-signature"),
        "coinbase-commerce" => sha256("x-cc-webhook-signature"),
        "dropbox" => sha256("x-dropbox-signature"),
        "asana" => sha256("x-hook-signature"),
        "razorpay" => sha256("x-razorpay-signature"),
        "nylas" => sha256("x-nylas-signature"),
        "gocardless" => sha256("webhook-signature"),
        "checkout" => sha256("cko-signature"),
        "smartcar" => sha256("sc-signature"),
        "sentry" => "scheme = 'hmac-sha256', header = ['sentry-hook-signature', 'sentry-app-signature']".to_owned(),
        "paystack" => bare("hmac-sha512", "x-paystack-signature", ""),
        "vercel" => bare("hmac-sha1", "x-vercel-signature", ""),
        "segment" => bare("hmac-sha1", "x-signature", ""),
        "tebex" => bare("hmac-sha256", "x-signature", ", signed = '{body.sha256hex}'"),
        "adyen-body" => bare("hmac-sha256", "hmacsignature", ", encoding = 'base64', secret = 'hex'"),
        "airtable" => bare("hmac-sha256", "x-airtable-content-mac", ", format = { prefix = 'hmac-sha256=' }, secret = 'base64'"),
        "docusign" => base64("x-docusign-signature-*"),
        "pagerduty" => bare("hmac-sha256", "x-pagerduty-signature", ", format = { pairs = { names = ['v1'] } }"),
        "linear" => bare("hmac-sha256", "linear-signature", ", timestamp = 'body:/webhookTimestamp', unit = 'ms'"),
        "slack-v0" => slack("x-slack-signature", "x-slack-request-timestamp"),
        "zoom-v0" => slack("x-zm-signature", "x-zm-request-timestamp"),
        "zendesk" => timed("x-zendesk-webhook-signature", "x-zendesk-webhook-signature-timestamp", "{timestamp}{body}", "encoding = 'base64', unit = 'iso'"),
        "hubspot-v3" => timed("x-hubspot-signature-v3", "x-hubspot-request-timestamp", "{method}{url.hubspot}{body}{timestamp}", "encoding = 'base64', unit = 'ms'"),
        "revolut" => timed("revolut-signature", "revolut-request-timestamp", "v1.{timestamp}.{body}", "format = { pairs = { names = ['v1'] } }, unit = 'ms'"),
        "cashfree" => timed("x-webhook-signature", "x-webhook-timestamp", "{timestamp}{body}", "encoding = 'base64', unit = 'ms'"),
        "airwallex" => timed("x-signature", "x-timestamp", "{timestamp}{body}", "unit = 'ms'"),
        "twitch" | "handshake/twitch-callback" => timed(
            "twitch-eventsub-message-signature",
            "twitch-eventsub-message-timestamp",
            "{id}{timestamp}{body}",
            "id = 'twitch-eventsub-message-id', unit = 'iso', format = { prefix = 'sha256=' }",
        ),
        "box" => timed(
            "box-signature-primary",
            "box-delivery-timestamp",
            "{body}{timestamp}",
            "also_header = ['box-signature-secondary'], encoding = 'base64', unit = 'iso', require = [{ from = 'header:box-signature-version', is = '1' }]",
        ),
        "calendly" => pairs("calendly-webhook-signature", ""),
        "mux" => pairs("mux-signature", ""),
        "workos" => pairs("workos-signature", ", unit = 'ms'"),
        "sanity" => pairs("sanity-webhook-signature", ", unit = 'ms', encoding = 'base64url'"),
        "stripe-v1" => pairs("stripe-signature", ""),
        "paddle-billing" => bare("hmac-sha256", "paddle-signature", ", format = { pairs = { separator = ';', names = ['h1'] } }, timestamp = 'pair:ts', signed = '{sig:ts}:{body}'"),
        "persona" => bare("hmac-sha256", "persona-signature", ", format = { pairs = { names = ['v1'], groups = ' ' } }, timestamp = 'pair:t', signed = '{timestamp}.{body}'"),
        "recurly" => bare("hmac-sha256", "recurly-signature", ", format = { list = {} }, timestamp = 'first', signed = '{timestamp}.{body}', unit = 'ms'"),
        "worldpay" => bare("hmac-sha256", "event-signature", ", format = { entries = { parts = '/', layout = ['*', 'SHA256', '{signature}'] } }"),
        "braintree" => "scheme = 'hmac-sha1', from = 'form:bt_signature', secret = 'sha1-utf8', partial = true, \
             format = { entries = { separator = '&', parts = '|', layout = ['{config:public_key}', '{signature}'] } }, \
             signed = [\"{form:bt_payload}\", \"{form:bt_payload}\\n\"]"
            .to_owned(),
        "websub" => bare("hmac-sha256", "x-hub-signature", ", methods = { from = 'prefix', allow = { 'sha1=' = 'hmac-sha1', 'sha256=' = 'hmac-sha256', 'sha384=' = 'hmac-sha384', 'sha512=' = 'hmac-sha512' } }"),
        "twilio-form" | "twilio-json" => format!("scheme = 'hmac-sha1', {TWILIO}"),
        "twilio-form-sha256" => format!("scheme = 'hmac-sha256', {TWILIO}, require = [{{ from = 'header:x-twilio-webhooks-signature-settings', is = '*algorithm=HMAC_SHA256' }}]"),
        "mandrill" => bare("hmac-sha1", "x-mandrill-signature", ", encoding = 'base64', signed = '{url}{form.sorted}'"),
        "square" => bare("hmac-sha256", "x-square-hmacsha256-signature", ", encoding = 'base64', signed = '{url}{body}'"),
        "trello" => bare("hmac-sha1", "x-trello-webhook", ", encoding = 'base64', signed = '{body}{url}'"),
        "hubspot-v1" => bare("digest-sha256", "x-hubspot-signature", ", signed = '{secret}{body}'"),
        "hubspot-v2" => bare("digest-sha256", "x-hubspot-signature", ", signed = '{secret}{method}{url}{body}'"),
        "mailgun" | "mailgun-form" => MAILGUN.to_owned(),
        "adyen-item" => ADYEN.to_owned(),
        "discord" | "handshake/discord-interaction-ping" | "handshake/discord-event-ping" => {
            bare("ed25519", "x-signature-ed25519", ", secret = 'hex', timestamp = 'header:x-signature-timestamp', signed = '{timestamp}{body}'")
        }
        "telnyx" => bare("ed25519", "telnyx-signature-ed25519", ", encoding = 'base64', secret = 'base64', timestamp = 'header:telnyx-timestamp', signed = '{timestamp}|{body}'"),
        "sendgrid" => bare("ecdsa-p256-sha256", "x-twilio-email-event-webhook-signature", ", encoding = 'base64', secret = 'spki', timestamp = 'header:x-twilio-email-event-webhook-timestamp', signed = '{timestamp}{body}'"),
        "paddle-classic" => "scheme = 'rsa-pkcs1-sha1', from = 'form:p_signature', encoding = 'base64', secret = 'pem', signed = '{form.php}'".to_owned(),
        "paypal" => PAYPAL.to_owned(),
        "contentful" => "scheme = 'contentful'".to_owned(),
        "plaid-jwt" => bare("jwt-es256", "plaid-verification", ", body_hash = 'claim:request_body_sha256'"),
        "rfc9421" => message(vector),
        other => panic!("no source for {other}"),
    }
}

fn slack(header: &str, time: &str) -> String {
    timed(header, time, "v0:{timestamp}:{body}", "format = { prefix = 'v0=' }")
}

fn timed(header: &str, time: &str, signed: &str, rest: &str) -> String {
    format!("scheme = 'hmac-sha256', header = '{header}', timestamp = 'header:{time}', signed = '{signed}', {rest}")
}

fn message(vector: &Vector) -> String {
    let algorithm = vector.cfg["alg"].as_str().expect("an algorithm");
    let components = vector.cfg.get("required_components").unwrap_or(&Value::Null);
    let components = if components.is_null() { "[]".to_owned() } else { components.to_string() };
    let partial = if components.contains("content-digest") { "" } else { ", partial = true" };
    format!(
        "scheme = 'http-signature', algorithm = '{algorithm}', secret = 'base64', components = {components}{partial}"
    )
}

/// The source of a vector.
pub(crate) fn of(vector: &Vector) -> Described {
    let preset = match vector.scheme.as_str() {
        "standard-webhooks-v1" | "standard-webhooks-v1a" => Some("standard-webhooks"),
        "svix-v1" => Some("svix"),
        "stripe-v1" if vector.policy.is_none() => Some("stripe"),
        "github-sha256" if vector.policy.is_none() => Some("github"),
        "shopify" | "shopify-events" => Some("shopify"),
        "handshake/slack-url-verification" => Some("slack"),
        _ => None,
    };
    if let Some(preset) = preset {
        return Described { text: format!("preset = '{preset}'"), fetched: false };
    }
    if vector.scheme == "aws-sns" || vector.scheme == "handshake/sns-confirm" {
        let config = "config = { topic_arn = 'arn:aws:sns:*' }";
        return Described { text: format!("{config}\nkey = 'body:/MessageId'\n{SNS}"), fetched: true };
    }
    let mut verify = table(vector);
    if vector.policy.as_deref() == Some("strict-lower-hex") {
        verify.push_str(", encoding = 'hex-lower'");
    }
    // a source may have an origin that it does not use
    verify.push_str(&format!(", origin = '{}'", vector.origin()));
    match vector.tolerance {
        Some(seconds) => verify.push_str(&format!(", window = '{seconds}s'")),
        None if verify.contains("timestamp = ") => verify.push_str(", window = '24h'"),
        None => {}
    }
    let config = ["webhook_id", "public_key"].iter().find_map(|name| Some((name, vector.cfg.get(*name)?.as_str()?)));
    let config = config.map(|(name, text)| format!("config = {{ {name} = '{text}' }}\n")).unwrap_or_default();
    Described {
        text: format!("{config}key = 'raw:sha256'\nverify = {{ {verify} }}"),
        fetched: vector.scheme == "paypal",
    }
}
