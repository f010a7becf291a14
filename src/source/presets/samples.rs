//! The samples: one request of every sender, compiled in from `samples/`.
//!
//! Owns the bytes, and nothing of what they mean: a preset's `about.sample` says how they are sent. Where each
//! comes from, and its licence, is stated in `tests/data/presets`.

macro_rules! files {
    ($($name:literal)*) => {
        /// Name and bytes of every file.
        const FILES: &[(&str, &[u8])] = &[$(($name, include_bytes!(concat!("samples/", $name)))),*];
    };
}

files! {
    "adyen-authorisation.json"
    "adyen-platform-transfer.updated.json"
    "airtable-ping.json"
    "airwallex-payment_intent.succeeded.json"
    "asana-task-batch.json"
    "auth0-log-stream.json"
    "aws-eventbridge-ec2-state-change.json"
    "aws-ses-delivery.json"
    "aws-sns-notification.json"
    "bigcommerce-order.statusUpdated.json"
    "bitbucket-pullrequest.updated.json"
    "box-file.uploaded.json"
    "braintree-subscription_went_past_due.form"
    "brex-transfer_processed.json"
    "buildkite-build.finished.json"
    "calcom-booking_created.json"
    "calendly-invitee.created.json"
    "cashfree-payment_success.json"
    "chargebee-subscription_changed-1.json"
    "checkout-payment_captured.json"
    "circleci-workflow-completed.json"
    "clerk-user.updated.json"
    "cloudevents-batch.json"
    "cloudevents-binary.json"
    "cloudevents-structured.json"
    "coinbase-commerce-charge.confirmed.json"
    "contentful-entry.publish.json"
    "customerio-email.opened.json"
    "discord-application_authorized.json"
    "discord-interaction-command.json"
    "docusign-envelope-completed.json"
    "dropbox-list_folder.json"
    "dwolla-customer_transfer_completed.json"
    "figma-file_update.json"
    "flutterwave-v3-charge.completed.json"
    "flutterwave-v4-charge.completed.json"
    "gitea-issues.opened.json"
    "github-issues.edited.json"
    "gitlab-issue.json"
    "gocardless-batch.json"
    "heroku-release.update.json"
    "hubspot-contact-batch.json"
    "hubspot-workflow-deal.json"
    "intercom-conversation.user.created.json"
    "jira-issue_updated.json"
    "lemonsqueezy-subscription_updated.json"
    "line-message-batch.json"
    "linear-issue.update.json"
    "linkedin-lead_action.json"
    "linkedin-notifications.json"
    "lithic-card_transaction.updated.json"
    "loops-email.delivered.json"
    "mailgun-delivered.json"
    "mailgun-inbound-route.form"
    "mandrill-batch.form"
    "meta-page-batch.json"
    "microsoft-graph-batch.json"
    "mollie-nextgen-payment-link.paid.json"
    "monday-update_column_value.json"
    "mux-video.asset.ready.json"
    "notion-page.content_updated.json"
    "nylas-message.created.json"
    "okta-user.lifecycle-batch.json"
    "openai-response.completed.json"
    "paddle-classic-subscription_updated.form"
    "paddle-subscription.updated.json"
    "pagerduty-incident.priority_updated.json"
    "paypal-payment.sale.completed.json"
    "paystack-charge.success.json"
    "persona-inquiry.completed.json"
    "pipedrive-deal.change.json"
    "pipedrive-updated.deal.json"
    "plaid-sync_updates_available.json"
    "polar-subscription.updated.json"
    "postmark-bounce.json"
    "razorpay-payment.authorized.json"
    "recurly-subscription.updated.json"
    "render-deploy_ended.json"
    "replicate-prediction.succeeded.json"
    "resend-email.delivered.json"
    "revolut-order_completed.json"
    "sanity-post.json"
    "segment-track.json"
    "sendgrid-batch.json"
    "sentry-issue.created.json"
    "shopify-orders.updated.json"
    "slack-event_callback-message.json"
    "smartcar-vehicle_state.json"
    "snyk-project_snapshot.json"
    "square-payment.updated.json"
    "standard-webhooks-contact.created.json"
    "strava-activity.update.json"
    "stripe-customer.subscription.created.json"
    "tebex-payment.completed.json"
    "telegram-update-message.json"
    "telnyx-message.finalized.json"
    "trello-updateCard.json"
    "twilio-call-status.form"
    "twilio-event-streams.json"
    "twilio-message-status.form"
    "twitch-channel.follow.json"
    "typeform-form_response.json"
    "vercel-deployment.succeeded.json"
    "vercel-drain-logs.json"
    "websub-feed.xml"
    "whatsapp-messages.json"
    "wise-transfers-state-change.json"
    "woocommerce-coupon.created.json"
    "workos-dsync.user.updated.json"
    "worldpay-authorized.json"
    "x-activity-post.create.json"
    "x-tweet_create_events.json"
    "xero-contact-batch.json"
    "zendesk-ticket.status_changed.json"
    "zoom-meeting.started.json"
}

/// The bytes of a file.
pub(super) fn bytes(file: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(name, _)| *name == file).map(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{about, names};
    use super::*;

    /// The longest sample: each is in every binary.
    const BYTES_MAX: usize = 24 * 1024;

    #[test]
    fn every_file_of_the_folder_is_compiled_in_and_is_the_sample_of_a_preset() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/source/presets/samples");
        let files = std::fs::read_dir(folder).expect("the folder");
        let there: BTreeSet<String> =
            files.map(|file| file.expect("a file").file_name().into_string().expect("a name")).collect();
        let compiled: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(there, compiled);
        let used = names().filter_map(|name| about(name)?.sample.as_ref());
        assert_eq!(used.map(|sample| sample.file.clone()).collect::<BTreeSet<_>>(), compiled);
    }

    #[test]
    fn every_sample_is_small() {
        for (name, bytes) in FILES {
            assert!((1..=BYTES_MAX).contains(&bytes.len()), "{name} has {} bytes", bytes.len());
        }
    }
}
