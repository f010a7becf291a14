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

-- What was received and what became of it at once; only appended to, dropped by day. `id` is a UUIDv7. What became
-- of a held event later is in `settled`. `conflicts_with`: who has the key, or the effect key, of a duplicate.
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
    why            text,
    conflicts_with uuid,
    digest         uuid    NOT NULL,
    headers        bytea   NOT NULL,
    body           bytea   NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT known_verdict CHECK (verdict IN ('applied', 'stale', 'held', 'ignored', 'duplicate')),
    CONSTRAINT conflict_iff_duplicate CHECK ((verdict = 'duplicate') = (conflicts_with IS NOT NULL))
) PARTITION BY RANGE (id);
-- Stragglers: events of a node whose clock is far off.
CREATE TABLE tidegate.events_other PARTITION OF tidegate.events DEFAULT;

-- Finds a resource's events. One filter for some hundred rows, made when upkeep summarizes: a tree would cost each insert
-- a page of its own, this costs it nothing. What is not summarized yet is read whole.
CREATE INDEX events_of_resource ON tidegate.events
    USING brin (resource_hash uuid_bloom_ops (n_distinct_per_range = 1000, false_positive_rate = 0.02))
    WITH (pages_per_range = 64);

-- Same key, other bytes: each such body is kept aside once, as an event of verdict `duplicate`.
CREATE TABLE tidegate.conflicts (
    hash     uuid NOT NULL,
    digest   uuid NOT NULL,
    event_id uuid NOT NULL,
    PRIMARY KEY (hash, digest)
);

-- The newest state of each resource. Updated in place: room in the page, no index on what changes.
-- `rev` counts the writes to the row, to its holds and to its fetch: who decided on them writes only if it is still what
-- was read. A row with `rev` 0 was made only to be locked, and says nothing.
-- `previous` and `ties_apply` serve one statement at a time: the version before it, and its rule about ties.
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
    epoch         bigint  NOT NULL,
    step          text,
    deleted       boolean NOT NULL,
    fields        text,
    event_id      uuid,
    applied_at_ms bigint  NOT NULL,
    applied       bigint  NOT NULL,
    held          bigint  NOT NULL,
    CONSTRAINT counts_from_one CHECK (epoch >= 1 AND rev >= 0),
    CONSTRAINT never_less_than_none CHECK (held >= 0 AND applied >= 0),
    CONSTRAINT applied_leaves_a_state CHECK (event_id IS NOT NULL OR applied = 0),
    CONSTRAINT version_is_readable CHECK ((version IS NULL) = (version_text IS NULL))
) WITH (fillfactor = 80);

