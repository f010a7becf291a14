-- Differs from Postgres: no partitions (rows are pruned in chunks), and the log is ordered by a rowid, since
-- a WITHOUT ROWID table would push bodies of a kilobyte into overflow pages.

-- One row: the identity of this database and where the ring of key tables stands.
CREATE TABLE meta (
    one               INTEGER PRIMARY KEY CHECK (one = 1),
    incarnation       BLOB    NOT NULL CHECK (length(incarnation) = 16),
    opened            INTEGER NOT NULL DEFAULT 0,
    key_slot          INTEGER NOT NULL CHECK (key_slot BETWEEN 0 AND 2),
    key_slot_since_ms INTEGER NOT NULL
) STRICT;

-- The key table, a ring of three: the current one takes claims, the others are only probed. Narrow rows kept
-- in the tree itself, so that a probe is one descent and a claim dirties one page.
CREATE TABLE keys_0 (
    hash     BLOB NOT NULL PRIMARY KEY CHECK (length(hash) = 16),
    event_id BLOB NOT NULL CHECK (length(event_id) = 16),
    digest   BLOB NOT NULL CHECK (length(digest) = 16)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys_1 (
    hash     BLOB NOT NULL PRIMARY KEY CHECK (length(hash) = 16),
    event_id BLOB NOT NULL CHECK (length(event_id) = 16),
    digest   BLOB NOT NULL CHECK (length(digest) = 16)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys_2 (
    hash     BLOB NOT NULL PRIMARY KEY CHECK (length(hash) = 16),
    event_id BLOB NOT NULL CHECK (length(event_id) = 16),
    digest   BLOB NOT NULL CHECK (length(digest) = 16)
) STRICT, WITHOUT ROWID;

-- The log of events. Ids are time-ordered, so both trees grow at their right edge.
CREATE TABLE events (
    seq            INTEGER PRIMARY KEY,
    id             BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    received_at_ms INTEGER NOT NULL,
    source         TEXT    NOT NULL,
    tenant         TEXT    NOT NULL,
    key            TEXT    NOT NULL,
    kind           TEXT    NOT NULL,
    resource_hash  BLOB,
    resource_kind  TEXT,
    resource_id    TEXT,
    version        BLOB,
    version_text   TEXT,
    verdict        TEXT    NOT NULL
                   CHECK (verdict IN ('applied', 'stale', 'held', 'expired', 'ignored', 'duplicate')),
    tie            INTEGER NOT NULL CHECK (tie IN (0, 1)),
    why            TEXT,
    settled_at_ms  INTEGER,
    conflicts_with BLOB    CHECK ((conflicts_with IS NOT NULL) = (verdict = 'duplicate')),
    digest         BLOB    NOT NULL,
    headers        BLOB    NOT NULL,
    body           BLOB    NOT NULL,
    CHECK ((resource_hash IS NULL) = (resource_id IS NULL) AND (resource_id IS NULL) = (resource_kind IS NULL)),
    -- What waits says what for; what expired had waited; what never waits is never settled later.
    CHECK (verdict NOT IN ('held', 'expired') OR (why IS NOT NULL AND resource_hash IS NOT NULL)),
    CHECK (CASE verdict WHEN 'expired' THEN settled_at_ms IS NOT NULL
                        WHEN 'applied' THEN true
                        WHEN 'stale'   THEN true
                        ELSE settled_at_ms IS NULL END)
) STRICT;

-- A conflict is kept once, however often it is sent. A duplicate of an effect has a key of its own and says why.
CREATE UNIQUE INDEX events_conflicts ON events (conflicts_with, digest)
    WHERE conflicts_with IS NOT NULL AND why IS NULL;

-- Stored versions, and which event's body is the state. A resource whose events all wait has none yet.
CREATE TABLE resources (
    hash          BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 16),
    source        TEXT    NOT NULL,
    tenant        TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    version       BLOB,
    version_text  TEXT,
    epoch         INTEGER NOT NULL CHECK (epoch > 0),
    step          TEXT,
    deleted       INTEGER NOT NULL CHECK (deleted IN (0, 1)),
    fields        TEXT,
    event_id      BLOB    CHECK (length(event_id) = 16),
    applied_at_ms INTEGER NOT NULL,
    applied       INTEGER NOT NULL CHECK (applied >= 0),
    held          INTEGER NOT NULL CHECK (held >= 0),
    CHECK ((version IS NULL) = (version_text IS NULL)),
    CHECK ((event_id IS NULL) = (applied = 0)),
    CHECK (event_id IS NOT NULL OR (version IS NULL AND step IS NULL AND fields IS NULL AND NOT deleted))
) STRICT, WITHOUT ROWID;

-- Events that wait, each with all that the rules need of it and the rule it came with.
CREATE TABLE holds (
    event_id      BLOB    NOT NULL PRIMARY KEY CHECK (length(event_id) = 16),
    resource_hash BLOB    NOT NULL CHECK (length(resource_hash) = 16),
    subject       TEXT    NOT NULL,
    until_ms      INTEGER,
    parked_in     INTEGER CHECK (parked_in > 0),
    fetch         INTEGER CHECK (fetch > 0),
    why           TEXT    NOT NULL,
    CHECK (parked_in IS NULL OR until_ms IS NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX holds_resource ON holds (resource_hash);
CREATE INDEX holds_until ON holds (until_ms, resource_hash) WHERE until_ms IS NOT NULL;

-- Where the provider is asked for the state: due, claimed, or at rest. A row stays, so that its epoch never
-- starts again and a late worker changes nothing.
CREATE TABLE fetches (
    resource_hash   BLOB    NOT NULL PRIMARY KEY CHECK (length(resource_hash) = 16),
    epoch           INTEGER NOT NULL CHECK (epoch >= 0),
    attempts        INTEGER NOT NULL CHECK (attempts BETWEEN 0 AND epoch),
    due_ms          INTEGER,
    leased_until_ms INTEGER,
    last_error      TEXT,
    CHECK (leased_until_ms IS NULL OR due_ms IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX fetches_due ON fetches (due_ms) WHERE due_ms IS NOT NULL;

-- Events of which an effect failed, until they go well: by the hash of their key while they are not taken, by their id
-- once they are held.
CREATE TABLE failures (
    name        BLOB    NOT NULL PRIMARY KEY CHECK (length(name) = 16),
    event_id    BLOB    NOT NULL CHECK (length(event_id) = 16),
    source      TEXT    NOT NULL,
    tenant      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    effect      TEXT    NOT NULL,
    error       TEXT    NOT NULL,
    held        INTEGER NOT NULL CHECK (held IN (0, 1)),
    failures    INTEGER NOT NULL CHECK (failures > 0),
    first_at_ms INTEGER NOT NULL,
    last_at_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Authentic, but unusable: the same bytes of a sender are one row.
CREATE TABLE quarantine (
    seq            INTEGER PRIMARY KEY,
    id             BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    received_at_ms INTEGER NOT NULL,
    last_at_ms     INTEGER NOT NULL,
    source         TEXT    NOT NULL,
    tenant         TEXT    NOT NULL,
    code           TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    digest         BLOB    NOT NULL,
    times          INTEGER NOT NULL CHECK (times > 0),
    headers        BLOB    NOT NULL,
    body           BLOB    NOT NULL,
    UNIQUE (source, tenant, digest)
) STRICT;

CREATE INDEX quarantine_last ON quarantine (last_at_ms);

INSERT INTO meta (one, incarnation, key_slot, key_slot_since_ms)
VALUES (1, randomblob(16), 0, CAST(unixepoch('subsec') * 1000 AS INTEGER));
