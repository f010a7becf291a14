//! What a careful engineer writes by hand for the same job, as the benchmark's measure of what Tidegate is worth.
//!
//! ```text
//! cargo run --release --example by_hand -- --way transaction --database postgres://…
//! ```
//!
//! Three ways through one handler, which always checks the signature over the raw body and reads the same fields:
//!
//! - `transaction`: one transaction per request: key, guarded state, outbox row, five round trips;
//! - `function`: the same in one server-side function, one round trip;
//! - `verify`: checks and answers only. Nothing is kept: the bound that no durable server passes.
//!
//! Makes its own tables at start. It has no admission, no quarantine, no version types and no drain on purpose:
//! what it leaves out makes it faster, not slower.

use std::borrow::Cow;
use std::net::SocketAddr;

use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use clap::{Parser, ValueEnum};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    Transaction,
    Function,
    Verify,
}

#[derive(Parser)]
struct Arguments {
    /// How an event is kept.
    #[arg(long, value_enum)]
    way: Way,
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// The Postgres database, for the two ways that keep anything.
    #[arg(long)]
    database: Option<String>,
    /// Connections in the pool.
    #[arg(long, default_value_t = 16)]
    pool: u32,
    /// Ping a connection each time it leaves the pool, as sqlx does by default; costs one more round trip.
    #[arg(long)]
    ping: bool,
    /// The secret that senders sign with.
    #[arg(long)]
    secret: String,
}

struct Server {
    way: Way,
    pool: Option<PgPool>,
    mac: Hmac<Sha256>,
}

/// The fields that matter, borrowed from the body.
#[derive(Deserialize)]
struct Posted<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    sequence: i64,
    #[serde(borrow)]
    data: PostedData<'a>,
}

#[derive(Deserialize)]
struct PostedData<'a> {
    #[serde(borrow)]
    object: PostedObject<'a>,
}

#[derive(Deserialize)]
struct PostedObject<'a> {
    #[serde(borrow)]
    object: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
}

#[derive(Serialize)]
struct Answer<'a> {
    status: &'a str,
    id: &'a str,
}

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS taken_keys (key text PRIMARY KEY, taken_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS states (
    resource text PRIMARY KEY, version bigint NOT NULL, event text NOT NULL, updated_at timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE TABLE IF NOT EXISTS outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event text NOT NULL, kind text NOT NULL,
    resource text NOT NULL, payload bytea NOT NULL, created_at timestamptz NOT NULL DEFAULT now()
);
CREATE OR REPLACE FUNCTION take_in(_key text, _kind text, _resource text, _version bigint, _payload bytea)
RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO taken_keys (key) VALUES (_key) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN RETURN 'duplicate'; END IF;
    INSERT INTO states AS s (resource, version, event, updated_at) VALUES (_resource, _version, _key, now())
        ON CONFLICT (resource) DO UPDATE
        SET version = excluded.version, event = excluded.event, updated_at = excluded.updated_at
        WHERE s.version < excluded.version;
    IF NOT FOUND THEN RETURN 'stale'; END IF;
    INSERT INTO outbox (event, kind, resource, payload) VALUES (_key, _kind, _resource, _payload);
    RETURN 'applied';
END $$;
";

const CLAIM: &str = "INSERT INTO taken_keys (key) VALUES ($1) ON CONFLICT DO NOTHING";

const GUARD: &str = "
INSERT INTO states AS s (resource, version, event, updated_at) VALUES ($1, $2, $3, now())
ON CONFLICT (resource) DO UPDATE
SET version = excluded.version, event = excluded.event, updated_at = excluded.updated_at
WHERE s.version < excluded.version";

const PASS_ON: &str = "INSERT INTO outbox (event, kind, resource, payload) VALUES ($1, $2, $3, $4)";

/// Constant time, over the bytes as they came.
fn is_signed(mac: &Hmac<Sha256>, request: &HttpRequest, body: &[u8]) -> bool {
    let Some(header) = request.headers().get("x-signature") else { return false };
    let mut signature = [0; 32];
    if hex::decode_to_slice(header.as_bytes(), &mut signature).is_err() {
        return false;
    }
    let mut mac = mac.clone();
    mac.update(body);
    mac.verify_slice(&signature).is_ok()
}

async fn by_transaction(
    pool: &PgPool,
    posted: &Posted<'_>,
    resource: &str,
    body: &Bytes,
) -> sqlx::Result<&'static str> {
    let mut transaction = pool.begin().await?;
    let claimed = sqlx::query(CLAIM).bind(&*posted.id).execute(&mut *transaction).await?.rows_affected();
    if claimed == 0 {
        transaction.rollback().await?;
        return Ok("duplicate");
    }
    let guarded = sqlx::query(GUARD)
        .bind(resource)
        .bind(posted.sequence)
        .bind(&*posted.id)
        .execute(&mut *transaction)
        .await?
        .rows_affected();
    if guarded == 1 {
        sqlx::query(PASS_ON)
            .bind(&*posted.id)
            .bind(&*posted.kind)
            .bind(resource)
            .bind(&body[..])
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(if guarded == 1 { "applied" } else { "stale" })
}

async fn by_function(
    pool: &PgPool,
    posted: &Posted<'_>,
    resource: &str,
    body: &Bytes,
) -> sqlx::Result<Cow<'static, str>> {
    let (status,): (String,) = sqlx::query_as("SELECT take_in($1, $2, $3, $4, $5)")
        .bind(&*posted.id)
        .bind(&*posted.kind)
        .bind(resource)
        .bind(posted.sequence)
        .bind(&body[..])
        .fetch_one(pool)
        .await?;
    Ok(Cow::Owned(status))
}