-- Events that wait, each until a time, for the answer of a fetch (under the claim it awaits, once there is one), or for a
-- person. `subject` is what the rules need of the event,
-- with the rule it came with. Changed only by who has the resource's row.
CREATE TABLE tidegate.holds (
    event_id      uuid   PRIMARY KEY,
    resource_hash uuid   NOT NULL,
    until_ms      bigint,
    parked_in     bigint,
    awaits        bigint,
    why           text   NOT NULL,
    subject       text   NOT NULL,
    CONSTRAINT parked_waits_for_no_time CHECK (parked_in IS NULL OR until_ms IS NULL)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX holds_of_resource ON tidegate.holds (resource_hash);
CREATE INDEX holds_due ON tidegate.holds (until_ms) WHERE until_ms IS NOT NULL;

-- What became of held events in the end. Beside their rows and not in them, so that these stay as they were written.
CREATE TABLE tidegate.settled (
    event_id      uuid    PRIMARY KEY,
    settled_at_ms bigint  NOT NULL,
    verdict       text    NOT NULL,
    tie           boolean NOT NULL,
    why           text,
    CONSTRAINT known_verdict CHECK (verdict IN ('applied', 'stale', 'expired'))
);

-- Asking a provider for the state of a resource: due, claimed until its lease ends, or at rest. Each claim raises
-- `epoch`, and an answer counts only under the newest. Changed only by who has the resource's row.
CREATE TABLE tidegate.fetches (
    resource_hash   uuid   PRIMARY KEY,
    epoch           bigint NOT NULL,
    attempts        bigint NOT NULL CHECK (attempts >= 0),
    due_ms          bigint,
    leased_until_ms bigint,
    last_error      text,
    CONSTRAINT leased_only_when_due CHECK (leased_until_ms IS NULL OR due_ms IS NOT NULL)
) WITH (fillfactor = 80);
-- When somebody may claim it: when it is due, and nobody has it.
CREATE INDEX fetches_open ON tidegate.fetches (greatest(due_ms, leased_until_ms)) WHERE due_ms IS NOT NULL;

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

-- Events of which an effect failed, until they go well: by the hash of their key while they are not taken, by their id
-- once they are held.
CREATE TABLE tidegate.failures (
    name        uuid    PRIMARY KEY,
    event_id    uuid    NOT NULL,
    source      text    NOT NULL,
    tenant      text    NOT NULL,
    key         text    NOT NULL,
    kind        text    NOT NULL,
    effect      text    NOT NULL,
    error       text    NOT NULL,
    held        boolean NOT NULL,
    failures    bigint  NOT NULL CHECK (failures > 0),
    first_at_ms bigint  NOT NULL,
    last_at_ms  bigint  NOT NULL
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
    why            text,
    conflicts_with uuid,
    headers        bytea,
    body           bytea
);

-- A key to claim.
CREATE TYPE tidegate.claim AS (
    hash   uuid,
    id     uuid,
    digest uuid
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
    epoch         bigint,
    step          text,
    deleted       boolean,
    fields        text,
    event_id      uuid,
    applied_at_ms bigint,
    applied       bigint,
    held          bigint
);

-- A hold as it shall be.
CREATE TYPE tidegate.hold AS (
    event_id      uuid,
    resource_hash uuid,
    until_ms      bigint,
    parked_in     bigint,
    awaits        bigint,
    why           text,
    subject       text
);

-- A hold that ended.
CREATE TYPE tidegate.ended AS (
    event_id uuid,
    verdict  text,
    tie      boolean,
    why      text
);

-- What becomes of a resource's fetch: the claim that was answered (0: none), and whether another is wanted.
CREATE TYPE tidegate.fetching AS (
    resource_hash uuid,
    answered      bigint,
    wanted        boolean
);

-- The clock that leases and due times go by.
CREATE FUNCTION tidegate.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

-- Ends a statement whose rows are not what was decided on, so that nothing of it is stored.
CREATE FUNCTION tidegate.rival() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a rival came first' USING ERRCODE = 'serialization_failure';
END
$$;

-- For people: readable times, no bytes.
CREATE VIEW tidegate_events AS
SELECT e.id, to_timestamp(e.received_at_ms / 1000.0) AS received_at, e.source, e.tenant, e.key, e.kind, e.resource_kind,
       e.resource_id, e.version_text AS version, coalesce(s.verdict, e.verdict) AS verdict, coalesce(s.tie, e.tie) AS tie,
       CASE WHEN s.event_id IS NULL THEN e.why ELSE s.why END AS why,
       to_timestamp(s.settled_at_ms / 1000.0) AS settled_at, e.conflicts_with, octet_length(e.body)::bigint AS body_bytes
FROM tidegate.events e
LEFT JOIN tidegate.settled s ON s.event_id = e.id;

CREATE VIEW tidegate_resources AS
SELECT hash, source, tenant, kind, id, version_text AS version, epoch, step, deleted, event_id,
       to_timestamp(applied_at_ms / 1000.0) AS applied_at, applied, held
FROM tidegate.resources
WHERE rev > 0;

CREATE VIEW tidegate_holds AS
SELECT h.event_id, r.source, r.tenant, r.kind, r.id, to_timestamp(h.until_ms / 1000.0) AS until,
       h.parked_in IS NOT NULL AS parked, h.why
FROM tidegate.holds h
JOIN tidegate.resources r ON r.hash = h.resource_hash;

CREATE VIEW tidegate_failures AS
SELECT event_id, source, tenant, key, kind, effect, error, held, failures,
       to_timestamp(first_at_ms / 1000.0) AS first_at, to_timestamp(last_at_ms / 1000.0) AS last_at
FROM tidegate.failures;

INSERT INTO tidegate.meta (schema_version, incarnation, key_slot, key_slot_since_ms)
VALUES (0, gen_random_uuid(), 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
