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
    verdict        TEXT    NOT NULL CHECK (verdict IN ('applied', 'stale', 'ignored', 'duplicate')),
    tie            INTEGER NOT NULL CHECK (tie IN (0, 1)),
    conflicts_with BLOB    CHECK ((conflicts_with IS NOT NULL) = (verdict = 'duplicate')),
    digest         BLOB    NOT NULL,
    headers        BLOB    NOT NULL,
    body           BLOB    NOT NULL,
    CHECK ((resource_hash IS NULL) = (resource_id IS NULL) AND (resource_id IS NULL) = (resource_kind IS NULL))
) STRICT;

-- A conflict is kept once, however often it is sent.
CREATE UNIQUE INDEX events_conflicts ON events (conflicts_with, digest) WHERE conflicts_with IS NOT NULL;

-- Stored versions, and which event's body is the state.
CREATE TABLE resources (
    hash          BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 16),
    source        TEXT    NOT NULL,
    tenant        TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    version       BLOB,
    version_text  TEXT,
    deleted       INTEGER NOT NULL CHECK (deleted IN (0, 1)),
    event_id      BLOB    NOT NULL,
    applied_at_ms INTEGER NOT NULL,
    applied       INTEGER NOT NULL CHECK (applied > 0),
    CHECK ((version IS NULL) = (version_text IS NULL))
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
