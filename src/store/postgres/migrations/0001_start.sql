-- The first tables: what is remembered of every event taken in. All times are milliseconds since 1970,
-- all hashes 16 bytes typed as uuid (compared with memcmp, no length word), no 32-bit number anywhere.

-- One row about this database history.
CREATE TABLE tidegate.meta (
    one               boolean  PRIMARY KEY DEFAULT true CHECK (one),
    schema_version    bigint   NOT NULL,
    incarnation       uuid     NOT NULL,
    key_slot          smallint NOT NULL CHECK (key_slot BETWEEN 0 AND 2),
    key_slot_since_ms bigint   NOT NULL
);

-- The key table, a ring of three by time: the slot that `meta.key_slot` names takes new claims, the others
-- are only probed, the oldest is emptied when its turn comes. Claims touch one small index this way.
CREATE TABLE tidegate.keys_0 (
    hash     uuid PRIMARY KEY,
    event_id uuid NOT NULL,
    digest   uuid NOT NULL
);
CREATE TABLE tidegate.keys_1 (LIKE tidegate.keys_0 INCLUDING ALL);
CREATE TABLE tidegate.keys_2 (LIKE tidegate.keys_0 INCLUDING ALL);

-- What was received and what became of it; only appended to, dropped by day. `id` is a UUIDv7.
CREATE TABLE tidegate.events (
    id             uuid    NOT NULL,
    received_at_ms bigint  NOT NULL,
    source         text    NOT NULL,
    tenant         text    NOT NULL,
    key            text    NOT NULL,
    kind           text    NOT NULL,
    resource_hash  uuid,
    resource_kind  text,
    resource_id    text,
    version        bytea,
    version_text   text,
    verdict        text    NOT NULL,
    tie            boolean NOT NULL,
    conflicts_with uuid,
    digest         uuid    NOT NULL,
    headers        bytea   NOT NULL,
    body           bytea   NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT known_verdict CHECK (verdict IN ('applied', 'stale', 'ignored', 'duplicate')),
    CONSTRAINT conflict_iff_duplicate CHECK ((verdict = 'duplicate') = (conflicts_with IS NOT NULL))
) PARTITION BY RANGE (id);
-- Stragglers: events of a node whose clock is far off.
CREATE TABLE tidegate.events_other PARTITION OF tidegate.events DEFAULT;

-- Same key, other bytes: each such body is kept aside once, as an event of verdict `duplicate`.
CREATE TABLE tidegate.conflicts (
    hash     uuid NOT NULL,
    digest   uuid NOT NULL,
    event_id uuid NOT NULL,
    PRIMARY KEY (hash, digest)
);

-- The newest state of each resource. Updated in place: room in the page, no index on what changes.
-- `rev` counts the writes: who decided on a row writes only if it is still what was read.
-- `previous` is the version before the last statement, so that one statement can tell each event's verdict.
CREATE TABLE tidegate.resources (
    hash          uuid    PRIMARY KEY,
    rev           bigint  NOT NULL,
    source        text    NOT NULL,
    tenant        text    NOT NULL,
    kind          text    NOT NULL,
    id            text    NOT NULL,
    version       bytea,
    version_text  text,
    previous      bytea,
    ties_apply    boolean NOT NULL,
    deleted       boolean NOT NULL,
    event_id      uuid    NOT NULL,
    applied_at_ms bigint  NOT NULL,
    applied       bigint  NOT NULL
) WITH (fillfactor = 80);

-- Authentic but unusable requests, the same bytes of a source once.
CREATE TABLE tidegate.quarantine (
    id             uuid   PRIMARY KEY,
    received_at_ms bigint NOT NULL,
    source         text   NOT NULL,
    tenant         text   NOT NULL,
    code           text   NOT NULL,
    reason         text   NOT NULL,
    digest         uuid   NOT NULL,
    times          bigint NOT NULL CHECK (times > 0),
    headers        bytea  NOT NULL,
    body           bytea  NOT NULL,
    CONSTRAINT same_bytes_once UNIQUE (digest, source, tenant)
);

-- A row of a batch, as the writer hands it in; `n` is its place in the batch.
CREATE TYPE tidegate.given AS (
    n              bigint,
    hash           uuid,
    id             uuid,
    digest         uuid,
    received_at_ms bigint,
    source         text,
    tenant         text,
    key            text,
    kind           text,
    resource_hash  uuid,
    resource_kind  text,
    resource_id    text,
    version        bytea,
    version_text   text,
    ties_apply     boolean,
    deletes        boolean,
    ignored        boolean,
    verdict        text,
    tie            boolean,
    conflicts_with uuid,
    headers        bytea,
    body           bytea
);

-- A resource's row as it shall be; `rev` is one more than that of the row it was decided on.
CREATE TYPE tidegate.state AS (
    hash          uuid,
    rev           bigint,
    source        text,
    tenant        text,
    kind          text,
    id            text,
    version       bytea,
    version_text  text,
    ties_apply    boolean,
    deleted       boolean,
    event_id      uuid,
    applied_at_ms bigint,
    applied       bigint
);

-- Ends a statement whose rows are not what was decided on, so that nothing of it is stored.
CREATE FUNCTION tidegate.rival() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a rival came first' USING ERRCODE = 'serialization_failure';
END
$$;

-- For people: readable times, no bytes.
CREATE VIEW tidegate_events AS
SELECT id, to_timestamp(received_at_ms / 1000.0) AS received_at, source, tenant, key, kind, resource_kind, resource_id,
       version_text AS version, verdict, tie, conflicts_with, octet_length(body)::bigint AS body_bytes
FROM tidegate.events;

CREATE VIEW tidegate_resources AS
SELECT hash, source, tenant, kind, id, version_text AS version, deleted, event_id,
       to_timestamp(applied_at_ms / 1000.0) AS applied_at, applied
FROM tidegate.resources;

INSERT INTO tidegate.meta (schema_version, incarnation, key_slot, key_slot_since_ms)
VALUES (0, gen_random_uuid(), 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