async fn take_in(server: Data<Server>, request: HttpRequest, body: Bytes) -> HttpResponse {
    if !is_signed(&server.mac, &request, &body) {
        return HttpResponse::Unauthorized().finish();
    }
    let Ok(posted) = serde_json::from_slice::<Posted<'_>>(&body) else {
        return HttpResponse::UnprocessableEntity().finish();
    };
    let resource = format!("{}/{}", posted.data.object.object, posted.data.object.id);
    let kept = match (&server.pool, server.way) {
        (Some(pool), Way::Transaction) => by_transaction(pool, &posted, &resource, &body).await.map(Cow::Borrowed),
        (Some(pool), Way::Function) => by_function(pool, &posted, &resource, &body).await,
        _ => Ok(Cow::Borrowed("applied")),
    };
    match kept {
        Ok(status) => HttpResponse::Ok().json(Answer { status: &status, id: &posted.id }),
        Err(error) => {
            tracing::error!(%error, "the event was not kept");
            HttpResponse::build(StatusCode::SERVICE_UNAVAILABLE).insert_header(("retry-after", "1")).finish()
        }
    }
}

async fn ready() -> HttpResponse {
    HttpResponse::Ok().finish()
}

/// All connections are opened at start, so that no request of the measured time waits for one.
async fn open(arguments: &Arguments) -> Result<Option<PgPool>, Box<dyn std::error::Error>> {
    if arguments.way == Way::Verify {
        return Ok(None);
    }
    let url = arguments.database.as_deref().ok_or("--database is needed for this way")?;
    let pool = PgPoolOptions::new()
        .min_connections(arguments.pool)
        .max_connections(arguments.pool)
        .test_before_acquire(arguments.ping)
        .connect(url)
        .await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    Ok(Some(pool))
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let pool = open(&arguments).await?;
    let mac = Hmac::new_from_slice(arguments.secret.as_bytes())?;
    let server = Data::new(Server { way: arguments.way, pool, mac });
    HttpServer::new(move || {
        App::new()
            .app_data(server.clone())
            .route("/in/bench", web::post().to(take_in))
            .route("/readyz", web::get().to(ready))
    })
    .backlog(1024)
    .bind(arguments.listen)?
    .run()
    .await?;
    Ok(())
}
