-- `commit_plain.sql` for a batch in which no resource comes twice, as in most batches: nothing to choose among
-- the events of a resource, so no window and no sort but the one that orders the locks. Says the same.
--
-- Given and planned as there. An event's verdict follows from its own version and the one that was stored.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::tidegate.given[])
),
claimed AS (
    {claim_given}
),
fresh AS MATERIALIZED (
    SELECT g.* FROM given g JOIN claimed c ON c.event_id = g.id
),
guarded AS (
    INSERT INTO tidegate.resources AS r (hash, rev, source, tenant, kind, id, version, version_text, previous,
                                         ties_apply, epoch, deleted, event_id, applied_at_ms, applied, held)
    SELECT f.resource_hash, 1, f.source, f.tenant, f.resource_kind, f.resource_id, f.version, f.version_text, NULL,
           f.ties_apply, 1, f.deletes, f.id, f.received_at_ms, 1, 0
    FROM fresh f
    WHERE f.resource_hash IS NOT NULL AND NOT f.ignored
    ORDER BY f.resource_hash
    ON CONFLICT (hash) DO UPDATE SET
        rev           = r.rev + 1,
        previous      = r.version,
        version       = coalesce(excluded.version, r.version),
        version_text  = coalesce(excluded.version_text, r.version_text),
        ties_apply    = excluded.ties_apply,
        deleted       = CASE WHEN excluded.version = r.version AND NOT excluded.ties_apply THEN r.deleted ELSE excluded.deleted END,
        fields        = CASE WHEN excluded.version = r.version AND NOT excluded.ties_apply THEN r.fields END,
        event_id      = CASE WHEN excluded.version = r.version AND NOT excluded.ties_apply THEN r.event_id ELSE excluded.event_id END,
        applied_at_ms = CASE WHEN excluded.version = r.version AND NOT excluded.ties_apply THEN r.applied_at_ms ELSE excluded.applied_at_ms END,
        applied       = CASE WHEN excluded.version = r.version AND NOT excluded.ties_apply THEN r.applied ELSE r.applied + 1 END
        WHERE r.version IS NULL OR excluded.version IS NULL OR excluded.version >= r.version
    RETURNING r.hash, r.previous
)
INSERT INTO tidegate.events AS e (id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id,
                                  version, version_text, verdict, tie, why, conflicts_with, digest, headers, body)
SELECT f.id, f.received_at_ms, f.source, f.tenant, f.key, f.kind, f.resource_hash, f.resource_kind, f.resource_id,
       f.version, f.version_text,
       CASE WHEN f.ignored THEN 'ignored'
            WHEN f.resource_hash IS NULL OR f.version IS NULL THEN 'applied'
            WHEN s.hash IS NULL OR (s.previous = f.version AND NOT f.ties_apply) THEN 'stale'
            ELSE 'applied' END,
       coalesce(NOT f.ignored AND s.previous = f.version, false),
       CASE WHEN f.ignored OR f.resource_hash IS NULL OR f.version IS NULL THEN NULL
            WHEN s.hash IS NULL THEN 'older than ' || coalesce((SELECT r.version_text FROM tidegate.resources r WHERE r.hash = f.resource_hash), 'the stored one')
            WHEN s.previous = f.version AND NOT f.ties_apply THEN 'equals ' || f.version_text END,
       NULL, f.digest, f.headers, f.body
FROM fresh f
LEFT JOIN guarded s ON s.hash = f.resource_hash
RETURNING e.id, e.verdict, e.tie
