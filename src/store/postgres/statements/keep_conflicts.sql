-- Keeps aside events whose key was claimed with other bytes (I7), each such body once. Sorted by hash.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::tidegate.given[])
),
kept AS (
    INSERT INTO tidegate.conflicts AS c (hash, digest, event_id)
    SELECT g.hash, g.digest, g.id FROM given g
    ON CONFLICT (hash, digest) DO NOTHING
    RETURNING c.event_id
)
INSERT INTO tidegate.events (id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id,
                             version, version_text, verdict, tie, why, conflicts_with, digest, headers, body)
SELECT g.id, g.received_at_ms, g.source, g.tenant, g.key, g.kind, g.resource_hash, g.resource_kind, g.resource_id,
       g.version, g.version_text, 'duplicate', false, g.why, g.conflicts_with, g.digest, g.headers, g.body
FROM given g
JOIN kept k ON k.event_id = g.id
