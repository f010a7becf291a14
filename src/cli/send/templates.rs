//! Events in the shape of the senders that presets know: small, realistic, with times that rise by version.

use actix_web::http::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::json_headers;
use super::plan::{Item, Prepared};

/// An event as this preset's sender would make it; `None` where the preset has no shape of its own here.
pub(super) fn event(preset: &str, item: &Item) -> Option<Prepared> {
    match preset {
        "standard-webhooks" | "svix" => Some(contact(item)),
        "stripe" => Some(subscription(item)),
        "github" => Some(issue(item)),
        "shopify" => Some(order(item)),
        "slack" => Some(message(item)),
        _ => None,
    }
}

fn prepared(id: String, kind: &str, body: &Value, headers: &[(&'static str, &str)]) -> Prepared {
    let mut all = json_headers();
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            all.insert(HeaderName::from_static(name), value);
        }
    }
    Prepared { id, kind: kind.to_owned(), headers: all, body: body.to_string().into() }
}

fn contact(item: &Item) -> Prepared {
    let kind = if item.version == 1 { "contact.created" } else { "contact.updated" };
    let body = json!({
        "type": kind,
        "timestamp": item.at(),
        "data": {
            "object": "contact",
            "id": format!("con_{:08x}_{}", item.run, item.resource),
            "email": format!("contact{}@example.com", item.resource),
            "revision": item.version,
        },
    });
    prepared(format!("msg_{}", item.id.simple()), kind, &body, &[])
}

fn subscription(item: &Item) -> Prepared {
    let kind = if item.version == 1 { "customer.subscription.created" } else { "customer.subscription.updated" };
    let id = format!("evt_{}", item.id.simple());
    let name = format!("{:08x}{}", item.run, item.resource);
    let body = json!({
        "id": id,
        "object": "event",
        "api_version": "2025-08-27.basil",
        "created": item.at_s,
        "type": kind,
        "livemode": false,
        "pending_webhooks": 1,
        "request": { "id": format!("req_{:014x}", item.id.as_u128() & 0xff_ffff_ffff_ffff), "idempotency_key": null },
        "data": { "object": {
            "id": format!("sub_{name}"),
            "object": "subscription",
            "customer": format!("cus_{name}"),
            "status": if item.version == 1 { "trialing" } else { "active" },
            "quantity": item.version,
            "metadata": {},
        } },
    });
    prepared(id, kind, &body, &[("user-agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")])
}

fn issue(item: &Item) -> Prepared {
    let action = if item.version == 1 { "opened" } else { "edited" };
    let number = u64::from(item.run) << 20 | u64::from(item.resource) & 0xf_ffff;
    let body = json!({
        "action": action,
        "issue": {
            "id": number,
            "number": item.resource + 1,
            "title": format!("Revision {}", item.version),
            "state": "open",
            "user": { "login": "octocat", "id": 583_231 },
            "updated_at": item.at(),
        },
        "repository": { "id": 1_296_269, "name": "hello-world", "full_name": "octocat/hello-world" },
        "sender": { "login": "octocat", "id": 583_231 },
    });
    let headers = [("x-github-event", "issues"), ("user-agent", "GitHub-Hookshot/0000000")];
    prepared(item.id.to_string(), &format!("issues.{action}"), &body, &headers)
}

fn order(item: &Item) -> Prepared {
    let kind = if item.version == 1 { "orders/create" } else { "orders/updated" };
    let at = item.at();
    // above 2^53, as real ids may be: a reader that goes through a float mixes up neighbours
    let id = 1 << 53 | u64::from(item.run) << 20 | u64::from(item.resource) & 0xf_ffff;
    let body = json!({
        "id": id,
        "admin_graphql_api_id": format!("gid://shopify/Order/{id}"),
        "name": format!("#{}", 1001 + u64::from(item.resource)),
        "currency": "EUR",
        "total_price": format!("{}.00", 10 + u64::from(item.version)),
        "financial_status": if item.version == 1 { "pending" } else { "paid" },
        "updated_at": at,
    });
    let delivery = item.id.to_string();
    let headers = [
        ("x-shopify-topic", kind),
        ("x-shopify-shop-domain", "example.myshopify.com"),
        ("x-shopify-api-version", "2025-10"),
        ("x-shopify-webhook-id", delivery.as_str()),
        ("x-shopify-triggered-at", at.as_str()),
    ];
    prepared(delivery.clone(), kind, &body, &headers)
}

fn message(item: &Item) -> Prepared {
    let id = format!("Ev{:011X}", item.id.as_u128() & 0xfff_ffff_ffff);
    let body = json!({
        "team_id": "T0EXAMPLE",
        "api_app_id": "A0EXAMPLE",
        "type": "event_callback",
        "event_id": id,
        "event_time": item.at_s,
        "event": {
            "type": "message",
            "channel": format!("C{:08X}{}", item.run, item.resource),
            "user": "U0EXAMPLE",
            "text": format!("message {}", item.version),
            "ts": format!("{}.000100", item.at_s),
            "event_ts": format!("{}.000100", item.at_s),
        },
    });
    prepared(id, "message", &body, &[])
}
